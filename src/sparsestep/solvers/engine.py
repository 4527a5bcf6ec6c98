"""Algorithm 1 for many problems at once: all alphas, all targets, all Gram matrices.

For each problem the literal loop of `reference.py` computes, at each gamma and `t_max` times,

    d_j = alpha_j gamma^2 / (b_j^2 + gamma^2)^2,      b = (S + diag(d))^-1 q.

Only d carries anything from one step to the next. So the engine starts late, solves the steps of
all problems of a matrix together (`annealing.pyx`), and stops a problem once each coefficient is
decided and least squares on the support is the loop's answer. A bound on the error that the
coefficients carry says which answers it cannot vouch for: these are computed again from an earlier
start with a stricter tolerance, and at last by the literal loop.

Problems are scaled: columns of unit length, the largest ``|q_j|`` equal to 1.
"""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sparsestep.reference import (
    cholesky,
    in_range,
    negligible,
    ridge,
    rounding,
    sparsestep_reference,
)
from sparsestep.solvers import annealing
from sparsestep.solvers.reference_rows import sparsestep_reference_rows
from sparsestep.solvers.schedule import Schedule
from sparsestep.threads import one_blas_thread

Array = NDArray[np.float64]
Index = NDArray[np.intp]

# Below this eigenvalue, of columns of unit length, the inverse of a Gram matrix is rounding.
_SINGULAR = 1e-12
# Below this one columns are strongly correlated: errors that one coefficient carries come back by
# way of others, which no bound for each sees.
_MILD = 1e-3


# The error, relative to |b_j| + gamma, that a solve may leave: at first, and where the error bound
# does not vouch for the answer. 0 is the literal loop. Without a bound only the strict ones.
_TOLERANCES = np.array([2e-5, 3e-7, 1e-10, 0.0])
_STRICT_TOLERANCES = _TOLERANCES[2:]


def solve_all(
    grams: Sequence["Gram"],
    alphas: Sequence[Array],
    schedule: Schedule,
    n_jobs: int = 1,
    told: Callable[[int], None] = lambda count: None,
) -> tuple[list[Array], int]:
    """Coefficients of shape (n_targets, n_alphas, m) for each matrix, and the steps taken.

    `alphas` has shape (n_targets, n_alphas) for each matrix. `n_jobs` threads share the work, each
    with one thread of the BLAS; but for rounding, the numbers do not depend on it. Any of them
    calls `told` with how many more problems are solved.
    """
    coefs = [np.zeros((*a.shape, len(g.S))) for g, a in zip(grams, alphas, strict=True)]
    # Matrices left over when each thread has as many are shared, alphas in turn: the first, because
    # that of all rows is prepared already if its alphas were searched for.
    n_shared = len(grams) % n_jobs
    pieces = [
        (k, np.arange(piece, alphas[k].size, n_pieces))
        for k, gram in enumerate(grams)
        for n_pieces in [n_jobs if k < n_shared else 1]
        for piece in range(min(n_pieces, alphas[k].size))
        if len(gram.used)
    ]

    def solve(piece: tuple[int, Index]) -> int:
        k, problems = piece
        steps = grams[k].solve(alphas[k], problems, schedule, coefs[k])
        told(len(problems))
        return steps

    with one_blas_thread():
        for gram in grams[:n_shared]:
            gram.prepare()
        if n_jobs == 1 or len(pieces) < 2:
            steps = [solve(piece) for piece in pieces]
        else:
            with ThreadPoolExecutor(n_jobs) as pool:
                steps = list(pool.map(solve, pieces))
    return coefs, max(steps, default=0)


class Gram:
    """``X'X`` and the ``X'y`` of one or more targets.

    Attributes
    ----------
    S, q : ndarrays of shapes (m, m) and (n_targets, m)
    factor : ndarray of shape (m,)
        Penalty factors.
    rows : tuple of ndarrays of shapes (n_rows, m) and (n_targets, n_rows), optional
        X and y, no more rows than columns, for digits that ``X'X`` has lost.
    used : ndarray of int
        Columns that may enter: of some length, and of a finite penalty.
    """

    def __init__(
        self,
        S: Array,
        q: Array,
        factor: Array | None = None,
        rows: tuple[Array, Array] | None = None,
    ) -> None:
        self.S, self.q, self.rows = S, q, rows
        self.factor = np.ones(len(S)) if factor is None else factor
        self.used = np.flatnonzero((np.diag(S) > 0) & np.isfinite(self.factor))
        self._scaled: _Scaled | None = None

    def prepare(self) -> None:
        """Scale and invert the matrix once for all that is to be solved with it."""
        if self._scaled is None and len(self.used):
            self._scaled = _Scaled.of(self)

    def solve(self, alphas: Array, problems: Index, schedule: Schedule, out: Array) -> int:
        """Put the coefficients of some problems, by their index, into `out`; the steps taken."""
        scaled = self._scaled or _Scaled.of(self)
        target, at = np.unravel_index(problems, alphas.shape)
        alpha = alphas[target, at]
        coefs = np.zeros((len(problems), len(self.used)))
        todo = np.flatnonzero(alpha > 0)
        done, steps = scaled.solve(alpha, target, todo, schedule, coefs)
        out[target[:, np.newaxis], at[:, np.newaxis], self.used] = coefs
        # What the compiled loop cannot factorize, and least squares of least norm.
        for i in (*todo[~done], *np.flatnonzero(alpha == 0)):
            out[target[i], at[i]] = self._literally(target[i], alpha[i], schedule)
        return steps

    def _literally(self, target: int, alpha: float, schedule: Schedule) -> Array:
        """The printed loop; without a penalty all its steps are the same."""
        S, q, used = self.S, self.q[target], self.used
        how = {"penalty_factor": self.factor, **vars(schedule)}
        if alpha > 0 and self.rows:
            X, y = self.rows
            return sparsestep_reference_rows(X, y[target], alpha, **how)
        if alpha > 0:
            with np.errstate(over="ignore"):
                return sparsestep_reference(S, q, alpha, **how)
        b = np.zeros(len(S))
        b[used] = ridge(S[np.ix_(used, used)], np.zeros(len(used)), q[used])
        b[(np.abs(b) < schedule.epsilon) & (self.factor > 0)] = 0.0
        return b


@dataclass(frozen=True)
class _Scaled:
    """A Gram matrix of columns of unit length, and its targets.

    Attributes
    ----------
    S, P : ndarrays of shape (m, m)
        The matrix and its inverse, the pseudo-inverse if it is singular.
    tau : ndarray of shape (m,)
        What the other columns leave of each: ``1 / P_jj``.
    spread : ndarray of shape (m, m)
        Squared coefficients of the regressions of each column on the others, ``P_ij / P_jj`` for
        column i in that of column j. Empty if columns are strongly correlated.
    leak : float
        The root of the largest sum of them in a regression.
    mu, lowest : float
        Lower bounds on the smallest eigenvalue of S, 0 if it is singular, and on the smallest that
        P inverts, 0 if P is of no use.
    null : ndarray of shape (n_null, m)
        Orthonormal rows that span the null space of S.
    q, ols : ndarrays of shape (n_targets, m)
        The targets, each divided by `size`, and least squares.
    X, y : ndarrays of shapes (n_rows, m) and (n_targets, n_rows)
        The rows, if there are any.
    root : ndarray of shape (n_targets, m)
        A coefficient times this is the scaled one, and so is gamma.
    factor : ndarray of shape (m,)
    metric, w, V, V_t : ndarrays of shapes (m,), (m,), (m, m) and (m, m)
        Empty unless columns are strongly correlated. V'SV = diag(w), smallest first, and
        V'DV = I for the penalties D = diag(1 / metric) of a ridge regression.
    """

    S: Array
    P: Array
    tau: Array
    spread: Array
    leak: float
    mu: float
    lowest: float
    null: Array
    q: Array
    size: Array
    ols: Array
    root: Array
    factor: Array
    metric: Array
    w: Array
    V: Array
    V_t: Array
    X: Array
    y: Array

    @classmethod
    def of(cls, gram: Gram) -> "_Scaled":
        S, q, factor, used = gram.S, gram.q, gram.factor, gram.used
        if len(used) < len(S):
            S, q, factor = S[np.ix_(used, used)], q[:, used], factor[used]
        length = np.sqrt(np.diag(S))
        S = S / length
        S /= length[:, np.newaxis]
        np.fill_diagonal(S, 1.0)
        q = np.ascontiguousarray(q / length)
        size = np.abs(q).max(axis=1, keepdims=True)
        size[size == 0] = 1.0
        q /= size
        X, y = np.empty((0, len(S))), np.empty((len(q), 0))
        if gram.rows:
            X, y = np.ascontiguousarray(gram.rows[0][:, used] / length), gram.rows[1] / size
        P = np.empty_like(S)
        mu = 0.0
        if annealing.inverse(S, P):
            mu = float(1.0 / np.abs(P).sum(axis=0).max())
        lowest, null, eigen = mu, np.empty((0, len(S))), None
        if mu < _SINGULAR:
            mu = 0.0
            w, V = eigen = np.linalg.eigh(S)
            if cholesky(S) is None:
                q = in_range(w, V, q)
            zero = w <= rounding(w)
            P, lowest = (V[:, ~zero] / w[~zero]) @ V[:, ~zero].T, float(w[~zero][0])
            null = np.ascontiguousarray(V[:, zero].T)
            outside = np.any(np.abs(q @ null.T) > negligible(len(S)))
            # The dual form asks for targets in the range of S and, to be fast, a small null space.
            if outside or 4 * len(null) > len(S):
                lowest = 0.0
        tau, ols = 1.0 / np.diag(P), q @ P
        spread, metric, w, V = np.empty((0, 0)), np.empty(0), np.empty(0), np.empty((0, 0))
        if mu > _MILD:
            spread = (P * tau) ** 2
            np.fill_diagonal(spread, 0.0)
        else:
            scale = np.sqrt(factor) / length
            scale[scale == 0] = scale.max() or 1.0
            # Beyond that the square of a scale is out of the range of floats.
            scale = np.maximum(scale / scale.max(), 1e-70)
            if eigen is None or scale.min() < 1.0 - negligible(len(S)):
                eigen = np.linalg.eigh(S / scale / scale[:, np.newaxis])
            w, V = eigen
            metric, w, V = scale**-2.0, w.clip(0.0), V / scale[:, np.newaxis]
        V_t = np.ascontiguousarray(V.T)
        root, leak = length / size, float(np.sqrt(spread.sum(axis=0).max(initial=0.0)))
        return cls(
            *(S, P, tau, spread, leak, mu, lowest, null, q, size, ols, root, factor),
            *(metric, w, V, V_t, X, y),
        )

    def solve(
        self,
        alphas: Array,
        target: Index,
        todo: Index,
        schedule: Schedule,
        coefs: Array,
    ) -> tuple[NDArray[np.bool_], int]:
        """Put the coefficients of the problems `todo` into `coefs`; say which are vouched for."""
        target = target[todo]
        gammas = schedule.gammas()
        with np.errstate(all="ignore"):
            alpha = alphas[todo] / self.size[target, 0] ** 2
            largest = self._largest(alpha, target, gammas)
        b = np.empty((len(todo), len(self.S)))
        done = np.zeros(len(todo), dtype=np.int32)
        problems = alpha, target.astype(np.int32), np.broadcast_to(largest, (len(b), len(gammas)))
        tolerances = _TOLERANCES if self.mu > _MILD else _STRICT_TOLERANCES
        steps = annealing.solve(self, schedule, *problems, self.mu > _MILD, tolerances, b, done)
        vouched = done > 0
        coefs[todo[vouched]] = b[vouched] / self.root[target[vouched]]
        return vouched, steps

    def _largest(self, alpha: Array, target: Index, gammas: Array) -> Array:
        """Upper bounds on the coefficients, in the units of gamma, after the steps at each gamma.

        Ridge regressions have less of their penalty, a sum of squares, than least squares. Where
        least squares is far larger, they are computed: ``b = V (w + penalty)^-1 V'q``.
        """
        # The penalty on column j is alpha / gamma^2 times the square of this.
        scales = np.sqrt(self.factor) / self.root
        longest = np.full(len(self.q), np.inf)
        if self.mu > 0:
            longest = np.linalg.norm(scales * self.ols, axis=1) / np.sqrt(self.factor.min())
        if self.mu > _MILD or np.any(self.factor == 0):
            return longest[target, np.newaxis]
        bound = np.empty((len(alpha), len(gammas)))
        tolerance = negligible(len(self.w))
        ladder = 2.0 ** np.arange(-60, 61)[:, np.newaxis]
        for t in np.unique(target):
            q, which = self.q[t], target == t
            along = q @ self.V
            # Along the null space of dependent columns there is nothing but rounding.
            along[np.abs(along) <= tolerance * np.abs(along).max()] = 0.0
            ridges = along / (self.w + ladder) @ self.V.T
            sizes = np.abs(ridges / self.root[t]).max(axis=1)
            # The small eigenvalues of columns of far different lengths are rounding beside the
            # large ones, and a ridge regression with them does not solve its equations.
            residual = np.abs(q - ridges @ self.S - ladder / self.metric * ridges).max(axis=1)
            solved = residual <= 100 * tolerance * (1.0 + np.abs(ridges).max(axis=1))
            sizes[~solved] = longest[t]
            # Not monotone: the largest of the two rungs around each penalty.
            penalty = alpha[which, np.newaxis] * scales[t].max() ** 2 / gammas**2
            rung = np.clip(np.searchsorted(ladder[:, 0], penalty), 1, len(ladder) - 1)
            bound[which] = np.maximum(sizes[rung - 1], sizes[rung])
        # The coefficients that a step starts from are those of the gamma before.
        bound[:, 1:] = np.maximum(bound[:, 1:], bound[:, :-1])
        return bound
