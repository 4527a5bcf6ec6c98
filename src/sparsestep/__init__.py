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
    from sparsestep.estimators.path import Path
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
_HOMES = {
    "AnnealingDisplay": "display",
    "CVDisplay": "display",
    "InclusionDisplay": "display",
    "Moments": "moments",
    "Path": "estimators.path",
    "PathDisplay": "display",
    "PenaltyDisplay": "display",
    "SparseStep": "estimators.estimators",
    "SparseStepCV": "estimators.estimators",
    "SparseStepIC": "estimators.estimators",
    "load_model": "model.file",
    "read_moments": "sources",
    "save_model": "model.file",
    "sparsestep_path": "estimators.estimators",
    "write_report": "report",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
