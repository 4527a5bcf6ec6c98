"""LAPACK through ctypes: the same bits as SciPy's, in place, and a word when singular."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.linalg import lapack

from sparsestep import unlocked
from sparsestep.unlocked import factorize, invert, posv, substitute


def _system(m, seed):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((2 * m + 1, m))
    return X.T @ X, rng.standard_normal(m)


@pytest.fixture(params=["without the lock", "with the lock"])
def _either_way(request, monkeypatch):
    if request.param == "with the lock":
        monkeypatch.setattr(unlocked, "_function", lambda name: None)


@given(m=st.integers(1, 40), count=st.integers(0, 4), seed=st.integers(0, 2**30))
def test_same_as_scipy(m, count, seed):
    systems = [_system(m, seed + k) for k in range(count)]
    A = np.array([S for S, _ in systems]).reshape(count, m, m)
    x = np.array([q for _, q in systems]).reshape(count, m)
    assert posv(A, x).all()
    for k, (S, q) in enumerate(systems):
        factor, expected, _ = lapack.dposv(S, q, lower=True)
        assert np.array_equal(x[k], expected)
        assert np.array_equal(np.triu(A[k]), np.tril(factor).T)


@pytest.mark.usefixtures("_either_way")
@pytest.mark.parametrize("m", [0, 1, 7, 60])
def test_solves_factorizes_inverts_and_substitutes(m):
    S, q = _system(m, m)
    (A,), (x,) = stack = S[np.newaxis].copy(), q[np.newaxis].copy()
    assert posv(*stack).all()
    np.testing.assert_allclose(S @ x, q, rtol=1e-10, atol=1e-10)
    factor = S.copy()
    assert factorize(factor)
    assert np.array_equal(np.triu(factor), np.triu(A))
    L = np.triu(factor).T
    np.testing.assert_allclose(L @ L.T, S, rtol=1e-12, atol=1e-12)
    rows = np.stack([q, 2 * q, q + 1])
    for transposed, matrix in ((False, L), (True, L.T)):
        solved = rows.copy()
        substitute(factor, solved, transposed=transposed)
        np.testing.assert_allclose(solved @ matrix.T, rows, rtol=1e-9, atol=1e-9)
    assert invert(factor)
    inverse = np.triu(factor) + np.triu(factor, 1).T
    np.testing.assert_allclose(inverse @ S, np.eye(m), atol=1e-9)


@pytest.mark.usefixtures("_either_way")
def test_says_when_not_positive_definite():
    indefinite = np.array([[1.0, 2.0], [2.0, 1.0]])
    assert posv(np.array([np.eye(2), indefinite]), np.ones((2, 2))).tolist() == [True, False]
    assert not factorize(indefinite.copy())


@pytest.mark.parametrize("m", [30, 200])
def test_same_bits_in_threads(m):
    systems = [_system(m, seed) for seed in range(20)]

    def solve(system):
        A, x = system[0][np.newaxis].copy(), system[1][np.newaxis].copy()
        assert posv(A, x).all()
        return x

    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(solve, systems))
    assert all(np.array_equal(x, solve(each)) for x, each in zip(found, systems, strict=True))
