"""Ridge-like systems and least squares for many rows at once, against NumPy one by one."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from designs import design
from sparsestep import linear
from sparsestep.linear import GramFamily
from sparsestep.products import by_gram


def _gram(kind, m, seed):
    """A Gram matrix with unit diagonal and a right-hand side whose largest entry is 1."""
    rng = np.random.default_rng(seed)
    X = design(kind, 4 * m + 10, m, rng)
    X = X - X.mean(axis=0)
    X /= np.linalg.norm(X, axis=0)
    q = X.T @ (X @ rng.standard_normal(m) + rng.standard_normal(len(X)))
    return X.T @ X, q / np.abs(q).max()


@given(
    kind=st.sampled_from(["uncorrelated", "constant", "ar1", "blocks"]),
    m=st.integers(1, 40),
    seed=st.integers(0, 2**32 - 1),
    spread=st.floats(0, 6),
    single=st.booleans(),
    calls=st.sampled_from([0.0, linear._CALLS]),
)
def test_systems_of_several_matrices(kind, m, seed, spread, single, calls):
    grams, qs = zip(*(_gram(kind, m, seed + k) for k in range(3)), strict=True)
    family = GramFamily(grams)
    gram = np.repeat(np.arange(3), 4)
    rng = np.random.default_rng(seed)
    d = 10.0 ** rng.uniform(-spread, spread, (12, m))
    q = np.stack(qs)[gram]
    ols = family.unpenalized(gram, q)
    kept = family.tau[gram] / (family.tau[gram] + d)
    guess, weight = ols.copy(), np.full_like(d, 1e6 if single else 1e10)
    dtype = np.float32 if single else np.float64
    d, kept, ols, guess, weight = (x.astype(dtype) for x in (d, kept, ols, guess, weight))
    with np.errstate(divide="ignore"), pytest.MonkeyPatch.context() as patch:
        # Without any, few rows are iterated on as many are.
        patch.setattr(linear, "_CALLS", calls)
        b, error = family.solve(
            gram, d, kept, np.stack(qs), gram, ols, guess, weight, np.zeros(12, dtype=bool)
        )
    expected = np.stack(
        [
            np.linalg.solve(grams[k] + np.diag(row.astype(float)), rhs)
            for k, row, rhs in zip(gram, d, q, strict=True)
        ]
    )
    rounding = 1e-6 if single else 1e-12
    scale = np.abs(ols).max(axis=1, keepdims=True)
    assert np.all(np.abs(b - expected) <= 20 * error + 100 * rounding * scale)
    assert np.all(error <= 1e-3 * scale)
    np.testing.assert_allclose(kept * guess, b, rtol=1e-5, atol=1e-30)


@given(
    kind=st.sampled_from(["ar1", "ill_conditioned"]),
    m=st.integers(2, 30),
    seed=st.integers(0, 2**32 - 1),
    nested=st.booleans(),
)
def test_least_squares_on_many_supports(kind, m, seed, nested):
    S, q = _gram(kind, m, seed)
    family = GramFamily([S])
    rng = np.random.default_rng(seed)
    if nested:
        order, sizes = rng.permutation(m), rng.integers(0, m + 1, 12)
        supports = np.argsort(order) < sizes[:, np.newaxis]
    else:
        supports = rng.random((12, m)) < rng.random()
    found = family.least_squares(0, q, supports, family.unpenalized(np.zeros(1, int), q[None])[0])
    for b, support in zip(found, supports, strict=True):
        assert not b[~support].any()
        rounding = np.finfo(float).eps * (np.abs(S) @ np.abs(b) + np.abs(q))
        # By the inverse, if there is a good one, some digits are lost that do not count.
        rounding += 1e-12 * np.abs(b).max() * family.well_conditioned
        assert np.all(np.abs(q - S @ b)[support] <= 100 * rounding[support])
        if kind == "ar1":
            inside = np.linalg.solve(S[np.ix_(support, support)], q[support])
            np.testing.assert_allclose(b[support], inside, rtol=1e-8, atol=1e-10)


def test_supports_one_within_the_other_share_a_factorization(monkeypatch):
    S, q = _gram("constant", 20, 0)
    family = GramFamily([S])
    supports = np.arange(20) < np.arange(20, 0, -1)[:, np.newaxis]
    supports[7] = np.arange(20) >= 3
    alone = []
    one = GramFamily._one_support
    monkeypatch.setattr(
        GramFamily, "_one_support", lambda *args: alone.append(args[3].sum()) or one(*args)
    )
    family.least_squares(0, q, supports, np.linalg.solve(S, q))
    assert alone == [17]


@given(m=st.integers(2, 25), seed=st.integers(0, 2**32 - 1))
def test_what_a_support_leaves_of_each_column(m, seed):
    S, q = _gram("blocks", m, seed)
    support = np.random.default_rng(seed).random(m) < 0.5
    left, drawn, b = GramFamily([S]).beside(0, q, support)
    inside = np.flatnonzero(support)
    for j in range(m):
        others = inside[inside != j]
        explained = S[j, others] @ np.linalg.solve(S[np.ix_(others, others)], S[others, j])
        assert left[j] == pytest.approx(S[j, j] - explained, rel=1e-8, abs=1e-12)
    np.testing.assert_allclose(drawn, np.where(support, 0, np.abs(q - S @ b)), atol=1e-9)
    np.testing.assert_allclose((S @ b)[support], q[support], atol=1e-9)


def test_columns_without_a_factorization_are_named():
    X = np.random.default_rng(0).standard_normal((9, 3))
    X[:, 2] = X[:, 0]
    X /= np.linalg.norm(X, axis=0)
    S = X.T @ X
    S[0, 2] = S[2, 0] = 1 + 1e-15
    assert GramFamily([S]).beside(0, X.T @ X[:, 0], np.ones(3, dtype=bool)) is None


@pytest.mark.parametrize("counts", [(1, 0, 5), (2, 3, 4), (0, 0, 1)])
def test_each_row_meets_its_own_matrix(counts):
    rng = np.random.default_rng(0)
    matrices = rng.standard_normal((3, 6, 6))
    gram = np.repeat(np.arange(3), counts)
    rows = rng.standard_normal((len(gram), 6))
    expected = np.stack([row @ matrices[k] for k, row in zip(gram, rows, strict=True)])
    np.testing.assert_allclose(by_gram(gram, rows, matrices), expected, rtol=1e-12)
