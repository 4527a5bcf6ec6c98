"""Blocks of rows, as Arrow tables, to the sums of each fold."""

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from sparsestep.errors import InputError, MissingValueError, OutOfRangeError
from sparsestep.moments.one_pass import fold_sums
from sparsestep.moments.table import Table
from sparsestep.sources.checks import Columns, Request
from sparsestep.sources.folds import FoldNumbers
from sparsestep.sources.merging import Parts, RowCounts
from sparsestep.words import in_row

__all__ = ["Block", "Load", "Pass", "Place", "block_rows", "block_sums", "loaded"]


# Bytes of a block of rows: large enough that each fold's share is worth a product, small enough
# that one for each thread, as read and as gathered by fold, stays small beside the program itself.
BLOCK_BYTES = 16 << 20
# Columns decoded before they are gathered: few, so that they stay in the cache and their memory is
# used again; enough to outweigh the opening of the file.
COLUMNS_AT_ONCE = 8


@dataclass(frozen=True)
class Place:
    """Where rows come from: rows `first` to `first + rows` of something with a name."""

    name: str
    first: int
    rows: int


# A function that returns a table with these columns, and maybe others.
Load = Callable[[Sequence[str]], Any]


@dataclass(frozen=True)
class Block:
    """Columns of some rows, the rows to use (None: all) and the fold of each (None: one)."""

    load: Load
    places: Sequence[Place]
    keep: NDArray[np.intp] | None
    folds: NDArray[np.intp] | None


def loaded(table: Any) -> Load:
    """A function that returns a table in memory, whatever columns are asked for."""
    return lambda names: table


def block_rows(columns: int) -> int:
    """Rows of a block that has this many columns of doubles."""
    return max(BLOCK_BYTES // (8 * columns), 1)


class Pass:
    """What a pass does with rows in order: leave out missing values, give each row its fold."""

    def __init__(self, columns: Columns, request: Request, part: int = 0) -> None:
        self.columns, self.drop_missing = columns, request.drop_missing
        folds = request.folds
        self.numbers = None if folds is None else FoldNumbers(folds, request.seed, part)
        self.counts = RowCounts()

    def block(self, load: Load, places: Sequence[Place]) -> Block:
        """The next rows, those with a missing value left out and each of the others in a fold.

        The thread that sums the block loads it, unless missing values must be found before.
        """
        rows = sum(place.rows for place in places)
        self.counts.rows += rows
        keep = None
        if self.drop_missing:
            table = load(self.columns.all)
            load, keep = loaded(table), self._complete(table)
        rows = rows if keep is None else len(keep)
        return Block(load, places, keep, None if self.numbers is None else self.numbers.take(rows))

    def _complete(self, table: Any) -> NDArray[np.intp] | None:
        """Numbers of the rows without a missing value; None if that is all of them."""
        missing = np.zeros(table.num_rows, dtype=bool)
        # The features that stand for one column of the source are missing together.
        features_of = {self.columns.of_source(name): name for name in self.columns.all}
        for name, feature in features_of.items():
            column = table.column(feature)
            if column.null_count or pa.types.is_floating(column.type):
                where = pc.is_null(column, nan_is_null=True).to_numpy()
                if count := int(np.count_nonzero(where)):
                    self.counts.missing[name] += count
                    missing |= where
        dropped = int(np.count_nonzero(missing))
        self.counts.dropped += dropped
        return np.flatnonzero(~missing) if dropped else None


def block_sums(
    block: Block, columns: Columns, count: int, memory: threading.local | None = None
) -> Parts:
    """Sums of each fold of a block; `memory` keeps each thread's room for the next block."""
    rows, fold_of = block.keep, block.folds
    if fold_of is not None:
        # Rows gathered fold by fold are summed without another copy. Small integers sort fastest.
        order = np.argsort(fold_of.astype(np.min_scalar_type(count)), kind="stable")
        rows, fold_of = (order if rows is None else rows[order]), fold_of[order]
    n = sum(place.rows for place in block.places) if rows is None else len(rows)
    weight = None
    if columns.weight is not None:
        weight = _gathered(block.load, [columns.weight], rows, n)[:, 0]
    if n == 0 or (weight is not None and not weight.any()):
        return [columns.no_rows] * count
    X = _gathered(block.load, columns.features, rows, n, memory)
    y = _gathered(block.load, [columns.target], rows, n)[:, 0]
    try:
        return fold_sums(Table(X, y, weight, columns.features), fold_of, count)
    except ValueError as error:
        raise _explained(block, columns, error) from None


def _gathered(
    load: Load,
    names: Sequence[str],
    rows: NDArray[np.intp] | None,
    n: int,
    memory: threading.local | None = None,
) -> NDArray[np.float64]:
    """Some rows of some columns as doubles, missing values as NaN."""
    size = n * len(names)
    room = getattr(memory, "room", None)
    if room is None or len(room) < size:
        room = np.empty(size)
        if memory is not None:
            memory.room = room
    result = room[:size].reshape((n, len(names)), order="F")
    for j, name in enumerate(names):
        if j % COLUMNS_AT_ONCE == 0:
            table = load(names[j : j + COLUMNS_AT_ONCE])
        values = _numbers(table.column(name))
        if rows is None:
            result[:, j] = values
        elif values.dtype == np.float64:
            # With this mode NumPy writes to the result directly instead of by way of a buffer.
            np.take(values, rows, out=result[:, j], mode="clip")
        else:
            result[:, j] = values[rows]
    return result


def _numbers(column: Any) -> NDArray[Any]:
    """A column as a NumPy array of numbers, missing ones as NaN."""
    if pa.types.is_boolean(column.type):
        column = column.cast(pa.uint8())
    elif pa.types.is_decimal(column.type) or pa.types.is_null(column.type):
        column = column.cast(pa.float64())
    values: NDArray[Any] = column.to_numpy()
    return values


def _explained(block: Block, columns: Columns, error: ValueError) -> ValueError:
    """The error for a block that has no moments, with the place of the first bad value."""
    table = block.load(columns.all)
    use = np.ones(table.num_rows, dtype=bool)
    if block.keep is not None:
        use[:] = False
        use[block.keep] = True
    if columns.weight is not None:
        weight = np.asarray(_numbers(table.column(columns.weight)), dtype=np.float64)
        bad = use & ~(np.isfinite(weight) & (weight >= 0))
        if bad.any():
            row = int(bad.argmax())
            what = f"Weight {columns.weight!r} is {weight[row]}"
            remedy = "weights must be finite and not negative"
            return InputError(what, _row(block.places, row), remedy)
        use &= weight > 0
    found = []
    for name in (*columns.features, columns.target):
        values = np.asarray(_numbers(table.column(name)), dtype=np.float64)
        bad = use & ~np.isfinite(values)
        if bad.any():
            row = int(bad.argmax())
            found.append((row, name, values[row]))
    if found:
        row, name, value = min(found, key=lambda each: each[0])
        where = _row(block.places, row)
        if np.isnan(value):
            what = f"Column {columns.of_source(name)!r} has a missing value"
            remedy = "fill it in, or leave out such rows with drop_missing"
            return MissingValueError(what, where, remedy)
        what = f"Column {name!r} has the value {value}"
        return InputError(what, where, "replace it or remove the row")
    if isinstance(error, OutOfRangeError):
        error = error.naming(columns.target)
    first, last = block.places[0], block.places[-1]
    of = f" of {first.name}" if last.name != first.name else ""
    end = in_row(last.first + last.rows - 1, last.name).removeprefix("in row ")
    return ValueError(f"In rows {first.first}{of} to {end}: {error}")


def _row(places: Sequence[Place], row: int) -> str:
    """How a message says where a row of a block is."""
    starts = np.cumsum([0, *(place.rows for place in places)])
    k = int(np.searchsorted(starts, row, side="right")) - 1
    return in_row(places[k].first + row - int(starts[k]), places[k].name)
