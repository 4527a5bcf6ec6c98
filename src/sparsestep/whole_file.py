"""A file that is written completely or not at all."""

import os
import stat
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def whole_file(path: str | os.PathLike[str], what: str, *, private: bool = False) -> Iterator[Path]:
    """An empty file to write to, which in the end gets the name `path`, if nothing fails.

    `what` says what is written, for the message about a folder that does not exist. A symbolic link
    stays, and the file that it leads to is written. A file that is there keeps its mode; a new one
    is for its owner only if it is `private`.
    """
    target = Path(os.path.realpath(path) if os.path.islink(path) else path)
    if not target.parent.is_dir():
        raise FileNotFoundError(f"The folder {target.parent} for the {what} does not exist.")
    mode = stat.S_IMODE(target.stat().st_mode) if target.exists() else None
    # In the same folder, because only within a file system is a change of names one step.
    temporary = target.with_name(f".{uuid.uuid4().hex}.tmp")
    try:
        flags = os.O_CREAT | os.O_EXCL | os.O_WRONLY
        os.close(os.open(temporary, flags, 0o666 if mode is None and not private else 0o600))
        yield temporary
        if mode is not None:
            temporary.chmod(mode)
        os.replace(temporary, target)
    finally:
        temporary.unlink(missing_ok=True)
