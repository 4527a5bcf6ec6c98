"""The question that the paper left open, and what these results answer.

SparseStep was not separated from lasso, SCAD and MC+: for lack of a difference, or of data sets?
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import stats

from sparsestep.study.analysis import Analysis
from sparsestep.study.claims import describe
from sparsestep.study.ranks import MEASURES
from sparsestep.study.reasons import PENALIZED
from sparsestep.study.results import METHODS

__all__ = ["Answer", "answer_of"]


@dataclass(frozen=True)
class Answer:
    """What Holm's test says of SparseStep against lasso, SCAD and MC+.

    Parameters
    ----------
    short : str
        The answer in a sentence.
    measures : dict of str to str
        What the test says on each measure, by the measure's title.
    by_setting : dict of str to str
        The same with one block per setting; empty without replicates.
    visible : float
        A difference in average rank so large is significant at 5 % whatever the other comparisons.
    """

    short: str
    measures: dict[str, str]
    by_setting: dict[str, str]
    visible: float


def answer_of(analysis: Analysis) -> Answer:
    """Answer the open question.

    Parameters
    ----------
    analysis : Analysis

    Returns
    -------
    Answer
    """
    k, n = len(METHODS), analysis.datasets
    # Holm's strictest threshold, that of the smallest of k - 1 p-values.
    visible = float(stats.norm.isf(0.025 / (k - 1)) * np.sqrt(k * (k + 1) / (6 * n)))
    rankings = list(analysis.rankings.values())
    return Answer(
        short=_short(analysis),
        measures={
            ranking.measure.title: describe([ranking.against(method) for method in PENALIZED])
            for ranking in rankings
        },
        by_setting={
            ranking.measure.title: describe(
                [c for c in ranking.settings_holm if c.method in PENALIZED]
            )
            for ranking in rankings
            if ranking.settings_holm
        },
        visible=visible,
    )


def _short(analysis: Analysis) -> str:
    """Yes, no, or where: on the three measures on which the paper saw no difference."""
    outcomes = {
        (measure.title, method): analysis.rankings[measure.column].against(method).outcome()
        for measure in MEASURES[:3]
        for method in PENALIZED
    }
    separated = {pair: word for pair, word in outcomes.items() if word != "not separated"}
    with_how_many = f"with {analysis.datasets} data sets"
    if analysis.replicates == 1:
        with_how_many += ", one for each setting,"
    if not separated:
        return (
            f"No: {with_how_many} Holm's test separates SparseStep from none of lasso, "
            "SCAD and MC+ on the MSE of b, the hit rate and the test MSE."
        )
    better = sum(word == "better" for word in separated.values())
    worse = len(separated) - better
    how = " and ".join(
        f"{word} in {count}" for word, count in (("better", better), ("worse", worse)) if count
    )
    extent = "Yes" if len(separated) == len(outcomes) else "In part"
    return (
        f"{extent}: {with_how_many} Holm's test separates SparseStep from lasso, SCAD and "
        f"MC+ in {len(separated)} of {len(outcomes)} comparisons on the MSE of b, the hit rate and "
        f"the test MSE; it is {how}."
    )
