"""Which of many models to take.

In: `Moments` of all rows and of folds. Out: the alphas to fit (`grid`), training and test sets
(`splitting`), held-out errors (`cross_validation`) and information criteria (`criteria`), of which
the smallest chooses; the average of all models (`averaging`); coefficients shrunk (`shrinkage`).
"""
