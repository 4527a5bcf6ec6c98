"""From moments to the equations the engine solves, and its coefficients back to the data's units.

Without standardization the equations are those of the numbers as given. With it, columns and target
are divided by their standard deviations first (about zero if there is no intercept) and alpha by
the target's variance: the answer then follows a change of units instead of depending on it,
although gamma_0, gamma_stop and epsilon are absolute numbers.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sparsestep.moments import Moments

__all__ = ["NormalEquations", "Units", "later_copies"]

Array = NDArray[np.float64]

# Columns whose squared correlation is as near to 1 as the rounding of the moments are copies.
_COPY = 1e-13


@dataclass(frozen=True)
class NormalEquations:
    """``X'X``, the ``X'y`` of one or more targets, and the alphas wanted for each target.

    Attributes
    ----------
    S : ndarray of shape (m, m)
    q : ndarray of shape (n_targets, m)
    alphas : ndarray of shape (n_targets, n_alphas)
    """

    S: Array
    q: Array
    alphas: Array


def later_copies(S: Array) -> NDArray[np.bool_]:
    """Columns that repeat an earlier one, or its negative, by the Gram matrix `S`.

    Which of two equal columns the loop keeps is decided by rounding. The rule instead: the first.
    """
    length = np.sqrt(np.diag(S))
    copies = np.zeros(len(S), dtype=bool)
    # Few matrices have any: look at the whole only if one pass finds more than the diagonal.
    alike = np.abs(S) >= (1.0 - _COPY) * length * length[:, np.newaxis]
    alike &= (length > 0) & (length > 0)[:, np.newaxis]
    if np.count_nonzero(alike) > np.count_nonzero(length):
        for j in np.flatnonzero(np.count_nonzero(np.triu(alike, 1), axis=0)):
            copies[j] = bool(np.any(alike[:j, j] & ~copies[:j]))
    return copies


@dataclass(frozen=True)
class Units:
    """The scales and means that lead from one set of moments to the engine's units and back.

    Attributes
    ----------
    scale_x : ndarray of shape (m,)
        1 for a constant column.
    scale_y : ndarray of shape (n_targets,)
    mean_x, mean_y : ndarrays of shapes (m,) and (n_targets,)
        Zero if there is no intercept.
    """

    scale_x: Array
    scale_y: Array
    mean_x: Array
    mean_y: Array

    @classmethod
    def of(cls, moments: Moments, *, fit_intercept: bool, standardize: bool) -> "Units":
        """The units of these moments."""
        mean_x, mean_y = moments.mean_x, np.atleast_1d(moments.mean_y)
        var_x, var_y = (
            moments.diag / moments.weight_sum,
            np.atleast_1d(moments.yty) / moments.weight_sum,
        )
        if not fit_intercept:
            var_x, var_y = var_x + mean_x**2, var_y + mean_y**2
            mean_x, mean_y = np.zeros_like(mean_x), np.zeros_like(mean_y)
        if not standardize:
            var_x, var_y = np.ones_like(var_x), np.ones_like(var_y)
        scale_x, scale_y = np.sqrt(var_x), np.sqrt(var_y)
        scale_x[scale_x == 0], scale_y[scale_y == 0] = 1.0, 1.0
        return cls(scale_x, scale_y, mean_x, mean_y)

    def equations(self, moments: Moments, alphas: Array) -> NormalEquations:
        """The equations of `moments` for `alphas`, shape (n_alphas,), in the data's units."""
        S, q = moments.xtx, np.reshape(moments.xty, (moments.n_features, -1)).T
        mean_x, mean_y = moments.mean_x - self.mean_x, np.atleast_1d(moments.mean_y) - self.mean_y
        if mean_x.any() or mean_y.any():
            S = S + moments.weight_sum * np.multiply.outer(mean_x, mean_x)
            q = q + moments.weight_sum * np.multiply.outer(mean_y, mean_x)
        if np.any(self.scale_x != 1.0):
            S = S / self.scale_x
            S /= self.scale_x[:, np.newaxis]
        q = q / self.scale_x / self.scale_y[:, np.newaxis]
        return NormalEquations(S, q, alphas / self.scale_y[:, np.newaxis] ** 2)

    def back(self, coefs: Array) -> tuple[Array, Array]:
        """Coefficients (n_targets, n_alphas, m) in the data's units, and their intercepts."""
        coefs = coefs * self.scale_y[:, np.newaxis, np.newaxis]
        coefs /= self.scale_x
        return coefs, self.mean_y[:, np.newaxis] - coefs @ self.mean_x
