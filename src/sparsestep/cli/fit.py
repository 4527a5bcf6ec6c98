"""`sparsestep fit`: a table to a model."""

import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from cyclopts import Parameter
from numpy.typing import NDArray

from sparsestep.cli.errors import said_by_options
from sparsestep.cli.inputs import Reading, are_moments, expanded, read
from sparsestep.cli.options import Always, Polish, Seed, TableOptions, Whole
from sparsestep.cli.outputs import Screen, check_outputs
from sparsestep.errors import InputError, LostDigitsWarning, ManyVariablesWarning
from sparsestep.estimators.choosing import by_alpha, by_criterion, by_size, by_validation, fit_path
from sparsestep.estimators.fitted import Fitted
from sparsestep.model.document import Document, Kind
from sparsestep.model.file import fitted_document, fitted_of, write_document
from sparsestep.moments.table import whole_number
from sparsestep.selection.criteria import Criterion
from sparsestep.selection.cross_validation import GIVEN_FOLDS, Rule, TrainAndTest
from sparsestep.selection.fitting import alpha_values, one_alpha
from sparsestep.solvers.scaled_problem import Settings

FOLDS = 10
ALPHAS = "101"


@Parameter(name="*")
@dataclass(frozen=True)
class Choice:
    """How alpha is chosen."""

    cv: Annotated[int | None, Whole] = None
    "Choose alpha by cross-validation with so many random folds."

    alpha: float | None = None
    "Use this alpha, in the units of the residual sum of squares."

    criterion: Criterion | None = None
    "Choose alpha by an information criterion."

    size: Annotated[int | None, Whole] = None
    "Keep exactly so many variables: the best model of that size that is found by swaps."

    rule: Rule | None = None
    """With cross-validation: the smallest error; the sparsest model near it, by half the standard
    error of the difference or by one of the error; or the average of all models."""

    shrink: bool = False
    """With cross-validation: shrink the coefficients of the variables kept, by ridge regression
    whose penalty is cross-validated too. For prediction."""

    def kind(self) -> Kind:
        """The estimator that the options ask for, if they go together."""
        ways = ("cv", "alpha", "criterion", "size")
        given = [f"--{way}" for way in ways if vars(self)[way] is not None]
        if len(given) > 1:
            raise InputError(f"{' and '.join(given)} exclude each other; give one of them.")
        for option in ("rule", "shrink"):
            if vars(self)[option] and given not in ([], ["--cv"]):
                leave = f"leave out --{option} or {given[0]}"
                raise InputError(f"--{option} is for cross-validation; {leave}.")
        if self.alpha is not None:
            one_alpha(self.alpha)
            return "SparseStep"
        if self.size is not None:
            whole_number("--size", self.size, least=0)
            return "SparseStep"
        return "SparseStepCV" if self.criterion is None else "SparseStepIC"


def fit(
    data: list[str],
    /,
    *,
    table: TableOptions = TableOptions(),  # noqa: B008
    choice: Choice = Choice(),
    alphas: str = ALPHAS,
    polish: Polish = False,
    always: Always = None,
    seed: Seed = 0,
    model: Annotated[Path | None, Parameter(alias="-m")] = None,
    report: Annotated[Path | None, Parameter(alias="-r")] = None,
    screen: Screen = Screen(),  # noqa: B008
) -> None:
    """Fit a model to a table; write the model and the report.

    Parameters
    ----------
    data
        A Parquet, CSV or Arrow file, a folder or pattern of such files, or several. Or files that
        the command moments wrote (.npz): each is then a fold of the cross-validation.
    alphas
        How many alphas to try, or which, as 1,10,100.
    model
        Write the model here (.json).
    report
        Write the report here (.html).
    """
    data = expanded(data)
    check_outputs([("model", model), ("report", report)], data)
    kind, wanted = choice.kind(), alphas_given(alphas)
    folds = _folds(data, choice.cv) if kind == "SparseStepCV" else None
    reading = read(data, table, screen, folds, seed)
    settings = Settings(penalty_factor=reading.always(always), polish="swap" if polish else None)
    with (
        screen.waiting(f"Fitting {reading.parts[0].n_features} variables"),
        warnings.catch_warnings(),
        reading.naming_target(),
        said_by_options(table),
    ):
        # They are among the notes.
        warnings.simplefilter("ignore", LostDigitsWarning)
        warnings.simplefilter("ignore", ManyVariablesWarning)
        splitter = GIVEN_FOLDS if are_moments(data) else None
        fitted, parameters = _fitted(choice, reading, wanted, settings, splitter)
        path = None
        if kind == "SparseStep" and (model or report):
            path, _ = fit_path(reading.whole, wanted, settings)
    document = fitted_document(
        fitted,
        kind,
        parameters,
        reading.parts[0].feature_names,
        target=reading.target,
        source=reading.source,
        weight=table.weight,
        rows_read=reading.counts.rows,
        rows_dropped=reading.counts.dropped,
        dropped_by=dict(reading.counts.missing.most_common()),
        seed=None if folds is None else seed,
        model_path=path,
    )
    if report is not None:
        from sparsestep.report import write_report

        write_report(document, report)
    if model is not None:
        write_document(document, model)
    _print(screen, document, reading.notes, model, report)


def _fitted(
    choice: Choice,
    reading: Reading,
    alphas: int | NDArray[np.float64],
    settings: Settings,
    splitter: str | None,
) -> tuple[Fitted, dict[str, Any]]:
    """The model of the choice, and all parameters of its estimator."""
    own: dict[str, Any]
    if choice.alpha is not None:
        fitted = by_alpha(reading.whole, one_alpha(choice.alpha), settings)
        own = {"alpha": choice.alpha, "n_nonzero": None}
    elif choice.size is not None:
        fitted = by_size(reading.whole, choice.size, settings)
        own = {"alpha": 1.0, "n_nonzero": choice.size}
    elif choice.criterion is not None:
        fitted = by_criterion(reading.whole, alphas, choice.criterion, settings)
        own = {"criterion": choice.criterion, "alphas": alphas}
    else:
        parts = TrainAndTest.of_folds(reading.parts, splitter)
        how = choice.rule or "min", "cv" if choice.shrink else None
        fitted = by_validation(parts, alphas, *how, settings)
        own = {"alphas": alphas, "cv": len(reading.parts), "rule": how[0], "shrink": how[1]}
        own |= {"n_jobs": None, "verbose": 0}
    return fitted, {
        **own,
        "fit_intercept": settings.fit_intercept,
        "standardize": settings.standardize,
        "penalty_factor": settings.penalty_factor,
        **vars(settings.schedule),
        "polish": settings.polish,
        "solver": settings.solver,
    }


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


def _print(
    screen: Screen, document: Document, on_table: list[str], model: Path | None, report: Path | None
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
    screen.print_json(
        {
            "target": target["name"],
            "rows": question["rows"],
            "rows_dropped": question["rows_dropped"],
            "variables": len(names),
            "kept": [
                {"variable": names[j], "coefficient": b, "std_error": se, "low": low, "high": high}
                | ({} if inclusion is None else {"inclusion": inclusion[j]})
                for j, b, se, low, high in zip(
                    *map(target.get, ("kept", "coef", "standard_error", "low", "high")), strict=True
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
            "model": model,
            "report": report,
        }
    )
