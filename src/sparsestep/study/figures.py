"""The pictures of the study: those of the paper, rank plots, and heat maps."""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from functools import partial
from itertools import product
from typing import Any

import matplotlib.style
import numpy as np
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.patches import Patch, Rectangle
from numpy.typing import NDArray

from sparsestep.display import PenaltyDisplay
from sparsestep.display.axes import spread
from sparsestep.study.methods import ALL_METHODS, METHODS
from sparsestep.study.statistics import SETTING, Analysis, Ranking, level_name

# No other colour has these values: `inline_svg` replaces them by the page's own colours.
INK, GREY, PALE = "#222223", "#707071", "#CBCBCC"
_OF_THE_PAGE = {INK: "var(--ink)", GREY: "var(--soft)", PALE: "var(--rule)"}


def figures_of(analysis: Analysis) -> dict[str, Callable[[], Figure]]:
    """The function that draws each picture, by the name of its file; to be called under `style`."""
    rankings = analysis.rankings
    return {
        "penalties": partial(of_the_paper, "penalties", (7.0, 5.2), (2, 2)),
        "majorizers": partial(of_the_paper, "majorizer", (5.2, 3.8), (1, 1)),
        "counting_norm": partial(of_the_paper, "norm", (8.7, 3.1), (1, 3)),
        "ranks": partial(rank_plot, list(rankings.values())),
        **{f"ranks_{name}": partial(rank_plot, [r]) for name, r in rankings.items()},
        **{f"winners_{name}": partial(winner_map, analysis, r) for name, r in rankings.items()},
        "levels": partial(level_map, analysis),
        **{
            rank_plot_name(variant): partial(rank_plot, list(rankings.values()))
            for variant, rankings in analysis.variants.items()
        },
    }


def rank_plot_name(variant: str) -> str:
    """The file of the rank plot with a variant in SparseStep's place: ``ranks_sparsestep_bic``."""
    return "ranks_" + re.sub(r"\W+", "_", variant.lower())


# -- files that are the same on every run ------------------------------------------------------


def style() -> AbstractContextManager[None]:
    """The settings of matplotlib for drawing and saving, instead of the user's own."""
    inked = ("text.color", "axes.labelcolor", "axes.edgecolor", "xtick.color", "ytick.color")
    settings: dict[Any, Any] = dict.fromkeys(inked, INK)
    # Without a salt the names of the parts of an SVG differ from run to run.
    settings |= {"svg.hashsalt": "sparsestep", "font.size": 9.0, "text.parse_math": False}
    return matplotlib.style.context(settings, after_reset=True)


def blank(width: float, height: float, *, constrained: bool = False) -> Figure:
    """An empty figure of a size in inches, which pyplot does not keep."""
    figure = Figure((width, height), layout="constrained" if constrained else None)
    FigureCanvasAgg(figure)
    return figure


def svg(figure: Figure, *, transparent: bool = False) -> str:
    """The figure as SVG, with letters as outlines: the same bytes wherever it is drawn."""
    buffer = io.StringIO()
    if figure.get_layout_engine() is not None:
        # Labels are placed while they are drawn; saving then lays out around them.
        figure.draw_without_rendering()
    metadata = {"Date": None, "Creator": None}
    figure.savefig(buffer, format="svg", transparent=transparent, metadata=metadata)
    return buffer.getvalue()


def png(figure: Figure) -> bytes:
    """The figure as PNG."""
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=160, metadata={"Software": None})
    return buffer.getvalue()


def inline_svg(figure: Figure, name: str, title: str) -> str:
    """The figure as SVG for a page: with unique ids, and the page's own colours."""
    text = svg(figure, transparent=True)
    text = text[text.index("<svg") :]
    text = re.sub(r"<metadata>.*?</metadata>|<!--.*?-->|<defs/>", "", text, flags=re.S)
    text = re.sub(r'<g id="[a-z0-9]+_\d+"', "<g", text)
    text = re.sub(r'(\sid="|"#|url\(#)', rf"\g<1>{name}-", text)
    for colour, variable in _OF_THE_PAGE.items():
        text = text.replace(colour.lower(), variable)
    # The page gives the width; the height follows from the view box.
    text = re.sub(r' (?:width|height)="[^"]*"', "", text, count=2)
    return text.replace("<svg", f'<svg role="img" aria-label="{title}"', 1)


def of_the_paper(kind: str, size: tuple[float, float], shape: tuple[int, int]) -> Figure:
    """The paper's picture of the penalties, the majorizers, or the norm that they approach."""
    figure = blank(*size, constrained=True)
    PenaltyDisplay(kind).plot(list(figure.subplots(*shape, squeeze=False).flat))
    return figure


# -- rank plots --------------------------------------------------------------------------------

_WIDTH, _LINE, _TITLE, _KEY, _MARGIN = 7.2, 0.95, 0.3, 0.3, 0.45  # inches
_TITLES = {
    "mse_b": "MSE of b",
    "hit_rate": "Sparsity hit rate",
    "mse_y": "MSE of y on the test rows",
    "time": "Computation time",
}


def rank_plot(rankings: Sequence[Ranking]) -> Figure:
    """Average ranks on one measure, or on several, one line each."""
    height = (_LINE + _TITLE) * len(rankings) + _KEY
    figure = blank(_WIDTH, height)
    left = _MARGIN / _WIDTH
    for place, ranking in enumerate(rankings, start=1):
        bottom = 1 - (_LINE + _TITLE) * place / height
        _line(figure.add_axes((left, bottom, 1 - 2 * left, _LINE / height)), ranking)
    control = rankings[0].control
    key = f"Average rank, 1 is best.  ● differs from {control} (Holm, 5 %)   ○ does not   ◆ "
    figure.text(left, 0.1 / height, key + control, fontsize=7.5, color=GREY)
    return figure


def _line(ax: Axes, ranking: Ranking) -> None:
    """One measure: a line from rank 1 to the last, points, and their labels above."""
    last = len(ranking.average)
    ax.set_axis_off()
    ax.set(xlim=(1, last), ylim=(-0.42, 1.0))
    ruled: dict[str, Any] = {"color": INK, "linewidth": 1.0, "clip_on": False, "zorder": 1}
    ax.plot([1, last], [0, 0], **ruled)
    for tick in range(1, last + 1):
        ax.plot([tick, tick], [-0.05, 0.05], **ruled)
        ax.text(tick, -0.12, str(tick), ha="center", va="top", fontsize=8)
    ax.set_title(_TITLES[ranking.measure.column], loc="left", fontsize=9.5, pad=3, color=INK)
    labels = []
    for method, average in ranking.average.items():
        colour = ALL_METHODS[method].colour
        control = method == ranking.control
        filled = control or ranking.control_is(method) != "not separated"
        marker, size = ("D", 8) if control else ("o", 7)
        face: dict[str, Any] = {"mec": colour, "mew": 1.6, "mfc": colour if filled else "white"}
        ax.plot(average, 0, marker, markersize=size, clip_on=False, zorder=3, **face)
        text = ax.text(average, 0.52, f"{method}\n{average:.2f}", ha="center", va="bottom")
        text.set(fontsize=8.5, linespacing=1.1, fontweight="bold" if control else "normal")
        labels.append(text)
    # Each label stands as near its point as the others allow, with a leader between them.
    points, unit = ranking.average.to_numpy(), ax.bbox.width / (last - 1)
    widths = np.array([label.get_window_extent().width for label in labels]) / unit + 0.08
    room = _MARGIN / (_WIDTH - 2 * _MARGIN) * (last - 1)
    low = 1 - room + widths[np.argsort(points, kind="stable")[0]] / 2
    high = last + room - widths[np.argsort(points, kind="stable")[-1]] / 2
    leader: dict[str, Any] = {"color": GREY, "linewidth": 0.7, "clip_on": False, "zorder": 0.5}
    for label, x, place in zip(labels, points, spread(points, widths, low, high), strict=True):
        label.set_x(place)
        ax.plot([x, x, place, place], [0.0, 0.2, 0.42, 0.5], **leader)


# -- heat maps ---------------------------------------------------------------------------------


_GAP = 0.03  # around a cell, as a part of it


def winners_of(ranking: Ranking) -> dict[tuple[Any, ...], list[str]]:
    """The methods with the best rank in each setting, over its replicates."""
    best = ranking.blocks.eq(ranking.blocks.min(axis=1), axis=0)
    return {setting: [m for m in best.columns if row[m]] for setting, row in best.iterrows()}


def winner_map(analysis: Analysis, ranking: Ranking) -> Figure:
    """The best methods of each setting: a cell in their colours, or "=" if all methods tie."""
    ms, sparsities, snrs, correlations = (analysis.levels_of(name) for name in SETTING)
    winners = winners_of(ranking)
    looks = {name: (f"{name} ({m.letter})", m.colour, m.letter) for name, m in METHODS.items()}
    tie = ("all six tie", PALE, "=")
    size = 2.15 * len(snrs) + 0.8, (0.26 * len(ms) + 0.1) * len(correlations) + 0.95
    figure, panels = _maps(size, [len(ms)] * len(correlations), len(snrs), len(sparsities))
    for (row, column), ax in np.ndenumerate(panels):
        for (y, m), (x, zeta) in product(enumerate(ms), enumerate(sparsities)):
            best = winners[m, zeta, snrs[column], correlations[row]]
            shown = [looks[method] for method in best] if len(best) < len(METHODS) else [tie]
            width = (1 - 2 * _GAP) / len(shown)
            for place, (_, colour, letter) in enumerate(shown):
                left, letters = x + _GAP + place * width, 8 if len(shown) < 4 else 6
                _cell(ax, left, y, width, colour, letter, letters)
        ax.set_xticks(np.arange(len(sparsities)) + 0.5, [f"{zeta:g}" for zeta in sparsities])
        ax.set_yticks(np.arange(len(ms)) + 0.5, [level_name("m", m) for m in ms])
    for ax, snr in zip(panels[0], snrs, strict=True):
        ax.set_title(f"SNR {snr:g}", fontsize=9)
    for ax, correlation in zip(panels[:, 0], correlations, strict=True):
        ax.set_ylabel(correlation, fontsize=8.5)
    zeros = "sparsity: percent of the coefficients that are zero"
    panels[-1, len(snrs) // 2].set_xlabel(zeros, fontsize=8.5)
    handles = [Patch(color=colour, label=name) for name, colour, _ in [*looks.values(), tie]]
    look: dict[str, Any] = {"fontsize": 7.5, "labelcolor": GREY, "frameon": False}
    look |= {"handlelength": 1.2, "handleheight": 1.2, "columnspacing": 1.2}
    figure.legend(handles=handles, loc="outside lower center", ncols=len(handles), **look)
    return figure


def level_map(analysis: Analysis) -> Figure:
    """Average ranks of all methods on all measures, level by level."""
    tables = {r.measure.title: analysis.levels(r) for r in analysis.rankings.values()}
    counts = [len(analysis.levels_of(factor)) for factor in SETTING]
    size = 0.33 * len(METHODS) * len(tables) + 1.2, 0.25 * sum(counts) + 1.4
    figure, panels = _maps(size, counts, len(tables), len(METHODS))
    for (row, column), ax in np.ndenumerate(panels):
        title, table = list(tables.items())[column]
        averages = table.loc[SETTING[row]]
        for (y, x), average in np.ndenumerate(averages.to_numpy()):
            shade = colormaps["cividis_r"]((average - 1) / (len(METHODS) - 1))
            _cell(ax, x + _GAP, y, 1 - 2 * _GAP, shade, f"{average:.1f}", 7)
        names = [level_name(SETTING[row], level) for level in averages.index]
        ax.set_yticks(np.arange(len(names)) + 0.5, names)
        ax.set_xticks(np.arange(len(METHODS)) + 0.5, list(METHODS), rotation=90)
        if row == 0:
            ax.set_title(title, fontsize=9.5)
    return figure


def _maps(
    size: tuple[float, float], rows: list[int], columns: int, cells: int
) -> tuple[Figure, NDArray[Any]]:
    """A figure and its panels of so many rows of cells each, without lines around them."""
    figure = blank(*size, constrained=True)
    panels: NDArray[Any] = figure.subplots(
        len(rows), columns, sharex=True, sharey="row", squeeze=False, height_ratios=rows
    )
    for (row, _), ax in np.ndenumerate(panels):
        ax.set(xlim=(0, cells), ylim=(rows[row], 0), frame_on=False)
        ax.tick_params(length=0, labelsize=8)
    return figure, panels


def _cell(
    ax: Axes, left: float, top: float, width: float, colour: Any, text: str, size: float
) -> None:
    """A cell, or a stripe of one, with a text in it."""
    ax.add_patch(Rectangle((left, top + _GAP), width, 1 - 2 * _GAP, color=colour, lw=0))
    ink = "black" if np.dot(to_rgb(colour), (0.3, 0.6, 0.1)) > 0.45 else "white"
    if colour == PALE:
        ink = INK  # which the page turns with it
    x, y = left + width / 2, top + 0.53
    ax.text(x, y, text, ha="center", va="center", fontsize=size, color=ink)
