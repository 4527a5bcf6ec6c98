"""Rows of anything that Arrow can read, in batches and in order.

Three things keep the memory bounded whatever the number of rows: only the columns asked for are
read; batches hold a fixed number of bytes; and no more than a few of them exist at a time.
"""

import json
import os
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds
from numpy.typing import NDArray

from sparsestep.errors import NotNumbersError
from sparsestep.moments.table import comes_from
from sparsestep.sources.files import find_files, kind_of
from sparsestep.sources.request import CsvFormat, require_columns

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
    from sparsestep.sources.file_rows import ParquetFiles, arrow_files

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
    return ParquetFiles(found) if kind == "parquet" else arrow_files(found)


class Rows:
    """An open source of rows: its columns, the columns chosen, and their values in batches.

    The columns are those of one schema, or of the schemas of several files.
    """

    csv: CsvFormat | None = None
    "How CSV files are read, what they show themselves included; None for all else."

    def __init__(self, where: str, schemas: Sequence[Any], files: Sequence[str] = ("",)) -> None:
        self.where, self._files, self._schemas = where, list(files), schemas
        # pyarrow decodes all names whenever they are asked for.
        self._names = [schema.names for schema in schemas]
        # Columns that only some files have are listed too, so that the missing ones are reported.
        other = [0, *(i for i, names in enumerate(self._names) if names != self._names[0])]
        self.names: list[str] = list(self._names[0])
        if len(other) > 1:
            self.names = list(dict.fromkeys(chain.from_iterable(self._names[i] for i in other)))
        # Those in which pandas wrote its index.
        self.index = [name for i in other for name in _index_columns(schemas[i])]

    def count(self) -> int | None:
        """Number of rows, if that is known without a pass."""
        return None

    def batches(self, size: int) -> Batches:
        """All rows in order, of the columns chosen."""
        raise NotImplementedError

    def blocks(self, size: int) -> Blocks:
        """The same rows in tables of at most `size` rows."""
        return in_blocks(self.batches(size), size)

    def select(
        self, names: Sequence[str], text: Collection[str] = (), as_is: Collection[str] = ()
    ) -> None:
        """Choose the columns. All must hold numbers but those in `text` and in `as_is`."""
        self._columns, self._text, self._as_is = list(names), set(text), set(as_is)
        self._types = {name: self._type(name) for name in names}

    def text_among(self, names: Sequence[str]) -> list[str]:
        """The columns that hold text, in any of the files."""
        return [n for n in names if any(is_text(field.type) for field, _ in self._fields(n))]

    def _fields(self, name: str) -> list[tuple[Any, str]]:
        """A column with its type in each file that has it, and the file."""
        places = zip(self._schemas, self._files, strict=True)
        return [(s.field(i), path) for s, path in places if (i := s.get_field_index(name)) >= 0]

    def _type(self, name: str) -> Any:
        """The type to read a column as in all files."""
        found = {self._type_in(field, where) for field, where in self._fields(name)}
        if len(found) == 1:
            return found.pop()
        if name in self._as_is:
            raise TypeError(
                f"Column {name!r} has another type in some of the files, such as "
                f"{' and '.join(sorted(map(str, found)))}; read them apart."
            )
        numbers = all(pa.types.is_integer(kind) or pa.types.is_floating(kind) for kind in found)
        return pa.string() if name in self._text and not numbers else pa.float64()

    def _type_in(self, field: Any, where: str) -> Any:
        """The type to read a column of a file as."""
        if field.name not in self._text | self._as_is:
            return read_type(field, where)
        no_text = pa.types.is_nested(field.type) or pa.types.is_binary(field.type)
        if field.name in self._text and no_text:
            of = f" of {where}" if where else ""
            raise TypeError(
                f"Column {field.name!r}{of} has categories, but holds values of type {field.type} "
                "instead of text or codes."
            )
        # Each file has a dictionary of its own.
        return field.type.value_type if pa.types.is_dictionary(field.type) else field.type


class _Stream(Rows):
    """A table or stream of batches of any library that speaks Arrow; read once."""

    def __init__(self, source: Any) -> None:
        self._rows = getattr(source, "num_rows", None)
        reader = isinstance(source, pa.RecordBatchReader)
        self._reader = source if reader else pa.RecordBatchReader.from_stream(source)
        super().__init__("the table", [self._reader.schema])

    def count(self) -> int | None:
        return self._rows

    def batches(self, size: int) -> Batches:
        return _placed(batch.select(self._columns) for batch in self._reader)


class _Pandas(Rows):
    """A pandas frame, turned into Arrow a slice at a time."""

    def __init__(self, frame: Any) -> None:
        self._frame = frame
        super().__init__("the frame", [pa.schema([])])
        self.names = list(frame.columns)

    def _fields(self, name: str) -> list[tuple[Any, str]]:
        require_columns([name], self.names, self.where)
        return [(pandas_field(self._frame, name), "")]

    def count(self) -> int:
        return len(self._frame)

    def batches(self, size: int) -> Batches:
        fields = (pandas_field(self._frame, name) for name in self._columns)
        return _placed(pandas_batches(self._frame[self._columns], fields, size))


class DatasetRows(Rows):
    """A pyarrow Dataset, read as it is."""

    # How far pyarrow reads ahead, where nothing is known of the files.
    _read_ahead: Mapping[str, Any] = {"batch_readahead": 2, "fragment_readahead": 2}

    def __init__(self, dataset: Any) -> None:
        self._dataset = dataset
        super().__init__("the dataset", [dataset.schema])

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
            **self._read_ahead,
        )
        name, first = "", 0
        for tagged in scanner.scan_batches():
            path = getattr(tagged.fragment, "path", "")
            if path != name:
                name, first = path, 0
            rows = tagged.record_batch.num_rows
            yield tagged.record_batch, Place(name, first, rows)
            first += rows


def _placed(batches: Iterable[Any]) -> Batches:
    """Batches with their places in something without a name."""
    first = 0
    for batch in batches:
        yield batch, Place("", first, batch.num_rows)
        first += batch.num_rows


def in_blocks(batches: Batches, size: int) -> Blocks:
    """Batches cut, and put together to tables of at most `size` rows."""
    waiting: list[Any] = []
    places: list[Place] = []
    have = 0
    for batch, place in batches:
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


# -- types of columns ------------------------------------------------------------------------


def _index_columns(schema: Any) -> list[str]:
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


def pandas_field(frame: Any, name: str) -> Any:
    """A column of a pandas frame, with the type that Arrow finds for it."""
    column = frame[name]
    try:
        # Text in columns of objects is found by their values only.
        values = column if column.dtype == object else column.iloc[:0]
        return pa.field(name, pa.array(values, from_pandas=True).type)
    except pa.ArrowException as error:
        what = f"values that are not all numbers ({column.dtype})"
        raise TypeError(f"Column {name!r} holds {what}: {error}") from error


def pandas_batches(frame: Any, fields: Iterable[Any], size: int) -> Iterator[Any]:
    """Columns of a pandas frame as Arrow batches: a copy of all might not fit beside it."""
    schema = pa.schema(fields)
    for first in range(0, len(frame), size):
        part = frame.iloc[first : first + size]
        yield pa.RecordBatch.from_pandas(part, schema, preserve_index=False)


def row_of(row: int, source: str) -> str:
    """A row by its number; the source may have no name."""
    return f"{row} (counted from 0)" + (f" of {source}" if source else "")


def in_row(row: int, source: str) -> str:
    """Where a row is."""
    return f"in row {row_of(row, source)}"
