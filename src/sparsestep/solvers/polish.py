"""Polish: add, drop or swap one variable at a time, as long as the exact objective falls.

The objective is ``rss + alpha * sum_j f_j [b_j != 0]`` with least squares on the support A. With
the Gram matrix S, ``V = S_AA^-1`` and ``b = V q_A``, the products with the residual
``r_j = q_j - S_jA b``, the residual sum of squares of column j regressed on A,
``c_j = S_jj - S_jA V S_Aj``, and ``U = V S_A.``, the residual sum of squares changes by

    add j:           - r_j^2 / c_j
    drop i:          + b_i^2 / V_ii
    swap i for j:    + b_i^2 / V_ii - (r_j + U_ij b_i / V_ii)^2 / (c_j + U_ij^2 / V_ii).

The search has two starts, the support of the fit and that of forward selection, because one start
may lead to a poor local optimum; the better end is taken. If a size is given, the best additions or
drops lead to it, and then only swaps are made.

Not every swap is computed. With ``g = r_j^2 / c_j``, ``l = min_i b_i^2 / V_ii`` and
``cos^2 = c_j / S_jj``, a swap for j lowers the residual sum of squares by at most

    (sqrt(g) cos + sqrt(l) sin)^2 - l    if  g sin^2 < l cos^2,    else g,

and columns are tried in the order of this bound until it is below the best swap found.

As long as all variables have the same price alpha f_j, neither the best addition, drop and swap nor
the next variable of forward selection depends on that price: they are computed once for all alphas.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import blas, lapack

from sparsestep.solvers.scaled_problem import ScaledProblem, spanned_by_earlier
from sparsestep.solvers.wide import supported_size
from sparsestep.threads import one_blas_thread

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]
Index = NDArray[np.intp]

# Columns with c_j / S_jj below this are spanned by the support, but for rounding.
_COLLINEAR = 1e-10
# Columns whose swaps are computed together.
_MANY = 256
_EPS = np.finfo(np.float64).eps


class MatrixGram:
    """S as a matrix in memory, of rank `rank` at most."""

    def __init__(self, S: Array) -> None:
        self.S, self.diag, self.rank = S, np.diag(S), len(S)

    def block(self, i: Index, j: Index | slice) -> Array:
        """Rows i, columns j."""
        return self.S[i][:, j]


class RowGram:
    """The same for ``S = A'A`` of more columns than rows, without the matrix."""

    def __init__(self, A: Array) -> None:
        self.A, self.diag, self.rank = A, np.einsum("ij,ij->j", A, A), min(A.shape)

    def block(self, i: Index, j: Index | slice) -> Array:
        """Rows i, columns j."""
        return self.A[:, i].T @ self.A[:, j]


ColumnProducts = MatrixGram | RowGram


# On matrices as small as these a second thread of linear algebra costs more than it saves.
@one_blas_thread()
def polished(
    problem: ScaledProblem,
    alphas: Array,
    coefs: Array,
    told: Callable[[int], None] = lambda count: None,
    sizes: Sequence[int] | None = None,
) -> Array:
    """Each model after add, drop and swap, in units in which columns and ``X'y`` are of size 1.

    Squares of the numbers as given may be beyond the range of floats. With `sizes`, see
    `polish_path`; `told` is called with how many more models are done.
    """
    length = np.sqrt(problem.diag)
    length[length == 0] = 1.0
    S: Array | RowGram
    most = None
    if problem.is_thin:
        S = RowGram(problem.left / length)
        S.rank = problem.rank
        most = supported_size(S.rank + problem.moments._df_of_means, coefs.shape[2])
    else:
        S = problem.left / length / length[:, np.newaxis]
    out = np.empty_like(coefs)
    for t, q in enumerate(problem.q / length):
        size = np.abs(q).max(initial=0.0) or 1.0
        with np.errstate(over="ignore"):
            prices = alphas[t] / size / size
        units = size / length
        found = polish_path(S, q / size, prices, problem.factor, coefs[t] / units, sizes, most)
        out[t] = found * units
        told(len(prices))
    return out


def polish_path(
    S: Array | RowGram,
    q: Array,
    alphas: Array,
    factor: Array,
    coefs: Array,
    sizes: Sequence[int] | None = None,
    most: int | None = None,
) -> Array:
    """Coefficients that no single add, drop or swap improves, found from those of each row.

    There is a row for each of the `alphas`. A penalty `factor` is 0 for a variable that must stay,
    ``inf`` for one that must not enter. With `sizes`, one for each row, coefficients of so many
    variables that no swap improves; of another number if the columns do not allow it. No variable
    is added to `most` or more that have a price.
    """
    gram = S if isinstance(S, RowGram) else MatrixGram(S)
    polished = np.empty_like(coefs)
    search: _Search | None = None
    for row, (alpha, coef) in enumerate(zip(alphas, coefs, strict=True)):
        terms = _Terms.of(alpha, factor)
        if search is None or not search.terms.same(terms):
            search = _Search(gram, q, terms, most)
        size = None if sizes is None else sizes[row]
        polished[row] = search.polish(terms.common, coef, size)
    return polished


@dataclass(frozen=True)
class _Terms:
    """What variables cost: a `common` price for each penalized one, and the `rest` of its price."""

    common: float
    rest: Array
    must: Mask  # variables that stay, as they cost nothing
    may: Mask  # variables that may enter

    @classmethod
    def of(cls, alpha: float, factor: Array) -> "_Terms":
        with np.errstate(over="ignore", invalid="ignore"):
            prices = np.where(np.isinf(factor), np.inf, alpha * factor)
        must, may = prices == 0, np.isfinite(prices)
        priced = prices[may & ~must]
        if np.any(priced != priced[:1]):
            return cls(0.0, np.where(may, prices, 0.0), must, may)
        return cls(float(priced.max(initial=0.0)), np.zeros_like(prices), must, may)

    def same(self, other: "_Terms") -> bool:
        """Whether they differ in the common price alone."""
        return all(
            np.array_equal(getattr(self, name), getattr(other, name))
            for name in ("rest", "must", "may")
        )


@dataclass(frozen=True)
class _Move:
    """The best of all additions, drops or swaps, whatever the common price."""

    change: float  # of the objective, without the common price
    more: int  # variables than before: 1, -1 or 0
    which: list[np.intp]  # the variables that enter or leave


@dataclass(frozen=True)
class _Support:
    """Least squares on some columns, and the best move of each kind from there."""

    coef: Array
    moves: list[_Move]


class _Search:
    """The search on given terms. What it finds does not depend on the common price, and is kept."""

    def __init__(self, S: ColumnProducts, q: Array, terms: _Terms, most: int | None = None) -> None:
        self.S, self.q, self.terms = S, q, terms
        self.most = len(q) if most is None else most + int(np.count_nonzero(terms.must))
        self.may = terms.may & (S.diag > 0)
        self.worth_while = 1e-12 * np.max(q**2 / np.where(S.diag > 0, S.diag, 1.0), initial=0.0)
        self.forward = _Forward(S, q, terms, self.may, self.worth_while)
        self.starts: dict[bytes, Mask] = {}
        self.known: dict[bytes, _Support | None] = {}

    def polish(self, price: float, coef: Array, size: int | None = None) -> Array:
        """Coefficients at the better of the two ends, or `coef` if it is better than both.

        It can be, where a start had to leave out columns too collinear to search among.
        """
        order = self.forward
        forward = order.worth(price, self.most) if size is None else order.worth(-np.inf, size)
        starts = [(some | self.terms.must) & self.may for some in (coef != 0, forward)]
        ends = [self._end(price, size, self._independent(start)) for start in starts]
        values = [self._objective(price, size, end) for end in ends]
        best = int(values[1] < values[0] - self.worth_while)
        rounding = _EPS * (np.abs(coef) @ np.abs(self.q) + np.sum(np.abs(coef)) ** 2)
        as_it_is = self._objective(price, size, coef) + rounding
        return coef if as_it_is < values[best] else ends[best]

    def _objective(self, price: float, size: int | None, coef: Array) -> float:
        """But for ``y'y``; infinite for another size than the one asked for."""
        inside = np.flatnonzero(coef)
        if size is not None and len(inside) != size:
            return np.inf
        b = coef[inside]
        fit = b @ (2 * self.q[inside] - self.S.block(inside, inside) @ b)
        paid = price * np.count_nonzero(~self.terms.must[inside]) + self.terms.rest[inside].sum()
        return float(paid - fit)

    def _end(self, price: float, size: int | None, mask: Mask) -> Array:
        """Coefficients at the end of the moves from a support whose columns are independent."""
        coef = np.zeros(len(mask))
        # Each move lowers the objective, or leads to the size asked for, so no support comes twice;
        # the bound is for rounding.
        for _ in range(10 * len(mask) + 10):
            support = self._support(mask)
            if support is None:
                # Beside nearly collinear columns rounding can make a move look better than it is.
                break
            coef, moves, count = support.coef, support.moves, np.count_nonzero(mask)
            more = None if size is None else int(np.sign(size - count))
            if size is None and count >= self.most:
                moves = [move for move in moves if move.more <= 0]
            move = self._next(moves, price, more)
            if move is None:
                break
            mask = mask.copy()
            mask[move.which] ^= True
        return coef

    def _next(self, moves: list[_Move], price: float, more: int | None) -> _Move | None:
        """The best move if it lowers the objective; if so many `more` are wanted, of that kind."""
        moves = [move for move in moves if more in (None, move.more)]
        costs = [move.change + price * move.more for move in moves]
        least = min(costs, default=np.inf)
        enough = np.inf if more else -self.worth_while
        return moves[costs.index(least)] if least < enough else None

    def _support(self, mask: Mask) -> _Support | None:
        """Least squares on a support and the best moves; None if its columns are dependent."""
        key = mask.tobytes()
        if key not in self.known:
            inside = np.flatnonzero(mask)
            factor = _factor(self.S, inside)
            self.known[key] = None if factor is None else self._look_around(inside, factor)
        return self.known[key]

    def _look_around(self, inside: Index, factor: Array) -> _Support:
        """The same, given Cholesky's factor of S_AA."""
        rest, out = self.terms.rest, self.may.copy()
        out[inside] = False
        outside = np.flatnonzero(out)
        fit = _LeastSquares.of(self.S, self.q, inside, outside, factor)
        loss = np.where(self.terms.must[inside], np.inf, fit.b**2 / np.diag(fit.V))
        drop = loss - rest[inside]
        free = fit.c > _COLLINEAR * fit.size
        gain = np.divide(fit.r**2, fit.c, out=np.full_like(fit.r, np.inf), where=free)
        add = np.where(free & (gain > self.worth_while), rest[outside] - gain, np.inf)
        coef, moves = np.zeros(len(self.q)), []
        coef[inside] = fit.b
        if len(outside):
            j = np.argmin(add)
            moves.append(_Move(float(add[j]), 1, [outside[j]]))
        if len(inside):
            i = np.argmin(drop)
            moves.append(_Move(float(drop[i]), -1, [inside[i]]))
        if np.any(np.isfinite(loss)):
            bound = np.full_like(gain, np.inf)
            if not rest.any():
                bound[free] = _most_of_swap(gain[free], loss.min(), (fit.c / fit.size)[free])
            moves += fit.best_swap(drop, rest[outside], bound)
        return _Support(coef, moves)

    def _independent(self, support: Mask) -> Mask:
        """The support without columns that others in it span: the dearer, then the later ones go.

        They explain nothing, so that dropping them saves their price, and the formulas need an
        inverse.
        """
        key = support.tobytes()
        if key not in self.starts:
            inside = np.flatnonzero(support)
            dear = np.where(self.terms.must, -1.0, self.terms.rest)[inside]
            inside = inside[np.argsort(dear, kind="stable")]
            kept = inside[~spanned_by_earlier(self.S.block(inside, inside), _COLLINEAR)]
            # Beside near copies rounding may leave more columns than it should.
            kept = kept[: self.S.rank]
            while len(kept) and _factor(self.S, np.sort(kept)) is None:
                kept = kept[:-1]
            self.starts[key] = np.zeros_like(support)
            self.starts[key][kept] = True
        return self.starts[key]


class _Forward:
    """Forward selection: the variable that gains the most comes next, those without a price first.

    With ``L L' = S_AA`` the rows of ``W = L^-1 S_A.`` give ``c = diag(S) - sum_i W_ij^2``.
    """

    def __init__(
        self, S: ColumnProducts, q: Array, terms: _Terms, may: Mask, worth_while: float
    ) -> None:
        self.S, self.terms, self.may, self.worth_while = S, terms, may.copy(), worth_while
        self.c, self.r, self.W = S.diag.copy(), q.copy(), np.empty((S.rank, len(q)))
        self.order: list[int] = []
        self.gains: list[float] = []

    def worth(self, price: float, most: int) -> Mask:
        """The variables, `most` at most, before the first that gains no more than the price."""
        k = 0
        enough = price + self.worth_while
        while k < most and (k < len(self.order) or self._goes_on()) and self.gains[k] > enough:
            k += 1
        support = np.zeros(len(self.r), dtype=bool)
        support[self.order[:k]] = True
        return support

    def _goes_on(self) -> bool:
        """Add a variable, if one is left that the others do not span."""
        k = len(self.order)
        left = self.may & (self.c > _COLLINEAR * self.S.diag)
        left &= (self.r**2 > self.worth_while * self.c) | self.terms.must
        if k == self.S.rank or not left.any():
            return False
        gain = np.full(len(left), -np.inf)
        gain[left] = self.r[left] ** 2 / self.c[left] - self.terms.rest[left]
        gain[left & self.terms.must] = np.inf
        j = int(np.argmax(gain))
        root = np.sqrt(self.c[j])
        self.W[k] = (
            self.S.block(np.array([j]), slice(None))[0] - self.W[:k, j] @ self.W[:k]
        ) / root
        self.r -= self.W[k] * (self.r[j] / root)
        self.c -= self.W[k] ** 2
        self.may[j] = False
        self.order.append(j)
        self.gains.append(float(gain[j]))
        return True


@dataclass(frozen=True)
class _LeastSquares:
    """Least squares on the columns A, `inside`: V, b, and S_Aj, r_j, c_j, S_jj of those outside."""

    inside: Index
    outside: Index
    V: Array
    b: Array
    cross: Array
    r: Array
    c: Array
    size: Array

    @classmethod
    def of(
        cls, S: ColumnProducts, q: Array, inside: Index, outside: Index, factor: Array
    ) -> "_LeastSquares":
        """Least squares, given Cholesky's factor of S_AA."""
        cross = S.block(inside, outside)
        b, V, half = q[:0], factor, cross
        if len(inside):
            b = lapack.dpotrs(factor, q[inside], lower=True)[0]
            V = np.tril(lapack.dpotri(factor, lower=True)[0])
            V += np.tril(V, -1).T
            half = blas.dtrsm(1.0, factor, cross.T, side=1, lower=True, trans_a=1).T
        r, size = q[outside] - b @ cross, S.diag[outside]
        c = size - np.einsum("ij,ij->j", half, half)
        return cls(inside, outside, V, b, cross, r, c, size)

    def best_swap(self, drop: Array, rest: Array, bound: Array) -> list[_Move]:
        """The best swap if one lowers the objective, columns tried in the order of the bound."""
        leaving = np.flatnonzero(np.isfinite(drop))
        own = np.sqrt(np.diag(self.V)[leaving, np.newaxis])
        V, b = self.V[leaving] / own, self.b[leaving, np.newaxis] / own
        best: list[_Move] = []
        least, left = 0.0, np.argsort(-bound)
        while len(left := left[bound[left] > -least]):
            here, left = left[:_MANY], left[_MANY:]
            U = V @ self.cross[:, here]
            slack = U**2 + self.c[here]
            U *= b
            U += self.r[here]
            U *= U
            with np.errstate(divide="ignore", invalid="ignore"):
                U /= slack
            swap = drop[leaving, np.newaxis] + rest[here] - U
            swap[~(slack > _COLLINEAR * self.size[here])] = np.inf
            i, j = np.unravel_index(np.argmin(swap), swap.shape)
            if swap[i, j] < least:
                least = float(swap[i, j])
                best = [_Move(least, 0, [self.inside[leaving[i]], self.outside[here[j]]])]
        return best


def _most_of_swap(gain: Array, loss: float, left: Array) -> Array:
    """The bound above on what a swap for a column gains; `left` is cos^2."""
    cos, sin = np.sqrt(left.clip(0.0, 1.0)), np.sqrt((1.0 - left).clip(0.0, 1.0))
    both = (np.sqrt(gain) * cos + np.sqrt(loss) * sin) ** 2 - loss
    # A little more, for rounding.
    return np.where(gain * sin**2 < loss * cos**2, both, gain) + 1e-9 * (gain + loss)


def _factor(S: ColumnProducts, inside: Index) -> Array | None:
    """Cholesky's factor of the Gram matrix of some columns, if it has one."""
    block = S.block(inside, inside)
    factor, failed = lapack.dpotrf(block, lower=True) if len(block) else (block, 0)
    return None if failed else factor
