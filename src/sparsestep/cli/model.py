"""`sparsestep predict` and `report`: a model and a table to predictions, a model to a page."""

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Annotated, Any

from sparsestep.cli.errors import said_by_options
from sparsestep.cli.options import CsvOptions, Data, ModelFile, Output
from sparsestep.cli.outputs import PATIENCE, Screen, check_outputs, write_tables
from sparsestep.model.file import read_document
from sparsestep.sources.request import CsvFormat


def predict(
    model: ModelFile,
    data: Data,
    /,
    *,
    output: Annotated[Path, Output],
    keep: list[str] | None = None,
    missing_as_null: bool = False,
    csv: CsvOptions = CsvFormat(),  # noqa: B008
    screen: Screen = Screen(),  # noqa: B008
) -> None:
    """Predictions of a model for the rows of a table.

    Parameters
    ----------
    output
        Write the predictions here (.parquet, .csv or .arrow).
    keep
        Columns to carry along, as a,b,c.
    missing_as_null
        A row with a missing value, or a category that the model has never seen, gets a missing
        prediction, instead of being refused.
    """
    from sparsestep.cli.inputs import opened, split_names
    from sparsestep.model.predictions import Predictions
    from sparsestep.sources.summing import rows_read

    check_outputs([("predictions", output)], [str(model), *data])
    document = read_document(model)
    rows = opened(data, csv, screen)
    carried = split_names(keep or [], rows.names)
    show = PATIENCE if screen.shows_progress else False
    with said_by_options():
        predictions = Predictions(rows, document, carried, missing_as_null)
        with rows_read(show, rows.count) as advance:
            count = write_tables(output, _counted(predictions, advance))
    far, missing = predictions.far, predictions.missing
    if far.rows:
        screen.warn(far.text())
    of_them = f", {missing} of them missing" if missing else ""
    screen.say(f"Predictions of {count} rows{of_them}: {output}")
    screen.print_json(
        {
            "rows": count,
            "rows_missing": missing,
            "rows_far_outside": far.rows,
            "predictions": output,
        }
    )


def _counted(predictions: Iterable[Any], advance: Callable[[int], None]) -> Iterator[Any]:
    """The predictions, their rows counted when they are done with."""
    for table in predictions:
        yield table
        advance(table.num_rows)


def report(
    model: ModelFile,
    /,
    *,
    output: Annotated[Path | None, Output] = None,
    screen: Screen = Screen(),  # noqa: B008
) -> None:
    """The report on a model, as one HTML file.

    Parameters
    ----------
    output
        Write the report here (.html); beside the model, with its name, if not given.
    """
    from sparsestep.report import write_report

    file = model.with_suffix(".html") if output is None else output
    document = read_document(model)
    check_outputs([("report", file)], [str(model)])
    write_report(document, file)
    screen.wrote(report=file)
    screen.print_json({"report": file})
