"""Directions held apart, where columns are dependent or nearly so, against NumPy one by one."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from designs import design
from sparsestep import linear
from sparsestep.deflation import Deflation
from sparsestep.linear import GramFamily


def _scaled(X):
    X = X - X.mean(axis=0)
    return X / np.linalg.norm(X, axis=0)


def _dependent(kind, m, nearly, rng):
    """Columns of unit length, a few of them sums of others but for a share `nearly`."""
    X = design(kind, 6 * m, m, rng)
    for j in range(1, max(2, m // 8)):
        parts = X[:, [-j - 1, -j - 2, j + 3]]
        X[:, j] = parts.sum(axis=1) + nearly * rng.standard_normal(len(X))
    return _scaled(X)


@given(
    kind=st.sampled_from(["uncorrelated", "constant", "blocks", "heavy_tailed"]),
    m=st.integers(12, 60),
    nearly=st.sampled_from([0.0, 1e-5, 1e-4, 1e-3, 1e-2]),
    low=st.floats(-8, 0),
    high=st.floats(0, 12),
    seed=st.integers(0, 2**32 - 1),
)
def test_systems_of_dependent_columns_are_solved_by_iteration(kind, m, nearly, low, high, seed):
    rng = np.random.default_rng(seed)
    data = [_dependent(kind, m, nearly, rng) for _ in range(2)]
    qs = np.stack([X.T @ (X @ rng.standard_normal(m) + rng.standard_normal(len(X))) for X in data])
    grams = [X.T @ X for X in data]
    family = GramFamily(grams)
    gram = np.repeat([0, 1], 6)
    d = 10.0 ** rng.uniform(low, high, (12, m))
    kept = family.own[gram] / (family.own[gram] + d)
    guess = rng.standard_normal(d.shape)
    stubborn = np.zeros(12, dtype=bool)
    with pytest.MonkeyPatch.context() as patch:
        # Without any, few rows are iterated on as many are.
        patch.setattr(linear, "_CALLS", 0.0)
        held = family.hold(gram, d, kept, qs, gram)
        weight = np.full_like(d, 1e9)
        b, error = family.solve(
            gram, d, kept, qs, gram, np.zeros_like(d), guess, weight, stubborn, held
        )
    for row, k in enumerate(gram):
        expected = np.linalg.solve(grams[k] + np.diag(d[row]), qs[k])
        size = np.abs(expected).max()
        # What rounding does to the solution itself, along what the penalties leave most free.
        rounding = 1e-14 * size / min(1.0, np.linalg.eigvalsh(grams[k] + np.diag(d[row]))[0])
        assert np.all(np.abs(b[row] - expected) <= 20 * error[row] + 1e-8 + 100 * rounding)
    np.testing.assert_allclose(kept * guess, b, rtol=1e-5, atol=1e-30)


@pytest.mark.parametrize("nearly", [0.0, 1e-5, 1e-3])
def test_a_few_iterations_do_as_if_columns_were_independent(nearly, monkeypatch):
    rng = np.random.default_rng(0)
    X = _dependent("uncorrelated", 80, nearly, rng)
    q = X.T @ rng.standard_normal(len(X))
    family = GramFamily([X.T @ X])
    products = []

    def counted(gram, rows, matrices):
        products.extend([len(rows)] * (matrices.shape[1] == matrices.shape[2]))
        return by_gram(gram, rows, matrices)

    by_gram = linear.by_gram
    monkeypatch.setattr(linear, "by_gram", counted)
    d = 10.0 ** rng.uniform(-9, -5, (40, 80))
    gram = np.zeros(40, dtype=np.intp)
    kept = family.own[gram] / (family.own[gram] + d)
    guess, weight = np.tile(q, (40, 1)), np.full_like(d, 1e8)
    held = family.hold(gram, d, kept, q[np.newaxis], gram)
    stubborn = np.zeros(40, dtype=bool)
    family.solve(
        gram, d, kept, q[np.newaxis], gram, np.zeros_like(d), guess, weight, stubborn, held
    )
    assert not stubborn.any()
    assert sum(products) <= 6 * 40


def test_directions_without_a_column_in_common_stay_apart():
    rng = np.random.default_rng(1)
    n = 300
    X = np.concatenate([np.eye(k)[rng.integers(0, k, n)] for k in (3, 4, 5)], axis=1)
    X = _scaled(np.c_[X, rng.standard_normal((n, 8))])
    deflation = Deflation.of((X.T @ X)[np.newaxis])
    assert deflation.N.shape == (1, 20, 3)
    assert not deflation.W.any()
    which = {tuple(np.flatnonzero(direction)) for direction in deflation.N[0].T}
    assert which == {(0, 1, 2), (3, 4, 5, 6), (7, 8, 9, 10, 11)}


def test_too_many_directions_are_left_to_factorizations():
    rng = np.random.default_rng(2)
    X = rng.standard_normal((100, 6))
    X = _scaled(np.c_[X, X @ rng.standard_normal((6, 3))])
    assert Deflation.of((X.T @ X)[np.newaxis]) is None
    assert GramFamily([X.T @ X]).hold(None, None, None, None, None) is None


@pytest.mark.parametrize(
    ("size", "useless"), [(1e-3, False), (1e-15, True), (0.0, True), (np.nan, True)]
)
def test_penalties_lost_in_rounding_are_left_to_factorizations(size, useless):
    rng = np.random.default_rng(3)
    X = rng.standard_normal((200, 10))
    X = _scaled(np.c_[X, X[:, :3].sum(axis=1)])
    q = X.T @ rng.standard_normal(200)
    deflation = Deflation.of((X.T @ X)[np.newaxis])
    one = np.zeros(1, dtype=np.intp)
    held = deflation.hold(one, np.full((1, 11), size), q[np.newaxis])
    assert held.useless.tolist() == [useless]
    # No more can least squares without a minimum be solved, ...
    q += 1e-3 * deflation.N[0, :, 0]
    assert deflation.hold(one, np.full((1, 11), 1.0), q[np.newaxis]).useless.all()


def test_two_directions_of_which_penalties_show_one_are_left_to_factorizations():
    rng = np.random.default_rng(4)
    X = rng.standard_normal((200, 16))
    X[:, 0] = X[:, 2:4].sum(axis=1)
    X[:, 1] = X[:, 2] - X[:, 3]
    X = _scaled(X)
    q = X.T @ rng.standard_normal(200)
    deflation = Deflation.of((X.T @ X)[np.newaxis])
    assert deflation.N.shape[2] == 2
    h = np.zeros((1, 16))
    h[0, 2] = 1.0
    assert deflation.hold(np.zeros(1, dtype=np.intp), h, q[np.newaxis]).useless.all()
