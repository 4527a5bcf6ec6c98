"""Coefficients in the data's units for moments and alphas: units, engine, polish, and back."""

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparsestep.moments.moments import Moments
from sparsestep.reference import sparsestep_reference
from sparsestep.solvers.engine import solve_all
from sparsestep.solvers.equations import (
    NormalEquations,
    RowEquations,
    Units,
    copies_among_rows,
    later_copies,
    negligible,
    spanned_by_earlier,
)
from sparsestep.solvers.polish import RowGram, polish_path
from sparsestep.solvers.reference_rows import sparsestep_reference_rows
from sparsestep.solvers.schedule import Schedule
from sparsestep.solvers.wide import WorkingSets, solve_wide, supported_size
from sparsestep.threads import one_blas_thread

__all__ = [
    "Fits",
    "Settings",
    "equations_of",
    "fit_alphas",
    "literal_steps",
    "penalty_factors",
    "swapped",
    "units_of",
]

Array = NDArray[np.float64]

# Sums of squares of standardized columns are the sum of the weights; their squares must be numbers.
_LIGHTEST = 1e-100


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


@dataclass(frozen=True)
class Fits:
    """Models of one set of moments.

    Attributes
    ----------
    alphas : ndarray of shape (n_targets, n_alphas)
    coefs : ndarray of shape (n_targets, n_alphas, m)
    intercepts : ndarray of shape (n_targets, n_alphas)
    n_iter : int
        Steps of the majorization, the most that any alpha took.
    """

    alphas: Array
    coefs: Array
    intercepts: Array
    n_iter: int

    @property
    def n_nonzero(self) -> NDArray[np.intp]:
        """Number of variables kept, of shape (n_targets, n_alphas)."""
        return np.asarray(np.count_nonzero(self.coefs, axis=2))

    def take(self, index: NDArray[np.intp]) -> "Fits":
        """The models of some of the alphas."""
        return Fits(
            self.alphas[:, index], self.coefs[:, index], self.intercepts[:, index], self.n_iter
        )


def fit_alphas(moments: Sequence[Moments], alphas: Array, settings: Settings) -> list[Fits]:
    """The models of each of `moments` for `alphas`, (n_alphas,) or a row of them per target."""
    told = _told(len(moments) * np.size(moments[0].mean_y) * alphas.shape[-1], settings)
    dense = [k for k, each in enumerate(moments) if not each.is_thin]
    thin = [k for k, each in enumerate(moments) if each.is_thin]
    fits = _fit_dense([moments[k] for k in dense], alphas, settings, told)
    found = dict(zip(dense, fits, strict=True))
    # One at a time for each thread, so that no more copies of rows are made than are in use.
    if settings.n_jobs == 1 or len(thin) < 2:
        found |= {k: _fit_thin(moments[k], alphas, settings, told) for k in thin}
    else:
        with one_blas_thread(), ThreadPoolExecutor(max_workers=settings.n_jobs) as pool:
            thin_fits = pool.map(lambda k: _fit_thin(moments[k], alphas, settings, told), thin)
            found |= dict(zip(thin, thin_fits, strict=True))
    return [found[k] for k in range(len(moments))]


def _told(total: int, settings: Settings) -> Callable[[int], None]:
    """A function that counts models, and tells whoever watches how many of all are done."""
    watch = settings.watch
    if watch is None:
        return lambda count: None
    total *= 2 if settings.polish else 1
    done, lock = 0, threading.Lock()

    def told(count: int) -> None:
        nonlocal done
        with lock:
            # One that is solved again with more care is counted again.
            done = min(done + count, total)
            watch(done, total)

    return told


def _fit_thin(
    moments: Moments, alphas: Array, settings: Settings, told: Callable[[int], None]
) -> Fits:
    """The models of moments with fewer rows than columns."""
    units = units_of(moments, settings)
    # A working set has no copies: those of a selected column explain nothing beside it.
    literal = settings.solver == "reference" or settings.polish is not None or np.any(alphas == 0)
    equations = _row_equations(units, moments, alphas, settings, without_copies=bool(literal))
    if settings.solver == "reference":
        coefs = _literally(equations, settings)
        n_iter = len(settings.schedule.gammas()) * settings.schedule.t_max
    else:
        coefs, n_iter = solve_wide(equations, settings.schedule, settings.penalty_factor, told)
    if settings.polish is not None:
        coefs = _polished(equations, coefs, settings, told)
    return Fits(np.broadcast_to(alphas, coefs.shape[:2]), *units.back(coefs), n_iter)


def _fit_dense(
    moments: Sequence[Moments], alphas: Array, settings: Settings, told: Callable[[int], None]
) -> list[Fits]:
    """The models of moments with their matrix, all at once."""
    if not moments:
        return []
    units = [units_of(each, settings) for each in moments]
    equations = [
        _equations(u, each, alphas, settings) for u, each in zip(units, moments, strict=True)
    ]
    if settings.solver == "reference":
        coefs = [_literally(eq, settings) for eq in equations]
        n_iter = len(settings.schedule.gammas()) * settings.schedule.t_max
    else:
        coefs, n_iter = solve_all(
            equations, settings.schedule, settings.penalty_factor, settings.n_jobs, told
        )
    if settings.polish is not None:
        coefs = [_polished(eq, c, settings, told) for eq, c in zip(equations, coefs, strict=True)]
    found = []
    for u, c in zip(units, coefs, strict=True):
        found.append(Fits(np.broadcast_to(alphas, c.shape[:2]), *u.back(c), n_iter))
    return found


def units_of(moments: Moments, settings: Settings) -> Units:
    """The units of the moments under these settings."""
    if not _LIGHTEST <= moments.weight_sum <= 1.0 / _LIGHTEST:
        raise ValueError(
            f"The weights sum to {moments.weight_sum:.3g}; rescale sample_weight so that they sum "
            f"to between {_LIGHTEST:g} and {1.0 / _LIGHTEST:g}."
        )
    return Units.of(moments, fit_intercept=settings.fit_intercept, standardize=settings.standardize)


def _equations(
    units: Units, moments: Moments, alphas: Array, settings: Settings
) -> NormalEquations:
    """The equations, with zeros for the columns that may not enter.

    Of equal columns one may: that of the smallest penalty factor, and of those the first. Which of
    them the loop would keep is decided by rounding, and it would share them out at alpha = 0. Of
    columns without a penalty those may not that earlier ones span: nothing says how to share.
    """
    equations = units.equations(moments, alphas)
    factor = penalty_factors(settings, moments.n_features)
    order = np.argsort(factor, kind="stable")
    out = np.isinf(factor)
    if np.array_equal(order, np.arange(len(order))):
        out |= later_copies(equations.S)
    else:
        out[order] |= later_copies(equations.S[np.ix_(order, order)])
    free = np.flatnonzero((factor == 0) & ~out)
    S_free = equations.S[np.ix_(free, free)]
    out[free] = spanned_by_earlier(S_free, negligible(len(factor)))
    if not out.any():
        return equations
    S, q = equations.S.copy(), equations.q.copy()
    S[out], S[:, out], q[:, out] = 0.0, 0.0, 0.0
    return NormalEquations(S, q, equations.alphas)


def _row_equations(
    units: Units,
    moments: Moments,
    alphas: Array,
    settings: Settings,
    *,
    without_copies: bool = True,
) -> RowEquations:
    """The same for thin moments."""
    equations = units.row_equations(moments, alphas)
    factor = penalty_factors(settings, moments.n_features)
    out = np.isinf(factor)
    if without_copies:
        rank = np.empty(len(factor), dtype=np.intp)
        rank[np.argsort(factor, kind="stable")] = np.arange(len(factor))
        out |= copies_among_rows(equations.A, rank)
    free = np.flatnonzero((factor == 0) & ~out)
    A_free = equations.A[:, free]
    out[free] = spanned_by_earlier(A_free.T @ A_free, negligible(len(factor)))
    equations.A[:, out] = 0.0
    return equations


def equations_of(
    units: Units,
    moments: Moments,
    alphas: Array,
    settings: Settings,
    *,
    without_copies: bool = True,
) -> NormalEquations | RowEquations:
    """The equations of any moments; thin ones may keep copies of columns."""
    if moments.is_thin:
        return _row_equations(units, moments, alphas, settings, without_copies=without_copies)
    return _equations(units, moments, alphas, settings)


def penalty_factors(settings: Settings, m: int) -> Array:
    """The penalty factors, 1 where none were given."""
    return np.ones(m) if settings.penalty_factor is None else settings.penalty_factor


# Beyond the range of floats a penalty is infinite, and the loop leaves the variable out.
@np.errstate(over="ignore")
def _literally(
    equations: NormalEquations | RowEquations,
    settings: Settings,
    callback: Callable[[float, Array], object] | None = None,
) -> Array:
    """The literal loop for each target and alpha."""
    how: dict[str, Any] = {"penalty_factor": settings.penalty_factor, "callback": callback}
    how |= vars(settings.schedule)

    def fit(t: int, alpha: float) -> Array:
        if isinstance(equations, RowEquations):
            return sparsestep_reference_rows(equations.A, equations.y[t], alpha, **how)
        return sparsestep_reference(equations.S, equations.q[t], alpha, **how)

    coefs = [[fit(t, alpha) for alpha in alphas] for t, alphas in enumerate(equations.alphas)]
    return np.array(coefs).reshape(*equations.alphas.shape, -1)


# Several threads wait for each other longer than the steps take.
@one_blas_thread()
def literal_steps(moments: Moments, alpha: float, settings: Settings) -> tuple[Array, Array]:
    """The gammas of the literal loop, and the coefficients after each, (m, n_gammas).

    For one target, in the units and on the columns of a fit: what may not enter stays zero.
    """
    units, alphas = units_of(moments, settings), np.array([alpha])
    equations = equations_of(units, moments, alphas, settings)
    if isinstance(equations, RowEquations) and settings.solver != "reference" and alpha > 0:
        factor = penalty_factors(settings, moments.n_features)
        sets = WorkingSets(equations.A, equations.y[0], factor, settings.schedule)
        sets.solve(equations.alphas[0])
        outside = np.ones(len(factor), dtype=bool)
        outside[sets.sets[0]] = False
        equations.A[:, outside] = 0.0
    # The last step at each gamma overwrites those before it.
    steps: dict[float, Array] = {}
    final = _literally(equations, settings, steps.__setitem__)[0, 0]
    return np.array(list(steps)), np.column_stack([*list(steps.values())[:-1], final])


# On matrices as small as these a second thread of linear algebra costs more than it saves.
@one_blas_thread()
def _polished(
    equations: NormalEquations | RowEquations,
    coefs: Array,
    settings: Settings,
    told: Callable[[int], None],
    sizes: Sequence[int] | None = None,
) -> Array:
    """Each model after add, drop and swap, in units in which columns and ``X'y`` are of size 1.

    Squares of the numbers as given may be beyond the range of floats. With `sizes`, see
    `polish_path`.
    """
    length = np.sqrt(equations.diag)
    length[length == 0] = 1.0
    S: Array | RowGram
    most = None
    if isinstance(equations, RowEquations):
        S = RowGram(equations.A / length)
        rank = np.linalg.matrix_rank(S.A @ S.A.T, hermitian=True)
        most = supported_size(int(rank) + settings.fit_intercept, coefs.shape[2])
    else:
        S = equations.S / length / length[:, np.newaxis]
    factor = penalty_factors(settings, coefs.shape[2])
    finite = np.where(np.isinf(factor), 0.0, factor)
    out = np.empty_like(coefs)
    for t, q in enumerate(equations.q / length):
        size = np.abs(q).max(initial=0.0) or 1.0
        with np.errstate(over="ignore"):
            prices = (equations.alphas[t] / size / size)[:, np.newaxis] * finite
        prices[:, np.isinf(factor)] = np.inf
        units = size / length
        out[t] = polish_path(S, q / size, prices, coefs[t] / units, sizes, most) * units
        told(len(prices))
    return out


def swapped(moments: Moments, fits: Fits, sizes: Sequence[int], settings: Settings) -> Fits:
    """Models of these sizes, one for each alpha, that no swap of two variables improves."""
    units = units_of(moments, settings)
    equations = equations_of(units, moments, fits.alphas, settings)
    coefs = fits.coefs * units.scale_x / units.scale_y[:, np.newaxis, np.newaxis]
    coefs = _polished(equations, coefs, settings, lambda count: None, sizes)
    return Fits(fits.alphas, *units.back(coefs), fits.n_iter)
