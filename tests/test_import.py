import subprocess
import sys

import pytest

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

PROGRAM = """
import sys
import sklearn.linear_model
before = set(sys.modules)
import sparsestep
print(*{name.split(".")[0] for name in set(sys.modules) - before})
"""


@pytest.fixture(scope="module")
def imported():
    """Top-level packages that importing sparsestep adds to what scikit-learn imports itself."""
    run = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True
    )
    return set(run.stdout.split())


@pytest.mark.parametrize("name", LATE)
def test_import_leaves_what_is_not_always_needed_for_later(imported, name):
    assert "sparsestep" in imported
    assert name not in imported
