import pickle
import threading
import zipfile
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from fractions import Fraction
from functools import cache, partial
from itertools import accumulate, pairwise
from operator import mul

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from source_data import assert_moments, assert_same, exact, peak_of
from sparsestep import Moments, read_moments, sparsestep_path
from sparsestep.errors import MomentsFileError
from sparsestep.moments.moments import leave_one_out
from sparsestep.threads import blas


def as_dict(moments):
    return {name: np.asarray(getattr(moments, name), np.longdouble) for name in exact([[0]], [0])}


def plain_table():
    rng = np.random.default_rng(1)
    return rng.integers(-50, 50, size=(60, 4)), rng.integers(0, 9, size=60), rng.uniform(size=60)


ROWS, TARGET, WEIGHT = plain_table()
PLAIN = Moments.from_data(ROWS, TARGET)


@st.composite
def tables(draw, max_rows=30, max_columns=6, targets=None):
    """Eighths between -125 and 125: far from round in binary sums, exact as input."""
    n = draw(st.integers(1, max_rows))
    m = draw(st.integers(1, max_columns))
    eighths = st.integers(-1000, 1000)
    X = draw(hnp.arrays(np.int64, (n, m), elements=eighths)) / 8.0
    shape = n if targets is None else (n, targets)
    y = draw(hnp.arrays(np.int64, shape, elements=eighths)) / 8.0
    return X, y


# -- the sums and their merging ----------------------------------------------------------------


@given(
    st.sampled_from([None, 1, 3]).flatmap(lambda k: tables(max_columns=12, targets=k)), st.data()
)
def test_sums_agree_with_their_definition(table, data):
    """What a row of weight zero contains says nothing."""
    X, y = table
    weights = st.none() | hnp.arrays(float, len(y), elements=st.sampled_from([0.0, 0.5, 1.0, 3.0]))
    weight = data.draw(weights.filter(lambda w: w is None or w.any()))
    want, hidden, counted = exact(X, y, weight), X.copy(), len(y)
    if weight is not None:
        hidden[weight == 0], y[weight == 0], counted = np.nan, np.inf, np.count_nonzero(weight)
    moments = Moments.from_data(hidden, y, weight)
    assert moments.is_thin == (counted < X.shape[1])
    assert_moments(moments, want)
    if moments.is_thin:
        A, b = moments.rows
        assert np.allclose(A.T @ A, want["xtx"].astype(float), atol=1e-9)
        assert np.allclose(A.T @ b, want["xty"].astype(float), atol=1e-9)


@given(tables(), st.data())
def test_any_split_merged_in_any_order_gives_the_whole(table, data):
    """Pieces without a row are among them; none of them is changed."""
    X, y = table
    used = data.draw(st.lists(st.integers(0, 4), min_size=1, max_size=5, unique=True))
    ids = data.draw(hnp.arrays(np.int64, len(y), elements=st.sampled_from(used)))
    ids = np.sort(ids) if data.draw(st.booleans()) else ids
    rows = [np.flatnonzero(ids == i) for i in range(5)]
    pieces = [Moments.from_data(X[i], y[i]) for i in rows]
    for folds in (ids, rows[: ids.max() + 1]):
        for fold, those in zip(Moments.from_folds(X, y, folds), rows, strict=False):
            assert fold.n_samples == len(those)
            if len(those):
                assert_moments(fold, exact(X[those], y[those]))
    before = pickle.loads(pickle.dumps(pieces))
    a, b, c, d, e = data.draw(st.permutations(pieces))
    for merged in (Moments.merge(iter([a, b, c, d, e])), a + ((b + c) + d) + e, sum(pieces)):
        assert_moments(merged, exact(X, y))
    for i, train in enumerate(leave_one_out(pieces)):
        assert train.n_samples == np.count_nonzero(ids != i)
        if train.n_samples:
            assert_moments(train, exact(X[ids != i], y[ids != i]))
    for piece, copy in zip(pieces, before, strict=True):
        assert_same(piece, copy)
    whole, empty = Moments.from_data(X, y), Moments.from_data(X[:0], y[:0])
    assert_same(Moments.merge(data.draw(st.permutations([empty, whole, empty]))), whole)


def in_fractions(X, y, w=None):
    """Centred sums of squares and products of all columns and y, without any rounding."""
    columns = [[Fraction(value) for value in column] for column in np.column_stack([X, y]).T]
    w = [Fraction(value) for value in (np.ones(len(y)) if w is None else w)]
    means = [sum(map(mul, w, column)) / sum(w) for column in columns]
    centred = [
        [value - mean for value in column] for column, mean in zip(columns, means, strict=True)
    ]
    weighted = [list(map(mul, w, column)) for column in centred]
    return [[sum(map(mul, a, b)) for b in centred] for a in weighted], means


def error(moments, sums, means):
    """Largest error of a sum as a share of its columns' lengths; the means must be rounded well."""
    for found, mean in zip([*moments.mean_x, moments.mean_y], means, strict=True):
        assert found == pytest.approx(float(mean), rel=4e-16, abs=1e-15)
    found = np.block([[moments.xtx, moments.xty[:, None]], [moments.xty, moments.yty]])
    length = np.sqrt(np.array([float(sums[i][i]) for i in range(len(sums))]))
    apart = [
        [float(Fraction(x) - exactly) for x, exactly in zip(*rows, strict=True)]
        for rows in zip(found, sums, strict=True)
    ]
    return np.abs(apart / length / length[:, None]).max()


def pieces_of(X, y, w, edges):
    for a, b in pairwise([0, *edges, len(y)]):
        yield X[a:b], y[a:b], None if w is None else w[a:b]


@pytest.mark.parametrize("offset", [0.0, 1e6, 1e9, 1e12])
@given(seed=st.integers(0, 99), data=st.data())
def test_pieces_keep_the_digits_of_the_whole(offset, seed, data):
    rng = np.random.default_rng(seed)
    X, y = np.sort(rng.normal(size=(60, 3)), axis=0) + offset, np.sort(rng.normal(size=60)) - offset
    w = rng.choice([0.3, 1.0, 7.0], 60) if data.draw(st.booleans()) else None
    # Also pieces of one or two rows, which are thin.
    edges = sorted(data.draw(st.sets(st.integers(1, 59), max_size=25)))
    pieces = [Moments.from_data(*piece) for piece in pieces_of(X, y, w, edges)]
    sums, means = in_fractions(X, y, w)
    for moments in (
        Moments.from_data(X, y, w),
        Moments.merge(data.draw(st.permutations(pieces))),
        Moments.from_batches(pieces_of(X, y, w, edges)),
    ):
        assert error(moments, sums, means) < 4e-15
    train = leave_one_out(Moments.from_folds(X, y, np.arange(60) // 20, w))[1]
    rest = np.r_[0:20, 40:60]
    assert error(train, *in_fractions(X[rest], y[rest], w if w is None else w[rest])) < 4e-15


def test_sparse_rows_keep_the_digits_of_columns_without_zeros():
    rng = np.random.default_rng(0)
    X = sp.random_array((200, 120), density=0.01, rng=rng).toarray()
    X[:, :2] = np.sort(rng.normal(size=(200, 2)), axis=0) + np.array([1e9, 1e12])
    y = rng.normal(size=200)
    # Thin pieces of 10 rows each, and sparse products of all rows.
    for size in (10, 200):
        merged = Moments.from_batches(
            (sp.csr_array(X[i : i + size]), y[i : i + size]) for i in range(0, 200, size)
        )
        exactly = in_fractions(X[:, :2], y)
        assert abs(merged.xtx[0, 1] - float(exactly[0][0][1])) < 1e-13 * merged.diag[0]
        assert np.allclose(merged.diag[:2], [float(exactly[0][j][j]) for j in (0, 1)], rtol=1e-13)


@pytest.mark.parametrize("weighted", [False, True])
def test_a_drifting_mean_loses_no_digits(weighted):
    # Each block has another mean; and the first rows weigh next to nothing and lie far away.
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 3)) + np.linspace(0, 1e6, 400)[:, None] ** [0, 1, 2]
    y = X[:, 1] + rng.normal(size=400)
    w = None
    if weighted:
        X[:8] += 1e7
        w = np.where(np.arange(400) < 8, 1e-14, 1.0)
    blocks = pieces_of(X, y, w, range(8, 400, 8))
    for moments in (Moments.from_data(X, y, w), Moments.from_batches(blocks)):
        assert_moments(moments, exact(X, y, w), rtol=1e-11)


def test_a_constant_column_has_exactly_zero_squares():
    rng = np.random.default_rng(0)
    X = np.column_stack([np.full(5000, 0.1), rng.normal(size=5000)])
    w = rng.uniform(size=5000)
    for table in (X, np.asfortranarray(X), sp.csr_array(X)):
        for folds in (np.zeros(5000, int), rng.integers(0, 7, 5000)):
            merged = Moments.merge(Moments.from_folds(table, X[:, 1], folds, w))
            assert merged.diag[0] == 0.0 and not merged.xtx[0].any() and merged.xty[0] == 0.0
            assert merged.mean_x[0] == 0.1


def test_leave_one_out_keeps_the_digits_that_subtraction_loses():
    # Nearly all variation of the column lies in one fold: total minus fold would leave noise.
    X = np.random.default_rng(0).normal(size=(60, 1))
    X[:20] *= 1e8
    train = leave_one_out(Moments.from_folds(X, X[:, 0], np.repeat([0, 1, 2], 20)))[0]
    assert_moments(train, exact(X[20:], X[20:, 0]))


# -- thin and dense ----------------------------------------------------------------------------


def test_merged_thin_moments_turn_dense_when_rows_are_no_longer_fewer():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(40, 10)), rng.normal(size=40)
    pieces = [Moments.from_data(*piece) for piece in pieces_of(X, y, None, range(3, 40, 3))]
    *forms, total = accumulate(pieces)
    assert [each.is_thin for each in forms[:2]] == [True, True] and not total.is_thin
    assert_moments(total, exact(X, y))
    with pytest.raises(AttributeError, match="compress"):
        _ = total.rows


def in_folds(X, y):
    return Moments.from_folds(X, y, np.arange(len(y)) // (len(y) // 4 + 1))


def mixed(X):
    return pd.DataFrame(X).rename(columns="x{}".format).astype({"x0": "f4"})


@pytest.mark.parametrize("call", [Moments.from_data, in_folds])
@pytest.mark.parametrize(
    "convert",
    [
        *(np.asarray, np.asfortranarray, lambda X: X.astype("f4")),
        *(mixed, lambda X: pl.from_pandas(mixed(X))),
    ],
)
def test_no_copy_larger_than_a_block_is_made(convert, call):
    X = np.random.default_rng(0).normal(size=(400_000, 20))
    table, y = convert(X), X[:, 0].copy()
    assert peak_of(lambda: call(table, y))[1] < X.nbytes / 2


def rss_of_ones(X, y):
    moments = Moments.from_data(X, y)
    assert moments.is_thin and moments.rss(np.ones(X.shape[1])) > 0


def use_of_a_fold(X, y):
    train = leave_one_out(in_folds(X, y))[1]
    train.rss(np.ones(X.shape[1]))
    train.compress()


def sparse(*shape, density):
    return sp.random_array(shape, density=density, rng=np.random.default_rng(0)).tocsr()


@pytest.mark.parametrize(
    ("X", "call", "most"),
    [
        (sparse(50_000, 300, density=0.002), Moments.from_data, 30_000_000),
        (sparse(50_000, 300, density=0.08), Moments.from_data, 30_000_000),
        (sparse(300, 50_000, density=0.002).tocsc(), rss_of_ones, 30_000_000),
        (np.random.default_rng(0).normal(size=(20, 20_000)), use_of_a_fold, 64_000_000),
    ],
)
def test_a_sparse_matrix_is_not_made_dense_and_a_thin_one_not_square(X, call, most):
    y = np.random.default_rng(0).normal(size=X.shape[0])
    assert peak_of(lambda: call(X, y))[1] < most


@pytest.mark.parametrize("n", [60, 3], ids=["dense", "thin"])
@pytest.mark.parametrize("convert", [np.asarray, sp.csr_array])
def test_one_of_several_targets_is_as_if_it_were_alone(n, convert):
    rng = np.random.default_rng(0)
    X, Y, w = rng.normal(size=(n, 5)), rng.normal(size=(n, 3)), rng.uniform(1, 2, n)
    moments = Moments.from_data(convert(X), Y, w, feature_names=list("abcde"))
    coef = rng.normal(size=5)
    for t, y in enumerate(Y.T):
        one = moments.target(t)
        assert (one.is_thin, one.n_samples, one.feature_names) == (n < 5, n, tuple("abcde"))
        assert isinstance(one.mean_y, float)
        assert_moments(one, exact(X, y, w))
        residual = y - X @ coef
        want = w @ (residual - np.average(residual, weights=w)) ** 2
        assert one.rss(coef) == pytest.approx(want, rel=1e-12)
        A, b = one.compress()
        assert b.ndim == 1 and np.allclose(A.T @ b, one.xty, rtol=1e-12, atol=1e-12)
    # Each vector of coefficients is for its target, and a single one for all.
    B, c = rng.normal(size=(5, 3)), np.array([1.0, 2.0, 3.0])
    for coefs, predicted in ((B, X @ B), (B[:, 0], X @ B[:, :1])):
        assert np.allclose(moments.rss(coefs, c), w @ (Y - predicted - c) ** 2, rtol=1e-12)


# -- rss and compress --------------------------------------------------------------------------


@given(tables(max_columns=40), st.data())
def test_rss_is_the_residual_sum_of_squares_of_the_rows(table, data):
    X, y = table
    n, m = X.shape
    w = data.draw(hnp.arrays(np.float64, n, elements=st.sampled_from([0.25, 1.0, 2.0])))
    B = data.draw(hnp.arrays(np.int64, (m, 2), elements=st.integers(-8, 8))) / 8.0
    B[data.draw(st.integers(0, m)) :] = 0.0
    c, form = np.array([1.5, -2.0]), data.draw(st.sampled_from([np.asarray, sp.csr_array]))
    moments = Moments.merge(Moments.from_data(form(X[i::3]), y[i::3], w[i::3]) for i in range(3))
    R = np.asarray(y[:, None] - X @ B, np.longdouble)
    best = w @ R / w.sum()
    scale = 1e-12 * (w @ (y**2)[:, None] + w @ (np.abs(X) @ np.abs(B)) ** 2 + w.sum())
    assert np.all(np.abs(moments.rss(B) - w @ (R - best) ** 2) <= scale)
    assert np.all(np.abs(moments.rss(B, c) - w @ (R - c) ** 2) <= scale)
    one = moments.rss(B[:, 0], -3.0)
    assert isinstance(one, float) and abs(one - w @ (R[:, 0] + 3.0) ** 2) <= scale[0] * 10


@given(tables(max_rows=40), st.booleans(), st.data())
def test_compressed_rows_have_the_same_moments(table, dependent, data):
    X, y = table
    if dependent:  # a copy, a sum and a constant: S is singular
        X = np.column_stack([X, X[:, 0], X.sum(axis=1), np.full(len(y), 0.1)])
    Y = np.column_stack([y, np.arange(len(y))]) if data.draw(st.booleans()) else y
    moments = Moments.from_data(X, Y)
    A, b = moments.compress()
    assert len(A) <= X.shape[1] + 1
    length = np.sqrt(moments.diag)
    length_y = np.sqrt(moments.yty)
    # A dropped direction of relative size m eps takes at most its root with it from X'y.
    assert np.all(np.abs(A.T @ A - moments.xtx) <= 1e-13 * np.multiply.outer(length, length))
    assert np.all(np.abs(A.T @ b - moments.xty) <= 1e-7 * np.multiply.outer(length, length_y))
    assert np.allclose((b * b).sum(axis=0), moments.yty, rtol=1e-7)


def test_compressed_rows_solve_the_same_problem():
    rng = np.random.default_rng(0)
    scale = [1e-150, 1.0, 1e6, 1e3]
    X, y = rng.normal(size=(300, 4)) * scale + [0, 2, 2, 2], rng.normal(size=300)
    A, b = Moments.from_data(np.column_stack([X, X[:, 1]]), y).compress()
    assert A.shape == (5, 5)
    want = np.linalg.lstsq((X - X.mean(axis=0)) / scale, y - y.mean())[0]
    assert np.allclose(np.linalg.lstsq(A[:, :4] / scale, b)[0], want, rtol=1e-9)


# -- what comes in -----------------------------------------------------------------------------


def arrow(X):
    return pa.table({str(j): X[:, j] for j in range(4)})


@pytest.mark.parametrize(
    "convert",
    [
        np.asfortranarray,
        *(lambda X, t=t: X.astype(t) for t in ("f4", "f2", "i1", np.longdouble, object, str)),
        lambda X: np.broadcast_to(X, X.shape),  # read-only
        lambda X: np.repeat(X, 2, axis=1)[::-1, ::2][::-1],
        np.ndarray.tolist,
        *(sp.csr_array, sp.csc_matrix, sp.coo_array),
        lambda X: sp.coo_array(
            (np.tile(X.ravel() / 2, 2), np.tile(np.indices(X.shape).reshape(2, -1), 2)),
            shape=X.shape,
        ),
        pd.DataFrame,
        lambda X: pd.DataFrame(X).astype({0: "Int64", 1: "Float32", 2: float}),
        lambda X: pd.DataFrame(X).astype({0: "int64[pyarrow]", 1: str}),
        lambda X: pd.DataFrame(X).map(Decimal),
        pl.DataFrame,
        lambda X: pl.DataFrame(X).cast({"column_0": pl.Float32, "column_1": pl.Decimal(10, 2)}),
        arrow,
        lambda X: pa.concat_tables([arrow(X[:7]), arrow(X[7:])]),
        lambda X: arrow(X).to_batches()[0],
    ],
)
def test_every_kind_of_table_gives_the_same_moments(convert):
    table = convert(ROWS.copy())
    for weight in (WEIGHT, None):
        want = exact(ROWS, TARGET, weight)
        assert_moments(Moments.from_data(table, TARGET, weight), want)
        folds = Moments.from_folds(table, TARGET, np.arange(60) % 7, weight)
        assert_moments(Moments.merge(folds), want)


@pytest.mark.parametrize(
    "convert", [lambda X: X, lambda X: pd.DataFrame(X).astype({0: float}), pl.DataFrame]
)
def test_booleans_are_numbers(convert):
    flags = ROWS > 0
    assert_moments(Moments.from_data(convert(flags), TARGET > 3), exact(flags, TARGET > 3))


@pytest.mark.parametrize(
    "convert", [list, pd.Series, pl.Series, pa.array, lambda y: pa.chunked_array([y])]
)
def test_every_kind_of_target_and_weight(convert):
    moments = Moments.from_data(ROWS, convert(TARGET), convert(WEIGHT))
    assert_moments(moments, exact(ROWS, TARGET, WEIGHT))


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame, pa.table])
def test_frames_keep_their_names(frame):
    moments = Moments.from_data(frame({"age": ROWS[:, 0], "income": ROWS[:, 1]}), TARGET)
    assert moments.feature_names == (moments + moments).feature_names == ("age", "income")
    targets = Moments.from_data(ROWS, frame({"u": TARGET, "v": TARGET + 1}))
    assert_moments(targets, exact(ROWS, np.column_stack([TARGET, TARGET + 1])))
    assert Moments.from_data(pd.DataFrame(ROWS), TARGET).feature_names is None
    assert named(list("abcd")).feature_names == tuple("abcd")


def test_batches_are_pieces():
    parts = list(pieces_of(ROWS, TARGET, WEIGHT, [1, 1, 3, 30]))
    want = exact(ROWS, TARGET, WEIGHT)
    assert_moments(Moments.from_batches(iter(parts)), want)
    assert_moments(Moments.from_batches((X, y) for X, y, _ in parts), exact(ROWS, TARGET))
    nothing = (ROWS, TARGET, np.zeros(60))
    assert_moments(Moments.from_batches([nothing, (ROWS, TARGET, WEIGHT)]), want)
    wide = np.random.default_rng(0).normal(size=(60, 25))
    single = Moments.from_batches(pieces_of(wide, TARGET, None, range(1, 60)))
    assert not single.is_thin
    assert_moments(single, exact(wide, TARGET))


def test_large_data_are_summed_in_threads_and_give_the_same():
    rng = np.random.default_rng(0)
    X, y = rng.random(size=(1_100_000, 8), dtype=np.float32), rng.normal(size=1_100_000)
    with blas().limit(limits=1):
        alone = Moments.from_data(X, y)
    pool = set()
    threading.setprofile(lambda *_: pool.add(threading.current_thread()))
    together = Moments.from_data(X, y)
    threading.setprofile(None)
    assert_same(alone, together)
    folds = Moments.from_folds(X, y, rng.integers(0, 3, len(y)))
    assert_moments(Moments.merge(folds), as_dict(alone), rtol=1e-13)
    before = [each["num_threads"] for each in blas().info()]
    assert len(pool) > 1 or max(before) == 1
    with ThreadPoolExecutor(6) as threads:
        list(threads.map(partial(Moments.from_data, X), [y] * 6))
    assert [each["num_threads"] for each in blas().info()] == before


@pytest.mark.parametrize("sort", [True, False], ids=["contiguous", "scattered"])
def test_threads_answer_bad_values_as_one_thread_does(sort):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(90_000, 3)), rng.normal(size=90_000)
    ids = np.arange(90_000) % 10
    ids = np.sort(ids) if sort else ids
    X[:, 1] *= 1e200
    with blas().limit(limits=2), pytest.raises(ValueError, match="Column 1 reaches"):
        Moments.from_folds(X, y, ids)


# -- what is refused ---------------------------------------------------------------------------


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("shape", [(200, 3), (5, 9)], ids=["dense", "thin"])
@pytest.mark.parametrize(
    "convert",
    [
        *(np.asarray, np.asfortranarray, sp.csr_array),
        lambda X: sp.csr_array(np.where(np.abs(X) < 1.5, 0.0, X)),
    ],
)
def test_a_value_that_is_not_finite_is_named(value, shape, convert):
    X = np.random.default_rng(0).normal(size=shape)
    y = X[:, :2].copy()
    X[3, 2] = value
    for sums in (Moments.from_data, lambda X, y: Moments.from_folds(X, y, np.arange(len(y)) % 2)):
        with pytest.raises(ValueError, match=rf"Column 2 has the value {value} in row 3"):
            sums(convert(X), y)
    X[3, 2], y[1, 1] = 0.0, value
    with pytest.raises(ValueError, match=rf"Column 1 of y has the value {value} in row 1"):
        Moments.from_data(convert(X), y)


HOLED = np.where(np.arange(240).reshape(60, 4) == 9, np.nan, ROWS)
TWO = [[1.0], [2.0]]
TWICE = pd.DataFrame(ROWS, columns=list("abca"))
REFUSED_DATA = [
    (([[1.0], [2.0, 3.0]], [1.0, 2.0]), "not a table"),
    ((["a", "b"], [1.0, 2.0]), "^X holds values of type"),
    ((np.array([[1, "u"], [2, "v"]], dtype=object), [1.0, 2.0]), "Column 1 holds values of type"),
    ((sp.csr_array(np.ones((2, 2), complex)), [1.0, 2.0]), "Column 0 holds values of type"),
    ((np.zeros(2, dtype=[("a", float)]), [1.0, 2.0]), "^X holds values of type"),
    ((TWO, np.ones((2, 0))), "y has no columns"),
    ((TWO, sp.csr_array(TWO)), "y is sparse"),
    ((pl.LazyFrame({"a": [1.0, 2.0]}), [1.0, 2.0]), "collect"),
    ((type("DataFrame", (), {"__module__": "pyspark.sql"})(), [1.0]), "Spark frame; read_moments"),
    ((pd.DataFrame(ROWS, columns=[0, "b", "c", "d"]), TARGET), "column 1 is 'b'"),
    ((TWICE, TARGET), "more than one column 'a'; rename"),
    *(
        (given, f"{who}.*{words}.*rescale")
        for n in (3, 60)
        for scale, words in ((1e200, "too large"), (1e308, "too large"), (1e-170, "varies by too"))
        for given, who in (
            ((ROWS[:n] / 1e3 * [1, 1, scale, 1], TARGET[:n]), "Column 2"),
            ((ROWS[:n], TARGET[:n] / 1e3 * scale), "y"),
        )
    ),
]


def named(names, n=60):
    return Moments.from_data(ROWS[:n], TARGET[:n], feature_names=names)


REFUSED = [
    *((partial(Moments.from_data, *given), words) for given, words in REFUSED_DATA),
    *(
        (partial(Moments.from_batches, batches), words)
        for batches, words in (
            ([(ROWS, TARGET), (HOLED, TARGET)], "Batch 1: Column 1 has the value nan in row 2"),
            ([(ROWS, TARGET), (ROWS[:, :3], TARGET)], "Batch 1: Moments of 4 and of 3 columns"),
            ([(ROWS, TARGET), (ROWS * [1e200, 1, 1, 1], TARGET)], "Batch 1: Column 0 reaches"),
            ([(TWICE, TARGET)], "more than one column 'a'"),
            ([], "no batches"),
        )
    ),
    (lambda: named(["a"]), "4 strings"),
    (lambda: named(list("abca")), "more than one column 'a'; rename"),
    (lambda: named(list("abca"), n=3), "more than one column 'a'; rename"),
    (
        lambda: Moments.from_batches([(ROWS, TARGET)], feature_names=list("abca")),
        "more than one column 'a'",
    ),
    *(
        (partial(Moments.from_folds, ROWS, TARGET, folds), words)
        for folds, words in (
            ([np.arange(30), np.arange(29, 60)], "Row 29 is in the folds more than once"),
            ([np.arange(30), [*range(30, 60), 59]], "Row 59 is in the folds more than once"),
            ([np.arange(30), np.arange(31, 60)], "Row 30 is in no fold"),
            ([np.arange(30), np.arange(31, 61)], "outside 0 to 59"),
            (np.arange(60) - 1, "negative fold number"),
            (np.arange(5), "each of the 60 rows"),
            (np.arange(60) / 2, "whole number"),
        )
    ),
    *(
        (partial(one.__add__, other), words)
        for one, other, words in (
            (named(list("pqrs")), named(list("pqRS")), "column 2 is 'r' in one and 'R' in the ot"),
            (named(list("pqrs")), PLAIN, "with and without column names"),
            (PLAIN, Moments.from_data(ROWS[:, :3], TARGET), "4 and of 3 columns"),
            (PLAIN, Moments.from_data(ROWS, TARGET[:, None]), "targets"),
        )
    ),
    (lambda: Moments.merge([]), "no moments"),
    *((partial(lambda other: other + PLAIN, other), "Moments") for other in (1, 0.5, "0")),
    (lambda: PLAIN + 1, "Moments"),
    (lambda: Moments.merge(Moments.from_data([[v]], [1.0]) for v in (1e200, -1e200)), "column 0 "),
    (Moments, "from_data"),
    (lambda: leave_one_out([PLAIN]), "at least two folds"),
    (lambda: Moments.from_data(ROWS, ROWS[:, :2]).rss(np.ones((4, 3))), "3 columns .* 2 targets"),
    (lambda: PLAIN.rss(np.ones(3)), "4 columns"),
]


@pytest.mark.parametrize(("call", "words"), REFUSED)
def test_what_has_no_moments_is_refused(call, words):
    with pytest.raises((TypeError, ValueError), match=words):
        call()


@pytest.mark.parametrize("n", [4, 50])
@pytest.mark.parametrize("scale", [1e-150, 1e-100, 1e100, 1e150])
def test_huge_and_tiny_values_keep_their_digits(n, scale):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(n, 6)), rng.normal(size=n)
    small, large = Moments.from_data(X, y), Moments.from_data(X * scale, y)
    assert np.allclose(large.xtx / scale / scale, small.xtx, rtol=1e-9, atol=1e-9)
    assert np.allclose(large.xty / scale, small.xty, rtol=1e-9, atol=1e-9)


def test_a_column_constant_within_folds_only_is_fine():
    X, y = np.repeat([[1.0], [2.0], [4.0]], 5, axis=0), np.arange(15.0)
    folds = Moments.from_folds(X, y, np.repeat([0, 1, 2], 5))
    assert [fold.diag[0] for fold in folds] == [0.0, 0.0, 0.0]
    assert_moments(Moments.merge(folds), exact(X, y))


@pytest.mark.parametrize("n", [60, 3], ids=["dense", "thin"])
@pytest.mark.parametrize("name", ["mean_x", "xtx", "xty", "diag"])
def test_the_arrays_cannot_be_written_to(n, name):
    with pytest.raises(ValueError, match="read-only"):
        getattr(Moments.from_data(ROWS[:n], TARGET[:n]), name)[0] = 1.0


# -- files -------------------------------------------------------------------------------------


def dependent(seed):
    """Columns of all sizes that depend on each other, and the first of them as a target."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(300, 8)) * 10.0 ** rng.uniform(-100, 100, 8)
    X = np.column_stack([X, X[:, 0], -3 * X[:, 1], np.full(300, 0.1), X[:, 2] * (1 + 1e-9)])
    X = np.column_stack([X, np.eye(5)[np.arange(300) % 5]]) + rng.choice([0, 1e9])
    y = (X[:, 3] + X[:, 9], np.ones(300), rng.normal(size=300))[seed % 3]
    return Moments.merge(Moments.from_folds(X, y, np.arange(300) // 60))


@cache
def examples():
    X, y, Y = ROWS, TARGET, np.column_stack([TARGET, TARGET**2])
    huge = X * [1e-130, 1e-60, 1.0, 1e140], y * 1e-135
    return {
        "dense": Moments.from_data(X, y, WEIGHT, feature_names=["p", "ä", "r r", ""]),
        "far": Moments.from_data(X / 7 + 1e12, y / 7 - 1e12),
        "thin": Moments.from_data(X[:3], y[:3]),
        "targets": Moments.from_data(X, Y),
        "merged thin": Moments.from_data(X[:2], Y[:2]) + Moments.from_data(X[2:3], Y[2:3]),
        "sparse thin": Moments.from_data(sp.csr_array(X[:3]), y[:3]),
        "empty": Moments.from_data(X[:0], y[:0]),
        "huge": Moments.from_data(*huge),
        "huge thin": Moments.from_data(*(each[:3] for each in huge)),
        **{f"dependent {seed}": dependent(seed) for seed in range(12)},
    }


@pytest.fixture
def path(tmp_path):
    """A file of dense moments."""
    examples()["dense"].save(tmp_path / "site.npz")
    return tmp_path / "site.npz"


@pytest.mark.parametrize("kind", examples())
def test_a_saved_file_gives_the_same_moments(tmp_path, kind):
    moments = examples()[kind]
    path = tmp_path / "a file.of moments"
    moments.save(path)
    moments.save(path)
    assert [file.name for file in tmp_path.iterdir()] == ["a file.of moments"]
    for copy in (Moments.load(str(path)), pickle.loads(pickle.dumps(moments))):
        assert_same(copy, moments)
        # The digits of the means that a double has no room for are there too.
        assert_same(copy + copy, moments + moments)
    rewritten(path, version=np.array(1), runs=None)
    assert_same(Moments.load(path), moments)
    assert Moments.load(path).runs == ()


def rewritten(path, save=np.savez, **changes):
    """The file's arrays with some replaced, or left out where the change is None."""
    with np.load(path) as archive:
        arrays = {**archive, **changes}
    with open(path, "wb") as file:
        save(file, **{name: array for name, array in arrays.items() if array is not None})


NO_TARGETS = {"xty": np.ones((4, 0)), "yty": np.ones(0), "mean_y": np.ones(0)}
NO_ROWS_HAVE = "no rows have such sums"


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"version": np.array(3)}, "format version 3, newer than 2.*update"),
        ({"version": np.array(0)}, "damaged"),
        ({"format": np.array("something else")}, "does not hold moments"),
        ({"format": None}, "does not hold moments"),
        ({"yty": None}, "damaged"),
        ({"xtx": np.ones((3, 3))}, r"xtx has type float64 and shape \(3, 3\)"),
        ({"xtx": np.ones((4, 4), np.float32)}, "xtx has type float32"),
        ({"xtx": np.full((4, 4), np.nan)}, "not finite"),
        ({"xtx": np.triu(np.ones((4, 4)))}, "not symmetric"),
        ({"yty": -np.ones(1)}, "negative"),
        ({"diag": np.ones(4)}, "diagonal"),
        ({"n_samples": np.array(0)}, "contradict"),
        ({"feature_names": np.array(["a"])}, "1 names for 4 columns"),
        ({"feature_names": np.array(["a", "b", "a", "c"])}, "two of its columns are called 'a'"),
        ({"target_names": np.array(["a", "b"])}, "2 names for 1 targets"),
        ({"n_samples": np.array(3.7)}, "n_samples is 3.7"),
        ({"n_samples": np.array([20, 20])}, "n_samples"),
        ({"n_samples": np.array(1)}, "squares but 1 rows"),
        ({"version": np.array(1.5)}, "version is 1.5"),
        (NO_TARGETS, "0 targets"),
        ({**NO_TARGETS, "low_y": np.ones(0), "flat_y": np.array(False)}, "0 targets"),
        ({"xty": np.ones((4, 2)), "yty": np.ones(2), "mean_y": np.ones(2)}, "2 targets"),
        ({"low_x": np.ones(4)}, "low part"),
        ({"low_y": None}, "low_y"),
        ({"xtx": np.ones((4, 4)) - 3 * np.eye(4), "diag": -2 * np.ones(4)}, "negative"),
        ({"xtx": 3 * np.eye(4) - 2, "diag": np.ones(4)}, NO_ROWS_HAVE),
        ({"xtx": 1e-6 * np.eye(4), "diag": np.full(4, 1e-6)}, NO_ROWS_HAVE),
        ({"yty": np.zeros(1)}, NO_ROWS_HAVE),
        ({"yty": np.full(1, 1e-3)}, NO_ROWS_HAVE),
        ({"runs": None}, "damaged"),
        *(({"runs": np.array(text)}, "damaged") for text in ("", "{}x", "[1]", "[[1, 2, 3, [0]]]")),
        *(({"runs": np.array(f'[["a", "b", 2, {k}]]')}, "damaged") for k in ([], [2])),
        *(
            ({name: np.ones(shape)}, "not those of its rows")
            for name, shape in (("xty", (4, 1)), ("yty", 1), ("diag", 4), ("rows", (3, 4)))
        ),
    ],
)
def test_a_file_with_other_contents_is_refused(path, changes, message):
    examples()["thin" if "its rows" in message else "dense"].save(path)
    rewritten(path, **changes)
    with pytest.raises(MomentsFileError, match=rf"site\.npz.*{message}"):
        Moments.load(path)


@pytest.mark.parametrize("kind", ["compressed", "larger than itself"])
def test_an_archive_that_unpacks_to_more_than_itself_is_refused_unread(path, kind, monkeypatch):
    if kind == "compressed":
        rewritten(path, np.savez_compressed, more=np.zeros(10**6))
    else:  # the same claim about a member that is stored as it is
        whole = bytearray(path.read_bytes())
        entry = whole.rindex(b"PK\x01\x02")
        whole[entry + 24 : entry + 28] = (2**31).to_bytes(4, "little")
        path.write_bytes(whole)

    def never(*args, **kwargs):
        raise AssertionError("the contents were read")

    monkeypatch.setattr(zipfile.ZipFile, "open", never)
    with pytest.raises(MomentsFileError, match=rf"site\.npz.*{kind}"):
        Moments.load(path)


class Trap:
    sprung = False

    def __reduce__(self):
        return (setattr, (Trap, "sprung", True))


def test_nothing_in_a_file_is_executed(path):
    rewritten(path, xtx=np.array([Trap()], dtype=object))
    with pytest.raises(MomentsFileError, match="site"):
        Moments.load(path)
    path.write_bytes(pickle.dumps(Trap()))
    with pytest.raises(MomentsFileError, match="not a moments file"):
        Moments.load(path)
    assert not Trap.sprung
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("readme.txt", "hello")
    with pytest.raises(MomentsFileError, match="does not hold moments"):
        Moments.load(path)
    with pytest.raises(FileNotFoundError):
        Moments.load(path.parent / "absent.npz")


def test_names_of_targets_travel_with_the_moments(path):
    table = pa.table(dict(zip("abyz", np.arange(32.0).reshape(4, 8) ** 2, strict=True)))
    one, other = (read_moments(table, target, features=["a", "b"]) for target in "yz")
    one.save(path)
    for moments in (one, Moments.load(path), *read_moments(table, "y", folds=2)):
        assert moments.target_names == ("y",)
    nameless = Moments.from_data(np.ones((2, 2)), [1.0, 2.0], feature_names=["a", "b"])
    assert nameless.target_names is None
    assert Moments.merge([nameless, one]).target_names == ("y",)
    with pytest.raises(ValueError, match="different targets, 'y' and 'z', cannot be merged"):
        Moments.merge([one, nameless, other])


@pytest.mark.parametrize("density", [0.002, 0.08])
def test_a_pandas_frame_of_sparse_columns_is_a_sparse_matrix_with_names(density):
    X, y = sparse(3000, 40, density=density), np.random.default_rng(0).normal(size=3000)
    names = [f"word {j}" for j in range(40)]
    frame = pd.DataFrame.sparse.from_spmatrix(X, columns=names)
    moments, peak = peak_of(lambda: Moments.from_data(frame, y))
    assert peak < 3000 * 40 * 8 or density > 0.05
    for named in (moments, sparsestep_path(frame, y, alphas=3)):
        assert named.feature_names == tuple(names)
    # Columns of which some are dense, or with another value left out, are read one by one.
    some = frame.assign(**{names[3]: frame[names[3]].sparse.to_dense()})
    for table in (X, frame, some, frame.astype(pd.SparseDtype(float, np.nan))):
        assert_moments(Moments.from_data(table, y), exact(X.toarray(), y))


def test_thin_folds_of_sparse_rows_merge_without_all_of_them_dense():
    X = sp.random(4000, 500, density=0.01, format="csr", random_state=0)
    folds = Moments.from_folds(X, np.arange(4000.0) % 7, np.arange(4000) // 400)
    whole, peak = peak_of(lambda: Moments.merge(folds).xtx)
    assert np.isclose(whole.trace(), 3999 * X.toarray().var(axis=0, ddof=1).sum(), rtol=1e-12)
    assert peak < 0.75 * X.shape[0] * X.shape[1] * 8
