"""A run of the study that is killed, or split among processes, ends with the same numbers."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time

import pandas as pd
import pytest

from sparsestep.study.command import study
from sparsestep.study.datasets import SCALES, Scale, settings_of
from sparsestep.study.results import COLUMNS, as_table, read_results, read_run, write_results
from sparsestep.study.run import Plan, cost, fit_study, fits_done, generate_study

TINY = Scale("tiny", 200, 100, sizes=(10,), sparsities=(25, 75), snrs=(1.0, 10.0))
DATASETS = [setting.dataset for setting in settings_of(TINY)]
PLAN = Plan(TINY)
PROGRAM = f"""
import sys
from pathlib import Path
from sparsestep.study.datasets import Scale
from sparsestep.study.run import Plan, fit_study
if __name__ == "__main__":
    fit_study(Plan({TINY!r}), Path(sys.argv[1]), jobs=2)
"""


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """An uninterrupted run, in one process."""
    out = tmp_path_factory.mktemp("finished")
    return fit_study(PLAN, out, jobs=1), out


def numbers(table):
    """All but the times, which no two runs share."""
    return table.drop(columns="time")


def parts(out):
    return sorted((out / "parts").glob("*.json"))


@pytest.mark.slow
def test_the_table_of_results(finished):
    table, out = finished
    assert list(table.columns) == list(COLUMNS)
    assert len(table) == len(DATASETS) * len(PLAN.methods)
    assert table["method"].head(len(PLAN.methods)).tolist() == PLAN.methods
    pd.testing.assert_frame_equal(read_results(out), table)
    run = read_run(out)
    assert (run["scale"], run["grid"], run["datasets"], run["jobs"]) == ("tiny", "paper", 12, 1)
    assert run["finished"] is not None and run["wall_time"] > 0
    assert {"cpu", "cores", "memory_gb", "system"} <= set(run["machine"])
    assert {"numpy", "numba", "sparsestep"} <= set(run["versions"]) and "rivals" not in run
    ols = table["method"] == "OLS"
    assert table.loc[ols, "n_nonzero"].eq(10).all() and table.loc[~ols, "optimality"].max() < 1e-8
    # A finished run is left as it is.
    before = (out / "run.json").read_bytes()
    pd.testing.assert_frame_equal(fit_study(PLAN, out, jobs=2), table)
    assert (out / "run.json").read_bytes() == before


@pytest.mark.slow
def test_a_killed_run_resumes_to_the_same_results_on_another_number_of_jobs(finished, tmp_path):
    program, out = tmp_path / "program.py", tmp_path / "out"
    program.write_text(PROGRAM)
    process = subprocess.Popen([sys.executable, program, out], start_new_session=True)
    group = os.getpgid(process.pid)
    deadline = time.monotonic() + 120
    while len(parts(out)) < 3:
        assert process.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.01)
    process.kill()
    assert process.wait() == -signal.SIGKILL
    # Its workers notice and end, or they would go on and spoil what follows.
    while True:
        assert time.monotonic() < deadline
        try:
            os.killpg(group, 0)
        except ProcessLookupError:
            break
        time.sleep(0.05)
    done = {file.name: file.read_bytes() for file in parts(out)}
    assert 3 <= len(done) < 12
    assert read_run(out)["finished"] is None
    earlier = read_run(out)["wall_time"]
    (out / "parts" / ".1a.tmp").write_text("half")  # as if killed in the middle of writing

    table = fit_study(PLAN, out, jobs=2)

    pd.testing.assert_frame_equal(numbers(table), numbers(finished[0]), check_exact=True)
    assert {name: (out / "parts" / name).read_bytes() for name in done} == done
    assert read_run(out)["wall_time"] > earlier
    names = {file.name for file in (out / "parts").iterdir()}
    assert names == {f"{dataset:05d}.json" for dataset in DATASETS}


@pytest.mark.slow
def test_a_method_that_a_run_lacks_is_added(finished, tmp_path):
    table, out = finished
    shutil.copytree(out, tmp_path / "older")
    for part in parts(tmp_path / "older"):
        content = json.loads(part.read_text())
        content["rows"] = [row for row in content["rows"] if row["method"] in ("OLS", "SCAD")]
        part.write_text(json.dumps(content))
    added = fit_study(PLAN, tmp_path / "older", jobs=1)
    pd.testing.assert_frame_equal(numbers(added), numbers(table))
    kept = table["method"].isin(["OLS", "SCAD"])
    assert (added["time"] == table["time"])[kept].all()


@pytest.mark.slow
def test_rivals_of_2015_are_noted(finished, tmp_path):
    table = fit_study(Plan(TINY, rivals="2015"), tmp_path, jobs=1)
    assert read_run(tmp_path)["rivals"] == "2015"
    changed = table.loc[numbers(table).compare(numbers(finished[0])).index, "method"]
    assert set(changed) == {"SCAD", "MC+"}


@pytest.mark.slow
def test_other_options_in_the_same_folder_and_damaged_parts_are_refused(finished, tmp_path):
    for other in ({"grid": "own"}, {"rivals": "2015"}):
        with pytest.raises(ValueError, match="a run with scale tiny, grid paper, extras False"):
            fit_study(Plan(TINY, **other), finished[1])
    (tmp_path / "parts").mkdir()
    text = (finished[1] / "parts" / "00012.json").read_bytes()
    (tmp_path / "parts" / "00012.json").write_bytes(text[: len(text) // 2])
    with pytest.raises(ValueError, match=r"00012.json is damaged: delete it and run again"):
        fit_study(PLAN, tmp_path)


@pytest.mark.slow
def test_kept_data_sets_give_the_same_results(finished, tmp_path):
    generate_study(PLAN, tmp_path, jobs=1)
    folders = sorted((tmp_path / "data" / "tiny").iterdir())
    assert [folder.name for folder in folders] == [f"{dataset:05d}" for dataset in DATASETS]
    # A data set that was kept is read: its coefficients are now others, and only its results are.
    truth = folders[7] / "b.txt"
    truth.write_text(truth.read_text().replace("0.", "0.5", 1))
    table = fit_study(PLAN, tmp_path, jobs=1)
    changed = numbers(table).compare(numbers(finished[0]))
    assert set(table.loc[changed.index, "dataset"]) == {DATASETS[7]}
    assert set(changed.columns.get_level_values(0)) <= {"mse_b", "hit_rate"}


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda out: Plan(TINY, grid="mine"), ValueError, "'paper' or 'own'; got 'mine'"),
        (lambda out: Plan(TINY, rivals="2016"), ValueError, "'converged' or '2015'; got '2016'"),
        (lambda out: Plan(TINY, replicates=0), ValueError, "replicates must be .* 1; got 0"),
        (lambda out: fit_study(PLAN, out, jobs=0), ValueError, "jobs must be at least 1; got 0"),
        (
            lambda out: study(stage="rank", out=out, quiet=True),
            FileNotFoundError,
            r"results\.parquet does not exist; run the study's fits first",
        ),
    ],
)
def test_impossible_plans_and_stages_are_refused(call, error, words, tmp_path):
    with pytest.raises(error, match=words):
        call(tmp_path)


def row(**changes):
    values = dict.fromkeys(COLUMNS, 1) | {"correlation": "noise", "method": "Lasso", "at_end": ""}
    return values | {"a": float("nan")} | changes


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([row(), row()], "Data set 1 has two results of Lasso"),
        ([row(), row(dataset=2, method="SCAD")], "Data set 1 has no result of SCAD"),
        ([row(method="lars")], "Unknown method 'lars'"),
        ([row(hit_rate=1.5)], "Data set 1, Lasso: hit_rate is 1.5"),
        ([row(mse_y=float("nan"))], "mse_y is nan"),
        ([row(alpha=float("nan"))], "alpha is nan"),
        ([row(n_nonzero=2)], "n_nonzero is 2"),
        ([row(time=0.0)], "time is 0.0"),
    ],
)
def test_impossible_results_are_refused(rows, message):
    with pytest.raises(ValueError, match=message):
        as_table(rows)


def test_a_file_that_is_no_table_of_results_is_named(tmp_path):
    file = tmp_path / "results.parquet"
    file.write_bytes(b"something else")
    with pytest.raises(ValueError, match=r"results\.parquet is not a table of this study's"):
        read_results(tmp_path)
    write_results(as_table([row()]), tmp_path)
    assert read_results(tmp_path)["mse_b"].tolist() == [1.0]
    assert [path.name for path in tmp_path.iterdir()] == ["results.parquet"]


def test_progress_and_time_left_by_cost(capsys, monkeypatch):
    settings = settings_of(SCALES["paper"])
    costs = {(s.m, s.correlation): cost(s) for s in settings}
    assert costs[500, "constant"] > costs[500, "noise"] > 10 * costs[100, "constant"]
    with fits_done(settings[:2], 3, show=True) as tell:
        for setting in settings[:2]:
            tell(setting)
    assert "5 of 5 data sets, 0:00:00 left" in capsys.readouterr().err
    with fits_done(settings[:2], 3, show=False) as tell:
        tell(settings[0])
    assert capsys.readouterr().err == ""
    # The time until the first data set is not taken for its speed.
    settings = settings_of(SCALES["quick"])
    now = 0.0
    monkeypatch.setattr("sparsestep.study.run.time.perf_counter", lambda: now)
    monkeypatch.setattr("sparsestep.study.run.SECONDS_BETWEEN_LINES", 0.0)
    alike = [each for each in settings if cost(each) == cost(settings[0])][:4]
    with fits_done(alike, 0, show=True) as tell:
        for setting, now in zip(alike[:2], (100.0, 103.0), strict=True):  # noqa: B007
            tell(setting)
    said = capsys.readouterr().err.splitlines()
    assert said[0] == "1 of 4 data sets (0:01:40 so far)"
    assert said[1] == "2 of 4 data sets, 0:00:06 left (0:01:43 so far)"
