"""The stages after the fits: ranks, a summary as JSON and Markdown, pictures, and one HTML page."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pandas as pd
from markupsafe import Markup

import sparsestep
from sparsestep.report import environment
from sparsestep.study.claims import (
    PENALIZED,
    answer_of,
    claims_of,
    describe,
    deviations_of,
    format_p,
    gathered,
)
from sparsestep.study.figures import figures_of, inline_svg, png, rank_plot_name, style, svg
from sparsestep.study.methods import CONTROL
from sparsestep.study.results import parquet, read_results, read_run, write_file
from sparsestep.study.statistics import Analysis, Comparison, Friedman, Ranking, analyse

# -- the stages --------------------------------------------------------------------------------


def _rank(analysis: Analysis, folder: Path) -> Path:
    """The ranks on every data set and measure."""
    settings = analysis.settings.reset_index()
    tables = [
        settings.assign(measure=column).merge(ranking.ranks.reset_index(), on="dataset")
        for column, ranking in analysis.rankings.items()
    ]
    write_file(folder / "ranks.parquet", parquet(pd.concat(tables, ignore_index=True)))
    return folder / "ranks.parquet"


def _test(analysis: Analysis, folder: Path) -> Path:
    """Tests and verdicts."""
    summary = summary_of(analysis)
    write_file(folder / "summary.md", markdown_of(summary))
    text = json.dumps(summary, indent=1, ensure_ascii=False, allow_nan=False) + "\n"
    write_file(folder / "summary.json", text)
    return folder / "summary.json"


def _draw(analysis: Analysis, folder: Path) -> Path:
    """Every picture as SVG and PNG."""
    with style():
        for name, drawn in figures_of(analysis).items():
            figure = drawn()
            write_file(folder / "figures" / f"{name}.svg", svg(figure))
            write_file(folder / "figures" / f"{name}.png", png(figure))
    return folder / "figures"


def _report(analysis: Analysis, folder: Path) -> Path:
    """The page."""
    write_file(folder / "report.html", render_study(analysis))
    return folder / "report.html"


def _stage(work: Callable[[Analysis, Path], Path]) -> Callable[[Path], Path]:
    """A stage reads the results in a folder, writes into the folder, and returns what it wrote."""
    return lambda folder: work(analyse(read_results(folder), read_run(folder)), folder)


STAGES = {
    "rank": _stage(_rank),
    "test": _stage(_test),
    "draw": _stage(_draw),
    "report": _stage(_report),
}


# -- the summary as JSON -----------------------------------------------------------------------


def summary_of(analysis: Analysis) -> dict[str, Any]:
    """Everything that is worth quoting, in JSON's types; the same results give the same summary."""
    answer = answer_of(analysis)
    return {
        "run": analysis.run,
        "datasets": analysis.datasets,
        "replicates": analysis.replicates,
        "claims": [
            {
                "number": claim.number,
                "claim": claim.text,
                "verdict": claim.verdict,
                "parts": [
                    {"paper": part.paper, "ours": part.ours, "holds": part.holds}
                    for part in claim.parts
                ],
                "reasons": list(claim.reasons),
            }
            for claim in claims_of(analysis)
        ],
        "open_question": asdict(answer) | {"visible": _short(answer.visible)},
        "measures": {column: _measure(analysis, column) for column in analysis.rankings},
        "methods": {str(name): _numbers(row) for name, row in analysis.by_method().iterrows()},
        "in_place_of_sparsestep": {
            variant: {column: _short(r.average[variant]) for column, r in rankings.items()}
            for variant, rankings in analysis.variants.items()
        },
        "cost_in_ols": _numbers(analysis.cost_in_ols()),
        "deviations": list(deviations_of(analysis)),
    }


def _measure(analysis: Analysis, column: str) -> dict[str, Any]:
    """One measure's ranks and tests, and those with a variant in SparseStep's place."""
    ranking = analysis.rankings[column]
    numbers: dict[str, Any] = {
        "title": ranking.measure.title,
        "average_rank": _numbers(ranking.average),
        "average_rank_if_only_equal_values_tie": _numbers(ranking.without_ties),
        "best": _numbers(ranking.best),
        "worst": _numbers(ranking.worst),
        "all_tied": ranking.all_tied,
        **_tests(ranking.friedman, ranking.holm),
    }
    if ranking.settings_friedman is not None:
        numbers["by_setting"] = _tests(ranking.settings_friedman, ranking.settings_holm)
        numbers["replicates_that_separate_alone"] = {
            method: {"better": better, "worse": worse}
            for method, (better, worse) in ranking.separated_singly.items()
        }
    if analysis.variants:
        numbers["variants"] = {
            variant: _variant(rankings[column]) for variant, rankings in analysis.variants.items()
        }
    return numbers


def _variant(ranking: Ranking) -> dict[str, Any]:
    """A variant among the five others, in SparseStep's place."""
    variant = ranking.control
    return {
        "average_rank": _short(ranking.average[variant]),
        "average_rank_if_only_equal_values_tie": _short(ranking.without_ties[variant]),
        "best": _short(ranking.best[variant]),
        "worst": _short(ranking.worst[variant]),
        "place": ranking.order.index(variant) + 1,
        "is": describe(ranking.holm),
        **_tests(ranking.friedman, ranking.holm),
    }


def _tests(test: Friedman, comparisons: Sequence[Comparison]) -> dict[str, Any]:
    """The numbers of both tests."""
    return {
        "friedman": _numbers(asdict(test)),
        "holm": {
            comparison.method: {
                "difference": _short(comparison.difference),
                "p": _short(comparison.p),
                "adjusted": _short(comparison.adjusted),
                "sparsestep_is": comparison.outcome(),
            }
            for comparison in comparisons
        },
    }


def _numbers(named: Any) -> dict[str, Any]:
    """The numbers of a dictionary or series, in short."""
    return {str(name): _short(value) for name, value in named.items()}


def _short(value: Any) -> Any:
    """Six significant digits, more than any page shows, so that rounding again changes nothing.

    Whole numbers stay as they are; None stands for NaN and infinity, which JSON lacks.
    """
    number = float(value)
    if not math.isfinite(number):
        return None
    return int(number) if number.is_integer() and abs(number) < 1e15 else float(f"{number:.6g}")


# -- the summary as Markdown, and for a terminal -----------------------------------------------

_MARK = {"reproduced": "✓", "partly reproduced": "partly", "not reproduced": "✗"}


def markdown_of(summary: dict[str, Any]) -> str:
    """The claims, the open question, and a table for each measure."""
    run, question = summary["run"], summary["open_question"]
    machine = run.get("machine", {})
    lines = [
        f"{summary['datasets']} data sets ({summary['replicates']} of each setting), "
        f"{run.get('n_train')} rows to train and {run.get('n_test')} to test on, grid "
        f'"{run.get("grid")}"{_rivals(run)}, finished {run.get("finished")} after '
        f"{float(run.get('wall_time', 0)) / 60:.1f} minutes with {run.get('jobs')} jobs on "
        f"{machine.get('cores')} cores ({machine.get('cpu')}).",
        "",
        "### The paper's claims",
        "",
        *_table(
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
        ),
    ]
    reasons = gathered((claim["number"], claim["reasons"]) for claim in summary["claims"])
    if reasons:
        lines += ["", "What may explain the differences:", ""]
        lines += [f"- {claims}: {reason}" for reason, claims in reasons.items()]
    lines += ["", "### The open question", "", question["short"], ""]
    lines += [f"- {title}: {said}." for title, said in question["measures"].items()]
    if question["by_setting"]:
        lines += ["", "With one block per setting:", ""]
        lines += [f"- {title}: {said}." for title, said in question["by_setting"].items()]
    for measure in summary["measures"].values():
        lines += ["", f"### {_capital(measure['title'])}", "", *_measure_lines(measure)]
    lines += ["", "### How the fits went", "", *_fits_lines(summary["methods"])]
    return "\n".join(lines) + "\n"


def _fits_lines(methods: dict[str, Any]) -> list[str]:
    """How the fits of each method went."""
    head = "method,best lambda smallest,largest,worst violation of optimality,fits per data set,"
    rows = [
        [
            method,
            str(row["smallest"]),
            str(row["largest"]),
            "" if row["optimality"] is None else f"{row['optimality']:.1e}",
            str(row["fits"]),
            f"{1000 * row['time']:.2g}",
            f"{row['whole']:.2g}",
        ]
        for method, row in methods.items()
    ]
    return _table((head + "ms per fit,s in all").split(","), rows)


def _rivals(run: dict[str, Any]) -> str:
    """How SCAD and MC+ were run, if not to convergence."""
    return f', rivals "{run["rivals"]}"' if "rivals" in run else ""


def _measure_lines(measure: dict[str, Any]) -> list[str]:
    """Methods by average rank, and Friedman's test."""
    ranks, test = measure["average_rank"], measure["friedman"]
    rows = [
        [
            method,
            f"{ranks[method]:.2f}",
            str(measure["best"][method]),
            str(measure["worst"][method]),
            _bare_p(measure["holm"][method]["adjusted"]) if method in measure["holm"] else "",
        ]
        for method in sorted(ranks, key=ranks.get)
    ]
    variants = measure.get("variants", {})
    rows += [
        [variant, f"{row['average_rank']:.2f}", str(row["best"]), str(row["worst"]), ""]
        for variant, row in variants.items()
    ]
    f = "∞" if test["f"] is None else f"{test['f']:.1f}"
    return [
        *_table(["method", "average rank", "alone best", "alone worst", "Holm's p"], rows),
        "",
        f"Friedman's chi-square {test['chi2']:.1f} (p {format_p(test['chi2_p'])}), F {f} "
        f"(p {format_p(test['f_p'])}). All six tie on {measure['all_tied']} data sets.",
        *(["", "In SparseStep's place:", ""] if variants else []),
        *(f"- {variant} is {row['is']}." for variant, row in variants.items()),
    ]


def claims_in_short(summary: dict[str, Any]) -> str:
    """The claims and verdicts only."""
    rows = [[claim["claim"], _MARK[claim["verdict"]]] for claim in summary["claims"]]
    return "\n".join(_table(["the paper's claim", "here"], rows)) + "\n"


def ranks_in_short(summary: dict[str, Any]) -> str:
    """The average ranks as a table for a terminal, and how many claims hold."""
    measures, variants = summary["measures"], summary["in_place_of_sparsestep"]
    table = {
        method: {column: measure["average_rank"][method] for column, measure in measures.items()}
        for method in measures["mse_b"]["average_rank"]
    } | variants
    width = max(map(len, table))
    lines = ["  ".join([" " * width, *(measure["title"] for measure in measures.values())])]
    for method, row in table.items():
        ranks = [f"{row[column]:{len(m['title'])}.2f}" for column, m in measures.items()]
        lines.append("  ".join([f"{method:<{width}}", *ranks]))
    if variants:
        lines.append(f"In SparseStep's place: {', '.join(variants)}.")
    verdicts = [claim["verdict"] for claim in summary["claims"]]
    counts = ", ".join(f"{verdicts.count(verdict)} {verdict}" for verdict in _MARK)
    title = f"Average ranks on {summary['datasets']} data sets, 1 is best"
    return "\n".join([title, *lines, f"Of the paper's {len(verdicts)} claims: {counts}."])


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """A table in Markdown. A bar in a text would end its cell, and is escaped."""
    assert all(len(row) == len(head) for row in rows)
    return [
        f"| {' | '.join(cell.replace('|', '&#124;') for cell in cells)} |"
        for cells in (head, ["---"] * len(head), *rows)
    ]


def _bare_p(p: float) -> str:
    """A p-value without its letter."""
    return format_p(p).removeprefix("=\u00a0")


def _capital(text: str) -> str:
    """Only the first letter changed: ``MSE of b`` stays."""
    return text[0].upper() + text[1:]


# -- the page ----------------------------------------------------------------------------------

_TITLES = {
    "ranks": "Average ranks of the six methods on the four measures",
    "levels": "Average ranks at each level of m, sparsity, SNR and correlation",
}


def render_study(analysis: Analysis) -> str:
    """The report on a study, as HTML: the same text for the same results.

    The text contains style and pictures, and no script. A policy in its head forbids the page to
    load or send anything.
    """
    templates = environment(Path(__file__).parent)
    templates.filters |= {"p": format_p, "bare_p": _bare_p, "capital": _capital}
    # The style of the report on a model, and a few rules more.
    sheets = [templates.get_template(name).render(gutter=0) for name in ("style.css", "study.css")]
    claims = claims_of(analysis)
    rankings = list(analysis.rankings.values())
    return templates.get_template("study.html.j2").render(
        version=sparsestep.__version__,
        style=Markup("\n".join(sheets)),
        summary=summary_of(analysis),
        claims=claims,
        reasons=gathered((claim.number, claim.reasons) for claim in claims),
        verdicts=Counter(claim.verdict for claim in claims),
        answer=answer_of(analysis),
        small=not analysis.full_size,
        tiles=[_tile(ranking) for ranking in rankings],
        rankings=rankings,
        replicates=analysis.replicates,
        n_settings=analysis.datasets // analysis.replicates,
        variants={variant: rank_plot_name(variant) for variant in analysis.variants},
        singly={r.measure.title: r.separated_singly for r in rankings if r.separated_singly},
        penalized=PENALIZED,
        control=CONTROL,
        pictures=_pictures(analysis),
        facts={name.replace("_", " "): _fact(name, fact) for name, fact in analysis.run.items()},
    )


def _pictures(analysis: Analysis) -> dict[str, Markup]:
    """The pictures of results; those of penalties belong to the method, not to the study."""
    titles = _TITLES | {
        f"winners_{column}": f"Best methods by {column} in each setting"
        for column in analysis.rankings
    }
    for variant in analysis.variants:
        titles[rank_plot_name(variant)] = f"Average ranks with {variant} in SparseStep's place"
    figures = figures_of(analysis)
    with style():
        return {
            name: Markup(inline_svg(figures[name](), name, title)) for name, title in titles.items()
        }


def _tile(ranking: Ranking) -> dict[str, str]:
    """SparseStep's place on a measure, and who is first, or second behind it."""
    place = ranking.order.index(CONTROL) + 1
    other, which = (ranking.order[0], "first") if place > 1 else (ranking.order[1], "second")
    return {
        "name": ranking.measure.title,
        "value": {1: "1st", 2: "2nd", 3: "3rd"}.get(place, f"{place}th"),
        "note": f"SparseStep, average rank {ranking.average[CONTROL]:.2f}; {which} is "
        f"{other}, {ranking.average[other]:.2f}",
    }


def _fact(name: str, value: Any) -> str:
    """A fact about the run on one line."""
    if name == "wall_time":
        return f"{float(value) / 60:.1f} minutes"
    if isinstance(value, dict):
        return ", ".join(f"{key} {item}" for key, item in value.items())
    if isinstance(value, bool):
        return "yes" if value else "no"
    return str(value)
