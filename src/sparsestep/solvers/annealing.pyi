import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Index = NDArray[np.int32]

def inverse(S: Array, P: Array) -> bool: ...
def late_start(
    alphas: Array,
    largest: Array,
    steepest: Array,
    mu: float,
    gammas: Array,
    t_max: int,
    remembered: float,
    starts: Index,
    from_ols: Index,
) -> None: ...
def solve(
    S: Array,
    P: Array,
    tau: Array,
    mu: float,
    mild: bool,
    V: Array,
    V_t: Array,
    w_V: Array,
    metric: Array,
    q: Array,
    ols: Array,
    root: Array,
    factor: Array,
    gammas: Array,
    gamma_step: float,
    t_max: int,
    epsilon: float,
    alphas: Array,
    targets: Index,
    starts: Index,
    from_ols: Index,
    tolerance: float,
    forgotten: float,
    B: Array,
    done: Index,
) -> int: ...
