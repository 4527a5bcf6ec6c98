"""Which of nearly equal numbers is the least.

Neighbouring alphas often give the same model, and what is computed from it differs by rounding
only. Of these the first is taken, so that the choice does not hang on the last digit.
"""

import numpy as np
from numpy.typing import NDArray

__all__ = ["best_fitting", "first_least"]

Array = NDArray[np.float64]
Index = NDArray[np.intp]


def first_least(values: Array, among: Index, slack: float) -> int:
    """The first place `among` some whose value is the least there, but for `slack`."""
    some = values[among]
    return int(among[np.argmax(some <= some.min() + slack)])


def best_fitting(rss: Array, among: Index) -> int:
    """The first place `among` some whose residual sum of squares is the least, but for rounding."""
    return first_least(rss, among, 1e-9 * float(rss.max()))
