"""`sparsestep merge`: moments of several tables to those of all their rows."""

from pathlib import Path
from typing import Annotated

import numpy as np
from numpy.typing import NDArray

from sparsestep.cli.inputs import expanded, require_different
from sparsestep.cli.options import Output, Talk
from sparsestep.cli.outputs import check_outputs
from sparsestep.cli.screen import Screen
from sparsestep.errors import InputError
from sparsestep.moments.moments import Moments
from sparsestep.moments.runs import Runs, require_complete, require_same_folds

__all__ = ["merge"]


def merge(
    data: list[str],
    /,
    *,
    output: Annotated[Path, Output],
    talk: Talk = Talk(),  # noqa: B008
) -> None:
    """Merge moments of several tables, as if their rows were one table.

    Parameters
    ----------
    data
        Files that the command moments wrote (.npz), with the same columns in the same order: of
        whole tables, all folds of tables, or the same fold of several.
    output
        Write the merged moments here (.npz).
    """
    screen = Screen(talk)
    data = expanded(data)
    check_outputs([("moments", output)], data)
    merged: Moments | None = None
    runs: list[Runs] = []
    seen: dict[tuple[object, ...], str] = {}
    tables: dict[object, tuple[str, NDArray[np.float64]]] = {}
    for path in data:
        part = Moments.load(path)
        try:
            # One at a time, so that a message can name the file.
            merged = part if merged is None else merged + part
        except ValueError as error:
            raise InputError(f"{path} cannot be merged with {data[0]}: {error}") from error
        require_different(part, path, seen)
        runs.append(part.runs)
        # All folds of a run are one table.
        key = tuple(run.id for run in part.runs) or path
        first, total = tables.get(key, (path, np.zeros(1)))
        tables[key] = first, total + _squares(part)
    assert merged is not None
    together = require_same_folds(runs)
    # One fold of each of several tables is that fold of all their rows.
    if any(len(run.folds) > 1 for run in together):
        require_complete(together)
    _require_other_rows(list(tables.values()))
    merged.save(output)
    files = f"{len(data)} file{'s' * (len(data) > 1)}"
    screen.say(f"{merged.n_samples} rows from {files}, {merged.n_features} columns")
    screen.wrote(moments=output)
    screen.json(
        {
            "rows": merged.n_samples,
            "features": list(merged.feature_names or ()),
            "files": [str(output)],
        }
    )


def _squares(part: Moments) -> NDArray[np.float64]:
    """Rows, weights, and weighted sums of x^2, x y and y^2: they add up over folds."""
    w, x, y = part.weight_sum, part.mean_x, np.atleast_1d(part.mean_y)
    xy = part.xty.reshape(len(x), len(y)) + w * np.outer(x, y)
    counts = np.array([part.n_samples, w])
    return np.concatenate([counts, part.diag + w * x**2, xy.ravel(), part.yty + w * y**2])


def _require_other_rows(tables: list[tuple[str, NDArray[np.float64]]]) -> None:
    """Raise if two tables, or runs of folds, have the same sums: rows would count twice."""
    for k, (path, sums) in enumerate(tables):
        for other, others in tables[:k]:
            if np.allclose(sums, others, rtol=1e-9, atol=0.0):
                raise InputError(f"{other} and {path} begin folds of the same rows; give one run.")
