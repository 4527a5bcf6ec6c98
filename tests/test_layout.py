"""The map of modules in CONTRIBUTING.md is true, and so are its two rules on imports."""

import ast
import re
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "sparsestep"
CORE_MAY_IMPORT = sys.stdlib_module_names | {"numpy", "scipy", "threadpoolctl", "sparsestep"}


def rows_of_the_map(heading=None):
    """Module files in the order of the map; of one of its sections if a heading is given."""
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    if heading is not None:
        text = text.split(f"### {heading}\n", 1)[1].split("\n#", 1)[0]
    return re.findall(r"^\| `([\w/]+\.pyx?)` \| \S", text, flags=re.MULTILINE)


def imported_names(file):
    """Dotted names that a module's code imports, wherever the statement stands, made absolute."""
    if file.suffix == ".pyx":  # its language is not Python; it imports SciPy alone
        return
    package = ("sparsestep", *file.relative_to(PACKAGE).parent.parts)
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else ()
            parts = (*base, *(node.module.split(".") if node.module else ()))
            yield from (".".join((*parts, alias.name)) for alias in node.names)


def file_of(name):
    """The module file, as in the map, that a dotted name of this package leads to."""
    parts = name.split(".")[1:]
    while parts:
        path = "/".join(parts)
        for suffix in (".py", ".pyx"):
            if (PACKAGE / f"{path}{suffix}").is_file():
                return f"{path}{suffix}"
        if (PACKAGE / path / "__init__.py").is_file():
            return f"{path}/__init__.py"
        parts.pop()
    return "__init__.py"


def test_the_map_lists_each_module_once():
    files = [path.relative_to(PACKAGE).as_posix() for path in PACKAGE.rglob("*.py*")]
    files = [file for file in files if file.endswith((".py", ".pyx"))]
    assert sorted(rows_of_the_map()) == sorted(files)


@pytest.mark.parametrize("module", rows_of_the_map())
def test_a_module_imports_only_what_stands_above_it(module):
    order = rows_of_the_map()
    above = order[: order.index(module)]
    own = {name for name in imported_names(PACKAGE / module) if name.split(".")[0] == "sparsestep"}
    assert {name for name in own if file_of(name) not in above} == set()


@pytest.mark.parametrize("module", rows_of_the_map("Numerical core"))
def test_the_core_imports_nothing_but_numpy_and_scipy(module):
    roots = {name.split(".")[0] for name in imported_names(PACKAGE / module)}
    assert roots - CORE_MAY_IMPORT == set()


def name_of_module(module):
    """The dotted name of a module file of the map."""
    return ".".join(("sparsestep", *Path(module).with_suffix("").parts)).removesuffix(".__init__")


def public_names(file):
    """What a module's ``__all__`` lists; None if it has none."""
    if file.suffix == ".pyx":
        return None
    for node in ast.parse(file.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
            return ast.literal_eval(node.value)
    return None


def test_modules_list_what_others_import_from_them():
    public = {module: public_names(PACKAGE / module) for module in rows_of_the_map()}
    unlisted = [
        (module, name)
        for module in public
        for name in imported_names(PACKAGE / module)
        if name.startswith("sparsestep.")
        and (home := file_of(name)) != module
        and public[home] is not None
        and name != name_of_module(home)
        and name.removeprefix(f"{name_of_module(home)}.") not in public[home]
    ]
    assert unlisted == []
