"""CSV files of other habits: the same moments as of the same table in Parquet."""

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
    zahl, ort = rng.integers(0, 9, n), rng.choice(["Köln", "a,b"], n)
    return pd.DataFrame({"größe": X[:, 0], "zahl": zahl, "ort": ort, "y": X @ [2.0, 1.0]})


NUMBERS = frame().drop(columns="ort")


@pytest.fixture
def path(tmp_path):
    return tmp_path / "t.csv"


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


def test_what_is_said_is_not_searched_for(path):
    for separator, said in ((":", CsvFormat(":", ",")), ("\t", CsvFormat(r"\t"))):
        NUMBERS.to_csv(path, sep=separator, decimal=",", index=False)
        same_moments(read_moments(path, "y", csv=said), read_moments(NUMBERS, "y"))
    with pytest.raises(TypeError, match=r"'größe' of .* holds '.*'.*; give the decimal mark"):
        read_moments(path, "y", csv=CsvFormat(decimal="."))


def test_files_of_a_folder_share_their_habits(tmp_path):
    # Whole numbers only: nothing shows the decimal mark.
    first, whole = NUMBERS[:20], NUMBERS[20:].round()
    first.to_csv(tmp_path / "a.csv", sep=";", decimal=",", index=False)
    whole.astype(int).to_csv(tmp_path / "b.csv", sep=";", index=False)
    same_moments(read_moments(tmp_path, "y"), read_moments(pd.concat([first, whole]), "y"))
    NUMBERS.to_csv(tmp_path / "c.csv", sep=";", index=False)
    with pytest.raises(TypeError, match=r"'größe' of .*a\.csv holds '.*'.*; give the decimal mark"):
        read_moments(tmp_path, "y")
    NUMBERS.to_csv(tmp_path / "c.csv", sep="|", index=False)
    with pytest.raises(ValueError, match=r"a\.csv .* by ';' and .*c\.csv by '\|'; give the sep"):
        read_moments(tmp_path, "y")


def column(*texts):
    """A CSV file with a column of these texts, in quotes, four times over."""
    return "x,y\n" + "".join(f'"{text}",{i}\n' for i, text in enumerate(texts * 4))


UNCLEAR = "x|y\n1,775|5\n904|3\n12,500|7"
UNKNOWN = "'1,775' in row 0 .* thousands, or with a decimal comma; give the decimal mark"
THOUSANDS = "separators of thousands; write such numbers without them, or"
NO_NUMBERS = ("?", "12 kg", "1.234,5", "-", "1.2.3", "e5", ".")


def wrong(text):
    here = rf"'{re.escape(text)}' in row 3 \(counted from 0\)"
    return f"{here}, while 36 of the 40 values read are numbers; correct it, or choose"


@pytest.mark.parametrize(
    ("content", "decimal", "message"),
    [
        *((UNCLEAR.replace("|", separator), None, UNKNOWN) for separator in ";\t"),
        (UNCLEAR.replace("|", ";"), ".", f"'1,775' .*{THOUSANDS}"),
        (column("1,5", "2", "3,25"), None, "'1,5' .* a decimal comma; give the decimal mark, or c"),
        (column("0,5", "1,25", "1,5"), None, "'0,5' .* a decimal comma"),
        (column("0.5", "1.25", "1.5"), ",", "'0.5' .* a decimal point"),
        (column("1,775", "2,25", "3,5"), None, "'1,775' .* a decimal comma"),
        (column("1,775,000", "2,25", "3,5"), None, "'1,775,000' .* separators of thousands"),
        (column("1,775", "2,250", "3,500"), None, "'1,775' .* separators of thousands"),
        (column("42,386", "5", "1,234,567.5"), None, f"'42,386' .*{THOUSANDS}"),
        ("x;y\n?;1\n2,25;2\n1,5;3\n", ",", r"'\?' .*; correct it"),
        *((column(*3 * ["1.5"], text, *6 * ["2"]), None, wrong(text)) for text in NO_NUMBERS),
    ],
)
def test_a_text_that_is_no_number_is_named_with_its_form(content, decimal, message, path):
    path.write_text(content)
    said = CsvFormat(decimal=decimal)
    for read in (
        lambda: read_moments(path, "y", csv=said),
        lambda: read_categories(path, csv=said),
    ):
        with pytest.raises(NotNumbersError, match=rf"'x' of .*t\.csv holds {message}"):
            read()


def test_commas_are_decimal_marks_if_said(path):
    for content, mean in (
        (UNCLEAR.replace("|", ";"), (1.775 + 904 + 12.5) / 3),
        (column("1,5", "2", "3,25"), 6.75 / 3),
    ):
        path.write_text(content)
        moments = read_moments(path, "y", csv=CsvFormat(decimal=","))
        assert moments.mean_x[0] == pytest.approx(mean)


@pytest.mark.parametrize("other", ["0,346", "2,5", "1775,125", ",250"])
def test_one_decimal_comma_tells_of_all_others(other, path):
    path.write_text(f"a;b;y\n1,775;{other};1\n1,250;3;2\n")
    assert read_moments(path, "y").mean_x[0] == pytest.approx((1.775 + 1.25) / 2)


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


def test_empty_lines_of_a_single_column_are_missing_values(path):
    for ending in ("\n", "\r\n"):
        path.write_bytes(ending.join(["x", "1", "", "3", ""]).encode())
        rows = open_rows(path)
        rows.select(["x"])
        assert [v for b in rows.batches(10) for v in b["x"].to_pylist()] == [1, None, 3]
    # Before the name there is no row, and between rows of two columns none either.
    path.write_text("\nx\n1\n")
    assert open_rows(path).names == ["x"]
    path.write_text("x,y\n1,2\n\n3,4\n")
    assert read_moments(path, "y").n_samples == 2


@pytest.mark.parametrize("note", ["first\nsecond", "a,b\n1,2\n", '"\n"', "\r\n\r\n"])
def test_lines_within_quotes_anywhere_in_a_large_file(note, path):
    """Blocks of a megabyte end within quotes somewhere."""
    n = 3_000_000 // (len(note) + 20)
    numbers = np.random.default_rng(0).normal(size=(n, 2)).round(6)
    table = pd.DataFrame({"note": note, "x": numbers[:, 0], "y": numbers[:, 1]})
    table.to_csv(path, index=False)
    assert path.stat().st_size > 2_000_000
    moments = read_moments(path, "y", features=["x"])
    same_moments(moments, read_moments(table, "y", features=["x"]))


def test_a_header_longer_than_the_head(path):
    names = [f"a rather long name of a column, number {j}" for j in range(3000)]
    pd.DataFrame(np.eye(2, 3000), columns=names).to_csv(path, sep=";", index=False)
    assert read_moments(path, names[0]).n_features == 2999


def test_bytes_of_another_encoding_are_named(path):
    table = frame().rename(columns={"größe": "size"})
    table.to_csv(path, encoding="cp1252", index=False)
    with pytest.raises(ValueError, match=r"t\.csv is not in utf-8; give its encoding, such as cp1"):
        read_moments(path, "y")
    # Where nobody needs the column, nobody needs to know.
    assert read_moments(path, "y", features=["size", "zahl"]).n_features == 2
    late = "x,c,y\n" + "1,a,2\n" * 300_000 + "1,\xe4,2\n"
    path.write_bytes(late.encode("cp1252"))
    for encoding in ("utf-8", "ascii", "utf-16"):
        with pytest.raises(ValueError, match=rf"t\.csv is not in {encoding}"):
            read_categories(path, csv=CsvFormat(encoding=encoding))


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be", "utf-32"])
@pytest.mark.parametrize("said", [None, CsvFormat(","), CsvFormat(encoding="cp1252")], ids=str)
def test_wide_characters_need_their_encoding(encoding, said, path):
    path.write_bytes("x,y\n1,2\n3,5\n".encode(encoding))
    with pytest.raises(ValueError, match=r"t\.csv is not in .*; give its encoding, such as utf-16"):
        read_moments(path, "y", csv=said)
    assert read_moments(path, "y", csv=CsvFormat(encoding=encoding)).n_samples == 2


@pytest.mark.parametrize(
    ("given", "words"),
    [
        *(((separator,), "a single ASCII character") for separator in ("", ";;", "§", "\n", '"')),
        ((None, ";"), "decimal mark must be"),
        # The last two are codecs, but not of text.
        *(((None, None, name), f"no encoding '{name}'") for name in ("klingon", "base64", "rot13")),
    ],
)
def test_formats_that_are_none(given, words):
    with pytest.raises(ValueError, match=words):
        CsvFormat(*given)
