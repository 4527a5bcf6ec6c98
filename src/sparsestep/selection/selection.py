"""Choosing alpha: cross-validation, one standard error, information criteria. All on moments.

A fold's validation error needs no row: for coefficients b and intercept a the fold's moments give
``sum w (y - a - x'b)^2`` exactly (`Moments.rss`).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln

from sparsestep.moments.moments import Moments
from sparsestep.selection.ties import first_least
from sparsestep.solvers.fitting import Fits

__all__ = [
    "CRITERIA",
    "CVErrors",
    "criterion_path",
    "least_criterion",
    "supported",
    "validation_errors",
]

Array = NDArray[np.float64]

CRITERIA = ("aic", "bic", "ebic", "gic")


@dataclass(frozen=True)
class CVErrors:
    """Validation errors of one target.

    Attributes
    ----------
    mse : ndarray of shape (n_alphas, n_folds)
        Mean squared error of each fold, weighted by the sample weights.
    weights : ndarray of shape (n_folds,)
        Weight of each fold: the sum of its sample weights.
    total : float
        The weight of all rows.
    """

    mse: Array
    weights: Array
    total: float

    @cached_property
    def mean(self) -> Array:
        """The cross-validation error of each alpha."""
        return np.asarray(np.average(self.mse, axis=1, weights=self.weights))

    @cached_property
    def se(self) -> Array:
        """Its standard error: the folds' standard deviation over the root of their number.

        Folds that test the same rows again, as those of repetitions, tell nothing of other rows:
        they count only as often as folds of their size are disjoint.
        """
        n_folds = len(self.weights)
        if n_folds == 1:
            return np.full(len(self.mse), np.nan)
        spread = np.abs(self.mse - self.mean[:, np.newaxis])
        # Squares of errors that are squares themselves may be beyond the range of floats.
        size = spread.max(axis=1, initial=0.0)
        size[size == 0] = 1.0
        square = np.average((spread / size[:, np.newaxis]) ** 2, axis=1, weights=self.weights)
        disjoint = min(n_folds, self.total / self.weights.mean())
        return np.asarray(size * np.sqrt(square * n_folds / (n_folds - 1) / disjoint))

    def of_choice(self) -> float:
        """The error of the smallest-error rule: of each fold at the best alpha of the others.

        The smallest of many errors is too small for new rows, because its own folds chose it. NaN
        for a single fold. (Another estimate from the same errors, of Tibshirani and Tibshirani
        2009, doubles the error where folds are single rows.)

        The models of the others are often the same for many alphas, and at the ends of these the
        fold's own model has lost a variable or gained one: the alpha in the middle is taken. (That
        nearest to the best of all folds would have been chosen with the fold itself.)
        """
        if len(self.weights) == 1:
            return np.nan
        rss = self.mse * self.weights
        others = rss.sum(axis=1, keepdims=True) - rss
        equals = [np.flatnonzero(each <= each.min() + _rounding(each)) for each in others.T]
        chosen = [each[len(each) // 2] for each in equals]
        folds = np.arange(len(self.weights))
        return float(np.average(self.mse[chosen, folds], weights=self.weights))

    def best(self) -> int:
        """Index of the smallest error; of equals the first, which is the largest alpha."""
        return _first_best(self.mean, np.arange(len(self.mse)))

    def best_within_one_se(self, n_nonzero: NDArray[np.intp]) -> int:
        """Index of the sparsest model within one standard error of the best; of equals the best."""
        best = self.best()
        if np.isnan(self.se[best]):
            return best
        near = np.flatnonzero(self.mean <= self.mean[best] + self.se[best])
        return _first_best(self.mean, near[n_nonzero[near] == n_nonzero[near].min()])


def _first_best(errors: Array, some: NDArray[np.intp]) -> int:
    """The first of `some` whose error is the smallest among them, but for rounding."""
    return first_least(errors, some, _rounding(errors, some))


def _rounding(errors: Array, some: NDArray[np.intp] | slice = slice(None)) -> float:
    """By how much equal errors may differ, the smallest of `some` being the least."""
    return float(1e-10 * errors[some].min() + 1e-14 * errors.max())


def validation_errors(
    fits: Sequence[Fits], valid: Sequence[Moments], total: float
) -> list[CVErrors]:
    """The errors of each target, of the fits to each training set on what it left out.

    `total` is the weight of all rows.
    """
    weights = np.array([fold.weight_sum for fold in valid])
    n_targets, n_alphas = fits[0].alphas.shape
    mse = np.empty((n_targets, n_alphas, len(valid)))
    for k, (fit, fold) in enumerate(zip(fits, valid, strict=True)):
        for t in range(n_targets):
            rss = fold.target(t).rss(fit.coefs[t].T, fit.intercepts[t])
            mse[t, :, k] = np.asarray(rss) / fold.weight_sum
    return [CVErrors(errors, weights, total) for errors in mse]


def criterion_path(
    criterion: str, rss: Array, n_nonzero: NDArray[np.intp], n: float, m: int
) -> Array:
    """Information criterion of each model: ``n log(rss / n)`` plus a price for its k variables.

    ======  =======================================
    aic     2 k
    bic     log(n) k
    ebic    log(n) k + 2 log(m choose k)
    gic     log(log n) log(m) k, each at least 1
    ======  =======================================

    (Akaike 1974; Schwarz 1978; Chen and Chen 2008; Fan and Tang 2013.) Residuals that are rounding
    count as one size, so that of several perfect fits the sparsest is the best.
    """
    k = np.asarray(n_nonzero, dtype=np.float64)
    log_n = np.log(max(n, 2.0))
    if criterion == "aic":
        price = 2.0 * k
    elif criterion == "bic":
        price = log_n * k
    elif criterion == "ebic":
        price = log_n * k + 2.0 * (gammaln(m + 1) - gammaln(k + 1) - gammaln(m - k + 1))
    elif criterion == "gic":
        price = np.log(max(log_n, np.e)) * np.log(max(m, np.e)) * k
    else:
        raise ValueError(f"criterion must be one of {', '.join(CRITERIA)}; got {criterion!r}.")
    rounding = max(1e-12 * float(np.max(rss)), np.finfo(np.float64).tiny)
    return np.asarray(n * np.log(np.maximum(rss, rounding) / n) + price)


def least_criterion(values: Array, among: NDArray[np.intp] | None = None) -> int:
    """Index of the smallest criterion; of equals but for rounding that of the largest alpha."""
    among = np.arange(len(values)) if among is None else among
    return first_least(values, among, 1e-12 * np.abs(values[among]).max())


def supported(n_nonzero: NDArray[np.intp], largest: int | None) -> NDArray[np.intp]:
    """The models with no more than `largest` variables beside those that all of them have.

    As the residuals of ever more variables go to zero, so does every price of these beside
    ``n log(rss / n)``.
    """
    largest = len(n_nonzero) and n_nonzero.max() if largest is None else largest + n_nonzero.min()
    return np.flatnonzero(n_nonzero <= largest)
