"""What the reader of a model should know: facts about its data, and the notes that they lead to.

The facts are counts, means, deviations and collinear columns (`Fingerprint`). Each kind of note is
a record with its words. Facts and notes are made once, with the fit, and are stored with the model
and in its file. Summaries, the command line and the report all show a note's `text`, which takes
the names of columns and targets.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, ClassVar, Literal

import numpy as np
import scipy.sparse as sp
from msgspec import Struct
from msgspec.structs import asdict
from numpy.typing import NDArray

from sparsestep.moments.moments import Moments
from sparsestep.moments.table import BLOCK_BYTES, Table
from sparsestep.solvers.scaled_problem import copies_among_rows, later_copies
from sparsestep.threads import side_by_side
from sparsestep.words import few_of, lost_digits, quoted, rows_left_out

Array = NDArray[np.float64]
Index = NDArray[np.intp]
Names = Sequence[str]

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
# Number of names in a sentence.
_MOST = 5
# A variable rests on few rows if its effective rows are fewer, and less than a tenth of all.
_FEW = 5
_NAMES_OF_ROWS = re.compile(
    r"(?i:(.*[ _.])?id|unnamed: ?\d+|row[ _.]?(names?|numbers?|nr|no)?|index)|.*[a-z]I[Dd]"
)


# -- facts about the data ----------------------------------------------------------------------


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


# -- notes -------------------------------------------------------------------------------------


class Note(Struct, frozen=True, forbid_unknown_fields=True):
    """One note. A field `columns` holds indices of columns, a field `target` that of a target."""

    kind: ClassVar[str]
    # With the fields in braces, {of} the target's model if there are several, {some} names of the
    # columns, and {m} the number of all columns.
    sentence: ClassVar[str]

    def text(self, names: Names, targets: Names) -> str:
        """The note as a sentence."""
        target: int | None = getattr(self, "target", None)
        return self._text(
            names, "" if target is None or len(targets) == 1 else f" of {targets[target]!r}"
        )

    def _text(self, names: Names, of: str, **words: str) -> str:
        """The note as a sentence; `of` says which target's model is meant, if there are several."""
        some = quoted([names[j] for j in getattr(self, "columns", ())], _MOST)
        return self.sentence.format(of=of, some=some, m=len(names), **asdict(self), **words)


class LostDigits(Note, frozen=True):
    """Columns kept that are nearly collinear have cost digits."""

    kind = "lost digits"
    target: int
    condition_number: float
    digits: int

    def _text(self, names: Names, of: str, **words: str) -> str:
        advice = "keep fewer of them, or leave some out."
        return lost_digits(self.condition_number, self.digits, advice, f"kept{of}")


class AtTheEnd(Note, frozen=True):
    """The alpha chosen is at the end of those tried."""

    kind = "alpha at the end"
    target: int
    beyond: Literal["larger", "smaller"]
    criterion: str | None  # if it would keep ever more variables, with more columns than rows
    rows: int

    def _text(self, names: Names, of: str, **words: str) -> str:
        if self.criterion is None:
            return (
                f"The best model{of} is at the end of the alphas tried, so that a {self.beyond} "
                "alpha may be better still."
            )
        ebic = "" if self.criterion == "ebic" else "the extended BIC (ebic) or "
        return (
            f"{self.criterion.upper()} chose the model{of} at the end of the alphas tried, and "
            f"would keep ever more of {len(names)} columns for {self.rows} rows; use "
            f"{ebic}cross-validation."
        )


class ManyVariables(Note, frozen=True):
    """More variables are kept, of more columns than rows, than the rows can support."""

    kind = "many variables"
    sentence = (
        "The model{of} keeps {kept} variables, chosen among {m} columns; {rows} rows can support "
        "about {supported}, and the others may be noise. Raise alpha, or choose it by "
        "cross-validation or the extended BIC (ebic)."
    )
    target: int
    kept: int
    supported: int
    rows: int


class NothingKept(Note, frozen=True):
    """A model without variables."""

    kind = "nothing kept"
    sentence = "No variable{of} is kept: the model predicts the same number for every row."
    target: int


class FewRows(Note, frozen=True):
    """Variables kept whose sums of squares come from a few rows."""

    kind = "few rows"
    sentence = (
        "Variables kept{of} that rest on very few rows: {each}; their coefficients stand and fall "
        "with these rows."
    )
    target: int
    columns: list[int]
    rows: list[int]

    def _text(self, names: Names, of: str, **words: str) -> str:
        each = [f"{names[j]!r} (about {k})" for j, k in zip(self.columns, self.rows, strict=True)]
        return super()._text(names, of, each=few_of(each, _MOST))


class Determined(Note, frozen=True):
    """A target that the variables kept determine."""

    kind = "target determined"
    sentence = (
        "The target{of} is determined by what is kept (R2 is 1 but for rounding): {some}. {it} may "
        "be the target in other units, or be known only once the target is; if so, leave it out."
    )
    target: int
    columns: list[int]

    def _text(self, names: Names, of: str, **words: str) -> str:
        return super()._text(names, of, it="It" if len(self.columns) == 1 else "One of them")


class ZeroOneTarget(Note, frozen=True):
    """A target of zeros and ones."""

    kind = "target of zeros and ones"
    sentence = (
        "The target{of} holds zeros and ones only. Predictions are rough probabilities and may lie "
        "below 0 or above 1; logistic regression is made for such a target."
    )
    target: int


class Copies(Note, frozen=True):
    """Columns that are copies of earlier ones, but for a factor and a constant."""

    kind = "copies"
    sentence = (
        "{k} of {m} columns {are}, up to units: {some}. Of equal columns at most one is kept, and "
        "which one tells nothing."
    )
    columns: list[int]

    def _text(self, names: Names, of: str, **words: str) -> str:
        k = len(self.columns)
        are = "is a copy of another" if k == 1 else "are copies of others"
        return super()._text(names, of, k=str(k), are=are)


class Collinear(Note, frozen=True):
    """Pairs of columns that are nearly collinear: how many, and one of them."""

    kind = "collinear"
    sentence = (
        "{pairs} {are} nearly collinear (correlation of "
        f"{COLLINEAR} or more in size"
        "{one}: {both}, {correlation:.4f}), and which of two such columns is kept may change with "
        "a few rows."
    )
    columns: list[int]
    correlation: float
    pairs: int

    def _text(self, names: Names, of: str, **words: str) -> str:
        pairs, one = "pairs of columns are", "; one of them"
        if self.pairs == 1:
            pairs, one = "pair of columns is", ""
        both = " and ".join(repr(names[j]) for j in self.columns)
        return super()._text(names, of, are=pairs, one=one, both=both)


class Constant(Note, frozen=True):
    """Columns that are constant."""

    kind = "constant"
    sentence = "Constant, and so of no use: {some}."
    columns: list[int]


class RowNumbers(Note, frozen=True):
    """Columns that seem to number or name the rows."""

    kind = "row numbers"
    sentence = (
        "Row numbers or identifiers by their name or values: {some}; leave them out, unless their "
        "order means something."
    )
    columns: list[int]


class RowsDropped(Note, frozen=True):
    """Rows left out for a missing value, and in how many of them each column had none."""

    kind = "rows dropped"
    rows: int
    total: int
    by: dict[str, int]

    def _text(self, names: Names, of: str, **words: str) -> str:
        return rows_left_out(self.rows, self.total, self.by)


class Weights(Note, frozen=True):
    """Weights that do not add up to about the number of rows."""

    kind = "weights"
    sentence = (
        "The weights of the {rows} rows add up to {total:.5g}, and a weight of k counts as k "
        "copies of a row; if weights are no counts, give w * n / w.sum() instead."
    )
    rows: int
    total: float


NOTES: dict[str, type[Note]] = {kind.kind: kind for kind in Note.__subclasses__()}


def notes_of(
    fingerprint: Fingerprint, kept: Sequence[NDArray[np.intp]], names: Names
) -> list[Note]:
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


# -- rows to predict -------------------------------------------------------------------------


class FarRows:
    """Counts rows with a value far outside those fitted, in the columns of these names.

    `mean`, `deviation` and `reach` are those of `Fingerprint`; where `reach` is NaN, no row is far.
    """

    def __init__(self, mean: Array, deviation: Array, reach: Array, names: Names) -> None:
        self._mean, self._deviation, self._reach, self._names = mean, deviation, reach, names
        self._farthest = np.zeros(len(mean))
        self.rows = self.n_rows = 0

    def add(self, X: Any) -> None:
        """Look at rows of these columns; a missing value is not far."""
        step = max(BLOCK_BYTES // (8 * max(len(self._mean), 1)), 1)
        for a in range(0, X.shape[0], step):
            block = X[a : a + step]
            block = block.toarray() if sp.issparse(block) else block
            with np.errstate(all="ignore"):
                away = np.abs(block - self._mean) / self._deviation
            far = away > self._reach
            self.rows += int(np.count_nonzero(far.any(axis=1)))
            self._farthest = np.maximum(self._farthest, np.where(far, away, 0.0).max(axis=0))
        self.n_rows += X.shape[0]

    def text(self) -> str:
        """What to know of these rows; empty if none is far."""
        if not self.rows:
            return ""
        order = np.argsort(-self._farthest, kind="stable")
        worst = [int(j) for j in order if self._farthest[j]]
        others = [self._names[j] for j in worst[1:]]
        also = f", and far in {quoted(others, _MOST)} too" if others else ""
        one = self.rows == 1
        return (
            f"{self.rows} of {self.n_rows} rows {'lies' if one else 'lie'} far outside those that "
            f"the model was fitted to (up to {self._farthest[worst[0]]:.3g} standard deviations "
            f"from the mean in {self._names[worst[0]]!r}{also}); do not rely on "
            f"{'its prediction' if one else 'their predictions'}."
        )
