"""Algorithm 1 for many problems at once: all alphas, all targets, all Gram matrices.

For each problem the literal loop of `reference.py` computes, at each gamma and `t_max` times,

    d_j = alpha_j gamma^2 / (b_j^2 + gamma^2)^2,      b = (S + diag(d))^-1 q.

Only d carries anything from one step to the next. So the engine starts late
(`schedule.late_start`), solves all problems' steps together (`linear.GramFamily.solve`) as exactly
as the next d needs, and stops a problem once each of its coefficients is decided
(`schedule.decided`): the answer is then least squares on the support. Along the way it bounds the
error it carries: an error in b_j enters the next b_j multiplied by

    gain_j = 4 b_j^2 / (b_j^2 + gamma^2) * d_j / (tau_j + d_j)  <  4.

A coefficient that lingers near the border between in and out collects gain upon gain. Where the
bound reaches a fifth of the coefficient, or the least squares contradict a decision, the problem is
solved again with more care, and at last by the literal loop itself.

Inside, problems are in canonical units: columns of unit length, the largest ``|q_j|`` equal to 1.
"""

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import dataclass, fields, replace
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparsestep.deflation import Held
from sparsestep.equations import NormalEquations, negligible
from sparsestep.linear import GramFamily
from sparsestep.products import by_gram
from sparsestep.reference import sparsestep_reference
from sparsestep.schedule import BOLD, CAREFUL, CLOSE, WARY, Rules, Schedule, decided, late_start
from sparsestep.threads import one_blas_thread

__all__ = ["solve_all"]

Array = NDArray[np.float64]
Floats = NDArray[Any]
Mask = NDArray[np.bool_]
Index = NDArray[np.intp]

# From this size on a single matrix is worth all threads of the BLAS; below it they are in the way.
_LARGE = 1500
# Blocks of about this many coefficients: enough that the calls to NumPy do not count, few enough
# for the cache. Below it a second thread only waits for the first to let go of the interpreter.
_BLOCK = 300_000
# The multiples of this, but for whole numbers, are spread evenly over 0 to 1.
_GOLDEN = (np.sqrt(5.0) - 1.0) / 2.0
# From this size on threads share the factorizations of a block. Smaller ones are so short that
# threads would mostly wait for the interpreter between them.
_SHARED = 150
# Up to this size the few rows in doubt are soonest solved by factorizations ...
_SMALL = 256
# ... and of this size so few by the literal loop.
_TINY, _FEW = 32, 3
# Columns that leave less of each other than this are told apart by rounding, if at all: that of the
# literal loop, however small the penalty is.
_DEPENDENT = 1e-12
# Largest carried error, relative to the coefficient, that cannot turn a decision around.
_DOUBT = 0.2
# Where the end of the loop shows, the steps at so many gammas are taken from least squares.
_LAST = 3
# Numbers beyond the range of floats leave a row undecided, and so to the literal loop.
_IGNORED: dict[str, Any] = {"over": "ignore", "invalid": "ignore", "divide": "ignore"}


def solve_all(
    equations: Sequence[NormalEquations],
    schedule: Schedule,
    penalty_factor: Array | None = None,
    n_jobs: int = 1,
    told: Callable[[int], None] = lambda count: None,
) -> tuple[list[Array], int]:
    """Coefficients of shape (n_targets, n_alphas, m) for each of `equations`, and the steps taken.

    `n_jobs` threads share the work, each with one thread of the BLAS; but for rounding, the numbers
    do not depend on it. Any of them calls `told` with how many more problems are solved, or nearly.
    """
    m = len(equations[0].S)
    factor = np.ones(m) if penalty_factor is None else penalty_factor
    if m == 0 or not any(eq.alphas.size for eq in equations):
        return [np.zeros((*eq.alphas.shape, m)) for eq in equations], 0
    blocks = _blocks(equations, n_jobs)
    work = [[replace(equations[k], alphas=equations[k].alphas[:, i]) for k, i in b] for b in blocks]
    alone = len(blocks) == 1 and m >= _LARGE
    with nullcontext() if alone else one_blas_thread():
        if n_jobs == 1 or (len(blocks) == 1 and m < _SHARED):
            results = [_solve_block(each, schedule, factor, told) for each in work]
        else:
            # Threads do not inherit what NumPy is to do about numbers out of range.
            with ThreadPoolExecutor(n_jobs, initializer=lambda: np.seterr(**_IGNORED)) as pool:
                if len(blocks) == 1:
                    results = [_solve_block(work[0], schedule, factor, told, pool.map)]
                else:
                    results = list(
                        pool.map(lambda each: _solve_block(each, schedule, factor, told), work)
                    )
    coefs = [np.empty((*eq.alphas.shape, m)) for eq in equations]
    for block, (found, _) in zip(blocks, results, strict=True):
        for (k, alphas), coef in zip(block, found, strict=True):
            coefs[k][:, alphas] = coef
    return coefs, max(steps for _, steps in results)


# A problem, and which of its alphas.
_Piece = tuple[int, Index]


def _blocks(equations: Sequence[NormalEquations], n_jobs: int) -> list[list[_Piece]]:
    """Problems in blocks alike in size, a multiple of `n_jobs` of them if the problems are large.

    With a block for each thread, a problem that falls between two is split: each takes some of its
    alphas, from all over the path, so that no thread waits for the others.
    """
    n_problems = len(equations)
    count = -(-sum(eq.alphas.size * len(eq.S) for eq in equations) // _BLOCK)
    count = min(n_problems, -(-count // n_jobs) * n_jobs if count > 1 else 1)
    ends = np.arange(count + 1) * n_problems / count
    blocks = []
    for low, high in pairwise(ends if count == n_jobs else np.floor(ends)):
        block = []
        for k in range(int(low), int(np.ceil(high))):
            spread = np.arange(equations[k].alphas.shape[1]) * _GOLDEN % 1
            alphas = np.flatnonzero((low - k <= spread) & (spread < high - k))
            if len(alphas):
                block.append((k, alphas))
        blocks.append(block)
    return [block for block in blocks if block]


@dataclass
class _Rows:
    """Problems in canonical units, one a row; `slot` says where each one's answer belongs."""

    slot: Index
    gram: Index  # ascending
    q: Array  # the right-hand sides there are, ...
    of: Index  # ... and which of them is each row's, ascending
    ols: Floats
    alpha: Floats  # alpha_j, shape (n_rows, m)
    unit: Floats  # gamma^2 times this is gamma^2 in the units of b_j
    b: Floats
    aim: Floats  # guess of what each b_j would be without its own penalty
    error: Floats  # bound on the error of b
    at: Index  # position in the schedule
    stubborn: Mask  # solved by factorization, not by iteration

    def astype(self, dtype: type[np.floating]) -> "_Rows":
        """The same rows with the numbers of the loop in another precision.

        Not q: rounded, it would move solutions along nearly collinear columns.
        """
        names = ("ols", "alpha", "unit", "b", "aim", "error")
        return replace(self, **{name: getattr(self, name).astype(dtype) for name in names})

    def take(self, which: Index | Mask) -> "_Rows":
        taken = (field.name for field in fields(self) if field.name != "q")
        return replace(self, **{name: getattr(self, name)[which] for name in taken})

    @property
    def right(self) -> Array:
        """The right-hand sides of these rows."""
        return self.q[self.of]


@np.errstate(**_IGNORED)
def _solve_block(
    equations: Sequence[NormalEquations],
    schedule: Schedule,
    factor: Array,
    told: Callable[[int], None],
    map: Callable[..., Iterable[None]] = map,
) -> tuple[list[Array], int]:
    """`solve_all` for problems few enough to be worked on together."""
    family, todo, back = _canonical(equations, factor, map)
    gammas = schedule.gammas()
    b = np.zeros_like(back)
    steps = 0
    # Without a penalty the least-norm solution depends on the units: it is found in the given ones.
    literal = []
    if not family.invertible:
        penalized = np.count_nonzero(todo.alpha, axis=1) > 0
        literal, todo = [todo.take(~penalized)], todo.take(penalized)
    first = WARY
    if family.well_conditioned:
        first = BOLD if family.is_mild else CLOSE
    for rules in (first, CAREFUL):
        if len(todo.slot) > (_FEW if rules is CAREFUL and b.shape[1] <= _TINY else 0):
            rows = _enter(todo, family, gammas, rules)
            end, doubtful, taken = _anneal(family, rows, gammas, schedule, rules, told)
            doubtful |= _finish(family, todo, end, gammas, schedule, back, rules)
            b[todo.slot[~doubtful]] = todo.b[~doubtful]
            todo = todo.take(doubtful)
            steps = max(steps, taken)
    b *= back
    b[(np.abs(b) < schedule.epsilon) & (factor > 0)] = 0.0

    ends = np.cumsum([0] + [eq.alphas.size for eq in equations])
    for rows in (*literal, todo):
        for slot, k in zip(rows.slot, rows.gram, strict=True):
            eq = equations[k]
            t, r = np.unravel_index(slot - ends[k], eq.alphas.shape)
            b[slot] = _literally(eq.S, eq.q[t], eq.alphas[t, r], schedule, factor)
            told(1)
            steps = len(gammas) * schedule.t_max
    coefs = [
        b[low:high].reshape(*eq.alphas.shape, b.shape[1])
        for eq, low, high in zip(equations, ends[:-1], ends[1:], strict=True)
    ]
    return coefs, steps


def _literally(S: Array, q: Array, alpha: float, schedule: Schedule, factor: Array) -> Array:
    """The literal loop; without a penalty all its steps are the same, and one is taken."""
    if alpha == 0:
        schedule = replace(schedule, gamma_0=1.0, gamma_stop=0.5, gamma_step=2.0, t_max=1)
    return sparsestep_reference(S, q, alpha, penalty_factor=factor, **vars(schedule))


def _canonical(
    equations: Sequence[NormalEquations], factor: Array, map: Callable[..., Iterable[None]]
) -> tuple[GramFamily, _Rows, Array]:
    """The family of scaled matrices, the scaled problems, and the scales that map b back."""
    grams, parts = [], []
    n_targets = 0
    for k, eq in enumerate(equations):
        length = np.sqrt(np.diag(eq.S))
        used = (length > 0) & np.isfinite(factor)
        # A column that may not enter becomes one that explains nothing; the others keep place.
        inverse = np.divide(1.0, length, out=np.zeros_like(length), where=used)
        S = eq.S * inverse
        S *= inverse[:, np.newaxis]
        np.fill_diagonal(S, 1.0)
        grams.append(S)
        length[~used] = length.max(initial=0.0) or 1.0
        q = eq.q * inverse
        size = np.abs(q).max(axis=1, initial=0.0)[:, np.newaxis]
        size[size == 0] = 1.0
        each = np.repeat(np.arange(len(q)), eq.alphas.shape[1])
        alpha = eq.alphas.reshape(-1, 1) / size[each] ** 2
        parts.append(
            (
                np.full(len(q), k),
                q / size,
                n_targets + each,
                alpha * np.where(np.isfinite(factor), factor, 1.0),
                ((length / size) ** 2)[each],
                (size * inverse)[each],
            )
        )
        n_targets += len(q)
    family = GramFamily(grams, map)
    gram, q, of, alpha, unit, back = (np.concatenate(arrays) for arrays in zip(*parts, strict=True))
    ols = family.unpenalized(gram, q)[of]
    slot, empty, no = np.arange(len(of)), np.empty(len(of)), np.zeros(len(of), dtype=bool)
    rows = _Rows(slot, gram[of], q, of, ols, alpha, unit, empty, empty, empty, slot, no)
    return family, rows, back


def _enter(rows: _Rows, family: GramFamily, gammas: Array, rules: Rules) -> _Rows:
    """The rows at their late start, with a bound on what they missed."""
    largest = np.sqrt((rows.ols**2 / rows.unit).max(axis=1, initial=0.0))
    largest[family.smallest[rows.gram] == 0] = np.inf
    alpha = (rows.alpha / rows.unit).max(axis=1, initial=0.0)
    at, from_zero = late_start(gammas, alpha, largest, family.smallest[rows.gram], rules)
    b = np.where(from_zero[:, np.newaxis], 0.0, rows.ols)
    error = np.abs(b) * rows.alpha / (gammas[at, np.newaxis] ** 2 * rows.unit)
    error /= family.tau[rows.gram]
    if not family.well_conditioned:
        later, ridge, missed = _after_ridge(rows, family, gammas, rules)
        better = later > at
        at[better], b[better], error[better] = later[better], ridge[better], missed[better]
    stubborn = np.full(len(b), rules is CAREFUL and b.shape[1] <= _SMALL)
    rows = replace(
        rows,
        slot=np.arange(len(b)),
        b=b,
        aim=rows.ols.copy(),
        error=error,
        at=at,
        stubborn=stubborn,
    )
    single = rules in (BOLD, CLOSE) and _is_moderate(rows, gammas)
    return rows.astype(np.float32) if single else rows


def _is_moderate(rows: _Rows, gammas: Array) -> bool:
    """Whether single precision holds the widths and penalties of the whole schedule."""
    unit = np.array([rows.unit.min(), rows.unit.max()])
    squares = gammas[[0, -1], np.newaxis] ** 2
    width = squares * unit
    alpha = rows.alpha[rows.alpha > 0]
    alpha = np.array([alpha.min(initial=1.0), alpha.max(initial=1.0)])
    numbers = np.concatenate([unit, squares.ravel(), width.ravel(), alpha])
    crest = alpha.max() / width
    return bool(max(numbers.max(), crest.max()) < 1e35 and numbers.min() > 1e-35)


def _after_ridge(
    rows: _Rows, family: GramFamily, gammas: Array, rules: Rules
) -> tuple[Index, Array, Array]:
    """Where in the schedule steps cease to be ridge regressions, the last of these, its error.

    They are, each with one penalty for all, while gamma is far above the coefficients. These are,
    in units where gamma is the same for all, ``V (w + alpha / gamma^2)^-1 V'q`` with eigenvalues w
    and eigenvectors V of the matrix: nearly collinear columns leave least squares far behind long
    before their penalty matters. Rows with different penalties, or with numbers beyond the range of
    floats, are not looked at.
    """
    at = np.zeros(len(rows.gram), dtype=np.intp)
    q = rows.right
    b = np.zeros_like(q)
    alpha = rows.alpha[:, 0]
    ends = alpha[:, np.newaxis] / (gammas[[0, -1]] ** 2 * rows.unit.max(axis=1, keepdims=True))
    in_range = np.all((ends > 0) & np.isfinite(ends), axis=1) & np.all(rows.unit > 0, axis=1)
    looked_at = (np.ptp(rows.alpha, axis=1) == 0) & in_range
    for k in np.unique(rows.gram[looked_at]):
        of_gram = np.flatnonzero(looked_at & (rows.gram == k))
        largest = rows.unit[of_gram].max(axis=1)
        root = np.sqrt(rows.unit[of_gram[0]] / largest[0])
        values, vectors = np.linalg.eigh(root * family.S[k] * root[:, np.newaxis])
        along = (q[of_gram] * root) @ vectors
        # Where columns are dependent both are rounding; a column that is nearly so has less of it.
        nil = negligible(len(values))
        along[
            (values <= nil) & (np.abs(along) <= nil * np.abs(along).max(axis=1, keepdims=True))
        ] = 0.0
        values = values.clip(0.0)
        penalty = alpha[of_gram, np.newaxis] / (gammas**2 * largest[:, np.newaxis])
        exponent = np.log2(penalty)
        ladder = np.arange(np.floor(exponent.min()), exponent.max() + 2)
        divisor = values + np.exp2(ladder)[:, np.newaxis]
        rung = (exponent - ladder[0]).astype(np.intp)
        sizes: dict[bytes, Array] = {}
        for row, direction, steps, unit in zip(of_gram, along, rung, largest, strict=True):
            key = direction.tobytes()
            if key not in sizes:
                sizes[key] = np.abs((direction / divisor) @ vectors.T).max(axis=1)
            size = np.maximum(sizes[key][steps], sizes[key][steps + 1]) / np.sqrt(unit)
            before = np.concatenate([size[:1], size[:-1]])
            near = np.flatnonzero(gammas < rules.after_ridge * before)
            at[row] = max((near[0] if len(near) else len(gammas)) - 1, 0)
        last = penalty[np.arange(len(of_gram)), np.maximum(at[of_gram] - 1, 0)]
        b[of_gram] = root * ((along / (values + last[:, np.newaxis])) @ vectors.T)
    # The loop's own step there divides by less, as b_j is not nil beside gamma.
    width = gammas[np.maximum(at - 1, 0), np.newaxis] ** 2 * rows.unit
    d = rows.alpha / width
    return at, b, 2 * np.abs(b) ** 3 / width * d / (family.tau[rows.gram] + d)


@dataclass
class _End:
    """How rows ended: where in the schedule, which coefficients are in, and their values."""

    at: Index
    support: Mask
    b: Array
    tau: Array  # what those that are in leave of each column, or what all others do


def _anneal(
    family: GramFamily,
    rows: _Rows,
    gammas: Array,
    schedule: Schedule,
    rules: Rules,
    told: Callable[[int], None],
) -> tuple["_End", Mask, int]:
    """Follow the loop until each row is decided.

    Returns how each row ended, which rows are in doubt, and the number of steps.
    """
    dtype = rows.ols.dtype
    end = _End(
        at=np.zeros(len(rows.slot), dtype=np.intp),
        support=np.zeros(rows.ols.shape, dtype=bool),
        b=np.zeros(rows.ols.shape),
        tau=family.tau[rows.gram],
    )
    doubtful = np.zeros(len(rows.slot), dtype=bool)
    rounding = np.finfo(dtype).eps
    taus, spreads = family.tau.astype(dtype), family.spread.astype(dtype)
    owns = taus if family.own is family.tau else family.own.astype(dtype)
    free = not np.all(rows.alpha)
    beside = None if family.well_conditioned else _Beside.unseen(rows)
    start = rows.at
    first = True
    while len(rows.slot):
        tau, spread = taus[rows.gram], spreads[rows.gram]
        own = tau if owns is taus else owns[rows.gram]
        width = (gammas[rows.at] ** 2).astype(dtype)[:, np.newaxis] * rows.unit
        crest = rows.alpha / width
        tolerance = _tolerance(crest, family.smallest[rows.gram], rules)
        before = rows.b
        for _ in range(schedule.t_max):
            total = rows.b**2
            total += width
            share = width / total
            d = crest * share
            d *= share
            kept = own / (own + d)
            held = family.hold(rows.gram, d, kept, rows.q, rows.of)
            pull = _pull(kept, held)
            guess = kept * rows.aim
            weight = _weight(guess, total, pull)
            if first:
                from_zero = ~rows.b.any(axis=1)
                weight[from_zero] = 4 / np.maximum(np.abs(guess[from_zero]), 1e-3)
            share *= pull
            pull -= share
            rows.error *= pull
            rows.error *= 4
            # A coefficient need not be much nearer to its new value than it was to the last.
            carried = rows.error * weight
            carried *= rules.as_carried
            weight /= np.maximum(carried, tolerance, out=carried)
            rows.b, left = family.solve(
                rows.gram, d, kept, rows.q, rows.of, rows.ols, rows.aim, weight, rows.stubborn, held
            )
            rows.error += left
            # Sums of terms with entries of the inverse lose as many digits as these are large.
            d *= rows.b
            lost = np.sqrt(np.vecdot(d, d))[:, np.newaxis] * spread
            lost *= kept
            lost += np.abs(rows.ols)
            lost *= rounding
            rows.error += lost
            if first:
                missed = np.abs(rows.b) ** 3 / width * (1 - kept) * (rows.at > 0)[:, np.newaxis]
                rows.error[from_zero] += 2 * missed[from_zero]
            first = False

        size = np.abs(rows.b)
        share = width / (size * size + width)
        d_now = crest * share
        d_now *= share
        stays, low = decided(rows.b, before, d_now, width, tau, rules, schedule.gamma_step)
        if free:
            stays |= rows.alpha == 0
        stuck = rows.at == len(gammas) - 1
        if beside is None:
            open_ = ~(stays | low & (crest > rules.out_crest))
        else:
            dependent = beside.look(family, rows, stays, low)
            stuck |= dependent
            low &= beside.drawn * np.sqrt(width) < 0.4 * rows.alpha
            low &= crest > rules.out_crest * beside.left
            stays &= d_now < rules.in_weight * beside.left
            stays &= np.abs(rows.b - beside.b) <= 0.1 * size
            open_ = ~(stays | low) | dependent[:, np.newaxis]
        sure = rows.error < _DOUBT * size
        if not sure.all():
            gain = 4 * (1 - share) * _pull(own / (own + d_now), held)
            doubtful[rows.slot[np.any(open_ & (gain > 0.05) & ~sure, axis=1)]] = True
        done = ~open_.any(axis=1)
        # Small as they are, all together may explain much: to drop them all would bring some back.
        none = np.flatnonzero(done & ~stays.any(axis=1))
        if len(none):
            force = np.abs(rows.q[rows.of[none]])
            done[none] = ~_returns(force, width[none], rows.alpha[none], rules).any(axis=1)
        doubtful[rows.slot[stuck & ~done]] = True
        out = done | stuck
        if out.any():
            which = rows.slot[out]
            told(int(np.count_nonzero(~doubtful[which])))
            end.at[which], end.support[which], end.b[which] = rows.at[out], stays[out], rows.b[out]
            if beside is not None:
                end.tau[which] = beside.left[out]
            rows = rows.take(~out)
            beside = beside and beside.take(~out)
        rows.at = rows.at + 1
        # What iterations were too slow for at this gamma they may do at the next.
        if rules is not CAREFUL:
            rows.stubborn[:] = False
    return end, doubtful, schedule.t_max * int((end.at - start + 1).max(initial=0))


@dataclass
class _Beside:
    """What columns that stay do to the others, where these are nearly collinear; a row each."""

    left: Array  # at most so much of column j is left by the others that stay, ...
    drawn: Array  # ... it is drawn from zero, if it is out, with such a force, ...
    b: Array  # ... and has such a coefficient, if it is in, ...
    seen: Mask  # ... if it was these that stay
    known: dict[tuple[int, bytes], tuple[Array, Array, Array] | None]  # all that was looked at

    @classmethod
    def unseen(cls, rows: _Rows) -> "_Beside":
        ones = np.ones_like(rows.b)
        return cls(ones, np.abs(rows.right), np.zeros_like(ones), np.zeros(ones.shape, bool), {})

    def take(self, which: Mask) -> "_Beside":
        taken = (self.left[which], self.drawn[which], self.b[which], self.seen[which])
        return _Beside(*taken, self.known)

    def look(self, family: GramFamily, rows: _Rows, stays: Mask, low: Mask) -> Mask:
        """Look where all else is low; say in which rows the columns that stay depend.

        What they leave of nearly collinear ones is next to nothing: a penalty far below 1 drops
        these. But they may be low only together: what draws each from zero is what is left with all
        of them out.
        """
        dependent = np.zeros(len(stays), dtype=bool)
        gone = np.any(self.seen & ~stays, axis=1)
        self.left[gone], self.drawn[gone], self.seen[gone] = 1.0, np.abs(rows.right[gone]), False

        new = np.flatnonzero(np.all(stays | low, axis=1) & np.any(stays & ~self.seen, axis=1))
        keys = [(int(rows.of[row]), stays[row].tobytes()) for row in new]
        unknown = {key: row for key, row in zip(keys, new, strict=True) if key not in self.known}

        def look(key: tuple[int, bytes]) -> None:
            row = unknown[key]
            self.known[key] = family.beside(rows.gram[row], rows.q[rows.of[row]], stays[row])

        for _ in family.map(look, unknown):
            pass
        for key, row in zip(keys, new, strict=True):
            found = self.known[key]
            if found is None or np.any(found[0][stays[row]] < _DEPENDENT):
                dependent[row] = True
            else:
                self.left[row], self.drawn[row], self.b[row] = found
                self.seen[row] = stays[row]
        return dependent


def _pull(kept: Floats, held: Held | None) -> Floats:
    """The share of a change that a coefficient's own penalty takes.

    Along directions held apart, where little else keeps it, that may be all.
    """
    return 1 - (kept if held is None else kept * (1 - held.part))


def _returns(force: Floats, width: Floats, alpha: Floats, rules: Rules) -> Mask:
    """Whether a coefficient that is out would come back above its gamma, drawn by such a force."""
    # Where it was decided before crest 1, less than the whole column is left to bring it back.
    some_width = np.minimum(width, alpha / rules.out_crest)
    return (alpha > 0) & (force * np.sqrt(width) > 0.5 * (some_width + alpha))


def _tolerance(crest: Floats, smallest: Array, rules: Rules) -> Floats:
    """Error allowed in a solve: more while the loop soon forgets it, as it does below strain 1."""
    strain = crest.max(axis=1, initial=0.0) / smallest.clip(1e-30)
    slack = np.maximum(1.0, (rules.patience / strain) ** 3)
    tolerance: Floats = rules.tolerance * slack[:, np.newaxis]
    return tolerance.astype(crest.dtype)


def _weight(b: Floats, total: Floats, pull: Floats) -> Floats:
    """How much an error of b_j moves the next step: the gain at a gamma half as large, over b_j."""
    weight = np.abs(b)
    weight /= total
    weight *= np.minimum(16 * pull, 4)
    return weight


def _finish(
    family: GramFamily,
    rows: _Rows,
    end: _End,
    gammas: Array,
    schedule: Schedule,
    back: Array,
    rules: Rules,
) -> Mask:
    """Put the loop's answer, given the support, into `rows.b`; say which rows contradict it.

    The answer is least squares on the support, and a decision stands if that keeps each coefficient
    that is out below the gamma it was decided at, and each that is in above. Where the last gamma
    is not yet nil beside the coefficients, the loop's last steps are taken from there.
    """
    support = end.support
    rows.b = _on_supports(family, rows, support)
    force = rows.right - by_gram(rows.gram, rows.b, family.S)
    residual = np.abs(force)
    width = (gammas[end.at] ** 2)[:, np.newaxis] * rows.unit
    b2 = rows.b**2
    away = np.abs(end.b - rows.b)
    leaves = b2 < 0.25 * rules.in_ratio**2 * width
    tau = end.tau
    weighs = rows.alpha * width > 0.3 * tau * (b2 + width) ** 2
    leaves |= weighs & (away > 0.5 * np.abs(rows.b))
    # Too near the end, the loop does not get from where it is to least squares.
    ending = end.at >= len(gammas) - 2
    leaves[ending] |= away[ending] > 1e-9 * np.abs(rows.b[ending])
    contradicted = np.where(support, leaves, _returns(residual, width, rows.alpha, rules))
    doubtful: Mask = np.any((rows.alpha > 0) & contradicted, axis=1)
    by_one, by_some, not_enough = _shows(family, rows, end, residual, gammas, schedule, back, rules)
    doubtful |= not_enough
    for which, widths, steps in (
        (by_one, gammas[-1:], 1),
        (by_some, gammas[-_LAST:], schedule.t_max),
    ):
        more = np.flatnonzero(which & ~doubtful)
        if len(more):
            rows.b[more] = _last_steps(family, rows.take(more), force[more], widths, steps)
            doubtful[more] = ~np.isfinite(rows.b[more]).all(axis=1)
    return doubtful


def _shows(
    family: GramFamily,
    rows: _Rows,
    end: _End,
    residual: Array,
    gammas: Array,
    schedule: Schedule,
    back: Array,
    rules: Rules,
) -> tuple[Mask, Mask, Mask]:
    """In which rows the end of the loop shows: by its last step, the last few, or more of them."""
    support, tau, b2 = end.support, end.tau, rows.b**2
    last = gammas[-1] ** 2 * rows.unit
    if not family.well_conditioned:
        # Columns that are out may stand in for those that are in as far as their penalty lets them.
        crest = np.where(rows.alpha > 0, rows.alpha / last, np.inf)
        tau = np.minimum(tau, crest.min(axis=1, keepdims=True, initial=np.inf))
        # The penalties of these push them, which the residual of least squares does not show.
        push = np.where(support, rows.alpha * last / (b2 * np.sqrt(b2)), 0.0)
        push = push.max(axis=1, keepdims=True, initial=0.0)
        residual = residual + schedule.gamma_step**2 * push
    pull = rows.alpha * last / (b2 * b2 * tau)
    before, dead = _dead(residual, rows, end, gammas, schedule, rules)
    # Those that are out may show, or move those that are in by more than the digits promised.
    least = np.where(rows.b != 0, np.abs(rows.b), np.inf).min(axis=1, initial=np.inf)
    felt = (np.where(support, tau, 1.0).min(axis=1, initial=1.0) * least)[:, np.newaxis]
    shows = dead * back[rows.slot] > 0.5 * schedule.epsilon
    visible = np.where(support, pull > 1e-10, shows | (dead > 1e-10 * felt))
    visible &= rows.alpha > 0
    # One step makes light of what they are before it, as of the pull on those in.
    off = 2 * before**2 / last
    off = np.where(shows, off > 2e-9, off * dead > 1e-9 * felt)
    of_first = pull * (schedule.gamma_step**2 if schedule.t_max == 1 else 1.0)
    far = np.any(visible & np.where(support, of_first > 1e-5, off), axis=1)
    enough = np.zeros_like(far)
    if far.any():
        seen, inside = visible[far], support[far]
        enough[far] = end.at[far] < len(gammas) - _LAST
        enough[far] &= _forgets(
            np.where(seen & inside, pull[far], 0.0).max(axis=1),
            np.where(seen & ~inside, dead[far] / np.sqrt(last[far]), 0.0).max(axis=1),
            schedule,
        )
    return visible.any(axis=1) & ~far, far & enough, far & ~enough


def _forgets(pull: Array, ratio: Array, schedule: Schedule) -> Mask:
    """Whether the steps at the last gammas, from least squares on, end where the loop does.

    What a step makes of an error is at most 4 times the pull on a coefficient that is in, and
    4 times the square of its ratio to gamma for one that is out; a gamma earlier both are larger.
    """
    earlier = schedule.gamma_step ** np.arange(_LAST)[:, np.newaxis]
    inside = 4 * pull * earlier**2
    first = np.maximum(inside, 4 * (schedule.gamma_step**2 * ratio * earlier) ** 2)
    later = np.maximum(inside, 4 * (ratio * earlier) ** 2)
    left = np.prod(first * later ** (schedule.t_max - 1), axis=0)
    return np.asarray((first[-1] < 1) & (first[-1] * left < 1e-10))


def _dead(
    force: Array, rows: _Rows, end: _End, gammas: Array, schedule: Schedule, rules: Rules
) -> tuple[Array, Array]:
    """What is left of coefficients that are out, before the loop's last step and after it.

    A step leaves ``force / d``. The second at a gamma finds them next to nothing beside it, so that
    d is the crest. With one step a gamma they are what the gamma before left, and d may be less.
    """

    def rest(width: Array) -> Array:
        divisor = np.minimum(width, rows.alpha / rules.out_crest) + rows.alpha
        return np.asarray(force * width / divisor)

    if schedule.t_max > 1:
        dead = rest(gammas[-1] ** 2 * rows.unit)
        return dead, dead
    dead = np.abs(end.b)
    before = dead * schedule.gamma_step**2
    for at in range(end.at.min(initial=len(gammas)) + 1, len(gammas)):
        width = gammas[at] ** 2 * rows.unit
        falls = (at > end.at)[:, np.newaxis]
        before = np.where(falls, dead, before)
        dead = np.where(falls, rest(width) * (1 + dead**2 / width) ** 2, dead)
    return before, dead


def _on_supports(family: GramFamily, rows: _Rows, support: Mask) -> Array:
    """Least squares on the support of each row; neighbouring alphas often have the same."""
    new_q = np.diff(rows.of, prepend=-1) > 0
    first = new_q.copy()
    first[1:] |= (support[1:] != support[:-1]).any(axis=1)
    distinct, of_distinct = np.flatnonzero(first), np.cumsum(first) - 1
    solved = np.empty((len(distinct), support.shape[1]))
    for low, high in pairwise([*np.flatnonzero(new_q[distinct]), len(distinct)]):
        which, row = distinct[low:high], distinct[low]
        solved[low:high] = family.least_squares(
            rows.gram[row], rows.q[rows.of[row]], support[which], rows.ols[row]
        )
    return np.asarray(solved[of_distinct])


def _last_steps(family: GramFamily, rows: _Rows, force: Array, gammas: Array, steps: int) -> Array:
    """What the loop's steps at its last gammas make of coefficients already settled.

    Those that are out are held near zero by the `force` that the others leave to them.
    """
    inside = rows.b != 0
    tau = family.tau[rows.gram]
    b = rows.b
    for gamma in gammas:
        width = gamma**2 * rows.unit
        for _ in range(steps):
            d = rows.alpha * width / (b**2 + width) ** 2
            guess = np.where(inside, b, force / (1.0 + d))
            size = np.abs(guess)
            # Coefficients next to nothing need not be right to as many digits.
            least = 1e-8 * size.max(axis=1, keepdims=True, initial=1e-300)
            weight = 1e10 / np.where(inside, np.maximum(size, least), np.maximum(size, 1e-300))
            kept = tau / (tau + d)
            stubborn = np.zeros(len(size), dtype=bool)
            b, _ = family.solve(
                rows.gram, d, kept, rows.q, rows.of, rows.ols, guess / kept, weight, stubborn
            )
    return b
