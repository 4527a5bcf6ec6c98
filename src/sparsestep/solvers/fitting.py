"""Coefficients in the data's units for moments and alphas: units, engine, polish, and back."""

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparsestep.moments.moments import Moments
from sparsestep.reference import sparsestep_reference
from sparsestep.solvers.engine import solve_all
from sparsestep.solvers.polish import RowGram, polish_path
from sparsestep.solvers.reference_rows import sparsestep_reference_rows
from sparsestep.solvers.scaled_problem import ScaledProblem, Settings
from sparsestep.solvers.wide import solve_wide, supported_size
from sparsestep.threads import one_blas_thread, side_by_side

Array = NDArray[np.float64]

# Below this many columns starting threads costs more than scaling.
_MANY_COLUMNS = 100


@dataclass(frozen=True)
class Fits:
    """The models of one target for many alphas."""

    alphas: Array  # (n_alphas,)
    coefs: Array  # (n_alphas, m)
    intercepts: Array  # (n_alphas,)
    n_iter: int  # majorization steps, the most that any alpha of any target took

    @property
    def n_nonzero(self) -> NDArray[np.intp]:
        """Number of variables selected by each model."""
        return np.asarray(np.count_nonzero(self.coefs, axis=1))

    def take(self, index: NDArray[np.intp]) -> "Fits":
        """The models of some of the alphas."""
        return Fits(self.alphas[index], self.coefs[index], self.intercepts[index], self.n_iter)


def fit_alphas(
    data: Sequence[Moments | ScaledProblem], alphas: Array, settings: Settings
) -> list[list[Fits]]:
    """For each of `data` the models of each target; `alphas` are common or a row per target.

    Moments are made a `ScaledProblem` here. One that is given is there to be solved again for other
    alphas, so what its matrix needs for that is kept.
    """
    told = _told(len(data) * np.size(data[0].mean_y) * alphas.shape[-1], settings)
    dense = [k for k, each in enumerate(data) if not each.is_thin]
    thin = [k for k, each in enumerate(data) if each.is_thin]
    fits = _fit_dense([data[k] for k in dense], alphas, settings, told)
    found = dict(zip(dense, fits, strict=True))
    # One at a time for each thread, so that no more copies of rows are made than are in use.
    if settings.n_jobs == 1 or len(thin) < 2:
        found |= {k: _fit_thin(data[k], alphas, settings, told) for k in thin}
    else:
        with one_blas_thread(), ThreadPoolExecutor(max_workers=settings.n_jobs) as pool:
            thin_fits = pool.map(lambda k: _fit_thin(data[k], alphas, settings, told), thin)
            found |= dict(zip(thin, thin_fits, strict=True))
    return [found[k] for k in range(len(data))]


def _problem(data: Moments | ScaledProblem, settings: Settings) -> ScaledProblem:
    """The problem of moments, unless it is there already."""
    return data if isinstance(data, ScaledProblem) else ScaledProblem.of(data, settings)


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
    data: Moments | ScaledProblem, alphas: Array, settings: Settings, told: Callable[[int], None]
) -> list[Fits]:
    """The models of each target of moments with fewer rows than columns."""
    problem = _problem(data, settings)
    scaled = problem.alphas(alphas)
    if settings.solver == "reference":
        coefs, n_iter = _literally(problem, scaled, settings)
    else:
        coefs, n_iter = solve_wide(problem.working_sets, scaled, told)
    if settings.polish is not None:
        coefs = _polished(problem, scaled, coefs, settings, told)
    return _by_target(problem, alphas, coefs, n_iter)


def _fit_dense(
    data: Sequence[Moments | ScaledProblem],
    alphas: Array,
    settings: Settings,
    told: Callable[[int], None],
) -> list[list[Fits]]:
    """The models of each target of moments with their matrix, all at once."""
    if not data:
        return []
    many = len(data) > 1 and len(data[0].mean_x) >= _MANY_COLUMNS
    problems = side_by_side(lambda each: _problem(each, settings), data, many)
    scaled = [problem.alphas(alphas) for problem in problems]
    if settings.solver == "reference":
        found = [_literally(*each, settings) for each in zip(problems, scaled, strict=True)]
        coefs, n_iter = [each for each, _ in found], found[0][1]
    else:
        grams = [problem.gram for problem in problems]
        for each in data:
            if isinstance(each, ScaledProblem):
                each.gram.prepare()
        coefs, n_iter = solve_all(grams, scaled, settings.schedule, settings.n_jobs, told)
    if settings.polish is not None:
        triples = zip(problems, scaled, coefs, strict=True)
        coefs = [_polished(*each, settings, told) for each in triples]
    pairs = zip(problems, coefs, strict=True)
    return [_by_target(problem, alphas, c, n_iter) for problem, c in pairs]


def _by_target(problem: ScaledProblem, alphas: Array, coefs: Array, n_iter: int) -> list[Fits]:
    """The models of each target in the units of the data."""
    rows = zip(np.broadcast_to(alphas, coefs.shape[:2]), *problem.back(coefs), strict=True)
    return [Fits(*row, n_iter) for row in rows]


# Beyond the range of floats a penalty is infinite, and the loop leaves the variable out.
@np.errstate(over="ignore")
def _literally(
    problem: ScaledProblem,
    alphas: Array,
    settings: Settings,
    callback: Callable[[float, Array], object] | None = None,
) -> tuple[Array, int]:
    """The literal loop for each target and alpha, and its number of steps."""
    schedule = settings.schedule
    how: dict[str, Any] = {"penalty_factor": problem.factor, "callback": callback}
    loop = sparsestep_reference_rows if problem.is_thin else sparsestep_reference
    coefs = [
        [loop(problem.left, right, alpha, **how, **vars(schedule)) for alpha in row]
        for right, row in zip(problem.right, alphas, strict=True)
    ]
    return np.array(coefs).reshape(*alphas.shape, -1), len(schedule.gammas()) * schedule.t_max


# Several threads wait for each other longer than the steps take.
@one_blas_thread()
def literal_steps(moments: Moments, alpha: float, settings: Settings) -> tuple[Array, Array]:
    """The gammas of the literal loop, and the coefficients after each, (m, n_gammas).

    For one target, in the units and on the columns of a fit: what may not enter stays zero.
    """
    problem = ScaledProblem.of(moments, settings)
    alphas = problem.alphas(np.array([alpha]))
    if problem.is_thin and settings.solver != "reference" and alpha > 0:
        [sets] = problem.working_sets
        sets.solve(alphas[0])
        outside = np.ones(moments.n_features, dtype=bool)
        outside[sets.sets[0]] = False
        problem.left[:, outside] = 0.0
    # The last step at each gamma overwrites those before it.
    steps: dict[float, Array] = {}
    final = _literally(problem, alphas, settings, steps.__setitem__)[0][0, 0]
    return np.array(list(steps)), np.column_stack([*list(steps.values())[:-1], final])


# On matrices as small as these a second thread of linear algebra costs more than it saves.
@one_blas_thread()
def _polished(
    problem: ScaledProblem,
    alphas: Array,
    coefs: Array,
    settings: Settings,
    told: Callable[[int], None],
    sizes: Sequence[int] | None = None,
) -> Array:
    """Each model after add, drop and swap, in units in which columns and ``X'y`` are of size 1.

    Squares of the numbers as given may be beyond the range of floats. With `sizes`, see
    `polish_path`.
    """
    length = np.sqrt(problem.diag)
    length[length == 0] = 1.0
    S: Array | RowGram
    most = None
    if problem.is_thin:
        S = RowGram(problem.left / length)
        rank = np.linalg.matrix_rank(S.A @ S.A.T, hermitian=True)
        most = supported_size(int(rank) + settings.fit_intercept, coefs.shape[2])
    else:
        S = problem.left / length / length[:, np.newaxis]
    out = np.empty_like(coefs)
    for t, q in enumerate(problem.q / length):
        size = np.abs(q).max(initial=0.0) or 1.0
        with np.errstate(over="ignore"):
            prices = alphas[t] / size / size
        units = size / length
        polished = polish_path(S, q / size, prices, problem.factor, coefs[t] / units, sizes, most)
        out[t] = polished * units
        told(len(prices))
    return out


def swapped(moments: Moments, fits: Fits, sizes: Sequence[int], settings: Settings) -> Fits:
    """Models of one target and these sizes that no swap of two variables improves."""
    problem = ScaledProblem.of(moments, settings)
    alphas, coefs = problem.alphas(fits.alphas), problem.scaled(fits.coefs[np.newaxis])
    coefs = _polished(problem, alphas, coefs, settings, lambda count: None, sizes)
    return _by_target(problem, fits.alphas, coefs, fits.n_iter)[0]
