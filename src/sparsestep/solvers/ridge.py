"""Ridge on the variables that models keep: ``(X'X + rho D) b = X'y``, D the diagonal of ``X'X``.

The penalty rho has no unit: it is the same whatever the units of the columns, and whether or not
the models were fitted to standardized ones.

The supports of a path are nearly nested. With the columns in the order of how many models keep
them, a model keeps the first p of them and a few others, and the Cholesky factor of the first p is
a block of the factor L of all: one factorization serves all models of a penalty.
"""

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import blas, lapack

from sparsestep.moments.moments import Moments
from sparsestep.solvers.fitting import Fits
from sparsestep.solvers.scaled_problem import unit_gram

Array = NDArray[np.float64]


def ridge_on_supports(
    moments: Moments, fits: Fits, rhos: Array, *, fit_intercept: bool
) -> list[Fits]:
    """For each penalty, all above zero, the models of one target shrunk by it."""
    n_models = np.count_nonzero(fits.coefs, axis=0)
    used = np.argsort(-n_models, kind="stable")[: np.count_nonzero(n_models)]
    S, length = unit_gram(moments, used, fit_intercept=fit_intercept)
    q = moments.xty[used]
    if not fit_intercept:
        q = q + moments.weight_sum * moments.mean_x[used] * moments.mean_y
    q = q / length
    # Neighbouring alphas often keep the same variables.
    supports: dict[bytes, int] = {}
    which = [
        supports.setdefault(support.tobytes(), len(supports))
        for support in fits.coefs[:, used] != 0
    ]
    kept = [np.flatnonzero(np.frombuffer(support, dtype=np.bool_)) for support in supports]
    solved = np.zeros((len(rhos), len(kept), len(used)))
    for k, rho in enumerate(rhos if len(used) else ()):
        np.fill_diagonal(S, 1.0 + rho)
        L = lapack.dpotrf(S, lower=True)[0]
        z = blas.dtrsv(L, q, lower=True)
        for model, columns in enumerate(kept):
            solved[k, model, columns] = _solved(S, q, L, z, columns)
    coefs = np.zeros((len(rhos), *fits.coefs.shape))
    coefs[:, :, used] = (solved / length)[:, which]
    intercepts = fit_intercept * (moments.mean_y - coefs @ moments.mean_x)
    return [Fits(fits.alphas, b, a, fits.n_iter) for b, a in zip(coefs, intercepts, strict=True)]


def _solved(S: Array, q: Array, L: Array, z: Array, kept: NDArray[np.intp]) -> Array:
    """``S b = q`` on the columns kept; L is the factor of S, and z is ``L^-1 q``."""
    p = int(np.count_nonzero(kept == np.arange(len(kept))))
    first, rest = z[:p], kept[p:]
    last = q[:0]
    if len(rest):
        # Elimination of the first p leaves the Schur complement; its factor's rows are those of L.
        rows = L[rest, :p]
        complement = S[np.ix_(rest, rest)] - rows @ rows.T
        last = lapack.dposv(complement, q[rest] - rows @ first, lower=True)[1]
        first = first - last @ rows
    if p:
        first = blas.dtrsv(L[:p, :p], first, lower=True, trans=1)
    return np.concatenate([first, last])
