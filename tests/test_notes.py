"""What a model tells its user: the same notes in summary, model file, report and command line."""

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_array
from sklearn.datasets import load_diabetes
from sklearn.model_selection import KFold, LeaveOneOut

import sparsestep as ss
from rows import held_out_errors
from sparsestep import Moments, SparseStep, SparseStepCV, SparseStepIC
from sparsestep.cli import run_command as run
from sparsestep.errors import FarRowsWarning
from sparsestep.model.file import document_of, read_document
from sparsestep.report import render_report


def kinds(model):
    """The kinds of the notes of a model."""
    return [note["kind"] for note in document_of(model)["notes"]]


def data(n=200, m=4, seed=0):
    """Columns of noise, and their sum with more noise."""
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(rng.standard_normal((n, m)), columns=[f"c{j}" for j in range(m)])
    return X, X.sum(axis=1).rename("y") + rng.standard_normal(n)


def of_choice(model):
    """The error of the choice of alpha, of a model's only target."""
    return document_of(model)["targets"][0]["cv"]["of_choice"]


def fitted(form, X, y, **params):
    """A model fitted to rows, to sparse rows or to moments."""
    model = SparseStep(**(params or {"alpha": 20.0}))
    if form == "moments":
        return model.fit_moments(Moments.from_data(X, y))
    return model.fit(csr_array(X.to_numpy()) if form == "sparse rows" else X, y)


def collinear(model):
    """The pairs of columns that are nearly collinear."""
    return [(pair["first"], pair["second"]) for pair in document_of(model)["data"]["collinear"]]


def indicator(n, ones):
    """A column of zeros with ones at the end."""
    return np.repeat([0.0, 1.0], [n - ones, ones])


def with_column(name, values, effect=0.0):
    X, y = data(len(values))
    X[name] = values
    return X, y + effect * X[name]


RISING = np.cumsum(np.random.default_rng(0).integers(1, 9, 200))
NOISE = np.random.default_rng(7).standard_normal(200)
OF_ROWS = ("rownames", "ID", "Unnamed: 0", "patient_id", "PassengerId", "row")
OTHERS = ("grid", "arid", "humid", "rows_sold", "brow", "paid")


@pytest.mark.parametrize("form", ["rows", "moments", "sparse rows"])
@pytest.mark.parametrize(
    ("name", "values", "kind"),
    [
        *(("rare", indicator(200, ones), "few rows") for ones in (1, 4, 199)),
        ("rare", indicator(200, 5), None),
        ("c", np.arange(200), "row numbers"),
        ("c", np.random.default_rng(0).permutation(200) + 7, "row numbers"),
        ("rising", RISING, "row numbers"),
        ("rising", RISING * (np.arange(200) != 150), None),
        *((name, NOISE, "row numbers") for name in OF_ROWS),
        *((name, NOISE, None) for name in OTHERS),
    ],
)
def test_a_note_on_one_column(form, name, values, kind):
    model = fitted(form, *with_column(name, values, 100.0 * (name == "rare")))
    if (form == "moments" and name == "rising") or (form == "sparse rows" and name in OF_ROWS):
        kind = None  # the order of rows is unknown, or the name
    summary = model.summary()
    assert kinds(model) == ([kind] if kind else []) and len(summary.notes) == bool(kind)
    assert name != "rare" or model.coef_[4]
    for note in summary.notes:
        assert repr("x4" if form == "sparse rows" else name) in note
        assert kind != "few rows" or f"(about {min(values.sum(), 200 - values.sum()):.0f})" in note
        assert note in str(summary) and note.split("'")[0] in summary._repr_html_()


def test_an_outlier_that_holds_most_of_a_column_is_seen_where_rows_are():
    X, y = data()
    X.loc[7, "c0"] = 1000.0
    y += X["c0"]
    assert "'c0' (about 1)" in str(fitted("rows", X, y).summary())
    noise = np.random.default_rng(1).standard_normal((200, 300))
    thin = Moments.from_data(np.hstack([X, noise]), y)
    assert thin.is_thin
    assert "'x0' (about 1)" in str(SparseStep(alpha=2e5).fit_moments(thin).summary())


def test_rows_count_as_rows_whatever_they_weigh():
    X, y = with_column("rare", indicator(200, 1), 100.0)
    weight = np.where(X["rare"] > 0, 100.0, 1.0)
    assert "'rare' (about" in str(SparseStep(20.0).fit(X, y, sample_weight=weight).summary())
    # Which rows have which weights, moments do not tell.
    of_moments = SparseStep(20.0).fit_moments(Moments.from_data(X, y, weight))
    assert "few rows" not in kinds(of_moments)


@pytest.mark.parametrize("n", [30, 200])
def test_copies_are_told_apart_from_collinear_columns(n):
    X, y = data(n, 40)
    X = pd.concat([X, -3 * X.add_suffix(" again") + 7], axis=1)
    X["near"] = X["c5"] + 0.01 * np.random.default_rng(3).standard_normal(n)
    model = SparseStepIC("ebic", penalty_factor={"c5": 0}).fit(X, y)
    notes = [note for note in model.summary().notes if "cop" in note or "pair" in note]
    assert notes[0].startswith("40 of 81 columns are copies of others") and len(notes) == 2
    assert notes[1].startswith("1 pair of columns is nearly collinear") and "'near'" in notes[1]
    assert collinear(model) == [(5, 80)]


def test_the_collinear_pair_that_is_named_has_a_variable_kept():
    X, y = data()
    noise = np.random.default_rng(3).standard_normal((200, 3))
    X["useless"] = noise[:, 0]
    X["useless too"] = noise[:, 0] + 0.01 * noise[:, 1]
    kept_none = SparseStep(n_nonzero=3).fit(X, y)
    assert collinear(kept_none) == [(4, 5)] and "collinear" not in kinds(kept_none)
    X["near"] = X["c0"] + 0.1 * noise[:, 2]
    [note] = [note for note in SparseStep(n_nonzero=4).fit(X, y).summary().notes if "pair" in note]
    correlation = np.corrcoef(X["c0"], X["near"])[0, 1]
    assert note.startswith("2 pairs") and f"'c0' and 'near', {correlation:.4f}" in note
    assert "useless" not in note


def test_collinear_pairs_are_found_in_any_block():
    rng = np.random.default_rng(2)
    base, other, noise = (rng.standard_normal((300, m)) for m in (30, 600, 30))
    Z = np.hstack([base, other, -2.0 * base + 0.01 * noise])
    facts = document_of(SparseStep(alpha=1e9).fit(Z, base[:, 0]))["data"]
    assert facts["n_collinear"] == 30 and len(facts["collinear"]) == 20
    for pair in facts["collinear"]:
        assert pair["second"] == pair["first"] + 630
        assert pair["correlation"] == pytest.approx(-1.0, rel=0, abs=1e-4)


def test_the_most_collinear_pair_does_not_hang_on_rounding():
    rng = np.random.default_rng(0)
    pair = rng.standard_normal((120, 1)) + 0.1 * rng.standard_normal((120, 2)) * [0, 1]
    # Rows in three orders: the three pairs have the same correlation but for rounding.
    X = np.hstack([pair[rng.permutation(120)] for _ in range(3)])
    y = X[:, 0] + rng.standard_normal(120)
    for model in (SparseStepIC(alphas=10), SparseStepCV(10)):
        assert collinear(model.fit(X, y)) == [(0, 1), (2, 3), (4, 5)]


@pytest.mark.parametrize("form", ["rows", "moments"])
def test_a_target_in_other_units_is_told(form):
    X, y = with_column("in_pounds", data()[1] / 16 + 3)
    model = fitted(form, X, y, n_nonzero=1)
    [note] = [note for note in model.summary().notes if "determined" in note]
    assert "'in_pounds'" in note
    X["in_pounds"] += 1e-3 * X["c0"]
    assert "target determined" not in kinds(fitted(form, X, y, n_nonzero=1))
    # As many variables as rows determine any target.
    assert "target determined" not in kinds(fitted(form, *data(5), alpha=0.0))


def test_a_target_of_zeros_and_ones():
    X, y = data()
    model = SparseStep(1.0).fit(X, y > 0)
    assert kinds(model) == ["target of zeros and ones"] and "logistic" in str(model.summary())
    assert kinds(SparseStep(1.0).fit(X, 2 * (y > 0))) == []
    two = SparseStep(1.0).fit(X, pd.DataFrame({"u": y, "v": y > 0}))
    assert "logistic" in str(two.summary(target="v"))
    assert "logistic" not in str(two.summary(target="u"))


def test_notes_are_the_same_everywhere(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    X, y = with_column("rare", indicator(200, 2), 100.0)
    X["same"], X["twin"] = 5.0, 2 * X["c1"]
    X.assign(y=y).to_csv("t.csv", index=False)
    fit = ["fit", "t.csv", "-t", "y", "--criterion", "bic", "-m", "m.json", "-r", "r.html"]
    assert run(fit) == 0
    printed = [line for line in capsys.readouterr().err.splitlines() if line.startswith("Note: ")]
    model = SparseStepIC().fit(X, y)
    assert kinds(model) == ["few rows", "copies", "constant"]
    assert printed == [f"Note: {note}" for note in model.summary().notes]
    assert printed[-1] == "Note: Constant, and so of no use: 'same'."
    assert ss.load_model("m.json").summary().notes == model.summary().notes
    assert read_document("m.json")["notes"] == document_of(model)["notes"]
    for page in ((tmp_path / "r.html").read_text(), render_report(model, target="y")):
        assert all(note.replace("'", "&#39;") in page for note in model.summary().notes)


# -- the error of the choice -----------------------------------------------------------------


@pytest.mark.parametrize(
    ("n", "alphas", "cv"),
    [(442, 20, KFold(5, shuffle=True, random_state=0)), (60, 10, LeaveOneOut())],
)
def test_the_smallest_error_is_told_with_its_choice(n, alphas, cv):
    X, y = (part[:n] for part in load_diabetes(return_X_y=True))
    model = SparseStepCV(alphas, cv=cv).fit(X, y)
    mse, sizes = model.mse_path_, np.array([len(test) for _, test in cv.split(X)])
    by_hand = 0.0
    for k in range(len(sizes)):
        others = np.arange(len(sizes)) != k
        chosen = np.average(mse[:, others], axis=1, weights=sizes[others]).argmin()
        by_hand += sizes[k] / sizes.sum() * mse[chosen, k]
    assert of_choice(model) == pytest.approx(by_hand) and by_hand > model.cv_mean_.min()
    assert f"; {by_hand:.5g} with the choice" in model.summary().facts["CV error"]
    assert "with the choice of alpha" in render_report(model)
    sparse = SparseStepCV(alphas, cv=cv, rule="1se").fit(X, y)
    assert "choice" not in sparse.summary().facts["CV error"]


def test_the_error_of_the_choice_where_many_alphas_give_the_same_models():
    rng = np.random.default_rng(1)
    X = rng.standard_normal((60, 6))
    y = 16 * X[:, 0] + 0.5 * rng.standard_normal(60)
    model = SparseStepCV(cv=5)
    nested = held_out_errors(model, X, y, 5).mean()
    assert of_choice(model.fit(X, y)) == pytest.approx(nested, rel=0.1)


def test_the_error_of_the_choice_is_near_that_on_new_rows():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((40 * 60, 30))
    y = 0.5 * X[:, 0] + rng.standard_normal(len(X))
    least, told, true = [], [], []
    for part in range(40):
        rows = slice(60 * part, 60 * part + 60)
        model = SparseStepCV(30, cv=6).fit(X[rows], y[rows])
        least.append(model.cv_mean_.min())
        told.append(of_choice(model))
        true.append(np.mean((np.delete(y, rows) - model.predict(np.delete(X, rows, 0))) ** 2))
    assert np.mean(least) < 0.95 * np.mean(true)
    assert np.mean(told) == pytest.approx(np.mean(true), rel=0.04)


# -- rows to predict -------------------------------------------------------------------------


@pytest.mark.parametrize("form", ["rows", "moments", "loaded"])
def test_rows_far_outside_are_told(form, tmp_path):
    X, y = data()
    X["unused"] = np.random.default_rng(9).standard_normal(200)
    model = fitted(form, X, y)
    if form == "loaded":
        ss.save_model(model, tmp_path / "m.json")
        model = ss.load_model(tmp_path / "m.json")
    model.predict(X)
    strange = X.copy()
    strange.loc[3, "unused"] = 1e9
    model.predict(strange)
    strange.loc[[3, 5], "c1"] = 100.0
    with pytest.warns(FarRowsWarning, match=r"2 of 200 rows .* deviations .* 'c1'") as told:
        predicted = model.predict(strange)
    assert told[0].message.n_rows == 2 and told[0].filename == __file__
    np.testing.assert_allclose(predicted, strange.to_numpy() @ model.coef_ + model.intercept_)


def test_a_rare_indicator_is_not_far_outside():
    X, y = with_column("rare", indicator(3000, 1), 100.0)
    for model in (fitted("rows", X, y), fitted("moments", X, y)):
        assert model.coef_[4]
        model.predict(X)
        with pytest.warns(FarRowsWarning, match="'rare'"):
            model.predict(X.assign(rare=10.0 * X["rare"]))


def test_predict_on_the_command_line_tells_of_rows_far_outside(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    X, y = data()
    X.assign(y=y).to_csv("t.csv", index=False)
    X.assign(c0=100 * X["c0"]).to_csv("new.csv", index=False)
    assert run(["fit", "t.csv", "-t", "y", "-m", "m.json", "--quiet"]) == 0
    assert run(["predict", "m.json", "t.csv", "-o", "p.csv"]) == 0
    assert capsys.readouterr().err == ""
    assert run(["predict", "m.json", "new.csv", "-o", "p.csv"]) == 0
    told = capsys.readouterr().err
    count = int((np.abs(X["c0"] * 100 - X["c0"].mean()) / X["c0"].std(ddof=0) > 199**0.5).sum())
    assert told.startswith(f"Note: {count} of 200 rows lie far outside") and "'c0'" in told
    assert run(["predict", "m.json", "new.csv", "-o", "p.csv", "--json"]) == 0
    assert f'"rows_far_outside": {count}' in capsys.readouterr().out


# -- columns of text -------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["pandas", "polars", "pyarrow"])
def test_a_model_of_encoded_columns_takes_the_texts(kind, tmp_path):
    X, y = data(60, 2)
    X["town"] = np.random.default_rng(0).choice(["Bonn", "Kiel", "Ulm"], 60)
    y += 3.0 * (X["town"] == "Bonn")
    categories = {"town": ["Kiel", "Bonn", "Ulm"]}
    moments = ss.read_moments(X.assign(y=y), "y", categories=categories)
    model = SparseStep(alpha=1.0).fit_moments(moments)
    ss.save_model(model, tmp_path / "m.json")
    dummies = {f"town={t}": 1.0 * (X["town"] == t) for t in ("Bonn", "Ulm")}
    expected = model.predict(X[["c0", "c1"]].assign(**dummies))
    frame = X[["town", "c1", "c0"]]
    if kind != "pandas":
        library = pytest.importorskip(kind)
        maker = library.from_pandas if kind == "polars" else library.Table.from_pandas
        frame = maker(frame)
    for each in (model, ss.load_model(tmp_path / "m.json")):
        np.testing.assert_allclose(each.predict(frame), expected)
    with pytest.raises(ValueError, match=r"'town' holds 'Rome' in row 0"):
        model.predict(X.assign(town="Rome"))
    with pytest.raises(ValueError, match="no column 'c0'"):
        model.predict(X[["town", "c1"]])


@pytest.mark.parametrize("seed", range(8))
def test_r2_of_no_variable_is_zero(seed):
    model = SparseStep(1e9).fit(*data(seed=seed))
    assert model.summary().facts["R2"].startswith("0.0000") and kinds(model) == ["nothing kept"]
    assert document_of(model)["targets"][0]["r2"] == 0.0
