"""The contents of the report: numbers of a model file, ready for the template."""

from collections.abc import Sequence
from itertools import compress, pairwise
from typing import Any

import numpy as np

from sparsestep.display.axes import Array, spaced
from sparsestep.inference.notes import FewRows
from sparsestep.model.document import Model, PathTable, Target
from sparsestep.model.file import dense
from sparsestep.report import pictures
from sparsestep.report.numbers import decimals, fixed, number, sized_by
from sparsestep.report.pictures import percent
from sparsestep.selection.cross_validation import PAIRED_SHARE
from sparsestep.words import few_of

Part = dict[str, Any]

LONGEST_IN_A_SENTENCE = 32
MOST_CATEGORIES = 4
# A smaller weight of the models with a variable is not shown.
LEAST_WEIGHT = 0.005
# An R^2 nearer to 0 than this is 0.
_ROUNDING = 1e-12


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
    forest = pictures.forest_picture(coef * per, low * per, high * per)
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
    intercept = number(target.intercept) if model.settings.fit_intercept else None
    cells = zip(*(row["cells"] for row in rows), strict=True)
    places = [max(map(decimals, column)) for column in cells]
    if intercept is not None and places:
        places[0] = max(places[0], decimals(intercept))
    error_of_prediction, null_error = _errors(model, target, total)
    return {
        "target": target,
        # In a sentence.
        "called": target.name if len(target.name) <= LONGEST_IN_A_SENTENCE else "the target",
        "error": error_of_prediction,
        "null_error": null_error,
        "has_error": np.isfinite(error_of_prediction) and null_error > 0,
        "rows": rows,
        "columns": [(*column, digits) for column, digits in zip(columns, places, strict=False)],
        "intervals": intervals,
        "intercept": intercept,
        "forest": forest,
        "not_kept": {kind: rows for kind, rows in _not_kept(target, names).items() if rows},
        "n_not_kept": len(names) - len(kept),
        "explorer": None if target.path is None else _explorer(target, names, scale, total),
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


# -- the part that moves: the path, the curve of the choice, and the slider's data ---------------


def _explorer(target: Target, names: Sequence[str], scale: Array, total: float) -> Part:
    """The pictures of a target that has a path, the table at the chosen alpha, the script's data.

    `scale` makes coefficients comparable, `total` is the target's sum of squares.
    """
    assert target.path is not None
    alphas, coefs, rss, chosen = _models(target, target.path, len(names), total)
    n_nonzero = np.count_nonzero(coefs, axis=0)
    effects = coefs * scale[:, np.newaxis]
    order = _order(effects, chosen)
    by_size = target.path.by_size
    axis = pictures.size_axis(n_nonzero) if by_size else pictures.alpha_axis(alphas)
    x = axis.place(n_nonzero if by_size else alphas).round(3)
    picture = pictures.path_picture(x, effects, names, order, chosen)
    vertical = picture["axis"]
    r2 = 1.0 - rss / total if total > 0 else np.full(len(alphas), np.nan)
    r2[np.abs(r2) < _ROUNDING] = 0.0
    judge, values, spreads, paired, rules = _judged(target)
    curve = None if values is None else pictures.curve_picture(x, values, spreads, paired)
    called = "chosen model" if target.inclusion is None else "model of most weight"
    # Alphas with a name, to which buttons lead.
    named = [("chosen", called, float(alphas[chosen])), *rules]
    which, distinct = _distinct(coefs[order])
    data = {
        "names": [names[j] for j in order],
        "styles": picture["styles"],
        "scale": _rounded(scale[order]),
        "alphas": alphas.tolist(),
        "x": x.tolist(),
        "models": distinct,
        "which": which,
        "r2": _rounded(r2),
        "judge": judge,
        "values": None if values is None else _rounded(values),
        "spreads": None if spreads is None else _rounded(spreads),
        "heights": None if curve is None else curve["heights"],
        "chosen": chosen,
        "called": called,
        "low": vertical.end,
        "high": vertical.start,
    }
    rows, zero = [], 100 - float(vertical.place(0.0))
    for rank, coef in zip(*distinct[which[chosen]], strict=True):
        end = float(np.clip(100 - vertical.place(coef * scale[order[rank]]), 0, 100))
        bar = {"start": percent(min(zero, end)), "length": percent(abs(end - zero))}
        name, style = data["names"][rank], data["styles"][rank]
        rows.append({"name": name, "style": style, "coef": number(coef), **bar})
    return {
        "axis": axis,
        "picture": picture,
        "counts": [] if by_size else [(x[i], n_nonzero[i]) for i in spaced(x / 100)],
        "n_nonzero": n_nonzero,
        "curve": curve,
        "stops": [
            {
                "kind": kind,
                "label": label,
                "index": (i := alphas.tolist().index(alpha)),
                "alpha": number(alpha),
                "x": percent(x[i]),
                "y": None if curve is None else percent(curve["heights"][i]),
            }
            for kind, label, alpha in named
        ],
        # Evenly spaced alphas let the slider stand above their axis.
        "even": np.allclose(x, np.linspace(0, 100, len(x)), atol=1),
        "rows": rows,
        "decimals": max((decimals(row["coef"]) for row in rows), default=0),
        "zero": percent(zero),
        "data": data,
    }


def _models(
    target: Target, path: PathTable, m: int, total: float
) -> tuple[Array, Array, Array, int]:
    """Alphas, coefficients and residual sums of squares to show, and the place of the choice."""
    alphas, rss, chosen = np.array(path.alphas), np.array(path.rss), target.index
    models = zip(path.kept, path.coefs, strict=True)
    coefs = np.column_stack([dense(kept, values, m) for kept, values in models])
    if chosen is None:
        # An alpha that was given need not be one of the path's: it is put between them.
        chosen = int(np.count_nonzero(alphas > target.alpha))
        alphas = np.insert(alphas, chosen, target.alpha)
        coefs = np.insert(coefs, chosen, dense(target.kept, target.coef, m), axis=1)
        rss = np.insert(rss, chosen, np.nan if target.r2 is None else (1 - target.r2) * total)
    if not path.by_size:
        return alphas, coefs, rss, chosen
    # Of each size one model; of the size of the chosen model, that one.
    sizes, order = np.count_nonzero(coefs, axis=0), np.arange(len(alphas))
    candidates = order[(sizes != sizes[chosen]) | (order == chosen)]
    shown = candidates[np.unique(sizes[candidates], return_index=True)[1]]
    return alphas[shown], coefs[:, shown], rss[shown], int(np.flatnonzero(shown == chosen)[0])


def _rounded(values: Array) -> list[float | None]:
    """Numbers for the script and the page: six digits, more than both show; null is JSON's NaN."""
    return [float(f"{value:.6g}") if np.isfinite(value) else None for value in values]


def _order(effects: Array, chosen: int) -> list[int]:
    """The variables of the path: those of the chosen model by effect, then as they enter."""
    ever = np.flatnonzero(effects.any(axis=1))
    size = np.abs(effects[ever, chosen])
    enters = (effects[ever] != 0).argmax(axis=1)
    return [int(j) for j in ever[np.lexsort([enters, -size, size == 0])]]


def _distinct(coefs: Array) -> tuple[list[int], list[list[Any]]]:
    """The index of the model of each alpha, and the models, which neighbours often share.

    A model is the ranks of its variables and their coefficients.
    """
    models = [[np.flatnonzero(each).tolist(), _rounded(each[each != 0])] for each in coefs.T]
    new = [True, *(one != other for one, other in pairwise(models))]
    return (np.cumsum(new) - 1).tolist(), list(compress(models, new))


def _judged(
    target: Target,
) -> tuple[str, Array | None, Array | None, Array | None, list[tuple[str, str, float]]]:
    """The measure of the models, and the choices that rules make by it.

    Its name, values, standard errors and half-widths of the paired band; the kind, the name and the
    alpha of each choice.
    """
    if target.criterion is not None:
        return target.criterion.name.upper(), np.array(target.criterion.values), None, None, []
    if (cv := target.cv) is None:
        return "", None, None, None, []
    paired, rules = None, [("min", "smallest error", cv.alpha_min)]
    # Of a single split, and in old files, there is none.
    if cv.paired_se is not None and None not in cv.paired_se:
        paired = PAIRED_SHARE * np.array(cv.paired_se, dtype=np.float64)
        if cv.alpha_paired is not None:
            rules.append(("paired", "sparsest near the smallest error", cv.alpha_paired))
    if None not in cv.se:
        rules.append(("1se", "one standard error", cv.alpha_1se))
    return "CV error", np.array(cv.mean), np.array(cv.se, dtype=np.float64), paired, rules
