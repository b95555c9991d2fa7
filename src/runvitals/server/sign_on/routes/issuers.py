"""`/organisation/issuers`: services whose tokens programs may show instead of keys."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import HTTPException, Path, Query
from pydantic import Field

from runvitals.server.access.permission import needs
from runvitals.server.http.bodies import RequestBody, ResponseBody, page_body
from runvitals.server.http.errors import InvalidFields, answering, checking
from runvitals.server.http.listing import ThePage, page_in_order
from runvitals.server.http.router import Router
from runvitals.server.outbound.policy import Blocked
from runvitals.server.service_parameters import TheAccess, TheOutsideServices, TheRequester
from runvitals.server.sign_on.discovery import ProviderFailed
from runvitals.server.sign_on.storage.jwt_issuers import JwtIssuerRow
from runvitals.server.sign_on.tokens import checked_keys
from runvitals.store.errors import NameTaken

router = Router()

Keys = Annotated[
    str | None,
    Field(
        max_length=100_000,
        description="A JWKS document with its keys, for an issuer that the server cannot reach. Left out or "
        "empty: the server asks the issuer.",
    ),
]
IssuerId = Annotated[int, Path(ge=1, le=2**31 - 1)]


class NewIssuer(RequestBody):
    """A service whose tokens are to be accepted."""

    name: str = Field(min_length=1, max_length=64)
    url: str = Field(min_length=1, max_length=500)
    audience: str = Field(min_length=1, max_length=500)
    keys: Keys = None


class IssuerSubject(RequestBody):
    """Whose tokens act as which service account."""

    subject: str = Field(
        min_length=1,
        max_length=500,
        description="As the issuer's tokens have it; `*` stands for any characters, not at the beginning.",
    )
    service_account: str = Field(max_length=64)
    team: str | None = Field(None, max_length=64, description="Of the service account; null: none.")


class IssuerChanges(RequestBody):
    """Changes; a field that is left out stays as it is."""

    name: str | None = Field(None, min_length=1, max_length=64)
    audience: str | None = Field(None, min_length=1, max_length=500)
    enabled: bool | None = None
    keys: Keys = None


class IssuerSchema(ResponseBody):
    """A service whose tokens programs may show instead of keys."""

    id: int
    name: str
    url: str
    audience: str
    enabled: bool
    created_ms: int
    pasted_keys: bool = Field(description="Its keys were entered here: the server does not ask the issuer.")


IssuersPage = page_body("IssuersPage", "A page of issuers.", issuers=list[IssuerSchema])


class SubjectSchema(ResponseBody):
    """Tokens with this subject act as a service account. `team`: null for one of the organisation."""

    subject: str
    service_account: str
    team: str | None


SubjectsPage = page_body("SubjectsPage", "A page of subjects.", subjects=list[SubjectSchema])


@router.get("/organisation/issuers", needs("org:member_read"), response_model=IssuersPage)
def issuers(access: TheAccess, page: ThePage) -> Any:
    """The issuers."""
    rows = [_to_schema(issuer) for issuer in access.accounts.jwt_issuers.all()]
    return page_in_order("issuers", rows, page)


@router.post("/organisation/issuers", needs("org:service_account"), status_code=201)
async def add_issuer(
    body: NewIssuer, access: TheAccess, requester: TheRequester, outside: TheOutsideServices
) -> IssuerSchema:
    """Accept the tokens of an issuer, which is asked for its keys first if none are given."""
    keys = _check_keys(body.keys)

    def add() -> JwtIssuerRow:
        if keys is None:
            outside.fetcher.check(body.url)
            outside.discovery.metadata(body.url)
        return access.accounts.jwt_issuers.create(
            body.name, body.url, body.audience, requester.actor, access.clock(), pasted_keys=keys
        )

    try:
        return _to_schema(await outside.workers.run(add))
    except NameTaken as error:
        raise HTTPException(409, str(error)) from None
    except (Blocked, ProviderFailed) as error:
        raise InvalidFields({"url": str(error)}) from None
    except ValueError as error:
        raise InvalidFields({"name": str(error)}) from None


@router.patch("/organisation/issuers/{issuer}", needs("org:service_account"))
def change_issuer(
    issuer: IssuerId, body: IssuerChanges, access: TheAccess, requester: TheRequester
) -> IssuerSchema:
    """Enable or disable an issuer, or change its name or audience."""
    blank = {
        field: "expected a text that is not blank"
        for field in ("name", "audience")
        if (value := getattr(body, field)) is not None and not value.strip()
    }
    if blank:
        raise InvalidFields(blank)
    row = access.accounts.jwt_issuers.update(
        issuer,
        requester.actor,
        access.clock(),
        name=body.name,
        audience=body.audience,
        enabled=body.enabled,
        pasted_keys="" if body.keys == "" else _check_keys(body.keys),
    )
    access.rights_changed()
    return _to_schema(row)


@router.delete("/organisation/issuers/{issuer}", needs("org:service_account"), status_code=204)
def remove_issuer(issuer: IssuerId, access: TheAccess, requester: TheRequester) -> None:
    """Remove an issuer that no service account uses."""
    with answering(409):
        access.accounts.jwt_issuers.delete(issuer, requester.actor, access.clock())


@router.get("/organisation/issuers/{issuer}/subjects", needs("org:member_read"), response_model=SubjectsPage)
def subjects(issuer: IssuerId, access: TheAccess, page: ThePage) -> Any:
    """Which subject of an issuer acts as which service account."""
    owners = {account.id: account for account in access.accounts.service_accounts.all()}
    rows = [
        {"subject": identity.subject, "service_account": owner.name, "team": owner.team}
        for identity in access.accounts.jwt_issuers.identities(issuer)
        if (owner := owners.get(identity.service_account_id)) is not None
    ]
    return page_in_order("subjects", rows, page)


@router.put("/organisation/issuers/{issuer}/subjects", needs("org:service_account"))
def put_subject(
    issuer: IssuerId, body: IssuerSubject, access: TheAccess, requester: TheRequester
) -> SubjectSchema:
    """Make tokens with this subject act as a service account, instead of the one before."""
    accounts = access.accounts
    try:
        team_id = None if body.team is None else accounts.teams.by_name(body.team).id
        account = accounts.service_accounts.by_name(body.service_account, team_id)
        accounts.jwt_issuers.assign(account.id, issuer, body.subject, requester.actor, access.clock())
    except NameTaken as error:
        raise HTTPException(409, str(error)) from None
    except ValueError as error:
        raise InvalidFields({"subject": str(error)}) from None
    access.rights_changed()
    return SubjectSchema(subject=body.subject, service_account=account.name, team=body.team)


@router.delete("/organisation/issuers/{issuer}/subjects", needs("org:service_account"), status_code=204)
def remove_subject(
    issuer: IssuerId,
    subject: Annotated[str, Query(max_length=500)],
    access: TheAccess,
    requester: TheRequester,
) -> None:
    """Stop tokens with this subject from acting as a service account."""
    access.accounts.jwt_issuers.unassign(issuer, subject, requester.actor, access.clock())
    access.rights_changed()


def _check_keys(keys: str | None) -> str | None:
    """Return the keys as they are stored; None if there are none."""
    if not keys:
        return None
    with checking("keys"):
        return checked_keys(keys)


def _to_schema(issuer: JwtIssuerRow) -> IssuerSchema:
    return IssuerSchema(
        id=issuer.id,
        name=issuer.name,
        url=issuer.url,
        audience=issuer.audience,
        enabled=issuer.enabled,
        created_ms=issuer.created_ms,
        pasted_keys=issuer.pasted_keys is not None,
    )
