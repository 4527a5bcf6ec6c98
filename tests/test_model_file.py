"""A model file gives back the same model, and nothing else is taken for one."""

import json
import os
import pickle
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.datasets import load_diabetes
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import GridSearchCV, KFold, ShuffleSplit
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import sparsestep as ss
from report_documents import changed
from sparsestep import SparseStep, SparseStepCV, SparseStepIC, load_model, save_model
from sparsestep.errors import FarRowsWarning, ModelFileError
from sparsestep.model.file import document_of, estimator_of, read_document, write_document

X, Y = load_diabetes(return_X_y=True, as_frame=True)
TWO = pd.DataFrame({"u": Y, "v": np.random.default_rng(0).permutation(Y)})

MODELS = {
    "alpha": lambda: SparseStep(alpha=1e5).fit(X, Y),
    "size": lambda: SparseStep(n_nonzero=3, penalty_factor=[np.inf] + [1.0] * 9).fit(X, Y),
    "no names": lambda: SparseStep(alpha=1e5, fit_intercept=False).fit(X.to_numpy(), Y),
    "nothing": lambda: SparseStep(alpha=1e12).fit(X, Y),
    "saturated": lambda: SparseStep(alpha=0.0).fit(X[:5], Y[:5]),
    "constant target": lambda: SparseStep().fit(X, np.ones(len(Y))),
    "cv": lambda: SparseStepCV(rule="1se", cv=5).fit(X, Y),
    "one split": lambda: SparseStepCV(cv=ShuffleSplit(1, random_state=0)).fit(X, Y),
    "list of splits": lambda: SparseStepCV(5, cv=[*KFold(4).split(X)]).fit(X, Y),
    "given alphas": lambda: SparseStepCV(alphas=np.array([3e5, 1e5])).fit(X, Y),
    "Arrow and bool": lambda: SparseStepCV(pa.array([3e5, 1e5]), verbose=True).fit(X, Y),
    "two targets": lambda: SparseStepCV(cv=3, alphas=20).fit(X, TWO),
    "bic": lambda: SparseStepIC().fit(X, Y, sample_weight=np.arange(len(Y)) % 3),
    "fewer rows than columns": lambda: SparseStepIC().fit(X[:9], Y[:9]),
    "one column of targets": lambda: SparseStepIC("gic", alphas=30).fit(X, TWO.to_numpy()[:, :1]),
}


NUMBER = st.floats(-1e6, 1e6, allow_subnormal=False).map(lambda value: round(value, 3))


@pytest.fixture(scope="module")
def models():
    return {name: make() for name, make in MODELS.items()}


def same(a, b):
    """Whether two values of attributes are equal, bit by bit but for the sign of zero."""
    if isinstance(a, list | tuple):
        return len(a) == len(b) and all(same(x, y) for x, y in zip(a, b, strict=True))
    if hasattr(a, "__dataclass_fields__"):
        return all(same(x, vars(b)[name]) for name, x in vars(a).items())
    if isinstance(a, np.ndarray):
        equal_nan = a.dtype.kind == "f"
        return a.dtype == b.dtype and np.array_equal(a, b, equal_nan=equal_nan)
    return type(a) is type(b) and (a == b or (a != a and b != b))


@pytest.mark.filterwarnings("ignore:.* far outside:sparsestep.errors.FarRowsWarning")
@pytest.mark.parametrize("name", MODELS)
def test_the_model_comes_back_exactly(models, name, tmp_path):
    model = models[name]
    save_model(model, tmp_path / "model.json")
    assert os.listdir(tmp_path) == ["model.json"]
    back = load_model(tmp_path / "model.json")
    assert type(back) is type(model)
    parameters = model.get_params()
    for attribute, value in vars(model).items():
        if attribute not in parameters:
            assert same(value, getattr(back, attribute)), attribute
        elif "split" not in name or attribute != "cv":
            assert np.array_equal(getattr(back, attribute), value), attribute
    assert set(vars(model)) == set(vars(back))
    given_x = X if hasattr(model, "feature_names_in_") else X.to_numpy()
    assert_array_equal(back.predict(given_x), model.predict(given_x))
    for target in range(len(np.atleast_2d(model.coef_))):
        how = {"level": 0.9, "target": target}
        assert str(back.summary(**how)) == str(model.summary(**how))
    if model.coef_.ndim == 1:
        assert back.score(given_x, Y) == model.score(given_x, Y)
    document = document_of(model)
    assert json.loads(json.dumps(document)) == document
    if "split" not in name:
        assert document_of(back) == document
    if name in ("size", "cv", "given alphas"):
        assert_array_equal(clone(back).fit(X, Y).coef_, model.coef_)


def test_a_file_of_an_earlier_version_is_read_and_written_as_it_was(tmp_path):
    """It was written before there was shrinkage, and has notes and errors of folds."""
    file = Path(__file__).with_name("model_of_schema_1.json")
    document, model = read_document(file), load_model(file)
    write_document(document, tmp_path / "m.json")
    assert (tmp_path / "m.json").read_bytes() == file.read_bytes()
    again = document_of(model, target="output", seed=3)
    (target,) = document["targets"]
    # What the earlier schema did not know is null.
    document["settings"]["shrink"] = target["inclusion"] = None
    target["cv"] |= {"paired_se": [None, None], "alpha_paired": None, "shrinkage": None}
    other = {"schema": 2, "version": "", "checksum": ""}
    assert {**again, **other} == {**document, **other}
    assert_array_equal(np.flatnonzero(model.coef_), target["kept"])
    assert_array_equal(model.coef_[target["kept"]], target["coef"])
    assert model.intercept_ == target["intercept"] and model.alpha_ == 200.0


@pytest.mark.parametrize("kind", [dict, pd.Series])
def test_penalty_factors_by_name_come_back_in_the_order_of_the_columns(kind, tmp_path):
    factor = kind({name: 0 if name == "age" else np.inf for name in X.columns[::-1]})
    model = SparseStep(1e5, penalty_factor=factor).fit(X, Y)
    save_model(model, tmp_path / "model.json")
    back = load_model(tmp_path / "model.json")
    assert back.penalty_factor == [0.0] + [np.inf] * 9
    assert_array_equal(clone(back).fit(X, Y).coef_, model.coef_)


def test_what_the_document_says(models, tmp_path):
    save_model(
        models["cv"],
        tmp_path / "m.json",
        target="progression",
        source="patients.csv",
        weight="w",
        one_hot={"centre": (["A", "B"], ["bmi"])},
        rows_dropped=3,
        dropped_by={"age": 1, "bmi": 2},
        seed=7,
    )
    document = read_document(tmp_path / "m.json")
    question, data, (target,) = document["question"], document["data"], document["targets"]
    assert question["source"] == "patients.csv"
    assert question["target"] == ["progression"]
    assert question["features"] == list(X.columns)
    assert (question["rows"], question["rows_dropped"], question["seed"]) == (442, 3, 7)
    choice = {key: value for key, value in question["choice"].items() if value is not None}
    assert choice == {"by": "cv", "folds": 5, "scheme": "5-fold cross-validation", "rule": "1se"}
    one_hot = [{"column": "centre", "categories": ["A", "B"], "features": ["bmi"]}]
    assert question["one_hot"] == one_hot
    assert_allclose(data["mean"], X.mean(), atol=1e-15)
    assert_allclose(data["deviation"], X.std(ddof=0), rtol=1e-12)
    assert_allclose(data["target_mean"], Y.mean())
    assert_allclose(data["target_deviation"], Y.std(ddof=0))
    frame = models["cv"].summary().to_frame().loc[X.columns[target["kept"]]]
    assert_array_equal(frame["2.5 %"], target["low"])
    assert_array_equal(frame["97.5 %"], target["high"])
    assert target["path"]["alphas"][target["index"]] == models["cv"].alpha_
    facts = {"rows": 3, "total": 445, "by": {"bmi": 2, "age": 1}}
    assert document["notes"] == [{"kind": "rows dropped", "facts": facts}]
    loaded = load_model(tmp_path / "m.json")
    [note] = loaded.summary().notes
    assert "3 of 445 rows" in note and "2 in 'bmi', 1 in 'age'" in note
    again = document_of(loaded, target="progression", seed=7)
    assert again["question"]["rows_dropped"] == 3 and again["notes"] == document["notes"]
    assert again["question"]["one_hot"] == one_hot


def test_targets_keep_their_names_or_are_given_others(models, tmp_path):
    assert document_of(models["two targets"])["question"]["target"] == ["u", "v"]
    save_model(models["two targets"], tmp_path / "m.json", target=["a", "b"])
    assert read_document(tmp_path / "m.json")["question"]["target"] == ["a", "b"]
    loaded = load_model(tmp_path / "m.json")
    assert loaded.summary(target="b").facts["target"].startswith("b (2 of 2")


def test_a_path_can_be_saved_with_a_model_that_has_none(models):
    sizes = ss.sparsestep_path(X, Y, alphas="sizes")
    (target,) = document_of(models["alpha"], model_path=sizes)["targets"]
    assert target["path"]["n_nonzero"] == list(range(11)) and target["alpha"] == 1e5
    model = SparseStep(n_nonzero=4).fit(X, Y)  # other variables than the loop keeps at that alpha
    path = ss.sparsestep_path(X, Y, alphas=[1e5, model.alpha_, 1e3])
    (target,) = document_of(model, model_path=path)["targets"]
    assert target["index"] is None
    (target,) = document_of(SparseStep(model.alpha_).fit(X, Y), model_path=path)["targets"]
    assert target["index"] == 1


def test_a_hundred_variables_fit_in_a_megabyte(tmp_path):
    rng = np.random.default_rng(3)
    Z = rng.standard_normal((400, 100))
    save_model(SparseStepCV().fit(Z, Z[:, 0] + rng.standard_normal(400)), tmp_path / "m.json")
    assert (tmp_path / "m.json").stat().st_size < 1_000_000


@settings(max_examples=40)
@given(
    st.one_of(
        st.builds(SparseStep, alpha=st.floats(0, 1e9)),
        st.builds(partial(SparseStepCV, 7, cv=2), rule=st.sampled_from(["min", "1se"])),
        st.builds(SparseStepIC, st.sampled_from(["aic", "bic", "ebic", "gic"])),
    ),
    arrays(float, st.tuples(st.integers(2, 8), st.integers(2, 5)), elements=NUMBER),
)
def test_any_model_comes_back(model, table):
    model.fit(table[:, 1:], table[:, 0])
    document = json.loads(json.dumps(document_of(model), allow_nan=False))
    back = estimator_of(document)
    assert same(model.coef_, back.coef_)
    assert np.array_equal(back.predict(table[:, 1:]), model.predict(table[:, 1:]))
    assert str(back.summary()) == str(model.summary())


# -- refusals --------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def file(models, tmp_path_factory):
    path = tmp_path_factory.mktemp("model") / "model.json"
    save_model(models["cv"], path, one_hot={"centre": (["A", "B"], ["bmi"])})
    return path


def note(kind, **facts):
    return [{"kind": kind, "facts": facts}]


T = ("targets", 0)
TEXTS = {
    "foreign": (lambda text: json.dumps({"format": "another", "schema": 1}), "not a model file"),
    "a list": (lambda text: "[1, 2]", "not a model file"),
    "empty": (lambda text: "", "not a model file"),
    "text": (lambda text: "a,b,c\n1,2,3\n", "not a model file"),
    "cut": (lambda text: text[:5000], "cut short or damaged"),
    "nested": (lambda text: "{" + '"a":[' * 100_000, "cut short or damaged"),
    "NaN": (lambda text: text.replace('"n_iter": ', '"n_iter": NaN, "x": '), "holds NaN"),
    "infinity": (lambda text: text.replace("442.0", "1e999"), "data.weight_sum"),
    "a huge integer": (lambda text: text.replace("442.0", "1" * 400), "data.weight_sum"),
    "a pickle": (lambda text: pickle.dumps(LinearRegression()), "not a model file"),
    "other bytes": (lambda text: b'{"format": "\xff"}', "damaged"),
    "twice": (lambda text: text.replace("{\n", '{\n"schema": 1,\n', 1), "a field twice"),
    "altered": (lambda text: text.replace('"n_iter": ', '"n_iter": 1'), "checksum"),
}
# A field, what replaces it (...: it is removed), and what the message names if not this field.
FIELDS = [
    (("schema",), 3, "newer than 2.*update sparsestep"),
    (("schema",), 0, None),
    (("schema",), "1", None),
    (("schema",), True, None),
    (("data", "rows"), 10**400, r"data\.rows"),
    (("data", "rows"), 7, None),
    (("data", "mean", 0), ..., "mean has 9 entries instead of 10"),
    (("data", "deviation", 0), -1.0, r"data\.deviation\[0\]"),
    (("data",), [], None),
    (("more",), 1, None),
    (("estimator",), "os.system", "'os.system'.*estimator"),
    (("estimator",), "SparseStepIC", "settings"),
    (("settings", "rule"), "max", r"'max'.*settings\.rule"),
    (("settings", "t_max"), 10**130, r"settings\.t_max"),
    (("n_iter",), True, None),
    (("question", "rows"), 10**400, r"question\.rows"),
    (("question", "named"), False, r"named is false.*question"),
    (("question", "one_hot", 0, "features", 0), "z", "features has 'z'"),
    (("question", "one_hot", 0, "categories"), ["A", "A"], r"categories.*one_hot\[0\]"),
    ((*T, "coef"), ..., r"coef.*targets\[0\]"),
    ((*T, "coef"), 5.0, r"targets\[0\]\.coef"),
    ((*T, "coef"), [1.0], "coef has 1 entries instead of"),
    ((*T, "alpha"), "5", r"targets\[0\]\.alpha"),
    ((*T, "how"), 5, None),
    ((*T, "index"), 101, "index is 101 on a path of 101"),
    ((*T, "kept", 0), -1, r"targets\[0\]\.kept\[0\]"),
    ((*T, "kept", -1), 10, r"targets\[0\]\.kept names a column"),
    ((*T, "kept", 0), 9, "kept is not ascending"),
    ((*T, "level"), 95.0, None),
    ((*T, "name"), "z", r"question\.target"),
    ((*T, "standard_error", 0), -1.0, r"standard_error\[0\]"),
    ((*T, "low", 0), None, r"interval of variable 0.*targets\[0\]"),
    ((*T, "path", "rss", 3), "x", r"path\.rss\[3\]"),
    ((*T, "path", "rss", 0), ..., "rss has 100 entries instead of 101"),
    ((*T, "path", "alphas", 0), 1.0, "alphas do not fall"),
    ((*T, "path", "alphas", -1), -1.0, r"path\.alphas\[100\]"),
    ((*T, "path", "n_nonzero", 0), 4, r"n_nonzero\[0\]"),
    ((*T, "path", "by_size"), True, None),
    ((*T, "cv"), 5, None),
    ((*T, "cv", "mse", 3), [1.0], r"mse\[3\] has 1 entries"),
    ((*T, "cv", "mean", 0), -1.0, r"cv\.mean\[0\]"),
    ((*T, "cv", "se", 0), -1.0, r"cv\.se\[0\]"),
    ((*T, "cv", "of_choice"), -1.0, None),
    ((*T, "cv", "alpha_min"), 4.0, None),
    (("notes",), note("x"), r"kind is 'x'.*notes\[0\]"),
    (("notes",), note("constant"), r"columns.*notes\[0\]"),
    (("notes",), note("constant", columns=[1], x=1), "unknown.*`x`"),
    (("notes",), note("constant", columns=[10]), r"notes\[0\].*not there"),
    (("notes",), note("nothing kept", target=1), r"notes\[0\].*not there"),
    (("notes",), note("few rows", target=0, columns=[1], rows=[]), r"lengths.*notes\[0\]"),
]


def assert_refused(path, text, message):
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(ModelFileError, match=message) as refused:
        load_model(path)
    assert str(refused.value).startswith(f"{path} ")
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("case", TEXTS)
def test_what_is_no_model_is_refused(file, tmp_path, case):
    content, message = TEXTS[case]
    assert_refused(tmp_path / "wrong.json", content(file.read_text()), message)


@pytest.mark.parametrize(("keys", "to", "message"), FIELDS)
def test_a_model_is_refused_by_the_name_of_the_field(file, tmp_path, keys, to, message):
    text = json.dumps(changed(read_document(file), *keys, to=to))
    assert_refused(tmp_path / "wrong.json", text, message or keys[-1])


def test_of_a_pipeline_or_a_search_the_model_in_it_is_asked_for(tmp_path):
    pipe = make_pipeline(StandardScaler(), SparseStep()).fit(X, Y)
    search = GridSearchCV(SparseStep(), {"alpha": [1.0]}, cv=2).fit(X, Y)
    both = GridSearchCV(pipe, {"sparsestep__alpha": [1.0]}, cv=2).fit(X, Y)
    for holder, code in [
        (pipe, r"Pipeline; give pipe\[-1\], the model in it"),
        (search, "GridSearchCV; give search.best_estimator_, the model in it"),
        (both, r"GridSearchCV; give search.best_estimator_\[-1\], the model in it"),
        (LinearRegression(), "LinearRegression.$"),
    ]:
        for write in (save_model, ss.write_report):
            with pytest.raises(TypeError, match=f"can be saved, not {code}"):
                write(holder, tmp_path / "file")
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("deviation", [0.0, 5e-324])
def test_altered_numbers_are_no_reason_not_to_predict_or_summarize(file, deviation):
    document = changed(read_document(file), "data", "deviation", 2, to=deviation)
    with pytest.warns(FarRowsWarning, match="'bmi'"):
        estimator_of(document).predict(X)
    document = changed(document, *T, "standard_error", 0, to=1e308)
    assert "inf" in str(estimator_of(document).summary())


def test_what_cannot_be_saved_leaves_no_file(models, tmp_path):
    with pytest.raises(ValueError, match="not fitted"):
        save_model(SparseStep(), tmp_path / "m.json")
    with pytest.raises(ValueError, match="has 1 target; target has 2 names"):
        save_model(models["cv"], tmp_path / "m.json", target=["a", "b"])
    with pytest.raises(FileNotFoundError, match=r"The folder .*none.* does not exist"):
        save_model(models["cv"], tmp_path / "none" / "m.json")
    with pytest.raises(FileNotFoundError):
        load_model(tmp_path / "none.json")
    assert os.listdir(tmp_path) == []
