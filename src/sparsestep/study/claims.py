"""The paper's claims beside these results, reasons for differences, and the open question.

A claim is a list of statements; its verdict follows from the results. A count agrees with the
paper's if the shares of the data sets differ by no more than 1.96 standard errors of the difference
between two independent shares.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy import stats

from sparsestep.study.methods import CONTROL, METHODS
from sparsestep.study.statistics import MEASURES, TIE, Analysis, Comparison, Ranking, level_name

PENALIZED = ("Lasso", "SCAD", "MC+")
PAPER_DATASETS = 180
# "About" the cost of one least squares solution.
ABOUT = 2.0
# How far from optimal a fit may be and still count as converged.
CONVERGED = 1e-5
# Choices at an end of the grid, and ties of all methods, are mentioned from this share of the data
# sets on.
NOTABLE = 0.1


@dataclass(frozen=True)
class Part:
    """One statement of a claim: the paper's finding, ours, and the methods that it is about."""

    paper: str
    ours: str
    holds: bool
    about: tuple[str, ...] = ()


@dataclass(frozen=True)
class Claim:
    """A claim of the paper beside these results, with facts that may explain a difference.

    >>> Claim(1, "A wins, B loses", (Part("A", "A", True), Part("B", "C", False)), ()).verdict
    'partly reproduced'
    """

    number: int
    text: str
    parts: tuple[Part, ...]
    reasons: tuple[str, ...]

    @property
    def verdict(self) -> str:
        """``"reproduced"``, ``"partly reproduced"`` or ``"not reproduced"``."""
        held = [part.holds for part in self.parts]
        if all(held):
            return "reproduced"
        return "partly reproduced" if any(held) else "not reproduced"


def claims_of(analysis: Analysis) -> tuple[Claim, ...]:
    """Judge the paper's nine claims by these results."""
    mse_b, hit_rate, mse_y, time = (analysis.rankings[measure.column] for measure in MEASURES)
    n = analysis.datasets
    claims: list[tuple[str, list[Part], Ranking | str]] = [
        (
            "SparseStep has the best average rank on the MSE of b, followed by SCAD, MC+ and "
            "lasso.",
            [_first(mse_b, "SparseStep"), _order(mse_b, "SCAD", "MC+", "Lasso")],
            mse_b,
        ),
        (
            "MC+ has the best average rank on the hit rate, then SparseStep, then SCAD.",
            [_first(hit_rate, "MC+"), _order(hit_rate, "SparseStep", "SCAD")],
            hit_rate,
        ),
        (
            "SparseStep has the best average rank on the test MSE.",
            [_first(mse_y, "SparseStep")],
            mse_y,
        ),
        (
            "Ridge is most often the single best on the MSE of b; OLS most often the worst.",
            [_most(mse_b.best, "Ridge", "best"), _most(mse_b.worst, "OLS", "worst")],
            mse_b,
        ),
        (
            "SparseStep has the highest hit rate on 30 of 180 data sets, MC+ on 26, SCAD on 11.",
            [
                _most(hit_rate.best, "SparseStep", "best"),
                *(
                    _share(hit_rate.best, method, paper, "best", n)
                    for method, paper in (("SparseStep", 30), ("MC+", 26), ("SCAD", 11))
                ),
            ],
            hit_rate,
        ),
        (
            "On the test MSE OLS is best on 7 and worst on 52; MC+ is worst on 32; SparseStep is "
            "worst on 6, the fewest.",
            [
                _share(mse_y.best, "OLS", 7, "best", n),
                *(
                    _share(mse_y.worst, method, paper, "worst", n)
                    for method, paper in (("OLS", 52), ("MC+", 32), ("SparseStep", 6))
                ),
                _fewest(mse_y.worst, "SparseStep"),
            ],
            mse_y,
        ),
        (
            "The F-test rejects equal ranks on all four measures, p < 0.0001.",
            [_rejects(ranking) for ranking in analysis.rankings.values()],
            "rejection",
        ),
        (
            "Holm at 5 %: SparseStep beats OLS and ridge on the first three measures, but not "
            "SCAD, MC+ or lasso. On time it beats SCAD and MC+.",
            [
                *(
                    _outcomes(ranking, methods, expected)
                    for ranking in (mse_b, hit_rate, mse_y)
                    for methods, expected in (
                        (("OLS", "Ridge"), "better"),
                        (PENALIZED, "not separated"),
                    )
                ),
                _outcomes(time, ("SCAD", "MC+"), "better"),
            ],
            "comparisons",
        ),
        (
            "One lambda of SparseStep costs about one OLS solution.",
            [
                Part(f"about 1 at m = {m}", f"{ratio:.2g} at m = {m}", bool(ratio <= ABOUT))
                for m, ratio in analysis.cost_in_ols().items()
            ],
            "cost",
        ),
    ]
    return tuple(
        Claim(number, text, tuple(parts), tuple(_reasons(analysis, parts, subject)))
        for number, (text, parts, subject) in enumerate(claims, start=1)
    )


def gathered(reasons: Iterable[tuple[int, Sequence[str]]]) -> dict[str, str]:
    """Each reason once, with the claims it belongs to: ``Claims 1, 2``."""
    numbers: dict[str, list[str]] = {}
    for number, said in reasons:
        for reason in said:
            numbers.setdefault(reason, []).append(str(number))
    return {
        reason: f"Claim{'s' if len(found) > 1 else ''} {', '.join(found)}"
        for reason, found in numbers.items()
    }


# -- the statements ----------------------------------------------------------------------------


def _first(ranking: Ranking, method: str) -> Part:
    """Whether a method has the best average rank alone."""
    leader, second = ranking.order[:2]
    holds = leader == method and bool(ranking.average[leader] < ranking.average[second])
    ours = _with_averages(ranking, [leader]) + " first"
    return Part(f"{method} first", ours, holds, (method, leader))


def _order(ranking: Ranking, *methods: str) -> Part:
    """Whether the methods that follow the leader stand in this order."""
    found = ranking.order[1 : 1 + len(methods)]
    return Part(
        "then " + ", ".join(methods),
        "then " + _with_averages(ranking, found),
        found == list(methods),
        (*methods, *found),
    )


def _with_averages(ranking: Ranking, methods: Iterable[str]) -> str:
    """Methods with their average ranks."""
    return ", ".join(f"{method} {ranking.average[method]:.2f}" for method in methods)


def _most(counts: pd.Series[int], method: str, word: str) -> Part:
    """Whether a method is more often than any other the single best, or worst."""
    ordered = counts.sort_values(ascending=False, kind="stable")
    listed = ", ".join(f"{name} {count}" for name, count in ordered.items())
    most = [str(name) for name in ordered.index[ordered == ordered.iloc[0]]]
    return Part(
        f"{method} most often {word}",
        f"{' and '.join(most)} most often {word} ({listed})",
        most == [method],
        (method, *most),
    )


def _fewest(counts: pd.Series[int], method: str) -> Part:
    """Whether a method is the worst less often than any other."""
    fewest = [str(name) for name in counts.index[counts == counts.min()]]
    return Part(
        f"{method} worst the fewest times",
        f"{' and '.join(fewest)} worst the fewest times ({counts.min()})",
        fewest == [method],
        (method, *fewest),
    )


def _share(counts: pd.Series[int], method: str, paper: int, word: str, n: int) -> Part:
    """Whether a share of the n data sets differs from the paper's by no more than chance allows."""
    count = int(counts[method])
    pooled = (count + paper) / (n + PAPER_DATASETS)
    error = np.sqrt(pooled * (1 - pooled) * (1 / n + 1 / PAPER_DATASETS))
    return Part(
        f"{method} {word} on {paper} of {PAPER_DATASETS}",
        f"{method} {word} on {count} of {n}"
        + ("" if n == PAPER_DATASETS else f" ({PAPER_DATASETS * count / n:.0f} of every 180)"),
        bool(abs(count / n - paper / PAPER_DATASETS) <= 1.96 * error),
        (method,),
    )


def _rejects(ranking: Ranking) -> Part:
    """Whether the F-test rejects equal ranks."""
    test, title = ranking.friedman, ranking.measure.title
    return Part(
        f"{title}: p < 0.0001",
        f"{title}: F = {test.f:.1f}, p {format_p(test.f_p)}",
        test.f_p < 1e-4,
    )


def _outcomes(ranking: Ranking, methods: Sequence[str], expected: str) -> Part:
    """Whether Holm's test has the expected outcome against all of these methods."""
    comparisons = [ranking.against(method) for method in methods]
    return Part(
        f"{ranking.measure.title}: {_PHRASES[expected]} {', '.join(methods)}",
        f"{ranking.measure.title}: {describe(comparisons)}",
        all(comparison.outcome() == expected for comparison in comparisons),
        tuple(c.method for c in comparisons if c.outcome() != expected),
    )


_PHRASES = {
    "better": "better than",
    "worse": "worse than",
    "not separated": "not separated from",
}


def describe(comparisons: Sequence[Comparison]) -> str:
    """The outcome of Holm's test of the control against some methods, in words."""
    methods: dict[str, list[str]] = {outcome: [] for outcome in _PHRASES}
    for comparison in comparisons:
        method = f"{comparison.method} (p\u00a0{format_p(comparison.adjusted)})"
        methods[comparison.outcome()].append(method)
    return "; ".join(
        f"{_PHRASES[outcome]} {', '.join(some)}" for outcome, some in methods.items() if some
    )


def format_p(p: float) -> str:
    """A p-value after its letter: ``= 0.012`` or ``< 0.0001``, on one line."""
    return "<\u00a00.0001" if p < 1e-4 else f"=\u00a0{p:.2g}"


# -- facts that may explain a difference -------------------------------------------------------


def _reasons(analysis: Analysis, parts: Sequence[Part], subject: Ranking | str) -> list[str]:
    """Facts that bear on the statements that do not hold; none if all do."""
    differing = [part for part in parts if not part.holds]
    if not differing or subject == "rejection":
        return []
    if subject == "cost":
        return [
            "Both are timed on moments: forming X'X, most of the work of one least squares "
            "solution, is done once for all methods and left out."
        ]
    about = {method for part in differing for method in part.about}
    reasons = []
    if not analysis.full_size:
        rows, m = analysis.results["n_train"].max(), analysis.settings["m"].max()
        reasons.append(
            f"This study has {rows} rows to learn from and m up to {m}; the paper's 20000 and 500."
        )
    worst = analysis.by_method().loc[["SCAD", "MC+"], "optimality"].max()
    if {"SCAD", "MC+"} & about and as_in_2015(analysis):
        reasons.append(
            f"SCAD and MC+ are run as in 2015 here, and stop up to {worst:.0e} from their "
            "optimality conditions: how far they converge does not explain this difference."
        )
    elif {"SCAD", "MC+"} & about and worst <= CONVERGED:
        reasons.append(
            f"SCAD and MC+ are converged here, to {worst:.0e}, which they were not in the paper. "
            "That explains a part: on 180 data sets run as in 2015 (--rivals 2015) they were worse "
            "with 500 equally correlated variables, and SparseStep came nearer, though first on "
            "neither error."
        )
    if isinstance(subject, Ranking):
        return reasons + _reasons_for_ranks(analysis, subject, about)
    return reasons + _reasons_for_comparisons(analysis)


def _reasons_for_ranks(analysis: Analysis, ranking: Ranking, about: Collection[str]) -> list[str]:
    """Facts that bear on the ranks of some methods on one measure."""
    n, title, reasons = analysis.datasets, ranking.measure.title, []
    if ranking.all_tied >= NOTABLE * n:
        order = ranking.without_ties.sort_values(kind="stable").index
        reasons.append(
            f"All six methods tie, within {TIE:g}, on {ranking.all_tied} of {n} data sets; if only "
            f"equal values tied, the order of average ranks would be {', '.join(order)}."
        )
    if CONTROL in about:
        first = [
            level_name(factor, level)
            for (factor, level), row in analysis.levels(ranking).iterrows()
            if row.idxmin() == CONTROL
        ]
        where = f"at {', '.join(first)} only" if first else "at no single level of the design"
        reasons.append(f"On the {title} SparseStep has the best average rank {where}.")
    return reasons + [
        f"The best lambda of {method} is the {end} of its grid on {row[end]:.0f} of {n} data sets."
        for method, row in analysis.by_method().iterrows()
        for end in ("smallest", "largest")
        if method in about and row[end] >= NOTABLE * n
    ]


def _reasons_for_comparisons(analysis: Analysis) -> list[str]:
    """Facts that bear on the power of Holm's test."""
    reasons = []
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
    slower = any(time.against(method).outcome() != "better" for method in ("SCAD", "MC+"))
    if slower and not as_in_2015(analysis):
        whole = analysis.by_method()["whole"]
        reasons.append(
            "Lasso, SCAD and MC+ follow paths here, which the paper had to forgo, and lambdas at "
            "which all their coefficients are zero cost them nothing. A whole cross-validation "
            f"takes SparseStep {whole[CONTROL]:.2g} s on average, SCAD {whole['SCAD']:.2g} s and "
            f"MC+ with its values of a {whole['MC+']:.2g} s."
        )
    return reasons


def as_in_2015(analysis: Analysis) -> bool:
    """Whether SCAD and MC+ were run by the algorithms of the paper's time."""
    return analysis.run.get("rivals") == "2015"


# -- the open question -------------------------------------------------------------------------


@dataclass(frozen=True)
class Answer:
    """What Holm's test says of SparseStep against lasso, SCAD and MC+.

    The paper did not separate them: for lack of a difference, or of data sets? `measures` and
    `by_setting` hold the words for each measure's title, with a block for each data set and for
    each setting. A difference of `visible` in average rank is significant at 5 % whatever the other
    comparisons.
    """

    short: str
    measures: dict[str, str]
    by_setting: dict[str, str]
    visible: float


def answer_of(analysis: Analysis) -> Answer:
    """Answer the open question."""
    k, n = len(METHODS), analysis.datasets

    def said(comparisons: Iterable[Comparison]) -> str:
        return describe([c for c in comparisons if c.method in PENALIZED])

    rankings = {ranking.measure.title: ranking for ranking in analysis.rankings.values()}
    return Answer(
        short=_short_answer(analysis),
        measures={title: said(r.holm) for title, r in rankings.items()},
        by_setting={t: said(r.settings_holm) for t, r in rankings.items() if r.settings_holm},
        # Holm's strictest threshold, that of the smallest of k - 1 p-values.
        visible=float(stats.norm.isf(0.025 / (k - 1)) * np.sqrt(k * (k + 1) / (6 * n))),
    )


def _short_answer(analysis: Analysis) -> str:
    """Yes, no, or where: on the three measures on which the paper saw no difference."""
    outcomes = [
        analysis.rankings[measure.column].against(method).outcome()
        for measure in MEASURES[:3]
        for method in PENALIZED
    ]
    better, worse = outcomes.count("better"), outcomes.count("worse")
    with_how_many = f"with {analysis.datasets} data sets"
    if analysis.replicates == 1:
        with_how_many += ", one for each setting,"
    if not better + worse:
        return (
            f"No: {with_how_many} Holm's test separates SparseStep from none of lasso, "
            "SCAD and MC+ on the MSE of b, the hit rate and the test MSE."
        )
    counts = {"better": better, "worse": worse}
    how = " and ".join(f"{word} in {count}" for word, count in counts.items() if count)
    extent = "Yes" if better + worse == len(outcomes) else "In part"
    return (
        f"{extent}: {with_how_many} Holm's test separates SparseStep from lasso, SCAD and "
        f"MC+ in {better + worse} of {len(outcomes)} comparisons on the MSE of b, the hit rate and "
        f"the test MSE; it is {how}."
    )


# -- where this study differs from the paper's -------------------------------------------------


def deviations_of(analysis: Analysis) -> tuple[str, ...]:
    """Where this study differs from the paper's, and the consequences."""
    first = analysis.results.iloc[0]
    rows = f"{first['n_train']} rows train and {first['n_test']} test"
    worst = analysis.by_method()["optimality"]
    ties = [f"{r.all_tied} on {r.measure.title}" for r in analysis.rankings.values()]
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
        "SparseStep alone, whose estimator does it. Lambdas share work: warm starts for "
        + ("lasso" if as_in_2015(analysis) else "lasso, SCAD and MC+")
        + ", one eigenvalue decomposition for ridge, blocks for SparseStep; and lambdas "
        "at which all coefficients are zero cost lasso, SCAD and MC+ nothing. In the paper "
        "no work was shared, so that its times of lasso, SCAD and MC+ are too long, as it says.",
        "SCAD and MC+ are computed on moments by the algorithms of ncvreg 3.4 and sparsenet, "
        "written anew from the papers on them: variables in a fixed order, active sets, an end "
        "when no coefficient changes by 0.1 % of itself in a sweep, or after 1000 sweeps, and a "
        "start from zero at each lambda. For MC+ sparsenet's own cross-validation chooses a, and "
        "lambda is calibrated to the degrees of freedom of the lasso, with the variance of y as "
        "that of the noise. So they are not converged: the worst fit of SCAD is "
        f"{worst['SCAD']:.0e} from its optimality conditions, that of MC+ {worst['MC+']:.0e}. The "
        "lasso is converged."
        if as_in_2015(analysis)
        else "Lasso, SCAD and MC+ are computed by coordinate descent on moments run to "
        "convergence, not by scikit-learn, ncvreg and sparsenet. The table of fits shows how far "
        "the worst fit of each method is from its optimality conditions. As in the R packages, "
        "SCAD and MC+ scale the variables within each fit, and MC+ has sparsenet's nine values of "
        "a.",
        "Lasso, SCAD and MC+ measure lambda on the loss over 2n, ridge and SparseStep on the loss "
        "itself. "
        + (
            "Each takes the same 101 numbers as its own lambda, as in the paper."
            if analysis.run.get("grid") == "paper"
            else "Here each has a grid of its own, down from its largest useful lambda; the paper "
            "gave all the same numbers."
        ),
        f"Methods within {TIE:g} tie, as in the paper. As this is not transitive, a tie is taken "
        f"with the best method of a group. All six tie on so many of the {analysis.datasets} data "
        f"sets: {', '.join(ties)}. Friedman's statistic is not corrected for ties.",
        "A method is best, or worst, on a data set only if no other ties with it there.",
    ]
    ends = [
        f"{method} on {row['smallest'] + row['largest']:.0f}"
        for method, row in analysis.by_method().iterrows()
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
