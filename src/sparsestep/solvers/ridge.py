"""Ridge on the variables that models keep: ``(X'X + rho D) b = X'y``, D the diagonal of ``X'X``.

The penalty rho has no unit: it is the same whatever the units of the columns, and whether or not
the models were fitted to standardized ones.
"""

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import lapack

from sparsestep.moments.moments import Moments
from sparsestep.solvers.fitting import Fits

__all__ = ["ridge_on_supports"]

Array = NDArray[np.float64]


def ridge_on_supports(
    moments: Moments, fits: Fits, rhos: Array, *, fit_intercept: bool
) -> list[Fits]:
    """For each penalty, all above zero, the models of one target shrunk by it."""
    used = np.flatnonzero(fits.coefs[0].any(axis=0))
    supports = fits.coefs[0][:, used] != 0
    # Neighbouring alphas often keep the same variables.
    same: dict[bytes, list[int]] = {}
    for model, support in enumerate(supports):
        same.setdefault(support.tobytes(), []).append(model)
    S, q, mean = moments.gram_block(used), moments.xty[used], moments.mean_x[used]
    if not fit_intercept:
        S = S + moments.weight_sum * np.multiply.outer(mean, mean)
        q = q + moments.weight_sum * mean * moments.mean_y
    length = np.sqrt(np.diag(S))
    S, q = S / length / length[:, np.newaxis], q / length
    coefs = np.zeros((len(rhos), *fits.coefs[0].shape))
    for alike in map(np.array, same.values()):
        kept = np.flatnonzero(supports[alike[0]])
        gram = S[np.ix_(kept, kept)]
        for k, rho in enumerate(rhos if len(kept) else ()):
            np.fill_diagonal(gram, 1.0 + rho)
            # Transposed it is the same matrix, in the order of Fortran.
            shrunk = lapack.dposv(gram.T, q[kept])[1] / length[kept]
            coefs[k][np.ix_(alike, used[kept])] = shrunk
    intercepts = fit_intercept * (moments.mean_y - coefs @ moments.mean_x)
    return [
        Fits(fits.alphas, b[np.newaxis], a[np.newaxis], fits.n_iter)
        for b, a in zip(coefs, intercepts, strict=True)
    ]
