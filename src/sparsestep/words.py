"""Names and numbers in sentences: a few of many names, rows left out, a model within."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

# Columns named in a sentence on missing values.
_MOST_COLUMNS = 5

_JOINERS = "\N{ZERO WIDTH NON-JOINER}\N{ZERO WIDTH JOINER}"


def printable(text: str) -> str:
    """The text without characters that drive a terminal or turn the direction of writing.

    A name may hold such. Letters that are joined or kept apart, as in Persian, stay so.
    """
    return "".join(
        c if c.isprintable() or c in _JOINERS else "\N{REPLACEMENT CHARACTER}" for c in text
    )


def few_of(texts: Sequence[str], most: int, more: str = "more") -> str:
    """The first of some texts, and how many more there are."""
    rest = f" and {len(texts) - most} {more}" if len(texts) > most else ""
    return ", ".join(texts[:most]) + rest


def quoted(names: Sequence[str], most: int, more: str = "more") -> str:
    """The first of some names in quotation marks, and how many more there are."""
    return few_of([repr(name) for name in names], most, more)


def variables(k: int) -> str:
    """A number of variables."""
    return f"{k} variable{'' if k == 1 else 's'}"


def made_up_names(m: int) -> list[str]:
    """What m columns without names are called."""
    return [f"x{j}" for j in range(m)]


def missing_by_column(missing: Mapping[str, int]) -> str:
    """The columns in which most values are missing, and in how many rows."""
    most = sorted(missing.items(), key=lambda item: -item[1])[:_MOST_COLUMNS]
    text = ", ".join(f"{count} in {name!r}" for name, count in most)
    more = len(missing) - len(most)
    return text + (f", and others in {more} more columns" if more else "")


def rows_left_out(dropped: int, rows: int, missing: Mapping[str, int]) -> str:
    """How many rows were left out for a missing value, and the columns that cost most."""
    half = ", more than half of them," if 2 * dropped > rows else ""
    by = f" ({missing_by_column(missing)})" if missing else ""
    return f"Left out {dropped} of {rows} rows{half} with a missing value{by}."


def lost_digits(condition_number: float, digits: int, advice: str, which: str = "kept") -> str:
    """What nearly collinear columns have cost, as a sentence."""
    return (
        f"The columns {which} are nearly collinear (condition number {condition_number:.1e}), so "
        f"that about {digits} digits of the coefficients are right; {advice}"
    )


def sentence(text: str) -> str:
    """The text as the beginning of a sentence; a path stays as it is."""
    return "T" + text[1:] if text.startswith("the ") else text


def repeated(names: Iterable[Any]) -> Any:
    """The first name that is there more than once, or None."""
    return next((name for name, times in Counter(names).items() if times > 1), None)


def model_within(holder: Any) -> str:
    """The model in a pipeline or a search, as code such as ``pipe[-1]``; empty for all else."""
    code = ""
    while True:
        kinds = {base.__name__ for base in type(holder).__mro__}
        if "Pipeline" in kinds and holder.steps:
            code, holder = f"{code or 'pipe'}[-1]", holder.steps[-1][1]
        elif "BaseSearchCV" in kinds:
            code = f"{code or 'search'}.best_estimator_"
            holder = getattr(holder, "best_estimator_", None)
        else:
            return code
