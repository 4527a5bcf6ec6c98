"""
Choosing alpha by six rules
===========================

The diabetes data: 442 patients, ten measurements, and the progress of the disease a year later.
The rules below differ in what they ask of a variable. The first four look at the fits of the same
101 alphas on ten folds, BIC at those on all rows; the last searches for the best model of as many
variables as it is told.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_diabetes

from sparsestep import CVDisplay, InclusionDisplay, SparseStep, SparseStepCV, SparseStepIC

X, y = load_diabetes(return_X_y=True, as_frame=True)
models = {
    "CV, paired": SparseStepCV(rule="paired").fit(X, y),
    "CV, one standard error": SparseStepCV(rule="1se").fit(X, y),
    "CV, average": SparseStepCV(rule="average").fit(X, y),
    "CV, average, shrunk": SparseStepCV(rule="average", shrink="cv").fit(X, y),
    "BIC": SparseStepIC("bic").fit(X, y),
    "exactly four": SparseStep(n_nonzero=4).fit(X, y),
}

# %%
# On the left the error on the rows left out. The wide band is one standard error of the error, most
# of which all alphas share; the narrow one is half the standard error of the difference to the
# smallest error. The paired rule takes the sparsest model whose narrow band reaches down to the
# smallest error. On the right the weights of the average: how sure it is that a variable belongs.

figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4.4), layout="constrained")
CVDisplay.from_estimator(models["CV, paired"], ax=left)
InclusionDisplay.from_estimator(models["CV, average"], ax=right)
left.set_title("Ten-fold cross-validation")
right.set_title("The average of all models")

# %%
# What each rule keeps. The effects hardly change from one rule to the next: a rule mostly decides
# who is in. Where columns measure nearly the same (s1, s2 and s3 are all cholesterol) they do
# change, as in any least-squares fit, and there an average or some shrinkage calms them.

coefs = np.array([model.coef_ for model in models.values()])
limit = np.abs(coefs).max()
figure, axes = plt.subplots(figsize=(9, 3.6), layout="constrained")
axes.imshow(coefs, cmap="RdBu_r", vmin=-limit, vmax=limit, aspect="auto")
axes.set_xticks(range(X.shape[1]), X.columns)
axes.set_yticks(range(len(models)), models)
for row, column in np.argwhere(coefs):
    value = coefs[row, column]
    colour = "white" if abs(value) > 0.6 * limit else "black"
    axes.text(column, row, f"{value:.0f}", ha="center", va="center", color=colour)
axes.set_title("Coefficients; empty is out")
plt.show()
