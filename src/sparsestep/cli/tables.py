"""Tables to files: batches of rows to Parquet, CSV or Arrow, complete or not at all."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from sparsestep.whole_file import whole_file

__all__ = ["ENDINGS", "write_batches"]

ENDINGS = [".parquet", ".csv", ".arrow"]


def write_batches(path: Path, batches: Iterable[Any]) -> int:
    """Write the batches as they come; the number of rows, of which there must be one."""
    rows = 0
    with whole_file(path, "table") as temporary, open(temporary, "wb") as file:
        writer = None
        try:
            for batch in batches:
                writer = writer or _writer(file, batch.schema, path.suffix.lower())
                writer.write_batch(batch)
                rows += batch.num_rows
            if rows == 0:
                raise ValueError("There are no rows, so there is nothing to write.")
        finally:
            if writer is not None:
                writer.close()
    return rows


def _writer(file: Any, schema: Any, ending: str) -> Any:
    """What writes batches in the format of the ending."""
    if ending == ".parquet":
        import pyarrow.parquet as pq

        return pq.ParquetWriter(file, schema)
    if ending == ".csv" and len(schema) == 1 and pa.types.is_floating(schema.field(0).type):
        return _OneColumn(file, schema.field(0).name)
    if ending == ".csv":
        from pyarrow import csv

        return csv.CSVWriter(file, schema)
    return pa.ipc.new_file(file, schema)


class _OneColumn:
    """A single column of numbers as CSV, missing ones as NaN.

    An empty field would be an empty line, which most programs pass over: all rows below would move
    up. NaN is a number to all of them, nan is a text to polars.
    """

    def __init__(self, file: Any, name: str) -> None:
        from pyarrow import csv

        schema = pa.schema([(name, pa.string())])
        self._writer = csv.CSVWriter(
            file, schema, write_options=csv.WriteOptions(quoting_style="none")
        )
        self.close = self._writer.close

    def write_batch(self, batch: Any) -> None:
        """Write some rows."""
        texts = pc.fill_null(batch.column(0).cast(pa.string()), "NaN")
        self._writer.write_batch(pa.RecordBatch.from_arrays([texts], names=batch.schema.names))
