"""The pictures of the report as coordinates: the template draws them.

They are our own SVG and not matplotlib's, so that they follow the width of the window, the theme of
the page and its slider. Alphas, ticks and names are placed as in the displays.
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

# Pictures are this wide in their own units. Lines are stretched to the width of the page; strokes,
# dots and text keep their sizes.
WIDTH = 1000.0
PATH_HEIGHT = 340
CURVE_HEIGHT = 180
# As many colours as the style sheet has; a second round is dashed.
COLOURS = 7
MOST_NAMED = 12
# More lines would be a grey mass, and most of the file.
MOST_LINES = 200
_MOST_ALPHAS, _MOST_SIZES = 5, 12
# Between two ticks of a logarithmic axis, as a part of its length.
_APART = 0.15
_LINE_OF_TEXT = 15.0
# The picture of a path is cut at this multiple of the largest effect of the chosen model: it may
# end in nearly collinear columns with huge coefficients, beside which that model is a flat line.
_REACH = 2.0
# The axis of a curve is logarithmic if its largest value exceeds the smallest by this factor.
_MANY_TIMES = 5.0


def _trimmed(value: float, decimals: int = 1) -> str:
    """A coordinate in as few characters as it needs."""
    # Adding 0.0 makes a zero of minus zero.
    return f"{round(value, decimals) + 0.0:.9g}"


# -- axes ------------------------------------------------------------------------------------


class Mark(NamedTuple):
    """A mark of an axis: its place, in pixels or as a percentage, and its text."""

    place: str
    text: str


@dataclass(frozen=True)
class Axis:
    """The axis along the models: its name, the fraction of the way of each model, and marks."""

    title: str
    fractions: Array
    marks: list[Mark]

    def percent(self, index: int) -> str:
        """The place of one of the models."""
        return f"{_trimmed(100 * float(self.fractions[index]), 3)}%"


def alpha_axis(alphas: Array) -> Axis:
    """The logarithm of alpha, from the largest at the left; zero is one step beyond the least."""
    if not alphas.any():
        return Axis("alpha", np.full(len(alphas), 0.5), [Mark("50%", "0")])
    above = alphas[alphas > 0]
    high, low = float(above.max()), float(above.min())
    if high == low:
        high, low = high * np.sqrt(10.0), low / np.sqrt(10.0)
    zero = low * (low / high) ** (1.0 / max(len(above) - 1, 1))
    end = low if alphas.all() else zero

    def fractions(values: Array) -> Array:
        logs = np.log(np.where(values, values, zero))
        return np.asarray((np.log(high) - logs) / (np.log(high) - np.log(end)))

    ticks = _few_log_ticks(low, high, _MOST_ALPHAS)[::-1] + ([0.0] if end < low else [])
    places = [f"{_trimmed(100 * x, 2)}%" for x in fractions(np.array(ticks))]
    return Axis("alpha", fractions(alphas), list(map(Mark, places, map(short, ticks))))


def size_axis(sizes: NDArray[np.intp]) -> Axis:
    """Numbers of variables kept, in ascending order, for a path of sizes."""
    axis = Axis("variables kept", (sizes - sizes[0]) / max(sizes[-1] - sizes[0], 1), [])
    shown = range(0, len(sizes), -(-len(sizes) // _MOST_SIZES))
    axis.marks.extend(Mark(axis.percent(i), str(sizes[i])) for i in shown)
    return axis


def _few_log_ticks(low: float, high: float, most: int) -> list[float]:
    """Round values on a logarithmic axis: not more than `most`, and apart in narrow windows too."""
    apart = _APART * (np.log(high) - np.log(low))
    return axes.log_ticks(
        low, high, lambda t: len(t) <= most and not np.any(np.diff(np.log(t)) < apart)
    )


class ValueAxis:
    """Values from `low`, at the bottom of a picture so many pixels high, to `high`."""

    def __init__(
        self, low: float, high: float, height: float, *, logarithmic: bool = False
    ) -> None:
        if logarithmic:
            low, high = float(np.log10(low)), float(np.log10(high))
        if not high > low:
            pad = 0.5 * abs(low) or 1.0
            low, high = low - pad, high + pad
        pad = 0.04 * (high - low)
        self.low, self.high, self.height = low - pad, high + pad, height
        self._logarithmic = logarithmic

    def place(self, values: Array | float) -> Array:
        """Pixels from the top."""
        values = np.log10(values) if self._logarithmic else np.asarray(values)
        return np.asarray(self.height * (self.high - values) / (self.high - self.low))

    def share(self, value: float) -> str:
        """The place as a percentage from the low end, for pictures that lie on their side."""
        return self.width(value - self.low)

    def width(self, length: float) -> str:
        """The percentage that a difference of values takes."""
        return f"{_trimmed(100 * length / (self.high - self.low), 2)}%"

    def ticks(self, most: int) -> list[float]:
        """Round values."""
        if self._logarithmic:
            return _few_log_ticks(10.0**self.low, 10.0**self.high, most)
        return axes.round_ticks(self.low, self.high, most)

    def marks(self, most: int) -> list[Mark]:
        """Round values, in pixels from the top."""
        return [Mark(_trimmed(float(self.place(v))), short(v)) for v in self.ticks(most)]


def svg_path(x: Array, y: Array) -> str:
    """An SVG path from point to point, with gaps where y is NaN."""
    points = [
        None if np.isnan(v) else (_trimmed(u), _trimmed(v)) for u, v in zip(x, y, strict=True)
    ]
    path = ""
    for before, here, after in zip([None, *points], points, [*points[1:], None], strict=False):
        # Of the points on a horizontal stroke, its ends are enough.
        if here and not (before and after and before[1] == here[1] == after[1]):
            path += f"{' ' if before else 'M'}{' '.join(here)}"
    return path


# -- pictures --------------------------------------------------------------------------------


def path_picture(
    axis: Axis,
    effects: Array,
    n_nonzero: NDArray[np.intp],
    names: Sequence[str],
    order: Sequence[int],
    chosen: int,
) -> Picture:
    """Standardized effects; `order` ranks the variables that are ever kept, the chosen ones first.

    Each line has its variable's name in a tooltip; some have it at the edge too.
    """
    scale, cut = _effect_scale(effects, chosen)
    # Where no variable is chosen, those that enter first are of interest.
    main = [j for j in order if effects[j, chosen] != 0] or list(order)
    named = list(order) if len(order) <= MOST_NAMED else main[:MOST_NAMED]
    styles = {
        j: f"c{rank % COLOURS}" + (" dashed" if rank // COLOURS % 2 else "")
        for rank, j in enumerate(main[:MOST_NAMED])
    }
    x = WIDTH * axis.fractions
    corners, heights = axes.step_corners(x, (x[1:] + x[:-1]) / 2, effects)
    heights = scale.place(axes.without_zeros(heights))
    ends = np.clip(scale.place(effects[named, -1]), 0.0, PATH_HEIGHT)
    apart = axes.spread(ends, _LINE_OF_TEXT, 6.0, PATH_HEIGHT - 6.0)
    labels = [
        {"name": name, "style": styles.get(j, "grey"), "end": _trimmed(end), "height": _trimmed(y)}
        for j, name, end, y in zip(
            named, axes.plain(names[j] for j in named), ends, apart, strict=True
        )
    ]
    counts = [] if axis.title == "variables kept" else axes.spaced(axis.fractions)
    return {
        "height": PATH_HEIGHT,
        # The last one drawn lies on top.
        "lines": [
            {"name": names[j], "d": svg_path(corners, heights[j]), "style": styles.get(j, "other")}
            for j in reversed(order[:MOST_LINES])
        ],
        "labels": labels,
        "axis": axis,
        "values": scale.marks(6),
        "counts": [Mark(axis.percent(i), str(n_nonzero[i])) for i in counts],
        "zero": _trimmed(float(scale.place(0.0))),
        "chosen": axis.percent(chosen),
        "cut": cut,
        "n_left_out": max(len(order) - MOST_LINES, 0),
        "gutter": 34 + round(6.6 * max((len(label["name"]) for label in labels), default=0)),
        "scale": scale,
        "styles": styles,
    }


def _effect_scale(effects: Array, chosen: int) -> tuple[ValueAxis, str | None]:
    """The axis of the effects, and in words what it cuts, if it does."""
    reach = _REACH * np.abs(effects[:, chosen]).max()
    shown = effects[np.abs(effects) <= reach] if reach > 0 else effects
    scale = ValueAxis(float(shown.min(initial=0.0)), float(shown.max(initial=0.0)), PATH_HEIGHT)
    low, high = float(effects.min()), float(effects.max())
    if scale.low <= low and high <= scale.high:
        return scale, None
    return scale, f"from {short(float(f'{low:.3g}'))} to {short(float(f'{high:.3g}'))}"


def curve_picture(axis: Axis, values: Array, errors: Array | None, paired: Array | None) -> Picture:
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
    scale = ValueAxis(low, high, CURVE_HEIGHT, logarithmic=logarithmic)
    x, y = WIDTH * axis.fractions, scale.place(values)

    def band(reach: Array) -> str:
        around = [scale.place(values + reach), scale.place(values - reach)[::-1]]
        path = svg_path(np.concatenate([x, x[::-1]]), np.concatenate(around))
        return path + "Z" if reach.any() else ""

    return {
        "height": CURVE_HEIGHT,
        "line": svg_path(x, y),
        "band": band(bands[0]),
        "paired": band(bands[1]),
        "bound": _trimmed(float(scale.place(bound))) if np.isfinite(bound) else None,
        "axis": axis,
        "values": scale.marks(5),
        "heights": [round(float(height), 1) for height in y],
        "logarithmic": logarithmic,
    }


def forest_picture(effects: Array, low: Array, high: Array) -> Picture:
    """Effects with their intervals, on one axis that includes zero; an end of NaN is not drawn."""
    ends = np.concatenate([effects, low, high, [0.0]])
    scale = ValueAxis(float(np.nanmin(ends)), float(np.nanmax(ends)), 1.0)
    rows = [
        {"middle": scale.share(e), "ends": [scale.share(v) for v in (a, b) if np.isfinite(v)]}
        for e, a, b in zip(effects, low, high, strict=True)
    ]
    marks = [Mark(scale.share(v), short(v)) for v in scale.ticks(4)]
    return {"rows": rows, "marks": marks, "zero": scale.share(0.0)}
