"""Limits of how many rows there are hold when requests come at once: `test_last_administrator` tries some."""

from __future__ import annotations

import ast
from pathlib import Path

import runvitals.server

_TURNS = ("take_turns", "with_for_update", "lock_user", "lock_known_runs")
_RETRIES = "reports/storage/report_table.py"
"""Counts how often it tried."""


def test_what_counts_rows_lets_requests_take_turns() -> None:
    root = Path(runvitals.server.__file__).parent
    unlocked, found = [], 0
    for path in sorted(root.glob("*/storage/**/*.py")):
        source = path.read_text()
        for function in ast.walk(ast.parse(source)):
            if not isinstance(function, ast.FunctionDef):
                continue
            text = ast.get_source_segment(source, function) or ""
            raised = [ast.unparse(each) for each in ast.walk(function) if isinstance(each, ast.Raise)]
            if path.match(_RETRIES) or not any(each.startswith("raise LimitReached") for each in raised):
                continue
            found += 1
            if not any(turn in text for turn in _TURNS):
                unlocked.append(f"{path.relative_to(root)}: {function.name}")
    assert not unlocked, "count with `check_room`, or call `take_turns` before"
    assert found
