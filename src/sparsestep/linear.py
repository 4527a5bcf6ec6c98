"""Many ridge-like systems with few matrices: ``(S_k + diag(d)) b = q`` for many d at once.

Knows nothing of gamma or alpha. The matrices have a unit diagonal. With ``P = S^-1`` there are two
forms, for the coefficients b and for the forces ``f = d b`` that the penalties exert:

    primal:  (S + diag(d)) b = q            dual:  (P + diag(1 / d)) f = P q.

Conjugate gradients on the dual form see only the columns with a sizeable d: where all are small
they need next to no iteration. On the primal form they see only the columns with a small d. So a
system with most columns free takes the dual form, one with most columns suppressed the primal. For
all systems together an iteration is one matrix product; its vectors are rows here, as in ``F @ P``.

Either form splits its matrix into a diagonal and the rest, ``diag(1 / h) + N``, and is solved for
the aim ``a = f / h`` or ``a = b / h``: what a coefficient would be without its own penalty, the
others as they are. So ``a + (h a) N`` is to be `ols` (or q), and when only its own d changes an aim
does not: it is the guess to start from when all d have changed a little.

The same systems as ``scipy.linalg.solve(S + np.diag(d), q, assume_a="pos")``, one after the other.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparsestep.deflation import Deflation, Held
from sparsestep.products import by_gram
from sparsestep.reference import ridge
from sparsestep.unlocked import factorize, invert, posv, substitute

__all__ = ["GramFamily"]

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
# Correlations are mild where the smallest eigenvalue is above this. Elsewhere errors are taken for
# so many times what they seem.
_MILD = 0.1
_CAUTION = 4.0
# Errors so many times larger than they seemed are a reason to solve by a factorization.
_MISLED = 10.0
# Up to some m / 3 iterations conjugate gradients are cheaper than a factorization.
_FEWEST_ITERATIONS = 24
_ITERATIONS_PER_COLUMN = 1 / 3
_MOST_REFINEMENTS = 6
# A factorization takes about so many microseconds, and so many more for each entry of the matrix.
# To call NumPy for the iterations of a solve takes as long, however few the rows: few are sooner
# done by factorizations.
_FACTORIZATION = (15.0, 0.006)
_CALLS = 600.0
# Up to so many supports a factorization each is soonest done.
_FEW_SUPPORTS = 2
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
    own : ndarray of shape (n_grams, m)
        The same by the inverse that iterations use, without the directions held apart.
    spread : ndarray of shape (n_grams, m)
        The largest entry in each column of ``S^-1`` off the diagonal, or 0.
    smallest : ndarray of shape (n_grams,)
        The smallest eigenvalue of each matrix, roughly (0 if it may be anything).
    rcond : ndarray of shape (n_grams,)
        Reciprocal condition number of each matrix, in the 1-norm.
    is_mild : bool
        Whether no columns are strongly correlated.
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
        self.is_mild = bool(self.smallest.min(initial=1.0) > _MILD)
        self._deflation = None if self.well_conditioned else Deflation.of(self.S)
        self._inverse, self.own = self.P, self.tau
        if self._deflation is not None:
            self._inverse = self._deflation.P
            self.own = 1.0 / np.diagonal(self._inverse, axis1=1, axis2=2)
        if self.well_conditioned:
            self._S_off = _off_diagonal(self.S)
        if self.well_conditioned or self._deflation is not None:
            self._P_off = _off_diagonal(self._inverse)

    def _factorize(self, k: int) -> None:
        """Set the k-th inverse, `tau`, `spread`, `smallest` and `rcond`."""
        S, P = self.S[k], self.P[k]
        factor = S.copy()
        self.rcond[k] = 0.0
        if factorize(factor):
            invert(factor)
            upper = np.triu(factor)
            np.add(upper, upper.T, out=P)
            np.fill_diagonal(P, np.diag(factor))
            self.rcond[k] = 1.0 / (np.linalg.norm(S, 1) * np.linalg.norm(P, 1))
        rough, invertible = self.rcond[k] > _ROUGHLY, self.rcond[k] > _INVERTIBLE
        self.tau[k], self.spread[k] = _LEFT_BY_COLLINEAR, 0.0
        if invertible:
            self.tau[k] = 1.0 / np.diag(P)
            others = np.abs(P)
            np.fill_diagonal(others, 0.0)
            self.spread[k] = others.max(axis=0)
        self.smallest[k] = 1.0 / _largest_eigenvalue(P) if rough else 0.0

    def hold(self, gram: Index, d: Floats, kept: Floats, q: Array, of: Index) -> Held | None:
        """The directions to hold apart in such systems, if the matrices have some."""
        if self._deflation is None:
            return None
        return self._deflation.hold(gram, d * kept, q[of])

    def solve(
        self,
        gram: Index,
        d: Floats,
        kept: Floats,
        q: Array,
        of: Index,
        ols: Floats,
        aim: Floats,
        weight: Floats,
        stubborn: Mask,
        held: Held | None = None,
    ) -> tuple[Floats, Floats]:
        """Solve for each row of `d` and `q`.

        By iteration if `well_conditioned` or with directions held apart, else by a factorization
        each, whatever guess and weight.
        In single precision iterations are right to some 1e-6. In double precision the true residual
        decides when to stop, and only the iterations that correct it are in single precision.

        Parameters
        ----------
        gram : ndarray of shape (n_rows,)
            Which matrix each row belongs to, ascending.
        d, kept, ols : ndarrays of shape (n_rows, m)
            The systems, ``own / (own + d)``, and what `unpenalized` gives.
        q, of : ndarrays of shapes (any, m) and (n_rows,)
            Right-hand sides, in double precision, and which of them is each row's.
        aim : ndarray of shape (n_rows, m)
            A guess, overwritten by what it should have been: ``b / kept``.
        weight : ndarray of shape (n_rows, m)
            A row is solved when its weighted errors are below 1 in the mean of their squares.
        stubborn : ndarray of bool of shape (n_rows,)
            Rows to be solved by a factorization; those that turn out to need one are added.
        held : Held or None
            What `hold` gives for them.

        Returns
        -------
        b, error : ndarrays of shape (n_rows, m)
            The solutions, and what their errors are estimated to be.
        """
        if not self.well_conditioned and held is None:
            systems = _Systems(self, True, gram, d, kept, q, of, ols)
            b = systems.factorized()
            return b, np.zeros_like(b)
        if held is not None:
            stubborn |= held.useless
        if len(gram) * (_FACTORIZATION[0] + _FACTORIZATION[1] * d.shape[1] ** 2) < _CALLS:
            stubborn[:] = True
        in_dual = (self.smallest[gram] > _MILD) | (held is not None)
        if not np.all(in_dual | stubborn):
            seen_by_dual = np.count_nonzero(kept < 0.5, axis=1)
            seen_by_primal = np.count_nonzero(d < 1, axis=1)
            in_dual |= seen_by_dual <= _DUAL_BONUS * seen_by_primal
        b, error = np.empty_like(d), np.zeros_like(d)
        for dual in (True, False):
            rows = np.flatnonzero((in_dual == dual) & ~stubborn)
            if not len(rows):
                continue
            some: slice | Index = slice(None) if len(rows) == len(gram) else rows
            own = kept[some] if dual else 1 / (1 + d[some])
            guess = aim[some] if dual else aim[some] * kept[some] / own
            system = _Systems(self, dual, gram[some], d[some], own, q, of[some], ols[some])
            system.held = held and held.take(some)
            error[some], stubborn[rows] = system.solve(guess, weight[some])
            b[some] = own * guess
            aim[some] = guess if dual else b[some] / kept[some]
        rows = np.flatnonzero(stubborn)
        if len(rows):
            system = _Systems(self, True, gram[rows], d[rows], kept[rows], q, of[rows], ols[rows])
            b[rows] = system.factorized()
            aim[rows] = b[rows] / kept[rows]
            error[rows] = 0.0
        return b, error

    def unpenalized(self, gram: Index, q: Array) -> Array:
        """The solutions for ``d = 0``, as well as can be; 0 where the matrix is nearly singular."""
        ols = by_gram(gram, q, self.P)
        if not self.well_conditioned:
            ols += by_gram(gram, q - by_gram(gram, ols, self.S), self.P)
            ols[self.smallest[gram] == 0] = 0.0
        return ols

    def least_squares(self, k: int, q: Array, supports: Mask, ols: Array) -> Array:
        """Least squares on the columns of each support, zero elsewhere, for one right-hand side.

        Supports that lie one within the other share a factorization: with the columns in the order
        in which they leave, the factor for each support is a corner of the one for the largest.
        """
        b = np.zeros(supports.shape)
        left = np.argsort(-np.count_nonzero(supports, axis=1), kind="stable")
        while len(left) > _FEW_SUPPORTS:
            chain, others = _chain(supports, left)
            together = self._nested(k, q, supports[chain]) if len(chain) > _FEW_SUPPORTS else None
            if together is None:
                break
            b[chain], left = together, others
        for row in left:
            b[row] = self._one_support(k, q, supports[row], ols)
        return b

    def beside(self, k: int, q: Array, support: Mask) -> tuple[Array, Array, Array] | None:
        """What the columns of the support leave of each column, and of ``|q_j|`` of those outside.

        Last, least squares on the support. None where its columns have no factorization.
        """
        left, drawn, b = np.empty(len(q)), np.zeros(len(q)), np.zeros(len(q))
        inside, outside = np.flatnonzero(support), np.flatnonzero(~support)
        factor = self.S[k][np.ix_(inside, inside)]
        if not factorize(factor):
            return None
        explained = np.concatenate([self.S[k][np.ix_(outside, inside)], q[np.newaxis, inside]])
        substitute(factor, explained, transposed=False)
        others, target = explained[:-1], explained[-1:]
        left[outside] = (1.0 - np.vecdot(others, others)).clip(0.0) + len(q) * _EPS
        drawn[outside] = np.abs(q[outside] - others @ target[0])
        substitute(factor, target, transposed=True)
        b[inside] = target[0]
        invert(factor)
        left[inside] = 1.0 / np.diag(factor)
        return left, drawn, b

    def _nested(self, k: int, q: Array, supports: Mask) -> Array | None:
        """`least_squares` for supports each of which contains the next.

        None where columns of the largest are too nearly collinear.
        """
        sizes = np.count_nonzero(supports, axis=1)
        order = np.argsort(-np.count_nonzero(supports, axis=0), kind="stable")[: sizes[0]]
        inside = np.arange(sizes[0]) < sizes[:, np.newaxis]
        factor = self.S[k].take(order, axis=0).take(order, axis=1)
        if not factorize(factor) or np.any(np.diag(factor) ** 2 < _INVERTIBLE):
            return None

        def solved(right: Array) -> Array:
            substitute(factor, right, transposed=False)
            found = np.where(inside, right, 0.0)
            substitute(factor, found, transposed=True)
            return found

        b = np.zeros(supports.shape)
        b[:, order] = solved(q[np.newaxis, order])
        if not self.well_conditioned:
            left = (q - b @ self.S[k])[:, order]
            b[:, order] += solved(np.where(inside, left, 0.0))
        return b

    def _one_support(self, k: int, q: Array, support: Mask, ols: Array) -> Array:
        """`least_squares` for one support.

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
    """Systems to be solved in one form, a row each; ``b = kept * aim``."""

    family: GramFamily
    dual: bool
    gram: Index
    d: Floats
    kept: Floats
    q: Array
    of: Index
    ols: Floats
    held: Held | None = None

    def take(self, rows: Index | Mask) -> "_Systems":
        names = ("gram", "d", "kept", "of", "ols")
        taken = {name: getattr(self, name)[rows] for name in names}
        return replace(self, held=self.held and self.held.take(rows), **taken)

    def solve(self, aim: Floats, weight: Floats) -> tuple[Floats, Mask]:
        """Iterate from `aim`, which is overwritten: estimated errors, and which rows gave up."""
        single = aim.dtype == np.float32
        gave_up = np.zeros(len(aim), dtype=bool)
        # Where correlations are strong, errors may be well above the corrections that are seen.
        mild = self.family.smallest[self.gram, np.newaxis] > _MILD
        caution = np.where(mild, 1.0, _CAUTION).astype(aim.dtype)
        left, spare = np.empty_like(aim), np.empty((len(aim), 1), aim.dtype)
        t = self._along(aim)
        open_ = np.arange(len(aim))
        system = self
        some: slice | Index = slice(None)
        for _ in range(_MOST_REFINEMENTS):
            h = system.d * system.kept if self.dual else system.kept
            if system.held is not None:
                aim[some], t[some] = system.held.met(h, aim[some], t[some])
            residual = system.residual(h, aim[some], t[some])
            lead, lean = _led(system.held, residual, h)
            measure = weight[some] * system.kept
            measure *= measure
            measure *= caution[some] ** 2 / aim.shape[1]
            square = np.vecdot(lead * lead, measure)
            good = square <= 1
            if good.any():
                rows = open_[good]
                aim[rows] += lead[good]
                left[rows], spare[rows] = lead[good], 1.0
                bad = ~good
                some = open_ = open_[bad]
                if not len(open_):
                    break
                system, h, measure = system.take(bad), h[bad], measure[bad]
                residual, square = residual[bad], square[bad]
            goal = np.ones_like(square) if single else np.maximum(0.25, _REACH**2 * square)
            change, lean, left[some], spare[some], converged = system.iterate(
                residual, h, measure, goal
            )
            aim[some] += change
            t[some] += lean
            gave_up[open_[~converged]] = True
            # In double precision the next round looks at the true residual before it believes.
            some = open_ = open_[:0] if single else open_[converged]
            if not len(open_):
                break
            system = self.take(open_)
        gave_up[open_] = True
        if single and not mild.all():
            gave_up |= ~mild[:, 0] & (self.seen_otherwise(aim, weight) > _MISLED**2)
        # The next correction of a coefficient may be more than its last, but not than the others'.
        error = np.abs(left)
        error += np.sqrt(np.vecdot(left, left) / left.shape[1])[:, np.newaxis]
        error *= self.kept
        error *= spare * caution
        return error, gave_up

    def _along(self, aim: Floats) -> Floats:
        """How far such solutions lie along the directions held apart, none or a few."""
        if self.held is None:
            return np.empty((len(aim), 0), aim.dtype)
        return self.held.coordinates(self.kept * aim)

    def factorized(self) -> Array:
        """Solve each system by a factorization, or by `ridge` if it may be singular to rounding.

        As huge as a d may be, Cholesky's errors are those of the matrix scaled to a unit diagonal.
        NaN where the matrix has an inverse and some d is beyond the range of floats.
        """
        if not self.family.invertible:
            return self._factorized(self.d, careful=True)
        finite = np.isfinite(self.d).all(axis=1, keepdims=True)
        d = np.where(finite, self.d, 0.0).astype(np.float64)
        return np.where(finite, self._factorized(d, careful=False), np.nan)

    def _factorized(self, d: Array, careful: bool) -> Array:
        """The solutions for the diagonals `d`, stack by stack."""
        out = np.empty_like(d)
        m = d.shape[1]
        stack = max(1, _STACK_BYTES // (8 * m * m))

        def solve_from(low: int) -> None:
            high = low + stack
            A = self.family.S[self.gram[low:high]]
            A.reshape(len(A), -1)[:, :: m + 1] += d[low:high]
            q = self.q[self.of[low:high]]
            out[low:high] = q
            solved = posv(A, out[low:high])
            if careful:
                # The factor's diagonal, squared, is what a column keeps beside those before it.
                kept = np.diagonal(A, axis1=1, axis2=2) ** 2
                solved &= np.all(kept > m * _EPS * (1.0 + d[low:high]), axis=1)
                for row in np.flatnonzero(~solved):
                    S = self.family.S[self.gram[low + row]]
                    out[low + row] = ridge(S, d[low + row], q[row])

        stacks = range(0, len(d), stack)
        for _ in (self.family.map if len(stacks) > 1 else map)(solve_from, stacks):
            pass
        return out

    def residual(self, h: Floats, aim: Floats, t: Floats) -> Floats:
        """``ols - a - (h a) N`` for aims a, or q in place of `ols`; with ``N t`` held apart."""
        if self.held is not None:
            out = by_gram(self.gram, self.q[self.of] - h * aim, self.family._inverse)
            out += self.held.along(t)
            out -= aim * self.kept
            return out
        right = self.ols if self.dual else self.q[self.of]
        if aim.dtype == np.float32:
            out = by_gram(self.gram, h * aim, self._off())
            out += aim
        else:
            out = by_gram(self.gram, h * aim, self.family.P if self.dual else self.family.S)
            out += aim * self.kept if self.dual else aim * self.d * self.kept
        return np.subtract(right, out, out=out)

    def seen_otherwise(self, aim: Floats, weight: Floats) -> Floats:
        """The mean square of the weighted errors as the other form would estimate them.

        Along nearly collinear columns a form may see next to nothing of an error, where the other
        sees it all.
        """
        tau = self.family.tau[self.gram].astype(aim.dtype, copy=False)
        b, other = self.kept * aim, replace(self, dual=not self.dual)
        kept = tau / (tau + self.d) if other.dual else 1 / (1 + self.d)
        h = self.d * kept if other.dual else kept
        error = other.residual(h, b / kept, self._along(aim)) * kept * weight
        return np.asarray(np.vecdot(error, error) / error.shape[1])

    def _off(self) -> NDArray[np.float32]:
        """The matrices but for their diagonals, in single precision."""
        return self.family._P_off if self.dual else self.family._S_off

    def iterate(
        self, residual: Floats, h: Floats, measure: Floats, goal: Floats
    ) -> tuple[Floats, Floats, Floats, Floats, Mask]:
        """Conjugate gradients in single precision.

        Returns how much to change the aims and t, with the last correction; that correction of the
        aims, which is the residual left; by what to multiply it for those that were spared; and who
        converged. A row converges when its squared corrections, times `measure` and summed, are
        below its goal. Rows leave unconverged when a factorization would be cheaper than to go on.
        """
        dtype = np.float32
        off = self._off()
        gram, held = self.gram, self.held and self.held.astype(dtype)
        residual = residual.astype(dtype)
        h, measure, goal = (x.astype(dtype, copy=False) for x in (h, measure, goal))
        lead, lean = _led(held, residual, h)
        change, last, turn = np.empty_like(residual), np.empty_like(residual), np.empty_like(lean)
        spare = np.empty((len(h), 1), dtype)
        converged = np.zeros(len(h), dtype=bool)
        rows = np.arange(len(h))

        total, tilted = None, np.zeros_like(lean)
        way, tilt = lead.copy(), lean.copy()
        energy = _energy(held, lead * lead, lean, h)
        past = [energy]
        most = max(_FEWEST_ITERATIONS, int(_ITERATIONS_PER_COLUMN * h.shape[1]))
        for iteration in range(most):
            step = h * way
            met = by_gram(gram, step, off)
            met += way
            if held is not None:
                met -= held.along(tilt)
            length = _ratio(energy, np.vecdot(step, met))[:, np.newaxis]
            np.multiply(way, length, out=step)
            if total is None:
                total = step
            else:
                total += step
            tilted += length * tilt
            met *= length
            residual -= met
            lead, lean = _led(held, residual, h)
            np.multiply(lead, lead, out=met)
            energy, before = _energy(held, met, lean, h), energy
            past = [*past[-_MEMORY:], energy]
            # Where convergence is slow the steps to come add up, to 1 / (1 - rate) times this one.
            rate = np.exp(np.log(_ratio(energy, past[0])) * (0.5 / (len(past) - 1)))
            rest = np.reciprocal(np.maximum(1 - rate, _SLOWEST))
            square = np.vecdot(met, measure) * rest**2
            done = square <= goal
            left = most - 1 - iteration
            # Rows that would not get there in the iterations left give up now. Leaving costs a copy
            # of every array: wait until a good part of the rows may leave.
            out = done
            if iteration >= _MEMORY:
                out = done | ~(square * np.minimum(rate, 1) ** (2 * left) <= goal)
            if left == 0:
                out = np.ones_like(done)
            if 4 * np.count_nonzero(out) >= len(out):
                which = rows[out]
                last[which] = lead[out]
                change[which] = total[out] + lead[out]
                turn[which] = tilted[out] + lean[out]
                spare[which, 0] = rest[out]
                converged[rows[done]] = True
                if out.all():
                    break
                stay = ~out
                rows, gram, goal = rows[stay], gram[stay], goal[stay]
                energy, before, past = energy[stay], before[stay], [e[stay] for e in past]
                h, measure, residual = h[stay], measure[stay], residual[stay]
                way, total = way[stay], total[stay]
                held, tilt, tilted = held and held.take(stay), tilt[stay], tilted[stay]
                lead, lean = _led(held, residual, h)
            more = _ratio(energy, before)[:, np.newaxis]
            way *= more
            way += lead
            tilt *= more
            tilt += lean
        return change, turn, last, spare, converged


def _led(held: Held | None, residual: Floats, h: Floats) -> tuple[Floats, Floats]:
    """The correction of aims for such a residual, and of t: none if no direction is held apart."""
    if held is None:
        return residual, np.empty((len(residual), 0), residual.dtype)
    return held.led(residual, h)


def _energy(held: Held | None, squares: Floats, lean: Floats, h: Floats) -> Floats:
    """The energy of corrections, of the aims squared and of t."""
    energy: Floats = np.vecdot(squares, h)
    return energy if held is None else energy + held.energy(lean)


def _off_diagonal(matrices: Array) -> NDArray[np.float32]:
    """The matrices with zeros on their diagonals, in single precision."""
    out = matrices.astype(np.float32)
    out.reshape(len(out), -1)[:, :: out.shape[1] + 1] = 0.0
    return out


def _chain(supports: Mask, rows: Index) -> tuple[Index, Index]:
    """Split `rows`, largest support first, into some that lie one within the other and the rest."""
    ordered = supports[rows]
    if not np.any(ordered[1:] & ~ordered[:-1]):
        return rows, rows[:0]
    chain: list[np.intp] = [rows[0]]
    rest: list[np.intp] = []
    for row in rows[1:]:
        within = not np.any(supports[row] & ~supports[chain[-1]])
        (chain if within else rest).append(row)
    return np.array(chain), np.array(rest, dtype=np.intp)


def _solved(A: Array, right: Array) -> Array:
    """Solve with a positive definite matrix, which is overwritten."""
    solution = right.copy()
    if len(right):
        posv((A if A.flags.c_contiguous else A.T)[np.newaxis], solution[np.newaxis])
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


def _ratio(numerator: Floats, denominator: Floats) -> Floats:
    """The quotients, 0 where a row has nothing left to do and both are 0."""
    return np.asarray(numerator / np.maximum(denominator, _TINY))
