"""
Correlated predictors
=====================

Forty candidates, eight of which matter. As neighbouring columns become more alike, it is harder
to tell the right ones from their neighbours. The lasso lets neighbours in to make up for what it
shrinks, whether cross-validation or BIC chooses for it; SparseStep keeps few. Where neighbours
are nearly the same (0.95), a wrong neighbour at full size costs more than several shrunk, and
the lasso's coefficients are the better ones again.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.linear_model import LassoCV, LassoLarsIC

from sparsestep import SparseStepIC

n, m, draws = 300, 40, 5
correlations = [0.0, 0.3, 0.6, 0.8, 0.9, 0.95]
truth = np.zeros(m)
truth[::5] = [1.0, -0.8, 0.6, 1.0, -1.0, 0.7, 0.9, -0.6]


def draw(rng, correlation):
    """Columns in a row, each correlated with the one before; and the target."""
    X = rng.standard_normal((n, m))
    for j in range(1, m):
        X[:, j] = correlation * X[:, j - 1] + np.sqrt(1 - correlation**2) * X[:, j]
    return X, X @ truth + rng.standard_normal(n)


methods = {
    "lasso, cross-validated": lambda: LassoCV(cv=5),
    "lasso, BIC": lambda: LassoLarsIC("bic"),
    "SparseStep, BIC": lambda: SparseStepIC("bic"),
}
hits = {name: np.zeros((len(correlations), draws)) for name in methods}
errors = {name: np.zeros((len(correlations), draws)) for name in methods}
for i, correlation in enumerate(correlations):
    for k in range(draws):
        X, y = draw(np.random.default_rng([i, k]), correlation)
        for name, method in methods.items():
            coef = method().fit(X, y).coef_
            hits[name][i, k] = np.mean((coef != 0) == (truth != 0))
            errors[name][i, k] = np.sum((coef - truth) ** 2)

# %%
# The share of the forty variables that each method classifies rightly, and the squared error of its
# coefficients; means of five draws.

figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4.2), layout="constrained")
for name in methods:
    left.plot(correlations, hits[name].mean(axis=1), "o-", label=name)
    right.semilogy(correlations, errors[name].mean(axis=1), "o-", label=name)
left.set_ylabel("variables classified rightly")
right.set_ylabel("squared error of the coefficients")
for axes in (left, right):
    axes.set_xlabel("correlation of neighbours")
left.legend(frameon=False)
plt.show()
