"""Tests wait as long as a busy machine needs."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

TESTS = Path(__file__).parent
REQUESTS = {"Client", "get", "post", "put", "patch", "delete", "request", "stream"}
WAITING = {"fail_after", "join", "wait", "settimeout"}


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


def limits(path: Path) -> Iterator[ast.expr]:
    """Limits of time in a file that are numbers: of `wait(30)`, `timeout=30`."""
    for node in ast.walk(ast.parse(path.read_text())):
        if not isinstance(node, ast.Call):
            continue
        yield from (keyword.value for keyword in node.keywords if keyword.arg == "timeout")
        match node:
            case ast.Call(func=ast.Attribute(attr=name), args=[limit]) if name in WAITING:
                yield limit


def is_hasty(limit: ast.expr) -> bool:
    """Not what must pass, such as 0.1 s, and not the milliseconds of a clock of the test."""
    return (
        isinstance(limit, ast.Constant) and isinstance(limit.value, (int, float)) and 5 <= limit.value < 120
    )


def test_nothing_is_waited_for_with_less_patience() -> None:
    hasty = [
        f"{path.relative_to(TESTS)}:{limit.lineno}"
        for path in TESTS.rglob("*.py")
        for limit in limits(path)
        if is_hasty(limit)
    ]
    assert not hasty, f"wait for PATIENCE_S in {hasty}"
