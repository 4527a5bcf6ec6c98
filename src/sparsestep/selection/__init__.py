"""Coefficients become a choice.

In: `Moments` of the whole and of folds. Out: the alphas worth a fit, cross-validation errors,
information criteria, and the alpha of least error.
"""
