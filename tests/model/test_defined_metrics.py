"""Definitions of metrics: whatever a record holds, readers get valid ones."""

from __future__ import annotations

from typing import Any

import pytest

from runvitals.model.defined_metrics import MAX_DEFINITIONS, defined_metrics


def test_valid_definitions_are_kept() -> None:
    section = {
        "val/*": {"summary": "min", "x": "epoch", "goal": "minimize", "hidden": True},
        "val/loss": {"hidden": False},
    }
    assert defined_metrics(section) == section


@pytest.mark.parametrize(
    "definition",
    [
        None,
        7,
        [],
        {},
        {"summary": "median"},
        {"x": ""},
        {"x": 7},
        {"hidden": "yes"},
        {"goal": ["x"]},
        {"new": 1},
    ],
)
def test_invalid_ones_are_left_out(definition: Any) -> None:
    assert defined_metrics({"loss": definition, "": {"hidden": True}}) == {}


def test_there_is_a_limit() -> None:
    section = {f"m{number}": {"hidden": True} for number in range(MAX_DEFINITIONS + 1)}
    assert len(defined_metrics(section)) == MAX_DEFINITIONS
