"""`/teams/{team}/service-accounts`, `/organisation/service-accounts`: accounts of programs, and their keys.

Those of a team work in that team; those of the organisation in all teams, except in restricted projects to
which they were not added.
"""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal
from urllib.parse import quote

from fastapi import Depends, Path, Query, Request, Response
from pydantic import ConfigDict, Field

from runvitals.model.durations import HOUR_MS
from runvitals.server.access.actions import Action
from runvitals.server.access.control import AccessControl
from runvitals.server.access.permission import needs
from runvitals.server.access.requester import Requester
from runvitals.server.access.resources import Organisation
from runvitals.server.accounts.routes.key_rules import (
    KeyScopeName,
    KeysPage,
    ShownKey,
    check_session,
    expiry_ms,
    key_schemas,
    shown_key,
)
from runvitals.server.accounts.storage.keys import KeyRow
from runvitals.server.http.bodies import RequestBody, ResponseBody, page_body
from runvitals.server.http.errors import InvalidFields, checking
from runvitals.server.http.listing import ThePage, page_of, part_of
from runvitals.server.http.router import Router
from runvitals.server.service_parameters import TheAccess, TheRequester
from runvitals.server.sign_on.storage.jwt_issuers import JwtIssuerRow
from runvitals.server.teams.storage.service_accounts import ServiceAccountRow
from runvitals.store.errors import NotFound

AccountName = Annotated[str, Path(max_length=64)]
KeyId = Annotated[str, Path(description="The shown part of the key.", max_length=64)]
_NAME = r"^[A-Za-z0-9 _.\-]{1,64}$"


class NewServiceAccount(RequestBody):
    """A service account to be created."""

    name: str = Field(pattern=_NAME)
    kind: Literal["builtin", "external"] = Field(
        "builtin",
        description="`external`: it shows tokens of an issuer instead of keys. Only administrators of the "
        "organisation make these.",
    )
    issuer: str | None = Field(None, max_length=500, description="Of an external account: the issuer's URL.")
    subject: str | None = Field(
        None, min_length=1, max_length=500, description="Of an external account: who it is at the issuer."
    )
    default_team: str | None = Field(None, description="Of the organisation's accounts: where runs go.")
    reads_only: bool = False
    scope: KeyScopeName | None = Field("write", description="Of its first key; null: it gets none.")


class ServiceAccountChanges(RequestBody):
    """Fields that are left out do not change."""

    name: str | None = Field(None, pattern=_NAME)
    default_team: str | None = None
    reads_only: bool | None = None
    disabled: bool | None = None


class NewServiceAccountKey(RequestBody):
    """A key of a service account, to be created."""

    name: str = Field(min_length=1, max_length=64)
    scope: KeyScopeName = "write"
    teams: list[Annotated[str, Field(max_length=64)]] = Field(
        [], max_length=50, description="The only teams that the key works in; empty: all of the account."
    )
    expires_ms: int | None = Field(None, ge=0, le=2**53)


class ServiceAccountKeyRotation(RequestBody):
    """How a key is replaced."""

    overlap_h: int = Field(24, ge=0, le=168, description="Hours until the old key ends.")


class ServiceAccountSchema(ResponseBody):
    """An account of programs."""

    name: str
    kind: str = Field(
        description="`builtin`; `external` if it shows tokens of an issuer; `legacy` for tokens from before "
        "accounts."
    )
    team: str | None = Field(description="None: of the organisation.")
    default_team: str | None = Field(description="Where its runs go that name no team.")
    reads_only: bool
    created_ms: int
    disabled_ms: int | None
    keys: int = Field(description="How many it has that are not revoked.")
    last_used_ms: int | None = Field(description="When one of its keys was used.")


ServiceAccountsPage = page_body(
    "ServiceAccountsPage", "A page of service accounts.", service_accounts=list[ServiceAccountSchema]
)


class CreatedServiceAccount(ServiceAccountSchema):
    """With its first key; an external one has none."""

    model_config = ConfigDict(json_schema_serialization_defaults_required=False)

    key: ShownKey | None = None


def home_of(request: Request, access: TheAccess) -> int | None:
    """The team of the path; None: the organisation."""
    name = request.path_params.get("team")
    return None if name is None else access.accounts.teams.by_name(name).id


TheHome = Annotated[int | None, Depends(home_of)]


def accounts(
    team_id: TheHome,
    access: TheAccess,
    page: ThePage,
    text: Annotated[str, Query(description="Part of the name.", max_length=100)] = "",
) -> dict[str, Any]:
    """The service accounts by name."""
    table, part = access.accounts.service_accounts, text.casefold()
    rows = table.of_organisation() if team_id is None else table.all(team_id)
    rows = sorted((row for row in rows if part in row.name.casefold()), key=lambda row: row.name)
    return page_of("service_accounts", rows, lambda row: row.name, page)


def create(
    new: NewServiceAccount,
    team_id: TheHome,
    access: TheAccess,
    requester: TheRequester,
    request: Request,
    response: Response,
) -> CreatedServiceAccount:
    """Create a service account, and its first key, which is shown once. An external one has no keys."""
    check_session(requester)
    default = _default_team(access, new.default_team, team_id)
    if (team_id is None) == (default is None):
        expected = "expected a team" if team_id is None else "a team's accounts have that team"
        raise InvalidFields({"default_team": expected})
    accounts, by, now_ms = access.accounts, requester.actor, access.clock()
    issuer = _issuer(access, requester, new)
    expires_ms = expiry_ms(access, None)

    def create_all() -> tuple[ServiceAccountRow, tuple[str, KeyRow] | None]:
        row = accounts.service_accounts.create(
            new.name, team_id, by, now_ms, default_team_id=default, reads_only=new.reads_only
        )
        key = None
        if issuer is not None:
            accounts.jwt_issuers.assign(row.id, issuer.id, new.subject or "", by, now_ms)
        elif new.scope is not None:
            key = accounts.keys.create(
                new.name, by, now_ms, service_account_id=row.id, scope=new.scope, expires_ms=expires_ms
            )
        return accounts.service_accounts.get(row.id), key

    row, key = accounts.in_one_transaction(create_all)
    access.rights_changed()
    response.headers["location"] = f"{request.url.path}/{quote(row.name)}"
    created = CreatedServiceAccount.model_validate(row)
    if key is not None:
        created.key = shown_key(accounts, *key)
    return created


def change(
    account: AccountName,
    changes: ServiceAccountChanges,
    team_id: TheHome,
    access: TheAccess,
    requester: TheRequester,
) -> ServiceAccountSchema:
    """Change a service account, or disable it: its keys then stop working until it is enabled."""
    table, by, now_ms = access.accounts.service_accounts, requester.actor, access.clock()
    number = table.by_name(account, team_id).id
    default = _default_team(access, changes.default_team, team_id)

    def change_all() -> ServiceAccountRow:
        table.update(
            number,
            by,
            now_ms,
            name=changes.name,
            default_team_id=default,
            reads_only=changes.reads_only,
        )
        if changes.disabled is not None:
            table.set_disabled(number, changes.disabled, by, now_ms)
        return table.get(number)

    with checking("default_team"):
        row = access.accounts.in_one_transaction(change_all)
    access.rights_changed()
    return ServiceAccountSchema.model_validate(row)


def delete(account: AccountName, team_id: TheHome, access: TheAccess, requester: TheRequester) -> None:
    """Delete a service account with its keys. Its runs stay, and its name is free again."""
    row = access.accounts.service_accounts.by_name(account, team_id)
    access.accounts.service_accounts.delete(row.id, requester.actor, access.clock())
    access.rights_changed()


def keys(account: AccountName, team_id: TheHome, access: TheAccess, page: ThePage) -> dict[str, Any]:
    """The keys of a service account that are not revoked."""
    row = access.accounts.service_accounts.by_name(account, team_id)
    rows = access.accounts.keys.all(service_account_id=row.id)
    part, cursor = part_of(rows, lambda key: key.id, page)
    return {"api_keys": key_schemas(access.accounts, part), "total": len(rows), "next": cursor}


def create_key(
    account: AccountName,
    new: NewServiceAccountKey,
    team_id: TheHome,
    access: TheAccess,
    requester: TheRequester,
) -> ShownKey:
    """Create a key of a service account. It is shown once."""
    check_session(requester)
    row = access.accounts.service_accounts.by_name(account, team_id)
    with checking("expires_ms"):
        secret, key = access.accounts.keys.create(
            new.name,
            requester.actor,
            access.clock(),
            service_account_id=row.id,
            scope=new.scope,
            entities=[_team_id(access, name, team_id, "teams") for name in new.teams],
            expires_ms=expiry_ms(access, new.expires_ms),
        )
    return shown_key(access.accounts, secret, key)


def rotate_key(
    account: AccountName,
    key: KeyId,
    rotation: ServiceAccountKeyRotation,
    team_id: TheHome,
    access: TheAccess,
    requester: TheRequester,
) -> ShownKey:
    """Replace a key by one with the same rights. The old one works until the overlap is over."""
    check_session(requester)
    old = _key_of(access, account, team_id, key)
    secret, new = access.accounts.keys.rotate(
        old.id, requester.actor, access.clock(), rotation.overlap_h * HOUR_MS
    )
    access.rights_changed()
    return shown_key(access.accounts, secret, new)


def revoke_key(
    account: AccountName, key: KeyId, team_id: TheHome, access: TheAccess, requester: TheRequester
) -> None:
    """Revoke a key."""
    old = _key_of(access, account, team_id, key)
    access.accounts.keys.revoke(old.id, requester.actor, access.clock())
    access.rights_changed()


_ROUTES: Final = (
    ("GET", "", 200, accounts, ServiceAccountsPage),
    ("POST", "", 201, create, CreatedServiceAccount),
    ("PATCH", "/{account}", 200, change, ServiceAccountSchema),
    ("DELETE", "/{account}", 204, delete, None),
    ("GET", "/{account}/api-keys", 200, keys, KeysPage),
    ("POST", "/{account}/api-keys", 201, create_key, ShownKey),
    ("POST", "/{account}/api-keys/{key}/rotate", 201, rotate_key, ShownKey),
    ("DELETE", "/{account}/api-keys/{key}", 204, revoke_key, None),
)
_BASES: Final = {
    "/teams/{team}/service-accounts": "service_account:manage",
    "/organisation/service-accounts": "org:service_account",
}

router = Router()
for _base, _permission in _BASES.items():
    for _method, _path, _status, _endpoint, _model in _ROUTES:
        router.add_api_route(
            _base + _path,
            _endpoint,
            methods=[_method],
            status_code=_status,
            response_model=_model,
            response_model_exclude_unset=True,
            dependencies=[needs(_permission)],
        )


def _issuer(access: AccessControl, requester: Requester, new: NewServiceAccount) -> JwtIssuerRow | None:
    """Return the issuer of an external account; None for one with keys.

    Raises:
        InvalidFields: the issuer or the subject is missing, or they are given for an account with keys.
        HTTPException: 403 for who does not administer the organisation, whose issuers serve all teams: a
            subject, which may have `*`, could be that of another team's programs.
    """
    if new.kind == "builtin":
        identity = {"issuer": new.issuer, "subject": new.subject}
        wrong = {
            name: "only external accounts have one" for name, value in identity.items() if value is not None
        }
        if wrong:
            raise InvalidFields(wrong)
        return None
    access.require(requester, Action.ORG_SERVICE_ACCOUNT, Organisation(), "the organisation")
    issuer = None if new.issuer is None else access.accounts.jwt_issuers.by_url(new.issuer)
    if issuer is None:
        raise InvalidFields({"issuer": "expected the URL of an issuer that the organisation has enabled"})
    if new.subject is None:
        raise InvalidFields({"subject": "expected the subject of the issuer's tokens"})
    return issuer


def _key_of(access: AccessControl, account: str, team_id: int | None, public_id: str) -> KeyRow:
    row = access.accounts.service_accounts.by_name(account, team_id)
    key = access.accounts.keys.by_public_id(public_id)
    if key.service_account_id != row.id:
        raise NotFound(f"there is no key {public_id!r}")
    return key


def _default_team(access: AccessControl, name: str | None, home: int | None) -> int | None:
    return None if name is None else _team_id(access, name, home, "default_team")


def _team_id(access: AccessControl, name: str, home: int | None, field: str) -> int:
    """Return the id of a team in which an account of `home` may work; None: of the organisation."""
    if home is not None:  # the response must not show which other teams exist
        own = access.accounts.entity(home)
        if own is not None and own.name == name.lower():
            return home
        raise InvalidFields({field: "a team's service account works in that team"})
    try:
        team = access.accounts.teams.by_name(name)
    except NotFound as error:
        raise InvalidFields({field: str(error)}) from None
    if team.deleted_ms is not None:
        raise InvalidFields({field: f"the team {name!r} is in the trash"})
    return team.id
