"""Moments of each fold, gathered from blocks of rows that are summed anywhere in any number."""

import os
import warnings
from collections import Counter
from collections.abc import Iterable, Sequence

from sparsestep.errors import DroppedRowsWarning
from sparsestep.moments.moments import Moments
from sparsestep.words import missing_by_column, sentence

__all__ = ["FoldSums", "Parts", "RowCounts", "finish", "labelled", "merge"]

# One entry for each fold, None where a block has no row of the fold.
Parts = Sequence[Moments | None]


class RowCounts:
    """Rows seen, rows left out, and the columns in which those had a missing value."""

    def __init__(self) -> None:
        self.rows = 0
        self.dropped = 0
        self.missing: Counter[str] = Counter()

    def add(self, other: "RowCounts") -> None:
        """Count what another part of the pass has counted."""
        self.rows += other.rows
        self.dropped += other.dropped
        self.missing.update(other.missing)


class FoldSums:
    """Merges the moments of blocks, for each fold in the order in which they come."""

    def __init__(self, folds: int) -> None:
        self._total: list[Moments | None] = [None] * folds
        # Thin pieces wait until together they have as many rows as columns: merging each handful
        # of rows on its own would pass over the m x m matrix every time.
        self._waiting: list[list[Moments]] = [[] for _ in range(folds)]
        self._rows = [0] * folds

    def add(self, parts: Parts) -> None:
        """Add the moments of a block of rows."""
        for fold, part in enumerate(parts):
            if part is not None:
                self._waiting[fold].append(part)
                self._rows[fold] += part.n_samples
                if self._rows[fold] >= part.n_features:
                    self._collect(fold)

    def _collect(self, fold: int) -> None:
        """Merge what waits, first with each other."""
        if self._waiting[fold]:
            group, total = Moments.merge(self._waiting[fold]), self._total[fold]
            self._total[fold] = group if total is None else total + group
            self._waiting[fold], self._rows[fold] = [], 0

    def result(self) -> list[Moments | None]:
        """Moments of each fold, None for a fold without rows."""
        for fold in range(len(self._total)):
            self._collect(fold)
        return self._total


def merge(pieces: Iterable[tuple[Parts, RowCounts]]) -> tuple[Parts, RowCounts]:
    """Several pieces of a pass as one."""
    sums: FoldSums | None = None
    counts = RowCounts()
    for parts, count in pieces:
        sums = sums or FoldSums(len(parts))
        sums.add(parts)
        counts.add(count)
    assert sums is not None
    return sums.result(), counts


def labelled(
    found: Moments | list[Moments],
    targets: tuple[str, ...] | None,
    categories: dict[str, tuple[str, ...]] | None = None,
) -> Moments | list[Moments]:
    """Moments, or those of each fold, that know what their targets and encoded columns are."""
    if isinstance(found, Moments):
        return found._labelled(targets, categories)
    return [part._labelled(targets, categories) for part in found]


def finish(
    parts: Parts, counts: RowCounts, where: str, *, folds: int | None
) -> Moments | list[Moments]:
    """What a pass returns: moments, or a list of them with folds; rows left out are reported."""
    if counts.rows == 0:
        raise ValueError(f"{sentence(where)} has no rows.")
    kept = counts.rows - counts.dropped
    if kept == 0:
        raise ValueError(
            f"Each of the {counts.rows} rows of {where} has a missing value "
            f"({missing_by_column(counts.missing)})."
        )
    result = [part for part in parts if part is not None and part.n_samples]
    if not result:
        raise ValueError(f"All weights of {where} are zero, so there are no rows.")
    if folds is not None and len(result) < folds:
        have = sum(part.n_samples for part in result)
        raise ValueError(
            f"{sentence(where)} has {have} rows, which leave {folds - len(result)} of {folds} "
            "folds empty; use fewer folds."
        )
    if counts.dropped:
        warnings.warn(
            DroppedRowsWarning(counts.dropped, counts.rows, dict(counts.missing.most_common())),
            stacklevel=4,
        )
    # Not the folders of a path: a file of moments may travel further than it.
    source = os.path.basename(where.rstrip("/")) or where
    return result[0] if folds is None else Moments._as_run(result, source)
