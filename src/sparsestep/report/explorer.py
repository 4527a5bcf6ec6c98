"""The part of the report that moves: the path, the curve of the choice, and the slider's data."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from sparsestep.display.axes import Array
from sparsestep.model.document import PathTable, Target
from sparsestep.report import pictures
from sparsestep.report.numbers import decimals, number
from sparsestep.report.pictures import Axis, Picture
from sparsestep.selection.cross_validation import PAIRED_SHARE

# An R^2 nearer to 0 than this is 0.
_ROUNDING = 1e-12


def explorer_of(target: Target, names: Sequence[str], scale: Array, total: float) -> Picture:
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
    picture = pictures.path_picture(axis, effects, n_nonzero, names, order, chosen)
    values_axis = picture["scale"]
    r2 = 1.0 - rss / total if total > 0 else np.full(len(alphas), np.nan)
    r2[np.abs(r2) < _ROUNDING] = 0.0
    judge, values, spreads, paired = _judged(target)
    curve = None if values is None else pictures.curve_picture(axis, values, spreads, paired)
    stops = _stops(target, alphas.tolist(), chosen, axis, curve, paired=paired is not None)
    by_kind = {stop["kind"]: stop for stop in stops}
    which, distinct = _distinct(coefs[order])
    data = {
        "names": [names[j] for j in order],
        "styles": [picture["styles"].get(j, "other") for j in order],
        "scale": _rounded(scale[order]),
        "alphas": alphas.tolist(),
        "x": [round(100 * float(share), 3) for share in axis.fractions],
        "models": distinct,
        "which": which,
        "r2": _rounded(r2),
        "judge": judge,
        "values": None if values is None else _rounded(values),
        "spreads": None if spreads is None else _rounded(spreads),
        "heights": None if curve is None else curve["heights"],
        "chosen": chosen,
        "called": stops[0]["label"],
        "low": values_axis.low,
        "high": values_axis.high,
        "height": picture["height"],
    }
    rows = []
    for rank, coef in zip(*distinct[which[chosen]], strict=True):
        effect = np.clip(coef * scale[order[rank]], values_axis.low, values_axis.high)
        low, high = sorted((0.0, float(effect)))
        bar = {"start": values_axis.share(low), "length": values_axis.width(high - low)}
        name, style = data["names"][rank], data["styles"][rank]
        rows.append({"name": name, "style": style, "coef": number(coef), **bar})
    return {
        "picture": picture,
        "n_nonzero": n_nonzero,
        "curve": curve,
        "stops": stops,
        # The smallest error, to which the band of the paired choice reaches down.
        "least": (by_kind["paired"], by_kind["min"]) if "paired" in by_kind else None,
        # Evenly spaced alphas let the slider stand above their axis.
        "even": np.allclose(axis.fractions, np.linspace(0, 1, len(axis.fractions)), atol=0.01),
        "rows": rows,
        "decimals": max((decimals(row["coef"]) for row in rows), default=0),
        "zero": values_axis.share(0.0),
        "n_ever": len(order),
        "data": data,
    }


def _models(
    target: Target, path: PathTable, m: int, total: float
) -> tuple[Array, Array, Array, int]:
    """Alphas, coefficients and residual sums of squares to show, and the place of the choice."""
    alphas, rss, chosen = np.array(path.alphas), np.array(path.rss), target.index
    coefs = np.zeros((m, len(alphas)))
    for i, (kept, values) in enumerate(zip(path.kept, path.coefs, strict=True)):
        coefs[kept, i] = values
    if chosen is None:
        # An alpha that was given need not be one of the path's: it is put between them.
        chosen = int(np.count_nonzero(alphas > target.alpha))
        own = np.zeros(m)
        own[target.kept] = target.coef
        alphas = np.insert(alphas, chosen, target.alpha)
        coefs = np.insert(coefs, chosen, own, axis=1)
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
    which: list[int] = []
    found: list[list[Any]] = []
    for column in coefs.T:
        kept = np.flatnonzero(column)
        model = [kept.tolist(), _rounded(column[kept])]
        if not found or found[-1] != model:
            found.append(model)
        which.append(len(found) - 1)
    return which, found


def _judged(target: Target) -> tuple[str, Array | None, Array | None, Array | None]:
    """The measure of the models: name, values, standard errors, half-widths of the paired band."""
    if (cv := target.cv) is not None:
        paired = None  # of a single split, and in old files
        if cv.paired_se is not None and None not in cv.paired_se:
            paired = PAIRED_SHARE * np.array(cv.paired_se, dtype=np.float64)
        return "CV error", np.array(cv.mean), np.array(cv.se, dtype=np.float64), paired
    if target.criterion is not None:
        return target.criterion.name.upper(), np.array(target.criterion.values), None, None
    return "", None, None, None


def _stops(
    target: Target,
    alphas: list[float],
    chosen: int,
    axis: Axis,
    curve: Picture | None,
    *,
    paired: bool,
) -> list[Picture]:
    """Alphas with a name, to which buttons lead: the chosen one, and those of the rules."""
    called = "chosen model" if target.inclusion is None else "model of most weight"
    found = [("chosen", called, chosen)]
    if (cv := target.cv) is not None:
        found.append(("min", "smallest error", alphas.index(cv.alpha_min)))
        if paired and cv.alpha_paired is not None:
            near = "sparsest near the smallest error"
            found.append(("paired", near, alphas.index(cv.alpha_paired)))
        if None not in cv.se:  # of a single split there is none
            found.append(("1se", "one standard error", alphas.index(cv.alpha_1se)))
    indices = [index for _, _, index in found]
    return [
        {
            "kind": kind,
            "label": label,
            "index": index,
            # Of stops at the same alpha one button is enough.
            "button": i == indices.index(index),
            "alpha": number(alphas[index]),
            "place": axis.percent(index),
            "height": None if curve is None else curve["heights"][index],
        }
        for i, (kind, label, index) in enumerate(found)
    ]
