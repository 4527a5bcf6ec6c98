"""A table with columns of every kind of number, and its sums by the textbook formula."""

import numpy as np
import pyarrow as pa


def make_table(n=1000, seed=0):
    """Columns of several types, far from zero, with a target and whole-number weights."""
    rng = np.random.default_rng(seed)
    wide = 50.0 + rng.normal(size=n)
    count = rng.integers(0, 9, size=n)
    flag = rng.random(n) < 0.3
    # Short in binary, so that text files hold the same numbers.
    small = (np.round(rng.normal(size=n) * 64) / 64).astype(np.float32)
    y = 2.0 * wide - count + 3.0 * flag + rng.normal(size=n)
    return pa.table(
        {
            "wide": wide,
            "count": count.astype(np.int16),
            "y": y,
            "flag": flag,
            "small": small,
            "w": rng.integers(0, 4, size=n),
        }
    )


FEATURES = ["wide", "count", "flag", "small"]


def far_away(offset=2.0**40):
    """A sorted table near zero, and the same far away: exact numbers, so its sums are the same."""
    rng = np.random.default_rng(0)
    near = {name: np.sort(np.round(rng.normal(size=600) * 64) / 64) for name in ("a", "b", "y")}
    far = {name: values + offset for name, values in near.items()}
    return pa.table(near), pa.table(far)


def assert_no_digit_lost(near, far):
    """Centred sums of moments are those of the same rows near zero."""
    for name, want in expected(near, features=["a", "b"]).items():
        if name in ("xtx", "xty", "yty"):
            np.testing.assert_allclose(getattr(far, name), want, rtol=1e-13, err_msg=name)


def expected(table, rows=None, features=FEATURES, weight=None):
    """Number of rows, means and centred sums of some rows, from the definition."""
    X = np.column_stack([table.column(name).to_numpy().astype(float) for name in features])
    y = table.column("y").to_numpy().astype(float)
    w = np.ones(len(y)) if weight is None else table.column(weight).to_numpy().astype(float)
    if rows is not None:
        X, y, w = X[rows], y[rows], w[rows]
    mean_x, mean_y = w @ X / w.sum(), w @ y / w.sum()
    X, y = X - mean_x, y - mean_y
    return {
        "n_samples": np.count_nonzero(w),
        "weight_sum": w.sum(),
        "mean_x": mean_x,
        "mean_y": mean_y,
        "xtx": X.T @ (w[:, None] * X),
        "xty": X.T @ (w * y),
        "yty": y @ (w * y),
    }


def assert_moments(moments, sums):
    """All numbers of the moments are those sums, but for rounding."""
    for name, value in sums.items():
        actual = getattr(moments, name)
        scale = np.max(np.abs(value))
        np.testing.assert_allclose(actual, value, rtol=1e-10, atol=1e-10 * scale, err_msg=name)
