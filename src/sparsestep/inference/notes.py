"""Notes: what the reader of a model should know before relying on it.

Each kind of note is a record with its words. Summaries, the command line and the report all show a
note's `text`, which takes the names of columns and targets. Rows to predict that lie far outside
those fitted are told in the same way (`FarRows`).
"""

from collections.abc import Sequence
from typing import Any, ClassVar, Literal

import numpy as np
import scipy.sparse as sp
from msgspec import Struct
from msgspec.structs import asdict
from numpy.typing import NDArray

from sparsestep.moments.table import BLOCK_BYTES
from sparsestep.words import few_of, lost_digits, quoted, rows_left_out

Array = NDArray[np.float64]
Names = Sequence[str]

# At this correlation and above it is nearly arbitrary which of two columns a sparse model keeps.
COLLINEAR = 0.95
# Number of names in a sentence.
_MOST = 5


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
