"""Sparse linear regression without shrinkage."""

from sparsestep.display import AnnealingDisplay, CVDisplay, PathDisplay, PenaltyDisplay
from sparsestep.moments import Moments

__version__ = "0.1.0"

__all__ = [
    "AnnealingDisplay",
    "CVDisplay",
    "Moments",
    "PathDisplay",
    "PenaltyDisplay",
    "__version__",
]
