"""Files, Arrow streams and frames in memory: read in batches of rows, summed while more are read.

Three things keep the memory bounded whatever the number of rows: only the columns asked for are
read; batches hold a fixed number of bytes; and no more than a few of them exist at a time. Groups
of rows of local Parquet files are decoded by the threads that sum them; everything else pyarrow
reads in its own threads while ours compute the products of the rows before.
"""

import glob
import json
import os
import re
import threading
from collections import deque
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
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

from sparsestep.moments.moments import Moments
from sparsestep.sources.almost_numbers import AlmostNumbers, show_decimal_commas
from sparsestep.sources.blocks import (
    BLOCK_BYTES,
    Load,
    Pass,
    Place,
    block_moments,
    block_rows,
    is_text,
    loaded,
    pandas_fields,
    pandas_schema,
    read_type,
    require_categories,
)
from sparsestep.sources.checks import choose, comes_from, require_columns, require_distinct
from sparsestep.sources.csv_format import CsvFormat, is_wide, separator_in
from sparsestep.sources.merging import FoldSums, Parts, finish
from sparsestep.sources.one_hot import Batches, Rows, encoded, one_hot
from sparsestep.sources.progress import rows_read
from sparsestep.threads import one_blas_thread

__all__ = ["encoded_table", "local_files", "moments_of", "open_rows"]

# pyarrow.dataset decodes a group of rows of a Parquet file as a whole; files far away with larger
# ones than this are read in slices, as all large files at hand are.
ROW_GROUP_BYTES = 128 << 20
# Groups of rows of local files up to this size are summed whole.
WHOLE_GROUP_BYTES = 64 << 20
# Bytes and lines at the beginning of a CSV file that show its separator. pyarrow looks at as many
# bytes for the types of the columns.
HEAD_BYTES, HEAD_LINES = 1 << 20, 20
# Beyond this many threads the reading is slower than the products.
MOST_THREADS = 8

FORMATS = {
    ".parquet": "parquet",
    ".pq": "parquet",
    ".csv": "csv",
    ".tsv": "tsv",
    ".arrow": "ipc",
    ".ipc": "ipc",
    ".feather": "ipc",
}
COMPRESSED = (".gz", ".bz2", ".zst", ".lz4")
ENDINGS = f"{', '.join(FORMATS)}, or, after .csv or .tsv, {', '.join(COMPRESSED)}"

# Texts that mean that a value is missing: in a column that is used, and in one carried along.
_MISSING, _EMPTY = (pa.array(t) for t in (pa.csv.ConvertOptions().null_values, [""]))
_NAN = pa.array(["nan", "-nan"])

# What gives the columns of some rows, and where these come from.
Blocks = Iterator[tuple[Load, list[Place]]]


def moments_of(
    source: Any,
    target: str,
    *,
    features: Sequence[str] | None,
    weight: str | None,
    folds: int | None,
    seed: int,
    progress: bool | float,
    drop_missing: bool,
    categories: Mapping[str, Sequence[str]] | None = None,
    csv: CsvFormat | None = None,
) -> Moments | list[Moments]:
    """Moments of anything that Arrow can read, as `read_moments` returns them."""
    rows: Rows = open_rows(source, csv)
    columns = choose(rows.names, target, features, weight, rows.where, rows.index)
    if categories:
        columns, rows = one_hot(columns, rows, categories)
    rows.select(columns.all)
    size = block_rows(columns, BLOCK_BYTES)
    this = Pass(columns, folds, seed, part=0, drop_missing=drop_missing)
    sums = FoldSums(1 if folds is None else folds)
    threads = min(pa.cpu_count(), MOST_THREADS)
    memory = threading.local()
    running: deque[tuple[int, Future[Parts]]] = deque()
    with (
        rows_read(progress, None if progress is False else rows.count()) as advance,
        # The batches keep all cores busy by themselves.
        one_blas_thread(),
        ThreadPoolExecutor(threads) as pool,
    ):
        try:
            for load, places in _blocks(rows, size):
                block = this.block(load, places)
                job = pool.submit(block_moments, block, columns, folds, memory)
                running.append((sum(place.rows for place in places), job))
                del load, block, job
                while len(running) > threads:
                    _next(running, sums, advance)
            while running:
                _next(running, sums, advance)
        finally:
            for _, job in running:
                job.cancel()
    return finish(sums.result(), this.counts, rows.where, folds=folds)


def _next(running: deque[tuple[int, Future[Parts]]], sums: FoldSums, advance: Any) -> None:
    """Wait for the oldest block: sums in the order of the rows do not depend on the threads."""
    rows, job = running.popleft()
    sums.add(job.result())
    advance(rows)


def _blocks(rows: Rows, size: int) -> Blocks:
    """All rows in order, decoded by whoever sums them if that is possible."""
    if isinstance(rows, _Files) and rows.in_whole_groups(size):
        return rows.groups(size)
    return _gathered(rows.batches(size), size)


def _gathered(batches: Batches, size: int) -> Blocks:
    """Batches put together, as tables of at most `size` rows, and where their rows come from."""
    waiting: list[Any] = []
    places: list[Place] = []
    have = 0
    for batch, name, first in batches:
        for start in range(0, batch.num_rows, size):
            part = batch.slice(start, size)
            if have + part.num_rows > size:
                yield loaded(pa.Table.from_batches(waiting)), places
                waiting, places, have = [], [], 0
            waiting.append(part)
            places.append(Place(name, first + start, part.num_rows))
            have += part.num_rows
    if waiting:
        yield loaded(pa.Table.from_batches(waiting)), places


# -- what can be read ------------------------------------------------------------------------


def open_rows(source: Any, csv: CsvFormat | None = None) -> "_Files | _Dataset | _Stream | _Pandas":
    """The source behind the argument of `read_moments`."""
    if isinstance(source, str | os.PathLike):
        return _Files(*_find([source]), csv)
    if isinstance(source, ds.Dataset):
        return _Dataset(source)
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
            return _Files(*_find(paths), csv)
    raise TypeError(
        "The source must be a path, a list of paths, a pyarrow Dataset, or a frame of pandas, "
        f"polars, pyarrow, Dask or Spark, not {type(source).__name__}."
    )


class _Stream:
    """A table or stream of batches of any library that speaks Arrow; read once."""

    where = "the table"
    csv: CsvFormat | None = None

    def __init__(self, source: Any) -> None:
        self._rows = getattr(source, "num_rows", None)
        reader = isinstance(source, pa.RecordBatchReader)
        self._reader = source if reader else pa.RecordBatchReader.from_stream(source)
        self.names = self._reader.schema.names
        self.index = _index(self._reader.schema)

    def select(
        self, names: Sequence[str], text: Collection[str] = (), as_is: Collection[str] = ()
    ) -> None:
        """Check the types of the columns."""
        self._columns = list(names)
        _check_types(self._reader.schema, names, text, as_is)

    def text_among(self, names: Sequence[str]) -> list[str]:
        """Those of the columns that hold text."""
        return [name for name in names if is_text(self._reader.schema.field(name).type)]

    def count(self) -> int | None:
        """Number of rows, if known."""
        return self._rows

    def batches(self, size: int) -> Batches:
        """All rows in order."""
        first = 0
        for batch in self._reader:
            yield batch.select(self._columns), "", first
            first += batch.num_rows


class _Pandas:
    """A pandas frame, turned into Arrow a slice at a time."""

    where = "the frame"
    index: Collection[str] = ()
    csv: CsvFormat | None = None

    def __init__(self, frame: Any) -> None:
        self._frame = frame
        self.names = list(frame.columns)

    def select(
        self, names: Sequence[str], text: Collection[str] = (), as_is: Collection[str] = ()
    ) -> None:
        """Check the types of the columns."""
        self._frame = self._frame[list(names)]
        self._schema = pandas_schema(self._frame, text, as_is)

    def text_among(self, names: Sequence[str]) -> list[str]:
        """Those of the columns that hold text."""
        # Without the values, text in columns of objects would not be found.
        fields = pandas_fields(self._frame[list(names)])
        return [field.name for field in fields if is_text(field.type)]

    def count(self) -> int:
        """Number of rows."""
        return len(self._frame)

    def batches(self, size: int) -> Batches:
        """All rows in order."""
        for first in range(0, len(self._frame), size):
            part = self._frame.iloc[first : first + size]
            yield pa.RecordBatch.from_pandas(part, self._schema, preserve_index=False), "", first


class _Dataset:
    """A pyarrow Dataset, read as it is."""

    csv: CsvFormat | None = None

    def __init__(self, dataset: Any, where: str = "the dataset") -> None:
        self._dataset = dataset
        self.where = where
        self.names = dataset.schema.names
        self.index = _index(dataset.schema)

    def select(
        self, names: Sequence[str], text: Collection[str] = (), as_is: Collection[str] = ()
    ) -> None:
        """Check the types of the columns."""
        self._columns = list(names)
        _check_types(self._dataset.schema, names, text, as_is)

    def text_among(self, names: Sequence[str]) -> list[str]:
        """Those of the columns that hold text."""
        return [name for name in names if is_text(self._dataset.schema.field(name).type)]

    def count(self) -> int | None:
        """Number of rows, if it costs no pass."""
        kind = getattr(self._dataset, "format", None)
        if isinstance(kind, ds.CsvFileFormat):
            return None
        return int(self._dataset.count_rows())

    def batches(self, size: int) -> Batches:
        """All rows in order, read ahead by pyarrow."""
        scanner = self._dataset.scanner(
            columns=self._columns,
            batch_size=size,
            **self._ahead(size),
            # Kept, the footers of many files would fill the memory.
            cache_metadata=False,
            fragment_scan_options=self._options(),
        )
        name, first = "", 0
        for tagged in scanner.scan_batches():
            path = getattr(tagged.fragment, "path", "")
            if path != name:
                name, first = path, 0
            yield tagged.record_batch, name, first
            first += tagged.record_batch.num_rows

    def _ahead(self, size: int) -> dict[str, int]:
        """How far pyarrow reads ahead of us, where nothing is known of the files."""
        return {"batch_readahead": 2, "fragment_readahead": 2}

    def _options(self) -> Any:
        """How Parquet is read, where nothing is known of where the files are."""
        return None


def _index(schema: Any) -> list[str]:
    """The columns in which pandas wrote the index of a frame, by what it says of it."""
    said = (schema.metadata or {}).get(b"pandas")
    if said is None:
        return []
    # A range has no column.
    return [name for name in json.loads(said)["index_columns"] if isinstance(name, str)]


def _check_types(
    schema: Any, names: Sequence[str], text: Collection[str], as_is: Collection[str]
) -> None:
    """Raise unless columns hold numbers, those of `text` text, and those of `as_is` anything."""
    for name in names:
        if name in text:
            require_categories(schema.field(name), "")
        elif name not in as_is:
            read_type(schema.field(name), "")


# -- files -----------------------------------------------------------------------------------


def _find(paths: Sequence[Any]) -> tuple[list[str], Any, str | None]:
    """Files behind paths, globs and folders; their file system; the folder, if it is one."""
    files: list[str] = []
    systems: list[Any] = []
    base = None
    for path in map(os.fspath, paths):
        if "://" in path:
            system, inner = pa.fs.FileSystem.from_uri(path)
            matches = [inner]
        else:
            system = pa.fs.LocalFileSystem()
            matches = [path]
            if not os.path.exists(path) and glob.has_magic(path):
                matches = sorted(glob.glob(path, recursive=True))
                if not matches:
                    raise FileNotFoundError(f"No file matches {path}.")
        systems.append(system)
        for match in matches:
            info = _info(system, match, match)
            if info.type == pa.fs.FileType.NotFound:
                raise FileNotFoundError(f"There is no file or folder {match}.")
            if info.type == pa.fs.FileType.Directory:
                files += _in_folder(match, system)
                base = match if len(paths) == len(matches) == 1 else None
            else:
                files.append(match)
    if not all(system.equals(systems[0]) for system in systems):
        raise ValueError("All files of one source must be on the same file system.")
    if isinstance(systems[0], pa.fs.LocalFileSystem):
        require_distinct(files)
    return files, systems[0], base


def local_files(paths: Sequence[str]) -> list[str]:
    """The files on this machine behind paths, globs and folders."""
    near = [path for path in paths if "://" not in path or path.startswith("file://")]
    return _find(near)[0] if near else []


def _info(system: Any, wanted: Any, path: str) -> Any:
    """What a file system knows of a file, or of all below a folder; an error names the path."""
    try:
        return system.get_file_info(wanted)
    except UnicodeEncodeError as error:
        raise ValueError(f"The name of {path} is not in UTF-8; rename it.") from error
    except OSError as error:
        if error.errno is None:
            raise
        raise OSError(error.errno, os.strerror(error.errno), path) from error


def _in_folder(folder: str, system: Any) -> list[str]:
    """Data files below a folder, sorted; names that begin with a dot or underscore are hidden."""
    below = _info(system, pa.fs.FileSelector(folder, recursive=True), folder)
    try:
        paths = [info.path for info in below if info.type == pa.fs.FileType.File]
    except UnicodeDecodeError as error:
        raise ValueError(
            f"The folder {folder} holds a file whose name is not in UTF-8; rename it."
        ) from error
    files = []
    for path in paths:
        inner = path[len(folder) :].strip("/").split("/")
        if not any(part.startswith((".", "_")) for part in inner) and _format(path):
            files.append(path)
    if not files:
        raise FileNotFoundError(f"The folder {folder} has no file that ends in {ENDINGS}.")
    return sorted(files)


def _format(path: str) -> str | None:
    """The kind of a file, by its name."""
    stem, ending = os.path.splitext(path.lower())
    if ending in COMPRESSED:
        ending = os.path.splitext(stem)[1]
        return FORMATS.get(ending) if ending in (".csv", ".tsv") else None
    return FORMATS.get(ending)


class _Files(_Dataset):
    """Files of one kind. All their headers are read before any row."""

    def __init__(
        self, files: list[str], system: Any, base: str | None, csv: CsvFormat | None
    ) -> None:
        kinds = {path: _format(path) for path in files}
        for path, kind in kinds.items():
            if kind is None:
                raise ValueError(
                    f"{path} does not end in {ENDINGS}, as tables do; moments end in .npz."
                )
            if kind != kinds[files[0]]:
                raise ValueError(f"{files[0]} and {path} are of different kinds; read them apart.")
        self._kind = str(kinds[files[0]])
        self._lines = self._kind in ("csv", "tsv")
        self._local = isinstance(system, pa.fs.LocalFileSystem)
        if self._kind == "ipc" and self._local:
            # A batch in such a file can be as large as the file; mapped, it needs no memory.
            system = pa.fs.LocalFileSystem(use_mmap=True)
        self._files, self._system, self._base = files, system, base
        if csv not in (None, CsvFormat()) and not self._lines:
            raise ValueError(
                f"Separator, decimal mark and encoding are for CSV files; {files[0]} is none."
            )
        self._csv = csv or CsvFormat()
        self._empty_lines = False
        # What is missing in columns of texts that were read raw.
        self._missing: dict[str, Any] = {}
        with ThreadPoolExecutor(MOST_THREADS) as pool:
            if self._lines:
                self._find_separator(pool)
            self._headers = list(pool.map(self._header, files))
            if self._lines:
                self._find_empty_lines(pool)
                self._find_decimal(pool)
                self.csv = self._csv
        if base is not None:
            self._require_own_folder_columns(base)
        # pyarrow would read the first header once more, if not to find the columns of folders.
        known = self._headers[0].schema if base is None else None
        dataset = self._make(self._plain_format(), known)
        super().__init__(dataset, files[0] if base is None else base)
        first = self._headers[0].names
        self._in_folder_names = set(self.names).difference(first)
        # Also columns that only some files have, so that nothing is passed over in silence. Those
        # of the folders come after those of the files.
        later = self._later_names()
        folders = [name for name in self.names if name in self._in_folder_names]
        self.names = [*first, *later, *folders]
        if later:
            indexes = (_index(header.schema) for header in self._headers)
            self.index = list(dict.fromkeys(chain.from_iterable(indexes)))

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

    def _later_names(self) -> list[str]:
        """Columns of other files that the first does not have."""
        first = self._headers[0].names
        known = set(first)
        others = (header.names for header in self._headers if header.names != first)
        return [name for name in dict.fromkeys(chain(*others)) if name not in known]

    def _make(self, form: Any, schema: Any) -> Any:
        """The files as a dataset; folders named key=value give columns."""
        hive = {} if self._base is None else {"partition_base_dir": self._base}
        return ds.dataset(
            self._files,
            format=form,
            schema=schema,
            filesystem=self._system,
            partitioning=None if self._base is None else "hive",
            **hive,
        )

    def _plain_format(self, types: dict[str, Any] | None = None, raw: bool = False) -> Any:
        """How files of this kind are read; raw texts are never missing."""
        if self._kind == "parquet":
            return ds.ParquetFileFormat()
        if self._kind == "ipc":
            return ds.IpcFileFormat()
        return ds.CsvFileFormat(
            parse_options=pa.csv.ParseOptions(
                delimiter=self._csv.separator,
                # Without this, a line that ends within quotes must not be at the end of a block.
                newlines_in_values=True,
                ignore_empty_lines=not self._empty_lines,
            ),
            # An empty field is a missing value, whatever the type of its column.
            convert_options=pa.csv.ConvertOptions(
                column_types=types,
                strings_can_be_null=not raw,
                decimal_point=self._csv.decimal or ".",
            ),
            read_options=pa.csv.ReadOptions(encoding=self._csv.encoding),
        )

    def _find_separator(self, pool: ThreadPoolExecutor) -> None:
        """What separates the fields of CSV files, if that was not said."""
        separator = self._csv.separator or ("\t" if self._kind == "tsv" else None)
        marks = list(pool.map(self._separator, self._files))
        if separator is None:
            shown: dict[str, str] = {}
            for path, mark in zip(self._files, marks, strict=True):
                if mark is not None:
                    shown.setdefault(mark, path)
            if len(shown) > 1:
                (one, first), (other, second) = list(shown.items())[:2]
                raise ValueError(
                    f"{first} seems to be separated by {one!r} and {second} by {other!r}; give the "
                    "separator, or read them apart."
                )
            separator = next(iter(shown), ",")
        self._csv = replace(self._csv, separator=separator)

    def _separator(self, path: str) -> str | None:
        """The separator that the beginning of a CSV file shows."""
        try:
            with self._system.open_input_stream(path) as file:
                head = file.read(HEAD_BYTES)
        except (pa.ArrowException, OSError) as error:
            raise ValueError(f"{path} cannot be read: {_first_line(error)}") from error
        if is_wide(head, self._csv.encoding):
            raise ValueError(self._other_encoding(path, "utf-16"))
        lines = head.decode(self._csv.encoding, errors="replace").splitlines(keepends=True)
        # The last line may be cut off.
        return separator_in("".join(lines[: min(HEAD_LINES, max(len(lines) - 1, 1))]))

    def _find_empty_lines(self, pool: ThreadPoolExecutor) -> None:
        """Take empty lines for rows with a missing value, where there is a single column."""
        if any(len(header.names) != 1 for header in self._headers):
            return
        self._empty_lines = True
        headers = list(pool.map(self._header, self._files))
        # An empty line before the name would be the name.
        if all(a.names == b.names for a, b in zip(headers, self._headers, strict=True)):
            self._headers = headers
        else:
            self._empty_lines = False

    def _find_decimal(self, pool: ThreadPoolExecutor) -> None:
        """Read decimal commas, unless told otherwise, if columns of text become numbers by that."""
        text = self._columns_of_text(self._headers)
        if self._csv.decimal is not None or self._csv.separator == "," or not text:
            return
        given = self._csv
        self._csv = replace(given, decimal=",")
        headers = list(pool.map(self._header, self._files))
        still = self._columns_of_text(headers)
        # A column that is text only by the comma holds numbers with a point.
        if still < text and any(
            show_decimal_commas(self._first_texts(path, name)) for path, name in text - still
        ):
            self._headers = headers
        else:
            self._csv = given

    def _columns_of_text(self, headers: Sequence["_Header"]) -> set[tuple[str, str]]:
        """Files and names of their columns of text."""
        return {
            (path, field.name)
            for path, header in zip(self._files, headers, strict=True)
            for field in header.schema
            if is_text(field.type)
        }

    def _header(self, path: str) -> "_Header":
        """What a file says of itself before its rows."""
        try:
            if self._kind == "parquet":
                with self._system.open_input_file(path) as file:
                    meta = pq.read_metadata(file)
                groups = tuple(meta.row_group(i).num_rows for i in range(meta.num_row_groups))
                return _Header(meta.schema.to_arrow_schema(), meta.num_rows, groups)
            return _Header(self._plain_format().inspect(path, self._system), None, ())
        except UnicodeError as error:
            raise ValueError(self._other_encoding(path)) from error
        except (pa.ArrowException, OSError) as error:
            raise ValueError(f"{path} cannot be read: {_first_line(error)}") from error

    def _other_encoding(self, path: str, such_as: str = "cp1252") -> str:
        """What is wrong with a file whose bytes are no text in its encoding."""
        return f"{path} is not in {self._csv.encoding}; give its encoding, such as {such_as}."

    def select(
        self, names: Sequence[str], text: Collection[str] = (), as_is: Collection[str] = ()
    ) -> None:
        """Check that each file has the columns and find the types to read them as."""
        self._columns = list(names)
        own = [name for name in names if name not in self._in_folder_names]
        for path, header in zip(self._files, self._headers, strict=True):
            self._require_columns(own, header, path)
        fields = []
        for name in names:
            if name in self._in_folder_names:
                types = {self._type(self._dataset.schema.field(name), self.where, text, as_is)}
            else:
                types = {
                    self._type(header.schema.field(name), path, text, as_is)
                    for path, header in zip(self._files, self._headers, strict=True)
                }
            if len(types) > 1 and name in as_is:
                raise TypeError(
                    f"Column {name!r} has another type in some of the files, such as "
                    f"{' and '.join(sorted(map(str, types)))}; read them apart."
                )
            fields.append(pa.field(name, types.pop() if len(types) == 1 else pa.float64()))
        # Texts that are carried along mean nothing, not even that they are missing.
        raw = self._lines and any(name in as_is for name in own)
        self._missing = {name: _MISSING for name in own if raw and name in text}
        self._missing |= {name: _EMPTY for name in own if raw and name in as_is}
        # Numbers that are categories are read as texts, and NaN is no category.
        self._missing |= {
            name: _NAN
            for name in own
            if name in text
            and not self._lines
            and any(
                pa.types.is_floating(header.schema.field(name).type) for header in self._headers
            )
        }
        form = self._plain_format({field.name: field.type for field in fields}, raw)
        self._dataset = self._make(form, pa.schema(fields))

    def _require_columns(self, wanted: Sequence[str], header: "_Header", path: str) -> None:
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

    def _type(self, field: Any, where: str, text: Collection[str], as_is: Collection[str]) -> Any:
        """The type to read a column of a file as."""
        lines = self._lines and field.name not in self._in_folder_names
        if lines and (field.name in text or field.name in as_is):
            # What looks like a number may be a category, or a name with zeros before it.
            return pa.string()
        if field.name in text:
            require_categories(field, where)
            return pa.string()
        if field.name in as_is:
            # Each file has a dictionary of its own.
            return field.type.value_type if pa.types.is_dictionary(field.type) else field.type
        if lines and pa.types.is_binary(field.type):
            raise ValueError(self._other_encoding(where))
        if lines and is_text(field.type):
            self._check_almost_numbers(field.name, where)
        kind = read_type(field, where)
        # A text file shows only its first rows, in which fractions may look like integers.
        return pa.float64() if lines and kind != pa.bool_() else kind

    def text_among(self, names: Sequence[str]) -> list[str]:
        """Those of the columns that hold text in one of the files."""
        text = {field.name for field in self._dataset.schema if is_text(field.type)}
        for header in self._headers[1:]:
            text.update(field.name for field in header.schema if is_text(field.type))
        return [name for name in names if name in text]

    def _check_almost_numbers(self, name: str, path: str) -> None:
        """Name the value by which a column of a CSV file is text, if most of them are numbers.

        It is in the first batch, from which pyarrow takes the types of the columns.
        """
        texts = self._first_texts(path, name)
        numbers = AlmostNumbers(self._csv)
        numbers.add(texts, pc.value_counts(texts.drop_null()), path, 0)
        numbers.check(name, path)

    def _first_texts(self, path: str, name: str) -> Any:
        """A column of the first batch of a CSV file, as text."""
        form = self._plain_format({name: pa.string()})
        alone = ds.dataset([path], format=form, filesystem=self._system)
        # A row takes a byte at least, so that no batch is cut in two.
        batch = next(alone.scanner(columns=[name], batch_size=HEAD_BYTES).to_batches())
        return batch.column(0)

    def count(self) -> int | None:
        """Number of rows, if the headers tell."""
        if self._kind == "ipc":
            return int(self._dataset.count_rows())
        counts = [header.rows for header in self._headers]
        return None if None in counts else sum(rows for rows in counts if rows is not None)

    def batches(self, size: int) -> Batches:
        """All rows in order."""
        batches = self._slices(size) if self._sliced(size) else super().batches(size)
        name = self._files[0]
        try:
            for batch, name, first in batches:
                yield self._with_missing(batch), name, first
        except pa.lib.ArrowCancelled:
            # pyarrow has a handler of its own for Ctrl-C.
            raise KeyboardInterrupt from None
        except UnicodeError as error:
            raise ValueError(self._other_encoding(name)) from error
        except (pa.ArrowException, OSError) as error:
            raise self._blamed(error, name) from error

    def _with_missing(self, batch: Any) -> Any:
        """The batch with null for those texts that mean it."""
        for name, texts in self._missing.items():
            j = batch.schema.get_field_index(name)
            column = batch.column(j)
            found = pc.if_else(pc.is_in(column, texts), pa.scalar(None, pa.string()), column)
            batch = batch.set_column(j, name, found)
        return batch

    def _sliced(self, size: int) -> bool:
        """Whether Parquet files are read a batch at a time instead of by pyarrow.dataset.

        It reads ahead by groups of rows, several of them when the products take longer than the
        reading, so its memory is bounded by nothing we know. What it is for: files that are far
        away, or many and small.
        """
        if self._kind != "parquet":
            return False
        large = self._local and self._mean_rows() >= size
        return large or 8 * self._group_rows() * len(self._columns) > ROW_GROUP_BYTES

    def _group_rows(self) -> int:
        """Rows of the largest group of rows in a Parquet file."""
        return max(max(header.groups, default=0) for header in self._headers)

    def _mean_rows(self) -> int:
        """Rows in a Parquet file, on average."""
        rows = [header.rows for header in self._headers if header.rows is not None]
        return max(sum(rows) // len(rows), 1)

    def _ahead(self, size: int) -> dict[str, int]:
        """One group of rows, and as many files as make a block or two."""
        if self._kind != "parquet":
            # Batches of text are a megabyte each; those of Arrow files are mapped.
            return {"batch_readahead": 16, "fragment_readahead": 4}
        files = min(max(2 * size // self._mean_rows(), 1), 16)
        return {"batch_readahead": 1, "fragment_readahead": files}

    def _options(self) -> Any:
        """Local files are read as they are decoded; far ones in few, large requests."""
        if self._kind != "parquet":
            return None
        return ds.ParquetFragmentScanOptions(pre_buffer=not self._local)

    def _slices(self, size: int) -> Batches:
        """Rows of Parquet files, decoded by pyarrow's threads when we ask for them."""
        own = [name for name in self._columns if name not in self._in_folder_names]
        for fragment in self._dataset.get_fragments():
            first = 0
            with fragment.open() as opened:
                # Without a buffer each column of a whole group would be read at once.
                buffer = 1 << (18 if self._local else 22)
                file = pq.ParquetFile(opened, pre_buffer=False, buffer_size=buffer)
                for batch in file.iter_batches(size, columns=own):
                    arrays = self._completed(batch, fragment, self._columns, len(batch))
                    part = pa.RecordBatch.from_arrays(arrays, names=self._columns)
                    yield part, fragment.path, first
                    first += part.num_rows

    def in_whole_groups(self, size: int) -> bool:
        """Whether each group of rows of Parquet files is decoded by the thread that sums it.

        That keeps all cores busy at less cost than pyarrow's threads beside ours, but a group can
        only be decoded from its beginning, so larger ones would take too much memory.
        """
        group = 8 * self._group_rows() * len(self._columns)
        return self._local and self._sliced(size) and group <= WHOLE_GROUP_BYTES

    def groups(self, size: int) -> Blocks:
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
        own = [name for name in names if name not in self._in_folder_names]
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
        fields = [self._dataset.schema.field(name) for name in names]
        return [
            pa.repeat(pa.scalar(keys.get(field.name), field.type), rows)
            if field.name in self._in_folder_names
            else part.column(field.name).cast(field.type)
            for field in fields
        ]

    def _blamed(self, error: Exception, name: str) -> ValueError:
        """The error with the name of its file, which pyarrow leaves out: found by reading on."""
        for path in self._files[self._files.index(name) :]:
            alone = ds.dataset(
                [path],
                format=self._dataset.format,
                schema=self._dataset.schema,
                filesystem=self._system,
            )
            own = [column for column in self._columns if column not in self._in_folder_names]
            try:
                for _ in alone.scanner(columns=own, batch_size=1 << 12).to_batches():
                    pass
            except (pa.ArrowException, OSError) as found:
                return ValueError(self._sentence(path, _first_line(found)))
        return ValueError(f"{self.where} cannot be read: {_first_line(error)}")

    def _sentence(self, path: str, message: str) -> str:
        """What went wrong in a file."""
        if "invalid UTF8 data" in message:
            return self._other_encoding(path)
        match = re.search(r"In CSV column #(\d+): (?:Row #(\d+): )?.*invalid value '(.*)'", message)
        if not match:
            return f"{path} cannot be read: {message}"
        names = self._headers[self._files.index(path)].names
        line = f" in line {match[2]}" if match[2] else ""
        return (
            f"Column {names[int(match[1])]!r} holds {match[3]!r}{line} of {path}; it is no number."
        )


class _Header:
    """Types, number of rows if known, and rows of each group of a Parquet file."""

    def __init__(self, schema: Any, rows: int | None, groups: tuple[int, ...]) -> None:
        self.schema, self.rows, self.groups = schema, rows, groups
        # pyarrow decodes all names whenever they are asked for.
        self.names: list[str] = schema.names


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


def _first_line(error: Exception) -> str:
    """The message of an error of pyarrow, without the path and the stack around it."""
    line = next(chain(str(error).splitlines(), [type(error).__name__]))
    line = re.sub(r"^Could not open \w+ input source '.*?': (Invalid: )?", "", line)
    if "straddling object" in line:
        return "a row takes more than a megabyte; shorten its texts, or close a quote that is open."
    return line.rstrip(".") + "."


def encoded_table(
    frame: Any, one_hot: Mapping[str, tuple[Sequence[str], Sequence[str]]], features: Sequence[str]
) -> Any:
    """An Arrow table of a model's features, from a frame that holds texts instead of indicators."""
    rows = open_rows(frame)
    column_of = {name: column for column, (_, own) in one_hot.items() for name in own}
    needed = list(dict.fromkeys(column_of.get(name, name) for name in features))
    require_columns(needed, rows.names, rows.where)
    rows.select(needed, text=one_hot)
    batches = []
    for batch, name, first in rows.batches(max(BLOCK_BYTES // (8 * len(features)), 1)):
        arrays = dict(zip(batch.schema.names, batch.columns, strict=True))
        for column, (categories, own) in one_hot.items():
            indicators = encoded(arrays[column], column, categories, name, first)
            arrays.update(zip(own, indicators.values(), strict=True))
        ordered = [arrays[feature] for feature in features]
        batches.append(pa.RecordBatch.from_arrays(ordered, names=list(features)))
    return pa.Table.from_batches(batches)
