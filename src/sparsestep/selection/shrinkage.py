"""Ridge regression on the variables kept, its penalty chosen by cross-validation.

It solves ``(X'X + rho D) b = X'y``, D the diagonal of ``X'X``. The penalty rho has no unit: it is
the same whatever the units of the columns, and whether or not the models were fitted to
standardized ones.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import blas, lapack

from sparsestep.moments.moments import Moments
from sparsestep.selection.cross_validation import CVErrors, validation_errors
from sparsestep.selection.fitting import Fits
from sparsestep.solvers.scaled_problem import unit_gram
from sparsestep.threads import side_by_side

Array = NDArray[np.float64]

# Penalties to choose from, beside none: shares of a column's sum of squares.
SHRINKAGES = 2.0 ** np.arange(-9.0, 5.0)
# Below this many columns starting threads costs more than they save.
_MANY_COLUMNS = 50


def shrunk_by_validation(
    data: Sequence[Moments],
    fits: Sequence[Fits],
    test: Sequence[Moments],
    errors: CVErrors,
) -> tuple[float, list[Fits], CVErrors]:
    """The penalty of the smallest error; the models shrunk by it, and their errors.

    `data` and `fits` are the moments of all rows and of each training set, and their models; `test`
    the moments of each test set, and `errors` those of the models without shrinkage.

    The penalty is common to all alphas. The search for it uses the best model without shrinkage and
    models whose sizes are the full size, a half of it, a quarter and so on: a large model with a
    large penalty may predict better than the best one without, and all penalties together cost
    little more than the systems of the largest model.
    """
    whole, *partial = fits
    n_nonzero = whole.n_nonzero
    halved = n_nonzero.max() / 2.0 ** np.arange(np.log2(max(n_nonzero.max(), 1)) + 1)
    halves = [int(np.argmin(np.abs(n_nonzero - size))) for size in halved]
    some = np.unique([errors.best(), *halves])

    def tried(k: int) -> list[Fits]:
        return ridge_on_supports(data[1 + k], partial[k].take(some), SHRINKAGES)

    many = whole.coefs.shape[1] >= _MANY_COLUMNS
    by_rho = zip(*side_by_side(tried, range(len(partial)), many), strict=True)
    least = [validation_errors(shrunk, test, errors.total).mean.min() for shrunk in by_rho]
    if min(least) >= errors.mean.min():
        return 0.0, list(fits), errors
    rho = SHRINKAGES[[int(np.argmin(least))]]

    def shrunk(k: int) -> Fits:
        return ridge_on_supports(data[k], fits[k], rho)[0]

    fits = side_by_side(shrunk, range(len(fits)), many)
    return float(rho[0]), fits, validation_errors(fits[1:], test, errors.total)


def ridge_on_supports(moments: Moments, fits: Fits, rhos: Array) -> list[Fits]:
    """For each penalty, all above zero, the models of one target shrunk by it.

    The supports of a path are nearly nested. With the columns in the order of how many models keep
    them, a model keeps the first p of them and a few others, and the Cholesky factor of the first p
    is a block of the factor L of all: one factorization serves all models of a penalty.
    """
    n_models = np.count_nonzero(fits.coefs, axis=0)
    used = np.argsort(-n_models, kind="stable")[: np.count_nonzero(n_models)]
    S, length = unit_gram(moments, used)
    q = moments.xty[used] / length
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
    intercepts = moments.mean_y - coefs @ moments.mean_x
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
