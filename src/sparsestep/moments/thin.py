"""Rows kept instead of their products: what moments of fewer rows than columns are made of.

The rows are centred and multiplied by the square root of their weights, so that A'A is the matrix
of centred sums. Sparse rows stay sparse.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparsestep.moments.twofold import Pair, two_sum

__all__ = ["DenseRows", "Piece", "SparseRows", "centred", "gram", "row_count"]

Array = NDArray[np.float64]


class DenseRows:
    """Centred rows, times the square root of their weights, and their targets."""

    def __init__(self, A: Array, y: Array) -> None:
        self.A, self.y = A, y

    def dot(self, V: Array) -> Array:
        """A V."""
        return self.A @ V

    def transposed_dot(self, U: Array) -> Array:
        """A' U."""
        return self.A.T @ U

    def target(self, one: slice) -> "DenseRows":
        """The same rows with one of their targets."""
        return DenseRows(self.A, self.y[:, one])

    def dense(self) -> Array:
        """A itself."""
        return self.A

    def columns(self, which: NDArray[np.intp]) -> Array:
        """Some columns of A."""
        return self.A[:, which]

    def gram(self) -> Array:
        """A'A."""
        return self.A.T @ self.A


class SparseRows:
    """The same rows as diag(s) (X - 1 mean') with X sparse and s the roots of the weights."""

    def __init__(self, X: Any, root: Array, mean: Array, y: Array) -> None:
        self.X, self.root, self.mean, self.y = X, root, mean, y

    def dot(self, V: Array) -> Array:
        """A V = diag(s) (X V - 1 mean'V)."""
        product = self.X @ V - self.mean @ V
        return np.asarray((product.T * self.root).T)

    def transposed_dot(self, U: Array) -> Array:
        """A'U = X'(s U) - mean (s'U)."""
        scaled = (U.T * self.root).T
        return np.asarray(self.X.T @ scaled - np.multiply.outer(self.mean, scaled.sum(axis=0)))

    def target(self, one: slice) -> "SparseRows":
        """The same rows with one of their targets."""
        return SparseRows(self.X, self.root, self.mean, self.y[:, one])

    def dense(self) -> Array:
        """A as an array, without a second one beside it."""
        A: Array = self.X.toarray()
        A -= self.mean
        A *= self.root[:, None]
        return A

    def columns(self, which: NDArray[np.intp]) -> Array:
        """Some columns of A."""
        return np.asarray((self.X[:, which].toarray() - self.mean[which]) * self.root[:, None])

    def gram(self) -> Array:
        """A'A from dense rows: fewer of them than columns, so no larger than the result."""
        A = self.dense()
        return A.T @ A


Piece = DenseRows | SparseRows


def row_count(pieces: Sequence[Piece]) -> int:
    """Rows in all pieces."""
    return sum(len(piece.y) for piece in pieces)


def gram(pieces: Sequence[Piece], m: int) -> Array:
    """Sum of A'A over pieces of rows."""
    total = np.zeros((m, m))
    few: list[Array] = []
    for piece in pieces:
        # Single rows (differences of means) are gathered: each alone would cost a pass over S.
        if isinstance(piece, DenseRows):
            few.append(piece.A)
            if sum(map(len, few)) < m and piece is not pieces[-1]:
                continue
        else:
            total += piece.gram()
        if few:
            A = np.concatenate(few) if len(few) > 1 else few[0]
            total += A.T @ A
            few = []
    return total


def centred(values: NDArray[Any], root: Array, p: Array) -> tuple[Pair, Array]:
    """Weighted mean, and the rows about it times the roots of their weights."""
    first = np.asarray(values[0], dtype=np.float64)
    step = p @ (values - first)
    mean = first + step
    centred = values - mean
    # The mean was rounded to the size of the values; what is left of it is of their spread's size.
    rest = p @ centred
    centred -= rest
    if (root != 1.0).any():
        centred *= root[:, None]
    return two_sum(mean, rest), centred
