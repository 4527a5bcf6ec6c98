"""The report on a model: one HTML file that needs nothing else."""

import base64
import hashlib
import os
from collections.abc import Sequence
from functools import cache
from pathlib import Path as FilePath
from typing import Any

import numpy as np
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup
from msgspec import Struct

from sparsestep.model.document import check
from sparsestep.model.file import document_of
from sparsestep.report.contents import page_of
from sparsestep.report.numbers import number, padding
from sparsestep.report.pictures import COLOURS
from sparsestep.whole_file import whole_file
from sparsestep.words import printable

__all__ = ["environment", "render_report", "write_report"]

_FOLDER = FilePath(__file__).parent


def render_report(
    model: Any, *, target: str | Sequence[str] | None = None, source: str | None = None
) -> str:
    """The report on a model, as HTML.

    Everything is in the text: style, pictures, script and data. A policy in its head forbids it to
    load or send anything. The same model gives the same text.

    Parameters
    ----------
    model, target, source
        As in :func:`write_report`.

    Returns
    -------
    str

    Examples
    --------
    >>> import numpy as np
    >>> from sparsestep import SparseStepCV
    >>> from sparsestep.report import render_report
    >>> X = np.random.default_rng(0).standard_normal((50, 3))
    >>> model = SparseStepCV(cv=5).fit(X, X[:, 0])
    >>> "1 of 3 candidate variables" in render_report(model, target="income")
    True
    """
    if not isinstance(model, dict):
        model = document_of(model, target=target, source=source)
    elif target is not None or source is not None:
        raise ValueError("A document has its own target and source; give them to an estimator only")
    contents = _readable(check(model, "The document"))
    try:
        with np.errstate(over="raise", invalid="raise", divide="raise"):
            page = page_of(contents, model["settings"])
    except ArithmeticError as error:
        raise ValueError(
            "There is no report on this model, because its numbers are beyond the range in which "
            "they can be drawn; rescale the columns or the target."
        ) from error
    templates = environment()
    explorers = [answer["explorer"] for answer in page["answers"] if answer["explorer"]]
    gutter = max((explorer["picture"]["gutter"] for explorer in explorers), default=0)
    style = templates.get_template("style.css").render(gutter=gutter)
    script = (_FOLDER / "script.js").read_text(encoding="utf-8")
    return templates.get_template("page.html.j2").render(
        page=page,
        style=Markup(style),
        script=Markup(script),
        style_hash=_hash(style),
        script_hash=_hash(script),
    )


def write_report(
    model: Any,
    path: str | os.PathLike[str],
    *,
    target: str | Sequence[str] | None = None,
    source: str | None = None,
) -> None:
    """Write the report on a model to an HTML file, complete or not at all.

    The file needs nothing else: style, pictures, script and data are in it. It holds no rows.

    Parameters
    ----------
    model : SparseStep, SparseStepCV, SparseStepIC or Document
        Fitted; or what `sparsestep.model.file.read_document` reads from a model file.
    path : path-like
        Exactly this name is used.
    target : str or sequence of str, optional
        Name of the target, or one for each; otherwise as in `save_model`. A document has its own.
    source : str, optional
        Where the data came from, for a reader. A document has its own.

    See Also
    --------
    save_model : The model itself as a file, from which ``sparsestep report`` makes the same page.

    Examples
    --------
    >>> import os, tempfile
    >>> import numpy as np
    >>> from sparsestep import SparseStepIC, write_report
    >>> X = np.random.default_rng(0).standard_normal((50, 3))
    >>> model = SparseStepIC().fit(X, X[:, 0])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_report(model, f"{folder}/report.html", target="income")
    ...     os.listdir(folder)
    ['report.html']
    """
    text = render_report(model, target=target, source=source)
    with whole_file(path, "report") as temporary:
        temporary.write_bytes(text.encode())


def _readable(value: Any) -> Any:
    """The same data with texts that can be shown."""
    if isinstance(value, str):
        return printable(value)
    if isinstance(value, list):
        return [_readable(item) for item in value]
    if isinstance(value, dict):
        return {key: _readable(item) for key, item in value.items()}
    if isinstance(value, Struct):
        for name in value.__struct_fields__:
            setattr(value, name, _readable(getattr(value, name)))
    return value


@cache
def environment(*folders: FilePath) -> Environment:
    """The templates of some folders and of the report; HTML escapes strings unless Markup."""
    made = Environment(
        loader=FileSystemLoader([*folders, _FOLDER]),
        autoescape=lambda name: name is None or name.endswith(".html.j2"),
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=StrictUndefined,
    )
    made.globals["colours"] = COLOURS
    made.policies["json.dumps_kwargs"] = {"separators": (",", ":"), "allow_nan": False}
    made.filters |= {"number": number, "padding": padding, "thousands": "{:,}".format}
    return made


def _hash(text: str) -> str:
    """The hash by which the page's policy allows its own style and script only."""
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
