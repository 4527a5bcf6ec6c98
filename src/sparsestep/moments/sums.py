"""Means and centred sums of rows, and their merging.

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
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparsestep.errors import OutOfRangeError
from sparsestep.moments.runs import Runs
from sparsestep.moments.table import column_name
from sparsestep.words import quoted

Array = NDArray[np.float64]
# Twice the precision: a value as high + low.
Pair = tuple[Array, Array]

# Products are rounded to 5e-324 at best, so sums of squares below this have lost digits.
SMALLEST_SQUARES = 1e-302
# Numbers in a strip of a matrix: a few such strips fit the cache of one core.
STRIP_ELEMENTS = 1 << 13

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


def _gram(pieces: Sequence[CentredRows], m: int) -> Array:
    """Sum of A'A over pieces of rows."""
    total = np.zeros((m, m))
    few: list[Array] = []
    for piece in pieces:
        # Single rows (differences of means) are stacked: each alone would cost a pass over S.
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
            self.xtx = _gram(self.pieces or (), self.m)
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

    def is_finite(self) -> bool:
        """Whether all sums are; the products of two columns are bounded by their squares."""
        parts = (self.mean, self.diag, self.xty, self.yty)
        return all(bool(np.isfinite(part).all()) for part in parts)


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
                grams, u, into_first = [*grams, _gram([*rows, CentredRows(u, v)], m)], u[:0], False
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
