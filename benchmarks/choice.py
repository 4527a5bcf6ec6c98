"""What the constants of the rules "paired" and "average" do: average ranks beside five rivals.

    python benchmarks/choice.py [--draws tuning confirmation] [--jobs 2]

The settings of the simulation study with m = 10, 50 and 100, at 20,000, 2,000, 500 and 200 training
rows, with the study's folds, lambdas and ties. The constants were fixed on the draws "tuning"
(replicates 5 and 6 of the study; 5 alone at 20,000 rows) and confirmed on others (replicates 0
and 1, and 0). In each row of the table another choice on SparseStep's path competes with OLS,
ridge, lasso, SCAD and MC+; a lower rank is better. MSE of b is also given over that of OLS, as a
mean over data sets.
"""

import argparse
import json
import os
import sys
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context

# One thread of linear algebra for each process.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np

from sparsestep import SparseStepCV
from sparsestep.study.datasets import Scale, generate, paper_grid, settings_of
from sparsestep.study.methods import METHODS, fit
from sparsestep.study.statistics import fractional_ranks

RIVALS = [name for name in METHODS if name != "SparseStep"]
SIZES = (10, 50, 100)
SCALES = {
    n: Scale(f"{n} rows", n, max(n // 2, 5000), sizes=SIZES) for n in (20_000, 2_000, 500, 200)
}
REPLICATES = {"tuning": (5, 6), "confirmation": (0, 1)}


def paired(share, model, n, whole):
    """The sparsest model within a share of the standard error of the difference."""
    best = int(np.argmin(model.cv_mean_))
    near = model.cv_mean_ <= model.cv_mean_[best] + share * model.cv_paired_se_
    sizes = np.where(near, model.path_.n_nonzero, np.iinfo(int).max)
    fewest = np.flatnonzero(sizes == sizes.min())
    return model.path_.coefs[:, fewest[np.argmin(model.cv_mean_[fewest])]]


def one_standard_error(model, n, whole):
    """The classic rule."""
    return model.path_.coefs[:, np.argmax(model.alphas_ == model.alpha_1se_)]


def average(exponent, threshold, model, n, whole):
    """The average with weights ``error ** (-n / exponent)``."""
    weights = (model.cv_mean_ / model.cv_mean_.min()) ** (-n / exponent)
    weights /= weights.sum()
    kept = weights @ (model.path_.coefs.T != 0) > threshold
    mean = model.path_.coefs @ weights
    coef = np.where(kept, mean, 0.0)
    # Those that are kept take over what they can of the others.
    ridge = np.diag(getattr(model, "shrinkage_", 0.0) * whole.diag[kept])
    rest = whole.xtx[np.ix_(kept, ~kept)] @ mean[~kept]
    coef[kept] += np.linalg.solve(whole.xtx[np.ix_(kept, kept)] + ridge, rest)
    return coef


# A name, whether the models are shrunk, and the choice.
CHOICES = (
    [("1se", False, one_standard_error)]
    + [("min", False, partial(paired, 0.0)), ("min, shrunk", True, partial(paired, 0.0))]
    + [(f"paired, {s:g} standard errors", False, partial(paired, s)) for s in (0.25, 0.5, 1.0)]
    + [(f"average, n / {e:g}", False, partial(average, e, 0.5)) for e in (2.0, 3.0, 4.0)]
    + [
        (f"average, n / {e:g}, shrunk", True, partial(average, e, 0.5))
        for e in (1.0, 2.0, 3.0, 4.0, 6.0)
    ]
    + [(f"the same, n / 3, above {t:g}", True, partial(average, 3.0, t)) for t in (0.4, 0.6)]
)


def measures(data, coef, intercept):
    """MSE of b, misses, test MSE."""
    wrong = np.mean((coef != 0) != (data.b != 0))
    test = data.test.rss(coef, intercept) / data.test.n_samples
    return np.mean((coef - data.b) ** 2), wrong, test


def one(scale, setting):
    """For each choice the ranks of six methods on three measures; and MSE of b over that of OLS."""
    data = generate(setting, scale)
    others = [
        measures(data, f.coef, f.intercept) for f in fit(data.folds, "paper", RIVALS).values()
    ]
    models = [
        SparseStepCV(paper_grid(), standardize=False, shrink=shrink).fit_moments(data.folds)
        for shrink in (None, "cv")
    ]
    whole = sum(data.folds[1:], start=data.folds[0])
    ranks, over_ols = [], []
    for _, shrunk, choice in CHOICES:
        coef = choice(models[shrunk], scale.n_train, whole)
        ours = measures(data, coef, whole.mean_y - whole.mean_x @ coef)
        ranks.append([fractional_ranks([m])[0] for m in np.array([*others, ours]).T])
        over_ols.append(ours[0] / others[0][0])
    return np.array(ranks), np.array(over_ols)


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--draws", nargs="+", choices=REPLICATES, default=list(REPLICATES))
    parser.add_argument("--rows", nargs="+", type=int, choices=SCALES, default=list(SCALES))
    parser.add_argument("--sizes", nargs="+", type=int, choices=SIZES, default=SIZES)
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--json", help="also write the numbers to this file")
    options = parser.parse_args(arguments)
    numbers = {}
    for draws in options.draws:
        for n in options.rows:
            replicates = REPLICATES[draws][: 1 if n == 20_000 else 2]
            settings = [
                setting
                for setting in settings_of(SCALES[n], max(replicates) + 1)
                if setting.replicate in replicates and setting.m in options.sizes
            ]
            with ProcessPoolExecutor(options.jobs, get_context("spawn")) as pool:
                found = pool.map(partial(one, SCALES[n]), settings)
                ranks, over_ols = map(np.array, zip(*found, strict=True))
            print(f"\n{draws}: {len(settings)} data sets of {n:,} rows")
            print("| choice | MSE of b | hit rate | test MSE | the best rival | MSE of b / OLS |")
            print("|---|---:|---:|---:|---|---:|")
            numbers[f"{draws}, {n} rows"] = table = {}
            for k, (name, _, _) in enumerate(CHOICES):
                average_ranks = ranks[:, k].mean(axis=0)
                ours, rivals = average_ranks[:, -1], average_ranks[:, :-1].min(axis=1)
                table[name] = {
                    "ranks": average_ranks.round(4).tolist(),
                    "mse_b_over_ols": float(over_ols[:, k].mean()),
                }
                cells = [
                    f"**{a:.2f}**" if a < b else f"{a:.2f}"
                    for a, b in zip(ours, rivals, strict=True)
                ]
                best = ", ".join(f"{b:.2f}" for b in rivals)
                print(
                    f"| {name} | {' | '.join(cells)} | {best} | {over_ols[:, k].mean():.3f} |",
                    flush=True,
                )
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump(numbers, file, indent=1)


if __name__ == "__main__":
    sys.exit(main())
