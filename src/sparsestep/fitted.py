"""Fits, and the choice among them: the model of each target in plain numbers.

What stands here needs no scikit-learn. The estimators show the numbers as attributes, and model
files hold them.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from sparsestep.collinearity import collinearity
from sparsestep.fingerprint import Fingerprint
from sparsestep.fitting import Fits, Settings, fit_alphas, fit_size
from sparsestep.inference import standard_errors, t_interval
from sparsestep.moments import Moments, leave_one_out
from sparsestep.path import Path, alphas_of, fit_path
from sparsestep.refinement import refine
from sparsestep.selection import least_criterion, validation_errors
from sparsestep.summary import Summary
from sparsestep.table import Table
from sparsestep.words import cross_validation, quoted, variables

__all__ = [
    "GIVEN_FOLDS",
    "CVResult",
    "Fitted",
    "Splits",
    "TargetModel",
    "beyond_the_end",
    "by_alpha",
    "by_criterion",
    "by_folds",
    "by_size",
    "by_validation",
    "stricter",
    "without_each",
]

Array = NDArray[np.float64]
# What made the splits where only the moments of each fold are known.
GIVEN_FOLDS = "the moments of each fold, given"
# Coefficients, intercept and alpha.
Point = tuple[Array, float, float]


@dataclass(frozen=True)
class Splits:
    """How rows were split into those to fit to and those to test on.

    Attributes
    ----------
    scheme : str
        In words, such as "10-fold cross-validation, 3 times".
    splitter : str, or None
        What made the splits, if not the order of the rows alone (or a seed).
    """

    scheme: str
    splitter: str | None = None


@dataclass(frozen=True)
class CVResult:
    """Cross-validation errors of all alphas of a path.

    Attributes
    ----------
    mse : ndarray of shape (n_alphas, n_folds)
    mean, se : ndarrays of shape (n_alphas,)
        Of a single fold there is no standard error: NaN.
    alpha_min, alpha_1se : float
        The alphas of the two rules; of a single fold they are the same.
    splits : Splits
    """

    mse: Array
    mean: Array
    se: Array
    alpha_min: float
    alpha_1se: float
    splits: Splits


@dataclass(frozen=True)
class TargetModel:
    """The model of one target.

    Attributes
    ----------
    coef : ndarray of shape (m,)
    intercept, alpha : float
    how : str
        How alpha was chosen, in words.
    facts : dict of str to str
        Lines of the summary on that choice.
    standard_error : ndarray of shape (m,)
        NaN for a variable that is not kept.
    free : float
        Degrees of freedom.
    r2 : float
        About zero if there is no intercept.
    path : Path, or None
    index : int, or None
        Of alpha on the path.
    cv : CVResult, or None
    criterion : ndarray of shape (n_alphas,), or None
    """

    coef: Array
    intercept: float
    alpha: float
    how: str
    facts: dict[str, str]
    standard_error: Array
    free: float
    r2: float
    path: Path | None = None
    index: int | None = None
    cv: CVResult | None = None
    criterion: Array | None = None


@dataclass(frozen=True)
class Fitted:
    """The models of all targets, and what to remember of their data."""

    targets: tuple[TargetModel, ...]
    target_names: tuple[str, ...]
    fingerprint: Fingerprint
    n_iter: int
    fit_intercept: bool

    @property
    def weights_note(self) -> str:
        """What to know of weights that do not add up to about the number of rows; else empty."""
        n, total = self.fingerprint.n_samples, self.fingerprint.weight_sum
        if n / 2 < total < 2 * n:
            return ""
        return (
            f"The weights of the {n} rows add up to {total:.5g}, and a weight of k counts as k "
            "copies of a row; if weights are no counts, give w * n / w.sum() instead."
        )

    def target_index(self, target: int | str) -> int:
        """Which target a number or a name stands for."""
        count = len(self.targets)
        if isinstance(target, str):
            if self.target_names.count(target) == 1:
                return self.target_names.index(target)
            known = quoted(self.target_names, 5)
            raise ValueError(f"target {target!r} is not the name of one of {known}.")
        if isinstance(target, bool) or not isinstance(target, int | np.integer):
            raise ValueError(f"target must be the number or name of a target; got {target!r}.")
        if not 0 <= target < count:
            raise ValueError(f"target must lie between 0 and {count - 1}; got {target!r}.")
        return int(target)

    def summary(self, names: Sequence[str], *, level: float, target: int | str) -> Summary:
        """The model of one target as a table; the columns have these names."""
        if not 0 < level < 1:
            raise ValueError(f"level must lie between 0 and 1; got {level!r}.")
        which = self.target_index(target)
        model = self.targets[which]
        low, high = t_interval(model.coef, model.standard_error, model.free, level)
        kept = np.flatnonzero(model.coef)
        effect = np.abs(model.coef[kept]) * self.fingerprint.deviation_x[kept]
        kept = kept[np.argsort(-effect, kind="stable")]
        r2 = "R2" if self.fit_intercept else "R2 about zero"
        n, weight = self.fingerprint.n_samples, self.fingerprint.weight_sum
        rows = f"{n} rows" + (f" of weight {weight:.9g} in all" if weight != n else "")
        facts = {
            **({"target": self.target_names[which]} if len(self.targets) > 1 else {}),
            "variables kept": f"{len(kept)} of {len(model.coef)}",
            "alpha": f"{model.alpha:.5g} ({model.how})",
            **model.facts,
            r2: f"{model.r2:.4f} on {rows}",
            "intercept": f"{model.intercept:.5g}",
        }
        if len(kept) and model.free <= 0:
            facts["no std. errors"] = (
                f"{rows} are too few for {variables(len(kept))}; a weight of k counts as k rows"
            )
        return Summary(
            facts,
            [names[int(j)] for j in kept],
            model.coef[kept],
            model.standard_error[kept],
            low[kept],
            high[kept],
            level,
            self.weights_note,
        )


def by_alpha(
    moments: Moments, alpha: Array, settings: Settings, rows: Table | None = None
) -> Fitted:
    """The model of one alpha, given as the only one of an array.

    Here and below the last digits come from the rows of `moments`, if these are given.
    """
    fits = fit_alphas([moments], alpha, settings)[0]
    models = []
    for t in range(np.size(moments.mean_y)):
        models.append(_model(moments, t, _point(fits, t, 0), "given", settings, rows))
    return _fitted(moments, models, fits.n_iter, settings)


def by_size(moments: Moments, size: int, settings: Settings, rows: Table | None = None) -> Fitted:
    """The best-fitting model found with exactly so many variables."""
    if size > moments.n_features:
        raise ValueError(
            f"n_nonzero={size} is more than the {moments.n_features} columns of X; lower it."
        )
    models, n_iter = [], 0
    for t in range(np.size(moments.mean_y)):
        fits = fit_size(moments.target(t), size, settings)
        found = int(fits.n_nonzero[0, 0])
        if found != size:
            names = _target_names(moments)
            of_target = f" of target {names[t]!r}" if len(names) > 1 else ""
            raise ValueError(
                f"No model of exactly n_nonzero={variables(size)}{of_target} was found; "
                f"the nearest has {found}: change n_nonzero."
            )
        how, point = f"{variables(size)} asked for", _point(fits, 0, 0)
        # After the swaps the model is least squares, as after polishing.
        swapped = replace(settings, polish="swap")
        models.append(_model(moments, t, point, how, swapped, rows))
        n_iter = max(n_iter, fits.n_iter)
    return _fitted(moments, models, n_iter, settings)


def by_folds(
    folds: Sequence[Moments],
    alphas: int | Array,
    rule: str,
    settings: Settings,
    splitter: str | None = None,
) -> Fitted:
    """The model that cross-validation over the folds chooses."""
    whole, train = without_each(folds)
    splits = Splits(cross_validation(len(folds)), splitter)
    return by_validation(whole, train, folds, splits, alphas, rule, settings)


def without_each(folds: Sequence[Moments]) -> tuple[Moments, list[Moments]]:
    """The moments of all folds together, and of all but each."""
    if len(folds) < 2:
        raise ValueError(f"Cross-validation needs at least two folds; got {len(folds)}.")
    return Moments.merge(folds), leave_one_out(folds)


def by_validation(
    whole: Moments,
    train: Sequence[Moments],
    valid: Sequence[Moments],
    splits: Splits,
    alphas: int | Array,
    rule: str,
    settings: Settings,
    say: Callable[[str], None] = lambda message: None,
    rows: Table | None = None,
) -> Fitted:
    """The model of the alpha that fits to each of `train` do best with on what they left out."""
    if rule not in ("min", "1se"):
        raise ValueError(f"rule must be 'min' or '1se'; got {rule!r}.")
    if rule == "1se" and len(valid) == 1:
        raise ValueError(
            "rule='1se' needs at least two splits, as the error on a single one has no standard "
            "error; use rule='min' or more splits."
        )
    for k, fold in enumerate(valid):
        if fold.weight_sum <= 0:
            raise ValueError(f"Fold {k} has no row of positive weight; use fewer folds.")
    grid = alphas_of(whole, alphas, settings)
    for tried in np.atleast_2d(grid):
        say(f"{len(tried)} alphas from {tried[0]:.3g} to {tried[-1]:.3g}")
    fits, *partial_fits = fit_alphas([whole, *train], grid, settings)
    models = []
    for t, errors in enumerate(validation_errors(partial_fits, valid, whole.weight_sum)):
        path, _ = Path.of(whole, fits, t)._refined(rows, t, whole, settings)
        best, sparse = errors.best(), errors.best_within_one_se(path.n_nonzero)
        index = best if rule == "min" else sparse
        mean, se = errors.mean, errors.se
        ends = float(path.alphas[best]), float(path.alphas[sparse])
        cv = CVResult(errors.mse, mean, se, *ends, splits)
        how, spread = f"{splits.scheme}, {rule}", f" +- {se[index]:.4g}"
        if len(valid) == 1:
            how, spread = splits.scheme, ""
        facts = {"CV error": f"{mean[index]:.5g}{spread}"}
        facts["CV error"] += _hint(path, index, alphas, whole.n_samples)
        point = _point(fits, t, index)
        models.append(_model(whole, t, point, how, settings, rows, facts, path, index, cv=cv))
        say(f"alpha {point[2]:.5g} keeps {variables(int(np.count_nonzero(point[0])))}")
    return _fitted(whole, models, fits.n_iter, settings)


def by_criterion(
    moments: Moments,
    alphas: int | Array,
    criterion: str,
    settings: Settings,
    rows: Table | None = None,
) -> Fitted:
    """The model of the smallest information criterion."""
    fits, _ = fit_path(moments, alphas, settings)
    models = []
    for t in range(np.size(moments.mean_y)):
        path, _ = Path.of(moments, fits, t)._refined(rows, t, moments, settings)
        values = path.criterion(criterion)
        index = least_criterion(values)
        name = criterion.upper()
        hint = _hint(path, index, alphas, moments.n_samples, criterion)
        facts = {name: f"{values[index]:.1f}{hint}"}
        point = _point(fits, t, index)
        models.append(
            _model(moments, t, point, name, settings, rows, facts, path, index, criterion=values)
        )
    return _fitted(moments, models, fits.n_iter, settings)


def beyond_the_end(path: Path, index: int, n_samples: int, *, automatic: bool) -> str:
    """Where a better alpha may be, if the chosen one is at an end of the path: larger, smaller.

    The ends of an `automatic` grid are the null and the full model, and nothing is beyond them; but
    with more columns than rows it ends at half as many variables as rows.
    """
    m, n_alphas = path.coefs.shape
    if n_alphas < 2:
        return ""
    if index == 0 and path.n_nonzero[0] > 0 and not automatic:
        return "larger"
    if automatic and m <= n_samples:
        return ""
    # Of alphas that keep the same variables the largest is chosen, and the others are no way on.
    at_the_end = np.all(path.n_nonzero[index:] == path.n_nonzero[-1])
    return "smaller" if at_the_end and 0 < path.n_nonzero[-1] < m else ""


def stricter(criterion: str) -> str:
    """What to use where a criterion would keep ever more of more columns than rows."""
    return ("" if criterion == "ebic" else "criterion='ebic' or ") + "cross-validation"


def _hint(
    path: Path, index: int, alphas: int | Array, n_samples: int, criterion: str | None = None
) -> str:
    """A warning if the choice is at an end of the alphas and may want to go further."""
    where = beyond_the_end(path, index, n_samples, automatic=isinstance(alphas, int))
    if not where:
        return ""
    advice = f"{where} ones"
    if criterion is not None and where == "smaller" and len(path.coefs) > n_samples:
        advice = stricter(criterion)
    return f" (at the end of alphas: try {advice})"


def _point(fits: Fits, target: int, index: int) -> Point:
    """Coefficients, intercept and alpha of one fit."""
    return (
        fits.coefs[target, index],
        float(fits.intercepts[target, index]),
        float(fits.alphas[target, index]),
    )


def _model(
    moments: Moments,
    target: int,
    point: Point,
    how: str,
    settings: Settings,
    rows: Table | None,
    facts: dict[str, str] | None = None,
    path: Path | None = None,
    index: int | None = None,
    *,
    cv: CVResult | None = None,
    criterion: Array | None = None,
) -> TargetModel:
    """The model of one target, with its standard errors and R2."""
    coef, intercept, alpha = point
    one = moments.target(target)
    known = collinearity(one, coef, fit_intercept=settings.fit_intercept)
    error, advice = known.error, "drop some of them, or fit the rows in memory."
    if rows is not None:
        coef, intercept, error = refine(rows, target, one, point, known, settings)
        advice = "drop some of them, or combine them."
    # Four calls from here to whoever called `fit`.
    known.warn(error, advice, stacklevel=5)
    errors, free = standard_errors(one, coef, known, fit_intercept=settings.fit_intercept)
    total = float(one.yty if settings.fit_intercept else one.rss(np.zeros_like(coef), 0.0))
    rss = float(one.rss(coef, intercept))
    r2 = 1.0 - rss / total if total > 0 else np.nan
    return TargetModel(
        coef, intercept, alpha, how, facts or {}, errors, free, r2, path, index, cv, criterion
    )


def _fitted(
    moments: Moments, models: Sequence[TargetModel], n_iter: int, settings: Settings
) -> Fitted:
    """All models, and the fingerprint of their data."""
    return Fitted(
        tuple(models),
        _target_names(moments),
        Fingerprint.of(moments),
        n_iter,
        settings.fit_intercept,
    )


def _target_names(moments: Moments) -> tuple[str, ...]:
    """What the targets are called; made up if that is not known."""
    count = np.size(moments.mean_y)
    return moments.target_names or (("y",) if count == 1 else tuple(f"y{t}" for t in range(count)))
