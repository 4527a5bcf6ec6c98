"""`sparsestep fit`: a table to a model."""

import warnings
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from cyclopts import Parameter
from numpy.typing import NDArray

from sparsestep.cli.errors import said_by_options
from sparsestep.cli.inputs import are_moments, expanded, read
from sparsestep.cli.options import Always, Flag, Polish, Seed, TableOptions, Talk, Whole
from sparsestep.cli.outputs import check_outputs
from sparsestep.cli.screen import Screen
from sparsestep.errors import InputError, LostDigitsWarning, ManyVariablesWarning
from sparsestep.estimators.choosing import (
    by_alpha,
    by_criterion,
    by_size,
    by_validation,
    fit_path,
)
from sparsestep.estimators.fitted import Fitted
from sparsestep.estimators.path import Path as ModelPath
from sparsestep.estimators.validation import alpha_values, one_alpha, whole_number
from sparsestep.model.document import Document, Kind
from sparsestep.model.file import fitted_document, fitted_of, write_document
from sparsestep.selection.criteria import Criterion
from sparsestep.selection.cross_validation import Rule
from sparsestep.selection.splitting import GIVEN_FOLDS, TrainAndTest
from sparsestep.solvers.equations import Settings

__all__ = ["ALPHAS", "alphas_given", "fit", "settings_of"]

FOLDS = 10
ALPHAS = "101"


def fit(
    data: list[str],
    /,
    *,
    table: TableOptions = TableOptions(),  # noqa: B008
    cv: Annotated[int | None, Whole] = None,
    alpha: float | None = None,
    criterion: Criterion | None = None,
    size: Annotated[int | None, Whole] = None,
    rule: Rule | None = None,
    shrink: Annotated[bool, Flag] = False,
    alphas: str = ALPHAS,
    polish: Polish = False,
    always: Always = None,
    seed: Seed = 0,
    model: Annotated[Path | None, Parameter(alias="-m")] = None,
    report: Annotated[Path | None, Parameter(alias="-r")] = None,
    talk: Talk = Talk(),  # noqa: B008
) -> None:
    """Fit a model to a table; write the model and the report.

    Parameters
    ----------
    data
        A Parquet, CSV or Arrow file, a folder or pattern of such files, or several. Or files that
        the command moments wrote (.npz): each is then a fold of the cross-validation.
    cv
        Choose alpha by cross-validation with so many random folds.
    alpha
        Use this alpha, in the units of the residual sum of squares.
    criterion
        Choose alpha by an information criterion.
    size
        Keep exactly so many variables: the best model of that size that is found by swaps.
    rule
        With cross-validation: the smallest error; the sparsest model near it, by half the standard
        error of the difference or by one of the error; or the average of all models.
    shrink
        With cross-validation: shrink the coefficients of the variables kept, by ridge regression
        whose penalty is cross-validated too. For prediction.
    alphas
        How many alphas to try, or which, as 1,10,100.
    model
        Write the model here (.json).
    report
        Write the report here (.html).
    """
    screen = Screen(talk)
    data = expanded(data)
    check_outputs([("model", model), ("report", report)], data)
    kind = _kind(cv, alpha, criterion, size, rule, shrink=shrink)
    wanted = alphas_given(alphas)
    folds = _folds(data, cv) if kind == "SparseStepCV" else None
    if alpha is not None:
        one_alpha(alpha)
    if size is not None:
        whole_number("--size", size, least=0)
    reading = read(data, table, screen, folds, seed)
    settings = settings_of(polish, reading.always(always))
    with (
        screen.waiting(f"Fitting {reading.parts[0].n_features} variables"),
        warnings.catch_warnings(),
        reading.naming_target(),
        said_by_options(table),
    ):
        # They are among the notes.
        warnings.simplefilter("ignore", LostDigitsWarning)
        warnings.simplefilter("ignore", ManyVariablesWarning)
        fitted: Fitted
        own: dict[str, Any]
        if alpha is not None:
            fitted = by_alpha(reading.whole, one_alpha(alpha), settings)
            own = {"alpha": alpha, "n_nonzero": None}
        elif size is not None:
            fitted = by_size(reading.whole, size, settings)
            own = {"alpha": 1.0, "n_nonzero": size}
        elif criterion is not None:
            fitted = by_criterion(reading.whole, wanted, criterion, settings)
            own = {"criterion": criterion, "alphas": wanted}
        else:
            splitter = GIVEN_FOLDS if are_moments(data) else None
            how = rule or "min", "cv" if shrink else None
            parts = TrainAndTest.of_folds(reading.parts, splitter)
            fitted = by_validation(parts, wanted, *how, settings)
            own = {"alphas": wanted, "cv": len(reading.parts), "rule": how[0], "shrink": how[1]}
            own |= {"n_jobs": None, "verbose": 0}
        path = None
        if kind == "SparseStep" and (model or report):
            path = ModelPath.of(reading.whole, fit_path(reading.whole, wanted, settings)[0])
    document = fitted_document(
        fitted,
        kind,
        {**own, **_parameters(settings)},
        reading.parts[0].feature_names,
        target=reading.target,
        source=reading.source,
        weight=reading.weight,
        rows_dropped=reading.rows_dropped,
        dropped_by=reading.rows_missing,
        seed=seed if kind == "SparseStepCV" and not are_moments(data) else None,
        model_path=path,
    )
    _write(document, model, report)
    _print(screen, document, reading.notes, model, report)


def _kind(
    cv: int | None,
    alpha: float | None,
    criterion: str | None,
    size: int | None,
    rule: str | None,
    *,
    shrink: bool,
) -> Kind:
    """The estimator that the options ask for."""
    choices = {"--cv": cv, "--alpha": alpha, "--criterion": criterion, "--size": size}
    given = [name for name, value in choices.items() if value is not None]
    if len(given) > 1:
        raise InputError(f"{' and '.join(given)} exclude each other; give one of them.")
    for option, used in (("--rule", rule is not None), ("--shrink", shrink)):
        if used and given not in ([], ["--cv"]):
            raise InputError(f"{option} is for cross-validation; leave out {option} or {given[0]}.")
    if given in (["--alpha"], ["--size"]):
        return "SparseStep"
    return "SparseStepIC" if given == ["--criterion"] else "SparseStepCV"


def _folds(data: list[str], cv: int | None) -> int | None:
    """The number of folds to read a table in; None for moments, which are folds already."""
    if not are_moments(data):
        return whole_number("--cv", FOLDS if cv is None else cv, least=2)
    if len(data) < 2:
        raise InputError(
            f"{data[0]} is a single fold, so there is nothing to validate on; choose by "
            "--criterion, --alpha or --size, or give the moments of several folds."
        )
    if cv is not None and cv != len(data):
        raise InputError(
            f"--cv {cv} does not fit the {len(data)} files of moments, each of which is a fold."
        )
    return None


def alphas_given(text: str) -> int | NDArray[np.float64]:
    """How many alphas, or which, from an option."""
    if text.strip().lstrip("+-").isdigit():
        return whole_number("--alphas", int(text), least=2)
    try:
        values = [float(part) for part in text.split(",")]
    except ValueError:
        raise InputError(
            f"--alphas must be how many, or numbers such as 1,10,100; got {text!r}."
        ) from None
    return alpha_values(values, "--alphas")


def settings_of(polish: bool, penalty_factor: NDArray[np.float64] | None) -> Settings:
    """How to fit."""
    return Settings(penalty_factor=penalty_factor, polish="swap" if polish else None)


def _parameters(settings: Settings) -> dict[str, Any]:
    """The settings as parameters of an estimator."""
    return {
        "fit_intercept": settings.fit_intercept,
        "standardize": settings.standardize,
        "penalty_factor": settings.penalty_factor,
        **vars(settings.schedule),
        "polish": settings.polish,
        "solver": settings.solver,
    }


def _write(document: Document, model: Path | None, report: Path | None) -> None:
    """Write what was asked for."""
    if report is not None:
        from sparsestep.report import write_report

        write_report(document, report)
    if model is not None:
        write_document(document, model)


def _print(
    screen: Screen,
    document: Document,
    on_table: list[str],
    model: Path | None,
    report: Path | None,
) -> None:
    """The summary, for people or for programs."""
    question, (target,) = document["question"], document["targets"]
    # Of the document, which knows of rows that were left out.
    summary = fitted_of(document).summary(question["features"], level=target["level"], target=0)
    screen.facts({"target": question["target"][0], **summary.facts})
    if summary.names:
        screen.say()
        screen.table(summary.columns, summary.cells())
    if summary.condition:
        screen.say()
        screen.say(summary.condition, style="dim")
    notes = [*summary.notes, *on_table]
    screen.warn(*notes)
    screen.wrote(model=model, report=report)
    names = question["features"]
    cv, criterion, index = target["cv"], target["criterion"], target["index"]
    inclusion, averaged = target["inclusion"], question["choice"]["rule"] == "average"
    screen.json(
        {
            "target": target["name"],
            "rows": question["rows"],
            "rows_dropped": question["rows_dropped"],
            "variables": len(names),
            "kept": [
                {"variable": names[j], "coefficient": b, "std_error": se, "low": low, "high": high}
                | ({} if inclusion is None else {"inclusion": inclusion[j]})
                for j, b, se, low, high in zip(
                    target["kept"],
                    target["coef"],
                    target["standard_error"],
                    target["low"],
                    target["high"],
                    strict=True,
                )
            ],
            "level": target["level"],
            "intercept": target["intercept"],
            "alpha": target["alpha"],
            "chosen_by": target["how"],
            "r2": target["r2"],
            # An average is no model of one alpha.
            "cv_error": None if cv is None or averaged else cv["mean"][index],
            "cv_error_se": None if cv is None or averaged else cv["se"][index],
            "cv_error_of_choice": None if cv is None else cv["of_choice"],
            "shrinkage": None if cv is None else cv["shrinkage"],
            "criterion": None if criterion is None or index is None else criterion["values"][index],
            "notes": notes,
            "model": None if model is None else str(model),
            "report": None if report is None else str(report),
        }
    )
