"""The progress of the study on standard error: data sets done, and the time left."""

import math
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from sparsestep.study.design import Setting

__all__ = ["cost", "fits_done", "time_left"]

# Where no bar can move, a line now and then.
SECONDS_BETWEEN_LINES = 15.0


def cost(setting: Setting) -> float:
    """Roughly how long a data set takes, relative to the others.

    Parameters
    ----------
    setting : Setting

    Returns
    -------
    float
    """
    equal = 2.0 if setting.correlation == "constant" else 1.0
    return 1.0 + equal * (setting.m / 50) ** 2


def time_left(elapsed: float, done: float, left: float) -> float:
    """Seconds for the cost that is left, at the speed so far; NaN if nothing is done yet.

    Parameters
    ----------
    elapsed : float
    done, left : float
        Sums of `cost`.

    Returns
    -------
    float

    Examples
    --------
    >>> from sparsestep.study.progress import time_left
    >>> time_left(10.0, done=2.0, left=6.0)
    30.0
    """
    return elapsed * left / done if done else float("nan")


@contextmanager
def fits_done(
    settings: Sequence[Setting], before: int, *, show: bool
) -> Iterator[Callable[[Setting], None]]:
    """A function to call with each setting that is done; it draws nothing unless `show`.

    Parameters
    ----------
    settings : sequence of Setting
        Those still to do.
    before : int
        How many were done by an earlier run.
    show : bool

    Yields
    ------
    callable
    """
    start = time.perf_counter()
    total, left = before + len(settings), sum(map(cost, settings))
    count, done = before, 0.0
    # The speed is that since the first data set: until then processes start and functions compile.
    first, done_first = start, 0.0

    def tell(setting: Setting) -> str:
        nonlocal count, done, first, done_first
        count, done = count + 1, done + cost(setting)
        if not done_first:
            first, done_first = time.perf_counter(), done
        text = f"{count} of {total} data sets"
        seconds = time_left(time.perf_counter() - first, done - done_first, left - done)
        return text if math.isnan(seconds) else f"{text}, {_minutes(seconds)} left"

    if not show:
        yield lambda setting: None
    elif sys.stderr.isatty():
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

        columns = (
            TextColumn("Fitting"),
            BarColumn(),
            TextColumn("{task.fields[text]}"),
            TimeElapsedColumn(),
        )
        with Progress(*columns, console=Console(stderr=True)) as bar:
            task = bar.add_task("", total=left, text=f"{before} of {total} data sets")

            def move(setting: Setting) -> None:
                text = tell(setting)
                bar.update(task, completed=done, text=text)

            yield move
    else:
        last = start

        def say(setting: Setting) -> None:
            nonlocal last
            text, now = tell(setting), time.perf_counter()
            if now - last >= SECONDS_BETWEEN_LINES or count == total:
                last = now
                print(f"{text} ({_minutes(now - start)} so far)", file=sys.stderr, flush=True)

        yield say


def _minutes(seconds: float) -> str:
    """As minutes and seconds."""
    whole = round(seconds)
    return f"{whole // 60}:{whole % 60:02d}"
