"""Rows of anything that Arrow can read, in batches and in order.

Three things keep the memory bounded whatever the number of rows: only the columns asked for are
read; batches hold a fixed number of bytes; and no more than a few of them exist at a time.
"""

import json
import os
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds
from numpy.typing import NDArray

from sparsestep.errors import NotNumbersError
from sparsestep.frames import comes_from
from sparsestep.sources.files import find_files, kind_of
from sparsestep.sources.request import CsvFormat
from sparsestep.words import in_row

__all__ = [
    "Batches",
    "Blocks",
    "DatasetRows",
    "Load",
    "Place",
    "Rows",
    "block_rows",
    "index_columns",
    "is_text",
    "loaded",
    "numbers",
    "open_rows",
    "pandas_schema",
    "read_type",
    "require_categories",
]

# Bytes of a block of rows: large enough that each fold's share is worth a product, small enough
# that one for each thread, as read and as gathered by fold, stays small beside the program itself.
BLOCK_BYTES = 16 << 20


@dataclass(frozen=True)
class Place:
    """Where rows come from: rows `first` to `first + rows` of something with a name."""

    name: str
    first: int
    rows: int

    def row(self, i: int) -> str:
        """How a message says where row i of these is."""
        return in_row(self.first + i, self.name)


# A batch, and where its rows come from.
Batches = Iterator[tuple[Any, Place]]
# A function that returns a table with these columns, and maybe others.
Load = Callable[[Sequence[str]], Any]
# A function that loads the rows of a block, and their places.
Blocks = Iterator[tuple[Load, list[Place]]]


def block_rows(columns: int) -> int:
    """Rows of a block that has this many columns of doubles."""
    return max(BLOCK_BYTES // (8 * columns), 1)


def loaded(table: Any) -> Load:
    """A function that returns a table in memory, whatever columns are asked for."""
    return lambda names: table


def open_rows(source: Any, csv: CsvFormat | None = None) -> "Rows":
    """The source behind the argument of `read_moments`."""
    if isinstance(source, str | os.PathLike):
        return _open_files([source], csv)
    if isinstance(source, ds.Dataset):
        return DatasetRows(source)
    if comes_from(source, "pandas") and hasattr(source, "iloc"):
        return _Pandas(source)
    if comes_from(source, "polars") and hasattr(source, "collect"):
        raise TypeError(
            "The source is a lazy frame; call its collect(), or give the paths of its files."
        )
    if hasattr(source, "__arrow_c_stream__"):
        return _Stream(source)
    if isinstance(source, Iterable):
        paths = list(source)
        if paths and all(isinstance(path, str | os.PathLike) for path in paths):
            return _open_files(paths, csv)
    raise TypeError(
        "The source must be a path, a list of paths, a pyarrow Dataset, or a frame of pandas, "
        f"polars, pyarrow, Dask or Spark, not {type(source).__name__}."
    )


def _open_files(paths: Sequence[Any], csv: CsvFormat | None) -> "Rows":
    """The files behind paths, which must be of one kind."""
    from sparsestep.sources.csv_rows import CsvFiles
    from sparsestep.sources.file_rows import ArrowFiles, ParquetFiles

    found = find_files(paths)
    kind = kind_of(found.files)
    if kind in ("csv", "tsv"):
        csv = csv or CsvFormat()
        if kind == "tsv" and csv.separator is None:
            csv = replace(csv, separator="\t")
        return CsvFiles(found, csv)
    if csv not in (None, CsvFormat()):
        raise ValueError(
            f"Separator, decimal mark and encoding are for CSV files; {found.files[0]} is none."
        )
    return ParquetFiles(found) if kind == "parquet" else ArrowFiles(found)


class Rows:
    """An open source of rows: its columns, the columns chosen, and their values in batches."""

    where = "the table"
    "The source, in words."
    names: Sequence[str]
    "All columns."
    index: Collection[str] = ()
    "Those in which pandas wrote its index."
    csv: CsvFormat | None = None
    "How CSV files are read, what they show themselves included; None for all else."

    def schema(self, names: Sequence[str]) -> Any:
        """Some columns, with the types that they have."""
        raise NotImplementedError

    def count(self) -> int | None:
        """Number of rows, if that is known without a pass."""
        return None

    def batches(self, size: int) -> Batches:
        """All rows in order, of the columns chosen."""
        raise NotImplementedError

    def blocks(self, size: int) -> Blocks:
        """The same rows in tables of at most `size` rows: batches cut, and put together."""
        waiting: list[Any] = []
        places: list[Place] = []
        have = 0
        for batch, place in self.batches(size):
            for start in range(0, batch.num_rows, size):
                part = batch.slice(start, size)
                if have + part.num_rows > size:
                    yield loaded(pa.Table.from_batches(waiting)), places
                    waiting, places, have = [], [], 0
                waiting.append(part)
                places.append(Place(place.name, place.first + start, part.num_rows))
                have += part.num_rows
        if waiting:
            yield loaded(pa.Table.from_batches(waiting)), places

    def select(
        self, names: Sequence[str], text: Collection[str] = (), as_is: Collection[str] = ()
    ) -> None:
        """Choose the columns. All must hold numbers but those in `text` and in `as_is`."""
        self._columns = list(names)
        for field in self.schema(names):
            if field.name in text:
                require_categories(field)
            elif field.name not in as_is:
                read_type(field)

    def text_among(self, names: Sequence[str]) -> list[str]:
        """The columns that hold text."""
        return [field.name for field in self.schema(names) if is_text(field.type)]


class _Stream(Rows):
    """A table or stream of batches of any library that speaks Arrow; read once."""

    def __init__(self, source: Any) -> None:
        self._rows = getattr(source, "num_rows", None)
        reader = isinstance(source, pa.RecordBatchReader)
        self._reader = source if reader else pa.RecordBatchReader.from_stream(source)
        self.names = self._reader.schema.names
        self.index = index_columns(self._reader.schema)

    def schema(self, names: Sequence[str]) -> Any:
        return pa.schema([self._reader.schema.field(name) for name in names])

    def count(self) -> int | None:
        return self._rows

    def batches(self, size: int) -> Batches:
        first = 0
        for batch in self._reader:
            yield batch.select(self._columns), Place("", first, batch.num_rows)
            first += batch.num_rows


class _Pandas(Rows):
    """A pandas frame, turned into Arrow a slice at a time."""

    where = "the frame"

    def __init__(self, frame: Any) -> None:
        self._frame = frame
        self.names = list(frame.columns)

    def schema(self, names: Sequence[str]) -> Any:
        # Without the values, text in columns of objects would not be found.
        return _pandas_fields(self._frame[list(names)])

    def count(self) -> int:
        return len(self._frame)

    def select(
        self, names: Sequence[str], text: Collection[str] = (), as_is: Collection[str] = ()
    ) -> None:
        self._frame = self._frame[list(names)]
        self._schema = pandas_schema(self._frame, {*text, *as_is})
        super().select(names, text, as_is)

    def batches(self, size: int) -> Batches:
        for first in range(0, len(self._frame), size):
            part = self._frame.iloc[first : first + size]
            batch = pa.RecordBatch.from_pandas(part, self._schema, preserve_index=False)
            yield batch, Place("", first, len(part))


class DatasetRows(Rows):
    """A pyarrow Dataset, read as it is."""

    def __init__(self, dataset: Any, where: str = "the dataset") -> None:
        self._dataset = dataset
        self.where = where
        self.names = dataset.schema.names
        self.index = index_columns(dataset.schema)

    def schema(self, names: Sequence[str]) -> Any:
        """Some columns, with the types that they have."""
        return pa.schema([self._dataset.schema.field(name) for name in names])

    def count(self) -> int | None:
        """Number of rows, but for text files, where it costs a pass."""
        lines = isinstance(getattr(self._dataset, "format", None), ds.CsvFileFormat)
        return None if lines else int(self._dataset.count_rows())

    def batches(self, size: int) -> Batches:
        """All rows in order, read ahead by pyarrow."""
        scanner = self._dataset.scanner(
            columns=self._columns,
            batch_size=size,
            # Kept, the footers of many files would fill the memory.
            cache_metadata=False,
            **self._read_ahead(size),
        )
        name, first = "", 0
        for tagged in scanner.scan_batches():
            path = getattr(tagged.fragment, "path", "")
            if path != name:
                name, first = path, 0
            rows = tagged.record_batch.num_rows
            yield tagged.record_batch, Place(name, first, rows)
            first += rows

    def _read_ahead(self, size: int) -> dict[str, Any]:
        """How far pyarrow reads ahead, where nothing is known of the files."""
        return {"batch_readahead": 2, "fragment_readahead": 2}


# -- types of columns ------------------------------------------------------------------------


def index_columns(schema: Any) -> list[str]:
    """The columns in which pandas wrote the index of a frame, by its metadata."""
    said = (schema.metadata or {}).get(b"pandas")
    # A range has no column.
    columns = [] if said is None else json.loads(said)["index_columns"]
    return [name for name in columns if isinstance(name, str)]


def read_type(field: Any, where: str = "") -> Any:
    """The type to read a column as; an error if it holds no numbers."""
    types, kind = pa.types, field.type
    if types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind):
        return kind
    if types.is_decimal(kind) or types.is_null(kind):
        return pa.float64()
    what = f"values of type {kind}"
    if types.is_dictionary(kind):
        what = "categories"
    elif is_text(kind):
        what = "text"
    elif types.is_temporal(kind):
        what = "dates or times"
    raise NotNumbersError(field.name, where, what)


def numbers(column: Any) -> NDArray[Any]:
    """A column of numbers as a NumPy array, missing ones as NaN."""
    if pa.types.is_boolean(column.type):
        column = column.cast(pa.uint8())
    elif pa.types.is_decimal(column.type) or pa.types.is_null(column.type):
        column = column.cast(pa.float64())
    return np.asarray(column.to_numpy(zero_copy_only=False))


def is_text(kind: Any) -> bool:
    """Whether a column of this type holds text, or categories with texts for names."""
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    return kind in (pa.string(), pa.large_string(), pa.string_view())


def require_categories(field: Any, where: str = "") -> None:
    """Raise unless a column holds text, or values that can be written as text."""
    if pa.types.is_nested(field.type) or pa.types.is_binary(field.type):
        of = f" of {where}" if where else ""
        raise TypeError(
            f"Column {field.name!r}{of} has categories, but holds values of type {field.type} "
            "instead of text or codes."
        )


def pandas_schema(frame: Any, own: Collection[str] = ()) -> Any:
    """Types to read the columns of a pandas frame as; columns in `own` keep their type."""
    fields = _pandas_fields(frame)
    return pa.schema([f if f.name in own else pa.field(f.name, read_type(f)) for f in fields])


def _pandas_fields(frame: Any) -> Any:
    """The columns of a pandas frame, with the types that Arrow finds for them."""
    try:
        return pa.Schema.from_pandas(frame, preserve_index=False)
    except pa.ArrowException:
        # Which column it is can be seen only by trying each; on all, that takes far longer.
        for name in frame.columns:
            try:
                pa.Schema.from_pandas(frame[[name]], preserve_index=False)
            except pa.ArrowException as error:
                raise TypeError(
                    f"Column {name!r} holds values that are not all numbers: {error}"
                ) from error
        raise
