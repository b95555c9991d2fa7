"""`/users`: other users, as a requester may see them."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from fastapi import Query
from pydantic import Field

from runvitals.server.access.actions import FILTERED, Action
from runvitals.server.access.control import AccessControl
from runvitals.server.access.permission import needs
from runvitals.server.access.requester import Requester
from runvitals.server.access.resources import Account
from runvitals.server.accounts.routes.own_account import TheOwner
from runvitals.server.accounts.routes.profile import ShownLink, shown_fields
from runvitals.server.accounts.storage.profiles import ProfileRow
from runvitals.server.accounts.storage.users import UserRow
from runvitals.server.http.bodies import ResponseBody, page_body
from runvitals.server.http.errors import InvalidFields
from runvitals.server.http.listing import ThePage, page_in_order
from runvitals.server.http.router import Router
from runvitals.server.outside_services import OutsideServices
from runvitals.server.projects.routes.readable import project_json, readable_projects
from runvitals.server.reports.routes.pins import pinned_reports
from runvitals.server.reports.routes.report_models import ListedReport
from runvitals.server.service_parameters import TheAccess, TheOutsideServices, TheRequester
from runvitals.server.user_content.markdown import html_of, mentions_of

MIN_CHARACTERS = 2
MAX_FOUND = 10
_MAX_MENTIONS = 100

router = Router()


class NamedSchema(ResponseBody):
    """A user or team in a list."""

    name: str
    display_name: str


UsersPage = page_body("UsersPage", "Users whose name begins so.", users=list[NamedSchema])


class UserPage(ResponseBody):
    """A user's page, with the projects and teams that the requester may see."""

    kind: Literal["user"]
    name: str
    display_name: str
    institution: str
    bio: str
    location: str
    links: list[ShownLink]
    intro: str = Field(description="Markdown.")
    intro_html: str
    picture: str | None = Field(description="The digest of the picture.")
    state: str
    created_ms: int
    teams: list[NamedSchema]
    projects: list[dict[str, Any]]
    pinned_reports: list[ListedReport]
    may: list[str]


@router.get("/users", needs(f"{FILTERED}user:read"), response_model=UsersPage)
def search(
    query: Annotated[str, Query(min_length=MIN_CHARACTERS, max_length=64, description="How a name begins.")],
    access: TheAccess,
    owner: TheOwner,
    page: ThePage,
) -> Any:
    """Users by the beginning of their name or display name.

    Those come first with whom the requester shares a team. E-mail addresses are neither searched nor
    shown.
    """
    access.require(owner.requester, Action.USER_READ, Account(owner.id), "users", changes=False)
    text = query.strip()
    if len(text) < MIN_CHARACTERS:
        raise InvalidFields({"query": f"expected at least {MIN_CHARACTERS} characters"})
    return page_in_order("users", access.accounts.users.search(text, owner.id, MAX_FOUND), page)


@router.get("/users/{user}", needs("user:read"))
def profile(user: str, requester: TheRequester, access: TheAccess, outside: TheOutsideServices) -> UserPage:
    """The profile of a user."""
    row = access.accounts.users.by_name(user)
    if row.state == "unverified":
        access.hide(requester, f"user {user!r}")
    return user_page(access, requester, row, outside)


def user_page(
    access: AccessControl, requester: Requester, row: UserRow, outside: OutsideServices
) -> UserPage:
    """Return what a user shows, with the projects and teams that the requester may see."""
    profile = access.accounts.profiles.get(row.id)
    projects = readable_projects(access, requester, row.entity_id)
    intro = profile.fields.get("intro", "")
    return UserPage(
        kind="user",
        name=row.name,
        **shown_fields(profile),
        intro_html=html_of(intro, outside.image_links(), _readable_names(access, requester, intro)),
        picture=access.accounts.pictures.digests([row.entity_id]).get(row.entity_id),
        state=row.state,
        created_ms=row.created_ms,
        teams=_teams(access, requester, profile),
        projects=[project_json(row.name, project) for project in projects],
        pinned_reports=[
            ListedReport.model_validate(report) for report in pinned_reports(access, requester, row.entity_id)
        ],
        may=["account:update"] if requester.user_id == row.id else [],
    )


def _teams(access: AccessControl, requester: Requester, profile: ProfileRow) -> list[NamedSchema]:
    """Return the teams of a user that the requester may see; if they are hidden, those that both are in."""
    accounts, now_ms = access.accounts, access.clock()
    theirs = [team for team, _, _ in accounts.teams.of_user(profile.user_id, now_ms)]
    if profile.fields.get("hide_teams"):
        own = requester.user_id
        shared = {team.id for team, _, _ in accounts.teams.of_user(own, now_ms)} if own is not None else set()
        theirs = [team for team in theirs if team.id in shared]
    return [
        NamedSchema.model_validate(team)
        for team in theirs
        if access.may(requester, Action.TEAM_PROFILE, access.directory.entity(team.id))
    ]


def _readable_names(access: AccessControl, requester: Requester, markdown: str) -> set[str]:
    """Return the names of users and teams in a text that the requester may know of."""
    names = set()
    for name in sorted(mentions_of(markdown))[:_MAX_MENTIONS]:
        entity = access.directory.entity_named(name)
        if entity is None or entity.deleted:
            continue
        resource = entity if entity.owner_id is None else Account(entity.owner_id)
        action = Action.TEAM_PROFILE if entity.owner_id is None else Action.USER_READ
        if access.may(requester, action, resource):
            names.add(name)
    return names
