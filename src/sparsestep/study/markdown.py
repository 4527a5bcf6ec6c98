"""The summary as Markdown, for pages that quote the study, and in short for a terminal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sparsestep.study.claims import format_p, gathered

__all__ = ["claims_in_short", "markdown_of", "ranks_in_short"]

_MARK = {"reproduced": "✓", "partly reproduced": "partly", "not reproduced": "✗"}


def markdown_of(summary: dict[str, Any]) -> str:
    """The claims, the open question, and a table for each measure.

    Parameters
    ----------
    summary : dict
        What ``summary.json`` holds.

    Returns
    -------
    str
    """
    lines = [_run(summary), "", "### The paper's claims", ""]
    lines += _table(
        ["", "claim", "here", "verdict"],
        [
            [
                str(claim["number"]),
                claim["claim"],
                "; ".join(part["ours"] for part in claim["parts"]),
                f"**{claim['verdict']}**",
            ]
            for claim in summary["claims"]
        ],
    )
    reasons = gathered((claim["number"], claim["reasons"]) for claim in summary["claims"])
    if reasons:
        lines += ["", "What may explain the differences:", ""]
        lines += [f"- {claims}: {reason}" for reason, claims in reasons.items()]
    lines += ["", "### The open question", "", summary["open_question"]["short"], ""]
    lines += [f"- {title}: {said}." for title, said in summary["open_question"]["measures"].items()]
    if summary["open_question"]["by_setting"]:
        lines += ["", "With one block per setting:", ""]
        lines += [
            f"- {title}: {said}." for title, said in summary["open_question"]["by_setting"].items()
        ]
    for measure in summary["measures"].values():
        lines += ["", f"### {measure['title'][0].upper()}{measure['title'][1:]}", ""]
        lines += _measure(measure)
    lines += ["", "### How the fits went", "", *_methods(summary)]
    return "\n".join(lines) + "\n"


def claims_in_short(summary: dict[str, Any]) -> str:
    """The claims and verdicts only.

    Parameters
    ----------
    summary : dict
        What ``summary.json`` holds.

    Returns
    -------
    str
    """
    rows = [[claim["claim"], _MARK[claim["verdict"]]] for claim in summary["claims"]]
    return "\n".join(_table(["the paper's claim", "here"], rows)) + "\n"


def ranks_in_short(summary: dict[str, Any]) -> str:
    """The average ranks as a table for a terminal, and how many claims hold.

    Parameters
    ----------
    summary : dict
        What ``summary.json`` holds.

    Returns
    -------
    str
    """
    measures = list(summary["measures"].values())
    width = max(len(method) for method in summary["methods"])
    lines = ["  ".join([" " * width, *(measure["title"] for measure in measures)])]
    for method in summary["methods"]:
        ranks = [f"{m['average_rank'][method]:{len(m['title'])}.2f}" for m in measures]
        lines.append("  ".join([f"{method:<{width}}", *ranks]))
    verdicts = [claim["verdict"] for claim in summary["claims"]]
    counts = ", ".join(f"{verdicts.count(verdict)} {verdict}" for verdict in _MARK)
    title = f"Average ranks on {summary['datasets']} data sets, 1 is best"
    return "\n".join([title, *lines, f"Of the paper's {len(verdicts)} claims: {counts}."])


def _run(summary: dict[str, Any]) -> str:
    """What was run, where, and how long it took."""
    run = summary["run"]
    machine = run.get("machine", {})
    return (
        f"{summary['datasets']} data sets ({summary['replicates']} of each setting), "
        f"{run.get('n_train')} rows to train and {run.get('n_test')} to test on, grid "
        f'"{run.get("grid")}", finished {run.get("finished")} after '
        f"{float(run.get('wall_time', 0)) / 60:.1f} minutes with {run.get('jobs')} jobs on "
        f"{machine.get('cores')} cores ({machine.get('cpu')})."
    )


def _measure(measure: dict[str, Any]) -> list[str]:
    """Methods by average rank."""
    ranks = measure["average_rank"]
    test = measure["friedman"]
    rows = []
    for method in sorted(ranks, key=ranks.get):
        holm = measure["holm"].get(method)
        rows.append(
            [
                method,
                f"{ranks[method]:.2f}",
                str(measure["best"][method]),
                str(measure["worst"][method]),
                "" if holm is None else format_p(holm["adjusted"]).removeprefix("=\u00a0"),
            ]
        )
    f = "∞" if test["f"] is None else f"{test['f']:.1f}"
    return [
        *_table(["method", "average rank", "alone best", "alone worst", "Holm's p"], rows),
        "",
        f"Friedman's chi-square {test['chi2']:.1f} (p {format_p(test['chi2_p'])}), F {f} "
        f"(p {format_p(test['f_p'])}). All six tie on {measure['all_tied']} data sets.",
    ]


def _methods(summary: dict[str, Any]) -> list[str]:
    """Ends of the grid and convergence."""
    return _table(
        [
            "method",
            "best lambda smallest",
            "largest",
            "worst violation of optimality",
            "fits per data set",
            "ms per fit",
            "s in all",
        ],
        [
            [
                method,
                str(row["smallest"]),
                str(row["largest"]),
                "" if row["optimality"] is None else f"{row['optimality']:.1e}",
                str(row["fits"]),
                f"{1000 * row['time']:.2g}",
                f"{row['whole']:.2g}",
            ]
            for method, row in summary["methods"].items()
        ],
    )


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """A table; bars in the text would end a cell."""
    assert all(len(row) == len(head) for row in rows)
    return [
        f"| {' | '.join(cell.replace('|', '&#124;') for cell in cells)} |"
        for cells in (head, ["---"] * len(head), *rows)
    ]
