"""Rows from anywhere to moments: files of any size, frames, Dask and Spark.

In: a source and the names of columns. Out: `Moments`, one for each fold. `request` checks the
parameters; `files` finds files; `rows` reads blocks of rows, by `file_rows` and `csv_rows` those
of files; `one_hot` turns texts into zeros and ones; `summing` is the pass over all rows; `folds`
gives each row its fold and adds up the sums of each. `dask` and `spark` sum partitions where they
are.
"""

from collections.abc import Mapping, Sequence
from typing import Any, overload

from sparsestep.errors import DroppedRowsWarning, OutOfRangeError, warn
from sparsestep.moments.moments import Moments
from sparsestep.moments.table import comes_from
from sparsestep.sources.folds import RowCounts, finish
from sparsestep.sources.request import CsvFormat, Request, require_columns

__all__ = ["CsvFormat", "read_categories", "read_moments"]


@overload
def read_moments(
    source: Any,
    target: str,
    *,
    features: Sequence[str] | None = ...,
    weight: str | None = ...,
    folds: None = ...,
    seed: int = ...,
    progress: bool | float = ...,
    drop_missing: bool = ...,
    categories: Mapping[str, Sequence[str]] | None = ...,
    csv: CsvFormat | None = ...,
) -> Moments: ...
@overload
def read_moments(
    source: Any,
    target: str,
    *,
    features: Sequence[str] | None = ...,
    weight: str | None = ...,
    folds: int,
    seed: int = ...,
    progress: bool | float = ...,
    drop_missing: bool = ...,
    categories: Mapping[str, Sequence[str]] | None = ...,
    csv: CsvFormat | None = ...,
) -> list[Moments]: ...
def read_moments(
    source: Any,
    target: str,
    *,
    features: Sequence[str] | None = None,
    weight: str | None = None,
    folds: int | None = None,
    seed: int = 0,
    progress: bool | float = False,
    drop_missing: bool = False,
    categories: Mapping[str, Sequence[str]] | None = None,
    csv: CsvFormat | None = None,
) -> Moments | list[Moments]:
    """Moments of a table of any size, in one pass and in bounded memory.

    The rows are read in batches, only the columns asked for, while the products of the rows before
    are computed; what comes out is as large for a trillion rows as for a thousand. Hand it to
    ``fit_moments`` of an estimator, or `save` it.

    Parameters
    ----------
    source : path, list of paths, or table
        A Parquet, CSV (also ``.tsv``, and compressed) or Arrow IPC file; a glob; a folder, read
        with all below it, in which folders named ``key=value`` give columns, which the files must
        not have themselves; a list of these; an address such as ``s3://bucket/folder``; a pyarrow
        Dataset, Table or RecordBatchReader; a pandas or polars frame, or any other object with
        ``__arrow_c_stream__``; a Dask frame, on whatever client is active; a Spark frame.
    target : str
        Name of the column to explain.
    features : list of str, optional
        Names of the columns to explain it with, in the order of the coefficients. All others if
        None, but for the index that pandas writes into files (and a first column of a CSV file
        without a name), which a `RowNamesWarning` says. Numbers and booleans; decimals become
        doubles.
    weight : str, optional
        Name of a column of weights. A whole number w counts as w copies of the row.
    folds : int, optional
        Return a list of this many moments, one for each part of a random partition of the rows,
        as ``SparseStepCV.fit_moments`` takes it.
    seed : int, default 0
        The same rows in the same order with the same seed are in the same folds: whatever the
        number and size of files and batches. In Dask and Spark this holds for the same partitions.
    progress : bool or float, default False
        Show rows, rows per second and the time left on standard error; a number is the seconds
        after which to begin. Dask shows its own bar if no client is active; otherwise Dask and
        Spark have their dashboards.
    drop_missing : bool, default False
        Leave out rows with a missing value in a column that is read, count them, and say so in a
        `DroppedRowsWarning`. An infinity is an error all the same.
    categories : mapping of str to sequence of str, optional
        Columns of text or of codes among the features, and their categories as texts; a column of
        a CSV file is read as text, whatever it looks like. Each such column is replaced by columns
        of zeros and ones named ``column=category``, one for each category but the first, with
        which the others are compared; a single category gives a column of ones. Missing values are
        of the category ``"(missing)"``, if the column has it. `sparsestep.sources.read_categories`
        finds the categories, by a pass of its own. Not for Dask and Spark.
    csv : CsvFormat, optional
        The separator, decimal mark or encoding of CSV files, where the files do not show it: a
        `sparsestep.sources.CsvFormat`. Not for Dask and Spark.

    Returns
    -------
    Moments, or list of Moments if `folds` is given

    Raises
    ------
    FileNotFoundError
        If there is no such file, or none that matches.
    TypeError
        If a column holds text, dates or anything else that is not a number.
    ValueError
        If a column is not in each file, or a value is missing or infinite; the message names the
        file, the column and the row, counted from 0 within the file without its header.

    Examples
    --------
    >>> import os, tempfile
    >>> import pyarrow as pa, pyarrow.parquet
    >>> from sparsestep import read_moments
    >>> old = [True, False, False]
    >>> table = pa.table({"size": [1.0, 2.0, 4.0], "old": old, "price": [1, 3, 4]})
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     pa.parquet.write_table(table, os.path.join(folder, "part-0.parquet"))
    ...     pa.parquet.write_table(table, os.path.join(folder, "part-1.parquet"))
    ...     moments = read_moments(folder, "price")
    >>> moments
    Moments(n_samples=6, n_features=2)
    >>> moments.feature_names
    ('size', 'old')
    """
    request = Request(
        target, features, weight, folds, seed, progress, drop_missing, categories or {}, csv
    )
    parts, counts = moments_of(source, request)
    if counts.dropped:
        missing = dict(counts.missing.most_common())
        warn(DroppedRowsWarning(counts.dropped, counts.rows, missing))
    return parts[0] if folds is None else parts


def moments_of(source: Any, request: Request) -> tuple[list[Moments], RowCounts]:
    """The moments of each fold, or of all rows, and the rows counted: see `read_moments`."""
    distributed = comes_from(source, "dask", "dask_expr", "pyspark")
    if distributed and request.categories:
        raise TypeError(
            "Categories are for files and frames in memory; encode the columns of Dask and Spark "
            "frames by their own means."
        )
    if distributed and request.csv:
        raise TypeError("csv is for files; Dask and Spark read theirs by their own means.")
    if not distributed:
        from sparsestep.sources.summing import sums_of
    elif comes_from(source, "pyspark"):
        from sparsestep.sources.spark import sums_of
    else:
        from sparsestep.sources.dask import sums_of
    try:
        parts, counts, where = sums_of(source, request)
    except OutOfRangeError as error:
        raise error.naming(request.target) from error
    features = request.features
    encoded = {
        name: tuple(known)
        for name, known in request.categories.items()
        if features is None or name in features
    }
    labels = {"target_names": (request.target,), "categories": encoded}
    return finish(parts, counts, where, request.folds, **labels), counts


def read_categories(
    source: Any,
    columns: Sequence[str] | None = None,
    *,
    codes: Sequence[str] = (),
    missing: bool = False,
    csv: CsvFormat | None = None,
) -> dict[str, list[str]]:
    """The different texts in each column of text, as `read_moments` takes them; one pass.

    Parameters
    ----------
    source : path, list of paths, or table
        As in `read_moments`, but not of Dask or Spark, and not a stream that can be read only once.
    columns : list of str, optional
        The columns to look at; all if None. Those that do not hold text are passed over.
    codes : list of str, optional
        Columns that hold categories whatever their values look like, such as numbers of districts,
        years or dates. Their values are written as texts.
    missing : bool, default False
        Give the missing values of a column a category of their own, ``"(missing)"``.
    csv : CsvFormat, optional
        As in `read_moments`.

    Returns
    -------
    dict of str to list of str
        The most frequent first, then the others, sorted.

    Raises
    ------
    NotNumbersError
        If most texts of a column are numbers but not all, if they are dates or times, or if most
        occur only once.
    ValueError
        If a column is not there, or has no text or too many different ones.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from sparsestep import read_moments
    >>> from sparsestep.sources import read_categories
    >>> flats = pa.table({"city": ["Rome", "Oslo", "Rome"], "zone": [1, 2, 1], "price": [7, 8, 9]})
    >>> categories = read_categories(flats, ["city", "zone"])
    >>> categories
    {'city': ['Rome', 'Oslo']}
    >>> read_moments(flats, "price", categories=categories).feature_names
    ('city=Oslo', 'zone')
    >>> read_categories(flats, ["zone"], codes=["zone"])
    {'zone': ['1', '2']}
    """
    from sparsestep.sources.one_hot import categories_of
    from sparsestep.sources.rows import open_rows

    rows = open_rows(source, csv)
    require_columns([*(columns or ()), *codes], rows.names, rows.where)
    names = dict.fromkeys([*(rows.names if columns is None else columns), *codes])
    return categories_of(rows, list(names), set(codes), missing)
