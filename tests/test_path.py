"""Paths: which alphas they have, what their models are, and every model size."""

import sys

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy.sparse import csr_array
from sklearn.base import clone
from sklearn.datasets import load_diabetes

from rows import fit_rows, squared_errors, table
from sparsestep import Moments, Path, SparseStep, SparseStepCV, SparseStepIC, sparsestep_path
from sparsestep.selection.fitting import SearchRange, every_size


@pytest.mark.parametrize("kind", ["array", "sparse", "pandas", "polars", "moments"])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("standardize", [True, False])
def test_models_are_those_of_the_loop_on_the_rows(kind, weighted, fit_intercept, standardize):
    X, y = table(50, 5)
    X *= [1.0, 3.0, 0.1, 1.0, 2.0]
    weight = np.resize([1.0, 2.0, 0.0, 0.5] if weighted else 1.0, 50)
    how = {"fit_intercept": fit_intercept, "standardize": standardize}
    new = {"sparse": csr_array, "pandas": pd.DataFrame, "polars": pl.DataFrame}.get(kind, list)(X)
    rows = {"X": new, "y": y[:, None], "sample_weight": weight if weighted else None}
    model = SparseStep(30.0, **how)
    if kind == "moments":
        rows = {"X": Moments.from_data(X, y, weight)}
        model.fit_moments(rows["X"])
    else:
        model.fit(**rows)
    given = sparsestep_path(**rows, **how, alphas=[3.0, 300.0, 30.0, 3.0, 0.0])
    assert_array_equal(given.alphas, [300.0, 30.0, 3.0, 0.0])
    assert_allclose(np.ravel(model.coef_), given[1].coef, rtol=1e-8)
    assert_allclose(np.ravel(model.intercept_), given[1].intercept, rtol=1e-8, atol=1e-12)
    sizes = sparsestep_path(**rows, **how, alphas="sizes")
    assert_array_equal(sizes.n_nonzero, np.arange(6))
    assert np.all(np.diff(sizes.rss) < 0)
    for path in (given, sizes):
        predicted = path.predict(new[:7])
        assert predicted.shape == (7, len(path)) and path.n_samples == weight.sum()
        for point in path:
            coef, intercept = fit_rows(X, y, point.alpha, weight, **how)
            errors = squared_errors(X, y, coef, intercept)
            assert_allclose(point.coef, coef, rtol=1e-8)
            assert_allclose(point.intercept, intercept, rtol=1e-8, atol=1e-12)
            assert_allclose(point.rss, errors @ weight, rtol=1e-9)
            assert_allclose(predicted[:, point.index], X[:7] @ coef + intercept)
            assert point.n_nonzero == np.count_nonzero(coef)
            assert path[point.index].alpha == path[point.index - len(path)].alpha == point.alpha


def test_a_path_is_a_sequence_of_models():
    path = sparsestep_path(*table(50, 5), alphas=[300.0, 30.0, 3.0, 0.0])
    assert repr(path) == "Path(n_features=5, n_alphas=4, n_nonzero=0 to 5)"
    assert [point.alpha for point in path[1:3]] == [30.0, 3.0]
    assert [point.index for point in path[::-2]] == [3, 1]
    assert path[5:] == [] and path[np.int64(-1)].index == 3


FRAME = pd.DataFrame(table(50, 3)[0], columns=["a", "b", "c"])


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda path: path[4], IndexError, "4 models, from 0; got 4"),
        (lambda path: path[-5], IndexError, "4 models, from 0; got -5"),
        (lambda path: path["bic"], TypeError, "whole numbers and slices; got 'bic'"),
        *(
            (lambda path, by=by: path.select(by), ValueError, "aic, bic, ebic, gic or a number")
            for by in ("BIC", "sizes", 2.5, None, [1])
        ),
        (lambda path: path.criterion("cp"), ValueError, "aic, bic, ebic, gic; got 'cp'"),
        (lambda path: path.predict(FRAME.rename(columns={"c": "d"})), ValueError, "'c'.*has 'd'"),
        (lambda path: path.predict(FRAME[["b", "a", "c"]]), ValueError, "^The columns of X.*order"),
        (lambda path: path.predict(FRAME.to_numpy()[:, :2]), ValueError, "2 columns.* to 3"),
        (
            lambda path: sparsestep_path(Moments.from_data(*table()), table()[1]),
            ValueError,
            "leave out y and sample_weight",
        ),
        (lambda path: sparsestep_path(FRAME, FRAME), ValueError, "one target; y has 3 columns"),
    ],
)
def test_what_a_path_refuses(call, error, words):
    path = sparsestep_path(FRAME, table(50, 3)[1], alphas=[100.0, 10.0, 1.0, 0.0])
    with pytest.raises(error, match=words):
        call(path)


def test_a_path_as_a_frame(monkeypatch):
    X, y = table(50, 3)
    path = sparsestep_path(pd.DataFrame(X, columns=["a", "alpha", "c"]), y, alphas=[100.0, 1.0])
    frame = path.to_frame()
    assert list(frame) == ["alpha", "n_nonzero", "rss", "intercept", "a", "alpha", "c"]
    assert frame.shape == (2, 7)
    for row, point in zip(frame.to_numpy(), path, strict=True):
        facts = [point.alpha, point.n_nonzero, point.rss, point.intercept]
        assert_array_equal(row, [*facts, *point.coef])
    assert list(sparsestep_path(X, y, alphas=2).to_frame())[4:] == ["x0", "x1", "x2"]
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ImportError, match="to_frame needs pandas"):
        path.to_frame()


def test_a_path_is_printed_as_a_short_table():
    path = sparsestep_path(*load_diabetes(return_X_y=True), alphas=[5e5, 2e5, 1e5])
    assert str(path).splitlines() == [
        "Path(n_features=10, n_alphas=3, n_nonzero=1 to 2)",
        "variables        alpha          rss",
        "        1        5e+05   1.7196e+06",
        "        2        2e+05   1.4167e+06",
    ]
    path = sparsestep_path(*table(60, 30), alphas="sizes")
    lines = str(path).splitlines()
    sizes = np.unique(path.n_nonzero)
    assert [int(line.split()[0]) for line in lines[2:-1]] == sizes[:12].tolist()
    assert lines[-1] == f"and {len(sizes) - 12} more, to 30 variables"


@given(
    seed=st.integers(0, 10**6),
    correlation=st.sampled_from([0.0, 0.5]),
    factor=st.just([1.0] * 8)
    | st.lists(st.sampled_from([0.0, 0.2, 1.0, 5.0, np.inf]), min_size=8, max_size=8),
    fit_intercept=st.booleans(),
    exponent=st.integers(-6, 6),
    model=st.sampled_from([SparseStepCV(10, cv=3), SparseStepIC(alphas=10)]),
)
@settings(max_examples=25)
def test_grids_reach_the_smallest_and_the_largest_model_and_sizes_are_found_or_reported(
    seed, correlation, factor, fit_intercept, exponent, model
):
    X, y = table(60, 8, seed, correlation=correlation)
    options = {"penalty_factor": factor, "fit_intercept": fit_intercept}
    model = clone(model).set_params(**options)
    of_y, of_unit = (clone(model).fit(X, unit * y) for unit in (1.0, 10.0**exponent))
    always, never = np.array(factor) == 0, np.isinf(factor)
    grid = of_unit.path_.n_nonzero
    assert grid[0] == always.sum() and grid[-1] == 8 - never.sum()
    assert len(of_y.alphas_) == 10 and np.ptp(np.diff(np.log(of_y.alphas_))) < 1e-6
    assert_allclose(of_unit.alphas_, 100.0**exponent * of_y.alphas_, rtol=1e-9)
    sizes = sparsestep_path(X, 10.0**exponent * y, alphas="sizes", **options)
    assert np.all(sizes.coefs[always] != 0) and np.all(sizes.coefs[never] == 0)
    found = sorted([*sizes.n_nonzero, *sizes.missing_sizes])
    assert found == list(range(always.sum(), 9 - never.sum())) and len(sizes.missing_sizes) <= 1
    assert np.all(np.diff(sizes.alphas) < 0)


@given(
    seed=st.integers(0, 10**6),
    powers=st.lists(st.integers(-30, 30), min_size=1, max_size=5),
    wide=st.booleans(),
)
@example(0, [-20], False)
@example(0, [20], False)
@example(0, [-15, 0, 0, 0, 0], False)
@example(0, [-15, 0], True)
@settings(max_examples=12)
def test_grids_whatever_the_size_of_the_penalty_factors(seed, powers, wide):
    X, y = table(12, 20, seed) if wide else table(40, 5, seed)
    factor = 10.0 ** np.resize(powers, X.shape[1])
    path = sparsestep_path(X, y, alphas=10, penalty_factor=factor)
    assert path.n_nonzero[0] == 0 and path.n_nonzero[-1] >= (4 if wide else 5)
    path = sparsestep_path(X, y, alphas="sizes", penalty_factor=factor)
    assert {0, 4 if wide else 5} <= {*path.n_nonzero.tolist(), *path.missing_sizes}
    assert path.n_nonzero[0] == 0 and path.n_nonzero[-1] >= (4 if wide else 5)


def test_a_constant_column_counts_only_without_an_intercept():
    X, y = table(40, 3)
    X = np.column_stack([np.ones(40), X])
    assert sparsestep_path(X, y).n_nonzero[-1] == 3
    assert sparsestep_path(X, y, fit_intercept=False).n_nonzero[-1] == 4


def test_grid_of_a_target_that_nothing_explains():
    X, _ = table(20, 3)
    for y in (np.zeros(20), np.full(20, 7.5)):
        path = sparsestep_path(X, y, alphas=5)
        assert_array_equal(path.coefs, 0.0)
        assert_allclose(path.intercepts, y[0])
        assert np.all(np.diff(path.alphas) < 0)


def test_settings_that_never_give_a_null_model_end_the_climb():
    # Without epsilon nothing becomes exactly zero while the last gamma is this wide.
    X, y = table(40, 3)
    path = sparsestep_path(X, y, alphas=5, epsilon=0.0, gamma_stop=1e-2, solver="reference")
    assert np.all(path.n_nonzero == 3) and np.all(np.isfinite(path.coefs))
    path = sparsestep_path(X, y, alphas="sizes", epsilon=0.0, gamma_stop=1e-2, solver="reference")
    assert_array_equal(path.n_nonzero, [3])
    assert path.missing_sizes == (0, 1, 2)


def test_search_for_sizes_that_are_not_monotone_and_have_a_gap():
    """Sizes as a known function of alpha: 3 comes only inside a narrow window, 5 never."""

    def sizes(alphas):
        kept = np.select([alphas > 10, alphas > 1, alphas > 0.1], [0, 1, 2], default=6)
        kept = np.where((alphas > 0.1) & (alphas < 0.1002), 3, kept)
        return np.where((alphas > 0.0999) & (alphas <= 0.1), 4, kept)

    alphas, missing = every_size(sizes, SearchRange(np.array([20.0]), 6))
    assert missing == [5]
    assert set(sizes(alphas)) == {0, 1, 2, 3, 4, 6}
    assert np.all(np.diff(alphas) < 0) and len(alphas) < 1000


def test_a_path_draws_itself():
    pytest.importorskip("matplotlib").use("Agg")
    path = sparsestep_path(*table(), alphas=8)
    display = path.plot(alpha=path.alphas[3])
    assert isinstance(path, Path) and display.alpha == path.alphas[3]
    assert_array_equal(display.coefs, path.coefs)


def test_a_grid_ends_where_dependent_columns_let_no_more_in():
    rng = np.random.default_rng(0)
    groups = np.eye(4)[rng.integers(0, 4, 300)]
    X = np.concatenate([rng.standard_normal((300, 6)), groups], axis=1)
    y = 2 * X[:, 0] + 1.5 * X[:, 7] + rng.standard_normal(300)
    path = sparsestep_path(X, y)
    # Indicators of all groups add up to the intercept's column: 9 of 10 are independent.
    assert path.n_nonzero[0] == 0 and path.n_nonzero[-1] == path.n_nonzero.max() == 9
    every = sparsestep_path(X, y, alphas="sizes")
    assert every.n_nonzero.tolist() == list(range(10))
    assert every.missing_sizes == ()


@pytest.mark.parametrize(
    ("rows", "alphas"),
    [
        (load_diabetes(return_X_y=True), np.geomspace(1e6, 10.0, 300)),
        (table(60, 8, 18, correlation=0.95, noise=3.0), 100),
    ],
)
def test_of_a_size_the_best_fitting_and_of_its_alphas_the_largest_is_selected(rows, alphas):
    path = sparsestep_path(*rows, alphas=alphas)
    several = 0
    for size in np.unique(path.n_nonzero):
        chosen, alike = path.select(int(size)), path.n_nonzero == size
        several += len(np.unique(path.rss[alike].round(6))) > 1
        assert chosen.rss == pytest.approx(path.rss[alike].min(), rel=1e-12)
        same = np.all((chosen.coef != 0) == (path.coefs != 0).T, axis=1)
        assert chosen.alpha == path.alphas[same].max()
    assert several > 0


def test_of_every_size_the_null_model_is_where_the_first_variable_enters():
    X, y = load_diabetes(return_X_y=True, scaled=False)
    path = sparsestep_path(X, y, alphas="sizes")
    assert path.n_nonzero[0] == 0 and path.alphas[0] < 2.0 * path.alphas[1]
