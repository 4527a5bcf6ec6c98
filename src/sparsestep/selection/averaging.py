"""The average of the models of a path, weighted by how well each predicts held-out rows.

With normal errors the likelihood of n held-out rows, at its best variance, falls with the
cross-validation error as ``error ** (-n / 2)``. (Geisser and Eddy 1979 compare models by such
predictive likelihoods.) The weight of a model is ``error ** (-n / 3)``: two thirds of the
exponent, as the likelihood trusts the smallest of many errors too much. A variable is kept if the
models that include it have more than half of the weight (the median probability model of Barbieri
and Berger 2004). The other variables are left out, and their effect is regressed on those kept.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import lapack

from sparsestep.moments.moments import Moments
from sparsestep.selection.cross_validation import CVErrors
from sparsestep.selection.fitting import Fits
from sparsestep.solvers.scaled_problem import unit_gram

Array = NDArray[np.float64]
Index = NDArray[np.intp]

# Errors below this share of the largest are rounding, and count as equal.
_ROUNDING = 1e-14
# Factor of the log-likelihood. It and the next were chosen by simulation: docs/choosing_alpha.md.
_TEMPER = 2.0 / 3.0
LEAST_INCLUSION = 0.5


def model_weights(errors: CVErrors) -> Array:
    """The weight of each alpha's model; they sum to 1."""
    floor = max(_ROUNDING * errors.mean.max(), np.finfo(np.float64).tiny)
    log_weights = -0.5 * _TEMPER * errors.n_tested * np.log(np.maximum(errors.mean, floor))
    weights = np.exp(log_weights - log_weights.max())
    return np.asarray(weights / weights.sum())


def averaged(
    weights: Array, coefs: Array, moments: Moments, rho: float
) -> tuple[Array, float, Array]:
    """Coefficients and intercept of the average, and the weight of each variable.

    `coefs` has a row for each model, `moments` are those that the models were fitted to, and `rho`
    is the penalty that shrank them.
    """
    inclusion = np.minimum(weights @ (coefs != 0), 1.0)  # but for rounding
    mean = weights @ coefs
    kept = np.flatnonzero((inclusion > LEAST_INCLUSION) & (mean != 0))
    left_out = np.flatnonzero((inclusion <= LEAST_INCLUSION) & (mean != 0))
    coef = np.zeros_like(mean)
    coef[kept] = mean[kept] + _regressed(kept, left_out, mean, moments, rho)
    return coef, float(moments.mean_y - coef @ moments.mean_x), inclusion


def _regressed(kept: Index, left_out: Index, mean: Array, moments: Moments, rho: float) -> Array:
    """The predictions ``X_left_out mean_left_out`` regressed on the variables kept.

    Large coefficients of collinear variables cancel each other, so that leaving out one of them
    without this correction would ruin the predictions.
    """
    if not len(kept) or not len(left_out):
        return np.zeros(len(kept))
    both = np.concatenate([kept, left_out])
    S, length = unit_gram(moments, both)
    k = len(kept)
    share = S[:k, k:] @ (mean[left_out] * length[k:])
    S = S[:k, :k]
    np.fill_diagonal(S, 1.0 + rho)
    solution, failed = lapack.dposv(S, share)[1:]
    if failed:  # dependent columns
        solution = np.linalg.lstsq(S, share)[0]
    return np.asarray(solution / length[:k])


def errors_of_averages(
    errors: CVErrors,
    fits: Sequence[Fits],
    train: Sequence[Moments],
    test: Sequence[Moments],
    rho: float,
) -> CVErrors:
    """The error of averaging on each fold, with the weights that the other folds give."""

    def error(k: int, others: CVErrors) -> float:
        weights = model_weights(others)
        coef, intercept, _ = averaged(weights, fits[k].coefs, train[k], rho)
        return float(test[k].rss(coef, intercept) / test[k].weight_sum)

    return errors.by_others(error)
