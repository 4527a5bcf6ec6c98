"""From moments to the equations the engine solves, and its coefficients back to the data's units.

Without standardization the equations are those of the numbers as given. With it, columns and target
are divided by their standard deviations first (about zero if there is no intercept) and alpha by
the target's variance: the answer then follows a change of units instead of depending on it,
although gamma_0, gamma_stop and epsilon are absolute numbers.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import lapack

from sparsestep.moments.moments import Moments
from sparsestep.moments.sums import SMALLEST_SQUARES
from sparsestep.moments.table import column_name

__all__ = [
    "NormalEquations",
    "RowEquations",
    "Units",
    "copies_among_rows",
    "independent_columns",
    "later_copies",
    "negligible",
    "spanned_by_earlier",
]

Array = NDArray[np.float64]

# Alphas beyond this many times the sum of squares of the target, or below its inverse, are clipped.
_FARTHEST = 1e60
# Columns whose |correlation| is as near to 1 as the rounding of the moments are copies.
_COPY = 1e-13
# A column of unit length that keeps this much beside those before it depends on none of them.
_CLEARLY = 1e-4


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

    @property
    def diag(self) -> Array:
        """The diagonal of S."""
        return np.diag(self.S)


@dataclass(frozen=True)
class RowEquations:
    """The same for fewer rows than columns, from the rows themselves: nothing is m x m.

    Attributes
    ----------
    A : ndarray of shape (n_rows, m)
        ``A'A`` is ``X'X``.
    y : ndarray of shape (n_targets, n_rows)
    alphas : ndarray of shape (n_targets, n_alphas)
    """

    A: Array
    y: Array
    alphas: Array

    @property
    def diag(self) -> Array:
        """The diagonal of ``A'A``."""
        return np.asarray(np.einsum("ij,ij->j", self.A, self.A))

    @property
    def q(self) -> Array:
        """``A'y`` of each target, (n_targets, m)."""
        return self.y @ self.A


def negligible(m: int) -> float:
    """What rounding may leave of a column beside m others, all of unit length."""
    return 10 * m * float(np.finfo(np.float64).eps)


def independent_columns(S: Array) -> int:
    """How many columns are independent but for rounding, by the Gram matrix `S`."""
    length = np.sqrt(np.diag(S))
    used = length > 0
    scaled = S[np.ix_(used, used)] / length[used] / length[used, np.newaxis]
    factor, failed = lapack.dpotrf(scaled, lower=True)
    if not failed and np.all(np.diag(factor) > _CLEARLY):
        return len(scaled)
    return int(np.count_nonzero(np.linalg.eigvalsh(scaled) > negligible(len(scaled))))


def spanned_by_earlier(S: Array, tolerance: float) -> NDArray[np.bool_]:
    """Columns of which the earlier ones leave no more than this share, by the Gram matrix `S`."""
    factor, failed = lapack.dpotrf(S, lower=True, clean=True) if len(S) else (S, 0)
    spanned = np.zeros(len(S), dtype=bool)
    if not failed and np.all(np.diag(factor) ** 2 > tolerance * np.diag(S)):
        return spanned
    factor = np.zeros_like(S)
    for j in range(len(S)):
        kept = np.flatnonzero(~spanned[:j])
        k = len(kept)
        row = lapack.dtrtrs(factor[:k, :k], S[kept, j], lower=True)[0] if k else np.zeros(0)
        left = S[j, j] - row @ row
        if left > tolerance * S[j, j]:
            factor[k, :k], factor[k, k] = row, np.sqrt(left)
        else:
            spanned[j] = True
    return spanned


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


def _require_range(
    var_x: Array, var_y: Array, mean_x: Array, mean_y: Array, names: tuple[str, ...] | None
) -> None:
    """Raise, naming the column, where squares about zero are beyond the range of floats."""
    for squares, mean, of_x in ((var_x, mean_x, True), (var_y, mean_y, False)):
        wrong = np.flatnonzero(~np.isfinite(squares) | ((squares < SMALLEST_SQUARES) & (mean != 0)))
        if len(wrong):
            what = column_name(int(wrong[0]), names) if of_x else "y"
            size = "small" if np.isfinite(squares[wrong[0]]) else "large"
            raise ValueError(
                f"The values of {what} are too {size} to be squared, as a fit without an intercept "
                "does; rescale them."
            )


def copies_among_rows(A: Array, rank: NDArray[np.intp]) -> NDArray[np.bool_]:
    """The same by the rows, the first being the one of least `rank`; nothing is m x m.

    Copies have the same component, but for its sign, along any direction; only columns that agree
    along two are compared.
    """
    length = np.sqrt(np.einsum("ij,ij->j", A, A))
    inverse = np.divide(1.0, length, out=np.zeros_like(length), where=length > 0)
    order = np.flatnonzero(length > 0)
    group = np.zeros(A.shape[1], dtype=np.intp)
    ends = np.array([0, len(order)])
    for phase in (0.0, 1.0):
        direction = np.cos(np.arange(1.0, len(A) + 1) ** 2 + phase)
        along = np.abs(direction @ A) * inverse
        order = order[np.lexsort((along[order], group[order]))]
        apart = np.diff(along[order]) > 2 * np.sqrt(_COPY) * np.linalg.norm(direction)
        apart |= np.diff(group[order]) > 0
        ends = np.concatenate([[0], np.flatnonzero(apart) + 1, [len(order)]])
        group[order] = np.repeat(np.arange(len(ends) - 1), np.diff(ends))
    copies = np.zeros(A.shape[1], dtype=bool)
    for k in np.flatnonzero(np.diff(ends) > 1):
        rest = order[ends[k] : ends[k + 1]]
        rest = rest[np.argsort(rank[rest])]
        while len(rest) > 1:
            cosine = (A[:, rest[0]] * inverse[rest[0]]) @ (A[:, rest] * inverse[rest])
            alike = np.abs(cosine) >= 1.0 - _COPY
            alike[0] = False
            copies[rest[alike]] = True
            rest = rest[1:][~alike[1:]]
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
            with np.errstate(over="ignore", under="ignore"):
                var_x, var_y = var_x + mean_x**2, var_y + mean_y**2
            _require_range(var_x, var_y, mean_x, mean_y, moments.feature_names)
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
        return NormalEquations(S, q, self._alphas(alphas, moments))

    def row_equations(self, moments: Moments, alphas: Array) -> RowEquations:
        """The equations of thin `moments` from their rows, which are copied."""
        A, y = moments.compress()
        y = y.reshape(len(A), np.size(moments.mean_y))
        mean_x, mean_y = moments.mean_x - self.mean_x, np.atleast_1d(moments.mean_y) - self.mean_y
        if mean_x.any() or mean_y.any():
            root = np.sqrt(moments.weight_sum)
            A, y = np.vstack([A, root * mean_x]), np.vstack([y, root * mean_y])
        A /= self.scale_x
        y = (y / self.scale_y).T
        return RowEquations(A, y, self._alphas(alphas, moments))

    def _alphas(self, alphas: Array, moments: Moments) -> Array:
        """Alphas over the variance of the target.

        Beyond 1e60 times its sum of squares, or below 1e-60 times that, an alpha is as good as at
        these ends, where all that is computed with it stays within the range of floats.
        """
        squares = (
            np.atleast_1d(moments.yty)
            + moments.weight_sum * (np.atleast_1d(moments.mean_y) - self.mean_y) ** 2
        )
        size = (np.where(squares > 0, squares, 1.0) / self.scale_y**2)[:, np.newaxis]
        with np.errstate(over="ignore", under="ignore"):
            scaled = alphas / self.scale_y[:, np.newaxis] ** 2
            least, most = size / _FARTHEST, np.minimum(size * _FARTHEST, np.finfo(np.float64).max)
        return np.where(alphas > 0, scaled.clip(least, most), 0.0)

    def back(self, coefs: Array) -> tuple[Array, Array]:
        """Coefficients (n_targets, n_alphas, m) in the data's units, and their intercepts."""
        coefs = coefs * self.scale_y[:, np.newaxis, np.newaxis]
        coefs /= self.scale_x
        return coefs, self.mean_y[:, np.newaxis] - coefs @ self.mean_x
