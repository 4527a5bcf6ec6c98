"""The contents of the report: numbers of a model file, ready for the template."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from sparsestep.display.axes import Array
from sparsestep.inference.notes import FewRows
from sparsestep.model.document import Model, Target
from sparsestep.report.explorer import explorer_of
from sparsestep.report.numbers import decimals, fixed, number, sized_by
from sparsestep.report.pictures import forest_picture
from sparsestep.words import few_of

Part = dict[str, Any]

LONGEST_IN_A_SENTENCE = 32
MOST_CATEGORIES = 4
# A smaller weight of the models with a variable is not shown.
LEAST_WEIGHT = 0.005


def page_of(model: Model[Any], settings: dict[str, Any]) -> Part:
    """The contents of the report on a model: all that the template shows."""
    names, targets = model.question.features, model.question.target
    more = f" and {len(targets) - 3} more" if len(targets) > 3 else ""
    return {
        "model": model,
        "title": " and ".join(targets[:3]) + more,
        "answers": [_answer(model, t) for t in range(len(targets))],
        "notes": [table.note.text(names, targets) for table in model.notes],
        "unit": _unit(model),
        "made_by": [f"{name}={_shown(value)}" for name, value in settings.items()],
    }


def _unit(model: Model[Any]) -> str:
    """The change of a variable whose effect is shown."""
    return "one standard deviation" if model.settings.fit_intercept else "the root mean square"


def _shown(value: Any) -> str:
    """A parameter as Python writes it, cut where it is long."""
    text = repr(value)
    return text if len(text) <= 120 else f"{text[:80]} … ({len(value)} values)"


def _answer(model: Model[Any], t: int) -> Part:
    """The model of one target."""
    target, names = model.targets[t], model.question.features
    scale, total, notes = _scale(model), _total(model, t), _notes(model, t)
    parts = (target.coef, target.standard_error, target.low, target.high)
    kept, table = np.array(target.kept, dtype=np.intp), np.array(parts, dtype=np.float64)
    order = np.argsort(-np.abs(table[0]) * scale[kept], kind="stable")
    kept, (coef, error, low, high) = kept[order], table[:, order]
    per = scale[kept]
    intervals = bool(np.isfinite(error).any())
    columns = [("coefficient", "")]
    if intervals:
        tail = (1 - target.level) / 2
        ends = [(f"{100 * end:g}\N{NO-BREAK SPACE}%", "") for end in (tail, 1 - tail)]
        columns += [("std. error", " error"), *ends]
    columns.append((f"effect of {_unit(model)}", " effect"))
    forest = forest_picture(coef * per, low * per, high * per)
    rows = []
    for i, j in enumerate(kept.tolist()):
        texts = sized_by(float(error[i]), coef[i], error[i], low[i], high[i])
        rows.append(
            {
                "name": names[j],
                "note": "; ".join(notes.get(j, [])),
                "cells": [*texts[: len(columns) - 1], number(coef[i] * per[i], 3)],
                "weight": None if target.inclusion is None else _weight(target.inclusion[j]),
                "interval": forest["rows"][i],
            }
        )
    error_of_prediction, null_error = _errors(model, target, total)
    return {
        "target": target,
        # In a sentence.
        "called": target.name if len(target.name) <= LONGEST_IN_A_SENTENCE else "the target",
        "error": error_of_prediction,
        "null_error": null_error,
        "has_error": np.isfinite(error_of_prediction) and null_error > 0,
        "rows": rows,
        "columns": [
            (title, extra, max((decimals(row["cells"][k]) for row in rows), default=0))
            for k, (title, extra) in enumerate(columns)
        ],
        "intervals": intervals,
        "intercept": number(target.intercept) if model.settings.fit_intercept else None,
        "forest": forest,
        "not_kept": {kind: rows for kind, rows in _not_kept(target, names).items() if rows},
        "n_not_kept": len(names) - len(kept),
        "explorer": None if target.path is None else explorer_of(target, names, scale, total),
    }


def _weight(share: float) -> tuple[str, str]:
    """The weight of the models with a variable: a text, and the length of a bar."""
    return fixed(share, 2), f"{100 * share:.1f}%"


def _scale(model: Model[Any]) -> Array:
    """Factors that make coefficients comparable.

    The standard deviation of each column or, without an intercept, the root mean square.
    """
    mean = 0.0 if model.settings.fit_intercept else np.array(model.data.mean, dtype=np.float64)
    return np.hypot(np.array(model.data.deviation, dtype=np.float64), mean)


def _total(model: Model[Any], t: int) -> float:
    """Sum of squares of a target about its mean or, without an intercept, about zero."""
    data = model.data
    mean = 0.0 if model.settings.fit_intercept else data.target_mean[t]
    return float(data.weight_sum * (data.target_deviation[t] ** 2 + mean**2))


def _notes(model: Model[Any], t: int) -> dict[int, list[str]]:
    """Notes on variables: the categories that an indicator is compared with, and few rows."""
    features, kept = model.question.features, set(model.targets[t].kept)
    notes: dict[int, list[str]] = {}
    for group in model.question.one_hot:
        of_group = [features.index(name) for name in group.features]
        first = len(group.categories) - len(of_group)
        others = group.categories[:first]
        others += [
            c for c, j in zip(group.categories[first:], of_group, strict=True) if j not in kept
        ]
        for j in of_group if others else []:
            notes[j] = [f"compared with {few_of(others, MOST_CATEGORIES)}"]
    for table in model.notes:
        if isinstance(note := table.note, FewRows) and note.target == t:
            for j, rows in zip(note.columns, note.rows, strict=True):
                few = f"rests on about {rows:,} row{'s' if rows != 1 else ''}"
                notes.setdefault(j, []).append(few)
    return notes


def _errors(model: Model[Any], target: Target, total: float) -> tuple[float, float]:
    """Root mean square errors, cross-validated if possible, of the model and of the null model."""
    cv, path = target.cv, target.path
    null = total / model.data.weight_sum
    if cv is not None and path is not None and 0 in path.n_nonzero:
        null = cv.mean[path.n_nonzero.index(0)]
    if cv is not None and target.index is not None:
        # The smallest error of many is too small, as the same folds chose it.
        ours = cv.of_choice
        if ours is None or model.question.choice.rule == "1se":
            ours = cv.mean[target.index]
    elif target.r2 is None or target.free <= 0:
        ours = np.nan
    else:
        ours = max((1 - target.r2) * total, 0.0) / target.free
    return float(np.sqrt(ours)), float(np.sqrt(null))


def _not_kept(target: Target, names: Sequence[str]) -> dict[str, list[tuple[str, str, str]]]:
    """The variables not kept, in groups: a name, a number and the length of a bar for each."""
    rest = [j for j in range(len(names)) if j not in set(target.kept)]
    if (inclusion := target.inclusion) is not None:
        rest.sort(key=lambda j: -inclusion[j])
        some = [j for j in rest if inclusion[j] >= LEAST_WEIGHT]
        return {
            "some weight": [(names[j], *_weight(inclusion[j])) for j in some],
            "no weight": [(names[j], "", "") for j in rest[len(some) :]],
        }
    if target.path is None:
        return {"": [(names[j], "", "") for j in rest]}
    below: dict[int, float] = {}
    above: dict[int, float] = {}
    for alpha, members in zip(target.path.alphas, target.path.kept, strict=True):
        for j in members:
            if alpha < target.alpha:
                below.setdefault(j, alpha)
            else:
                above[j] = alpha
    # Sorted by how little alpha must change.
    enter = sorted((j for j in rest if j in below), key=lambda j: -below[j])
    left = sorted((j for j in rest if j in above and j not in below), key=above.__getitem__)
    return {
        "enter": [(names[j], number(below[j]), "") for j in enter],
        "left": [(names[j], number(above[j]), "") for j in left],
        "never": [(names[j], "", "") for j in rest if j not in below and j not in above],
    }
