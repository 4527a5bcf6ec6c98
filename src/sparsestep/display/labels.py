"""Names beside lines: short enough to read, and apart. Without matplotlib."""

import numpy as np
from numpy.typing import NDArray

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
    positions = np.empty(len(wanted))
    positions[order] = np.clip(_isotonic(wanted[order] - steps), low, high - steps[-1]) + steps
    return positions


def _isotonic(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Nearest sequence that does not decrease: ``z_i = max_{j<=i} min_{k>=i} mean(v_j .. v_k)``.

    SciPy has it too, but importing scipy.optimize takes far longer than placing a dozen labels.
    """
    n = len(values)
    sums = np.concatenate([[0.0], np.cumsum(values)])
    first, last = np.arange(n)[:, np.newaxis], np.arange(n)
    length = last - first + 1
    means = np.where(length > 0, (sums[1:] - sums[:-1, np.newaxis]) / np.maximum(length, 1), np.inf)
    least = np.minimum.accumulate(means[:, ::-1], axis=1)[:, ::-1]
    return np.asarray(np.where(first <= last, least, -np.inf).max(axis=0))
