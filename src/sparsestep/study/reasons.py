"""Facts of the results that may explain why a claim of the paper does not reproduce."""

from __future__ import annotations

from sparsestep.study.analysis import Analysis, Ranking
from sparsestep.study.ranks import TIE

__all__ = ["PENALIZED", "reasons_for_cost", "reasons_for_ranks", "reasons_for_tests"]

PENALIZED = ("Lasso", "SCAD", "MC+")
# How far from optimal a fit may be and still count as converged.
CONVERGED = 1e-5
# Share of the data sets from which a grid's end, or a tie of all methods, is worth a word.
NOTABLE = 0.1


def reasons_for_ranks(analysis: Analysis, ranking: Ranking) -> list[str]:
    """Facts of these results that bear on the ranks on one measure."""
    n, methods = analysis.datasets, analysis.by_method()
    reasons = [*_scale_reason(analysis), *_convergence_reason(analysis)]
    if ranking.all_tied >= NOTABLE * n:
        order = list(ranking.without_ties.sort_values(kind="stable").index)
        reasons.append(
            f"All six methods tie, within {TIE:g}, on {ranking.all_tied} of {n} data sets; if only "
            f"equal values tied, the order would be {', '.join(order)}."
        )
    for method, row in methods.iterrows():
        for end in ("smallest", "largest"):
            if method in ranking.average and row[end] >= NOTABLE * n:
                reasons.append(
                    f"The best lambda of {method} is the {end} of its grid on {row[end]:.0f} of "
                    f"{n} data sets."
                )
    return reasons


def _scale_reason(analysis: Analysis) -> list[str]:
    """A study that is smaller than the paper's."""
    rows, m = int(analysis.results["n_train"].max()), int(analysis.settings["m"].max())
    if rows >= 20000 and m >= 500:
        return []
    return [f"This study has {rows} rows to learn from and m up to {m}; the paper's 20000 and 500."]


def _convergence_reason(analysis: Analysis) -> list[str]:
    """Rivals that converged, where the paper's may not have."""
    worst = analysis.by_method().loc[["SCAD", "MC+"], "optimality"].max()
    if worst > CONVERGED:
        return []
    return [
        f"SCAD and MC+ are converged here (worst relative violation of optimality {worst:.1g}); "
        "ncvreg and sparsenet, which the paper used, stop 3e-3 to 6e-2 from converged at their "
        "default tolerances on correlated designs."
    ]


def reasons_for_tests(analysis: Analysis) -> list[str]:
    """Facts that bear on what Holm's test can see."""
    reasons = [*_scale_reason(analysis), *_convergence_reason(analysis)]
    for ranking in analysis.rankings.values():
        title = ranking.measure.title
        for method in PENALIZED:
            comparison = ranking.against(method)
            singly = sum(ranking.separated_singly.get(method, (0, 0)))
            if (
                ranking.separated_singly
                and comparison.outcome() != "not separated"
                and singly < analysis.replicates
            ):
                reasons.append(
                    f"{title}: {analysis.datasets} data sets separate SparseStep from {method}; of "
                    f"the {analysis.replicates} replicates, tested one at a time, {singly} do."
                )
    tied = analysis.rankings["time"].all_tied
    if tied >= NOTABLE * analysis.datasets:
        reasons.append(
            f"All six methods tie on time, within {TIE:g} s per fit, on {tied} of "
            f"{analysis.datasets} data sets."
        )
    return reasons


def reasons_for_cost() -> list[str]:
    """What a time per fit leaves out."""
    return [
        "Both are timed on moments: forming X'X, most of the work of one least squares solution, "
        "is done once for all methods and left out."
    ]
