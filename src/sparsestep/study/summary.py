"""The results in short, as numbers and words that fit into one small JSON file."""

from __future__ import annotations

import math
from dataclasses import asdict
from typing import Any

import pandas as pd

from sparsestep.study.analysis import Analysis, Ranking
from sparsestep.study.claims import Claim
from sparsestep.study.deviations import deviations_of
from sparsestep.study.friedman import Comparison, Friedman
from sparsestep.study.question import Answer

__all__ = ["summary_of"]


def summary_of(analysis: Analysis, claims: tuple[Claim, ...], answer: Answer) -> dict[str, Any]:
    """Everything that is worth quoting.

    Parameters
    ----------
    analysis : Analysis
    claims : tuple of Claim
    answer : Answer

    Returns
    -------
    dict
        Of JSON's types. Apart from what depends on time, the same results give the same summary.
    """
    return {
        "run": analysis.run,
        "datasets": analysis.datasets,
        "replicates": analysis.replicates,
        "claims": [
            {
                "number": claim.number,
                "claim": claim.text,
                "verdict": claim.verdict,
                "parts": [
                    {"paper": part.paper, "ours": part.ours, "holds": part.holds}
                    for part in claim.parts
                ],
                "reasons": list(claim.reasons),
            }
            for claim in claims
        ],
        "open_question": asdict(answer) | {"visible": _short(answer.visible)},
        "measures": {column: _measure(ranking) for column, ranking in analysis.rankings.items()},
        "methods": {
            str(method): {name: _short(value) for name, value in row.items()}
            for method, row in analysis.by_method().iterrows()
        },
        "in_place_of_sparsestep": {
            str(method): _numbers(row)
            for method, row in analysis.in_place_of_the_control().iterrows()
        },
        "cost_in_ols": {str(m): _short(ratio) for m, ratio in analysis.cost_in_ols().items()},
        "deviations": list(deviations_of(analysis)),
    }


def _measure(ranking: Ranking) -> dict[str, Any]:
    """One measure's ranks and tests."""
    numbers: dict[str, Any] = {
        "title": ranking.measure.title,
        "average_rank": _numbers(ranking.average),
        "average_rank_if_only_equal_values_tie": _numbers(ranking.without_ties),
        "best": _numbers(ranking.best),
        "worst": _numbers(ranking.worst),
        "all_tied": ranking.all_tied,
        "friedman": _friedman(ranking.friedman),
        "holm": _holm(ranking.holm),
    }
    if ranking.settings_friedman is not None:
        numbers["by_setting"] = {
            "friedman": _friedman(ranking.settings_friedman),
            "holm": _holm(ranking.settings_holm),
        }
        numbers["replicates_that_separate_alone"] = {
            method: {"better": better, "worse": worse}
            for method, (better, worse) in ranking.separated_singly.items()
        }
    return numbers


def _friedman(test: Friedman) -> dict[str, Any]:
    return {name: _short(value) for name, value in asdict(test).items()}


def _holm(comparisons: tuple[Comparison, ...]) -> dict[str, Any]:
    return {
        comparison.method: {
            "difference": _short(comparison.difference),
            "p": _short(comparison.p),
            "adjusted": _short(comparison.adjusted),
            "sparsestep_is": comparison.outcome(),
        }
        for comparison in comparisons
    }


def _numbers(series: pd.Series[Any]) -> dict[str, Any]:
    return {str(name): _short(value) for name, value in series.items()}


def _short(value: Any) -> Any:
    """Six significant digits, more than any page shows: rounding twice may end elsewhere.

    Whole numbers stay as they are; None stands for what JSON has no number for.
    """
    number = float(value)
    if not math.isfinite(number):
        return None
    return int(number) if number.is_integer() and abs(number) < 1e15 else float(f"{number:.6g}")
