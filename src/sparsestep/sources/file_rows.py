"""Rows of Arrow and Parquet files; all headers are read before any row.

Groups of rows of Parquet files are decoded by the threads that use them; everything else pyarrow
reads in its own threads while ours compute the products of the rows before.
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache, partial
from itertools import chain, groupby, product
from operator import itemgetter
from typing import Any, TypeVar
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.csv
import pyarrow.dataset as ds
import pyarrow.fs
import pyarrow.parquet as pq

from sparsestep.sources.files import Found, unreadable
from sparsestep.sources.request import require_columns
from sparsestep.sources.rows import MOST_THREADS, Block, DatasetRows, Rows, packed, read_ahead

# Groups of rows of Parquet files up to so many blocks are decoded whole, larger ones in slices.
WHOLE_GROUP_BLOCKS = 4
# Columns of a local file decoded at a time: few, so that they stay in the cache and their memory is
# used again; enough to outweigh the opening of the file.
COLUMNS_AT_ONCE = 8

Header = TypeVar("Header")


def read_headers(found: Found, read: Callable[[str, Any], Header]) -> list[Header]:
    """The headers of all files, read side by side; an error names the file."""

    def header(path: str) -> Header:
        with _naming(path):
            return read(path, found.system)

    return list(read_ahead(header, found.files, MOST_THREADS))


@contextmanager
def _naming(path: str) -> Iterator[None]:
    """Name the file in an error of pyarrow."""
    try:
        yield
    except (pa.ArrowException, OSError) as error:
        raise unreadable(path, error) from error


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
        self._of_folders = {f.name: f for f in self._dataset.schema if f.name not in there}
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
            return [(self._of_folders[name], self.where)]
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

    def batches(self, size: int) -> Iterator[Any]:
        """All rows in order; an error names the file."""
        try:
            yield from super().batches(size)
        except pa.lib.ArrowCancelled:
            # pyarrow has a handler of its own for Ctrl-C.
            raise KeyboardInterrupt from None
        except (pa.ArrowException, OSError, UnicodeError) as error:
            raise self._blamed(error) from error

    def _blamed(self, error: Exception) -> ValueError:
        """The error with the name of its file, which pyarrow leaves out: found by reading again."""
        own = self._of_files(self._columns)
        form, schema = self._dataset.format, self._dataset.schema
        last = self._starts[-1][1]
        for path in self._files[self._files.index(last) if last else 0 :]:
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
    """Parquet files, read by groups of rows: in whole ones, or in slices of large ones.

    pyarrow.dataset reads several groups ahead when the products take longer than the reading, so
    its memory has no bound that we know.
    """

    def __init__(self, found: Found) -> None:
        def header(path: str, system: Any) -> tuple[Any, list[int]]:
            meta = pq.read_metadata(path, filesystem=system)
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

    def blocks(self, size: int) -> Iterator[Block]:
        """All rows in order; the thread that uses a block decodes its groups of rows.

        That keeps all cores busy at less cost than pyarrow's threads beside ours, but a group can
        only be decoded from its beginning, so larger ones would take too much memory.
        """
        if max(chain([0], *self._groups)) > WHOLE_GROUP_BLOCKS * size:
            yield from super().blocks(size)
            return
        for rows, groups in packed(self._numbered_groups(), size):
            yield Block(rows, partial(self._decoded, groups))

    def _numbered_groups(self) -> Iterator[tuple[int, Any]]:
        """The rows of each group of rows; its file and its number there."""
        first = 0
        for fragment, groups in zip(self._dataset.get_fragments(), self._groups, strict=True):
            self._reading(fragment.path, first)
            # Read once for all blocks of a file, by the first thread that needs it.
            footer = cache(partial(pq.read_metadata, fragment.path, filesystem=self._system))
            for number, rows in enumerate(groups):
                yield rows, ((fragment, footer), number)
            first += sum(groups)

    def _decoded(self, groups: Sequence[Any]) -> Iterator[Any]:
        """The columns chosen of some groups of rows, decoded in this thread."""
        files = [(file, [*own]) for file, own in groupby(groups, key=itemgetter(0))]
        # Files that are far away or small are opened once.
        step = COLUMNS_AT_ONCE if self._local and len(files) == 1 else len(self._columns)
        for j in range(0, len(self._columns), step):
            names = self._columns[j : j + step]
            tables = []
            for (fragment, footer), own in files:
                numbers = [number for _, number in own]
                with _naming(fragment.path), self._opened(fragment, footer()) as file:
                    table = file.read_row_groups(numbers, self._of_files(names), use_threads=False)
                    tables.append(self._typed(table, names, fragment))
            yield from pa.concat_tables(tables).columns

    def batches(self, size: int) -> Iterator[Any]:
        """All rows in order, decoded by pyarrow's threads when we ask for them."""
        first = 0
        for fragment in self._dataset.get_fragments():
            self._reading(fragment.path, first)
            with _naming(fragment.path), self._opened(fragment) as file:
                for batch in file.iter_batches(size, columns=self._of_files(self._columns)):
                    first += batch.num_rows
                    yield from self._typed(batch, self._columns, fragment).to_batches()

    def _opened(self, fragment: Any, footer: Any = None) -> Any:
        """A file to read; whole groups are read at once if it is far away."""
        return pq.ParquetFile(
            fragment.path,
            metadata=footer,
            filesystem=self._system,
            pre_buffer=footer is not None and not self._local,
            # Without a buffer each column of a whole group would be read at once.
            buffer_size=1 << (18 if self._local else 22),
        )

    def _typed(self, rows: Any, names: Sequence[str], fragment: Any) -> Any:
        """A table of the columns, those of the folders included, of the types chosen."""
        keys = ds.get_partition_keys(fragment.partition_expression)
        arrays = [
            pa.repeat(pa.scalar(keys.get(name), self._types[name]), rows.num_rows)
            if name in self._of_folders
            else rows.column(name).cast(self._types[name])
            for name in names
        ]
        return pa.table(arrays, names=list(names))
