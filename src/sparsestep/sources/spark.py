"""Spark frames: moments of each partition on its executor, merged on their way to the driver.

Few partitions go to the driver as they are. Of many, neighbours are merged on the executors first,
round after round, so that the driver's share does not grow with their number.
"""

import pickle
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from sparsestep.errors import NotNumbersError
from sparsestep.moments.moments import Moments
from sparsestep.sources.checks import Columns, choose, load
from sparsestep.sources.merging import FoldSums, RowCounts, finish

__all__ = ["moments_of"]

# One row for each fold of each partition: a single value holds at most 2 GB, and so m up to 16,000.
# A partition's counts, or the reason why it has no moments, come in a row of their own.
SCHEMA = (
    "part int, fold int, moments binary, rows bigint, dropped bigint, missing map<string,bigint>, "
    "error string"
)
# The driver takes the moments of all partitions if they are no more than this, and an executor
# merges so much in one call.
GROUP_BYTES = 256 << 20


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
    rows = frame.mapInArrow(run, SCHEMA)
    partitions, size = frame.rdd.getNumPartitions(), 8 * len(columns.features) ** 2
    if partitions * (folds or 1) * size > GROUP_BYTES:
        rows = _merged(rows, partitions, max(GROUP_BYTES // size, 2), functions)
    for row in sorted(rows.collect(), key=lambda row: (row.part, row.fold)):
        if row.error is not None:
            raise ValueError(row.error)
        if row.moments is None:
            counts.add(_counts(row))
        else:
            parts: list[Moments | None] = [None] * (1 if folds is None else folds)
            parts[row.fold] = pickle.loads(row.moments)
            sums.add(parts)
    return finish(sums.result(), counts, where, folds=folds)


def _require_numbers(name: str, kind: str) -> None:
    """Raise unless a Spark type is one of numbers or booleans."""
    numbers = ("tinyint", "smallint", "int", "bigint", "float", "double", "boolean")
    if kind not in numbers and not kind.startswith("decimal"):
        what = {"string": "text", "date": "dates or times", "timestamp": "dates or times"}
        holds = what.get(kind, f"values of type {kind}")
        raise NotNumbersError(name, "the Spark frame", holds)


def _partition_function(
    columns: Columns, folds: int | None, seed: int, drop_missing: bool
) -> Callable[[Iterator[Any]], Iterator[Any]]:
    """The function that runs on the executors, once for each partition."""

    def run(batches: Iterator[Any]) -> Iterator[Any]:
        import pyarrow as pa
        from pyspark import TaskContext

        from sparsestep.sources.summing import partition_moments

        context = TaskContext.get()
        assert context is not None
        part = context.partitionId()

        def row(**values: Any) -> Any:
            return pa.RecordBatch.from_pylist([_filled(part, **values)], schema=_arrow_schema())

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
        # Pickled, as Spark moves all else between its own processes.
        yield row(rows=counts.rows, dropped=counts.dropped, missing=list(counts.missing.items()))
        for fold, moments in enumerate(parts):
            if moments is not None:
                yield row(fold=fold, moments=pickle.dumps(moments))

    return run


def _filled(part: int, **values: Any) -> dict[str, Any]:
    """A row of `SCHEMA`; without a fold it tells of the partition itself."""
    return {"part": part, "fold": -1, **values}


def _arrow_schema() -> Any:
    """`SCHEMA` in Arrow's terms."""
    import pyarrow as pa

    return pa.schema(
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


def _merged(rows: Any, partitions: int, width: int, functions: Any) -> Any:
    """The rows with `width` neighbouring partitions merged into one, until one is left."""
    while partitions > 1:
        group = functions.floor(functions.col("part") / width).cast("int")
        groups = rows.withColumn("group", group).groupBy("group", "fold")
        rows = groups.applyInArrow(_merge_group, SCHEMA)
        partitions = -(-partitions // width)
    return rows


def _merge_group(table: Any) -> Any:
    """Rows of one fold, or of no fold, of neighbouring partitions as one row of their group."""
    import pyarrow as pa

    rows = sorted(table.to_pylist(), key=lambda row: int(row["part"]))
    group, fold = rows[0]["group"], rows[0]["fold"]
    errors = [row["error"] for row in rows if row["error"] is not None]
    if errors:
        merged = _filled(group, error=errors[0])
    elif fold >= 0:
        moments = Moments.merge(pickle.loads(row["moments"]) for row in rows)
        merged = _filled(group, fold=fold, moments=pickle.dumps(moments))
    else:
        counts = RowCounts()
        for row in rows:
            counts.add(_counts(row))
        merged = _filled(group, **vars(counts))
        merged["missing"] = list(counts.missing.items())
    return pa.Table.from_pylist([merged], schema=_arrow_schema())


def _counts(row: Any) -> RowCounts:
    """What a row tells of its partition."""
    counts = RowCounts()
    counts.rows, counts.dropped = row["rows"], row["dropped"]
    counts.missing.update(Counter(dict(row["missing"])))
    return counts
