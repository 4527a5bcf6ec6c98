"""The moments that a cross-validation needs, from rows and any of scikit-learn's splits."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparsestep.moments.moments import Moments, leave_one_out
from sparsestep.words import cross_validation

__all__ = ["split_moments"]

Array = NDArray[np.float64]
Index = NDArray[np.intp]
Split = tuple[Index, Index]


def split_moments(
    X: Any, y: Array, weight: Array | None, splits: list[Any], names: list[str] | None
) -> tuple[Moments, list[Moments], list[Moments], str]:
    """Moments of all rows, of each training set and of each test set; the scheme in words.

    Splits that follow each other and whose test sets are a partition of the rows (one repetition of
    a k-fold) are summed in one pass, and their training moments merged. Others are summed one by
    one.
    """
    n = X.shape[0]
    pairs = _row_numbers(splits, weight, n)
    train: list[Moments] = []
    valid: list[Moments] = []
    whole: Moments | None = None
    partitions: list[int] = []
    low = 0
    while low < len(pairs):
        high = _partition_end(pairs, low, n)
        if high is None:
            for rows, into in zip(pairs[low], (train, valid), strict=True):
                part = None if weight is None else weight[rows]
                into.append(Moments.from_data(X[rows], y[rows], part, feature_names=names))
            low += 1
        else:
            tests = [test for _, test in pairs[low:high]]
            folds = Moments.from_folds(X, y, tests, weight, feature_names=names)
            train += leave_one_out(folds)
            valid += folds
            whole = whole or Moments.merge(folds)
            partitions.append(high - low)
            low = high
    if whole is None:
        whole = Moments.from_data(X, y, weight, feature_names=names)
    return whole, train, valid, _scheme(len(pairs), partitions)


def _scheme(n_splits: int, partitions: list[int]) -> str:
    """In words, splits of which some make partitions of so many folds each."""
    if n_splits == 1:
        return "one hold-out split"
    if sum(partitions) < n_splits or len(set(partitions)) > 1:
        return f"{n_splits} splits"
    return cross_validation(partitions[0], len(partitions))


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
                raise ValueError(
                    f"Split {k} of cv has no {what} rows of positive weight; use other splits."
                )
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


def _partition_end(splits: list[Split], low: int, n: int) -> int | None:
    """Where the splits from `low` on have tested each row once, trained on the rest; or None."""
    seen = np.zeros(n, dtype=bool)
    for k in range(low, len(splits)):
        rows, test = splits[k]
        if len(rows) + len(test) != n or np.any(seen[test]):
            return None
        inside = np.zeros(n, dtype=bool)
        inside[rows] = True
        inside[test] = True
        if not inside.all():
            return None
        seen[test] = True
        if seen.all():
            return k + 1 if k > low else None
    return None
