"""Tests wait as long as a busy machine needs."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

TESTS = Path(__file__).parent
REQUESTS = {"Client", "get", "post", "put", "patch", "delete", "request", "stream"}


def requests(path: Path) -> Iterator[ast.Call]:
    """The calls of httpx in a file that reach a server through a socket."""
    for node in ast.walk(ast.parse(path.read_text())):
        match node:
            case ast.Call(func=ast.Attribute(value=ast.Name(id="httpx"), attr=name)) if name in REQUESTS:
                if "transport" not in keywords(node):
                    yield node


def keywords(call: ast.Call) -> set[str | None]:
    return {keyword.arg for keyword in call.keywords}


def test_requests_do_not_give_up_after_the_five_seconds_of_httpx() -> None:
    hasty = [
        f"{path.relative_to(TESTS)}:{call.lineno}"
        for path in TESTS.rglob("*.py")
        for call in requests(path)
        if "timeout" not in keywords(call)
    ]
    assert not hasty, f"pass timeout=PATIENCE_S in {hasty}"
