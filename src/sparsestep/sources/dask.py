"""Dask arrays and frames: sums of each partition where it lies, merged in a tree.

Only sums travel, and each is merged as soon as its neighbours are there. A partition whose
worker is lost is summed again elsewhere, in the same folds, and merged in the same place of the
tree, so the answer does not depend on where anything ran.
"""

import sys
from collections.abc import Sequence
from contextlib import nullcontext
from itertools import pairwise
from typing import Any

import numpy as np

from sparsestep.moments.moments import Moments
from sparsestep.moments.sums import fold_sums
from sparsestep.moments.table import Table, is_dask, text_names
from sparsestep.sources.folds import Parts, RowCounts, finish, fold_numbers, merge
from sparsestep.sources.request import Request, folds_and_seed, load

# Pieces merged by one task.
SPLIT_EVERY = 8


def moments(
    X: Any, y: Any, sample_weight: Any = None, folds: int | None = None, seed: int = 0
) -> Moments | list[Moments]:
    """Moments of a Dask array or frame, or a list of as many as `folds`, on the active client.

    `y` and `sample_weight` are in the chunks of X, or in memory if the chunk sizes of X are known.
    The same chunks with the same seed are in the same folds.
    """
    folds, seed = folds_and_seed(folds, seed)
    delayed = load("dask", "dask").delayed
    if getattr(X, "ndim", None) != 2:
        raise ValueError("X must have two dimensions, rows and columns.")
    rows = _row_chunks(X)
    columns = [_pieces(X, rows, "X"), _pieces(y, rows, "y")]
    if sample_weight is not None:
        columns.append(_pieces(sample_weight, rows, "sample_weight"))
    for name, pieces in zip(("y", "sample_weight"), columns[1:], strict=False):
        if len(pieces) != len(columns[0]):
            raise ValueError(
                f"{name} has {len(pieces)} partitions but X has {len(columns[0])}; they must hold "
                "the same rows."
            )
    part = delayed(_array_part)
    leaves = [
        part(number, folds, seed, *pieces)
        for number, pieces in enumerate(zip(*columns, strict=True))
    ]
    found = finish(*_computed(leaves), "X", folds, target_names=text_names(y))
    return found[0] if folds is None else found


def predict(estimator: Any, X: Any, targets: Sequence[str] | None = None) -> Any:
    """Predictions for a Dask array or frame, computed when asked for; several have `targets`.

    Those of a frame are a series, or with several targets a frame, with its index.
    """
    if hasattr(X, "map_partitions"):
        return X.map_partitions(
            _predict_frame, estimator, targets, meta=_predict_frame(X._meta, estimator, targets)
        )
    X = X.rechunk({1: -1})
    shape = {"drop_axis": 1} if targets is None else {"chunks": (X.chunks[0], (len(targets),))}
    return X.map_blocks(_predict_array, estimator, targets, dtype=np.float64, **shape)


def sums_of(source: Any, request: Request) -> tuple[Parts, RowCounts, str]:
    """Sums of the columns of a Dask frame, the rows counted, and the source in words."""
    delayed = load("dask", "dask").delayed
    if not hasattr(source, "columns"):
        raise TypeError(
            f"The source must be a Dask frame, not {type(source).__name__}, which has no columns."
        )
    from sparsestep.sources.rows import open_rows

    where = "the Dask frame"
    request = request.choosing(list(source.columns), where)
    frame = source[request.columns]
    open_rows(frame._meta).select(request.columns)
    part = delayed(_frame_part)
    leaves = [part(number, request, piece) for number, piece in enumerate(frame.to_delayed())]
    return (*_computed(leaves, progress=bool(request.progress)), where)


# -- what runs on the workers ----------------------------------------------------------------


def _array_part(
    part: int, folds: int | None, seed: int, X: Any, y: Any, weight: Any = None
) -> tuple[Parts, RowCounts]:
    """Sums of one chunk of arrays or of frames with a separate y."""
    ids = None if folds is None else fold_numbers(len(y), folds, seed, part)
    try:
        table = Table(X, y, weight, None, zero_weights_ok=True)
        return fold_sums(table, ids, folds or 1), RowCounts(len(y))
    except (TypeError, ValueError) as error:
        kind = TypeError if isinstance(error, TypeError) else ValueError
        raise kind(f"Partition {part}: {error}") from error


def _frame_part(part: int, request: Request, frame: Any) -> tuple[Parts, RowCounts]:
    """Sums of one partition of a frame."""
    from sparsestep.sources.rows import block_rows, open_rows
    from sparsestep.sources.summing import partition_sums

    rows = open_rows(frame)
    rows.select(request.columns)
    return partition_sums(rows.batches(block_rows(len(request.columns))), part, request)


def _predict_array(block: Any, estimator: Any, targets: Sequence[str] | None) -> Any:
    """Predictions for a chunk, which may be empty."""
    if len(block):
        return estimator.predict(block)
    return np.empty(0) if targets is None else np.empty((0, len(targets)))


def _predict_frame(frame: Any, estimator: Any, targets: Sequence[str] | None) -> Any:
    """Predictions for a partition, which may be empty, with its index."""
    import pandas

    values = _predict_array(frame, estimator, targets)
    if targets is None:
        return pandas.Series(values, index=frame.index, name="prediction")
    names = [f"prediction of {name}" for name in targets]
    return pandas.DataFrame(values, index=frame.index, columns=names)


# -- the tree --------------------------------------------------------------------------------


def _computed(leaves: list[Any], progress: bool = False) -> tuple[Parts, RowCounts]:
    """All leaves merged, neighbours first."""
    dask = load("dask", "dask")
    node = dask.delayed(merge)
    while len(leaves) > 1:
        leaves = [node(leaves[i : i + SPLIT_EVERY]) for i in range(0, len(leaves), SPLIT_EVERY)]
    bar = load("dask.diagnostics", "dask").ProgressBar(out=sys.stderr)
    with bar if progress else nullcontext():
        return dask.compute(leaves[0])[0]  # type: ignore[no-any-return]


def _row_chunks(values: Any) -> tuple[int, ...] | None:
    """Numbers of rows in the chunks of an array; None if they are not known."""
    if hasattr(values, "map_partitions") or any(np.isnan(values.chunks[0])):
        return None
    return tuple(values.chunks[0])


def _pieces(values: Any, rows: tuple[int, ...] | None, name: str) -> list[Any]:
    """The values of each partition, delayed."""
    if not is_dask(values):
        if rows is None:
            raise TypeError(
                f"{name} must be a Dask series or array with the partitions of X, because the "
                "numbers of rows in them are not known."
            )
        if len(values) != sum(rows):
            raise ValueError(f"X has {sum(rows)} rows but {name} has {len(values)}.")
        edges = np.cumsum([0, *rows])
        cut = getattr(values, "iloc", values if hasattr(values, "shape") else np.asarray(values))
        return [cut[a:b] for a, b in pairwise(edges)]
    if hasattr(values, "map_partitions"):
        return list(values.to_delayed())
    own = _row_chunks(values)
    if rows is not None and own is not None and own != rows:
        if sum(own) != sum(rows):
            raise ValueError(f"X has {sum(rows)} rows but {name} has {sum(own)}.")
        values = values.rechunk({0: rows})
    if values.ndim == 2:
        values = values.rechunk({1: -1})
    return list(values.to_delayed().ravel())
