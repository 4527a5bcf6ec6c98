"""The pictures of the penalty: the figures of the paper."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import cycle
from typing import TYPE_CHECKING, Self

import numpy as np
from numpy.typing import ArrayLike

from sparsestep.display.base import (
    Array,
    Display,
    finite,
    make_room,
    numbers_from,
    require_matplotlib,
)
from sparsestep.display.parameters import documented
from sparsestep.penalty import majorizer, penalty

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.image import AxesImage
    from matplotlib.lines import Line2D


@documented
class PenaltyDisplay(Display):
    """The figures of the paper on the penalty.

    {parameters}

    Attributes
    ----------
    axes_ : list of matplotlib Axes
        The panels.
    ax_ : matplotlib Axes
        The axes given, or the first panel.
    figure_ : matplotlib Figure
        The figure of the axes.
    lines_ : list of Line2D
        The curves, panel by panel; for ``"norm"`` the two axes on which the exact norm is 1.
    images_ : list of AxesImage
        The maps of ``"norm"``; empty for the others.

    Examples
    --------
    >>> from sparsestep import PenaltyDisplay
    >>> [panel.get_title() for panel in PenaltyDisplay().plot().axes_]
    ['Ridge and lasso', 'SCAD', 'MC+', 'SparseStep']
    >>> display = PenaltyDisplay("majorizer", supporting_points=[0.5]).plot()
    >>> len(display.lines_)
    2
    """

    def __init__(
        self,
        kind: str = "penalties",
        *,
        gammas: ArrayLike | None = None,
        supporting_points: ArrayLike = (0.0, 0.25, 0.5),
    ) -> None:
        defaults = {"penalties": [1.0, 0.3, 0.05, 0.005], "majorizer": [0.1], "norm": [0.3, 0.05]}
        if kind not in defaults:
            raise ValueError(f"kind must be one of {', '.join(defaults)}; got {kind!r}.")
        self.kind = kind
        gammas = np.sqrt(defaults[kind]) if gammas is None else gammas
        self.gammas = numbers_from("gammas", gammas, above_zero=True)
        if kind == "majorizer" and len(self.gammas) != 1:
            raise ValueError(
                f"gammas must be one number for kind='majorizer'; got {len(self.gammas)}."
            )
        points = np.atleast_1d(np.asarray(supporting_points, dtype=np.float64))
        self.supporting_points = finite("supporting_points", points, (points.size,))

    def plot(self, ax: Axes | Sequence[Axes] | None = None) -> Self:
        """Draw the figure.

        {parameters}
        """
        require_matplotlib(f"{type(self).__name__}.plot")
        self.axes_ = self._panels(ax)
        self.ax_ = self.axes_[0] if ax is None or isinstance(ax, Sequence | np.ndarray) else ax
        self.figure_ = self.ax_.figure
        self.lines_: list[Line2D] = []
        self.images_: list[AxesImage] = []
        if self.kind == "penalties":
            self._plot_penalties()
        elif self.kind == "majorizer":
            self._plot_majorizer()
        else:
            self._plot_norm()
        if self.images_:
            beside = self.axes_ if self.ax_ in self.axes_ else self.ax_
            bar = self.figure_.colorbar(self.images_[-1], ax=beside, ticks=[0, 1, 2])
            bar.set_label("penalty")
        return self

    def _panels(self, ax: Axes | Sequence[Axes] | None) -> list[Axes]:
        """The axes to draw on: new ones, those given, or places inside the one given."""
        import matplotlib.pyplot as plt

        rows, columns = {
            "penalties": (2, 2),
            "majorizer": (1, 1),
            "norm": (1, 1 + len(self.gammas)),
        }[self.kind]
        count = rows * columns
        if ax is None:
            size = {"penalties": (7.0, 5.2), "majorizer": (5.2, 3.8), "norm": (2.9 * columns, 3.1)}
            _, grid = plt.subplots(
                rows, columns, figsize=size[self.kind], layout="constrained", squeeze=False
            )
            return list(grid.flat)
        if isinstance(ax, Sequence | np.ndarray):
            panels: list[Axes] = list(np.asarray(ax, dtype=object).flat)
            if len(panels) != count:
                raise ValueError(
                    f"ax must be one axes or {count} for kind={self.kind!r}; got {len(panels)}."
                )
            return panels
        if count == 1:
            return [ax]
        ax.set_axis_off()
        # Between columns stand names and numbers, between rows also titles.
        pitch_x, pitch_y = (1.9 if self.kind == "penalties" else 1.2), 2.0
        width, height = 1.0 / (pitch_x * (columns - 1) + 1), 1.0 / (pitch_y * (rows - 1) + 1)
        return [
            ax.inset_axes((pitch_x * width * column, pitch_y * height * row, width, height))
            for row in reversed(range(rows))
            for column in range(columns)
        ]

    def _plot_penalties(self) -> None:
        """Four panels, as in Figure 1 of the paper, which rescales the axes of SCAD."""
        near, far = np.linspace(-2.0, 2.0, 1001), np.linspace(-6.0, 6.0, 1001)
        self._curves(0, "Ridge and lasso", near, {"ridge": near**2, "lasso": np.abs(near)})
        self._curves(1, "SCAD", far, {f"a = {a:g}": _scad(far, a) for a in (2.1, 3.7, 5.0)})
        self._curves(2, "MC+", far, {f"a = {a:g}": _mcp(far, a) for a in (1.1, 2.0, 5.0)})
        self._curves(
            3, "SparseStep", near, {f"γ² = {g * g:.3g}": penalty(near, g) for g in self.gammas}
        )

    def _curves(self, panel: int, title: str, b: Array, curves: dict[str, Array]) -> None:
        """One panel of penalties as functions of a coefficient."""
        from sparsestep.display import drawing

        ax = self.axes_[panel]
        labels = []
        for (name, values), (colour, _) in zip(
            curves.items(), drawing.cycled(len(curves)), strict=True
        ):
            self.lines_ += ax.plot(b, values, color=colour, linewidth=1.5)
            labels.append((values[-1], name, colour))
        ax.set(title=title, xlabel="coefficient", ylabel="penalty", xlim=(b[0], b[-1]))
        ax.set_ylim(bottom=0.0)
        ax.axvline(0.0, color=drawing.PALE, linewidth=0.8, zorder=1)
        drawing.label_edge(ax, labels)
        make_room(ax)

    def _plot_majorizer(self) -> None:
        """The penalty, and its majorizers with the points at which they touch it."""
        from sparsestep.display import drawing

        ax, gamma = self.axes_[0], self.gammas[0]
        limit = 1.2 * max(np.abs(self.supporting_points).max(initial=0.0), 2.6 * gamma)
        x = np.linspace(-limit, limit, 1001)
        self.lines_ += ax.plot(
            x,
            penalty(x, gamma),
            color="black",
            linewidth=1.8,
            label=f"penalty, γ² = {gamma**2:.3g}",
        )
        looks = zip(drawing.cycled(len(self.supporting_points)), cycle((":", "-.", "--")))
        for y, ((colour, _), style) in zip(self.supporting_points, looks, strict=True):
            self.lines_ += ax.plot(
                x,
                majorizer(x, y, gamma),
                color=colour,
                linestyle=style,
                linewidth=1.5,
                label=f"majorizer at {y:g}",
            )
            touching = np.unique([-y, y])
            ax.plot(touching, penalty(touching, gamma), "o", color=colour, markersize=5, label="_")
        ax.set(xlabel="coefficient", ylabel="penalty", xlim=(-limit, limit), ylim=(-0.03, 1.25))
        ax.axvline(0.0, color=drawing.PALE, linewidth=0.8, zorder=1)
        drawing.legend(ax)

    def _plot_norm(self) -> None:
        """Maps of the number of nonzeros among two coefficients, and of its approximations."""
        from matplotlib import colormaps

        grid = np.linspace(-1.0, 1.0, 401)
        cmap = colormaps["cividis"]
        for k, ax in enumerate(self.axes_):
            one = np.ones_like(grid) if k == 0 else penalty(grid, self.gammas[k - 1])
            self.images_.append(
                ax.imshow(
                    one[:, np.newaxis] + one,
                    cmap=cmap,
                    vmin=0.0,
                    vmax=2.0,
                    origin="lower",
                    extent=(-1.0, 1.0, -1.0, 1.0),
                )
            )
            if k == 0:
                # The exact norm is 1 on two lines and 0 at a point: no grid of pixels has their
                # width.
                self.lines_ += ax.plot([-1, 1], [0, 0], color=cmap(0.5), linewidth=1.5)
                self.lines_ += ax.plot([0, 0], [-1, 1], color=cmap(0.5), linewidth=1.5)
                ax.plot([0], [0], "o", color=cmap(0.0), markersize=5)
            ax.set_title("counting norm" if k == 0 else f"γ² = {self.gammas[k - 1] ** 2:.3g}")
            ax.set(xlim=(-1, 1), ylim=(-1, 1), xticks=[-1, 0, 1], yticks=[-1, 0, 1])
            ax.set(xlabel="coefficient 1", ylabel="coefficient 2" if k == 0 else "")
            ax.tick_params(labelleft=k == 0)


def _scad(b: Array, a: float) -> Array:
    """SCAD with lambda = 1: ``|b|``, ``(2a|b| - b^2 - 1) / (2(a - 1))``, ``(a + 1) / 2``."""
    size = np.minimum(np.abs(b), a)
    return np.where(size <= 1, size, (2 * a * size - size**2 - 1) / (2 * (a - 1)))


def _mcp(b: Array, a: float) -> Array:
    """MC+ with lambda = 1: ``|b| - b^2 / (2a)`` up to ``|b| = a``, constant beyond."""
    size = np.minimum(np.abs(b), a)
    value: Array = size - size**2 / (2 * a)
    return value
