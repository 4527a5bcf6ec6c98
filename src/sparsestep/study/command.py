"""The `sparsestep study` command. Imports what computes and draws only when it is called."""

import json
from pathlib import Path
from typing import Annotated, Literal

from sparsestep.cli.options import Whole


def study(
    *,
    scale: Literal["quick", "paper"] = "quick",
    replicates: Annotated[int, Whole] = 1,
    grid: Literal["paper", "own"] = "paper",
    rivals: Literal["converged", "2015"] = "converged",
    jobs: Annotated[int | None, Whole] = None,
    out: Path = Path("study"),
    extras: bool = False,
    stage: Literal["all", "generate", "fit", "rank", "test", "draw", "report"] = "all",
    quiet: bool = False,
) -> None:
    """Repeat the paper's simulation study: six methods, four measures, 135 or 180 data sets.

    A run that was stopped, even killed, goes on where it was when it is started again with the same
    options; the results are the same. They do not depend on the number of jobs.

    Parameters
    ----------
    scale : {"quick", "paper"}, default="quick"
        "paper" is the full size: 180 data sets of 30000 rows and up to 500 variables; "quick" has
        135 of 3000 rows and up to 100.
    replicates : int, default=1
        Data sets of each setting. More can be added to a finished run.
    grid : {"paper", "own"}, default="paper"
        The 101 lambdas of the paper for every method, or 101 down from each method's own largest.
    rivals : {"converged", "2015"}, default="converged"
        SCAD and MC+ run to convergence, or as the R packages ncvreg and sparsenet ran them for the
        paper: in a fixed order, to a coarse tolerance, from zero at each lambda.
    jobs : int, optional
        Processes; by default as many as there are cores. Each takes up to 0.8 GB.
    out : Path, default="study"
        Folder for everything that is written.
    extras : bool, default=False
        Also fit SparseStep with the one-standard-error rule, with BIC, and polished by swaps. The
        rules "paired" and "average" are always fitted.
    stage : str, default="all"
        Run one stage alone: generate (keep the moments of the data sets), fit, rank, test, draw or
        report. All but generate and fit need the results of fit.
    quiet : bool, default=False
        Say nothing but errors.
    """
    from sparsestep.sources.request import load

    load("pandas", "study")
    from sparsestep.study import report
    from sparsestep.study.datasets import SCALES
    from sparsestep.study.run import Plan, fit_study, generate_study

    say = print if not quiet else lambda text: None
    plan = Plan(SCALES[scale], grid=grid, extras=extras, replicates=replicates, rivals=rivals)
    if stage == "generate":
        generate_study(plan, out, jobs=jobs, progress=not quiet)
        say(out / "data")
    if stage in ("all", "fit"):
        fit_study(plan, out, jobs=jobs, progress=not quiet)
        say(out / "results.parquet")
    if stage not in ("generate", "fit"):
        for written in report.run_stages(report.STAGES if stage == "all" else [stage], out):
            say(written)
    if stage == "all":
        summary = json.loads((out / "summary.json").read_text(encoding="utf-8"))
        say(f"\n{report.ranks_in_short(summary)}")
