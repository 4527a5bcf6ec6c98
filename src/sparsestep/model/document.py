"""What a model file holds: the schema, as types, and the check that a document obeys it.

A document is plain JSON data: dictionaries, lists, texts, numbers, true, false and null. The types
below are the schema; their comments say what the fields mean. Beyond the types, `check` holds that
lists which belong together have the same length, that indices exist, that every number is finite,
and that a checksum over all of it is right. Nothing here needs scikit-learn, so reading a model
costs little.

Throughout, m is the number of columns of X, and a column is named by its index among them, from 0.
Coefficients are stored for the variables kept only: all others are zero.
"""

import hashlib
import json
from collections.abc import Mapping
from itertools import pairwise
from math import isfinite
from types import NoneType, UnionType
from typing import Any, Literal, TypedDict, Union, cast, get_args, get_origin, get_type_hints
from typing import is_typeddict as is_schema

from sparsestep.errors import ModelFileError
from sparsestep.inference.notes import NOTES
from sparsestep.words import made_up_names

__all__ = [
    "FORMAT",
    "SCHEMA",
    "CVTable",
    "Choice",
    "CriterionTable",
    "Data",
    "Document",
    "Kind",
    "ModelFileError",
    "NoteTable",
    "OneHot",
    "Pair",
    "PathTable",
    "Question",
    "Target",
    "check",
    "checksum",
    "sealed",
]

FORMAT: Literal["sparsestep model"] = "sparsestep model"
SCHEMA = 1

Kind = Literal["SparseStep", "SparseStepCV", "SparseStepIC"]
CriterionName = Literal["aic", "bic", "ebic", "gic"]


class Choice(TypedDict):
    """How alpha was chosen; null for what does not apply."""

    by: Literal["cv", "criterion", "size", "alpha"]
    folds: int | None
    scheme: str | None  # of the splits, in words
    splitter: str | None  # what made the splits, if not the order of the rows or the seed
    rule: Literal["min", "1se"] | None
    criterion: CriterionName | None
    size: int | None


class OneHot(TypedDict):
    """A column of text, and the indicator columns that stand for it among the features."""

    column: str
    categories: list[str]  # all that were seen
    features: list[str]  # names of the indicators: of the last categories, one for each


class Question(TypedDict):
    """What was asked of which table."""

    source: str | None
    target: list[str]  # one name for each target
    features: list[str]  # m names; `made_up_names` where the data had none
    named: bool  # whether the data had names
    weight: str | None
    one_hot: list[OneHot]
    rows: int  # used: of non-zero weight
    rows_dropped: int  # left out for a missing value
    seed: int | None  # of the random folds
    choice: Choice


class Pair(TypedDict):
    """Two columns that are nearly collinear."""

    first: int
    second: int
    correlation: float


class Data(TypedDict):
    """Fingerprint of the data."""

    rows: int
    weight_sum: float
    mean: list[float]  # m
    deviation: list[float]  # m
    target_mean: list[float]  # one for each target
    target_deviation: list[float]
    # The next two have m entries; null where it is not known, as of columns that are not kept.
    effective_rows: list[float | None]  # on which a column's sum of squares rests
    reach: list[float | None]  # deviations from the mean at which a value is far outside
    copies: list[int]  # of earlier columns, ascending
    n_collinear: int | None  # pairs, the most correlated of which follow; null: not looked for
    collinear: list[Pair]
    row_numbers: list[int]  # columns that number the rows, by their values


class PathTable(TypedDict):
    """The models of all alphas: lists of one entry for each alpha, largest alpha first."""

    alphas: list[float]
    kept: list[list[int]]  # ascending
    coefs: list[list[float]]  # of the variables kept
    intercepts: list[float]
    n_nonzero: list[int]
    rss: list[float]
    missing_sizes: list[int]
    by_size: bool  # whether the alphas are those of sizes


class CVTable(TypedDict):
    """Cross-validation: one entry for each alpha of the path."""

    mse: list[list[float]]  # of each fold
    mean: list[float]
    se: list[float | None]  # null with a single fold
    alpha_min: float
    alpha_1se: float
    of_choice: float | None  # the error with the choice of alpha; null with a single fold


class CriterionTable(TypedDict):
    """An information criterion: one value for each alpha of the path."""

    name: CriterionName
    values: list[float]


class Target(TypedDict):
    """The model of one target."""

    name: str
    alpha: float
    index: int | None  # of that alpha on the path; null if it is on none
    intercept: float
    kept: list[int]  # ascending; the lists that follow have an entry for each
    coef: list[float]
    standard_error: list[float | None]  # null without a degree of freedom
    low: list[float | None]  # ends of the intervals
    high: list[float | None]
    level: float  # of the intervals
    free: float  # degrees of freedom
    r2: float | None  # null for a constant target
    how: str  # alpha was chosen, in words
    facts: dict[str, str]  # lines of the summary
    path: PathTable | None
    cv: CVTable | None
    criterion: CriterionTable | None


class NoteTable(TypedDict):
    """What a reader of the model should know."""

    kind: str  # one of those in `notes`
    facts: dict[str, Any]  # the fields of that kind


class Document(TypedDict):
    """All of a model file."""

    format: Literal["sparsestep model"]
    schema: int
    version: str  # of sparsestep
    estimator: Kind
    settings: dict[str, Any]  # its parameters; "inf" for an infinite penalty factor
    question: Question
    data: Data
    flat: bool  # whether y had one dimension
    n_iter: int
    targets: list[Target]
    notes: list[NoteTable]
    checksum: str  # SHA-256 of the rest


class _Settings(TypedDict):
    """The parameters that all estimators have."""

    fit_intercept: bool
    standardize: bool
    penalty_factor: list[float | Literal["inf"]] | None
    gamma_0: float
    gamma_stop: float
    gamma_step: float
    t_max: int
    epsilon: float
    polish: Literal["swap"] | None
    solver: Literal["auto", "reference"]


class _SparseStep(_Settings):
    alpha: float
    n_nonzero: int | None


class _SparseStepCV(_Settings):
    alphas: int | list[float]
    cv: int  # of another splitter the number of its splits
    rule: Literal["min", "1se"]
    n_jobs: int | None
    verbose: int


class _SparseStepIC(_Settings):
    criterion: CriterionName
    alphas: int | list[float]


_SETTINGS: dict[str, Any] = {
    "SparseStep": _SparseStep,
    "SparseStepCV": _SparseStepCV,
    "SparseStepIC": _SparseStepIC,
}


class _Wrong(Exception):
    """Which field is not as it should be, to follow the name of a file in a sentence."""


def checksum(document: Any) -> str:
    """SHA-256 of a document, whatever its layout as text, without its own checksum."""
    rest = {key: value for key, value in document.items() if key != "checksum"}
    text = json.dumps(rest, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()


def check(value: Any, name: str) -> Document:
    """The value, if it is a document of this schema; `name` is its file's, for the messages."""
    if not isinstance(value, dict) or value.get("format") != FORMAT:
        raise ModelFileError(f"{name} is not a model file of sparsestep.")
    schema = value.get("schema")
    if isinstance(schema, int) and schema > SCHEMA:
        raise ModelFileError(
            f"{name} has schema {schema}, newer than {SCHEMA}, the newest that this sparsestep "
            "reads; update sparsestep."
        )
    try:
        if schema != SCHEMA or isinstance(schema, bool):
            raise _Wrong(f"its schema is {_shown(schema)}")
        document = _checked(value)
        if document["checksum"] != checksum(document):
            raise _Wrong("its checksum does not fit its content")
    except _Wrong as error:
        raise ModelFileError(f"{name} is damaged: {error}.") from None
    return document


def sealed(document: Document) -> Document:
    """A document to be written, checked and with its checksum."""
    try:
        _checked(document)
    except _Wrong as error:
        raise ValueError(f"This model cannot be saved: {error}.") from None
    return {**document, "checksum": checksum(document)}


def _checked(value: Any) -> Document:
    """The value, if all its fields are as they should be."""
    _conform(value, Document, "")
    document = cast(Document, value)
    _conform(document["settings"], _SETTINGS[document["estimator"]], "settings")
    for i, note in enumerate(document["notes"]):
        if note["kind"] not in NOTES:
            raise _Wrong(f"notes[{i}].kind is {_shown(note['kind'])}")
        _conform_fields(note["facts"], _facts(note["kind"]), f"notes[{i}].facts")
    _check_lengths(document)
    return document


def _facts(kind: str) -> dict[str, Any]:
    """The fields of a kind of note, and their types."""
    return {name: hint for name, hint in get_type_hints(NOTES[kind]).items() if name != "kind"}


# -- types -----------------------------------------------------------------------------------


def _conform(value: Any, kind: Any, where: str) -> None:
    """Raise unless the value is of the type; `where` is the place of the value in the document."""
    origin = get_origin(kind)
    if is_schema(kind):
        _conform_fields(value, get_type_hints(kind), where)
    elif origin is list:
        if not isinstance(value, list):
            raise _Wrong(f"{where} is {_shown(value)}, not a list")
        (inner,) = get_args(kind)
        # Nearly all of a document are numbers, for which no place need be spelled out.
        if inner is float and all(type(item) is float and isfinite(item) for item in value):
            return
        for i, item in enumerate(value):
            _conform(item, inner, f"{where}[{i}]")
    elif origin is dict:
        if not isinstance(value, dict):
            raise _Wrong(f"{where} is {_shown(value)}, not an object")
        _, inner = get_args(kind)
        for key, item in value.items():
            _conform(item, inner, f"{where}.{key}")
    elif origin in (Union, UnionType):
        _conform_one_of(value, get_args(kind), where)
    elif kind is not Any and not _fits(value, kind):
        raise _Wrong(f"{where} is {_shown(value)}, not {_called(kind)}")


def _conform_fields(value: Any, fields: dict[str, Any], where: str) -> None:
    """Raise unless the value is an object with exactly these fields."""
    if not isinstance(value, dict):
        raise _Wrong(f"{where} is {_shown(value)}, not an object")
    for name in fields:
        if name not in value:
            raise _Wrong(f"it has no {_joined(where, name)}")
    for name, item in value.items():
        if name not in fields:
            raise _Wrong(f"it has the unknown field {_joined(where, name)}")
        _conform(item, fields[name], _joined(where, name))


def _conform_one_of(value: Any, kinds: tuple[Any, ...], where: str) -> None:
    """Raise unless the value is of one of the types."""
    nested = [kind for kind in kinds if is_schema(kind) or get_origin(kind) is list]
    if any(_fits(value, kind) for kind in kinds if kind not in nested):
        return
    # At most one type of each union holds other values, and its message names the place in them.
    if nested and isinstance(value, list | dict):
        _conform(value, nested[0], where)
        return
    names = " or ".join(_called(kind) for kind in kinds)
    raise _Wrong(f"{where} is {_shown(value)}, not {names}")


def _fits(value: Any, kind: Any) -> bool:
    """Whether a value that holds no others is of the type."""
    if get_origin(kind) is Literal:
        return isinstance(value, str) and value in get_args(kind)
    if isinstance(value, bool):
        return kind is bool
    if kind is float:
        return isinstance(value, int | float) and _finite(value)
    if kind is int:
        return isinstance(value, int) and abs(value) < 2**63
    return isinstance(kind, type) and isinstance(value, kind)


def _finite(value: float) -> bool:
    """Whether a number is one of double precision."""
    try:
        return isfinite(float(value))
    except OverflowError:
        return False


def _called(kind: Any) -> str:
    """A type in words."""
    if get_origin(kind) is Literal:
        return " or ".join(repr(choice) for choice in get_args(kind))
    if is_schema(kind):
        return "an object"
    names = {float: "a finite number", int: "a whole number", str: "text", bool: "true or false"}
    return names.get(kind, "null" if kind is NoneType else "a list")


def _shown(value: Any) -> str:
    """A value in a message, cut where it is long."""
    text = "null" if value is None else repr(value)
    return text if len(text) <= 40 else f"{text[:37]}..."


def _joined(where: str, name: str) -> str:
    """The place of a field."""
    return f"{where}.{name}" if where else name


# -- what belongs together -------------------------------------------------------------------


def _check_lengths(document: Document) -> None:
    """Raise unless lists that belong together have the same length, and indices exist."""
    question, data = document["question"], document["data"]
    m, k = len(question["features"]), len(question["target"])
    if not m or not k:
        raise _Wrong("it has no features, or no target")
    if not question["named"] and question["features"] != made_up_names(m):
        raise _Wrong("question.named is false, but question.features has names")
    _lengths("data", data, ("mean", "deviation", "effective_rows", "reach"), m)
    _lengths("data", data, ("target_mean", "target_deviation"), k)
    factor = document["settings"]["penalty_factor"]
    if factor is not None:
        _length("settings.penalty_factor", factor, m)
    for i, pair in enumerate(data["collinear"]):
        _columns(f"data.collinear[{i}]", [pair["first"], pair["second"]], m)
    _columns("data.copies", data["copies"], m)
    _columns("data.row_numbers", data["row_numbers"], m)
    for i, note in enumerate(document["notes"]):
        _columns(f"notes[{i}].facts.columns", note["facts"].get("columns", []), m)
        if len({len(fact) for fact in note["facts"].values() if isinstance(fact, list)}) > 1:
            raise _Wrong(f"notes[{i}].facts has lists of different lengths")
        if not 0 <= note["facts"].get("target", 0) < k:
            raise _Wrong(f"notes[{i}].facts.target is a target that is not there")
    if (data["n_collinear"] or 0) < len(data["collinear"]):
        raise _Wrong("data.n_collinear is less than the pairs in data.collinear")
    if data["weight_sum"] <= 0 or data["rows"] < 1 or question["rows"] != data["rows"]:
        raise _Wrong("its numbers of rows contradict each other")
    _not_negative("data", data, ("deviation", "target_deviation", "effective_rows", "reach"))
    if document["flat"] and k != 1:
        raise _Wrong(f"it has {k} targets but a y of one dimension")
    for i, group in enumerate(question["one_hot"]):
        _check_group(f"question.one_hot[{i}]", group, question["features"])
    _length("targets", document["targets"], k)
    for t, target in enumerate(document["targets"]):
        if target["name"] != question["target"][t]:
            raise _Wrong(f"targets[{t}].name is not question.target[{t}]")
        _check_target(f"targets[{t}]", target, document["estimator"], m)


def _check_group(where: str, group: OneHot, features: list[str]) -> None:
    """Raise unless each indicator is a feature and stands for a category."""
    _distinct(f"{where}.categories", group["categories"])
    if len(group["features"]) > len(group["categories"]):
        raise _Wrong(f"{where} has {len(group['features'])} indicators")
    for name in group["features"]:
        if name not in features:
            raise _Wrong(f"{where}.features has {_shown(name)}, which is no feature")


def _check_target(where: str, target: Target, estimator: str, m: int) -> None:
    """Raise unless the parts of a target's model fit together."""
    _columns(f"{where}.kept", target["kept"], m)
    _lengths(where, target, ("coef", "standard_error", "low", "high"), len(target["kept"]))
    _not_negative(where, target, ("standard_error",))
    for j, ends in enumerate(
        zip(target["standard_error"], target["low"], target["high"], strict=True)
    ):
        if None in ends and ends != (None, None, None):
            raise _Wrong(f"{where} has a part only of the interval of variable {j}")
    if not 0 < target["level"] < 1:
        raise _Wrong(f"{where}.level is {target['level']}")
    path, cv, criterion = target["path"], target["cv"], target["criterion"]
    belongs = {"path": path is None, "cv": cv is None, "criterion": criterion is None}
    needs = {"SparseStepCV": ("path", "cv"), "SparseStepIC": ("path", "criterion")}
    for name, is_null in belongs.items():
        if is_null and name in needs.get(estimator, ()):
            raise _Wrong(f"{where}.{name} is null")
        if not is_null and name != "path" and name not in needs.get(estimator, ()):
            raise _Wrong(f"{where}.{name} does not belong to a {estimator}")
    if path is None:
        if target["index"] is not None:
            raise _Wrong(f"{where}.index is {target['index']} on no path")
        return
    _check_path(f"{where}.path", path, m)
    n = len(path["alphas"])
    index = target["index"]
    if index is not None and not 0 <= index < n:
        raise _Wrong(f"{where}.index is {index} on a path of {n} alphas")
    if index is None and estimator != "SparseStep":
        raise _Wrong(f"{where}.index is null")
    if path["by_size"] and estimator != "SparseStep":
        raise _Wrong(f"{where}.path.by_size does not belong to a {estimator}")
    if criterion is not None:
        _length(f"{where}.criterion.values", criterion["values"], n)
    if cv is not None:
        _lengths(f"{where}.cv", cv, ("mse", "mean", "se"), n)
        _not_negative(f"{where}.cv", cv, ("mean", "se"))
        if (cv["of_choice"] or 0.0) < 0:
            raise _Wrong(f"{where}.cv.of_choice is negative")
        for i, folds in enumerate(cv["mse"]):
            _length(f"{where}.cv.mse[{i}]", folds, max(len(cv["mse"][0]), 1))
        for name, alpha in (("alpha_min", cv["alpha_min"]), ("alpha_1se", cv["alpha_1se"])):
            if alpha not in path["alphas"]:
                raise _Wrong(f"{where}.cv.{name} is not on the path")


def _check_path(where: str, path: PathTable, m: int) -> None:
    """Raise unless the lists of a path have one entry for each alpha."""
    n = len(path["alphas"])
    if n == 0:
        raise _Wrong(f"{where}.alphas is empty")
    if any(a <= b for a, b in pairwise(path["alphas"])):
        raise _Wrong(f"{where}.alphas do not fall")
    _lengths(where, path, ("kept", "coefs", "intercepts", "n_nonzero", "rss"), n)
    _not_negative(where, path, ("alphas",))
    for i, (kept, coefs) in enumerate(zip(path["kept"], path["coefs"], strict=True)):
        _columns(f"{where}.kept[{i}]", kept, m)
        _length(f"{where}.coefs[{i}]", coefs, len(kept))
        if path["n_nonzero"][i] != len(kept):
            raise _Wrong(f"{where}.n_nonzero[{i}] is not the number of variables kept")


def _lengths(
    where: str, fields: Mapping[str, object], names: tuple[str, ...], expected: int
) -> None:
    """Raise unless the lists of some fields have the expected length."""
    for name in names:
        _length(f"{where}.{name}", cast("list[Any]", fields[name]), expected)


def _length(where: str, values: list[Any], expected: int) -> None:
    """Raise unless a list has the expected length."""
    if len(values) != expected:
        raise _Wrong(f"{where} has {len(values)} entries instead of {expected}")


def _not_negative(where: str, fields: Mapping[str, object], names: tuple[str, ...]) -> None:
    """Raise if a number of some fields is negative."""
    for name in names:
        for i, value in enumerate(cast("list[float | None]", fields[name])):
            if (value or 0.0) < 0:
                raise _Wrong(f"{where}.{name}[{i}] is negative")


def _columns(where: str, indices: list[int], m: int) -> None:
    """Raise unless the indices are columns in ascending order."""
    if indices and not 0 <= indices[0] <= indices[-1] < m:
        raise _Wrong(f"{where} names a column that is not there")
    if any(i >= j for i, j in pairwise(indices)):
        raise _Wrong(f"{where} is not ascending")


def _distinct(where: str, names: list[str]) -> None:
    """Raise if a name comes twice."""
    if len(set(names)) < len(names):
        raise _Wrong(f"{where} has a name twice")
