"""NIST's certified linear regressions, and exact least squares in rational numbers.

Data and certified estimates are those of the Statistical Reference Datasets of the National
Institute of Standards and Technology, a work of the United States government in the public domain.
Numbers are kept as text, so that the exact arithmetic sees what is printed.
"""

from dataclasses import dataclass
from fractions import Fraction

import numpy as np


@dataclass(frozen=True)
class Certified:
    """A regression: the rows of X and y as text, whether it has an intercept, the estimates."""

    X: tuple[tuple[str, ...], ...]
    y: tuple[str, ...]
    estimates: tuple[str, ...]
    intercept: bool = True
    degree: int = 1

    def exact_rows(self):
        """Columns of X, powers of the only one if the model is a polynomial, as fractions."""
        rows = [[Fraction(v) for v in row] for row in self.X]
        if self.degree > 1:
            rows = [[x**p for p in range(1, self.degree + 1)] for (x,) in rows]
        return rows, [Fraction(v) for v in self.y]

    def arrays(self):
        """The same as doubles."""
        rows, y = self.exact_rows()
        return np.array(rows, dtype=np.float64), np.array(y, dtype=np.float64)


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


WAMPLER_X = tuple((str(x),) for x in range(21))
ONES = ("1",) * 6


def _wampler(y, estimates=ONES):
    return Certified(WAMPLER_X, words(y), estimates, degree=5)


def words(text):
    """The numbers of a text, as text."""
    return tuple(text.split())


def columns(*texts):
    """Rows from the text of each column."""
    return tuple(zip(*(text.split() for text in texts), strict=True))


REGRESSIONS = {
    "Longley": Certified(
        X=columns(
            """
            83.0 88.5 88.2 89.5 96.2 98.1 99.0 100.0 101.2 104.6 108.4 110.8 112.6 114.2 115.7
            116.9
            """,
            """
            234289 259426 258054 284599 328975 346999 365385 363112 397469 419180 442769 444546
            482704 502601 518173 554894
            """,
            """
            2356 2325 3682 3351 2099 1932 1870 3578 2904 2822 2936 4681 3813 3931 4806 4007
            """,
            """
            1590 1456 1616 1650 3099 3594 3547 3350 3048 2857 2798 2637 2552 2514 2572 2827
            """,
            """
            107608 108632 109773 110929 112075 113270 115094 116219 117388 118734 120445 121950
            123366 125368 127852 130081
            """,
            """
            1947 1948 1949 1950 1951 1952 1953 1954 1955 1956 1957 1958 1959 1960 1961 1962
            """,
        ),
        y=words(
            """
            60323 61122 60171 61187 63221 63639 64989 63761 66019 67857 68169 66513 68655 69564
            69331 70551
            """
        ),
        estimates=words(
            """
            -3482258.63459582 15.0618722713733 -0.358191792925910E-01 -2.02022980381683
            -1.03322686717359 -0.511041056535807E-01 1829.15146461355
            """
        ),
    ),
    "Norris": Certified(
        X=columns(
            """
            0.2 337.4 118.2 884.6 10.1 226.5 666.3 996.3 448.6 777.0 558.2 0.4 0.6 775.5 666.9
            338.0 447.5 11.6 556.0 228.1 995.8 887.6 120.2 0.3 0.3 556.8 339.1 887.2 999.0 779.0
            11.1 118.3 229.2 669.1 448.9 0.5
            """
        ),
        y=words(
            """
            0.1 338.8 118.1 888.0 9.2 228.1 668.5 998.5 449.1 778.9 559.2 0.3 0.1 778.1 668.8
            339.3 448.9 10.8 557.7 228.3 998.0 888.8 119.6 0.3 0.6 557.6 339.3 888.0 998.5 778.9
            10.2 117.6 228.9 668.4 449.2 0.2
            """
        ),
        estimates=words("-0.262323073774029 1.00211681802045"),
    ),
    "Pontius": Certified(
        X=columns(
            """
            150000 300000 450000 600000 750000 900000 1050000 1200000 1350000 1500000 1650000
            1800000 1950000 2100000 2250000 2400000 2550000 2700000 2850000 3000000 150000
            300000 450000 600000 750000 900000 1050000 1200000 1350000 1500000 1650000 1800000
            1950000 2100000 2250000 2400000 2550000 2700000 2850000 3000000
            """
        ),
        y=words(
            """
            .11019 .21956 .32949 .43899 .54803 .65694 .76562 .87487 .98292 1.09146 1.20001
            1.30822 1.41599 1.52399 1.63194 1.73947 1.84646 1.95392 2.06128 2.16844 .11052
            .22018 .32939 .43886 .54798 .65739 .76596 .87474 .98300 1.09150 1.20004 1.30818
            1.41613 1.52408 1.63159 1.73965 1.84696 1.95445 2.06177 2.16829
            """
        ),
        estimates=words("0.673565789473684E-03 0.732059160401003E-06 -0.316081871345029E-14"),
        degree=2,
    ),
    "NoInt1": Certified(
        X=columns(
            """
            60 61 62 63 64 65 66 67 68 69 70
            """
        ),
        y=words(
            """
            130 131 132 133 134 135 136 137 138 139 140
            """
        ),
        estimates=("2.07438016528926",),
        intercept=False,
    ),
    "NoInt2": Certified(
        X=columns(
            """
            4 5 6
            """
        ),
        y=words(
            """
            3 4 4
            """
        ),
        estimates=("0.727272727272727",),
        intercept=False,
    ),
    "Wampler1": _wampler(
        """
        1 6 63 364 1365 3906 9331 19608 37449 66430 111111 177156 271453 402234 579195 813616
        1118481 1508598 2000719 2613660 3368421
        """
    ),
    "Wampler2": _wampler(
        """
        1.00000 1.11111 1.24992 1.42753 1.65984 1.96875 2.38336 2.94117 3.68928 4.68559 6.00000
        7.71561 9.92992 12.75603 16.32384 20.78125 26.29536 33.05367 41.26528 51.16209 63.00000
        """,
        ("1", "0.1", "0.01", "0.001", "0.0001", "0.00001"),
    ),
    "Wampler3": _wampler(
        """
        760 -2042 2111 -1684 3888 1858 11379 17560 39287 64382 113159 175108 273291 400186
        581243 811568 1121004 1506550 2002767 2611612 3369180
        """
    ),
    "Wampler4": _wampler(
        """
        75901 -204794 204863 -204436 253665 -200894 214131 -185192 221249 -138370 315911 -27644
        455253 197434 783995 608816 1370781 1303798 2205519 2408860 3444321
        """
    ),
    "Wampler5": _wampler(
        """
        7590001 -20479994 20480063 -20479636 25231365 -20476094 20489331 -20460392 18417449
        -20413570 20591111 -20302844 18651453 -20077766 21059195 -19666384 26348481 -18971402
        22480719 -17866340 10958421
        """
    ),
    "Filip": Certified(
        X=columns(
            """
            -6.860120914 -4.324130045 -4.358625055 -4.358426747 -6.955852379 -6.661145254
            -6.355462942 -6.118102026 -7.115148017 -6.815308569 -6.519993057 -6.204119983
            -5.853871964 -6.109523091 -5.79832982 -5.482672118 -5.171791386 -4.851705903
            -4.517126416 -4.143573228 -3.709075441 -3.499489089 -6.300769497 -5.953504836
            -5.642065153 -5.031376979 -4.680685696 -4.329846955 -3.928486195 -8.56735134
            -8.363211311 -8.107682739 -7.823908741 -7.522878745 -7.218819279 -6.920818754
            -6.628932138 -6.323946875 -5.991399828 -8.781464495 -8.663140179 -8.473531488
            -8.247337057 -7.971428747 -7.676129393 -7.352812702 -7.072065318 -6.774174009
            -6.478861916 -6.159517513 -6.835647144 -6.53165267 -6.224098421 -5.910094889
            -5.598599459 -5.290645224 -4.974284616 -4.64454848 -4.290560426 -3.885055584
            -3.408378962 -3.13200249 -8.726767166 -8.66695597 -8.511026475 -8.165388579
            -7.886056648 -7.588043762 -7.283412422 -6.995678626 -6.691862621 -6.392544977
            -6.067374056 -6.684029655 -6.378719832 -6.065855188 -5.752272167 -5.132414673
            -4.811352704 -4.098269308 -3.66174277 -3.2644011
            """
        ),
        y=words(
            """
            0.8116 0.9072 0.9052 0.9039 0.8053 0.8377 0.8667 0.8809 0.7975 0.8162 0.8515 0.8766
            0.8885 0.8859 0.8959 0.8913 0.8959 0.8971 0.9021 0.909 0.9139 0.9199 0.8692 0.8872
            0.89 0.891 0.8977 0.9035 0.9078 0.7675 0.7705 0.7713 0.7736 0.7775 0.7841 0.7971
            0.8329 0.8641 0.8804 0.7668 0.7633 0.7678 0.7697 0.77 0.7749 0.7796 0.7897 0.8131
            0.8498 0.8741 0.8061 0.846 0.8751 0.8856 0.8919 0.8934 0.894 0.8957 0.9047 0.9129
            0.9209 0.9219 0.7739 0.7681 0.7665 0.7703 0.7702 0.7761 0.7809 0.7961 0.8253 0.8602
            0.8809 0.8301 0.8664 0.8834 0.8898 0.8964 0.8963 0.9074 0.9119 0.9228
            """
        ),
        estimates=words(
            """
            -1467.48961422980 -2772.17959193342 -2316.37108160893 -1127.97394098372
            -354.478233703349 -75.1242017393757 -10.8753180355343 -1.06221498588947
            -0.670191154593408E-01 -0.246781078275479E-02 -0.402962525080404E-04
            """
        ),
        degree=10,
    ),
}
