"""The benchmarks' own logic: what counts as slower, and what the tables say. Nothing is timed."""

import json
import sys
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "benchmarks"))

import real_tables.page  # noqa: E402
import real_tables.run  # noqa: E402
from check.compare import Comparison, confirmed  # noqa: E402
from real_tables.data import expanded, load  # noqa: E402
from rivals.config import PROBLEMS  # noqa: E402
from rivals.libraries import LIBRARIES  # noqa: E402
from rivals.run import RESULTS, save  # noqa: E402
from rivals.table import BEGIN, END, PAGE, put_into, section  # noqa: E402


@pytest.mark.parametrize(
    ("base", "branch", "slower"),
    [
        ([1.0] * 3, [1.16] * 3, True),
        ([1.0] * 3, [1.14] * 3, False),
        ([1.0] * 3, [0.5] * 3, False),
        # One outlier is no regression.
        ([1.0] * 5, [1.0, 1.0, 9.0, 1.0, 1.0], False),
        # The medians are 1 and 3, yet in each round the two took the same time.
        ([1.0, 1.0, 3.0], [1.0, 3.0, 3.0], False),
        # What one side cannot do.
        ([None, None], [1.0, 1.0], False),
    ],
)
def test_slower_is_beyond_15_percent(base, branch, slower):
    assert Comparison("a case", base, branch).slower == slower


def test_a_suspicion_must_be_confirmed():
    slow, again = (Comparison("a case", [1.0] * n, [1.3] * n) for n in (5, 10))
    even = Comparison("a case", [1.0] * 10, [1.0] * 10)
    assert confirmed(slow, again)
    assert not confirmed(slow, even)
    assert not confirmed(even, slow)


def test_what_one_side_cannot_do_is_new_or_broken():
    new, broken = (Comparison("a case", *times) for times in ([[None], [1.0]], [[1.0], [None]]))
    assert new.ratio is None and not new.broken and broken.broken
    assert new.line(False).endswith("not comparable")
    assert broken.line(False).endswith("BROKEN")


@pytest.fixture
def results():
    """Of two libraries, and one each that is missing, too slow, failed and not run."""
    common = {"converged": True, "hit_rate": 0.9, "error_of_b": 0.5, "test_error": 0.02}
    common |= {"kept": 9, "kept_true": 8, "problem": "small"}
    runs = [
        common | {"library": "sparsestep", "seed": seed, "seconds": seconds, "hit_rate": 0.95}
        for seed, seconds in enumerate((0.1, 0.2, 9.0))
    ]
    runs += [
        common | {"library": "lasso", "seed": 0, "seconds": 1.234, "converged": False},
        common | {"library": "least_squares", "seed": 0, "seconds": 0.001, "test_error": 0.01},
        {"problem": "small", "library": "celer", "seed": 0, "missing": True},
        {"problem": "small", "library": "abess", "seed": 0, "timed_out": True},
        {"problem": "small", "library": "mcp", "seed": 0, "failed": "ValueError: no"},
    ]
    return {
        "quick": False,
        "machine": {"processor": "P", "cores": 2, "system": "S", "python": "3.11"},
        "versions": dict.fromkeys(LIBRARIES, "1.0") | {"celer": None},
        "threads": 2,
        "folds": 10,
        "penalties": 100,
        "limit": 120.0,
        "problems": {"small": vars(PROBLEMS["small"])},
        "runs": [{"date": "2026-11-05", "commit": "abc1234"} | run for run in runs],
    }


def test_tables_give_medians_the_best_in_bold_and_why_there_is_no_result(results):
    text = section(results)
    for line in (
        "| sparsestep | **200 ms** | **0.950** | **0.500** | 2 % | 9 | 8 |",
        "| scikit-learn, lasso | 1.23 s † | 0.900 | ",
        # One fit is no rival in time, but what it recovers counts.
        "| *scikit-learn, least squares* | 1 ms | 0.900 | **0.500** | **1 %** | 9 | 8 |",
        "Measured on 5 November 2026 by `make bench-rivals` (commit abc1234)",
        "| celer, lasso | missing | | | | | |",
        "celer missing",
        "| abess, best subset | > 120 s | | | | | |",
        "| skglm, MC+ | failed | | | | | |",
        "skglm, MC+ failed: `ValueError: no`",
        "| R glmnet, lasso | not run | | | | | |",
    ):
        assert line in text


def test_results_are_read_as_they_were_written(results, tmp_path):
    save(results, tmp_path / "results.json")
    assert json.loads((tmp_path / "results.json").read_text(encoding="utf-8")) == results


def test_the_page_shows_the_results_that_are_kept():
    page = PAGE.read_text(encoding="utf-8")
    if RESULTS.exists():
        kept = json.loads(RESULTS.read_text(encoding="utf-8"))
        assert not kept["quick"]
        assert put_into(page, section(kept)) == page
    else:
        assert page.split(BEGIN)[1].split(END)[0].strip() == ""


def test_real_tables_measure_every_method_on_the_same_splits_and_compare_with_the_default():
    comparison = real_tables.run.compare(["diabetes"], ["min", "bic", "lasso", "ols"], splits=2)
    assert comparison["tables"] == {"diabetes": {"rows": 442, "columns": 64}}
    runs = {run["method"]: run for run in comparison["runs"]}
    assert list(runs) == ["min", "bic", "lasso", "ols"]
    assert runs["ols"]["kept"] == [64, 64] and runs["ols"]["stability"] is None
    X, y = load("diabetes")
    for split in range(2):
        order = np.random.default_rng([split, 442]).permutation(442)
        train, test = order[:290], order[290:]
        A = np.column_stack([np.ones(442), expanded(X, train, "pairs")])
        residual = y[test] - A[test] @ np.linalg.lstsq(A[train], y[train])[0]
        of_mean = np.mean((y[test] - y[train].mean()) ** 2)
        assert runs["ols"]["errors"][split] == pytest.approx(np.mean(residual**2) / of_mean, 1e-4)
        assert runs["min"]["errors"][split] < runs["ols"]["errors"][split]
        assert 0 < runs["min"]["kept"][split] < 64
    measures = real_tables.page.Comparison(comparison)
    found = dict(zip(measures.methods, measures.average(), strict=True))
    ratios = np.divide(runs["ols"]["errors"], runs["min"]["errors"])
    assert found["min"] == 1
    assert found["ols"] == pytest.approx(np.sqrt(np.prod(ratios)))
    less, more, _, _ = measures.against_default("ols")
    assert (less, more) == (0, 1)


def test_stability_of_sets_of_one_size_is_kunchevas_index():
    rng = np.random.default_rng(0)
    kept = np.array([rng.permutation(12) < 4 for _ in range(5)])
    by_chance = 4**2 / 12
    pairs = [(np.sum(a & b) - by_chance) / (4 - by_chance) for a, b in combinations(kept, 2)]
    assert real_tables.run.stability(kept) == pytest.approx(np.mean(pairs))
    assert real_tables.run.stability(np.tile(kept[0], (3, 1))) == 1
    assert real_tables.run.stability(np.ones((3, 12), dtype=bool)) is None
