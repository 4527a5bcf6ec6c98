"""A table with columns of every kind of number, as each kind of source, and its exact sums."""

import os
import shutil
import sys
import tracemalloc
from contextlib import contextmanager
from itertools import pairwise

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv
import pyarrow.dataset as ds
import pyarrow.feather
import pyarrow.parquet
import pytest

needs_java = pytest.mark.skipif(
    shutil.which("java") is None and "JAVA_HOME" not in os.environ,
    reason="Spark needs Java, which is not installed",
)


@contextmanager
def spark_session(cores, **settings):
    """A Spark session on some cores of this machine."""
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = sys.executable
    builder = SparkSession.builder.master(f"local[{cores}]")
    settings |= {"ui.enabled": "false", "ui.showConsoleProgress": "false"}
    settings |= {"driver.bindAddress": "127.0.0.1", "driver.host": "127.0.0.1"}
    for name, value in settings.items():
        builder = builder.config(f"spark.{name}", value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    try:
        yield session
    finally:
        session.stop()


WRITERS = {
    ".parquet": pa.parquet.write_table,
    ".csv": pa.csv.write_csv,
    ".feather": pa.feather.write_feather,
}


def write(table, path):
    """Write a table in the format of the path's ending; the path."""
    WRITERS[path.suffix](table, path)
    return path


def by_pandas(table, path, **how):
    table.to_pandas().to_csv(path, index=False, **how)
    return path


def in_batches(table, path):
    with pa.ipc.new_file(path, table.schema) as writer:
        writer.write_table(table, max_chunksize=130)
    return path


def in_parts(table, folder):
    """A folder of three files, of several groups of rows each if there are many."""
    edges = [round(share * table.num_rows) for share in (0, 0.301, 0.65, 1)]
    for i, (start, end) in enumerate(pairwise(edges)):
        part = table.slice(start, end - start)
        pa.parquet.write_table(part, folder / f"part-{i}.parquet", 100)
    return folder


# What `read_moments` takes, from a table and an empty folder.
SOURCES = {
    "folder": in_parts,
    "pattern": lambda table, folder: str(in_parts(table, folder) / "*.parquet"),
    "list": lambda table, folder: sorted(in_parts(table, folder).glob("*.parquet")),
    "address": lambda table, folder: in_parts(table, folder).as_uri(),
    "parquet": lambda table, folder: write(table, folder / "all.parquet"),
    "csv": lambda table, folder: write(table, folder / "all.csv"),
    "compressed csv": lambda table, folder: by_pandas(table, folder / "all.csv.gz"),
    "tsv": lambda table, folder: by_pandas(table, folder / "all.tsv", sep="\t"),
    "arrow": lambda table, folder: in_batches(table, folder / "all.arrow"),
    "feather": lambda table, folder: write(table, folder / "all.feather"),
    "dataset": lambda table, folder: ds.dataset(in_parts(table, folder)),
    "reader": lambda table, folder: table.to_reader(max_chunksize=77),
    "table": lambda table, folder: table,
    "pandas": lambda table, folder: table.to_pandas(),
    "pandas of arrow": lambda table, folder: table.to_pandas(types_mapper=pd.ArrowDtype),
    "polars": lambda table, folder: pl.from_arrow(table),
}


def make_table(n=1000, seed=0):
    """Columns of several types, far from zero, with a target and whole-number weights."""
    rng = np.random.default_rng(seed)
    wide, count = 50.0 + rng.normal(size=n), rng.integers(0, 9, size=n)
    flag = rng.random(n) < 0.3
    # Short in binary, so that text files hold the same numbers.
    small = (np.round(rng.normal(size=n) * 64) / 64).astype(np.float32)
    y = 2.0 * wide - count + 3.0 * flag + rng.normal(size=n)
    columns = {"wide": wide, "count": count.astype(np.int16), "y": y, "flag": flag, "small": small}
    return pa.table(columns | {"w": rng.integers(0, 4, size=n)})


FEATURES = ["wide", "count", "flag", "small"]


def far_away(offset=2.0**40):
    """A sorted table near zero, and the same far away: exact numbers, so its sums are the same."""
    rng = np.random.default_rng(0)
    near = {name: np.sort(np.round(rng.normal(size=600) * 64) / 64) for name in ("a", "b", "y")}
    far = {name: values + offset for name, values in near.items()}
    return pa.table(near), pa.table(far)


def assert_no_digit_lost(near, far):
    """Centred sums of moments are those of the same rows near zero."""
    for name, want in expected(near, features=["a", "b"]).items():
        if name in ("xtx", "xty", "yty"):
            np.testing.assert_allclose(getattr(far, name), want, rtol=1e-13, err_msg=name)


def exact(X, y, w=None):
    """Means and centred sums in 64-bit-mantissa arithmetic, straight from their definition."""
    X, y = np.asarray(X, np.longdouble), np.asarray(y, np.longdouble)
    w = np.ones(len(X), np.longdouble) if w is None else np.asarray(w, np.longdouble)
    W = w.sum()
    mean_x, mean_y = w @ X / W, w @ y / W
    A, b = X - mean_x, y - mean_y
    return {
        "n_samples": np.count_nonzero(w),
        "weight_sum": W,
        "mean_x": mean_x,
        "mean_y": mean_y,
        "xtx": (A.T * w) @ A,
        "xty": (A.T * w) @ b,
        "yty": ((b * b).T * w).sum(axis=-1),
    }


def matrix(table, features=FEATURES):
    """Columns of a table as doubles."""
    return np.column_stack([table.column(name).to_numpy().astype(float) for name in features])


def expected(table, rows=slice(None), features=FEATURES, weight=None):
    """Number of rows, means and centred sums of some rows, from the definition."""
    X, y = matrix(table, features), table.column("y").to_numpy()
    w = np.ones(len(y)) if weight is None else table.column(weight).to_numpy()
    return exact(X[rows], y[rows], w[rows])


def assert_moments(moments, want, rtol=1e-12):
    """Each sum has its shape and agrees to rtol of the product of its two columns' lengths."""
    length, length_y = np.sqrt(np.diagonal(want["xtx"])), np.sqrt(want["yty"])
    sizes = {
        "n_samples": 0,
        "weight_sum": want["weight_sum"],
        "mean_x": np.abs(want["mean_x"]) + length,
        "mean_y": np.abs(want["mean_y"]) + length_y,
        "xtx": np.multiply.outer(length, length),
        "xty": np.multiply.outer(length, length_y),
        "yty": length_y**2,
    }
    for name, size in sizes.items():
        found = getattr(moments, name)
        assert np.shape(found) == np.shape(want[name]), name
        assert np.all(np.abs(found - want[name]) <= rtol * size), name
    assert np.all(np.abs(moments.diag - np.diagonal(want["xtx"])) <= rtol * length**2)


def assert_same(a, b):
    """The two moments are alike in every bit."""
    for name in ("feature_names", "is_thin", "n_samples", "weight_sum"):
        assert getattr(a, name) == getattr(b, name), name
    assert type(a.mean_y) is type(b.mean_y)
    for name in ("mean_x", "mean_y", "xtx", "xty", "yty", "diag"):
        np.testing.assert_array_equal(getattr(a, name), getattr(b, name), err_msg=name)


def peak_of(call):
    """What a call returns, and the most memory that it took at a time."""
    tracemalloc.start()
    try:
        return call(), tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def assert_folds(folds, table, numbers, **how):
    """The moments of each fold are those of the rows that have its number."""
    assert len(folds) == numbers.max() + 1
    for k, fold in enumerate(folds):
        assert_moments(fold, expected(table, rows=numbers == k, **how))
