"""The results as tables, written into docs/real_data.md between marks.

python -m real_tables.page [--results FILE] [--page FILE]
"""

import argparse
import json
from datetime import date
from pathlib import Path

import numpy as np
from rivals.run import ROOT
from rivals.table import put_into, rewrite, seconds_text
from scipy.stats import rankdata

from real_tables.data import COLUMNS, TABLES
from real_tables.methods import METHODS
from real_tables.run import RESULTS

PAGE = ROOT / "docs" / "real_data.md"
DEFAULT = "min"  # what the others are compared with
INFINITE = float("inf")
# Noise: what the best method leaves of the variance. Rows: to train on, for each column.
GROUPS = {
    "little noise": ("noise", 0.0, 0.25),
    "some noise": ("noise", 0.25, 0.6),
    "much noise": ("noise", 0.6, INFINITE),
    "rows / columns < 6": ("rows", 0.0, 6.0),
    "6 to 20": ("rows", 6.0, 20.0),
    "20 and more": ("rows", 20.0, INFINITE),
}


class Comparison:
    """The measures of a run: arrays with a row for each table and a column for each method."""

    def __init__(self, results):
        self.sizes = results["tables"]
        self.tables = list(self.sizes)
        found = {(run["table"], run["method"]): run for run in results["runs"]}
        self.methods = [name for name in METHODS if (self.tables[0], name) in found]
        runs = [[found[table, name] for name in self.methods] for table in self.tables]
        # Tables, methods, splits.
        self.logs = np.log([[run["errors"] for run in row] for row in runs])
        self.splits = self.logs.shape[2]
        self.error = np.exp(self.logs.mean(axis=2))
        self.kept = np.array([[np.mean(run["kept"]) for run in row] for row in runs])
        # None, where everything or nothing is always kept, becomes NaN.
        self.stability = np.array([[run["stability"] for run in row] for row in runs], dtype=float)
        self.seconds = np.array([[run["seconds"] for run in row] for row in runs])
        self.ranks = rankdata(self.error.round(4), axis=1)

    def average(self, where=slice(None)):
        """Error over that of the default: geometric mean over splits and tables."""
        logs = np.log(self.error[where]).mean(axis=0)
        return np.exp(logs - logs[self.methods.index(DEFAULT)])

    def against_default(self, name):
        """On how many tables a method has less error than the default, and more; and clearly so.

        Clearly is by two standard errors of the mean of the log ratio, with the correction of
        Nadeau and Bengio (2003) for splits that share rows: 1 / splits + test rows / train rows.
        """
        one, other = (self.logs[:, self.methods.index(which)] for which in (name, DEFAULT))
        difference = one - other
        mean = difference.mean(axis=1)
        spread = difference.std(axis=1, ddof=1) * np.sqrt(1 / self.splits + 1 / 2)
        signs = np.sign(mean.round(4))
        clear = signs * (np.abs(mean) > 2 * spread)
        return [np.count_nonzero(those == sign) for those in (signs, clear) for sign in (-1, 1)]

    def groups(self):
        """The tables of each group."""
        rows, columns = ([size[key] for size in self.sizes.values()] for key in ("rows", "columns"))
        of = {"noise": self.error.min(axis=1), "rows": np.divide(rows, columns) * 2 / 3}
        return {
            name: (low <= of[measure]) & (of[measure] < high)
            for name, (measure, low, high) in GROUPS.items()
        }


def table_of(head, rows):
    """A Markdown table, numbers to the right."""
    lines = [head, ["---", *["---:"] * (len(head) - 1)], *rows]
    return ["| " + " | ".join(line) + " |" for line in lines]


def bold_least(values, digits):
    """Numbers as text, the least in bold."""
    texts = [f"{value:.{digits}f}" for value in values]
    least = f"{min(values):.{digits}f}"
    return [f"**{text}**" if text == least else text for text in texts]


def overall(comparison):
    """The averages over all tables."""
    errors = bold_least(comparison.average(), 3)
    ranks = bold_least(comparison.ranks.mean(axis=0), 2)
    rows = []
    for at, name in enumerate(comparison.methods):
        less, more, clearly_less, clearly_more = comparison.against_default(name)
        stability = comparison.stability[:, at]
        rows.append(
            [
                METHODS[name].label,
                errors[at],
                ranks[at],
                str(np.count_nonzero(comparison.ranks[:, at] == 1)),
                "" if name == DEFAULT else f"{less} / {more} ({clearly_less} / {clearly_more})",
                f"{comparison.kept[:, at].mean():.1f}",
                "" if np.isnan(stability).all() else f"{np.nanmean(stability):.2f}",
                seconds_text(np.median(comparison.seconds[:, at])),
            ]
        )
    head = ["", "error", "rank", "first", "less / more error", "kept", "stability", "time"]
    return table_of(head, rows)


def by_group(comparison):
    """The error in each group of tables."""
    groups = comparison.groups()
    columns = [bold_least(comparison.average(tables), 3) for tables in groups.values()]
    head = ["", *(f"{name} ({np.count_nonzero(which)})" for name, which in groups.items())]
    labels = [METHODS[name].label for name in comparison.methods]
    return table_of(head, zip(labels, *columns, strict=True))


def by_table(comparison):
    """The error and the number of columns kept on each table."""
    rows = []
    for name, errors, kept in zip(
        comparison.tables, comparison.error, comparison.kept, strict=True
    ):
        numbers = zip(comparison.methods, bold_least(errors, 3), kept, strict=True)
        cells = [
            error if METHODS[method].dense else f"{error}, {number:.3g}"
            for method, error, number in numbers
        ]
        rows.append([name, *cells])
    return table_of(["", *(METHODS[name].label for name in comparison.methods)], rows)


def sources(comparison):
    """What each table is."""
    rows = []
    for name, size in comparison.sizes.items():
        table = TABLES[name]
        target = f"log `{table.target}`" if table.log else f"`{table.target}`"
        about = [f"{table.about}", table.package, target, COLUMNS[table.columns]]
        rows.append([name, *about, f"{size['rows']:,}", str(size["columns"])])
    lines = table_of(["", "about", "package", "target", "columns", "rows", "number"], rows)
    lines[1] = "|---|---|---|---|---|---:|---:|"
    return lines


def averages(results):
    """The methods, where they were measured, and their averages over all tables."""
    comparison = Comparison(results)
    day, machine = date.fromisoformat(results["date"]), results["machine"]
    versions = ", ".join(f"{name} {version}" for name, version in results["versions"].items())
    columns = np.mean([size["columns"] for size in comparison.sizes.values()])
    return [
        *(f"- *{METHODS[name].label}*: {METHODS[name].what}." for name in comparison.methods),
        "",
        f"Measured on {day.day} {day:%B %Y} by `make bench-tables` (commit {results['commit']}) on "
        f"{machine['processor']}, {machine['system']}, Python {machine['python']}: {versions}.",
        "",
        *overall(comparison),
        "",
        "- *error*: mean squared error on the held-out rows over that of `SparseStepCV()`, "
        f"geometric mean over {comparison.splits} splits and {len(comparison.tables)} tables.",
        "- *rank*: average rank by this error, 1 is best; *first*: tables on which it is 1.",
        "- *less / more error*: on how many tables, compared with `SparseStepCV()`; in "
        "parentheses by more than two standard errors, corrected for splits that share rows "
        "(Nadeau and Bengio, 2003).",
        f"- *kept*: columns, of {columns:.0f} on average.",
        "- *stability*: Nogueira's index (Nogueira, Sechidis and Brown, 2018) of the sets kept "
        "in the splits: 1 if they are all the same, 0 if they agree no more than random sets "
        "of their sizes. So it does not favour large sets or small ones, as overlaps do.",
        "- *time*: processor time of a whole fit, choice included, in one thread; medians.",
        "",
        "![Held-out error against columns kept, and the error on each table]"
        "(benchmarks/real_tables.svg)",
    ]


def details(results):
    """The error by groups of tables and on each table, and what the tables are."""
    comparison = Comparison(results)
    return [
        "## By noise, and by rows",
        "",
        "The error as above. *Noise* is what the best method leaves of the variance of held-out "
        "targets: little is less than 0.25, much 0.6 and more. *Rows / columns* counts rows to "
        "train on. In parentheses the number of tables.",
        "",
        *by_group(comparison),
        "",
        "## On each table",
        "",
        "Error on the held-out rows over that of predicting the mean, and columns kept.",
        "",
        *by_table(comparison),
        "",
        "## The tables",
        "",
        *sources(comparison),
    ]


BLOCKS = {"averages": averages, "details": details}


def filled(page, results):
    """The page with the results between its marks."""
    for name, block in BLOCKS.items():
        marks = (f"<!-- {name}: {which} -->" for which in ("begin", "end"))
        page = put_into(page, "\n".join(block(results)), *marks)
    return page


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--results", type=Path, default=RESULTS)
    parser.add_argument("--page", type=Path, default=PAGE)
    options = parser.parse_args()
    results = json.loads(options.results.read_text(encoding="utf-8"))
    rewrite(options.page, lambda page: filled(page, results))


if __name__ == "__main__":
    main()
