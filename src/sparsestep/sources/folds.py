"""The fold of each row, the sums of each fold, and the moments of them.

Rows arrive in order, and their number is not known beforehand.

Every k rows in a row are one block, and each block gets its own random permutation of the k folds,
so after any number of rows the folds differ by at most one row. The random numbers are those of
the counter-based generator Philox with the key (seed, part): they depend on nothing but these two
and the number of the row within its part, not on batches or threads.
"""

import hashlib
import os
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparsestep.moments.moments import Moments
from sparsestep.moments.sums import Accumulator, Run, Sums
from sparsestep.words import missing_by_column, sentence

# Sums of each fold.
Parts = Sequence[Sums]


class FoldNumbers:
    """Fold numbers of the rows of one part, handed out in order."""

    def __init__(self, folds: int, seed: int, part: int = 0) -> None:
        self._folds = folds
        self._numbers = np.arange(folds, dtype=np.uint64)
        self._low_bits = np.uint64((1 << (folds - 1).bit_length()) - 1)
        self._random = np.random.Philox(key=np.array([seed, part], dtype=np.uint64))
        self._rest = np.empty(0, dtype=np.intp)

    def take(self, rows: int) -> NDArray[np.intp]:
        """Fold numbers of the next rows."""
        blocks = -(-max(rows - len(self._rest), 0) // self._folds)
        keys = self._random.random_raw(blocks * self._folds).reshape(blocks, self._folds)
        # The order of random keys is a random permutation. Keys that carry the number of their
        # place in their low bits say it when they are sorted, which takes a third of an argsort.
        keys &= ~self._low_bits
        keys |= self._numbers
        keys.sort(axis=1)
        keys &= self._low_bits
        numbers = np.concatenate([self._rest, keys.ravel().astype(np.intp)])
        self._rest = numbers[rows:].copy()
        return numbers[:rows]


def fold_numbers(n_rows: int, folds: int, seed: int = 0, part: int = 0) -> NDArray[np.intp]:
    """The folds that `read_moments` puts the rows of one part in.

    Files and frames in memory are one part, number 0, in the order of their rows; each partition of
    a Dask or Spark collection is a part of its own.

    Examples
    --------
    >>> from sparsestep.sources.folds import fold_numbers
    >>> fold_numbers(8, 4)
    array([0, 2, 1, 3, 1, 0, 2, 3])
    """
    return FoldNumbers(folds, seed, part).take(n_rows)


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
) -> list[Moments]:
    """The moments of each fold of a pass, or of all its rows.

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
    if folds is None:
        return [Moments._make(found[0])]
    # Without its folders: files of moments are handed on to others.
    source, name = os.path.basename(where.rstrip("/")) or where, _run_id(found)
    runs = [Run(name, source, folds, frozenset({k})) for k in range(folds)]
    return [
        Moments._make(replace(part, runs=(run,))) for part, run in zip(found, runs, strict=True)
    ]


def _run_id(folds: Parts) -> str:
    """A name for a run: a digest of its folds' sums, so that the same run has the same name."""
    digest = hashlib.sha256()
    for sums in folds:
        digest.update(
            f"{sums.n_samples} {sums.weight_sum!r} {sums.names}".encode("utf-8", "replace")
        )
        for part in (sums.mean, sums.diag, sums.xty, sums.yty):
            digest.update(part.tobytes())
    return digest.hexdigest()[:16]
