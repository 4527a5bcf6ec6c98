"""Facts about a chosen model and its data, and the notes that they lead to.

`Collinearity` is about the selected columns: condition number, standard errors, and the error that
rounding leaves in the coefficients. `Fingerprint` is about all columns: means, deviations,
effective rows, copies and correlated pairs. Both are made once, with the fit, and stored with the
model.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.linalg import lapack

from sparsestep.errors import LostDigitsWarning
from sparsestep.inference.notes import (
    COLLINEAR,
    Collinear,
    Constant,
    Copies,
    FewRows,
    Note,
    NothingKept,
    RowNumbers,
    Weights,
    ZeroOneTarget,
)
from sparsestep.moments.moments import Moments
from sparsestep.moments.table import Table
from sparsestep.reference import negligible
from sparsestep.solvers.scaled_problem import copies_among_rows, later_copies, unit_gram
from sparsestep.threads import side_by_side

Array = NDArray[np.float64]
Index = NDArray[np.intp]

_EPS = float(np.finfo(np.float64).eps)
# Larger errors are reported: fewer than six digits are left.
_BAD = 1e-6
# Errors of the normal equations up to this size are not worth another look at the rows.
GOOD = 1e-11
# A column belongs to a null vector if its entry there is above this in size.
_PART = 1e-6
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
# A variable rests on few rows if its effective rows are fewer, and less than a tenth of all.
_FEW = 5
_NAMES_OF_ROWS = re.compile(
    r"(?i:(.*[ _.])?id|unnamed: ?\d+|row[ _.]?(names?|numbers?|nr|no)?|index)|.*[a-z]I[Dd]"
)


# -- the selected columns ----------------------------------------------------------------------


@dataclass(frozen=True)
class Collinearity:
    """Condition of the selected columns, and the error that normal equations leave."""

    support: Index  # the selected columns
    length: Array  # square roots of their sums of squares
    sums: Array  # C, their sums of squares and products in units of these lengths
    factor: Array  # the Cholesky factor of C; not valid if `rcond` is 0
    rcond: float  # reciprocal condition number of C: the square of that of the columns
    offset: float  # largest mean beside its deviation; 0 without an intercept
    # Relative error that normal equations may leave. It is 0 with fewer rows than columns kept:
    # then there are many solutions, however many digits are right.
    error: float

    @property
    def expected(self) -> float:
        """The relative error to expect of coefficients and intercept."""
        return self.error * (1.0 + self.offset)

    @property
    def condition_number(self) -> float:
        """Condition number of the standardized columns."""
        return float(1.0 / np.sqrt(max(self.rcond, _EPS)))

    def solve(self, g: Array) -> Array:
        """``S^-1 g``."""
        solution: Array = lapack.dpotrs(self.factor, g / self.length, lower=True)[0]
        return solution / self.length

    def inverse_diagonal(self) -> Array:
        """The diagonal of ``S^-1``; NaN where it is not identified, as columns are dependent."""
        if self.rcond > len(self.support) * _EPS:
            diagonal = np.diag(lapack.dpotri(self.factor, lower=True)[0])
        else:
            values, vectors = np.linalg.eigh(self.sums)
            null = values <= negligible(len(values))
            diagonal = np.sum(vectors[:, ~null] ** 2 / values[~null], axis=1)
            diagonal[np.any(np.abs(vectors[:, null]) > _PART, axis=1)] = np.nan
        return np.asarray(diagonal / self.length / self.length)

    def standard_errors(self, moments: Moments, coef: Array) -> tuple[Array, float]:
        """Standard errors of the non-zero coefficients, NaN elsewhere; and the degrees of freedom.

        As if the variables kept, A, had been chosen beforehand: with n the sum of the weights

            sigma^2 = rss / (n - |A| - 1),    cov(b_A) = sigma^2 (S_AA)^-1,

        and without an intercept n - |A| degrees of freedom.
        """
        errors = np.full(len(coef), np.nan)
        free = moments.weight_sum - len(self.support) - moments._df_of_means
        if free <= 0 or not len(self.support):
            return errors, max(float(free), 0.0)
        errors[self.support] = np.sqrt(moments.rss(coef) / free) * np.sqrt(self.inverse_diagonal())
        return errors, float(free)

    def lost(self, advice: str) -> LostDigitsWarning | None:
        """The warning if fewer than six digits are right, with an advice."""
        if self.error > _BAD:
            return LostDigitsWarning(self.condition_number, self.error, advice)
        return None


def collinearity(moments: Moments, coef: Array) -> Collinearity:
    """The condition of the columns of non-zero coefficients, by the moments."""
    support = np.flatnonzero(coef)
    C, length = unit_gram(moments, support)
    deviation = length / np.sqrt(moments.weight_sum)
    offset = float(np.max(np.abs(moments.mean_x[support]) / deviation, initial=0.0))
    factor, rcond = C, 0.0
    if len(support):
        factor, failed = lapack.dpotrf(C, lower=True)
        if not failed:
            rcond = float(lapack.dpocon(factor, np.linalg.norm(C, 1), uplo="L")[0])
    rank = moments.n_samples - moments._df_of_means
    error = _EPS / max(rcond, _EPS) if 0 < len(support) <= rank else 0.0
    return Collinearity(support, length, C, factor, rcond, offset, error)


# -- all columns -------------------------------------------------------------------------------


@dataclass(frozen=True)
class Fingerprint:
    """Means, deviations, effective rows, reach and collinearity of the m columns of a table.

    With s_i the share of row i in a column's sum of squares about its mean, its effective rows are
    ``1 / sum s_i^2``: n over the kurtosis, and about k for an indicator of k rows.

    The reach is the distance from the mean, in deviations, beyond which a value is far outside the
    rows fitted: three times that of the farthest row or, if only moments were given,
    ``sqrt(n - 1)``, which no value among n can exceed.
    """

    rows: int  # of non-zero weight
    weight_sum: float
    mean: Array  # (m,)
    deviation: Array  # (m,)
    target_mean: Array  # (n_targets,)
    target_deviation: Array  # (n_targets,)
    # The next two are NaN for columns that no model keeps, and where moments do not tell: effective
    # rows for columns other than zeros and ones, both with weights.
    effective_rows: Array  # (m,)
    reach: Array  # (m,)
    copies: tuple[int, ...]  # of earlier columns, but for a factor and a constant
    # Pairs of other columns whose correlation is at least `COLLINEAR` in size; None if thin moments
    # have too many columns for the search.
    n_collinear: int | None
    collinear: tuple[tuple[int, int, float], ...]  # at most 20, the most correlated first
    # Columns of whole numbers that rise from row to row, or are those from one on in any order.
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
            rows=moments.n_samples,
            weight_sum=moments.weight_sum,
            mean=np.array(moments.mean_x),
            deviation=deviation,
            target_mean=np.array(np.atleast_1d(moments.mean_y)),
            target_deviation=np.sqrt(np.atleast_1d(moments.yty) / moments.weight_sum),
            effective_rows=effective_rows,
            reach=reach,
            copies=tuple(np.flatnonzero(copies).tolist()),
            n_collinear=n_collinear,
            collinear=pairs,
            row_numbers=_row_numbers(moments, table),
        )


def _zero_one(mean: Array, deviation: Array) -> NDArray[np.bool_]:
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
        p = np.where(_zero_one(mean, deviation), mean, np.nan)
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


def notes_of(fingerprint: Fingerprint, kept: Sequence[Index], names: Sequence[str]) -> list[Note]:
    """The notes on the data, and on the columns that the model of each target keeps."""
    found: list[Note] = []
    rests = fingerprint.effective_rows
    few = rests < min(_FEW, fingerprint.rows / 10)
    for t, columns in enumerate(kept):
        on_few = [int(j) for j in columns if few[j]]
        if not len(columns):
            found.append(NothingKept(t))
        if on_few:
            found.append(FewRows(t, on_few, [max(round(float(rests[j])), 1) for j in on_few]))
    of_zeros_and_ones = _zero_one(fingerprint.target_mean, fingerprint.target_deviation)
    found += [ZeroOneTarget(t) for t in np.flatnonzero(of_zeros_and_ones).tolist()]
    if fingerprint.copies:
        found.append(Copies(list(fingerprint.copies)))
    pairs, n_pairs = fingerprint.collinear, fingerprint.n_collinear or 0
    of_kept = [pair for pair in pairs if np.isin(pair[:2], np.concatenate(kept)).any()]
    # Beyond the pairs listed, it is not known which have a variable that is kept.
    if of_kept or n_pairs > len(pairs):
        i, j, r = (of_kept or pairs)[0]
        found.append(Collinear([i, j], r, n_pairs))
    constant = np.flatnonzero(fingerprint.deviation == 0).tolist()
    if constant:
        found.append(Constant(constant))
    numbering = {j for j, name in enumerate(names) if _NAMES_OF_ROWS.fullmatch(name)}
    numbering.update(fingerprint.row_numbers)
    if numbering.difference(constant):
        found.append(RowNumbers(sorted(numbering.difference(constant))))
    n, total = fingerprint.rows, fingerprint.weight_sum
    if not n / 2 < total < 2 * n:
        found.append(Weights(n, total))
    return found
