"""Spark frames: moments of each partition on its executor, merged on their way to the driver.

Few partitions go to the driver as they are. Of many, neighbours are merged on the executors first,
round after round, so that the driver's share does not grow with their number.
"""

import pickle
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from sparsestep.errors import NotNumbersError
from sparsestep.moments.moments import Moments
from sparsestep.sources.checks import Columns, Request, choose, load
from sparsestep.sources.merging import FoldSums, RowCounts, finish

__all__ = ["moments_of"]

# One row for each fold of each partition: a single value holds at most 2 GB, and so m up to 16,000.
# A partition's counts, or the error by which it has no moments, come in a row of no fold, -1.
# Values are pickled, as Spark moves all else between its own processes.
SCHEMA = "part int, fold int, value binary"
# The driver takes the moments of all partitions if they are no more than this, and an executor
# merges so much in one call.
GROUP_BYTES = 256 << 20

Value = Moments | RowCounts | ValueError


def moments_of(source: Any, request: Request) -> Moments | list[Moments]:
    """Moments of the columns of a Spark frame, as `read_moments` returns them."""
    if not hasattr(source, "mapInArrow"):
        raise TypeError(f"The source must be a Spark frame, not {type(source).__name__}.")
    functions = load("pyspark.sql.functions", "spark")
    where = "the Spark frame"
    columns = choose(source.columns, request.target, request.features, request.weight, where)
    for name in columns.all:
        _require_numbers(name, source.schema[name].dataType.simpleString())
    # Spark takes a dot in a name for a field of a structure, so names stay here. A type for all
    # keeps decimals and booleans simple.
    quoted = ("`" + name.replace("`", "``") + "`" for name in columns.all)
    frame = source.select(
        *(functions.col(name).cast("double").alias(f"c{i}") for i, name in enumerate(quoted))
    )
    rows = frame.mapInArrow(_partition_function(columns, request), SCHEMA)
    partitions, size = frame.rdd.getNumPartitions(), 8 * len(columns.features) ** 2
    if partitions * request.parts * size > GROUP_BYTES:
        rows = _merged(rows, partitions, max(GROUP_BYTES // size, 2), functions)
    sums, counts = FoldSums(request.parts), RowCounts()
    for row in sorted(rows.collect(), key=lambda row: (row.part, row.fold)):
        value: Value = pickle.loads(row.value)
        if isinstance(value, ValueError):
            raise value
        if isinstance(value, RowCounts):
            counts.add(value)
        else:
            parts: list[Moments | None] = [None] * request.parts
            parts[row.fold] = value
            sums.add(parts)
    return finish(sums.result(), counts, where, folds=request.folds)


def _require_numbers(name: str, kind: str) -> None:
    """Raise unless a Spark type is one of numbers or booleans."""
    numbers = ("tinyint", "smallint", "int", "bigint", "float", "double", "boolean")
    if kind not in numbers and not kind.startswith("decimal"):
        what = {"string": "text", "date": "dates or times", "timestamp": "dates or times"}
        raise NotNumbersError(name, "the Spark frame", what.get(kind, f"values of type {kind}"))


def _partition_function(
    columns: Columns, request: Request
) -> Callable[[Iterator[Any]], Iterator[Any]]:
    """The function that runs on the executors, once for each partition."""

    def run(batches: Iterator[Any]) -> Iterator[Any]:
        import pyarrow as pa
        from pyspark import TaskContext

        from sparsestep.sources.summing import partition_moments

        context = TaskContext.get()
        assert context is not None
        part = context.partitionId()
        tables = (pa.Table.from_arrays(batch.columns, names=columns.all) for batch in batches)
        try:
            parts, counts = partition_moments(tables, part, columns, request)
        except ValueError as error:
            # Raised here it would reach the user inside the stack of the executor.
            yield _row(part, -1, error)
            return
        yield _row(part, -1, counts)
        for fold, moments in enumerate(parts):
            if moments is not None:
                yield _row(part, fold, moments)

    return run


def _row(part: int, fold: int, value: Value) -> Any:
    """A row of `SCHEMA`."""
    import pyarrow as pa

    names = ["part", "fold", "value"]
    types = (pa.int32(), pa.int32(), pa.binary())
    values = (part, fold, pickle.dumps(value))
    columns = [pa.array([each], kind) for each, kind in zip(values, types, strict=True)]
    return pa.RecordBatch.from_arrays(columns, names=names)


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
    values = [pickle.loads(row["value"]) for row in rows]
    merged = _row(rows[0]["group"], rows[0]["fold"], _merged_value(values))
    return pa.Table.from_batches([merged])


def _merged_value(values: Sequence[Value]) -> Value:
    """The moments of all partitions, or their counts; the first error if there is one."""
    counts = RowCounts()
    for value in values:
        if isinstance(value, ValueError):
            return value
        if isinstance(value, RowCounts):
            counts.add(value)
    moments = [value for value in values if isinstance(value, Moments)]
    return Moments.merge(moments) if moments else counts
