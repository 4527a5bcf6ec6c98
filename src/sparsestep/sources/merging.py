"""Sums of each fold, gathered from blocks of rows that are summed anywhere in any number."""

import os
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from sparsestep.errors import DroppedRowsWarning, warn
from sparsestep.moments.moments import Moments
from sparsestep.moments.runs import Run, run_id
from sparsestep.moments.sums import Accumulator, Sums
from sparsestep.words import missing_by_column, sentence

__all__ = ["Parts", "RowCounts", "added", "finish", "merge"]

# One entry for each fold.
Parts = Sequence[Sums]


@dataclass
class RowCounts:
    """Rows read, rows left out, and how many values each column lacks in them."""

    rows: int = 0
    dropped: int = 0
    missing: Counter[str] = field(default_factory=Counter)

    def __add__(self, other: "RowCounts") -> "RowCounts":
        """The counts of two parts of a pass."""
        missing = self.missing + other.missing
        return RowCounts(self.rows + other.rows, self.dropped + other.dropped, missing)


def added(first: Parts, others: Iterable[Parts]) -> Parts:
    """The sums of each fold, of blocks in the order in which they come."""
    totals = [Accumulator(part) for part in first]
    for parts in others:
        for total, part in zip(totals, parts, strict=True):
            total.add(part)
    return [total.result() for total in totals]


def merge(pieces: Iterable[tuple[Parts, RowCounts]]) -> tuple[Parts, RowCounts]:
    """Several pieces of a pass as one."""
    (first, *others), counts = zip(*pieces, strict=True)
    return added(first, others), sum(counts, RowCounts())


def finish(
    parts: Parts, counts: RowCounts, where: str, folds: int | None, **labels: Any
) -> Moments | list[Moments]:
    """The moments of a pass, or a list of them with folds; rows left out are reported.

    `labels` are the fields of `Sums` on what its columns are called.
    """
    if counts.rows == 0:
        raise ValueError(f"{sentence(where)} has no rows.")
    if counts.rows == counts.dropped:
        raise ValueError(
            f"Each of the {counts.rows} rows of {where} has a missing value "
            f"({missing_by_column(counts.missing)})."
        )
    found = [replace(part, **labels) for part in parts if part.n_samples]
    if not found:
        raise ValueError(f"All weights of {where} are zero, so there are no rows.")
    if folds is not None and len(found) < folds:
        have = sum(part.n_samples for part in found)
        raise ValueError(
            f"{sentence(where)} has {have} rows, which leave {folds - len(found)} of {folds} "
            "folds empty; use fewer folds."
        )
    if counts.dropped:
        missing = dict(counts.missing.most_common())
        warn(DroppedRowsWarning(counts.dropped, counts.rows, missing))
    if folds is None:
        return Moments._make(found[0])
    # Not the folders of a path: a file of moments may travel further than it.
    source, name = os.path.basename(where.rstrip("/")) or where, run_id(found)
    runs = [Run(name, source, folds, frozenset({k})) for k in range(folds)]
    return [
        Moments._make(replace(part, runs=(run,))) for part, run in zip(found, runs, strict=True)
    ]
