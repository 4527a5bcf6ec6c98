"""What `make fuzz` throws at the program, and what must come back: the right answer or a refusal.

A target is a hypothesis test without pytest around it. A refusal is a ValueError or a TypeError in
words of ours or of scikit-learn's; any other exception, or a number that is not finite, is a bug.
"""

import io
import json
import tempfile
import warnings
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numpy.testing import assert_array_equal
from sklearn.base import clone

from designs import compare_rows
from sparsestep import (
    Moments,
    SparseStep,
    SparseStepCV,
    SparseStepIC,
    read_moments,
    sparsestep_path,
)
from sparsestep.model.document import sealed
from sparsestep.model.file import load_model, save_model
from sparsestep.solvers.scaled_problem import ScaledProblem, Settings
from sparsestep.solvers.schedule import Schedule
from sparsestep.solvers.wide import WorkingSets
from sparsestep.sources import CsvFormat

# How often each target was called, and what became of it.
COUNTS = Counter()
REFUSALS = Counter()

# What NumPy, SciPy and the interpreter say where nobody has thought of the case.
NOT_OURS = ("broadcast", "zero-size array", "Singular matrix", "out of bounds", "cannot reshape")
NOT_OURS += ("infs or NaNs", "not subscriptable", "unexpected keyword", "NoneType")
NOT_OURS += ("leading minor", "illegal value", "did not converge")


@dataclass
class Outcome:
    """What a call gave: a value, or the words of a refusal."""

    value: object = None
    refusal: str = ""


def outcome(target, call):
    """The call's value, or its refusal; anything else is raised."""
    COUNTS[target, "examples"] += 1
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        warnings.filterwarnings("error", category=RuntimeWarning, module="sparsestep")
        try:
            return Outcome(call())
        except (ValueError, TypeError) as error:
            words = str(error)
            if not words.strip() or any(bad in words for bad in NOT_OURS):
                raise AssertionError(f"a refusal in nobody's words: {words!r}") from error
            COUNTS[target, "refused"] += 1
            REFUSALS[words[:70]] += 1
            return Outcome(refusal=words)


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


def dressed(draw, X, y):
    """The same rows in another type, order or container."""
    kinds = (
        "F strided read-only float32 int64 bool object complex text csr list longdouble 1d targets"
    )
    how = draw(st.sampled_from(["plain"] * 16 + kinds.split()))
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if how == "F":
            X = np.asfortranarray(X)
        elif how == "strided":
            X = np.repeat(np.repeat(X, 2, axis=0), 3, axis=1)[::2, ::3][::-1][::-1]
        elif how == "read-only":
            X = X.copy()
            X.flags.writeable = False
        elif how in ("float32", "longdouble"):
            X = X.astype(how)
        elif how == "int64":
            X = np.nan_to_num(X).astype(np.int64)
        elif how == "bool":
            X = X > 0
        elif how == "object":
            X = X.astype(object)
        elif how == "complex":
            X = X + 1j * draw(st.sampled_from([0, 1]))
        elif how == "text":
            X = X.astype(str)
        elif how == "csr":
            X = sp.csr_array(X)
        elif how == "list":
            X, y = X.tolist(), y.tolist()
        elif how == "1d":
            X = X[:, 0] if X.shape[1] else X
        elif how == "targets":
            y = np.column_stack([y, y[::-1]])
    return X, y


anything = st.one_of(st.floats(), st.sampled_from([0, 1, -1, True, None, "1", [1.0], 1 + 1j]))
alphas = st.one_of(
    st.floats(-12, 8).map(lambda e: 10.0**e), st.sampled_from([0.0, 1.0, 1e-300, 1e300, 5e-324])
)


def settings_of(draw, m):
    """Parameters, mostly sensible."""
    chosen = {}
    if draw(st.integers(0, 2)) == 0:
        chosen["fit_intercept"] = draw(st.booleans())
        chosen["standardize"] = draw(st.booleans())
    if draw(st.integers(0, 4)) == 0:
        chosen["polish"] = "swap"
    if draw(st.integers(0, 3)) == 0:
        factor = st.sampled_from([0.0, 1.0, 1.0, 2.0, 0.5, np.inf, 1e-30, 1e30])
        chosen["penalty_factor"] = draw(st.lists(factor, min_size=m, max_size=m))
    if draw(st.integers(0, 3)) == 0:
        chosen["gamma_0"] = draw(st.sampled_from([1e6, 1.0, 10.0, 1e3, 1e12, 1e30, 1e300]))
        chosen["gamma_stop"] = draw(st.sampled_from([1e-8, 1e-2, 1e-4, 1e-12, 1e-30, 1e-300]))
        chosen["gamma_step"] = draw(st.sampled_from([2.0, 1.5, 10.0, 1e3, 1.1, 1e300]))
        chosen["t_max"] = draw(st.sampled_from([1, 2, 3, 5]))
        chosen["epsilon"] = draw(st.sampled_from([1e-7, 0.0, 1e-3, 1e-12, 1e300]))
    if draw(st.integers(0, 14)) == 0:
        names = ["gamma_0", "gamma_stop", "gamma_step", "t_max", "epsilon"]
        names += ["penalty_factor", "polish", "solver"]
        chosen[draw(st.sampled_from(names))] = draw(anything)
    return chosen


def weights_of(draw, n):
    """Weights, mostly none."""
    kind = draw(st.integers(0, 19))
    if kind > 2:
        return None
    if kind == 0:
        return draw(st.lists(st.integers(0, 3), min_size=n, max_size=n))
    values = st.floats(0, 1e3) if kind == 1 else st.floats()
    return draw(st.lists(values, min_size=n, max_size=n))


def drawn(draw):
    """Rows and a target, weights, and parameters."""
    X, y = draw(tables())
    n, m = X.shape
    return dressed(draw, X, y), weights_of(draw, n), settings_of(draw, m)


# --- fit ------------------------------------------------------------------------------------------


@given(data=st.data())
def fit(data):
    """One alpha: finite, and the literal loop's support wherever that one is clear itself."""
    rows, weight, chosen = drawn(data.draw)
    alpha = data.draw(st.one_of(*[alphas] * 9, anything))
    found = outcome("fit", lambda: SparseStep(alpha, **chosen).fit(*rows, sample_weight=weight))
    if found.refusal:
        return
    require_finite(found.value, rows[0])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        COUNTS["fit", explanation(found.value, rows, weight)] += 1


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
    for seed in range(8):
        moved = (nudged(plain, seed), nudged(np.asarray(y, dtype=float), seed + 8))
        alpha = model.alpha * (1 + 1e-12 * (-1) ** seed)
        if not np.array_equal(kept(literally(*moved, alpha)), kept(expected)):
            return "the literal loop itself wavers"
    raise AssertionError(f"kept {model.coef_}, not {expected.coef_}")


def explanation_by_set(model, X, y, weight, priced):
    """Why a fit of more columns than rows is right: the literal loop keeps the same of its set."""
    if model.polish is not None:
        return "more columns than rows, after swaps"
    moments = Moments.from_data(X, y, weight)
    factor = None if model.penalty_factor is None else np.asarray(model.penalty_factor, dtype=float)
    settings = Settings(
        Schedule(*(getattr(model, name) for name in Schedule.__dataclass_fields__)),
        model.fit_intercept,
        model.standardize,
        factor,
    )
    problem = ScaledProblem.of(moments, settings)
    A, target, alphas = problem.left, problem.right[0], problem.alphas(np.array([model.alpha]))[0]
    sets = WorkingSets(A, target, problem.factor, settings.schedule)
    found = sets.solve(alphas)
    turned = compare_rows(
        *(A, target, alphas, (found, sets.sets), 1e-9),
        penalty_factor=problem.factor,
        **vars(settings.schedule),
    )
    again = problem.back(found[np.newaxis])[0][0, 0]
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


def require_finite(model, X):
    """Everything a fitted model says is finite."""
    assert np.all(np.isfinite(model.coef_)), model.coef_
    assert np.all(np.isfinite(model.intercept_)), model.intercept_
    predicted = model.predict(X)
    assert np.all(np.isfinite(predicted)), predicted
    str(model.summary())


def require_finite_sums(moments):
    for values in (moments.mean_x, moments.mean_y, moments.xtx, moments.xty, moments.yty):
        assert np.all(np.isfinite(values)), moments


@given(data=st.data())
def choose(data):
    """Cross-validation, information criteria, model sizes and paths: finite or refused."""
    draw = data.draw
    rows, weight, chosen = drawn(draw)
    grid = draw(
        st.one_of(st.just(5), st.just(5), st.lists(alphas, min_size=1, max_size=4), anything)
    )
    folds, rule = draw(st.sampled_from([2, 2, 3, 3, 5, 50])), draw(st.sampled_from(["min", "1se"]))
    criterion = draw(st.sampled_from(["aic", "bic", "ebic", "gic"]))
    by_size = SparseStep(n_nonzero=draw(st.integers(0, 8)))
    models = [
        SparseStepCV(grid, cv=folds, rule=rule),
        SparseStepIC(criterion, alphas=grid),
        by_size,
    ]
    model = draw(st.sampled_from(models))
    if draw(st.booleans()):
        found = outcome(
            "choose", lambda: model.set_params(**chosen).fit(*rows, sample_weight=weight)
        )
        if not found.refusal:
            require_finite(found.value, rows[0])
        return
    sizes = draw(st.sampled_from(["sizes", grid]))
    found = outcome(
        "choose", lambda: sparsestep_path(*rows, alphas=sizes, sample_weight=weight, **chosen)
    )
    if not found.refusal:
        path = found.value
        for values in (path.alphas, path.coefs, path.intercepts, path.rss, path.criterion("bic")):
            assert np.all(np.isfinite(values)), path
        assert np.all(np.diff(path.alphas) < 0), path.alphas


@given(data=st.data())
def moments(data):
    """Sums of rows: finite, and those of squares not negative; or refused."""
    rows, weight, _ = drawn(data.draw)
    found = outcome("moments", lambda: Moments.from_data(*rows, weight))
    if found.refusal:
        return
    whole = found.value
    require_finite_sums(whole)
    assert np.all(whole.diag >= 0) and np.all(np.asarray(whole.yty) >= 0)


# --- files ----------------------------------------------------------------------------------------

FOLDER = Path(tempfile.mkdtemp(prefix="sparsestep-fuzz-"))


def damaged(draw, content):
    """The same bytes with some flipped, cut, doubled or put in."""
    content = bytearray(content)
    for _ in range(draw(st.integers(1, 4))):
        at = draw(st.integers(0, max(len(content) - 1, 0)))
        how = draw(st.sampled_from(["flip", "flip", "cut", "insert", "repeat", "remove"]))
        if how == "flip" and content:
            content[at] ^= draw(st.integers(1, 255))
        elif how == "cut":
            del content[at:]
        elif how == "insert":
            content[at:at] = draw(st.binary(max_size=8))
        elif how == "repeat":
            content[at:at] = content[at : at + draw(st.integers(0, 64))]
        elif how == "remove":
            del content[at : at + draw(st.integers(0, 64))]
    return bytes(content)


def written(name, content):
    path = FOLDER / name
    path.write_bytes(content)
    return path


def require_name(found, path):
    """A refusal of a file names it."""
    assert not found.refusal or path.name in found.refusal, found.refusal


def saved_moments():
    rng = np.random.default_rng(0)
    for n, names in ((9, None), (3, None), (9, ["a", "b", "c", "d"])):
        X, y = rng.standard_normal((n, 4)), rng.standard_normal(n)
        moments = Moments.from_data(X, y, feature_names=names)
        path = FOLDER / "made.moments"
        moments.save(path)
        yield moments, path.read_bytes()


MOMENTS = tuple(saved_moments())


@given(data=st.data())
def moments_file(data):
    """A damaged file of moments is refused by name, or gives what was written."""
    moments, content = data.draw(st.sampled_from(MOMENTS))
    path = written("t.moments", damaged(data.draw, content))
    found = outcome("moments_file", lambda: Moments.load(path))
    require_name(found, path)
    if not found.refusal:
        for name in ("n_samples", "weight_sum", "mean_x", "mean_y", "xtx", "xty", "yty"):
            assert_array_equal(getattr(found.value, name), getattr(moments, name))
        assert found.value.feature_names == moments.feature_names


crafted_arrays = st.one_of(
    hnp.arrays(
        st.sampled_from([np.float64, np.float32, np.int64, np.bool_, np.complex128]),
        st.one_of(
            st.just(()),
            st.sampled_from([(4,), (4, 4), (1,), (4, 1), (3, 4), (0,), (0, 4), (2, 2, 2)]),
        ),
    ),
    st.text(max_size=5).map(np.array),
    st.lists(st.text(max_size=2), max_size=5).map(lambda names: np.array(names, dtype=np.str_)),
)


@given(data=st.data())
def crafted_moments_file(data):
    """A file of moments with other arrays is refused by name, or can be fitted."""
    _, content = data.draw(st.sampled_from(MOMENTS))
    with np.load(io.BytesIO(content)) as archive:
        arrays = dict(archive)
    for name in data.draw(st.lists(st.sampled_from(sorted(arrays)), min_size=1, max_size=3)):
        if data.draw(st.integers(0, 4)) == 0:
            arrays.pop(name, None)
        elif data.draw(st.booleans()) and name in arrays and arrays[name].dtype.kind in "fi":
            factor = data.draw(st.sampled_from([-1, 0, 2]))
            with np.errstate(all="ignore"):
                arrays[name] = arrays[name] * factor
        else:
            arrays[name] = data.draw(crafted_arrays)
    file = io.BytesIO()
    np.savez(file, **arrays)
    path = written("t.moments", file.getvalue())
    found = outcome("crafted_moments_file", lambda: Moments.load(path))
    require_name(found, path)
    if not found.refusal:
        fitted = outcome("fit of crafted moments", lambda: SparseStep().fit_moments(found.value))
        if not fitted.refusal:
            assert np.all(np.isfinite(fitted.value.coef_)), fitted.value.coef_


def saved_models():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((20, 3))
    y = X @ [1.0, 0.0, -2.0] + rng.standard_normal(20)
    for model in (SparseStep(5.0), SparseStepCV(4, cv=3), SparseStepIC(alphas=4)):
        path = FOLDER / "made.json"
        save_model(model.fit(X, y), path)
        yield X, model.predict(X), path.read_bytes()


MODELS = tuple(saved_models())


@given(data=st.data())
def model_file(data):
    """A damaged model is refused by name, or predicts what it did."""
    X, predicted, content = data.draw(st.sampled_from(MODELS))
    path = written("t.json", damaged(data.draw, content))
    found = outcome("model_file", lambda: load_model(path))
    require_name(found, path)
    if not found.refusal:
        assert_array_equal(found.value.predict(X), predicted)


values_of_json = st.one_of(
    st.none(),
    st.booleans(),
    st.floats(),
    st.integers(-(2**70), 2**70),
    st.text(max_size=4),
    st.lists(st.floats(allow_nan=False), max_size=4),
    st.just({}),
)


@given(data=st.data())
def crafted_model_file(data):
    """A model with other contents and a valid checksum is refused by name, or predicts numbers."""
    X, _, content = data.draw(st.sampled_from(MODELS))
    document = json.loads(content)
    for _ in range(data.draw(st.integers(1, 3))):
        part = document
        while True:
            keys = sorted(part) if isinstance(part, dict) else list(range(len(part)))
            if not keys:
                break
            key = data.draw(st.sampled_from(keys))
            if isinstance(part[key], dict | list) and data.draw(st.integers(0, 4)):
                part = part[key]
                continue
            if isinstance(part, dict) and data.draw(st.integers(0, 5)) == 0:
                del part[key]
            else:
                part[key] = data.draw(values_of_json)
            break
    # What cannot be sealed is written with the old checksum.
    with suppress(ValueError, TypeError, KeyError):
        document = sealed(document)
    path = written("t.json", json.dumps(document).encode())
    found = outcome("crafted_model_file", lambda: load_model(path))
    require_name(found, path)
    if not found.refusal:
        names = getattr(found.value, "feature_names_in_", None)
        new = X if names is None else pd.DataFrame(X, columns=names)
        assert np.all(np.isfinite(found.value.predict(new)))
        str(found.value.summary())


ODD_CELLS = ["NA", "null", "nan", "inf", "-inf", "1e999", '"1"', '"a,b"', '"', "1,5", "true", ""]
ODD_CELLS += ["2024-05-17", "0x10", "1_000", "١٢", "é", " 3 ", "\x00", "\ufeff1"]
cells = st.one_of(
    st.integers(-9, 9).map(str),
    st.floats(width=32).map(str),
    st.text(max_size=4),
    st.sampled_from(ODD_CELLS),
)


@given(data=st.data())
def csv_file(data):
    """A text file is refused by name, or its moments are numbers."""
    draw = data.draw
    names = draw(
        st.sampled_from(["a,b,y", "a,b,y", "y,a", "y", "", "a;b;y", "a,a,y", '"a",b,y', "é,b,y"])
    )
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
    path = written("t.csv", content)
    options = draw(
        st.sampled_from(
            [{}, {}, {"folds": 2}, {"drop_missing": True}, {"weight": "b"}, {"features": ["a"]}]
        )
    )
    forms = [CsvFormat(), CsvFormat(";"), CsvFormat(decimal=","), CsvFormat(encoding="utf-16")]
    form = draw(st.sampled_from([None, *forms]))
    found = outcome("csv_file", lambda: read_moments(path, "y", csv=form, **options))
    require_name(found, path)
    if not found.refusal:
        for part in found.value if isinstance(found.value, list) else [found.value]:
            require_finite_sums(part)


SUMS = (moments, moments_file, crafted_moments_file)
TARGETS = (fit, choose, *SUMS, model_file, crafted_model_file, csv_file)
TARGETS = {target.__name__: target for target in TARGETS}
