"""A fitted model as a JSON file: written completely or not at all, checked when read.

The file is a `model_document.Document`; that module is the schema. `save_model` writes one,
`read_document` reads it as data, and `load_model` gives the estimator back. Reading executes
nothing: the file names one of three estimators and holds numbers and texts.
"""

import json
import os
import uuid
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from numbers import Integral, Real
from pathlib import Path as FilePath
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import NDArray

from sparsestep.fingerprint import COLLINEAR, Fingerprint
from sparsestep.inference import t_interval
from sparsestep.model_document import (
    FORMAT,
    SCHEMA,
    Choice,
    Data,
    Document,
    ModelFileError,
    OneHot,
    PathTable,
    Target,
    Warned,
    check,
    sealed,
)
from sparsestep.path import Path

if TYPE_CHECKING:
    from sparsestep.estimators import SparseStep, SparseStepCV, SparseStepIC

__all__ = [
    "ModelFileError",
    "document_of",
    "estimator_of",
    "load_model",
    "read_document",
    "save_model",
    "write_document",
]

Array = NDArray[np.float64]

LEVEL = 0.95
_ESTIMATORS = ("SparseStep", "SparseStepCV", "SparseStepIC")


# -- writing ---------------------------------------------------------------------------------


def save_model(
    estimator: Any,
    path: str | os.PathLike[str],
    *,
    target: str | Sequence[str] | None = None,
    source: str | None = None,
    weight: str | None = None,
    one_hot: Mapping[str, tuple[Sequence[str], Sequence[str]]] | None = None,
    rows_dropped: int = 0,
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
        Name of the target, or one for each; "y", or "y0", "y1" and so on, otherwise.
    source : str, optional
        Where the data came from, for a reader of the file or the report.
    weight : str, optional
        Name of the column of weights.
    one_hot : mapping of str to (categories, features), optional
        Columns of text behind the features: all their categories, and the names of the features
        that are indicators of the last of these.
    rows_dropped : int, default 0
        Rows left out because a value was missing.
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
            seed=seed,
            model_path=model_path,
        ),
        path,
    )


def write_document(document: Document, path: str | os.PathLike[str]) -> None:
    """Write a document to a file of exactly this name, one top-level field on each line."""
    target = FilePath(path)
    if not target.parent.is_dir():
        raise FileNotFoundError(f"The folder {target.parent} for the model does not exist.")
    lines = (
        f"{json.dumps(key)}: {json.dumps(value, separators=(',', ':'), allow_nan=False)}"
        for key, value in document.items()
    )
    text = "{\n" + ",\n".join(lines) + "\n}\n"
    # Not tempfile: its files are private, and models are made to be handed on.
    temporary = target.with_name(f".{uuid.uuid4().hex}.tmp")
    try:
        with open(temporary, "x", encoding="ascii") as file:
            file.write(text)
        os.replace(temporary, target)
    finally:
        temporary.unlink(missing_ok=True)


def document_of(
    estimator: Any,
    *,
    target: str | Sequence[str] | None = None,
    source: str | None = None,
    weight: str | None = None,
    one_hot: Mapping[str, tuple[Sequence[str], Sequence[str]]] | None = None,
    rows_dropped: int = 0,
    seed: int | None = None,
    model_path: Path | None = None,
) -> Document:
    """The document of a fitted model; parameters as in `save_model`."""
    # A model in hand means that scikit-learn is imported already.
    from sklearn.utils.validation import check_is_fitted

    kind = type(estimator).__name__
    if kind not in _ESTIMATORS or type(estimator).__module__ != "sparsestep.estimators":
        raise TypeError(f"Only models of sparsestep can be saved, not {kind}.")
    check_is_fitted(estimator)
    fingerprint: Fingerprint = estimator._fingerprint
    names: list[str] = estimator._all_names()
    targets = _target_names(target, len(fingerprint.mean_y))
    data = _data(fingerprint)
    document: Document = {
        "format": FORMAT,
        "schema": SCHEMA,
        "version": version("sparsestep"),
        "estimator": kind,  # type: ignore[typeddict-item]
        "settings": _settings(estimator),
        "question": {
            "source": source,
            "target": targets,
            "features": names,
            "named": hasattr(estimator, "feature_names_in_"),
            "weight": weight,
            "one_hot": [
                OneHot(column=column, categories=list(categories), features=list(features))
                for column, (categories, features) in (one_hot or {}).items()
            ],
            "rows": fingerprint.n_samples,
            "rows_dropped": rows_dropped,
            "seed": seed,
            "choice": _choice(estimator),
        },
        "data": data,
        "flat": bool(estimator._flat_y),
        "n_iter": int(estimator.n_iter_),
        "targets": [_target(estimator, t, name, model_path) for t, name in enumerate(targets)],
        "warnings": [],
        "checksum": "",
    }
    document["warnings"] = _warnings(estimator, document)
    return sealed(document)


def _target_names(given: str | Sequence[str] | None, count: int) -> list[str]:
    """One name for each target."""
    if given is None:
        return ["y"] if count == 1 else [f"y{t}" for t in range(count)]
    names = [given] if isinstance(given, str) else list(given)
    if len(names) != count:
        raise ValueError(f"The model has {count} targets; target has {len(names)} names.")
    return names


def _settings(estimator: Any) -> dict[str, Any]:
    """The parameters as JSON data."""
    settings = {name: _plain(value) for name, value in estimator.get_params(deep=False).items()}
    if "cv" in settings:
        # Of a splitter only the number of its splits can be written down.
        settings["cv"] = _n_folds(estimator)
    return settings


def _plain(value: Any) -> Any:
    """A parameter's value as JSON data; an infinite number as the text "inf"."""
    if value is None or isinstance(value, bool | str):
        return value
    if isinstance(value, np.bool_):
        return bool(value)
    if isinstance(value, Integral):
        return int(value)
    if isinstance(value, Real):
        return float(value)
    if hasattr(value, "split"):
        return None
    return ["inf" if np.isposinf(number) else float(number) for number in value]


def _n_folds(estimator: Any) -> int:
    """Number of folds of a cross-validated model."""
    return int(np.atleast_2d(estimator.mse_path_).shape[-1])


def _choice(estimator: Any) -> Choice:
    """How alpha was chosen."""
    kind = type(estimator).__name__
    choice = Choice(by="alpha", folds=None, rule=None, criterion=None, size=None)
    if kind == "SparseStepCV":
        return {**choice, "by": "cv", "folds": _n_folds(estimator), "rule": estimator.rule}
    if kind == "SparseStepIC":
        return {**choice, "by": "criterion", "criterion": estimator.criterion}
    if estimator.n_nonzero is not None:
        return {**choice, "by": "size", "size": int(estimator.n_nonzero)}
    return choice


def _data(fingerprint: Fingerprint) -> Data:
    """The fingerprint as JSON data."""
    return {
        "rows": fingerprint.n_samples,
        "weight_sum": fingerprint.weight_sum,
        "mean": fingerprint.mean_x.tolist(),
        "deviation": fingerprint.deviation_x.tolist(),
        "target_mean": fingerprint.mean_y.tolist(),
        "target_deviation": fingerprint.deviation_y.tolist(),
        "n_collinear": fingerprint.n_collinear,
        "collinear": [
            {"first": i, "second": j, "correlation": r} for i, j, r in fingerprint.collinear
        ],
    }


def _target(estimator: Any, t: int, name: str, model_path: Path | None) -> Target:
    """The model of one target."""
    record = estimator._records[t]
    coef = np.atleast_2d(estimator.coef_)[t]
    kept = np.flatnonzero(coef)
    low, high = t_interval(coef, record.standard_error, record.free, LEVEL)
    path = _of(getattr(estimator, "path_", model_path), t)
    target: Target = {
        "name": name,
        "alpha": record.alpha,
        "index": None if path is None else _index(path, record.alpha),
        "intercept": float(np.atleast_1d(estimator.intercept_)[t]),
        "kept": kept.tolist(),
        "coef": coef[kept].tolist(),
        "standard_error": _or_null(record.standard_error[kept]),
        "low": _or_null(low[kept]),
        "high": _or_null(high[kept]),
        "level": LEVEL,
        "free": record.free,
        "r2": _or_null(np.array([record.r2]))[0],
        "how": record.how,
        "facts": record.facts,
        "path": None if path is None else _path_table(path),
        "cv": None,
        "criterion": None,
    }
    flat = estimator._flat_y
    if hasattr(estimator, "mse_path_"):
        target["cv"] = {
            "mse": (estimator.mse_path_ if flat else estimator.mse_path_[t]).tolist(),
            "mean": (estimator.cv_mean_ if flat else estimator.cv_mean_[t]).tolist(),
            "se": _or_null(estimator.cv_se_ if flat else estimator.cv_se_[t]),
            "alpha_min": float(np.atleast_1d(estimator.alpha_min_)[t]),
            "alpha_1se": float(np.atleast_1d(estimator.alpha_1se_)[t]),
        }
    if hasattr(estimator, "criterion_path_"):
        values = estimator.criterion_path_ if flat else estimator.criterion_path_[t]
        target["criterion"] = {"name": estimator.criterion, "values": values.tolist()}
    return target


def _of(path: Any, t: int) -> Path | None:
    """The path of one target."""
    return cast("Path | None", path[t] if isinstance(path, list) else path)


def _index(path: Path, alpha: float) -> int | None:
    """Where on a path an alpha is, if it is."""
    at = np.flatnonzero(path.alphas == alpha)
    return int(at[0]) if len(at) else None


def _path_table(path: Path) -> PathTable:
    """A path as JSON data."""
    kept = [np.flatnonzero(column) for column in path.coefs.T]
    return {
        "alphas": path.alphas.tolist(),
        "kept": [index.tolist() for index in kept],
        "coefs": [column[index].tolist() for column, index in zip(path.coefs.T, kept, strict=True)],
        "intercepts": path.intercepts.tolist(),
        "n_nonzero": path.n_nonzero.tolist(),
        "rss": path.rss.tolist(),
        "missing_sizes": list(path.missing_sizes),
    }


def _or_null(values: Array) -> list[float | None]:
    """Numbers, null for NaN."""
    return [None if np.isnan(value) else float(value) for value in values]


def _warnings(estimator: Any, document: Document) -> list[Warned]:
    """What a reader of the model should know."""
    found: list[Warned] = []
    question, data = document["question"], document["data"]
    names = question["features"]
    for target in document["targets"]:
        of = f" of {target['name']}" if len(document["targets"]) > 1 else ""
        path = _of(getattr(estimator, "path_", None), question["target"].index(target["name"]))
        hint = estimator._hint(path, target["index"]) if path is not None else ""
        if hint:
            end = "largest" if "larger" in hint else "smallest"
            found.append(
                {
                    "kind": "alpha at the end",
                    "text": f"The best alpha{of} is the {end} of those tried, so that a "
                    f"{end.replace('est', 'er')} one may be better still.",
                }
            )
        if not target["kept"]:
            text = f"No variable{of} is kept: the model predicts the same number for every row."
            found.append({"kind": "nothing kept", "text": text})
    if data["n_collinear"]:
        first = data["collinear"][0]
        one = data["n_collinear"] == 1
        found.append(
            {
                "kind": "collinear",
                "text": f"{data['n_collinear']} pair{'' if one else 's'} of columns "
                f"{'is' if one else 'are'} nearly collinear (correlation of {COLLINEAR} or more in "
                f"size{'' if one else '; most of all'}: {names[first['first']]!r} and "
                f"{names[first['second']]!r}, {first['correlation']:.4f}), and which of two such "
                "columns is kept may change with a few rows.",
            }
        )
    constant = [name for name, d in zip(names, data["deviation"], strict=True) if d == 0]
    if constant:
        shown = ", ".join(repr(name) for name in constant[:5])
        more = f" and {len(constant) - 5} more" if len(constant) > 5 else ""
        text = f"Constant, and so of no use: {shown}{more}."
        found.append({"kind": "constant", "text": text})
    if question["rows_dropped"]:
        n, dropped = question["rows"] + question["rows_dropped"], question["rows_dropped"]
        text = f"{dropped} of {n} rows were left out because a value was missing."
        found.append({"kind": "rows dropped", "text": text})
    return found


# -- reading ---------------------------------------------------------------------------------


def read_document(path: str | os.PathLike[str]) -> Document:
    """What a model file holds, every field of it checked; nothing in it is executed.

    Parameters
    ----------
    path : path-like

    Returns
    -------
    Document
        A dictionary as `model_document` describes it.

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
    return check(value, name)


def _no_constant(text: str) -> Any:
    """Refuse what Python reads as a number though JSON has no such thing."""
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
        become the number of its splits.

    Raises
    ------
    ModelFileError
        If the file is damaged, is something else, or was written by a newer version.
    """
    return estimator_of(read_document(path))


def estimator_of(document: Document) -> "SparseStep | SparseStepCV | SparseStepIC":
    """The fitted estimator of a document."""
    from sparsestep import estimators

    settings = dict(document["settings"])
    if settings["penalty_factor"] is not None:
        settings["penalty_factor"] = [float(factor) for factor in settings["penalty_factor"]]
    model: Any = getattr(estimators, document["estimator"])(**settings)
    question, data, targets = document["question"], document["data"], document["targets"]
    m = len(question["features"])
    model._flat_y = document["flat"]
    model._fingerprint = _fingerprint(data)
    model.n_features_in_ = m
    model.n_iter_ = document["n_iter"]
    if question["named"]:
        model.feature_names_in_ = np.array(question["features"], dtype=object)
    model._records = [
        estimators._Record(
            alpha=float(target["alpha"]),
            how=target["how"],
            facts=dict(target["facts"]),
            standard_error=_spread(target["kept"], target["standard_error"], m, fill=np.nan),
            free=float(target["free"]),
            deviation=model._fingerprint.deviation_x,
            r2=float(_numbers([target["r2"]])[0]),
            n=float(data["weight_sum"]),
        )
        for target in targets
    ]

    def set_all(name: str, values: list[Any]) -> None:
        setattr(model, name, model._one_or_all(values))

    set_all("coef_", [_spread(target["kept"], target["coef"], m) for target in targets])
    set_all("intercept_", [float(target["intercept"]) for target in targets])
    set_all("alpha_", [float(target["alpha"]) for target in targets])
    if document["estimator"] == "SparseStep":
        return cast("SparseStep", model)
    names = tuple(question["features"]) if question["named"] else None
    paths = [
        _path(cast(PathTable, target["path"]), m, names, float(data["weight_sum"]))
        for target in targets
    ]
    model.path_ = paths[0] if model._flat_y else paths
    set_all("alphas_", [path.alphas for path in paths])
    tables = [target["cv"] for target in targets if target["cv"] is not None]
    if tables:
        set_all("mse_path_", [_numbers(table["mse"]) for table in tables])
        set_all("cv_mean_", [_numbers(table["mean"]) for table in tables])
        set_all("cv_se_", [_numbers(table["se"]) for table in tables])
        set_all("alpha_min_", [float(table["alpha_min"]) for table in tables])
        set_all("alpha_1se_", [float(table["alpha_1se"]) for table in tables])
    else:
        criteria = [target["criterion"] for target in targets if target["criterion"] is not None]
        set_all("criterion_path_", [_numbers(table["values"]) for table in criteria])
    return cast("SparseStepCV | SparseStepIC", model)


def _fingerprint(data: Data) -> Fingerprint:
    """The fingerprint back from JSON data."""
    return Fingerprint(
        n_samples=data["rows"],
        weight_sum=float(data["weight_sum"]),
        mean_x=_numbers(data["mean"]),
        deviation_x=_numbers(data["deviation"]),
        mean_y=_numbers(data["target_mean"]),
        deviation_y=_numbers(data["target_deviation"]),
        n_collinear=data["n_collinear"],
        collinear=tuple(
            (pair["first"], pair["second"], float(pair["correlation"]))
            for pair in data["collinear"]
        ),
    )


def _path(table: PathTable, m: int, names: tuple[str, ...] | None, weight_sum: float) -> Path:
    """The path back from JSON data."""
    columns = [
        _spread(kept, coefs, m) for kept, coefs in zip(table["kept"], table["coefs"], strict=True)
    ]
    return Path(
        alphas=_numbers(table["alphas"]),
        coefs=np.array(columns).T,
        intercepts=_numbers(table["intercepts"]),
        n_nonzero=np.array(table["n_nonzero"], dtype=np.intp),
        rss=_numbers(table["rss"]),
        n_samples=weight_sum,
        feature_names=names,
        missing_sizes=tuple(table["missing_sizes"]),
    )


def _numbers(values: Sequence[Any]) -> Array:
    """Numbers as an array, NaN for null."""
    return np.array(values, dtype=np.float64)


def _spread(index: list[int], values: Sequence[Any], m: int, fill: float = 0.0) -> Array:
    """An array of m numbers: the values at the indices, `fill` elsewhere."""
    spread = np.full(m, fill)
    spread[index] = _numbers(values)
    return spread
