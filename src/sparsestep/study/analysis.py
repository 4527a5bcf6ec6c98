"""What the results say: ranks, tests, bests and worsts, and where a rule or a grid bites."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from sparsestep.study.friedman import (
    Comparison,
    Friedman,
    friedman,
    holm,
    ranks_within_settings,
)
from sparsestep.study.ranks import MEASURES, SETTING, Measure, ranks_of, settings_of
from sparsestep.study.results import CORRELATIONS, EXTRAS, METHODS

__all__ = ["CONTROL", "Analysis", "Ranking", "analyse", "level_name"]

CONTROL = "SparseStep"


@dataclass(frozen=True)
class Ranking:
    """The six methods on one measure.

    Parameters
    ----------
    measure : Measure
    ranks : DataFrame
        One row per data set, one column per method.
    average : Series
        Average rank of each method.
    without_ties : Series
        The same if only equal values tie.
    best, worst : Series
        On how many data sets a method is alone at rank 1, or alone at the last rank.
    all_tied : int
        On how many data sets all methods tie.
    friedman : Friedman
    holm : tuple of Comparison
        Every other method against SparseStep.
    settings_friedman : Friedman or None
    settings_holm : tuple of Comparison
        The same tests with one block per setting; None and empty without replicates.
    separated_singly : dict of str to (int, int)
        In how many of the replicates, each tested alone, Holm finds SparseStep better than the
        method, and worse; empty without replicates.
    """

    measure: Measure
    ranks: pd.DataFrame
    average: pd.Series[float]
    without_ties: pd.Series[float]
    best: pd.Series[int]
    worst: pd.Series[int]
    all_tied: int
    friedman: Friedman
    holm: tuple[Comparison, ...]
    settings_friedman: Friedman | None
    settings_holm: tuple[Comparison, ...]
    separated_singly: dict[str, tuple[int, int]]

    @property
    def order(self) -> list[str]:
        """The methods by average rank, best first."""
        return list(self.average.sort_values(kind="stable").index)

    def against(self, method: str) -> Comparison:
        """SparseStep compared with a method.

        Parameters
        ----------
        method : str

        Returns
        -------
        Comparison
        """
        return next(comparison for comparison in self.holm if comparison.method == method)


@dataclass(frozen=True)
class Analysis:
    """Everything that tables, claims and pictures are made from.

    Parameters
    ----------
    results : DataFrame
        The study's results.
    run : dict
        What is known about the run.
    settings : DataFrame
        The setting of each data set.
    rankings : dict of str to Ranking
        By the measure's column.
    """

    results: pd.DataFrame
    run: dict[str, Any]
    settings: pd.DataFrame
    rankings: dict[str, Ranking]

    @property
    def datasets(self) -> int:
        """Number of data sets."""
        return len(self.settings)

    @property
    def replicates(self) -> int:
        """Number of data sets of each setting."""
        return int(self.settings["replicate"].nunique())

    @property
    def full_size(self) -> bool:
        """Whether the data sets are as large as the paper's."""
        rows, m = self.results["n_train"].min(), self.settings["m"].max()
        return bool(rows >= 20_000 and m >= 500)

    def levels_of(self, factor: str) -> list[Any]:
        """The levels of a factor that the study has, in order.

        Parameters
        ----------
        factor : {"m", "sparsity", "snr", "correlation"}

        Returns
        -------
        list
        """
        found = set(self.settings[factor])
        if factor == "correlation":
            return [level for level in CORRELATIONS if level in found]
        return sorted(found)

    def levels(self, ranking: Ranking) -> pd.DataFrame:
        """Average ranks at each level of m, sparsity, signal-to-noise ratio and correlation.

        Parameters
        ----------
        ranking : Ranking

        Returns
        -------
        DataFrame
            One row for each factor and level, one column per method.
        """
        tables = {
            name: ranking.ranks.groupby(self.settings[name]).mean().reindex(self.levels_of(name))
            for name in SETTING
        }
        return pd.concat(tables, names=["factor", "level"])

    def by_method(self) -> pd.DataFrame:
        """How each method's fits went: the ends of the grid, convergence, and cost.

        Returns
        -------
        DataFrame
            One row per method, with the columns smallest and largest (data sets on which the chosen
            lambda is that end of the grid), optimality (the worst; NaN for OLS), time (mean seconds
            per fit), fits (per data set) and whole (mean seconds of all fits of a data set).
        """
        groups = self.results.groupby("method", sort=False)
        at_end = self.results["at_end"]
        return pd.DataFrame(
            {
                "smallest": (at_end == "smallest").groupby(self.results["method"]).sum(),
                "largest": (at_end == "largest").groupby(self.results["method"]).sum(),
                "optimality": groups["optimality"].max(),
                "time": groups["time"].mean(),
                "fits": groups["n_fits"].median().astype(int),
                "whole": (self.results["time"] * self.results["n_fits"])
                .groupby(self.results["method"])
                .mean(),
            }
        ).reindex([method for method in (*METHODS, *EXTRAS) if method in groups.groups])

    def in_place_of_the_control(self) -> pd.DataFrame:
        """Average rank of each extra method when it competes in SparseStep's place.

        Returns
        -------
        DataFrame
            One row per extra method that was run, one column per measure.
        """
        extras = [method for method in EXTRAS if method in set(self.results["method"])]
        rivals = [method for method in METHODS if method != CONTROL]
        return pd.DataFrame(
            {
                measure.column: [
                    ranks_of(self.results, measure, [*rivals, extra])[extra].mean()
                    for extra in extras
                ]
                for measure in MEASURES
            },
            index=extras,
        )

    def cost_in_ols(self) -> pd.Series[float]:
        """Cost of one fit of SparseStep over one of OLS, as a geometric mean for each m.

        Returns
        -------
        Series
            By m.
        """
        time = self.results.pivot(index="dataset", columns="method", values="time")
        logs = np.log(time[CONTROL] / time["OLS"])
        return np.exp(logs.groupby(self.settings["m"]).mean())


def level_name(factor: str, level: Any) -> str:
    """A level for people: ``SNR 0.1``, ``m 500``, ``constant``."""
    if factor == "correlation":
        return str(level)
    name, unit = {"m": ("m", ""), "sparsity": ("sparsity", " %"), "snr": ("SNR", "")}[factor]
    return f"{name} {level:g}{unit}"


def analyse(results: pd.DataFrame, run: dict[str, Any]) -> Analysis:
    """Rank the methods and test their ranks.

    Parameters
    ----------
    results : DataFrame
        The study's results.
    run : dict
        What is known about the run.

    Returns
    -------
    Analysis
    """
    settings = settings_of(results)
    rankings = {measure.column: _ranking(results, settings, measure) for measure in MEASURES}
    return Analysis(results, run, settings, rankings)


def _ranking(results: pd.DataFrame, settings: pd.DataFrame, measure: Measure) -> Ranking:
    """The ranks on one measure, and what follows from them."""
    ranks = ranks_of(results, measure)
    replicated = settings["replicate"].nunique() > 1
    blocks = ranks_within_settings(ranks, settings) if replicated else None
    return Ranking(
        measure=measure,
        ranks=ranks,
        average=ranks.mean(),
        without_ties=ranks_of(results, measure, tie=0.0).mean(),
        # Only a method that ties with none has the rank 1, or the last.
        best=(ranks == 1).sum(),
        worst=(ranks == len(METHODS)).sum(),
        all_tied=int((ranks.nunique(axis=1) == 1).sum()),
        friedman=friedman(ranks),
        holm=holm(ranks, CONTROL),
        settings_friedman=None if blocks is None else friedman(blocks),
        settings_holm=() if blocks is None else holm(blocks, CONTROL),
        separated_singly=_separated_singly(ranks, settings["replicate"]) if replicated else {},
    )


def _separated_singly(ranks: pd.DataFrame, replicate: pd.Series[int]) -> dict[str, tuple[int, int]]:
    """In how many replicates, each tested alone, SparseStep is better than a method, and worse."""
    outcomes = [
        {comparison.method: comparison.outcome() for comparison in holm(group, CONTROL)}
        for _, group in ranks.groupby(replicate)
    ]
    return {
        method: (
            sum(outcome[method] == "better" for outcome in outcomes),
            sum(outcome[method] == "worse" for outcome in outcomes),
        )
        for method in METHODS
        if method != CONTROL
    }
