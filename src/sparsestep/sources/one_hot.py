"""Columns of text as columns of zeros and ones, one for each category but the first.

With a column for the first as well, all of them would add up to one on every row, and the engine
takes several times as long on columns that are linearly dependent. The first is the most frequent
category, so that it costs one variable to single out any of the others. A single category has its
column, of ones, so that missing values and constants are found there as in any other column.
Missing values of a column that has the category `MISSING` are of this category.
"""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from sparsestep.errors import InputError, NotNumbersError, UnknownCategoryError
from sparsestep.sources.csv_rows import check_almost_numbers, first_other, text_counts
from sparsestep.sources.request import Request, require_columns
from sparsestep.sources.rows import Batches, Place, Rows, block_rows, open_rows
from sparsestep.words import quoted, repeated

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


def indicators(column: str, categories: Sequence[str]) -> list[str]:
    """Names of the columns of zeros and ones, for all categories but the first of several."""
    return [f"{column}={category}" for category in categories[1:] or categories]


def with_indicators(request: Request, rows: Rows) -> Request:
    """The same with indicators instead of the features that have categories."""
    categories = request.categories
    require_columns(categories, rows.names, rows.where)
    for name, known in categories.items():
        if name in (request.target, request.weight):
            raise ValueError(f"Column {name!r} has categories, so it can only be a feature.")
        if not known or len(set(known)) < len(known):
            raise ValueError(f"The categories of {name!r} must be one or more different texts.")
    behind: list[tuple[str, str]] = []
    for name in request.features or ():
        own = indicators(name, categories[name]) if name in categories else [name]
        behind += [(feature, name) for feature in own]
    features = [feature for feature, _ in behind]
    if len(set(features)) < len(features):
        raise ValueError(
            f"Column {repeated(features)!r} of {rows.where} has the name of a column that the "
            "categories give; rename it."
        )
    return replace(request, features=features, behind=dict(behind))


def encoded_batches(
    rows: Rows,
    names: Sequence[str],
    categories: Mapping[str, Sequence[str]],
    after: Sequence[str],
    size: int,
) -> Batches:
    """Some columns of all rows, those with categories encoded; `after` orders the result."""
    known = {name: categories[name] for name in names if name in categories}
    rows.select(names, text=known)
    for batch, place in rows.batches(size):
        arrays = dict(zip(batch.schema.names, batch.columns, strict=True))
        for column, own in known.items():
            arrays.update(encoded(arrays.pop(column), column, own, place))
        yield pa.RecordBatch.from_arrays([arrays[name] for name in after], names=after), place


def encoded_table(
    frame: Any,
    texts: Mapping[str, tuple[Sequence[str], Sequence[str]]],
    features: Sequence[str],
    kept: Collection[str],
) -> Any:
    """An Arrow table of a model's features, from a frame that holds texts instead of indicators.

    Columns that the model did not keep may be missing from the frame; they are zeros.
    """
    rows = open_rows(frame)
    column_of = {name: column for column, (_, own) in texts.items() for name in own}
    there = set(rows.names)
    used = [name for name in features if name in kept or column_of.get(name, name) in there]
    needed = list(dict.fromkeys(column_of.get(name, name) for name in used))
    require_columns(needed, rows.names, rows.where)
    known = {column: categories for column, (categories, _) in texts.items()}
    batches = encoded_batches(rows, needed, known, used, block_rows(len(features)))
    table = pa.Table.from_batches([batch for batch, _ in batches])
    zeros = pa.nulls(table.num_rows, pa.float64()).fill_null(0.0)
    columns = [table.column(name) if name in used else zeros for name in features]
    return pa.table(columns, names=list(features))


def encoded(
    values: Any,
    column: str,
    categories: Sequence[str],
    place: Place,
    unknown_as_missing: bool = False,
) -> dict[str, Any]:
    """The columns of zeros and ones for a batch of texts.

    A missing value is missing in all of them, unless it has a category. So is a text that is none
    of the categories, if it is not an error.
    """
    texts = _texts(values, column, place)
    if MISSING in categories:
        texts = pc.fill_null(texts, MISSING)
    found = pc.index_in(texts, value_set=pa.array(categories, pa.string()))
    if found.null_count > texts.null_count and not unknown_as_missing:
        row = pc.index(pc.and_(pc.is_null(found), pc.is_valid(texts)), True).as_py()
        few = len(categories) <= _MOST_SHOWN
        shown = f" ({quoted(categories, _MOST_SHOWN)})" if few else ""
        none = f"which is none of its {len(categories)} categories{shown}"
        what = f"Column {column!r} holds {texts[row].as_py()!r}"
        raise UnknownCategoryError(what, f"{place.row(row)}, {none}")
    names = indicators(column, categories)
    codes = range(len(categories) - len(names), len(categories))
    return {name: pc.equal(found, code) for name, code in zip(names, codes, strict=True)}


def _texts(values: Any, column: str, place: Place) -> Any:
    """The values as texts, null where missing; a text equal to `MISSING` is an error."""
    if pa.types.is_floating(values.type):
        nothing = pa.scalar(None, values.type)
        values = pc.if_else(pc.is_null(values, nan_is_null=True), nothing, values)
    texts = values.cast(pa.string())
    row = pc.index(texts, MISSING).as_py()
    if row >= 0:
        raise InputError(
            f"Column {column!r} holds the text {MISSING!r}",
            f"{place.row(row)}, which is the name of the category of missing values",
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
    found: dict[str, Counter[str]] = {name: Counter() for name in chosen}
    others: dict[str, Any] = dict.fromkeys(text)
    without: Counter[str] = Counter()
    rows.select(chosen, text=found)
    for batch, place in rows.batches(block_rows(8 * len(chosen))):
        for name, known in found.items():
            texts = _texts(batch.column(name), name, place)
            without[name] += texts.null_count
            if name in text and others[name] is None:
                others[name] = first_other(texts, place, rows.csv)
            known.update(text_counts(texts))
            if len(known) > MOST_CATEGORIES:
                if name in text:
                    check_almost_numbers(name, rows.where, known, others[name], rows.csv)
                raise ValueError(
                    f"Column {name!r} of {rows.where} holds more than {MOST_CATEGORIES} different "
                    "texts, too many to be categories; leave it out."
                )
    for name, known in found.items():
        if not known:
            raise ValueError(f"Column {name!r} of {rows.where} holds no text at all; leave it out.")
        if name in text:
            check_almost_numbers(name, rows.where, known, others[name], rows.csv)
            if pc.all(pc.match_substring_regex(pa.array(list(known)), _DATE_OR_TIME)).as_py():
                raise NotNumbersError(name, rows.where, "dates or times")
        if 2 * sum(count == 1 for count in known.values()) > known.total():
            what = "texts most of which occur only once, as names of rows do"
            raise NotNumbersError(name, rows.where, what, "put them into groups")
        if missing and without[name]:
            known[MISSING] += without[name]
    return {name: _ordered(known) for name, known in found.items()}


def _ordered(counts: Counter[str]) -> list[str]:
    """The most frequent text, of equals the first; then the others, sorted."""
    first, *others = sorted(counts, key=lambda text: (-counts[text], text))
    return [first, *sorted(others)]
