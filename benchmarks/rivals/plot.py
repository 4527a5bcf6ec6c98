"""The results as a picture: a row of panels for each problem, a dot for each library.

python -m rivals.plot [--results FILE] [--output FILE]
"""

import argparse
import json
from pathlib import Path

import matplotlib

matplotlib.use("agg")
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.transforms import blended_transform_factory

from rivals.libraries import LIBRARIES
from rivals.run import RESULTS, ROOT
from rivals.table import cells, measured, measures, why_empty

PICTURE = ROOT / "docs" / "benchmarks" / "rivals.svg"
OURS, RIVAL, GREY = "#0072B2", "#D55E00", "#767676"
PANELS = (  # the measure, the title, whether the axis is logarithmic
    ("seconds", "time, seconds", True),
    ("hit_rate", "hit rate", False),
    ("error_of_b", "error of b", True),
    ("test_error", "test error / variance of the noise", True),
)
ROW, TOP = 1.95, 0.5  # inches


def draw(results):
    """The figure."""
    grouped, problems = cells(results), measured(results)
    height = ROW * len(problems) + TOP
    figure, axes = plt.subplots(
        len(problems), len(PANELS), figsize=(10.5, height), sharey=True, squeeze=False
    )
    figure.subplots_adjust(
        left=0.17, right=0.985, bottom=0.35 / height, top=1 - TOP / height, hspace=0.6, wspace=0.12
    )
    for row, (problem, facts) in zip(axes, problems.items(), strict=True):
        for ax, (measure, title, logarithmic) in zip(row, PANELS, strict=True):
            for place, name in enumerate(LIBRARIES):
                point(ax, place, name, grouped.get((problem, name), []), measure, results["limit"])
            if logarithmic:
                log_axis(ax)
            ax.set_title(title, fontsize=8, color=GREY, pad=3)
            ax.grid(axis="x", color="#E4E4E4", linewidth=0.6)
            ax.set_axisbelow(True)
            ax.tick_params(labelsize=8, length=2)
            ax.spines[["top", "right"]].set_visible(False)
        row[0].set_yticks(range(len(LIBRARIES)), [library.label for library in LIBRARIES.values()])
        row[0].get_yticklabels()[0].set_color(OURS)
        row[0].set_ylim(len(LIBRARIES) - 0.4, -0.6)
        where = blended_transform_factory(figure.transFigure, row[0].transAxes)
        size = f"{facts['rows']:,} x {facts['columns']:,}"
        heading = f"{facts['label'][0].upper()}{facts['label'][1:]} ({size})"
        row[0].text(0.01, 1.2, heading, transform=where, fontsize=9.5, fontweight="bold")
    return figure


def log_axis(ax):
    """A logarithmic axis with few ticks in plain numbers."""
    ax.set_xscale("log")
    low, high = ax.get_xlim()
    middle = np.sqrt(low * high)
    low, high = min(low, middle / 2), max(high, middle * 2)
    decades = 10.0 ** np.arange(np.floor(np.log10(low)), np.ceil(np.log10(high)) + 1)
    for steps in ((1, 2, 5), (1, 3), (1,)):
        ticks = np.sort(np.outer(decades, steps).ravel())
        ticks = ticks[(ticks >= low) & (ticks <= high)]
        if len(ticks) <= 5:
            break
    ax.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
    ax.minorticks_off()
    ax.set_xlim(low, high)


def point(ax, place, name, runs, measure, limit):
    """A dot; an arrow at the limit for a fit that took longer; a word for one that is missing."""
    empty = why_empty(runs, limit)
    if empty is None:
        colour = OURS if name == "sparsestep" else GREY if LIBRARIES[name].floor else RIVAL
        face = "white" if LIBRARIES[name].floor else colour
        value = measures(runs)[measure]
        ax.plot(value, place, "o", markersize=5.5, color=colour, markerfacecolor=face)
    elif measure == "seconds" and empty.startswith(">"):
        ax.plot(limit, place, ">", markersize=5.5, color=OURS if name == "sparsestep" else RIVAL)
    elif measure == "seconds":
        how = {"transform": ax.get_yaxis_transform(), "va": "center", "fontsize": 8}
        ax.text(0.03, place, empty, color=GREY, **how)


def command(about, draw, results, picture):
    """The command that draws the figure of some results."""
    parser = argparse.ArgumentParser(description=about.splitlines()[0])
    parser.add_argument("--results", type=Path, default=results)
    parser.add_argument("--output", type=Path, default=picture)
    options = parser.parse_args()
    # Without a salt and a fixed date the file would differ from run to run.
    matplotlib.rcParams["svg.hashsalt"] = "sparsestep"
    figure = draw(json.loads(options.results.read_text(encoding="utf-8")))
    figure.savefig(options.output, metadata={"Date": None}, dpi=110)


if __name__ == "__main__":
    command(__doc__, draw, RESULTS, PICTURE)
