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
from io import StringIO
from pathlib import Path
from types import SimpleNamespace
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
from numpy.testing import assert_allclose, assert_array_equal

from source_data import write
from sparsestep import Moments, SparseStep, SparseStepCV, SparseStepIC, load_model, read_moments
from sparsestep.cli import run_command
from sparsestep.model.file import read_document, save_model

COMMAND = Path(sys.executable).with_name("sparsestep")
QUIET = {"OPENBLAS_NUM_THREADS": "1", "COLUMNS": "100", "TERM": "dumb", "PYTHONHASHSEED": "0"}
NUMBERS = ["size", "rooms", "floor", "noise", "lift"]


def run(folder, command, *more, code=0):
    """Run a command in this process and in a folder; it must exit with this code."""
    out, error = StringIO(), StringIO()
    quiet = patch.dict(os.environ, QUIET)
    with chdir(folder), quiet, redirect_stdout(out), redirect_stderr(error):
        returned = run_command([*shlex.split(command), *map(str, more)])
    done = SimpleNamespace(stdout=out.getvalue(), stderr=error.getvalue())
    assert returned == code, done.stdout + done.stderr
    return done


def asked(folder, command):
    """What a command says in JSON, and nothing beside it."""
    done = run(folder, f"{command} --json")
    assert done.stderr == ""
    return json.loads(done.stdout)


def predicted(folder, arguments):
    """The table that `predict` writes."""
    run(folder, f"predict {arguments} -o predicted.parquet --quiet")
    return pq.read_table(folder / "predicted.parquet")["prediction"].to_numpy()


def kept_by(answer):
    """The coefficients of the variables in an answer of `fit`."""
    return {each["variable"]: each["coefficient"] for each in answer["kept"]}


def run_process(folder, command, code=0, env=None, **options):
    """Run the installed command in a folder; it must exit with this code."""
    options = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE} | options
    env = {**os.environ, **QUIET, **(env or {})}
    arguments = [COMMAND, *shlex.split(command)]
    done = subprocess.run(arguments, cwd=folder, env=env, text=True, timeout=300, **options)
    assert done.returncode == code, (done.stdout or "") + (done.stderr or "")
    return done


def flats(n=300, seed=0):
    """A table with text: the price depends on size, rooms and being in Oslo."""
    rng = np.random.default_rng(seed)
    size, rooms, floor = rng.normal(80, 20, n), rng.integers(1, 6, n), rng.integers(0, 9, n)
    city = rng.choice(["Bonn", "Oslo", "Rome"], n, p=[0.5, 0.25, 0.25])
    price = 3 * size + 20 * rooms + 90 * (city == "Oslo") + 10 * rng.normal(size=n)
    table = {"size": size, "rooms": rooms, "floor": floor, "noise": rng.normal(size=n)}
    table |= {"city": city.tolist(), "lift": rng.random(n) < 0.5, "w": rng.integers(1, 4, n)}
    return pa.table(table | {"price": price})


def flats_with(n, **changes):
    """The same with other values in some rows, given as ``column={row: value}``."""
    table = flats(n).to_pydict()
    for column, values in changes.items():
        for row, value in values.items():
            table[column][row] = value
    return pa.table(table)


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """A folder with tables, moments, folds and models."""
    folder = tmp_path_factory.mktemp("data")
    table = flats()
    numbers = table.drop_columns(["city", "w"])
    for name, content in (("flats.csv", table), ("flats.parquet", table), ("numbers.csv", numbers)):
        write(content, folder / name)
    pa.feather.write_feather(table, folder / "flats.arrow", compression="uncompressed")
    for part in range(3):
        piece = numbers.slice(100 * part, 100).to_pandas().astype(float)
        moments = Moments.from_data(piece[NUMBERS], piece["price"], feature_names=NUMBERS)
        moments.save(folder / f"site-{part}.npz")
    # A table in three folds, in six, and in three others; another table in three folds.
    write(table.slice(100), folder / "other.csv")
    columns = {"features": ["size", "rooms"]}
    for name, file, how in (
        ("a", "numbers.csv", {"folds": 3}),
        ("b", "numbers.csv", {"folds": 6}),
        ("c", "other.csv", {"folds": 3}),
        ("seed", "numbers.csv", {"folds": 3, "seed": 1}),
    ):
        for k, part in enumerate(read_moments(folder / file, "price", **columns, **how)):
            part.save(folder / f"{name}-fold-{k}.npz")
    read_moments(folder / "other.csv", "price", features=["size"]).save(folder / "part.npz")
    for one, other in (("a-fold-1", "copy"), ("part", "again")):
        shutil.copy(folder / f"{one}.npz", folder / f"{other}.npz")
    run(folder, "merge a-fold-*.npz -o whole.npz --quiet")
    run(folder, "fit numbers.csv --target price --size 2 --model model.json --quiet")
    run(folder, "fit flats.csv --target price --one-hot --drop w --model cities.json --quiet")
    return folder


@pytest.fixture
def folder(data, tmp_path):
    """A folder of its own with links to the good files."""
    for file in data.iterdir():
        os.link(file, tmp_path / file.name)
    return tmp_path


# -- what it does ----------------------------------------------------------------------------


def test_fit_prints_the_summary_and_writes_model_and_report(data, tmp_path):
    file = data / "numbers.csv"
    options = "--target price --cv 5 --rule 1se --model m.json --report r.html"
    done = run(tmp_path, f"fit {file} {options}")
    for line in str(load_model(tmp_path / "m.json").summary()).splitlines():
        assert line in done.stdout
    assert "Model: m.json\nReport: r.html\n" in done.stdout
    assert "<html" in (tmp_path / "r.html").read_text()
    assert sorted(os.listdir(tmp_path)) == ["m.json", "r.html"]
    question = read_document(tmp_path / "m.json")["question"]
    assert (question["source"], question["target"], question["rows"]) == (str(file), ["price"], 300)
    assert question["choice"]["folds"] == 5 and question["choice"]["rule"] == "1se"


@pytest.mark.parametrize(
    ("options", "estimator", "folds"),
    [
        ("", SparseStepCV(cv=10), 10),
        ("--cv 4 --polish", SparseStepCV(cv=4, polish="swap"), 4),
        ("--criterion ebic", SparseStepIC("ebic"), None),
        ("--size 2", SparseStep(n_nonzero=2), None),
        ("--alpha 300.5", SparseStep(300.5), None),
        ("--alpha 1e5 --always noise", SparseStep(1e5, penalty_factor=[1.0, 1.0, 0.0]), None),
        ("--size 2 --always noise", SparseStep(n_nonzero=2, penalty_factor=[1, 1, 0]), None),
    ],
)
def test_fit_is_the_estimator_on_the_same_folds(data, tmp_path, options, estimator, folds):
    columns = "--target price --features size,rooms,noise --weight w --seed 3"
    run(tmp_path, f"fit {data}/flats.parquet {columns} --model m.json --quiet {options}")
    source = {"features": ["size", "rooms", "noise"], "weight": "w"}
    moments = read_moments(data / "flats.parquet", "price", folds=folds, seed=3, **source)
    estimator.fit_moments(moments)
    model = load_model(tmp_path / "m.json")
    assert model.get_params() == estimator.get_params()
    assert_array_equal(model.coef_, estimator.coef_)
    assert str(model.summary()) == str(estimator.summary())


def test_always_keeps_all_indicators_of_a_text_and_columns_of_moments(data):
    flat = "flats.csv -t price --one-hot --always city"
    indicators = {"city=Oslo", "city=Rome"}
    assert indicators <= set(kept_by(asked(data, f"fit {flat} --criterion bic")))
    for model in asked(data, f"path {flat}")["models"]:
        assert indicators <= set(model["coefficients"])
    assert "noise" in kept_by(asked(data, "fit site-*.npz --always noise"))


def test_fit_reads_folders_patterns_and_lists(data, tmp_path):
    for part in range(3):
        write(PLAIN.slice(100 * part, 100), tmp_path / f"{part}.parquet")
    outputs = {
        run(tmp_path, f"fit {source} -t price").stdout
        for source in (".", "*.parquet", "0.parquet 1.parquet 2.parquet")
    }
    assert outputs == {run(data, "fit flats.arrow -t price --drop city").stdout}


def test_categories_and_columns_of_folders_go_together(data, tmp_path):
    table = flats().drop_columns(["w"])
    for year, start in ((2023, 0), (2024, 150)):
        (tmp_path / f"year={year}").mkdir()
        write(table.slice(start, 150), tmp_path / f"year={year}" / "a.parquet")
    told = asked(tmp_path, "fit . -t price --one-hot --always year")
    assert told["variables"] == 8 and {"year", "city=Oslo"} <= set(kept_by(told))


def with_columns(table, **columns):
    for name, values in columns.items():
        table = table.append_column(name, pa.array(values))
    return table


def powers():
    t = np.linspace(1, 2, 60)
    target = np.sin(9 * t) + 0.01 * np.cos(500 * t)
    return pa.table({**{f"t{k}": t**k for k in range(1, 8)}, "price": target})


PLAIN = flats().drop_columns(["city"])
FEW_ROWS = np.random.default_rng(0).normal(size=(30, 80))
TABLES = {
    "constant text": with_columns(PLAIN, land=["NO"] * 300, year=[2024] * 300),
    "many categories": with_columns(flats(), street=[f"street {i % 40}" for i in range(300)]),
    "few rows": pa.table({"price": FEW_ROWS[:, 0], **{f"v{j}": FEW_ROWS[:, j] for j in range(80)}}),
    "powers": powers(),
    "survey": with_columns(PLAIN, survey=1e4 * PLAIN["w"].to_numpy()),
    "few missing": flats_with(50, size={3: None}, rooms={7: None}).drop_columns(["city"]),
    "no weight": flats_with(
        90, size=dict.fromkeys(range(12)), w=dict.fromkeys(range(12, 28), 0.0)
    ).drop_columns(["city"]),
    "most missing": flats_with(
        60, floor=dict.fromkeys(range(35)), city=dict.fromkeys(range(10, 20))
    ).drop_columns(["w"]),
}
LOST = r"(?m)^Note: The columns kept are nearly collinear .* about 0 digits .* leave some out\.$"
ADVICE = "--drop, .*--missing-category"


@pytest.mark.parametrize(
    ("table", "command", "said", "not_said"),
    [
        ("constant text", "fit {} --one-hot", "Constant, .*: 'land=NO', 'year'", "size|weights"),
        ("many categories", "fit {} --one-hot --size 3", "'street' .*39 .*--drop street", "'city'"),
        ("few rows", "fit {} --criterion aic", r"extended BIC \(ebic\) or cross", "criterion="),
        ("powers", "fit {} --alpha 1e-9", LOST, "Warning|memory"),
        ("powers", "moments {} -o t.npz && fit t.npz --alpha 1e-9", LOST, "Warning|memory"),
        ("powers", "path {} --alphas 0.0", "condition number .* digits", "Warning"),
        ("survey", "fit {} --alpha 9 --weight survey", "weights of the 300 rows add up to", "half"),
        ("few missing", "fit {} --drop-missing", "2 of 50 rows.*1 in 'size', 1 in 'rooms'", "half"),
        *(
            ("no weight", f"{command} --weight w --drop-missing", "12 of 90 rows", "half")
            for command in ("fit {}", "path {}", "moments {} -o m.npz")
        ),
        *(
            ("most missing", f"{command} --one-hot --drop-missing", said, "Warning")
            for command in ("fit {}", "path {}", "moments {} -o m.npz")
            for said in ("35 of 60 rows, more than half.*35 in 'floor', 10 in 'city'", ADVICE)
        ),
    ],
)
def test_notes_go_to_standard_error_or_into_json(tmp_path, table, command, said, not_said):
    write(TABLES[table], tmp_path / "t.parquet")
    *before, command = command.format("t.parquet -t price").split(" && ")
    for each in before:
        run(tmp_path, each)
    done = run(tmp_path, command)
    assert re.search(said, done.stderr)
    assert not re.search(not_said, done.stderr)
    assert run(tmp_path, f"{command} --quiet").stderr == ""
    notes = [f"Note: {note}" for note in asked(tmp_path, command)["notes"]]
    assert sum(bool(re.search(said, note)) for note in notes) == 1


def test_an_average_is_told_with_its_weights(tmp_path):
    write(PLAIN, tmp_path / "t.parquet")
    fit = "fit t.parquet -t price -m m.json --rule"
    told = asked(tmp_path, f"{fit} average --shrink")
    model = load_model(tmp_path / "m.json")
    weights = zip(model.feature_names_in_, model.inclusion_, strict=True)
    shown = {each["variable"]: each["inclusion"] for each in told["kept"]}
    assert shown == {name: weight for name, weight in weights if weight > 0.5}
    assert told["shrinkage"] == model.shrinkage_ and told["cv_error"] is None
    assert told["cv_error_of_choice"] > 0
    shown = run(tmp_path, f"{fit} average --shrink -r r.html").stdout
    assert "inclusion" in shown and "nan" not in shown
    assert asked(tmp_path, f"{fit} paired")["chosen_by"].endswith("paired")


@pytest.mark.parametrize("ending", ["parquet", "csv"])
def test_categories_from_codes_and_missing_values(tmp_path, ending):
    """The model is that of the table encoded by hand, and predicts tables that are not."""
    rng = np.random.default_rng(0)
    zone = rng.choice([9, 10, 11], 200, p=[0.5, 0.3, 0.2])
    city = rng.choice(["Rome", "Oslo", None], 200, p=[0.5, 0.3, 0.2])
    size = rng.normal(size=200)
    price = size + 3 * (zone == 11) + 5 * np.equal(city, None) + 0.1 * rng.normal(size=200)
    table = pa.table({"zone": zone, "city": city.tolist(), "size": size, "price": price})
    write(table, tmp_path / "t.parquet")
    table.to_pandas().to_csv(tmp_path / "t.csv", index=False)
    options = "--one-hot --missing-category --category zone --size 3"
    answer = asked(tmp_path, f"fit t.{ending} -t price {options} -m m.json")
    assert answer["variables"] == 5 and answer["rows"] == 200
    hand = np.column_stack([zone == 11, np.equal(city, None), size, np.ones(200)]).astype(float)
    right = np.linalg.lstsq(hand, price)[0]
    expected = dict(zip(["zone=11", "city=(missing)", "size"], right[:3], strict=True))
    assert kept_by(answer) == pytest.approx(expected, rel=1e-6)
    for new in ("parquet", "csv"):
        assert_allclose(predicted(tmp_path, f"m.json t.{new}"), hand @ right, rtol=1e-6)


def test_the_numbers_of_rows_that_pandas_writes_are_no_variable(data, tmp_path):
    pd.read_csv(data / "numbers.csv").to_csv(tmp_path / "indexed.csv")
    done = run(tmp_path, "fit indexed.csv -t price --criterion bic")
    assert done.stderr == "Note: The first column has no name and is left out.\n"
    assert done.stdout == run(data, "fit numbers.csv -t price --criterion bic").stdout


# -- moments and folds -----------------------------------------------------------------------


def test_fit_from_moments_is_fit_from_their_table(data, tmp_path):
    run(tmp_path, f"fit {data}/site-*.npz -t price --model folds.json --quiet")
    assert read_document(tmp_path / "folds.json")["question"]["choice"]["folds"] == 3
    done = run(tmp_path, f"merge {data}/site-*.npz -o all.npz")
    assert done.stdout == "300 rows from 3 files, 5 columns\nMoments: all.npz\n"
    merged = asked(tmp_path, "fit all.npz -t price --criterion bic")
    direct = asked(data, "fit numbers.csv -t price --criterion bic")
    assert list(kept_by(merged)) == list(kept_by(direct))
    named = run(data, "fit site-0.npz site-1.npz site-2.npz --json")
    assert run(data, "fit site-*.npz --json").stdout == named.stdout
    assert asked(data, "path site-[0-9].npz")["rows"] == 300
    assert merged["alpha"] == pytest.approx(direct["alpha"], rel=1e-9)


def test_moments_say_when_they_hold_rows(data, tmp_path):
    many = asked(data, f"moments numbers.csv -t price -o {tmp_path}/many.npz")
    assert many["files_that_hold_rows"] == []
    assert Moments.load(tmp_path / "many.npz").feature_names == tuple(NUMBERS)
    (tmp_path / "few.csv").write_text("a,b,c,y\n1,2,3,4\n2,5,1,3\n")
    done = run(tmp_path, "moments few.csv -t y -o few.npz")
    assert "few.npz holds the rows themselves" in done.stderr
    assert Moments.load(tmp_path / "few.npz").is_thin


def test_moments_in_folds_are_the_folds_of_fit(data, tmp_path):
    table = f"{data}/flats.csv -t price --features size,rooms --seed 5"
    files = asked(tmp_path, f"moments {table} --folds 4 -o m.npz")["files"]
    assert files == [f"m-fold-{fold}.npz" for fold in range(4)] == sorted(os.listdir(tmp_path))
    run(tmp_path, "fit --model a.json --quiet", *files)
    assert read_document(tmp_path / "a.json")["question"]["target"] == ["price"]
    done = run(tmp_path, "fit -t prize", *files, code=2)
    assert_one_sentence(done.stderr, "m-fold-0.npz is 'price', not 'prize'")
    run(tmp_path, f"fit {table} --cv 4 --model b.json --quiet")
    one, other = load_model(tmp_path / "a.json"), load_model(tmp_path / "b.json")
    assert_array_equal(one.coef_, other.coef_)
    assert_array_equal(one.mse_path_, other.mse_path_)


def test_the_same_fold_of_several_tables_is_that_of_all_their_rows(folder):
    for k in range(3):
        run(folder, f"merge a-fold-{k}.npz c-fold-{k}.npz -o all-{k}.npz --quiet")
    run(folder, "fit all-*.npz --quiet")
    run(folder, "merge all-*.npz -o all.npz --quiet")
    assert Moments.load(folder / "all.npz").n_samples == 500


def test_folds_overwrite_older_ones_of_the_same_number(folder):
    before = sorted(os.listdir(folder))
    run(folder, f"{FOLDS_OF_B} 6 --seed 1")
    assert sorted(os.listdir(folder)) == before


# -- the path --------------------------------------------------------------------------------


def test_path_prints_writes_and_draws(data, tmp_path):
    path = f"path {data}/numbers.csv -t price"
    # Texts as texts, so that they can be found in the picture.
    (tmp_path / "matplotlibrc").write_text("svg.fonttype: none\n")
    done = run(tmp_path, f"{path} --alphas sizes -o path.csv --plot path.svg --standardized")
    lines = done.stdout.splitlines()
    assert lines[0].split()[:3] == ["alpha", "variables", "R2"]
    assert [line.split()[1] for line in lines[1:7]] == ["0", "1", "2", "3", "4", "5"]
    assert lines[2].endswith("+size") and lines[3].endswith("+rooms")
    table = pa.csv.read_csv(tmp_path / "path.csv")
    assert table.column_names[-5:] == NUMBERS and table["n_nonzero"].to_pylist() == [*range(6)]
    assert "effect of one standard deviation" in (tmp_path / "path.svg").read_text()
    run(tmp_path, f"{path} --plot path.svg --quiet")
    assert "one standard deviation" not in (tmp_path / "path.svg").read_text()
    models = asked(data, "path site-0.npz --alphas 1e9,10")["models"]
    assert [model["alpha"] for model in models] == [1e9, 10.0]
    assert models[0]["coefficients"] == {}


# -- predictions -----------------------------------------------------------------------------


@pytest.mark.parametrize("ending", ["csv", "parquet", "arrow"])
def test_predict_gives_the_model_s_predictions(data, tmp_path, ending):
    out = tmp_path / f"out.{ending}"
    done = run(data, f"predict cities.json flats.{ending} -o {out} --keep city,price")
    assert done.stdout == f"Predictions of 300 rows: {out}\n"
    result = ds.dataset(out, format=ending).to_table()
    assert result.column_names == ["city", "price", "prediction"]
    table = flats()
    assert result["city"].to_pylist() == table["city"].to_pylist()
    model = load_model(data / "cities.json")
    city = np.array(table["city"].to_pylist())
    columns = {f"city={name}": city == name for name in ("Oslo", "Rome")}
    columns |= {name: table[name].to_numpy() for name in NUMBERS}
    X = np.column_stack([columns[name] for name in model.feature_names_in_]).astype(float)
    expected = X @ model.coef_ + model.intercept_
    assert_allclose(result["prediction"].to_numpy(), expected, rtol=1e-12)


def test_predict_carries_columns_of_csv_files_as_they_are(data, tmp_path):
    values = {
        "zip": ["007", "010", ""],
        "id": ["12345678901234567890", "1e5", "1.50"],
        "code": ["NA", "null", "true"],
        "day": ["2020-01-01", "2021-02-03 04:05", "x"],
    }
    other = values | {"id": ["7", "7", "7"]}
    for seed, (name, carried) in enumerate({"a": values, "b": other}.items()):
        frame = flats(3, seed).to_pandas().assign(**carried)
        frame.to_csv(tmp_path / f"{name}.csv", index=False)
    keep = "--keep zip,id --keep code,day,city"
    run(tmp_path, f"predict {data}/cities.json a.csv b.csv {keep} -o out.csv")
    written = pd.read_csv(tmp_path / "out.csv", dtype=str, keep_default_na=False)
    for name in values:
        assert written[name].tolist() == values[name] + other[name]
    assert written["prediction"].ne("").all()


@pytest.mark.parametrize("ending", ["arrow", "parquet", "csv"])
def test_predict_carries_categories_of_several_files(data, tmp_path, ending):
    cities = []
    for seed in (1, 2):
        table = flats(3 + seed, seed)
        cities += table["city"].to_pylist()
        codes = table["city"].combine_chunks().dictionary_encode()
        write(table.set_column(4, "city", codes), tmp_path / f"{seed}.parquet")
    predict = f"predict {data}/model.json 1.parquet 2.parquet --keep city"
    run(tmp_path, f"{predict} -o out.{ending}")
    written = ds.dataset(tmp_path / f"out.{ending}", format=ending).to_table()
    assert written["city"].to_pylist() == cities


def test_a_file_that_is_not_read_is_overwritten(folder):
    new_folder(folder)
    for given in ("new", "file://{}/new"):
        # Hidden in a folder, so not read.
        (folder / "new" / "_old.csv").write_text("")
        run(folder, f"path {given} -t price -o new/_old.csv --quiet".format(folder))
        assert (folder / "new" / "_old.csv").stat().st_size


def test_a_model_of_moments_knows_the_categories_of_the_table(data, tmp_path):
    run(tmp_path, f"moments {data}/flats.csv -t price --one-hot --drop w -o m.npz --quiet")
    run(tmp_path, "fit m.npz --criterion bic -m m.json --quiet")
    one, other = (read_document(file) for file in (tmp_path / "m.json", data / "cities.json"))
    assert one["question"]["one_hot"] == other["question"]["one_hot"] != []
    assert predicted(tmp_path, f"m.json {data}/flats.csv").shape == (300,)


def test_predict_leaves_out_what_is_missing_or_never_seen_if_asked_to(data, tmp_path):
    table = flats_with(20, city={7: "Paris"}, size={9: None})
    for model in ("cities", "model"):
        # Only the columns that the model kept are needed.
        kept = load_model(data / f"{model}.json").summary().to_frame().index
        columns = dict.fromkeys(name.partition("=")[0] for name in kept)
        write(table.select([*columns]), tmp_path / "new.parquet")
        predict = f"predict {data}/{model}.json new.parquet -o out.parquet --missing-as-null"
        missing = [7, 9] if model == "cities" else [9]
        assert f"20 rows, {len(missing)} of them missing" in run(tmp_path, predict).stdout
        result = pq.read_table(tmp_path / "out.parquet")["prediction"]
        assert np.flatnonzero(result.is_null()).tolist() == missing


def test_readers_keep_the_row_of_a_missing_prediction(data, tmp_path):
    """An empty line, which a CSV file of one column would have, is passed over by most of them."""
    missing = dict.fromkeys([0, 5, 39])
    write(flats_with(40, size=missing).select(["size", "rooms"]), tmp_path / "new.parquet")
    predict = f"{data}/model.json new.parquet --missing-as-null"
    right = predicted(tmp_path, predict)
    assert np.flatnonzero(np.isnan(right)).tolist() == [*missing]
    out = tmp_path / "out.csv"
    for keep in ("", "--keep size"):
        run(tmp_path, f"predict {predict} -o out.csv {keep} --quiet")
        columns = {
            "pandas": pd.read_csv(out)["prediction"],
            "pyarrow": pa.csv.read_csv(out)["prediction"],
            "polars": pl.read_csv(out)["prediction"],
            "numpy": np.genfromtxt(out, delimiter=",", skip_header=1, ndmin=2)[:, -1],
        }
        for reader, column in columns.items():
            assert_allclose(np.asarray(column), right, rtol=1e-12, err_msg=reader)


def test_predict_with_several_targets_and_with_none_kept(data, tmp_path):
    table = flats(60).select(["size", "rooms"])
    y = np.column_stack(table.columns) @ [[1.0, 0.0], [2.0, 3.0]]
    for alpha in (1.0, 1e12):
        save_model(SparseStep(alpha).fit(table, y), tmp_path / "m.json", target=["a", "b"])
        run(tmp_path, f"predict m.json {data}/flats.csv -o out.csv --quiet")
        result = pa.csv.read_csv(tmp_path / "out.csv")
        assert result.column_names == ["prediction of a", "prediction of b"]
        assert result.num_rows == 300
    assert_allclose(result["prediction of a"].to_numpy(), y[:, 0].mean())


# -- the command itself ----------------------------------------------------------------------


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


def test_report_and_demo_write_a_page(data, tmp_path):
    shutil.copy(data / "model.json", tmp_path / "m.json")
    assert run(tmp_path, "report m.json").stdout == "Report: m.html\n"
    run(tmp_path, "report m.json -o other.html --quiet")
    assert (tmp_path / "m.html").read_text() == (tmp_path / "other.html").read_text()
    done = run(tmp_path, "demo")
    for words in ("442 patients, 64 candidate variables", "SparseStep", "lasso"):
        assert words in done.stdout
    assert done.stdout.endswith("Report: sparsestep-demo.html\n")
    written = ["m.html", "m.json", "other.html", "sparsestep-demo.html"]
    assert sorted(os.listdir(tmp_path)) == written


def test_python_m_is_the_command(tmp_path):
    program = [sys.executable, "-m", "sparsestep", "--version"]
    done = subprocess.run(program, capture_output=True, text=True)
    assert done.stdout == run_process(tmp_path, "--version").stdout == "0.1.0\n"


@pytest.mark.parametrize(
    "command", ["", "demo", "fit", "path", "predict", "moments", "merge", "report", "study"]
)
def test_help_has_examples_and_flags_without_a_negative_form(tmp_path, command):
    told = run(tmp_path, f"{command} --help").stdout
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
    program = [sys.executable, "-c", program]
    done = subprocess.run(program, cwd=tmp_path, capture_output=True, text=True)
    imported = set(done.stderr.split())
    assert needed <= imported
    assert imported.isdisjoint({"sklearn", "matplotlib", "pandas", *spared})


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_is_installed(tmp_path, shell):
    env = dict.fromkeys(["HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME"], str(tmp_path))
    command = f"--install-completion --shell {shell}"
    run_process(tmp_path, command, env=env | {"SHELL": f"/bin/{shell}"})
    scripts = [file.read_text() for file in tmp_path.rglob("*") if file.is_file()]
    assert any("predict" in script and "--target" in script for script in scripts)


def test_names_are_text_and_nothing_else(tmp_path):
    """Names with markup, control characters and letters that the terminal does not know."""
    names = ["[bold]x[/bold]", "bell\x07\x1b[31m", "größe", "a,b"]
    X = np.random.default_rng(0).normal(size=(60, 4))
    table = dict(zip([*names, "y"], [*X.T, X @ [3.0, 2.0, 4.0, 1.0]], strict=True))
    write(pa.table(table), tmp_path / "t.parquet")
    done = run(tmp_path, "fit t.parquet -t y --criterion bic")
    assert "[bold]x[/bold]" in done.stdout and "größe" in done.stdout
    assert "\x07" not in done.stdout and "\x1b" not in done.stdout
    ascii_only = {"PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"}
    done = run_process(tmp_path, "fit t.parquet -t y --size 4", env=ascii_only)
    assert "gr\\xf6\\xdfe" in done.stdout
    assert set(kept_by(asked(tmp_path, "fit t.parquet -t y --drop a,b --size 3"))) == {*names[:3]}
    refused = run(tmp_path, "fit t.parquet -t", "bell\x07\x1b", code=2)
    assert "\x1b" not in refused.stderr


def test_all_commands_read_european_files(tmp_path):
    plain, other = tmp_path / "plain", tmp_path / "other"
    table = flats().to_pandas().drop(columns="w").replace({"city": {"Oslo": "Köln"}})
    plain.mkdir()
    other.mkdir()
    table.to_csv(plain / "t.csv", index=False)
    table.to_csv(other / "t.csv", sep=";", decimal=",", encoding="cp1252", index=False)
    fit = "fit t.csv -t price --one-hot -m m.json"
    for command in (
        fit,
        "path t.csv -t price --one-hot",
        "moments t.csv -t price --drop city -o m.npz",
        "predict m.json t.csv -o p.csv --keep city",
    ):
        done, told = run(other, f"{command} --encoding cp1252"), run(plain, command)
        assert "Note: The comma is read as the decimal mark; --decimal . says" in done.stderr
        assert done.stdout == told.stdout
        assert "decimal" not in told.stderr
    assert (other / "p.csv").read_text() == (plain / "p.csv").read_text()
    table.to_csv(other / "t.csv", sep=":", decimal=",", index=False)
    done = run(other, f"{fit} --separator : --decimal ,")
    assert "decimal" not in done.stderr
    assert done.stdout == run(plain, fit).stdout


# -- what it refuses -------------------------------------------------------------------------


def csv(text):
    """A function that writes a CSV file of this text to a folder."""
    return lambda folder: (folder / "bad.csv").write_text(text)


def lines(*values):
    """A small table with lines of its own at the end."""
    good = [f"{i},{i * i % 7},{i % 5}" for i in range(20)]
    return csv("\n".join(["a,b,y", *good, *values]) + "\n")


def parquet(table):
    """A function that writes a table to a folder."""
    return lambda folder: write(table, folder / "bad.parquet")


def cut(name, to):
    """A function that writes the first half of a file to a folder."""

    def write_half(folder):
        content = (folder / name).read_bytes()
        (folder / to).write_bytes(content[: len(content) // 2])

    return write_half


def other_columns(folder):
    moments = Moments.from_data(np.eye(100, 4), np.ones(100), feature_names=list("abcd"))
    moments.save(folder / "bad.npz")


def city_missing(folder):
    """The city is missing, and the model kept the second of its indicators only."""
    table = flats(60)
    rome = np.equal(table["city"].to_pylist(), "Rome")
    price = 3 * table["size"].to_numpy() + 90 * rome
    columns = table.select(["size", "city"])
    write(columns.append_column("price", pa.array(price)), folder / "rome.parquet")
    run(folder, "fit rome.parquet -t price --one-hot --size 2 -m rome.json --quiet")
    write(flats_with(60, city={7: None}), folder / "bad.parquet")


def other_name(folder):
    (folder / "bad").mkdir()
    for path in (b"caf\xe9.csv", b"bad/caf\xe9.csv"):
        Path(os.fsdecode(os.path.join(os.fsencode(folder), path))).write_text("a,b,y\n1,2,3\n")


def string_view(folder):
    table = pa.table({"city": pa.array(["a", "b"] * 9).cast(pa.string_view()), "y": range(18)})
    with pa.ipc.new_file(folder / "bad.arrow", table.schema) as writer:
        writer.write_table(table)


def links(folder):
    (folder / "bad.csv").symlink_to("numbers.csv")
    os.link(folder / "numbers.csv", folder / "nut.csv")


def empty_folder(folder):
    (folder / "bad").mkdir()


def new_folder(folder):
    """A folder of two tables, and a link to one of them."""
    (folder / "new").mkdir()
    for name in ("a.csv", "b.csv"):
        shutil.copy(folder / "numbers.csv", folder / "new" / name)
    (folder / "link.csv").symlink_to("new/a.csv")


HUGE = csv("a,price\n1,1e200\n2,-1e200\n")
ONE_ROW, TWO_ROWS = csv("a,b,y\n1,2,3\n"), csv("size,b,y\n1,2,3\n2,2,4\n")
DAYS = pa.table({"day": ["2016-07-01", "2016-07-02"] * 9, "a": range(18), "y": range(18)})
LONG = csv("a,b,y\n1,x,2\n2," + 5_000_000 * "z" + ",3\n")
IDS = csv("".join(["id,a,y\n", *(f"p{i},{i % 7},{i % 5}\n" for i in range(50))]))
THOUSANDS = csv("size;rooms\n1,775;2\n1,500;3\n")
ONE_CATEGORY = parquet(pa.table({"c": ["Bonn", None] * 10, "a": range(20), "y": range(20)}))
PARIS, HOLE = parquet(flats_with(20, city={7: "Paris"})), parquet(flats_with(20, size={7: None}))
INFINITE, TOO_LARGE = csv("size,rooms\n1,2\ninf,2\n"), csv("size,rooms\n1,2\n1e308,1e308\n")
UNSEEN = r"'city' holds 'Paris' in row 7 .* 3 categories \('.*Bonn'.*--missing-as-null"
MISSING = "has a missing value in row 7 .*--missing-as-null"
FOLDS_OF_B = "moments numbers.csv -t price --features size,rooms -o b.npz --quiet --folds"
OVERWRITTEN = "would overwrite .*new/a.csv, which is read; give it"
NO_NUMBER = r"'b' of bad.csv holds '\?' in row 20 .* 20 of the 21 .* correct it, or .* --drop b"
# The command, what its sentence must say, and what writes the files of the case.
REFUSED = [
    # files
    ("fit none.csv -t y", "no file or folder none.csv"),
    ("fit bad.arrow -t y", "'city' of bad.arrow holds text; .*--one-hot", string_view),
    (os.fsdecode(b"fit caf\xe9.csv -t y"), r"caf.\.csv is not in UTF-8; rename", other_name),
    ("fit bad -t y", "folder bad holds a file .* not in UTF-8; rename", other_name),
    ("fit bad.csv -t y --drop b", "bad.csv .*a row takes more than a megabyte", LONG),
    (f"fit {'a' * 300}.csv -t y", "^a{300}.csv cannot be used: file name too long"),
    ("fit bad.csv -t y --separator ::", "a single ASCII character, not '::'", lines()),
    ("path site-0.npz --separator ';'", "--separator is for tables"),
    ("fit bad.parquet -t price", "bad.parquet cannot be read", cut("flats.parquet", "bad.parquet")),
    ("fit numbers.csv numbers.csv -t price", "numbers.csv is given twice"),
    ("path numbers.csv ./numbers.csv -t price", r"numbers\.csv are the same file"),
    ("fit numbers.csv bad.csv -t price", r"bad\.csv are the same file", links),
    ("moments [bn]u*.csv -o new.npz -t price", r"nu\w+\.csv are the same file", links),
    # values
    ("fit bad.csv -t price --cv 2", "'price' are too large or too small .*; rescale", HUGE),
    ("fit bad.csv -t rooms", "'size' .* '1,775' .* --decimal, .* --drop size", THOUSANDS),
    ("predict model.json bad.csv -o p.csv", "'size' .* '1,775' .*thousands.$", THOUSANDS),
    ("fit bad.csv -t y", NO_NUMBER, lines("1,?,2")),
    ("fit bad.csv -t y --one-hot", NO_NUMBER, lines("1,?,2")),
    ("fit bad.csv -t y --one-hot", "'id' of bad.csv .* only once.* or .* --drop id", IDS),
    ("fit bad.csv -t y", r"'b' has a missing value in row 20 .*--drop-missing", lines("1,,2")),
    ("fit bad.parquet -t y --one-hot", "'c' .* missing .* row 1 .*--drop-missing", ONE_CATEGORY),
    ("fit bad.csv -t y --weight b", "The weight 'b' .* holds 'x' in row 20", lines("1,x,3")),
    ("fit bad.csv -t y --one-hot", "target 'y' of bad.csv holds text", csv("a,y\n1,u\n2,v\n")),
    ("fit flats.csv -t price", "'city' of flats.csv holds text; .*--one-hot, .* --drop city"),
    ("fit bad.csv -t y --criterion bic", "at least 2 rows", ONE_ROW),
    # columns
    ("fit numbers.csv", "--target"),
    ("fit numbers.csv -t prize", "did you mean 'price'"),
    ("fit numbers.csv -t price --features size,rom", "no column 'rom'.*'rooms'"),
    ("fit numbers.csv -t price --drop flor", "did you mean 'floor'"),
    ("fit numbers.csv -t price --drop price", "'price' cannot be the target and"),
    ("fit bad.parquet -t y --one-hot", "'day' .*--category day.*--drop day", parquet(DAYS)),
    ("fit bad.csv -t y --drop b --category b", "list of features has no column 'b'", ONE_ROW),
    ("fit bad.csv -t y --missing-category", "--missing-category .*--one-hot", ONE_ROW),
    ("fit bad.csv -t y --criterion bic --always sice", "no column 'sice'.*'size'", TWO_ROWS),
    ("fit bad.csv -t y --category size", "'size' of bad.csv holds .* only once", TWO_ROWS),
    # options
    ("fitt", 'Unknown command "fitt".* See: sparsestep --help'),
    ("fit numbers.csv -t price --alpa 3", "Unknown option: .*--alpa.* --help"),
    ("fit -t y", "DATA"),
    ("predict model.json t.csv", "predict needs --output or -o"),
    ("moments numbers.csv -t price", "moments needs --output or -o"),
    ("predict m.json t.csv -o", "-o requires an argument"),
    ("fit bad.csv -t y --rule 1se --criterion bic", "leave out --rule or --criterion", ONE_ROW),
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
    ("fit numbers.csv -t price --size 9", "--size 9 is more than the 5 columns; lower"),
    ("fit numbers.csv -t price --size -1", "--size must be a whole number"),
    ("fit numbers.csv -t price --alphas 1", "--alphas must be a whole number of at least"),
    ("fit numbers.csv -t price --alphas 1,x", "--alphas must be how many, or numbers"),
    ("path numbers.csv -t price --standardized", "--standardized .*--plot"),
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
    *(
        (command.format(given), OVERWRITTEN, new_folder)
        for given in ("new", "new/*.csv", "new/a.csv", "file://HERE/new")
        for command in (
            "predict model.json {} -o new/a.csv",
            "predict model.json {} -o link.csv",
            "path {} -t price -o new/a.csv",
        )
    ),
    # models
    ("predict none.json flats.csv -o p.csv", "none.json cannot be used"),
    ("predict flats.csv flats.csv -o p.csv", "not a model file"),
    ("report bad", "bad cannot be used", empty_folder),
    ("report bad.json", "cut short or damaged", cut("model.json", "bad.json")),
    # predictions
    ("predict model.json bad.csv -o p.csv", "no column 'rooms'", csv("size\n1\n")),
    ("predict cities.json bad.parquet -o p.csv", UNSEEN, PARIS),
    ("predict model.json bad.parquet -o p.csv", f"'size' {MISSING}", HOLE),
    ("predict rome.json bad.parquet -o p.csv", f"'city' {MISSING}", city_missing),
    ("predict model.json bad.csv -o p.csv --missing-as-null", "'size' .* inf in row 1", INFINITE),
    ("predict model.json bad.csv -o p.csv", "'size' .* text", csv("size,rooms\nx,2\n")),
    ("predict model.json bad.csv -o p.csv", "are no rows", csv("size,rooms\n")),
    ("predict model.json numbers.csv -o p.csv --keep id", "no column 'id'"),
    ("predict model.json bad.csv -o p.csv", "too large for a double in row 1", TOO_LARGE),
    # moments
    ("merge bad.npz -o x.npz", "bad.npz", cut("site-0.npz", "bad.npz")),
    ("merge site-0.npz bad.npz -o x.npz", "bad.npz cannot be merged with site-0", other_columns),
    ("fit site-0.npz bad.npz", "5 and of 4 columns", other_columns),
    ("merge site-*.npz -o site-0.npz", "would overwrite site-0.npz, which is read"),
    ("merge flats.csv -o x.npz", "flats.csv is not a mom"),
    ("moments site-0.npz -t y -o x.npz", "moments already"),
    ("fit site-0.npz", "site-0.npz is a single fold"),
    ("fit site-0.npz site-1.npz --cv 3", "--cv 3 does"),
    ("fit site-0.npz site-1.npz -t size", "'size' is not the target in site-0.npz"),
    ("path site-0.npz --drop size", "--drop is for tab"),
    ("fit site-0.npz flats.csv", "some are tables"),
    ("moments numbers.csv -t price -o x.npz --folds 0", "--folds must be"),
    *((f"{FOLDS_OF_B} {k}", r"Older folds .*b-fold-\d.npz and \d more") for k in (3, 12)),
    ("fit a-fold-*.npz c-fold-*.npz", "different runs"),
    ("merge a-fold-*.npz seed-fold-*.npz -o x.npz", "a-.*0.npz and seed-.*0.npz .* the same rows"),
    *(
        (f"{command} {files}", match)
        for command in ("fit", "path", "merge -o new.npz")
        for files, match in (
            ("a-fold-[01].npz", "fold 2 is missing"),
            ("a-fold-*.npz copy.npz", "fold 1 of 3 of numbers.csv is there twice"),
            ("a-fold-*.npz b-fold-[345].npz", "different runs.* folds 3, 4, 5 of 6 of numbers"),
            ("a-fold-*.npz b-fold-*.npz", "different runs"),
            ("a-fold-0.npz c-fold-1.npz", "different runs.*fold 1 of 3 of other.csv"),
            ("whole.npz copy.npz", "fold 1 of 3 of numbers.csv is there twice"),
            ("a-fold-*.npz a-fold-0.npz", "a-fold-0.npz is given twice"),
            ("part.npz again.npz", "part.npz and again.npz hold the same sums"),
            ("whole.npz ./whole.npz", r"whole.npz and \./whole.npz are the same file"),
            ("nothing-*.npz", r"^No file matches nothing-\*\.npz\.$"),
        )
    ),
]


@pytest.mark.parametrize(
    ("command", "message", "prepare"), [(*case, lambda folder: None)[:3] for case in REFUSED]
)
def test_bad_input_gets_one_sentence(folder, command, message, prepare):
    prepare(folder)
    before = {file: file.stat().st_mtime_ns for file in folder.rglob("*")}
    done = run(folder, command.replace("HERE", str(folder)), code=2)
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
    "command",
    [
        "fit numbers.csv -t price --model out.json",
        "fit numbers.csv -t price --report out.html",
        "predict model.json flats.csv -o out.csv",
        "predict model.json flats.csv -o out.parquet",
        "moments numbers.csv -t price -o out.npz",
        "path numbers.csv -t price --plot out.svg",
        "path numbers.csv -t price -o out.arrow",
    ],
)
def test_a_full_disk_leaves_nothing_behind_and_harms_nothing(folder, command):
    out = folder / command.split()[-1]
    out.write_text("what was there before")
    before = sorted(os.listdir(folder))
    # matplotlib looks for its list of fonts in the home folder, which may have to be written.
    env = {"MPLCONFIGDIR": os.environ.get("MPLCONFIGDIR", str(Path.home() / ".config/matplotlib"))}
    done = run_process(folder, command, code=2, env=env, preexec_fn=small_files)
    # NumPy before 2.2 complains about the file once more while it is thrown away.
    said = done.stderr.partition("Exception ignored")[0].splitlines(keepends=True)
    assert_one_sentence(said[-1], "file too large")
    assert out.read_text() == "what was there before"
    assert sorted(os.listdir(folder)) == before


def test_a_full_standard_output_is_said(data):
    with open("/dev/full", "w") as full:
        done = run_process(data, "fit numbers.csv -t price", code=2, stdout=full)
    assert_one_sentence(done.stderr, "cannot be written: no space left")


@pytest.mark.parametrize(
    "command",
    [
        "--help",
        "--version",
        "fit numbers.csv -t price",
        "path numbers.csv -t price",
        "path numbers.csv -t price --json",
    ],
)
def test_nobody_reads_the_output(data, command):
    reader, writer = os.pipe()
    os.close(reader)
    done = run_process(data, command, code=141, stdout=writer)
    os.close(writer)
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
    model = SparseStep(alpha=0.0).fit(few.drop_columns(["y"]), few["y"].to_numpy())
    save_model(model, folder / "model.json")
    return folder


def opened(pid):
    """The names of the files that a process has open; none if it has ended."""
    names = []
    with suppress(FileNotFoundError):
        for link in os.listdir(f"/proc/{pid}/fd"):
            with suppress(FileNotFoundError):
                names.append(os.readlink(f"/proc/{pid}/fd/{link}"))
    return names


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
@pytest.mark.parametrize(
    "command", ["fit large.csv -t y --model out.json", "predict model.json large.csv -o out.csv"]
)
def test_a_signal_leaves_nothing_behind(large, command, number):
    before = sorted(os.listdir(large))
    process = subprocess.Popen(
        [COMMAND, *command.split()],
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
        writing = any(link.endswith(".tmp") for link in links) or command.startswith("fit")
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
    places = [str(tmp_path), os.environ.get("PYTHONPATH")]
    env = {"PYTHONPATH": os.pathsep.join(filter(None, places))}
    done = run_process(data, "fit numbers.csv -t price", code=1, env=env)
    assert_one_sentence(done.stderr, r"unexpected .*KeyError: 'inner'.*SPARSESTEP_TRACEBACK=1")
    env["SPARSESTEP_TRACEBACK"] = "1"
    done = run_process(data, "fit numbers.csv -t price", code=1, env=env)
    assert "Traceback" in done.stderr and "in broken" in done.stderr
