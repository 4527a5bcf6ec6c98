"""What the report says: the numbers and sentences of a model file, ready for the template."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparsestep.inference.notes import NOTES
from sparsestep.model.document import Choice, Document, Target
from sparsestep.report.explorer import Explorer
from sparsestep.report.numbers import count, decimals, number, percent, sized_by
from sparsestep.report.pictures import ForestPicture

__all__ = ["Page", "page_of"]

Array = NDArray[np.float64]

# A table longer than this is cut, with a button for the rest.
MOST_ROWS = 30
LONGEST_IN_A_SENTENCE = 32
MOST_CATEGORIES = 4


@dataclass(frozen=True)
class Figure:
    """One of the numbers at the top."""

    label: str
    value: str
    note: str


@dataclass(frozen=True)
class Row:
    """One variable that is kept."""

    name: str
    note: str
    coef: str
    standard_error: str
    low: str
    high: str
    effect: str
    interval: Any


@dataclass(frozen=True)
class Waiting:
    """One variable that is not kept, and the alpha nearest to the chosen one that keeps it."""

    name: str
    alpha: str


@dataclass(frozen=True)
class Answer:
    """The model of one target."""

    name: str
    called: str
    lead: str
    figures: list[Figure]
    rows: list[Row]
    decimals: dict[str, int]
    intercept: str | None
    forest: ForestPicture
    ends: tuple[str, str]
    waiting: list[Waiting]
    gone: list[Waiting]
    never: list[str]
    explorer: Explorer | None


@dataclass(frozen=True)
class Page:
    """All that the template shows."""

    title: str
    anything: bool
    facts: list[tuple[str, str]]
    groups: list[tuple[str, str]]
    answers: list[Answer]
    notes: list[str]
    pairs: list[tuple[str, str, str]]
    more_pairs: int
    unit: str
    most_rows: int
    version: str
    again: str
    made_by: list[tuple[str, str]]
    fingerprint: list[tuple[str, str]]


def page_of(document: Document) -> Page:
    """The contents of the report on a model."""
    question, data = document["question"], document["data"]
    names = question["features"]
    targets = [_answer(document, t) for t in range(len(document["targets"]))]
    collinear = data["collinear"]
    return Page(
        title=" and ".join(question["target"][:3])
        + (f" and {len(targets) - 3} more" if len(targets) > 3 else ""),
        anything=any(target["kept"] for target in document["targets"]),
        facts=_facts(document),
        groups=[
            (
                group["column"],
                f"{len(group['categories'])} categories as {len(group['features'])} "
                f"indicator{'' if len(group['features']) == 1 else 's'}",
            )
            for group in question["one_hot"]
        ],
        answers=targets,
        notes=[
            NOTES[note["kind"]](**note["facts"]).text(names, question["target"])
            for note in document["notes"]
        ],
        pairs=[
            (names[pair["first"]], names[pair["second"]], number(pair["correlation"], 4))
            for pair in collinear
        ],
        more_pairs=(data["n_collinear"] or 0) - len(collinear),
        unit="one standard deviation"
        if document["settings"]["fit_intercept"]
        else "the root mean square",
        most_rows=MOST_ROWS,
        version=document["version"],
        again=_again(document),
        made_by=[(name, _shown(value)) for name, value in document["settings"].items()],
        fingerprint=_fingerprint(document),
    )


# -- what was asked --------------------------------------------------------------------------


def _facts(document: Document) -> list[tuple[str, str]]:
    """The question, one line for each part of it."""
    question, settings = document["question"], document["settings"]
    rows = f"{question['rows']:,}"
    if question["rows_dropped"]:
        rows += f", after {question['rows_dropped']:,} with a missing value were left out"
    facts = [
        ("Data", question["source"] or "a table in memory"),
        ("Target" if len(question["target"]) == 1 else "Targets", ", ".join(question["target"])),
        ("Rows", rows),
        ("Candidate variables", f"{len(question['features']):,}"),
    ]
    if question["weight"] is not None:
        facts.append(("Weights", question["weight"]))
    what = "Size" if question["choice"]["by"] == "size" else "Penalty alpha"
    facts.append((what, _choice_in_words(question["choice"], document)))
    with_or_without = "with" if settings["fit_intercept"] else "without"
    facts.append(("Model", f"linear, {with_or_without} an intercept"))
    return facts


def _choice_in_words(choice: Choice, document: Document) -> str:
    """How alpha, or else the model, was chosen."""
    if choice["by"] == "alpha":
        return "given beforehand"
    if choice["by"] == "size":
        return f"{_variables(choice['size'] or 0)}, the best-fitting set that swaps found"
    path = document["targets"][0]["path"]
    tried = "" if path is None else f" of {len(path['alphas'])} values"
    if choice["by"] == "criterion":
        return f"the one{tried} with the smallest {str(choice['criterion']).upper()}"
    seed = document["question"]["seed"]
    folds = str(choice["scheme"])
    folds += "" if seed is None else f" (random folds, seed {seed})"
    if choice["rule"] == "1se":
        return (
            f"the one{tried} that gives the sparsest model within one standard error of the "
            f"smallest error in {folds}"
        )
    return f"the one{tried} with the smallest error in {folds}"


def _choice_in_short(document: Document) -> str:
    """How alpha was chosen, in a few words."""
    choice = document["question"]["choice"]
    if choice["by"] == "cv":
        return "smallest error" if choice["rule"] == "min" else "one-standard-error rule"
    if choice["by"] == "criterion":
        return f"smallest {str(choice['criterion']).upper()}"
    return "given" if choice["by"] == "alpha" else "where the swaps began"


def _variables(k: int) -> str:
    """A number of variables."""
    return "no variable" if k == 0 else f"{k:,} variable{'' if k == 1 else 's'}"


# -- what was kept ---------------------------------------------------------------------------


def _answer(document: Document, t: int) -> Answer:
    """The model of one target."""
    question, target = document["question"], document["targets"][t]
    names = question["features"]
    scale, total = _scale(document), _total(document, t)
    kept = np.array(target["kept"], dtype=np.intp)
    coef, error, low, high = (
        np.array(values, dtype=np.float64)
        for values in (target["coef"], target["standard_error"], target["low"], target["high"])
    )
    first = np.argsort(-np.abs(coef) * scale[kept], kind="stable")
    kept = kept[first]
    coef, error, low, high = (part[first] for part in (coef, error, low, high))
    per = scale[kept]
    forest = ForestPicture.of(coef * per, low * per, high * per)
    compared, few = _compared_with(document, target), _on_few_rows(document, t)
    rows = []
    for i, j in enumerate(kept):
        own = float(error[i]) if np.isfinite(error[i]) else None
        texts = sized_by(own, coef[i], *([low[i], high[i], error[i]] if own is not None else []))
        texts += [number(None)] * (4 - len(texts))
        name = names[j]
        rows.append(
            Row(
                name,
                "; ".join(filter(None, [compared.get(name), few.get(int(j))])),
                texts[0],
                texts[3],
                texts[1],
                texts[2],
                number(coef[i] * per[i], 3),
                forest.rows[i],
            )
        )
    explorer = Explorer.of(target, names, scale, total) if target["path"] is not None else None
    waiting, gone, never = _not_kept(target, names)
    tail = (1 - target["level"]) / 2
    return Answer(
        name=target["name"],
        called=_called(target),
        lead=_lead(document, target, total),
        figures=_figures(document, target, total),
        rows=rows,
        decimals={
            part: max((decimals(getattr(row, part)) for row in rows), default=0)
            for part in ("coef", "standard_error", "low", "high", "effect")
        },
        intercept=number(target["intercept"]) if document["settings"]["fit_intercept"] else None,
        forest=forest,
        ends=(f"{100 * tail:g}\N{NO-BREAK SPACE}%", f"{100 * (1 - tail):g}\N{NO-BREAK SPACE}%"),
        waiting=waiting,
        gone=gone,
        never=never,
        explorer=explorer,
    )


def _scale(document: Document) -> Array:
    """What a coefficient is multiplied by to compare it with others.

    The standard deviation of its column or, without an intercept, the root mean square.
    """
    deviation = np.array(document["data"]["deviation"], dtype=np.float64)
    if document["settings"]["fit_intercept"]:
        return deviation
    return np.hypot(deviation, np.array(document["data"]["mean"], dtype=np.float64))


def _total(document: Document, t: int) -> float:
    """Sum of squares of a target about its mean or, without an intercept, about zero."""
    data = document["data"]
    square = data["target_deviation"][t] ** 2
    if not document["settings"]["fit_intercept"]:
        square += data["target_mean"][t] ** 2
    return float(data["weight_sum"] * square)


def _compared_with(document: Document, target: Target) -> dict[str, str]:
    """For each indicator that is kept the categories without one: the coefficient's reference."""
    features = document["question"]["features"]
    kept = {features[j] for j in target["kept"]}
    notes = {}
    for group in document["question"]["one_hot"]:
        first = len(group["categories"]) - len(group["features"])
        indicator = dict(zip(group["categories"][first:], group["features"], strict=True))
        others = [name for name in group["categories"] if indicator.get(name) not in kept]
        if not others:
            continue
        more = f" and {len(others) - MOST_CATEGORIES} more" if len(others) > MOST_CATEGORIES else ""
        for feature in kept.intersection(group["features"]):
            notes[feature] = f"compared with {', '.join(others[:MOST_CATEGORIES])}{more}"
    return notes


def _on_few_rows(document: Document, t: int) -> dict[int, str]:
    """On how many rows each variable rests that rests on few."""
    found = {}
    for note in document["notes"]:
        if note["kind"] == "few rows" and note["facts"]["target"] == t:
            for j, rows in zip(note["facts"]["columns"], note["facts"]["rows"], strict=True):
                found[j] = f"rests on about {rows:,} row{'' if rows == 1 else 's'}"
    return found


def _error_of_prediction(document: Document, target: Target, total: float) -> tuple[float, str]:
    """Root mean square error, cross-validated if possible, and what it is."""
    cv, index, choice = target["cv"], target["index"], document["question"]["choice"]
    if cv is not None and index is not None:
        what = f"root mean square, {choice['scheme']}"
        if choice["rule"] == "1se":
            return float(np.sqrt(cv["mean"][index])), what
        # The smallest error of many is too small, as the same folds chose it.
        if cv["of_choice"] is None:
            return float(np.sqrt(cv["mean"][index])), f"{what}, without the choice of alpha"
        return float(np.sqrt(cv["of_choice"])), f"{what}, with the choice of alpha"
    if target["r2"] is None or target["free"] <= 0:
        return np.nan, "no degrees of freedom are left"
    rss = (1 - target["r2"]) * total
    return float(np.sqrt(max(rss, 0.0) / target["free"])), "residual standard error, same rows"


def _figures(document: Document, target: Target, total: float) -> list[Figure]:
    """The numbers at the top."""
    error, what = _error_of_prediction(document, target, total)
    m = len(document["question"]["features"])
    about = "" if document["settings"]["fit_intercept"] else ", about zero"
    weighted = ", weighted" if document["question"]["weight"] is not None else ""
    return [
        Figure("Variables kept", f"{len(target['kept']):,}", f"of {m:,}"),
        Figure(
            "R²",
            number(target["r2"], 3),
            f"on {document['data']['rows']:,} rows{weighted}{about}",
        ),
        Figure("Typical error", number(error, 3), what),
        Figure("Penalty alpha", number(target["alpha"]), _choice_in_short(document)),
    ]


def _lead(document: Document, target: Target, total: float) -> str:
    """The answer in two or three sentences."""
    m, k = len(document["question"]["features"]), len(target["kept"])
    name = _called(target)
    if k == 0:
        constant = number(target["intercept"])
        none = f"None of the {m:,} candidate variables is kept: at this alpha none explains"
        if m == 1:
            none = "The one candidate variable is not kept: at this alpha it does not explain"
        return (
            f"{none} enough of {name} to be worth its price. "
            f"The prediction is {constant} for every row."
        )
    many = (
        "The one candidate variable is kept" if m == 1 else f"{k:,} of {m:,} candidate variables "
    )
    many += "" if m == 1 else ("is kept" if k == 1 else "are kept")
    sentences = []
    if target["r2"] is not None:
        together = "Together they explain" if k > 1 else "It explains"
        sentences.append(
            f"{many}. {together} {percent(target['r2'])} of the variation of {name} in these rows."
        )
    else:
        sentences.append(f"{many}.")
    error, _ = _error_of_prediction(document, target, total)
    spread = _error_without_variables(document, target, total)
    if np.isfinite(error) and spread > 0:
        where = "a row that the model has not seen" if target["cv"] is not None else "a row"
        sentences.append(
            f"A prediction for {where} is typically off by {number(error, 3)}, in the units of "
            f"{name}; without any variable it would be off by {number(spread, 3)}."
        )
    return " ".join(sentences)


def _error_without_variables(document: Document, target: Target, total: float) -> float:
    """The same error of the null model: on the same splits, if it was tried there."""
    cv, path = target["cv"], target["path"]
    if cv is not None and path is not None and 0 in path["n_nonzero"]:
        return float(np.sqrt(cv["mean"][path["n_nonzero"].index(0)]))
    return float(np.sqrt(total / document["data"]["weight_sum"]))


def _called(target: Target) -> str:
    """The target's name in a sentence, which a long one would tear apart."""
    name = target["name"]
    return name if len(name) <= LONGEST_IN_A_SENTENCE else "the target"


def _not_kept(
    target: Target, names: Sequence[str]
) -> tuple[list[Waiting], list[Waiting], list[str]]:
    """The variables not kept: those that a smaller alpha keeps, only a larger one, and none.

    Of the first two those first that the least change of alpha brings in.
    """
    kept, path = set(target["kept"]), target["path"]
    below: dict[int, float] = {}
    above: dict[int, float] = {}
    if path is not None:
        for alpha, members in zip(path["alphas"], path["kept"], strict=True):
            for j in set(members) - kept:
                if alpha < target["alpha"]:
                    below.setdefault(j, alpha)
                else:
                    above[j] = alpha
    waiting = sorted(below.items(), key=lambda pair: (-pair[1], pair[0]))
    gone = sorted(above.items(), key=lambda pair: (pair[1], pair[0]))
    never = [j for j in range(len(names)) if j not in kept | below.keys() | above.keys()]
    return (
        [Waiting(names[j], number(alpha)) for j, alpha in waiting],
        [Waiting(names[j], number(alpha)) for j, alpha in gone if j not in below],
        [names[j] for j in never],
    )


# -- how to do it again ----------------------------------------------------------------------


def _again(document: Document) -> str:
    """What gives the same model once more."""
    splitter = document["question"]["choice"]["splitter"]
    if splitter is None:
        return "The same rows and the settings below give the same model"
    return (
        "The same rows, the same splits and the settings below give the same model; of the splits "
        f"({splitter}) the settings hold the number only"
    )


def _shown(value: Any) -> str:
    """A parameter as Python writes it, cut where it is long."""
    text = repr(value)
    return text if len(text) <= 120 else f"{text[:80]} … ({len(value)} values)"


def _fingerprint(document: Document) -> list[tuple[str, str]]:
    """By what the data and the model are known again."""
    data, question = document["data"], document["question"]
    lines = [
        ("sparsestep", document["version"]),
        ("Estimator", document["estimator"]),
        ("Rows of non-zero weight", f"{data['rows']:,}"),
        ("Sum of the weights", count(data["weight_sum"])),
    ]
    for name, mean, deviation in zip(
        question["target"], data["target_mean"], data["target_deviation"], strict=True
    ):
        lines.append(
            (f"Mean and deviation of {name}", f"{number(mean, 8)} and {number(deviation, 8)}")
        )
    pairs = data["n_collinear"]
    lines.append(("Nearly collinear pairs", "not looked for" if pairs is None else f"{pairs:,}"))
    lines.append(("Majorization steps", f"{document['n_iter']:,}"))
    lines.append(("Model file, SHA-256", document["checksum"]))
    return lines
