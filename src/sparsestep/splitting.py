"""The moments that a cross-validation needs, from rows and any of scikit-learn's splits."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparsestep.moments import Moments, leave_one_out

__all__ = ["split_moments"]

Array = NDArray[np.float64]


def split_moments(
    X: Any, y: Array, weight: Array | None, splits: list[tuple[Any, Any]], names: list[str] | None
) -> tuple[Moments, list[Moments], list[Moments]]:
    """Moments of all rows, of each training set and of each test set.

    Splits that follow each other and whose test sets are a partition of the rows (one repetition of
    a k-fold) are summed in one pass, and their training moments merged. Others are summed one by
    one.
    """
    n = X.shape[0]
    _require_rows(splits, weight, n)
    train: list[Moments] = []
    valid: list[Moments] = []
    whole: Moments | None = None
    low = 0
    while low < len(splits):
        high = _partition_end(splits, low, n)
        if high is None:
            for rows, into in zip(splits[low], (train, valid), strict=True):
                part = None if weight is None else weight[rows]
                into.append(Moments.from_data(X[rows], y[rows], part, feature_names=names))
            low += 1
        else:
            tests = [np.asarray(test) for _, test in splits[low:high]]
            folds = Moments.from_folds(X, y, tests, weight, feature_names=names)
            train += leave_one_out(folds)
            valid += folds
            whole = whole or Moments.merge(folds)
            low = high
    if whole is None:
        whole = Moments.from_data(X, y, weight, feature_names=names)
    return whole, train, valid


def _require_rows(splits: list[tuple[Any, Any]], weight: Array | None, n: int) -> None:
    """Refuse splits without rows to train or to test on."""
    if not splits:
        raise ValueError("cv gives no splits; give at least one pair of training and test rows.")
    for k, split in enumerate(splits):
        for rows, what in zip(split, ("training", "test"), strict=True):
            index = np.asarray(rows)
            if index.dtype == bool:
                index = np.flatnonzero(index)
            if index.size and not -n <= index.min() <= index.max() < n:
                raise ValueError(
                    f"Split {k} of cv has row numbers outside 0 to {n - 1} among its {what} rows."
                )
            if not index.size or (weight is not None and not weight[index].any()):
                raise ValueError(
                    f"Split {k} of cv has no {what} rows of positive weight; use other splits."
                )


def _partition_end(splits: list[tuple[Any, Any]], low: int, n: int) -> int | None:
    """Where the splits from `low` on have tested each row once, trained on the rest; or None."""
    seen = np.zeros(n, dtype=bool)
    for k in range(low, len(splits)):
        rows, test = (np.asarray(part) for part in splits[k])
        if test.dtype == bool or rows.dtype == bool:
            return None
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
