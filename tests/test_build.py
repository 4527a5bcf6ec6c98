"""The wheel: built without fetching anything, and used where there is no compiler."""

import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


def build(folder, **environment):
    """Build a wheel from a copy of the sources."""
    for name in ("setup.py", "pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, folder)
    ignore = shutil.ignore_patterns("*.so", "*.c", "__pycache__")
    shutil.copytree(ROOT / "src" / "sparsestep", folder / "src" / "sparsestep", ignore=ignore)
    command = [sys.executable, "-m", "pip", "wheel", "--no-deps", "--no-build-isolation", "."]
    return subprocess.run(
        [*command, "--wheel-dir", "dist"],
        cwd=folder,
        env=os.environ | environment,
        capture_output=True,
        text=True,
    )


@pytest.mark.slow
@pytest.mark.skipif(not (shutil.which("gcc") or shutil.which("cc")), reason="no C compiler")
def test_a_wheel_needs_no_compiler(tmp_path):
    built = build(tmp_path)
    assert built.returncode == 0, built.stderr
    (wheel,) = (tmp_path / "dist").iterdir()
    assert "-cp311-abi3-" in wheel.name
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        archive.extractall(tmp_path / "installed")
    assert {"sparsestep/py.typed", "sparsestep/solvers/annealing.pyi"} <= set(names)
    assert not [name for name in names if name.endswith((".c", ".h", ".pyx"))]
    script = (
        "import sparsestep, numpy as np; print(sparsestep.__file__)\n"
        "X = np.random.default_rng(0).normal(size=(200, 40))\n"
        "print(np.flatnonzero(sparsestep.SparseStepCV().fit(X, X[:, 3] + X[:, 7]).coef_))"
    )
    used = subprocess.run(
        [sys.executable, "-c", script],
        env={"PATH": "", "PYTHONPATH": str(tmp_path / "installed"), "HOME": str(tmp_path)},
        capture_output=True,
        text=True,
    )
    assert used.returncode == 0, used.stderr
    assert str(tmp_path) in used.stdout and "[3 7]" in used.stdout


@pytest.mark.slow
def test_without_a_compiler_one_sentence_says_what_to_install(tmp_path):
    built = build(tmp_path, CC="/no/compiler", LDSHARED="/no/compiler")
    assert built.returncode != 0
    assert "apt install gcc" in built.stderr
