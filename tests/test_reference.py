"""The literal loop against the authors' R package, closed forms and its guarantee of descent."""

from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from sparsestep.penalty import penalty
from sparsestep.reference import ridge, sparsestep_reference
from sparsestep.solvers.schedule import Schedule

GOLDEN = Path(__file__).parent / "golden"
NAMES = ["small", "dense", "correlated", "noisy"]


def read(name, what):
    return np.genfromtxt(GOLDEN / f"{name}_{what}.csv", delimiter=",")


def moments(X, y):
    return X.T @ X, X.T @ y


def least_squares_on(support, S, q):
    b = np.zeros_like(q)
    b[support] = np.linalg.solve(S[np.ix_(support, support)], q[support])
    return b


def design(seed, n, m, correlation=0.5, noise=1.0):
    """Equicorrelated columns and a target that every second one of them moves."""
    rng = np.random.default_rng(seed)
    common = rng.standard_normal((n, 1))
    X = np.sqrt(correlation) * common + np.sqrt(1 - correlation) * rng.standard_normal((n, m))
    beta = np.where(np.arange(m) % 2 == 0, rng.uniform(-2, 2, m), 0.0)
    return X, X @ beta + noise * rng.standard_normal(n)


@pytest.mark.parametrize("name", NAMES)
def test_the_authors_answers_and_least_squares_where_their_program_fails(name):
    S, q = moments(read(name, "X"), read(name, "y"))
    results = read(name, "sparsestep")
    alphas, theirs = results[:, 0], results[:, 1:]
    ours = np.array([sparsestep_reference(S, q, alpha) for alpha in alphas])
    answered = ~np.isnan(theirs).any(axis=1)
    assert len(ours) == 19 and 14 <= answered.sum() < 19
    assert_array_equal(ours[answered] != 0, theirs[answered] != 0)
    assert_allclose(ours[answered], theirs[answered], rtol=0, atol=1e-10)
    for b in ours[~answered]:
        # At the smallest gamma nothing of the penalty is left on the coefficients that survive it.
        assert_allclose(b, least_squares_on(b != 0, S, q), rtol=1e-9, atol=0)


@given(
    seed=st.integers(0, 2**32 - 1),
    n=st.integers(2, 40),
    m=st.integers(1, 12),
    correlation=st.floats(0, 0.99),
    exponent=st.floats(-3, 5),
    factors=st.lists(st.sampled_from([0.0, 0.5, 1.0, 3.0]), min_size=12, max_size=12),
)
def test_the_loss_never_rises_within_a_value_of_gamma(seed, n, m, correlation, exponent, factors):
    X, y = design(seed, n, m, correlation)
    alpha, factor = 10**exponent, np.array(factors[:m])
    steps = [(1e6, np.zeros(m))]
    sparsestep_reference(
        *moments(X, y), alpha, penalty_factor=factor, callback=lambda *step: steps.append(step)
    )
    assert len(steps) == 1 + 94

    def loss(b, gamma):
        return np.sum((y - X @ b) ** 2) + alpha * np.sum(factor * penalty(b, gamma))

    # A step's loss is taken at its own gamma, also where it starts: the last b of the gamma before.
    for (_, b_old), (gamma, b) in pairwise(steps):
        assert loss(b, gamma) <= loss(b_old, gamma) * (1 + 1e-10) + 1e-10 * (y @ y)


def test_the_schedule_is_the_printed_one():
    S, q = moments(*design(0, 30, 3))
    gammas = []
    sparsestep_reference(S, q, 1.0, callback=lambda gamma, b: gammas.append(gamma))
    assert_array_equal(gammas, np.repeat(1e6 * 0.5 ** np.arange(47), 2))
    assert gammas[-1] > 1e-8 >= gammas[-1] / 2


@pytest.mark.parametrize("scales", [1.0, 10.0 ** np.arange(-3, 3)], ids=["equal", "unequal"])
def test_alpha_zero_is_least_squares_and_of_collinear_columns_the_shortest(scales):
    X, y = design(2, 50, 6)
    X *= scales
    found = sparsestep_reference(*moments(X, y), 0.0, epsilon=0.0)
    assert_allclose(found, np.linalg.lstsq(X, y)[0], rtol=1e-9)
    X = np.column_stack([X, X[:, 0], X[:, 1] - 2 * X[:, 2]])
    b = sparsestep_reference(*moments(X, y), 0.0, epsilon=0.0)
    assert_allclose(b, np.linalg.lstsq(X, y)[0], rtol=1e-5, atol=1e-9)


def loop_on_rows(X, y, alpha):
    """The same loop through the singular values of X D^-1/2, which no rounding in X'X can reach."""
    b, gamma = np.zeros(X.shape[1]), 1e6
    while gamma > 1e-8:
        for _ in range(2):
            root = np.sqrt(alpha) * gamma / (b**2 + gamma**2)
            U, s, Vt = np.linalg.svd(X / root, full_matrices=False)
            b = Vt.T @ (s / (s**2 + 1) * (U.T @ y)) / root
        gamma /= 2
    return np.where(np.abs(b) < 1e-7, 0.0, b)


@pytest.mark.parametrize(("n", "m"), [(20, 60), (30, 35), (15, 15)])
@pytest.mark.parametrize("alpha", [1e-3, 1.0, 30.0])
def test_columns_as_many_as_rows_or_more(n, m, alpha):
    X, y = design(3, n, m, noise=0.3)
    X -= X.mean(axis=0)
    expected = loop_on_rows(X, y, alpha)
    assert_allclose(sparsestep_reference(*moments(X, y), alpha), expected, rtol=1e-8)


@pytest.mark.parametrize(
    ("alpha", "xx", "settings", "cutoff", "within"),
    [
        (1.0, 1.0, {}, 0.8287, 1e-4),
        (30.0, 1.0, {}, 0.8287, 1e-4),
        (1.0, 200.0, {}, 0.8287, 1e-4),
        (7.0, 1e4, {}, 0.8287, 1e-4),
        (1.5, 1.0, {"t_max": 1}, np.sqrt(0.5), 1e-4),
        (1.0, 1.0, {"gamma_step": 1.1}, 0.9762, 1e-4),
        # With more steps per gamma it matters where the schedule's values fall beside |b|.
        (1.0, 1.0, {"t_max": 5}, 0.914, 2e-3),
        (7.0, 1e4, {"t_max": 5}, 0.914, 2e-3),
        (1.0, 1.0, {"t_max": 10}, 0.943, 6e-3),
        (2.0, 1.0, {"t_max": 10}, 0.943, 6e-3),
    ],
)
def test_cutoff_of_an_orthogonal_design(alpha, xx, settings, cutoff, within):
    unit = np.sqrt(alpha / xx)
    out, kept = 0.5, 1.5
    while kept - out > 2e-5:
        middle = (out + kept) / 2
        b = sparsestep_reference([[xx]], [xx * middle * unit], alpha, **settings)[0]
        if b != 0:
            assert b == pytest.approx(middle * unit, rel=1e-9)
            kept = middle
        else:
            out = middle
    assert kept == pytest.approx(cutoff, abs=within)
    # What the solver of wide data takes for it.
    assert np.sqrt(Schedule(**settings).price()) == pytest.approx(cutoff, abs=4e-3 + within)


def test_penalty_factor_zero_is_always_kept():
    S, q = moments(*design(4, 60, 6))
    assert_array_equal(sparsestep_reference(S, q, 1e6), np.zeros(6))
    b = sparsestep_reference(S, q, 1e6, penalty_factor=[1, 0, 1, 1, 0, 1])
    assert_array_equal(b != 0, [False, True, False, False, True, False])
    assert_allclose(b, least_squares_on(b != 0, S, q), rtol=1e-9)
    below_epsilon = sparsestep_reference(np.eye(2), [1e-9, 1e-9], 1.0, penalty_factor=[0, 1])
    assert_allclose(below_epsilon, [1e-9, 0.0], rtol=1e-12)


@pytest.mark.parametrize("alpha", [0.0, 5.0])
@pytest.mark.parametrize("why", ["infinite penalty", "zeros"])
def test_columns_that_are_never_in_the_model(alpha, why):
    X, y = design(5, 60, 6)
    out, rest = [0, 3], [1, 2, 4, 5]
    factor = np.ones(6)
    if why == "zeros":
        X[:, out] = 0.0
    else:
        factor[out] = np.inf
    S, q = moments(X, y)
    b = sparsestep_reference(S, q, alpha, penalty_factor=factor)
    assert_array_equal(b[out], 0.0)
    assert_array_equal(b[rest], sparsestep_reference(S[np.ix_(rest, rest)], q[rest], alpha))


def test_penalty_factor_multiplies_alpha():
    S, q = moments(*design(6, 60, 6))
    doubled = sparsestep_reference(S, q, 4.0, penalty_factor=np.full(6, 2.0))
    assert_array_equal(doubled, sparsestep_reference(S, q, 8.0))


@pytest.mark.parametrize("settings", [{"gamma_step": 1.0}, {"gamma_stop": 0.0}])
def test_a_schedule_without_end_is_refused(settings):
    with pytest.raises(ValueError, match="gamma_step must be greater than 1"):
        sparsestep_reference([[1.0]], [1.0], 1.0, **settings)


@given(seed=st.integers(0, 10_000), weight=st.sampled_from([1e-20, 1e-3, 1.0, 1e20]))
def test_where_nothing_decides_between_columns_the_solution_is_the_shortest(seed, weight):
    rng = np.random.default_rng(seed)
    A = rng.normal(size=(40, 5))
    A = np.column_stack([A, A[:, 3:].sum(axis=1)])
    y = rng.normal(size=40)
    # The last three add up and have no penalty: any multiple of (1, 1, -1) could be added.
    d = np.r_[np.full(3, weight), np.zeros(3)]
    b = ridge(A.T @ A, d, A.T @ y)
    assert abs(b[3] + b[4] - b[5]) < 1e-7
    residual = A.T @ (y - A @ b) - d * b
    assert np.abs(residual / (1.0 + np.sqrt(d))).max() < 1e-9
