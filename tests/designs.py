"""Random regression problems of many kinds, the same for the same seed."""

import numpy as np

KINDS = (
    "uncorrelated",
    "constant",
    "noise",
    "ar1",
    "blocks",
    "heavy_tailed",
    "integer",
    "badly_scaled",
    "ill_conditioned",
    "dependent",
    "factors",
    "indicators",
    "twins",
)
PAPER_ALPHAS = 2.0 ** np.linspace(-15, 15, 101)


def design(kind, n, m, rng):
    """Rows of predictors of the given kind."""
    X = rng.standard_normal((n, m))
    if kind == "constant":
        return np.sqrt(0.5) * (X + rng.standard_normal((n, 1)))
    if kind == "noise":
        u = rng.uniform(-1, 1, (m, 2))
        u /= np.linalg.norm(u, axis=1, keepdims=True)
        Sigma = 0.01 * u @ u.T
        np.fill_diagonal(Sigma, 1.0)
        return X @ np.linalg.cholesky(Sigma).T
    if kind == "ar1":
        for j in range(1, m):
            X[:, j] = 0.9 * X[:, j - 1] + np.sqrt(1 - 0.9**2) * X[:, j]
        return X
    if kind == "blocks":
        common = rng.standard_normal((n, m // 5 + 1))
        return np.sqrt(0.8) * np.repeat(common, 5, axis=1)[:, :m] + np.sqrt(0.2) * X
    if kind == "heavy_tailed":
        return rng.standard_t(3, (n, m))
    if kind == "integer":
        return rng.integers(0, 4, (n, m)).astype(float)
    if kind == "badly_scaled":
        return X * 10.0 ** rng.uniform(-3, 3, m)
    if kind == "ill_conditioned":  # eigenvalues of all sizes
        V = np.linalg.qr(rng.standard_normal((m, m)))[0]
        return X @ (V * 10.0 ** rng.uniform(-rng.uniform(1, 6), 0, m)) @ V.T
    if kind == "dependent":  # one column nearly the sum of all others
        X[:, -1] = X[:, :-1].sum(axis=1) + 10.0 ** rng.uniform(-5, 0) * X[:, -1]
        return X
    if kind == "factors":
        k = m // 4 + 1
        common = rng.standard_normal((n, k)) @ rng.standard_normal((k, m))
        return common + 10.0 ** rng.uniform(-5, 0) * X
    if kind == "indicators":  # all of each category's, for up to three, and a sum beside its parts
        for low in range(0, min(m - 3, 24), 8):
            size = min(8, m - 3 - low)
            X[:, low : low + size] = np.eye(size)[rng.integers(0, size, n)]
        if m > 3:
            X[:, -1] = X[:, -3] + X[:, -2]
        return X
    if kind == "twins":  # half of the columns nearly those of the other half
        half = m // 2
        X[:, :half] = X[:, half : 2 * half] + 10.0 ** rng.uniform(-2.3, -1) * X[:, :half]
        return X
    assert kind == "uncorrelated"
    return X


def problem(kind, n, m, seed):
    """Centred ``X'X`` and ``X'y`` of a sparse truth, signal-to-noise ratio 0.1 to 10."""
    rng = np.random.default_rng([KINDS.index(kind), n, m, seed])
    X = design(kind, n, m, rng)
    X -= X.mean(axis=0)
    b = rng.uniform(-1, 1, m) / np.maximum(X.std(axis=0), 1e-300)
    b[rng.permutation(m)[: int(rng.choice([0, 0.25, 0.5, 0.75, 0.95]) * m)]] = 0.0
    signal = X @ b
    noise = rng.standard_normal(n)
    noise *= np.sqrt(max(signal @ signal, 1.0) / (rng.choice([0.1, 1.0, 10.0]) * (noise @ noise)))
    y = signal + noise
    y -= y.mean()
    return X.T @ X, X.T @ y
