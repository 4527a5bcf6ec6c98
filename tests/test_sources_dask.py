import os
import signal
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from sklearn.linear_model import LinearRegression

from source_data import (
    FEATURES,
    assert_folds,
    assert_moments,
    assert_no_digit_lost,
    expected,
    far_away,
    matrix,
)
from sparsestep import Moments, SparseStepCV, read_moments
from sparsestep.errors import DroppedRowsWarning
from sparsestep.moments.table import is_dask
from sparsestep.sources.dask import moments, predict
from sparsestep.sources.folds import fold_numbers

dask = pytest.importorskip("dask", reason="needs the extra sparsestep[dask]")
da = pytest.importorskip("dask.array")
dd = pytest.importorskip("dask.dataframe")

SIZES = (301, 0, 349, 350)


@pytest.fixture(scope="module")
def frame(table):
    """The table in four partitions, one of them empty, whose sizes Dask does not know."""
    whole = table.to_pandas()
    edges = np.cumsum([0, *SIZES])

    def part(i):
        return whole.iloc[edges[i] : edges[i + 1]]

    return dd.from_map(part, range(4), meta=whole.iloc[:0])


def parts_of(folds, seed):
    """The fold of each row of the frame."""
    return np.concatenate([fold_numbers(n, folds, seed, i) for i, n in enumerate(SIZES)])


def test_partitions_of_a_table_far_from_zero_lose_no_digit():
    near, far = far_away()
    frame = dd.from_pandas(far.to_pandas(), npartitions=20)
    assert_no_digit_lost(near, read_moments(frame, "y"))
    assert_no_digit_lost(near, moments(frame[["a", "b"]], frame["y"]))


def test_a_frame_has_the_moments_of_its_rows(frame, table):
    assert_moments(read_moments(frame, "y", features=FEATURES), expected(table))
    weighted = read_moments(frame, "y", weight="w")
    assert weighted.feature_names == tuple(FEATURES)
    assert_moments(weighted, expected(table, weight="w"))


def test_folds_of_a_frame_depend_on_partition_and_row(frame, table):
    numbers = parts_of(6, seed=9)
    assert_folds(read_moments(frame, "y", features=FEATURES, folds=6, seed=9), table, numbers)


def test_many_partitions_are_merged_in_a_tree(table):
    many = dd.from_pandas(table.to_pandas(), npartitions=70)
    assert_moments(read_moments(many, "y", features=FEATURES), expected(table))


def test_arrays_of_unknown_chunks_and_frames_with_a_separate_target(frame, table):
    X, y, w = frame[FEATURES].astype(float), frame["y"], frame["w"]
    numbers = parts_of(4, seed=0)
    for source in ((X, y, w), (X.values, y.values, w.values), (X, y.values, w)):
        assert is_dask(source[0])
        assert_folds(moments(*source, folds=4), table, numbers, weight="w")
    assert moments(X, y).feature_names == tuple(FEATURES)
    assert_moments(moments(X.values, y.values), expected(table))


def test_arrays_of_known_chunks_need_not_be_cut_alike(table):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(100, 6)), rng.normal(size=100)
    whole = Moments.from_data(X, y)
    blocks = da.from_array(X, chunks=(30, 4))
    for target in (da.from_array(y, chunks=17), y, list(y), pd.Series(y)):
        np.testing.assert_allclose(moments(blocks, target).xtx, whole.xtx, rtol=1e-12)
        np.testing.assert_allclose(moments(blocks, target).xty, whole.xty, rtol=1e-10)


def test_what_does_not_fit_together(frame):
    X = da.ones((10, 2), chunks=(5, 2))
    with pytest.raises(ValueError, match="X has 10 rows but y has 9"):
        moments(X, np.ones(9))
    with pytest.raises(ValueError, match="X has 10 rows but y has 9"):
        moments(X, da.ones(9, chunks=3))
    with pytest.raises(ValueError, match="y has 1 partitions but X has 4"):
        moments(frame[FEATURES], frame["y"].repartition(npartitions=1))
    with pytest.raises(TypeError, match="y must be a Dask series or array with the partitions"):
        moments(frame[FEATURES], np.ones(1000))
    with pytest.raises(ValueError, match="two dimensions"):
        moments(X[:, 0], X[:, 1])


def test_bad_values_are_named_with_their_partition(table):
    whole = table.to_pandas()
    whole.loc[600, "wide"] = np.nan
    broken = dd.from_pandas(whole, npartitions=4, sort=False)
    with pytest.raises(ValueError, match=r"'wide' has a missing value in row 100 .* partition 2"):
        read_moments(broken, "y", features=FEATURES)
    with pytest.raises(ValueError, match="Partition 2: Column 'wide' has the value nan"):
        moments(broken[FEATURES], broken["y"])
    with pytest.warns(DroppedRowsWarning, match="Left out 1 of 1000 rows"):
        kept = read_moments(broken, "y", features=FEATURES, drop_missing=True)
    assert_moments(kept, expected(table, rows=np.arange(1000) != 600))


def test_columns_that_are_not_there_or_hold_no_numbers(frame):
    with pytest.raises(ValueError, match=r"The Dask frame has no column 'wdie'; did you mean"):
        read_moments(frame, "y", features=["wdie"])
    with pytest.raises(TypeError, match="Column 'name' holds text"):
        read_moments(frame.assign(name="a"), "y")
    with pytest.raises(TypeError, match="must be a Dask frame, not Array, which has no columns"):
        read_moments(da.ones((3, 2)), "y")


@pytest.mark.filterwarnings("ignore:The inplace keyword:DeprecationWarning")
def test_only_the_columns_asked_for_are_read_from_files(table, tmp_path):
    pq.write_table(table.append_column("text", pa.array(["a"] * 1000)), tmp_path / "a.parquet")
    moments = read_moments(dd.read_parquet(tmp_path), "y", features=["small", "wide"])
    assert_moments(moments, expected(table, features=["small", "wide"]))


def test_predictions_stay_lazy(frame, table):
    X = matrix(table)
    inner = pd.DataFrame(X, columns=FEATURES)
    y = table.column("y").to_numpy()
    model = LinearRegression().fit(inner, y)
    lazy = predict(model, frame[FEATURES])
    assert is_dask(lazy)
    result = lazy.compute()
    np.testing.assert_allclose(result, model.predict(inner), rtol=1e-12)
    assert list(result.index) == list(frame.index.compute())
    bare = LinearRegression().fit(X, y)
    lazy = predict(bare, da.from_array(X, chunks=(300, 3)))
    assert lazy.shape == (1000,)
    np.testing.assert_allclose(lazy.compute(), bare.predict(X), rtol=1e-12)


def test_predictions_of_several_targets(frame, table):
    X = matrix(table)
    inner = pd.DataFrame(X, columns=FEATURES)
    Y = np.column_stack([X[:, 0] - X[:, 1], X.sum(axis=1)])
    model = LinearRegression().fit(inner, Y)
    lazy = predict(model, frame[FEATURES], ["gap", "sum"])
    assert list(lazy.columns) == ["prediction of gap", "prediction of sum"]
    np.testing.assert_allclose(lazy.compute(), Y, rtol=1e-10)
    bare = LinearRegression().fit(X, Y)
    lazy = predict(bare, da.from_array(X, chunks=(300, 3)), ["gap", "sum"])
    assert lazy.shape == (1000, 2)
    np.testing.assert_allclose(lazy.compute(), Y, rtol=1e-10)


def test_what_is_not_of_dask():
    assert not any(map(is_dask, (np.ones(2), pd.DataFrame(), None, dask.delayed(1))))


def test_progress_without_a_client(frame, capsys):
    read_moments(frame, "y", progress=True)
    out, err = capsys.readouterr()
    assert out == ""
    assert "100% Completed" in err


# -- a cluster of processes ------------------------------------------------------------------


@pytest.fixture(scope="module")
def client():
    """Two worker processes on this machine."""
    distributed = pytest.importorskip("distributed")
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


def slice_or_die(i, edges, table, flag):
    """One partition; the first process to ask for number 5 is killed."""
    if i == 5 and not Path(flag).exists():
        Path(flag).write_text(str(os.getpid()))
        os.kill(os.getpid(), signal.SIGKILL)
    return table.slice(edges[i], edges[i + 1] - edges[i]).to_pandas()


@pytest.mark.slow
def test_a_worker_killed_in_mid_pass_changes_nothing(client, table, tmp_path):
    edges = np.linspace(0, 1000, 21).astype(int)
    flag = str(tmp_path / "killed")
    meta = table.slice(0, 0).to_pandas()
    mortal = dd.from_map(slice_or_die, range(20), meta=meta, edges=edges, table=table, flag=flag)
    with ThreadPoolExecutor(1) as pool:
        pass_ = pool.submit(read_moments, mortal, "y", features=FEATURES, folds=5, seed=1)
        folds = pass_.result(timeout=90)
    killed = int(Path(flag).read_text())
    assert killed != os.getpid()
    assert killed not in client.run(os.getpid).values()
    numbers = np.concatenate([fold_numbers(50, 5, 1, i) for i in range(20)])
    assert_folds(folds, table, numbers)
    X = table.select(FEATURES).to_pandas().astype(float)
    rows_in_memory = Moments.from_folds(X, table.column("y").to_numpy(), numbers)
    model, same = (SparseStepCV().fit_moments(each) for each in (folds, rows_in_memory))
    np.testing.assert_allclose(model.coef_, same.coef_, rtol=1e-9)
    # The tree is the same wherever its leaves were computed, so nothing differs in any bit.
    again = read_moments(mortal, "y", features=FEATURES, folds=5, seed=1)
    for a, b in zip(folds, again, strict=True):
        np.testing.assert_array_equal(a.xtx, b.xtx)
