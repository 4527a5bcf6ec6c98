"""The map of packages in CONTRIBUTING.md is true, and so are its two rules on imports."""

import ast
import re
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "sparsestep"
MAP = [
    name.removesuffix(".py").rstrip("/")
    for row in (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8").splitlines()
    if row.startswith("| `")
    for name in re.findall(r"`([\w/.]+)`", row.split("|")[1])
]
CORE = ("penalty", "reference", "moments", "solvers", "selection")
CORE_MAY_IMPORT = sys.stdlib_module_names | {"numpy", "scipy", "threadpoolctl", "sparsestep"}
MODULES = {
    file: file.relative_to(PACKAGE).parts[0].removesuffix(".py")
    for file in sorted(PACKAGE.rglob("*.py"))
    if file.name not in ("__main__.py",) and file != PACKAGE / "__init__.py"
}


def imported_names(file):
    """Dotted names that a module imports, wherever the statement stands."""
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{file.name}: a relative import"
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def test_the_map_lists_each_package():
    assert set(MODULES.values()) == set(MAP)


@pytest.mark.parametrize("package", MAP)
def test_a_package_imports_only_what_stands_above_it(package):
    above = [*MAP[: MAP.index(package) + 1], "__version__"]
    wrong = {
        (file.name, name)
        for file, home in MODULES.items()
        if home == package
        for name in imported_names(file)
        if name.startswith("sparsestep.") and name.split(".")[1] not in above
    }
    # The study uses the public interface.
    public = set(__import__("sparsestep").__all__)
    assert {(file, name) for file, name in wrong if name.split(".")[1] not in public} == set()


@pytest.mark.parametrize("package", CORE)
def test_the_core_imports_nothing_but_numpy_and_scipy(package):
    roots = {
        name.split(".")[0]
        for file, home in MODULES.items()
        if home == package
        for name in imported_names(file)
    }
    assert roots - CORE_MAY_IMPORT == set()


def test_no_module_uses_a_private_name_of_another():
    private = [
        (file.name, name)
        for file in MODULES
        for name in imported_names(file)
        if name.startswith("sparsestep.") and name.rsplit(".", 1)[1].startswith("_")
    ]
    assert [each for each in private if each[1] != "sparsestep.__version__"] == []
