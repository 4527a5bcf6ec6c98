"""The parameters of the displays, each described once, and the docstrings made from them."""

import inspect
import re
from typing import Any, TypeVar

_T = TypeVar("_T")

# By the parameter's name, or by its method or class and name. The signature adds the default.
_PARAMETERS = """
alphas : array_like of shape (n_alphas,)
    Strengths of the penalty, from 0 on, in any order.
coefs : array_like of shape (n_features, n_alphas)
    The coefficients at each alpha: those of a :class:`Path`, or what scikit-learn's
    ``lasso_path`` and ``enet_path`` return.
AnnealingDisplay.coefs : array_like of shape (n_features, n_gammas)
    The coefficients at the end of each gamma. A variable whose last one is zero is dropped.
feature_names : sequence of str
    Names of the variables, ``x0``, ``x1``, ... by default.
from_data.feature_names : sequence of str
    Names of the variables, in place of those of `X`.
alpha : float
    The chosen alpha, marked as such.
from_data.alpha : float
    Strength of the penalty in the units of ``||y - Xb||^2``: the paper's lambda.
chosen : str
    What `alpha` is called: of an average of models it is where most of the weight is.
truth : array_like of shape (n_features,)
    True coefficients, if they are known, marked at the right edge and by dotted lines.
scale : array_like of shape (n_features,)
    Standard deviations of the variables, from 0 on. Drawn is then the effect of one standard
    deviation, ``coefs * scale``, by which variables in different units can be compared.
by_size : bool
    Whether the models are drawn over the number of variables kept instead of over alpha; of
    several with the same number, the one with the largest alpha.
steps : bool
    Whether the lines are steps, which jump halfway between two alphas, or straight from alpha
    to alpha. By default they are steps where the coefficients are constant as long as the same
    variables are kept. That is so for SparseStep, whose path jumps, and not for the lasso.
plot.steps : bool
    In place of the display's own.
error : array_like of shape (n_alphas,)
    Mean error, or value of the criterion, at each alpha.
se : array_like of shape (n_alphas,)
    Standard errors of the means.
paired_se : array_like of shape (n_alphas,)
    Standard errors of the differences to the smallest mean.
n_nonzero : array_like of shape (n_alphas,)
    Variables kept at each alpha.
alpha_min : float
    Where the error is least.
alpha_paired : float
    The choice of the paired rule.
alpha_1se : float
    The choice of the one-standard-error rule.
name : str
    What the curve shows, for the axis.
inclusion : array_like of shape (n_features,)
    The weights, from 0 to 1.
gammas : array_like of shape (n_gammas,)
    Values of gamma, positive and descending.
PenaltyDisplay.gammas : array_like of float
    Values of gamma, positive; exactly one for ``"majorizer"``. By default their squares are 1,
    0.3, 0.05 and 0.005 for ``"penalties"``; and, as in the paper, 0.1 for ``"majorizer"`` and
    0.3 and 0.05 for ``"norm"``.
AnnealingDisplay.standardized : bool
    Whether the coefficients, and gamma with them, are those of standardized data: in standard
    deviations of the target for one of the variable. The axes then say so.
kind : {"penalties", "majorizer", "norm"}
    ``"penalties"``: the SparseStep penalty at several gamma beside those of ridge and lasso,
    SCAD and MC+, in four panels, all with the regularization parameter 1. ``"majorizer"``: the
    penalty and the quadratics that lie above it and touch it at the supporting points.
    ``"norm"``: the number of nonzero coefficients among two, and its approximations by the
    penalty, as maps.
supporting_points : array_like of float
    Where the majorizers touch the penalty; for ``"majorizer"`` only.
path : Path
    What :func:`sparsestep_path` returns, or an estimator's ``path_``.
estimator : SparseStepCV or SparseStepIC
    A fitted estimator.
InclusionDisplay.estimator : SparseStepCV
    A fitted estimator, with ``rule="average"``.
AnnealingDisplay.estimator : SparseStep, SparseStepCV or SparseStepIC
    A fitted estimator, whose alpha and settings are used.
X : array_like of shape (n_samples, n_features)
    The variables, those an estimator was fitted to; a frame's column names are used.
y : array_like of shape (n_samples,)
    The target.
fit_intercept : bool
    Whether to centre the columns and `y`.
standardize : bool
    Whether to scale the columns and `y` to unit variance, and alpha with `y`, as the estimators
    do. The coefficients drawn are then those of the standardized data, in which gamma is too:
    standard deviations of `y` for one of the variable.
settings : dict
    ``gamma_0``, ``gamma_stop``, ``gamma_step``, ``t_max``, ``epsilon`` and ``penalty_factor`` of
    :func:`~sparsestep.reference.sparsestep_reference`.
target : int or str
    Which target, if there are several: its number, from 0, or its name, which becomes the title.
standardized : bool
    Whether to draw the effect of one standard deviation of each variable instead of its
    coefficient: the target's change, in its own units, by which variables in different units
    can be compared.
ax : matplotlib Axes
    Where to draw; a new figure by default. To make room for names and labels, a figure without a
    layout engine gets one of matplotlib's if all its axes stand in a grid of subplots
    (``subplots_adjust`` has an effect again after ``figure.set_layout_engine("none")``);
    otherwise the axes become smaller.
PenaltyDisplay.ax : matplotlib Axes or sequence of them
    Where to draw; a new figure by default. Panels need as many axes, or one that gives its place
    to them.
max_labels : int
    The largest number of variables that are named.
most : int
    The largest number of bars; given axes have no more than there is room for names.
"""

_ENTRIES = {
    name: (kind, text)
    for name, kind, text in re.findall(r"^(\S+) : (.*)\n((?: .*\n)+)", _PARAMETERS, re.M)
}


def documented(cls: type[_T]) -> type[_T]:
    """Add to the docstrings of a display what its signatures say of parameters and results."""
    _complete(cls, cls)
    for name, member in vars(cls).items():
        if name == "plot" or name.startswith("from_"):
            what = "This object." if name == "plot" else "The display, plotted."
            method = getattr(member, "__func__", member)
            _complete(cls, method, f"\nReturns\n-------\n{cls.__name__}\n    {what}\n")
    return cls


def _complete(cls: type, described: Any, returns: str = "") -> None:
    """Put sections on parameters and on what is returned before the other sections."""
    if described.__doc__ is None:  # python -OO
        return
    section = "\nParameters\n----------\n"
    for name, parameter in inspect.signature(described).parameters.items():
        if name in ("self", "cls"):
            continue
        special = (f"{described.__name__}.{name}", f"{cls.__name__}.{name}")
        kind, text = _ENTRIES[next((key for key in special if key in _ENTRIES), name)]
        if parameter.default is None:
            kind += ", optional"
        elif parameter.default is not parameter.empty:
            kind += f", default={parameter.default!r}"
        stars = "**" if parameter.kind is parameter.VAR_KEYWORD else ""
        section += f"{stars}{name} : {kind}\n{text}"
    doc = inspect.cleandoc(described.__doc__)
    text, *others = re.split(r"\n(?=\w+\n-+\n)", f"{doc}\n", maxsplit=1)
    described.__doc__ = "\n".join([text + section + returns, *others])
