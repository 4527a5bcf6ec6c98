"""The report on a model: one HTML file that needs nothing else."""

import base64
import hashlib
import os
from functools import cache
from pathlib import Path as FilePath

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from sparsestep.model_document import Document
from sparsestep.report.contents import page_of
from sparsestep.report.pictures import COLOURS
from sparsestep.whole_file import whole_file

__all__ = ["render_report", "write_report"]

_FOLDER = FilePath(__file__).parent


def render_report(document: Document) -> str:
    """The report on a model, as HTML.

    Everything is in the text: style, pictures, script and data. A policy in its head forbids it to
    load or send anything. The same document gives the same text.

    Parameters
    ----------
    document : Document
        What `read_document` reads from a model file, or `document_of` makes of a fitted model.

    Returns
    -------
    str

    Examples
    --------
    >>> import numpy as np
    >>> from sparsestep import SparseStepCV
    >>> from sparsestep.model_file import document_of
    >>> from sparsestep.report import render_report
    >>> X = np.random.default_rng(0).standard_normal((50, 3))
    >>> model = SparseStepCV(cv=5).fit(X, X[:, 0])
    >>> "1 of 3 candidate variables" in render_report(document_of(model, target="income"))
    True
    """
    page = page_of(document)
    environment = _environment()
    gutter = max((a.explorer.picture.gutter for a in page.answers if a.explorer), default=0)
    style = environment.get_template("style.css").render(colours=COLOURS, gutter=gutter)
    script = (_FOLDER / "script.js").read_text(encoding="utf-8")
    return environment.get_template("page.html.j2").render(
        page=page,
        style=Markup(style),
        script=Markup(script),
        style_hash=_hash(style),
        script_hash=_hash(script),
    )


def write_report(document: Document, path: str | os.PathLike[str]) -> None:
    """Write the report on a model to a file, complete or not at all.

    Parameters
    ----------
    document : Document
        What `read_document` reads from a model file, or `document_of` makes of a fitted model.
    path : path-like
        Exactly this name is used.

    Examples
    --------
    >>> import os, tempfile
    >>> import numpy as np
    >>> from sparsestep import SparseStepIC
    >>> from sparsestep.model_file import document_of
    >>> from sparsestep.report import write_report
    >>> X = np.random.default_rng(0).standard_normal((50, 3))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_report(document_of(SparseStepIC().fit(X, X[:, 0])), f"{folder}/report.html")
    ...     os.listdir(folder)
    ['report.html']
    """
    text = render_report(document)
    with (
        whole_file(path, "report") as temporary,
        open(temporary, "x", encoding="utf-8", newline="\n") as file,
    ):
        file.write(text)


@cache
def _environment() -> Environment:
    """The templates; what they are given is text unless it says otherwise."""
    return Environment(
        loader=FileSystemLoader(_FOLDER),
        autoescape=lambda name: name is None or not name.endswith(".css"),
        undefined=StrictUndefined,
    )


def _hash(text: str) -> str:
    """By this, browsers know the only style and script that the policy allows."""
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
