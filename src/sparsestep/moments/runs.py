"""The folds that moments hold, so that merging counts no row twice and forgets none.

A run is one splitting of the rows of a source into folds, as `read_moments` makes it. The moments
of a fold carry its number, merged moments the numbers of all their parts. Moments of unknown origin
carry none, and are not checked.
"""

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any

from sparsestep.words import few_of


@dataclass(frozen=True)
class Run:
    """Some of the `of` folds, numbered from 0, that the rows of a `source` were split into.

    The `id` is the same for all folds of a run, and for no other run.
    """

    id: str
    source: str
    of: int
    folds: frozenset[int]

    @property
    def missing(self) -> int:
        """How many folds are not there."""
        return self.of - len(self.folds)

    def __str__(self) -> str:
        numbers = sorted(self.folds)
        name = "fold" if len(numbers) == 1 else "folds"
        return f"{name} {few_of([*map(str, numbers)], 8)} of {self.of} of {self.source}"


Runs = tuple[Run, ...]


def run_id(folds: Iterable[Any]) -> str:
    """A name for a run: a digest of its folds' sums, so that the same run has the same name."""
    digest = hashlib.sha256()
    for sums in folds:
        digest.update(
            f"{sums.n_samples} {sums.weight_sum!r} {sums.names}".encode("utf-8", "replace")
        )
        for part in (sums.mean, sums.diag, sums.xty, sums.yty):
            digest.update(part.tobytes())
    return digest.hexdigest()[:16]


def joined(a: Runs, b: Runs) -> Runs:
    """The folds of both; an error if one of them is in both."""
    found = {run.id: run for run in a}
    for run in b:
        known = found.get(run.id, replace(run, folds=frozenset()))
        if twice := known.folds & run.folds:
            shared = replace(run, folds=twice)
            raise ValueError(f"Rows would count twice: {shared} is there twice; give it once.")
        found[run.id] = replace(run, folds=known.folds | run.folds)
    return tuple(found.values())


def require_same_folds(pieces: Iterable[Runs]) -> Runs:
    """The folds of all pieces; an error unless all incomplete runs have the same fold numbers.

    The same folds of several sources are folds of the pooled rows. Different folds of different
    runs do not belong together, and if the source is the same they share rows.
    """
    pieces = [runs for runs in pieces if runs]
    parts: Runs = reduce(joined, filter(_is_partial, pieces), ())
    for run in parts[1:]:
        if (run.of, run.folds) != (parts[0].of, parts[0].folds):
            raise _different(parts[0], run)
    return reduce(joined, pieces, ())


def require_all_folds(pieces: Sequence[Runs]) -> None:
    """Raise unless the pieces are all folds of the same runs, or each a table of its own."""
    together = require_same_folds(pieces)
    if not any(map(_is_partial, pieces)):
        return
    require_complete(together)
    for runs in pieces:
        own = {run.id for run in runs}
        others = [run for run in together if run.id not in own]
        if others and not runs:
            raise ValueError(
                f"Moments that are no fold do not go with {others[0]}; give one or the other."
            )
        if others:
            raise _different(runs[0], others[0])


def require_complete(runs: Runs) -> None:
    """Raise if folds are missing."""
    for run in runs:
        if run.missing:
            first = next(fold for fold in range(run.of) if fold not in run.folds)
            more = f", and {run.missing - 1} more" if run.missing > 1 else ""
            raise ValueError(
                f"Of the {run.of} folds of {run.source}, fold {first} is missing{more}; give all "
                "folds of a run."
            )


def _is_partial(runs: Runs) -> bool:
    """Whether folds are missing."""
    return any(run.missing for run in runs)


def _different(a: Run, b: Run) -> ValueError:
    """The error for folds of different runs."""
    return ValueError(
        f"Folds of different runs do not go together: {a} (run {a.id[:8]}), and {b} (run "
        f"{b.id[:8]}); give those of one run."
    )
