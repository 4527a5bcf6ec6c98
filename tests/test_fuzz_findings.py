"""What fuzzing has found, each once. Some are also in the list of hostile input."""

import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from rows import table
from sparsestep import SparseStep, SparseStepCV, sparsestep_path
from sparsestep.errors import LostDigitsWarning

X, Y = table(30, 3)


def fitted_both_ways(alpha, X, y):
    """By the engine and by the literal loop, which has the digits of the normal equations only."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LostDigitsWarning)
        fast, loop = (SparseStep(alpha, solver=s).fit(X, y).coef_ for s in ("auto", "reference"))
    assert_array_equal(fast != 0, loop != 0)
    return fast, loop


NEAR_COPIES = [(0, 14, 5, -5.8, 6.5), (1, 15, 3, -5.4, 0.0015), (2, 14, 4, -5.3, 7.3)]
NEAR_COPIES += [(3, 12, 3, -5.6, 0.0011), (4, 13, 4, -5.0, 0.21), (5, 12, 6, -6.0, 1.0)]


@pytest.mark.parametrize(("seed", "n", "m", "power", "alpha"), NEAR_COPIES)
@pytest.mark.parametrize("noise", [1e-6, 0.3])
def test_near_copies_were_both_kept(seed, n, m, power, alpha, noise):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, m))
    X[:, -1] = X[:, 0] + 10.0**power * X[:, -1]
    y = X @ rng.integers(-2, 3, m) + noise * rng.standard_normal(n)
    assert_allclose(*fitted_both_ways(alpha, X, y), rtol=1e-3)


def test_near_copies_whose_least_squares_are_huge_were_kept():
    X = np.random.default_rng(7).standard_normal((11, 6))
    X[:, 3] = X[:, 1] + 1e-6 * X[:, 3]
    y = X @ [1.0, 0.5, -2.0, 0.5, -1.0, 2.0]
    assert np.count_nonzero(SparseStep(1.0).fit(X, y).coef_[[1, 3]]) == 1


@pytest.mark.parametrize("alpha", [1e290, 1e300, 1e308])
def test_a_penalty_beyond_the_range_of_floats_made_nan_of_coefficients(alpha):
    x = np.array([0, 0, 0, -2, 1, 1, 0, 0, 0])
    y = np.array([0.2, -0.5, -0.4, -2.4, 1.8, 1.1, -0.3, 0.8, 0.3])
    model = SparseStep(alpha, gamma_0=10, gamma_step=1.5, t_max=3, epsilon=0)
    assert np.all(np.abs(model.fit(np.column_stack([x, x]), y).coef_) < 1e-50)


@pytest.mark.parametrize("seed", range(5))
def test_polish_asked_for_the_inverse_of_a_singular_matrix(seed):
    rng = np.random.default_rng(seed)
    X, y = rng.standard_normal((5, 5)), rng.standard_normal(5)
    X[:, 2], X[:, 3] = X[:, 0] + 1e-5 * X[:, 2], [1, 1, 0, 1, 1]
    model = SparseStep(1e-12, penalty_factor=[2, 1, 1, 1, 1e-30], standardize=False, polish="swap")
    assert_allclose(model.fit(X, y).predict(X), y, atol=1e-4)


@pytest.mark.parametrize("seed", [38, 64])
def test_polish_started_from_more_columns_than_rows(seed):
    X = np.random.default_rng(seed).standard_normal((5, 6)) * [1e-8, 1, 0.3, 0, 0.004, 1]
    X[:, 4] += X[:, 1]
    X[4, 3] = 1e16
    model = SparseStep(1e-300, polish="swap", fit_intercept=False, epsilon=0)
    assert np.count_nonzero(model.fit(X, X @ [0, 2, 0, 1, 0, 1]).coef_) <= 5


@pytest.mark.parametrize("alpha", [1e-16, 1e-20, 1e-60, 1e-300])
def test_a_penalty_below_rounding_decided_nothing_between_columns_that_depend(alpha):
    for seed in range(20):
        rng = np.random.default_rng(seed)
        X, y = rng.standard_normal((8, 2)), rng.standard_normal(8)
        fitted_both_ways(alpha, np.column_stack([X, X.sum(axis=1)]), y)


def test_the_literal_loop_fitted_the_rounding_of_rows():
    X = np.array([[0.0, 0, 0, 0, 1e8], [3, 3, 6, 3, 1e8], [0, -1, -1, 0, 1e8]])
    factor = [1e-30, 1.0, 0.0, np.inf, 1e30]
    model = SparseStep(5e-324, penalty_factor=factor, solver="reference").fit(X, X[:, 2])
    assert_allclose(model.coef_, [0, 0, 1, 0, 0], atol=1e-12)


def test_polish_squared_numbers_that_cannot_be_squared():
    plain = SparseStep(10.0, polish="swap").fit(X, Y)
    huge = SparseStep(10.0, polish="swap", standardize=False).fit(1e140 * X, Y)
    assert_array_equal(huge.coef_ != 0, SparseStep(10.0, standardize=False).fit(X, Y).coef_ != 0)
    scaled = SparseStep(10.0 * 1e280, polish="swap").fit(X, 1e140 * Y)
    assert_allclose(scaled.coef_, 1e140 * plain.coef_, rtol=1e-9)


@pytest.mark.parametrize("scale", [1e-143, 1e143])
def test_the_standard_error_of_errors_was_zero_or_infinite(scale):
    plain = SparseStepCV(6, cv=3, rule="1se").fit(X, Y)
    scaled = SparseStepCV(6, cv=3, rule="1se").fit(X, scale * Y)
    assert_allclose(scaled.cv_se_ / scale / scale, plain.cv_se_, rtol=1e-6)
    assert_array_equal(scaled.coef_ != 0, plain.coef_ != 0)


@pytest.mark.parametrize(
    ("X", "y", "words"),
    [
        (np.column_stack([X, np.full(30, 1e200)]), Y, "column 3 are too large to be squared, as a"),
        (X[:3], np.full(3, 1e-200), "values of y are too small"),
        (X[:3], np.array([1e-200, 1e-200, 1e-160]), "values of y are too small|y varies by too l"),
    ],
)
def test_without_an_intercept_squares_about_zero_were_infinite_or_zero(X, y, words):
    with pytest.raises(ValueError, match=words):
        SparseStep(fit_intercept=False).fit(X, y)
    if y is Y:
        assert SparseStep().fit(X, y).coef_[3] == 0.0


def test_alphas_of_a_tiny_target_were_infinite():
    y = 1e-148 * X[:, 0]
    assert_array_equal(SparseStep(1e16).fit(X, y).coef_, 0.0)
    path = sparsestep_path(X, y, alphas=5)
    assert np.all(np.isfinite(path.alphas)) and np.all(path.alphas > 0)
    assert path.n_nonzero[0] == 0 and path.n_nonzero[-1] >= 1


def test_dates_were_days_since_1970():
    numbers = np.arange(30.0)
    model = SparseStep().fit(numbers[:, None], numbers)
    days = numbers[:, None].astype(int).astype("datetime64[D]")
    with pytest.raises(ValueError, match=r"type datetime64.*; turn it into numbers"):
        model.predict(days)


def test_a_training_set_of_one_row_had_no_shape():
    X, y = table(3, 4)
    model = SparseStepCV([1.0], cv=[([0], [1, 2]), ([0, 1], [2])]).fit(X, y)
    assert np.all(np.isfinite(model.mse_path_))
    SparseStepCV([1.0], cv=2, fit_intercept=False).fit(X, y)


def test_a_criterion_of_rows_that_weigh_much_was_infinite():
    path = sparsestep_path([[0.6], [0.1]], [2.0, 2.0], alphas="sizes", sample_weight=[1.0, 2.0**53])
    assert np.all(np.isfinite(path.criterion("bic")))
