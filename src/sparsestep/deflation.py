"""The few directions along which columns are dependent, or nearly so, held apart from the rest.

A sum beside its parts, or all indicators of a category, leave the Gram matrix S without an inverse;
a year and its square, nearly so. With N the eigenvectors of its small eigenvalues, ``W = N'SN``,
and P the inverse of S along all other directions, the dual form of `linear.py` becomes

    (P + diag(1 / d)) f = P q + N t,        N'f + W t = N'q,

for the forces f and for t, how far the solution lies along N. W may be nil. As there, the first
matrix is split into a diagonal ``1 / h`` and the rest. Without the rest it is a system with
``N'diag(h) N + W`` for each d, as small as N has columns; conjugate gradients that are led by its
solution need as few iterations as if all columns were independent.
"""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import qr

from sparsestep.equations import negligible
from sparsestep.products import by_gram

__all__ = ["Deflation", "Held"]

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]
Floats = NDArray[Any]
Index = NDArray[np.intp]

# Eigenvalues below this share of the largest are held apart, ...
_SMALL = 1e-4
# ... unless they are so many that their systems take as long as a factorization of the whole.
_MOST = 24
_MOST_OF_COLUMNS = 1 / 4
# Less than this of a direction is rounding.
_ROUNDING = 1e-12
# Penalties so many times larger than rounding tell where a solution lies along a direction.
_TELLING = 100
# Small systems, scaled to a unit diagonal, with larger entries in their inverse are of no use.
_USELESS = 1e8


@dataclass
class Held:
    """The directions held apart in systems with given diagonals, a row each."""

    gram: Index
    N: Floats
    back: Floats  # the pseudo-inverse of N'
    W: Array
    right: Array  # N'q
    inverse: Floats  # of N'diag(h) N + W
    part: Array  # the share of a column's force, 0 to 1, that belongs to the directions
    useless: Mask

    def take(self, rows: slice | Index | Mask) -> "Held":
        """Some of the rows."""
        names = ("gram", "right", "inverse", "part", "useless")
        return replace(self, **{name: getattr(self, name)[rows] for name in names})

    def astype(self, dtype: type[np.floating]) -> "Held":
        """The same for rows in another precision; the small systems stay in double."""
        return replace(self, N=self.N.astype(dtype))

    def along(self, t: Floats) -> Floats:
        """``N t``."""
        return by_gram(self.gram, t, self.N.transpose(0, 2, 1))

    def across(self, forces: Floats) -> Floats:
        """``N'f``."""
        return by_gram(self.gram, forces, self.N)

    def coordinates(self, b: Array) -> Array:
        """How far coefficients lie along each direction."""
        return by_gram(self.gram, b, self.back)

    def solved(self, right: Floats) -> Floats:
        """The solutions of the small systems."""
        return _times(self.inverse, right).astype(right.dtype, copy=False)

    def led(self, residual: Floats, h: Floats) -> tuple[Floats, Floats]:
        """What to change the aims and t by, for such a residual of the first equation."""
        t = -self.solved(self.across(h * residual))
        return residual + self.along(t), t

    def energy(self, t: Floats) -> Floats:
        """``t'Wt``."""
        return np.asarray(np.vecdot(t, _times(self.W[self.gram], t)), t.dtype)

    def met(self, h: Array, aim: Array, t: Array) -> tuple[Array, Array]:
        """The aims and t moved so that they meet the second equation, ``N'(h a) + W t = N'q``."""
        more = self.solved(self.right - self.across(h * aim) - _times(self.W[self.gram], t))
        return aim + self.along(more), t + more


class Deflation:
    """The directions of a few matrices, zeros where one has fewer of them than another.

    Attributes
    ----------
    P : ndarray of shape (n_grams, m, m)
    N : ndarray of shape (n_grams, m, k)
    W : ndarray of shape (n_grams, k, k)
    """

    def __init__(self, P: Array, N: Array, W: Array) -> None:
        self.P, self.N, self.W = P, N, W
        n_grams, m, k = N.shape
        self._pairs = (N[:, :, :, np.newaxis] * N[:, :, np.newaxis]).reshape(n_grams, m, k * k)
        self._back = np.linalg.pinv(N.transpose(0, 2, 1))

    @classmethod
    def of(cls, grams: Array) -> "Deflation | None":
        """Those of the small eigenvalues; None where there are too many to be worth it."""
        n_grams, m, _ = grams.shape
        split = [np.linalg.eigh(S) for S in grams]
        counts = [int(np.count_nonzero(values < _SMALL * values[-1])) for values, _ in split]
        k = max(counts)
        if k > min(_MOST, _MOST_OF_COLUMNS * m):
            return None
        P, N = np.empty_like(grams), np.zeros((n_grams, m, k))
        W = np.tile(np.eye(k), (n_grams, 1, 1))
        for i, ((values, vectors), count) in enumerate(zip(split, counts, strict=True)):
            rest = vectors[:, count:]
            np.matmul(rest / values[count:], rest.T, out=P[i])
            nil = int(np.count_nonzero(values <= negligible(m)))
            N[i, :, :nil] = _simplest(vectors[:, :nil])
            N[i, :, nil:count] = vectors[:, nil:count]
            W[i, range(count), range(count)] = np.where(np.arange(count) < nil, 0.0, values[:count])
        return cls(P, N, W)

    def hold(self, gram: Index, h: Array, q: Array) -> Held:
        """The directions in systems with such diagonals and right-hand sides."""
        k = self.N.shape[2]
        small = by_gram(gram, h, self._pairs).reshape(len(h), k, k) + self.W[gram]
        size = np.sqrt(np.diagonal(small, axis1=1, axis2=2))
        # Penalties as small as the rounding of S do not decide where the literal loop goes.
        least = _TELLING * negligible(len(self._back[0]))
        useless = ~np.all((size**2 > least) & np.isfinite(size), axis=1)
        size[useless], small[useless] = 1.0, np.eye(k)
        scale = size[:, :, np.newaxis] * size[:, np.newaxis]
        inverse = _inverses(small / scale)
        useless |= ~(np.abs(inverse).max(axis=(1, 2), initial=0.0) < _USELESS)
        inverse /= scale
        part = by_gram(gram, inverse.reshape(len(h), k * k), self._pairs.transpose(0, 2, 1))
        part *= h
        right, more = self._across(gram, q)
        return Held(
            gram=gram,
            N=self.N,
            back=self._back,
            W=self.W,
            right=right,
            inverse=inverse,
            part=part.clip(0.0, 1.0),
            useless=useless | more,
        )

    def _across(self, gram: Index, q: Array) -> tuple[Array, Mask]:
        """``N'q``, and in which rows it is more than nil, by rounding, where the eigenvalue is."""
        right = by_gram(gram, q, self.N)
        rounding = negligible(q.shape[1]) * np.abs(q).max(axis=1, keepdims=True, initial=0.0)
        nil = np.diagonal(self.W, axis1=1, axis2=2)[gram] == 0
        more = np.any(nil & (np.abs(right) > rounding), axis=1)
        return np.where(nil, 0.0, right), more


def _simplest(vectors: Array) -> Array:
    """A basis of the same directions with as many zeros as can be.

    Directions that have no column in common are kept apart, so that none drowns in the rounding of
    another.
    """
    if not vectors.size:
        return vectors
    pivots = qr(vectors.T, mode="r", pivoting=True)[1][: vectors.shape[1]]
    basis = np.linalg.solve(vectors[pivots].T, vectors.T).T
    basis /= np.linalg.norm(basis, axis=0)
    basis[np.abs(basis) < _ROUNDING] = 0.0
    return basis


def _inverses(matrices: Array) -> Floats:
    """The inverse of each matrix, infinite where one is singular."""
    try:
        return np.linalg.inv(matrices)
    except np.linalg.LinAlgError:
        regular = np.linalg.cond(matrices) < 1 / np.finfo(np.float64).eps
        inverses = np.full_like(matrices, np.inf)
        inverses[regular] = np.linalg.inv(matrices[regular])
        return inverses


def _times(matrices: Array, rows: Floats) -> Floats:
    """Each row times its own small matrix, which is symmetric."""
    return np.asarray(np.matmul(matrices, rows[:, :, np.newaxis])[:, :, 0])
