"""
Choosing alpha by five rules
============================

The diabetes data: 442 patients, ten measurements, and the progress of the disease a year later.
The rules below differ in what they ask of a variable. The first four choose among the fits of the
same 101 alphas; the last searches for the best model of as many variables as it is told.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_diabetes

from sparsestep import CVDisplay, SparseStep, SparseStepCV, SparseStepIC

X, y = load_diabetes(return_X_y=True, as_frame=True)
models = {
    "CV, smallest error": SparseStepCV().fit(X, y),
    "CV, one standard error": SparseStepCV(rule="1se").fit(X, y),
    "AIC": SparseStepIC("aic").fit(X, y),
    "BIC": SparseStepIC("bic").fit(X, y),
    "exactly four": SparseStep(n_nonzero=4).fit(X, y),
}

# %%
# On the left the error on the rows left out, with one standard error to either side. It is
# nearly flat from three variables on: the rule of one standard error takes the sparsest model
# of the flat part. On the right BIC, which charges log(n) for each variable, and needs no
# folds.

figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4.4), layout="constrained")
CVDisplay.from_estimator(models["CV, one standard error"], ax=left)
CVDisplay.from_estimator(models["BIC"], ax=right)
left.set_title("Ten-fold cross-validation")
right.set_title("BIC")

# %%
# What each rule keeps. The effects hardly change from one rule to the next, because none of them is
# shrunk: a rule only decides who is in. Where two columns measure nearly the same (s1, s2 and s3
# are all cholesterol) they do change, as in any least-squares fit.

coefs = np.array([model.coef_ for model in models.values()])
limit = np.abs(coefs).max()
figure, axes = plt.subplots(figsize=(9, 3.4), layout="constrained")
axes.imshow(coefs, cmap="RdBu_r", vmin=-limit, vmax=limit, aspect="auto")
axes.set_xticks(range(X.shape[1]), X.columns)
axes.set_yticks(range(len(models)), models)
for row, column in np.argwhere(coefs):
    value = coefs[row, column]
    colour = "white" if abs(value) > 0.6 * limit else "black"
    axes.text(column, row, f"{value:.0f}", ha="center", va="center", color=colour)
axes.set_title("Coefficients; empty is out")
plt.show()
