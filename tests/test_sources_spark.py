import numpy as np
import pytest

from source_data import (
    FEATURES,
    assert_folds,
    assert_moments,
    assert_no_digit_lost,
    expected,
    far_away,
    needs_java,
    spark_session,
    write,
)
from sparsestep import SparseStep, read_moments
from sparsestep.errors import DroppedRowsWarning
from sparsestep.sources.folds import fold_numbers

pyspark = pytest.importorskip("pyspark", reason="needs the extra sparsestep[spark]")
pytestmark = [
    pytest.mark.spark,
    needs_java,
    pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas"),
]


@pytest.fixture(scope="module")
def spark():
    """A session in which batches are small."""
    small = {"sql.execution.arrow.maxRecordsPerBatch": "100", "sql.shuffle.partitions": "2"}
    with spark_session(2, **small) as session:
        yield session


@pytest.fixture(scope="module")
def frame(spark, table, tmp_path_factory):
    """The table as Spark reads it from a file, in one partition."""
    path = write(table, tmp_path_factory.mktemp("spark") / "all.parquet")
    return spark.read.parquet(str(path)).coalesce(1)


def test_partitions_of_a_table_far_from_zero_lose_no_digit(spark):
    near, far = far_away()
    rows = spark.createDataFrame(far.to_pandas()).repartitionByRange(6, "a")
    assert_no_digit_lost(near, read_moments(rows, "y"))


def test_moments_weights_and_folds(frame, table):
    folds = read_moments(frame, "y", weight="w", folds=4, seed=2)
    assert folds[0].feature_names == tuple(FEATURES)
    # One partition is part 0, as a file is: the folds are the same.
    assert_folds(folds, table, fold_numbers(1000, 4, seed=2), weight="w")


def test_partitions_are_merged_empty_ones_too(spark, frame, table):
    many = frame.repartition(7)
    assert_moments(read_moments(many, "y", features=FEATURES), expected(table))
    folds = read_moments(many, "y", features=FEATURES, folds=5)
    assert_moments(sum(folds), expected(table))
    sizes = [fold.n_samples for fold in folds]
    assert max(sizes) - min(sizes) <= 7
    few = spark.createDataFrame([(1.0, 2.0), (2.0, 3.0)], "x double, y double").repartition(6)
    assert read_moments(few, "y").n_samples == 2


def test_many_partitions_are_merged_on_the_executors(frame, table, monkeypatch):
    many, plain, collected = frame.repartition(5), type(frame).collect, []
    at_once = read_moments(many, "y", features=FEATURES, folds=3)
    monkeypatch.setattr(
        type(frame), "collect", lambda self: collected.append(plain(self)) or collected[-1]
    )
    monkeypatch.setattr("sparsestep.sources.spark.GROUP_BYTES", 0)
    in_rounds = read_moments(many, "y", features=FEATURES, folds=3)
    # Two by two, five partitions become one: a row for each fold, and one for the counts.
    assert len(collected[0]) == 3 + 1
    for one, other in zip(at_once, in_rounds, strict=True):
        assert one.n_samples == other.n_samples
        np.testing.assert_allclose(one.xtx, other.xtx, rtol=1e-12)
    assert_moments(sum(in_rounds), expected(table))

    holes = many.selectExpr("if(w < 1, null, y) as y", *FEATURES)
    with pytest.raises(ValueError, match=r"^Column 'y' has a missing value in row \d+ .*partition"):
        read_moments(holes, "y")
    with pytest.warns(DroppedRowsWarning, match=r"of 1000 rows .*in 'y'\)"):
        kept = read_moments(holes, "y", drop_missing=True)
    assert kept.n_samples == np.count_nonzero(table["w"].to_numpy() >= 1)


def test_bad_values_and_columns(spark):
    rows = [(1.0, 1.0, "a"), (2.0, None, "b"), (float("inf"), 3.0, "c")]
    frame = spark.createDataFrame(rows, "`x.1` double, y double, name string").coalesce(1)
    with pytest.raises(ValueError, match=r"^Column 'y' has a missing value in row 1 .*partition 0"):
        read_moments(frame, "y", features=["x.1"])
    with pytest.raises(ValueError, match=r"^Column 'x\.1' has the value inf in row 2 .*of part"):
        read_moments(frame, "y", features=["x.1"], drop_missing=True)
    with pytest.warns(DroppedRowsWarning, match=r"Left out 1 of 2 rows .*\(1 in 'y'\)"):
        kept = read_moments(frame.limit(2), "y", features=["x.1"], drop_missing=True)
    np.testing.assert_allclose(kept.mean_x, [1.0])
    with pytest.raises(TypeError, match="Column 'name' of the Spark frame holds text"):
        read_moments(frame, "y")
    with pytest.raises(ValueError, match=r"The Spark frame has no column 'z'; it has 'x\.1'"):
        read_moments(frame, "z")


def test_an_estimator_says_how_spark_frames_are_fitted(frame):
    with pytest.raises(TypeError, match=r"read_moments\(frame, target\) sums it where it is"):
        SparseStep().fit(frame, [1.0, 2.0])
