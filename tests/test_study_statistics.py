"""Ranks and their tests, against hand-computed cases, SciPy and scikit-posthocs."""

import numpy as np
import pandas as pd
import pytest
import scikit_posthocs
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats

from sparsestep.study import statistics
from sparsestep.study.methods import METHODS
from sparsestep.study.statistics import MEASURES, TIE, analyse, fractional_ranks, friedman, holm
from study_table import made_up

# Multiples of a third of the tie, so that chains of near ties are common.
tables = arrays(
    np.float64,
    st.tuples(st.integers(1, 6), st.integers(1, 7)),
    elements=st.integers(0, 12).map(lambda k: k * TIE / 3),
)


@pytest.mark.parametrize(
    ("costs", "tie", "ranks"),
    [
        ([3.0, 1.0, 2.0], TIE, [3, 1, 2]),
        ([1.0, 1.0, 1.0], TIE, [2, 2, 2]),
        # 0.6 is close to both ends, and goes with the best.
        ([0.0, 0.6e-4, 1.2e-4], TIE, [1.5, 1.5, 3]),
        ([1.2e-4, 0.6e-4, 0.0], TIE, [3, 1.5, 1.5]),
        # The group opened by 1.2 holds 1.8 and 2.1.
        ([0.0, 0.6e-4, 1.2e-4, 1.8e-4, 2.1e-4], TIE, [1.5, 1.5, 4, 4, 4]),
        # 2**-13 is above 1e-4 and 2**-14 is below.
        ([0.0, 2.0**-13], TIE, [1, 2]),
        ([0.0, 2.0**-14], TIE, [1.5, 1.5]),
        ([np.inf, 1.0, np.inf], TIE, [2.5, 1, 2.5]),
        # A difference of exactly the tie separates.
        ([0.0, 0.25], 0.25, [1, 2]),
        ([0.0, 0.25], 0.26, [1.5, 1.5]),
    ],
)
def test_ranks_of_hand_computed_cases(costs, tie, ranks):
    assert_array_equal(fractional_ranks(costs, tie=tie), [ranks])
    assert tie != TIE or np.array_equal(fractional_ranks(costs), [ranks])


@given(tables, st.randoms(use_true_random=False))
def test_ranks_of_any_costs(costs, random):
    ranks, k = fractional_ranks(costs), costs.shape[1]
    assert_array_equal(ranks.sum(axis=1), k * (k + 1) / 2)
    for cost, rank in zip(costs, ranks, strict=True):
        assert np.all(np.diff(rank[np.argsort(cost, kind="stable")]) >= 0)
        far = cost[:, None] - cost >= 2 * TIE
        assert np.all((rank[:, None] > rank)[far])
    order = list(range(k))
    random.shuffle(order)
    assert_array_equal(fractional_ranks(costs[:, order]), ranks[:, order])
    # Without the rule of ties, they are SciPy's.
    assert_array_equal(fractional_ranks(costs, tie=0.0), stats.rankdata(costs, axis=1))


def test_a_large_hit_rate_and_a_small_error_are_best():
    results, _ = made_up()
    for measure in MEASURES:
        values = results.pivot(index="dataset", columns="method", values=measure.column)
        ranks = statistics.ranks_of(results, measure)
        best = values.max(axis=1) if measure.column == "hit_rate" else values.min(axis=1)
        for method in METHODS:
            alone = ranks[method] == 1
            assert_array_equal(values[method][alone], best[alone])
        assert list(ranks.columns) == list(METHODS)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: fractional_ranks([[1.0, 2.0], [np.nan, 1.0]]), r"costs\[1, 0\] is not a number"),
        (lambda: friedman(frame([[1, 2, 3]])), "two data sets"),
        (
            lambda: statistics.ranks_of(made_up()[0].query("method != 'SCAD'"), MEASURES[0]),
            "lack the method SCAD",
        ),
    ],
)
def test_what_cannot_be_ranked_or_tested_is_refused(call, words):
    with pytest.raises(ValueError, match=words):
        call()


def frame(ranks):
    return pd.DataFrame(ranks, columns=[f"method {j}" for j in range(np.shape(ranks)[1])])


@given(st.integers(2, 40), st.integers(3, 8), st.integers(0, 10_000))
def test_friedman_is_scipys_where_nothing_ties(n, k, seed):
    values = np.random.default_rng(seed).normal(size=(n, k))
    test = friedman(frame(stats.rankdata(values, axis=1)))
    expected = stats.friedmanchisquare(*values.T)
    assert_allclose(test.chi2, expected.statistic, rtol=1e-9, atol=1e-9)
    assert_allclose(test.chi2_p, expected.pvalue, rtol=1e-9)
    assume(np.isfinite(test.f))
    # Iman and Davenport's form is the F of a two-way analysis of variance of the ranks.
    ranks = stats.rankdata(values, axis=1)
    between = n * np.sum((ranks.mean(axis=0) - (k + 1) / 2) ** 2) / (k - 1)
    residual = ranks - ranks.mean(axis=0)
    within = np.sum(residual**2) / ((n - 1) * (k - 1))
    assert_allclose(test.f, between / within, rtol=1e-7, atol=1e-9)
    assert_allclose(test.f_p, stats.f.sf(between / within, k - 1, (n - 1) * (k - 1)), rtol=1e-6)


def test_friedman_by_hand():
    # Ties are not corrected for. Average ranks 1.25, 2 and 2.75 over two data sets: chi2 = 12 * 2 /
    # 12 * (0.75^2 + 0.75^2).
    assert friedman(frame([[1.0, 2.0, 3.0], [1.5, 2.0, 2.5]])).chi2 == 2.25
    agreed = friedman(frame([[1, 2, 3]] * 5))
    assert (agreed.chi2, agreed.f, agreed.f_p) == (10.0, np.inf, 0.0)
    tied = friedman(frame([[2, 2, 2]] * 5))
    assert (tied.chi2, tied.chi2_p, tied.f, tied.f_p) == (0.0, 1.0, 0.0, 1.0)


@settings(max_examples=30)
@given(tables.filter(lambda costs: costs.shape[1] > 2), st.integers(0, 6))
def test_holm_is_that_of_scikit_posthocs(costs, control):
    control %= costs.shape[1]
    # The other program ranks by itself, and ties only what is equal.
    ranks = frame(fractional_ranks(costs, tie=0.0))
    name = f"method {control}"
    values = pd.DataFrame(costs, columns=ranks.columns)
    expected = scikit_posthocs.posthoc_demsar(values, control=name, p_adjust="holm")
    compared = holm(ranks, name)
    assert_allclose(compared["adjusted"], expected.loc[name, compared.index], rtol=1e-9)
    assert_array_equal(compared["difference"], ranks.mean()[compared.index] - ranks[name].mean())


def test_holm_of_the_studys_own_ranks_is_that_of_scikit_posthocs():
    for ranking in analyse(*made_up()).rankings.values():
        # Ranks of ranks are the same ranks, so the other program can take ours, ties and all.
        expected = scikit_posthocs.posthoc_demsar(
            ranking.ranks.reset_index(drop=True), control="SparseStep", p_adjust="holm"
        )
        adjusted = ranking.holm["adjusted"]
        assert_allclose(adjusted, expected.loc["SparseStep", adjusted.index], rtol=1e-9)


def test_the_outcome_has_a_direction():
    ranks = pd.DataFrame([[1, 2, 3, 4]] * 30, columns=["first", "control", "third", "last"])
    outcomes = holm(ranks, "control")["control_is"].to_dict()
    assert outcomes == {"first": "worse", "third": "better", "last": "better"}
    assert set(holm(ranks.head(2), "control")["control_is"]) == {"not separated"}


def test_replicates_become_one_block_per_setting():
    ranking = analyse(*made_up(replicates=3)).rankings["mse_b"]
    assert ranking.blocks.shape == (180, 6)
    setting = (50, 25, 1.0, "noise")
    one = ranking.settings.drop(columns="replicate").eq(list(setting)).all(axis=1)
    assert one.sum() == 3
    means = ranking.ranks[one].mean().round(9)
    assert_array_equal(ranking.blocks.loc[setting], stats.rankdata(means))
