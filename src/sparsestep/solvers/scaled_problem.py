"""From moments to the scaled problem that the engine solves, and its coefficients back again.

With standardization, columns and target are divided by their standard deviations, and alpha by the
target's variance, so that the answer does not depend on units although gamma_0, gamma_stop and
epsilon are absolute numbers. Without it the numbers stay as given.

A fit without an intercept is a fit to moments about zero instead of the means: no other function of
the package knows the difference, except that the means take a degree of freedom.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import lapack

from sparsestep.moments.moments import Moments
from sparsestep.moments.sums import SMALLEST_SQUARES
from sparsestep.moments.table import column_name, real_numbers
from sparsestep.reference import negligible
from sparsestep.solvers.engine import Gram
from sparsestep.solvers.schedule import Schedule
from sparsestep.solvers.wide import WorkingSets
from sparsestep.threads import one_blas_thread
from sparsestep.words import quoted, repeated

Array = NDArray[np.float64]

# The range of finite factors above 0: beyond it, 0 and infinity do the same.
_LEAST_FACTOR, _MOST_FACTOR = 1e-30, 1e30
# Sums of squares of standardized columns are the sum of the weights; their squares must be numbers.
_LIGHTEST = 1e-100
# Alphas beyond this many times the sum of squares of the target, or below its inverse, are clipped.
_FARTHEST = 1e60
# Columns whose |correlation| is as near to 1 as the rounding of the moments are copies.
_COPY = 1e-13


@dataclass(frozen=True)
class Settings:
    """How to fit, whatever the alphas: the estimators' parameters of the same names."""

    schedule: Schedule = field(default_factory=Schedule)
    fit_intercept: bool = True
    standardize: bool = True
    penalty_factor: Array | None = None
    polish: str | None = None
    solver: str = "auto"
    n_jobs: int = 1
    # Called, by any thread, with how many models are fitted and how many are to be.
    watch: Callable[[int, int], None] | None = None

    def about(self, moments: Moments) -> Moments:
        """The moments to fit: about the means or, without an intercept, about zero."""
        return moments if self.fit_intercept else _about_zero(moments)

    def factors(self, m: int) -> Array:
        """The penalty factors, 1 where none were given."""
        return np.ones(m) if self.penalty_factor is None else self.penalty_factor


def penalty_factors(given: Any, m: int, names: Sequence[str] | None = None) -> Array | None:
    """Multipliers of alpha in the order of the columns, checked; given so, or by name."""
    if given is None:
        return None
    named = _is_named(given)
    ordered = _in_order(given, names) if named else given
    factor = real_numbers(ordered, "penalty_factor")
    if factor is None:
        raise ValueError(f"penalty_factor must be numbers; got {given!r}.")
    if factor.shape != (m,):
        raise ValueError(
            f"penalty_factor must have one number for each of the {m} columns; "
            f"its shape is {factor.shape}."
        )
    usual = (factor >= _LEAST_FACTOR) & (factor <= _MOST_FACTOR)
    wrong = np.flatnonzero(~(usual | (factor == 0) | (factor == np.inf)))
    if len(wrong):
        which = names[wrong[0]] if named and names is not None else int(wrong[0])
        raise ValueError(
            f"penalty_factor[{which!r}] is {factor[wrong[0]]}; it must be 0, inf, or between "
            f"{_LEAST_FACTOR:g} and {_MOST_FACTOR:g}."
        )
    return factor


def _is_named(given: Any) -> bool:
    """Whether factors come by name: in a mapping, or a series of pandas with labels of text."""
    if isinstance(given, Mapping):
        return True
    series = hasattr(given, "iloc") and hasattr(given, "index") and not hasattr(given, "columns")
    return series and any(isinstance(label, str) for label in given.index)


def _in_order(given: Any, names: Sequence[str] | None) -> list[Any]:
    """Named factors in the order of the columns; 1 for those that a mapping leaves out."""
    if names is None:
        raise ValueError(
            "penalty_factor names columns, but those of X have no names; give a number for each "
            "column, in their order."
        )
    labels = [label for label, _ in given.items()]
    known, factors = set(names), dict(given.items())
    unknown = [label for label in labels if label not in known]
    if unknown:
        raise ValueError(
            f"penalty_factor names {quoted(unknown, 3)}, but X has no such column; it has "
            f"{quoted(names, 5)}."
        )
    if len(factors) < len(labels):
        raise ValueError(f"penalty_factor names {repeated(labels)!r} twice; give one factor.")
    missing = [name for name in names if name not in factors]
    if missing and not isinstance(given, Mapping):
        raise ValueError(
            f"penalty_factor lacks {quoted(missing, 3)}; a series has a number for each column, "
            "and a dict may leave out those at 1."
        )
    return [factors.get(name, 1.0) for name in names]


def unit_gram(moments: Moments, columns: NDArray[np.intp]) -> tuple[Array, Array]:
    """Sums of products of some columns in units of their lengths, and these lengths."""
    S = moments.gram_block(columns)
    length = np.sqrt(np.diag(S))
    return S / length / length[:, np.newaxis], length


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
    used = length > 0
    least, most = length[used].min(initial=np.inf), length[used].max(initial=0.0)
    # Few matrices have any: with equal lengths one look at the whole finds no more than the
    # diagonal.
    if most <= (1.0 + _COPY) * least:
        bound = (1.0 - 4 * _COPY) * least**2
        if np.count_nonzero(bound <= S) + np.count_nonzero(-bound >= S) <= np.count_nonzero(used):
            return copies
    alike = np.abs(S) >= (1.0 - _COPY) * length * length[:, np.newaxis]
    alike &= used & used[:, np.newaxis]
    for j in np.flatnonzero(np.count_nonzero(np.triu(alike, 1), axis=0)):
        copies[j] = bool(np.any(alike[:j, j] & ~copies[:j]))
    return copies


def _about_zero(moments: Moments) -> Moments:
    """The moments about zero; an error for columns whose squares are beyond the range of floats."""
    _require_weight(moments.weight_sum)
    with np.errstate(over="ignore", under="ignore"):
        found = moments._about_zero()
        of_x, of_y = found.diag / found.weight_sum, np.atleast_1d(found.yty) / found.weight_sum
    for squares, mean in ((of_x, moments.mean_x), (of_y, np.atleast_1d(moments.mean_y))):
        wrong = np.flatnonzero(~np.isfinite(squares) | ((squares < SMALLEST_SQUARES) & (mean != 0)))
        if len(wrong):
            names = moments.feature_names
            what = column_name(int(wrong[0]), names) if squares is of_x else "y"
            size = "small" if np.isfinite(squares[wrong[0]]) else "large"
            raise ValueError(
                f"The values of {what} are too {size} to be squared, as a fit without an intercept "
                "does; rescale them."
            )
    return found


def _require_weight(weight: float) -> None:
    """Raise if the sum of the weights is so small or large that its square is not a double."""
    if not _LIGHTEST <= weight <= 1.0 / _LIGHTEST:
        raise ValueError(
            f"The weights sum to {weight:.3g}; rescale sample_weight so that they sum "
            f"to between {_LIGHTEST:g} and {1.0 / _LIGHTEST:g}."
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
class ScaledProblem:
    """Least squares for one set of moments in the units of the engine, whatever the alphas.

    The penalty factor is infinite for columns that may not enter. Of equal columns one may: that of
    the smallest penalty factor, and of those the first. Rounding decides which of them the loop
    keeps, and at alpha = 0 it shares the effect out. Of columns without a penalty those may not
    enter that earlier ones span, because nothing says how to share.
    """

    moments: Moments  # about zero if there is no intercept
    scale_x: Array  # (m,), 1 for a constant column
    scale_y: Array  # (n_targets,)
    factor: Array  # (m,), penalty factors, infinite for columns that may not enter
    schedule: Schedule
    left: Array  # X'X, (m, m); of thin moments the rows A instead, (n_rows, m)
    right: Array  # X'y, (n_targets, m); of thin moments the targets, (n_targets, n_rows)

    @classmethod
    def of(cls, moments: Moments, settings: Settings) -> "ScaledProblem":
        """The problem of these moments."""
        moments = settings.about(moments)
        scale_x, scale_y = units(moments, settings)
        if moments.is_thin:
            left, right = moments.compress()
            left /= scale_x
            right = right.reshape(len(left), len(scale_y)).T / scale_y[:, np.newaxis]
        else:
            left, right = moments.xtx, np.reshape(moments.xty, (len(scale_x), -1)).T
            if settings.standardize:
                left = left / scale_x
                left /= scale_x[:, np.newaxis]
            right = right / scale_x / scale_y[:, np.newaxis]
        out = _excluded(left, moments.is_thin, settings)
        factor = np.where(out, np.inf, settings.factors(len(scale_x)))
        return cls(moments, scale_x, scale_y, factor, settings.schedule, left, right)

    @property
    def is_thin(self) -> bool:
        """Whether there are fewer rows than columns, and nothing is m x m."""
        return self.moments.is_thin

    @cached_property
    def gram(self) -> Gram:
        """The matrix that the engine solves with, unless there are fewer rows than columns."""
        return Gram(self.left, self.right, self.factor)

    @cached_property
    def working_sets(self) -> list[WorkingSets]:
        """With fewer rows than columns, the problems of each target."""
        return [WorkingSets(self.left, y, self.factor, self.schedule) for y in self.right]

    @property
    def diag(self) -> Array:
        """The sums of squares of the columns."""
        if self.is_thin:
            return np.asarray(np.einsum("ij,ij->j", self.left, self.left))
        return np.diag(self.left)

    @property
    def q(self) -> Array:
        """``X'y`` of each target, (n_targets, m)."""
        return self.right @ self.left if self.is_thin else self.right

    @property
    def may(self) -> NDArray[np.bool_]:
        """The columns that may enter, of some length."""
        return (self.diag > 0) & np.isfinite(self.factor)

    @cached_property
    def rank(self) -> int:
        """The rank of the columns that may enter, but for rounding."""
        used = np.flatnonzero(self.may)
        if self.is_thin:
            # Not the number of rows: copies of a row do not raise the rank.
            A = self.left[:, used] if len(used) < len(self.factor) else self.left
            with one_blas_thread():
                return int(np.linalg.matrix_rank(A @ A.T, hermitian=True))
        spanned = spanned_by_earlier(self.left[np.ix_(used, used)], negligible(len(used)))
        independent = len(used) - int(np.count_nonzero(spanned))
        return min(self.moments.n_samples - self.moments._df_of_means, independent)

    def alphas(self, alphas: Array) -> Array:
        """Alphas, (n_alphas,) or a row per target, in the units of the problem: a row per target.

        Beyond 1e60 times the target's sum of squares, or below 1e-60 times that, an alpha is as
        good as at these ends, where all that is computed with it stays within the range of floats.
        """
        squares = np.atleast_1d(self.moments.yty)
        size = (np.where(squares > 0, squares, 1.0) / self.scale_y**2)[:, np.newaxis]
        with np.errstate(over="ignore", under="ignore"):
            scaled = alphas / self.scale_y[:, np.newaxis] ** 2
            least, most = size / _FARTHEST, np.minimum(size * _FARTHEST, np.finfo(np.float64).max)
        return np.where(alphas > 0, scaled.clip(least, most), 0.0)

    def scaled(self, coefs: Array) -> Array:
        """Coefficients (n_targets, n_alphas, m) in the units of the problem."""
        return coefs * self.scale_x / self.scale_y[:, np.newaxis, np.newaxis]

    def back(self, coefs: Array) -> tuple[Array, Array]:
        """Coefficients (n_targets, n_alphas, m) in the data's units, and their intercepts."""
        coefs = coefs * self.scale_y[:, np.newaxis, np.newaxis]
        coefs /= self.scale_x
        mean_y = np.reshape(self.moments.mean_y, (-1, 1))
        return coefs, mean_y - coefs @ self.moments.mean_x


def units(moments: Moments, settings: Settings) -> tuple[Array, Array]:
    """`scale_x` and `scale_y` of `ScaledProblem`."""
    weight = moments.weight_sum
    _require_weight(weight)
    var_x, var_y = moments.diag / weight, np.atleast_1d(moments.yty) / weight
    if not settings.standardize:
        var_x, var_y = np.ones_like(var_x), np.ones_like(var_y)
    scale_x, scale_y = np.sqrt(var_x), np.sqrt(var_y)
    scale_x[scale_x == 0], scale_y[scale_y == 0] = 1.0, 1.0
    return scale_x, scale_y


def _excluded(left: Array, thin: bool, settings: Settings) -> NDArray[np.bool_]:
    """Columns that may not enter, by the Gram matrix or by the rows."""
    m = left.shape[1]
    factor = settings.factors(m)
    order = np.argsort(factor, kind="stable")
    out = np.isinf(factor)
    if thin:
        rank = np.empty(m, dtype=np.intp)
        rank[order] = np.arange(m)
        out |= copies_among_rows(left, rank)
    elif settings.penalty_factor is None:
        out |= later_copies(left)
    else:
        out[order] |= later_copies(left[np.ix_(order, order)])
    free = np.flatnonzero((factor == 0) & ~out)
    if len(free):
        S = left[:, free].T @ left[:, free] if thin else left[np.ix_(free, free)]
        out[free] = spanned_by_earlier(S, negligible(m))
    return out
