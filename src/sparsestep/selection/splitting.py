"""The moments of training and test sets, from rows and any of scikit-learn's splits."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparsestep.moments.moments import Moments, leave_one_out
from sparsestep.moments.table import Table

Array = NDArray[np.float64]
Index = NDArray[np.intp]
Split = tuple[Index, Index]
# What made the splits where only the moments of each fold are known.
GIVEN_FOLDS = "the moments of each fold, given"


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
        fold_of_row: Index | None
        if isinstance(splits, int):
            pairs, n_splits = [], splits
        else:
            pairs, n_splits = _row_numbers(splits, table.weight, table.n), len(splits)
        while len(test) < n_splits:
            if isinstance(splits, int):
                # As in scikit-learn the first n % splits folds have one row more than the others.
                fold_of_row = np.sort(np.arange(table.n) % splits)
            else:
                fold_of_row = _partition(pairs, len(test), table.n)
            if fold_of_row is None:
                # First of all rows, so that a message on a value names its row among them.
                whole = whole or Moments._of_table(table)
                train_rows, test_rows = pairs[len(test)]
                train.append(Moments._of_table(table.take(train_rows)))
                test.append(Moments._of_table(table.take(test_rows)))
                continue
            folds = Moments._of_folds(table, fold_of_row)
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


def _partition(splits: list[Split], low: int, n: int) -> Index | None:
    """The fold of each row, if the splits from number `low` on are a partition of the rows."""
    fold_of_row = np.full(n, -1, dtype=np.intp)
    tested = 0
    for k, (train, test) in enumerate(splits[low:]):
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
