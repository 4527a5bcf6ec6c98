"""Columns of text as zeros and ones: the same moments as of a table encoded beforehand."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from source_data import write
from sparsestep import Moments, SparseStep, read_moments
from sparsestep.errors import DroppedRowsWarning, NotNumbersError
from sparsestep.sources import read_categories

CITIES = ["Rome", "Oslo", "São Paulo"]


def make(n=60):
    rng = np.random.default_rng(0)
    return pa.table(
        {
            "city": rng.choice(CITIES, n, p=[0.5, 0.2, 0.3]).tolist(),
            "size": rng.normal(size=n),
            "sex": rng.choice(["f", "m"], n, p=[0.7, 0.3]).tolist(),
            "y": rng.normal(size=n),
        }
    )


def encoded(table):
    """The same table by hand."""
    city, sex = table["city"].to_pylist(), table["sex"].to_pylist()
    columns = {f"city={name}": [float(c == name) for c in city] for name in CITIES[1:]}
    columns |= {"size": table["size"], "sex=m": [float(s == "m") for s in sex], "y": table["y"]}
    return pa.table(columns)


def of_kind(table, kind, folder):
    """The table as another kind of source."""
    if kind == "categories":
        codes = table["city"].combine_chunks().dictionary_encode()
        return write(table.set_column(0, "city", codes), folder / "table.parquet")
    if kind == "folder":
        (folder / "parts").mkdir()
        for i in range(3):
            write(table.slice(20 * i, 20), folder / "parts" / f"{i}.parquet")
        return folder / "parts"
    if kind in ("arrow", "pandas", "pandas categories"):
        source = table if kind == "arrow" else table.to_pandas()
        return source.astype({"city": "category"}) if kind == "pandas categories" else source
    return write(table, folder / f"table.{kind}")


KINDS = ["parquet", "csv", "feather", "arrow", "pandas"]
KINDS += ["categories", "pandas categories", "folder"]


@pytest.mark.parametrize("kind", KINDS)
def test_the_moments_are_those_of_a_table_encoded_by_hand(kind, tmp_path):
    source = of_kind(make(), kind, tmp_path)
    categories = read_categories(source)
    assert categories == {"city": CITIES, "sex": ["f", "m"]}
    moments = read_moments(source, "y", categories=categories, folds=3)
    expected = read_moments(encoded(make()), "y", folds=3)
    for one, other in zip(moments, expected, strict=True):
        assert one.feature_names == other.feature_names
        np.testing.assert_allclose(one.xtx, other.xtx, atol=1e-12)
        np.testing.assert_allclose(one.xty, other.xty, atol=1e-12)


def test_features_are_replaced_where_they_stand():
    table = make()
    categories = read_categories(table, ["sex", "size"])
    assert list(categories) == ["sex"]
    moments = read_moments(table, "y", features=["size", "sex"], categories=categories)
    assert moments.feature_names == ("size", "sex=m")
    # Categories of columns that are not asked for do no harm.
    assert read_moments(table, "y", features=["size"], categories=categories).n_features == 1


def of_kind_without_two_cities(kind, tmp_path):
    table = make()
    city = table["city"].to_pylist()
    city[4] = city[17] = None
    source = of_kind(table.set_column(0, "city", pa.array(city)), kind, tmp_path)
    if kind == "csv":
        # An empty field, without the quotes that Arrow writes around texts.
        source.write_text(source.read_text().replace('""', ""))
    return source


@pytest.mark.parametrize("kind", ["csv", "arrow", "pandas"])
def test_missing_categories_are_counted_once_or_refused(kind, tmp_path):
    source = of_kind_without_two_cities(kind, tmp_path)
    categories = read_categories(source)
    assert categories["city"] == CITIES
    with pytest.warns(DroppedRowsWarning, match=r"Left out 2 of 60 rows .* \(2 in 'city'\)"):
        moments = read_moments(source, "y", categories=categories, drop_missing=True)
    keep = [i for i in range(60) if i not in (4, 17)]
    expected = read_moments(encoded(make()).take(keep), "y")
    np.testing.assert_allclose(moments.xtx, expected.xtx, atol=1e-12)
    with pytest.raises(ValueError, match=r"Column 'city' has a missing value in row 4 "):
        read_moments(source, "y", categories=categories)


TABLE = make()
CLASH = TABLE.append_column("sex=m", TABLE["size"])
LISTS = pa.table({"tags": [["a"], ["b"]], "y": [1.0, 2.0]})
REFUSED = [
    (TABLE, {}, TypeError, "'city' holds text"),
    (TABLE, {"city": ["Paris"], "sex": ["f", "m"]}, ValueError, r"'.*' in row \d+ .*none of its 1"),
    (TABLE, {"town": ["Paris"]}, ValueError, "no column 'town'"),
    (TABLE, {"city": ["Oslo", "Oslo"]}, ValueError, "different texts"),
    (
        TABLE,
        {"size": ["1"], "sex": ["f", "m"], "city": CITIES},
        ValueError,
        "'size' .* row 0 .*none",
    ),
    (LISTS, {"tags": ["a", "b"]}, TypeError, "'tags' has categories, .* values of type list"),
    (TABLE, {"y": ["1"]}, ValueError, "can only be a feature"),
    (CLASH, read_categories(CLASH), ValueError, "'sex=m' of the table has the name of a column"),
]


@pytest.mark.parametrize(("table", "categories", "error", "message"), REFUSED)
def test_what_cannot_be_encoded_is_refused(table, categories, error, message):
    with pytest.raises(error, match=message):
        read_moments(table, "y", categories=categories)


def test_what_has_no_categories_is_refused():
    many = pa.table({"id": [f"patient {i}" for i in range(2000)]})
    empty = pa.table({"id": pa.array([None, None], pa.string())})
    for table, columns, message in (
        (many, None, "more than 1000 different texts"),
        (empty, None, "no text at all"),
        (TABLE, ["town"], "no column 'town'"),
    ):
        with pytest.raises(ValueError, match=message):
            read_categories(table, columns)


def test_columns_of_texts_and_what_looks_like_them(tmp_path):
    """Less than half of the values are numbers, or all are texts on purpose, or names of rows."""
    half = [str(i % 5) if i % 2 else "none" for i in range(120)]
    table = pa.table({"x": half, "y": np.arange(120.0)})
    write(table, tmp_path / "t.csv")
    with pytest.raises(NotNumbersError, match=r"'x' of .* holds text; turn it into numbers"):
        read_moments(tmp_path / "t.csv", "y")
    assert read_categories(tmp_path / "t.csv") == {"x": ["none", *"01234"]}
    assert read_categories(pa.table({"x": ["1", "2", "1", "2"]})) == {"x": ["1", "2"]}
    # Many rare ones beside a frequent one.
    tail = [f"rare {i}" if i < 50 else "frequent" for i in range(120)]
    assert len(read_categories(pa.table({"x": tail}))["x"]) == 51
    names = [f"patient {i}" for i in range(120)]
    with pytest.raises(NotNumbersError, match="'x' of the table holds texts most of which occur"):
        read_categories(pa.table({"x": names}))
    numbers = [*(f"{i}.5" for i in range(4000)), "?"]
    with pytest.raises(NotNumbersError, match=r"'x' of the table holds '[?]' in row 4000 "):
        read_categories(pa.table({"x": numbers}))


SOME_DATES = {
    "days": ["2016-07-01", "2016-07-02"],
    "days of other countries": ["01.02.2020", "17.02.2020"],
    "days with slashes": ["1/2/2020", "17/2/2020"],
    "minutes": ["2016-07-01 10:30", "2016-07-02 11:00"],
    "zones": ["2016-07-01T10:30:00Z", "2016-07-02T10:30:00Z"],
    "times": ["10:30", "11:30"],
}


@pytest.mark.parametrize("texts", SOME_DATES.values(), ids=SOME_DATES)
def test_dates_as_text_are_refused_as_in_csv_files(texts, tmp_path):
    table = pa.table({"day": texts * 5, "size": range(10), "y": range(10)})
    write(table, tmp_path / "t.csv")
    with pytest.raises(TypeError, match=r"'day' .*holds dates or times"):
        read_moments(tmp_path / "t.csv", "y", categories=read_categories(tmp_path / "t.csv"))
    for kind in ("parquet", "feather", "pandas", "arrow"):
        with pytest.raises(TypeError, match=r"'day' .*holds dates or times"):
            read_categories(of_kind(table, kind, tmp_path))
    # Unless they are said to be categories.
    for kind in ("csv", "arrow"):
        found = read_categories(of_kind(table, kind, tmp_path), codes=["day"])
        assert found == {"day": texts}


@pytest.mark.parametrize("kind", KINDS)
def test_codes_are_categories(kind, tmp_path):
    """Whole numbers, dates, truth values, and numbers with gaps that pandas made doubles."""
    zone = np.random.default_rng(1).choice([9, 10, 11], 60, p=[0.5, 0.2, 0.3])
    table = make().append_column("zone", pa.array(zone))
    table = table.append_column("year", pa.array([2000.0, 2001.0, 2000.0] * 20))
    table = table.append_column("new", pa.array([True, False, False] * 20))
    source = of_kind(table, kind, tmp_path)
    codes = ["zone", "year", "new"]
    categories = read_categories(source, ["city", "size"], codes=codes)
    assert categories["zone"] == ["9", "10", "11"] and list(categories) == ["city", *codes]
    assert categories["year"] == ["2000", "2001"] and categories["new"] == ["false", "true"]
    moments = read_moments(source, "y", features=["zone", "size"], categories=categories)
    assert moments.feature_names == ("zone=10", "zone=11", "size")
    np.testing.assert_allclose(moments.mean_x[:2], [np.mean(zone == 10), np.mean(zone == 11)])


@pytest.mark.parametrize("kind", ["csv", "parquet", "pandas"])
def test_missing_values_as_a_category(kind, tmp_path):
    source = of_kind_without_two_cities(kind, tmp_path)
    categories = read_categories(source, missing=True)
    assert categories == {"city": ["Rome", "(missing)", "Oslo", "São Paulo"], "sex": ["f", "m"]}
    moments = read_moments(source, "y", categories=categories)
    assert moments.n_samples == 60 and moments.feature_names[0] == "city=(missing)"
    assert moments.mean_x[0] == pytest.approx(2 / 60)


@pytest.mark.parametrize("width", [np.float64, np.float32, np.float16])
@pytest.mark.parametrize("kind", ["parquet", "feather", "pandas", "arrow"])
def test_nan_is_a_missing_value_of_a_category(kind, width, tmp_path):
    zone = pa.array(np.array([1, 2, np.nan, 1, 2, 1], dtype=width))
    assert not zone.null_count
    source = of_kind(pa.table({"zone": zone, "y": [1.0, 2.0, 4.0, 1.5, 2.5, 0.0]}), kind, tmp_path)
    categories = read_categories(source, [], codes=["zone"])
    assert categories == {"zone": ["1", "2"]}
    with pytest.raises(ValueError, match="zone"):
        read_moments(source, "y", categories=categories)
    with pytest.warns(DroppedRowsWarning, match="zone"):
        kept = read_moments(source, "y", categories=categories, drop_missing=True)
    assert kept.n_samples == 5
    categories = read_categories(source, [], codes=["zone"], missing=True)
    assert categories == {"zone": ["1", "(missing)", "2"]}
    moments = read_moments(source, "y", categories=categories)
    assert moments.mean_x[0] == pytest.approx(1 / 6)


@pytest.mark.parametrize("missing", [False, True])
def test_no_text_is_taken_for_the_category_of_missing_values(missing, tmp_path):
    city = ["Rome", "Rome", "(missing)", None, "(missing)", "Rome"]
    table = pa.table({"city": city, "y": [1.0, 2.0, 4.0, 1.5, 2.5, 0.0]})
    source = of_kind(table, "parquet", tmp_path)
    message = r"'city' .*'\(missing\)' in row 2 .*rename"
    with pytest.raises(ValueError, match=message):
        read_categories(source, ["city"], missing=missing)
    with pytest.raises(ValueError, match=message):
        read_moments(source, "y", categories={"city": ["Rome", "(missing)"]})


def test_categories_of_csv_files_are_texts_whatever_they_look_like(tmp_path):
    parts = [["a", "b", "02", "a"], ["2", "2", "02", "2"], ["", "NA", "", ""]]
    for i, grades in enumerate(parts):
        lines = [f"{grade},{i + j}.5" for j, grade in enumerate(grades)]
        (tmp_path / f"{i}.csv").write_text("\n".join(["grade,y", *lines]) + "\n")
    # The order of the files is none of the rows' types.
    for order in ([0, 1, 2], [1, 0, 2], [2, 1, 0]):
        files = [tmp_path / f"{i}.csv" for i in order]
        categories = {"grade": ["2", "02", "a", "b"]}
        if order[0] == 0:
            again = tmp_path / "again.csv"
            again.write_bytes(files[0].read_bytes())
            assert read_categories([*files, again])["grade"] == ["a", "02", "2", "b"]
        with pytest.warns(DroppedRowsWarning, match="Left out 4 of 12 rows"):
            moments = read_moments(files, "y", categories=categories, drop_missing=True)
        assert moments.feature_names == ("grade=02", "grade=a", "grade=b")
        np.testing.assert_allclose(moments.mean_x, [2 / 8, 2 / 8, 1 / 8])
    with pytest.raises(ValueError, match=r"holds '02' in row 2 .*none of its 1 categories"):
        read_moments(tmp_path / "1.csv", "y", categories={"grade": ["2"]})


def test_a_single_category_is_a_column_of_ones():
    table = pa.table({"a": ["x", "x", "x"], "b": [1.0, 2.0, 4.0], "y": [1.0, 2.0, 3.0]})
    moments = read_moments(table, "y", categories=read_categories(table))
    assert moments.feature_names == ("a=x", "b")
    assert moments.mean_x[0] == 1.0 and moments.xtx[0, 0] == 0.0


def test_a_value_missing_beside_a_single_category():
    table = pa.table({"a": ["x", None, "x"], "b": [1.0, 2.0, 4.0], "y": [1.0, 2.0, 3.0]})
    categories = read_categories(table)
    with pytest.raises(ValueError, match=r"Column 'a' has a missing value in row 1 "):
        read_moments(table, "y", categories=categories)
    with pytest.warns(DroppedRowsWarning, match=r"Left out 1 of 3 rows .* \(1 in 'a'\)"):
        read_moments(table, "y", categories=categories, drop_missing=True)


def test_dask_is_refused():
    dd = pytest.importorskip("dask.dataframe")
    frame = dd.from_pandas(pd.DataFrame({"a": ["x", "y"], "y": [1.0, 2.0]}), npartitions=1)
    with pytest.raises(TypeError, match="Categories are for files"):
        read_moments(frame, "y", categories={"a": ["x", "y"]})


def test_text_in_pandas_columns_of_objects():
    frame = pd.DataFrame({"city": pd.Series(["Rome", "Oslo", "Rome"], dtype=object), "size": 1.0})
    assert read_categories(frame) == {"city": ["Rome", "Oslo"]}


def test_moments_know_their_categories_in_files_and_merged(tmp_path):
    table = make()
    categories = read_categories(table, ["city", "sex"])
    halves = [read_moments(part, "y", categories=categories) for part in (table[:30], table[30:])]
    for half, name in zip(halves, "ab", strict=True):
        half.save(tmp_path / f"{name}.npz")
    merged = Moments.merge(Moments.load(tmp_path / f"{name}.npz") for name in "ab")
    assert merged.categories == {"city": tuple(categories["city"]), "sex": ("f", "m")}
    folds = read_moments(table, "y", categories=categories, folds=2)
    assert [fold.categories for fold in folds] == [merged.categories] * 2
    one = read_moments(table, "y", features=["sex", "size"], categories=categories)
    assert one.categories == {"sex": ("f", "m")}
    assert read_moments(encoded(table), "y").categories == {}


def test_moments_in_which_zeros_mean_other_categories_do_not_merge():
    north = {"city": ["Oslo", "Rome"], "y": [1.0, 2.0]}
    south = {"city": ["Bari", "Rome"], "y": [1.0, 2.0]}
    parts = [
        read_moments(pa.table(part), "y", categories={"city": part["city"]})
        for part in (north, south)
    ]
    assert parts[0].feature_names == parts[1].feature_names == ("city=Rome",)
    with pytest.raises(ValueError, match="'city' has 'Oslo', 'Rome' in one and 'Bari', 'Rome' in"):
        Moments.merge(parts)


def test_python_predicts_from_the_columns_that_the_model_kept():
    table = make()
    moments = read_moments(table, "y", categories=read_categories(table))
    model = SparseStep(n_nonzero=2, penalty_factor={"size": 0, "city=Oslo": 0})
    model.fit_moments(moments)
    assert set(np.array(moments.feature_names)[model.coef_ != 0]) == {"size", "city=Oslo"}
    whole = table.drop_columns("y")
    few = table.select(["city", "size"])
    np.testing.assert_array_equal(model.predict(few), model.predict(whole))
    with pytest.raises(ValueError, match="no column 'size'"):
        model.predict(table.select(["city"]))
