"""The recipes of docs/any_size.md run as they are printed, on real files."""

import re
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sparsestep import read_moments

PAGE = Path(__file__).parents[1] / "docs" / "any_size.md"


def recipes():
    """The Python blocks of the page that need no cluster."""
    blocks = re.findall(r"^```python\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.M | re.S)
    return [block for block in blocks if "dask" not in block and "spark." not in block]


def houses(n, seed):
    """A table with the columns that the page speaks of."""
    rng = np.random.default_rng(seed)
    size, rooms = rng.normal(100, 20, n), rng.integers(1, 7, n)
    return pa.table({"size": size, "rooms": rooms, "price": 3 * size + rng.normal(size=n)})


@pytest.mark.filterwarnings("error")
def test_recipes(tmp_path, monkeypatch, capsys):
    memory, site, merge = recipes()
    monkeypatch.chdir(tmp_path)
    (tmp_path / "data").mkdir()
    for part in range(2):
        pq.write_table(houses(300, part), f"data/{part}.parquet")
    names = {}
    exec(memory, names)
    assert names["model"].coef_ == pytest.approx([3, 0], abs=0.05)
    assert "size" in capsys.readouterr().out

    for number, letter in enumerate("ab"):
        pq.write_table(houses(300, number), "rows.parquet")
        exec(site.replace("site-a", f"site-{letter}"), {})
    names = {}
    exec(merge, names)
    assert sum(fold.n_samples for fold in names["folds"]) == 600
    pooled = read_moments("data", "price", features=["size", "rooms"])
    assert names["model"].coef_ == pytest.approx([3, 0], abs=0.05)
    assert sum(names["folds"][1:], names["folds"][0]).xtx == pytest.approx(pooled.xtx)
