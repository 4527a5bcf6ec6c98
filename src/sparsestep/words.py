"""Names and numbers in sentences: a few of many names, one variable or several, folds."""

from collections.abc import Sequence

__all__ = ["cross_validation", "quoted", "variables"]


def quoted(names: Sequence[str], most: int, more: str = "more") -> str:
    """The first of some names in quotation marks, and how many more there are."""
    shown = ", ".join(repr(name) for name in names[:most])
    return shown + (f" and {len(names) - most} {more}" if len(names) > most else "")


def variables(k: int) -> str:
    """A number of variables."""
    return f"{k} variable{'' if k == 1 else 's'}"


def cross_validation(folds: int, times: int = 1) -> str:
    """Cross-validation over the folds of a partition, or of several."""
    return f"{folds}-fold cross-validation" + (f", {times} times" if times > 1 else "")
