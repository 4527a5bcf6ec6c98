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
    alphas : ndarray of shape (n_alphas,)
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
            self.alphas[index], self.coefs[:, index], self.intercepts[:, index], self.n_iter
        )


def fit_alphas(moments: Sequence[Moments], alphas: Array, settings: Settings) -> list[Fits]:
    """The models of each of `moments` for each of `alphas`."""
    units = [
        Units.of(each, fit_intercept=settings.fit_intercept, standardize=settings.standardize)
        for each in moments
    ]
    equations = [u.equations(each, alphas) for u, each in zip(units, moments, strict=True)]
    if settings.solver == "reference":
        coefs = [_literally(eq, settings) for eq in equations]
        n_iter = len(settings.schedule.gammas()) * settings.schedule.t_max
    else:
        coefs, n_iter = solve_all(
            equations, settings.schedule, settings.penalty_factor, settings.n_jobs
        )
    if settings.polish is not None:
        coefs = [_polished(eq, c, settings) for eq, c in zip(equations, coefs, strict=True)]
    return [Fits(alphas, *u.back(c), n_iter) for u, c in zip(units, coefs, strict=True)]


def _literally(equations: NormalEquations, settings: Settings) -> Array:
    """The literal loop for each target and alpha."""
    m = len(equations.S)
    factor = np.ones(m) if settings.penalty_factor is None else settings.penalty_factor.copy()
    factor[later_copies(equations.S)] = np.inf
    return np.array(
        [
            [
                sparsestep_reference(
                    equations.S,
                    q,
                    alpha,
                    penalty_factor=factor,
                    **vars(settings.schedule),
                )
                for alpha in alphas
            ]
            for q, alphas in zip(equations.q, equations.alphas, strict=True)
        ]
    )


def _polished(equations: NormalEquations, coefs: Array, settings: Settings) -> Array:
    """Each model after add, drop and swap; a support met before is not searched from again."""
    m = len(equations.S)
    factor = np.ones(m) if settings.penalty_factor is None else settings.penalty_factor
    out = np.empty_like(coefs)
    for t, q in enumerate(equations.q):
        for r, alpha in enumerate(equations.alphas[t]):
            prices = np.where(
                np.isinf(factor), np.inf, alpha * np.where(np.isinf(factor), 0, factor)
            )
            out[t, r] = polish_support(equations.S, q, prices, coefs[t, r] != 0)
    return out


def fit_grid(moments: Moments, n_alphas: int, settings: Settings) -> Array:
    """An automatic grid of `n_alphas`, largest first; see `grid.alpha_grid`."""
    guess, full = _scale(moments, settings)
    return alpha_grid(lambda alphas: _kept(moments, alphas, settings), guess, full, n_alphas)


def fit_every_size(moments: Moments, settings: Settings) -> tuple[Fits, list[int]]:
    """The best fitting model found of each size, largest alpha first; and the sizes not found."""
    guess, full = _scale(moments, settings)
    rounds: list[Fits] = []

    def sizes(alphas: Array) -> NDArray[np.intp]:
        rounds.append(fit_alphas([moments], alphas, settings)[0])
        return np.asarray(rounds[-1].n_nonzero.max(axis=0))

    _, missing = every_size(sizes, guess, full)
    found = Fits(
        np.concatenate([fits.alphas for fits in rounds]),
        np.concatenate([fits.coefs for fits in rounds], axis=1),
        np.concatenate([fits.intercepts for fits in rounds], axis=1),
        max(fits.n_iter for fits in rounds),
    )
    rss = np.asarray(moments.rss(found.coefs[0].T))
    order = np.lexsort((-found.alphas, rss, found.n_nonzero[0]))
    first = np.unique(found.n_nonzero[0][order], return_index=True)[1]
    best = order[first]
    return found.take(best[np.argsort(-found.alphas[best], kind="stable")]), missing


def _kept(moments: Moments, alphas: Array, settings: Settings) -> NDArray[np.intp]:
    """The number of penalized variables that each alpha keeps, the most of any target."""
    fits = fit_alphas([moments], alphas, settings)[0]
    factor = settings.penalty_factor
    penalized = slice(None) if factor is None else factor > 0
    return np.asarray(np.count_nonzero(fits.coefs[:, :, penalized], axis=2).max(axis=0))


def _scale(moments: Moments, settings: Settings) -> tuple[float, int]:
    """The largest drop of the rss by one variable, the scale of alphas; the full model's size."""
    q = np.reshape(moments.xty, (moments.n_features, -1))
    used = moments.diag > 0
    factor = settings.penalty_factor
    if factor is not None:
        used &= (factor > 0) & np.isfinite(factor)
    drop = q[used] ** 2 / moments.diag[used, np.newaxis]
    guess = float(drop.max(initial=0.0)) or float(np.max(moments.yty)) or 1.0
    return guess, int(np.count_nonzero(used))
