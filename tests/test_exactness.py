"""The engines against the literal loop over some 39,000 random fits: `make exactness`."""

import numpy as np
import pytest

from designs import (
    KINDS,
    PAPER_ALPHAS,
    WIDE_KINDS,
    compare,
    compare_rows,
    engine,
    largest_drop,
    problem,
    solve,
    wide_problem,
)

PROBLEMS_PER_KIND = 34
WIDE_PROBLEMS_PER_KIND = 60


@pytest.mark.exactness
@pytest.mark.parametrize("part", range(2))
@pytest.mark.parametrize("kind", KINDS)
def test_exactness(kind, part, capsys):
    rng = np.random.default_rng([KINDS.index(kind), part])
    fits = fragile = 0
    for seed in range(part, PROBLEMS_PER_KIND, 2):
        m = int(np.exp(rng.uniform(0, np.log(300.5))))
        n = int(np.exp(rng.uniform(np.log(5), np.log(5000.5))))
        S, q = problem(kind, n, m, seed)
        # On a singular matrix a step of the literal loop takes a hundred times longer.
        alphas = PAPER_ALPHAS if n > m and kind != "indicators" else PAPER_ALPHAS[::20]
        here = compare(S, q, alphas, engine(S, q, alphas))
        fits += len(alphas)
        fragile += here
        if here:
            with capsys.disabled():
                print(f"\n{kind} n={n} m={m} seed={seed}: {here} fits that 1e-12 turns")
    with capsys.disabled():
        print(f"\n{kind}, part {part}: {fits} fits, {fragile} fragile, no other difference")


@pytest.mark.exactness
@pytest.mark.parametrize("kind", WIDE_KINDS)
def test_exactness_of_more_columns_than_rows(kind, capsys):
    rng = np.random.default_rng(WIDE_KINDS.index(kind))
    fits = fragile = 0
    for seed in range(WIDE_PROBLEMS_PER_KIND):
        n = int(rng.integers(2, 61))
        m = int(np.exp(rng.uniform(np.log(n + 1), np.log(401))))
        A, y = wide_problem(kind, n, m, seed, standardized=bool(seed % 3))
        alphas = largest_drop(A, y) * 10.0 ** np.linspace(-5, 0.3, 9)
        here = compare_rows(A, y, alphas, solve(A, y, alphas))
        fits += len(alphas)
        fragile += here
        if here:
            with capsys.disabled():
                print(f"\n{kind} n={n} m={m} seed={seed}: {here} fits that 1e-12 turns")
    with capsys.disabled():
        print(f"\n{kind}, wide: {fits} fits, {fragile} fragile, no other difference")
