"""The rank plots: a line from rank 1 to the last, with a labelled point for each method."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.text import Text
from numpy.typing import NDArray
from scipy.optimize import isotonic_regression

from sparsestep.study.analysis import CONTROL, Ranking
from sparsestep.study.canvas import COLOURS, GREY, INK, blank

__all__ = ["rank_plot"]

_WIDTH, _ROW, _TITLE, _KEY = 7.2, 0.95, 0.3, 0.3  # inches
_MARGIN = 0.45
_TITLES = {
    "mse_b": "MSE of b",
    "hit_rate": "Sparsity hit rate",
    "mse_y": "MSE of y on the test rows",
    "time": "Computation time",
}


def rank_plot(rankings: Sequence[Ranking]) -> Figure:
    """Average ranks on one measure, or on several, one line each."""
    row = _ROW + _TITLE
    height = row * len(rankings) + _KEY
    figure = blank(_WIDTH, height)
    for place, ranking in enumerate(rankings):
        bottom = height - row * (place + 1)
        ax = figure.add_axes(
            (_MARGIN / _WIDTH, bottom / height, 1 - 2 * _MARGIN / _WIDTH, _ROW / height)
        )
        _line(ax, ranking)
    figure.text(
        _MARGIN / _WIDTH,
        0.1 / height,
        "Average rank, 1 is best.  "
        "● differs from SparseStep (Holm, 5 %)   ○ does not   ◆ SparseStep",
        fontsize=7.5,
        color=GREY,
    )
    return figure


def _line(ax: Axes, ranking: Ranking) -> None:
    """One measure: the line, its ticks, the points, and their labels above."""
    last = len(ranking.average)
    ax.set_axis_off()
    ax.set_xlim(1, last)
    ax.set_ylim(-0.42, 1.0)
    ax.plot([1, last], [0, 0], color=INK, linewidth=1.0, clip_on=False, zorder=1)
    for tick in range(1, last + 1):
        ax.plot([tick, tick], [-0.05, 0.05], color=INK, linewidth=1.0, clip_on=False, zorder=1)
        ax.text(tick, -0.12, str(tick), ha="center", va="top", fontsize=8)
    ax.set_title(_TITLES[ranking.measure.column], loc="left", fontsize=9.5, pad=3, color=INK)

    labels = []
    for method, average in ranking.average.items():
        colour = COLOURS[str(method)]
        separated = method != CONTROL and ranking.against(str(method)).outcome() != "not separated"
        ax.plot(
            [average],
            [0],
            marker="D" if method == CONTROL else "o",
            markersize=8 if method == CONTROL else 7,
            markeredgecolor=colour,
            markeredgewidth=1.6,
            markerfacecolor=colour if separated or method == CONTROL else "white",
            clip_on=False,
            zorder=3,
        )
        labels.append(
            ax.text(
                average,
                0.52,
                f"{method}\n{average:.2f}",
                ha="center",
                va="bottom",
                fontsize=8.5,
                linespacing=1.1,
                fontweight="bold" if method == CONTROL else "normal",
            )
        )
    _move_apart(ax, labels, ranking.average.to_numpy())


def _move_apart(ax: Axes, labels: list[Text], points: NDArray[np.float64]) -> None:
    """Put each label as near its point as the others allow, with a leader between them.

    With half widths h in order, ``p_(i+1) - p_i >= h_i + h_(i+1)`` says that the places less these
    sums do not decrease: the least squares answer is an isotonic regression.
    """
    unit = ax.bbox.width / (points.size - 1)
    half = np.array([label.get_window_extent().width for label in labels]) / unit / 2 + 0.04
    order = np.argsort(points, kind="stable")
    steps = np.concatenate([[0.0], np.cumsum(half[order][:-1] + half[order][1:])])
    shifted = isotonic_regression(points[order] - steps).x
    room = _MARGIN / (_WIDTH - 2 * _MARGIN) * (points.size - 1)
    low = 1 - room + half[order[0]]
    high = points.size + room - half[order[-1]] - steps[-1]
    places = np.clip(shifted, low, high) + steps
    for index, place in zip(order, places, strict=True):
        labels[index].set_x(place)
        ax.plot(
            [points[index], points[index], place, place],
            [0.0, 0.2, 0.42, 0.5],
            color=GREY,
            linewidth=0.7,
            clip_on=False,
            zorder=0.5,
        )
