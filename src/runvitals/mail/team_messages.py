"""Messages about joining teams, and about their privacy settings."""

from __future__ import annotations

from collections.abc import Sequence

from runvitals.mail.message import Link, Message, listed, one_line, written


def join_requested(team: str, name: str, text: str) -> Message:
    """To the administrators of a team that a user wants to join. `text`: what the user wrote."""
    return Message(
        "join_requested",
        f"{one_line(name)} asks to join the team {one_line(team)}",
        (f"{one_line(name)} asks to join the team {one_line(team)}.", *written(name, text)),
        Link("Approve or reject", f"/{team}/-/settings/members"),
        topic="teams",
    )


def join_rejected(team: str) -> Message:
    """To a user who asked to join a team."""
    return Message(
        "join_rejected",
        f"You cannot join the team {one_line(team)} at the moment",
        (f"An administrator of the team {one_line(team)} has turned down your request to join it.",),
        topic="teams",
    )


def joined_by_domain(team: str, name: str) -> Message:
    """To the administrators of a team that people of a mail domain may join by themselves."""
    return Message(
        "joined_by_domain",
        f"{one_line(name)} joined the team {one_line(team)}",
        (f"{one_line(name)} joined the team {one_line(team)} with an address of one of its mail domains.",),
        Link("Members", f"/{team}/-/settings/members"),
        topic="teams",
    )


def team_wanted(name: str, team: str, text: str) -> Message:
    """To the administrators of the organisation. `team`: how the team could be called; `text`: the reason."""
    called = f" called {one_line(team)}" if team.strip() else ""
    return Message(
        "team_wanted",
        f"{one_line(name)} asks for a team",
        (f"{one_line(name)} asks you to create a team{called}.", *written(name, text)),
        Link("Teams", "/-/organisation/teams"),
        topic="teams",
    )


def privacy_changed(team: str, by: str, switches: Sequence[str]) -> Message:
    """To the administrators of a team. `switches`: what was changed, and to what."""
    return Message(
        "privacy_changed",
        f"Privacy settings of the team {one_line(team)} were changed",
        (f"{one_line(by)} changed privacy settings of the team {one_line(team)}: {listed(switches)}.",),
        Link("Privacy", f"/{team}/-/settings/privacy"),
        security=True,
    )
