"""Rows in memory: X, y and weights of one table, checked.

Numbers come from anything: arrays, SciPy sparse matrices, frames and series of any library. What
cannot be summed is refused with a sentence that names the column, the row or the parameter. No copy
larger than a block of rows is made, except of lists, texts, objects, long doubles, and sparse data
of another kind than CSR.
"""

import math
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from copy import copy
from decimal import Decimal
from functools import partial
from numbers import Integral, Real
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from sparsestep.errors import NotNumbersError, OutOfRangeError
from sparsestep.words import quoted, repeated

Array = NDArray[np.float64]
Index = NDArray[np.intp]
Labels = Sequence[Any] | None
# A block of rows of this size stays in the cache between the subtraction and the product.
BLOCK_BYTES = 4 << 20
# How pandas' extension types, polars and Arrow call their numbers, in lower case.
_NUMBERS = re.compile(
    r"((u?int|float)(8|16|32|64)|float|double|halffloat|bool(ean)?)(\[pyarrow\])?"
)


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
        values, self.target_labels = _target(y)
        self.target_names = text_names(y)
        self.flat_y = values.ndim == 1
        self.y: NDArray[Any] = values[:, None] if self.flat_y else values
        if len(values) != self.n:
            raise ValueError(f"X has {self.n} rows but y has {len(values)}.")
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


def fold_ids(folds: Any, n: int) -> tuple[Index, int]:
    """The fold of each of n rows, and how many folds there are."""
    if not (isinstance(folds, list | tuple) and any(np.ndim(fold) for fold in folds)):
        ids = np.asarray(folds)
        if ids.shape != (n,) or (n and ids.dtype.kind not in "iu"):
            raise ValueError(f"folds must give a whole number from 0 for each of the {n} rows.")
        ids = ids.astype(np.intp)
        if n and ids.min() < 0:
            raise ValueError(f"Row {int(ids.argmin())} has a negative fold number.")
        return ids, int(ids.max(initial=-1)) + 1
    ids, times = np.zeros(n, dtype=np.intp), np.zeros(n, dtype=np.intp)
    for number, fold in enumerate(folds):
        index = np.asarray(fold)
        if index.dtype == bool and index.shape == (n,):
            index = np.flatnonzero(index)
        if index.ndim != 1 or (index.size and index.dtype.kind not in "iu"):
            raise ValueError(f"Fold {number} must be an array of row numbers.")
        index = index.astype(np.intp)
        if index.size and (index.min() < 0 or index.max() >= n):
            raise ValueError(f"Fold {number} has row numbers outside 0 to {n - 1}.")
        ids[index] = number
        times += np.bincount(index, minlength=n)
    if n and times.max() > 1:
        raise ValueError(f"Row {int((times > 1).argmax())} is in the folds more than once.")
    if n and times.min() < 1:
        raise ValueError(f"Row {int(times.argmin())} is in no fold.")
    return ids, len(folds)


def column_name(j: int, labels: Labels) -> str:
    """How a message calls column j."""
    return f"column {j if labels is None else repr(labels[j])}"


# -- numbers from anything ---------------------------------------------------------------------


class Columns:
    """Rows of a frame whose columns are separate arrays, converted a block at a time."""

    def __init__(self, columns: list[Any], n: int) -> None:
        self.columns = columns
        self.shape = (n, len(columns))

    def __getitem__(self, rows: slice) -> Array:
        """Some of the rows."""
        block = np.empty((len(range(*rows.indices(self.shape[0]))), self.shape[1]), order="F")
        for j, column in enumerate(self.columns):
            block[:, j] = _as_array(column[rows])
        return block


def read(data: Any, what: str) -> tuple[Any, Labels]:
    """Numbers as an array, a CSR matrix or `Columns`, and the labels of a frame's columns.

    `what` is how a message calls the data: X or y.
    """
    if comes_from(data, "pyspark"):
        raise TypeError(
            f"{what} is a Spark frame; read_moments(frame, target) sums it where it is, for "
            "fit_moments."
        )
    if hasattr(data, "collect") and not hasattr(data, "to_numpy"):
        raise TypeError(f"{what} is a {type(data).__name__}; call its collect() first.")
    labels = column_names(data)
    if labels is not None:
        labels = list(labels)
        return _of_frame(data, what, labels), labels
    if sp.issparse(data):
        data = data.tocsr()
        if data.ndim == 2 and not data.has_canonical_format:
            data = data.copy()
            data.sum_duplicates()
    elif hasattr(data, "to_numpy") and not isinstance(getattr(data, "dtype", None), np.dtype):
        series = data.array if hasattr(data, "iloc") else data
        return _as_array(_column(series, what)), None
    else:
        data = _unmasked(data, what)
        try:
            data = np.asarray(data)
        except ValueError as error:
            raise ValueError(f"{what} is not a table of numbers: {error}") from error
    return _of_array(data, what), None


def in_one_piece(rows: Any) -> Any:
    """Rows as one array or CSR matrix."""
    return rows[:] if isinstance(rows, Columns) else rows


def read_rows(X: Any) -> tuple[Any, Labels]:
    """`read`, for data that must have rows and columns."""
    rows, labels = read(X, "X")
    if len(rows.shape) != 2:
        advice = (
            " Reshape your data: X.reshape(-1, 1) if it is one column, X.reshape(1, -1) if it is "
            "one row."
        )
        count = len(rows.shape)
        said = f"X has {count} dimension{'s' * (count != 1)}; it must have two, rows and columns."
        raise ValueError(said + advice * (count == 1))
    return rows, labels


def require_unique(labels: Labels, what: str) -> None:
    """Refuse two columns of one name."""
    if labels is not None and len(set(labels)) < len(labels):
        raise ValueError(f"{what} has more than one column {repeated(labels)!r}; rename one.")


def require_columns(labels: Labels, fitted: Sequence[str] | None) -> None:
    """Refuse columns that are not those of a fit, where both have names."""
    if labels is None or fitted is None or list(labels) == list(fitted):
        return
    seen, there = set(fitted), set(labels)
    missing = [name for name in fitted if name not in there]
    new = [name for name in labels if name not in seen]
    if not missing and not new:
        raise ValueError(
            "The columns of X are not in the order of those that the model was fitted to."
        )
    parts = []
    if missing:
        parts.append(f"lacks {quoted(missing, 3, 'more columns')}, which the model was fitted to")
    if new:
        parts.append(f"has {quoted(new, 3, 'more columns')}, which it was not fitted to")
    raise ValueError(f"X {' and '.join(parts)}; give the columns of the fit, in the same order.")


def real_numbers(values: Any, name: str) -> Array | None:
    """The numbers and booleans of a parameter as doubles; None for texts, dates and all else."""
    values = _unmasked(values, name)
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


def whole_number(name: str, value: Any, *, least: int) -> int:
    """A whole number of at least `least`."""
    if isinstance(value, bool) or not isinstance(value, Integral) or int(value) < least:
        raise ValueError(f"{name} must be a whole number of at least {least}; got {value!r}.")
    return int(value)


def _unmasked(values: Any, name: str) -> Any:
    """The values; those of a masked array only if it hides none."""
    if isinstance(values, np.ma.MaskedArray):
        if np.ma.getmaskarray(values).any():
            raise ValueError(f"{name} has masked values; remove or replace them.")
        return np.asarray(values.data)
    return values


def _of_array(array: Any, what: str, labels: Labels = None) -> Any:
    """A NumPy array or a sparse matrix, texts and objects read as numbers."""
    if array.ndim not in (1, 2):
        return array
    if array.dtype.kind in "fiub":
        return array.astype(np.float64) if array.dtype.itemsize > 8 else array
    if array.ndim == 1 or array.dtype.kind not in "OUS":
        return _column(array, what, None if array.ndim == 1 else 0, labels)
    numbers = np.empty(array.shape, order="F")
    for j in range(array.shape[1]):
        numbers[:, j] = _column(array[:, j], what, j, labels)
    return numbers


def _of_frame(frame: Any, what: str, labels: Sequence[Any]) -> Any:
    """A frame as one array where that takes no copy, otherwise column by column.

    A pandas frame of sparse columns is a sparse matrix.
    """
    if not labels:
        raise ValueError(f"{what} has no columns; give at least one.")
    if not is_pandas(frame):
        columns = frame.get_columns() if hasattr(frame, "get_columns") else frame.columns
    else:
        kinds = set(frame.dtypes)
        if all(_is_sparse(kind) and kind.fill_value == 0 for kind in kinds):
            return read(frame.sparse.to_coo(), what)[0]
        if len(kinds) == 1 and isinstance(next(iter(kinds)), np.dtype):
            return _of_array(frame.to_numpy(), what, labels)
        columns = [frame.iloc[:, j] for j in range(len(labels))]
        columns = [c.to_numpy() if isinstance(c.dtype, np.dtype) else c.array for c in columns]
    return Columns(
        [_column(column, what, j, labels) for j, column in enumerate(columns)], frame.shape[0]
    )


def _is_sparse(kind: Any) -> bool:
    """Whether a type is pandas' SparseDtype."""
    return hasattr(kind, "fill_value") and hasattr(kind, "subtype")


def _column(values: Any, what: str, j: int | None = None, labels: Labels = None) -> Any:
    """Numbers of any library as they are; texts and objects as doubles, missing ones as NaN.

    They are column j of the data, or all of it.
    """
    kind: Any = getattr(values, "dtype", getattr(values, "type", None))
    kind = kind.subtype if _is_sparse(kind) else kind
    known = isinstance(kind, np.dtype)
    if kind.kind in "fiub" if known else _NUMBERS.fullmatch(str(kind).lower()):
        return values
    name = j if labels is None or j is None else labels[j]
    where = what if j is None or what == "y" else ""
    held = f"values of type {kind}"
    if known and kind.kind not in "OUS":
        held += " (Complex data not supported)" * (kind.kind == "c")
        raise NotNumbersError(name, where, held)
    return _doubles(values, held, partial(NotNumbersError, name, where))


def _doubles(values: Any, held: str, error: Callable[..., NotNumbersError]) -> Array:
    """Texts and objects as doubles, missing ones as NaN; an error for the first that is no number.

    `held` says what they are, `error` which column.
    """
    # NumPy reads some durations as numbers.
    if isinstance(values, np.ndarray) and np.timedelta64 not in set(map(type, values)):
        with suppress(TypeError, ValueError, OverflowError):
            return values.astype(np.float64)
    values = values.to_pylist() if hasattr(values, "to_pylist") else list(values)
    numbers, strays, first = np.full(len(values), np.nan), 0, None
    for row, value in enumerate(values):
        try:
            numbers[row] = _number(value)
        except (TypeError, ValueError, OverflowError) as problem:
            strays, first = strays + 1, first or (row, value, problem)
    if first is None:
        return numbers
    row, value, cause = first
    good = np.count_nonzero(~np.isnan(numbers))
    if isinstance(value, str) and strays < good:
        held = f"{str(value)!r} in row {row}, while {good} of its {good + strays} values"
        raise error(f"{held} read as numbers", "correct it") from cause
    raise error(f"{held} (row {row}: {cause})") from cause


def _number(value: Any) -> float:
    """A number, or a text that is one, as a double; NaN for None and pandas' marks."""
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return math.nan
    if isinstance(value, str):
        return float(str(value))  # a message would show NumPy's texts as np.str_
    several = hasattr(value, "__len__") and not isinstance(value, bytes)
    if several or isinstance(value, np.timedelta64):
        kind = type(value).__name__
        raise TypeError(f"float() argument must be a string or a real number, not {kind!r}")
    return float(value)


def _as_array(values: Any) -> NDArray[Any]:
    """A column of numbers of any library as a NumPy array, missing ones as NaN."""
    if hasattr(values, "isna"):  # pandas' extension arrays
        return np.asarray(values.to_numpy(dtype=np.float64, na_value=np.nan))
    array = np.asarray(values)
    # Booleans with gaps come as objects.
    return array.astype(np.float64) if array.dtype == object else array


# -- frames of other libraries, told apart without importing any of these ----------------------


def comes_from(value: Any, *packages: str) -> bool:
    """Whether the value's class, or one it inherits from, is defined in one of the packages."""
    return any(base.__module__.split(".")[0] in packages for base in type(value).__mro__)


def is_dask(value: Any) -> bool:
    """Whether the value is a Dask array, frame or series."""
    return comes_from(value, "dask", "dask_expr") and hasattr(type(value), "ndim")


def is_pandas(value: Any) -> bool:
    """Whether the value is a frame of pandas, or like one."""
    return hasattr(value, "iloc") and hasattr(value, "columns")


def column_names(frame: Any) -> Sequence[Any] | None:
    """The names of a frame's columns, or of an Arrow table's; None if the value has none."""
    columns: Sequence[Any] | None = getattr(frame, "columns", None)
    # An Arrow table has its columns there; a pandas frame may have one of that name.
    return columns if is_pandas(frame) else getattr(frame, "column_names", columns)


def text_names(frame: Any) -> tuple[str, ...] | None:
    """Names of the columns of a frame, or of a series; None unless all are texts."""
    names = column_names(frame)
    if names is None and hasattr(frame, "to_frame"):
        # Unlike the name of a Dask array, that of a series means something.
        names = (frame.name,)
    if names is None or not all(isinstance(name, str) and name for name in names):
        return None
    return tuple(names)
