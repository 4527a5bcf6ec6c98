"""A fitted model as a table: the variables kept, their coefficients, standard errors, intervals."""

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtrit

from sparsestep.words import printable

Array = NDArray[np.float64]

CONDITION = "Intervals hold for this set of variables as if it had been chosen beforehand."


def interval_level(level: Any) -> float:
    """The parameter `level` as a number between 0 and 1."""
    if isinstance(level, bool) or not isinstance(level, Real):
        raise ValueError(f"level must be a number between 0 and 1, such as 0.95; got {level!r}.")
    if not 0 < float(level) < 1:
        raise ValueError(f"level must lie between 0 and 1; got {level!r}.")
    return float(level)


def t_interval(coef: Array, errors: Array, free: float, level: float) -> tuple[Array, Array]:
    """Ends of the two-sided interval of the given level."""
    reach = stdtrit(free, 0.5 + level / 2.0) * errors if free > 0 else np.full_like(coef, np.nan)
    return coef - reach, coef + reach


@dataclass(frozen=True, eq=False)
class Summary:
    """The kept variables with their coefficients, and facts about the fit.

    Printed as a table, shown as one in notebooks; `to_frame` gives the numbers.

    Attributes
    ----------
    facts : dict of str to str
        How alpha was chosen, the errors, the number of variables kept.
    names : sequence of str
        Variables kept, the largest standardized effect first.
    coef, standard_error, low, high : ndarrays
        Coefficients, standard errors and interval ends of the selected model; NaN if unknown, as
        for coefficients that are shrunk or averaged.
    level : float
        Level of the intervals.
    notes : sequence of str
        What to know before relying on the model, a sentence each.
    inclusion : ndarray, or None
        Of an average: for each variable, the weight of the models that include it.
    """

    facts: dict[str, str]
    names: Sequence[str]
    coef: Array
    standard_error: Array
    low: Array
    high: Array
    level: float
    notes: Sequence[str] = ()
    inclusion: Array | None = None

    @property
    def columns(self) -> tuple[str, ...]:
        """Headings of the table as it is printed."""
        return ("variable", *self._shown())

    def _numbers(self) -> dict[str, Array]:
        """All columns of numbers, by their headings."""
        low, high = (f"{100 * end:g} %" for end in (0.5 - self.level / 2, 0.5 + self.level / 2))
        numbers = {"coefficient": self.coef}
        if self.inclusion is not None:
            numbers["inclusion"] = self.inclusion
        return numbers | {"std. error": self.standard_error, low: self.low, high: self.high}

    def _shown(self) -> dict[str, Array]:
        """The columns of numbers without those that are all NaN; all if there is no variable."""
        return {
            heading: values
            for heading, values in self._numbers().items()
            if not self.names or not np.isnan(values).all()
        }

    def to_frame(self) -> Any:
        """The table as a pandas DataFrame, indexed by variable."""
        try:
            import pandas as pd
        except ImportError:
            raise ImportError("to_frame needs pandas: pip install pandas") from None

        return pd.DataFrame(self._numbers(), index=pd.Index(list(self.names), name="variable"))

    @property
    def condition(self) -> str:
        """The condition under which the intervals hold; empty if there are none."""
        return CONDITION if np.isfinite(self.low).any() else ""

    def _below(self) -> list[str]:
        """What stands below the table."""
        notes = [f"Note: {printable(text)}" for text in self.notes]
        return [self.condition, *notes] if self.condition else notes

    def cells(self) -> list[tuple[str, ...]]:
        """The rows of the table as it is printed."""
        numbers = zip(*self._shown().values(), strict=True)
        return [
            (printable(name), *(f"{value:.5g}" for value in row))
            for name, row in zip(self.names, numbers, strict=True)
        ]

    def __str__(self) -> str:
        wide = max((len(fact) for fact in self.facts), default=0)
        lines = [f"{fact:<{wide}}  {value}" for fact, value in self.facts.items()]
        if self.names:
            table = [self.columns, *self.cells()]
            widths = [max(map(len, column)) for column in zip(*table, strict=True)]
            lines.append("")
            for first, *rest in table:
                cells = [f"{cell:>{width}}" for cell, width in zip(rest, widths[1:], strict=True)]
                lines.append("  ".join([f"{first:<{widths[0]}}", *cells]))
        for text in self._below():
            lines += ["", text]
        return "\n".join(lines)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        facts = "".join(
            f"<tr><th style='text-align:left'>{escape(fact)}</th>"
            f"<td style='text-align:left'>{escape(value)}</td></tr>"
            for fact, value in self.facts.items()
        )
        head = "".join(f"<th>{escape(column)}</th>" for column in self.columns)
        body = "".join(
            f"<tr><th style='text-align:left'>{escape(first)}</th>"
            + "".join(f"<td>{escape(cell)}</td>" for cell in rest)
            + "</tr>"
            for first, *rest in self.cells()
        )
        html = f"<table>{facts}</table>"
        if self.names:
            html += f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
        for text in self._below():
            html += f"<p><small>{escape(text)}</small></p>"
        return html
