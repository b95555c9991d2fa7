"""Reactions of automations to events: notifications, and changes of runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any
from urllib.parse import quote

from runvitals.model.durations import HOUR_MS
from runvitals.model.registry_names import is_registry, registry_name
from runvitals.server.alerts.automation_texts import level_of, text_of
from runvitals.server.alerts.automations import (
    Action,
    Automation,
    CallWebhook,
    EventFacts,
    InvalidAutomation,
    MailMembers,
    RunCommand,
    StopRun,
    TagRun,
    TellApprise,
    TellSlack,
    automation_of,
    matches,
)
from runvitals.server.alerts.storage.automations import AutomationRow, RaisedEvent, Reaction
from runvitals.server.events.outbox import Notification


def reaction_to(row: AutomationRow, event: RaisedEvent) -> Reaction | None:
    """Return the reaction of an automation to an event; None if it is not about it."""
    try:
        automation = automation_of(row.definition)
    except InvalidAutomation:
        return None  # a later version of the server wrote it
    facts = facts_of(event)
    if not matches(automation, facts):
        return None
    notifications = notifications_of(row, automation, event, facts)
    return Reaction(facts.subject, automation.cooldown_h * HOUR_MS, notifications)


def times_of(row: AutomationRow, past: Sequence[RaisedEvent]) -> list[int]:
    """Return when an automation would have acted on what happened, ms UTC.

    Args:
        past: the oldest first.
    """
    fired: dict[str, int] = {}
    times = []
    for event in past:
        reaction = reaction_to(row, event)
        if reaction is None:
            continue
        last_ms = fired.get(reaction.subject)
        if last_ms is None or event.time_ms >= last_ms + reaction.cooldown_ms:
            fired[reaction.subject] = event.time_ms
            times.append(event.time_ms)
    return times


def notifications_of(
    row: AutomationRow, automation: Automation, event: RaisedEvent, facts: EventFacts
) -> tuple[Notification, ...]:
    """Return the notifications that an automation sends about an event."""
    payload: dict[str, Any] = {"values": dict(facts.values), "level": level_of(facts)}
    if event.project_id is not None:
        payload["project_id"] = event.project_id
    if page_path := _version_path(event):
        payload |= {"path": page_path, "link": "Open the version"}
    elif event.run:
        payload |= {"path": f"/{event.team}/{event.project}/runs/{event.run}", "link": "Open the run"}
    elif event.data.get("report_path"):
        payload |= {"path": event.data["report_path"], "link": "Open the report"}
    first = Notification(
        "",
        facts.kind,
        "",
        facts.subject,
        text_of(facts, event.team, row.name),
        payload,
        event.time_ms,
        row.team_id,
        row.id,
    )
    notifications = []
    for number, action in enumerate(automation.actions):
        for target, more in _targets(action, event):
            key = f"automation:{row.id}:{event.key}:{number}:{target}"
            notifications.append(replace(first, dedupe_key=key, target=target, payload={**payload, **more}))
    return tuple(notifications)


def _version_path(event: RaisedEvent) -> str | None:
    """Return the page of the version in a registry that an event is about; None: it is about no such."""
    data = event.data
    project, collection, version = (data.get(name) for name in ("project", "collection", "version"))
    if not is_registry(str(project)) or not collection or version is None:
        return None
    parts = [event.team, "-", "registries", registry_name(str(project))]
    parts += ["collections", str(collection), "versions", str(version)]
    return "/" + "/".join(quote(part, safe="") for part in parts)


def facts_of(event: RaisedEvent) -> EventFacts:
    """Return the facts about an event that automations look at."""
    data = event.data
    collection, version = str(data.get("collection", "")), data.get("version")
    project = str(data.get("project", "")) or event.project
    finding = data.get("found") or {}
    values = {
        "event_type": event.kind,
        "event_author": str(data.get("author", "")) or event.author,
        "entity_name": event.team,
        "project_name": project,
        "run_id": event.run,
        "run_name": event.name,
        **_values_of_state(data),
        **{name: data.get(name, "") for name in ("alias", "metric_name", "metric_value")},
        "rule_name": str(data.get("finding", "")),
        "host_name": str(data.get("host", "")),
        "usage_category": str(data.get("category", "")).replace("_", " "),
        **{name: str(data.get(name, "")) for name in ("report_id", "report_title", "report_path")},
        **_values_of_finding(finding),
        **_values_of_artifact(collection, version),
    }
    return EventFacts(
        event.kind,
        _subject(event),
        event.key,
        event.time_ms,
        project,
        event.name,
        str(data.get("author", "")) or event.author,
        event.tags,
        state=str(data.get("state", "")),
        tag=str(data.get("tag", "")),
        alias=str(data.get("alias", "")),
        collection=collection,
        type=str(data.get("type", "")),
        rule=str(data.get("finding", "")),
        host=str(data.get("host", "")),
        percent=int(data.get("percent", 0)),
        finding=str(finding.get("id", "")),
        finding_severity=str(finding.get("severity", "info")),
        title=str(data.get("report_title", "")),
        automation_id=event.automation_id,
        values=values,
    )


def _values_of_state(data: Mapping[str, Any]) -> dict[str, str]:
    return {f"run_{name}": str(data.get(name, "")) for name in ("state", "failure", "output")}


def _values_of_artifact(collection: str, version: Any) -> dict[str, Any]:
    return {
        "artifact_collection_name": collection,
        "artifact_version": "" if version is None else f"v{version}",
        "artifact_version_string": f"{collection}:v{version}" if collection else "",
    }


def _values_of_finding(finding: Mapping[str, Any]) -> dict[str, Any]:
    texts = {f"finding_{name}": str(finding.get(name, "")) for name in ("id", "severity", "text", "advice")}
    hours = finding.get("cost", {}).get("device_hours", "")
    return {**texts, "finding_device_hours": hours, "finding": finding or ""}


def _subject(event: RaisedEvent) -> str:
    """Return what the cool-down of an automation is for."""
    data = event.data
    if event.kind == "usage.threshold":  # each category and percentage
        return f"usage:{event.team_id}:{data.get('category', '')}:{data.get('percent', 0)}"
    if data.get("report_id"):
        return f"report:{data['report_id']}:{event.key}"  # each publication and comment
    if data.get("found"):  # each finding of a run
        return f"run:{event.run_number}:{data['found'].get('id', '')}"
    if data.get("collection"):
        return f"artifact:{data.get('project', '')}/{data['collection']}:v{data.get('version')}"
    return f"run:{event.run_number}" if event.run_number is not None else f"team:{event.team_id}"


def _targets(action: Action, event: RaisedEvent) -> list[tuple[str, dict[str, Any]]]:
    """Return where an action leads, each with what only its receiver needs."""
    if isinstance(action, TellSlack):
        return [(f"slack:{action.destination}", {})]
    if isinstance(action, TellApprise):
        return [(f"apprise:{action.destination}", {})]
    if isinstance(action, CallWebhook):
        return [(f"webhook:{action.webhook}", {"payload": action.payload})]
    if isinstance(action, MailMembers):
        return [(f"member:{name}", {}) for name in action.members]
    if event.run_number is None:
        return []
    if isinstance(action, StopRun):
        return [(f"stop:{event.run_number}", {})]
    if isinstance(action, RunCommand):
        return [(f"command:{event.run_number}", {"command": action.command})]
    assert isinstance(action, TagRun)
    return [(f"tag:{event.run_number}", {"tag": action.tag})]
