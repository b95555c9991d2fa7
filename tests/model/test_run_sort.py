"""The sort order of lists of runs, and the cursors of their pages."""

from __future__ import annotations

import base64
import json

import pytest

from runvitals.model.run_sort import RunSort, decode_cursor, encode_cursor


def encoded(text: str) -> str:
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


def test_a_cursor_returns_its_position() -> None:
    sort = RunSort("config.lr", descending=False)
    for position in (["abc"], [1, 0.1, "ü"], [None, 2**60, ""]):
        assert decode_cursor(sort, encode_cursor(sort, position), len(position)) == position


@pytest.mark.parametrize(
    "after",
    [
        "",
        "?",
        "ü",
        encoded("{"),
        encoded("7"),
        encoded(json.dumps(["-started_ms"])),
        encoded(json.dumps(["-started_ms", 1, 2])),
        encoded(json.dumps([["-started_ms"], 1])),
        encoded("[" * 10_000),
    ],
)
def test_other_texts_are_rejected(after: str) -> None:
    with pytest.raises(ValueError, match="expected the `next` of a previous page"):
        decode_cursor(RunSort(), after, 1)


def test_a_cursor_of_another_order_is_rejected() -> None:
    cursor = encode_cursor(RunSort("name", descending=False), ["abc"])
    for sort in (RunSort("name"), RunSort("id", descending=False)):
        with pytest.raises(ValueError, match="belongs to a list sorted by name; use the same order"):
            decode_cursor(sort, cursor, 1)


def test_an_unknown_column_is_rejected() -> None:
    with pytest.raises(ValueError, match="cannot sort runs by 'colour'; expected one of id, name, "):
        RunSort("colour")


def test_an_order_of_several_columns_is_parsed() -> None:
    order = RunSort.parse("-summary.loss,name,-gpu.util")
    assert [(part.by, part.descending) for part in order.parts] == [
        ("summary.loss", True),
        ("name", False),
        ("system.gpu", True),
    ]
    assert RunSort.parse(order.text) == order


def test_the_direction_of_a_single_name() -> None:
    assert RunSort.parse("name").descending
    assert not RunSort.parse("name", descending=False).descending
    assert RunSort.parse("-name", descending=False).descending


def test_a_field_may_have_commas_in_its_name() -> None:
    assert RunSort.parse("config.a,b").by == "config.a,b"


def test_too_many_columns_are_rejected() -> None:
    with pytest.raises(ValueError, match="by 5 columns; expected at most 4"):
        RunSort.parse("name,id,state,group,project")
