"""The picture of the method at work: coefficients as gamma falls."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike

from sparsestep.display import base
from sparsestep.display.parameters import documented
from sparsestep.moments.moments import Moments
from sparsestep.moments.table import column_names
from sparsestep.selection.fitting import literal_steps, one_alpha
from sparsestep.solvers.scaled_problem import Settings, penalty_factors
from sparsestep.solvers.schedule import Schedule

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# More lines of dropped variables would hide each other.
MOST_DROPPED = 200


@documented
class AnnealingDisplay(base.Display):
    """Coefficients as gamma falls: the method at work.

    The axis of gamma is logarithmic and falls from left to right, in the order of the
    computation. The shaded funnel is ``|coefficient| < gamma``: a coefficient that stays in it
    falls to zero with gamma, one that leaves it is no longer penalized, and moves to its least
    squares value. Shown is the part of the schedule in which something happens; ``ax_.set_xlim``
    shows more.

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes and Figure
        Where it is drawn.
    lines_ : dict of int to Line2D
        The lines of the variables kept, by the number of the variable, largest first.
    dropped_ : LineCollection or None
        The lines of the variables dropped; of more than 200, of those that went furthest.
    funnel_ : FillBetweenPolyCollection
        Where a coefficient is smaller than gamma.
    labels_ : list of Annotation
        The names at the edge, and the number dropped.

    Examples
    --------
    >>> import numpy as np
    >>> from sparsestep import AnnealingDisplay
    >>> X = np.random.default_rng(0).normal(size=(50, 3))
    >>> display = AnnealingDisplay.from_data(X, X @ [3.0, -2.0, 0.1], alpha=5.0)
    >>> sorted(display.lines_)
    [0, 1]
    >>> display.gammas.shape, display.coefs.shape
    ((47,), (3, 47))
    """

    def __init__(
        self,
        *,
        gammas: ArrayLike,
        coefs: ArrayLike,
        feature_names: Sequence[str] | None = None,
        standardized: bool = False,
    ) -> None:
        self.gammas = base.numbers_from("gammas", gammas, above_zero=True)
        if np.any(np.diff(self.gammas) >= 0):
            raise ValueError("gammas must descend: give them in the order of the computation.")
        self.coefs = base.one_row_each("coefs", coefs, "gammas", self.gammas)
        self.feature_names = base.names_or_default(feature_names, len(self.coefs))
        self.standardized = standardized

    @classmethod
    def from_data(
        cls,
        X: Any,
        y: Any,
        alpha: float,
        *,
        feature_names: Sequence[str] | None = None,
        fit_intercept: bool = True,
        standardize: bool = True,
        ax: Axes | None = None,
        max_labels: int = 12,
        **settings: Any,
    ) -> Self:
        """Run Algorithm 1 as printed on `X` and `y`, and draw its coefficients at every gamma.

        Of columns that are copies of each other only the first takes part, as in every fit. The
        loop is slow: 150 rows of 3000 columns take about eight seconds, 300 of 6000 half a minute.
        """
        base.require_matplotlib(f"{cls.__name__}.from_data")
        moments = Moments.from_data(X, y)
        if np.size(moments.mean_y) > 1:
            raise ValueError(
                f"The picture has one target; y has {np.size(moments.mean_y)} columns: give one."
            )
        names = column_names(X) if feature_names is None else feature_names
        factor = settings.pop("penalty_factor", None)
        how = Settings(
            schedule=Schedule(**settings),
            fit_intercept=fit_intercept,
            standardize=standardize,
            penalty_factor=penalty_factors(factor, moments.n_features, names),
        )
        gammas, coefs = literal_steps(moments.target(0), float(one_alpha(alpha)[0]), how)
        display = cls(gammas=gammas, coefs=coefs, feature_names=names, standardized=standardize)
        return display.plot(ax=ax, max_labels=max_labels)

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: Any, y: Any, *, ax: Axes | None = None, max_labels: int = 12
    ) -> Self:
        """Show how a fitted estimator came from `X` and `y` to its coefficients.

        For a fit without sample weights, before any polishing or, with `n_nonzero`, swapping.

        Examples
        --------
        >>> from sklearn.datasets import load_diabetes
        >>> from sparsestep import AnnealingDisplay, SparseStep
        >>> X, y = load_diabetes(return_X_y=True, as_frame=True)
        >>> display = AnnealingDisplay.from_estimator(SparseStep(alpha=7e4).fit(X, y), X, y)
        >>> [label.get_text() for label in display.labels_]
        ['bmi', 's5', 'bp', '7 dropped']
        """
        names = ("fit_intercept", "standardize", *Schedule.__dataclass_fields__)
        # Of a y that was a single column it is an array of one number.
        alpha = np.squeeze(base.fitted(estimator, "alpha_", "fit the estimator"))[()]
        return cls.from_data(
            X,
            y,
            alpha,
            feature_names=getattr(estimator, "feature_names_in_", None),
            ax=ax,
            max_labels=max_labels,
            penalty_factor=estimator._factors(),
            **{name: getattr(estimator, name) for name in names},
        )

    def plot(self, ax: Axes | None = None, *, max_labels: int = 12) -> Self:
        """Draw the coefficients."""
        ax = self._begin(ax)
        from sparsestep.display import drawing

        last = self.coefs[:, -1]
        kept = np.argsort(-np.abs(last), kind="stable")[: np.count_nonzero(last)].tolist()
        named = kept[:max_labels]
        dropped = np.flatnonzero(last == 0)
        furthest = dropped[np.argsort(-np.abs(self.coefs[dropped]).max(axis=1), kind="stable")]

        pale = (drawing.PALE, 0.5) if len(dropped) > max_labels else (drawing.GREY, 1.0)
        dropped_rows = self.coefs[furthest[:MOST_DROPPED]]
        self.dropped_ = drawing.pale_lines(ax, self.gammas, dropped_rows, *pale)
        dot = "o" if len(self.gammas) == 1 else None
        self.lines_ = drawing.lines(ax, self.gammas, self.coefs, kept, len(named), marker=dot)
        drawing.log_axis(ax, self.gammas[self._eventful()])
        largest = np.abs(self.coefs).max() or 1.0
        bottom, top = min(self.coefs.min(), -0.1 * largest), max(self.coefs.max(), 0.1 * largest)
        ax.set_ylim(bottom - 0.06 * (top - bottom), top + 0.06 * (top - bottom))
        fine, orange = np.geomspace(self.gammas[0], self.gammas[-1], 2000), drawing.CYCLE[5][0]
        self.funnel_ = ax.fill_between(
            fine, -fine, fine, color=orange, alpha=0.13, linewidth=0, zorder=0.5
        )

        notes = ["shaded: |coefficient| < gamma"]
        if len(kept) > len(named):
            notes.append(f"thin: {len(kept) - len(named)} more kept")
        units = " (standardized)" if self.standardized else ""
        drawing.xlabel(ax, f"gamma{units}", notes)
        ax.set_ylabel(f"coefficient{units}")
        labels = [(last[j], self.feature_names[j], self.lines_[j].get_color()) for j in named]
        if len(dropped):
            labels.append((0.0, f"{len(dropped)} dropped", drawing.GREY))
        self.labels_ = drawing.label_edge(ax, labels)
        return self._finish(ax)

    def _eventful(self) -> list[int]:
        """First and last gamma of the part in which a coefficient moves, and four around it."""
        tolerance = 0.01 * np.abs(self.coefs).max()
        moved = np.any(np.abs(self.coefs - self.coefs[:, :1]) > tolerance, axis=0)
        unsettled = np.any(np.abs(self.coefs - self.coefs[:, -1:]) > tolerance, axis=0)
        final = len(self.gammas) - 1
        if not moved.any():
            return [0, final]
        settled = final - int(np.argmax(unsettled[::-1]))
        return [max(int(np.argmax(moved)) - 4, 0), min(settled + 4, final)]
