"""`sparsestep merge`: moments of several tables to the moments of all their rows."""

from pathlib import Path
from typing import Annotated

from sparsestep.cli.inputs import TablesSeen, expanded
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
    seen = TablesSeen()
    for path in data:
        part = Moments.load(path)
        try:
            # One at a time, so that a message can name the file.
            merged = part if merged is None else merged + part
        except ValueError as error:
            raise InputError(f"{path} cannot be merged with {data[0]}: {error}") from error
        seen.add(path, part)
        runs.append(part.runs)
    assert merged is not None
    together = require_same_folds(runs)
    # One fold of each of several tables is that fold of all their rows.
    if any(len(run.folds) > 1 for run in together):
        require_complete(together)
    seen.require_different()
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
