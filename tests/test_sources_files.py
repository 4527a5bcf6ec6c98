import decimal
import gzip
import os

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv
import pyarrow.feather
import pyarrow.parquet as pq
import pytest

from source_data import (
    FEATURES,
    SOURCES,
    assert_folds,
    assert_moments,
    assert_no_digit_lost,
    assert_same,
    expected,
    far_away,
    in_parts,
    make_table,
    write,
)
from sparsestep import Moments, read_moments
from sparsestep.errors import DroppedRowsWarning, RowNamesWarning
from sparsestep.sources import CsvFormat, file_rows, rows
from sparsestep.sources.folds import fold_numbers
from sparsestep.sources.request import choose
from sparsestep.sources.rows import open_rows


@pytest.mark.parametrize("kind", SOURCES)
def test_moments_and_folds_are_the_same_from_every_source(kind, table, tmp_path, monkeypatch):
    # Small blocks, so that several of them, and several threads, are at work here too.
    monkeypatch.setattr(rows, "BLOCK_BYTES", 8 * 6 * 90)
    moments = read_moments(SOURCES[kind](table, tmp_path), "y", weight="w")
    assert moments.feature_names == tuple(FEATURES)
    assert_moments(moments, expected(table, weight="w"))
    order = FEATURES[::-1]
    folds = read_moments(SOURCES[kind](table, tmp_path), "y", features=order, folds=7, seed=5)
    assert_folds(folds, table, fold_numbers(table.num_rows, 7, seed=5), features=order)


def test_blocks_of_a_table_far_from_zero_lose_no_digit(tmp_path, monkeypatch):
    monkeypatch.setattr(rows, "BLOCK_BYTES", 8 * 3 * 20)
    near, far = far_away()
    pq.write_table(far, tmp_path / "t.parquet", row_group_size=50)
    for source in (far, far.to_pandas(), tmp_path / "t.parquet"):
        assert_no_digit_lost(near, read_moments(source, "y"))
        assert_no_digit_lost(near, Moments.merge(read_moments(source, "y", folds=7)))


def test_a_block_of_zero_weights_is_no_rows(monkeypatch):
    monkeypatch.setattr(rows, "BLOCK_BYTES", 8 * 3 * 10)
    x = np.arange(40.0)
    table = pa.table({"x": x, "y": x**2, "w": np.repeat([0.0, 1.0], 20)})
    folds = read_moments(table, "y", weight="w", folds=2)
    assert_moments(folds[0] + folds[1], expected(table, features=["x"], weight="w"))


@pytest.fixture(params=["in whole groups", "in slices"])
def each_way(request, monkeypatch):
    """Parquet files are read in both ways."""
    if request.param == "in slices":
        monkeypatch.setattr(file_rows, "WHOLE_GROUP_BLOCKS", 0)


def test_folders_named_key_value_are_columns(each_way, table, tmp_path):
    for year, start in ((2020, 0), (2021, 400)):
        (tmp_path / f"year={year}").mkdir()
        pq.write_table(table.slice(start, 400), tmp_path / f"year={year}" / "a.parquet")
    features = ["wide", "year"]
    both = table.slice(0, 800).append_column("year", pa.array(np.repeat([2020, 2021], 400)))
    want = expected(both, features=features)
    assert_moments(read_moments(tmp_path, "y", features=features), want)
    # A file outside the folders has no value.
    pq.write_table(table.slice(800), tmp_path / "z.parquet")
    with pytest.raises(ValueError, match=r"'year' has a missing value in row 0 .* of .*z\.parquet"):
        read_moments(tmp_path, "y")
    with pytest.warns(DroppedRowsWarning, match="Left out 200 of 1000 rows"):
        assert_moments(read_moments(tmp_path, "y", features=features, drop_missing=True), want)
    assert read_moments(tmp_path, "y", features=["wide"]).n_samples == 1000


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


def sizes_of_blocks(folder, most):
    """How many rows the blocks have in which the files of a folder are read."""
    files = open_rows(folder)
    files.select([*FEATURES, "y"])
    return [block.rows for block in files.blocks(most)]


def test_large_groups_of_rows_are_read_in_slices(table, tmp_path, monkeypatch):
    write(table, tmp_path / "one.parquet")
    # Types that differ between the files meet in doubles, also slice by slice.
    count = table.column("count").cast(pa.float64())
    write(table.set_column(1, "count", count), tmp_path / "two.parquet")
    monkeypatch.setattr(rows, "BLOCK_BYTES", 8 * 5 * 64)
    assert max(sizes_of_blocks(tmp_path, 64)) <= 64
    folds = read_moments(tmp_path, "y", features=FEATURES, folds=3)
    assert_folds(folds, pa.concat_tables([table, table]), fold_numbers(2000, 3))


@pytest.fixture
def grouped(table, tmp_path, monkeypatch):
    """Two files whose groups of 60 rows are summed in twos, each by the thread that decodes it."""
    monkeypatch.setattr(rows, "BLOCK_BYTES", 8 * 5 * 150)
    for name, part in (("one", table.slice(0, 500)), ("two", table.slice(500))):
        pq.write_table(part, tmp_path / f"{name}.parquet", row_group_size=60)
    return tmp_path


def test_whole_groups_of_rows(grouped, table):
    assert sizes_of_blocks(grouped, 150) == 2 * [120, 120, 120, 140]
    found = []
    try:
        for threads in (1, 4):
            pa.set_cpu_count(threads)
            found.append(read_moments(grouped, "y", features=FEATURES, folds=3))
    finally:
        pa.set_cpu_count(os.cpu_count())
    assert_folds(found[0], table, fold_numbers(1000, 3))
    for one, four in zip(*found, strict=True):
        assert_same(one, four)


def test_a_missing_value_in_a_group_of_rows(grouped, table):
    holed = table.slice(500).to_pandas()
    holed.loc[321, "wide"] = np.nan
    pq.write_table(pa.table(holed), grouped / "two.parquet", row_group_size=60)
    with pytest.raises(ValueError, match=r"'wide'.*row 321 .*two\.parquet"):
        read_moments(grouped, "y", features=FEATURES, folds=3)
    with pytest.warns(DroppedRowsWarning, match="Left out 1 of 1000 rows"):
        folds = read_moments(grouped, "y", features=FEATURES, folds=3, drop_missing=True)
    assert_folds(folds, table.take(np.delete(np.arange(1000), 821)), fold_numbers(999, 3))


def test_a_damaged_group_of_rows_is_named(grouped):
    path = grouped / "two.parquet"
    data = bytearray(path.read_bytes())
    offset = pq.read_metadata(path).row_group(3).column(0).data_page_offset
    data[offset : offset + 40] = bytes(40)
    path.write_bytes(data)
    with pytest.raises(ValueError, match=r"two\.parquet cannot be read"):
        read_moments(grouped, "y", features=FEATURES)


def test_more_columns_than_rows_in_a_block(monkeypatch):
    monkeypatch.setattr(rows, "BLOCK_BYTES", 8 * 41 * 25)
    names = [f"x{j}" for j in range(40)]
    table = dict(zip([*names, "y"], np.random.default_rng(0).normal(size=(41, 300)), strict=True))
    folds = read_moments(pa.table(table), "y", folds=5)
    assert not folds[0].is_thin
    assert_folds(folds, pa.table(table), fold_numbers(300, 5), features=names)


def test_integers_that_turn_out_to_be_fractions_later_in_a_text_file(tmp_path):
    lines = ["y,x", *(f"{i},{i % 7}" for i in range(300_000)), "0.5,0.25"]
    (tmp_path / "late.csv").write_text("\n".join(lines))
    moments = read_moments(tmp_path / "late.csv", "y")
    assert moments.n_samples == 300_001
    x = np.append(np.arange(300_000) % 7, 0.25)
    np.testing.assert_allclose(moments.mean_x, [x.mean()], rtol=1e-12)


def test_decimals_and_nullable_integers_are_numbers(tmp_path):
    table = pa.table({"x": list(map(decimal.Decimal, ("1.25", "2.50", "-4.00"))), "y": [1, 2, 3]})
    pq.write_table(table, tmp_path / "d.parquet")
    for source in (table, tmp_path, table.to_pandas()):
        np.testing.assert_allclose(read_moments(source, "y").mean_x, [-0.25 / 3], rtol=1e-14)
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


@pytest.fixture
def holed(table, tmp_path):
    """The folder of three files with two missing values and a NaN, and the rows without one."""
    frame = table.to_pandas().astype({"wide": "Float64", "count": "Int16"})
    frame.loc[[310, 999], "wide"] = frame.loc[310, "count"] = None
    holes = pa.Table.from_pandas(frame)
    wide = holes["wide"].to_pylist()
    wide[5] = float("nan")
    holes = holes.set_column(0, "wide", pa.array(wide, pa.float64()))
    return in_parts(holes, tmp_path), np.setdiff1d(np.arange(1000), [5, 310, 999])


def test_missing_values_are_named_or_their_rows_left_out_and_counted(holed, table):
    folder, keep = holed
    words = r"'wide' has a missing value in row 5 \(counted from 0\) of .*part-0"
    with pytest.raises(ValueError, match=words):
        read_moments(folder, "y", features=FEATURES, folds=3)
    words = r"'count' has a missing value in row 9 .*part-1\.parquet; fill it in"
    with pytest.raises(ValueError, match=words):
        read_moments(folder, "y", features=["small", "count"])
    words = r"^Left out 3 of 1000 rows .*3 in 'wide', 1 in 'count'"
    with pytest.warns(DroppedRowsWarning, match=words) as caught:
        folds = read_moments(folder, "y", features=FEATURES, folds=3, drop_missing=True)
    assert (caught[0].message.n_dropped, caught[0].message.n_rows) == (3, 1000)
    assert caught[0].filename == __file__
    # The folds are those of the remaining rows, as if the others had never been there.
    assert_folds(folds, table.take(keep), fold_numbers(997, 3))
    # Nothing is reported where nothing is missing.
    assert_moments(
        read_moments(table, "y", drop_missing=True, weight="w"), expected(table, weight="w")
    )


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


def text(content, name="a.csv"):
    """A source: a file of this content."""

    def made(folder):
        (folder / name).write_bytes(content.encode() if isinstance(content, str) else content)
        return folder / name

    return made


def parquet(table):
    """A source: a Parquet file of this table."""
    return lambda folder: write(table, folder / "a.parquet")


TABLE = make_table(20)
EMPTY = pa.table({"x": pa.array([], pa.float64()), "y": pa.array([], pa.float64())})
HOLES = pa.table({"x": pa.array([None, None], pa.float64()), "y": [1.0, 2.0]})
TWICE = pa.Table.from_arrays([[1.0], [2.0], [3.0]], names=["x", "x", "y"])
MISSPELT, SEPARATED = {"features": ["cuont"]}, {"csv": CsvFormat(";")}
DAMAGED = gzip.compress(b"a;y\n1;2\n" * 1000)[:-30]
NO_WEIGHT = pa.table({"x": [1.0, 2.0], "y": [1.0, 2.0], "w": [0, 0]})
MIXED = pd.DataFrame({"x": pd.Series([1, "one"], dtype=object), "y": [1.0, 2.0]})

# The source, or what writes it to a folder; the error; what it says; the options, y the target.
REFUSED = [
    (lambda folder: folder / "nothing.csv", FileNotFoundError, r"no file or folder .*nothing\.csv"),
    (lambda folder: str(folder / "*.csv"), FileNotFoundError, r"No file matches .*\*\.csv\."),
    (lambda folder: folder, FileNotFoundError, r"has no file that ends in \.parquet"),
    (text("", "a.parquet"), ValueError, "a.parquet cannot be read: "),
    (text(DAMAGED, "a.csv.gz"), ValueError, r"a\.csv\.gz cannot be read"),
    (parquet(TABLE), ValueError, r"are for CSV files; .*a\.parquet is none", SEPARATED),
    (text("y,x\n1,2\n3\n"), ValueError, "a.csv cannot be read: "),
    *[(text(t, "a.arrow"), ValueError, "a.arrow cannot be read: ") for t in ("", "y,x\n1,2\n")],
    *[(source, ValueError, "has no rows") for source in (EMPTY, EMPTY.to_pandas(), parquet(EMPTY))],
    (3, TypeError, r"The source must be a path, .*, not int"),
    ([], TypeError, r"The source must be a path, .*, not list"),
    (pl.LazyFrame({"x": [1], "y": [2]}), TypeError, r"lazy frame; call its collect\(\)"),
    (text("x", "a.xlsx"), ValueError, r"a\.xlsx .* \.parquet, .*\.feather, .*\.gz.* \.npz"),
    (parquet(TABLE), ValueError, r"has no column 'Y'; did you mean 'y'\?$", {"target": "Y"}),
    (TABLE, ValueError, "table has no column 'cuont'; did you mean 'count'", MISSPELT),
    (TABLE, ValueError, r"'zebra'; it has 'wide', .*'small' and 1 more\.$", {"weight": "zebra"}),
    (EMPTY.select("x"), ValueError, r"no column 'z'; its only column is 'x'\.$", {"target": "z"}),
    (TABLE, ValueError, "target 'y' is among the features", {"features": ["wide", "y"]}),
    (TABLE, ValueError, "weight 'w' is among the fe", {"features": ["wide", "w"], "weight": "w"}),
    (TABLE, ValueError, "'y' cannot be both the target and the weight", {"weight": "y"}),
    (TABLE, ValueError, "'wide' is given more than once", {"features": ["wide", "wide"]}),
    (TABLE, ValueError, "no column left", {"features": []}),
    (TABLE, TypeError, "features must be a list .* not the text 'wide'", {"features": "wide"}),
    (TWICE, ValueError, "The table has more than one column 'x'"),
    (pd.DataFrame({0: [1.0], "y": [1.0]}), TypeError, "names must be text, but .* asks for 0"),
    (MIXED, TypeError, "Column 'x' holds values that are not all numbers"),
    (
        *(text("y,x\n1,2\n,3\n4,-inf\n5,6\n"), ValueError),
        *(r"Column 'x' .* -inf in row 2 .*a\.csv", {"folds": 2, "drop_missing": True}),
    ),
    (
        *(text("y,x,w\n1,2,1\n3,4,-1\n"), ValueError),
        *(r"Weight 'w' is -1.0 in row 1 .*a\.csv", {"weight": "w", "folds": 2}),
    ),
    (HOLES, ValueError, r"Each of the 2 rows .* \(2 in 'x'\)", {"drop_missing": True}),
    (NO_WEIGHT, ValueError, "All weights of the table are zero", {"weight": "w"}),
    (text("y,x\n1,1e200\n2,-1e200\n3,4\n"), ValueError, r"a\.csv.*olumn 'x'.*too large"),
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


def test_which_files_are_read(table, tmp_path):
    in_parts(table, tmp_path)
    for name in ("_SUCCESS", "README.md", ".hidden.parquet"):
        (tmp_path / name).write_text("no table")
    assert read_moments(tmp_path, "y").n_samples == 1000
    # A name with brackets is not a pattern.
    (tmp_path / "data[1].csv").write_text("y,x\n1,2\n2,3\n")
    assert read_moments(str(tmp_path / "data[1].csv"), "y").n_samples == 2
    words = r"data\[1\]\.csv and .*part-0\.parquet are of different kinds"
    with pytest.raises(ValueError, match=words):
        read_moments(tmp_path, "y")


def test_text_where_numbers_were_is_named_with_file_and_line(tmp_path):
    numbers = "y,x,z\n" + "1,2,3\n" * 200_000
    (tmp_path / "a.csv").write_text(numbers)
    (tmp_path / "b.csv").write_text(numbers + "1,2,n.a.\n")
    words = r"Column 'z' holds 'n\.a\.' in line 200002 of .*b\.csv; it is no number\."
    with pytest.raises(ValueError, match=words):
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
        assert len(choose(names, names[0], features, None, "the table")[0]) == 999
    assert compared < 10 * len(names)


@pytest.mark.parametrize(
    ("price", "words"),
    [
        (
            [1e200, -1e200, 3.0, 4.0],
            r"^In rows 0 to 1 .*: The target 'price' reaches 1e\+200 in si",
        ),
        # Each block for itself has a sum.
        ([1e200, 1e200, -1e200, -1e200], "The values of the target 'price' are too large"),
    ],
)
def test_a_target_out_of_range_is_called_by_its_name(price, words, monkeypatch):
    monkeypatch.setattr(rows, "BLOCK_BYTES", 32)
    with pytest.raises(ValueError, match=words):
        read_moments(pa.table({"x": [1.0, 2.0, 5.0, 7.0], "price": price}), "price")


def test_progress_goes_to_standard_error(table, tmp_path, capsys):
    read_moments(in_parts(table, tmp_path), "y")
    assert capsys.readouterr() == ("", "")
    read_moments(tmp_path, "y", progress=True)
    (tmp_path / "a.csv").write_text("y,x\n1,2\n2,3\n")
    read_moments(tmp_path / "a.csv", "y", progress=True)
    out, err = capsys.readouterr()
    assert out == ""
    for words in ("1,000 of 1,000 rows", "2 rows, ", "rows/s"):
        assert words in err


@pytest.mark.parametrize("kind", ["parquet", "feather", "csv", "arrow"])
def test_the_index_of_pandas_is_no_feature(tmp_path, kind):
    frame = pd.DataFrame({"a": [1.0, 4.0, 3.0], "b": [0, 1, 0], "y": [1.0, 3.0, 5.0]}, [0, 2, 3])
    source = pa.Table.from_pandas(frame)
    if kind == "csv":
        frame.to_csv(source := tmp_path / "table.csv")
    elif kind != "arrow":
        source = write(source, tmp_path / f"table.{kind}")
    with pytest.warns(RowNamesWarning, match=r"left out; features says otherwise\.$"):
        assert read_moments(source, "y").feature_names == ("a", "b")


def test_an_index_with_names_is_a_feature_only_if_asked_for(tmp_path):
    frame = pd.DataFrame({"a": [1.0, 2.0, 4.0], "b": [0, 1, 1], "y": [1.0, 2.0, 3.0]})
    path, nameless = tmp_path / "t.parquet", tmp_path / "n.parquet"
    frame.set_index(["a", "b"]).assign(c=[1, 0, 0]).to_parquet(path)
    frame.set_index(pd.Index([3, 1, 2], name="")).to_parquet(nameless)
    for source, target, words, features in [
        (path, "y", "^Columns 'a', 'b' name the rows and are left out", ("c",)),
        (path, "a", "^Column 'b' names the rows and is left out", ("y", "c")),
        (nameless, "y", "^Column '' names the rows and is left out", ("a", "b")),
    ]:
        with pytest.warns(RowNamesWarning, match=words):
            assert read_moments(source, target).feature_names == features
    moments = read_moments(path, "y", features=["b", "c"])
    assert moments.feature_names == ("b", "c")
