"""Columns of text as columns of zeros and ones, one for each category but the first.

With a column for the first as well, all of them would add up to one on every row, and the engine
takes several times as long on columns that are linearly dependent. The first is the most frequent
category, so that it costs one variable to single out any of the others. A single category has its
column, of ones, so that missing values and constants are found there as in any other column.
Missing values of a column that has the category `MISSING` are of this category.
"""

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from sparsestep.errors import InputError, NotNumbersError, UnknownCategoryError
from sparsestep.sources.csv_rows import TextColumn
from sparsestep.sources.request import indicators, require_columns
from sparsestep.sources.rows import Rows, Where, block_rows, in_row, open_rows
from sparsestep.words import quoted

# Columns of text: their categories, and the names of the indicators of the last of these.
Texts = Mapping[str, tuple[Sequence[str], Sequence[str]]]
# With more categories than these, few have enough rows for an effect of their own.
MOST_CATEGORIES = 1000
# Categories shown in a message, so that a blank or a capital letter too many can be seen.
_MOST_SHOWN = 5
# The category of missing values, where they have one.
MISSING = "(missing)"
# Days with a year of four digits, first or last, and times of day.
_TIME = r"\d{1,2}:\d{2}(:\d{2}([.,]\d+)?)?\s*(Z|[+-]\d{2}:?\d{2})?"
_DAY = r"(\d{4}[-./]\d{1,2}[-./]\d{1,2}|\d{1,2}[-./]\d{1,2}[-./]\d{4})"
_DATE_OR_TIME = rf"^\s*({_DAY}([T ]{_TIME})?|{_TIME})\s*$"


def encoded_table(frame: Any, texts: Texts, features: Sequence[str], kept: Collection[str]) -> Any:
    """An Arrow table of a model's features, from a frame that holds texts instead of indicators.

    Columns that the model did not keep may be missing from the frame; they are zeros.
    """
    rows = open_rows(frame)
    there, column_of = set(rows.names), columns_behind(texts)
    used = {name for name in features if name in kept or column_of.get(name, name) in there}
    tables = [pa.table(values) for _, _, values in feature_blocks(rows, used, texts)]
    if not tables:
        raise ValueError("X has no rows; a prediction needs at least one.")
    table = pa.concat_tables(tables)
    zeros = pa.nulls(table.num_rows, pa.float64()).fill_null(0.0)
    columns = [table.column(name) if name in used else zeros for name in features]
    return pa.table(columns, names=list(features))


def columns_behind(texts: Texts) -> dict[str, str]:
    """The column of text behind each indicator."""
    return {name: column for column, (_, own) in texts.items() for name in own}


def feature_blocks(
    rows: Rows,
    used: Collection[str],
    texts: Texts,
    carried: Sequence[str] = (),
    unknown_as_missing: bool = False,
) -> Iterator[tuple[Where, dict[str, Any], dict[str, Any]]]:
    """Blocks of some features of a model, those that are indicators from their texts.

    With each come where its rows are, and its columns as they are, also those to be `carried`.
    """
    column_of = columns_behind(texts)
    needed = dict.fromkeys(column_of.get(name, name) for name in used)
    known = {column: texts[column][0] for column in needed if column in texts}
    # A model without variables still has a prediction for each row.
    names = list(dict.fromkeys([*needed, *carried])) or rows.names[:1]
    require_columns(names, rows.names, rows.where)
    rows.select(names, text=known, as_is=[name for name in names if name not in needed])
    for where, columns in rows.columns(block_rows(len(names))):
        yield where, columns, encoded(columns, known, where, unknown_as_missing)


def encoded(
    columns: Mapping[str, Any],
    categories: Mapping[str, Sequence[str]],
    where: Where,
    unknown_as_missing: bool = False,
) -> dict[str, Any]:
    """The columns of a block, with zeros and ones instead of those that have categories.

    A missing value is missing in all of them, unless it has a category. So is a text that is none
    of the categories, if it is not an error.
    """
    result: dict[str, Any] = {}
    for column, values in columns.items():
        if column not in categories:
            result[column] = values
            continue
        known, texts = categories[column], _texts(values, column, where)
        if MISSING in known:
            texts = pc.fill_null(texts, MISSING)
        found = pc.index_in(texts, value_set=pa.array(known, pa.string()))
        if found.null_count > texts.null_count and not unknown_as_missing:
            row = pc.index(pc.and_(pc.is_null(found), pc.is_valid(texts)), True).as_py()
            few = len(known) <= _MOST_SHOWN
            shown = f" ({quoted(known, _MOST_SHOWN)})" if few else ""
            none = f"which is none of its {len(known)} categories{shown}"
            what = f"Column {column!r} holds {texts[row].as_py()!r}"
            raise UnknownCategoryError(what, f"{in_row(*where(row))}, {none}")
        names = indicators(column, known)
        codes = range(len(known) - len(names), len(known))
        result |= {name: pc.equal(found, code) for name, code in zip(names, codes, strict=True)}
    return result


def _texts(values: Any, column: str, where: Where) -> Any:
    """The values as texts, null where missing; a text equal to `MISSING` is an error."""
    if pa.types.is_floating(values.type):
        nothing = pa.scalar(None, values.type)
        values = pc.if_else(pc.is_null(values, nan_is_null=True), nothing, values)
    texts = values.cast(pa.string())
    row = pc.index(texts, MISSING).as_py()
    if row >= 0:
        raise InputError(
            f"Column {column!r} holds the text {MISSING!r}",
            f"{in_row(*where(row))}, which is the name of the category of missing values",
            "rename that text",
        )
    return texts


def categories_of(
    rows: Rows, names: Sequence[str], codes: Collection[str] = (), missing: bool = False
) -> dict[str, list[str]]:
    """The categories of the columns that hold text or codes; one pass."""
    text = set(rows.text_among([name for name in names if name not in codes]))
    chosen = [name for name in names if name in text or name in codes]
    if not chosen:
        return {}
    columns = {name: TextColumn(rows.csv) for name in chosen}
    rows.select(chosen, text=columns)
    for where, arrays in rows.columns(block_rows(8 * len(chosen))):
        for name, column in columns.items():
            column.add(_texts(arrays[name], name, where), where)
            if len(column.counts) > MOST_CATEGORIES:
                if name in text:
                    column.check_almost_numbers(name, rows.where)
                raise ValueError(
                    f"Column {name!r} of {rows.where} holds more than {MOST_CATEGORIES} different "
                    "texts, too many to be categories; leave it out."
                )
    for name, column in columns.items():
        known = column.counts
        if not known:
            raise ValueError(f"Column {name!r} of {rows.where} holds no text at all; leave it out.")
        if name in text:
            column.check_almost_numbers(name, rows.where)
            if pc.all(pc.match_substring_regex(pa.array(list(known)), _DATE_OR_TIME)).as_py():
                raise NotNumbersError(name, rows.where, "dates or times")
        if 2 * sum(count == 1 for count in known.values()) > known.total():
            what = "texts most of which occur only once, as names of rows do"
            raise NotNumbersError(name, rows.where, what, "put them into groups")
        if missing and column.n_missing:
            known[MISSING] += column.n_missing
    return {name: _ordered(column.counts) for name, column in columns.items()}


def _ordered(counts: Counter[str]) -> list[str]:
    """The most frequent text, of equals the first; then the others, sorted."""
    first, *others = sorted(counts, key=lambda text: (-counts[text], text))
    return [first, *sorted(others)]
