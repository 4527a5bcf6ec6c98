"""Hostile input, each with the name of its row in the table of docs/reliability.md.

The page says what each does: in italics the error's own words, otherwise what the answer is.
"""

import re
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone

import sparsestep as ss
from rows import assert_same_model, scaled_alpha, table
from sparsestep import Moments, SparseStep, SparseStepCV, SparseStepIC

ESTIMATORS = (SparseStep(10.0), SparseStepCV(6, cv=3), SparseStepIC(alphas=6))
ONE, MANY, CV, NONE = ESTIMATORS[:1], ESTIMATORS[1:], ESTIMATORS[1:2], (None,)
X, Y = table(30, 3)


def fitted(rows=X, y=Y, weight=None, **params):
    return lambda e: clone(e).set_params(**params).fit(rows, y, sample_weight=weight)


plain = fitted()


def with_value(value, at):
    changed = X.copy()
    changed[at] = value
    return changed


row_2, row_7 = np.arange(30) == 2, np.arange(30) == 7
ABC, HOLED = pd.DataFrame(X, columns=list("abc")), with_value(np.nan, (4, 1))


def same_as(rows, y, *others, rtol=1e-9):
    """Fitting the others, in any way, is fitting these rows."""

    def check(e):
        model = fitted(rows, y)(e)
        for fit in others:
            other = fit(e)
            assert_same_model(model, other, rtol=rtol)
            assert_allclose(other.intercept_, model.intercept_, rtol=rtol, atol=1e-12)

    return check


def as_alone(rows, where):
    """At these places the coefficients are those of X alone, elsewhere 0."""

    def check(e):
        model = clone(e).fit(rows, Y)
        assert_allclose(model.coef_[where], plain(e).coef_, rtol=1e-8)
        assert_array_equal(np.delete(model.coef_, where), 0.0)

    return check


def nothing(mean, rows=X, y=Y, **params):
    """No variable is kept, and the prediction is the mean of y."""

    def check(e):
        model = fitted(rows, y, **params)(e)
        assert_array_equal(model.coef_, 0.0)
        assert_allclose(model.predict(rows), mean, rtol=1e-15)

    return check


def least_norm(A, y, rtol=1e-7):
    """Of all solutions the one of least norm, on the columns as the method sees them."""

    def check(e):
        for standardize in (False, True):
            model = clone(e).set_params(alpha=0, standardize=standardize).fit(A, y)
            scale = A.std(axis=0) if standardize else 1.0
            expected = np.linalg.lstsq((A - A.mean(axis=0)) / scale, y - y.mean())[0] / scale
            assert_allclose(model.coef_, expected, rtol=rtol)
            assert_allclose(model.intercept_, y.mean() - A.mean(axis=0) @ expected, rtol=rtol)

    return check


def one_column(e):
    slope = np.polyfit(X[:, 0], Y, 1)[0]
    assert_allclose(clone(e).fit(X[:, :1], Y).coef_, slope, rtol=1e-9)


def y_as_a_column(e):
    model = clone(e).fit(X, Y[:, None])
    assert model.coef_.shape == (1, 3) and model.predict(X).shape == (30, 1)
    assert_array_equal(model.coef_[0], plain(e).coef_)


def near_copies(e):
    noise = np.random.default_rng(0).standard_normal((30, 3))
    for size in (1e-16, 1e-12, 1e-9, 1e-8, 1e-7):
        near = X + size * noise
        as_alone(np.column_stack([X, near]), [0, 1, 2])(e)
        assert not clone(e).fit(np.column_stack([near, X]), Y).coef_[3:].any()


def a_sum(e):
    wide = np.column_stack([X, X.sum(axis=1)])
    model = clone(e).fit(wide, Y)
    assert np.all(np.isfinite(model.coef_))
    assert_allclose(model.predict(wide), plain(e).predict(X), rtol=0.2)


def rescaled(scale_x=1.0, scale_y=1.0):
    """The same model in other units."""

    def check(e):
        model = scaled_alpha(e, scale_y**2).fit(scale_x * X, scale_y * Y)
        assert_array_equal(model.coef_ != 0, plain(e).coef_ != 0)
        assert_allclose(model.predict(scale_x * X), scale_y * plain(e).predict(X), rtol=1e-8)

    return check


def offset(e):
    model = clone(e).fit(X + 1e8, Y + 1e8)
    assert_array_equal(model.coef_ != 0, plain(e).coef_ != 0)
    assert_allclose(model.coef_, plain(e).coef_, rtol=1e-6)


def laid_out(lay):
    def check(e):
        rows = lay(X)
        same_as(X, Y, fitted(rows, lay(Y[:, None])[:, 0]))(e)
        assert_array_equal(rows, X)

    return check


def unsorted(e):
    model = fitted(alphas=[1.0, 100.0, 1.0, 10.0, 100.0])(e)
    assert_array_equal(model.alphas_, [100.0, 10.0, 1.0])
    assert_same_model(fitted(alphas=[100.0, 10.0, 1.0])(e), model)


def constant_in_a_fold(e):
    step = np.r_[np.random.default_rng(0).standard_normal(10), np.zeros(20)]
    rows = np.column_stack([X, step])
    assert np.all(np.isfinite(clone(e).fit(rows, Y).mse_path_))
    # Where it is constant, the fit is the one without it.
    assert SparseStep(1.0).fit(rows[10:], Y[10:]).coef_[3] == 0.0


def few_rows(e):
    assert sums(X[:0], Y[:0])(e).n_samples == 0
    assert sums(X[:1], Y[:1])(e).n_samples == 1
    assert sums(X[:, :0])(e).n_features == 0


def predicting(rows, fit_to=ABC):
    return lambda e: clone(e).fit(fit_to, Y).predict(rows)


def sums(rows=X, y=Y, weight=None):
    return lambda e: Moments.from_data(rows, y, weight)


def reading(content, target="y", name="t.csv", **options):
    """Read a file with these bytes."""

    def run(e):
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / name
            file.write_bytes(content)
            try:
                return ss.read_moments(file, target, **options)
            except (ValueError, TypeError) as error:
                raise ValueError(str(error).replace(f"{folder}/", "")) from error

    return run


NULL = pa.table({"a": [1.0, 2.0], "b": [1.0, None], "c": [3.0, 4.0]})
DAYS = np.full((30, 3), "2024-05-17", dtype="datetime64[D]")
ALPHAS = ([1, -2], [1, np.nan], [1, np.inf], ["1", "10"], [])
SETTINGS = {
    "gamma_0": ["wide", np.nan, 1e-9, 1e300],
    "gamma_stop": [0],
    "gamma_step": [1, 1.000001],
    "t_max": [0, 2.5],
    "epsilon": [-1],
    "penalty_factor": [
        *([1, 1], ["1", "1", "1"], [1, 1, 1j]),
        *([1, -1, 1], [1, np.nan, 1], [1, 1e300, 1]),
    ],
    "polish": ["drop"],
    "solver": ["fast"],
}

ONE_ROW = Moments.from_data(X[:1], Y[:1])
# By group and the estimators to try: of each input a function that fits one to it.
REFUSED = {
    ("values", ESTIMATORS): {
        **{f"`{v}` in X": fitted(with_value(v, (4, 1))) for v in (np.nan, np.inf, -np.inf)},
        "NaN in a sparse X": fitted(sp.csc_array(HOLED)),
        "a missing value in a frame": fitted(pd.DataFrame(HOLED, columns=["a", "b", "c"])),
        "NaN in y": fitted(y=np.where(row_7, np.nan, Y)),
        "infinity in y": fitted(y=np.where(row_7, np.inf, Y)),
    },
    ("shapes", ESTIMATORS): {
        "no rows": fitted(X[:0], Y[:0]),
        "one row": fitted(X[:1], Y[:1]),
        "no columns": fitted(X[:, :0]),
        "a frame without columns": fitted(ABC[[]]),
        "two columns of one name": fitted(ABC.set_axis(["a", "b", "a"], axis=1)),
        "X with one dimension": fitted(X[:, 0]),
        "X with three dimensions": fitted(X[:, :, None]),
        "y of another length": fitted(y=Y[1:]),
        "y with three dimensions": fitted(y=Y[:, None, None]),
        "no y": fitted(y=None),
    },
    ("types", ESTIMATORS): {
        "masked values in X": fitted(np.ma.array(X, mask=np.outer(row_2, [1, 0, 0]))),
        "masked values in y": fitted(y=np.ma.array(Y, mask=row_2)),
        "masked values in sample_weight": fitted(weight=np.ma.array(np.ones(30), mask=row_2)),
        "text in X": fitted(np.where(X > 4, "Ulm", "Bonn")),
        "text in a frame": fitted(pd.DataFrame({"a": X[:, 0], "town": ["Ulm"] * 30})),
        "text among numbers in a frame": fitted(
            pd.DataFrame({"a": X[:, 0], "b": ["1", "2", "3", "?", *["5"] * 26]})
        ),
        "objects that are no numbers": fitted(np.full((30, 3), {}, dtype=object)),
        "dates in X": fitted(DAYS),
        "dates in a frame": fitted(pd.DataFrame({"day": pd.date_range("2024", periods=30)})),
        "complex numbers in X": fitted(X + 1j),
        "complex numbers in y": fitted(y=Y + 1j),
        "text in y": fitted(y=np.full(30, "Ulm")),
        "text as objects in y": fitted(y=np.full(30, "Ulm", dtype=object)),
        "dates in y": fitted(y=DAYS[:, 0]),
    },
    ("magnitudes", ESTIMATORS): {
        "X times 1e160": fitted(1e160 * X),
        "X times 1e-170": fitted(1e-170 * X),
        "y times 1e160": fitted(X, 1e160 * Y),
    },
    ("weights", ESTIMATORS): {
        "a negative weight": fitted(weight=np.where(row_2, -1.0, 1.0)),
        "a weight that is NaN": fitted(weight=np.where(row_2, np.nan, 1.0)),
        "an infinite weight": fitted(weight=np.where(row_2, np.inf, 1.0)),
        "all weights zero": fitted(weight=np.zeros(30)),
        "all weights zero but one": fitted(weight=row_2.astype(float)),
        "weights of another length": fitted(weight=np.ones(29)),
        "weights that are text": fitted(weight=["heavy"] * 30),
        "weights that are digits as text": fitted(weight=["1"] * 30),
        "weights that are complex numbers": fitted(weight=np.ones(30) + 1j),
        "weights that are dates": fitted(weight=DAYS[:, 0]),
        "weights that are durations": fitted(weight=np.full(30, 7, dtype="timedelta64[D]")),
        "weights of 1e200": fitted(weight=np.full(30, 1e200)),
        "weights whose sum is infinite": fitted(weight=np.full(30, 1e308)),
    },
    ("settings", ESTIMATORS): {
        f"{name}={v!r}": fitted(**{name: v}) for name, values in SETTINGS.items() for v in values
    },
    ("alphas", ONE): {f"alpha={a!r}": fitted(alpha=a) for a in (-1, np.nan, np.inf, "1")},
    ("alphas", MANY): {f"alphas={a}": fitted(alphas=a) for a in ALPHAS},
    ("folds", CV): {
        "fewer rows than folds": fitted(cv=31),
        "cv=1": fitted(cv=1),
        "a fold whose weights are all zero": fitted(weight=1.0 * (np.arange(30) >= 10)),
    },
    ("predictions", ESTIMATORS): {
        "columns in another order than in the fit": predicting(ABC[["b", "a", "c"]]),
        "columns of other names than in the fit": predicting(ABC.rename(columns={"c": "z"})),
        "more columns than in the fit": predicting(np.ones((2, 4)), X),
        "a missing value in a frame of another library": predicting(NULL),
        "NaN in new rows": predicting([[1.0, 2.0, 3.0], [np.nan, 1.0, 2.0]], X),
    },
    ("`Moments.from_data`", NONE): {
        "NaN in X": sums(HOLED),
        "infinity in y": sums(y=np.where(row_2, np.inf, Y)),
        "X with one dimension": sums(X[:, 0]),
        "y of another length": sums(y=Y[1:]),
        "text in X": sums(np.where(X > 4, "Ulm", "Bonn")),
        "dates in X": sums(DAYS),
        "complex numbers in X": sums(X + 1j),
        "a negative weight": sums(weight=np.where(row_2, -1.0, 1.0)),
        "all weights zero": sums(weight=np.zeros(30)),
        "X times 1e160": sums(1e160 * X),
    },
    ("`Moments.from_data`", ESTIMATORS[::2]): {
        "a fit to the moments of one row": lambda e: clone(e).fit_moments(ONE_ROW)
    },
    ("`read_moments`", NONE): {
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
        "bytes that are no Parquet": reading(b"this is not a file of Parquet", name="t.parquet"),
        "more folds than rows": reading(b"a,y\n1,2\n3,4\n", folds=3),
        "a negative weight": reading(b"a,w,y\n1,2,3\n4,-1,6\n", weight="w"),
    },
}

# --- what has an answer ---------------------------------------------------------------------------

whole, above = np.round(X), np.greater(Y, Y.mean())
copies = np.column_stack([X[:, [2, 0, 1]], X, -3.7 * X, 1e-9 * X])
WIDE, SQUARE = table(8, 20), table(12, 12)
dependent = np.column_stack([X, X.sum(axis=1), X[:, 0] - X[:, 1]])
OF_TYPE = {
    "booleans": whole > 5,
    "small integers whose squares overflow their type": (20 * whole).astype(np.int8),
    "integers beyond 2^53": whole.astype(np.int64) * 2**58,
    "integers beyond 64 bits": whole.astype(object) * 10**25,
    "float32": whole.astype(np.float32),
    "float16": whole.astype(np.float16),
    "numbers as objects": whole.astype(object),
    "numbers as text": whole.astype(str),
    "big-endian numbers": whole.astype(">f8"),
    "nullable numbers of pandas": pd.DataFrame(whole).astype("Int64"),
}
CONSTANT = {"a constant y": 2.5, "y of zeros": 0.0, "y of one huge number": 1e300}
LAYOUTS = {
    "a read-only array": lambda A: np.broadcast_to(A, A.shape),
    "columns in a row (Fortran order)": np.asfortranarray,
    "every other row and column of an array": lambda A: A.repeat(2, 0).repeat(2, 1)[::2, ::2],
    "rows and columns backwards in memory": lambda A: A[::-1, ::-1].copy()[::-1, ::-1],
}
anything = np.array([1e9, np.nan, np.inf, 0.0, -1e300])
without_weight = fitted(
    np.vstack([X, np.outer(anything, [1, 1, -1])]),
    np.r_[Y, anything],
    np.r_[np.ones(30), np.zeros(5)],
)
by_the_loop = same_as(*SQUARE, fitted(*SQUARE, solver="reference"), rtol=1e-7)

ANSWERED = {
    ("shapes", ESTIMATORS): {"one column": one_column, "y as a column": y_as_a_column},
    ("shapes", ONE): {"as many columns as rows": by_the_loop},
    ("types", ESTIMATORS): {
        "y of booleans": same_as(X, above.astype(float), fitted(y=above)),
        **{
            name: same_as(np.asarray(rows).astype(float), Y, fitted(rows))
            for name, rows in OF_TYPE.items()
        },
    },
    ("columns", ESTIMATORS): {
        "a constant column": as_alone(np.insert(X, 1, 7.3, axis=1), [0, 2, 3]),
        "a column of zeros": as_alone(np.insert(X, 1, 0.0, axis=1), [0, 2, 3]),
        "nothing but constant columns": nothing(Y.mean(), np.full((30, 2), [1.0, 7.3])),
        "copies of a column, also scaled or negated": as_alone(copies, [1, 2, 0]),
        "copies of a column that differ by up to 1e-7 of its deviation": near_copies,
        "a column that is the sum of others": a_sum,
    },
    ("targets", ESTIMATORS): {name: nothing(v, y=np.full(30, v)) for name, v in CONSTANT.items()},
    # Alphas are of the size of y squared, which must be a number with room above it.
    ("magnitudes", ESTIMATORS): {
        **{f"X times {s:g}": rescaled(s) for s in (1e-150, 1e-100, 1e100, 1e150)},
        **{f"y times {s:g}": rescaled(1.0, s) for s in (1e-145, 1e-100, 1e100, 1e145)},
        "X and y offset by 1e8": offset,
    },
    ("layouts", ESTIMATORS): {name: laid_out(lay) for name, lay in LAYOUTS.items()},
    ("weights", ESTIMATORS[::2]): {
        "rows of weight zero, whatever numbers they hold": same_as(X, Y, without_weight)
    },
    ("alphas", ONE): {
        "alpha=1e308": nothing(Y.mean(), alpha=1e308),
        "alpha=0": least_norm(X, Y, rtol=1e-9),
        "alpha=0 and columns that depend on each other": least_norm(dependent, Y),
        "alpha=0 and fewer rows than columns": least_norm(*WIDE),
    },
    ("alphas", MANY): {"alphas that are not sorted, or repeated": unsorted},
    ("settings", ESTIMATORS): {
        "penalty_factor=inf for all": nothing(Y.mean(), penalty_factor=[np.inf] * 3)
    },
    ("folds", CV): {"a column constant in the training rows of a fold": constant_in_a_fold},
    ("`Moments.from_data`", NONE): {"no rows, one row, no columns": few_rows},
}

# --- each does what the page says -----------------------------------------------------------------


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


class PathOf(SparseStepIC):
    """`sparsestep_path` in the place of an estimator."""

    def fit(self, X, y, sample_weight=None):
        params = {name: v for name, v in self.get_params().items() if name != "criterion"}
        return ss.sparsestep_path(X, y, sample_weight=sample_weight, **params)


PAGE = page()
OF_PATHS = {"values", "shapes", "types", "magnitudes", "weights", "settings"}


def tried(all_cases, paths=()):
    return [
        pytest.param((group, name), run, e, id=f"{group}: {name} ({type(e).__name__})")
        for (group, of), cases in all_cases.items()
        for name, run in cases.items()
        for e in (*of, *(paths if group in OF_PATHS else ()))
    ]


@pytest.mark.parametrize(("case", "run", "estimator"), tried(ANSWERED))
def test_what_has_an_answer(case, run, estimator):
    run(estimator)
    assert not PAGE[case].startswith("*")


@pytest.mark.parametrize(("case", "run", "estimator"), tried(REFUSED, [PathOf(alphas=6)]))
def test_what_is_refused(case, run, estimator):
    with pytest.raises((ValueError, TypeError)) as error:
        run(estimator)
    said = " ".join(str(error.value).replace(type(estimator).__name__, "SparseStep").split())
    assert PAGE[case] in (f"*{said}*", said)


def test_the_page_has_the_whole_list():
    assert sorted(PAGE) == sorted(
        (group, name)
        for (group, _), cases in [*REFUSED.items(), *ANSWERED.items()]
        for name in cases
    )
