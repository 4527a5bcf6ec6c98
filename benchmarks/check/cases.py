"""The processor's time of each case, on the version that PYTHONPATH leads to.

    python -m check.cases [CASE ...]

Prints the best time of each case, in seconds, as JSON; null for a case that this version cannot do.
The processor's time, because what else the machine does hardly changes it; each case runs in one
thread of ours. Only public names are used, so that older versions can run most cases.
"""

import json
import sys
import tempfile
from time import process_time

# The estimator, not the package alone, whose names are imported when they are asked for.
began = process_time()
from sparsestep import SparseStepCV  # noqa: E402, F401

IMPORT = process_time() - began

import numpy as np  # noqa: E402

import sparsestep  # noqa: E402

ENOUGH = 0.3  # seconds for the repeats of one case
ALPHAS = 2.0 ** np.linspace(10, -10, 41)


def data(rows, columns, correlation=0.5):
    """Constant correlation, a quarter of the coefficients not zero, as much noise as signal."""
    rng = np.random.default_rng(0)
    X = np.sqrt(1 - correlation) * rng.standard_normal((rows, columns))
    X += np.sqrt(correlation) * rng.standard_normal((rows, 1))
    b = np.where(np.arange(columns) % 4 == 0, rng.uniform(-1, 1, columns), 0.0)
    signal = X @ b
    return X, signal + signal.std() * rng.standard_normal(rows)


def path(rows, columns, correlation=0.5):
    """All alphas from moments: the engine."""
    moments = sparsestep.Moments.from_data(*data(rows, columns, correlation))
    return lambda: sparsestep.SparseStepIC(alphas=ALPHAS).fit_moments(moments)


def moments_pass():
    X, y = data(20_000, 100)
    return lambda: sparsestep.Moments.from_data(X, y)


def cross_validation():
    X, y = data(2_000, 30)
    return lambda: sparsestep.SparseStepCV(ALPHAS, cv=5).fit(X, y)


def wide():
    X, y = data(40, 80)
    return lambda: sparsestep.sparsestep_path(X, y, alphas=[300.0, 100.0, 30.0])


def polynomial():
    rng = np.random.default_rng(0)
    base = rng.uniform(0.0, 2.0, 1_000)
    X = np.column_stack([base**power for power in range(1, 13)])
    y = X[:, 1] + rng.standard_normal(1_000)
    moments = sparsestep.Moments.from_data(X, y)
    return lambda: sparsestep.SparseStepIC(alphas=ALPHAS).fit_moments(moments)


def parquet():
    import pyarrow as pa
    import pyarrow.parquet as pq

    X, y = data(50_000, 20)
    columns = {f"x{j}": X[:, j] for j in range(X.shape[1])} | {"y": y}
    folder = tempfile.TemporaryDirectory()
    file = f"{folder.name}/rows.parquet"
    pq.write_table(pa.table(columns), file)

    def read(folder=folder):  # holds on to the folder
        return sparsestep.read_moments(file, "y", folds=5)

    return read


CASES = {
    "import": None,
    "moments, 20000 x 100": moments_pass,
    "engine, 100 columns": lambda: path(1_000, 100),
    "engine, 500 columns": lambda: path(1_000, 500),
    "engine, correlation 0.99": lambda: path(1_000, 60, 0.99),
    "engine, polynomial": polynomial,
    "more columns than rows": wide,
    "cross-validation, 2000 x 30": cross_validation,
    "Parquet, 50000 x 20": parquet,
}


def best(prepare):
    """Shortest time of as many repeats as fit into a moment, after one that does not count."""
    task = prepare()
    task()
    times, stop = [], process_time() + ENOUGH
    while not times or process_time() < stop:
        began = process_time()
        task()
        times.append(process_time() - began)
    return min(times)


def measured(name):
    """Seconds of a case, or None if this version has not what it takes."""
    if name == "import":
        return IMPORT
    try:
        return best(CASES[name])
    except (AttributeError, ImportError, NotImplementedError, TypeError, ValueError) as error:
        print(f"{name}: {error}", file=sys.stderr)
        return None


if __name__ == "__main__":
    print(json.dumps({name: measured(name) for name in sys.argv[1:] or CASES}))
