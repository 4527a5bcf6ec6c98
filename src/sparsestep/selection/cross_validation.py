"""Choosing alpha by cross-validation, on moments: the smallest error, or a sparser model near it.

How near is a matter of standard errors: of the error itself ("1se"), most of which is noise common
to all alphas, or of its difference to the smallest, which the same folds give too ("paired").

A fold's validation error needs no row: for coefficients b and intercept a the fold's moments give
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

__all__ = ["PAIRED_SHARE", "RULES", "CVErrors", "Rule", "validation_errors"]

Array = NDArray[np.float64]

Rule = Literal["min", "paired", "1se", "average"]
RULES = get_args(Rule)
# Of the standard error of the difference to the smallest error, what "paired" gives away. Chosen by
# simulation: docs/choosing_alpha.md.
PAIRED_SHARE = 0.5


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
        """Its standard error: the folds' standard deviation over the root of their number."""
        return self._standard_error(self.mse)

    @cached_property
    def paired_se(self) -> Array:
        """The standard error of its difference to the smallest one."""
        return self._standard_error(self.mse - self.mse[self.best()])

    @property
    def n_tested(self) -> float:
        """The weight of the rows that some fold tests: of all rows, unless folds leave some out."""
        return float(min(self.weights.sum(), self.total))

    def _standard_error(self, values: Array) -> Array:
        """Of the mean over the folds, a row of values for each alpha.

        Folds that test the same rows again, as those of repetitions, tell nothing of other rows:
        they count only as often as folds of their size are disjoint.
        """
        n_folds = len(self.weights)
        if n_folds == 1:
            return np.full(len(values), np.nan)
        mean = np.average(values, axis=1, weights=self.weights)
        spread = np.abs(values - mean[:, np.newaxis])
        # Squares of errors that are squares themselves may be beyond the range of floats.
        size = spread.max(axis=1, initial=0.0)
        size[size == 0] = 1.0
        square = np.average((spread / size[:, np.newaxis]) ** 2, axis=1, weights=self.weights)
        disjoint = min(n_folds, self.total / self.weights.mean())
        return np.asarray(size * np.sqrt(square * n_folds / (n_folds - 1) / disjoint))

    def of_rule(self, rule: str, n_nonzero: NDArray[np.intp]) -> "CVErrors":
        """The errors of a rule: of each fold at the alpha that the others choose.

        The smallest of many errors is too small for new rows, because its own folds chose it. NaN
        for a single fold. (Another estimate from the same errors, of Tibshirani and Tibshirani
        2009, doubles the error where folds are single rows.)

        The models of the others are often the same for many alphas, and at the ends of these the
        fold's own model has lost a variable or gained one: of equals of the smallest error the
        alpha in the middle is taken. (That nearest to the best of all folds would have been chosen
        with the fold itself.)
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
        """Index of the smallest error; of equals the first, which is the largest alpha."""
        return _first_best(self.mean, np.arange(len(self.mse)))

    def chosen(self, rule: str, n_nonzero: NDArray[np.intp]) -> int:
        """Index of the model that a rule chooses; of an average that of the smallest error.

        "1se" and "paired" take the sparsest model whose error exceeds the smallest by no more than
        its standard error, or by a share of that of the difference; of equals the best.
        """
        best = self.best()
        if rule in ("min", "average") or len(self.weights) == 1:
            return best
        slack = self.se[best] if rule == "1se" else PAIRED_SHARE * self.paired_se
        near = np.flatnonzero(self.mean <= self.mean[best] + slack)
        return _first_best(self.mean, near[n_nonzero[near] == n_nonzero[near].min()])


def _first_best(errors: Array, some: NDArray[np.intp]) -> int:
    """The first of `some` whose error is the smallest among them, but for rounding."""
    return first_least(errors, some, _rounding(errors, some))


def _rounding(errors: Array, some: NDArray[np.intp] | slice = slice(None)) -> float:
    """By how much equal errors may differ, the smallest of `some` being the least."""
    return float(1e-10 * errors[some].min() + 1e-14 * errors.max())


def validation_errors(fits: Sequence[Fits], test: Sequence[Moments], total: float) -> CVErrors:
    """The errors on each test set of the models fitted to its training set.

    `total` is the weight of all rows.
    """
    pairs = zip(fits, test, strict=True)
    mse = [fold.rss(fit.coefs.T, fit.intercepts) / fold.weight_sum for fit, fold in pairs]
    return CVErrors(np.column_stack(mse), np.array([fold.weight_sum for fold in test]), total)
