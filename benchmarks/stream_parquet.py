"""Cross-validation over files larger than memory, beside only reading the same columns.

Run with ``python benchmarks/stream_parquet.py [--rows N] [--columns M] [--format parquet|csv]
[--folder F] [--repeats R] [--cold]``. The files are made once and kept if a folder is given. Every
run is a process of its own, so that its peak of memory is its own; the runs alternate, so that
whatever else the machine does hits all of them, and the table gives the best of the repeats.
``--cold`` drops the files from the system's cache first, as for files larger than memory.
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

TARGET_RATIO = 1.5
TARGET_MB = 700
ROWS_PER_FILE = 1_000_000
ROWS_PER_GROUP = 128 * 1024


def make(folder: Path, rows: int, columns: int, form: str) -> None:
    """Write the files; each with its own seed."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.csv
    import pyarrow.parquet as pq

    coef = np.where(np.arange(columns) % 5 == 0, 1.0 / (1 + np.arange(columns)), 0.0)
    for number, start in enumerate(range(0, rows, ROWS_PER_FILE)):
        path = folder / f"part-{number:04}.{form}"
        if path.exists():
            continue
        rng = np.random.default_rng(number)
        n = min(ROWS_PER_FILE, rows - start)
        X = rng.standard_normal((columns, n))
        X += 3.0
        y = coef @ X + rng.standard_normal(n)
        table = pa.table({**{f"x{j}": X[j] for j in range(columns)}, "y": y})
        hidden = path.with_name(f".{path.name}")
        if form == "parquet":
            pq.write_table(table, hidden, row_group_size=ROWS_PER_GROUP)
        else:
            pa.csv.write_csv(table, hidden)
        hidden.rename(path)


def read_dataset(folder: str, form: str) -> dict[str, float]:
    """All columns with pyarrow.dataset, as it comes, into nothing."""
    import pyarrow.dataset as ds

    start = time.perf_counter()
    rows = sum(batch.num_rows for batch in ds.dataset(folder, format=form).to_batches())
    return {"seconds": time.perf_counter() - start, "rows": rows}


def read_batches(folder: str) -> dict[str, float]:
    """All columns of Parquet files into nothing, a batch at a time as `read_moments` reads."""
    import pyarrow.parquet as pq

    start = time.perf_counter()
    rows = 0
    for path in sorted(Path(folder).iterdir()):
        file = pq.ParquetFile(path, pre_buffer=False, buffer_size=1 << 18)
        size = (16 << 20) // (8 * len(file.schema_arrow))
        rows += sum(batch.num_rows for batch in file.iter_batches(size))
    return {"seconds": time.perf_counter() - start, "rows": rows}


def cross_validate(folder: str) -> dict[str, float]:
    """Ten folds, 101 alphas."""
    from sparsestep import SparseStepCV, read_moments

    start = time.perf_counter()
    folds = read_moments(folder, "y", folds=10)
    read = time.perf_counter()
    model = SparseStepCV(alphas=101).fit_moments(folds)
    end = time.perf_counter()
    return {
        "seconds": end - start,
        "fit_seconds": end - read,
        "rows": sum(fold.n_samples for fold in folds),
        "kept": int((model.coef_ != 0).sum()),
    }


def run(name: str, folder: Path, form: str, cold: bool) -> dict[str, float]:
    """One measurement in a process of its own."""
    if cold:
        for path in folder.iterdir():
            descriptor = os.open(path, os.O_RDONLY)
            os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
            os.close(descriptor)
    command = [sys.executable, __file__, "--one", name, "--folder", str(folder), "--format", form]
    result = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    return json.loads(result.stdout)


def table(folder: Path, form: str, repeats: int, cold: bool) -> None:
    """Print a line for each measurement."""
    names = {
        "dataset": "only reading, pyarrow.dataset",
        "batches": "only reading, a batch at a time",
        "cv": "read_moments, 10 folds x 101 alphas",
    }
    if form != "parquet":
        del names["batches"]
    results: dict[str, list[dict[str, float]]] = {name: [] for name in names}
    for _ in range(repeats):
        for name in names:
            results[name].append(run(name, folder, form, cold))
    best = {name: min(runs, key=lambda r: r["seconds"]) for name, runs in results.items()}
    size = sum(path.stat().st_size for path in folder.iterdir())
    cache = "cold" if cold else "warm"
    print(f"{best['cv']['rows']:,} rows, {size / 1e9:.2f} GB of {form}, {cache} cache")
    print(f"{'':<42}{'wall':>9}{'cpu':>9}{'rows/s':>13}{'peak':>9}{'ratio':>8}")
    for name, label in names.items():
        one = best[name]
        peak = max(r["peak_mb"] for r in results[name])
        ratio = best["cv"]["seconds"] / one["seconds"]
        rate = one["rows"] / one["seconds"]
        print(
            f"{label:<42}{one['seconds']:>8.2f}s{one['cpu']:>8.2f}s{rate:>13,.0f}{peak:>6.0f} MB"
            f"{ratio:>8.2f}"
        )
    fit, kept = best["cv"]["fit_seconds"], best["cv"]["kept"]
    print(f"Of it {fit:.2f} s for the 1010 fits; the model keeps {kept:.0f} columns.")
    print(f"Targets: ratio to only reading at most {TARGET_RATIO}; peak below {TARGET_MB} MB.")


def main() -> None:
    """Parse the arguments and run."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rows", type=int, default=500_000)
    parser.add_argument("--columns", type=int, default=50)
    parser.add_argument("--format", choices=["parquet", "csv"], default="parquet")
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--cold", action="store_true")
    parser.add_argument(
        "--one", choices=["make", "dataset", "batches", "cv"], help=argparse.SUPPRESS
    )
    arguments = parser.parse_args()
    if arguments.one == "make":
        make(arguments.folder, arguments.rows, arguments.columns, arguments.format)
        return
    if arguments.one is not None:
        folder, form = str(arguments.folder), arguments.format
        if arguments.one == "cv":
            result = cross_validate(folder)
        elif arguments.one == "batches":
            result = read_batches(folder)
        else:
            result = read_dataset(folder, form)
        usage = resource.getrusage(resource.RUSAGE_SELF)
        result["peak_mb"] = usage.ru_maxrss / 1024
        result["cpu"] = usage.ru_utime + usage.ru_stime
        print(json.dumps(result))
        return
    with tempfile.TemporaryDirectory() as temporary:
        folder = arguments.folder or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        # In a process of its own: a child's peak begins at what its parent has in use.
        options = [f"--{name}={getattr(arguments, name)}" for name in ("rows", "columns", "format")]
        command = [sys.executable, __file__, "--one=make", f"--folder={folder}", *options]
        subprocess.run(command, check=True)
        table(folder, arguments.format, arguments.repeats, arguments.cold)


if __name__ == "__main__":
    main()
