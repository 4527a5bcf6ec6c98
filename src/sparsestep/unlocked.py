"""LAPACK without Python's lock: threads that factorize do not wait for each other.

The same as `scipy.linalg.lapack`, whose functions keep the lock. These are the functions that SciPy
offers to Cython, called through ctypes. Matrices are symmetric, contiguous and of float64; a
factorization leaves in them, above and on the diagonal, the transpose of Cholesky's factor L.
"""

import ctypes
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cython_lapack, lapack

__all__ = ["factorize", "invert", "posv", "substitute"]

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]


def posv(A: Array, q: Array) -> Mask:
    """Overwrite each of a stack of `q` by the solution of ``A x = q`` and each A by its factor.

    Says which have one.
    """
    m = A.shape[1]
    solved = np.empty(len(A), dtype=bool)
    function = _function("dposv")
    if function is None:
        for row, (matrix, right) in enumerate(zip(A, q, strict=True)):
            solved[row] = _with_the_lock("dposv")(b"L", m, 1, matrix, m, right, m) == 0
        return solved
    # Of small systems the calls take longest: nothing is done for each that is the same for all.
    n, one, stride, info = (ctypes.c_int(value) for value in (m, 1, max(1, m), 0))
    at_A, at_q = _passed(A), _passed(q)
    for row in range(len(A)):
        function(b"L", n, one, at_A, stride, at_q, stride, info)
        solved[row] = info.value == 0
        at_A += A.strides[0]
        at_q += q.strides[0]
    return solved


def factorize(A: Array) -> bool:
    """Overwrite A by its factor; False if it has none, not being positive definite."""
    return _lapack("dpotrf")(b"L", len(A), A, max(1, len(A))) == 0


def invert(factor: Array) -> bool:
    """Overwrite the factor, above and on the diagonal, by the inverse of the matrix it is from."""
    return _lapack("dpotri")(b"L", len(factor), factor, max(1, len(factor))) == 0


def substitute(factor: Array, rows: Array, *, transposed: bool) -> None:
    """Overwrite each of `rows` by its solution with L, or with its transpose."""
    n, stride, trans = len(factor), max(1, len(factor)), b"T" if transposed else b"N"
    _lapack("dtrtrs")(b"L", trans, b"N", n, len(rows), factor, stride, rows, stride)


def _lapack(name: str) -> Callable[..., int]:
    """A function of LAPACK, of letters, numbers and arrays, that returns its info."""
    function = _function(name)
    if function is None:
        return _with_the_lock(name)

    def call(*arguments: Any) -> int:
        info = ctypes.c_int(0)
        function(*map(_passed, arguments), info)
        return info.value

    return call


@cache
def _function(name: str) -> Callable[..., None] | None:
    """A function of LAPACK as ctypes has it; None if its integers are not of 32 bits."""
    capsule = cython_lapack.__pyx_capi__[name]
    signature = _capsule_api("PyCapsule_GetName", ctypes.c_char_p)(capsule)
    kinds = [kind.strip() for kind in signature.decode().partition("(")[2].rstrip(")").split(",")]
    if any(kind not in ("char *", "int *") and not kind.endswith("_d *") for kind in kinds):
        return None
    address = _capsule_api("PyCapsule_GetPointer", ctypes.c_void_p, ctypes.c_char_p)(
        capsule, signature
    )
    pointers: dict[str, Any] = {"char *": ctypes.c_char_p, "int *": ctypes.POINTER(ctypes.c_int)}
    types = [pointers.get(kind, ctypes.c_void_p) for kind in kinds]
    function: Callable[..., None] = ctypes.CFUNCTYPE(None, *types)(address)
    return function


def _passed(argument: Any) -> Any:
    """What ctypes is given for a letter, a number or an array."""
    if isinstance(argument, int):
        return ctypes.c_int(argument)
    if isinstance(argument, bytes):
        return argument
    assert argument.flags.c_contiguous and argument.dtype == np.float64
    return argument.__array_interface__["data"][0]


def _capsule_api(name: str, result: Any, *more: Any) -> Any:
    """A function of Python's C interface to capsules."""
    prototype = ctypes.PYFUNCTYPE(result, ctypes.py_object, *more)
    return prototype((name, ctypes.pythonapi))


def _with_the_lock(name: str) -> Callable[..., int]:
    """The same by SciPy's wrapper."""
    wrapper = getattr(lapack, name)

    def call(*arguments: Any) -> int:
        arrays = [each.T for each in arguments if isinstance(each, np.ndarray)]
        if not arrays[0].size:
            return 0
        options = {"trans": 1} if arguments[1] == b"T" else {}
        *found, info = wrapper(*arrays, lower=True, **options)
        # Of a triangular matrix nothing is returned but the solutions.
        for array, values in zip(arrays[-len(found) :], found, strict=True):
            array[...] = values
        return int(info)

    return call
