"""Messages about joining teams, their privacy settings, their end, and who sees their projects."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final
from urllib.parse import quote

from runvitals.server.mail.message import Link, Message, join_names, one_line, paragraphs_of, time_text


def join_requested(team: str, name: str, text: str) -> Message:
    """To the administrators of a team that a user wants to join. `text`: what the user wrote."""
    return Message(
        "join_requested",
        f"{one_line(name)} asks to join the team {one_line(team)}",
        (f"{one_line(name)} asks to join the team {one_line(team)}.", *paragraphs_of(name, text)),
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
        (f"{one_line(name)} asks you to create a team{called}.", *paragraphs_of(name, text)),
        Link("Teams", "/-/organisation/teams"),
        topic="teams",
    )


def privacy_changed(team: str, by: str, switches: Sequence[str]) -> Message:
    """To the administrators of a team. `switches`: what was changed, and to what."""
    return Message(
        "privacy_changed",
        f"Privacy settings of the team {one_line(team)} were changed",
        (f"{one_line(by)} changed privacy settings of the team {one_line(team)}: {join_names(switches)}.",),
        Link("Privacy", f"/{team}/-/settings/privacy"),
        security=True,
    )


def team_deleted(team: str, by: str, purged_ms: int) -> Message:
    """To the members of a team that is in the trash."""
    return Message(
        "team_deleted",
        f"The team {one_line(team)} was deleted",
        (
            f"{one_line(by)} deleted the team {one_line(team)}, with its projects and runs. Its keys "
            "no longer work.",
            f"Administrators of the organisation can restore it until {time_text(purged_ms)}.",
        ),
        topic="teams",
    )


_SEEN_BY: Final = {
    "private": "only its owner sees it",
    "restricted": "only members who are added to it see it",
    "team": "only its team, or its owner, sees it",
    "organisation": "everyone in the organisation sees it",
    "public": "everyone on this server can look at it",
    "open": "everyone on this server can look at it and send runs to it",
}


def visibility_changed(entity: str, project: str, by: str, visibility: str) -> Message:
    """To the owner of a project and the administrators of its team."""
    project_name = f"{one_line(entity)}/{one_line(project)}"
    return Message(
        "visibility_changed",
        f"The visibility of the project {project_name} was changed",
        (f"{one_line(by)} made the project {project_name} {visibility}: {_SEEN_BY[visibility]}.",),
        _page_of(entity, project),
        topic="teams",
    )


def administrator_joined_project(entity: str, project: str, name: str) -> Message:
    """To the owner of a restricted project that an administrator of its team joined."""
    project_name = f"{one_line(entity)}/{one_line(project)}"
    return Message(
        "administrator_joined_project",
        f"{one_line(name)} joined the project {project_name}",
        (f"{one_line(name)}, an administrator of the team, joined the restricted project {project_name}.",),
        _page_of(entity, project),
        topic="teams",
    )


def _page_of(entity: str, project: str) -> Link:
    return Link("The project", f"/{entity}/{quote(project, safe='')}")
