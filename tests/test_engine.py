import warnings

import numpy as np
import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from designs import KINDS, PAPER_ALPHAS, engine, fragile_fits, problem, schedules
from sparsestep import SparseStep, sparsestep_path
from sparsestep.errors import LostDigitsWarning
from sparsestep.solvers.engine import Gram, solve_all
from sparsestep.solvers.scaled_problem import later_copies
from sparsestep.solvers.schedule import Schedule

seeds = st.integers(0, 10**6)


def normal(seed, n, m):
    """Rows of independent columns, and the generator for more."""
    rng = np.random.default_rng(seed)
    return rng.standard_normal((n, m)), rng


def assert_supports_of_the_loop(X, y, alphas, **settings):
    fast, literal = (
        sparsestep_path(X, y, alphas=alphas, solver=solver, **settings).coefs != 0
        for solver in ("auto", "reference")
    )
    np.testing.assert_array_equal(fast, literal)


@given(
    kind=st.sampled_from(KINDS),
    m=st.integers(1, 80),
    rows_per_column=st.floats(1.2, 30),
    seed=seeds,
    which=st.integers(0, 100),
)
@example(kind="blocks", m=40, rows_per_column=1.2, seed=1, which=50)
# Supports that differed while nearly collinear columns were iterated on.
@example(kind="factors", m=3, rows_per_column=3.0, seed=656, which=50)
@example(kind="factors", m=2, rows_per_column=1.5, seed=128, which=92)
@example(kind="factors", m=5, rows_per_column=10.0, seed=953, which=60)
@example(kind="dependent", m=15, rows_per_column=1.5, seed=952, which=27)
@example(kind="dependent", m=37, rows_per_column=10.0, seed=357, which=34)
def test_engine_is_the_literal_loop(kind, m, rows_per_column, seed, which):
    S, q = problem(kind, int(5 + rows_per_column * m), m, seed)
    # Copies never reach the engine: which of them the loop keeps is decided by rounding.
    assume(not later_copies(S).any())
    assert fragile_fits(S, q, PAPER_ALPHAS[[which, (which + 37) % 101, (which + 71) % 101]]) == 0


@given(
    kind=st.sampled_from(KINDS),
    n=st.sampled_from([60, 60, 60, 10]),
    m=st.integers(1, 12) | st.just(30),
    seed=seeds,
    log_alpha=st.floats(-12, 12),
    schedule=schedules,
)
def test_other_settings_and_more_columns_than_rows_too(kind, n, m, seed, log_alpha, schedule):
    fragile_fits(*problem(kind, n, m, seed), [2.0**log_alpha], schedule)


@given(m=st.integers(3, 15), seed=seeds, log_alpha=st.floats(-8, 12), data=st.data())
def test_penalty_factors(m, seed, log_alpha, data):
    S, q = problem("constant", 100, m, seed)
    values = st.sampled_from([0.0, 1e-3, 0.3, 1.0, 4.0, 1e3, np.inf])
    factor = np.array(data.draw(st.lists(values, min_size=m, max_size=m)))
    found = engine(S, q, [2.0**log_alpha], factor=factor)
    fragile_fits(S, q, [2.0**log_alpha], factor=factor, found=found)
    assert np.all(found[0][factor == 0] != 0)
    assert np.all(found[0][np.isinf(factor)] == 0)


@given(
    kind=st.sampled_from(["indicators", "splines"]),
    m=st.integers(6, 40),
    seed=seeds,
    log_alpha=st.floats(-20, 10),
    factors=st.sampled_from([(1.0,), (1.0, 0.1, 10.0), (1.0, 1.0, 0.0, 1.0, np.inf)]),
    schedule=st.builds(
        Schedule,
        gamma_stop=st.sampled_from([1e-8, 1e-6]),
        gamma_step=st.sampled_from([2.0, 3.0, 4.0]),
        t_max=st.sampled_from([1, 2, 3]),
    ),
)
# All of a dependent set stays, with penalties too small for the rounding of larger ones.
@example("indicators", 12, 682883, -1.9, (1.0,), Schedule(1e6, 1e-6, 4.0, 1))
@example("indicators", 35, 600901, -5.9, (1.0,), Schedule(1e6, 1e-6, 4.0, 2))
@example("splines", 19, 620342, -11.5, (1.0, 0.1, 10.0), Schedule(1e6, 1e-6, 2.0, 1))
def test_dependent_columns(kind, m, seed, log_alpha, factors, schedule):
    S, q = problem(kind, 20 + 5 * m, m, seed)
    assume(not later_copies(S).any())
    alphas = 2.0 ** (log_alpha + np.array([-3.0, 0.0, 3.0]))
    fragile_fits(S, q, alphas, schedule, np.resize(np.array(factors), m))


@given(
    m=st.integers(2, 8),
    powers=st.lists(st.integers(-8, 8), min_size=2, max_size=3),
    shared=st.floats(0, 3),
    share=st.floats(-4, 0.3),
    seed=seeds,
)
# Selected columns moved with errors that were nothing beside the lengths of the others.
@example(2, [3, -3], 0.4, 0.08, 36726)
@example(3, [0, -2, 5], 0.55, 0.1, 604589)
@example(2, [-5, -2, -8], 0.11, -0.09, 350732)
def test_correlated_columns_of_far_different_lengths(m, powers, shared, share, seed):
    X, rng = normal(seed, 4 * m, m)
    X += 10.0**shared * rng.standard_normal((4 * m, 1))
    X *= 10.0 ** rng.choice(powers, m)
    S, q = X.T @ X, X.T @ rng.standard_normal(4 * m)
    fragile_fits(S, q, [np.max(q**2 / np.diag(S)) * 10.0**share])


_ODD = Schedule(gamma_stop=1e-3, gamma_step=1.1, t_max=1)
_LARGE = Schedule(gamma_0=1e18, gamma_stop=1e8, epsilon=1e14)


@pytest.mark.parametrize(
    ("kind", "n", "m", "seed", "alpha", "schedule", "large_x", "large_y"),
    [
        # Out long before the penalty exceeds the column, and still to be seen at the end.
        ("factors", 60, 12, 25915, 0.00013682459983609149, _ODD, 1.0, 1.0),
        ("factors", 60, 12, 87561, 0.00209376101706019, Schedule(1e6, 1e-3, 10.0, 5), 1.0, 1.0),
        # In, and far from where least squares puts it, because gamma starts below it.
        ("ar1", 50, 10, 592419, 1953125000000000.0, Schedule(), 1.0, 1e9),
        # Units that single precision holds with few digits only.
        ("constant", 150, 20, 0, 4.166310031992722e41, _LARGE, 1.0, 1e21),
        # Out and below epsilon, and yet they move those that are in.
        ("constant", 150, 12, 0, 0.019304550145914017, Schedule(), 1e5, 1.0),
        # Out, but with one step a gamma larger at the end than the last gamma alone would leave it.
        ("constant", 60, 20, 901228, 6208.375056426581, Schedule(1e6, 1e-3, 30.0, 1), 1.0, 1.0),
        ("ar1", 60, 23, 168585, 787.9324245407469, Schedule(1e6, 1e-2, 10.0, 1, 1e-3), 1.0, 1.0),
        ("blocks", 60, 14, 906162, 100.0, Schedule(1e6, 1e-2, 3.0, 1, 1e-3), 1.0, 1.0),
        # Decided where the schedule ends.
        ("dependent", 60, 10, 35110, 0.0490567780677701, Schedule(1e6, 1e-5, 30.0, 1, 1e-3), 1, 1),
        ("dependent", 60, 12, 53023, 0.900110272475703, Schedule(1e6, 1e-5, 30.0, 1, 1e-3), 1, 1),
    ],
)
def test_where_the_engine_was_not_the_literal_loop(
    kind, n, m, seed, alpha, schedule, large_x, large_y
):
    S, q = problem(kind, n, m, seed)
    assert fragile_fits(S * large_x**2, q * large_x * large_y, [alpha], schedule) == 0


@pytest.mark.parametrize("kind", KINDS)
def test_exactness_slice(kind):
    S, q = problem(kind, 700, 120, 5)
    found = engine(S, q, PAPER_ALPHAS)[3::12]
    assert fragile_fits(S, q, PAPER_ALPHAS[3::12], found=found) == 0


@pytest.mark.parametrize(("least", "dependent"), [(3e-6, False), (3e-5, True)])
def test_small_effects_at_the_last_gamma(least, dependent):
    X, rng = normal(3, 200, 40)
    X = np.linalg.qr(X)[0]
    if dependent:
        X[:, 39] = X[:, :5].sum(axis=1)
    b = np.append(rng.uniform(0.1, 1.0, 34), np.full(5, least))
    S, q, alphas = X.T @ X, X.T @ (X[:, :39] @ b), least**2 * np.array([0.1, 0.2, 0.3])
    found = engine(S, q, alphas)
    assert np.all(np.count_nonzero(found, axis=-1) == 39)
    assert fragile_fits(S, q, alphas, found=found) == 0


@pytest.mark.filterwarnings("ignore::sparsestep.errors.LostDigitsWarning")
@given(seed=seeds, left=st.floats(-12, -8.5), m=st.integers(3, 20))
def test_what_rounding_leaves_of_a_dependent_column_has_no_effect(seed, left, m):
    """To the last digits of X'X the column depends on others, and to all digits of X it does not.

    What it does not share with them is in X'X nothing but rounding, which small penalties would
    blow up to effects of any size.
    """
    X, rng = normal(seed, 200, m)
    X[:, -1] = X[:, 0] + X[:, 1]
    y = X @ rng.uniform(-1, 1, m) + rng.standard_normal(200)
    near = X.copy()
    near[:, -1] += 10.0**left * rng.standard_normal(200)
    fits = [sparsestep_path(Z, y, alphas=2.0 ** np.linspace(6, -15, 8)) for Z in (X, near)]
    np.testing.assert_allclose(fits[1].predict(near), fits[0].predict(X), rtol=0, atol=1e-5)
    assert np.abs(fits[1].coefs).max() < 10


@pytest.mark.parametrize("dependent", [False, True])
@pytest.mark.parametrize(
    ("m", "common", "left"), [(200, 3, -5), (60, 3, -5.5), (60, 0, -6), (5, 0, -6.5)]
)
def test_what_a_nearly_dependent_column_explains_stays(m, common, left, dependent):
    """Whatever else depends on each other; without it R2 is 0.4 at most."""
    X, rng = normal(1, 700, m)
    X += common * rng.standard_normal((700, 1))
    own = rng.standard_normal(700)
    X[:, -1] = X[:, 0] + X[:, 1] + 10.0**left * own
    if dependent:
        X[:, -2] = X[:, 2] + X[:, 3]
    y = X[:, 1] + 4 * own + 0.1 * rng.standard_normal(700)
    for solver in ("auto", "reference"):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", LostDigitsWarning)
            assert SparseStep(1.0, solver=solver).fit(X, y).score(X, y) > 0.99


def test_an_unpenalized_column_without_effect():
    X, rng = normal(0, 80, 6)
    X[:, 4] = X[:, 0] + 1e-3 * X[:, 4]
    X[:, 5] = 0.0
    X -= X.mean(axis=0)
    S, q = X.T @ X, X.T @ (X[:, 0] - X[:, 2] + rng.standard_normal(80))
    fragile_fits(S, q, PAPER_ALPHAS, factor=np.array([1.0, 1, 1, 1, 1, 0]))


@pytest.mark.parametrize("seed", [1, 34])
def test_columns_that_are_nearly_the_same(seed):
    C, rng = normal(seed, 100, 2)
    X = np.c_[C, C + 0.01 * rng.standard_normal((100, 2))]
    y = X @ [0.7, -0.5, 0.0, 0.0] + 0.01 * rng.standard_normal(100)
    # Many alphas, so that they are iterated on.
    assert_supports_of_the_loop(X, y, sparsestep_path(X, y).alphas)


@pytest.mark.parametrize("seed", [829, 1506, 764])
def test_pairs_of_columns_whose_errors_move_each_other(seed):
    rng = np.random.default_rng([9, seed])
    g, n, e = int(rng.integers(1, 9)), int(rng.integers(60, 300)), 10.0 ** rng.uniform(-2.3, -1.3)
    C = rng.standard_normal((n, g))
    X = np.c_[C, C + e * rng.standard_normal((n, g))]
    if rng.random() < 0.5:
        X = np.c_[X, rng.standard_normal((n, int(rng.integers(1, 10))))]
    gamma_step, t_max = float(rng.choice([3, 5, 10])), int(rng.choice([1, 2, 3, 5]))
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    y = X @ (rng.uniform(-1, 1, X.shape[1]) * (rng.random(X.shape[1]) < 0.7))
    y = y + 10.0 ** rng.uniform(-3, 0) * max(y.std(), 0.1) * rng.standard_normal(n)
    y = (y - y.mean()) / y.std()
    alphas = n * np.geomspace(1e-8, 0.3, 300)
    fragile_fits(X.T @ X, X.T @ y, alphas, Schedule(gamma_step=gamma_step, t_max=t_max))


@pytest.mark.parametrize("noise", [0.012, 0.04, 0.06])
@pytest.mark.parametrize("dear", [True, False])
def test_near_copies_beside_columns_of_far_larger_penalties(noise, dear):
    """The residual of a step then says little about the error of the copies' coefficients."""
    for seed in range(8):
        C, rng = normal(seed, 500, 5)
        copies = [C + noise * rng.standard_normal(C.shape) for _ in range(2)]
        X = np.column_stack([*copies, rng.standard_normal((500, 20))])
        y = X[:, :10].sum(axis=1) + 0.05 * rng.standard_normal(500)
        alphas = 500 * np.geomspace(1e-5, 0.1, 60)
        if dear:
            factor = np.repeat([1.0, 1e4], [10, 20])
            assert_supports_of_the_loop(X, y, alphas, penalty_factor=factor)
        else:
            X[:, 10:] *= 0.01
            assert_supports_of_the_loop(X, y, alphas, standardize=False)


@pytest.mark.parametrize(
    ("seed", "alpha"),
    [
        (312, 0.01942455721780385),
        (947, 0.05043400542403496),
        (1197, 0.003094547419040363),
        (2169, 0.032941919193852275),
        (2619, 0.2528883438420098),
        (2828, 0.30438181554201543),
    ],
)
def test_a_sum_of_many_columns_that_nearly_vanishes(seed, alpha):
    """The error of one coefficient then moves all others; these alphas are close to a change."""
    rng = np.random.default_rng(seed)
    m, left = int(rng.integers(24, 80)), 10.0 ** rng.uniform(-3, -1.5)
    signs = rng.choice([-1.0, 1.0], m)[:24]
    S = np.eye(60)
    S[:24, :24] -= (1 - left) * np.outer(signs, signs) / m
    Z = rng.standard_normal((60, 240))
    S += 1e-5 * Z @ Z.T / 240
    length = np.sqrt(np.diag(S))
    S = S / length / length[:, np.newaxis]
    q = S[:, :24] @ rng.choice([-1.0, 1.0], 24)
    noise = 10.0 ** rng.uniform(-4, -0.5) * rng.standard_normal(60) / 8
    assert fragile_fits(S, q + np.linalg.cholesky(S) @ noise, np.array([alpha])) == 0


def test_small_effects_that_explain_much_together():
    """Dropped all at once they would be drawn back."""
    S, q = np.full((200, 200), 500.0), np.linspace(900.0, 1000.0, 200)
    np.fill_diagonal(S, 1000.0)
    alphas = 1000.0 * np.geomspace(0.05, 1, 30)
    found = engine(S, q, alphas)
    assert not found[-1].any()
    assert fragile_fits(S, q, alphas, found=found) == 0


@pytest.mark.parametrize(
    ("m", "short", "dependent", "seed"),
    [(40, 1e-11, False, 46), *((6, 1e-6, True, seed) for seed in (2, 5, 28, 50))],
)
def test_a_short_column_beside_collinear_ones(m, short, dependent, seed):
    """The eigenvalues of such Gram matrices are rounding, and the annealing once started late."""
    X, rng = normal(seed, 80, 3)
    X = X @ rng.standard_normal((3, m))
    X += (1e-3 if dependent else 0.05) * rng.standard_normal((80, m))
    if dependent:
        X[:, 1] = X[:, 2] + X[:, 3]
    X *= 10.0 ** rng.uniform(-1, 1, m)
    X[:, 0] *= short
    y = X[:, 0] + short * rng.standard_normal(80)
    assert_supports_of_the_loop(X, y, (y @ y) * np.geomspace(1.0, 1e-3, 13), standardize=False)


@pytest.mark.parametrize("seed", [43, 8, 36, 50, 77])
def test_one_step_at_each_gamma_has_the_borders_of_the_loop(seed):
    rng = np.random.default_rng(seed)
    f = rng.normal(size=23)
    X = 0.95 * f[:, None] + 0.3 * rng.normal(size=(23, 20))
    y = X[:, :4].sum(axis=1) + 0.3 * rng.normal(size=23)

    def size(alpha):
        return np.count_nonzero(SparseStep(alpha, t_max=1).fit(X, y).coef_)

    # By bisection, an alpha at which the number of variables changes.
    low, high = 1e-2, 5e-2
    few = size(high)
    for _ in range(60):
        middle = np.sqrt(low * high)
        low, high = (low, middle) if size(middle) == few else (middle, high)
    assert_supports_of_the_loop(X, y, high * np.array([1 + 1e-9, 1 - 1e-9]), t_max=1)


@pytest.mark.parametrize(
    "schedule",
    [
        Schedule(t_max=1, gamma_step=1.7, gamma_stop=6e-6, epsilon=1e-9),
        Schedule(t_max=1, gamma_step=5.0, gamma_0=12576.0, gamma_stop=1e-9),
        Schedule(gamma_stop=2.5e-5, gamma_step=10.0, epsilon=1e-9),
    ],
)
@pytest.mark.parametrize("kind", ["copies", "sum"])
@pytest.mark.parametrize("seed", range(6))
def test_coarse_schedules_are_followed_to_their_end(schedule, kind, seed):
    X, rng = normal(seed, 80, 8)
    near = X[:, 0] if kind == "copies" else X[:, :7].sum(axis=1)
    X[:, 7] = near + 10.0 ** rng.uniform(-4, -1) * X[:, 7]
    y = X[:, :3].sum(axis=1) + 0.3 * rng.standard_normal(80)
    weight = rng.uniform(0.2, 2.0, 80)
    Xc = X - np.average(X, axis=0, weights=weight)
    S, q = Xc.T @ (weight[:, None] * Xc), Xc.T @ (weight * y)
    fragile_fits(S, q, np.geomspace(1e-4, 30, 60), schedule)


@pytest.mark.parametrize(("seed", "spread", "unit"), [(0, 1, 1e8), (1, 3, 1e5), (3, 0, 1e5)])
def test_gamma_starts_below_the_coefficients(seed, spread, unit):
    """Penalties then fall by many powers of ten in one step."""
    X, rng = normal(seed, 200, 40)
    b = rng.choice([-1, 1], 40) * 10.0 ** rng.uniform(-spread, 0, 40) * unit
    y = X @ b + unit * 0.1 * rng.standard_normal(200)
    alphas = 200 * unit**2 * 2.0 ** np.linspace(-50, 0, 26)
    assert fragile_fits(X.T @ X, X.T @ y, alphas, Schedule(1.0)) == 0


@pytest.mark.parametrize("unit", [1.0, 1e-2, 1e-4])
@pytest.mark.parametrize(("gamma_step", "t_max"), [(2.0, 2), (2.0, 1), (5.0, 1), (30.0, 1)])
def test_schedules_that_end_above_the_coefficients(unit, gamma_step, t_max):
    X, rng = normal(0, 400, 40)
    X[:, 20:] = X[:, :20] + 0.05 * X[:, 20:]
    y = unit * (X @ rng.uniform(-1, 1, 40) + rng.standard_normal(400))
    S, q = X.T @ X, X.T @ y
    alphas = np.max(q**2 / np.diag(S)) * 2.0 ** np.linspace(-40, 2, 22)
    fragile_fits(S, q, alphas, Schedule(1e6, 1e-3, gamma_step, t_max, epsilon=0.0))


@pytest.mark.parametrize("n_problems", [1, 3, 14])
@pytest.mark.parametrize("n_jobs", [1, 2, 3])
def test_many_problems_together_are_each_alone(n_problems, n_jobs):
    problems = [problem(kind, 300, 20, 1) for kind in KINDS[-n_problems:]]
    alphas = np.stack([PAPER_ALPHAS, 3 * PAPER_ALPHAS])[:, :: 1 if n_problems == 14 else 5]
    grams = [Gram(S, np.stack([q, q[::-1]])) for S, q in problems]
    together, _ = solve_all(grams, [alphas] * len(grams), Schedule(), n_jobs=n_jobs)
    for (S, q), coefs in zip(problems, together, strict=True):
        for t, target in enumerate((q, q[::-1])):
            np.testing.assert_allclose(coefs[t], engine(S, target, alphas[t]), rtol=1e-9)


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_problems_without_columns_or_alphas(n_jobs):
    assert engine(np.zeros((0, 0)), np.zeros(0), PAPER_ALPHAS).shape == (101, 0)
    S, q = problem("uncorrelated", 100, 5, 0)
    none, some = np.empty((1, 0)), np.ones((1, 4))
    gram = Gram(S, q[np.newaxis])
    found, _ = solve_all([gram] * 2, [none, none], Schedule(), n_jobs=n_jobs)
    assert found[1].shape == (1, 0, 5)
    found, _ = solve_all([gram] * 3, [none, some, none], Schedule(), n_jobs=n_jobs)
    assert found[0].shape == found[2].shape == (1, 0, 5)
    fragile_fits(S, q, np.ones(4), found=found[1][0])


def test_constant_column_and_constant_target():
    S, q = problem("uncorrelated", 100, 5, 0)
    S[2, :] = S[:, 2] = q[2] = 0.0
    found = engine(S, q, PAPER_ALPHAS)
    assert np.all(found[:, 2] == 0)
    fragile_fits(S, q, PAPER_ALPHAS, found=found)
    assert not engine(S, np.zeros(5), PAPER_ALPHAS).any()


@pytest.mark.parametrize(("n", "rtol"), [(100, 1e-12), (6, 1e-6)])
def test_alpha_zero_is_least_squares_of_least_norm(n, rtol):
    S, q = problem("uncorrelated", n, 8, 0)
    expected = np.linalg.pinv(S, hermitian=True) @ q
    np.testing.assert_allclose(engine(S, q, [0.0])[0], expected, rtol=rtol)


@pytest.mark.parametrize("kind", ["constant", "twins"])
@pytest.mark.parametrize("size_x", [1e-150, 1e-100, 1e-60, 1e-30, 1e-12, 1.0, 1e12, 1e60, 1e140])
@pytest.mark.parametrize("size_y", [1e-100, 1e-20, 1.0, 1e20, 1e100])
def test_extreme_magnitudes(kind, size_x, size_y):
    S, q = problem(kind, 80, 6, 2)
    fragile_fits(S * size_x**2, q * size_x * size_y, size_y**2 * PAPER_ALPHAS[10::20])


@pytest.mark.parametrize("scale", [1.0, 1e-3, 1e-6])
@pytest.mark.parametrize("factor", [[1e-3, 1e3], [1e-6, 1.0], [1.0, 1e3], [1e-6, 1e3]])
def test_penalty_factors_far_apart(scale, factor):
    """Least squares leave out the first column, and ridge regressions take it in."""
    D, S = np.diag([scale, 1.0]), np.array([[1.0, 0.8], [0.8, 1.0]])
    alphas = 2.0 ** np.linspace(-30, 30, 61)
    assert fragile_fits(D @ S @ D, D @ S @ [0.0, 1.0], alphas, factor=np.array(factor)) == 0


@pytest.mark.parametrize("unit", [1e-16, 1e-15, 1e10])
def test_a_column_in_far_other_units_ends(unit):
    """Rounding of a residual computed anew once asked for another, without end."""
    X, rng = normal(1, 200, 40)
    y = X @ rng.uniform(-1, 1, 40)
    X[:, 1] *= unit
    for power in (-30, -15, 0):
        assert np.isfinite(SparseStep(200 * 2.0**power, standardize=False).fit(X, y).coef_).all()


@pytest.mark.parametrize("size", [1e-150, 1e60, 1e140])
def test_columns_of_extreme_sizes_have_numbers_for_answers(size):
    X, rng = normal(1, 200, 40)
    Z, y = X * np.where(np.arange(40) % 2, size, 1.0), 1e-30 * X @ rng.uniform(-1, 1, 40)
    S, q = Z.T @ Z, Z.T @ y
    alphas = np.max(q / np.sqrt(np.diag(S))) ** 2 * 2.0 ** np.linspace(-30, 2, 4)
    assert np.isfinite(engine(S, q, alphas)).all()
