"""The verdicts on the paper's claims, on tables made so that each of them can be either way."""

import json

import numpy as np
import pytest

from sparsestep.study.claims import answer_of, claims_of, deviations_of, verdict
from sparsestep.study.methods import EXTRAS, METHODS, VARIANTS
from sparsestep.study.report import markdown_of, ranks_in_short, summary_of
from sparsestep.study.statistics import analyse
from study_table import made_up


def with_order(columns, order, *, results=None):
    """Results in which the methods stand in this order on measures."""
    results = (made_up()[0] if results is None else results).copy()
    places = results["method"].map({method: 0.1 * (1 + i) for i, method in enumerate(order)})
    for column in columns.split():
        results[column] = 1 - places if column == "hit_rate" else places
    return results


def single_best(column, best, worst):
    """Results on which a method is alone best, or alone worst, on so many data sets."""
    values = np.full((180, 6), 0.5)
    row = 0
    for counts, value in ((best, 0.4), (worst, 0.6)):
        for method, count in counts.items():
            values[row : row + count, list(METHODS).index(method)] = value
            row += count
    assert row <= 180
    # Rows are sorted by data set and method.
    return made_up()[0].assign(**{column: (1 - values if column == "hit_rate" else values).ravel()})


def claim(number, results, **about):
    return claims_of(analyse(results, made_up()[1] | about))[number - 1]


def reasons(number, results, **about):
    return " ".join(claim(number, results, **about)["reasons"])


ORDERS = [
    (1, "mse_b", ["SparseStep", "SCAD", "MC+", "Lasso", "Ridge", "OLS"], "reproduced"),
    (1, "mse_b", ["SparseStep", "MC+", "SCAD", "Lasso", "Ridge", "OLS"], "partly reproduced"),
    (1, "mse_b", ["Ridge", "SCAD", "MC+", "Lasso", "SparseStep", "OLS"], "partly reproduced"),
    (1, "mse_b", ["Lasso", "SCAD", "MC+", "SparseStep", "Ridge", "OLS"], "not reproduced"),
    (2, "hit_rate", ["MC+", "SparseStep", "SCAD", "Lasso", "Ridge", "OLS"], "reproduced"),
    (2, "hit_rate", ["MC+", "SCAD", "SparseStep", "Lasso", "Ridge", "OLS"], "partly reproduced"),
    (2, "hit_rate", ["OLS", "Ridge", "MC+", "SparseStep", "SCAD", "Lasso"], "not reproduced"),
    (3, "mse_y", ["SparseStep", "OLS", "Ridge", "Lasso", "SCAD", "MC+"], "reproduced"),
    (3, "mse_y", ["OLS", "SparseStep", "Ridge", "Lasso", "SCAD", "MC+"], "not reproduced"),
]


@pytest.mark.parametrize(("number", "column", "order", "verdict"), ORDERS)
def test_the_order_of_average_ranks(number, column, order, verdict):
    judged = claim(number, with_order(column, order))
    assert judged["verdict"] == verdict
    assert judged["parts"][0]["ours"] == f"{order[0]} 1.00 first"


@pytest.mark.parametrize(
    ("number", "column", "order"),
    [
        (2, "hit_rate", ["MC+", "SparseStep", "SCAD", "Lasso", "Ridge", "OLS"]),
        (3, "mse_y", ["SparseStep", "OLS", "Ridge", "Lasso", "SCAD", "MC+"]),
    ],
)
def test_a_shared_first_place_is_not_the_best(number, column, order):
    results = with_order(column, order)
    first = results.loc[results["method"] == order[0], column].to_numpy()
    results.loc[results["method"] == order[1], column] = first
    assert not claim(number, results)["parts"][0]["holds"]


HITS = {"SparseStep": 30, "MC+": 26, "SCAD": 11}
WORST = {"OLS": 52, "MC+": 32, "SparseStep": 6, "Ridge": 20, "Lasso": 15, "SCAD": 15}
# Claim, measure, how often methods are alone best and alone worst, and which statements hold.
COUNTS = [
    (4, "mse_b", {"Ridge": 40, "SCAD": 39}, {"OLS": 60, "MC+": 3}, [1, 1]),
    (4, "mse_b", {"Ridge": 39, "SCAD": 40}, {"OLS": 60}, [0, 1]),
    (4, "mse_b", {"Ridge": 40, "SCAD": 40}, {"OLS": 9, "Lasso": 9}, [0, 0]),
    (5, "hit_rate", HITS, {}, [1, 1, 1, 1]),
    # 30 of 180 and 45 of 180 are 1.94 standard errors apart, 46 are 2.05.
    (5, "hit_rate", HITS | {"SparseStep": 45}, {}, [1, 1, 1, 1]),
    (5, "hit_rate", HITS | {"SparseStep": 46}, {}, [1, 0, 1, 1]),
    (5, "hit_rate", {"SparseStep": 1, "MC+": 80, "SCAD": 60}, {}, [0, 0, 0, 0]),
    (6, "mse_y", {"OLS": 7, "Lasso": 20}, WORST, [1, 1, 1, 1, 1]),
    (6, "mse_y", {"OLS": 7, "Lasso": 20}, WORST | {"SCAD": 5}, [1, 1, 1, 1, 0]),
    (6, "mse_y", {"OLS": 60}, {"OLS": 5, "MC+": 4, "SparseStep": 90, "Lasso": 0}, [0] * 5),
]


@pytest.mark.parametrize(("number", "column", "best", "worst", "holds"), COUNTS)
def test_counts_of_the_single_best_and_worst(number, column, best, worst, holds):
    judged = claim(number, single_best(column, best, worst))
    assert [part["holds"] for part in judged["parts"]] == [bool(each) for each in holds]
    assert judged["verdict"] == verdict(holds)
    if number == 4 and best["SCAD"] > best["Ridge"]:
        assert judged["parts"][0]["ours"].startswith("SCAD most often best (SCAD 40, Ridge 39")


def test_rejection_on_all_measures():
    assert claim(7, made_up()[0])["verdict"] == "reproduced"
    results = made_up()[0].assign(hit_rate=0.5)
    judged = claim(7, results)
    assert judged["verdict"] == "partly reproduced"
    assert [part["holds"] for part in judged["parts"]] == [True, False, True, True]
    results = results.assign(mse_b=0.5, mse_y=0.5, time=0.5)
    assert claim(7, results)["verdict"] == "not reproduced"


def test_holm_as_in_the_paper_and_not():
    results = made_up()[0]
    # The penalized methods differ by noise only; OLS and ridge are far worse.
    equal = ["SparseStep", "SCAD", "MC+", "Lasso"]
    rng = np.random.default_rng(10)
    for column in ("mse_b", "hit_rate", "mse_y"):
        for method in METHODS:
            value = (0.3 if method in equal else 0.7) + 0.05 * rng.uniform(-1, 1, 180)
            rows = results["method"] == method
            results.loc[rows, column] = 1 - value if column == "hit_rate" else value
    fast = ["OLS", "SparseStep", "Ridge", "Lasso", "SCAD", "MC+"]
    results = with_order("time", fast, results=results)
    assert claim(8, results)["verdict"] == "reproduced"
    results = with_order("mse_b", [*equal, "Ridge", "OLS"], results=results)
    judged = claim(8, results)
    assert [part["holds"] for part in judged["parts"]] == [True, False, *[True] * 5]
    assert "better than Lasso" in judged["parts"][1]["ours"]
    slow = ["SCAD", "MC+", "OLS", "Ridge", "Lasso", "SparseStep"]
    results = with_order("time", slow, results=results)
    assert "worse than SCAD" in claim(8, results)["parts"][-1]["ours"]
    last = ["OLS", "Ridge", "Lasso", "SCAD", "MC+", "SparseStep"]
    results = with_order("mse_b hit_rate mse_y", last, results=results)
    # MC+ is next to SparseStep in every data set, and so separated as well.
    assert claim(8, results)["verdict"] == "not reproduced"


@pytest.mark.parametrize(
    ("ratios", "verdict"),
    [
        ((0.1, 1.0, 1.9, 1.0), "reproduced"),
        ((0.5, 1.0, 2.1, 1.0), "partly reproduced"),
        ((3.0, 4.0, 5.0, 2.5), "not reproduced"),
    ],
)
def test_the_cost_in_least_squares_solutions(ratios, verdict):
    results = made_up()[0].copy()
    results["time"] = 1e-3
    for m, ratio in zip((10, 50, 100, 500), ratios, strict=True):
        rows = (results["method"] == "SparseStep") & (results["m"] == m)
        # Factors whose logarithms sum to zero leave the geometric mean alone.
        results.loc[rows, "time"] *= ratio * np.exp(np.linspace(-2.0, 2.0, rows.sum()))
    judged = claim(9, results)
    assert judged["verdict"] == verdict
    assert bool(judged["reasons"]) == (verdict != "reproduced")


SPARSESTEP_FIRST = ["SparseStep", "MC+", "SCAD", "Lasso", "Ridge", "OLS"]


def with_optimality_of_scad(results, value):
    return results.assign(
        optimality=results["optimality"].where(results["method"] != "SCAD", value)
    )


def test_reasons_are_given_only_for_what_differs_and_only_if_true():
    assert reasons(3, with_order("mse_y", SPARSESTEP_FIRST)) == ""
    results = with_order("mse_b", SPARSESTEP_FIRST)
    said = reasons(1, results)
    assert "SCAD and MC+ are converged here, to 1e-07" in said
    assert "tie" not in said and "rows to learn from" not in said
    assert "converged" not in reasons(1, with_optimality_of_scad(results, 1e-3))


def test_what_is_said_of_rivals_run_as_in_2015():
    results, run = with_order("mse_b", SPARSESTEP_FIRST), made_up()[1]
    results = with_optimality_of_scad(results, 0.03)
    said = reasons(1, results, rivals="2015")
    assert "run as in 2015 here, and stop up to 3e-02" in said and "are converged here" not in said
    notes = " ".join(deviations_of(analyse(results, run | {"rivals": "2015"})))
    assert "not converged: the worst fit of SCAD is 3e-02" in notes
    assert "run to convergence" not in notes
    assert "warm starts for lasso, one eigenvalue" in notes
    assert "run to convergence" in " ".join(deviations_of(analyse(results, run)))


def test_reasons_name_ends_of_the_grid_of_the_methods_in_question():
    results = single_best("mse_b", {"SCAD": 40}, {"OLS": 60})
    said, ridge = reasons(4, results), results["method"] == "Ridge"
    at_end = (ridge & (results["at_end"] == "smallest")).sum()
    assert f"best lambda of Ridge is the smallest of its grid on {at_end} of 180" in said
    assert "All six methods tie, within 0.0001, on 80 of 180" in said
    assert "best lambda" not in reasons(4, results.assign(at_end=results["at_end"].mask(ridge, "")))


def test_a_smaller_study_says_so():
    analysis = analyse(*made_up(scale="quick"))
    differing = [one for one in claims_of(analysis)[:6] if one["verdict"] != "reproduced"]
    assert differing
    for one in differing:
        assert "2000 rows to learn from and m up to 100" in one["reasons"][0]
    assert "check of the machinery" in deviations_of(analysis)[0]
    assert "paper's sizes" in deviations_of(analyse(*made_up()))[0]


def test_where_sparsestep_is_first_is_named():
    results = with_order("mse_y", ["Lasso", "SparseStep", "MC+", "SCAD", "Ridge", "OLS"])
    said = "SparseStep has the best average rank at"
    assert f"{said} no single level of the design" in reasons(3, results)
    better = (results["method"] == "SparseStep") & (results["snr"] == 10.0)
    results.loc[better, "mse_y"] = 0.01
    assert f"{said} SNR 10 only" in reasons(3, results)


def nearly_equal(replicates, gap):
    """Results in which SparseStep is a little better than lasso, SCAD and MC+ on average."""
    results, run = made_up(replicates)
    rng = np.random.default_rng(0)
    n = results["dataset"].nunique()
    for column in ("mse_b", "hit_rate", "mse_y"):
        for method in METHODS:
            shift = {"OLS": 3.0, "Ridge": 3.0, "SparseStep": -gap}.get(method, 0.0)
            value = 0.5 + 0.05 * (shift + rng.normal(size=n))
            rows = results["method"] == method
            results.loc[rows, column] = np.clip(
                1 - value if column == "hit_rate" else value, 0.0, 1.0
            )
    return analyse(results, run)


def test_more_data_sets_separate_what_180_do_not():
    one, many = nearly_equal(1, 0.15), nearly_equal(8, 0.15)
    assert answer_of(one)["short"].startswith("No: with 180 data sets, one for each setting,")
    assert answer_of(one)["by_setting"] == {}
    answer = answer_of(many)
    assert answer["short"].startswith("Yes: with 1440 data sets")
    assert answer["short"].endswith(
        "9 of 9 comparisons on the MSE of b, the hit rate and the test MSE; it is better in 9."
    )
    assert answer["visible"] < answer_of(one)["visible"] / 2.8
    singly = many.rankings["mse_b"].separated_singly.loc[["Lasso", "SCAD", "MC+"]]
    assert singly["worse"].eq(0).all() and singly["better"].between(0, 7).all()
    said = " ".join(claims_of(many)[7]["reasons"])
    assert "is separated by all 1440 data sets together" in said


def test_a_worse_method_is_said_to_be_worse():
    analysis = nearly_equal(2, -2.0)
    answer = answer_of(analysis)
    assert answer["short"].endswith("it is worse in 9.")
    assert answer["measures"]["MSE of b"].startswith("worse than Lasso")
    assert set(answer["by_setting"]) == set(answer["measures"])


def test_the_summary_is_json_and_its_markdown_is_made_of_it_alone():
    analysis = analyse(*made_up(2, extras=True))
    first = json.dumps(summary_of(analysis), allow_nan=False)
    assert first == json.dumps(summary_of(analyse(*made_up(2, extras=True))), allow_nan=False)
    assert len(first) < 60_000
    loaded = json.loads(first)
    text = markdown_of(loaded)
    assert list(loaded["in_place_of_sparsestep"]) == [*VARIANTS, *EXTRAS]
    for column, measure in loaded["measures"].items():
        for method in METHODS:
            expected = analysis.rankings[column].ranks[method].mean()
            assert measure["average_rank"][method] == pytest.approx(expected, rel=1e-3)
        assert sum(measure["best"].values()) <= 360
        assert f"| SparseStep | {measure['average_rank']['SparseStep']:.2f} |" in text
        for variant, row in measure["variants"].items():
            rank = loaded["in_place_of_sparsestep"][variant][column]
            assert row["average_rank"] == rank and set(row["holm"]) == set(METHODS) - {"SparseStep"}
            assert f"| {variant} | {rank:.2f} | {row['best']} |" in text
        assert f"- SparseStep swap is {row['is']}." in text
    for one in loaded["claims"]:
        assert f"| {one['number']} | {one['claim']} |" in text
    assert {line.count("|") for line in text.splitlines() if line.startswith("|")} <= {5, 6, 8}
    assert "SparseStep BIC" in ranks_in_short(loaded)
    assert loaded["measures"]["mse_b"]["by_setting"]["friedman"]["blocks"] == 180
    assert loaded["methods"]["OLS"]["optimality"] is None


def test_an_infinite_f_is_no_number_in_json():
    results = with_order("mse_b hit_rate mse_y time", METHODS)
    found = summary_of(analyse(results, made_up()[1]))
    json.dumps(found, allow_nan=False)
    assert found["measures"]["mse_b"]["friedman"]["f"] is None
    assert "F ∞" in markdown_of(found)


def test_extras_do_not_change_the_ranks_of_the_six():
    results, run = made_up(extras=True)
    with_extras = analyse(results, run)
    without = analyse(results[results["method"].isin(METHODS)], run)
    assert "variants" not in summary_of(without)["measures"]["mse_b"]
    for column, ranking in without.rankings.items():
        assert with_extras.rankings[column].ranks.equals(ranking.ranks)
