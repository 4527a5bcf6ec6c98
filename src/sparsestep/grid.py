"""Which alphas to try: a grid from the null to the full model, and a search for every model size.

`Sizes` below is any function from alphas to the number of variables that each one keeps; what it
costs is the engine's, which takes many alphas for little more than one.
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

__all__ = ["alpha_grid", "every_size"]

Array = NDArray[np.float64]
Sizes = Callable[[Array], NDArray[np.intp]]

# No model within the reach of double precision needs an alpha below this share of the largest.
_LEAST_SHARE = 1e-16
_RATIO = 4.0
_ROUND = 6


def alpha_grid(sizes: Sizes, guess: float, full: int, n_alphas: int) -> Array:
    """Alphas, largest first, spaced evenly in the logarithm between the null and the full model.

    The ends are checked: the largest gives the null model, and the smallest all `full` variables,
    or, if no alpha does, as many as any.
    """
    top, bottom = _ends(sizes, guess, full)
    return np.geomspace(top, bottom, n_alphas)


def _ends(sizes: Sizes, guess: float, full: int) -> tuple[float, float]:
    """The smallest alpha tried that keeps nothing, and the largest that keeps everything."""
    top = guess
    climb = guess * _RATIO ** np.arange(_ROUND, dtype=np.float64)
    while not (found := np.flatnonzero(sizes(climb) == 0)).size:
        climb *= _RATIO**_ROUND
    top = float(climb[found[0]])
    descent = top * _RATIO ** -np.arange(1.0, 2 * _ROUND + 1)
    bottom, most = top / _RATIO, -1
    while descent[0] > _LEAST_SHARE * top:
        kept = sizes(descent)
        if kept.max() > most:
            most = int(kept.max())
            bottom = float(descent[np.argmax(kept)])
        if most >= full:
            break
        descent *= _RATIO ** -(2 * _ROUND)
    return top, bottom


def every_size(
    sizes: Sizes, guess: float, full: int, *, narrowest: float = 1e-6, most_alphas: int = 4000
) -> tuple[Array, list[int]]:
    """Alphas, largest first, among which is every model size, and the sizes that none has.

    Rounds of many alphas at once: every gap between neighbouring alphas whose sizes differ by more
    than one is filled, until no gap is left that is wider than `narrowest` in the logarithm. Sizes
    need not fall as alpha grows, so a size found anywhere counts.
    """
    top, bottom = _ends(sizes, guess, full)
    alphas = np.geomspace(top, bottom, 4 * _ROUND + 1)
    kept = sizes(alphas)
    while len(alphas) < most_alphas:
        missing = np.setdiff1d(np.arange(full + 1), kept)
        low, high = np.minimum(kept[:-1], kept[1:]), np.maximum(kept[:-1], kept[1:])
        absent = np.searchsorted(missing, high) - np.searchsorted(missing, low, side="right")
        wide = np.log(alphas[:-1] / alphas[1:]) > narrowest
        gaps = np.flatnonzero((absent > 0) & wide)
        if not len(gaps):
            break
        inner = [
            np.geomspace(alphas[g], alphas[g + 1], min(int(absent[g]), 8) + 2)[1:-1] for g in gaps
        ]
        new = np.concatenate(inner)
        alphas, kept = np.concatenate([alphas, new]), np.concatenate([kept, sizes(new)])
        order = np.argsort(-alphas, kind="stable")
        alphas, kept = alphas[order], kept[order]
    return alphas, [int(k) for k in np.setdiff1d(np.arange(full + 1), kept)]
