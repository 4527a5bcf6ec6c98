"""`sparsestep moments` and `merge`: tables to their moments, and these to those of all rows."""

import glob
from pathlib import Path
from typing import Annotated

from sparsestep.cli.inputs import TablesSeen, are_moments, expanded, read
from sparsestep.cli.options import Data, Output, Seed, TableOptions, Whole
from sparsestep.cli.outputs import Screen, check_outputs
from sparsestep.errors import InputError
from sparsestep.moments.moments import Moments, require_complete, require_same_folds
from sparsestep.moments.sums import Runs
from sparsestep.moments.table import whole_number
from sparsestep.words import few_of


def moments(
    data: Data,
    /,
    *,
    output: Annotated[Path, Output],
    table: TableOptions = TableOptions(),  # noqa: B008
    folds: Annotated[int | None, Whole] = None,
    seed: Seed = 0,
    screen: Screen = Screen(),  # noqa: B008
) -> None:
    """Reduce a table to its moments, which any fit can start from.

    Parameters
    ----------
    output
        Write the moments here (.npz). With --folds there is a file for each fold, in whose names
        -fold-0, -fold-1 and so on stands before the ending.
    folds
        Write so many files, each of a random part of the rows. Folds of an earlier run that would
        stay beside them are refused.
    """
    if are_moments(data):
        raise InputError("The data are moments already; sparsestep merge puts several together.")
    files = [output]
    if folds is not None:
        width = len(str(whole_number("--folds", folds, least=2) - 1))
        files = [_fold_file(output, f"{fold:0{width}}") for fold in range(folds)]
    check_outputs([("moments", file) for file in files], data)
    if folds is not None:
        _require_no_older_folds(output, files)
    reading = read(data, table, screen, folds, seed)
    for part, file in zip(reading.parts, files, strict=True):
        part.save(file)
    rows = sum(part.n_samples for part in reading.parts)
    screen.warn(*reading.all_notes)
    screen.say(
        f"{rows} rows, {reading.parts[0].n_features} columns and the target {reading.target}"
    )
    holding = [file for part, file in zip(reading.parts, files, strict=True) if part.is_thin]
    if holding:
        which = f"{holding[0]} holds" if len(holding) == 1 else f"{len(holding)} of the files hold"
        screen.warn(
            f"{which} the rows themselves, which are fewer than the columns: nothing to hand on "
            "where rows may not be shared."
        )
    screen.say(f"Moments: {files[0]}" + (f" to {files[-1].name}" if folds is not None else ""))
    screen.print_json(
        {
            "rows": rows,
            "rows_dropped": reading.counts.dropped,
            "notes": reading.all_notes,
            "target": reading.target,
            "features": list(reading.parts[0].feature_names or ()),
            "files": files,
            "files_that_hold_rows": holding,
        }
    )


def merge(
    data: list[str],
    /,
    *,
    output: Annotated[Path, Output],
    screen: Screen = Screen(),  # noqa: B008
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
    screen.print_json(
        {
            "rows": merged.n_samples,
            "features": list(merged.feature_names or ()),
            "files": [output],
        }
    )


def _fold_file(output: Path, number: str) -> Path:
    """The name of the file of a fold."""
    return output.with_name(f"{output.stem}-fold-{number}{output.suffix}")


def _require_no_older_folds(output: Path, files: list[Path]) -> None:
    """Raise if a pattern of the files would find folds that an earlier run has left."""
    pattern = _fold_file(Path(glob.escape(str(output))), "*")
    old = sorted(set(glob.glob(str(pattern))).difference(map(str, files)))
    if old:
        raise InputError(
            f"Older folds would stay beside the new ones ({few_of(old, 1)}); remove them, or give "
            "another name for the moments."
        )
