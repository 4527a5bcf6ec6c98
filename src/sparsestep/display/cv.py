"""The picture of a choice of alpha: error or criterion along alpha."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike

from sparsestep.display import base
from sparsestep.display.axes import Array
from sparsestep.display.parameters import documented
from sparsestep.selection.cross_validation import PAIRED_SHARE

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.collections import FillBetweenPolyCollection
    from matplotlib.lines import Line2D

# Words, line and marker of each choice.
_LOOKS = {
    "min": ("minimum", "--", "o"),
    "paired": ("paired", "-.", "D"),
    "1se": ("one SE", ":", "s"),
    "chosen": ("chosen", "--", "o"),
}


@documented
class CVDisplay(base.Display):
    """Cross-validation error, or an information criterion, along alpha.

    The mean error with a pale band of one standard error to either side, and a dark one of half the
    standard error of its difference to the smallest: the paired rule takes the sparsest model whose
    dark band reaches down to the smallest error. The choices of the rules are marked. The axis of
    alpha falls from left to right, and is linear from the least alpha to 0, as in
    :class:`PathDisplay`.

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes and Figure
        Where it is drawn.
    line_ : Line2D
        The curve.
    band_ : FillBetweenPolyCollection or None
        One standard error to either side.
    paired_band_ : FillBetweenPolyCollection or None
        Half a standard error of the difference to the smallest error to either side.
    bound_ : Line2D or None
        The level that the one-standard-error rule allows, drawn from its choice to the minimum.
    least_ : Line2D or None
        The smallest error, drawn from the choice of the paired rule to the minimum.
    marks_ : dict of str to Line2D
        The marked points: ``"min"``, ``"paired"``, ``"1se"`` and ``"chosen"``, those that there
        are. Choices at the same alpha share the mark of the first.
    top_ : SecondaryAxis or None
        The axis on top with the number of variables kept.

    Examples
    --------
    >>> from sparsestep import CVDisplay
    >>> curve = {"error": [4.0, 1.1, 1.0], "se": [0.4, 0.2, 0.2], "paired_se": [0.5, 0.1, 0.0]}
    >>> rules = {"alpha_min": 1.0, "alpha_paired": 1.0, "alpha_1se": 10.0, "alpha": 10.0}
    >>> display = CVDisplay(alphas=[100.0, 10.0, 1.0], n_nonzero=[0, 2, 5], **curve, **rules)
    >>> for mark in display.plot().marks_.values():
    ...     print(mark.get_label())
    minimum and paired: alpha = 1, 5 kept
    one SE (chosen): alpha = 10, 2 kept
    """

    def __init__(
        self,
        *,
        alphas: ArrayLike,
        error: ArrayLike,
        se: ArrayLike | None = None,
        paired_se: ArrayLike | None = None,
        n_nonzero: ArrayLike | None = None,
        alpha_min: float | None = None,
        alpha_paired: float | None = None,
        alpha_1se: float | None = None,
        alpha: float | None = None,
        chosen: str = "chosen",
        name: str = "cross-validation error",
    ) -> None:
        self.alphas = base.numbers_from("alphas", alphas)
        shape = self.alphas.shape
        self.error = base.finite("error", error, shape)
        self.se = None if se is None else base.finite("se", se, shape)
        self.paired_se = None if paired_se is None else base.finite("paired_se", paired_se, shape)
        kept = None if n_nonzero is None else base.finite("n_nonzero", n_nonzero, shape)
        self.n_nonzero = None if kept is None else kept.astype(np.intp)
        self.alpha_min = base.one_number("alpha_min", alpha_min)
        self.alpha_paired = base.one_number("alpha_paired", alpha_paired)
        self.alpha_1se = base.one_number("alpha_1se", alpha_1se)
        self.alpha = base.one_number("alpha", alpha)
        self.chosen, self.name = chosen, name

    @classmethod
    def from_estimator(
        cls, estimator: Any, *, target: int | str | None = None, ax: Axes | None = None
    ) -> Self:
        """Draw how a fitted ``SparseStepCV`` or ``SparseStepIC`` chose its alpha.

        Examples
        --------
        >>> from sklearn.datasets import load_diabetes
        >>> from sparsestep import CVDisplay, SparseStepCV
        >>> X, y = load_diabetes(return_X_y=True, as_frame=True)
        >>> model = SparseStepCV(rule="1se").fit(X, y)
        >>> display = CVDisplay.from_estimator(model)
        >>> display.marks_["1se"].get_label()
        'one SE (chosen): alpha = 7.23e+04, 3 kept'
        """
        base.require_matplotlib(f"{cls.__name__}.from_estimator")
        model, title = base.one_target(estimator, target)
        shown: dict[str, Any] = {"error": model.criterion}
        if (cv := model.cv) is None:
            name = estimator.criterion.upper()
        else:
            shown = {"error": cv.mean, "alpha_min": cv.alpha_min}
            name = "error on the hold-out split (MSE)"
            # A single split has no standard errors; models of old files have no paired ones.
            if np.isfinite(cv.se).all():
                shown |= {"se": cv.se, "alpha_1se": cv.alpha_1se}
                name = "cross-validation error (MSE)"
            if np.isfinite(cv.paired_se).all():
                shown |= {"paired_se": cv.paired_se, "alpha_paired": cv.alpha_paired}
        display = cls(
            alphas=model.path.alphas,
            n_nonzero=model.path.n_nonzero,
            alpha=model.alpha,
            chosen="chosen" if model.inclusion is None else "most weight",
            name=name,
            **shown,
        )
        return display.plot(ax=ax)._titled(title)

    def plot(self, ax: Axes | None = None) -> Self:
        """Draw the curve."""
        ax = self._begin(ax)
        from sparsestep.display import drawing

        order = np.argsort(-self.alphas, kind="stable")
        alphas, error = self.alphas[order], self.error[order]
        blue, orange = drawing.CYCLE[0][0], drawing.CYCLE[1][0]

        choices = self._choices()
        drawing.log_axis(ax, [*alphas, *(alpha for _, _, alpha in choices)])
        (self.line_,) = ax.plot(alphas, error, ".-", color=blue, linewidth=1.4, markersize=4)

        def band(se: Array | None, share: float, alpha: float) -> FillBetweenPolyCollection | None:
            """The area of the error plus and minus a share of its standard error."""
            if se is None:
                return None
            ends = error - share * se[order], error + share * se[order]
            return ax.fill_between(alphas, *ends, color=blue, alpha=alpha, linewidth=0, zorder=1)

        self.band_ = band(self.se, 1.0, 0.18)
        self.paired_band_ = band(self.paired_se, PAIRED_SHARE, 0.35)

        self.marks_ = {}
        marked: dict[str, Any] = {"ms": 8, "mec": orange, "mew": 1.6, "zorder": 3}
        for key, label, alpha in choices:
            at = base.nearest(alphas, alpha)
            kept = "" if self.n_nonzero is None else f", {self.n_nonzero[order][at]} kept"
            _, style, marker = _LOOKS[key]
            ruled: dict[str, Any] = {"color": drawing.GREY, "linestyle": style, "linewidth": 1.0}
            ax.axvline(alpha, zorder=1.5, **ruled)
            (mark,) = ax.plot(alpha, error[at], marker=marker, **ruled, **marked)
            mark.set_markerfacecolor(orange if alpha == self.alpha else "white")
            mark.set_label(f"{label}: alpha = {alpha:.3g}{kept}")
            self.marks_[key] = mark

        def level(alpha: float | None, se: Array | None) -> Line2D | None:
            """A line one standard error above the minimum, from a choice to the minimum."""
            if alpha is None or se is None or self.alpha_min in (None, alpha):
                return None
            at = base.nearest(alphas, self.alpha_min)
            ends, height = [alpha, self.alpha_min], error[at] + se[order][at]
            return ax.plot(ends, [height] * 2, color=drawing.GREY, linewidth=0.8, zorder=1.5)[0]

        self.bound_ = level(self.alpha_1se, self.se)
        # The paired standard error is 0 at the minimum, so this line is at the smallest error.
        self.least_ = level(self.alpha_paired, self.paired_se)
        if self.marks_:
            drawing.legend(ax)

        self.top_ = None
        if self.n_nonzero is not None:
            self.top_ = drawing.count_axis(ax, alphas, self.n_nonzero[order])
        ax.set(xlabel="alpha", ylabel=self.name)
        return self._finish(ax)

    def _choices(self) -> list[tuple[str, str, float]]:
        """Points to mark: key, words for the legend, alpha. Choices of one alpha share a mark."""
        alphas = (self.alpha_min, self.alpha_paired, self.alpha_1se, self.alpha)
        at: dict[float, list[str]] = {}
        for key, alpha in zip(_LOOKS, alphas, strict=True):
            if alpha is not None:
                at.setdefault(alpha, []).append(key)
        choices = []
        for alpha, keys in at.items():
            rules = " and ".join(_LOOKS[key][0] for key in keys if key != "chosen")
            words = f"{rules} ({self.chosen})" if alpha == self.alpha else rules
            choices.append((keys[0], words if rules else self.chosen, alpha))
        return choices
