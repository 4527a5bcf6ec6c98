"""Sums become coefficients.

In: `Moments`, alphas and settings. Out: `Fits`, the coefficients for every alpha. The compiled
engine (`annealing.pyx`) follows Algorithm 1 for many problems at once; `refinement` takes the
digits that sums lose from the rows.
"""
