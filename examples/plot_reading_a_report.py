"""
Reading a report
================

A model as a page that can be sent to somebody who does not program. It is one HTML file without
anything from the network; the command line writes it with ``sparsestep fit ... --report
page.html``. Here are squares and products of the ten measurements of the diabetes data: 65
candidates, some of them nearly the same.
"""

# sphinx_gallery_thumbnail_path = 'images/report.png'

from html import escape

import matplotlib.pyplot as plt
from sklearn.datasets import load_diabetes
from sklearn.preprocessing import PolynomialFeatures

from sparsestep import CVDisplay, SparseStepIC
from sparsestep.report import render_report

X, y = load_diabetes(return_X_y=True, as_frame=True)
terms = PolynomialFeatures(2, include_bias=False).set_output(transform="pandas").fit_transform(X)
model = SparseStepIC("bic").fit(terms, y)
page = render_report(model, target="progression", source="the diabetes data")
print(f"{len(page.encode()) / 1000:.0f} kB")

# %%
# The page itself. Below the words at the top come the variables kept with their intervals, then the
# slider: move it, and variables enter and leave. "What changes next" says how far the model is
# from another one; a model that changes at the slightest touch of alpha is not to be relied on.


class Shown:
    """A page within this page."""

    def _repr_html_(self):
        style = "width: 100%; height: 46rem; border: 1px solid #98a2b3"
        return f'<iframe srcdoc="{escape(page)}" style="{style}" title="The report"></iframe>'


Shown()

# %%
# The curve that chose, as a picture of its own.

CVDisplay.from_estimator(model)
plt.show()
