"""`sparsestep merge`: moments of several tables to those of all their rows."""

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from sparsestep.cli.errors import BadInputError
from sparsestep.cli.inputs import expanded
from sparsestep.cli.options import Talk
from sparsestep.cli.outputs import check_outputs
from sparsestep.cli.screen import Screen
from sparsestep.moments import Moments

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
        Files that the command moments wrote (.npz), with the same columns in the same order.
    output
        Write the merged moments here (.npz).
    """
    screen = Screen(talk)
    data = expanded(data)
    check_outputs([(output, "moments", [".npz"])], data)
    parts: list[Moments] = []
    for path in data:
        part = Moments.load(path)
        try:
            # One at a time, so that a message can name the file.
            parts = [Moments.merge([*parts, part])]
        except ValueError as error:
            raise BadInputError(f"{path} cannot be merged with {data[0]}: {error}") from error
    (merged,) = parts
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
