"""The results as a picture: error against columns kept, and the error on each table.

python -m real_tables.plot [--results FILE] [--output FILE]
"""

import matplotlib

matplotlib.use("agg")
import matplotlib.pyplot as plt
import numpy as np
from rivals.plot import GREY, OURS, RIVAL, command
from rivals.run import ROOT

from real_tables.methods import METHODS
from real_tables.page import Comparison
from real_tables.run import RESULTS

PICTURE = ROOT / "docs" / "benchmarks" / "real_tables.svg"
MARKERS = "osD^vP*X"  # of the methods of one colour
CLOSE = 0.003  # errors whose labels would touch
FARTHEST = 30.0  # percent above the least error; what is beyond becomes an arrow


def looks(methods):
    """How the dots of each method look, the same in both panels."""
    styles, taken = {}, {OURS: 0, RIVAL: 0, GREY: 0}
    for name in methods:
        method = METHODS[name]
        colour = OURS if method.ours else GREY if method.dense else RIVAL
        face = "white" if method.dense else colour
        marker = MARKERS[taken[colour]]
        taken[colour] += 1
        styles[name] = {"color": colour, "markerfacecolor": face, "marker": marker, "ls": "none"}
    return styles


def draw(results):
    """The figure."""
    comparison = Comparison(results)
    styles = looks(comparison.methods)
    height = 1.0 + 0.24 * len(comparison.tables)
    figure, (left, right) = plt.subplots(1, 2, figsize=(10.5, height), width_ratios=(1, 1.15))
    averages(left, comparison, styles)
    each_table(right, comparison, styles)
    for ax in (left, right):
        ax.grid(color="#E4E4E4", linewidth=0.6)
        ax.set_axisbelow(True)
        ax.tick_params(labelsize=8, length=2)
        ax.spines[["top", "right"]].set_visible(False)
    figure.tight_layout(w_pad=2.0)
    return figure


def averages(ax, comparison, styles):
    """Averages over the tables: error against the share of the columns that is kept."""
    columns = np.array([size["columns"] for size in comparison.sizes.values()])
    shares = 100 * np.mean(comparison.kept / columns[:, np.newaxis], axis=0)
    errors = comparison.average()
    for name, share, error in zip(comparison.methods, shares, errors, strict=True):
        if name == "ols":
            continue
        # Labels of dots at nearly the same height move apart.
        near = [other - error for other in errors if 0 < abs(other - error) < CLOSE]
        apart = -5 * np.sign(sum(near)) if near else 0
        ax.plot(share, error, markersize=7, **styles[name])
        ax.annotate(
            METHODS[name].label,
            (share, error),
            xytext=(7 if share < 70 else -7, apart),
            ha="left" if share < 70 else "right",
            va="center",
            textcoords="offset points",
            fontsize=8.5,
            color=styles[name]["color"],
        )
    ax.set_xlim(0, 104)
    ax.margins(y=0.12)
    ax.set_xlabel("columns kept, percent", fontsize=8.5)
    ax.set_ylabel("held-out error / that of SparseStepCV()", fontsize=8.5)
    ax.set_title(f"Average over {len(comparison.tables)} tables", fontsize=9.5, fontweight="bold")


def each_table(ax, comparison, styles):
    """A line for each table, those with least noise first: error above the best one's."""
    order = np.argsort(comparison.error.min(axis=1))
    above = 100 * (comparison.error / comparison.error.min(axis=1, keepdims=True) - 1)
    for place, table in enumerate(order):
        for name, value in zip(comparison.methods, above[table], strict=True):
            if name == "ols":
                continue
            style = styles[name] | ({"marker": ">"} if value > FARTHEST else {})
            ax.plot(min(value, FARTHEST), place, markersize=5, alpha=0.8, clip_on=False, **style)
    labels = []
    for table in order:
        name = comparison.tables[table]
        size = comparison.sizes[name]
        labels.append(f"{name}, {size['rows']:,} x {size['columns']}")
    ax.set_yticks(range(len(order)), labels)
    ax.set_ylim(len(order) - 0.4, -0.6)
    ax.set_xlim(0, FARTHEST)
    ax.set_xlabel("held-out error above the least of the table, percent", fontsize=8.5)
    ax.set_title("Each table, little noise above", fontsize=9.5, fontweight="bold")


if __name__ == "__main__":
    command(__doc__, draw, RESULTS, PICTURE)
