"""The widths gamma falls through, where the fall may start, and when a coefficient is decided.

All rules are for problems in canonical units: every column has unit length, so ``S_jj = 1``, and
`tau_j` is what the other columns leave of it, ``1 / (S^-1)_jj``. `width` is gamma^2 in the units of
the coefficient, and ``crest = alpha_j / width`` the largest ridge penalty at that gamma.
"""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

__all__ = ["BOLD", "CAREFUL", "CLOSE", "WARY", "Rules", "Schedule", "decided", "late_start"]

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]

# Beyond these the fourth powers of the widths, over or under penalties, may not be numbers.
_NARROWEST, _WIDEST = 1e-30, 1e30
# More widths than this are a mistake in the settings, and would seem to never end.
_MOST_WIDTHS = 10_000


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
        if self.gamma_0 > _WIDEST or self.gamma_stop < _NARROWEST:
            raise ValueError(
                f"gamma_0 must be at most {_WIDEST:g} and gamma_stop at least {_NARROWEST:g}; "
                f"got gamma_0={self.gamma_0!r} and gamma_stop={self.gamma_stop!r}."
            )
        widths = np.log(self.gamma_0 / self.gamma_stop) / np.log(self.gamma_step)
        if widths > _MOST_WIDTHS:
            raise ValueError(
                f"gamma_step={self.gamma_step!r} takes {widths:.2g} widths from gamma_0 to "
                f"gamma_stop, more than {_MOST_WIDTHS}; raise it."
            )
        if self.t_max < 1:
            raise ValueError(f"t_max must be at least 1; got {self.t_max!r}.")
        if self.epsilon < 0:
            raise ValueError(f"epsilon must not be negative; got {self.epsilon!r}.")

    def gammas(self) -> Array:
        """The widths of the loop, largest first, by the repeated division that the loop does."""
        gammas = []
        gamma = self.gamma_0
        while gamma > self.gamma_stop:
            gammas.append(gamma)
            gamma /= self.gamma_step
        return np.array(gammas)


@dataclass(frozen=True)
class Rules:
    """How far the shortcuts go. `tolerance` is the error that one linear solve may leave."""

    tolerance: float
    start: float  # the fall may start once crest <= start * smallest eigenvalue of S
    ridge: float  # ... or at gamma >= ridge * the largest coefficient
    after_ridge: float  # ... or gamma >= this * the largest of a ridge regression to start from
    in_weight: float  # decided in: d_j < in_weight * tau_j ...
    steady: float  # ... or b_j moved by less than this share over the last gamma
    in_ratio: float  # ... and, either way, |b_j| > in_ratio * gamma
    out_crest: float  # decided out: crest_j > out_crest * what those that stay leave of x_j ...
    out_ratio: float  # ... and |b_j| < out_ratio * gamma / gamma_step
    patience: float  # early solves may err by (patience / strain)^3 times the tolerance
    as_carried: float  # ... and late ones by this share of the error carried


# BOLD is right nearly always, and knows when it may not be: the engine bounds the error it carries,
# and repeats with CAREFUL what it cannot vouch for.
BOLD = Rules(
    tolerance=3e-7,
    start=0.1,
    ridge=8.0,
    after_ridge=8.0,
    in_weight=0.05,
    steady=0.02,
    in_ratio=4.0,
    out_crest=4.0,
    out_ratio=0.4,
    patience=0.5,
    as_carried=0.3,
)
# CLOSE takes its place where columns are strongly correlated: an error that one coefficient carries
# comes back by way of another, which no bound sees, and must not be a reason for further errors.
CLOSE = replace(BOLD, as_carried=0.03)
# WARY is for nearly collinear ones, where one that hardly moves may yet move when another falls.
WARY = replace(CLOSE, steady=1e-3)
CAREFUL = Rules(
    tolerance=1e-9,
    start=1e-2,
    ridge=64.0,
    after_ridge=16.0,
    in_weight=1e-3,
    steady=1e-3,
    in_ratio=16.0,
    out_crest=20.0,
    out_ratio=0.1,
    patience=0.1,
    as_carried=0.1,
)


def late_start(
    gammas: Array, alpha: Array, largest: Array, smallest: Array, rules: Rules
) -> tuple[NDArray[np.intp], Mask]:
    """Where each problem may enter `gammas`, and whether with b = 0 (else with least squares).

    `largest` is the largest least-squares coefficient, `smallest` the least eigenvalue of ``X'X``.
    While gamma is far above every coefficient, each step is a ridge regression with the same
    penalty ``alpha / gamma^2`` for all; while that penalty is far below the smallest eigenvalue,
    each step is least squares. Either way the loop forgets what came before.
    """
    from_ridge = rules.ridge * largest
    with np.errstate(divide="ignore", invalid="ignore"):
        from_ols = np.sqrt(alpha / (rules.start * smallest))
    from_zero = ~(from_ols < from_ridge)
    latest = np.where(from_zero, from_ridge, from_ols)
    index = np.searchsorted(-gammas, -latest, side="right") - 1
    return np.maximum(index, 0), from_zero | (index <= 0)


def decided(
    b: Array,
    before: Array,
    d: Array,
    width: Array,
    tau: Array,
    rules: Rules,
    gamma_step: float,
) -> tuple[Mask, Mask]:
    """Coefficients that stay in whatever the rest of the fall brings, and those low enough to drop.

    In: the penalty on b_j is small beside what the data say, by `tau` or because b_j hardly moved
    since the gamma `before`, and it only shrinks from here, like gamma^2. Low: b_j lies below the
    next gamma. It is out, as the penalty there exceeds what the data say, once its crest is above
    `rules.out_crest` times what the columns that stay leave of it (at most 1): from then on it
    falls like gamma^2 itself.
    """
    b2 = b * b
    small = d < rules.in_weight * tau
    small |= (np.abs(b - before) < rules.steady * np.abs(b)) & (d < rules.in_weight)
    stays = small & (b2 > rules.in_ratio**2 * width)
    return stays, b2 < (rules.out_ratio / gamma_step) ** 2 * width
