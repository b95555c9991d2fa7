from __future__ import annotations

import math
import time
from fnmatch import fnmatchcase
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runvitals.journal.json_codec import dumps, loads
from runvitals.model.summary import MAX_NAMES, Definitions, Tally, combined, is_state, matches

ROWS = [{"loss": 3.0, "acc": 0.1}, {"loss": 1.0}, {"loss": 2.0, "acc": 0.5, "note": "x"}]


def definitions(**kinds: str) -> Definitions:
    found = Definitions()
    found.define({name: {"summary": kind} for name, kind in kinds.items()})
    return found


def tally(rows: list[dict[str, Any]], first_ms: int = 1000, **kinds: str) -> Tally:
    found = Tally()
    found.definitions = definitions(**kinds)
    for number, row in enumerate(rows):
        found.add(row, first_ms + number)
    return found


@pytest.mark.parametrize(
    ("kinds", "expected"),
    [
        ({}, {"loss": 2.0, "acc": 0.5, "note": "x"}),
        ({"loss": "min"}, {"loss": 1.0, "acc": 0.5, "note": "x"}),
        ({"loss": "max"}, {"loss": 3.0, "acc": 0.5, "note": "x"}),
        ({"loss": "mean", "acc": "mean"}, {"loss": 2.0, "acc": 0.3, "note": "x"}),
        ({"loss": "none", "note": "none"}, {"acc": 0.5}),
        ({"note": "max"}, {"loss": 2.0, "acc": 0.5}),
    ],
)
def test_what_rows_come_to(kinds: dict[str, str], expected: dict[str, Any]) -> None:
    found = tally(ROWS, **kinds)
    assert combined([found], found.definitions) == pytest.approx(expected)
    assert found.shown(["loss", "acc", "note"]) == pytest.approx(expected)


def test_a_state_says_all_of_it() -> None:
    found = tally(ROWS, acc="mean", loss="min")
    state = loads(dumps(found.state()))
    assert is_state(state)
    again = Tally()
    again.definitions = found.definitions
    again.restore(state)
    for one in (found, again):
        one.add({"loss": 0.5, "acc": 0.9}, 5000)
    assert combined([again], found.definitions) == combined([found], found.definitions)


def test_a_state_may_be_of_the_first_metrics_only() -> None:
    found = tally([{f"m{n}": n for n in range(100)}, {"m0": 7, "m99": 8}])
    state = found.state(1000)
    assert len(dumps(state)) < 1100
    assert 10 < len(state["values"]) < 30
    found.restore(state)
    assert (found.values["m0"], found.values["m99"]) == (7, 8)


def test_several_writers() -> None:
    kinds = {"acc": "mean", "loss": "min"}
    both = [tally(ROWS, 2000, **kinds), tally([{"loss": 0.5, "acc": 0.9, "lr": 1}], 1000, **kinds)]
    for writers in (both, both[::-1]):
        found = combined(writers, definitions(**kinds))
        assert found == pytest.approx({"loss": 0.5, "acc": 0.5, "note": "x", "lr": 1})
    older, newer = tally([{"loss": 1.0}], 1000), tally([{"loss": 2.0}], 3000)
    assert combined([newer, older], Definitions()) == {"loss": 2.0}


def test_what_is_no_number_is_no_least_or_mean() -> None:
    rows: list[dict[str, Any]] = [{"a": "x"}, {"a": math.nan}, {"a": 2}, {"a": None}, {"a": 10**400}]
    assert tally(rows, a="min").shown(["a"]) == {"a": 2}
    assert tally(rows, a="mean").shown(["a"]) == {"a": 2.0}


def test_lists_and_long_texts_are_no_part_of_a_state() -> None:
    found = tally([{"a": [1], "b": {"c": 1}, "d": "x" * 2000, "e": 1}])
    assert found.state()["values"] == {"e": 1}
    assert combined([found], Definitions()) == {"e": 1}


def test_names_have_a_limit() -> None:
    found = tally([{f"n{row}.{n}": n for n in range(6000)} for row in range(3)])
    assert len(found.values) == MAX_NAMES
    found.add({"n0.0": 5.0}, 1)
    assert found.values["n0.0"] == 5.0


def test_a_name_goes_before_patterns_and_long_ones_before_short_ones() -> None:
    found = Definitions()
    found.define({"val/loss": {"summary": "min"}, "val/*": {"summary": "max"}, "*": {"summary": "none"}})
    names = ("val/loss", "val/acc", "lr")
    assert [found.kind(name) for name in names] == ["min", "max", "none"]
    found.define({"lr": {"summary": "mean"}, "x": {"summary": "median"}, "y": 5})
    assert [found.kind(name) for name in ("lr", "x", "y")] == ["mean", "none", "none"]


@given(st.text("ab*", max_size=8), st.text("ab", max_size=8))
def test_a_star_stands_for_any_letters(pattern: str, name: str) -> None:
    assert matches(pattern, name) == fnmatchcase(name, pattern)


def test_a_contrived_pattern_takes_no_time() -> None:
    began_s = time.thread_time()
    assert not matches("*a" * 5000 + "b", "a" * 10_000)
    assert time.thread_time() - began_s < 60, "it would be years by trying all"
