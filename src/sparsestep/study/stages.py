"""The stages after the fits: rank, test, draw, report. Each needs the folder's results only."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from sparsestep.study.analysis import Analysis, analyse
from sparsestep.study.canvas import png, style, svg
from sparsestep.study.claims import claims_of
from sparsestep.study.figures import figures_of
from sparsestep.study.markdown import markdown_of
from sparsestep.study.question import answer_of
from sparsestep.study.report import render_study
from sparsestep.study.results import read_results, read_run, write_file
from sparsestep.study.summary import summary_of

__all__ = ["draw", "rank", "report", "test"]

Folder = str | os.PathLike[str]


def rank(folder: Folder) -> Path:
    """Rank the methods on every data set and measure, into ``ranks.parquet``.

    Parameters
    ----------
    folder : path-like
        Holds ``results.parquet`` and ``run.json``.

    Returns
    -------
    Path
        The file written.
    """
    analysis = _read(folder)
    settings = analysis.settings.reset_index()
    table = pd.concat(
        [
            settings.assign(measure=column).merge(ranking.ranks.reset_index(), on="dataset")
            for column, ranking in analysis.rankings.items()
        ],
        ignore_index=True,
    )
    arrow = pa.Table.from_pandas(table, preserve_index=False).replace_schema_metadata(None)
    buffer = pa.BufferOutputStream()
    pq.write_table(arrow, buffer, compression="zstd")
    return _write(folder, "ranks.parquet", buffer.getvalue().to_pybytes())


def test(folder: Folder) -> Path:
    """Test the ranks and judge the paper's claims, into ``summary.json`` and ``summary.md``.

    Parameters
    ----------
    folder : path-like
        Holds ``results.parquet`` and ``run.json``.

    Returns
    -------
    Path
        The JSON file.
    """
    analysis = _read(folder)
    summary = summary_of(analysis, claims_of(analysis), answer_of(analysis))
    _write(folder, "summary.md", markdown_of(summary).encode())
    text = json.dumps(summary, indent=1, ensure_ascii=False, allow_nan=False) + "\n"
    return _write(folder, "summary.json", text.encode())


# Its name is that of the stage, and no test's.
test.__test__ = False  # type: ignore[attr-defined]


def draw(folder: Folder) -> Path:
    """Draw every picture as SVG and PNG, into ``figures``.

    Parameters
    ----------
    folder : path-like
        Holds ``results.parquet`` and ``run.json``.

    Returns
    -------
    Path
        The folder of the pictures.
    """
    figures = Path(folder) / "figures"
    with style():
        for name, drawn in figures_of(_read(folder)).items():
            figure = drawn()
            _write(figures, f"{name}.svg", svg(figure).encode())
            _write(figures, f"{name}.png", png(figure))
    return figures


def report(folder: Folder) -> Path:
    """Write the report, into ``report.html``.

    Parameters
    ----------
    folder : path-like
        Holds ``results.parquet`` and ``run.json``.

    Returns
    -------
    Path
        The file written.
    """
    analysis = _read(folder)
    page = render_study(analysis, claims_of(analysis), answer_of(analysis))
    return _write(folder, "report.html", page.encode())


def _read(folder: Folder) -> Analysis:
    return analyse(read_results(folder), read_run(folder))


def _write(folder: Folder, name: str, content: bytes) -> Path:
    path = Path(folder) / name
    write_file(path, content)
    return path
