"""The picture of a choice of alpha: error or criterion along alpha."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike

from sparsestep.display.axes import places
from sparsestep.display.base import (
    Display,
    finite,
    nearest,
    numbers_from,
    one_target,
    require_matplotlib,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axes._secondary_axes import SecondaryAxis
    from matplotlib.collections import FillBetweenPolyCollection
    from matplotlib.lines import Line2D

__all__ = ["CVDisplay"]


class CVDisplay(Display):
    """Cross-validation error, or an information criterion, along alpha.

    The mean error with a band of one standard error to either side; the minimum and the
    one-standard-error choice are marked. The axis of alpha falls from left to right, and alpha = 0
    stands apart at its end, as in :class:`PathDisplay`.

    Parameters
    ----------
    alphas : array_like of shape (n_alphas,)
        Strengths of the penalty, from 0 on, in any order.
    error : array_like of shape (n_alphas,)
        Mean error, or value of the criterion, at each alpha.
    se : array_like of shape (n_alphas,), optional
        Standard errors of the means.
    n_nonzero : array_like of shape (n_alphas,), optional
        Variables kept at each alpha.
    alpha_min, alpha_1se : float, optional
        Where the error is least, and the choice of the one-standard-error rule.
    alpha : float, optional
        The chosen alpha: marked as such among the two above, or by itself.
    name : str, default="cross-validation error"
        What the curve shows, for the axis.

    Attributes
    ----------
    ax_ : matplotlib Axes
        The axes drawn on.
    figure_ : matplotlib Figure
        The figure of the axes.
    line_ : Line2D
        The curve.
    band_ : FillBetweenPolyCollection or None
        One standard error to either side.
    bound_ : Line2D or None
        The level that the one-standard-error rule allows, drawn between the two choices.
    marks_ : dict of str to Line2D
        The marked points: ``"min"``, ``"1se"`` and ``"chosen"``, those that there are.
    top_ : SecondaryAxis or None
        The axis on top with the number of variables kept.

    Examples
    --------
    >>> from sparsestep import CVDisplay
    >>> display = CVDisplay(
    ...     alphas=[100.0, 10.0, 1.0],
    ...     error=[4.0, 1.1, 1.0],
    ...     se=[0.4, 0.2, 0.2],
    ...     n_nonzero=[0, 2, 5],
    ...     alpha_min=1.0,
    ...     alpha_1se=10.0,
    ...     alpha=10.0,
    ... )
    >>> sorted(display.plot().marks_)
    ['1se', 'min']
    """

    line_: Line2D
    band_: FillBetweenPolyCollection | None
    bound_: Line2D | None
    marks_: dict[str, Line2D]
    top_: SecondaryAxis | None

    def __init__(
        self,
        *,
        alphas: ArrayLike,
        error: ArrayLike,
        se: ArrayLike | None = None,
        n_nonzero: ArrayLike | None = None,
        alpha_min: float | None = None,
        alpha_1se: float | None = None,
        alpha: float | None = None,
        name: str = "cross-validation error",
    ) -> None:
        self.alphas = numbers_from("alphas", alphas)
        shape = self.alphas.shape
        self.error = finite("error", error, shape)
        self.se = None if se is None else finite("se", se, shape)
        self.n_nonzero = (
            None if n_nonzero is None else finite("n_nonzero", n_nonzero, shape).astype(np.intp)
        )
        self.alpha_min, self.alpha_1se, self.alpha = (
            None if value is None else float(numbers_from(parameter, [value])[0])
            for parameter, value in [
                ("alpha_min", alpha_min),
                ("alpha_1se", alpha_1se),
                ("alpha", alpha),
            ]
        )
        self.name = name

    @classmethod
    def from_estimator(
        cls, estimator: Any, *, target: int | str | None = None, ax: Axes | None = None
    ) -> Self:
        """Draw how a fitted ``SparseStepCV`` or ``SparseStepIC`` chose its alpha.

        Parameters
        ----------
        estimator : SparseStepCV or SparseStepIC
            A fitted estimator.
        target : int or str, optional
            Which target, if there are several: its number, from 0, or its name, which becomes the
            title.
        ax : matplotlib Axes, optional
            Where to draw; a new figure by default.

        Returns
        -------
        CVDisplay
            The display, plotted.

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
        require_matplotlib(f"{cls.__name__}.from_estimator")
        path, t, title = one_target(estimator, target)
        chosen: dict[str, Any] = {"alpha": estimator.alpha_}
        se = None
        if hasattr(estimator, "cv_mean_"):
            error, name = np.atleast_2d(estimator.cv_mean_)[t], "cross-validation error (MSE)"
            chosen["alpha_min"] = estimator.alpha_min_
            if np.isfinite(estimator.cv_se_).all():
                se = np.atleast_2d(estimator.cv_se_)[t]
                chosen["alpha_1se"] = estimator.alpha_1se_
            else:  # a single split has no standard error
                name = "error on the hold-out split (MSE)"
        else:
            error = np.atleast_2d(estimator.criterion_path_)[t]
            name = estimator.criterion.upper()
        chosen = {key: float(np.ravel(value)[t]) for key, value in chosen.items()}
        display = cls(
            alphas=path.alphas, error=error, se=se, n_nonzero=path.n_nonzero, name=name, **chosen
        )
        return display.plot(ax=ax)._titled(title)

    def plot(self, ax: Axes | None = None) -> Self:
        """Draw the curve.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw; a new figure by default.

        Returns
        -------
        CVDisplay
            This object.
        """
        ax = self._begin(ax)
        from sparsestep.display import drawing

        order = np.argsort(-self.alphas, kind="stable")
        alphas, error = self.alphas[order], self.error[order]
        blue, orange = drawing.CYCLE[0][0], drawing.CYCLE[1][0]

        marked = [value for _, _, value in self._choices()]
        place = places(np.concatenate([alphas, marked]))

        above = alphas > 0
        se = np.zeros_like(error) if self.se is None else self.se[order]
        rows = np.vstack([error, error - se, error + se])
        x, (mean, _, _) = place.broken(alphas[above], rows[:, above], rows[:, ~above], wide=False)
        (self.line_,) = ax.plot(x, mean, ".-", color=blue, linewidth=1.4, markersize=4)
        self.band_ = None
        if self.se is not None:
            x, (_, low, high) = place.broken(
                alphas[above], rows[:, above], rows[:, ~above], wide=True
            )
            self.band_ = ax.fill_between(
                x, low, high, color=blue, alpha=0.18, linewidth=0, zorder=1
            )
        drawing.log_axis(ax, place)

        self.marks_ = {}
        for key, label, alpha in self._choices():
            at = nearest(alphas, alpha)
            kept = "" if self.n_nonzero is None else f", {self.n_nonzero[order][at]} kept"
            style = ":" if key == "1se" else "--"
            (at_alpha,) = place.at(np.array([alpha]))
            ax.axvline(at_alpha, color=drawing.GREY, linestyle=style, linewidth=1.0, zorder=1.5)
            (self.marks_[key],) = ax.plot(
                [at_alpha],
                [error[at]],
                color=drawing.GREY,
                linestyle=style,
                linewidth=1.0,
                marker="s" if key == "1se" else "o",
                markersize=8,
                markeredgecolor=orange,
                markeredgewidth=1.6,
                markerfacecolor=orange if alpha == self.alpha else "white",
                zorder=3,
                label=f"{label}: alpha = {alpha:.3g}{kept}",
            )
        self.bound_ = None
        if self.se is not None and self.alpha_min is not None and self.alpha_1se is not None:
            at = nearest(alphas, self.alpha_min)
            (self.bound_,) = ax.plot(
                place.at(np.array([self.alpha_1se, self.alpha_min])),
                [error[at] + self.se[order][at]] * 2,
                color=drawing.GREY,
                linewidth=0.8,
                zorder=1.5,
            )
        if self.marks_:
            drawing.legend(ax)

        self.top_ = None
        if self.n_nonzero is not None:
            self.top_ = drawing.count_axis(ax, alphas, self.n_nonzero[order], place)
        ax.set_xlabel("alpha")
        ax.set_ylabel(self.name)
        return self._finish(ax)

    def _choices(self) -> list[tuple[str, str, float]]:
        """What to mark: key, words for the legend, alpha."""
        choices = []
        if self.alpha_min is not None and self.alpha_min == self.alpha_1se:
            choices.append(("min", "minimum and one SE", self.alpha_min))
        else:
            if self.alpha_min is not None:
                choices.append(("min", "minimum", self.alpha_min))
            if self.alpha_1se is not None:
                choices.append(("1se", "one SE", self.alpha_1se))
        if self.alpha is not None and self.alpha not in [alpha for _, _, alpha in choices]:
            choices.append(("chosen", "chosen", self.alpha))
        return [
            (key, f"{words} (chosen)" if alpha == self.alpha and key != "chosen" else words, alpha)
            for key, words, alpha in choices
        ]
