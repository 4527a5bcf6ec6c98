"""The schema of a model file as msgspec structs; comments say what the fields mean.

A document is plain JSON data: dictionaries, lists, texts, numbers, true, false and null. `parsed`
gives it as structs, after msgspec has checked the type of every field, and the structs that lists
which belong together have the same length and that indices exist. So does `check`, which also holds
that a checksum over all of it is right. Nothing here needs scikit-learn, so reading a model costs
little.

Throughout, m is the number of columns of X, and a column is named by its index among them, from 0.
Coefficients are stored for the variables kept only: all others are zero.
"""

import hashlib
import json
from collections.abc import Iterator
from itertools import pairwise
from sys import float_info
from typing import Annotated, Any, Generic, Literal, TypeVar

from msgspec import Meta, Struct, ValidationError, convert

from sparsestep.errors import ModelFileError
from sparsestep.inference.notes import NOTES, Note
from sparsestep.selection.criteria import Criterion
from sparsestep.selection.cross_validation import Rule
from sparsestep.words import made_up_names

FORMAT = "sparsestep model"
# It rises when an older version could not read what is written: with a new field, and with a new
# value of one. Schema 2 added the rules "paired" and "average", and shrinkage; in files of schema 1
# their fields are null.
SCHEMA = 2

Document = dict[str, Any]
Kind = Literal["SparseStep", "SparseStepCV", "SparseStepIC"]
# Every number is finite, and every whole number one of 64 bits.
Number = Annotated[float, Meta(ge=-float_info.max, le=float_info.max)]
NotNegative = Annotated[float, Meta(ge=0.0, le=float_info.max)]
Share = Annotated[float, Meta(ge=0.0, le=1.0)]
Whole = Annotated[int, Meta(ge=-(2**63), le=2**63 - 1)]
Count = Annotated[int, Meta(ge=0, le=2**63 - 1)]
Columns = list[Count]  # ascending


class _Part(Struct, forbid_unknown_fields=True):
    """A part of a document. msgspec adds its place to the errors that `__post_init__` raises."""


class Choice(_Part):
    """How alpha was chosen; null for what does not apply."""

    by: Literal["cv", "criterion", "size", "alpha"]
    folds: Whole | None
    scheme: str | None  # of the splits, in words
    splitter: str | None  # the object that made the splits; null for the order of rows or a seed
    rule: Rule | None
    criterion: Criterion | None
    size: Whole | None


class OneHot(_Part):
    """A column of text, and the indicator columns that stand for it among the features."""

    column: str
    categories: list[str]  # all that were seen
    features: list[str]  # names of the indicators: of the last categories, one for each

    def __post_init__(self) -> None:
        if len(set(self.categories)) < len(self.categories):
            raise ValueError("categories has a name twice")
        if len(self.features) > len(self.categories):
            raise ValueError(f"it has {len(self.features)} indicators")


class Question(_Part):
    """The table, its columns and the way to choose alpha."""

    source: str | None
    target: Annotated[list[str], Meta(min_length=1)]  # one name for each target
    features: Annotated[list[str], Meta(min_length=1)]  # m; `made_up_names` if the data had none
    named: bool  # whether the data had names
    weight: str | None
    one_hot: list[OneHot]
    rows: Whole  # used: of non-zero weight
    rows_dropped: Whole  # left out for a missing value
    seed: Whole | None  # of the random folds
    choice: Choice

    def __post_init__(self) -> None:
        if not self.named and self.features != made_up_names(len(self.features)):
            raise ValueError("named is false, but features has names")
        for group in self.one_hot:
            for name in set(group.features).difference(self.features):
                raise ValueError(f"one_hot.features has {name!r}, which is no feature")


class Pair(_Part):
    """Two columns that are nearly collinear."""

    first: Count
    second: Count
    correlation: Number


class Data(_Part):
    """Fingerprint of the data."""

    rows: Annotated[int, Meta(ge=1, le=2**63 - 1)]
    weight_sum: Annotated[float, Meta(gt=0.0, le=float_info.max)]
    mean: list[Number]  # m
    deviation: list[NotNegative]  # m
    target_mean: list[Number]  # one for each target
    target_deviation: list[NotNegative]
    # The next two have m entries; null where it is not known, as of columns that are not kept.
    effective_rows: list[NotNegative | None]  # on which a column's sum of squares rests
    reach: list[NotNegative | None]  # deviations from the mean at which a value is far outside
    copies: Columns  # of earlier columns
    n_collinear: Whole | None  # pairs, the most correlated of which follow; null: not looked for
    collinear: list[Pair]
    row_numbers: Columns  # that number the rows, by their values

    def __post_init__(self) -> None:
        if (self.n_collinear or 0) < len(self.collinear):
            raise ValueError("n_collinear is less than the pairs in collinear")


class PathTable(_Part):
    """The models of all alphas: lists of one entry for each alpha, largest alpha first."""

    alphas: Annotated[list[NotNegative], Meta(min_length=1)]
    kept: list[Columns]
    coefs: list[list[Number]]  # of the variables kept
    intercepts: list[Number]
    n_nonzero: list[Whole]
    rss: list[Number]
    missing_sizes: list[Whole]
    by_size: bool  # whether the alphas are those of sizes

    def __post_init__(self) -> None:
        if any(a <= b for a, b in pairwise(self.alphas)):
            raise ValueError("alphas do not fall")
        _lengths(self, "kept coefs intercepts n_nonzero rss", len(self.alphas))
        for i, (kept, coefs) in enumerate(zip(self.kept, self.coefs, strict=True)):
            _length(f"coefs[{i}]", coefs, len(kept))
            if self.n_nonzero[i] != len(kept):
                raise ValueError(f"n_nonzero[{i}] is not the number of variables kept")


class CVTable(_Part):
    """Cross-validation: one entry for each alpha of the path."""

    mse: list[list[Number]]  # of each fold
    mean: list[NotNegative]
    se: list[NotNegative | None]  # null with a single fold
    alpha_min: Number
    alpha_1se: Number
    of_choice: NotNegative | None  # the error with the choice of alpha; null with a single fold
    paired_se: list[NotNegative | None] | None = None  # of the differences to the smallest error
    alpha_paired: Number | None = None
    shrinkage: NotNegative | None = None  # the penalty of ridge on the variables kept


class CriterionTable(_Part):
    """An information criterion: one value for each alpha of the path."""

    name: Criterion
    values: list[Number]


class Target(_Part):
    """The model of one target."""

    name: str
    alpha: Number
    index: Count | None  # of that alpha on the path; null if it is on none
    intercept: Number
    kept: Columns  # the lists that follow have an entry for each
    coef: list[Number]
    standard_error: list[NotNegative | None]  # null without a degree of freedom
    low: list[Number | None]  # ends of the intervals
    high: list[Number | None]
    level: Annotated[float, Meta(gt=0.0, lt=1.0)]  # of the intervals
    free: Number  # degrees of freedom
    r2: Number | None  # null for a constant target
    how: str  # how alpha was chosen, in words
    facts: dict[str, str]  # lines of the summary
    path: PathTable | None
    cv: CVTable | None
    criterion: CriterionTable | None
    inclusion: list[Share] | None = None  # m: weight of the averaged models with each variable

    def __post_init__(self) -> None:
        _lengths(self, "coef standard_error low high", len(self.kept))
        for j, ends in enumerate(zip(self.standard_error, self.low, self.high, strict=True)):
            if 0 < ends.count(None) < 3:
                raise ValueError(f"it has a part only of the interval of variable {j}")
        alphas = [] if self.path is None else self.path.alphas
        if self.index is not None and self.index >= len(alphas):
            raise ValueError(f"index is {self.index} on a path of {len(alphas)} alphas")
        if self.criterion is not None:
            _length("criterion.values", self.criterion.values, len(alphas))
        if self.cv is not None:
            _lengths(self.cv, "mse mean se", len(alphas), "cv.")
            for i, folds in enumerate(self.cv.mse):
                _length(f"cv.mse[{i}]", folds, max(len(self.cv.mse[0]), 1))
            if self.cv.paired_se is not None:
                _length("cv.paired_se", self.cv.paired_se, len(alphas))
            for name in ("alpha_min", "alpha_paired", "alpha_1se"):
                if getattr(self.cv, name) not in (None, *alphas):
                    raise ValueError(f"cv.{name} is not on the path")


class NoteTable(_Part):
    """A note for the reader of the model."""

    kind: str  # one of those in `notes`
    facts: dict[str, Any]  # the fields of that kind

    def __post_init__(self) -> None:
        if self.kind not in NOTES:
            raise ValueError(f"kind is {self.kind!r}")
        try:
            convert(self.facts, NOTES[self.kind])
        except ValidationError as error:
            raise ValueError(f"facts: {error}") from None
        if len({len(fact) for fact in self.facts.values() if isinstance(fact, list)}) > 1:
            raise ValueError("facts has lists of different lengths")

    @property
    def note(self) -> Note:
        """The note itself."""
        return convert(self.facts, NOTES[self.kind])


class _Settings(_Part):
    """The parameters that all estimators have."""

    fit_intercept: bool
    standardize: bool
    penalty_factor: list[Number | Literal["inf"]] | None
    gamma_0: Number
    gamma_stop: Number
    gamma_step: Number
    t_max: Whole
    epsilon: Number
    polish: Literal["swap"] | None
    solver: Literal["auto", "reference"]


class _SparseStep(_Settings):
    alpha: Number
    n_nonzero: Whole | None


class _SparseStepCV(_Settings):
    alphas: Whole | list[Number]
    cv: Whole  # of another splitter the number of its splits
    rule: Rule
    n_jobs: Whole | None
    verbose: Whole
    shrink: Literal["cv"] | None = None


class _SparseStepIC(_Settings):
    criterion: Criterion
    alphas: Whole | list[Number]


_SETTINGS: dict[str, type[_Settings]] = {
    "SparseStep": _SparseStep,
    "SparseStepCV": _SparseStepCV,
    "SparseStepIC": _SparseStepIC,
}
# The table, beside the path, by which each estimator chooses alpha.
_CHOOSES_BY = {"SparseStep": None, "SparseStepCV": "cv", "SparseStepIC": "criterion"}
_OfEstimator = TypeVar("_OfEstimator", bound=_Settings)


class Model(_Part, Generic[_OfEstimator]):
    """All of a model file."""

    format: Literal["sparsestep model"]
    schema: Literal[1, 2]
    version: str  # of sparsestep
    estimator: Kind
    settings: _OfEstimator  # its parameters; "inf" for an infinite penalty factor
    question: Question
    data: Data
    flat: bool  # whether y had one dimension
    n_iter: Whole
    targets: list[Target]
    notes: list[NoteTable]
    checksum: str  # SHA-256 of the rest

    def __post_init__(self) -> None:
        names, m = self.question.target, len(self.question.features)
        _lengths(self.data, "mean deviation effective_rows reach", m, "data.")
        _lengths(self.data, "target_mean target_deviation", len(names), "data.")
        if self.settings.penalty_factor is not None:
            _length("settings.penalty_factor", self.settings.penalty_factor, m)
        if self.question.rows != self.data.rows:
            raise ValueError("question.rows and data.rows contradict each other")
        if self.flat and len(names) != 1:
            raise ValueError(f"it has {len(names)} targets but a y of one dimension")
        if [target.name for target in self.targets] != names:
            raise ValueError("the names of targets are not question.target")
        for where, columns in self._columns():
            if any(i >= j for i, j in pairwise(columns)):
                raise ValueError(f"{where} is not ascending")
            if columns and columns[-1] >= m:
                raise ValueError(f"{where} names a column that is not there")
        for i, note in enumerate(self.notes):
            if not 0 <= note.facts.get("target", 0) < len(names):
                raise ValueError(f"notes[{i}].facts.target is a target that is not there")
        for t, target in enumerate(self.targets):
            self._check_choice(f"targets[{t}]", target)
            if target.inclusion is not None:
                _length(f"targets[{t}].inclusion", target.inclusion, m)

    def _columns(self) -> Iterator[tuple[str, Columns]]:
        """All lists of columns, and where they are."""
        yield "data.copies", self.data.copies
        yield "data.row_numbers", self.data.row_numbers
        for i, pair in enumerate(self.data.collinear):
            yield f"data.collinear[{i}]", [pair.first, pair.second]
        for i, note in enumerate(self.notes):
            yield f"notes[{i}].facts.columns", note.facts.get("columns", [])
        for t, target in enumerate(self.targets):
            yield f"targets[{t}].kept", target.kept
            for i, kept in enumerate(target.path.kept if target.path else []):
                yield f"targets[{t}].path.kept[{i}]", kept

    def _check_choice(self, where: str, target: Target) -> None:
        """Raise unless a target has the tables of its estimator, and no others."""
        by = _CHOOSES_BY[self.estimator]
        for name in ("cv", "criterion"):
            if (getattr(target, name) is not None) != (name == by):
                raise ValueError(f"{where}.{name} does not belong to a {self.estimator}")
        if by is not None and (target.path is None or target.index is None):
            raise ValueError(f"{where}.path or {where}.index is null")
        if by is not None and target.path is not None and target.path.by_size:
            raise ValueError(f"{where}.path.by_size does not belong to a {self.estimator}")


def _lengths(part: _Part, names: str, expected: int, where: str = "") -> None:
    """Raise unless some lists have the expected length."""
    for name in names.split():
        _length(f"{where}{name}", getattr(part, name), expected)


def _length(where: str, values: list[Any], expected: int) -> None:
    """Raise unless a list has the expected length."""
    if len(values) != expected:
        raise ValueError(f"{where} has {len(values)} entries instead of {expected}")


def parsed(document: Document) -> Model[Any]:
    """The document as structs; a ValueError names the field that is not as it should be."""
    settings = _SETTINGS.get(str(document.get("estimator")), _Settings)
    return convert(document, Model[settings])  # type: ignore[valid-type]


def checksum(document: Document) -> str:
    """SHA-256 of a document, whatever its layout as text, without its own checksum."""
    rest = {key: value for key, value in document.items() if key != "checksum"}
    text = json.dumps(rest, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()


def check(value: Any, name: str) -> Model[Any]:
    """A document of this schema as structs; `name` is its file's, for the messages."""
    if not isinstance(value, dict) or value.get("format") != FORMAT:
        raise ModelFileError(f"{name} is not a model file of sparsestep.")
    schema = value.get("schema")
    if isinstance(schema, int) and schema > SCHEMA:
        raise ModelFileError(
            f"{name} has schema {schema}, newer than {SCHEMA}, the newest that this sparsestep "
            "reads; update sparsestep."
        )
    try:
        model = parsed(value)
        if model.checksum != checksum(value):
            raise ValueError("its checksum does not fit its content")
    except ValueError as error:
        raise ModelFileError(f"{name} is damaged: {error}.") from None
    return model


def sealed(document: Document) -> Document:
    """A document to be written, checked and with its checksum."""
    try:
        parsed(document)
    except ValueError as error:
        raise ValueError(f"This model cannot be saved: {error}.") from None
    return {**document, "checksum": checksum(document)}
