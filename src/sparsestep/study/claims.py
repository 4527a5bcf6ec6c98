"""The paper's claims beside these results, reasons for differences, and the open question.

A claim is a list of statements; its verdict follows from the results. A count agrees with the
paper's if the shares of the data sets differ by no more than 1.96 standard errors of the difference
between two independent shares. The sentences are in `words.j2`.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from scipy import stats

from sparsestep.report import environment
from sparsestep.study.methods import CONTROL, METHODS
from sparsestep.study.statistics import MEASURES, TIE, Analysis, Ranking, friedman, holm

PENALIZED = ("Lasso", "SCAD", "MC+")
PAPER_DATASETS = 180
# Up to so many least squares solutions are "about one".
ABOUT = 2.0
# How far from optimal a fit may be and still count as converged.
CONVERGED = 1e-5
# Choices at an end of the grid, and ties of all methods, are mentioned from this share of the data
# sets on.
NOTABLE = 0.1


class Part(NamedTuple):
    """One statement of a claim: the paper's finding, ours, and the methods that it is about."""

    paper: str
    ours: str
    holds: bool
    about: tuple[str, ...] = ()


def claims_of(analysis: Analysis) -> list[dict[str, Any]]:
    """The paper's nine claims beside these results, with facts that may explain a difference."""
    b, hit, y, time = (analysis.rankings[measure.column] for measure in MEASURES)
    compared = [
        _compared(ranking, methods, expected)
        for ranking in (b, hit, y)
        for methods, expected in ((["OLS", "Ridge"], "better"), ([*PENALIZED], "not separated"))
    ]
    costs = [
        Part(f"about 1 at m = {m}", f"{ratio:.2g} at m = {m}", bool(ratio <= ABOUT))
        for m, ratio in analysis.cost_in_ols().items()
    ]
    hits, worst = {CONTROL: 30, "MC+": 26, "SCAD": 11}, {"OLS": 52, "MC+": 32, CONTROL: 6}
    # In the order of the claims in `words.j2`.
    statements: list[tuple[Ranking | str, list[Part]]] = [
        (b, [_first(b, CONTROL), _then(b, "SCAD", "MC+", "Lasso")]),
        (hit, [_first(hit, "MC+"), _then(hit, CONTROL, "SCAD")]),
        (y, [_first(y, CONTROL)]),
        (b, [_most(b, "best", "Ridge"), _most(b, "worst", "OLS")]),
        (hit, [_most(hit, "best", CONTROL), *_shares(hit, "best", hits)]),
        (y, [*_shares(y, "best", {"OLS": 7}), *_shares(y, "worst", worst), _fewest(y, CONTROL)]),
        ("rejection", [_rejects(ranking) for ranking in analysis.rankings.values()]),
        ("comparisons", [*compared, _compared(time, ["SCAD", "MC+"], "better")]),
        ("cost", costs),
    ]
    texts = _said("claims")
    return [
        {
            "number": number,
            "claim": text,
            "verdict": verdict([part.holds for part in parts]),
            "parts": [{"paper": p.paper, "ours": p.ours, "holds": p.holds} for p in parts],
            "reasons": _reasons(analysis, subject, parts),
        }
        for number, (text, (subject, parts)) in enumerate(zip(texts, statements, strict=True), 1)
    ]


def verdict(held: list[bool]) -> str:
    """The verdict on a claim by its statements.

    >>> verdict([True, True]), verdict([True, False]), verdict([False])
    ('reproduced', 'partly reproduced', 'not reproduced')
    """
    return "reproduced" if all(held) else "partly reproduced" if any(held) else "not reproduced"


def _reasons(analysis: Analysis, subject: Ranking | str, parts: list[Part]) -> tuple[str, ...]:
    """Facts that bear on the statements that do not hold; none if all do."""
    differing = [part for part in parts if not part.holds]
    ranking = subject if isinstance(subject, Ranking) else None
    about = {method for part in differing for method in part.about}
    return _said("reasons", analysis, subject, ranking, about) if differing else ()


def gathered(claims: Iterable[dict[str, Any]]) -> dict[str, str]:
    """Each reason of the claims once, with the claims it belongs to: ``Claims 1, 2``."""
    numbers: dict[str, list[str]] = {}
    for claim in claims:
        for reason in claim["reasons"]:
            numbers.setdefault(reason, []).append(str(claim["number"]))
    return {
        reason: f"Claim{'s' if len(found) > 1 else ''} {', '.join(found)}"
        for reason, found in numbers.items()
    }


# -- the statements ----------------------------------------------------------------------------


def _first(ranking: Ranking, method: str) -> Part:
    """Whether a method has the best average rank alone."""
    leader, second = ranking.order[:2]
    holds = leader == method and bool(ranking.average[leader] < ranking.average[second])
    return Part(f"{method} first", f"{_averages(ranking, [leader])} first", holds, (method, leader))


def _then(ranking: Ranking, *methods: str) -> Part:
    """Whether the methods that follow the leader stand in this order."""
    found = ranking.order[1 : 1 + len(methods)]
    paper, ours = f"then {', '.join(methods)}", f"then {_averages(ranking, found)}"
    return Part(paper, ours, found == list(methods), (*methods, *found))


def _averages(ranking: Ranking, methods: list[str]) -> str:
    """Methods with their average ranks."""
    return ", ".join(f"{method} {ranking.average[method]:.2f}" for method in methods)


def _most(ranking: Ranking, word: str, method: str) -> Part:
    """Whether a method is more often than any other the single best, or worst."""
    counts = ranking.table[word].sort_values(ascending=False, kind="stable")
    most = list(counts.index[counts == counts.iloc[0]])
    listed = ", ".join(f"{name} {count}" for name, count in counts.items())
    ours = f"{' and '.join(most)} most often {word} ({listed})"
    return Part(f"{method} most often {word}", ours, most == [method], (method, *most))


def _fewest(ranking: Ranking, method: str) -> Part:
    """Whether a method is the worst less often than any other."""
    counts, words = ranking.table["worst"], "worst the fewest times"
    fewest = list(counts.index[counts == counts.min()])
    ours = f"{' and '.join(fewest)} {words} ({counts.min()})"
    return Part(f"{method} {words}", ours, fewest == [method], (method, *fewest))


def _shares(ranking: Ranking, word: str, paper: dict[str, int]) -> Iterable[Part]:
    """Whether shares of the data sets differ from the paper's by no more than chance allows."""
    n, counts = len(ranking.ranks), ranking.table[word]
    for method, theirs in paper.items():
        ours = int(counts[method])
        pooled = (ours + theirs) / (n + PAPER_DATASETS)
        error = np.sqrt(pooled * (1 - pooled) * (1 / n + 1 / PAPER_DATASETS))
        holds = bool(abs(ours / n - theirs / PAPER_DATASETS) <= 1.96 * error)
        of_180 = f" ({PAPER_DATASETS * ours / n:.0f} of every 180)" if n != PAPER_DATASETS else ""
        said = f"{method} {word} on"
        paper_said = f"{said} {theirs} of {PAPER_DATASETS}"
        yield Part(paper_said, f"{said} {ours} of {n}{of_180}", holds, (method,))


def _rejects(ranking: Ranking) -> Part:
    """Whether the F-test rejects equal ranks."""
    test, title = friedman(ranking.ranks), ranking.measure.title
    ours = f"{title}: F = {test.f:.1f}, p {format_p(test.f_p)}"
    return Part(f"{title}: p < 0.0001", ours, bool(test.f_p < 1e-4))


def _compared(ranking: Ranking, methods: list[str], expected: str) -> Part:
    """Whether Holm's test has the expected outcome against all of these methods."""
    tests, title = ranking.holm.loc[methods], ranking.measure.title
    others = tests.index[tests["control_is"] != expected]
    paper = f"{title}: {_PHRASES[expected]} {', '.join(methods)}"
    return Part(paper, f"{title}: {describe(tests)}", len(others) == 0, tuple(others))


_PHRASES = {
    "better": "better than",
    "worse": "worse than",
    "not separated": "not separated from",
}


def describe(tests: pd.DataFrame) -> str:
    """The outcome of Holm's test of the control against some methods, in words."""
    found = {
        phrase: tests.loc[tests["control_is"] == outcome, "adjusted"]
        for outcome, phrase in _PHRASES.items()
    }
    return "; ".join(
        f"{phrase} " + ", ".join(f"{m} (p\u00a0{format_p(p)})" for m, p in adjusted.items())
        for phrase, adjusted in found.items()
        if len(adjusted)
    )


def format_p(p: float) -> str:
    """A p-value after its letter: ``= 0.012`` or ``< 0.0001``, on one line."""
    return "<\u00a00.0001" if p < 1e-4 else f"=\u00a0{p:.2g}"


# -- the open question, and where this study differs from the paper's --------------------------


def answer_of(analysis: Analysis) -> dict[str, Any]:
    """What Holm's test says of SparseStep against lasso, SCAD and MC+.

    The paper did not separate them: for lack of a difference, or of data sets? `measures` and
    `by_setting` hold the words for each measure's title, with a block for each data set and for
    each setting. A difference of `visible` in average rank is significant at 5 % whatever the other
    comparisons.
    """
    k, rivals = len(METHODS), [*PENALIZED]
    rankings = {ranking.measure.title: ranking for ranking in analysis.rankings.values()}
    three = [analysis.rankings[measure.column] for measure in MEASURES[:3]]
    outcomes = [ranking.control_is(method) for ranking in three for method in PENALIZED]
    return {
        "short": _said("answer", analysis, outcomes)[0],
        "measures": {title: describe(r.holm.loc[rivals]) for title, r in rankings.items()},
        "by_setting": {
            title: describe(holm(r.blocks, r.control).loc[rivals])
            for title, r in rankings.items()
            if analysis.replicates > 1
        },
        # Holm's strictest threshold, that of the smallest of k - 1 p-values.
        "visible": float(
            stats.norm.isf(0.025 / (k - 1)) * np.sqrt(k * (k + 1) / (6 * analysis.datasets))
        ),
    }


def deviations_of(analysis: Analysis) -> tuple[str, ...]:
    """Where this study differs from the paper's, and the consequences."""
    return _said("deviations", analysis)


def _said(what: str, *values: Any) -> tuple[str, ...]:
    """The lines of a part of `words.j2`."""
    known = {"converged": CONVERGED, "notable": NOTABLE, "tie": TIE, "penalized": PENALIZED}
    words = environment(Path(__file__).parent).get_template("words.j2").make_module(known)
    return tuple(getattr(words, what)(*values).splitlines())
