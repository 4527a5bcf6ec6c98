"""The stages after the fits: their files, pictures whose labels do not overlap, and the page."""

import json
import re
import xml.etree.ElementTree as ET
from dataclasses import replace
from itertools import combinations
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from html_page import Page
from sparsestep.study import figures
from sparsestep.study.methods import EXTRAS, METHODS, VARIANTS
from sparsestep.study.report import STAGES, markdown_of, ranks_in_short, run_stages
from sparsestep.study.results import write_results, write_run
from sparsestep.study.statistics import MEASURES, analyse
from study_table import made_up

OF_THE_PAPER = {"penalties", "counting_norm", "majorizers"}
OF_THE_PAPER |= {f"ranks_{measure.column}" for measure in MEASURES}
ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def analysis():
    return analyse(*made_up(2, extras=True))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A study with replicates and extras, after all stages."""
    folder = tmp_path_factory.mktemp("study")
    results, run = made_up(2, extras=True)
    write_results(results, folder)
    write_run(run, folder)
    for written in run_stages(STAGES, folder):
        assert written.exists()
    return folder


def page_of(folder):
    return (folder / "report.html").read_text(encoding="utf-8")


def summary_in(folder):
    return json.loads((folder / "summary.json").read_text(encoding="utf-8"))


def with_results_of(folder, path):
    for name in ("results.parquet", "run.json"):
        (path / name).write_bytes((folder / name).read_bytes())
    return path


# --- files ----------------------------------------------------------------------------------------


def test_the_files_of_all_stages(folder, analysis):
    table = pd.read_parquet(folder / "ranks.parquet")
    assert len(table) == 4 * 360
    for measure in MEASURES:
        rows = table[table["measure"] == measure.column].set_index("dataset")
        assert np.array_equal(rows[list(METHODS)], analysis.rankings[measure.column].ranks)
    summary = summary_in(folder)
    assert len(summary["claims"]) == 9
    assert (folder / "summary.md").read_text(encoding="utf-8") == markdown_of(summary)
    names = {file.stem for file in (folder / "figures").iterdir()}
    assert names >= OF_THE_PAPER
    for name in names:
        root = ET.parse(folder / "figures" / f"{name}.svg").getroot()
        assert root.tag == "{http://www.w3.org/2000/svg}svg"
        content = (folder / "figures" / f"{name}.png").read_bytes()
        assert content.startswith(b"\x89PNG\r\n") and len(content) > 5000
    assert max(file.stat().st_size for file in (folder / "figures").iterdir()) < 400_000


def test_stages_run_alone_and_repeat_byte_for_byte(folder, tmp_path):
    list(run_stages(["report"], with_results_of(folder, tmp_path)))
    files = {file.name for file in tmp_path.iterdir()}
    assert files == {"report.html", "results.parquet", "run.json"}
    list(run_stages(["test", "rank"], tmp_path))
    for name in ("report.html", "summary.json", "summary.md", "ranks.parquet"):
        assert (tmp_path / name).read_bytes() == (folder / name).read_bytes()


def test_pictures_repeat_byte_for_byte_whatever_the_users_settings(folder, analysis):
    import matplotlib

    with matplotlib.rc_context({"font.size": 20, "savefig.dpi": 50, "svg.hashsalt": "other"}):
        with figures.style():
            # One of each kind: with labels moved by a layout, of pixels, and with plain axes.
            for name in ("majorizers", "counting_norm", "ranks_time", "winners_hit_rate"):
                figure = figures.figures_of(analysis)[name]()
                file = folder / "figures" / name
                assert figures.svg(figure).encode() == file.with_suffix(".svg").read_bytes()
                assert figures.png(figure) == file.with_suffix(".png").read_bytes()
        assert matplotlib.rcParams["font.size"] == 20


# --- pictures -------------------------------------------------------------------------------------


def boxes(figure):
    """Where the texts of a figure stand, in pixels."""
    renderer = figure.canvas.get_renderer()
    texts = [*figure.texts, *(text for ax in figure.axes for text in ax.texts)]
    for ax in figure.axes:
        texts += [ax.title, ax._left_title, ax._right_title, ax.xaxis.label, ax.yaxis.label]
        if ax.axison:
            texts += [*ax.get_xticklabels(), *ax.get_yticklabels()]
    shown = [text for text in texts if text.get_visible() and text.get_text()]
    return [(text.get_text(), text.get_window_extent(renderer)) for text in shown]


def assert_apart(figure):
    figure.canvas.draw()
    drawn = boxes(figure)
    for (one, a), (other, b) in combinations(drawn, 2):
        assert not a.overlaps(b), f"{one!r} and {other!r}"
    for text, box in drawn:
        assert figure.bbox.x0 <= box.x0 and box.x1 <= figure.bbox.x1, text
        assert figure.bbox.y0 <= box.y0 and box.y1 <= figure.bbox.y1, text
    return drawn


ONE = analyse(*made_up()).rankings["mse_b"]


@settings(max_examples=15)
@given(st.lists(st.floats(1.0, 6.0), min_size=6, max_size=6), st.just(1))
@example([1.0] * 6, 4)
@example([3.5] * 6, 4)
@example([6.0] * 6, 4)
def test_labels_of_a_rank_plot_never_overlap(averages, panels):
    ranking = replace(ONE, ranks=pd.DataFrame([averages], columns=list(METHODS)))
    with figures.style():
        drawn = dict(assert_apart(figures.rank_plot([ranking] * panels)))
    labels = [f"{method}\n{average:.2f}" for method, average in zip(METHODS, averages, strict=True)]
    middles = [drawn[label].x0 + drawn[label].width / 2 for label in labels]
    order = np.argsort(averages, kind="stable")
    assert np.all(np.diff(np.array(middles)[order]) > 0)


def test_labels_of_the_maps_do_not_overlap(analysis):
    with figures.style():
        assert_apart(figures.winner_map(analysis, analysis.rankings["mse_b"]))
        assert_apart(figures.level_map(analysis))
        for rankings in analysis.variants.values():
            assert_apart(figures.rank_plot(list(rankings.values())))


def test_a_filled_point_is_separated_from_sparsestep(analysis):
    ranking = analysis.rankings["mse_b"]
    with figures.style():
        (ax,) = figures.rank_plot([ranking]).axes
    points = {
        line.get_xdata()[0]: line for line in ax.lines if line.get_marker() not in ("None", None)
    }
    assert len(points) == 6
    for method, average in ranking.average.items():
        open_ = points[average].get_markerfacecolor() == "white"
        if method == "SparseStep":
            assert points[average].get_marker() == "D" and not open_
        else:
            assert open_ == (ranking.control_is(method) == "not separated")


def test_winners_are_the_best_of_their_setting(analysis):
    ranking = analysis.rankings["hit_rate"]
    winners = figures.winners_of(ranking)
    assert len(winners) == 180
    columns = ["m", "sparsity", "snr", "correlation"]
    for setting, best in list(winners.items())[::20]:
        rows = analysis.settings.index[analysis.settings[columns].eq(list(setting)).all(axis=1)]
        assert len(rows) == 2
        means = ranking.ranks.loc[rows].mean()
        assert best == [method for method in METHODS if means[method] == means.min()]


def test_a_smaller_study_has_smaller_maps():
    small = analyse(*made_up(scale="quick"))
    with figures.style():
        panels = figures.winner_map(small, small.rankings["mse_b"]).axes
    assert len(panels) == 9
    for ax in panels[::3]:
        assert [label.get_text() for label in ax.get_yticklabels()] == ["m 10", "m 50", "m 100"]


# --- the page -------------------------------------------------------------------------------------


def test_the_page_needs_nothing_else(folder):
    text = page_of(folder)
    page = Page(text)
    loaded = {e[name] for e in page.elements for name in ("src", "href") if name in e}
    assert all(target.startswith(("#", "data:,")) for target in loaded)
    assert "<script" not in text and "@import" not in text and "url(http" not in text
    assert "default-src 'none'" in text
    ids = [e["id"] for e in page.elements if "id" in e]
    assert len(ids) == len(set(ids))
    # Names of the parts of one picture are no other's.
    used = {target[1:] for target in loaded if target.startswith("#")}
    assert used | set(re.findall(r"url\(#([^)]+)\)", text)) <= set(ids)
    assert len(text) < 1_700_000
    # What is read is text and no markup.
    assert "a &lt;fast&gt; one" in text and "<fast>" not in text


def test_the_page_has_what_it_should(folder, analysis):
    text = Page(page_of(folder)).text
    summary = summary_in(folder)
    for claim in summary["claims"]:
        assert claim["claim"] in text and claim["verdict"] in text
        for part in claim["parts"]:
            assert " ".join(part["ours"].split()) in text
    assert summary["open_question"]["short"] in text
    for note in summary["deviations"]:
        assert note in text
    for ranking in analysis.rankings.values():
        for method in METHODS:
            assert f"{method}{ranking.average[method]:.2f}" in text
    assert "SparseStep swap" in text and "12.5 minutes" in text and "numpy 2.4.0" in text
    assert page_of(folder).count("<svg") == 6 + len(VARIANTS) + len(EXTRAS)
    for variant in VARIANTS | EXTRAS:
        rank = analysis.variants[variant]["mse_b"].average[variant]
        assert f"{variant}{rank:.2f}" in text


def test_a_run_with_one_replicate_asks_no_more_than_it_can(tmp_path):
    results, run = made_up(scale="quick")
    write_results(results, tmp_path)
    write_run(run, tmp_path)
    list(run_stages(["report"], tmp_path))
    text = page_of(tmp_path)
    assert "one block per setting" not in text and "tested alone" not in text
    assert "in SparseStep's place" not in text


# --- runs in the documentation --------------------------------------------------------------------

RUNS = sorted((ROOT / "docs" / "study").rglob("results.parquet"))


@pytest.mark.parametrize("results", RUNS, ids=lambda file: file.parent.name)
def test_a_committed_summary_is_that_of_its_results(results, tmp_path):
    list(run_stages(["test"], with_results_of(results.parent, tmp_path)))
    for name in ("summary.json", "summary.md"):
        committed = (results.parent / name).read_text(encoding="utf-8")
        assert committed == (tmp_path / name).read_text(encoding="utf-8")


def test_the_committed_run_in_short():
    summary = summary_in(ROOT / "docs" / "study")
    marks = {"reproduced": "✓", "partly reproduced": "partly", "not reproduced": "✗"}
    rows = [f"| {claim['claim']} | {marks[claim['verdict']]} |" for claim in summary["claims"]]
    table = "\n".join(["| the paper's claim | here |", "| --- | --- |", *rows, ""])
    assert table in (ROOT / "README.md").read_text(encoding="utf-8")
    title, head, *rows, in_place, claims = ranks_in_short(summary).splitlines()
    assert title == "Average ranks on 180 data sets, 1 is best"
    assert head.strip().split("  ") == ["MSE of b", "hit rate", "test MSE", "time"]
    shown = {" ".join(row.split()[:-4]): [float(rank) for rank in row.split()[-4:]] for row in rows}
    assert list(shown) == [*METHODS, *VARIANTS] and all(name in in_place for name in VARIANTS)
    for place, (column, measure) in enumerate(summary["measures"].items()):
        assert shown["SparseStep"][place] == round(measure["average_rank"]["SparseStep"], 2)
        for name in VARIANTS:
            rank = summary["in_place_of_sparsestep"][name][column]
            assert shown[name][place] == pytest.approx(rank, abs=0.0051)
    assert claims.endswith("3 reproduced, 3 partly reproduced, 3 not reproduced.")
