"""Positions of ticks, steps and names in a picture: plain numbers, without matplotlib.

The displays draw with matplotlib, the report and the study write SVG; all place things by these.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

# -- ticks -----------------------------------------------------------------------------------


def spaced(at: Array, most: int = 7, apart: float = 0.06) -> list[int]:
    """Indices of at most `most` of the ascending fractions, about evenly spaced."""
    wanted = np.linspace(at[0], at[-1], most)
    shown = np.unique(np.abs(at[:, np.newaxis] - wanted).argmin(axis=0))
    # From right to left: the last, beside the names or at zero, is always kept.
    kept = [int(shown[-1])]
    for index in shown[-2::-1]:
        if at[kept[-1]] - at[index] >= apart:
            kept.append(int(index))
    return kept[::-1]


# Digits of the ticks in a decade, the densest first.
_DIGITS = (tuple(range(1, 10)), (1, 2, 3, 5), (1, 2, 5), (1, 3), (1,))
# On axes of fewer decades, equally spaced numbers give more ticks than the digits of a decade.
_SHORT = 0.7
# On axes of this many decades or more, powers of ten are enough.
_LONG = 3.0


def log_ticks(low: float, high: float, fit: Callable[[Array], bool]) -> list[float]:
    """The densest set of at least two ticks that `fit`; otherwise one tick, or none."""
    decades = np.log10(high) - np.log10(low)
    powers = range(int(np.floor(np.log10(low))), int(np.ceil(np.log10(high))) + 1)

    def at(digits: Iterable[int], every: int = 1) -> list[float]:
        """The digits times powers of ten."""
        # 10.0**k is not the double nearest to 1e-k for every k.
        return [float(f"{d}e{k}") for k in powers if k % every == 0 for d in digits]

    choices = [at(digits) for digits in _DIGITS[0 if decades < _LONG else -1 :]]
    choices += [at((1,), every) for every in range(2, int(decades) + 1)]
    equal = [round_ticks(low, high, count) for count in range(8, 0, -1)] if high > low else []
    choices = equal + choices if decades < _SHORT else choices + equal
    sets = [np.array(each) for each in choices]
    inside = [each[(each >= low * (1 - 1e-9)) & (each <= high * (1 + 1e-9))] for each in sets]
    fitting = [ticks for ticks in inside if len(ticks) and fit(ticks)]
    best = max(fitting, key=lambda ticks: min(len(ticks), 2), default=np.array([]))
    return [float(tick) for tick in best]


def round_ticks(low: float, high: float, most: int) -> list[float]:
    """The multiples of 1, 2 or 5 times a power of ten from low to high, about `most` of them."""
    raw = (high - low) / most
    power = 10.0 ** np.floor(np.log10(raw))
    step = next(s * power for s in (1.0, 2.0, 5.0, 10.0) if s * power >= raw * (1 - 1e-12))
    multiples = np.arange(np.ceil(low / step), np.floor(high / step) + 1)
    # Adding 0.0 makes a zero of minus zero.
    return [float(f"{k * step:.12g}") + 0.0 for k in multiples]


def scientific(value: float) -> tuple[str, int]:
    """The digits of a number, none for a 1, and its power of ten."""
    digits, exponent = f"{value:.5e}".split("e")
    digits = digits.rstrip("0").rstrip(".")
    return digits.removesuffix("1") if digits in ("1", "-1") else digits, int(exponent)


# -- lines of steps ----------------------------------------------------------------------------


def step_corners(x: Array, between: Array, rows: Array) -> tuple[Array, Array]:
    """Corners of step functions with the values `rows` at x, that jump at `between`."""
    return np.concatenate([x[:1], np.repeat(between, 2), x[-1:]]), np.repeat(rows, 2, axis=1)


def without_zeros(rows: Array) -> Array:
    """NaN for zeros, except beside a nonzero value: there the line rises from zero or falls."""
    nonzero = rows != 0
    drawn = nonzero.copy()
    drawn[:, 1:] |= nonzero[:, :-1]
    drawn[:, :-1] |= nonzero[:, 1:]
    return np.where(drawn, rows, np.nan)


# -- names beside lines: short enough to read, and apart ---------------------------------------

_LONGEST_NAME = 24
# Letters of the common part of names that are shown before the part that differs.
_COMMON = 3


def plain(names: Iterable[object]) -> list[str]:
    """Names on one line each, of bounded length; the parts in which they differ stay."""
    texts = [" ".join(str(name).split()) for name in names]
    shown = {text: _cut(text, len(text)) for text in texts}
    groups = defaultdict(list)
    for text, short in shown.items():
        groups[short].append(text)
    for alike in groups.values():
        if len(alike) > 1:
            # The prefix that the first and the last name of the alphabet share is common to all.
            pairs = zip(min(alike), max(alike), strict=False)
            start = next((i for i, (a, b) in enumerate(pairs) if a != b), 0)
            shown |= {text: _cut(text, start - _COMMON) for text in alike}
    return [shown[text] for text in texts]


def _cut(text: str, start: int) -> str:
    """The beginning of a long name and the part from `start` on, or its end."""
    if len(text) <= _LONGEST_NAME:
        return text
    half = (_LONGEST_NAME - 1) // 2
    start = min(max(start, half), len(text) - half)
    return f"{text[:half]}…{text[start : start + half]}" + "…" * (start + half < len(text))


def spread(wanted: Array, sizes: float | Array, low: float, high: float) -> Array:
    """Centres of labels of these sizes, nearest to `wanted`, from `low` to `high`, in order.

    Neighbours are at least the mean of their sizes apart: with the wanted centres sorted and s_i
    the sum of these distances up to label i, ``z_i = p_i - s_i`` does not decrease. So the least
    squares solution is an isotonic regression, clipped to the ends.
    """
    if len(wanted) == 0:
        return wanted
    # Importing it takes longer than all else here.
    from scipy.optimize import isotonic_regression

    order = np.argsort(wanted, kind="stable")
    size = np.broadcast_to(sizes, wanted.shape)[order]
    steps = np.append(0.0, np.cumsum((size[:-1] + size[1:]) / 2))
    positions = np.empty(len(wanted))
    nearest = isotonic_regression(wanted[order] - steps).x
    positions[order] = np.clip(nearest, low, high - steps[-1]) + steps
    return positions
