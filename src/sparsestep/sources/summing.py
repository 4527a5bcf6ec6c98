"""One pass: blocks of rows are summed while more are read, and the sums merged in order."""

import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import pyarrow as pa

from sparsestep.sources.blocks import Load, Pass, Place, block_rows, block_sums, loaded
from sparsestep.sources.checks import Columns, Request, choose
from sparsestep.sources.file_rows import FileRows
from sparsestep.sources.merging import FoldSums, Parts, RowCounts
from sparsestep.sources.one_hot import one_hot
from sparsestep.sources.rows import Rows, open_rows
from sparsestep.threads import one_blas_thread

__all__ = ["partition_sums", "rows_read", "sums_of"]

# Beyond this many threads the reading is slower than the products.
MOST_THREADS = 8

# A function that reads the columns of some rows, and the places of these rows.
Blocks = Iterator[tuple[Load, list[Place]]]


def sums_of(source: Any, request: Request) -> tuple[Parts, RowCounts, str]:
    """Sums of anything that Arrow can read, the rows counted, and the source in words."""
    rows = open_rows(source, request.csv)
    columns = choose(
        rows.names, request.target, request.features, request.weight, rows.where, rows.index
    )
    if request.categories:
        columns, rows = one_hot(columns, rows, request.categories)
    rows.select(columns.all)
    size = block_rows(len(columns.all))
    this = Pass(columns, request)
    sums = FoldSums([columns.no_rows] * request.parts)
    threads = min(pa.cpu_count(), MOST_THREADS)
    memory = threading.local()
    running: deque[tuple[int, Future[Parts]]] = deque()
    with (
        rows_read(request.progress, rows.count) as advance,
        # The batches keep all cores busy by themselves.
        one_blas_thread(),
        ThreadPoolExecutor(threads) as pool,
    ):
        try:
            for load, places in _blocks(rows, size):
                block = this.block(load, places)
                job = pool.submit(block_sums, block, columns, request.parts, memory)
                running.append((sum(place.rows for place in places), job))
                del load, block, job
                while len(running) > threads:
                    _next(running, sums, advance)
            while running:
                _next(running, sums, advance)
        finally:
            for _, job in running:
                job.cancel()
    return sums.result(), this.counts, rows.where


def _next(running: deque[tuple[int, Future[Parts]]], sums: FoldSums, advance: Any) -> None:
    """Wait for the oldest block: sums in the order of the rows do not depend on the threads."""
    rows, job = running.popleft()
    sums.add(job.result())
    advance(rows)


def _blocks(rows: Rows, size: int) -> Blocks:
    """All rows in order, decoded by the threads that sum them if that is possible."""
    if isinstance(rows, FileRows) and rows.in_whole_groups(size):
        return rows.groups(size)
    return _gathered(rows.batches(size), size)


def _gathered(batches: Any, size: int) -> Blocks:
    """Batches put together, as tables of at most `size` rows, and where their rows come from."""
    waiting: list[Any] = []
    places: list[Place] = []
    have = 0
    for batch, name, first in batches:
        for start in range(0, batch.num_rows, size):
            part = batch.slice(start, size)
            if have + part.num_rows > size:
                yield loaded(pa.Table.from_batches(waiting)), places
                waiting, places, have = [], [], 0
            waiting.append(part)
            places.append(Place(name, first + start, part.num_rows))
            have += part.num_rows
    if waiting:
        yield loaded(pa.Table.from_batches(waiting)), places


def partition_sums(
    tables: Any, part: int, columns: Columns, request: Request
) -> tuple[Parts, RowCounts]:
    """Sums of one partition, given as tables in order, in the thread that asks for them."""
    this = Pass(columns, request, part)
    sums = FoldSums([columns.no_rows] * request.parts)
    memory = threading.local()
    for table in tables:
        place = Place(f"partition {part}", this.counts.rows, table.num_rows)
        block = this.block(loaded(table), [place])
        sums.add(block_sums(block, columns, request.parts, memory))
    return sums.result(), this.counts


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
            # Its own end is the only total that a text file has.
            progress.update(task, total=done)
    finally:
        progress.stop()
