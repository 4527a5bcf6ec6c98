"""Names beside lines: short enough to read, and apart. Without matplotlib."""

from collections import defaultdict
from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

__all__ = ["plain", "spread"]

_LONGEST_NAME = 24
# So much of what names have in common is shown before the part that tells them apart.
_COMMON = 3


def plain(names: Iterable[object]) -> list[str]:
    """Names on one line each, of bounded length, cut where they do not differ."""
    texts = [" ".join(str(name).split()) for name in names]
    shown = {text: _cut(text, len(text)) for text in texts}
    groups = defaultdict(list)
    for text, short in shown.items():
        groups[short].append(text)
    for alike in groups.values():
        if len(alike) > 1:
            # Of names in the order of the alphabet, the first and the last have least in common.
            pairs = zip(min(alike), max(alike), strict=False)
            start = next((i for i, (a, b) in enumerate(pairs) if a != b), 0)
            shown |= {text: _cut(text, start - _COMMON) for text in alike}
    return [shown[text] for text in texts]


def _cut(text: str, start: int) -> str:
    """The beginning of a name and what comes from `start` on, or its end."""
    if len(text) <= _LONGEST_NAME:
        return text
    half = (_LONGEST_NAME - 1) // 2
    start = min(max(start, half), len(text) - half)
    return f"{text[:half]}…{text[start : start + half]}" + "…" * (start + half < len(text))


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
