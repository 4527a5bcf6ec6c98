"""How far fits are from their optimality conditions: no method is beaten for want of convergence.

A violation is the largest distance, over the variables, of minus the gradient of the loss from what
the penalty's derivative may be there, relative to the largest gradient at b = 0. All take the fits
as rows of B.
"""

import numpy as np
from numpy.typing import NDArray

__all__ = ["concave_violation", "least_squares_violation", "ridge_violation"]

Array = NDArray[np.float64]


def concave_violation(
    C: Array, r: Array, lambdas: Array, B: Array, a: float = np.inf, *, scad: bool = False
) -> float:
    """Worst violation of fits of the lasso, of MC+ or of SCAD, as `coordinate.descend` takes them.

    Parameters
    ----------
    C, r, lambdas
        ``X'X / n``, ``X'y / n`` and the lambda of each fit.
    B : ndarray of shape (k, m)
    a, scad
        As in `coordinate.descend`.

    Returns
    -------
    float

    Examples
    --------
    >>> import numpy as np
    >>> from sparsestep.study.optimality import concave_violation
    >>> C, r, lambdas = np.eye(2), np.array([3.0, 0.5]), np.array([1.0])
    >>> concave_violation(C, r, lambdas, np.array([[2.0, 0.0]]))
    0.0
    >>> round(concave_violation(C, r, lambdas, np.array([[2.3, 0.0]])), 12)
    0.1
    """
    lam = np.asarray(lambdas)[:, None]
    gradient = B @ C - r
    size = np.abs(B)
    if scad:
        slope = np.where(size <= lam, lam, np.maximum(a * lam - size, 0.0) / (a - 1.0))
    else:
        slope = np.maximum(lam - size / a, 0.0)
    at_zero = np.maximum(np.abs(gradient) - lam, 0.0)
    return _worst(np.where(B == 0, at_zero, gradient + np.sign(B) * slope), r)


def ridge_violation(S: Array, q: Array, alphas: Array, B: Array) -> float:
    """Worst violation of ``S b + alpha b = q``.

    Parameters
    ----------
    S, q, alphas
        ``X'X``, ``X'y`` and the alpha of each fit.
    B : ndarray of shape (k, m)

    Returns
    -------
    float
    """
    return _worst(B @ S + np.asarray(alphas)[:, None] * B - q, q)


def least_squares_violation(S: Array, q: Array, B: Array) -> float:
    """Worst violation of ``S b = q`` at the variables in use: what is kept is not shrunk.

    Parameters
    ----------
    S, q
        ``X'X`` and ``X'y``.
    B : ndarray of shape (k, m)

    Returns
    -------
    float
    """
    return _worst(np.where(B == 0, 0.0, B @ S - q), q)


def _worst(violation: Array, start: Array) -> float:
    """The largest violation, relative to the gradient at zero."""
    return float(np.max(np.abs(violation)) / np.max(np.abs(start)))
