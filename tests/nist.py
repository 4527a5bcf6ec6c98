"""NIST's certified linear regressions, and exact least squares in rational numbers.

Data and certified estimates are those of the Statistical Reference Datasets of the National
Institute of Standards and Technology, a work of the United States government in the public domain.
Decimals are read as fractions, so that the exact arithmetic sees what is printed.
"""

from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import numpy as np

GOLDEN = Path(__file__).parent / "golden"


@dataclass(frozen=True)
class Certified:
    """A regression: rows of X and y as fractions, the estimates as printed."""

    rows: list[list[Fraction]]
    y: list[Fraction]
    estimates: list[str]
    intercept: bool = True

    def arrays(self):
        """X and y as doubles."""
        return np.array(self.rows, dtype=np.float64), np.array(self.y, dtype=np.float64)


def exact_least_squares(rows, y, weight=None, *, intercept=True):
    """Coefficients, the intercept first if there is one, of least squares on fractions."""
    rows = [[Fraction(1), *row] if intercept else list(row) for row in rows]
    weight = [Fraction(1)] * len(y) if weight is None else weight
    m = len(rows[0])
    A = [
        [sum(w * r[i] * r[j] for w, r in zip(weight, rows, strict=True)) for j in range(m)]
        + [sum(w * r[i] * v for w, r, v in zip(weight, rows, y, strict=True))]
        for i in range(m)
    ]
    for i in range(m):
        pivot = next(k for k in range(i, m) if A[k][i] != 0)
        A[i], A[pivot] = A[pivot], A[i]
        A[i] = [value / A[i][i] for value in A[i]]
        for k in range(m):
            if k != i and A[k][i] != 0:
                factor = A[k][i]
                A[k] = [a - factor * b for a, b in zip(A[k], A[i], strict=True)]
    return [row[m] for row in A]


def of_doubles(X, y, weight=None, *, intercept=True):
    """Exact least squares on the doubles given, which are fractions themselves."""
    rows = [[Fraction(float(v)) for v in row] for row in X]
    target = [Fraction(float(v)) for v in y]
    weight = None if weight is None else [Fraction(float(w)) for w in weight]
    return exact_least_squares(rows, target, weight, intercept=intercept)


def digits(found, exact):
    """Correct digits: -log10 of the relative error, of the absolute one where exact is 0."""
    error = abs(Fraction(float(found)) - exact)
    error = error / abs(exact) if exact else error
    return 16.0 if error == 0 else float(np.clip(-np.log10(float(error)), 0.0, 16.0))


def _powers(xs, degree):
    return [[Fraction(x) ** p for p in range(1, degree + 1)] for x in xs]


def _from_file(name, estimates, degree=1):
    text = (GOLDEN / f"nist_{name}.csv").read_text(encoding="utf-8")
    table = [[Fraction(value) for value in line.split(",")] for line in text.split()]
    rows = _powers([x for _, x in table], degree) if degree > 1 else [row[1:] for row in table]
    return Certified(rows, [row[0] for row in table], estimates.split())


def _wampler(unit="1", errors=0):
    """1 + z + ... + z^5 at z of 0 to 20 units, plus a multiple of Wampler's errors."""
    half = [759, -2048, 2048, -2048, 2523, -2048, 2048, -2048, 1838, -2048]
    y = [
        sum((Fraction(unit) * x) ** p for p in range(6)) + errors * error
        for x, error in enumerate([*half, 2048, *reversed(half)])
    ]
    return Certified(_powers(range(21), 5), y, [str(Decimal(unit) ** p) for p in range(6)])


REGRESSIONS = {
    "Longley": _from_file(
        "Longley",
        "-3482258.63459582 15.0618722713733 -0.358191792925910E-01 -2.02022980381683"
        " -1.03322686717359 -0.511041056535807E-01 1829.15146461355",
    ),
    "Norris": _from_file("Norris", "-0.262323073774029 1.00211681802045"),
    "Pontius": _from_file(
        "Pontius", "0.673565789473684E-03 0.732059160401003E-06 -0.316081871345029E-14", degree=2
    ),
    "NoInt1": Certified(
        _powers(range(60, 71), 1), [*map(Fraction, range(130, 141))], ["2.07438016528926"], False
    ),
    "NoInt2": Certified(
        _powers((4, 5, 6), 1), [*map(Fraction, (3, 4, 4))], ["0.727272727272727"], False
    ),
    "Wampler1": _wampler(),
    "Wampler2": _wampler(unit="0.1"),
    "Wampler3": _wampler(errors=1),
    "Wampler4": _wampler(errors=100),
    "Wampler5": _wampler(errors=10_000),
    "Filip": _from_file(
        "Filip",
        "-1467.48961422980 -2772.17959193342 -2316.37108160893 -1127.97394098372 -354.478233703349"
        " -75.1242017393757 -10.8753180355343 -1.06221498588947 -0.670191154593408E-01"
        " -0.246781078275479E-02 -0.402962525080404E-04",
        degree=10,
    ),
}
