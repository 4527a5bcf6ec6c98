"""The data sets of the study, drawn from their setting and turned into moments at once."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from sparsestep import Moments
from sparsestep.study.design import FOLDS, SEED, Scale, Setting
from sparsestep.study.results import write_file

__all__ = ["DataSet", "draw", "factors", "generate", "noise_directions"]

Array = NDArray[np.float64]

CONSTANT = 0.5
# The default parameters of Hardin, Garcia and Golan (2013), Algorithm 4: epsilon and M.
NOISE, DIMENSION = 0.01, 2


@dataclass(frozen=True)
class DataSet:
    """All that the methods and the measures need of a data set.

    Attributes
    ----------
    folds : list of Moments
        Of the training rows, a tenth in each.
    test : Moments
        Of the test rows.
    b : ndarray of shape (m,)
        The true coefficients.
    """

    folds: list[Moments]
    test: Moments
    b: Array

    def save(self, folder: Path) -> None:
        """Write the data set into a folder of its own, complete or not at all.

        Parameters
        ----------
        folder : Path
        """
        folder.mkdir(parents=True, exist_ok=True)
        for k, fold in enumerate(self.folds):
            fold.save(folder / f"fold-{k}.moments")
        self.test.save(folder / "test.moments")
        # Last, so that its presence says that all is there.
        write_file(folder / "b.txt", "\n".join(map(repr, self.b.tolist())).encode())

    @staticmethod
    def is_saved(folder: Path) -> bool:
        """Whether `save` has written all of a data set into a folder.

        Parameters
        ----------
        folder : Path

        Returns
        -------
        bool
        """
        return (folder / "b.txt").is_file()

    @classmethod
    def load(cls, folder: Path) -> "DataSet | None":
        """The data set that `save` wrote into a folder, or None if there is none.

        Parameters
        ----------
        folder : Path

        Returns
        -------
        DataSet or None
        """
        if not cls.is_saved(folder):
            return None
        folds = [Moments.load(folder / f"fold-{k}.moments") for k in range(FOLDS)]
        b = np.array((folder / "b.txt").read_text(encoding="utf-8").split(), dtype=np.float64)
        return cls(folds, Moments.load(folder / "test.moments"), b)


def noise_directions(m: int, rng: np.random.Generator) -> Array:
    """Unit vectors u_i of the noise: v_i uniform on [-1, 1]^M, divided by its length.

    Parameters
    ----------
    m : int
    rng : Generator

    Returns
    -------
    ndarray of shape (m, 2)
    """
    v = rng.uniform(-1.0, 1.0, (m, DIMENSION))
    return np.asarray(v / np.linalg.norm(v, axis=1, keepdims=True))


def factors(kind: str, m: int, rng: np.random.Generator) -> tuple[float, Array]:
    """A correlation matrix as ``d I + F F'``, from which rows are drawn without factorizing it.

    Constant correlation c is ``(1 - c) I + c 1 1'``. Noise adds ``epsilon u_i'u_j`` to the identity
    off its diagonal, which is ``(1 - epsilon) I + epsilon U U'``, as the u_i have length one; it is
    positive definite because epsilon is below the smallest eigenvalue of the identity.

    Parameters
    ----------
    kind : {"uncorrelated", "constant", "noise"}
    m : int
    rng : Generator

    Returns
    -------
    d : float
    F : ndarray of shape (m, r)

    Examples
    --------
    >>> import numpy as np
    >>> from sparsestep.study.generate import factors
    >>> d, F = factors("constant", 3, np.random.default_rng(0))
    >>> np.round(d * np.eye(3) + F @ F.T, 12)
    array([[1. , 0.5, 0.5],
           [0.5, 1. , 0.5],
           [0.5, 0.5, 1. ]])
    """
    if kind == "uncorrelated":
        return 1.0, np.zeros((m, 0))
    if kind == "constant":
        return 1.0 - CONSTANT, np.full((m, 1), np.sqrt(CONSTANT))
    if kind == "noise":
        return 1.0 - NOISE, np.sqrt(NOISE) * noise_directions(m, rng)
    raise ValueError(f"correlation must be 'uncorrelated', 'constant' or 'noise'; got {kind!r}.")


def draw(setting: Setting, scale: Scale) -> tuple[Array, Array, Array]:
    """The rows of a data set.

    Parameters
    ----------
    setting : Setting
    scale : Scale

    Returns
    -------
    X : ndarray of shape (n_train + n_test, m)
        Each column with mean 0 and variance 1.
    y : ndarray of shape (n_train + n_test,)
    b : ndarray of shape (m,)
    """
    rng = np.random.default_rng(np.random.SeedSequence(SEED, spawn_key=(setting.dataset,)))
    n, m = scale.n_train + scale.n_test, setting.m
    mu = rng.uniform(0.0, 1.0, m)
    d, F = factors(setting.correlation, m, rng)
    b = rng.uniform(-1.0, 1.0, m)
    b[m - setting.n_zero :] = 0.0
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


def generate(setting: Setting, scale: Scale) -> DataSet:
    """The moments of a data set: of ten folds of the training rows, and of the test rows.

    The folds are contiguous: the rows are drawn independently, so that these are as random as any.

    Parameters
    ----------
    setting : Setting
    scale : Scale

    Returns
    -------
    DataSet

    Examples
    --------
    >>> from sparsestep.study.design import SCALES, settings_of
    >>> from sparsestep.study.generate import generate
    >>> data = generate(settings_of(SCALES["quick"])[0], SCALES["quick"])
    >>> data.folds[0], data.test
    (Moments(n_samples=200, n_features=10), Moments(n_samples=1000, n_features=10))
    """
    X, y, b = draw(setting, scale)
    n = scale.n_train
    folds = Moments.from_folds(X[:n], y[:n], np.arange(n) * FOLDS // n)
    return DataSet(folds, Moments.from_data(X[n:], y[n:]), b)
