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

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.datasets import load_diabetes

from html_page import Page
from report_documents import HOSTILE, KINDS, changed, document, fitted, rows
from sparsestep import SparseStep, SparseStepCV, sparsestep_path
from sparsestep.display.axes import step_corners, without_zeros
from sparsestep.model.file import document_of, estimator_of, write_document
from sparsestep.report import render_report, write_report
from sparsestep.report.numbers import fixed, number, short, sized_by
from sparsestep.report.pictures import alpha_axis, path_picture, svg_path, value_axis
from sparsestep.words import printable


def as_number(text):
    text = text.replace("\N{MINUS SIGN}", "-").replace(",", "")
    text = re.sub(r"^(-?)10([⁻⁰¹²³⁴⁵⁶⁷⁸⁹]+)$", r"\g<1>1×10\2", text)  # noqa: RUF001
    text = re.sub(r" ?× ?10", "e", text)  # noqa: RUF001
    return float(text.translate(str.maketrans("⁻⁰¹²³⁴⁵⁶⁷⁸⁹", "-0123456789")))


def share(element, name):
    """A place that an attribute gives in percent."""
    return float(element[name].removesuffix("%"))


@functools.cache
def page_of(kind):
    return Page(render_report(document(kind)))


def shown(kind):
    """The page, the first target of its document, and the names of the features."""
    return page_of(kind), document(kind)["targets"][0], document(kind)["question"]["features"]


NEGATIVE = changed(document("by 1se"), "targets", 0, "cv", "mean", 0, to=-1.0)
every_kind = pytest.mark.parametrize("kind", KINDS)


# --- the file -------------------------------------------------------------------------------------


@every_kind
def test_references_exist_and_pictures_and_tables_are_named(kind):
    page = page_of(kind)
    ids = [e["id"] for e in page.elements if "id" in e]
    assert len(ids) == len(set(ids))
    for e in page.elements:
        for name in ("aria-labelledby", "aria-describedby", "for", "data-filter", "data-unfold"):
            assert set(e.get(name, "").split()) <= set(ids)
        if e.get("href", "").startswith("#"):
            assert e["href"][1:] in ids
    for svg in page.all("svg"):
        within = "svg" in svg.get("inside", [])
        assert svg.get("aria-hidden") == "true" or svg.get("role") == "img" or within
        assert svg.get("role") != "img" or svg["aria-labelledby"]
    for th in page.all("th"):
        assert th["scope"] in ("row", "col")
    for e in page.all("input"):
        assert e.get("aria-label") or any(label["for"] == e["id"] for label in page.all("label"))
    levels = [int(e["tag"][1]) for e in page.elements if re.fullmatch(r"h[1-6]", e["tag"])]
    assert levels[0] == 1 and levels.count(1) == 1
    assert all(after <= before + 1 for before, after in itertools.pairwise(levels))


@every_kind
def test_the_page_is_always_the_same_loads_nothing_and_runs_only_its_own_script(kind):
    page = page_of(kind)
    for e in page.elements:
        assert not any(name in ("src", "srcset", "style") or name[:2] == "on" for name in e)
    assert [e["href"] for e in page.all("link")] == ["data:,"]
    assert "url(" not in page.html and "@import" not in page.html
    assert page.html == render_report(json.loads(json.dumps(document(kind))))
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
    made = fitted(SparseStepCV(cv=5, rule="1se"), rows(400, m, k))
    assert len(render_report(made).encode()) < most


def test_five_hundred_variables_are_still_one_small_file():
    page, target, _ = shown("of many variables")
    assert len(page.html.encode()) < 600_000
    assert len([e for e in page.all("path") if "curve" not in e["class"]]) <= 201
    assert "not drawn" in page.text
    # The table is folded by the script; all rows are there without it.
    assert len(page.rows()) == len(target["kept"])
    assert page.all("input", type="search")


def test_a_model_file_gives_the_same_page_in_any_process(tmp_path):
    write_document(document("with warnings"), tmp_path / "model.json")
    program = (
        "import sys; from sparsestep.model.file import read_document; "
        "from sparsestep.report import write_report; "
        "write_report(read_document(sys.argv[1]), sys.argv[2])"
    )
    for seed in ("1", "2"):
        file = tmp_path / f"{seed}.html"
        subprocess.run(
            [sys.executable, "-c", program, tmp_path / "model.json", file],
            check=True,
            env={**os.environ, "PYTHONHASHSEED": seed, "LC_ALL": "C"},
        )
        assert file.read_bytes() == page_of("with warnings").html.encode()


def test_a_fitted_model_has_the_page_of_its_document(tmp_path):
    X = np.random.default_rng(0).standard_normal((60, 4))
    model = SparseStepCV(cv=5).fit(X, X[:, 1])
    about = {"target": "income", "source": "a survey"}
    write_report(model, tmp_path / "report.html", **about)
    html = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert html == render_report(document_of(model, **about))
    with pytest.raises(FileNotFoundError, match=r"The folder .*nowhere for the report"):
        write_report(model, tmp_path / "nowhere" / "report.html")


@pytest.mark.parametrize(
    ("made", "options", "match"),
    [
        ({}, {}, "The document is not a model file of sparsestep"),
        ({"format": "another"}, {}, "The document is not a model file of sparsestep"),
        (document("by 1se"), {"target": "income"}, "its own target and source"),
        (NEGATIVE, {}, r"The document is damaged: .*cv\.mean\[0\]"),
    ],
    ids=["nothing", "another format", "target given", "damaged"],
)
def test_what_is_no_document_leaves_no_file(made, options, match, tmp_path):
    with pytest.raises(ValueError, match=match):
        write_report(made, tmp_path / "report.html", **options)
    assert not list(tmp_path.iterdir())


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
    made = changed(document("by 1se"), *keys, to=to)
    with pytest.raises(ValueError, match="can be drawn; rescale"):
        render_report(made)
    assert "variables kept" in str(estimator_of(made).summary())


# --- names are text -------------------------------------------------------------------------------


def test_hostile_names_are_text():
    page = page_of("with hostile names")
    assert [e.get("type") for e in page.all("script")] == ["application/json", None]
    assert not page.all("img") and not page.all("b")
    assert sorted(page.data()["names"]) == sorted(HOSTILE)
    assert sorted(row[0] for row in page.rows()) == sorted(HOSTILE)
    assert page.one("h1")["text"] == "What explains <script>alert('target')</script>"
    assert "<script>alert('source')</script>.csv" in page.text
    labels = [e["text"] for e in page.all("text") if "1)</script>" in e["text"]]
    assert labels == ["<script>ale…1)</script>"]
    raw = re.search(r'<script type="application/json"[^>]*>(.*?)</script>', page.html, re.S)[1]
    assert not set(raw) & set("<>&\u2028\u2029")


@given(st.lists(st.text(min_size=1), min_size=8, max_size=8, unique=True))
def test_any_name_is_text(names):
    made = changed(document("by 1se"), "question", "features", to=names)
    page = Page(render_report(made))
    kept = [printable(names[j]) for j in made["targets"][0]["kept"]]
    assert sorted(page.data()["names"][: len(kept)]) == sorted(kept)
    assert len(page.all("script")) == 2


def test_characters_that_turn_or_hide_text_are_replaced(tmp_path):
    name = "a\u202eb\x00c\x1bd\ud800e\u2028f\u200cg"
    made = changed(document("by 1se"), "question", "features", 0, to=name)
    write_report(changed(made, "question", "source", to="\u202egpj.exe"), tmp_path / "r.html")
    html = (tmp_path / "r.html").read_text(encoding="utf-8")
    assert "a\ufffdb\ufffdc\ufffdd\ufffde\ufffdf\u200cg" in html and "\ufffdgpj.exe" in html
    assert set("\u202e\x00\x1b\u2028").isdisjoint(html)


# --- what it says ---------------------------------------------------------------------------------


@every_kind
def test_the_table_shows_the_model(kind):
    page, names = page_of(kind), document(kind)["question"]["features"]
    for t, target in enumerate(document(kind)["targets"]):
        if not target["kept"]:
            assert f'id="table-{t}"' not in page.html
            continue
        table = {row[0]: row[1:] for row in page.rows(f"table-{t}")}
        parts = ("kept", "coef", "standard_error", "low", "high")
        # Columns without any number are left out.
        n_columns = 1 if set(target["standard_error"]) == {None} else 4
        for j, *numbers in zip(*(target[part] for part in parts), strict=True):
            cells = table.pop(next(row for row in table if row.startswith(names[j].strip())))
            for value, text in zip(numbers[:n_columns], cells, strict=False):
                # Digits enough for the standard error, but no more than six.
                digits = 0.006 * (numbers[1] or abs(value))
                assert abs(as_number(text) - value) <= max(digits, 1e-6 * abs(numbers[0]))
            if target["inclusion"] is not None:
                assert float(cells[2]) == pytest.approx(target["inclusion"][j], abs=0.006)
            assert len(cells) == n_columns + 2 + (target["inclusion"] is not None)
        assert table == {}


def test_intervals_are_drawn_where_they_are_the_largest_effect_first():
    page, target, _ = shown("by 1se")
    deviation = np.array(document("by 1se")["data"]["deviation"])[target["kept"]]
    effects = deviation * [target["coef"], target["low"], target["high"]]
    effects = effects.T[np.argsort(-np.abs(effects[0]))]
    written = [abs(as_number(row[5])) for row in page.rows()]
    assert written == pytest.approx(np.abs(effects[:, 0]), rel=5e-3)
    dots = [share(e, "cx") for e in page.all("circle") if e.get("r") == "4"]
    whiskers = [[share(e, "x1"), share(e, "x2")] for e in page.all("line", class_="whisker")]
    zero = share(page.all("line", class_="zero")[0], "x1")
    # Places are linear in the effect: one scale explains all of them.
    scale = (dots[0] - zero) / effects[0, 0]
    assert np.column_stack([dots, whiskers]) == pytest.approx(zero + scale * effects, abs=0.02)
    for low, high in whiskers:
        assert 0 <= low <= high <= 100


@every_kind
def test_the_data_of_the_slider_are_the_path(kind):
    page, names = page_of(kind), document(kind)["question"]["features"]
    for t, target in enumerate(document(kind)["targets"]):
        if target["path"] is None:
            assert not page.all("input", type="range")
            continue
        data, path = page.data(t), target["path"]

        def model_at(i, data=data):
            ranks, values = data["models"][data["which"][i]]
            return dict(zip((data["names"][r] for r in ranks), values, strict=True))

        at = [data["alphas"].index(alpha) for alpha in path["alphas"]]
        assert len(data["alphas"]) - len(at) == (target["index"] is None)
        for i, kept, coefs in zip(at, path["kept"], path["coefs"], strict=True):
            expected = {names[j]: b for j, b in zip(kept, coefs, strict=True)}
            assert model_at(i) == pytest.approx(expected, rel=1e-5)
        chosen = data["chosen"]
        assert data["alphas"][chosen] == target["alpha"]
        slider = page.one("input", id=f"slider-{t}")
        assert (slider["min"], slider["max"]) == ("0", str(len(data["alphas"]) - 1))
        assert slider["value"] == str(chosen)
        if target["inclusion"] is not None:
            assert target["alpha"] == target["cv"]["alpha_min"]
            continue  # an average is none of the path's models
        model = {names[j]: b for j, b in zip(target["kept"], target["coef"], strict=True)}
        assert model_at(chosen) == pytest.approx(model, rel=1e-5)
        assert data["r2"][chosen] == pytest.approx(target["r2"], abs=1e-5)


def test_without_the_script_the_chosen_model_is_shown():
    page, target, _ = shown("by 1se")
    keys = {e["data-key"]: e["text"] for e in page.all("dd") if "data-key" in e}
    assert keys["alpha"] == number(target["alpha"])
    assert keys["count"] == str(len(target["kept"]))
    value, spread = keys["value"].split(" ± ")
    index, path = target["index"], np.log(target["path"]["alphas"])
    assert as_number(value) == pytest.approx(target["cv"]["mean"][index], rel=1e-3)
    assert as_number(spread) == pytest.approx(target["cv"]["se"][index], rel=5e-3)
    chosen = [share(line, "x1") for line in page.all("line", class_="chosen")]
    at = 100 * (path[0] - np.log(target["alpha"])) / (path[0] - path[-1])
    assert chosen == pytest.approx([at] * 2, abs=1e-3)


def runs_of(d):
    """The corners of each run of an SVG path."""
    for run in d.removesuffix("Z").split("M")[1:]:
        yield np.reshape([float(v) for v in run.split()], (-1, 2))


def test_the_curve_marks_the_rules():
    page, target, _ = shown("by paired")
    cv, alphas, data = target["cv"], target["path"]["alphas"], page.data()
    heights = np.array(data["heights"])
    for kind in ("min", "paired", "1se"):
        mark = page.one("circle", class_=f"stop-{kind}")
        index = alphas.index(cv[f"alpha_{kind}"])
        assert share(mark, "cx") == pytest.approx(data["x"][index], abs=1e-3)
        assert share(mark, "cy") == heights[index]
    best, chosen = alphas.index(cv["alpha_min"]), alphas.index(cv["alpha_paired"])
    assert heights.argmax() == best
    assert page.all("path", class_="band")
    buttons = [e["text"] for e in page.all("button") if "data-go" in e]
    assert buttons == ["Back to the chosen model", "Smallest error", "One standard error"]
    # The inner band of the paired choice reaches the smallest error. Heights are linear in the
    # errors: one scale explains all of them.
    slope, offset = np.polyfit(cv["mean"], heights, 1)
    assert heights == pytest.approx(slope * np.array(cv["mean"]) + offset, abs=0.06)
    assert chosen == target["index"]
    line = page.one("line", class_="least")
    assert share(line, "y1") == share(line, "y2") == heights[best]
    ends = [share(line, "x1"), share(line, "x2")]
    assert ends == pytest.approx([data["x"][chosen], data["x"][best]], abs=1e-3)
    half = 0.5 * np.array(cv["paired_se"])
    assert half[best] == 0.0
    band = np.concatenate([*runs_of(page.one("path", class_="paired")["d"])])
    for i, place in ((0, 0.0), (-1, 100.0)):
        corners = band[band[:, 0] == place, 1]
        expected = slope * (cv["mean"][i] + half[i] * np.array([1, -1])) + offset
        assert [corners.min(), corners.max()] == pytest.approx(expected, abs=0.1)
    reaching = np.flatnonzero(cv["mean"] - half <= cv["mean"][best])
    sizes = np.array(target["path"]["n_nonzero"])
    assert sizes[chosen] == sizes[reaching].min()


@pytest.mark.parametrize("kind", ["by average", "by shrunk average"])
def test_an_average_shows_the_weight_of_every_variable(kind):
    page, target, names = shown(kind)
    lengths = [share(e, "width") for e in page.all("rect", class_="full")]
    kept = [row[0] for row in page.rows()]
    listed = [text.split() for text in page.folded("li")]
    weights = dict(zip(names, target["inclusion"], strict=True))
    assert len(listed) == len(names) - len(kept) > 0
    in_order = [*kept, *(name for name, _ in listed)]
    assert sorted(in_order) == sorted(names)
    assert lengths == pytest.approx([100 * weights[name] for name in in_order], abs=0.06)
    for name, text in listed:
        assert float(text) == pytest.approx(weights[name], abs=0.006) and weights[name] <= 0.5
    assert not page.all("line", class_="whisker")
    heads = [e["text"] for e in page.all("th") if e.get("scope") == "col"]
    assert "weight" in heads and "std. error" not in heads


def test_weights_of_next_to_nothing_are_left_out():
    _, target, names = shown("by average")
    [left] = set(range(len(names))) - set(target["kept"])
    made = changed(document("by average"), "targets", 0, "inclusion", left, to=1e-9)
    page = Page(render_report(made))
    assert page.folded("li") == [names[left]]
    assert "less than 0.005 of the weight" in page.text


@pytest.mark.parametrize("kind", ["by paired", "by average", "by shrunk average"])
def test_the_error_is_that_of_the_rule(kind):
    page, target, _ = shown(kind)
    [off] = re.findall(r"typically off by ([\d.,]+),", page.text)
    assert as_number(off) == pytest.approx(np.sqrt(target["cv"]["of_choice"]), rel=6e-3)


@pytest.mark.parametrize(
    ("kind", "drawn", "not_drawn"),
    [
        ("by criterion", "curve", "band paired stop-1se"),
        ("of fixed alpha", "", "curve band lines plot"),
        ("of the old schema", "curve band", "paired stop-paired"),
    ],
)
def test_a_curve_has_the_bands_and_marks_of_its_choice(kind, drawn, not_drawn):
    classes = {name for e in page_of(kind).elements for name in e.get("class", "").split()}
    assert set(drawn.split()) <= classes and classes.isdisjoint(not_drawn.split())


@pytest.mark.parametrize(
    ("kind", "said", "not_said"),
    [
        ("by one split", "one hold-out split", "1-fold|one standard error|nan"),
        ("of the old schema", "smallest error", "near the smallest error"),
        ("by criterion", "BIC of each model", None),
        ("of fixed alpha", "given beforehand", None),
        ("of fixed size", "2 variables, the best-fitting set that swaps found", "searched"),
        ("with nothing kept", "None of the 8 candidate variables is kept", None),
        ("with nothing kept", "Does anything explain noise?", None),
        ("with categories", "4 categories as 3 indicators", None),
        ("with warnings", "120, after 7 with a missing value were left out", None),
        ("with warnings", "random folds, seed 3", None),
        ("by 1se", "as if it had been chosen beforehand", "Before you rely on this"),
        ("by 1se", "least squares on these variables", "Shrinkage|averag"),
        ("by 1se", "mostly noise that all alphas share", "by at most half the standard"),
        ("by 1se", "arXiv:1701.06967", None),
        ("by 1se", "@article{", None),
        ("by paired", "at most half the standard error of the difference", "mostly noise"),
        ("by paired", "5-fold cross-validation, with the choice of alpha", "averag"),
        ("by average", "5-fold cross-validation, with the choice of weights", "shrunk"),
        ("by average", "Coefficients are averages over the models", "chosen model"),
        ("by average", "as the coefficients are averages", "intervals hold|least squares"),
        ("by average", "Back to the model of most weight", "lets these in|a larger pen"),
        ("by shrunk average", "each by ridge regression on its variables", "not shrunk"),
        ("by shrunk average", "Shrinkageridge regression", "intervals hold"),
        ("of two shrunk", "Shrinkagefirst: ridge regression", "averag"),
        ("of two shrunk", "second: none, as it does not lower the", None),
        ("of perfect fit", "as no degrees of freedom are left", "intervals hold"),
        ("of dependent variables", "no standard errors and intervals, as these variables", None),
        ("by average of noise", "no variable is in models that have more than half", None),
        ("by average over one split", "one hold-out split, of the model of most weight", None),
        ("of two categories", "2 categories as 1 indicator", "1 indicators"),
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
    made = document_of(model, model_path=path)
    assert made["targets"][0]["index"] is None
    data = Page(render_report(made)).data()
    sizes = [len(data["models"][i][0]) for i in data["which"]]
    assert sizes == sorted(set(path.n_nonzero.tolist()))
    np.testing.assert_allclose(data["x"], 100 * np.array(sizes) / max(sizes), atol=1e-3)
    assert sizes[data["chosen"]] == 4
    names = {data["names"][rank] for rank in data["models"][data["which"][data["chosen"]]][0]}
    assert names == set(X.columns[model.coef_ != 0])


def test_a_given_alpha_stands_between_those_of_a_path():
    data = page_of("of alpha beside a path").data()
    assert data["alphas"] == [1000.0, 60.0, 10.0, 0.0] and data["chosen"] == 1
    assert data["x"][0] == 0.0 and data["x"][-1] == 100.0


def test_notes_are_those_of_the_summary():
    made, page = document("with warnings"), page_of("with warnings")
    kinds = {note["kind"] for note in made["notes"]}
    assert kinds == {"alpha at the end", "collinear", "rows dropped"}
    assert set(estimator_of(made).summary().notes) <= {e["text"] for e in page.all("li")}
    assert {"twin", "other twin"} <= set(page.folded("td"))


def test_rows_name_what_an_indicator_is_compared_with_and_what_rests_on_one_row():
    reference = "compared with ground, cellar"
    notes = {row[0] for row in page_of("with categories").rows()}
    assert notes == {"size", f"floor=middle{reference}", f"floor=top{reference}"}
    [marked] = [row[0] for row in page_of("of wide rows").rows() if "on about 1 row" in row[0]]
    assert marked.startswith("kind=One_Story_1941_and_Newer_All_Styles")
    assert not marked.endswith("rows")


def test_each_target_has_its_part():
    page = page_of("of two targets")
    links = [e["text"] for e in page.all("a") if e["href"].startswith("#target")]
    assert links == ["first", "second"]
    assert len(page.all("input", type="range")) == 2
    assert page.data(1)["alphas"] == document("of two targets")["targets"][1]["path"]["alphas"]
    first, second = page_of("of two shrunk").html.split('<section id="target-1"')
    assert "Coefficients are shrunk" in first and "as the coefficients are shrunk" in first
    assert 'class="whisker"' not in first and "std. error" not in first
    assert "Coefficients are not shrunk" in second and "intervals hold" in second
    assert 'class="whisker"' in second and "std. error" in second


def test_how_it_was_made():
    made, text = document("by 1se"), page_of("by 1se").text
    for part in (made["checksum"], made["version"], *(f"{name}=" for name in made["settings"])):
        assert part in text


def test_what_is_not_kept_is_listed_as_it_enters():
    page, target, names = shown("by 1se")
    listed = [text.split() for text in page.folded("li")]
    first = {}
    for alpha, kept in zip(target["path"]["alphas"], target["path"]["kept"], strict=True):
        for j in kept:
            if alpha < target["alpha"]:
                first.setdefault(names[j], alpha)
    entered = [first[name] for name, _ in listed]
    assert {name for name, _ in listed} == {*names} - {names[j] for j in target["kept"]}
    assert [as_number(alpha) for _, alpha in listed] == pytest.approx(entered, rel=1e-3)
    assert entered == sorted(entered, reverse=True)


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
    assert [text.startswith(note) for text in page.folded("p")] == [True]
    [item] = [text.split() for text in page.folded("li")]
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


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_colours_can_be_read(theme):
    style = page_of("by 1se").one("style")["text"]
    colours = {
        name: {"light": light, "dark": dark}[theme]
        for name, light, dark in re.findall(r"--([\w-]+): light-dark\((#\w{6}), (#\w{6})\);", style)
    }
    read = ["ink", "soft", "accent", *(f"c{n}" for n in range(7))]
    # Lines must be seen but not read.
    for names, behind, least in [
        (read, "page", 4.5),
        (["ink", "soft"], "panel", 4.5),
        (["ink", "soft"], "warn", 4.5),
        (["accent-ink"], "accent", 4.5),
        (["axis", "pale", "warn-edge"], "page", 2.9),
    ]:
        for name in names:
            dark, light = sorted(luminance(colours[each]) for each in (name, behind))
            assert (light + 0.05) / (dark + 0.05) >= least, (name, behind)


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


def test_an_error_decides_the_digits_and_marks_are_short():
    assert sized_by(64.677, 603.079, 475.96, 730.19) == ["603.1", "476.0", "730.2"]
    assert sized_by(float("nan"), 603.079, float("nan")) == ["603.1", "\N{EN DASH}"]
    assert sized_by(1e-9, 2.0)[0] == "2.000000"
    assert fixed(-0.001, 2) == "0.00"
    marks = {0.0: "0", -20.0: "\N{MINUS SIGN}20", 1e6: "10⁶", 100000.0: "100,000"}
    marks |= {2e-5: "2\N{MULTIPLICATION SIGN}10⁻⁵", 0.0005: "0.0005"}
    assert {value: short(value) for value in marks} == marks


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
    corners, steps = step_corners(x, (x[1:] + x[:-1]) / 2, heights[np.newaxis])
    d = svg_path(corners, without_zeros(steps)[0])
    for place, height in zip(x, heights, strict=True):
        assert height_at(d, place) == (height or None)


def picture_of(effects, chosen):
    """The picture of some effects at three alphas."""
    names = [f"v{j}" for j in range(len(effects))]
    return path_picture(np.array([0.0, 50.0, 100.0]), effects, names, range(len(effects)), chosen)


def test_the_picture_of_a_path_is_cut_where_it_explodes():
    effects = np.array([[1.0, 1.0, 50.0], [0.0, 0.0, -60.0]])
    picture = picture_of(effects, chosen=1)
    assert picture["cut"] == "from \N{MINUS SIGN}60 to 50"
    assert -0.1 < picture["axis"].end < 0.0 and 1.0 < picture["axis"].start < 1.1
    assert picture_of(effects[:, [0, 1, 1]], chosen=1)["cut"] is None


@pytest.mark.parametrize("span", [0.01, 0.5, 1.0, 2.0, 3.7, 8.0, 40.0])
def test_marks_of_alpha_are_few_and_where_they_say(span):
    alphas = np.geomspace(3e4, 3e4 * 10.0**-span, 101)
    marks = alpha_axis(alphas).marks
    assert 2 <= len(marks) <= 5
    places = [float(mark.place[:-1]) for mark in marks]
    values = np.array([as_number(mark.text) for mark in marks])
    assert places == pytest.approx(100 * np.log10(alphas[0] / values) / span, abs=0.01)


def test_alpha_zero_has_a_place():
    alphas = np.array([100.0, 10.0, 0.0])
    axis = alpha_axis(alphas)
    assert axis.place(alphas) == pytest.approx([0.0, 50.0, 100.0])
    assert axis.marks[-1] == ("100%", "0")
    assert alpha_axis(np.zeros(1)).marks == [("50%", "0")]


@given(st.floats(-1e6, 1e6), st.floats(1e-6, 1e6), st.integers(3, 8))
def test_marks_of_values_are_round_and_inside(low, width, most):
    axis = value_axis(low, low + width, most)
    assert 1 <= len(axis.ticks) <= most + 1
    assert all(axis.end - 1e-9 * abs(low) <= v <= axis.start + 1e-9 * abs(low) for v in axis.ticks)
