"""The table of results, one row for each data set and method, and the facts about the run."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from sparsestep.study.datasets import CORRELATIONS
from sparsestep.study.methods import ALL_METHODS
from sparsestep.whole_file import whole_file

RESULTS = "results.parquet"
RUN = "run.json"

COLUMNS: dict[str, str] = {
    # Which data set: 180 * replicate + the number of its setting, and the setting.
    "dataset": "int64",
    "replicate": "int64",
    "m": "int64",
    "sparsity": "int64",  # zeta: percent of the coefficients that are zero
    "snr": "float64",
    "correlation": "str",  # one of CORRELATIONS
    "n_train": "int64",
    "n_test": "int64",
    "method": "str",  # one of ALL_METHODS
    # The measures.
    "mse_b": "float64",  # mean squared error of the coefficients
    "hit_rate": "float64",  # correct zeros and correct nonzeros, over m
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


def as_table(rows: Any) -> pd.DataFrame:
    """Rows, in any order, as a checked table sorted by data set and method.

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
    place = frame["method"].map({name: i for i, name in enumerate(ALL_METHODS)})
    if place.isna().any():
        raise ValueError(f"Unknown method {frame['method'][place.isna()].iloc[0]!r} in results.")
    frame = frame.iloc[np.lexsort((place, frame["dataset"]))].reset_index(drop=True)
    times = pd.crosstab(frame["dataset"], frame["method"])
    for wrong, words in ((times > 1, "has two results of"), (times == 0, "has no result of")):
        if wrong.any(axis=None):
            dataset = wrong.any(axis=1).idxmax()
            methods = ", ".join(times.columns[wrong.loc[dataset]])
            raise ValueError(f"Data set {dataset} {words} {methods}.")
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
    return frame


# -- files -------------------------------------------------------------------------------------


def write_file(path: Path, content: str | bytes) -> None:
    """Write a file completely or not at all; make its folder if it is missing."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with whole_file(path, "study") as temporary:
        temporary.write_bytes(content.encode() if isinstance(content, str) else content)


def write_parquet(path: Path, frame: pd.DataFrame, schema: pa.Schema | None = None) -> None:
    """Write a frame as a Parquet file."""
    table = pa.Table.from_pandas(frame, schema=schema, preserve_index=False)
    buffer = pa.BufferOutputStream()
    # The note of pandas on its own types would change the file with the version of pandas.
    pq.write_table(table.replace_schema_metadata(None), buffer, compression="zstd")
    write_file(path, buffer.getvalue().to_pybytes())


def write_results(frame: pd.DataFrame, folder: Path) -> None:
    """Write the table of results into the study's folder."""
    types = [(name, pa.string() if kind == "str" else kind) for name, kind in COLUMNS.items()]
    write_parquet(folder / RESULTS, as_table(frame), pa.schema(types))


def read_results(folder: Path) -> pd.DataFrame:
    """Read and check the table of results of a study's folder."""
    file = _existing(folder / RESULTS)
    try:
        return as_table(pq.read_table(file).to_pandas())
    except (pa.ArrowException, ValueError) as error:
        raise ValueError(f"{file} is not a table of this study's results: {error}") from error


def write_run(facts: Mapping[str, Any], folder: Path) -> None:
    """Write the facts about a run: scale, grid, versions, machine and wall time."""
    write_file(folder / RUN, json.dumps(dict(facts), indent=2, ensure_ascii=False) + "\n")


def read_run(folder: Path) -> dict[str, Any]:
    """What `write_run` wrote."""
    facts: dict[str, Any] = json.loads(_existing(folder / RUN).read_text(encoding="utf-8"))
    return facts


def _existing(file: Path) -> Path:
    """The file, if there is one."""
    if not file.is_file():
        raise FileNotFoundError(f"{file} does not exist; run the study's fits first.")
    return file
