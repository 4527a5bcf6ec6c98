"""Axes that leave room for what stands around them; imports matplotlib."""

from matplotlib.axes import Axes
from matplotlib.axes._base import _AxesBase
from matplotlib.backend_bases import RendererBase
from matplotlib.gridspec import SubplotSpec
from matplotlib.transforms import Bbox

__all__ = ["make_room"]

# Points that stay free around all that belongs to axes.
_AIR = 3.0


def make_room(ax: Axes) -> None:
    """Let the axes leave room for their surroundings, unless somebody else places them."""
    if ax.get_axes_locator() is None:
        ax.set_axes_locator(_Room(ax))


class _Room:
    """Where axes stand that leave room for what is around them, in a figure without a layout.

    Their names, numbers and labels end halfway to the neighbours, or at the edge of the figure.
    Asked at each drawing, so that sizes and labels may change; a layout engine, also one that ran
    only once, as `tight_layout` does, makes the room itself.
    """

    def __init__(self, ax: Axes) -> None:
        self._ax = ax

    def get_subplotspec(self) -> SubplotSpec | None:
        """What `tight_layout` asks of whatever places axes."""
        return self._ax.get_subplotspec()

    def __call__(self, ax: _AxesBase, renderer: RendererBase | None) -> Bbox:
        """The place that the grid gives to the axes, less what their surroundings need."""
        ax = self._ax
        box = ax.get_position(original=True)
        root = ax.get_figure(root=True)
        if root is None or root.get_layout_engine() is not None:
            return box
        for twin in ax.figure.axes:
            # What `twinx` adds would stay at the old place.
            if twin.get_axes_locator() is None and _same_place(twin, ax):
                twin.set_axes_locator(self)
        around = ax.get_tightbbox(renderer, call_axes_locator=False, for_layout_only=True)
        if around is None:
            return box
        around = around.padded(_AIR * root.dpi / 72.0).transformed(
            ax.figure.transSubfigure.inverted()
        )
        cell = _cell(ax, box)
        left, bottom = max(cell.x0 - around.x0, 0.0), max(cell.y0 - around.y0, 0.0)
        right, top = max(around.x1 - cell.x1, 0.0), max(around.y1 - cell.y1, 0.0)
        # Never below half: a picture without names is better than names without a picture.
        wide = min(1.0, 0.5 * box.width / max(left + right, 1e-9))
        high = min(1.0, 0.5 * box.height / max(bottom + top, 1e-9))
        return Bbox.from_extents(
            box.x0 + wide * left, box.y0 + high * bottom, box.x1 - wide * right, box.y1 - high * top
        )


def _same_place(one: _AxesBase, other: _AxesBase) -> bool:
    """Whether two axes have the same place in the same figure."""
    mine, theirs = one.get_position(original=True), other.get_position(original=True)
    return one.figure is other.figure and mine.bounds == theirs.bounds


def _cell(ax: _AxesBase, box: Bbox) -> Bbox:
    """The part of the figure that belongs to axes: halfway to their neighbours, or to its edge."""
    others = [
        other.get_position(original=True)
        for other in ax.figure.axes
        if other is not ax and other.figure is ax.figure
    ]
    beside = [other for other in others if other.y0 < box.y1 and other.y1 > box.y0]
    stacked = [other for other in others if other.x0 < box.x1 and other.x1 > box.x0]
    return Bbox.from_extents(
        max(((b.x1 + box.x0) / 2 for b in beside if b.x1 <= box.x0), default=0.0),
        max(((b.y1 + box.y0) / 2 for b in stacked if b.y1 <= box.y0), default=0.0),
        min(((b.x0 + box.x1) / 2 for b in beside if b.x0 >= box.x1), default=1.0),
        min(((b.y0 + box.y1) / 2 for b in stacked if b.y0 >= box.y1), default=1.0),
    )
