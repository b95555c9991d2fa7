"""Checks what `define_metric` is given."""

from __future__ import annotations

from typing import Any

from runvitals.model.defined_metrics import GOALS
from runvitals.model.names import name_fault
from runvitals.model.summary import KINDS


def metric_definition(
    name: str, summary: str, x: str | None, hidden: bool | None, goal: str | None
) -> dict[str, dict[str, Any]]:
    """Return the `metrics` of an INFO record; see `Run.define_metric`.

    Raises:
        TypeError: a name is not a string.
        ValueError: an invalid name, or an unknown summary or goal.

    Example:
        >>> metric_definition("val/*", "min", "epoch", None, None)
        {'val/*': {'summary': 'min', 'x': 'epoch'}}
    """
    for what, text in (("name", name), ("x", x)):
        if text is None and what == "x":
            continue
        if not isinstance(text, str):
            raise TypeError(f"define_metric(): {what} must be a string, not {type(text).__name__}")
        if fault := name_fault(text):
            raise ValueError(f"define_metric(): {fault}")
    if summary not in KINDS:
        raise ValueError(
            f"define_metric({name!r}): unknown summary {summary!r}; expected one of {', '.join(KINDS)}"
        )
    if goal is not None and goal not in GOALS:
        raise ValueError(
            f"define_metric({name!r}): unknown goal {goal!r}; expected one of {', '.join(GOALS)}"
        )
    fields = {"summary": summary, "x": x, "hidden": None if hidden is None else bool(hidden), "goal": goal}
    return {name: {field: value for field, value in fields.items() if value is not None}}
