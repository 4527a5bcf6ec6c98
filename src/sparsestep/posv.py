"""LAPACK's dposv without Python's lock: threads that factorize do not wait for each other.

The same as ``scipy.linalg.lapack.dposv(A, q, lower=True, overwrite_a=True, overwrite_b=True)``,
which keeps the lock. The function is the one SciPy offers to Cython, called through ctypes.
"""

import ctypes
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cython_lapack, lapack

__all__ = ["posv"]

Array = NDArray[np.float64]


def posv(A: Array, q: Array) -> bool:
    """Overwrite `q` by the solution of ``A x = q``; False if A is not positive definite.

    The diagonal of A becomes that of its Cholesky factor. Both are contiguous, of float64.
    """
    assert A.flags.c_contiguous and q.flags.c_contiguous
    return _dposv()(A, q) == 0


@cache
def _dposv() -> Callable[[Array, Array], int]:
    """The function that solves in place and returns LAPACK's info."""
    capsule = cython_lapack.__pyx_capi__["dposv"]
    name = _capsule_api("PyCapsule_GetName", ctypes.c_char_p)(capsule)
    # A build with integers of 64 bits has another signature.
    if name.decode().count(" int *") + name.decode().count("(int *") != 5:
        return _with_the_lock
    address = _capsule_api("PyCapsule_GetPointer", ctypes.c_void_p, ctypes.c_char_p)(capsule, name)
    integer, pointer = ctypes.POINTER(ctypes.c_int), ctypes.c_void_p
    function = ctypes.CFUNCTYPE(
        None, ctypes.c_char_p, integer, integer, pointer, integer, pointer, integer, integer
    )(address)

    one = ctypes.c_int(1)

    def solve(A: Array, q: Array) -> int:
        n, info = ctypes.c_int(len(q)), ctypes.c_int(0)
        a, b = A.__array_interface__["data"][0], q.__array_interface__["data"][0]
        function(b"L", n, one, a, n, b, n, info)
        return info.value

    return solve


def _capsule_api(name: str, result: Any, *more: Any) -> Any:
    """A function of Python's C interface to capsules."""
    prototype = ctypes.PYFUNCTYPE(result, ctypes.py_object, *more)
    return prototype((name, ctypes.pythonapi))


def _with_the_lock(A: Array, q: Array) -> int:
    """The same by SciPy's wrapper."""
    info: int
    A.T[...], q[...], info = lapack.dposv(A.T, q, lower=True)
    return info
