"""Docstrings of functions say what they do: "Return the rights of a key.", not "What a key may do."."""

from __future__ import annotations

import ast
from pathlib import Path

SOURCE = Path(__file__).parents[1] / "src" / "runvitals"


def test_no_docstring_of_a_function_begins_with_what() -> None:
    functions = (
        (path.relative_to(SOURCE).as_posix(), node)
        for path in sorted(SOURCE.rglob("*.py"))
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
    )
    assert [
        (path, node.name) for path, node in functions if (ast.get_docstring(node) or "").startswith("What ")
    ] == []
