"""From the arguments of a command to moments: of a table, or from moments files."""

import os
import shlex
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import chain, combinations

import numpy as np
from numpy.typing import NDArray

from sparsestep.cli.errors import said_by_options
from sparsestep.cli.options import TableOptions
from sparsestep.cli.outputs import PATIENCE, Screen
from sparsestep.errors import InputError, OutOfRangeError
from sparsestep.moments.moments import Moments, require_all_folds
from sparsestep.sources import CsvFormat, moments_of, read_categories
from sparsestep.sources.files import matching, require_distinct
from sparsestep.sources.folds import RowCounts
from sparsestep.sources.request import Request, choose, indicators, require_columns
from sparsestep.sources.rows import Rows, open_rows
from sparsestep.words import made_up_names, rows_left_out

# A column of text that becomes more columns than this is worth a note.
MANY_INDICATORS = 30


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
    matches = [matching(path) if are_moments([path]) else [path] for path in data]
    found = list(chain.from_iterable(matches))
    require_distinct(found)
    return found


class TablesSeen:
    """Sums of each table, or of each run of folds: equal sums mean that rows are there twice."""

    def __init__(self) -> None:
        self._tables: dict[object, tuple[str, NDArray[np.float64]]] = {}

    def add(self, path: str, part: Moments) -> None:
        """Add n, w, and the weighted sums of x^2, x y and y^2; all folds of a run are one table."""
        key = tuple(run.id for run in part.runs) or path
        w, x, y = part.weight_sum, part.mean_x, np.atleast_1d(part.mean_y)
        with np.errstate(over="ignore"):
            xy = part.xty.reshape(len(x), len(y)) + w * np.outer(x, y)
            squares = [[part.n_samples, w], part.diag + w * x**2, xy.ravel(), part.yty + w * y**2]
        first, total = self._tables.get(key, (path, np.zeros(1)))
        self._tables[key] = first, total + np.concatenate(squares)

    def require_different(self) -> None:
        """Raise if two tables have the same sums."""
        for (one, sums), (other, others) in combinations(self._tables.values(), 2):
            alike = len(sums) == len(others) and 1 < sums[0] == others[0]
            if alike and np.allclose(sums, others, rtol=1e-9, atol=0.0):
                raise InputError(
                    f"{one} and {other} hold the same sums of the same rows; give one."
                )


@dataclass(frozen=True)
class Reading:
    """Moments, one for each fold if there are folds, and the table that they are of."""

    parts: list[Moments]
    target: str
    source: str
    counts: RowCounts = field(default_factory=RowCounts)
    notes: list[str] = field(default_factory=list)
    "What should be known of the table that was read, beside the rows left out."

    @property
    def whole(self) -> Moments:
        """The moments of all rows, at least two."""
        with self.naming_target():
            whole = self.parts[0] if len(self.parts) == 1 else Moments.merge(self.parts)
        if whole.n_samples < 2:
            raise InputError(f"A fit needs at least 2 rows; {self.source} has {whole.n_samples}.")
        return whole

    @property
    def all_notes(self) -> list[str]:
        """The notes, and on rows left out the one that a model would have."""
        counts = self.counts
        if not counts.dropped:
            return self.notes
        return [rows_left_out(counts.dropped, counts.rows, counts.missing), *self.notes]

    @contextmanager
    def naming_target(self) -> Iterator[None]:
        """Name the target in errors on sums that are out of range."""
        try:
            yield
        except OutOfRangeError as error:
            raise error.naming(self.target) from error

    @property
    def names(self) -> list[str]:
        """The columns of the moments, by number if they have no names."""
        moments = self.parts[0]
        return list(moments.feature_names or made_up_names(moments.n_features))

    def always(self, given: Sequence[str] | None) -> NDArray[np.float64] | None:
        """Penalty factors: 0 for columns to keep in every model and their indicators, else 1."""
        if not given:
            return None
        texts = {name: known for part in self.parts for name, known in part.categories.items()}
        encoded = {name: indicators(name, known) for name, known in texts.items()}
        known = [*encoded, *self.names]
        wanted = split_names(given, known)
        require_columns(wanted, known, "the list of features")
        free = {column for name in wanted for column in encoded.get(name, [name])}
        return np.array([0.0 if name in free else 1.0 for name in self.names])


def read(
    data: Sequence[str], options: TableOptions, screen: Screen, folds: int | None, seed: int
) -> Reading:
    """The moments of a table, or of moments files."""
    if are_moments(data):
        return _loaded(data, options)
    if options.target is None:
        raise InputError("Which column is to be explained? Name it with --target.")
    rows = opened(data, options.csv, screen)
    features = _features(rows, options, screen)
    codes = split_names(options.category or [], features)
    require_columns(codes, features, "the list of features")
    if options.missing_category and not (options.one_hot or codes):
        raise InputError("--missing-category is for categories; give --one-hot or --category.")
    categories: dict[str, list[str]] = {}
    with said_by_options(options):
        if options.one_hot or codes:
            with screen.waiting("Finding the categories"):
                categories = read_categories(
                    rows,
                    features if options.one_hot else codes,
                    codes=codes,
                    missing=options.missing_category,
                )
        request = Request(
            target=options.target,
            features=features,
            weight=options.weight,
            folds=folds,
            seed=seed,
            progress=PATIENCE if screen.shows_progress else False,
            drop_missing=options.drop_missing,
            categories=categories,
        )
        parts, counts = moments_of(rows, request)
    notes = [*_on_missing(counts, options), *_many(categories)]
    return Reading(parts, options.target, _named(data), counts, notes)


def _many(categories: dict[str, list[str]]) -> list[str]:
    """Notes on columns that have become many."""
    return [
        f"Column {name!r} has become {count} columns of zeros and ones; put its categories into "
        f"groups, or leave it out with --drop {shlex.quote(name)}."
        for name, known in categories.items()
        if (count := len(indicators(name, known))) > MANY_INDICATORS
    ]


def _on_missing(counts: RowCounts, options: TableOptions) -> list[str]:
    """Advice if most rows were left out."""
    if 2 * counts.dropped <= counts.rows:
        return []
    advice = "Leave columns of many missing values out with --drop"
    if options.one_hot and not options.missing_category:
        advice += ", or give missing text a category with --missing-category"
    return [f"{advice}."]


def _loaded(data: Sequence[str], options: TableOptions) -> Reading:
    """Moments from their files."""
    given = {**vars(options), **vars(options.csv)}
    default = {**vars(TableOptions()), **vars(CsvFormat())}
    for name, value in given.items():
        if name not in ("target", "csv") and value != default[name]:
            option = f"--{name.replace('_', '-')}"
            raise InputError(f"{option} is for tables; the columns of moments are fixed.")
    parts = [Moments.load(path) for path in data]
    require_all_folds([part.runs for part in parts])
    target = options.target
    seen = TablesSeen()
    for path, part in zip(data, parts, strict=True):
        seen.add(path, part)
        known = ", ".join(part.target_names or ())
        if known and target not in (None, known):
            raise InputError(f"The target of the moments in {path} is {known!r}, not {target!r}.")
        if target in (part.feature_names or ()):
            raise InputError(f"{target!r} is not the target in {path}, but one of its columns.")
        target = target or known
    seen.require_different()
    return Reading(parts, target or "y", _named(data))


def opened(data: Sequence[str], csv: CsvFormat, screen: Screen) -> Rows:
    """A table, whose headers are read; says so if the comma was taken for the decimal mark."""
    rows = open_rows(data[0] if len(data) == 1 else data, csv)
    if csv.decimal is None and rows.csv is not None and rows.csv.decimal == ",":
        screen.warn("The comma is read as the decimal mark; --decimal . says otherwise.")
    return rows


def _features(rows: Rows, options: TableOptions, screen: Screen) -> list[str]:
    """The columns to explain the target with."""
    roles = [name for name in (options.target, options.weight) if name is not None]
    require_columns(roles, rows.names, rows.where)
    drop = dict.fromkeys(split_names(options.drop or [], rows.names))
    require_columns(drop, rows.names, rows.where)
    for role, name in (("target", options.target), ("weight", options.weight)):
        if name in drop:
            raise InputError(f"Column {name!r} cannot be the {role} and be left out by --drop.")
    given = None if options.features is None else split_names(options.features, rows.names)
    chosen, left = choose(
        rows.names, str(options.target), given, options.weight, rows.where, rows.index
    )
    if left is not None:
        screen.warn(f"{left.what}.")
    return [name for name in chosen if name not in drop]


def split_names(given: Sequence[str], names: Sequence[str]) -> list[str]:
    """Names of columns from a,b,c; a name that has a comma itself is taken as it is."""
    found: list[str] = []
    for text in given:
        found += [text] if text in names else [name for name in text.split(",") if name]
    return found


def _named(data: Sequence[str]) -> str:
    """The source in a few words."""
    return ", ".join(data) if len(data) <= 3 else f"{data[0]} and {len(data) - 1} more"
