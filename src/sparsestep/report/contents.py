"""The contents of the report: numbers and sentences of a model file, ready for the template."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparsestep.inference.notes import FewRows
from sparsestep.model.document import Model, Target
from sparsestep.report.explorer import explorer_of
from sparsestep.report.numbers import count, decimals, fixed, number, percent, sized_by
from sparsestep.report.pictures import forest_picture

__all__ = ["page_of"]

Array = NDArray[np.float64]
Part = dict[str, Any]

# A table longer than this is cut, with a button for the rest.
MOST_ROWS = 30
LONGEST_IN_A_SENTENCE = 32
MOST_CATEGORIES = 4
# A smaller weight of the models with a variable is not shown.
LEAST_WEIGHT = 0.005

# How each rule chooses among the alphas tried, in a sentence and in a few words.
_RULES = {
    "min": ("the one{tried} with the smallest error in {folds}", "smallest error"),
    "paired": (
        "the one{tried} that gives the sparsest model whose error in {folds} exceeds the smallest "
        "by at most half the standard error of the difference",
        "sparsest model near the smallest error",
    ),
    "1se": (
        "the one{tried} that gives the sparsest model within one standard error of the smallest "
        "error in {folds}. This standard error is mostly noise that all alphas share: with many "
        "rows the rule may leave out variables of which there is no doubt",
        "one-standard-error rule",
    ),
    "average": (
        "all{tried}: their models are averaged, with weights by their errors in {folds}; "
        "variables are kept whose models have more than half of the weight",
        "of the model of most weight; all are averaged",
    ),
}


def page_of(model: Model[Any], settings: dict[str, Any]) -> Part:
    """The contents of the report on a model: all that the template shows."""
    question, data = model.question, model.data
    names, targets = question.features, question.target
    more = f" and {len(targets) - 3} more" if len(targets) > 3 else ""
    return {
        "title": " and ".join(targets[:3]) + more,
        "anything": any(target.kept for target in model.targets),
        "facts": _facts(model),
        "groups": [
            (
                group.column,
                f"{len(group.categories)} categories as {len(group.features)} "
                f"indicator{_s(len(group.features))}",
            )
            for group in question.one_hot
        ],
        "answers": [_answer(model, t) for t in range(len(targets))],
        "notes": [table.note.text(names, targets) for table in model.notes],
        "pairs": [
            (names[pair.first], names[pair.second], number(pair.correlation, 4))
            for pair in data.collinear
        ],
        "more_pairs": (data.n_collinear or 0) - len(data.collinear),
        "unit": _unit(model),
        "most_rows": MOST_ROWS,
        "version": model.version,
        "again": _again(model),
        "made_by": [(name, _shown(value)) for name, value in settings.items()],
        "fingerprint": _fingerprint(model),
    }


def _s(k: int) -> str:
    """The ending of a plural."""
    return "" if k == 1 else "s"


# -- what was asked --------------------------------------------------------------------------


def _facts(model: Model[Any]) -> list[tuple[str, str]]:
    """The question, one line for each part of it."""
    question, settings = model.question, model.settings
    rows = f"{question.rows:,}"
    if question.rows_dropped:
        rows += f", after {question.rows_dropped:,} with a missing value were left out"
    facts = [
        ("Data", question.source or "a table in memory"),
        ("Target" if len(question.target) == 1 else "Targets", ", ".join(question.target)),
        ("Rows", rows),
        ("Candidate variables", f"{len(question.features):,}"),
    ]
    if question.weight is not None:
        facts.append(("Weights", question.weight))
    what = "Size" if question.choice.by == "size" else "Penalty alpha"
    facts.append((what, _choice_in_words(model)))
    with_or_without = "with" if settings.fit_intercept else "without"
    facts.append(("Model", f"linear, {with_or_without} an intercept"))
    shrunk = [
        (target.name, _shrinkage_in_words(target.cv.shrinkage))
        for target in model.targets
        if target.cv is not None and target.cv.shrinkage is not None
    ]
    if shrunk:
        each = [words if len(shrunk) == 1 else f"{name}: {words}" for name, words in shrunk]
        facts.append(("Shrinkage", "; ".join(each)))
    return facts


def _shrinkage_in_words(penalty: float) -> str:
    """The ridge regression on the variables kept."""
    if penalty == 0:
        return "none, as it does not lower the cross-validation error"
    return (
        f"ridge regression on the variables kept, with a penalty of {number(penalty, 3)} times the "
        "sum of squares of each column, chosen by cross-validation"
    )


def _choice_in_words(model: Model[Any]) -> str:
    """How alpha, or else the model, was chosen."""
    choice = model.question.choice
    if choice.by == "alpha":
        return "given beforehand"
    if choice.by == "size":
        return f"{_variables(choice.size or 0)}, the best-fitting set that swaps found"
    path = model.targets[0].path
    tried = "" if path is None else f" of {len(path.alphas)} values"
    if choice.by == "criterion":
        return f"the one{tried} with the smallest {str(choice.criterion).upper()}"
    seed = model.question.seed
    folds = str(choice.scheme)
    folds += "" if seed is None else f" (random folds, seed {seed})"
    return _RULES[str(choice.rule)][0].format(tried=tried, folds=folds)


def _choice_in_short(model: Model[Any]) -> str:
    """How alpha was chosen, in a few words."""
    choice = model.question.choice
    if choice.by == "cv":
        return _RULES[str(choice.rule)][1]
    if choice.by == "criterion":
        return f"smallest {str(choice.criterion).upper()}"
    return "given" if choice.by == "alpha" else "where the swaps began"


def _variables(k: int) -> str:
    """A number of variables."""
    return "no variable" if k == 0 else f"{k:,} variable{_s(k)}"


# -- what was kept ---------------------------------------------------------------------------


def _answer(model: Model[Any], t: int) -> Part:
    """The model of one target."""
    target, names = model.targets[t], model.question.features
    scale, total = _scale(model), _total(model, t)
    parts = (target.coef, target.standard_error, target.low, target.high)
    kept, table = np.array(target.kept, dtype=np.intp), np.array(parts, dtype=np.float64)
    order = np.argsort(-np.abs(table[0]) * scale[kept], kind="stable")
    kept, (coef, error, low, high) = kept[order], table[:, order]
    per = scale[kept]
    compared, few = _compared_with(model, target), _on_few_rows(model, t)
    tail = (1 - target.level) / 2
    ends = [f"{100 * end:g}\N{NO-BREAK SPACE}%" for end in (tail, 1 - tail)]
    intervals = bool(np.isfinite(error).any())
    columns = [("coefficient", "")]
    if intervals:
        columns += [("std. error", " error"), (ends[0], ""), (ends[1], "")]
    columns.append((f"effect of {_unit(model)}", " effect"))
    forest = forest_picture(coef * per, low * per, high * per)
    rows = []
    for i, j in enumerate(kept):
        texts = sized_by(float(error[i]), coef[i], error[i], low[i], high[i])
        rows.append(
            {
                "name": names[j],
                "note": "; ".join(filter(None, [compared.get(names[j]), few.get(int(j))])),
                "cells": [*texts[: len(columns) - 1], number(coef[i] * per[i], 3)],
                "weight": None if target.inclusion is None else _weight(target.inclusion[j]),
                "interval": forest["rows"][i],
            }
        )
    return {
        "name": target.name,
        "called": _called(target),
        "lead": _lead(model, target, total),
        "figures": _figures(model, target, total),
        "about": _about_coefficients(target),
        "about_intervals": _about_intervals(target, intervals=intervals),
        "rows": rows,
        "columns": [
            (title, extra, max((decimals(row["cells"][k]) for row in rows), default=0))
            for k, (title, extra) in enumerate(columns)
        ],
        "weights": target.inclusion is not None,
        "intervals": intervals,
        "intercept": number(target.intercept) if model.settings.fit_intercept else None,
        "forest": forest,
        "not_kept": _not_kept(target, names),
        "n_not_kept": len(names) - len(kept),
        "explorer": None if target.path is None else explorer_of(target, names, scale, total),
    }


def _unit(model: Model[Any]) -> str:
    """The change of a variable whose effect is shown."""
    return "one standard deviation" if model.settings.fit_intercept else "the root mean square"


def _weight(share: float) -> tuple[str, str]:
    """The weight of the models with a variable: a text, and the length of a bar."""
    return fixed(share, 2), f"{100 * share:.1f}%"


def _about_coefficients(target: Target) -> str:
    """What the coefficients are."""
    penalty = None if target.cv is None else target.cv.shrinkage
    if target.inclusion is not None:
        shrunk = ", each by ridge regression on its variables" if penalty else ""
        return (
            f"Coefficients are averages over the models of all alphas{shrunk}; a model without the "
            "variable counts as zero, and the variables kept take over what they can of the "
            "others. The weight of a variable is that of the models with it."
        )
    if penalty:
        return "Coefficients are shrunk: they are those of ridge regression on these variables."
    return "Coefficients are not shrunk: they are those of least squares on these variables."


def _about_intervals(target: Target, *, intervals: bool) -> str:
    """What the intervals mean, or why there are none."""
    if intervals:
        return (
            "The intervals hold for this set of variables as if it had been chosen beforehand. The "
            "same rows chose the set, so that they are too narrow to test whether a variable "
            "belongs to it."
        )
    why = "these variables depend on each other"
    if target.inclusion is not None:
        why = "the coefficients are averages over models"
    elif target.cv is not None and target.cv.shrinkage:
        why = "the coefficients are shrunk"
    elif target.free <= 0:
        why = "no degrees of freedom are left"
    return f"There are no standard errors and intervals, as {why}."


def _scale(model: Model[Any]) -> Array:
    """Factors that make coefficients comparable.

    The standard deviation of each column or, without an intercept, the root mean square.
    """
    deviation = np.array(model.data.deviation, dtype=np.float64)
    if model.settings.fit_intercept:
        return deviation
    return np.hypot(deviation, np.array(model.data.mean, dtype=np.float64))


def _total(model: Model[Any], t: int) -> float:
    """Sum of squares of a target about its mean or, without an intercept, about zero."""
    data = model.data
    square = data.target_deviation[t] ** 2
    if not model.settings.fit_intercept:
        square += data.target_mean[t] ** 2
    return float(data.weight_sum * square)


def _compared_with(model: Model[Any], target: Target) -> dict[str, str]:
    """For each kept indicator the categories of its group without one: the reference."""
    features = model.question.features
    kept = {features[j] for j in target.kept}
    notes = {}
    for group in model.question.one_hot:
        first = len(group.categories) - len(group.features)
        indicator = dict(zip(group.categories[first:], group.features, strict=True))
        others = [name for name in group.categories if indicator.get(name) not in kept]
        if not others:
            continue
        more = f" and {len(others) - MOST_CATEGORIES} more" if len(others) > MOST_CATEGORIES else ""
        for feature in kept.intersection(group.features):
            notes[feature] = f"compared with {', '.join(others[:MOST_CATEGORIES])}{more}"
    return notes


def _on_few_rows(model: Model[Any], t: int) -> dict[int, str]:
    """The number of rows of each variable that rests on few."""
    return {
        j: f"rests on about {rows:,} row{_s(rows)}"
        for table in model.notes
        if isinstance(note := table.note, FewRows) and note.target == t
        for j, rows in zip(note.columns, note.rows, strict=True)
    }


def _error_of_prediction(model: Model[Any], target: Target, total: float) -> tuple[float, str]:
    """Root mean square error, cross-validated if possible, and a note that says which."""
    cv, index, choice = target.cv, target.index, model.question.choice
    if cv is not None and index is not None:
        what = f"root mean square, {choice.scheme}"
        if choice.rule == "1se":
            return float(np.sqrt(cv.mean[index])), what
        # The smallest error of many is too small, as the same folds chose it.
        average = choice.rule == "average"
        if cv.of_choice is None:
            lacks = "of the model of most weight" if average else "without the choice of alpha"
            return float(np.sqrt(cv.mean[index])), f"{what}, {lacks}"
        chosen = "weights" if average else "alpha"
        return float(np.sqrt(cv.of_choice)), f"{what}, with the choice of {chosen}"
    if target.r2 is None or target.free <= 0:
        return np.nan, "no degrees of freedom are left"
    rss = (1 - target.r2) * total
    return float(np.sqrt(max(rss, 0.0) / target.free)), "residual standard error, same rows"


def _figures(model: Model[Any], target: Target, total: float) -> list[tuple[str, str, str]]:
    """The numbers at the top."""
    error, what = _error_of_prediction(model, target, total)
    m = len(model.question.features)
    about = "" if model.settings.fit_intercept else ", about zero"
    weighted = ", weighted" if model.question.weight is not None else ""
    return [
        ("Variables kept", f"{len(target.kept):,}", f"of {m:,}"),
        (
            "R²",
            number(target.r2, 3),
            f"on {model.data.rows:,} rows{weighted}{about}",
        ),
        ("Typical error", number(error, 3), what),
        ("Penalty alpha", number(target.alpha), _choice_in_short(model)),
    ]


def _lead(model: Model[Any], target: Target, total: float) -> str:
    """The answer in two or three sentences."""
    m, k = len(model.question.features), len(target.kept)
    name = _called(target)
    if k == 0:
        none, explains = f"None of the {m:,} candidate variables is kept", "none explains"
        if m == 1:
            none, explains = "The one candidate variable is not kept", "it does not explain"
        why = f"at this alpha {explains} enough of {name} to be worth its price"
        if target.inclusion is not None:
            why = "no variable is in models that have more than half of the weight"
        return f"{none}: {why}. The prediction is {number(target.intercept)} for every row."
    some = f"{k:,} of {m:,} candidate variables {'is' if k == 1 else 'are'} kept."
    sentences = ["The one candidate variable is kept." if m == 1 else some]
    if target.r2 is not None:
        together = "Together they explain" if k > 1 else "It explains"
        sentences.append(
            f"{together} {percent(target.r2)} of the variation of {name} in these rows."
        )
    error, _ = _error_of_prediction(model, target, total)
    spread = _error_without_variables(model, target, total)
    if np.isfinite(error) and spread > 0:
        where = "a row that the model has not seen" if target.cv is not None else "a row"
        sentences.append(
            f"A prediction for {where} is typically off by {number(error, 3)}, in the units of "
            f"{name}; without any variable it would be off by {number(spread, 3)}."
        )
    return " ".join(sentences)


def _error_without_variables(model: Model[Any], target: Target, total: float) -> float:
    """The error of prediction of the null model, on the same splits if it was fitted there."""
    cv, path = target.cv, target.path
    if cv is not None and path is not None and 0 in path.n_nonzero:
        return float(np.sqrt(cv.mean[path.n_nonzero.index(0)]))
    return float(np.sqrt(total / model.data.weight_sum))


def _called(target: Target) -> str:
    """The target's name in a sentence; "the target" if the name is long."""
    name = target.name
    return name if len(name) <= LONGEST_IN_A_SENTENCE else "the target"


def _not_kept(target: Target, names: Sequence[str]) -> list[Part]:
    """The variables not kept, in groups, each with a note."""
    if target.inclusion is not None:
        return _by_weight(target.inclusion, target.kept, names)
    kept, path = set(target.kept), target.path
    below: dict[int, float] = {}
    above: dict[int, float] = {}
    if path is not None:
        for alpha, members in zip(path.alphas, path.kept, strict=True):
            for j in set(members) - kept:
                if alpha < target.alpha:
                    below.setdefault(j, alpha)
                else:
                    above[j] = alpha
    # Sorted by how little alpha must change.
    waiting = sorted(below, key=lambda j: (-below[j], j))
    gone = sorted(above.keys() - below.keys(), key=lambda j: (above[j], j))
    never = [j for j in range(len(names)) if j not in kept | below.keys() | above.keys()]
    return _groups(
        (
            "A smaller penalty lets these in, the first ones soonest, each with the largest alpha "
            "below the chosen one that keeps it:",
            [(names[j], number(below[j]), "") for j in waiting],
        ),
        (
            "Only a larger penalty keeps these, in the place of others; each with the smallest "
            "alpha that does:",
            [(names[j], number(above[j]), "") for j in gone],
        ),
        (
            "" if path is None else "No model of the path keeps these:",
            [(names[j], "", "") for j in never],
        ),
    )


def _by_weight(inclusion: Sequence[float], kept: Sequence[int], names: Sequence[str]) -> list[Part]:
    """The variables that an average does not keep, the largest weight first."""
    left = sorted(set(range(len(names))) - set(kept), key=lambda j: (-inclusion[j], j))
    some = [j for j in left if inclusion[j] >= LEAST_WEIGHT]
    return _groups(
        (
            "The models with these have half of the weight or less:",
            [(names[j], *_weight(inclusion[j])) for j in some],
        ),
        (
            f"The models with these have less than {LEAST_WEIGHT} of the weight:",
            [(names[j], "", "") for j in left[len(some) :]],
        ),
    )


def _groups(*groups: tuple[str, list[tuple[str, str, str]]]) -> list[Part]:
    """The groups that have items; an item is a name, a number and the length of a bar."""
    return [{"note": note, "rows": rows} for note, rows in groups if rows]


# -- how to do it again ----------------------------------------------------------------------


def _again(model: Model[Any]) -> str:
    """The inputs that give the same model once more."""
    splitter = model.question.choice.splitter
    if splitter is None:
        return "The same rows and the settings below give the same model"
    return (
        "The same rows, the same splits and the settings below give the same model; of the splits "
        f"({splitter}) the settings hold the number only"
    )


def _shown(value: Any) -> str:
    """A parameter as Python writes it, cut where it is long."""
    text = repr(value)
    return text if len(text) <= 120 else f"{text[:80]} … ({len(value)} values)"


def _fingerprint(model: Model[Any]) -> list[tuple[str, str]]:
    """Numbers by which the data and the model can be recognized."""
    data, question = model.data, model.question
    lines = [
        ("sparsestep", model.version),
        ("Estimator", model.estimator),
        ("Rows of non-zero weight", f"{data.rows:,}"),
        ("Sum of the weights", count(data.weight_sum)),
    ]
    for name, mean, deviation in zip(
        question.target, data.target_mean, data.target_deviation, strict=True
    ):
        lines.append(
            (f"Mean and deviation of {name}", f"{number(mean, 8)} and {number(deviation, 8)}")
        )
    pairs = data.n_collinear
    lines.append(("Nearly collinear pairs", "not looked for" if pairs is None else f"{pairs:,}"))
    lines.append(("Majorization steps", f"{model.n_iter:,}"))
    lines.append(("Model file, SHA-256", model.checksum))
    return lines
