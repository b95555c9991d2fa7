"""What is counted or replaced lets requests take turns: `test_last_administrator` sends some at once."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import runvitals.server

_TURNS = re.compile("take_turns|check_room|with_for_update|lock_user|lock_known_runs|locked_team")
_RETRIES = "report_table.py"
"""Counts how often it tried."""
_ONE_WRITER = {"recovery_code", "one_time_token", "alert_rule_state"}
"""Rows of random keys, or that one thread writes."""


def functions() -> Iterator[tuple[Path, ast.FunctionDef, str]]:
    root = Path(runvitals.server.__file__).parent
    for path in sorted(root.glob("**/storage/**/*.py")):
        source = path.read_text()
        for function in ast.walk(ast.parse(source)):
            if isinstance(function, ast.FunctionDef):
                yield path, function, ast.get_source_segment(source, function) or ""


def test_what_counts_rows_takes_turns() -> None:
    counting = [
        (path.name, function.name, text)
        for path, function, text in functions()
        if path.name != _RETRIES
        and any(
            isinstance(each, ast.Raise) and "LimitReached(" in ast.unparse(each)
            for each in ast.walk(function)
        )
    ]
    assert counting
    unlocked = [(where, name) for where, name, text in counting if not _TURNS.search(text)]
    assert not unlocked, "count with `check_room`, or call `take_turns` before"


def test_what_replaces_rows_takes_turns() -> None:
    """Of two requests, one removes the row, and both add it: a unique key would be there twice."""
    unlocked, found = [], 0
    for path, function, text in functions():
        removed = set(re.findall(r"\bdelete\((\w+)\)", text))
        added = set(re.findall(r"\binsert\((?:connection, )?(\w+)\)", text))
        replaced = (removed & added) - _ONE_WRITER
        found += bool(replaced)
        if replaced and not _TURNS.search(text) and "on_conflict" not in text:
            unlocked.append((path.name, function.name))
    assert not unlocked, "call `take_turns` before the rows are removed"
    assert found
