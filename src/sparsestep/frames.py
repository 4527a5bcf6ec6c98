"""Frames of other libraries, told apart without importing any of these."""

from collections.abc import Sequence
from typing import Any


def comes_from(value: Any, *packages: str) -> bool:
    """Whether the value's class, or one it inherits from, is defined in one of the packages."""
    return any(base.__module__.split(".")[0] in packages for base in type(value).__mro__)


def is_dask(value: Any) -> bool:
    """Whether the value is a Dask array, frame or series."""
    return comes_from(value, "dask", "dask_expr") and hasattr(type(value), "ndim")


def is_pandas(value: Any) -> bool:
    """Whether the value is a frame of pandas, or like one."""
    return hasattr(value, "iloc") and hasattr(value, "columns")


def column_names(frame: Any) -> Sequence[Any] | None:
    """The names of a frame's columns, or of an Arrow table's; None if the value has none."""
    columns: Sequence[Any] | None = getattr(frame, "columns", None)
    # An Arrow table has its columns there; a pandas frame may have one of that name.
    return columns if is_pandas(frame) else getattr(frame, "column_names", columns)


def text_names(frame: Any) -> tuple[str, ...] | None:
    """Names of the columns of a frame, or of a series; None unless all are texts."""
    names = column_names(frame)
    if names is None and hasattr(frame, "to_frame"):
        # Unlike the name of a Dask array, that of a series means something.
        names = (frame.name,)
    if names is None or not all(isinstance(name, str) and name for name in names):
        return None
    return tuple(names)
