"""Output on the screen: tables for people, JSON for programs, progress of long work."""

import json
import sys
import threading
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

from sparsestep.cli.options import Talk
from sparsestep.words import printable

# Seconds after which progress is shown.
PATIENCE = 2.0


class Screen:
    """Standard output and standard error, as the options ask for them."""

    def __init__(self, talk: Talk) -> None:
        self._json, self._silent = talk.json, talk.quiet or talk.json
        for stream in (sys.stdout, sys.stderr):
            # A name that the terminal cannot show is shown by the numbers of its characters.
            if hasattr(stream, "reconfigure"):
                stream.reconfigure(errors="backslashreplace")
        self._console = Console(highlight=False, markup=False, emoji=False)

    @property
    def shows_progress(self) -> bool:
        """Whether somebody watches standard error."""
        return not self._silent and sys.stderr.isatty()

    def json(self, value: dict[str, Any]) -> None:
        """Print a value, if JSON was asked for."""
        if self._json:
            print(json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False))

    def say(self, text: str = "", style: str = "") -> None:
        """Print a line."""
        if not self._silent:
            self._console.print(Text(printable(text)), style=style, soft_wrap=True)

    def warn(self, *notes: str) -> None:
        """Print notes on standard error."""
        if not self._silent:
            console = Console(stderr=True, highlight=False, markup=False, emoji=False)
            for text in notes:
                console.print(Text(printable(f"Note: {text}")), style="yellow", soft_wrap=True)

    def wrote(self, **files: Path | None) -> None:
        """Print what was written and where."""
        for what, file in files.items():
            if file is not None:
                self.say(f"{what.capitalize()}: {file}")

    def table(
        self,
        headings: Sequence[str],
        rows: Sequence[Sequence[str]],
        texts: Collection[int] = (0,),
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
