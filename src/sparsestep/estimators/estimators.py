"""SparseStep, SparseStepCV, SparseStepIC: scikit-learn's interface to the fits and the choices."""

import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import KW_ONLY, dataclass, replace
from numbers import Integral, Real
from operator import attrgetter
from typing import Any, Self, TypeVar

import numpy as np
from joblib import effective_n_jobs
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, MultiOutputMixin, RegressorMixin
from sklearn.model_selection import KFold, check_cv
from sklearn.utils.extmath import safe_sparse_dot
from sklearn.utils.validation import check_is_fitted, validate_data

from sparsestep.errors import FarRowsWarning, warn
from sparsestep.estimators.choosing import (
    by_alpha,
    by_criterion,
    by_size,
    by_validation,
    fit_path,
)
from sparsestep.estimators.fitted import Fitted, Path
from sparsestep.inference.summary import Summary, interval_level
from sparsestep.moments.moments import Moments
from sparsestep.moments.table import (
    Table,
    in_one_piece,
    is_dask,
    is_pandas,
    new_rows,
    require_columns,
    text_names,
    whole_number,
)
from sparsestep.selection.criteria import CRITERIA
from sparsestep.selection.cross_validation import GIVEN_FOLDS, TrainAndTest
from sparsestep.selection.fitting import alphas_wanted, one_alpha
from sparsestep.solvers.scaled_problem import Settings, penalty_factors
from sparsestep.solvers.schedule import Schedule
from sparsestep.sources.dask import moments as dask_moments
from sparsestep.sources.dask import predict as dask_predict
from sparsestep.threads import one_blas_thread, task_threads
from sparsestep.words import made_up_names

Array = NDArray[np.float64]
_T = TypeVar("_T")

# Attributes of a fitted estimator, and where its models have them.
_SHOWN = {
    "coef_": attrgetter("coef"),
    "intercept_": attrgetter("intercept"),
    "alpha_": attrgetter("alpha"),
    "alphas_": attrgetter("path.alphas"),
    "mse_path_": attrgetter("cv.mse"),
    "cv_mean_": attrgetter("cv.mean"),
    "cv_se_": attrgetter("cv.se"),
    "cv_paired_se_": attrgetter("cv.paired_se"),
    "alpha_min_": attrgetter("cv.alpha_min"),
    "alpha_paired_": attrgetter("cv.alpha_paired"),
    "alpha_1se_": attrgetter("cv.alpha_1se"),
    "shrinkage_": attrgetter("cv.shrinkage"),
    "inclusion_": attrgetter("inclusion"),
    "criterion_path_": attrgetter("criterion"),
}

# How often a long fit reports its progress, if `verbose`.
_SECONDS_BETWEEN_LINES = 2.0

_SETTINGS = """fit_intercept : bool, default=True
        Whether the model has an intercept. Without one, no mean is subtracted.
    standardize : bool, default=True
        Divide the columns and the target by their standard deviations first (and alpha by the
        target's variance), and map the coefficients back, so that units do not matter. False is the
        paper's loop on the numbers as given. In cross-validation each fold has its own scales.
    penalty_factor : array-like of shape (n_features,), or dict of str to float, default=None
        Multipliers of alpha, in the order of the columns: 0 keeps a variable always, ``inf`` never.
        A column at 0 that is a combination of earlier columns at 0, as the last of a set of
        indicators, is left out. A dict gives multipliers by name, 1 for a column that it lacks. So
        does a pandas Series whose labels are names; it must have all columns.
    gamma_0, gamma_stop, gamma_step : float, default=1e6, 1e-8, 2.0
        The penalty's gamma starts at `gamma_0` and is divided by `gamma_step` while it
        exceeds `gamma_stop`.
    t_max : int, default=2
        Majorization steps at each gamma.
    epsilon : float, default=1e-7
        Smaller coefficients are set to zero at the end, in standardized units if `standardize`.
    polish : {None, "swap"}, default=None
        "swap" adds, drops and swaps variables after the fit while the exact objective
        ``||y - Xb||^2 + alpha * (number kept)`` falls; it takes two to fifteen times as long
        as all fits together. None is the paper's method. On a path of sizes it swaps only.
    solver : {"auto", "reference"}, default="auto"
        "reference" runs Algorithm 1 literally: the same answer, one to three orders of magnitude
        slower. With more columns than rows "auto" runs the loop on a working set of columns,
        chosen by forward selection and checked against all others: none of them would enter.
        "reference" is then the loop on all columns, which keeps other variables and is the poorer
        optimizer."""

_ALPHAS = """alphas : int or array-like, default=101
        How many alphas to try, spaced evenly in the logarithm between one that keeps no variable
        and one that keeps all (with more columns m than rows n: about n / (log m log log n), as
        many as the rows can support); or the alphas themselves, in the units of ``||y - Xb||^2``
        (the scale of scikit-learn's ``Ridge``): the paper's lambdas."""

_ATTRIBUTES = """coef_ : ndarray of shape (n_features,) or (n_targets, n_features)
        Coefficients in the units of the data; zero for a variable that is not kept.
    intercept_ : float or ndarray of shape (n_targets,)
        The intercept.
    alpha_ : float or ndarray of shape (n_targets,)
        The alpha of the model.
    n_iter_ : int
        Majorization steps taken.
    n_features_in_ : int
        Number of columns seen in `fit`.
    feature_names_in_ : ndarray of shape (n_features,)
        Their names, if they had some."""

_SELECTING = """As a step that selects columns: ``SelectFromModel({name}(...), threshold=1e-300)``
    takes all that are kept; its default threshold is the mean size of the coefficients."""


def _documented(cls: type[_T]) -> type[_T]:
    """Put the texts that the estimators share into a docstring."""
    if cls.__doc__ is None:  # python -OO
        return cls
    for mark, text in (
        ("{settings}", _SETTINGS),
        ("{alphas}", _ALPHAS),
        ("{attributes}", _ATTRIBUTES),
        ("{selecting}", _SELECTING.replace("{name}", cls.__name__)),
    ):
        cls.__doc__ = cls.__doc__.replace(mark, text)
    return cls


@dataclass(eq=False, repr=False)
class _SparseStepBase(MultiOutputMixin, RegressorMixin, BaseEstimator):  # type: ignore[misc]
    """The settings, validation, moments, prediction and summary that the estimators share.

    The fields are the parameters of the constructor, which scikit-learn finds by its signature.
    """

    _: KW_ONLY
    fit_intercept: bool = True
    standardize: bool = True
    penalty_factor: Any = None
    gamma_0: float = 1e6
    gamma_stop: float = 1e-8
    gamma_step: float = 2.0
    t_max: int = 2
    epsilon: float = 1e-7
    polish: str | None = None
    solver: str = "auto"

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit to rows.

        Parameters
        ----------
        X : array-like, sparse matrix or frame of shape (n_samples, n_features)
            Predictors. Sparse input is not made dense unless it has fewer rows than columns; a Dask
            array or frame is summed where it is.
        y : array-like of shape (n_samples,) or (n_samples, n_targets)
            Targets; each column gets a model of its own. The names of a frame or series are kept.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the rows. A weight of k equals k copies of the row.

        Returns
        -------
        self
        """
        return self._choose(*self._read(X, y, sample_weight))

    def fit_moments(self, moments: Any) -> Self:
        """Fit to moments: the same model as from the rows they came from.

        Parameters
        ----------
        moments : Moments

        Returns
        -------
        self
        """
        self._adopt(moments)
        return self._choose(moments)

    def _choose(self, data: Any, rows: Table | None = None) -> Self:
        """Fit, choose among the fits, and set the attributes of the choice."""
        # Coefficients may underflow on their way to zero, even if the user told NumPy to raise.
        with np.errstate(under="ignore"), one_blas_thread():
            self._show(self._chosen(data, rows))
        return self

    def _chosen(self, data: Any, rows: Table | None) -> Fitted:
        """The choice among fits to `Moments`, or to `TrainAndTest`, and to their rows if given."""
        raise NotImplementedError

    def predict(self, X: Any) -> Any:
        """Predicted targets of new rows.

        Parameters
        ----------
        X : array-like, sparse matrix or frame of shape (n_samples, n_features)
            A Dask array or frame gives a Dask collection, computed when it is asked for. If columns
            of text were encoded by `read_moments` or ``sparsestep fit --one-hot``, a frame may hold
            the texts instead.

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_targets)

        Warns
        -----
        FarRowsWarning
            If rows lie far outside those fitted.
        """
        check_is_fitted(self)
        if is_dask(X):
            several = np.ndim(self.coef_) == 2
            return dask_predict(self, X, self._fitted.target_names if several else None)
        X = self._rows(X)
        far = self._fitted.far_rows(X, self._all_names())
        if far.rows:
            warn(FarRowsWarning(far.text(), far.rows))
        return np.asarray(safe_sparse_dot(X, self.coef_.T) + self.intercept_)

    def summary(self, *, level: float = 0.95, target: int | str = 0) -> Summary:
        """The model as a table: variables kept, coefficients, standard errors, intervals.

        Parameters
        ----------
        level : float, default=0.95
            Level of the intervals. They hold for the selected variables as if these had been chosen
            beforehand.
        target : int or str, default=0
            Which target, if there are several: its number, from 0, or its name.

        Returns
        -------
        Summary
            Prints as text, shows as HTML in a notebook; ``to_frame()`` gives a pandas frame.
        """
        check_is_fitted(self)
        names, level = self._all_names(), interval_level(level)
        return self._fitted.summary(names, level=level, target=target)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_fitted")

    # -- shared steps ------------------------------------------------------------------------

    def _forget(self) -> None:
        """Drop the model of an earlier fit, and the attributes that only some rules set."""
        for name in ("_fitted", "inclusion_", "shrinkage_"):
            self.__dict__.pop(name, None)

    def _read(self, X: Any, y: Any, sample_weight: Any) -> tuple[Moments, Table | None]:
        """The moments of X, y and weights, checked, and the rows themselves if in memory."""
        if is_dask(X):
            moments: Any = dask_moments(X, y, sample_weight)
            self._adopt(moments)
            return moments, None
        table = self._table(X, y, sample_weight)
        return Moments._of_table(table), table

    def _table(self, X: Any, y: Any, sample_weight: Any) -> Table:
        """X, y and weights, checked; stores the number and names of the columns."""
        self._forget()
        table = Table(X, y, sample_weight)
        # The rows are read more than once, and the columns of a frame are converted each time.
        table.X = in_one_piece(table.X)
        self._note_columns((table.n_active, table.m), table.names, table.flat_y)
        return table

    def _rows(self, X: Any) -> Any:
        """New rows checked against those of `fit`, columns of text encoded as there."""
        texts = self._fitted.one_hot
        if texts and not texts.keys().isdisjoint(text_names(X) or ()):
            from sparsestep.sources.one_hot import encoded_table

            kept = np.flatnonzero(np.atleast_2d(self.coef_).any(axis=0))
            known = self._all_names()
            X = encoded_table(X, texts, known, {known[j] for j in kept})
        rows, labels = new_rows(X)
        fitted = self._names()
        if is_pandas(X) or labels is None or fitted is None:
            table = X if is_pandas(X) else rows
            validate_data(self, table, reset=False, skip_check_array=True)
        else:
            require_columns(labels, fitted)
        return rows

    def _adopt(self, moments: Moments) -> None:
        """Check moments, and store the number and names of their columns."""
        if not isinstance(moments, Moments):
            raise TypeError(
                f"fit_moments takes Moments; got {type(moments).__name__}. "
                "Several become one by Moments.merge."
            )
        self._forget()
        size = moments.n_samples, moments.n_features
        self._note_columns(size, moments.feature_names, np.ndim(moments.mean_y) == 0)

    def _note_columns(
        self, shape: tuple[int, int], names: tuple[str, ...] | None, flat_y: bool
    ) -> None:
        """Store the number and names of the columns, if there is enough data for a fit."""
        n, m = shape
        if n < 2:
            raise ValueError(
                f"A fit needs at least 2 rows; X has {n} sample(s), rows of weight 0 not counted."
            )
        if not m:
            # The words are those that scikit-learn's checks of estimators look for.
            raise ValueError(
                f"X has 0 feature(s) (shape={shape}) while a minimum of 1 is required."
            )
        self.n_features_in_ = m
        self.__dict__.pop("feature_names_in_", None)
        if names is not None:
            self.feature_names_in_ = np.array(names, dtype=object)
        self._flat_y = flat_y

    def _names(self) -> list[str] | None:
        """Names of the columns, if they had some."""
        names = getattr(self, "feature_names_in_", None)
        return None if names is None else [str(name) for name in names]

    def _all_names(self) -> list[str]:
        """Names of the columns, made up if they had none."""
        return self._names() or made_up_names(self.n_features_in_)

    def _settings(self, n_jobs: Any = None) -> Settings:
        """The parameters, checked."""
        if self.solver not in ("auto", "reference"):
            raise ValueError(f"solver must be 'auto' or 'reference'; got {self.solver!r}.")
        if self.polish not in (None, "swap"):
            raise ValueError(f"polish must be None or 'swap'; got {self.polish!r}.")
        for name in ("fit_intercept", "standardize"):
            if not isinstance(getattr(self, name), bool | np.bool_):
                raise ValueError(f"{name} must be True or False; got {getattr(self, name)!r}.")
        if n_jobs is not None and (not isinstance(n_jobs, Integral) or n_jobs == 0):
            raise ValueError(f"n_jobs must be None or a whole number but 0; got {n_jobs!r}.")
        for name in ("gamma_0", "gamma_stop", "gamma_step", "epsilon"):
            if not isinstance(getattr(self, name), Real):
                raise ValueError(f"{name} must be a number; got {getattr(self, name)!r}.")
        return Settings(
            schedule=Schedule(
                gamma_0=float(self.gamma_0),
                gamma_stop=float(self.gamma_stop),
                gamma_step=float(self.gamma_step),
                t_max=whole_number("t_max", self.t_max, least=1),
                epsilon=float(self.epsilon),
            ),
            fit_intercept=bool(self.fit_intercept),
            standardize=bool(self.standardize),
            penalty_factor=self._factors(),
            polish=self.polish,
            solver=self.solver,
            n_jobs=task_threads() if n_jobs is None else effective_n_jobs(n_jobs),
        )

    def _factors(self) -> Array | None:
        """The parameter `penalty_factor` in the order of the columns, checked."""
        return penalty_factors(self.penalty_factor, self.n_features_in_, self._names())

    def _show(self, fitted: Fitted) -> None:
        """Set the attributes of a fitted model."""
        self._fitted, self.n_iter_ = fitted, fitted.n_iter
        paths = [target.path for target in fitted.targets]
        if paths[0] is not None:
            self.path_ = paths[0] if self._flat_y else paths
        for attribute, get in _SHOWN.items():
            with suppress(AttributeError):  # there is no path, or no cross-validation
                values = [get(target) for target in fitted.targets]
                if values[0] is not None:
                    setattr(self, attribute, self._one_or_all(values))

    def _one_or_all(self, values: Any) -> Any:
        """The value of the only target, or those of all as an array."""
        if not self._flat_y:
            return np.array(values)
        return values[0] if np.ndim(values[0]) else float(values[0])


@_documented
@dataclass(eq=False, repr=False)
class SparseStep(_SparseStepBase):
    """Sparse linear regression without shrinkage, at one alpha or with a given number of variables.

    Minimizes ``||y - Xb||^2 + alpha * (number of non-zero b)`` approximately, by the SparseStep
    algorithm of van den Burg, Groenen and Alfons (2017). The coefficients kept are those of least
    squares on the variables kept.

    Parameters
    ----------
    alpha : float, default=1.0
        Strength of the penalty, in the units of ``||y - Xb||^2`` (the scale of scikit-learn's
        ``Ridge``): the paper's lambda.
    n_nonzero : int, default=None
        If given, the model has exactly this number of variables: the best-fitting one found by
        swaps, which start from the model of an alpha that keeps as many (or nearly as many), and
        from forward selection. `alpha_` is that alpha; `alpha` and `polish` do not matter then.
    {settings}

    Attributes
    ----------
    {attributes}

    See Also
    --------
    SparseStepCV : Alpha by cross-validation.
    SparseStepIC : Alpha by an information criterion.

    Notes
    -----
    {selecting}

    Examples
    --------
    >>> import numpy as np
    >>> from sparsestep import SparseStep
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((200, 6))
    >>> y = 3.0 + X @ [2.0, 0.0, -1.0, 0.0, 0.0, 0.0] + 0.5 * rng.standard_normal(200)
    >>> model = SparseStep(alpha=5.0).fit(X, y)
    >>> model.coef_.round(2)
    array([ 1.99,  0.  , -0.98,  0.  ,  0.  ,  0.  ])
    >>> SparseStep(n_nonzero=1).fit(X, y).coef_.round(1)
    array([2., 0., 0., 0., 0., 0.])
    """

    alpha: float = 1.0
    _: KW_ONLY
    n_nonzero: int | None = None

    def _chosen(self, moments: Moments, rows: Table | None) -> Fitted:
        settings = self._settings()
        if self.n_nonzero is None:
            return by_alpha(moments, one_alpha(self.alpha), settings, rows)
        return by_size(moments, whole_number("n_nonzero", self.n_nonzero, least=0), settings, rows)


@_documented
@dataclass(eq=False, repr=False)
class SparseStepCV(_SparseStepBase):
    """Sparse linear regression without shrinkage, alpha chosen by cross-validation.

    The rows are read once: all alphas on all folds are fitted from the folds' moments.

    Parameters
    ----------
    {alphas}
    cv : int, splitter or iterable of (train, test), default=10
        Any of scikit-learn's ways to split. A number means as many contiguous folds; given splits
        are pairs of row numbers, or of one True or False for each row.
    rule : {"min", "paired", "1se", "average"}, default="min"
        "min" takes the smallest cross-validation error; "paired" the sparsest model whose error
        exceeds it by no more than half the standard error of this difference. "average" is the
        average of all models, weighted by ``error ** (-n / 3)``; it keeps the variables whose
        models have more than half of the weight, and regresses the effect of the others on them.
        "1se" takes the sparsest model within one standard error of the smallest error. Most of that
        standard error is noise that all alphas share: with many rows the rule leaves out variables
        that matter beyond doubt. "paired" and "1se" need at least two splits.
    shrink : {None, "cv"}, default=None
        "cv" shrinks the coefficients of the variables kept, by ridge regression whose penalty is
        chosen by cross-validation too: for prediction, above all of noisy targets.
    n_jobs : int, default=None
        Threads that share the folds, as in joblib: -1 is all cores. None is as many as NumPy's
        linear algebra uses. The answer does not depend on it.
    verbose : int, default=0
        If not 0, print what is tried and chosen, and during a long fit how many models are done.
    {settings}

    Attributes
    ----------
    {attributes}
    alphas_ : ndarray of shape (n_alphas,) or (n_targets, n_alphas)
        The alphas tried, largest first; each target has its own.
    mse_path_ : ndarray of shape (n_alphas, n_folds) or (n_targets, n_alphas, n_folds)
        Mean squared error of each alpha on each fold.
    cv_mean_, cv_se_ : ndarrays of shape (n_alphas,) or (n_targets, n_alphas)
        Cross-validation error of each alpha, folds weighted by their size, and its standard error,
        for which only disjoint folds count; NaN for a single split.
    cv_paired_se_ : ndarray of shape (n_alphas,) or (n_targets, n_alphas)
        Standard error of each error's difference to the smallest.
    alpha_min_, alpha_paired_, alpha_1se_ : float or ndarray of shape (n_targets,)
        The alphas of the rules; the same for a single split. That of "average" is `alpha_min_`,
        where the weight is largest.
    path_ : Path or list of Path
        The models of all alphas on all rows, shrunk if `shrink`.
    inclusion_ : ndarray of shape (n_features,) or (n_targets, n_features)
        With "average": the weight of the models that include each variable, from 0 to 1.
    shrinkage_ : float or ndarray of shape (n_targets,)
        With `shrink`: the penalty of the ridge regressions, as a share of each column's sum of
        squares; 0 where none was best.

    Notes
    -----
    {selecting}

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from sparsestep import SparseStepCV
    >>> X, y = load_diabetes(return_X_y=True, as_frame=True)
    >>> model = SparseStepCV(rule="1se").fit(X, y)
    >>> print(model.summary())
    variables kept  3 of 10
    alpha           72307 (10-fold cross-validation, 1se)
    CV error        3115 +- 222.9
    R2              0.4801 on 442 rows
    intercept       152.13
    <BLANKLINE>
    variable  coefficient  std. error   2.5 %  97.5 %
    bmi            603.08      64.677  475.96  730.19
    s5             543.87      64.619  416.87  670.87
    bp             262.27      62.962  138.53  386.02
    <BLANKLINE>
    Intervals hold for this set of variables as if it had been chosen beforehand.
    """

    alphas: Any = 101
    _: KW_ONLY
    cv: Any = 10
    rule: str = "min"
    shrink: str | None = None
    n_jobs: int | None = None
    verbose: int = 0

    def fit(self, X: Any, y: Any, sample_weight: Any = None, *, groups: Any = None) -> Self:
        """Fit to rows.

        Parameters
        ----------
        X, y, sample_weight
            As in `SparseStep.fit`. Each column of y gets an alpha of its own; the weights count in
            the fits and in the errors.
        groups : array-like of shape (n_samples,), default=None
            Groups of the rows, for splitters that keep groups together.

        Returns
        -------
        self
        """
        if is_dask(X):
            folds = self._dask_folds(groups)
            return self.fit_moments(dask_moments(X, y, sample_weight, folds=folds))
        table = self._table(X, y, sample_weight)
        splits = self._splits(table, groups)
        return self._choose(TrainAndTest.of_rows(table, splits, self._splitter()), table)

    def fit_moments(self, moments: Any) -> Self:
        """Fit to the moments of folds: the same model as from the rows they came from.

        Parameters
        ----------
        moments : sequence of Moments
            One for each fold.

        Returns
        -------
        self
        """
        if isinstance(moments, Moments):
            raise TypeError("Cross-validation needs the moments of each fold: give a list of them.")
        parts = TrainAndTest.of_folds(list(moments), GIVEN_FOLDS)
        self._adopt(parts.whole)
        return self._choose(parts)

    def _dask_folds(self, groups: Any) -> int:
        """The number of folds; rows on many machines are dealt out at random, not by a splitter."""
        if groups is not None or not isinstance(self.cv, Integral):
            raise ValueError(
                "On Dask collections cv must be a number of folds, and groups are not supported; "
                "make the folds' moments yourself and call fit_moments for anything else."
            )
        return int(self.cv)

    def _splits(self, table: Table, groups: Any) -> list[Any] | int:
        """The splits of `cv`: given ones as they are, and the number of contiguous folds."""
        if isinstance(self.cv, Integral) and self.cv > table.n:
            raise ValueError(
                f"cv={self.cv} folds need as many rows; there are {table.n}: lower cv."
            )
        if isinstance(self.cv, Iterable) and not hasattr(self.cv, "split"):
            return list(self.cv)
        splitter = check_cv(self.cv)
        if type(splitter) is KFold and not splitter.shuffle and splitter.n_splits <= table.n:
            return int(splitter.n_splits)
        if groups is None and _wants_groups(splitter):
            raise ValueError(
                f"{type(self.cv).__name__} keeps groups of rows together; say which rows are "
                "a group by fit(X, y, groups=...)."
            )
        return list(splitter.split(table.X, table.target, groups))

    def _splitter(self) -> str | None:
        """What made the splits, if not the order of the rows alone."""
        if self.cv is None or isinstance(self.cv, Integral):
            return None
        if not hasattr(self.cv, "split"):
            return "a list of splits, given"
        # The same for equal splitters, and short enough for a sentence.
        text = " ".join(repr(self.cv).split())
        return type(self.cv).__name__ if " at 0x" in text or len(text) > 200 else text

    def _chosen(self, parts: TrainAndTest, rows: Table | None) -> Fitted:
        alphas, settings = alphas_wanted(self.alphas), self._settings(self.n_jobs)
        if self.verbose:
            settings = replace(settings, watch=_now_and_then(self._say))
        return by_validation(parts, alphas, self.rule, self.shrink, settings, self._say, rows)

    def _say(self, message: str) -> None:
        """Print a line if `verbose`."""
        if self.verbose:
            print(f"[SparseStepCV] {message}")


def _wants_groups(splitter: Any) -> bool:
    """Whether a splitter of scikit-learn asks for the groups of the rows."""
    routing = getattr(splitter, "get_metadata_routing", None)
    return routing is not None and routing().split.requests.get("groups") is True


def _now_and_then(say: Callable[[str], None]) -> Callable[[int, int], None]:
    """Say how many models are fitted, every other second."""
    last = time.monotonic()

    def watch(done: int, total: int) -> None:
        nonlocal last
        if time.monotonic() - last >= _SECONDS_BETWEEN_LINES:
            last = time.monotonic()
            say(f"{done} of {total} models")

    return watch


@_documented
@dataclass(eq=False, repr=False)
class SparseStepIC(_SparseStepBase):
    """Sparse linear regression without shrinkage, alpha chosen by an information criterion.

    Parameters
    ----------
    criterion : {"aic", "bic", "ebic", "gic"}, default="bic"
        ``n log(rss / n)`` plus, for k of m variables kept, ``2 k`` (aic), ``log(n) k`` (bic),
        ``log(n) k + 2 log(m choose k)`` (ebic), or ``log(log n) log(m) k`` (gic; each factor at
        least 1).
    {alphas}
    {settings}

    Attributes
    ----------
    {attributes}
    alphas_ : ndarray of shape (n_alphas,) or (n_targets, n_alphas)
        The alphas tried, largest first; each target has its own.
    criterion_path_ : ndarray of shape (n_alphas,) or (n_targets, n_alphas)
        The criterion of each.
    path_ : Path or list of Path
        The models of all alphas.

    Notes
    -----
    {selecting}

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from sparsestep import SparseStepIC
    >>> X, y = load_diabetes(return_X_y=True, as_frame=True)
    >>> model = SparseStepIC("ebic").fit(X, y)
    >>> model.feature_names_in_[model.coef_ != 0].tolist()
    ['sex', 'bmi', 'bp', 's3', 's5']
    """

    criterion: str = "bic"
    _: KW_ONLY
    alphas: Any = 101

    def _chosen(self, moments: Moments, rows: Table | None) -> Fitted:
        if self.criterion not in CRITERIA:
            raise ValueError(
                f"criterion must be one of {', '.join(CRITERIA)}; got {self.criterion!r}."
            )
        alphas, settings = alphas_wanted(self.alphas), self._settings()
        return by_criterion(moments, alphas, self.criterion, settings, rows)


def sparsestep_path(
    X: Any,
    y: Any = None,
    *,
    alphas: Any = 101,
    sample_weight: Any = None,
    fit_intercept: bool = True,
    standardize: bool = True,
    penalty_factor: Any = None,
    gamma_0: float = 1e6,
    gamma_stop: float = 1e-8,
    gamma_step: float = 2.0,
    t_max: int = 2,
    epsilon: float = 1e-7,
    polish: str | None = None,
    solver: str = "auto",
) -> Path:
    """The models of many alphas.

    Parameters
    ----------
    X, y, sample_weight
        As in `SparseStep.fit`; y has one column. X may also be `Moments`, without y.
    alphas : int, array-like or "sizes", default=101
        How many alphas, between one that keeps no variable and one that keeps all (with more
        columns m than rows n: about n / (log m log log n), here and in "sizes"); the alphas
        themselves, in the units of ``||y - Xb||^2`` (the scale of scikit-learn's ``Ridge``); or
        "sizes" for one model of every size that some alpha gives (``n_nonzero`` of `SparseStep`
        looks for a single size, however large).
    fit_intercept, standardize, penalty_factor
        As in `SparseStep`.
    gamma_0, gamma_stop, gamma_step, t_max, epsilon, polish, solver
        As in `SparseStep`.

    Returns
    -------
    Path

    Examples
    --------
    >>> import numpy as np
    >>> from sparsestep import sparsestep_path
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((100, 4))
    >>> y = X @ [2.0, 0.0, -1.0, 0.0] + rng.standard_normal(100)
    >>> path = sparsestep_path(X, y, alphas=[0.1, 10.0, 1000.0])
    >>> path.alphas, path.n_nonzero
    (array([1.e+03, 1.e+01, 1.e-01]), array([0, 2, 4]))
    """
    model = SparseStep(
        fit_intercept=fit_intercept,
        standardize=standardize,
        penalty_factor=penalty_factor,
        gamma_0=gamma_0,
        gamma_stop=gamma_stop,
        gamma_step=gamma_step,
        t_max=t_max,
        epsilon=epsilon,
        polish=polish,
        solver=solver,
    )
    if isinstance(X, Moments):
        if y is not None or sample_weight is not None:
            raise ValueError("Moments include y and the weights: leave out y and sample_weight.")
        moments, rows = X, None
        model._adopt(moments)
    else:
        moments, rows = model._read(X, y, sample_weight)
    if np.size(moments.mean_y) > 1:
        raise ValueError(
            f"A path has one target; y has {np.size(moments.mean_y)} columns: give one of them."
        )
    wanted = alphas if isinstance(alphas, str) and alphas == "sizes" else alphas_wanted(alphas)
    settings = model._settings()
    with np.errstate(under="ignore"), one_blas_thread():
        path, known = fit_path(moments, wanted, settings, rows)
    if lost := known.lost("drop some of them, or fit one alpha to the rows."):
        warn(lost)
    return path
