"""The fits of the study: all data sets, side by side, resumed where an earlier run was stopped.

A data set is the unit of work. Its results depend on its number, the scale, the grid and the seed
only, are computed in one thread, and are written to a file of their own, completely or not at all.
So a run may be killed at any moment and started again, or use another number of processes: the
results are the same but for the times. A method that a finished run lacks is added to it.
"""

import itertools
import json
import os
import platform
import re
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from importlib.metadata import version
from multiprocessing import get_context, parent_process
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from threadpoolctl import threadpool_limits

from sparsestep.study.datasets import (
    FOLDS,
    SCALES,
    SEED,
    DataSet,
    Scale,
    Setting,
    generate,
    settings_of,
)
from sparsestep.study.methods import EXTRAS, METHODS, VARIANTS, Fit, fit
from sparsestep.study.results import RUN, as_table, read_run, write_file, write_results, write_run

# Progress that is not shown on a terminal is printed at most this often.
SECONDS_BETWEEN_LINES = 15.0


@dataclass(frozen=True)
class Plan:
    """What to run; more replicates can be added to a run later."""

    scale: Scale
    grid: str = "paper"
    extras: bool = False
    replicates: int = 1
    rivals: str = "converged"

    def __post_init__(self) -> None:
        if self.grid not in ("paper", "own"):
            raise ValueError(f"grid must be 'paper' or 'own'; got {self.grid!r}.")
        if self.rivals not in ("converged", "2015"):
            raise ValueError(f"rivals must be 'converged' or '2015'; got {self.rivals!r}.")
        if self.replicates < 1:
            raise ValueError(f"replicates must be at least 1; got {self.replicates}.")

    @property
    def settings(self) -> list[Setting]:
        """The settings of all data sets."""
        return settings_of(self.scale, self.replicates)

    @property
    def methods(self) -> list[str]:
        """The names of the methods."""
        return [*METHODS, *VARIANTS, *(EXTRAS if self.extras else ())]

    @property
    def key(self) -> dict[str, Any]:
        """The options that the results of a data set depend on."""
        key = {"scale": self.scale.name, "grid": self.grid, "extras": self.extras, "seed": SEED}
        # Folders of runs from before there was a choice stay valid.
        return key if self.rivals == "converged" else key | {"rivals": self.rivals}


# -- one data set ------------------------------------------------------------------------------


def measure(setting: Setting, data: DataSet, name: str, fit: Fit) -> dict[str, Any]:
    """The row of the results of one method on one data set."""
    kept = fit.coef != 0
    return {
        **asdict(setting),
        "n_train": sum(fold.n_samples for fold in data.folds),
        "n_test": data.test.n_samples,
        "method": name,
        "mse_b": float(np.mean((fit.coef - data.b) ** 2)),
        "hit_rate": float(np.mean(kept == (data.b != 0))),
        "mse_y": data.test.rss(fit.coef, fit.intercept) / data.test.n_samples,
        "time": fit.seconds / fit.n_fits,
        "n_fits": fit.n_fits,
        "alpha": fit.alpha,
        "a": fit.a,
        "at_end": fit.at_end,
        "n_nonzero": int(np.count_nonzero(kept)),
        "optimality": fit.optimality,
    }


def _part(out: Path, dataset: int) -> Path:
    """The file of the results of one data set."""
    return out / "parts" / f"{dataset:05d}.json"


def _data_folder(out: Path, plan: Plan, dataset: int) -> Path:
    """The folder of the moments of one data set, if `generate_study` writes them."""
    return out / "data" / plan.scale.name / f"{dataset:05d}"


def _fit_one(plan: Plan, setting: Setting, out: Path) -> None:
    """Fit the methods that the results of a data set lack, and write its file of results."""
    folder = _data_folder(out, plan, setting.dataset)
    data = DataSet.load(folder) if DataSet.is_saved(folder) else generate(setting, plan.scale)
    rows = _read_part(plan, out, setting.dataset)
    fits = fit(data.folds, plan.grid, _lacking(plan, rows), plan.rivals)
    rows += [measure(setting, data, name, found) for name, found in fits.items()]
    content = json.dumps({"plan": plan.key, "rows": rows}, indent=1) + "\n"
    write_file(_part(out, setting.dataset), content)


def _generate_one(plan: Plan, setting: Setting, out: Path) -> None:
    """Draw one data set and keep its moments."""
    generate(setting, plan.scale).save(_data_folder(out, plan, setting.dataset))


def _lacking(plan: Plan, rows: list[dict[str, Any]]) -> list[str]:
    """The methods that the results of a data set lack."""
    done = {row["method"] for row in rows}
    return [method for method in plan.methods if method not in done]


def _read_part(plan: Plan, out: Path, dataset: int) -> list[dict[str, Any]]:
    """The results of one data set so far; results of another plan are refused."""
    file = _part(out, dataset)
    if not file.is_file():
        return []
    try:
        content = json.loads(file.read_text(encoding="utf-8"))
        key, rows = content["plan"], list(content["rows"])
    except (ValueError, KeyError, TypeError) as error:
        raise ValueError(f"{file} is damaged: delete it and run again.") from error
    if key != plan.key:
        words = ", ".join(f"{name} {value}" for name, value in key.items())
        raise ValueError(
            f"{out} holds a run with {words}: give the same options or another folder."
        )
    return rows


# -- many, side by side ------------------------------------------------------------------------


def cost(setting: Setting) -> float:
    """Approximate time of a data set, relative to the others."""
    return 1.0 + (2.0 if setting.correlation == "constant" else 1.0) * (setting.m / 50) ** 2


def _start_worker() -> None:
    """Limit linear algebra to one thread, compile all functions, and end with the parent."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # Ctrl-C in a terminal: no traceback of workers
    threadpool_limits(1)
    parent = parent_process()
    assert parent is not None

    def end_with_parent() -> None:
        parent.join()
        os._exit(1)

    # The workers of a killed parent would wait for work for ever.
    threading.Thread(target=end_with_parent, daemon=True).start()
    # Compiling and importing at the first use must not count as time of a method.
    folds = generate(settings_of(SCALES["quick"])[0], SCALES["quick"]).folds
    for rivals in ("converged", "2015"):
        fit(folds, "paper", rivals=rivals)


def _side_by_side(
    work: Callable[[Plan, Setting, Path], None],
    plan: Plan,
    settings: Sequence[Setting],
    out: Path,
    jobs: int,
    show: bool,
) -> Iterator[Setting]:
    """Do the work of each setting in one of several processes; yield each finished setting."""
    if not settings:
        return
    # The longest first, so that all processes finish at about the same time.
    order = sorted(settings, key=cost, reverse=True)
    pool = ProcessPoolExecutor(jobs, get_context("spawn"), initializer=_start_worker)
    try:
        tasks = {pool.submit(work, plan, setting, out): setting for setting in order}
        with fits_done(settings, len(plan.settings) - len(settings), show=show) as tell:
            for task in as_completed(tasks):
                task.result()
                tell(tasks[task])
                yield tasks[task]
    except BrokenProcessPool as error:
        raise RuntimeError(
            "A process of the study ended unexpectedly, perhaps for want of memory; "
            "run it again with fewer jobs: what is done is kept."
        ) from error
    finally:
        pool.shutdown(cancel_futures=True)


def fit_study(
    plan: Plan, out: Path, *, jobs: int | None = None, progress: bool = False
) -> pd.DataFrame:
    """Fit all methods to all data sets that are not done yet, and write the table of results.

    The folder gets ``results.parquet``, ``run.json`` and, in ``parts``, a file for each data set.
    """
    jobs = _jobs(jobs)
    done = {s.dataset: _read_part(plan, out, s.dataset) for s in plan.settings}
    todo = [s for s in plan.settings if _lacking(plan, done[s.dataset])]
    earlier = read_run(out) if (out / RUN).is_file() else {"wall_time": 0.0}
    same_plan = (plan.key | {"replicates": plan.replicates}).items() <= earlier.items()
    # The time and the date of a finished run stay.
    if todo or not same_plan or earlier["finished"] is None:
        start, facts = time.perf_counter(), _facts(plan, jobs)

        def note(finished: str | None) -> None:
            wall_time = round(earlier["wall_time"] + time.perf_counter() - start, 1)
            write_run(facts | {"wall_time": wall_time, "finished": finished}, out)

        for setting in _side_by_side(_fit_one, plan, todo, out, jobs, progress):
            done[setting.dataset] = _read_part(plan, out, setting.dataset)
            note(finished=None)
        note(finished=datetime.now(UTC).strftime("%Y-%m-%d"))
    table = as_table([row for rows in done.values() for row in rows])
    write_results(table, out)
    # Remove half-written files of processes that were killed.
    for stray in (*out.glob(".*.tmp"), *(out / "parts").glob(".*.tmp")):
        stray.unlink(missing_ok=True)
    return table


def generate_study(
    plan: Plan, out: Path, *, jobs: int | None = None, progress: bool = False
) -> None:
    """Draw all data sets and keep their moments, for `fit_study` to read.

    Not needed before `fit_study`, which draws the data sets that it does not find. At the paper's
    scale the moments take 1.1 GB.
    """
    jobs = _jobs(jobs)
    todo = [s for s in plan.settings if not DataSet.is_saved(_data_folder(out, plan, s.dataset))]
    for _ in _side_by_side(_generate_one, plan, todo, out, jobs, progress):
        pass


def _jobs(jobs: int | None) -> int:
    """The number of processes."""
    if jobs is not None and jobs < 1:
        raise ValueError(f"jobs must be at least 1; got {jobs}.")
    return jobs or os.cpu_count() or 1


@contextmanager
def fits_done(
    settings: Sequence[Setting], before: int, *, show: bool
) -> Iterator[Callable[[Setting], None]]:
    """A function that reports progress and the time left, to be called with each finished setting.

    It draws a bar on a terminal, writes lines elsewhere, and does nothing unless `show`. An earlier
    run finished `before` data sets.
    """
    if not show:
        yield lambda setting: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TimeElapsedColumn, TimeRemainingColumn

    console, total, last = Console(stderr=True), before + len(settings), time.perf_counter()
    columns = ("Fitting", BarColumn(), "{task.description}", TimeRemainingColumn(), "left,")
    with Progress(
        *(*columns, TimeElapsedColumn(), "so far"),
        console=console,
        disable=not console.is_terminal,
        get_time=time.perf_counter,
        # Since the first data set, whose own time includes starting and compiling.
        speed_estimate_period=float("inf"),
    ) as bar:
        bar.add_task(f"{before} of {total} data sets", total=sum(map(cost, settings)))
        (task,) = bar.tasks
        count = itertools.count(before + 1)

        def tell(setting: Setting) -> None:
            nonlocal last
            text, now = f"{next(count)} of {total} data sets", time.perf_counter()
            bar.update(task.id, advance=cost(setting), description=text)
            due = now - last >= SECONDS_BETWEEN_LINES or task.finished
            if due and not console.is_terminal:
                last, seconds = now, task.time_remaining
                left = "" if seconds is None else f", {timedelta(seconds=round(seconds))} left"
                so_far = timedelta(seconds=round(task.elapsed or 0.0))
                print(f"{text}{left} ({so_far} so far)", file=sys.stderr, flush=True)

        yield tell


# -- facts about a run -------------------------------------------------------------------------


def _facts(plan: Plan, jobs: int) -> dict[str, Any]:
    """The contents of ``run.json`` but for the times."""
    libraries = ("sparsestep", "numpy", "scipy", "scikit-learn", "numba", "pandas", "pyarrow")
    return {
        **plan.key,
        "replicates": plan.replicates,
        "datasets": len(plan.settings),
        "n_train": plan.scale.n_train,
        "n_test": plan.scale.n_test,
        "folds": FOLDS,
        "jobs": jobs,
        "versions": {
            "Python": platform.python_version(),
            **{name: version(name) for name in libraries},
        },
        "machine": {
            "cpu": _cpu(),
            "cores": os.cpu_count(),
            "memory_gb": _memory(),
            "system": f"{platform.system()} {platform.machine()}",
        },
    }


def _cpu() -> str:
    """The processor's name, as Linux or else Python knows it."""
    info = Path("/proc/cpuinfo")
    text = info.read_text(encoding="utf-8") if info.is_file() else ""
    name = re.search(r"^model name\s*:(.*)", text, re.MULTILINE)
    return name[1].strip() if name else platform.processor() or "unknown"


def _memory() -> float | None:
    """Gigabytes of memory, where the system tells."""
    try:
        return round(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 1e9, 1)
    except (AttributeError, ValueError, OSError):
        return None
