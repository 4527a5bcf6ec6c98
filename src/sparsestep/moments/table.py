"""Rows in memory from anything: arrays, SciPy sparse matrices and frames, checked.

Values that cannot be summed are refused with a sentence that names the column, the row or the
parameter. Nothing larger than a block of rows is copied.
"""

from collections.abc import Iterable, Iterator, Sequence
from decimal import Decimal
from numbers import Real
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from sparsestep.errors import OutOfRangeError
from sparsestep.frames import column_names
from sparsestep.words import repeated

__all__ = ["BLOCK_BYTES", "Table", "column_name", "real_numbers", "unmasked"]

Array = NDArray[np.float64]

# A block of rows of this size stays in the cache between the subtraction and the product.
BLOCK_BYTES = 4 << 20


class Table:
    """Checked rows: blocks of X, y and weights, without those of zero weight."""

    def __init__(
        self,
        X: Any,
        y: Any,
        sample_weight: ArrayLike | None,
        feature_names: Sequence[str] | None,
        *,
        zero_weights_ok: bool = False,
    ) -> None:
        self.X, names = _table(X)
        self.n, self.m = self.X.shape
        if feature_names is not None:
            names = tuple(feature_names)
            if len(names) != self.m or not all(isinstance(name, str) for name in names):
                raise ValueError(
                    f"feature_names must be {self.m} strings, one for each column of X."
                )
        if names is not None and len(set(names)) < len(names):
            raise ValueError(f"X has more than one column {repeated(names)!r}; rename one.")
        self.names = names
        _require_numbers(self.X, names)
        y = _target(y)
        self.flat_y = y.ndim == 1
        self.y: NDArray[Any] = y[:, None] if self.flat_y else y
        if len(y) != self.n:
            raise ValueError(f"X has {self.n} rows but y has {len(y)}.")
        self.k = self.y.shape[1]
        if not self.k:
            raise ValueError("y has no columns; give at least one target.")
        self.weight = None if sample_weight is None else weights(sample_weight, self.n)
        self.n_active = self.n if self.weight is None else int(np.count_nonzero(self.weight))
        if self.n and not self.n_active and not zero_weights_ok:
            raise ValueError("All values of sample_weight are zero, so there are no rows.")

    @property
    def target(self) -> NDArray[Any]:
        """The target in as many dimensions as it was given in."""
        return self.y[:, 0] if self.flat_y else self.y

    def take(self, rows: Any) -> "Table":
        """Some of the rows."""
        return Table(
            self.X[rows],
            self.target[rows],
            None if self.weight is None else self.weight[rows],
            self.names,
            zero_weights_ok=True,
        )

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
        if j >= self.m:
            return "y" if self.flat_y else f"y, column {j - self.m},"
        return _beginning(column_name(j, self.names))


class _Columns:
    """Rows of a frame whose columns are separate arrays, converted a block at a time."""

    def __init__(self, columns: list[Any], n: int) -> None:
        self.columns = columns
        self.shape = (n, len(columns))

    def __getitem__(self, key: Any) -> Array:
        rows, columns = key if isinstance(key, tuple) else (key, None)
        if columns is not None:
            return _Columns([self.columns[j] for j in columns], self.shape[0])[rows]
        a, b, _ = rows.indices(self.shape[0])
        block = np.empty((b - a, self.shape[1]), order="F")
        for j, column in enumerate(self.columns):
            block[:, j] = _numbers_of(column[a:b])
        return block


def _numbers_of(values: Any) -> NDArray[Any]:
    """One-dimensional values of any library as a NumPy array, missing ones as NaN."""
    if isinstance(values, np.ndarray):
        return values
    try:
        array = values.to_numpy(dtype=np.float64, na_value=np.nan)  # pandas extension arrays
    except TypeError:
        array = values.to_numpy()
    if array.dtype == object and all(v is None or isinstance(v, bool | int) for v in array):
        array = np.array([np.nan if v is None else v for v in array], dtype=np.float64)
    return np.asarray(array)


def _table(X: Any) -> tuple[Any, tuple[str, ...] | None]:
    """X as an array, a CSR matrix or `_Columns`, and the names of its columns."""
    if sp.issparse(X):
        X = X.tocsr()
        if X.ndim == 2 and not X.has_canonical_format:
            X = X.copy()
            X.sum_duplicates()
        return _two_dimensional(X), None
    if isinstance(X, np.ndarray):
        return _two_dimensional(np.asarray(unmasked(X, "X"))), None
    if hasattr(X, "collect") and not hasattr(X, "to_numpy"):
        raise TypeError("X is a lazy frame; call its collect() first, or read it in batches.")
    if hasattr(X, "column_names") and hasattr(X, "schema"):  # pyarrow Table and RecordBatch
        return _Columns(list(X.columns), X.num_rows), _names(X.column_names)
    if hasattr(X, "columns") and hasattr(X, "dtypes"):
        if hasattr(X, "iloc"):
            return _pandas(X), _names(X.columns)
        return _Columns(list(X.get_columns()), X.height), _names(X.columns)
    try:
        X = np.asarray(X)
    except ValueError as error:
        raise ValueError(f"X is not a table of numbers: {error}") from error
    return _two_dimensional(X), None


def _pandas(X: Any) -> Any:
    """A pandas frame as one array where that takes no copy, otherwise column by column.

    A frame of sparse columns is a sparse matrix.
    """
    kinds = list(X.dtypes)
    if kinds and all(_is_sparse(kind) and kind.fill_value == 0 for kind in kinds):
        return _table(X.sparse.to_coo())[0]
    if kinds and isinstance(kinds[0], np.dtype) and all(kind == kinds[0] for kind in kinds):
        return X.to_numpy()
    columns = [X.iloc[:, j] for j in range(X.shape[1])]
    return _Columns(
        [c.to_numpy() if isinstance(c.dtype, np.dtype) else c.array for c in columns], len(X)
    )


def _is_sparse(kind: Any) -> bool:
    """Whether a type is pandas' SparseDtype."""
    return hasattr(kind, "fill_value") and hasattr(kind, "subtype")


def _names(columns: Iterable[Any]) -> tuple[str, ...] | None:
    """Names of a frame's columns; None if they are only numbers."""
    names = list(columns)
    if all(isinstance(name, str) for name in names):
        return tuple(names)
    if not any(isinstance(name, str) for name in names):
        return None
    j, text = next((j, name) for j, name in enumerate(names) if isinstance(name, str))
    other = next(name for name in names if not isinstance(name, str))
    raise TypeError(
        f"Column names must all be text or none: column {j} is {text!r}, but there is also "
        f"{other!r}."
    )


def _two_dimensional(X: Any) -> Any:
    """X, if it has rows and columns."""
    if X.ndim != 2:
        raise ValueError(
            f"X has {X.ndim} dimension{'s' * (X.ndim != 1)}; it must have two, rows and columns."
        )
    return X


def unmasked(values: Any, name: str) -> Any:
    """The values; those of a masked array only if it hides none."""
    if isinstance(values, np.ma.MaskedArray):
        if np.ma.getmaskarray(values).any():
            raise ValueError(f"{name} has masked values; remove or replace them.")
        return np.asarray(values.data)
    return values


def _require_numbers(X: Any, names: tuple[str, ...] | None) -> None:
    """Raise, naming the column, unless all columns hold real numbers or booleans."""
    if not isinstance(X, _Columns):
        if X.dtype.kind in "fiub":
            return
        j = 0
        if X.dtype.kind == "O" and X.size:
            real = (bool, int, float, np.number, np.bool_)
            wrong = (j for j in range(X.shape[1]) if not all(isinstance(v, real) for v in X[:, j]))
            j = next(wrong, 0)
        _refuse(j, names, X.dtype)
    for j, column in enumerate(X.columns):
        kind: Any = getattr(column, "dtype", getattr(column, "type", None))
        kind = kind.subtype if _is_sparse(kind) else kind
        if isinstance(kind, np.dtype):
            good = kind.kind in "fiub"
        else:
            # Extension types, polars and Arrow all say what they are by name.
            good = str(kind).lower().lstrip("u").startswith(("int", "float", "bool", "double"))
            good = good or str(kind).lower() in ("halffloat", "decimal")
        if not good:
            _refuse(j, names, kind)


def _refuse(j: int, names: tuple[str, ...] | None, kind: Any) -> None:
    """Raise for a column that does not hold real numbers."""
    name = _beginning(column_name(j, names))
    raise TypeError(f"{name} has type {kind}; convert it to real numbers first.")


def _target(y: Any) -> NDArray[Any]:
    """The target as an array of real numbers with one or two dimensions."""
    if sp.issparse(y):
        raise TypeError("y is sparse; give it as an array.")
    if isinstance(y, np.ndarray):
        array = np.asarray(unmasked(y, "y"))
    elif column_names(y) is not None:
        table, names = _table(y)
        _require_numbers(table, names)
        array = table[:] if isinstance(table, _Columns) else table
    elif hasattr(y, "to_numpy"):
        array = _numbers_of(getattr(y, "array", y) if hasattr(y, "iloc") else y)
    else:
        array = np.asarray(y)
    if array.size == 0 and array.dtype == object:
        array = array.astype(np.float64)
    if array.dtype.kind not in "fiub":
        raise TypeError(f"y has type {array.dtype}; convert it to real numbers first.")
    if array.ndim not in (1, 2):
        raise ValueError(f"y has {array.ndim} dimensions; it must have one, or two for targets.")
    return array


def weights(sample_weight: Any, n: int) -> Array:
    """Weights as doubles: one for each row, or one for all, finite and not negative."""
    w = real_numbers(unmasked(sample_weight, "sample_weight"))
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


def real_numbers(values: Any) -> Array | None:
    """Numbers and booleans as doubles; None for texts, dates and all else."""
    try:
        array = np.asarray(values)
        numbers = array.dtype.kind in "fiub" or (
            array.dtype == object
            # NumPy counts durations among the integers, and its booleans not.
            and all(isinstance(v, Real | Decimal | np.bool_) for v in array.flat)
            and not any(isinstance(v, np.timedelta64) for v in array.flat)
        )
        return array.astype(np.float64) if numbers else None
    except (TypeError, ValueError, OverflowError):
        return None


def column_name(j: int, names: tuple[str, ...] | None) -> str:
    """How a message calls column j."""
    return f"column {j}" if names is None else f"column {names[j]!r}"


def _beginning(name: str) -> str:
    """The name of a column at the beginning of a sentence."""
    return name[0].upper() + name[1:]
