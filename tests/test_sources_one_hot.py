"""Columns of text as zeros and ones: the same moments as of a table encoded beforehand."""

import shutil

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from source_data import SOURCES, write
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


TABLE = make()
KNOWN = {"city": CITIES, "sex": ["f", "m"]}


def encoded(table):
    """The same table by hand."""
    city, sex = table["city"].to_numpy(), table["sex"].to_numpy()
    columns = {f"city={name}": city == name for name in CITIES[1:]}
    return pa.table(columns | {"size": table["size"], "sex=m": sex == "m", "y": table["y"]})


def with_codes(table, folder):
    codes = table["city"].combine_chunks().dictionary_encode()
    return write(table.set_column(0, "city", codes), folder / "table.parquet")


def in_pandas(table, folder):
    return table.to_pandas().astype({"city": "category"})


def of_kind(table, kind, folder):
    """The table as another kind of source."""
    return (SOURCES[kind] if isinstance(kind, str) else kind)(table, folder)


KINDS = ["parquet", "csv", "feather", "table", "pandas", "folder", with_codes, in_pandas]


@pytest.mark.parametrize("kind", KINDS)
def test_the_moments_are_those_of_a_table_encoded_by_hand(kind, tmp_path):
    source = of_kind(TABLE, kind, tmp_path)
    assert read_categories(source) == KNOWN
    moments = read_moments(source, "y", categories=KNOWN, folds=3)
    for one, other in zip(moments, read_moments(encoded(TABLE), "y", folds=3), strict=True):
        assert one.feature_names == other.feature_names
        assert one.categories == {"city": tuple(CITIES), "sex": ("f", "m")}
        np.testing.assert_allclose(one.xtx, other.xtx, atol=1e-12)
        np.testing.assert_allclose(one.xty, other.xty, atol=1e-12)


def test_features_are_replaced_where_they_stand():
    assert read_categories(TABLE, ["sex", "size"]) == {"sex": ["f", "m"]}
    # Categories of columns that are not asked for do no harm.
    for features, names in ((["size", "sex"], ("size", "sex=m")), (["size"], ("size",))):
        moments = read_moments(TABLE, "y", features=features, categories=KNOWN)
        assert moments.feature_names == names
        assert moments.categories == ({"sex": ("f", "m")} if len(names) == 2 else {})


@pytest.mark.parametrize(
    "values",
    [
        ["a", "b", None, "a", "b", "a"],
        *(np.array([1, 2, np.nan, 1, 2, 1], width) for width in ("f8", "f4", "f2")),
    ],
    ids=["texts", "double", "single", "half"],
)
@pytest.mark.parametrize("kind", ["csv", "parquet", "feather", "table", "pandas"])
def test_missing_values_of_categories_are_refused_or_left_out_or_a_category(kind, values, tmp_path):
    table = pa.table({"zone": pa.array(values), "y": np.arange(6.0) ** 2})
    source = of_kind(table, kind, tmp_path)
    if kind == "csv":
        # An empty field, without the quotes that Arrow writes around texts.
        source.write_text(source.read_text().replace('""', "").replace("nan", ""))
    one, two = ("a", "b") if isinstance(values, list) else ("1", "2")
    how = {"codes": ["zone"]} if one == "1" else {}
    assert table["zone"].null_count == (one == "a")
    categories = read_categories(source, **how)
    assert categories == {"zone": [one, two]}
    with pytest.raises(ValueError, match=r"Column 'zone' has a missing value in row 2 "):
        read_moments(source, "y", categories=categories)
    with pytest.warns(DroppedRowsWarning, match=r"Left out 1 of 6 rows .* \(1 in 'zone'\)"):
        kept = read_moments(source, "y", categories=categories, drop_missing=True)
    assert kept.n_samples == 5
    by_hand = np.array([0, 1, 0, 1, 0]), np.array([0.0, 1.0, 9.0, 16.0, 25.0])
    np.testing.assert_allclose([kept.xtx[0, 0], kept.xty[0]], np.cov(*by_hand)[0] * 4, atol=1e-12)
    categories = read_categories(source, **how, missing=True)
    assert categories == {"zone": [one, "(missing)", two]}
    moments = read_moments(source, "y", categories=categories)
    assert moments.n_samples == 6
    assert moments.feature_names == ("zone=(missing)", f"zone={two}")
    np.testing.assert_allclose(moments.mean_x, [1 / 6, 2 / 6])


CLASH = TABLE.append_column("sex=m", TABLE["size"])
LISTS = pa.table({"tags": [["a"], ["b"]], "y": [1.0, 2.0]})
REFUSED = [
    (TABLE, {}, TypeError, "'city' holds text"),
    (TABLE, KNOWN | {"city": ["Paris"]}, ValueError, r"'.*' in row \d+ .*none of its 1"),
    (TABLE, {"town": ["Paris"]}, ValueError, "no column 'town'"),
    (TABLE, {"city": ["Oslo", "Oslo"]}, ValueError, "different texts"),
    (TABLE, KNOWN | {"size": ["1"]}, ValueError, "'size' .* row 0 .*none"),
    (LISTS, {"tags": ["a", "b"]}, TypeError, "'tags' has categories, .* values of type list"),
    (TABLE, {"y": ["1"]}, ValueError, "can only be a feature"),
    (CLASH, KNOWN, ValueError, "'sex=m' of the table has the name of a column"),
]


@pytest.mark.parametrize(("table", "categories", "error", "message"), REFUSED)
def test_what_cannot_be_encoded_is_refused(table, categories, error, message):
    with pytest.raises(error, match=message):
        read_moments(table, "y", categories=categories)


HALF = [str(i % 5) if i % 2 else "none" for i in range(120)]


@pytest.mark.parametrize(
    ("texts", "words"),
    [
        ([f"patient {i}" for i in range(2000)], "more than 1000 different texts"),
        ([f"patient {i}" for i in range(120)], "'x' of the table holds texts most of which occur"),
        (pa.array([None, None], pa.string()), "no text at all"),
        ([*(f"{i}.5" for i in range(4000)), "?"], r"'x' of the table holds '[?]' in row 4000 "),
    ],
)
def test_what_has_no_categories_is_refused(texts, words):
    with pytest.raises(ValueError, match=words):
        read_categories(pa.table({"x": texts}))
    with pytest.raises(ValueError, match="no column 'town'"):
        read_categories(TABLE, ["town"])


@pytest.mark.parametrize(
    ("texts", "categories"),
    [
        (HALF, ["none", *"01234"]),  # less than half of the values are numbers
        (["1", "2", "1", "2"], ["1", "2"]),  # texts on purpose
        (pd.Series(["Rome", "Oslo", "Rome"], dtype=object), ["Rome", "Oslo"]),
        # Many rare ones beside a frequent one.
        ([*(f"rare {i}" for i in range(10, 60)), *["frequent"] * 70], None),
    ],
)
def test_columns_of_texts_and_what_looks_like_them(texts, categories):
    categories = categories or ["frequent", *texts[:50]]
    assert read_categories(pd.DataFrame({"x": texts})) == {"x": categories}


def test_text_in_a_csv_file_is_not_taken_for_numbers(tmp_path):
    path = write(pa.table({"x": HALF, "y": np.arange(120.0)}), tmp_path / "t.csv")
    with pytest.raises(NotNumbersError, match=r"'x' of .* holds text; turn it into numbers"):
        read_moments(path, "y")
    assert read_categories(path) == {"x": ["none", *"01234"]}


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
    path = write(table, tmp_path / "t.csv")
    with pytest.raises(TypeError, match=r"'day' .*holds dates or times"):
        read_moments(path, "y", categories=read_categories(path))
    for kind in ("parquet", "feather", "pandas", "table"):
        with pytest.raises(TypeError, match=r"'day' .*holds dates or times"):
            read_categories(of_kind(table, kind, tmp_path))
    # Unless they are said to be categories.
    for source in (path, table):
        assert read_categories(source, codes=["day"]) == {"day": texts}


@pytest.mark.parametrize("kind", KINDS)
def test_codes_are_categories(kind, tmp_path):
    """Whole numbers, truth values, and numbers with gaps that pandas made doubles."""
    zone = np.random.default_rng(1).choice([9, 10, 11], 60, p=[0.5, 0.2, 0.3])
    table = TABLE.append_column("zone", pa.array(zone))
    table = table.append_column("year", pa.array([2000.0, 2001.0, 2000.0] * 20))
    table = table.append_column("new", pa.array([True, False, False] * 20))
    source = of_kind(table, kind, tmp_path)
    categories = read_categories(source, ["city", "size"], codes=["zone", "year", "new"])
    found = {"zone": ["9", "10", "11"], "year": ["2000", "2001"], "new": ["false", "true"]}
    assert list(categories.items()) == list(({"city": CITIES} | found).items())
    moments = read_moments(source, "y", features=["zone", "size"], categories=categories)
    assert moments.feature_names == ("zone=10", "zone=11", "size")
    np.testing.assert_allclose(moments.mean_x[:2], [np.mean(zone == 10), np.mean(zone == 11)])


@pytest.mark.parametrize("missing", [False, True])
def test_no_text_is_taken_for_the_category_of_missing_values(missing, tmp_path):
    table = pa.table({"city": ["Rome", "Rome", "(missing)", None], "y": [1.0, 2.0, 4.0, 1.5]})
    source = of_kind(table, "parquet", tmp_path)
    message = r"'city' .*'\(missing\)' in row 2 .*rename"
    with pytest.raises(ValueError, match=message):
        read_categories(source, ["city"], missing=missing)
    with pytest.raises(ValueError, match=message):
        read_moments(source, "y", categories={"city": ["Rome", "(missing)"]})


# The order of the files is none of the rows' types.
@pytest.mark.parametrize("order", [[0, 1, 2], [1, 0, 2], [2, 1, 0]])
def test_categories_of_csv_files_are_texts_whatever_they_look_like(order, tmp_path):
    parts = [["a", "b", "02", "a"], ["2", "2", "02", "2"], ["", "NA", "", ""]]
    for i, grades in enumerate(parts):
        lines = [f"{grade},{i + j}.5" for j, grade in enumerate(grades)]
        (tmp_path / f"{i}.csv").write_text("\n".join(["grade,y", *lines]) + "\n")
    files = [tmp_path / f"{i}.csv" for i in order]
    again = shutil.copy(tmp_path / "0.csv", tmp_path / "again.csv")
    assert read_categories([*files, again])["grade"] == ["a", "02", "2", "b"]
    categories = {"grade": ["2", "02", "a", "b"]}
    with pytest.warns(DroppedRowsWarning, match="Left out 4 of 12 rows"):
        moments = read_moments(files, "y", categories=categories, drop_missing=True)
    assert moments.feature_names == ("grade=02", "grade=a", "grade=b")
    np.testing.assert_allclose(moments.mean_x, [2 / 8, 2 / 8, 1 / 8])
    with pytest.raises(ValueError, match=r"holds '02' in row 2 .*none of its 1 categories"):
        read_moments(tmp_path / "1.csv", "y", categories={"grade": ["2"]})


def test_a_single_category_is_a_column_of_ones():
    table = pa.table({"a": ["x", "x"], "b": [1.0, 4.0], "y": [1.0, 3.0]})
    moments = read_moments(table, "y", categories=read_categories(table))
    assert moments.feature_names == ("a=x", "b")
    assert moments.mean_x[0] == 1.0 and moments.xtx[0, 0] == 0.0
    holed = pa.table({"a": ["x", None, "x"], "y": [1.0, 2.0, 3.0]})
    with pytest.raises(ValueError, match=r"Column 'a' has a missing value in row 1 "):
        read_moments(holed, "y", categories=read_categories(holed))
    with pytest.warns(DroppedRowsWarning, match=r"Left out 1 of 3 rows .* \(1 in 'a'\)"):
        read_moments(holed, "y", categories=read_categories(holed), drop_missing=True)


def test_moments_know_their_categories_in_files_and_merged(tmp_path):
    halves = [read_moments(part, "y", categories=KNOWN) for part in (TABLE[:30], TABLE[30:])]
    halves[0].save(tmp_path / "a.npz")
    merged = Moments.load(tmp_path / "a.npz") + halves[1]
    assert merged.categories == {"city": tuple(CITIES), "sex": ("f", "m")}
    # Zeros that mean other categories are not merged.
    parts = [
        read_moments(pa.table({"city": cities, "y": [1.0, 2.0]}), "y", categories={"city": cities})
        for cities in (["Oslo", "Rome"], ["Bari", "Rome"])
    ]
    assert parts[0].feature_names == parts[1].feature_names == ("city=Rome",)
    with pytest.raises(ValueError, match="'city' has 'Oslo', 'Rome' in one and 'Bari', 'Rome' in"):
        Moments.merge(parts)


def test_python_predicts_from_the_columns_that_the_model_kept():
    moments = read_moments(TABLE, "y", categories=KNOWN)
    model = SparseStep(n_nonzero=2, penalty_factor={"size": 0, "city=Oslo": 0})
    model.fit_moments(moments)
    assert set(np.array(moments.feature_names)[model.coef_ != 0]) == {"size", "city=Oslo"}
    few, whole = TABLE.select(["city", "size"]), TABLE.drop_columns("y")
    np.testing.assert_array_equal(model.predict(few), model.predict(whole))
    with pytest.raises(ValueError, match="no column 'size'"):
        model.predict(TABLE.select(["city"]))
