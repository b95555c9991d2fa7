"""Options of metrics that a run set with `define_metric`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from runvitals.model.names import name_fault
from runvitals.model.summary import KINDS, matches

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

GOALS = ("minimize", "maximize")
MAX_DEFINITIONS = 1000
"""Readers show no more of a run."""


def defined_metrics(section: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Return the valid definitions in the section `metrics` of a run, by name or pattern.

    Unknown fields, of newer versions, are left out.

    Example:
        >>> defined_metrics({"val/*": {"x": "epoch", "goal": "lowest"}, "": {"hidden": True}})
        {'val/*': {'x': 'epoch'}}
    """
    definitions: dict[str, dict[str, Any]] = {}
    for name, definition in section.items():
        if len(definitions) >= MAX_DEFINITIONS:
            break
        if isinstance(definition, dict) and not name_fault(name):
            fields = {field: value for field, value in definition.items() if _is_valid(field, value)}
            if fields:
                definitions[name] = fields
    return definitions


def definition_of(defined: Mapping[str, Mapping[str, Any]], name: str) -> dict[str, Any]:
    """Return the options of a metric: its own, and otherwise those of the longest pattern that matches.

    Example:
        >>> definition_of({"val/*": {"x": "epoch", "hidden": True}, "val/a": {"hidden": False}}, "val/a")
        {'x': 'epoch', 'hidden': False}
    """
    patterns = [pattern for pattern in defined if pattern != name and matches(pattern, name)]
    definition: dict[str, Any] = {}
    for pattern in [*sorted(patterns, key=lambda pattern: (len(pattern), pattern)), name]:
        definition.update(defined.get(pattern, {}))
    return definition


def _is_valid(field: str, value: object) -> bool:
    if field == "summary":
        return value in KINDS
    if field == "goal":
        return value in GOALS
    if field == "hidden":
        return isinstance(value, bool)
    return field == "x" and isinstance(value, str) and not name_fault(value)
