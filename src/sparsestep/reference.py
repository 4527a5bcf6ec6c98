"""Algorithm 1 of the paper as printed: slow, short, and what every faster route must agree with."""

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import linalg

from sparsestep.penalty import weights

Array = NDArray[np.float64]


def sparsestep_reference(
    S: ArrayLike,
    q: ArrayLike,
    alpha: float,
    *,
    gamma_0: float = 1e6,
    gamma_stop: float = 1e-8,
    gamma_step: float = 2.0,
    t_max: int = 2,
    epsilon: float = 1e-7,
    penalty_factor: ArrayLike | None = None,
    callback: Callable[[float, Array], object] | None = None,
) -> Array:
    """Coefficients by the literal loop, from ``S = X'X`` and ``q = X'y``.

    The loss at gamma is ``||y - Xb||^2 + alpha * sum_j f_j b_j^2 / (b_j^2 + gamma^2)``. From
    ``b = 0``, and for gamma = gamma_0, gamma_0 / gamma_step, ... while gamma > gamma_stop, `t_max`
    times::

        d_j = alpha * f_j * gamma^2 / (b_j^2 + gamma^2)^2
        b   = (X'X + diag(d))^-1 X'y

    At the end ``|b_j| < epsilon`` becomes 0.

    Parameters
    ----------
    S : array_like of shape (n_features, n_features)
        ``X'X``, of centred columns if the model has an intercept.
    q : array_like of shape (n_features,)
        ``X'y``.
    alpha : float
        Strength of the penalty in the units of ``||y - Xb||^2``, as in scikit-learn's ``Ridge``:
        the paper's lambda.
    gamma_0, gamma_stop, gamma_step : float
        First gamma, the gamma to stop at, and the factor between neighbours.
    t_max : int
        Steps at each gamma.
    epsilon : float
        Smaller coefficients are set to zero at the end.
    penalty_factor : array_like of shape (n_features,), optional
        Multipliers ``f_j`` of alpha, 1 by default. 0 keeps a variable always; ``inf`` keeps it out.
    callback : callable, optional
        Called as ``callback(gamma, b)`` after every step.

    Returns
    -------
    ndarray of shape (n_features,)
        The coefficients. A column of zeros gets the coefficient 0.

    Examples
    --------
    >>> import numpy as np
    >>> from sparsestep.reference import sparsestep_reference
    >>> S = np.array([[10.0, 2.0], [2.0, 10.0]])
    >>> sparsestep_reference(S, S @ [3.0, 0.1], alpha=1.0)
    array([3.02, 0.  ])
    """
    S, q = np.asarray(S, dtype=np.float64), np.asarray(q, dtype=np.float64)
    factor = np.ones_like(q) if penalty_factor is None else np.asarray(penalty_factor, np.float64)
    used = np.flatnonzero((np.diag(S) > 0) & np.isfinite(factor))
    S_used = S[np.ix_(used, used)]
    length = np.sqrt(np.diag(S_used))
    unit, q_used = S_used / length / length[:, np.newaxis], q[used]
    if cholesky(unit) is None:
        values, vectors = linalg.eigh(unit)
        q_used = length * in_range(values, vectors, q_used / length)
    schedule = (gamma_0, gamma_stop, gamma_step, t_max, epsilon)
    return loop(lambda d: ridge(S_used, d, q_used), used, alpha, factor, callback, *schedule)


def loop(
    solve: Callable[[Array], Array],
    used: NDArray[np.intp],
    alpha: float,
    factor: Array,
    callback: Callable[[float, Array], object] | None,
    gamma_0: float = 1e6,
    gamma_stop: float = 1e-8,
    gamma_step: float = 2.0,
    t_max: int = 2,
    epsilon: float = 1e-7,
) -> Array:
    """Algorithm 1; `solve` gives the coefficients of the used columns for their penalties."""
    if not (gamma_step > 1 and gamma_stop > 0):
        raise ValueError(
            f"gamma_step must be greater than 1 and gamma_stop positive, or the loop never ends; "
            f"got gamma_step={gamma_step!r} and gamma_stop={gamma_stop!r}."
        )
    alphas = alpha * factor[used]
    b = np.zeros_like(factor)
    gamma = gamma_0
    while gamma > gamma_stop:
        for _ in range(t_max):
            b[used] = solve(alphas * weights(b[used], gamma))
            if callback is not None:
                callback(gamma, b.copy())
        gamma /= gamma_step
    b[(np.abs(b) < epsilon) & (factor > 0)] = 0.0
    return b


def negligible(m: int) -> float:
    """What rounding may leave of a column beside m others, all of unit length."""
    return 10 * m * float(np.finfo(np.float64).eps)


def cholesky(A: Array) -> Array | None:
    """The lower factor of a matrix of unit diagonal; None if a pivot may be rounding."""
    factor, failed = linalg.lapack.dpotrf(A, lower=True)
    if failed or not np.all(np.diag(factor) ** 2 > negligible(len(A))):
        return None
    return np.asarray(factor)


def rounding(values: Array) -> float:
    """Up to which size eigenvalues of such a matrix, in order, are rounding.

    That of its entries comes to eps sqrt(m), that of the eigenvalues to eps times the largest.
    """
    eps = float(np.finfo(np.float64).eps)
    return float(4 * eps * (np.sqrt(len(values)) + values[-1]))


def in_range(values: Array, vectors: Array, q: Array) -> Array:
    """`q` without its part outside the range of the matrix of these eigenvectors; or rows of q.

    ``X'y`` lies in the range of ``X'X``: the rest is rounding, which small penalties would blow up.
    Where the range itself is lost to rounding, the rest may be an effect; it stays if it explains
    more than a thousandth of what the best column does.
    """
    N = vectors[:, values <= rounding(values)]
    along = q @ N
    explained = np.sum(along**2, axis=-1) / rounding(values)
    nothing = explained <= 1e-3 * np.max(q**2, axis=-1)
    return np.asarray(q - np.where(nothing[..., np.newaxis], along, 0.0) @ N.T)


def ridge(S: Array, d: Array, q: Array) -> Array:
    """Solve ``(S + diag(d)) b = q``; among several solutions the one of least ``b'diag(d)b``.

    Where d is infinite, b is 0.
    """
    free = np.isfinite(d)
    if not free.all():
        b: Array = np.zeros_like(q)
        b[free] = ridge(S[np.ix_(free, free)], d[free], q[free])
        return b
    # d reaches 1e20 beside S_jj = n. Scaled to a unit diagonal, only true collinearity is singular.
    scale = 1.0 / np.sqrt(np.diag(S) + d)
    A = scale[:, np.newaxis] * S * scale
    np.fill_diagonal(A, 1.0)
    factor = cholesky(A)
    if factor is not None:
        b = scale * linalg.cho_solve((factor, True), scale * q, check_finite=False)
        return b

    # Along the null space of A the data say nothing and d is lost to rounding in A, yet d still
    # decides there. But for directions within the columns without a penalty: along these nothing
    # does, and the solution of least norm is taken.
    values, vectors = linalg.eigh(A)
    lost = values <= rounding(values)
    U, N = vectors[:, ~lost], vectors[:, lost]
    b = scale * (U @ (U.T @ (scale * q) / values[~lost]))
    _, share, V = linalg.svd(N * (d > 0)[:, np.newaxis])
    penalized = np.count_nonzero(share > np.sqrt(negligible(len(q))))
    for root, part in ((np.sqrt(d), V[:penalized]), (np.ones_like(d), V[penalized:])):
        if len(part):
            along = scale[:, np.newaxis] * (N @ part.T)
            b -= along @ linalg.lstsq(root[:, np.newaxis] * along, root * b)[0]
    return b
