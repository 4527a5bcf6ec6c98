"""Many more columns than rows, against skglm's MC+, abess and R's glmnet in the same run.

    python benchmarks/wide.py [--repeats 5]

First a whole ten-fold cross-validation over 100 penalties of 200 x 5,000, as in `rivals`; then a
path.

Each contestant gets the same rows and finds models of 0 to some 50 variables: sparsestep and MC+
along 50 alphas, abess by size. The contestants take turns, skglm after a first call that compiles
it; times are medians, and the ratios are what to read: on a busy machine those of the processor
time. Each one's model is that of least extended BIC on its own path. skglm is handed columns
already standardized and in the order it wants, at no cost.
"""

import argparse
import ctypes
import os
import platform
import subprocess
import sys
import threading
import warnings
from time import perf_counter, process_time

import abess
import numpy as np
import skglm
from rivals.config import PROBLEMS
from rivals.libraries import LIBRARIES
from skglm.estimators import MCPRegression

from sparsestep import sparsestep_path
from sparsestep.selection.criteria import criterion_path

SIZES = ((200, 20_000, 0.0), (200, 20_000, 0.8), (500, 5_000, 0.0))
LARGEST = 50
N_ALPHAS = 50


def wide_data(n, m, correlation, seed=0):
    """Columns correlated like correlation^|i - j|, 10 of them in the model, signal-to-noise 10."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, m))
    for j in range(1, m if correlation else 1):
        X[:, j] = correlation * X[:, j - 1] + np.sqrt(1 - correlation**2) * X[:, j]
    b = np.zeros(m)
    b[rng.choice(m, 10, replace=False)] = rng.choice([-1, 1], 10) * rng.uniform(0.5, 1.5, 10)
    signal, noise = X @ b, rng.standard_normal(n)
    return X, signal + noise * np.linalg.norm(signal) / np.linalg.norm(noise) / np.sqrt(10), b


class Ours:
    """50 alphas from the null model to 50 variables, those found beforehand."""

    name = "sparsestep"

    def __init__(self, X, y):
        self.X, self.y = X, y
        top = sparsestep_path(X, y, alphas=2).alphas[0]
        path = sparsestep_path(X, y, alphas=top * np.geomspace(1, 5e-4, 40))
        end = path.alphas[np.argmax(path.n_nonzero >= LARGEST)]
        self.alphas = np.geomspace(top, end, N_ALPHAS)

    def run(self):
        self.coefs = sparsestep_path(self.X, self.y, alphas=self.alphas).coefs


class OursWithGrid(Ours):
    """50 alphas that the program chooses, to as many variables as the rows can support."""

    name = "sparsestep, its own alphas"

    def __init__(self, X, y):
        self.X, self.y = X, y

    def run(self):
        self.coefs = sparsestep_path(self.X, self.y, alphas=N_ALPHAS).coefs


class MCP:
    """50 alphas, the last keeping about 50 variables."""

    name = "skglm MC+"

    def __init__(self, X, y):
        self.scale = X.std(axis=0)
        self.X = np.asfortranarray((X - X.mean(axis=0)) / self.scale)
        self.y = y - y.mean()
        self.model = MCPRegression(alpha=1.0, gamma=3.0, fit_intercept=False)
        top = np.abs(self.X.T @ self.y).max() / len(y)
        shares = np.geomspace(1, 0.01, 20)
        kept = np.count_nonzero(self.model.path(self.X, self.y, top * shares)[1], axis=0)
        enough = kept >= LARGEST
        self.alphas = top * np.geomspace(1, shares[np.argmax(enough)], N_ALPHAS)

    def run(self):
        self.coefs = self.model.path(self.X, self.y, self.alphas)[1] / self.scale[:, np.newaxis]


class Abess:
    """Sizes 0 to 50; it returns the model of least extended BIC only."""

    name = "abess"

    def __init__(self, X, y):
        self.X, self.y = X, y

    def run(self):
        model = abess.LinearRegression(support_size=range(LARGEST + 1), ic_type="ebic")
        self.coefs = model.fit(self.X, self.y).coef_[:, np.newaxis]


CONTESTANTS = (Ours, OursWithGrid, MCP, Abess)


def chosen(X, y, coefs):
    """The coefficients of least extended BIC."""
    residual = (y - y.mean())[:, np.newaxis] - (X - X.mean(axis=0)) @ coefs
    rss, kept = np.sum(residual**2, axis=0), np.count_nonzero(coefs, axis=0)
    return coefs[:, np.argmin(criterion_path("ebic", rss, kept, len(y), X.shape[1]))]


def print_cross_validation(repeats):
    """Times of a whole cross-validation, and over that of abess."""
    data = PROBLEMS["wide"].draw(0)
    libraries = {name: LIBRARIES[name] for name in ("sparsestep", "abess", "glmnet")}
    seconds, work = {name: [] for name in libraries}, {name: [] for name in libraries}
    for _ in range(repeats + 1):
        for name, library in libraries.items():
            began, began_cpu = perf_counter(), process_time()
            fit = library.fit(data.X, data.y)
            seconds[name].append(fit.seconds or perf_counter() - began)
            work[name].append(process_time() - began_cpu)
    print("\n10-fold cross-validation, 100 penalties, 200 x 5,000\n")
    print("| | time | over abess | processor time |\n|---|---:|---:|---:|")
    base = np.median(seconds["abess"][1:])
    for name, library in libraries.items():
        time = np.median(seconds[name][1:])
        cpu = "" if library.in_r else f"{np.median(work[name][1:]):.2f} s"
        print(f"| {library.label} | {time:.2f} s | {time / base:.2f} | {cpu} |", flush=True)


def memory_above_data(contestant, size):
    """Peak while running minus what was in use before, in a process of its own, in MB."""
    out = subprocess.run(
        [sys.executable, __file__, "--memory", contestant.__name__, *map(str, size)],
        check=True,
        capture_output=True,
        text=True,
    )
    return float(out.stdout)


def print_memory(name, n, m, correlation):
    X, y, _ = wide_data(int(n), int(m), float(correlation))
    contestant = {each.__name__: each for each in CONTESTANTS}[name]
    contestant(X[:30, :90], y[:30]).run()
    task = contestant(X, y)
    ctypes.CDLL(None).malloc_trim(0)  # or what an earlier run freed is used again, unseen
    page = os.sysconf("SC_PAGE_SIZE")
    seen, finished = [], threading.Event()

    def resident():
        with open("/proc/self/statm") as statm:
            return int(statm.read().split()[1]) * page

    def watch():
        while not finished.wait(0.002):
            seen.append(resident())

    before = resident()
    watcher = threading.Thread(target=watch)
    watcher.start()
    task.run()
    finished.set()
    watcher.join()
    print((max(seen, default=before) - before) / 2**20)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--memory", nargs=4, help=argparse.SUPPRESS)
    options = parser.parse_args()
    warnings.filterwarnings("ignore")
    if options.memory:
        print_memory(*options.memory)
        return
    print(
        f"Python {platform.python_version()}, NumPy {np.__version__}, skglm {skglm.__version__}, "
        f"abess {abess.__version__}; {os.cpu_count()} cores, BLAS threads "
        f"{os.environ.get('OPENBLAS_NUM_THREADS', 'not limited')}"
    )
    print_cross_validation(options.repeats)
    for size in SIZES:
        n, m, correlation = size
        X, y, b = wide_data(*size)
        tasks = [each(X, y) for each in CONTESTANTS]
        seconds, cpu = [[] for _ in tasks], [[] for _ in tasks]
        for task in tasks:
            task.run()
        for _ in range(options.repeats):
            for task, times, work in zip(tasks, seconds, cpu, strict=True):
                began, began_cpu = perf_counter(), process_time()
                task.run()
                times.append(perf_counter() - began)
                work.append(process_time() - began_cpu)
        print(f"\nn = {n}, m = {m}, correlation {correlation}\n")
        print("| | time | processor time | memory | largest | found of 10 | false | error of b |")
        print("|---|---:|---:|---:|---:|---:|---:|---:|")
        for task, times, work in zip(tasks, seconds, cpu, strict=True):
            best = chosen(X, y, task.coefs)
            kept = best != 0
            largest = np.count_nonzero(task.coefs, axis=0).max()
            print(
                f"| {task.name} | {np.median(times):.2f} s | {np.median(work):.2f} s "
                f"| {memory_above_data(type(task), size):.0f} MB "
                f"| {LARGEST if isinstance(task, Abess) else largest} "
                f"| {np.count_nonzero(kept & (b != 0))} | {np.count_nonzero(kept & (b == 0))} "
                f"| {np.linalg.norm(best - b) / np.linalg.norm(b):.3f} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
