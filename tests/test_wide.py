"""More columns than rows: the literal loop on a working set, and no other column would enter."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import example, given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from designs import (
    WIDE_KINDS,
    compare_rows,
    fragile_of_rows,
    largest_drop,
    schedules,
    solve,
    wide_problem,
)
from source_data import peak_of
from sparsestep import Moments, SparseStep, SparseStepCV, SparseStepIC, sparsestep_path
from sparsestep.errors import ManyVariablesWarning
from sparsestep.reference import sparsestep_reference
from sparsestep.solvers.polish import RowGram, polish_path
from sparsestep.solvers.reference_rows import sparsestep_reference_rows
from sparsestep.solvers.scaled_problem import copies_among_rows
from sparsestep.solvers.schedule import Schedule
from sparsestep.solvers.wide import WorkingSets, solve_wide, supported_size

seeds = st.integers(0, 10**6)


@given(
    kind=st.sampled_from(WIDE_KINDS),
    n=st.integers(2, 60),
    columns_per_row=st.floats(1.05, 20),
    seed=seeds,
    shares=st.lists(st.floats(-4, 0.5), min_size=2, max_size=2),
    standardized=st.booleans(),
    copies=st.integers(0, 3),
)
@example("uncorrelated", 60, 6.5, 0, [-1.5, -2.5], True, 0)
@example("ar1", 40, 5.0, 1, [-2.0, -4.0], True, 0)
@settings(max_examples=60)
def test_the_answer_is_the_literal_loops_on_the_set(
    kind, n, columns_per_row, seed, shares, standardized, copies
):
    m = min(int(n * columns_per_row) + 1, 400)
    A, y = wide_problem(kind, n, m, seed, standardized)
    if copies:
        A = np.column_stack([A, *(-A[:, :copies].T)])
        A[:, copies_among_rows(A, np.arange(A.shape[1]))] = 0.0
    fragile_of_rows(A, y, largest_drop(A, y) * 10.0 ** np.array(shares))


@given(
    n=st.integers(2, 12),
    extra=st.integers(1, 20),
    powers=st.lists(st.integers(-10, 10), min_size=2, max_size=3),
    apart=st.sampled_from([1.0, 1e-3, 1e-5, 1e-6, 1e-7, 1e-9]),
    share=st.floats(-4.0, -0.1),
    seed=seeds,
)
@example(5, 7, [0, 8], 1.0, -2.0, 0)
@example(6, 30, [0, 0], 1e-6, -2.0, 1)
@example(2, 15, [0, 10], 1e-5, -1.0, 0)
@example(5, 1, [5, -9], 1.0, -3.0, 0)
@settings(max_examples=80)
def test_columns_of_far_different_sizes_and_rows_hardly_different(
    n, extra, powers, apart, share, seed
):
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((n, n + extra)) * 10.0 ** rng.choice(powers, n + extra)
    A[1:] = A[0] + apart * (A[1:] - A[0])
    y = rng.standard_normal(n)
    fragile_of_rows(A, y, [largest_drop(A, y) * 10.0**share])


@pytest.mark.parametrize("kind", ["uncorrelated", "ar1", "blocks"])
@pytest.mark.parametrize("lowest", [-1.5, -3.0])
def test_many_alphas_of_several_targets_give_the_literal_loop_too(kind, lowest):
    A, y = wide_problem(kind, 20, 60, 7)
    targets = np.stack([y, y[::-1], np.zeros(20)])
    alphas = np.stack([largest_drop(A, t) * np.logspace(0.3, lowest, 24) for t in (y, y[::-1], y)])
    sets = [WorkingSets(A, t, np.ones(60), Schedule()) for t in targets]
    found = solve_wide(sets, alphas)[0]
    for t in range(2):
        alone = solve(A, targets[t], alphas[t])
        assert_array_equal(found[t], alone[0])
        compare_rows(A, targets[t], alphas[t], alone)
    assert not found[2].any()


@given(
    seed=seeds,
    n=st.integers(4, 20),
    apart=st.floats(-7, -4),
)
@settings(max_examples=15)
def test_nearly_collinear_columns_have_the_digits_of_the_rows(seed, n, apart):
    """Their Gram matrix alone would lose those that decide."""
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((n, n + 3))
    near = rng.integers(0, n, 3)
    A[:, n:] = A[:, near] + 10.0**apart * A[:, n:]
    y = A @ rng.choice([0.0, 1.0], n + 3) + 0.3 * rng.standard_normal(n)
    alphas = largest_drop(A, y) * np.logspace(-5, 0, 20)
    fragile_of_rows(A, y, alphas)
    support = solve(A, y, alphas)[0] != 0
    for k in np.flatnonzero(np.any(np.diff(support, axis=0), axis=1)):
        low, high = alphas[k : k + 2]
        while high > 1.0002 * low:  # the support changes in between
            middle = np.sqrt(low * high)
            same = np.array_equal(solve(A, y, [middle])[0][0] != 0, support[k])
            low, high = (middle, high) if same else (low, middle)
        fragile_of_rows(A, y, [low, high])


@given(
    kind=st.sampled_from(["uncorrelated", "ar1"]),
    seed=seeds,
    share=st.floats(-3, 1),
    size=st.sampled_from([1.0, 1e-2, 1e-4, 1e-6, 1e-12]),
    schedule=schedules,
    # With factors this small, and a small target, the penalty still shows at the last gamma.
    factors=st.lists(st.sampled_from([1.0, 0.0, 1e-3, 0.3, 4.0, np.inf]), min_size=1, max_size=30),
)
# The loop sets small coefficients to zero at its very end, after those without a penalty are found.
@example("uncorrelated", 3, -1.0, 1e-4, Schedule(epsilon=0.05), [0.0, *[1.0] * 12])
@example("uncorrelated", 0, -1.0, 1.0, Schedule(gamma_stop=1e-4), [0.0, *[1.0] * 12])
@settings(max_examples=170)
def test_other_settings_and_factors_give_the_literal_loop_too(
    kind, seed, share, size, schedule, factors
):
    A, y = wide_problem(kind, 10, 26, seed)
    y, factor = size * y, np.resize(factors, 26)
    alphas = [largest_drop(A, y) * 10.0**share]
    found = solve(A, y, alphas, schedule, factor)[0][0]
    if np.count_nonzero(factor == 0) < 9:
        nothing = 1e-9 if np.any(factor == 0) else 1e-13
        fragile_of_rows(A, y, alphas, schedule, factor, nothing)
    else:  # the columns without a penalty explain everything
        assert_allclose(A @ found, y, atol=1e-8)
        assert not np.any(found[factor > 0])
    assert not np.any(found[np.isinf(factor)])


@pytest.mark.parametrize("alpha", [0.3, 1.0, 10.0])
def test_the_literal_loop_on_rows_is_the_one_on_the_matrix(alpha):
    A, y = wide_problem("uncorrelated", 10, 25, 4)
    some = np.resize([1.0, 0.5, np.inf, 1.0, 2.0], 25)
    some[7] = 0.0
    for factor in (None, some):
        by_matrix = sparsestep_reference(A.T @ A, A.T @ y, alpha, penalty_factor=factor)
        by_rows = sparsestep_reference_rows(A, y, alpha, penalty_factor=factor)
        assert_allclose(by_rows, by_matrix, rtol=1e-8)


def test_a_tiny_alpha_interpolates_with_as_many_variables_as_rows():
    A, y = wide_problem("uncorrelated", 20, 60, 0)
    coef = solve(A, y, [1e-9 * largest_drop(A, y)])[0][0]
    assert np.count_nonzero(coef) == 19  # the rows are centred
    assert_allclose(A @ coef, y, atol=1e-9)


@pytest.mark.parametrize("size_x", [1e-140, 1e-30, 1.0, 1e30, 1e140])
@pytest.mark.parametrize("size_y", [1e-100, 1e-20, 1.0, 1e20, 1e100])
def test_extreme_magnitudes(size_x, size_y):
    A, y = wide_problem("uncorrelated", 12, 30, 0)
    fragile_of_rows(size_x * A, size_y * y, size_y**2 * np.array([0.1, 2.0]))


def test_copies_are_found_whatever_their_sign_size_and_place():
    rng = np.random.default_rng(0)
    A = rng.standard_normal((8, 30))
    A[:, 4], A[:, 20], A[:, 9], A[:, 11] = -2 * A[:, 17], A[:, 17], 1e-6 * A[:, 3], 0.0
    copies = copies_among_rows(A, np.arange(30))
    assert_array_equal(np.flatnonzero(copies), [9, 17, 20])
    rank = np.arange(30)
    rank[[4, 20]] = [20, 4]
    assert_array_equal(np.flatnonzero(copies_among_rows(A, rank)), [4, 9, 17])


problems = st.builds(
    wide_problem,
    kind=st.sampled_from(WIDE_KINDS),
    n=st.integers(5, 40),
    m=st.integers(45, 200),
    seed=seeds,
)
shares_of_the_largest_drop = st.lists(st.floats(-2.5, 0.5), min_size=1, max_size=4)


@given(problem=problems, shares=shares_of_the_largest_drop, factors=st.booleans())
@settings(max_examples=60)
def test_no_column_outside_the_set_would_enter(problem, shares, factors):
    """Unless the loop on the set has refused one that would lower the residuals by as much."""
    A, y = problem
    alphas = largest_drop(A, y) * 10.0 ** np.array(shares)
    rng = np.random.default_rng(len(y))
    factor = rng.choice([0.5, 1.0, 3.0], A.shape[1]) if factors else np.ones(A.shape[1])
    length = np.linalg.norm(A, axis=0)
    for alpha, b, which in zip(alphas, *solve(A, y, alphas, factor=factor), strict=True):
        used = np.flatnonzero(length > 0)
        drop = np.zeros(A.shape[1])
        drop[used] = ((y - A @ b) @ A[:, used] / length[used]) ** 2 / factor[used]
        inside = np.isin(np.arange(A.shape[1]), which)
        assert not np.any(b[~inside])
        refused = drop[inside & (b == 0)].max(initial=0.0)
        most = max(Schedule().price() * alpha, refused) * (1 + 1e-6)
        assert np.all(drop[~inside] <= most + 1e-9 * (y @ y))


@given(problem=problems, shares=shares_of_the_largest_drop)
@settings(max_examples=40)
def test_other_alphas_do_not_matter(problem, shares):
    A, y = problem
    alphas = largest_drop(A, y) * 10.0 ** np.array(shares)
    for alpha, found in zip(alphas, solve(A, y, alphas)[0], strict=True):
        assert_allclose(solve(A, y, [alpha])[0][0], found, rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("criterion", ["aic", "bic", "ebic", "gic"])
@pytest.mark.parametrize("polish", [None, "swap"])
@pytest.mark.parametrize("alphas", [101, [1e3, 1e2, 10.0, 1.0, 0.1]])
def test_a_noisy_target_gets_no_model_of_noise(criterion, polish, alphas):
    """As residuals go to zero, criteria would keep as many variables as there are rows."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((50, 1000))
    y = X[:, :3] @ [2.0, -2.0, 2.0] + rng.standard_normal(50)
    model = SparseStepIC(criterion, alphas=alphas, polish=polish).fit(X, y)
    assert np.count_nonzero(model.coef_) <= supported_size(50, 1000)


def test_more_variables_than_the_rows_support_are_warned_of():
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((50, 1000)), rng.standard_normal(50)
    with pytest.warns(ManyVariablesWarning, match="50 rows can support about 5"):
        model = SparseStep(0.1).fit(X, y)
    assert "50 rows can support about 5" in str(model.summary())
    with pytest.warns(ManyVariablesWarning, match="keeps 9 variables, chosen among 1000 columns"):
        SparseStep(n_nonzero=9).fit(X, y)


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("standardize", [True, False])
def test_estimators_follow_the_literal_loop_on_the_set(fit_intercept, standardize):
    rng = np.random.default_rng(1)
    X = 3.0 + rng.standard_normal((25, 60)) * 10.0 ** rng.uniform(-1, 1, 60)
    y = X[:, 3] / X[:, 3].std() - X[:, 8] / X[:, 8].std() + 0.1 * rng.standard_normal(25)
    how = {"fit_intercept": fit_intercept, "standardize": standardize}
    weight = rng.integers(0, 3, 25)
    for rows in (X, sp.csr_array(X)):
        fast = SparseStep(0.5, **how).fit(rows, y, weight)
        kept = np.flatnonzero(fast.coef_)
        slow = SparseStep(0.5, solver="reference", **how).fit(X[:, kept], y, weight)
        assert_allclose(fast.coef_[kept], slow.coef_, rtol=1e-7)
        assert_allclose(fast.intercept_, slow.intercept_, rtol=1e-7, atol=1e-12)


def test_the_reference_is_the_loop_on_all_columns_and_the_default_on_the_working_set():
    A, y = wide_problem("uncorrelated", 12, 30, 8)
    literal = SparseStep(1.0, solver="reference").fit(A, y).coef_
    assert_allclose(literal, sparsestep_reference_rows(A, y, 1.0), rtol=1e-7, atol=1e-12)
    default = SparseStep(1.0).fit(A, y).coef_
    assert_allclose(default, solve(A, y, [1.0])[0][0], rtol=1e-7, atol=1e-12)


@pytest.mark.parametrize("m", [44, 70, 200])
def test_an_automatic_grid_ends_where_the_rows_support_no_more(m):
    A, y = wide_problem("uncorrelated", 40, m, 3)
    path = sparsestep_path(A, y, alphas=20)
    largest = int(40 / np.log(m) / np.log(np.log(40)))
    assert path.supported_size == supported_size(40, m) == largest
    assert path.n_nonzero[0] == 0 and path.n_nonzero[4:].all()
    assert largest <= path.n_nonzero[-1] <= 2 * largest and path.n_nonzero[-3] <= largest
    for scale in (1e-5, 1e5):
        other = sparsestep_path(A, scale * y, alphas=20)
        assert_allclose(other.alphas, scale**2 * path.alphas, rtol=1e-6)


def test_training_sets_with_more_columns_than_rows_do_not_end_the_grid():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((120, 50))
    y = X[:, :25].sum(axis=1) + 0.01 * rng.standard_normal(120)
    model = SparseStepCV(cv=10).fit(X[:55], y[:55])
    assert model.path_.n_nonzero[-1] == 50
    assert_array_equal(np.flatnonzero(model.coef_), np.arange(25))
    assert model.score(X[55:], y[55:]) > 0.999


def test_every_size_that_the_rows_support_and_a_size_beyond():
    A, y = wide_problem("uncorrelated", 60, 150, 3)
    path = sparsestep_path(A, y, alphas="sizes")
    largest = supported_size(60, 150)
    found = {*path.n_nonzero.tolist(), *path.missing_sizes}
    assert set(range(largest + 1)) <= found and len(path.missing_sizes) < 3
    assert max(path.missing_sizes, default=0) <= largest
    beyond = next(size for size in range(largest + 1, 60) if size not in path.n_nonzero)
    with pytest.raises(ValueError, match=rf"SparseStep\(n_nonzero={beyond}\) looks for one"):
        path.select(beyond)
    largest = int(path.n_nonzero.max())
    with pytest.warns(ManyVariablesWarning, match="60 rows can support about 8"):
        model = SparseStep(n_nonzero=largest).fit(A, y)
    assert np.count_nonzero(model.coef_) == largest


@given(seed=seeds, price=st.floats(-2.5, -0.01))
@settings(max_examples=20)
def test_polishing_needs_no_matrix(seed, price):
    A, y = wide_problem("ar1", 12, 25, seed)
    terms = np.array([largest_drop(A, y) * 10.0**price]), np.ones(25)
    start = 1.0 * (np.random.default_rng(seed).random((1, 25)) < 0.2)
    by_rows = polish_path(RowGram(A), A.T @ y, *terms, start)
    by_matrix = polish_path(A.T @ A, A.T @ y, *terms, start)
    assert_array_equal(by_rows != 0, by_matrix != 0)
    assert_allclose(by_rows, by_matrix, rtol=1e-6, atol=1e-12)


@pytest.mark.parametrize(
    "fit",
    [
        lambda X, y: sparsestep_path(X, y, alphas=10),
        lambda X, y: SparseStep(5.0, polish="swap").fit(X, y).summary(),
        lambda X, y: SparseStepCV(6, cv=3).fit(X, y),
        lambda X, y: SparseStepIC("ebic", alphas=6).fit(X, y).summary(),
        lambda X, y: SparseStep(n_nonzero=2).fit(X, y),
    ],
    ids=["path", "polish", "cv", "ic", "size"],
)
def test_memory_is_a_few_times_the_rows(fit):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 20_000))
    y = X[:, :3] @ [2.0, -2.0, 2.0] + 0.5 * rng.standard_normal(60)
    # The matrix of the columns would be 3.2 GB, 333 times the rows; even a tenth of it shows.
    assert peak_of(lambda: fit(X, y))[1] < 20 * X.nbytes


def test_sparse_rows_stay_thin():
    rng = np.random.default_rng(3)
    X = sp.random_array((80, 5000), density=0.02, rng=rng, format="csr")
    y = X[:, [7]].toarray()[:, 0] * 5.0 + 0.01 * rng.standard_normal(80)
    coef = SparseStep(0.05).fit(X, y).coef_
    assert_allclose(coef, SparseStep(0.05).fit(X.toarray(), y).coef_, rtol=1e-7)
    kept = np.flatnonzero(coef)
    expected = 80 * np.cov(X[:, kept].toarray(), rowvar=False, ddof=0)
    block = Moments.from_data(X, y).gram_block(kept)
    assert_allclose(block, np.atleast_2d(expected), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize(
    ("seed", "alpha", "settings"),
    [
        (58, 0.1, {"gamma_step": 10.0, "t_max": 1}),
        (25, 1e-3, {"gamma_stop": 1e-3}),
        (57, 0.02194, {"gamma_step": 30.0, "gamma_stop": 1.5716e-05}),
    ],
)
def test_what_the_loop_does_not_reach_before_its_end(seed, alpha, settings):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((12, 20))
    y = X[:, :4] @ [2.0, -1.0, 0.5, 0.1] + 0.1 * rng.standard_normal(12)
    A, y = (X - X.mean(axis=0)) / X.std(axis=0), (y - y.mean()) / y.std()
    fragile_of_rows(A, y, np.array([alpha / 4, alpha]), Schedule(**settings))
