"""Random regression problems of many kinds, the same for the same seed; and the comparison of an
engine's answers with the literal loop's."""

import numpy as np
from hypothesis import strategies as st
from scipy.interpolate import BSpline

from sparsestep.reference import sparsestep_reference
from sparsestep.solvers.engine import Gram, solve_all
from sparsestep.solvers.reference_rows import sparsestep_reference_rows
from sparsestep.solvers.schedule import Schedule
from sparsestep.solvers.wide import WorkingSets

KINDS = ("uncorrelated", "constant", "noise", "ar1", "blocks", "heavy_tailed", "integer")
KINDS += ("badly_scaled", "ill_conditioned", "dependent", "factors", "indicators")
KINDS += ("twins", "splines")
WIDE_KINDS = ("uncorrelated", "ar1", "heavy_tailed", "badly_scaled", "blocks", "integer")
PAPER_ALPHAS = 2.0 ** np.linspace(-15, 15, 101)
schedules = st.builds(
    Schedule,
    gamma_0=st.sampled_from([1e6, 1e3, 10.0, 0.3]),
    gamma_stop=st.sampled_from([1e-8, 1e-4, 2e-3, 1e-2, 1e-10]),
    gamma_step=st.sampled_from([2.0, 1.1, 1.5, 5.0, 30.0]),
    t_max=st.sampled_from([2, 1, 3, 7]),
    epsilon=st.sampled_from([1e-7, 0.0, 1e-3, 0.05, 0.3]),
)


def design(kind, n, m, rng):
    """Rows of predictors of the given kind."""
    X = rng.standard_normal((n, m))
    if kind == "constant":
        return np.sqrt(0.5) * (X + rng.standard_normal((n, 1)))
    if kind == "noise":
        u = rng.uniform(-1, 1, (m, 2))
        u /= np.linalg.norm(u, axis=1, keepdims=True)
        Sigma = 0.01 * u @ u.T
        np.fill_diagonal(Sigma, 1.0)
        return X @ np.linalg.cholesky(Sigma).T
    if kind == "ar1":
        for j in range(1, m):
            X[:, j] = 0.9 * X[:, j - 1] + np.sqrt(1 - 0.9**2) * X[:, j]
        return X
    if kind == "blocks":
        common = rng.standard_normal((n, m // 5 + 1))
        return np.sqrt(0.8) * np.repeat(common, 5, axis=1)[:, :m] + np.sqrt(0.2) * X
    if kind == "heavy_tailed":
        return rng.standard_t(3, (n, m))
    if kind == "integer":
        return rng.integers(0, 4, (n, m)).astype(float)
    if kind == "badly_scaled":
        return (X + rng.uniform(0, 3) * rng.standard_normal((n, 1))) * 10.0 ** rng.uniform(-5, 5, m)
    if kind == "ill_conditioned":  # eigenvalues of all sizes
        V = np.linalg.qr(rng.standard_normal((m, m)))[0]
        return X @ (V * 10.0 ** rng.uniform(-rng.uniform(1, 6), 0, m)) @ V.T
    if kind == "dependent":  # one column nearly the sum of all others
        X[:, -1] = X[:, :-1].sum(axis=1) + 10.0 ** rng.uniform(-5, 0) * X[:, -1]
        return X
    if kind == "factors":
        k = m // 4 + 1
        common = rng.standard_normal((n, k)) @ rng.standard_normal((k, m))
        return common + 10.0 ** rng.uniform(-5, 0) * X
    if kind == "indicators":  # all of each category's, for up to three, and a sum beside its parts
        for low in range(0, min(m - 3, 24), 8):
            size = min(8, m - 3 - low)
            X[:, low : low + size] = np.eye(size)[rng.integers(0, size, n)]
        if m > 3:
            X[:, -1] = X[:, -3] + X[:, -2]
        return X
    if kind == "twins":  # half of the columns nearly those of the other half
        half = m // 2
        X[:, :half] = X[:, half : 2 * half] + 10.0 ** rng.uniform(-2.3, -1) * X[:, :half]
        return X
    if kind == "splines":  # cubic B-splines of variables, which add up to 1 for each
        X = rng.random((n, m))
        for low in range(0, m - 3, 12):
            size = min(12, m - low)
            knots = np.linspace(-3 / (size - 3), 1 + 3 / (size - 3), size + 4)
            X[:, low : low + size] = BSpline.design_matrix(X[:, low], knots, 3).toarray()
        return X
    assert kind == "uncorrelated"
    return X


def problem(kind, n, m, seed):
    """Centred ``X'X`` and ``X'y`` of a sparse truth, signal-to-noise ratio 0.1 to 10."""
    rng = np.random.default_rng([KINDS.index(kind), n, m, seed])
    X = design(kind, n, m, rng)
    X -= X.mean(axis=0)
    b = rng.uniform(-1, 1, m) / np.maximum(X.std(axis=0), 1e-300)
    b[rng.permutation(m)[: int(rng.choice([0, 0.25, 0.5, 0.75, 0.95]) * m)]] = 0.0
    signal = X @ b
    noise = rng.standard_normal(n)
    noise *= np.sqrt(max(signal @ signal, 1.0) / (rng.choice([0.1, 1.0, 10.0]) * (noise @ noise)))
    y = signal + noise
    y -= y.mean()
    return X.T @ X, X.T @ y


def wide_problem(kind, n, m, seed, standardized=True):
    """Centred rows and a target that some of the columns explain, signal-to-noise ratio 1."""
    rng = np.random.default_rng([WIDE_KINDS.index(kind), n, m, seed])
    A = design(kind, n, m, rng)
    A -= A.mean(axis=0)
    if standardized:
        deviation = A.std(axis=0)
        A /= np.where(deviation > 0, deviation, 1.0)
    kept = rng.permutation(m)[: max(1, n // 4)]
    signal = A[:, kept] @ (rng.uniform(-1, 1, len(kept)) / (A[:, kept].std(axis=0) + 1e-9))
    noise = rng.standard_normal(n)
    y = signal + noise * np.linalg.norm(signal) / np.linalg.norm(noise)
    y -= y.mean()
    return A, y / (y.std() or 1.0)


def largest_drop(A, y):
    return np.max((A.T @ y) ** 2 / np.maximum(np.sum(A**2, axis=0), 1e-300))


def solve(A, y, alphas, schedule=None, factor=None):
    """Coefficients of one target from rows, a row per alpha, and the working set of each."""
    factor = np.ones(A.shape[1]) if factor is None else factor
    sets = WorkingSets(A, y, factor, schedule or Schedule())
    return sets.solve(np.asarray(alphas)), sets.sets


def engine(S, q, alphas, schedule=None, factor=None, n_jobs=1):
    """Coefficients of one target, a row per alpha."""
    gram = Gram(S, np.atleast_2d(q), factor)
    coefs, _ = solve_all([gram], [np.atleast_2d(alphas)], schedule or Schedule(), n_jobs)
    return coefs[0][0]


# --- the oracle -----------------------------------------------------------------------------------


def compare_with_loop(loop, alphas, found, agrees):
    """Count the fits that are fragile; fail on any other difference from the literal loop.

    `loop(alpha, seed)` is its answer, and with a seed that on input moved by 1e-12 at random: a fit
    is fragile if that changes the support. `agrees(alpha, b, expected)` says whether coefficients
    on the same support are as near as the loop has digits.
    """
    fragile = 0
    for alpha, b in zip(alphas, found, strict=True):
        expected = loop(alpha, None)
        if np.array_equal(b != 0, expected != 0):
            assert np.allclose(b, expected, rtol=1e-8, atol=0) or agrees(alpha, b, expected)
            continue
        turned = [np.any((loop(alpha, seed) != 0) != (expected != 0)) for seed in range(4)]
        assert any(turned), f"support differs at {alpha=}"
        fragile += 1
    return fragile


def fragile_fits(S, q, alphas, schedule=None, factor=None, found=None):
    """The same for the engine's answers to equations, which may be given as `found`."""
    schedule = schedule or Schedule()
    found = engine(S, q, alphas, schedule, factor) if found is None else found
    settings = {"penalty_factor": factor, **vars(schedule)}

    def loop(alpha, seed):
        if seed is None:
            return sparsestep_reference(S, q, alpha, **settings)
        rng = np.random.default_rng(seed)
        noise = 1e-12 * rng.standard_normal(S.shape)
        moved = S * (1 + noise + noise.T), q * (1 + 1e-12 * rng.standard_normal(len(q)))
        return sparsestep_reference(*moved, alpha, **settings)

    def agrees(alpha, b, expected):
        # On a nearly singular matrix the literal loop has fewer digits than that itself: it
        # moves by more when its input moves by rounding.
        ripple = np.cos(np.arange(len(q)))
        last_digit = 1 + np.finfo(float).eps * np.multiply.outer(ripple, ripple)
        moved = sparsestep_reference(S * last_digit, q * (1 + 1e-13 * ripple), alpha, **settings)
        near = np.abs(b - expected).max() <= 10 * np.abs(moved - expected).max()
        rounding = misfit(S, q, expected)
        return near or (rounding < 100 and misfit(S, q, b) <= max(rounding, 4.0))

    return compare_with_loop(loop, alphas, found, agrees)


def misfit(S, q, b):
    """How far b is from least squares on its support, as a multiple of what rounding leaves."""
    rounding = np.finfo(float).eps * np.abs(S) @ np.abs(b)
    return np.max(np.abs(q - S @ b)[b != 0] / rounding[b != 0], initial=0.0)


def fragile_of_rows(A, y, alphas, schedule=None, factor=None, nothing=1e-13):
    """The same for rows."""
    schedule = schedule or Schedule()
    solved = solve(A, y, alphas, schedule, factor)
    return compare_rows(A, y, alphas, solved, nothing, penalty_factor=factor, **vars(schedule))


def compare_rows(all_columns, y, alphas, solved, nothing=1e-13, **how):
    """The same for rows that are solved, with the loop on the working set of each alpha.

    Differences are `nothing` below this share of the largest coefficient.
    """
    fragile = 0
    for alpha, found, which in zip(alphas, *solved, strict=True):
        A = np.zeros_like(all_columns)
        A[:, which] = all_columns[:, which]

        def loop(alpha, seed, A=A):
            if seed is None:
                return sparsestep_reference_rows(A, y, alpha, **how)
            rows, target = moved(A, 2 * seed), moved(y, 2 * seed + 1)
            return sparsestep_reference_rows(rows, target, alpha, **how)

        def agrees(alpha, b, expected, loop=loop):
            largest = np.abs(expected).max()
            # What the rounding of the rows alone changes.
            return np.allclose(b, expected, rtol=1e-8, atol=nothing * largest) or np.allclose(
                b, expected, rtol=0, atol=np.abs(loop(alpha, 0) - expected).max()
            )

        fragile += compare_with_loop(loop, [alpha], [found], agrees)
    return fragile


def moved(array, seed):
    """The array with its entries moved by 1e-12 at random."""
    rng = np.random.default_rng(seed)
    return array * (1 + 1e-12 * rng.standard_normal(array.shape))
