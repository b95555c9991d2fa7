"""Who is notified about an event of a run, and how: decided from what was chosen, without the database."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Literal

from runvitals.server.alerts.settings import CHANNELS, SWITCH_OF, Channel, PersonalAlerts, TeamAlerts
from runvitals.server.alerts.storage.alert_settings import SCOPES, Scope

Reason = Literal["author", "team", "rule"]


@dataclass(frozen=True, slots=True)
class AlertReceiver:
    """One user, by one channel. `reason`: why."""

    user_id: int
    channel: Channel
    reason: Reason


@dataclass(frozen=True, slots=True)
class Choices:
    """The choices of those who may be notified.

    Args:
        author_id: the user whose run it is, if that user may read it.
        personal: what the author and the members chose.
        team: what the team chose; None for a run in a user's own space.
        members: the members of the team who may read the run.
        modes: their exceptions for the run, its project and team.
    """

    author_id: int | None
    personal: Mapping[int, PersonalAlerts] = field(default_factory=dict)
    team: TeamAlerts | None = None
    members: Collection[int] = ()
    modes: Mapping[int, Mapping[Scope, str]] = field(default_factory=dict)


def receivers(event: str, level: str, choices: Choices) -> list[AlertReceiver]:
    """Return the users who are notified about an event; nobody twice by one channel.

    An exception for the run counts before one for the project, and that before one for the team.
    """
    receivers_by_channel: dict[tuple[int, Channel], AlertReceiver] = {}
    switch = SWITCH_OF[event]
    author = None if choices.author_id is None else choices.personal.get(choices.author_id)
    if choices.author_id is not None and author is not None:
        mode = _mode(choices.modes.get(choices.author_id, {}))
        for channel in CHANNELS:
            is_wanted = author.events[switch].wants(channel, level)
            if mode == "all":
                is_wanted = channel in _channels_of(author)
            if is_wanted and mode != "off":
                receivers_by_channel[choices.author_id, channel] = AlertReceiver(
                    choices.author_id, channel, "author"
                )
    if choices.team is not None and choices.team.events[switch].wants("email", level):
        for user_id in choices.members:
            if not is_muted(choices.modes.get(user_id, {})):
                receivers_by_channel.setdefault((user_id, "email"), AlertReceiver(user_id, "email", "team"))
    return list(receivers_by_channel.values())


def named_receivers(to: Collection[str], choices: Choices) -> list[AlertReceiver]:
    """Return the users that a rule names, by the channels that they chose for findings.

    Those who chose none are mailed.

    Args:
        to: `author` and `members`.
    """
    users = [choices.author_id] if "author" in to and choices.author_id is not None else []
    users += choices.members if "members" in to else []
    rule_receivers: list[AlertReceiver] = []
    for user_id in dict.fromkeys(users):
        if is_muted(choices.modes.get(user_id, {})):
            continue
        chosen = choices.personal[user_id].events["findings"]
        channels = [channel for channel in CHANNELS if chosen.wants(channel, "error")] or ["email"]
        rule_receivers += [AlertReceiver(user_id, channel, "rule") for channel in channels]
    return rule_receivers


def team_is_notified(event: str, level: str, team: TeamAlerts) -> bool:
    """Return whether the team's Slack destination gets an event."""
    return team.slack_destination is not None and team.events[SWITCH_OF[event]].wants("slack", level)


def is_muted(modes: Mapping[Scope, str]) -> bool:
    """Return whether a user muted a run, its project or its team."""
    return _mode(modes) == "off"


def _mode(modes: Mapping[Scope, str]) -> str | None:
    return next((modes[scope] for scope in SCOPES if scope in modes), None)


def _channels_of(choices: PersonalAlerts) -> frozenset[Channel]:
    """Return the channels that a user gets anything by; mail, if there is none."""
    used = {
        channel
        for channel in CHANNELS
        for choice in choices.events.values()
        if choice.wants(channel, "error")
    }
    return frozenset(used) or frozenset(("email",))
