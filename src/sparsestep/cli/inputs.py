"""What the data of a command are: tables, or moments files and patterns of these."""

import glob
import os
from collections.abc import Sequence

import numpy as np

from sparsestep.errors import InputError
from sparsestep.moments.moments import Moments
from sparsestep.sources.files import require_distinct

__all__ = ["are_moments", "expanded", "require_different"]


def are_moments(data: Sequence[str]) -> bool:
    """Whether the data are moments files; all of them or none."""
    kinds = {os.path.splitext(path)[1].lower() == ".npz" for path in data}
    if len(kinds) > 1:
        raise InputError("Some of the data are moments (.npz) and some are tables; fit one kind.")
    return kinds == {True}


def expanded(data: Sequence[str]) -> list[str]:
    """The data, with its files for each pattern of moments files; tables find their own.

    No file may be there twice.
    """
    found: list[str] = []
    for path in data:
        pattern = are_moments([path]) and glob.has_magic(path) and not os.path.exists(path)
        matches = sorted(glob.glob(path, recursive=True)) if pattern else [path]
        if not matches:
            raise InputError(f"No file matches {path}.")
        found += matches
    require_distinct(found)
    return found


def require_different(moments: Moments, path: str, seen: dict[tuple[object, ...], str]) -> None:
    """Refuse moments whose sums are those of a file seen before: rows would count twice."""
    sums = (moments.mean_x, moments.mean_y, moments.diag, moments.xty, moments.yty)
    key = (moments.n_samples, *(np.asarray(part).tobytes() for part in sums))
    other = seen.setdefault(key, path)
    if other != path and moments.n_samples > 1:
        raise InputError(f"{other} and {path} hold the same sums of the same rows; give one.")
