"""Facts of the results that may explain why a claim of the paper does not reproduce."""

from __future__ import annotations

from collections.abc import Collection

from sparsestep.study.analysis import CONTROL, Analysis, Ranking, level_name
from sparsestep.study.ranks import TIE

__all__ = ["PENALIZED", "reasons_for_cost", "reasons_for_ranks", "reasons_for_tests"]

PENALIZED = ("Lasso", "SCAD", "MC+")
# How far from optimal a fit may be and still count as converged.
CONVERGED = 1e-5
# Share of the data sets from which a grid's end, or a tie of all methods, is worth a word.
NOTABLE = 0.1


def reasons_for_ranks(analysis: Analysis, ranking: Ranking, about: Collection[str]) -> list[str]:
    """Facts that bear on the ranks on one measure.

    Parameters
    ----------
    analysis : Analysis
    ranking : Ranking
    about : collection of str
        The methods in question.

    Returns
    -------
    list of str
    """
    n = analysis.datasets
    reasons = [*_scale(analysis), *_convergence(analysis, about)]
    if ranking.all_tied >= NOTABLE * n:
        order = list(ranking.without_ties.sort_values(kind="stable").index)
        reasons.append(
            f"All six methods tie, within {TIE:g}, on {ranking.all_tied} of {n} data sets; if only "
            f"equal values tied, the order of average ranks would be {', '.join(order)}."
        )
    if CONTROL in about:
        reasons.append(_where_first(analysis, ranking))
    return reasons + _ends(analysis, about)


def reasons_for_tests(analysis: Analysis, about: Collection[str]) -> list[str]:
    """Facts that bear on what Holm's test can see.

    Parameters
    ----------
    analysis : Analysis
    about : collection of str
        The methods in question.

    Returns
    -------
    list of str
    """
    reasons = [*_scale(analysis), *_convergence(analysis, about)]
    for ranking in analysis.rankings.values():
        for method in PENALIZED:
            singly = sum(ranking.separated_singly.get(method, (0, 0)))
            separated = ranking.against(method).outcome() != "not separated"
            if ranking.separated_singly and separated and singly < analysis.replicates:
                reasons.append(
                    f"On the {ranking.measure.title} {method} is separated by all "
                    f"{analysis.datasets} data sets together, but in only {singly} of the "
                    f"{analysis.replicates} replicates tested alone."
                )
    time = analysis.rankings["time"]
    if any(time.against(method).outcome() != "better" for method in ("SCAD", "MC+")):
        whole = analysis.by_method()["whole"]
        reasons.append(
            "Lasso, SCAD and MC+ follow paths here, which the paper had to forgo, and lambdas at "
            "which all their coefficients are zero cost them nothing. A whole cross-validation "
            f"takes SparseStep {whole[CONTROL]:.2g} s on average, SCAD {whole['SCAD']:.2g} s and "
            f"MC+ with its values of a {whole['MC+']:.2g} s."
        )
    return reasons


def reasons_for_cost() -> list[str]:
    """What a time per fit leaves out.

    Returns
    -------
    list of str
    """
    return [
        "Both are timed on moments: forming X'X, most of the work of one least squares solution, "
        "is done once for all methods and left out."
    ]


def _scale(analysis: Analysis) -> list[str]:
    """A study that is smaller than the paper's."""
    if analysis.full_size:
        return []
    rows, m = analysis.results["n_train"].max(), analysis.settings["m"].max()
    return [f"This study has {rows} rows to learn from and m up to {m}; the paper's 20000 and 500."]


def _convergence(analysis: Analysis, about: Collection[str]) -> list[str]:
    """Rivals that converged, where the paper's may not have."""
    worst = analysis.by_method().loc[["SCAD", "MC+"], "optimality"].max()
    if worst > CONVERGED or not {"SCAD", "MC+"} & set(about):
        return []
    return [
        f"SCAD and MC+ are converged here, to {worst:.0e}; at the default tolerances of ncvreg and "
        "sparsenet, which the paper used, they are 3e-3 to 6e-2 away on correlated designs."
    ]


def _where_first(analysis: Analysis, ranking: Ranking) -> str:
    """The levels of the design at which SparseStep has the best average rank."""
    first = [
        level_name(factor, level)
        for (factor, level), row in analysis.levels(ranking).iterrows()
        if row.idxmin() == CONTROL
    ]
    where = f"at {', '.join(first)} only" if first else "at no single level of the design"
    return f"On the {ranking.measure.title} SparseStep has the best average rank {where}."


def _ends(analysis: Analysis, about: Collection[str]) -> list[str]:
    """Methods whose grid may be too short."""
    n = analysis.datasets
    return [
        f"The best lambda of {method} is the {end} of its grid on {row[end]:.0f} of {n} data sets."
        for method, row in analysis.by_method().iterrows()
        for end in ("smallest", "largest")
        if method in about and row[end] >= NOTABLE * n
    ]
