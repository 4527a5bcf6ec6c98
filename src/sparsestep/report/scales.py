"""From data to places in a picture: axes, their marks, and lines as SVG paths."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sparsestep.report.numbers import short

__all__ = ["WIDTH", "AlphaAxis", "Mark", "SizeAxis", "ValueAxis", "steps_path", "trimmed"]

Array = NDArray[np.float64]

# Pictures are this wide in their own units, and stretched to the page: strokes, dots and text keep
# their size because they are not part of what is stretched.
WIDTH = 1000.0


@dataclass(frozen=True)
class Mark:
    """A mark of an axis: its place, in pixels or as a percentage, and its text."""

    place: str
    text: str


def trimmed(value: float, decimals: int = 1) -> str:
    """A coordinate in as few characters as it needs."""
    text = f"{value:.{decimals}f}"
    text = text.rstrip("0").rstrip(".") if "." in text else text
    return "0" if text == "-0" else text


class AlphaAxis:
    """The logarithm of alpha from the largest, at the left, to the smallest.

    Alpha = 0 has no logarithm: it stands one step beyond the smallest other one.
    """

    title = "alpha"

    def __init__(self, alphas: Array) -> None:
        positive = alphas[alphas > 0]
        logs = np.full(len(alphas), np.nan)
        logs[alphas > 0] = np.log10(positive)
        self._has_zero = len(positive) < len(alphas)
        if self._has_zero:
            step = np.ptp(logs[alphas > 0]) / max(len(positive) - 1, 1) if len(positive) else 0.0
            low = logs[alphas > 0].min() if len(positive) else 0.0
            logs[alphas == 0] = low - (step or 1.0)
        self._left, self._right = float(logs.max()), float(logs.min())
        if self._left == self._right:
            self._left, self._right = self._left + 0.5, self._right - 0.5
        self._lowest = float(np.log10(positive.min())) if len(positive) else np.inf
        self.fractions = (self._left - logs) / (self._left - self._right)

    def percent(self, index: int) -> str:
        """The place of one of the models."""
        return f"{trimmed(100 * float(self.fractions[index]), 3)}%"

    def marks(self, most: int = 5) -> list[Mark]:
        """Round values, largest first."""
        low = max(self._right, self._lowest) if self._has_zero else self._right
        marks = [
            Mark(self._place(math.log10(value)), short(value))
            for value in reversed(_round_logs(low, self._left, most))
        ]
        return [*marks, Mark("100%", "0")] if self._has_zero else marks

    def _place(self, log: float) -> str:
        return f"{trimmed(100 * (self._left - log) / (self._left - self._right), 2)}%"


class SizeAxis(AlphaAxis):
    """Numbers of variables kept, in ascending order, for a path of sizes."""

    title = "variables kept"

    def __init__(self, sizes: NDArray[np.intp]) -> None:
        self._sizes = sizes
        self.fractions = (sizes - sizes[0]) / max(sizes[-1] - sizes[0], 1)

    def marks(self, most: int = 12) -> list[Mark]:
        """Sizes, evenly among those there are."""
        shown = range(0, len(self._sizes), -(-len(self._sizes) // most))
        return [Mark(self.percent(i), str(self._sizes[i])) for i in shown]


class ValueAxis:
    """Values from `low`, at the bottom of a picture so many pixels high, to `high`."""

    def __init__(
        self, low: float, high: float, height: float, *, logarithmic: bool = False
    ) -> None:
        if logarithmic:
            low, high = math.log10(low), math.log10(high)
        if not high > low:
            pad = 0.5 * abs(low) or 1.0
            low, high = low - pad, high + pad
        pad = 0.04 * (high - low)
        self.low, self.high, self.height = low - pad, high + pad, height
        self._logarithmic = logarithmic

    def place(self, values: Array | float) -> Array:
        """Pixels from the top."""
        values = np.log10(values) if self._logarithmic else np.asarray(values)
        return np.asarray(self.height * (self.high - values) / (self.high - self.low))

    def share(self, value: float) -> str:
        """The place as a percentage from the low end, for pictures that lie on their side."""
        return f"{trimmed(100 * (value - self.low) / (self.high - self.low), 2)}%"

    def width(self, length: float) -> str:
        """The percentage that a difference of values takes."""
        return f"{trimmed(100 * length / (self.high - self.low), 2)}%"

    def marks(self, most: int) -> list[tuple[float, str]]:
        """Round values with their texts."""
        values = _round_logs(self.low, self.high, most) if self._logarithmic else self._round(most)
        return [(value, short(value)) for value in values]

    def _round(self, most: int) -> list[float]:
        """Multiples of 1, 2 or 5 times a power of ten."""
        raw = (self.high - self.low) / most
        power = 10.0 ** np.floor(np.log10(raw))
        step = next(s * power for s in (1.0, 2.0, 5.0, 10.0) if s * power >= raw * (1 - 1e-12))
        first, last = np.ceil(self.low / step), np.floor(self.high / step)
        # Adding 0.0 makes a zero of minus zero.
        return [float(f"{k * step:.12g}") + 0.0 for k in np.arange(first, last + 1)]


def _round_logs(low: float, high: float, most: int) -> list[float]:
    """Round values between two logarithms: 1, 2 and 5 times powers of ten, or fewer of them."""
    exponents = np.arange(np.floor(low), np.ceil(high) + 1)
    fine = np.add.outer(exponents, np.log10([1, 2, 5])).ravel()
    sparser = (exponents[:: 2**k] for k in range(10))
    for logs in (fine, *sparser):
        inside = logs[(logs <= high + 1e-9) & (logs >= low - 1e-9)]
        if len(inside) <= most:
            break
    return [float(f"{10.0**log:.3g}") for log in inside]


def steps_path(x: Array, heights: Array, drawn: NDArray[np.bool_], base: float) -> str:
    """An SVG path of steps that jump halfway between the `x`.

    Where it is not `drawn` it is cut: it rises from `base` and falls back to it.
    """
    between = (x[1:] + x[:-1]) / 2
    corners = [trimmed(v) for v in (x[0], *between, x[-1])]
    levels, ground = [trimmed(v) for v in heights], trimmed(base)
    last = len(x) - 1
    parts: list[str] = []
    for i in np.flatnonzero(drawn):
        begins = i == 0 or not drawn[i - 1]
        if begins:
            parts.append(f"M{corners[i]} {levels[i] if i == 0 else ground}")
        if levels[i] != (levels[i - 1] if not begins else ground if i else levels[i]):
            parts.append(f"V{levels[i]}")
        elif parts[-1][0] == "H":
            parts.pop()
        parts.append(f"H{corners[i + 1]}")
        if i < last and not drawn[i + 1]:
            parts.append(f"V{ground}")
    return "".join(parts)
