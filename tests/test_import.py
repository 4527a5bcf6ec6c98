"""Importing the package costs little: other packages are imported when they are needed."""

import subprocess
import sys

import numpy as np
import pytest

import sparsestep
from sparsestep.sources import dask
from sparsestep.sources.request import load

LATE = {"matplotlib", "pyarrow", "dask", "distributed", "pyspark"}
LATE |= {"skglm", "rich", "cyclopts", "pandas"}


@pytest.mark.parametrize(
    ("before", "statement", "late"),
    [
        ("sklearn.linear_model", "from sparsestep import *", LATE),
        ("sys", "import sparsestep", {"numpy", "scipy", "sklearn", *LATE}),
    ],
)
def test_import_leaves_what_is_not_always_needed_for_later(before, statement, late):
    program = (
        f"import sys, {before}; before = set(sys.modules)\n{statement}\n"
        "print(*{name.split('.')[0] for name in set(sys.modules) - before})"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    imported = set(done.stdout.split())
    assert "sparsestep" in imported and not late & imported


def test_each_public_name_is_there():
    assert set(sparsestep.__all__) <= set(dir(sparsestep))
    for name in sparsestep.__all__:
        assert getattr(sparsestep, name) is getattr(sparsestep, name)
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = sparsestep.nothing


def test_a_missing_library_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "dask", None)
    with pytest.raises(ImportError, match=r"needs dask, .*: pip install 'sparsestep\[dask\]'$"):
        dask.moments(np.ones((2, 2)), np.ones(2))
    # Where Spark was used before, its modules are remembered one by one.
    monkeypatch.setitem(sys.modules, "pyspark", None)
    monkeypatch.setitem(sys.modules, "pyspark.sql.functions", None)
    with pytest.raises(ImportError, match=r"needs pyspark, .* install 'sparsestep\[spark\]'$"):
        load("pyspark.sql.functions", "spark")
