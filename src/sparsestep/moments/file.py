"""Sums in a file: NumPy's ``.npz`` with a format name and version, checked when read.

Nothing in a file is executed, and a file is written completely or not at all.
"""

import json
import os
import zipfile
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from sparsestep.errors import MomentsFileError
from sparsestep.moments.sums import CentredRows, Run, Sums
from sparsestep.whole_file import whole_file
from sparsestep.words import repeated

Array = NDArray[np.float64]

FORMAT = "sparsestep moments"
# Version 1 had no `runs`, and means in single doubles.
VERSION = 2
# Far above the rounding of sums, far below what changes a fit.
TOLERANCE = 1e-8


class _Unreadable(Exception):
    """The reason why a file cannot be read, to follow the file's name in a sentence."""


def _require(fine: bool, problem: str) -> None:
    """Raise for a damaged file unless all is fine."""
    if not fine:
        raise _Unreadable(f"is damaged: {problem}")


def write(path: str | os.PathLike[str], sums: Sums) -> None:
    """Write sums to a file of exactly this name; thin ones as their dense rows."""
    arrays: dict[str, Any] = {
        "format": np.array(FORMAT),
        "version": np.array(VERSION),
        "n_samples": np.array(sums.n_samples),
        "weight_sum": np.array(sums.weight_sum),
        "mean_x": sums.mean_x,
        "mean_y": sums.mean_y,
        "low_x": sums.low[: sums.m],
        "low_y": sums.low[sums.m :],
        "flat_y": np.array(sums.flat_y),
        "xty": sums.xty,
        "yty": sums.yty,
        "diag": sums.diag,
        # Always there: a damaged directory of the archive must not look like a table without names.
        "feature_names": np.array(sums.names or (), dtype=np.str_),
        "has_names": np.array(sums.names is not None),
        "runs": np.array(
            json.dumps([[run.id, run.source, run.of, sorted(run.folds)] for run in sums.runs])
        ),
    }
    if sums.target_names is not None:
        arrays["target_names"] = np.array(sums.target_names, dtype=np.str_)
    if sums.categories:
        arrays["categories"] = np.array(json.dumps(sums.categories))
    private = sums.pieces is not None
    if private:
        rows = sums.kept_rows()
        arrays |= {"rows": rows.X, "targets": rows.y}
    else:
        arrays["xtx"] = sums.xtx
    with whole_file(path, "moments", private=private) as temporary, open(temporary, "wb") as file:
        np.savez(file, **arrays)


def read(path: str | os.PathLike[str]) -> Sums:
    """Read what `write` wrote; `MomentsFileError` for anything else."""
    with open(path, "rb") as file:
        try:
            if not zipfile.is_zipfile(file):
                raise _Unreadable("is not a moments file, or is cut short")
            _require_plain(file)
            with np.load(file, allow_pickle=False) as archive:
                return _from_archive(archive)
        except _Unreadable as error:
            raise MomentsFileError(f"{os.fspath(path)} {error}.") from error.__cause__
        except Exception as error:
            # zipfile and NumPy answer damage with a dozen kinds of exception.
            raise MomentsFileError(f"{os.fspath(path)} is damaged: {error}") from error


def _require_plain(file: BinaryIO) -> None:
    """Raise if an archive is compressed, or claims contents larger than itself."""
    with zipfile.ZipFile(file) as archive:
        members = archive.infolist()
    if any(member.compress_type != zipfile.ZIP_STORED for member in members):
        raise _Unreadable("is not a moments file: its contents are compressed")
    size = sum(member.file_size for member in members)
    _require(size <= os.fstat(file.fileno()).st_size, "its contents are larger than itself")
    file.seek(0)


def _from_archive(archive: Any) -> Sums:
    """Sums from an open ``.npz`` archive, every array checked against the others."""
    if "format" not in archive or str(archive["format"]) != FORMAT:
        raise _Unreadable("is a NumPy file but does not hold moments")

    def single(name: str, kind: Any) -> Any:
        value = archive[name]
        _require(not value.shape and np.issubdtype(value.dtype, kind), f"{name} is {value}")
        return value.item()

    version = single("version", np.integer)
    if version > VERSION:
        raise _Unreadable(
            f"has format version {version}, newer than {VERSION}, the newest that this "
            "sparsestep reads; update sparsestep"
        )
    _require(version >= 1, f"its format version is {version}")
    m, k = archive["xty"].shape
    flat_y = single("flat_y", np.bool_)
    _require(k == 1 or (k > 1 and not flat_y), f"it has {k} targets")

    def array(name: str, *shape: int) -> Array:
        values = archive[name]
        form = f"{name} has type {values.dtype} and shape {values.shape}"
        _require(values.dtype == np.float64 and values.shape == shape, form)
        _require(bool(np.isfinite(values).all()), f"{name} has values that are not finite")
        return np.asarray(values, order="C")

    def names_of(name: str, count: int, what: str) -> tuple[str, ...]:
        names = tuple(map(str, archive[name]))
        _require(len(names) == count, f"{len(names)} names for {count} {what}")
        if len(set(names)) < count:
            raise _Unreadable(f"cannot be used: two of its {what} are called {repeated(names)!r}")
        return names

    names = names_of("feature_names", m, "columns") if single("has_names", np.bool_) else None
    target_names = names_of("target_names", k, "targets") if "target_names" in archive else None
    categories: dict[str, tuple[str, ...]] = {}
    if "categories" in archive:
        stored = json.loads(str(archive["categories"]))
        categories = {str(name): tuple(map(str, known)) for name, known in stored.items()}
    runs = _runs(str(archive["runs"])) if version > 1 else ()
    xtx, pieces = None, None
    if "xtx" in archive:
        xtx = array("xtx", m, m)
        _require(np.array_equal(xtx, xtx.T), "xtx is not symmetric")
    else:
        n = len(archive["rows"])
        pieces = (CentredRows(array("rows", n, m), array("targets", n, k)),)
    low = np.zeros(m + k)
    if version > 1:
        low = np.concatenate([array("low_x", m), array("low_y", k)])
    sums = Sums(
        n_samples=single("n_samples", np.integer),
        weight_sum=float(array("weight_sum")),
        mean=np.concatenate([array("mean_x", m), array("mean_y", k)]),
        low=low,
        xtx=xtx,
        pieces=pieces,
        xty=array("xty", m, k),
        yty=array("yty", k),
        diag=array("diag", m),
        names=names,
        flat_y=flat_y,
        target_names=target_names,
        categories=categories,
        runs=runs,
    )
    n, W = sums.n_samples, sums.weight_sum
    _require(n >= 0 and W >= 0 and (n > 0) == (W > 0), "its counts contradict each other")
    _require(n > 1 or not (sums.diag.any() or sums.yty.any()), f"it has squares but {n} rows")
    if pieces is not None:
        _require(_belongs(pieces[0], sums), "its sums of squares are not those of its rows")
    rounded = np.array_equal(sums.mean + sums.low, sums.mean)
    _require(rounded, "a mean has a low part that is too large")
    smallest = min(sums.diag.min(initial=0.0), sums.yty.min(initial=0.0))
    _require(smallest >= 0, "a sum of squares is negative")
    if xtx is not None:
        _require(np.array_equal(np.diagonal(xtx), sums.diag), "diag is not the diagonal of xtx")
        _require(_is_possible(sums), "no rows have such sums")
    return sums


def _runs(text: str) -> tuple[Run, ...]:
    """The runs of the moments, checked."""
    stored = json.loads(text)
    runs = tuple(Run(name, source, of, frozenset(folds)) for name, source, of, folds in stored)
    for run in runs:
        words: list[Any] = [run.id, run.source]
        numbers: list[Any] = [run.of, *run.folds]
        _require(
            all(isinstance(word, str) for word in words)
            and all(isinstance(number, int) for number in numbers)
            and len(run.folds) > 0
            and 0 <= min(run.folds) <= max(run.folds) < run.of,
            "its folds contradict each other",
        )
    return runs


def _belongs(rows: CentredRows, sums: Sums) -> bool:
    """Whether thin sums are the sums of their rows, but for rounding."""
    pairs = ((rows.X, sums.diag), (rows.y, sums.yty))
    length = np.multiply.outer(np.sqrt(sums.diag), np.sqrt(sums.yty))
    return all(
        np.allclose(np.einsum("ij,ij->j", a, a), s, rtol=1e-3, atol=0) for a, s in pairs
    ) and bool(np.all(np.abs(rows.transposed_dot(rows.y) - sums.xty) <= 1e-3 * length))


def _is_possible(sums: Sums) -> bool:
    """Whether [S q; q' yty] is positive semi-definite, as sums of rows are, but for rounding.

    With columns of length one and L L' = S + TOLERANCE I, this is |L^-1 q|^2 <= yty.
    """
    used = np.flatnonzero(sums.diag)
    scale = np.sqrt(sums.diag[used])
    with np.errstate(over="ignore", invalid="ignore"):
        C = sums.gram[np.ix_(used, used)] / scale / scale[:, None]
        C[np.diag_indices_from(C)] += TOLERANCE
        try:
            # The transpose of a symmetric matrix in C order is in LAPACK's.
            L = linalg.cholesky(C.T, lower=True, overwrite_a=True, check_finite=False)
        except linalg.LinAlgError:
            return False
        q = sums.xty[used] / scale[:, None]
        T = linalg.solve_triangular(L, q, lower=True, check_finite=False)
        explained = np.einsum("ij,ij->j", T, T)
    return bool(np.all(explained <= sums.yty * (1.0 + TOLERANCE)))
