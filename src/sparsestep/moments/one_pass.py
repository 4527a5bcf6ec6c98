"""One pass over the rows of a table, in blocks: the sums of each of its folds.

Dense blocks are centred and multiplied, sparse blocks are multiplied as they are, and folds of
fewer rows than columns keep their rows.
"""

from collections.abc import Callable
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from sparsestep.errors import OutOfRangeError
from sparsestep.moments.sums import (
    SMALLEST_SQUARES,
    Accumulator,
    CentredRows,
    Pair,
    Sums,
    merge,
    outer_strips,
    two_sum,
)
from sparsestep.moments.table import BLOCK_BYTES, Table
from sparsestep.threads import side_by_side

Array = NDArray[np.float64]
Index = NDArray[np.intp]
Block = tuple[Any, NDArray[Any], Array | None]

# Row ranges summed side by side. A constant, so that the sums do not depend on the thread count.
STRIPES = 8
# Below this many numbers stripes cost more than they save; above this many columns the product of
# one block uses all cores.
STRIPE_ELEMENTS = 1 << 23
STRIPE_COLUMNS = 512
# Below this share of stored entries sparse products beat dense ones on blocks made dense.
SPARSE_DENSITY = 0.04
# Each product ends with NumPy copying one triangle to the other: a tenth of the time at 1000 rows.
FEWEST_ROWS = 2048
# Below this many numbers in all folds starting threads costs more than it saves.
THREAD_ELEMENTS = 1 << 18
# The mean of this many rows is mostly within a fraction of a deviation of the mean of all.
SAMPLE_ROWS = 32


def fold_ids(folds: Any, n: int) -> tuple[Index, int]:
    """The fold of each of n rows, and how many folds there are."""
    if not (isinstance(folds, list | tuple) and any(np.ndim(fold) for fold in folds)):
        ids = np.asarray(folds)
        if ids.shape != (n,) or (n and ids.dtype.kind not in "iu"):
            raise ValueError(f"folds must give a whole number from 0 for each of the {n} rows.")
        ids = ids.astype(np.intp)
        if n and ids.min() < 0:
            raise ValueError(f"Row {int(ids.argmin())} has a negative fold number.")
        return ids, int(ids.max(initial=-1)) + 1
    ids, times = np.zeros(n, dtype=np.intp), np.zeros(n, dtype=np.intp)
    for number, fold in enumerate(folds):
        index = np.asarray(fold)
        if index.dtype == bool and index.shape == (n,):
            index = np.flatnonzero(index)
        if index.ndim != 1 or (index.size and index.dtype.kind not in "iu"):
            raise ValueError(f"Fold {number} must be an array of row numbers.")
        index = index.astype(np.intp)
        if index.size and (index.min() < 0 or index.max() >= n):
            raise ValueError(f"Fold {number} has row numbers outside 0 to {n - 1}.")
        ids[index] = number
        times += np.bincount(index, minlength=n)
    if n and times.max() > 1:
        raise ValueError(f"Row {int((times > 1).argmax())} is in the folds more than once.")
    if n and times.min() < 1:
        raise ValueError(f"Row {int(times.argmin())} is in no fold.")
    return ids, len(folds)


def fold_sums(table: Table, ids: Index | None = None, count: int = 1) -> list[Sums]:
    """Sums of each fold, checked; of all rows if `ids` is None."""
    with np.errstate(over="ignore", invalid="ignore", under="ignore", divide="ignore"):
        try:
            folds = _summed(table, ids, count)
        except OutOfRangeError:
            table.require_finite()
            raise
        # A value that is not finite shows in the sums of its column.
        if not all(fold.is_finite() for fold in folds):
            largest = table.require_finite()
            raise table.too_large(largest)
    small = np.array([np.concatenate([fold.diag, fold.yty]) for fold in folds])
    small = small.reshape(count, table.m + table.k) < SMALLEST_SQUARES
    if small.any():
        table.require_constant(small, ids)
    return folds


def _summed(table: Table, ids: Index | None, count: int) -> list[Sums]:
    """Sums of each fold."""
    if ids is None:
        return _contiguous_sums(table, [(0, table.n)], np.array([table.n_active]))
    sizes = np.bincount(ids if table.weight is None else ids[table.weight > 0], minlength=count)
    bounds = _contiguous(ids, count)
    if bounds is not None:
        return _contiguous_sums(table, bounds, sizes)
    return _scattered_sums(table, ids, sizes)


def _contiguous_sums(table: Table, bounds: list[tuple[int, int]], sizes: Index) -> list[Sums]:
    """Sums of folds whose rows follow one another."""
    thin = sizes < table.m
    block_sums, height = _kind_of_sums(table)
    striped = table.m <= STRIPE_COLUMNS and not thin.any()
    tasks = [
        (fold, *ends)
        for fold, (a, b) in enumerate(bounds)
        for ends in (_stripes(a, b, table.m) if striped else [(a, b)])
    ]

    def summed(task: tuple[int, int, int]) -> Sums:
        fold, a, b = task
        if thin[fold]:
            return _thin_sums(table, table.block(a, b))
        total = Accumulator(_no_rows(table), own=True)
        for i in range(a, b, height):
            total.add(block_sums(table.block(i, min(i + height, b))))
        return total.result()

    found = side_by_side(summed, tasks, table.n * table.m >= THREAD_ELEMENTS)
    return [
        merge([s for s, task in zip(found, tasks, strict=True) if task[0] == fold])
        for fold in range(len(bounds))
    ]


def _scattered_sums(table: Table, ids: Index, sizes: Index) -> list[Sums]:
    """Sums of folds whose rows are anywhere."""
    count, thin = len(sizes), sizes < table.m
    block_sums, height = _kind_of_sums(table)
    kept: list[list[Block]] = [[] for _ in sizes]
    totals = [Accumulator(_no_rows(table), own=True) for _ in sizes]
    # Each fold's share of a block should itself be about a block.
    height *= min(count, STRIPES)
    for low in range(0, table.n, height):
        part = slice(low, low + height)
        X, y, here = table.X[part], table.y[part], ids[part]
        w = None if table.weight is None else table.weight[part]
        if w is not None:
            here = np.where(w > 0, here, count)
        order = np.argsort(here, kind="stable")
        edges = np.searchsorted(here[order], np.arange(count + 1))

        def add(fold: int) -> None:
            rows = order[edges[fold] : edges[fold + 1]]  # noqa: B023
            block = _take(X, rows), y[rows], None if w is None else w[rows]  # noqa: B023
            if thin[fold]:
                kept[fold].append(block)
            else:
                totals[fold].add(block_sums(block))

        present = np.flatnonzero(np.diff(edges)).tolist()
        side_by_side(add, present, table.n * table.m >= THREAD_ELEMENTS)
    for fold in np.flatnonzero(thin & (sizes > 0)):
        parts = list(zip(*kept[fold], strict=True))
        rows = (sp.vstack if sp.issparse(table.X) else np.concatenate)(parts[0])
        weight = None if table.weight is None else np.concatenate(parts[2])
        totals[fold].add(_thin_sums(table, (rows, np.concatenate(parts[1]), weight)))
    return [total.result() for total in totals]


def _no_rows(table: Table) -> Sums:
    """The sums of none of its rows."""
    return Sums.empty(table.m, table.k, table.names, table.flat_y)


def _take(X: Any, rows: Index) -> Any:
    """Some rows of a block, in the order of its memory."""
    if not sp.issparse(X) and abs(X.strides[0]) < abs(X.strides[1]):
        return X.T[:, rows].T
    return X[rows]


def _contiguous(ids: Index, count: int) -> list[tuple[int, int]] | None:
    """First and last row of each fold, if its rows follow one another."""
    starts = np.flatnonzero(np.diff(ids, prepend=-1))
    present = ids[starts]
    if len(starts) > count or len(np.unique(present)) != len(present):
        return None
    bounds = [(0, 0)] * count
    for fold, ends in zip(present, pairwise([*starts.tolist(), len(ids)]), strict=True):
        bounds[fold] = ends
    return bounds


def _stripes(a: int, b: int, m: int) -> list[tuple[int, int]]:
    """Rows a to b in ranges that are summed side by side."""
    if (b - a) * m < STRIPE_ELEMENTS:
        return [(a, b)]
    return list(pairwise(np.linspace(a, b, STRIPES + 1).astype(int).tolist()))


def _kind_of_sums(table: Table) -> tuple[Callable[[Block], Sums], int]:
    """The function that sums a block of rows, and the rows of a block.

    A block fits the cache, and has enough rows to outweigh the passes over the sums.
    """
    X, n, m = table.X, table.n, table.m
    if sp.issparse(X) and X.nnz < SPARSE_DENSITY * n * m:
        # Columns without any zero are shifted by their first value.
        offset = np.zeros(m)
        full = np.flatnonzero(np.bincount(X.indices, minlength=m) == n)
        if len(full):
            offset[full] = X[[0]][:, full].toarray()[0]
        height = max(BLOCK_BYTES * n // (12 * max(X.nnz, 1)), m, 1)
        return partial(_sparse_sums, table, offset), height
    height = max(BLOCK_BYTES // (8 * (m + table.k + 1)), FEWEST_ROWS)
    return partial(_dense_sums, table), height


def _rough_mean(X: Any, y: NDArray[Any], w: Array | None) -> Array:
    """The mean of a few rows.

    As first row + mean difference from it, it is exact for a constant column.
    """
    few = slice(None, None, max(len(y) // SAMPLE_ROWS, 1))
    sample = np.concatenate([X[few], y[few]], axis=1, dtype=np.float64)
    p = np.full(len(sample), 1.0 / len(sample)) if w is None else w[few] / w[few].sum()
    return np.asarray(sample[0] + p @ (sample - sample[0]))


def _dense_sums(table: Table, block: Block) -> Sums:
    """Sums of a block from G, the squares and products of z = (x, y, 1) about a rough mean.

    The ones make the last row of G the sums t of z, so one product gives all moments: the centred
    sums are G - t t'/W. Digits are lost only where t^2/W is close to G; then G is computed again
    about the mean.
    """
    X, y, w = block
    X = X.toarray() if sp.issparse(X) else X
    weight = float(len(y)) if w is None else float(w.sum())
    m, columns = table.m, table.m + table.k + 1
    shift = _rough_mean(X, y, w)
    by_column = abs(X.strides[0]) < abs(X.strides[1])
    z = np.empty((columns, len(y))).T if by_column else np.empty((len(y), columns))
    for _ in range(2):
        np.subtract(X, shift[:m], out=z[:, :m])
        np.subtract(y, shift[m:], out=z[:, m:-1])
        z[:, -1] = 1.0
        if w is not None:
            z *= np.sqrt(w)[:, np.newaxis]
        G = z.T @ z
        t, squares = G[-1, :-1], np.diagonal(G)[:-1]
        if not np.any(t * t > 0.5 * weight * squares):
            break
        shift = shift + t / weight
    return _centred_sums(table, len(y), weight, shift, G)


def _sparse_sums(table: Table, offset: Array, block: Block) -> Sums:
    """The same from sparse products, for data with few stored entries.

    Centring by algebra, G - t t'/W, is safe here: a column with a share p of entries that are not
    zero has mean^2/variance of at most p/(1 - p). The exception is a column without any zero; such
    columns are shifted by their `offset`.
    """
    X, y, w = block
    m = table.m
    root = np.ones(len(y)) if w is None else np.sqrt(w)
    weight = float(len(y)) if w is None else float(w.sum())
    values = X.data - offset[X.indices]
    values *= np.repeat(root, np.diff(X.indptr))
    Z = sp.csr_array((values, X.indices, X.indptr), shape=X.shape)
    (mean_y, _), _ = _centred(y, root, root**2 / weight)
    z = np.column_stack([(y - mean_y) * root[:, np.newaxis], root])
    G = np.zeros((m + table.k + 1,) * 2)
    G[:m, :m] = (Z.T @ Z).toarray()
    G[:m, m:] = Z.T @ z
    G[m:, :m] = G[:m, m:].T
    G[m:, m:] = z.T @ z
    return _centred_sums(table, len(y), weight, np.concatenate([offset, mean_y]), G)


def _centred_sums(table: Table, n: int, weight: float, shift: Array, G: Array) -> Sums:
    """Sums about the mean, G - t t'/W, in the memory of the sums G of (x, y, 1) about the shift."""
    m = table.m
    t = G[-1, :-1]
    mean, low = two_sum(shift, t / weight)
    for rows, product in outer_strips(t[np.newaxis] / np.sqrt(weight)):
        G[rows, :-1] -= product
    # A view: taking new memory for each fold would cost more than the subtraction.
    xtx = G[:m, :m]
    xty, yty = G[:m, m:-1].copy(), np.diagonal(G)[m:-1].copy()
    diag = np.diagonal(xtx).copy()
    return Sums(n, weight, mean, low, xtx, None, xty, yty, diag, table.names, table.flat_y)


def _thin_sums(table: Table, block: Block) -> Sums:
    """Sums of fewer rows than columns, which keep the centred rows."""
    X, y, w = block
    n, m = len(y), table.m
    if n == 0:
        return _no_rows(table)
    root = np.ones(n) if w is None else np.sqrt(w)
    weight = float(n) if w is None else float(w.sum())
    p = root**2 / weight
    mean_y, yc = _centred(y, root, p)
    if sp.issparse(X):
        X = sp.csr_array(X, dtype=np.float64)
        # Columns without zeros are shifted by their mean, as the subtraction below may cancel.
        offset = np.zeros(m)
        full = np.flatnonzero(np.bincount(X.indices, minlength=m) == n)
        if len(full):
            (offset[full], _), _ = _centred(X[:, full].toarray(), root, p)
        X = sp.csr_array((X.data - offset[X.indices], X.indices, X.indptr), shape=X.shape)
        rest = np.asarray(X.T @ p)
        rows, mean_x = CentredRows(X, yc, root, rest), two_sum(offset, rest)
        diag = weight * np.maximum(X.multiply(X).T @ p - rest**2, 0.0)
    else:
        mean_x, A = _centred(X, root, p)
        rows, diag = CentredRows(A, yc), np.einsum("ij,ij->j", A, A)
    mean, low = (np.concatenate(parts) for parts in zip(mean_x, mean_y, strict=True))
    # A single row is its own mean, and its centred row is zero.
    pieces = (rows,) if n > 1 else ()
    xty, yty = rows.transposed_dot(yc), np.einsum("ij,ij->j", yc, yc)
    return Sums(n, weight, mean, low, None, pieces, xty, yty, diag, table.names, table.flat_y)


def _centred(values: NDArray[Any], root: Array, p: Array) -> tuple[Pair, Array]:
    """Weighted mean, and the rows about it times the roots of their weights."""
    first = np.asarray(values[0], dtype=np.float64)
    mean = first + p @ (values - first)
    centred = values - mean
    # The mean is rounded relative to the values; this remainder, relative to their spread.
    rest = p @ centred
    centred -= rest
    if (root != 1.0).any():
        centred *= root[:, np.newaxis]
    return two_sum(mean, rest), centred
