"""Options that several commands have."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter, Token

from sparsestep.sources.request import CsvFormat


def _whole(kind: Any, tokens: Sequence[Token]) -> int:
    """A whole number; Cyclopts itself would round others."""
    text = tokens[0].value
    try:
        return int(text)
    except ValueError:
        # Cyclopts puts the name of the option before these words.
        raise ValueError(f"it must be a whole number, not {text!r}.") from None


Whole = Parameter(converter=_whole)
Output = Parameter(alias="-o")
CsvOptions = Annotated[CsvFormat, Parameter(name="*")]

Data = Annotated[
    list[str],
    Parameter(help="A Parquet, CSV or Arrow file, a folder or pattern of such files, or several."),
]
ModelFile = Annotated[Path, Parameter(help="A model that the command fit wrote (.json).")]
Polish = Annotated[
    bool,
    Parameter(help="Add, drop and swap variables after each fit while the exact objective falls."),
]
Always = Annotated[
    list[str] | None,
    Parameter(help="Columns that every model keeps, without a penalty, as a,b,c."),
]
Seed = Annotated[int, Whole, Parameter(help="Seed of the random folds.")]


@Parameter(name="*")
@dataclass(frozen=True)
class TableOptions:
    """Which columns of a table are what."""

    target: Annotated[str | None, Parameter(alias="-t")] = None
    "Name of the column to explain."

    features: list[str] | None = None
    "Columns to explain it with, as a,b,c. All others if not given."

    drop: list[str] | None = None
    "Columns to leave out, as a,b,c."

    weight: str | None = None
    "Column of weights: a whole number w counts as w copies of the row."

    one_hot: bool = False
    """Turn columns of text into columns of zeros and ones, one for each category but the most
    frequent. Finding the categories takes a first pass over these columns."""

    category: list[str] | None = None
    """Columns to turn into such columns whatever they hold, as a,b,c: numbers of districts, years,
    dates."""

    missing_category: bool = False
    "With --one-hot or --category: give missing values a category of their own, (missing)."

    drop_missing: bool = False
    "Leave out rows with a missing value, and say how many and for which columns."

    csv: CsvOptions = field(default_factory=CsvFormat)
