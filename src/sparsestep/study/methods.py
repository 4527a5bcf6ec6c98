"""The six methods of the study, each from the moments of the folds to its final coefficients.

All choose lambda by the best mean error of the same ten folds and are refitted to all training
rows. Each fits an intercept. The lasso and ridge take the variables as they are, as scikit-learn
does; SCAD and MC+ divide them by their standard deviations within each fit and multiply the
coefficients back, as R's ncvreg and sparsenet do. SparseStep has the settings of the paper.

What is timed is all fits, their errors on the folds left out, the choice, and the refit to all
rows, by one thread, in processor time: on an idle core that is the wall time, on a busy one it is
still the method's own. All methods get the same compressed data: the moments of the training sets.
Only SparseStep, whose estimator takes the moments of the folds, is also charged for merging these
into training sets. Checking the optimality conditions is not timed.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from time import process_time
from typing import cast

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve, eigh

from sparsestep import Moments, Path, SparseStepCV, SparseStepIC
from sparsestep.study.coordinate import descend
from sparsestep.study.design import N_ALPHAS, paper_grid
from sparsestep.study.optimality import (
    concave_violation,
    least_squares_violation,
    ridge_violation,
)

__all__ = ["MC_PLUS_A", "SCAD_A", "Fit", "fit_all", "fit_extras"]

Array = NDArray[np.float64]

SCAD_A = 3.7
# The values of R's sparsenet: infinity, then eight from 150 to almost 1, evenly in the logarithm.
MC_PLUS_A = (np.inf, *np.geomspace(150.0, 1.000001, 8).tolist())

# How far the "own" grids go down from their largest lambda: that of glmnet and sparsenet for more
# rows than variables; ridge, which never reaches the null model, starts far above X'X itself.
DEPTH, RIDGE_START, RIDGE_DEPTH = 1e-4, 1e2, 1e-8


@dataclass(frozen=True)
class Fit:
    """What a method makes of a data set.

    Attributes
    ----------
    method : str
    coef : ndarray of shape (m,)
    intercept : float
    alpha : float
        The lambda chosen; NaN where there is none.
    a : float
        The a chosen, for MC+; else NaN.
    at_end : {"", "smallest", "largest"}
        Whether alpha is at an end of its grid.
    n_fits : int
        Fits made to choose it, and the final ones.
    seconds : float
        Processor time of all of them.
    optimality : float
        Worst relative violation of the optimality conditions in all of them, for SparseStep in
        those to all training rows; NaN for least squares.
    """

    method: str
    coef: Array
    intercept: float
    alpha: float
    a: float
    at_end: str
    n_fits: int
    seconds: float
    optimality: float


@dataclass(frozen=True)
class _Path:
    """Fits of one training set: a row of `coefs`, in the data's units, for each lambda."""

    coefs: Array
    violation: Callable[[], float]

    def intercepts(self, train: Moments) -> Array:
        """The intercept of each fit."""
        return np.asarray(train.mean_y - self.coefs @ train.mean_x)


# The paths of one training set for the lambdas given: one for each of several a, if there are some.
_PathsOf = Callable[[Moments, Array, Sequence[float]], list[_Path]]
_NO_A = (np.nan,)


# -- the paths of each penalty -----------------------------------------------------------------


def _least_squares(train: Moments, alphas: Array, _: Sequence[float]) -> list[_Path]:
    """``S b = q``."""
    return [_Path(cho_solve(cho_factor(train.xtx), train.xty)[None], lambda: np.nan)]


def _ridge(train: Moments, alphas: Array, _: Sequence[float]) -> list[_Path]:
    """``(S + alpha I) b = q``, from one eigenvalue decomposition ``S = V W V'``."""
    values, vectors = eigh(train.xtx, driver="evd")
    coefs = (vectors.T @ train.xty / (values + alphas[:, None])) @ vectors.T
    return [_Path(coefs, lambda: ridge_violation(train.xtx, train.xty, alphas, coefs))]


def _lasso(train: Moments, alphas: Array, _: Sequence[float]) -> list[_Path]:
    """Minimizes ``||y - Xb||^2 / 2n + lambda sum |b|``."""
    C, r = train.xtx / train.weight_sum, train.xty / train.weight_sum
    coefs = descend(C, r, alphas)
    return [_Path(coefs, lambda: concave_violation(C, r, alphas, coefs))]


def _scad(train: Moments, alphas: Array, _: Sequence[float]) -> list[_Path]:
    """SCAD for variables of variance one."""
    C, r, scale = _standardized(train)
    B = descend(C, r, alphas, SCAD_A, scad=True)
    return [_Path(B / scale, lambda: concave_violation(C, r, alphas, B, SCAD_A, scad=True))]


def _mc_plus(train: Moments, alphas: Array, values: Sequence[float]) -> list[_Path]:
    """MC+ for variables of variance one, of all a side by side."""
    C, r, scale = _standardized(train)
    return [
        _Path(B / scale, partial(concave_violation, C, r, alphas, B, a))
        for B, a in zip(descend(C, r, alphas, values), values, strict=True)
    ]


def _standardized(train: Moments) -> tuple[Array, Array, Array]:
    """``X'X / n`` and ``X'y / n`` of variables of variance one, and their standard deviations."""
    n = train.weight_sum
    scale = np.sqrt(train.diag / n)
    C = train.xtx / (n * scale) / scale[:, None]
    np.fill_diagonal(C, 1.0)
    return C, train.xty / (n * scale), scale


# -- cross-validation --------------------------------------------------------------------------


@dataclass(frozen=True)
class _Split:
    """Moments of all rows, of each fold, and of all rows but each fold's."""

    whole: Moments
    valid: list[Moments]
    train: list[Moments]

    @classmethod
    def of(cls, folds: Sequence[Moments]) -> "_Split":
        """Training sets by merging what is before each fold with what is after it."""
        after = [folds[-1]]
        for fold in folds[-2:0:-1]:
            after.append(fold + after[-1])
        train = [after.pop()]
        before = folds[0]
        for fold in folds[1:-1]:
            train.append(before + after.pop())
            before = before + fold
        return cls(before + folds[-1], list(folds), [*train, before])


def _errors(path: _Path, train: Moments, valid: Moments) -> Array:
    """Mean squared error of each fit on the fold left out."""
    return np.asarray(valid.rss(path.coefs.T, path.intercepts(train)) / valid.weight_sum)


def _best(errors: Array) -> int:
    """The first of the smallest errors, but for rounding: as SparseStepCV chooses."""
    return int(np.argmax(errors <= (1 + 1e-10) * errors.min() + 1e-14 * errors.max()))


def _end(place: int, count: int) -> str:
    """Whether a place is at an end of a grid, whose largest comes first."""
    return "" if 0 < place < count - 1 or count == 1 else "smallest" if place else "largest"


def _cross_validated(
    method: str,
    split: _Split,
    alphas: Array,
    paths_of: _PathsOf,
    values: Sequence[float] = _NO_A,
) -> Fit:
    """The fit whose lambda, and whose a of several, have the best mean error on the folds."""
    start = process_time()
    errors = np.zeros((len(alphas), len(values)))
    made: list[_Path] = []
    for train, valid in zip(split.train, split.valid, strict=True):
        paths = paths_of(train, alphas, values)
        for k, path in enumerate(paths):
            errors[:, k] += _errors(path, train, valid) / len(split.valid)
        made += paths
    # Row by row, so that of equal errors that of the largest lambda comes first.
    place, chosen = divmod(_best(errors.ravel()), len(values))
    (path,) = paths_of(split.whole, alphas, values[chosen : chosen + 1])
    coef, intercept = path.coefs[place], float(path.intercepts(split.whole)[place])
    seconds = process_time() - start
    return Fit(
        method=method,
        coef=coef,
        intercept=intercept,
        alpha=float(alphas[place]),
        a=values[chosen],
        at_end=_end(place, len(alphas)),
        n_fits=len(alphas) * (len(made) + 1),
        seconds=seconds,
        optimality=max(each.violation() for each in (*made, path)),
    )


# -- the methods -------------------------------------------------------------------------------


def fit_all(folds: Sequence[Moments], grid: str) -> list[Fit]:
    """The six methods on the same folds.

    Parameters
    ----------
    folds : sequence of Moments
    grid : {"paper", "own"}
        The 101 lambdas of the paper for every method; or 101 down from each method's own largest.

    Returns
    -------
    list of Fit
        In the order of `results.METHODS`.

    Examples
    --------
    >>> from sparsestep.study.design import SCALES, settings_of
    >>> from sparsestep.study.generate import generate
    >>> from sparsestep.study.methods import fit_all
    >>> data = generate(settings_of(SCALES["quick"])[31], SCALES["quick"])
    >>> for fit in fit_all(data.folds, "paper"):
    ...     print(f"{fit.method:10} {fit.n_fits:4d} fits, {int((fit.coef != 0).sum())} variables")
    OLS          11 fits, 10 variables
    Ridge      1111 fits, 10 variables
    Lasso      1111 fits, 7 variables
    SCAD       1111 fits, 3 variables
    MC+        9191 fits, 3 variables
    SparseStep 1111 fits, 3 variables
    """
    split = _Split.of(folds)
    whole = split.whole
    alphas = _grid(whole, grid, standardize=True)
    return [
        _cross_validated("OLS", split, np.array([np.nan]), _least_squares),
        _cross_validated("Ridge", split, _ridge_grid(whole, grid), _ridge),
        _cross_validated("Lasso", split, _grid(whole, grid), _lasso),
        _cross_validated("SCAD", split, alphas, _scad),
        _cross_validated("MC+", split, alphas, _mc_plus, MC_PLUS_A),
        _sparsestep("SparseStep", folds, grid),
    ]


def _grid(whole: Moments, grid: str, *, standardize: bool = False) -> Array:
    """Lambdas of the lasso, SCAD and MC+: their own start where all coefficients are zero."""
    if grid == "paper":
        return paper_grid()
    r = _standardized(whole)[1] if standardize else whole.xty / whole.weight_sum
    largest = np.max(np.abs(r))
    return np.geomspace(largest, DEPTH * largest, N_ALPHAS)


def _ridge_grid(whole: Moments, grid: str) -> Array:
    """Lambdas of ridge: its own start far above the eigenvalues of X'X and end far below."""
    if grid == "paper":
        return paper_grid()
    largest = RIDGE_START * eigh(whole.xtx, eigvals_only=True)[-1]
    return np.geomspace(largest, RIDGE_DEPTH * largest, N_ALPHAS)


def _sparsestep(
    method: str,
    folds: Sequence[Moments],
    grid: str,
    *,
    rule: str = "min",
    polish: str | None = None,
) -> Fit:
    """SparseStep by cross-validation."""
    start = process_time()
    alphas = paper_grid() if grid == "paper" else N_ALPHAS
    model = SparseStepCV(alphas, rule=rule, standardize=False, polish=polish).fit_moments(folds)
    seconds = process_time() - start
    return _of_model(method, model, folds, len(folds) + 1, seconds)


def fit_extras(folds: Sequence[Moments], grid: str) -> list[Fit]:
    """SparseStep in three other ways.

    Parameters
    ----------
    folds, grid
        As in `fit_all`.

    Returns
    -------
    list of Fit
        In the order of `results.EXTRAS`: by the one-standard-error rule, by BIC, and polished.
    """
    sparser = _sparsestep("SparseStep 1se", folds, grid, rule="1se")
    start = process_time()
    alphas = paper_grid() if grid == "paper" else N_ALPHAS
    model = SparseStepIC("bic", alphas=alphas, standardize=False).fit_moments(Moments.merge(folds))
    bic = _of_model("SparseStep BIC", model, folds, 1, process_time() - start)
    return [sparser, bic, _sparsestep("SparseStep swap", folds, grid, polish="swap")]


def _of_model(
    method: str,
    model: SparseStepCV | SparseStepIC,
    folds: Sequence[Moments],
    n_paths: int,
    seconds: float,
) -> Fit:
    """What a fitted estimator of this package chose."""
    whole, path = Moments.merge(folds), cast(Path, model.path_)
    place = int(np.argmin(np.abs(model.alphas_ - model.alpha_)))
    return Fit(
        method=method,
        coef=model.coef_,
        intercept=model.intercept_,
        alpha=model.alpha_,
        a=np.nan,
        at_end=_end(place, len(model.alphas_)),
        n_fits=n_paths * len(model.alphas_),
        seconds=seconds,
        optimality=least_squares_violation(whole.xtx, whole.xty, path.coefs.T),
    )
