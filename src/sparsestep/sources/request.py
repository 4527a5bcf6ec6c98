"""The parameters of `read_moments`, checked: columns, folds, how CSV files are written.

Nothing here needs pyarrow, so that importing the package costs little.
"""

import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from functools import cached_property
from importlib import import_module
from typing import Any, Literal

import numpy as np

from sparsestep.errors import RowNamesWarning, warn
from sparsestep.moments.sums import Sums
from sparsestep.words import quoted, repeated, sentence


@dataclass(frozen=True)
class CsvFormat:
    r"""How CSV files are written, where they do not show it themselves.

    Examples
    --------
    >>> import os, tempfile
    >>> from sparsestep import read_moments
    >>> from sparsestep.sources import CsvFormat
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "flats.csv")
    ...     with open(path, "w", encoding="cp1252") as file:
    ...         _ = file.write("größe:preis\n71,5:230\n64,5:199\n")
    ...     moments = read_moments(path, "preis", csv=CsvFormat(":", ",", "cp1252"))
    >>> moments.feature_names
    ('größe',)
    """

    separator: str | None = None
    """What separates the fields of a CSV file. If not given: that of comma, semicolon, tab and bar
    which its first lines show; in a .tsv file the tab."""

    decimal: Literal[".", ","] | None = None
    """The decimal mark in a CSV file. If not given: the point, or the comma if that is not the
    separator, turns columns of text into numbers, and cannot separate thousands in all of them."""

    encoding: str = "utf-8"
    "The encoding of a CSV file, such as cp1252."

    def __post_init__(self) -> None:
        if self.separator == r"\t":
            # How a tab is written where it cannot be typed.
            object.__setattr__(self, "separator", "\t")
        mark = self.separator
        if mark is not None and (len(mark) != 1 or not mark.isascii() or mark in '"\r\n'):
            raise ValueError(f"The separator must be a single ASCII character, not {mark!r}.")
        if self.decimal not in (None, ".", ","):
            raise ValueError(f"The decimal mark must be '.' or ',', not {self.decimal!r}.")
        try:
            # Refuses rot13 and base64 too, which are codecs but not of text.
            "".encode(self.encoding)
        except LookupError:
            raise ValueError(
                f"There is no encoding {self.encoding!r}; known are utf-8, cp1252, utf-16 and the "
                "others of Python."
            ) from None


@dataclass(frozen=True)
class Request:
    """The parameters of `read_moments`; after `choosing`, `features` are the columns to read."""

    target: str
    features: Sequence[str] | None
    weight: str | None
    folds: int | None
    seed: int
    progress: bool | float
    drop_missing: bool
    categories: Mapping[str, Sequence[str]]
    csv: CsvFormat | None = None

    def __post_init__(self) -> None:
        folds, seed = folds_and_seed(self.folds, self.seed)
        object.__setattr__(self, "folds", folds)
        object.__setattr__(self, "seed", seed)

    def choosing(self, names: Sequence[Any], where: str, index: Collection[str] = ()) -> "Request":
        """The same with the features to read, checked; see `choose`."""
        features, left = choose(names, self.target, self.features, self.weight, where, index)
        if left is not None:
            warn(left)
        require_columns(self.categories, names, where)
        for name, known in self.categories.items():
            if name in (self.target, self.weight):
                raise ValueError(f"Column {name!r} has categories, so it can only be a feature.")
            if not known or len(set(known)) < len(known):
                raise ValueError(f"The categories of {name!r} must be one or more different texts.")
        chosen = replace(self, features=features)
        if len(set(chosen.names)) < len(chosen.names):
            raise ValueError(
                f"Column {repeated(chosen.names)!r} of {where} has the name of a column that the "
                "categories give; rename it."
            )
        return chosen

    @property
    def columns(self) -> list[str]:
        """The columns of the source: features, target and weight, in this order."""
        weight = [] if self.weight is None else [self.weight]
        return [*(self.features or ()), self.target, *weight]

    @cached_property
    def encoded(self) -> list[tuple[str, str]]:
        """The columns to sum, with those that categories give, and the one behind each."""
        known = {name: indicators(name, texts) for name, texts in self.categories.items()}
        return [(new, name) for name in self.columns for new in known.get(name, [name])]

    @property
    def names(self) -> list[str]:
        """The columns to sum."""
        return [name for name, _ in self.encoded]

    @property
    def feature_names(self) -> tuple[str, ...]:
        """The features among the columns to sum."""
        return tuple(self.names[: -1 if self.weight is None else -2])

    @property
    def no_rows(self) -> list[Sums]:
        """The sums of no rows, for each fold."""
        features = self.feature_names
        return [Sums.empty(len(features), 1, features, flat_y=True)] * (self.folds or 1)


def indicators(column: str, categories: Sequence[str]) -> list[str]:
    """Names of the columns of zeros and ones, for all categories but the first of several."""
    return [f"{column}={category}" for category in categories[1:] or categories]


def choose(
    names: Sequence[Any],
    target: str,
    features: Sequence[str] | None,
    weight: str | None,
    where: str,
    index: Collection[str] = (),
) -> tuple[list[str], RowNamesWarning | None]:
    """The features to read, checked; `names` are all columns, `where` names the source in messages.

    If `features` is None, they are all other columns but those that name the rows, as `index` does,
    of which the warning tells.
    """
    left = None
    if isinstance(features, str):
        raise TypeError(f"features must be a list of column names, not the text {features!r}.")
    wanted = [target, *([] if weight is None else [weight]), *(features or ())]
    for name in (*names, *wanted):
        if not isinstance(name, str):
            raise TypeError(f"Column names must be text, but {where} has or asks for {name!r}.")
    require_columns(wanted, names, where)
    if weight == target:
        raise ValueError(f"Column {target!r} cannot be both the target and the weight.")
    if features is None:
        out = [name for name in _row_names(names, index) if name not in (target, weight)]
        features = [name for name in names if name not in (target, weight, *out)]
        if out:
            left = RowNamesWarning(out, nameless=out == [""] and names[0] == "")
    for role, name in (("target", target), ("weight", weight)):
        if name in features:
            raise ValueError(f"The {role} {name!r} is among the features; leave it out of them.")
    if not features:
        raise ValueError(f"{sentence(where)} has no column left to use as a feature.")
    require_columns(features, names, where)
    if len(set(features)) < len(features):
        raise ValueError(f"Column {repeated(features)!r} is given more than once in features.")
    return list(features), left


def _row_names(names: Sequence[str], index: Collection[str]) -> list[str]:
    """Columns that pandas made of its index, by its own metadata or by their names."""
    return [
        name
        for j, name in enumerate(names)
        if name in index or (j == 0 and name == "") or re.fullmatch(r"__index_level_\d+__", name)
    ]


def require_columns(wanted: Iterable[str], names: Sequence[str], where: str) -> None:
    """Raise unless exactly one column has each of the names wanted."""
    counts = Counter(names)
    for name in wanted:
        if name not in counts:
            hint = _hint(name, names, where)
            raise ValueError(f"{sentence(where)} has no column {name!r}; {hint}")
        if counts[name] > 1:
            raise ValueError(f"{sentence(where)} has more than one column {name!r}; rename one.")


def _hint(name: str, names: Sequence[str], where: str) -> str:
    """The nearest name, or the first names."""
    near = get_close_matches(name, names, n=1, cutoff=0.6)
    if not near:
        lower = {other.lower(): other for other in names}
        near = [lower[name.lower()]] if name.lower() in lower else []
    if near:
        return f"did you mean {near[0]!r}?"
    if len(names) == 1:
        text_file = re.search(r"\.[ct]sv(\.\w+)?$", where, re.IGNORECASE)
        advice = ", so give its separator if that is another one" if text_file else ""
        return f"its only column is {names[0]!r}{advice}."
    return f"it has {quoted(names, 5)}."


def folds_and_seed(folds: Any, seed: Any) -> tuple[int | None, int]:
    """Both as integers; an error if they are out of range."""
    whole = (int, np.integer)
    if folds is not None and (isinstance(folds, bool) or not isinstance(folds, whole) or folds < 2):
        raise ValueError(f"folds must be a whole number of at least 2, or None, not {folds!r}.")
    if isinstance(seed, bool) or not isinstance(seed, whole) or not 0 <= seed < 2**64:
        raise ValueError(f"seed must be a whole number from 0 to 2**64 - 1, not {seed!r}.")
    return None if folds is None else int(folds), int(seed)


def load(module: str, extra: str) -> Any:
    """Import a module of an extra, or say how to install that."""
    try:
        return import_module(module)
    except ImportError as error:
        raise ImportError(
            f"This needs {module.split('.')[0]}, which cannot be imported; install it with: "
            f"pip install 'sparsestep[{extra}]'"
        ) from error
