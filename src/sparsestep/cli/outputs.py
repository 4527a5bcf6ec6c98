"""Output on the screen and into files.

On the screen: tables for people, JSON for programs, progress of long work. Files are checked before
anything is read, so that no long work is lost; tables are written block by block, complete or not
at all.
"""

import json
import os
import sys
import threading
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cyclopts import Parameter
from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

from sparsestep.errors import InputError
from sparsestep.whole_file import whole_file
from sparsestep.words import printable

# Seconds after which progress is shown.
PATIENCE = 2.0
_TABLE = (".parquet", ".csv", ".arrow")
# The kinds of results, and the endings of their files.
ENDINGS = {
    "model": (".json",),
    "report": (".html", ".htm"),
    "moments": (".npz",),
    "picture": (".svg", ".png", ".pdf"),
    "path": _TABLE,
    "predictions": _TABLE,
}


@Parameter(name="*")
@dataclass(frozen=True)
class Screen:
    """What is printed on standard output and standard error."""

    json: bool = False
    "Print JSON for a program to read, and nothing else."

    quiet: bool = False
    "Print nothing but errors."

    @property
    def _silent(self) -> bool:
        """Whether nothing is printed for people."""
        return self.quiet or self.json

    @property
    def shows_progress(self) -> bool:
        """Whether somebody watches standard error."""
        return not self._silent and sys.stderr.isatty()

    def print_json(self, value: dict[str, Any]) -> None:
        """Print a value, paths as texts, if JSON was asked for."""
        if self.json:
            print(
                json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False, default=os.fspath)
            )

    def say(self, text: str = "", style: str = "", stderr: bool = False) -> None:
        """Print a line."""
        if not self._silent:
            console = Console(stderr=stderr, highlight=False, markup=False, emoji=False)
            console.print(Text(printable(text)), style=style, soft_wrap=True)

    def warn(self, *notes: str) -> None:
        """Print notes on standard error."""
        for text in notes:
            self.say(f"Note: {text}", "yellow", stderr=True)

    def wrote(self, **files: Path | None) -> None:
        """Print what was written and where."""
        for what, file in files.items():
            if file is not None:
                self.say(f"{what.capitalize()}: {file}")

    def table(
        self, headings: Sequence[str], rows: Sequence[Sequence[str]], texts: Collection[int] = (0,)
    ) -> None:
        """Print a table; the columns whose numbers are in `texts` begin at the left."""
        cells = [[printable(cell) for cell in row] for row in (headings, *rows)]
        widths = [max(map(cell_len, column)) for column in zip(*cells, strict=True)]
        for number, row in enumerate(cells):
            line = []
            for i, (cell, width) in enumerate(zip(row, widths, strict=True)):
                room = " " * (width - cell_len(cell))
                line.append(cell + room if i in texts else room + cell)
            self.say("  ".join(line).rstrip(), style="" if number else "bold")

    def facts(self, facts: dict[str, str]) -> None:
        """Print names and values, one on each line."""
        width = max(map(cell_len, facts))
        for name, value in facts.items():
            self.say(f"{name}{' ' * (width - cell_len(name))}  {value}")

    @contextmanager
    def waiting(self, what: str) -> Iterator[None]:
        """Show a status line while something takes longer than `PATIENCE`."""
        if not self.shows_progress:
            yield
            return
        status = Console(stderr=True).status(what)
        timer = threading.Timer(PATIENCE, status.start)
        timer.daemon = True
        timer.start()
        try:
            yield
        finally:
            timer.cancel()
            timer.join()
            status.stop()


def check_outputs(outputs: Iterable[tuple[str, Path | None]], inputs: Sequence[str] = ()) -> None:
    """Raise unless all results can be written: their kinds and, if asked for, their files."""
    seen: list[str] = []
    for what, path in outputs:
        if path is None:
            continue
        _check(path, what)
        if path.exists():
            for other in _files(inputs):
                if path.samefile(other):
                    raise InputError(
                        f"The {what} would overwrite {other}, which is read; give it another name."
                    )
        file = os.path.realpath(path)
        if file in seen:
            raise InputError(f"{path} is given for two results; give them different names.")
        seen.append(file)


def _files(inputs: Sequence[str]) -> Iterable[str]:
    """The existing files on this machine behind paths, globs and folders."""
    for path in inputs:
        if os.path.isfile(path):
            yield path
        elif "://" not in path or path.startswith("file://"):
            from sparsestep.sources.files import find_files

            # The reader reports a missing file.
            with suppress(OSError, ValueError):
                yield from find_files([path]).files


def _check(path: Path, what: str) -> None:
    """Raise unless a file of this name can be written."""
    if path.is_dir():
        raise InputError(f"{path} is a folder; give the name of a file for the {what}.")
    if path.exists() and not path.is_file():
        raise InputError(f"{path} is no ordinary file; give another name for the {what}.")
    *others, last = ENDINGS[what]
    if path.suffix.lower() not in (*others, last):
        either = f"{', '.join(others)} or {last}" if others else last
        raise InputError(f"{path} is no name for the {what}: it must end in {either}.")
    folder = Path(os.path.realpath(path)).parent if path.is_symlink() else path.parent
    if not folder.is_dir():
        raise InputError(f"The folder {folder} for the {what} does not exist; make it.")
    if not os.access(folder, os.W_OK | os.X_OK):
        raise InputError(f"The folder {folder} for the {what} cannot be written to.")


def write_tables(path: Path, tables: Iterable[Any]) -> int:
    """Write the tables as they come, into one; the number of rows, of which there must be one."""
    rows, ending = 0, path.suffix.lower()
    with whole_file(path, "table") as temporary, open(temporary, "wb") as file:
        writer = None
        try:
            for table in tables:
                part = _with_nan(table) if ending == ".csv" else table
                writer = writer or _writer(file, part.schema, ending)
                writer.write_table(part)
                rows += part.num_rows
            if rows == 0:
                raise ValueError("There are no rows, so there is nothing to write.")
        finally:
            if writer is not None:
                writer.close()
    return rows


def _writer(file: Any, schema: Any, ending: str) -> Any:
    """A writer of tables in the format of the ending."""
    from pyarrow import csv, ipc, parquet

    if ending == ".parquet":
        return parquet.ParquetWriter(file, schema)
    if ending == ".csv":
        # `_with_nan` has made texts of a single column; its numbers need no quotes.
        style = "none" if len(schema) == 1 else "needed"
        return csv.CSVWriter(file, schema, write_options=csv.WriteOptions(quoting_style=style))
    return ipc.new_file(file, schema)


def _with_nan(table: Any) -> Any:
    """A single column of numbers as texts, missing ones as NaN; all else as it is.

    An empty field would be an empty line, which most programs pass over: all rows below would move
    up. NaN is a number to all of them, nan is a text to polars.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    if table.num_columns > 1:
        return table
    return pa.table([pc.fill_null(table.column(0).cast(pa.string()), "NaN")], table.column_names)
