import os
import signal
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from numpy.testing import assert_array_equal
from sklearn.linear_model import LinearRegression

import rows
from source_data import (
    FEATURES,
    assert_folds,
    assert_moments,
    assert_no_digit_lost,
    assert_same,
    exact,
    expected,
    far_away,
    matrix,
)
from sparsestep import SparseStep, SparseStepCV, SparseStepIC, read_moments, sparsestep_path
from sparsestep.errors import DroppedRowsWarning
from sparsestep.moments.table import is_dask
from sparsestep.sources import CsvFormat
from sparsestep.sources.dask import moments, predict
from sparsestep.sources.folds import fold_numbers

dask = pytest.importorskip("dask", reason="needs the extra sparsestep[dask]")
da = pytest.importorskip("dask.array")
dd = pytest.importorskip("dask.dataframe")

SIZES = (301, 0, 349, 350)


@pytest.fixture(scope="module")
def frame(table):
    """The table in four partitions, one of them empty, whose sizes Dask does not know."""
    whole, edges = table.to_pandas(), np.cumsum([0, *SIZES])
    parts = [whole.iloc[a:b] for a, b in pairwise(edges)]
    return dd.from_map(lambda part: part, parts, meta=whole.iloc[:0])


def parts_of(folds, seed):
    """The fold of each row of the frame."""
    return np.concatenate([fold_numbers(n, folds, seed, i) for i, n in enumerate(SIZES)])


def test_partitions_of_a_table_far_from_zero_lose_no_digit():
    near, far = far_away()
    frame = dd.from_pandas(far.to_pandas(), npartitions=20)
    assert_no_digit_lost(near, read_moments(frame, "y"))
    assert_no_digit_lost(near, moments(frame[["a", "b"]], frame["y"]))


def test_a_frame_has_the_moments_of_its_rows(frame, table):
    weighted = read_moments(frame, "y", weight="w")
    assert weighted.feature_names == tuple(FEATURES)
    assert_moments(weighted, expected(table, weight="w"))
    # Folds depend on partition and row.
    folds = read_moments(frame, "y", features=FEATURES, folds=6, seed=9)
    assert_folds(folds, table, parts_of(6, seed=9))
    # Many partitions are merged in a tree.
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


def test_arrays_of_known_chunks_need_not_be_cut_alike():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(100, 6)), rng.normal(size=100)
    blocks = da.from_array(X, chunks=(30, 4))
    for target in (da.from_array(y, chunks=17), y, list(y), pd.Series(y)):
        assert_moments(moments(blocks, target), exact(X, y))


TEN = da.ones((10, 2), chunks=(5, 2))
NO_FRAME = "must be a Dask frame, not Array, which has no columns"
REFUSED = [
    (lambda frame: moments(TEN, np.ones(9)), "X has 10 rows but y has 9"),
    (lambda frame: moments(TEN, da.ones(9, chunks=3)), "X has 10 rows but y has 9"),
    (
        lambda frame: moments(frame[FEATURES], frame["y"].repartition(npartitions=1)),
        "y has 1 partitions but X has 4",
    ),
    (
        lambda frame: moments(frame[FEATURES], np.ones(1000)),
        "y must be a Dask series or array with the partitions",
    ),
    (lambda frame: moments(TEN[:, 0], TEN[:, 1]), "two dimensions"),
    (lambda frame: read_moments(TEN, "y"), NO_FRAME),
    (lambda frame: read_moments(frame, "y", features=["wdie"]), "no column 'wdie'; did you mean"),
    (lambda frame: read_moments(frame.assign(name="a"), "y"), "Column 'name' holds text"),
    (lambda frame: read_moments(frame, "y", csv=CsvFormat(";")), "csv is for files"),
    (lambda frame: read_moments(frame, "y", categories={"a": ["x"]}), "Categories are for files"),
    (lambda frame: SparseStepCV(cv=[([0], [1])]).fit(TEN, TEN[:, 0]), "cv must be a number of f"),
]


@pytest.mark.parametrize(("call", "words"), REFUSED)
def test_what_cannot_be_summed_is_refused(call, words, frame):
    with pytest.raises((ValueError, TypeError), match=words):
        call(frame)


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


@pytest.mark.filterwarnings("ignore:The inplace keyword:DeprecationWarning")
def test_only_the_columns_asked_for_are_read_from_files(table, tmp_path):
    pq.write_table(table.append_column("text", pa.array(["a"] * 1000)), tmp_path / "a.parquet")
    moments = read_moments(dd.read_parquet(tmp_path), "y", features=["small", "wide"])
    assert_moments(moments, expected(table, features=["small", "wide"]))


@pytest.mark.parametrize("names", [None, ["gap", "sum"]])
def test_predictions_stay_lazy(frame, table, names):
    X = matrix(table)
    Y = X @ np.array([[1, 1], [-1, 1], [0, 1], [0, 1]])
    y = Y[:, 0] if names is None else Y
    inner = pd.DataFrame(X, columns=FEATURES)
    lazy = predict(LinearRegression().fit(inner, y), frame[FEATURES], names)
    assert is_dask(lazy)
    if names:
        assert list(lazy.columns) == ["prediction of gap", "prediction of sum"]
    np.testing.assert_allclose(lazy.compute(), y, rtol=1e-10, atol=1e-10)
    assert list(lazy.compute().index) == list(frame.index.compute())
    lazy = predict(LinearRegression().fit(X, y), da.from_array(X, chunks=(300, 3)), names)
    assert lazy.shape == y.shape
    np.testing.assert_allclose(lazy.compute(), y, rtol=1e-10, atol=1e-10)


def test_what_is_not_of_dask():
    assert not any(map(is_dask, (np.ones(2), pd.DataFrame(), None, dask.delayed(1))))


def test_progress_without_a_client(frame, capsys):
    read_moments(frame, "y", progress=True)
    out, err = capsys.readouterr()
    assert out == "" and "100% Completed" in err


def collections():
    """Rows and a target as arrays and frames, near, and as Dask's."""
    X, y = rows.table(600, 5)
    frame = pd.DataFrame(X, columns=list("abcde")), pd.Series(y)
    far = da.from_array(X, chunks=(130, 2)), da.from_array(y, chunks=130)
    return X, y, far, [dd.from_pandas(each, npartitions=3) for each in frame]


@pytest.mark.parametrize("model", [SparseStep(20.0), SparseStepIC("bic")])
@pytest.mark.parametrize("weight", [None, np.arange(600) % 3])
def test_a_dask_array_gives_the_fit_of_the_rows(model, weight):
    X, y, far, _ = collections()
    near = model.fit(X, y, weight).coef_
    more = () if weight is None else (da.from_array(weight, chunks=150),)
    far = model.fit(*far, *more).coef_
    assert_array_equal(near != 0, far != 0)
    np.testing.assert_allclose(far, near, rtol=1e-9)


def test_a_path_of_dask_arrays_is_that_of_the_rows():
    X, y, far, _ = collections()
    paths = [sparsestep_path(*each, alphas=[100.0, 1.0]).coefs for each in (far, (X, y))]
    np.testing.assert_allclose(*paths, rtol=1e-9)


def test_cross_validation_and_predictions_on_a_dask_frame():
    X, _, _, far = collections()
    model = SparseStepCV(cv=4).fit(*far)
    assert list(model.feature_names_in_) == list("abcde")
    by_folds = SparseStepCV(cv=4).fit_moments(moments(*far, folds=4))
    np.testing.assert_allclose(model.mse_path_, by_folds.mse_path_, rtol=1e-12)
    near = model.predict(pd.DataFrame(X, columns=list("abcde")))
    np.testing.assert_allclose(model.predict(far[0]).compute(), near, rtol=1e-12)
    both = SparseStep(20.0).fit(far[0], far[1].to_frame("gain").assign(loss=-far[1]))
    lazy = both.predict(far[0])
    assert list(lazy.columns) == ["prediction of gain", "prediction of loss"]


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
    edges, flag = np.linspace(0, 1000, 21).astype(int), str(tmp_path / "killed")
    meta = table.slice(0, 0).to_pandas()
    mortal = dd.from_map(slice_or_die, range(20), meta=meta, edges=edges, table=table, flag=flag)
    options = {"features": FEATURES, "folds": 5, "seed": 1}
    with ThreadPoolExecutor(1) as pool:
        folds = pool.submit(read_moments, mortal, "y", **options).result(timeout=90)
    killed = int(Path(flag).read_text())
    assert killed != os.getpid() and killed not in client.run(os.getpid).values()
    assert_folds(folds, table, np.concatenate([fold_numbers(50, 5, 1, i) for i in range(20)]))
    # The tree is the same wherever its leaves were computed, so nothing differs in any bit.
    for fold, again in zip(folds, read_moments(mortal, "y", **options), strict=True):
        assert_same(fold, again)
