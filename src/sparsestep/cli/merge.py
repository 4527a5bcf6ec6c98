"""`sparsestep merge`: moments of several tables to those of all their rows."""

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from sparsestep.cli.inputs import expanded, require_different
from sparsestep.cli.options import Talk
from sparsestep.cli.outputs import check_outputs
from sparsestep.cli.screen import Screen
from sparsestep.errors import InputError
from sparsestep.moments.moments import Moments
from sparsestep.moments.runs import require_complete, require_same_folds

__all__ = ["merge"]


def merge(
    data: list[str],
    /,
    *,
    output: Annotated[Path, Parameter(alias="-o")],
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
    check_outputs([(output, "moments", [".npz"])], data)
    merged = Moments.load(data[0])
    runs = [merged.runs]
    seen: dict[tuple[object, ...], str] = {}
    require_different(merged, data[0], seen)
    for path in data[1:]:
        part = Moments.load(path)
        try:
            # One at a time, so that a message can name the file.
            merged = merged + part
        except ValueError as error:
            raise InputError(f"{path} cannot be merged with {data[0]}: {error}") from error
        require_different(part, path, seen)
        runs.append(part.runs)
    together = require_same_folds(runs)
    # One fold of each of several tables is that fold of all their rows.
    if any(len(run.folds) > 1 for run in together):
        require_complete(together)
    merged.save(output)
    files = f"{len(data)} file{'s' * (len(data) > 1)}"
    screen.say(f"{merged.n_samples} rows from {files}, {merged.n_features} columns")
    screen.say(f"Moments: {output}")
    screen.json(
        {
            "rows": merged.n_samples,
            "features": list(merged.feature_names or ()),
            "files": [str(output)],
        }
    )
