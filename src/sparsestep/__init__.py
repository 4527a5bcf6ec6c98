"""Sparse linear regression without shrinkage."""

from sparsestep.moments import Moments

__version__ = "0.1.0"

__all__ = ["Moments", "__version__"]
