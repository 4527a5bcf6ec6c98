import subprocess
import sys

import pytest

import sparsestep

LATE = [
    "matplotlib",
    "pyarrow",
    "dask",
    "distributed",
    "pyspark",
    "skglm",
    "rich",
    "cyclopts",
    "pandas",
]

ALL = """
import sys
import sklearn.linear_model
before = set(sys.modules)
from sparsestep import *
print(*{name.split(".")[0] for name in set(sys.modules) - before})
"""

NONE = """
import sys
import sparsestep
print(*{name.split(".")[0] for name in sys.modules})
"""


def run(program):
    """What a program prints."""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return set(done.stdout.split())


@pytest.fixture(scope="module")
def imported():
    """Top-level packages that all public names add to what scikit-learn imports itself."""
    return run(ALL)


@pytest.mark.parametrize("name", LATE)
def test_import_leaves_what_is_not_always_needed_for_later(imported, name):
    assert "sparsestep" in imported
    assert name not in imported


def test_the_package_itself_imports_nothing():
    assert run(NONE).isdisjoint({"numpy", "scipy", "sklearn", *LATE})


def test_each_public_name_is_there():
    assert set(sparsestep.__all__) <= set(dir(sparsestep))
    for name in sparsestep.__all__:
        assert getattr(sparsestep, name) is getattr(sparsestep, name)
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = sparsestep.nothing
