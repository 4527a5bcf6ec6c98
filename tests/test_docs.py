"""The Python and the commands in README.md and in the pages of docs/ run as they are printed.

The blocks of a page run in order, in one namespace and in an empty folder but for the files that
`files_of_the_pages` puts there. Blocks with ``>>>`` must print what they say they print, and so
must the commands that follow a ``$`` in console blocks. A block in a language that is neither run
nor known not to be Python is an error, so that none is passed over.
"""

import doctest
import os
import re
import subprocess
import sys
from contextlib import ExitStack, contextmanager
from importlib import import_module
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from sklearn.datasets import load_diabetes

import sparsestep
from source_data import needs_java, spark_session

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
NOT_PYTHON = {"sh", "r", "text", "json", "bibtex", "{include}", "{toctree}"}
RUN = {"python", "console"}
FLAGS = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
FENCE = re.compile(
    r"^(?P<marks>`{3,}|~{3,})(?P<info>[^\n]*)\n(?P<body>.*?)^(?P=marks)\s*$", re.M | re.S
)


def fences(page):
    """Language, text and line number of each fenced block of a page."""
    text = page.read_text(encoding="utf-8")
    for found in FENCE.finditer(text):
        language = (found["info"].split() or [""])[0]
        yield language, found["body"], text.count("\n", 0, found.start("body"))


def code(page):
    """The blocks of a page that run: Python, and commands."""
    return [(body, line) for language, body, line in fences(page) if language in RUN]


def run(page, line, body, namespace):
    """Run one block; errors name the page and its line."""
    name = str(page.relative_to(ROOT))
    if body.startswith("$ "):
        run_commands(name, line, body)
        return
    if ">>>" not in body:
        exec(compile("\n" * line + body, name, "exec"), namespace)
        return
    test = doctest.DocTestParser().get_doctest(body, {}, name, name, line)
    test.globs = namespace
    runner = doctest.DocTestRunner(optionflags=FLAGS)
    said = []
    runner.run(test, out=said.append, clear_globs=False)
    assert runner.failures == 0, "".join(said)


def run_commands(name, line, body):
    """Run the commands of a console block; each must succeed and print what follows it."""
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    for part in re.split(r"^\$ ", body, flags=re.M)[1:]:
        command, _, expected = part.partition("\n")
        done = subprocess.run(
            ["bash", "-c", command],
            env={**os.environ, "PATH": path, "COLUMNS": "100"},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        assert done.returncode == 0, f"{name}, line {line}: {command}\n{done.stdout}"
        same = doctest.OutputChecker().check_output(expected, done.stdout, FLAGS)
        assert same, f"{name}, line {line}: {command} prints\n{done.stdout}"


def files_of_the_pages(folder):
    """The tables that the pages read: flats with a price, patients with their progress."""
    rng = np.random.default_rng(0)
    (folder / "data").mkdir()
    for file in ("data/0.parquet", "data/1.parquet", "rows.parquet"):
        size, rooms = rng.normal(100, 20, 200), rng.integers(1, 7, 200)
        flats = {"size": size, "rooms": rooms, "price": 3 * size + rng.normal(size=200)}
        pq.write_table(pa.table(flats), folder / file)
    patients = load_diabetes(as_frame=True, scaled=False).frame
    patients.rename(columns={"target": "progression"}).to_csv(folder / "patients.csv", index=False)


@contextmanager
def dask_cluster():
    """Address of a Dask scheduler with one worker, in this process."""
    distributed = pytest.importorskip("distributed", reason="needs the extra sparsestep[dask]")
    with distributed.LocalCluster(
        n_workers=1, threads_per_worker=1, processes=False, dashboard_address=":0"
    ) as cluster:
        try:
            yield cluster.scheduler_address
        finally:
            distributed.default_client().close()


def of_page(page):
    """The page as a parameter, marked if it needs Spark."""
    needs_spark = any("spark." in body for body, _ in code(page))
    marks = [pytest.mark.spark, pytest.mark.slow, needs_java] if needs_spark else []
    return pytest.param(page, marks=marks, id=page.relative_to(ROOT).as_posix())


# What Dask and Spark do with pandas is not for these pages to mend.
@pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas")
@pytest.mark.filterwarnings("ignore:The inplace keyword in DataFrame.reset_index is deprecated")
@pytest.mark.parametrize("page", [of_page(page) for page in PAGES if code(page)])
def test_the_code_of_a_page_runs(page, tmp_path, monkeypatch):
    monkeypatch.setenv("MPLBACKEND", "agg")
    monkeypatch.chdir(tmp_path)
    files_of_the_pages(tmp_path)
    # Only addresses are replaced: of a cluster and of a bucket that exist in no test.
    local = {"s3://bucket/table/": str(tmp_path / "data")}
    namespace = {"__name__": "page"}
    with ExitStack() as stack:
        for body, line in code(page):
            if "scheduler:8786" in body and "scheduler:8786" not in local:
                local["scheduler:8786"] = stack.enter_context(dask_cluster())
            if "spark." in body and "spark" not in namespace:
                pytest.importorskip("pyspark", reason="needs the extra sparsestep[spark]")
                namespace["spark"] = stack.enter_context(spark_session(1))
            for address, stand_in in local.items():
                body = body.replace(address, stand_in)
            run(page, line, body, namespace)


def test_the_recipes_of_any_size_have_the_model_of_all_rows(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    files_of_the_pages(tmp_path)
    blocks = [body for body, _ in code(ROOT / "docs" / "any_size.md")]
    memory, site, merge = (b for b in blocks if "dask" not in b and "spark." not in b)
    names = {}
    exec(memory, names)
    assert names["model"].coef_ == pytest.approx([3, 0], abs=0.05)
    exec(site, {})
    exec(site.replace("site-a", "site-b").replace("rows.parquet", "data"), {})
    exec(merge, names)
    assert names["model"].coef_ == pytest.approx([3, 0], abs=0.05)
    merged = sum(names["folds"][1:], names["folds"][0])
    parts = [sparsestep.read_moments(part, "price") for part in ("data", "rows.parquet")]
    assert merged.n_samples == 600
    assert merged.xtx == pytest.approx((parts[0] + parts[1]).xtx)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_each_block_is_run_or_is_not_python(page):
    text = page.read_text(encoding="utf-8")
    blocks = list(fences(page))
    assert 2 * len(blocks) == len(re.findall(r"^\s*(?:`{3,}|~{3,})", text, re.M)), (
        "a fence is indented or not closed: its block would not run"
    )
    others = {language for language, _, _ in blocks} - RUN
    assert others <= NOT_PYTHON
    loose = FENCE.sub("", text)
    assert ">>>" not in loose, "an example outside a block would not run"


def test_the_readme_shows_what_the_demo_prints(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    [shown] = [body for language, body, _ in fences(ROOT / "README.md") if language == "text"]
    timed = re.sub(r"(?<=1010 fits)[ .\d]+", " ...", shown)
    assert timed != shown
    run_commands("README.md", 0, f"$ sparsestep demo\n...\n{timed}")


def test_the_api_page_lists_the_public_names():
    page = (ROOT / "docs" / "api.rst").read_text(encoding="utf-8")
    listed = re.findall(r"^   (\w+)$", page, re.M)
    assert sorted([*listed, "__version__"]) == sorted(sparsestep.__all__)
    inner = {"errors": [], "sources": ["read_moments"]}
    for module, name in re.findall(r"^   ([\w.]+)\.(\w+)$", page, re.M):
        inner[module].append(name)
        assert getattr(import_module(f"sparsestep.{module}"), name).__doc__
    for module, names in inner.items():
        assert sorted(names) == sorted(import_module(f"sparsestep.{module}").__all__)


def test_a_wrong_example_fails():
    page = ROOT / "docs" / "wrong.md"
    with pytest.raises(AssertionError, match=r'File "docs/wrong.md", line 7'):
        run(page, 6, ">>> 1 + 1\n3\n", {})
    with pytest.raises(ZeroDivisionError):
        run(page, 6, "1 / 0\n", {})
    with pytest.raises(AssertionError, match=r"docs/wrong.md, line 6: echo 2 prints\s+2"):
        run(page, 6, "$ echo 2\n3\n", {})
    with pytest.raises(AssertionError, match="false"):
        run(page, 6, "$ false\n", {})
