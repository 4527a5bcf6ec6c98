"""What fuzzing has found, each once. Some are also in the list of hostile input."""

import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from rows import table
from sparsestep import SparseStep, SparseStepCV, sparsestep_path
from sparsestep.errors import LostDigitsWarning

NEAR_COPIES = [
    (0, 14, 5, -5.8, 6.5),
    (1, 15, 3, -5.4, 0.0015),
    (2, 14, 4, -5.3, 7.3),
    (3, 12, 3, -5.6, 0.0011),
    (4, 13, 4, -5.0, 0.21),
    (5, 12, 6, -6.0, 1.0),
]


@pytest.mark.parametrize(("seed", "n", "m", "power", "alpha"), NEAR_COPIES)
@pytest.mark.parametrize("noise", [1e-6, 0.3])
def test_near_copies_were_both_kept(seed, n, m, power, alpha, noise):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, m))
    X[:, -1] = X[:, 0] + 10.0**power * X[:, -1]
    y = X @ rng.integers(-2, 3, m) + noise * rng.standard_normal(n)
    fast = SparseStep(alpha).fit(X, y)
    with warnings.catch_warnings():
        # The literal loop has only the digits that the normal equations have.
        warnings.simplefilter("ignore", LostDigitsWarning)
        loop = SparseStep(alpha, solver="reference").fit(X, y)
    assert_array_equal(fast.coef_ != 0, loop.coef_ != 0)
    assert_allclose(fast.coef_, loop.coef_, rtol=1e-3)


def test_near_copies_whose_least_squares_are_huge_were_kept():
    X = np.random.default_rng(7).standard_normal((11, 6))
    X[:, 3] = X[:, 1] + 1e-6 * X[:, 3]
    y = X @ [1.0, 0.5, -2.0, 0.5, -1.0, 2.0]
    assert np.count_nonzero(SparseStep(1.0).fit(X, y).coef_[[1, 3]]) == 1


def test_a_penalty_beyond_the_range_of_floats_made_nan_of_coefficients():
    x = np.array([0, 0, 0, -2, 1, 1, 0, 0, 0])
    y = np.array([0.2, -0.5, -0.4, -2.4, 1.8, 1.1, -0.3, 0.8, 0.3])
    for alpha in (1e290, 1e300, 1e308):
        model = SparseStep(alpha, gamma_0=10, gamma_step=1.5, t_max=3, epsilon=0)
        model.fit(np.column_stack([x, x]), y)
        assert np.all(np.abs(model.coef_) < 1e-50)


def test_polish_asked_for_the_inverse_of_a_singular_matrix():
    X = np.array(
        [
            [-0.001745488329690802, 1.2328313917633746, -0.0017398649880234968, 1.0, -0.0961763618],
            [-0.39546869406481366, 0.9669301794538049, -0.3954657928674538, 1.0, -0.6091782213],
            [0.13723364422900047, 1.6641099071752175, 0.1372415960578388, 0.0, -1.0841947005],
            [-0.2144572248341514, 0.09774206806660735, -0.21445296426787516, 1.0, 0.4390936380],
            [-0.1668697098481103, -0.8642482395045736, -0.16687023808789433, 1.0, 0.3147051902],
        ]
    )
    y = np.array([-0.46695231853646924, 0.7714552369154539, 3.07818, -0.0034282175, 0.44680661])
    model = SparseStep(1e-12, penalty_factor=[2, 1, 1, 1, 1e-30], standardize=False, polish="swap")
    assert_allclose(model.fit(X, y).predict(X), y, atol=1e-4)


def test_polish_started_from_more_columns_than_rows():
    X = np.array(
        [
            [2.0922611258391804e-09, -0.6222598315629142, -0.4387749162470663, 0, 0, 3],
            [6.146019323394866e-09, 1.010328095067746, 0.08838399068420874, 0, 0, 0.5],
            [3.322963354806121e-10, 1.2991469658135097, -0.3500992341727286, 0, 0, 0.5],
            [2.3311090649642833e-08, 1.91588951730677, 0.00447445522048511, 0, 0, 0.5],
            [3.221868183251396e-09, -0.5757562138118116, 0.4779471167837724, 0, 0, 0],
        ]
    )
    X[:, 3] = [-6.152677584469003e-184, -5.442900944845325e-07, 0, 0, 1.158954499499944e16]
    X[:, 4] = [
        -0.6189857727527345,
        1.007176000403252,
        1.293935998952373,
        1.9133378893321464,
        -0.5832269553766279,
    ]
    y = np.array([1.319979481529546, 2.6058875480111316, 2.7429837309254506, 4.333701885170492, 0])
    y[4] = X[4, 3]
    model = SparseStep(1e-300, polish="swap", fit_intercept=False, epsilon=0).fit(X, y)
    assert np.count_nonzero(model.coef_) <= 5


@pytest.mark.parametrize("alpha", [1e-16, 1e-20, 1e-60, 1e-300])
def test_a_penalty_below_rounding_decided_nothing_between_columns_that_depend(alpha):
    for seed in range(20):
        rng = np.random.default_rng(seed)
        X, y = rng.standard_normal((8, 2)), rng.standard_normal(8)
        X = np.column_stack([X, X.sum(axis=1)])
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", LostDigitsWarning)
            fast, loop = (SparseStep(alpha, solver=s).fit(X, y) for s in ("auto", "reference"))
        assert_array_equal(fast.coef_ != 0, loop.coef_ != 0)


def test_the_literal_loop_fitted_the_rounding_of_rows():
    X = np.array([[0.0, 0, 0, 0, 1e8], [3, 3, 6, 3, 1e8], [0, -1, -1, 0, 1e8]])
    factor = [1e-30, 1.0, 0.0, np.inf, 1e30]
    model = SparseStep(5e-324, penalty_factor=factor, solver="reference").fit(X, X[:, 2])
    assert_allclose(model.coef_, [0, 0, 1, 0, 0], atol=1e-12)


def test_polish_squared_numbers_that_cannot_be_squared():
    X, y = table(30, 3)
    plain = SparseStep(10.0, polish="swap").fit(X, y)
    huge = SparseStep(10.0, polish="swap", standardize=False).fit(1e140 * X, y)
    assert_array_equal(huge.coef_ != 0, SparseStep(10.0, standardize=False).fit(X, y).coef_ != 0)
    scaled = SparseStep(10.0 * 1e280, polish="swap").fit(X, 1e140 * y)
    assert_allclose(scaled.coef_, 1e140 * plain.coef_, rtol=1e-9)


@pytest.mark.parametrize("scale", [1e-143, 1e143])
def test_the_standard_error_of_errors_was_zero_or_infinite(scale):
    X, y = table(30, 3)
    plain = SparseStepCV(6, cv=3, rule="1se").fit(X, y)
    scaled = SparseStepCV(6, cv=3, rule="1se").fit(X, scale * y)
    assert_allclose(scaled.cv_se_ / scale / scale, plain.cv_se_, rtol=1e-6)
    assert_array_equal(scaled.coef_ != 0, plain.coef_ != 0)


def test_without_an_intercept_squares_about_zero_were_infinite():
    X, y = table(30, 2)
    wide = np.column_stack([X, np.full(30, 1e200)])
    assert SparseStep().fit(wide, y).coef_[2] == 0.0
    with pytest.raises(
        ValueError, match="values of column 2 are too large to be squared, as a fit"
    ):
        SparseStep(fit_intercept=False).fit(wide, y)


def test_without_an_intercept_squares_about_zero_were_zero():
    X, _ = table(3, 5)
    for y in (np.full(3, 1e-200), np.array([1e-200, 1e-200, 1e-160])):
        with pytest.raises(ValueError, match=r"values of y are too small|y varies by too little"):
            SparseStep(fit_intercept=False).fit(X, y)


def test_alphas_of_a_tiny_target_were_infinite():
    X, _ = table(30, 3)
    y = 1e-148 * X[:, 0]
    assert_array_equal(SparseStep(1e16).fit(X, y).coef_, 0.0)
    path = sparsestep_path(X, y, alphas=5)
    assert np.all(np.isfinite(path.alphas)) and np.all(path.alphas > 0)
    assert path.n_nonzero[0] == 0 and path.n_nonzero[-1] >= 1


def test_dates_were_days_since_1970():
    days = np.arange(30).reshape(-1, 1).astype("datetime64[D]")
    with pytest.raises(ValueError, match=r"type datetime64.*; turn it into numbers"):
        SparseStep().fit(days, np.arange(30.0))
    model = SparseStep().fit(np.arange(30.0).reshape(-1, 1), np.arange(30.0))
    with pytest.raises(ValueError, match=r"type datetime64.*; turn it into numbers"):
        model.predict(days)


def test_a_training_set_of_one_row_had_no_shape():
    X, y = table(3, 4)
    model = SparseStepCV([1.0], cv=[([0], [1, 2]), ([0, 1], [2])]).fit(X, y)
    assert np.all(np.isfinite(model.mse_path_))
    SparseStepCV([1.0], cv=2, fit_intercept=False).fit(X, y)
