"""Ranks of the methods on each data set, with the study's rule on ties."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from sparsestep.study.results import METHODS

__all__ = ["MEASURES", "SETTING", "TIE", "Measure", "fractional_ranks", "ranks_of", "settings_of"]

TIE = 1e-4
SETTING = ("m", "sparsity", "snr", "correlation")


@dataclass(frozen=True)
class Measure:
    """A column of the results on which methods are ranked.

    Parameters
    ----------
    column : str
        Its name in the table of results.
    title : str
        Its name for people.
    larger_is_better : bool, default=False
        Which end is rank 1.

    Examples
    --------
    >>> from sparsestep.study.ranks import MEASURES
    >>> [measure.title for measure in MEASURES]
    ['MSE of b', 'hit rate', 'test MSE', 'time']
    """

    column: str
    title: str
    larger_is_better: bool = False


MEASURES = (
    Measure("mse_b", "MSE of b"),
    Measure("hit_rate", "hit rate", larger_is_better=True),
    Measure("mse_y", "test MSE"),
    Measure("time", "time"),
)


def fractional_ranks(costs: ArrayLike, tie: float = TIE) -> NDArray[np.float64]:
    """Ranks within each row, 1 for the smallest; methods in a tie share the mean of their ranks.

    "Closer than `tie`" is not transitive: of 0, 0.6 and 1.2 ties, the middle one is close to both
    ends. So the costs are sorted, a group opens at its best member, and closes at the first cost
    `tie` or more above that member, which opens the next group. Equal costs always tie.

    Parameters
    ----------
    costs : array_like of shape (n_datasets, n_methods)
        Smaller is better.
    tie : float, default=1e-4
        Smallest difference that counts.

    Returns
    -------
    ndarray of shape (n_datasets, n_methods)

    Examples
    --------
    >>> from sparsestep.study.ranks import fractional_ranks
    >>> fractional_ranks([[0.5, 0.2, 0.9], [0.50006, 0.5, 0.50012]])
    array([[2. , 1. , 3. ],
           [1.5, 1.5, 3. ]])
    """
    costs = np.atleast_2d(np.asarray(costs, dtype=np.float64))
    if np.isnan(costs).any():
        row, column = np.argwhere(np.isnan(costs))[0]
        raise ValueError(f"costs[{row}, {column}] is not a number, so it has no rank.")
    ranks = np.empty_like(costs)
    for row, order in enumerate(np.argsort(costs, axis=1, kind="stable")):
        start = 0
        for place in range(1, len(order) + 1):
            if place < len(order):
                best, cost = costs[row, order[start]], costs[row, order[place]]
                if cost == best or cost - best < tie:
                    continue
            # Places start + 1 to place, counted from 1.
            ranks[row, order[start:place]] = (start + 1 + place) / 2
            start = place
    return ranks


def ranks_of(
    results: pd.DataFrame,
    measure: Measure,
    methods: Sequence[str] = METHODS,
    tie: float = TIE,
) -> pd.DataFrame:
    """Ranks of the methods on one measure.

    Parameters
    ----------
    results : DataFrame
        The study's results.
    measure : Measure
    methods : sequence of str, default=METHODS
        Which methods compete.
    tie : float, default=1e-4
        Smallest difference that counts.

    Returns
    -------
    DataFrame
        One row per data set, one column per method.

    Raises
    ------
    ValueError
        If a method has no results.
    """
    values = results.pivot(index="dataset", columns="method", values=measure.column)
    for method in methods:
        if method not in values.columns:
            raise ValueError(f"The results lack the method {method}: run its fits first.")
    costs = values[list(methods)].to_numpy() * (-1.0 if measure.larger_is_better else 1.0)
    return pd.DataFrame(fractional_ranks(costs, tie), index=values.index, columns=list(methods))


def settings_of(results: pd.DataFrame) -> pd.DataFrame:
    """The setting that each data set was drawn from.

    Parameters
    ----------
    results : DataFrame
        The study's results.

    Returns
    -------
    DataFrame
        One row per data set, with columns m, sparsity, snr, correlation and replicate.
    """
    first = results.drop_duplicates("dataset").set_index("dataset").sort_index()
    return first[[*SETTING, "replicate"]]
