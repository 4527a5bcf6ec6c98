"""Independent tasks side by side, each with one thread of linear algebra.

Small matrices are multiplied fastest by one thread; so tasks such as folds and blocks of rows share
the threads instead.
"""

import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import copy_context
from functools import cache
from typing import Any, TypeVar

import threadpoolctl

# Fewer than two tasks for each thread, and fewer than this many, leave threads idle at the end;
# linear algebra then uses them better.
ENOUGH_TASKS = 8

_T = TypeVar("_T")
_R = TypeVar("_R")

_limit_lock = threading.Lock()
_limit_users = 0
_limit: Any = None
_threads_without_limit = 1


@cache
def blas() -> Any:
    """Handle on the threads of NumPy's linear algebra."""
    return threadpoolctl.ThreadpoolController().select(user_api="blas")


def blas_threads() -> int:
    """How many threads linear algebra may use now."""
    return max((pool["num_threads"] for pool in blas().info()), default=1)


def task_threads() -> int:
    """How many tasks to run side by side: the threads of linear algebra without our limit."""
    return _threads_without_limit if _limit_users else blas_threads()


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Linear algebra in one thread per caller, as several callers at once are quickest.

    Threads of linear algebra that have just worked wait for more on a core of their own, some
    hundredths of a second long: too long beside fits that take no longer.

    The limit holds for the whole process, so the last of overlapping callers lifts it: each lifting
    its own would leave the limit of whoever came first in place for ever.
    """
    global _limit_users, _limit, _threads_without_limit
    with _limit_lock:
        if _limit_users == 0:
            _threads_without_limit = blas_threads()
            with _in_control():
                _limit = blas().limit(limits=1)
        _limit_users += 1
    try:
        yield
    finally:
        with _limit_lock:
            _limit_users -= 1
            # Whoever set another number since then wants that one.
            if _limit_users == 0 and blas_threads() == 1:
                with _in_control():
                    _limit.restore_original_limits()


@contextmanager
def _in_control() -> Iterator[None]:
    """Let this thread set the number of threads of linear algebra, and any other after it.

    From its version 3.8 on threadpoolctl listens only to the thread that set it first. That would
    keep one that comes later from setting it, and us from lifting our limit in another thread.
    """
    controller = threadpoolctl.OpenBLASController
    let_go = getattr(controller, "clear_controlling_thread", lambda force: None)
    let_go(force=True)
    yield
    let_go(force=True)


def side_by_side(function: Callable[[_T], _R], tasks: Sequence[_T], worthwhile: bool) -> list[_R]:
    """The function of each task, side by side in as many threads as linear algebra could use."""
    threads = task_threads() if worthwhile else 1
    if threads == 1 or len(tasks) < min(2 * threads, ENOUGH_TASKS):
        return [function(task) for task in tasks]
    # NumPy keeps what it does about overflow in the context, which threads do not inherit.
    contexts = [copy_context() for _ in tasks]
    with one_blas_thread(), ThreadPoolExecutor(min(threads, len(tasks))) as pool:
        return list(pool.map(lambda context, task: context.run(function, task), contexts, tasks))
