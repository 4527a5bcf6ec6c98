"""Sites that hand on a file of moments each, and never a row."""

import numpy as np
import pyarrow.parquet as pq
import pytest
from sklearn.model_selection import PredefinedSplit

from source_data import FEATURES, assert_folds, assert_moments, expected, make_table
from sparsestep import Moments, SparseStep, SparseStepCV, read_moments
from sparsestep.moments.moments import leave_one_out
from sparsestep.sources.folds import fold_numbers

SIZES = (400, 250, 350)
ALPHAS = (1.0, 100.0, 3000.0)


@pytest.fixture(scope="module")
def sites(tmp_path_factory):
    """What travels: for each site, a file for each of five folds."""
    table = make_table()
    folder = tmp_path_factory.mktemp("sites")
    start = 0
    for site, size in enumerate(SIZES):
        rows = folder / f"site-{site}.parquet"
        pq.write_table(table.slice(start, size), rows)
        folds = read_moments(rows, "y", features=FEATURES, folds=5, seed=site)
        for k, fold in enumerate(folds):
            fold.save(folder / f"site-{site}-fold-{k}.npz")
        rows.unlink()
        start += size
    return table, folder


def merged(folder):
    """The folds of all sites together, from their files only."""
    return [
        Moments.merge(Moments.load(folder / f"site-{site}-fold-{k}.npz") for site in range(3))
        for k in range(5)
    ]


def test_merged_files_are_the_moments_of_the_pooled_rows(sites):
    table, folder = sites
    _, _, numbers = pooled_rows(table)
    folds = merged(folder)
    assert_folds(folds, table, numbers)
    assert_moments(Moments.merge(folds), expected(table))


@pytest.mark.parametrize("alpha", ALPHAS)
def test_every_fold_has_the_model_of_the_pooled_rows(alpha, sites):
    table, folder = sites
    X, y, numbers = pooled_rows(table)
    for k, train in enumerate(leave_one_out(merged(folder))):
        pooled = SparseStep(alpha).fit(X[numbers != k], y[numbers != k])
        model = SparseStep(alpha).fit_moments(train)
        np.testing.assert_array_equal(model.coef_ != 0, pooled.coef_ != 0)
        np.testing.assert_allclose(model.coef_, pooled.coef_, rtol=1e-9)


def test_cross_validation_chooses_the_model_of_the_pooled_rows(sites):
    table, folder = sites
    X, y, numbers = pooled_rows(table)
    pooled = SparseStepCV(cv=PredefinedSplit(numbers)).fit(X, y)
    model = SparseStepCV().fit_moments(merged(folder))
    np.testing.assert_allclose(model.coef_, pooled.coef_, rtol=1e-9)
    np.testing.assert_allclose(model.mse_path_, pooled.mse_path_, rtol=1e-8)


def pooled_rows(table):
    """What no site may know: the rows of all, and the folds they are in."""
    X = np.column_stack([table.column(name).to_numpy().astype(float) for name in FEATURES])
    numbers = np.concatenate([fold_numbers(n, 5, seed=i) for i, n in enumerate(SIZES)])
    return X, table.column("y").to_numpy(), numbers
