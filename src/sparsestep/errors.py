"""What can be wrong with the input, as exceptions and warnings with fields.

An error says what is wrong, where, and what to do, and has a field for each. A layer whose users
say it in other words (the command line: by an option) makes its own sentence from the fields; no
layer takes the sentence of another apart.

All arguments of a constructor are the exception's `args`: the exceptions can be pickled, as Dask
and Spark do on their way from the workers.
"""

import math
import sys
import warnings
from collections.abc import Mapping, Sequence

from sparsestep.words import lost_digits, quoted, rows_left_out, sentence

__all__ = [
    "DroppedRowsWarning",
    "FarRowsWarning",
    "InputError",
    "LostDigitsWarning",
    "ManyVariablesWarning",
    "MissingValueError",
    "ModelFileError",
    "ModelSizeError",
    "MomentsFileError",
    "NotNumbersError",
    "OutOfRangeError",
    "RowNamesWarning",
    "UnknownCategoryError",
]


def warn(warning: Warning) -> None:
    """Warn of the line outside the package that led here."""
    level, frame = 1, sys._getframe()
    while frame.f_back and str(frame.f_globals.get("__name__")).startswith("sparsestep."):
        level, frame = level + 1, frame.f_back
    warnings.warn(warning, stacklevel=level)


class InputError(ValueError):
    """The input cannot be used: `what` is wrong, `where`, and the `remedy`.

    `what` may be the whole sentence where no other layer advises another remedy.
    """

    def __init__(self, what: str, where: str = "", remedy: str = "") -> None:
        super().__init__(what, where, remedy)
        self.what, self.where, self.remedy = what, where, remedy

    def __str__(self) -> str:
        place = f" {self.where}" if self.where else ""
        advice = f"; {self.remedy}" if self.remedy else ""
        whole = f"{self.what}{place}{advice}"
        return whole if whole.endswith((".", "?")) else f"{whole}."

    def advising(self, remedy: str) -> "InputError":
        """The same with another remedy."""
        return type(self)(self.what, self.where, remedy)


class MissingValueError(InputError):
    """A value of a row is missing, and the row cannot be used without it."""


class UnknownCategoryError(InputError):
    """A row holds a text that is none of the categories of its column."""


class NotNumbersError(TypeError, ValueError):
    """A column holds something else than numbers.

    Attributes
    ----------
    name : str or int, or None
        The column, by its number if it has no name; None for data without columns.
    where : str
        What it is a column of, y for a target; empty if there is only one table. The data
        themselves if they have no columns.
    what : str
        What the column holds: "text", "categories", "dates or times", or other words.
    advice : str
        What to do about it; empty if nothing but the decimal mark would help.
    decimal : bool
        Whether it would help to give the decimal mark of the file.
    """

    def __init__(
        self,
        name: str | int | None,
        where: str,
        what: str,
        advice: str = "turn it into numbers",
        decimal: bool = False,
    ) -> None:
        super().__init__(name, where, what, advice, decimal)
        self.name, self.where, self.what = name, where, what
        self.advice, self.decimal = advice, decimal

    def sentence(self, *remedies: str, column: str = "Column") -> str:
        """What is wrong and where, with these remedies."""
        of = f" of {self.where}" if self.where else ""
        whole = self.where if self.name is None else f"{column} {self.name!r}{of}"
        advice = ", or ".join(each for each in remedies if each)
        return f"{whole} holds {self.what}; {advice}."

    def __str__(self) -> str:
        mark = "give the decimal mark" if self.decimal else ""
        whole = self.name is None or self.where == "y"
        without = "" if whole else "choose features without it"
        return self.sentence(mark, self.advice, without)


class OutOfRangeError(ValueError):
    """Squares of the values of a column are too large or too small for a double.

    `problem` is a sentence with ``{name}`` for the column, `is_target` whether that is the target.
    """

    def __init__(self, problem: str, name: str, is_target: bool = False) -> None:
        super().__init__(problem, name, is_target)
        self.problem, self.name, self.is_target = problem, name, is_target

    def naming(self, target: str) -> "OutOfRangeError":
        """The same of a target with a name."""
        name = f"the target {target!r}" if self.is_target else self.name
        return OutOfRangeError(self.problem, name, self.is_target)

    def __str__(self) -> str:
        return f"{sentence(self.problem.format(name=self.name))}; rescale it."


class ModelSizeError(ValueError):
    """No model has exactly `size` variables.

    The `problem` follows the size in a sentence; `nearest` is the size of the nearest model, None
    if there are fewer columns than `size`.
    """

    def __init__(self, size: int, problem: str, nearest: int | None = None) -> None:
        super().__init__(size, problem, nearest)
        self.size, self.problem, self.nearest = size, problem, nearest

    def sentence(self, parameter: str, sign: str = "=") -> str:
        """What is wrong with the parameter that gives the size."""
        given = f"{parameter}{sign}{self.size}"
        if self.nearest is None:
            return f"{given} {self.problem}; lower it."
        return f"No model of exactly {given} {self.problem}: change {parameter}."

    def __str__(self) -> str:
        return self.sentence("n_nonzero")


class MomentsFileError(ValueError):
    """A file is not a moments file that this version can read."""


class ModelFileError(ValueError):
    """A file is not a model file that this version can read."""


class LostDigitsWarning(UserWarning):
    """Columns that are nearly collinear have cost digits of the coefficients.

    Attributes
    ----------
    condition_number : float
        That of the standardized columns kept.
    digits : int
        About how many digits of the coefficients are right.
    """

    def __init__(self, condition_number: float, error: float, advice: str) -> None:
        super().__init__(condition_number, error, advice)
        self.condition_number, self.advice = condition_number, advice
        self.digits = max(int(-math.log10(max(error, 2.0**-52))), 0)

    def __str__(self) -> str:
        return lost_digits(self.condition_number, self.digits, self.advice)


class ManyVariablesWarning(UserWarning):
    """More variables are kept, of more columns than rows, than the rows can support."""


class FarRowsWarning(UserWarning):
    """`n_rows` rows to predict lie far outside the rows that a model was fitted to."""

    def __init__(self, message: str, n_rows: int) -> None:
        super().__init__(message, n_rows)
        self.n_rows = n_rows

    def __str__(self) -> str:
        return str(self.args[0])


class DroppedRowsWarning(UserWarning):
    """Rows with a missing value were left out; `n_dropped` of `n_rows`.

    `n_missing` says in how many rows a value is missing in each column, the most first.
    """

    def __init__(self, n_dropped: int, n_rows: int, n_missing: Mapping[str, int]) -> None:
        super().__init__(n_dropped, n_rows, n_missing)
        self.n_dropped, self.n_rows, self.n_missing = n_dropped, n_rows, dict(n_missing)

    def __str__(self) -> str:
        return rows_left_out(self.n_dropped, self.n_rows, self.n_missing)


class RowNamesWarning(UserWarning):
    """Columns that name or number the rows, as pandas writes its index, were left out.

    `columns` are their names; `nameless` says that it is the first column, which has none.
    """

    def __init__(self, columns: Sequence[str], nameless: bool = False) -> None:
        super().__init__(columns, nameless)
        self.columns, self.nameless = list(columns), nameless

    @property
    def what(self) -> str:
        """What was left out, as the beginning of a sentence."""
        if self.nameless:
            return "The first column has no name and is left out"
        if len(self.columns) == 1:
            return f"Column {self.columns[0]!r} names the rows and is left out"
        return f"Columns {quoted(self.columns, 5)} name the rows and are left out"

    def __str__(self) -> str:
        return f"{self.what}; features says otherwise."
