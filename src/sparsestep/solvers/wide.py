"""Algorithm 1 on rows, where they are fewer than the columns: systems of the size of the rows.

With ``c_j = 1 / d_j`` a step of the loop, ``b = (A'A + diag(d))^-1 A'y``, is also

    (I + A diag(c) A') a = y,      b_j = c_j x_j'a,

and `a` is the residual ``y - A b``. With the ratios ``r_j = b_j / gamma`` of the step before,

    c_j = w (1 + r_j^2)^2 = w (1 + x_j),      w = gamma^2 / alpha,      x_j = r_j^2 (2 + r_j^2).

In the basis of the eigenvectors of ``A A'``, in which everything here happens, the matrix is

    diag(1 + w e) + w A diag(x) A'.

While all ratios are small, only its first part counts and the loop's steps are divisions. From
where the excess x counts, all problems are solved together by conjugate gradients, two matrix
products an iteration, in single precision; the preconditioner contains the large x exactly and the
mean of the small ones, so a few iterations do. As in `engine` a problem ends in least squares on
its support once every coefficient is decided, a bound on the error is carried along, and what the
bound cannot vouch for is solved again with more care, one factorization a step, and at last by the
literal loop.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, fields
from functools import cached_property, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import linalg
from scipy.linalg import lapack

from sparsestep.solvers.equations import RowEquations
from sparsestep.solvers.reference_rows import least_norm, sparsestep_reference_rows
from sparsestep.solvers.schedule import Schedule
from sparsestep.threads import parallel_map

__all__ = ["solve_wide"]

Array = NDArray[np.float64]
Floats = NDArray[Any]
Mask = NDArray[np.bool_]
Index = NDArray[np.intp]


@dataclass(frozen=True)
class _Rules:
    """How far the shortcuts go."""

    ridge: float  # start where the ratios of all ridge regressions so far are below 1 over this
    in_weight: float  # selected: the penalty's share of what holds b_j is below this ...
    in_ratio: float  # ... and |b_j| > in_ratio * gamma
    out_ratio: float  # not selected: |b_j| < out_ratio * gamma / gamma_step ...
    # ... and stays so while |x'a| gamma / alpha is below this; the largest r / (1 + r^2)^2 is 0.32
    stays_out: float


_BOLD = _Rules(ridge=32.0, in_weight=0.05, in_ratio=4.0, out_ratio=0.4, stays_out=0.2)
_CAREFUL = _Rules(ridge=1e4, in_weight=1e-3, in_ratio=16.0, out_ratio=0.1, stays_out=0.1)
# The excess, here at ratio 1, from which a column is treated by itself ...
_STRONG = 3.0
# ... and the largest number of such columns, relative to the rows, for which iterating pays.
_MOST_STRONG = 2
# Error of the ratios that a solve may leave once it matters, in single and in double precision, the
# most that is put up with, and what rounding adds to it.
_GOAL = {"f": 4e-6, "d": 1e-13}
_POOR = 1e-3
_ROUNDING = 0.1
_MOST_ITERATIONS = 30
# How far an excess may exceed the rest of the matrix before iterations lose too many digits.
_STEEP = 1e12
# So few rows are multiplied one by one, and so many columns at a time. The columns are split
# whatever the number of threads, so that the numbers do not depend on it.
_FEW = 7
_SLICE = 5120
# Below this many numbers a second thread costs more than it saves.
_MANY = 1 << 20
# Largest carried error, relative to the coefficient, that cannot turn a decision around.
_DOUBT = 0.2
# Largest carried error of coefficients that are the answer as they are.
_ALL_DIGITS = 1e-10
# Directions of the rows in which the columns vary less than this, relative to the most, are none.
_NOTHING = 1e-14
# But if a column has more than this, of its own length, along one of them, or if the squares along
# the others are as far apart as this, the directions are not told apart well enough.
_LOST = 1e-12
_FAR_APART = 1e-8


@dataclass
class _Rows:
    """Problems, one a row; `slot` says where each one's answer belongs."""

    slot: Index
    y: Array
    alpha: Array
    unit: Array  # gamma times this is gamma in the units of the problem
    at: Index  # position in the schedule
    a: Array
    product: Floats  # a @ A
    ratio: Floats  # b / gamma
    error: Floats  # bound on the relative error of the ratios

    def take(self, which: Index | Mask) -> "_Rows":
        return _Rows(*(getattr(self, field.name)[which] for field in fields(self)))


class _Columns:
    """The penalized columns in the basis of the eigenvectors of ``A A'``, the largest of length 1.

    Each is divided by the root of its penalty factor, which makes the penalties alike while the
    ratios are small.

    Attributes
    ----------
    e : ndarray of shape (rank,)
        The eigenvalues.
    lean : ndarray of shape (m,)
        1 / sqrt(penalty factor).
    size : float
        What the columns were divided by.
    told_apart : bool
        Whether the eigenvectors have enough digits for every column, however short.
    map : callable
        Python's ``map``, or that of a pool of threads: slices of the columns are shared out by it.
    """

    def __init__(self, A: Array, factor: Array, map: Callable[..., Iterable[Any]] = map) -> None:
        self.map = map
        self.slices = [slice(low, low + _SLICE) for low in range(0, len(factor), _SLICE)]
        self.lean = 1.0 / np.sqrt(factor)
        A = A if np.all(factor == 1.0) else A * self.lean
        self._A, largest = A, 1.0
        each = np.einsum("ij,ij->j", A, A)
        if not 1e-100 < each.max() < 1e100:
            # Products of such squares may be beyond the range of floats.
            largest = float(np.abs(A).max())
            self._A = A / largest
            each = np.einsum("ij,ij->j", self._A, self._A)
        squares = float(each.max())
        e, vectors = np.linalg.eigh(self._A @ self._A.T / squares)
        some = e > _NOTHING * e.max(initial=0.0)
        self.e, self.basis = e[some], vectors[:, some]
        self.told_apart = bool(
            self.e.min() > _FAR_APART * e.max()
            and np.all(np.abs(vectors[:, ~some].T @ self._A) <= _LOST * np.sqrt(each))
        )
        self._length = np.sqrt(squares)
        self.size = float(self._length * largest)
        basis = (self.basis / self._length).astype(np.float32)
        self.single = np.ascontiguousarray(basis.T) @ self._A.astype(np.float32)

    @cached_property
    def double(self) -> Array:
        """All columns in double precision."""
        return self.take(slice(None))

    def take(self, which: Index | slice) -> Array:
        """Some columns in double precision."""
        return np.asarray(self.basis.T @ (self._A[:, which] / self._length))

    def matrix(self, dtype: np.dtype[Any]) -> Floats:
        return self.single if dtype == np.float32 else self.double


# Numbers beyond the range of floats leave a row undecided, and so to the literal loop.
@np.errstate(over="ignore", invalid="ignore", divide="ignore", under="ignore")
def solve_wide(
    equations: RowEquations,
    schedule: Schedule,
    penalty_factor: Array | None = None,
    told: Callable[[int], None] = lambda count: None,
) -> tuple[Array, int]:
    """Coefficients of shape (n_targets, n_alphas, m) and the most steps that any problem took.

    `told` is called with how many more problems are solved.
    """
    A, y = equations.A, equations.y
    m = A.shape[1]
    factor = np.ones(m) if penalty_factor is None else penalty_factor
    alphas = equations.alphas.ravel()
    target = np.repeat(np.arange(len(y)), equations.alphas.shape[1])
    free = np.flatnonzero((factor == 0) & A.any(axis=0))
    if len(free):
        Q = linalg.orth(A[:, free])
        A, y = A - Q @ (Q.T @ A), y - (y @ Q) @ Q.T
    used = np.flatnonzero((factor > 0) & np.isfinite(factor) & A.any(axis=0))
    b = np.zeros((len(alphas), m))
    steps = 0
    todo = np.flatnonzero((alphas > 0) & np.any(y, axis=1)[target])
    literal = np.flatnonzero(alphas == 0)
    if len(used) and len(todo):
        A = A[:, used] if len(used) < m else A
        with parallel_map(A.size > _MANY) as map:
            columns = _Columns(A, factor[used], map)
            lengths = None
            if len(free):
                lengths = np.linalg.norm(equations.A[:, used], axis=0) / columns.size
            y = y @ columns.basis
            largest = np.abs(y).max(axis=1, keepdims=True)
            length = np.linalg.norm(y / largest, axis=1) * largest[:, 0]
            y /= length[:, np.newaxis]
            for rules in (_BOLD, _CAREFUL) if columns.told_apart else ():
                here = target[todo]
                unit = columns.size / length[here]
                alpha = alphas[todo] / length[here] ** 2
                rows = _enter(columns, y, here, alpha, unit, schedule, rules)
                found, doubtful, taken = _anneal(columns, rows, schedule, rules, lengths, told)
                found /= unit[:, np.newaxis]
                b[np.ix_(todo[~doubtful], used)] = found[~doubtful]
                todo, steps = todo[doubtful], max(steps, taken)
                if not len(todo):
                    break
    small = np.abs(b) < schedule.epsilon
    if len(free):
        rest = equations.y[target] - b @ equations.A.T
        b[:, free] = linalg.lstsq(equations.A[:, free], rest.T)[0].T
        small[:, free] = False
    b[small] = 0.0
    for slot in (*literal, *todo):
        b[slot] = literally(equations, int(slot), schedule, factor)
        told(1)
        steps = len(schedule.gammas()) * schedule.t_max
    return b.reshape(*equations.alphas.shape, m), steps


def _enter(
    columns: _Columns,
    y: Array,
    target: Index,
    alpha: Array,
    unit: Array,
    schedule: Schedule,
    rules: _Rules,
) -> _Rows:
    """The rows where the ridge regime ends for them: the first gamma whose ratios are not small."""
    dtype = np.dtype(np.float32 if rules is _BOLD else np.float64)
    A = columns.matrix(dtype)
    gamma = schedule.gammas() * unit[:, np.newaxis]
    largest = _largest_ridge(columns, y, target, alpha[:, np.newaxis] / gamma**2) / gamma
    late = largest > 1 / rules.ridge
    at = np.where(late.any(axis=1), np.argmax(late, axis=1), np.argmax(largest, axis=1))
    rows = np.arange(len(target))
    before = gamma[rows, np.maximum(at - 1, 0)] * (at > 0)
    gamma = gamma[rows, at]
    y = y[target]
    a = y / (1 + (before**2 / alpha)[:, np.newaxis] * columns.e)
    ratio = (a * (before**2 / alpha / gamma)[:, np.newaxis]).astype(dtype) @ A
    ratio *= columns.lean.astype(dtype)
    error = np.square(ratio * (2 * gamma / before).astype(dtype)[:, np.newaxis])
    error[at == 0] = 0.0
    a = y / (1 + (gamma**2 / alpha)[:, np.newaxis] * columns.e)
    return _Rows(rows, y, alpha, unit, at, a, a.astype(dtype) @ A, ratio, error)


def _largest_ridge(columns: _Columns, y: Array, target: Index, penalty: Array) -> Array:
    """The largest coefficient of the ridge regressions with these penalties, roughly.

    ``b = A'(A A' + penalty)^-1 y`` on a grid of penalties, and between them the larger neighbour.
    """
    grid = np.geomspace(1e-3 * columns.e.min(), 1e3 * columns.e.max(), 48)
    out = np.empty_like(penalty)
    for t in np.unique(target):
        a = (y[t] / (columns.e + grid[:, np.newaxis])).astype(np.float32)
        largest = np.max(np.abs(a @ columns.single) * columns.lean, axis=1)
        here = target == t
        above = np.searchsorted(grid, penalty[here]).clip(1, len(grid) - 1)
        out[here] = np.maximum(largest[above - 1], largest[above])
        # Beyond the grid the coefficients are inversely proportional to the penalty.
        out[here] *= np.minimum(1.0, grid[-1] / penalty[here])
    return out


def _anneal(
    columns: _Columns,
    rows: _Rows,
    schedule: Schedule,
    rules: _Rules,
    lengths: Array | None,
    told: Callable[[int], None],
) -> tuple[Array, Mask, int]:
    """Follow the loop until each row is decided: coefficients, rows in doubt, number of steps.

    Columns without a penalty see also the coefficients that are too small to show. If there are
    such columns, `lengths` are those of the others with what they share with them.
    """
    dtype = rows.ratio.dtype
    lean = columns.lean.astype(dtype)
    gammas = schedule.gammas()
    solve = _iterate if rules is _BOLD else partial(_carefully, last=len(gammas) - 1)
    found = np.zeros(rows.ratio.shape)
    doubtful = np.zeros(len(rows.slot), dtype=bool)
    known: _Known = {}
    steps = 0
    while len(rows.slot):
        gamma = gammas[rows.at] * rows.unit
        scale = (gamma / rows.alpha).astype(dtype)[:, np.newaxis] * lean
        for _ in range(schedule.t_max):
            square = np.square(rows.ratio)
            excess = square + 2
            excess *= square
            pull, left = solve(columns, rows, excess, gamma**2 / rows.alpha)
            # The gain of an error, 4 r^2 / (1 + r^2) times the pull.
            rows.error *= square
            square += 1
            rows.error /= square
            rows.error *= pull
            rows.error *= 4
            excess += 1
            np.multiply(rows.product, excess, out=rows.ratio)
            rows.ratio *= scale
            square *= left.astype(dtype)[:, np.newaxis]
            square *= lean
            size = np.abs(rows.ratio)
            square /= size
            rows.error += square
            steps += 1
        stays, open_, risk = _decided(size, excess, pull, rows.error, schedule, rules)
        lost = risk | ~np.isfinite(left)
        done = ~open_ & ~lost
        ready = np.flatnonzero(done)
        if len(ready):
            some = rows.take(ready)
            coefs, done[ready] = _finish(
                columns, some, stays[ready], known, schedule, rules, lengths is not None
            )
            found[rows.slot[done]] = coefs[done[ready]]
        last = (rows.at == len(gammas) - 1) & ~done
        for row in np.flatnonzero(last):
            # Here the coefficients themselves are the answer, to the last digits asked for.
            b = rows.ratio[row] * gamma[row]
            size = np.abs(b)
            seen = size > 0.5 * schedule.epsilon * rows.unit[row]
            lost[row] |= np.any(seen & ~(rows.error[row] < _ALL_DIGITS))
            if lengths is not None:
                # What the others together add to the prediction; the target has length 1.
                wrong = (rows.error[row] * size * lengths)[~seen & (size > 0)]
                lost[row] |= not np.linalg.norm(wrong) < _ALL_DIGITS
            found[rows.slot[row]] = b
        doubtful[rows.slot[lost]] = True
        out = done | lost | last
        if out.any():
            told(int(np.count_nonzero(out & ~lost)))
            rows = rows.take(~out)
        rows.at = rows.at + 1
        rows.ratio *= dtype.type(schedule.gamma_step)
    return found, doubtful, steps


def _decided(
    size: Floats, c: Floats, pull: Floats, error: Floats, schedule: Schedule, rules: _Rules
) -> tuple[Mask, Mask, Mask]:
    """Which coefficients stay in, which rows have undecided ones, and which of these carry doubt.

    The pulls, 1 / (1 + tau c), are those of the c of the last step, and not yet of its outcome.
    """
    which = np.nonzero(~(size < rules.out_ratio / schedule.gamma_step))
    r, before = size[which], pull[which]
    now = before / (before + (1 - before) * (1 + r * r) ** 2 / c[which])
    inside = (r > rules.in_ratio) & (now < rules.in_weight)
    risk = ~inside & (now * r * r > 0.0125) & ~(error[which] < _DOUBT)
    stays = np.zeros(size.shape, dtype=bool)
    stays[which] = inside
    rows = np.arange(len(size))
    return stays, np.isin(rows, which[0][~inside]), np.isin(rows, which[0][risk])


@dataclass(frozen=True)
class _LeastSquares:
    """Least squares on some columns."""

    inside: Index
    b: Array
    Q: Array  # A = Q R, and ...
    inverse: Array  # ... the inverse of R
    residual: Array

    @classmethod
    def of(cls, columns: _Columns, y: Array, inside: Index) -> "_LeastSquares | None":
        """None if the columns are not independent."""
        if len(inside) > len(y):
            return None
        A = columns.take(inside)
        Q, R = np.linalg.qr(A)
        if np.any(np.abs(np.diag(R)) < 1e-10 * np.linalg.norm(A, axis=0)):
            return None
        inverse = lapack.dtrtri(R)[0] if len(inside) else R
        along = Q.T @ y
        return cls(inside, inverse @ along, Q, inverse, y - Q @ along)


# Of a row, the fit on its support and the largest force of its residual on another column.
_Known = dict[int, tuple[_LeastSquares, float]]


def _finish(
    columns: _Columns,
    rows: _Rows,
    stays: Mask,
    known: _Known,
    schedule: Schedule,
    rules: _Rules,
    small_too: bool,
) -> tuple[Array, Mask]:
    """Least squares on the supports, and for which rows that is where the loop ends.

    It is if with its residual every column that is out stays out, each that is in stays in, and at
    the last gamma what is left to see of the penalty is small: a correction of the first order.
    What is `known` of a row from an earlier gamma is used as long as its support is the same.
    """
    new = {}
    for slot, y, each in zip(rows.slot, rows.y, stays, strict=True):
        inside = np.flatnonzero(each)
        if slot not in known or not np.array_equal(known[slot][0].inside, inside):
            known.pop(slot, None)
            fit = _LeastSquares.of(columns, y, inside)
            if fit is not None:
                new[slot] = fit
    if new:
        residuals = np.array([fit.residual for fit in new.values()], dtype=np.float32)
        forces = np.abs(residuals @ columns.single)
        forces *= columns.lean.astype(np.float32)
        for force, (slot, fit) in zip(forces, new.items(), strict=True):
            force[fit.inside] = 0.0
            known[slot] = fit, float(force.max())

    gammas = schedule.gammas()
    coefs, good = np.zeros(stays.shape), np.zeros(len(stays), dtype=bool)
    for row, slot in enumerate(rows.slot):
        if slot not in known:
            continue
        fit, most = known[slot]
        alpha, unit = rows.alpha[row], rows.unit[row]
        gamma, last = gammas[rows.at[row]] * unit, gammas[-1] * unit
        lean = columns.lean[fit.inside]
        size = np.abs(fit.b * lean)
        change = rows.ratio[row, fit.inside] * gamma / (fit.b * lean)
        w, d = last**2 / alpha, alpha * last**2 / size**4
        good[row] = (
            most * gamma < rules.stays_out * alpha
            and np.all(size > 0.5 * rules.in_ratio * gamma)
            # What is still on its way is not decided; near the end it does not get there any more.
            and np.all((change > 0.5) & (change < 2))
            and (rows.at[row] < len(gammas) - 2 or np.all(np.abs(change - 1) < _ALL_DIGITS))
            and np.all(d * np.sum(fit.inverse**2, axis=1) < 1e-5)
            and w * columns.e.max() < 1e-5
            and most * w < 0.5 * schedule.epsilon * unit
        )
        if small_too and good[row]:
            # To the first order the others are w x'r, in single precision a part in 1e7 of these.
            coefs[row] = (w * fit.residual).astype(np.float32) @ columns.single
            coefs[row] *= columns.lean
        pulled = fit.inverse.T @ (d * fit.b) + fit.Q.T @ (w * columns.e * fit.residual)
        coefs[row, fit.inside] = (fit.b - fit.inverse @ pulled) * lean
    return coefs, good


class _Preconditioner:
    """Inverse of the matrix of each row with the small excesses replaced by their mean."""

    def __init__(self, columns: _Columns, excess: Floats, w: Array) -> None:
        mean = np.minimum(excess, _STRONG).mean(axis=1, dtype=np.float64)
        self.inverse = 1.0 / (1.0 + (w * (1.0 + mean))[:, np.newaxis] * columns.e)
        self.pull = np.ones_like(excess)
        self.strong: list[Array | None] = []
        most = max(1, int(_MOST_STRONG * len(columns.e)))
        for row in range(len(excess)):
            which = np.flatnonzero(excess[row] > _STRONG)
            if len(which) > most:
                which = which[np.argpartition(-excess[row, which], most)[:most]]
            if not len(which):
                self.strong.append(None)
                continue
            # With P the diagonal part, B the scaled columns and L L' = I + B'P^-1 B, the inverse is
            # P^-1 - W'W, W = L^-1 B'P^-1; and the pulls are the diagonal of (L L')^-1.
            B = columns.matrix(excess.dtype)[:, which] * np.sqrt(
                w[row] * (excess[row, which] - mean[row])
            )
            W = B.T * self.inverse[row]
            G = W @ B
            G.flat[:: len(which) + 1] += 1.0
            root, _ = lapack.dtrtri(lapack.dpotrf(G, lower=True, clean=True)[0], lower=True)
            self.pull[row, which] = np.sum(root**2, axis=0)
            self.strong.append(root @ W)

    def solve(self, residual: Array, rows: Index) -> Array:
        z: Array = residual * self.inverse[rows]
        for k, row in enumerate(rows):
            W = self.strong[row]
            if W is not None:
                z[k] -= (W @ residual[k]) @ W
        return z


def _iterate(columns: _Columns, rows: _Rows, excess: Floats, w: Array) -> tuple[Floats, Array]:
    """Set `a` and its product by conjugate gradients for all rows; the pulls and the error left.

    An error of energy E moves no coefficient by more than ``sqrt(E / d_j)``, and no ratio by more
    than ``sqrt(E / alpha) (1 + r_j^2)``, times the root of 1 / penalty factor; spread over many
    directions it seldom moves any by more than 3 over the root of their number of that. While
    ratios are small the loop soon forgets an error, and more of it is put up with.
    """
    dtype = excess.dtype
    A = columns.matrix(dtype)
    base = 1.0 + w[:, np.newaxis] * columns.e
    inverse = _Preconditioner(columns, excess, w)
    most = np.sqrt(np.sqrt(1.0 + excess.max(axis=1)) - 1.0)
    goal = _GOAL[dtype.char]
    bound = np.clip(goal * (0.4 / most) ** 6, goal, _POOR / 2) ** 2 * rows.alpha
    V, scaled = np.empty_like(excess), np.empty_like(excess)

    def weighted(part: slice) -> Floats:
        with np.errstate(all="ignore"):  # threads do not inherit it
            np.multiply(V[:, part], excess[:, part], out=scaled[:, part])
            return _times(scaled[:, part], A[:, part].T)

    def forth_and_back(part: slice) -> Floats:
        _times(p.astype(dtype), A[:, part], V[:, part])
        return weighted(part)

    # The best multiple of what solved the step before is the first guess.
    V[:] = rows.product
    Ma = base * rows.a + w[:, np.newaxis] * sum(columns.map(weighted, columns.slices))
    best = (np.vecdot(rows.a, rows.y) / np.vecdot(rows.a, Ma))[:, np.newaxis]
    rows.a *= best
    rows.product *= best.astype(dtype)
    residual = rows.y - best * Ma
    some = np.arange(len(w))
    p = inverse.solve(residual, some)
    energy = np.vecdot(residual, p)
    left = energy.copy()
    for _ in range(_MOST_ITERATIONS):
        open_ = energy > bound[some]
        if not open_.any():
            break
        if not open_.all():
            some, p, residual, energy = some[open_], p[open_], residual[open_], energy[open_]
            V, scaled, excess = V[: len(some)], scaled[: len(some)], excess[open_]
        AxA = sum(columns.map(forth_and_back, columns.slices))
        Mp = base[some] * p + w[some, np.newaxis] * AxA
        step = (energy / np.vecdot(p, Mp))[:, np.newaxis]
        V *= step.astype(dtype)
        for k, row in enumerate(some):
            rows.product[row] += V[k]
        rows.a[some] += step * p
        residual = residual - step * Mp
        z = inverse.solve(residual, some)
        energy, before = np.vecdot(residual, z), energy
        p = z + (energy / before)[:, np.newaxis] * p
        left[some] = energy
    usual = min(1.0, 3.0 / np.sqrt(len(columns.e)))
    left = (usual * np.sqrt(left) + _ROUNDING * np.finfo(dtype).eps) / np.sqrt(rows.alpha)
    left[~(left < _POOR)] = np.nan
    return inverse.pull, left


def _times(rows: Floats, A: Floats, out: Floats | None = None) -> Floats:
    """``rows @ A``; one by one where they are so few that rearranging A would take longest."""
    if len(rows) > _FEW:
        return np.matmul(rows, A, out=out)
    out = np.empty((len(rows), A.shape[1]), dtype=A.dtype) if out is None else out
    for row, into in zip(rows, out, strict=True):
        np.matmul(row, A, out=into)
    return out


def _carefully(
    columns: _Columns, rows: _Rows, excess: Floats, w: Array, last: int
) -> tuple[Floats, Array]:
    """The same, by factorizations where iterations do not converge or would lose digits.

    At the `last` gamma nothing follows that would forget an error.
    """
    pull, left = np.ones_like(excess), np.full(len(w), np.nan)
    # An excess so far beyond the rest of the matrix costs iterations their digits.
    steep = w * excess.max(axis=1) > _STEEP * (1.0 + w * columns.e.mean())
    for solve, able in ((_iterate, ~steep & (rows.at < last)), (_factorize, True)):
        which = np.flatnonzero(able & np.isnan(left))
        if len(which):
            some = rows.take(which)
            pull[which], left[which] = solve(columns, some, excess[which], w[which])
            rows.a[which], rows.product[which] = some.a, some.product
    return pull, left


def _factorize(columns: _Columns, rows: _Rows, excess: Floats, w: Array) -> tuple[Floats, Array]:
    """The same for each row by itself, by factorizations that are right whatever the excesses.

    The weak columns make, with the first part, a matrix ``L L'`` of moderate condition. The strong
    ones join it in a QR decomposition, rows sorted and columns pivoted, which keeps the digits of
    each.
    """
    A, e = columns.double, columns.e
    pull, left = np.ones_like(excess), np.full(len(w), np.nan)
    for row, each in enumerate(w[:, np.newaxis] * excess):
        strong = np.flatnonzero(excess[row] > _STRONG)
        weak = np.flatnonzero((excess[row] <= _STRONG) & (each > 1e-15))
        part = A[:, weak] * np.sqrt(each[weak])
        M = part @ part.T
        M.flat[:: len(e) + 1] += 1.0 + w[row] * e
        if not np.isfinite(M).all():
            continue
        L = np.linalg.cholesky(M)
        root = np.sqrt(each[strong])
        u, Q = least_norm(np.concatenate([(A[:, strong] * root).T, L.T]), rows.y[row])
        k = len(strong)
        rows.a[row] = linalg.solve_triangular(L, u[k:], lower=True, trans=1)
        rows.product[row] = rows.a[row] @ A
        rows.product[row, strong] = u[:k] / root
        pull[row, strong] = 1.0 - np.sum(Q[:k] ** 2, axis=1)
        spread = (1 + w[row] * e.max()) / (1 + w[row] * e.min())
        left[row] = 1e-16 * len(e) * spread / np.sqrt(rows.alpha[row])
    return pull, left


def literally(equations: RowEquations, slot: int, schedule: Schedule, factor: Array) -> Array:
    """The literal loop for one problem; without a penalty all its steps are the same."""
    t, r = np.unravel_index(slot, equations.alphas.shape)
    alpha = float(equations.alphas[t, r])
    settings = vars(schedule)
    if alpha == 0:
        settings = {**settings, "gamma_0": 1.0, "gamma_stop": 0.5, "gamma_step": 2.0, "t_max": 1}
    return sparsestep_reference_rows(
        equations.A, equations.y[t], alpha, penalty_factor=factor, **settings
    )
