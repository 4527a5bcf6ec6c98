"""Sums in a file: NumPy's ``.npz`` with a format name and version, checked when read.

Nothing in a file is executed, and a file is written completely or not at all.
"""

import json
import os
import zipfile
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparsestep.runs import Run
from sparsestep.sums import Sums
from sparsestep.thin import DenseRows
from sparsestep.whole_file import whole_file

__all__ = ["MomentsFileError", "read", "write"]

Array = NDArray[np.float64]

FORMAT = "sparsestep moments"
# Version 1 had no `runs`, and means in single doubles.
VERSION = 2


class MomentsFileError(ValueError):
    """A file is not a moments file that this version can read."""


class _Unreadable(Exception):
    """Why a file cannot be read, to follow its name in a sentence."""


def write(path: str | os.PathLike[str], sums: Sums) -> None:
    """Write sums to a file of exactly this name; thin ones as their dense rows."""
    arrays: dict[str, Any] = {
        "format": np.array(FORMAT),
        "version": np.array(VERSION),
        "n_samples": np.array(sums.n_samples),
        "weight_sum": np.array(sums.weight_sum),
        "mean_x": sums.mean_x,
        "mean_y": sums.mean_y,
        "low_x": sums.low_x,
        "low_y": sums.low_y,
        "flat_y": np.array(sums.flat_y),
        "xty": sums.xty,
        "yty": sums.yty,
        "diag": sums.diag,
    }
    # Always there: a damaged directory of the archive must not look like a table without names.
    arrays["feature_names"] = np.array(sums.names or (), dtype=np.str_)
    arrays["has_names"] = np.array(sums.names is not None)
    if sums.target_names is not None:
        arrays["target_names"] = np.array(sums.target_names, dtype=np.str_)
    if sums.categories:
        arrays["categories"] = np.array(json.dumps(sums.categories))
    arrays["runs"] = np.array(
        json.dumps([[run.id, run.source, run.of, sorted(run.folds)] for run in sums.runs])
    )
    if sums.pieces is None:
        arrays["xtx"] = sums.xtx
    else:
        rows = sums.kept_rows()
        arrays["rows"], arrays["targets"] = rows.A, rows.y
    private = sums.pieces is not None
    with whole_file(path, "moments", private=private) as temporary, open(temporary, "wb") as file:
        np.savez(file, **arrays)


def read(path: str | os.PathLike[str]) -> Sums:
    """Read what `write` wrote; `MomentsFileError` for anything else."""
    with open(path, "rb") as file:
        try:
            if not zipfile.is_zipfile(file):
                raise _Unreadable("is not a moments file, or is cut short")
            file.seek(0)
            with np.load(file, allow_pickle=False) as archive:
                return _from_archive(archive)
        except _Unreadable as error:
            raise MomentsFileError(f"{os.fspath(path)} {error}.") from error.__cause__
        except Exception as error:
            # zipfile and NumPy answer damage with a dozen kinds of exception.
            raise MomentsFileError(f"{os.fspath(path)} is damaged: {error}") from error


def _from_archive(archive: Any) -> Sums:
    """Sums from an open ``.npz`` archive, every array checked against the others."""
    if "format" not in archive or str(archive["format"]) != FORMAT:
        raise _Unreadable("is a NumPy file but does not hold moments")
    version = int(archive["version"])
    if version > VERSION:
        raise _Unreadable(
            f"has format version {version}, newer than {VERSION}, the newest that this "
            "sparsestep reads; update sparsestep"
        )
    if version < 1:
        raise _Unreadable(f"is damaged: its format version is {version}")
    m, k = archive["xty"].shape

    def array(name: str, *shape: int) -> Array:
        values = archive[name]
        if values.dtype != np.float64 or values.shape != shape:
            raise _Unreadable(
                f"is damaged: {name} has type {values.dtype} and shape {values.shape}"
            )
        if not np.isfinite(values).all():
            raise _Unreadable(f"is damaged: {name} has values that are not finite")
        return np.asarray(values, order="C")

    names: tuple[str, ...] | None = None
    if bool(archive["has_names"]):
        names = tuple(str(name) for name in archive["feature_names"])
        if len(names) != m:
            raise _Unreadable(f"is damaged: {len(names)} names for {m} columns")
    target_names: tuple[str, ...] | None = None
    if "target_names" in archive:
        target_names = tuple(str(name) for name in archive["target_names"])
        if len(target_names) != k:
            raise _Unreadable(f"is damaged: {len(target_names)} names for {k} targets")
    categories: dict[str, tuple[str, ...]] = {}
    if "categories" in archive:
        stored = json.loads(str(archive["categories"]))
        categories = {str(name): tuple(map(str, known)) for name, known in stored.items()}
    runs = _runs(str(archive["runs"])) if version > 1 else ()
    xtx, pieces = None, None
    if "xtx" in archive:
        xtx = array("xtx", m, m)
        if not np.array_equal(xtx, xtx.T):
            raise _Unreadable("is damaged: xtx is not symmetric")
    else:
        n = len(archive["rows"])
        pieces = (DenseRows(array("rows", n, m), array("targets", n, k)),)
    sums = Sums(
        n_samples=int(archive["n_samples"]),
        weight_sum=float(array("weight_sum")),
        mean_x=array("mean_x", m),
        mean_y=array("mean_y", k),
        low_x=array("low_x", m) if version > 1 else np.zeros(m),
        low_y=array("low_y", k) if version > 1 else np.zeros(k),
        xtx=xtx,
        pieces=pieces,
        xty=array("xty", m, k),
        yty=array("yty", k),
        diag=array("diag", m),
        names=names,
        flat_y=bool(archive["flat_y"]),
        target_names=target_names,
        categories=categories,
        runs=runs,
    )
    if sums.n_samples < 0 or sums.weight_sum < 0 or (sums.n_samples > 0) != (sums.weight_sum > 0):
        raise _Unreadable("is damaged: its counts contradict each other")
    if xtx is not None and not np.array_equal(np.diagonal(xtx), sums.diag):
        raise _Unreadable("is damaged: diag is not the diagonal of xtx")
    if pieces is not None and not _belongs(pieces[0], sums):
        raise _Unreadable("is damaged: its sums of squares are not those of its rows")
    if not all(
        np.array_equal(high + low, high)
        for high, low in ((sums.mean_x, sums.low_x), (sums.mean_y, sums.low_y))
    ):
        raise _Unreadable("is damaged: a mean has a low part that is too large")
    if sums.diag.min(initial=0.0) < 0 or sums.yty.min(initial=0.0) < 0:
        raise _Unreadable("is damaged: a sum of squares is negative")
    return sums


def _runs(text: str) -> tuple[Run, ...]:
    """The folds that moments are, checked."""
    stored = json.loads(text)
    runs = tuple(Run(name, source, of, frozenset(folds)) for name, source, of, folds in stored)
    for run in runs:
        numbers = [run.of, *run.folds]
        if not (
            all(isinstance(word, str) for word in (run.id, run.source))
            and all(isinstance(number, int) for number in numbers)
            and run.folds
            and 0 <= min(run.folds) <= max(run.folds) < run.of
        ):
            raise _Unreadable("is damaged: its folds contradict each other")
    return runs


def _belongs(rows: DenseRows, sums: Sums) -> bool:
    """Whether thin sums have the squares of their rows, but for rounding."""
    pairs = ((rows.A, sums.diag), (rows.y, sums.yty))
    return all(np.allclose(np.einsum("ij,ij->j", a, a), s, rtol=1e-3, atol=0) for a, s in pairs)
