"""Products of many rows with a few matrices, each row with its own."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["by_gram"]

Floats = NDArray[Any]

# OpenBLAS takes longer for a product with two or three rows than for one with each of them.
_FEW_ROWS = 3


def by_gram(gram: NDArray[np.intp], rows: Floats, matrices: Floats) -> Floats:
    """Each row times its own matrix: one product for each matrix, because `gram` ascends."""
    out = np.empty((len(rows), matrices.shape[2]), rows.dtype)
    high = 0
    for k, count in enumerate(np.bincount(gram).tolist()):
        low, high = high, high + count
        if count > _FEW_ROWS:
            np.matmul(rows[low:high], matrices[k], out=out[low:high])
        else:
            for row in range(low, high):
                np.matmul(rows[row], matrices[k], out=out[row])
    return out
