"""What the pictures share: colours, axes, and labels at the edge that never overlap.

This module imports matplotlib; the displays import it when they draw, not before.
"""

from collections.abc import Sequence
from textwrap import wrap
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.axes._secondary_axes import SecondaryAxis
from matplotlib.backend_bases import RendererBase
from matplotlib.legend import Legend
from matplotlib.path import Path
from matplotlib.text import Annotation, Text
from matplotlib.ticker import MaxNLocator, NullFormatter, NullLocator
from numpy.typing import NDArray

from sparsestep.display.labels import spread
from sparsestep.display.places import Places
from sparsestep.display.ticks import LogLabels, LogTicks, MinorLogTicks

__all__ = [
    "CYCLE",
    "GREY",
    "PALE",
    "count_axis",
    "cycled",
    "label_edge",
    "legend",
    "log_axis",
    "own_axes",
    "size_axes",
    "xlabel",
]

# Okabe and Ito's colours, which people with colour blindness tell apart, without yellow, which is
# too faint for a line on white. A second round is dashed.
_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#000000")
CYCLE = [(colour, style) for style in ("-", (0, (5, 1.5))) for colour in _COLOURS]
GREY = "#767676"
PALE = "#C8C8C8"

_LEADER = 16.0  # points from the edge to a label
# The mark of a broken axis.
_STROKES = Path(
    [(-0.7, -1.0), (0.0, 1.0), (0.0, -1.0), (0.7, 1.0)],
    [Path.MOVETO, Path.LINETO, Path.MOVETO, Path.LINETO],
)


def own_axes() -> Axes:
    """Axes in a new figure that makes room for what stands outside them."""
    _, ax = plt.subplots(layout="constrained")
    return ax


def cycled(count: int) -> list[tuple[str, Any]]:
    """As many colours and line styles as wanted."""
    return [CYCLE[k % len(CYCLE)] for k in range(count)]


def legend(ax: Axes) -> Legend:
    """A legend in the emptiest corner."""
    return ax.legend(
        loc="best",
        fontsize="small",
        framealpha=0.85,
        edgecolor="none",
        handlelength=1.5,
        handletextpad=0.6,
        borderaxespad=0.3,
    )


def xlabel(ax: Axes, name: str, notes: list[str]) -> None:
    """The axis and, below it, what is marked: a legend would cover lines."""
    points = ax.get_window_extent().width * 72.0 / ax.figure.dpi
    # A letter is about half as wide as the font is high, and a line may stand out a little.
    letters = max(int(1.1 * points / (0.5 * float(ax.xaxis.label.get_fontsize()))), 20)
    ax.set_xlabel("\n".join([name, *(line for note in notes for line in _lines(note, letters))]))


def _lines(note: str, longest: int) -> list[str]:
    """A note on as few lines as it needs, of about the same length."""
    count = -(-len(note) // longest)
    return wrap(note, min(len(note) // count + 6, longest))


def log_axis(ax: Axes, place: Places) -> None:
    """Logarithmic x axis with ticks that can be read, broken before the place of zero."""
    ax.set_xscale("log")
    ax.set_xlim(place.left, place.right)
    # A zoom may show what is below the least alpha, unless zero stands there.
    least = 0.0 if place.zero is None else place.least
    ax.xaxis.set_major_locator(LogTicks(place.zero, least))
    ax.xaxis.set_major_formatter(LogLabels(place.zero))
    ax.xaxis.set_minor_locator(MinorLogTicks(least))
    ax.xaxis.set_minor_formatter(NullFormatter())
    if place.break_at is not None:
        _break_mark(ax, place.break_at)


def _break_mark(ax: Axes, at: float) -> None:
    """Two strokes through the lower edge, and nothing of the edge between them."""
    for marker, colour, size in [("s", ax.get_facecolor(), 4.0), (_STROKES, "black", 9.0)]:
        ax.plot(
            [at],
            [0.0],
            transform=ax.get_xaxis_transform(),
            marker=marker,
            markersize=size,
            markeredgecolor=colour,
            markerfacecolor=colour,
            markeredgewidth=1.0,
            linestyle="none",
            clip_on=False,
            zorder=5,
        )


def count_axis(
    ax: Axes, alphas: NDArray[np.float64], counts: NDArray[np.intp], place: Places
) -> SecondaryAxis:
    """Axis on top that shows at a few of the descending `alphas` how many variables are kept."""
    at = place.at(alphas)
    logs = np.log(at)
    wanted = np.linspace(logs[0], logs[-1], 7)
    shown = np.unique(np.abs(logs[:, np.newaxis] - wanted).argmin(axis=0))
    # The last is where the names stand, or zero: what is too near to it goes, and so on leftwards.
    kept = [int(shown[-1])]
    for index in shown[-2::-1]:
        if logs[index] - logs[kept[-1]] >= 0.06 * (np.log(place.left) - np.log(place.right)):
            kept.append(int(index))
    top = ax.secondary_xaxis("top")
    top.set_xticks(at[kept[::-1]], [str(counts[index]) for index in kept[::-1]])
    top.xaxis.set_minor_locator(NullLocator())
    top.set_xlabel("variables kept")
    _offset_beside(ax)
    return top


def size_axes(ax: Axes, sizes: NDArray[np.intp], alphas: NDArray[np.float64]) -> SecondaryAxis:
    """Axis of ascending model sizes, and one on top with the alphas of some."""
    ax.set_xlim(sizes[0] - 0.5, sizes[-1] + 0.5)
    ax.xaxis.set_major_locator(MaxNLocator("auto", integer=True, steps=[1, 2, 5, 10]))
    shown = np.unique(np.linspace(0, len(sizes) - 1, 4).round().astype(np.intp))
    top = ax.secondary_xaxis("top")
    top.set_xticks(sizes[shown], [f"{float(f'{alpha:.2g}'):g}" for alpha in alphas[shown]])
    top.set_xlabel("alpha")
    _offset_beside(ax)
    return top


def _offset_beside(ax: Axes) -> None:
    """A power of ten over the y axis to the left of it, clear of the axis on top."""
    ax.yaxis.get_offset_text().set(horizontalalignment="right", x=-0.04)


def label_edge(
    ax: Axes, values: Sequence[float], names: Sequence[str], colours: Sequence[str]
) -> list[Annotation]:
    """Names beside the right edge at the heights `values`, the most important first."""
    labels = []
    for value, name, colour in zip(values, names, colours, strict=True):
        label = ax.annotate(
            name,
            xy=(1.0, value),
            xycoords=ax.get_yaxis_transform(),
            xytext=(_LEADER, 0.0),
            textcoords="offset points",
            color=colour,
            fontsize="small",
            horizontalalignment="left",
            verticalalignment="center",
            arrowprops={
                "arrowstyle": "-",
                "color": colour,
                "linewidth": 0.6,
                "shrinkA": 0.0,
                "shrinkB": 0.0,
                "relpos": (0.0, 0.5),
            },
            annotation_clip=False,
        )
        # A name is data: its dollars and underscores are no formula.
        label.set_parse_math(False)
        label.set_usetex(False)
        labels.append(label)
    if labels:
        ax.add_artist(_KeepApart(labels))
    return labels


class _KeepApart(Artist):
    """Draws nothing: moves labels apart just before they are drawn, at the size they have then."""

    def __init__(self, labels: list[Annotation]) -> None:
        super().__init__()
        self._labels = labels
        self.set_zorder(-np.inf)
        self.set_in_layout(False)

    def draw(self, renderer: RendererBase) -> None:
        """Give each label its height; hide those whose line leaves the view, and those too many."""
        axes = self.axes
        figure = self.get_figure(root=True)
        if not isinstance(axes, Axes) or figure is None:
            return
        box = axes.bbox
        height = max(Text.get_window_extent(label, renderer).height for label in self._labels)
        anchors = np.array(
            [axes.get_yaxis_transform().transform(label.xy)[1] for label in self._labels]
        )
        gap = 1.1 * height
        fitting = max(int((box.height - height) / gap) + 1, 1)
        seen = np.flatnonzero((anchors >= box.y0 - 1.0) & (anchors <= box.y1 + 1.0))[:fitting]
        for label in self._labels:
            label.set_visible(False)
        if len(seen) == 0:
            return
        low, high = box.y0 + height / 2, box.y1 - height / 2
        points = 72.0 / figure.dpi
        for index, position in zip(seen, spread(anchors[seen], gap, low, high), strict=True):
            self._labels[index].set_visible(True)
            self._labels[index].xyann = (_LEADER, (position - anchors[index]) * points)
