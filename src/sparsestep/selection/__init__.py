"""The models of many alphas, and which of them to take.

In: `Moments` of all rows and of folds. Out: the alphas to fit and their models, `Fits` (`fitting`);
training and test sets, and held-out errors (`cross_validation`) or information criteria
(`criteria`), of which the smallest chooses; the average of all models (`averaging`); coefficients
shrunk (`shrinkage`).
"""
