"""Moments: all that the method needs of the rows, in one pass over any number of them.

With weights w (1 where none are given), W their sum, and every sum taken about the means,

    S = sum w (x - mean_x)(x - mean_x)'     `xtx`
    q = sum w (x - mean_x)(y - mean_y)      `xty`
    sum w (y - mean_y)^2                    `yty`

and two sets of rows a and b together have the sums of both plus one product of their means
(Chan, Golub and LeVeque 1983):

    S = S_a + S_b + u u',   u = sqrt(W_a W_b / W) (mean_a - mean_b)

The sums about zero, X'X - W mean mean', appear nowhere: at mean/sd = 1e7 they have no digit left.
"""

import os
import threading
import uuid
import zipfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache, cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any, ClassVar, TypeVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
from scipy.linalg import lapack, solve_triangular
from threadpoolctl import ThreadpoolController

__all__ = ["Moments", "MomentsFileError", "leave_one_out"]

Array = NDArray[np.float64]
_T = TypeVar("_T")
_R = TypeVar("_R")

# A block of rows of this size stays in the cache between the subtraction and the product.
BLOCK_BYTES = 4 << 20
# Row ranges summed side by side. A constant, so that the sums do not depend on the thread count.
STRIPES = 8
# Below this many numbers starting threads costs more than it saves; above this many columns one
# product keeps all cores busy by itself.
STRIPE_ELEMENTS = 1 << 23
STRIPE_COLUMNS = 256
# Below this share of stored entries sparse products beat dense ones on blocks made dense.
SPARSE_DENSITY = 0.04
# Products are rounded to 5e-324 at best, so sums of squares below this have lost digits.
SMALLEST_SQUARES = 1e-302


class MomentsFileError(ValueError):
    """A file is not a moments file that this version can read."""


class Moments:
    """Means and centred sums of squares and products of a table, mergeable without loss.

    Build one with `from_data`, `from_batches`, `from_folds`, `merge` or `load`; the arrays are
    read-only. Rows of zero weight count as absent, whatever they contain.

    With fewer rows than columns the form is thin: the centred rows, times the square root of their
    weights, are kept instead of the m x m matrix. Merged thin moments turn dense when their rows
    are no longer fewer than their columns.

    Attributes
    ----------
    n_samples : int
        Rows of non-zero weight.
    weight_sum : float
        Sum of the weights; `n_samples` where none were given.
    n_features : int
        Columns of X, called m below.
    mean_x : ndarray of shape (m,)
        Weighted means of the columns.
    mean_y : float or ndarray of shape (k,)
        Weighted mean of y; one per target for a two-dimensional y.
    xtx : ndarray of shape (m, m)
        Centred sums of squares and products of the columns. In thin form it is formed, and kept,
        at the first access.
    xty : ndarray of shape (m,) or (m, k)
        Centred sums of products of the columns with y.
    yty : float or ndarray of shape (k,)
        Centred sum of squares of y; one per target for a two-dimensional y.
    diag : ndarray of shape (m,)
        The diagonal of `xtx`, in either form at no cost.
    feature_names : tuple of str, or None
        Names of the columns where the data had some.
    is_thin : bool
        Whether rows are kept instead of `xtx`.

    Examples
    --------
    Two halves of a table, summed apart, are as good as the whole:

    >>> import numpy as np
    >>> from sparsestep import Moments
    >>> X = np.array([[1.0, 0.0], [2.0, 1.0], [3.0, 5.0], [4.0, 2.0]])
    >>> y = np.array([1.0, 3.0, 2.0, 6.0])
    >>> moments = Moments.from_data(X[:2], y[:2]) + Moments.from_data(X[2:], y[2:])
    >>> moments
    Moments(n_samples=4, n_features=2)
    >>> moments.mean_x
    array([2.5, 2. ])
    >>> moments.xtx
    array([[ 5.,  5.],
           [ 5., 14.]])

    and they know the residual sum of squares of any coefficients:

    >>> coef = np.array([2.0, -0.5])
    >>> residual = y - X @ coef
    >>> float(np.sum((residual - residual.mean()) ** 2))
    0.5
    >>> moments.rss(coef)
    0.5
    """

    FORMAT: ClassVar[str] = "sparsestep moments"
    VERSION: ClassVar[int] = 1

    n_samples: int
    weight_sum: float
    feature_names: tuple[str, ...] | None
    _mean_x: Array
    _mean_y: Array
    _xtx: Array | None
    _pieces: "tuple[_Piece, ...] | None"
    _xty: Array
    _yty: Array
    _diag: Array
    _flat_y: bool

    def __init__(self) -> None:
        raise TypeError(
            "Build moments with Moments.from_data, from_batches, from_folds, merge or load."
        )

    @classmethod
    def _make(
        cls,
        *,
        n_samples: int,
        weight_sum: float,
        mean_x: Array,
        mean_y: Array,
        xtx: Array | None,
        pieces: "tuple[_Piece, ...] | None",
        xty: Array,
        yty: Array,
        diag: Array,
        feature_names: tuple[str, ...] | None,
        flat_y: bool,
    ) -> "Moments":
        """Moments from their parts; targets always two-dimensional here."""
        self = object.__new__(cls)
        self.n_samples = n_samples
        self.weight_sum = weight_sum
        self._mean_x, self._mean_y = mean_x, mean_y
        self._xtx, self._pieces = xtx, pieces
        self._xty, self._yty, self._diag = xty, yty, diag
        self.feature_names = feature_names
        self._flat_y = flat_y
        return self

    @classmethod
    def _empty(cls, m: int, k: int, names: tuple[str, ...] | None, flat_y: bool) -> "Moments":
        """Moments of no rows."""
        return cls._make(
            n_samples=0,
            weight_sum=0.0,
            mean_x=np.zeros(m),
            mean_y=np.zeros(k),
            xtx=None if m else np.zeros((0, 0)),
            pieces=() if m else None,
            xty=np.zeros((m, k)),
            yty=np.zeros(k),
            diag=np.zeros(m),
            feature_names=names,
            flat_y=flat_y,
        )

    # -- building ----------------------------------------------------------------------------

    @classmethod
    def from_data(
        cls,
        X: Any,
        y: Any,
        sample_weight: ArrayLike | None = None,
        *,
        feature_names: Sequence[str] | None = None,
    ) -> "Moments":
        """Moments of a table in memory.

        Parameters
        ----------
        X : array, SciPy sparse matrix or frame of shape (n, m)
            NumPy in any order and any real type, SciPy sparse, pandas, polars or pyarrow. Sums are
            in double precision. No copy larger than a block of rows is made, except in thin form,
            which keeps the rows (n < m; sparse rows stay sparse), and except that sparse data of
            another kind are turned into CSR.
        y : array_like of shape (n,) or (n, k)
            The target, or several.
        sample_weight : array_like of shape (n,), optional
            Non-negative weights. A whole number w counts as w copies of the row, 0 as no row.
        feature_names : sequence of str, optional
            Names of the columns; those of a frame otherwise.

        Returns
        -------
        Moments

        Examples
        --------
        >>> from sparsestep import Moments
        >>> moments = Moments.from_data([[1], [2], [6]], [1, 2, 3], sample_weight=[1, 2, 1])
        >>> moments.n_samples, moments.weight_sum, moments.mean_x
        (3, 4.0, array([2.75]))
        """
        data = _Data(X, y, sample_weight, feature_names)
        return _sum_folds(data, None, 1)[0]

    @classmethod
    def from_batches(
        cls, batches: Iterable[Any], *, feature_names: Sequence[str] | None = None
    ) -> "Moments":
        """Moments of a table that arrives in pieces.

        Parameters
        ----------
        batches : iterable of (X, y) or (X, y, sample_weight)
            Each as in `from_data`. Empty pieces and pieces of zero weight are fine.
        feature_names : sequence of str, optional
            Names of the columns; those of the pieces otherwise.

        Returns
        -------
        Moments

        Examples
        --------
        >>> import numpy as np
        >>> from sparsestep import Moments
        >>> rng = np.random.default_rng(0)
        >>> Moments.from_batches((rng.normal(size=(100, 3)), np.ones(100)) for _ in range(5))
        Moments(n_samples=500, n_features=3)
        """
        total: Moments | None = None
        # Thin pieces wait until together they have as many rows as columns: a product for each
        # handful of rows would pass over the m x m matrix every time.
        waiting: list[Moments] = []
        waiting_rows = 0
        for number, batch in enumerate(batches):
            try:
                X, y, *rest = batch
                if len(rest) > 1:
                    raise ValueError("expected (X, y) or (X, y, sample_weight).")
                data = _Data(X, y, rest[0] if rest else None, feature_names, zero_weights_ok=True)
                piece = _sum_folds(data, None, 1)[0]
                if waiting or total is not None:
                    _require_mergeable(waiting[0] if total is None else total, piece)
            except (TypeError, ValueError) as error:
                raise type(error)(f"Batch {number}: {error}") from error
            waiting.append(piece)
            waiting_rows += _n_rows(piece)
            if waiting_rows >= piece.n_features:
                group = cls.merge(waiting)
                total = group if total is None else _combine(total, group, overwrite=True)
                waiting, waiting_rows = [], 0
        if total is not None:
            waiting.insert(0, total)
        if not waiting:
            raise ValueError("There are no batches, so the columns are unknown.")
        return cls.merge(waiting)

    @classmethod
    def from_folds(
        cls,
        X: Any,
        y: Any,
        folds: Any,
        sample_weight: ArrayLike | None = None,
        *,
        feature_names: Sequence[str] | None = None,
    ) -> "list[Moments]":
        """Moments of every part of a partition of the rows, in one pass.

        Parameters
        ----------
        X, y, sample_weight, feature_names
            As in `from_data`.
        folds : array_like of int of shape (n,), or list of index arrays
            For each row the number of its fold, from 0; or for each fold the rows in it, each row
            of X in exactly one. Contiguous folds are summed without a copy.

        Returns
        -------
        list of Moments
            One per fold, as `leave_one_out` takes them.

        Examples
        --------
        >>> import numpy as np
        >>> from sparsestep import Moments
        >>> X, y = np.arange(12.0).reshape(6, 2), np.arange(6.0)
        >>> [fold.mean_y for fold in Moments.from_folds(X, y, [0, 1, 0, 1, 0, 1])]
        [2.0, 3.0]
        """
        data = _Data(X, y, sample_weight, feature_names)
        ids, count = _fold_ids(folds, data.n)
        return _sum_folds(data, ids, count)

    @classmethod
    def merge(cls, pieces: "Iterable[Moments]") -> "Moments":
        """Moments of all rows of several pieces together.

        Parameters
        ----------
        pieces : iterable of Moments
            At least one; all with the same columns and the same shape of y.

        Returns
        -------
        Moments

        Examples
        --------
        >>> from sparsestep import Moments
        >>> pieces = [Moments.from_data([[i]], [2 * i]) for i in range(5)]
        >>> Moments.merge(pieces).xtx
        array([[10.]])
        """
        total: Moments | None = None
        ours = False
        for piece in pieces:
            if not isinstance(piece, Moments):
                raise TypeError(f"Only moments can be merged with moments, not {type(piece)}.")
            if total is None:
                total = piece
                continue
            merged = _combine(total, piece, overwrite=ours)
            ours = ours or (merged is not total and merged is not piece)
            if merged is piece:
                ours = False
            total = merged
        if total is None:
            raise ValueError("There are no moments to merge, so the columns are unknown.")
        return total

    def __add__(self, other: "Moments") -> "Moments":
        if not isinstance(other, Moments):
            return NotImplemented
        return _combine(self, other, overwrite=False)

    # -- reading -----------------------------------------------------------------------------

    @property
    def n_features(self) -> int:
        """Number of columns."""
        return len(self._mean_x)

    @property
    def mean_x(self) -> Array:
        """Weighted means of the columns."""
        return _read_only(self._mean_x)

    @property
    def mean_y(self) -> Any:
        """Weighted mean of y, one per target for a two-dimensional y."""
        return float(self._mean_y[0]) if self._flat_y else _read_only(self._mean_y)

    @property
    def xtx(self) -> Array:
        """Centred sums of squares and products of the columns; in thin form made on demand."""
        if self._xtx is None:
            self._xtx = _gram(self._pieces or (), self.n_features)
        return _read_only(self._xtx)

    @property
    def xty(self) -> Array:
        """Centred sums of products of the columns with y."""
        return _read_only(self._xty[:, 0] if self._flat_y else self._xty)

    @property
    def yty(self) -> Any:
        """Centred sum of squares of y, one per target for a two-dimensional y."""
        return float(self._yty[0]) if self._flat_y else _read_only(self._yty)

    @property
    def diag(self) -> Array:
        """Centred sums of squares of the columns."""
        return _read_only(self._diag)

    @property
    def is_thin(self) -> bool:
        """Whether the centred rows are kept instead of `xtx`."""
        return self._pieces is not None

    @property
    def rows(self) -> tuple[Array, Array]:
        """Centred rows A and targets of thin moments: ``A'A`` is `xtx`, ``A'y`` is `xty`.

        Each row is multiplied by the square root of its weight; rows that carry the difference of
        two merged means are among them. Rows that were sparse are made dense here.

        Raises
        ------
        AttributeError
            If the moments are dense; `compress` gives rows in either form.
        """
        if self._pieces is None:
            raise AttributeError("Dense moments keep no rows; compress() makes some.")
        if len(self._pieces) != 1 or not isinstance(self._pieces[0], _DenseRows):
            m, k = self._xty.shape
            A = np.concatenate([np.empty((0, m)), *(piece.dense() for piece in self._pieces)])
            yc = np.concatenate([np.empty((0, k)), *(piece.y for piece in self._pieces)])
            self._pieces = (_DenseRows(A, yc),)
        rows = self._pieces[0]
        yc = rows.y[:, 0] if self._flat_y else rows.y
        return _read_only(rows.dense()), _read_only(yc)

    def __repr__(self) -> str:
        thin = ", thin" if self.is_thin else ""
        return f"Moments(n_samples={self.n_samples}, n_features={self.n_features}{thin})"

    def target(self, t: int) -> "Moments":
        """The moments of one target of a two-dimensional y; nothing is copied.

        Parameters
        ----------
        t : int
            Which target, from 0.

        Returns
        -------
        Moments

        Examples
        --------
        >>> from sparsestep import Moments
        >>> both = Moments.from_data([[1], [2], [4]], [[1, 0], [3, 0], [4, 9]])
        >>> both.target(1).mean_y
        3.0
        """
        one = slice(t, t + 1)
        pieces = None if self._pieces is None else tuple(p.target(one) for p in self._pieces)
        return self._make(
            n_samples=self.n_samples,
            weight_sum=self.weight_sum,
            mean_x=self._mean_x,
            mean_y=self._mean_y[one],
            xtx=self._xtx,
            pieces=pieces,
            xty=self._xty[:, one],
            yty=self._yty[one],
            diag=self._diag,
            feature_names=self.feature_names,
            flat_y=True,
        )

    # -- computing ---------------------------------------------------------------------------

    def gram_product(self, V: ArrayLike) -> Array:
        """The product ``xtx @ V``; in thin form ``A'(A V)``, without an m x m matrix.

        Parameters
        ----------
        V : array_like of shape (m,) or (m, r)

        Returns
        -------
        ndarray of the shape of V

        Examples
        --------
        >>> from sparsestep import Moments
        >>> thin = Moments.from_data([[1, 0, 2], [3, 4, 0]], [1, 2])
        >>> thin.is_thin, thin.gram_product([1, 0, 0])
        (True, array([ 2.,  4., -2.]))
        """
        V = self._coefficients(V, "V")
        if self._pieces is None:
            return np.asarray(self.xtx @ V)
        result = np.zeros(V.shape)
        for piece in self._pieces:
            result += piece.transposed_dot(piece.dot(V))
        return result

    def rss(self, coef: ArrayLike, intercept: ArrayLike | None = None) -> Any:
        """Weighted sum of squares of ``y - X coef - intercept`` over all rows.

        From dense moments it is ``yty - 2 b'q + b'S b``, whose rounding error is about 1e-16 times
        `yty`; in thin form it comes from the rows themselves.

        Parameters
        ----------
        coef : array_like of shape (m,) or (m, r)
            Coefficients, or r vectors of them. With k targets, (m, k): a vector for each target;
            or (m,): one vector for all targets.
        intercept : float or array_like of shape (r,), optional
            The intercept, or one per vector. The best one for each vector if None.

        Returns
        -------
        float or ndarray of shape (r,) or (k,)

        Examples
        --------
        >>> from sparsestep import Moments
        >>> moments = Moments.from_data([[1], [2], [4]], [1, 3, 4])
        >>> round(moments.rss([1.0], intercept=0.0), 12)
        1.0
        >>> moments.rss([[1.0, 0.0]])
        array([0.66666667, 4.66666667])
        """
        coef = self._coefficients(coef, "coef")
        k = len(self._yty)
        if not self._flat_y and coef.ndim == 2 and coef.shape[1] != k:
            raise ValueError(
                f"coef has {coef.shape[1]} columns but there are {k} targets; "
                "give one vector of coefficients for each target."
            )
        B = coef[:, None] if coef.ndim == 1 else coef
        if self._pieces is None:
            value = self._yty - 2.0 * np.einsum("ij,ij->j", *np.broadcast_arrays(B, self._xty))
            value = np.maximum(value + np.einsum("ij,ij->j", B, self.xtx @ B), 0.0)
        else:
            value = np.zeros(max(B.shape[1], k))
            for piece in self._pieces:
                residual = piece.y - piece.dot(B)
                value += np.einsum("ij,ij->j", residual, residual)
        if intercept is not None:
            gap = self._mean_y - self._mean_x @ B - np.asarray(intercept, dtype=np.float64)
            value = value + self.weight_sum * gap**2
        return float(value[0]) if coef.ndim == 1 and self._flat_y else value

    def compress(self) -> tuple[Array, Array]:
        """At most m + 1 rows that any least-squares method can use in place of the data.

        The rows and targets (X, y) have, without centring, ``X'X = xtx``, ``X'y = xty`` and
        ``y'y = yty``, and so the same `rss` for all coefficients. Fit them without an intercept;
        it is ``mean_y - mean_x @ coef``. With ``L L' = S`` they are the rows of ``L'`` with targets
        ``L^-1 q``, then a row of zeros whose target is the residual ``sqrt(yty - |L^-1 q|^2)``.

        Columns are scaled to one before L is computed with pivoting, and directions in which they
        vary by less than ``m * 2.2e-16`` are left out, so linearly dependent columns give fewer
        rows. Thin moments return their own rows.

        Returns
        -------
        X : ndarray of shape (r, m)
        y : ndarray of shape (r,) or (r, k)

        Examples
        --------
        >>> import numpy as np
        >>> from sparsestep import Moments
        >>> rng = np.random.default_rng(0)
        >>> moments = Moments.from_data(rng.normal(size=(1000, 3)), rng.normal(size=1000))
        >>> X, y = moments.compress()
        >>> X.shape, np.allclose(X.T @ X, moments.xtx), np.allclose(X.T @ y, moments.xty)
        ((4, 3), True, True)
        """
        if self._pieces is not None:
            A, y = self.rows
            return A.copy(), y.copy()
        S = self.xtx
        m, k = self._xty.shape
        scale = np.sqrt(self._diag)
        used = np.flatnonzero(scale)
        scale = scale[used]
        R = np.zeros((0, m))
        T = np.zeros((0, k))
        if len(used):
            C = S[np.ix_(used, used)] / scale / scale[:, None]
            tolerance = m * np.finfo(np.float64).eps
            factor, pivot, rank, _ = lapack.dpstrf(C, tol=tolerance, lower=0)
            pivot = pivot - 1
            upper = np.triu(factor[:rank])
            q = (self._xty[used] / scale[:, None])[pivot[:rank]]
            T = solve_triangular(upper[:, :rank], q, trans=1)
            R = np.zeros((rank, m))
            R[:, used[pivot]] = upper * scale[pivot]
        residual = np.sqrt(np.maximum(self._yty - np.einsum("ij,ij->j", T, T), 0.0))
        X = np.concatenate([R, np.zeros((1, m))])
        y = np.concatenate([T, residual[None]])
        return X, (y[:, 0] if self._flat_y else y)

    def _coefficients(self, values: ArrayLike, name: str) -> Array:
        """Values as doubles, one or more columns of length m."""
        array = np.asarray(values, dtype=np.float64)
        if array.ndim not in (1, 2) or array.shape[0] != self.n_features:
            raise ValueError(
                f"{name} has shape {array.shape}; its first dimension must be the "
                f"{self.n_features} columns of these moments."
            )
        return array

    # -- files -------------------------------------------------------------------------------

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the moments to a file, complete or not at all.

        Parameters
        ----------
        path : path-like
            Exactly this name is used. The format is NumPy's ``.npz``; thin moments are written as
            their dense rows.

        Examples
        --------
        >>> import os, tempfile
        >>> from sparsestep import Moments
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     file = os.path.join(folder, "site-1.moments")
        ...     Moments.from_data([[1], [2], [4]], [1, 3, 4]).save(file)
        ...     Moments.load(file)
        Moments(n_samples=3, n_features=1)
        """
        target = Path(path)
        arrays: dict[str, Any] = {
            "format": np.array(self.FORMAT),
            "version": np.array(self.VERSION),
            "n_samples": np.array(self.n_samples),
            "weight_sum": np.array(self.weight_sum),
            "mean_x": self._mean_x,
            "mean_y": self._mean_y,
            "flat_y": np.array(self._flat_y),
            "xty": self._xty,
            "yty": self._yty,
            "diag": self._diag,
        }
        # Always there: a damaged directory of the archive must not look like a table without names.
        arrays["feature_names"] = np.array(self.feature_names or (), dtype=np.str_)
        arrays["has_names"] = np.array(self.feature_names is not None)
        if self._pieces is None:
            arrays["xtx"] = self._xtx
        else:
            A, yc = self.rows
            arrays["rows"], arrays["targets"] = A, yc.reshape(len(A), len(self._yty))
        if not target.parent.is_dir():
            raise FileNotFoundError(f"The folder {target.parent} for the moments does not exist.")
        # Not tempfile: its files are private, and moments are made to be handed on.
        temporary = target.with_name(f".{uuid.uuid4().hex}.tmp")
        try:
            with open(temporary, "xb") as file:
                np.savez(file, **arrays)
            os.replace(temporary, target)
        finally:
            temporary.unlink(missing_ok=True)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> "Moments":
        """Read moments from a file that `save` wrote; nothing in it is executed.

        Parameters
        ----------
        path : path-like

        Returns
        -------
        Moments

        Raises
        ------
        MomentsFileError
            If the file is damaged, is something else, or was written by a newer version.
        """
        with open(path, "rb") as file:
            try:
                if not zipfile.is_zipfile(file):
                    raise _Unreadable("is not a moments file, or is cut short")
                file.seek(0)
                with np.load(file, allow_pickle=False) as archive:
                    return cls._from_archive(archive)
            except _Unreadable as error:
                raise MomentsFileError(f"{os.fspath(path)} {error}.") from error.__cause__
            except Exception as error:
                # zipfile and NumPy answer damage with a dozen kinds of exception.
                raise MomentsFileError(f"{os.fspath(path)} is damaged: {error}") from error

    @classmethod
    def _from_archive(cls, archive: Any) -> "Moments":
        """Moments from an open ``.npz`` archive, every array checked against the others."""
        if "format" not in archive or str(archive["format"]) != cls.FORMAT:
            raise _Unreadable("is a NumPy file but does not hold moments")
        version = int(archive["version"])
        if version > cls.VERSION:
            raise _Unreadable(
                f"has format version {version}, newer than {cls.VERSION}, the newest that this "
                "sparsestep reads; update sparsestep"
            )
        if version < 1:
            raise _Unreadable(f"is damaged: its format version is {version}")
        m, k = archive["xty"].shape

        def array(name: str, *shape: int) -> Array:
            values = archive[name]
            if values.dtype != np.float64 or values.shape != shape:
                raise _Unreadable(
                    f"is damaged: {name} has type {values.dtype} and shape {values.shape}"
                )
            if not np.isfinite(values).all():
                raise _Unreadable(f"is damaged: {name} has values that are not finite")
            return np.asarray(values, order="C")

        names: tuple[str, ...] | None = None
        if bool(archive["has_names"]):
            names = tuple(str(name) for name in archive["feature_names"])
            if len(names) != m:
                raise _Unreadable(f"is damaged: {len(names)} names for {m} columns")
        xtx, pieces = None, None
        if "xtx" in archive:
            xtx = array("xtx", m, m)
            if not np.array_equal(xtx, xtx.T):
                raise _Unreadable("is damaged: xtx is not symmetric")
        else:
            n = len(archive["rows"])
            pieces = (_DenseRows(array("rows", n, m), array("targets", n, k)),)
        self = cls._make(
            n_samples=int(archive["n_samples"]),
            weight_sum=float(array("weight_sum")),
            mean_x=array("mean_x", m),
            mean_y=array("mean_y", k),
            xtx=xtx,
            pieces=pieces,
            xty=array("xty", m, k),
            yty=array("yty", k),
            diag=array("diag", m),
            feature_names=names,
            flat_y=bool(archive["flat_y"]),
        )
        if (
            self.n_samples < 0
            or self.weight_sum < 0
            or (self.n_samples > 0) != (self.weight_sum > 0)
        ):
            raise _Unreadable("is damaged: its counts contradict each other")
        if xtx is not None and not np.array_equal(np.diagonal(xtx), self._diag):
            raise _Unreadable("is damaged: diag is not the diagonal of xtx")
        if self._diag.min(initial=0.0) < 0 or self._yty.min(initial=0.0) < 0:
            raise _Unreadable("is damaged: a sum of squares is negative")
        return self


def leave_one_out(folds: Sequence[Moments]) -> list[Moments]:
    """Training moments of every fold: for each one, the merge of all others.

    By merges from both ends, 3 for each fold. Never by subtracting a fold from the total, which
    loses the digits of any column that varies mostly within that fold.

    Parameters
    ----------
    folds : sequence of Moments
        At least two.

    Returns
    -------
    list of Moments

    Examples
    --------
    >>> from sparsestep import Moments
    >>> from sparsestep.moments import leave_one_out
    >>> folds = [Moments.from_data([[i], [i + 2]], [0, 1]) for i in range(3)]
    >>> [float(train.mean_x[0]) for train in leave_one_out(folds)]
    [2.5, 2.0, 1.5]
    """
    if len(folds) < 2:
        raise ValueError(f"Leaving one fold out needs at least two folds, not {len(folds)}.")
    before: list[Moments] = [folds[0]]
    for fold in folds[1:-1]:
        before.append(_combine(before[-1], fold, overwrite=False))
    after, ours = folds[-1], False
    result = [before[-1]]
    for i in range(len(folds) - 2, 0, -1):
        # before[i - 1] may be a fold itself, or (after an empty fold) shared with its neighbour.
        train = _combine(before[i - 1], after, overwrite=False)
        result.append(train)
        # Where all folds before are empty, what was handed out is `after` itself.
        ours = ours and train is not after
        merged = _combine(after, folds[i], overwrite=ours)
        ours = merged is not folds[i] and (ours or merged is not after)
        after = merged
    result.append(after)
    return result[::-1]


# -- merging ---------------------------------------------------------------------------------


def _n_rows(moments: Moments) -> int:
    """Rows that thin moments keep; for dense ones the number of columns."""
    if moments._pieces is None:
        return moments.n_features
    return sum(len(piece.y) for piece in moments._pieces)


def _require_mergeable(a: Moments, b: Moments) -> None:
    """Raise unless both have the same columns and the same shape of y."""
    if a.n_features != b.n_features:
        raise ValueError(
            f"Moments of {a.n_features} and of {b.n_features} columns cannot be merged."
        )
    if a.feature_names != b.feature_names:
        if a.feature_names is None or b.feature_names is None:
            raise ValueError("Moments with and without column names cannot be merged.")
        i, (x, z) = next(
            (i, pair)
            for i, pair in enumerate(zip(a.feature_names, b.feature_names, strict=True))
            if pair[0] != pair[1]
        )
        raise ValueError(
            f"Moments of different columns cannot be merged: column {i} is {x!r} in one and {z!r} "
            "in the other."
        )
    if a._flat_y != b._flat_y or len(a._mean_y) != len(b._mean_y):
        raise ValueError("Moments with different numbers of targets cannot be merged.")


def _combine(a: Moments, b: Moments, *, overwrite: bool) -> Moments:
    """Moments of a and b together; `overwrite` says that a's matrix is nobody else's.

    S = S_a + S_b + u u' with u = sqrt(W_a W_b / W) (mean_a - mean_b).
    """
    _require_mergeable(a, b)
    if b.n_samples == 0:
        return a
    if a.n_samples == 0:
        return b
    m = a.n_features
    W = a.weight_sum + b.weight_sum
    with np.errstate(over="ignore", invalid="ignore", under="ignore"):
        gap_x, gap_y = a._mean_x - b._mean_x, a._mean_y - b._mean_y
        factor = np.sqrt(a.weight_sum / W * b.weight_sum)
        u, v = factor * gap_x, factor * gap_y
        xty = a._xty + b._xty + u[:, None] * v
        yty = a._yty + b._yty + v**2
        diag = a._diag + b._diag + u**2
    _require_range(diag, yty, xty, a.feature_names, u, v)
    # The heavier mean moves less, which keeps its digits.
    if a.weight_sum >= b.weight_sum:
        mean_x = a._mean_x - b.weight_sum / W * gap_x
        mean_y = a._mean_y - b.weight_sum / W * gap_y
    else:
        mean_x = b._mean_x + a.weight_sum / W * gap_x
        mean_y = b._mean_y + a.weight_sum / W * gap_y
    xtx: Array | None = None
    pieces: tuple[_Piece, ...] | None = None
    between = _DenseRows(u[None], v[None])
    if a._pieces is not None and b._pieces is not None:
        pieces = (*a._pieces, *b._pieces, between)
        if sum(len(piece.y) for piece in pieces) >= m:
            xtx, pieces = _gram(pieces, m), None
    elif a._pieces is None and b._pieces is None:
        xtx = np.add(a.xtx, b.xtx, out=a._xtx if overwrite else None)
        _add_outer(xtx, u)
    else:
        dense, thin = (a, b) if a._pieces is None else (b, a)
        assert thin._pieces is not None
        xtx = _gram((*thin._pieces, between), m)
        xtx += dense.xtx
    if xtx is not None:
        diag = np.diagonal(xtx).copy()
    return Moments._make(
        n_samples=a.n_samples + b.n_samples,
        weight_sum=W,
        mean_x=mean_x,
        mean_y=mean_y,
        xtx=xtx,
        pieces=pieces,
        xty=xty,
        yty=yty,
        diag=diag,
        feature_names=a.feature_names,
        flat_y=a._flat_y,
    )


def _require_range(
    diag: Array, yty: Array, xty: Array, names: tuple[str, ...] | None, u: Array, v: Array
) -> None:
    """Raise if the difference of two means, squared, is too large or too small for a double."""
    bad = ~np.isfinite(diag) | ~np.isfinite(xty).all(axis=1)
    bad |= (diag < SMALLEST_SQUARES) & (u != 0)
    bad_y = ~np.isfinite(yty) | ((yty < SMALLEST_SQUARES) & (v != 0))
    if bad_y.any():
        raise _OutOfRange("The values of y are too large or too small to be squared; rescale y.")
    if bad.any():
        raise _OutOfRange(
            f"The values of {_column(int(np.argmax(bad)), names)} are too large or too small to be "
            "squared; rescale it."
        )


def _add_outer(S: Array, u: Array) -> None:
    """S += u u' in place, in strips that stay in the cache."""
    m = len(u)
    strip = max(1, (1 << 15) // max(m, 1))
    product = np.empty((min(strip, m), m))
    for i in range(0, m, strip):
        part = product[: min(strip, m - i)]
        np.multiply(u[i : i + strip, None], u, out=part)
        S[i : i + strip] += part


def _gram(pieces: "Sequence[_Piece]", m: int) -> Array:
    """Sum of A'A over pieces of rows."""
    total = np.zeros((m, m))
    few: list[Array] = []
    for piece in pieces:
        # Single rows (differences of means) are gathered: each alone would cost a pass over S.
        if isinstance(piece, _DenseRows):
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


# -- thin rows -------------------------------------------------------------------------------


class _DenseRows:
    """Centred rows, times the square root of their weights, and their targets."""

    def __init__(self, A: Array, y: Array) -> None:
        self.A, self.y = A, y

    def dot(self, V: Array) -> Array:
        """A V."""
        return self.A @ V

    def transposed_dot(self, U: Array) -> Array:
        """A' U."""
        return self.A.T @ U

    def target(self, one: slice) -> "_DenseRows":
        """The same rows with one of their targets."""
        return _DenseRows(self.A, self.y[:, one])

    def dense(self) -> Array:
        """A itself."""
        return self.A

    def gram(self) -> Array:
        """A'A."""
        return self.A.T @ self.A


class _SparseRows:
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

    def target(self, one: slice) -> "_SparseRows":
        """The same rows with one of their targets."""
        return _SparseRows(self.X, self.root, self.mean, self.y[:, one])

    def dense(self) -> Array:
        """A as an array."""
        return np.asarray((self.X.toarray() - self.mean) * self.root[:, None])

    def gram(self) -> Array:
        """A'A from dense rows: fewer of them than columns, so no larger than the result."""
        A = self.dense()
        return A.T @ A


_Piece = _DenseRows | _SparseRows


# -- input -----------------------------------------------------------------------------------


class _Unreadable(Exception):
    """Why a file cannot be read, to follow its name in a sentence."""


class _OutOfRange(ValueError):
    """A sum of squares is too large or too small for a double."""


class _Data:
    """Checked rows: blocks of X, y and weights, without those of zero weight."""

    def __init__(
        self,
        X: Any,
        y: Any,
        sample_weight: ArrayLike | None,
        feature_names: Sequence[str] | None,
        *,
        zero_weights_ok: bool = False,
    ) -> None:
        self.X, names = _table(X)
        self.n, self.m = self.X.shape
        if feature_names is not None:
            names = tuple(feature_names)
            if len(names) != self.m or not all(isinstance(name, str) for name in names):
                raise ValueError(
                    f"feature_names must be {self.m} strings, one for each column of X."
                )
        self.names = names
        _require_numbers(self.X, names)
        y = _target(y)
        self.flat_y = y.ndim == 1
        self.y: NDArray[Any] = y[:, None] if self.flat_y else y
        if len(y) != self.n:
            raise ValueError(f"X has {self.n} rows but y has {len(y)}.")
        self.k = self.y.shape[1]
        self.weight = None if sample_weight is None else _weights(sample_weight, self.n)
        self.n_active = self.n if self.weight is None else int(np.count_nonzero(self.weight))
        if self.n and not self.n_active and not zero_weights_ok:
            raise ValueError("All values of sample_weight are zero, so there are no rows.")

    def block(self, a: int, b: int) -> tuple[Any, NDArray[Any], Array | None]:
        """Rows a to b of X, y and the weights."""
        X, y = self.X[a:b], self.y[a:b]
        if self.weight is None:
            return X, y, None
        w = self.weight[a:b]
        if not w.all():
            keep = np.flatnonzero(w)
            return X[keep], y[keep], w[keep]
        return X, y, w

    def blocks(self, columns: int) -> Iterator[tuple[int, Any, NDArray[Any]]]:
        """First row number and the values of each block, rows of zero weight included."""
        rows = max(BLOCK_BYTES // (8 * columns), 1)
        for a in range(0, self.n, rows):
            yield a, self.X[a : a + rows], self.y[a : a + rows]

    def require_finite(self) -> Array:
        """Raise for the first value that is not finite; else the largest size in each column."""
        largest = np.zeros(self.m + self.k)
        for a, X, y in self.blocks(self.m + self.k):
            X = X.toarray() if sp.issparse(X) else X
            values = np.concatenate([X, y], axis=1, dtype=np.float64)
            if self.weight is not None:
                values[self.weight[a : a + len(values)] == 0] = 0.0
            bad = ~np.isfinite(values)
            if bad.any():
                i, j = (int(index) for index in np.argwhere(bad)[0])
                raise ValueError(
                    f"{self._name(j)} has the value {values[i, j]} in row {a + i}; "
                    "remove or replace values that are missing or infinite."
                )
            largest = np.maximum(largest, np.abs(values).max(axis=0, initial=0.0))
        return largest

    def too_large(self, largest: Array) -> ValueError:
        """The error for finite values whose sums are not."""
        j = int(largest.argmax())
        return ValueError(
            f"{self._name(j)} reaches {largest[j]:.3g} in size, too large to be squared and "
            "summed; rescale it."
        )

    def require_constant(self, small: NDArray[np.bool_], ids: NDArray[np.intp] | None) -> None:
        """Raise if a column whose squares in a fold are as good as zero varies within the fold."""
        columns = np.flatnonzero(small.any(axis=0))
        of_x, of_y = columns[columns < self.m], columns[columns >= self.m] - self.m
        seen = np.zeros(len(small), dtype=bool)
        first = np.zeros((len(small), len(columns)))
        for a, X, y in self.blocks(len(columns)):
            X = X[:, of_x]
            X = X.toarray() if sp.issparse(X) else X
            values = np.concatenate([X, y[:, of_y]], axis=1, dtype=np.float64)
            fold = np.zeros(len(y), dtype=np.intp) if ids is None else ids[a : a + len(y)]
            if self.weight is not None:
                keep = self.weight[a : a + len(y)] > 0
                values, fold = values[keep], fold[keep]
            new, where = np.unique(fold, return_index=True)
            where, new = where[~seen[new]], new[~seen[new]]
            first[new], seen[new] = values[where], True
            varies = ((values != first[fold]) & small[np.ix_(fold, columns)]).any(axis=0)
            if varies.any():
                raise ValueError(
                    f"{self._name(int(columns[varies.argmax()]))} varies by too little for its "
                    "squares to be represented; rescale it."
                )

    def _name(self, j: int) -> str:
        if j >= self.m:
            return "y" if self.flat_y else f"y, column {j - self.m},"
        name = _column(j, self.names)
        return name[0].upper() + name[1:]


class _Columns:
    """Rows of a frame whose columns are separate arrays, converted a block at a time."""

    def __init__(self, columns: list[Any], n: int) -> None:
        self.columns = columns
        self.shape = (n, len(columns))

    def __getitem__(self, key: Any) -> Array:
        rows, columns = key if isinstance(key, tuple) else (key, None)
        if columns is not None:
            return _Columns([self.columns[j] for j in columns], self.shape[0])[rows]
        a, b, _ = rows.indices(self.shape[0])
        block = np.empty((b - a, self.shape[1]), order="F")
        for j, column in enumerate(self.columns):
            block[:, j] = _numbers_of(column[a:b])
        return block


def _numbers_of(values: Any) -> NDArray[Any]:
    """One-dimensional values of any library as a NumPy array, missing ones as NaN."""
    if isinstance(values, np.ndarray):
        return values
    try:
        array = values.to_numpy(dtype=np.float64, na_value=np.nan)  # pandas extension arrays
    except TypeError:
        array = values.to_numpy()
    if array.dtype == object and all(v is None or isinstance(v, bool | int) for v in array):
        array = np.array([np.nan if v is None else v for v in array], dtype=np.float64)
    return np.asarray(array)


def _table(X: Any) -> tuple[Any, tuple[str, ...] | None]:
    """X as an array, a CSR matrix or `_Columns`, and the names of its columns."""
    if sp.issparse(X):
        X = X.tocsr()
        if X.ndim == 2 and not X.has_canonical_format:
            X = X.copy()
            X.sum_duplicates()
        return _two_dimensional(X), None
    if isinstance(X, np.ndarray):
        return _two_dimensional(_unmasked(X, "X")), None
    if hasattr(X, "collect") and not hasattr(X, "to_numpy"):
        raise TypeError("X is a lazy frame; call its collect() first, or read it in batches.")
    if hasattr(X, "column_names") and hasattr(X, "schema"):  # pyarrow Table and RecordBatch
        return _Columns(list(X.columns), X.num_rows), _names(X.column_names)
    if hasattr(X, "columns") and hasattr(X, "dtypes"):
        if hasattr(X, "iloc"):
            return _pandas(X), _names(X.columns)
        return _Columns(list(X.get_columns()), X.height), _names(X.columns)
    try:
        X = np.asarray(X)
    except ValueError as error:
        raise ValueError(f"X is not a table of numbers: {error}") from error
    return _two_dimensional(X), None


def _pandas(X: Any) -> Any:
    """A pandas frame as one array where that takes no copy, otherwise column by column."""
    kinds = list(X.dtypes)
    if kinds and isinstance(kinds[0], np.dtype) and all(kind == kinds[0] for kind in kinds):
        return X.to_numpy()
    columns = [X.iloc[:, j] for j in range(X.shape[1])]
    return _Columns(
        [c.to_numpy() if isinstance(c.dtype, np.dtype) else c.array for c in columns], len(X)
    )


def _names(columns: Iterable[Any]) -> tuple[str, ...] | None:
    """Names of a frame's columns; None if they are only numbers."""
    names = list(columns)
    if all(isinstance(name, str) for name in names):
        return tuple(names)
    if not any(isinstance(name, str) for name in names):
        return None
    j, text = next((j, name) for j, name in enumerate(names) if isinstance(name, str))
    other = next(name for name in names if not isinstance(name, str))
    raise TypeError(
        f"Column names must all be text or none: column {j} is {text!r}, but there is also "
        f"{other!r}."
    )


def _two_dimensional(X: Any) -> Any:
    """X, if it has rows and columns."""
    if X.ndim != 2:
        raise ValueError(
            f"X has {X.ndim} dimension{'s' * (X.ndim != 1)}; it must have two, rows and columns."
        )
    return X


def _unmasked(values: NDArray[Any], name: str) -> NDArray[Any]:
    """The values of a masked array, if it hides none."""
    if isinstance(values, np.ma.MaskedArray):
        if np.ma.getmaskarray(values).any():
            raise ValueError(f"{name} has masked values; remove or replace them.")
        return np.asarray(values.data)
    return np.asarray(values)


def _require_numbers(X: Any, names: tuple[str, ...] | None) -> None:
    """Raise, naming the column, unless all columns hold real numbers or booleans."""
    if not isinstance(X, _Columns):
        if X.dtype.kind in "fiub":
            return
        j = 0
        if X.dtype.kind == "O" and X.size:
            real = (bool, int, float, np.number, np.bool_)
            wrong = (j for j in range(X.shape[1]) if not all(isinstance(v, real) for v in X[:, j]))
            j = next(wrong, 0)
        _refuse(j, names, X.dtype)
    for j, column in enumerate(X.columns):
        kind = getattr(column, "dtype", getattr(column, "type", None))
        if isinstance(kind, np.dtype):
            good = kind.kind in "fiub"
        else:
            # Extension types, polars and Arrow all say what they are by name.
            good = str(kind).lower().lstrip("u").startswith(("int", "float", "bool", "double"))
            good = good or str(kind).lower() in ("halffloat", "decimal")
        if not good:
            _refuse(j, names, kind)


def _refuse(j: int, names: tuple[str, ...] | None, kind: Any) -> None:
    """Raise for a column that does not hold real numbers."""
    name = _column(j, names)
    raise TypeError(
        f"{name[0].upper() + name[1:]} has type {kind}; convert it to real numbers first."
    )


def _target(y: Any) -> NDArray[Any]:
    """The target as an array of real numbers with one or two dimensions."""
    if sp.issparse(y):
        raise TypeError("y is sparse; give it as an array.")
    if isinstance(y, np.ndarray):
        array = _unmasked(y, "y")
    elif hasattr(y, "columns") or hasattr(y, "column_names"):
        table, names = _table(y)
        _require_numbers(table, names)
        array = table[:] if isinstance(table, _Columns) else table
    elif hasattr(y, "to_numpy"):
        array = _numbers_of(getattr(y, "array", y) if hasattr(y, "iloc") else y)
    else:
        array = np.asarray(y)
    if array.size == 0 and array.dtype == object:
        array = array.astype(np.float64)
    if array.dtype.kind not in "fiub":
        raise TypeError(f"y has type {array.dtype}; convert it to real numbers first.")
    if array.ndim not in (1, 2):
        raise ValueError(f"y has {array.ndim} dimensions; it must have one, or two for targets.")
    return array


def _weights(sample_weight: Any, n: int) -> Array:
    """Weights as doubles: one for each row, finite and not negative."""
    raw = sample_weight.to_numpy() if hasattr(sample_weight, "to_numpy") else sample_weight
    w = np.asarray(raw)
    if w.dtype.kind not in "fiub":
        raise TypeError(f"sample_weight has type {w.dtype}; convert it to real numbers first.")
    if w.shape != (n,):
        raise ValueError(f"sample_weight has shape {w.shape} but X has {n} rows.")
    w = w.astype(np.float64)
    bad = ~(np.isfinite(w) & (w >= 0))
    if bad.any():
        i = int(bad.argmax())
        raise ValueError(f"sample_weight is {w[i]} in row {i}; it must be finite and not negative.")
    with np.errstate(over="ignore"):
        if not np.isfinite(w.sum()):
            raise ValueError("The sum of sample_weight is too large for a double; rescale it.")
    return w


def _column(j: int, names: tuple[str, ...] | None) -> str:
    """How a message calls column j."""
    return f"column {j}" if names is None else f"column {names[j]!r}"


def _fold_ids(folds: Any, n: int) -> tuple[NDArray[np.intp], int]:
    """The fold of each row, and how many there are."""
    if isinstance(folds, list | tuple) and any(np.ndim(fold) for fold in folds):
        ids = np.full(n, -1, dtype=np.intp)
        for number, fold in enumerate(folds):
            index = np.asarray(fold)
            if index.dtype == bool and index.shape == (n,):
                index = np.flatnonzero(index)
            if index.ndim != 1 or (index.size and index.dtype.kind not in "iu"):
                raise ValueError(f"Fold {number} must be an array of row numbers.")
            index = index.astype(np.intp)
            if index.size and (index.min() < 0 or index.max() >= n):
                raise ValueError(f"Fold {number} has row numbers outside 0 to {n - 1}.")
            taken = index[ids[index] >= 0]
            ids[index] = number
            if taken.size or len(np.unique(index)) != len(index):
                repeated = taken[0] if taken.size else index[0]
                raise ValueError(f"Row {repeated} is in the folds more than once.")
        if n and ids.min() < 0:
            raise ValueError(f"Row {int(ids.argmin())} is in no fold.")
        return ids, len(folds)
    ids = np.asarray(folds)
    if ids.shape != (n,) or (n and ids.dtype.kind not in "iu"):
        raise ValueError(f"folds must give a whole number from 0 for each of the {n} rows.")
    ids = ids.astype(np.intp)
    if n and ids.min() < 0:
        raise ValueError(f"Row {int(ids.argmin())} has a negative fold number.")
    return ids, int(ids.max(initial=-1)) + 1


def _read_only(array: Array) -> Array:
    """The same memory, not to be written to."""
    view = array.view()
    view.flags.writeable = False
    return view


# -- sums ------------------------------------------------------------------------------------


def _block_rows(columns: int) -> int:
    """Rows of a block: as fit the cache, but enough to outweigh the pass over the sums."""
    return max(BLOCK_BYTES // (8 * (columns + 1)), 512)


class _Sums:
    """Sums of squares and products of z = (x, y, 1) about a shift that follows the mean.

    The ones make the last row of z'z the sums of z, so one product gives all moments. The centred
    sums are G - t t'/W, with t the sums about the shift. Digits are lost only where t^2/W is
    close to G, so that is looked at after each block: above a half, the shift moves to the mean.
    """

    def __init__(self, data: _Data, scratch: "_Scratch") -> None:
        self.data, self.scratch = data, scratch
        self.closed: list[Moments] = []
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
        if self.n == 0:
            self.shift = self._mean(z, X, y, w)
        self._centre(z, X, y, w)
        weight = float(len(y)) if w is None else float(w.sum())
        G = np.matmul(z.T, z, out=self.scratch.product)
        if self.n == 0:
            self.G = G.copy()
        else:
            t = self.G[-1] + G[-1]
            size = np.diagonal(self.G) + np.diagonal(G)
            drift = t[:-1] ** 2 / (self.weight + weight) / np.where(size[:-1] > 0, size[:-1], 1.0)
            if drift.max(initial=0.0) > 0.99:
                # The rows so far weigh next to nothing and their mean is far from this block's.
                self.closed.append(self._moments())
                self.n, self.weight = 0, 0.0
                self.shift = self._mean(z, X, y, w)
                self._centre(z, X, y, w)
                self.G = np.matmul(z.T, z)
            else:
                self.G += G
                if drift.max(initial=0.0) > 0.5:
                    self._move(self.weight + weight)
        self.n += len(y)
        self.weight += weight

    def _mean(self, z: Array, X: Any, y: NDArray[Any], w: Array | None) -> Array:
        """Mean of a block, exact for a constant column: first row + mean difference from it."""
        first = np.concatenate([X[0], y[0]], dtype=np.float64)
        self.shift = first
        self._centre(z, X, y, None)
        p = np.full(len(y), 1.0 / len(y)) if w is None else w / w.sum()
        return np.asarray(first + p @ z[:, :-1])

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
        step = self.G[-1, :-1] / weight
        u = self.G[-1, :-1] / np.sqrt(weight)
        self.G[:-1, :-1] -= np.multiply.outer(u, u)
        self.G[-1, :-1] = self.G[:-1, -1] = 0.0
        self.shift = self.shift + step

    def _moments(self) -> Moments:
        """Moments of the rows since the last closing."""
        self._move(self.weight)
        return _dense_moments(self.data, self.n, self.weight, self.shift, self.G[:-1, :-1])

    def finish(self) -> Moments:
        """Moments of all rows added."""
        if self.n == 0:
            return Moments._empty(self.data.m, self.data.k, self.data.names, self.data.flat_y)
        return Moments.merge([*self.closed, self._moments()])


def _dense_moments(data: _Data, n: int, weight: float, mean: Array, C: Array) -> Moments:
    """Moments from the centred sums C of (x, y)."""
    m = data.m
    xtx = np.ascontiguousarray(C[:m, :m])
    return Moments._make(
        n_samples=n,
        weight_sum=weight,
        mean_x=mean[:m].copy(),
        mean_y=mean[m:].copy(),
        xtx=xtx,
        pieces=None,
        xty=C[:m, m:].copy(),
        yty=np.diagonal(C)[m:].copy(),
        diag=np.diagonal(xtx).copy(),
        feature_names=data.names,
        flat_y=data.flat_y,
    )


class _Scratch:
    """Memory for one centred block and its product, used again for every block."""

    def __init__(self, columns: int) -> None:
        self.columns = columns
        self.memory = np.empty(0)

    @cached_property
    def product(self) -> Array:
        """Room for z'z, taken only when there are dense sums."""
        return np.empty((self.columns, self.columns))

    def rows(self, r: int, like: Any) -> Array:
        """An (r, columns) array in the order of the data, which is how it is written fastest."""
        if self.memory.size < r * self.columns:
            self.memory = np.empty(r * self.columns)
        flat = self.memory[: r * self.columns]
        if abs(like.strides[0]) < abs(like.strides[1]):
            return flat.reshape(self.columns, r).T
        return flat.reshape(r, self.columns)


class _SparseSums:
    """The same sums from sparse products, for data with few stored entries.

    Centring by algebra, G - t t'/W in each block, is safe here: a column with a share p of entries
    that are not zero has mean^2/variance of at most p/(1 - p). The exception is a column without
    any zero; such columns are shifted by their first value.
    """

    def __init__(self, data: _Data, offset: Array) -> None:
        self.data, self.offset = data, offset
        self.total = Moments._empty(data.m, data.k, data.names, data.flat_y)

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
        C = np.empty((m + self.data.k,) * 2)
        C[:m, :m] = (Z.T @ Z).toarray()
        C[:m, m:] = Z.T @ yc
        C[m:, :m] = C[:m, m:].T
        C[m:, m:] = yc.T @ yc
        t = np.concatenate([Z.T @ root, yc.T @ root])
        u = t / np.sqrt(weight)
        C -= np.multiply.outer(u, u)
        mean = np.concatenate([self.offset, y0]) + t / weight
        block = _dense_moments(self.data, len(y), weight, mean, C)
        self.total = _combine(self.total, block, overwrite=True)

    def finish(self) -> Moments:
        """Moments of all rows added."""
        return self.total


def _thin(data: _Data, X: Any, y: NDArray[Any], w: Array | None) -> Moments:
    """Moments of fewer rows than columns, which keep the centred rows."""
    n = len(y)
    if n == 0:
        return Moments._empty(data.m, data.k, data.names, data.flat_y)
    root = np.ones(n) if w is None else np.sqrt(w)
    weight = float(n) if w is None else float(w.sum())
    p = root**2 / weight
    mean_y, yc = _centred(y, root, p)
    piece: _Piece
    if sp.issparse(X):
        X = sp.csr_array(X, dtype=np.float64)
        mean_x = np.asarray(X.T @ p)
        piece = _SparseRows(X, root, mean_x, yc)
        squares = X.multiply(X).T @ p
        # Where no entry is zero the algebra may cancel; those columns are summed as columns.
        diag = weight * np.maximum(squares - mean_x**2, 0.0)
        full = np.flatnonzero(np.bincount(X.indices, minlength=data.m) == n)
        if len(full):
            mean_x[full], A = _centred(X[:, full].toarray(), root, p)
            diag[full] = np.einsum("ij,ij->j", A, A)
    else:
        mean_x, A = _centred(X, root, p)
        piece = _DenseRows(A, yc)
        diag = np.einsum("ij,ij->j", A, A)
    return Moments._make(
        n_samples=n,
        weight_sum=weight,
        mean_x=mean_x,
        mean_y=mean_y,
        xtx=None,
        # A single row is its own mean: nothing is left of it.
        pieces=(piece,) if n > 1 else (),
        xty=piece.transposed_dot(yc),
        yty=np.einsum("ij,ij->j", yc, yc),
        diag=diag,
        feature_names=data.names,
        flat_y=data.flat_y,
    )


def _centred(values: NDArray[Any], root: Array, p: Array) -> tuple[Array, Array]:
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
    return mean + rest, centred


class _ThinRows:
    """Collects the rows of a fold that has fewer of them than columns."""

    def __init__(self, data: _Data) -> None:
        self.data = data
        self.blocks: list[tuple[Any, NDArray[Any], Array | None]] = []

    def add(self, X: Any, y: NDArray[Any], w: Array | None) -> None:
        """Keep a block of rows."""
        if len(y):
            self.blocks.append((X, y, w))

    def finish(self) -> Moments:
        """Moments of all rows kept."""
        if not self.blocks:
            return Moments._empty(self.data.m, self.data.k, self.data.names, self.data.flat_y)
        if len(self.blocks) == 1:
            return _thin(self.data, *self.blocks[0])
        X, y, w = zip(*self.blocks, strict=True)
        stack = sp.vstack if sp.issparse(X[0]) else np.concatenate
        weights = None if w[0] is None else np.concatenate(w)
        return _thin(self.data, stack(X), np.concatenate(y), weights)


class _Plan:
    """What kind of sums each fold of the data gets, and in blocks of how many rows."""

    def __init__(self, data: _Data, rows_in_fold: NDArray[np.intp]) -> None:
        self.data = data
        self.thin = rows_in_fold < data.m
        self.offset: Array | None = None
        self.rows = _block_rows(data.m + data.k)
        X = data.X
        if sp.issparse(X) and X.nnz < SPARSE_DENSITY * data.n * data.m:
            self.offset = np.zeros(data.m)
            full = np.flatnonzero(np.bincount(X.indices, minlength=data.m) == data.n)
            if len(full):
                self.offset[full] = X[[0]][:, full].toarray()[0]
            self.rows = max(BLOCK_BYTES * data.n // (12 * max(X.nnz, 1)), data.m, 1)

    def sums(self, fold: int, scratch: _Scratch) -> "_Sums | _SparseSums | _ThinRows":
        """An empty collector for one fold."""
        if self.thin[fold]:
            return _ThinRows(self.data)
        if self.offset is not None:
            return _SparseSums(self.data, self.offset)
        return _Sums(self.data, scratch)

    def stripes(self, a: int, b: int) -> list[tuple[int, int]]:
        """Rows a to b in ranges that are summed side by side."""
        m = self.data.m
        if (b - a) * m < STRIPE_ELEMENTS or m > STRIPE_COLUMNS or self.thin.any():
            return [(a, b)]
        edges = np.linspace(a, b, STRIPES + 1).astype(int).tolist()
        return list(pairwise(edges))


def _sum_folds(data: _Data, ids: NDArray[np.intp] | None, count: int) -> list[Moments]:
    """Moments of each fold, checked; of all rows if `ids` is None."""
    with np.errstate(over="ignore", invalid="ignore", under="ignore", divide="ignore"):
        try:
            folds = _summed(data, ids, count)
        except _OutOfRange:
            data.require_finite()
            raise
        # A value that is not finite makes some of its column's sums so, which costs nothing to see.
        if not all(_is_finite(fold) for fold in folds):
            largest = data.require_finite()
            raise data.too_large(largest)
    small = np.array([np.concatenate([fold._diag, fold._yty]) for fold in folds])
    small = small.reshape(count, data.m + data.k) < SMALLEST_SQUARES
    if small.any():
        data.require_constant(small, ids)
    return folds


def _is_finite(moments: Moments) -> bool:
    """Whether all sums are; the products of two columns are bounded by their squares."""
    parts = (moments._mean_x, moments._mean_y, moments._diag, moments._xty, moments._yty)
    return all(bool(np.isfinite(part).all()) for part in parts)


def _summed(data: _Data, ids: NDArray[np.intp] | None, count: int) -> list[Moments]:
    """Moments of each fold."""
    w = data.weight
    if ids is None:
        rows_in_fold = np.array([data.n_active])
        bounds: list[tuple[int, int]] | None = [(0, data.n)]
    else:
        active = ids if w is None else ids[w > 0]
        rows_in_fold = np.bincount(active, minlength=count)
        bounds = _contiguous(ids, count)
    plan = _Plan(data, rows_in_fold)

    def contiguous(task: tuple[int, int, int]) -> Moments:
        fold, a, b = task
        sums = plan.sums(fold, _Scratch(data.m + data.k + 1))
        rows = max(b - a, 1) if plan.thin[fold] else plan.rows
        for i in range(a, b, rows):
            sums.add(*data.block(i, min(i + rows, b)))
        return sums.finish()

    def scattered(task: tuple[int, int]) -> list[Moments]:
        a, b = task
        assert ids is not None
        scratch = _Scratch(data.m + data.k + 1)
        sums = [plan.sums(fold, scratch) for fold in range(count)]
        # Each fold's share of the block should itself be about a block.
        rows = plan.rows * min(count, STRIPES)
        for i in range(a, b, rows):
            stop = min(i + rows, b)
            X, y, weight = data.X[i:stop], data.y[i:stop], None if w is None else w[i:stop]
            here = ids[i:stop] if weight is None else np.where(weight > 0, ids[i:stop], count)
            order = np.argsort(here, kind="stable")
            edges = np.searchsorted(here[order], np.arange(count + 1))
            for fold in np.flatnonzero(np.diff(edges)):
                rows_of = order[edges[fold] : edges[fold + 1]]
                part = None if weight is None else weight[rows_of]
                sums[fold].add(_take(X, rows_of), y[rows_of], part)
        return [each.finish() for each in sums]

    if bounds is None:
        parts = _run(scattered, plan.stripes(0, data.n))
        return [Moments.merge(pieces) for pieces in zip(*parts, strict=True)]
    tasks = [(fold, *ends) for fold, (a, b) in enumerate(bounds) for ends in plan.stripes(a, b)]
    pieces: list[list[Moments]] = [[] for _ in range(count)]
    for task, moments in zip(tasks, _run(contiguous, tasks), strict=True):
        pieces[task[0]].append(moments)
    return [Moments.merge(fold) for fold in pieces]


def _take(X: Any, rows: NDArray[np.intp]) -> Any:
    """Some rows of a block, in the order of its memory."""
    if not sp.issparse(X) and X.flags.f_contiguous:
        return np.take(X.T, rows, axis=1).T
    if not sp.issparse(X) and abs(X.strides[0]) < abs(X.strides[1]):
        return X.T[:, rows].T
    return X[rows]


def _contiguous(ids: NDArray[np.intp], count: int) -> list[tuple[int, int]] | None:
    """First and last row of each fold, if its rows follow one another."""
    starts = np.flatnonzero(np.diff(ids, prepend=-1))
    present = ids[starts]
    if len(np.unique(present)) != len(present):
        return None
    bounds = [(0, 0)] * count
    for fold, a, b in zip(present, starts, [*starts[1:], len(ids)], strict=True):
        bounds[fold] = (int(a), int(b))
    return bounds


# -- threads ---------------------------------------------------------------------------------


_limit_lock = threading.Lock()
_limit_users = 0
_limit: Any = None


@cache
def _blas() -> Any:
    """Handle on the threads of NumPy's linear algebra."""
    return ThreadpoolController().select(user_api="blas")


@contextmanager
def _one_blas_thread() -> Iterator[None]:
    """Linear algebra in one thread per caller, as several callers at once are quickest.

    The limit holds for the whole process, so the last of overlapping callers lifts it: each lifting
    its own would leave the limit of whoever came first in place for ever.
    """
    global _limit_users, _limit
    with _limit_lock:
        if _limit_users == 0:
            _limit = _blas().limit(limits=1)
        _limit_users += 1
    try:
        yield
    finally:
        with _limit_lock:
            _limit_users -= 1
            if _limit_users == 0:
                _limit.restore_original_limits()


def _run(function: Callable[[_T], _R], tasks: Sequence[_T]) -> list[_R]:
    """The function of each task, side by side in as many threads as linear algebra may use."""
    threads = 1
    if len(tasks) >= STRIPES:
        threads = max((pool["num_threads"] for pool in _blas().info()), default=1)
    if threads == 1:
        return [function(task) for task in tasks]
    with _one_blas_thread(), ThreadPoolExecutor(min(threads, len(tasks))) as pool:
        return list(pool.map(function, tasks))
