"""Hostile input by chance: a short round of each target in every run, hours by `make fuzz`.

What must come back is the right answer or a refusal: a ValueError or a TypeError in words of ours
or of scikit-learn's. Any other exception, or a number that is not finite, is a bug.
"""

import io
import json
import os
import random
import tempfile
import time
import warnings
from collections import Counter
from contextlib import suppress
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import HealthCheck, given, seed, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from sklearn.base import clone

import sparsestep as ss
from designs import compare_rows
from source_data import assert_same
from sparsestep import Moments, SparseStep, SparseStepCV, SparseStepIC
from sparsestep.model.document import sealed
from sparsestep.model.file import load_model, read_document, save_model
from sparsestep.solvers.scaled_problem import ScaledProblem, Settings
from sparsestep.solvers.schedule import Schedule
from sparsestep.solvers.wide import WorkingSets
from sparsestep.sources import CsvFormat

# Rows without a weight, and means that were altered, are far outside by right.
pytestmark = pytest.mark.filterwarnings("ignore::sparsestep.errors.FarRowsWarning")

# What became of the examples of the target that runs.
COUNTS = Counter()
TARGETS = {}


def with_examples(target, count, **how):
    how = settings(max_examples=count, suppress_health_check=list(HealthCheck), **how)
    return how(given(data=st.data())(target))


def fuzzed(target):
    """A test by chance: of some examples in every run, for as long as wanted by `make fuzz`."""
    TARGETS[target.__name__] = target
    return with_examples(target, 100)


# What NumPy, SciPy and the interpreter say where nobody has thought of the case.
NOT_OURS = ("broadcast", "zero-size array", "Singular matrix", "out of bounds", "cannot reshape")
NOT_OURS += ("infs or NaNs", "not subscriptable", "unexpected keyword", "NoneType")
NOT_OURS += ("leading minor", "illegal value", "did not converge")


def outcome(call):
    """The call's value and "", or None and the words of its refusal; anything else is raised."""
    COUNTS["examples"] += 1
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        warnings.filterwarnings("error", category=RuntimeWarning, module="sparsestep")
        try:
            return call(), ""
        except (ValueError, TypeError) as error:
            words = str(error)
            if not words.strip() or any(bad in words for bad in NOT_OURS):
                raise AssertionError(f"a refusal in nobody's words: {words!r}") from error
            COUNTS["refused"] += 1
            return None, words


# --- rows -----------------------------------------------------------------------------------------

any_float = st.floats(allow_nan=False, allow_infinity=False)
FEW = (0.0, 1.0, -1.0, 2.0, 0.5, 3.0)
EXTREME = (0.0, 1e-150, -1e-150, 1e150, -1e150, 1e-200, 1e200, 1e-308, 1.7e308, 5e-324, 1e-30, 1e30)
BROKEN = (np.nan, np.inf, -np.inf, 1.0, 2.0)
TAME = ("ordinary",) * 4 + ("few",) * 2 + ("constant", "zero", "offset", "near copy", "sum", "step")
TAME += ("copy",) * 2 + ("correlated",) * 2
WILD = (*TAME, "any", "extreme", "broken", "scaled")


def column(kind, n, rng, draw, before):
    """A column of some kind; `before` are those already there."""
    other = before[:, rng.integers(before.shape[1])] if before.shape[1] else rng.standard_normal(n)
    noise = rng.standard_normal(n)
    with np.errstate(all="ignore"):
        return {
            "ordinary": lambda: noise,
            "correlated": lambda: other + 10.0 ** rng.integers(-3, 1) * noise,
            "near copy": lambda: other + 10.0 ** rng.integers(-17, -3) * noise,
            "copy": lambda: other.copy(),
            "scaled": lambda: other * 10.0 ** rng.integers(-160, 160),
            "sum": lambda: before.sum(axis=1),
            "few": lambda: rng.choice(FEW, n),
            "extreme": lambda: rng.choice(EXTREME, n),
            "broken": lambda: rng.choice(BROKEN, n),
            "any": lambda: np.array(draw(st.lists(any_float, min_size=n, max_size=n))),
            "constant": lambda: np.full(n, rng.choice([7.0, 0.1, 1e8, -1e-5])),
            "zero": lambda: np.zeros(n),
            "offset": lambda: 10.0 ** rng.integers(3, 15) + noise,
            "step": lambda: (np.arange(n) >= n // 2).astype(float),
        }[kind]()


@st.composite
def tables(draw, most_rows=14, most_columns=7):
    """Rows with columns of every kind, and a target that some of them may explain."""
    n = draw(st.sampled_from([0, 1, *range(2, most_rows + 1), *range(2, most_rows + 1)]))
    m = draw(st.sampled_from([0, *range(1, most_columns + 1), *range(1, most_columns + 1)]))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    kinds = draw(st.sampled_from([TAME, TAME, WILD]))
    X = np.empty((n, m))
    for j in range(m):
        X[:, j] = column(draw(st.sampled_from(kinds)), n, rng, draw, X[:, :j])
    how = draw(st.sampled_from(["explained"] * 4 + list(kinds)))
    if how == "explained":
        with np.errstate(all="ignore"):
            y = np.nan_to_num(X) @ rng.integers(-2, 3, m)
            y += 10.0 ** rng.integers(-12, 2) * rng.standard_normal(n)
    else:
        y = column(how, n, rng, draw, X)
    return X, y


DRESSES = {
    "F": np.asfortranarray,
    "strided": lambda X: X.repeat(2, axis=0).repeat(3, axis=1)[::2, ::3][::-1][::-1],
    "read-only": lambda X: np.broadcast_to(X, X.shape),
    "int64": lambda X: np.nan_to_num(X).astype(np.int64),
    "bool": lambda X: X > 0,
    "complex": lambda X: X + 1j,
    "no imaginary part": lambda X: X + 0j,
    "csr": sp.csr_array,
    "list": np.ndarray.tolist,
    "1d": lambda X: X[:, 0] if X.shape[1] else X,
    **{kind: lambda X, kind=kind: X.astype(kind) for kind in (object, str, "f4", np.longdouble)},
}


def dressed(draw, X, y):
    """The same rows in another type, order or container."""
    how = draw(st.sampled_from(["plain"] * 16 + ["targets", *DRESSES]))
    if how not in DRESSES:
        return X, y if how == "plain" else np.column_stack([y, y[::-1]])
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return DRESSES[how](X), y.tolist() if how == "list" else y


anything = st.one_of(st.floats(), st.sampled_from([0, 1, -1, True, None, "1", [1.0], 1 + 1j]))
alphas = st.one_of(
    st.floats(-12, 8).map(lambda e: 10.0**e), st.sampled_from([0.0, 1.0, 1e-300, 1e300, 5e-324])
)
SCHEDULES = {
    "gamma_0": [*[1e6] * 4, 1.0, 10.0, 1e3, 1e12, 1e30, 1e300],
    "gamma_stop": [*[1e-8] * 4, 1e-2, 1e-4, 1e-12, 1e-30, 1e-300],
    "gamma_step": [2.0, 2.0, 1.5, 10.0, 1e3, 1.1, 1e300],
    "t_max": [1, 2, 3, 5],
    "epsilon": [1e-7, 0.0, 1e-3, 1e-12, 1e300],
}


def settings_of(m):
    """Parameters, mostly sensible."""
    factor = st.sampled_from([0.0, 1.0, 1.0, 2.0, 0.5, np.inf, 1e-30, 1e30])
    names = [*SCHEDULES, "penalty_factor", "polish", "solver"]
    sensible = {
        "fit_intercept": st.booleans(),
        "standardize": st.booleans(),
        "polish": st.sampled_from([None, None, "swap"]),
        "penalty_factor": st.none() | st.lists(factor, min_size=m, max_size=m),
        **{name: st.sampled_from(values) for name, values in SCHEDULES.items()},
    }
    usual = [st.fixed_dictionaries({}, optional=sensible)] * 14
    return st.one_of(*usual, st.dictionaries(st.sampled_from(names), anything, max_size=1))


def weights_of(n):
    """Weights, mostly none."""
    some = (st.integers(0, 3), st.floats(0, 1e3), st.floats())
    return st.one_of(*[st.none()] * 17, *(st.lists(each, min_size=n, max_size=n) for each in some))


def drawn(draw):
    """Rows and a target, weights, and parameters."""
    X, y = draw(tables())
    n, m = X.shape
    return dressed(draw, X, y), draw(weights_of(n)), draw(settings_of(m))


# --- fit ------------------------------------------------------------------------------------------


@fuzzed
def test_a_fit(data):
    """One alpha: finite, and the literal loop's support wherever that one is clear itself."""
    rows, weight, chosen = drawn(data.draw)
    alpha = data.draw(st.one_of(*[alphas] * 9, anything))
    model, refusal = outcome(lambda: SparseStep(alpha, **chosen).fit(*rows, sample_weight=weight))
    if not refusal:
        require_finite(model, rows[0], weight)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            COUNTS[explanation(model, rows, weight)] += 1


def explanation(model, rows, weight):
    """Why a fit is right beside the literal loop's; raise if nothing explains the difference."""
    if model.solver != "auto":
        return "by the literal loop itself"
    X, y = rows
    plain = np.asarray(X.toarray() if sp.issparse(X) else X, dtype=float)
    # Variables without a penalty are never set to zero: there rounding is as good as nothing.
    priced = np.ones(plain.shape[1], dtype=bool)
    if model.penalty_factor is not None:
        priced = np.asarray(model.penalty_factor, dtype=float) > 0

    counted = len(plain) if weight is None else np.count_nonzero(np.asarray(weight, dtype=float))
    if counted < plain.shape[1] and model.alpha > 0:
        return explanation_by_set(model, plain, y, weight, priced)

    def literally(X, y, alpha):
        return clone(model).set_params(solver="reference", alpha=alpha).fit(X, y, weight)

    def kept(model):
        """Penalized variables whose part in the predictions is not lost in the digits of y."""
        with np.errstate(over="ignore"):
            part = np.abs(model.coef_) * np.abs(plain).max(axis=0)
        return priced & (part > 1e-12 * np.abs(y).max())

    expected = literally(X, y, model.alpha)
    if np.array_equal(kept(model), kept(expected)):
        return "as the literal loop"
    if model.alpha == 0:
        # Nothing is chosen there, and columns that depend but for rounding may share a part.
        left = [residual(each, X, y, weight) for each in (model, expected)]
        if left[0] <= left[1] * (1 + 1e-6) + 1e-7 * np.abs(y).max():
            return "without a penalty, as good a fit"
    for k in range(8):
        moved = (nudged(plain, k), nudged(np.asarray(y, dtype=float), k + 8))
        alpha = model.alpha * (1 + 1e-12 * (-1) ** k)
        if not np.array_equal(kept(literally(*moved, alpha)), kept(expected)):
            return "the literal loop itself wavers"
    raise AssertionError(f"kept {model.coef_}, not {expected.coef_}")


def explanation_by_set(model, X, y, weight, priced):
    """Why a fit of more columns than rows is right: the literal loop keeps the same of its set."""
    if model.polish is not None:
        return "more columns than rows, after swaps"
    schedule = Schedule(*(getattr(model, name) for name in Schedule.__dataclass_fields__))
    factor = None if model.penalty_factor is None else np.asarray(model.penalty_factor, dtype=float)
    how = Settings(schedule, model.fit_intercept, model.standardize, factor)
    problem = ScaledProblem.of(Moments.from_data(X, y, weight), how)
    options, turned, found = {"penalty_factor": problem.factor, **vars(schedule)}, 0, []
    for target, alphas in zip(problem.right, problem.alphas(np.array([model.alpha])), strict=True):
        sets = WorkingSets(problem.left, target, problem.factor, schedule)
        found.append(sets.solve(alphas))
        turned += compare_rows(
            problem.left, target, alphas, (found[-1], sets.sets), 1e-9, **options
        )
    again = problem.back(np.array(found))[0][:, 0].reshape(model.coef_.shape)
    assert np.array_equal((again != 0) & priced, (model.coef_ != 0) & priced), "another working set"
    return f"more columns than rows, as the loop on its set{' but for 1e-12' * bool(turned)}"


def nudged(values, seed):
    """Each number away from the first of its column by 1e-12 of that; constants stay constant."""
    noise = 1e-12 * np.random.default_rng(seed).standard_normal(values.shape)
    with np.errstate(all="ignore"):
        return values + (values - values[0]) * noise


def residual(model, X, y, weight):
    """The length of the residual over the rows that count."""
    root = np.sqrt(np.ones(len(y)) if weight is None else np.asarray(weight, dtype=float))
    apart = np.asarray(y, dtype=float) - model.predict(X)
    return np.linalg.norm(apart[root > 0].T * root[root > 0] / root.max())


def require_finite(model, X, weight):
    """Everything a fitted model says of its rows is finite; rows of no weight may hold anything."""
    assert np.all(np.isfinite(model.coef_)), model.coef_
    assert np.all(np.isfinite(model.intercept_)), model.intercept_
    with np.errstate(over="ignore", invalid="ignore"):
        predicted = model.predict(X)
    counted = slice(None) if weight is None else np.asarray(weight, dtype=float) > 0
    assert np.all(np.isfinite(predicted[counted])), predicted
    str(model.summary())


def require_finite_sums(moments):
    for values in (moments.mean_x, moments.mean_y, moments.xtx, moments.xty, moments.yty):
        assert np.all(np.isfinite(values)), moments


@fuzzed
def test_a_choice(data):
    """Cross-validation, information criteria, model sizes and paths: finite or refused."""
    rows, weight, chosen = drawn(data.draw)
    grids = st.lists(alphas, min_size=1, max_size=4)
    grid = data.draw(st.one_of(st.just(5), st.just(5), grids, anything))
    if data.draw(st.booleans()):
        model = data.draw(models(grid)).set_params(**chosen)
        model, refusal = outcome(lambda: model.fit(*rows, sample_weight=weight))
        if not refusal:
            require_finite(model, rows[0], weight)
        return
    chosen |= {"alphas": data.draw(st.sampled_from(["sizes", grid])), "sample_weight": weight}
    path, refusal = outcome(lambda: ss.sparsestep_path(*rows, **chosen))
    if not refusal:
        for values in (path.alphas, path.coefs, path.intercepts, path.rss, path.criterion("bic")):
            assert np.all(np.isfinite(values)), path
        assert np.all(np.diff(path.alphas) < 0), path.alphas


def models(grid):
    folds, rules = st.sampled_from([2, 2, 3, 3, 5, 50]), st.sampled_from(["min", "1se"])
    criteria = st.sampled_from(["aic", "bic", "ebic", "gic"])
    return st.one_of(
        st.builds(SparseStepCV, st.just(grid), cv=folds, rule=rules),
        st.builds(SparseStepIC, criteria, alphas=st.just(grid)),
        st.builds(SparseStep, n_nonzero=st.integers(0, 8)),
    )


@fuzzed
def test_moments(data):
    """Sums of rows: finite, and those of squares not negative; or refused."""
    rows, weight, _ = drawn(data.draw)
    found, refusal = outcome(lambda: Moments.from_data(*rows, weight))
    if not refusal:
        require_finite_sums(found)
        assert np.all(found.diag >= 0) and np.all(np.asarray(found.yty) >= 0)


# --- files ----------------------------------------------------------------------------------------

FOLDER = Path(tempfile.mkdtemp(prefix="sparsestep-fuzz-"))


def damaged(draw, content):
    """The same bytes with some flipped, cut, doubled or put in."""
    content = bytearray(content)
    for _ in range(draw(st.integers(1, 4))):
        at, size = draw(st.integers(0, max(len(content) - 1, 0))), draw(st.integers(0, 64))
        how = draw(st.sampled_from(["flip", "flip", "cut", "insert", "repeat", "remove"]))
        if how == "flip" and content:
            content[at] ^= draw(st.integers(1, 255))
        elif how in ("cut", "remove"):
            del content[at : None if how == "cut" else at + size]
        else:
            content[at:at] = content[at : at + size] if how == "repeat" else draw(st.binary())
    return bytes(content)


def of_file(name, content, read):
    """What reading a file with these bytes gives; None if it is refused by the file's name."""
    path = FOLDER / name
    path.write_bytes(content)
    found, refusal = outcome(lambda: read(path))
    assert not refusal or name in refusal, refusal
    assert "\n" not in refusal or not name.endswith(".json"), refusal
    return found


def saved_moments():
    rng = np.random.default_rng(0)
    for n, names in ((9, None), (3, None), (9, ["a", "b", "c", "d"])):
        X, y = rng.standard_normal((n, 4)), rng.standard_normal(n)
        moments = Moments.from_data(X, y, feature_names=names)
        moments.save(FOLDER / "made.moments")
        yield moments, (FOLDER / "made.moments").read_bytes()


MOMENTS = tuple(saved_moments())


@fuzzed
def test_a_file_of_moments(data):
    """A damaged file of moments is refused by name, or gives what was written."""
    moments, content = data.draw(st.sampled_from(MOMENTS))
    content = damaged(data.draw, content)
    found = of_file("t.moments", content, Moments.load)
    if found is not None:
        assert_same(found, moments)


crafted_arrays = st.one_of(
    hnp.arrays(
        st.sampled_from([np.float64, np.float32, np.int64, np.bool_, np.complex128]),
        st.sampled_from([(), (4,), (4, 4), (1,), (4, 1), (3, 4), (0,), (0, 4), (2, 2, 2)]),
    ),
    st.text(max_size=5).map(np.array),
    st.lists(st.text(max_size=2), max_size=5).map(lambda names: np.array(names, dtype=np.str_)),
)


@fuzzed
def test_a_file_of_other_moments(data):
    """A file of moments with other arrays is refused by name, or can be fitted."""
    _, content = data.draw(st.sampled_from(MOMENTS))
    with np.load(io.BytesIO(content)) as archive:
        arrays = dict(archive)
    for name in data.draw(st.lists(st.sampled_from(sorted(arrays)), min_size=1, max_size=3)):
        if data.draw(st.integers(0, 4)) == 0:
            arrays.pop(name, None)
        elif data.draw(st.booleans()) and name in arrays and arrays[name].dtype.kind in "fi":
            with np.errstate(all="ignore"):
                arrays[name] = arrays[name] * data.draw(st.sampled_from([-1, 0, 2]))
        else:
            arrays[name] = data.draw(crafted_arrays)
    file = io.BytesIO()
    np.savez(file, **arrays)
    found = of_file("t.moments", file.getvalue(), Moments.load)
    if found is not None:
        model, refusal = outcome(lambda: SparseStep().fit_moments(found))
        assert refusal or np.all(np.isfinite(model.coef_)), model.coef_


def saved_models():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((20, 3))
    y = X @ [1.0, 0.0, -2.0] + rng.standard_normal(20)
    for model in (SparseStep(5.0), SparseStepCV(4, cv=3), SparseStepIC(alphas=4)):
        path = FOLDER / "made.json"
        save_model(model.fit(X, y), path)
        yield X, read_document(path), path.read_bytes()


MODELS = tuple(saved_models())


@fuzzed
def test_a_file_of_a_model(data):
    """A damaged model is refused by name, unless JSON means the same: white space, a number."""
    _, document, content = data.draw(st.sampled_from(MODELS))
    found = of_file("t.json", damaged(data.draw, content), read_document)
    assert found in (None, document)


values_of_json = st.one_of(
    *(st.none(), st.booleans(), st.floats(), st.integers(-(2**70), 2**70), st.text(max_size=4)),
    st.lists(st.floats(allow_nan=False), max_size=4),
    st.just({}),
)


def keys_of(part):
    return sorted(part) if isinstance(part, dict) else list(range(len(part)))


@fuzzed
def test_a_file_of_another_model(data):
    """A model with other contents and a valid checksum is refused by name, or predicts numbers."""
    X, _, content = data.draw(st.sampled_from(MODELS))
    document = json.loads(content)
    for _ in range(data.draw(st.integers(1, 3))):
        part, key = document, data.draw(st.sampled_from(keys_of(document)))
        while part[key] and isinstance(part[key], dict | list) and data.draw(st.integers(0, 4)):
            part = part[key]
            key = data.draw(st.sampled_from(keys_of(part)))
        if isinstance(part, dict) and data.draw(st.integers(0, 5)) == 0:
            del part[key]
        else:
            part[key] = data.draw(values_of_json)
    # What cannot be sealed is written with the old checksum.
    with suppress(ValueError, TypeError, KeyError):
        document = sealed(document)
    content = json.dumps(document).encode()
    found = of_file("t.json", content, load_model)
    if found is not None:
        names = getattr(found, "feature_names_in_", None)
        new = X if names is None else pd.DataFrame(X, columns=names)
        assert np.all(np.isfinite(found.predict(new)))
        str(found.summary())


HEADS = ["a,b,y", "a,b,y", "y,a", "y", "", "a;b;y", "a,a,y", '"a",b,y', "é,b,y"]
CSV_OPTIONS = [{}, {}, {"folds": 2}, {"drop_missing": True}, {"weight": "b"}, {"features": ["a"]}]
FORMS = [None, CsvFormat(), CsvFormat(";"), CsvFormat(decimal=","), CsvFormat(encoding="utf-16")]
ODD_CELLS = ["NA", "null", "nan", "inf", "-inf", "1e999", '"1"', '"a,b"', '"', "1,5", "true", ""]
ODD_CELLS += ["2024-05-17", "0x10", "1_000", "١٢", "é", " 3 ", "\x00", "\ufeff1"]
cells = st.one_of(
    st.integers(-9, 9).map(str),
    st.floats(width=32).map(str),
    st.text(max_size=4),
    st.sampled_from(ODD_CELLS),
)


@fuzzed
def test_a_text_file(data):
    """A text file is refused by name, or its moments are numbers."""
    draw = data.draw
    names = draw(st.sampled_from(HEADS))
    end = draw(st.sampled_from(["\n", "\n", "\r\n", "\r", "\n\n"]))
    tame = st.integers(-9, 9).map(str) if draw(st.booleans()) else cells
    width = st.just(names.count(",") + 1) if draw(st.integers(0, 3)) else st.integers(0, 5)
    rows = [
        ",".join(draw(st.lists(tame, min_size=k, max_size=k)))
        for k in draw(st.lists(width, max_size=8))
    ]
    text = end.join([names, *rows]) + draw(st.sampled_from([end, "", ","]))
    code = draw(st.sampled_from(["utf-8", "utf-8", "utf-8", "latin-1", "utf-16", "utf-8-sig"]))
    content = text.encode(code, errors="replace")
    if draw(st.integers(0, 3)) == 0:
        content = damaged(draw, content)
    options = {"csv": draw(st.sampled_from(FORMS)), **draw(st.sampled_from(CSV_OPTIONS))}
    found = of_file("t.csv", content, lambda path: ss.read_moments(path, "y", **options))
    for part in found if isinstance(found, list) else [found] * (found is not None):
        require_finite_sums(part)


@pytest.mark.fuzz
@pytest.mark.parametrize("name", TARGETS)
def test_rounds_until_the_time_is_up(name):
    COUNTS.clear()
    target = with_examples(TARGETS[name], 200, derandomize=False, database=None)
    end = time.monotonic() + 60 * float(os.environ.get("FUZZ_MINUTES", "60")) / len(TARGETS)
    while time.monotonic() < end:
        number = random.SystemRandom().randrange(2**32)
        try:
            seed(number)(target)()
        except BaseException:
            print(f"found by {name} with seed {number}")
            raise
        finally:
            print(f"{name}: {dict(COUNTS)}", flush=True)
