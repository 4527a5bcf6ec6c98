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


def nearly_equal(gap, replicates=1):
    """Results in which SparseStep is a little better than lasso, SCAD and MC+ on average."""
    results = made_up(replicates)[0].copy()
    rng = np.random.default_rng(4)
    shift = results["method"].map({"OLS": 3.0, "Ridge": 3.0, "SparseStep": -gap}).fillna(0.0)
    for column in ("mse_b", "hit_rate", "mse_y"):
        values = (0.5 + 0.05 * (shift + rng.normal(size=len(shift)))).clip(0.0, 1.0)
        results[column] = 1 - values if column == "hit_rate" else values
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
    results = with_order(column, order)
    judged = claim(number, results)
    assert judged["verdict"] == verdict
    assert judged["parts"][0]["ours"] == f"{order[0]} 1.00 first"
    # A shared first place is not the best.
    first, second = (results["method"] == method for method in order[:2])
    results.loc[second, column] = results.loc[first, column].to_numpy()
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
    fast = ["OLS", "SparseStep", "Ridge", "Lasso", "SCAD", "MC+"]
    results = with_order("time", fast, results=nearly_equal(0.0))
    assert claim(8, results)["verdict"] == "reproduced"
    results = with_order(
        "mse_b", ["SparseStep", "SCAD", "MC+", "Lasso", "Ridge", "OLS"], results=results
    )
    judged = claim(8, results)
    assert [part["holds"] for part in judged["parts"]] == [True, False, *[True] * 5]
    assert "better than Lasso" in judged["parts"][1]["ours"]
    results = with_order("time", fast[::-1], results=results)
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


def changed(results, method, **columns):
    """Results with other values of a method."""
    return results.assign(
        **{name: results[name].mask(results["method"] == method, v) for name, v in columns.items()}
    )


FIRST = ["SparseStep", "MC+", "SCAD", "Lasso", "Ridge", "OLS"]
ON_B, SCAD_BEST = with_order("mse_b", FIRST), single_best("mse_b", {"SCAD": 40}, {"OLS": 60})
SECOND = with_order("mse_y", ["Lasso", "SparseStep", "MC+", "SCAD", "Ridge", "OLS"])
BEST_AT_10 = SECOND.assign(
    mse_y=SECOND["mse_y"].mask((SECOND["method"] == "SparseStep") & (SECOND["snr"] == 10.0), 0.01)
)
AT_END = f"smallest of its grid on {made_up()[0]['at_end'].ne('').sum()}"


@pytest.mark.parametrize(
    ("number", "results", "rivals", "words", "said"),
    [
        (3, with_order("mse_y", FIRST), None, " ", False),
        (1, ON_B, None, "SCAD and MC+ are converged here, to 1e-07", True),
        (1, ON_B, None, "tie", False),
        (1, ON_B, None, "rows to learn from", False),
        (1, changed(ON_B, "SCAD", optimality=1e-3), None, "converged", False),
        (1, changed(ON_B, "SCAD", optimality=0.03), "2015", "and stop up to 3e-02", True),
        (1, changed(ON_B, "SCAD", optimality=0.03), "2015", "are converged here", False),
        (4, SCAD_BEST, None, f"best lambda of Ridge is the {AT_END} of 180", True),
        (4, SCAD_BEST, None, "All six methods tie, within 0.0001, on 80 of 180", True),
        (4, changed(SCAD_BEST, "Ridge", at_end=""), None, "best lambda", False),
        (3, SECOND, None, "best average rank at no single level of the design", True),
        (3, BEST_AT_10, None, "best average rank at SNR 10 only", True),
    ],
)
def test_reasons_are_given_for_what_differs_and_if_true(number, results, rivals, words, said):
    about = {"rivals": rivals} if rivals else {}
    assert (words in " ".join(claim(number, results, **about)["reasons"])) == said


def test_deviations_say_how_the_rivals_were_run():
    results = changed(ON_B, "SCAD", optimality=0.03)
    run = made_up()[1]
    notes = " ".join(deviations_of(analyse(results, run | {"rivals": "2015"})))
    assert "not converged: the worst fit of SCAD is 3e-02" in notes
    assert "run to convergence" not in notes
    assert "run to convergence" in " ".join(deviations_of(analyse(results, run)))


def test_a_smaller_study_says_so():
    analysis = analyse(*made_up(scale="quick"))
    differing = [one for one in claims_of(analysis)[:6] if one["verdict"] != "reproduced"]
    assert differing
    for one in differing:
        assert "2000 rows to learn from and m up to 100" in one["reasons"][0]
    assert "check of the machinery" in deviations_of(analysis)[0]
    assert "paper's sizes" in deviations_of(analyse(*made_up()))[0]


def test_more_data_sets_separate_what_180_do_not():
    one, many = (analyse(nearly_equal(0.15, n), made_up(n)[1]) for n in (1, 8))
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
    analysis = analyse(nearly_equal(-2.0, 2), made_up(2)[1])
    answer = answer_of(analysis)
    assert answer["short"].endswith("it is worse in 9.")
    assert answer["measures"]["MSE of b"].startswith("worse than Lasso")
    assert set(answer["by_setting"]) == set(answer["measures"])


def test_the_summary_is_json_of_the_rankings():
    """Its numbers and its Markdown are compared with the pages of the runs that are kept, too."""
    analysis = analyse(*made_up(2, extras=True))
    first = json.dumps(summary_of(analysis), allow_nan=False)
    assert first == json.dumps(summary_of(analyse(*made_up(2, extras=True))), allow_nan=False)
    assert len(first) < 60_000
    loaded = json.loads(first)
    assert list(loaded["in_place_of_sparsestep"]) == [*VARIANTS, *EXTRAS]
    for column, measure in loaded["measures"].items():
        means = analysis.rankings[column].ranks.mean().to_dict()
        found = {name: measure["average_rank"][name] for name in METHODS}
        assert found == pytest.approx(means, rel=1e-3) and sum(measure["best"].values()) <= 360
        for row in measure["variants"].values():
            assert set(row["holm"]) == set(METHODS) - {"SparseStep"}
    assert f"- SparseStep swap is {row['is']}." in markdown_of(loaded)
    assert "SparseStep BIC" in ranks_in_short(loaded)


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
