"""The progress of a pass on standard error: rows, rows per second and the time left."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

__all__ = ["rows_read"]


@contextmanager
def rows_read(show: bool | float, total: int | None) -> Iterator[Callable[[int], None]]:
    """A function to call with each number of rows read; it draws nothing unless `show`.

    A number is the seconds after which to begin.
    """
    if show is False:
        yield lambda rows: None
        return
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    columns = (
        TextColumn("Reading"),
        BarColumn(),
        TextColumn("{task.fields[text]}"),
        TimeElapsedColumn(),
        *(() if total is None else (TextColumn("left"), TimeRemainingColumn())),
    )
    progress = Progress(*columns, console=Console(stderr=True))
    task = progress.add_task("", total=total, text="")
    start, done, drawn = time.perf_counter(), 0, False
    wait = 0.0 if show is True else float(show)
    if wait == 0.0:
        progress.start()
        drawn = True
    try:

        def advance(rows: int) -> None:
            nonlocal done, drawn
            done += rows
            seconds = time.perf_counter() - start
            if not drawn and seconds >= wait:
                progress.start()
                drawn = True
            rate = done / max(seconds, 1e-9)
            of = "" if total is None else f" of {total:,}"
            text = f"{done:,}{of} rows, {rate:,.0f} rows/s"
            progress.update(task, completed=done, text=text)

        yield advance
        if total is None:
            # Its own end is the only total that a text file has.
            progress.update(task, total=done)
    finally:
        if drawn:
            progress.stop()
