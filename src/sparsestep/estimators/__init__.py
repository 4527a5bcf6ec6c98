"""The scikit-learn interface.

In: X and y as users have them. Out: `SparseStep`, `SparseStepCV` and `SparseStepIC`, fitted, and
`Path`.
"""
