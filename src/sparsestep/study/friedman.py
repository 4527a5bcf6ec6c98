"""Tests on ranks, as in Demsar (2006): Friedman, Iman and Davenport, and Holm."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy import stats

__all__ = ["Comparison", "Friedman", "friedman", "holm", "ranks_within_settings"]


@dataclass(frozen=True)
class Friedman:
    """Friedman's test that all methods are equal, in both of its forms.

    Parameters
    ----------
    blocks, methods : int
        Number of data sets and of methods.
    chi2, chi2_p : float
        Friedman's statistic, without a correction for ties, and its p-value.
    f, f_p : float
        The form of Iman and Davenport and its p-value; f is infinite if all data sets agree.
    """

    blocks: int
    methods: int
    chi2: float
    chi2_p: float
    f: float
    f_p: float


@dataclass(frozen=True)
class Comparison:
    """One method against the control.

    Parameters
    ----------
    method : str
    difference : float
        Its average rank minus the control's: positive if the control is better.
    z, p : float
        The difference over its standard error under equality, and the two-sided p-value.
    adjusted : float
        The p-value after Holm's step-down.
    """

    method: str
    difference: float
    z: float
    p: float
    adjusted: float

    def outcome(self, level: float = 0.05) -> str:
        """What the test says of the control: better, worse, or not separated.

        Parameters
        ----------
        level : float, default=0.05

        Returns
        -------
        {"better", "worse", "not separated"}
        """
        if self.adjusted >= level:
            return "not separated"
        return "better" if self.difference > 0 else "worse"


def friedman(ranks: pd.DataFrame) -> Friedman:
    """Test whether all methods have the same rank on average.

    ``chi2 = 12 N / (k (k + 1)) * (sum_j R_j^2 - k (k + 1)^2 / 4)`` with k - 1 degrees of freedom,
    where R_j is the average rank of method j over N data sets; and
    ``F = (N - 1) chi2 / (N (k - 1) - chi2)`` with k - 1 and (k - 1)(N - 1).

    Parameters
    ----------
    ranks : DataFrame
        One row per data set, one column per method.

    Returns
    -------
    Friedman

    Examples
    --------
    >>> import pandas as pd
    >>> from sparsestep.study.friedman import friedman
    >>> test = friedman(pd.DataFrame([[1, 2, 3], [1, 3, 2], [2, 1, 3], [1, 2, 3]]))
    >>> round(test.chi2, 3), round(test.f, 3), round(test.f_p, 3)
    (4.5, 3.857, 0.084)
    """
    n, k = ranks.shape
    if n < 2 or k < 2:
        raise ValueError(
            f"Friedman's test needs two data sets and two methods; got {n} and {k}: run more fits."
        )
    average = ranks.to_numpy(dtype=np.float64).mean(axis=0)
    spread = float(np.sum(np.square(average - (k + 1) / 2)))
    chi2 = 12 * n / (k * (k + 1)) * spread
    left = n * (k - 1) - chi2
    f = (n - 1) * chi2 / left if left > 1e-9 * n * (k - 1) else np.inf
    return Friedman(
        blocks=n,
        methods=k,
        chi2=chi2,
        chi2_p=float(stats.chi2.sf(chi2, k - 1)),
        f=float(f),
        f_p=float(stats.f.sf(f, k - 1, (k - 1) * (n - 1))),
    )


def holm(ranks: pd.DataFrame, control: str) -> tuple[Comparison, ...]:
    """Compare every method with the control, by Holm's step-down.

    ``z = (R_j - R_control) / sqrt(k (k + 1) / (6 N))`` is standard normal if the two are equal.
    The i-th smallest of the k - 1 p-values is multiplied by k - i, and never falls below the one
    before.

    Parameters
    ----------
    ranks : DataFrame
        One row per data set, one column per method.
    control : str
        The method that all others are compared with.

    Returns
    -------
    tuple of Comparison
        In the order of the columns, without the control.

    Examples
    --------
    >>> import pandas as pd
    >>> from sparsestep.study.friedman import holm
    >>> ranks = pd.DataFrame([[1, 2, 3]] * 20, columns=["ours", "theirs", "worst"])
    >>> [(c.method, round(c.adjusted, 4), c.outcome()) for c in holm(ranks, "ours")]
    [('theirs', 0.0016, 'better'), ('worst', 0.0, 'better')]
    """
    if control not in ranks.columns:
        raise ValueError(f"control must be one of {', '.join(ranks.columns)}; got {control!r}.")
    n, k = ranks.shape
    average = ranks.mean(axis=0)
    others = [method for method in ranks.columns if method != control]
    difference = (average[others] - average[control]).to_numpy()
    z = difference / np.sqrt(k * (k + 1) / (6 * n))
    p = 2 * stats.norm.sf(np.abs(z))
    order = np.argsort(p, kind="stable")
    adjusted = np.empty(k - 1)
    adjusted[order] = np.minimum(np.maximum.accumulate(np.arange(k - 1, 0, -1) * p[order]), 1.0)
    return tuple(
        Comparison(method, *(float(number) for number in numbers))
        for method, *numbers in zip(others, difference, z, p, adjusted, strict=True)
    )


def ranks_within_settings(ranks: pd.DataFrame, settings: pd.DataFrame) -> pd.DataFrame:
    """Ranks of the methods' mean ranks within each setting: one block per setting.

    Replicates of a setting are alike, so a test that counts each of them as a block speaks of these
    settings only. With one block per setting it speaks of settings like these.

    Parameters
    ----------
    ranks : DataFrame
        One row per data set, one column per method.
    settings : DataFrame
        The setting of each data set.

    Returns
    -------
    DataFrame
        One row per setting, one column per method.
    """
    keys = [settings.loc[ranks.index, name] for name in settings.columns if name != "replicate"]
    # Sums of multiples of 1/2 are exact, so methods that are equal stay equal.
    return ranks.groupby(keys, observed=True).sum().rank(axis=1)
