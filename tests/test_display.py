"""The pictures, drawn from real fits of small problems and looked at through their artists."""

import sys
from dataclasses import replace
from itertools import combinations, pairwise, product
from pathlib import Path

import matplotlib
import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numpy.testing import assert_allclose, assert_array_equal
from scipy.integrate import cumulative_trapezoid
from sklearn.isotonic import isotonic_regression
from sklearn.linear_model import lasso_path
from sklearn.model_selection import PredefinedSplit
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

matplotlib.use("Agg")
import matplotlib.pyplot as plt
from matplotlib.text import Text

import sparsestep as ss
from sparsestep import AnnealingDisplay, CVDisplay, InclusionDisplay, PathDisplay, PenaltyDisplay
from sparsestep.display.axes import plain, spread
from sparsestep.reference import sparsestep_reference

TRUTH = np.array([3.0, 0.0, -2.0, 0.0, 1.0, 0.0])
NAMES = ("age", "$income", "body_mass", "50% $x_1$", "ldl\nraw", "x" * 60)
# Units of the six columns.
SCALE = np.array([1e3, 1.0, 1e-4, 7.0, 1.0, 1e5])


@pytest.fixture(autouse=True)
def _close_figures():
    yield
    plt.close("all")


rng = np.random.default_rng(0)
X = rng.normal(size=(60, 6)) + 2.0
Y = X @ TRUTH + 2.0 * rng.normal(size=60)
LASSO = dict(zip(("alphas", "coefs"), lasso_path(X - X.mean(axis=0), Y - Y.mean()), strict=False))


@pytest.fixture(scope="module")
def fitted():
    """A model chosen by one standard error on three folds of unequal size."""
    fold_of_row = np.repeat([0, 1, 2], [30, 20, 10])
    folds = PredefinedSplit(np.random.default_rng(0).permutation(fold_of_row))
    model = ss.SparseStepCV(np.geomspace(3000.0, 1e-3, 25), cv=folds, rule="1se")
    model.fit(pd.DataFrame(X, columns=list(NAMES)), Y)
    assert model.alphas_[0] > model.alpha_1se_ > model.alpha_min_
    assert np.all(model.path_.coefs[:, -1] != 0)
    return model


@pytest.fixture(scope="module")
def average():
    frame = pd.DataFrame(X, columns=list(NAMES))
    return ss.SparseStepCV(20, cv=5, rule="average").fit(frame, Y)


def drawn(display):
    """The display, once its figure has been drawn."""
    display.figure_.canvas.draw()
    return display


def texts(artists):
    return [artist.get_text() for artist in artists]


def extents(artists):
    return [artist.get_window_extent() for artist in artists]


def assert_disjoint(boxes):
    for one, other in combinations(boxes, 2):
        assert not one.overlaps(other)


def assert_inside(boxes, frame, slack=0):
    for box in boxes:
        assert np.all(box.min >= frame.min - slack) and np.all(box.max <= frame.max + slack)


def label_boxes(display):
    """Where the visible labels stand in the drawn figure, in pixels, without their leaders."""
    labels = drawn(display).labels_
    return [Text.get_window_extent(label) for label in labels if label.get_visible()]


def assert_apart(display):
    boxes = label_boxes(display)
    assert_disjoint(boxes)
    for box in boxes:
        assert box.x0 > display.ax_.bbox.x1
    assert_inside(boxes, display.figure_.bbox)
    return boxes


def range_of(band, alphas):
    """The lower and the upper edge of a band at each alpha."""
    corners = band.get_paths()[0].vertices
    heights = [corners[corners[:, 0] == alpha, 1] for alpha in alphas]
    return np.array([(at.min(), at.max()) for at in heights]).T


# --- labels at the edge ---------------------------------------------------------------------------


@given(st.lists(st.tuples(st.floats(0, 100), st.floats(1, 6)), min_size=1, max_size=15))
def test_spread_is_the_nearest_admissible_arrangement(labels):
    wanted, sizes = np.array(labels).T
    order = np.argsort(wanted, kind="stable")
    steps = np.append(0.0, np.cumsum((sizes[order][1:] + sizes[order][:-1]) / 2))
    # Less these least distances, the positions are any numbers that do not decrease.
    room = {"y_min": 0.0, "y_max": 100.0 - steps[-1]}
    nearest = isotonic_regression(wanted[order] - steps, **room) + steps
    assert_allclose(spread(wanted, sizes, low=0.0, high=100.0)[order], nearest, atol=1e-9)


@pytest.mark.parametrize("n_features", [1, 8, 500])
@pytest.mark.parametrize("size", [(6.4, 4.8), (12.0, 3.0)])
def test_labels_do_not_overlap_even_when_all_lines_end_together(n_features, size):
    rng = np.random.default_rng(n_features)
    coefs = np.outer(1 + 1e-3 * rng.normal(size=n_features), [0.0, 1.0, 1.0])
    coefs[0] *= -5
    figure, ax = plt.subplots(figsize=size, layout="constrained")
    display = PathDisplay(alphas=[9.0, 3.0, 1.0], coefs=coefs).plot(ax=ax)
    assert len(assert_apart(display)) == min(n_features, 12)
    # Spread for the size it has when drawn, not the size it had when plotted.
    figure.set_size_inches(5.0, 2.0)
    assert len(assert_apart(display)) < 12
    figure.set_size_inches(5.0, 6.0)
    assert len(assert_apart(display)) == min(n_features, 12)


def test_long_names_are_cut_where_they_are_alike():
    sensors = [f"temperature_sensor_{i:03d}_hourly_mean_celsius" for i in range(12)]
    assert plain(sensors)[3] == "temperature…r_003_hourl…"
    for names in (sensors, [*sensors, *sensors[:2], "short"]):
        assert len(set(plain(names))) == len(set(names))
    alone = f"first_part_{'x' * 50}_last_part"
    assert plain([alone, "short"]) == ["first_part_…x_last_part", "short"]
    assert plain(["a\nb", "a b"]) == ["a b", "a b"]


def test_labels_take_room_outside_a_grid_and_in_subfigures_until_the_layout_is_given_up(fitted):
    figure = plt.figure()
    display = PathDisplay.from_estimator(fitted, ax=figure.add_axes((0.1, 0.1, 0.89, 0.85)))
    assert_inside([drawn(display).ax_.get_tightbbox()], figure.bbox, slack=1)
    assert figure.get_layout_engine() is None
    figure = plt.figure(figsize=(9, 4))
    axes = [subfigure.subplots() for subfigure in figure.subfigures(1, 2)]
    for ax in axes:
        PathDisplay.from_estimator(fitted, ax=ax)
    figure.canvas.draw()
    left, right = (ax.get_tightbbox() for ax in axes)
    assert left.x0 >= 0 and left.x1 <= right.x0 and right.x1 <= 900
    display = PathDisplay.from_estimator(fitted, ax=plt.subplots()[1])
    display.figure_.set_layout_engine("none")
    display.figure_.subplots_adjust(right=0.6)
    assert_allclose(drawn(display).ax_.get_position().x1, 0.6)


@pytest.mark.parametrize("layout", [None, "tight", "constrained", "tight_layout()"])
@pytest.mark.parametrize(("rows", "size"), [(1, (9, 3.5)), (2, (9, 7))])
def test_pictures_beside_each_other_do_not_collide(fitted, layout, rows, size):
    engine = None if layout == "tight_layout()" else layout
    figure, axes = plt.subplots(rows, 2, figsize=size, layout=engine, squeeze=False)
    PathDisplay.from_estimator(fitted, ax=axes[0, 0])
    CVDisplay.from_estimator(fitted, ax=axes[0, 1])
    if rows == 2:
        AnnealingDisplay.from_data(X, Y, alpha=40.0, ax=axes[1, 0])
        PathDisplay.from_path(fitted.path_, ax=axes[1, 1])
    if layout == "tight_layout()":
        figure.tight_layout()
    figure.canvas.draw()
    around = [ax.get_tightbbox() for ax in axes.flat]
    assert_disjoint(around)
    assert_inside(around, figure.bbox)
    for ax in axes.flat:
        assert ax.bbox.width > 0.15 * figure.bbox.width
        assert ax.bbox.height > 0.5 * figure.bbox.height / (1 + rows)


@pytest.mark.parametrize("layout", [None, "constrained"])
def test_a_legend_covers_no_curve_of_narrow_axes(fitted, layout):
    figure, axes = plt.subplots(1, 3, figsize=(9, 3.5), layout=layout)
    for ax in axes:
        CVDisplay.from_estimator(fitted, ax=ax)
    figure.canvas.draw()
    for ax in axes:
        legend = ax.get_legend().get_window_extent()
        assert_disjoint([legend, ax.bbox, ax.xaxis.label.get_window_extent()])
        assert legend.y0 >= 0
    wide = drawn(CVDisplay.from_estimator(fitted)).ax_
    assert wide.get_legend().get_window_extent().overlaps(wide.bbox)


def test_room_is_made_again_for_what_comes_later(fitted):
    figure, axes = plt.subplots(2, 1, figsize=(5, 6))
    for ax in axes:
        CVDisplay.from_estimator(fitted, ax=ax)
    figure.canvas.draw()
    before = axes[1].bbox.height
    axes[1].set_title("one\ntwo\nthree")
    figure.subplots_adjust(hspace=0.3)
    figure.canvas.draw()
    assert axes[1].bbox.height < before
    assert_disjoint(ax.get_tightbbox() for ax in axes)


def test_a_twin_stays_with_its_axes_and_an_inset_where_it_was_placed(fitted):
    figure, (ax, _) = plt.subplots(1, 2, figsize=(9, 3.5))
    PathDisplay.from_estimator(fitted, ax=ax)
    before, twin = ax.bbox.width, ax.twinx()
    for _ in range(2):
        figure.canvas.draw()
        assert_array_equal(twin.bbox.extents, ax.bbox.extents)
        assert ax.bbox.width < before
    inset = ax.inset_axes((0.2, 0.2, 0.6, 0.6))
    locator = inset.get_axes_locator()
    CVDisplay.from_estimator(fitted, ax=inset)
    assert inset.get_axes_locator() is locator


def test_labels_keep_the_order_of_the_lines_follow_a_zoom_and_show_names_as_written(fitted):
    display = PathDisplay.from_path(fitted.path_)
    ends = [label.xy[1] for label in display.labels_]
    # A name read as a formula fails when it is drawn, or warns.
    assert_array_equal(np.argsort(ends), np.argsort([box.y0 for box in label_boxes(display)]))
    assert {"age", "$income", "body_mass", "50% $x_1$", "ldl raw"} <= {*texts(display.labels_)}
    assert not any(label.get_parse_math() or label.get_usetex() for label in display.labels_)
    display.ax_.set_ylim(0.5, 4.0)
    for label in drawn(display).labels_:
        assert label.get_visible() == (0.5 <= label.xy[1] <= 4.0)


# --- ticks ----------------------------------------------------------------------------------------


def shown_ticks(ax):
    """What stands at the ticks of the axis of alpha, from left to right."""
    ax.figure.canvas.draw()
    low, high = sorted(ax.get_xlim())
    said = {
        tick.get_loc(): tick.label1.get_text()
        for tick in [*ax.xaxis.get_major_ticks(), *ax.xaxis.get_minor_ticks()]
        if low * (1 - 1e-9) <= tick.get_loc() <= high * (1 + 1e-9)
    }
    return [said[at] for at in sorted(said, reverse=True) if said[at]]


def number(label):
    """The number that a tick says."""
    text = label.removeprefix("$\\mathdefault{").removesuffix("}$")
    factor, power, exponent = text.rpartition("10^")
    if not power:
        return float(text)
    return float(factor.removesuffix("\\times") or 1.0) * 10.0 ** int(exponent.strip("{}"))


@pytest.mark.parametrize("decades", [0.02, 0.3, 0.8, 1.1, 1.54, 2.0, 3.5, 12.0])
@pytest.mark.parametrize("width", [2.5, 6.4, 14.0])
@pytest.mark.parametrize(("largest", "zero"), [(7.0, False), (3.3e6, True)])
def test_ticks_are_apart_and_say_where_they_are(decades, width, largest, zero):
    alphas = np.append(np.geomspace(largest, largest / 10**decades, 20), [0.0] * zero)
    _, ax = plt.subplots(figsize=(width, 3))
    CVDisplay(alphas=alphas, error=np.arange(len(alphas), dtype=float)).plot(ax=ax)
    assert len(shown_ticks(ax)) >= 2
    labels = [*ax.get_xticklabels(), *ax.get_xticklabels(minor=True)]
    labels = [label for label in labels if label.get_text()]
    for one, other in combinations(extents(labels), 2):
        assert not one.padded(1.0).overlaps(other)
    for label in labels:
        at, value = label.get_position()[0], number(label.get_text())
        assert value == 0.0 if at < 0.999 * min(alphas[:20]) else np.isclose(value, at)


@pytest.mark.parametrize(
    ("alphas", "counts", "shown"),
    [([100.0, 1.01, 1.0], [0, 1999, 2000], ["0", "2000"]), ([2.0], [3], ["3"])],
)
def test_counts_on_top_do_not_overlap(alphas, counts, shown):
    curve = {"error": alphas, "se": alphas, "n_nonzero": counts, "alpha": alphas[0]}
    display = drawn(CVDisplay(alphas=alphas, **curve).plot())
    assert texts(display.top_.get_xticklabels()) == shown


def test_a_power_of_ten_over_the_axis_is_clear_of_the_axis_on_top():
    display = drawn(CVDisplay.from_estimator(ss.SparseStepCV(cv=3).fit(X, 1e5 * Y)))
    offset = display.ax_.yaxis.get_offset_text()
    assert offset.get_text()
    for box in extents(display.top_.xaxis.get_ticklabels()):
        assert not box.overlaps(offset.get_window_extent())


# --- the path -------------------------------------------------------------------------------------


SOME_ALPHAS = st.lists(st.sampled_from([0.0, 0.9, 1.0, 14.0, 200.0, 3e3]), min_size=1, max_size=5)


# Shrinking what fails would draw for minutes.
@settings(max_examples=30, phases=[Phase.generate])
@given(st.data(), SOME_ALPHAS, st.integers(1, 4), st.booleans())
def test_any_path_is_drawn_with_its_choice(data, alphas, m, steps):
    plt.close("all")
    shape = (m, len(alphas))
    coefs = data.draw(hnp.arrays(float, shape, elements=st.sampled_from([0.0, 0.0, 1.0, -2.5])))
    chosen = data.draw(st.sampled_from(alphas))
    display = PathDisplay(alphas=alphas, coefs=coefs, alpha=chosen).plot(steps=steps)
    assert len(assert_apart(display)) == np.count_nonzero(np.any(coefs, axis=1))
    order = np.argsort(np.negative(alphas), kind="stable")
    grid, coefs = np.array(alphas)[order], coefs[:, order]
    counts = np.count_nonzero(coefs, axis=0)
    left, right = display.ax_.get_xlim()
    if len({*alphas} - {0.0}) > 1:
        assert left == grid[0] and (right == grid[-1] or right < grid[-1] == 0)
    else:
        assert left > grid[0] and right < grid[-1] and (left == -right or grid[0] > 0)
    at = list(grid).index(chosen)
    assert set(display.lines_) == set(np.flatnonzero(coefs[:, at]))
    for j, line in display.lines_.items():
        # It jumps halfway between alphas, and ends flat, at zero from half of the least other on.
        between = [a / 2 if b == 0 else np.sqrt(a * b) for a, b in pairwise(grid)]
        x = [grid[0], *np.repeat(between, 2), grid[-1] or right] if steps else grid
        heights = np.repeat(coefs[j], 1 + steps)
        # It rises from zero, and where it stays at zero there is none.
        seen = [np.any(heights[max(i - 1, 0) : i + 2]) for i in range(len(heights))]
        assert_allclose(line.get_xdata(), x, rtol=1e-12)
        assert_array_equal(line.get_ydata(), np.where(seen, heights, np.nan))
        # A single point is seen by its mark alone.
        assert (line.get_marker() == "o") == (np.count_nonzero(grid) <= 1)
    assert set(display.alpha_line_.get_xdata()) == {chosen}
    assert f"chosen alpha, {chosen:.3g}, {counts[at]} of {m} kept" in display.ax_.get_xlabel()
    assert grid[-1] > 0 or shown_ticks(display.ax_)[-1] == "0"
    # The axis on top is the same one.
    assert {display.ax_.get_xlim()} == {display.top_.get_xlim()}
    for value in grid:
        below, above = (ax.transData.transform((value, 0))[0] for ax in (display.ax_, display.top_))
        assert_allclose(above, below)
    for at, text in zip(display.top_.get_xticks(), display.top_.get_xticklabels(), strict=True):
        assert int(text.get_text()) in counts[grid == at]


def test_only_a_path_that_jumps_is_drawn_in_steps():
    for j, line in PathDisplay(**LASSO).plot().lines_.items():
        (x, height), coef = line.get_data(), LASSO["coefs"][j]
        assert_array_equal(x, LASSO["alphas"])
        assert_array_equal(height[coef != 0], coef[coef != 0])
    # A path of ours is steps though its digits are few; the same arrays are not, unless told so.
    path = ss.sparsestep_path(X, Y, alphas=[500.0, 1.0, 0.9])
    noisy = replace(path, coefs=path.coefs * (1 + 1e-4 * np.arange(3)))
    assert len(PathDisplay.from_path(noisy).lines_[0].get_xdata()) == 6
    arrays = PathDisplay(alphas=noisy.alphas, coefs=noisy.coefs)
    for steps, corners in ((None, 3), (True, 6)):
        assert len(arrays.plot(steps=steps).lines_[0].get_xdata()) == corners


def test_truth_is_marked_at_its_height_in_the_colour_of_its_line(fitted):
    display = PathDisplay.from_estimator(fitted, truth=TRUTH)
    marks = {mark.get_color(): mark.get_ydata()[0] for mark in display.truth_}
    # Another method beside it has the same colours.
    for lines in (display.lines_, PathDisplay(**LASSO, truth=TRUTH, alpha=0.05).plot().lines_):
        assert marks == {lines[j].get_color(): TRUTH[j] for j in np.flatnonzero(TRUTH)}
    assert len(marks) == 3
    low, high = display.ax_.get_ylim()
    assert low < -2.0 and high > 3.0


def test_with_many_variables_the_prominent_ones_stand_out():
    rng = np.random.default_rng(1)
    coefs = 0.1 * rng.normal(size=(500, 20)) * (np.arange(20) > 15)
    strong = [7, 100, 499]
    coefs[strong, 3:] = [[3.0], [-2.0], [1.0]]
    alphas = np.geomspace(100, 1, 20)
    display = PathDisplay(alphas=alphas, coefs=coefs, alpha=alphas[10]).plot()
    assert list(display.lines_) == strong
    assert len(display.muted_.get_segments()) == 497
    assert texts(display.labels_) == ["x7", "x100", "x499"]
    assert display.muted_.get_linewidth()[0] < display.lines_[7].get_linewidth()
    without = PathDisplay(alphas=alphas, coefs=coefs).plot(max_labels=5)
    assert list(without.lines_)[:3] == strong and len(without.labels_) == 5


def test_effects_of_standard_deviations_do_not_depend_on_units(fitted):
    other = ss.SparseStepCV(fitted.alphas_, cv=fitted.cv, rule="1se").fit(X / SCALE, Y)
    one = PathDisplay.from_estimator(fitted, standardized=True, truth=TRUTH)
    two = PathDisplay.from_estimator(other, standardized=True, truth=TRUTH * SCALE)
    by_hand = fitted.path_.plot(scale=X.std(axis=0), truth=TRUTH)
    for display in (two, by_hand):
        assert list(one.lines_) == list(display.lines_)
        for line, same in zip(one.lines_.values(), display.lines_.values(), strict=True):
            assert_allclose(line.get_ydata(), same.get_ydata(), rtol=1e-6)
        assert_allclose(*[[m.get_ydata()[0] for m in d.truth_] for d in (one, display)])
    for j, line in one.lines_.items():
        assert_allclose(line.get_ydata()[-1], fitted.path_.coefs[j, -1] * X[:, j].std())
    heights = np.sort([mark.get_ydata()[0] for mark in one.truth_])
    assert_allclose(heights, np.sort((TRUTH * X.std(axis=0))[TRUTH != 0]))
    assert one.ax_.get_ylabel() == "effect of one standard deviation"
    assert PathDisplay.from_estimator(fitted).ax_.get_ylabel() == "coefficient"
    assert_array_equal(one.coefs, fitted.path_.coefs)


def test_the_line_of_the_chosen_alpha_is_like_no_variable():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 9))
    model = ss.SparseStepIC(alphas=10).fit(X, X.sum(axis=1) + 0.1 * rng.normal(size=60))
    display = PathDisplay.from_estimator(model)
    lines = display.lines_.values()
    assert len({line.get_linestyle() for line in lines}) == 2
    assert set(display.alpha_line_.get_xdata()) == {model.alpha_}
    assert display.alpha_line_.get_linestyle() == "-"
    assert display.alpha_line_.get_color() not in {line.get_color() for line in lines}
    assert "\ngrey line: chosen alpha, " in display.ax_.get_xlabel()


def test_a_path_of_sizes_is_drawn_over_size():
    path = ss.sparsestep_path(X, Y, alphas="sizes")
    display = drawn(path.plot(alpha=path.select(2).alpha))
    assert display.ax_.get_xlabel().startswith("variables kept")
    assert display.top_.xaxis.get_label_text() == "alpha"
    assert display.ax_.get_xscale() == "linear" and display.ax_.get_xlim() == (-0.5, 6.5)
    for (j, line), size in product(display.lines_.items(), range(7)):
        x, height = line.get_data()
        coef = path.select(size).coef[j]
        # Flat from half a variable before to half a variable after each size.
        at_ends = height[np.isclose(x, size - 0.5) | np.isclose(x, size + 0.5)]
        assert coef == 0 or np.count_nonzero(at_ends == coef) >= 2
    assert display.alpha_line_.get_xdata()[0] == 2


@pytest.mark.parametrize(
    ("coefs", "x", "height"),
    [
        # No model has two variables: a gap.
        (
            [[0.0, 1.0, 2.0], [0.0, 0.0, 3.0], [0.0, 0.0, 4.0]],
            [-0.5, 0.5, 0.5, 1.5, np.nan, 2.5, 3.5],
            [np.nan, 0.0, 1.0, 1.0, np.nan, 2.0, 2.0],
        ),
        # Two models have one variable: the first is drawn.
        ([[0.0, 1.0, 1.5], [0.0, 0.0, 0.0]], [-0.5, 0.5, 0.5, 1.5], [np.nan, 0.0, 1.0, 1.0]),
    ],
)
def test_sizes_of_no_model_and_of_several(coefs, x, height):
    display = PathDisplay(alphas=[100.0, 10.0, 1.0], coefs=coefs, by_size=True).plot()
    assert_array_equal(display.lines_[0].get_data(), [x, height])


# --- the choice of alpha --------------------------------------------------------------------------


def test_cv_shows_the_error_with_its_standard_error(fitted):
    display = drawn(CVDisplay.from_estimator(fitted))
    x, mean = display.line_.get_data()
    errors = fitted.mse_path_
    assert_array_equal(x, fitted.alphas_)
    # A fold counts as much as it has rows, in the mean and in the spread.
    rows = np.array([30, 20, 10])
    assert_allclose(mean, errors @ rows / 60)
    se = np.sqrt((errors - mean[:, None]) ** 2 @ rows / 60 / 2)
    assert_allclose(range_of(display.band_, x), [mean - se, mean + se])
    best = mean.argmin()
    assert_allclose(display.bound_.get_ydata(), mean[best] + se[best])
    minimum, paired = display.marks_["min"], display.marks_["paired"]
    assert_allclose(minimum.get_xydata(), [[fitted.alpha_min_, mean[best]]])
    # On these folds both rules take the same model.
    assert fitted.alpha_paired_ == fitted.alpha_1se_
    assert list(display.marks_) == ["min", "paired"]
    assert paired.get_xdata()[0] == fitted.alpha_1se_
    assert "paired and one SE (chosen)" in paired.get_label()
    assert "(chosen)" not in minimum.get_label()
    assert f"{fitted.path_.n_nonzero[best]} kept" in minimum.get_label()
    assert display.top_.get_xlabel() == "variables kept" and len(display.top_.get_xticks()) > 3
    # Ticks follow a zoom.
    display.ax_.set_xlim(2.0, 1.0)
    assert shown_ticks(display.ax_)[0] == "2" and len(shown_ticks(display.ax_)) > 4


def test_cv_shows_why_the_paired_rule_takes_its_model():
    """It is the sparsest whose dark band reaches down to the smallest error; of equals the best."""
    rng = np.random.default_rng(27)
    X = rng.normal(size=(60, 6))
    y = X @ [3.0, 0.0, -2.0, 0.4, 1.0, 0.5] + 2.0 * rng.normal(size=60)
    model = ss.SparseStepCV(np.geomspace(3000.0, 1e-3, 25), cv=5, rule="paired").fit(X, y)
    assert model.alpha_1se_ > model.alpha_paired_ > model.alpha_min_
    display, mean = CVDisplay.from_estimator(model), model.cv_mean_
    # Folds of the same size: the standard error of a mean of differences.
    best = mean.argmin()
    differences = model.mse_path_ - model.mse_path_[best]
    half = 0.5 * differences.std(axis=1, ddof=1) / np.sqrt(5)
    low, high = range_of(display.paired_band_, model.alphas_)
    assert_allclose([low, high], [mean - half, mean + half])
    assert low[best] == high[best] == mean[best]
    assert_array_equal(display.least_.get_ydata(), mean[best])
    assert_array_equal(display.least_.get_xdata(), [model.alpha_paired_, model.alpha_min_])
    touching = np.flatnonzero(low <= mean[best])
    sizes = model.path_.n_nonzero
    sparsest = touching[sizes[touching] == sizes[touching].min()]
    chosen = sparsest[mean[sparsest].argmin()]
    mark = display.marks_["paired"]
    assert_array_equal(mark.get_xydata(), [[model.alphas_[chosen], mean[chosen]]])
    assert mark.get_label().startswith("paired (chosen): alpha = ")
    assert list(display.marks_) == ["min", "paired", "1se"]
    assert len({mark.get_marker() for mark in display.marks_.values()}) == 3


def test_cv_draws_alpha_zero_at_the_end():
    model = ss.SparseStepCV(alphas=[0.0, 1e6, 2e6], cv=3).fit(X, Y)
    assert model.alpha_ == 0.0
    display = drawn(CVDisplay.from_estimator(model))
    x, mean = display.line_.get_data()
    assert_array_equal(x, [2e6, 1e6, 0.0])
    assert_array_equal(mean, model.cv_mean_)
    assert shown_ticks(display.ax_)[-1] == "0" and display.ax_.get_xticks()[-1] == 0.0
    mark = display.marks_["min"]
    assert_array_equal(mark.get_xydata(), [[0.0, mean[2]]])
    assert "(chosen): alpha = 0, 6 kept" in mark.get_label()
    assert display.band_.get_paths()[0].contains_point([0.5, mean[2]])
    assert_array_equal(range_of(display.paired_band_, [0.0]), mean[2])
    left, right = display.ax_.get_xlim()
    assert left > 0.0 > right


def test_an_average_marks_where_most_of_the_weight_is(average):
    labels = [mark.get_label() for mark in CVDisplay.from_estimator(average).marks_.values()]
    assert any(label.startswith("minimum") and "(most weight)" in label for label in labels)
    assert not any("chosen" in label for label in labels)
    path = PathDisplay.from_estimator(average)
    assert path.alpha_line_.get_xdata()[0] == average.alpha_min_
    assert "\ngrey line: alpha of most weight, " in path.ax_.get_xlabel()


def test_cv_without_standard_errors_has_no_band():
    old = CVDisplay.from_estimator(
        ss.load_model(Path(__file__).with_name("model_of_schema_1.json"))
    )
    assert old.band_ is not None and old.paired_band_ is None
    assert "paired" not in "".join(mark.get_label() for mark in old.marks_.values())
    split = ss.SparseStepCV(20, cv=[(np.arange(40), np.arange(40, 60))]).fit(X, Y)
    criterion = ss.SparseStepIC("ebic", alphas=20).fit(X, Y)
    for model, error, what, mark, label in (
        (split, split.mse_path_[:, 0], "error on the hold-out split (MSE)", "min", "minimum (ch"),
        (criterion, criterion.criterion_path_, "EBIC", "chosen", "chosen"),
    ):
        display = CVDisplay.from_estimator(model)
        assert display.band_ is None and display.paired_band_ is None and display.least_ is None
        assert list(display.marks_) == [mark]
        assert display.marks_[mark].get_label().startswith(label)
        assert_array_equal(display.line_.get_ydata(), error)
        assert display.ax_.get_ylabel() == what


@pytest.mark.parametrize(
    ("alphas", "labels"),
    [
        ((1.0, None, 1.0, 1.0), ["minimum and one SE (chosen)"]),
        ((1.0, 1.0, 1.0, 1.0), ["minimum and paired and one SE (chosen)"]),
        ((1.0, 4.0, 4.0, 4.0), ["minimum", "paired and one SE (chosen)"]),
        ((1.0, 1.0, 4.0, 2.0), ["minimum and paired", "one SE", "chosen"]),
        ((None, None, None, 2.0), ["chosen"]),
    ],
)
def test_cv_marks_one_point_once(alphas, labels):
    names = ("alpha_min", "alpha_paired", "alpha_1se", "alpha")
    marked = dict(zip(names, alphas, strict=True))
    display = CVDisplay(alphas=[4.0, 2.0, 1.0], error=[2.0, 1.5, 1.0], **marked).plot()
    assert [mark.get_label().split(":")[0] for mark in display.marks_.values()] == labels
    assert display.band_ is None and display.bound_ is None and display.top_ is None
    assert display.paired_band_ is None and display.least_ is None


@pytest.mark.parametrize("kind", [PathDisplay, CVDisplay, InclusionDisplay])
def test_several_targets_are_drawn_one_at_a_time(kind):
    both = pd.DataFrame({"wage": Y, "$age": X[:, 0]})
    draw = kind.from_estimator
    model = ss.SparseStepCV(10, cv=3, rule="average").fit(X, both)

    def is_of(display, model, target):
        if kind is InclusionDisplay:
            return np.array_equal(display.inclusion, model.inclusion_[target])
        return display.alpha == model.alpha_[target]

    for target in (1, "$age"):
        display = draw(model, target=target)
        assert is_of(display, model, 1)
        assert display.ax_.get_title() == "$age" and not display.ax_.title.get_parse_math()
    for target, message in [
        (None, r"2 targets: say which by target=0, or target='wage'"),
        ("age", "target 'age' is not the name of one of 'wage'"),
        (2, "target must lie between 0 and 1; got 2"),
    ]:
        with pytest.raises(ValueError, match=message):
            draw(model, target=target)
    one = ss.SparseStepCV(10, cv=3, rule="average")
    assert draw(one.fit(X, both["wage"])).ax_.get_title() == ""
    assert is_of(draw(one.fit(X, Y[:, None])), one, 0)
    if kind is CVDisplay:
        curves = [model.cv_mean_[1], model.cv_se_[1], model.cv_paired_se_[1]]
        assert_array_equal([display.error, display.se, display.paired_se], curves)
        assert display.alpha_paired == model.alpha_paired_[1]
        criterion = ss.SparseStepIC(alphas=10).fit(X, both)
        assert_array_equal(draw(criterion, target=1).error, criterion.criterion_path_[1])


# --- the weights of an average --------------------------------------------------------------------


def test_the_weights_of_an_average_are_bars_the_largest_first(average):
    display = drawn(InclusionDisplay.from_estimator(average))
    order = np.argsort(-average.inclusion_, kind="stable")
    assert_array_equal([bar.get_width() for bar in display.bars_], average.inclusion_[order])
    labels = display.ax_.get_yticklabels()
    assert texts(labels) == plain(NAMES[j] for j in order)
    assert not any(label.get_parse_math() or label.get_usetex() for label in labels)
    colours = [bar.get_facecolor() for bar in display.bars_]
    kept = average.coef_[order] != 0
    assert 0 < kept.sum() < 6 and len(set(colours)) == 2
    assert [colour == colours[0] for colour in colours] == kept.tolist()
    assert set(display.half_.get_xdata()) == {0.5}
    # The largest stands at the top.
    first, second, *_ = extents(display.bars_)
    assert first.y0 > second.y1


@pytest.mark.parametrize("size", [None, (4.0, 2.5)])
@pytest.mark.parametrize("layout", [None, "constrained"])
def test_names_beside_bars_do_not_overlap(size, layout):
    ax = None if size is None else plt.subplots(figsize=size, layout=layout)[1]
    display = drawn(InclusionDisplay(np.linspace(0.0, 1.0, 200)).plot(ax=ax))
    labels = display.ax_.get_yticklabels()
    assert len(labels) == 30 if size is None else 3 < len(labels) < 30
    assert labels[0].get_text() == "x199"
    assert_disjoint(extents(labels))
    assert f"not shown: {200 - len(labels)} more" in display.ax_.get_xlabel()
    few = InclusionDisplay([0.5, 0.51]).plot(most=2)
    assert "not shown" not in few.ax_.get_xlabel()
    # Half of the weight is not more than half.
    assert few.bars_[0].get_facecolor() != few.bars_[1].get_facecolor()
    assert "not shown: 1 more" in few.plot(most=1).ax_.get_xlabel()


# --- the method at work ---------------------------------------------------------------------------


def test_annealing_ends_at_the_fit_of_the_standardized_data():
    display = AnnealingDisplay.from_data(X, Y, alpha=40.0)
    # Scaling columns and y to unit variance: the l0 price of a variable is alpha in the units of y.
    Z, z = (X - X.mean(axis=0)) / X.std(axis=0), (Y - Y.mean()) / Y.std()
    expected = sparsestep_reference(Z.T @ Z, Z.T @ z, 40.0 / Y.var())
    assert_allclose(display.coefs[:, -1], expected, rtol=1e-9)
    # It starts at least squares: at gamma = 1e6 the penalty is nothing.
    assert_allclose(display.coefs[:, 0], np.linalg.lstsq(Z, z)[0], rtol=1e-6)
    assert_allclose(display.gammas, 1e6 / 2.0 ** np.arange(47))
    kept = np.flatnonzero(expected)
    assert 0 < len(kept) < 6
    assert set(display.lines_) == set(kept)
    assert len(display.dropped_.get_segments()) == 6 - len(kept)
    *names, last = texts(display.labels_)
    assert last == f"{6 - len(kept)} dropped" and set(names) == {f"x{j}" for j in kept}
    left, right = display.ax_.get_xlim()
    assert 1e6 > left > right > 1e-8
    assert_apart(display)
    assert display.ax_.get_ylabel() == "coefficient (standardized)"
    assert display.ax_.get_xlabel().startswith("gamma (standardized)\n")
    # Whatever the units.
    other = AnnealingDisplay.from_data(X * SCALE + 5.0, 1e3 * Y - 1.0, alpha=40.0 * 1e6)
    assert_allclose(other.coefs, display.coefs, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("shape", [(60, 6), (20, 300)])
@pytest.mark.parametrize("last", [1.0, 0.5])
def test_annealing_of_few_or_many_columns_and_their_copies_ends_at_the_model(shape, last):
    rng = np.random.default_rng(3)
    X = rng.normal(size=shape)
    y = X[:, 0] - X[:, 1] + 0.1 * rng.normal(size=len(X))
    X = np.column_stack([X, X[:, 0], -3.0 * X[:, 1], X[:, 0]])
    factor = np.append(np.ones(shape[1] + 2), last)
    model = ss.SparseStep(alpha=5.0, penalty_factor=factor).fit(X, y)
    display = AnnealingDisplay.from_estimator(model, X, y)
    kept = np.flatnonzero(model.coef_)
    assert sorted(display.lines_) == kept.tolist()
    assert (0 if last == 1.0 else shape[1] + 2) in kept
    standardized = model.coef_[kept] * X[:, kept].std(axis=0) / y.std()
    assert_allclose(display.coefs[kept, -1], standardized, rtol=1e-6)
    dropped = X.shape[1] - len(kept)
    assert len(display.dropped_.get_segments()) == min(dropped, 200)
    assert display.labels_[-1].get_text() == f"{dropped} dropped"


def test_annealing_by_an_estimator_uses_its_settings():
    gammas = {"gamma_0": 1e3, "gamma_stop": 1e-6, "gamma_step": 4.0, "t_max": 3, "epsilon": 1e-5}
    estimator = ss.SparseStep(40.0, fit_intercept=False, standardize=False, **gammas)
    estimator.set_params(penalty_factor={"b": np.inf, "f": 0.0})
    estimator.fit(pd.DataFrame(X, columns=list("abcdef")), Y)
    display = AnnealingDisplay.from_estimator(estimator, X, Y)
    assert display.feature_names == list("abcdef")
    assert_allclose(display.gammas[:3], [1e3, 250.0, 62.5])
    assert display.coefs[1, -1] == 0.0 and display.coefs[5, -1] != 0.0
    kept = np.flatnonzero(display.coefs[:, -1])
    assert_allclose(display.coefs[kept, -1], np.linalg.lstsq(X[:, kept], Y)[0], rtol=1e-6)
    assert_allclose(display.coefs[:, -1], estimator.coef_, rtol=1e-8)
    assert display.ax_.get_ylabel() == "coefficient"
    assert display.ax_.get_xlabel().startswith("gamma\n")
    polars = pl.DataFrame(X, schema=list("abcdef"))
    for frame in (polars, polars.to_arrow(), polars.to_pandas()):
        assert AnnealingDisplay.from_data(frame, Y, alpha=1.0).feature_names == list("abcdef")
    estimator.set_params(penalty_factor=[1.0, np.inf, 1.0, 1.0, 1.0, 0.0]).fit(X, Y)
    assert_array_equal(AnnealingDisplay.from_estimator(estimator, X, Y).coefs, display.coefs)


def test_annealing_of_nothing_kept_and_nothing_dropped():
    nothing = AnnealingDisplay.from_data(X, Y, alpha=1e6)
    assert nothing.lines_ == {} and texts(nothing.labels_) == ["6 dropped"]
    everything = AnnealingDisplay.from_data(X, Y, alpha=1e-9)
    assert everything.dropped_ is None and len(everything.labels_) == 6
    assert "more kept" not in everything.ax_.get_xlabel()
    assert "thin: 4 more kept" in everything.plot(max_labels=2).ax_.get_xlabel()
    constant = drawn(AnnealingDisplay.from_data(np.ones((5, 1)), np.ones(5), alpha=1.0))
    assert constant.lines_ == {}
    column = ss.SparseStep(1e6).fit(X, Y[:, None])
    assert_array_equal(AnnealingDisplay.from_estimator(column, X, Y).coefs, nothing.coefs)


# --- the penalty ----------------------------------------------------------------------------------


def test_penalties_have_the_values_of_their_definitions():
    at = {}
    for panel in PenaltyDisplay().plot().axes_:
        lines = [line for line in panel.get_lines() if len(line.get_xdata()) > 2]
        at[panel.get_title()] = [
            lambda b, line=line: np.interp(b, *line.get_data()) for line in lines
        ]
    ridge, lasso = at["Ridge and lasso"]
    assert_allclose([ridge(1.0), ridge(-2.0), lasso(-1.5)], [1.0, 4.0, 1.5])
    # SCAD and MC+ by their derivatives, integrated (Fan and Li's (2.3), Zhang's (2.1)): lambda = 1.
    b = np.linspace(0.0, 6.0, 600001)
    points = np.array([0.6, 1.8, 3.0, 6.0])
    for curves, shapes, slope in [
        (at["SCAD"], (2.1, 3.7, 5.0), lambda a: np.clip((a - b) / (a - 1), 0, 1)),
        (at["MC+"], (1.1, 2.0, 5.0), lambda a: np.clip(1 - b / a, 0, 1)),
    ]:
        for curve, a in zip(curves, shapes, strict=True):
            area = cumulative_trapezoid(slope(a), b, initial=0.0)
            assert_allclose(curve(points), np.interp(points, b, area), atol=1e-3)
            assert_allclose(curve(-points), curve(points), atol=1e-12)
    sparse = at["SparseStep"]
    assert_allclose([f(2.0) for f in sparse], [4 / (4 + g2) for g2 in (1.0, 0.3, 0.05, 0.005)])


def test_majorizers_lie_above_the_penalty_and_touch_it():
    below, *above = drawn(PenaltyDisplay("majorizer").plot()).lines_
    x, height = below.get_data()
    assert_allclose(height, x**2 / (x**2 + 0.1))
    for line, point in zip(above, (0.0, 0.25, 0.5), strict=True):
        gap = line.get_ydata() - height
        assert gap.min() > -1e-12
        assert_allclose(np.abs(x[gap.argmin()]), point, atol=2 * (x[1] - x[0]))


def test_norm_counts_and_approaches_the_count():
    display = drawn(PenaltyDisplay("norm").plot())
    exact, wide, narrow = (np.asarray(image.get_array()) for image in display.images_)
    assert np.all(exact == 2.0)  # its two lines and its point are drawn on top
    assert len(display.lines_) == 2
    assert_allclose([wide[200, 200], wide[-1, 200], wide[-1, -1]], [0.0, 1 / 1.3, 2 / 1.3])
    assert np.all(narrow >= wide) and narrow.max() <= 2.0


@pytest.mark.parametrize(("kind", "count"), [("penalties", 4), ("majorizer", 1), ("norm", 3)])
def test_penalties_on_given_axes(kind, count):
    figure, grid = plt.subplots(1, count, squeeze=False)
    display = PenaltyDisplay(kind).plot(ax=grid)
    assert display.axes_ == list(grid.flat) and display.figure_ is figure
    one = plt.subplots()[1]
    display = drawn(PenaltyDisplay(kind).plot(ax=one))
    assert display.ax_ is one and len(display.axes_) == count
    panels = [panel.bbox for panel in display.axes_]
    assert_inside(panels, one.bbox, slack=1)
    assert_disjoint(panels)


# --- all of them ----------------------------------------------------------------------------------


PATH = {"alphas": [2.0, 1.0], "coefs": [[0.0, 1.0]]}
CURVE = {"alphas": [2.0, 1.0], "error": [1.0, 1.0]}
STEPS = {"gammas": [2.0, 1.0], "coefs": [[1.0, 1.0]]}
ROWS = {"X": np.ones((3, 1)), "y": np.ones(3)}
UNFITTED, PIPE = {"estimator": ss.SparseStepCV()}, {"estimator": make_pipeline(StandardScaler())}
ALONE = {"estimator": ss.SparseStep().fit(**ROWS)}


@pytest.mark.parametrize(
    ("draw", "arguments", "words"),
    [
        (PathDisplay, PATH | {"coefs": [[1.0, np.nan]]}, r"finite; coefs\[0, 1\] is nan"),
        (PathDisplay, PATH | {"alphas": [np.inf, 1.0]}, r"finite; alphas\[0\] is inf"),
        (PathDisplay, PATH | {"alphas": [1.0, -1.0]}, "alphas must be numbers from 0 on"),
        (PathDisplay, {"alphas": [], "coefs": np.ones((1, 0))}, "from 0 on, at least one"),
        (PathDisplay, PATH | {"coefs": [[1.0]]}, r"coefs must have shape \(n_features, 2\)"),
        (PathDisplay, PATH | {"coefs": np.ones((2, 1, 2))}, "one at a time"),
        (PathDisplay, PATH | {"feature_names": ["a", "b"]}, "feature_names must be 1 names"),
        (PathDisplay, PATH | {"alpha": -1.0}, "alpha must be numbers from 0 on"),
        (PathDisplay, PATH | {"scale": [1.0, 2.0]}, r"scale must have shape \(1,\)"),
        (PathDisplay, PATH | {"scale": [-1.0]}, "scale must be numbers from 0 on"),
        (PathDisplay, PATH | {"truth": [1.0, 2.0]}, r"truth must have shape \(1,\)"),
        (PathDisplay, PATH | {"truth": [np.nan]}, "truth must be finite"),
        (CVDisplay, CURVE | {"error": [1.0, np.nan]}, r"finite; error\[1\] is nan"),
        (CVDisplay, CURVE | {"se": [1.0]}, r"se must have shape \(2,\)"),
        (CVDisplay, CURVE | {"paired_se": [1.0]}, r"paired_se must have shape \(2,\)"),
        (InclusionDisplay, {"inclusion": [0.5, 1.5]}, "weights up to 1; got 1.5"),
        (InclusionDisplay, {"inclusion": [-0.5]}, "inclusion must be numbers from 0 on"),
        (AnnealingDisplay, STEPS | {"gammas": [1.0, 2.0]}, "gammas must descend"),
        (AnnealingDisplay, STEPS | {"gammas": [1.0, 0.0]}, "gammas must be positive"),
        (PenaltyDisplay, {"kind": "ridge"}, "kind must be one of penalties, majorizer, norm"),
        (PenaltyDisplay, {"kind": "majorizer", "gammas": [1.0, 2.0]}, "gammas must be one number"),
        (PenaltyDisplay, {"gammas": [0.0]}, "gammas must be positive"),
        (PenaltyDisplay, {"supporting_points": [np.nan]}, "supporting_points must be finite"),
        (PenaltyDisplay().plot, {"ax": np.empty(2)}, "4 for kind='penalties'; got 2"),
        (InclusionDisplay([1.0]).plot, {"most": 0}, "most must be at least 1; got 0"),
        (InclusionDisplay.from_estimator, ALONE, r"no inclusion_: .*\(rule=\"average\"\)"),
        (PathDisplay.from_estimator, UNFITTED, "SparseStepCV has no path_: fit"),
        (PathDisplay.from_estimator, PIPE, r"Pipeline has no path_; give pipe\[-1\], the model"),
        (CVDisplay.from_estimator, UNFITTED, "SparseStepCV has no path_: fit"),
        (AnnealingDisplay.from_estimator, UNFITTED | ROWS, "has no alpha_: fit"),
        (AnnealingDisplay.from_data, ROWS | {"X": [[np.nan]] * 3, "alpha": 1.0}, "Column 0 .* nan"),
        (AnnealingDisplay.from_data, ROWS | {"alpha": -1.0}, "alpha must be .* not negative"),
        (
            AnnealingDisplay.from_data,
            ROWS | {"alpha": 1.0, "penalty_factor": [1.0, 2.0]},
            "penalty_factor must have one number for each of the 1 columns",
        ),
    ],
)
def test_what_cannot_be_drawn_is_refused(draw, arguments, words):
    with pytest.raises(ValueError, match=words):
        draw(**arguments)


@pytest.mark.parametrize(
    ("draw", "arguments"),
    [
        (PathDisplay(**PATH).plot, []),
        (PathDisplay.from_estimator, [None]),
        (CVDisplay(**CURVE).plot, []),
        (CVDisplay.from_estimator, [None]),
        (InclusionDisplay([1.0]).plot, []),
        (InclusionDisplay.from_estimator, [None]),
        (AnnealingDisplay.from_data, [None, None, 1.0]),
        (PenaltyDisplay().plot, []),
    ],
)
def test_without_matplotlib_a_sentence_says_what_to_install(monkeypatch, draw, arguments):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ImportError, match=f"^{draw.__qualname__} .*pip install matplotlib"):
        draw(*arguments)


def test_given_axes_are_used_and_nothing_else_is_touched(fitted, tmp_path):
    figure, axes = plt.subplots(2, 2, layout="constrained")
    current, numbers = plt.gca(), plt.get_fignums()
    settings = dict(matplotlib.rcParams)
    displays = [
        PathDisplay.from_estimator(fitted, ax=axes[0, 0], truth=TRUTH),
        CVDisplay.from_estimator(fitted, ax=axes[0, 1]),
        AnnealingDisplay.from_data(X, Y, alpha=40.0, ax=axes[1, 0]),
        PenaltyDisplay("majorizer").plot(ax=axes[1, 1]),
    ]
    assert [display.ax_ for display in displays] == list(axes.flat)
    assert all(display.figure_ is figure for display in displays)
    assert plt.get_fignums() == numbers and plt.gca() is current
    assert dict(matplotlib.rcParams) == settings
    for name in ("path.svg", "path.pdf"):
        figure.savefig(tmp_path / name, bbox_inches="tight")
    assert "<svg" in (tmp_path / "path.svg").read_text(encoding="utf-8")
