"""Moments: the sums of the rows that the method needs, in one pass over any number of rows.

The class is the public interface to `sums` (the rows and the formulas) and `file`. Below it,
training sets are merged from folds, and folds checked: no row counts twice, and none is forgotten.
"""

import os
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import reduce
from itertools import accumulate
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.linalg import lapack, solve_triangular

from sparsestep.moments import file as moments_file
from sparsestep.moments.sums import (
    Accumulator,
    Run,
    Runs,
    Sums,
    fold_sums,
    is_thin,
    merge,
    require_mergeable,
)
from sparsestep.moments.table import Table, fold_ids

Array = NDArray[np.float64]
Index = NDArray[np.intp]


class Moments:
    """Means and centred sums of squares and products of a table, mergeable without loss.

    Build one with `from_data`, `from_batches`, `from_folds`, `merge` or `load`; the arrays are
    read-only. Rows of zero weight count as absent, whatever numbers they contain.

    With fewer rows than columns the form is thin: the centred rows, times the square root of their
    weights, are kept instead of the m x m matrix. Merged thin moments turn dense when their rows
    are no longer fewer than their columns.

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

    _sums: Sums
    # Of moments about zero: the moments about the means that they were made of.
    _centred: "Moments | None" = None

    def __init__(self) -> None:
        raise TypeError(
            "Build moments with Moments.from_data, from_batches, from_folds, merge or load."
        )

    @classmethod
    def _make(cls, sums: Sums) -> "Moments":
        """Moments that show the given sums."""
        self = object.__new__(cls)
        self._sums = sums
        return self

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
            another kind are turned into CSR, and texts, objects and long doubles into
            doubles.
        y : array_like of shape (n,) or (n, k)
            The target, or several.
        sample_weight : array_like of shape (n,), optional
            Non-negative weights. A whole number w counts as w copies of the row, 0 as no row.
        feature_names : sequence of str, optional
            Names of the columns, no two the same; those of a frame otherwise.

        Examples
        --------
        >>> from sparsestep import Moments
        >>> moments = Moments.from_data([[1], [2], [6]], [1, 2, 3], sample_weight=[1, 2, 1])
        >>> moments.n_samples, moments.weight_sum, moments.mean_x
        (3, 4.0, array([2.75]))
        """
        return cls._of_table(Table(X, y, sample_weight, feature_names))

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

        Examples
        --------
        >>> import numpy as np
        >>> from sparsestep import Moments
        >>> rng = np.random.default_rng(0)
        >>> Moments.from_batches((rng.normal(size=(100, 3)), np.ones(100)) for _ in range(5))
        Moments(n_samples=500, n_features=3)
        """
        total, number = Accumulator(own=True), -1
        for number, batch in enumerate(batches):
            try:
                X, y, *rest = batch
                if len(rest) > 1:
                    raise ValueError("expected (X, y) or (X, y, sample_weight).")
                table = Table(X, y, rest[0] if rest else None, feature_names, zero_weights_ok=True)
                total.add(fold_sums(table)[0])
            except (TypeError, ValueError) as error:
                kind = TypeError if isinstance(error, TypeError) else ValueError
                raise kind(f"Batch {number}: {error}") from error
        if number < 0:
            raise ValueError("There are no batches, so the columns are unknown.")
        return cls._make(total.result())

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
        table = Table(X, y, sample_weight, feature_names)
        return cls._of_folds(table, *fold_ids(folds, table.n))

    @classmethod
    def _of_table(cls, table: Table) -> "Moments":
        """Moments of checked rows."""
        return cls._make(fold_sums(table)[0])

    @classmethod
    def _of_folds(cls, table: Table, fold_of_row: Index, count: int) -> "list[Moments]":
        """Moments of each of `count` folds of checked rows."""
        return [cls._make(sums) for sums in fold_sums(table, fold_of_row, count)]

    @classmethod
    def merge(cls, pieces: "Iterable[Moments]") -> "Moments":
        """Moments of all rows of one or more pieces with the same columns and shape of y.

        Folds that `read_moments` made may be some of one run, or the same of several, each once.

        Examples
        --------
        >>> from sparsestep import Moments
        >>> pieces = [Moments.from_data([[i]], [2 * i]) for i in range(5)]
        >>> Moments.merge(pieces).xtx
        array([[10.]])
        """
        sums = [_sums_of(piece) for piece in pieces]
        return cls._make(merge(sums, require_same_folds(each.runs for each in sums)))

    def __add__(self, other: "Moments") -> "Moments":
        if not isinstance(other, Moments):
            return NotImplemented
        a, b = self._sums, other._sums
        return self._make(merge([a, b], joined(a.runs, b.runs)))

    def __radd__(self, other: object) -> "Moments":
        # `sum` starts from 0.
        return self if isinstance(other, int) and other == 0 else NotImplemented

    # -- reading -----------------------------------------------------------------------------

    @property
    def n_samples(self) -> int:
        """Rows of non-zero weight."""
        return self._sums.n_samples

    @property
    def weight_sum(self) -> float:
        """Sum of the weights; `n_samples` where none were given."""
        return self._sums.weight_sum

    @property
    def n_features(self) -> int:
        """Columns of X, called m below."""
        return self._sums.m

    @property
    def feature_names(self) -> tuple[str, ...] | None:
        """Names of the columns where the data had some."""
        return self._sums.names

    @property
    def target_names(self) -> tuple[str, ...] | None:
        """Names of the targets where they are known, as to `read_moments`."""
        return self._sums.target_names

    @property
    def categories(self) -> dict[str, tuple[str, ...]]:
        """Columns of text that `read_moments` encoded, and their categories."""
        return dict(self._sums.categories)

    @property
    def runs(self) -> tuple[Run, ...]:
        """The folds of `read_moments` that these are, or were merged from; empty for all else.

        They stay with the moments, also in files, and no fold is merged with itself or with another
        fold of another run.
        """
        return self._sums.runs

    @property
    def mean_x(self) -> Array:
        """Weighted means of the columns, of shape (m,)."""
        return _read_only(self._sums.mean_x)

    @property
    def mean_y(self) -> Any:
        """Weighted mean of y, a float; of shape (k,) for a two-dimensional y."""
        mean = self._sums.mean_y
        return float(mean[0]) if self._sums.flat_y else _read_only(mean)

    @property
    def xtx(self) -> Array:
        """Centred sums of squares and products of the columns, (m, m); if thin, made on demand."""
        return _read_only(self._sums.gram)

    @property
    def xty(self) -> Array:
        """Centred sums of products of the columns with y, of shape (m,) or (m, k)."""
        xty = self._sums.xty
        return _read_only(xty[:, 0] if self._sums.flat_y else xty)

    @property
    def yty(self) -> Any:
        """Centred sum of squares of y, a float; of shape (k,) for a two-dimensional y."""
        yty = self._sums.yty
        return float(yty[0]) if self._sums.flat_y else _read_only(yty)

    @property
    def diag(self) -> Array:
        """The diagonal of `xtx`, in either form at no cost."""
        return _read_only(self._sums.diag)

    @property
    def is_thin(self) -> bool:
        """Whether the centred rows are kept instead of `xtx`."""
        return self._sums.pieces is not None

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
        if not self.is_thin:
            raise AttributeError("Dense moments keep no rows; compress() makes some.")
        rows = self._sums.kept_rows()
        return _read_only(rows.X), _read_only(rows.y[:, 0] if self._sums.flat_y else rows.y)

    def __repr__(self) -> str:
        thin = ", thin" if self.is_thin else ""
        return f"Moments(n_samples={self.n_samples}, n_features={self.n_features}{thin})"

    def target(self, t: int) -> "Moments":
        """The moments of target t, from 0, of a two-dimensional y; nothing is copied.

        Examples
        --------
        >>> from sparsestep import Moments
        >>> both = Moments.from_data([[1], [2], [4]], [[1, 0], [3, 0], [4, 9]])
        >>> both.target(1).mean_y
        3.0
        """
        sums = self._sums
        if not 0 <= t < len(sums.yty):
            raise ValueError(f"There are {len(sums.yty)} targets, from 0; got {t!r}.")
        if sums.flat_y:
            return self
        found = self._make(sums.target(t))
        found._centred = self._centred and self._centred.target(t)
        return found

    # -- fits without an intercept -----------------------------------------------------------

    def _about_zero(self) -> "Moments":
        """The same about zero, of which a fit has no intercept; `rss` has none by default."""
        if self._centred is not None:
            return self
        found = self._make(self._sums.about_zero())
        found._centred = self
        return found

    @property
    def _df_of_means(self) -> int:
        """Degrees of freedom that the means take: 1, or 0 about zero."""
        return int(self._centred is None)

    # -- computing ---------------------------------------------------------------------------

    def gram_block(self, columns: ArrayLike) -> Array:
        """The rows and columns of `xtx` that belong to some columns, given by number; in any form.

        Examples
        --------
        >>> from sparsestep import Moments
        >>> Moments.from_data([[1, 0, 2], [3, 4, 0]], [1, 2]).gram_block([0, 1])
        array([[2., 4.],
               [4., 8.]])
        """
        which = np.asarray(columns, dtype=np.intp)
        if self._sums.pieces is None:
            return self.xtx[np.ix_(which, which)]
        result = np.zeros((len(which), len(which)))
        for piece in self._sums.pieces:
            A = piece.columns(which)
            result += A.T @ A
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
        if self._centred is not None:
            return self._centred.rss(coef, 0.0 if intercept is None else intercept)
        coef = np.asarray(coef, dtype=np.float64)
        if coef.ndim not in (1, 2) or len(coef) != self.n_features:
            raise ValueError(
                f"coef has shape {coef.shape}; its first dimension must be the "
                f"{self.n_features} columns of these moments."
            )
        sums = self._sums
        k = len(sums.yty)
        if not sums.flat_y and coef.ndim == 2 and coef.shape[1] != k:
            raise ValueError(
                f"coef has {coef.shape[1]} columns but there are {k} targets; "
                "give one vector of coefficients for each target."
            )
        B = coef[:, None] if coef.ndim == 1 else coef
        if sums.pieces is None:
            with_y = np.sum(B * sums.xty, axis=0)
            value = np.maximum(sums.yty - 2.0 * with_y + np.sum(B * (sums.gram @ B), axis=0), 0.0)
        else:
            value = np.zeros(max(B.shape[1], k))
            used = np.flatnonzero(B.any(axis=1))
            few = len(used) < len(B) // 2
            inside = B[used]
            for piece in sums.pieces:
                residual = piece.y - (piece.columns(used) @ inside if few else piece.dot(B))
                value += np.einsum("ij,ij->j", residual, residual)
        if intercept is not None:
            gap = sums.mean_y - sums.mean_x @ B - np.asarray(intercept, dtype=np.float64)
            value = value + sums.weight_sum * gap**2
        return float(value[0]) if coef.ndim == 1 and sums.flat_y else value

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
        sums = self._sums
        if sums.pieces is not None:
            rows = sums.stacked_rows()
            return rows.X, rows.y[:, 0] if sums.flat_y else rows.y
        m, k = sums.xty.shape
        scale = np.sqrt(sums.diag)
        used = np.flatnonzero(scale)
        scale = scale[used]
        R = np.zeros((0, m))
        T = np.zeros((0, k))
        if len(used):
            C = sums.gram[np.ix_(used, used)] / scale / scale[:, None]
            tolerance = m * np.finfo(np.float64).eps
            factor, pivot, rank, _ = lapack.dpstrf(C, tol=tolerance, lower=0)
            pivot = pivot - 1
            upper = np.triu(factor[:rank])
            q = (sums.xty[used] / scale[:, None])[pivot[:rank]]
            T = solve_triangular(upper[:, :rank], q, trans=1)
            R = np.zeros((rank, m))
            R[:, used[pivot]] = upper * scale[pivot]
        residual = np.sqrt(np.maximum(sums.yty - np.einsum("ij,ij->j", T, T), 0.0))
        X = np.concatenate([R, np.zeros((1, m))])
        y = np.concatenate([T, residual[None]])
        return X, (y[:, 0] if sums.flat_y else y)

    # -- files -------------------------------------------------------------------------------

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the moments to a file, complete or not at all.

        Exactly this name is used, and a symbolic link followed. The format is NumPy's ``.npz``;
        thin moments are written as their dense rows. A file that is there keeps its mode; a new
        file of thin moments can be read by its owner only.

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
        moments_file.write(path, self._sums)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> "Moments":
        """Read moments from a file that `save` wrote; nothing in it is executed.

        Raises
        ------
        MomentsFileError
            If the file is damaged, is something else, or was written by a newer version; also if no
            rows can have these sums. Compressed files are refused unread.
        """
        return cls._make(moments_file.read(path))


def leave_one_out(folds: Sequence[Moments]) -> list[Moments]:
    """Training moments of every fold: for each one, the merge of all others.

    The matrices are added up from both ends, 3 sums for each fold. A fold is never subtracted from
    the total, which loses the digits of any column that varies mostly within that fold. Of folds
    that `read_moments` made, all of a run are needed.
    """
    if len(folds) < 2:
        raise ValueError(f"Leaving one fold out needs at least two folds, not {len(folds)}.")
    sums = [_sums_of(fold) for fold in folds]
    for each in sums[1:]:
        require_mergeable(sums[0], each)
    require_all_folds([each.runs for each in sums])
    others = [[*sums[:k], *sums[k + 1 :]] for k in range(len(sums))]
    grams: list[list[Array]] | list[None] = [None] * len(sums)
    if not all(map(is_thin, others)):
        before = list(accumulate((each.gram for each in sums[:-1]), np.add))
        after = list(accumulate((each.gram for each in sums[:0:-1]), np.add))[::-1]
        inner = [list(pair) for pair in zip(before, after[1:], strict=False)]
        grams = [[after[0]], *inner, [before[-1]]]

    def training(k: int) -> Moments:
        runs = require_same_folds(each.runs for each in others[k])
        # A sum of matrices from the left may be overwritten, but not the first fold's own matrix.
        return Moments._make(merge(others[k], runs, grams=grams[k], into_first=k > 1))

    return [training(k) for k in range(len(sums))]


def _sums_of(moments: Moments) -> Sums:
    """The sums of moments; an error for anything else."""
    if not isinstance(moments, Moments):
        raise TypeError(f"Only moments can be merged with moments, not {type(moments)}.")
    return moments._sums


def _read_only(array: Array) -> Array:
    """The same memory, not to be written to."""
    view = array.view()
    view.flags.writeable = False
    return view


# -- merging folds: no row is counted twice, and none forgotten ----------------------------------
#
# The moments of a fold carry its number (`Run`), merged moments the numbers of all their parts.
# Moments of unknown origin carry none, and are not checked.


def joined(a: Runs, b: Runs) -> Runs:
    """The folds of both; an error if one of them is in both."""
    found = {run.id: run for run in a}
    for run in b:
        known = found.get(run.id, replace(run, folds=frozenset()))
        if twice := known.folds & run.folds:
            shared = replace(run, folds=twice)
            raise ValueError(f"Rows would count twice: {shared} is there twice; give it once.")
        found[run.id] = replace(run, folds=known.folds | run.folds)
    return tuple(found.values())


def require_same_folds(pieces: Iterable[Runs]) -> Runs:
    """The folds of all pieces; an error unless all incomplete runs have the same fold numbers.

    The same folds of several sources are folds of the pooled rows. Different folds of different
    runs do not belong together, and if the source is the same they share rows.
    """
    pieces = [runs for runs in pieces if runs]
    parts: Runs = reduce(joined, filter(_is_partial, pieces), ())
    for run in parts[1:]:
        if (run.of, run.folds) != (parts[0].of, parts[0].folds):
            raise _different(parts[0], run)
    return reduce(joined, pieces, ())


def require_all_folds(pieces: Sequence[Runs]) -> None:
    """Raise unless the pieces are all folds of the same runs, or each a table of its own."""
    together = require_same_folds(pieces)
    if not any(map(_is_partial, pieces)):
        return
    require_complete(together)
    for runs in pieces:
        own = {run.id for run in runs}
        others = [run for run in together if run.id not in own]
        if others and not runs:
            raise ValueError(
                f"Moments that are no fold do not go with {others[0]}; give one or the other."
            )
        if others:
            raise _different(runs[0], others[0])


def require_complete(runs: Runs) -> None:
    """Raise if folds are missing."""
    for run in runs:
        if run.missing:
            first = next(fold for fold in range(run.of) if fold not in run.folds)
            more = f", and {run.missing - 1} more" if run.missing > 1 else ""
            raise ValueError(
                f"Of the {run.of} folds of {run.source}, fold {first} is missing{more}; give all "
                "folds of a run."
            )


def _is_partial(runs: Runs) -> bool:
    """Whether folds are missing."""
    return any(run.missing for run in runs)


def _different(a: Run, b: Run) -> ValueError:
    """The error for folds of different runs."""
    return ValueError(
        f"Folds of different runs do not go together: {a} (run {a.id[:8]}), and {b} (run "
        f"{b.id[:8]}); give those of one run."
    )
