"""Means and centred sums of rows: how sums merge, and one pass over the rows of a table.

With weights w (1 where none are given), W their sum, and every sum taken about the means,

    S = sum w (x - mean_x)(x - mean_x)'     `xtx`
    q = sum w (x - mean_x)(y - mean_y)      `xty`
    sum w (y - mean_y)^2                    `yty`

Sets of rows j = 1, 2, ... are merged by adding their sums, and one product for each set after the
first (Chan, Golub and LeVeque 1983). With V_j the weight and m_j the mean of all sets before j,

    S = sum_j S_j + sum_j u_j u_j',   u_j = sqrt(V_j W_j / (V_j + W_j)) (m_j - mean_j)

Two ways of computing S are avoided. Sums about zero, X'X - W mean mean', have no digit left at
mean/sd = 1e7. The difference of two means that are rounded to doubles has as few; so each mean is a
pair of doubles, `mean` + `low`, where `low` is at most half a unit in the last place of `mean`.
With fewer rows than columns the rows are kept instead of S.

The rows come in blocks: dense ones are centred and multiplied, sparse ones multiplied as they are.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from sparsestep.errors import OutOfRangeError
from sparsestep.moments.table import (
    BLOCK_BYTES,
    Table,
    column_name,
    in_one_piece,
)
from sparsestep.threads import side_by_side
from sparsestep.words import few_of, quoted

Array = NDArray[np.float64]
Index = NDArray[np.intp]
Block = tuple[Any, NDArray[Any], Array | None]
# Twice the precision: a value as high + low.
Pair = tuple[Array, Array]

# Products are rounded to 5e-324 at best, so sums of squares below this have lost digits.
SMALLEST_SQUARES = 1e-302
# Numbers in a strip of a matrix: a few such strips fit the cache of one core.
STRIP_ELEMENTS = 1 << 13
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

_NOT_SQUARED = "The values of {name} are too large or too small to be squared"


def two_sum(a: Any, b: Any) -> Pair:
    """``a + b`` exactly, as a pair (Knuth)."""
    high = a + b
    of_b = high - a
    return high, (a - (high - of_b)) + (b - of_b)


def add_pairs(a: Pair, b: Pair) -> Pair:
    """The sum of two pairs."""
    high, low = two_sum(a[0], b[0])
    return two_sum(high, low + (a[1] + b[1]))


@dataclass(frozen=True)
class Run:
    """Some of the `of` folds, numbered from 0, that the rows of a `source` were split into.

    A run is one such splitting, as `read_moments` makes it. The `id` is the same for all folds of a
    run, and for no other run.
    """

    id: str
    source: str
    of: int
    folds: frozenset[int]

    @property
    def missing(self) -> int:
        """How many folds are not there."""
        return self.of - len(self.folds)

    def __str__(self) -> str:
        numbers = sorted(self.folds)
        name = "fold" if len(numbers) == 1 else "folds"
        return f"{name} {few_of([*map(str, numbers)], 8)} of {self.of} of {self.source}"


Runs = tuple[Run, ...]


class CentredRows:
    """Centred rows times the square roots of their weights, and their targets.

    The rows are ``A = X``, or ``A = diag(root) (X - 1 mean')`` with X sparse.
    """

    def __init__(
        self, X: Any, y: Array, root: Array | None = None, mean: Array | None = None
    ) -> None:
        self.X, self.y, self.root, self.mean = X, y, root, mean

    def dot(self, V: Array) -> Array:
        """A V."""
        if self.root is None or self.mean is None:
            return np.asarray(self.X @ V)
        product = self.X @ V - self.mean @ V
        return np.asarray((product.T * self.root).T)

    def transposed_dot(self, U: Array) -> Array:
        """A' U."""
        if self.root is None or self.mean is None:
            return np.asarray(self.X.T @ U)
        scaled = (U.T * self.root).T
        return np.asarray(self.X.T @ scaled - np.multiply.outer(self.mean, scaled.sum(axis=0)))

    def columns(self, which: Any = slice(None)) -> Array:
        """Some columns of A, or all."""
        if self.root is None or self.mean is None:
            return np.asarray(self.X[:, which])
        A: Array = self.X[:, which].toarray()
        A -= self.mean[which]
        A *= self.root[:, np.newaxis]
        return A

    def target(self, one: slice) -> "CentredRows":
        """The same rows with one of their targets."""
        return CentredRows(self.X, self.y[:, one], self.root, self.mean)


def gram_of_rows(pieces: Sequence[CentredRows], m: int) -> Array:
    """Sum of A'A over pieces of rows."""
    total = np.zeros((m, m))
    few: list[Array] = []
    for piece in pieces:
        # Single rows (differences of means) are stacked: each alone would cost a pass over S. Not
        # more rows than that at once, for sparse ones are dense here.
        few.append(piece.columns())
        if sum(map(len, few)) >= m or piece is pieces[-1]:
            A = np.concatenate(few) if len(few) > 1 else few[0]
            total += A.T @ A
            few = []
    return total


@dataclass
class Sums:
    """Means and centred sums of a set of rows; the targets are always two-dimensional."""

    n_samples: int
    weight_sum: float
    mean: Array  # (m + k,): the means of columns and targets are mean + low, in twice the precision
    low: Array
    xtx: Array | None  # of thin sums None until `gram` is first asked for
    pieces: tuple[CentredRows, ...] | None  # the rows of thin sums
    xty: Array
    yty: Array
    diag: Array
    names: tuple[str, ...] | None
    flat_y: bool
    target_names: tuple[str, ...] | None = None
    # Columns of text that columns of zeros and ones stand for, and their categories.
    categories: dict[str, tuple[str, ...]] = field(default_factory=dict)
    runs: Runs = ()  # the folds that these are, if they are folds

    @classmethod
    def empty(cls, m: int, k: int, names: tuple[str, ...] | None, flat_y: bool) -> "Sums":
        """Sums of no rows."""
        mean, low = np.zeros((2, m + k))
        xtx, pieces = (None, ()) if m else (np.zeros((0, 0)), None)
        sums = np.zeros((m, k)), np.zeros(k), np.zeros(m)
        return cls(0, 0.0, mean, low, xtx, pieces, *sums, names, flat_y)

    @property
    def m(self) -> int:
        """Number of columns."""
        return len(self.diag)

    @property
    def mean_x(self) -> Array:
        """Means of the columns."""
        return self.mean[: self.m]

    @property
    def mean_y(self) -> Array:
        """Means of the targets."""
        return self.mean[self.m :]

    @property
    def gram(self) -> Array:
        """S; in thin form made from the rows at the first access, and kept."""
        if self.xtx is None:
            self.xtx = gram_of_rows(self.pieces or (), self.m)
        return self.xtx

    def kept_rows(self) -> CentredRows:
        """The rows of thin sums as one dense piece, which replaces the others."""
        pieces = self.pieces or ()
        if len(pieces) != 1 or pieces[0].root is not None:
            self.pieces = (self.stacked_rows(),)
        return (self.pieces or ())[0]

    def stacked_rows(self) -> CentredRows:
        """The rows of thin sums in memory of their own."""
        pieces, k = self.pieces or (), len(self.yty)
        A = np.concatenate([np.empty((0, self.m)), *(piece.columns() for piece in pieces)])
        y = np.concatenate([np.empty((0, k)), *(piece.y for piece in pieces)])
        return CentredRows(A, y)

    def about_zero(self) -> "Sums":
        """The sums about zero instead of the means; thin ones have the mean as one row more."""
        W, x, y = self.weight_sum, self.mean_x, self.mean_y
        zero = np.zeros_like(self.mean)
        pieces = xtx = None
        if self.pieces is None:
            xtx = self.gram + W * np.multiply.outer(x, x)
        else:
            row = np.sqrt(W) * self.mean[np.newaxis]
            pieces = (*self.pieces, CentredRows(row[:, : self.m], row[:, self.m :]))
        return replace(
            self,
            mean=zero,
            low=zero,
            xtx=xtx,
            pieces=pieces,
            xty=self.xty + W * np.multiply.outer(x, y),
            yty=self.yty + W * y**2,
            diag=self.diag + W * x**2,
        )

    def target(self, t: int) -> "Sums":
        """The sums of one target; nothing is copied."""
        one = slice(t, t + 1)
        mean, low = (np.concatenate([a[: self.m], a[self.m :][one]]) for a in (self.mean, self.low))
        return replace(
            self,
            mean=mean,
            low=low,
            pieces=None if self.pieces is None else tuple(p.target(one) for p in self.pieces),
            xty=self.xty[:, one],
            yty=self.yty[one],
            flat_y=True,
            target_names=self.target_names and self.target_names[one],
        )


def require_mergeable(a: Sums, b: Sums) -> None:
    """Raise unless both have the same columns and targets, by number and by name."""
    if a.m != b.m:
        raise ValueError(f"Moments of {a.m} and of {b.m} columns cannot be merged.")
    if a.names != b.names:
        if a.names is None or b.names is None:
            raise ValueError("Moments with and without column names cannot be merged.")
        i = next(i for i in range(a.m) if a.names[i] != b.names[i])
        raise ValueError(
            f"Moments of different columns cannot be merged: column {i} is {a.names[i]!r} in one "
            f"and {b.names[i]!r} in the other."
        )
    if a.flat_y != b.flat_y or len(a.yty) != len(b.yty):
        raise ValueError("Moments with different numbers of targets cannot be merged.")
    if a.target_names and b.target_names and a.target_names != b.target_names:
        x, z = next(p for p in zip(a.target_names, b.target_names, strict=True) if p[0] != p[1])
        raise ValueError(f"Moments of different targets, {x!r} and {z!r}, cannot be merged.")
    # The category without a column, where all indicators are zero, may differ.
    for name in a.categories.keys() & b.categories.keys():
        first, second = a.categories[name], b.categories[name]
        if first != second:
            raise ValueError(
                f"Moments of different categories cannot be merged: {name!r} has "
                f"{quoted(first, 5)} in one and {quoted(second, 5)} in the other, where all zeros "
                "mean the first; read both with the same categories."
            )


def is_thin(parts: Sequence[Sums]) -> bool:
    """Whether the parts, and a row for each merge of two, have fewer rows than columns."""
    rows = len(parts) - 1
    for part in parts:
        if part.pieces is None:
            return False
        rows += sum(len(piece.y) for piece in part.pieces)
    return rows < parts[0].m


def merge(
    parts: Sequence[Sums],
    runs: Runs = (),
    *,
    grams: Sequence[Array] | None = None,
    into_first: bool = False,
) -> Sums:
    """Sums of all rows of several parts.

    `grams` are matrices that add up to those of the parts, where these are known; with `into_first`
    the matrix of the first part is overwritten.
    """
    if not parts:
        raise ValueError("There are no moments to merge, so the columns are unknown.")
    for part in parts[1:]:
        require_mergeable(parts[0], part)
    first = next((part for part in parts if part.n_samples), parts[0])
    labels: dict[str, Any] = {
        "runs": runs,
        "target_names": next((p.target_names for p in parts if p.target_names), None),
        "categories": {name: known for p in parts for name, known in p.categories.items()},
    }
    parts = [part for part in parts if part.n_samples]
    if len(parts) < 2:
        return replace(first, **labels)
    m = first.m
    with np.errstate(over="ignore", invalid="ignore", under="ignore"):
        (mean, low), U = _between(parts)
        u, v = U[:, :m], U[:, m:]
        xty = np.add.reduce([part.xty for part in parts]) + u.T @ v
        yty = np.add.reduce([part.yty for part in parts]) + np.einsum("ij,ij->j", v, v)
        diag = np.add.reduce([part.diag for part in parts]) + np.einsum("ij,ij->j", u, u)
        _require_range(diag, yty, xty, first.names, u, v)
    xtx: Array | None = None
    pieces: tuple[CentredRows, ...] | None = None
    if is_thin(parts):
        pieces = (*(piece for part in parts for piece in part.pieces or ()), CentredRows(u, v))
    else:
        if grams is None:
            grams = [part.xtx for part in parts if part.xtx is not None]
            if len(grams) < len(parts):
                rows = [piece for part in parts if part.xtx is None for piece in part.pieces or ()]
                grams = [*grams, gram_of_rows([*rows, CentredRows(u, v)], m)]
                u, into_first = u[:0], False
        xtx = _added(grams, u, grams[0] if into_first else None)
        diag = np.diagonal(xtx).copy()
    return Sums(
        n_samples=sum(part.n_samples for part in parts),
        weight_sum=float(sum(part.weight_sum for part in parts)),
        mean=mean,
        low=low,
        xtx=xtx,
        pieces=pieces,
        xty=xty,
        yty=yty,
        diag=diag,
        names=first.names,
        flat_y=first.flat_y,
        **labels,
    )


class Accumulator:
    """The sums of pieces that come one after the other.

    Thin pieces wait until together they have as many rows as columns, because the product of a few
    rows costs a pass over the m x m matrix. `own` pieces may be overwritten.
    """

    def __init__(self, first: Sums | None = None, *, own: bool = False) -> None:
        self._waiting: list[Sums] = []
        self._rows = 0
        self._own = own
        if first is not None:
            self.add(first)

    def add(self, piece: Sums) -> None:
        """Add a piece."""
        if self._waiting:
            require_mergeable(self._waiting[0], piece)
            if not piece.n_samples:
                return
            if not self._waiting[0].n_samples:
                self._waiting = []
        self._waiting.append(piece)
        self._rows += piece.m if piece.pieces is None else piece.n_samples
        if self._rows >= piece.m and len(self._waiting) > 1:
            self._waiting = [merge(self._waiting, into_first=self._own)]
            self._rows, self._own = 0, True

    def result(self) -> Sums:
        """The sums of all pieces."""
        return merge(self._waiting)


def _added(grams: Sequence[Array], u: Array, out: Array | None) -> Array:
    """The sum of the matrices and of u'u, in strips that stay in the cache."""
    if len(grams) == 1 and not len(u):
        return grams[0]
    out = np.empty_like(grams[0]) if out is None else out
    for strip, product in outer_strips(u):
        first, second, *others = (*(gram[strip] for gram in grams), product)
        total = np.add(first, second, out=out[strip])
        for other in others:
            total += other
    return out


def _between(parts: Sequence[Sums]) -> tuple[Pair, Array]:
    """The mean of all parts, and a row u_j for each part after the first."""
    weight = np.array([part.weight_sum for part in parts])
    share = weight / weight.sum()
    means = np.array([part.mean for part in parts]), np.array([part.low for part in parts])
    # Differences from the mean of the largest weight, which merging changes least.
    heavy = int(weight.argmax())
    gap, _ = add_pairs(means, (-means[0][heavy], -means[1][heavy]))
    before = np.cumsum(share[:-1])
    weighted = share[:, np.newaxis] * gap
    mean_before = np.cumsum(weighted[:-1], axis=0) / before[:, np.newaxis]
    factor = np.sqrt(before / (before + share[1:]) * weight[1:])
    high, low = two_sum(means[0][heavy], weighted.sum(axis=0))
    mean = two_sum(high, low + means[1][heavy])
    return mean, factor[:, np.newaxis] * (mean_before - gap[1:])


def _require_range(
    diag: Array, yty: Array, xty: Array, names: tuple[str, ...] | None, u: Array, v: Array
) -> None:
    """Raise if the difference of two means, squared, is too large or too small for a double."""
    if (
        min(diag.min(initial=1.0), yty.min()) >= SMALLEST_SQUARES
        and np.isfinite(diag.sum() + yty.sum())
        and np.isfinite(xty).all()
    ):
        return
    bad = ~np.isfinite(diag) | ~np.isfinite(xty).all(axis=1)
    bad |= (diag < SMALLEST_SQUARES) & u.any(axis=0)
    bad_y = ~np.isfinite(yty) | ((yty < SMALLEST_SQUARES) & v.any(axis=0))
    if bad_y.any():
        raise OutOfRangeError(_NOT_SQUARED, "y", is_target=True)
    if bad.any():
        raise OutOfRangeError(_NOT_SQUARED, column_name(int(np.argmax(bad)), names))


def outer_strips(U: Array) -> Iterator[tuple[slice, Array]]:
    """The rows of U'U in strips that stay in the cache; each overwrites the one before."""
    k, m = U.shape
    if k != 1:
        yield slice(0, m), U.T @ U
        return
    u = U[0]
    height = max(STRIP_ELEMENTS // max(m, 1), 1)
    memory = np.empty((min(height, m), m))
    for i in range(0, m, height):
        rows = slice(i, min(i + height, m))
        yield rows, np.multiply(u[rows, np.newaxis], u, out=memory[: rows.stop - i])


# -- one pass over the rows of a table ---------------------------------------------------------


def fold_sums(table: Table, ids: Index | None = None, count: int = 1) -> list[Sums]:
    """Sums of each fold, checked; of all rows if `ids` is None."""
    with np.errstate(over="ignore", invalid="ignore", under="ignore", divide="ignore"):
        try:
            folds = _summed(table, ids, count)
        except OutOfRangeError:
            table.require_finite()
            raise
        # A value that is not finite shows in the sums of its column. Products of two columns are
        # bounded by their squares.
        sums = [part for s in folds for part in (s.mean, s.diag, s.xty, s.yty)]
        if not all(np.isfinite(part).all() for part in sums):
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
    count, thin, y, w = len(sizes), sizes < table.m, table.y, table.weight
    X = in_one_piece(table.X) if thin.any() else table.X
    if w is not None:
        ids = np.where(w > 0, ids, count)
    totals = [Accumulator(_no_rows(table), own=True) for _ in sizes]
    for fold in np.flatnonzero(thin):
        totals[fold].add(_thin_sums(table, _taken(X, y, w, np.flatnonzero(ids == fold))))
    block_sums, height = _kind_of_sums(table)
    # Each fold's share of a block should itself be about a block.
    height *= min(count, STRIPES)
    for low in range(0, 0 if thin.all() else table.n, height):
        part = slice(low, low + height)
        block = X[part], y[part], None if w is None else w[part]
        # Small integers sort fastest.
        fold_of_row = ids[part].astype(np.min_scalar_type(count))
        order = np.argsort(fold_of_row, kind="stable")
        edges = np.searchsorted(fold_of_row[order], np.arange(count + 1))

        def add(fold: int) -> None:
            rows = order[edges[fold] : edges[fold + 1]]  # noqa: B023
            totals[fold].add(block_sums(_taken(*block, rows)))  # noqa: B023

        present = np.flatnonzero((np.diff(edges) > 0) & ~thin).tolist()
        side_by_side(add, present, table.n * table.m >= THREAD_ELEMENTS)
    return [total.result() for total in totals]


def _no_rows(table: Table) -> Sums:
    """The sums of none of its rows."""
    return Sums.empty(table.m, table.k, table.names, table.flat_y)


def _taken(X: Any, y: NDArray[Any], w: Array | None, rows: Index) -> Block:
    """Some of the rows, in the order of their memory."""
    by_column = not sp.issparse(X) and abs(X.strides[0]) < abs(X.strides[1])
    some = X.T[:, rows].T if by_column else X[rows]
    return some, y[rows], None if w is None else w[rows]


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
