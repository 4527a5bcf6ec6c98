"""Fits for alphas: given ones, a grid from the null to the full model, or one for every size.

Moments become scaled problems; the solvers' coefficients come back in the units of the data. The
ends of a grid and the alphas of a size are found by trial: the engine fits many alphas for little
more than the cost of one, so each round tries many. The search knows the models only by `Sizes`, a
function from alphas (a row for each target) to the numbers of selected variables.
"""

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparsestep.moments.moments import Moments
from sparsestep.moments.table import real_numbers, whole_number
from sparsestep.reference import sparsestep_reference
from sparsestep.solvers.engine import solve_all
from sparsestep.solvers.polish import polished
from sparsestep.solvers.reference_rows import sparsestep_reference_rows
from sparsestep.solvers.scaled_problem import ScaledProblem, Settings
from sparsestep.solvers.wide import solve_wide, supported_size
from sparsestep.threads import one_blas_thread

Array = NDArray[np.float64]
Sizes = Callable[[Array], NDArray[np.intp]]

# The largest alpha tried, as a multiple of the first guess.
_MOST_TIMES = 4.0**18
# The alphas of a round while the ends are looked for.
_ROUND = 6
# Smaller guesses are raised to this one: products with the factors above must not underflow.
_SMALLEST_GUESS = 1e-290
# Where the rank is less than the columns each alpha costs more, and both ends lie near each other.
_WIDE: dict[str, Any] = {
    "ratio": 2.0**0.125,
    "least_share": 1e-6,
    "narrowest": 1e-3,
    "most_alphas": 400,
}


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
    first = data[0].moments if isinstance(data[0], ScaledProblem) else data[0]
    told = _told(len(data) * np.size(first.mean_y) * alphas.shape[-1], settings)
    dense = [k for k, each in enumerate(data) if not each.is_thin]
    thin = [[k] for k, each in enumerate(data) if each.is_thin]
    found: dict[int, list[Fits]] = {}

    def fit(some: list[int]) -> None:
        models = _fit([data[k] for k in some], alphas, settings, told)
        found.update(zip(some, models, strict=True))

    if dense:
        fit(dense)
    # One at a time for each thread, so that no more copies of rows are made than are in use.
    if settings.n_jobs == 1 or len(thin) < 2:
        for each in thin:
            fit(each)
    else:
        with one_blas_thread(), ThreadPoolExecutor(max_workers=settings.n_jobs) as pool:
            list(pool.map(fit, thin))
    return [found[k] for k in range(len(data))]


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


def _fit(
    data: Sequence[Moments | ScaledProblem],
    alphas: Array,
    settings: Settings,
    told: Callable[[int], None],
) -> list[list[Fits]]:
    """The models of each target of moments that are all thin, or all dense."""
    problems = [
        each if isinstance(each, ScaledProblem) else ScaledProblem.of(each, settings)
        for each in data
    ]
    scaled = [problem.alphas(alphas) for problem in problems]
    pairs = list(zip(problems, scaled, strict=True))
    if settings.solver == "reference":
        found = [_literally(*pair, settings) for pair in pairs]
    elif problems[0].is_thin:
        found = [solve_wide(problem.working_sets, row, told) for problem, row in pairs]
    else:
        for each in data:
            if isinstance(each, ScaledProblem):
                each.gram.prepare()
        grams = [problem.gram for problem in problems]
        coefs, n_iter = solve_all(grams, scaled, settings.schedule, settings.n_jobs, told)
        found = [(each, n_iter) for each in coefs]
    fits = []
    for (problem, row), (b, n_iter) in zip(pairs, found, strict=True):
        if settings.polish is not None:
            b = polished(problem, row, b, told)
        fits.append(_by_target(problem, alphas, b, n_iter))
    return fits


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
        factor = np.full(moments.n_features, np.inf)
        factor[sets.sets[0]] = problem.factor[sets.sets[0]]
        problem = replace(problem, factor=factor)
    # The last step at each gamma overwrites those before it.
    steps: dict[float, Array] = {}
    final = _literally(problem, alphas, settings, steps.__setitem__)[0][0, 0]
    return np.array(list(steps)), np.column_stack([*list(steps.values())[:-1], final])


def swapped(problem: ScaledProblem, fits: Fits, sizes: Sequence[int]) -> Fits:
    """Models of one target and these sizes that no swap of two variables improves."""
    alphas, coefs = problem.alphas(fits.alphas), problem.scaled(fits.coefs[np.newaxis])
    coefs = polished(problem, alphas, coefs, sizes=sizes)
    return _by_target(problem, fits.alphas, coefs, fits.n_iter)[0]


def first_least(values: Array, among: NDArray[np.intp], slack: float) -> int:
    """The first index `among` some whose value exceeds the smallest there by at most `slack`.

    Neighbouring alphas often give the same model, whose values then differ by rounding only. The
    first of them is taken, so that the choice does not depend on the last digit.
    """
    some = values[among]
    return int(among[np.argmax(some <= some.min() + slack)])


def best_fitting(rss: Array, among: NDArray[np.intp]) -> int:
    """The first index `among` some of the smallest residual sum of squares, but for rounding."""
    return first_least(rss, among, 1e-9 * float(rss.max()))


# -- which alphas ------------------------------------------------------------------------------


@dataclass(frozen=True)
class SearchRange:
    """Where to look for alphas, how closely and how far."""

    # For each target the largest drop of the residual sum of squares by one variable, over its
    # penalty factor.
    guess: Array
    # Number of penalized variables of the largest model: at most the rank of the columns; of wide
    # data the number that the rows support (`supported_size`), unless more are asked for.
    full: int
    always: int = 0  # number of variables without a penalty, which are in every model
    spread: float = 1.0  # the largest penalty factor over the smallest
    ratio: float = 4.0  # of neighbouring alphas while the ends are looked for
    # The smallest alpha tried, as a share of the largest: below it double precision tells no more.
    least_share: float = 1e-16
    narrowest: float = 1e-6  # the search for sizes stops at gaps of this size in log(alpha) ...
    most_alphas: int = 4000  # ... and at this number of alphas

    @classmethod
    def of(cls, problem: ScaledProblem, largest: int | None = None) -> "SearchRange":
        """That of a problem; `largest` is the size asked for, if it is only one."""
        moments, may, factor = problem.moments, problem.may, problem.factor
        always = int(np.count_nonzero(may & (factor == 0)))
        used = may & (factor > 0)
        size, factor = problem.diag[used], factor[used]
        least, most = factor.min(initial=np.inf), factor.max(initial=0.0)
        with np.errstate(over="ignore"):
            drop = (problem.q[:, used] / np.sqrt(size)) ** 2 / factor
            drop = np.max(drop, axis=1, initial=0.0)
            # For a target that no variable explains, its variance instead.
            guess = np.where(drop > 0, drop, 1.0) * problem.scale_y**2
        rank = problem.rank - always
        full = min(len(factor), max(rank, 0))
        wide = problem.is_thin and rank < len(factor)
        if wide:
            supported = supported_size(rank + moments._df_of_means, len(factor))
            full = min(full, supported if largest is None else max(largest - always, 0))
        guess = guess.clip(_SMALLEST_GUESS, 1.0 / _SMALLEST_GUESS)
        spread = float(most / least) if used.any() else 1.0
        return cls(guess, full, always, spread, **(_WIDE if wide else {}))


def one_alpha(alpha: Any) -> Array:
    """The parameter `alpha`, as the only one of an array."""
    if isinstance(alpha, bool) or not isinstance(alpha, Real):
        raise ValueError(f"alpha must be a number; got {alpha!r}.")
    return alpha_values([alpha], "alpha")


def alpha_values(alphas: Any, name: str) -> Array:
    """Alphas as numbers, largest first, each once."""
    values = real_numbers(alphas, name)
    if values is None or values.ndim != 1 or not len(values):
        raise ValueError(f"{name} must be how many to try, or a list of numbers; got {alphas!r}.")
    wrong = np.flatnonzero(~(np.isfinite(values) & (values >= 0)))
    if len(wrong):
        raise ValueError(f"{name} must be finite and not negative; got {values[wrong[0]]}.")
    return np.unique(values)[::-1]


def alphas_wanted(alphas: Any) -> int | Array:
    """The parameter `alphas`: how many, or which."""
    if isinstance(alphas, Integral):
        return whole_number("alphas", alphas, least=2)
    return alpha_values(alphas, "alphas")


def alpha_grid(sizes: Sizes, within: SearchRange, n_alphas: int) -> Array:
    """Alphas, (n_targets, n_alphas), largest first, spaced evenly in the logarithm.

    The largest alpha gives the null model, and the smallest keeps at least `within.full` variables;
    if no alpha keeps that many, then as many as any.
    """
    return np.geomspace(*_ends(sizes, within), n_alphas, axis=1)


def _ends(sizes: Sizes, within: SearchRange) -> tuple[Array, Array]:
    """For each target the smallest alpha tried of the null model, and the largest of the full one.

    Where no alpha gives the null or the full model, the alphas of the smallest and the largest.
    """
    guess, full, ratio = within.guess, within.full, within.ratio
    top, least = guess, np.full(len(guess), np.iinfo(np.intp).max)
    climb = guess[:, np.newaxis] * ratio ** np.arange(_ROUND)
    while np.any(least > 0) and np.all(climb[:, 0] <= _MOST_TIMES * guess):
        top, least = _better(top, least, climb, sizes(climb))
        climb = climb * ratio**_ROUND
    bottom, most = top / ratio, np.full(len(top), -1)
    descent = top[:, np.newaxis] * ratio ** -np.arange(1.0, _ROUND + 1)
    least_share = within.least_share / within.spread
    while np.any(most < full) and np.all(descent[:, 0] > least_share * top):
        kept = np.minimum(sizes(descent), full)
        bottom, fewest = _better(bottom, -most, descent, -kept)
        most = -fewest
        descent = descent * ratio**-_ROUND
    return top, bottom


def _better(
    best: Array, fewest: NDArray[np.intp], alphas: Array, kept: NDArray[np.intp]
) -> tuple[Array, NDArray[np.intp]]:
    """For each target the alpha of the fewest variables: `best`, unless another has fewer."""
    at = np.arange(len(best)), np.argmin(kept, axis=1)
    improves = kept[at] < fewest
    return np.where(improves, alphas[at], best), np.where(improves, kept[at], fewest)


def every_size(
    sizes: Sizes, within: SearchRange, only: int | None = None
) -> tuple[Array, list[int]]:
    """For one target alphas, largest first, of every model size; and the sizes that none has.

    Each round fills the gaps between neighbouring alphas whose sizes differ by more than one, until
    the gaps that remain are too narrow. Sizes need not fall as alpha grows, so a size found
    anywhere counts. If `only` one size is asked for, only the gaps around that size are filled.
    """
    every = np.arange(within.full + 1)
    alphas = alpha_grid(sizes, within, 4 * _ROUND + 1)[0]
    kept = sizes(alphas[np.newaxis])[0]
    while len(alphas) < within.most_alphas:
        missing = np.setdiff1d(every, kept)
        low, high = np.minimum(kept[:-1], kept[1:]), np.maximum(kept[:-1], kept[1:])
        absent = np.searchsorted(missing, high) - np.searchsorted(missing, low, side="right")
        apart = np.log(alphas[:-1] / alphas[1:]) > within.narrowest
        asked = True if only is None else (low <= only) & (only <= high)
        gaps = np.flatnonzero((absent > 0) & apart & asked)
        if not len(gaps):
            break
        new = np.concatenate(
            [np.geomspace(alphas[g], alphas[g + 1], min(absent[g], 8) + 2)[1:-1] for g in gaps]
        )
        alphas = np.concatenate([alphas, new])
        kept = np.concatenate([kept, sizes(new[np.newaxis])[0]])
        order = np.argsort(-alphas, kind="stable")
        alphas, kept = alphas[order], kept[order]
    return alphas, np.setdiff1d(every, kept).tolist()


def alphas_to_fit(problem: ScaledProblem, alphas: int | Array, settings: Settings) -> Array:
    """The alphas given; or, if only their number is, a grid for each target as `alpha_grid`."""
    if not isinstance(alphas, int):
        return alphas
    penalized = settings.factors(problem.moments.n_features) > 0
    # Progress is reported for the fits on the grid, not for the few that find its ends.
    settings = replace(settings, watch=None)

    def sizes(alphas: Array) -> NDArray[np.intp]:
        [fits] = fit_alphas([problem], alphas, settings)
        return np.array([np.count_nonzero(each.coefs[:, penalized], axis=1) for each in fits])

    return alpha_grid(sizes, SearchRange.of(problem), alphas)


def fit_every_size(
    problem: ScaledProblem, settings: Settings, only: int | None = None
) -> tuple[Fits, tuple[int, ...]]:
    """The best fitting model found of each size, largest alpha first; and the sizes not found.

    For one target. Variables without a penalty count, though every model has them. If `only` one
    size is asked for, other sizes are found by chance. Polishing swaps variables at each size: to
    lower the exact objective would lose sizes that the loop has.
    """
    within = SearchRange.of(problem, only)
    plain = replace(settings, polish=None)
    rounds: list[Fits] = []

    def sizes(alphas: Array) -> NDArray[np.intp]:
        rounds.append(fit_alphas([problem], alphas, plain)[0][0])
        return rounds[-1].n_nonzero[np.newaxis] - within.always

    _, missing = every_size(sizes, within, None if only is None else only - within.always)
    found = Fits(
        np.concatenate([fits.alphas for fits in rounds]),
        np.concatenate([fits.coefs for fits in rounds]),
        np.concatenate([fits.intercepts for fits in rounds]),
        max(fits.n_iter for fits in rounds),
    )
    rss = np.asarray(problem.moments.rss(found.coefs.T, found.intercepts))
    by_alpha = np.argsort(-found.alphas, kind="stable")
    kept = found.n_nonzero[by_alpha]
    best = np.array([best_fitting(rss, by_alpha[kept == size]) for size in np.unique(kept)])
    if kept[0] == within.always:
        # The smallest alpha of the null model shows where the first variable enters.
        more = np.flatnonzero(kept > within.always)
        best[0] = by_alpha[more[0] - 1 if len(more) else 0]
    found = found.take(best[np.argsort(-found.alphas[best], kind="stable")])
    if settings.polish is not None:
        found = swapped(problem, found, found.n_nonzero.tolist())
    return found, tuple(size + within.always for size in missing)


def fit_size(problem: ScaledProblem, size: int, settings: Settings) -> Fits:
    """For one target the best fitting model found of this size, or of a size near it.

    The swaps start from the loop's model of this size, or of the nearest that it has. Its alpha is
    returned.
    """
    fits, _ = fit_every_size(problem, replace(settings, polish=None), only=size)
    nearest = np.argmin(np.abs(fits.n_nonzero - size), keepdims=True)
    return swapped(problem, fits.take(nearest), [size])
