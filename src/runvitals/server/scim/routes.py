"""The routes of SCIM under `/scim/v2`."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Annotated, Any

from fastapi import APIRouter, Body, Depends, Query, Request, Response
from fastapi.exceptions import HTTPException, RequestValidationError
from fastapi.routing import APIRoute

from runvitals.accounts.organisation_settings import with_defaults
from runvitals.server.access.control import AccessControl, TheAccess
from runvitals.server.access.permission import needs
from runvitals.server.access.requester import TheRequester
from runvitals.server.api.accounts.services import TheServices
from runvitals.server.scim.groups import ScimGroups
from runvitals.server.scim.messages import (
    PREFIX,
    ScimError,
    error_response,
    list_response,
    scim_response,
)
from runvitals.server.scim.users import ScimUsers
from runvitals.store.errors import LastAdministrator, LimitReached, NameTaken, NoLongerValid, UnknownAccount

_CORE = "urn:ietf:params:scim:schemas:core:2.0:"


class ScimRoute(APIRoute):
    """A route whose errors are those of SCIM."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handle = super().get_route_handler()

        async def with_scim_errors(request: Request) -> Response:
            try:
                return await handle(request)
            except ScimError as error:
                return error_response(error.status, str(error), error.kind)
            except RequestValidationError:
                return error_response(400, "the body or a parameter is not valid", "invalidSyntax")
            except UnknownAccount as error:
                return error_response(404, str(error))
            except (LastAdministrator, LimitReached, NameTaken) as error:
                return error_response(409, str(error))
            except HTTPException as error:
                return error_response(error.status_code, str(error.detail))

        return with_scim_errors


def _check_secret(
    request: Request, access: TheAccess, requester: TheRequester, services: TheServices
) -> AccessControl:
    """Check the secret of the identity provider.

    Raises:
        ScimError: 401.
        HTTPException: 429 after too many wrong ones.
    """
    scheme, _, secret = request.headers.get("authorization", "").partition(" ")

    def check() -> None:
        if scheme.lower() != "bearer" or not access.accounts.scim.check(secret.strip()):
            raise NoLongerValid("wrong secret")

    try:
        services.of_link(requester.ip, check)
    except NoLongerValid:
        raise ScimError(401, "send the secret of this organisation as Authorization: Bearer …") from None
    access.accounts.scim.used(access.clock())
    return access


Checked = Annotated[AccessControl, Depends(_check_secret)]
JsonBody = Annotated[dict[str, Any], Body()]
Filter = Annotated[str | None, Query(alias="filter", max_length=500)]
Start = Annotated[int, Query(alias="startIndex", ge=-(2**31), le=2**31)]
Count = Annotated[int, Query(ge=-(2**31), le=2**31)]

router = APIRouter(prefix=PREFIX, route_class=ScimRoute, include_in_schema=False)


def _users(access: AccessControl) -> ScimUsers:
    return ScimUsers(access.accounts, access.clock(), _url(access))


def _groups(access: AccessControl) -> ScimGroups:
    return ScimGroups(access.accounts, access.clock(), _url(access))


def _url(access: AccessControl) -> str:
    return str(with_defaults(access.accounts.settings.all())["url"]).rstrip("/")


@router.get("/ServiceProviderConfig", dependencies=[needs("public")])
def configuration(access: Checked) -> Response:
    """What this server supports of SCIM."""
    no = {"supported": False}
    return scim_response(
        {
            "schemas": [f"{_CORE}ServiceProviderConfig"],
            "patch": {"supported": True},
            "bulk": {**no, "maxOperations": 0, "maxPayloadSize": 0},
            "filter": {"supported": True, "maxResults": 200},
            "changePassword": no,
            "sort": no,
            "etag": no,
            "authenticationSchemes": [
                {"type": "oauthbearertoken", "name": "Bearer", "description": "The organisation's secret"}
            ],
        }
    )


@router.get("/ResourceTypes", dependencies=[needs("public")])
def resource_types(access: Checked) -> Response:
    """Users and groups."""
    rows = [
        {
            "schemas": [f"{_CORE}ResourceType"],
            "id": name,
            "name": name,
            "endpoint": f"/{name}s",
            "schema": f"{_CORE}{name}",
        }
        for name in ("User", "Group")
    ]
    return scim_response(list_response(rows, 1, len(rows), lambda row: row))


@router.get("/Users", dependencies=[needs("public")])
def list_users(access: Checked, expression: Filter = None, start: Start = 1, count: Count = 100) -> Response:
    """Users; `filter=userName eq "…"` finds one."""
    users = _users(access)
    return scim_response(list_response(users.find(expression), start, count, users.json))


@router.post("/Users", status_code=201, dependencies=[needs("public")])
def create_user(access: Checked, body: JsonBody) -> Response:
    """Create a user."""
    users = _users(access)
    created = users.json(users.create(body))
    access.rights_changed()
    return scim_response(created, 201, {"location": created["meta"]["location"]})


@router.get("/Users/{id}", dependencies=[needs("public")])
def read_user(access: Checked, id: str) -> Response:
    """One user."""
    users = _users(access)
    return scim_response(users.json(users.get(id)))


@router.put("/Users/{id}", dependencies=[needs("public")])
def replace_user(access: Checked, id: str, body: JsonBody) -> Response:
    """Replace what SCIM keeps of a user."""
    users = _users(access)
    changed = users.json(users.replace(users.get(id), body))
    access.rights_changed()
    return scim_response(changed)


@router.patch("/Users/{id}", dependencies=[needs("public")])
def patch_user(access: Checked, id: str, body: JsonBody) -> Response:
    """Change a user; `active: false` suspends the account."""
    users = _users(access)
    changed = users.json(users.patch(users.get(id), body))
    access.rights_changed()
    return scim_response(changed)


@router.delete("/Users/{id}", status_code=204, dependencies=[needs("public")])
def delete_user(access: Checked, id: str) -> Response:
    """Delete an account for good."""
    users = _users(access)
    users.delete(users.get(id))
    access.rights_changed()
    return Response(status_code=204)


@router.get("/Groups", dependencies=[needs("public")])
def list_groups(access: Checked, expression: Filter = None, start: Start = 1, count: Count = 100) -> Response:
    """Teams; `filter=displayName eq "…"` finds one."""
    groups = _groups(access)
    return scim_response(list_response(groups.find(expression), start, count, groups.json))


@router.post("/Groups", status_code=201, dependencies=[needs("public")])
def create_group(access: Checked, body: JsonBody) -> Response:
    """Create a team with its members."""
    groups = _groups(access)
    created = groups.json(groups.create(body))
    access.rights_changed()
    return scim_response(created, 201, {"location": created["meta"]["location"]})


@router.get("/Groups/{id}", dependencies=[needs("public")])
def read_group(access: Checked, id: str) -> Response:
    """One team."""
    groups = _groups(access)
    return scim_response(groups.json(groups.get(id)))


@router.put("/Groups/{id}", dependencies=[needs("public")])
def replace_group(access: Checked, id: str, body: JsonBody) -> Response:
    """Replace name and members of a team."""
    groups = _groups(access)
    changed = groups.json(groups.replace(groups.get(id), body))
    access.rights_changed()
    return scim_response(changed)


@router.patch("/Groups/{id}", dependencies=[needs("public")])
def patch_group(access: Checked, id: str, body: JsonBody) -> Response:
    """Add and remove members of a team, or change its display name."""
    groups = _groups(access)
    changed = groups.json(groups.patch(groups.get(id), body))
    access.rights_changed()
    return scim_response(changed)


@router.delete("/Groups/{id}", status_code=204, dependencies=[needs("public")])
def delete_group(access: Checked, id: str) -> Response:
    """Move a team to the trash."""
    groups = _groups(access)
    groups.delete(groups.get(id))
    access.rights_changed()
    return Response(status_code=204)
