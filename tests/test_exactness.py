"""The engines against the literal loop over some 39,000 random fits: `make exactness`."""

import numpy as np
import pytest

import designs
from designs import KINDS, PAPER_ALPHAS, WIDE_KINDS, largest_drop, problem, wide_problem


def tall(kind, part):
    """Names of problems, and what `fragile_fits` takes."""
    rng = np.random.default_rng([KINDS.index(kind), part])
    for seed in range(part, 34, 2):
        m = int(np.exp(rng.uniform(0, np.log(300.5))))
        n = int(np.exp(rng.uniform(np.log(5), np.log(5000.5))))
        # On a singular matrix a step of the literal loop takes a hundred times longer.
        alphas = PAPER_ALPHAS if n > m and kind != "indicators" else PAPER_ALPHAS[::20]
        yield f"n={n} m={m} seed={seed}", (*problem(kind, n, m, seed), alphas)


def wide(kind, part):
    rng = np.random.default_rng(WIDE_KINDS.index(kind))
    for seed in range(60):
        n = int(rng.integers(2, 61))
        m = int(np.exp(rng.uniform(np.log(n + 1), np.log(401))))
        A, y = wide_problem(kind, n, m, seed, standardized=bool(seed % 3))
        alphas = largest_drop(A, y) * 10.0 ** np.linspace(-5, 0.3, 9)
        yield f"n={n} m={m} seed={seed}", (A, y, alphas)


@pytest.mark.exactness
@pytest.mark.parametrize(
    ("problems", "kind", "part"),
    [(tall, kind, part) for kind in KINDS for part in range(2)]
    + [(wide, kind, 0) for kind in WIDE_KINDS],
)
def test_exactness(problems, kind, part, capsys):
    fragile_of = designs.fragile_fits if problems is tall else designs.fragile_of_rows
    fits = fragile = 0
    with capsys.disabled():
        for name, given in problems(kind, part):
            here = fragile_of(*given)
            fits += len(given[-1])
            fragile += here
            if here:
                print(f"\n{kind} {name}: {here} fits that 1e-12 turns")
        print(f"\n{kind}, {problems.__name__}: {fits} fits, {fragile} fragile, no other difference")
