"""Texts of automations about events."""

from __future__ import annotations

from runvitals.server.alerts.automations import Occurrence

_LEVELS = {"failed": "error", "crashed": "error", "lost": "warning", "stopped": "warning"}


def text_of(occurrence: Occurrence, team: str, automation: str) -> str:
    """Return the title of an event, and which automation reports it."""
    prefix = f"[{team}/{occurrence.project}]" if occurrence.project else f"[{team}]"
    return f"{prefix} {_what(occurrence)}\nYou get this by the automation “{automation}” of team {team}."


def level_of(occurrence: Occurrence) -> str:
    """Return how serious an event is: info, warning or error."""
    if occurrence.kind in ("finding", "device.silent", "usage.threshold"):
        return "warning"
    return _LEVELS.get(occurrence.state, "info")


def _silent_part(occurrence: Occurrence) -> str:
    metric = occurrence.values.get("metric_name")
    return " on ".join(str(part) for part in (metric, occurrence.host) if part) or "the training"


def _what(occurrence: Occurrence) -> str:
    values = occurrence.values
    version = values.get("artifact_version_string", occurrence.collection)
    name = occurrence.name or occurrence.subject
    texts = {
        "run.state": f"{name} is {occurrence.state}",
        "run.tag": f"{name} has the tag {occurrence.tag}",
        "artifact.version": f"{version} was logged",
        "artifact.alias": f"{version} has the alias {occurrence.alias}",
        "registry.link": f"{version} was linked to {occurrence.collection}",
        "finding": f"{name}: {occurrence.finding}",
        "device.silent": f"{name}: nothing arrives of {_silent_part(occurrence)}",
        "usage.threshold": f"the plan is used to {occurrence.percent} % ({values.get('usage_category')})",
    }
    if occurrence.kind.startswith("metric."):
        return f"{name}: {values.get('metric_name')} is {values.get('metric_value')}"
    return texts[occurrence.kind]
