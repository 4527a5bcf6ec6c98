"""
Sites that may not share a row
==============================

Four hospitals measure the same things in patients of different kinds. No row may leave its
hospital; sums may. Each saves its moments to a file, the files are merged, and the model is the one
that all rows together would have given.
"""

import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

from sparsestep import Moments, SparseStepIC

names = ["age", "weight", "pressure", "glucose", "sodium", "steps", "sleep", "dose"]
truth = np.array([0.4, 0.0, 0.6, 0.9, 0.0, -0.5, 0.0, 0.0])
rng = np.random.default_rng(1)
sites = {}
for site, rows in zip("ABCD", (60, 90, 150, 400), strict=True):
    X = rng.normal(rng.normal(0, 2, len(names)), 1.0, (rows, len(names)))
    sites[site] = X, 5.0 + X @ truth + 1.5 * rng.standard_normal(rows)

# %%
# At each site, one line; only the file travels.

with tempfile.TemporaryDirectory() as folder:
    for site, (X, y) in sites.items():
        Moments.from_data(X, y, feature_names=names).save(Path(folder) / f"{site}.npz")
    arrived = [Moments.load(path) for path in sorted(Path(folder).iterdir())]

merged = SparseStepIC("bic").fit_moments(Moments.merge(arrived))
pooled = SparseStepIC("bic").fit(
    np.concatenate([X for X, _ in sites.values()]), np.concatenate([y for _, y in sites.values()])
)
print("largest difference from the pooled rows:", np.abs(merged.coef_ - pooled.coef_).max())

# %%
# What each site would have found by itself, beside the merged model. The small ones miss what
# only all of them together can see.

models = {f"site {s}": SparseStepIC("bic").fit(*sites[s]) for s in sites} | {"merged": merged}
figure, axes = plt.subplots(figsize=(8.5, 4.2), layout="constrained")
for row, (name, model) in enumerate(models.items()):
    there = model.coef_ != 0
    at = np.arange(len(names)) + 0.14 * (row - 2)
    last = name == "merged"
    axes.plot(
        at[there],
        model.coef_[there],
        "D" if last else "o",
        markersize=8 if last else 5,
        color="black" if last else f"C{row}",
        label=name,
    )
axes.hlines(truth, np.arange(len(names)) - 0.4, np.arange(len(names)) + 0.4, color="0.6", zorder=0)
axes.axhline(0, color="0.85", linewidth=0.8, zorder=0)
axes.set_xticks(range(len(names)), names)
axes.set_ylabel("coefficient (a grey bar is the truth)")
axes.legend(frameon=False, ncols=5, loc="lower center", bbox_to_anchor=(0.5, 1.0))
plt.show()
