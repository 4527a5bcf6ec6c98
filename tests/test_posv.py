"""LAPACK's dposv through ctypes: the same bits as SciPy's, in place, and a word when singular."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.linalg import lapack

from sparsestep.posv import _with_the_lock, posv


def _system(m, seed):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((2 * m + 1, m))
    return X.T @ X, rng.standard_normal(m)


@given(m=st.integers(1, 40), seed=st.integers(0, 2**32 - 1))
def test_same_as_scipy(m, seed):
    S, q = _system(m, seed)
    factor, expected, _ = lapack.dposv(S, q, lower=True)
    A, x = S.copy(), q.copy()
    assert posv(A, x)
    assert np.array_equal(x, expected)
    assert np.array_equal(np.diagonal(A), np.diagonal(factor))


def test_says_when_not_positive_definite():
    assert not posv(np.array([[1.0, 2.0], [2.0, 1.0]]), np.ones(2))


def test_wrapper_with_the_lock_does_the_same():
    S, q = _system(7, 0)
    one, other = (S.copy(), q.copy()), (S.copy(), q.copy())
    assert posv(*one)
    assert _with_the_lock(*other) == 0
    assert np.array_equal(one[1], other[1])
    assert np.array_equal(np.diagonal(one[0]), np.diagonal(other[0]))


@pytest.mark.parametrize("m", [30, 200])
def test_same_bits_in_threads(m):
    systems = [_system(m, seed) for seed in range(20)]

    def solve(system):
        A, x = system[0].copy(), system[1].copy()
        assert posv(A, x)
        return x

    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(solve, systems))
    assert all(np.array_equal(x, solve(each)) for x, each in zip(found, systems, strict=True))
