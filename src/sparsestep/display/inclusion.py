"""The picture of an average of models: the weight of those that include each variable."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike

from sparsestep.display import base
from sparsestep.display.axes import plain
from sparsestep.display.parameters import documented
from sparsestep.selection.averaging import LEAST_INCLUSION

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# From bar to bar, in sizes of the letters of their names.
_APART = 1.5
# Inches of what is above and below the bars in a figure of our own.
_AROUND = 1.2


@documented
class InclusionDisplay(base.Display):
    """Weight of the models that include each variable, in an average of models.

    A bar for each variable, the largest first; a figure of its own is as high as the bars need.
    Variables with more than half of the weight are kept: they are in colour, the others grey.

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes and Figure
        Where it is drawn.
    bars_ : BarContainer
        The bars, the largest first.
    half_ : Line2D
        The line that bars of variables kept cross.

    Examples
    --------
    >>> from sparsestep import InclusionDisplay
    >>> display = InclusionDisplay([0.2, 1.0, 0.7], feature_names=["age", "bmi", "bp"]).plot()
    >>> [label.get_text() for label in display.ax_.get_yticklabels()]
    ['bmi', 'bp', 'age']
    """

    def __init__(self, inclusion: ArrayLike, *, feature_names: Sequence[str] | None = None) -> None:
        self.inclusion = base.numbers_from("inclusion", inclusion)
        if self.inclusion.max() > 1:
            raise ValueError(f"inclusion must be weights up to 1; got {self.inclusion.max():g}.")
        self.feature_names = base.names_or_default(feature_names, len(self.inclusion))

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        *,
        target: int | str | None = None,
        ax: Axes | None = None,
        most: int = 30,
    ) -> Self:
        """Draw the weights of a fitted ``SparseStepCV(rule="average")``.

        Examples
        --------
        >>> from sklearn.datasets import load_diabetes
        >>> from sparsestep import InclusionDisplay, SparseStepCV
        >>> X, y = load_diabetes(return_X_y=True, as_frame=True)
        >>> model = SparseStepCV(rule="average").fit(X, y)
        >>> display = InclusionDisplay.from_estimator(model)
        >>> int((display.inclusion > 0.5).sum()) == int((model.coef_ != 0).sum())
        True
        """
        base.require_matplotlib(f"{cls.__name__}.from_estimator")
        base.fitted(estimator, "inclusion_", 'fit a SparseStepCV(rule="average")')
        model, title = base.one_target(estimator, target)
        display = cls(model.inclusion, feature_names=model.path.feature_names)
        return display.plot(ax=ax, most=most)._titled(title)

    def plot(self, ax: Axes | None = None, *, most: int = 30) -> Self:
        """Draw the bars."""
        if most < 1:
            raise ValueError(f"most must be at least 1; got {most}.")
        own = ax is None
        ax = self._begin(ax)
        from sparsestep.display import drawing

        inches = _APART * float(ax.yaxis.label.get_fontsize()) / 72.0
        if own:
            ax.figure.set(figheight=_AROUND + inches * min(most, len(self.inclusion)))
        else:
            room = ax.get_window_extent().height / ax.figure.dpi
            most = min(most, max(int(room / inches), 1))
        order = np.argsort(-self.inclusion, kind="stable")
        shown, rest = order[:most], order[most:]
        places, weights = np.arange(len(shown)), self.inclusion[shown]
        colours = np.where(weights > LEAST_INCLUSION, drawing.CYCLE[0][0], drawing.PALE).tolist()
        self.bars_ = ax.barh(places, weights, height=0.7, color=colours)
        self.half_ = ax.axvline(LEAST_INCLUSION, color=drawing.GREY, linestyle="--", linewidth=1.0)
        ax.set(xlim=(0.0, 1.0), ylim=(len(shown) - 0.4, -0.6))
        # A name is data: its dollars and underscores are no formula.
        names = plain(self.feature_names[j] for j in shown)
        ax.set_yticks(places, names, parse_math=False, usetex=False)
        ax.tick_params(axis="y", length=0.0)
        notes = ["beyond the dashed line: kept"]
        if len(rest):
            largest = float(self.inclusion[rest[0]])
            notes.append(f"not shown: {len(rest)} more, each of at most {largest:.2g}")
        drawing.xlabel(ax, "weight of the models with the variable", notes)
        return self._finish(ax)
