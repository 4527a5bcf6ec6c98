"""How CSV files are written: what separates the fields, the decimal mark and the encoding."""

import codecs
import csv
from collections.abc import Sequence
from dataclasses import dataclass
from io import StringIO
from typing import Literal

__all__ = ["CsvFormat", "has_wide_characters", "separator_in"]

# In the order of preference where several fit equally well.
SEPARATORS = (",", ";", "\t", "|")


@dataclass(frozen=True)
class CsvFormat:
    r"""How CSV files are written, where they do not show it themselves.

    Examples
    --------
    >>> import os, tempfile
    >>> from sparsestep import read_moments
    >>> from sparsestep.sources import CsvFormat
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "flats.csv")
    ...     with open(path, "w", encoding="cp1252") as file:
    ...         _ = file.write("größe:preis\n71,5:230\n64,5:199\n")
    ...     moments = read_moments(path, "preis", csv=CsvFormat(":", ",", "cp1252"))
    >>> moments.feature_names
    ('größe',)
    """

    separator: str | None = None
    """What separates the fields of a CSV file. If not given: that of comma, semicolon, tab and bar
    which its first lines show; in a .tsv file the tab."""

    decimal: Literal[".", ","] | None = None
    """The decimal mark in a CSV file. If not given: the point, or the comma where that is not the
    separator and columns of text become numbers by it, unless it may separate thousands in all."""

    encoding: str = "utf-8"
    "The encoding of a CSV file, such as cp1252."

    def __post_init__(self) -> None:
        if self.separator == r"\t":
            # How a tab is written where it cannot be typed.
            object.__setattr__(self, "separator", "\t")
        mark = self.separator
        if mark is not None and (len(mark) != 1 or not mark.isascii() or mark in '"\r\n'):
            raise ValueError(f"The separator must be a single ASCII character, not {mark!r}.")
        if self.decimal not in (None, ".", ","):
            raise ValueError(f"The decimal mark must be '.' or ',', not {self.decimal!r}.")
        try:
            # Refuses rot13 and base64 too, which are codecs but not of text.
            "".encode(self.encoding)
        except LookupError:
            raise ValueError(
                f"There is no encoding {self.encoding!r}; known are utf-8, cp1252, utf-16 and the "
                "others of Python."
            ) from None


def has_wide_characters(head: bytes, encoding: str) -> bool:
    """Whether a file has two bytes or more for each character, though not by its encoding."""
    if codecs.lookup(encoding).name.startswith(("utf-16", "utf-32")):
        return False
    marked = head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
    return marked or 4 * head.count(0) > len(head)


def separator_in(head: str) -> str | None:
    """The separator that the first lines of a file show; None if none of the usual ones is there.

    A mark fits if each line has as many fields as the header. Of the fitting marks, or else of all,
    the one with the most fields is taken: a decimal comma does not stand in every number, nor a
    semicolon in every text.
    """
    counts = {mark: _fields(head, mark) for mark in SEPARATORS if mark in head}
    there = [mark for mark in counts if counts[mark] and counts[mark][0] > 1]
    fitting = [mark for mark in there if len(set(counts[mark])) == 1]
    return max(fitting or there, key=lambda mark: counts[mark][0], default=None)


def _fields(head: str, mark: str) -> Sequence[int]:
    """How many fields each line has with this separator, quotes respected."""
    try:
        rows = csv.reader(StringIO(head.removeprefix("\N{BYTE ORDER MARK}")), delimiter=mark)
        return [len(row) for row in rows if row]
    except csv.Error:
        return []
