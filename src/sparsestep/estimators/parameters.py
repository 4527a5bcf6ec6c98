"""Parameters of estimators and paths, checked: one clear sentence for what is wrong."""

from collections.abc import Mapping, Sequence
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparsestep.moments.table import real_numbers
from sparsestep.words import quoted, repeated

Array = NDArray[np.float64]

# The range of finite factors above 0: beyond it, 0 and infinity do the same.
_LEAST_FACTOR, _MOST_FACTOR = 1e-30, 1e30


def penalty_factors(given: Any, m: int, names: Sequence[str] | None = None) -> Array | None:
    """Multipliers of alpha in the order of the columns, checked; given so, or by name."""
    if given is None:
        return None
    named = _is_named(given)
    ordered = _in_order(given, names) if named else given
    factor = real_numbers(ordered, "penalty_factor")
    if factor is None:
        raise ValueError(f"penalty_factor must be numbers; got {given!r}.")
    if factor.shape != (m,):
        raise ValueError(
            f"penalty_factor must have one number for each of the {m} columns; "
            f"its shape is {factor.shape}."
        )
    usual = (factor >= _LEAST_FACTOR) & (factor <= _MOST_FACTOR)
    wrong = np.flatnonzero(~(usual | (factor == 0) | (factor == np.inf)))
    if len(wrong):
        which = names[wrong[0]] if named and names is not None else int(wrong[0])
        raise ValueError(
            f"penalty_factor[{which!r}] is {factor[wrong[0]]}; it must be 0, inf, or between "
            f"{_LEAST_FACTOR:g} and {_MOST_FACTOR:g}."
        )
    return factor


def _is_named(given: Any) -> bool:
    """Whether factors come by name: in a mapping, or a series of pandas with labels of text."""
    if isinstance(given, Mapping):
        return True
    series = hasattr(given, "iloc") and hasattr(given, "index") and not hasattr(given, "columns")
    return series and any(isinstance(label, str) for label in given.index)


def _in_order(given: Any, names: Sequence[str] | None) -> list[Any]:
    """Named factors in the order of the columns; 1 for those that a mapping leaves out."""
    if names is None:
        raise ValueError(
            "penalty_factor names columns, but those of X have no names; give a number for each "
            "column, in their order."
        )
    labels = list(given) if isinstance(given, Mapping) else list(given.index)
    values = given.values() if isinstance(given, Mapping) else given
    known, factors = set(names), dict(zip(labels, values, strict=True))
    unknown = [label for label in labels if label not in known]
    if unknown:
        raise ValueError(
            f"penalty_factor names {quoted(unknown, 3)}, but X has no such column; it has "
            f"{quoted(names, 5)}."
        )
    if len(factors) < len(labels):
        raise ValueError(f"penalty_factor names {repeated(labels)!r} twice; give one factor.")
    missing = [name for name in names if name not in factors]
    if missing and not isinstance(given, Mapping):
        raise ValueError(
            f"penalty_factor lacks {quoted(missing, 3)}; a series has a number for each column, "
            "and a dict may leave out those at 1."
        )
    return [factors.get(name, 1.0) for name in names]


def one_alpha(alpha: Any) -> Array:
    """The parameter `alpha`, as the only one of an array."""
    if isinstance(alpha, bool) or not isinstance(alpha, Real):
        raise ValueError(f"alpha must be a number; got {alpha!r}.")
    return alpha_values([alpha], "alpha")


def alpha_values(alphas: Any, name: str) -> Array:
    """Alphas as numbers, largest first, each once."""
    values = real_numbers(alphas, name)
    if values is None or values.ndim != 1 or not len(values):
        raise ValueError(f"{name} must be how many to try, or a list of numbers; got {alphas!r}.")
    wrong = np.flatnonzero(~(np.isfinite(values) & (values >= 0)))
    if len(wrong):
        raise ValueError(f"{name} must be finite and not negative; got {values[wrong[0]]}.")
    return np.unique(values)[::-1]


def alphas_wanted(alphas: Any) -> int | Array:
    """The parameter `alphas`: how many, or which."""
    if isinstance(alphas, Integral):
        return whole_number("alphas", alphas, least=2)
    return alpha_values(alphas, "alphas")


def interval_level(level: Any) -> float:
    """The parameter `level` as a number between 0 and 1."""
    if isinstance(level, bool) or not isinstance(level, Real):
        raise ValueError(f"level must be a number between 0 and 1, such as 0.95; got {level!r}.")
    if not 0 < float(level) < 1:
        raise ValueError(f"level must lie between 0 and 1; got {level!r}.")
    return float(level)


def whole_number(name: str, value: Any, *, least: int) -> int:
    """A whole number of at least `least`."""
    if isinstance(value, bool) or not isinstance(value, Integral) or int(value) < least:
        raise ValueError(f"{name} must be a whole number of at least {least}; got {value!r}.")
    return int(value)
