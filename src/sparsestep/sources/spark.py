"""Spark frames: moments of each partition on its executor, as bytes, merged on the driver."""

import os
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from sparsestep.moments import Moments
from sparsestep.sources.checks import Columns, choose, load
from sparsestep.sources.merging import FoldSums, RowCounts, finish

__all__ = ["moments_of"]

# One row for each fold of each partition: a single value holds at most 2 GB, and so m up to 16,000.
# A partition's counts, or the reason why it has no moments, come in a row of their own.
SCHEMA = (
    "part int, fold int, moments binary, rows bigint, dropped bigint, missing map<string,bigint>, "
    "error string"
)


def moments_of(
    source: Any,
    target: str,
    *,
    features: Sequence[str] | None,
    weight: str | None,
    folds: int | None,
    seed: int,
    progress: bool,
    drop_missing: bool,
) -> Moments | list[Moments]:
    """Moments of the columns of a Spark frame, as `read_moments` returns them."""
    if not hasattr(source, "mapInArrow"):
        raise TypeError(f"The source must be a Spark frame, not {type(source).__name__}.")
    functions = load("pyspark.sql.functions", "spark")
    where = "the Spark frame"
    columns = choose(source.columns, target, features, weight, where)
    for name in columns.all:
        _require_numbers(name, source.schema[name].dataType.simpleString())
    # Spark takes a dot in a name for a field of a structure, so names stay here. A type for all
    # keeps decimals and booleans simple.
    quoted = ("`" + name.replace("`", "``") + "`" for name in columns.all)
    frame = source.select(
        *(functions.col(name).cast("double").alias(f"c{i}") for i, name in enumerate(quoted))
    )
    run = _partition_function(columns, folds, seed, drop_missing)
    sums = FoldSums(1 if folds is None else folds)
    counts = RowCounts()
    rows = sorted(frame.mapInArrow(run, SCHEMA).collect(), key=lambda row: (row.part, row.fold))
    for row in rows:
        if row.error is not None:
            raise ValueError(row.error)
        if row.moments is None:
            counts.rows += row.rows
            counts.dropped += row.dropped
            counts.missing.update(Counter(row.missing))
        else:
            parts: list[Moments | None] = [None] * (1 if folds is None else folds)
            parts[row.fold] = _from_bytes(bytes(row.moments))
            sums.add(parts)
    return finish(sums.result(), counts, where, folds=folds)


def _require_numbers(name: str, kind: str) -> None:
    """Raise unless a Spark type is one of numbers or booleans."""
    numbers = ("tinyint", "smallint", "int", "bigint", "float", "double", "boolean")
    if kind not in numbers and not kind.startswith("decimal"):
        what = {"string": "text", "date": "dates or times", "timestamp": "dates or times"}
        raise TypeError(
            f"Column {name!r} of the Spark frame holds {what.get(kind, f'values of type {kind}')}; "
            "turn it into numbers, or choose features without it."
        )


def _partition_function(
    columns: Columns, folds: int | None, seed: int, drop_missing: bool
) -> Callable[[Iterator[Any]], Iterator[Any]]:
    """The function that runs on the executors, once for each partition."""

    def run(batches: Iterator[Any]) -> Iterator[Any]:
        import pyarrow as pa
        from pyspark import TaskContext

        from sparsestep.sources.blocks import partition_moments

        context = TaskContext.get()
        assert context is not None
        part = context.partitionId()
        schema = pa.schema(
            [
                ("part", pa.int32()),
                ("fold", pa.int32()),
                ("moments", pa.binary()),
                ("rows", pa.int64()),
                ("dropped", pa.int64()),
                ("missing", pa.map_(pa.string(), pa.int64())),
                ("error", pa.string()),
            ]
        )

        def row(**values: Any) -> Any:
            filled = {"part": part, "fold": -1, **values}
            return pa.RecordBatch.from_pylist([filled], schema=schema)

        tables = (pa.Table.from_arrays(batch.columns, names=columns.all) for batch in batches)
        name = f"partition {part}"
        try:
            parts, counts = partition_moments(
                tables, name, part, columns, folds, seed, drop_missing
            )
        except ValueError as error:
            # Raised here it would reach the user inside the stack of the executor.
            yield row(error=str(error))
            return
        yield row(rows=counts.rows, dropped=counts.dropped, missing=list(counts.missing.items()))
        for fold, moments in enumerate(parts):
            if moments is not None:
                yield row(fold=fold, moments=_to_bytes(moments))

    return run


def _to_bytes(moments: Moments) -> bytes:
    """What `Moments.save` writes."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "moments")
        moments.save(path)
        with open(path, "rb") as file:
            return file.read()


def _from_bytes(data: bytes) -> Moments:
    """What `Moments.load` reads."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "moments")
        with open(path, "wb") as file:
            file.write(data)
        return Moments.load(path)
