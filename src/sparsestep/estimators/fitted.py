"""Fitted models: the model of each target, and how it was chosen, in plain numbers.

Nothing here needs scikit-learn. The estimators show the numbers as attributes, model files store
them.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from sparsestep.estimators.path import Path, variables
from sparsestep.inference.notes import FarRows, Fingerprint, Note
from sparsestep.inference.summary import Summary, t_interval
from sparsestep.words import quoted

Array = NDArray[np.float64]


@dataclass(frozen=True)
class CVResult:
    """Cross-validation errors of all alphas of a path.

    Attributes
    ----------
    mse : ndarray of shape (n_alphas, n_folds)
    mean, se, paired_se : ndarrays of shape (n_alphas,)
        The error, its standard error, and the standard error of its difference to the smallest
        error; with a single fold the standard errors are NaN.
    alpha_min, alpha_paired, alpha_1se : float
        The alphas of the rules; with a single fold they are the same.
    of_choice : float
        The error of the rule, its choice included; with a single fold NaN.
    scheme, splitter : str, and str or None
        How the rows were split: see `TrainAndTest`.
    shrinkage : float, or None
        The penalty of the ridge regressions on the variables kept, if these were shrunk.
    """

    mse: Array
    mean: Array
    se: Array
    paired_se: Array
    alpha_min: float
    alpha_paired: float
    alpha_1se: float
    of_choice: float
    scheme: str
    splitter: str | None
    shrinkage: float | None = None


@dataclass(frozen=True)
class TargetModel:
    """The model of one target.

    Attributes
    ----------
    coef : ndarray of shape (m,)
    intercept, alpha : float
    how : str
        How alpha was chosen, in words.
    facts : dict of str to str
        Lines of the summary on that choice.
    standard_error : ndarray of shape (m,)
        NaN for a variable that is not kept.
    free : float
        Degrees of freedom.
    r2 : float
        About zero if there is no intercept.
    path : Path, or None
    index : int, or None
        Index of alpha on the path.
    cv : CVResult, or None
    criterion : ndarray of shape (n_alphas,), or None
    inclusion : ndarray of shape (m,), or None
        Of an average: for each variable, the weight of the models that include it.
    """

    coef: Array
    intercept: float
    alpha: float
    how: str
    facts: dict[str, str]
    standard_error: Array
    free: float
    r2: float
    path: Path | None = None
    index: int | None = None
    cv: CVResult | None = None
    criterion: Array | None = None
    inclusion: Array | None = None


@dataclass(frozen=True)
class Fitted:
    """The models of all targets, the fingerprint of their data, and the notes on both.

    Attributes
    ----------
    targets : tuple of TargetModel
    target_names : tuple of str
    fingerprint : Fingerprint
    n_iter : int
    fit_intercept : bool
    notes : tuple of Note
    one_hot : dict of str to (list of str, list of str)
        Columns of text behind the features: their categories, and the names of the features that
        are indicators of the last of these.
    """

    targets: tuple[TargetModel, ...]
    target_names: tuple[str, ...]
    fingerprint: Fingerprint
    n_iter: int
    fit_intercept: bool
    notes: tuple[Note, ...]
    one_hot: dict[str, tuple[list[str], list[str]]]

    def far_rows(self, X: Any, names: Sequence[str]) -> FarRows:
        """The rows that lie far outside those fitted, in a column that a model keeps."""
        known = self.fingerprint
        columns = np.flatnonzero(~np.isnan(known.reach))
        far = FarRows(
            known.mean_x[columns],
            known.deviation_x[columns],
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
            effect = np.abs(model.coef[kept]) * self.fingerprint.deviation_x[kept]
        kept = kept[np.argsort(-effect, kind="stable")]
        r2 = "R2" if self.fit_intercept else "R2 about zero"
        n, weight = self.fingerprint.n_samples, self.fingerprint.weight_sum
        rows = f"{n} rows" + (f" of weight {weight:.9g} in all" if weight != n else "")
        facts = {
            **({"target": self._called(which)} if len(self.targets) > 1 else {}),
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

    def _called(self, which: int) -> str:
        """The name of one of several targets, and that there are others."""
        return f"{self.target_names[which]} ({which + 1} of {len(self.targets)}; target= chooses)"
