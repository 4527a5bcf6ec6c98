"""Coefficients in the data's units for moments and alphas: units, engine, polish, and back."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from sparsestep.engine import solve_all
from sparsestep.equations import NormalEquations, Units, later_copies
from sparsestep.grid import alpha_grid, every_size
from sparsestep.moments import Moments
from sparsestep.polish import polish_support
from sparsestep.reference import sparsestep_reference
from sparsestep.schedule import Schedule

__all__ = ["Fits", "Settings", "fit_alphas", "fit_every_size", "fit_grid"]

Array = NDArray[np.float64]


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
    units = [_units(each, settings) for each in moments]
    equations = [
        _equations(u, each, alphas, settings) for u, each in zip(units, moments, strict=True)
    ]
    if settings.solver == "reference":
        coefs = [_literally(eq, settings) for eq in equations]
        n_iter = len(settings.schedule.gammas()) * settings.schedule.t_max
    else:
        coefs, n_iter = solve_all(
            equations, settings.schedule, settings.penalty_factor, settings.n_jobs
        )
    if settings.polish is not None:
        coefs = [_polished(eq, c, settings) for eq, c in zip(equations, coefs, strict=True)]
    found = []
    for u, c in zip(units, coefs, strict=True):
        found.append(Fits(np.broadcast_to(alphas, c.shape[:2]), *u.back(c), n_iter))
    return found


def _units(moments: Moments, settings: Settings) -> Units:
    """The units of the moments under these settings."""
    return Units.of(moments, fit_intercept=settings.fit_intercept, standardize=settings.standardize)


def _equations(
    units: Units, moments: Moments, alphas: Array, settings: Settings
) -> NormalEquations:
    """The equations, with zeros for the columns that may not enter.

    Of equal columns one may: that of the smallest penalty factor, and of those the first. Which of
    them the loop would keep is decided by rounding, and it would share them out at alpha = 0.
    """
    equations = units.equations(moments, alphas)
    factor = _factor(settings, moments.n_features)
    order = np.argsort(factor, kind="stable")
    out = np.isinf(factor)
    if np.array_equal(order, np.arange(len(order))):
        out |= later_copies(equations.S)
    else:
        out[order] |= later_copies(equations.S[np.ix_(order, order)])
    if not out.any():
        return equations
    S, q = equations.S.copy(), equations.q.copy()
    S[out], S[:, out], q[:, out] = 0.0, 0.0, 0.0
    return NormalEquations(S, q, equations.alphas)


def _factor(settings: Settings, m: int) -> Array:
    """The penalty factors, 1 where none were given."""
    return np.ones(m) if settings.penalty_factor is None else settings.penalty_factor


def _literally(equations: NormalEquations, settings: Settings) -> Array:
    """The literal loop for each target and alpha."""
    return np.array(
        [
            [
                sparsestep_reference(
                    equations.S,
                    q,
                    alpha,
                    penalty_factor=settings.penalty_factor,
                    **vars(settings.schedule),
                )
                for alpha in alphas
            ]
            for q, alphas in zip(equations.q, equations.alphas, strict=True)
        ]
    ).reshape(*equations.alphas.shape, -1)


def _polished(equations: NormalEquations, coefs: Array, settings: Settings) -> Array:
    """Each model after add, drop and swap."""
    factor = _factor(settings, len(equations.S))
    finite = np.where(np.isinf(factor), 0.0, factor)
    out = np.empty_like(coefs)
    for t, q in enumerate(equations.q):
        for r, alpha in enumerate(equations.alphas[t]):
            prices = np.where(np.isinf(factor), np.inf, alpha * finite)
            out[t, r] = polish_support(equations.S, q, prices, coefs[t, r] != 0)
    return out


def fit_grid(moments: Moments, n_alphas: int, settings: Settings) -> Array:
    """An automatic grid for each target, (n_targets, n_alphas); see `grid.alpha_grid`."""
    scale = _Scale.of(moments, settings)
    penalized = _factor(settings, moments.n_features) > 0

    def sizes(alphas: Array) -> NDArray[np.intp]:
        fits = fit_alphas([moments], alphas, settings)[0]
        return np.asarray(np.count_nonzero(fits.coefs[:, :, penalized], axis=2))

    return alpha_grid(sizes, scale.guess, scale.full, n_alphas)


def fit_every_size(moments: Moments, settings: Settings) -> tuple[Fits, list[int]]:
    """The best fitting model found of each size, largest alpha first; and the sizes not found.

    For one target. Variables without a penalty count, though there is no choice about them.
    """
    scale = _Scale.of(moments, settings)
    rounds: list[Fits] = []

    def sizes(alphas: Array) -> NDArray[np.intp]:
        rounds.append(fit_alphas([moments], alphas, settings)[0])
        return rounds[-1].n_nonzero - scale.always

    _, missing = every_size(sizes, scale.guess, scale.full)
    found = Fits(
        np.concatenate([fits.alphas for fits in rounds], axis=1),
        np.concatenate([fits.coefs for fits in rounds], axis=1),
        np.concatenate([fits.intercepts for fits in rounds], axis=1),
        max(fits.n_iter for fits in rounds),
    )
    rss = np.asarray(moments.target(0).rss(found.coefs[0].T, found.intercepts[0]))
    order = np.lexsort((-found.alphas[0], rss, found.n_nonzero[0]))
    first = np.unique(found.n_nonzero[0][order], return_index=True)[1]
    best = order[first]
    best = best[np.argsort(-found.alphas[0, best], kind="stable")]
    return found.take(best), [size + scale.always for size in missing]


@dataclass(frozen=True)
class _Scale:
    """Where to look for alphas.

    Attributes
    ----------
    guess : ndarray of shape (n_targets,)
        The largest drop of the residual sum of squares by one variable.
    full : int
        How many penalized variables a model may have: no more than the rows can tell apart.
    always : int
        How many variables have no penalty, and are in every model.
    """

    guess: Array
    full: int
    always: int

    @classmethod
    def of(cls, moments: Moments, settings: Settings) -> "_Scale":
        units = _units(moments, settings)
        equations = _equations(units, moments, np.ones(1), settings)
        size = np.diag(equations.S)
        penalized = _factor(settings, len(size)) > 0
        always = int(np.count_nonzero((size > 0) & ~penalized))
        used = (size > 0) & penalized
        drop = np.max(equations.q[:, used] ** 2 / size[used], axis=1, initial=0.0)
        # A target that no variable explains has alphas of the size of its own variation.
        drop = np.where(drop > 0, drop, np.where(np.atleast_1d(moments.yty) > 0, 1.0, 0.0))
        guess = drop * units.scale_y**2
        rank = moments.n_samples - settings.fit_intercept - always
        full = min(int(np.count_nonzero(used)), max(rank, 0))
        return cls(np.where(guess > 0, guess, 1.0), full, always)
