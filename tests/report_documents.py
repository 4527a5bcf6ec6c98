"""Documents to report on: small ones whose answer is known, and awkward ones."""

import functools
import json
import operator
from pathlib import Path

import numpy as np
import pandas as pd

from sparsestep import SparseStep, SparseStepCV, SparseStepIC, sparsestep_path
from sparsestep.model.document import checksum
from sparsestep.model.file import document_of, read_document

HOSTILE = [
    "<script>alert(1)</script>",
    "</script><img src=x onerror=alert(2)>",
    '"><svg onload=alert(3)>',
    "<!-- & '{{ 7 * 7 }}' -->",
]


def changed(document, *keys, to=...):
    """A copy with one field replaced, or removed by `...`, and a checksum that fits."""
    document = json.loads(json.dumps(document))
    place = functools.reduce(operator.getitem, keys[:-1], document)
    if to is ...:
        del place[keys[-1]]
    else:
        place[keys[-1]] = to
    document["checksum"] = checksum(document)
    return document


def rows(n=120, m=8, k=3, seed=0, names=None, noise=1.0):
    """A table of which the first k columns matter, less and less, and the target."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, m))
    y = X[:, :k] @ np.linspace(3.0, 1.0, k) + noise * rng.standard_normal(n)
    return pd.DataFrame(X, columns=names or [f"x{j:03d}" for j in range(m)]), y


def fitted(model, data=None, *, target="output", alphas=None, **about):
    """The document of a model of some rows, with a path over `alphas` if they are given."""
    X, y = rows() if data is None else data
    if alphas is not None:
        about["model_path"] = sparsestep_path(X, y, alphas=alphas)
    return document_of(model.fit(X, y), target=target, **about)


def two_targets(X, y):
    """The rows with a second target, which one column is without any noise."""
    return X, np.column_stack([y, -X["x004"]])


def with_warnings():
    """Collinear columns, dropped rows, and the best alpha at the end of those given."""
    X, y = rows(m=6)
    for name, seed in (("twin", 1), ("other twin", 2)):
        noise = np.random.default_rng(seed).standard_normal(len(X))
        X[name] = X[f"x{seed - 1:03d}"] + 1e-3 * noise
    model = SparseStepCV(alphas=[300.0, 200.0], cv=5)
    return fitted(model, (X, y), rows_dropped=7, seed=3)


def with_categories():
    """Of the floors, ground has no indicator and that of the cellar is not kept."""
    floors = ["ground", "cellar", "middle", "top"]
    names = ["floor=middle", "floor=top", "floor=cellar"]
    data = rows(m=4, k=3, names=["size", *names])
    one_hot = {"floor": (floors, sorted(names))}
    return fitted(SparseStepIC("ebic"), data, target="price", one_hot=one_hot)


def with_long_names():
    long = f"average number of rooms per dwelling, {'wordwithoutspaces' * 4}"
    data = rows(names=[f"{long}{j}" for j in range(8)])
    return fitted(SparseStepCV(cv=5), data, target="value of a house " * 6)


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
    one_hot = {"kind": (categories, names)}
    return fitted(SparseStepIC("bic"), (X, 1000.0 * y), target="price", one_hot=one_hot)


# On these rows the three rules of cross-validation take three models.
THREE_MODELS = {"n": 80, "m": 12, "k": 6, "seed": 12, "noise": 3.0}
NOISY = {"n": 60, "m": 12, "k": 6, "noise": 4.0}
# The documents on which every property of the page is tested.
KINDS = {
    "by 1se": lambda: fitted(SparseStepCV(cv=5, rule="1se")),
    "by paired": lambda: fitted(SparseStepCV(cv=5, rule="paired"), rows(**THREE_MODELS)),
    "by average": lambda: fitted(SparseStepCV(cv=5, rule="average"), rows(**THREE_MODELS)),
    "by shrunk average": lambda: fitted(
        SparseStepCV(cv=5, rule="average", shrink="cv"), rows(**NOISY)
    ),
    # The first target is noisy and shrunk, the second is not.
    "of two shrunk": lambda: fitted(
        SparseStepCV(cv=5, shrink="cv"), two_targets(*rows(**NOISY)), target=["first", "second"]
    ),
    "by criterion": lambda: fitted(SparseStepIC("bic")),
    "of fixed alpha": lambda: fitted(SparseStep(alpha=50.0)),
    "of fixed size": lambda: fitted(SparseStep(n_nonzero=2), alphas="sizes"),
    "of alpha beside a path": lambda: fitted(SparseStep(60.0), alphas=[1000.0, 10.0, 0.0]),
    "with nothing kept": lambda: fitted(
        SparseStepCV(cv=5, rule="1se"),
        (rows()[0], np.random.default_rng(9).standard_normal(120)),
        target="noise",
    ),
    "of one variable": lambda: fitted(SparseStepCV(cv=5), rows(m=1, k=1), target=None),
    "with hostile names": lambda: fitted(
        SparseStepCV(cv=5),
        rows(m=4, k=4, names=HOSTILE),
        target="<script>alert('target')</script>",
        source="<script>alert('source')</script>.csv",
        weight="<b>weight</b>",
    ),
    "with warnings": with_warnings,
    "of two targets": lambda: fitted(
        SparseStepCV(cv=5), two_targets(*rows()), target=["first", "second"]
    ),
    "with categories": with_categories,
    "without intercept": lambda: fitted(
        SparseStepCV(cv=5, fit_intercept=False), (rows()[0] + 1.0, rows()[1])
    ),
    # As many variables as rows: no degree of freedom, no interval.
    "of perfect fit": lambda: fitted(SparseStep(1e-6, fit_intercept=False), rows(n=4, m=4, k=4)),
    "with long names": with_long_names,
}
ONE_SPLIT = [(range(90), range(90, 120))]
OTHER_KINDS = {
    "by one split": lambda: fitted(SparseStepCV(cv=ONE_SPLIT)),
    "by average over one split": lambda: fitted(SparseStepCV(10, cv=ONE_SPLIT, rule="average")),
    "by average of noise": lambda: fitted(
        SparseStepCV(10, cv=5, rule="average"), rows(60, 3, 1, seed=1, noise=1e9)
    ),
    "of dependent variables": lambda: fitted(
        SparseStep(0.0), (np.eye(3)[np.arange(50) % 3], np.sin(np.arange(50)))
    ),
    "of two categories": lambda: fitted(
        SparseStep(0.1),
        rows(m=2, k=2, names=["size", "lift=yes"]),
        one_hot={"lift": (["no", "yes"], ["lift=yes"])},
    ),
    "of many variables": lambda: fitted(SparseStepIC("bic"), rows(2000, 500, 60)),
    "of wide rows": of_wide_rows,
    "of the old schema": lambda: read_document(Path(__file__).with_name("model_of_schema_1.json")),
}


@functools.cache
def document(kind):
    """The document of a kind, made once."""
    return (KINDS | OTHER_KINDS)[kind]()
