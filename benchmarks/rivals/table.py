"""The results as tables, written into docs/benchmarks.md between two marks.

python -m rivals.table [--results FILE] [--page FILE | --print]
"""

import argparse
import json
from datetime import date
from pathlib import Path
from statistics import median

from rivals.libraries import LIBRARIES, UNAVAILABLE
from rivals.run import RESULTS, ROOT

PAGE = ROOT / "docs" / "benchmarks.md"
BEGIN, END = "<!-- rivals: begin -->", "<!-- rivals: end -->"
DESIGNS = {
    "constant": "constant correlation {correlation:g}",
    "autoregressive": "correlation {correlation:g} to the power of the distance",
    "polynomial": "powers and products of 6 uniform variables",
}


def cells(results):
    """Runs of each problem and library."""
    grouped = {}
    for run in results["runs"]:
        grouped.setdefault((run["problem"], run["library"]), []).append(run)
    return grouped


def measured(results):
    """The problems that any library has met."""
    met = {run["problem"] for run in results["runs"]}
    return {name: problem for name, problem in results["problems"].items() if name in met}


def seconds_text(seconds):
    """Three digits, in the unit that suits."""
    return f"{1e3 * seconds:.3g} ms" if seconds < 0.9995 else f"{seconds:.3g} s"


def why_empty(runs, limit):
    """What stands in place of a time: missing, too slow or failed; None if it was measured."""
    if not runs:
        return "not run"
    if any("missing" in run for run in runs):
        return "missing"
    if any("timed_out" in run for run in runs):
        return f"> {limit:g} s"
    return "failed" if any("failed" in run for run in runs) else None


def measures(runs):
    """Medians over the repeats."""
    names = ("seconds", "hit_rate", "error_of_b", "test_error", "kept", "kept_true")
    return {name: median(run[name] for run in runs) for name in names}


COLUMNS = {  # of a table: the measure, its text, and whether small is good
    "time": ("seconds", seconds_text, True),
    "hit rate": ("hit_rate", lambda value: f"{value:.3f}", False),
    "error of b": ("error_of_b", lambda value: f"{value:.3f}", True),
    "test error": ("test_error", lambda value: f"{100 * value:.3g} %", True),
}


def bests(medians):
    """The best text of each column; those that select nothing take no part in the time."""
    best = {}
    for column, (name, text, small) in COLUMNS.items():
        rivals = [
            values[name]
            for library, values in medians.items()
            if column != "time" or not LIBRARIES[library].floor
        ]
        if rivals:
            best[column] = text(min(rivals) if small else max(rivals))
    return best


def problem_table(problem, grouped, limit):
    """Rows of one problem's table, the best of each column in bold."""
    runs = {name: grouped.get((problem, name), []) for name in LIBRARIES}
    empty = {name: why_empty(runs[name], limit) for name in LIBRARIES}
    medians = {name: measures(runs[name]) for name in LIBRARIES if empty[name] is None}
    best = bests(medians)
    lines = [
        "| | time | hit rate | error of b | test error | kept | of them true |",
        "|---|---:|---:|---:|---:|---:|---:|",
    ]
    for name, library in LIBRARIES.items():
        label = f"*{library.label}*" if library.floor else library.label
        if empty[name] is not None:
            lines.append(f"| {label} | {empty[name]} | | | | | |")
            continue
        row = [label]
        for column, (measure, text, _) in COLUMNS.items():
            said = text(medians[name][measure])
            wins = said == best[column] and not (column == "time" and library.floor)
            said = f"**{said}**" if wins else said
            short = column == "time" and any(run["converged"] is False for run in runs[name])
            row.append(said + " †" * short)
        row += [f"{medians[name]['kept']:g}", f"{medians[name]['kept_true']:g}"]
        lines.append(f"| {' | '.join(row)} |")
    failed = {name: runs[name][-1]["failed"] for name in LIBRARIES if empty[name] == "failed"}
    for name, message in failed.items():
        lines.append(f"\n{LIBRARIES[name].label} failed: `{message}`")
    return lines


def problem_heading(problem):
    """What a problem is, in a line."""
    design = DESIGNS[problem["design"]].format(**problem)
    sizes = "between -1 and 1" if problem["coefficients"] == "uniform" else "of size 1"
    return (
        f"{problem['rows']:,} rows, {problem['columns']:,} columns, {design}; "
        f"{problem['nonzero']} coefficients {sizes}, the others zero; signal-to-noise ratio "
        f"{problem['snr']:g}."
    )


def versions_text(results):
    """Versions, each package once."""
    versions = {}
    for name, library in LIBRARIES.items():
        package = library.package.replace("R:", "R ")
        versions[package] = results["versions"].get(name) or "missing"
    return ", ".join(f"{package} {version}" for package, version in versions.items())


def section(results):
    """The whole section of the page."""
    grouped, machine = cells(results), results["machine"]
    repeats = max(len(runs) for runs in grouped.values())
    days = [date.fromisoformat(day) for day in sorted({run["date"] for run in results["runs"]})]
    dates = " and ".join(f"{day.day} {day:%B %Y}" for day in days)
    commits = ", ".join(dict.fromkeys(run["commit"] for run in results["runs"]))
    lines = [
        "## Beside other libraries",
        "",
        f"Measured on {dates} by `make bench-rivals` (commit {commits}) on "
        f"{machine['processor']}, {machine['cores']} cores, {machine['system']}, "
        f"Python {machine['python']}: "
        f"{versions_text(results)}. At most {results['threads']} threads for each.",
        "",
        f"Each library does a whole {results['folds']}-fold cross-validation over "
        f"{results['penalties']} penalties on the same standardized columns and the same folds, "
        "and takes the penalty of the smallest error:",
        "",
        *(f"- {library.label}: {library.what}." for library in LIBRARIES.values()),
        *(f"- {name}: {reason}, so it takes no part." for name, reason in UNAVAILABLE.items()),
        "",
        f"Medians of {repeats} data sets, fewer where a fit takes long; the libraries take turns. "
        "Just-in-time compilation, imports and the start of worker processes are not counted. "
        f"A fit ends after {results['limit']:g} s. *Hit rate*: share of the coefficients rightly "
        "zero or not zero. *Error of b*: length of b - true b, divided by that of true b. *Test "
        "error*: mean squared error on 10,000 new rows beyond the noise, in percent of the noise's "
        "variance. The best of each column is bold. Ridge and least squares select nothing, and "
        "least squares is a single fit: they take no part in the time. †: some penalties stopped "
        "short of convergence.",
        "",
        "![Time, hit rate, error of b and test error of each library on each problem]"
        "(benchmarks/rivals.svg)",
    ]
    for name, problem in measured(results).items():
        title = problem["label"][0].upper() + problem["label"][1:]
        lines += ["", f"### {title}", "", problem_heading(problem), ""]
        lines += problem_table(name, grouped, results["limit"])
    return "\n".join(lines)


def put_into(page, text, begin=BEGIN, end=END):
    """A page with the text between the marks."""
    before, rest = page.split(begin)
    _, after = rest.split(end)
    return f"{before}{begin}\n\n{text}\n\n{end}{after}"


def rewrite(page, change):
    """Change the text of a page, completely or not at all."""
    changed = change(page.read_text(encoding="utf-8"))
    temporary = page.with_suffix(".tmp")
    temporary.write_text(changed, encoding="utf-8")
    temporary.replace(page)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--results", type=Path, default=RESULTS)
    parser.add_argument("--page", type=Path, default=PAGE)
    parser.add_argument("--print", action="store_true", help="print instead of writing the page")
    options = parser.parse_args()
    text = section(json.loads(options.results.read_text(encoding="utf-8")))
    if options.print:
        print(text)
        return
    rewrite(options.page, lambda page: put_into(page, text))


if __name__ == "__main__":
    main()
