"""Greedy improvement of a support: add, drop or swap a variable while the exact l0 objective falls.

The objective is ``rss + alpha * sum_j f_j [b_j != 0]`` with least squares on the support A. With
``V = S_AA^-1``, ``b = V q_A``, residual products ``r_j = q_j - S_jA b``, what A leaves of column j,
``c_j = S_jj - S_jA V S_Aj``, and ``U = V S_A.``, each move changes the residual sum of squares by

    add j:           - r_j^2 / c_j
    drop i:          + b_i^2 / V_ii
    swap i for j:    + b_i^2 / V_ii - (r_j + U_ij b_i / V_ii)^2 / (c_j + U_ij^2 / V_ii).

A search that ends at a poor support from one start seldom does so from another. There are two: the
fit's own support, and that of forward selection. The better end is taken.
"""

from typing import Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import lapack

from sparsestep.equations import spanned_by_earlier

__all__ = ["RowGram", "polish_support"]

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]
Index = NDArray[np.intp]

# What A leaves of a column, relative to the column, below which adding it means nothing.
_COLLINEAR = 1e-10


class Gram(Protocol):
    """The matrix S as the search sees it: never more of it than a few rows."""

    @property
    def diag(self) -> Array:
        """The diagonal."""

    @property
    def rank(self) -> int:
        """The rank at most."""

    def block(self, i: Index, j: Index | slice) -> Array:
        """Rows i, columns j."""


class MatrixGram:
    """A matrix in memory."""

    def __init__(self, S: Array) -> None:
        self.S, self.diag, self.rank = S, np.diag(S), len(S)

    def block(self, i: Index, j: Index | slice) -> Array:
        """Rows i, columns j."""
        return self.S[i][:, j]


class RowGram:
    """``A'A`` of more columns than rows."""

    def __init__(self, A: Array) -> None:
        self.A, self.diag, self.rank = A, np.einsum("ij,ij->j", A, A), min(A.shape)

    def block(self, i: Index, j: Index | slice) -> Array:
        """Rows i, columns j."""
        return self.A[:, i].T @ self.A[:, j]


def polish_support(S: Array | RowGram, q: Array, prices: Array, support: Mask) -> Array:
    """Coefficients of a support that no single add, drop or swap improves.

    `prices` are the alpha_j: 0 for a variable that must stay, ``inf`` for one that must not enter.
    """
    gram: Gram = S if isinstance(S, RowGram) else MatrixGram(S)
    size = gram.diag
    worth_while = 1e-12 * np.max(q**2 / np.where(size > 0, size, 1.0), initial=0.0)
    support = (support | (prices == 0)) & np.isfinite(prices) & (size > 0)
    own = _independent(gram, prices, support)
    forward = _independent(gram, prices, _forward(gram, q, prices, worth_while))
    ends = [_search(gram, q, prices, start, worth_while) for start in (own, forward)]
    # With least squares on the support the residual sum of squares is y'y - b'q.
    values = [prices[coef != 0].sum() - coef @ q for coef in ends]
    return ends[1] if values[1] < values[0] - worth_while else ends[0]


def _forward(S: Gram, q: Array, prices: Array, worth_while: float) -> Mask:
    """Add the variable that gains the most, first those without a price, while one gains anything.

    With ``L L' = S_AA`` the rows of ``W = L^-1 S_A.`` give ``c = diag(S) - sum_i W_ij^2``.
    """
    size = S.diag
    support = np.zeros(len(q), dtype=bool)
    c, r, W = size.copy(), q.copy(), np.empty((S.rank, len(q)))
    for k in range(S.rank):
        free = ~support & np.isfinite(prices) & (c > _COLLINEAR * size)
        gain = np.divide(r**2, c, out=np.zeros_like(r), where=free) - prices
        gain[prices == 0] = np.inf
        gain[~free] = -np.inf
        j = int(np.argmax(gain))
        if not gain[j] > worth_while:
            break
        root = np.sqrt(c[j])
        W[k] = (S.block(np.array([j]), slice(None))[0] - W[:k, j] @ W[:k]) / root
        r -= W[k] * (r[j] / root)
        c -= W[k] ** 2
        support[j] = True
    return support


def _search(S: Gram, q: Array, prices: Array, support: Mask, worth_while: float) -> Array:
    """Coefficients at the end of the moves from `support`, whose columns are independent."""
    size = S.diag
    support = before = support.copy()
    # Each move lowers the objective, so no support comes twice; the bound is for rounding's sake.
    for _ in range(10 * len(q) + 10):
        inside = np.flatnonzero(support)
        outside = np.flatnonzero(~support & np.isfinite(prices) & (size > 0))
        fitted = _fit(S, q, inside)
        if fitted is None:
            # Beside nearly collinear columns rounding can make a move look better than it is.
            support = before
            break
        b, V = fitted
        cross = S.block(inside, outside)
        U = V @ cross
        r = q[outside] - b @ cross
        c = size[outside] - np.einsum("ij,ij->j", cross, U)
        free = c > _COLLINEAR * size[outside]
        with np.errstate(divide="ignore", invalid="ignore"):
            add = np.where(free, prices[outside] - r**2 / c, np.inf)
            loss = b**2 / np.diag(V)
            drop = np.where(prices[inside] > 0, loss - prices[inside], np.inf)
            slack = U**2 / np.diag(V)[:, np.newaxis] + c
            gained = (r + U * (b / np.diag(V))[:, np.newaxis]) ** 2 / slack
            swap = drop[:, np.newaxis] + prices[outside] - gained
        swap[~(slack > _COLLINEAR * size[outside])] = np.inf
        best = [moves.min(initial=np.inf) for moves in (add, drop, swap)]
        if not min(best) < -worth_while:
            break
        before, support = support, support.copy()
        if best[0] <= min(best):
            support[outside[np.argmin(add)]] = True
        elif best[1] <= min(best):
            support[inside[np.argmin(drop)]] = False
        else:
            i, j = np.unravel_index(np.argmin(swap), swap.shape)
            support[inside[i]], support[outside[j]] = False, True
    coef = np.zeros_like(q)
    fitted = _fit(S, q, np.flatnonzero(support))
    assert fitted is not None
    coef[support] = fitted[0]
    return coef


def _independent(S: Gram, prices: Array, support: Mask) -> Mask:
    """The support without columns that others in it span: the dearer, then the later ones go.

    They explain nothing, so that dropping them saves their price, and the formulas need an inverse.
    """
    inside = np.flatnonzero(support)
    inside = inside[np.argsort(prices[inside], kind="stable")]
    if not len(inside):
        return support
    kept = inside[~spanned_by_earlier(S.block(inside, inside), _COLLINEAR)]
    # Beside near copies rounding may leave more than it should, and columns than the rank.
    while len(kept) and _factor(S, np.sort(kept)) is None:
        kept = kept[:-1]
    out = np.zeros_like(support)
    out[kept] = True
    return out


def _factor(S: Gram, inside: Index) -> Array | None:
    """Cholesky's factor of the Gram matrix of some columns, if it has one."""
    factor, failed = lapack.dpotrf(S.block(inside, inside), lower=True, clean=True)
    return None if failed else np.asarray(factor)


def _fit(S: Gram, q: Array, inside: Index) -> tuple[Array, Array] | None:
    """Least squares on some columns, and the inverse of their Gram matrix, if it has one."""
    if not len(inside):
        return np.zeros(0), np.zeros((0, 0))
    factor = _factor(S, inside)
    if factor is None:
        return None
    V: Array = lapack.dpotri(factor, lower=True)[0]
    V += np.tril(V, -1).T
    b, _ = lapack.dpotrs(factor, q[inside], lower=True)
    return b, V
