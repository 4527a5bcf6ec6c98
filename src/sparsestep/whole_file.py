"""A file that is written completely or not at all."""

import os
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

__all__ = ["whole_file"]


@contextmanager
def whole_file(path: str | os.PathLike[str], what: str) -> Iterator[Path]:
    """A name to write under; what is there in the end gets the name `path`, if nothing fails.

    `what` says what is written, for the message about a folder that does not exist.
    """
    target = Path(path)
    if not target.parent.is_dir():
        raise FileNotFoundError(f"The folder {target.parent} for the {what} does not exist.")
    # Not tempfile: its files are private, and these are made to be handed on. In the same folder,
    # because only within a file system is a change of names one step.
    temporary = target.with_name(f".{uuid.uuid4().hex}.tmp")
    try:
        yield temporary
        os.replace(temporary, target)
    finally:
        temporary.unlink(missing_ok=True)
