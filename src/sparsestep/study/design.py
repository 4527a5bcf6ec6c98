"""The design of the study: its 180 settings, its two scales, its grid of lambdas."""

from dataclasses import dataclass
from itertools import product

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "FOLDS",
    "N_ALPHAS",
    "SCALES",
    "SEED",
    "SETTINGS",
    "Scale",
    "Setting",
    "paper_grid",
    "settings_of",
]

FOLDS = 10
N_ALPHAS = 101
# Every random number of the study comes from this number and that of the data set.
SEED = 20170116

SIZES = (10, 50, 100, 500)
SPARSITIES = (0, 25, 50, 75, 95)
SNRS = (0.1, 1.0, 10.0)
CORRELATIONS = ("uncorrelated", "constant", "noise")
SETTINGS = len(SIZES) * len(SPARSITIES) * len(SNRS) * len(CORRELATIONS)


@dataclass(frozen=True)
class Setting:
    """What a data set is drawn from.

    Attributes
    ----------
    dataset : int
        Its number: 180 times the replicate plus the place among the 180 settings, whatever the
        scale.
    replicate : int
    m : int
        Number of variables.
    sparsity : int
        Percent of the coefficients that are zero.
    snr : float
        Signal-to-noise ratio ``b'X'Xb / e'e``.
    correlation : {"uncorrelated", "constant", "noise"}
    """

    dataset: int
    replicate: int
    m: int
    sparsity: int
    snr: float
    correlation: str

    @property
    def n_zero(self) -> int:
        """How many coefficients are zero."""
        return self.m * self.sparsity // 100


@dataclass(frozen=True)
class Scale:
    """How large the data sets are.

    Attributes
    ----------
    name : str
    n_train, n_test : int
        Rows to train and to test on.
    sizes, sparsities, snrs : tuple
        Settings with other values are left out.
    """

    name: str
    n_train: int
    n_test: int
    sizes: tuple[int, ...] = SIZES
    sparsities: tuple[int, ...] = SPARSITIES
    snrs: tuple[float, ...] = SNRS


SCALES = {
    "quick": Scale("quick", n_train=2_000, n_test=1_000, sizes=(10, 50, 100)),
    "paper": Scale("paper", n_train=20_000, n_test=10_000),
}


def settings_of(scale: Scale, replicates: int = 1) -> list[Setting]:
    """The settings of all data sets, one replicate after the other.

    Parameters
    ----------
    scale : Scale
    replicates : int, default=1

    Returns
    -------
    list of Setting

    Examples
    --------
    >>> from sparsestep.study.design import SCALES, settings_of
    >>> len(settings_of(SCALES["paper"])), len(settings_of(SCALES["quick"], replicates=2))
    (180, 270)
    >>> settings_of(SCALES["paper"])[-1]
    Setting(dataset=179, replicate=0, m=500, sparsity=95, snr=10.0, correlation='noise')
    """
    table = list(enumerate(product(SIZES, SPARSITIES, SNRS, CORRELATIONS)))
    return [
        Setting(replicate * SETTINGS + place, replicate, m, sparsity, snr, correlation)
        for replicate in range(replicates)
        for place, (m, sparsity, snr, correlation) in table
        if m in scale.sizes and sparsity in scale.sparsities and snr in scale.snrs
    ]


def paper_grid() -> NDArray[np.float64]:
    """The lambdas of the paper, largest first: 101 from 2^15 to 2^-15, evenly in the logarithm.

    Returns
    -------
    ndarray of shape (101,)

    Examples
    --------
    >>> from sparsestep.study.design import paper_grid
    >>> paper_grid()[[0, 50, 100]]
    array([3.27680000e+04, 1.00000000e+00, 3.05175781e-05])
    """
    return np.asarray(2.0 ** np.linspace(15, -15, N_ALPHAS))
