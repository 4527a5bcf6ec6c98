"""Sites that hand on a file of moments each, and never a row."""

import numpy as np
import pytest
from sklearn.model_selection import PredefinedSplit

from source_data import FEATURES, assert_folds, make_table, matrix
from sparsestep import Moments, SparseStepCV, read_moments
from sparsestep.sources.folds import fold_numbers

TABLE = make_table()
SIZES = (400, 250, 350)
# What no site may know: the rows of all, and the folds they are in.
X, Y = matrix(TABLE), TABLE.column("y").to_numpy()
NUMBERS = np.concatenate([fold_numbers(n, 5, seed=i) for i, n in enumerate(SIZES)])


@pytest.fixture(scope="module")
def merged(tmp_path_factory):
    """The five folds of all sites together, from the files that travel."""
    folder, start = tmp_path_factory.mktemp("sites"), np.cumsum([0, *SIZES])
    for site, size in enumerate(SIZES):
        rows = TABLE.slice(start[site], size)
        for k, fold in enumerate(read_moments(rows, "y", features=FEATURES, folds=5, seed=site)):
            fold.save(folder / f"site-{site}-fold-{k}.npz")
    return [Moments.merge(map(Moments.load, folder.glob(f"*-fold-{k}.npz"))) for k in range(5)]


def test_merged_files_are_the_moments_of_the_pooled_rows(merged):
    assert_folds(merged, TABLE, NUMBERS)


def test_cross_validation_chooses_the_model_of_the_pooled_rows(merged):
    pooled = SparseStepCV(cv=PredefinedSplit(NUMBERS)).fit(X, Y)
    model = SparseStepCV().fit_moments(merged)
    np.testing.assert_allclose(model.coef_, pooled.coef_, rtol=1e-9)
    np.testing.assert_allclose(model.mse_path_, pooled.mse_path_, rtol=1e-8)
