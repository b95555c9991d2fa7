"""Rows of history, from the lines that clients send."""

from __future__ import annotations

import json
from typing import Any

from runvitals.model.limits import NAME_CHARACTERS
from runvitals.server.doors.wandb.logged_rows import HistoryLine, parse_history
from runvitals.server.doors.wandb.stream_body import NewLines

NOW_MS = 1_760_000_000_000


def parsed(value: dict[str, Any]) -> HistoryLine:
    (row,) = parse_history(NewLines(0, [json.dumps(value)]), 0, NOW_MS).rows
    return row


def test_nested_values_have_dotted_names() -> None:
    row = parsed({"a": {"b": 1, "c": {"d": 2.5, "images": []}}})
    assert (row.numbers, list(row.others)) == ({"a.b": 1.0, "a.c.d": 2.5}, ["a.c.images"])


def test_a_long_name_is_not_copied_for_each_value_within() -> None:
    """Otherwise a line of a few megabytes takes gigabytes."""
    within = {f"m{number}": [] for number in range(500)} | {f"n{number}": 1 for number in range(500)}
    row = parsed({"x" * 100_000: {"y" * 100_000: within}})
    assert (len(row.others), len(row.numbers)) == (500, 500)
    assert max(map(len, (*row.others, *row.numbers))) <= NAME_CHARACTERS
