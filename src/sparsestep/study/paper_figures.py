"""The paper's pictures of penalties, of the counting norm and of majorizers."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.figure import Figure

from sparsestep.display import PenaltyDisplay
from sparsestep.penalty import penalty
from sparsestep.study.canvas import PALE, blank

__all__ = ["approximations", "counting_norm", "majorizers", "penalties"]


def penalties() -> Figure:
    """Ridge and lasso, SCAD, MC+ and SparseStep."""
    figure = blank(7.0, 5.2, constrained=True)
    PenaltyDisplay("penalties").plot(list(figure.subplots(2, 2).flat))
    return figure


def majorizers() -> Figure:
    """The penalty at gamma^2 = 0.1 and its majorizers at 0, 0.25 and 0.5."""
    figure = blank(5.2, 3.8, constrained=True)
    ax = figure.subplots()
    PenaltyDisplay("majorizer").plot(ax)
    for point in (0.25, 0.5):
        ax.axvline(point, color=PALE, linewidth=0.8, zorder=0.5)
    return figure


def counting_norm() -> Figure:
    """The number of nonzeros among two coefficients, on a grid of values."""
    figure = blank(3.8, 3.2)
    ax = _space(figure, 1, 1, "")
    values = np.linspace(-1.0, 1.0, 17)
    first, second = np.meshgrid(values, values)
    count = np.count_nonzero([first, second], axis=0)
    ax.scatter(
        first,
        second,
        count,
        c=count,
        cmap="viridis",
        s=16,
        vmin=0,
        vmax=2,
        linewidths=0,
        depthshade=False,
    )
    return figure


def approximations() -> Figure:
    """The penalty of two coefficients at gamma^2 = 0.3 and 0.05."""
    figure = blank(7.4, 3.2)
    values = np.linspace(-1.0, 1.0, 41)
    for place, squared in enumerate((0.3, 0.05), start=1):
        ax = _space(figure, 2, place, f"γ² = {squared:g}")
        one = penalty(values, np.sqrt(squared))
        first, second = np.meshgrid(values, values)
        ax.plot_surface(
            first,
            second,
            one[:, np.newaxis] + one,
            cmap="viridis",
            vmin=0,
            vmax=2,
            rcount=41,
            ccount=41,
            linewidth=0.15,
            edgecolor="#00000040",
            # A thousand tiles as paths make a file ten times as large.
            rasterized=True,
        )
    return figure


def _space(figure: Figure, columns: int, place: int, title: str) -> Any:
    """Axes for two coefficients and a height from 0 to 2."""
    ax: Any = figure.add_axes(((place - 1) / columns, 0.02, 1 / columns, 0.96), projection="3d")
    ax.set_title(title, fontsize=10, y=0.93)
    ax.set_box_aspect(None, zoom=0.92)
    ax.set_xlabel("coefficient 1", fontsize=8, labelpad=-4)
    ax.set_ylabel("coefficient 2", fontsize=8, labelpad=-4)
    ax.set_xticks([-1, 0, 1])
    ax.set_yticks([-1, 0, 1])
    ax.set_zticks([0, 1, 2])
    ax.set_zlim(0, 2)
    ax.tick_params(labelsize=8, pad=-2)
    ax.view_init(elev=28, azim=-55)
    return ax
