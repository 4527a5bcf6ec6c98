"""Sums become coefficients.

In: `Moments` and settings as a `ScaledProblem`, alphas. Out: its coefficients for every alpha. The
compiled engine (`annealing.pyx`) follows Algorithm 1 for many problems at once, `wide` on working
sets of columns, and `polish` improves what they find.
"""
