"""`/auth/setup`: the first administrator, by the link that the server prints when it starts."""

from __future__ import annotations

from dataclasses import replace

from fastapi import HTTPException, Request
from fastapi.responses import Response
from pydantic import Field

from runvitals.server.access.actions import PUBLIC
from runvitals.server.access.control import AccessControl
from runvitals.server.access.permission import needs
from runvitals.server.access.requester import Requester
from runvitals.server.account_services import AccountServices
from runvitals.server.accounts.routes.account_schema import SignedInSchema, account_of
from runvitals.server.accounts.routes.new_user import check_new_user
from runvitals.server.accounts.routes.session_cookies import remember_browser, start_session
from runvitals.server.accounts.routes.sign_in import Password
from runvitals.server.accounts.routes.sign_up import Token
from runvitals.server.accounts.storage.users import UserRow
from runvitals.server.http.bodies import RequestBody
from runvitals.server.http.errors import InvalidFields
from runvitals.server.http.router import Router
from runvitals.server.service_parameters import TheAccess, TheRequester, TheServices

router = Router()


class Setup(RequestBody):
    """The first administrator."""

    token: Token
    name: str = Field(max_length=64)
    email: str = Field(max_length=254)
    password: Password
    display_name: str = Field("", max_length=64)
    organisation: str = Field("", max_length=64)
    team: str = Field("main", max_length=64, description="Owns the projects that the server has already.")


class SetUpSchema(SignedInSchema):
    """The first administrator, who is signed in now."""

    removed: dict[str, list[str]] = Field(
        description="What requests had made of accounts before: names by kind."
    )


@router.post("/auth/setup", needs(PUBLIC), status_code=201)
async def set_up(
    body: Setup,
    request: Request,
    response: Response,
    requester: TheRequester,
    access: TheAccess,
    services: TheServices,
) -> SetUpSchema:
    """Create the first administrator, and the team that owns what the server has already.

    From then on, every request needs an account or a key.
    """

    def create_and_start() -> SetUpSchema:
        user = _create(body, requester, access, services)
        access.rights_changed()
        start_session(request, response, access, requester, user, "setup")
        remember_browser(request, response, services.box, user.id)
        return SetUpSchema(
            account=account_of(access, user.id), next="/", removed=access.accounts.removed_at_setup()
        )

    return await services.hashing(create_and_start)


def _create(body: Setup, requester: Requester, access: AccessControl, services: AccountServices) -> UserRow:
    accounts, now_ms = access.accounts, access.clock()
    if accounts.users.any_administrator():
        raise HTTPException(409, "this server has an administrator already")
    tokens = accounts.one_time_tokens
    services.of_link(requester.ip, lambda: tokens.peek(body.token, "setup", now_ms))
    actor = replace(requester.actor, kind="anonymous", name="setup", via="link")
    accounts.remove_planted(actor, now_ms)  # first, because it may have the name or the team
    check_new_user(services, body.name, body.email, body.password, body.display_name, team=body.team)
    if body.team.lower() == body.name.lower():
        raise InvalidFields({"team": "a user and a team cannot have the same name"})
    hashed = services.passwords.hash(body.password)

    def create() -> UserRow:
        tokens.use(body.token, "setup", now_ms)
        user = accounts.users.create(
            body.name,
            actor,
            now_ms,
            display_name=body.display_name,
            address=body.email,
            verified=True,
            org_role="admin",
            hashed_password=hashed,
            via="setup",
        )
        team = accounts.teams.create(body.team, actor, now_ms, administrator=user.id)
        accounts.teams.adopt(team.id, actor, now_ms)
        if body.organisation.strip():
            accounts.settings.put({"name": body.organisation.strip()}, actor, now_ms)
        return user

    return accounts.in_one_transaction(create)
