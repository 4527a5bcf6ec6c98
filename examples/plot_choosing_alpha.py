"""
Choosing alpha
==============

The diabetes data: 442 patients, ten measurements, and the progress of the disease a year later.
Ten-fold cross-validation fits every alpha on every fold, from one pass over the rows.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_diabetes

from sparsestep import CVDisplay, PathDisplay, SparseStepCV, SparseStepIC

X, y = load_diabetes(return_X_y=True, as_frame=True)
by_error = SparseStepCV(rule="1se").fit(X, y)
by_bic = SparseStepIC("bic").fit(X, y)

# %%
# On the left the error on the rows left out, with one standard error to either side. It is
# nearly flat from three variables on: the rule of one standard error takes the sparsest model
# of the flat part. On the right BIC, which charges log(n) for each variable, and needs no
# folds.

figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4.4), layout="constrained")
CVDisplay.from_estimator(by_error, ax=left)
CVDisplay.from_estimator(by_bic, ax=right)
left.set_title("Ten-fold cross-validation")
right.set_title("BIC")

# %%
# What the two choices keep. The coefficients jump where a variable enters or leaves, and are
# constant between: they are those of least squares on the variables kept.

figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4.4), sharey=True, layout="constrained")
PathDisplay.from_estimator(by_error, ax=left)
PathDisplay.from_estimator(by_bic, ax=right)
left.set_title("One standard error")
right.set_title("BIC")
right.set_ylabel("")

# %%
# The model chosen by cross-validation, with intervals as if its variables had been chosen
# beforehand.

print(by_error.summary())
plt.show()
