"""One name, one thing: no two classes of the package have the same name."""

from __future__ import annotations

import ast
from collections import defaultdict
from pathlib import Path

SOURCE = Path(__file__).parents[1] / "src" / "runvitals"
# Names that two classes share, with the reason.
SHARED = {
    "Run": "`sdk.run.Run` is public: what `init()` returns. `model.run.Run` is the run that it records.",
    "Table": "`sdk.media.table.Table` is public: what `log()` takes. The API has tables of columns.",
}


def class_names() -> dict[str, list[str]]:
    """The modules of each class; private classes are used in one module only."""
    modules: dict[str, list[str]] = defaultdict(list)
    for path in sorted(SOURCE.rglob("*.py")):
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                modules[node.name].append(path.relative_to(SOURCE).as_posix())
    return modules


def test_every_class_has_a_name_of_its_own() -> None:
    doubled = {name: modules for name, modules in class_names().items() if len(modules) > 1}
    assert {name: modules for name, modules in doubled.items() if name not in SHARED} == {}


def test_every_exception_is_needed() -> None:
    names = class_names()
    assert [name for name in SHARED if len(names[name]) < 2] == []
