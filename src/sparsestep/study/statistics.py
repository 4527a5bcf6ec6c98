"""Ranks of the methods, with the study's rule on ties, and tests on the ranks.

Friedman's chi-square and its F form, and Holm's step-down, are those of Demsar (2006).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from scipy import stats

from sparsestep.study.datasets import CORRELATIONS
from sparsestep.study.methods import ALL_METHODS, CONTROL, METHODS

TIE = 1e-4
SETTING = ("m", "sparsity", "snr", "correlation")


@dataclass(frozen=True)
class Measure:
    """A column of the results on which methods are ranked, and its name for people."""

    column: str
    title: str
    larger_is_better: bool = False


MEASURES = (
    Measure("mse_b", "MSE of b"),
    Measure("hit_rate", "hit rate", larger_is_better=True),
    Measure("mse_y", "test MSE"),
    Measure("time", "time"),
)


# -- ranks -------------------------------------------------------------------------------------


def fractional_ranks(costs: ArrayLike, tie: float = TIE) -> NDArray[np.float64]:
    """Ranks within each row, 1 for the smallest; methods in a tie share the mean of their ranks.

    "Closer than `tie`" is not transitive: of 0, 0.6 and 1.2 ties, the middle one is close to both
    ends. So the sorted costs are divided into groups: a cost `tie` or more above the best of its
    group opens the next group. Equal costs always tie. Ranked are the best costs of the groups.

    >>> fractional_ranks([[0.5, 0.2, 0.9], [0.50006, 0.5, 0.50012]])
    array([[2. , 1. , 3. ],
           [1.5, 1.5, 3. ]])
    """
    costs = np.atleast_2d(np.asarray(costs, dtype=np.float64))
    if np.isnan(costs).any():
        row, column = np.argwhere(np.isnan(costs))[0]
        raise ValueError(f"costs[{row}, {column}] is not a number, so it has no rank.")
    best = costs.copy()
    for row, order in zip(best, np.argsort(costs, axis=1, kind="stable"), strict=True):
        for before, here in pairwise(order):
            # Both infinite are equal, though their difference is no number.
            if row[here] == row[before] or row[here] - row[before] < tie:
                row[here] = row[before]
    return np.asarray(stats.rankdata(best, axis=1))


def ranks_of(
    results: pd.DataFrame,
    measure: Measure,
    methods: Sequence[str] = tuple(METHODS),
    tie: float = TIE,
) -> pd.DataFrame:
    """Ranks on one measure: a row for each data set, a column for each method that competes."""
    values = results.pivot(index="dataset", columns="method", values=measure.column)
    for method in methods:
        if method not in values.columns:
            raise ValueError(f"The results lack the method {method}: run its fits first.")
    costs = values[list(methods)].to_numpy() * (-1.0 if measure.larger_is_better else 1.0)
    return pd.DataFrame(fractional_ranks(costs, tie), index=values.index, columns=list(methods))


# -- tests on ranks ----------------------------------------------------------------------------


def friedman(ranks: pd.DataFrame) -> pd.Series[float]:
    """Test whether all methods have the same rank on average, without a correction for ties.

    ``chi2 = 12 N / (k (k + 1)) * sum_j (R_j - (k + 1) / 2)^2`` with k - 1 degrees of freedom, where
    R_j is the average rank of method j over N data sets; and the form of Iman and Davenport,
    ``F = (N - 1) chi2 / (N (k - 1) - chi2)`` with k - 1 and (k - 1)(N - 1), infinite if all data
    sets agree.

    >>> test = friedman(pd.DataFrame([[1, 2, 3], [1, 3, 2], [2, 1, 3], [1, 2, 3]]))
    >>> test[["chi2", "f", "f_p"]].round(3).to_dict()
    {'chi2': 4.5, 'f': 3.857, 'f_p': 0.084}
    """
    n, k = ranks.shape
    if n < 2 or k < 2:
        raise ValueError(
            f"Friedman's test needs two data sets and two methods; got {n} and {k}: run more fits."
        )
    average = ranks.to_numpy(dtype=np.float64).mean(axis=0)
    chi2 = 12 * n / (k * (k + 1)) * float(np.sum(np.square(average - (k + 1) / 2)))
    residual = n * (k - 1) - chi2
    f = (n - 1) * chi2 / residual if residual > 1e-9 * n * (k - 1) else np.inf
    return pd.Series(
        {
            "blocks": n,
            "methods": k,
            "chi2": chi2,
            "chi2_p": stats.chi2.sf(chi2, k - 1),
            "f": f,
            "f_p": stats.f.sf(f, k - 1, (k - 1) * (n - 1)),
        }
    )


def holm(ranks: pd.DataFrame, control: str) -> pd.DataFrame:
    """Compare every other method with the control, by Holm's step-down at 5 %: a row for each.

    ``z = (R_j - R_control) / sqrt(k (k + 1) / (6 N))`` is standard normal if the two are equal.
    The i-th smallest of the k - 1 two-sided p-values is multiplied by k - i, and never falls below
    the one before. The difference is positive if the control is better; the control is "better",
    "worse" or "not separated".

    >>> ranks = pd.DataFrame([[1, 2, 3]] * 20, columns=["ours", "theirs", "worst"])
    >>> holm(ranks, "ours")[["adjusted", "control_is"]].round(4)
            adjusted control_is
    theirs    0.0016     better
    worst     0.0000     better
    """
    n, k = ranks.shape
    average = ranks.mean()
    difference = (average - average[control]).drop(control)
    z = difference.abs() / np.sqrt(k * (k + 1) / (6 * n))
    p = pd.Series(2 * stats.norm.sf(z), z.index)
    ordered = p.sort_values(kind="stable") * np.arange(k - 1, 0, -1)
    adjusted = ordered.cummax().clip(upper=1.0).reindex(difference.index)
    side = np.where(difference > 0, "better", "worse")
    control_is = np.where(adjusted >= 0.05, "not separated", side)
    return pd.DataFrame(
        {"difference": difference, "p": p, "adjusted": adjusted, "control_is": control_is}
    )


# -- all of it ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class Ranking:
    """Six methods on one measure: SparseStep, or a variant of it, and the five others.

    `ranks` has a row for each data set and a column for each method; `without_ties` are the average
    ranks if only equal values tie; `settings` are those of the data sets.
    """

    measure: Measure
    control: str
    ranks: pd.DataFrame
    without_ties: pd.Series[float]
    settings: pd.DataFrame

    @cached_property
    def holm(self) -> pd.DataFrame:
        """The control compared with each other method."""
        return holm(self.ranks, self.control)

    @cached_property
    def blocks(self) -> pd.DataFrame:
        """Ranks of the methods' mean ranks within each setting: one block per setting.

        Replicates of a setting are alike, so a test that counts each of them as a block speaks of
        these settings only. With one block per setting it speaks of settings like these.
        """
        keys = [self.settings.loc[self.ranks.index, name] for name in SETTING]
        # Sums of multiples of 1/2 are exact, so methods that are equal stay equal.
        return self.ranks.groupby(keys, observed=True).sum().rank(axis=1)

    @cached_property
    def separated_singly(self) -> pd.DataFrame:
        """How many replicates, each tested alone, find the control better and worse, by method."""
        tests = [holm(r, self.control) for _, r in self.ranks.groupby(self.settings["replicate"])]
        found = pd.concat([test["control_is"] for test in tests], axis=1)
        return pd.DataFrame({side: found.eq(side).sum(axis=1) for side in ("better", "worse")})

    @property
    def average(self) -> pd.Series[float]:
        """Average rank of each method."""
        return self.ranks.mean()

    @property
    def table(self) -> pd.DataFrame:
        """Average ranks of the methods, and on how many data sets each is alone best or worst."""
        return pd.DataFrame(
            {
                "average_rank": self.average,
                "average_rank_if_only_equal_values_tie": self.without_ties,
                "best": (self.ranks == 1).sum(),
                "worst": (self.ranks == self.ranks.shape[1]).sum(),
            }
        )

    @property
    def all_tied(self) -> int:
        """On how many data sets all methods tie."""
        return int((self.ranks.nunique(axis=1) == 1).sum())

    @property
    def order(self) -> list[str]:
        """The methods by average rank, best first."""
        return list(self.average.sort_values(kind="stable").index)

    def control_is(self, method: str) -> str:
        """How the control compares with a method: "better", "worse" or "not separated"."""
        return str(self.holm.loc[method, "control_is"])


@dataclass(frozen=True)
class Analysis:
    """Everything that tables, claims and pictures are made from.

    `rankings` are those of the six methods, by the measure's column; `variants` those in which a
    variant takes SparseStep's place, by its name.
    """

    results: pd.DataFrame
    run: dict[str, Any]
    settings: pd.DataFrame
    rankings: dict[str, Ranking]
    variants: dict[str, dict[str, Ranking]]

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

    @property
    def as_in_2015(self) -> bool:
        """Whether SCAD and MC+ were run by the algorithms of the paper's time."""
        return self.run.get("rivals") == "2015"

    def levels_of(self, factor: str) -> list[Any]:
        """The levels of m, sparsity, snr or correlation that the study has, in order."""
        found = set(self.settings[factor])
        if factor == "correlation":
            return [level for level in CORRELATIONS if level in found]
        return sorted(found)

    def levels(self, ranking: Ranking) -> pd.DataFrame:
        """Average ranks of the methods at each level of each factor."""
        tables = {
            name: ranking.ranks.groupby(self.settings[name]).mean().reindex(self.levels_of(name))
            for name in SETTING
        }
        return pd.concat(tables, names=["factor", "level"])

    def levels_won(self, ranking: Ranking) -> list[str]:
        """The levels at which the control has the best average rank."""
        best = self.levels(ranking).idxmin(axis=1)
        return [level_name(*level) for level in best.index[best == ranking.control]]

    def by_method(self) -> pd.DataFrame:
        """How each method's fits went: ends of the grid, convergence, and cost.

        Data sets on which the chosen lambda is the smallest or largest of its grid, the worst
        optimality, mean seconds per fit, fits per data set, and mean seconds of all of these.
        """
        results = self.results.assign(
            smallest=self.results["at_end"] == "smallest",
            largest=self.results["at_end"] == "largest",
            whole=self.results["time"] * self.results["n_fits"],
        )
        table = results.groupby("method").agg(
            smallest=("smallest", "sum"),
            largest=("largest", "sum"),
            optimality=("optimality", "max"),
            time=("time", "mean"),
            fits=("n_fits", "median"),
            whole=("whole", "mean"),
        )
        return table.reindex([m for m in ALL_METHODS if m in table.index])

    def cost_in_ols(self) -> pd.Series[float]:
        """Cost of one fit of SparseStep over one of OLS, as a geometric mean for each m."""
        time = self.results.pivot(index="dataset", columns="method", values="time")
        logs = np.log(time[CONTROL] / time["OLS"])
        return np.exp(logs.groupby(self.settings["m"]).mean())


def analyse(results: pd.DataFrame, run: dict[str, Any]) -> Analysis:
    """Rank the methods, and each variant among the others in SparseStep's place."""
    of_dataset = results.drop_duplicates("dataset").set_index("dataset").sort_index()
    settings = of_dataset[[*SETTING, "replicate"]]

    def ranking(measure: Measure, control: str) -> Ranking:
        methods = [control if method == CONTROL else method for method in METHODS]
        ranks, strict = (ranks_of(results, measure, methods, tie) for tie in (TIE, 0.0))
        return Ranking(measure, control, ranks, strict.mean(), settings)

    found = set(results["method"])
    rankings = {
        control: {measure.column: ranking(measure, control) for measure in MEASURES}
        for control in ALL_METHODS
        if control == CONTROL or (control not in METHODS and control in found)
    }
    return Analysis(results, run, settings, rankings.pop(CONTROL), rankings)


def level_name(factor: str, level: Any) -> str:
    """A level for people: ``SNR 0.1``, ``m 500``, ``constant``."""
    if factor == "correlation":
        return str(level)
    name, unit = {"m": ("m", ""), "sparsity": ("sparsity", " %"), "snr": ("SNR", "")}[factor]
    return f"{name} {level:g}{unit}"
