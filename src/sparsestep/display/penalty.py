"""The pictures of the penalty: the figures of the paper."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import cycle
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike

from sparsestep.display import base
from sparsestep.display.axes import Array
from sparsestep.display.parameters import documented
from sparsestep.penalty import majorizer, penalty

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.image import AxesImage
    from matplotlib.lines import Line2D

# Squares of the default gammas.
_SQUARES = {"penalties": (1.0, 0.3, 0.05, 0.005), "majorizer": (0.1,), "norm": (0.3, 0.05)}


@documented
class PenaltyDisplay(base.Display):
    """The figures of the paper on the penalty.

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
        if kind not in _SQUARES:
            raise ValueError(f"kind must be one of {', '.join(_SQUARES)}; got {kind!r}.")
        self.kind = kind
        gammas = np.sqrt(_SQUARES[kind]) if gammas is None else gammas
        self.gammas = base.numbers_from("gammas", gammas, above_zero=True)
        if kind == "majorizer" and len(self.gammas) != 1:
            raise ValueError(
                f"gammas must be one number for kind='majorizer'; got {len(self.gammas)}."
            )
        points = np.atleast_1d(np.asarray(supporting_points, dtype=np.float64))
        self.supporting_points = base.finite("supporting_points", points, (points.size,))

    def plot(self, ax: Axes | Sequence[Axes] | None = None) -> Self:
        """Draw the figure."""
        base.require_matplotlib(f"{type(self).__name__}.plot")
        self.axes_ = self._panels(ax)
        self.ax_ = self.axes_[0] if ax is None or isinstance(ax, Sequence | np.ndarray) else ax
        self.figure_ = self.ax_.figure
        self.lines_: list[Line2D] = []
        self.images_: list[AxesImage] = []
        draw = {"penalties": self._penalties, "majorizer": self._majorizer, "norm": self._norm}
        draw[self.kind]()
        return self

    def _panels(self, ax: Axes | Sequence[Axes] | None) -> list[Axes]:
        """The axes to draw on: new ones, those given, or places inside the one given."""
        maps = 1 + len(self.gammas)
        shapes = {"penalties": (2, 2), "majorizer": (1, 1), "norm": (1, maps)}
        rows, columns = shapes[self.kind]
        if ax is None:
            import matplotlib.pyplot as plt

            sizes = {"penalties": (7.0, 5.2), "majorizer": (5.2, 3.8), "norm": (2.9 * maps, 3.1)}
            figure = plt.figure(figsize=sizes[self.kind], layout="constrained")
            return list(figure.subplots(rows, columns, squeeze=False).flat)
        count = rows * columns
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

    def _penalties(self) -> None:
        """Four panels, as in Figure 1 of the paper, which rescales the axes of SCAD."""
        from sparsestep.display import drawing

        near, far = np.linspace(-2.0, 2.0, 1001), np.linspace(-6.0, 6.0, 1001)
        contents = {
            "Ridge and lasso": (near, {"ridge": near**2, "lasso": np.abs(near)}),
            "SCAD": (far, {f"a = {a:g}": _scad(far, a) for a in (2.1, 3.7, 5.0)}),
            "MC+": (far, {f"a = {a:g}": _mcp(far, a) for a in (1.1, 2.0, 5.0)}),
            "SparseStep": (near, {f"γ² = {g * g:.3g}": penalty(near, g) for g in self.gammas}),
        }
        for ax, (title, (b, curves)) in zip(self.axes_, contents.items(), strict=True):
            colours = [colour for colour, _ in drawing.cycled(len(curves))]
            for values, colour in zip(curves.values(), colours, strict=True):
                self.lines_ += ax.plot(b, values, color=colour, linewidth=1.5)
            ax.set(title=title, xlabel="coefficient", ylabel="penalty", xlim=(b[0], b[-1]))
            ax.set_ylim(bottom=0.0)
            ax.axvline(0.0, color=drawing.PALE, linewidth=0.8, zorder=1)
            ends = [values[-1] for values in curves.values()]
            drawing.label_edge(ax, list(zip(ends, curves, colours, strict=True)))
            base.make_room(ax)

    def _majorizer(self) -> None:
        """The penalty, and its majorizers with the points at which they touch it."""
        from sparsestep.display import drawing

        ax, gamma = self.axes_[0], self.gammas[0]
        limit = 1.2 * max(np.abs(self.supporting_points).max(initial=0.0), 2.6 * gamma)
        x, label = np.linspace(-limit, limit, 1001), f"penalty, γ² = {gamma**2:.3g}"
        self.lines_ += ax.plot(x, penalty(x, gamma), color="black", linewidth=1.8, label=label)
        looks = zip(drawing.cycled(len(self.supporting_points)), cycle((":", "-.", "--")))
        for y, ((colour, _), style) in zip(self.supporting_points, looks, strict=True):
            look: dict[str, Any] = {"color": colour, "ls": style, "label": f"majorizer at {y:g}"}
            self.lines_ += ax.plot(x, majorizer(x, y, gamma), linewidth=1.5, **look)
            touching = np.unique([-y, y])
            ax.plot(touching, penalty(touching, gamma), "o", color=colour, markersize=5, label="_")
        ax.set(xlabel="coefficient", ylabel="penalty", xlim=(-limit, limit), ylim=(-0.03, 1.25))
        ax.axvline(0.0, color=drawing.PALE, linewidth=0.8, zorder=1)
        drawing.legend(ax)

    def _norm(self) -> None:
        """Maps of the number of nonzeros among two coefficients, and of its approximations."""
        from matplotlib import colormaps

        grid, cmap = np.linspace(-1.0, 1.0, 401), colormaps["cividis"]
        look: dict[str, Any] = {"cmap": cmap, "vmin": 0.0, "vmax": 2.0, "origin": "lower"}
        titles = ["counting norm", *(f"γ² = {gamma**2:.3g}" for gamma in self.gammas)]
        ones = [np.ones_like(grid), *(penalty(grid, gamma) for gamma in self.gammas)]
        for ax, title, one in zip(self.axes_, titles, ones, strict=True):
            image = ax.imshow(one[:, np.newaxis] + one, extent=(-1.0, 1.0, -1.0, 1.0), **look)
            self.images_.append(image)
            ax.set(title=title, xlim=(-1, 1), ylim=(-1, 1), xticks=[-1, 0, 1], yticks=[-1, 0, 1])
            ax.set_xlabel("coefficient 1")
            ax.tick_params(labelleft=ax is self.axes_[0])
        first = self.axes_[0]
        first.set_ylabel("coefficient 2")
        # The exact norm is 1 on two lines and 0 at a point: no grid of pixels has their width.
        self.lines_ += first.plot([-1, 1], [0, 0], [0, 0], [-1, 1], color=cmap(0.5), linewidth=1.5)
        first.plot([0], [0], "o", color=cmap(0.0), markersize=5)
        beside = self.axes_ if self.ax_ in self.axes_ else self.ax_
        bar = self.figure_.colorbar(self.images_[-1], ax=beside, ticks=[0, 1, 2])
        bar.set_label("penalty")


def _scad(b: Array, a: float) -> Array:
    """SCAD with lambda = 1: ``|b|``, ``(2a|b| - b^2 - 1) / (2(a - 1))``, ``(a + 1) / 2``."""
    size = np.minimum(np.abs(b), a)
    return np.where(size <= 1, size, (2 * a * size - size**2 - 1) / (2 * (a - 1)))


def _mcp(b: Array, a: float) -> Array:
    """MC+ with lambda = 1: ``|b| - b^2 / (2a)`` up to ``|b| = a``, constant beyond."""
    size = np.minimum(np.abs(b), a)
    value: Array = size - size**2 / (2 * a)
    return value
