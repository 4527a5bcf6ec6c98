"""Documents to report on: small ones whose answer is known, and awkward ones."""

import functools

import numpy as np
import pandas as pd

from sparsestep import SparseStep, SparseStepCV, SparseStepIC, sparsestep_path
from sparsestep.model.file import document_of

HOSTILE = [
    "<script>alert(1)</script>",
    "</script><img src=x onerror=alert(2)>",
    '"><svg onload=alert(3)>',
    "<!-- & '{{ 7 * 7 }}' -->",
]


# The documents on which every property of the page is tested.
KINDS = []


def kind(make):
    """A document of `KINDS`, made once."""
    KINDS.append(functools.cache(make))
    return KINDS[-1]


def rows(n=120, m=8, k=3, seed=0, names=None, noise=1.0):
    """A table of which the first k columns matter, less and less, and the target."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, m))
    y = X[:, :k] @ np.linspace(3.0, 1.0, k) + noise * rng.standard_normal(n)
    return pd.DataFrame(X, columns=names or [f"x{j:03d}" for j in range(m)]), y


@kind
def by_cv(n=120, m=8, k=3, rule="1se"):
    return document_of(SparseStepCV(cv=5, rule=rule).fit(*rows(n, m, k)), target="output")


@kind
def by_paired():
    """On these rows the three rules take three models."""
    X, y = rows(n=80, m=12, k=6, seed=12, noise=3.0)
    return document_of(SparseStepCV(cv=5, rule="paired").fit(X, y), target="output")


@kind
def by_average():
    X, y = rows(n=80, m=12, k=6, seed=12, noise=3.0)
    return document_of(SparseStepCV(cv=5, rule="average").fit(X, y), target="output")


@kind
def by_shrunk_average():
    X, y = rows(n=60, m=12, k=6, noise=4.0)
    model = SparseStepCV(cv=5, rule="average", shrink="cv").fit(X, y)
    return document_of(model, target="output")


@kind
def of_two_shrunk():
    """The first target is noisy and shrunk, the second is not."""
    X, y = rows(n=60, m=12, k=6, noise=4.0)
    model = SparseStepCV(cv=5, shrink="cv").fit(X, np.column_stack([y, -X["x004"]]))
    return document_of(model, target=["first", "second"])


@functools.cache
def by_one_split():
    """The last rows are held out."""
    model = SparseStepCV(cv=[(range(90), range(90, 120))]).fit(*rows())
    return document_of(model, target="output")


@kind
def by_criterion():
    return document_of(SparseStepIC("bic").fit(*rows()), target="output")


@functools.cache
def of_many_variables():
    return document_of(SparseStepIC("bic").fit(*rows(2000, 500, 60)), target="output")


@kind
def of_fixed_alpha():
    return document_of(SparseStep(alpha=50.0).fit(*rows()), target="output")


@kind
def of_fixed_size():
    X, y = rows()
    path = sparsestep_path(X, y, alphas="sizes")
    return document_of(SparseStep(n_nonzero=2).fit(X, y), target="output", model_path=path)


@kind
def of_given_alpha_between():
    """The alpha is none of the path's."""
    X, y = rows()
    path = sparsestep_path(X, y, alphas=[1000.0, 10.0, 0.0])
    return document_of(SparseStep(alpha=60.0).fit(X, y), target="output", model_path=path)


@kind
def with_nothing_kept():
    X, _ = rows()
    y = np.random.default_rng(9).standard_normal(len(X))
    return document_of(SparseStepCV(cv=5, rule="1se").fit(X, y), target="noise")


@kind
def of_one_variable():
    return document_of(SparseStepCV(cv=5).fit(*rows(m=1, k=1)))


@kind
def with_hostile_names():
    X, y = rows(m=4, k=4, names=HOSTILE)
    return document_of(
        SparseStepCV(cv=5).fit(X, y),
        target="<script>alert('target')</script>",
        source="<script>alert('source')</script>.csv",
        weight="<b>weight</b>",
    )


@kind
def with_warnings():
    """Collinear columns, dropped rows, and the best alpha at the end of those given."""
    X, y = rows(m=6)
    X["twin"] = X["x000"] + 1e-3 * np.random.default_rng(1).standard_normal(len(X))
    X["other twin"] = X["x001"] + 1e-3 * np.random.default_rng(2).standard_normal(len(X))
    model = SparseStepCV(alphas=[300.0, 200.0], cv=5).fit(X, y)
    return document_of(model, target="output", rows_dropped=7, seed=3)


@kind
def of_two_targets():
    X, y = rows()
    targets = np.column_stack([y, -X["x004"]])
    return document_of(SparseStepCV(cv=5).fit(X, targets), target=["first", "second"])


@kind
def with_categories():
    """Of the floors, ground has no indicator and that of the cellar is not kept."""
    names = ["size", "floor=middle", "floor=top", "floor=cellar"]
    X, y = rows(m=4, k=3, names=names)
    categories = ["ground", "cellar", "middle", "top"]
    groups = {"floor": (categories, ["floor=cellar", "floor=middle", "floor=top"])}
    return document_of(SparseStepIC("ebic").fit(X, y), target="price", one_hot=groups)


@kind
def without_intercept():
    X, y = rows()
    model = SparseStepCV(cv=5, fit_intercept=False).fit(X + 1.0, y)
    return document_of(model, target="output")


@kind
def of_perfect_fit():
    """As many variables as rows: no degree of freedom, no interval."""
    X, y = rows(n=4, m=4, k=4)
    model = SparseStep(alpha=1e-6, fit_intercept=False).fit(X, y)
    return document_of(model, target="output")


@kind
def with_long_names():
    names = [
        f"average number of rooms per dwelling, {'wordwithoutspaces' * 4}{j}" for j in range(8)
    ]
    X, y = rows(names=names)
    return document_of(SparseStepCV(cv=5).fit(X, y), target="value of a house " * 6)


@functools.cache
def of_wide_rows():
    """Categories with long names, one of them of a single row, and coefficients of all sizes."""
    X, y = rows(names=[f"size {j}" for j in range(8)])
    categories = [f"One_Story_{year}_and_Newer_All_Styles" for year in range(1940, 1948)]
    names = [f"kind={name}" for name in categories[1:]]
    for i, name in enumerate(names):
        X[name] = 0.0
        X.loc[[3] if i == 0 else range(10 * i, 10 * i + 10), name] = 1.0
        y = y + (100.0 + 50.0 * i) * X[name]
    X["size 1"] *= 1e4
    model = SparseStepIC("bic").fit(X, 1000.0 * y)
    return document_of(model, target="price", one_hot={"kind": (categories, names)})
