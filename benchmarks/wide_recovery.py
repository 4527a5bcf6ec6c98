"""What is found of the true variables with many more columns than rows, and the objective reached.

    python benchmarks/wide_recovery.py [--draws 20] [--columns 2000] [--problems 200]

First table: draws of 200 rows, ten of the columns with coefficients of size 0.7 to 1.3; columns
uncorrelated, neighbours correlated 0.8, every pair correlated 0.5; signal-to-noise ratio 3 and 10.
Found and false variables in all, of sparsestep and abess each by its extended BIC and by ten-fold
cross-validation, and of skglm's MC+ by extended BIC along 20 alphas.

Second: random problems of 15 to 40 rows and up to 200 columns. The exact objective, residual sum of
squares plus price times number of variables, of the working sets over that of the loop on all
columns (`solver="reference"`), at the price of a variable in the loop.
"""

import argparse
import sys
import warnings
from time import perf_counter

import abess
import numpy as np
from skglm.estimators import MCPRegression

from sparsestep import SparseStepCV, SparseStepIC, sparsestep_path
from sparsestep.selection.criteria import criterion_path
from sparsestep.solvers.schedule import Schedule
from sparsestep.solvers.wide import supported_size

ROWS, TRUE = 200, 10
DESIGNS = ("uncorrelated", "neighbours 0.8", "constant 0.5")


def columns(design, n, m, rng):
    """Standard normal columns with these correlations."""
    X = rng.standard_normal((n, m))
    if design == "neighbours 0.8":
        for j in range(1, m):
            X[:, j] = 0.8 * X[:, j - 1] + 0.6 * X[:, j]
    if design == "constant 0.5":
        X = np.sqrt(0.5) * (X + rng.standard_normal((n, 1)))
    return X


def draw(design, n, m, snr, seed):
    """Data and their true coefficients."""
    rng = np.random.default_rng([DESIGNS.index(design), n, m, seed])
    X = columns(design, n, m, rng)
    b = np.zeros(m)
    b[rng.choice(m, TRUE, replace=False)] = rng.choice([-1, 1], TRUE) * rng.uniform(0.7, 1.3, TRUE)
    signal, noise = X @ b, rng.standard_normal(n)
    return X, signal + noise * signal.std() / np.sqrt(snr), b


def by_mcp(X, y):
    """MC+ of least extended BIC among models that the rows support."""
    scale = X.std(axis=0)
    A, z = np.asfortranarray((X - X.mean(axis=0)) / scale), y - y.mean()
    model = MCPRegression(alpha=1.0, gamma=3.0, fit_intercept=False)
    alphas = np.abs(A.T @ z).max() / len(z) * np.geomspace(1, 0.1, 20)
    coefs = model.path(A, z, alphas)[1]
    kept = np.count_nonzero(coefs, axis=0)
    rss = np.sum((z[:, np.newaxis] - A @ coefs) ** 2, axis=0)
    values = criterion_path("ebic", rss, kept, len(z), X.shape[1])
    values[kept > supported_size(*X.shape)] = np.inf
    return coefs[:, np.argmin(values)]


def by_abess(X, y, **how):
    """Sizes up to its own bound."""
    sizes = range(supported_size(*X.shape) + 1)
    return abess.LinearRegression(support_size=sizes, **how).fit(X, y).coef_


CONTESTANTS = {
    "sparsestep, ebic": lambda X, y: SparseStepIC("ebic").fit(X, y).coef_,
    "sparsestep, gic": lambda X, y: SparseStepIC("gic").fit(X, y).coef_,
    "sparsestep, cv": lambda X, y: SparseStepCV().fit(X, y).coef_,
    "abess, ebic": lambda X, y: by_abess(X, y, ic_type="ebic"),
    "abess, gic": lambda X, y: by_abess(X, y, ic_type="gic"),
    "abess, cv": lambda X, y: by_abess(X, y, cv=10),
    "MC+, ebic": by_mcp,
}


def recovery(m, draws):
    """Print what each contestant finds."""
    cases = [(design, snr) for design in DESIGNS for snr in (3, 10)]
    began = perf_counter()
    print(f"\n{draws} draws of {ROWS} x {m}, {TRUE} true: found / false of {TRUE * draws}\n")
    print("| |", " | ".join(f"{design}, {snr}" for design, snr in cases), "| all |")
    print("|---|" + "---:|" * (len(cases) + 1))
    counts = {name: np.zeros((len(cases), 2), dtype=int) for name in CONTESTANTS}
    for at, (design, snr) in enumerate(cases):
        for seed in range(draws):
            X, y, b = draw(design, ROWS, m, snr, seed)
            for name, fit in CONTESTANTS.items():
                kept = fit(X, y) != 0
                counts[name][at] += (
                    np.count_nonzero(kept & (b != 0)),
                    np.count_nonzero(kept & (b == 0)),
                )
        so_far = {name: count[at].tolist() for name, count in counts.items()}
        print(f"{perf_counter() - began:.0f} s, {design}, {snr}: {so_far}", file=sys.stderr)
    for name, count in counts.items():
        cells = [f"{found} / {false}" for found, false in [*count, count.sum(axis=0)]]
        print(f"| {name} |", " | ".join(cells), "|", flush=True)


def objective(problems):
    """Print the objective of the working sets over that of the loop on all columns."""
    price = Schedule().price()
    ratios = []
    for seed in range(problems):
        rng = np.random.default_rng(seed)
        n = int(rng.integers(15, 41))
        m = int(rng.integers(n + 10, 201))
        design = DESIGNS[seed % 3]
        X, y, _ = draw(design, n, m, float(rng.choice([1, 3, 10])), seed)
        alphas = sparsestep_path(X, y, alphas=8).alphas[2::2]
        both = [sparsestep_path(X, y, alphas=alphas, solver=s) for s in ("auto", "reference")]
        ours, theirs = (path.rss + price * path.alphas * path.n_nonzero for path in both)
        ratios.append(ours / theirs)
    ratios = np.concatenate(ratios)
    print(
        f"\n{problems} problems, {len(ratios)} fits: objective / that of the loop on all columns\n"
    )
    shares = [np.mean(ratios < 1 - 1e-9), np.mean(ratios > 1 + 1e-9)]
    quantiles = np.quantile(ratios, [0, 0.05, 0.5, 0.95, 0.99, 1])
    print(f"geometric mean {np.exp(np.mean(np.log(ratios))):.4f}")
    print(f"better in {shares[0]:.1%}, worse in {shares[1]:.1%}")
    print("least, 5 %, 50 %, 95 %, 99 %, most:", " ".join(f"{each:.4f}" for each in quantiles))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--draws", type=int, default=20)
    parser.add_argument("--columns", type=int, default=2000)
    parser.add_argument("--problems", type=int, default=200)
    options = parser.parse_args()
    warnings.filterwarnings("ignore")
    if options.problems:
        objective(options.problems)
    if options.draws:
        recovery(options.columns, options.draws)


if __name__ == "__main__":
    main()
