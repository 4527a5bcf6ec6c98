import numpy as np
import pytest

from sparsestep import SparseStep, SparseStepCV, SparseStepIC
from sparsestep.sources.dask import moments

da = pytest.importorskip("dask.array")
dd = pytest.importorskip("dask.dataframe")
pd = pytest.importorskip("pandas")


@pytest.fixture
def data():
    rng = np.random.default_rng(0)
    X = 5.0 + rng.standard_normal((600, 5))
    return X, X @ [2.0, 0.0, -1.0, 0.0, 0.5] + rng.standard_normal(600)


@pytest.mark.parametrize("model", [SparseStep(20.0), SparseStepIC("bic")])
def test_a_dask_array_gives_the_fit_of_the_rows(data, model):
    X, y = data
    near = model.fit(X, y).coef_
    far = model.fit(da.from_array(X, chunks=(130, 2)), da.from_array(y, chunks=130)).coef_
    assert np.array_equal(near != 0, far != 0)
    np.testing.assert_allclose(far, near, rtol=1e-9)


def test_cross_validation_on_a_dask_frame(data):
    X, y = data
    frame = pd.DataFrame(X, columns=list("abcde"))
    far = dd.from_pandas(frame, npartitions=3), dd.from_pandas(pd.Series(y), npartitions=3)
    model = SparseStepCV(cv=4).fit(*far)
    assert list(model.feature_names_in_) == list("abcde")
    by_folds = SparseStepCV(cv=4).fit_moments(moments(*far, folds=4))
    np.testing.assert_allclose(model.mse_path_, by_folds.mse_path_, rtol=1e-12)

    predicted = model.predict(far[0])
    assert hasattr(predicted, "compute")
    np.testing.assert_allclose(predicted.compute(), model.predict(frame), rtol=1e-12)


def test_dask_weights_count(data):
    X, y = data
    w = np.arange(600) % 3
    near = SparseStep(20.0).fit(X, y, w).coef_
    far = SparseStep(20.0).fit(*(da.from_array(a, chunks=len(a) // 4) for a in (X, y, w))).coef_
    np.testing.assert_allclose(far, near, rtol=1e-9)


def test_a_splitter_on_a_dask_array_is_refused(data):
    X, y = (da.from_array(a, chunks=200) for a in data)
    with pytest.raises(ValueError, match="cv must be a number of folds"):
        SparseStepCV(cv=[([0, 1], [2])]).fit(X, y)


def test_predictions_of_several_targets_have_their_names(data):
    X, y = data
    frame, targets = pd.DataFrame(X, columns=list("abcde")), pd.DataFrame({"gain": y, "loss": -y})
    model = SparseStep(20.0).fit(frame, targets)
    predicted = model.predict(dd.from_pandas(frame, npartitions=2)).compute()
    assert list(predicted.columns) == ["prediction of gain", "prediction of loss"]
    np.testing.assert_allclose(predicted, model.predict(frame), rtol=1e-12)
