"""
More rows than memory
=====================

``read_moments`` reads a folder of files once, a block of rows at a time, and keeps sums. The
memory it takes does not grow with the rows. Here the tables are small enough for a gallery;
nothing changes when they are not.
"""

import tempfile
import threading
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from sparsestep import PathDisplay, SparseStepCV, read_moments

columns, rows_per_file = 20, 200_000
truth = np.where(np.arange(columns) < 5, [3.0, -2.0, 1.5, 1.0, -0.5] * 4, 0.0)


def write(folder, part):
    """One more file of the table."""
    rng = np.random.default_rng(part)
    X = rng.standard_normal((rows_per_file, columns))
    y = 10.0 + X @ truth + 5.0 * rng.standard_normal(rows_per_file)
    table = pa.table({f"x{j}": X[:, j] for j in range(columns)} | {"y": y})
    pq.write_table(table, Path(folder) / f"part-{part}.parquet")


def memory_in_use():
    """Bytes of this process in memory, as Linux tells; zero elsewhere."""
    status = Path("/proc/self/statm")
    return int(status.read_text().split()[1]) * 4096 if status.exists() else 0


def peak_of(work):
    """The largest growth of the memory in use while `work` runs, and its result."""
    before, seen, done = memory_in_use(), [0], threading.Event()

    def watch():
        while not done.wait(0.002):
            seen.append(memory_in_use() - before)

    watcher = threading.Thread(target=watch)
    watcher.start()
    result = work()
    done.set()
    watcher.join()
    return max(seen), result


# %%
# The table grows from file to file; each time all of it is read, into ten folds.

sizes, peaks = [], []
with tempfile.TemporaryDirectory() as folder:
    for part in range(8):
        write(folder, part)
        if part == 0:
            read_moments(folder, "y", folds=10)  # loads what is loaded once
        peak, folds = peak_of(lambda: read_moments(folder, "y", folds=10))
        sizes.append(8 * (part + 1) * rows_per_file * (columns + 1) / 1e6)
        peaks.append(peak / 1e6)

# %%
# What is left of the rows are ten sets of sums, and they are enough for the whole
# cross-validation.

model = SparseStepCV(rule="paired").fit_moments(folds)
kept_bytes = sum(fold.xtx.nbytes for fold in folds)
print(f"{sum(fold.n_samples for fold in folds):,} rows became {kept_bytes / 1e3:.0f} kB of sums")
print(model.summary())

figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4.2), layout="constrained")
left.plot(sizes, sizes, "o-", color="0.6", label="the table itself")
left.plot(sizes, peaks, "o-", label="memory taken to read it")
left.set_xlabel("size of the table, MB")
left.set_ylabel("MB")
left.set_ylim(bottom=0)
left.legend(frameon=False)
PathDisplay.from_estimator(model, truth=truth, ax=right)
right.set_title("The path, from sums alone")
plt.show()
