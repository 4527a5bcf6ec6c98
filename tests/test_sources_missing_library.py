import sys

import numpy as np
import pytest

from sparsestep.sources import dask
from sparsestep.sources.request import load


def test_a_missing_library_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "dask", None)
    with pytest.raises(ImportError, match=r"needs dask, .*: pip install 'sparsestep\[dask\]'$"):
        dask.moments(np.ones((2, 2)), np.ones(2))
    # Where Spark was used before, its modules are remembered one by one.
    monkeypatch.setitem(sys.modules, "pyspark", None)
    monkeypatch.setitem(sys.modules, "pyspark.sql.functions", None)
    with pytest.raises(ImportError, match=r"needs pyspark, .* install 'sparsestep\[spark\]'$"):
        load("pyspark.sql.functions", "spark")
