"""Tables to files: batches of rows to Parquet, CSV or Arrow, complete or not at all."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pyarrow as pa

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
    if ending == ".csv":
        from pyarrow import csv

        return csv.CSVWriter(file, schema)
    return pa.ipc.new_file(file, schema)
