"""Double-double arithmetic: sums and products as pairs (high, low) of arrays.

``high + low`` is the value, `low` at most half a unit in the last place of `high`. Knuth's sum is
exact, and so is Dekker's product with Veltkamp's splitting while the factors lie between 1e-130 and
1e130 in size. Sums along an axis are those of Ogita, Rump and Oishi (2005), by halves.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Pair = tuple[Array, Array]

_SPLITTER = 2.0**27 + 1.0


def two_sum(a: Any, b: Any) -> Pair:
    """``a + b`` exactly."""
    high = a + b
    of_b = high - a
    return high, (a - (high - of_b)) + (b - of_b)


def add(a: Pair, b: Pair) -> Pair:
    """The sum of two pairs."""
    high, low = two_sum(a[0], b[0])
    return two_sum(high, low + (a[1] + b[1]))


def product(a: Any, b: Any) -> Pair:
    """``a * b`` exactly."""
    high = a * b
    a1, a2 = _split(a)
    b1, b2 = _split(b)
    return high, ((a1 * b1 - high) + a1 * b2 + a2 * b1) + a2 * b2


def _split(a: Any) -> Pair:
    """The first and the last half of the digits."""
    scaled = _SPLITTER * a
    first = scaled - (scaled - a)
    return first, a - first


def total(pair: Pair, axis: int) -> Pair:
    """The sum along an axis: halves are added, with their errors, until one is left."""
    high, low = (np.moveaxis(part, axis, 0) for part in pair)
    if not len(high):
        return np.zeros(high.shape[1:]), np.zeros(high.shape[1:])
    while len(high) > 1:
        half = len(high) // 2
        added, error = two_sum(high[:half], high[half : 2 * half])
        error += low[:half]
        error += low[half : 2 * half]
        if len(high) % 2:
            added, error = np.concatenate([added, high[-1:]]), np.concatenate([error, low[-1:]])
        high, low = added, error
    return two_sum(high[0], low[0])
