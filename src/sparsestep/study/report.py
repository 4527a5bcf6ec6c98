"""The study as one HTML page that needs nothing else."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

import sparsestep
from sparsestep.report.pictures import COLOURS
from sparsestep.study.analysis import CONTROL, Analysis
from sparsestep.study.canvas import inline_svg, style
from sparsestep.study.claims import Claim, format_p, gathered
from sparsestep.study.figures import figures_of
from sparsestep.study.question import Answer
from sparsestep.study.reasons import PENALIZED
from sparsestep.study.summary import summary_of

__all__ = ["render_study"]

# The page has the look of the report on a model: the same style sheet, and a few rules more.
_FOLDERS = [Path(__file__).parent, Path(sparsestep.__file__).parent / "report"]
_TITLES = {
    "ranks": "Average ranks of the six methods on the four measures",
    "levels": "Average ranks at each level of m, sparsity, SNR and correlation",
}


def render_study(analysis: Analysis, claims: tuple[Claim, ...], answer: Answer) -> str:
    """The report on a study, as HTML.

    Style and pictures are in the text, there is no script, and a policy in its head forbids the
    page to load or send anything. The same results give the same text.

    Parameters
    ----------
    analysis : Analysis
    claims : tuple of Claim
    answer : Answer

    Returns
    -------
    str
    """
    environment = Environment(
        loader=FileSystemLoader(_FOLDERS),
        autoescape=lambda name: name is None or not name.endswith(".css"),
        undefined=StrictUndefined,
    )
    sheets = [
        environment.get_template("style.css").render(colours=COLOURS, gutter=0),
        environment.get_template("study.css").render(),
    ]
    summary = summary_of(analysis, claims, answer)
    rankings = list(analysis.rankings.values())
    return environment.get_template("study.html.j2").render(
        version=sparsestep.__version__,
        style=Markup("\n".join(sheets)),
        summary=summary,
        claims=claims,
        reasons=gathered((claim.number, claim.reasons) for claim in claims),
        verdicts=Counter(claim.verdict for claim in claims),
        answer=answer,
        small=not analysis.full_size,
        tiles=_tiles(analysis),
        rankings=rankings,
        replicates=analysis.replicates,
        n_settings=analysis.datasets // analysis.replicates,
        singly={r.measure.title: r.separated_singly for r in rankings if r.separated_singly},
        penalized=PENALIZED,
        control=CONTROL,
        p=format_p,
        extras=summary["in_place_of_sparsestep"],
        methods=summary["methods"],
        pictures=_pictures(analysis),
        facts=_facts(analysis.run),
    )


def _pictures(analysis: Analysis) -> dict[str, Markup]:
    """The pictures of results; those of penalties belong to the method, not to the study."""
    shown = {}
    with style():
        for name, draw in figures_of(analysis).items():
            if name in _TITLES or name.startswith("winners_"):
                column = name.removeprefix("winners_")
                title = _TITLES.get(name) or f"Best methods by {column} in each setting"
                shown[name] = Markup(inline_svg(draw(), name, title))
    return shown


def _tiles(analysis: Analysis) -> list[dict[str, str]]:
    """SparseStep's place on each measure, and who is first, or second behind it."""
    tiles = []
    for ranking in analysis.rankings.values():
        place = ranking.order.index(CONTROL) + 1
        other, which = (ranking.order[0], "first") if place > 1 else (ranking.order[1], "second")
        tiles.append(
            {
                "name": ranking.measure.title,
                "value": _ordinal(place),
                "note": f"SparseStep, average rank {ranking.average[CONTROL]:.2f}; {which} is "
                f"{other}, {ranking.average[other]:.2f}",
            }
        )
    return tiles


def _ordinal(place: int) -> str:
    return {1: "1st", 2: "2nd", 3: "3rd"}.get(place, f"{place}th")


def _facts(run: dict[str, Any]) -> dict[str, str]:
    """What is known about the run, one line each."""
    facts = {}
    for name, value in run.items():
        label = name.replace("_", " ")
        if name == "wall_time":
            facts[label] = f"{float(value) / 60:.1f} minutes"
        elif isinstance(value, dict):
            facts[label] = ", ".join(f"{key} {item}" for key, item in value.items())
        elif isinstance(value, bool):
            facts[label] = "yes" if value else "no"
        else:
            facts[label] = str(value)
    return facts
