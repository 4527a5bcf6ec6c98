"""The pictures of the report, as coordinates: the template draws them."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sparsestep.display.labels import plain, spread
from sparsestep.report.numbers import short
from sparsestep.report.scales import (
    WIDTH,
    AlphaAxis,
    Mark,
    SizeAxis,
    ValueAxis,
    steps_path,
    trimmed,
)

__all__ = ["COLOURS", "CurvePicture", "ForestPicture", "PathPicture"]

Array = NDArray[np.float64]

PATH_HEIGHT = 340.0
CURVE_HEIGHT = 180.0
# As many colours as the style sheet has; a second round is dashed.
COLOURS = 7
MOST_NAMED = 12
# More lines than these are a grey mass, and most of the file.
MOST_LINES = 200
_LINE_OF_TEXT = 15.0
# A path may end in nearly collinear columns with huge coefficients of both signs. Beyond so many
# times the largest effect of the chosen model it is cut, or that model would be a flat line.
_REACH = 2.0
_MANY_TIMES = 5.0


def _colour(rank: int) -> str:
    """The style sheet's class of the variable of that importance."""
    return f"c{rank % COLOURS}" + (" dashed" if rank // COLOURS % 2 else "")


@dataclass(frozen=True)
class PathLine:
    """One variable's line: its name in a tooltip, and at the edge if it has a label."""

    name: str
    d: str
    style: str


@dataclass(frozen=True)
class Label:
    """A name at the right edge, and the height of the line's end that it belongs to."""

    name: str
    full: str
    style: str
    end: str
    height: str


@dataclass(frozen=True)
class PathPicture:
    """Standardized effects along alpha or size."""

    height: int
    lines: list[PathLine]
    labels: list[Label]
    along: str
    alphas: list[Mark]
    effects: list[Mark]
    counts: list[Mark]
    zero: str
    chosen: str
    cut: str | None
    n_left_out: int
    gutter: int
    scale: ValueAxis
    styles: dict[int, str]

    @classmethod
    def of(
        cls,
        axis: AlphaAxis,
        effects: Array,
        n_nonzero: NDArray[np.intp],
        names: Sequence[str],
        order: Sequence[int],
        chosen: int,
    ) -> "PathPicture":
        """The picture; `order` ranks the variables that are ever kept, the chosen ones first."""
        scale, cut = _effect_scale(effects, chosen)
        x, y = WIDTH * axis.fractions, scale.place(effects)
        base = float(scale.place(0.0))
        # Where no variable is chosen, those that enter first are of interest.
        main = [j for j in order if effects[j, chosen] != 0] or list(order)
        named = order if len(order) <= MOST_NAMED else main[:MOST_NAMED]
        styles = {j: _colour(rank) for rank, j in enumerate(main[:MOST_NAMED])}
        drawn = list(order[:MOST_LINES])
        labels = _labels([(names[j], float(y[j, -1]), styles.get(j, "grey")) for j in named])
        return cls(
            height=int(PATH_HEIGHT),
            lines=[
                PathLine(
                    names[j],
                    steps_path(x, y[j], effects[j] != 0, base),
                    styles.get(j, "other"),
                )
                # The last one drawn lies on top.
                for j in reversed(drawn)
            ],
            labels=labels,
            along=axis.title,
            alphas=axis.marks(),
            effects=[Mark(trimmed(float(scale.place(v))), text) for v, text in scale.marks(6)],
            counts=[] if isinstance(axis, SizeAxis) else _counts(axis, n_nonzero),
            zero=trimmed(base),
            chosen=axis.percent(chosen),
            cut=cut,
            n_left_out=len(order) - len(drawn),
            gutter=34 + round(6.6 * max((len(label.name) for label in labels), default=0)),
            scale=scale,
            styles=styles,
        )


def _effect_scale(effects: Array, chosen: int) -> tuple[ValueAxis, str | None]:
    """The axis of the effects, and in words what it cuts, if it does."""
    reach = _REACH * float(np.abs(effects[:, chosen]).max())
    shown = effects[np.abs(effects) <= reach] if reach > 0 else effects
    scale = ValueAxis(float(shown.min(initial=0.0)), float(shown.max(initial=0.0)), PATH_HEIGHT)
    low, high = float(effects.min()), float(effects.max())
    if scale.low <= low and high <= scale.high:
        return scale, None
    return scale, f"from {short(float(f'{low:.3g}'))} to {short(float(f'{high:.3g}'))}"


def _labels(wanted: Sequence[tuple[str, float, str]]) -> list[Label]:
    """Names moved apart, beside the ends of their lines."""
    if not wanted:
        return []
    ends = np.clip([end for _, end, _ in wanted], 0.0, PATH_HEIGHT)
    heights = spread(ends, _LINE_OF_TEXT, 6.0, PATH_HEIGHT - 6.0)
    short = plain(name for name, _, _ in wanted)
    return [
        Label(text, name, style, trimmed(float(end)), trimmed(float(height)))
        for text, (name, _, style), end, height in zip(short, wanted, ends, heights, strict=True)
    ]


def _counts(axis: AlphaAxis, n_nonzero: NDArray[np.intp], most: int = 7) -> list[Mark]:
    """How many variables are kept at a few alphas."""
    places = np.linspace(0.0, 1.0, most)
    shown = np.unique(np.abs(axis.fractions[:, np.newaxis] - places).argmin(axis=0))
    return [Mark(axis.percent(int(i)), str(n_nonzero[i])) for i in shown]


@dataclass(frozen=True)
class CurvePicture:
    """The cross-validation error, with its standard error, or a criterion along alpha."""

    height: int
    line: str
    band: str
    bound: str | None
    along: str
    alphas: list[Mark]
    values: list[Mark]
    heights: list[float]
    logarithmic: bool

    @classmethod
    def of(
        cls, axis: AlphaAxis, values: Array, errors: Array | None, bound: float | None
    ) -> "CurvePicture":
        """The curve; `errors` make a band around it, `bound` is a level to mark."""
        reach = np.zeros_like(values) if errors is None else np.nan_to_num(errors)
        low, high = values - reach, values + reach
        # Errors that fall by orders of magnitude would leave a flat line where the choice is made.
        logarithmic = bool(low.min() > 0 and high.max() > _MANY_TIMES * values.min())
        scale = ValueAxis(
            float(low.min()), float(high.max()), CURVE_HEIGHT, logarithmic=logarithmic
        )
        x, y = WIDTH * axis.fractions, scale.place(values)
        band = ""
        if reach.any():
            band = _line([*x, *x[::-1]], [*scale.place(high), *scale.place(low)[::-1]]) + "Z"
        return cls(
            height=int(CURVE_HEIGHT),
            line=_line(x, y),
            band=band,
            bound=None if bound is None else trimmed(float(scale.place(bound))),
            along=axis.title,
            alphas=axis.marks(),
            values=[Mark(trimmed(float(scale.place(v))), text) for v, text in scale.marks(5)],
            heights=[round(float(height), 1) for height in y],
            logarithmic=logarithmic,
        )


def _line(x: Sequence[float] | Array, y: Sequence[float] | Array) -> str:
    """Straight from point to point."""
    return "M" + "L".join(f"{trimmed(u)} {trimmed(v)}" for u, v in zip(x, y, strict=True))


@dataclass(frozen=True)
class Interval:
    """One row of the forest: the ends of an interval and its middle, as percentages."""

    low: str | None
    high: str | None
    middle: str


@dataclass(frozen=True)
class ForestPicture:
    """Standardized effects with their intervals, one row for each variable."""

    rows: list[Interval]
    marks: list[Mark]
    zero: str

    @classmethod
    def of(cls, effects: Array, low: Array, high: Array) -> "ForestPicture":
        """The rows, on one axis that includes zero; an end that is NaN is not drawn."""
        ends = np.concatenate([effects, low, high, [0.0]])
        scale = ValueAxis(float(np.nanmin(ends)), float(np.nanmax(ends)), 1.0)
        return cls(
            rows=[
                Interval(
                    scale.share(a) if np.isfinite(a) else None,
                    scale.share(b) if np.isfinite(b) else None,
                    scale.share(e),
                )
                for e, a, b in zip(effects, low, high, strict=True)
            ],
            marks=[Mark(scale.share(v), text) for v, text in scale.marks(4)],
            zero=scale.share(0.0),
        )
