"""Fitted models in plain numbers: those of many alphas, that of each target, and of all.

Nothing here needs scikit-learn. The estimators show the numbers as attributes, model files store
them.
"""

import operator
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, SupportsIndex, overload

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from sparsestep.inference.facts import Fingerprint
from sparsestep.inference.notes import FarRows, Note
from sparsestep.inference.summary import Summary, t_interval
from sparsestep.moments.table import new_rows, require_columns
from sparsestep.selection.criteria import (
    CRITERIA,
    criterion_path,
    least_criterion,
    supported,
)
from sparsestep.selection.fitting import best_fitting
from sparsestep.words import made_up_names, quoted, variables

if TYPE_CHECKING:
    from sparsestep.display import PathDisplay

Array = NDArray[np.float64]

# Number of sizes that are printed.
_LINES = 12


@dataclass(frozen=True, eq=False)
class PathPoint:
    """One model of a path."""

    index: int
    alpha: float
    coef: Array
    intercept: float
    n_nonzero: int
    rss: float


@dataclass(frozen=True, eq=False, repr=False)
class Path:
    """Coefficients along alpha, from the sparsest model to the fullest.

    Made by `sparsestep_path`, and by the estimators as ``path_``.

    Attributes
    ----------
    alphas : ndarray of shape (n_alphas,)
        Largest first, in the units of ``||y - Xb||^2``.
    coefs : ndarray of shape (n_features, n_alphas)
        Coefficients in the units of the data.
    intercepts : ndarray of shape (n_alphas,)
    n_nonzero : ndarray of shape (n_alphas,)
        Number of variables kept.
    rss : ndarray of shape (n_alphas,)
        Residual sum of squares, weighted by the sample weights.
    n_samples : float
        Sum of the sample weights: the number of rows where none were given.
    feature_names : tuple of str, or None
    missing_sizes : tuple of int
        With ``alphas="sizes"``, the model sizes that no alpha was found to give, as where two
        variables enter together. With more columns than rows the search ends at
        `supported_size`: larger models that it meets on the way are on the path, and the gaps
        between them are not listed.
    by_size : bool
        Whether the alphas are those of sizes (``alphas="sizes"``). Such a path is drawn over size:
        between two of its alphas there may be models that it does not have.
    supported_size : int, or None
        With more columns m than rows, ``n / (log m log log n)``, n being `n_samples`: about as many
        variables as the rows can support. Information criteria choose among models of no more.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from sparsestep import sparsestep_path
    >>> X, y = load_diabetes(return_X_y=True, as_frame=True)
    >>> path = sparsestep_path(X, y, alphas="sizes")
    >>> path.n_nonzero
    array([ 0,  1,  2,  3,  4,  5,  6,  7,  8,  9, 10])
    >>> best = path.select("bic")
    >>> [path.feature_names[j] for j in best.coef.nonzero()[0]]
    ['sex', 'bmi', 'bp', 's3', 's5']
    """

    alphas: Array
    coefs: Array
    intercepts: Array
    n_nonzero: NDArray[np.intp]
    rss: Array
    n_samples: float
    feature_names: tuple[str, ...] | None = None
    missing_sizes: tuple[int, ...] = ()
    by_size: bool = False
    supported_size: int | None = None

    def __repr__(self) -> str:
        m, n_alphas = self.coefs.shape
        kept = f"{self.n_nonzero.min()} to {self.n_nonzero.max()}" if n_alphas else "none"
        return f"Path(n_features={m}, n_alphas={n_alphas}, n_nonzero={kept})"

    def __str__(self) -> str:
        first = np.unique(self.n_nonzero, return_index=True)[1]
        rows = [("variables", "alpha", "rss")]
        for i in first[:_LINES]:
            rows.append((f"{self.n_nonzero[i]}", f"{self.alphas[i]:.5g}", f"{self.rss[i]:.5g}"))
        lines = ["  ".join(f"{cell:>11}" for cell in row)[2:] for row in rows]
        if len(first) > _LINES:
            lines.append(f"and {len(first) - _LINES} more, to {variables(self.n_nonzero.max())}")
        return "\n".join([repr(self), *lines])

    @overload
    def __getitem__(self, index: SupportsIndex) -> PathPoint: ...

    @overload
    def __getitem__(self, index: slice) -> list[PathPoint]: ...

    def __getitem__(self, index: SupportsIndex | slice) -> PathPoint | list[PathPoint]:
        if isinstance(index, slice):
            return [self[i] for i in range(len(self))[index]]
        try:
            index = range(len(self))[index]
        except IndexError:
            raise IndexError(f"The path has {len(self)} models, from 0; got {index!r}.") from None
        except TypeError:
            raise TypeError(f"A path takes whole numbers and slices; got {index!r}.") from None
        return PathPoint(
            index,
            float(self.alphas[index]),
            self.coefs[:, index],
            float(self.intercepts[index]),
            int(self.n_nonzero[index]),
            float(self.rss[index]),
        )

    def __len__(self) -> int:
        return len(self.alphas)

    def criterion(self, name: str) -> Array:
        """Information criterion of each model.

        Parameters
        ----------
        name : {"aic", "bic", "ebic", "gic"}

        Returns
        -------
        ndarray of shape (n_alphas,)
            The smallest is the best.
        """
        return criterion_path(name, self.rss, self.n_nonzero, self.n_samples, len(self.coefs))

    def select(self, by: str | int) -> PathPoint:
        """One model of the path.

        Parameters
        ----------
        by : {"aic", "bic", "ebic", "gic"} or int
            An information criterion, or the number of variables: the best-fitting model of exactly
            that size on the path. ``SparseStep(n_nonzero=by)`` searches beyond the path, by swaps.

        Returns
        -------
        PathPoint
            With ``index``, ``alpha``, ``coef``, ``intercept``, ``n_nonzero`` and ``rss``.

        Examples
        --------
        >>> import numpy as np
        >>> from sparsestep import sparsestep_path
        >>> rng = np.random.default_rng(0)
        >>> X = rng.standard_normal((100, 4))
        >>> path = sparsestep_path(X, X @ [2.0, 0.0, -1.0, 0.0] + rng.standard_normal(100))
        >>> path.select(2).coef.round(2)
        array([ 1.93,  0.  , -0.95,  0.  ])
        """
        if isinstance(by, str) and by in CRITERIA:
            among = supported(self.n_nonzero, self.supported_size)
            return self[least_criterion(self.criterion(by), among)]
        try:
            size = operator.index(by)  # type: ignore[arg-type]
        except TypeError:
            raise ValueError(
                f"select takes one of {', '.join(CRITERIA)} or a number of variables; got {by!r}."
            ) from None
        found = np.flatnonzero(self.n_nonzero == size)
        if not len(found):
            advice = f" SparseStep(n_nonzero={size}) looks for one."
            raise ValueError(
                f"No model of this path has exactly {variables(size)}; "
                f"{_nearest_sizes(size, self.n_nonzero)}." + advice * (0 <= size <= len(self.coefs))
            )
        return self[best_fitting(self.rss, found)]

    def predict(self, X: Any) -> Array:
        """Predictions of every model of the path.

        Parameters
        ----------
        X : array-like, sparse matrix or frame of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples, n_alphas)
            Those of ``path.select(by)`` are in column ``path.select(by).index``.

        Examples
        --------
        >>> from sklearn.datasets import load_diabetes
        >>> from sparsestep import sparsestep_path
        >>> X, y = load_diabetes(return_X_y=True)
        >>> path = sparsestep_path(X[:300], y[:300])
        >>> errors = ((y[300:, None] - path.predict(X[300:])) ** 2).mean(axis=0)
        >>> errors.shape, int(path.n_nonzero[errors.argmin()])
        ((101,), 5)
        """
        rows, labels = new_rows(X)
        require_columns(labels, self.feature_names)
        if rows.shape[1] != len(self.coefs):
            raise ValueError(
                f"X has {rows.shape[1]} columns, but the fit was to {len(self.coefs)}."
            )
        return np.asarray(rows @ self.coefs + self.intercepts)

    def to_frame(self) -> Any:
        """The path as a pandas DataFrame.

        Returns
        -------
        DataFrame
            A row for each alpha: ``alpha``, ``n_nonzero``, ``rss``, ``intercept``, and a column for
            each variable, by its name or as ``x0``, ``x1`` and so on.

        Examples
        --------
        >>> from sklearn.datasets import load_diabetes
        >>> from sparsestep import sparsestep_path
        >>> X, y = load_diabetes(return_X_y=True, as_frame=True)
        >>> frame = sparsestep_path(X, y, alphas=[5e5, 1e5]).to_frame()
        >>> frame[["alpha", "n_nonzero", "bmi", "s5"]].round(1)
              alpha  n_nonzero    bmi     s5
        0  500000.0          1  949.4    0.0
        1  100000.0          2  675.1  614.9
        """
        try:
            import pandas as pd
        except ImportError:
            raise ImportError("to_frame needs pandas: pip install pandas") from None

        names = self.feature_names or made_up_names(len(self.coefs))
        facts = {
            "alpha": self.alphas,
            "n_nonzero": self.n_nonzero,
            "rss": self.rss,
            "intercept": self.intercepts,
        }
        # Joined, so that a variable may be called alpha too.
        return pd.concat([pd.DataFrame(facts), pd.DataFrame(self.coefs.T, columns=names)], axis=1)

    def plot(self, **options: Any) -> "PathDisplay":
        """Draw the coefficients along alpha or size; options go to `PathDisplay.from_path`."""
        from sparsestep.display import PathDisplay

        return PathDisplay.from_path(self, **options)


def _nearest_sizes(size: int, sizes: NDArray[np.intp]) -> str:
    """The model sizes next to one that there is none of, in words."""
    near = [str(s.max()) for s in (sizes[sizes < size],) if len(s)]
    near += [str(s.min()) for s in (sizes[sizes > size],) if len(s)]
    return f"the nearest size{'s are' if len(near) > 1 else ' is'} {' and '.join(near)}"


@dataclass(frozen=True)
class CVResult:
    """Cross-validation errors of all alphas of a path; NaN for what a single fold cannot tell."""

    mse: Array  # (n_alphas, n_folds)
    mean: Array  # (n_alphas,), as the next two
    se: Array  # standard error of `mean`
    paired_se: Array  # standard error of the difference to the smallest error
    alpha_min: float  # the alphas of the rules; with a single fold they are the same
    alpha_paired: float
    alpha_1se: float
    of_choice: float  # error of the rule, its choice of alpha included
    scheme: str  # how the rows were split: see `TrainAndTest`
    splitter: str | None
    shrinkage: float | None = None  # penalty of the ridge regressions on the variables kept


@dataclass(frozen=True)
class TargetModel:
    """The model of one target."""

    coef: Array  # (m,)
    intercept: float
    alpha: float
    how: str  # how alpha was chosen, in words
    facts: dict[str, str]  # lines of the summary on that choice
    standard_error: Array  # (m,); NaN for a variable that is not kept
    free: float  # degrees of freedom
    r2: float  # about zero if there is no intercept
    path: Path | None = None
    cv: CVResult | None = None
    criterion: Array | None = None  # (n_alphas,)
    inclusion: Array | None = None  # (m,); of an average: weight of the models with each variable


@dataclass(frozen=True)
class Fitted:
    """The models of all targets, the fingerprint of their data, and the notes on both."""

    targets: tuple[TargetModel, ...]
    target_names: tuple[str, ...]
    fingerprint: Fingerprint
    n_iter: int
    fit_intercept: bool
    notes: tuple[Note, ...]
    # Columns of text among the data: their categories, and the names of the features that are
    # indicators of the last of these.
    one_hot: dict[str, tuple[list[str], list[str]]]

    def far_rows(self, X: Any, names: Sequence[str]) -> FarRows:
        """The rows that lie far outside those fitted, in a column that a model keeps."""
        known = self.fingerprint
        columns = np.flatnonzero(~np.isnan(known.reach))
        far = FarRows(
            known.mean[columns],
            known.deviation[columns],
            known.reach[columns],
            [names[int(j)] for j in columns],
        )
        far.add((X.tocsr() if sp.issparse(X) else X)[:, columns])
        return far

    def target_index(self, target: int | str) -> int:
        """The index of a target, given by its number or name."""
        count = len(self.targets)
        if isinstance(target, str):
            if self.target_names.count(target) == 1:
                return self.target_names.index(target)
            known = quoted(self.target_names, 5)
            raise ValueError(f"target {target!r} is not the name of one of {known}.")
        if isinstance(target, bool) or not isinstance(target, int | np.integer):
            raise ValueError(f"target must be the number or name of a target; got {target!r}.")
        if not 0 <= target < count:
            raise ValueError(f"target must lie between 0 and {count - 1}; got {target!r}.")
        return int(target)

    def summary(self, names: Sequence[str], *, level: float, target: int | str) -> Summary:
        """The model of one target as a table; `names` are those of the columns of X."""
        which = self.target_index(target)
        model = self.targets[which]
        kept = np.flatnonzero(model.coef)
        with np.errstate(over="ignore"):
            low, high = t_interval(model.coef, model.standard_error, model.free, level)
            effect = np.abs(model.coef[kept]) * self.fingerprint.deviation[kept]
        kept = kept[np.argsort(-effect, kind="stable")]
        target_name = (
            f"{self.target_names[which]} ({which + 1} of {len(self.targets)}; target= chooses)"
        )
        r2 = "R2" if self.fit_intercept else "R2 about zero"
        n, weight = self.fingerprint.rows, self.fingerprint.weight_sum
        rows = f"{n} rows" + (f" of weight {weight:.9g} in all" if weight != n else "")
        facts = {
            **({"target": target_name} if len(self.targets) > 1 else {}),
            "variables kept": f"{len(kept)} of {len(model.coef)}",
            "alpha": f"{model.alpha:.5g} ({model.how})",
            **model.facts,
            r2: f"{model.r2:z.4f} on {rows}",
            "intercept": f"{model.intercept:.5g}",
        }
        if len(kept) and model.free <= 0:
            facts["no std. errors"] = (
                f"{rows} are too few for {variables(len(kept))}; a weight of k counts as k rows"
            )
        elif model.inclusion is not None:
            facts["no std. errors"] = "the coefficients are averages over models"
        elif model.cv is not None and model.cv.shrinkage:
            facts["no std. errors"] = "the coefficients are shrunk"
        return Summary(
            facts,
            [names[int(j)] for j in kept],
            model.coef[kept],
            model.standard_error[kept],
            low[kept],
            high[kept],
            level,
            [
                note.text(names, self.target_names)
                for note in self.notes
                if getattr(note, "target", which) == which
            ],
            None if model.inclusion is None else model.inclusion[kept],
        )
