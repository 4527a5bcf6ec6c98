"""The same answer every time: threads, orders of rows and columns, layouts, files and batches."""

from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from threadpoolctl import threadpool_limits

from designs import KINDS, design
from sparsestep import Moments, SparseStep, SparseStepCV, SparseStepIC, read_moments
from sparsestep.sources.folds import fold_numbers


def rows(kind, n, m, seed):
    """Rows of some kind, away from zero, with a sparse truth."""
    rng = np.random.default_rng([KINDS.index(kind), n, m, seed])
    X = design(kind, n, m, rng)
    b = rng.uniform(-1, 1, m) / X.std(axis=0) * (rng.random(m) < 0.5)
    y = X @ b
    y += rng.choice([0.3, 1.0]) * max(y.std(), 0.1) * rng.standard_normal(n)
    return X + rng.uniform(-3, 3, m) * X.std(axis=0), y + 2.0


def assert_same(model, other, columns=slice(None), lost=0.0, lost_at_zero=0.0):
    """The second has the first's variables, in the order `columns`, to nine digits or what is lost.

    `lost` is absolute, for each coefficient; `lost_at_zero` is the intercept's.
    """
    assert_array_equal(other.coef_ != 0, model.coef_[columns] != 0)
    coef = model.coef_[columns]
    assert np.all(np.abs(other.coef_ - coef) <= np.maximum(1e-9 * np.abs(coef), lost))
    # It is a difference of numbers of the size of y, which may be larger than itself.
    assert_allclose(other.intercept_, model.intercept_, rtol=1e-9, atol=max(1e-9, lost_at_zero))
    assert_allclose(other.alpha_, model.alpha_, rtol=1e-9)


def assert_same_by_moments(model, other, X):
    """The same to what sums of products can tell: rounding times the squared condition number."""
    kept, spread = model.coef_ != 0, X.std(axis=0)
    columns = (X - X.mean(axis=0))[:, kept] / spread[kept]
    condition = np.linalg.cond(columns) if kept.any() else 1.0
    effect = np.abs(model.coef_ * spread).max()
    lost = 10 * np.finfo(float).eps * condition**2 * effect / spread
    assert_same(model, other, lost=lost, lost_at_zero=np.sum(lost * np.abs(X.mean(axis=0))))


def splits_of(folds):
    """The splits that test each of three folds once."""
    return [(np.flatnonzero(folds != k), np.flatnonzero(folds == k)) for k in range(3)]


# Which of dependent columns are kept is a matter of rounding.
independent = [kind for kind in KINDS if kind not in ("indicators", "splines")]
kinds = st.sampled_from(independent)
# Of nearly collinear columns sums of products lose so many digits that they say so, in a warning.
for_moments = st.sampled_from(
    [kind for kind in independent if kind not in ("ill_conditioned", "dependent", "factors")]
)
seeds = st.integers(0, 10**6)
shapes = st.sampled_from([(40, 6), (200, 15), (25, 24), (20, 40), (30, 150)])
models = st.one_of(
    st.builds(
        SparseStep,
        alpha=st.floats(-3, 3).map(lambda e: 10.0**e),
        polish=st.sampled_from([None, "swap"]),
    ),
    st.builds(SparseStepIC, criterion=st.sampled_from(["aic", "bic", "ebic"]), alphas=st.just(9)),
    st.builds(SparseStepCV, alphas=st.just(9), rule=st.sampled_from(["min", "1se"])),
)


@settings(max_examples=100)
@given(kind=kinds, shape=shapes, seed=seeds, model=models, intercept=st.booleans())
def test_orders_of_rows_and_columns_and_of_memory(kind, shape, seed, model, intercept):
    X, y = rows(kind, *shape, seed)
    rng = np.random.default_rng(seed)
    order, columns = (rng.permutation(size) for size in shape)
    fold = np.arange(len(y)) % 3

    def fitted(X, y, fold):
        cv = {"cv": splits_of(fold)} if hasattr(model, "cv") else {}
        return clone(model).set_params(fit_intercept=intercept, **cv).fit(X, y)

    first = fitted(X, y, fold)
    assert_same(first, fitted(X[order][:, columns], y[order], fold[order]), columns)
    assert_same(first, fitted(np.asfortranarray(X), y, fold))


@settings(max_examples=30)
@given(
    kind=for_moments,
    shape=shapes,
    seed=seeds,
    model=models,
    file=st.sampled_from(["csv", "parquet"]),
)
def test_in_memory_or_streamed(kind, shape, seed, model, file, tmp_path_factory):
    X, y = rows(kind, *shape, seed)
    names = [f"x{j}" for j in range(shape[1])]
    path = tmp_path_factory.getbasetemp() / f"rows.{file}"
    table = pa.table([*X.T, y], names=[*names, "y"])
    pa.csv.write_csv(table, path) if file == "csv" else pq.write_table(table, path)
    in_folds = hasattr(model, "cv")
    moments = read_moments(path, "y", folds=3, seed=5) if in_folds else read_moments(path, "y")
    streamed = [clone(model).fit_moments(moments)]
    if in_folds:
        model = clone(model).set_params(cv=splits_of(fold_numbers(shape[0], 3, seed=5)))
    else:
        cuts = np.sort(np.random.default_rng(seed).integers(0, shape[0] + 1, 4))
        edges = [0, 0, *np.repeat(cuts, 2), shape[0]]  # some batches are empty
        batches = [(X[a:b], y[a:b]) for a, b in pairwise(edges)]
        streamed.append(clone(model).fit_moments(Moments.from_batches(batches)))
    model.fit(X, y)
    for other in streamed:
        assert_same_by_moments(model, other, X)


@pytest.mark.parametrize("shape", [(3000, 60), (60, 300)])
@pytest.mark.parametrize("kind", ["ar1", "blocks"])
def test_one_thread_or_two(kind, shape):
    X, y = rows(kind, *shape, 0)
    for model in (SparseStep(10.0), SparseStepIC(alphas=15), SparseStepCV(15, cv=4)):
        found = []
        for threads in (1, 2):
            with threadpool_limits(threads):
                found.append(clone(model).fit(X, y))
        assert_same(*found)
        # Twice is the same to the last bit.
        first, second = (clone(model).fit(X.copy(), y.copy()) for _ in range(2))
        assert_array_equal([first.intercept_, *first.coef_], [second.intercept_, *second.coef_])
    one, two, default = (SparseStepCV(15, cv=4, n_jobs=n).fit(X, y) for n in (1, 2, None))
    for other in (two, default):
        assert_array_equal(other.coef_, one.coef_)
        assert_array_equal(other.mse_path_, one.mse_path_)


@pytest.mark.filterwarnings("ignore::sparsestep.errors.LostDigitsWarning")
@pytest.mark.parametrize("n", [40, 5])
def test_copies_are_columns_whose_correlation_is_within_1e_13_of_1(n):
    rng = np.random.default_rng(1)
    X = rng.standard_normal((n, 6))
    centred = X - X.mean(axis=0)
    # Beside it by a share d of its length at a right angle: the correlation is 1 - d^2 / 2.
    one, other = np.linalg.qr(centred[:, :2])[0].T
    y = X @ rng.standard_normal(6) + rng.standard_normal(n)
    for share, copies in ((4.3e-7, True), (4.6e-7, False)):
        near = one + share * other
        model = SparseStep(alpha=0).fit(np.column_stack([one, X, near]), y)
        assert (model.coef_[-1] == 0) == copies
