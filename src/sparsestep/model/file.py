"""A fitted model as a JSON file: written completely or not at all, checked when read.

The module `document` is the schema of the file. `save_model` writes one, `read_document` reads it
as data, and `load_model` gives the estimator back. Reading executes nothing: the file names one of
three estimators and holds numbers and texts.
"""

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import fields
from importlib.metadata import version
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, TypeVar, cast, get_args, get_origin

import numpy as np
from msgspec import Struct
from msgspec.structs import asdict, astuple
from numpy.typing import NDArray

from sparsestep.errors import ModelFileError
from sparsestep.estimators.fitted import CVResult, Fitted, Path, TargetModel
from sparsestep.inference.facts import Fingerprint
from sparsestep.inference.notes import RowsDropped
from sparsestep.inference.summary import t_interval
from sparsestep.model.document import (
    FORMAT,
    SCHEMA,
    Choice,
    CVTable,
    Data,
    Document,
    Kind,
    Model,
    Pair,
    PathTable,
    Target,
    check,
    parsed,
    sealed,
)
from sparsestep.solvers.wide import supported_size
from sparsestep.whole_file import whole_file
from sparsestep.words import made_up_names, model_within

if TYPE_CHECKING:
    from sparsestep.estimators.estimators import SparseStep, SparseStepCV, SparseStepIC

Array = NDArray[np.float64]
OneHot = Mapping[str, tuple[Sequence[str], Sequence[str]]]

Record = TypeVar("Record")

LEVEL = 0.95


# -- writing ---------------------------------------------------------------------------------


def save_model(
    estimator: Any,
    path: str | os.PathLike[str],
    *,
    target: str | Sequence[str] | None = None,
    source: str | None = None,
    weight: str | None = None,
    one_hot: OneHot | None = None,
    rows_dropped: int = 0,
    dropped_by: Mapping[str, int] | None = None,
    seed: int | None = None,
    model_path: Path | None = None,
) -> None:
    """Write a fitted model to a JSON file, complete or not at all.

    Parameters
    ----------
    estimator : SparseStep, SparseStepCV or SparseStepIC
        Fitted.
    path : path-like
        Exactly this name is used.
    target : str or sequence of str, optional
        Name of the target, or one for each. Otherwise those of the y that was fitted to; "y", or
        "y0", "y1" and so on, if it had none.
    source : str, optional
        Where the data came from, for a reader of the file or the report.
    weight : str, optional
        Name of the column of weights.
    one_hot : mapping of str to (categories, features), optional
        Columns of text behind the features: all their categories, and the names of the features
        that are indicators of the last of these. Otherwise those of the moments fitted to.
    rows_dropped : int, default 0
        Rows left out because a value was missing.
    dropped_by : mapping of str to int, optional
        In how many of them each column had no value.
    seed : int, optional
        Seed of the random folds.
    model_path : Path, optional
        The path of a `SparseStep` on the same data, which keeps none itself.

    See Also
    --------
    load_model : The estimator back from the file.

    Examples
    --------
    >>> import os, tempfile
    >>> import numpy as np
    >>> from sparsestep import SparseStepIC, load_model, save_model
    >>> X = np.random.default_rng(0).standard_normal((50, 3))
    >>> model = SparseStepIC().fit(X, X[:, 0])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = os.path.join(folder, "model.json")
    ...     save_model(model, file, target="income")
    ...     bool(np.all(load_model(file).predict(X) == model.predict(X)))
    True
    """
    write_document(
        document_of(
            estimator,
            target=target,
            source=source,
            weight=weight,
            one_hot=one_hot,
            rows_dropped=rows_dropped,
            dropped_by=dropped_by,
            seed=seed,
            model_path=model_path,
        ),
        path,
    )


def write_document(document: Document, path: str | os.PathLike[str]) -> None:
    """Write a document to a file of exactly this name, one top-level field on each line."""
    lines = (
        f"{json.dumps(key)}: {json.dumps(value, separators=(',', ':'), allow_nan=False)}"
        for key, value in document.items()
    )
    with whole_file(path, "model") as temporary:
        temporary.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="ascii")


def document_of(estimator: Any, **about: Any) -> Document:
    """The document of a fitted estimator; `about` are the other parameters of `save_model`."""
    # A model in hand means that scikit-learn is imported already.
    from sklearn.utils.validation import check_is_fitted

    kind = type(estimator).__name__
    ours = type(estimator).__module__ == "sparsestep.estimators.estimators"
    if not ours or kind not in get_args(Kind):
        inside = model_within(estimator)
        advice = f"; give {inside}, the model in it." if inside else "."
        raise TypeError(f"Only models of sparsestep can be saved, not {kind}{advice}")
    check_is_fitted(estimator)
    # Factors by name become a list in the order of the columns, which needs no names to load.
    parameters = {**estimator.get_params(deep=False), "penalty_factor": estimator._factors()}
    names, flat = estimator._names(), estimator._flat_y
    return fitted_document(
        estimator._fitted, cast(Kind, kind), parameters, names, flat=flat, **about
    )


def fitted_document(
    fitted: Fitted,
    kind: Kind,
    parameters: Mapping[str, Any],
    names: Sequence[str] | None,
    *,
    flat: bool = True,
    target: str | Sequence[str] | None = None,
    source: str | None = None,
    weight: str | None = None,
    one_hot: OneHot | None = None,
    rows_read: int | None = None,
    rows_dropped: int = 0,
    dropped_by: Mapping[str, int] | None = None,
    seed: int | None = None,
    model_path: Path | None = None,
) -> Document:
    """The document of models that an estimator of this kind and these parameters would have.

    `rows_read` is the number of all rows, where some that were not left out weigh nothing.
    """
    fingerprint, notes = fitted.fingerprint, fitted.notes
    if rows_dropped:
        total = rows_read or fingerprint.rows + rows_dropped
        notes = (*notes, RowsDropped(rows_dropped, total, dict(dropped_by or {})))
    features = list(names or made_up_names(len(fingerprint.mean)))
    targets = _target_names(target, fitted)
    table = fitted.targets[0].cv
    # Of splits only their number can be written down.
    splits = {} if table is None else {"cv": table.mse.shape[1]}
    settings = {name: _plain(value) for name, value in {**parameters, **splits}.items()}
    if "verbose" in settings:
        settings["verbose"] = int(settings["verbose"])
    return sealed(
        {
            "format": FORMAT,
            "schema": SCHEMA,
            "version": version("sparsestep"),
            "estimator": kind,
            "settings": settings,
            "question": {
                "source": source,
                "target": targets,
                "features": features,
                "named": names is not None,
                "weight": weight,
                "one_hot": [
                    {"column": column, "categories": [*categories], "features": [*indicators]}
                    for column, (categories, indicators) in (one_hot or fitted.one_hot).items()
                ],
                "rows": fingerprint.rows,
                "rows_dropped": sum(note.rows for note in notes if isinstance(note, RowsDropped)),
                "seed": seed,
                "choice": _choice(kind, settings, table),
            },
            "data": _table(
                Data,
                fingerprint,
                collinear=[asdict(Pair(*pair)) for pair in fingerprint.collinear],
            ),
            "flat": flat,
            "n_iter": fitted.n_iter,
            "targets": [
                _target(model, name, settings, model_path)
                for model, name in zip(fitted.targets, targets, strict=True)
            ],
            "notes": [{"kind": note.kind, "facts": asdict(note)} for note in notes],
            "checksum": "",
        }
    )


def _target_names(given: str | Sequence[str] | None, fitted: Fitted) -> list[str]:
    """One name for each target."""
    if given is None:
        return list(fitted.target_names)
    names, count = [given] if isinstance(given, str) else list(given), len(fitted.targets)
    if len(names) != count:
        targets = "1 target" if count == 1 else f"{count} targets"
        raise ValueError(f"The model has {targets}; target has {len(names)} names.")
    return names


def _plain(value: Any) -> Any:
    """A value as JSON data: null for NaN, the text "inf" for infinity, null for a splitter."""
    if hasattr(value, "tolist"):
        value = value.tolist()
    if value is None or isinstance(value, Integral | str | dict):
        return value
    if isinstance(value, Real):
        return None if value != value else "inf" if value == np.inf else float(value)
    return None if hasattr(value, "split") else [_plain(item) for item in value]


def _choice(kind: Kind, settings: dict[str, Any], cv: CVResult | None) -> Document:
    """How alpha was chosen."""
    chosen: dict[str, Any] = {"by": "alpha"}
    if cv is not None:
        chosen = {"by": "cv", "folds": settings["cv"], "rule": settings["rule"]}
        chosen |= {"scheme": cv.scheme, "splitter": cv.splitter}
    elif kind == "SparseStepIC":
        chosen = {"by": "criterion", "criterion": settings["criterion"]}
    elif settings["n_nonzero"] is not None:
        chosen = {"by": "size", "size": settings["n_nonzero"]}
    return {**dict.fromkeys(Choice.__struct_fields__), **chosen}


def _table(kind: type[Struct], record: Any, **other: Any) -> Document:
    """The fields of a part of a document: from `other`, or from the record's field of that name."""
    names = kind.__struct_fields__
    return {n: _plain(other[n] if n in other else getattr(record, n)) for n in names}


def _target(
    model: TargetModel, name: str, settings: dict[str, Any], model_path: Path | None
) -> Document:
    """The model of one target as JSON data."""
    kept = np.flatnonzero(model.coef)
    low, high = t_interval(model.coef, model.standard_error, model.free, LEVEL)
    path, cv, values = model.path or model_path, model.cv, model.criterion
    path_table = criterion = None
    if path is not None:
        models = [(np.flatnonzero(coef), coef) for coef in path.coefs.T]
        coefs = [coef[index] for index, coef in models]
        path_table = _table(PathTable, path, kept=[index for index, _ in models], coefs=coefs)
    if values is not None:
        criterion = {"name": settings["criterion"], "values": _plain(values)}
    return _table(
        Target,
        model,
        name=name,
        index=_index(path, model),
        kept=kept,
        coef=model.coef[kept],
        standard_error=model.standard_error[kept],
        low=low[kept],
        high=high[kept],
        level=LEVEL,
        path=path_table,
        cv=None if cv is None else _table(CVTable, cv),
        criterion=criterion,
    )


def _index(path: Path | None, model: TargetModel) -> int | None:
    """The index of a model's alpha on a path, if the path has it.

    On a path that is not the model's own, a model of a given size may have other variables.
    """
    if path is None:
        return None
    found = path.alphas == model.alpha
    if model.path is None:
        found &= ((path.coefs != 0) == (model.coef != 0)[:, np.newaxis]).all(axis=0)
    return int(np.argmax(found)) if found.any() else None


# -- reading ---------------------------------------------------------------------------------


def read_document(path: str | os.PathLike[str]) -> Document:
    """The content of a model file, every field checked; nothing in it is executed.

    Parameters
    ----------
    path : path-like

    Returns
    -------
    Document
        A dictionary as `sparsestep.model.document` describes it.

    Raises
    ------
    ModelFileError
        If the file is damaged, is something else, or was written by a newer version.
    """
    name = os.fspath(path)
    with open(path, "rb") as file:
        # A large table given by mistake should not be read to its end.
        head = file.read(1024)
        if not head.lstrip().startswith(b"{"):
            raise ModelFileError(f"{name} is not a model file of sparsestep.")
        text = head + file.read()
    try:
        value = json.loads(
            text.decode("utf-8"), parse_constant=_no_constant, object_pairs_hook=_no_repetition
        )
    except (ValueError, RecursionError) as error:
        reason = str(error) or type(error).__name__
        raise ModelFileError(f"{name} is cut short or damaged: {reason}.") from error
    check(value, name)
    return cast(Document, value)


def _no_constant(text: str) -> Any:
    """Refuse NaN and infinities, which Python reads as numbers and JSON does not have."""
    raise ValueError(f"it holds {text}, which is no JSON")


def _no_repetition(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object, unless it has a field twice."""
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("an object in it has a field twice")
    return found


def load_model(path: str | os.PathLike[str]) -> "SparseStep | SparseStepCV | SparseStepIC":
    """The fitted estimator that `save_model` wrote; nothing in the file is executed.

    Parameters
    ----------
    path : path-like

    Returns
    -------
    SparseStep, SparseStepCV or SparseStepIC
        It predicts, scores and summarizes as the one that was saved. A splitter given as ``cv`` has
        become the number of its splits, and ``penalty_factor`` a list in the order of columns.

    Raises
    ------
    ModelFileError
        If the file is damaged, is something else, or was written by a newer version.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> from sparsestep import SparseStep, load_model, save_model
    >>> X = np.random.default_rng(0).standard_normal((50, 3))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save_model(SparseStep(alpha=2.0).fit(X, X[:, 0]), f"{folder}/model.json")
    ...     load_model(f"{folder}/model.json")
    SparseStep(alpha=2.0)
    """
    return estimator_of(read_document(path))


def estimator_of(document: Document) -> "SparseStep | SparseStepCV | SparseStepIC":
    """The fitted estimator of a document."""
    from sparsestep.estimators import estimators

    settings, question = dict(document["settings"]), document["question"]
    if settings["penalty_factor"] is not None:
        settings["penalty_factor"] = [float(factor) for factor in settings["penalty_factor"]]
    model: Any = getattr(estimators, document["estimator"])(**settings)
    model._flat_y = document["flat"]
    model.n_features_in_ = len(question["features"])
    if question["named"]:
        model.feature_names_in_ = np.array(question["features"], dtype=object)
    model._show(fitted_of(document))
    return cast("SparseStep | SparseStepCV | SparseStepIC", model)


def fitted_of(document: Document) -> Fitted:
    """The models of a document, in plain numbers."""
    model = parsed(document)
    collinear = tuple(astuple(pair) for pair in model.data.collinear)
    return Fitted(
        tuple(_target_model(model, target) for target in model.targets),
        tuple(model.question.target),
        _record(Fingerprint, model.data, collinear=collinear),
        model.n_iter,
        model.settings.fit_intercept,
        tuple(table.note for table in model.notes),
        {group.column: (group.categories, group.features) for group in model.question.one_hot},
    )


def _target_model(model: Model[Any], target: Target) -> TargetModel:
    """The model of one target."""
    question, path, cv = model.question, None, None
    m = len(question.features)
    # A path that was saved beside a model of one alpha is the document's, not the model's.
    if target.path is not None and model.estimator != "SparseStep":
        models = zip(target.path.kept, target.path.coefs, strict=True)
        path = _record(
            Path,
            target.path,
            coefs=np.array([dense(kept, coefs, m) for kept, coefs in models]).T,
            n_nonzero=np.array(target.path.n_nonzero, dtype=np.intp),
            n_samples=model.data.weight_sum,
            feature_names=tuple(question.features) if question.named else None,
            # Moments of fewer rows than columns are thin.
            supported_size=supported_size(model.data.weight_sum, m)
            if model.data.rows < m
            else None,
        )
    if target.cv is not None:
        paired_se = target.cv.paired_se or [None] * len(target.cv.se)
        scheme, splitter = str(question.choice.scheme), question.choice.splitter
        cv = _record(CVResult, target.cv, paired_se=paired_se, scheme=scheme, splitter=splitter)
    return _record(
        TargetModel,
        target,
        coef=dense(target.kept, target.coef, m),
        standard_error=dense(target.kept, target.standard_error, m, fill=np.nan),
        path=path,
        cv=cv,
        criterion=None if target.criterion is None else target.criterion.values,
    )


def _record(kind: type[Record], part: Struct, **other: Any) -> Record:
    """The inverse of `_table`: lists become arrays or tuples, and null becomes NaN."""
    values: dict[str, Any] = {}
    for field in fields(cast(Any, kind)):
        if field.name in other or hasattr(part, field.name):
            value = other[field.name] if field.name in other else getattr(part, field.name)
            if isinstance(value, list):
                to_tuple = get_origin(field.type) is tuple
                value = tuple(value) if to_tuple else np.array(value, dtype=np.float64)
            values[field.name] = np.nan if value is None and field.type is float else value
    return kind(**values)


def dense(index: list[int], values: Sequence[Any], m: int, fill: float = 0.0) -> Array:
    """An array of m numbers: the values at the indices, `fill` elsewhere, NaN for null."""
    spread = np.full(m, fill)
    spread[index] = np.array(values, dtype=np.float64)
    return spread
