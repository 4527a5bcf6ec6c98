"""The picture of a path: coefficients along alpha."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sparsestep.display import base
from sparsestep.display.axes import Array, step_corners, without_zeros
from sparsestep.display.parameters import documented

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@documented
class PathDisplay(base.Display):
    """Coefficients along alpha, with the chosen alpha and the number of variables kept.

    The axis of alpha is logarithmic and falls from left to right, as in scikit-learn's examples of
    lasso paths: the sparse models are at the left, and variables enter on the way to the right,
    where their names stand. From the least alpha to 0, at the right end, the axis is linear.

    With `by_size` the axis is the number of variables kept, and their alphas stand on top: for
    models of chosen sizes, between whose alphas there are other models.

    In colour, with a name: with `alpha` or `truth`, the variables kept at `alpha` and those that
    are truly nonzero; without, those with the largest coefficients on average along the path. The
    rest is pale, and has a (grey) name only if all variables can be named.

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes and Figure
        Where it is drawn.
    lines_ : dict of int to Line2D
        The lines in colour, by the number of the variable, most important first.
    muted_ : LineCollection or None
        The pale lines.
    labels_ : list of Annotation
        The names at the edge. They are moved apart when the figure is drawn; where the axes are
        too low for all, the least important stay hidden.
    alpha_line_ : Line2D or None
        The vertical line at the chosen alpha.
    truth_ : list of Line2D
        The marks of the true coefficients.
    top_ : SecondaryAxis
        The axis on top with the number of variables kept, or with alphas if `by_size`.

    Examples
    --------
    >>> import numpy as np
    >>> from sparsestep import PathDisplay
    >>> alphas = [100.0, 10.0, 1.0]
    >>> coefs = [[0.0, 2.0, 2.1], [0.0, 0.0, -0.4]]
    >>> names = ["age", "bmi"]
    >>> display = PathDisplay(alphas=alphas, coefs=coefs, feature_names=names, alpha=10.0)
    >>> display.plot().ax_.get_ylabel()
    'coefficient'

    The same for the lasso, to put beside it:

    >>> from sklearn.linear_model import lasso_path
    >>> X = np.random.default_rng(0).normal(size=(50, 3))
    >>> alphas, coefs, _ = lasso_path(X, X @ [3.0, -1.0, 0.0])
    >>> display = PathDisplay(alphas=alphas, coefs=coefs, truth=[3.0, -1.0, 0.0]).plot()
    >>> sorted(display.lines_)
    [0, 1]
    """

    def __init__(
        self,
        *,
        alphas: ArrayLike,
        coefs: ArrayLike,
        feature_names: Sequence[str] | None = None,
        alpha: float | None = None,
        chosen: str = "chosen alpha",
        truth: ArrayLike | None = None,
        scale: ArrayLike | None = None,
        by_size: bool = False,
        steps: bool | None = None,
    ) -> None:
        self.alphas = base.numbers_from("alphas", alphas)
        self.coefs = base.one_row_each("coefs", coefs, "alphas", self.alphas)
        m = len(self.coefs)
        self.feature_names = base.names_or_default(feature_names, m)
        self.alpha = base.one_number("alpha", alpha)
        self.truth = None if truth is None else base.finite("truth", truth, (m,))
        self.scale = None if scale is None else base.numbers_from("scale", scale, size=m)
        self.chosen, self.by_size, self.steps = chosen, by_size, steps

    @classmethod
    def from_path(
        cls,
        path: Any,
        *,
        alpha: float | None = None,
        chosen: str = "chosen alpha",
        truth: ArrayLike | None = None,
        scale: ArrayLike | None = None,
        ax: Axes | None = None,
        max_labels: int = 12,
    ) -> Self:
        """Draw a :class:`Path`, over alpha, or over size if it was made of sizes.

        Examples
        --------
        >>> import numpy as np
        >>> from sparsestep import PathDisplay, sparsestep_path
        >>> X = np.random.default_rng(0).normal(size=(50, 3))
        >>> path = sparsestep_path(X, X @ [3.0, -1.0, 0.0], alphas=[100.0, 10.0, 0.0])
        >>> PathDisplay.from_path(path).alphas
        array([100.,  10.,   0.])
        >>> PathDisplay.from_path(path, scale=X.std(axis=0)).ax_.get_ylabel()
        'effect of one standard deviation'
        """
        return cls(
            alphas=path.alphas,
            coefs=path.coefs,
            feature_names=path.feature_names,
            alpha=alpha,
            chosen=chosen,
            truth=truth,
            scale=scale,
            by_size=path.by_size,
            steps=True,
        ).plot(ax=ax, max_labels=max_labels)

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        *,
        target: int | str | None = None,
        truth: ArrayLike | None = None,
        standardized: bool = False,
        ax: Axes | None = None,
        max_labels: int = 12,
    ) -> Self:
        """Draw the path of a fitted ``SparseStepCV`` or ``SparseStepIC``, with the alpha it chose.

        Examples
        --------
        >>> from sklearn.datasets import load_diabetes
        >>> from sparsestep import PathDisplay, SparseStepCV
        >>> X, y = load_diabetes(return_X_y=True, as_frame=True, scaled=False)
        >>> model = SparseStepCV(rule="1se").fit(X, y)
        >>> display = PathDisplay.from_estimator(model)
        >>> last = display.coefs[:, -1]
        >>> {display.feature_names[j]: round(float(last[j]), 1) for j in display.lines_}
        {'s5': 68.5, 'bmi': 5.6, 'bp': 1.1}

        s5 is a logarithm and varies little, so its coefficient is large. By the effects of one
        standard deviation of each, the three are comparable:

        >>> display = PathDisplay.from_estimator(model, standardized=True)
        >>> effects = last * display.scale
        >>> {display.feature_names[j]: round(float(effects[j]), 1) for j in display.lines_}
        {'s5': 35.7, 'bmi': 24.7, 'bp': 15.4}
        """
        base.require_matplotlib(f"{cls.__name__}.from_estimator")
        model, title = base.one_target(estimator, target)
        return cls.from_path(
            model.path,
            alpha=model.alpha,
            chosen="chosen alpha" if model.inclusion is None else "alpha of most weight",
            truth=truth,
            scale=estimator._fitted.fingerprint.deviation if standardized else None,
            ax=ax,
            max_labels=max_labels,
        )._titled(title)

    def plot(
        self, ax: Axes | None = None, *, max_labels: int = 12, steps: bool | None = None
    ) -> Self:
        """Draw the path."""
        ax = self._begin(ax)
        from sparsestep.display import drawing

        order = np.argsort(-self.alphas, kind="stable")
        kept = np.count_nonzero(self.coefs[:, order], axis=0)
        if self.by_size:
            kept, first = np.unique(kept, return_index=True)
            order = order[first]
        scale = np.ones(len(self.coefs)) if self.scale is None else self.scale
        alphas, coefs = self.alphas[order], self.coefs[:, order] * scale[:, np.newaxis]
        truth = None if self.truth is None else self.truth * scale
        chosen = None if self.alpha is None else base.nearest(alphas, self.alpha)
        main, others = _ranked(coefs, truth, chosen, max_labels)
        above = alphas > 0
        if self.by_size:
            x, heights = _size_vertices(kept, coefs)
            self.top_ = drawing.size_axes(ax, kept, alphas)
        else:
            drawing.log_axis(ax, alphas if self.alpha is None else [*alphas, self.alpha])
            self.top_ = drawing.count_axis(ax, alphas, kept)
            x, heights = alphas, coefs
            steps = self.steps if steps is None else steps
            if _piecewise_constant(coefs[:, above]) if steps is None else steps:
                between = np.where(x[1:] > 0, np.sqrt(x[:-1] * x[1:]), x[:-1] / 2)
                x, heights = step_corners(x, between, heights)
                x[-1] = x[-1] or ax.get_xlim()[1]
            heights = without_zeros(heights)

        pale, width = np.setdiff1d(np.arange(len(coefs)), main), 1.0 if others else 0.5
        self.muted_ = drawing.pale_lines(ax, x, heights[pale], drawing.PALE, width)
        style = {"marker": "o" if above.sum() <= 1 else None, "solid_joinstyle": "miter"}
        self.lines_ = drawing.lines(ax, x, heights, main, len(main), **style)
        colours = {j: line.get_color() for j, line in self.lines_.items()}

        notes = []
        self.alpha_line_ = None
        if self.alpha is not None and chosen is not None:
            count = f"{kept[chosen]} of {len(coefs)} kept"
            notes.append(f"grey line: {self.chosen}, {self.alpha:.3g}, {count}")
            at = kept[chosen] if self.by_size else self.alpha
            self.alpha_line_ = ax.axvline(at, color=drawing.GREY, linewidth=1.0, zorder=1.8)
        self.truth_ = []
        dash: dict[str, Any] = {"lw": 2.5, "solid_capstyle": "butt", "clip_on": False}
        dash["transform"] = ax.get_yaxis_transform()
        for j, colour in colours.items():
            if truth is not None and truth[j] != 0:
                ax.axhline(truth[j], color=colour, ls=":", lw=0.9, alpha=0.7, zorder=1.7)
                self.truth_ += ax.plot([0.985, 1.015], [truth[j]] * 2, color=colour, **dash)
        if self.truth_:
            notes.append("dotted: true coefficients")

        drawing.xlabel(ax, "variables kept" if self.by_size else "alpha", notes)
        ax.set_ylabel("coefficient" if self.scale is None else "effect of one standard deviation")
        ends, names = coefs[:, -1], self.feature_names
        named = [(ends[j], names[j], colours.get(j, drawing.GREY)) for j in [*main, *others]]
        self.labels_ = drawing.label_edge(ax, named)
        return self._finish(ax)


def _ranked(
    coefs: Array, truth: Array | None, chosen: int | None, max_labels: int
) -> tuple[list[int], list[int]]:
    """Variables in colour, most important first, and those named in grey."""
    size = np.abs(coefs).mean(axis=1)
    true = np.zeros_like(size) if truth is None else np.abs(truth)
    kept = np.zeros(len(size), bool) if chosen is None else coefs[:, chosen] != 0
    ranking = np.lexsort([-size, ~kept, -true])
    ever, wanted = size > 0, kept | (true > 0)
    if chosen is None and truth is None:
        wanted = ever
    main = ranking[wanted[ranking]][:max_labels]
    all_named = np.count_nonzero(ever | (true > 0)) <= max_labels
    others = ranking[ever[ranking] & ~np.isin(ranking, main)] if all_named else np.array([], int)
    return main.tolist(), others.tolist()


def _piecewise_constant(coefs: Array) -> bool:
    """Whether coefficients differ only where the set of variables kept does."""
    kept = coefs != 0
    same = (kept[:, 1:] == kept[:, :-1]).all(axis=0)
    moves = np.abs(np.diff(coefs, axis=1)[:, same])
    return bool(moves.max(initial=0.0) <= 1e-6 * np.abs(coefs).max(initial=0.0))


def _size_vertices(sizes: NDArray[np.intp], coefs: Array) -> tuple[Array, Array]:
    """Corners of steps that jump halfway between neighbouring sizes, with gaps for missing ones."""
    x = np.repeat(sizes, 2) + np.tile([-0.5, 0.5], len(sizes))
    heights = without_zeros(np.repeat(coefs, 2, axis=1))
    gaps = 2 * np.flatnonzero(np.diff(sizes) > 1) + 2
    return np.insert(x, gaps, np.nan), np.insert(heights, gaps, np.nan, axis=1)
