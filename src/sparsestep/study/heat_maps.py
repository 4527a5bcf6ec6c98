"""Where a method wins: maps over m, sparsity, signal-to-noise ratio and correlation."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.collections import PatchCollection
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from sparsestep.study.analysis import Analysis, Ranking, level_name
from sparsestep.study.canvas import COLOURS, GREY, INK, LETTERS, PALE, blank
from sparsestep.study.ranks import SETTING
from sparsestep.study.results import METHODS

__all__ = ["level_map", "winner_map", "winners_of"]

_GAP = 0.25  # between groups of cells, in cells


def winners_of(ranking: Ranking, settings: pd.DataFrame) -> dict[tuple[Any, ...], list[str]]:
    """The methods with the best rank in each setting, over its replicates."""
    keys = [settings.loc[ranking.ranks.index, name] for name in SETTING]
    sums = ranking.ranks.groupby(keys).sum()
    best = sums.eq(sums.min(axis=1), axis=0)
    return {setting: [m for m in METHODS if row[m]] for setting, row in best.iterrows()}


def winner_map(analysis: Analysis, ranking: Ranking) -> Figure:
    """Who is best where: a cell per setting in the colour of the method, or methods, that win."""
    winners = winners_of(ranking, analysis.settings)
    ms, sparsities, snrs, correlations = (analysis.levels_of(name) for name in SETTING)
    columns = {
        (snr, zeta): place + group * _GAP
        for group, snr in enumerate(snrs)
        for place, zeta in enumerate(sparsities, start=group * len(sparsities))
    }
    rows = {
        (correlation, m): place + group * _GAP
        for group, correlation in enumerate(correlations)
        for place, m in enumerate(ms, start=group * len(ms))
    }
    width, height = max(columns.values()) + 1, max(rows.values()) + 1
    cell, left, right, top, bottom = 0.4, 0.75, 0.1, 0.35, 0.85  # inches
    cell_height = 0.26
    size = left + cell * width + right, top + cell_height * height + bottom
    figure = blank(*size)
    ax = figure.add_axes(
        (
            left / size[0],
            bottom / size[1],
            cell * width / size[0],
            cell_height * height / size[1],
        )
    )
    _bare(ax, width, height)
    patches = [
        patch
        for (m, zeta, snr, correlation), best in winners.items()
        for patch in _cell(ax, columns[snr, zeta], rows[correlation, m], best)
    ]
    ax.add_collection(PatchCollection(patches, match_original=True), autolim=False)
    ax.set_xticks([x + 0.5 for x in columns.values()], [f"{zeta:g}" for _, zeta in columns])
    ax.set_yticks([y + 0.5 for y in rows.values()], [f"{m:g}" for _, m in rows])
    for group, snr in enumerate(snrs):
        x = group * (len(sparsities) + _GAP) + len(sparsities) / 2
        ax.text(x, -0.25, f"SNR {snr:g}", ha="center", va="bottom")
    for group, correlation in enumerate(correlations):
        y = group * (len(ms) + _GAP) + len(ms) / 2
        x = -(left - 0.14) / cell
        ax.text(x, y, correlation, ha="center", va="center", rotation=90, fontsize=8.5)
    ax.text(-0.15, -0.25, "m", ha="right", va="bottom")
    ax.set_xlabel("sparsity: percent of the coefficients that are zero", fontsize=8.5, labelpad=2)
    _key(figure, left, 0.12, size)
    return figure


def _cell(ax: Axes, x: float, y: float, best: list[str]) -> list[Rectangle]:
    """One setting: a stripe for each winner with its letter, or a sign that all are equal."""
    pad = 0.04
    if len(best) == len(METHODS):
        ax.text(x + 0.5, y + 0.52, "=", ha="center", va="center", fontsize=8, color=INK)
        return [Rectangle((x + pad, y + pad), 1 - 2 * pad, 1 - 2 * pad, color=PALE, lw=0)]
    stripe = (1 - 2 * pad) / len(best)
    patches = []
    for place, method in enumerate(best):
        start = x + pad + place * stripe
        patches.append(
            Rectangle((start, y + pad), stripe, 1 - 2 * pad, color=COLOURS[method], lw=0)
        )
        ax.text(
            start + stripe / 2,
            y + 0.52,
            LETTERS[method],
            ha="center",
            va="center",
            fontsize=8 if len(best) < 4 else 6,
            color="white" if method in ("SCAD", "SparseStep") else "black",
        )
    return patches


def _key(figure: Figure, left: float, bottom: float, size: tuple[float, float]) -> None:
    """What the colours and letters stand for; in inches from the left and from below."""
    side = 0.16
    entries = {f"{method} ({LETTERS[method]})": COLOURS[method] for method in METHODS}
    for text, colour in {**entries, "all six tie": PALE}.items():
        figure.add_artist(
            Rectangle(
                (left / size[0], bottom / size[1]),
                side / size[0],
                side / size[1],
                transform=figure.transFigure,
                facecolor=colour,
                linewidth=0,
            )
        )
        label = figure.text(
            (left + side + 0.05) / size[0],
            (bottom + side / 2) / size[1],
            text,
            va="center_baseline",
            fontsize=7.5,
            color=GREY,
        )
        left += side + 0.26 + label.get_window_extent().width / figure.dpi


def level_map(analysis: Analysis) -> Figure:
    """Average ranks of all methods on all measures, level by level."""
    tables = [analysis.levels(ranking) for ranking in analysis.rankings.values()]
    index = tables[0].index
    factors = [factor for factor, _ in index]
    offset = np.cumsum([0, *(a != b for a, b in pairwise(factors))]) * _GAP
    heights = np.arange(len(index)) + offset
    cell, cell_height, left, gap, top, bottom = 0.31, 0.235, 0.9, 0.12, 0.3, 0.75  # inches
    panel = cell * len(METHODS)
    width = left + len(tables) * (panel + gap)
    height = top + cell_height * (heights[-1] + 1) + bottom
    figure = blank(width, height)
    cmap = colormaps["cividis_r"]
    for place, (ranking, table) in enumerate(zip(analysis.rankings.values(), tables, strict=True)):
        ax = figure.add_axes(
            (
                (left + place * (panel + gap)) / width,
                bottom / height,
                panel / width,
                cell_height * (heights[-1] + 1) / height,
            )
        )
        shades = cmap((table.to_numpy() - 1) / (len(METHODS) - 1))
        patches = []
        for y, averages, row in zip(heights, table.to_numpy(), shades, strict=True):
            for x, (average, shade) in enumerate(zip(averages, row, strict=True)):
                patches.append(Rectangle((x + 0.03, y + 0.04), 0.94, 0.92, color=shade, lw=0))
                ax.text(
                    x + 0.5,
                    y + 0.53,
                    f"{average:.1f}",
                    ha="center",
                    va="center",
                    fontsize=7,
                    color="black" if np.dot(shade[:3], (0.3, 0.6, 0.1)) > 0.45 else "white",
                )
        ax.add_collection(PatchCollection(patches, match_original=True), autolim=False)
        _bare(ax, len(METHODS), heights[-1] + 1)
        ax.set_xticks(np.arange(len(METHODS)) + 0.5, METHODS, rotation=90)
        names = [level_name(factor, level) for factor, level in index] if place == 0 else []
        ax.set_yticks(heights + 0.5 if place == 0 else [], names)
        ax.set_title(ranking.measure.title, fontsize=9.5, pad=4)
    return figure


def _bare(ax: Axes, width: float, height: float) -> None:
    """Axes in cells from the upper left corner, without lines."""
    ax.set_xlim(0, width)
    ax.set_ylim(height, 0)
    ax.tick_params(length=0, labelsize=8)
    for spine in ax.spines.values():
        spine.set_visible(False)
