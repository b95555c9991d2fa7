"""What values of JSON may be."""

from __future__ import annotations

from datetime import datetime, timezone

import msgspec
import pytest

from runvitals.model.json_values import check, decode


def nested(levels: int) -> str:
    return "[" * levels + "]" * levels


def test_what_json_has_is_allowed() -> None:
    assert decode('{"lr": 0.1, "layers": [1, null, true, "caf\\u00e9 \\ud83d\\ude00"]}') == {
        "lr": 0.1,
        "layers": [1, None, True, "café 😀"],
    }
    assert decode(nested(100))


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (
            '{"data": ' + nested(100) + "}",
            r"data(\[0\])+.*: lists and maps are nested too deeply; expected at most 100",
        ),
        (nested(100_000), "lists and maps are nested too deeply; expected at most 100 levels"),
        ('{"a": [1, "\\ud800"]}', r"a\[1\]: a text has a lone surrogate"),
        ('{"a": {"\\udfff": 1}}', "a: the key '�' has a lone surrogate"),
    ],
)
def test_what_a_reader_could_not_show_is_refused_with_its_place(text: str, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        decode(text)


@pytest.mark.parametrize(
    ("value", "why"),
    [
        ({"a": {None: 1}}, "a: the key None is not a text"),
        ({"a": {True: 1}}, "a: the key True is not a text"),
        ([{7: 1}], r"\[0\]: the key 7 is not a text"),
        ({"a": b"x"}, "a: a value of type bytes, which JSON does not have"),
        ({"a": msgspec.msgpack.Ext(5, b"x")}, "a: a value of type Ext"),
        ({"a": datetime(2026, 1, 1, tzinfo=timezone.utc)}, "a: a value of type datetime"),
    ],
)
def test_what_only_messagepack_has_is_refused(value: object, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        check(value)
