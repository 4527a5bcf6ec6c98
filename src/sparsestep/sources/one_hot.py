"""Columns of text as columns of zeros and ones, one for each category but the first.

With a column for the first as well, all of them would add up to one on every row, and the engine
takes several times as long on columns that are linearly dependent. The first is the most frequent
category, so that it costs one variable to single out any of the others. A single category has its
column, of ones, so that missing values and constants are found there as in any other column.
Missing values of a column that has the category `MISSING` are of this category.
"""

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Protocol

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv

from sparsestep.errors import InputError, NotNumbersError, UnknownCategoryError
from sparsestep.sources.almost_numbers import AlmostNumbers
from sparsestep.sources.blocks import BLOCK_BYTES
from sparsestep.sources.checks import Columns, require_columns
from sparsestep.sources.csv_format import CsvFormat
from sparsestep.words import in_row, quoted

__all__ = [
    "MISSING",
    "Batches",
    "Rows",
    "categories_of",
    "encoded",
    "indicators",
    "one_hot",
]

# A batch, and the name and first row of where it comes from.
Batches = Iterator[tuple[Any, str, int]]

# Of more than so many categories few can have enough rows to be told from the others.
MOST_CATEGORIES = 1000

# So many categories are shown, so that a blank or a capital letter too many can be seen.
_MOST_SHOWN = 5

# The category of missing values, where they have one.
MISSING = "(missing)"


class Rows(Protocol):
    """An open source of rows."""

    @property
    def names(self) -> Sequence[str]:
        """All columns."""

    @property
    def index(self) -> Collection[str]:
        """Those in which pandas wrote its index."""

    @property
    def csv(self) -> CsvFormat | None:
        """How CSV files are read, what they show themselves included; None for all else."""

    @property
    def where(self) -> str:
        """The source, in words."""

    def select(
        self, names: Sequence[str], text: Collection[str] = (), as_is: Collection[str] = ()
    ) -> None:
        """Choose the columns: numbers, but for those of text and those of any type."""

    def text_among(self, names: Sequence[str]) -> list[str]:
        """Those of the columns that hold text."""

    def count(self) -> int | None:
        """Number of rows, if it is known."""

    def batches(self, size: int) -> Batches:
        """All rows in order."""


def indicators(column: str, categories: Sequence[str]) -> list[str]:
    """Names of the columns of zeros and ones, for all categories but the first of several."""
    return [f"{column}={category}" for category in categories[1:] or categories]


def one_hot(
    columns: Columns, rows: Rows, categories: Mapping[str, Sequence[str]]
) -> tuple[Columns, "_OneHot"]:
    """The columns after the encoding, and the rows that have them."""
    require_columns(categories, rows.names, rows.where)
    for name, known in categories.items():
        if name in (columns.target, columns.weight):
            raise ValueError(f"Column {name!r} has categories, so it can only be a feature.")
        if not known or len(set(known)) < len(known):
            raise ValueError(f"The categories of {name!r} must be one or more different texts.")
    features: list[str] = []
    behind: dict[str, str] = {}
    for name in columns.features:
        own = indicators(name, categories[name]) if name in categories else [name]
        features += own
        behind |= dict.fromkeys(own, name)
    twice = [name for name, count in Counter(features).items() if count > 1]
    if twice:
        raise ValueError(
            f"Column {twice[0]!r} of {rows.where} has the name of a column that the categories "
            "give; rename it."
        )
    known_to = {name: list(categories[name]) for name in columns.features if name in categories}
    columns_after = replace(columns, features=tuple(features), behind=behind)
    return columns_after, _OneHot(rows, columns.all, known_to)


class _OneHot:
    """Rows with columns of text encoded."""

    def __init__(
        self, rows: Rows, source_names: Sequence[str], categories: dict[str, list[str]]
    ) -> None:
        self._rows, self._source_names, self._categories = rows, source_names, categories
        self.names, self.index = rows.names, rows.index
        self.csv, self.where = rows.csv, rows.where

    def select(
        self, names: Sequence[str], text: Collection[str] = (), as_is: Collection[str] = ()
    ) -> None:
        """Choose the columns, given by their names after the encoding."""
        self._names = list(names)
        self._rows.select(self._source_names, text=self._categories)

    def text_among(self, names: Sequence[str]) -> list[str]:
        """None: all columns are encoded."""
        return []

    def count(self) -> int | None:
        """Number of rows, if it is known."""
        return self._rows.count()

    def batches(self, size: int) -> Batches:
        """All rows in order."""
        for batch, name, first in self._rows.batches(size):
            arrays = dict(zip(batch.schema.names, batch.columns, strict=True))
            for column, categories in self._categories.items():
                arrays.update(encoded(arrays.pop(column), column, categories, name, first))
            ordered = [arrays[column] for column in self._names]
            yield pa.RecordBatch.from_arrays(ordered, names=self._names), name, first


def encoded(
    values: Any,
    column: str,
    categories: Sequence[str],
    name: str,
    first: int,
    unknown_as_missing: bool = False,
) -> dict[str, Any]:
    """The columns of zeros and ones for a batch of texts, which begins at a row of something.

    A missing value is missing in all of them, unless it has a category. So is a text that is none
    of the categories, if it is not an error.
    """
    texts = _texts(values, column, name, first)
    if MISSING in categories:
        texts = pc.fill_null(texts, MISSING)
    found = pc.index_in(texts, value_set=pa.array(categories, pa.string()))
    if found.null_count > texts.null_count and not unknown_as_missing:
        row = pc.index(pc.and_(pc.is_null(found), pc.is_valid(texts)), True).as_py()
        few = len(categories) <= _MOST_SHOWN
        shown = f" ({quoted(categories, _MOST_SHOWN)})" if few else ""
        none = f"which is none of its {len(categories)} categories{shown}"
        raise UnknownCategoryError(
            f"Column {column!r} holds {texts[row].as_py()!r}",
            f"{in_row(first + row, name)}, {none}",
        )
    names = indicators(column, categories)
    codes = range(len(categories) - len(names), len(categories))
    return {name: pc.equal(found, code) for name, code in zip(names, codes, strict=True)}


def _texts(values: Any, column: str, name: str, first: int) -> Any:
    """The values as texts, null for those that are missing, which no text may pretend to be."""
    if pa.types.is_floating(values.type):
        nothing = pa.scalar(None, values.type)
        values = pc.if_else(pc.is_null(values, nan_is_null=True), nothing, values)
    texts = values.cast(pa.string())
    row = pc.index(texts, MISSING).as_py()
    if row >= 0:
        raise InputError(
            f"Column {column!r} holds the text {MISSING!r}",
            f"{in_row(first + row, name)}, which is the name of the category of missing values",
            "rename that text",
        )
    return texts


def categories_of(
    rows: Rows, names: Sequence[str], codes: Collection[str] = (), missing: bool = False
) -> dict[str, list[str]]:
    """The categories of those of the columns that hold text, or codes; one pass."""
    text = set(rows.text_among([name for name in names if name not in codes]))
    chosen = [name for name in names if name in text or name in codes]
    if not chosen:
        return {}
    found: dict[str, Counter[str]] = {name: Counter() for name in chosen}
    numbers = {name: AlmostNumbers(rows.csv) for name in text}
    without = dict.fromkeys(chosen, 0)
    rows.select(chosen, text=found)
    for batch, place, first in rows.batches(max(BLOCK_BYTES // (64 * len(chosen)), 1)):
        for name, known in found.items():
            texts = _texts(batch.column(name), name, place, first)
            counts = pc.value_counts(texts.drop_null())
            without[name] += texts.null_count
            if name in text:
                numbers[name].add(texts, counts, place, first)
            known.update({each["values"]: each["counts"] for each in counts.to_pylist()})
            if len(known) > MOST_CATEGORIES:
                if name in text:
                    numbers[name].check(name, rows.where)
                raise ValueError(
                    f"Column {name!r} of {rows.where} holds more than {MOST_CATEGORIES} different "
                    "texts, too many to be categories; leave it out."
                )
    for name, known in found.items():
        _check(name, known, rows.where, numbers.get(name))
        if missing and without[name]:
            known[MISSING] += without[name]
    return {name: _ordered(known) for name, known in found.items()}


def _check(name: str, known: Counter[str], where: str, numbers: AlmostNumbers | None) -> None:
    """Raise if texts are no categories; `numbers` is None for those that were said to be codes."""
    if not known:
        raise ValueError(f"Column {name!r} of {where} holds no text at all; leave it out.")
    if numbers is not None:
        numbers.check(name, where)
        if _are_dates(list(known)):
            raise NotNumbersError(name, where, "dates or times")
    once = sum(count == 1 for count in known.values())
    if 2 * once > known.total():
        raise NotNumbersError(
            name,
            where,
            "texts most of which occur only once, as names of rows do",
            "put them into groups",
        )


def _are_dates(texts: Sequence[str]) -> bool:
    """Whether a CSV file of these texts is one of dates or times, by the types Arrow finds."""
    lines = pa.BufferOutputStream()
    pa.csv.write_csv(pa.table({"text": texts}), lines)
    file = lines.getvalue()
    read = pa.csv.read_csv(
        pa.BufferReader(file),
        read_options=pa.csv.ReadOptions(block_size=file.size),
        parse_options=pa.csv.ParseOptions(newlines_in_values=True),
    )
    return bool(pa.types.is_temporal(read.schema.field(0).type))


def _ordered(counts: Counter[str]) -> list[str]:
    """The most frequent text, of equals the first; then the others, sorted."""
    first = min(counts, key=lambda text: (-counts[text], text))
    return [first, *sorted(text for text in counts if text != first)]
