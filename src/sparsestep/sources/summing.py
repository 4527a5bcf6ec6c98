"""One pass: blocks of rows are summed while more are read, and the sums merged in order."""

import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, contextmanager
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from sparsestep.errors import InputError, MissingValueError, OutOfRangeError
from sparsestep.moments.sums import fold_sums
from sparsestep.moments.table import Table
from sparsestep.sources.folds import FoldNumbers, Parts, RowCounts, added
from sparsestep.sources.one_hot import encoded
from sparsestep.sources.request import Request
from sparsestep.sources.rows import (
    Block,
    Where,
    after,
    block_rows,
    in_row,
    loaded,
    numbers,
    open_rows,
    read_ahead,
    row_of,
)
from sparsestep.threads import one_blas_thread


def sums_of(source: Any, request: Request) -> tuple[Parts, RowCounts, str]:
    """Sums of anything that Arrow can read, the rows counted, and the source in words."""
    rows = open_rows(source, request.csv)
    request = request.choosing(rows.names, rows.where, rows.index)
    rows.select(request.columns, text=request.categories)
    this = _Pass(request, rows.place)
    blocks = map(this.block, rows.blocks(block_rows(len(request.names))))
    with (
        rows_read(request.progress, rows.count) as advance,
        # The blocks keep all cores busy by themselves.
        one_blas_thread(),
        closing(read_ahead(this.sums_of_block, blocks)) as found,
    ):

        def in_order() -> Iterator[Parts]:
            # Sums merged in the order of the rows do not depend on the threads.
            for count, parts in found:
                advance(count)
                yield parts

        return added(request.no_rows, in_order()), this.counts, rows.where


def partition_sums(batches: Any, part: int, request: Request) -> tuple[Parts, RowCounts]:
    """Sums of one partition, given as batches in order, in the thread that asks for them."""
    this = _Pass(request, lambda row: (row, f"partition {part}"), part)
    blocks = map(this.block, map(loaded, batches))
    return added(request.no_rows, (this.sums_of_block(block)[1] for block in blocks)), this.counts


class _Block(NamedTuple):
    """Some rows, where they are, the rows to use (None: all) and the fold of each (None: one)."""

    rows: int
    load: Callable[[], Iterable[Any]]
    where: Where
    keep: NDArray[np.intp] | None
    folds: NDArray[np.intp] | None


class _Pass:
    """One pass over rows in order: drops missing values, assigns folds, counts and sums."""

    def __init__(self, request: Request, place: Where, part: int = 0) -> None:
        self.request, self.counts, self._place = request, RowCounts(), place
        folds = request.folds
        self.numbers = None if folds is None else FoldNumbers(folds, request.seed, part)
        # Each thread uses its room again for the next block.
        self.memory = threading.local()

    def block(self, block: Block) -> _Block:
        """The next rows: rows with a missing value are left out, all others get a fold.

        The thread that sums the block loads it, unless missing values must be found before.
        """
        (rows, load), keep = block, None
        where = after(self.counts.rows, self._place)
        if self.request.categories:
            load = partial(self._encoded, load, where)
        if self.request.drop_missing:
            columns = list(load())
            load, keep = lambda: columns, self._complete(columns)
        self.counts.rows += rows
        used = rows if keep is None else len(keep)
        folds = None if self.numbers is None else self.numbers.take(used)
        return _Block(rows, load, where, keep, folds)

    def _encoded(self, load: Callable[[], Iterable[Any]], where: Where) -> Iterable[Any]:
        """The columns of a block, with zeros and ones for those that have categories."""
        columns = dict(zip(self.request.columns, load(), strict=True))
        found = encoded(columns, self.request.categories, where)
        return [found[name] for name in self.request.names]

    def _complete(self, columns: list[Any]) -> NDArray[np.intp] | None:
        """Numbers of the rows without a missing value; None if that is all of them."""
        missing = np.zeros(len(columns[0]), dtype=bool)
        # The columns to sum that stand for one column of the source are missing together.
        behind = (name for _, name in self.request.encoded)
        for name, column in dict(zip(behind, columns, strict=True)).items():
            if column.null_count or pa.types.is_floating(column.type):
                where = np.asarray(pc.is_null(column, nan_is_null=True))
                if count := int(np.count_nonzero(where)):
                    self.counts.missing[name] += count
                    missing |= where
        dropped = int(np.count_nonzero(missing))
        self.counts.dropped += dropped
        return np.flatnonzero(~missing) if dropped else None

    def sums_of_block(self, block: _Block) -> tuple[int, Parts]:
        """The rows of a block, used or not, and the sums of each fold."""
        request, rows, fold_of = self.request, block.keep, block.folds
        features, parts = request.feature_names, request.folds or 1
        if fold_of is not None:
            # Rows gathered fold by fold are summed without another copy. Small integers sort
            # fastest.
            order = np.argsort(fold_of.astype(np.min_scalar_type(parts)), kind="stable")
            rows, fold_of = (order if rows is None else rows[order]), fold_of[order]
        values = self._gathered(block, rows)
        X, y = values[:, : len(features)], values[:, len(features)]
        weight = None if request.weight is None else values[:, -1]
        if len(y) == 0 or (weight is not None and not weight.any()):
            return block.rows, request.no_rows
        try:
            return block.rows, fold_sums(Table(X, y, weight, features), fold_of, parts)
        except ValueError as error:
            rows = np.arange(block.rows) if rows is None else rows
            raise _explained(block, rows, values, request, error) from None

    def _gathered(self, block: _Block, rows: NDArray[np.intp] | None) -> NDArray[np.float64]:
        """Some rows (None: all) of all columns as doubles, missing values as NaN."""
        n, m = block.rows if rows is None else len(rows), len(self.request.names)
        room: NDArray[np.float64] | None = getattr(self.memory, "room", None)
        if room is None or len(room) < n * m:
            room = self.memory.room = np.empty(n * m)
        result = room[: n * m].reshape((n, m), order="F")
        for j, column in enumerate(block.load()):
            values = numbers(column)
            if rows is None:
                result[:, j] = values
            elif values.dtype == np.float64:
                # With this mode NumPy writes to the result directly instead of by way of a buffer.
                np.take(values, rows, out=result[:, j], mode="clip")
            else:
                result[:, j] = values[rows]
        return result


def _explained(
    block: _Block,
    rows: NDArray[np.intp],
    values: NDArray[np.float64],
    request: Request,
    error: ValueError,
) -> ValueError:
    """The error for values that have no moments, with the place of the first bad one."""
    # In the order of the rows instead of the folds.
    order = np.argsort(rows)
    rows, values = rows[order], values[order]
    if request.weight is not None:
        weight = values[:, -1]
        bad = ~(np.isfinite(weight) & (weight >= 0))
        if bad.any():
            i = int(bad.argmax())
            what = f"Weight {request.weight!r} is {weight[i]}"
            remedy = "weights must be finite and not negative"
            return InputError(what, in_row(*block.where(rows[i])), remedy)
        values[weight == 0] = 0.0
    found = np.argwhere(~np.isfinite(values))
    if len(found):
        i, j = found[0]
        where = in_row(*block.where(rows[i]))
        if np.isnan(values[i, j]):
            what = f"Column {request.encoded[j][1]!r} has a missing value"
            remedy = "fill it in, or leave out such rows with drop_missing"
            return MissingValueError(what, where, remedy)
        what = f"Column {request.names[j]!r} has the value {values[i, j]}"
        return InputError(what, where, "replace it or remove the row")
    if isinstance(error, OutOfRangeError):
        error = error.naming(request.target)
    (first, name), (last, last_name) = block.where(0), block.where(block.rows - 1)
    of = f" of {name}" if last_name != name else ""
    return ValueError(f"In rows {first}{of} to {row_of(last, last_name)}: {error}")


@contextmanager
def rows_read(
    show: bool | float, count: Callable[[], int | None]
) -> Iterator[Callable[[int], None]]:
    """A function to call with each number of rows read; it draws nothing unless `show`.

    A number is the seconds after which to begin. `count` tells the number of all rows, if known.
    """
    if show is False:
        yield lambda rows: None
        return
    from rich import progress as rich
    from rich.console import Console

    total = count()
    left = () if total is None else ("left", rich.TimeRemainingColumn())
    columns = ("Reading", rich.BarColumn(), "{task.fields[text]}", rich.TimeElapsedColumn(), *left)
    of = "" if total is None else f" of {total:,}"
    start, done = time.perf_counter(), 0
    progress = rich.Progress(*columns, console=Console(stderr=True))
    task = progress.add_task("", total=total, text="")

    def advance(rows: int) -> None:
        nonlocal done
        done += rows
        seconds = time.perf_counter() - start
        if seconds >= wait:
            progress.start()
        rate = done / max(seconds, 1e-9)
        progress.update(task, completed=done, text=f"{done:,}{of} rows, {rate:,.0f} rows/s")

    wait = 0.0 if show is True else float(show)
    try:
        yield advance
        if total is None:
            # The number of rows of a text file is known only at its end.
            progress.update(task, total=done)
    finally:
        progress.stop()
