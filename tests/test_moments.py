import pickle
import threading
import tracemalloc
import zipfile
from fractions import Fraction
from itertools import pairwise
from operator import mul

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse as sp
from hypothesis import assume, given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from source_data import assert_moments, exact
from sparsestep import Moments, read_moments, sparsestep_path
from sparsestep.errors import MomentsFileError
from sparsestep.moments.moments import leave_one_out
from sparsestep.threads import blas


def peak_of(call):
    """What a call returns, and the most memory that it took at a time."""
    tracemalloc.start()
    try:
        return call(), tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def as_dict(moments):
    return {name: np.asarray(getattr(moments, name), np.longdouble) for name in exact([[0]], [0])}


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


@given(tables())
def test_sums_agree_with_their_definition(table):
    moments = Moments.from_data(*table)
    assert moments.is_thin == (table[0].shape[0] < table[0].shape[1])
    assert_moments(moments, exact(*table))


@given(tables(targets=3))
def test_several_targets_share_one_pass(table):
    X, Y = table
    moments = Moments.from_data(X, Y)
    assert moments.xty.shape == (X.shape[1], 3) and moments.yty.shape == moments.mean_y.shape == (
        3,
    )
    assert_moments(moments, exact(X, Y))


@given(tables(), st.data())
def test_any_split_merged_in_any_order_gives_the_whole(table, data):
    X, y = table
    ids = data.draw(hnp.arrays(np.int64, len(y), elements=st.integers(0, 4)))
    pieces = [Moments.from_data(X[ids == i], y[ids == i]) for i in range(5)]
    order = data.draw(st.permutations(range(5)))
    merged = Moments.merge(pieces[i] for i in order)
    assert_moments(merged, exact(X, y))
    nested = pieces[order[0]] + ((pieces[order[1]] + pieces[order[2]]) + pieces[order[3]])
    assert_moments(nested + pieces[order[4]], exact(X, y))


@given(tables(), st.data())
def test_weights_are_repeated_rows_and_zero_is_no_row(table, data):
    X, y = table
    w = data.draw(hnp.arrays(np.int64, len(y), elements=st.integers(0, 3)))
    assume(w.any())
    moments = Moments.from_data(X, y, w)
    repeated = exact(np.repeat(X, w, axis=0), np.repeat(y, w))
    assert_moments(moments, {**repeated, "n_samples": np.count_nonzero(w)})
    hidden = X.copy()
    hidden[w == 0] = np.nan
    assert_moments(Moments.from_data(hidden, np.where(w == 0, np.inf, y), w), as_dict(moments))


@given(tables(max_rows=12), st.integers(0, 2))
def test_an_empty_piece_changes_nothing(table, where):
    X, y = table
    whole, empty = Moments.from_data(X, y), Moments.from_data(X[:0], y[:0])
    assert empty.n_samples == 0 and not empty.xtx.any()
    merged = Moments.merge([[empty, whole], [whole, empty], [empty, whole, empty]][where])
    for name in ("mean_x", "mean_y", "xtx", "xty", "yty", "n_samples", "weight_sum"):
        assert np.array_equal(getattr(merged, name), getattr(whole, name))


def test_moments_are_summed_like_numbers():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(30, 2)), rng.normal(size=30)
    pieces = [Moments.from_data(X[k::3], y[k::3]) for k in range(3)]
    assert_moments(sum(pieces), exact(X, y))
    assert_moments(pieces[0] + pieces[1] + pieces[2], exact(X, y))
    for other in (1, 0.5, "0"):
        with pytest.raises(TypeError, match=r"unsupported operand|can only concatenate"):
            other + pieces[0]


def test_merging_leaves_the_pieces_as_they_were():
    rng = np.random.default_rng(0)
    pieces = [Moments.from_data(rng.normal(size=(9, 3)) + i, rng.normal(size=9)) for i in range(4)]
    empty = Moments.from_data(np.empty((0, 3)), np.empty(0))
    before = [piece.xtx.copy() for piece in pieces]
    Moments.merge([empty, *pieces, empty])
    leave_one_out([pieces[0], empty, *pieces[1:], empty])
    leave_one_out([empty, *pieces])
    for piece, xtx in zip(pieces, before, strict=True):
        assert np.array_equal(piece.xtx, xtx)


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
def test_merged_pieces_keep_the_digits_of_the_whole(offset, seed, data):
    rng = np.random.default_rng(seed)
    X, y = np.sort(rng.normal(size=(60, 3)), axis=0) + offset, np.sort(rng.normal(size=60)) - offset
    w = rng.choice([0.3, 1.0, 7.0], 60) if data.draw(st.booleans()) else None
    # Also pieces of one or two rows, which are thin.
    edges = sorted(data.draw(st.sets(st.integers(1, 59), max_size=25)))
    pieces = [Moments.from_data(*piece) for piece in pieces_of(X, y, w, edges)]
    order = data.draw(st.permutations(range(len(pieces))))
    exactly = in_fractions(X, y, w)
    assert error(Moments.from_data(X, y, w), *exactly) < 4e-15
    assert error(Moments.merge(pieces[i] for i in order), *exactly) < 4e-15
    assert error(Moments.from_batches(pieces_of(X, y, w, edges)), *exactly) < 4e-15


def in_blocks_of_8(X, y, w=None):
    return Moments.from_batches(pieces_of(X, y, w, range(8, len(y), 8)))


@pytest.mark.parametrize("offset", [1e6, 1e9, 1e12])
def test_the_digits_survive_files_folds_and_a_drifting_mean(offset, tmp_path):
    rng = np.random.default_rng(0)
    X, y = np.sort(rng.normal(size=(400, 2)), axis=0) + offset, rng.normal(size=400) - offset
    exactly = in_fractions(X, y)
    for moments in (Moments.from_data(X, y), in_blocks_of_8(X, y)):
        assert error(moments, *exactly) < 4e-15
    files = [tmp_path / str(k) for k in range(10)]
    for file, piece in zip(files, pieces_of(X, y, None, range(40, 400, 40)), strict=True):
        Moments.from_data(*piece).save(file)
    assert error(Moments.merge(map(Moments.load, files)), *exactly) < 4e-15
    folds = Moments.from_folds(X, y, np.arange(400) // 40)
    train = leave_one_out(folds)[3]
    rest = np.arange(400) // 40 != 3
    assert error(train, *in_fractions(X[rest], y[rest])) < 4e-15


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
    for moments in (Moments.from_data(X, y, w), in_blocks_of_8(X, y, w)):
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


@given(tables(max_rows=20), st.integers(2, 5))
def test_leaving_a_fold_out_is_merging_the_others(table, count):
    X, y = table
    assume(len(y) >= count)
    ids = np.arange(len(y)) % count
    trains = leave_one_out(Moments.from_folds(X, y, ids))
    assert len(trains) == count
    for i, train in enumerate(trains):
        assert_moments(train, exact(X[ids != i], y[ids != i]))


@pytest.mark.parametrize(
    "empty", [[0], [1], [2], [3], [4], [0, 1], [0, 4], [2, 3], [3, 4], [0, 1, 2, 3]]
)
def test_leaving_a_fold_out_with_empty_folds_among_them(empty):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(50, 3)), rng.normal(size=50)
    used = [i for i in range(5) if i not in empty]
    ids = np.array(used)[np.arange(50) % len(used)]
    folds = [Moments.from_data(X[ids == i], y[ids == i]) for i in range(5)]
    before = [fold.xtx.copy() for fold in folds]
    trains = leave_one_out(folds)
    for fold, xtx in zip(folds, before, strict=True):
        assert np.array_equal(fold.xtx, xtx)
    for i, train in enumerate(trains):
        assert train.n_samples == np.count_nonzero(ids != i)
        if train.n_samples:
            assert_moments(train, exact(X[ids != i], y[ids != i]))


def test_leave_one_out_keeps_the_digits_that_subtraction_loses():
    # Nearly all variation of the column lies in one fold: total minus fold would leave noise.
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 1))
    X[:20] *= 1e8
    folds = Moments.from_folds(X, X[:, 0], np.repeat([0, 1, 2], 20))
    train = leave_one_out(folds)[0]
    want = exact(X[20:], X[20:, 0])
    assert abs(train.xtx[0, 0] / want["xtx"][0, 0] - 1) < 1e-12
    total = Moments.merge(folds).xtx - folds[0].xtx
    assert abs(total[0, 0] / want["xtx"][0, 0] - 1) > 1e-3


def test_leaving_one_of_one_fold_out_is_refused():
    with pytest.raises(ValueError, match="at least two folds"):
        leave_one_out([Moments.from_data([[1.0]], [1.0])])


# -- thin and dense ----------------------------------------------------------------------------


@given(tables(max_rows=5, max_columns=12), st.data())
def test_thin_and_dense_forms_answer_alike(table, data):
    X, y = table
    n, m = X.shape
    assume(n < m)
    w = data.draw(hnp.arrays(np.float64, n, elements=st.sampled_from([0.5, 1.0, 3.0])))
    thin = Moments.from_data(X, y, w)
    # The same weight spread over copies of the rows: dense by their number.
    copies = -(-m // n)
    dense = Moments.from_data(
        np.tile(X, (copies, 1)), np.tile(y, copies), np.tile(w, copies) / copies
    )
    assert thin.is_thin and not dense.is_thin
    assert_moments(thin, {**as_dict(dense), "n_samples": n})
    A, yc = thin.rows
    B = np.column_stack([np.ones(m), np.arange(m), np.zeros(m)])
    scale = 1.0 + dense.yty + np.abs(np.einsum("ij,ij->j", B, dense.xtx @ B))
    assert np.all(np.abs(thin.rss(B) - dense.rss(B)) <= 1e-11 * scale)
    away = scale + dense.rss(B, 2.0)
    assert np.all(np.abs(thin.rss(B, 2.0) - dense.rss(B, 2.0)) <= 1e-9 * away)
    assert np.allclose(A.T @ A, dense.xtx, atol=1e-9)
    assert np.allclose(A.T @ yc, dense.xty, atol=1e-9)


def test_merged_thin_moments_turn_dense_when_rows_are_no_longer_fewer():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(40, 10)), rng.normal(size=40)
    total = Moments.from_data(X[:3], y[:3])
    forms = []
    for i in range(3, 40, 3):
        total = total + Moments.from_data(X[i : i + 3], y[i : i + 3])
        forms.append(total.is_thin)
    assert forms[0] and not forms[-1] and sorted(forms, reverse=True) == forms
    assert_moments(total, exact(X, y))
    with pytest.raises(AttributeError, match="compress"):
        _ = total.rows


def test_thin_moments_make_no_square_matrix():
    rng = np.random.default_rng(0)
    m = 20_000
    X, y = rng.normal(size=(20, m)), rng.normal(size=20)

    def use():
        train = leave_one_out(Moments.from_folds(X, y, np.arange(20) % 4))[1]
        train.rss(np.ones(m))
        train.compress()
        return train

    train, peak = peak_of(use)
    assert train.is_thin
    assert peak < 20 * X.nbytes < m * m * 8 / 20


@pytest.mark.parametrize("n", [60, 3], ids=["dense", "thin"])
@pytest.mark.parametrize("convert", [np.asarray, sp.csr_array])
def test_one_of_several_targets_is_as_if_it_were_alone(n, convert):
    rng = np.random.default_rng(0)
    X, Y, w = rng.normal(size=(n, 5)), rng.normal(size=(n, 3)), rng.uniform(1, 2, n)
    moments = Moments.from_data(convert(X), Y, w, feature_names=list("abcde"))
    coef = rng.normal(size=5)
    for t in range(3):
        one = moments.target(t)
        assert one.is_thin == moments.is_thin == (n < 5)
        assert (one.n_samples, one.feature_names) == (n, tuple("abcde"))
        assert isinstance(one.mean_y, float) and one.xty.shape == (5,)
        assert_moments(one, exact(X, Y[:, t], w))
        residual = Y[:, t] - X @ coef
        want = w @ (residual - np.average(residual, weights=w)) ** 2
        assert abs(one.rss(coef) - want) <= 1e-12 * want
        A, b = one.compress()
        assert b.ndim == 1 and np.allclose(A.T @ b, one.xty, rtol=1e-12, atol=1e-12)
    assert moments.mean_y.shape == (3,)


# -- rss and compress --------------------------------------------------------------------------


@given(tables(), st.data())
def test_rss_is_the_residual_sum_of_squares_of_the_rows(table, data):
    X, y = table
    n, m = X.shape
    w = data.draw(hnp.arrays(np.float64, n, elements=st.sampled_from([0.25, 1.0, 2.0])))
    B = data.draw(hnp.arrays(np.int64, (m, 2), elements=st.integers(-8, 8))) / 8.0
    c = np.array([1.5, -2.0])
    moments = Moments.from_data(X, y, w)
    R = np.asarray(y[:, None] - X @ B, np.longdouble)
    best = w @ R / w.sum()
    scale = 1e-12 * (w @ (y**2)[:, None] + w @ (np.abs(X) @ np.abs(B)) ** 2 + w.sum())
    assert np.all(np.abs(moments.rss(B) - w @ (R - best) ** 2) <= scale)
    assert np.all(np.abs(moments.rss(B, c) - w @ (R - c) ** 2) <= scale)
    one = moments.rss(B[:, 0], -3.0)
    assert isinstance(one, float) and abs(one - w @ (R[:, 0] + 3.0) ** 2) <= scale[0] * 10


@pytest.mark.parametrize("form", [np.asarray, sp.csr_matrix])
@pytest.mark.parametrize("kept", [0, 2, 40])
def test_rss_of_few_coefficients_among_many_columns(form, kept):
    rng = np.random.default_rng(kept)
    X, y = rng.standard_normal((12, 40)), rng.standard_normal(12)
    moments = Moments.merge(
        Moments.from_data(form(X[rows]), y[rows]) for rows in np.arange(12).reshape(3, 4)
    )
    assert moments.is_thin
    B = np.zeros((40, 3))
    B[rng.permutation(40)[:kept]] = rng.standard_normal((kept, 3))
    expected = np.sum((y[:, np.newaxis] - X @ B - 1.5) ** 2, axis=0)
    assert np.allclose(moments.rss(B, [1.5] * 3), expected, rtol=1e-10)


def test_rss_of_several_targets_pairs_vectors_with_targets():
    rng = np.random.default_rng(0)
    for n in (50, 3):
        X, Y, B = rng.normal(size=(n, 4)), rng.normal(size=(n, 2)), rng.normal(size=(4, 2))
        moments = Moments.from_data(X, Y)
        R = Y - X @ B - [1.0, 2.0]
        assert np.allclose(moments.rss(B, [1.0, 2.0]), (R**2).sum(axis=0), rtol=1e-12)
        shared = Y - X @ B[:, :1]
        assert np.allclose(moments.rss(B[:, 0], 0.0), (shared**2).sum(axis=0), rtol=1e-12)
        with pytest.raises(ValueError, match="3 columns but there are 2 targets"):
            moments.rss(np.ones((4, 3)))
        with pytest.raises(ValueError, match="4 columns"):
            moments.rss(np.ones(3))


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
    X, y = (
        rng.normal(size=(300, 5)) * [1e-150, 1.0, 1e6, 1e3, 1.0] + [0, 2, 2, 2, 2],
        rng.normal(size=300),
    )
    X[:, 4] = X[:, 1]
    A, b = Moments.from_data(X, y).compress()
    assert A.shape == (5, 5)
    keep = [0, 1, 2, 3]
    centred = (X - X.mean(axis=0))[:, keep] / [1e-150, 1.0, 1e6, 1e3]
    want = np.linalg.lstsq(centred, y - y.mean())[0]
    assert np.allclose(np.linalg.lstsq(A[:, keep] / [1e-150, 1.0, 1e6, 1e3], b)[0], want, rtol=1e-9)


# -- what comes in -----------------------------------------------------------------------------


def plain_table():
    rng = np.random.default_rng(1)
    return rng.integers(-50, 50, size=(60, 4)), rng.integers(0, 9, size=60), rng.uniform(size=60)


@pytest.mark.parametrize(
    "convert",
    [
        lambda X: X,
        lambda X: np.asfortranarray(X),
        lambda X: X.astype(np.float32),
        lambda X: X.astype(np.float16),
        lambda X: X.astype(np.int8),
        lambda X: X.astype(np.longdouble),
        lambda X: np.repeat(X, 2, axis=1)[::-1, ::2][::-1],
        lambda X: X.tolist(),
        lambda X: sp.csr_array(X),
        lambda X: sp.csc_matrix(X),
        lambda X: sp.coo_array(X),
        lambda X: sp.coo_array(
            (np.tile(X.ravel() / 2, 2), np.tile(np.indices(X.shape).reshape(2, -1), 2)),
            shape=X.shape,
        ),
        lambda X: pd.DataFrame(X),
        lambda X: pd.DataFrame(X).astype({0: "Int64", 1: "Float32", 2: float}),
        lambda X: pd.DataFrame(X).astype({0: "int64[pyarrow]"}),
        lambda X: pl.DataFrame(X),
        lambda X: pl.DataFrame(X).cast({"column_0": pl.Float32}),
        lambda X: pa.table({str(j): X[:, j] for j in range(4)}),
        lambda X: pa.concat_tables(
            [pa.table({str(j): half[:, j] for j in range(4)}) for half in (X[:7], X[7:])]
        ),
        lambda X: pa.record_batch({str(j): X[:, j] for j in range(4)}),
    ],
)
def test_every_kind_of_table_gives_the_same_moments(convert):
    X, y, w = plain_table()
    table = convert(X)
    folds = np.arange(60) % 7
    assert_moments(Moments.from_data(table, y, w), exact(X, y, w))
    assert_moments(Moments.merge(Moments.from_folds(table, y, folds, w)), exact(X, y, w))


def test_booleans_and_read_only_arrays_are_numbers():
    X, y, _ = plain_table()
    flags = X > 0
    X.flags.writeable = False
    assert_moments(Moments.from_data(flags, y > 3), exact(flags, y > 3))
    assert_moments(Moments.from_data(X, y), exact(X, y))
    frame = pd.DataFrame({"a": X[:, 0], "b": flags[:, 1]})
    assert_moments(Moments.from_data(frame, y), exact(frame.to_numpy(float), y))


@pytest.mark.parametrize(
    "convert", [list, pd.Series, pl.Series, pa.array, lambda y: pa.chunked_array([y])]
)
def test_every_kind_of_target_and_weight(convert):
    X, y, w = plain_table()
    assert_moments(Moments.from_data(X, convert(y), convert(w)), exact(X, y, w))


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame, pa.table])
def test_frames_keep_their_names(frame):
    X, y, _ = plain_table()
    moments = Moments.from_data(frame({"age": X[:, 0], "income": X[:, 1]}), y)
    assert moments.feature_names == ("age", "income")
    assert (moments + moments).feature_names == ("age", "income")
    targets = Moments.from_data(X, frame({"u": y, "v": y + 1}))
    assert targets.yty.shape == (2,)


def test_names_of_a_frame_are_text_or_absent():
    X, y, _ = plain_table()
    assert Moments.from_data(pd.DataFrame(X), y).feature_names is None
    assert Moments.from_data(X, y, feature_names=list("abcd")).feature_names == tuple("abcd")
    with pytest.raises(TypeError, match="column 1 is 'b'"):
        Moments.from_data(pd.DataFrame(X, columns=[0, "b", "c", "d"]), y)
    with pytest.raises(ValueError, match="4 strings"):
        Moments.from_data(X, y, feature_names=["a"])


def test_a_sparse_matrix_is_never_made_dense_as_a_whole():
    rng = np.random.default_rng(0)
    y = rng.normal(size=50_000)
    for density in (0.002, 0.08):
        X = sp.random_array((50_000, 300), density=density, rng=rng, format="csr")
        moments, peak = peak_of(lambda X=X: Moments.from_data(X, y))
        assert peak < 50_000 * 300 * 8 / 4
        part = X[:, :3].toarray()
        assert_moments(
            Moments.from_data(part, y),
            {
                **as_dict(moments),
                "mean_x": moments.mean_x[:3],
                "xtx": moments.xtx[:3, :3],
                "xty": moments.xty[:3],
            },
        )
    wide = sp.random_array((300, 50_000), density=0.002, rng=rng, format="csc")
    rss, peak = peak_of(lambda: Moments.from_data(wide, y[:300]).rss(np.ones(50_000)))
    assert peak < 300 * 50_000 * 8 / 4
    residual = y[:300] - wide.sum(axis=1)
    assert np.isclose(rss, np.sum((residual - residual.mean()) ** 2), rtol=1e-9)


def test_no_copy_larger_than_a_block_is_made():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(400_000, 20)), rng.normal(size=400_000)
    names = [f"x{j}" for j in range(20)]
    mixed = pd.DataFrame(X, columns=names).astype({"x0": np.float32})
    for table in (X, np.asfortranarray(X), X.astype(np.float32), mixed, pl.from_pandas(mixed)):
        for run in (
            lambda table: Moments.from_data(table, y),
            lambda table: Moments.from_folds(table, y, np.arange(400_000) // 100_000),
        ):
            assert peak_of(lambda run=run, table=table: run(table))[1] < X.nbytes / 2


def test_batches_are_pieces():
    X, y, w = plain_table()
    cuts = [0, 1, 1, 3, 30, 60]
    spans = [slice(a, b) for a, b in pairwise(cuts)]
    weighted = Moments.from_batches((X[s], y[s], w[s]) for s in spans)
    assert_moments(weighted, exact(X, y, w))
    assert_moments(Moments.from_batches((X[s], y[s]) for s in spans), exact(X, y))
    wide = np.random.default_rng(0).normal(size=(60, 25))
    single = Moments.from_batches((wide[i : i + 1], y[i : i + 1]) for i in range(60))
    assert not single.is_thin
    assert_moments(single, exact(wide, y))
    zero = [(X, y, np.zeros(60)), (X, y, w)]
    assert_moments(Moments.from_batches(zero), exact(X, y, w))


def test_a_bad_batch_is_named():
    X, y, _ = plain_table()
    bad = X.astype(float)
    bad[2, 1] = np.nan
    with pytest.raises(ValueError, match=r"Batch 1: Column 1 has the value nan in row 2"):
        Moments.from_batches([(X, y), (bad, y)])
    with pytest.raises(ValueError, match="Batch 1: Moments of 4 and of 3 columns"):
        Moments.from_batches([(X, y), (X[:, :3], y)])
    with pytest.raises(ValueError, match="Batch 1: Column 0 reaches"):
        Moments.from_batches([(X, y), (X * [1e200, 1, 1, 1], y)])
    with pytest.raises(ValueError, match="no batches"):
        Moments.from_batches([])
    with pytest.raises(ValueError, match="no moments"):
        Moments.merge([])


@given(tables(), st.data())
def test_folds_are_the_moments_of_their_rows(table, data):
    X, y = table
    n = len(y)
    ids = data.draw(hnp.arrays(np.int64, n, elements=st.integers(0, 3)))
    if data.draw(st.booleans()):
        ids = np.sort(ids)
    count = ids.max() + 1
    assert Moments.from_folds(X[:0], y[:0], ids[:0]) == []
    folds = Moments.from_folds(X, y, ids)
    listed = Moments.from_folds(X, y, [np.flatnonzero(ids == i) for i in range(count)])
    assert len(folds) == len(listed) == count
    for i in range(count):
        assert folds[i].n_samples == listed[i].n_samples == np.count_nonzero(ids == i)
        if folds[i].n_samples:
            assert_moments(folds[i], exact(X[ids == i], y[ids == i]))
            assert_moments(listed[i], exact(X[ids == i], y[ids == i]))


def test_folds_that_are_no_partition_are_refused():
    X, y, _ = plain_table()
    rows = np.arange(60)
    for folds, message in [
        ([rows[:30], rows[29:]], "Row 29 is in the folds more than once"),
        ([rows[:30], np.append(rows[30:], 59)], "Row 59 is in the folds more than once"),
        ([rows[:30], rows[31:]], "Row 30 is in no fold"),
        ([rows[:30], rows[30:] + 1], "outside 0 to 59"),
        (rows - 1, "negative fold number"),
        (rows[:5], "each of the 60 rows"),
        (rows / 2, "whole number"),
    ]:
        with pytest.raises(ValueError, match=message):
            Moments.from_folds(X, y, folds)


def test_large_data_are_summed_in_threads_and_give_the_same():
    rng = np.random.default_rng(0)
    X, y = rng.random(size=(1_100_000, 8), dtype=np.float32), rng.normal(size=1_100_000)
    ids = rng.integers(0, 3, len(y))
    with blas().limit(limits=1):
        alone = Moments.from_data(X, y)
    pool = set()
    threading.setprofile(lambda *_: pool.add(threading.current_thread()))
    together = Moments.from_data(X, y)
    threading.setprofile(None)
    assert np.array_equal(alone.xtx, together.xtx)
    assert_moments(Moments.merge(Moments.from_folds(X, y, ids)), as_dict(alone), rtol=1e-13)
    before = [each["num_threads"] for each in blas().info()]
    if max(before) > 1:
        assert len(pool) > 1
    threads = [threading.Thread(target=Moments.from_data, args=(X, y)) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
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


def numbers(**columns):
    rng = np.random.default_rng(0)
    return {"a": rng.normal(size=6), **columns}


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("shape", [(200, 3), (5, 9)], ids=["dense", "thin"])
def test_a_value_that_is_not_finite_is_named(value, shape):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=shape), rng.normal(size=shape[0])
    X[3, 2] = value
    for table in (
        X,
        np.asfortranarray(X),
        sp.csr_array(X),
        sp.csr_array(np.where(X > 1.5, X, 0.0)),
    ):
        if sp.issparse(table) and np.isfinite(table.toarray()).all():
            continue
        with pytest.raises(ValueError, match=rf"Column 2 has the value {value} in row 3"):
            Moments.from_data(table, y)
        with pytest.raises(ValueError, match=rf"Column 2 has the value {value} in row 3"):
            Moments.from_folds(table, y, np.arange(shape[0]) % 2)
    with pytest.raises(ValueError, match="Column 'c' has the value"):
        Moments.from_data(pd.DataFrame(X[:, :3], columns=list("abc")), y)
    X[3, 2] = 0.0
    y[1] = value
    with pytest.raises(ValueError, match=rf"^y has the value {value} in row 1|^Y has"):
        Moments.from_data(X, y)
    with pytest.raises(ValueError, match=r"Column 1 of y has the value"):
        Moments.from_data(X, np.column_stack([np.ones(shape[0]), y]))


@pytest.mark.parametrize(
    "frame",
    [
        pd.DataFrame(numbers(b=pd.array([1, 2, None, 4, 5, 6], dtype="Int64"))),
        pl.DataFrame(numbers(b=[1, 2, None, 4, 5, 6])),
        pl.DataFrame(numbers(b=[True, False, None, True, True, False])),
        pa.table(numbers(b=[1, 2, None, 4, 5, 6])),
        pa.table(numbers(b=[True, False, None, True, True, False])),
    ],
)
def test_a_missing_value_in_a_frame_is_named(frame):
    with pytest.raises(ValueError, match="Column 'b' has the value nan in row 2"):
        Moments.from_data(frame, np.arange(6.0))


@pytest.mark.parametrize(
    "table",
    [
        np.array([[1, "u"], [2, "v"]], dtype=object),
        sp.csr_array(np.ones((2, 2), complex)),
        pd.DataFrame(numbers(b=list("uvwxyz"))),
        pd.DataFrame(numbers(b=pd.date_range("2020", periods=6))),
        pd.DataFrame(numbers(b=pd.Categorical(list("uvwxyz")))),
        pd.DataFrame(numbers(b=np.arange(6) * 1j)),
        pl.DataFrame(numbers(b=list("uvwxyz"))),
        pl.DataFrame(numbers(b=pd.date_range("2020", periods=6).to_numpy())),
        pa.table(numbers(b=list("uvwxyz"))),
        pa.table(numbers(b=pd.date_range("2020", periods=6).to_numpy())),
        pa.table(numbers(b=[[1], [2], [3], [4], [5], [6]])),
    ],
)
def test_a_column_that_is_no_number_is_named(table):
    column = 0 if sp.issparse(table) else 1 if isinstance(table, np.ndarray) else "'b'"
    with pytest.raises(TypeError, match=f"Column {column} holds values of type"):
        Moments.from_data(table, np.arange(6.0))


@pytest.mark.parametrize(
    ("X", "y", "w", "message"),
    [
        (np.ones((2, 2, 2)), [1.0, 2.0], None, "X has 3 dimensions;"),
        ([[1.0], [2.0, 3.0]], [1.0, 2.0], None, "not a table"),
        (["a", "b"], [1.0, 2.0], None, "^X holds values of type"),
        (np.zeros(2, dtype=[("a", float)]), [1.0, 2.0], None, "^X holds values of type"),
        ([[1.0], [2.0]], np.ones((2, 1, 1)), None, "y has 3 dimensions"),
        ([[1.0], [2.0]], np.ones((2, 0)), None, "y has no columns"),
        ([[1.0], [2.0]], ["a", "b"], None, "y holds values of type"),
        ([[1.0], [2.0]], [1j, 2.0], None, "y holds values of type"),
        ([[1.0], [2.0]], sp.csr_array([[1.0], [2.0]]), None, "y is sparse"),
        ([[1.0], [2.0]], [1.0, 2.0], [1.0], r"sample_weight has shape \(1,\)"),
        (np.ma.array([[1.0], [2.0]], mask=[[0], [1]]), [1.0, 2.0], None, "masked"),
        (pl.LazyFrame({"a": [1.0, 2.0]}), [1.0, 2.0], None, "collect"),
    ],
)
def test_input_of_the_wrong_shape_or_kind_is_refused(X, y, w, message):
    with pytest.raises((TypeError, ValueError), match=message):
        Moments.from_data(X, y, w)


@pytest.mark.parametrize("n", [4, 50])
@pytest.mark.parametrize("scale", [1e-150, 1e-100, 1e100, 1e150])
def test_huge_and_tiny_values_keep_their_digits(n, scale):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(n, 6)), rng.normal(size=n)
    small, large = Moments.from_data(X, y), Moments.from_data(X * scale, y)
    assert np.allclose(large.xtx / scale / scale, small.xtx, rtol=1e-9, atol=1e-9)
    assert np.allclose(large.xty / scale, small.xty, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("n", [4, 50])
def test_values_beyond_the_range_of_squares_are_refused(n):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(n, 6)), rng.normal(size=n)
    for scale, message in ((1e200, "too large"), (1e308, "too large"), (1e-170, "varies by too")):
        scaled = X / 10 * np.where(np.arange(6) == 2, scale, 1.0)
        with pytest.raises(ValueError, match=f"Column 2 .*{message}.*rescale"):
            Moments.from_data(scaled, y)
        with pytest.raises(ValueError, match="rescale"):
            Moments.from_data(X, y / 10 * scale)
    far = [Moments.from_data([[value]], [1.0]) for value in (1e200, -1e200)]
    with pytest.raises(ValueError, match=r"column 0 .*rescale"):
        Moments.merge(far)


def test_a_column_constant_within_folds_only_is_fine():
    X, y = np.repeat([[1.0], [2.0], [4.0]], 5, axis=0), np.arange(15.0)
    folds = Moments.from_folds(X, y, np.repeat([0, 1, 2], 5))
    assert [fold.diag[0] for fold in folds] == [0.0, 0.0, 0.0]
    assert_moments(Moments.merge(folds), exact(X, y))


def test_different_columns_do_not_merge():
    X, y, _ = plain_table()
    a = Moments.from_data(X, y, feature_names=["p", "q", "r", "s"])
    b = Moments.from_data(X, y, feature_names=["p", "q", "R", "S"])
    nameless = Moments.from_data(X, y)
    for one, other, message in (
        (a, b, "column 2 is 'r' in one and 'R' in the other"),
        (a, nameless, "with and without column names"),
        (nameless, Moments.from_data(X[:, :3], y), "4 and of 3 columns"),
        (nameless, Moments.from_data(X, y[:, None]), "targets"),
    ):
        with pytest.raises(ValueError, match=message):
            one + other
    with pytest.raises(TypeError):
        a + 1
    with pytest.raises(TypeError, match="from_data"):
        Moments()


def test_the_arrays_cannot_be_written_to():
    X, y, _ = plain_table()
    for moments in (Moments.from_data(X, y), Moments.from_data(X[:3], y[:3])):
        for name in ("mean_x", "xtx", "xty", "diag"):
            with pytest.raises(ValueError, match="read-only"):
                getattr(moments, name)[0] = 1.0


# -- files -------------------------------------------------------------------------------------


def examples():
    X, y, w = plain_table()
    Y = np.column_stack([y, y**2])
    return {
        "dense": Moments.from_data(X, y, w, feature_names=["p", "ä", "r r", ""]),
        "thin": Moments.from_data(X[:3], y[:3]),
        "targets": Moments.from_data(X, Y),
        "merged thin": Moments.from_data(X[:2], Y[:2]) + Moments.from_data(X[2:3], Y[2:3]),
        "sparse thin": Moments.from_data(sp.csr_array(X[:3]), y[:3]),
        "empty": Moments.from_data(X[:0], y[:0]),
    }


def assert_same(a, b):
    assert a.feature_names == b.feature_names and a.is_thin == b.is_thin
    assert type(a.mean_y) is type(b.mean_y)
    for name in ("n_samples", "weight_sum", "mean_x", "mean_y", "xtx", "xty", "yty", "diag"):
        assert np.array_equal(getattr(a, name), getattr(b, name)), name


@pytest.mark.parametrize("kind", examples())
def test_a_saved_file_gives_the_same_moments(tmp_path, kind):
    moments = examples()[kind]
    path = tmp_path / "a file.of moments"
    moments.save(path)
    moments.save(path)
    assert [file.name for file in tmp_path.iterdir()] == ["a file.of moments"]
    loaded = Moments.load(str(path))
    assert_same(loaded, moments)
    assert_same(pickle.loads(pickle.dumps(moments)), moments)
    assert_same(loaded + loaded, moments + moments)


def test_a_failed_save_leaves_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "m.npz"
    old, new = examples()["dense"], examples()["targets"]
    old.save(path)

    def full(file, **arrays):
        file.write(b"half")
        raise OSError("No space left on device")

    monkeypatch.setattr(np, "savez", full)
    with pytest.raises(OSError, match="No space"):
        new.save(path)
    assert [file.name for file in tmp_path.iterdir()] == ["m.npz"]
    assert_same(Moments.load(path), old)
    with pytest.raises(FileNotFoundError, match="folder"):
        old.save(tmp_path / "none" / "m.npz")


@pytest.mark.parametrize("kind", ["dense", "thin"])
def test_a_damaged_file_is_refused_or_harmless(tmp_path, kind):
    moments = examples()[kind]
    path = tmp_path / "site.npz"
    moments.save(path)
    whole = path.read_bytes()
    refused = 0
    for cut in range(0, len(whole), max(1, len(whole) // 60)):
        path.write_bytes(whole[:cut])
        with pytest.raises(MomentsFileError, match=r"site\.npz"):
            Moments.load(path)
    for position in range(0, len(whole), 7):
        path.write_bytes(whole[:position] + bytes([whole[position] ^ 0xFF]) + whole[position + 1 :])
        try:
            loaded = Moments.load(path)
        except MomentsFileError as error:
            assert "site.npz" in str(error)
            refused += 1
        else:  # the byte was a date or a permission inside the archive
            assert_same(loaded, moments)
    assert refused > len(whole) / 7 / 2


def rewritten(path, **changes):
    """The file's arrays with some replaced, or left out where the change is None."""
    with np.load(path) as archive:
        arrays = {**archive, **changes}
    with open(path, "wb") as file:
        np.savez(file, **{name: array for name, array in arrays.items() if array is not None})


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
        ({"xty": np.ones((4, 0)), "yty": np.ones(0), "mean_y": np.ones(0)}, "0 targets"),
        (
            {
                **{"xty": np.ones((4, 0)), "yty": np.ones(0), "mean_y": np.ones(0)},
                **{"low_y": np.ones(0), "flat_y": np.array(False)},
            },
            "0 targets",
        ),
        ({"xty": np.ones((4, 2)), "yty": np.ones(2), "mean_y": np.ones(2)}, "2 targets"),
        ({"low_x": np.ones(4)}, "low part"),
        ({"low_y": None}, "low_y"),
        ({"xtx": np.ones((4, 4)) - 3 * np.eye(4), "diag": -2 * np.ones(4)}, "negative"),
        ({"xtx": 3 * np.eye(4) - 2, "diag": np.ones(4)}, "no rows have such sums"),
        ({"xtx": 1e-6 * np.eye(4), "diag": np.full(4, 1e-6)}, "no rows have such sums"),
        ({"yty": np.zeros(1)}, "no rows have such sums"),
        ({"yty": np.full(1, 1e-3)}, "no rows have such sums"),
        ({"runs": None}, "damaged"),
        *(
            ({"runs": np.array(text)}, "damaged")
            for text in (
                *("", "{}x", "[1]", '[["a", "b", 2, []]]'),
                *('[["a", "b", 2, [2]]]', "[[1, 2, 3, [0]]]"),
            )
        ),
    ],
)
def test_a_file_with_other_contents_is_refused(tmp_path, changes, message):
    path = tmp_path / "site.npz"
    examples()["dense"].save(path)
    rewritten(path, **changes)
    with pytest.raises(MomentsFileError, match=rf"site\.npz.*{message}"):
        Moments.load(path)


@pytest.mark.parametrize("kind", examples())
def test_a_file_of_the_first_version_can_be_read(tmp_path, kind):
    path = tmp_path / "site.npz"
    examples()[kind].save(path)
    rewritten(path, version=np.array(1), runs=None)
    assert_same(Moments.load(path), examples()[kind])
    assert Moments.load(path).runs == ()


def test_sums_of_thin_moments_must_be_those_of_their_rows(tmp_path):
    path = tmp_path / "site.npz"
    for changes in ({"xty": np.ones((4, 1))}, {"yty": np.ones(1)}, {"diag": np.ones(4)}):
        examples()["thin"].save(path)
        rewritten(path, **changes)
        with pytest.raises(MomentsFileError, match=r"site\.npz.*not those of its rows"):
            Moments.load(path)
    examples()["thin"].save(path)
    with np.load(path) as archive:
        rows = 2 * archive["rows"]
    rewritten(path, rows=rows)
    with pytest.raises(MomentsFileError, match="not those of its rows"):
        Moments.load(path)


@pytest.mark.parametrize("n", [3, 50])
def test_sums_of_huge_and_tiny_columns_can_be_read(tmp_path, n):
    rng = np.random.default_rng(0)
    moments = Moments.from_data(
        rng.normal(size=(n, 4)) * [1e-130, 1e-60, 1.0, 1e140], rng.normal(size=n) * 1e-135
    )
    moments.save(tmp_path / "m.npz")
    assert_same(Moments.load(tmp_path / "m.npz"), moments)


@pytest.mark.parametrize("seed", range(5))
def test_sums_of_dependent_columns_can_be_read(tmp_path, seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(300, 8)) * 10.0 ** rng.uniform(-100, 100, 8)
    X = np.column_stack([X, X[:, 0], -3 * X[:, 1], np.full(300, 0.1), X[:, 2] * (1 + 1e-9)])
    X = np.column_stack([X, np.eye(5)[np.arange(300) % 5]]) + rng.choice([0, 1e9])
    for y in (X[:, 3] + X[:, 9], np.ones(300), rng.normal(size=300)):
        moments = Moments.merge(Moments.from_folds(X, y, np.arange(300) // 60))
        moments.save(tmp_path / "m.npz")
        assert_same(Moments.load(tmp_path / "m.npz"), moments)


def test_an_archive_that_unpacks_to_more_than_itself_is_refused_unread(tmp_path, monkeypatch):
    path = tmp_path / "site.npz"
    examples()["dense"].save(path)
    with np.load(path) as archive:
        arrays = dict(archive)
    with open(path, "wb") as file:
        np.savez_compressed(file, **arrays, more=np.zeros(10**6))

    def never(*args, **kwargs):
        raise AssertionError("the contents were read")

    monkeypatch.setattr(zipfile.ZipFile, "open", never)
    with pytest.raises(MomentsFileError, match=r"site\.npz.*compressed"):
        Moments.load(path)
    # The same claim about a member that is stored as it is.
    monkeypatch.undo()
    examples()["dense"].save(path)
    whole = bytearray(path.read_bytes())
    entry = whole.rindex(b"PK\x01\x02")
    whole[entry + 24 : entry + 28] = (2**31).to_bytes(4, "little")
    path.write_bytes(whole)
    monkeypatch.setattr(zipfile.ZipFile, "open", never)
    with pytest.raises(MomentsFileError, match=r"site\.npz.*larger than itself"):
        Moments.load(path)


@pytest.mark.parametrize("n", [3, 20])
def test_names_that_repeat_are_refused(n):
    X, y, _ = plain_table()
    for table, names in ((X, list("abca")), (pd.DataFrame(X, columns=list("abca")), None)):
        with pytest.raises(ValueError, match="more than one column 'a'; rename"):
            Moments.from_data(table[:n], y[:n], feature_names=names)
        with pytest.raises(ValueError, match="more than one column 'a'; rename"):
            Moments.from_batches([(table[:n], y[:n])], feature_names=names)


class Trap:
    sprung = False

    def __reduce__(self):
        return (setattr, (Trap, "sprung", True))


def test_nothing_in_a_file_is_executed(tmp_path):
    path = tmp_path / "site.npz"
    examples()["dense"].save(path)
    rewritten(path, xtx=np.array([Trap()], dtype=object))
    with pytest.raises(MomentsFileError, match="site"):
        Moments.load(path)
    path.write_bytes(pickle.dumps(Trap()))
    with pytest.raises(MomentsFileError, match="not a moments file"):
        Moments.load(path)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("readme.txt", "hello")
    with pytest.raises(MomentsFileError, match="does not hold moments"):
        Moments.load(path)
    assert not Trap.sprung
    with pytest.raises(FileNotFoundError):
        Moments.load(tmp_path / "absent.npz")


def test_the_definition_used_here_is_right():
    """The oracle of these tests against exact fractions."""
    X, y, w = np.array([[1], [5], [6]]), [2, 2, 7], [1, 2, 4]
    sums, _ = in_fractions(X, y, w)
    q = np.longdouble(sums[0][1].numerator) / sums[0][1].denominator
    assert abs(exact(X, y, w)["xty"][0] - q) < 1e-17


def test_names_of_targets_travel_with_the_moments(tmp_path):
    X, Y = np.arange(24.0).reshape(8, 3) ** 2, np.arange(16.0).reshape(8, 2)
    table = pa.table({**dict(zip("abc", X.T, strict=True)), "y": Y[:, 0], "z": Y[:, 1]})
    one = read_moments(table, "y", features=["a", "b", "c"])
    assert one.target_names == ("y",)
    assert [m.target_names for m in read_moments(table, "y", folds=2)] == [("y",), ("y",)]
    one.save(tmp_path / "one.npz")
    assert Moments.load(tmp_path / "one.npz").target_names == ("y",)
    nameless = Moments.from_data(X, Y[:, 0], feature_names=list("abc"))
    assert nameless.target_names is None
    assert Moments.merge([nameless, one]).target_names == ("y",)
    other = read_moments(table, "z", features=["a", "b", "c"])
    with pytest.raises(ValueError, match="different targets, 'y' and 'z', cannot be merged"):
        Moments.merge([one, nameless, other])


def test_a_pandas_frame_of_sparse_columns_is_a_sparse_matrix_with_names():
    X = sp.random(3000, 40, density=0.02, format="csr", random_state=0)
    y = np.random.default_rng(0).normal(size=3000)
    names = [f"word {j}" for j in range(40)]
    frame = pd.DataFrame.sparse.from_spmatrix(X, columns=names)
    moments, peak = peak_of(lambda: Moments.from_data(frame, y))
    assert moments.feature_names == tuple(names)
    assert np.array_equal(moments.xtx, Moments.from_data(X, y).xtx)
    assert peak < X.shape[0] * X.shape[1] * 8
    path = sparsestep_path(frame, y, alphas=3)
    assert path.feature_names == tuple(names)
    # Columns of which some are dense, or with another value left out, are read one by one.
    some = frame.assign(**{names[3]: frame[names[3]].sparse.to_dense()})
    for other in (some, frame.astype(pd.SparseDtype(float, np.nan))):
        np.testing.assert_allclose(Moments.from_data(other, y).xtx, moments.xtx, atol=1e-12)
