"""Names beside lines: short enough to read, and apart. Without matplotlib."""

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import isotonic_regression

__all__ = ["plain", "spread"]

_LONGEST_NAME = 24


def plain(name: object) -> str:
    """A variable's name on one line of bounded length."""
    text = " ".join(str(name).split())
    if len(text) <= _LONGEST_NAME:
        return text
    half = (_LONGEST_NAME - 1) // 2
    return f"{text[:half]}…{text[-half:]}"


def spread(wanted: NDArray[np.float64], gap: float, low: float, high: float) -> NDArray[np.float64]:
    """Positions nearest to `wanted`, in their order, at least `gap` apart, from `low` to `high`.

    With the wanted positions sorted and ``z_i = p_i - i * gap``, "at least gap apart" says that z
    does not decrease, so the least squares answer is an isotonic regression, clipped to the ends.
    """
    order = np.argsort(wanted, kind="stable")
    steps = gap * np.arange(len(wanted))
    z = isotonic_regression(wanted[order] - steps).x
    positions = np.empty(len(wanted))
    positions[order] = np.clip(z, low, high - steps[-1]) + steps
    return positions
