"""Ridge regression on the variables kept, its penalty chosen by cross-validation."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from sparsestep.moments.moments import Moments
from sparsestep.selection.cross_validation import CVErrors, validation_errors
from sparsestep.solvers.fitting import Fits
from sparsestep.solvers.ridge import ridge_on_supports
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
    *,
    fit_intercept: bool,
) -> tuple[float, list[Fits], CVErrors]:
    """The penalty of the smallest error; the models shrunk by it, and their errors.

    Parameters
    ----------
    data, fits
        The moments of all rows and of each training set, and their models.
    test
        The moments of each test set.
    errors
        Of the models without shrinkage.

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
        return ridge_on_supports(
            data[1 + k], partial[k].take(some), SHRINKAGES, fit_intercept=fit_intercept
        )

    many = whole.coefs.shape[1] >= _MANY_COLUMNS
    by_rho = zip(*side_by_side(tried, range(len(partial)), many), strict=True)
    least = [validation_errors(shrunk, test, errors.total).mean.min() for shrunk in by_rho]
    if min(least) >= errors.mean.min():
        return 0.0, list(fits), errors
    rho = SHRINKAGES[[int(np.argmin(least))]]

    def shrunk(k: int) -> Fits:
        return ridge_on_supports(data[k], fits[k], rho, fit_intercept=fit_intercept)[0]

    fits = side_by_side(shrunk, range(len(fits)), many)
    return float(rho[0]), fits, validation_errors(fits[1:], test, errors.total)
