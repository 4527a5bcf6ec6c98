"""The contestants: each does a whole cross-validation over about 100 penalties.

All get the same standardized columns and the same folds, ten contiguous ones, and take the penalty
of the smallest error. Each fit has an intercept. Libraries are imported when they fit: a missing
one is reported, and costs the others nothing.
"""

import json
import shutil
import subprocess
import tempfile
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

import numpy as np

from rivals.config import FOLDS, PENALTIES, THREADS

R_SCRIPT = Path(__file__).with_name("fit.R")
# Below so many numbers, copying the process costs R more than a second core saves.
WORTH_FORKING = 1_000_000


@dataclass(frozen=True)
class Fit:
    """Coefficients, whether all penalties converged (None: not said), seconds if timed inside."""

    coef: np.ndarray
    intercept: float
    converged: bool | None = None
    seconds: float | None = None


@dataclass(frozen=True)
class Library:
    """A contestant."""

    label: str
    package: str  # as its version is asked for; "R:glmnet" is R's
    fit: Callable[[np.ndarray, np.ndarray], Fit]
    what: str
    blas_threads: int = 1  # 1 where the folds already keep all threads busy
    floor: bool = False  # something to compare with that selects nothing

    @property
    def in_r(self):
        """Whether it runs in R, which warms up and takes the time itself."""
        return self.package.startswith("R:")

    def version(self):
        """Version installed, or None."""
        if self.in_r:
            return _r_version(self.package[2:])
        try:
            return metadata.version(self.package)
        except metadata.PackageNotFoundError:
            return None


def fold_numbers(n):
    """Fold of each row: those of scikit-learn's KFold, if n is a multiple of their number."""
    return np.arange(n) * FOLDS // n


def sparsestep(X, y):
    from sparsestep import SparseStepCV

    model = SparseStepCV(PENALTIES, cv=FOLDS, n_jobs=THREADS, standardize=False).fit(X, y)
    return Fit(model.coef_, model.intercept_)


def lasso_sklearn(X, y):
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.linear_model import LassoCV

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", ConvergenceWarning)
        model = LassoCV(alphas=PENALTIES, cv=FOLDS, n_jobs=THREADS).fit(X, y)
    short = any(issubclass(warning.category, ConvergenceWarning) for warning in caught)
    return Fit(model.coef_, model.intercept_, converged=not short)


def lasso_celer(X, y):
    return _over_folds(_celer_path, X, y)


def mcp_skglm(X, y):
    return _over_folds(skglm_path, X, y)


def subset_abess(X, y):
    from abess.linear import LinearRegression

    # Its default: every size up to this bound, here at most about 100 of them.
    n, m = X.shape
    largest = min(m, int(n / (np.log(np.log(n)) * np.log(m))))
    sizes = np.unique(np.linspace(0, largest, min(largest, PENALTIES) + 1).astype(int))
    model = LinearRegression(support_size=sizes, cv=FOLDS, thread=THREADS)
    model.fit(X, y, cv_fold_id=fold_numbers(n))
    return Fit(model.coef_, float(model.intercept_))


def golden_section_abess(X, y):
    from abess.linear import LinearRegression

    model = LinearRegression(path_type="gs", cv=FOLDS, thread=THREADS)
    model.fit(X, y, cv_fold_id=fold_numbers(len(y)))
    return Fit(model.coef_, float(model.intercept_))


def lasso_glmnet(X, y):
    """R's cv.glmnet, timed inside R: neither its start nor the file counts."""
    n, m = X.shape
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for part, values in (("X", X.T), ("y", y), ("fold", fold_numbers(n) + 1.0)):
            np.ascontiguousarray(values, dtype=np.float64).tofile(folder / f"{part}.bin")
        threads = THREADS if X.size >= WORTH_FORKING else 1
        arguments = [str(value) for value in (folder, n, m, PENALTIES, threads)]
        subprocess.run(
            ["Rscript", "--vanilla", str(R_SCRIPT), *arguments],
            check=True,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
        )
        coef = np.fromfile(folder / "coef.bin")
        said = json.loads((folder / "said.json").read_text())
    return Fit(coef[1:], float(coef[0]), said["converged"], said["seconds"])


def ridge_sklearn(X, y):
    from sklearn.linear_model import RidgeCV

    model = RidgeCV(alphas=np.geomspace(1e-6, 1e1, PENALTIES) * len(y)).fit(X, y)
    return Fit(model.coef_, model.intercept_)


def least_squares_sklearn(X, y):
    from sklearn.linear_model import LinearRegression

    model = LinearRegression().fit(X, y)
    return Fit(model.coef_, model.intercept_)


LIBRARIES = {
    "sparsestep": Library(
        "sparsestep", "sparsestep", sparsestep, "`SparseStepCV(100, cv=10)`", THREADS
    ),
    "lasso": Library(
        "scikit-learn, lasso", "scikit-learn", lasso_sklearn, "`LassoCV(alphas=100, cv=10)`"
    ),
    "glmnet": Library(
        "R glmnet, lasso",
        "R:glmnet",
        lasso_glmnet,
        '`cv.glmnet(nlambda=100, foldid=...)`, `type.gaussian="covariance"` where rows outnumber '
        "columns, folds on two cores through doParallel from a million numbers on",
    ),
    "celer": Library(
        "celer, lasso",
        "celer",
        lasso_celer,
        "`celer_path(n_alphas=100)` in a loop over folds; its `LassoCV` does not work with "
        "scikit-learn 1.9",
    ),
    "mcp": Library(
        "skglm, MC+",
        "skglm",
        mcp_skglm,
        "`MCPRegression.path`, 100 penalties, in a loop over folds",
    ),
    "abess": Library(
        "abess, best subset",
        "abess",
        subset_abess,
        "`LinearRegression(cv=10)`, every size within its default bound, 101 evenly spaced ones if "
        "there are more",
    ),
    "abess_golden": Library(
        "abess, golden section",
        "abess",
        golden_section_abess,
        '`LinearRegression(path_type="gs", cv=10)`: a search that tries few sizes',
    ),
    "ridge": Library(
        "scikit-learn, ridge",
        "scikit-learn",
        ridge_sklearn,
        "`RidgeCV(alphas=100)`, leaving one out",
        THREADS,
        floor=True,
    ),
    "least_squares": Library(
        "scikit-learn, least squares",
        "scikit-learn",
        least_squares_sklearn,
        "`LinearRegression()`, one fit",
        THREADS,
        floor=True,
    ),
}

# Looked for and not found; the tables say so.
UNAVAILABLE = {
    "R ncvreg": "not in Debian 12",
    "L0Learn": "neither on the package index nor in Debian 12",
}


def _r_version(package):
    """Version of an R package, or None."""
    if shutil.which("Rscript") is None:
        return None
    ask = f'cat(as.character(packageVersion("{package}")))'
    found = subprocess.run(
        ["Rscript", "--vanilla", "-e", ask],
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
    )
    return found.stdout if found.returncode == 0 else None


def _over_folds(path, X, y):
    """Cross-validation of a library that gives a path but none that works here."""
    from joblib import Parallel, delayed

    alphas = np.abs((X - X.mean(axis=0)).T @ (y - y.mean())).max() / len(y)
    alphas = alphas * np.geomspace(1.0, 1e-3, PENALTIES)
    fold = fold_numbers(len(y))
    # Processes, because these libraries hold Python's interpreter lock.
    results = Parallel(n_jobs=THREADS)(
        delayed(_fold_errors)(path, X, y, fold == k, alphas) for k in range(FOLDS)
    )
    errors = sum(error for error, _ in results)
    best = int(np.argmin(errors))
    coefs, intercepts, converged = path(X, y, alphas[: best + 1])
    converged = converged and all(done for _, done in results)
    return Fit(coefs[:, -1], float(intercepts[-1]), converged)


def _fold_errors(path, X, y, test, alphas):
    """Squared errors of all alphas on the rows left out, summed; and whether all converged."""
    coefs, intercepts, converged = path(X[~test], y[~test], alphas)
    left = y[test, None] - X[test] @ coefs - intercepts
    return np.sum(left**2, axis=0), converged


def _celer_path(X, y, alphas):
    from celer import celer_path

    mean_x, mean_y = X.mean(axis=0), y.mean()
    centred = y - mean_y
    tol = 1e-4  # as in celer's own Lasso
    _, coefs, gaps = celer_path(
        np.asfortranarray(X - mean_x), centred, "lasso", alphas=alphas, tol=tol
    )
    # celer stops at a gap relative to the mean square of y.
    converged = bool(np.all(gaps <= tol * (centred @ centred) / len(y)))
    return coefs, mean_y - mean_x @ coefs, converged


def skglm_path(X, y, alphas, gamma=3.0):
    """Coefficients and intercepts of MC+ for each alpha, and whether all converged."""
    from skglm import MCPRegression

    model = MCPRegression(gamma=gamma)
    _, coefs, violations, _ = model.path(np.asfortranarray(X), y, alphas)
    return coefs[:-1], coefs[-1], bool(np.all(violations <= model.tol))
