from __future__ import annotations

import math
from fnmatch import fnmatchcase
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runvitals.base.json_codec import dumps, loads
from runvitals.model.summary import (
    MAX_NAMES,
    SummaryRules,
    WriterSummary,
    combined_summary,
    is_summary_state,
    matches,
)

ROWS = [{"loss": 3.0, "acc": 0.1}, {"loss": 1.0}, {"loss": 2.0, "acc": 0.5, "note": "x"}]


def rules_for(**kinds: str) -> SummaryRules:
    rules = SummaryRules()
    rules.define({name: {"summary": kind} for name, kind in kinds.items()})
    return rules


def summary_of(rows: list[dict[str, Any]], first_ms: int = 1000, **kinds: str) -> WriterSummary:
    summary = WriterSummary()
    summary.rules = rules_for(**kinds)
    for number, row in enumerate(rows):
        summary.add(row, first_ms + number)
    return summary


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
def test_the_summary_of_rows(kinds: dict[str, str], expected: dict[str, Any]) -> None:
    summary = summary_of(ROWS, **kinds)
    assert combined_summary([summary], summary.rules) == pytest.approx(expected)
    assert summary.values_of(["loss", "acc", "note"]) == pytest.approx(expected)


def test_a_state_restores_everything() -> None:
    original = summary_of(ROWS, acc="mean", loss="min")
    state = loads(dumps(original.state()))
    assert is_summary_state(state)
    again = WriterSummary()
    again.rules = original.rules
    again.restore(state)
    for summary in (original, again):
        summary.add({"loss": 0.5, "acc": 0.9}, 5000)
    assert combined_summary([again], original.rules) == combined_summary([original], original.rules)


def test_a_limited_state_has_the_first_metrics() -> None:
    summary = summary_of([{f"m{n}": n for n in range(100)}, {"m0": 7, "m99": 8}])
    state = summary.state(1000)
    assert len(dumps(state)) < 1100
    assert 10 < len(state["values"]) < 30
    summary.restore(state)
    assert (summary.values["m0"], summary.values["m99"]) == (7, 8)


def test_several_writers() -> None:
    kinds = {"acc": "mean", "loss": "min"}
    both = [summary_of(ROWS, 2000, **kinds), summary_of([{"loss": 0.5, "acc": 0.9, "lr": 1}], 1000, **kinds)]
    for writers in (both, both[::-1]):
        summary = combined_summary(writers, rules_for(**kinds))
        assert summary == pytest.approx({"loss": 0.5, "acc": 0.5, "note": "x", "lr": 1})
    older, newer = summary_of([{"loss": 1.0}], 1000), summary_of([{"loss": 2.0}], 3000)
    assert combined_summary([newer, older], SummaryRules()) == {"loss": 2.0}


def test_only_numbers_count_towards_minimum_and_mean() -> None:
    rows: list[dict[str, Any]] = [{"a": "x"}, {"a": math.nan}, {"a": 2}, {"a": None}, {"a": 10**400}]
    assert summary_of(rows, a="min").values_of(["a"]) == {"a": 2}
    assert summary_of(rows, a="mean").values_of(["a"]) == {"a": 2.0}


def test_lists_and_long_texts_are_left_out_of_a_state() -> None:
    summary = summary_of([{"a": [1], "b": {"c": 1}, "d": "x" * 2000, "e": 1}])
    assert summary.state()["values"] == {"b.c": 1, "e": 1}
    assert combined_summary([summary], SummaryRules()) == {"b.c": 1, "e": 1}


def test_the_number_of_metrics_is_limited() -> None:
    summary = summary_of([{f"n{row}.{n}": n for n in range(6000)} for row in range(3)])
    assert len(summary.values) == MAX_NAMES
    summary.add({"n0.0": 5.0}, 1)
    assert summary.values["n0.0"] == 5.0


def test_a_name_takes_precedence_over_patterns_and_long_ones_over_short_ones() -> None:
    rules = SummaryRules()
    rules.define({"val/loss": {"summary": "min"}, "val/*": {"summary": "max"}, "*": {"summary": "none"}})
    names = ("val/loss", "val/acc", "lr")
    assert [rules.kind(name) for name in names] == ["min", "max", "none"]
    rules.define({"lr": {"summary": "mean"}, "x": {"summary": "median"}, "y": 5})
    assert [rules.kind(name) for name in ("lr", "x", "y")] == ["mean", "none", "none"]


@given(st.text("ab*", max_size=8), st.text("ab", max_size=8))
def test_a_star_matches_any_text(pattern: str, name: str) -> None:
    assert matches(pattern, name) == fnmatchcase(name, pattern)


def test_matching_takes_linear_time() -> None:
    assert not matches("*a" * 5000 + "b", "a" * 10_000)  # backtracking would take years


def test_statistics_of_arrays_have_dotted_names() -> None:
    summary = WriterSummary()
    summary.rules.define({"w.max": {"summary": "max"}})
    for step, most in enumerate((5.0, 3.0)):
        summary.add(
            {"loss": 0.5, "w": {"min": -most, "max": most, "bins": [1.0, 2.0], "of": {"n": 1}, "_type": "x"}},
            step,
        )
    names = ["loss", "w", "w.min", "w.max", "w.of.n"]
    assert summary.values_of(names) == {"loss": 0.5, "w.min": -3.0, "w.max": 5.0, "w.of.n": 1}
    assert set(summary.values) == {"loss", "w.min", "w.max", "w.of.n"}
