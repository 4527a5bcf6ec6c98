"""The main job on a built-in data set: few of 64 variables, effects that are not shrunk.

The diabetes data of scikit-learn (442 patients, 10 measurements) with all squares and
interactions: 64 columns. SparseStep and the lasso choose by the same ten folds.
"""

from time import perf_counter

import numpy as np
from rich.console import Console
from rich.table import Table
from sklearn.datasets import load_diabetes
from sklearn.linear_model import LassoCV
from sklearn.preprocessing import PolynomialFeatures, StandardScaler

from sparsestep import SparseStepCV

ALPHAS_SHOWN = 6


def diabetes_with_interactions():
    """The 64 columns, standardized, their names, and the target."""
    data = load_diabetes()
    products = PolynomialFeatures(2, include_bias=False)
    X = products.fit_transform(data.data)
    names = products.get_feature_names_out(data.feature_names)
    # The square of a variable of two values is the variable itself.
    keep = names != "sex^2"
    X = StandardScaler().fit_transform(X[:, keep])
    return X, data.target, np.array([name.replace(" ", "*") for name in names[keep]])


def main():
    """Fit both, print three tables."""
    console = Console(width=None)
    X, y, names = diabetes_with_interactions()
    console.print(f"[bold]Diabetes: {X.shape[0]} patients, {X.shape[1]} candidate variables[/bold]")

    began = perf_counter()
    model = SparseStepCV(rule="1se", n_jobs=-1).fit(X, y)
    seconds = perf_counter() - began
    began = perf_counter()
    lasso = LassoCV(cv=10, alphas=101, max_iter=50_000, n_jobs=-1).fit(X, y)
    lasso_seconds = perf_counter() - began

    path = model.path_
    # The smallest models of the path, and the alpha at which each appears first.
    sizes = np.unique(path.n_nonzero[path.n_nonzero > 0])[:ALPHAS_SHOWN]
    shown = [int(np.flatnonzero(path.n_nonzero == size)[0]) for size in sizes]
    table = Table(title="What survives as alpha falls: effects of one standard deviation")
    table.add_column("variable")
    for i in shown:
        table.add_column(f"alpha {path.alphas[i]:,.0f}", justify="right")
    ever = np.flatnonzero(path.coefs[:, shown].any(axis=1))
    first = [np.flatnonzero(path.coefs[j, shown])[0] for j in ever]
    for j in ever[np.argsort(first, kind="stable")]:
        cells = [f"{path.coefs[j, i]:.1f}" if path.coefs[j, i] else "." for i in shown]
        table.add_row(names[j], *cells)
    table.add_section()
    table.add_row("R2", *(f"{1 - path.rss[i] / path.rss[0]:.3f}" for i in shown))
    console.print(table)

    kept = np.flatnonzero(model.coef_)
    table = Table(title="Chosen by ten-fold cross-validation: effects with and without shrinkage")
    for heading in ("variable", "SparseStep", "lasso", "least squares on these"):
        table.add_column(heading, justify="left" if heading == "variable" else "right")
    ols = np.linalg.lstsq(X[:, kept], y - y.mean())[0]
    for j, b in sorted(zip(kept, ols, strict=True), key=lambda pair: -abs(pair[1])):
        table.add_row(names[j], f"{model.coef_[j]:.2f}", f"{lasso.coef_[j]:.2f}", f"{b:.2f}")
    table.add_section()
    index = int(np.argmin(np.abs(model.alphas_ - model.alpha_)))
    error = lasso.mse_path_.mean(axis=1).min()
    table.add_row("variables kept", str(len(kept)), str(np.count_nonzero(lasso.coef_)), "")
    table.add_row("CV error", f"{model.cv_mean_[index]:.0f}", f"{error:.0f}", "")
    table.add_row("seconds, 1010 fits", f"{seconds:.2f}", f"{lasso_seconds:.2f}", "")
    console.print(table)
    console.print(
        f"SparseStep keeps {len(kept)} variables, by the one-standard-error rule, at their "
        f"least-squares size.\nThe lasso keeps {np.count_nonzero(lasso.coef_)} and shrinks them."
    )


if __name__ == "__main__":
    main()
