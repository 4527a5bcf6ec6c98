"""Algorithm 1 on a working set, where there are fewer rows than columns.

The loop starts from a ridge regression. On many more columns than rows that shares the signal out
among all of them, and the annealing then keeps some by chance. So the loop runs on few columns:

1. Forward selection adds the column that lowers the residual sum of squares most, as long as that
   is by more than a share of the price of a variable (`Schedule.price`). These columns are the
   working set of an alpha.
2. The engine follows the loop on the Gram matrix of the set. If the columns are nearly collinear,
   the rows give back the digits that this loses, in each step and in the answer.
3. Every other column is checked against the residual r of the solution. It would enter if
   ``(x_j'r)^2 / ||x_j||^2`` exceeds the price, and exceeds it for each column that the loop itself
   has just refused. Columns that would enter join the set, and 2 follows again.

The answer is that of the loop on the set, with the certificate that no other column would enter. It
depends on the data and on its own alpha, not on what else is asked for.
"""

from collections.abc import Callable, Hashable, Sequence

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from sparsestep.penalty import weights
from sparsestep.reference import cholesky
from sparsestep.solvers.engine import Gram, solve_all
from sparsestep.solvers.reference_rows import row_space, sparsestep_reference_rows
from sparsestep.solvers.schedule import Schedule
from sparsestep.threads import one_blas_thread

Array = NDArray[np.float64]
Index = NDArray[np.intp]

# Forward selection goes on while a column gains more than this share of the price: the loop is to
# choose among some more columns than it will keep.
_SHARE = 0.75
# How many of the columns that would enter join the set at a time, those that gain most first.
_JOIN = 10
# Columns of unit length of which the selected ones leave less than this are spanned by them.
_COLLINEAR = 1e-10
# Below this eigenvalue, of columns of unit length, their Gram matrix has lost more digits than the
# answer may, and the rows give them back.
_NEAR_SINGULAR = 1e-6
# Sums of squares below this share of the target's own are rounding.
_ROUNDING = 1e-14
# Numbers that differ by no more than this share are equal. Of columns with equal gains the first
# is taken.
_EQUAL = 1e-9


def supported_size(n: float, m: int) -> int:
    """How many variables n rows can support that are chosen among m columns.

    ``n / (log m log log n)``, the bound of Zhu et al. (2020) for best subsets.
    """
    rows = max(n, 1.0)
    log_log = np.log(max(np.log(rows), np.e))
    return int(np.clip(rows / (log_log * np.log(max(m, 3))), 1, max(m, 1)))


# Several threads of linear algebra wait for each other longer than these products take.
@one_blas_thread()
def solve_wide(
    problems: Sequence["WorkingSets"],
    alphas: Array,
    told: Callable[[int], None] = lambda count: None,
) -> tuple[Array, int]:
    """Coefficients of shape (n_targets, n_alphas, m) and the most steps that any problem took.

    `problems` are those of each target, and `alphas` has a row for each. `told` is called with how
    many more problems are solved.
    """
    coefs = np.zeros((*alphas.shape, problems[0].A.shape[1]))
    for problem, row, out in zip(problems, alphas, coefs, strict=True):
        penalized = row > 0
        out[penalized] = problem.solve(row[penalized], told)
        if not penalized.all():
            out[~penalized] = problem.least_norm()
            told(int(np.count_nonzero(~penalized)))
    return coefs, max(problem.steps for problem in problems)


class WorkingSets:
    """The problems of one target. Forward selection goes on where the last alphas left it."""

    def __init__(self, A: Array, y: Array, factor: Array, schedule: Schedule) -> None:
        self.A, self.y, self.factor, self.schedule = A, y, factor, schedule
        self.length = np.sqrt(np.einsum("ij,ij->j", A, A))
        self.size = float(np.linalg.norm(y))
        self.may = (self.length > 0) & np.isfinite(factor)
        self.inverse = np.divide(1.0, self.length, out=np.zeros_like(factor), where=self.may)
        self.sets: list[Index] = []  # the columns, in order, that each alpha was last solved on
        self.steps = 0  # the most that any problem took
        self.forward: _Forward | None = None

    def solve(self, alphas: Array, told: Callable[[int], None] = lambda count: None) -> Array:
        """Coefficients of shape (n_alphas, m) for positive alphas."""
        coefs, self.steps = np.zeros((len(alphas), len(self.factor))), 0
        if not self.size > 0 or not self.may.any():
            self.sets = [np.empty(0, dtype=np.intp)] * len(alphas)
            told(len(alphas))
            return coefs
        # In units in which the target and the columns have length 1.
        prices = self.schedule.price() * (alphas / self.size / self.size)
        self.forward = self.forward or _Forward(self)
        self.sets = [self.forward.worth(_SHARE * price) for price in prices]
        todo = np.arange(len(alphas))
        while len(todo):
            for some in _alike(todo, [self.sets[i].tobytes() for i in todo]):
                self._solve_on_set(alphas, some, coefs)
            again = self._let_in(coefs, prices, todo)
            told(len(todo) - len(again))
            todo = again
        return coefs

    def least_norm(self) -> Array:
        """The loop without a penalty, all steps alike: least squares of least norm."""
        return sparsestep_reference_rows(
            *(self.A, self.y, 0.0),
            gamma_0=1.0,
            gamma_stop=0.5,
            t_max=1,
            epsilon=self.schedule.epsilon,
            penalty_factor=self.factor,
        )

    def _solve_on_set(self, alphas: Array, some: Index, coefs: Array) -> None:
        """The loop on the set that some problems have in common."""
        which = self.sets[some[0]]
        if not len(which):
            return
        A, S, rows = self.A[:, which], self.A[:, which].T @ self.A[:, which], None
        length = self.length[which]
        least = float(np.linalg.eigvalsh(S / length / length[:, np.newaxis])[0])
        if least < _NEAR_SINGULAR:
            basis = row_space(A)
            rows = basis.T @ A, (self.y @ basis)[np.newaxis]
        gram = Gram(S, (self.y @ A)[np.newaxis], self.factor[which], rows)
        found, steps = solve_all([gram], [alphas[some][np.newaxis]], self.schedule)
        self.steps = max(self.steps, steps)
        coefs[some[:, np.newaxis], which] = found[0][0]
        if rows:
            for i in some:
                self._refine(coefs[i], alphas[i])

    def _refine(self, b: Array, alpha: float) -> None:
        """Give least squares the digits that its Gram matrix has lost.

        Other answers, which the last penalties show in, have them. So do those that would change by
        more than these digits: columns that the loop set to zero at the end had an effect on them.
        """
        kept = np.flatnonzero(b)
        length = self.length[kept]
        unit, x = self.A[:, kept] / length, b[kept] * length
        S = unit.T @ unit
        factor = cholesky(S) if len(kept) else None
        if factor is None:
            return

        def solve(q: Array) -> Array:
            return np.asarray(linalg.cho_solve((factor, True), q, check_finite=False))

        d = alpha * self.factor[kept] * weights(b[kept], float(self.schedule.gammas()[-1]))
        if np.any(np.abs(solve(d / length / length * x)) > _EQUAL * np.abs(x)):
            return
        rcond, _ = linalg.lapack.dpocon(factor, np.abs(S).sum(axis=0).max(), uplo="L")
        last = 10 * np.finfo(np.float64).eps / rcond * np.abs(x).max()
        change = solve((self.y - unit @ x) @ unit)
        while np.abs(change).max() < last:
            x += change
            last = 0.5 * np.abs(change).max()
            change = solve((self.y - unit @ x) @ unit)
        b[kept] = x / length

    def _let_in(self, coefs: Array, prices: Array, todo: Index) -> Index:
        """Let columns join the sets of the problems whose loop would keep them; these problems."""
        # Most alphas share their answer, and with it their residual, with a neighbour.
        answers = [(self.sets[i].tobytes(), coefs[i, self.sets[i]].tobytes()) for i in todo]
        alike = _alike(todo, answers)
        drops = self._drops(coefs[[some[0] for some in alike]])
        again = []
        for some, drop in zip(alike, drops, strict=True):
            which = self.sets[some[0]]
            # What the loop refused it would refuse again.
            refused = (1 + _EQUAL) * drop[which[coefs[some[0], which] == 0]].max(initial=0.0)
            drop[which] = 0.0
            for i in some[drop.max() > np.maximum(prices[some], refused)]:
                found = np.flatnonzero(drop > max(prices[i], refused))
                largest = np.argsort(-drop[found], kind="stable")[:_JOIN]
                self.sets[i] = np.union1d(which, found[largest])
                again.append(i)
        return np.array(again, dtype=np.intp)

    def _drops(self, coefs: Array) -> Array:
        """``(x_j'r)^2 / ||x_j||^2`` of every column, the target of length 1, by penalty factors.

        0 for columns without a penalty, and for those that may not enter.
        """
        used = np.flatnonzero(coefs.any(axis=0))
        along = (self.y - coefs[:, used] @ self.A[:, used].T) / self.size @ self.A
        along *= self.inverse
        along *= along
        factor = np.where(self.factor > 0, self.factor, np.inf)
        return np.asarray(np.divide(along, factor, out=along))


def _alike(problems: Index, keys: Sequence[Hashable]) -> list[Index]:
    """The problems in groups of the same key."""
    groups: dict[Hashable, list[int]] = {}
    for i, key in zip(problems, keys, strict=True):
        groups.setdefault(key, []).append(i)
    return [np.array(group) for group in groups.values()]


class _Forward:
    """Forward selection among rows, as far as it is asked for.

    With an orthonormal basis q_k of the selected columns, and columns and target of length 1,

        w_kj = q_k'x_j,    r_j = x_j'y - sum_k w_kj q_k'y,    c_j = 1 - sum_k w_kj^2,

    column j lowers the residual sum of squares by ``r_j^2 / c_j``. That counts by its penalty
    factor. Columns without a penalty are always selected.
    """

    def __init__(self, problem: WorkingSets) -> None:
        self.problem = problem
        self.y = problem.y / problem.size
        priced = np.isfinite(problem.factor) & (problem.factor > 0)
        self.factor = np.where(priced, problem.factor, 1.0)
        self.r = (self.y @ problem.A) * problem.inverse
        self.c = problem.may.astype(np.float64)
        self.basis = np.empty((len(self.y), len(self.y)))
        self.free = np.flatnonzero(problem.may & (problem.factor == 0))
        self.n_basis = 0
        for j in self.free:
            self._select(j)
        self.order: list[int] = []
        self.gains: list[float] = []

    def worth(self, price: float) -> Index:
        """The columns that come before the first that gains no more than the price, in order."""
        k = 0
        while (k < len(self.gains) or self._goes_on()) and self.gains[k] > price:
            k += 1
        return np.sort(np.array([*self.free, *self.order[:k]], dtype=np.intp))

    def _goes_on(self) -> bool:
        """Select one more column, if one gains anything."""
        left = self.c > _COLLINEAR
        gain = np.zeros_like(self.c)
        np.divide(self.r * self.r, self.c * self.factor, out=gain, where=left)
        most = float(gain.max())
        if self.n_basis == len(self.y) or not most * self.factor[np.argmax(gain)] > _ROUNDING:
            return False
        j = int(np.argmax(gain >= (1 - _EQUAL) * most))
        self.order.append(j)
        self.gains.append(float(gain[j]))
        self._select(j)
        return True

    def _select(self, j: int | np.intp) -> None:
        """Add a column to the basis, unless the others span it, and update r and c."""
        A, basis = self.problem.A, self.basis[: self.n_basis]
        q = A[:, j] * self.problem.inverse[j]
        for _ in range(2):  # the second time for what rounding left
            q = q - (basis @ q) @ basis
        self.c[j] = 0.0
        length = np.linalg.norm(q)
        if length * length <= _COLLINEAR or self.n_basis == len(self.y):
            return
        q /= length
        self.basis[self.n_basis] = q
        self.n_basis += 1
        w = q @ A
        w *= self.problem.inverse
        self.r -= w * (q @ self.y)
        self.c -= w * w
        self.c[j] = 0.0
