"""Numbers in memory from anything: arrays, SciPy sparse matrices, frames and series.

Whatever is not a number is refused by its column and row. No copy larger than a block of rows is
made, except of lists, texts, objects, long doubles, and sparse data of another kind than CSR.
"""

import math
import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from decimal import Decimal
from functools import partial
from numbers import Real
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from sparsestep.errors import NotNumbersError
from sparsestep.frames import column_names, comes_from, is_pandas
from sparsestep.words import quoted, repeated

Array = NDArray[np.float64]
Labels = Sequence[Any] | None

# How pandas' extension types, polars and Arrow call their numbers, in lower case.
_NUMBERS = re.compile(
    r"((u?int|float)(8|16|32|64)|float|double|halffloat|bool(ean)?)(\[pyarrow\])?"
)


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
