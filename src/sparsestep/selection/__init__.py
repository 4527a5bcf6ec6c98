"""Coefficients become a choice.

In: `Moments` of the whole and of folds. Out: the alphas worth a fit (`grid`), errors of held-out
folds (`splitting`, `cross_validation`), information criteria (`criteria`), and the model of least;
or the average of all models (`averaging`), with coefficients shrunk (`shrinkage`).
"""
