"""Standard errors and intervals of a selected model, as if it had been chosen beforehand.

With A the variables kept and n the sum of the weights,

    sigma^2 = rss / (n - |A| - intercept),    cov(b_A) = sigma^2 (S_AA)^-1.

Linearly dependent columns of A have no standard error, as their effects are not identified.
"""

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtrit

from sparsestep.moments.moments import Moments
from sparsestep.solvers.collinearity import Collinearity

Array = NDArray[np.float64]


def standard_errors(
    moments: Moments, coef: Array, known: Collinearity, *, fit_intercept: bool
) -> tuple[Array, float]:
    """Standard errors of the non-zero coefficients, NaN elsewhere; and the degrees of freedom.

    `known` is the `collinearity` of the coefficients.
    """
    errors = np.full(len(coef), np.nan)
    free = moments.weight_sum - len(known.support) - fit_intercept
    if free <= 0 or not len(known.support):
        return errors, max(float(free), 0.0)
    rss = float(moments.rss(coef) if fit_intercept else moments.rss(coef, 0.0))
    errors[known.support] = np.sqrt(rss / free) * np.sqrt(known.inverse_diagonal())
    return errors, float(free)


def t_interval(coef: Array, errors: Array, free: float, level: float) -> tuple[Array, Array]:
    """Ends of the two-sided interval of the given level."""
    reach = stdtrit(free, 0.5 + level / 2.0) * errors if free > 0 else np.full_like(coef, np.nan)
    return coef - reach, coef + reach
