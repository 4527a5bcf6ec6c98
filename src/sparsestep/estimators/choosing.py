"""The choice of a model: by an alpha, a size, cross-validation or an information criterion.

Each `by_...` takes moments and settings, fits the alphas it needs, chooses one by the functions of
`selection`, and gives the model to `_Models`, which adds standard errors and notes. `fit_path` fits
a path and chooses none. If the `rows` of the moments are given, they refine the coefficients of
nearly collinear columns.
"""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from sparsestep.errors import ManyVariablesWarning, ModelSizeError, warn
from sparsestep.estimators.fitted import CVResult, Fitted, Path, TargetModel
from sparsestep.inference.facts import GOOD, Collinearity, Fingerprint, collinearity, notes_of
from sparsestep.inference.notes import AtTheEnd, Determined, LostDigits, ManyVariables, Note
from sparsestep.inference.refinement import refine, refine_path
from sparsestep.moments.moments import Moments
from sparsestep.moments.table import Table
from sparsestep.selection.averaging import averaged, errors_of_averages, model_weights
from sparsestep.selection.criteria import supported
from sparsestep.selection.cross_validation import RULES, CVErrors, TrainAndTest, validation_errors
from sparsestep.selection.fitting import (
    Fits,
    alphas_to_fit,
    fit_alphas,
    fit_every_size,
    fit_size,
)
from sparsestep.selection.shrinkage import shrunk_by_validation
from sparsestep.solvers.scaled_problem import ScaledProblem, Settings
from sparsestep.solvers.wide import supported_size
from sparsestep.sources.request import indicators
from sparsestep.words import made_up_names, quoted, variables

Array = NDArray[np.float64]
# Residuals whose squares are this share of the target's own are rounding.
_ROUNDING = 1e-10


def fit_path(
    moments: Moments, alphas: int | str | Array, settings: Settings, rows: Table | None = None
) -> tuple[Path, Collinearity]:
    """The path of one target for a number of alphas, for given ones, or for every size.

    Also the collinearity of its largest model, with the error after refinement.
    """
    moments = settings.about(moments.target(0))
    missing: tuple[int, ...] = ()
    problem = ScaledProblem.of(moments, settings)
    if by_size := isinstance(alphas, str):
        fits, missing = fit_every_size(problem, settings)
    else:
        alphas = alphas_to_fit(problem, alphas, settings)
        [[fits]] = fit_alphas([problem], alphas, settings)
    path, error = _path(moments, fits, 0, settings, rows)
    fullest = path.coefs[:, np.argmax(path.n_nonzero)]
    known = collinearity(moments, fullest)
    known = known if error is None else replace(known, error=error)
    return replace(path, missing_sizes=missing, by_size=by_size), known


def _path(
    moments: Moments, fits: Fits, target: int, settings: Settings, rows: Table | None
) -> tuple[Path, float | None]:
    """The path of one target, given its moments; and the error after refinement, if refined."""
    n_nonzero = fits.n_nonzero
    rss, error = np.asarray(moments.rss(fits.coefs.T, fits.intercepts)), None
    if rows is not None:
        largest = np.abs(fits.coefs).max(axis=0, initial=0.0)
        ever = collinearity(moments, largest)
        # Some of the columns are no nearer to collinear than all of them, if rows tell all apart.
        if len(ever.support) and not 0 < ever.expected <= GOOD:
            refined = refine_path(rows, target, moments, fits, ever, settings)
            fits, rss, error = refined or (fits, rss, error)
    n, m = moments.weight_sum, moments.n_features
    return Path(
        alphas=fits.alphas,
        coefs=fits.coefs.T,
        intercepts=fits.intercepts,
        n_nonzero=n_nonzero,
        rss=rss,
        n_samples=n,
        feature_names=moments.feature_names,
        supported_size=supported_size(n, m) if moments.is_thin else None,
    ), error


def by_alpha(
    moments: Moments, alpha: Array, settings: Settings, rows: Table | None = None
) -> Fitted:
    """The model of one alpha, the only entry of an array."""
    models = _Models(moments, settings, rows)
    for t, fits in enumerate(fit_alphas([models.moments], alpha, settings)[0]):
        models.add(t, fits, 0, "given")
    return models.fitted()


def by_size(moments: Moments, size: int, settings: Settings, rows: Table | None = None) -> Fitted:
    """The best-fitting model found with exactly `size` variables."""
    if size > moments.n_features:
        raise ModelSizeError(size, f"is more than the {moments.n_features} columns")
    # After the swaps the model is least squares, as after polishing.
    models = _Models(moments, replace(settings, polish="swap"), rows)
    moments = models.moments
    for t in range(np.size(moments.mean_y)):
        problem = ScaledProblem.of(moments.target(t), settings)
        fits = fit_size(problem, size, settings)
        nearest = int(fits.n_nonzero[0])
        if nearest != size:
            names = _target_names(moments, rows)
            of_target = f" of target {names[t]!r}" if len(names) > 1 else ""
            why = _why(problem, size, fits, settings)
            noun = "variable" if size == 1 else "variables"
            what = f"{noun}{of_target} was found; the nearest has {nearest}{why}"
            raise ModelSizeError(size, what, nearest)
        models.add(t, fits, 0, f"{variables(size)} asked for")
    return models.fitted()


def _why(problem: ScaledProblem, size: int, nearest: Fits, settings: Settings) -> str:
    """Why no model has `size` variables, as far as that is known."""
    moments, always = problem.moments, int(np.count_nonzero(problem.may & (problem.factor == 0)))
    if always > size:
        return f", as {variables(always)} {'is' if always == 1 else 'are'} always kept"
    found = int(nearest.n_nonzero[0])
    if found > size:
        return ""
    if moments.rss(nearest.coefs[0], nearest.intercepts[0]) <= _ROUNDING * moments.yty:
        return ", which explain the target fully" if found else ", as the target is constant"
    rank = ScaledProblem.of(moments, replace(settings, penalty_factor=None)).rank
    return f", as no more than {rank} columns are independent" if rank < size else ""


def by_validation(
    parts: TrainAndTest,
    alphas: int | Array,
    rule: str,
    shrink: str | None,
    settings: Settings,
    say: Callable[[str], None] = lambda message: None,
    rows: Table | None = None,
) -> Fitted:
    """The model that a rule chooses by the held-out errors of all alphas; or an average."""
    _check_rule(rule, shrink, len(parts.test))
    models = _Models(parts.whole, settings, rows)
    whole, train = models.moments, [settings.about(part) for part in parts.train]
    problem = ScaledProblem.of(whole, settings)
    grid = alphas_to_fit(problem, alphas, settings)
    for tried in np.atleast_2d(grid):
        say(f"{len(tried)} alphas from {tried[0]:.3g} to {tried[-1]:.3g}")
    all_fits = fit_alphas([problem, *train], grid, settings)
    for t, fits in enumerate(map(list, zip(*all_fits, strict=True))):
        data = [moments.target(t) for moments in (whole, *train)]
        tests = [moments.target(t) for moments in parts.test]
        errors = validation_errors(fits[1:], tests, whole.weight_sum)
        rho = None
        if shrink is not None:
            rho, fits, errors = shrunk_by_validation(data, fits, tests, errors)
            say(f"shrinkage {rho:.4g}")
        path, _ = _path(data[0], fits[0], t, settings, None if rho else rows)
        sizes = path.n_nonzero
        index = errors.chosen(rule, sizes)
        average = None
        if rule != "average":
            of_rule = errors.of_rule(rule, sizes)
        else:
            weights = model_weights(errors)
            average = averaged(weights, path.coefs.T, data[0], rho or 0.0)
            of_rule = errors_of_averages(errors, fits[1:], data[1:], tests, rho or 0.0)
        cv = CVResult(
            mse=errors.mse,
            mean=errors.mean,
            se=errors.se,
            paired_se=errors.paired_se,
            alpha_min=float(path.alphas[errors.chosen("min", sizes)]),
            alpha_paired=float(path.alphas[errors.chosen("paired", sizes)]),
            alpha_1se=float(path.alphas[errors.chosen("1se", sizes)]),
            of_choice=float(of_rule.mean[0]),
            scheme=parts.scheme,
            splitter=parts.splitter,
            shrinkage=rho,
        )
        how = parts.scheme if len(parts.test) == 1 else f"{parts.scheme}, {rule}"
        facts = {"CV error": _cv_error(rule, errors, index, of_rule)}
        if rho is not None:
            facts["shrinkage"] = f"{rho:.4g} (ridge on the variables kept)" if rho else "none"
        models.note_the_end(t, path, index, automatic=isinstance(alphas, int))
        model = models.add(t, fits[0], index, how, facts, path, cv=cv, average=average)
        count = np.count_nonzero(model.coef)
        say(f"alpha {model.alpha:.5g} keeps {count} variable{'' if count == 1 else 's'}")
    return models.fitted()


def _cv_error(rule: str, errors: CVErrors, index: int, of_rule: CVErrors) -> str:
    """The error of the model chosen, for the summary."""
    if len(errors.weights) == 1:
        return f"{errors.mean[index]:.5g} without the choice of alpha"
    if rule == "average":
        return f"{of_rule.mean[0]:.5g} +- {of_rule.se[0]:.4g}"
    error = f"{errors.mean[index]:.5g} +- {errors.se[index]:.4g}"
    return error if rule == "1se" else f"{error}; {of_rule.mean[0]:.5g} with the choice of alpha"


def _check_rule(rule: str, shrink: str | None, n_splits: int) -> None:
    """Raise unless the rule and the shrinkage are known and the splits suffice for them."""
    if rule not in RULES:
        raise ValueError(f"rule must be one of {quoted(RULES, len(RULES))}; got {rule!r}.")
    if shrink not in (None, "cv"):
        raise ValueError(f"shrink must be None or 'cv'; got {shrink!r}.")
    if rule in ("paired", "1se") and n_splits == 1:
        raise ValueError(
            f"rule={rule!r} needs at least two splits, as the error on a single one has no "
            "standard error; use rule='min' or more splits."
        )


def by_criterion(
    moments: Moments,
    alphas: int | Array,
    criterion: str,
    settings: Settings,
    rows: Table | None = None,
) -> Fitted:
    """The model of the smallest information criterion."""
    models = _Models(moments, settings, rows)
    problem = ScaledProblem.of(models.moments, settings)
    grid = alphas_to_fit(problem, alphas, settings)
    for t, fits in enumerate(fit_alphas([problem], grid, settings)[0]):
        one = models.moments.target(t)
        path, _ = _path(one, fits, t, settings, rows)
        index, values = path.select(criterion).index, path.criterion(criterion)
        name = criterion.upper()
        facts = {name: f"{values[index]:.1f}"}
        models.note_the_end(t, path, index, automatic=isinstance(alphas, int), criterion=criterion)
        models.add(t, fits, index, name, facts, path, criterion=values)
    return models.fitted()


class _Models:
    """Collects the model of each target, and the notes on them."""

    def __init__(self, moments: Moments, settings: Settings, rows: Table | None) -> None:
        self._about_means, self._settings, self._rows = moments, settings, rows
        self.moments = settings.about(moments)
        self._models: list[TargetModel] = []
        self._n_iter = 0
        self._notes: list[Note] = []

    def note_the_end(
        self, target: int, path: Path, index: int, *, automatic: bool, criterion: str | None = None
    ) -> None:
        """Note it if the choice is at an end of the alphas, and a better one may lie beyond.

        Nothing lies beyond the ends of an `automatic` grid, the null and the full model; but with
        more columns than rows such a grid ends at the number of variables that the rows support.
        """
        m, n, sizes = len(path.coefs), self.moments.n_samples, path.n_nonzero
        if criterion is not None:
            among = supported(sizes, path.supported_size)
            sizes, index = sizes[among], int(np.searchsorted(among, index))
        if len(sizes) < 2:
            return
        # The largest alpha of a model is chosen, so smaller ones of the same size are no better.
        last = np.all(sizes[index:] == sizes[-1]) and 0 < sizes[-1] < m
        if index == 0 and sizes[0] > 0 and not automatic:
            self._notes.append(AtTheEnd(target, "larger", None, n))
        elif last and (m > n or not automatic):
            self._notes.append(AtTheEnd(target, "smaller", criterion if m > n else None, n))

    def add(
        self,
        target: int,
        fits: Fits,
        index: int,
        how: str,
        facts: dict[str, str] | None = None,
        path: Path | None = None,
        *,
        cv: CVResult | None = None,
        criterion: Array | None = None,
        average: tuple[Array, float, Array] | None = None,
    ) -> TargetModel:
        """The model of one target with its standard errors and R2: one of its fits, or an average.

        The `average` of all fits is coefficients, intercept and the weight of each variable.
        """
        settings, rows = self._settings, self._rows
        one_fit = fits.coefs[index], float(fits.intercepts[index]), None
        coef, intercept, inclusion = average or one_fit
        alpha = float(fits.alphas[index])
        self._n_iter = max(self._n_iter, fits.n_iter)
        one = self.moments.target(target)
        known = collinearity(one, coef)
        least_squares = inclusion is None and not (cv and cv.shrinkage)
        if least_squares:
            advice = "drop some of them, or fit the rows in memory."
            if rows is not None:
                advice = "drop some of them, or combine them."
            if rows is not None and known.expected > GOOD:
                refined = refine(rows, target, one, fits, index, known, settings)
                coef, intercept, known = *refined[:2], replace(known, error=refined[2])
            if lost := known.lost(advice):
                warn(lost)
                self._notes.append(LostDigits(target, lost.condition_number, lost.digits))
        errors, free = known.standard_errors(one, coef)
        if not least_squares:
            errors[:] = np.nan  # The formula is for least squares, not for averages or ridge.
        total = one.yty
        rss = float(one.rss(coef, intercept))
        r2 = (1.0 - rss / total if np.any(coef) else 0.0) if total > 0 else np.nan
        kept = np.flatnonzero(coef).tolist()
        if cv is None and criterion is None:
            self._note_many(target, kept)
        # As many variables as rows determine any target.
        if rss <= _ROUNDING * total and 0 < len(kept) < one.n_samples - one._df_of_means:
            self._notes.append(Determined(target, kept))
        self._models.append(
            TargetModel(
                coef=coef,
                intercept=intercept,
                alpha=alpha,
                how=how,
                facts=facts or {},
                standard_error=errors,
                free=free,
                r2=r2,
                path=path,
                cv=cv,
                criterion=criterion,
                inclusion=inclusion,
            )
        )
        return self._models[-1]

    def _note_many(self, target: int, kept: list[int]) -> None:
        """Warn of a model that has more variables than its rows can support, and note it."""
        n, m = self.moments.n_samples, self.moments.n_features
        chosen = int(np.count_nonzero(self._settings.factors(m)[kept]))
        if self.moments.is_thin and chosen > supported_size(n, m):
            note = ManyVariables(target, chosen, supported_size(n, m), n)
            self._notes.append(note)
            text = note.text(made_up_names(m), _target_names(self.moments, self._rows))
            warn(ManyVariablesWarning(text))

    def fitted(self) -> Fitted:
        """All models, the fingerprint of their data, and the notes on both."""
        moments = self._about_means
        kept = [np.flatnonzero(model.coef) for model in self._models]
        of_any = np.unique(np.concatenate(kept))
        fingerprint = Fingerprint.of(moments, of_any, self._rows)
        names = moments.feature_names or ()
        return Fitted(
            tuple(self._models),
            _target_names(moments, self._rows),
            fingerprint,
            self._n_iter,
            self._settings.fit_intercept,
            (*self._notes, *notes_of(fingerprint, kept, names)),
            {
                name: (list(known), indicators(name, known))
                for name, known in moments.categories.items()
            },
        )


def _target_names(moments: Moments, rows: Table | None) -> tuple[str, ...]:
    """The names of the targets, made up if they have none."""
    names = moments.target_names if rows is None else rows.target_names
    count = np.size(moments.mean_y)
    return names or (("y",) if count == 1 else tuple(f"y{t}" for t in range(count)))
