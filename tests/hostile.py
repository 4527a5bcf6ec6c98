"""Hostile input, and what each does: the list behind both the tests and the page's table."""

import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone

from rows import table
from sparsestep import Moments, SparseStep, SparseStepCV, SparseStepIC, read_moments

ESTIMATORS = (SparseStep(10.0), SparseStepCV(6, cv=3), SparseStepIC(alphas=6))
X, Y = table(30, 3)


@dataclass(frozen=True)
class Case:
    """An input and what it does.

    Attributes
    ----------
    group, input, result : str
        The cells of the page's table; `result` is the error's own text if it is refused.
    run : callable
        Of an estimator: fits it to the input, and asserts what the result says.
    of : tuple of estimators
        Which it is about; all by default.
    refused : bool
    """

    group: str
    input: str
    result: str
    run: Callable
    of: tuple
    refused: bool


CASES: list[Case] = []


def answer(group, input, result, of=ESTIMATORS):
    """Note a case that has an answer; the function asserts it."""

    def note(run):
        CASES.append(Case(group, input, result, run, of, refused=False))
        return run

    return note


def refuse(group, input, message, run, of=ESTIMATORS):
    """Note a case that is refused in these words."""
    CASES.append(Case(group, input, message, run, of, refused=True))


def with_value(value, at):
    changed = X.copy()
    changed[at] = value
    return changed


def with_params(**params):
    return lambda e: clone(e).set_params(**params).fit(X, Y)


def same(model, other, rtol=1e-9):
    """The two have the same support, coefficients, intercept and alpha."""
    assert_array_equal(other.coef_ != 0, model.coef_ != 0)
    assert_allclose(other.coef_, model.coef_, rtol=rtol)
    assert_allclose(other.intercept_, model.intercept_, rtol=rtol, atol=1e-12)
    assert_allclose(other.alpha_, model.alpha_, rtol=rtol)


def plain(e):
    return clone(e).fit(X, Y)


# --- values ---------------------------------------------------------------------------------------

for value, word in ((np.nan, "NaN"), (np.inf, "infinity"), (-np.inf, "infinity")):
    refuse(
        "values",
        f"`{value}` in X",
        f"Input X contains {word}, first in row 4 of column 1; remove such rows or fill them in.",
        lambda e, value=value: clone(e).fit(with_value(value, (4, 1)), Y),
    )
refuse(
    "values",
    "NaN in a sparse X",
    "Input X contains NaN, first in row 4 of column 1; remove such rows or fill them in.",
    lambda e: clone(e).fit(sp.csc_array(with_value(np.nan, (4, 1))), Y),
)
refuse(
    "values",
    "a missing value in a frame",
    "Input X contains NaN, first in row 4 of column 'b'; remove such rows or fill them in.",
    lambda e: clone(e).fit(pd.DataFrame(with_value(np.nan, (4, 1)), columns=["a", "b", "c"]), Y),
)
refuse(
    "values",
    "NaN in y",
    "Input y contains NaN, first in row 7; remove such rows or fill them in.",
    lambda e: clone(e).fit(X, np.where(np.arange(30) == 7, np.nan, Y)),
)
refuse(
    "values",
    "infinity in y",
    "Input y contains infinity, first in row 7; remove such rows or fill them in.",
    lambda e: clone(e).fit(X, np.where(np.arange(30) == 7, np.inf, Y)),
)

# --- shapes ---------------------------------------------------------------------------------------

for rows in (0, 1):
    refuse(
        "shapes",
        "no rows" if rows == 0 else "one row",
        f"Found array with {rows} sample(s) (shape=({rows}, 3)) while a minimum of 2 is required "
        "by {estimator}.",
        lambda e, rows=rows: clone(e).fit(X[:rows], Y[:rows]),
    )
refuse(
    "shapes",
    "no columns",
    "Found array with 0 feature(s) (shape=(30, 0)) while a minimum of 1 is required by "
    "{estimator}.",
    lambda e: clone(e).fit(X[:, :0], Y),
)
refuse(
    "shapes",
    "a frame without columns",
    "X has no columns; give at least one.",
    lambda e: clone(e).fit(pd.DataFrame(X)[[]], Y),
)
refuse(
    "shapes",
    "two columns of one name",
    "X has more than one column 'a'; rename one.",
    lambda e: clone(e).fit(pd.DataFrame(X, columns=["a", "b", "a"]), Y),
)
refuse(
    "shapes",
    "X with one dimension",
    "Expected 2D array, got 1D array instead. Reshape your data: X.reshape(-1, 1) if it is one "
    "column, X.reshape(1, -1) if it is one row.",
    lambda e: clone(e).fit(X[:, 0], Y),
)
refuse(
    "shapes",
    "X with three dimensions",
    "Found array with dim 3, while dim <= 2 is required by {estimator}.",
    lambda e: clone(e).fit(X[:, :, None], Y),
)
refuse(
    "shapes",
    "y of another length",
    "Found input variables with inconsistent numbers of samples: [30, 29]",
    lambda e: clone(e).fit(X, Y[1:]),
)
refuse(
    "shapes",
    "y with three dimensions",
    "Found array with dim 3, while dim <= 2 is required by {estimator}.",
    lambda e: clone(e).fit(X, Y[:, None, None]),
)
refuse(
    "shapes",
    "no y",
    "This {estimator} estimator requires y to be passed, but the target y is None.",
    lambda e: clone(e).fit(X, None),
)


@answer("shapes", "one column", "its least squares, or nothing")
def one_column(e):
    model = clone(e).fit(X[:, :1], Y)
    slope = np.polyfit(X[:, 0], Y, 1)[0]
    assert_allclose(model.coef_, slope, rtol=1e-9)


@answer("shapes", "as many columns as rows", "the literal loop's answer", of=ESTIMATORS[:1])
def square(e):
    A, y = table(12, 12)
    same(clone(e).set_params(solver="reference").fit(A, y), clone(e).fit(A, y), rtol=1e-7)


@answer("shapes", "y as a column", "as flat, with two dimensions")
def y_as_a_column(e):
    model = clone(e).fit(X, Y[:, None])
    assert model.coef_.shape == (1, 3)
    assert_array_equal(model.coef_[0], plain(e).coef_)


# --- types ----------------------------------------------------------------------------------------


def of_type(convert, rtol=1e-9):
    """Fitting converted rows is fitting their values as doubles."""

    def check(e):
        rows = convert(np.round(X))
        same(clone(e).fit(np.asarray(rows).astype(np.float64), Y), clone(e).fit(rows, Y), rtol)

    return check


for name, convert in (
    ("booleans", lambda A: A > 5),
    ("small integers whose squares overflow their type", lambda A: (20 * A).astype(np.int8)),
    ("integers beyond 2^53", lambda A: A.astype(np.int64) * 2**58),
    ("integers beyond 64 bits", lambda A: A.astype(object) * 10**25),
    ("float32", lambda A: A.astype(np.float32)),
    ("float16", lambda A: A.astype(np.float16)),
    ("numbers as objects", lambda A: A.astype(object)),
    ("numbers as text", lambda A: A.astype(str)),
    ("big-endian numbers", lambda A: A.astype(">f8")),
    ("nullable numbers of pandas", lambda A: pd.DataFrame(A).astype("Int64")),
):
    answer("types", name, "the values as doubles")(of_type(convert))
HIDDEN = np.arange(30) == 2
for name, run in {
    "X": lambda e: clone(e).fit(np.ma.array(X, mask=np.outer(HIDDEN, [1, 0, 0])), Y),
    "y": lambda e: clone(e).fit(X, np.ma.array(Y, mask=HIDDEN)),
    "sample_weight": lambda e: clone(e).fit(X, Y, np.ma.array(np.ones(30), mask=HIDDEN)),
}.items():
    message = f"{name} has masked values; remove or replace them."
    refuse("types", f"masked values in {name}", message, run)
refuse(
    "types",
    "text in X",
    "X is not a table of numbers: could not convert string to float: 'Ulm'.",
    lambda e: clone(e).fit(np.where(X > 4, "Ulm", "Bonn"), Y),
)
refuse(
    "types",
    "text in a frame",
    "Column 'town' of X has type str and could not be read as numbers; encode it or leave it out.",
    lambda e: clone(e).fit(pd.DataFrame({"a": X[:, 0], "town": ["Ulm"] * 30}), Y),
)
refuse(
    "types",
    "text among numbers in a frame",
    "Column 'b' of X holds '?' in row 3, while 29 of its 30 values read as numbers; correct it, "
    "or leave the column out.",
    lambda e: clone(e).fit(pd.DataFrame({"a": X[:, 0], "b": ["1", "2", "3", "?", *["5"] * 26]}), Y),
)
refuse(
    "types",
    "objects that are no numbers",
    "X is not a table of numbers: float() argument must be a string or a real number, not 'dict'.",
    lambda e: clone(e).fit(np.full((30, 3), {}, dtype=object), Y),
)
refuse(
    "types",
    "dates in X",
    "X has type datetime64[D]; turn dates into numbers first.",
    lambda e: clone(e).fit(np.full((30, 3), "2024-05-17", dtype="datetime64[D]"), Y),
)
refuse(
    "types",
    "dates in a frame",
    "Column 'day' of X has type datetime64[us] and could not be read as numbers; encode "
    "it or leave it "
    "out.",
    lambda e: clone(e).fit(pd.DataFrame({"day": pd.date_range("2024", periods=30)}), Y),
)
refuse(
    "types",
    "complex numbers in X",
    "Complex data not supported: X has type complex128; give real numbers.",
    lambda e: clone(e).fit(X + 1j, Y),
)
refuse(
    "types",
    "complex numbers in y",
    "Complex data not supported: y has type complex128; give real numbers.",
    lambda e: clone(e).fit(X, Y + 1j),
)
refuse(
    "types",
    "text in y",
    "y has type <U3; convert it to real numbers first.",
    lambda e: clone(e).fit(X, np.full(30, "Ulm")),
)
refuse(
    "types",
    "text as objects in y",
    "y is not numbers: could not convert string to float: 'Ulm'.",
    lambda e: clone(e).fit(X, np.full(30, "Ulm", dtype=object)),
)
refuse(
    "types",
    "dates in y",
    "y has type datetime64[D]; convert it to real numbers first.",
    lambda e: clone(e).fit(X, np.full(30, "2024-05-17", dtype="datetime64[D]")),
)


@answer("types", "y of booleans", "0 and 1")
def boolean_y(e):
    above = np.greater(Y, Y.mean())
    same(clone(e).fit(X, above.astype(float)), clone(e).fit(X, above))


# --- columns --------------------------------------------------------------------------------------

for name, value in (("a constant column", 7.3), ("a column of zeros", 0.0)):

    @answer("columns", name, "coefficient 0; the others as without it")
    def constant(e, value=value):
        model = clone(e).fit(np.insert(X, 1, value, axis=1), Y)
        assert model.coef_[1] == 0.0
        assert_allclose(np.delete(model.coef_, 1), plain(e).coef_, rtol=1e-9)


@answer("columns", "nothing but constant columns", "no variable; the intercept is the mean of y")
def only_constants(e):
    model = clone(e).fit(np.full((30, 2), [1.0, 7.3]), Y)
    assert_array_equal(model.coef_, 0.0)
    assert_allclose(model.intercept_, Y.mean(), rtol=1e-12)


@answer("columns", "copies of a column, also scaled or negated", "the first is kept, always")
def copies(e):
    wide = np.column_stack([X[:, [2, 0, 1]], X, -3.7 * X, 1e-9 * X])
    model = clone(e).fit(wide, Y)
    assert_array_equal(model.coef_[3:], 0.0)
    assert_allclose(model.coef_[[1, 2, 0]], plain(e).coef_, rtol=1e-8)


@answer(
    "columns",
    "copies of a column that differ by up to 1e-7 of its deviation",
    "the first is kept, always",
)
def near_copies(e):
    noise = np.random.default_rng(0).standard_normal((30, 3))
    for size in (1e-16, 1e-12, 1e-9, 1e-8, 1e-7):
        near = X + size * noise
        first = clone(e).fit(np.column_stack([X, near]), Y)
        assert_array_equal(first.coef_[3:], 0.0)
        assert_allclose(first.coef_[:3], plain(e).coef_, rtol=1e-8)
        first = clone(e).fit(np.column_stack([near, X]), Y)
        assert_array_equal(first.coef_[3:], 0.0)


@answer("columns", "a column that is the sum of others", "the literal loop's support, finite")
def a_sum(e):
    wide = np.column_stack([X, X.sum(axis=1)])
    model = clone(e).fit(wide, Y)
    assert np.all(np.isfinite(model.coef_))
    assert_allclose(model.predict(wide), plain(e).predict(X), rtol=0.2)


# --- targets --------------------------------------------------------------------------------------

for name, value in (("a constant y", 2.5), ("y of zeros", 0.0), ("y of one huge number", 1e300)):

    @answer("targets", name, "no variable; the intercept is that number")
    def constant_y(e, value=value):
        model = clone(e).fit(X, np.full(30, value))
        assert_array_equal(model.coef_, 0.0)
        assert model.intercept_ == value
        assert_array_equal(model.predict(X), value)


# --- magnitudes -----------------------------------------------------------------------------------


def alpha_times(e, factor):
    model = clone(e)
    return model.set_params(alpha=model.alpha * factor) if hasattr(model, "alpha") else model


for scale in (1e-150, 1e-100, 1e100, 1e150):

    @answer("magnitudes", f"X times {scale:g}", "the same model in other units")
    def scaled_x(e, scale=scale):
        model = clone(e).fit(scale * X, Y)
        assert_array_equal(model.coef_ != 0, plain(e).coef_ != 0)
        assert_allclose(model.predict(scale * X), plain(e).predict(X), rtol=1e-8)

    # Alphas are of the size of y squared, which must be a number with room above it.
    size = {1e-150: 1e-145, 1e150: 1e145}.get(scale, scale)

    @answer("magnitudes", f"y times {size:g}", "the same model in other units")
    def scaled_y(e, scale=size):
        model = alpha_times(e, scale**2).fit(X, scale * Y)
        assert_array_equal(model.coef_ != 0, plain(e).coef_ != 0)
        assert_allclose(model.predict(X), scale * plain(e).predict(X), rtol=1e-8)


refuse(
    "magnitudes",
    "X times 1e160",
    "Column 0 reaches 7.22e+160 in size, too large to be squared and summed; rescale it.",
    lambda e: clone(e).fit(1e160 * X, Y),
)
refuse(
    "magnitudes",
    "X times 1e-170",
    "Column 0 varies by too little for its squares to be represented; rescale it.",
    lambda e: clone(e).fit(1e-170 * X, Y),
)
refuse(
    "magnitudes",
    "y times 1e160",
    "y reaches 1.06e+161 in size, too large to be squared and summed; rescale it.",
    lambda e: clone(e).fit(X, 1e160 * Y),
)


@answer(
    "magnitudes", "X and y offset by 1e8", "the same model: 6 digits, all that the numbers hold"
)
def offset(e):
    model = clone(e).fit(X + 1e8, Y + 1e8)
    assert_array_equal(model.coef_ != 0, plain(e).coef_ != 0)
    assert_allclose(model.coef_, plain(e).coef_, rtol=1e-6)


# --- layouts --------------------------------------------------------------------------------------


def read_only(A):
    A = A.copy()
    A.flags.writeable = False
    return A


for name, lay in (
    ("a read-only array", read_only),
    ("columns in a row (Fortran order)", np.asfortranarray),
    (
        "every other row and column of an array",
        lambda A: np.repeat(np.repeat(A, 2, 0), 2, 1)[::2, ::2],
    ),
    ("rows and columns backwards in memory", lambda A: A[::-1, ::-1].copy()[::-1, ::-1]),
):

    @answer("layouts", name, "the same as any other")
    def laid_out(e, lay=lay):
        rows = lay(X)
        assert_array_equal(rows, X)
        before = rows.copy()
        same(plain(e), clone(e).fit(rows, lay(Y[:, None])[:, 0]))
        assert_array_equal(rows, before)


# --- weights --------------------------------------------------------------------------------------


def weighted(weight):
    return lambda e: clone(e).fit(X, Y, sample_weight=weight)


row_2 = np.arange(30) == 2
refuse(
    "weights",
    "a negative weight",
    "sample_weight is -1.0 in row 2; it must be finite and not negative.",
    weighted(np.where(row_2, -1.0, 1.0)),
)
refuse(
    "weights",
    "a weight that is NaN",
    "sample_weight is nan in row 2; it must be finite and not negative.",
    weighted(np.where(row_2, np.nan, 1.0)),
)
refuse(
    "weights",
    "an infinite weight",
    "sample_weight is inf in row 2; it must be finite and not negative.",
    weighted(np.where(row_2, np.inf, 1.0)),
)
refuse(
    "weights",
    "all weights zero",
    "All values of sample_weight are zero, so there are no rows.",
    weighted(np.zeros(30)),
)
refuse(
    "weights",
    "all weights zero but one",
    "Only one value of sample_weight is not zero; a fit needs at least 2 rows.",
    weighted(row_2.astype(float)),
)
refuse(
    "weights",
    "weights of another length",
    "sample_weight has shape (29,) but X has 30 rows.",
    weighted(np.ones(29)),
)
refuse(
    "weights",
    "weights that are text",
    "sample_weight must be numbers, one for each row of X.",
    weighted(["heavy"] * 30),
)
for name, given in {
    "digits as text": ["1"] * 30,
    "complex numbers": np.ones(30) + 1j,
    "dates": np.full(30, "2024-05-17", dtype="datetime64[D]"),
    "durations": np.full(30, 7, dtype="timedelta64[D]"),
}.items():
    message = "sample_weight must be numbers, one for each row of X."
    refuse("weights", f"weights that are {name}", message, weighted(given))
refuse(
    "weights",
    "weights of 1e200",
    "The weights sum to 3e+201; rescale sample_weight so that they sum to between 1e-100 "
    "and 1e+100.",
    weighted(np.full(30, 1e200)),
)
refuse(
    "weights",
    "weights whose sum is infinite",
    "The sum of sample_weight is too large for a double; rescale it.",
    weighted(np.full(30, 1e308)),
)


@answer(
    "weights",
    "rows of weight zero, whatever numbers they hold",
    "as if they were not there",
    ESTIMATORS[::2],
)
def weight_zero(e):
    extra = np.vstack([X, np.full((5, 3), 1e9)])
    weight = np.r_[np.ones(30), np.zeros(5)]
    same(plain(e), clone(e).fit(extra, np.r_[Y, np.full(5, -1e9)], sample_weight=weight))


# --- alphas ---------------------------------------------------------------------------------------

ONE, MANY = ESTIMATORS[:1], ESTIMATORS[1:]
refuse(
    "alphas",
    "alpha=-1",
    "alpha must be finite and not negative; got -1.0.",
    with_params(alpha=-1),
    ONE,
)
refuse(
    "alphas",
    "alpha=nan",
    "alpha must be finite and not negative; got nan.",
    with_params(alpha=np.nan),
    ONE,
)
refuse(
    "alphas",
    "alpha=inf",
    "alpha must be finite and not negative; got inf.",
    with_params(alpha=np.inf),
    ONE,
)
refuse("alphas", "alpha='1'", "alpha must be a number; got '1'.", with_params(alpha="1"), ONE)
refuse(
    "alphas",
    "alphas=[1, -2]",
    "alphas must be finite and not negative; got -2.0.",
    with_params(alphas=[1, -2]),
    MANY,
)
refuse(
    "alphas",
    "alphas=[1, nan]",
    "alphas must be finite and not negative; got nan.",
    with_params(alphas=[1, np.nan]),
    MANY,
)
refuse(
    "alphas",
    "alphas=[1, inf]",
    "alphas must be finite and not negative; got inf.",
    with_params(alphas=[1, np.inf]),
    MANY,
)
refuse(
    "alphas",
    "alphas=['1', '10']",
    "alphas must be how many to try, or a list of numbers; got ['1', '10'].",
    with_params(alphas=["1", "10"]),
    MANY,
)
refuse(
    "alphas",
    "alphas=[]",
    "alphas must be how many to try, or a list of numbers; got [].",
    with_params(alphas=[]),
    MANY,
)


@answer("alphas", "alphas that are not sorted, or repeated", "each once, the largest first", MANY)
def unsorted(e):
    model = with_params(alphas=[1.0, 100.0, 1.0, 10.0, 100.0])(e)
    assert_array_equal(model.alphas_, [100.0, 10.0, 1.0])
    same(with_params(alphas=[100.0, 10.0, 1.0])(e), model)


@answer("alphas", "alpha=1e308", "no variable", ONE)
def largest_alpha(e):
    assert_array_equal(with_params(alpha=1e308)(e).coef_, 0.0)


@answer("alphas", "alpha=0", "least squares", ONE)
def no_alpha(e):
    A = np.column_stack([np.ones(30), X])
    assert_allclose(with_params(alpha=0)(e).coef_, np.linalg.lstsq(A, Y)[0][1:], rtol=1e-9)


@answer(
    "alphas",
    "alpha=0 and columns that depend on each other",
    "of all solutions the one of least norm, as `lstsq`, on the columns as the method sees them: "
    "centred, and standardized if `standardize`",
    ONE,
)
def singular(e):
    wide = np.column_stack([X, X.sum(axis=1), X[:, 0] - X[:, 1]])
    centred, y = wide - wide.mean(axis=0), Y - Y.mean()
    model = clone(e).set_params(alpha=0, standardize=False).fit(wide, Y)
    assert_allclose(model.coef_, np.linalg.lstsq(centred, y)[0], rtol=1e-7)
    model = clone(e).set_params(alpha=0).fit(wide, Y)
    scale = wide.std(axis=0)
    assert_allclose(model.coef_, np.linalg.lstsq(centred / scale, y)[0] / scale, rtol=1e-7)


@answer(
    "alphas", "alpha=0 and fewer rows than columns", "the solution of least norm, as `lstsq`", ONE
)
def wide_and_no_alpha(e):
    A, y = table(8, 20)
    model = clone(e).set_params(alpha=0, standardize=False).fit(A, y)
    expected = np.linalg.lstsq(A - A.mean(axis=0), y - y.mean())[0]
    assert_allclose(model.coef_, expected, rtol=1e-7)


# --- settings -------------------------------------------------------------------------------------

for params, message in (
    ({"gamma_0": "wide"}, "gamma_0 must be a number; got 'wide'."),
    ({"gamma_0": np.nan}, "gamma_0 must be a finite number; got nan."),
    (
        {"gamma_0": 1e-9},
        "gamma_stop must be positive and less than gamma_0; got gamma_stop=1e-08 and "
        "gamma_0=1e-09.",
    ),
    (
        {"gamma_stop": 0},
        "gamma_stop must be positive and less than gamma_0; got gamma_stop=0.0 and "
        "gamma_0=1000000.0.",
    ),
    (
        {"gamma_0": 1e300},
        "gamma_0 must be at most 1e+30 and gamma_stop at least 1e-30; got gamma_0=1e+300 and "
        "gamma_stop=1e-08.",
    ),
    ({"gamma_step": 1}, "gamma_step must be greater than 1; got 1.0."),
    (
        {"gamma_step": 1.000001},
        "gamma_step=1.000001 takes 3.2e+07 gammas from gamma_0 to gamma_stop, more than 10000; "
        "raise it.",
    ),
    ({"t_max": 0}, "t_max must be a whole number of at least 1; got 0."),
    ({"t_max": 2.5}, "t_max must be a whole number of at least 1; got 2.5."),
    ({"epsilon": -1}, "epsilon must not be negative; got -1.0."),
    (
        {"penalty_factor": [1, 1]},
        "penalty_factor must have one number for each of the 3 columns; its shape is (2,).",
    ),
    ({"penalty_factor": ["1", "1", "1"]}, "penalty_factor must be numbers; got ['1', '1', '1']."),
    ({"penalty_factor": [1, 1, 1j]}, "penalty_factor must be numbers; got [1, 1, 1j]."),
    (
        {"penalty_factor": [1, -1, 1]},
        "penalty_factor[1] is -1.0; it must be 0, inf, or between 1e-30 and 1e+30.",
    ),
    (
        {"penalty_factor": [1, np.nan, 1]},
        "penalty_factor[1] is nan; it must be 0, inf, or between 1e-30 and 1e+30.",
    ),
    (
        {"penalty_factor": [1, 1e300, 1]},
        "penalty_factor[1] is 1e+300; it must be 0, inf, or between 1e-30 and 1e+30.",
    ),
    ({"polish": "drop"}, "polish must be None or 'swap'; got 'drop'."),
    ({"solver": "fast"}, "solver must be 'auto' or 'reference'; got 'fast'."),
):
    (name, value), *_ = params.items()
    refuse("settings", f"{name}={value!r}", message, with_params(**params))


@answer("settings", "penalty_factor=inf for all", "no variable")
def nothing_allowed(e):
    assert_array_equal(with_params(penalty_factor=[np.inf] * 3)(e).coef_, 0.0)


# --- folds ----------------------------------------------------------------------------------------

CV = ESTIMATORS[1:2]
refuse(
    "folds",
    "fewer rows than folds",
    "cv=31 folds need as many rows; there are 30: lower cv.",
    with_params(cv=31),
    CV,
)
refuse(
    "folds",
    "cv=1",
    "k-fold cross-validation requires at least one train/test split by setting n_splits=2 or more, "
    "got n_splits=1.",
    with_params(cv=1),
    CV,
)
refuse(
    "folds",
    "a fold whose weights are all zero",
    "Split 0 of cv has no test rows of positive weight; use other splits.",
    lambda e: clone(e).fit(X, Y, sample_weight=(np.arange(30) >= 10).astype(float)),
    CV,
)


@answer(
    "folds", "a column constant in the training rows of a fold", "coefficient 0 in that fold", CV
)
def constant_in_a_fold(e):
    step = np.r_[np.random.default_rng(0).standard_normal(10), np.zeros(20)]
    model = clone(e).fit(np.column_stack([X, step]), Y)
    assert np.all(np.isfinite(model.mse_path_))
    # Where it is constant, the fit is the one without it.
    errors = SparseStep(1.0).fit(np.column_stack([X, step])[10:], Y[10:])
    assert errors.coef_[3] == 0.0


# --- predicting -----------------------------------------------------------------------------------


def frame(names):
    return pd.DataFrame(X, columns=names)


refuse(
    "predictions",
    "columns in another order than in the fit",
    "The feature names should match those that were passed during fit.\nFeature names "
    "must be in the "
    "same order as they were in fit.\n",
    lambda e: clone(e).fit(frame(["a", "b", "c"]), Y).predict(frame(["b", "a", "c"])),
)
refuse(
    "predictions",
    "columns of other names than in the fit",
    "The feature names should match those that were passed during fit.\nFeature names "
    "unseen at fit "
    "time:\n- z\nFeature names seen at fit time, yet now missing:\n- c\n",
    lambda e: clone(e).fit(frame(["a", "b", "c"]), Y).predict(frame(["a", "b", "z"])),
)
refuse(
    "predictions",
    "more columns than in the fit",
    "X has 4 features, but {estimator} is expecting 3 features as input.",
    lambda e: plain(e).predict(np.ones((2, 4))),
)
refuse(
    "predictions",
    "a missing value in a frame of another library",
    "Input X contains NaN, first in row 1 of column 'b'; remove such rows or fill them in.",
    lambda e: (
        clone(e)
        .fit(frame(["a", "b", "c"]), Y)
        .predict(pa.table({"a": [1.0, 2.0], "b": [1.0, None], "c": [3.0, 4.0]}))
    ),
)
refuse(
    "predictions",
    "NaN in new rows",
    "Input X contains NaN, first in row 1 of column 0; remove such rows or fill them in.",
    lambda e: plain(e).predict([[1.0, 2.0, 3.0], [np.nan, 1.0, 2.0]]),
)


# --- moments --------------------------------------------------------------------------------------

NONE = (None,)


def sums(rows=X, y=Y, weight=None):
    return lambda e: Moments.from_data(rows, y, weight)


for name, message, run in (
    (
        "NaN in X",
        "Column 1 has the value nan in row 4; remove or replace values that are missing "
        "or infinite.",
        sums(with_value(np.nan, (4, 1))),
    ),
    (
        "infinity in y",
        "y has the value inf in row 2; remove or replace values that are missing or infinite.",
        sums(y=np.where(row_2, np.inf, Y)),
    ),
    (
        "X with one dimension",
        "X has 1 dimension; it must have two, rows and columns.",
        sums(X[:, 0]),
    ),
    ("y of another length", "X has 30 rows but y has 29.", sums(y=Y[1:])),
    ("text in X", "Column 0 has type <U3; convert it to real numbers first.", sums(X.astype("U3"))),
    (
        "dates in X",
        "Column 0 has type datetime64[D]; convert it to real numbers first.",
        sums(np.full((30, 3), "2024-05-17", dtype="datetime64[D]")),
    ),
    (
        "complex numbers in X",
        "Column 0 has type complex128; convert it to real numbers first.",
        sums(X + 1j),
    ),
    (
        "a negative weight",
        "sample_weight is -1.0 in row 2; it must be finite and not negative.",
        sums(weight=np.where(row_2, -1.0, 1.0)),
    ),
    (
        "all weights zero",
        "All values of sample_weight are zero, so there are no rows.",
        sums(weight=np.zeros(30)),
    ),
    (
        "X times 1e160",
        "Column 0 reaches 7.22e+160 in size, too large to be squared and summed; rescale it.",
        sums(1e160 * X),
    ),
):
    refuse("`Moments.from_data`", name, message, run, NONE)


@answer("`Moments.from_data`", "no rows, one row, no columns", "moments of as many", NONE)
def few_rows(e):
    assert Moments.from_data(X[:0], Y[:0]).n_samples == 0
    assert Moments.from_data(X[:1], Y[:1]).n_samples == 1
    assert Moments.from_data(X[:, :0], Y).n_features == 0


refuse(
    "`Moments.from_data`",
    "a fit to the moments of one row",
    "A fit needs at least 2 rows; these moments have 1.",
    lambda e: clone(e).fit_moments(Moments.from_data(X[:1], Y[:1])),
    ESTIMATORS[::2],
)


# --- files ----------------------------------------------------------------------------------------


def reading(content, target="y", name="t.csv", **options):
    """Read a file with these bytes."""

    def run(e):
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / name
            file.write_bytes(content)
            try:
                return read_moments(file, target, **options)
            except (ValueError, TypeError) as error:
                raise ValueError(str(error).replace(f"{folder}/", "")) from error

    return run


for name, message, run in (
    (
        "an empty file",
        "t.csv cannot be read: CSV parse error: Empty CSV file or block: cannot infer number of "
        "columns.",
        reading(b""),
    ),
    ("a header without rows", "t.csv has no rows.", reading(b"a,y\n")),
    (
        "a missing value",
        "Column 'a' has a missing value in row 1 (counted from 0) of t.csv; fill it in, "
        "or leave out "
        "such rows with drop_missing.",
        reading(b"a,y\n1,2\n,3\n4,5\n"),
    ),
    (
        "an infinity",
        "Column 'a' has the value inf in row 1 (counted from 0) of t.csv; replace it or "
        "remove the row.",
        reading(b"a,y\n1,2\ninf,3\n4,5\n"),
    ),
    (
        "text in a column",
        "Column 'a' of t.csv holds text; turn it into numbers, or choose features without it.",
        reading(b"a,y\nUlm,2\nBonn,3\n"),
    ),
    (
        "text among numbers",
        "Column 'a' of t.csv holds '?' in row 1 (counted from 0), while 2 of the 3 values read are "
        "numbers; correct it, or choose features without it.",
        reading(b"a,y\n1,2\n?,4\n5,6\n"),
    ),
    (
        "dates in a column",
        "Column 'a' of t.csv holds dates or times; turn it into numbers, or choose "
        "features without "
        "it.",
        reading(b"a,y\n2024-05-17,2\n2024-05-18,3\n"),
    ),
    (
        "a row with too many fields",
        "t.csv cannot be read: CSV parse error: Row #3: Expected 2 columns, got 3: 3,4,5.",
        reading(b"a,y\n1,2\n3,4,5\n"),
    ),
    (
        "no such column",
        "t.csv has no column 'z'; it has 'a', 'y'.",
        reading(b"a,y\n1,2\n3,4\n", "z"),
    ),
    (
        "another separator",
        "t.csv has no column 'y'; its only column is 'a:y', so give its separator if that is "
        "another one.",
        reading(b"a:y\n1:2\n"),
    ),
    (
        "text that is not in UTF-8",
        "t.csv is not in utf-8; give its encoding, such as cp1252.",
        reading("a,y\nü,2\nö,4\n".encode("cp1252")),
    ),
    (
        "two columns of one name",
        "t.csv cannot be read: CSV file contained multiple columns named a.",
        reading(b"a,a,y\n1,2,3\n4,5,6\n"),
    ),
    (
        "bytes that are no Parquet",
        "t.parquet cannot be read: Parquet magic bytes not found in footer. Either the file is "
        "corrupted or this is not a parquet file.",
        reading(b"no, this is not a file of Parquet", name="t.parquet"),
    ),
    (
        "more folds than rows",
        "t.csv has 2 rows, which leave 1 of 3 folds empty; use fewer folds.",
        reading(b"a,y\n1,2\n3,4\n", folds=3),
    ),
    (
        "a negative weight",
        "Weight 'w' is -1.0 in row 1 (counted from 0) of t.csv; weights must be finite and not "
        "negative.",
        reading(b"a,w,y\n1,2,3\n4,-1,6\n", weight="w"),
    ),
):
    refuse("`read_moments`", name, message, run, NONE)


def page_table():
    """The table of the page: every case, and what it does."""
    lines = ["| | input | what it does |", "|---|---|---|"]
    for group in dict.fromkeys(case.group for case in CASES):
        first = group
        for case in (case for case in CASES if case.group == group):
            result = case.result.replace("{estimator}", "SparseStep")
            result = " ".join(result.split()).replace("|", "\\|")
            if case.refused:
                result = f"*{result}*" if "*" not in result else result
            lines.append(f"| {first} | {case.input} | {result} |")
            first = ""
    return "\n".join(lines)


if __name__ == "__main__":
    print(page_table())
