"""`sparsestep report`: a model file to a page."""

from pathlib import Path
from typing import Annotated

from sparsestep.cli.options import ModelFile, Output, Talk
from sparsestep.cli.outputs import Screen, check_outputs
from sparsestep.model.file import read_document
from sparsestep.report import write_report


def report(
    model: ModelFile,
    /,
    *,
    output: Annotated[Path | None, Output] = None,
    talk: Talk = Talk(),  # noqa: B008
) -> None:
    """The report on a model, as one HTML file.

    Parameters
    ----------
    output
        Write the report here (.html); beside the model, with its name, if not given.
    """
    screen = Screen(talk)
    file = model.with_suffix(".html") if output is None else output
    document = read_document(model)
    check_outputs([("report", file)], [str(model)])
    write_report(document, file)
    screen.wrote(report=file)
    screen.json({"report": str(file)})
