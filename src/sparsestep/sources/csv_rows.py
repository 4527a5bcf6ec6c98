"""Rows of CSV files, which are written as their first rows show; texts that are almost numbers.

The first lines show the separator. Columns that are text when read with a decimal point and numbers
when read with a decimal comma show the decimal mark. A column of text most of whose values are
numbers is a mistake in the file: a `?`, a unit, a decimal comma.
"""

import codecs
import csv
import re
from collections.abc import Collection, Sequence
from dataclasses import replace
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
from sparsestep.sources.rows import Batches, Place, is_text, read_type
from sparsestep.words import in_row

__all__ = ["AlmostNumbers", "CsvFiles", "separator_in"]

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


class CsvFiles(Files):
    """CSV files, written as `csv` says, or else as their first rows show."""

    csv: CsvFormat

    def __init__(self, found: Found, csv: CsvFormat) -> None:
        self._files, self._system, _ = found
        self.csv, self._empty_lines = csv, False
        marks = read_headers(self._files, self._separator)
        if csv.separator is None:
            self.csv = replace(csv, separator=_common(self._files, marks))
        schemas = read_headers(self._files, self._schema)
        schemas = self._with_empty_lines(schemas)
        schemas = self._with_decimal_commas(schemas)
        super().__init__(found, self._arrow(), schemas)
        # Texts that mean null, in columns of texts that are read raw.
        self._null_texts: dict[str, Any] = {}

    def _format_of(
        self, fields: Sequence[Any], text: Collection[str], as_is: Collection[str]
    ) -> Any:
        """The format with the types of some columns."""
        own = self._of_files([field.name for field in fields])
        # A column to carry along is copied as text: an NA in it is no missing value.
        raw = any(name in as_is for name in own)
        null = {name: _MISSING for name in own if name in text}
        null |= {name: _EMPTY for name in own if name in as_is}
        self._null_texts = null if raw else {}
        return self._arrow({field.name: field.type for field in fields}, raw)

    def _type_in(
        self, field: Any, where: str, text: Collection[str], as_is: Collection[str]
    ) -> Any:
        """The type to read a column of a file as, which shows only its first rows."""
        if field.name in self._of_folders:
            return super()._type_in(field, where, text, as_is)
        if field.name in text or field.name in as_is:
            # A category may look like a number, and a name such as 007 too.
            return pa.string()
        if pa.types.is_binary(field.type):
            raise self._other_encoding(where)
        if is_text(field.type):
            self._check_almost_numbers(field.name, where)
        # Fractions may follow where the first rows have integers.
        kind = read_type(field, where)
        return kind if kind == pa.bool_() else pa.float64()

    def _batches(self, size: int) -> Batches:
        """All rows in order."""
        return ((self._with_nulls(batch), place) for batch, place in super()._batches(size))

    def _with_nulls(self, batch: Any) -> Any:
        """The batch with null for the texts that mean a missing value."""
        for name, texts in self._null_texts.items():
            j = batch.schema.get_field_index(name)
            column = batch.column(j)
            found = pc.if_else(pc.is_in(column, texts), pa.scalar(None, pa.string()), column)
            batch = batch.set_column(j, name, found)
        return batch

    def _error_in(self, path: str, error: Exception) -> ValueError:
        """The error of a file by column and line, for which pyarrow has no fields."""
        message = first_line(error)
        if isinstance(error, UnicodeError) or "invalid UTF8 data" in message:
            return self._other_encoding(path)
        match = re.search(r"In CSV column #(\d+): (?:Row #(\d+): )?.*invalid value '(.*)'", message)
        if not match:
            return unreadable(path, error)
        name = self._names[self._files.index(path)][int(match[1])]
        line = f" in line {match[2]}" if match[2] else ""
        return ValueError(f"Column {name!r} holds {match[3]!r}{line} of {path}; it is no number.")

    # -- how the files are written -----------------------------------------------------------

    def _arrow(self, types: dict[str, Any] | None = None, raw: bool = False) -> Any:
        """The format in pyarrow's terms; raw texts are never missing."""
        return ds.CsvFileFormat(
            parse_options=pa.csv.ParseOptions(
                delimiter=self.csv.separator,
                # Without this, a line that ends within quotes must not be at the end of a block.
                newlines_in_values=True,
                ignore_empty_lines=not self._empty_lines,
            ),
            # An empty field is a missing value, whatever the type of its column.
            convert_options=pa.csv.ConvertOptions(
                column_types=types,
                strings_can_be_null=not raw,
                decimal_point=self.csv.decimal or ".",
            ),
            read_options=pa.csv.ReadOptions(encoding=self.csv.encoding),
        )

    def _other_encoding(self, path: str, such_as: str = "cp1252") -> ValueError:
        """The error for a file whose bytes are no text in its encoding."""
        return ValueError(
            f"{path} is not in {self.csv.encoding}; give its encoding, such as {such_as}."
        )

    def _check_almost_numbers(self, name: str, path: str) -> None:
        """Name the value by which a column is text, if most of them are numbers.

        It is in the first batch, from which pyarrow takes the types of the columns.
        """
        texts = self._first_texts(path, name)
        numbers = AlmostNumbers(self.csv)
        numbers.add(texts, pc.value_counts(texts.drop_null()), Place(path, 0, len(texts)))
        numbers.check(name, path)

    def _separator(self, path: str) -> str | None:
        """The separator that the beginning of a file shows."""
        with self._system.open_input_stream(path) as file:
            head = file.read(HEAD_BYTES)
        if _has_wide_characters(head, self.csv.encoding):
            raise self._other_encoding(path, "utf-16")
        lines = head.decode(self.csv.encoding, errors="replace").splitlines(keepends=True)
        # The last line may be cut off.
        return separator_in("".join(lines[: min(HEAD_LINES, max(len(lines) - 1, 1))]))

    def _schema(self, path: str) -> Any:
        """The columns of a file, with the types that its first rows show."""
        try:
            schema = self._arrow().inspect(path, self._system)
            # Names are decoded when they are asked for.
            len(schema.names)
            return schema
        except UnicodeError as error:
            raise self._other_encoding(path) from error

    def _with_empty_lines(self, schemas: list[Any]) -> list[Any]:
        """The columns, with empty lines of files of one column read as missing values."""
        if any(len(schema) != 1 for schema in schemas):
            return schemas
        self._empty_lines = True
        found = read_headers(self._files, self._schema)
        # An empty line before the name would be the name.
        self._empty_lines = [a.names for a in found] == [b.names for b in schemas]
        return found if self._empty_lines else schemas

    def _with_decimal_commas(self, schemas: list[Any]) -> list[Any]:
        """The columns, with decimal commas if no mark is given and texts become numbers by them."""
        given, text = self.csv, self._columns_of_text(schemas)
        if given.decimal is not None or given.separator == "," or not text:
            return schemas
        self.csv = replace(given, decimal=",")
        found = read_headers(self._files, self._schema)
        still = self._columns_of_text(found)
        # A column that the decimal comma turns into text holds numbers with a point.
        if still < text and any(
            _show_decimal_commas(self._first_texts(path, name)) for path, name in text - still
        ):
            return found
        self.csv = given
        return schemas

    def _columns_of_text(self, schemas: Sequence[Any]) -> set[tuple[str, str]]:
        """Files and names of their columns of text."""
        return {
            (path, field.name)
            for path, schema in zip(self._files, schemas, strict=True)
            for field in schema
            if pa.types.is_string(field.type)
        }

    def _first_texts(self, path: str, name: str) -> Any:
        """A column of the first batch of a file, as text."""
        form = self._arrow({name: pa.string()})
        alone = ds.dataset([path], format=form, filesystem=self._system)
        # A row takes at least a byte, so the first batch is not cut in two.
        batch = next(alone.scanner(columns=[name], batch_size=HEAD_BYTES).to_batches())
        return batch.column(0)


def _has_wide_characters(head: bytes, encoding: str) -> bool:
    """Whether a file has several bytes for each character, which its encoding has not."""
    if codecs.lookup(encoding).name.startswith(("utf-16", "utf-32")):
        return False
    marked = head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
    return marked or 4 * head.count(0) > len(head)


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


class AlmostNumbers:
    """Counts the numbers among texts, batch by batch, and finds the first that is none.

    `csv` says how the texts were read, if they are those of a CSV file.
    """

    def __init__(self, csv: CsvFormat | None = None) -> None:
        self._csv = csv
        self._number = _WITHOUT_POINT if csv is not None and csv.decimal == "," else _NUMBER
        self._values = self._numbers = 0
        self._decimal_commas = False
        self._first: tuple[str, int, str] | None = None

    def add(self, texts: Any, counts: Any, place: Place) -> None:
        """Count the texts of a batch.

        `counts` are their `pyarrow.compute.value_counts`: each text is matched only once.
        """
        values, times = counts.field("values"), counts.field("counts")
        number = pc.match_substring_regex(values, self._number)
        almost = number
        for form in (_NUMBER, _WITH_COMMA, _THOUSANDS):
            almost = pc.or_(almost, pc.match_substring_regex(values, form))
        self._values += pc.sum(times).as_py() or 0
        self._numbers += pc.sum(times.filter(almost)).as_py() or 0
        self._decimal_commas = self._decimal_commas or _show_decimal_commas(values)
        if self._first is None and number.false_count:
            row = pc.index(pc.match_substring_regex(texts, self._number), False).as_py()
            self._first = (texts[row].as_py(), place.first + row, place.name)

    def check(self, column: str, where: str) -> None:
        """Raise if most values are numbers, but not all."""
        if self._first is None or 2 * self._numbers <= self._values:
            return
        text, row, name = self._first
        what, advice, decimal = f"{text!r} {in_row(row, '')}", "correct it", False
        thousands = re.match(_THOUSANDS, text)
        comma = re.match(_WITH_COMMA, text) and (self._decimal_commas or not thousands)
        if comma or re.match(_NUMBER, text):
            what += f", which looks like a number with a decimal {'comma' if comma else 'point'}"
            if self._csv is not None:
                advice, decimal = "", True
        elif thousands:
            what += ", which looks like a number with separators of thousands"
            advice = "write such numbers without them"
            csv = self._csv
            if csv is not None and csv.decimal is None and csv.separator != ",":
                what += ", or with a decimal comma"
                advice, decimal = "write numbers without separators of thousands", True
        else:
            what += f", while {self._numbers} of the {self._values} values read are numbers"
        raise NotNumbersError(column, name or where, what, advice, decimal)
