"""`sparsestep demo`: the method at work on built-in data."""

import os
import tempfile
from pathlib import Path
from time import perf_counter
from typing import Annotated, Any

import numpy as np
from cyclopts import Parameter
from numpy.typing import NDArray

from sparsestep.cli.outputs import Screen, check_outputs

NAME = "sparsestep-demo.html"
SIZES_SHOWN = 6


def demo(
    *,
    report: Annotated[Path | None, Parameter(alias="-r")] = None,
    screen: Screen = Screen(),  # noqa: B008
) -> None:
    """See it at work on built-in data; writes a report.

    Parameters
    ----------
    report
        Write the report here (.html); sparsestep-demo.html in the current folder if not given.
    """
    import pyarrow as pa
    from sklearn.linear_model import LassoCV

    from sparsestep.estimators.estimators import SparseStepCV
    from sparsestep.report import write_report

    # Where nothing can be written here, the report goes to the folder for temporary files.
    folder = Path() if os.access(".", os.W_OK) else Path(tempfile.gettempdir())
    file = folder / NAME if report is None else report
    check_outputs([("report", file)])
    X, y, names = diabetes_with_products()
    screen.say(f"Diabetes: {len(y)} patients, {X.shape[1]} candidate variables", style="bold")
    began = perf_counter()
    table = pa.table(dict(zip(names, X.T, strict=True)))
    model = SparseStepCV().fit(table, y)
    seconds = perf_counter() - began
    began = perf_counter()
    # LassoCV's own grid; the option for its length has other names in other versions.
    largest = np.abs(X.T @ (y - y.mean())).max() / len(y)
    alphas = np.geomspace(largest, 1e-3 * largest, 101)
    lasso = LassoCV(cv=10, alphas=alphas, max_iter=50_000, n_jobs=-1).fit(X, y)
    lasso_seconds = perf_counter() - began
    write_report(model, file, target="progression", source="the diabetes data")

    _print_path(screen, model.path_, names)
    kept = np.flatnonzero(model.coef_)
    errors = lasso.mse_path_.mean(axis=1)
    ols = np.linalg.lstsq(X[:, kept], y - y.mean())[0]
    rows = [
        (names[j], f"{model.coef_[j]:.2f}", f"{lasso.coef_[j]:.2f}", f"{b:.2f}")
        for j, b in sorted(zip(kept, ols, strict=True), key=lambda pair: -abs(pair[1]))
    ]
    screen.say()
    screen.say("Chosen by ten-fold cross-validation: without and with shrinkage", style="italic")
    screen.table(("variable", "SparseStep", "lasso", "least squares on these"), rows)
    error = float(model.cv_mean_[np.flatnonzero(model.alphas_ == model.alpha_)[0]])
    facts = [
        ("variables kept", str(len(kept)), str(np.count_nonzero(lasso.coef_))),
        ("CV error", f"{error:.0f}", f"{errors.min():.0f}"),
        ("seconds, 1010 fits", f"{seconds:.2f}", f"{lasso_seconds:.2f}"),
    ]
    screen.say()
    screen.table(("", "SparseStep", "lasso"), facts)
    screen.say()
    screen.say(
        f"Each by its smallest error: SparseStep keeps {len(kept)} variables at their "
        f"least-squares size; the lasso keeps {np.count_nonzero(lasso.coef_)} and shrinks them."
    )
    screen.wrote(report=file)
    screen.print_json(
        {
            "rows": len(y),
            "variables": len(names),
            "sparsestep": {names[j]: float(model.coef_[j]) for j in kept},
            "lasso": {names[j]: float(lasso.coef_[j]) for j in np.flatnonzero(lasso.coef_)},
            "sparsestep_cv_error": error,
            "lasso_cv_error": float(errors.min()),
            "report": file,
        }
    )


def diabetes_with_products() -> tuple[NDArray[np.float64], NDArray[np.float64], list[str]]:
    """The 64 columns, standardized, the target, and the columns' names."""
    from sklearn.datasets import load_diabetes
    from sklearn.preprocessing import PolynomialFeatures, StandardScaler

    data = load_diabetes()
    products = PolynomialFeatures(2, include_bias=False)
    X = products.fit_transform(data.data)
    names = products.get_feature_names_out(data.feature_names)
    # The square of a variable of two values is the variable itself.
    keep = names != "sex^2"
    X = StandardScaler().fit_transform(X[:, keep])
    return X, data.target, [name.replace(" ", "*") for name in names[keep]]


def _print_path(screen: Screen, path: Any, names: list[str]) -> None:
    """The smallest models of the path, each at the alpha at which it appears first."""
    sizes = np.unique(path.n_nonzero[path.n_nonzero > 0])[:SIZES_SHOWN]
    shown = [int(np.flatnonzero(path.n_nonzero == size)[0]) for size in sizes]
    ever = np.flatnonzero(path.coefs[:, shown].any(axis=1))
    first = [np.flatnonzero(path.coefs[j, shown])[0] for j in ever]
    rows = [
        [names[j], *(f"{path.coefs[j, i]:.1f}" if path.coefs[j, i] else "." for i in shown)]
        for j in ever[np.argsort(first, kind="stable")]
    ]
    rows.append(["R2", *(f"{1 - path.rss[i] / path.rss[0]:.3f}" for i in shown)])
    screen.say()
    screen.say("What survives as alpha falls: effects of one standard deviation", style="italic")
    screen.table(["alpha", *(f"{path.alphas[i]:,.0f}" for i in shown)], rows)
