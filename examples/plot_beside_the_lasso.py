"""
The path beside the lasso's
===========================

The same data, the same folds, each alpha by the smallest error. Dotted lines are the true
coefficients. Once the six variables that matter are in, SparseStep's estimates lie near them; the
lasso's creep up from zero, and at the alpha that predicts best they are still too small, with many
variables let in to make up for it.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.linear_model import LassoCV, lasso_path

from sparsestep import PathDisplay, SparseStepCV

rng = np.random.default_rng(3)
n, m = 200, 40
X = 0.7 * rng.standard_normal((n, m)) + 0.7 * rng.standard_normal((n, 1))
truth = np.zeros(m)
truth[:6] = [3.0, -2.2, 1.6, 1.1, -0.8, 0.6]
y = X @ truth + rng.standard_normal(n)

model = SparseStepCV(cv=10).fit(X, y)
lasso = LassoCV(cv=10).fit(X, y)
lasso_alphas, lasso_coefs, _ = lasso_path(X - X.mean(axis=0), y - y.mean(), eps=1e-4)

figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4.4), sharey=True, layout="constrained")
PathDisplay(alphas=lasso_alphas, coefs=lasso_coefs, alpha=lasso.alpha_, truth=truth).plot(ax=left)
PathDisplay.from_estimator(model, truth=truth, ax=right)
left.set_title(f"Lasso: {np.count_nonzero(lasso.coef_)} variables kept, shrunk")
right.set_title(f"SparseStep: {np.count_nonzero(model.coef_)} variables kept, not shrunk")
right.set_ylabel("")
plt.show()
