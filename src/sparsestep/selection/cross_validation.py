"""Choosing alpha by cross-validation, on moments: the smallest error, or one standard error above.

A fold's validation error needs no row: for coefficients b and intercept a the fold's moments give
``sum w (y - a - x'b)^2`` exactly (`Moments.rss`).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from sparsestep.moments.moments import Moments
from sparsestep.selection.criteria import first_least
from sparsestep.solvers.fitting import Fits

__all__ = ["CVErrors", "validation_errors"]

Array = NDArray[np.float64]


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
