"""The estimators' parameters and input, checked: one clear sentence for what cannot be used."""

from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "alpha_values",
    "alphas_wanted",
    "as_table",
    "penalty_factors",
    "weights",
    "whole_number",
]

Array = NDArray[np.float64]


def as_table(X: Any) -> Any:
    """X as scikit-learn takes it: a pyarrow table as arrays with names, a lazy frame refused."""
    kind = type(X).__module__.split(".")[0]
    if kind == "polars" and type(X).__name__ == "LazyFrame":
        raise TypeError("X is a polars LazyFrame; call .collect() first.")
    return X


def weights(sample_weight: Any, X: Any) -> Array | None:
    """Weights as an array; the moments check their values."""
    if sample_weight is None:
        return None
    if isinstance(sample_weight, Real):
        return np.full(X.shape[0], float(sample_weight))
    return np.asarray(sample_weight, dtype=np.float64)


def penalty_factors(given: Any, m: int) -> Array | None:
    """Multipliers of alpha, checked."""
    if given is None:
        return None
    factor: Array = np.array(given, dtype=np.float64)
    if factor.shape != (m,):
        raise ValueError(
            f"penalty_factor must have one number for each of the {m} columns; "
            f"its shape is {factor.shape}."
        )
    wrong = np.flatnonzero(~(factor >= 0))
    if len(wrong):
        raise ValueError(
            f"penalty_factor[{wrong[0]}] is {factor[wrong[0]]}; it must be 0 or more, or inf."
        )
    return factor


def alpha_values(alphas: Any, name: str) -> Array:
    """Alphas as numbers, largest first, each once."""
    try:
        values = np.asarray(alphas, dtype=np.float64)
    except (TypeError, ValueError):
        raise ValueError(f"{name} must be numbers; got {alphas!r}.") from None
    if values.ndim != 1 or not len(values):
        raise ValueError(f"{name} must be a list of numbers with at least one; got {alphas!r}.")
    wrong = np.flatnonzero(~(np.isfinite(values) & (values >= 0)))
    if len(wrong):
        raise ValueError(f"{name} must be finite and not negative; got {values[wrong[0]]}.")
    return np.unique(values)[::-1]


def alphas_wanted(alphas: Any) -> int | Array:
    """The parameter `alphas`: how many, or which."""
    if isinstance(alphas, Integral):
        return whole_number("alphas", alphas, least=2)
    return alpha_values(alphas, "alphas")


def whole_number(name: str, value: Any, *, least: int) -> int:
    """A whole number of at least `least`."""
    if not isinstance(value, Integral) or int(value) < least:
        raise ValueError(f"{name} must be a whole number of at least {least}; got {value!r}.")
    return int(value)
