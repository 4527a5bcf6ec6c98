"""Where alphas stand on a logarithmic axis that falls to the right: zero apart, at the end."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["Places", "places"]

Array = NDArray[np.float64]

# Parts of the logarithmic stretch: free of anything, and where alpha = 0 stands.
_GAP, _STRIP = 0.06, 0.10
_HALF_DECADE = np.sqrt(10.0)


@dataclass(frozen=True)
class Places:
    """The ends of the axis, the least alpha above zero, and the strip that stands for zero."""

    left: float
    right: float
    least: float
    strip: tuple[float, float] | None = None

    @property
    def zero(self) -> float | None:
        """Where the tick of alpha = 0 is: the middle of its strip."""
        return None if self.strip is None else float(np.sqrt(self.strip[0] * self.strip[1]))

    @property
    def break_at(self) -> float | None:
        """Where the axis is broken: the middle of the gap, if something stands on either side."""
        if self.strip is None or not np.isfinite(self.least):
            return None
        return float(np.sqrt(self.least * self.strip[0]))

    def at(self, alphas: Array) -> Array:
        """The place of each alpha."""
        return np.asarray(alphas if self.zero is None else np.where(alphas, alphas, self.zero))

    def broken(self, x: Array, rows: Array, at_zero: Array, *, wide: bool) -> tuple[Array, Array]:
        """Lines over x, continued after a gap by their value at zero: a point, or a wide stroke."""
        if self.strip is None or self.zero is None or at_zero.shape[1] == 0:
            return x, rows
        beyond = [np.nan, *(self.strip if wide else [self.zero])]
        ends = np.repeat(at_zero[:, -1:], len(beyond), axis=1)
        ends[:, 0] = np.nan
        return np.concatenate([x, beyond]), np.concatenate([rows, ends], axis=1)


def places(alphas: Array) -> Places:
    """Room for all alphas; a decade around them if those above zero are one point."""
    above = alphas[alphas > 0]
    if len(above) == 0:
        ends = float(_HALF_DECADE), float(1.0 / _HALF_DECADE)
        return Places(*ends, least=np.inf, strip=ends)
    left, right = float(above.max()), float(above.min())
    if left == right:
        left, right = left * _HALF_DECADE, right / _HALF_DECADE
    if len(above) == len(alphas):
        return Places(left, right, least=right)
    begin, end = (right * right**part / left**part for part in (_GAP, _GAP + _STRIP))
    return Places(left, end, least=right, strip=(begin, end))
