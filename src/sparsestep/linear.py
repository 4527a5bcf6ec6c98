"""Many ridge-like systems with few matrices: ``(S_k + diag(d)) b = q`` for many d at once.

Knows nothing of gamma or alpha. The matrices have a unit diagonal. With ``P = S^-1`` there are two
forms,

    primal:  (S + diag(d)) b = q            dual:  (I + P diag(d)) b = P q,

the second self-adjoint and positive in the inner product ``<u, v> = u' diag(d) v``. Conjugate
gradients on the dual form see only the columns with a sizeable d: where all are small they need
next to no iteration. On the primal form they see only the columns with a small d. So a system with
most columns free takes the dual form, one with most columns suppressed the primal. For all systems
together an iteration is one matrix product; its vectors are rows here, as in ``B @ P``.

The same systems as ``scipy.linalg.solve(S + np.diag(d), q, assume_a="pos")``, one after the other.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import lapack

from sparsestep.posv import posv
from sparsestep.reference import ridge

__all__ = ["GramFamily", "by_gram"]

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]
Floats = NDArray[Any]
Index = NDArray[np.intp]

_EPS = np.finfo(np.float64).eps
# Below this reciprocal condition number single precision is too coarse to iterate in. Double is
# not worth it: where a penalty lies among the eigenvalues, iterations are many and their errors,
# along nearly collinear columns, more than they seem.
_SINGLE = 1e-5
# Below this the inverse is too coarse to say what columns leave of each other ...
_INVERTIBLE = 1e-9
# ... and below this it is of no use at all: not even to say where the fall of gamma may start.
_ROUGHLY = 1e-13
# What a column keeps beside nearly collinear ones, where the inverse cannot tell. Bounds on errors
# say little there: what the support's columns leave of each other is looked at in the end.
_LEFT_BY_COLLINEAR = 1e-3
# The dual form may see so many times more columns than the primal: it converges a little faster,
# and where correlations are mild two groups of rows cost more than the iterations they save.
_DUAL_BONUS = 3
_DUAL_BONUS_IF_MILD = 20
_MILD = 0.1
# Up to some m / 6 iterations conjugate gradients are cheaper than a factorization.
_FEWEST_ITERATIONS = 8
_ITERATIONS_PER_COLUMN = 1 / 6
_MOST_REFINEMENTS = 6
# OpenBLAS takes longer for a product with two or three rows than for one with each of them.
_FEW_ROWS = 3
# A stack of systems of this size is factorized in one call.
_STACK_BYTES = 1 << 20
# The rate of convergence is measured over this many iterations, and believed up to a point.
_MEMORY = 4
_SLOWEST = 0.01
# Less than any energy that counts, in single precision too.
_TINY = 1e-37
# A round of iterations in single precision brings the error down by this factor, and no further.
_REACH = 1e-5


class GramFamily:
    """Gram matrices with unit diagonal, each factorized once.

    Attributes
    ----------
    S : ndarray of shape (n_grams, m, m)
    tau : ndarray of shape (n_grams, m)
        What the other columns leave of each column: ``1 / diag(S^-1)``, or a guess.
    spread : ndarray of shape (n_grams, m)
        The largest other entry in each column of ``S^-1``, relative to that on the diagonal.
    smallest : ndarray of shape (n_grams,)
        The smallest eigenvalue of each matrix, roughly (0 if it may be anything).
    rcond : ndarray of shape (n_grams,)
        Reciprocal condition number of each matrix, in the 1-norm.
    map : callable
        Python's ``map``, or that of a pool of threads: factorizations are shared out by it.
    """

    def __init__(self, grams: Sequence[Array], map: Callable[..., Iterable[None]] = map) -> None:
        self.map = map
        self.S = np.ascontiguousarray(grams, dtype=np.float64)
        n_grams, m, _ = self.S.shape
        self.P = np.zeros_like(self.S)
        self.tau, self.spread = np.empty((n_grams, m)), np.empty((n_grams, m))
        self.smallest = np.empty(n_grams)
        self.rcond = np.empty(n_grams)
        for k in range(n_grams):
            self._factorize(k)
        worst = self.rcond.min(initial=1.0)
        self.invertible = bool(worst > _INVERTIBLE)
        self.well_conditioned = bool(worst > _SINGLE)
        if self.well_conditioned:
            self._S_single, self._P_single = self.S.astype(np.float32), self.P.astype(np.float32)

    def _factorize(self, k: int) -> None:
        """Set the k-th inverse, `tau`, `spread`, `smallest` and `rcond`."""
        S, P = self.S[k], self.P[k]
        factor, failed = lapack.dpotrf(S, lower=True, clean=True)
        self.rcond[k] = 0.0
        if not failed:
            inverse, _ = lapack.dpotri(factor, lower=True, overwrite_c=True)
            np.add(inverse, inverse.T, out=P)
            np.fill_diagonal(P, np.diag(inverse))
            self.rcond[k] = 1.0 / (np.linalg.norm(S, 1) * np.linalg.norm(P, 1))
        rough, invertible = self.rcond[k] > _ROUGHLY, self.rcond[k] > _INVERTIBLE
        self.tau[k], self.spread[k] = _LEFT_BY_COLLINEAR, 0.0
        if invertible:
            self.tau[k] = 1.0 / np.diag(P)
            others = np.abs(P)
            np.fill_diagonal(others, 0.0)
            self.spread[k] = self.tau[k] * others.max(axis=0)
        self.smallest[k] = 1.0 / _largest_eigenvalue(P) if rough else 0.0

    def solve(
        self,
        gram: Index,
        d: Floats,
        q: Array,
        ols: Floats,
        b: Floats,
        weight: Floats,
        tolerance: Floats,
        stubborn: Mask,
    ) -> Floats:
        """Solve for each row of `d` and `q`, from the guess `b`, which is overwritten.

        By iteration if `well_conditioned`, else by a factorization each, whatever guess, weight and
        tolerance. In single precision iterations are right to some 1e-6. In double precision the
        true residual decides when to stop, and only the iterations that correct it are in single
        precision.

        Parameters
        ----------
        gram : ndarray of shape (n_rows,)
            Which matrix each row belongs to, ascending.
        d, q, ols : ndarrays of shape (n_rows, m)
            The systems, and what `unpenalized` gives; q in double precision.
        weight, tolerance : ndarrays of shapes (n_rows, m) and (n_rows,)
            A row is solved when the weighted norm of its error is below its tolerance.
        stubborn : ndarray of bool of shape (n_rows,)
            Rows to be solved by a factorization; those that turn out to need one are added.

        Returns
        -------
        ndarray of shape (n_rows, m)
            Estimated errors of the solution.
        """
        if not self.well_conditioned:
            systems = _Systems(self, True, gram, d, q, ols)
            b[:] = systems.directly() if self.invertible else systems.carefully()
            return np.zeros_like(b)
        error = np.zeros_like(b)
        seen_by_dual = np.count_nonzero(d > self.tau[gram], axis=1)
        seen_by_primal = np.count_nonzero(d < 1, axis=1)
        bonus = np.where(self.smallest > _MILD, _DUAL_BONUS_IF_MILD, _DUAL_BONUS)[gram]
        in_dual = seen_by_dual <= bonus * seen_by_primal
        for dual in (True, False):
            rows = np.flatnonzero((in_dual == dual) & ~stubborn)
            if len(rows):
                some = slice(None) if len(rows) == len(gram) else rows
                system = _Systems(self, dual, gram[some], d[some], q[some], ols[some])
                b[some], error[some], gave_up = system.solve(b[some], weight[some], tolerance[some])
                stubborn[rows[gave_up]] = True
        rows = np.flatnonzero(stubborn)
        if len(rows):
            b[rows] = _Systems(self, True, gram[rows], d[rows], q[rows], ols[rows]).directly()
            error[rows] = 0.0
        return error

    def unpenalized(self, gram: Index, q: Array) -> Array:
        """The solutions for ``d = 0``, as well as can be; 0 where the matrix is nearly singular."""
        ols = by_gram(gram, q, self.P)
        if not self.well_conditioned:
            ols += by_gram(gram, q - by_gram(gram, ols, self.S), self.P)
            ols[self.smallest[gram] == 0] = 0.0
        return ols

    def matrices(self, dual: bool, dtype: np.dtype[Any]) -> Floats:
        """The inverses (dual) or the matrices themselves, in the given precision."""
        if dtype == np.float32:
            return self._P_single if dual else self._S_single
        return self.P if dual else self.S

    def least_squares(self, k: int, q: Array, support: Mask, ols: Array) -> Array:
        """Least squares on the columns of `support`, zero elsewhere, for one right-hand side.

        With few columns out, ``b = ols - P[:, out] z`` where ``P[out, out] z = ols[out]``.
        """
        inside, outside = np.flatnonzero(support), np.flatnonzero(~support)
        b = np.zeros_like(q)
        if self.well_conditioned and len(outside) < len(inside):
            P = self.P[k][outside]
            z = _solved(P[:, outside], ols[outside])
            b[inside] = (ols - z @ P)[inside]
        elif self.well_conditioned:
            b[inside] = _solved(self.S[k][inside][:, inside], q[inside])
        else:
            S = self.S[k][np.ix_(inside, inside)]
            b[inside] = ridge(S, np.zeros(len(inside)), q[inside])
            b[inside] += ridge(S, np.zeros(len(inside)), q[inside] - S @ b[inside])
        return b


@dataclass
class _Systems:
    """Systems to be solved in one form, a row each."""

    family: GramFamily
    dual: bool
    gram: Index
    d: Floats
    q: Array
    ols: Floats

    def take(self, rows: Index) -> "_Systems":
        return replace(
            self, gram=self.gram[rows], d=self.d[rows], q=self.q[rows], ols=self.ols[rows]
        )

    def solve(self, b: Floats, weight: Floats, tolerance: Floats) -> tuple[Floats, Floats, Mask]:
        """Iterate from `b`: the solutions, their last corrections, and which rows gave up."""
        single = b.dtype == np.float32
        gave_up = np.zeros(len(b), dtype=bool)
        error = np.empty_like(b)
        open_ = np.arange(len(b))
        for _ in range(_MOST_REFINEMENTS):
            some = slice(None) if len(open_) == len(b) else open_
            system = self if len(open_) == len(b) else self.take(open_)
            residual, damping = system.residual(b[some]), system.damping()
            step = residual * damping
            size = step * weight[some]
            norm = np.sqrt(np.vecdot(size, size))
            good = norm <= tolerance[some]
            goal = tolerance[some] if single else np.maximum(tolerance[some] / 2, _REACH * norm)
            if good.any():
                b[open_[good]] += step[good]
                error[open_[good]] = step[good]
                bad = ~good
                some = open_ = open_[bad]
                system, goal = self.take(open_), goal[bad]
                residual, damping = residual[bad], damping[bad]
            if len(open_):
                change, error[some], converged = system.iterate(
                    residual, damping, weight[some], goal
                )
                b[some] += change
                gave_up[open_[~converged]] = True
                # In double precision the next round looks at the true residual before it believes.
                open_ = open_[:0] if single else open_[converged]
            if not len(open_):
                break
        gave_up[open_] = True
        return b, error, gave_up

    def directly(self) -> Array:
        """Solve each system by a factorization.

        As huge as a d may be, Cholesky's errors are those of the matrix scaled to a unit diagonal.
        NaN where some d is beyond the range of floats.
        """
        finite = np.isfinite(self.d).all(axis=1, keepdims=True)
        d = np.where(finite, self.d, 0.0).astype(np.float64)
        return np.where(finite, self._factorized(d, careful=False), np.nan)

    def carefully(self) -> Array:
        """Solve each system by a factorization, or by `ridge` if it is singular to rounding."""
        return self._factorized(self.d, careful=True)

    def _factorized(self, d: Array, careful: bool) -> Array:
        """The solutions for the diagonals `d`, stack by stack."""
        out = np.empty_like(self.q)
        m = d.shape[1]
        stack = max(1, _STACK_BYTES // (8 * m * m))

        def solve_from(low: int) -> None:
            A = self.family.S[self.gram[low : low + stack]]
            A.reshape(len(A), -1)[:, :: m + 1] += d[low : low + stack]
            for row, matrix in enumerate(A, start=low):
                out[row] = self.q[row]
                solved = posv(matrix, out[row])
                # The factor's diagonal, squared, is what each column keeps beside those before it.
                if careful and not (
                    solved and np.all(np.diagonal(matrix) ** 2 > m * _EPS * (1.0 + d[row]))
                ):
                    out[row] = ridge(self.family.S[self.gram[row]], d[row], self.q[row])

        stacks = range(0, len(d), stack)
        for _ in (self.family.map if len(stacks) > 1 else map)(solve_from, stacks):
            pass
        return out

    def damping(self) -> Floats:
        """Inverse of the operator's diagonal: the preconditioner."""
        if not self.dual:
            return np.asarray(1 / (1 + self.d))
        tau = self.family.tau[self.gram].astype(self.d.dtype, copy=False)
        return np.asarray(tau / (tau + self.d))

    def residual(self, b: Floats) -> Floats:
        """``q - (S + diag(d)) b``, or P times that."""
        matrices, db = self.family.matrices(self.dual, b.dtype), self.d * b
        met, other, right = (db, b, self.ols) if self.dual else (b, db, self.q)
        out = by_gram(self.gram, met, matrices)
        out += other
        return np.subtract(right, out, out=out)

    def iterate(
        self, residual: Floats, damping: Floats, weight: Floats, goal: Floats
    ) -> tuple[Floats, Floats, Mask]:
        """Conjugate gradients from 0: the solution, its last correction, and who converged.

        Rows leave unconverged when a factorization would be cheaper than to go on. The operator
        takes v to ``(d v) P + v`` (dual) or ``v S + d v`` (primal); both need v and
        ``d v``, and the one that meets the matrix is also the one in the inner products.
        """
        dtype = np.dtype(np.float32)
        matrices = self.family.matrices(self.dual, dtype)
        gram = self.gram
        d, damping, weight, residual = (
            x.astype(dtype, copy=False) for x in (self.d, damping, weight, residual)
        )
        bound = goal.astype(dtype) ** 2
        v = damping * residual
        solution, error = np.empty_like(d), np.empty_like(d)
        converged = np.zeros(len(d), dtype=bool)
        rows = np.arange(len(d))

        u = np.zeros_like(d)
        dv = d * v
        energy = np.vecdot(residual, dv if self.dual else v)
        past = [energy]
        most = max(_FEWEST_ITERATIONS, int(_ITERATIONS_PER_COLUMN * d.shape[1]))
        for iteration in range(most):
            met, other = (dv, v) if self.dual else (v, dv)
            Av = by_gram(gram, met, matrices)
            Av += other
            length = _ratio(energy, np.vecdot(met, Av))[:, np.newaxis]
            step = length * v
            u += step
            Av *= length
            residual -= Av
            np.multiply(damping, residual, out=step)
            size = np.multiply(step, weight, out=Av)
            dstep = d * step
            energy, before = np.vecdot(residual, dstep if self.dual else step), energy
            past = [*past[-_MEMORY:], energy]
            # Where convergence is slow the steps to come add up, to 1 / (1 - rate) times this one.
            rate = np.exp(np.log(_ratio(energy, past[0])) * (0.5 / (len(past) - 1)))
            rest = np.reciprocal(np.maximum(1 - rate, _SLOWEST))
            square = np.vecdot(size, size) * rest**2
            done = square <= bound
            left = most - 1 - iteration
            # Rows that would not get there in the iterations left give up now. Leaving costs a copy
            # of every array: wait until a good part of the rows may leave.
            out = done
            if iteration >= _MEMORY:
                out = done | ~(square * np.minimum(rate, 1) ** (2 * left) <= bound)
            if left == 0:
                out = np.ones_like(done)
            if 4 * np.count_nonzero(out) >= len(out):
                error[rows[out]] = step[out] * rest[out, np.newaxis]
                solution[rows[out]] = u[out] + step[out]
                converged[rows[done]] = True
                if out.all():
                    break
                stay = ~out
                rows, gram, bound = rows[stay], gram[stay], bound[stay]
                energy, before, past = energy[stay], before[stay], [e[stay] for e in past]
                d, damping, weight, residual = d[stay], damping[stay], weight[stay], residual[stay]
                u, v, dv, step, dstep = u[stay], v[stay], dv[stay], step[stay], dstep[stay]
            turn = _ratio(energy, before)[:, np.newaxis]
            v *= turn
            v += step
            dv *= turn
            dv += dstep
        return solution, error, converged


def _solved(A: Array, right: Array) -> Array:
    """Solve with a positive definite matrix, which is overwritten."""
    solution = right.copy()
    if len(right):
        posv(A if A.flags.c_contiguous else A.T, solution)
    return solution


def _largest_eigenvalue(P: Array) -> float:
    """A few steps of the power method: enough to place a start, where a factor of 2 is nothing."""
    v = P[np.argmax(np.diag(P))]
    size = 1.0
    for _ in range(6):
        v = v / np.linalg.norm(v)
        w = P @ v
        size, v = float(v @ w), w
    return size


def by_gram(gram: Index, rows: Floats, matrices: Floats) -> Floats:
    """Each row times its own matrix: one product for each matrix, because `gram` ascends."""
    out = np.empty_like(rows)
    high = 0
    for k, count in enumerate(np.bincount(gram).tolist()):
        low, high = high, high + count
        if count > _FEW_ROWS:
            np.matmul(rows[low:high], matrices[k], out=out[low:high])
        else:
            for row in range(low, high):
                np.matmul(rows[row], matrices[k], out=out[row])
    return out


def _ratio(numerator: Floats, denominator: Floats) -> Floats:
    """The quotients, 0 where a row has nothing left to do and both are 0."""
    return np.asarray(numerator / np.maximum(denominator, _TINY))
