"""Sites that hand on a file of moments each, and never a row."""

import numpy as np
import pyarrow.parquet as pq
import pytest

from source_data import FEATURES, assert_moments, expected, make_table
from sparsestep import Moments, read_moments
from sparsestep.moments import leave_one_out
from sparsestep.reference import sparsestep_reference
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
            fold.save(folder / f"site-{site}-fold-{k}.moments")
        rows.unlink()
        start += size
    return table, folder


def merged(folder):
    """The folds of all sites together, from their files only."""
    return [
        Moments.merge(Moments.load(folder / f"site-{site}-fold-{k}.moments") for site in range(3))
        for k in range(5)
    ]


def test_merged_files_are_the_moments_of_the_pooled_rows(sites):
    table, folder = sites
    numbers = np.concatenate([fold_numbers(n, 5, seed=i) for i, n in enumerate(SIZES)])
    folds = merged(folder)
    for k, fold in enumerate(folds):
        assert_moments(fold, expected(table, rows=numbers == k))
    assert_moments(Moments.merge(folds), expected(table))


@pytest.mark.parametrize("alpha", ALPHAS)
def test_every_fold_has_the_model_of_the_pooled_rows(alpha, sites):
    table, folder = sites
    X = np.column_stack([table.column(name).to_numpy().astype(float) for name in FEATURES])
    y = table.column("y").to_numpy()
    numbers = np.concatenate([fold_numbers(n, 5, seed=i) for i, n in enumerate(SIZES)])
    for k, train in enumerate(leave_one_out(merged(folder))):
        rows = numbers != k
        Xc, yc = X[rows] - X[rows].mean(axis=0), y[rows] - y[rows].mean()
        pooled = sparsestep_reference(Xc.T @ Xc, Xc.T @ yc, alpha)
        model = sparsestep_reference(train.xtx, train.xty, alpha)
        np.testing.assert_array_equal(model != 0, pooled != 0)
        np.testing.assert_allclose(model, pooled, rtol=1e-9)
