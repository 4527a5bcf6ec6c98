"""The summary: its numbers against the formulas of least squares on the rows, and its looks."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from scipy import stats

from rows import table
from sparsestep import Moments, SparseStep, SparseStepCV, SparseStepIC
from sparsestep.model.file import document_of


def least_squares(X, y, weight, fit_intercept, level):
    """Coefficients, standard errors and interval ends by the textbook, a weight being copies."""
    design = np.column_stack([np.ones(len(y)), X]) if fit_intercept else X
    A, r = np.repeat(design, weight, axis=0), np.repeat(y, weight)
    inverse = np.linalg.inv(A.T @ A)
    b = inverse @ A.T @ r
    free = len(r) - A.shape[1]
    error = np.sqrt(np.sum((r - A @ b) ** 2) / free * np.diag(inverse))
    reach = stats.t.ppf((1 + level) / 2, free) * error
    out = np.column_stack([b, error, b - reach, b + reach])
    return out[1:] if fit_intercept else out


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("level", [0.95, 0.8])
@pytest.mark.parametrize(("n", "m"), [(40, 6), (20, 30)])
def test_numbers_are_those_of_least_squares_on_the_rows(weighted, fit_intercept, level, n, m):
    X, y = table(n, m)
    weight = np.resize([1, 2, 3, 1], n) if weighted else np.ones(n, dtype=int)
    assert Moments.from_data(X, y).is_thin == (n < m)
    how = {"alpha": 20.0} if m == 6 else {"n_nonzero": 3}
    model = SparseStep(fit_intercept=fit_intercept, **how)
    model.fit(X, y, sample_weight=weight if weighted else None)
    kept = np.flatnonzero(model.coef_)
    assert 0 < len(kept) < 6
    summary = model.summary(level=level)
    # The largest effect in standard deviations comes first.
    spread = np.sqrt(np.average((X - np.average(X, axis=0, weights=weight)) ** 2, 0, weight))
    order = kept[np.argsort(-np.abs(model.coef_ * spread)[kept])]
    assert list(summary.names) == [f"x{j}" for j in order]
    expected = least_squares(X[:, order], y, weight, fit_intercept, level)
    frame = summary.to_frame()
    assert_allclose(frame.to_numpy(), expected, rtol=1e-9)
    assert list(frame.index) == list(summary.names) and frame.index.name == "variable"
    ends = ["2.5 %", "97.5 %"] if level == 0.95 else ["10 %", "90 %"]
    assert list(frame.columns) == ["coefficient", "std. error", *ends]

    residual = y - model.predict(X)
    about = np.average(y, weights=weight) if fit_intercept else 0.0
    r2 = 1 - weight @ residual**2 / (weight @ (y - about) ** 2)
    if fit_intercept:
        assert_allclose(r2, model.score(X, y, sample_weight=weight), rtol=1e-12)
    name = "R2" if fit_intercept else "R2 about zero"
    in_all = f" of weight {weight.sum()} in all" if weighted else ""
    assert summary.facts[name] == f"{r2:.4f} on {n} rows{in_all}"


def test_facts_say_how_alpha_was_chosen():
    X, y = table(60, 5)
    cv = SparseStepCV(20, cv=4, rule="1se").fit(X, y)
    facts = cv.summary().facts
    at = np.flatnonzero(cv.alphas_ == cv.alpha_)[0]
    assert facts["alpha"] == f"{cv.alpha_:.5g} (4-fold cross-validation, 1se)"
    assert facts["CV error"] == f"{cv.cv_mean_[at]:.5g} +- {cv.cv_se_[at]:.4g}"
    assert facts["variables kept"] == f"{np.count_nonzero(cv.coef_)} of 5"
    assert facts["intercept"] == f"{cv.intercept_:.5g}"
    ic = SparseStepIC("gic", alphas=20).fit(X, y)
    assert ic.summary().facts["alpha"].endswith("(GIC)")
    assert ic.summary().facts["GIC"] == f"{ic.criterion_path_.min():.1f}"
    assert SparseStep(2.0).fit(X, y).summary().facts["alpha"] == "2 (given)"
    by_size = SparseStep(n_nonzero=2).fit(X, y)
    assert by_size.summary().facts["alpha"].endswith("(2 variables asked for)")


def test_given_alphas_that_end_too_early_are_pointed_out():
    X, y = table(60, 5)

    def said(alphas):
        return str(SparseStepCV(alphas, cv=3).fit(X, y).summary())

    assert "a larger alpha may be better" in said([1e-3, 1e-4])
    assert "a smaller alpha may be better" in said([1e6, 100.0])
    ic = SparseStepIC("aic", alphas=[1e6, 100.0]).fit(X, y)
    assert "a smaller alpha may be better" in str(ic.summary())
    # Nothing lies beyond the null and the full model, a single alpha has no ends.
    for alphas in ([1e7, 1e6], [5.0], 10):
        assert "at the end" not in said(alphas)
    full = SparseStepIC("aic", alphas=[1e6, 0.0]).fit(X, y)
    assert np.all(full.coef_ != 0) and not full.summary().notes


def test_the_end_of_a_grid_of_more_columns_than_rows_is_pointed_out():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 200))
    y = X[:, :3].sum(axis=1) + rng.standard_normal(60)
    bic = SparseStepIC("bic").fit(X, y)
    assert np.count_nonzero(bic.coef_) == bic.path_.n_nonzero[-1]
    [said] = bic.summary().notes
    assert "BIC chose the model at the end of the alphas tried" in said
    assert "200 columns for 60 rows" in said and "ebic" in said
    ebic = SparseStepIC("ebic").fit(X, y)
    assert np.count_nonzero(ebic.coef_) < 10 and not ebic.summary().notes
    # Where every column explains a little of the target, more of them would predict better.
    rng = np.random.default_rng(1)
    dense = np.repeat(rng.standard_normal((40, 10)), 6, axis=1)
    dense += 0.3 * rng.standard_normal((40, 60))
    cv = SparseStepCV(10, cv=5).fit(dense, dense.sum(axis=1))
    assert cv.alpha_ == cv.alphas_[-1]
    assert "a smaller alpha may be better" in str(cv.summary())
    assert "alpha at the end" in {note["kind"] for note in document_of(cv)["notes"]}
    # With more rows than columns the small end is the full model, whatever stays out of it.
    X = np.column_stack([rng.standard_normal((60, 3)), np.ones(60)])
    full = SparseStepIC("aic").fit(X, X.sum(axis=1) + 0.1 * rng.standard_normal(60))
    assert np.count_nonzero(full.coef_) == 3 and "at the end" not in str(full.summary())


def test_text():
    X, y = table(60, 3)
    model = SparseStep(alpha=5.0).fit(X, y)
    text = str(model.summary())
    assert text == repr(model.summary())
    lines = text.splitlines()
    head = next(k for k, line in enumerate(lines) if line.startswith("variable "))
    rows = lines[head + 1 : head + 1 + np.count_nonzero(model.coef_)]
    assert len({len(line) for line in [lines[head], *rows]}) == 1
    for line in rows:
        name, coef, *_ = line.split()
        assert float(coef) == float(f"{model.coef_[int(name[1:])]:.5g}")
    assert lines[-1].endswith("as if it had been chosen beforehand.")


@pytest.mark.parametrize(
    ("factor", "told"), [(1e6, True), (2.0, True), (1.9, False), (0.6, False), (0.5, True)]
)
def test_weights_that_do_not_add_up_to_the_number_of_rows_are_told(factor, told):
    X, y = table(40, 3)
    summary = SparseStepIC().fit(X, y, sample_weight=np.full(40, factor)).summary()
    said = f"The weights of the 40 rows add up to {40 * factor:.5g}, and a weight of k counts as k"
    for text in (str(summary), summary._repr_html_()):
        assert (said in text) == told and ("w * n / w.sum()" in text) == told
    assert summary.facts["R2"].endswith(f"on 40 rows of weight {40 * factor:.0f} in all")
    assert "no std. errors" not in summary.facts
    unweighted = SparseStepIC().fit(X, y).summary()
    assert "w.sum()" not in str(unweighted) and unweighted.facts["R2"].endswith("on 40 rows")


def test_names_are_text_that_drives_neither_page_nor_terminal():
    X, y = table(60, 5, noise=0.1)
    names = ["<script>alert(1)</script>", "a & b", "a\x1b[31m", "b\u202ec", "d\nf\u200cg"]
    model = SparseStep(alpha=1e-6).fit(pd.DataFrame(X, columns=names), y)
    text, html = str(model.summary()), model.summary()._repr_html_()
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in html and "a &amp; b" in html
    assert "<script" not in html
    assert f"{model.coef_[0]:.5g}" in html
    assert not set(text + html) & {*"\x1b\u202e"} and "f\u200cg" in text + html
    assert "sk-top-container" in model._repr_html_()


def test_a_model_without_variables():
    X, y = table(30, 3)
    summary = SparseStep(alpha=1e9).fit(X, y).summary()
    assert summary.facts["variables kept"] == "0 of 3"
    assert summary.to_frame().shape == (0, 4)
    assert "variable  " not in str(summary) and "chosen beforehand" not in str(summary)
    assert "<thead>" not in summary._repr_html_()


def test_no_degrees_of_freedom_give_no_errors_instead_of_wrong_ones():
    X, y = table(3, 2)
    summary = SparseStep(alpha=0.0).fit(X, y).summary()
    assert np.isnan(summary.standard_error).all() and np.isnan(summary.low).all()
    assert summary.columns == ("variable", "coefficient")
    assert summary.to_frame()["std. error"].isna().all()
    assert "Intervals hold" not in str(summary) + summary._repr_html_()
    one = SparseStep(alpha=0.0).fit(X[:2, :1], y[:2]).summary()
    assert one.facts["no std. errors"].startswith("2 rows are too few for 1 variable;")
    X, y = table(60, 3)
    light = SparseStep(1e-3).fit(X, y, sample_weight=np.full(60, 1 / 60)).summary()
    assert "too few for 3 variables" in light.facts["no std. errors"]
    assert np.isnan(light.standard_error).all()


def test_columns_that_depend_have_no_standard_error():
    X, y = table(120, 6)
    X = np.column_stack([X, X[:, 0] + X[:, 1]])
    summary = SparseStep(0.0).fit(X, y).summary()
    unknown = {n for n, se in zip(summary.names, summary.standard_error, strict=True) if se != se}
    assert unknown == {"x0", "x1", "x6"}


def test_each_target_has_its_summary():
    X, y = table(60, 4)
    both = SparseStep(alpha=5.0).fit(X, np.column_stack([y, X[:, 1] - y]))
    for t in range(2):
        alone = SparseStep(alpha=5.0).fit(X, [y, X[:, 1] - y][t])
        assert both.summary(target=t).facts.pop("target").startswith(f"y{t} ({t + 1} of 2")
        assert str(both.summary(target=t)).partition("\n")[2] == str(alone.summary())
    with pytest.raises(ValueError, match="level must lie between 0 and 1; got 95"):
        both.summary(level=95)
    for level in ("95", None, [0.9], True):
        with pytest.raises(ValueError, match="level must be a number between 0 and 1, such as 0"):
            both.summary(level=level)
