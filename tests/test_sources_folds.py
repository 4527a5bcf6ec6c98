import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

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
