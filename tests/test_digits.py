"""Correct digits, by exact arithmetic: NIST's certified regressions and others as nasty."""

import pickle
import re
import warnings
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from nist import REGRESSIONS, digits, exact_least_squares, of_doubles
from rows import table
from sparsestep import Moments, SparseStep, SparseStepCV, SparseStepIC, sparsestep_path
from sparsestep.inference.facts import LostDigitsWarning, collinearity
from sparsestep.inference.refinement import total
from sparsestep.reference import sparsestep_reference

PAGE = Path(__file__).parent.parent / "docs" / "reliability.md"


def fewest_digits(model, X, y):
    """Of the intercept and all coefficients, against exact least squares on the same doubles."""
    exact = of_doubles(X, y, intercept=model.fit_intercept)
    found = [model.intercept_, *model.coef_] if model.fit_intercept else model.coef_
    return min(digits(a, b) for a, b in zip(found, exact, strict=True))


def stated_digits():
    """The rows of the page's table: name, digits from the rows, from moments, of NumPy."""
    lines = re.findall(
        r"^\| (\w+) \|[^|]*\|[^|]*\| (\d+) \| (\d+) \| (\d+) \|$", PAGE.read_text("utf-8"), re.M
    )
    return {name: tuple(map(int, numbers)) for name, *numbers in lines}


# --- the certified regressions --------------------------------------------------------------------


@pytest.mark.parametrize("name", REGRESSIONS)
def test_certified_values_are_the_exact_solution_to_their_last_digit(name):
    certified = REGRESSIONS[name]
    exact = exact_least_squares(certified.rows, certified.y, intercept=certified.intercept)
    for value, printed in zip(exact, certified.estimates, strict=True):
        last_digit = Fraction(10) ** Decimal(printed).as_tuple().exponent
        assert abs(value - Fraction(printed)) <= last_digit / 2


@pytest.mark.parametrize("alpha", [0.0, 1e-12])
@pytest.mark.parametrize("name", REGRESSIONS)
def test_the_certified_regressions_have_the_digits_that_the_page_states(name, alpha):
    certified = REGRESSIONS[name]
    X, y = certified.arrays()
    from_rows, from_moments, of_numpy = stated_digits()[name]
    model = SparseStep(alpha, fit_intercept=certified.intercept)
    assert fewest_digits(model.fit(X, y), X, y) >= from_rows
    with warnings.catch_warnings():
        warnings.simplefilter("error" if name != "Filip" else "ignore")
        model.fit_moments(Moments.from_data(X, y))
    assert fewest_digits(model, X, y) >= from_moments
    A = np.column_stack([np.ones(len(y)), X]) if certified.intercept else X
    exact = of_doubles(X, y, intercept=certified.intercept)
    found = np.linalg.lstsq(A, y, rcond=None)[0]
    assert abs(min(map(digits, found, exact)) - of_numpy) < 2


def test_the_page_states_all_of_them():
    assert list(stated_digits()) == list(REGRESSIONS)
    assert stated_digits()["Longley"][0] >= 9


@pytest.mark.parametrize("model", [SparseStepCV(5, cv=4), SparseStepIC(alphas=5)])
def test_the_chosen_model_has_all_digits_too(model):
    X, y = REGRESSIONS["Longley"].arrays()
    kept = np.flatnonzero(model.fit(X, y).coef_)
    assert len(kept) > 0
    model.coef_ = model.coef_[kept]
    assert fewest_digits(model, X[:, kept], y) > 14


# --- other data -----------------------------------------------------------------------------------


@settings(max_examples=60)
@given(
    seed=st.integers(0, 10**6),
    log_gap=st.floats(-6, 0),
    log_offset=st.floats(-1, 6),
    log_noise=st.floats(-6, 3),
    weighted=st.booleans(),
    intercept=st.booleans(),
    kind=st.sampled_from(["array", "sparse", "float32", "columns"]),
)
def test_collinear_columns_cost_no_digits(
    seed, log_gap, log_offset, log_noise, weighted, intercept, kind
):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((12, 4))
    X[:, 2] = X[:, 0] - X[:, 1] + 10.0**log_gap * X[:, 2]
    X[:, 3] *= 1e-20
    X += (10.0**log_offset - 0.1) * np.array([1.0, 2.0, -1.0, 1e-20])
    weight = rng.integers(0, 4, 12).astype(float) + (np.arange(12) < 7) if weighted else None
    y = X @ [1.0, 2.0, -1.0, 1e20] + 10.0**log_noise * rng.standard_normal(12)
    if kind == "float32":
        X = X.astype(np.float32)
    rows = {"sparse": sp.csr_array, "columns": np.asfortranarray}.get(kind, np.asarray)(X)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        model = SparseStep(0.0, fit_intercept=intercept).fit(rows, y, sample_weight=weight)
    if any(issubclass(w.category, LostDigitsWarning) for w in said):
        return
    exact = of_doubles(X, y, weight, intercept=intercept)[intercept:]
    error = [float(Fraction(float(a)) - b) for a, b in zip(model.coef_, exact, strict=True)]
    # In units in which the columns are of one size.
    size = X.std(axis=0)
    largest = np.max(np.abs(np.array(exact, dtype=float)) * size)
    assert np.max(np.abs(error) * size) <= 1e-10 * largest


def test_a_large_table_is_refined_in_plain_doubles_first():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((3000, 12))
    X[:, 6:] = X[:, :6] + 1e-4 * X[:, 6:]
    y = X @ np.ones(12) + rng.standard_normal(3000)
    refined = fewest_digits(SparseStep(0.0).fit(X, y), X, y)
    assert refined > 9
    assert fewest_digits(SparseStep(0.0).fit_moments(Moments.from_data(X, y)), X, y) < refined


def test_where_the_last_width_still_shows_the_answer_is_the_loops():
    X, y = table(40, 4)
    X[:, 3] = X[:, 2] + 1e-3 * X[:, 3]
    model = SparseStep(1.0, gamma_stop=0.05, epsilon=1e-2, standardize=False).fit(X, y)
    A, r = X - X.mean(axis=0), y - y.mean()
    loop = sparsestep_reference(A.T @ A, A.T @ r, 1.0, gamma_stop=0.05, epsilon=1e-2)
    kept = np.flatnonzero(loop)
    least_squares = np.linalg.lstsq(A[:, kept], r)[0]
    assert np.max(np.abs(loop[kept] / least_squares - 1)) > 1e-6
    assert_allclose(model.coef_, loop, rtol=1e-7)


# --- what is said where digits are gone -----------------------------------------------------------


@pytest.mark.parametrize("alpha", [0.0, 1e-6])
@pytest.mark.parametrize("offset", [0.0, 1e3, 1e6])
def test_what_epsilon_cut_is_not_made_up_for(offset, alpha):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((200, 4))
    X[:, 1] += X[:, 0]
    y = X @ [1.0, 0.25, 0.0, -0.8] + 0.1 * rng.standard_normal(200)
    found, literal = (
        SparseStep(alpha, epsilon=0.3, solver=solver).fit(X + offset, y)
        for solver in ("auto", "reference")
    )
    assert_allclose(found.coef_, literal.coef_, rtol=1e-8)


def test_lost_digits_are_reported_with_the_condition_number():
    X, y = REGRESSIONS["Filip"].arrays()
    moments = Moments.from_data(X, y)
    advice = r"\(condition number \d.\de\+07\), so that about 0 digits .* fit the rows in memory"
    with pytest.warns(LostDigitsWarning, match=advice) as said:
        SparseStep(0.0).fit_moments(moments)
    assert said[0].filename == __file__
    assert said[0].message.condition_number > 1e7 and said[0].message.digits == 0
    assert str(pickle.loads(pickle.dumps(said[0].message))) == str(said[0].message)
    with pytest.warns(LostDigitsWarning, match="fit one alpha to the rows") as said:
        sparsestep_path(X, y, alphas=[0.0])
    assert said[0].filename == __file__
    SparseStep(0.0).fit(X, y)
    with pytest.warns(LostDigitsWarning, match="drop some of them, or combine them"):
        SparseStep(0.0, solver="reference").fit(X, y)


@pytest.mark.parametrize("n", [5, 40, 400])
def test_ordinary_data_raise_no_alarm(n):
    X, y = table(n, 20, correlation=0.95, mean=100.0)
    for model in (
        SparseStep(0.0),
        SparseStep(1.0),
        SparseStepCV(10, cv=3),
        SparseStepIC(alphas=10),
    ):
        model.fit(X, y)
    SparseStep(0.0).fit_moments(Moments.from_data(X, y))
    # Copies are no matter of digits: the first is kept.
    SparseStep(0.0).fit(np.column_stack([X, X]), y)
    sparsestep_path(X, y, alphas=10)


def test_the_condition_number_is_that_of_the_standardized_columns():
    X, y = table(50, 4, correlation=0.9, mean=30.0)
    X *= [1.0, 1e5, 1e-7, 3.0]
    coef = np.array([1.0, 2.0, 0.0, 3.0])
    known = collinearity(Moments.from_data(X, y), coef)
    assert_array_equal(known.support, [0, 1, 3])
    Z = X[:, known.support]
    Z = (Z - Z.mean(axis=0)) / Z.std(axis=0)
    # LAPACK's estimate is in the 1-norm.
    assert 0.5 < known.condition_number / np.linalg.cond(Z) < 2.0
    S = (X - X.mean(axis=0))[:, known.support]
    assert_allclose(known.inverse_diagonal(), np.diag(np.linalg.inv(S.T @ S)), rtol=1e-9)


# --- twice the precision --------------------------------------------------------------------------


@given(st.lists(st.floats(-1e100, 1e100).filter(lambda x: x == 0 or abs(x) > 1e-100), max_size=40))
def test_totals_are_right_to_twice_the_digits(values):
    array = np.array(values)
    high, low = total((array, np.zeros_like(array)), axis=0)
    exact, size = sum(map(Fraction, values)), sum(abs(Fraction(v)) for v in values)
    assert abs(Fraction(float(high)) + Fraction(float(low)) - exact) <= Fraction(1, 10**28) * size


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("how", ["path", "cv", "ic", "sizes", "sparse", "weighted"])
def test_every_model_of_a_path_is_least_squares_on_the_rows(how, fit_intercept):
    rng = np.random.default_rng(0)
    x = np.linspace(-1, 1, 80)
    X = np.column_stack([x**p for p in range(1, 18)]) * 10.0 ** rng.integers(-3, 4, 17)
    y = np.exp(2 * x) * np.sin(9 * x) + 1e-3 * rng.standard_normal(80)
    weight = rng.uniform(0.5, 2.0, 80) if how == "weighted" else np.ones(80)
    options = {"fit_intercept": fit_intercept}
    if how in ("cv", "ic"):
        model = SparseStepCV(30, cv=4, **options) if how == "cv" else SparseStepIC(**options)
        path = model.fit(X, y).path_
    else:
        rows = sp.csr_array(X) if how == "sparse" else X
        alphas = "sizes" if how == "sizes" else 40
        path = sparsestep_path(rows, y, alphas=alphas, sample_weight=weight, **options)
    root = np.sqrt(weight)
    worst = 0.0
    for point in path:
        kept = np.flatnonzero(point.coef)
        A = np.column_stack([np.ones(80), X])[:, [*([0] if fit_intercept else []), *(kept + 1)]]
        size = np.linalg.norm(A, axis=0)
        expected = np.linalg.lstsq(A / size * root[:, None], y * root, rcond=0)[0]
        rss = np.sum((y * root - (A / size * root[:, None]) @ expected) ** 2)
        assert point.rss == pytest.approx(rss, rel=1e-8) and point.rss >= rss * (1 - 1e-9)
        own = [*([point.intercept] if fit_intercept else []), *point.coef[kept]] * size
        assert_allclose(own, expected, atol=1e-8 * np.abs(expected).max(initial=1.0))
        Z = (A - A.mean(axis=0) if fit_intercept else A) / size
        worst = max(worst, np.linalg.cond(Z[:, int(fit_intercept) :]) if len(kept) else 1.0)
    assert worst > 1e5  # from moments, four digits or fewer
