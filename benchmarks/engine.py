"""A whole cross-validation against one least-squares fit, the lasso and the literal loop.

    python benchmarks/engine.py [--quick]

Data as in the paper: n = 20000, constant correlation 0.5, 75 % of the coefficients zero, signal-to-
noise ratio 1; 101 alphas from 2^-15 to 2^15, 10 folds: 1010 fits, and the pass over the rows is
included. Each figure is the best of several runs that alternate with those it is compared with, and
the ratios are what to read: the seconds are this machine's.
"""

import argparse
import os
import platform
import resource
import subprocess
import sys
import threading
import warnings
from time import perf_counter, sleep

import numpy as np
import scipy
import sklearn
from scipy.linalg import lapack
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LassoCV
from sklearn.preprocessing import PolynomialFeatures

from sparsestep import Moments, SparseStep, SparseStepCV

ALPHAS = 2.0 ** np.linspace(15, -15, 101)
N_JOBS = os.cpu_count() or 1


def paper_data(n, m, seed=0):
    """Constant correlation 0.5, 75 % zeros, signal-to-noise ratio 1."""
    rng = np.random.default_rng(seed)
    X = np.sqrt(0.5) * (rng.standard_normal((n, m)) + rng.standard_normal((n, 1)))
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    b = rng.uniform(-1, 1, m)
    b[m - int(0.75 * m) :] = 0.0
    signal, noise = X @ b, rng.standard_normal(n)
    return X, signal + noise * np.linalg.norm(signal) / np.linalg.norm(noise)


def best_of(repeats, **tasks):
    """The shortest time of each task, the tasks taking turns."""
    seconds = dict.fromkeys(tasks, np.inf)
    for _ in range(repeats):
        for name, task in tasks.items():
            # Threads of linear algebra that the task before left waiting on a core fall asleep.
            sleep(0.1)
            began = perf_counter()
            task()
            seconds[name] = min(seconds[name], perf_counter() - began)
    return seconds


def cross_validation(X, y):
    SparseStepCV(ALPHAS, cv=10, n_jobs=N_JOBS, standardize=False).fit(X, y)


def literal_loop(S, q, alpha):
    """Algorithm 1 called well: LAPACK's posv, one copy of the matrix per step."""
    b, gamma, A = np.zeros_like(q), 1e6, np.empty_like(S, order="F")
    while gamma > 1e-8:
        for _ in range(2):
            A[:] = S
            A.flat[:: len(q) + 1] += alpha * gamma**2 / (b**2 + gamma**2) ** 2
            b = lapack.dposv(A, q, lower=True, overwrite_a=True)[1]
        gamma /= 2
    return np.where(np.abs(b) < 1e-7, 0.0, b)


def against_least_squares_and_lasso(quick):
    print("\n1010 fits with the pass over the rows, n = 20000\n")
    print("|    m | all 1010 fits | / one lstsq | LassoCV / ours | literal loop / ours |")
    print("|-----:|--------------:|------------:|---------------:|--------------------:|")
    for m in (10, 100, 500):
        X, y = paper_data(20_000, m)
        repeats = 3 if m == 500 else 7
        seconds = best_of(
            repeats,
            ours=lambda X=X, y=y: cross_validation(X, y),
            lstsq=lambda X=X, y=y: np.linalg.lstsq(X, y),
        )
        lasso = literal = np.nan
        if not quick:
            lasso = best_of(
                1, lasso=lambda X=X, y=y: LassoCV(alphas=101, cv=10, n_jobs=2).fit(X, y)
            )["lasso"]
            S, q = X[:18_000].T @ X[:18_000], X[:18_000].T @ y[:18_000]
            sample = ALPHAS[5::24]
            began = perf_counter()
            for alpha in sample:
                literal_loop(S, q, alpha)
            literal = (perf_counter() - began) / len(sample) * 1010
        ours = seconds["ours"]
        print(
            f"| {m:4d} | {1e3 * ours:10.0f} ms | {ours / seconds['lstsq']:11.2f} "
            f"| {lasso / ours:14.1f} | {literal / ours:19.1f} |",
            flush=True,
        )


def one_fit():
    X, y = paper_data(20_000, 500)

    def plainly():
        S, q = X.T @ X, X.T @ y
        lapack.dposv(S, q, lower=True)

    seconds = best_of(5, ours=lambda: SparseStep(8.0, standardize=False).fit(X, y), plainly=plainly)
    ratio = seconds["ours"] / seconds["plainly"]
    print(f"\nOne fit, m = 500: {ratio:.2f} x the time of forming X'X and solving once")


def cost_in_rows():
    print("\nTen times the rows, m = 100")
    for n in (20_000, 200_000):
        X, y = paper_data(n, 100)
        folds = [np.arange(k * n // 10, (k + 1) * n // 10) for k in range(10)]
        parts = Moments.from_folds(X, y, folds)
        model = SparseStepCV(ALPHAS, n_jobs=N_JOBS, standardize=False)
        seconds = best_of(
            5,
            rows=lambda X=X, y=y, folds=folds: Moments.from_folds(X, y, folds),
            after=lambda parts=parts, model=model: model.fit_moments(parts),
        )
        print(
            f"  n = {n:6d}: the pass {1e3 * seconds['rows']:6.1f} ms, all else "
            f"{1e3 * seconds['after']:6.1f} ms"
        )


def ill_conditioned():
    print("\nIll-conditioned designs, 1010 fits, n = 20000")
    rng = np.random.default_rng(1)
    Z = rng.uniform(1.0, 1.75, (20_000, 6))
    polynomial = PolynomialFeatures(4, include_bias=False).fit_transform(Z)
    base = rng.standard_normal((20_000, 42))
    noise = rng.standard_normal((20_000, 209))
    blocks = np.sqrt(0.999) * np.repeat(base, 5, axis=1)[:, :209] + np.sqrt(0.001) * noise
    full_sets = [np.eye(k)[rng.integers(0, k, 20_000)] for k in (4, 8, 16, 31, 50)]
    indicators = np.concatenate([*full_sets, rng.standard_normal((20_000, 100))], axis=1)
    well, y = paper_data(20_000, 209)
    tasks = {}
    designs = {"polynomial": polynomial, "blocks_0.999": blocks, "indicators": indicators}
    for name, X in designs.items():
        X = (X - X.mean(axis=0)) / X.std(axis=0)
        target = X[:, ::9] @ rng.uniform(-1, 1, X[:, ::9].shape[1])
        target += target.std() * rng.standard_normal(len(target))
        condition = np.linalg.cond(X.T @ X)
        print(f"  {name}: m = {X.shape[1]}, condition number of X'X {condition:.0e}")
        tasks[name] = lambda X=X, target=target: cross_validation(X, target)
    seconds = best_of(2, well=lambda: cross_validation(well, y), **tasks)
    for name in tasks:
        ratio = seconds[name] / seconds["well"]
        print(f"  {name}: {ratio:.1f} x the time of the well-conditioned design of that size")


def peak_memory():
    """In a process of its own: the peak while fitting minus what was in use with the data made."""
    X, y = paper_data(20_000, 500)
    page = resource.getpagesize()
    seen, fitted = [], threading.Event()

    def resident():
        with open("/proc/self/statm") as statm:
            return int(statm.read().split()[1]) * page

    def watch():
        while not fitted.wait(0.005):
            seen.append(resident())

    before = resident()
    watcher = threading.Thread(target=watch)
    watcher.start()
    cross_validation(X, y)
    fitted.set()
    watcher.join()
    above = (max(seen) - before) / 2**20
    print(f"\nPeak memory above the data, 1010 fits at m = 500: {above:.0f} MB")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="leave out the slow rivals")
    parser.add_argument("--memory", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    # At 500 columns the lasso stops short of convergence, and says so a thousand times.
    warnings.filterwarnings("ignore", category=ConvergenceWarning)
    os.environ["PYTHONWARNINGS"] = "ignore"  # for its worker processes
    if options.memory:
        peak_memory()
        return
    print(
        f"Python {platform.python_version()}, NumPy {np.__version__}, SciPy {scipy.__version__}, "
        f"scikit-learn {sklearn.__version__}, {os.cpu_count()} cores"
    )
    against_least_squares_and_lasso(options.quick)
    one_fit()
    cost_in_rows()
    ill_conditioned()
    subprocess.run([sys.executable, __file__, "--memory"], check=True)


if __name__ == "__main__":
    main()
