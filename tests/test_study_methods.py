"""The study's methods against other programs, and against their optimality conditions."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.integrate import quad
from scipy.stats import norm
from skglm.penalties import L1, SCAD, MCPenalty
from skglm.solvers import GramCD
from sklearn.linear_model import Lasso, LassoCV, LinearRegression, Ridge
from sklearn.model_selection import KFold

from rows import held_out_errors
from sparsestep import Moments, SparseStepCV
from sparsestep.study import descent
from sparsestep.study.datasets import FOLDS, Scale, draw, generate, paper_grid, settings_of
from sparsestep.study.descent import concave_violation, descend, descend_2015
from sparsestep.study.methods import EXTRAS, FOR_PREDICTION, MC_PLUS_A, METHODS, VARIANTS, fit

GOLDEN = Path(__file__).parent / "golden"
SMALL = Scale("small", n_train=800, n_test=400)
# 50 variables, half of them zero, each pair correlated: nothing is trivial here.
(HARD,) = (
    s
    for s in settings_of(SMALL)
    if (s.m, s.sparsity, s.snr, s.correlation) == (50, 50, 1.0, "constant")
)
# The options of `descend` for each penalty.
PENALTIES = {"lasso": {}, "SCAD": {"a": 3.7, "scad": True}, "MC+": {"a": 3.0}}


def golden(name):
    """Per-row sums of a data set on which R programs were run."""
    X = np.loadtxt(GOLDEN / f"{name}_X.csv", delimiter=",")
    y = np.loadtxt(GOLDEN / f"{name}_y.csv", delimiter=",")
    return X.T @ X / len(X), X.T @ y / len(X)


@pytest.fixture(scope="module")
def hard():
    return generate(HARD, SMALL)


@pytest.fixture(scope="module")
def hard_fits(hard):
    return fit(hard.folds, "paper")


@pytest.fixture(scope="module")
def hard_rows():
    X, y, _ = draw(HARD, SMALL)
    return X[:800], y[:800]


# -- coordinate descent ------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["small", "dense", "noisy", "correlated"])
@pytest.mark.parametrize("penalty", PENALTIES)
def test_coefficients_of_r_programs(name, penalty):
    C, r = golden(name)
    program, options = {"MC+": "mcp"}.get(penalty, penalty.lower()), PENALTIES[penalty]
    table = np.loadtxt(GOLDEN / f"{name}_{program}.csv", delimiter=",")
    lambdas, expected = table[:, 0], table[:, 1 if penalty == "lasso" else 2 :]
    found = descend(C, r, lambdas, **options)
    assert concave_violation(C, r, lambdas, found, **options) < 1e-9
    tolerance = 1e-6 if penalty == "lasso" else 1e-8
    other = np.max(np.abs(found - expected), axis=1) > tolerance
    # A penalty more concave than the loss is convex may have several minima, and three times in
    # these 144 fits the two programs stop at different ones, both to the last digit.
    concavity = {"lasso": 0.0, "SCAD": 1 / 2.7, "MC+": 1 / 3}[penalty]
    convex = np.linalg.eigvalsh(C)[0] > concavity
    assert np.count_nonzero(other) <= (0 if convex or name != "dense" else 2)
    assert concave_violation(C, r, lambdas, expected, **options) < tolerance


def skglm_path(X, y, penalty_of, lambdas):
    """Fits of skglm with greedy order, which converges where its cyclic order does not."""
    solver = GramCD(max_iter=5000, tol=1e-12, fit_intercept=False, greedy_cd=True)
    coefs, coef = [], np.zeros(X.shape[1])
    for lam in lambdas:
        coef = solver.solve(X, y, None, penalty_of(float(lam)), w_init=coef.copy())[0]
        coefs.append(coef)
    return np.array(coefs)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("penalty", "penalty_of"),
    [("lasso", L1), ("SCAD", lambda lam: SCAD(lam, 3.7)), ("MC+", lambda lam: MCPenalty(lam, 3.0))],
)
def test_coefficients_of_skglm(hard, penalty, penalty_of):
    whole = Moments.merge(hard.folds)
    X, y = whole.compress()
    # compress() has fewer rows than the data, and skglm's loss is a mean over rows.
    n, rows = whole.n_samples, len(X)
    X, y = X * np.sqrt(rows / n), y * np.sqrt(rows / n)
    C, r = whole.xtx / n, whole.xty / n
    lambdas = np.max(np.abs(r)) * np.geomspace(0.7, 0.01, 8)
    found = descend(C, r, lambdas, **PENALTIES[penalty])
    assert_allclose(found, skglm_path(X, y, penalty_of, lambdas), atol=1e-7)
    # skglm's own measure of optimality, which is code that shares nothing with ours.
    for lam, b in zip(lambdas, found, strict=True):
        distance = penalty_of(float(lam)).subdiff_distance(b, C @ b - r, np.arange(len(b)))
        assert np.max(distance) < 1e-9 * np.max(np.abs(r))


def test_equal_correlations_converge():
    """The worst case of a fixed order: it needs thousands of sweeps for what follows."""
    m = 300
    rng = np.random.default_rng(0)
    C = 0.5 * np.eye(m) + 0.5
    r = C @ rng.uniform(-1, 1, m)
    lambdas = np.max(np.abs(r)) * np.geomspace(0.9, 1e-5, 20)
    # At a = 2 the objective is flat in many directions: C has the eigenvalue 1/2.
    for a in (np.inf, 8.0, 2.5, 2.0):
        assert concave_violation(C, r, lambdas, descend(C, r, lambdas, a), a) < 1e-9


def test_several_a_side_by_side_are_as_one_by_one():
    C, r = golden("correlated")
    lambdas = np.max(np.abs(r)) * np.geomspace(1.1, 1e-3, 15)
    together = descend(C, r, lambdas, MC_PLUS_A)
    assert together.shape == (9, 15, len(r))
    for a, B in zip(MC_PLUS_A, together, strict=True):
        assert_array_equal(B, descend(C, r, lambdas, a))


def test_lambdas_above_the_largest_give_no_variables():
    C, r = golden("small")
    largest = np.max(np.abs(r))
    B = descend(C, r, np.array([2.0, 1.0, 0.999]) * largest, 3.0)
    assert not B[:2].any()
    assert np.count_nonzero(B[2]) == 1


def test_what_has_no_minimum_is_refused():
    with pytest.raises(ValueError, match=r"a = 0.9 is too small"):
        descend(np.eye(2), np.ones(2), np.array([0.1]), 0.9)
    # Not positive definite: never a silent wrong answer.
    C = np.array([[1.0, 2.0], [2.0, 1.0]])
    with pytest.raises(descent.NotConverged, match="No finite minimum"):
        descend(C, np.array([1.0, -1.0]), np.array([1e-3]))


def test_violations_are_noticed():
    C, r = golden("correlated")
    lambdas = np.max(np.abs(r)) * np.array([0.5, 0.1])
    for options in PENALTIES.values():
        B = descend(C, r, lambdas, **options)
        dropped = B.copy()
        dropped[1, np.argmax(np.abs(B[1]))] = 0.0
        assert concave_violation(C, r, lambdas, B + 1e-5 * (B != 0), **options) > 1e-7
        assert concave_violation(C, r, lambdas, dropped, **options) > 1e-2
    exact = np.linalg.solve(C + 2.0 * np.eye(len(r)), r)[None]
    assert descent.ridge_violation(C, r, np.array([2.0]), exact) < 1e-14
    assert descent.ridge_violation(C, r, np.array([2.1]), exact) > 1e-3
    kept = np.zeros_like(exact)
    kept[0, :3] = np.linalg.solve(C[:3, :3], r[:3])
    assert descent.least_squares_violation(C, r, kept) < 1e-14
    assert descent.least_squares_violation(C, r, 1.001 * kept) > 1e-5


# -- SCAD and MC+ as in 2015 -------------------------------------------------------------------


@pytest.mark.parametrize("options", [PENALTIES["SCAD"], PENALTIES["MC+"], {"a": np.inf}])
def test_the_coarse_tolerance_of_2015(options):
    # Uncorrelated: one sweep is exact.
    r, lambdas = np.array([0.5, -1.5, 2.5, 5.0]), np.array([6.0, 1.0, 0.2])
    exact = descend(np.eye(4), r, lambdas, **options)
    assert_allclose(descend_2015(np.eye(4), r, lambdas, **options), exact, atol=1e-14)
    # Moderately correlated: converged, to its tolerance.
    C, r = golden("small")
    lambdas = np.max(np.abs(r)) * np.geomspace(1.1, 0.01, 12)
    for warm in (False, True):
        found = descend_2015(C, r, lambdas, **options, warm=warm)
        assert concave_violation(C, r, lambdas, found, **options) < 1e-3
        assert_array_equal(found[0], 0.0)
    # Equally correlated: not converged when it stops, which is the point of having it.
    C = 0.5 * np.eye(300) + 0.5
    r = C @ np.random.default_rng(0).uniform(-1, 1, 300)
    lambdas = np.max(np.abs(r)) * np.geomspace(0.9, 1e-4, 6)
    stopped = concave_violation(C, r, lambdas, descend_2015(C, r, lambdas, **options), **options)
    assert 1e-4 < stopped < 1.0


@pytest.mark.parametrize("a", [1.000001, 1.5, 4.0, 150.0])
def test_calibrated_lambdas_have_the_degrees_of_freedom_of_the_lasso(a):
    lambdas, spread = np.array([0.01, 0.5, 1.0, 3.0]), 0.5

    def degrees_of_freedom(u, a):
        """E[z S(z)] of the thresholding rule S for a standard normal z, by Stein's lemma."""
        ends = np.array([u, min(a * u, 40.0), 40.0])
        shrunk = quad(lambda z: z * (z - u) / (1 - 1 / a) * norm.pdf(z), *ends[:2])[0]
        return 2 * (shrunk + quad(lambda z: z * z * norm.pdf(z), *ends[1:])[0])

    for lam, u in zip(lambdas, descent.calibrated(lambdas, a, spread), strict=True):
        assert u >= lam
        lasso = degrees_of_freedom(lam / spread, np.inf)
        assert degrees_of_freedom(u / spread, a) == pytest.approx(lasso, rel=1e-6, abs=1e-9)
    far = descent.calibrated(np.array([1e-6, 1e3]), a, 1.0)
    assert np.all(np.isfinite(far)) and far[1] == pytest.approx(1e3, rel=1e-3)


def test_rivals_of_2015(hard, hard_fits):
    fits = fit(hard.folds, "paper", rivals="2015")
    assert list(fits) == list(METHODS)
    for name, found in fits.items():
        if name in ("SCAD", "MC+"):
            assert 1e-8 < found.optimality < 1.0
            scale = np.linalg.norm(hard_fits[name].coef)
            assert np.linalg.norm(found.coef - hard_fits[name].coef) < 0.2 * scale
        else:
            assert_array_equal(found.coef, hard_fits[name].coef)
    # 50 lambdas and nine a to choose a, then 101 lambdas with that.
    assert fits["MC+"].n_fits == 50 * (9 * FOLDS + 1) + 101 * (FOLDS + 1)
    assert fits["MC+"].a in MC_PLUS_A
    assert fits["SCAD"].n_fits == hard_fits["SCAD"].n_fits


# -- the six methods ---------------------------------------------------------------------------


def test_all_methods_in_order_and_converged(hard_fits):
    assert list(hard_fits) == list(METHODS)
    assert all(fit.optimality < 1e-8 for name, fit in hard_fits.items() if name != "OLS")
    assert all(fit.seconds > 0 for fit in hard_fits.values())
    counts = [fit.n_fits for fit in hard_fits.values()]
    paths = FOLDS + 1
    assert counts == [paths, *[101 * paths] * 3, 101 * (9 * FOLDS + 1), 101 * paths]
    assert [name for name, fit in hard_fits.items() if np.isnan(fit.alpha)] == ["OLS"]


def test_least_squares_and_ridge_are_those_of_scikit_learn(hard_fits, hard_rows):
    X, y = hard_rows
    best = min(paper_grid(), key=lambda a: held_out_errors(Ridge(a), X, y, FOLDS).mean())
    assert hard_fits["Ridge"].alpha == best
    for name, model in (("OLS", LinearRegression()), ("Ridge", Ridge(best))):
        model.fit(X, y)
        assert_allclose(hard_fits[name].coef, model.coef_, atol=1e-12)
        assert hard_fits[name].intercept == pytest.approx(model.intercept_, abs=1e-12)


def test_lasso_is_that_of_scikit_learn(hard_fits, hard_rows):
    X, y = hard_rows
    near = paper_grid()[50:]
    model = LassoCV(alphas=near, cv=KFold(FOLDS), tol=1e-10, max_iter=100_000).fit(X, y)
    found = hard_fits["Lasso"]
    assert found.alpha == pytest.approx(model.alpha_, rel=1e-12)
    assert_allclose(found.coef, model.coef_, atol=1e-6)
    exact = Lasso(found.alpha, tol=1e-14, max_iter=1_000_000).fit(X, y)
    assert_allclose(found.coef, exact.coef_, atol=1e-9)
    assert found.intercept == pytest.approx(exact.intercept_, abs=1e-9)


def standardized(X, y):
    """Centred rows, columns of variance one, as ncvreg and sparsenet make them."""
    return (X - X.mean(axis=0)) / X.std(axis=0), y - y.mean()


@pytest.mark.parametrize("method", ["SCAD", "MC+"])
def test_scad_and_mc_plus_are_those_of_skglm(hard_fits, hard_rows, method):
    X, y = hard_rows
    found = hard_fits[method]
    lambdas = paper_grid()[paper_grid() >= found.alpha]
    a = 3.7 if method == "SCAD" else found.a
    assert a > 1.5, "the comparison needs a penalty with one solution"
    penalty = SCAD if method == "SCAD" else MCPenalty
    path = skglm_path(*standardized(X, y), lambda lam: penalty(lam, float(a)), lambdas)
    expected = path[-1] / X.std(axis=0)
    assert_allclose(found.coef, expected, atol=1e-7)
    assert found.intercept == pytest.approx(y.mean() - X.mean(axis=0) @ expected, abs=1e-7)


def test_mc_plus_has_the_best_lambda_and_a(hard_fits, hard_rows):
    X, y = hard_rows
    errors = np.zeros((101, len(MC_PLUS_A)))
    for train, valid in KFold(FOLDS).split(X):
        Z, target = standardized(X[train], y[train])
        new = (X[valid] - X[train].mean(axis=0)) / X[train].std(axis=0)
        C, r = Z.T @ Z / len(Z), Z.T @ target / len(Z)
        for k, a in enumerate(MC_PLUS_A):
            B = descend(C + 1e-14 * np.eye(len(C)), r, paper_grid(), a)
            residual = (y[valid] - y[train].mean())[:, None] - new @ B.T
            errors[:, k] += np.mean(residual**2, axis=0) / FOLDS
    i, k = np.unravel_index(np.argmin(errors), errors.shape)
    found = hard_fits["MC+"]
    assert (found.alpha, found.a) == (paper_grid()[i], MC_PLUS_A[k])
    assert (len(MC_PLUS_A), MC_PLUS_A[0], MC_PLUS_A[1]) == (9, np.inf, pytest.approx(150))
    assert MC_PLUS_A[-1] == pytest.approx(1.000001, abs=1e-12)


def test_sparsestep_has_the_settings_of_the_paper(hard_fits, hard_rows):
    model = SparseStepCV(paper_grid(), cv=KFold(FOLDS), standardize=False, t_max=2, epsilon=1e-7)
    model.set_params(gamma_0=1e6, gamma_stop=1e-8, gamma_step=2.0).fit(*hard_rows)
    found = hard_fits["SparseStep"]
    assert found.alpha == model.alpha_
    assert_allclose(found.coef, model.coef_, atol=1e-10)


def test_a_choice_at_an_end_of_the_grid_is_said():
    rng = np.random.default_rng(3)
    X, noise = rng.standard_normal((400, 4)), rng.standard_normal(400)

    def at_end(y):
        folds = Moments.from_folds(X, y, np.arange(400) % 10)
        return {name: found.at_end for name, found in fit(folds, "paper", ["OLS", "Lasso"]).items()}

    # Noise this small has no lambda in the grid below its own largest.
    assert at_end(1e-4 * noise) == {"OLS": "", "Lasso": "largest"}
    # Almost no noise: the less shrinkage the better.
    assert at_end(X @ np.ones(4) + 1e-6 * noise)["Lasso"] == "smallest"


def test_own_grids_start_at_the_null_model(hard):
    whole = Moments.merge(hard.folds)
    fits = fit(hard.folds, "own")
    assert all(fit.at_end == "" for fit in fits.values())
    largest = np.max(np.abs(whole.xty)) / whole.n_samples
    steps = np.log(fits["Lasso"].alpha / largest) / (np.log(1e-4) / 100)
    assert steps == pytest.approx(round(steps), abs=1e-9)
    assert all(fit.optimality < 1e-8 for name, fit in fits.items() if name != "OLS")


def test_variants_of_sparsestep(hard, hard_fits):
    fits = fit(hard.folds, "paper", [*VARIANTS, *EXTRAS])
    plain, sparser = hard_fits["SparseStep"], fits["SparseStep 1se"]
    kept = np.count_nonzero(plain.coef)
    assert np.count_nonzero(sparser.coef) < kept and sparser.alpha > plain.alpha
    assert np.count_nonzero(fits["SparseStep paired"].coef) <= kept
    assert (fits["SparseStep BIC"].n_fits, fits["SparseStep swap"].n_fits) == (101, 1111)
    averaged, shrunk = fits["SparseStep average"].coef, fits[FOR_PREDICTION].coef
    assert not np.allclose(averaged, plain.coef) and not np.allclose(shrunk, averaged)
    assert all(fit.optimality < 1e-8 for fit in fits.values())


def test_a_missing_library_is_named_with_its_extra():
    program = (
        "import sys; sys.modules['numba'] = None\n"
        "from sparsestep.study.command import study\n"
        "try:\n    study(quiet=True)\n"
        "except ImportError as error:\n    print(error)"
    )
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert "numba" in run.stdout and "pip install 'sparsestep[study]'" in run.stdout
