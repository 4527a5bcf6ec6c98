"""Rows of CSV files, which are written as their first rows show; texts that are almost numbers.

The first lines show the separator. Columns that are text when read with a decimal point and numbers
when read with a decimal comma show the decimal mark. A column of text most of whose values are
numbers is a mistake in the file: a `?`, a unit, a decimal comma.
"""

import codecs
import csv
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cached_property, partial, reduce
from io import StringIO
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.dataset as ds

from sparsestep.errors import NotNumbersError
from sparsestep.sources.file_rows import Files, read_headers
from sparsestep.sources.files import Found, first_line, unreadable
from sparsestep.sources.request import CsvFormat
from sparsestep.sources.rows import Where, in_row, is_text, read_type

# Bytes and lines at the beginning of a CSV file that show its separator. pyarrow looks at as many
# bytes for the types of the columns.
HEAD_BYTES, HEAD_LINES = 1 << 20, 20
# In the order of preference where several fit equally well.
SEPARATORS = (",", ";", "\t", "|")

_EXPONENT = r"([eE][+-]?\d+)?\s*$"
_NUMBER = rf"^\s*[+-]?(\d+\.?\d*|\.\d+){_EXPONENT}"
_WITH_COMMA = rf"^\s*[+-]?\d*,\d+{_EXPONENT}"
_WITHOUT_POINT = rf"^\s*[+-]?(\d+,?\d*|,\d+){_EXPONENT}"
# No group of thousands begins with a zero.
_THOUSANDS = r"^\s*[+-]?[1-9]\d{0,2}(,\d{3})+(\.\d*)?\s*$"
# Texts that mean that a value is missing: in a column that is used, and in one carried along.
_MISSING, _EMPTY = (pa.array(t) for t in (pa.csv.ConvertOptions().null_values, [""]))


def csv_files(found: Found, csv: CsvFormat) -> "CsvFiles":
    """CSV files, read as `csv` says, or else as their first rows show."""
    separators = read_headers(found, partial(_separator, csv.encoding))
    if csv.separator is None:
        csv = replace(csv, separator=_common(found.files, separators))
    files = CsvFiles(found, csv)
    if all(len(names) == 1 for names in files._names):
        # An empty line is a missing value then; but before the name it would be the name.
        other = CsvFiles(found, csv, empty_lines=True)
        if other._names == files._names:
            files = other
    if csv.decimal is None and csv.separator != "," and files.texts:
        other = CsvFiles(found, replace(csv, decimal=","), files.empty_lines)
        # A column that the decimal comma turns into text holds numbers with a point.
        if other.texts < files.texts and any(
            _show_decimal_commas(other.first_texts(*column)) for column in files.texts - other.texts
        ):
            files = other
    return files


class CsvFiles(Files):
    """CSV files, written as `csv` says."""

    csv: CsvFormat

    def __init__(self, found: Found, csv: CsvFormat, empty_lines: bool = False) -> None:
        # Whether an empty line is a row.
        self.csv, self.empty_lines = csv, empty_lines
        form = self._written()

        def inspect(path: str, system: Any) -> Any:
            try:
                schema = form.inspect(path, system)
                # Names are decoded when they are asked for.
                len(schema.names)
                return schema
            except UnicodeError as error:
                raise _other_encoding(path, csv.encoding) from error

        super().__init__(found, form, read_headers(found, inspect))

    @cached_property
    def texts(self) -> set[tuple[str, str]]:
        """The columns of text, each by its file and its name."""
        files = zip(self._files, self._schemas, strict=True)
        fields = ((path, field) for path, schema in files for field in schema)
        return {(path, field.name) for path, field in fields if pa.types.is_string(field.type)}

    def _written(self, types: dict[str, Any] | None = None, raw: bool = False) -> Any:
        """The format in pyarrow's terms; raw texts are never missing."""
        return ds.CsvFileFormat(
            parse_options=pa.csv.ParseOptions(
                delimiter=self.csv.separator,
                # Without this, a line that ends within quotes must not be at the end of a block.
                newlines_in_values=True,
                ignore_empty_lines=not self.empty_lines,
            ),
            # An empty field is a missing value, whatever the type of its column.
            convert_options=pa.csv.ConvertOptions(
                column_types=types,
                strings_can_be_null=not raw,
                decimal_point=self.csv.decimal or ".",
            ),
            read_options=pa.csv.ReadOptions(encoding=self.csv.encoding),
        )

    def first_texts(self, path: str, name: str) -> Any:
        """A column of the first batch of a file, as text."""
        form = self._written({name: pa.string()})
        alone = ds.dataset([path], format=form, filesystem=self._system)
        # A row takes at least a byte, so the first batch is not cut in two.
        return next(alone.scanner(columns=[name], batch_size=HEAD_BYTES).to_batches()).column(0)

    def _format(self) -> Any:
        """The format with the types of the columns chosen."""
        own = self._of_files(self._columns)
        # A column to carry along is copied as text: an NA in it is no missing value.
        raw = not self._as_is.isdisjoint(own)
        null = {name: _MISSING for name in own if name in self._text}
        null |= {name: _EMPTY for name in own if name in self._as_is}
        # Texts that mean null, in columns of texts that are read raw.
        self._null_texts = null if raw else {}
        return self._written(self._types, raw)

    def _type_in(self, field: Any, where: str) -> Any:
        """The type to read a column of a file as, which shows only its first rows."""
        if field.name in self._of_folders:
            return super()._type_in(field, where)
        if field.name in self._text | self._as_is:
            # A category may look like a number, and a name such as 007 too.
            return pa.string()
        if pa.types.is_binary(field.type):
            raise _other_encoding(where, self.csv.encoding)
        if is_text(field.type):
            # pyarrow takes the types of the first batch, so a value that is no number is in it.
            texts = self.first_texts(where, field.name)
            column = TextColumn(self.csv)
            column.add(texts, lambda row: (row, where))
            column.check_almost_numbers(field.name, where)
        # Fractions may follow where the first rows have integers.
        kind = read_type(field, where)
        return kind if kind == pa.bool_() else pa.float64()

    def batches(self, size: int) -> Iterator[Any]:
        """All rows in order, with null for the texts that mean a missing value."""
        for batch in super().batches(size):
            for name, texts in self._null_texts.items():
                j = batch.schema.get_field_index(name)
                missing = pc.is_in(batch.column(j), texts)
                column = pc.if_else(missing, pa.scalar(None, pa.string()), batch.column(j))
                batch = batch.set_column(j, name, column)
            yield batch

    def _error_in(self, path: str, error: Exception) -> ValueError:
        """The error of a file by column and line, for which pyarrow has no fields."""
        message = first_line(error)
        if isinstance(error, UnicodeError) or "invalid UTF8 data" in message:
            return _other_encoding(path, self.csv.encoding)
        match = re.search(r"In CSV column #(\d+): (?:Row #(\d+): )?.*invalid value '(.*)'", message)
        if not match:
            return unreadable(path, error)
        name = self._names[self._files.index(path)][int(match[1])]
        line = f" in line {match[2]}" if match[2] else ""
        return ValueError(f"Column {name!r} holds {match[3]!r}{line} of {path}; it is no number.")


# -- how files are written -------------------------------------------------------------------


def _other_encoding(path: str, encoding: str, such_as: str = "cp1252") -> ValueError:
    """The error for a file whose bytes are no text in its encoding."""
    return ValueError(f"{path} is not in {encoding}; give its encoding, such as {such_as}.")


def _separator(encoding: str, path: str, system: Any) -> str | None:
    """The separator that the beginning of a file shows."""
    with system.open_input_stream(path) as file:
        head = file.read(HEAD_BYTES)
    wide = codecs.lookup(encoding).name.startswith(("utf-16", "utf-32"))
    marked = head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
    if not wide and (marked or 4 * head.count(0) > len(head)):
        raise _other_encoding(path, encoding, "utf-16")
    lines = head.decode(encoding, errors="replace").splitlines(keepends=True)
    # The last line may be cut off.
    return separator_in("".join(lines[: min(HEAD_LINES, max(len(lines) - 1, 1))]))


def separator_in(head: str) -> str | None:
    """The separator that the first lines of a file show; None if it has no usual one.

    A mark fits if each line has as many fields as the header. Of the fitting marks, or else of all,
    the one with the most fields is taken: a decimal comma does not stand in every number, nor a
    semicolon in every text.
    """
    counts = {mark: _fields(head, mark) for mark in SEPARATORS if mark in head}
    there = [mark for mark in counts if counts[mark] and counts[mark][0] > 1]
    fitting = [mark for mark in there if len(set(counts[mark])) == 1]
    return max(fitting or there, key=lambda mark: counts[mark][0], default=None)


def _fields(head: str, mark: str) -> Sequence[int]:
    """How many fields each line has with this separator, quotes respected."""
    try:
        rows = csv.reader(StringIO(head.removeprefix("\N{BYTE ORDER MARK}")), delimiter=mark)
        return [len(row) for row in rows if row]
    except csv.Error:
        return []


def _common(files: Sequence[str], marks: Sequence[str | None]) -> str:
    """The separator that the files show, which must be the same; the comma if none shows one."""
    shown = {mark: files[marks.index(mark)] for mark in marks if mark is not None}
    if len(shown) > 1:
        (one, first), (other, second) = list(shown.items())[:2]
        raise ValueError(
            f"{first} seems to be separated by {one!r} and {second} by {other!r}; give the "
            "separator, or read them apart."
        )
    return next(iter(shown), ",")


def _show_decimal_commas(texts: Any) -> bool:
    """Whether a comma in one of the texts can only be a decimal mark."""
    comma = pc.match_substring_regex(texts, _WITH_COMMA)
    return bool(pc.any(pc.and_not(comma, pc.match_substring_regex(texts, _THOUSANDS))).as_py())


class TextColumn:
    """Texts of a column, counted; `csv` says how they were read, if they are of a CSV file."""

    def __init__(self, csv: CsvFormat | None) -> None:
        self.counts: Counter[str] = Counter()
        self.n_missing = 0
        # The first text that is no number, its row and its file.
        self._first: tuple[str, int, str] | None = None
        self._csv = csv
        self._number = _WITHOUT_POINT if csv is not None and csv.decimal == "," else _NUMBER

    def add(self, texts: Any, where: Where) -> None:
        """Count the texts of a block."""
        self.n_missing += texts.null_count
        counts = pc.value_counts(texts.drop_null()).to_pylist()
        self.counts.update({each["values"]: each["counts"] for each in counts})
        if self._first is None:
            row = pc.index(pc.match_substring_regex(texts, self._number), False).as_py()
            self._first = None if row < 0 else (texts[row].as_py(), *where(row))

    def check_almost_numbers(self, column: str, where: str) -> None:
        """Raise if most texts are numbers, but not all."""
        if self._first is None:
            return
        values, times = (pa.array(list(t)) for t in (self.counts, self.counts.values()))
        forms = (self._number, _NUMBER, _WITH_COMMA, _THOUSANDS)
        almost = reduce(pc.or_, (pc.match_substring_regex(values, form) for form in forms))
        n_values, n_numbers = self.counts.total(), pc.sum(times.filter(almost)).as_py() or 0
        if 2 * n_numbers <= n_values:
            return
        (text, row, name), csv = self._first, self._csv
        what, advice, decimal = f"{text!r} {in_row(row, '')}", "correct it", False
        thousands = re.match(_THOUSANDS, text)
        comma = re.match(_WITH_COMMA, text) and (_show_decimal_commas(values) or not thousands)
        if comma or re.match(_NUMBER, text):
            what += f", which looks like a number with a decimal {'comma' if comma else 'point'}"
            if csv is not None:
                advice, decimal = "", True
        elif thousands:
            what += ", which looks like a number with separators of thousands"
            advice = "write such numbers without them"
            if csv is not None and csv.decimal is None and csv.separator != ",":
                what += ", or with a decimal comma"
                advice, decimal = "write numbers without separators of thousands", True
        else:
            what += f", while {n_numbers} of the {n_values} values read are numbers"
        raise NotNumbersError(column, name or where, what, advice, decimal)
