"""Columns of text that hold numbers but for a few values: a `?`, a unit, a decimal comma."""

import re
from typing import Any

import pyarrow.compute as pc

from sparsestep.sources.checks import NotNumbersError

__all__ = ["AlmostNumbers"]

_EXPONENT = r"([eE][+-]?\d+)?\s*$"
_NUMBER = rf"^\s*[+-]?(\d+\.?\d*|\.\d+){_EXPONENT}"
_WITH_COMMA = rf"^\s*[+-]?\d*,\d+{_EXPONENT}"


class AlmostNumbers:
    """Counts the numbers among texts, batch by batch, and finds the first that is none."""

    def __init__(self) -> None:
        self._values = self._numbers = 0
        self._first: tuple[str, int, str, bool] | None = None

    def add(self, texts: Any, counts: Any, name: str, first: int) -> None:
        """Count the texts of a batch, which begins at a row of something with a name.

        Their `pyarrow.compute.value_counts` spare looking at the same text many times.
        """
        values, times = counts.field("values"), counts.field("counts")
        number = pc.match_substring_regex(values, _NUMBER)
        comma = pc.match_substring_regex(values, _WITH_COMMA)
        self._values += pc.sum(times).as_py() or 0
        self._numbers += pc.sum(times.filter(pc.or_(number, comma))).as_py() or 0
        if self._first is None and number.false_count:
            row = pc.index(pc.match_substring_regex(texts, _NUMBER), False).as_py()
            text = texts[row].as_py()
            self._first = (text, first + row, name, re.match(_WITH_COMMA, text) is not None)

    def check(self, column: str, where: str) -> None:
        """Raise if most values are numbers, but not all."""
        if self._first is None or 2 * self._numbers <= self._values:
            return
        text, row, name, comma = self._first
        raise NotNumbersError(
            column,
            f" of {name or where}",
            f"{text!r} in row {row} (counted from 0), while {self._numbers} of the {self._values} "
            "values read are numbers",
            "give the decimal mark" if comma else "correct it",
        )
