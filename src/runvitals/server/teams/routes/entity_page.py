"""`/entities/{entity}`: the page of a team or user, whichever has the name."""

from __future__ import annotations

from typing import Annotated

from fastapi import Path

from runvitals.server.access.actions import Action
from runvitals.server.access.permission import needs
from runvitals.server.access.resources import Account
from runvitals.server.accounts.routes.users import UserPage, user_page
from runvitals.server.http.router import Router
from runvitals.server.service_parameters import TheAccess, TheOutsideServices, TheRequester
from runvitals.server.teams.routes.profile import TeamPage, team_page

router = Router()


@router.get("/entities/{entity}", needs("filtered team:profile"), response_model_exclude_unset=True)
def entity_page(
    entity: Annotated[str, Path(description="A team or user.", max_length=64)],
    access: TheAccess,
    requester: TheRequester,
    outside: TheOutsideServices,
) -> TeamPage | UserPage:
    """Return the page of a team or user: that of `/teams/{team}/profile` or `/users/{user}`."""
    resource, what = access.directory.entity_named(entity), f"team or user {entity!r}"
    if resource is None:
        access.hide(requester, what)
    if resource.owner_id is None:
        access.require(requester, Action.TEAM_PROFILE, resource, what, changes=False)
        return team_page(access, requester, access.accounts.teams.by_name(entity), outside)
    if resource.deleted:
        access.hide(requester, what)
    access.require(requester, Action.USER_READ, Account(resource.owner_id), what, changes=False)
    row = access.accounts.users.by_name(entity)
    if row.state == "unverified":
        access.hide(requester, what)
    return user_page(access, requester, row, outside)
