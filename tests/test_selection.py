"""Choosing alpha: every number is compared with fitting and predicting on the rows."""

import html
import re
from itertools import count
from math import comb, log

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn import model_selection as ms
from sklearn.model_selection import KFold, ShuffleSplit, TimeSeriesSplit

from rows import fit_rows, held_out_errors, squared_errors, table
from sparsestep import Moments, SparseStep, SparseStepCV, SparseStepIC, sparsestep_path
from sparsestep.model.file import document_of
from sparsestep.report import render_report
from sparsestep.selection.fitting import SearchRange, every_size, fit_alphas
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
    "groups": ms.GroupKFold(3),
    "each group": ms.LeaveOneGroupOut(),
    "groups at random": ms.GroupShuffleSplit(3, random_state=0),
    "repeated": ms.RepeatedKFold(n_splits=3, n_repeats=2, random_state=0),
    "in time": TimeSeriesSplit(3),
    "each row": ms.LeaveOneOut(),
    "at random": ShuffleSplit(40, test_size=0.3, random_state=0),
    "some rows never tested": ms.PredefinedSplit(np.resize([-1, 0, 1, 1], 30)),
    "pairs of lists": [([*range(20)], [*range(20, 30)]), ([*range(5, 30)], [*range(5)])],
    "pairs of masks": [(np.arange(30) < 18, np.arange(30) >= 18)],
    "pairs of tuples": [tuple(tuple(rows.tolist()) for rows in half) for half in HALVES],
    "negative rows": [tuple(rows - 30 * (rows % 2) for rows in half) for half in HALVES],
    "unsigned rows": [(a.astype(np.uint8)[3:], b.astype(np.uint8)) for a, b in HALVES],
    "a generator": HALVES,
    "rows that repeat": [(np.resize(np.arange(12), 24), np.arange(12, 30)), HALVES[0]],
}


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("name", SPLITTERS)
def test_errors_are_those_of_fitting_and_predicting_on_the_rows(name, weighted):
    X, y = table(30, 4)
    groups = np.resize([0, 0, 1, 2, 2, 2, 3], 30) if "group" in name else None
    weight = np.resize([1.0, 0.5, 3.0, 2.0], 30) if weighted else None
    cv = SPLITTERS[name]
    given_cv = iter(cv) if name == "a generator" else cv
    model = SparseStepCV(ALPHAS, cv=given_cv).fit(X, y, sample_weight=weight, groups=groups)
    if isinstance(cv, int):
        cv = KFold(cv)
    splits = cv if isinstance(cv, list) else cv.split(X, y, groups)
    splits = [(np.asarray(train), np.asarray(test)) for train, test in splits]
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


@pytest.mark.parametrize("shape", [(60, 9), (40, 150)])
@pytest.mark.parametrize("polish", [None, "swap"])
def test_errors_are_those_of_scikit_learns_cross_validation(shape, polish):
    X, y = table(*shape, 4, correlation=0.9, noise=3.0)
    model = SparseStepCV(np.geomspace(100, 1, 10), cv=5, polish=polish).fit(X, y)
    for alpha, errors in zip(model.alphas_, model.mse_path_, strict=True):
        expected = held_out_errors(SparseStep(alpha, polish=polish), X, y, 5)
        assert_allclose(errors, expected, rtol=1e-7)
    plain = SparseStepCV(model.alphas_, cv=5).fit(X, y)
    assert np.any(plain.mse_path_ != model.mse_path_) == (polish is not None)


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
    outer = fit_rows(X[train], y[train], alpha, scales=np.std(np.c_[X, y], axis=0))
    # With the scale of all rows the support differs, so the test cannot pass by accident.
    assert np.any((own[0] != 0) != (outer[0] != 0))
    model = SparseStepCV([alpha], cv=cv).fit(X, y)
    expected = squared_errors(X[test], y[test], *own).mean()
    leaky = squared_errors(X[test], y[test], *outer).mean()
    assert abs(leaky / expected - 1) > 1e-10
    assert_allclose(model.mse_path_[0, 0], expected, rtol=1e-11)


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
        every_size(sizes, SearchRange(np.array([1e3]), m), only)
        alphas[only] = dict(tried)
    of_that_size = [{a for a, k in found.items() if k == size} for found in alphas.values()]
    assert of_that_size[0] == of_that_size[1] != set()
    assert m < 10 or len(alphas[size]) < 0.7 * len(alphas[None])


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
        with pytest.raises(ValueError, match=r" 2 variables; .* 1 and 3\. .*\(n_nonzero=2\)"):
            given_path.select(2)
    kept = np.flatnonzero(SparseStep(n_nonzero=2).fit(X, y).coef_)
    assert len(kept) == 2 and kept[1] == 2


TWINS, TARGET = twins()
COPIES = np.column_stack([TWINS[:, :3], TWINS[:, 0]])


@pytest.mark.parametrize(
    ("size", "data", "words"),
    [
        (5, (TWINS, TARGET), "n_nonzero=5 is more than the 4 columns"),
        (4, (COPIES, TARGET), "n_nonzero=4 .* nearest has 3, .* 3 .* independent"),
        (4, (np.tile(COPIES[:10], 4), TARGET[:10]), "n_nonzero=4 .* nearest has 3, .* independent"),
        (4, (TWINS, TWINS[:, :3] @ [3, 2, 1.0]), "n_nonzero=4 .* nearest has 3, .* explain the"),
        (2, (TWINS, np.ones(len(TARGET))), "n_nonzero=2 .* nearest has 0, .* constant"),
        (1, (TWINS, TARGET, [0, 0, 1, 1]), "n_nonzero=1 .* nearest has 2, .* always kept"),
    ],
)
def test_a_size_that_no_model_has_is_refused_with_the_nearest(size, data, words):
    X, y, *factor = data
    with pytest.raises(ValueError, match=words):
        SparseStep(n_nonzero=size, penalty_factor=factor[0] if factor else None).fit(X, y)


LIGHT = np.repeat([0.0, 1.0], [10, 30])


@pytest.mark.parametrize(
    ("cv", "weight", "words"),
    [
        ([], None, "cv gives no splits"),
        ([(range(5), range(50, 99))], None, "Split 0 of cv .* outside 0 to 39"),
        ([(range(-41, 0), range(5))], None, "Split 0 of cv .* outside 0 to 39"),
        ([HALVES[0], ([], range(5))], None, "Split 1 of cv has no training rows"),
        ([HALVES[0], (range(5), [])], None, "Split 1 of cv has no test rows"),
        ([[1, 2, 3]], None, "Split 0 of cv is not a pair; give its training rows and its test"),
        ([HALVES[0], 5], None, "Split 1 of cv is not a pair"),
        ([([True] * 39, [1])], None, "Split 0 of cv .* for 39 training rows, but X has"),
        ([([0], np.array([1.0, 2.0]))], None, "Split 0 of cv has test rows that are no list"),
        ([([[0, 1]], [2])], None, "Split 0 of cv has training rows that are no list"),
        ([([[0], [1, 2]], [2])], None, "Split 0 of cv has training rows that are no list"),
        ([(["a", "b"], [2])], None, "row numbers from 0 to 39, or True or False for each row"),
        (41, None, "cv=41 folds need as many rows"),
        (4, LIGHT, "Split 0 of cv has no test rows of positive weight"),
        (TimeSeriesSplit(3), LIGHT, "Split 0 of cv has no training rows of positive weight"),
    ],
)
def test_splits_that_cannot_be_used(cv, weight, words):
    with pytest.raises(ValueError, match=words):
        SparseStepCV(5, cv=cv).fit(*table(40, 3), sample_weight=weight)


FOLD = Moments.from_data(*table(40, 3))
EMPTY = Moments.from_folds(*table(40, 3), np.repeat([0, 2], 20))[1]


@pytest.mark.parametrize(
    ("model", "moments", "error", "words"),
    [
        (SparseStepCV(5), [FOLD], ValueError, "at least two folds; got 1"),
        (SparseStepCV(5), FOLD, TypeError, "give a list"),
        (SparseStepCV(5), [1, 2], TypeError, "not <class 'int'>"),
        (SparseStep(), [FOLD], TypeError, r"got list\. Several become one by Moments\.merge"),
        (SparseStepCV(5), [FOLD, EMPTY, FOLD], ValueError, "Fold 1 has no row of positive weight"),
    ],
)
def test_folds_that_cannot_be_used(model, moments, error, words):
    with pytest.raises(error, match=words):
        model.fit_moments(moments)


@pytest.mark.parametrize("weighted", [False, True])
def test_repetitions_do_not_make_the_standard_error_small(weighted):
    X, y = table(80, 6, noise=3.0)
    weight = np.resize([1.0, 2.0, 1.0, 3.0], 80) if weighted else None
    repetitions = [KFold(8, shuffle=True, random_state=repetition) for repetition in range(6)]
    single = [SparseStepCV(20, cv=cv).fit(X, y, weight) for cv in repetitions]
    folds = [split for cv in repetitions for split in cv.split(X)]
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
        (SPLITTERS["repeated"], "3-fold cross-validation, 2 times"),
        (ShuffleSplit(7, test_size=0.25, random_state=0), "7 splits"),
        (TimeSeriesSplit(4), "4 splits"),
        ([(np.arange(40), np.arange(40, 60))], "one hold-out split"),
    ],
)
def test_splits_are_called_what_they_are(cv, scheme):
    X, y = table(60, 4)
    model = SparseStepCV(10, cv=cv).fit(X, y)
    facts = model.summary().facts
    assert f"({scheme}" in facts["alpha"] and float(facts["CV error"].split()[0]) > 0
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
