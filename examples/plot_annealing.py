"""
The method at work: coefficients as gamma falls
===============================================

SparseStep begins with a penalty so wide that it is a ridge penalty next to nothing, and narrows
it step by step. The shaded funnel is where a coefficient is smaller than gamma. One that is
still inside when the penalty becomes strong falls to zero with gamma. One that has left is no
longer penalized, and moves to its least-squares value on the variables that remain.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_diabetes

from sparsestep import AnnealingDisplay, SparseStepCV

X, y = load_diabetes(return_X_y=True, as_frame=True)
model = SparseStepCV(rule="paired").fit(X, y)
display = AnnealingDisplay.from_estimator(model, X, y)
display.ax_.set_title("Six of ten variables survive")

# %%
# Three prices
# ------------
#
# Three alphas on the same data. The more a variable costs, the wider the penalty is when it
# begins to bite, and the fewer leave the funnel in time. Variables depend on each other: as
# some fall, others that explain the same part of the target grow.

figure, panels = plt.subplots(1, 3, figsize=(12, 4), sharey=True, layout="constrained")
for alpha, ax in zip([2e5, 4e4, 1e4], panels, strict=True):
    AnnealingDisplay.from_data(X, y, alpha, ax=ax)
    ax.set_title(f"alpha = {alpha:,.0f}")
    if ax is not panels[0]:
        ax.set_ylabel("")
plt.show()
