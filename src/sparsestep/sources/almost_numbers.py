"""Columns of text that hold numbers but for a few values: a `?`, a unit, a decimal comma."""

import re
from typing import Any

import pyarrow.compute as pc

from sparsestep.errors import NotNumbersError
from sparsestep.sources.csv_format import CsvFormat

__all__ = ["AlmostNumbers", "show_decimal_commas"]

_EXPONENT = r"([eE][+-]?\d+)?\s*$"
_NUMBER = rf"^\s*[+-]?(\d+\.?\d*|\.\d+){_EXPONENT}"
_WITH_COMMA = rf"^\s*[+-]?\d*,\d+{_EXPONENT}"
_WITHOUT_POINT = rf"^\s*[+-]?(\d+,?\d*|,\d+){_EXPONENT}"
# No group of thousands begins with a zero.
_THOUSANDS = r"^\s*[+-]?[1-9]\d{0,2}(,\d{3})+(\.\d*)?\s*$"


def show_decimal_commas(texts: Any) -> bool:
    """Whether a comma in one of the texts can only be a decimal mark."""
    comma = pc.match_substring_regex(texts, _WITH_COMMA)
    return bool(pc.any(pc.and_not(comma, pc.match_substring_regex(texts, _THOUSANDS))).as_py())


class AlmostNumbers:
    """Counts the numbers among texts, batch by batch, and finds the first that is none.

    `csv` says how the texts were read, if they are those of a CSV file.
    """

    def __init__(self, csv: CsvFormat | None = None) -> None:
        self._csv = csv
        self._number = _WITHOUT_POINT if csv is not None and csv.decimal == "," else _NUMBER
        self._values = self._numbers = 0
        self._decimal_commas = False
        self._first: tuple[str, int, str] | None = None

    def add(self, texts: Any, counts: Any, name: str, first: int) -> None:
        """Count the texts of a batch, which begins at a row of something with a name.

        Their `pyarrow.compute.value_counts` spare looking at the same text many times.
        """
        values, times = counts.field("values"), counts.field("counts")
        number = pc.match_substring_regex(values, self._number)
        almost = number
        for form in (_NUMBER, _WITH_COMMA, _THOUSANDS):
            almost = pc.or_(almost, pc.match_substring_regex(values, form))
        self._values += pc.sum(times).as_py() or 0
        self._numbers += pc.sum(times.filter(almost)).as_py() or 0
        self._decimal_commas = self._decimal_commas or show_decimal_commas(values)
        if self._first is None and number.false_count:
            row = pc.index(pc.match_substring_regex(texts, self._number), False).as_py()
            self._first = (texts[row].as_py(), first + row, name)

    def check(self, column: str, where: str) -> None:
        """Raise if most values are numbers, but not all."""
        if self._first is None or 2 * self._numbers <= self._values:
            return
        text, row, name = self._first
        what, advice, decimal = f"{text!r} in row {row} (counted from 0)", "correct it", False
        thousands = re.match(_THOUSANDS, text)
        comma = re.match(_WITH_COMMA, text) and (self._decimal_commas or not thousands)
        if comma or re.match(_NUMBER, text):
            what += f", which looks like a number with a decimal {'comma' if comma else 'point'}"
            if self._csv is not None:
                advice, decimal = "", True
        elif thousands:
            what += ", which looks like a number with separators of thousands"
            advice = "write such numbers without them"
            if self._undecided:
                what += ", or with a decimal comma"
                advice, decimal = "write numbers without separators of thousands", True
        else:
            what += f", while {self._numbers} of the {self._values} values read are numbers"
        raise NotNumbersError(column, name or where, what, advice, decimal)

    @property
    def _undecided(self) -> bool:
        """Whether the comma might be the decimal mark of a CSV file."""
        csv = self._csv
        return csv is not None and csv.decimal is None and csv.separator != ","
