"""The base class of the displays, and the checks of their input."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike

from sparsestep.display.axes import Array, plain
from sparsestep.words import made_up_names, model_within

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure


class Display:
    """A picture on one pair of axes; whatever draws it returns it."""

    ax_: Axes
    figure_: Figure | SubFigure

    def _begin(self, ax: Axes | None) -> Axes:
        """The given axes, or those of a new figure with constrained layout."""
        require_matplotlib(f"{type(self).__name__}.plot")
        import matplotlib.pyplot as plt

        return plt.subplots(layout="constrained")[1] if ax is None else ax

    def _finish(self, ax: Axes) -> Self:
        """Store the axes, and let their figure leave room for their labels."""
        make_room(ax)
        self.ax_, self.figure_ = ax, ax.figure
        return self

    def _titled(self, title: str | None) -> Self:
        """Show the name of one of several targets as title."""
        if title is not None:
            self.ax_.set_title(plain([title])[0], parse_math=False)
        return self


def make_room(ax: Axes) -> None:
    """Give a figure without a layout one of matplotlib's, if all its axes stand in a grid.

    No layout moves other axes: they become smaller if labels stand beyond the edge of the figure.
    """
    figure = ax.get_figure(root=True)
    if figure is None or figure.get_layout_engine() is not None:
        return
    if all(each.get_subplotspec() is not None for each in [ax, *figure.axes]):
        # The tight one lets `tight_layout` follow, but knows no subfigures.
        figure.set_layout_engine("constrained" if figure.subfigs else "tight")
        return
    around, box, edge = ax.get_tightbbox(), ax.get_window_extent().get_points(), ax.figure.bbox
    if around is None:
        return
    inward = np.array([[1.0], [-1.0]])
    beyond = np.maximum(inward * (edge.get_points() - around.get_points()), 0.0)
    if beyond.any():
        # Never below half: a picture without names is better than names without a picture.
        beyond *= np.minimum(1.0, 0.5 * (box[1] - box[0]) / np.maximum(beyond.sum(axis=0), 1.0))
        corners = ax.figure.transSubfigure.inverted().transform(box + inward * beyond)
        ax.set_position((*corners[0], *(corners[1] - corners[0])))


def require_matplotlib(caller: str) -> None:
    """Raise an error that says how to install matplotlib, if it is missing."""
    try:
        import matplotlib  # noqa: F401
    except ImportError as error:
        raise ImportError(
            f"{caller} draws with matplotlib, which is not installed: `pip install matplotlib`."
        ) from error


def fitted(estimator: Any, attribute: str, advice: str) -> Any:
    """An attribute that fitting sets."""
    if not hasattr(estimator, attribute):
        inside = model_within(estimator)
        remedy = f"; give {inside}, the model in it" if inside else f": {advice} before drawing it"
        raise ValueError(f"{type(estimator).__name__} has no {attribute}{remedy}.")
    return getattr(estimator, attribute)


def one_target(estimator: Any, target: int | str | None) -> tuple[Any, str | None]:
    """The model of one target, and the name of the target if there are several."""
    fitted(estimator, "path_", "fit a SparseStepCV or SparseStepIC")
    models, names = estimator._fitted, estimator._fitted.target_names
    if target is None and len(names) > 1:
        raise ValueError(
            f"The estimator has {len(names)} targets: say which by target=0, or "
            f"target={names[0]!r}."
        )
    which = models.target_index(0 if target is None else target)
    return models.targets[which], names[which] if len(names) > 1 else None


def finite(parameter: str, values: ArrayLike, shape: tuple[int, ...]) -> Array:
    """Finite floats of the given shape."""
    array = np.asarray(values, dtype=np.float64)
    if array.shape != shape:
        raise ValueError(f"{parameter} must have shape {shape}; got {array.shape}.")
    if not np.isfinite(array).all():
        where = tuple(int(i) for i in np.argwhere(~np.isfinite(array))[0])
        raise ValueError(
            f"{parameter} must be finite; {parameter}{list(where)} is {array[where]}: leave it out."
        )
    return array


def numbers_from(
    parameter: str, values: ArrayLike, *, above_zero: bool = False, size: int | None = None
) -> Array:
    """One-dimensional numbers, not below zero or above it; `size` of them, or at least one."""
    array = np.atleast_1d(np.asarray(values, dtype=np.float64))
    array = finite(parameter, array, (array.size if size is None else size,))
    if array.size == 0 or np.any(array <= 0 if above_zero else array < 0):
        positive = "positive numbers, for the axis is logarithmic"
        wanted = positive if above_zero else "numbers from 0 on, at least one"
        raise ValueError(f"{parameter} must be {wanted}; got {values!r}.")
    return array


def one_number(parameter: str, value: float | None) -> float | None:
    """A number from zero on, or None."""
    return None if value is None else float(numbers_from(parameter, [value])[0])


def one_row_each(parameter: str, values: ArrayLike, along: str, grid: Array) -> Array:
    """One row of finite numbers per variable, one column per point of the grid."""
    array = np.asarray(values, dtype=np.float64)
    if array.ndim != 2 or array.shape[1] != len(grid):
        raise ValueError(
            f"{parameter} must have shape (n_features, {len(grid)}), one column for each of the "
            f"{along}; got {array.shape}. With several targets, draw one at a time."
        )
    return finite(parameter, array, array.shape)


def names_or_default(feature_names: Sequence[str] | None, count: int) -> list[str]:
    """The given names, or x0, x1, ..."""
    if feature_names is None:
        return made_up_names(count)
    names = [str(name) for name in feature_names]
    if len(names) != count:
        raise ValueError(
            f"feature_names must be {count} names, one per variable; got {len(names)}."
        )
    return names


def nearest(alphas: Array, alpha: float) -> int:
    """Index of the alpha nearest to a given one on the logarithmic axis; zero is at its end."""
    if alpha == 0:
        return int(alphas.argmin())
    with np.errstate(divide="ignore"):
        return int(np.abs(np.log(alphas) - np.log(alpha)).argmin())
