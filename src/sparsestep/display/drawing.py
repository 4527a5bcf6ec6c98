"""Drawing that the displays share: colours, lines, axes, ticks, and names that never overlap.

This module imports matplotlib; the displays import it when they draw, not before.
"""

import re
from collections.abc import Sequence
from textwrap import wrap
from typing import Any

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.axes._secondary_axes import SecondaryAxis
from matplotlib.axis import Axis
from matplotlib.backend_bases import RendererBase
from matplotlib.collections import LineCollection
from matplotlib.legend import Legend
from matplotlib.lines import Line2D
from matplotlib.text import Annotation, Text
from matplotlib.ticker import Formatter, Locator, MaxNLocator, NullFormatter, NullLocator
from matplotlib.transforms import ScaledTranslation
from numpy.typing import NDArray

from sparsestep.display.axes import Array, log_ticks, plain, scientific, spaced, spread

# Okabe and Ito's colours, which people with colour blindness tell apart, without yellow, which is
# too faint for a line on white. A second round is dashed.
_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#000000")
CYCLE = [(colour, style) for style in ("-", (0, (5, 1.5))) for colour in _COLOURS]
GREY = "#767676"
PALE = "#C8C8C8"

_LEADER = 16.0  # points from the edge to a label
# Between the labels of two ticks, in widths of the letter M.
_APART = 1.2
# The part of alphas below the least above zero, as a fraction of the others' length.
_TO_ZERO = 0.12


def cycled(count: int) -> list[tuple[str, Any]]:
    """As many colours and line styles as wanted."""
    return [CYCLE[k % len(CYCLE)] for k in range(count)]


def pale_lines(ax: Axes, x: Array, rows: Array, colour: str, width: float) -> LineCollection | None:
    """A line at zero and, if there are rows, a thin line for each of them."""
    ax.axhline(0.0, color=PALE, linewidth=0.8, zorder=1)
    if len(rows) == 0:
        return None
    each = [np.column_stack([x, row]) for row in rows]
    drawn = LineCollection(each, colors=colour, linewidths=width, zorder=1.5)
    ax.add_collection(drawn)
    return drawn


def lines(
    ax: Axes, x: Array, rows: Array, variables: Sequence[int], named: int, **style: Any
) -> dict[int, Line2D]:
    """Draw the rows of some variables: the first `named` in colour, the others thin and grey."""
    looks = [(*look, 1.6) for look in cycled(named)] + [(GREY, "-", 0.8)] * len(variables[named:])
    return {
        j: ax.plot(x, rows[j], color=colour, ls=dashes, lw=width, markevery=[0], **style)[0]
        for j, (colour, dashes, width) in zip(variables, looks, strict=True)
    }


def legend(ax: Axes) -> Legend:
    """A legend in the emptiest corner or, where it would fill narrow axes, below them."""
    handles, labels = ax.get_legend_handles_labels()
    look: dict[str, Any] = {"loc": "best", "fontsize": "small", "handlelength": 1.5}
    look |= {"framealpha": 0.85, "edgecolor": "none", "handletextpad": 0.6, "borderaxespad": 0.3}
    figure, size = ax.get_figure(root=True), float(ax.xaxis.label.get_fontsize())
    # Less the handles, and what a layout may take from the axes later.
    room = _letters(ax, 0.83 * size) - 10
    if figure is not None and max(map(len, labels)) > room:
        labels = ["\n".join(wrap(label, max(room, 16))) for label in labels]
        # Past the numbers and the name of the axis.
        past = ScaledTranslation(0.0, -3.4 * size / 72.0, figure.dpi_scale_trans)
        look |= {"loc": "upper center", "bbox_to_anchor": (0.5, 0.0)}
        look |= {"bbox_transform": ax.transAxes + past}
    return ax.legend(handles, labels, **look)


def _letters(ax: Axes, size: float) -> int:
    """Number of letters that fit into the width of the axes; a letter is half as wide as high."""
    return int(ax.get_window_extent().width * 72.0 / ax.figure.dpi / (0.5 * size))


def xlabel(ax: Axes, name: str, notes: list[str]) -> None:
    """The name of the axis and, below it, notes on the marks: a legend would cover lines."""
    # A line of text may be a little wider than the axes.
    longest = max(int(1.1 * _letters(ax, float(ax.xaxis.label.get_fontsize()))), 20)
    lines = [name]
    for note in notes:
        # On as few lines as it needs, of about the same length.
        count = -(-len(note) // longest)
        lines += wrap(note, min(len(note) // count + 6, longest))
    ax.set_xlabel("\n".join(lines))


def log_axis(ax: Axes, values: Sequence[float] | Array) -> None:
    """Logarithmic x axis that falls over these values, linear from the least of them to a zero."""
    values = np.asarray(values)
    above = values[values > 0]
    if len(above) == 0:
        ax.set(xscale="linear", xlim=(1.0, -1.0))
        ax.set_xticks([0.0], ["0"])
        return
    left, right = float(above.max()), float(above.min())
    least = right
    if left == least:
        left, right = least * np.sqrt(10.0), least / np.sqrt(10.0)
    if np.all(values):
        ax.set_xscale("log")
    else:
        # A little beyond zero: a line there is not on the frame.
        right, length = -0.3 * least, _TO_ZERO * np.log10(left / least)
        ax.set_xscale("symlog", linthresh=least, linscale=length, subs=range(2, 10))
    ax.set_xlim(left, right)
    ax.xaxis.set_major_locator(_LogTicks(0.0 if right > 0 else least))
    ax.xaxis.set_major_formatter(_LogLabels())
    ax.xaxis.set_minor_formatter(NullFormatter())


def count_axis(ax: Axes, alphas: Array, counts: NDArray[np.intp]) -> SecondaryAxis:
    """Axis on top that shows at a few of the descending `alphas` how many variables are kept."""
    place = ax.xaxis.get_transform().transform
    left, right = place(np.array(ax.get_xlim()))
    shown = spaced((place(alphas) - left) / (right - left))
    return _top_axis(ax, alphas[shown], counts[shown].astype(str), "variables kept")


def size_axes(ax: Axes, sizes: NDArray[np.intp], alphas: Array) -> SecondaryAxis:
    """Axis of ascending model sizes, and one on top with the alphas of some."""
    ax.set_xlim(sizes[0] - 0.5, sizes[-1] + 0.5)
    ax.xaxis.set_major_locator(MaxNLocator("auto", integer=True, steps=[1, 2, 5, 10]))
    shown = np.unique(np.linspace(0, len(sizes) - 1, 4).round().astype(np.intp))
    texts = [f"{float(f'{alpha:.2g}'):g}" for alpha in alphas[shown]]
    return _top_axis(ax, sizes[shown], texts, "alpha")


def _top_axis(ax: Axes, at: Any, texts: Any, title: str) -> SecondaryAxis:
    """Axis on top, on the scale of that below, with ticks and a title."""
    top, scale = ax.secondary_xaxis("top"), ax.xaxis.get_transform()
    top.set_xscale("function", functions=(scale.transform, scale.inverted().transform))
    top.set_xticks(at, texts)
    top.xaxis.set_minor_locator(NullLocator())
    top.set_xlabel(title)
    # A power of ten over the y axis stands to the left of it, clear of the axis on top.
    ax.yaxis.get_offset_text().set(horizontalalignment="right", x=-0.04)
    return top


class _LogTicks(Locator):
    """The densest round values whose labels do not overlap, and a zero.

    The labels of matplotlib's LogLocator do overlap on one or two decades. Below `least` the axis
    is linear.
    """

    def __init__(self, least: float) -> None:
        self._least = least

    def __call__(self) -> list[float]:
        """The ticks of the current view, zero last."""
        assert isinstance(self.axis, Axis)
        low, high = sorted(self.axis.get_view_interval())
        place = self.axis.get_transform().transform
        # In widths of an M, of which matplotlib counts three for a tick.
        begin, end = place(np.array([low, high]))
        ems = 3.0 * self.axis.get_tick_space() / ((end - begin) or 1.0)

        def fit(ticks: Array) -> bool:
            # In mathematics, what is no digit takes the room that exponents save.
            digits = np.array([len(re.sub(r"[^\d.]", "", text)) for text in _texts(ticks)])
            needed = 0.64 * (digits[1:] + digits[:-1]) / 2 + _APART
            return bool(np.all(ems * np.diff(place(ticks)) >= needed))

        zero = [0.0] if low <= 0 <= high else []
        low = max(low, self._least)
        if not 0 < low <= high < np.inf:
            return zero
        ticks = log_ticks(low, high, fit)
        return [*(t for t in ticks if not zero or fit(np.array([0.0, t]))), *zero]


class _LogLabels(Formatter):
    """Decimals where all ticks are from 0.001 to 10000, powers of ten otherwise; and 0."""

    def format_ticks(self, values: Any) -> list[str]:
        """The labels of all ticks, in one notation."""
        return _texts(values)

    def __call__(self, x: float, pos: int | None = None) -> str:
        """The label of one value, which an interactive window shows beside the pointer."""
        return f"{x:.3g}"


def _texts(values: Sequence[float] | Array) -> list[str]:
    """Numbers as labels, all in the same notation."""
    if all(value == 0 or 1e-3 <= value < 1e4 for value in values):
        return [f"{value:.6g}" for value in values]
    parts = [scientific(value) for value in values]
    powers = [(rf"{digits}\times" if digits else "") + f"10^{{{power}}}" for digits, power in parts]
    texts = [rf"$\mathdefault{{{power}}}$" for power in powers]
    return ["0" if value == 0 else text for value, text in zip(values, texts, strict=True)]


def label_edge(ax: Axes, labels: Sequence[tuple[float, str, Any]]) -> list[Annotation]:
    """Labels beside the right edge, the most important first: a height, a name and a colour."""
    # A name is data: its dollars and underscores are no formula.
    text: dict[str, Any] = {"fontsize": "small", "parse_math": False, "usetex": False}
    leader = {"arrowstyle": "-", "lw": 0.6, "relpos": (0.0, 0.5), "shrinkA": 0.0, "shrinkB": 0.0}
    drawn = [
        ax.annotate(
            name,
            xy=(1.0, value),
            xycoords=ax.get_yaxis_transform(),
            xytext=(_LEADER, 0.0),
            textcoords="offset points",
            color=colour,
            verticalalignment="center",
            arrowprops=leader | {"color": colour},
            annotation_clip=False,
            **text,
        )
        for (value, _, colour), name in zip(labels, plain(n for _, n, _ in labels), strict=True)
    ]
    if drawn:
        ax.add_artist(_KeepApart(ax, drawn))
    return drawn


class _KeepApart(Artist):
    """An invisible artist that moves labels apart at each drawing, by their current sizes."""

    def __init__(self, ax: Axes, labels: list[Annotation]) -> None:
        super().__init__()
        self._ax, self._labels = ax, labels
        self.set_zorder(-np.inf)
        self.set_in_layout(False)

    def draw(self, renderer: RendererBase) -> None:
        """Place the labels; hide those of lines outside the view, and those without room."""
        box, labels = self._ax.bbox, self._labels
        height = max(Text.get_window_extent(label, renderer).height for label in labels)
        anchors = self._ax.get_yaxis_transform().transform([label.xy for label in labels])[:, 1]
        gap = 1.1 * height
        fitting = max(int((box.height - height) / gap) + 1, 1)
        seen = np.flatnonzero((anchors >= box.y0 - 1.0) & (anchors <= box.y1 + 1.0))[:fitting]
        for label in labels:
            label.set_visible(False)
        low, high = box.y0 + height / 2, box.y1 - height / 2
        points = 72.0 / self._ax.figure.dpi
        for index, position in zip(seen, spread(anchors[seen], gap, low, high), strict=True):
            labels[index].set_visible(True)
            labels[index].xyann = (_LEADER, (position - anchors[index]) * points)
