"""What moments cost beside the plain product ``X.T @ X`` on the same array in the same run.

Run with ``python benchmarks/moments_cost.py [repeats]``. The two are timed in turn, so that
whatever else the machine does hits both; the table gives the best of the repeats.
"""

import sys
import time
from collections.abc import Callable, Iterator
from functools import partial

import numpy as np

from sparsestep import Moments
from sparsestep.moments.moments import leave_one_out

TARGET = 1.5


def best_in_turn(functions: list[Callable[[], object]], repeats: int) -> list[float]:
    """Shortest time of each function, called in turn."""
    times = [float("inf")] * len(functions)
    for _ in range(repeats):
        for i, function in enumerate(functions):
            start = time.perf_counter()
            function()
            times[i] = min(times[i], time.perf_counter() - start)
    return times


def largest_error(moments: Moments, X: np.ndarray) -> float:
    """Difference from the sums of centred rows, relative to the columns' lengths."""
    centred = X - X.mean(axis=0)
    S = centred.T @ centred
    length = np.sqrt(np.diagonal(S))
    return float(np.max(np.abs(moments.xtx - S) / length / length[:, None]))


def cases(n: int, m: int) -> Iterator[tuple[str, np.ndarray, Callable[[], object]]]:
    """Name, array and function of each case on a table of n rows and m columns."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, m))
    X += 3.0
    y = X[:, 0] + rng.standard_normal(n)
    w = rng.uniform(0.5, 2.0, n)
    F = np.asfortranarray(X)
    shuffled = rng.permutation(np.arange(n) % 10)
    contiguous = np.sort(shuffled)
    yield "C order", X, lambda: Moments.from_data(X, y)
    yield "Fortran order", F, lambda: Moments.from_data(F, y)
    yield "weights", X, lambda: Moments.from_data(X, y, w)
    yield "10 contiguous folds", X, lambda: Moments.from_folds(X, y, contiguous)
    yield "10 shuffled folds", X, lambda: Moments.from_folds(X, y, shuffled)
    folds = Moments.from_folds(X, y, contiguous)
    yield "leaving each of 10 folds out", X, lambda: leave_one_out(folds)


def table(repeats: int) -> None:
    """Print a line for each case."""
    print(f"{'case':<46}{'X.T @ X':>10}{'moments':>10}{'ratio':>8}{'error':>10}")
    for n, m in ((2_000_000, 50), (20_000, 500), (20_000, 100)):
        for name, data, run in cases(n, m):
            plain, ours = best_in_turn([partial(np.matmul, data.T, data), run], repeats)
            result = run()
            error = ""
            if isinstance(result, Moments) and name != "weights":
                error = f"{largest_error(result, data):.1e}"
            label = f"{n} x {m}, {name}"
            print(f"{label:<46}{plain:>9.4f}s{ours:>9.4f}s{ours / plain:>8.2f}{error:>10}")
    print(f"Target: 2000000 x 50 in C order at a ratio of at most {TARGET}.")


if __name__ == "__main__":
    table(int(sys.argv[1]) if len(sys.argv) > 1 else 7)
