"""The method straight from the rows, with NumPy and the literal loop."""

import numpy as np
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.model_selection import cross_val_score

from sparsestep.reference import sparsestep_reference


def table(n=60, m=5, seed=0, *, correlation=0.3, mean=5.0, noise=1.0):
    """Correlated columns whose means are not 0, and a sparse truth: 2, 0, -1, 0, 0.5, 0, 0, ..."""
    rng = np.random.default_rng(seed)
    common = np.sqrt(correlation) * rng.standard_normal((n, 1))
    X = mean + common + np.sqrt(1 - correlation) * rng.standard_normal((n, m))
    truth = np.resize([2.0, 0.0, -1.0, 0.0, 0.5, 0.0, 0.0], m)
    return X, 3.0 + X @ truth + noise * rng.standard_normal(n)


def fit_rows(
    X, y, alpha, weight=None, *, scales=None, fit_intercept=True, standardize=True, **settings
):
    """Coefficients and intercept; scaled by the rows' own deviations unless `scales` are given."""
    weight = np.ones(len(y)) if weight is None else weight
    rows = np.column_stack([X, y])
    means = fit_intercept * np.average(rows, axis=0, weights=weight)
    rows = rows - means
    if scales is None:
        scales = np.sqrt(np.average(rows**2, axis=0, weights=weight)) ** standardize
    rows *= np.sqrt(weight)[:, None] / scales
    A, r, scale_x, scale_y = rows[:, :-1], rows[:, -1], scales[:-1], scales[-1]
    b = sparsestep_reference(A.T @ A, A.T @ r, alpha / scale_y**2, **settings) * scale_y / scale_x
    return b, means[-1] - means[:-1] @ b


def scaled_alpha(estimator, factor):
    """A copy whose given alpha is multiplied; an automatic grid follows by itself."""
    model = clone(estimator)
    return model.set_params(alpha=model.alpha * factor) if hasattr(model, "alpha") else model


def assert_same_model(model, other, scale_x=1.0, scale_y=1.0, rtol=1e-8):
    """The second is the first for columns times `scale_x` and a target times `scale_y`."""
    assert_array_equal(other.coef_ != 0, model.coef_ != 0)
    assert_allclose(other.coef_ * scale_x / scale_y, model.coef_, rtol=rtol)
    assert_allclose(other.alpha_, model.alpha_ * scale_y**2, rtol=rtol)


def squared_errors(X, y, coef, intercept):
    return (y - X @ coef - intercept) ** 2


def held_out_errors(model, X, y, cv):
    """The mean squared error of a model on each test set, by scikit-learn."""
    return -cross_val_score(model, X, y, cv=cv, scoring="neg_mean_squared_error")
