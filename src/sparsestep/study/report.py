"""The stages after the fits: ranks, a summary as JSON and Markdown, pictures, and one HTML page."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pandas as pd
from jinja2 import Template
from markupsafe import Markup

import sparsestep
from sparsestep.report import environment
from sparsestep.study import claims
from sparsestep.study.figures import figures_of, inline_svg, png, rank_plot_name, style, svg
from sparsestep.study.results import read_results, read_run, write_file, write_parquet
from sparsestep.study.statistics import Analysis, analyse, friedman, holm

# -- the stages: each writes into the folder, and returns what it wrote -------------------------


def rank(analysis: Analysis, folder: Path) -> Path:
    """The ranks on every data set and measure."""
    settings = analysis.settings.reset_index()
    tables = [
        settings.assign(measure=column).merge(ranking.ranks.reset_index(), on="dataset")
        for column, ranking in analysis.rankings.items()
    ]
    write_parquet(folder / "ranks.parquet", pd.concat(tables))
    return folder / "ranks.parquet"


def test(analysis: Analysis, folder: Path) -> Path:
    """Tests and verdicts."""
    summary = summary_of(analysis)
    write_file(folder / "summary.md", markdown_of(summary))
    text = json.dumps(summary, indent=1, ensure_ascii=False, allow_nan=False) + "\n"
    write_file(folder / "summary.json", text)
    return folder / "summary.json"


def draw(analysis: Analysis, folder: Path) -> Path:
    """Every picture as SVG and PNG."""
    with style():
        for name, drawn in figures_of(analysis).items():
            figure = drawn()
            write_file(folder / "figures" / f"{name}.svg", svg(figure))
            write_file(folder / "figures" / f"{name}.png", png(figure))
    return folder / "figures"


def report(analysis: Analysis, folder: Path) -> Path:
    """The page."""
    write_file(folder / "report.html", render_study(analysis))
    return folder / "report.html"


STAGES = {"rank": rank, "test": test, "draw": draw, "report": report}


def run_stages(names: Iterable[str], folder: Path) -> Iterator[Path]:
    """Run stages on the results in a folder; yield what each wrote."""
    analysis = analyse(read_results(folder), read_run(folder))
    for name in names:
        yield STAGES[name](analysis, folder)


# -- the summary -------------------------------------------------------------------------------


def summary_of(analysis: Analysis) -> dict[str, Any]:
    """Everything that is worth quoting, in JSON's types; the same results give the same summary."""
    variants = analysis.variants.items()
    summary = {
        "datasets": analysis.datasets,
        "replicates": analysis.replicates,
        "claims": claims.claims_of(analysis),
        "open_question": claims.answer_of(analysis),
        "measures": {column: _measure(analysis, column) for column in analysis.rankings},
        "methods": analysis.by_method(),
        "in_place_of_sparsestep": {
            variant: {column: ranking.average[variant] for column, ranking in rankings.items()}
            for variant, rankings in variants
        },
        "cost_in_ols": analysis.cost_in_ols(),
        "deviations": claims.deviations_of(analysis),
    }
    return {"run": analysis.run, **_in_json(summary)}


def _measure(analysis: Analysis, column: str) -> dict[str, Any]:
    """One measure's ranks and tests, and those with a variant in SparseStep's place."""
    ranking = analysis.rankings[column]
    numbers: dict[str, Any] = {
        "title": ranking.measure.title,
        **ranking.table,
        "all_tied": ranking.all_tied,
        **_tests(ranking.ranks, ranking.control),
    }
    if analysis.replicates > 1:
        numbers["by_setting"] = _tests(ranking.blocks, ranking.control)
        numbers["replicates_that_separate_alone"] = ranking.separated_singly
    if analysis.variants:
        numbers["variants"] = {
            variant: {
                **r.table.loc[variant],
                "place": r.order.index(variant) + 1,
                "is": claims.describe(r.holm),
                **_tests(r.ranks, variant),
            }
            for variant, r in ((v, rankings[column]) for v, rankings in analysis.variants.items())
        }
    return numbers


def _tests(ranks: pd.DataFrame, control: str) -> dict[str, Any]:
    """The numbers of both tests."""
    compared = holm(ranks, control).rename(columns={"control_is": "sparsestep_is"})
    return {"friedman": friedman(ranks), "holm": compared}


def _in_json(value: Any) -> Any:
    """The same in JSON's types, a table as a dictionary of its rows.

    Numbers have six significant digits, more than any page shows, so that rounding again changes
    nothing. Whole numbers stay as they are; None stands for NaN and infinity, which JSON lacks.
    """
    if isinstance(value, str | bool):
        return value
    if isinstance(value, list | tuple):
        return [_in_json(item) for item in value]
    if isinstance(value, pd.DataFrame):
        value = value.to_dict("index")
    if isinstance(value, dict | pd.Series):
        return {str(name): _in_json(item) for name, item in value.items()}
    number = float(value)
    if not math.isfinite(number):
        return None
    return int(number) if number.is_integer() and abs(number) < 1e15 else float(f"{number:.6g}")


def ranks_in_short(summary: dict[str, Any]) -> str:
    """The average ranks as a table for a terminal, and how many claims hold."""
    variants = summary["in_place_of_sparsestep"]
    table = pd.DataFrame(
        {
            measure["title"]: measure["average_rank"] | {v: variants[v][column] for v in variants}
            for column, measure in summary["measures"].items()
        }
    )
    lines = [f"Average ranks on {summary['datasets']} data sets, 1 is best"]
    lines.append(table.to_string(float_format="%.2f"))
    if variants:
        lines.append(f"In SparseStep's place: {', '.join(variants)}.")
    verdicts = [claim["verdict"] for claim in summary["claims"]]
    known = ("reproduced", "partly reproduced", "not reproduced")
    counts = ", ".join(f"{verdicts.count(verdict)} {verdict}" for verdict in known)
    return "\n".join([*lines, f"Of the paper's {len(verdicts)} claims: {counts}."])


# -- the summary as Markdown, and the page -----------------------------------------------------


def markdown_of(summary: dict[str, Any]) -> str:
    """The claims, the open question, and a table for each measure."""
    reasons = claims.gathered(summary["claims"])
    return _template("summary.md.j2").render(summary=summary, reasons=reasons)


def render_study(analysis: Analysis) -> str:
    """The report on a study, as HTML: the same text for the same results.

    The text contains style and pictures, and no script. A policy in its head forbids the page to
    load or send anything.
    """
    summary, figures = summary_of(analysis), figures_of(analysis)

    def picture(name: str, title: str) -> Markup:
        return Markup(inline_svg(figures[name](), name, title))

    # The style of the report on a model, and a few rules more.
    sheets = [_template(name).render(gutter=0) for name in ("style.css", "study.css")]
    with style():
        return _template("study.html.j2").render(
            version=sparsestep.__version__,
            style=Markup("\n".join(sheets)),
            summary=summary,
            reasons=claims.gathered(summary["claims"]),
            small=not analysis.full_size,
            n_settings=analysis.datasets // analysis.replicates,
            variants={variant: rank_plot_name(variant) for variant in analysis.variants},
            penalized=claims.PENALIZED,
            picture=picture,
        )


def _template(name: str) -> Template:
    """A template of the study, or of the report on a model."""
    templates = environment(Path(__file__).parent)
    templates.filters |= {
        "p": claims.format_p,
        "bare_p": lambda p: claims.format_p(p).removeprefix("=\u00a0"),
        "f": lambda f: "∞" if f is None else f"{f:.1f}",
        # Only the first letter is changed: ``MSE of b`` stays.
        "capital": lambda text: text[0].upper() + text[1:],
    }
    return templates.get_template(name)
