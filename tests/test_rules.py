"""The rules of choosing, and shrinkage: each compared with rows and other programs."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.linear_model import Ridge
from sklearn.model_selection import KFold, RepeatedKFold, ShuffleSplit

from rows import table
from sparsestep import SparseStepCV, SparseStepIC
from sparsestep.selection.cross_validation import CVErrors

SPLITS = {
    "folds": KFold(5),
    "repeated": RepeatedKFold(n_splits=4, n_repeats=3, random_state=0),
    "some rows tested": ShuffleSplit(3, test_size=0.2, random_state=0),
    "once": ShuffleSplit(1, random_state=0),
}


def row_weights(n):
    return 0.5 + np.arange(n) % 3


# -- one alpha ---------------------------------------------------------------------------------


@pytest.mark.parametrize("splits", list(SPLITS)[:3])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("rule", ["1se", "paired"])
def test_a_rule_takes_the_sparsest_that_is_near_the_best(splits, weighted, rule):
    X, y = table(60, 8, noise=6.0)
    weight = row_weights(60) if weighted else np.ones(60)
    cv = SPLITS[splits]
    model = SparseStepCV(40, cv=cv, rule=rule).fit(X, y, sample_weight=weight)
    # By hand, from the errors on the folds, which are compared with the rows elsewhere.
    folds = np.array([weight[test].sum() for _, test in cv.split(X)])
    share = folds / folds.sum()
    best = int(np.flatnonzero(model.alphas_ == model.alpha_min_)[0])
    difference = model.mse_path_ - model.mse_path_[best]
    mean = difference @ share
    variance = (difference - mean[:, None]) ** 2 @ share * len(folds) / (len(folds) - 1)
    disjoint = min(len(folds), weight.sum() / folds.mean())
    error = np.sqrt(variance / disjoint)
    assert_allclose(model.cv_paired_se_, error, rtol=1e-6, atol=1e-12 * error.max())
    reach = 0.5 * error * (1 + 1e-9) if rule == "paired" else model.cv_se_[best]
    near, sizes = np.flatnonzero(mean <= reach), model.path_.n_nonzero
    at = int(np.flatnonzero(model.alphas_ == model.alpha_)[0])
    assert at in near and sizes[at] == sizes[near].min()
    alike = near[sizes[near] == sizes[at]]
    assert model.cv_mean_[at] == pytest.approx(model.cv_mean_[alike].min(), rel=1e-9)
    assert_array_equal(model.coef_, model.path_.coefs[:, at])
    by_min = SparseStepCV(40, cv=cv).fit(X, y, sample_weight=weight)
    assert by_min.alpha_ == by_min.alpha_min_ == model.alpha_min_
    assert getattr(by_min, f"alpha_{rule}_") == getattr(model, f"alpha_{rule}_") == model.alpha_


def test_of_equal_errors_the_largest_alpha_and_of_equal_sizes_the_smallest_error_is_taken():
    mse = np.outer([5.0, 2.1, 2.0 + 4e-16, 2.0, 2.0 - 4e-16, 3.0], [1.0, 1.5])
    errors = CVErrors(mse, np.ones(2), 2.0)
    assert errors.best() == errors.chosen("1se", np.array([0, 2, 2, 2, 2, 3])) == 2


@pytest.mark.parametrize(
    "model",
    [
        SparseStepCV(30, cv=4),
        SparseStepCV(np.geomspace(1e3, 1e-3, 40), cv=4, rule="average"),
        SparseStepCV(shrink="cv"),
        *(SparseStepIC(criterion) for criterion in ("aic", "bic", "ebic", "gic")),
    ],
    ids=str,
)
def test_of_perfect_fits_the_sparsest_is_chosen_and_not_shrunk(model):
    X, _ = table(40, 5)
    model.fit(X, 1.0 + 2.0 * X[:, 1])
    assert_allclose(model.coef_, [0, 2, 0, 0, 0], atol=1e-12)
    assert getattr(model, "shrinkage_", 0.0) == 0.0


def test_the_noise_that_all_alphas_share_misleads_the_classic_rule():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((2000, 10))
    effects = np.array([1.0, 0.3, 0.2, 0.15, 0, 0, 0, 0, 0, 0])
    y = X @ effects + rng.standard_t(3, 2000)
    paired, classic = (SparseStepCV(rule=rule).fit(X, y) for rule in ("paired", "1se"))
    assert_array_equal(paired.coef_ != 0, effects != 0)
    assert np.count_nonzero(classic.coef_) < 4


# -- average -----------------------------------------------------------------------------------


def average(A, coefs, errors, n):
    """Inclusion and coefficients: models weighted by the likelihood of n held-out rows."""
    weights = (errors / errors.min()) ** (-n / 3)
    weights /= weights.sum()
    inclusion, coef = weights @ (coefs.T != 0), np.zeros(len(coefs))
    # On the variables kept, the nearest to the predictions of the whole average.
    kept = inclusion > 0.5
    coef[kept] = np.linalg.lstsq(A[:, kept], A @ coefs @ weights)[0]
    return inclusion, coef


@pytest.mark.parametrize("splits", SPLITS)
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("intercept", [True, False])
def test_the_average_is_weighted_by_the_likelihood_of_held_out_rows(splits, weighted, intercept):
    X, y = table(60, 8, noise=6.0)
    weight = row_weights(60) if weighted else np.ones(60)
    cv = SPLITS[splits]
    model = SparseStepCV(40, cv=cv, rule="average", fit_intercept=intercept)
    model.fit(X, y, sample_weight=weight)
    n = min(sum(weight[test].sum() for _, test in cv.split(X)), weight.sum())
    mean = np.average(X, axis=0, weights=weight)
    A = np.sqrt(weight)[:, None] * (X - mean * intercept)
    inclusion, expected = average(A, model.path_.coefs, model.cv_mean_, n)
    assert_allclose(model.inclusion_, inclusion, rtol=1e-9)
    assert_allclose(model.coef_, expected, rtol=1e-7, atol=1e-9)
    about = np.average(y, weights=weight) - mean @ expected
    assert model.intercept_ == pytest.approx(about if intercept else 0.0, abs=1e-9)
    assert model.alpha_ == model.alpha_min_


def test_the_error_of_an_average_is_that_of_averaging_without_each_fold():
    X, y = table(60, 6, noise=6.0)
    alphas, cv = np.geomspace(500, 1, 12), KFold(4)
    model = SparseStepCV(alphas, cv=cv, rule="average").fit(X, y)
    errors = []
    for k, (train, test) in enumerate(cv.split(X)):
        path = SparseStepCV(alphas, cv=3).fit(X[train], y[train]).path_
        others = np.delete(model.mse_path_, k, axis=1).mean(axis=1)
        _, coef = average(X[train] - X[train].mean(axis=0), path.coefs, others, 45)
        intercept = y[train].mean() - X[train].mean(axis=0) @ coef
        errors.append(np.mean((y[test] - intercept - X[test] @ coef) ** 2))
    assert f"{np.mean(errors):.5g}" in str(model.summary())


@pytest.mark.parametrize("shrink", [None, "cv"])
def test_collinear_variables_that_cancel_each_other_are_not_torn_apart(shrink):
    """As neighbouring wavelengths of a spectrum: only some of them are kept."""
    rng = np.random.default_rng(0)
    wave = np.linspace(0, 1, 60)
    X = rng.standard_normal((300, 8)) @ np.exp(-((wave - rng.uniform(0, 1, (8, 1))) ** 2) / 0.1)
    X += 1e-4 * rng.standard_normal(X.shape)
    y = X @ np.gradient(np.gradient(np.sin(9 * wave))) * 100 + 0.1 * rng.standard_normal(300)
    errors = []
    for rule in ("min", "average"):
        model = SparseStepCV(rule=rule, shrink=shrink).fit(X[:150], y[:150])
        errors.append(np.mean((y[150:] - model.predict(X[150:])) ** 2))
    assert errors[1] < 1.5 * errors[0]


# -- shrinkage ---------------------------------------------------------------------------------


def ridge(X, y, weight, coef, rho, intercept):
    """Scikit-learn's ridge on the columns kept, in units of their spread."""
    kept = np.flatnonzero(coef)
    n = weight.sum()
    if not len(kept):
        return np.zeros_like(coef), np.average(y, weights=weight) if intercept else 0.0
    mean = np.average(X, axis=0, weights=weight) if intercept else 0.0
    scale = np.sqrt(np.average((X - mean) ** 2, axis=0, weights=weight))[kept]
    fitted = Ridge(alpha=rho * n, fit_intercept=intercept, solver="cholesky")
    fitted.fit(X[:, kept] / scale, y, sample_weight=weight)
    shrunk = np.zeros_like(coef)
    shrunk[kept] = fitted.coef_ / scale
    return shrunk, fitted.intercept_


@pytest.mark.parametrize(("n", "m"), [(60, 8), (30, 80)])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("standardize", [True, False])
def test_shrunk_models_and_their_errors_are_those_of_ridge(n, m, weighted, intercept, standardize):
    X, y = table(n, m, seed=1, noise=8.0)
    X = X * np.linspace(0.5, 2.0, m)
    weight = row_weights(n) if weighted else np.ones(n)
    options = {"fit_intercept": intercept, "standardize": standardize, "cv": KFold(4)}
    alphas = np.geomspace(2000, 20, 15)
    plain = SparseStepCV(alphas, **options).fit(X, y, sample_weight=weight)
    model = SparseStepCV(alphas, shrink="cv", **options).fit(X, y, sample_weight=weight)
    assert model.shrinkage_ > 0 and model.cv_mean_.min() < plain.cv_mean_.min()
    for coef, shrunk, a in zip(
        plain.path_.coefs.T, model.path_.coefs.T, model.path_.intercepts, strict=True
    ):
        expected, about = ridge(X, y, weight, coef, model.shrinkage_, intercept)
        assert_allclose(shrunk, expected, rtol=1e-8, atol=1e-10)
        assert a == pytest.approx(about, abs=1e-8)
    at = int(np.flatnonzero(model.alphas_ == model.alpha_)[0])
    assert_allclose(model.coef_, model.path_.coefs[:, at])
    for k, (train, test) in enumerate(KFold(4).split(X)):
        part = SparseStepCV(alphas, **(options | {"cv": 2}))
        part.fit(X[train], y[train], sample_weight=weight[train])
        for r, coef in enumerate(part.path_.coefs.T):
            b, a = ridge(X[train], y[train], weight[train], coef, model.shrinkage_, intercept)
            mse = np.average((y[test] - a - X[test] @ b) ** 2, weights=weight[test])
            assert model.mse_path_[r, k] == pytest.approx(mse, rel=1e-7)


@pytest.mark.parametrize("seed", range(4))
def test_shrinkage_does_not_depend_on_units(seed):
    X, y = table(80, 10, seed, noise=10.0)
    units = 10.0 ** np.linspace(-6, 6, 10)
    options = {"rule": "average", "shrink": "cv"}
    one = SparseStepCV(**options).fit(X, y)
    other = SparseStepCV(**options).fit(X * units, 1e5 * y)
    assert one.shrinkage_ == other.shrinkage_
    assert_allclose(other.coef_ * units / 1e5, one.coef_, rtol=1e-6, atol=1e-9)
    assert_allclose(other.inclusion_, one.inclusion_, rtol=1e-6, atol=1e-9)


def test_shrinkage_predicts_noisy_targets_better():
    rng = np.random.default_rng(0)
    risk = np.zeros(2)
    for _ in range(10):
        X = rng.standard_normal((200, 30))
        effects = np.where(np.arange(30) < 15, rng.uniform(-1, 1, 30), 0.0)
        y = X @ effects + 6 * rng.standard_normal(200)
        for i, options in enumerate([{}, {"rule": "average", "shrink": "cv"}]):
            risk[i] += np.sum((SparseStepCV(**options).fit(X, y).coef_ - effects) ** 2)
    assert risk[1] < 0.7 * risk[0]


# -- both ------------------------------------------------------------------------------------------


def test_the_summary_says_why_there_are_no_standard_errors():
    X, y = table(60, 6, noise=2.0)
    averaged = SparseStepCV(rule="average").fit(X, y).summary()
    assert "inclusion" in str(averaged) and "averages" in averaged.facts["no std. errors"]
    assert "std. error" in averaged.to_frame().columns
    shrunk = SparseStepCV(shrink="cv").fit(X, y).summary()
    assert "shrunk" in shrunk.facts["no std. errors"] and "nan" not in str(shrunk)
    assert np.isnan(shrunk.standard_error).all() and not shrunk.condition


def test_what_a_rule_left_does_not_outlive_a_fit_by_another():
    X, y = table(60, 6, noise=6.0)
    model = SparseStepCV(rule="average", shrink="cv").fit(X, y)
    model.set_params(rule="min", shrink=None).fit(X, y)
    assert not hasattr(model, "inclusion_") and not hasattr(model, "shrinkage_")
