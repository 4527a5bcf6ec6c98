"""Least squares on the selected columns to the last digit, from the rows.

With C the Gram matrix of these columns at unit length, normal equations lose as many digits as the
condition number of C has, which is the square of that of the columns (`collinearity`). The digits
come back by iterative refinement: with the residual r of the rows in twice the precision (pairs of
doubles, high + low),

    b += S^-1 (X - c)'W r,      intercept += 1'W r / 1'W 1 - c'(the change of b),

where S and c, the Gram matrix and the means, need only be roughly right. Each round multiplies the
error by about 1e-16 times the condition number of S. Where that is no help, the rows themselves are
factorized, ``sqrt(W) [1, X - c] = Q R``, and residual and coefficients are refined together (Björck
1967), which takes the square root of that condition number instead.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy import linalg

from sparsestep.inference.facts import GOOD, Collinearity, collinearity
from sparsestep.moments.moments import Moments
from sparsestep.moments.sums import Pair, add_pairs, two_sum
from sparsestep.moments.table import Table
from sparsestep.penalty import weights
from sparsestep.selection.fitting import Fits
from sparsestep.solvers.scaled_problem import Settings, units

Array = NDArray[np.float64]
Index = NDArray[np.intp]

_EPS = float(np.finfo(np.float64).eps)
_LAST_DIGITS = 1e-13
# Below this reciprocal condition number of the normal equations the rows are factorized.
_HOPELESS = 1e-13
# Shares of a coefficient up to this size that a penalty takes cannot be seen.
_VISIBLE = 1e-9
_MOST_ROUNDS = 12
# Numbers in a block of rows: a dozen such blocks fit the cache.
_BLOCK = 1 << 15
_LARGE_BLOCK = 1 << 18
# Rows are factorized if they have no more numbers than this.
_LARGEST = 1 << 25
# A product with this splits a double into two halves of its digits.
_SPLITTER = 2.0**27 + 1.0


def refine(
    table: Table,
    target: int,
    moments: Moments,
    fits: Fits,
    index: int,
    known: Collinearity,
    settings: Settings,
) -> tuple[Array, float, float]:
    """Coefficients and intercept of least squares on the selected columns, and their error.

    Columns that depend on each other have many; then it is the solution of least norm in the units
    of the equations. The model is that of `index` among the `fits`, `moments` are those of the rows
    and of this target, `known` is the `collinearity` of the coefficients.
    """
    coef, intercept = fits.coefs[index], float(fits.intercepts[index])
    unrefined = coef, intercept, known.error
    if not _is_least_squares(moments, coef, float(fits.alphas[index]), known, settings):
        return unrefined
    rows = _Rows(table, target, moments, known)
    start = coef[np.newaxis, known.support] * rows.unit, np.array([intercept / rows.unit_y])
    size = table.n_active * len(known.support)
    (B, a), error = start, 1.0
    if known.rcond > _HOPELESS:
        if size > _BLOCK:
            B, a, [error] = _improved(_normal_equations(rows, [known]), B, a, GOOD)
        if not error <= GOOD:
            B, a = (B, a) if error < known.error else start
            # A round on a large table for the very last digit is not worth its time.
            enough = _LAST_DIGITS if size > _BLOCK else 0.0
            step = _normal_equations(rows, [known], in_pairs=True)
            B, a, [error] = _improved(step, B, a, enough)
    if not error <= GOOD and size <= _LARGEST:
        if step_by_rows := _augmented_equations(rows, *start):
            B, a, [error] = _improved(step_by_rows, *start)
        else:
            B, a, error = _of_least_norm(rows, moments, settings)
    if not error < known.expected:
        return unrefined
    result = np.zeros_like(coef)
    result[known.support] = B[0] / rows.unit
    return result, float(a[0] * rows.unit_y), float(error)


def refine_path(
    table: Table,
    target: int,
    moments: Moments,
    fits: Fits,
    ever: Collinearity,
    settings: Settings,
) -> tuple[Fits, Array, float] | None:
    """Refined models, their residual sums of squares and largest error; None if none needs it.

    In plain doubles, so that a round for all models is two products with the rows. `ever` is the
    `collinearity` of all columns that any of the models keeps; the rest is as in `refine`.
    """
    coefs, intercepts = fits.coefs, fits.intercepts
    known = [collinearity(moments, b) for b in coefs]
    errors = np.array([each.error for each in known])
    expected = np.array([each.expected for each in known])
    poor = [
        each.expected > GOOD
        and each.rcond > 0
        and _is_least_squares(moments, b, float(alpha), each, settings)
        for each, b, alpha in zip(known, coefs, fits.alphas, strict=True)
    ]
    if not any(poor):
        return None
    rows = _Rows(table, target, moments, ever)
    B, a = coefs[:, ever.support] * rows.unit, intercepts / rows.unit_y
    # The first correction must be no more than the error expected.
    allowed = np.where(poor, 2 * expected, 0.0)
    B, a, left = _improved(_normal_equations(rows, known), B, a, GOOD, allowed)
    errors = np.where(poor, left, errors)
    rss = rows.gradients(B, a)[2]
    coefs = coefs.copy()
    coefs[:, ever.support] = B / rows.unit
    refined = replace(fits, coefs=coefs, intercepts=a * rows.unit_y)
    return refined, rss * rows.unit_y**2, float(errors.max())


def _is_least_squares(
    moments: Moments, coef: Array, alpha: float, known: Collinearity, settings: Settings
) -> bool:
    """Whether the penalty at the last gamma of the loop moves no coefficient to speak of.

    It moves them by ``S^-1 D b`` with ``d_j = alpha_j gamma^2 / (b_j^2 + gamma^2)^2``; and so do
    coefficients that were set to zero at the end though they explain something. The literal loop is
    left as it is.
    """
    if settings.solver == "reference":
        return False
    if known.rcond > 0:
        away = np.abs(known.solve(moments.xty[known.support]) - coef[known.support]) * known.length
        allowed = max(_VISIBLE, 100 * known.expected)
        if np.any(away > allowed * np.max(np.abs(coef[known.support]) * known.length)):
            return False
    if settings.polish is not None or alpha == 0:
        return True
    scale_x, scale_y = units(moments, settings)
    scale = scale_x[known.support] / scale_y
    b = coef[known.support] * scale
    factor = settings.factors(len(coef))
    with np.errstate(over="ignore"):
        alphas = alpha / scale_y**2 * factor[known.support]
        d = alphas * weights(b, float(settings.schedule.gammas()[-1]))
    if known.rcond == 0:
        return not d.any()
    of_x = scale_x[known.support]
    moved = known.solve(of_x * d * b) * of_x
    return bool(np.all(np.abs(moved) <= _VISIBLE * np.abs(b)))


class _Rows:
    """Blocks of the kept columns and the target, scaled by powers of two, which costs no digit."""

    def __init__(self, table: Table, target: int, moments: Moments, known: Collinearity) -> None:
        self.table, self.target, self.known = table, target, known
        self.fit_intercept = bool(moments._df_of_means)
        self.weight_sum = W = moments.weight_sum
        self.unit_x = 2.0 ** np.round(np.log2(known.length / np.sqrt(W)))
        of_y = np.sqrt(moments.yty / W)
        self.unit_y = float(2.0 ** np.round(np.log2(of_y))) if of_y > 0 else 1.0
        # A coefficient times this is that of the scaled rows.
        self.unit = self.unit_x / self.unit_y
        self.centre = moments.mean_x[known.support] / self.unit_x
        self.length = known.length / self.unit_x

    def of_intercept(self, g0: Array, change: Array) -> Array:
        """The changes of intercepts that go with those of the coefficients, in rows."""
        changes: Array = g0 / self.weight_sum - change @ self.centre
        return changes * self.fit_intercept

    def blocks(self, size: int) -> Iterator[tuple[Array, Array, Array | None]]:
        """Blocks of rows with about `size` numbers each."""
        step = max(size // max(len(self.centre), 1), 1)
        for a in range(0, self.table.n, step):
            yield self.block(a, a + step)

    def block(self, a: int, b: int) -> tuple[Array, Array, Array | None]:
        """Rows a to b of the kept columns, of the target, and the weights."""
        X, y, w = self.table.block(a, b)
        X = X[:, self.known.support]
        X = X.toarray() if sp.issparse(X) else X
        return (
            np.asarray(X, dtype=np.float64) / self.unit_x,
            np.asarray(y[:, self.target], dtype=np.float64) / self.unit_y,
            w,
        )

    def gradients(self, B: Array, a: Array) -> tuple[Array, Array, Array]:
        """``(X - c)'W r``, ``1'W r`` and ``r'W r`` in doubles, for coefficients in rows of B."""
        G, g0, rss = np.zeros_like(B), np.zeros_like(a), np.zeros_like(a)
        mean = np.array(
            [math.fsum([each, *(self.centre * b)]) for each, b in zip(a, B, strict=True)]
        )
        for X, y, w in self.blocks(_LARGE_BLOCK):
            X -= self.centre
            r = y - mean[:, np.newaxis] - B @ X.T
            weighted = r if w is None else r * w
            rss += np.einsum("ij,ij->i", r, weighted)
            G += weighted @ X
            g0 += weighted.sum(axis=1)
        return G, g0, rss

    def gradient(self, B: Array, a: Array) -> tuple[Array, Array]:
        """``(X - c)'W r`` and ``1'W r`` for a single row of B, with r in twice the precision."""
        g, g0 = (np.zeros_like(B), np.zeros_like(B)), (np.zeros_like(a), np.zeros_like(a))
        for X, y, w in self.blocks(_BLOCK):
            of_x, of_1 = self.products(X, w, self.residual(X, y, B[0], float(a[0])))
            g, g0 = add_pairs(g, of_x), add_pairs(g0, of_1)
        return g[0], g0[0]

    def residual(self, X: Array, y: Array, b: Array, intercept: float) -> Pair:
        """``y - intercept - X b`` as a pair."""
        high, low = product(X, -b)
        extra = np.column_stack([y, np.full(len(y), -intercept)])
        terms = np.concatenate([high, extra], axis=1)
        return total((terms, np.concatenate([low, np.zeros_like(extra)], axis=1)), axis=1)

    def products(self, X: Array, w: Array | None, r: Pair) -> tuple[Pair, ...]:
        """``(X - c)'W r`` and ``1'W r`` as pairs."""
        if w is not None:
            high, low = product(w, r[0])
            r = two_sum(high, low + w * r[1])
        high, low = two_sum(X, -self.centre)
        of_r = r[0][:, np.newaxis], r[1][:, np.newaxis]
        main, rest = product(high, of_r[0])
        rest += low * of_r[0]
        rest += high * of_r[1]
        return total((main, rest), axis=0), total(r, axis=0)


# What to add to the coefficients and intercepts of some models, by their index.
Step = Callable[[Array, Array, Index], tuple[Array, Array]]


def _improved(
    step: Step, B: Array, a: Array, enough: float = 0.0, allowed: Array | None = None
) -> tuple[Array, Array, Array]:
    """Models, in rows, with corrections added while each is less than half the one before.

    Also the error left in each. No first correction may be more than half of what is `allowed`.
    """
    B, a = B.copy(), a.copy()
    errors = np.full(len(B), np.inf) if allowed is None else allowed
    before, which = errors.copy(), np.flatnonzero(errors > 0)
    for _ in range(_MOST_ROUNDS):
        if not len(which):
            break
        change, of_intercept = step(B, a, which)
        after = B[which] + change
        # Relative to the largest coefficient, in units in which columns are of one size.
        sizes, changes = (np.abs(v).max(axis=1, initial=0.0) for v in (after, change))
        size = np.divide(changes, sizes, out=np.full(len(which), np.inf), where=sizes > 0)
        errors[which] = np.fmin(size, before[which])
        better = size < 0.5 * before[which]
        some = which[better]
        B[some], before[some] = after[better], size[better]
        a[some] += of_intercept[better]
        visible = np.any(np.abs(change) > _EPS * np.abs(after), axis=1)
        which = which[better & (size > enough) & visible]
    return B, a, np.fmax(errors, _EPS)


def _normal_equations(
    rows: _Rows, known: Sequence[Collinearity], *, in_pairs: bool = False
) -> Step:
    """Steps by ``S^-1 (X - c)'W r``, with r in doubles or, of a single model, in pairs of these."""

    def step(B: Array, a: Array, which: Index) -> tuple[Array, Array]:
        G, g0 = rows.gradient(B, a) if in_pairs else rows.gradients(B[which], a[which])[:2]
        change = np.zeros_like(G)
        for k, i in enumerate(which):
            support = np.searchsorted(rows.known.support, known[i].support)
            unit_x = rows.unit_x[support]
            change[k, support] = known[i].solve(G[k, support] * unit_x) * unit_x
        return change, rows.of_intercept(g0, change)

    return step


def _augmented_equations(rows: _Rows, B: Array, a: Array) -> Step | None:
    """Steps for residual and coefficients together by a factorization of the rows, if any."""
    X, y, w = rows.block(0, rows.table.n)
    root = np.ones(len(y)) if w is None else np.sqrt(w)
    root_W = np.sqrt(rows.weight_sum)
    Z = (X - rows.centre) / rows.length * root[:, np.newaxis]
    if rows.fit_intercept:
        Z = np.column_stack([root / root_W, Z])
    if Z.shape[0] < Z.shape[1]:
        return None
    Q, R, pivot = linalg.qr(Z, mode="economic", pivoting=True)
    diagonal = np.abs(np.diag(R))
    if not diagonal.min() > 10 * max(Z.shape) * _EPS * diagonal.max():
        return None
    s = rows.residual(X, y, B[0], float(a[0]))

    def step(B: Array, a: Array, which: Index) -> tuple[Array, Array]:
        # f = y - s - X b and g = X's are both zero at the solution.
        nonlocal s
        now = rows.residual(X, y, B[0], float(a[0]))
        f = add_pairs(now, (-s[0], -s[1]))[0] * root
        of_x, of_one = rows.products(X, w, s)
        g = of_x[0] / rows.length
        if rows.fit_intercept:
            g = np.append(float(of_one[0]) / root_W, g)
        along = Q.T @ f + linalg.solve_triangular(R, g[pivot], trans="T")
        solution = np.empty(len(pivot))
        solution[pivot] = linalg.solve_triangular(R, along)
        s = add_pairs(s, ((f - Q @ along) / root, np.zeros(len(y))))
        change = solution[np.newaxis, int(rows.fit_intercept) :] / rows.length
        of_mean = solution[:1] / root_W if rows.fit_intercept else np.zeros(1)
        return change, of_mean - change @ rows.centre

    return step


def _of_least_norm(rows: _Rows, moments: Moments, settings: Settings) -> tuple[Array, Array, float]:
    """Of all least-squares solutions the one of least norm, in the units of the equations."""
    X, y, w = rows.block(0, rows.table.n)
    root = np.ones(len(y)) if w is None else np.sqrt(w)
    scale = units(moments, settings)[0][rows.known.support] / rows.unit_x
    mean_y = moments.mean_y / rows.unit_y
    Z = (X - rows.centre) / scale * root[:, np.newaxis]
    b, _, rank, singular = linalg.lstsq(Z, (y - mean_y) * root, cond=max(Z.shape) * _EPS)
    b /= scale
    intercept = np.atleast_1d(mean_y - rows.centre @ b)
    return b[np.newaxis], intercept, _EPS * float(singular[0] / singular[max(rank - 1, 0)])


# -- twice the precision --------------------------------------------------------------------------


def product(a: Any, b: Any) -> Pair:
    """``a * b`` exactly while the factors lie between 1e-130 and 1e130 in size (Dekker)."""
    high = a * b
    a1, a2 = _split(a)
    b1, b2 = _split(b)
    return high, ((a1 * b1 - high) + a1 * b2 + a2 * b1) + a2 * b2


def _split(a: Any) -> Pair:
    """The first and the last half of the digits (Veltkamp)."""
    scaled = _SPLITTER * a
    first = scaled - (scaled - a)
    return first, a - first


def total(pair: Pair, axis: int) -> Pair:
    """The sum along an axis: halves are added, with their errors, until one is left.

    As in Ogita, Rump and Oishi (2005).
    """
    high, low = (np.moveaxis(part, axis, 0) for part in pair)
    if not len(high):
        return np.zeros(high.shape[1:]), np.zeros(high.shape[1:])
    while len(high) > 1:
        half = len(high) // 2
        added, error = two_sum(high[:half], high[half : 2 * half])
        error += low[:half]
        error += low[half : 2 * half]
        if len(high) % 2:
            added, error = np.concatenate([added, high[-1:]]), np.concatenate([error, low[-1:]])
        high, low = added, error
    return two_sum(high[0], low[0])
