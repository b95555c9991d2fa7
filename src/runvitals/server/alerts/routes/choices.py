"""The switches of alerts in requests and responses."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any, Literal

from pydantic import ConfigDict, Field

from runvitals.server.alerts.settings import EventChoice, Switch
from runvitals.server.http.bodies import RequestBody, ResponseBody

Level = Literal["info", "warning", "error"]


class Choice(RequestBody):
    """By which channels an event is notified. `min_level`: only events of this level or a higher one."""

    model_config = ConfigDict(strict=True)

    email: bool = False
    slack: bool = False
    min_level: Level = "info"


class EventChoices(RequestBody):
    """Switches by event; what is left out does not change."""

    finished: Choice | None = None
    crashed: Choice | None = None
    custom: Choice | None = None
    findings: Choice | None = None


class EventChoiceSchema(ResponseBody):
    """By which channels an event is notified."""

    email: bool
    slack: bool
    min_level: Level = Field(description="Only events of this level or a higher one.")


class ChosenEvents(ResponseBody):
    """The switches by event."""

    finished: EventChoiceSchema
    crashed: EventChoiceSchema
    custom: EventChoiceSchema
    findings: EventChoiceSchema


def with_changes(chosen: Mapping[Switch, EventChoice], changes: EventChoices | None) -> dict[str, Any]:
    """Return the switches after a change, as they are stored."""
    changed = {} if changes is None else changes.model_dump(exclude_none=True)
    return {switch: changed.get(switch, asdict(choice)) for switch, choice in chosen.items()}
