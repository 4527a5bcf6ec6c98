"""Choosing alpha by cross-validation, on moments: the smallest error, or a sparser model near it.

A model is near if its error exceeds the smallest by no more than a standard error: that of the
smallest error ("1se"), most of which is noise common to all alphas, or half that of the difference
of the two errors ("paired").

A held-out error needs no row: for coefficients b and intercept a the fold's moments give
``sum w (y - a - x'b)^2`` exactly (`Moments.rss`).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from sparsestep.moments.moments import Moments
from sparsestep.selection.criteria import first_least
from sparsestep.solvers.fitting import Fits

Array = NDArray[np.float64]

Rule = Literal["min", "paired", "1se", "average"]
RULES = get_args(Rule)
# By how many standard errors of the difference an error may exceed the smallest, in "paired".
# Chosen by simulation: docs/choosing_alpha.md.
PAIRED_SHARE = 0.5


@dataclass(frozen=True)
class CVErrors:
    """Held-out errors of one target.

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
        """The standard error of `mean`: the folds' standard deviation over sqrt(n_folds)."""
        return self._standard_error(self.mse)

    @cached_property
    def paired_se(self) -> Array:
        """The standard error of the difference of each error to the smallest."""
        return self._standard_error(self.mse - self.mse[self.best()])

    @property
    def n_tested(self) -> float:
        """The weight of the rows in some test set: `total`, unless splits leave rows out."""
        return float(min(self.weights.sum(), self.total))

    def _standard_error(self, values: Array) -> Array:
        """The standard error of the mean over the folds, for a row of values per alpha.

        Repetitions test the same rows again and add no information on other rows. So the number of
        folds in ``sqrt(variance / n_folds)`` is at most ``total / mean weight of a fold``, the
        number of disjoint folds of their size.
        """
        n_folds = len(self.weights)
        if n_folds == 1:
            return np.full(len(values), np.nan)
        mean = np.average(values, axis=1, weights=self.weights)
        spread = np.abs(values - mean[:, np.newaxis])
        # An error is a square already, and its own square may be beyond the range of floats.
        size = spread.max(axis=1, initial=0.0)
        size[size == 0] = 1.0
        square = np.average((spread / size[:, np.newaxis]) ** 2, axis=1, weights=self.weights)
        disjoint = min(n_folds, self.total / self.weights.mean())
        return np.asarray(size * np.sqrt(square * n_folds / (n_folds - 1) / disjoint))

    def of_rule(self, rule: str, n_nonzero: NDArray[np.intp]) -> "CVErrors":
        """The errors of a rule: on each fold that of the alpha which the other folds choose.

        The smallest of many errors is too small for new rows, because its own folds chose it. NaN
        for a single fold. (Another estimate from the same errors, of Tibshirani and Tibshirani
        2009, doubles the error where folds are single rows.)

        Often many neighbouring alphas have the same smallest error on the other folds. The one in
        the middle is taken, because at the ends of such a range the fold's own model has lost or
        gained a variable. (The one nearest to the best of all folds would depend on the fold
        itself.)
        """
        mse = np.full((1, len(self.weights)), np.nan)
        for k in range(len(self.weights) if len(self.weights) > 1 else 0):
            others = self.without(k)
            equals = np.array([others.chosen(rule, n_nonzero)])
            if rule == "min":
                equals = np.flatnonzero(others.mean <= others.mean.min() + _rounding(others.mean))
            mse[0, k] = self.mse[equals[len(equals) // 2], k]
        return CVErrors(mse, self.weights, self.total)

    def without(self, fold: int) -> "CVErrors":
        """The errors on the other folds."""
        others = np.arange(len(self.weights)) != fold
        return CVErrors(self.mse[:, others], self.weights[others], self.total)

    def best(self) -> int:
        """Index of the smallest error; of equal errors that of the largest alpha."""
        return _first_best(self.mean, np.arange(len(self.mse)))

    def chosen(self, rule: str, n_nonzero: NDArray[np.intp]) -> int:
        """Index of the model that a rule chooses; for an average that of the smallest error.

        "1se" and "paired" take the sparsest model whose error exceeds the smallest by no more than
        its standard error, or half the standard error of the difference; of equally sparse models
        the one of smallest error.
        """
        best = self.best()
        if rule in ("min", "average") or len(self.weights) == 1:
            return best
        slack = self.se[best] if rule == "1se" else PAIRED_SHARE * self.paired_se
        near = np.flatnonzero(self.mean <= self.mean[best] + slack)
        return _first_best(self.mean, near[n_nonzero[near] == n_nonzero[near].min()])


def _first_best(errors: Array, some: NDArray[np.intp]) -> int:
    """The first index of `some` with the smallest error among them, but for rounding."""
    return first_least(errors, some, _rounding(errors, some))


def _rounding(errors: Array, some: NDArray[np.intp] | slice = slice(None)) -> float:
    """By how much errors that are equal to the smallest of `some` may differ from it."""
    return float(1e-10 * errors[some].min() + 1e-14 * errors.max())


def validation_errors(fits: Sequence[Fits], test: Sequence[Moments], total: float) -> CVErrors:
    """The errors on each test set of the models fitted to its training set.

    `total` is the weight of all rows.
    """
    pairs = zip(fits, test, strict=True)
    mse = [fold.rss(fit.coefs.T, fit.intercepts) / fold.weight_sum for fit, fold in pairs]
    return CVErrors(np.column_stack(mse), np.array([fold.weight_sum for fold in test]), total)
