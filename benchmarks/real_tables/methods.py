"""The methods: a name, and what makes an estimator with `fit`, `coef_` and `intercept_`.

All get the same standardized columns in one thread, and choose by the same ten contiguous folds of
shuffled rows, whose number is a multiple of ten; ridge leaves one row out, BIC needs no folds.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from rivals.config import FOLDS
from rivals.libraries import fold_numbers, skglm_path
from sklearn.linear_model import LassoLarsCV, LinearRegression, RidgeCV

from sparsestep import SparseStepCV, SparseStepIC


class Abess:
    """Best subset of every size within abess's own bound."""

    def fit(self, X, y):
        from abess.linear import LinearRegression

        model = LinearRegression(cv=FOLDS, thread=1).fit(X, y, cv_fold_id=fold_numbers(len(y)))
        self.coef_, self.intercept_ = model.coef_, float(model.intercept_)
        return self


class MCP:
    """MC+ along 30 lambdas for each of three gammas."""

    gammas = (1.5, 3.0, 10.0)

    def fit(self, X, y):
        # skglm's tolerance is absolute, so that the target must have a scale of its own.
        mean, scale, fold = y.mean(), y.std(), fold_numbers(len(y))
        z = (y - mean) / scale
        alphas = np.abs(X.T @ z).max() / len(z) * np.geomspace(1.0, 1e-3, 30)
        errors = np.zeros((len(self.gammas), len(alphas)))
        for k in range(FOLDS):
            train, test = fold != k, fold == k
            for error, gamma in zip(errors, self.gammas, strict=True):
                coefs, intercepts, _ = skglm_path(X[train], z[train], alphas, gamma)
                residuals = z[test, None] - X[test] @ coefs - intercepts
                error += np.sum(residuals**2, axis=0)
        best, at = np.unravel_index(np.argmin(errors), errors.shape)
        coefs, intercepts, _ = skglm_path(X, z, alphas[: at + 1], self.gammas[best])
        self.coef_, self.intercept_ = scale * coefs[:, -1], mean + scale * intercepts[-1]
        return self


@dataclass(frozen=True)
class Method:
    """An entry of the comparison."""

    label: str
    make: Callable[[], Any]
    what: str
    ours: bool = False
    dense: bool = False  # selects nothing


METHODS = {
    "min": Method(
        "SparseStepCV, min",
        lambda: SparseStepCV(n_jobs=1),
        "`SparseStepCV()`, the smallest cross-validation error",
        ours=True,
    ),
    "average_shrunk": Method(
        "SparseStepCV, average, shrunk",
        lambda: SparseStepCV(rule="average", shrink="cv", n_jobs=1),
        '`SparseStepCV(rule="average", shrink="cv")`, with ridge on the columns kept',
        ours=True,
    ),
    "average": Method(
        "SparseStepCV, average",
        lambda: SparseStepCV(rule="average", n_jobs=1),
        '`SparseStepCV(rule="average")`, the weighted average of all models',
        ours=True,
    ),
    "paired": Method(
        "SparseStepCV, paired",
        lambda: SparseStepCV(rule="paired", n_jobs=1),
        '`SparseStepCV(rule="paired")`, the sparsest within half the standard error of the '
        "difference",
        ours=True,
    ),
    "1se": Method(
        "SparseStepCV, 1se",
        lambda: SparseStepCV(rule="1se", n_jobs=1),
        '`SparseStepCV(rule="1se")`, the sparsest within one standard error of it',
        ours=True,
    ),
    "bic": Method(
        "SparseStepIC, bic",
        lambda: SparseStepIC("bic"),
        '`SparseStepIC("bic")`',
        ours=True,
    ),
    "lasso": Method(
        "lasso",
        lambda: LassoLarsCV(cv=FOLDS, max_iter=1000),
        "scikit-learn's `LassoLarsCV`, the exact path; `LassoCV` agrees with it, but on meats it "
        "stops short of convergence and has three times the error",
    ),
    "mcp": Method(
        "MC+",
        MCP,
        "skglm's `MCPRegression`, 30 lambdas for each gamma of 1.5, 3 and 10",
    ),
    "abess": Method(
        "abess",
        Abess,
        "best subset, `LinearRegression(cv=10)`, every size within its own bound; what it finds "
        "depends on the units of the target, which it gets as they are",
    ),
    "ridge": Method(
        "ridge",
        lambda: RidgeCV(alphas=np.geomspace(1e-6, 1e5, 100)),
        "scikit-learn's `RidgeCV`, 100 alphas from 10⁻⁶ to 10⁵, leaving one row out",
        dense=True,
    ),
    "ols": Method("least squares", LinearRegression, "all columns", dense=True),
}
