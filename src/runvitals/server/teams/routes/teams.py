"""`/teams`: list one's teams, create, read, change, delete and restore a team."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from fastapi import HTTPException, Request, Response
from pydantic import ConfigDict, Field

from runvitals.model.durations import DAY_MS
from runvitals.server.access.actions import Action
from runvitals.server.access.permission import needs
from runvitals.server.access.resources import Organisation, Visibility
from runvitals.server.artifacts.link_refusal import refusal
from runvitals.server.artifacts.storage.rows import LinkedVersions
from runvitals.server.buckets.routes.buckets import bucket_for_team
from runvitals.server.http.bodies import RequestBody, ResponseBody
from runvitals.server.http.errors import InvalidFields, checking
from runvitals.server.http.listing import ThePage, page_of
from runvitals.server.http.router import Router
from runvitals.server.mail import team_messages
from runvitals.server.organisation.settings import with_defaults
from runvitals.server.service_parameters import TheAccess, TheNotices, TheRequester
from runvitals.server.teams.routes.parameters import TeamSchema, TheTeam, team_schema
from runvitals.server.teams.storage.teams import MAX_JOIN_DOMAINS, checked_labels

Kind = Literal["work", "academic"]
Text = Annotated[str, Field(max_length=1000)]
_FIELDS = {"type": "kind"}


class NewTeam(RequestBody):
    """A team to be created."""

    name: Text = Field(description="Letters a to z, digits, - and _; it never changes.")
    display_name: Text = ""
    type: Kind = "work"
    company: Text = ""
    default_visibility: Visibility = Visibility.TEAM
    bucket: str | None = Field(
        None,
        max_length=64,
        description="The name of a bucket of the organisation that keeps its files; it never changes. Only "
        "administrators of the organisation give one.",
    )


class TeamChanges(RequestBody):
    """Fields that are left out do not change."""

    name: Any = Field(None, description="It cannot be changed: 422.")
    display_name: Text | None = None
    description: Text | None = None
    type: Kind | None = None
    company: Text | None = None
    default_visibility: Visibility | None = None
    join_domains: list[Text] | None = Field(
        None, max_length=MAX_JOIN_DOMAINS, description="Mail domains whose users may join."
    )
    join_by_domain: Literal["ask", "auto"] | None = Field(
        None, description="`auto`: they join at once, as members. `ask`: an administrator approves."
    )


class TeamConfirmation(RequestBody):
    """The confirmation that a team is to be deleted."""

    confirm: Text = Field(description="The name of the team.")


class MyTeamSchema(ResponseBody):
    """A team of the requester, with their role."""

    name: str
    display_name: str
    role: str
    custom_role: str | None
    members: int
    created_ms: int


class MyTeamsPage(ResponseBody):
    """A page of the requester's teams."""

    model_config = ConfigDict(json_schema_serialization_defaults_required=False)

    teams: list[MyTeamSchema]
    total: int
    next: str | None
    may: list[str]
    administrators: list[str] | None = Field(default=None, description="Whom to ask for a team.")


class DeletedTeam(ResponseBody):
    """A team in the trash, and when it is removed for good."""

    team: str
    deleted_ms: int
    purged_ms: int


router = Router()


@router.get("/teams", needs("account"), response_model=MyTeamsPage, response_model_exclude_unset=True)
def my_teams(access: TheAccess, requester: TheRequester, page: ThePage) -> dict[str, Any]:
    """The teams that the requester is a member of, by name.

    `administrators`, for those who may not create teams: whom to ask for one.
    """
    user_id = requester.user_id
    mine = [] if user_id is None else access.accounts.teams.of_user(user_id, access.clock())
    listed = page_of(
        "teams",
        mine,
        lambda row: row[0].name,
        page,
        lambda row: {
            "name": row[0].name,
            "display_name": row[0].display_name,
            "role": row[1],
            "custom_role": row[2],
            "members": row[0].members,
            "created_ms": row[0].created_ms,
        },
    )
    may = access.may_list(requester, Organisation(), frozenset((Action.TEAM_CREATE,)))
    if may:
        return {**listed, "may": may}
    return {**listed, "may": may, "administrators": access.accounts.users.administrators()}


@router.post("/teams", needs("team:create"), status_code=201)
def create_team(
    new: NewTeam, request: Request, access: TheAccess, requester: TheRequester, response: Response
) -> TeamSchema:
    """Create a team. Who creates it becomes its administrator.

    Its bucket is checked first: 422 with the step that failed.
    """
    settings = with_defaults(access.accounts.settings.all())
    bucket_id = None if new.bucket is None else bucket_for_team(request, access, requester, new.bucket)
    with checking("name"):
        team = access.accounts.teams.create(
            new.name,
            requester.actor,
            access.clock(),
            administrator=requester.user_id,
            display_name=new.display_name,
            default_visibility=new.default_visibility.value,
            kind=new.type,
            company=new.company,
            hidden=settings["hide_teams_by_default"],
            code_saving=settings["code_saving_default"],
            bucket_id=bucket_id,
        )
    access.rights_changed()
    response.headers["location"] = f"/api/v1/teams/{team.name}"
    return team_schema(access, requester, team)


@router.get("/teams/{team}", needs("team:profile"))
def read_team(team: TheTeam, access: TheAccess, requester: TheRequester) -> TeamSchema:
    """A team, and what the requester may do with it."""
    return team_schema(access, requester, team)


@router.patch("/teams/{team}", needs("team:update"))
def change_team(
    team: TheTeam, changes: TeamChanges, access: TheAccess, requester: TheRequester
) -> TeamSchema:
    """Change what a team is called and shown as. Its name never changes."""
    if "name" in changes.model_fields_set:
        raise InvalidFields({"name": "the name of a team cannot be changed"})
    requested = changes.model_dump(exclude_unset=True, mode="json")
    fields = {_FIELDS.get(name, name): value for name, value in requested.items() if value is not None}
    for name in requested:
        with checking(name):
            checked_labels({field: fields[field] for field in (_FIELDS.get(name, name),) if field in fields})
    changed = access.accounts.teams.update(team.name, requester.actor, access.clock(), **fields)
    access.rights_changed()
    return team_schema(access, requester, changed)


@router.delete("/teams/{team}", needs("team:delete"), status_code=202)
def delete_team(
    team: TheTeam,
    confirmation: TeamConfirmation,
    access: TheAccess,
    requester: TheRequester,
    notices: TheNotices,
) -> DeletedTeam:
    """Move a team to the trash with all it owns: nobody sees it, and its keys stop working.

    An administrator of the organisation can restore it until `purged_ms`. While others have versions that
    are linked to theirs, these must be unlinked first: 409.
    """
    if confirmation.confirm != team.name:
        raise InvalidFields({"confirm": f"expected the name of the team, {team.name!r}"})
    now_ms = access.clock()
    try:
        access.metadata_store.artifacts.dependents.delete_team(
            team.id, lambda: access.accounts.teams.delete(team.name, requester.actor, now_ms)
        )
    except LinkedVersions as error:
        raise refusal(access, requester, "the team", error) from None
    access.rights_changed()
    days = with_defaults(access.accounts.settings.all())["trash_days"]
    purged_ms = now_ms + days * DAY_MS
    message = team_messages.team_deleted(team.name, requester.mail_name, purged_ms)
    notices.to_members(team.id, message, but=requester.user_id)
    return DeletedTeam(team=team.name, deleted_ms=now_ms, purged_ms=purged_ms)


@router.post("/teams/{team}/restore", needs("team:delete"))
def restore_team(team: TheTeam, access: TheAccess, requester: TheRequester) -> TeamSchema:
    """Take a team out of the trash."""
    if team.deleted_ms is None:
        raise HTTPException(409, f"the team {team.name!r} is not in the trash")
    access.accounts.teams.restore(team.name, requester.actor, access.clock())
    access.rights_changed()
    return team_schema(access, requester, access.accounts.teams.by_name(team.name))
