"""The study's data sets are what section 4 of the paper says, whoever draws them and when."""

from itertools import product

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from source_data import assert_moments, assert_same, exact
from sparsestep.study import datasets
from sparsestep.study.datasets import DataSet, Scale, draw, factors, generate, settings_of

CORRELATIONS = ("uncorrelated", "constant", "noise")
SMALL = Scale("small", n_train=600, n_test=300, sizes=(10, 50, 100))


def test_the_design_is_that_of_the_paper():
    settings = settings_of(datasets.SCALES["paper"])
    assert len(settings) == datasets.SETTINGS == 180
    assert [setting.dataset for setting in settings] == list(range(180))
    assert {(s.m, s.sparsity, s.snr, s.correlation) for s in settings} == set(
        product((10, 50, 100, 500), (0, 25, 50, 75, 95), (0.1, 1.0, 10.0), CORRELATIONS)
    )
    assert (datasets.SCALES["paper"].n_train, datasets.SCALES["paper"].n_test) == (20_000, 10_000)
    grid = datasets.paper_grid()
    assert (len(grid), grid[0], grid[-1]) == (101, 2.0**15, 2.0**-15)
    assert_allclose(np.diff(np.log2(grid)), -0.3, rtol=1e-12)


def test_numbers_of_data_sets_do_not_depend_on_the_scale():
    paper = {s.dataset: s for s in settings_of(datasets.SCALES["paper"], replicates=3)}
    quick = settings_of(datasets.SCALES["quick"], replicates=3)
    assert len(quick) == 3 * 135
    assert all(paper[setting.dataset] == setting for setting in quick)
    assert {s.dataset // 180 for s in quick if s.replicate == 2} == {2}


@pytest.mark.parametrize("setting", settings_of(SMALL)[::7], ids=str)
def test_variables_coefficients_and_noise(setting):
    X, y, b = draw(setting, SMALL)
    assert X.shape == (900, setting.m)
    assert_allclose(X.mean(axis=0), 0.0, atol=1e-14)
    assert_allclose(X.var(axis=0), 1.0, rtol=1e-13)
    zeros = int(np.floor(setting.m * setting.sparsity / 100))
    assert np.count_nonzero(b) == setting.m - zeros
    assert np.all(b[: setting.m - zeros] != 0.0)
    assert np.all(np.abs(b) <= 1.0)
    signal = X @ b
    noise = y - signal
    assert signal @ signal / (noise @ noise) == pytest.approx(setting.snr, rel=1e-12)


@pytest.mark.parametrize("kind", CORRELATIONS)
def test_correlations_of_the_rows(kind):
    scale = datasets.SCALES["paper"]
    setting = next(s for s in settings_of(scale) if (s.m, s.correlation) == (50, kind))
    X, _, _ = draw(setting, scale)
    n = len(X)
    rng = np.random.default_rng(np.random.SeedSequence(20170116, spawn_key=(setting.dataset,)))
    rng.uniform(0.0, 1.0, 50)
    d, F = factors(kind, 50, rng)
    error = (X.T @ X / n - d * np.eye(50) - F @ F.T)[np.triu_indices(50, 1)]
    # 1225 correlations, each with a standard deviation of at most 1 / sqrt(n).
    assert np.max(np.abs(error)) < 4.5 / np.sqrt(n)
    assert np.sqrt(np.mean(error**2)) > 0.3 / np.sqrt(n)


@pytest.mark.parametrize("m", [10, 100])
def test_the_noise_is_that_of_hardin_garcia_and_golan(m):
    """Their Algorithm 4: the base matrix, here I, plus epsilon u_i'u_j off the diagonal."""
    u = np.random.default_rng(5).uniform(-1, 1, (m, 2))
    u /= np.hypot(*u.T)[:, None]
    expected = np.where(np.eye(m), 1.0, 0.01 * u @ u.T)
    d, F = factors("noise", m, np.random.default_rng(5))
    assert_allclose(d * np.eye(m) + F @ F.T, expected, atol=1e-15)


def test_an_unknown_correlation_is_refused():
    with pytest.raises(ValueError, match="must be 'uncorrelated', 'constant' or 'noise'; got 'x'"):
        factors("x", 3, np.random.default_rng(0))


def test_a_data_set_depends_on_its_number_only():
    some = settings_of(SMALL, replicates=2)[::61]
    first = {s.dataset: draw(s, SMALL) for s in some}
    for setting in reversed(some):
        for before, again in zip(first[setting.dataset], draw(setting, SMALL), strict=True):
            assert_array_equal(before, again)
    # The same setting in another replicate, and other settings of the same size, differ.
    twins = [s for s in settings_of(SMALL, replicates=2) if s.dataset % 180 == 7]
    assert len(twins) == 2
    assert not np.any(draw(twins[0], SMALL)[1] == draw(twins[1], SMALL)[1])
    dense = [s for s in settings_of(SMALL) if s.m == 10 and s.sparsity == 0]
    coefficients = {tuple(draw(s, SMALL)[2]) for s in dense}
    assert len(coefficients) == len(dense) == 9


@pytest.mark.parametrize("saved", [False, True])
def test_moments_are_those_of_the_rows_also_when_read_back(saved, tmp_path):
    setting = settings_of(SMALL)[22]
    data = generate(setting, SMALL)
    X, y, b = draw(setting, SMALL)
    assert setting.correlation == "constant" and 0 < np.count_nonzero(b) < len(b)
    if saved:
        folder = tmp_path / "00022"
        assert not DataSet.is_saved(folder)
        data.save(folder)
        assert DataSet.is_saved(folder)
        before, data = data, DataSet.load(folder)
        for one, other in zip([*before.folds, before.test], [*data.folds, data.test], strict=True):
            assert_same(one, other)
        (folder / "b.txt").unlink()
        assert not DataSet.is_saved(folder)
    assert_array_equal(data.b, b)
    assert [fold.n_samples for fold in data.folds] == [60] * datasets.FOLDS
    assert data.test.n_samples == 300
    for moments, rows in [(data.folds[3], slice(180, 240)), (data.test, slice(600, 900))]:
        assert_moments(moments, exact(X[rows], y[rows]))
