"""The installed command on real files: what it prints, what it writes, what it refuses and how."""

import json
import os
import re
import resource
import shlex
import shutil
import signal
import subprocess
import sys
import time
from contextlib import chdir, redirect_stderr, redirect_stdout, suppress
from html import unescape
from io import StringIO
from pathlib import Path
from unittest.mock import patch

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv
import pyarrow.dataset as ds
import pyarrow.feather
import pyarrow.parquet as pq
import pytest

from sparsestep import Moments, SparseStep, load_model, read_moments, save_model
from sparsestep.cli import run_command
from sparsestep.model.file import read_document

COMMAND = Path(sys.executable).with_name("sparsestep")
QUIET = {"OPENBLAS_NUM_THREADS": "1", "COLUMNS": "100", "TERM": "dumb", "PYTHONHASHSEED": "0"}


def run(folder, *arguments, code=0):
    """Run a command in this process and in a folder; it must exit with this code."""
    out, error = StringIO(), StringIO()
    with (
        chdir(folder),
        patch.dict(os.environ, QUIET),
        redirect_stdout(out),
        redirect_stderr(error),
    ):
        returned = run_command([*map(str, arguments)])
    done = subprocess.CompletedProcess(arguments, returned, out.getvalue(), error.getvalue())
    assert returned == code, done.stdout + done.stderr
    return done


def run_process(folder, *arguments, code=0, env=None, **options):
    """Run the installed command in a folder; it must exit with this code."""
    done = subprocess.run(
        [COMMAND, *map(str, arguments)],
        cwd=folder,
        env={**os.environ, **QUIET, **(env or {})},
        capture_output=True,
        text=True,
        timeout=300,
        **options,
    )
    assert done.returncode == code, done.stdout + done.stderr
    return done


def flats(n=300, seed=0):
    """A table with text: the price depends on size, rooms and being in Oslo."""
    rng = np.random.default_rng(seed)
    size, rooms, floor = rng.normal(80, 20, n), rng.integers(1, 6, n), rng.integers(0, 9, n)
    city = rng.choice(["Bonn", "Oslo", "Rome"], n, p=[0.5, 0.25, 0.25])
    price = 3 * size + 20 * rooms + 90 * (city == "Oslo") + 10 * rng.normal(size=n)
    return pa.table(
        {
            "size": size,
            "rooms": rooms,
            "floor": floor,
            "noise": rng.normal(size=n),
            "city": city.tolist(),
            "lift": rng.random(n) < 0.5,
            "w": rng.integers(1, 4, n),
            "price": price,
        }
    )


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """A folder with tables, moments and models."""
    folder = tmp_path_factory.mktemp("data")
    table = flats()
    pa.csv.write_csv(table, folder / "flats.csv")
    pq.write_table(table, folder / "flats.parquet")
    pa.feather.write_feather(table, folder / "flats.arrow", compression="uncompressed")
    numbers = table.drop_columns(["city", "w"])
    pa.csv.write_csv(numbers, folder / "numbers.csv")
    for part in range(3):
        piece = numbers.slice(100 * part, 100)
        X = np.column_stack([piece[name].to_numpy().astype(float) for name in NUMBERS])
        moments = Moments.from_data(X, piece["price"].to_numpy(), feature_names=NUMBERS)
        moments.save(folder / f"site-{part}.npz")
    two = ["--size", "2", "--model", "model.json", "--quiet"]
    run(folder, "fit", "numbers.csv", "--target", "price", *two)
    one_hot = ["--one-hot", "--drop", "w", "--model", "cities.json", "--quiet"]
    run(folder, "fit", "flats.csv", "--target", "price", *one_hot)
    return folder


NUMBERS = ["size", "rooms", "floor", "noise", "lift"]


# -- what it does ----------------------------------------------------------------------------


def test_fit_prints_the_summary_and_writes_model_and_report(data, tmp_path):
    file = data / "numbers.csv"
    done = run(
        *(tmp_path, "fit", file, "--target", "price", "--cv", "5", "--rule", "1se"),
        *("--model", "m.json", "--report", "r.html"),
    )
    model = load_model(tmp_path / "m.json")
    for line in str(model.summary()).splitlines():
        assert line in done.stdout
    assert "Model: m.json\nReport: r.html\n" in done.stdout
    assert "<html" in (tmp_path / "r.html").read_text()
    assert sorted(os.listdir(tmp_path)) == ["m.json", "r.html"]
    question = read_document(tmp_path / "m.json")["question"]
    assert (question["source"], question["target"], question["rows"]) == (str(file), ["price"], 300)
    assert question["choice"]["folds"] == 5 and question["choice"]["rule"] == "1se"


def test_fit_is_the_estimator(data, tmp_path):
    """The same model as the estimators give on the same folds."""
    from sparsestep import SparseStepCV, SparseStepIC

    features = ["size", "rooms", "noise"]
    columns = ["--features", "size,rooms,noise", "--weight", "w", "--seed", "3"]
    common = ("fit", data / "flats.parquet", "--target", "price", *columns, "--model", "m.json")
    source = {"features": features, "weight": "w"}
    cases = [
        ((), SparseStepCV(cv=10), 10),
        (("--cv", "4", "--polish"), SparseStepCV(cv=4, polish="swap"), 4),
        (("--criterion", "ebic"), SparseStepIC("ebic"), None),
        (("--size", "2"), SparseStep(n_nonzero=2), None),
        (("--alpha", "300.5"), SparseStep(300.5), None),
    ]
    for options, estimator, folds in cases:
        run(tmp_path, *common, *options, "--quiet")
        moments = read_moments(data / "flats.parquet", "price", folds=folds, seed=3, **source)
        estimator.fit_moments(moments)
        model = load_model(tmp_path / "m.json")
        assert model.get_params() == estimator.get_params()
        assert np.array_equal(model.coef_, estimator.coef_)
        assert str(model.summary()) == str(estimator.summary())


def test_fit_tells_of_weights_that_are_no_counts(data, tmp_path):
    table = pq.read_table(data / "flats.parquet")
    table = table.append_column("survey", [1e4 * table["w"].to_numpy()])
    pq.write_table(table, tmp_path / "survey.parquet")
    common = ("fit", "survey.parquet", "--target", "price", "--drop", "city", "--criterion", "bic")
    done = run(tmp_path, *common, "--weight", "survey", "--model", "m.json", "--report", "r.html")
    assert "Note: The weights of the 300 rows add up to" in done.stderr
    assert "w * n / w.sum()" in (tmp_path / "r.html").read_text()
    assert "weights" in {note["kind"] for note in read_document(tmp_path / "m.json")["notes"]}
    notes = load_model(tmp_path / "m.json").summary().notes
    assert notes and done.stderr == "".join(f"Note: {note}\n" for note in notes)
    assert "w.sum()" not in run(tmp_path, *common).stderr


def test_fit_reads_folders_patterns_and_lists(data, tmp_path):
    table = flats().drop_columns(["city"])
    for part in range(3):
        pq.write_table(table.slice(100 * part, 100), tmp_path / f"{part}.parquet")
    outputs = {
        run(tmp_path, "fit", *source, "-t", "price").stdout
        for source in (["."], ["*.parquet"], ["0.parquet", "1.parquet", "2.parquet"])
    }
    assert len(outputs) == 1
    arrow = run(data, "fit", "flats.arrow", "-t", "price", "--drop", "city").stdout
    assert outputs == {arrow}


def test_fit_encodes_text(data, tmp_path):
    done = run(data, "fit", "flats.csv", "-t", "price", "--one-hot", "--drop", "w", "--json")
    answer = json.loads(done.stdout)
    kept = {each["variable"]: each["coefficient"] for each in answer["kept"]}
    assert {"size", "rooms", "city=Oslo"} <= set(kept)
    assert kept["city=Oslo"] == pytest.approx(90, abs=10)
    assert answer["variables"] == 7 and answer["rows"] == 300
    assert done.stderr == ""


def test_a_constant_text_is_noted_as_a_constant_number_is(tmp_path):
    table = flats(60).drop_columns(["city"]).append_column("land", pa.array(["NO"] * 60))
    table = table.append_column("year", pa.array([2024] * 60))
    pa.csv.write_csv(table, tmp_path / "t.csv")
    done = run(tmp_path, "fit", "t.csv", "-t", "price", "--one-hot")
    assert "Note: Constant, and so of no use: 'land=NO', 'year'." in done.stderr


def test_fit_counts_dropped_rows(tmp_path):
    table = flats(50).drop_columns(["city"]).to_pydict()
    table["size"][3] = table["rooms"][7] = None
    pa.csv.write_csv(pa.table(table), tmp_path / "t.csv")
    done = run(tmp_path, "fit", "t.csv", "-t", "price", "--drop-missing", "--model", "m.json")
    assert "2 of 50 rows" in done.stderr and "half" not in done.stderr
    assert "1 in 'size'" in done.stderr and "1 in 'rooms'" in done.stderr
    assert read_document(tmp_path / "m.json")["question"]["rows_dropped"] == 2


def test_columns_for_which_most_rows_are_dropped_are_named(tmp_path):
    table = flats(60).drop_columns(["w"]).to_pydict()
    table["floor"][:35] = [None] * 35
    table["city"][10:20] = [None] * 10
    pq.write_table(pa.table(table), tmp_path / "t.parquet")
    options = ("t.parquet", "-t", "price", "--one-hot", "--drop-missing")
    for command, more in (("fit", ()), ("path", ()), ("moments", ("-o", "m.npz"))):
        done = run(tmp_path, command, *options, *more)
        assert re.search("35 of 60 rows, more than half.*35 in 'floor', 10 in 'city'", done.stderr)
        assert "--drop" in done.stderr and "--missing-category" in done.stderr
        answer = json.loads(run(tmp_path, command, *options, *more, "--json").stdout)
        assert sum("35 of 60 rows" in text for text in answer["notes"]) == 1
    run(tmp_path, "fit", *options, "-m", "m.json", "-r", "r.html", "--quiet")
    (told,) = [text for text in load_model(tmp_path / "m.json").summary().notes if "35 of" in text]
    assert done.stderr.count(told) == 1
    assert told in unescape((tmp_path / "r.html").read_text())


def test_an_average_is_told_with_its_weights(tmp_path):
    pq.write_table(flats(300).drop(["city"]), tmp_path / "t.parquet")
    fit = ("fit", "t.parquet", "-t", "price", "--rule", "average", "--shrink", "-m", "m.json")
    told = json.loads(run(tmp_path, *fit, "--json").stdout)
    model = load_model(tmp_path / "m.json")
    weights = dict(zip(model.feature_names_in_, model.inclusion_, strict=True))
    assert {each["variable"]: each["inclusion"] for each in told["kept"]} == {
        name: weight for name, weight in weights.items() if weight > 0.5
    }
    assert told["shrinkage"] == model.shrinkage_ and told["cv_error"] is None
    assert told["cv_error_of_choice"] > 0
    shown = run(tmp_path, *fit, "-r", "r.html").stdout
    assert "inclusion" in shown and "nan" not in shown
    paired = run(tmp_path, *fit[:5], "paired", "--json").stdout
    assert json.loads(paired)["chosen_by"].endswith("paired")


def test_a_column_that_becomes_many_is_noted(tmp_path):
    table = flats(300).append_column("street", pa.array([f"street {i % 40}" for i in range(300)]))
    pq.write_table(table, tmp_path / "t.parquet")
    done = run(tmp_path, "fit", "t.parquet", "-t", "price", "--one-hot", "--size", "3")
    assert re.search("'street' .*39 columns.*--drop street", done.stderr)
    assert "'city'" not in done.stderr


def test_categories_from_codes_and_missing_values(tmp_path):
    """The model is that of the table encoded by hand, and predicts tables that are not."""
    rng = np.random.default_rng(0)
    zone = rng.choice([9, 10, 11], 200, p=[0.5, 0.3, 0.2])
    city = rng.choice(["Rome", "Oslo", None], 200, p=[0.5, 0.3, 0.2])
    size = rng.normal(size=200)
    price = size + 3 * (zone == 11) + 5 * np.equal(city, None) + 0.1 * rng.normal(size=200)
    table = pa.table({"zone": zone, "city": city.tolist(), "size": size, "price": price})
    pq.write_table(table, tmp_path / "t.parquet")
    table.to_pandas().to_csv(tmp_path / "t.csv", index=False)
    options = ("--one-hot", "--missing-category", "--category", "zone", "--size", "3")
    for ending in ("parquet", "csv"):
        fit = ("fit", f"t.{ending}", "-t", "price", *options, "-m", "m.json", "--json")
        kept = {
            each["variable"]: each["coefficient"]
            for each in json.loads(run(tmp_path, *fit).stdout)["kept"]
        }
        assert set(kept) == {"zone=11", "city=(missing)", "size"}
        hand = np.column_stack([zone == 11, np.equal(city, None), size, np.ones(200)])
        right = np.linalg.lstsq(hand.astype(float), price)[0]
        np.testing.assert_allclose(
            [kept["zone=11"], kept["city=(missing)"], kept["size"]], right[:3], rtol=1e-6
        )
        for new in ("parquet", "csv"):
            run(tmp_path, "predict", "m.json", f"t.{new}", "-o", "p.parquet", "--quiet")
            predicted = pq.read_table(tmp_path / "p.parquet")["prediction"].to_numpy()
            np.testing.assert_allclose(predicted, hand @ right, rtol=1e-6)


def test_columns_that_are_always_kept(data, tmp_path):
    """As with penalty_factor in Python; a column of text is kept with all its indicators."""
    from sparsestep import read_moments

    fit = ("fit", data / "numbers.csv", "-t", "price", "-m", "m.json", "--quiet")
    moments = read_moments(data / "numbers.csv", "price")
    for how, estimator in (("--alpha", SparseStep(1e5)), ("--size", SparseStep(n_nonzero=3))):
        number = "3" if how == "--size" else "100000"
        run(tmp_path, *fit, how, number, "--always", "noise,floor")
        estimator.set_params(penalty_factor={"noise": 0, "floor": 0}).fit_moments(moments)
        model = load_model(tmp_path / "m.json")
        assert model.coef_[NUMBERS.index("noise")] != 0 != model.coef_[NUMBERS.index("floor")]
        assert np.array_equal(model.coef_, estimator.coef_)
        assert model.penalty_factor == [1.0, 1.0, 0.0, 0.0, 1.0]
    flat = (data / "flats.csv", "-t", "price", "--one-hot", "--always", "city", "--json")
    kept = json.loads(run(tmp_path, "fit", *flat, "--criterion", "bic").stdout)["kept"]
    assert {"city=Oslo", "city=Rome"} <= {each["variable"] for each in kept}
    for model in json.loads(run(tmp_path, "path", *flat).stdout)["models"]:
        assert {"city=Oslo", "city=Rome"} <= set(model["coefficients"])
    sites = [data / f"site-{part}.npz" for part in range(3)]
    kept = json.loads(run(tmp_path, "fit", *sites, "--always", "noise", "--json").stdout)["kept"]
    assert "noise" in {each["variable"] for each in kept}


def test_fit_from_moments(data, tmp_path):
    sites = [data / f"site-{part}.npz" for part in range(3)]
    run(tmp_path, "fit", *sites, "-t", "price", "--model", "folds.json", "--quiet")
    assert read_document(tmp_path / "folds.json")["question"]["choice"]["folds"] == 3
    done = run(tmp_path, "merge", *sites, "-o", "all.npz")
    assert done.stdout == "300 rows from 3 files, 5 columns\nMoments: all.npz\n"
    options = ("-t", "price", "--criterion", "bic", "--json")
    merged = json.loads(run(tmp_path, "fit", "all.npz", *options).stdout)
    direct = json.loads(run(tmp_path, "fit", data / "numbers.csv", *options).stdout)
    assert [each["variable"] for each in merged["kept"]] == [
        each["variable"] for each in direct["kept"]
    ]
    assert merged["alpha"] == pytest.approx(direct["alpha"], rel=1e-9)


def test_the_numbers_of_rows_that_pandas_writes_are_no_variable(data, tmp_path):
    pd.read_csv(data / "numbers.csv").to_csv(tmp_path / "indexed.csv")
    options = ("-t", "price", "--criterion", "bic")
    done = run(tmp_path, "fit", "indexed.csv", *options)
    assert done.stderr == "Note: The first column has no name and is left out.\n"
    assert done.stdout == run(data, "fit", "numbers.csv", *options).stdout


def test_moments_say_when_they_hold_rows(data, tmp_path):
    many, few = tmp_path / "many.npz", tmp_path / "few.npz"
    done = run(data, "moments", "numbers.csv", "-t", "price", "-o", str(many), "--json")
    assert json.loads(done.stdout)["files_that_hold_rows"] == [] and not done.stderr
    (tmp_path / "few.csv").write_text("a,b,c,y\n1,2,3,4\n2,5,1,3\n")
    done = run(tmp_path, "moments", "few.csv", "-t", "y", "-o", str(few))
    assert "few.npz holds the rows themselves" in done.stderr
    assert Moments.load(few).is_thin


def test_moments_in_folds(data, tmp_path):
    done = run(
        *(tmp_path, "moments", data / "flats.csv", "-t", "price", "--features", "size,rooms"),
        *("--folds", "4", "-o", "m.npz", "--seed", "5", "--json"),
    )
    files = json.loads(done.stdout)["files"]
    assert files == [f"m-fold-{fold}.npz" for fold in range(4)] == sorted(os.listdir(tmp_path))
    run(tmp_path, "fit", *files, "--model", "a.json", "--quiet")
    assert read_document(tmp_path / "a.json")["question"]["target"] == ["price"]
    done = run(tmp_path, "fit", *files, "-t", "prize", code=2)
    assert done.stderr == "The target of the moments in m-fold-0.npz is 'price', not 'prize'.\n"
    options = ("--features", "size,rooms", "--cv", "4", "--seed", "5", "--model", "b.json")
    run(tmp_path, "fit", data / "flats.csv", "-t", "price", *options, "--quiet")
    one, other = load_model(tmp_path / "a.json"), load_model(tmp_path / "b.json")
    assert np.array_equal(one.coef_, other.coef_)
    assert np.array_equal(one.mse_path_, other.mse_path_)
    run(tmp_path, "moments", data / "numbers.csv", "-t", "price", "-o", "one.npz", "--quiet")
    assert Moments.load(tmp_path / "one.npz").feature_names == tuple(NUMBERS)


@pytest.fixture(scope="module")
def folds(data, tmp_path_factory):
    """A folder with the same table in three folds and in six, and another table in three."""
    folder = tmp_path_factory.mktemp("folds")
    table = flats()
    pa.csv.write_csv(table.slice(100), folder / "other.csv")
    for name, file, count in (
        ("a", data / "numbers.csv", 3),
        ("b", data / "numbers.csv", 6),
        ("c", folder / "other.csv", 3),
    ):
        parts = read_moments(file, "price", features=["size", "rooms"], folds=count)
        for k, part in enumerate(parts):
            part.save(folder / f"{name}-fold-{k}.npz")
    for k, part in enumerate(
        read_moments(data / "numbers.csv", "price", features=["size", "rooms"], folds=3, seed=1)
    ):
        part.save(folder / f"seed-fold-{k}.npz")
    shutil.copy(folder / "a-fold-1.npz", folder / "copy.npz")
    run(folder, "merge", "a-fold-*.npz", "-o", "whole.npz", "--quiet")
    read_moments(folder / "other.csv", "price", features=["size"]).save(folder / "site.npz")
    shutil.copy(folder / "site.npz", folder / "again.npz")
    return folder


@pytest.mark.parametrize(
    ("files", "match"),
    [
        (["a-fold-[01].npz"], "fold 2 is missing"),
        (["a-fold-*.npz", "copy.npz"], "fold 1 of 3 of numbers.csv is there twice"),
        (["a-fold-*.npz", "b-fold-[345].npz"], "different runs.* folds 3, 4, 5 of 6 of numbers"),
        (["a-fold-*.npz", "b-fold-*.npz"], "different runs"),
        (["a-fold-0.npz", "c-fold-1.npz"], "different runs.*fold 1 of 3 of other.csv"),
        (["whole.npz", "copy.npz"], "fold 1 of 3 of numbers.csv is there twice"),
        (["a-fold-*.npz", "a-fold-0.npz"], "a-fold-0.npz is given twice"),
        (["site.npz", "again.npz"], "site.npz and again.npz hold the same sums"),
        (["whole.npz", "./whole.npz"], r"whole.npz and \./whole.npz are the same file"),
    ],
)
@pytest.mark.parametrize("command", [["fit"], ["path"], ["merge", "-o", "new.npz"]])
def test_folds_that_do_not_go_together_are_refused(folds, command, files, match):
    refused = run(folds, *command, *files, code=2)
    assert_one_sentence(refused.stderr, match)
    assert not (folds / "new.npz").exists()


def test_two_splittings_of_one_table_are_not_merged(folds):
    refused = run(folds, "merge", "a-fold-*.npz", "seed-fold-*.npz", "-o", "new.npz", code=2)
    assert_one_sentence(refused.stderr, "a-fold-0.npz and seed-fold-0.npz .* the same rows")
    assert not (folds / "new.npz").exists()


def test_the_same_fold_of_several_tables_is_that_of_all_their_rows(folds, tmp_path):
    folds = shutil.copytree(folds, tmp_path / "folds")
    for k in range(3):
        run(folds, "merge", f"a-fold-{k}.npz", f"c-fold-{k}.npz", "-o", f"all-{k}.npz", "--quiet")
    run(folds, "fit", "all-*.npz", "--quiet")
    run(folds, "merge", "all-*.npz", "-o", "all.npz", "--quiet")
    assert Moments.load(folds / "all.npz").n_samples == 500
    # As folds of one cross-validation they are not the parts of one table.
    refused = run(folds, "fit", "a-fold-*.npz", "c-fold-*.npz", code=2)
    assert_one_sentence(refused.stderr, "different runs")


def test_folds_are_not_written_beside_older_ones(folds, data, tmp_path):
    folds = shutil.copytree(folds, tmp_path / "folds")
    options = ("-t", "price", "--features", "size,rooms", "-o", "b.npz", "--quiet", "--folds")
    before = sorted(os.listdir(folds))
    for count in ("3", "12"):
        refused = run(folds, "moments", data / "numbers.csv", *options, count, code=2)
        assert_one_sentence(refused.stderr, r"Older folds .*b-fold-\d.npz and \d more")
    run(folds, "moments", data / "numbers.csv", *options, "6", "--seed", "1")
    assert sorted(os.listdir(folds)) == before


def test_a_table_that_is_named_twice_is_refused(data, tmp_path):
    table = tmp_path / "t.csv"
    shutil.copy(data / "numbers.csv", table)
    os.symlink(table, tmp_path / "link.csv")
    os.link(table, tmp_path / "hard.csv")
    for command, twice in (
        (["fit"], ["t.csv", "t.csv"]),
        (["path"], ["t.csv", "./t.csv"]),
        (["fit"], ["t.csv", "link.csv"]),
        (["moments", "-o", "new.npz"], ["[th]*.csv"]),
    ):
        refused = run(tmp_path, *command, *twice, "-t", "price", code=2)
        assert_one_sentence(refused.stderr, r"t\.csv.*(twice|are the same file)")


def test_a_pattern_of_moments_is_its_files(data, tmp_path):
    given = run(data, "fit", *(f"site-{i}.npz" for i in range(3)), "--json")
    assert run(data, "fit", "site-*.npz", "--json").stdout == given.stdout
    for command in (["fit"], ["path"], ["merge", "-o", tmp_path / "all.npz"]):
        run(data, *command, "site-[0-9].npz")
        refused = run(data, *command, "nothing-*.npz", code=2)
        assert_one_sentence(refused.stderr, r"^No file matches nothing-\*\.npz\.$")
    assert Moments.load(tmp_path / "all.npz").n_samples == 300
    (tmp_path / "a.npz").write_bytes((data / "site-0.npz").read_bytes())
    refused = run(tmp_path, "merge", "*.npz", "-o", "a.npz", code=2)
    assert_one_sentence(refused.stderr, "would overwrite a.npz, which is read")


def test_fit_tells_of_lost_digits(tmp_path):
    t = np.linspace(1, 2, 60)
    powers = {f"t{k}": t**k for k in range(1, 8)}
    y = np.sin(9 * t) + 0.01 * np.cos(500 * t)
    pq.write_table(pa.table({**powers, "y": y}), tmp_path / "t.parquet")
    common = ("fit", "t.parquet", "-t", "y", "--alpha", "1e-9")
    done = run(tmp_path, *common)
    line = r"^Note: The columns kept are nearly collinear .* about 0 digits .* leave some out\.$"
    assert re.search(line, done.stderr, re.M)
    assert "Warning" not in done.stderr and "memory" not in done.stderr
    assert run(tmp_path, *common, "--quiet").stderr == ""
    done = run(tmp_path, *common, "--json")
    assert done.stderr == ""
    told = json.loads(done.stdout)["notes"]
    assert len([text for text in told if text.startswith("The columns kept are nearly")]) == 1
    run(tmp_path, "moments", "t.parquet", "-t", "y", "-o", "t.npz")
    done = run(tmp_path, "fit", "t.npz", "--alpha", "1e-9")
    assert re.search(line, done.stderr, re.M)


def test_advice_names_no_parameters(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 80))
    table = pa.table({**{f"v{j}": X[:, j] for j in range(80)}, "y": X[:, 0] + rng.normal(size=30)})
    pq.write_table(table, tmp_path / "t.parquet")
    done = run(tmp_path, "fit", "t.parquet", "-t", "y", "--criterion", "aic")
    assert "use the extended BIC (ebic) or cross-validation." in done.stderr
    assert "criterion=" not in done.stdout + done.stderr


def test_path_prints_writes_and_draws(data, tmp_path):
    done = run(
        *(tmp_path, "path", data / "numbers.csv", "-t", "price", "--alphas", "sizes"),
        *("-o", "path.csv", "--plot", "path.svg"),
    )
    lines = done.stdout.splitlines()
    assert lines[0].split()[:3] == ["alpha", "variables", "R2"]
    assert [line.split()[1] for line in lines[1:7]] == ["0", "1", "2", "3", "4", "5"]
    assert lines[2].endswith("+size") and lines[3].endswith("+rooms")
    table = pa.csv.read_csv(tmp_path / "path.csv")
    assert table.column_names[-5:] == NUMBERS and table["n_nonzero"].to_pylist() == [*range(6)]
    assert "</svg>" in (tmp_path / "path.svg").read_text()
    answer = json.loads(
        run(tmp_path, "path", data / "site-0.npz", "--alphas", "1e9,10", "--json").stdout
    )
    assert [model["alpha"] for model in answer["models"]] == [1e9, 10.0]
    assert answer["models"][0]["coefficients"] == {}


def test_path_says_how_many_digits_are_left(tmp_path):
    x = np.linspace(-1, 1, 50)
    powers = {f"p{k}": x**k for k in range(1, 16)}
    pq.write_table(pa.table({**powers, "y": sum(powers.values())}), tmp_path / "t.parquet")
    done = run(tmp_path, "path", "t.parquet", "-t", "y", "--alphas", "0.0")
    assert "condition number" in done.stderr and "digits" in done.stderr


def test_path_draws_effects_of_one_standard_deviation(data, tmp_path):
    arguments = (tmp_path, "path", data / "numbers.csv", "-t", "price", "--standardized")
    # Texts as texts, so that they can be found in the picture.
    (tmp_path / "matplotlibrc").write_text("svg.fonttype: none\n")
    run(*arguments, "--plot", "path.svg")
    assert "effect of one standard deviation" in (tmp_path / "path.svg").read_text()
    done = run(*arguments, code=2)
    assert "--plot" in done.stderr


@pytest.mark.parametrize("source", ["flats.csv", "flats.parquet", "flats.arrow"])
def test_predict_gives_the_model_s_predictions(data, tmp_path, source):
    ending = source.split(".")[1]
    out = tmp_path / f"out.{ending}"
    arguments = ("predict", "cities.json", source, "-o", out, "--keep", "city,price")
    assert run(data, *arguments).stdout == f"Predictions of 300 rows: {out}\n"
    read = {"csv": pa.csv.read_csv, "parquet": pq.read_table, "arrow": pa.feather.read_table}
    result = read[ending](out)
    assert result.column_names == ["city", "price", "prediction"]
    table = flats()
    assert result["city"].to_pylist() == table["city"].to_pylist()
    model = load_model(data / "cities.json")
    city = np.array(table["city"].to_pylist())
    columns = {f"city={name}": city == name for name in ("Oslo", "Rome")}
    columns |= {name: table[name].to_numpy() for name in NUMBERS}
    X = np.column_stack([columns[name] for name in model.feature_names_in_]).astype(float)
    expected = X @ model.coef_ + model.intercept_
    np.testing.assert_allclose(result["prediction"].to_numpy(), expected, rtol=1e-12)


def test_predict_carries_columns_of_csv_files_as_they_are(data, tmp_path):
    values = {
        "zip": ["007", "010", ""],
        "id": ["12345678901234567890", "1e5", "1.50"],
        "code": ["NA", "null", "true"],
        "day": ["2020-01-01", "2021-02-03 04:05", "x"],
    }
    flats(3).to_pandas().assign(**values).to_csv(tmp_path / "a.csv", index=False)
    flats(3, seed=1).to_pandas().assign(**{**values, "id": 7}).to_csv(
        tmp_path / "b.csv", index=False
    )
    keep = ["--keep", "zip,id", "--keep", "code,day,city"]
    run(tmp_path, "predict", data / "cities.json", "a.csv", "b.csv", *keep, "-o", "out.csv")
    written = pd.read_csv(tmp_path / "out.csv", dtype=str, keep_default_na=False)
    assert written["zip"].tolist() == 2 * values["zip"]
    assert written["id"].tolist() == [*values["id"], "7", "7", "7"]
    assert written["code"].tolist() == 2 * values["code"]
    assert written["day"].tolist() == 2 * values["day"]
    assert written["prediction"].ne("").all()


@pytest.mark.parametrize("ending", ["arrow", "parquet", "csv"])
def test_predict_carries_categories_of_several_files(data, tmp_path, ending):
    cities = []
    for seed in (1, 2):
        table = flats(3 + seed, seed)
        cities += table["city"].to_pylist()
        codes = table["city"].combine_chunks().dictionary_encode()
        pq.write_table(table.set_column(4, "city", codes), tmp_path / f"{seed}.parquet")
    arguments = [*("1.parquet", "2.parquet", "--keep", "city"), "-o", f"out.{ending}"]
    run(tmp_path, "predict", data / "model.json", *arguments)
    written = ds.dataset(tmp_path / f"out.{ending}", format=ending).to_table()
    assert written["city"].to_pylist() == cities


def test_predict_reads_categories_that_look_like_numbers(tmp_path):
    grades = ["1", "2", "x"] * 20
    prices = [f"{5 * (g == '2') + 0.01 * (i % 7)}" for i, g in enumerate(grades)]
    rows = [f"{g},{p}" for g, p in zip(grades, prices, strict=True)]
    # More texts than numbers, or it would be a column of numbers with mistakes.
    rows += ["x,0.01", "y,0.02"] * 15
    (tmp_path / "t.csv").write_text("\n".join(["grade,y", *rows]))
    options = ("--one-hot", "--size", "1", "-m", "m.json", "--json")
    done = run(tmp_path, "fit", "t.csv", "-t", "y", *options)
    assert json.loads(done.stdout)["kept"][0]["variable"] == "grade=2"
    (tmp_path / "new.csv").write_text("grade\n2\n1\n")
    run(tmp_path, "predict", "m.json", "new.csv", "-o", "p.csv")
    high, low = pd.read_csv(tmp_path / "p.csv")["prediction"]
    assert high == pytest.approx(5, abs=0.1) and low == pytest.approx(0, abs=0.1)


@pytest.mark.parametrize("given", ["new", "new/*.csv", "new/a.csv", "file://{}/new"])
def test_no_file_that_is_read_is_overwritten(data, tmp_path, given):
    (tmp_path / "new").mkdir()
    for name in ("a.csv", "b.csv"):
        (tmp_path / "new" / name).write_bytes((data / "numbers.csv").read_bytes())
    given, out = given.format(tmp_path), "new/a.csv"
    link = tmp_path / "link.csv"
    link.symlink_to("new/a.csv")
    for arguments in (
        ["predict", data / "model.json", given, "-o", out],
        ["predict", data / "model.json", given, "-o", link],
        ["path", given, "-t", "price", "-o", out],
    ):
        done = run(tmp_path, *arguments, code=2)
        assert_one_sentence(done.stderr, "would overwrite .*new/a.csv, which is read; give it")
    assert (tmp_path / "new" / "a.csv").read_bytes() == (data / "numbers.csv").read_bytes()
    if "*" not in given:
        # Hidden in a folder, so not read.
        (tmp_path / "new" / "_old.csv").write_text("")
        run(tmp_path, "path", given, "-t", "price", "-o", "new/_old.csv", "--quiet")


def test_a_model_of_moments_of_texts_predicts_the_table(data, tmp_path):
    options = ("-t", "price", "--one-hot", "--drop", "w", "--quiet")
    run(tmp_path, "moments", data / "flats.csv", *options, "-o", "m.npz")
    run(tmp_path, "fit", "m.npz", "--criterion", "bic", "-m", "by_moments.json", "--quiet")
    fit = ("--criterion", "bic", "-m", "by_rows.json")
    run(tmp_path, "fit", data / "flats.csv", *options, *fit)
    predicted = []
    for name in ("by_moments", "by_rows"):
        arguments = (f"{name}.json", data / "flats.csv", "-o", f"{name}.parquet", "--quiet")
        run(tmp_path, "predict", *arguments)
        predicted.append(pq.read_table(tmp_path / f"{name}.parquet")["prediction"].to_numpy())
    np.testing.assert_allclose(*predicted, rtol=1e-9)


def test_predict_needs_only_the_columns_kept(data, tmp_path):
    document = read_document(data / "model.json")
    kept = [NUMBERS[j] for j in document["targets"][0]["kept"]]
    assert "noise" not in kept
    table = flats(40, seed=1).select(kept)
    values = table.to_pydict()
    values["size"][5] = None
    pq.write_table(pa.table(values), tmp_path / "new.parquet")
    arguments = (data / "model.json", "new.parquet", "-o", "out.parquet", "--missing-as-null")
    run(tmp_path, "predict", *arguments, "--quiet")
    predicted = pq.read_table(tmp_path / "out.parquet")["prediction"]
    assert predicted.null_count == 1 and predicted[5].as_py() is None


def test_a_category_never_seen_has_a_missing_prediction_if_asked_for(data, tmp_path):
    table = flats(20).to_pydict()
    table["city"][7], table["size"][9] = "Paris", None
    pq.write_table(pa.table(table), tmp_path / "new.parquet")
    arguments = ("predict", data / "cities.json", "new.parquet", "-o", "out.parquet")
    done = run(tmp_path, *arguments, "--missing-as-null")
    assert "20 rows, 2 of them missing" in done.stdout + done.stderr
    predicted = pq.read_table(tmp_path / "out.parquet")["prediction"].to_numpy()
    assert np.flatnonzero(np.isnan(predicted)).tolist() == [7, 9]


@pytest.mark.parametrize("closed", [">&-", "2>&-", ">&- 2>&-", "<&- >&- 2>&-"])
def test_streams_that_the_shell_closed(data, tmp_path, closed):
    for arguments, code in (
        (f"fit {data / 'numbers.csv'} -t price --size 2 --json -m m.json", 0),
        ("fit none.csv -t price", 2),
    ):
        command = f"{COMMAND} {arguments} {closed}"
        done = subprocess.run(command, shell=True, cwd=tmp_path, capture_output=True, text=True)
        assert done.returncode == code
        assert "Traceback" not in done.stderr
    assert load_model(tmp_path / "m.json").coef_.shape == (5,)


def test_readers_keep_the_row_of_a_missing_prediction(data, tmp_path):
    """An empty line, which a CSV file of one column would have, is passed over by most of them."""
    table = flats(40, seed=1).select(["size", "rooms"]).to_pydict()
    table["size"][0] = table["size"][5] = table["size"][39] = None
    pq.write_table(pa.table(table), tmp_path / "new.parquet")
    predict = ("predict", data / "model.json", "new.parquet", "--missing-as-null", "--quiet")
    run(tmp_path, *predict, "-o", "out.parquet")
    right = pq.read_table(tmp_path / "out.parquet")["prediction"].to_numpy()
    assert np.flatnonzero(np.isnan(right)).tolist() == [0, 5, 39]
    for keep in ([], ["--keep", "size"]):
        run(tmp_path, *predict, "-o", "out.csv", *keep)
        frame = pd.read_csv(tmp_path / "out.csv")
        columns = {
            "pandas": frame["prediction"].to_numpy(),
            "pyarrow": pa.csv.read_csv(tmp_path / "out.csv")["prediction"].to_numpy(),
            "polars": pl.read_csv(tmp_path / "out.csv")["prediction"].to_numpy(),
            "numpy": np.genfromtxt(tmp_path / "out.csv", delimiter=",", skip_header=1, ndmin=2)[
                :, -1
            ],
        }
        for reader, column in columns.items():
            np.testing.assert_allclose(column, right, rtol=1e-12, err_msg=reader)


def test_predict_with_several_targets_and_with_none_kept(data, tmp_path):
    table = flats(60)
    X = np.column_stack([table["size"].to_numpy(), table["rooms"].to_numpy()])
    y = np.column_stack([X @ [1.0, 2.0], X @ [0.0, 3.0]])
    for alpha in (1.0, 1e12):
        model = SparseStep(alpha=alpha).fit(pa.table({"size": X[:, 0], "rooms": X[:, 1]}), y)
        save_model(model, tmp_path / "m.json", target=["a", "b"])
        arguments = ("m.json", data / "flats.csv", "-o", "out.csv")
        run(tmp_path, "predict", *arguments, "--quiet")
        result = pa.csv.read_csv(tmp_path / "out.csv")
        assert result.column_names == ["prediction of a", "prediction of b"]
        assert result.num_rows == 300
    np.testing.assert_allclose(result["prediction of a"].to_numpy(), y[:, 0].mean())


def test_report_of_a_model(data, tmp_path):
    (tmp_path / "m.json").write_bytes((data / "model.json").read_bytes())
    assert run(tmp_path, "report", "m.json").stdout == "Report: m.html\n"
    run(tmp_path, "report", "m.json", "-o", "other.html", "--quiet")
    assert (tmp_path / "m.html").read_text() == (tmp_path / "other.html").read_text()


def test_demo_names_its_report(tmp_path):
    done = run(tmp_path, "demo")
    assert "442 patients, 64 candidate variables" in done.stdout
    assert "SparseStep" in done.stdout and "lasso" in done.stdout
    assert done.stdout.endswith("Report: sparsestep-demo.html\n")
    assert os.listdir(tmp_path) == ["sparsestep-demo.html"]


def test_python_m_is_the_command(tmp_path):
    done = subprocess.run(
        [sys.executable, "-m", "sparsestep", "--version"], capture_output=True, text=True
    )
    assert done.stdout == run_process(tmp_path, "--version").stdout == "0.1.0\n"


@pytest.mark.parametrize(
    "command", ["", "demo", "fit", "path", "predict", "moments", "merge", "report", "study"]
)
def test_help_has_examples_and_flags_without_a_negative_form(tmp_path, command):
    told = run(tmp_path, *([command] if command else []), "--help").stdout
    assert f"sparsestep {command or 'fit'}" in told.split("─")[0].split("Usage", 1)[1]
    assert "--no-" not in told


@pytest.mark.parametrize(
    ("arguments", "needed", "spared"),
    [
        ("--help", {"cyclopts"}, {"numpy", "scipy", "pyarrow"}),
        ("fit {}/numbers.csv -t price -m m.json", {"numpy", "pyarrow"}, {"joblib"}),
    ],
    ids=["help", "fit"],
)
def test_a_command_imports_only_what_it_needs(data, tmp_path, arguments, needed, spared):
    program = (
        f"import sys; sys.argv[1:] = {arguments.format(data).split()}\n"
        "from sparsestep.cli import main\n"
        "try: main()\n"
        "finally: print(*{name.split('.')[0] for name in sys.modules}, file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True
    )
    imported = set(done.stderr.split())
    assert needed <= imported
    assert imported.isdisjoint({"sklearn", "matplotlib", "pandas", *spared})


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_is_installed(tmp_path, shell):
    env = {"HOME": str(tmp_path), "SHELL": f"/bin/{shell}", "XDG_CONFIG_HOME": str(tmp_path)}
    env |= {"XDG_DATA_HOME": str(tmp_path)}
    run_process(tmp_path, "--install-completion", "--shell", shell, env=env)
    scripts = [file.read_text() for file in tmp_path.rglob("*") if file.is_file()]
    assert any("predict" in script and "--target" in script for script in scripts)


def test_names_are_text_and_nothing_else(tmp_path):
    """Names with markup, control characters and letters that the terminal does not know."""
    rng = np.random.default_rng(0)
    names = ["[bold]x[/bold]", "bell\x07\x1b[31m", "größe", "a,b"]
    X = rng.normal(size=(60, 4))
    table = {name: X[:, j] for j, name in enumerate(names)} | {"y": X @ [3.0, 2.0, 4.0, 1.0]}
    pq.write_table(pa.table(table), tmp_path / "t.parquet")
    done = run(tmp_path, "fit", "t.parquet", "-t", "y", "--criterion", "bic")
    assert "[bold]x[/bold]" in done.stdout and "größe" in done.stdout
    assert "\x07" not in done.stdout and "\x1b" not in done.stdout
    ascii_only = {"PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"}
    done = run_process(tmp_path, "fit", "t.parquet", "-t", "y", "--size", "4", env=ascii_only)
    assert "gr\\xf6\\xdfe" in done.stdout
    done = run(tmp_path, "fit", "t.parquet", "-t", "y", "--drop", "a,b", "--size", "3", "--json")
    assert {each["variable"] for each in json.loads(done.stdout)["kept"]} == set(names[:3])
    refused = run(tmp_path, "fit", "t.parquet", "-t", "bell\x07\x1b", code=2)
    assert "\x1b" not in refused.stderr


def test_all_commands_read_european_files(data, tmp_path):
    plain, other = tmp_path / "plain", tmp_path / "other"
    table = flats().to_pandas().drop(columns="w").replace({"city": {"Oslo": "Köln"}})
    commands = [
        ["fit", "t.csv", "-t", "price", "--one-hot", "-m", "m.json"],
        ["path", "t.csv", "-t", "price", "--one-hot"],
        ["moments", "t.csv", "-t", "price", "--drop", "city", "-o", "m.npz"],
        ["predict", "m.json", "t.csv", "-o", "p.csv", "--keep", "city"],
    ]
    plain.mkdir()
    other.mkdir()
    table.to_csv(plain / "t.csv", index=False)
    table.to_csv(other / "t.csv", sep=";", decimal=",", encoding="cp1252", index=False)
    for command in commands:
        done = run(other, *command, "--encoding", "cp1252")
        assert "Note: The comma is read as the decimal mark; --decimal . says" in done.stderr
        told = run(plain, *command)
        assert done.stdout == told.stdout
        assert "decimal" not in told.stderr
    assert (other / "p.csv").read_text() == (plain / "p.csv").read_text()
    table.to_csv(other / "t.csv", sep=":", decimal=",", index=False)
    done = run(other, *commands[0], "--separator", ":", "--decimal", ",")
    assert "decimal" not in done.stderr
    assert done.stdout == run(plain, *commands[0]).stdout


# -- what it refuses -------------------------------------------------------------------------


def csv(text, encoding="utf-8"):
    """A function that writes a CSV file of this text to a folder."""

    def write(folder):
        content = text if isinstance(text, bytes) else text.encode(encoding)
        (folder / "bad.csv").write_bytes(content)

    return write


def lines(*values, header="a,b,y"):
    """A small table with one line of its own."""
    good = [f"{i},{i * i % 7},{i % 5}" for i in range(20)]
    return csv("\n".join([header, *good, *values]) + "\n")


def cut(name, to, size=0.5):
    """A function that writes the first part of a file to a folder."""

    def write(folder):
        content = (folder / name).read_bytes()
        (folder / to).write_bytes(content[: int(size * len(content))])

    return write


def late_text(folder):
    """Text far behind the part of the file from which types are guessed."""
    rows = "\n".join(f"{i},1.5,{i % 5}" for i in range(200_000))
    (folder / "bad.csv").write_text(f"a,b,y\n{rows}\n1,oops,2\n")


def many_texts(folder):
    pq.write_table(
        pa.table({"id": [f"p{i}" for i in range(1500)], "y": np.arange(1500.0)}),
        folder / "bad.parquet",
    )


def other_columns(folder):
    moments = Moments.from_data(np.eye(100, 4), np.ones(100), feature_names=list("abcd"))
    moments.save(folder / "bad.npz")


def not_kept(folder):
    pq.write_table(flats(20).drop_columns(["rooms"]), folder / "bad.parquet")


def other_city(folder):
    table = flats(20).to_pydict()
    table["city"][7] = "Paris"
    pq.write_table(pa.table(table), folder / "bad.parquet")


def with_hole(folder):
    table = flats(20).to_pydict()
    table["size"][7] = None
    pq.write_table(pa.table(table), folder / "bad.parquet")


def one_city_with_holes(folder):
    table = flats(20).to_pydict()
    table["city"] = ["Bonn", None] * 10
    pq.write_table(pa.table(table), folder / "bad.parquet")


def city_missing(folder):
    """The city is missing, and the model kept the second of its indicators only."""
    table = flats(60)
    city = np.array(table["city"].to_pylist())
    price = 3 * table["size"].to_numpy() + 90 * (city == "Rome")
    table = table.select(["size", "city"]).append_column("price", pa.array(price))
    pq.write_table(table, folder / "rome.parquet")
    options = ("--one-hot", "--size", "2", "-m", "rome.json", "--quiet")
    run(folder, "fit", "rome.parquet", "-t", "price", *options)
    values = table.to_pydict()
    values["city"][7] = None
    pq.write_table(pa.table(values), folder / "bad.parquet")


def text_dates(folder):
    table = pa.table({"day": ["2016-07-01", "2016-07-02"] * 9, "a": range(18), "y": range(18)})
    pq.write_table(table, folder / "bad.parquet")


def other_name(folder):
    for path in (b"caf\xe9.csv", b"bad/caf\xe9.csv"):
        os.makedirs(folder / "bad", exist_ok=True)
        with open(os.path.join(os.fsencode(folder), path), "w") as file:
            file.write("a,b,y\n1,2,3\n")


def string_view(folder):
    table = pa.table({"city": pa.array(["a", "b"] * 9).cast(pa.string_view()), "y": range(18)})
    with pa.ipc.new_file(folder / "bad.arrow", table.schema) as writer:
        writer.write_table(table)


def some_files(folder):
    (folder / "bad").mkdir()
    pa.csv.write_csv(flats(20).drop_columns("city"), folder / "bad" / "0.csv")
    pa.csv.write_csv(flats(20), folder / "bad" / "1.csv")


def nothing(folder):
    """No file of its own."""


def empty_folder(folder):
    (folder / "bad").mkdir()


# The command, what its sentence must say, and what writes the files of the case.
REFUSED = [
    # files
    ("fit none.csv -t y", "no file or folder none.csv"),
    ("fit bad.arrow -t y", "'city' of bad.arrow holds text; encode it with --one-hot", string_view),
    (
        "fit bad.csv -t price --criterion bic",
        r"In rows 0 to 1 \(counted from 0\) of bad.csv: The target 'price' reaches 1e\+200 in size",
        csv("a,price\n1,1e200\n2,-1e200\n"),
    ),
    (
        "fit bad.csv -t price --cv 2",
        "The values of the target 'price' are too large or too small to be squared; rescale it",
        csv("a,price\n1,1e200\n2,-1e200\n"),
    ),
    (
        "fit bad.csv -t y",
        "'a' of bad.csv holds '1,775' .*; give the decimal mark by --decimal, or write numbers "
        "without separators of thousands, or leave it out with --drop a",
        csv("a;y\n1,775;2\n1,500;3\n"),
    ),
    (
        "predict model.json bad.csv -o out.parquet",
        "'size' of bad.csv holds '1,775' .*without separators of thousands.$",
        csv("size;rooms\n1,775;2\n1,500;3\n"),
    ),
    (
        "fit bad.parquet -t y --one-hot",
        "'day' of bad.parquet holds dates or times; .*--category day.*--drop day",
        text_dates,
    ),
    (
        "fit bad.csv -t y --drop b --category b",
        "list of features has no column 'b'",
        csv("a,b,y\n1,2,3\n"),
    ),
    (
        "fit bad.csv -t y --missing-category",
        "--missing-category .*--one-hot",
        csv("a,b,y\n1,2,3\n"),
    ),
    (
        "fit bad.csv -t y --criterion bic --always sice",
        "no column 'sice'; did you mean 'size'",
        csv("size,b,y\n1,2,3\n2,2,4\n"),
    ),
    (
        "fit bad.csv -t y --category id",
        "'id' of bad.csv holds .* only once",
        csv("id,b,y\n1,2,3\n2,2,4\n"),
    ),
    (
        os.fsdecode(b"fit caf\xe9.csv -t y"),
        "name of caf.\\.csv is not in UTF-8; rename",
        other_name,
    ),
    ("fit bad -t y", "folder bad holds a file whose name is not in UTF-8; rename", other_name),
    (
        "fit bad.csv -t y --drop b",
        "bad.csv .*a row takes more than a megabyte",
        csv("a,b,y\n1,x,2\n2," + 5_000_000 * "z" + ",3\n"),
    ),
    ("predict model.json t.csv", "predict needs --output or -o"),
    ("moments numbers.csv -t price", "moments needs --output or -o"),
    ("predict m.json t.csv -o", "-o requires an argument"),
    (
        "fit bad.csv -t y --rule 1se --criterion bic",
        "leave out --rule or --criterion",
        csv("a,b,y\n1,2,3\n"),
    ),
    ("fit bad.csv -t y --criterion bic", "at least 2 rows", csv("a,b,y\n1,2,3\n")),
    (f"fit {'a' * 300}.csv -t y", "^a{300}.csv cannot be used: file name too long"),
    ("fit 'none-*.csv' -t y", r"No file matches none-\*.csv"),
    ("fit bad -t y", "folder bad has no file that ends", empty_folder),
    (
        "fit bad.csv -t y",
        "'b' of bad.csv holds '\xe4' in row 20",
        lines("1,\xe4,3", header="a,b,y"),
    ),
    (
        "fit bad.csv -t y",
        "bad.csv is not in utf-8; give its encoding, such as cp1252",
        csv("gr\xf6\xdfe,y\n1,2\n3,4\n", "latin-1"),
    ),
    ("fit bad.csv -t y --separator ::", "a single ASCII character, not '::'", lines()),
    ("path site-0.npz --separator ';'", "is for tables"),
    ("fit bad.csv -t y", "bad.csv", csv(bytes(range(256)))),
    (
        "fit bad.csv -t y",
        r"'b' of bad.csv holds '\?' in row 20 .* 20 of the 21 .* correct it, or .* --drop b",
        lines("1,?,2"),
    ),
    (
        "fit bad.csv -t y --one-hot",
        r"'b' of bad.csv holds '\?' in row 20 .* 20 of the 21 .* correct it, or .* --drop b",
        lines("1,?,2"),
    ),
    (
        "fit bad.csv -t y --one-hot",
        "'id' of bad.csv holds texts most of which occur only once.* or .* --drop id",
        csv("".join(["id,a,y\n", *(f"p{i},{i % 7},{i % 5}\n" for i in range(50))])),
    ),
    ("fit bad.parquet -t price", "bad.parquet cannot be read", cut("flats.parquet", "bad.parquet")),
    # values
    ("fit bad.csv -t y", r"'b' has a missing value in row 20 .*--drop-missing", lines("1,,2")),
    (
        "fit bad.parquet -t price --one-hot",
        "Column 'city' has a missing value in row 1 .*--drop-missing",
        one_city_with_holes,
    ),
    ("fit bad.csv -t y --weight b", "The weight 'b' .* holds 'x' in row 20", lines("1,x,3")),
    (
        "fit bad.csv -t y --one-hot",
        "The target 'y' of bad.csv holds text; turn it into numbers",
        csv("a,y\n1,u\n2,v\n"),
    ),
    (
        "fit flats.csv -t price",
        "'city' of flats.csv holds text; encode it with --one-hot, or leave .* --drop city",
    ),
    # columns
    ("fit numbers.csv", "--target"),
    ("fit numbers.csv -t prize", "did you mean 'price'"),
    ("fit numbers.csv -t price --features size,rom", "no column 'rom'.*'rooms'"),
    ("fit numbers.csv -t price --drop flor", "did you mean 'floor'"),
    ("fit numbers.csv -t price --drop price", "'price' cannot be the target and"),
    # options
    ("fitt", 'Unknown command "fitt".* See: sparsestep --help'),
    ("fit numbers.csv -t price --alpa 3", "Unknown option: .*--alpa.* --help"),
    ("fit -t y", "DATA"),
    ("fit numbers.csv -t price --cv", "--cv requires an argument"),
    ("fit numbers.csv -t price --cv ten", "--cv: it must be a whole number, not 'ten'"),
    ("fit numbers.csv -t price --size 1.5", "--size: it .* not .1.5"),
    ("fit numbers.csv -t price --cv 2.6", "--cv: it .* not .2.6"),
    ("fit numbers.csv -t price --seed 1.7", "--seed: it .* not .1.7"),
    ("moments numbers.csv -t price -o new.npz --folds 2.6", "--folds: it .* not .2.6"),
    ("study --jobs 1.5", "--jobs: it .* not .1.5"),
    ("fit numbers.csv -t price --cv 5 --alpha 3", "--cv and --alpha exclude"),
    ("fit numbers.csv -t price --size 2 --criterion bic", "exclude each other"),
    ("fit numbers.csv -t price --alpha 3 --rule 1se", "--rule is for"),
    ("fit numbers.csv -t price --size 3 --shrink", "--shrink is for.*--size"),
    ("fit numbers.csv -t price --criterion dic", "dic.* for --criterion. Choose from"),
    ("fit numbers.csv -t price --cv 1", "--cv must be a whole number of at least 2"),
    ("fit numbers.csv -t price --alpha -1", "alpha must be finite and not negative"),
    ("fit numbers.csv -t price --size 9", "--size 9 is more than the 5 columns"),
    ("fit numbers.csv -t price --size -1", "--size must be a whole number"),
    ("fit numbers.csv -t price --alphas 1", "--alphas must be a whole number of at least"),
    ("fit numbers.csv -t price --alphas 1,x", "--alphas must be how many, or numbers"),
    # places for results
    ("fit numbers.csv -t price --model bad", "bad is a folder", empty_folder),
    ("fit numbers.csv -t price --model m.pkl", "must end in .json"),
    ("fit numbers.csv -t price --report r.pdf", "must end in .html or .htm"),
    ("predict model.json numbers.csv -o p.xlsx", "must end in .parquet, .csv or .arrow"),
    ("fit numbers.csv -t price --model none/m.json", "The folder none .* not exist"),
    ("fit numbers.csv -t price --model /proc/m.json", "/proc"),
    ("merge site-0.npz -o /dev/full", "/dev/full is no ordinary"),
    ("fit numbers.csv -t price -m a.json -r ./a.json", "must end in .html"),
    ("predict model.json numbers.csv -o numbers.csv", "would overwrite numbers.csv"),
    # models
    ("predict none.json flats.csv -o out.parquet", "none.json cannot be used"),
    ("predict flats.csv flats.csv -o out.parquet", "not a model file"),
    ("report bad", "bad cannot be used", empty_folder),
    ("report bad.json", "cut short or damaged", cut("model.json", "bad.json")),
    # predictions
    ("predict model.json bad.parquet -o out.parquet", "no column 'rooms'", not_kept),
    (
        "predict cities.json bad.parquet -o out.parquet",
        r"'city' holds 'Paris' in row 7 .*none of its 3 categories \('.*Bonn'.*--missing-as-null",
        other_city,
    ),
    (
        "predict model.json bad.parquet -o out.parquet",
        "'size' has a missing value in row 7 .*--missing-as-null",
        with_hole,
    ),
    (
        "predict rome.json bad.parquet -o out.parquet",
        "'city' has a missing value in row 7 .*--missing-as-null",
        city_missing,
    ),
    (
        "predict model.json bad.csv -o out.parquet --missing-as-null",
        "'size' has the value inf in row 1",
        csv("size,rooms,floor,noise,lift\n1,2,3,4,true\ninf,2,3,4,true\n"),
    ),
    (
        "predict model.json bad.csv -o out.parquet",
        "'size' of bad.csv holds text",
        csv("size,rooms,floor,noise,lift\nx,2,3,4,true\n"),
    ),
    (
        "predict model.json bad.csv -o out.parquet",
        "are no rows",
        csv("size,rooms,floor,noise,lift\n"),
    ),
    ("predict model.json numbers.csv -o out.parquet --keep id", "no column 'id'"),
    (
        "predict model.json bad.csv -o out.parquet",
        "The prediction is too large for a double in row 1",
        csv("size,rooms\n1,2\n1e308,1e308\n"),
    ),
    # moments
    ("merge bad.npz -o x.npz", "bad.npz", cut("site-0.npz", "bad.npz")),
    (
        "merge site-0.npz bad.npz -o x.npz",
        "bad.npz cannot be merged with site-0.npz",
        other_columns,
    ),
    ("fit site-0.npz bad.npz", "5 and of 4 columns", other_columns),
    ("merge flats.csv -o x.npz", "flats.csv is not a mom"),
    ("moments site-0.npz -t y -o x.npz", "moments already"),
    ("fit site-0.npz", "site-0.npz is a single fold"),
    ("fit site-0.npz site-1.npz --cv 3", "--cv 3 does"),
    (
        "fit site-0.npz site-1.npz -t size",
        "'size' is not the target in site-0.npz, but one of its columns.",
    ),
    ("path site-0.npz --drop size", "--drop is for tab"),
    ("fit site-0.npz flats.csv", "some are tables"),
    ("moments numbers.csv -t price -o x.npz --folds 0", "--folds must be"),
]


@pytest.fixture
def folder(data, tmp_path):
    """A folder of its own with links to the good files."""
    for file in data.iterdir():
        os.link(file, tmp_path / file.name)
    return tmp_path


@pytest.mark.parametrize(
    ("command", "message", "prepare"), [(*case, nothing)[:3] for case in REFUSED]
)
def test_bad_input_gets_one_sentence(folder, command, message, prepare):
    prepare(folder)
    before = {file: file.stat().st_mtime_ns for file in folder.rglob("*")}
    done = run(folder, *shlex.split(command), code=2)
    assert done.stdout == ""
    assert_one_sentence(done.stderr, message)
    assert {file: file.stat().st_mtime_ns for file in folder.rglob("*")} == before


def assert_one_sentence(text, message):
    """One line that ends as a sentence does, says this, and shows no part of a traceback."""
    assert text.count("\n") == 1 and text.endswith("\n"), text
    assert text.rstrip().endswith((".", "?", "--help")), text
    assert re.search(message, text), text
    assert "Traceback" not in text


# -- disks, signals and other accidents ------------------------------------------------------


def small_files():
    """No file may grow beyond a few bytes: a disk that is full."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (64, 64))
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)


@pytest.mark.parametrize(
    "arguments",
    [
        ["fit", "numbers.csv", "-t", "price", "--model", "out.json"],
        ["fit", "numbers.csv", "-t", "price", "--report", "out.html"],
        ["predict", "model.json", "flats.csv", "-o", "out.csv"],
        ["predict", "model.json", "flats.csv", "-o", "out.parquet"],
        ["moments", "numbers.csv", "-t", "price", "-o", "out.npz"],
        ["path", "numbers.csv", "-t", "price", "--plot", "out.svg"],
        ["path", "numbers.csv", "-t", "price", "-o", "out.arrow"],
    ],
    ids=lambda arguments: f"{arguments[0]} {arguments[-1]}",
)
def test_a_full_disk_leaves_nothing_behind_and_harms_nothing(folder, arguments):
    out = folder / arguments[-1]
    out.write_text("what was there before")
    before = sorted(os.listdir(folder))
    # matplotlib looks for its list of fonts in the home folder, which may have to be written.
    env = {"MPLCONFIGDIR": os.environ.get("MPLCONFIGDIR", str(Path.home() / ".config/matplotlib"))}
    done = run_process(folder, *arguments, code=2, env=env, preexec_fn=small_files)
    # NumPy before 2.2 complains about the file once more while it is thrown away.
    said = done.stderr.partition("Exception ignored")[0].splitlines(keepends=True)
    assert_one_sentence(said[-1], "file too large")
    assert out.read_text() == "what was there before"
    assert sorted(os.listdir(folder)) == before


def test_a_full_standard_output_is_said(data):
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [COMMAND, "fit", "numbers.csv", "-t", "price"],
            cwd=data,
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
        )
    assert done.returncode == 2
    assert_one_sentence(done.stderr, "cannot be written: no space left")


@pytest.mark.parametrize(
    "arguments",
    [
        ["--help"],
        ["--version"],
        ["fit", "numbers.csv", "-t", "price"],
        ["path", "numbers.csv", "-t", "price"],
        ["path", "numbers.csv", "-t", "price", "--json"],
    ],
    ids=" ".join,
)
def test_nobody_reads_the_output(data, arguments):
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run(
        [COMMAND, *arguments], cwd=data, stdout=writer, stderr=subprocess.PIPE, text=True
    )
    os.close(writer)
    assert done.returncode == 141
    assert done.stderr == ""


@pytest.fixture(scope="module")
def large(tmp_path_factory):
    """A table that takes seconds to read, and a model for it."""
    folder = tmp_path_factory.mktemp("large")
    block = pa.table({f"x{j}": np.arange(100_000) % (j + 7) / 8 for j in range(10)})
    block = block.append_column("y", block["x0"])
    with pa.csv.CSVWriter(folder / "large.csv", block.schema) as writer:
        for _ in range(30):
            writer.write_table(block)
    few = block.slice(0, 1000)
    X = few.drop_columns(["y"])
    save_model(SparseStep(alpha=0.0).fit(X, few["y"].to_numpy()), folder / "model.json")
    return folder


def opened(pid):
    """The names of the files that a process has open; none if it has ended."""
    names = []
    try:
        for link in os.listdir(f"/proc/{pid}/fd"):
            with suppress(FileNotFoundError):
                names.append(os.readlink(f"/proc/{pid}/fd/{link}"))
    except FileNotFoundError:
        return []
    return names


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
@pytest.mark.parametrize(
    "arguments",
    [
        ["fit", "large.csv", "-t", "y", "--model", "out.json"],
        ["predict", "model.json", "large.csv", "-o", "out.csv"],
    ],
    ids=["fit", "predict"],
)
def test_a_signal_leaves_nothing_behind(large, arguments, number):
    before = sorted(os.listdir(large))
    process = subprocess.Popen(
        [COMMAND, *arguments],
        cwd=large,
        env={**os.environ, **QUIET},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline and process.poll() is None:
        links = opened(process.pid)
        # It has begun to read, and to write if it writes while it reads.
        writing = any(link.endswith(".tmp") for link in links) or arguments[0] == "fit"
        if writing and any(link.endswith("large.csv") for link in links):
            break
    time.sleep(0.1)
    process.send_signal(number)
    out, error = process.communicate(timeout=120)
    assert process.returncode == 128 + number, out + error
    assert out == ""
    assert error == ("Interrupted.\n" if number == signal.SIGINT else "")
    assert sorted(os.listdir(large)) == before


def test_what_nobody_expected_is_one_sentence_too(data, tmp_path):
    """A fault in the program itself: a module that is broken."""
    (tmp_path / "sitecustomize.py").write_text(
        "import sparsestep.estimators.choosing as choosing\n"
        "def broken(*arguments): raise KeyError('inner')\n"
        "choosing.by_validation = broken\n"
    )
    env = {"PYTHONPATH": str(tmp_path)}
    done = run_process(data, "fit", "numbers.csv", "-t", "price", code=1, env=env)
    assert_one_sentence(done.stderr, r"unexpected .*KeyError: 'inner'.*SPARSESTEP_TRACEBACK=1")
    env["SPARSESTEP_TRACEBACK"] = "1"
    done = run_process(data, "fit", "numbers.csv", "-t", "price", code=1, env=env)
    assert "Traceback" in done.stderr and "in broken" in done.stderr
