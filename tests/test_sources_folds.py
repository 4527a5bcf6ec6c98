import itertools
import pickle

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.model_selection import PredefinedSplit

from source_data import FEATURES, assert_folds, make_table, matrix
from sparsestep import Moments, SparseStepCV, read_moments
from sparsestep.moments.moments import leave_one_out
from sparsestep.sources.folds import FoldNumbers, fold_numbers


@given(
    st.integers(2, 50),
    st.integers(0, 2**64 - 1),
    st.lists(st.integers(0, 200), min_size=1, max_size=8),
)
def test_folds_do_not_depend_on_how_rows_are_batched(folds, seed, batches):
    numbers = FoldNumbers(folds, seed, part=3)
    in_batches = np.concatenate([numbers.take(rows) for rows in batches])
    np.testing.assert_array_equal(in_batches, fold_numbers(sum(batches), folds, seed, part=3))


@given(st.integers(0, 500), st.integers(2, 20), st.integers(0, 1000))
def test_folds_differ_by_at_most_one_row(rows, folds, seed):
    sizes = np.bincount(fold_numbers(rows, folds, seed), minlength=folds)
    assert len(sizes) == folds
    assert sizes.max() - sizes.min() <= 1


def test_other_seeds_and_other_parts_give_other_folds():
    first = fold_numbers(1000, 5)
    for other in (fold_numbers(1000, 5, seed=1), fold_numbers(1000, 5, part=1)):
        # Two independent partitions into five agree in about a fifth of the rows.
        assert 0.14 < np.mean(first == other) < 0.26


def test_neighbouring_rows_are_as_good_as_independent():
    numbers = fold_numbers(200_000, 10)
    pairs = np.histogram2d(numbers[:-1], numbers[1:], bins=10)[0] / len(numbers)
    # Within a block of ten a fold never repeats: a neighbour repeats only across two blocks.
    repeats = np.diagonal(pairs).sum()
    assert repeats == pytest.approx(0.1 * 0.1, rel=0.1)
    others = pairs[~np.eye(10, dtype=bool)]
    assert others == pytest.approx((1 - repeats) / 90, rel=0.1)


def table(seed):
    rng = np.random.default_rng(seed)
    return pd.DataFrame(rng.normal(size=(60, 3)), columns=["a", "b", "y"])


def test_folds_of_a_run_carry_its_name(tmp_path):
    folds, again = (read_moments(table(0), "y", folds=3) for _ in range(2))
    runs = [fold.runs[0] for fold in folds]
    assert [fold.runs for fold in folds] == [fold.runs for fold in again] == [(r,) for r in runs]
    assert len({run.id for run in runs}) == 1
    assert [(run.of, set(run.folds)) for run in runs] == [(3, {0}), (3, {1}), (3, {2})]
    others = [read_moments(table(1), "y", folds=3), read_moments(table(0), "y", folds=3, seed=1)]
    assert len({each[0].runs[0].id for each in (folds, *others)}) == 3
    folds[1].save(tmp_path / "1.npz")
    for copy in (Moments.load(tmp_path / "1.npz"), pickle.loads(pickle.dumps(folds[1]))):
        assert copy.runs == folds[1].runs
    assert read_moments(table(0), "y").runs == ()
    (run,) = Moments.merge(folds).runs
    assert run.folds == {0, 1, 2} and not run.missing


def test_no_fold_is_merged_twice_and_none_with_others_of_another_run():
    a, b, c = (
        read_moments(table(seed), "y", folds=count) for seed, count in ((0, 3), (1, 3), (0, 5))
    )
    for twice in (lambda: a[0] + a[0], lambda: Moments.merge([*a, a[1]]), lambda: sum(a) + a[2]):
        with pytest.raises(ValueError, match="there twice"):
            twice()
    for mixed in ([a[0], b[1]], [*a, *c], [a[0], c[0]], [*a[:2], b[0]]):
        for order in itertools.permutations(mixed, len(mixed)) if len(mixed) < 4 else [mixed]:
            with pytest.raises(ValueError, match="different runs"):
                Moments.merge(order)
    # Part of a run to train on, the same fold of two tables, and two tables as wholes.
    assert Moments.merge(a[:2]).n_samples == 40
    assert Moments.merge([a[1], b[1]]).n_samples == 40
    assert Moments.merge([*a, *b]).n_samples == 120
    assert (Moments.merge(b) + Moments.merge(c)).n_samples == 120


@pytest.mark.parametrize("fit", [leave_one_out, SparseStepCV().fit_moments])
def test_cross_validation_wants_all_folds_of_a_run(fit):
    a, b = (read_moments(table(seed), "y", folds=3) for seed in (0, 1))
    for folds, words in [
        ([a[0], a[2]], "fold 1 is missing"),
        ([*a, a[0]], "there twice"),
        ([*a, *b], "different runs"),
        ([*a, read_moments(table(1), "y")], "no fold"),
    ]:
        with pytest.raises(ValueError, match=words):
            fit(folds)
    fit([x + z for x, z in zip(a, b, strict=True)])
    fit([Moments.merge(a), Moments.merge(b)])


# -- sites that hand on a file of moments each, and never a row -------------------------------

TABLE = make_table()
SIZES = (400, 250, 350)
# What no site may know: the rows of all, and the folds they are in.
X, Y = matrix(TABLE), TABLE.column("y").to_numpy()
NUMBERS = np.concatenate([fold_numbers(n, 5, seed=i) for i, n in enumerate(SIZES)])


def test_files_of_sites_give_the_moments_and_the_model_of_the_pooled_rows(tmp_path):
    for site, (start, size) in enumerate(zip((0, 400, 650), SIZES, strict=True)):
        rows = TABLE.slice(start, size)
        for k, fold in enumerate(read_moments(rows, "y", features=FEATURES, folds=5, seed=site)):
            fold.save(tmp_path / f"site-{site}-fold-{k}.npz")
    merged = [Moments.merge(map(Moments.load, tmp_path.glob(f"*-fold-{k}.npz"))) for k in range(5)]
    assert_folds(merged, TABLE, NUMBERS)
    pooled = SparseStepCV(cv=PredefinedSplit(NUMBERS)).fit(X, Y)
    model = SparseStepCV().fit_moments(merged)
    np.testing.assert_allclose(model.coef_, pooled.coef_, rtol=1e-9)
    np.testing.assert_allclose(model.mse_path_, pooled.mse_path_, rtol=1e-8)
