"""Sparse linear regression without shrinkage."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sparsestep.display import (
        AnnealingDisplay,
        CVDisplay,
        InclusionDisplay,
        PathDisplay,
        PenaltyDisplay,
    )
    from sparsestep.estimators.estimators import (
        SparseStep,
        SparseStepCV,
        SparseStepIC,
        sparsestep_path,
    )
    from sparsestep.estimators.fitted import Path
    from sparsestep.model.file import load_model, save_model
    from sparsestep.moments.moments import Moments
    from sparsestep.report import write_report
    from sparsestep.sources import read_moments

__version__ = "0.1.0"

__all__ = [
    "AnnealingDisplay",
    "CVDisplay",
    "InclusionDisplay",
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
    "write_report",
]

# Modules are imported when one of their names is first asked for: the command line is one of the
# package's modules, and must not wait for scikit-learn before it can print its help.
_NAMES = {
    "display": {name for name in __all__ if name.endswith("Display")},
    "estimators.estimators": {"SparseStep", "SparseStepCV", "SparseStepIC", "sparsestep_path"},
    "estimators.fitted": {"Path"},
    "model.file": {"load_model", "save_model"},
    "moments": {"Moments"},
    "report": {"write_report"},
    "sources": {"read_moments"},
}


def __getattr__(name: str) -> Any:
    for module, names in _NAMES.items():
        if name in names:
            value = globals()[name] = getattr(import_module(f"{__name__}.{module}"), name)
            return value
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
