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
