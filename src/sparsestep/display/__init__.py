"""The pictures, by scikit-learn's convention for displays.

A constructor checks and stores arrays. `plot` imports matplotlib, draws, and keeps `ax_`,
`figure_` and the artists. The class methods `from_...` compute what the constructor needs, and
plot. Parameters are described once, in `parameters`, for all docstrings.
"""

from sparsestep.display.annealing import AnnealingDisplay
from sparsestep.display.cv import CVDisplay
from sparsestep.display.inclusion import InclusionDisplay
from sparsestep.display.path import PathDisplay
from sparsestep.display.penalty import PenaltyDisplay

__all__ = ["AnnealingDisplay", "CVDisplay", "InclusionDisplay", "PathDisplay", "PenaltyDisplay"]
