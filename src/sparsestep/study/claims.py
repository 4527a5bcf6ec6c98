"""The paper's claims, each with its figure, ours, and a verdict that follows from the results."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from sparsestep.study.analysis import Analysis, Ranking
from sparsestep.study.friedman import Comparison
from sparsestep.study.ranks import MEASURES
from sparsestep.study.reasons import (
    PENALIZED,
    reasons_for_cost,
    reasons_for_ranks,
    reasons_for_tests,
)

__all__ = ["Claim", "Part", "claims_of", "describe", "format_p", "gathered"]

PAPER_DATASETS = 180
# "About" the cost of one least squares solution.
ABOUT = 2.0
_HOLM, _COST = 8, 9


@dataclass(frozen=True)
class Part:
    """One statement of a claim.

    Parameters
    ----------
    paper, ours : str
        What the paper found, and what these results show.
    holds : bool
        Whether they agree.
    about : tuple of str, optional
        The methods it speaks of.
    """

    paper: str
    ours: str
    holds: bool
    about: tuple[str, ...] = ()


@dataclass(frozen=True)
class Claim:
    """A claim of the paper beside these results.

    Parameters
    ----------
    number : int
    text : str
        The claim.
    parts : tuple of Part
        Its statements, at least one.
    reasons : tuple of str
        Facts of these results that may explain a difference; empty if the claim is reproduced.

    Examples
    --------
    >>> from sparsestep.study.claims import Claim, Part
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
    """Judge the paper's nine claims by these results.

    A count agrees with the paper's if the shares of the data sets differ by no more than 1.96
    standard errors of the difference between two independent shares.

    Parameters
    ----------
    analysis : Analysis

    Returns
    -------
    tuple of Claim
    """
    mse_b, hit_rate, mse_y, _ = (analysis.rankings[measure.column] for measure in MEASURES)
    drafts: list[tuple[str, list[Part], Ranking | None]] = [
        (
            "SparseStep has the best average rank on the MSE of b, followed by SCAD, MC+ and "
            "lasso.",
            [_first(mse_b, "SparseStep"), _order(mse_b, 1, ("SCAD", "MC+", "Lasso"))],
            mse_b,
        ),
        (
            "MC+ has the best average rank on the hit rate, then SparseStep, then SCAD.",
            [_first(hit_rate, "MC+"), _order(hit_rate, 1, ("SparseStep", "SCAD"))],
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
                    _share(analysis, hit_rate.best, method, count, "best")
                    for method, count in (("SparseStep", 30), ("MC+", 26), ("SCAD", 11))
                ),
            ],
            hit_rate,
        ),
        (
            "On the test MSE OLS is best on 7 and worst on 52; MC+ is worst on 32; SparseStep is "
            "worst on 6, the fewest.",
            [
                _share(analysis, mse_y.best, "OLS", 7, "best"),
                _share(analysis, mse_y.worst, "OLS", 52, "worst"),
                _share(analysis, mse_y.worst, "MC+", 32, "worst"),
                _share(analysis, mse_y.worst, "SparseStep", 6, "worst"),
                _fewest(mse_y.worst, "SparseStep"),
            ],
            mse_y,
        ),
        (
            "The F-test rejects equal ranks on all four measures, p < 0.0001.",
            [_rejects(ranking) for ranking in analysis.rankings.values()],
            None,
        ),
        (
            "Holm at 5 %: SparseStep beats OLS and ridge on the first three measures, but not "
            "SCAD, MC+ or lasso. On time it beats SCAD and MC+.",
            _holm_parts(analysis),
            None,
        ),
        (
            "One lambda of SparseStep costs about one OLS solution.",
            [
                Part(f"about 1 at m = {m}", f"{ratio:.2g} at m = {m}", bool(ratio <= ABOUT))
                for m, ratio in analysis.cost_in_ols().items()
            ],
            None,
        ),
    ]
    claims = []
    for number, (text, parts, ranking) in enumerate(drafts, start=1):
        differing = [part for part in parts if not part.holds]
        about = {method for part in differing for method in part.about}
        reasons: list[str] = []
        if differing and ranking is not None:
            reasons = reasons_for_ranks(analysis, ranking, about)
        elif differing and number == _HOLM:
            reasons = reasons_for_tests(analysis, about)
        elif differing and number == _COST:
            reasons = reasons_for_cost()
        claims.append(Claim(number, text, tuple(parts), tuple(reasons)))
    return tuple(claims)


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


def _first(ranking: Ranking, method: str) -> Part:
    """Whether a method has the best average rank, by more than nothing."""
    leader, second = ranking.order[:2]
    holds = leader == method and bool(ranking.average[leader] < ranking.average[second])
    ours = _with_averages(ranking, ranking.order[:1]) + " first"
    return Part(f"{method} first", ours, holds, (method, leader))


def _order(ranking: Ranking, start: int, methods: Sequence[str]) -> Part:
    """Whether the methods that follow the leaders stand in this order."""
    found = ranking.order[start : start + len(methods)]
    return Part(
        "then " + ", ".join(methods),
        "then " + _with_averages(ranking, found),
        found == list(methods),
        (*methods, *found),
    )


def _with_averages(ranking: Ranking, methods: Iterable[str]) -> str:
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
    """Whether no method is the worst less often."""
    fewest = [str(name) for name in counts.index[counts == counts.min()]]
    return Part(
        f"{method} worst the fewest times",
        f"{' and '.join(fewest)} worst the fewest times ({counts.min()})",
        fewest == [method],
        (method, *fewest),
    )


def _share(analysis: Analysis, counts: pd.Series[int], method: str, paper: int, word: str) -> Part:
    """Whether a share of the data sets differs from the paper's by no more than chance allows."""
    count, n = int(counts[method]), analysis.datasets
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


def format_p(p: float) -> str:
    """A p-value after its letter: ``= 0.012`` or ``< 0.0001``, on one line."""
    return "<\u00a00.0001" if p < 1e-4 else f"=\u00a0{p:.2g}"


def _holm_parts(analysis: Analysis) -> list[Part]:
    """Claim 8, measure by measure."""
    parts = []
    for measure in MEASURES[:3]:
        ranking = analysis.rankings[measure.column]
        parts.append(_outcomes(ranking, ("OLS", "Ridge"), "better"))
        parts.append(_outcomes(ranking, PENALIZED, "not separated"))
    parts.append(_outcomes(analysis.rankings["time"], ("SCAD", "MC+"), "better"))
    return parts


def _outcomes(ranking: Ranking, methods: Sequence[str], expected: str) -> Part:
    """Whether Holm's test has the expected outcome against all of these methods."""
    comparisons = [ranking.against(method) for method in methods]
    return Part(
        f"{ranking.measure.title}: {_phrase(expected)} {', '.join(methods)}",
        f"{ranking.measure.title}: {describe(comparisons)}",
        all(comparison.outcome() == expected for comparison in comparisons),
        tuple(c.method for c in comparisons if c.outcome() != expected),
    )


def _phrase(outcome: str) -> str:
    return {
        "better": "better than",
        "worse": "worse than",
        "not separated": "not separated from",
    }[outcome]


def describe(comparisons: Sequence[Comparison]) -> str:
    """What Holm's test says of SparseStep against some methods, in words."""
    said = []
    for outcome in ("better", "worse", "not separated"):
        these = [
            f"{comparison.method} (p\u00a0{format_p(comparison.adjusted)})"
            for comparison in comparisons
            if comparison.outcome() == outcome
        ]
        if these:
            said.append(f"{_phrase(outcome)} {', '.join(these)}")
    return "; ".join(said)
