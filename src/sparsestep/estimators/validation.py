"""Parameters and input of estimators and paths, checked: one clear sentence for what is wrong."""

from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from numbers import Integral, Real
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from sparsestep.frames import column_names, is_pandas
from sparsestep.moments.table import real_numbers, unmasked
from sparsestep.words import quoted, repeated

__all__ = [
    "KINDS",
    "alpha_values",
    "alphas_wanted",
    "interval_level",
    "new_rows",
    "one_alpha",
    "other_columns",
    "penalty_factors",
    "read_rows",
    "read_target",
    "require_finite",
    "whole_number",
]

Array = NDArray[np.float64]

# The range of finite factors above 0: beyond it, 0 and infinity do the same.
_LEAST_FACTOR, _MOST_FACTOR = 1e-30, 1e30
# How scikit-learn checks rows. `require_finite` finds values that are not finite, with their place.
KINDS: dict[str, Any] = {
    "accept_sparse": "csr",
    "dtype": (np.float64, np.float32),
    "ensure_all_finite": False,
}


def read_rows(X: Any) -> tuple[Any, list[str] | None]:
    """X for scikit-learn to convert, and the names of its columns if it is a frame with names.

    Input that scikit-learn would refuse is refused here first, with a message that names the column
    and the row. polars and pyarrow are read here, as not every version of scikit-learn can.
    """
    library, kind = type(X).__module__.split(".")[0], type(X).__name__
    if library == "polars" and kind == "LazyFrame":
        raise TypeError("X is a polars LazyFrame; call its collect() first.")
    if library == "pyspark":
        raise TypeError(
            "X is a Spark frame; read_moments(frame, target) sums it where it is, for fit_moments."
        )
    require_columns(X, "X")
    if library == "polars" and kind == "DataFrame":
        return _numbers(X.columns, X.get_columns(), X.height), list(X.columns)
    if library == "pyarrow" and kind in ("Table", "RecordBatch"):
        return _numbers(X.column_names, X.columns, X.num_rows), list(X.column_names)
    if is_pandas(X):
        for name, column in X.items():
            dates = getattr(column.dtype, "kind", "") in ("m", "M")
            if dates or _floats(column) is None:
                raise ValueError(_not_numbers(name, column.dtype, () if dates else column))
        return X, None
    X = unmasked(X, "X")
    array = X if hasattr(X, "dtype") else _array(X)
    _require_real(array, "X")
    if array.ndim == 1:
        raise ValueError(
            "Expected 2D array, got 1D array instead. Reshape your data: X.reshape(-1, 1) if it is "
            "one column, X.reshape(1, -1) if it is one row."
        )
    return X, None


def read_target(y: Any) -> Any:
    """The target for scikit-learn to convert, checked as X is in `read_rows`."""
    require_columns(y, "y")
    y = unmasked(y, "y")
    _require_real(y if hasattr(y, "dtype") else _array(y), "y")
    values = None if y is None else _floats(y)
    if values is not None:
        require_finite(values, "y", getattr(y, "columns", None))
    return y


def require_columns(table: Any, what: str) -> None:
    """Refuse frames without columns, or with two of one name; arrays have no names."""
    names = column_names(table)
    if names is None:
        return
    if not len(names):
        raise ValueError(f"{what} has no columns; give at least one.")
    if len(set(names)) < len(names):
        raise ValueError(f"{what} has more than one column {repeated(names)!r}; rename one.")


def _array(values: Any) -> NDArray[Any]:
    """Lists and the like as an array; an array of objects if they are not a table."""
    try:
        return np.asarray(values)
    except ValueError:
        return np.asarray(values, dtype=object)


def _require_real(array: Any, what: str) -> None:
    """Refuse complex numbers, dates in X, and texts and objects that are no numbers."""
    kind = getattr(array.dtype, "kind", "")
    if kind == "c":
        raise ValueError(
            f"Complex data not supported: {what} has type {array.dtype}; give real numbers."
        )
    if what == "X" and kind in "mM":
        raise ValueError(f"X has type {array.dtype}; turn dates into numbers first.")
    # NumPy's texts are no numbers in y, where those of a list or a series are read as such.
    if kind == "O" or (what == "X" and kind in "US"):
        for value in np.asarray(array).flat:
            try:
                float(str(value) if isinstance(value, str) else value)
            except (TypeError, ValueError) as error:
                if _is_missing(value) or np.ndim(value):
                    continue
                whole = "X is not a table of numbers" if what == "X" else "y is not numbers"
                raise type(error)(f"{whole}: {error}.") from error


def _numbers(names: Any, columns: Any, n: int) -> Array:
    """The columns as one array of doubles, missing values as NaN."""
    table = np.empty((n, len(columns)), order="F")
    for j, (name, column) in enumerate(zip(names, columns, strict=True)):
        values = np.asarray(column.to_numpy())
        # Booleans with gaps and decimals come as objects, and so do texts and dates.
        plain = values.dtype.kind in "fiub" or (
            values.dtype == object
            and all(v is None or isinstance(v, bool | Decimal) for v in values)
        )
        if not plain:
            kind = getattr(column, "dtype", getattr(column, "type", None))
            raise ValueError(_not_numbers(name, kind, values))
        table[:, j] = values
    return table


def _not_numbers(name: Any, kind: Any, values: Iterable[Any] = ()) -> str:
    """The sentence for a column that does not hold numbers, or does so but for a few texts."""
    present = [(row, value) for row, value in enumerate(values) if not _is_missing(value)]
    strays = [(row, value) for row, value in present if _floats(value) is None]
    if strays and isinstance(strays[0][1], str) and 2 * len(strays) < len(present):
        row, text = strays[0]
        return (
            f"Column {name!r} of X holds {text!r} in row {row}, while {len(present) - len(strays)} "
            f"of its {len(present)} values read as numbers; correct it, or leave the column out."
        )
    return (
        f"Column {name!r} of X has type {kind} and could not be read as numbers; "
        "encode it or leave it out."
    )


def other_columns(names: Sequence[str], fitted: Sequence[str]) -> str:
    """The sentence for columns that are not those of the fit, of bounded length."""
    seen, there = set(fitted), set(names)
    missing = [name for name in fitted if name not in there]
    new = [name for name in names if name not in seen]
    if not missing and not new:
        return "The columns of X are not in the order of those that the model was fitted to."
    parts = []
    if missing:
        parts.append(f"lacks {quoted(missing, 3, 'more columns')}, which the model was fitted to")
    if new:
        parts.append(f"has {quoted(new, 3, 'more columns')}, which it was not fitted to")
    return f"X {' and '.join(parts)}; give the columns of the fit, in the same order."


def new_rows(X: Any, m: int, fitted: Sequence[str] | None) -> Any:
    """X checked against the number of columns of a fit, and their names if both have any."""
    from sklearn.utils import check_array

    table, names = read_rows(X)
    if names is None and hasattr(table, "columns"):
        names = [str(name) for name in table.columns]
    rows = check_array(table, **KINDS)
    require_finite(rows, "X", names)
    if names is not None and fitted is not None and names != list(fitted):
        raise ValueError(other_columns(names, fitted))
    if rows.shape[1] != m:
        raise ValueError(f"X has {rows.shape[1]} columns, but the fit was to {m}.")
    return rows


def _is_missing(value: Any) -> bool:
    """Whether a value is None, NaN or one of pandas' marks, none of which equals itself."""
    same = value == value
    return value is None or not isinstance(same, bool | np.bool_) or not same


def _floats(values: Any) -> Array | None:
    """The values as numbers, pandas' mark of a missing value as NaN; None if not numbers."""
    try:
        if hasattr(values, "to_numpy") and hasattr(values, "isna"):
            values = values.to_numpy(dtype=np.float64, na_value=np.nan)
        return np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        return None


def require_finite(values: Any, what: str, names: Any) -> None:
    """Refuse values that are not finite, by the row and the column of the first."""
    numbers = values.data if sp.issparse(values) else values
    with np.errstate(over="ignore", invalid="ignore"):
        if np.isfinite(numbers.sum()) or np.isfinite(numbers).all():
            return
    if sp.issparse(values):
        entries = values.tocoo()
        bad = np.flatnonzero(~np.isfinite(entries.data))
        first = bad[np.lexsort((entries.col[bad], entries.row[bad]))[0]]
        place, found = (entries.row[first], entries.col[first]), entries.data[first]
    else:
        place = tuple(np.argwhere(~np.isfinite(values))[0])
        found = values[place]
    row, *column = map(int, place)
    where = f"row {row}"
    if column and (what == "X" or values.shape[1] > 1):
        where += f" of column {column[0] if names is None else repr(names[column[0]])}"
    word = "NaN" if np.isnan(found) else "infinity"
    raise ValueError(
        f"Input {what} contains {word}, first in {where}; remove such rows or fill them in."
    )


def penalty_factors(given: Any, m: int, names: Sequence[str] | None = None) -> Array | None:
    """Multipliers of alpha in the order of the columns, checked; given so, or by name."""
    if given is None:
        return None
    named = _is_named(given)
    ordered = _in_order(given, names) if named else given
    factor = real_numbers(unmasked(ordered, "penalty_factor"))
    if factor is None:
        raise ValueError(f"penalty_factor must be numbers; got {given!r}.")
    if factor.shape != (m,):
        raise ValueError(
            f"penalty_factor must have one number for each of the {m} columns; "
            f"its shape is {factor.shape}."
        )
    usual = (factor >= _LEAST_FACTOR) & (factor <= _MOST_FACTOR)
    wrong = np.flatnonzero(~(usual | (factor == 0) | (factor == np.inf)))
    if len(wrong):
        which = names[wrong[0]] if named and names is not None else int(wrong[0])
        raise ValueError(
            f"penalty_factor[{which!r}] is {factor[wrong[0]]}; it must be 0, inf, or between "
            f"{_LEAST_FACTOR:g} and {_MOST_FACTOR:g}."
        )
    return factor


def _is_named(given: Any) -> bool:
    """Whether factors come by name: in a mapping, or a series of pandas with labels of text."""
    if isinstance(given, Mapping):
        return True
    series = hasattr(given, "iloc") and hasattr(given, "index") and not hasattr(given, "columns")
    return series and any(isinstance(label, str) for label in given.index)


def _in_order(given: Any, names: Sequence[str] | None) -> list[Any]:
    """Named factors in the order of the columns; 1 for those that a mapping leaves out."""
    if names is None:
        raise ValueError(
            "penalty_factor names columns, but those of X have no names; give a number for each "
            "column, in their order."
        )
    labels = list(given) if isinstance(given, Mapping) else list(given.index)
    values = given.values() if isinstance(given, Mapping) else given
    known, factors = set(names), dict(zip(labels, values, strict=True))
    unknown = [label for label in labels if label not in known]
    if unknown:
        raise ValueError(
            f"penalty_factor names {quoted(unknown, 3)}, but X has no such column; it has "
            f"{quoted(names, 5)}."
        )
    if len(factors) < len(labels):
        raise ValueError(f"penalty_factor names {repeated(labels)!r} twice; give one factor.")
    missing = [name for name in names if name not in factors]
    if missing and not isinstance(given, Mapping):
        raise ValueError(
            f"penalty_factor lacks {quoted(missing, 3)}; a series has a number for each column, "
            "and a dict may leave out those at 1."
        )
    return [factors.get(name, 1.0) for name in names]


def one_alpha(alpha: Any) -> Array:
    """The parameter `alpha`, as the only one of an array."""
    if isinstance(alpha, bool) or not isinstance(alpha, Real):
        raise ValueError(f"alpha must be a number; got {alpha!r}.")
    return alpha_values([alpha], "alpha")


def alpha_values(alphas: Any, name: str) -> Array:
    """Alphas as numbers, largest first, each once."""
    values = real_numbers(unmasked(alphas, name))
    if values is None or values.ndim != 1 or not len(values):
        raise ValueError(f"{name} must be how many to try, or a list of numbers; got {alphas!r}.")
    wrong = np.flatnonzero(~(np.isfinite(values) & (values >= 0)))
    if len(wrong):
        raise ValueError(f"{name} must be finite and not negative; got {values[wrong[0]]}.")
    return np.unique(values)[::-1]


def alphas_wanted(alphas: Any) -> int | Array:
    """The parameter `alphas`: how many, or which."""
    if isinstance(alphas, Integral):
        return whole_number("alphas", alphas, least=2)
    return alpha_values(alphas, "alphas")


def interval_level(level: Any) -> float:
    """The parameter `level` as a number between 0 and 1."""
    if isinstance(level, bool) or not isinstance(level, Real):
        raise ValueError(f"level must be a number between 0 and 1, such as 0.95; got {level!r}.")
    if not 0 < float(level) < 1:
        raise ValueError(f"level must lie between 0 and 1; got {level!r}.")
    return float(level)


def whole_number(name: str, value: Any, *, least: int) -> int:
    """A whole number of at least `least`."""
    if isinstance(value, bool) or not isinstance(value, Integral) or int(value) < least:
        raise ValueError(f"{name} must be a whole number of at least {least}; got {value!r}.")
    return int(value)
