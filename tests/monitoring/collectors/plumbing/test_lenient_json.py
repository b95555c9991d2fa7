"""Finding JSON between other output of a tool."""

from __future__ import annotations

import pytest

from runvitals.monitoring.collectors.plumbing.lenient_json import find


@pytest.mark.parametrize(
    "output",
    [
        b'{"card0": {"a": "1"}}',
        b'WARNING: No such thing\n{"card0": {"a": "1"}}\n',
        b'[WARN] {driver} is old [2]\n\n  {"card0": {"a": "1"}}\nDone. {really}\n',
        b'{"level": "warn"}\n[WARN] {driver}\n{"card0": {"a": "1"}}\n{"level": "info"}\n{"lev',
        b'warning: 3 of [4] {"card0": {"a": "1"}}',
        b'\xef\xbb\xbf{"card0": {"a": "1"}}',
        b'\x1b[33mwarning\x1b[0m\n\x1b[1m{\x1b[0m"card0": {"a": \x1b[32m"1"\x1b[0m}}\x1b[K\n',
    ],
)
def test_an_object_between_messages_is_found(output: bytes) -> None:
    assert find(output) == {"card0": {"a": "1"}}


def test_a_list_of_objects_is_found() -> None:
    assert find(b'[2025-01-01 10:00] info\n[{"gpu": 0}, {"gpu": 1}]') == [{"gpu": 0}, {"gpu": 1}]
    assert find(b"[]\n") == []


def test_invalid_utf_8_affects_only_one_name() -> None:
    assert find(b'{"name": "Radeon \xae", "use": 5}') == {"name": "Radeon \ufffd", "use": 5}


@pytest.mark.parametrize(
    ("output", "why"),
    [
        (b"", "the output is empty"),
        (b"Invalid platform\n", "no JSON in the output: 'Invalid platform'"),
        (b'{"card0": {"a": "1"}, "card1": {"a"', "invalid JSON"),
        (b'[\n{"gpu": 0},\n{"gpu": 1', "invalid JSON"),
        (b"[1, 2]", "no JSON"),
        (b"[" * 100_000, "invalid JSON"),
    ],
)
def test_missing_or_incomplete_json_is_an_error_with_the_output(output: bytes, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        find(output)


def test_the_search_in_text_full_of_brackets_is_limited() -> None:
    with pytest.raises(ValueError, match="no JSON in the output"):
        find(b"[ x " * 500_000)
