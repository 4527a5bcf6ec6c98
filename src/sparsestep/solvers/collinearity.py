"""How nearly the kept columns are collinear, and the digits that this costs.

With the sums of the kept columns in units of their lengths, ``C = D^-1 S D^-1``, normal equations
lose as many digits as the condition number of C has, which is the square of that of the columns.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import lapack

from sparsestep.errors import LostDigitsWarning, warn
from sparsestep.moments.moments import Moments
from sparsestep.reference import negligible
from sparsestep.solvers.scaled_problem import unit_gram

Array = NDArray[np.float64]
Index = NDArray[np.intp]

_EPS = float(np.finfo(np.float64).eps)
# Larger errors are reported: fewer than six digits are left.
_BAD = 1e-6
# A column has a part in a combination that is nil if its weight there is above this.
_PART = 1e-6


@dataclass(frozen=True)
class Collinearity:
    """The condition of the columns kept, and what normal equations lose by it.

    Attributes
    ----------
    support : ndarray of int
        The columns kept.
    length : ndarray
        Square roots of their sums of squares.
    sums : ndarray
        C, their sums of squares and products in units of these lengths.
    factor : ndarray
        Its Cholesky factor; not valid if `rcond` is 0.
    rcond : float
        Reciprocal condition number of C: the square of that of the columns.
    offset : float
        Largest mean beside its deviation; 0 without an intercept.
    error : float
        Relative error that normal equations may leave; 0 if there are too few rows for more than
        one solution to be told apart, which is no matter of digits.
    """

    support: Index
    length: Array
    sums: Array
    factor: Array
    rcond: float
    offset: float
    error: float

    @property
    def condition_number(self) -> float:
        """Condition number of the standardized columns."""
        return float(1.0 / np.sqrt(max(self.rcond, _EPS)))

    def solve(self, g: Array) -> Array:
        """``S^-1 g``."""
        solution: Array = lapack.dpotrs(self.factor, g / self.length, lower=True)[0]
        return solution / self.length

    def inverse_diagonal(self) -> Array:
        """The diagonal of ``S^-1``; NaN for columns that depend on others, but for rounding."""
        if self.rcond > len(self.support) * _EPS:
            diagonal = np.diag(lapack.dpotri(self.factor, lower=True)[0])
        else:
            values, vectors = np.linalg.eigh(self.sums)
            null = values <= negligible(len(values))
            diagonal = np.sum(vectors[:, ~null] ** 2 / values[~null], axis=1)
            diagonal[np.any(np.abs(vectors[:, null]) > _PART, axis=1)] = np.nan
        return np.asarray(diagonal / self.length / self.length)

    def lost(self, error: float, advice: str) -> LostDigitsWarning | None:
        """What to say if an error has left fewer than six digits."""
        return LostDigitsWarning(self.condition_number, error, advice) if error > _BAD else None

    def warn(self, error: float, advice: str) -> LostDigitsWarning | None:
        """Say so if an error has left fewer than six digits; and what was said."""
        lost = self.lost(error, advice)
        if lost is not None:
            warn(lost)
        return lost


def collinearity(moments: Moments, coef: Array, *, fit_intercept: bool) -> Collinearity:
    """How well the kept columns can be told apart, by the moments."""
    support = np.flatnonzero(coef)
    C, length = unit_gram(moments, support, fit_intercept=fit_intercept)
    offset = 0.0
    if fit_intercept:
        deviation = length / np.sqrt(moments.weight_sum)
        offset = float(np.max(np.abs(moments.mean_x[support]) / deviation, initial=0.0))
    factor, rcond = C, 0.0
    if len(support):
        factor, failed = lapack.dpotrf(C, lower=True)
        if not failed:
            rcond = float(lapack.dpocon(factor, np.linalg.norm(C, 1), uplo="L")[0])
    rank = moments.n_samples - fit_intercept
    error = _EPS / max(rcond, _EPS) if 0 < len(support) <= rank else 0.0
    return Collinearity(support, length, C, factor, rcond, offset, error)
