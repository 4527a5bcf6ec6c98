"""Spark frames: sums of each partition on its executor, merged on their way to the driver.

Few partitions go to the driver as they are. Of many, neighbours are merged on the executors first,
round after round, so that the driver's share does not grow with their number.
"""

import pickle
from collections.abc import Callable, Iterator
from typing import Any

from sparsestep.errors import NotNumbersError
from sparsestep.moments.sums import Accumulator, Sums
from sparsestep.moments.sums import merge as merged_sums
from sparsestep.sources.folds import Parts, RowCounts
from sparsestep.sources.request import Request, load

# One row for each fold of each partition: a single value holds at most 2 GB, and so m up to 16,000.
# A partition's counts, or the error by which it has no sums, come in a row of no fold, -1.
# Values are pickled, as Spark moves all else between its own processes.
SCHEMA = "part int, fold int, value binary"
# The driver takes the sums of all partitions up to this size; an executor merges up to this size in
# one call.
GROUP_BYTES = 256 << 20

Value = Sums | RowCounts | ValueError


def sums_of(source: Any, request: Request) -> tuple[Parts, RowCounts, str]:
    """Sums of the columns of a Spark frame, the rows counted, and the source in words."""
    if not hasattr(source, "mapInArrow"):
        raise TypeError(f"The source must be a Spark frame, not {type(source).__name__}.")
    functions = load("pyspark.sql.functions", "spark")
    where = "the Spark frame"
    request = request.choosing(source.columns, where)
    for name in request.names:
        _require_numbers(name, source.schema[name].dataType.simpleString())
    # Spark takes a dot in a name for a field of a structure, so names stay here. A type for all
    # keeps decimals and booleans simple.
    quoted = ("`" + name.replace("`", "``") + "`" for name in request.names)
    frame = source.select(
        *(functions.col(name).cast("double").alias(f"c{i}") for i, name in enumerate(quoted))
    )
    rows = frame.mapInArrow(_partition_function(request), SCHEMA)
    partitions, size = frame.rdd.getNumPartitions(), 8 * len(request.features or ()) ** 2
    if partitions * (request.folds or 1) * size > GROUP_BYTES:
        rows = _merged(rows, partitions, max(GROUP_BYTES // size, 2), functions)
    totals, counts = [Accumulator(nothing) for nothing in request.no_rows], RowCounts()
    for row in sorted(rows.collect(), key=lambda row: (row.part, row.fold)):
        value: Value = pickle.loads(row.value)
        if isinstance(value, ValueError):
            raise value
        if isinstance(value, RowCounts):
            counts += value
        else:
            totals[row.fold].add(value)
    return [total.result() for total in totals], counts, where


def _require_numbers(name: str, kind: str) -> None:
    """Raise unless a Spark type is one of numbers or booleans."""
    numbers = ("tinyint", "smallint", "int", "bigint", "float", "double", "boolean")
    if kind not in numbers and not kind.startswith("decimal"):
        what = {"string": "text", "date": "dates or times", "timestamp": "dates or times"}
        raise NotNumbersError(name, "the Spark frame", what.get(kind, f"values of type {kind}"))


def _partition_function(request: Request) -> Callable[[Iterator[Any]], Iterator[Any]]:
    """The function that runs on the executors, once for each partition."""

    def run(batches: Iterator[Any]) -> Iterator[Any]:
        from pyspark import TaskContext

        from sparsestep.sources.summing import partition_sums

        context = TaskContext.get()
        assert context is not None
        part = context.partitionId()
        try:
            parts, counts = partition_sums(batches, part, request)
        except ValueError as error:
            # Raised here it would reach the user inside the stack of the executor.
            yield _row(part, -1, error)
            return
        yield _row(part, -1, counts)
        for fold, sums in enumerate(parts):
            if sums.n_samples:
                yield _row(part, fold, sums)

    return run


def _row(part: int, fold: int, value: Value) -> Any:
    """A row of `SCHEMA`."""
    import pyarrow as pa

    schema = pa.schema({"part": pa.int32(), "fold": pa.int32(), "value": pa.binary()})
    row = {"part": part, "fold": fold, "value": pickle.dumps(value)}
    return pa.RecordBatch.from_pylist([row], schema)


def _merged(rows: Any, partitions: int, width: int, functions: Any) -> Any:
    """The rows with `width` neighbouring partitions merged into one, until one is left."""
    while partitions > 1:
        group = functions.floor(functions.col("part") / width).cast("int")
        groups = rows.withColumn("group", group).groupBy("group", "fold")
        rows = groups.applyInArrow(_merge_group, SCHEMA)
        partitions = -(-partitions // width)
    return rows


def _merge_group(table: Any) -> Any:
    """Rows of one fold of neighbouring partitions as one row of their group.

    In the rows of no fold the first error, if there is one, takes the place of the counts.
    """
    import pyarrow as pa

    rows = sorted(table.to_pylist(), key=lambda row: int(row["part"]))
    values = [pickle.loads(row["value"]) for row in rows]
    errors = [value for value in values if isinstance(value, ValueError)]
    merged: Value
    if errors:
        merged = errors[0]
    else:
        merged = merged_sums(values) if rows[0]["fold"] >= 0 else sum(values, RowCounts())
    return pa.Table.from_batches([_row(rows[0]["group"], rows[0]["fold"], merged)])
