"""One pass: blocks of rows are summed while more are read, and the sums merged in order."""

import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from itertools import starmap
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from sparsestep.errors import InputError, MissingValueError, OutOfRangeError
from sparsestep.moments.sums import fold_sums
from sparsestep.moments.table import Table
from sparsestep.sources.folds import FoldNumbers, Parts, RowCounts, added
from sparsestep.sources.one_hot import encoded_batches, with_indicators
from sparsestep.sources.request import Request
from sparsestep.sources.rows import (
    Load,
    Place,
    block_rows,
    in_blocks,
    loaded,
    numbers,
    open_rows,
    row_of,
)
from sparsestep.threads import one_blas_thread

# Beyond this many threads the reading is slower than the products.
MOST_THREADS = 8
# Columns decoded before they are gathered: few, so that they stay in the cache and their memory is
# used again; enough to outweigh the opening of the file.
COLUMNS_AT_ONCE = 8


def sums_of(source: Any, request: Request) -> tuple[Parts, RowCounts, str]:
    """Sums of anything that Arrow can read, the rows counted, and the source in words."""
    rows = open_rows(source, request.csv)
    request = request.choosing(rows.names, rows.where, rows.index)
    if request.categories:
        of_source, request = request.names, with_indicators(request, rows)
        size = block_rows(len(request.names))
        batches = encoded_batches(rows, of_source, request.categories, request.names, size)
        blocks = in_blocks(batches, size)
    else:
        rows.select(request.names)
        blocks = rows.blocks(block_rows(len(request.names)))
    this = _Pass(request)
    threads = min(pa.cpu_count(), MOST_THREADS)
    running: deque[tuple[int, Future[Parts]]] = deque()
    with (
        rows_read(request.progress, rows.count) as advance,
        # The batches keep all cores busy by themselves.
        one_blas_thread(),
        ThreadPoolExecutor(threads) as pool,
    ):

        def oldest() -> Parts:
            count, job = running.popleft()
            parts = job.result()
            advance(count)
            return parts

        def in_order() -> Iterator[Parts]:
            # Sums merged in the order of the rows do not depend on the threads.
            for block in starmap(this.block, blocks):
                running.append((block.rows, pool.submit(this.sums_of_block, block)))
                del block
                if len(running) > threads:
                    yield oldest()
            while running:
                yield oldest()

        try:
            parts = added(request.no_rows, in_order())
        finally:
            for _, job in running:
                job.cancel()
    return parts, this.counts, rows.where


def partition_sums(tables: Any, part: int, request: Request) -> tuple[Parts, RowCounts]:
    """Sums of one partition, given as tables in order, in the thread that asks for them."""
    this = _Pass(request, part)

    def in_order() -> Iterator[Parts]:
        for table in tables:
            place = Place(f"partition {part}", this.counts.rows, table.num_rows)
            yield this.sums_of_block(this.block(loaded(table), [place]))

    return added(request.no_rows, in_order()), this.counts


class _Block(NamedTuple):
    """Columns of some rows, the rows to use (None: all) and the fold of each (None: one)."""

    load: Load
    places: Sequence[Place]
    keep: NDArray[np.intp] | None
    folds: NDArray[np.intp] | None

    @property
    def rows(self) -> int:
        """All rows, used or not."""
        return sum(place.rows for place in self.places)

    def where(self, row: int) -> str:
        """How a message says where a row is."""
        for place in self.places:
            if row < place.rows:
                break
            row -= place.rows
        return place.row(int(row))


class _Pass:
    """One pass over rows in order: drops missing values, assigns folds, counts and sums."""

    def __init__(self, request: Request, part: int = 0) -> None:
        self.request, self.counts = request, RowCounts()
        folds = request.folds
        self.numbers = None if folds is None else FoldNumbers(folds, request.seed, part)
        # Each thread uses its room again for the next block.
        self.memory = threading.local()

    def block(self, load: Load, places: Sequence[Place]) -> _Block:
        """The next rows: rows with a missing value are left out, all others get a fold.

        The thread that sums the block loads it, unless missing values must be found before.
        """
        rows = sum(place.rows for place in places)
        self.counts.rows += rows
        keep = None
        if self.request.drop_missing:
            table = load(self.request.names)
            load, keep = loaded(table), self._complete(table)
        rows = rows if keep is None else len(keep)
        return _Block(load, places, keep, None if self.numbers is None else self.numbers.take(rows))

    def _complete(self, table: Any) -> NDArray[np.intp] | None:
        """Numbers of the rows without a missing value; None if that is all of them."""
        missing = np.zeros(table.num_rows, dtype=bool)
        # The features that stand for one column of the source are missing together.
        behind = self.request.behind
        for name, feature in {behind.get(name, name): name for name in self.request.names}.items():
            column = table.column(feature)
            if column.null_count or pa.types.is_floating(column.type):
                where = np.asarray(pc.is_null(column, nan_is_null=True))
                if count := int(np.count_nonzero(where)):
                    self.counts.missing[name] += count
                    missing |= where
        dropped = int(np.count_nonzero(missing))
        self.counts.dropped += dropped
        return np.flatnonzero(~missing) if dropped else None

    def sums_of_block(self, block: _Block) -> Parts:
        """Sums of each fold of a block."""
        request, rows, fold_of = self.request, block.keep, block.folds
        features, parts = tuple(request.features or ()), request.folds or 1
        if fold_of is not None:
            # Rows gathered fold by fold are summed without another copy. Small integers sort
            # fastest.
            order = np.argsort(fold_of.astype(np.min_scalar_type(parts)), kind="stable")
            rows, fold_of = (order if rows is None else rows[order]), fold_of[order]
        n = block.rows if rows is None else len(rows)
        weight = None
        if request.weight is not None:
            weight = _gathered(block.load, [request.weight], rows, np.empty(n))[:, 0]
        if n == 0 or (weight is not None and not weight.any()):
            return request.no_rows
        X = _gathered(block.load, features, rows, self._room(n * len(features)))
        y = _gathered(block.load, [request.target], rows, np.empty(n))[:, 0]
        try:
            return fold_sums(Table(X, y, weight, features), fold_of, parts)
        except ValueError as error:
            raise _explained(block, request, error) from None

    def _room(self, size: int) -> NDArray[np.float64]:
        """Memory for `size` numbers, the same for all blocks that a thread sums."""
        room: NDArray[np.float64] | None = getattr(self.memory, "room", None)
        if room is None or len(room) < size:
            room = self.memory.room = np.empty(size)
        return room[:size]


def _gathered(
    load: Load, names: Sequence[str], rows: NDArray[np.intp] | None, room: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Some rows (None: all) of some columns as doubles in `room`, missing values as NaN."""
    result = room.reshape((-1, len(names)), order="F")
    for j, name in enumerate(names):
        if j % COLUMNS_AT_ONCE == 0:
            table = load(names[j : j + COLUMNS_AT_ONCE])
        values = numbers(table.column(name))
        if rows is None:
            result[:, j] = values
        elif values.dtype == np.float64:
            # With this mode NumPy writes to the result directly instead of by way of a buffer.
            np.take(values, rows, out=result[:, j], mode="clip")
        else:
            result[:, j] = values[rows]
    return result


def _explained(block: _Block, request: Request, error: ValueError) -> ValueError:
    """The error for a block that has no moments, with the place of the first bad value."""
    names, rows = request.names, block.keep if block.keep is not None else np.arange(block.rows)
    values = _gathered(block.load, names, rows, np.empty(len(rows) * len(names)))
    if request.weight is not None:
        weight = values[:, -1]
        bad = ~(np.isfinite(weight) & (weight >= 0))
        if bad.any():
            i = int(bad.argmax())
            what = f"Weight {request.weight!r} is {weight[i]}"
            return InputError(what, block.where(rows[i]), "weights must be finite and not negative")
        values[weight == 0] = 0.0
    found = np.argwhere(~np.isfinite(values))
    if len(found):
        i, j = found[0]
        where = block.where(rows[i])
        if np.isnan(values[i, j]):
            what = f"Column {request.behind.get(names[j], names[j])!r} has a missing value"
            remedy = "fill it in, or leave out such rows with drop_missing"
            return MissingValueError(what, where, remedy)
        what = f"Column {names[j]!r} has the value {values[i, j]}"
        return InputError(what, where, "replace it or remove the row")
    if isinstance(error, OutOfRangeError):
        error = error.naming(request.target)
    first, last = block.places[0], block.places[-1]
    of = f" of {first.name}" if last.name != first.name else ""
    end = row_of(last.first + last.rows - 1, last.name)
    return ValueError(f"In rows {first.first}{of} to {end}: {error}")


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
