"""`sparsestep path`: a table to the models of all alphas."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import numpy as np
from numpy.typing import NDArray

from sparsestep.cli.fit import ALPHAS, alphas_given
from sparsestep.cli.inputs import expanded, read
from sparsestep.cli.options import Always, Output, Polish, TableOptions
from sparsestep.cli.outputs import Screen, check_outputs, write_tables
from sparsestep.errors import InputError
from sparsestep.estimators.choosing import fit_path
from sparsestep.estimators.fitted import Path as ModelPath
from sparsestep.solvers.scaled_problem import Settings

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Array = NDArray[np.float64]

# If more variables than these enter at once, only their number is printed.
MOST_NAMES = 4


def path(
    data: list[str],
    /,
    *,
    table: TableOptions = TableOptions(),  # noqa: B008
    alphas: str = ALPHAS,
    polish: Polish = False,
    always: Always = None,
    plot: Path | None = None,
    standardized: bool = False,
    output: Annotated[Path | None, Output] = None,
    screen: Screen = Screen(),  # noqa: B008
) -> None:
    """The models of all alphas: what enters as the penalty falls.

    Parameters
    ----------
    data
        A Parquet, CSV or Arrow file, a folder or pattern of such files, or several; or files that
        the command moments wrote (.npz).
    alphas
        How many alphas, or which, as 1,10,100, or sizes: one model of every number of variables.
    plot
        Draw the path here (.svg, .png or .pdf).
    standardized
        Draw the effect of one standard deviation of each variable instead of its coefficient.
    output
        Write all models here (.parquet, .csv or .arrow): a row for each alpha.
    """
    data = expanded(data)
    if standardized and plot is None:
        raise InputError("--standardized is for the picture; give --plot too.")
    check_outputs([("picture", plot), ("path", output)], data)
    wanted = "sizes" if alphas == "sizes" else alphas_given(alphas)
    reading = read(data, table, screen, None, 0)
    moments = reading.whole
    settings = Settings(penalty_factor=reading.always(always), polish="swap" if polish else None)
    with screen.waiting(f"Fitting {moments.n_features} variables"):
        found, known = fit_path(moments, wanted, settings)
    names = reading.names
    total = float(moments.yty)
    r2 = 1.0 - found.rss / total if total > 0 else np.zeros_like(found.rss)
    if output is not None:
        _write(found, names, r2, output)
    if plot is not None:
        deviation = np.sqrt(moments.diag / moments.weight_sum)
        _draw(found, plot, deviation if standardized else None)
    _print(screen, found, names, r2)
    lost = known.lost("leave some of them out.")
    notes = [*([] if lost is None else [str(lost)]), *reading.all_notes]
    screen.warn(*notes)
    screen.wrote(picture=plot, path=output)
    screen.print_json(
        {
            "target": reading.target,
            "rows": moments.n_samples,
            "rows_dropped": reading.counts.dropped,
            "notes": notes,
            "features": names,
            "models": [
                {
                    "alpha": float(point.alpha),
                    "intercept": point.intercept,
                    "r2": float(explained),
                    "coefficients": {
                        names[j]: float(point.coef[j]) for j in np.flatnonzero(point.coef)
                    },
                }
                for point, explained in zip(found[:], r2, strict=True)
            ],
            "missing_sizes": list(found.missing_sizes),
            "plot": plot,
            "output": output,
        }
    )


def _print(screen: Screen, found: ModelPath, names: list[str], r2: Array) -> None:
    """A line for each alpha at which the set of variables changes."""
    rows = []
    before = np.zeros(len(names), dtype=bool)
    for i, alpha in enumerate(found.alphas):
        kept = found.coefs[:, i] != 0
        if i == 0 or np.any(kept != before):
            change = _listed(names, kept & ~before, "+") + _listed(names, before & ~kept, "-")
            count = str(found.n_nonzero[i])
            rows.append((f"{alpha:.5g}", count, f"{r2[i]:z.4f}", " ".join(change)))
        before = kept
    screen.table(("alpha", "variables", "R2", "enter (+) and leave (-)"), rows, texts=(3,))
    if found.missing_sizes:
        sizes = ", ".join(map(str, found.missing_sizes))
        variables = "variable" if sizes == "1" else "variables"
        screen.warn(f"No alpha was found that keeps exactly {sizes} {variables}.")


def _listed(names: list[str], which: NDArray[np.bool_], sign: str) -> list[str]:
    """Names with a sign, or their number if they are many."""
    index = np.flatnonzero(which)
    if len(index) > MOST_NAMES:
        return [f"{sign}{len(index)} variables"]
    return [f"{sign}{names[j]}" for j in index]


def _write(found: ModelPath, names: list[str], r2: Array, output: Path) -> None:
    """Write a row for each alpha: the facts of the model, then its coefficients."""
    import pyarrow as pa

    columns = {
        "alpha": found.alphas,
        "n_nonzero": found.n_nonzero,
        "rss": found.rss,
        "r2": r2,
        "intercept": found.intercepts,
    }
    for name in names:
        if name in columns:
            raise InputError(
                f"The table would have two columns {name!r}; leave the variable out, or use --json."
            )
    columns |= dict(zip(names, found.coefs, strict=True))
    write_tables(output, [pa.table(columns)])


def _draw(found: ModelPath, plot: Path, scale: Array | None) -> None:
    """Draw the path into a file; `scale` are deviations of the variables."""
    import matplotlib

    from sparsestep.whole_file import whole_file

    matplotlib.use("agg")
    display = found.plot(scale=scale)
    with whole_file(plot, "picture") as temporary:
        cast("Figure", display.figure_).savefig(
            temporary, format=plot.suffix[1:].lower(), bbox_inches="tight"
        )
