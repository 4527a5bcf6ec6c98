"""Where this study is not the paper's, and what follows from that."""

from __future__ import annotations

from sparsestep.study.analysis import Analysis
from sparsestep.study.ranks import TIE

__all__ = ["deviations_of"]


def deviations_of(analysis: Analysis) -> tuple[str, ...]:
    """The deviations from the paper, in sentences.

    Parameters
    ----------
    analysis : Analysis

    Returns
    -------
    tuple of str
    """
    first = analysis.results.iloc[0]
    rows = f"{first['n_train']} rows train and {first['n_test']} test"
    methods = analysis.by_method()
    notes = [
        (
            f"The data sets are smaller than the paper's: {rows} (20000 and 10000), "
            f"m goes up to {analysis.settings['m'].max()} (500). This is a check of the machinery, "
            "not of the paper."
            if not analysis.full_size
            else f"The data sets have the paper's sizes and settings: {rows}. They are other draws "
            "from the same distributions; the authors' random numbers are not known."
        ),
        "Every method works on moments: the rows are read once, into means and sums of products of "
        "each fold, which determine all fits and errors. The paper's methods read the rows for "
        "every fit.",
        "Time is the processor time of one thread from the moments of the training sets to the "
        "final coefficients, over the number of fits; on an idle machine it is the wall time. "
        "Reading the rows is left out for all; merging folds into training sets is counted for "
        "SparseStep alone, whose estimator does it. Lambdas share work: warm starts for lasso, "
        "SCAD and MC+, one eigenvalue decomposition for ridge, blocks for SparseStep; and lambdas "
        "at which all coefficients are zero cost lasso, SCAD and MC+ nothing. In the paper "
        "no work was shared, so that its times of lasso, SCAD and MC+ are too long, as it says.",
        "Lasso, SCAD and MC+ are computed by coordinate descent on moments run to convergence, not "
        "by scikit-learn, ncvreg and sparsenet. The table of fits shows how far the worst "
        "fit of each method is from its optimality conditions. As in the R packages, SCAD and MC+ "
        "scale the variables within each fit, and MC+ has sparsenet's nine values of a.",
        "Lasso, SCAD and MC+ measure lambda on the loss over 2n, ridge and SparseStep on the loss "
        "itself. "
        + (
            "Each takes the same 101 numbers as its own lambda, as in the paper."
            if analysis.run.get("grid") == "paper"
            else "Here each has a grid of its own, down from its largest useful lambda; the paper "
            "gave all the same numbers."
        ),
        f"Methods within {TIE:g} tie, as in the paper. As this is not transitive, a tie is taken "
        f"with the best method of a group. {_ties(analysis)} Friedman's statistic is not "
        "corrected for ties.",
        "A method is best, or worst, on a data set only if no other ties with it there.",
    ]
    ends = [
        f"{method} on {row['smallest'] + row['largest']:.0f}"
        for method, row in methods.iterrows()
        if row["smallest"] + row["largest"] > 0
    ]
    if ends:
        notes.append(
            f"The best lambda is at an end of the grid for {', '.join(ends)} of "
            f"{analysis.datasets} data sets: there a longer grid might do better."
        )
    if analysis.replicates > 1:
        notes.append(
            f"Each setting has {analysis.replicates} data sets, and the tests count each of the "
            f"{analysis.datasets} as a block, so that they speak of these "
            f"{analysis.datasets // analysis.replicates} settings. The tests with one block per "
            "setting, on ranks of mean ranks, speak of settings like these; they have fewer "
            "blocks but less noise in each."
        )
    return tuple(notes)


def _ties(analysis: Analysis) -> str:
    """How often the rule makes all methods equal."""
    parts = [
        f"{ranking.all_tied} on {ranking.measure.title}" for ranking in analysis.rankings.values()
    ]
    return f"All six tie on so many of the {analysis.datasets} data sets: {', '.join(parts)}."
