"""The study's table of results, one row for each data set and method: schema, checks, files."""

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

__all__ = [
    "COLUMNS",
    "CORRELATIONS",
    "EXTRAS",
    "METHODS",
    "RESULTS",
    "RUN",
    "as_table",
    "read_results",
    "read_run",
    "write_file",
    "write_results",
    "write_run",
]

METHODS = ("OLS", "Ridge", "Lasso", "SCAD", "MC+", "SparseStep")
EXTRAS = ("SparseStep 1se", "SparseStep BIC", "SparseStep swap")
CORRELATIONS = ("uncorrelated", "constant", "noise")

RESULTS = "results.parquet"
RUN = "run.json"

COLUMNS: dict[str, str] = {
    # Which data set: 180 * replicate + the number of its setting, and the setting.
    "dataset": "int64",
    "replicate": "int64",
    "m": "int64",
    "sparsity": "int64",  # zeta: percent of the coefficients that are zero
    "snr": "float64",
    "correlation": "str",  # "uncorrelated", "constant" or "noise"
    "n_train": "int64",
    "n_test": "int64",
    "method": "str",  # one of METHODS or EXTRAS
    # The measures.
    "mse_b": "float64",  # mean squared error of the coefficients
    "hit_rate": "float64",  # correct zeros and correct non-zeros, over m
    "mse_y": "float64",  # mean squared error on the test rows
    "time": "float64",  # seconds: processor time of the whole cross-validation over n_fits
    # How they came about.
    "n_fits": "int64",
    "alpha": "float64",  # the chosen lambda, on the method's own scale; NaN for OLS
    "a": "float64",  # the chosen a; NaN for all but MC+
    "at_end": "str",  # whether alpha is the "smallest" or "largest" of its grid; else ""
    "n_nonzero": "int64",
    "optimality": "float64",  # worst relative violation of the optimality conditions; NaN for OLS
}

_SCHEMA = pa.schema(
    [(name, pa.string() if kind == "str" else kind) for name, kind in COLUMNS.items()]
)


def as_table(rows: Any) -> pd.DataFrame:
    """Rows, in any order, as a checked table sorted by data set and method.

    Parameters
    ----------
    rows : list of dict, or DataFrame
        With the columns of `COLUMNS`.

    Returns
    -------
    DataFrame
        Methods stand in the order of `METHODS`, then `EXTRAS`.

    Raises
    ------
    ValueError
        If a column is missing, a value is impossible, or a data set lacks a method of another.

    Examples
    --------
    >>> from sparsestep.study.results import as_table
    >>> as_table([{"dataset": 0}])
    Traceback (most recent call last):
    ...
    ValueError: The results lack the column 'replicate'.
    """
    frame = pd.DataFrame(rows)
    for name in COLUMNS:
        if name not in frame.columns:
            raise ValueError(f"The results lack the column {name!r}.")
    frame = frame[list(COLUMNS)].astype(COLUMNS)
    order = {method: place for place, method in enumerate((*METHODS, *EXTRAS))}
    place = frame["method"].map(order)
    if place.isna().any():
        raise ValueError(f"Unknown method {frame['method'][place.isna()].iloc[0]!r} in results.")
    frame = frame.iloc[np.lexsort((place, frame["dataset"]))].reset_index(drop=True)
    _check(frame)
    return frame


def _check(frame: pd.DataFrame) -> None:
    """Refuse tables that no study can have produced."""
    twice = frame.duplicated(["dataset", "method"])
    if twice.any():
        row = frame[twice].iloc[0]
        raise ValueError(f"Data set {row['dataset']} has two results of {row['method']}.")
    methods = set(frame["method"])
    counts = frame.groupby("dataset")["method"].size()
    if (counts != len(methods)).any():
        dataset = counts.index[counts != len(methods)][0]
        missing = methods - set(frame.loc[frame["dataset"] == dataset, "method"])
        raise ValueError(f"Data set {dataset} has no result of {', '.join(sorted(missing))}.")
    impossible = {
        "correlation": ~frame["correlation"].isin(CORRELATIONS),
        "mse_b": ~(frame["mse_b"] >= 0),
        "hit_rate": ~frame["hit_rate"].between(0, 1),
        "mse_y": ~(frame["mse_y"] >= 0),
        "time": ~(frame["time"] > 0),
        "n_fits": frame["n_fits"] < 1,
        "alpha": frame["alpha"].isna() != (frame["method"] == "OLS"),
        "a": frame["a"].isna() != (frame["method"] != "MC+"),
        "at_end": ~frame["at_end"].isin(["", "smallest", "largest"]),
        "n_nonzero": ~frame["n_nonzero"].between(0, frame["m"]),
        "optimality": ~(frame["optimality"] >= 0) & (frame["method"] != "OLS"),
    }
    for name, wrong in impossible.items():
        if wrong.any():
            row = frame[wrong].iloc[0]
            raise ValueError(
                f"Data set {row['dataset']}, {row['method']}: {name} is {row[name]}, "
                "which cannot be."
            )


def write_results(frame: pd.DataFrame, path: str | os.PathLike[str]) -> None:
    """Write a table that `as_table` made as Parquet, complete or not at all.

    Parameters
    ----------
    frame : DataFrame
    path : path-like

    Examples
    --------
    >>> import os, tempfile
    >>> from sparsestep.study.results import COLUMNS, as_table, read_results, write_results
    >>> row = dict.fromkeys(COLUMNS, 1) | {"method": "Lasso", "correlation": "noise"}
    >>> row |= {"a": float("nan"), "at_end": ""}
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_results(as_table([row]), os.path.join(folder, "results.parquet"))
    ...     read_results(folder)[["dataset", "method", "mse_y"]]
       dataset method  mse_y
    0        1  Lasso    1.0
    """
    table = pa.Table.from_pandas(as_table(frame), schema=_SCHEMA, preserve_index=False)
    # The note of pandas on its own types would change the file with the version of pandas.
    table = table.replace_schema_metadata(None)
    buffer = pa.BufferOutputStream()
    pq.write_table(table, buffer, compression="zstd")
    write_file(path, buffer.getvalue().to_pybytes())


def read_results(path: str | os.PathLike[str]) -> pd.DataFrame:
    """Read and check a table of results.

    Parameters
    ----------
    path : path-like
        The file, or the study's folder.

    Returns
    -------
    DataFrame
    """
    file = Path(path)
    if file.is_dir():
        file = file / RESULTS
    if not file.is_file():
        raise FileNotFoundError(f"{file} does not exist; run the study's fits first.")
    try:
        return as_table(pq.read_table(file).to_pandas())
    except (pa.ArrowException, ValueError) as error:
        raise ValueError(f"{file} is not a table of this study's results: {error}") from error


def write_run(facts: Mapping[str, Any], folder: str | os.PathLike[str]) -> None:
    """Write what there is to know about a run: its scale, grid, versions, machine and wall time.

    Parameters
    ----------
    facts : mapping
        Of JSON's types. A run of the fits writes ``scale`` ("quick" or "paper"), ``grid`` ("paper"
        or "own"), ``replicates``, ``datasets``, ``n_train``, ``n_test``, ``folds``, ``seed``,
        ``extras`` (bool), ``jobs``, ``wall_time`` (seconds, over all sessions of a resumed run),
        ``finished`` (date, or null while it runs), ``versions`` (name to version) and ``machine``
        (``cpu``, ``cores``, ``memory_gb``, ``system``).
    folder : path-like
        The study's folder; the file is ``run.json``.
    """
    text = json.dumps(dict(facts), indent=2, ensure_ascii=False) + "\n"
    write_file(Path(folder) / RUN, text.encode())


def read_run(folder: str | os.PathLike[str]) -> dict[str, Any]:
    """What `write_run` wrote.

    Parameters
    ----------
    folder : path-like
        The study's folder.

    Returns
    -------
    dict
    """
    file = Path(folder) / RUN
    if not file.is_file():
        raise FileNotFoundError(f"{file} does not exist; run the study's fits first.")
    facts: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    return facts


def write_file(path: str | os.PathLike[str], content: bytes) -> None:
    """Write a file under a temporary name and rename it, so that it is complete or absent.

    Parameters
    ----------
    path : path-like
    content : bytes
    """
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with temporary.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)
