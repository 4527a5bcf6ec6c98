"""Options that several commands have."""

from dataclasses import dataclass, field
from typing import Annotated

from cyclopts import Parameter

from sparsestep.sources.csv_format import CsvFormat

__all__ = ["CsvOptions", "Flag", "TableOptions", "Talk"]

# Options that are there or not, without a --no- form.
Flag = Parameter(negative="", show_default=False)
_Names = Parameter(negative="")
CsvOptions = Annotated[CsvFormat, Parameter(name="*")]


@Parameter(name="*")
@dataclass(frozen=True)
class TableOptions:
    """Which columns of a table are what."""

    target: Annotated[str | None, Parameter(alias="-t")] = None
    "Name of the column to explain."

    features: Annotated[list[str] | None, _Names] = None
    "Columns to explain it with, as a,b,c. All others if not given."

    drop: Annotated[list[str] | None, _Names] = None
    "Columns to leave out, as a,b,c."

    weight: str | None = None
    "Column of weights: a whole number w counts as w copies of the row."

    one_hot: Annotated[bool, Flag] = False
    """Turn columns of text into columns of zeros and ones, one for each category but the most
    frequent. Finding the categories takes a first pass over these columns."""

    drop_missing: Annotated[bool, Flag] = False
    "Leave out rows with a missing value, and say how many."

    csv: CsvOptions = field(default_factory=CsvFormat)


@Parameter(name="*")
@dataclass(frozen=True)
class Talk:
    """What is printed."""

    json: Annotated[bool, Flag] = False
    "Print JSON for a program to read, and nothing else."

    quiet: Annotated[bool, Flag] = False
    "Print nothing but errors."
