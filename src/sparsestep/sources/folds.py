"""The fold of each row, where rows arrive in order and their number is not known beforehand.

Every k rows in a row are one block, and each block gets its own random permutation of the k folds,
so after any number of rows the folds differ by at most one row. The random numbers are those of
the counter-based generator Philox with the key (seed, part): they depend on nothing but these two
and the number of the row within its part, not on batches or threads.
"""

import numpy as np
from numpy.typing import NDArray

__all__ = ["FoldNumbers", "fold_numbers"]


class FoldNumbers:
    """Fold numbers of the rows of one part, handed out in order."""

    def __init__(self, folds: int, seed: int, part: int = 0) -> None:
        self._folds = folds
        self._numbers = np.arange(folds, dtype=np.uint64)
        self._low_bits = np.uint64((1 << (folds - 1).bit_length()) - 1)
        self._random = np.random.Philox(key=np.array([seed, part], dtype=np.uint64))
        self._rest = np.empty(0, dtype=np.intp)

    def take(self, rows: int) -> NDArray[np.intp]:
        """Fold numbers of the next rows."""
        blocks = -(-max(rows - len(self._rest), 0) // self._folds)
        keys = self._random.random_raw(blocks * self._folds).reshape(blocks, self._folds)
        # The order of random keys is a random permutation. Keys that carry the number of their
        # place in their low bits say it when they are sorted, which takes a third of an argsort.
        keys &= ~self._low_bits
        keys |= self._numbers
        keys.sort(axis=1)
        keys &= self._low_bits
        numbers = np.concatenate([self._rest, keys.ravel().astype(np.intp)])
        self._rest = numbers[rows:].copy()
        return numbers[:rows]


def fold_numbers(n_rows: int, folds: int, seed: int = 0, part: int = 0) -> NDArray[np.intp]:
    """The folds that `read_moments` puts the rows of one part in.

    Files and frames in memory are one part, number 0, in the order of their rows; each partition of
    a Dask or Spark collection is a part of its own.

    Examples
    --------
    >>> from sparsestep.sources.folds import fold_numbers
    >>> fold_numbers(8, 4)
    array([0, 2, 1, 3, 1, 0, 2, 3])
    """
    return FoldNumbers(folds, seed, part).take(n_rows)
