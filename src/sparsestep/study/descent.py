"""Lasso, SCAD and MC+ by coordinate descent on the Gram matrix, and how optimal a fit is.

The loss is ``b'Cb / 2 - r'b`` with ``C = X'X / n`` and ``r = X'y / n``. Both penalties are
piecewise quadratic, and the lasso is MC+ with an infinite a. Their derivatives at ``|b|`` are

=====  =======================================================
MC+    ``max(lambda - |b| / a, 0)``
SCAD   ``lambda`` up to lambda, then ``max(a lambda - |b|, 0) / (a - 1)``
=====  =======================================================

`descend` runs to convergence. Each sweep visits the variables in a new random order, from a fixed
seed: in a fixed order equal correlations are the worst case known of coordinate descent (Sun and Ye
2021), and at 500 variables 2000 sweeps were not enough where about 40 are in random order. Where a
penalty is almost as concave as the loss is convex, thousands of sweeps move in one direction: every
20 sweeps a step goes as far that way as the objective falls.

`descend_2015` stops where the R packages of the paper's time stopped, converged or not;
`calibrated` has sparsenet's scale of lambda.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_ndtr

from sparsestep.sources.request import load

Array = NDArray[np.float64]

# Relative to the largest |r|. The gradient's error is then a few times as large: below 1e-9.
TOLERANCE = 1e-10
MOST_SWEEPS = 20_000
# Most fits take fewer than 40 sweeps, and are better left alone.
SWEEPS_PER_EXTRAPOLATION = 20
FARTHEST_EXTRAPOLATION = 1024.0

# The defaults of ncvreg 3.4.
RELATIVE_CHANGE_2015 = 1e-3
MOST_SWEEPS_2015 = 1000

_compiled: Any = load("numba", "study").njit(cache=True, error_model="numpy")


class NotConverged(RuntimeError):
    """Coordinate descent did not reach its tolerance."""


def descend(
    C: Array, r: Array, lambdas: Array, a: float | Sequence[float] = np.inf, *, scad: bool = False
) -> Array:
    """Coefficients for each lambda, largest first, each started from those of the one before.

    Several a are computed side by side, which is quicker than one after the other and gives the
    same: the result then has one more dimension, the first. Each element of the diagonal of C must
    exceed ``1 / a``, or ``1 / (a - 1)`` with SCAD: the loss is more convex in each variable than
    the penalty is concave. At lambdas not below ``max |r|`` all coefficients are zero, at no cost.

    Uncorrelated variables show the three thresholding rules:

    >>> C, r, lambdas = np.eye(4), np.array([0.5, 1.5, 2.5, 5.0]), np.array([1.0])
    >>> descend(C, r, lambdas)
    array([[0. , 0.5, 1.5, 4. ]])
    >>> descend(C, r, lambdas, 3.0)
    array([[0.  , 0.75, 2.25, 5.  ]])
    >>> descend(C, r, lambdas, 3.0, scad=True)
    array([[0. , 0.5, 2. , 5. ]])
    """
    values = np.atleast_1d(np.asarray(a, dtype=np.float64))
    concavity = 1.0 / (values.min() - 1.0 if scad else values.min())
    if not np.all(np.diag(C) > concavity):
        raise ValueError(f"a = {a} is too small for variables of these variances; give a larger a.")
    B = np.zeros((len(values), len(lambdas), len(r)))
    # Of one kind, for which the function is compiled once.
    C, r, lambdas = (np.require(each, np.float64, ["C", "W"]) for each in (C, r, lambdas))
    failed = _descend(C, r, lambdas, values, scad, B)
    if failed >= 0:
        raise NotConverged(f"No convergence at lambda = {lambdas[failed]:.3g}, a = {a}.")
    if not np.all(np.isfinite(B)):
        raise NotConverged(f"No finite minimum at a = {a}: X'X / n is not positive definite.")
    return B if np.ndim(a) else B[0]


@_compiled  # type: ignore[untyped-decorator]
def _minimizer(z: float, v: float, lam: float, a: float, scad: bool) -> float:
    """The x that minimizes ``v x^2 / 2 - z x`` plus the penalty."""
    size = abs(z)
    if size <= lam:
        return 0.0
    if size > v * a * lam:
        return z / v
    if not scad:
        x = (size - lam) / (v - 1.0 / a)
    elif size <= (1.0 + v) * lam:
        x = (size - lam) / v
    else:
        x = (size - lam * a / (a - 1.0)) / (v - 1.0 / (a - 1.0))
    return x if z > 0.0 else -x


@_compiled  # type: ignore[untyped-decorator]
def _penalty(b: float, lam: float, a: float, scad: bool) -> float:
    """The penalty at b, whose derivatives are above."""
    size = abs(b)
    if scad and size <= lam:
        return lam * size
    if size >= a * lam:
        return 0.5 * lam * lam * (a + 1.0 if scad else a)
    if scad:
        return (a * lam * size - 0.5 * (size * size + lam * lam)) / (a - 1.0)
    return lam * size - 0.5 * size * size / a


@_compiled  # type: ignore[untyped-decorator]
def _extrapolate(
    b: Array, gradient: Array, b_old: Array, gradient_old: Array, lam: float, a: float, scad: bool
) -> None:
    """Move b by ``t (b - b_old)`` with t = 1, 2, 4, ... while the objective falls.

    With d = b - b_old, and ``C d`` the difference of the gradients, the loss changes by
    ``t d'gradient + t^2 d'C d / 2``.
    """
    slope = curvature = here = 0.0
    for k in range(len(b)):
        d = b[k] - b_old[k]
        slope += d * gradient[k]
        curvature += d * (gradient[k] - gradient_old[k])
        here += _penalty(b[k], lam, a, scad)
    t, fall, trial = 0.0, 0.0, 1.0
    while trial <= FARTHEST_EXTRAPOLATION:
        change = trial * slope + 0.5 * trial * trial * curvature - here
        for k in range(len(b)):
            change += _penalty(b[k] + trial * (b[k] - b_old[k]), lam, a, scad)
        if change >= fall:
            break
        t, fall, trial = trial, change, 2.0 * trial
    for k in range(len(b)):
        b[k] += t * (b[k] - b_old[k])
        gradient[k] += t * (gradient[k] - gradient_old[k])


@_compiled  # type: ignore[untyped-decorator]
def _shuffle(order: NDArray[np.int64], state: np.uint64) -> np.uint64:
    """Shuffle in place, and return the next state of the generator.

    Marsaglia's xorshift: numba's own generator would be a state that calls share.
    """
    for t in range(len(order) - 1, 0, -1):
        state ^= state << np.uint64(13)
        state ^= state >> np.uint64(7)
        state ^= state << np.uint64(17)
        u = int(state % np.uint64(t + 1))
        order[t], order[u] = order[u], order[t]
    return state


@_compiled  # type: ignore[untyped-decorator]
def _sweep(
    C: Array,
    b: Array,
    gradient: Array,
    change: Array,
    order: NDArray[np.int64],
    lam: float,
    a: Array,
    scad: bool,
) -> None:
    """Minimize over each variable in turn; `change` is the largest step of each a, in the gradient.

    An a of negative change has converged and stays as it is. At 500 variables C is too large for
    the fast caches, and reading it takes most of the time: all a share each row that is read.
    """
    for j in order:
        v = C[j, j]
        for p in range(len(a)):
            if change[p] < 0.0:
                continue
            step = _minimizer(v * b[p, j] - gradient[p, j], v, lam, a[p], scad) - b[p, j]
            if step != 0.0:
                b[p, j] += step
                for k in range(len(order)):
                    gradient[p, k] += step * C[j, k]
                change[p] = max(change[p], abs(step) * v)


@_compiled  # type: ignore[untyped-decorator]
def _descend(C: Array, r: Array, lambdas: Array, a: Array, scad: bool, B: Array) -> int:
    """Fill B; return the place of a lambda without convergence, or -1."""
    n_a, m = len(a), len(r)
    b = np.zeros((n_a, m))
    gradient = np.zeros((n_a, m))
    for p in range(n_a):
        gradient[p] = -r
    b_old, gradient_old = b.copy(), gradient.copy()
    order = np.zeros(m, dtype=np.int64)
    change = np.zeros(n_a)
    largest = np.max(np.abs(r))
    tolerance = TOLERANCE * largest
    for i in range(len(lambdas)):
        lam = lambdas[i]
        if lam >= largest:
            continue
        # The same orders for each lambda, so that no a depends on the convergence of another.
        state = np.uint64(88172645463325252)
        for k in range(m):
            order[k] = k
        change[:] = np.inf
        sweeps = 0
        while change.max() > tolerance:
            if sweeps == MOST_SWEEPS:
                return i
            if sweeps % SWEEPS_PER_EXTRAPOLATION == 0:
                for p in range(n_a):
                    if sweeps and change[p] > tolerance:
                        _extrapolate(b[p], gradient[p], b_old[p], gradient_old[p], lam, a[p], scad)
                b_old[:] = b
                gradient_old[:] = gradient
            sweeps += 1
            state = _shuffle(order, state)
            for p in range(n_a):
                change[p] = 0.0 if change[p] > tolerance else -1.0
            # Always over all variables: one that stays at zero costs a comparison. The usual sweeps
            # over the active set first took 1.5 times as many sweeps.
            _sweep(C, b, gradient, change, order, lam, a, scad)
        B[:, i] = b
    return -1


# -- as in 2015 --------------------------------------------------------------------------------


def descend_2015(
    C: Array, r: Array, lambdas: Array, a: float, *, scad: bool = False, warm: bool = False
) -> Array:
    """Coefficients for each lambda by the algorithm of Breheny and Huang (2011).

    Sweeps in the order of the columns over the active set, the variables that were ever nonzero,
    until no coefficient changes by 0.1 % of itself; then one sweep over the others, and so on until
    none of these becomes nonzero, or after 1000 sweeps: the defaults of ncvreg 3.4. Each lambda
    starts from zero unless `warm`.

    >>> C = np.array([[1.0, 0.9], [0.9, 1.0]])
    >>> r, lambdas = np.array([1.0, 0.95]), np.array([0.1])
    >>> descend_2015(C, r, lambdas, np.inf).round(3), descend(C, r, lambdas).round(3)
    (array([[0.712, 0.21 ]]), array([[0.711, 0.211]]))
    """
    B = np.zeros((len(lambdas), len(r)))
    C, r, lambdas = (np.require(each, np.float64, ["C", "W"]) for each in (C, r, lambdas))
    _descend_2015(C, r, lambdas, a, scad, warm, B)
    return B


@_compiled  # type: ignore[untyped-decorator]
def _descend_2015(
    C: Array, r: Array, lambdas: Array, a: float, scad: bool, warm: bool, B: Array
) -> None:
    """Fill B."""
    m = len(r)
    b, gradient = np.zeros(m), -r
    active = np.zeros(m, dtype=np.bool_)
    largest = np.max(np.abs(r))
    for i in range(len(lambdas)):
        if lambdas[i] >= largest:
            continue
        if not warm:
            b[:] = 0.0
            gradient[:] = -r
            active[:] = False
        sweeps, over_active = 0, True
        while sweeps < MOST_SWEEPS_2015:
            sweeps += 1
            changed = False
            for j in range(m):
                if active[j] != over_active:
                    continue
                old = b[j]
                z = C[j, j] * old - gradient[j]
                b[j] = _minimizer(z, C[j, j], lambdas[i], a, scad)
                step = b[j] - old
                if step != 0.0:
                    for k in range(m):
                        gradient[k] += step * C[j, k]
                    if abs(step) > RELATIVE_CHANGE_2015 * abs(old):
                        changed = True
                    active[j] = True
            # Newly active variables, or a sweep that still changes the active: sweep over these.
            if not changed and not over_active:
                break
            over_active = changed
        B[i] = b


def calibrated(lambdas: Array, a: float, spread: float) -> Array:
    """The lambda of MC+ with this a that has as many degrees of freedom as the lasso's.

    Of one variable whose least squares coefficient is z ~ N(0, spread^2), the lasso has
    ``P(|z| > lambda)`` degrees of freedom and MC+ ``(a P(|z| > u) - P(|z| > a u)) / (a - 1)`` at u,
    both the mean derivative of the thresholding rule. u solves that they are equal (Mazumder,
    Friedman and Hastie 2011, who take the null model).

    >>> lambdas = np.array([1.0, 4.0])
    >>> calibrated(lambdas, 1.000001, 1.0).round(2), calibrated(lambdas, 3.0, 1.0).round(2)
    (array([1.88, 4.7 ]), array([1.25, 4.09]))
    """
    if np.isinf(a):
        return lambdas
    target = log_ndtr(-lambdas / spread)
    # At its upper end MC+ has fewer degrees of freedom than the lasso, whatever a.
    low, high = lambdas / spread, lambdas / spread + 10.0
    for _ in range(60):
        u = (low + high) / 2
        tail = log_ndtr(-u)
        df = tail + np.log1p(-np.expm1(log_ndtr(-a * u) - tail) / (a - 1.0))
        low, high = np.where(df > target, u, low), np.where(df > target, high, u)
    return np.asarray(spread * high)


# -- optimality --------------------------------------------------------------------------------
# A violation is the largest distance, over the variables, of minus the gradient of the loss from
# what the penalty's derivative may be there, relative to the largest gradient at b = 0. The fits
# are the rows of B.


def concave_violation(
    C: Array, r: Array, lambdas: Array, B: Array, a: float = np.inf, *, scad: bool = False
) -> float:
    """Worst violation of fits of the lasso, of MC+ or of SCAD, one for each lambda.

    >>> C, r, lambdas = np.eye(2), np.array([3.0, 0.5]), np.array([1.0])
    >>> concave_violation(C, r, lambdas, np.array([[2.0, 0.0]]))
    0.0
    >>> round(concave_violation(C, r, lambdas, np.array([[2.3, 0.0]])), 12)
    0.1
    """
    lam = np.asarray(lambdas)[:, None]
    gradient = B @ C - r
    size = np.abs(B)
    if scad:
        slope = np.where(size <= lam, lam, np.maximum(a * lam - size, 0.0) / (a - 1.0))
    else:
        slope = np.maximum(lam - size / a, 0.0)
    at_zero = np.maximum(np.abs(gradient) - lam, 0.0)
    return _worst(np.where(B == 0, at_zero, gradient + np.sign(B) * slope), r)


def ridge_violation(S: Array, q: Array, alphas: Array, B: Array) -> float:
    """Worst violation of ``S b + alpha b = q``, with ``S = X'X`` and ``q = X'y``."""
    return _worst(B @ S + np.asarray(alphas)[:, None] * B - q, q)


def least_squares_violation(S: Array, q: Array, B: Array) -> float:
    """Worst violation of ``S b = q`` at the selected variables, which are not shrunk."""
    return _worst(np.where(B == 0, 0.0, B @ S - q), q)


def _worst(violation: Array, gradient_at_zero: Array) -> float:
    """The largest violation, relative to the largest gradient at b = 0."""
    return float(np.max(np.abs(violation)) / np.max(np.abs(gradient_at_zero)))
