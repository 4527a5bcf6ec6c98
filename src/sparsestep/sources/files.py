"""Which files a source names: paths, patterns, folders and addresses to files of one kind."""

import glob
import os
import re
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.fs

KINDS = {".parquet": "parquet", ".pq": "parquet", ".csv": "csv", ".tsv": "tsv"}
KINDS |= dict.fromkeys((".arrow", ".ipc", ".feather"), "ipc")
COMPRESSED = (".gz", ".bz2", ".zst", ".lz4")
ENDINGS = f"{', '.join(KINDS)}, or, after .csv or .tsv, {', '.join(COMPRESSED)}"


class Found(NamedTuple):
    """Files, the file system they are on, and the folder that was given for all of them."""

    files: list[str]
    system: Any
    base: str | None

    @property
    def local(self) -> bool:
        """Whether the files are on this machine."""
        return isinstance(self.system, pa.fs.LocalFileSystem)


def find_files(paths: Sequence[Any]) -> Found:
    """The files behind paths, globs and folders."""
    files: list[str] = []
    systems: list[Any] = []
    base = None
    for path in map(os.fspath, paths):
        if "://" in path:
            system, inner = pa.fs.FileSystem.from_uri(path)
            matches = [inner]
        else:
            system, matches = pa.fs.LocalFileSystem(), matching(path)
        systems.append(system)
        for match in matches:
            kind = _info(system, match, match).type
            if kind == pa.fs.FileType.NotFound:
                raise FileNotFoundError(f"There is no file or folder {match}.")
            if kind == pa.fs.FileType.Directory:
                files += _in_folder(match, system)
                base = match if len(paths) == len(matches) == 1 else None
            else:
                files.append(match)
    if not all(system.equals(systems[0]) for system in systems):
        raise ValueError("All files of one source must be on the same file system.")
    found = Found(files, systems[0], base)
    if found.local:
        require_distinct(files)
    return found


def kind_of(files: Sequence[str]) -> str:
    """The kind of all files, by their names."""
    kinds = {path: _kind(path) for path in files}
    for path, kind in kinds.items():
        if kind is None:
            raise ValueError(
                f"{path} does not end in {ENDINGS}, as tables do; moments end in .npz."
            )
        if kind != kinds[files[0]]:
            raise ValueError(f"{files[0]} and {path} are of different kinds; read them apart.")
    return str(kinds[files[0]])


def require_distinct(paths: Iterable[str]) -> None:
    """Raise if two paths lead to the same file; files that do not exist are ignored."""
    seen: dict[tuple[int, int], str] = {}
    for path in filter(os.path.exists, paths):
        file = os.stat(path)
        key = (file.st_dev, file.st_ino)
        if key in seen:
            both = f"{seen[key]} and {path} are the same file"
            named = f"{path} is given twice" if seen[key] == path else both
            raise ValueError(f"{named}; give it once, or its rows would count twice.")
        seen[key] = path


def matching(path: str) -> list[str]:
    """The paths on this machine that a path or a pattern stands for."""
    if os.path.exists(path) or not glob.has_magic(path):
        return [path]
    matches = sorted(glob.glob(path, recursive=True))
    if not matches:
        raise FileNotFoundError(f"No file matches {path}.")
    return matches


def _kind(path: str) -> str | None:
    """The kind of a file, by its name."""
    stem, ending = os.path.splitext(path.lower())
    if ending in COMPRESSED:
        ending = os.path.splitext(stem)[1]
        return KINDS.get(ending) if ending in (".csv", ".tsv") else None
    return KINDS.get(ending)


def _info(system: Any, wanted: Any, path: str) -> Any:
    """The type of a file, or of all files below a folder; an error names the path."""
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
    files = [
        path
        for path in paths
        if _kind(path)
        and not any(part[:1] in (".", "_") for part in path[len(folder) :].strip("/").split("/"))
    ]
    if not files:
        raise FileNotFoundError(f"The folder {folder} has no file that ends in {ENDINGS}.")
    return sorted(files)


def unreadable(path: str, error: Exception) -> ValueError:
    """The error for a file that cannot be read, in the first words of pyarrow."""
    return ValueError(f"{path} cannot be read: {first_line(error)}")


def first_line(error: Exception) -> str:
    """The message of an error of pyarrow, without the path and the stack around it."""
    line = next(iter([*str(error).splitlines(), type(error).__name__]))
    line = re.sub(r"^Could not open \w+ input source '.*?': (Invalid: )?", "", line)
    if "straddling object" in line:
        return "a row takes more than a megabyte; shorten its texts, or close a quote that is open."
    return line.rstrip(".") + "."
