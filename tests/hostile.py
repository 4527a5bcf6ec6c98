"""Hostile input, each with the name of its row in the table of docs/reliability.md.

The page says what each does: in italics the error's own words, otherwise what the answer is.
"""

import re
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
ONE, MANY, CV, NONE = ESTIMATORS[:1], ESTIMATORS[1:], ESTIMATORS[1:2], (None,)
X, Y = table(30, 3)


def page():
    """What the page says of each (group, input)."""
    text = (Path(__file__).parents[1] / "docs" / "reliability.md").read_text(encoding="utf-8")
    rows = text.split("| | input | what it does |\n|---|---|---|\n")[1].split("\n\n")[0]
    said, group = {}, ""
    for row in rows.splitlines():
        first, name, result = re.split(r" (?<!\\)\| ", row.removeprefix("| ").removesuffix(" |"))
        group = first.strip() or group
        said[group, name] = result.replace("\\|", "|")
    return said


@dataclass(frozen=True)
class Case:
    """An input: `run` fits an estimator to it, and asserts the answer unless it is `refused`."""

    group: str
    input: str
    run: Callable
    of: tuple
    refused: bool


CASES: list[Case] = []


def answer(group, input, of=ESTIMATORS):
    """Note a case that has an answer; the function asserts it."""

    def note(run):
        CASES.append(Case(group, input, run, of, refused=False))
        return run

    return note


def refuse(group, cases, of=ESTIMATORS):
    """Note cases that are refused."""
    CASES.extend(Case(group, input, run, of, refused=True) for input, run in cases.items())


def fitted(rows=X, y=Y, weight=None):
    return lambda e: clone(e).fit(rows, y, sample_weight=weight)


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

row_2, row_7 = np.arange(30) == 2, np.arange(30) == 7
refuse(
    "values",
    {
        **{f"`{v}` in X": fitted(with_value(v, (4, 1))) for v in (np.nan, np.inf, -np.inf)},
        "NaN in a sparse X": fitted(sp.csc_array(with_value(np.nan, (4, 1)))),
        "a missing value in a frame": fitted(
            pd.DataFrame(with_value(np.nan, (4, 1)), columns=["a", "b", "c"])
        ),
        "NaN in y": fitted(y=np.where(row_7, np.nan, Y)),
        "infinity in y": fitted(y=np.where(row_7, np.inf, Y)),
    },
)

# --- shapes ---------------------------------------------------------------------------------------

refuse(
    "shapes",
    {
        "no rows": fitted(X[:0], Y[:0]),
        "one row": fitted(X[:1], Y[:1]),
        "no columns": fitted(X[:, :0]),
        "a frame without columns": fitted(pd.DataFrame(X)[[]]),
        "two columns of one name": fitted(pd.DataFrame(X, columns=["a", "b", "a"])),
        "X with one dimension": fitted(X[:, 0]),
        "X with three dimensions": fitted(X[:, :, None]),
        "y of another length": fitted(y=Y[1:]),
        "y with three dimensions": fitted(y=Y[:, None, None]),
        "no y": fitted(y=None),
    },
)


@answer("shapes", "one column")
def one_column(e):
    model = clone(e).fit(X[:, :1], Y)
    slope = np.polyfit(X[:, 0], Y, 1)[0]
    assert_allclose(model.coef_, slope, rtol=1e-9)


@answer("shapes", "as many columns as rows", of=ONE)
def square(e):
    A, y = table(12, 12)
    same(clone(e).set_params(solver="reference").fit(A, y), clone(e).fit(A, y), rtol=1e-7)


@answer("shapes", "y as a column")
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
    answer("types", name)(of_type(convert))
refuse(
    "types",
    {
        "masked values in X": fitted(np.ma.array(X, mask=np.outer(row_2, [1, 0, 0]))),
        "masked values in y": fitted(y=np.ma.array(Y, mask=row_2)),
        "masked values in sample_weight": fitted(weight=np.ma.array(np.ones(30), mask=row_2)),
        "text in X": fitted(np.where(X > 4, "Ulm", "Bonn")),
        "text in a frame": fitted(pd.DataFrame({"a": X[:, 0], "town": ["Ulm"] * 30})),
        "text among numbers in a frame": fitted(
            pd.DataFrame({"a": X[:, 0], "b": ["1", "2", "3", "?", *["5"] * 26]})
        ),
        "objects that are no numbers": fitted(np.full((30, 3), {}, dtype=object)),
        "dates in X": fitted(np.full((30, 3), "2024-05-17", dtype="datetime64[D]")),
        "dates in a frame": fitted(pd.DataFrame({"day": pd.date_range("2024", periods=30)})),
        "complex numbers in X": fitted(X + 1j),
        "complex numbers in y": fitted(y=Y + 1j),
        "text in y": fitted(y=np.full(30, "Ulm")),
        "text as objects in y": fitted(y=np.full(30, "Ulm", dtype=object)),
        "dates in y": fitted(y=np.full(30, "2024-05-17", dtype="datetime64[D]")),
    },
)


@answer("types", "y of booleans")
def boolean_y(e):
    above = np.greater(Y, Y.mean())
    same(clone(e).fit(X, above.astype(float)), clone(e).fit(X, above))


# --- columns --------------------------------------------------------------------------------------

for name, value in (("a constant column", 7.3), ("a column of zeros", 0.0)):

    @answer("columns", name)
    def constant(e, value=value):
        model = clone(e).fit(np.insert(X, 1, value, axis=1), Y)
        assert model.coef_[1] == 0.0
        assert_allclose(np.delete(model.coef_, 1), plain(e).coef_, rtol=1e-9)


@answer("columns", "nothing but constant columns")
def only_constants(e):
    model = clone(e).fit(np.full((30, 2), [1.0, 7.3]), Y)
    assert_array_equal(model.coef_, 0.0)
    assert_allclose(model.intercept_, Y.mean(), rtol=1e-12)


@answer("columns", "copies of a column, also scaled or negated")
def copies(e):
    wide = np.column_stack([X[:, [2, 0, 1]], X, -3.7 * X, 1e-9 * X])
    model = clone(e).fit(wide, Y)
    assert_array_equal(model.coef_[3:], 0.0)
    assert_allclose(model.coef_[[1, 2, 0]], plain(e).coef_, rtol=1e-8)


@answer("columns", "copies of a column that differ by up to 1e-7 of its deviation")
def near_copies(e):
    noise = np.random.default_rng(0).standard_normal((30, 3))
    for size in (1e-16, 1e-12, 1e-9, 1e-8, 1e-7):
        near = X + size * noise
        first = clone(e).fit(np.column_stack([X, near]), Y)
        assert_array_equal(first.coef_[3:], 0.0)
        assert_allclose(first.coef_[:3], plain(e).coef_, rtol=1e-8)
        first = clone(e).fit(np.column_stack([near, X]), Y)
        assert_array_equal(first.coef_[3:], 0.0)


@answer("columns", "a column that is the sum of others")
def a_sum(e):
    wide = np.column_stack([X, X.sum(axis=1)])
    model = clone(e).fit(wide, Y)
    assert np.all(np.isfinite(model.coef_))
    assert_allclose(model.predict(wide), plain(e).predict(X), rtol=0.2)


# --- targets --------------------------------------------------------------------------------------

for name, value in (("a constant y", 2.5), ("y of zeros", 0.0), ("y of one huge number", 1e300)):

    @answer("targets", name)
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

    @answer("magnitudes", f"X times {scale:g}")
    def scaled_x(e, scale=scale):
        model = clone(e).fit(scale * X, Y)
        assert_array_equal(model.coef_ != 0, plain(e).coef_ != 0)
        assert_allclose(model.predict(scale * X), plain(e).predict(X), rtol=1e-8)

    # Alphas are of the size of y squared, which must be a number with room above it.
    size = {1e-150: 1e-145, 1e150: 1e145}.get(scale, scale)

    @answer("magnitudes", f"y times {size:g}")
    def scaled_y(e, scale=size):
        model = alpha_times(e, scale**2).fit(X, scale * Y)
        assert_array_equal(model.coef_ != 0, plain(e).coef_ != 0)
        assert_allclose(model.predict(X), scale * plain(e).predict(X), rtol=1e-8)


refuse(
    "magnitudes",
    {
        "X times 1e160": fitted(1e160 * X),
        "X times 1e-170": fitted(1e-170 * X),
        "y times 1e160": fitted(X, 1e160 * Y),
    },
)


@answer("magnitudes", "X and y offset by 1e8")
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

    @answer("layouts", name)
    def laid_out(e, lay=lay):
        rows = lay(X)
        assert_array_equal(rows, X)
        before = rows.copy()
        same(plain(e), clone(e).fit(rows, lay(Y[:, None])[:, 0]))
        assert_array_equal(rows, before)


# --- weights --------------------------------------------------------------------------------------


refuse(
    "weights",
    {
        "a negative weight": fitted(weight=np.where(row_2, -1.0, 1.0)),
        "a weight that is NaN": fitted(weight=np.where(row_2, np.nan, 1.0)),
        "an infinite weight": fitted(weight=np.where(row_2, np.inf, 1.0)),
        "all weights zero": fitted(weight=np.zeros(30)),
        "all weights zero but one": fitted(weight=row_2.astype(float)),
        "weights of another length": fitted(weight=np.ones(29)),
        "weights that are text": fitted(weight=["heavy"] * 30),
        "weights that are digits as text": fitted(weight=["1"] * 30),
        "weights that are complex numbers": fitted(weight=np.ones(30) + 1j),
        "weights that are dates": fitted(weight=np.full(30, "2024-05-17", dtype="datetime64[D]")),
        "weights that are durations": fitted(weight=np.full(30, 7, dtype="timedelta64[D]")),
        "weights of 1e200": fitted(weight=np.full(30, 1e200)),
        "weights whose sum is infinite": fitted(weight=np.full(30, 1e308)),
    },
)


@answer("weights", "rows of weight zero, whatever numbers they hold", ESTIMATORS[::2])
def weight_zero(e):
    extra = np.vstack([X, np.full((5, 3), 1e9)])
    weight = np.r_[np.ones(30), np.zeros(5)]
    same(plain(e), clone(e).fit(extra, np.r_[Y, np.full(5, -1e9)], sample_weight=weight))


# --- alphas ---------------------------------------------------------------------------------------

refuse("alphas", {f"alpha={a!r}": with_params(alpha=a) for a in (-1, np.nan, np.inf, "1")}, ONE)
lists = ([1, -2], [1, np.nan], [1, np.inf], ["1", "10"], [])
refuse("alphas", {f"alphas={a}": with_params(alphas=a) for a in lists}, MANY)


@answer("alphas", "alphas that are not sorted, or repeated", MANY)
def unsorted(e):
    model = with_params(alphas=[1.0, 100.0, 1.0, 10.0, 100.0])(e)
    assert_array_equal(model.alphas_, [100.0, 10.0, 1.0])
    same(with_params(alphas=[100.0, 10.0, 1.0])(e), model)


@answer("alphas", "alpha=1e308", ONE)
def largest_alpha(e):
    assert_array_equal(with_params(alpha=1e308)(e).coef_, 0.0)


@answer("alphas", "alpha=0", ONE)
def no_alpha(e):
    A = np.column_stack([np.ones(30), X])
    assert_allclose(with_params(alpha=0)(e).coef_, np.linalg.lstsq(A, Y)[0][1:], rtol=1e-9)


@answer("alphas", "alpha=0 and columns that depend on each other", ONE)
def singular(e):
    wide = np.column_stack([X, X.sum(axis=1), X[:, 0] - X[:, 1]])
    centred, y = wide - wide.mean(axis=0), Y - Y.mean()
    model = clone(e).set_params(alpha=0, standardize=False).fit(wide, Y)
    assert_allclose(model.coef_, np.linalg.lstsq(centred, y)[0], rtol=1e-7)
    model = clone(e).set_params(alpha=0).fit(wide, Y)
    scale = wide.std(axis=0)
    assert_allclose(model.coef_, np.linalg.lstsq(centred / scale, y)[0] / scale, rtol=1e-7)


@answer("alphas", "alpha=0 and fewer rows than columns", ONE)
def wide_and_no_alpha(e):
    A, y = table(8, 20)
    model = clone(e).set_params(alpha=0, standardize=False).fit(A, y)
    expected = np.linalg.lstsq(A - A.mean(axis=0), y - y.mean())[0]
    assert_allclose(model.coef_, expected, rtol=1e-7)


# --- settings -------------------------------------------------------------------------------------

SETTINGS = {
    "gamma_0": ["wide", np.nan, 1e-9, 1e300],
    "gamma_stop": [0],
    "gamma_step": [1, 1.000001],
    "t_max": [0, 2.5],
    "epsilon": [-1],
    "penalty_factor": [
        [1, 1],
        ["1", "1", "1"],
        [1, 1, 1j],
        [1, -1, 1],
        [1, np.nan, 1],
        [1, 1e300, 1],
    ],
    "polish": ["drop"],
    "solver": ["fast"],
}
for name, values in SETTINGS.items():
    refuse("settings", {f"{name}={value!r}": with_params(**{name: value}) for value in values})


@answer("settings", "penalty_factor=inf for all")
def nothing_allowed(e):
    assert_array_equal(with_params(penalty_factor=[np.inf] * 3)(e).coef_, 0.0)


# --- folds ----------------------------------------------------------------------------------------

refuse(
    "folds",
    {
        "fewer rows than folds": with_params(cv=31),
        "cv=1": with_params(cv=1),
        "a fold whose weights are all zero": fitted(weight=1.0 * (np.arange(30) >= 10)),
    },
    CV,
)


@answer("folds", "a column constant in the training rows of a fold", CV)
def constant_in_a_fold(e):
    step = np.r_[np.random.default_rng(0).standard_normal(10), np.zeros(20)]
    model = clone(e).fit(np.column_stack([X, step]), Y)
    assert np.all(np.isfinite(model.mse_path_))
    # Where it is constant, the fit is the one without it.
    errors = SparseStep(1.0).fit(np.column_stack([X, step])[10:], Y[10:])
    assert errors.coef_[3] == 0.0


# --- predicting -----------------------------------------------------------------------------------


ABC = pd.DataFrame(X, columns=list("abc"))


def predicting(rows, fit_to=ABC):
    return lambda e: clone(e).fit(fit_to, Y).predict(rows)


refuse(
    "predictions",
    {
        "columns in another order than in the fit": predicting(ABC[["b", "a", "c"]]),
        "columns of other names than in the fit": predicting(ABC.rename(columns={"c": "z"})),
        "more columns than in the fit": predicting(np.ones((2, 4)), X),
        "a missing value in a frame of another library": predicting(
            pa.table({"a": [1.0, 2.0], "b": [1.0, None], "c": [3.0, 4.0]})
        ),
        "NaN in new rows": predicting([[1.0, 2.0, 3.0], [np.nan, 1.0, 2.0]], X),
    },
)


# --- moments --------------------------------------------------------------------------------------


def sums(rows=X, y=Y, weight=None):
    return lambda e: Moments.from_data(rows, y, weight)


refuse(
    "`Moments.from_data`",
    {
        "NaN in X": sums(with_value(np.nan, (4, 1))),
        "infinity in y": sums(y=np.where(row_2, np.inf, Y)),
        "X with one dimension": sums(X[:, 0]),
        "y of another length": sums(y=Y[1:]),
        "text in X": sums(np.where(X > 4, "Ulm", "Bonn")),
        "dates in X": sums(np.full((30, 3), "2024-05-17", dtype="datetime64[D]")),
        "complex numbers in X": sums(X + 1j),
        "a negative weight": sums(weight=np.where(row_2, -1.0, 1.0)),
        "all weights zero": sums(weight=np.zeros(30)),
        "X times 1e160": sums(1e160 * X),
    },
    NONE,
)


@answer("`Moments.from_data`", "no rows, one row, no columns", NONE)
def few_rows(e):
    assert Moments.from_data(X[:0], Y[:0]).n_samples == 0
    assert Moments.from_data(X[:1], Y[:1]).n_samples == 1
    assert Moments.from_data(X[:, :0], Y).n_features == 0


refuse(
    "`Moments.from_data`",
    {"a fit to the moments of one row": lambda e: clone(e).fit_moments(sums(X[:1], Y[:1])(e))},
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


refuse(
    "`read_moments`",
    {
        "an empty file": reading(b""),
        "a header without rows": reading(b"a,y\n"),
        "a missing value": reading(b"a,y\n1,2\n,3\n4,5\n"),
        "an infinity": reading(b"a,y\n1,2\ninf,3\n4,5\n"),
        "text in a column": reading(b"a,y\nUlm,2\nBonn,3\n"),
        "text among numbers": reading(b"a,y\n1,2\n?,4\n5,6\n"),
        "dates in a column": reading(b"a,y\n2024-05-17,2\n2024-05-18,3\n"),
        "a row with too many fields": reading(b"a,y\n1,2\n3,4,5\n"),
        "no such column": reading(b"a,y\n1,2\n3,4\n", "z"),
        "another separator": reading(b"a:y\n1:2\n"),
        "text that is not in UTF-8": reading("a,y\nü,2\nö,4\n".encode("cp1252")),
        "two columns of one name": reading(b"a,a,y\n1,2,3\n4,5,6\n"),
        "bytes that are no Parquet": reading(
            b"no, this is not a file of Parquet", name="t.parquet"
        ),
        "more folds than rows": reading(b"a,y\n1,2\n3,4\n", folds=3),
        "a negative weight": reading(b"a,w,y\n1,2,3\n4,-1,6\n", weight="w"),
    },
    NONE,
)
