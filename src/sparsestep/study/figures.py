"""Every picture of the study, by the name of its file."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from matplotlib.figure import Figure

from sparsestep.study.analysis import Analysis
from sparsestep.study.heat_maps import level_map, winner_map
from sparsestep.study.paper_figures import approximations, counting_norm, majorizers, penalties
from sparsestep.study.rank_plot import rank_plot

__all__ = ["figures_of"]


def figures_of(analysis: Analysis) -> dict[str, Callable[[], Figure]]:
    """What draws each picture; to be called under `canvas.style`.

    Parameters
    ----------
    analysis : Analysis

    Returns
    -------
    dict of str to callable
    """
    rankings = analysis.rankings
    return {
        "penalties": penalties,
        "counting_norm": counting_norm,
        "approximations": approximations,
        "majorizers": majorizers,
        "ranks": partial(rank_plot, list(rankings.values())),
        **{f"ranks_{name}": partial(rank_plot, [r]) for name, r in rankings.items()},
        **{f"winners_{name}": partial(winner_map, analysis, r) for name, r in rankings.items()},
        "levels": partial(level_map, analysis),
    }
