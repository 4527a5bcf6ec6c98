"""CSV files of other habits: the same moments as of the same table in Parquet."""

import gzip
import re
from itertools import product

import numpy as np
import pandas as pd
import pytest

from sparsestep import read_moments
from sparsestep.errors import NotNumbersError
from sparsestep.sources import CsvFormat, read_categories
from sparsestep.sources.csv_rows import separator_in
from sparsestep.sources.rows import open_rows


def frame(n=40):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 2))
    columns = {
        "größe": X[:, 0],
        "zahl": rng.integers(0, 9, n),
        "ort": rng.choice(["Köln", "a,b"], n),
    }
    return pd.DataFrame({**columns, "y": X @ [2.0, 1.0]})


def same_moments(one, other):
    assert one.feature_names == other.feature_names
    np.testing.assert_allclose(one.xtx, other.xtx, rtol=1e-12)
    np.testing.assert_allclose(one.xty, other.xty, rtol=1e-12)


@pytest.mark.parametrize("ending", ["csv", "csv.gz"])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "cp1252", "utf-16"])
@pytest.mark.parametrize(
    ("separator", "decimal"), [*product(",;\t|", "."), *product(";\t|", ",")], ids=repr
)
def test_every_habit_gives_the_same_moments(separator, decimal, encoding, ending, tmp_path):
    path = tmp_path / f"t.{ending}"
    frame().to_csv(path, sep=separator, decimal=decimal, encoding=encoding, index=False)
    said = None if encoding.startswith("utf-8") else CsvFormat(encoding=encoding)
    categories = read_categories(path, csv=said)
    assert set(categories) == {"ort"}
    moments = read_moments(path, "y", categories=categories, csv=said)
    same_moments(moments, read_moments(frame(), "y", categories=categories))


def test_what_is_said_is_not_searched_for(tmp_path):
    numbers = frame().drop(columns="ort")
    path = tmp_path / "t.tsv"
    numbers.to_csv(path, sep=":", decimal=",", index=False)
    moments = read_moments(path, "y", csv=CsvFormat(":", ","))
    same_moments(moments, read_moments(numbers, "y"))
    numbers.to_csv(path, sep="\t", decimal=",", index=False)
    same_moments(read_moments(path, "y", csv=CsvFormat(r"\t")), moments)
    with pytest.raises(TypeError, match=r"'größe' of .* holds '.*'.*; give the decimal mark"):
        read_moments(path, "y", csv=CsvFormat(decimal="."))


def test_files_of_a_folder_share_their_habits(tmp_path):
    numbers = frame().drop(columns="ort")
    numbers[:20].to_csv(tmp_path / "a.csv", sep=";", decimal=",", index=False)
    # Whole numbers only: nothing shows the decimal mark.
    whole = numbers[20:].round()
    whole.astype(int).to_csv(tmp_path / "b.csv", sep=";", index=False)
    expected = read_moments(pd.concat([numbers[:20], whole]), "y")
    same_moments(read_moments(tmp_path, "y"), expected)
    numbers.to_csv(tmp_path / "c.csv", sep=";", index=False)
    with pytest.raises(TypeError, match=r"'größe' of .*a\.csv holds '.*'.*; give the decimal mark"):
        read_moments(tmp_path, "y")
    numbers.to_csv(tmp_path / "c.csv", sep="|", index=False)
    with pytest.raises(ValueError, match=r"a\.csv .* by ';' and .*c\.csv by '\|'; give the sep"):
        read_moments(tmp_path, "y")


@pytest.mark.parametrize("separator", [";", "\t"])
def test_commas_that_may_be_of_thousands_are_not_guessed_at(separator, tmp_path):
    path = tmp_path / "t.csv"
    rows = ["income,y", "1|775,5", "904,3", "12|500,7"]
    path.write_text("\n".join(rows).replace(",", separator).replace("|", ","))
    message = (
        r"'income' of .*t\.csv holds '1,775' in row 0 .* thousands, or with a decimal comma; give "
        "the decimal mark, or write numbers without separators of thousands"
    )
    for refused in (read_moments, lambda path, target: read_categories(path)):
        with pytest.raises(NotNumbersError, match=message):
            refused(path, "y")
    said = read_moments(path, "y", csv=CsvFormat(decimal=","))
    assert said.mean_x[0] == pytest.approx((1.775 + 904 + 12.5) / 3)
    with pytest.raises(NotNumbersError, match="of thousands; write such numbers without them"):
        read_moments(path, "y", csv=CsvFormat(decimal="."))


@pytest.mark.parametrize("other", ["0,346", "2,5", "1775,125", ",250"])
def test_one_decimal_comma_tells_of_all_others(other, tmp_path):
    path = tmp_path / "t.csv"
    path.write_text(f"a;b;y\n1,775;{other};1\n1,250;3;2\n")
    assert read_moments(path, "y").mean_x[0] == pytest.approx((1.775 + 1.25) / 2)


def column(*texts):
    """A CSV file with a column of these texts, in quotes, four times over."""
    return "x,y\n" + "".join(f'"{text}",{i}\n' for i, text in enumerate(texts * 4))


@pytest.mark.parametrize(
    ("content", "decimal", "message"),
    [
        (column("1,5", "2", "3,25"), None, "'1,5' .* a decimal comma; give the decimal mark, or c"),
        (column("0,5", "1,25", "1,5"), None, "'0,5' .* a decimal comma"),
        (column("0.5", "1.25", "1.5"), ",", "'0.5' .* a decimal point"),
        (column("1,775", "2,25", "3,5"), None, "'1,775' .* a decimal comma"),
        (column("1,775,000", "2,25", "3,5"), None, "'1,775,000' .* separators of thousands"),
        (column("1,775", "2,250", "3,500"), None, "'1,775' .* separators of thousands"),
        (
            column("42,386", "5", "1,234,567.5"),
            *(None, "'42,386' .*separators of thousands; write such numbers without them, or"),
        ),
        ("x;y\n?;1\n2,25;2\n1,5;3\n", ",", r"'\?' .*; correct it"),
    ],
)
def test_a_number_of_another_form_is_named_with_its_form(content, decimal, message, tmp_path):
    path = tmp_path / "t.csv"
    path.write_text(content)
    with pytest.raises(NotNumbersError, match=rf"'x' of .*t\.csv holds {message}"):
        read_moments(path, "y", csv=CsvFormat(decimal=decimal))


def test_decimal_commas_in_quotes_are_read_if_said(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text(column("1,5", "2", "3,25"))
    moments = read_moments(path, "y", csv=CsvFormat(decimal=","))
    assert moments.mean_x[0] == pytest.approx(6.75 / 3)


@pytest.mark.parametrize("text", ["?", "12 kg", "1.234,5", "-", "1.2.3", "e5", "."])
def test_the_value_that_is_no_number_is_named(text, tmp_path):
    path = tmp_path / "t.csv"
    frame().assign(zahl=["1.5"] * 3 + [text] + ["2"] * 36).to_csv(path, index=False)
    message = (
        rf"Column 'zahl' of .*t\.csv holds '{re.escape(text)}' in row 3 \(counted from 0\), "
        "while 39 of the 40 values read are numbers; correct it, or choose"
    )
    for read in (lambda: read_moments(path, "y", features=["zahl"]), lambda: read_categories(path)):
        with pytest.raises(NotNumbersError, match=message):
            read()


@pytest.mark.parametrize(
    ("head", "separator"),
    [
        ("a,b\n1,2\n", ","),
        ("a;b\n1,5;2,5\n", ";"),
        ('"a,b,c";d\n1;2\n', ";"),
        ('"a\n;b";c\td\n1\t2', "\t"),
        ("size (m, net);price (EUR, net)\n1,5;2\n3;4,5\n", ";"),
        ("a;b,c\n1,2\n", ","),
        ("a|b|c\n1|2|3\n\n4|5|6\n", "|"),
        ("a;b;c\n1;2\n", ";"),
        ('\ufeff"a;b",c\n1,2\n', ","),
        ("y\n1\n", None),
        ("", None),
        ("\0" * 10, None),
    ],
)
def test_the_separator_of_a_head(head, separator):
    assert separator_in(head) == separator


def test_empty_lines_of_a_single_column_are_missing_values(tmp_path):
    path = tmp_path / "t.csv"
    for ending in ("\n", "\r\n"):
        path.write_bytes(ending.join(["x", "1", "", "3", ""]).encode())
        rows = open_rows(path)
        rows.select(["x"])
        assert [v for b, _ in rows.batches(10) for v in b["x"].to_pylist()] == [1, None, 3]
    # Before the name there is no row, and between rows of two columns none either.
    path.write_text("\nx\n1\n")
    assert open_rows(path).names == ["x"]
    path.write_text("x,y\n1,2\n\n3,4\n")
    assert read_moments(path, "y").n_samples == 2


@pytest.mark.parametrize("note", ["first\nsecond", "a,b\n1,2\n", '"\n"', "\r\n\r\n"])
def test_lines_within_quotes_anywhere_in_a_large_file(note, tmp_path):
    """Blocks of a megabyte end within quotes somewhere."""
    n = 3_000_000 // (len(note) + 20)
    numbers = np.random.default_rng(0).normal(size=(n, 2)).round(6)
    table = pd.DataFrame({"note": note, "x": numbers[:, 0], "y": numbers[:, 1]})
    table.to_csv(tmp_path / "t.csv", index=False)
    assert (tmp_path / "t.csv").stat().st_size > 2_000_000
    moments = read_moments(tmp_path / "t.csv", "y", features=["x"])
    same_moments(moments, read_moments(table, "y", features=["x"]))


def test_a_header_longer_than_the_head(tmp_path):
    names = [f"a rather long name of a column, number {j}" for j in range(3000)]
    table = pd.DataFrame(np.eye(2, 3000), columns=names)
    table.to_csv(tmp_path / "t.csv", sep=";", index=False)
    assert read_moments(tmp_path / "t.csv", names[0]).n_features == 2999


def test_bytes_of_another_encoding_are_named(tmp_path):
    table = frame().rename(columns={"größe": "size"})
    path = tmp_path / "t.csv"
    table.to_csv(path, encoding="cp1252", index=False)
    message = r"t\.csv is not in utf-8; give its encoding, such as cp1252"
    with pytest.raises(ValueError, match=message):
        read_moments(path, "y")
    # Where nobody needs the column, nobody needs to know.
    assert read_moments(path, "y", features=["size", "zahl"]).n_features == 2
    late = "x,c,y\n" + "1,a,2\n" * 300_000 + "1,\xe4,2\n"
    path.write_bytes(late.encode("cp1252"))
    with pytest.raises(ValueError, match=message):
        read_categories(path)
    with pytest.raises(ValueError, match=r"t\.csv is not in ascii"):
        read_categories(path, csv=CsvFormat(encoding="ascii"))
    with pytest.raises(ValueError, match=r"t\.csv is not in utf-16"):
        read_categories(path, csv=CsvFormat(encoding="utf-16"))


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be", "utf-32"])
@pytest.mark.parametrize("said", [None, CsvFormat(","), CsvFormat(encoding="cp1252")], ids=str)
def test_wide_characters_need_their_encoding(encoding, said, tmp_path):
    path = tmp_path / "t.csv"
    path.write_bytes("x,y\n1,2\n3,5\n".encode(encoding))
    with pytest.raises(ValueError, match=r"t\.csv is not in .*; give its encoding, such as utf-16"):
        read_moments(path, "y", csv=said)
    assert read_moments(path, "y", csv=CsvFormat(encoding=encoding)).n_samples == 2


def test_a_damaged_file_is_named(tmp_path):
    (tmp_path / "t.csv.gz").write_bytes(gzip.compress(b"a;y\n1;2\n" * 1000)[:-30])
    with pytest.raises(ValueError, match=r"t\.csv\.gz cannot be read"):
        read_moments(tmp_path / "t.csv.gz", "y")


def test_formats_that_are_none():
    for separator in ("", ";;", "§", "\n", '"'):
        with pytest.raises(ValueError, match="separator must be a single ASCII character"):
            CsvFormat(separator)
    with pytest.raises(ValueError, match="decimal mark must be"):
        CsvFormat(decimal=";")
    # The last two are codecs, but not of text.
    for encoding in ("klingon", "base64", "rot13"):
        with pytest.raises(ValueError, match=f"no encoding '{encoding}'"):
            CsvFormat(encoding=encoding)


def test_other_sources_have_no_format(tmp_path):
    table = frame().drop(columns="ort")
    table.to_parquet(tmp_path / "t.parquet")
    with pytest.raises(ValueError, match=r"are for CSV files; .*t\.parquet is none"):
        read_moments(tmp_path / "t.parquet", "y", csv=CsvFormat(";"))
    dd = pytest.importorskip("dask.dataframe")
    with pytest.raises(TypeError, match="csv is for files"):
        read_moments(dd.from_pandas(table, npartitions=1), "y", csv=CsvFormat(";"))
