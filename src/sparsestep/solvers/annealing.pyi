import numpy as np
from numpy.typing import NDArray

from sparsestep.solvers.engine import _Scaled
from sparsestep.solvers.schedule import Schedule

Array = NDArray[np.float64]
Index = NDArray[np.int32]

def inverse(S: Array, P: Array) -> bool: ...
def solve(
    scaled: _Scaled,
    schedule: Schedule,
    alphas: Array,
    targets: Index,
    largest: Array,
    mild: bool,
    tolerances: Array,
    B: Array,
    done: Index,
) -> int: ...
