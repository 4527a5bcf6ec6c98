"""Information criteria, and the choice of a model by them; of equal models the first."""

from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln

from sparsestep.selection.fitting import first_least

Array = NDArray[np.float64]
Index = NDArray[np.intp]

Criterion = Literal["aic", "bic", "ebic", "gic"]
CRITERIA = get_args(Criterion)


def criterion_path(criterion: str, rss: Array, n_nonzero: Index, n: float, m: int) -> Array:
    """Information criterion of each model: ``n log(rss / n)`` plus a penalty for its k variables.

    ======  =======================================
    aic     2 k
    bic     log(n) k
    ebic    log(n) k + 2 log(m choose k)
    gic     log(log n) log(m) k, each at least 1
    ======  =======================================

    (Akaike 1974; Schwarz 1978; Chen and Chen 2008; Fan and Tang 2013.) Sums of squares that are
    rounding count as equal, so that of several perfect fits the sparsest is the best.
    """
    k = np.asarray(n_nonzero, dtype=np.float64)
    log_n = np.log(max(n, 2.0))
    if criterion == "aic":
        penalty = 2.0 * k
    elif criterion == "bic":
        penalty = log_n * k
    elif criterion == "ebic":
        penalty = log_n * k + 2.0 * (gammaln(m + 1) - gammaln(k + 1) - gammaln(m - k + 1))
    elif criterion == "gic":
        penalty = np.log(max(log_n, np.e)) * np.log(max(m, np.e)) * k
    else:
        raise ValueError(f"criterion must be one of {', '.join(CRITERIA)}; got {criterion!r}.")
    rounding = max(1e-12 * float(np.max(rss)), np.finfo(np.float64).tiny)
    # The quotient rss / n may underflow.
    return np.asarray(n * (np.log(np.maximum(rss, rounding)) - np.log(n)) + penalty)


def least_criterion(values: Array, among: Index) -> int:
    """Index `among` some of the smallest criterion; of equal ones that of the largest alpha."""
    return first_least(values, among, 1e-12 * np.abs(values[among]).max())


def supported(n_nonzero: Index, largest: int | None) -> Index:
    """Indices of the models with at most `largest` variables more than the smallest, or of all.

    With more variables than the rows support, rss goes to zero and ``n log(rss / n)`` outweighs
    every penalty.
    """
    if largest is None:
        return np.arange(len(n_nonzero))
    return np.flatnonzero(n_nonzero <= largest + n_nonzero.min())
