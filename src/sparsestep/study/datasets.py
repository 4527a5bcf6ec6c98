"""The data sets of the study: its 180 settings, its two scales, and rows that become moments.

Section 4 of the paper: X ~ N(mu, Sigma) with mu_j ~ U(0, 1), scaled to mean 0 and variance 1;
b_j ~ U(-1, 1), the last of them zero; y = Xb + e with ``b'X'Xb / e'e`` exactly the signal-to-noise
ratio.
"""

from dataclasses import dataclass
from itertools import product
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from sparsestep import Moments
from sparsestep.whole_file import whole_file

Array = NDArray[np.float64]

FOLDS = 10
N_ALPHAS = 101
# Every random number of the study comes from this number and that of the data set.
SEED = 20170116

SIZES = (10, 50, 100, 500)
SPARSITIES = (0, 25, 50, 75, 95)
SNRS = (0.1, 1.0, 10.0)
CORRELATIONS = ("uncorrelated", "constant", "noise")
SETTINGS = len(SIZES) * len(SPARSITIES) * len(SNRS) * len(CORRELATIONS)

CONSTANT = 0.5
# The default parameters of Hardin, Garcia and Golan (2013), Algorithm 4: epsilon and M.
NOISE, DIMENSION = 0.01, 2


@dataclass(frozen=True)
class Setting:
    """The design of a data set; its number is 180 times the replicate plus that of its setting."""

    dataset: int
    replicate: int
    m: int
    sparsity: int  # percent of the coefficients that are zero
    snr: float
    correlation: str


@dataclass(frozen=True)
class Scale:
    """The size of the data sets; settings with other values are left out."""

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


def paper_grid() -> Array:
    """The 101 lambdas of the paper, largest first: 2^15 to 2^-15, evenly in the logarithm."""
    return np.asarray(2.0 ** np.linspace(15, -15, N_ALPHAS))


def factors(kind: str, m: int, rng: np.random.Generator) -> tuple[float, Array]:
    """A correlation matrix as ``d I + F F'``: d and F, from which rows are drawn.

    Constant correlation c is ``(1 - c) I + c 1 1'``. Noise adds ``epsilon u_i'u_j`` to the identity
    off its diagonal, where u_i is a vector uniform on [-1, 1]^M divided by its length: this is
    ``(1 - epsilon) I + epsilon U U'``, positive definite because epsilon is below the smallest
    eigenvalue of the identity.
    """
    if kind == "uncorrelated":
        return 1.0, np.zeros((m, 0))
    if kind == "constant":
        return 1.0 - CONSTANT, np.full((m, 1), np.sqrt(CONSTANT))
    if kind == "noise":
        u = rng.uniform(-1.0, 1.0, (m, DIMENSION))
        return 1.0 - NOISE, np.sqrt(NOISE) * (u / np.linalg.norm(u, axis=1, keepdims=True))
    raise ValueError(f"correlation must be 'uncorrelated', 'constant' or 'noise'; got {kind!r}.")


def draw(setting: Setting, scale: Scale) -> tuple[Array, Array, Array]:
    """X, y and the true b of a data set, the rows to train on first."""
    rng = np.random.default_rng(np.random.SeedSequence(SEED, spawn_key=(setting.dataset,)))
    n, m = scale.n_train + scale.n_test, setting.m
    mu = rng.uniform(0.0, 1.0, m)
    d, F = factors(setting.correlation, m, rng)
    b = rng.uniform(-1.0, 1.0, m)
    b[m - m * setting.sparsity // 100 :] = 0.0
    X = rng.standard_normal((n, m))
    X *= np.sqrt(d)
    if F.shape[1]:
        X += rng.standard_normal((n, F.shape[1])) @ F.T
    X += mu
    X -= X.mean(axis=0)
    X /= np.sqrt(np.einsum("ij,ij->j", X, X) / n)
    signal, noise = X @ b, rng.standard_normal(n)
    noise *= np.sqrt(signal @ signal / (setting.snr * (noise @ noise)))
    return X, signal + noise, b


@dataclass(frozen=True)
class DataSet:
    """Moments of ten folds of the training rows and of the test rows, and the true b."""

    folds: list[Moments]
    test: Moments
    b: Array

    def save(self, folder: Path) -> None:
        """Write the data set into a folder of its own, complete or not at all."""
        folder.mkdir(parents=True, exist_ok=True)
        for k, fold in enumerate(self.folds):
            fold.save(folder / f"fold-{k}.moments")
        self.test.save(folder / "test.moments")
        # Last: `is_saved` looks for this file.
        with whole_file(folder / "b.txt", "study") as temporary:
            temporary.write_text("\n".join(map(repr, self.b.tolist())), encoding="utf-8")

    @staticmethod
    def is_saved(folder: Path) -> bool:
        """Whether `save` has written all of a data set into a folder."""
        return (folder / "b.txt").is_file()

    @classmethod
    def load(cls, folder: Path) -> "DataSet":
        """The data set that `save` wrote into a folder."""
        folds = [Moments.load(folder / f"fold-{k}.moments") for k in range(FOLDS)]
        b = np.array((folder / "b.txt").read_text(encoding="utf-8").split(), dtype=np.float64)
        return cls(folds, Moments.load(folder / "test.moments"), b)


def generate(setting: Setting, scale: Scale) -> DataSet:
    """Draw a data set and take its moments.

    The folds are contiguous: the rows are drawn independently, so that these are as random as any.

    >>> data = generate(settings_of(SCALES["quick"])[0], SCALES["quick"])
    >>> data.folds[0], data.test
    (Moments(n_samples=200, n_features=10), Moments(n_samples=1000, n_features=10))
    """
    X, y, b = draw(setting, scale)
    n = scale.n_train
    folds = Moments.from_folds(X[:n], y[:n], np.arange(n) * FOLDS // n)
    return DataSet(folds, Moments.from_data(X[n:], y[n:]), b)
