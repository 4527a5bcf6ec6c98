"""Choosing alpha: every number is compared with fitting and predicting on the rows."""

import html
import re
from itertools import count
from math import comb, log

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.model_selection import (
    GroupKFold,
    GroupShuffleSplit,
    KFold,
    LeaveOneGroupOut,
    LeaveOneOut,
    PredefinedSplit,
    RepeatedKFold,
    ShuffleSplit,
    TimeSeriesSplit,
)

from rows import fit_rows, squared_errors, table
from sparsestep import Moments, SparseStep, SparseStepCV, SparseStepIC, sparsestep_path
from sparsestep.model.file import document_of
from sparsestep.report import render_report
from sparsestep.selection.cross_validation import CVErrors
from sparsestep.selection.grid import every_size
from sparsestep.solvers.fitting import fit_alphas
from sparsestep.solvers.scaled_problem import Settings

ALPHAS = np.array([200.0, 20.0, 2.0, 0.1])


def errors_by_rows(X, y, splits, weight):
    weight = np.ones(len(y)) if weight is None else weight
    mse = np.empty((len(ALPHAS), len(splits)))
    for k, (train, test) in enumerate(splits):
        for r, alpha in enumerate(ALPHAS):
            model = fit_rows(X[train], y[train], alpha, weight[train])
            errors = squared_errors(X[test], y[test], *model)
            mse[r, k] = np.average(errors, weights=weight[test])
    return mse


HALVES = [(np.arange(15), np.arange(15, 30)), (np.arange(15, 30), np.arange(15))]
SPLITTERS = {
    "a number": 4,
    "contiguous": KFold(4),
    "shuffled": KFold(4, shuffle=True, random_state=0),
    "groups": GroupKFold(3),
    "each group": LeaveOneGroupOut(),
    "groups at random": GroupShuffleSplit(3, random_state=0),
    "repeated": RepeatedKFold(n_splits=3, n_repeats=2, random_state=0),
    "in time": TimeSeriesSplit(3),
    "each row": LeaveOneOut(),
    "at random": ShuffleSplit(40, test_size=0.3, random_state=0),
    "some rows never tested": PredefinedSplit(np.resize([-1, 0, 1, 1], 30)),
    "pairs of lists": [([*range(20)], [*range(20, 30)]), ([*range(5, 30)], [*range(5)])],
    "pairs of masks": [(np.arange(30) < 18, np.arange(30) >= 18)],
    "a generator": HALVES,
    "rows that repeat": [(np.resize(np.arange(12), 24), np.arange(12, 30)), HALVES[0]],
}


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("name", SPLITTERS)
def test_errors_are_those_of_fitting_and_predicting_on_the_rows(name, weighted):
    X, y = table(30, 4)
    groups = np.resize([0, 0, 1, 2, 2, 2, 3], 30)
    weight = np.resize([1.0, 0.5, 3.0, 2.0], 30) if weighted else None
    cv = SPLITTERS[name]
    given_cv = iter(cv) if name == "a generator" else cv
    groups = groups if "group" in name else None
    model = SparseStepCV(ALPHAS, cv=given_cv).fit(X, y, sample_weight=weight, groups=groups)
    if isinstance(cv, int):
        cv = KFold(cv)
    splits = cv if isinstance(cv, list) else list(cv.split(X, y, groups))
    expected = errors_by_rows(X, y, splits, weight)
    assert_allclose(model.mse_path_, expected, rtol=1e-9)

    # The error of all test rows, each by its weight; the folds count by their weight in the spread.
    w = np.ones(30) if weight is None else weight
    total = np.array([w[test].sum() for _, test in splits])
    mean = expected @ total / total.sum()
    assert_allclose(model.cv_mean_, mean, rtol=1e-9)
    if len(splits) > 1:
        variance = (expected - mean[:, None]) ** 2 @ total / total.sum()
        unbiased = variance * len(splits) / (len(splits) - 1)
        disjoint = min(len(splits), w.sum() / total.mean())
        assert_allclose(model.cv_se_, np.sqrt(unbiased / disjoint), rtol=1e-6)
    else:
        assert np.isnan(model.cv_se_).all() and model.alpha_1se_ == model.alpha_min_
    # Alphas that give the same models on all folds differ by rounding: the largest is taken.
    assert model.alpha_ == model.alpha_min_ == ALPHAS[mean <= mean.min() * (1 + 1e-10)][0]
    coef, intercept = fit_rows(X, y, model.alpha_, weight)
    assert_allclose(model.coef_, coef, rtol=1e-8)
    assert_allclose(model.intercept_, intercept, rtol=1e-8)


@pytest.mark.parametrize("what", ["y", "x"])
def test_the_scale_is_that_of_the_training_rows_alone(what):
    X, y = table(40, 4)
    if what == "y":
        y[0] = 1e9
        X[0] = X[1]  # an outlier without leverage
    else:
        X[0, 0], y[0] = 1e10, y[1]
    cv, alpha = KFold(4), 20.0
    train, test = next(cv.split(X))
    own = fit_rows(X[train], y[train], alpha)
    outer = fit_rows(X[train], y[train], alpha, scales=(X.std(axis=0), y.std()))
    # With the scale of all rows the support differs, so the test cannot pass by accident.
    assert np.any((own[0] != 0) != (outer[0] != 0))
    model = SparseStepCV([alpha], cv=cv).fit(X, y)
    expected = squared_errors(X[test], y[test], *own).mean()
    leaky = squared_errors(X[test], y[test], *outer).mean()
    assert abs(leaky / expected - 1) > 1e-10
    assert_allclose(model.mse_path_[0, 0], expected, rtol=1e-11)


@given(
    mse=st.integers(1, 8).flatmap(
        lambda a: arrays(np.float64, (a, 4), elements=st.floats(0, 10, width=16))
    ),
    data=st.data(),
)
def test_one_standard_error_takes_the_sparsest_that_is_near(mse, data):
    sizes = st.lists(st.integers(0, 5), min_size=len(mse), max_size=len(mse))
    kept = np.array(data.draw(sizes))
    errors = CVErrors(mse, np.array([1.0, 2.0, 2.0, 5.0]), 10.0)
    best, chosen = errors.best(), errors.chosen("1se", kept)
    assert_allclose(errors.mean[best], errors.mean.min(), rtol=1e-9, atol=1e-13)
    bound = errors.mean[best] + errors.se[best]
    near = errors.mean <= bound
    assert near[chosen]
    assert kept[chosen] <= kept[best]
    assert kept[chosen] == kept[near].min()
    alike = near & (kept == kept[chosen])
    assert_allclose(errors.mean[chosen], errors.mean[alike].min(), rtol=1e-9, atol=1e-13)


def test_of_equal_errors_the_largest_alpha_is_taken():
    mse = np.outer([5.0, 2.0 + 4e-16, 2.0, 2.0 - 4e-16, 3.0], [1.0, 1.5])
    errors = CVErrors(mse, np.ones(2), 2.0)
    assert errors.best() == 1
    assert errors.chosen("1se", np.array([0, 2, 2, 2, 3])) == 1
    X, _ = table(40, 5)
    model = SparseStepCV(30, cv=4).fit(X, 1.0 + 2.0 * X[:, 1])
    assert_allclose(model.coef_, [0, 2, 0, 0, 0], atol=1e-12)


@pytest.mark.parametrize("seed", range(5))
def test_rules_of_the_estimator(seed):
    X, y = table(60, 6, seed, noise=3.0)
    by_min = SparseStepCV(40, cv=5).fit(X, y)
    sparse = SparseStepCV(40, cv=5, rule="1se").fit(X, y)
    assert by_min.alpha_ == by_min.alpha_min_ == sparse.alpha_min_
    assert sparse.alpha_ == sparse.alpha_1se_ == by_min.alpha_1se_
    at = np.flatnonzero(sparse.alphas_ == sparse.alpha_)[0]
    best = sparse.cv_mean_.argmin()
    assert np.count_nonzero(sparse.coef_) <= np.count_nonzero(by_min.coef_)
    assert sparse.cv_mean_[at] <= sparse.cv_mean_[best] + sparse.cv_se_[best]
    sparser = sparse.path_.n_nonzero < np.count_nonzero(sparse.coef_)
    assert np.all(sparse.cv_mean_[sparser] > sparse.cv_mean_[best] + sparse.cv_se_[best])


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("criterion", ["aic", "bic", "ebic", "gic"])
def test_criteria_are_those_of_the_rows(criterion, weighted):
    X, y = table(50, 6, 3, noise=4.0)
    weight = np.resize([1.0, 2.0, 3.0], 50) if weighted else None
    model = SparseStepIC(criterion, alphas=30).fit(X, y, sample_weight=weight)
    n, m = (50, 6) if weight is None else (weight.sum(), 6)
    expected = []
    for coef, intercept in zip(model.path_.coefs.T, model.path_.intercepts, strict=True):
        k = np.count_nonzero(coef)
        rss = np.sum((1 if weight is None else weight) * squared_errors(X, y, coef, intercept))
        price = {
            "aic": 2 * k,
            "bic": log(n) * k,
            "ebic": log(n) * k + 2 * log(comb(m, k)),
            "gic": log(log(n)) * log(m) * k,
        }[criterion]
        expected.append(n * log(rss / n) + price)
    assert_allclose(model.criterion_path_, expected, rtol=1e-9)
    at = np.flatnonzero(np.isclose(expected, min(expected), rtol=1e-11))[0]
    assert model.alpha_ == model.alphas_[at]
    assert_array_equal(model.coef_, model.path_.coefs[:, at])
    assert model.path_.select(criterion).alpha == model.alpha_


def test_of_perfect_fits_the_sparsest_is_chosen():
    X, _ = table(40, 5)
    y = 1.0 + 2.0 * X[:, 1]
    for criterion in ("aic", "bic", "ebic", "gic"):
        coef = SparseStepIC(criterion).fit(X, y).coef_
        assert_allclose(coef, [0, 2, 0, 0, 0], atol=1e-12)


@settings(max_examples=12)
@given(seed=st.integers(0, 1000), size=st.integers(0, 6))
def test_exactly_so_many_variables_at_least_as_good_as_those_of_the_loop(seed, size):
    X, y = table(40, 6, seed)
    model = SparseStep(n_nonzero=size).fit(X, y)
    assert np.count_nonzero(model.coef_) == size
    on_path = sparsestep_path(X, y, alphas="sizes").select(size)
    assert on_path.alpha == model.alpha_ and np.count_nonzero(on_path.coef) == size
    assert squared_errors(X, y, model.coef_, model.intercept_).sum() <= on_path.rss * (1 + 1e-9)


@pytest.mark.parametrize(
    ("m", "correlation", "size"), [(6, 0.0, 3), (30, 0.5, 4), (30, 0.9, 12), (60, 0.95, 30)]
)
def test_one_size_is_searched_for_as_among_all_but_with_fewer_fits(m, correlation, size):
    moments = Moments.from_data(*table(150, m, m, correlation=correlation, noise=2.0))
    tried = {}

    def sizes(alphas):
        kept = fit_alphas([moments], alphas, Settings())[0][0].n_nonzero
        tried.update(zip(alphas[0].tolist(), kept.tolist(), strict=True))
        return kept[np.newaxis]

    alphas = {}
    for only in (None, size):
        tried.clear()
        every_size(sizes, np.array([1e3]), m, only=only)
        alphas[only] = dict(tried)
    of_that_size = [{a for a, k in found.items() if k == size} for found in alphas.values()]
    assert of_that_size[0] == of_that_size[1] != set()
    assert m < 10 or len(alphas[size]) < 0.7 * len(alphas[None])


def test_of_several_models_of_a_size_the_best_fitting_is_selected():
    X, y = table(60, 8, 18, correlation=0.95, noise=3.0)
    path = sparsestep_path(X, y, alphas=100)
    several = 0
    for size in np.unique(path.n_nonzero):
        alike = path.n_nonzero == size
        several += len(np.unique(path.rss[alike].round(6))) > 1
        assert path.select(int(size)).rss == path.rss[alike].min()
    assert several > 0


def twins():
    """Orthogonal columns, the first two alike in every way: no alpha tells them apart."""
    H = np.array([[1.0]])
    for _ in range(4):
        H = np.block([[H, H], [H, -H]])
    return H[:, 1:5], H[:, 1:5] @ [1.0, 1.0, 3.0, 0.25]


def test_a_size_that_no_alpha_gives_is_found_by_number_and_not_along_alpha():
    X, y = twins()
    path = sparsestep_path(X, y, alphas="sizes")
    assert path.missing_sizes == (2,)
    for given_path in (path, sparsestep_path(X, y)):
        nearest = r"exactly 2 variables; .* 1 and 3\. SparseStep\(n_nonzero=2\)"
        with pytest.raises(ValueError, match=nearest):
            given_path.select(2)
    kept = np.flatnonzero(SparseStep(n_nonzero=2).fit(X, y).coef_)
    assert len(kept) == 2 and kept[1] == 2


def test_a_size_that_no_model_has_is_refused_with_the_nearest():
    X, y = twins()
    copies = np.column_stack([X[:, :3], X[:, 0]])
    for size, data, words in [
        (5, (X, y), "n_nonzero=5 is more than the 4 columns"),
        (4, (copies, y), r"n_nonzero=4 .* nearest has 3, .* 3 .* independent"),
        (4, (np.tile(copies[:10], 4), y[:10]), r"n_nonzero=4 .* nearest has 3, .* 3 .* indep"),
        (4, (X, X[:, :3] @ [3, 2, 1.0]), r"n_nonzero=4 .* nearest has 3, .* explain the target"),
        (2, (X, np.ones(len(X))), r"n_nonzero=2 .* nearest has 0, .* constant"),
    ]:
        with pytest.raises(ValueError, match=words):
            SparseStep(n_nonzero=size).fit(*data)
    always = SparseStep(n_nonzero=1, penalty_factor=[0, 0, 1, 1])
    with pytest.raises(ValueError, match=r"n_nonzero=1 .* nearest has 2, .* always kept"):
        always.fit(X, y)


@pytest.mark.parametrize(
    ("cv", "words"),
    [
        ([], "cv gives no splits"),
        ([(range(5), range(50, 99))], "Split 0 of cv has row numbers outside 0 to 39"),
        ([HALVES[0], ([], range(5))], "Split 1 of cv has no training rows"),
        ([HALVES[0], (range(5), [])], "Split 1 of cv has no test rows"),
        ([(range(-41, 0), range(5))], "Split 0 of cv has row numbers outside 0 to 39"),
        ([[1, 2, 3]], "Split 0 of cv is not a pair; give its training rows and its test rows"),
        ([HALVES[0], 5], "Split 1 of cv is not a pair"),
        ([([True] * 39, [1])], "Split 0 of cv has True or False for 39 training rows, but X has"),
        ([([0], np.array([1.0, 2.0]))], "Split 0 of cv has test rows that are no list of whole"),
        ([([[0, 1]], [2])], "Split 0 of cv has training rows that are no list of whole numbers"),
        ([([[0], [1, 2]], [2])], "Split 0 of cv has training rows that are no list of whole"),
        ([(["a", "b"], [2])], "give row numbers from 0 to 39, or True or False for each row"),
        (41, "cv=41 folds need as many rows; there are 40"),
    ],
)
def test_splits_that_cannot_be_used(cv, words):
    with pytest.raises(ValueError, match=words):
        SparseStepCV(5, cv=cv).fit(*table(40, 3))


@given(
    data=st.data(),
    kind=st.sampled_from(["numbers", "negative", "tuples", "masks", "unsigned"]),
    partition=st.booleans(),
)
@settings(max_examples=15)
def test_splits_given_in_any_way_are_the_same_splits(data, kind, partition):
    X, y = table(40, 3)
    cv = list(KFold(4).split(X))
    if not partition:
        start = data.draw(st.integers(1, 10))
        cv = [(train[start:], test) for train, test in cv]
    as_given = {
        "numbers": lambda rows: rows.tolist(),
        "negative": lambda rows: rows - 40 * (rows % 2),
        "tuples": lambda rows: tuple(rows.tolist()),
        "masks": lambda rows: np.isin(np.arange(40), rows),
        "unsigned": lambda rows: rows.astype(np.uint8),
    }[kind]
    model = SparseStepCV(ALPHAS, cv=[tuple(map(as_given, split)) for split in cv]).fit(X, y)
    expected = errors_by_rows(X, y, cv, None)
    assert_allclose(model.mse_path_, expected, rtol=1e-9)


def test_a_single_split_has_no_standard_error():
    X, y = table(40, 3)
    hold_out = [(range(30), range(30, 40))]
    facts = SparseStepCV(5, cv=hold_out).fit(X, y).summary().facts
    assert facts["alpha"].endswith("(one hold-out split)")
    assert float(facts["CV error"].split()[0]) > 0


def test_folds_that_cannot_be_used():
    X, y = table(40, 3)
    weight = np.repeat([0.0, 1.0], [10, 30])
    with pytest.raises(ValueError, match="Split 0 of cv has no test rows of positive weight"):
        SparseStepCV(5, cv=4).fit(X, y, sample_weight=weight)
    with pytest.raises(ValueError, match="Split 0 of cv has no training rows of positive weight"):
        SparseStepCV(5, cv=TimeSeriesSplit(3)).fit(X, y, sample_weight=weight)
    fold = Moments.from_data(X, y)
    with pytest.raises(ValueError, match="at least two folds; got 1"):
        SparseStepCV().fit_moments([fold])
    with pytest.raises(TypeError, match="give a list"):
        SparseStepCV().fit_moments(fold)
    with pytest.raises(TypeError, match="not <class 'int'>"):
        SparseStepCV().fit_moments([1, 2])
    with pytest.raises(TypeError, match=r"got list\. Several become one by Moments\.merge"):
        SparseStep().fit_moments([fold])
    empty = Moments.from_folds(X, y, np.repeat([0, 2], 20))[1]
    with pytest.raises(ValueError, match="Fold 1 has no row of positive weight"):
        SparseStepCV(5).fit_moments([fold, empty, fold])


@pytest.mark.parametrize("weighted", [False, True])
def test_repetitions_do_not_make_the_standard_error_small(weighted):
    X, y = table(80, 6, noise=3.0)
    weight = np.resize([1.0, 2.0, 1.0, 3.0], 80) if weighted else None
    single = []
    for repetition in range(6):
        cv = KFold(8, shuffle=True, random_state=repetition)
        single.append(SparseStepCV(20, cv=cv).fit(X, y, weight))
    folds = [split for model in single for split in model.cv.split(X)]
    repeated = SparseStepCV(single[0].alphas_, cv=folds).fit(X, y, weight)
    assert repeated.mse_path_.shape == (20, 48)
    # Of all 48 folds the spread is about that within repetitions, never that over the root of 6.
    within = np.sqrt(np.mean([model.cv_se_**2 for model in single], axis=0))
    assert np.all((repeated.cv_se_ > 0.9 * within) & (repeated.cv_se_ < 1.1 * within))
    assert "8-fold cross-validation, 6 times, min" in str(repeated.summary())
    spread = np.sqrt(np.average((single[0].mse_path_ - single[0].cv_mean_[:, None]) ** 2, axis=1))
    if not weighted:
        assert_allclose(single[0].cv_se_, spread / np.sqrt(7), rtol=1e-12)


@pytest.mark.parametrize(
    ("cv", "scheme"),
    [
        (KFold(5), "5-fold cross-validation"),
        (
            RepeatedKFold(n_splits=4, n_repeats=3, random_state=0),
            "4-fold cross-validation, 3 times",
        ),
        (ShuffleSplit(7, test_size=0.25, random_state=0), "7 splits"),
        (TimeSeriesSplit(4), "4 splits"),
        ([(np.arange(40), np.arange(40, 60))], "one hold-out split"),
    ],
)
def test_splits_are_called_what_they_are(cv, scheme):
    X, y = table(60, 4)
    model = SparseStepCV(10, cv=cv).fit(X, y)
    assert f"({scheme}" in str(model.summary())
    document = document_of(model)
    choice = document["question"]["choice"]
    assert choice["scheme"] == scheme
    assert choice["splitter"] == ("a list of splits, given" if isinstance(cv, list) else repr(cv))
    assert choice["splitter"] in html.unescape(render_report(document))
    assert document_of(SparseStepCV(10, cv=5).fit(X, y))["question"]["choice"]["splitter"] is None


def test_the_report_compares_errors_on_the_same_splits():
    X, y = table(80, 4)
    y = y + 0.5 * np.arange(80)
    model = SparseStepCV(20, cv=TimeSeriesSplit(5)).fit(X, y)
    assert model.path_.n_nonzero[0] == 0 < np.count_nonzero(model.coef_)
    null = np.sqrt(model.cv_mean_[0])
    assert abs(null / y.std() - 1) > 0.05
    said = html.unescape(render_report(document_of(model)))
    assert f"without any variable it would be off by {null:.3g}." in said


@pytest.mark.parametrize("shape", [(60, 8), (30, 45)])
@pytest.mark.parametrize("polish", [None, "swap"])
def test_long_fits_say_how_many_models_there_are(shape, polish, capsys, monkeypatch):
    X, y = table(*shape, noise=2.0)
    with monkeypatch.context() as clock:
        clock.setattr("time.monotonic", count(step=10).__next__)
        SparseStepCV(np.geomspace(1e3, 1, 9), cv=3, polish=polish, verbose=1).fit(X, y)
    told = re.findall(r"\] (\d+) of (\d+) models", capsys.readouterr().out)
    counts = [int(done) for done, _ in told]
    total = 36 if polish is None else 72
    assert {int(of) for _, of in told} == {total}
    assert len(counts) > 1 and counts == sorted(counts) and counts[-1] == total
    SparseStepCV(9, cv=3).fit(X, y)
    assert capsys.readouterr().out == ""
