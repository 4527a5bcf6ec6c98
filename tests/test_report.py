"""The report: what it says, that it is one file, that names are text, that it is deterministic."""

import base64
import functools
import hashlib
import itertools
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.datasets import load_diabetes
from sklearn.linear_model import LinearRegression

import report_documents as documents
from html_page import Page
from sparsestep import SparseStep, SparseStepCV, read_moments, sparsestep_path
from sparsestep.display.axes import step_corners, without_zeros
from sparsestep.model.document import ModelFileError, checksum, sealed
from sparsestep.model.file import document_of, estimator_of, read_document, write_document
from sparsestep.report import render_report, write_report
from sparsestep.report.numbers import fixed, number, short, sized_by
from sparsestep.report.pictures import ValueAxis, alpha_axis, path_picture, svg_path
from sparsestep.words import printable


def table_of(html, name):
    """The texts of the cells of a table's body."""
    body = html.split(f'id="{name}"')[1].split("<tbody>")[1].split("</tbody>")[0]
    page = Page(f"<table>{body}</table>")
    cells, texts = [], []
    for e in page.elements:
        if e["tag"] == "tr":
            texts = []
            cells.append(texts)
        if e["tag"] in ("th", "td"):
            texts.append(e["text"].strip())
    return cells


def as_number(text):
    text = text.replace("\N{MINUS SIGN}", "-").replace(",", "")
    text = re.sub(r"^(-?)10([⁻⁰¹²³⁴⁵⁶⁷⁸⁹]+)$", r"\g<1>1×10\2", text)  # noqa: RUF001
    return float(re.sub(r" ?× ?10(\S+)", lambda found: f"e{unraised(found[1])}", text))  # noqa: RUF001


def unraised(text):
    return text.translate(str.maketrans("⁻⁰¹²³⁴⁵⁶⁷⁸⁹", "-0123456789"))


@functools.cache
def html_of(kind):
    return render_report(kind())


@functools.cache
def page_of(kind):
    return Page(html_of(kind))


every_kind = pytest.mark.parametrize("kind", documents.KINDS, ids=lambda kind: kind.__name__)


# --- the file -------------------------------------------------------------------------------------


@every_kind
def test_the_page_is_well_formed_and_its_references_exist(kind):
    page = page_of(kind)
    ids = [e["id"] for e in page.elements if "id" in e]
    assert len(ids) == len(set(ids))
    for e in page.elements:
        for name in ("aria-labelledby", "aria-describedby", "for", "data-filter", "data-unfold"):
            assert set(e.get(name, "").split()) <= set(ids)
        if e.get("href", "").startswith("#"):
            assert e["href"][1:] in ids


@every_kind
def test_the_page_loads_nothing_and_runs_only_its_own_script(kind):
    html, page = html_of(kind), page_of(kind)
    for e in page.elements:
        assert not any(name in ("src", "srcset", "style") or name[:2] == "on" for name in e)
    assert [e["href"] for e in page.all("link")] == ["data:,"]
    assert "url(" not in html and "@import" not in html
    outside = {e["href"] for e in page.all("a") if not e["href"].startswith("#")}
    assert outside == {"https://arxiv.org/abs/1701.06967"}

    def allowed(element):
        digest = hashlib.sha256(element["text"].encode()).digest()
        return f"'sha256-{base64.b64encode(digest).decode()}'"

    policy = page.one("meta", **{"http-equiv": "Content-Security-Policy"})["content"]
    rules = dict(rule.split(" ", 1) for rule in policy.split("; "))
    [script] = [e for e in page.all("script") if e.get("type") != "application/json"]
    assert rules["default-src"] == "'none'"
    assert rules["script-src"] == allowed(script)
    assert rules["style-src"] == allowed(page.one("style"))


@pytest.mark.parametrize(("m", "k", "most"), [(8, 3, 60_000), (100, 12, 200_000)])
def test_the_file_is_small(m, k, most):
    assert len(render_report(documents.by_cv(400, m, k)).encode()) < most


def test_five_hundred_variables_are_still_one_small_file():
    document, html = documents.of_many_variables(), html_of(documents.of_many_variables)
    assert len(html.encode()) < 600_000
    page = Page(html)
    assert len([e for e in page.all("path") if "curve" not in e["class"]]) <= 201
    assert "not drawn" in page.text
    # The table is folded by the script; all rows are there without it.
    assert len(table_of(html, "table-0")) == len(document["targets"][0]["kept"])
    assert page.all("input", type="search")


@every_kind
def test_the_same_document_gives_the_same_page(kind):
    assert html_of(kind) == render_report(json.loads(json.dumps(kind())))


def test_a_model_file_gives_the_same_page_in_any_process(tmp_path):
    document = documents.with_warnings()
    write_document(document, tmp_path / "model.json")
    program = (
        "import sys; from sparsestep.model.file import read_document; "
        "from sparsestep.report import write_report; "
        "write_report(read_document(sys.argv[1]), sys.argv[2])"
    )
    for seed in ("1", "2"):
        subprocess.run(
            [sys.executable, "-c", program, tmp_path / "model.json", tmp_path / f"{seed}.html"],
            check=True,
            env={**os.environ, "PYTHONHASHSEED": seed, "LC_ALL": "C"},
        )
        assert (tmp_path / f"{seed}.html").read_bytes() == render_report(document).encode()


def test_writing_replaces_a_file_and_leaves_nothing_else(tmp_path):
    file = tmp_path / "report.html"
    file.write_text("old")
    write_report(documents.by_cv(), file)
    assert file.read_text(encoding="utf-8") == render_report(documents.by_cv())
    assert os.listdir(tmp_path) == ["report.html"]


def test_a_fitted_model_has_the_page_of_its_document(tmp_path):
    X = np.random.default_rng(0).standard_normal((60, 4))
    model = SparseStepCV(cv=5).fit(X, X[:, 1])
    write_report(model, tmp_path / "report.html", target="income", source="a survey")
    document = document_of(model, target="income", source="a survey")
    assert (tmp_path / "report.html").read_text(encoding="utf-8") == render_report(document)
    with pytest.raises(ValueError, match="its own target and source"):
        render_report(document, target="income")
    with pytest.raises(TypeError, match="not LinearRegression"):
        render_report(LinearRegression().fit(X, X[:, 1]))


def test_what_fails_leaves_the_old_file(tmp_path, monkeypatch):
    file = tmp_path / "report.html"
    file.write_text("old")

    def full(*args):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("sparsestep.whole_file.os.replace", full)
    with pytest.raises(OSError, match="No space"):
        write_report(documents.by_cv(), file)
    assert os.listdir(tmp_path) == ["report.html"]
    assert file.read_text() == "old"


def test_a_folder_that_is_missing_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"The folder .*nowhere for the report"):
        write_report(documents.by_cv(), tmp_path / "nowhere" / "report.html")


# --- names are text -------------------------------------------------------------------------------


def test_hostile_names_are_text():
    html = html_of(documents.with_hostile_names)
    page = Page(html)
    assert [e.get("type") for e in page.all("script")] == ["application/json", None]
    assert not page.all("img") and not page.all("b")
    assert sorted(page.data()["names"]) == sorted(documents.HOSTILE)
    assert sorted(row[0] for row in table_of(html, "table-0")) == sorted(documents.HOSTILE)
    assert page.one("h1")["text"] == "What explains <script>alert('target')</script>"
    assert "<script>alert('source')</script>.csv" in page.text
    labels = [e["text"] for e in page.all("text") if "1)</script>" in e["text"]]
    assert labels == ["<script>ale…1)</script>"]
    raw = re.search(r'<script type="application/json"[^>]*>(.*?)</script>', html, re.S)[1]
    assert not set(raw) & set("<>&\u2028\u2029")


@given(st.lists(st.text(min_size=1), min_size=8, max_size=8, unique=True))
def test_any_name_is_text(names):
    document = json.loads(json.dumps(documents.by_cv()))
    document["question"]["features"] = names
    page = Page(render_report(sealed(document)))
    kept = [printable(names[j]) for j in document["targets"][0]["kept"]]
    assert sorted(page.data()["names"][: len(kept)]) == sorted(kept)
    assert len(page.all("script")) == 2


def test_characters_that_turn_or_hide_text_are_replaced(tmp_path):
    document = json.loads(json.dumps(documents.by_cv()))
    document["question"]["features"][0] = "a\u202eb\x00c\x1bd\ud800e\u2028f\u200cg"
    document["question"]["source"] = "\u202egpj.exe"
    write_report(sealed(document), tmp_path / "r.html")
    html = (tmp_path / "r.html").read_text(encoding="utf-8")
    assert "a\ufffdb\ufffdc\ufffdd\ufffde\ufffdf\u200cg" in html and "\ufffdgpj.exe" in html
    assert set("\u202e\x00\x1b\u2028").isdisjoint(html)


def altered(*keys, to):
    """A document with one field replaced."""
    document = json.loads(json.dumps(documents.by_cv()))
    place = document
    for key in keys[:-1]:
        place = place[key]
    place[keys[-1]] = to
    return document


def test_an_altered_document_is_refused_by_the_name_of_the_field():
    document = altered("targets", 0, "cv", "mean", 0, to=-1.0)
    document["checksum"] = checksum(document)
    with pytest.raises(ModelFileError, match=r"The document is damaged: .*cv\.mean\[0\]"):
        render_report(document)


@pytest.mark.parametrize(
    ("keys", "to"),
    [
        (("targets", 0, "coef", 0), 1e308),
        (("targets", 0, "path", "coefs", 50, 0), 1e308),
        (("data", "target_deviation", 0), 1e308),
        (("data", "weight_sum"), 5e-324),
    ],
)
def test_numbers_beyond_what_can_be_drawn_are_refused_in_a_sentence(keys, to):
    document = sealed(altered(*keys, to=to))
    with pytest.raises(ValueError, match="can be drawn; rescale"):
        render_report(document)
    assert "variables kept" in str(estimator_of(document).summary())


# --- what it says ---------------------------------------------------------------------------------


@every_kind
def test_the_table_shows_the_model(kind):
    document, html = kind(), html_of(kind)
    for t, target in enumerate(document["targets"]):
        if not target["kept"]:
            assert f'id="table-{t}"' not in html
            continue
        rows = {row[0]: row[1:] for row in table_of(html, f"table-{t}")}
        names = document["question"]["features"]
        parts = zip(
            *(target[part] for part in ("kept", "coef", "standard_error", "low", "high")),
            strict=True,
        )
        # Columns without any number are left out.
        n_columns = 1 if set(target["standard_error"]) == {None} else 4
        for j, *numbers in parts:
            name = next(row for row in rows if row.startswith(names[j].strip()))
            cells = rows.pop(name)
            for value, text in zip(numbers[:n_columns], cells, strict=False):
                shown = as_number(text)
                assert abs(shown - value) <= 0.006 * (numbers[1] or abs(value))
            if target["inclusion"] is not None:
                assert float(cells[2]) == pytest.approx(target["inclusion"][j], abs=0.006)
            assert len(cells) == n_columns + 2 + (target["inclusion"] is not None)
        assert rows == {}


def test_the_largest_effect_comes_first():
    document = documents.by_cv()
    effects = [abs(as_number(row[5])) for row in table_of(render_report(document), "table-0")]
    assert effects == sorted(effects, reverse=True)
    deviation, target = document["data"]["deviation"], document["targets"][0]
    largest = max(
        abs(coef) * deviation[j] for j, coef in zip(target["kept"], target["coef"], strict=True)
    )
    assert effects[0] == pytest.approx(largest, rel=5e-3)


def test_intervals_are_drawn_where_they_are():
    document, page = documents.by_cv(), page_of(documents.by_cv)
    target, deviation = document["targets"][0], document["data"]["deviation"]
    dots = [e for e in page.all("circle") if e.get("r") == "4"]
    whiskers = page.all("line", **{"class": "whisker"})
    zero = float(page.all("line", **{"class": "zero"})[0]["x1"][:-1])
    # Places are linear in the effect: one scale explains all of them.
    effects = sorted(
        ((coef * deviation[j], low * deviation[j], high * deviation[j])
         for j, coef, low, high in zip(target["kept"], target["coef"], target["low"],
                                       target["high"], strict=True)),
        key=lambda row: -abs(row[0]),
    )  # fmt: skip
    scale = (float(dots[0]["cx"][:-1]) - zero) / effects[0][0]
    for (effect, low, high), dot, whisker in zip(effects, dots, whiskers, strict=True):
        assert float(dot["cx"][:-1]) == pytest.approx(zero + scale * effect, abs=0.02)
        assert float(whisker["x1"][:-1]) == pytest.approx(zero + scale * low, abs=0.02)
        assert float(whisker["x2"][:-1]) == pytest.approx(zero + scale * high, abs=0.02)
        assert 0 <= float(whisker["x1"][:-1]) <= float(whisker["x2"][:-1]) <= 100


@every_kind
def test_the_data_of_the_slider_are_the_path(kind):
    document, page = kind(), page_of(kind)
    names = document["question"]["features"]
    for t, target in enumerate(document["targets"]):
        if target["path"] is None:
            assert not page.all("input", type="range")
            continue
        data, path = page.data(t), target["path"]
        at = [data["alphas"].index(alpha) for alpha in path["alphas"]]
        assert len(data["alphas"]) - len(at) == (target["index"] is None)
        for i, kept, coefs in zip(at, path["kept"], path["coefs"], strict=True):
            ranks, values = data["models"][data["which"][i]]
            model = dict(zip((data["names"][r] for r in ranks), values, strict=True))
            assert model == pytest.approx(
                {names[j]: b for j, b in zip(kept, coefs, strict=True)}, rel=1e-5
            )
        chosen = data["chosen"]
        assert data["alphas"][chosen] == target["alpha"]
        slider = page.one("input", id=f"slider-{t}")
        assert (slider["min"], slider["max"]) == ("0", str(len(data["alphas"]) - 1))
        assert slider["value"] == str(chosen)
        if target["inclusion"] is not None:
            assert target["alpha"] == target["cv"]["alpha_min"]
            continue  # an average is none of the path's models
        ranks, values = data["models"][data["which"][chosen]]
        assert values == pytest.approx(
            [dict(zip(target["kept"], target["coef"], strict=True))[names.index(data["names"][r])]
             for r in ranks], rel=1e-5,
        )  # fmt: skip
        assert data["r2"][chosen] == pytest.approx(target["r2"], abs=1e-5)


def test_without_the_script_the_chosen_model_is_shown():
    document = documents.by_cv()
    target = document["targets"][0]
    page = Page(render_report(document))
    keys = {e["data-key"]: e["text"] for e in page.all("dd") if "data-key" in e}
    assert keys["alpha"] == number(target["alpha"])
    assert keys["count"] == str(len(target["kept"]))
    value, spread = keys["value"].split(" ± ")
    index = target["index"]
    assert as_number(value) == pytest.approx(target["cv"]["mean"][index], rel=1e-3)
    assert as_number(spread) == pytest.approx(target["cv"]["se"][index], rel=5e-3)
    chosen = page.all("line", **{"class": "chosen"})
    share = 100 * (np.log(target["path"]["alphas"][0]) - np.log(target["alpha"]))
    share /= np.log(target["path"]["alphas"][0]) - np.log(target["path"]["alphas"][-1])
    assert [float(line["x1"][:-1]) for line in chosen] == pytest.approx([share] * 2, abs=1e-3)


def test_the_curve_marks_the_rules():
    document, page = documents.by_paired(), page_of(documents.by_paired)
    target, data = document["targets"][0], page.data()
    for kind in ("min", "paired", "1se"):
        mark = page.one("circle", **{"class": f"stop-{kind}"})
        index = target["path"]["alphas"].index(target["cv"][f"alpha_{kind}"])
        assert float(mark["cx"][:-1]) == pytest.approx(data["x"][index], abs=1e-3)
        assert float(mark["cy"]) == data["heights"][index]
    assert data["heights"].index(max(data["heights"])) == target["path"]["alphas"].index(
        target["cv"]["alpha_min"]
    )
    assert page.all("path", **{"class": "band"})
    buttons = [e["text"] for e in page.all("button") if "data-go" in e]
    assert buttons == ["Back to the chosen model", "Smallest error", "One standard error"]


def runs_of(d):
    """The corners of each run of an SVG path."""
    for run in d.removesuffix("Z").split("M")[1:]:
        yield np.reshape([float(v) for v in run.split()], (-1, 2))


def test_the_inner_band_of_the_paired_choice_reaches_the_smallest_error():
    document, page = documents.by_paired(), page_of(documents.by_paired)
    target, data = document["targets"][0], page.data()
    cv, alphas = target["cv"], target["path"]["alphas"]
    band = page.one("path", **{"class": "paired"})["d"]
    line = page.one("line", **{"class": "least"})
    heights = np.array(data["heights"])
    # Heights are linear in the errors: one scale explains all of them.
    slope, offset = np.polyfit(cv["mean"], heights, 1)
    assert heights == pytest.approx(slope * np.array(cv["mean"]) + offset, abs=0.06)
    best, chosen = alphas.index(cv["alpha_min"]), alphas.index(cv["alpha_paired"])
    assert chosen == target["index"]
    assert float(line["y1"]) == float(line["y2"]) == heights[best]
    ends = [float(line[end][:-1]) for end in ("x1", "x2")]
    assert ends == pytest.approx([data["x"][chosen], data["x"][best]], abs=1e-3)
    half = 0.5 * np.array(cv["paired_se"])
    assert half[best] == 0.0
    for i, place in ((0, 0.0), (-1, 1000.0)):
        corners = sorted({y for run in runs_of(band) for x, y in run if x == place})
        expected = slope * (cv["mean"][i] + half[i] * np.array([1, -1])) + offset
        assert [corners[0], corners[-1]] == pytest.approx(expected, abs=0.1)
    reaching = [i for i in range(len(alphas)) if cv["mean"][i] - half[i] <= cv["mean"][best]]
    sizes = target["path"]["n_nonzero"]
    assert sizes[chosen] == min(sizes[i] for i in reaching)


@pytest.mark.parametrize("kind", [documents.by_average, documents.by_shrunk_average])
def test_an_average_shows_the_weight_of_every_variable(kind):
    document = kind()
    target, names = document["targets"][0], document["question"]["features"]
    html = render_report(document)
    page = Page(html)
    lengths = [float(e["width"][:-1]) for e in page.all("rect", **{"class": "full"})]
    shown = [row[0] for row in table_of(html, "table-0")]
    listed = [e["text"].split() for e in page.all("li") if "details" in e["inside"]]
    weights = dict(zip(names, target["inclusion"], strict=True))
    assert len(listed) == len(names) - len(shown) > 0
    in_order = [*shown, *(name for name, _ in listed)]
    assert sorted(in_order) == sorted(names)
    assert lengths == pytest.approx([100 * weights[name] for name in in_order], abs=0.06)
    for name, text in listed:
        assert float(text) == pytest.approx(weights[name], abs=0.006) and weights[name] <= 0.5
    assert not page.all("line", **{"class": "whisker"})
    heads = [e["text"] for e in page.all("th") if e.get("scope") == "col"]
    assert "weight" in heads and "std. error" not in heads


def test_weights_of_next_to_nothing_are_left_out():
    document = json.loads(json.dumps(documents.by_average()))
    target, names = document["targets"][0], document["question"]["features"]
    [left] = set(range(len(names))) - set(target["kept"])
    target["inclusion"][left] = 1e-9
    page = Page(render_report(sealed(document)))
    [item] = [e["text"] for e in page.all("li") if "details" in e["inside"]]
    assert item == names[left]
    assert "less than 0.005 of the weight" in page.text


def test_the_error_is_that_of_the_rule():
    for kind in (documents.by_paired, documents.by_average, documents.by_shrunk_average):
        document = kind()
        cv = document["targets"][0]["cv"]
        [shown] = re.findall(r"typically off by ([\d.,]+),", Page(render_report(document)).text)
        assert as_number(shown) == pytest.approx(np.sqrt(cv["of_choice"]), rel=6e-3)


def of_the_old_schema():
    document = read_document(Path(__file__).with_name("model_of_schema_1.json"))
    assert document["schema"] == 1
    return document


@pytest.mark.parametrize(
    ("kind", "drawn", "not_drawn"),
    [
        (documents.by_criterion, "curve", "band paired stop-1se"),
        (documents.of_fixed_alpha, "", "curve band lines plot"),
        (of_the_old_schema, "curve band", "paired stop-paired"),
    ],
)
def test_a_curve_has_the_bands_and_marks_of_its_choice(kind, drawn, not_drawn):
    classes = {name for e in page_of(kind).elements for name in e.get("class", "").split()}
    assert set(drawn.split()) <= classes and classes.isdisjoint(not_drawn.split())


@pytest.mark.parametrize(
    ("kind", "said", "not_said"),
    [
        (documents.by_one_split, "one hold-out split", "1-fold|one standard error|nan"),
        (of_the_old_schema, "smallest error", "near the smallest error"),
        (documents.by_criterion, "BIC of each model", None),
        (documents.of_fixed_alpha, "given beforehand", None),
        (documents.of_fixed_size, "2 variables, the best-fitting set that swaps found", "searched"),
        (documents.with_nothing_kept, "None of the 8 candidate variables is kept", None),
        (documents.with_nothing_kept, "Does anything explain noise?", None),
        (documents.with_categories, "4 categories as 3 indicators", None),
        (documents.with_warnings, "120, after 7 with a missing value were left out", None),
        (documents.with_warnings, "random folds, seed 3", None),
        (documents.by_cv, "as if it had been chosen beforehand", "Before you rely on this"),
        (documents.by_cv, "least squares on these variables", "Shrinkage|averag"),
        (documents.by_cv, "mostly noise that all alphas share", "by at most half the standard"),
        (documents.by_paired, "at most half the standard error of the difference", "mostly noise"),
        (documents.by_paired, "5-fold cross-validation, with the choice of alpha", "averag"),
        (documents.by_average, "5-fold cross-validation, with the choice of weights", "shrunk"),
        (documents.by_average, "Coefficients are averages over the models", "chosen model"),
        (documents.by_average, "as the coefficients are averages", "intervals hold|least squares"),
        (documents.by_average, "Back to the model of most weight", "lets these in|a larger pen"),
        (documents.by_shrunk_average, "each by ridge regression on its variables", "not shrunk"),
        (documents.by_shrunk_average, "Shrinkageridge regression", "intervals hold"),
        (documents.of_two_shrunk, "Shrinkagefirst: ridge regression", "averag"),
        (documents.of_two_shrunk, "second: none, as it does not lower the", None),
        (documents.of_perfect_fit, "as no degrees of freedom are left", "intervals hold"),
    ],
)
def test_what_the_page_says(kind, said, not_said):
    text = page_of(kind).text
    assert said in text
    assert not_said is None or not re.search(not_said, text, re.IGNORECASE)


def test_a_path_of_sizes_is_drawn_over_size():
    """Of each size one model; of that of the chosen model this one, though swaps found another."""
    X, y = load_diabetes(return_X_y=True, as_frame=True)
    path = sparsestep_path(X, y, alphas="sizes")
    model = SparseStep(n_nonzero=4).fit(X, y)
    document = document_of(model, model_path=path)
    assert document["targets"][0]["index"] is None
    data = Page(render_report(document)).data()
    sizes = [len(data["models"][i][0]) for i in data["which"]]
    assert sizes == sorted(set(path.n_nonzero.tolist()))
    np.testing.assert_allclose(data["x"], 100 * np.array(sizes) / max(sizes), atol=1e-3)
    assert sizes[data["chosen"]] == 4
    names = {data["names"][rank] for rank in data["models"][data["which"][data["chosen"]]][0]}
    assert names == set(X.columns[model.coef_ != 0])


def test_a_given_alpha_stands_between_those_of_a_path():
    data = page_of(documents.of_given_alpha_between).data()
    assert data["alphas"] == [1000.0, 60.0, 10.0, 0.0]
    assert data["chosen"] == 1
    assert data["x"][0] == 0.0 and data["x"][-1] == 100.0


def test_notes_are_those_of_the_summary():
    document, page = documents.with_warnings(), page_of(documents.with_warnings)
    kinds = {note["kind"] for note in document["notes"]}
    assert kinds == {"alpha at the end", "collinear", "rows dropped"}
    shown = [e["text"] for e in page.all("li")]
    assert set(estimator_of(document).summary().notes) <= set(shown)
    pairs = [e["text"] for e in page.all("td") if "details" in e["inside"]]
    assert {"twin", "other twin"} <= set(pairs)


def test_a_variable_that_rests_on_one_row_is_marked():
    document = documents.of_wide_rows()
    shown = {row[0] for row in table_of(render_report(document), "table-0")}
    [marked] = [name for name in shown if "rests on about 1 row" in name]
    assert marked.startswith("kind=One_Story_1941_and_Newer_All_Styles")


def test_of_two_targets_one_may_be_shrunk():
    html = html_of(documents.of_two_shrunk)
    first, second = html.split('<section id="target-1"')
    assert "Coefficients are shrunk" in first and "as the coefficients are shrunk" in first
    assert 'class="whisker"' not in first and "std. error" not in first
    assert "Coefficients are not shrunk" in second and "intervals hold" in second
    assert 'class="whisker"' in second and "std. error" in second


def test_variables_that_depend_on_each_other_have_no_intervals():
    rng = np.random.default_rng(0)
    floor = rng.integers(0, 3, 50)
    X = (floor[:, np.newaxis] == np.arange(3)).astype(float)
    text = Page(render_report(SparseStep(alpha=0.0).fit(X, floor + rng.normal(size=50)))).text
    assert "no standard errors and intervals, as these variables depend on each other" in text


def test_an_average_that_keeps_nothing_says_why():
    rng = np.random.default_rng(1)
    model = SparseStepCV(10, cv=5, rule="average").fit(
        rng.normal(size=(60, 3)), rng.normal(size=60)
    )
    assert not model.coef_.any()
    assert "no variable is in models that have more than half" in Page(render_report(model)).text


def test_an_average_over_one_split_has_no_error_of_its_own():
    model = SparseStepCV(10, cv=[(range(90), range(90, 120))], rule="average")
    text = Page(render_report(model.fit(*documents.rows()))).text
    assert "one hold-out split, of the model of most weight" in text


def test_each_target_has_its_part():
    document, page = documents.of_two_targets(), page_of(documents.of_two_targets)
    assert [e["text"] for e in page.all("a") if e["href"].startswith("#target")] == [
        "first",
        "second",
    ]
    assert len(page.all("input", type="range")) == 2
    assert page.data(1)["alphas"] == document["targets"][1]["path"]["alphas"]


def test_an_indicator_names_what_it_is_compared_with():
    html = html_of(documents.with_categories)
    notes = {row[0] for row in table_of(html, "table-0")}
    reference = "compared with ground, cellar"
    assert notes == {"size", f"floor=middle{reference}", f"floor=top{reference}"}


def test_two_categories_are_one_indicator():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"lift": rng.choice(["no", "yes"], 50), "size": rng.normal(size=50)})
    frame["price"] = frame["size"] + rng.normal(size=50)
    moments = read_moments(frame, target="price", categories={"lift": ["no", "yes"]})
    html = render_report(SparseStep(alpha=0.1).fit_moments(moments))
    assert "2 categories as 1 indicator" in Page(html).text
    assert "1 indicators" not in Page(html).text


def test_how_it_was_made_and_how_to_cite_it():
    document = documents.by_cv()
    text = Page(render_report(document)).text
    assert document["checksum"] in text
    assert document["version"] in text
    assert "arXiv:1701.06967" in text and "@article{" in text
    for name in document["settings"]:
        assert f"{name}=" in text


def test_what_is_not_kept_is_listed_as_it_enters():
    document = documents.by_cv()
    target, names = document["targets"][0], document["question"]["features"]
    page = Page(render_report(document))
    listed = [e["text"].split() for e in page.all("li") if "details" in e["inside"]]
    first = {}
    for alpha, kept in zip(target["path"]["alphas"], target["path"]["kept"], strict=True):
        for j in kept:
            if alpha < target["alpha"]:
                first.setdefault(names[j], alpha)
    missing = [name for j, name in enumerate(names) if j not in target["kept"]]
    assert sorted(name for name, _ in listed) == sorted(missing)
    for name, alpha in listed:
        assert as_number(alpha) == pytest.approx(first[name], rel=1e-3)
    assert [first[name] for name, _ in listed] == sorted(
        (first[name] for name in missing), reverse=True
    )


@pytest.mark.parametrize(
    ("alphas", "note", "alpha"),
    [
        ([100.0, 10.0], "Only a larger penalty keeps these", "100.0"),
        ([100.0, 10.0, 1e-9], "A smaller penalty lets these in", "10⁻⁹"),
    ],
)
def test_what_left_is_listed_where_it_comes_back(alphas, note, alpha):
    rng = np.random.default_rng(3)
    parts = rng.normal(size=(200, 2))
    # At a large penalty the noisy sum stands for both parts, at a smaller one they replace it.
    X = np.column_stack([parts, parts.sum(axis=1) + 0.3 * rng.normal(size=200)])
    y = parts.sum(axis=1) + 0.1 * rng.normal(size=200)
    model = SparseStepCV(alphas, cv=5, rule="1se").fit(X, y)
    assert model.alpha_ == 10.0 and list(np.flatnonzero(model.coef_)) == [0, 1]
    page = Page(render_report(model))
    notes = [e["text"] for e in page.all("p") if "details" in e["inside"]]
    assert [text.startswith(note) for text in notes] == [True]
    [item] = [e["text"].split() for e in page.all("li") if "details" in e["inside"]]
    assert (item[0], item[-1]) == ("x2", alpha)


def test_r2_of_no_variables_is_zero():
    rng = np.random.default_rng(0)
    for seed in range(5):
        X, y = rng.normal(size=(40, 3)), 1e3 + rng.normal(size=40)
        text = render_report(SparseStepCV(6, cv=4, rule="1se").fit(X, y))
        assert "10⁻¹⁶" not in text, seed


# --- for everyone ---------------------------------------------------------------------------------


def luminance(colour):
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
    return float(np.dot([0.2126, 0.7152, 0.0722], linear))


def contrast(one, other):
    light, dark = sorted([luminance(one), luminance(other)], reverse=True)
    return (light + 0.05) / (dark + 0.05)


def themes():
    style = page_of(documents.by_cv).one("style")["text"]
    both = re.findall(r"--([\w-]+): light-dark\((#\w{6}), (#\w{6})\);", style)
    return {theme: {c[0]: c[k] for c in both} for k, theme in ((1, "light"), (2, "dark"))}


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_colours_can_be_read(theme):
    colours = themes()[theme]
    for text in ("ink", "soft", "accent", *(f"c{n}" for n in range(7))):
        assert contrast(colours[text], colours["page"]) >= 4.5
    for text in ("ink", "soft"):
        assert contrast(colours[text], colours["panel"]) >= 4.5
        assert contrast(colours[text], colours["warn"]) >= 4.5
    assert contrast(colours["accent-ink"], colours["accent"]) >= 4.5
    for line in ("axis", "pale", "warn-edge"):
        # What must be seen but not read.
        assert contrast(colours[line], colours["page"]) >= 2.9


@every_kind
def test_pictures_and_tables_are_named(kind):
    page = page_of(kind)
    for svg in page.all("svg"):
        within = "svg" in svg.get("inside", [])
        assert svg.get("aria-hidden") == "true" or svg.get("role") == "img" or within
    for svg in page.all("svg", role="img"):
        assert svg["aria-labelledby"]
    for th in page.all("th"):
        assert th["scope"] in ("row", "col")
    for e in page.all("input"):
        assert e.get("aria-label") or any(label["for"] == e["id"] for label in page.all("label"))
    levels = [int(e["tag"][1]) for e in page.elements if re.fullmatch(r"h[1-6]", e["tag"])]
    assert levels[0] == 1 and levels.count(1) == 1
    assert all(after <= before + 1 for before, after in itertools.pairwise(levels))


# --- numbers and places ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "digits", "text"),
    [
        (0.0, 4, "0"),
        (None, 4, "\N{EN DASH}"),
        (float("nan"), 4, "\N{EN DASH}"),
        (1234567.8, 4, "1,234,568"),
        (72306.9, 4, "72,307"),
        (0.48013, 3, "0.480"),
        (9.9996, 4, "10.00"),
        (-0.00012345, 3, "\N{MINUS SIGN}0.000123"),
        (1234.5, 4, "1,235"),
        (1.5e-5, 2, "1.5 \N{MULTIPLICATION SIGN} 10⁻⁵"),
        (-12345678.0, 3, "\N{MINUS SIGN}1.23 \N{MULTIPLICATION SIGN} 10⁷"),
        (9999999.9, 4, "1.000 \N{MULTIPLICATION SIGN} 10⁷"),
    ],
)
def test_numbers_as_text(value, digits, text):
    assert number(value, digits) == text


@given(
    st.floats(allow_nan=False, allow_infinity=False).filter(lambda x: x == 0 or abs(x) > 1e-300),
    st.integers(2, 8),
)
def test_a_number_can_be_read_back(value, digits):
    assert as_number(number(value, digits)) == pytest.approx(value, rel=0.51 * 10.0 ** (1 - digits))


def test_an_error_decides_the_digits():
    assert sized_by(64.677, 603.079, 475.96, 730.19) == ["603.1", "476.0", "730.2"]
    assert sized_by(float("nan"), 603.079, float("nan")) == ["603.1", "\N{EN DASH}"]
    assert sized_by(1e-9, 2.0)[0] == "2.000000"
    assert fixed(-0.001, 2) == "0.00"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0"),
        (-20.0, "\N{MINUS SIGN}20"),
        (1e6, "10⁶"),
        (2e-5, "2\N{MULTIPLICATION SIGN}10⁻⁵"),
        (100000.0, "100,000"),
        (0.0005, "0.0005"),
    ],
)
def test_marks_are_short(value, text):
    assert short(value) == text


def height_at(d, x):
    """Where a path of steps is at x; None where it is cut."""
    for run in runs_of(d):
        for (begin, level), (end, after) in itertools.pairwise(run):
            assert begin == end or level == after
            if level == after and begin - 0.051 <= x <= end + 0.051:
                return level
    return None


def test_lines_pass_through_the_coefficients():
    rng = np.random.default_rng(5)
    x = np.sort(rng.uniform(0, 1000, 30))
    heights = np.round(np.repeat(rng.uniform(1, 300, 10), 3), 1)
    heights[np.repeat(rng.random(15) > 0.6, 2)] = 0.0
    corners, rows = step_corners(x, (x[1:] + x[:-1]) / 2, heights[np.newaxis])
    d = svg_path(corners, without_zeros(rows)[0])
    for place, height in zip(x, heights, strict=True):
        assert height_at(d, place) == (height or None)


def picture_of(effects, chosen):
    """The picture of some effects at three alphas."""
    names, n_nonzero = [f"v{j}" for j in range(len(effects))], np.count_nonzero(effects, axis=0)
    axis = alpha_axis(np.array([100.0, 10.0, 1.0]))
    return path_picture(axis, effects, n_nonzero, names, range(len(effects)), chosen)


def test_the_picture_of_a_path_is_cut_where_it_explodes():
    effects = np.array([[1.0, 1.0, 50.0], [0.0, 0.0, -60.0]])
    picture = picture_of(effects, chosen=1)
    assert picture["cut"] == "from \N{MINUS SIGN}60 to 50"
    assert -0.1 < picture["scale"].low < 0.0 and 1.0 < picture["scale"].high < 1.1
    assert picture_of(effects[:, [0, 1, 1]], chosen=1)["cut"] is None


def test_labels_stay_apart_and_inside():
    effects = np.tile(np.linspace(1.0, 1.001, 12)[:, np.newaxis], (1, 3))
    picture = picture_of(effects, chosen=0)
    heights = sorted(float(label["height"]) for label in picture["labels"])
    assert len(heights) == 12
    assert np.diff(heights).min() >= 14.9
    assert heights[0] >= 0 and heights[-1] <= picture["height"]


@pytest.mark.parametrize("span", [0.01, 0.5, 1.0, 2.0, 3.7, 8.0, 40.0])
def test_marks_of_alpha_are_few_and_where_they_say(span):
    alphas = np.geomspace(3e4, 3e4 * 10.0**-span, 101)
    marks = alpha_axis(alphas).marks
    assert 2 <= len(marks) <= 5
    for mark in marks:
        value = as_number(mark.text)
        share = (np.log10(alphas[0]) - np.log10(value)) / span
        assert float(mark.place[:-1]) == pytest.approx(100 * share, abs=0.01)


def test_alpha_zero_has_a_place():
    axis = alpha_axis(np.array([100.0, 10.0, 0.0]))
    assert axis.fractions == pytest.approx([0.0, 0.5, 1.0])
    assert axis.marks[-1] == ("100%", "0")
    assert alpha_axis(np.array([0.0])).fractions == pytest.approx([0.5])


@given(st.floats(-1e6, 1e6), st.floats(1e-6, 1e6), st.integers(3, 8))
def test_marks_of_values_are_round_and_inside(low, width, most):
    axis = ValueAxis(low, low + width, 100.0)
    ticks = axis.ticks(most)
    assert 1 <= len(ticks) <= most + 1
    assert all(axis.low - 1e-9 * abs(low) <= v <= axis.high + 1e-9 * abs(low) for v in ticks)


@pytest.mark.parametrize("document", [{}, {"format": "something else"}])
def test_a_dictionary_that_is_no_document_is_refused_in_words(document, tmp_path):
    with pytest.raises(ValueError, match="The document is not a model file of sparsestep"):
        write_report(document, tmp_path / "report.html")
    assert not list(tmp_path.iterdir())
