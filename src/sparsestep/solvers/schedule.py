"""The settings of Algorithm 1: the values of gamma, the steps at each, and epsilon."""

from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

# Beyond these the fourth powers of gamma, over or under penalties, may not be numbers.
_SMALLEST, _LARGEST = 1e-30, 1e30
# More gammas than this are a mistake in the settings, and would seem to never end.
_MOST_GAMMAS = 10_000
# The least squares among which the cutoff of a single variable is looked for, for alpha = 1.
_SINGLE = np.geomspace(1e-2, 1e2, 4001)


@dataclass(frozen=True)
class Schedule:
    """The settings of Algorithm 1, by default the paper's."""

    gamma_0: float = 1e6
    gamma_stop: float = 1e-8
    gamma_step: float = 2.0
    t_max: int = 2
    epsilon: float = 1e-7

    def __post_init__(self) -> None:
        """Refuse settings with which the loop never starts or never ends."""
        for name in ("gamma_0", "gamma_stop", "gamma_step", "epsilon"):
            if not np.isfinite(getattr(self, name)):
                raise ValueError(f"{name} must be a finite number; got {getattr(self, name)!r}.")
        if self.gamma_step <= 1:
            raise ValueError(f"gamma_step must be greater than 1; got {self.gamma_step!r}.")
        if not 0 < self.gamma_stop < self.gamma_0:
            raise ValueError(
                "gamma_stop must be positive and less than gamma_0; "
                f"got gamma_stop={self.gamma_stop!r} and gamma_0={self.gamma_0!r}."
            )
        if self.gamma_0 > _LARGEST or self.gamma_stop < _SMALLEST:
            raise ValueError(
                f"gamma_0 must be at most {_LARGEST:g} and gamma_stop at least {_SMALLEST:g}; "
                f"got gamma_0={self.gamma_0!r} and gamma_stop={self.gamma_stop!r}."
            )
        n_gammas = np.log(self.gamma_0 / self.gamma_stop) / np.log(self.gamma_step)
        if n_gammas > _MOST_GAMMAS:
            raise ValueError(
                f"gamma_step={self.gamma_step!r} takes {n_gammas:.2g} gammas from gamma_0 to "
                f"gamma_stop, more than {_MOST_GAMMAS}; raise it."
            )
        if self.t_max < 1:
            raise ValueError(f"t_max must be at least 1; got {self.t_max!r}.")
        if self.epsilon < 0:
            raise ValueError(f"epsilon must not be negative; got {self.epsilon!r}.")

    @cache  # noqa: B019 - a schedule is a few numbers, and there are few of them
    def gammas(self) -> Array:
        """The gammas of the loop, largest first, by the repeated division that the loop does."""
        gammas = [self.gamma_0]
        while gammas[-1] / self.gamma_step > self.gamma_stop:
            gammas.append(gammas[-1] / self.gamma_step)
        found = np.array(gammas)
        found.flags.writeable = False
        return found

    @cache  # noqa: B019
    def price(self) -> float:
        """What a variable costs, over alpha: it stays if it lowers rss by more, in the loop.

        Of a single column of length 1 and alpha = 1 the loop keeps the coefficients of least
        squares above a cutoff, whose square this is: 0.687 with the paper's settings.
        """
        b = np.zeros_like(_SINGLE)
        for gamma in self.gammas():
            for _ in range(self.t_max):
                b = _SINGLE / (1.0 + gamma**2 / (b**2 + gamma**2) ** 2)
        kept = b > np.maximum(0.5 * _SINGLE, self.epsilon)
        return float(_SINGLE[np.argmax(kept)] ** 2) if kept.any() else float(_SINGLE[-1] ** 2)
