"""The facts that a model stores about its data: counts, means, deviations, collinear columns."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from sparsestep.moments.moments import Moments
from sparsestep.moments.table import Table
from sparsestep.solvers.scaled_problem import copies_among_rows, later_copies
from sparsestep.threads import side_by_side

Array = NDArray[np.float64]
Index = NDArray[np.intp]

# At this correlation and above it is nearly arbitrary which of two columns a sparse model keeps.
COLLINEAR = 0.95
# Number of pairs that are listed by name.
_MOST_PAIRS = 20
# Rows of the correlation matrix in a block.
_BLOCK = 256
# Numbers in a block of rows: they stay in the cache.
_BLOCK_ELEMENTS = 1 << 15
# The most multiplications of a search among the rows of thin moments: less than a second.
_MOST_WORK = 2e10
# Rounding error of correlations in single precision.
_SINGLE = 1e-5
# Relative rounding error of sums.
_ROUNDING = 1e-9
# A new value is far outside if its distance from the mean is this multiple of the largest fitted.
_FAR = 3.0
# The values of fewer rows may rise from row to row by chance.
_LEAST_ROWS = 10


@dataclass(frozen=True)
class Fingerprint:
    """Means, deviations, effective rows, reach and collinearity of the columns of a table.

    Attributes
    ----------
    n_samples : int
        Rows of non-zero weight.
    weight_sum : float
    mean_x, deviation_x : ndarrays of shape (m,)
    mean_y, deviation_y : ndarrays of shape (n_targets,)
    effective_rows : ndarray of shape (m,)
        With s_i the share of row i in a column's sum of squares about its mean, ``1 / sum s_i^2``:
        n over the kurtosis, and about k for an indicator of k rows. NaN for columns that no model
        keeps and, if only moments were given, for columns other than zeros and ones.
    reach : ndarray of shape (m,)
        Distance from the mean, in deviations, beyond which a value is far outside the rows fitted:
        three times that of the farthest row or, if only moments were given, ``sqrt(n - 1)``, which
        no value among n can exceed. NaN if it is not known.
    copies : tuple of int
        Columns that are copies of earlier ones, but for a factor and a constant.
    n_collinear : int, or None
        Pairs of other columns whose correlation is at least `COLLINEAR` in size. None if thin
        moments have too many columns for the search.
    collinear : tuple of (int, int, float)
        The most correlated of them, at most 20: two columns and their correlation.
    row_numbers : tuple of int
        Columns of whole numbers that rise from row to row, or are those from one on in any order.
    """

    n_samples: int
    weight_sum: float
    mean_x: Array
    deviation_x: Array
    mean_y: Array
    deviation_y: Array
    effective_rows: Array
    reach: Array
    copies: tuple[int, ...]
    n_collinear: int | None
    collinear: tuple[tuple[int, int, float], ...]
    row_numbers: tuple[int, ...]

    @classmethod
    def of(cls, moments: Moments, kept: Index, table: Table | None) -> "Fingerprint":
        """The fingerprint of moments, and of their rows if these are given."""
        copies = _copies(moments)
        n_collinear, pairs = _nearly_collinear(moments, ~copies)
        deviation = np.sqrt(moments.diag / moments.weight_sum)
        varying = kept[deviation[kept] > 0]
        effective_rows, reach = np.full((2, moments.n_features), np.nan)
        with np.errstate(under="ignore"):
            effective_rows[varying], reach[varying] = _weight_of_rows(
                moments, varying, deviation[varying], table
            )
        return cls(
            n_samples=moments.n_samples,
            weight_sum=moments.weight_sum,
            mean_x=np.array(moments.mean_x),
            deviation_x=deviation,
            mean_y=np.array(np.atleast_1d(moments.mean_y)),
            deviation_y=np.sqrt(np.atleast_1d(moments.yty) / moments.weight_sum),
            effective_rows=effective_rows,
            reach=reach,
            copies=tuple(np.flatnonzero(copies).tolist()),
            n_collinear=n_collinear,
            collinear=pairs,
            row_numbers=_row_numbers(moments, table),
        )

    @property
    def zero_one_targets(self) -> list[int]:
        """The targets that hold nothing but zeros and ones."""
        return np.flatnonzero(zero_one(self.mean_y, self.deviation_y)).tolist()


def zero_one(mean: Array, deviation: Array) -> NDArray[np.bool_]:
    """Whether columns hold zeros and ones, and both of them.

    Then ``sum x (x - 1) = 0``, which no other whole numbers fulfil and others only by accident.
    """
    p = np.clip(mean, 0.0, 1.0)
    variance = p * (1.0 - p)
    away = np.abs(np.minimum(deviation, 1.0) ** 2 - variance)
    return (variance > 0) & (away <= _ROUNDING * variance)


def _weight_of_rows(
    moments: Moments, columns: Index, deviation: Array, table: Table | None
) -> tuple[Array, Array]:
    """The effective rows and the reach of columns that vary."""
    weighted = moments.weight_sum != moments.n_samples
    unknown = np.full(len(columns), np.nan)
    mean = moments.mean_x[columns]
    if table is None and not moments.is_thin:
        if weighted:
            return unknown, unknown
        p = np.where(zero_one(mean, deviation), mean, np.nan)
        variance = p * (1.0 - p)
        rows = moments.n_samples * variance / (p**3 + (1.0 - p) ** 3)
        reach = _FAR * np.maximum(p, 1.0 - p) / np.sqrt(variance)
        return rows, np.where(np.isnan(p), np.sqrt(moments.n_samples - 1.0), reach)
    squares, largest = np.zeros(len(columns)), np.zeros(len(columns))
    for z, w in _standardized(moments, columns, mean, deviation, table):
        largest = np.maximum(largest, np.maximum(z.max(axis=1), -z.min(axis=1)))
        z *= z
        if w is not None:
            z *= w
        squares += np.einsum("ij,ij->i", z, z)
    # Rows of thin moments have been multiplied by the roots of their weights.
    reach = unknown if table is None and weighted else _FAR * largest
    return moments.weight_sum**2 / squares, reach


def _standardized(
    moments: Moments, columns: Index, mean: Array, deviation: Array, table: Table | None
) -> Iterator[tuple[Array, Array | None]]:
    """Standardized columns, (n_columns, n_rows), block by block; and the weights of the rows."""
    if table is None:
        yield (moments.rows[0][:, columns] / deviation).T, None
        return
    step = max(_BLOCK_ELEMENTS // max(len(columns), 1), 1)
    for a in range(0, table.n, step):
        X, _, w = table.block(a, a + step)
        if X.shape[0]:
            z = X[:, columns].toarray().T if sp.issparse(X) else X.T[columns]
            z = z.astype(np.float64, copy=False)
            z -= mean[:, np.newaxis]
            z /= deviation[:, np.newaxis]
            yield z, w


def _row_numbers(moments: Moments, table: Table | None) -> tuple[int, ...]:
    """Columns of whole numbers that rise from row to row, or are those from one on in any order."""
    n = moments.n_samples
    if n < _LEAST_ROWS or moments.weight_sum != n:
        return ()
    squares = n * (n**2 - 1) / 12
    doubled = 2 * moments.mean_x - (n - 1)
    found = np.abs(moments.diag - squares) <= _ROUNDING * squares
    found &= np.abs(doubled - np.round(doubled)) <= _ROUNDING * n
    if table is not None:
        rising = np.flatnonzero(_rise(table.X[:_LEAST_ROWS]))
        found[rising[[bool(_rise(table.X[:, [j]])[0]) for j in rising]]] = True
    return tuple(np.flatnonzero(found).tolist())


def _rise(X: Any) -> NDArray[np.bool_]:
    """Whether the columns hold whole numbers, each larger than the one before."""
    X = (X.toarray() if sp.issparse(X) else X).astype(np.float64, copy=False)
    return np.asarray((np.diff(X, axis=0) > 0).all(axis=0) & (np.floor(X) == X).all(axis=0))


def _copies(moments: Moments) -> NDArray[np.bool_]:
    """Columns that the engine takes for copies of earlier ones."""
    if moments.is_thin:
        return copies_among_rows(moments.rows[0], np.arange(moments.n_features))
    return later_copies(moments.xtx)


def _nearly_collinear(
    moments: Moments, own: NDArray[np.bool_]
) -> tuple[int | None, tuple[tuple[int, int, float], ...]]:
    """How many pairs of these columns correlate by `COLLINEAR` or more, and the most correlated.

    Constant columns correlate with nothing.
    """
    m = moments.n_features
    if moments.is_thin and moments.n_samples * m**2 > _MOST_WORK:
        return None, ()
    length = np.sqrt(moments.diag)
    inverse = np.divide(1.0, length, out=np.zeros_like(length), where=own & (length > 0))
    # Among rows the search is in single precision, and the pairs found are computed anew.
    unit = moments.rows[0] * inverse if moments.is_thin else None
    single = None if unit is None else unit.astype(np.float32)

    def search(low: int) -> tuple[int, list[tuple[int, int, float]]]:
        """The pairs whose first column is in a block."""
        block = slice(low, min(low + _BLOCK, m))
        part: NDArray[np.floating[Any]]
        if single is None:
            # Scaled from one side at a time: the product of two lengths may overflow.
            part = (moments.xtx[block, low:] * inverse[block, np.newaxis]) * inverse[low:]
        else:
            part = single[:, block].T @ single[:, low:]
        np.fill_diagonal(part, 0.0)
        if max(part.max(), -part.min()) < COLLINEAR:
            return 0, []
        first, second = np.nonzero(np.triu(np.abs(part) >= COLLINEAR))
        count = len(first)
        r = np.clip(part[first, second], -1.0, 1.0)
        if unit is not None:
            near = np.abs(r) >= np.sort(np.abs(r))[-_MOST_PAIRS:].min(initial=1.0) - _SINGLE
            first, second = first[near], second[near]
            r = np.zeros(len(first))
            for row in unit[:, low:]:
                r += row[first] * row[second]
        # Correlations that are equal but for rounding are sorted by the columns.
        order = np.lexsort((second, first, -np.round(np.abs(r), 10)))[:_MOST_PAIRS]
        return count, [(low + int(first[k]), low + int(second[k]), float(r[k])) for k in order]

    found = side_by_side(search, range(0, m, _BLOCK), moments.is_thin)
    best = sorted(chain(*(pairs for _, pairs in found)), key=lambda p: (-round(abs(p[2]), 10), p))
    return sum(count for count, _ in found), tuple(best[:_MOST_PAIRS])
