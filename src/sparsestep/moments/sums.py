"""Means and centred sums of rows, and their merging by the pairwise formula.

With weights w (1 where none are given), W their sum, and every sum taken about the means,

    S = sum w (x - mean_x)(x - mean_x)'     `xtx`
    q = sum w (x - mean_x)(y - mean_y)      `xty`
    sum w (y - mean_y)^2                    `yty`

and two sets of rows a and b together have the sums of both plus one product of their means
(Chan, Golub and LeVeque 1983):

    S = S_a + S_b + u u',   u = sqrt(W_a W_b / W) (mean_a - mean_b)

The sums about zero, X'X - W mean mean', appear nowhere: at mean/sd = 1e7 they have no digit left.
Nor are means rounded to one double, of which the difference of two keeps as few digits: they are
pairs, `mean_x` + `low_x`.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from sparsestep.errors import OutOfRangeError
from sparsestep.moments.runs import Runs, joined, require_same_folds
from sparsestep.moments.table import column_name
from sparsestep.moments.thin import DenseRows, Piece, gram, row_count
from sparsestep.moments.twofold import add
from sparsestep.words import quoted

__all__ = [
    "SMALLEST_SQUARES",
    "Sums",
    "combine",
    "merge",
    "outer_strips",
    "require_mergeable",
]

Array = NDArray[np.float64]

# Products are rounded to 5e-324 at best, so sums of squares below this have lost digits.
SMALLEST_SQUARES = 1e-302
# Numbers in a strip of a matrix: a few such strips fit the cache of one core.
STRIP_ELEMENTS = 1 << 13

_NOT_SQUARED = "The values of {name} are too large or too small to be squared"


@dataclass
class Sums:
    """Means and centred sums of a set of rows; the targets are always two-dimensional.

    Thin sums keep `pieces` of rows; their `xtx` is None until `gram` is first asked for.
    """

    n_samples: int
    weight_sum: float
    mean_x: Array
    mean_y: Array
    # The means are mean_x + low_x and mean_y + low_y, in twice the precision.
    low_x: Array
    low_y: Array
    xtx: Array | None
    pieces: tuple[Piece, ...] | None
    xty: Array
    yty: Array
    diag: Array
    names: tuple[str, ...] | None
    flat_y: bool
    target_names: tuple[str, ...] | None = None
    # Columns of text that columns of zeros and ones stand for, and their categories.
    categories: dict[str, tuple[str, ...]] = field(default_factory=dict)
    # The folds that these are, if they are folds.
    runs: Runs = ()

    @classmethod
    def empty(cls, m: int, k: int, names: tuple[str, ...] | None, flat_y: bool) -> "Sums":
        """Sums of no rows."""
        return cls(
            n_samples=0,
            weight_sum=0.0,
            mean_x=np.zeros(m),
            mean_y=np.zeros(k),
            low_x=np.zeros(m),
            low_y=np.zeros(k),
            xtx=None if m else np.zeros((0, 0)),
            pieces=() if m else None,
            xty=np.zeros((m, k)),
            yty=np.zeros(k),
            diag=np.zeros(m),
            names=names,
            flat_y=flat_y,
        )

    @property
    def gram(self) -> Array:
        """S; in thin form made from the rows at the first access, and kept."""
        if self.xtx is None:
            self.xtx = gram(self.pieces or (), len(self.mean_x))
        return self.xtx

    def kept_rows(self) -> DenseRows:
        """The rows of thin sums as one dense piece, which replaces the others."""
        pieces = self.pieces or ()
        if len(pieces) == 1 and isinstance(pieces[0], DenseRows):
            return pieces[0]
        rows = self.stacked_rows()
        self.pieces = (rows,)
        return rows

    def stacked_rows(self) -> DenseRows:
        """The rows of thin sums in memory of their own."""
        pieces = self.pieces or ()
        m, k = self.xty.shape
        A, y = np.empty((row_count(pieces), m)), np.empty((row_count(pieces), k))
        low = 0
        for piece in pieces:
            rows = slice(low, low + len(piece.y))
            A[rows], y[rows] = piece.dense(), piece.y
            low = rows.stop
        return DenseRows(A, y)

    def is_finite(self) -> bool:
        """Whether all sums are; the products of two columns are bounded by their squares."""
        parts = (self.mean_x, self.mean_y, self.diag, self.xty, self.yty)
        return all(bool(np.isfinite(part).all()) for part in parts)


def require_mergeable(a: Sums, b: Sums) -> None:
    """Raise unless both have the same columns and the same targets, as far as these have names."""
    if len(a.mean_x) != len(b.mean_x):
        raise ValueError(
            f"Moments of {len(a.mean_x)} and of {len(b.mean_x)} columns cannot be merged."
        )
    if a.names != b.names:
        if a.names is None or b.names is None:
            raise ValueError("Moments with and without column names cannot be merged.")
        i, (x, z) = next(
            (i, pair)
            for i, pair in enumerate(zip(a.names, b.names, strict=True))
            if pair[0] != pair[1]
        )
        raise ValueError(
            f"Moments of different columns cannot be merged: column {i} is {x!r} in one and {z!r} "
            "in the other."
        )
    if a.flat_y != b.flat_y or len(a.mean_y) != len(b.mean_y):
        raise ValueError("Moments with different numbers of targets cannot be merged.")
    if a.target_names and b.target_names and a.target_names != b.target_names:
        x, z = next(p for p in zip(a.target_names, b.target_names, strict=True) if p[0] != p[1])
        raise ValueError(f"Moments of different targets, {x!r} and {z!r}, cannot be merged.")
    # Two categories whose columns have the same names may leave different ones to all zeros.
    for name in a.categories.keys() & b.categories.keys():
        first, second = a.categories[name], b.categories[name]
        if first != second:
            raise ValueError(
                f"Moments of different categories cannot be merged: {name!r} has "
                f"{quoted(first, 5)} in one and {quoted(second, 5)} in the other, where all zeros "
                "mean the first; read both with the same categories."
            )


def merge(pieces: Iterable[Sums]) -> Sums:
    """Sums of all rows of several pieces, which stay as they are."""
    total: Sums | None = None
    ours = False
    runs: list[Runs] = []
    for piece in pieces:
        runs.append(piece.runs)
        if total is None:
            total = piece
            continue
        merged = combine(total, piece, overwrite=ours)
        ours = merged is not piece and (ours or merged is not total)
        total = merged
    if total is None:
        raise ValueError("There are no moments to merge, so the columns are unknown.")
    require_same_folds(runs)
    return total


def combine(a: Sums, b: Sums, *, overwrite: bool) -> Sums:
    """Sums of a and b together; `overwrite` says that a's matrix is nobody else's.

    S = S_a + S_b + u u' with u = sqrt(W_a W_b / W) (mean_a - mean_b).
    """
    require_mergeable(a, b)
    runs = joined(a.runs, b.runs)
    if b.n_samples == 0:
        return a
    if a.n_samples == 0:
        return b
    m = len(a.mean_x)
    W = a.weight_sum + b.weight_sum
    with np.errstate(over="ignore", invalid="ignore", under="ignore"):
        gap_x, _ = add((a.mean_x, a.low_x), (-b.mean_x, -b.low_x))
        gap_y, _ = add((a.mean_y, a.low_y), (-b.mean_y, -b.low_y))
        factor = np.sqrt(a.weight_sum / W * b.weight_sum)
        u, v = factor * gap_x, factor * gap_y
        xty = a.xty + b.xty + u[:, None] * v
        yty = a.yty + b.yty + v**2
        diag = a.diag + b.diag + u**2
    _require_range(diag, yty, xty, a.names, u, v)
    # The heavier mean moves less, which keeps its digits.
    heavy, share = (a, -b.weight_sum / W) if a.weight_sum >= b.weight_sum else (b, a.weight_sum / W)
    mean_x, low_x = add((heavy.mean_x, heavy.low_x), (share * gap_x, np.zeros(m)))
    mean_y, low_y = add((heavy.mean_y, heavy.low_y), (share * gap_y, np.zeros_like(gap_y)))
    xtx: Array | None = None
    pieces: tuple[Piece, ...] | None = None
    between = DenseRows(u[None], v[None])
    if a.pieces is not None and b.pieces is not None:
        pieces = (*a.pieces, *b.pieces, between)
        if row_count(pieces) >= m:
            xtx, pieces = gram(pieces, m), None
    elif a.pieces is None and b.pieces is None:
        first, second = a.gram, b.gram
        xtx = first if overwrite else np.empty((m, m))
        for rows, product in outer_strips(u):
            part = np.add(first[rows], second[rows], out=xtx[rows])
            part += product
    else:
        dense, thin = (a, b) if a.pieces is None else (b, a)
        assert thin.pieces is not None
        xtx = gram((*thin.pieces, between), m)
        xtx += dense.gram
    if xtx is not None:
        diag = np.diagonal(xtx).copy()
    return Sums(
        n_samples=a.n_samples + b.n_samples,
        weight_sum=W,
        mean_x=mean_x,
        mean_y=mean_y,
        low_x=low_x,
        low_y=low_y,
        xtx=xtx,
        pieces=pieces,
        xty=xty,
        yty=yty,
        diag=diag,
        names=a.names,
        flat_y=a.flat_y,
        target_names=a.target_names or b.target_names,
        categories=a.categories | b.categories,
        runs=runs,
    )


def _require_range(
    diag: Array, yty: Array, xty: Array, names: tuple[str, ...] | None, u: Array, v: Array
) -> None:
    """Raise if the difference of two means, squared, is too large or too small for a double."""
    bad = ~np.isfinite(diag) | ~np.isfinite(xty).all(axis=1)
    bad |= (diag < SMALLEST_SQUARES) & (u != 0)
    bad_y = ~np.isfinite(yty) | ((yty < SMALLEST_SQUARES) & (v != 0))
    if bad_y.any():
        raise OutOfRangeError(_NOT_SQUARED, "y", is_target=True)
    if bad.any():
        raise OutOfRangeError(_NOT_SQUARED, column_name(int(np.argmax(bad)), names))


def outer_strips(u: Array) -> Iterator[tuple[slice, Array]]:
    """The rows of u u' in strips that stay in the cache; each overwrites the one before."""
    m = len(u)
    height = max(STRIP_ELEMENTS // max(m, 1), 1)
    memory = np.empty((min(height, m), m))
    for i in range(0, m, height):
        rows = slice(i, min(i + height, m))
        yield rows, np.multiply(u[rows, None], u, out=memory[: rows.stop - i])
