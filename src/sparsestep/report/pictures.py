"""The pictures of the report as places, in percent of their width and height: the template draws.

They are our own SVG and not matplotlib's, so that they follow the width of the window, the theme of
the page and its slider. Ticks, steps and names are placed as in the displays.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sparsestep.display import axes
from sparsestep.display.axes import Array
from sparsestep.report.numbers import short

Picture = dict[str, Any]

# Heights in pixels: of pictures, and of a line of text.
PATH_HEIGHT = 340
CURVE_HEIGHT = 180
_LINE_OF_TEXT = 15.0
# As many colours as the style sheet has; a second round is dashed.
COLOURS = 7
MOST_NAMED = 12
# More lines would be a grey mass, and most of the file.
MOST_LINES = 200
_MOST_ALPHAS, _MOST_SIZES = 5, 12
# Between two ticks of a logarithmic axis, as a part of its length: apart in narrow windows too.
_APART = 0.15
# The picture of a path is cut at this multiple of the largest effect of the chosen model: it may
# end in nearly collinear columns with huge coefficients, beside which that model is a flat line.
_REACH = 2.0
# The axis of a curve is logarithmic if its largest value exceeds the smallest by this factor.
_MANY_TIMES = 5.0


def percent(place: Array | float) -> str:
    """A place or a length for SVG."""
    return f"{round(float(place), 3):g}%"


# -- axes ------------------------------------------------------------------------------------


class Mark(NamedTuple):
    """A mark of an axis: its place and its text."""

    place: str
    text: str


@dataclass(frozen=True)
class Axis:
    """An axis from the value `start`, at the left or the top, to the value `end`."""

    start: float
    end: float
    ticks: Sequence[float]
    title: str = ""
    logarithmic: bool = False

    def place(self, values: Array | float) -> Array:
        """Where values are, in percent of the way; on a logarithmic axis a zero is at the end."""
        values = np.asarray(values)
        if self.logarithmic:
            start, end = np.log(self.start), np.log(self.end)
            values = np.log(np.where(values == 0, self.end, values))
        else:
            start, end = self.start, self.end
        # Adding 0.0 makes a zero of minus zero.
        return np.asarray(100 * (values - start) / (end - start) + 0.0)

    @property
    def marks(self) -> list[Mark]:
        """The ticks."""
        return [Mark(percent(self.place(tick)), short(tick)) for tick in self.ticks]


def alpha_axis(alphas: Array) -> Axis:
    """The logarithm of alpha, from the largest at the left; zero is one step beyond the least."""
    above = alphas[alphas > 0]
    if len(above) == 0:
        return Axis(1.0, -1.0, [0.0], "alpha")
    high, low = float(above.max()), float(above.min())
    if high == low:
        high, low = high * np.sqrt(10.0), low / np.sqrt(10.0)
    ticks = _few_log_ticks(low, high, _MOST_ALPHAS)[::-1]
    if alphas.all():
        return Axis(high, low, ticks, "alpha", logarithmic=True)
    zero = low * (low / high) ** (1.0 / max(len(above) - 1, 1))
    return Axis(high, zero, [*ticks, 0.0], "alpha", logarithmic=True)


def size_axis(sizes: NDArray[np.intp]) -> Axis:
    """Numbers of variables kept, in ascending order, for a path of sizes."""
    shown = sizes[:: -(-len(sizes) // _MOST_SIZES)].tolist()
    return Axis(sizes[0], max(sizes[-1], sizes[0] + 1), shown, "variables kept")


def value_axis(low: float, high: float, most: int, *, logarithmic: bool = False) -> Axis:
    """Values from a little above `high`, at the top, to a little below `low`."""
    if logarithmic:
        beyond = (high / low) ** 0.04
        low, high = low / beyond, high * beyond
        return Axis(high, low, _few_log_ticks(low, high, most), logarithmic=True)
    if not high > low:
        pad = 0.5 * abs(low) or 1.0
        low, high = low - pad, high + pad
    pad = 0.04 * (high - low)
    low, high = low - pad, high + pad
    return Axis(high, low, axes.round_ticks(low, high, most))


def _few_log_ticks(low: float, high: float, most: int) -> list[float]:
    """Round values on a logarithmic axis, not more than `most`."""
    apart = _APART * np.log(high / low)
    return axes.log_ticks(
        low, high, lambda t: len(t) <= most and not np.any(np.diff(np.log(t)) < apart)
    )


def svg_path(x: Array, y: Array) -> str:
    """An SVG path from point to point, with gaps where y is NaN."""
    x, y = x.round(2), y.round(2)
    before, after = np.append(np.nan, y[:-1]), np.append(y[1:], np.nan)
    # Of the points on a horizontal stroke, its ends are enough.
    shown = np.isfinite(y) & ~((before == y) & (y == after))
    points = zip(np.isnan(before[shown]), x[shown], y[shown], strict=True)
    return "".join(f"{'M' if begins else ' '}{u:.9g} {v:.9g}" for begins, u, v in points)


# -- pictures --------------------------------------------------------------------------------


def path_picture(
    x: Array, effects: Array, names: Sequence[str], order: Sequence[int], chosen: int
) -> Picture:
    """Standardized effects of the models at the places `x`.

    `order` ranks the variables that are ever kept, the chosen ones first. Each line has its
    variable's name in a tooltip; some have it at the edge too.
    """
    axis, cut = _effect_axis(effects, chosen)
    # Where no variable is chosen, those that enter first are of interest.
    main = [j for j in order if effects[j, chosen] != 0] or list(order)
    named = list(order) if len(order) <= MOST_NAMED else main[:MOST_NAMED]
    styles = {
        j: f"c{rank % COLOURS}" + (" dashed" if rank // COLOURS % 2 else "")
        for rank, j in enumerate(main[:MOST_NAMED])
    }
    # Steps jump halfway between models.
    corners, heights = axes.step_corners(x, (x[1:] + x[:-1]) / 2, effects)
    heights = axis.place(axes.without_zeros(heights))
    ends, line = np.clip(axis.place(effects[named, -1]), 0, 100), 100 * _LINE_OF_TEXT / PATH_HEIGHT
    apart = axes.spread(ends, line, 0.4 * line, 100 - 0.4 * line)
    texts = axes.plain(names[j] for j in named)
    return {
        "height": PATH_HEIGHT,
        # The last one drawn lies on top.
        "lines": [
            {"name": names[j], "d": svg_path(corners, heights[j]), "style": styles.get(j, "other")}
            for j in reversed(order[:MOST_LINES])
        ],
        "labels": [
            {"name": name, "style": styles.get(j, "grey"), "end": end, "height": height}
            for j, name, end, height in zip(
                named, texts, map(percent, ends), map(percent, apart), strict=True
            )
        ],
        "axis": axis,
        "zero": percent(axis.place(0.0)),
        "cut": cut,
        "n_left_out": max(len(order) - MOST_LINES, 0),
        "gutter": 34 + round(6.6 * max(map(len, texts), default=0)),
        "styles": [styles.get(j, "other") for j in order],
    }


def _effect_axis(effects: Array, chosen: int) -> tuple[Axis, str | None]:
    """The axis of the effects, and in words what it cuts, if it does."""
    reach = _REACH * np.abs(effects[:, chosen]).max()
    shown = effects[np.abs(effects) <= reach] if reach > 0 else effects
    axis = value_axis(float(shown.min(initial=0.0)), float(shown.max(initial=0.0)), 6)
    low, high = float(effects.min()), float(effects.max())
    if axis.end <= low and high <= axis.start:
        return axis, None
    return axis, f"from {short(float(f'{low:.3g}'))} to {short(float(f'{high:.3g}'))}"


def curve_picture(x: Array, values: Array, errors: Array | None, paired: Array | None) -> Picture:
    """An error or a criterion, with bands of half-widths `errors` and `paired` around it.

    The bound is the smallest value plus its standard error.
    """
    best = int(np.argmin(values))
    bound = np.nan if errors is None else values[best] + errors[best]
    bands = [np.zeros_like(values) if e is None else np.nan_to_num(e) for e in (errors, paired)]
    reach = np.maximum(*bands)
    low, high = float((values - reach).min()), float((values + reach).max())
    # On a linear axis, errors that fall by orders of magnitude are flat where the choice is made.
    logarithmic = bool(low > 0 and high > _MANY_TIMES * values.min())
    axis = value_axis(low, high, 5, logarithmic=logarithmic)
    heights = axis.place(values)

    def band(reach: Array) -> str:
        around = [axis.place(values + reach), axis.place(values - reach)[::-1]]
        path = svg_path(np.concatenate([x, x[::-1]]), np.concatenate(around))
        return path + "Z" if reach.any() else ""

    lines = {"band": band(bands[0]), "paired": band(bands[1]), "curve": svg_path(x, heights)}
    return {
        "height": CURVE_HEIGHT,
        "lines": [{"style": style, "d": d} for style, d in lines.items() if d],
        "bound": percent(axis.place(bound)) if np.isfinite(bound) else None,
        "axis": axis,
        "zero": None,
        "heights": heights.round(2).tolist(),
    }


def forest_picture(effects: Array, low: Array, high: Array) -> Picture:
    """Effects with their intervals, on one axis that includes zero; an end of NaN is not drawn."""
    ends = np.concatenate([effects, low, high, [0.0]])
    axis = value_axis(float(np.nanmin(ends)), float(np.nanmax(ends)), 4)
    axis = Axis(axis.end, axis.start, axis.ticks)  # from left to right
    middles, lows, highs = (axis.place(values) for values in (effects, low, high))
    rows = [
        {"middle": percent(e), "ends": [percent(v) for v in (a, b) if np.isfinite(v)]}
        for e, a, b in zip(middles, lows, highs, strict=True)
    ]
    return {"rows": rows, "marks": axis.marks, "zero": percent(axis.place(0.0))}
