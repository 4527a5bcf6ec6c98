"""The problems: a design, true coefficients, noise, and rows to test on."""

from dataclasses import dataclass

import numpy as np
from sklearn.preprocessing import PolynomialFeatures

TEST_ROWS = 10_000
VARIABLES = 6  # of a polynomial; its degree follows from the number of columns


@dataclass(frozen=True)
class Problem:
    """How the data of a problem are made."""

    label: str
    rows: int
    columns: int
    nonzero: int
    snr: float  # variance of the signal / variance of the noise
    design: str = "constant"
    correlation: float = 0.5
    coefficients: str = "uniform"

    def draw(self, seed):
        """Data with this seed; the columns are standardized, so that no library has to."""
        rng = np.random.default_rng(seed)
        X = DESIGNS[self.design](self, self.rows + TEST_ROWS, rng)
        train = X[: self.rows]
        X = (X - train.mean(axis=0)) / train.std(axis=0)
        b = np.zeros(self.columns)
        b[np.linspace(0, self.columns - 1, self.nonzero).astype(int)] = COEFFICIENTS[
            self.coefficients
        ](self.nonzero, rng)
        signal, noise = X[: self.rows] @ b, rng.standard_normal(self.rows)
        noise *= np.linalg.norm(signal) / np.linalg.norm(noise) / np.sqrt(self.snr)
        return Data(X[: self.rows], signal + noise, b, X[self.rows :], noise.std())


@dataclass(frozen=True)
class Data:
    """Rows to fit to, the true coefficients, rows to test on, and the size of the noise."""

    X: np.ndarray
    y: np.ndarray
    b: np.ndarray
    X_test: np.ndarray
    noise: float

    def recovered(self, coef, intercept):
        """What a fit recovered of the truth, in the measures of the tables."""
        kept, true = coef != 0, self.b != 0
        # Against the noiseless target: the noise of the test rows would drown the differences.
        missed = self.X_test @ (coef - self.b) + intercept
        return {
            "hit_rate": float(np.mean(kept == true)),
            "error_of_b": float(np.linalg.norm(coef - self.b) / np.linalg.norm(self.b)),
            "test_error": float(np.mean(missed**2) / self.noise**2),
            "kept": int(kept.sum()),
            "kept_true": int((kept & true).sum()),
        }


def constant(problem, rows, rng):
    """Every pair of columns with the same correlation."""
    own, shared = rng.standard_normal((rows, problem.columns)), rng.standard_normal((rows, 1))
    return np.sqrt(1 - problem.correlation) * own + np.sqrt(problem.correlation) * shared


def autoregressive(problem, rows, rng):
    """Neighbouring columns correlated; the correlation falls off by its powers."""
    X = rng.standard_normal((rows, problem.columns))
    for j in range(1, problem.columns):
        X[:, j] *= np.sqrt(1 - problem.correlation**2)
        X[:, j] += problem.correlation * X[:, j - 1]
    return X


def polynomial(problem, rows, rng):
    """Powers and products of a few variables, lowest degree first: ill-conditioned."""
    base = rng.uniform(0.0, 2.0, (rows, VARIABLES))
    degree = 1
    while PolynomialFeatures(degree, include_bias=False).fit(base).n_output_features_ < (
        problem.columns
    ):
        degree += 1
    return PolynomialFeatures(degree, include_bias=False).fit_transform(base)[:, : problem.columns]


def uniform(count, rng):
    """Of any size, as in the paper."""
    return rng.uniform(-1, 1, count)


def signs(count, rng):
    """All of the same size."""
    return rng.choice([-1.0, 1.0], count)


DESIGNS = {"constant": constant, "autoregressive": autoregressive, "polynomial": polynomial}
COEFFICIENTS = {"uniform": uniform, "signs": signs}
