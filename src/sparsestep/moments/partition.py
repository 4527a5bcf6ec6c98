"""Partitions of rows into folds."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["contiguous_folds", "fold_ids"]


def fold_ids(folds: Any, n: int) -> tuple[NDArray[np.intp], int]:
    """The fold of each row, and how many there are."""
    if isinstance(folds, list | tuple) and any(np.ndim(fold) for fold in folds):
        ids = np.full(n, -1, dtype=np.intp)
        for number, fold in enumerate(folds):
            index = np.asarray(fold)
            if index.dtype == bool and index.shape == (n,):
                index = np.flatnonzero(index)
            if index.ndim != 1 or (index.size and index.dtype.kind not in "iu"):
                raise ValueError(f"Fold {number} must be an array of row numbers.")
            index = index.astype(np.intp)
            if index.size and (index.min() < 0 or index.max() >= n):
                raise ValueError(f"Fold {number} has row numbers outside 0 to {n - 1}.")
            taken = index[ids[index] >= 0]
            ids[index] = number
            if not taken.size and np.count_nonzero(ids == number) != len(index):
                rows, times = np.unique(index, return_counts=True)
                taken = rows[times > 1]
            if taken.size:
                raise ValueError(f"Row {taken[0]} is in the folds more than once.")
        if n and ids.min() < 0:
            raise ValueError(f"Row {int(ids.argmin())} is in no fold.")
        return ids, len(folds)
    ids = np.asarray(folds)
    if ids.shape != (n,) or (n and ids.dtype.kind not in "iu"):
        raise ValueError(f"folds must give a whole number from 0 for each of the {n} rows.")
    ids = ids.astype(np.intp)
    if n and ids.min() < 0:
        raise ValueError(f"Row {int(ids.argmin())} has a negative fold number.")
    return ids, int(ids.max(initial=-1)) + 1


def contiguous_folds(ids: NDArray[np.intp], count: int) -> list[tuple[int, int]] | None:
    """First and last row of each fold, if its rows follow one another."""
    starts = np.flatnonzero(np.diff(ids, prepend=-1))
    present = ids[starts]
    if len(np.unique(present)) != len(present):
        return None
    bounds = [(0, 0)] * count
    for fold, a, b in zip(present, starts, [*starts[1:], len(ids)], strict=True):
        bounds[fold] = (int(a), int(b))
    return bounds
