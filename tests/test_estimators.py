"""The estimators as scikit-learn's users meet them: input of every kind, and no surprises.

What `test_hostile.py` lists is tried there, with every estimator.
"""

import pickle
from decimal import Decimal
from functools import partial

import dask.dataframe as dd
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
from sklearn.exceptions import NotFittedError
from sklearn.feature_selection import SelectFromModel
from sklearn.model_selection import (
    GridSearchCV,
    GroupKFold,
    KFold,
    LeaveOneGroupOut,
    ShuffleSplit,
    StratifiedGroupKFold,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import estimator_checks_generator

from rows import assert_same_model, scaled_alpha, table
from source_data import peak_of
from sparsestep import (
    Moments,
    SparseStep,
    SparseStepCV,
    SparseStepIC,
    load_model,
    save_model,
    sparsestep_path,
)
from sparsestep.model.file import document_of

ALL = [SparseStep(alpha=10.0), SparseStepCV(12, cv=4), SparseStepIC(alphas=12)]
RULES = [("1se", None), ("paired", None), ("average", None), ("min", "cv"), ("average", "cv")]
RULES = [SparseStepCV(12, cv=4, rule=rule, shrink=shrink) for rule, shrink in RULES]
# What a fit chooses, and from what.
CHOSEN = ["coef_", "intercept_", "alpha_", "alpha_min_", "alpha_paired_", "alpha_1se_"]
CHOSEN += ["inclusion_", "shrinkage_", "cv_paired_se_"]
ONE_SPLIT = ShuffleSplit(1, random_state=0)
X, Y = table(30, 3)
ABC = pd.DataFrame(X, columns=list("abc"))
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


# --- the model itself -----------------------------------------------------------------------------


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
def test_penalty_factors_keep_always_and_never_also_by_name(estimator, factor):
    X, y = table(60, 4)
    X, y = pd.DataFrame(X, columns=list("abcd")), y + 3.0 * X[:, 3]
    expected = clone(estimator).set_params(penalty_factor=[1, 0, 1, np.inf]).fit(X, y)
    without = clone(estimator).set_params(penalty_factor=[1, 0, 1]).fit(X[["a", "b", "c"]], y)
    assert_allclose(expected.coef_, [*without.coef_, 0.0], rtol=1e-9)
    assert_allclose(expected.alpha_, without.alpha_, rtol=1e-9)
    named = clone(clone(estimator).set_params(penalty_factor=factor))
    for data in (X, pl.from_pandas(X), pa.Table.from_pandas(X)):
        assert_array_equal(named.fit(data, y).coef_, expected.coef_)
    assert named.coef_[1] != 0
    assert type(named.get_params()["penalty_factor"]) is type(factor)
    path = sparsestep_path(X, y, alphas=4, penalty_factor=factor)
    other = sparsestep_path(X, y, alphas=4, penalty_factor=[1, 0, 1, np.inf])
    assert_array_equal(path.coefs, other.coefs)


@pytest.mark.parametrize("n", [200, 9])
@pytest.mark.parametrize("solver", ["auto", "reference"])
def test_of_dependent_variables_without_a_penalty_the_last_is_left_out(n, solver):
    rng = np.random.default_rng(n)
    day = np.eye(3)[np.arange(n) % 3]
    X = np.column_stack([rng.normal(size=(n, 6)), day, rng.normal(size=(n, 2))])
    X = np.column_stack([X, X[:, -2:].sum(axis=1)])
    y = X[:, 0] + 2.0 * day[:, 1] + X[:, -1] + rng.normal(size=n)
    model = SparseStep(5.0, penalty_factor=np.repeat([1, 0], 6), solver=solver).fit(X, y)
    assert_array_equal(np.flatnonzero(model.coef_[6:]), [0, 1, 3, 4])
    kept = np.flatnonzero(model.coef_)
    Z = X[:, kept] - X[:, kept].mean(axis=0)
    assert_allclose(model.coef_[kept], np.linalg.lstsq(Z, y - y.mean())[0], rtol=1e-6)


@every_estimator
def test_a_fit_that_fails_leaves_no_model(estimator):
    model, bad = clone(estimator), {"gamma_0": -1.0}
    for columns in (ABC, X[:, :2]):
        with pytest.raises(ValueError, match="gamma_0"):
            model.set_params(**bad).fit(columns, Y)
        for use in (partial(model.predict, X), model.summary):
            with pytest.raises(NotFittedError):
                use()
        model.set_params(gamma_0=1e6).fit(X, Y)


def test_paths_and_summaries_can_be_compared():
    model = SparseStepCV(5).fit(X, Y)
    assert model.path_ == model.path_ and hash(model.path_)
    assert model.summary() != model.summary()


# --- equal columns --------------------------------------------------------------------------------


@settings(max_examples=60)
@given(
    seed=st.integers(0, 1000),
    n=st.sampled_from([30, 30, 3]),
    copies=st.lists(
        st.tuples(st.integers(0, 3), st.sampled_from([1.0, -1.0, 3.7, -1e-3])), max_size=4
    ),
    log_alpha=st.floats(-12, 8),
    polish=st.sampled_from([None, "swap"]),
    solver=st.sampled_from(["auto", "auto", "reference"]),
)
def test_of_equal_columns_the_first_is_kept(seed, n, copies, log_alpha, polish, solver):
    X, y = table(n, 4, seed, mean=0.0)
    wide = np.column_stack([X, *(X[:, j] * scale for j, scale in copies)])
    model = SparseStep(2.0**log_alpha, polish=polish, solver=solver)
    expected = clone(model).fit(X, y).coef_
    coef = clone(model).fit(wide, y).coef_
    assert not coef[4:].any()
    assert_allclose(coef[:4], expected, rtol=1e-8)


def test_of_equal_columns_the_first_is_kept_at_every_size():
    path = sparsestep_path(np.column_stack([X[:, 2], X, 2.0 * X]), Y, alphas="sizes")
    assert_array_equal(path.n_nonzero, [0, 1, 2, 3])
    assert not path.coefs[3:].any()


@pytest.mark.parametrize(
    ("first", "second", "kept"), [(np.inf, 1, 3), (2, 1, 3), (1, 0, 3), (0, 1, 0), (1, 1, 0)]
)
@pytest.mark.parametrize("n", [30, 5])
def test_of_equal_columns_the_one_with_the_smaller_penalty_is_kept(first, second, kept, n):
    factor, both = [first, 1, 1, second, 1, 1], np.column_stack([X, -X])[:n]
    coef = SparseStep(alpha=0.3 * n, penalty_factor=factor).fit(both, Y[:n]).coef_
    assert coef[kept] != 0 and coef[3 - kept] == 0


# --- invariances ----------------------------------------------------------------------------------


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
    st.builds(
        SparseStepIC, criterion=st.sampled_from(["aic", "bic", "ebic", "gic"]), alphas=st.just(12)
    ),
)
factors = st.tuples(st.floats(-4, 4), st.sampled_from([-1.0, 1.0])).map(lambda x: x[1] * 10 ** x[0])


@given(estimator=models, seed=st.integers(0, 10**6), m=st.integers(1, 6), data=st.data())
def test_units_and_origins_do_not_matter(estimator, seed, m, data):
    X, y = table(40, m, seed)
    scale_x = np.array(data.draw(st.lists(factors, min_size=m, max_size=m)))
    scale_y = data.draw(st.sampled_from([1.0]) | factors)
    shift, shift_y = np.zeros(m), 0.0
    if estimator.fit_intercept and data.draw(st.booleans()):
        shift = data.draw(st.floats(-1e3, 1e3)) * np.cos(np.arange(m))
        shift_y = data.draw(st.floats(-1e3, 1e3))
    model = clone(estimator).fit(X, y)
    other = scaled_alpha(estimator, scale_y**2).fit((X + shift) * scale_x, (y + shift_y) * scale_y)
    assert_same_model(model, other, scale_x, scale_y)
    expected = scale_y * (model.intercept_ + shift_y - shift @ model.coef_)
    assert_allclose(other.intercept_, expected, rtol=1e-7, atol=1e-7 * abs(scale_y))


@settings(max_examples=40)
@given(
    estimator=models,
    seed=st.integers(0, 10**6),
    m=st.integers(1, 6) | st.just(130),
    form=st.sampled_from([np.asarray, sp.csr_array]),
    standardize=st.booleans(),
    data=st.data(),
)
def test_a_weight_is_so_many_copies_and_zero_is_none(estimator, seed, m, form, standardize, data):
    X, y = table(40, m, seed)
    estimator = clone(estimator).set_params(standardize=standardize)
    weight = np.array(data.draw(st.lists(st.integers(0, 3), min_size=40, max_size=40)))
    weight[:12] = np.maximum(weight[:12], 1)
    # What a row of weight zero contains says nothing.
    X[weight == 0], y[weight == 0] = 1e3, -1e4
    copies = np.repeat(np.arange(40), weight)
    weighted, copied = clone(estimator), clone(estimator)
    if hasattr(estimator, "cv"):
        for model, fold in ((weighted, np.arange(40) % 4), (copied, copies % 4)):
            splits = [np.nonzero(fold != k) + np.nonzero(fold == k) for k in range(4)]
            model.set_params(cv=splits)
    weighted.fit(form(X), y, sample_weight=weight)
    copied.fit(X[copies], y[copies])
    assert_same_model(copied, weighted)
    assert_allclose(weighted.intercept_, copied.intercept_, rtol=1e-8)
    assert weighted.summary().cells() == copied.summary().cells()


def test_one_weight_for_all_rows():
    weighted = SparseStep(alpha=20.0).fit(X, Y, sample_weight=2.0)
    assert_allclose(weighted.coef_, SparseStep(alpha=10.0).fit(X, Y).coef_, rtol=1e-9)


# --- several targets ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "estimator",
    [
        *(*ALL, *RULES, SparseStep(n_nonzero=2)),
        SparseStepCV(12, cv=ShuffleSplit(3, random_state=0), rule="1se", n_jobs=2),
        SparseStepCV([50.0, 5.0], cv=4),
    ],
)
def test_each_column_of_y_is_fitted_as_if_alone(estimator):
    X, y = table(60, 5)
    # Targets whose alphas have nothing in common: one grid for all would be too coarse for each.
    targets = [y, 1e6 * (X[:, 1] - X[:, 0]) + 1e5 * y[::-1], 1e-4 * y[::-1]]
    if not getattr(estimator, "n_nonzero", None):
        targets.insert(2, np.ones(60))
    both = clone(estimator).fit(X, np.column_stack(targets))
    assert both.coef_.shape == (len(targets), 5) and both.intercept_.shape == (len(targets),)
    for t, column in enumerate(targets):
        alone = clone(estimator).fit(X, column)
        assert_allclose(both.predict(X)[:, t], alone.predict(X), rtol=1e-8)
        for name in (*CHOSEN, "alphas_", "mse_path_", "cv_mean_", "cv_se_", "criterion_path_"):
            if hasattr(alone, name):
                found, expected = getattr(both, name)[t], getattr(alone, name)
                assert_allclose(found, expected, rtol=1e-7, atol=1e-12 * np.abs(expected).max())
        if hasattr(alone, "path_"):
            assert_allclose(both.path_[t].coefs, alone.path_.coefs, rtol=1e-8)


BOTH = {"u": Y, "v": X[:, 0] - Y}
NAMED = (pd.DataFrame(BOTH), pl.DataFrame(BOTH), pa.table(BOTH), dd.from_pandas(pd.DataFrame(BOTH)))
NAMES_OF_Y = [
    *((y, ["u", "v"]) for y in NAMED),
    *((y["v"], ["v"]) for y in NAMED if not isinstance(y, pa.Table)),
    *((y, ["y0", "y1"]) for y in (np.column_stack([Y, Y]), pd.DataFrame({0: Y, 1: Y}))),
    *((y, ["y"]) for y in (Y, pd.Series(Y), pl.Series(Y))),
]


@every_estimator
@pytest.mark.parametrize(("y", "names"), NAMES_OF_Y)
def test_targets_keep_the_names_of_y_or_are_numbered(estimator, y, names):
    rows = dd.from_pandas(ABC) if isinstance(y, dd.DataFrame | dd.Series) else X
    model = clone(estimator).fit(rows, y)
    assert document_of(model)["question"]["target"] == names


def test_a_target_is_chosen_by_its_number_or_name():
    model = SparseStep(alpha=2.0).fit(X, pd.DataFrame(BOTH))
    assert str(model.summary(target="v")) == str(model.summary(target=np.int64(1)))
    assert "target          v (2 of 2; target= chooses)\n" in str(model.summary(target="v"))
    assert "target" not in SparseStep().fit(X, pd.Series(Y, name="u")).summary().facts
    said = {"w": "'w' is not .* 'u', 'v'", 2: "0 and 1; got 2", 0.5: "got 0.5", None: "got None"}
    for wrong, words in {**said, True: "got True"}.items():
        with pytest.raises(ValueError, match=f"target .*{words}"):
            model.summary(target=wrong)


# --- input of every kind --------------------------------------------------------------------------


SPLITTERS = (KFold(4, shuffle=True, random_state=0), ShuffleSplit(3, random_state=0))


@pytest.mark.parametrize("estimator", [*ALL, *(SparseStepCV(12, cv=cv) for cv in SPLITTERS)])
@pytest.mark.parametrize("kind", [sp.csr_array, sp.csc_matrix, sp.coo_array, sp.coo_matrix])
def test_sparse_rows_are_dense_ones(estimator, kind):
    X, y = table(60, 5)
    X[X < 5] = 0.0
    weight = np.resize([1.0, 2.0, 0.5], 60)
    dense = clone(estimator).fit(X, y, sample_weight=weight)
    other = clone(estimator).fit(kind(X), y, sample_weight=weight)
    assert_allclose(other.coef_, dense.coef_, rtol=1e-9)
    assert_allclose(other.predict(kind(X)), dense.predict(X), rtol=1e-9)


@pytest.mark.parametrize("estimator", [SparseStep(10.0), SparseStepCV(5, cv=3)])
def test_sparse_rows_are_not_made_dense(estimator):
    n, m, rng = 100_000, 100, np.random.default_rng(0)
    X = sp.random_array((n, m), density=0.002, format="csr", rng=rng)
    y = X @ np.arange(m) + rng.standard_normal(n)
    predicted, peak = peak_of(lambda: clone(estimator).fit(X, y).predict(X))
    assert peak < 0.4 * 8 * n * m
    assert np.corrcoef(predicted, y)[0, 1] > 0.9


NAMES = ["age", "bmi", "blood pressure"]
LIBRARIES = {
    "pandas": pd.DataFrame,
    "pandas nullable": lambda columns: pd.DataFrame(columns).astype("Float64"),
    "polars": pl.DataFrame,
    "pyarrow table": pa.table,
    "pyarrow batch": pa.record_batch,
}
every_library = pytest.mark.parametrize("frame", LIBRARIES.values(), ids=LIBRARIES)


@every_estimator
@every_library
def test_tables_keep_their_names(estimator, frame):
    columns = dict(zip(NAMES, X.T, strict=True))
    expected, model = clone(estimator).fit(X, Y), clone(estimator).fit(frame(columns), Y)
    assert list(model.feature_names_in_) == NAMES and model.n_features_in_ == 3
    assert_allclose(model.coef_, expected.coef_, rtol=1e-12)
    assert set(model.summary().names) <= set(NAMES)
    assert getattr(model, "path_", sparsestep_path(frame(columns), Y)).feature_names == tuple(NAMES)
    # Any library's table of the same columns will do for a prediction.
    for other in LIBRARIES.values():
        assert_allclose(model.predict(other(columns)), expected.predict(X), rtol=1e-12)
    with pytest.warns(UserWarning, match="does not have valid feature names"):
        model.predict(X)
    with pytest.raises(ValueError, match=r"(?s)feature names|X are not in the order"):
        model.predict(frame(dict(reversed(columns.items()))))
    model.fit(X, Y)
    assert not hasattr(model, "feature_names_in_")
    anew = model.predict(pl.DataFrame(X, schema=["u", "v", "w"]))
    assert_allclose(anew, model.predict(X), rtol=1e-12)


@pytest.mark.parametrize(
    "given",
    [
        *([True, 2, 3.0], np.array([1, 2.0, Decimal(3)], dtype=object)),
        np.array([np.bool_(True), np.int8(2), np.float32(3)], dtype=object),
        *(pd.Series([1, 2, 3], dtype="Int64"), pl.Series([1, 2, 3]), pa.array([1, 2, 3])),
    ],
    ids=str,
)
def test_numbers_of_any_type_are_weights_and_factors(given):
    models = [
        SparseStep(penalty_factor=numbers).fit(X[:3], Y[:3], sample_weight=numbers)
        for numbers in (given, [1.0, 2.0, 3.0])
    ]
    assert_array_equal(models[0].coef_, models[1].coef_)


@pytest.mark.parametrize("estimator", [*ALL, *RULES])
def test_moments_give_what_their_rows_do(estimator):
    X, y = table(40, 3, noise=6.0)
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    by_rows = clone(estimator).fit(frame, y)
    folds = [Moments.from_data(frame[k : k + 10], y[k : k + 10]) for k in range(0, 40, 10)]
    moments = folds if hasattr(estimator, "cv") else Moments.merge(folds)
    by_moments = clone(estimator).fit_moments(moments)
    assert_allclose(by_moments.coef_, by_rows.coef_, rtol=1e-8)
    if hasattr(estimator, "cv"):
        assert_allclose(by_moments.mse_path_, by_rows.mse_path_, rtol=1e-9)
    assert str(by_moments.summary()) == str(by_rows.summary())
    assert_allclose(by_moments.predict(frame), by_rows.predict(frame), rtol=1e-9)
    assert list(by_moments.feature_names_in_) == ["a", "b", "c"]


# --- the rest of scikit-learn ---------------------------------------------------------------------


@pytest.mark.parametrize("estimator", [*ALL, *RULES])
@pytest.mark.parametrize(("rows", "y"), [(X, Y), (ABC, np.column_stack([Y, Y > 8]))])
def test_models_persist(estimator, rows, y, tmp_path):
    model = clone(estimator).fit(rows, y)  # with a note on the second target
    save_model(model, tmp_path / "model.json")
    pickled, read = pickle.loads(pickle.dumps(model)), load_model(tmp_path / "model.json")
    for other in (pickled, read):
        assert other.get_params() == model.get_params()
        assert str(other.summary()) == str(model.summary())
        assert_array_equal(other.predict(rows), model.predict(rows))
        for name in (*CHOSEN, "feature_names_in_"):
            assert_array_equal(getattr(other, name, None), getattr(model, name, None))
    points = [np.ravel(getattr(each, "path_", ())) for each in (model, pickled)]
    assert all(np.array_equal(a.coef, b.coef) for a, b in zip(*points, strict=True))


@every_estimator
def test_selects_columns_for_others(estimator):
    X, y = table(60, 6)
    selector = SelectFromModel(clone(estimator), threshold=1e-300).fit(X, y)
    assert_array_equal(selector.get_support(), clone(estimator).fit(X, y).coef_ != 0)
    assert 0 < selector.transform(X).shape[1] < 6


def test_weights_and_groups_are_routed():
    X, y = table(60, 4, noise=4.0)
    weight, groups = np.resize([0.1, 5.0, 1.0], 60), np.resize(np.arange(7), 60)

    with sklearn.config_context(enable_metadata_routing=True):
        for model, grid in (
            (SparseStep(), {"alpha": [1.0, 30.0]}),
            (SparseStepIC(alphas=5), {"criterion": ["aic", "gic"]}),
        ):
            model.set_fit_request(sample_weight=True).set_score_request(sample_weight=True)
            search = GridSearchCV(model, grid, cv=3).fit(X, y, sample_weight=weight)
            direct = clone(model).set_params(**search.best_params_).fit(X, y, weight)
            assert_array_equal(search.best_estimator_.coef_, direct.coef_)
            assert np.any(direct.coef_ != clone(direct).fit(X, y).coef_)

        model = SparseStepCV(5, cv=GroupKFold(3)).set_fit_request(sample_weight=True, groups=True)
        scaler = StandardScaler().set_fit_request(sample_weight=False)
        pipe = make_pipeline(scaler, model).fit(X, y, sample_weight=weight, groups=groups)
        alone = clone(model).fit(StandardScaler().fit_transform(X), y, weight, groups=groups)
        assert_array_equal(pipe[-1].mse_path_, alone.mse_path_)


def test_verbose_says_what_was_fitted_and_chosen(capsys):
    model = SparseStepCV(7, cv=3, verbose=1).fit(X, Y)
    said = capsys.readouterr().out
    assert f"7 alphas from {model.alphas_[0]:.3g} to {model.alphas_[-1]:.3g}" in said
    assert f"alpha {model.alpha_:.5g} keeps {np.count_nonzero(model.coef_)} variables" in said
    SparseStepCV(7, cv=3, verbose=1).fit(X[:, :1], X[:, 0])
    assert "keeps 1 variable\n" in capsys.readouterr().out


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

    with np.errstate(under=kind):
        found = fits()
    for one, other in zip(found, fits(), strict=True):
        assert np.array_equal(one, other)


# --- what is refused ------------------------------------------------------------------------------

FACTORS = [
    ({"z": 0}, "names 'z', but X has no such column; it has 'a', 'b', 'c'"),
    ({0: 0}, "names 0, but X has no such column"),
    ({"b": -1}, r"\['b'\] is -1.0; it must be 0, inf, or between"),
    ({"b": "cheap"}, "must be numbers; got {'b': 'cheap'}"),
    (pd.Series({"a": 0, "b": 1}), "lacks 'c'; a series has a number for each"),
    (pd.Series([1, 1, 0, 0], index=list("abca")), "names 'a' twice"),
]
TWO_CALLED_A = (
    ABC.set_axis(["a", "b", "a"], axis=1),
    pa.Table.from_arrays(list(map(pa.array, X.T)), ["a", "b", "a"]),
)
SPARK = type("DataFrame", (), {"__module__": "pyspark.sql"})()
GAP = pd.DataFrame({"u": Y, "v": np.where(np.arange(30) == 7, np.nan, Y)})
BY_GROUP = r" keeps groups of rows together; .* by fit\(X, y, groups=\.\.\.\)"
BY_GROUPS = [GroupKFold(3), LeaveOneGroupOut(), StratifiedGroupKFold(3)]
# An estimator, the words of its refusal, and the rows and target where others are fitted.
REFUSED = [
    (SparseStep(alpha=[1.0, 2.0]), "alpha must be a number; got"),
    (SparseStep(n_nonzero=-1), "n_nonzero must be a whole number of at least 0; got -1"),
    (SparseStep(n_nonzero=1.5), "n_nonzero must be a whole number"),
    (SparseStep(n_nonzero=True), "n_nonzero must be a whole number"),
    (SparseStepCV(alphas=1), "alphas must be a whole number of at least 2; got 1"),
    (SparseStepCV(alphas="sizes"), "alphas must be how many to try, or a list of numbers"),
    (SparseStepCV(rule="2se"), "rule .*'paired', '1se'.*; got '2se'"),
    (SparseStepCV(rule="1se", cv=ONE_SPLIT), "rule='1se' needs at least two splits"),
    (SparseStepCV(rule="paired", cv=ONE_SPLIT), "rule='paired' needs at least two splits"),
    (SparseStepCV(shrink=True), "shrink must be None or 'cv'; got True"),
    (SparseStepCV(fit_intercept="no"), "^fit_intercept must be True or False; got 'no'.$"),
    (SparseStepCV(standardize=1), "^standardize must be True or False; got 1.$"),
    (SparseStepCV(n_jobs=0), "^n_jobs must be None or a whole number but 0; got 0.$"),
    (SparseStepCV(n_jobs="x"), "^n_jobs must be None or a whole number but 0; got 'x'.$"),
    (SparseStepIC("cp"), "criterion must be one of aic, bic, ebic, gic; got 'cp'"),
    *((SparseStepCV(cv=cv), type(cv).__name__ + BY_GROUP, X, np.round(Y)) for cv in BY_GROUPS),
    *((SparseStep(penalty_factor=f), f"penalty_factor.*{words}", ABC) for f, words in FACTORS),
    (SparseStep(penalty_factor={"a": 0}), "those of X have no names; give a number for each"),
    (SparseStep(n_nonzero=1), "n_nonzero=1 variable of target 'v'", X, GAP.fillna(0.0) * [1, 0]),
    (SparseStep(), "Column 'v' of y has the value nan in row 7", X, GAP),
    (SparseStep(), r"LazyFrame; call its collect\(\)", pl.LazyFrame(X)),
    (SparseStep(), "X is a Spark frame; read_moments", SPARK),
    (SparseStep(), "X has no columns; give at least one", pa.table({})),
    (SparseStep(), "X has more than one column 'a'; rename one", TWO_CALLED_A[1]),
    (SparseStep(), "X has more than one column 0; rename", ABC.set_axis([0, 1, 0], axis=1)),
    (SparseStep(), "y has more than one column 'a'; rename one", X, TWO_CALLED_A[0]),
]


@pytest.mark.filterwarnings("ignore:The least populated class")
@pytest.mark.parametrize(
    ("estimator", "words", "rows", "y"), [(*case, *(X, Y)[len(case) - 2 :]) for case in REFUSED]
)
def test_what_cannot_be_fitted_is_refused(estimator, words, rows, y):
    with pytest.raises((ValueError, TypeError), match=words):
        estimator.fit(rows, y)


OTHER_CALLS = [
    *((partial(SparseStepCV(cv=cv).fit, X, Y, groups=[1]), "inconsistent num") for cv in BY_GROUPS),
    (partial(SparseStep().fit_moments, Moments.from_data(X[:, :0], Y)), "X has 0"),
    *((partial(SparseStep().fit(ABC, Y).predict, rows), "'a'; rename") for rows in TWO_CALLED_A),
]


@pytest.mark.parametrize(("call", "words"), OTHER_CALLS)
def test_other_calls_are_refused(call, words):
    with pytest.raises(ValueError, match=words):
        call()


@pytest.mark.parametrize(
    "given",
    [
        *([np.timedelta64(1, "s"), 2.0, 3.0], np.array([1, 2, 3], dtype="datetime64[D]")),
        np.array([1, np.timedelta64(2, "s"), 3], dtype=object),
        *(np.array([1, "2", 3], dtype=object), [1, 2, 3 + 0j], pd.Series(["1", "2", "3"])),
    ],
    ids=str,
)
def test_only_numbers_are_numbers(given):
    with pytest.raises(ValueError, match="sample_weight must be numbers"):
        SparseStep().fit(X[:3], Y[:3], sample_weight=given)
    with pytest.raises(ValueError, match="penalty_factor must be numbers"):
        SparseStep(penalty_factor=given).fit(X, Y)
    with pytest.raises(ValueError, match=r"alphas must be .* numbers"):
        sparsestep_path(X, Y, alphas=given)


TYPE, NAN = r"holds values of type .* turn it into", "has the value nan in row"
DAYS = pd.date_range("2020", periods=30)
TEXTS = ["1.5", None, "2", "?", "1e3", "x", *["7"] * 24]
BAD_COLUMNS = [
    *(
        (frame, column, words)
        for frame in (pd.DataFrame, pl.DataFrame, pa.table)
        for column, words in (
            (["Ulm"] * 30, TYPE),
            (["1", "5 m"] * 15, TYPE),
            (TEXTS, r"holds '\?' in row 3, while 27 of its 29 values read as numbers; correct"),
            ([None if i == 4 else i for i in range(30)], f"{NAN} 4"),
            (DAYS if frame is pd.DataFrame else DAYS.to_numpy(), TYPE),
            ([[1]] * 30, TYPE),
        )
    ),
    *((frame, [True] * 29 + [None], f"{NAN} 29") for frame in (pl.DataFrame, pa.table)),
    *(
        (pd.DataFrame, pd.array([1] * 29 + [None], dtype=dtype), f"{NAN} 29")
        for dtype in ("Int64", "Float64", "boolean", "int64[pyarrow]")
    ),
    *(
        (pd.DataFrame, column, words)
        for column, words in (
            (pd.Categorical(["Ulm", "Bonn"] * 15), TYPE),
            (pd.Series([Decimal(1)] * 29 + [pd.NA], dtype=object), "in row 29"),
            (pd.Series([1.5] * 4 + ["n/a"] + [2] * 25, dtype=object), "holds 'n/a' in row 4, wh"),
            (np.ones(30) + 1j, TYPE),
            ([-np.inf] * 30, "-inf in row 0"),
        )
    ),
]


@pytest.mark.parametrize(("frame", "column", "words"), BAD_COLUMNS)
def test_every_door_refuses_in_the_same_words(frame, column, words):
    good, rows = ABC[["a", "b"]], frame({"a": X[:, 0], "b": column})
    said = set()
    for act in (
        lambda rows: SparseStepCV(3, cv=ONE_SPLIT).fit(rows, Y),
        lambda rows: Moments.from_data(rows, Y),
        lambda rows: Moments.from_folds(rows, Y, np.arange(30) % 3),
        SparseStep().fit(good, Y).predict,
        sparsestep_path(good, Y, alphas=3).predict,
    ):
        error = TypeError if words is TYPE else ValueError
        with pytest.raises(error, match=f"Column 'b' .*{words}") as caught:
            act(rows)
        said.add(str(caught.value))
    assert len(said) == 1


@every_estimator
def test_masked_values_are_not_predicted_from(estimator):
    model = clone(estimator).fit(np.ma.array(X), np.ma.array(Y))
    assert_array_equal(model.predict(np.ma.array(X)), clone(estimator).fit(X, Y).predict(X))
    hidden = np.ma.array(X, mask=X[4, 1] == X)
    for predict in (model.predict, sparsestep_path(X, Y).predict):
        with pytest.raises(ValueError, match="X has masked values"):
            predict(hidden)


@pytest.mark.parametrize("kind", [pl.DataFrame, pa.table])
def test_other_columns_than_those_of_the_fit_are_named_in_short(kind):
    columns = {f"column{j}": X[:, j % 3] for j in range(500)}
    model = SparseStep(alpha=1e3).fit(kind(columns), Y)
    lacks = "^X lacks 'column0', 'column1', 'column2' and 497 more columns, .* and has 'a', which"
    for changed, words in [
        (dict(reversed(columns.items())), "not in the order of those that the model was fitted"),
        (
            {"a": Y, **columns},
            "^X has 'a', which it was not fitted to; give the columns of the fit",
        ),
        ({"a": Y}, lacks),
    ]:
        with pytest.raises(ValueError, match=words) as caught:
            model.predict(kind(changed))
        assert len(str(caught.value)) < 250
