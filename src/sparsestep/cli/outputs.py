"""Where results are written: checked before anything is read, so that no long work is lost."""

import os
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path

from sparsestep.errors import InputError

__all__ = ["check_outputs"]


def check_outputs(
    outputs: Iterable[tuple[Path | None, str, Sequence[str]]], inputs: Sequence[str] = ()
) -> None:
    """Raise unless all results can be written: paths, what they are, and their possible endings."""
    seen: list[str] = []
    for path, what, endings in outputs:
        if path is None:
            continue
        _check(path, what, endings)
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
    """The files that are there behind paths, globs and folders."""
    for path in inputs:
        if os.path.isfile(path):
            yield path
        else:
            from sparsestep.sources.files import local_files

            # That a file is missing is said by who reads it.
            with suppress(OSError, ValueError):
                yield from local_files([path])


def _check(path: Path, what: str, endings: Sequence[str]) -> None:
    """Raise unless a file of this name can be written."""
    if path.is_dir():
        raise InputError(f"{path} is a folder; give the name of a file for the {what}.")
    if path.exists() and not path.is_file():
        raise InputError(f"{path} is no ordinary file; give another name for the {what}.")
    if path.suffix.lower() not in endings:
        raise InputError(f"{path} is no name for the {what}: it must end in {_either(endings)}.")
    folder = Path(os.path.realpath(path)).parent if path.is_symlink() else path.parent
    if not folder.is_dir():
        raise InputError(f"The folder {folder} for the {what} does not exist; make it.")
    if not os.access(folder, os.W_OK | os.X_OK):
        raise InputError(f"The folder {folder} for the {what} cannot be written to.")


def _either(endings: Sequence[str]) -> str:
    """A list in words."""
    return " or ".join([", ".join(endings[:-1]), endings[-1]] if len(endings) > 1 else endings)
