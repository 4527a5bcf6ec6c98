"""Sparse linear regression without shrinkage."""

from sparsestep.display import AnnealingDisplay, CVDisplay, PathDisplay, PenaltyDisplay
from sparsestep.estimators import SparseStep, SparseStepCV, SparseStepIC, sparsestep_path
from sparsestep.model_file import load_model, save_model
from sparsestep.moments import Moments
from sparsestep.path import Path
from sparsestep.sources import read_moments

__version__ = "0.1.0"

__all__ = [
    "AnnealingDisplay",
    "CVDisplay",
    "Moments",
    "Path",
    "PathDisplay",
    "PenaltyDisplay",
    "SparseStep",
    "SparseStepCV",
    "SparseStepIC",
    "__version__",
    "load_model",
    "read_moments",
    "save_model",
    "sparsestep_path",
]
