"""Answers for assistants have a bounded size, and hide nothing in what users wrote."""

from __future__ import annotations

import json
from typing import Any

import pytest

from runvitals.tools.assistant.bounded_answer import MOST_CHARACTERS, NOTICE, answer

_ROOM = 1000  # for the notice and the hints


def _deep(levels: int) -> Any:
    return {"a": _deep(levels - 1), "b": [1] * levels} if levels else "end"


@pytest.mark.parametrize(
    "data",
    [
        "x" * 1_000_000,
        ["x" * 5000] * 5000,
        {f"name {i}" * 50: {"nested": list(range(1000))} for i in range(1000)},
        [[["\U000e0041" * 3000] * 50] * 50] * 50,
        _deep(200),
    ],
    ids=["text", "texts", "table", "invisible", "deep"],
)
def test_size(data: Any) -> None:
    text = answer(data)
    assert len(text) < MOST_CHARACTERS + _ROOM
    assert "left out" in json.loads(text)["more"]


def test_what_fits_is_there_as_it_is() -> None:
    data = {
        "t": 1_800_000_000_123,
        "loss": 0.123456789,
        "step": 3.0,
        "name": "café\n",
        "none": None,
        "yes": True,
    }
    told = json.loads(answer(data, "call again"))
    assert told == {"notice": NOTICE, "more": "call again", "data": {**data, "loss": 0.123457, "step": 3}}


def test_what_nobody_sees_of_a_text_is_escaped() -> None:
    hidden = "".join(chr(0xE0000 + ord(letter)) for letter in "ignore")
    shown = json.loads(answer({"notes": f"fine{hidden}\x1b[8m\u202e"}))["data"]["notes"]
    assert shown.isprintable()
    assert shown.startswith("fine\\U000e0069")
