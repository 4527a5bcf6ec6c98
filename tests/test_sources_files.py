import decimal
import gzip
import os

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv
import pyarrow.dataset as ds
import pyarrow.feather
import pyarrow.parquet as pq
import pytest

from source_data import (
    FEATURES,
    assert_folds,
    assert_moments,
    assert_no_digit_lost,
    expected,
    far_away,
    make_table,
    write,
)
from sparsestep import Moments, read_moments
from sparsestep.errors import DroppedRowsWarning, RowNamesWarning
from sparsestep.sources import file_rows, rows
from sparsestep.sources.folds import fold_numbers
from sparsestep.sources.request import choose
from sparsestep.sources.rows import open_rows


def write_parquet(table, folder):
    """Three files with several groups of rows each."""
    for i, start in enumerate((0, 301, 650)):
        end = (301, 650, table.num_rows)[i]
        pq.write_table(table.slice(start, end - start), folder / f"part-{i}.parquet", 100)
    return folder


# -- every kind of source has the same moments -----------------------------------------------


def written(name, writer):
    """A source: a file of this name."""

    def make(table, folder):
        writer(table, folder / name)
        return folder / name

    return make


def compressed(table, path):
    with gzip.open(path, "wb") as file:
        pa.csv.write_csv(table, file)


def in_batches(table, path):
    with pa.ipc.new_file(path, table.schema) as writer:
        writer.write_table(table, max_chunksize=130)


def with_tabs(table, path):
    pa.csv.write_csv(table, path, pa.csv.WriteOptions(delimiter="\t"))


SOURCES = {
    "folder": write_parquet,
    "pattern": lambda table, folder: str(write_parquet(table, folder) / "*.parquet"),
    "list": lambda table, folder: sorted(write_parquet(table, folder).glob("*.parquet")),
    "address": lambda table, folder: write_parquet(table, folder).as_uri(),
    "csv": lambda table, folder: write(table, folder / "all.csv"),
    "compressed csv": written("all.csv.gz", compressed),
    "tsv": written("all.tsv", with_tabs),
    "arrow": written("all.arrow", in_batches),
    "feather": lambda table, folder: write(table, folder / "all.feather"),
    "dataset": lambda table, folder: ds.dataset(write_parquet(table, folder)),
    "reader": lambda table, folder: table.to_reader(max_chunksize=77),
    "table": lambda table, folder: table,
    "pandas": lambda table, folder: table.to_pandas(),
    "pandas of arrow": lambda table, folder: table.to_pandas(types_mapper=pd.ArrowDtype),
    "polars": lambda table, folder: pl.from_arrow(table),
}


@pytest.mark.parametrize("make", SOURCES.values(), ids=SOURCES)
def test_moments_and_folds_are_the_same_from_every_source(make, table, tmp_path, monkeypatch):
    # Small blocks, so that several of them, and several threads, are at work here too.
    monkeypatch.setattr(rows, "BLOCK_BYTES", 8 * 6 * 90)
    moments = read_moments(make(table, tmp_path), "y", features=FEATURES)
    assert moments.feature_names == tuple(FEATURES)
    assert_moments(moments, expected(table))
    (tmp_path / "again").mkdir()
    folds = read_moments(make(table, tmp_path / "again"), "y", features=FEATURES, folds=7, seed=5)
    assert_folds(folds, table, fold_numbers(table.num_rows, 7, seed=5))


def test_features_come_in_the_order_asked_for_or_in_that_of_the_columns(table, tmp_path):
    folder, order = write_parquet(table, tmp_path), ["small", "wide"]
    assert_moments(read_moments(folder, "y", features=order), expected(table, features=order))
    moments = read_moments(folder, "y", weight="w")
    assert moments.feature_names == ("wide", "count", "flag", "small")


@pytest.mark.parametrize("folds", [None, 4])
def test_weights(folds, table, tmp_path):
    folder = write_parquet(table, tmp_path)
    moments = read_moments(folder, "y", features=FEATURES, weight="w", folds=folds)
    if folds is None:
        assert_moments(moments, expected(table, weight="w"))
    else:
        assert_folds(moments, table, fold_numbers(table.num_rows, folds), weight="w")


def test_blocks_of_a_table_far_from_zero_lose_no_digit(tmp_path, monkeypatch):
    monkeypatch.setattr(rows, "BLOCK_BYTES", 8 * 3 * 20)
    near, far = far_away()
    pq.write_table(far, tmp_path / "t.parquet", row_group_size=50)
    for source in (far, far.to_pandas(), tmp_path / "t.parquet"):
        assert_no_digit_lost(near, read_moments(source, "y"))
        assert_no_digit_lost(near, Moments.merge(read_moments(source, "y", folds=7)))


def test_a_block_of_zero_weights_is_no_rows(monkeypatch):
    monkeypatch.setattr(rows, "BLOCK_BYTES", 8 * 3 * 10)
    table = pa.table(
        {"x": np.arange(40.0), "y": np.arange(40.0) ** 2, "w": [0.0] * 20 + [1.0] * 20}
    )
    moments = read_moments(table, "y", weight="w", folds=2)
    assert sum(fold.n_samples for fold in moments) == 20
    assert_moments(moments[0] + moments[1], expected(table, features=["x"], weight="w"))


@pytest.fixture(params=["by pyarrow", "in whole groups", "in slices"])
def each_way(request, monkeypatch):
    """Parquet files are read in each of the three ways."""
    if request.param != "by pyarrow":
        monkeypatch.setattr(file_rows, "ROW_GROUP_BYTES", 0)
    if request.param == "in slices":
        monkeypatch.setattr(file_rows, "WHOLE_GROUP_BYTES", 0)


def test_folders_named_key_value_are_columns(each_way, table, tmp_path):
    for year, start in ((2020, 0), (2021, 400)):
        (tmp_path / f"year={year}").mkdir()
        part = table.slice(start, 400)
        pq.write_table(part, tmp_path / f"year={year}" / "a.parquet")
    moments = read_moments(tmp_path, "y", features=["wide", "year"])
    years = np.repeat([2020, 2021], 400)
    both = table.slice(0, 800).append_column("year", pa.array(years))
    assert_moments(moments, expected(both, features=["wide", "year"]))


def test_a_file_outside_the_folders_has_no_value(each_way, table, tmp_path):
    (tmp_path / "year=2020").mkdir()
    pq.write_table(table.slice(0, 400), tmp_path / "year=2020" / "a.parquet")
    pq.write_table(table.slice(400, 300), tmp_path / "z.parquet")
    with pytest.raises(ValueError, match=r"'year' has a missing value in row 0 .* of .*z\.parquet"):
        read_moments(tmp_path, "y")
    with pytest.warns(DroppedRowsWarning, match="Left out 300 of 700 rows"):
        assert read_moments(tmp_path, "y", drop_missing=True).n_samples == 400
    assert read_moments(tmp_path, "y", features=["wide"]).n_samples == 700


@pytest.mark.parametrize(
    "own", [pa.array([1, 2, 4]), pa.array(["a", "b", "c"])], ids=["numbers", "texts"]
)
@pytest.mark.parametrize("which", [0, 1])
def test_a_column_both_of_a_folder_and_of_a_file_is_refused(which, own, tmp_path):
    for year in (2020, 2021):
        (tmp_path / f"year={year}").mkdir()
        table = pa.table({"x": [1.0, 2.0, 5.0], "y": [1.0, 2.0, 3.0]})
        if year == 2020 + which:
            table = table.append_column("year", own)
        pq.write_table(table, tmp_path / f"year={year}" / "a.parquet")
    message = rf"Column 'year' is in .*year={2020 + which}/a\.parquet, and folders named year="
    with pytest.raises(ValueError, match=message):
        read_moments(tmp_path, "y")
    pattern = str(tmp_path / "*" / "*.parquet")
    assert read_moments(pattern, "y", features=["x"]).n_samples == 6


def test_large_groups_of_rows_are_read_in_slices(table, tmp_path, monkeypatch):
    pq.write_table(table, tmp_path / "one.parquet")
    # Types that differ between the files meet in doubles, also slice by slice.
    second = table.set_column(1, "count", table.column("count").cast(pa.float64()))
    pq.write_table(second, tmp_path / "two.parquet")
    whole = read_moments(tmp_path, "y", features=FEATURES, folds=3)
    monkeypatch.setattr(file_rows, "ROW_GROUP_BYTES", 0)
    monkeypatch.setattr(rows, "BLOCK_BYTES", 8 * 5 * 64)
    batches = [batch for batch, _ in _opened(tmp_path).batches(64)]
    assert max(batch.num_rows for batch in batches) <= 64
    monkeypatch.setattr(file_rows, "WHOLE_GROUP_BYTES", 0)
    sliced = read_moments(tmp_path, "y", features=FEATURES, folds=3)
    for a, b in zip(whole, sliced, strict=True):
        np.testing.assert_allclose(a.xtx, b.xtx, rtol=1e-12)
        assert a.n_samples == b.n_samples


@pytest.fixture
def grouped(table, tmp_path, monkeypatch):
    """Two files whose groups of 60 rows are summed in twos, each by the thread that decodes it."""
    monkeypatch.setattr(rows, "BLOCK_BYTES", 8 * 5 * 150)
    for name, part in (("one", table.slice(0, 500)), ("two", table.slice(500))):
        pq.write_table(part, tmp_path / f"{name}.parquet", row_group_size=60)
    return tmp_path


def test_whole_groups_of_rows(grouped, table):
    places = [(place.first, place.rows) for _, (place,) in _opened(grouped).blocks(150)]
    assert places == 2 * [(0, 120), (120, 120), (240, 120), (360, 140)]
    numbers = fold_numbers(table.num_rows, 3)
    found = []
    try:
        for threads in (1, 4):
            pa.set_cpu_count(threads)
            found.append(read_moments(grouped, "y", features=FEATURES, folds=3))
    finally:
        pa.set_cpu_count(os.cpu_count())
    for k, (one, four) in enumerate(zip(*found, strict=True)):
        assert_moments(one, expected(table, rows=numbers == k))
        np.testing.assert_array_equal(one.xtx, four.xtx)
        np.testing.assert_array_equal(one.mean_x, four.mean_x)


def test_a_missing_value_in_a_group_of_rows(grouped, table):
    holed = table.slice(500).to_pandas()
    holed.loc[321, "wide"] = np.nan
    pq.write_table(pa.table(holed), grouped / "two.parquet", row_group_size=60)
    with pytest.raises(ValueError, match=r"'wide'.*row 321 .*two\.parquet"):
        read_moments(grouped, "y", features=FEATURES, folds=3)
    with pytest.warns(DroppedRowsWarning, match="Left out 1 of 1000 rows"):
        folds = read_moments(grouped, "y", features=FEATURES, folds=3, drop_missing=True)
    kept = np.delete(np.arange(1000), 821)
    for k, fold in enumerate(folds):
        assert_moments(fold, expected(table, rows=kept[fold_numbers(999, 3) == k]))


def test_a_damaged_group_of_rows_is_named(grouped):
    path = grouped / "two.parquet"
    data = bytearray(path.read_bytes())
    offset = pq.read_metadata(path).row_group(3).column(0).data_page_offset
    data[offset : offset + 40] = bytes(40)
    path.write_bytes(data)
    with pytest.raises(ValueError, match=r"two\.parquet cannot be read"):
        read_moments(grouped, "y", features=FEATURES)


def _opened(path):
    """The files behind a path, as they are read."""
    files = open_rows(path)
    files.select([*FEATURES, "y"])
    return files


def test_more_columns_than_rows_in_a_block(monkeypatch):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(300, 40)), rng.normal(size=300)
    table = pa.table({**{f"x{j}": X[:, j] for j in range(40)}, "y": y})
    monkeypatch.setattr(rows, "BLOCK_BYTES", 8 * 41 * 25)
    names = [f"x{j}" for j in range(40)]
    numbers = fold_numbers(300, 5)
    for k, fold in enumerate(read_moments(table, "y", folds=5)):
        assert not fold.is_thin
        assert_moments(fold, expected(table, rows=numbers == k, features=names))


# -- types -----------------------------------------------------------------------------------


def test_integers_that_turn_out_to_be_fractions_later_in_a_text_file(tmp_path):
    lines = ["y,x", *(f"{i},{i % 7}" for i in range(300_000)), "0.5,0.25"]
    (tmp_path / "late.csv").write_text("\n".join(lines))
    moments = read_moments(tmp_path / "late.csv", "y")
    assert moments.n_samples == 300_001
    x = np.append(np.arange(300_000) % 7, 0.25)
    np.testing.assert_allclose(moments.mean_x, [x.mean()], rtol=1e-12)


def test_decimals_are_numbers(tmp_path):
    values = [decimal.Decimal("1.25"), decimal.Decimal("2.50"), decimal.Decimal("-4.00")]
    table = pa.table({"x": pa.array(values), "y": [1, 2, 3]})
    pq.write_table(table, tmp_path / "d.parquet")
    for source in (table, tmp_path, table.to_pandas()):
        np.testing.assert_allclose(read_moments(source, "y").mean_x, [-0.25 / 3], rtol=1e-14)


def test_nullable_integers_of_pandas():
    frame = pd.DataFrame({"x": pd.array([1, 2, 4], dtype="Int64"), "y": [1.0, 3.0, 2.0]})
    np.testing.assert_allclose(read_moments(frame, "y").xtx, [[14 / 3]])


@pytest.mark.parametrize(
    ("values", "what"),
    [
        (["a", "b"], "holds text"),
        (pd.to_datetime(["2020-01-01", "2021-01-01"]), "holds dates or times"),
        (pd.Categorical(["a", "b"]), "holds categories"),
        ([[1], [2]], "holds values of type list"),
    ],
)
def test_columns_without_numbers_are_named(values, what, tmp_path):
    frame = pd.DataFrame({"bad": values, "x": [1.0, 2.0], "y": [1.0, 2.0]})
    pq.write_table(pa.Table.from_pandas(frame), tmp_path / "t.parquet")
    with pytest.raises(TypeError, match=rf"Column 'bad' {what}.*; turn it into numbers, or choose"):
        read_moments(frame, "y")
    with pytest.raises(TypeError, match=rf"'bad' of .*t\.parquet {what}"):
        read_moments(tmp_path / "t.parquet", "y")
    assert read_moments(tmp_path / "t.parquet", "y", features=["x"]).n_samples == 2


def test_values_of_mixed_kinds_in_a_pandas_column():
    frame = pd.DataFrame({"x": pd.Series([1, "one"], dtype=object), "y": [1.0, 2.0]})
    with pytest.raises(TypeError, match="Column 'x' holds values that are not all numbers"):
        read_moments(frame, "y")


# -- missing values and infinities -----------------------------------------------------------


@pytest.fixture
def holed(table, tmp_path):
    """The folder of three files with two missing values and a NaN, and the rows without one."""
    wide = table.column("wide").to_pylist()
    count = table.column("count").to_pylist()
    wide[310], count[310], wide[999], wide[5] = None, None, None, float("nan")
    holes = table.set_column(0, "wide", pa.array(wide, pa.float64()))
    holes = holes.set_column(1, "count", pa.array(count, pa.int16()))
    keep = np.setdiff1d(np.arange(1000), [5, 310, 999])
    return write_parquet(holes, tmp_path), keep


def test_a_missing_value_is_an_error_with_file_column_and_row(holed):
    folder, _ = holed
    with pytest.raises(
        ValueError, match=r"'wide' has a missing value in row 5 \(counted from 0\) of .*part-0"
    ):
        read_moments(folder, "y", features=FEATURES, folds=3)
    with pytest.raises(
        ValueError, match=r"'count' has a missing value in row 9 .*part-1\.parquet; fill it in"
    ):
        read_moments(folder, "y", features=["small", "count"])


def test_rows_with_missing_values_are_left_out_counted_and_reported(holed, table):
    folder, keep = holed
    with pytest.warns(
        DroppedRowsWarning, match=r"^Left out 3 of 1000 rows .*3 in 'wide', 1 in 'count'"
    ) as caught:
        folds = read_moments(folder, "y", features=FEATURES, folds=3, drop_missing=True)
    assert (caught[0].message.n_dropped, caught[0].message.n_rows) == (3, 1000)
    assert caught[0].filename == __file__
    # The folds are those of the remaining rows, as if the others had never been there.
    numbers = fold_numbers(997, 3)
    for k, fold in enumerate(folds):
        assert_moments(fold, expected(table, rows=keep[numbers == k]))


def test_nothing_is_reported_where_nothing_is_missing(table):
    moments = read_moments(table, "y", features=FEATURES, drop_missing=True)
    assert_moments(moments, expected(table))


@pytest.mark.parametrize(
    ("column", "x", "y"),
    [("y", [1.0, 2.0, 4.0], [1.0, None, 2.0]), ("x", [True, None, False], [1.0, 2.0, 5.0])],
    ids=["target", "booleans"],
)
@pytest.mark.parametrize("frame", [pa.table, pd.DataFrame])
def test_a_missing_target_and_a_missing_truth_value(column, x, y, frame):
    source = frame({"x": pd.array(x) if frame is pd.DataFrame else x, "y": y})
    with pytest.raises(ValueError, match=f"Column '{column}' has a missing value in row 1 "):
        read_moments(source, "y")
    with pytest.warns(DroppedRowsWarning, match="1 of 3 rows"):
        moments = read_moments(source, "y", drop_missing=True)
    assert moments.n_samples == 2
    np.testing.assert_allclose(moments.mean_x, [(x[0] + x[2]) / 2])


def test_rows_of_zero_weight_may_hold_anything():
    table = pa.table({"x": [1.0, None, 4.0], "y": [1.0, 2.0, float("inf")], "w": [1, 0, 0]})
    assert read_moments(table, "y", weight="w").n_samples == 1
    bad = table.set_column(2, "w", pa.array([1.0, 1.0, 0.0]))
    with pytest.raises(ValueError, match="Column 'x' has a missing value in row 1 "):
        read_moments(bad, "y", weight="w")


# -- refusals --------------------------------------------------------------------------------


def text(content, name="a.csv"):
    """A source: a file of this content."""

    def made(folder):
        (folder / name).write_text(content)
        return folder / name

    return made


def parquet(table):
    """A source: a Parquet file of this table."""
    return lambda folder: write(table, folder / "a.parquet")


TABLE = make_table(20)
EMPTY = pa.table({"x": pa.array([], pa.float64()), "y": pa.array([], pa.float64())})
HOLES = pa.table({"x": pa.array([None, None], pa.float64()), "y": [1.0, 2.0]})
TWICE = pa.Table.from_arrays([[1.0], [2.0], [3.0]], names=["x", "x", "y"])
NO_WEIGHT = pa.table({"x": [1.0, 2.0], "y": [1.0, 2.0], "w": [0, 0]})

# The source, or what writes it to a folder; the error; what it says; the options, y the target.
REFUSED = [
    # files
    (
        lambda folder: folder / "nothing.csv",
        FileNotFoundError,
        r"no file or folder .*nothing\.csv\.",
    ),
    (lambda folder: str(folder / "*.csv"), FileNotFoundError, r"No file matches .*\*\.csv\."),
    (lambda folder: folder, FileNotFoundError, r"has no file that ends in \.parquet"),
    *[
        (text(content, name), ValueError, rf"{name} cannot be read: ")
        for name in ("a.parquet", "a.csv", "a.arrow")
        for content in ("", "y,x\n1,2\n3\n")
    ],
    *[
        (source, ValueError, "has no rows")
        for source in (EMPTY, EMPTY.to_pandas(), parquet(EMPTY), text("y,x\n"))
    ],
    (3, TypeError, r"The source must be a path, .*, not int"),
    ([], TypeError, r"The source must be a path, .*, not list"),
    (pl.LazyFrame({"x": [1], "y": [2]}), TypeError, r"lazy frame; call its collect\(\)"),
    # columns
    (parquet(TABLE), ValueError, r"has no column 'Y'; did you mean 'y'\?$", {"target": "Y"}),
    (
        *(TABLE, ValueError, r"The table has no column 'cuont'; did you mean 'count'\?$"),
        {"features": ["wide", "cuont"]},
    ),
    (TABLE, ValueError, r"'zebra'; it has 'wide', .*'small' and 1 more\.$", {"weight": "zebra"}),
    (
        *(parquet(pa.table({"x": [1.0]})), ValueError),
        *(r"no column 'z'; its only column is 'x'\.$", {"target": "z"}),
    ),
    (TABLE, ValueError, "target 'y' is among the features", {"features": ["wide", "y"]}),
    (
        *(TABLE, ValueError, "weight 'w' is among the features"),
        {"features": ["wide", "w"], "weight": "w"},
    ),
    (TABLE, ValueError, "'y' cannot be both the target and the weight", {"weight": "y"}),
    (TABLE, ValueError, "'wide' is given more than once", {"features": ["wide", "wide"]}),
    (TABLE, ValueError, "no column left", {"features": []}),
    (TABLE, TypeError, "features must be a list .* not the text 'wide'", {"features": "wide"}),
    (TWICE, ValueError, "The table has more than one column 'x'"),
    (
        *(pd.DataFrame({0: [1.0], "y": [1.0]}), TypeError),
        "Column names must be text, but the frame has or asks for 0",
    ),
    # values
    (
        *(text("y,x\n1,2\n,3\n4,-inf\n5,6\n"), ValueError),
        r"Column 'x' has the value -inf in row 2 .*a\.csv",
        {"folds": 2, "drop_missing": True},
    ),
    (
        *(text("y,x,w\n1,2,1\n3,4,-1\n"), ValueError),
        r"Weight 'w' is -1.0 in row 1 \(counted from 0\) of .*a\.csv",
        {"weight": "w", "folds": 2},
    ),
    (text("y,x\n1,2\n3,nan\n"), ValueError, r"'x' has a missing value in row 1 "),
    (HOLES, ValueError, r"Each of the 2 rows .* \(2 in 'x'\)", {"drop_missing": True}),
    (NO_WEIGHT, ValueError, "All weights of the table are zero", {"weight": "w"}),
    (text("y,x\n1,1e200\n2,-1e200\n3,4\n"), ValueError, r"a\.csv.*olumn 'x'.*too large"),
    # folds
    *[
        (TABLE, ValueError, "folds must be a whole number of at least 2", {"folds": folds})
        for folds in (1, 0, -3, 2.0, True, "5")
    ],
    *[
        (TABLE, ValueError, "seed must be a whole number from 0", {"seed": seed})
        for seed in (-1, 2**64, 0.5, None)
    ],
]


@pytest.mark.parametrize(
    ("source", "error", "message", "options"), [(*case, {})[:4] for case in REFUSED]
)
def test_what_cannot_be_read_is_refused_by_name(source, error, message, options, tmp_path):
    source = source(tmp_path) if callable(source) else source
    with pytest.raises(error, match=message):
        read_moments(source, **{"target": "y", **options})


def test_a_name_with_brackets_is_not_a_glob(tmp_path):
    (tmp_path / "data[1].csv").write_text("y,x\n1,2\n2,3\n")
    assert read_moments(str(tmp_path / "data[1].csv"), "y").n_samples == 2


def test_hidden_and_foreign_files_in_a_folder_are_passed_over(table, tmp_path):
    write_parquet(table, tmp_path)
    (tmp_path / "_SUCCESS").write_text("")
    (tmp_path / "README.md").write_text("hello")
    (tmp_path / ".hidden.parquet").write_text("no parquet")
    assert read_moments(tmp_path, "y").n_samples == 1000


def test_files_of_unknown_or_different_kinds(table, tmp_path):
    (tmp_path / "a.xlsx").write_text("x")
    endings = r"a\.xlsx does not end in \.parquet, .*\.feather, or, after .*\.gz.* \.npz"
    with pytest.raises(ValueError, match=endings):
        read_moments(tmp_path / "a.xlsx", "y")
    write_parquet(table, tmp_path)
    (tmp_path / "b.csv").write_text("y,x\n1,2\n")
    with pytest.raises(ValueError, match=r"b\.csv and .*part-0\.parquet are of different kinds"):
        read_moments(tmp_path, "y")


def test_text_where_numbers_were_is_named_with_file_and_line(tmp_path):
    (tmp_path / "a.csv").write_text("y,x,z\n" + "1,2,3\n" * 200_000)
    (tmp_path / "b.csv").write_text("y,x,z\n" + "1,2,3\n" * 200_000 + "1,2,n.a.\n")
    with pytest.raises(
        ValueError, match=r"Column 'z' holds 'n\.a\.' in line 200002 of .*b\.csv; it is no number\."
    ):
        read_moments(tmp_path, "y")


@pytest.mark.parametrize("kind", ["csv", "parquet"])
@pytest.mark.parametrize(("lacks", "has"), ["ab", "ba"])
def test_a_column_that_one_of_the_files_lacks(kind, lacks, has, table, tmp_path):
    write(table.drop_columns("small"), tmp_path / f"{lacks}.{kind}")
    write(table, tmp_path / f"{has}.{kind}")
    message = rf"{lacks}\.{kind} has no column 'small', which .*{has}\.{kind} has; leave the col"
    with pytest.raises(ValueError, match=message):
        read_moments(tmp_path, "y")
    assert read_moments(tmp_path, "y", features=["wide"]).n_samples == 2000


def test_names_of_columns_are_not_compared_with_each_other():
    compared = 0

    class Name(str):
        __slots__ = ()
        __hash__ = str.__hash__

        def __eq__(self, other):
            nonlocal compared
            compared += 1
            return str.__eq__(self, other)

    names = [Name(f"x{j}") for j in range(1000)]
    for features in (None, names[1:]):
        assert len(choose(names, names[0], features, None, "the table")) == 999
    assert compared < 10 * len(names)


def test_too_many_folds(table):
    few = table.slice(0, 4)
    with pytest.raises(ValueError, match="The table has 4 rows, which leave 6 of 10 folds empty"):
        read_moments(few, "y", folds=10)
    assert [fold.n_samples for fold in read_moments(few, "y", folds=4)] == [1, 1, 1, 1]


def test_a_target_out_of_range_is_called_by_its_name(tmp_path, monkeypatch):
    table = pa.table({"x": [1.0, 2.0, 5.0, 7.0], "price": [1e200, -1e200, 3.0, 4.0]})
    message = r"^In rows 0 to 3 \(counted from 0\): The target 'price' reaches 1e\+200 in size, too"
    with pytest.raises(ValueError, match=message):
        read_moments(table, "price")
    # Each block for itself has a sum.
    table = pa.table({"x": [1.0, 2.0, 5.0, 7.0], "price": [1e200, 1e200, -1e200, -1e200]})
    monkeypatch.setattr(rows, "BLOCK_BYTES", 32)
    with pytest.raises(ValueError, match="The values of the target 'price' are too large"):
        read_moments(table, "price")


# -- progress --------------------------------------------------------------------------------


def test_progress_goes_to_standard_error(table, tmp_path, capsys):
    read_moments(write_parquet(table, tmp_path), "y", progress=True)
    (tmp_path / "a.csv").write_text("y,x\n1,2\n2,3\n")
    read_moments(tmp_path / "a.csv", "y", progress=True)
    out, err = capsys.readouterr()
    assert out == ""
    assert "1,000 of 1,000 rows" in err
    assert "2 rows, " in err
    assert "rows/s" in err


def test_silence_without_progress(table, capsys):
    read_moments(table, "y")
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize("kind", ["parquet", "feather", "csv", "arrow"])
def test_the_index_of_pandas_is_no_feature(tmp_path, kind):
    frame = pd.DataFrame({"a": [1.0, 2.0, 4.0, 3.0], "b": [0, 1, 1, 0], "y": [1.0, 2.0, 3.0, 5.0]})
    frame = frame[frame["y"] != 2.0]
    source = pa.Table.from_pandas(frame)
    if kind == "csv":
        source = tmp_path / "table.csv"
        frame.to_csv(source)
    elif kind != "arrow":
        source = write(source, tmp_path / f"table.{kind}")
    with pytest.warns(RowNamesWarning, match=r"left out; features says otherwise\.$"):
        assert read_moments(source, "y").feature_names == ("a", "b")


def test_an_index_with_names_is_a_feature_only_if_asked_for(tmp_path):
    frame = pd.DataFrame({"a": [1.0, 2.0, 4.0], "b": [0, 1, 1], "y": [1.0, 2.0, 3.0]})
    frame.set_index(["a", "b"]).assign(c=[1, 0, 0]).to_parquet(tmp_path / "t.parquet")
    with pytest.warns(RowNamesWarning, match="^Columns 'a', 'b' name the rows and are left out"):
        assert read_moments(tmp_path / "t.parquet", "y").feature_names == ("c",)
    moments = read_moments(tmp_path / "t.parquet", "y", features=["b", "c"])
    assert moments.feature_names == ("b", "c")
    nameless = frame.set_index(pd.Index([3, 1, 2], name=""))
    nameless.to_parquet(tmp_path / "n.parquet")
    with pytest.warns(RowNamesWarning, match="^Column '' names the rows and is left out"):
        assert read_moments(tmp_path / "n.parquet", "y").feature_names == ("a", "b")
    with pytest.warns(RowNamesWarning, match="^Column 'b' names the rows and is left out"):
        assert read_moments(tmp_path / "t.parquet", "a").feature_names == ("y", "c")
