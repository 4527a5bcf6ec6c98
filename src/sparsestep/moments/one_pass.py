"""One pass over the rows of a table, in blocks: the sums of each of its folds.

Dense blocks are centred in a buffer and multiplied, sparse blocks are multiplied as they are, and
folds of fewer rows than columns keep their rows.
"""

import threading
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from sparsestep.errors import OutOfRangeError
from sparsestep.moments.partition import contiguous_folds
from sparsestep.moments.sums import SMALLEST_SQUARES, Sums, combine, merge, outer_strips
from sparsestep.moments.table import BLOCK_BYTES, Table
from sparsestep.moments.thin import DenseRows, Piece, SparseRows, centred
from sparsestep.moments.twofold import two_sum
from sparsestep.threads import side_by_side

__all__ = ["fold_sums"]

Array = NDArray[np.float64]

# Row ranges summed side by side. A constant, so that the sums do not depend on the thread count.
STRIPES = 8
# Below this many numbers stripes cost more than they save; above this many columns one product
# keeps all cores busy by itself.
STRIPE_ELEMENTS = 1 << 23
STRIPE_COLUMNS = 256
# Below this share of stored entries sparse products beat dense ones on blocks made dense.
SPARSE_DENSITY = 0.04
# Each product ends with NumPy copying one triangle to the other: a tenth of the time at 1000 rows.
FEWEST_ROWS = 2048
# Below this many numbers in all folds starting threads costs more than it saves.
THREAD_ELEMENTS = 1 << 18
# The mean of this many rows is mostly within a fraction of a deviation of the mean of all.
SAMPLE_ROWS = 32


def _block_rows(columns: int) -> int:
    """Rows of a block: as fit the cache, but enough to outweigh the passes over the sums."""
    return max(BLOCK_BYTES // (8 * (columns + 1)), FEWEST_ROWS)


class _DenseSums:
    """Sums of squares and products of z = (x, y, 1) about a shift that follows the mean.

    The ones make the last row of z'z the sums of z, so one product gives all moments. The centred
    sums are G - t t'/W, with t the sums about the shift. Digits are lost only where t^2/W is
    close to G, so that is looked at after each block: above a half, the shift moves to the mean.
    """

    def __init__(self, data: Table, scratch: "_Scratch") -> None:
        self.data, self.scratch = data, scratch
        self.closed: list[Sums] = []
        self.n = 0
        self.weight = 0.0
        self.shift = np.zeros(0)
        self.G = np.zeros((0, 0))

    def add(self, X: Any, y: NDArray[Any], w: Array | None) -> None:
        """Add a block of rows."""
        if len(y) == 0:
            return
        X = X.toarray() if sp.issparse(X) else X
        z = self.scratch.rows(len(y), X)
        weight = float(len(y)) if w is None else float(w.sum())
        if self.n == 0:
            self._start(z, X, y, w, weight)
        else:
            self._centre(z, X, y, w)
            G = np.matmul(z.T, z, out=self.scratch.product())
            drift = _drift(
                self.G[-1] + G[-1], np.diagonal(self.G) + np.diagonal(G), self.weight + weight
            )
            if drift > 0.99:
                # The rows so far weigh next to nothing and their mean is far from this block's.
                self.closed.append(self._about_mean())
                self.n, self.weight = 0, 0.0
                self._start(z, X, y, w, weight)
            else:
                self.G += G
                if drift > 0.5:
                    self._move(self.weight + weight)
        self.n += len(y)
        self.weight += weight

    def _start(self, z: Array, X: Any, y: NDArray[Any], w: Array | None, weight: float) -> None:
        """G of a first block, about the mean of a few of its rows if that is near the mean of all.

        As first row + mean difference from it, the shift is exact for a constant column.
        """
        first = np.concatenate([X[0], y[0]], dtype=np.float64)
        few = slice(None, None, max(len(y) // SAMPLE_ROWS, 1))
        sample = np.concatenate([X[few], y[few]], axis=1, dtype=np.float64)
        p = np.ones(len(sample)) if w is None else w[few]
        self.shift = first + p / p.sum() @ (sample - first)
        self._centre(z, X, y, w)
        self.G = np.matmul(z.T, z)
        if _drift(self.G[-1], np.diagonal(self.G), weight) > 0.5:
            self.shift = self.shift + self.G[-1, :-1] / weight
            self._centre(z, X, y, w)
            np.matmul(z.T, z, out=self.G)

    def _centre(self, z: Array, X: Any, y: NDArray[Any], w: Array | None) -> None:
        """Fill z = sqrt(w) (x - shift, y - shift, 1)."""
        m = self.data.m
        np.subtract(X, self.shift[:m], out=z[:, :m])
        np.subtract(y, self.shift[m:], out=z[:, m:-1])
        z[:, -1] = 1.0
        if w is not None:
            z *= np.sqrt(w)[:, None]

    def _move(self, weight: float) -> None:
        """Shift to the mean: G -= t t'/W."""
        t = self.G[-1, :-1].copy()
        for rows, product in outer_strips(t / np.sqrt(weight)):
            self.G[rows, :-1] -= product
        shift = self.shift + t / weight
        # The shift is rounded and so not quite the mean: G += r r'/W with r, what is left of t.
        left = t - weight * (shift - self.shift)
        for rows, product in outer_strips(left / np.sqrt(weight)):
            self.G[rows, :-1] += product
        self.G[-1, :-1] = self.G[:-1, -1] = left
        self.shift = shift

    def _about_mean(self) -> Sums:
        """Sums of the rows since the last closing."""
        return _centred_sums(self.data, self.n, self.weight, self.shift, self.G)

    def finish(self) -> Sums:
        """Sums of all rows added."""
        if self.n == 0:
            return Sums.empty(self.data.m, self.data.k, self.data.names, self.data.flat_y)
        return merge([*self.closed, self._about_mean()])


def _drift(t: Array, squares: Array, weight: float) -> float:
    """Largest share t^2/W of a column's squares about the shift that is due to its mean."""
    share = t[:-1] ** 2 / weight / np.where(squares[:-1] > 0, squares[:-1], 1.0)
    return float(share.max(initial=0.0))


def _centred_sums(data: Table, n: int, weight: float, shift: Array, G: Array) -> Sums:
    """Sums about the mean, G - t t'/W, in the memory of the sums G of (x, y, 1) about the shift."""
    m = data.m
    t = G[-1, :-1]
    u = t / np.sqrt(weight)
    mean, low = two_sum(shift, t / weight)
    for rows, product in outer_strips(u):
        G[rows, :-1] -= product
    # A view: taking new memory for each fold would cost more than the subtraction.
    xtx = G[:m, :m]
    return Sums(
        n_samples=n,
        weight_sum=weight,
        mean_x=mean[:m],
        mean_y=mean[m:],
        low_x=low[:m],
        low_y=low[m:],
        xtx=xtx,
        pieces=None,
        xty=G[:m, m:-1].copy(),
        yty=np.diagonal(G)[m:-1].copy(),
        diag=np.diagonal(xtx).copy(),
        names=data.names,
        flat_y=data.flat_y,
    )


class _Scratch(threading.local):
    """Memory of each thread for one centred block and its product, used again for every block."""

    def __init__(self, columns: int) -> None:
        self.columns = columns
        self.memory = np.empty(0)
        self.gathered: NDArray[Any] = np.empty(0)
        self.square = np.empty((0, 0))

    def product(self) -> Array:
        """Room for z'z, taken only when a second block comes."""
        if len(self.square) < self.columns:
            self.square = np.empty((self.columns, self.columns))
        return self.square

    def rows(self, r: int, like: Any) -> Array:
        """An (r, columns) array in the order of the data, which is how it is written fastest."""
        if self.memory.size < r * self.columns:
            self.memory = np.empty(r * self.columns)
        flat = self.memory[: r * self.columns]
        if abs(like.strides[0]) < abs(like.strides[1]):
            return flat.reshape(self.columns, r).T
        return flat.reshape(r, self.columns)

    def take(self, X: Any, rows: NDArray[np.intp]) -> Any:
        """Some rows of a block, valid until the next are taken."""
        if sp.issparse(X) or not X.flags.c_contiguous:
            return _take(X, rows)
        size = len(rows) * X.shape[1]
        if self.gathered.size < size or self.gathered.dtype != X.dtype:
            self.gathered = np.empty(size, dtype=X.dtype)
        # Without a mode that never raises NumPy would write to a buffer of its own first.
        out = self.gathered[:size].reshape(len(rows), X.shape[1])
        return np.take(X, rows, axis=0, out=out, mode="clip")


class _SparseSums:
    """The same sums from sparse products, for data with few stored entries.

    Centring by algebra, G - t t'/W in each block, is safe here: a column with a share p of entries
    that are not zero has mean^2/variance of at most p/(1 - p). The exception is a column without
    any zero; such columns are shifted by their first value.
    """

    def __init__(self, data: Table, offset: Array) -> None:
        self.data, self.offset = data, offset
        self.total = Sums.empty(data.m, data.k, data.names, data.flat_y)

    def add(self, X: Any, y: NDArray[Any], w: Array | None) -> None:
        """Add a block of rows."""
        if len(y) == 0:
            return
        m = self.data.m
        root = np.ones(len(y)) if w is None else np.sqrt(w)
        weight = float(len(y)) if w is None else float(w.sum())
        values = X.data - self.offset[X.indices]
        values *= np.repeat(root, np.diff(X.indptr))
        Z = sp.csr_array((values, X.indices, X.indptr), shape=X.shape)
        y0 = np.asarray(y[0], dtype=np.float64)
        y0 = y0 + ((root**2) @ (y - y0)) / weight
        yc = (y - y0) * root[:, None]
        z = np.column_stack([yc, root])
        G = np.zeros((m + self.data.k + 1,) * 2)
        G[:m, :m] = (Z.T @ Z).toarray()
        G[:m, m:] = Z.T @ z
        G[m:, :m] = G[:m, m:].T
        G[m:, m:] = z.T @ z
        shift = np.concatenate([self.offset, y0])
        block = _centred_sums(self.data, len(y), weight, shift, G)
        self.total = combine(self.total, block, overwrite=True)

    def finish(self) -> Sums:
        """Sums of all rows added."""
        return self.total


def _thin(data: Table, X: Any, y: NDArray[Any], w: Array | None) -> Sums:
    """Sums of fewer rows than columns, which keep the centred rows."""
    n = len(y)
    if n == 0:
        return Sums.empty(data.m, data.k, data.names, data.flat_y)
    root = np.ones(n) if w is None else np.sqrt(w)
    weight = float(n) if w is None else float(w.sum())
    p = root**2 / weight
    (mean_y, low_y), yc = centred(y, root, p)
    piece: Piece
    if sp.issparse(X):
        X = sp.csr_array(X, dtype=np.float64)
        # Where no entry is zero the algebra may cancel; those columns are shifted by their mean.
        offset = np.zeros(data.m)
        full = np.flatnonzero(np.bincount(X.indices, minlength=data.m) == n)
        if len(full):
            (offset[full], _), _ = centred(X[:, full].toarray(), root, p)
        X = sp.csr_array((X.data - offset[X.indices], X.indices, X.indptr), shape=X.shape)
        mean = np.asarray(X.T @ p)
        piece = SparseRows(X, root, mean, yc)
        diag = weight * np.maximum(X.multiply(X).T @ p - mean**2, 0.0)
        mean_x, low_x = two_sum(offset, mean)
    else:
        (mean_x, low_x), A = centred(X, root, p)
        piece = DenseRows(A, yc)
        diag = np.einsum("ij,ij->j", A, A)
    return Sums(
        n_samples=n,
        weight_sum=weight,
        mean_x=mean_x,
        mean_y=mean_y,
        low_x=low_x,
        low_y=low_y,
        xtx=None,
        # A single row is its own mean: nothing is left of it.
        pieces=(piece,) if n > 1 else (),
        xty=piece.transposed_dot(yc),
        yty=np.einsum("ij,ij->j", yc, yc),
        diag=diag,
        names=data.names,
        flat_y=data.flat_y,
    )


class _ThinRows:
    """Collects the rows of a fold that has fewer of them than columns."""

    def __init__(self, data: Table) -> None:
        self.data = data
        self.blocks: list[tuple[Any, NDArray[Any], Array | None]] = []

    def add(self, X: Any, y: NDArray[Any], w: Array | None) -> None:
        """Keep a block of rows."""
        if len(y):
            self.blocks.append((X, y, w))

    def finish(self) -> Sums:
        """Sums of all rows kept."""
        if not self.blocks:
            return Sums.empty(self.data.m, self.data.k, self.data.names, self.data.flat_y)
        if len(self.blocks) == 1:
            return _thin(self.data, *self.blocks[0])
        X, y, w = zip(*self.blocks, strict=True)
        stack = sp.vstack if sp.issparse(X[0]) else np.concatenate
        weights = None if w[0] is None else np.concatenate(w)
        return _thin(self.data, stack(X), np.concatenate(y), weights)


_Collector = _DenseSums | _SparseSums | _ThinRows


class _Plan:
    """What kind of sums each fold of the data gets, and in blocks of how many rows."""

    def __init__(self, data: Table, rows_in_fold: NDArray[np.intp]) -> None:
        self.data = data
        self.thin = rows_in_fold < data.m
        self.threads = data.n * data.m >= THREAD_ELEMENTS
        self.offset: Array | None = None
        self.rows = _block_rows(data.m + data.k)
        X = data.X
        if sp.issparse(X) and X.nnz < SPARSE_DENSITY * data.n * data.m:
            self.offset = np.zeros(data.m)
            full = np.flatnonzero(np.bincount(X.indices, minlength=data.m) == data.n)
            if len(full):
                self.offset[full] = X[[0]][:, full].toarray()[0]
            self.rows = max(BLOCK_BYTES * data.n // (12 * max(X.nnz, 1)), data.m, 1)

    def sums(self, fold: int, scratch: _Scratch) -> "_Collector":
        """An empty collector for one fold."""
        if self.thin[fold]:
            return _ThinRows(self.data)
        if self.offset is not None:
            return _SparseSums(self.data, self.offset)
        return _DenseSums(self.data, scratch)

    def stripes(self, a: int, b: int) -> list[tuple[int, int]]:
        """Rows a to b in ranges that are summed side by side."""
        m = self.data.m
        if (b - a) * m < STRIPE_ELEMENTS or m > STRIPE_COLUMNS or self.thin.any():
            return [(a, b)]
        edges = np.linspace(a, b, STRIPES + 1).astype(int).tolist()
        return list(pairwise(edges))


def fold_sums(data: Table, ids: NDArray[np.intp] | None, count: int) -> list[Sums]:
    """Sums of each fold, checked; of all rows if `ids` is None."""
    with np.errstate(over="ignore", invalid="ignore", under="ignore", divide="ignore"):
        try:
            folds = _summed(data, ids, count)
        except OutOfRangeError:
            data.require_finite()
            raise
        # A value that is not finite makes some of its column's sums so, which costs nothing to see.
        if not all(fold.is_finite() for fold in folds):
            largest = data.require_finite()
            raise data.too_large(largest)
    small = np.array([np.concatenate([fold.diag, fold.yty]) for fold in folds])
    small = small.reshape(count, data.m + data.k) < SMALLEST_SQUARES
    if small.any():
        data.require_constant(small, ids)
    return folds


def _summed(data: Table, ids: NDArray[np.intp] | None, count: int) -> list[Sums]:
    """Sums of each fold."""
    w = data.weight
    if ids is None:
        rows_in_fold = np.array([data.n_active])
        bounds: list[tuple[int, int]] | None = [(0, data.n)]
    else:
        active = ids if w is None else ids[w > 0]
        rows_in_fold = np.bincount(active, minlength=count)
        bounds = contiguous_folds(ids, count)
    plan = _Plan(data, rows_in_fold)
    scratch = _Scratch(data.m + data.k + 1)

    def contiguous(task: tuple[int, int, int]) -> Sums:
        fold, a, b = task
        sums = plan.sums(fold, scratch)
        rows = max(b - a, 1) if plan.thin[fold] else plan.rows
        for i in range(a, b, rows):
            sums.add(*data.block(i, min(i + rows, b)))
        return sums.finish()

    if bounds is not None:
        tasks = [(fold, *ends) for fold, (a, b) in enumerate(bounds) for ends in plan.stripes(a, b)]
        pieces: list[list[Sums]] = [[] for _ in range(count)]
        for task, piece in zip(tasks, side_by_side(contiguous, tasks, plan.threads), strict=True):
            pieces[task[0]].append(piece)
        return [merge(fold) for fold in pieces]

    assert ids is not None
    sums = [plan.sums(fold, scratch) for fold in range(count)]
    # Each fold's share of the block should itself be about a block.
    step = plan.rows * min(count, STRIPES)
    for i in range(0, data.n, step):
        here, weight = ids[i : i + step], None if w is None else w[i : i + step]
        if weight is not None:
            here = np.where(weight > 0, here, count)
        _scatter(data.X[i : i + step], data.y[i : i + step], weight, here, sums, plan, scratch)
    return side_by_side(lambda each: each.finish(), sums, plan.threads)


def _scatter(
    X: Any,
    y: NDArray[Any],
    w: Array | None,
    ids: NDArray[np.intp],
    sums: Sequence[_Collector],
    plan: _Plan,
    scratch: _Scratch,
) -> None:
    """Add the rows of a block to the sums of their folds."""
    order = np.argsort(ids, kind="stable")
    edges = np.searchsorted(ids[order], np.arange(len(sums) + 1))

    def add(fold: int) -> None:
        rows = order[edges[fold] : edges[fold + 1]]
        take = _take if plan.thin[fold] else scratch.take
        sums[fold].add(take(X, rows), y[rows], None if w is None else w[rows])

    side_by_side(add, np.flatnonzero(np.diff(edges)).tolist(), plan.threads)


def _take(X: Any, rows: NDArray[np.intp]) -> Any:
    """Some rows of a block, in the order of its memory."""
    if not sp.issparse(X) and X.flags.f_contiguous:
        return np.take(X.T, rows, axis=1).T
    if not sp.issparse(X) and abs(X.strides[0]) < abs(X.strides[1]):
        return X.T[:, rows].T
    return X[rows]
