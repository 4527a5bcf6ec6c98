"""
The penalty and its majorizer
=============================

Ridge and lasso go on charging for a coefficient however large it is, and so shrink it. SCAD and
MC+ stop charging at some size. SparseStep's penalty

.. math:: \\frac{\\beta^2}{\\beta^2 + \\gamma^2}

has a price of at most 1, and as :math:`\\gamma` falls it becomes the count itself: 0 for a
coefficient that is zero, 1 for any other.
"""

import matplotlib.pyplot as plt

from sparsestep import PenaltyDisplay

PenaltyDisplay("penalties").plot()

# %%
# Where the width goes to zero
# ----------------------------
#
# The number of nonzero coefficients among two, and its approximation at two widths. The exact
# count is 2 nearly everywhere, 1 on the axes and 0 at the origin: there is no slope to
# descend. At a large width there is one everywhere.

PenaltyDisplay("norm").plot()

# %%
# One step of the algorithm
# -------------------------
#
# A quadratic that lies above the penalty and touches it at the last coefficients. Adding the
# squared residuals gives another quadratic, so that each step is a ridge regression, with a
# penalty of its own for each coefficient: large for small coefficients, next to nothing for
# large ones.

PenaltyDisplay("majorizer").plot()
plt.show()
