"""Checked rows: X, y and weights of one table in memory, in blocks.

Values that cannot be summed are refused with a sentence that names the column, the row or the
parameter.
"""

from collections.abc import Iterator, Sequence
from copy import copy
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from sparsestep.errors import OutOfRangeError
from sparsestep.moments.reading import (
    Labels,
    in_one_piece,
    read,
    read_rows,
    real_numbers,
    require_unique,
)

Array = NDArray[np.float64]

# A block of rows of this size stays in the cache between the subtraction and the product.
BLOCK_BYTES = 4 << 20


class Table:
    """Checked rows: blocks of X, y and weights, without those of zero weight."""

    def __init__(
        self,
        X: Any,
        y: Any,
        sample_weight: ArrayLike | None = None,
        feature_names: Sequence[str] | None = None,
        *,
        zero_weights_ok: bool = False,
    ) -> None:
        self.X, self.labels = read_rows(X)
        self.n, self.m = self.X.shape
        if feature_names is not None:
            self.labels = tuple(feature_names)
            if len(self.labels) != self.m or not all(isinstance(n, str) for n in self.labels):
                raise ValueError(
                    f"feature_names must be {self.m} strings, one for each column of X."
                )
        require_unique(self.labels, "X")
        self.names = _names(self.labels)
        y, self.target_labels = _target(y)
        self.flat_y = y.ndim == 1
        self.y: NDArray[Any] = y[:, None] if self.flat_y else y
        if len(y) != self.n:
            raise ValueError(f"X has {self.n} rows but y has {len(y)}.")
        self.k = self.y.shape[1]
        if not self.k:
            raise ValueError("y has no columns; give at least one target.")
        self.weight = None if sample_weight is None else weights(sample_weight, self.n)
        if self.n and not self.n_active and not zero_weights_ok:
            raise ValueError("All values of sample_weight are zero, so there are no rows.")

    @property
    def n_active(self) -> int:
        """Rows of non-zero weight."""
        return self.n if self.weight is None else int(np.count_nonzero(self.weight))

    @property
    def target(self) -> NDArray[Any]:
        """The target in as many dimensions as it was given in."""
        return self.y[:, 0] if self.flat_y else self.y

    def take(self, rows: Any) -> "Table":
        """Some of the rows."""
        part = copy(self)
        part.X, part.y = self.X[rows], self.y[rows]
        part.weight = None if self.weight is None else self.weight[rows]
        part.n = len(part.y)
        return part

    def block(self, a: int, b: int) -> tuple[Any, NDArray[Any], Array | None]:
        """Rows a to b of X, y and the weights."""
        X, y = self.X[a:b], self.y[a:b]
        if self.weight is None:
            return X, y, None
        w = self.weight[a:b]
        if not w.all():
            keep = np.flatnonzero(w)
            return X[keep], y[keep], w[keep]
        return X, y, w

    def _values(self, columns: NDArray[np.intp]) -> Iterator[tuple[int, Array, Any]]:
        """First row, values of some columns of (X, y), and whether each row counts, by blocks."""
        of_x, of_y = columns[columns < self.m], columns[columns >= self.m] - self.m
        rows = max(BLOCK_BYTES // (8 * len(columns)), 1)
        for a in range(0, self.n, rows):
            part = slice(a, a + rows)
            X = self.X[part] if len(of_x) == self.m else self.X[part][:, of_x]
            X = X.toarray() if sp.issparse(X) else X
            use = slice(None) if self.weight is None else self.weight[part] > 0
            yield a, np.concatenate([X, self.y[part][:, of_y]], axis=1, dtype=np.float64), use

    def require_finite(self) -> Array:
        """Raise for the first value that is not finite; else the largest size in each column."""
        largest = np.zeros(self.m + self.k)
        for a, values, use in self._values(np.arange(self.m + self.k)):
            numbers = np.arange(a, a + len(values))[use]
            values = values[use]
            bad = ~np.isfinite(values)
            if bad.any():
                i, j = np.argwhere(bad)[0]
                raise ValueError(
                    f"{self._name(int(j))} has the value {values[i, j]} in row {numbers[i]}; "
                    "remove or replace values that are missing or infinite."
                )
            largest = np.maximum(largest, np.abs(values).max(axis=0, initial=0.0))
        return largest

    def too_large(self, largest: Array) -> ValueError:
        """The error for finite values whose sums are not."""
        j = int(largest.argmax())
        problem = f"{{name}} reaches {largest[j]:.3g} in size, too large to be squared and summed"
        return OutOfRangeError(problem, self._name(j), j >= self.m)

    def require_constant(self, small: NDArray[np.bool_], ids: NDArray[np.intp] | None) -> None:
        """Raise if a column varies within a fold though its squares there underflow (`small`)."""
        columns = np.flatnonzero(small.any(axis=0))
        seen = np.zeros(len(small), dtype=bool)
        first = np.zeros((len(small), len(columns)))
        ids = np.zeros(self.n, dtype=np.intp) if ids is None else ids
        for a, values, use in self._values(columns):
            fold, values = ids[a : a + len(values)][use], values[use]
            new, where = np.unique(fold, return_index=True)
            where, new = where[~seen[new]], new[~seen[new]]
            first[new], seen[new] = values[where], True
            varies = ((values != first[fold]) & small[np.ix_(fold, columns)]).any(axis=0)
            if varies.any():
                j = int(columns[varies.argmax()])
                problem = "{name} varies by too little for its squares to be represented"
                raise OutOfRangeError(problem, self._name(j), j >= self.m)

    def _name(self, j: int) -> str:
        """How a message calls column j of (X, y), at its beginning."""
        if j < self.m:
            name = column_name(j, self.labels)
        elif self.flat_y:
            return "y"
        else:
            name = f"{column_name(j - self.m, self.target_labels)} of y"
        return name[0].upper() + name[1:]


def new_rows(X: Any) -> tuple[Any, Labels]:
    """Rows to predict for as an array or a CSR matrix, checked, and the labels of their columns."""
    rows, labels = read_rows(X)
    require_unique(labels, "X")
    if not rows.shape[0]:
        raise ValueError("X has no rows; a prediction needs at least one.")
    rows = in_one_piece(rows)
    numbers = rows.data if sp.issparse(rows) else rows
    with np.errstate(over="ignore", invalid="ignore"):
        finite = np.isfinite(numbers.sum())
    if not finite:
        table = Table(rows, np.zeros(rows.shape[0]))
        table.labels = labels
        table.require_finite()
    return rows, labels


def _names(labels: Labels) -> tuple[str, ...] | None:
    """Labels of columns that are names; None if they are only numbers."""
    texts = [isinstance(label, str) for label in labels or ()]
    if labels is None or not any(texts):
        return None
    if not all(texts):
        text, other = labels[texts.index(True)], labels[texts.index(False)]
        raise TypeError(
            f"Column names must all be text or none: column {texts.index(True)} is {text!r}, but "
            f"there is also {other!r}."
        )
    return tuple(labels)


def _target(y: Any) -> tuple[NDArray[Any], Labels]:
    """The target as an array of numbers with one or two dimensions, and its labels."""
    if y is None:
        raise ValueError("A fit requires y to be passed, but the target y is None.")
    array, labels = read(y, "y")
    require_unique(labels, "y")
    array = in_one_piece(array)
    if sp.issparse(array):
        raise TypeError("y is sparse; give it as an array.")
    if array.ndim not in (1, 2):
        raise ValueError(f"y has {array.ndim} dimensions; it must have one, or two for targets.")
    return array, labels


def weights(sample_weight: Any, n: int) -> Array:
    """Weights as doubles: one for each row, or one for all, finite and not negative."""
    w = real_numbers(sample_weight, "sample_weight")
    if w is None:
        raise ValueError("sample_weight must be numbers, one for each row of X.")
    if w.shape not in ((), (n,)):
        raise ValueError(f"sample_weight has shape {w.shape} but X has {n} rows.")
    w = np.full(n, w) if w.ndim == 0 else w
    bad = ~(np.isfinite(w) & (w >= 0))
    if bad.any():
        i = int(bad.argmax())
        raise ValueError(f"sample_weight is {w[i]} in row {i}; it must be finite and not negative.")
    with np.errstate(over="ignore"):
        if not np.isfinite(w.sum()):
            raise ValueError("The sum of sample_weight is too large for a double; rescale it.")
    return w


def column_name(j: int, labels: Labels) -> str:
    """How a message calls column j."""
    return f"column {j if labels is None else repr(labels[j])}"
