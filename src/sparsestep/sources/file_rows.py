"""Rows of files of one kind; all their headers are read before any row.

Groups of rows of local Parquet files are decoded by the threads that sum them; everything else
pyarrow reads in its own threads while ours compute the products of the rows before.
"""

import re
from collections.abc import Collection, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.dataset as ds
import pyarrow.fs
import pyarrow.parquet as pq

from sparsestep.sources.csv_dialect import Dialect
from sparsestep.sources.files import find_files, first_line, kind_of, unreadable
from sparsestep.sources.request import CsvFormat, require_columns
from sparsestep.sources.rows import (
    Batches,
    Blocks,
    DatasetRows,
    Place,
    index_columns,
    is_text,
    read_type,
    require_categories,
)

__all__ = ["FileRows"]

# pyarrow.dataset decodes a group of rows of a Parquet file as a whole; remote files with larger
# groups than this are read in slices, as all large local files are.
ROW_GROUP_BYTES = 128 << 20
# Groups of rows of local files up to this size are summed whole.
WHOLE_GROUP_BYTES = 64 << 20
# Headers read side by side.
MOST_THREADS = 8

# Texts that mean that a value is missing: in a column that is used, and in one carried along.
_MISSING, _EMPTY = (pa.array(t) for t in (pa.csv.ConvertOptions().null_values, [""]))


@dataclass(frozen=True)
class _Header:
    """Columns of a file; of a Parquet file also its number of rows, and of rows in each group."""

    schema: Any
    # pyarrow decodes all names whenever they are asked for.
    names: list[str]
    rows: int | None = None
    groups: tuple[int, ...] = ()


class FileRows(DatasetRows):
    """Files of one kind behind paths."""

    def __init__(self, paths: Sequence[Any], csv: CsvFormat | None) -> None:
        files, system, base = find_files(paths)
        kind = kind_of(files)
        self._lines = kind in ("csv", "tsv")
        if csv not in (None, CsvFormat()) and not self._lines:
            raise ValueError(
                f"Separator, decimal mark and encoding are for CSV files; {files[0]} is none."
            )
        csv = csv or CsvFormat()
        if kind == "tsv" and csv.separator is None:
            csv = replace(csv, separator="\t")
        self._parquet = kind == "parquet"
        self._local = isinstance(system, pa.fs.LocalFileSystem)
        if kind == "ipc" and self._local:
            # A batch in such a file can be as large as the file; mapped, it needs no memory.
            system = pa.fs.LocalFileSystem(use_mmap=True)
        self._files, self._system, self._base = files, system, base
        self._format = ds.ParquetFileFormat() if self._parquet else ds.IpcFileFormat()
        with ThreadPoolExecutor(MOST_THREADS) as pool:
            if self._lines:
                self._dialect = Dialect(files, system, csv, pool)
                self.csv, self._format = self._dialect.csv, self._dialect.arrow()
                self._headers = [_Header(schema, schema.names) for schema in self._dialect.schemas]
            else:
                self._headers = list(pool.map(self._header, files))
        if base is not None:
            self._require_own_folder_columns(base)
        # pyarrow would read the first header once more, if not to find the columns of folders.
        known = self._headers[0].schema if base is None else None
        super().__init__(self._make(self._format, known), files[0] if base is None else base)
        # Texts that mean null, in columns of texts that are read raw.
        self._null_texts: dict[str, Any] = {}
        # Columns that only some files have are listed too, so that the missing ones are reported.
        # Columns of the folders come last.
        first = self._headers[0].names
        others = (header.names for header in self._headers if header.names != first)
        of_files = list(dict.fromkeys(chain(first, *others)))
        of_folders = [name for name in self.names if name not in set(first)]
        self._of_folders = set(of_folders)
        if len(of_files) > len(first):
            indexes = (index_columns(header.schema) for header in self._headers)
            self.index = list(dict.fromkeys(chain.from_iterable(indexes)))
        self.names = [*of_files, *of_folders]

    def _header(self, path: str) -> _Header:
        """The columns and groups of rows of a file, without its rows."""
        try:
            if not self._parquet:
                schema = self._format.inspect(path, self._system)
                return _Header(schema, schema.names)
            with self._system.open_input_file(path) as file:
                meta = pq.read_metadata(file)
        except (pa.ArrowException, OSError) as error:
            raise unreadable(path, error) from error
        groups = tuple(meta.row_group(i).num_rows for i in range(meta.num_row_groups))
        schema = meta.schema.to_arrow_schema()
        return _Header(schema, schema.names, meta.num_rows, groups)

    def _require_own_folder_columns(self, base: str) -> None:
        """Raise if a file has a column of the name that a folder gives to one."""
        parts = (path[len(base) :].split("/")[:-1] for path in self._files)
        keys = {unquote(part.split("=")[0]) for inner in parts for part in inner if "=" in part}
        for path, header in zip(self._files, self._headers, strict=True):
            for name in sorted(keys.intersection(header.names)):
                raise ValueError(
                    f"Column {name!r} is in {path}, and folders named {name}=... give another of "
                    "this name; rename one, or read the files by a pattern instead of the folder."
                )

    def _make(self, form: Any, schema: Any) -> Any:
        """The files as a dataset; folders named key=value give columns."""
        hive = {"partitioning": "hive", "partition_base_dir": self._base} if self._base else {}
        return ds.dataset(self._files, format=form, schema=schema, filesystem=self._system, **hive)

    # -- the columns -------------------------------------------------------------------------

    def text_among(self, names: Sequence[str]) -> list[str]:
        """The columns that hold text in any of the files."""
        schemas = [self._dataset.schema, *(header.schema for header in self._headers[1:])]
        text = {field.name for schema in schemas for field in schema if is_text(field.type)}
        return [name for name in names if name in text]

    def select(
        self, names: Sequence[str], text: Collection[str] = (), as_is: Collection[str] = ()
    ) -> None:
        """Check that each file has the columns and find the types to read them as."""
        self._columns = list(names)
        own = [name for name in names if name not in self._of_folders]
        for path, header in zip(self._files, self._headers, strict=True):
            self._require_columns(own, header, path)
        fields = [pa.field(name, self._type(name, text, as_is)) for name in names]
        form = self._format
        if self._lines:
            # A column to carry along is copied as text: an NA in it is no missing value.
            raw = any(name in as_is for name in own)
            null = {name: _MISSING for name in own if name in text}
            null |= {name: _EMPTY for name in own if name in as_is}
            self._null_texts = null if raw else {}
            form = self._dialect.arrow({field.name: field.type for field in fields}, raw)
        self._dataset = self._make(form, pa.schema(fields))

    def _require_columns(self, wanted: Sequence[str], header: _Header, path: str) -> None:
        """Raise unless a file has the columns; of one that another file has, name that file."""
        there = set(header.names)
        for name in wanted:
            if name not in there:
                for other, known in zip(self._files, self._headers, strict=True):
                    if name in known.names:
                        raise ValueError(
                            f"{path} has no column {name!r}, which {other} has; leave the column "
                            "out, or read the files apart."
                        )
        require_columns(wanted, header.names, path)

    def _type(self, name: str, text: Collection[str], as_is: Collection[str]) -> Any:
        """The type to read a column as in all files."""
        schemas = (header.schema for header in self._headers)
        places = list(zip(self._files, schemas, strict=True))
        if name in self._of_folders:
            places = [(self.where, self._dataset.schema)]
        found = {self._type_in(schema.field(name), where, text, as_is) for where, schema in places}
        if len(found) == 1:
            return found.pop()
        if name in as_is:
            raise TypeError(
                f"Column {name!r} has another type in some of the files, such as "
                f"{' and '.join(sorted(map(str, found)))}; read them apart."
            )
        numbers = all(pa.types.is_integer(kind) or pa.types.is_floating(kind) for kind in found)
        return pa.string() if name in text and not numbers else pa.float64()

    def _type_in(
        self, field: Any, where: str, text: Collection[str], as_is: Collection[str]
    ) -> Any:
        """The type to read a column of a file as."""
        lines = self._lines and field.name not in self._of_folders
        if field.name in text or field.name in as_is:
            if lines:
                # A category may look like a number, and a name such as 007 too.
                return pa.string()
            if field.name in text:
                require_categories(field, where)
            # Each file has a dictionary of its own.
            return field.type.value_type if pa.types.is_dictionary(field.type) else field.type
        if lines and pa.types.is_binary(field.type):
            raise self._dialect.other_encoding(where)
        if lines and is_text(field.type):
            self._dialect.check_almost_numbers(field.name, where)
        kind = read_type(field, where)
        # A text file shows only its first rows, in which fractions may look like integers.
        return pa.float64() if lines and kind != pa.bool_() else kind

    # -- the rows ----------------------------------------------------------------------------

    def count(self) -> int | None:
        """Number of rows, if the headers tell."""
        if self._parquet:
            return sum(header.rows or 0 for header in self._headers)
        return super().count()

    def batches(self, size: int) -> Batches:
        """All rows in order."""
        batches = self._slices(size) if self._sliced(size) else super().batches(size)
        name = self._files[0]
        try:
            for batch, place in batches:
                name = place.name
                yield self._with_nulls(batch), place
        except pa.lib.ArrowCancelled:
            # pyarrow has a handler of its own for Ctrl-C.
            raise KeyboardInterrupt from None
        except UnicodeError as error:
            raise self._dialect.other_encoding(name) from error
        except (pa.ArrowException, OSError) as error:
            raise self._blamed(error, name) from error

    def _with_nulls(self, batch: Any) -> Any:
        """The batch with null for the texts that mean a missing value."""
        for name, texts in self._null_texts.items():
            j = batch.schema.get_field_index(name)
            column = batch.column(j)
            found = pc.if_else(pc.is_in(column, texts), pa.scalar(None, pa.string()), column)
            batch = batch.set_column(j, name, found)
        return batch

    def _read_ahead(self, size: int) -> dict[str, Any]:
        """How far pyarrow reads ahead of us."""
        if not self._parquet:
            # Batches of text are a megabyte each; those of Arrow files are mapped.
            return {"batch_readahead": 16, "fragment_readahead": 4}
        # One group of rows, and as many files as make a block or two. Local files are read as
        # they are decoded; remote ones in few, large requests.
        files = min(max(2 * size // self._mean_rows(), 1), 16)
        options = ds.ParquetFragmentScanOptions(pre_buffer=not self._local)
        return {
            "batch_readahead": 1,
            "fragment_readahead": files,
            "fragment_scan_options": options,
        }

    def _sliced(self, size: int) -> bool:
        """Whether Parquet files are read a batch at a time instead of by pyarrow.dataset.

        That one reads several groups of rows ahead when the products take longer than the reading,
        so its memory has no bound that we know. It serves remote files, and many small ones.
        """
        large = self._local and self._parquet and self._mean_rows() >= size
        return large or self._group_bytes() > ROW_GROUP_BYTES

    def _group_bytes(self) -> int:
        """Bytes of the columns chosen in the largest group of rows of a Parquet file."""
        rows = max(max(header.groups, default=0) for header in self._headers)
        return 8 * rows * len(self._columns)

    def _mean_rows(self) -> int:
        """Rows in a Parquet file, on average."""
        return max((self.count() or 0) // len(self._files), 1)

    def _slices(self, size: int) -> Batches:
        """Rows of Parquet files, decoded by pyarrow's threads when we ask for them."""
        own = [name for name in self._columns if name not in self._of_folders]
        for fragment in self._dataset.get_fragments():
            first = 0
            with fragment.open() as opened:
                # Without a buffer each column of a whole group would be read at once.
                buffer = 1 << (18 if self._local else 22)
                file = pq.ParquetFile(opened, pre_buffer=False, buffer_size=buffer)
                for batch in file.iter_batches(size, columns=own):
                    arrays = self._completed(batch, fragment, self._columns, len(batch))
                    part = pa.RecordBatch.from_arrays(arrays, names=self._columns)
                    yield part, Place(fragment.path, first, part.num_rows)
                    first += part.num_rows

    def blocks(self, size: int) -> Blocks:
        """All rows in order; the thread that sums a group of rows of a Parquet file decodes it.

        That keeps all cores busy at less cost than pyarrow's threads beside ours, but a group can
        only be decoded from its beginning, so larger ones would take too much memory.
        """
        if self._local and self._sliced(size) and self._group_bytes() <= WHOLE_GROUP_BYTES:
            return self._groups(size)
        return super().blocks(size)

    def _groups(self, size: int) -> Blocks:
        """Groups of rows of Parquet files, small ones together."""
        for fragment, header in zip(self._dataset.get_fragments(), self._headers, strict=True):
            with fragment.open() as opened:
                meta = pq.read_metadata(opened)
            first = 0
            for run in _runs(header.groups, size):
                rows = sum(header.groups[i] for i in run)
                load = partial(self._decoded, fragment, meta, run, rows)
                yield load, [Place(fragment.path, first, rows)]
                first += rows

    def _decoded(
        self, fragment: Any, meta: Any, groups: Sequence[int], rows: int, names: Sequence[str]
    ) -> Any:
        """Some columns of some groups of rows of a file, decoded in this thread."""
        own = [name for name in names if name not in self._of_folders]
        try:
            with fragment.open() as opened:
                file = pq.ParquetFile(opened, metadata=meta, pre_buffer=False, buffer_size=1 << 16)
                part = file.read_row_groups(groups, own, use_threads=False)
        except (pa.ArrowException, OSError) as error:
            raise self._blamed(error, fragment.path) from error
        return pa.table(self._completed(part, fragment, names, rows), names=names)

    def _completed(self, part: Any, fragment: Any, names: Sequence[str], rows: int) -> list[Any]:
        """Columns of some rows of a file, or of its folder, of the types to read them as."""
        keys = ds.get_partition_keys(fragment.partition_expression)
        types = {name: self._dataset.schema.field(name).type for name in names}
        return [
            pa.repeat(pa.scalar(keys.get(name), kind), rows)
            if name in self._of_folders
            else part.column(name).cast(kind)
            for name, kind in types.items()
        ]

    def _blamed(self, error: Exception, name: str) -> ValueError:
        """The error with the name of its file, which pyarrow leaves out: found by reading again."""
        own = [column for column in self._columns if column not in self._of_folders]
        form, schema = self._dataset.format, self._dataset.schema
        for path in self._files[self._files.index(name) :]:
            alone = ds.dataset([path], format=form, schema=schema, filesystem=self._system)
            try:
                for _ in alone.scanner(columns=own, batch_size=1 << 12).to_batches():
                    pass
            except (pa.ArrowException, OSError) as found:
                return self._error_in(path, found)
        return unreadable(self.where, error)

    def _error_in(self, path: str, error: Exception) -> ValueError:
        """The error of a file by column and line, for which pyarrow has no fields."""
        message = first_line(error)
        if "invalid UTF8 data" in message:
            return self._dialect.other_encoding(path)
        match = re.search(r"In CSV column #(\d+): (?:Row #(\d+): )?.*invalid value '(.*)'", message)
        if not match:
            return unreadable(path, error)
        name = self._headers[self._files.index(path)].names[int(match[1])]
        line = f" in line {match[2]}" if match[2] else ""
        return ValueError(f"Column {name!r} holds {match[3]!r}{line} of {path}; it is no number.")


def _runs(groups: Sequence[int], size: int) -> Iterator[list[int]]:
    """Numbers of neighbouring groups with at most `size` rows together, or of one group."""
    run: list[int] = []
    rows = 0
    for i, count in enumerate(groups):
        if run and rows + count > size:
            yield run
            run, rows = [], 0
        run.append(i)
        rows += count
    if run:
        yield run
