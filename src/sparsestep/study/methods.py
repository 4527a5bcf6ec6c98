"""The methods of the study: a name, a colour, and a function from a split to a fit.

All choose lambda by the best mean error of the same ten folds and are fitted once more to all
training rows. Each fits an intercept. The lasso and ridge take the variables as they are, as
scikit-learn does; SCAD and MC+ divide them by their standard deviations within each fit and
multiply the coefficients back, as R's ncvreg and sparsenet do. SparseStep has the settings of the
paper.

Timed are all fits, their errors on the held-out folds, the choice, and the last fit to all rows, in
processor time of one thread: on an idle core that is the wall time. All methods get the same
compressed data: the moments of the training sets. Only SparseStep, whose estimator takes the
moments of the folds, is also charged for merging these into training sets. Checking the optimality
conditions is not timed.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from time import process_time
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve, eigh

from sparsestep import Moments, Path, SparseStepCV, SparseStepIC
from sparsestep.selection.cross_validation import CVErrors, TrainAndTest
from sparsestep.study.datasets import N_ALPHAS, paper_grid
from sparsestep.study.descent import (
    calibrated,
    concave_violation,
    descend,
    descend_2015,
    least_squares_violation,
    ridge_violation,
)

Array = NDArray[np.float64]

SCAD_A = 3.7
# The values of R's sparsenet: infinity, then eight from 150 to almost 1, evenly in the logarithm.
MC_PLUS_A = (np.inf, *np.geomspace(150.0, 1.000001, 8).tolist())

_NO_A = (np.nan,)
# Number of lambdas on which sparsenet's own cross-validation chooses a.
SPARSENET_ALPHAS = 50
# How far the "own" grids go down from their largest lambda: that of glmnet and sparsenet for more
# rows than variables. Ridge never reaches the null model.
DEPTH, RIDGE_START, RIDGE_DEPTH = 1e-4, 1e2, 1e-8


@dataclass(frozen=True)
class Fit:
    """The model that a method chooses on a data set, and how it was found."""

    coef: Array
    intercept: float
    alpha: float  # the chosen lambda; NaN where there is none
    a: float  # the chosen a of MC+; else NaN
    at_end: str  # "smallest" or "largest" if alpha is at that end of its grid; else ""
    n_fits: int  # made to choose it, and the last ones
    seconds: float  # processor time of all of them
    # Worst relative violation of the optimality conditions in all of them, for SparseStep in those
    # to all training rows; NaN for least squares.
    optimality: float


# -- the paths of each penalty -----------------------------------------------------------------


# Fits of one training set: a row of coefficients, in the data's units, for each lambda; and how far
# the worst of them is from optimal, to be computed when the time does not count.
_Path = tuple[Array, Callable[[], float]]
# From a training set, lambdas and values of a to paths: one for each a, or a single one without a.
_PathsOf = Callable[[Moments, Array, Sequence[float]], list[_Path]]


def _least_squares(train: Moments, alphas: Array, _: Sequence[float]) -> list[_Path]:
    """``S b = q``."""
    return [(cho_solve(cho_factor(train.xtx), train.xty)[None], lambda: np.nan)]


def _ridge(train: Moments, alphas: Array, _: Sequence[float]) -> list[_Path]:
    """``(S + alpha I) b = q``, from one eigenvalue decomposition ``S = V W V'``."""
    values, vectors = eigh(train.xtx, driver="evd")
    coefs = (vectors.T @ train.xty / (values + alphas[:, None])) @ vectors.T
    return [(coefs, lambda: ridge_violation(train.xtx, train.xty, alphas, coefs))]


def _lasso(train: Moments, alphas: Array, _: Sequence[float]) -> list[_Path]:
    """Minimizes ``||y - Xb||^2 / 2n + lambda sum |b|``."""
    C, r = train.xtx / train.weight_sum, train.xty / train.weight_sum
    coefs = descend(C, r, alphas)
    return [(coefs, lambda: concave_violation(C, r, alphas, coefs))]


def _scad(
    train: Moments, alphas: Array, _: Sequence[float], descent: Callable[..., Array] = descend
) -> list[_Path]:
    """SCAD for variables of variance one."""
    C, r, scale = _standardized(train)
    B = descent(C, r, alphas, SCAD_A, scad=True)
    return [(B / scale, lambda: concave_violation(C, r, alphas, B, SCAD_A, scad=True))]


def _mc_plus(train: Moments, alphas: Array, values: Sequence[float]) -> list[_Path]:
    """MC+ for variables of variance one, of all a side by side."""
    C, r, scale = _standardized(train)
    return [
        (B / scale, partial(concave_violation, C, r, alphas, B, a))
        for B, a in zip(descend(C, r, alphas, values), values, strict=True)
    ]


def _sparsenet(
    train: Moments, alphas: Array, values: Sequence[float], *, warm: bool = False
) -> list[_Path]:
    """MC+ on sparsenet's scale of lambda, cold at each lambda unless `warm`."""
    C, r, scale = _standardized(train)
    # Of X'y / n if y is noise alone.
    spread = np.sqrt(train.yty) / train.weight_sum
    paths: list[_Path] = []
    for a in values:
        lambdas = calibrated(alphas, a, spread)
        B = descend_2015(C, r, lambdas, a, warm=warm)
        paths.append((B / scale, partial(concave_violation, C, r, lambdas, B, a)))
    return paths


def _standardized(train: Moments) -> tuple[Array, Array, Array]:
    """``X'X / n`` and ``X'y / n`` of variables of variance one, and their standard deviations."""
    n = train.weight_sum
    scale = np.sqrt(train.diag / n)
    C = train.xtx / (n * scale) / scale[:, None]
    np.fill_diagonal(C, 1.0)
    return C, train.xty / (n * scale), scale


# -- each method's own lambdas -----------------------------------------------------------------


def _ridge_lambdas(whole: Moments) -> Array:
    """From far above the eigenvalues of X'X, where coefficients are almost zero, to far below."""
    largest = RIDGE_START * eigh(whole.xtx, eigvals_only=True)[-1]
    return np.geomspace(largest, RIDGE_DEPTH * largest, N_ALPHAS)


def _lasso_lambdas(whole: Moments) -> Array:
    """Down from ``max |X'y| / n``, where all coefficients are zero."""
    largest = np.max(np.abs(whole.xty)) / whole.weight_sum
    return np.geomspace(largest, DEPTH * largest, N_ALPHAS)


def _concave_lambdas(whole: Moments, count: int = N_ALPHAS) -> Array:
    """The lambdas of the lasso on standardized variables, for SCAD and MC+."""
    largest = np.max(np.abs(_standardized(whole)[1]))
    return np.geomspace(largest, DEPTH * largest, count)


# -- the choice of lambda ----------------------------------------------------------------------


def _cross_validated(
    paths_of: _PathsOf,
    own_lambdas: Callable[[Moments], Array],
    values: Sequence[float],
    split: TrainAndTest,
    grid: str,
) -> Fit:
    """The fit whose lambda, and whose a of several, have the best mean error on the folds."""
    alphas = paper_grid() if grid == "paper" else own_lambdas(split.whole)
    start = process_time()
    errors: list[Array] = []
    made: list[_Path] = []
    for train, fold in zip(split.train, split.test, strict=True):
        paths = paths_of(train, alphas, values)
        rss = [fold.rss(coefs.T, train.mean_y - coefs @ train.mean_x) for coefs, _ in paths]
        # Lambda by lambda, so that of equal errors that of the largest lambda comes first.
        errors.append(np.column_stack(rss).ravel() / fold.weight_sum)
        made += paths
    weights = np.array([fold.weight_sum for fold in split.test])
    of_folds = CVErrors(np.column_stack(errors), weights, split.whole.weight_sum)
    place, chosen = divmod(of_folds.best(), len(values))
    made += paths_of(split.whole, alphas, values[chosen : chosen + 1])
    coefs, _ = made[-1]
    intercepts = split.whole.mean_y - coefs @ split.whole.mean_x
    seconds = process_time() - start
    return Fit(
        coef=coefs[place],
        intercept=float(intercepts[place]),
        alpha=float(alphas[place]),
        a=values[chosen],
        at_end=_end(place, len(alphas)),
        n_fits=len(alphas) * len(made),
        seconds=seconds,
        optimality=max(violation() for _, violation in made),
    )


def _end(place: int, count: int) -> str:
    """The end of a descending grid at which a place is, or nothing."""
    if count == 1 or 0 < place < count - 1:
        return ""
    return "largest" if place == 0 else "smallest"


def _ols(split: TrainAndTest, grid: str) -> Fit:
    """Least squares, which has no lambda: `grid` is ignored."""
    no_lambda = np.array([np.nan])
    return _cross_validated(_least_squares, lambda whole: no_lambda, _NO_A, split, "own")


def _mc_plus_2015(split: TrainAndTest, grid: str) -> Fit:
    """MC+ as the paper ran sparsenet: first a, by its own cross-validation; then lambda."""
    warm = partial(_sparsenet, warm=True)
    lambdas = partial(_concave_lambdas, count=SPARSENET_ALPHAS)
    first = _cross_validated(warm, lambdas, MC_PLUS_A, split, "own")
    then = _cross_validated(_sparsenet, _concave_lambdas, (first.a,), split, grid)
    return replace(
        then,
        n_fits=first.n_fits + then.n_fits,
        seconds=first.seconds + then.seconds,
        optimality=max(first.optimality, then.optimality),
    )


def _sparsestep(split: TrainAndTest, grid: str, *, bic: bool = False, **options: Any) -> Fit:
    """SparseStep by cross-validation, with options of `SparseStepCV`, or by BIC."""
    alphas = paper_grid() if grid == "paper" else N_ALPHAS
    whole, n_paths = split.whole, 1 if bic else len(split.test) + 1
    model: SparseStepCV | SparseStepIC
    start = process_time()
    if bic:
        model = SparseStepIC("bic", alphas=alphas, standardize=False).fit_moments(whole)
    else:
        model = SparseStepCV(alphas, standardize=False, **options).fit_moments([*split.test])
    seconds = process_time() - start
    place = int(np.argmin(np.abs(model.alphas_ - model.alpha_)))
    coefs = cast(Path, model.path_).coefs.T
    # Shrunk models solve these equations.
    ridge = np.diag(getattr(model, "shrinkage_", 0.0) * whole.diag)
    return Fit(
        coef=model.coef_,
        intercept=model.intercept_,
        alpha=model.alpha_,
        a=np.nan,
        at_end=_end(place, len(model.alphas_)),
        n_fits=n_paths * len(model.alphas_),
        seconds=seconds,
        optimality=least_squares_violation(whole.xtx + ridge, whole.xty, coefs),
    )


# -- the methods -------------------------------------------------------------------------------


@dataclass(frozen=True)
class Method:
    """A method: its colour and letter in pictures, and how it fits a split with a grid."""

    colour: str
    letter: str
    fit: Callable[[TrainAndTest, str], Fit]


CONTROL = "SparseStep"
# Of Okabe and Ito's colours, which people with colour blindness tell apart.
METHODS = {
    "OLS": Method("#8C8C8C", "O", _ols),
    "Ridge": Method("#E69F00", "R", partial(_cross_validated, _ridge, _ridge_lambdas, _NO_A)),
    "Lasso": Method("#56B4E9", "L", partial(_cross_validated, _lasso, _lasso_lambdas, _NO_A)),
    "SCAD": Method("#009E73", "C", partial(_cross_validated, _scad, _concave_lambdas, _NO_A)),
    "MC+": Method("#CC79A7", "M", partial(_cross_validated, _mc_plus, _concave_lambdas, MC_PLUS_A)),
    CONTROL: Method("#0072B2", "S", _sparsestep),
}
# SCAD and MC+ by the algorithms, and with the tolerances, of ncvreg and sparsenet in 2015.
RIVALS_2015 = {
    "SCAD": replace(
        METHODS["SCAD"],
        fit=partial(
            _cross_validated, partial(_scad, descent=descend_2015), _concave_lambdas, _NO_A
        ),
    ),
    "MC+": replace(METHODS["MC+"], fit=_mc_plus_2015),
}
# A variant of SparseStep is one entry here: it competes with the others in SparseStep's place, has
# a row in the table of each measure, and a rank plot. Options are those of `SparseStepCV`.
FOR_PREDICTION = "SparseStep average + shrink"
VARIANTS = {
    FOR_PREDICTION: Method("#D55E00", "P", partial(_sparsestep, rule="average", shrink="cv")),
    "SparseStep average": Method("#B8860B", "A", partial(_sparsestep, rule="average")),
    "SparseStep paired": Method("#3F9C9C", "D", partial(_sparsestep, rule="paired")),
}
# The same, fitted only if they are asked for.
EXTRAS = {
    "SparseStep 1se": Method("#7A5195", "1", partial(_sparsestep, rule="1se")),
    "SparseStep BIC": Method("#A6761D", "B", partial(_sparsestep, bic=True)),
    "SparseStep swap": Method("#7F3C8D", "W", partial(_sparsestep, polish="swap")),
}
ALL_METHODS = METHODS | VARIANTS | EXTRAS


def fit(
    folds: Sequence[Moments],
    grid: str,
    methods: Iterable[str] = METHODS,
    rivals: str = "converged",
) -> dict[str, Fit]:
    """Fit methods to the same folds, with the "paper" grid of 101 lambdas or each method's "own".

    With rivals "2015" SCAD and MC+ are run as in the paper, else to convergence.

    >>> from sparsestep.study.datasets import SCALES, generate, settings_of
    >>> data = generate(settings_of(SCALES["quick"])[31], SCALES["quick"])
    >>> for name, found in fit(data.folds, "paper").items():
    ...     print(f"{name:10} {found.n_fits:4d} fits, {np.count_nonzero(found.coef)} variables")
    OLS          11 fits, 10 variables
    Ridge      1111 fits, 10 variables
    Lasso      1111 fits, 7 variables
    SCAD       1111 fits, 3 variables
    MC+        9191 fits, 3 variables
    SparseStep 1111 fits, 3 variables
    """
    split = TrainAndTest.of_folds(folds, None)
    known = ALL_METHODS | (RIVALS_2015 if rivals == "2015" else {})
    return {name: known[name].fit(split, grid) for name in methods}
