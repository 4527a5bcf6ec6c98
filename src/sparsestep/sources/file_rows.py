"""Rows of Arrow and Parquet files; all headers are read before any row.

Groups of rows of local Parquet files are decoded by the threads that sum them; everything else
pyarrow reads in its own threads while ours compute the products of the rows before.
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import chain, product
from typing import Any, TypeVar
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.csv
import pyarrow.dataset as ds
import pyarrow.fs
import pyarrow.parquet as pq

from sparsestep.sources.files import Found, unreadable
from sparsestep.sources.request import require_columns
from sparsestep.sources.rows import Batches, Blocks, DatasetRows, Place, Rows

# pyarrow.dataset decodes a group of rows of a Parquet file as a whole; remote files with larger
# groups than this are read in slices, as all large local files are.
ROW_GROUP_BYTES = 128 << 20
# Groups of rows of local files up to this size are summed whole.
WHOLE_GROUP_BYTES = 64 << 20
# Headers read side by side.
MOST_THREADS = 8

Header = TypeVar("Header")


def read_headers(found: Found, read: Callable[[str, Any], Header]) -> list[Header]:
    """The headers of all files, read side by side; an error names the file."""

    def header(path: str) -> Header:
        try:
            return read(path, found.system)
        except (pa.ArrowException, OSError) as error:
            raise unreadable(path, error) from error

    with ThreadPoolExecutor(MOST_THREADS) as pool:
        return list(pool.map(header, found.files))


class Files(DatasetRows):
    """Files of one kind, and the columns of all of them and of their folders."""

    # Batches of text are a megabyte each; those of Arrow files are mapped.
    _read_ahead: Mapping[str, Any] = {"batch_readahead": 16, "fragment_readahead": 4}

    def __init__(self, found: Found, form: Any, schemas: list[Any]) -> None:
        files, self._system, self._base = found
        Rows.__init__(self, files[0] if self._base is None else self._base, schemas, files)
        if self._base is not None:
            self._require_own_folder_columns(self._base)
        # Given the columns, pyarrow does not read the first header again; of folders it must.
        self._dataset = self._make(form, schemas[0] if self._base is None else None)
        # Columns of the folders come last.
        there = set(self._names[0])
        self._of_folders = [n for n in self._dataset.schema.names if n not in there]
        self.names += self._of_folders

    def _require_own_folder_columns(self, base: str) -> None:
        """Raise if a file has a column of the name that a folder gives to one."""
        parts = (path[len(base) :].split("/")[:-1] for path in self._files)
        keys = {unquote(part.split("=")[0]) for inner in parts for part in inner if "=" in part}
        for path, names in zip(self._files, self._names, strict=True):
            for name in sorted(keys.intersection(names)):
                raise ValueError(
                    f"Column {name!r} is in {path}, and folders named {name}=... give another of "
                    "this name; rename one, or read the files by a pattern instead of the folder."
                )

    def _make(self, form: Any, schema: Any) -> Any:
        """The files as a dataset; folders named key=value give columns."""
        hive = {"partitioning": "hive", "partition_base_dir": self._base} if self._base else {}
        return ds.dataset(self._files, format=form, schema=schema, filesystem=self._system, **hive)

    # -- the columns -------------------------------------------------------------------------

    def _fields(self, name: str) -> list[tuple[Any, str]]:
        if name in self._of_folders:
            return [(self._dataset.schema.field(name), self.where)]
        return super()._fields(name)

    def select(
        self, names: Sequence[str], text: Collection[str] = (), as_is: Collection[str] = ()
    ) -> None:
        """Check that each file has the columns and find the types to read them as."""
        own, files = self._of_files(names), list(zip(self._files, self._names, strict=True))
        for path, there in files:
            known = set(there)
            missing = [name for name in own if name not in known]
            for name, (other, its) in product(missing, files):
                if name in its:
                    raise ValueError(
                        f"{path} has no column {name!r}, which {other} has; leave the column out, "
                        "or read the files apart."
                    )
            require_columns(own, there, path)
        super().select(names, text, as_is)
        self._dataset = self._make(self._format(), pa.schema(self._types))

    def _format(self) -> Any:
        """The format to read the columns chosen in."""
        return self._dataset.format

    def _of_files(self, names: Sequence[str]) -> list[str]:
        """The columns that the files have themselves, and not their folders."""
        return [name for name in names if name not in self._of_folders]

    # -- the rows ----------------------------------------------------------------------------

    def batches(self, size: int) -> Batches:
        """All rows in order; an error names the file."""
        name = self._files[0]
        try:
            for batch, place in self._batches(size):
                name = place.name
                yield batch, place
        except pa.lib.ArrowCancelled:
            # pyarrow has a handler of its own for Ctrl-C.
            raise KeyboardInterrupt from None
        except (pa.ArrowException, OSError, UnicodeError) as error:
            raise self._blamed(error, name) from error

    def _batches(self, size: int) -> Batches:
        """All rows in order, read by pyarrow.dataset."""
        return super().batches(size)

    def _blamed(self, error: Exception, name: str) -> ValueError:
        """The error with the name of its file, which pyarrow leaves out: found by reading again."""
        own = self._of_files(self._columns)
        form, schema = self._dataset.format, self._dataset.schema
        for path in self._files[self._files.index(name) :]:
            alone = ds.dataset([path], format=form, schema=schema, filesystem=self._system)
            try:
                for _ in alone.scanner(columns=own, batch_size=1 << 12).to_batches():
                    pass
            except (pa.ArrowException, OSError, UnicodeError) as found:
                return self._error_in(path, found)
        return unreadable(self.where, error)

    def _error_in(self, path: str, error: Exception) -> ValueError:
        """The error of a file."""
        return unreadable(path, error)


def arrow_files(found: Found) -> Files:
    """Arrow IPC files."""
    if found.local:
        # A batch in such a file can be as large as the file; mapped, it needs no memory.
        found = found._replace(system=pa.fs.LocalFileSystem(use_mmap=True))
    form = ds.IpcFileFormat()
    return Files(found, form, read_headers(found, form.inspect))


class ParquetFiles(Files):
    """Parquet files: large local ones are read by groups of rows, others by pyarrow.dataset."""

    def __init__(self, found: Found) -> None:
        def header(path: str, system: Any) -> tuple[Any, list[int]]:
            with system.open_input_file(path) as file:
                meta = pq.read_metadata(file)
            groups = [meta.row_group(i).num_rows for i in range(meta.num_row_groups)]
            return meta.schema.to_arrow_schema(), groups

        headers = read_headers(found, header)
        super().__init__(found, ds.ParquetFileFormat(), [schema for schema, _ in headers])
        self._local = found.local
        # Rows in each group of each file.
        self._groups = [groups for _, groups in headers]

    def count(self) -> int:
        """Number of rows."""
        return sum(map(sum, self._groups))

    def _batches(self, size: int) -> Batches:
        """All rows in order."""
        # One group of rows, and as many files as make a block or two. Local files are read as they
        # are decoded; remote ones in few, large requests.
        self._read_ahead = {
            "batch_readahead": 1,
            "fragment_readahead": min(max(2 * size // self._mean_rows(), 1), 16),
            "fragment_scan_options": ds.ParquetFragmentScanOptions(pre_buffer=not self._local),
        }
        return self._slices(size) if self._sliced(size) else super()._batches(size)

    def _sliced(self, size: int) -> bool:
        """Whether Parquet files are read a batch at a time instead of by pyarrow.dataset.

        That one reads several groups of rows ahead when the products take longer than the reading,
        so its memory has no bound that we know. It serves remote files, and many small ones.
        """
        large = self._local and self._mean_rows() >= size
        return large or self._group_bytes() > ROW_GROUP_BYTES

    def _group_bytes(self) -> int:
        """Bytes of the columns chosen in the largest group of rows."""
        return 8 * max(chain([0], *self._groups)) * len(self._columns)

    def _mean_rows(self) -> int:
        """Rows in a file, on average."""
        return max(self.count() // len(self._files), 1)

    def _slices(self, size: int) -> Batches:
        """Rows of Parquet files, decoded by pyarrow's threads when we ask for them."""
        own = self._of_files(self._columns)
        for fragment in self._dataset.get_fragments():
            first, keys = 0, ds.get_partition_keys(fragment.partition_expression)
            with fragment.open() as opened:
                # Without a buffer each column of a whole group would be read at once.
                buffer = 1 << (18 if self._local else 22)
                file = pq.ParquetFile(opened, pre_buffer=False, buffer_size=buffer)
                for batch in file.iter_batches(size, columns=own):
                    rows = len(batch)
                    arrays = [
                        pa.repeat(pa.scalar(keys.get(name), kind), rows)
                        if name in self._of_folders
                        else batch.column(name).cast(kind)
                        for name, kind in self._types.items()
                    ]
                    part = pa.RecordBatch.from_arrays(arrays, names=self._columns)
                    yield part, Place(fragment.path, first, rows)
                    first += rows

    def blocks(self, size: int) -> Blocks:
        """All rows in order; the thread that sums a group of rows of a Parquet file decodes it.

        That keeps all cores busy at less cost than pyarrow's threads beside ours, but a group can
        only be decoded from its beginning, so larger ones would take too much memory.
        """
        if self._local and self._sliced(size) and self._group_bytes() <= WHOLE_GROUP_BYTES:
            return self._in_groups(size)
        return super().blocks(size)

    def _in_groups(self, size: int) -> Blocks:
        """Groups of rows of Parquet files, small ones together."""
        for fragment, groups in zip(self._dataset.get_fragments(), self._groups, strict=True):
            fragment.ensure_complete_metadata()
            first = 0
            for run in _runs(groups, size):
                rows = sum(groups[i] for i in run)
                load = partial(self._decoded, fragment.subset(row_group_ids=run), rows)
                yield load, [Place(fragment.path, first, rows)]
                first += rows

    def _decoded(self, part: Any, rows: int, names: Sequence[str]) -> Any:
        """Some columns of some groups of rows of a file, decoded in this thread."""
        options = ds.ParquetFragmentScanOptions(
            pre_buffer=False, use_buffered_stream=True, buffer_size=1 << 16
        )
        try:
            return part.to_table(
                schema=self._dataset.schema,
                columns=list(names),
                batch_size=rows,
                use_threads=False,
                fragment_scan_options=options,
            )
        except (pa.ArrowException, OSError) as error:
            raise self._blamed(error, part.path) from error


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
