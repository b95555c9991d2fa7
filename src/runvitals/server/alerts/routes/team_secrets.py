"""`/teams/{team}/secrets`: values that webhooks send. They are set, replaced and deleted, but never shown."""

from __future__ import annotations

from typing import Annotated, Any, Final

from fastapi import Path, Query
from pydantic import Field

from runvitals.server.access.permission import needs
from runvitals.server.alerts.storage.team_secrets import SecretInUse, TeamSecretRow
from runvitals.server.database.secret_box import team_secret_purpose
from runvitals.server.http.bodies import RequestBody, ResponseBody, page_body
from runvitals.server.http.errors import DetailedError, InvalidFields, checking
from runvitals.server.http.listing import ThePage, page_of
from runvitals.server.http.router import Router
from runvitals.server.service_parameters import TheAccess, TheOutsideServices, TheRequester
from runvitals.server.teams.routes.parameters import TheAutomationOwner

MAX_BYTES: Final = 8 * 1024
SecretName = Annotated[str, Path(description="Letters A to Z, digits and `_`.", max_length=64)]

router = Router()


class SecretValue(RequestBody):
    """The value of a secret."""

    value: str = Field(min_length=1, max_length=MAX_BYTES)


class TeamSecretSchema(ResponseBody):
    """A secret without its value."""

    name: str
    created_ms: int
    changed_ms: int
    changed_by: str | None = Field(description="None: no user set the value, or the user was deleted.")
    webhooks: list[str] = Field(description="The webhooks that use it.")


TeamSecretsPage = page_body("TeamSecretsPage", "The secrets of a team.", secrets=list[TeamSecretSchema])


@router.get("/teams/{team}/secrets", needs("secret:manage"), response_model=TeamSecretsPage)
def secrets(team: TheAutomationOwner, access: TheAccess, page: ThePage) -> dict[str, Any]:
    """The team's secrets by name, without their values."""
    rows = access.accounts.team_secrets.of_team(team.id)
    return page_of("secrets", rows, lambda row: row.name, page)


@router.put("/teams/{team}/secrets/{secret}", needs("secret:manage"), response_model=TeamSecretSchema)
def put_secret(
    secret: SecretName,
    body: SecretValue,
    team: TheAutomationOwner,
    access: TheAccess,
    requester: TheRequester,
    outside: TheOutsideServices,
) -> TeamSecretRow:
    """Set a secret, or replace its value. Webhooks that use it use the new value."""
    try:
        value = body.value.encode()
    except UnicodeEncodeError:
        raise InvalidFields({"value": "it has a character that cannot be stored"}) from None
    if len(value) > MAX_BYTES:
        raise InvalidFields({"value": f"it is too long; expected at most {MAX_BYTES // 1024} KiB"})
    table = access.accounts.team_secrets
    sealed = outside.box.seal(value, team_secret_purpose(team.id, secret))
    with checking("name"):
        table.put(team.id, secret, sealed, requester.actor, access.clock())
    return next(row for row in table.of_team(team.id) if row.name == secret)


@router.delete("/teams/{team}/secrets/{secret}", needs("secret:manage"), status_code=204)
def delete_secret(
    secret: SecretName,
    team: TheAutomationOwner,
    access: TheAccess,
    requester: TheRequester,
    force: Annotated[
        bool, Query(description="Though webhooks use it; they are then disabled and lose it.")
    ] = False,
) -> None:
    """Delete a secret that no webhook uses."""
    try:
        access.accounts.team_secrets.delete(team.id, secret, requester.actor, access.clock(), force=force)
    except SecretInUse as error:
        raise DetailedError(409, str(error), {"webhooks": error.webhooks}) from None
