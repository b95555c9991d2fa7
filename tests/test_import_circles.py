"""No module of the package may import itself through others."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from pathlib import Path

import runvitals

# Circular imports that still exist, and the package responsible for each. This list may only shrink.
KNOWN: dict[frozenset[str], str] = {}


def test_no_circular_imports() -> None:
    circles = set(circles_of(imports_of(Path(runvitals.__file__).parent)))
    new = [" -> ".join(sorted(circle)) for circle in circles - set(KNOWN)]
    assert not new, "modules that import each other:\n" + "\n".join(new)
    assert not set(KNOWN) - circles, "these circles are gone: remove them from KNOWN"


def test_circles_through_functions_are_found_but_not_for_types(tmp_path: Path) -> None:
    package = tmp_path / "runvitals"
    (package / "gpu").mkdir(parents=True)
    (package / "__init__.py").write_text("")
    (package / "gpu" / "__init__.py").write_text("")
    (package / "gpu" / "probe.py").write_text("def probe():\n    from runvitals.gpu import collector\n")
    (package / "gpu" / "collector.py").write_text("from runvitals.gpu.probe import probe\n")
    (package / "gpu" / "library.py").write_text(
        "TYPE_CHECKING = False\nif TYPE_CHECKING:\n    from runvitals.gpu.session import Session\n"
    )
    (package / "gpu" / "session.py").write_text("import runvitals.gpu.library\n")
    assert list(circles_of(imports_of(package))) == [
        frozenset({"runvitals.gpu.probe", "runvitals.gpu.collector"})
    ]


def imports_of(package: Path) -> dict[str, set[str]]:
    """Module -> the package's modules that it imports, at its top or within a function.

    `from a.b import c` imports the module `a.b.c` where there is one, else `a.b`. That importing `a.b.c` runs
    the `__init__` of `a` and `a.b` as well is left out: it would tie every module to every other.
    """
    files = {_name(path, package): path for path in package.rglob("*.py")}
    return {
        module: {target for target in _imports(ast.parse(path.read_text()), files) if target != module}
        for module, path in files.items()
    }


def circles_of(imports: Mapping[str, set[str]]) -> Iterator[frozenset[str]]:
    """The strongly connected components with several modules."""
    reached = {module: _reachable(module, imports) for module in imports}
    seen: set[str] = set()
    for module in sorted(imports):
        if module not in seen and module in reached[module]:
            circle = frozenset(other for other in reached[module] if module in reached[other])
            seen |= circle
            yield circle


def _reachable(module: str, imports: Mapping[str, set[str]]) -> set[str]:
    reached: set[str] = set()
    waiting = [module]
    while waiting:
        for target in imports[waiting.pop()] - reached:
            reached.add(target)
            waiting.append(target)
    return reached


def _imports(node: ast.AST, files: Mapping[str, Path]) -> Iterator[str]:
    for child in ast.iter_child_nodes(node):
        if (
            isinstance(child, ast.If)
            and isinstance(child.test, ast.Name)
            and child.test.id == "TYPE_CHECKING"
        ):
            for statement in child.orelse:
                yield from _imports(statement, files)
        elif isinstance(child, ast.Import):
            yield from (alias.name for alias in child.names if alias.name in files)
        elif isinstance(child, ast.ImportFrom) and child.module in files:
            for alias in child.names:
                submodule = f"{child.module}.{alias.name}"
                yield submodule if submodule in files else child.module
        else:
            yield from _imports(child, files)


def _name(path: Path, package: Path) -> str:
    parts = path.relative_to(package.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
