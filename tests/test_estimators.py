"""The estimators as scikit-learn's users meet them: input of every kind, and no surprises."""

import pickle
import tracemalloc
import warnings
from decimal import Decimal
from io import BytesIO

import dask.array as da
import dask.dataframe as dd
import joblib
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse as sp
import sklearn
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.compose import TransformedTargetRegressor, make_column_transformer
from sklearn.exceptions import NotFittedError
from sklearn.feature_selection import SelectFromModel
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import (
    GridSearchCV,
    GroupKFold,
    KFold,
    LeaveOneGroupOut,
    ShuffleSplit,
    StratifiedGroupKFold,
    cross_validate,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, PolynomialFeatures, StandardScaler
from sklearn.utils.estimator_checks import estimator_checks_generator

from rows import fit_rows, table
from sparsestep import Moments, SparseStep, SparseStepCV, SparseStepIC, sparsestep_path
from sparsestep.model.file import document_of

ALL = [SparseStep(alpha=10.0), SparseStepCV(12, cv=4), SparseStepIC(alphas=12)]
ONE_SPLIT = ShuffleSplit(1, random_state=0)
every_estimator = pytest.mark.parametrize("estimator", ALL, ids=lambda e: type(e).__name__)


@pytest.mark.parametrize(
    ("estimator", "check"),
    [
        pytest.param(*pair, id=f"{type(estimator).__name__}-{pair[1].func.__name__}")
        for estimator in (SparseStep(), SparseStepCV(alphas=10, cv=3), SparseStepIC(alphas=10))
        for pair in estimator_checks_generator(estimator)
    ],
)
@pytest.mark.filterwarnings("default")
def test_scikit_learns_own_checks(estimator, check):
    check(estimator)


@every_estimator
def test_masked_values_are_not_predicted_from(estimator):
    X, y = table(60, 3)
    model = clone(estimator).fit(np.ma.array(X), np.ma.array(y))
    assert_array_equal(model.predict(np.ma.array(X)), clone(estimator).fit(X, y).predict(X))
    hidden = np.ma.array(X, mask=X[4, 1] == X)
    with pytest.raises(ValueError, match="X has masked values"):
        model.predict(hidden)
    with pytest.raises(ValueError, match="X has masked values"):
        sparsestep_path(X, y).predict(hidden)


@pytest.mark.parametrize(
    "given",
    [
        np.array([1, 2, 3], dtype="datetime64[D]"),
        np.array([1, 2, 3], dtype="timedelta64[s]"),
        [np.timedelta64(1, "s"), 2.0, 3.0],
        np.array([1, np.timedelta64(2, "s"), 3], dtype=object),
        np.array([1, "2", 3], dtype=object),
        ["1", "2", "3"],
        [1, 2, 3 + 0j],
        pd.Series(["1", "2", "3"]),
    ],
    ids=str,
)
def test_only_numbers_are_numbers(given):
    X, y = table(3, 3)
    with pytest.raises(ValueError, match="sample_weight must be numbers"):
        SparseStep().fit(X, y, sample_weight=given)
    with pytest.raises(ValueError, match="penalty_factor must be numbers"):
        SparseStep(penalty_factor=given).fit(X, y)
    with pytest.raises(ValueError, match=r"alphas must be .* numbers"):
        sparsestep_path(X, y, alphas=given)


@pytest.mark.parametrize(
    "given",
    [
        [True, 2, 3.0],
        np.array([1, 2.0, Decimal(3)], dtype=object),
        np.array([np.bool_(True), np.int8(2), np.float32(3)], dtype=object),
        pd.Series([1, 2, 3], dtype="Int64"),
        pl.Series([1, 2, 3]),
        pa.array([1, 2, 3]),
    ],
    ids=str,
)
def test_numbers_of_any_type_are_weights_and_factors(given):
    X, y = table(3, 3)
    expected = SparseStep(penalty_factor=[1.0, 2.0, 3.0]).fit(X, y, sample_weight=[1.0, 2.0, 3.0])
    model = SparseStep(penalty_factor=given).fit(X, y, sample_weight=given)
    assert_array_equal(model.coef_, expected.coef_)


# --- the model itself -----------------------------------------------------------------------------


def test_the_intercept_is_right_on_data_that_is_not_centred():
    X, y = table(200, 8, mean=5.0)
    model = SparseStep(alpha=10.0).fit(X, y)
    mse = np.mean((y - model.predict(X)) ** 2)
    kept = model.coef_ != 0
    expected = LinearRegression().fit(X[:, kept], y)
    assert_allclose(mse, np.mean((y - expected.predict(X[:, kept])) ** 2), rtol=1e-9)
    assert 0.7 < mse < 1.3
    assert_allclose(model.intercept_, expected.intercept_, rtol=1e-9)
    assert_allclose(np.mean(y - model.predict(X)), 0.0, atol=1e-12)
    # Far from zero the digits of the means must not eat those of the deviations.
    far = SparseStep(alpha=10.0).fit(X + 1e6, y)
    assert_allclose(far.predict(X + 1e6), model.predict(X), rtol=1e-6)
    assert_array_equal(far.coef_ != 0, kept)


def test_without_an_intercept_nothing_is_subtracted():
    X, y = table(50, 5)
    model = SparseStep(alpha=10.0, fit_intercept=False).fit(X, y)
    kept = model.coef_ != 0
    assert model.intercept_ == 0.0 and 0 < kept.sum() < 5
    assert_allclose(model.coef_[kept], np.linalg.lstsq(X[:, kept], y)[0], rtol=1e-9)


def test_without_standardizing_it_is_the_loop_on_the_numbers_as_given():
    X, y = table(50, 5)
    X *= [1.0, 30.0, 0.01, 1.0, 5.0]
    model = SparseStep(alpha=10.0, standardize=False).fit(X, y)
    coef, intercept = fit_rows(X, y, 10.0, scales=(np.ones(5), 1.0))
    assert_allclose(model.coef_, coef, rtol=1e-8)
    assert_allclose(model.intercept_, intercept, rtol=1e-8)


def test_alpha_zero_is_least_squares():
    X, y = table(50, 5)
    expected = LinearRegression().fit(X, y)
    model = SparseStep(alpha=0.0).fit(X, y)
    assert_allclose(model.coef_, expected.coef_, rtol=1e-9)
    assert_allclose(model.intercept_, expected.intercept_, rtol=1e-9)


@every_estimator
@pytest.mark.parametrize("polish", [None, "swap"])
def test_the_literal_loop_gives_the_same(estimator, polish):
    X, y = table(50, 5, 1)
    fast = clone(estimator).set_params(polish=polish).fit(X, y)
    slow = clone(estimator).set_params(polish=polish, solver="reference").fit(X, y)
    assert_allclose(fast.coef_, slow.coef_, rtol=1e-8)
    assert fast.alpha_ == slow.alpha_
    assert slow.n_iter_ == 94 and 0 < fast.n_iter_ <= 94
    if isinstance(estimator, SparseStepCV):
        assert_allclose(fast.mse_path_, slow.mse_path_, rtol=1e-8)


@every_estimator
def test_constant_columns_and_a_constant_target(estimator):
    X, y = table(40, 3)
    X = np.insert(X, 1, 7.0, axis=1)
    model = clone(estimator).fit(X, y)
    assert model.coef_[1] == 0.0
    assert_allclose(np.delete(model.coef_, 1), clone(estimator).fit(np.delete(X, 1, 1), y).coef_)
    flat = clone(estimator).fit(X, np.full(40, 2.5))
    assert_array_equal(flat.coef_, 0.0)
    assert flat.intercept_ == 2.5
    assert_array_equal(flat.predict(X), 2.5)


@every_estimator
def test_penalty_factors_keep_always_and_never(estimator):
    X, y = table(60, 6)
    y += 3.0 * X[:, 4]
    model = clone(estimator).set_params(penalty_factor=[1, 0, 1, 0, np.inf, 1]).fit(X, y)
    assert np.all(model.coef_[[1, 3]] != 0) and model.coef_[4] == 0
    without = clone(estimator).set_params(penalty_factor=[1, 0, 1, 0, 1]).fit(np.delete(X, 4, 1), y)
    assert_allclose(np.delete(model.coef_, 4), without.coef_, rtol=1e-9)
    assert_allclose(model.alpha_, without.alpha_, rtol=1e-9)


@every_estimator
@pytest.mark.parametrize(
    "factor",
    [
        {"d": np.inf, "b": 0},
        pd.Series({"d": np.inf, "c": 1, "b": 0, "a": 1}),
        pd.Series([1, 0, 1, np.inf]),
        pd.Series([1, 0, 1, np.inf], index=[7, 3, 5, 1]),
        np.array([1, 0, 1, np.inf]),
    ],
    ids=["dict", "names", "range", "numbers", "array"],
)
def test_penalty_factors_by_name(estimator, factor):
    X, y = table(60, 4)
    X, y = pd.DataFrame(X, columns=list("abcd")), y + 3.0 * X[:, 3]
    expected = clone(estimator).set_params(penalty_factor=[1, 0, 1, np.inf]).fit(X, y)
    named = clone(clone(estimator).set_params(penalty_factor=factor))
    for data in (X, pl.from_pandas(X), pa.Table.from_pandas(X)):
        assert_array_equal(named.fit(data, y).coef_, expected.coef_)
    assert named.coef_[1] != 0 and named.coef_[3] == 0
    assert type(named.get_params()["penalty_factor"]) is type(factor)
    path = sparsestep_path(X, y, alphas=4, penalty_factor=factor)
    other = sparsestep_path(X, y, alphas=4, penalty_factor=[1, 0, 1, np.inf])
    assert_array_equal(path.coefs, other.coefs)


def test_penalty_factors_by_names_that_do_not_fit():
    X, y = table(30, 3)
    frame = pd.DataFrame(X, columns=list("abc"))
    for factor, words in [
        ({"z": 0}, "penalty_factor names 'z', but X has no such column; it has 'a', 'b', 'c'"),
        ({0: 0}, "penalty_factor names 0, but X has no such column"),
        ({"b": -1}, r"penalty_factor\['b'\] is -1.0; it must be 0, inf, or between"),
        ({"b": "cheap"}, "penalty_factor must be numbers; got {'b': 'cheap'}"),
        (pd.Series({"a": 0, "b": 1}), "penalty_factor lacks 'c'; a series has a number for each"),
        (pd.Series([1, 1, 0, 0], index=list("abca")), "penalty_factor names 'a' twice"),
    ]:
        with pytest.raises(ValueError, match=words):
            SparseStep(penalty_factor=factor).fit(frame, y)
    with pytest.raises(ValueError, match="but those of X have no names; give a number for each"):
        SparseStep(penalty_factor={"a": 0}).fit(X, y)


@pytest.mark.parametrize("n", [200, 9])
@pytest.mark.parametrize("solver", ["auto", "reference"])
def test_of_dependent_variables_without_a_penalty_the_last_is_left_out(n, solver):
    rng = np.random.default_rng(n)
    day = np.eye(3)[np.arange(n) % 3]
    X = np.column_stack([rng.normal(size=(n, 6)), day, rng.normal(size=(n, 2))])
    X = np.column_stack([X, X[:, -2:].sum(axis=1)])
    y = X[:, 0] + 2.0 * day[:, 1] + X[:, -1] + rng.normal(size=n)
    factor = np.r_[np.ones(6), np.zeros(6)]
    model = SparseStep(5.0, penalty_factor=factor, solver=solver).fit(X, y)
    assert_array_equal(np.flatnonzero(model.coef_[6:]), [0, 1, 3, 4])
    kept = np.flatnonzero(model.coef_)
    Z = X[:, kept] - X[:, kept].mean(axis=0)
    assert_allclose(model.coef_[kept], np.linalg.lstsq(Z, y - y.mean())[0], rtol=1e-6)


# --- failures and other corners -------------------------------------------------------------------


@pytest.mark.parametrize("estimator", [SparseStep(), SparseStepCV(5), SparseStepIC(alphas=5)])
def test_a_fit_that_fails_leaves_no_model(estimator):
    X, y = table(60, 6)
    model = clone(estimator).set_params(gamma_0=-1.0)
    with pytest.raises(ValueError, match="gamma_0"):
        model.fit(X, y)
    with pytest.raises(NotFittedError):
        model.predict(X)
    model.set_params(gamma_0=1e6).fit(X, y)
    with pytest.raises(ValueError, match="gamma_0"):
        model.set_params(gamma_0=-1.0).fit(X[:, :3], y)
    for use in (lambda: model.predict(X), model.summary):
        with pytest.raises(NotFittedError):
            use()


@pytest.mark.parametrize("dtype", ["Int64", "Float64", "boolean", "int64[pyarrow]"])
def test_a_missing_value_of_pandas_own_kind_is_placed(dtype):
    X, y = table(30, 2)
    frame = pd.DataFrame(X, columns=["a", "b"])
    frame["g"] = pd.array([1] * 4 + [None] + [1] * 25, dtype=dtype)
    with pytest.raises(ValueError, match="Column 'g' has the value nan in row 4"):
        SparseStep().fit(frame, y)


def test_a_missing_value_of_a_target_is_placed_by_its_name():
    X, y = table(30, 2)
    targets = pd.DataFrame({"u": y, "v": np.where(np.arange(30) == 7, np.nan, y)})
    with pytest.raises(ValueError, match="Column 'v' of y has the value nan in row 7"):
        SparseStep().fit(X, targets)


def test_a_path_of_dask_collections_is_summed_where_they_are():
    X, y = table(90, 4)
    collection = da.from_array(X, chunks=(30, 4)), da.from_array(y, chunks=30)
    path = sparsestep_path(*collection, alphas=[100.0, 1.0])
    assert_allclose(path.coefs, sparsestep_path(X, y, alphas=[100.0, 1.0]).coefs, rtol=1e-9)


def test_paths_and_summaries_can_be_compared():
    model = SparseStepCV(5).fit(*table(40, 3))
    assert model.path_ == model.path_ and hash(model.path_)
    assert model.summary() != model.summary()


# --- equal columns --------------------------------------------------------------------------------


@settings(max_examples=40)
@given(
    seed=st.integers(0, 1000),
    copies=st.lists(
        st.tuples(st.integers(0, 3), st.sampled_from([1.0, -1.0, 3.7, -1e-3])), max_size=4
    ),
    log_alpha=st.floats(-12, 8),
    polish=st.sampled_from([None, "swap"]),
    solver=st.sampled_from(["auto", "auto", "reference"]),
)
def test_of_equal_columns_the_first_is_kept(seed, copies, log_alpha, polish, solver):
    X, y = table(30, 4, seed, mean=0.0)
    wide = np.column_stack([X, *(X[:, j] * scale for j, scale in copies)])
    model = SparseStep(2.0**log_alpha, polish=polish, solver=solver)
    expected = clone(model).fit(X, y).coef_
    coef = clone(model).fit(wide, y).coef_
    assert not coef[4:].any()
    assert_allclose(coef[:4], expected, rtol=1e-8)


def test_of_equal_columns_the_first_is_kept_along_every_path():
    X, y = table(60, 4)
    wide = np.column_stack([X[:, 2], X, 2.0 * X])
    for estimator in ALL:
        model = clone(estimator).fit(wide, y)
        alone = clone(estimator).fit(X, y)
        assert_allclose(model.coef_[[1, 2, 0, 4]], alone.coef_, rtol=1e-8)
        assert_array_equal(model.coef_[[3, 5, 6, 7, 8]], 0.0)
    path = sparsestep_path(wide, y, alphas="sizes")
    assert_array_equal(path.n_nonzero, [0, 1, 2, 3, 4])
    assert not path.coefs[[3, 5, 6, 7, 8]].any()


def test_of_equal_columns_the_one_with_the_smaller_penalty_is_kept():
    X, y = table(60, 3)
    wide = np.column_stack([X, X])
    for factor, kept in [
        ([np.inf, 1, 1, 1, 1, 1], 3),
        ([1, 1, 1, 0, 1, 1], 3),
        ([0, 1, 1, 1, 1, 1], 0),
        ([1, 1, 1, 1, 1, 1], 0),
    ]:
        coef = SparseStep(alpha=10.0, penalty_factor=factor).fit(wide, y).coef_
        assert coef[kept] != 0 and coef[3 - kept] == 0


# --- invariances ----------------------------------------------------------------------------------


def assert_same_model(model, other, scale_x=1.0, scale_y=1.0):
    """The second is the first for columns times `scale_x` and a target times `scale_y`."""
    assert_array_equal(other.coef_ != 0, model.coef_ != 0)
    assert_allclose(other.coef_ * scale_x / scale_y, model.coef_, rtol=1e-8)
    assert_allclose(other.alpha_, model.alpha_ * scale_y**2, rtol=1e-8)


def for_alphas_of(estimator, factor):
    """A copy whose given alpha is multiplied; an automatic grid follows by itself."""
    model = clone(estimator)
    return model.set_params(alpha=model.alpha * factor) if hasattr(model, "alpha") else model


models = st.one_of(
    st.builds(
        SparseStep,
        alpha=st.floats(0.01, 300.0),
        polish=st.sampled_from([None, "swap"]),
        fit_intercept=st.booleans(),
    ),
    st.builds(
        SparseStepCV, alphas=st.just(12), cv=st.just(3), rule=st.sampled_from(["min", "1se"])
    ),
    st.builds(SparseStepIC, criterion=st.sampled_from(["aic", "bic"]), alphas=st.just(12)),
)
seeds = st.integers(0, 10**6)
sizes = st.integers(1, 6)
powers = st.floats(-4, 4).map(lambda x: 10.0**x)
signs = st.sampled_from([-1.0, 1.0])


@settings(max_examples=40)
@given(estimator=models, seed=seeds, m=sizes, data=st.data())
def test_units_of_the_columns_do_not_matter(estimator, seed, m, data):
    X, y = table(40, m, seed)
    scale = np.array(data.draw(st.lists(powers, min_size=m, max_size=m)))
    scale *= data.draw(st.lists(signs, min_size=m, max_size=m))
    model = clone(estimator).fit(X, y)
    other = clone(estimator).fit(X * scale, y)
    assert_same_model(model, other, scale_x=scale)
    assert_allclose(other.intercept_, model.intercept_, rtol=1e-7)


@settings(max_examples=40)
@given(estimator=models, seed=seeds, m=sizes, scale=st.tuples(powers, signs).map(np.prod))
def test_units_of_the_target_scale_alpha_by_their_square(estimator, seed, m, scale):
    X, y = table(40, m, seed)
    model = clone(estimator).fit(X, y)
    other = for_alphas_of(estimator, scale**2).fit(X, scale * y)
    assert_same_model(model, other, scale_y=scale)
    assert_allclose(other.predict(X), scale * model.predict(X), rtol=1e-8)


@settings(max_examples=40)
@given(estimator=models, seed=seeds, m=sizes, shift=st.floats(-1e3, 1e3), of_y=st.floats(-1e3, 1e3))
def test_shifts_change_only_the_intercept(estimator, seed, m, shift, of_y):
    X, y = table(40, m, seed)
    estimator = clone(estimator).set_params(fit_intercept=True)
    model = clone(estimator).fit(X, y)
    shifts = shift * np.cos(np.arange(m))
    other = clone(estimator).fit(X + shifts, y + of_y)
    assert_same_model(model, other)
    expected = model.intercept_ + of_y - shifts @ model.coef_
    assert_allclose(other.intercept_, expected, rtol=1e-8, atol=1e-7)


@settings(max_examples=40)
@given(estimator=models, seed=seeds, m=sizes, data=st.data())
def test_a_weight_is_so_many_copies_and_zero_is_none(estimator, seed, m, data):
    X, y = table(40, m, seed)
    weight = np.array(data.draw(st.lists(st.integers(0, 3), min_size=40, max_size=40)))
    weight[:12] = np.maximum(weight[:12], 1)
    # What a row of weight zero contains says nothing.
    X[weight == 0], y[weight == 0] = 1e3, -1e4
    copies = np.repeat(np.arange(40), weight)
    weighted, copied = clone(estimator), clone(estimator)
    if hasattr(estimator, "cv"):
        fold = np.arange(40) % 4
        weighted.set_params(cv=[np.nonzero(fold != k) + np.nonzero(fold == k) for k in range(4)])
        fold = fold[copies]
        copied.set_params(cv=[np.nonzero(fold != k) + np.nonzero(fold == k) for k in range(4)])
    weighted.fit(X, y, sample_weight=weight)
    copied.fit(X[copies], y[copies])
    assert_same_model(copied, weighted)
    assert_allclose(weighted.intercept_, copied.intercept_, rtol=1e-8)
    one, other = weighted.summary(), copied.summary()
    assert one.cells() == other.cells()
    for fact in ("variables kept", "alpha", "intercept"):
        assert one.facts[fact] == other.facts[fact]
    if hasattr(estimator, "cv"):
        assert_allclose(weighted.alphas_, copied.alphas_, rtol=1e-9)
        assert_allclose(weighted.mse_path_, copied.mse_path_, rtol=1e-8)
        assert_allclose(weighted.cv_se_, copied.cv_se_, rtol=1e-6)


# --- several targets ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "estimator",
    [
        *ALL,
        SparseStep(n_nonzero=2),
        SparseStepCV(12, cv=ShuffleSplit(3, random_state=0), rule="1se", n_jobs=2),
        SparseStepCV([50.0, 5.0], cv=4),
    ],
)
def test_each_column_of_y_is_fitted_as_if_alone(estimator):
    X, y = table(60, 5)
    # Targets whose alphas have nothing in common: one grid for all would be too coarse for each.
    Y = np.column_stack([y, 1e6 * (X[:, 1] - X[:, 0]) + 1e5 * y[::-1], np.ones(60), 1e-4 * y[::-1]])
    if getattr(estimator, "n_nonzero", None):
        Y = Y[:, [0, 1, 3]]
    both = clone(estimator).fit(X, Y)
    assert both.coef_.shape == (Y.shape[1], 5) and both.intercept_.shape == (Y.shape[1],)
    for t, column in enumerate(Y.T):
        alone = clone(estimator).fit(X, column)
        assert_allclose(both.coef_[t], alone.coef_, rtol=1e-8)
        assert_allclose(both.intercept_[t], alone.intercept_, rtol=1e-8)
        assert_allclose(both.alpha_[t], alone.alpha_, rtol=1e-10)
        assert_allclose(both.predict(X)[:, t], alone.predict(X), rtol=1e-8)
        for name in ("alphas_", "mse_path_", "cv_mean_", "cv_se_", "criterion_path_"):
            if hasattr(alone, name):
                found, expected = getattr(both, name)[t], getattr(alone, name)
                assert_allclose(found, expected, rtol=1e-7, atol=1e-12 * abs(expected).max())
        if hasattr(alone, "path_"):
            assert_allclose(both.path_[t].coefs, alone.path_.coefs, rtol=1e-8)


@every_estimator
def test_a_single_column_of_y_keeps_its_two_dimensions(estimator):
    X, y = table(40, 3)
    model = clone(estimator).fit(X, y[:, None])
    assert model.coef_.shape == (1, 3) and model.predict(X).shape == (40, 1)
    assert_array_equal(model.coef_[0], clone(estimator).fit(X, y).coef_)


@pytest.mark.parametrize("kind", [pl.DataFrame, pa.table])
def test_other_columns_than_those_of_the_fit_are_named_in_short(kind):
    X, y = table(40, 3)
    columns = {f"column{j}": X[:, j % 3] for j in range(500)}
    model = SparseStep(alpha=1e3).fit(kind(columns), y)
    for changed, said in [
        (dict(reversed(columns.items())), "not in the order of those that the model was fitted"),
        (
            {"a": y, **columns},
            r"^X has 'a', which it was not fitted to; give the columns of the fit, in the same",
        ),
        (
            {"a": y},
            r"^X lacks 'column0', 'column1', 'column2' and 497 more columns, which the model was "
            "fitted to and has 'a', which it was not",
        ),
    ]:
        with pytest.raises(ValueError, match=said) as caught:
            model.predict(kind(changed))
        assert len(str(caught.value)) < 250


def target_names(model):
    return document_of(model)["question"]["target"]


@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow", "dask"])
def test_targets_keep_the_names_of_y(library):
    X, y = table(40, 3)
    both = {"u": y, "v": X[:, 0] - y}
    frame = pd.DataFrame(both)
    if library == "polars":
        frame = pl.DataFrame(both)
    elif library == "pyarrow":
        frame = pa.table(both)
    elif library == "dask":
        X, frame = dd.from_pandas(pd.DataFrame(X), 2), dd.from_pandas(frame, 2)
    for estimator in ALL:
        assert target_names(clone(estimator).fit(X, frame)) == ["u", "v"]
        if library != "pyarrow":
            assert target_names(clone(estimator).fit(X, frame["v"])) == ["v"]


def test_targets_without_names_of_their_own_are_numbered():
    X, y = table(40, 3)
    both = np.column_stack([y, X[:, 0]])
    for several in (both, pd.DataFrame(both)):
        assert target_names(SparseStep().fit(X, several)) == ["y0", "y1"]
    for one in (y, pd.Series(y), pl.Series(y)):
        assert target_names(SparseStep().fit(X, one)) == ["y"]


def test_a_target_is_chosen_by_its_number_or_name():
    X, y = table(40, 3)
    model = SparseStep(alpha=2.0).fit(X, pd.DataFrame({"u": y, "v": X[:, 0] - y}))
    assert str(model.summary(target="v")) == str(model.summary(target=np.int64(1)))
    assert "target          v (2 of 2; target= chooses)\n" in str(model.summary(target="v"))
    assert "target" not in SparseStep().fit(X, pd.Series(y, name="u")).summary().facts
    with pytest.raises(ValueError, match=r"target 'w' is not the name of one of 'u', 'v'\."):
        model.summary(target="w")
    with pytest.raises(ValueError, match="target must lie between 0 and 1; got 2"):
        model.summary(target=2)
    for wrong in (0.0, None, True):
        with pytest.raises(ValueError, match="must be the number or name of a target; got"):
            model.summary(target=wrong)
    with pytest.raises(ValueError, match="exactly n_nonzero=1 variable of target 'v'"):
        SparseStep(n_nonzero=1).fit(X, pd.DataFrame({"u": y, "v": 0.0 * y}))


# --- input of every kind --------------------------------------------------------------------------


@pytest.mark.parametrize(
    "estimator",
    [
        SparseStep(10.0),
        SparseStepIC(alphas=12),
        SparseStepCV(12, cv=4),
        SparseStepCV(12, cv=KFold(4, shuffle=True, random_state=0)),
        SparseStepCV(12, cv=ShuffleSplit(3, random_state=0)),
    ],
)
@pytest.mark.parametrize("kind", ["csr", "csc", "coo"])
def test_sparse_rows_are_dense_ones(estimator, kind):
    X, y = table(60, 5)
    X[X < 5] = 0.0
    weight = np.resize([1.0, 2.0, 0.5], 60)
    dense = clone(estimator).fit(X, y, sample_weight=weight)
    for sparse in (getattr(sp, f"{kind}_array")(X), getattr(sp, f"{kind}_matrix")(X)):
        other = clone(estimator).fit(sparse, y, sample_weight=weight)
        assert_allclose(other.coef_, dense.coef_, rtol=1e-9)
        assert_allclose(other.predict(sparse), dense.predict(X), rtol=1e-9)


@pytest.mark.parametrize("estimator", [SparseStep(10.0), SparseStepCV(5, cv=3)])
def test_sparse_rows_are_not_made_dense(estimator):
    n, m = 100_000, 100
    X = sp.random_array((n, m), density=0.002, format="csr", rng=np.random.default_rng(0))
    y = X @ np.arange(m) + np.random.default_rng(1).standard_normal(n)
    tracemalloc.start()
    try:
        model = clone(estimator).fit(X, y)
        model.predict(X)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 0.4 * 8 * n * m
    assert np.count_nonzero(model.coef_) > 50


def tables(X, names):
    """The same rows in every library's table."""
    frame = pd.DataFrame(X, columns=names)
    arrow = pa.table(dict(zip(names, X.T, strict=True)))
    return {
        "pandas": frame,
        "pandas nullable": frame.astype("Float64"),
        "polars": pl.DataFrame(X, schema=names),
        "pyarrow table": arrow,
        "pyarrow batch": arrow.to_batches()[0],
    }


@every_estimator
def test_tables_keep_their_names(estimator):
    X, y = table(40, 3)
    names = ["age", "bmi", "blood pressure"]
    expected = clone(estimator).fit(X, y)
    all_tables = tables(X, names)
    for kind, rows in all_tables.items():
        model = clone(estimator).fit(rows, y)
        assert list(model.feature_names_in_) == names, kind
        assert model.n_features_in_ == 3
        assert_allclose(model.coef_, expected.coef_, rtol=1e-12)
        assert set(model.summary().names) <= set(names)
        # Any library's table of the same columns will do for a prediction.
        for other in all_tables.values():
            assert_allclose(model.predict(other), expected.predict(X), rtol=1e-12)
        if hasattr(model, "path_"):
            assert model.path_.feature_names == tuple(names)
        with pytest.warns(UserWarning, match="does not have valid feature names"):
            model.predict(X)
    for kind, rows in tables(X[:, [1, 0, 2]], ["bmi", "age", "blood pressure"]).items():
        with pytest.raises(ValueError, match=r"(?s)feature names|X are not in the order"):
            clone(estimator).fit(all_tables[kind], y).predict(rows)
    path = sparsestep_path(all_tables["polars"], y, alphas=5)
    assert path.feature_names == tuple(names)


def test_a_refit_without_names_forgets_them():
    X, y = table(40, 3)
    model = SparseStep().fit(tables(X, ["a", "b", "c"])["polars"], y)
    model.fit(X, y)
    assert not hasattr(model, "feature_names_in_")
    anew = model.predict(tables(X, ["u", "v", "w"])["polars"])
    assert_allclose(anew, model.predict(X), rtol=1e-12)


def test_columns_of_other_types_in_tables():
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.integers(0, 9, 50), rng.integers(0, 2, 50), rng.integers(0, 99, 50)])
    y = X @ [1.0, 2.0, 0.0] + rng.standard_normal(50)
    expected = SparseStep().fit(X, y).coef_
    frame = pl.DataFrame({"i": X[:, 0], "b": X[:, 1] == 1, "u": X[:, 2].astype(np.uint8)})
    for rows in (frame, frame.to_arrow(), frame.cast({"u": pl.Decimal(10, 2)}).to_arrow()):
        assert_allclose(SparseStep().fit(rows, y).coef_, expected, rtol=1e-9)
    for target in (pl.Series(y), pa.array(y), pa.chunked_array([y[:9], y[9:]])):
        assert_allclose(SparseStep().fit(frame, target).coef_, expected, rtol=1e-9)
    weight = pl.Series(np.ones(50))
    assert_allclose(SparseStep().fit(frame, y, sample_weight=weight).coef_, expected, rtol=1e-9)


def test_bad_columns_are_named():
    X, y = table(30, 2)
    with pytest.raises(TypeError, match=r"LazyFrame; call its collect\(\)"):
        SparseStep().fit(pl.LazyFrame(X), y)
    spark = type("DataFrame", (), {"__module__": "pyspark.sql"})()
    for act in (SparseStep().fit, Moments.from_data):
        with pytest.raises(TypeError, match="X is a Spark frame; read_moments"):
            act(spark, y)
    text = {"size": X[:, 0], "town": ["Ulm"] * 30}
    for rows in (pd.DataFrame(text), pl.DataFrame(text), pa.table(text)):
        with pytest.raises(ValueError, match=r"Column 'town' holds values of type .* turn it into"):
            SparseStep().fit(rows, y)
    model = SparseStep().fit(pd.DataFrame({"a": X[:, 0], "b": X[:, 1]}), y)
    gap = {"a": X[:, 0], "b": [None if i == 4 else v for i, v in enumerate(X[:, 1])]}
    for rows in (pd.DataFrame(gap), pl.DataFrame(gap), pa.table(gap)):
        for act in (lambda rows: SparseStep().fit(rows, y), model.predict):
            with pytest.raises(ValueError, match="Column 'b' has the value nan in row 4"):
                act(rows)
    X[7, 1] = np.inf
    with pytest.raises(ValueError, match="Column 1 has the value inf in row 7"):
        SparseStep().fit(X, y)


@every_estimator
def test_moments_give_what_their_rows_do(estimator):
    X, y = table(40, 3)
    frame = tables(X, ["a", "b", "c"])["pandas"]
    by_rows = clone(estimator).fit(frame, y)
    folds = [Moments.from_data(frame[k : k + 10], y[k : k + 10]) for k in range(0, 40, 10)]
    moments = folds if hasattr(estimator, "cv") else Moments.merge(folds)
    by_moments = clone(estimator).fit_moments(moments)
    assert_allclose(by_moments.coef_, by_rows.coef_, rtol=1e-9)
    assert str(by_moments.summary()) == str(by_rows.summary())
    assert_allclose(by_moments.predict(frame), by_rows.predict(frame), rtol=1e-9)
    assert list(by_moments.feature_names_in_) == ["a", "b", "c"]


def test_moments_without_rows_or_columns_are_refused():
    X, y = table(30, 1)
    with pytest.raises(ValueError, match="A fit needs at least 2 rows; X has 1 sample"):
        SparseStep().fit_moments(Moments.from_data(X[:1], y[:1]))
    with pytest.raises(ValueError, match="X has 0 feature"):
        SparseStep().fit_moments(Moments.from_data(X[:, :0], y))


# --- persistence and the rest of scikit-learn -----------------------------------------------------


@every_estimator
def test_models_persist(estimator):
    X, y = table(40, 3)
    model = clone(estimator).fit(tables(X, ["a", "b", "c"])["pandas"], y)
    file = BytesIO()
    joblib.dump(model, file)
    file.seek(0)
    for other in (pickle.loads(pickle.dumps(model)), joblib.load(file)):
        assert str(other.summary()) == str(model.summary())
        assert_array_equal(other.coef_, model.coef_)
        assert list(other.feature_names_in_) == ["a", "b", "c"]
        if hasattr(model, "path_"):
            assert_array_equal(other.path_.coefs, model.path_.coefs)


@every_estimator
def test_parameters_can_be_read_set_and_cloned(estimator):
    wanted = {"gamma_0": 1e3, "polish": "swap", "penalty_factor": [1.0, 0.0, np.inf]}
    model = clone(estimator).set_params(**wanted)
    assert {name: model.get_params()[name] for name in wanted} == wanted
    copy = clone(model.fit(*table(30, 3)))
    assert copy.get_params() == model.get_params()
    assert not hasattr(copy, "coef_")
    with pytest.raises(ValueError, match="Invalid parameter 'lambda'"):
        copy.set_params(**{"lambda": 1})


def test_in_a_pipeline_and_a_grid_search():
    X, y = table(60, 4)
    pipe = make_pipeline(StandardScaler(), PolynomialFeatures(2, include_bias=False), SparseStep())
    search = GridSearchCV(pipe, {"sparsestep__alpha": [0.1, 10.0, 1e4]}, cv=4).fit(X, y)
    assert search.best_params_ == {"sparsestep__alpha": 10.0}
    inside = make_pipeline(StandardScaler(), SparseStepCV(10, cv=4)).fit(X, y)
    # Standardizing twice is standardizing once.
    assert_allclose(inside.predict(X), SparseStepCV(10, cv=4).fit(X, y).predict(X), rtol=1e-9)


def test_with_a_column_transformer_and_a_transformed_target():
    X, y = table(60, 2, noise=0.1)
    y = y + 4.0 * (np.arange(60) % 3 == 1)
    frame = pd.DataFrame({"a": X[:, 0], "b": X[:, 1], "c": np.resize(["u", "v", "w"], 60)})
    columns = make_column_transformer(
        (OneHotEncoder(sparse_output=True), ["c"]),
        (StandardScaler(), ["a", "b"]),
        sparse_threshold=1.0,
    )
    model = make_pipeline(columns, SparseStepIC(alphas=20)).fit(frame, y)
    assert sp.issparse(columns.fit_transform(frame))
    assert_allclose(model[-1].coef_, [0, 4, 0, 2, 0], atol=0.3)
    target = TransformedTargetRegressor(SparseStepCV(10, cv=3), func=np.log, inverse_func=np.exp)
    positive = np.exp(y / 10)
    target.fit(X, positive)
    assert_allclose(
        target.predict(X), np.exp(SparseStepCV(10, cv=3).fit(X, y / 10).predict(X)), rtol=1e-9
    )


@every_estimator
def test_selects_columns_for_others(estimator):
    X, y = table(60, 6)
    selector = SelectFromModel(clone(estimator), threshold=1e-300).fit(X, y)
    assert_array_equal(selector.get_support(), clone(estimator).fit(X, y).coef_ != 0)
    assert 0 < selector.transform(X).shape[1] < 6


@pytest.mark.filterwarnings("ignore:The least populated class")
@pytest.mark.parametrize("cv", [GroupKFold(3), LeaveOneGroupOut(), StratifiedGroupKFold(3)])
def test_splitters_by_group_ask_for_groups(cv):
    X, y = table(30, 3)
    words = rf"{type(cv).__name__} keeps groups of rows together; .* by fit\(X, y, groups=\.\.\.\)"
    with pytest.raises(ValueError, match=words):
        SparseStepCV(cv=cv).fit(X, np.round(y))
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        SparseStepCV(cv=cv).fit(X, y, groups=[1, 2])


def test_weights_and_groups_are_routed():
    X, y = table(60, 4, noise=4.0)
    weight, groups = np.resize([0.1, 5.0, 1.0], 60), np.resize(np.arange(7), 60)
    with sklearn.config_context(enable_metadata_routing=True):
        asks = (
            SparseStep().set_fit_request(sample_weight=True).set_score_request(sample_weight=True)
        )
        search = GridSearchCV(asks, {"alpha": [1.0, 30.0]}, cv=3)
        search.fit(X, y, sample_weight=weight)
        direct = SparseStep(**search.best_params_).fit(X, y, sample_weight=weight)
        assert_array_equal(search.best_estimator_.coef_, direct.coef_)
        assert np.any(direct.coef_ != clone(direct).fit(X, y).coef_)

        model = SparseStepCV(5, cv=GroupKFold(3))
        pipe = make_pipeline(
            StandardScaler().set_fit_request(sample_weight=False),
            model.set_fit_request(sample_weight=True, groups=True),
        ).fit(X, y, sample_weight=weight, groups=groups)
        alone = clone(model).fit(StandardScaler().fit_transform(X), y, weight, groups=groups)
        assert_array_equal(pipe[-1].mse_path_, alone.mse_path_)

        scores = cross_validate(
            SparseStepIC(alphas=5)
            .set_fit_request(sample_weight=True)
            .set_score_request(sample_weight=True),
            X,
            y,
            params={"sample_weight": weight},
            return_estimator=True,
            cv=2,
            error_score="raise",
        )
        first = SparseStepIC(alphas=5).fit(X[30:], y[30:], sample_weight=weight[30:])
        assert_array_equal(scores["estimator"][0].coef_, first.coef_)


def test_verbose_says_what_was_fitted_and_chosen(capsys):
    X, y = table(40, 3)
    SparseStepCV(7, cv=3).fit(X, y)
    assert capsys.readouterr().out == ""
    model = SparseStepCV(7, cv=3, verbose=1).fit(X, y)
    said = capsys.readouterr().out
    assert f"7 alphas from {model.alphas_[0]:.3g} to {model.alphas_[-1]:.3g}" in said
    assert f"alpha {model.alpha_:.5g} keeps {np.count_nonzero(model.coef_)} variables" in said
    SparseStepCV(7, cv=3, verbose=1).fit(X[:, :1], X[:, 0])
    assert "keeps 1 variable\n" in capsys.readouterr().out


# --- what is refused ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("estimator", "words"),
    [
        (SparseStep(alpha=-1.0), "alpha must be finite and not negative; got -1.0"),
        (SparseStep(alpha=np.nan), "alpha must be finite and not negative; got nan"),
        (SparseStep(alpha="1"), "alpha must be a number; got '1'"),
        (SparseStep(alpha=[1.0, 2.0]), "alpha must be a number; got"),
        (SparseStep(n_nonzero=-1), "n_nonzero must be a whole number of at least 0; got -1"),
        (SparseStep(n_nonzero=1.5), "n_nonzero must be a whole number"),
        (SparseStep(n_nonzero=True), "n_nonzero must be a whole number"),
        (SparseStep(polish="drop"), "polish must be None or 'swap'; got 'drop'"),
        (SparseStep(solver="fast"), "solver must be 'auto' or 'reference'; got 'fast'"),
        (SparseStep(gamma_0="big"), "gamma_0 must be a number; got 'big'"),
        (SparseStep(gamma_step=1.0), "gamma_step must be greater than 1; got 1.0"),
        (SparseStep(gamma_stop=0.0), "gamma_stop must be positive"),
        (SparseStep(t_max=0), "t_max must be a whole number of at least 1; got 0"),
        (SparseStep(t_max=2.5), "t_max must be a whole number of at least 1; got 2.5"),
        (SparseStep(epsilon=-1.0), "epsilon must not be negative; got -1.0"),
        (SparseStep(penalty_factor=[1, 1]), "one number for each of the 3 columns"),
        (
            SparseStep(penalty_factor=[1, -1, 1]),
            r"penalty_factor\[1\] is -1.0; it must be 0, inf, or between",
        ),
        (SparseStep(penalty_factor=[1, np.nan, 1]), r"penalty_factor\[1\] is nan"),
        (SparseStep(penalty_factor=["a", 1, 1]), "penalty_factor must be numbers"),
        (SparseStepCV(alphas=1), "alphas must be a whole number of at least 2; got 1"),
        (SparseStepCV(alphas="sizes"), "alphas must be how many to try, or a list of numbers"),
        (SparseStepCV(alphas=[]), "alphas must be how many to try, or a list of numbers"),
        (SparseStepCV(alphas=[1.0, -2.0]), "alphas must be finite and not negative; got -2.0"),
        (SparseStepCV(rule="2se"), "rule .*'paired', '1se'.*; got '2se'"),
        (SparseStepCV(rule="1se", cv=ONE_SPLIT), "rule='1se' needs at least two splits"),
        (SparseStepCV(rule="paired", cv=ONE_SPLIT), "rule='paired' needs at least two splits"),
        (SparseStepCV(shrink=True), "shrink must be None or 'cv'; got True"),
        (SparseStepCV(fit_intercept="no"), "^fit_intercept must be True or False; got 'no'.$"),
        (SparseStepCV(standardize=1), "^standardize must be True or False; got 1.$"),
        (SparseStepCV(n_jobs=0), "^n_jobs must be None or a whole number but 0; got 0.$"),
        (SparseStepCV(n_jobs="x"), "^n_jobs must be None or a whole number but 0; got 'x'.$"),
        (SparseStepIC("cp"), "criterion must be one of aic, bic, ebic, gic; got 'cp'"),
    ],
)
def test_parameters_that_make_no_sense(estimator, words):
    with pytest.raises(ValueError, match=words):
        estimator.fit(*table(30, 3))


@pytest.mark.parametrize(
    "kind", [pd.DataFrame, pl.DataFrame, pa.table], ids=["pandas", "polars", "pyarrow"]
)
def test_a_text_among_numbers_is_named_with_its_row(kind):
    texts = ["1.5", None, "2", "?", "1e3", "x", "7"]
    data = {"a": np.arange(7.0), "b": texts}
    words = r"Column 'b' holds '\?' in row 3, while 4 of its 6 values read as numbers; correct"
    with pytest.raises(ValueError, match=words):
        SparseStep().fit(kind(data), np.arange(7.0))
    for texts in (["Ulm"] * 7, ["1", "2", "3", "4", "5 m", "6 m", "7 m", "8 m"]):
        data = {"a": np.arange(len(texts)), "b": texts}
        with pytest.raises(ValueError, match=r"Column 'b' holds values of type .* turn it into"):
            SparseStep().fit(kind(data), np.arange(len(texts)))


def test_a_text_among_the_numbers_of_new_rows_is_named_with_its_row():
    X, y = table(30, 2)
    X = pd.DataFrame(X, columns=["a", "b"])
    new = X.astype(object)
    new.iloc[4, 1] = "n/a"
    path = sparsestep_path(X, y, alphas=3)
    for predict in (SparseStep().fit(X, y).predict, path.predict):
        with pytest.raises(ValueError, match="Column 'b' holds 'n/a' in row 4, while 29 of"):
            predict(new)


@pytest.mark.parametrize(
    "column",
    [
        pd.date_range("2020", periods=30),
        pd.Categorical(["Ulm", "Bonn"] * 15),
        ["1"] * 29 + ["?"],
        pd.array([1] * 29 + [None], dtype="Int64"),
        pd.Series([Decimal(1)] * 29 + [pd.NA], dtype=object),
        [{}] * 30,
        np.ones(30) + 1j,
        [-np.inf] * 30,
    ],
    ids=str,
)
def test_every_door_refuses_in_the_same_words(column):
    X, y = table(30, 2)
    frame = pd.DataFrame(X, columns=["a", "b"])
    model, path = SparseStep().fit(frame, y), sparsestep_path(frame, y, alphas=3)
    said = set()
    for act in (
        lambda rows: SparseStepCV(3, cv=ONE_SPLIT).fit(rows, y),
        lambda rows: Moments.from_data(rows, y),
        lambda rows: Moments.from_folds(rows, y, np.arange(30) % 3),
        model.predict,
        path.predict,
    ):
        with pytest.raises(ValueError, match=r"Column 'b' .*in row|Column 'b' .*type") as error:
            act(frame.assign(b=column))
        said.add(str(error.value))
    assert len(said) == 1


def test_numbers_of_any_type_are_read_at_every_door():
    X, y = table(30, 2)
    whole = np.round(X)
    expected = Moments.from_data(whole, y)
    coef = SparseStep().fit(whole, y).coef_
    for rows in (
        whole.astype(object),
        whole.astype(str),
        whole.astype(np.longdouble),
        pd.DataFrame(whole).map(Decimal),
        pd.DataFrame(whole).astype({0: str, 1: "Int64"}),
        pl.DataFrame(whole).cast(pl.Decimal(10, 2)),
        pa.record_batch({"a": whole[:, 0], "b": [Decimal(v) for v in whole[:, 1]]}),
    ):
        assert_allclose(Moments.from_data(rows, y).xtx, expected.xtx, rtol=1e-12)
        assert_allclose(SparseStep().fit(rows, y).coef_, coef, rtol=1e-9)


def test_rows_of_weight_zero_may_hold_anything():
    X, y = table(30, 2)
    expected = SparseStep().fit(X, y).coef_
    X, y = np.vstack([X, [[np.nan, np.inf]]]), np.append(y, np.nan)
    weight = np.append(np.ones(30), 0.0)
    assert_allclose(SparseStep().fit(X, y, sample_weight=weight).coef_, expected, rtol=1e-9)


def arrow(frame):
    """The same as a pyarrow table, which may have two columns of one name."""
    return pa.Table.from_arrays(list(map(pa.array, frame.to_numpy().T)), list(map(str, frame)))


@every_estimator
@pytest.mark.parametrize("kind", [pd.DataFrame, arrow], ids=["pandas", "pyarrow"])
def test_frames_without_columns_or_with_two_of_one_name_are_refused(estimator, kind):
    X, y = table(30, 3)
    twice = pd.DataFrame(X, columns=["a", "b", "a"])
    for columns, words in [
        (twice[[]], "X has no columns; give at least one"),
        (twice, "X has more than one column 'a'; rename one"),
        (twice.set_axis([0, 1, 0], axis=1), r"X has more than one column '?0'?; rename one"),
    ]:
        with pytest.raises(ValueError, match=words):
            clone(estimator).fit(kind(columns), y)
    with pytest.raises(ValueError, match="y has more than one column 'a'; rename one"):
        clone(estimator).fit(X, twice)
    fitted = clone(estimator).fit(pd.DataFrame(X, columns=list("abc")), y)
    with pytest.raises(ValueError, match="X has more than one column 'a'; rename one"):
        fitted.predict(kind(twice))


@every_estimator
def test_weights_that_make_no_sense(estimator):
    X, y = table(30, 3)
    for weight, words in [
        (np.ones(29), r"sample_weight has shape \(29,\) but X has 30 rows"),
        (-np.ones(30), "sample_weight is -1.0 in row 0"),
        (np.resize([1.0, np.nan], 30), "sample_weight is nan in row 1"),
        (["heavy"] * 30, "sample_weight must be numbers"),
        (np.zeros(30), "weight"),
    ]:
        with pytest.raises(ValueError, match=words):
            clone(estimator).fit(X, y, sample_weight=weight)


def test_one_weight_for_all_rows():
    X, y = table(30, 3)
    weighted = SparseStep(alpha=20.0).fit(X, y, sample_weight=2.0)
    assert_allclose(weighted.coef_, SparseStep(alpha=10.0).fit(X, y).coef_, rtol=1e-9)


@pytest.mark.parametrize("kind", ["raise", "warn"])
def test_fits_do_not_mind_what_numpy_does_about_underflow(kind):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 40))
    y = X[:, :4].sum(axis=1) + rng.normal(size=300)
    folds = [Moments.from_data(X[i::4], y[i::4]) for i in range(4)]

    def fits():
        return [
            SparseStepCV().fit(X, y).coef_,
            SparseStepCV().fit_moments(folds).coef_,
            SparseStepIC().fit(X, y).coef_,
            SparseStepIC(polish="swap").fit(X, y).coef_,
            SparseStep(n_nonzero=4).fit_moments(Moments.merge(folds)).coef_,
            sparsestep_path(X, y, alphas="sizes").coefs,
        ]

    with np.errstate(under=kind), warnings.catch_warnings():
        warnings.simplefilter("error")
        found = fits()
    for one, other in zip(found, fits(), strict=True):
        assert np.array_equal(one, other)
