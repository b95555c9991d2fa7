"""Texts of automations about events."""

from __future__ import annotations

from runvitals.model.account_names import ORGANISATION
from runvitals.model.registry_names import registry_name
from runvitals.server.alerts.automations import EventFacts
from runvitals.server.alerts.texts import one_line

_LEVELS = {"failed": "error", "crashed": "error", "lost": "warning", "stopped": "warning"}
_FINDING_LEVELS = {"critical": "error", "warning": "warning"}
_MAX_FINDING = 2000


def text_of(facts: EventFacts, team: str, automation: str) -> str:
    """Return the title of an event, and which automation reports it."""
    prefix = f"[{team}/{registry_name(facts.project)}]" if facts.project else f"[{team}]"
    advice = one_line(str(facts.values.get("finding_advice") or ""), _MAX_FINDING)
    what_to_do = f"What to do: {advice}\n" if advice and facts.kind == "finding.opened" else ""
    owner = "the organisation" if team == ORGANISATION else f"team {team}"
    why = f"You get this by the automation “{automation}” of {owner}."
    return f"{prefix} {_event_text(facts)}\n{what_to_do}{_failure(facts)}{why}"


def level_of(facts: EventFacts) -> str:
    """Return how serious an event is: info, warning or error."""
    if facts.kind == "finding.opened":
        return _FINDING_LEVELS.get(facts.finding_severity, "info")
    if facts.kind in ("finding", "device.silent", "usage.threshold"):
        return "warning"
    return _LEVELS.get(facts.state, "info")


def _failure(facts: EventFacts) -> str:
    """Return why a run failed and what it printed last."""
    why, output = facts.values.get("run_failure"), facts.values.get("run_output")
    printed = f"Last lines of its output:\n{output}\n" if output else ""
    return f"Why: {one_line(str(why))}\n{printed}" if why else ""


def _silent_part(facts: EventFacts) -> str:
    metric = facts.values.get("metric_name")
    return " on ".join(str(part) for part in (metric, facts.host) if part) or "the training"


def _event_text(facts: EventFacts) -> str:
    values = facts.values
    version = values.get("artifact_version_string", facts.collection)
    name = facts.name or facts.subject
    texts = {
        "run.state": f"{name} is {facts.state}",
        "run.tag": f"{name} has the tag {facts.tag}",
        "artifact.version": f"{version} was logged",
        "artifact.alias": f"{version} has the alias {facts.alias}",
        "registry.link": f"{version} was linked to {facts.collection}",
        "registry.request": f"{facts.author} asks for the alias {facts.alias} of {version}",
        "finding": f"{name}: {facts.rule}",
        "device.silent": f"{name}: nothing arrives of {_silent_part(facts)}",
        "report.published": f"{facts.author} published “{one_line(facts.title)}”",
        "report.commented": f"{facts.author} commented on “{one_line(facts.title)}”",
        "usage.threshold": f"the plan is used to {facts.percent} % ({values.get('usage_category')})",
    }
    if facts.kind.startswith("finding."):
        finding_text = one_line(str(values.get("finding_text") or ""), _MAX_FINDING)
        over = " – over" if facts.kind == "finding.closed" else ""
        return f"{name}: {finding_text.removesuffix('.')}{over}"
    if facts.kind.startswith("metric."):
        return f"{name}: {values.get('metric_name')} is {values.get('metric_value')}"
    return texts[facts.kind]
