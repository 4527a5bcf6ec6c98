"""Rows of anything that Arrow can read, in blocks and in order.

Three things keep the memory bounded whatever the number of rows: only the columns asked for are
read; blocks hold a fixed number of bytes; and no more than a few of them exist at a time.
"""

import os
from bisect import bisect_right
from collections import deque
from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from itertools import chain
from operator import itemgetter
from typing import Any, NamedTuple, TypeVar

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
# Beyond this many threads the reading is slower than the products.
MOST_THREADS = 8

# Where a row is: its number within a file, and the file.
Where = Callable[[int], tuple[int, str]]

_Item = TypeVar("_Item")
_Result = TypeVar("_Result")


class Block(NamedTuple):
    """Some rows, and a function that loads the columns chosen, one after another."""

    rows: int
    load: Callable[[], Iterable[Any]]


def loaded(table: Any) -> Block:
    """The rows of a table or batch in memory."""
    return Block(table.num_rows, lambda: table.columns)


def after(first: int, place: Where) -> Where:
    """Where the rows of a block are that begins at row `first`."""
    return lambda row: place(first + row)


def block_rows(columns: int) -> int:
    """Rows of a block that has this many columns of doubles."""
    return max(BLOCK_BYTES // (8 * columns), 1)


def packed(parts: Iterable[tuple[int, _Item]], size: int) -> Iterator[tuple[int, list[_Item]]]:
    """Neighbouring parts with at most `size` rows together, or one part, and their rows.

    Each part comes after the number of its rows.
    """
    together: list[_Item] = []
    have = 0
    for rows, part in parts:
        if have and have + rows > size:
            yield have, together
            together, have = [], 0
        together.append(part)
        have += rows
    if have:
        yield have, together


def read_ahead(
    function: Callable[[_Item], _Result], items: Iterable[_Item], threads: int | None = None
) -> Generator[_Result, None, None]:
    """The function of each item, in order; threads compute those of the next items meanwhile."""
    threads = threads or min(pa.cpu_count(), MOST_THREADS)
    running: deque[Future[_Result]] = deque()
    with ThreadPoolExecutor(threads) as pool:
        try:
            for item in items:
                running.append(pool.submit(function, item))
                del item
                if len(running) > threads:
                    yield running.popleft().result()
            while running:
                yield running.popleft().result()
        finally:
            for job in running:
                job.cancel()


def open_rows(source: Any, csv: CsvFormat | None = None) -> "Rows":
    """The source behind the argument of `read_moments`."""
    if isinstance(source, Rows):
        return source
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
    from sparsestep.sources.csv_rows import csv_files
    from sparsestep.sources.file_rows import ParquetFiles, arrow_files

    found = find_files(paths)
    kind = kind_of(found.files)
    if kind in ("csv", "tsv"):
        csv = csv or CsvFormat()
        if kind == "tsv" and csv.separator is None:
            csv = replace(csv, separator="\t")
        return csv_files(found, csv)
    if csv not in (None, CsvFormat()):
        raise ValueError(
            f"Separator, decimal mark and encoding are for CSV files; {found.files[0]} is none."
        )
    return ParquetFiles(found) if kind == "parquet" else arrow_files(found)


class Rows:
    """An open source of rows: its columns, the columns chosen, and their values in blocks.

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
        # Those in which pandas wrote its index; a range has no column.
        said = (schemas[i].pandas_metadata or {} for i in other)
        index = chain.from_iterable(each.get("index_columns", ()) for each in said)
        self.index = [name for name in index if isinstance(name, str)]

    def count(self) -> int | None:
        """Number of rows, if that is known without a pass."""
        return None

    def batches(self, size: int) -> Iterator[Any]:
        """All rows in order, of the columns chosen."""
        raise NotImplementedError

    def blocks(self, size: int) -> Iterator[Block]:
        """All rows in order, in blocks of at most about `size` rows."""
        cut = (
            batch.slice(start, size)
            for batch in self.batches(size)
            for start in range(0, batch.num_rows, size)
        )
        for _, parts in packed(((part.num_rows, part) for part in cut), size):
            yield loaded(pa.Table.from_batches(parts))

    def columns(self, size: int) -> Iterator[tuple[Where, dict[str, Any]]]:
        """The columns of each block by name, in order and read ahead, and where its rows are."""
        first = 0
        for arrays in read_ahead(lambda block: [*block.load()], self.blocks(size)):
            yield after(first, self.place), dict(zip(self._columns, arrays, strict=True))
            first += len(arrays[0])

    def place(self, row: int) -> tuple[int, str]:
        """Where a row is that was read: its number within its file, and the file."""
        start, name = self._starts[bisect_right(self._starts, row, key=itemgetter(0)) - 1]
        return row - start, name

    def _reading(self, name: str, first: int) -> None:
        """Remember that rows from number `first` on are of this file."""
        if name != self._starts[-1][1]:
            self._starts.append((first, name))

    def select(
        self, names: Sequence[str], text: Collection[str] = (), as_is: Collection[str] = ()
    ) -> None:
        """Choose the columns. All must hold numbers but those in `text` and in `as_is`."""
        self._columns, self._text, self._as_is = list(names), set(text), set(as_is)
        self._types = {name: self._type(name) for name in names}
        # The first row of each file that was read so far, counted over all files, and the file.
        self._starts = [(0, "")]

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

    def batches(self, size: int) -> Iterator[Any]:
        return (batch.select(self._columns) for batch in self._reader)


class _Pandas(Rows):
    """A pandas frame, turned into Arrow in slices: a copy of all might not fit beside it."""

    def __init__(self, frame: Any) -> None:
        self._frame = frame
        super().__init__("the frame", [pa.schema([])])
        self.names = list(frame.columns)

    def _fields(self, name: str) -> list[tuple[Any, str]]:
        """A column with the type that Arrow finds for it."""
        require_columns([name], self.names, self.where)
        column = self._frame[name]
        try:
            # Text in columns of objects is found by their values only.
            values = column if column.dtype == object else column.iloc[:0]
            return [(pa.field(name, pa.array(values, from_pandas=True).type), "")]
        except pa.ArrowException as error:
            what = f"values that are not all numbers ({column.dtype})"
            raise TypeError(f"Column {name!r} holds {what}: {error}") from error

    def count(self) -> int:
        return len(self._frame)

    def batches(self, size: int) -> Iterator[Any]:
        frame = self._frame[self._columns]
        schema = pa.schema([field for name in self._columns for field, _ in self._fields(name)])
        for first in range(0, len(frame), size):
            part = frame.iloc[first : first + size]
            yield pa.RecordBatch.from_pandas(part, schema, preserve_index=False)


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

    def batches(self, size: int) -> Iterator[Any]:
        """All rows in order, read ahead by pyarrow."""
        scanner = self._dataset.scanner(
            columns=self._columns,
            batch_size=size,
            # Kept, the footers of many files would fill the memory.
            cache_metadata=False,
            **self._read_ahead,
        )
        first = 0
        for tagged in scanner.scan_batches():
            self._reading(getattr(tagged.fragment, "path", ""), first)
            first += tagged.record_batch.num_rows
            yield tagged.record_batch


# -- types of columns ------------------------------------------------------------------------


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


def row_of(row: int, source: str) -> str:
    """A row by its number; the source may have no name."""
    return f"{row} (counted from 0)" + (f" of {source}" if source else "")


def in_row(row: int, source: str) -> str:
    """Where a row is."""
    return f"in row {row_of(row, source)}"
