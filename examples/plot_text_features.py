"""
Sparse text features
====================

Which words in the documentation of a function tell how many parameters it has? The texts are the
docstrings of NumPy and SciPy, which are at hand wherever sparsestep is. Each column says
whether a word occurs: a sparse matrix, most of it zero, which is never made dense.
"""

import inspect

import matplotlib.pyplot as plt
import numpy as np
import scipy.linalg
import scipy.ndimage
import scipy.optimize
import scipy.signal
import scipy.stats
from sklearn.feature_extraction.text import CountVectorizer

from sparsestep import SparseStepIC

texts, parameters = [], []
places = (np, np.linalg, scipy.linalg, scipy.ndimage, scipy.optimize, scipy.signal, scipy.stats)
for place in places:
    for name in sorted(dir(place)):
        function = getattr(place, name)
        if not name.startswith("_") and inspect.isfunction(function) and function.__doc__:
            texts.append(function.__doc__)
            parameters.append(len(inspect.signature(function).parameters))

words = CountVectorizer(binary=True, min_df=60, token_pattern=r"[a-z_]{3,}")
X = words.fit_transform(texts).astype(float)
y = np.log2(1.0 + np.array(parameters))
print(f"{X.shape[0]} texts, {X.shape[1]} words, {X.nnz / np.prod(X.shape):.1%} of the entries")

# %%
# The criterion counts how many sets of words there are of each size, so that it is not fooled by
# one of hundreds. A word that stays has its full effect: where it occurs, the number of parameters
# (plus one) is multiplied by two to the power of the coefficient.

model = SparseStepIC("ebic", alphas=41).fit(X, y)
kept = np.flatnonzero(model.coef_)
kept = kept[np.argsort(model.coef_[kept])]
names = words.get_feature_names_out()[kept]
print(f"{len(kept)} words kept, R2 {model.score(X, y):.2f}")

figure, axes = plt.subplots(figsize=(7, 0.6 + 0.27 * len(kept)), layout="constrained")
colours = np.where(model.coef_[kept] > 0, "tab:blue", "tab:red")
axes.barh(names, model.coef_[kept], color=colours)
axes.axvline(0, color="0.5", linewidth=0.8)
axes.set_xlabel("effect on log2(1 + number of parameters)")
axes.margins(y=0.01)
plt.show()
