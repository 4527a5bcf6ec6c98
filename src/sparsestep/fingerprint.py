"""What a fitted model remembers of its data: counts, means, deviations, collinear columns."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sparsestep.moments import Moments

__all__ = ["COLLINEAR", "MOST_PAIRS", "Fingerprint"]

Array = NDArray[np.float64]

# From this correlation on it is nearly arbitrary which of two columns a sparse model keeps.
COLLINEAR = 0.95
# Of so many pairs the names are worth reading.
MOST_PAIRS = 20
# Rows of the correlation matrix that are looked at together.
_BLOCK = 512
# Multiplications that a search among the rows of thin moments may take: seconds.
_MOST_WORK = 2e10


@dataclass(frozen=True)
class Fingerprint:
    """The columns of a table, by their first two moments.

    Attributes
    ----------
    n_samples : int
        Rows of non-zero weight.
    weight_sum : float
    mean_x, deviation_x : ndarrays of shape (m,)
    mean_y, deviation_y : ndarrays of shape (n_targets,)
    n_collinear : int, or None
        Pairs of columns whose correlation is at least `COLLINEAR` in size. None if thin moments
        have so many columns that looking for them would take long.
    collinear : tuple of (int, int, float)
        The most correlated of them, at most `MOST_PAIRS`: two columns and their correlation.
    """

    n_samples: int
    weight_sum: float
    mean_x: Array
    deviation_x: Array
    mean_y: Array
    deviation_y: Array
    n_collinear: int | None
    collinear: tuple[tuple[int, int, float], ...]

    @classmethod
    def of(cls, moments: Moments) -> "Fingerprint":
        """The fingerprint of the data behind moments."""
        n_collinear, pairs = _nearly_collinear(moments)
        return cls(
            n_samples=moments.n_samples,
            weight_sum=moments.weight_sum,
            mean_x=np.array(moments.mean_x),
            deviation_x=np.sqrt(moments.diag / moments.weight_sum),
            mean_y=np.array(np.atleast_1d(moments.mean_y)),
            deviation_y=np.sqrt(np.atleast_1d(moments.yty) / moments.weight_sum),
            n_collinear=n_collinear,
            collinear=pairs,
        )


def _nearly_collinear(
    moments: Moments,
) -> tuple[int | None, tuple[tuple[int, int, float], ...]]:
    """How many pairs correlate by `COLLINEAR` or more, and the most correlated of them.

    Constant columns correlate with nothing.
    """
    m = moments.n_features
    if moments.is_thin and moments.n_samples * m**2 > _MOST_WORK:
        return None, ()
    rows = moments.rows[0] if moments.is_thin else None
    length = np.sqrt(moments.diag)
    inverse = np.divide(1.0, length, out=np.zeros_like(length), where=length > 0)
    count = 0
    best: list[tuple[int, int, float]] = []
    for low in range(0, m, _BLOCK):
        block = slice(low, min(low + _BLOCK, m))
        S = moments.xtx[block, low:] if rows is None else rows[:, block].T @ rows[:, low:]
        # Scaled from one side at a time: the product of two lengths may overflow.
        part = (S * inverse[block, np.newaxis]) * inverse[low:]
        first, second = np.nonzero(np.triu(np.abs(part) >= COLLINEAR, 1))
        count += len(first)
        sizes = np.abs(part[first, second])
        for at in np.argsort(-sizes, kind="stable")[:MOST_PAIRS]:
            r = float(np.clip(part[first[at], second[at]], -1.0, 1.0))
            best.append((low + int(first[at]), low + int(second[at]), r))
        best = sorted(best, key=lambda pair: (-abs(pair[2]), pair[:2]))[:MOST_PAIRS]
    return count, tuple(best)
