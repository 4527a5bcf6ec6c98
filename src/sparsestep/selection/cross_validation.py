"""Cross-validation on moments: splits, held-out errors, and the alpha that a rule chooses by them.

The smallest error is chosen, or a sparser model near it. A model is near if its error exceeds the
smallest by no more than a standard error: that of the smallest error ("1se"), most of which is
noise common to all alphas, or half that of the difference of the two errors ("paired").

A held-out error needs no row: for coefficients b and intercept a the fold's moments give
``sum w (y - a - x'b)^2`` exactly (`Moments.rss`).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from sparsestep.moments.moments import Moments, leave_one_out
from sparsestep.moments.table import Table
from sparsestep.selection.fitting import Fits, first_least

Array = NDArray[np.float64]
Index = NDArray[np.intp]
Split = tuple[Index, Index]

Rule = Literal["min", "paired", "1se", "average"]
RULES = get_args(Rule)
# By how many standard errors of the difference an error may exceed the smallest, in "paired".
# Chosen by simulation: docs/choosing_alpha.md.
PAIRED_SHARE = 0.5
# What made the splits where only the moments of each fold are known.
GIVEN_FOLDS = "the moments of each fold, given"


# -- splits ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class TrainAndTest:
    """The moments of all rows, of each training set and of each test set.

    The `scheme` of the splits is in words, such as "10-fold cross-validation, 3 times"; `splitter`
    is what made them, if not the order of the rows alone (or a seed).
    """

    whole: Moments
    train: Sequence[Moments]
    test: Sequence[Moments]
    scheme: str
    splitter: str | None

    @classmethod
    def of_folds(cls, folds: Sequence[Moments], splitter: str | None) -> "TrainAndTest":
        """Each fold is a test set, and the others together train."""
        if len(folds) < 2:
            raise ValueError(f"Cross-validation needs at least two folds; got {len(folds)}.")
        whole = Moments.merge(folds)
        for k, fold in enumerate(folds):
            if fold.weight_sum <= 0:
                raise ValueError(f"Fold {k} has no row of positive weight; use fewer folds.")
        scheme = _scheme(len(folds), [len(folds)])
        return cls(whole, leave_one_out(folds), folds, scheme, splitter)

    @classmethod
    def of_rows(cls, table: Table, splits: list[Any] | int, splitter: str | None) -> "TrainAndTest":
        """The given splits, or contiguous folds if `splits` is their number.

        Consecutive splits whose test sets are a partition of the rows (one repetition of a k-fold)
        are summed in one pass, and their training moments merged. Others are summed one by one.
        """
        train: list[Moments] = []
        test: list[Moments] = []
        whole: Moments | None = None
        partitions: list[int] = []
        if isinstance(splits, int):
            pairs, n_splits = [], splits
        else:
            pairs, n_splits = _row_numbers(splits, table.weight, table.n), len(splits)
        while len(test) < n_splits:
            # As in scikit-learn the first n % splits folds have one row more than the others.
            fold_of_row = (
                np.sort(np.arange(table.n) % splits)
                if isinstance(splits, int)
                else _partition(pairs[len(test) :], table.n)
            )
            if fold_of_row is None:
                # First of all rows, so that a message on a value names its row among them.
                whole = whole or Moments._of_table(table)
                train_rows, test_rows = pairs[len(test)]
                train.append(Moments._of_table(table.take(train_rows)))
                test.append(Moments._of_table(table.take(test_rows)))
                continue
            folds = Moments._of_folds(table, fold_of_row, int(fold_of_row.max()) + 1)
            for k, fold in enumerate(folds):
                if fold.weight_sum <= 0:
                    raise _no_rows(len(test) + k, "test")
            train += leave_one_out(folds)
            test += folds
            whole = whole or Moments.merge(folds)
            partitions.append(len(folds))
        assert whole is not None
        return cls(whole, train, test, _scheme(n_splits, partitions), splitter)


def _no_rows(split: int, what: str) -> ValueError:
    """The error for a split without rows to train or to test on."""
    return ValueError(
        f"Split {split} of cv has no {what} rows of positive weight; use other splits."
    )


def _scheme(n_splits: int, partitions: list[int]) -> str:
    """The splits in words; `partitions` are the numbers of folds of those that are partitions."""
    if n_splits == 1:
        return "one hold-out split"
    if sum(partitions) < n_splits or len(set(partitions)) > 1:
        return f"{n_splits} splits"
    times = f", {len(partitions)} times" if len(partitions) > 1 else ""
    return f"{partitions[0]}-fold cross-validation{times}"


def _row_numbers(splits: list[Any], weight: Array | None, n: int) -> list[Split]:
    """The splits as pairs of row numbers; refuse those without rows to train or to test on."""
    if not splits:
        raise ValueError("cv gives no splits; give at least one pair of training and test rows.")
    pairs = []
    for k, split in enumerate(splits):
        try:
            train, test = split
        except (TypeError, ValueError):
            raise ValueError(
                f"Split {k} of cv is not a pair; give its training rows and its test rows."
            ) from None
        pairs.append((_index(train, k, "training", n), _index(test, k, "test", n)))
        for index, what in zip(pairs[-1], ("training", "test"), strict=True):
            if not index.size or (weight is not None and not weight[index].any()):
                raise _no_rows(k, what)
    return pairs


def _index(rows: Any, k: int, what: str, n: int) -> Index:
    """Row numbers, or one True or False for each row, as row numbers from 0 on."""
    try:
        index = np.asarray(rows)
    except ValueError:  # lists of different lengths
        index = np.array(None)
    if index.size == 0:
        return np.zeros(0, dtype=np.intp)
    if index.ndim != 1 or index.dtype.kind not in "biu":
        raise ValueError(
            f"Split {k} of cv has {what} rows that are no list of whole numbers; give row numbers "
            f"from 0 to {n - 1}, or True or False for each row."
        )
    if index.dtype == bool:
        if len(index) != n:
            raise ValueError(
                f"Split {k} of cv has True or False for {len(index)} {what} rows, but X has {n} "
                "rows; give one for each."
            )
        return np.flatnonzero(index)
    if not -n <= index.min() <= index.max() < n:
        raise ValueError(
            f"Split {k} of cv has row numbers outside 0 to {n - 1} among its {what} rows; give "
            f"numbers of the {n} rows of X."
        )
    index = index.astype(np.intp)
    # As in NumPy, negative numbers count from the end.
    return np.where(index < 0, index + n, index)


def _partition(splits: list[Split], n: int) -> Index | None:
    """The fold of each row, if the first of the splits are a partition of the rows."""
    fold_of_row = np.full(n, -1, dtype=np.intp)
    tested = 0
    for k, (train, test) in enumerate(splits):
        if len(train) + len(test) != n or np.any(fold_of_row[test] >= 0):
            return None
        used = np.zeros(n, dtype=bool)
        used[train] = used[test] = True
        if not used.all():
            return None
        fold_of_row[test] = k
        tested += len(test)
        if tested >= n:
            return fold_of_row if k else None
    return None


# -- held-out errors ---------------------------------------------------------------------------


@dataclass(frozen=True)
class CVErrors:
    """Held-out errors of one target."""

    mse: Array  # (n_alphas, n_folds), mean squared errors weighted by the sample weights
    weights: Array  # (n_folds,), the sum of the sample weights of each fold
    total: float  # the weight of all rows

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

    def of_rule(self, rule: str, n_nonzero: Index) -> "CVErrors":
        """The errors of a rule: on each fold that of the alpha which the other folds choose.

        The smallest of many errors is too small for new rows, because its own folds chose it.
        (Another estimate from the same errors, of Tibshirani and Tibshirani
        2009, doubles the error where folds are single rows.)

        Often many neighbouring alphas have the same smallest error on the other folds. The one in
        the middle is taken, because at the ends of such a range the fold's own model has lost or
        gained a variable. (The one nearest to the best of all folds would depend on the fold
        itself.)
        """

        def error(fold: int, others: CVErrors) -> float:
            equals = np.array([others.chosen(rule, n_nonzero)])
            if rule == "min":
                equals = np.flatnonzero(others.mean <= others.mean.min() + _rounding(others.mean))
            return float(self.mse[equals[len(equals) // 2], fold])

        return self.by_others(error)

    def by_others(self, error: "Callable[[int, CVErrors], float]") -> "CVErrors":
        """The error on each fold, given those on the others; NaN for a single fold."""
        mse = np.full((1, len(self.weights)), np.nan)
        for k in range(len(self.weights) if len(self.weights) > 1 else 0):
            rest = np.arange(len(self.weights)) != k
            mse[0, k] = error(k, CVErrors(self.mse[:, rest], self.weights[rest], self.total))
        return CVErrors(mse, self.weights, self.total)

    def best(self) -> int:
        """Index of the smallest error; of equal errors that of the largest alpha."""
        return _first_best(self.mean, np.arange(len(self.mse)))

    def chosen(self, rule: str, n_nonzero: Index) -> int:
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


def _first_best(errors: Array, some: Index) -> int:
    """The first index of `some` with the smallest error among them, but for rounding."""
    return first_least(errors, some, _rounding(errors, some))


def _rounding(errors: Array, some: Index | slice = slice(None)) -> float:
    """By how much errors that are equal to the smallest of `some` may differ from it."""
    return float(1e-10 * errors[some].min() + 1e-14 * errors.max())


def validation_errors(fits: Sequence[Fits], test: Sequence[Moments], total: float) -> CVErrors:
    """The errors on each test set of the models fitted to its training set.

    `total` is the weight of all rows.
    """
    pairs = zip(fits, test, strict=True)
    mse = [fold.rss(fit.coefs.T, fit.intercepts) / fold.weight_sum for fit, fold in pairs]
    return CVErrors(np.column_stack(mse), np.array([fold.weight_sum for fold in test]), total)
