"""The penalty, its derivative and its majorizer (the paper's sections 2.3 and 3.2).

Everything is written in the cosine and sine of the triangle with legs ``b`` and ``gamma``,

    c = b / h,   s = gamma / h,   h = sqrt(b^2 + gamma^2),

because ``b^2`` and ``gamma^2`` overflow or vanish long before the answers do. Coefficients `b`,
those of the step before `b_old` (the supporting points of the majorizer) and the positive `gamma`
are broadcast against each other.
"""

import numpy as np
from numpy.typing import ArrayLike, NDArray


def penalty(b: ArrayLike, gamma: ArrayLike) -> NDArray[np.float64]:
    """Value of the penalty, ``b^2 / (b^2 + gamma^2)``.

    It lies between 0 and 1, and for gamma -> 0 it becomes the counting norm: 0 at ``b = 0`` and 1
    elsewhere. The sum over the coefficients times ``alpha`` is the penalty term of the loss.

    Examples
    --------
    >>> from sparsestep.penalty import penalty
    >>> penalty([0.0, 1.0, -3.0], gamma=1.0)
    array([0. , 0.5, 0.9])
    >>> penalty([0.0, 1.0, -3.0], gamma=1e-9)
    array([0., 1., 1.])
    """
    c, _, _ = _triangle(b, gamma)
    return c * c


def derivative(b: ArrayLike, gamma: ArrayLike) -> NDArray[np.float64]:
    """Derivative of the penalty, ``2 gamma^2 b / (b^2 + gamma^2)^2``.

    It vanishes as ``2 gamma^2 / b^3`` for large ``|b|``, which is why large coefficients are not
    shrunk.

    Examples
    --------
    >>> from sparsestep.penalty import derivative
    >>> derivative([0.0, 1.0, 100.0], gamma=1.0).round(6)
    array([0.e+00, 5.e-01, 2.e-06])
    """
    c, s, h = _triangle(b, gamma)
    return 2.0 * c * s * (s / h)


def majorizer(b: ArrayLike, b_old: ArrayLike, gamma: ArrayLike) -> NDArray[np.float64]:
    """Quadratic in `b` that lies above the penalty and touches it at `b_old`.

    ``(gamma^2 b^2 + b_old^4) / (b_old^2 + gamma^2)^2``, section 3.2 of the paper, where `b_old` is
    called alpha. It exceeds the penalty by a multiple of ``(b^2 - b_old^2)^2``; beyond the range
    of floats it is ``inf``.

    Examples
    --------
    >>> from sparsestep.penalty import majorizer, penalty
    >>> majorizer([0.0, 1.0, 2.0], b_old=1.0, gamma=1.0)
    array([0.25, 0.5 , 1.25])
    >>> penalty([0.0, 1.0, 2.0], gamma=1.0)
    array([0. , 0.5, 0.8])
    """
    c, s, h = _triangle(b_old, gamma)
    with np.errstate(over="ignore"):
        quadratic: NDArray[np.float64] = np.square(s / h * np.asarray(b, dtype=np.float64))
    return quadratic + c**4


def weights(b_old: ArrayLike, gamma: ArrayLike) -> NDArray[np.float64]:
    """Curvatures of the majorizer, ``Omega_jj = gamma^2 / (b_old^2 + gamma^2)^2``.

    One step of the algorithm is a ridge regression with penalties ``alpha * Omega_jj`` (the
    paper's definition of Omega in section 3.2). They lie between 0 and ``1 / gamma^2``.

    Examples
    --------
    >>> from sparsestep.penalty import weights
    >>> weights([0.0, 1.0, 3.0], gamma=1.0)
    array([1.  , 0.25, 0.01])
    """
    _, s, h = _triangle(b_old, gamma)
    return np.square(s / h)


def _triangle(
    b: ArrayLike, gamma: ArrayLike
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Cosine, sine and hypotenuse: ``b/h, gamma/h, h`` with ``h = sqrt(b^2 + gamma^2)``."""
    b = np.asarray(b, dtype=np.float64)
    gamma = np.asarray(gamma, dtype=np.float64)
    h = np.hypot(b, gamma)
    return b / h, gamma / h, h
