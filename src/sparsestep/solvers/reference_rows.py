"""The literal loop from the rows, for more columns than rows: ``X'X`` loses its null space."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import linalg

from sparsestep.reference import loop

Array = NDArray[np.float64]


def sparsestep_reference_rows(
    A: ArrayLike,
    y: ArrayLike,
    alpha: float,
    *,
    penalty_factor: ArrayLike | None = None,
    callback: Callable[[float, Array], object] | None = None,
    **schedule: Any,
) -> Array:
    """The loop of `sparsestep_reference` from the rows A and y, centred if there is an intercept.

    With more columns than rows ``X'X`` is singular, and the digits in which its null space shows
    are lost in forming it. Here each step is a QR decomposition of the rows, and no matrix has a
    side of n_features twice. `schedule` are gamma_0 to epsilon of `sparsestep_reference`.
    """
    A, y = np.asarray(A, dtype=np.float64), np.asarray(y, dtype=np.float64)
    m = A.shape[1]
    factor = np.ones(m) if penalty_factor is None else np.asarray(penalty_factor, np.float64)
    used = np.flatnonzero(A.any(axis=0) & np.isfinite(factor))
    A_used = A[:, used]
    basis = row_space(A_used)
    A_used, along = basis.T @ A_used, basis.T @ y
    return loop(lambda d: ridge_rows(A_used, d, along), used, alpha, factor, callback, **schedule)


def ridge_rows(A: Array, d: Array, y: Array) -> Array:
    """Minimize ``||y - A b||^2 + b'diag(d)b``; among several solutions the one of least norm.

    As ``z = sqrt(d) b`` and the residual r together are the shortest vector for which
    ``A diag(d)^-1/2 z + r = y``. Columns without a penalty are projected out first.
    """
    free = d == 0
    b = np.zeros(len(d))
    # In a basis of what the free columns leave, no rounding remains of what they do not.
    N = linalg.null_space(A[:, free].T) if free.any() else np.eye(len(y))
    if N.size and not free.all():
        root = 1.0 / np.sqrt(d[~free])
        B = N.T @ A[:, ~free] * root
        u = least_norm(np.concatenate([B.T, np.eye(N.shape[1])]), N.T @ y)
        b[~free] = root * u[: len(root)]
    if free.any():
        b[free] = linalg.lstsq(A[:, free], y - A @ b)[0]
    return b


def row_space(A: Array) -> Array:
    """An orthonormal basis of the columns of A but for rounding, each by its own size.

    Along other directions A and y are rounding, which penalties smaller than that would fit.
    """
    U, s, _ = linalg.svd(A / np.linalg.norm(A, axis=0), full_matrices=False, check_finite=False)
    some: Array = U[:, s > max(A.shape) * np.finfo(np.float64).eps * s.max(initial=0)]
    return some


def least_norm(F: Array, y: Array) -> Array:
    """The shortest u with ``F'u = y``.

    With rows sorted by size and columns pivoted, each row of F keeps its own digits, however much
    the rows differ in size (Cox and Higham 1998).
    """
    order = np.argsort(-np.abs(F).max(axis=1), kind="stable")
    Q, R, pivot = linalg.qr(F[order], mode="economic", pivoting=True, check_finite=False)
    u = np.empty(len(F))
    u[order] = Q @ linalg.solve_triangular(R, y[pivot], trans=1, check_finite=False)
    return u
