"""Every entry of the list in `hostile.py` does what the page on reliability says it does."""

import pytest
from sklearn.base import BaseEstimator

from hostile import CASES, page
from sparsestep import sparsestep_path

PAGE = page()


def tried(cases, estimators=None):
    return [
        pytest.param(case, estimator, id=f"{case.group}: {case.input} ({type(estimator).__name__})")
        for case in cases
        for estimator in estimators or case.of
    ]


class PathOf(BaseEstimator):
    """`sparsestep_path` in the place of an estimator."""

    def __init__(
        self,
        alphas=6,
        gamma_0=1e6,
        gamma_stop=1e-8,
        gamma_step=2.0,
        t_max=2,
        epsilon=1e-7,
        penalty_factor=None,
        polish=None,
        solver="auto",
    ):
        self.alphas, self.gamma_0, self.gamma_stop = alphas, gamma_0, gamma_stop
        self.gamma_step, self.t_max, self.epsilon = gamma_step, t_max, epsilon
        self.penalty_factor, self.polish, self.solver = penalty_factor, polish, solver

    def fit(self, X, y, sample_weight=None):
        return sparsestep_path(X, y, sample_weight=sample_weight, **self.get_params())


SHARED = {"values", "shapes", "types", "magnitudes", "weights", "settings"}


@pytest.mark.parametrize(("case", "estimator"), tried(c for c in CASES if not c.refused))
def test_what_has_an_answer(case, estimator):
    case.run(estimator)
    assert not PAGE[case.group, case.input].startswith("*")


@pytest.mark.parametrize(
    ("case", "estimator"),
    tried(c for c in CASES if c.refused)
    + tried((c for c in CASES if c.refused and c.group in SHARED), [PathOf()]),
)
def test_what_is_refused(case, estimator):
    with pytest.raises((ValueError, TypeError)) as error:
        case.run(estimator)
    said = " ".join(str(error.value).replace(type(estimator).__name__, "SparseStep").split())
    assert PAGE[case.group, case.input] in (f"*{said}*", said)


def test_the_page_has_the_whole_list():
    assert sorted(PAGE) == sorted((case.group, case.input) for case in CASES)
