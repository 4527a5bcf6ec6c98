"""Polishing against exhaustive search, and against trying every move."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import load_diabetes

from rows import table
from sparsestep import SparseStep, sparsestep_path
from sparsestep.solvers.polish import RowGram, polish_path

SUBSETS = [list(s) for k in range(10) for s in combinations(range(9), k)]


def polish(S, q, prices, support, gram=None):
    """One support polished by itself, from least squares on it."""
    inside = np.flatnonzero((support | (prices == 0)) & np.isfinite(prices))
    coef = np.zeros((1, len(q)))
    coef[0, inside] = np.linalg.pinv(S[np.ix_(inside, inside)], hermitian=True) @ q[inside]
    return polish_path(S if gram is None else gram, q, np.ones(1), prices, coef)[0]


def rss_of(S, q, yty, support):
    """Residual sum of squares of least squares on some columns, however dependent they are."""
    inside = np.flatnonzero(support)
    return yty - q[inside] @ np.linalg.pinv(S[np.ix_(inside, inside)], hermitian=True) @ q[inside]


def moves(support):
    """Every support that differs by one column added, dropped or swapped."""
    inside, outside = np.flatnonzero(support), np.flatnonzero(~support)
    for change in [[j] for j in range(len(support))] + [[i, j] for i in inside for j in outside]:
        other = support.copy()
        other[change] ^= True
        yield other


def centred(n, m, seed, correlation):
    X, y = table(n, m, seed, correlation=correlation)
    return X - X.mean(axis=0), y - y.mean()


def sums(X, y):
    """X'X, X'y and y'y of centred rows."""
    X, y = X - X.mean(axis=0), y - y.mean()
    return X.T @ X, X.T @ y, y @ y


@pytest.mark.parametrize("correlation", [0.0, 0.5, 0.9])
def test_finds_the_best_subset_nearly_always(correlation):
    alphas = np.geomspace(0.05, 300, 20)
    size = np.array([len(s) for s in SUBSETS])
    found = fits = 0
    for seed in range(15):
        X, _ = table(60, 9, seed, correlation=correlation)
        rng = np.random.default_rng([seed, int(10 * correlation)])
        y = X[:, :5] @ rng.uniform(-1, 1, 5) + rng.standard_normal(60)
        S, q, yty = sums(X, y)
        rss = [yty - q[s] @ np.linalg.solve(S[np.ix_(s, s)], q[s]) for s in SUBSETS]
        before, after = (
            path.rss + path.alphas * path.n_nonzero
            for path in (sparsestep_path(X, y, alphas=alphas, polish=p) for p in (None, "swap"))
        )
        best = np.min(rss + alphas[::-1, None] * size, axis=1)
        assert np.all(after <= before * (1 + 1e-12)) and np.all(after >= best * (1 - 1e-9))
        found += np.count_nonzero(after <= best * (1 + 1e-9))
        fits += len(alphas)
    assert fits == 300 and found >= 0.97 * fits


@given(
    seed=st.integers(0, 10**6),
    shape=st.sampled_from([(30, 7), (60, 20), (12, 25)]),
    correlation=st.sampled_from([0.0, 0.5, 0.9, 0.99]),
    log_alpha=st.floats(-3, 6),
    start=st.floats(0, 1),
    factors=st.lists(st.sampled_from([0.0, 0.5, 1.0, 1.0, np.inf]), min_size=1, max_size=7),
    by_rows=st.booleans(),
)
@settings(max_examples=200)
def test_no_move_improves_the_result(seed, shape, correlation, log_alpha, start, factors, by_rows):
    """Neither by the matrix nor by the rows of which it is made."""
    X, y = centred(*shape, seed, correlation)
    (S, q, yty), m = sums(X, y), shape[1]
    prices = 2.0**log_alpha * np.resize(factors, m)
    assume(np.count_nonzero(prices == 0) < shape[0])
    support = np.random.default_rng(seed).random(m) < start
    coef = polish(S, q, prices, support, RowGram(X) if by_rows else None)
    kept = coef != 0
    assert np.all(kept[prices == 0]) and not np.any(kept[np.isinf(prices)])
    assert_allclose(S[kept] @ coef, q[kept], atol=1e-9 * np.abs(q).max())

    def objective(chosen):
        return rss_of(S, q, yty, chosen) + prices[chosen].sum()

    start_allowed = (support | (prices == 0)) & np.isfinite(prices)
    assert objective(kept) <= objective(start_allowed) + 1e-9 * yty
    for other in moves(kept):
        if np.all(other[prices == 0]) and not np.any(other[np.isinf(prices)]):
            assert objective(other) >= objective(kept) - 1e-9 * yty


@given(seed=st.integers(0, 10**6), log_alpha=st.floats(-20, 6), start=st.integers(0, 2**10 - 1))
def test_columns_that_depend_on_others_do_not_stay(seed, log_alpha, start):
    S, q, yty = sums(*centred(6, 10, seed, 0.3))  # rank 5
    prices = np.full(10, 2.0**log_alpha)
    coef = polish(S, q, prices, np.array([start >> j & 1 for j in range(10)], dtype=bool))
    kept = coef != 0
    assert kept.sum() <= 5
    inside = np.flatnonzero(kept)
    assert np.linalg.matrix_rank(S[np.ix_(inside, inside)], tol=1e-9) == len(inside)
    for i in inside:
        other = kept.copy()
        other[i] = False
        loss = rss_of(S, q, yty, other) - rss_of(S, q, yty, kept)
        assert loss >= prices[i] - 1e-9 * yty


@given(
    seed=st.integers(0, 10**6),
    correlation=st.sampled_from([0.0, 0.9]),
    factors=st.lists(st.sampled_from([0.0, 0.5, 1.0, 1.0, 1.0, np.inf]), min_size=8, max_size=8),
    alike=st.booleans(),
)
def test_what_one_alpha_taught_does_not_change_the_next(seed, correlation, factors, alike):
    S, q, _ = sums(*centred(30, 8, seed, correlation))
    factor = np.array(factors)
    if alike:
        factor[factor == 0.5] = 1.0
    rng = np.random.default_rng(seed)
    alphas = np.append(2.0 ** rng.uniform(-3, 6, 9), [1e-300, 0.0, 1e300, 1.0])
    starts = rng.standard_normal((13, 8)) * (rng.random((13, 8)) < 0.4)
    together = polish_path(S, q, alphas, factor, starts)
    for alpha, start, found in zip(alphas, starts, together, strict=True):
        assert_array_equal(found, polish_path(S, q, [alpha], factor, [start])[0])


def test_nothing_to_polish():
    start = np.array([True, False])
    assert_array_equal(polish(np.zeros((2, 2)), np.zeros(2), np.ones(2), start), 0)
    assert polish(np.zeros((0, 0)), np.zeros(0), np.ones(0), start[:0]).shape == (0,)


@pytest.mark.parametrize("distance", [1e-4, 3e-6, 1e-6, 1e-7])
def test_columns_too_alike_to_search_among_are_not_lost(distance):
    rng = np.random.default_rng(int(1 / distance))
    x, z, other = rng.standard_normal((3, 100))
    X, y = np.column_stack([x, x + distance * z, other]), z + 0.1 * rng.standard_normal(100)

    def objective(polish):
        model = SparseStep(1.0, polish=polish).fit(X, y)
        return np.sum((y - model.predict(X)) ** 2) + np.count_nonzero(model.coef_)

    assert objective("swap") <= objective(None) * (1 + 1e-6)


def test_a_size_asked_for_has_the_best_subset_of_the_diabetes_data():
    X, y = load_diabetes(return_X_y=True)
    S, q, yty = sums(X, y)
    path = sparsestep_path(X, y, alphas="sizes", polish="swap")
    assert_array_equal(path.n_nonzero, range(11))
    for size in range(11):
        subsets = (np.isin(np.arange(10), s) for s in combinations(range(10), size))
        best = min(rss_of(S, q, yty, subset) for subset in subsets)
        assert_allclose(path.select(size).rss, best, rtol=1e-9)
        for polish in (None, "swap"):
            model = SparseStep(n_nonzero=size, polish=polish).fit(X, y)
            assert np.count_nonzero(model.coef_) == size
            assert_allclose(np.sum((y - model.predict(X)) ** 2), best, rtol=1e-9)


@settings(max_examples=25)
@given(
    seed=st.integers(0, 10**6),
    correlation=st.sampled_from([0.0, 0.5, 0.9]),
    factors=st.lists(st.sampled_from([0.0, 1.0, 1.0, 1.0, np.inf]), min_size=7, max_size=7),
    wide=st.booleans(),
    data=st.data(),
)
def test_no_swap_improves_a_model_of_a_given_size(seed, correlation, factors, wide, data):
    n = 6 if wide else 30
    X, y = table(n, 7, seed, correlation=correlation)
    factor = np.array(factors)
    fewest, most = np.count_nonzero(factor == 0), np.count_nonzero(np.isfinite(factor))
    if fewest > n - 2:
        return
    size = data.draw(st.integers(fewest, min(most, n - 2)))
    model = SparseStep(n_nonzero=size, penalty_factor=factor).fit(X, y)
    kept = model.coef_ != 0
    assert np.count_nonzero(kept) == size
    assert kept[factor == 0].all() and not kept[np.isinf(factor)].any()
    S, q, yty = sums(X, y)
    reached = rss_of(S, q, yty, kept)
    for other in moves(kept):
        allowed = other[factor == 0].all() and not other[np.isinf(factor)].any()
        if allowed and np.count_nonzero(other) == size:
            assert reached <= rss_of(S, q, yty, other) + 1e-8 * yty
    path = sparsestep_path(X, y, alphas="sizes", penalty_factor=factor)
    if size in path.n_nonzero and not wide:
        on_path = path.select(size)
        assert on_path.alpha == model.alpha_ and np.count_nonzero(on_path.coef) == size
        assert reached <= on_path.rss + 1e-8 * yty


def test_dearer_variables_are_swapped_out_at_a_given_size():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((200, 4))
    X[:, 1] = X[:, 0] + 0.05 * rng.standard_normal(200)
    y = X[:, 0] + X[:, 2] + 0.1 * rng.standard_normal(200)
    free_choice = SparseStep(n_nonzero=2).fit(X, y)
    assert_array_equal(np.flatnonzero(free_choice.coef_), [0, 2])
    dear = SparseStep(n_nonzero=2, penalty_factor=[1000, 1, 1, 1]).fit(X, y)
    assert_array_equal(np.flatnonzero(dear.coef_), [1, 2])


def test_one_of_many_more_columns_than_rows_is_the_one_most_correlated():
    for seed in range(5):
        rng = np.random.default_rng(seed)
        f = rng.standard_normal((40, 5))
        X = f @ rng.standard_normal((5, 600)) + 0.3 * rng.standard_normal((40, 600))
        y = X[:, 7] + 0.5 * rng.standard_normal(40)
        model = SparseStep(n_nonzero=1).fit(X, y)
        correlation = np.corrcoef(X, y, rowvar=False)[-1, :-1]
        assert_array_equal(np.flatnonzero(model.coef_), np.argmax(np.abs(correlation)))
