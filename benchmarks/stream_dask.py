"""The same cross-validation on a Dask cluster of two processes, beside the fit in memory.

Run with ``python benchmarks/stream_dask.py [--rows N] [--columns M] [--folder F]``. The rows in
memory are put in the folds that Dask puts them in, so the coefficients must be the same.
"""

import argparse
import tempfile
import time
from pathlib import Path

import dask.dataframe as dd
import distributed
import numpy as np
import pyarrow.dataset as ds
from stream_parquet import make

from sparsestep import Moments, SparseStepCV, read_moments
from sparsestep.sources.folds import fold_numbers

TARGET = 1e-9


def on_dask(folder: Path) -> tuple[SparseStepCV, list[int], float]:
    """The model, the rows in each partition, and the seconds that it took."""
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None
        ) as cluster,
        distributed.Client(cluster),
    ):
        frame = dd.read_parquet(folder)
        rows = list(frame["y"].map_partitions(len).compute())
        start = time.perf_counter()
        folds = read_moments(frame, "y", folds=10)
        model = SparseStepCV(alphas=101).fit_moments(folds)
        return model, rows, time.perf_counter() - start


def in_memory(folder: Path, rows: list[int]) -> tuple[SparseStepCV, float]:
    """The model of the same folds, and the seconds that it took after reading."""
    table = ds.dataset(folder).to_table()
    features = [name for name in table.column_names if name != "y"]
    X = np.column_stack([table.column(name).to_numpy() for name in features])
    y = table.column("y").to_numpy()
    numbers = np.concatenate([fold_numbers(n, 10, 0, part) for part, n in enumerate(rows)])
    start = time.perf_counter()
    folds = Moments.from_folds(X, y, numbers, feature_names=features)
    return SparseStepCV(alphas=101).fit_moments(folds), time.perf_counter() - start


def main() -> None:
    """Parse the arguments, run, compare."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rows", type=int, default=500_000)
    parser.add_argument("--columns", type=int, default=50)
    parser.add_argument("--folder", type=Path)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = arguments.folder or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        make(folder, arguments.rows, arguments.columns, "parquet")
        model, rows, seconds = on_dask(folder)
        same, memory_seconds = in_memory(folder, rows)
    difference = float(np.max(np.abs(model.coef_ - same.coef_)) / np.max(np.abs(same.coef_)))
    print(f"{sum(rows):,} rows in {len(rows)} partitions, 10 folds x 101 alphas")
    print(f"two Dask processes {seconds:.2f} s; in memory, already read, {memory_seconds:.2f} s")
    print(f"alpha {model.alpha_:.6g} and {same.alpha_:.6g}")
    print(f"largest difference of a coefficient: {difference:.1e} (target: at most {TARGET})")


if __name__ == "__main__":
    main()
