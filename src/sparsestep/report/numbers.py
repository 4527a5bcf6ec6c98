"""Numbers as text: one rule for the page and, in `script.js`, for its slider."""

import math
from decimal import ROUND_HALF_UP, Context, Decimal

from sparsestep.display.axes import scientific

MISSING = "\N{EN DASH}"
MINUS = "\N{MINUS SIGN}"
TIMES = "\N{MULTIPLICATION SIGN}"
_SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def number(value: float | None, digits: int = 4) -> str:
    """A number of some significant digits, integers in full; very large and small as powers of ten.

    Halves round away from zero, as JavaScript's toFixed does, so that the script's texts and these
    agree to the letter.
    """
    if value is None or not math.isfinite(value):
        return MISSING
    if value == 0:
        return "0"
    exact = Context(prec=digits, rounding=ROUND_HALF_UP).create_decimal_from_float(value)
    exponent = exact.adjusted()
    if -4 <= exponent < 7:
        return fixed(value, max(digits - 1 - exponent, 0))
    power = str(exponent).translate(_SUPERSCRIPTS)
    return f"{fixed(exact.scaleb(-exponent), digits - 1)} {TIMES} 10{power}"


def fixed(value: float | Decimal, decimals: int) -> str:
    """A number of some decimals, with commas between thousands and a true minus.

    A value that is rounded to zero has no sign.
    """
    rounded = Decimal(value).quantize(Decimal(1).scaleb(-decimals), rounding=ROUND_HALF_UP)
    return f"{MINUS if rounded < 0 else ''}{abs(rounded):,}"


def sized_by(error: float, *values: float) -> list[str]:
    """Values that share a standard error, to three digits of the error: more would be noise.

    Without a standard error, and far from 1, the values have digits of their own.
    """
    largest = max(abs(value) for value in values)
    if not (0 < error < math.inf and 1e-4 <= largest < 1e7):
        return [number(value) for value in values]
    decimals = 2 - math.floor(math.log10(error))
    decimals = min(max(decimals, 0), 6 - math.floor(math.log10(largest)), 6)
    return [fixed(value, max(decimals, 0)) for value in values]


def decimals(text: str) -> int:
    """Digits after the point of a number's text."""
    return 0 if TIMES in text else len(text.partition(".")[2])


def padding(text: str, places: int) -> str:
    """The point and digits that a number's text lacks of so many places after the point."""
    missing = places - decimals(text)
    return "" if TIMES in text or missing <= 0 else "." * ("." not in text) + "0" * missing


def short(value: float) -> str:
    """The label of a tick, with as few digits as the value has."""
    text = f"{value:,.12g}"
    if value != 0 and not 1e-4 <= abs(value) < 1e6:
        digits, exponent = scientific(value)
        times = TIMES if digits.strip("-") else ""
        text = f"{digits}{times}10{str(exponent).translate(_SUPERSCRIPTS)}"
    return text.replace("-", MINUS)
