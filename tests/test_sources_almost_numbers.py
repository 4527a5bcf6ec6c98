"""Columns that are text by a few values only: the first of these is named, with its row."""

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pytest

from sparsestep import read_moments
from sparsestep.errors import NotNumbersError
from sparsestep.sources import CsvFormat, read_categories


def table(n=120, **columns):
    rng = np.random.default_rng(0)
    texts = [f"{value:.3f}" for value in rng.normal(size=n)]
    return pa.table({"x": texts, "z": rng.normal(size=n), **columns, "y": rng.normal(size=n)})


def with_value(text, row, n=120):
    made = table(n)
    texts = made["x"].to_pylist()
    texts[row] = text
    return made.set_column(0, "x", pa.array(texts))


@pytest.mark.parametrize("text", ["?", "12 kg", "1.234,5", "-", "1.2.3", "e5", "."])
def test_the_value_that_is_no_number_is_named(text, tmp_path):
    path = tmp_path / "t.csv"
    pa.csv.write_csv(with_value(text, 3), path)
    message = (
        rf"Column 'x' of .*t\.csv holds '{text.replace('?', '[?]')}' in row 3 \(counted from 0\), "
        r"while 119 of the 120 values read are numbers; correct it, or choose"
    )
    with pytest.raises(NotNumbersError, match=message):
        read_moments(path, "y")
    with pytest.raises(NotNumbersError, match=message):
        read_categories(path)


def test_it_is_found_beyond_a_thousand_others():
    with pytest.raises(NotNumbersError, match=r"'x' of the table holds '[?]' in row 4000 "):
        read_categories(with_value("?", 4000, n=5000))


def test_a_decimal_comma_where_points_are_expected(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text('x,z,y\n"1,5",2,3\n"2",4,5\n"3,25",1,2\n')
    with pytest.raises(
        NotNumbersError, match=r"'1,5' in row 0 .*decimal comma; give the decimal m"
    ):
        read_moments(path, "y")
    moments = read_moments(path, "y", csv=CsvFormat(decimal=","))
    assert moments.mean_x[0] == pytest.approx(6.75 / 3)


@pytest.mark.parametrize(
    ("texts", "csv", "what"),
    [
        (["0,5", "1,25", "1,5"], None, "a decimal comma"),
        (["0.5", "1.25", "1.5"], CsvFormat(decimal=","), "a decimal point"),
        (["1,775", "2,25", "3,5"], None, "a decimal comma"),
        (["1,775,000", "2,25", "3,5"], None, "separators of thousands"),
        (["1,775", "2,250", "3,500"], None, "separators of thousands"),
    ],
)
def test_a_number_of_another_form_is_not_counted_beside_the_numbers(texts, csv, what, tmp_path):
    columns = {"x": texts * 4, "y": range(12)}
    pa.csv.write_csv(pa.table(columns), tmp_path / "t.csv")
    with pytest.raises(NotNumbersError, match=f"'{texts[0]}' in row 0 .* looks like .*{what}"):
        read_moments(tmp_path / "t.csv", "y", csv=csv)


def test_text_stays_text(tmp_path):
    """Where less than half of the values are numbers, or all of them are texts on purpose."""
    path = tmp_path / "t.csv"
    half = [str(i % 5) if i % 2 else "none" for i in range(120)]
    pa.csv.write_csv(table().set_column(0, "x", pa.array(half)), path)
    with pytest.raises(NotNumbersError, match=r"'x' of .* holds text; turn it into numbers"):
        read_moments(path, "y")
    assert read_categories(path) == {"x": sorted_first(half)}
    codes = pa.table({"x": ["1", "2", "1", "2"]})
    assert read_categories(codes) == {"x": ["1", "2"]}


def sorted_first(texts):
    """The most frequent text, then the others, sorted."""
    first = max(sorted(set(texts)), key=texts.count)
    return [first, *sorted(set(texts) - {first})]


def test_names_of_rows_are_no_categories():
    names = pa.array([f"patient {i}" for i in range(120)])
    with pytest.raises(NotNumbersError, match="'x' of the table holds texts most of which occur"):
        read_categories(table().set_column(0, "x", names))
    # Many rare ones beside frequent ones are.
    tail = pa.array([f"rare {i}" if i < 50 else "frequent" for i in range(120)])
    assert len(read_categories(table().set_column(0, "x", tail))["x"]) == 51
