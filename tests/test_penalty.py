"""The penalty and its majorizer against exact rational arithmetic and the paper's claims."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from sparsestep.penalty import derivative, majorizer, penalty, weights

EXTREME = 1e150
coefficients = st.one_of(
    st.floats(-EXTREME, EXTREME, allow_subnormal=False),
    st.floats(-10.0, 10.0, allow_subnormal=False),
)
# Exponents rather than values, so that every order of magnitude is as likely as the next.
widths = st.floats(-150, 150).map(lambda exponent: 10.0**exponent)
moderate = st.floats(-30, 30).map(lambda exponent: 10.0**exponent)


def exact(value):
    """The float nearest to a rational number, which is infinite where there is none."""
    try:
        return float(value)
    except OverflowError:
        return np.inf


def close(value, rational):
    # Below 1e-290 the factors of a product may have lost digits to underflow.
    return value == pytest.approx(exact(rational), rel=1e-14, abs=1e-290)


@given(b=coefficients, gamma=widths)
@example(b=EXTREME, gamma=1e-150)
@example(b=EXTREME, gamma=EXTREME)
@example(b=0.0, gamma=1e-150)
@example(b=1e-150, gamma=1e-150)
def test_value_slope_and_weight_are_the_exact_ones(b, gamma):
    B, G = Fraction(b), Fraction(gamma)
    assert close(penalty(b, gamma), B**2 / (B**2 + G**2))
    assert close(derivative(b, gamma), 2 * G**2 * B / (B**2 + G**2) ** 2)
    assert close(weights(b, gamma), G**2 / (B**2 + G**2) ** 2)
    assert penalty(-b, gamma) == penalty(b, gamma) and weights(-b, gamma) == weights(b, gamma)
    assert derivative(-b, gamma) == -derivative(b, gamma)


@given(x=coefficients, y=coefficients, gamma=widths)
@example(x=EXTREME, y=0.0, gamma=1e-150)
@example(x=EXTREME, y=EXTREME, gamma=EXTREME)
def test_majorizer_is_the_exact_one_and_lies_above_the_penalty(x, y, gamma):
    X, Y, G = Fraction(x), Fraction(y), Fraction(gamma)
    found = majorizer(x, y, gamma)
    assert close(found, (G**2 * X**2 + Y**4) / (Y**2 + G**2) ** 2)
    assert found >= penalty(x, gamma) * (1 - 1e-14)
    assert found == majorizer(-x, y, gamma) == majorizer(x, -y, gamma)


@given(y=moderate, sign=st.sampled_from([-1.0, 1.0]), gamma=moderate)
def test_majorizer_touches_the_penalty_at_the_supporting_point(y, sign, gamma):
    y = sign * y
    for x in (y, -y):
        assert majorizer(x, y, gamma) == pytest.approx(penalty(x, gamma), rel=1e-14)
        slope_of_majorizer = 2 * weights(y, gamma) * x
        assert slope_of_majorizer == pytest.approx(derivative(x, gamma), rel=1e-14)


def test_arguments_broadcast():
    b, gamma = np.array([[-1.0], [0.0], [2.0]]), np.array([1.0, 2.0])
    np.testing.assert_allclose(penalty(b, gamma), [[0.5, 0.2], [0, 0], [0.8, 0.5]], rtol=1e-15)
    assert majorizer(b, 0.0, gamma).shape == (3, 2)
    assert weights([1, 2], 1).dtype == np.float64
