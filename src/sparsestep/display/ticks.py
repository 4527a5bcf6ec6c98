"""Ticks of a logarithmic axis that can be read however short it is; imports matplotlib."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from matplotlib.ticker import Formatter, Locator, MaxNLocator
from numpy.typing import NDArray

__all__ = ["LogLabels", "LogTicks", "MinorLogTicks"]

Array = NDArray[np.float64]

# Digits of the ticks in a decade, the densest first.
_DIGITS = ((1, 2, 3, 4, 5, 6, 7, 8, 9), (1, 2, 3, 5), (1, 2, 5), (1, 3), (1,))
# A stretch of fewer decades has more ticks if they are equally far apart in numbers.
_SHORT = 0.7
# From so many decades on, powers of ten are enough.
_LONG = 3.0
# Between two labels, in widths of the letter M.
_APART = 1.2
# Of more decades, ticks at every digit are a grey bar.
_MOST_DECADES = 8.0


class LogTicks(Locator):
    """The densest ticks whose labels stand apart, with one for zero where there is a place for it.

    Matplotlib's own labels of one or two decades overlap.
    """

    def __init__(self, zero: float | None = None, least: float = 0.0) -> None:
        self._zero, self._least = zero, least

    def __call__(self) -> list[float]:
        """The ticks of what is shown now."""
        assert self.axis is not None
        return self.tick_values(*self.axis.get_view_interval())

    def tick_values(self, vmin: float, vmax: float) -> list[float]:
        """The first of the choices that fits, if it has two ticks; otherwise the longest."""
        low, high = sorted((vmin, vmax))
        zero = (
            [] if self._zero is None else [value for value in [self._zero] if low <= value <= high]
        )
        low = max(low, self._least)
        if not 0 < low <= high < np.inf:
            return zero
        best: Array = np.array([])
        for choice in _choices(low, high):
            ticks = choice[(choice >= low * (1 - 1e-9)) & (choice <= high * (1 + 1e-9))]
            ticks = self._beside_zero(ticks, vmin, vmax)
            if len(ticks) > len(best) and self._apart(ticks, vmin, vmax):
                best = ticks
                if len(best) > 1:
                    break
        return [*best.tolist(), *zero]

    def _ems(self, values: Array, vmin: float, vmax: float) -> Array:
        """Places along the axis in widths of an M; matplotlib counts three for a tick."""
        assert self.axis is not None
        span = abs(np.log(vmax) - np.log(vmin)) or 1.0
        return np.asarray(np.log(values) / span * 3.0 * self.axis.get_tick_space())

    def _apart(self, ticks: Array, vmin: float, vmax: float) -> bool:
        """Whether the labels of ascending ticks leave room between them."""
        widths = np.array([_width(text) for text in _texts(ticks)])
        needed = (widths[1:] + widths[:-1]) / 2 + _APART
        return bool(np.all(np.diff(self._ems(ticks, vmin, vmax)) >= needed))

    def _beside_zero(self, ticks: Array, vmin: float, vmax: float) -> Array:
        """The ticks whose labels do not reach into that of zero."""
        if self._zero is None or len(ticks) == 0:
            return ticks
        widths = np.array([_width(text) for text in _texts(ticks)])
        far = self._ems(ticks, vmin, vmax) - self._ems(np.array([self._zero]), vmin, vmax)
        return ticks[far >= (widths + _width("0")) / 2 + _APART / 2]


class MinorLogTicks(Locator):
    """Ticks without labels at every digit, or at every power of ten."""

    def __init__(self, least: float = 0.0) -> None:
        self._least = least

    def __call__(self) -> list[float]:
        """The ticks of what is shown now."""
        assert self.axis is not None
        return self.tick_values(*self.axis.get_view_interval())

    def tick_values(self, vmin: float, vmax: float) -> list[float]:
        """The ticks between two values."""
        low, high = sorted((vmin, vmax))
        low = max(low, self._least)
        if not 0 < low <= high < np.inf:
            return []
        many = np.log10(high) - np.log10(low) > _MOST_DECADES
        ticks = _at_digits(low, high, (1,) if many else _DIGITS[0])
        return [float(tick) for tick in ticks if low <= tick <= high]


class LogLabels(Formatter):
    """Decimals where all ticks are of moderate size, powers of ten otherwise; 0 at its place."""

    def __init__(self, zero: float | None = None) -> None:
        self._zero = zero

    def format_ticks(self, values: Any) -> list[str]:
        """The labels of all ticks together, for they are written alike."""
        others = [value for value in values if value != self._zero]
        written = dict(zip(others, _texts(others), strict=True))
        return [written.get(value, "0") for value in values]

    def __call__(self, x: float, pos: int | None = None) -> str:
        """The label of one value: what an interactive window shows beside the pointer."""
        return "0" if x == self._zero else f"{x:.3g}"


def _choices(low: float, high: float) -> Iterator[Array]:
    """Sets of ticks around an interval, from many to few."""
    decades = np.log10(high) - np.log10(low)
    if decades < _SHORT:
        yield from _equal(low, high)
    for digits in _DIGITS if decades < _LONG else [(1,)]:
        yield _at_digits(low, high, digits)
    for stride in range(2, int(decades) + 1):
        ticks = _at_digits(low, high, (1,))
        yield ticks[np.rint(np.log10(ticks)) % stride == 0]
    if decades >= _SHORT:
        yield from _equal(low, high)


def _equal(low: float, high: float) -> Iterator[Array]:
    """Sets of round numbers that are equally far apart, from many to few."""
    for count in range(8, 0, -1):
        yield np.asarray(MaxNLocator(count, steps=[1, 2, 2.5, 5, 10]).tick_values(low, high))


def _at_digits(low: float, high: float, digits: Sequence[int]) -> Array:
    """The digits times all powers of ten around an interval."""
    first, last = int(np.floor(np.log10(low))), int(np.ceil(np.log10(high)))
    # 10.0**k is not the double nearest to 1e-k for every k.
    values = np.array([float(f"{d}e{k}") for k in range(first, last + 1) for d in digits])
    return np.asarray(values[(values > 0) & np.isfinite(values)])


def _texts(values: Sequence[float] | Array) -> list[str]:
    """Numbers as labels, in one way for all of them."""
    if all(1e-3 <= value < 1e4 for value in values):
        return [f"{value:.6g}" for value in values]
    return [_power(value) for value in values]


def _power(value: float) -> str:
    """A number as a digit times a power of ten."""
    digits, exponent = f"{value:.5e}".split("e")
    digits = digits.rstrip("0").rstrip(".")
    factor = "" if digits == "1" else rf"{digits}\times"
    return rf"$\mathdefault{{{factor}10^{{{int(exponent)}}}}}$"


def _width(text: str) -> float:
    """About how wide a label is, in widths of an M."""
    if not text.startswith("$"):
        return 0.64 * len(text)
    digits, _, exponent = text.removeprefix("$\\mathdefault{").rpartition("10^")
    signs = len(digits.replace("\\times", "x"))
    return 0.64 * (signs + 2) + 0.5 * len(exponent.strip("{}$"))
