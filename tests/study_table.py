"""Made-up results of the study, as like real ones as the tests need them."""

from dataclasses import asdict
from functools import cache

import numpy as np

from sparsestep.study.datasets import SCALES, settings_of
from sparsestep.study.methods import ALL_METHODS, METHODS
from sparsestep.study.results import as_table

# Error of b over that of least squares without sparsity, and how much sparsity helps.
ERROR = {"OLS": 1.0, "Ridge": 0.93, "Lasso": 0.95, "SCAD": 0.97, "MC+": 0.97, "SparseStep": 0.96}
HELPS = {"OLS": 0.0, "Ridge": 0.1, "Lasso": 0.6, "SCAD": 0.8, "MC+": 0.8, "SparseStep": 0.85}
SECONDS = {"OLS": 3, "Ridge": 3.3, "Lasso": 20, "SCAD": 30, "MC+": 60, "SparseStep": 4}


@cache
def made_up(replicates=1, *, extras=False, scale="paper"):
    """A table of results with the settings of a scale, and a run to go with it."""
    settings = settings_of(SCALES[scale], replicates)
    size = {"n_train": SCALES[scale].n_train, "n_test": SCALES[scale].n_test}
    rng = np.random.default_rng(0)
    rows = []
    for setting in settings:
        about = asdict(setting) | size
        noise = setting.m / 3 / setting.snr * (2 if setting.correlation == "constant" else 1)
        for method in ALL_METHODS if extras else METHODS:
            rows.append(about | one_result(rng, method, about, noise))
    run = {"scale": scale, "grid": "paper", "replicates": replicates, "extras": extras}
    run |= {"datasets": len(settings), **size}
    run |= {"folds": 10, "seed": 0, "jobs": 2, "wall_time": 750.0, "finished": "2026-11-15"}
    run["versions"] = {"python": "3.11.2", "numpy": "2.4.0"}
    run["machine"] = {"cpu": "a <fast> one", "cores": 2, "memory_gb": 8, "system": "Linux"}
    return as_table(rows), run


def one_result(rng, method, about, noise):
    """What one method makes of one data set."""
    base = method if method in METHODS else "SparseStep"
    m, sparsity = about["m"], about["sparsity"]
    helped = 1 - HELPS[base] * sparsity / 100
    mse_b = noise / about["n_train"] * ERROR[base] * helped * np.exp(0.05 * rng.normal())
    right = 1 - sparsity / 100 if base in ("OLS", "Ridge") else 1 - 0.2 * rng.random()
    hits = round(right * m) / m
    return {
        "method": method,
        "mse_b": mse_b,
        "hit_rate": hits,
        "mse_y": noise * (1 + mse_b * rng.normal(1, 0.1)),
        "time": SECONDS[base] * 1e-6 * m * np.exp(0.2 * rng.normal()),
        "n_fits": 1 if base == "OLS" else 9090 if base == "MC+" else 1010,
        "alpha": np.nan if base == "OLS" else float(2.0 ** rng.integers(-14, 14)),
        "a": 3.0 if base == "MC+" else np.nan,
        "at_end": "smallest" if base == "Ridge" and rng.random() < 0.3 else "",
        "n_nonzero": m if base in ("OLS", "Ridge") else int(rng.integers(0, m + 1)),
        "optimality": np.nan if base == "OLS" else 10.0 ** rng.uniform(-12, -7),
    }
