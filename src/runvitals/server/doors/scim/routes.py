"""The routes of SCIM under `/scim/v2`."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import replace
from typing import Annotated, Any, Protocol, TypeVar

from fastapi import Body, Depends, Query, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from starlette.exceptions import HTTPException

from runvitals.server.access.control import AccessControl
from runvitals.server.access.permission import needs, with_accounts
from runvitals.server.access.requester import Requester
from runvitals.server.audit.storage.audit import Actor
from runvitals.server.doors.scim import discovery
from runvitals.server.doors.scim.groups import ScimGroups
from runvitals.server.doors.scim.messages import (
    PREFIX,
    ScimError,
    error_response,
    list_response,
    scim_response,
    with_attributes,
)
from runvitals.server.doors.scim.users import SCIM, ScimUsers
from runvitals.server.error_table import meaning_of
from runvitals.server.http.router import Router
from runvitals.server.metadata_store import MetadataStore
from runvitals.server.organisation.settings import with_defaults
from runvitals.server.service_parameters import TheAccess, TheRequester, TheServices
from runvitals.store.errors import (
    InUse,
    LastAdministrator,
    LimitReached,
    NameTaken,
    NoLongerValid,
    NotAllowed,
    NotFound,
)

T = TypeVar("T")
_NEEDS = (needs("public"), with_accounts())
_REFUSALS = (HTTPException, InUse, LastAdministrator, LimitReached, NameTaken, NotAllowed, NotFound)


class ScimRoute(APIRoute):
    """A route whose errors are those of SCIM."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """Return the handler with errors in SCIM's form."""
        handle = super().get_route_handler()

        async def with_scim_errors(request: Request) -> Response:
            try:
                return await handle(request)
            except ScimError as error:
                return error_response(error.status, str(error), error.kind)
            except RequestValidationError:
                return error_response(400, "the body or a parameter is not valid", "invalidSyntax")
            except _REFUSALS as error:
                meaning = meaning_of(error)
                return error_response(meaning.status, meaning.text)

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
    access.accounts.scim.note_use(access.clock())
    return access


Checked = Annotated[AccessControl, Depends(_check_secret)]
JsonBody = Annotated[dict[str, Any], Body()]
Filter = Annotated[str | None, Query(alias="filter", max_length=500)]
Only = Annotated[str | None, Query(alias="attributes", max_length=1000)]
Without = Annotated[str | None, Query(alias="excludedAttributes", max_length=1000)]
Start = Annotated[int, Query(alias="startIndex", ge=-(2**31), le=2**31)]
Count = Annotated[int, Query(ge=-(2**31), le=2**31)]

router = Router(prefix=PREFIX, route_class=ScimRoute, include_in_schema=False)


class ScimResources(Protocol[T]):
    """Users or groups, for an identity provider."""

    def find(self, expression: str | None) -> Sequence[T]:
        """Return those that fit a filter, or all."""

    def get(self, id: str) -> T:
        """Return one of them. Raises ScimError 404."""

    def create(self, body: Mapping[str, Any]) -> T:
        """Create one."""

    def replace(self, row: T, body: Mapping[str, Any]) -> T:
        """Give one the values of a whole resource."""

    def patch(self, row: T, body: dict[str, Any]) -> T:
        """Carry out the operations of a PATCH."""

    def delete(self, row: T) -> None:
        """Delete one."""

    def json(self, rows: Sequence[T]) -> list[dict[str, Any]]:
        """Return resources as SCIM has them."""


OpenResources = Callable[[MetadataStore, Actor, int, str], ScimResources[T]]


def _open(open_resources: OpenResources[T], access: AccessControl, requester: Requester) -> ScimResources[T]:
    by = requester.actor
    provider = replace(SCIM, ip=by.ip, agent=by.agent, request_id=by.request_id)
    return open_resources(access.metadata_store, provider, access.clock(), _url(access))


def _url(access: AccessControl) -> str:
    return str(with_defaults(access.accounts.settings.all())["url"]).rstrip("/")


def _change(access: AccessControl, resources: ScimResources[T], change: Callable[[], T]) -> dict[str, Any]:
    """Carry out a request, all of it or nothing; returns the resource."""
    [resource] = access.accounts.in_one_transaction(lambda: resources.json([change()]))
    access.rights_changed()
    return resource


def _add_reading(name: str, open_resources: OpenResources[T]) -> None:
    """Add the routes that read users or groups, which are the same."""

    def listed(
        access: Checked,
        requester: TheRequester,
        expression: Filter = None,
        start: Start = 1,
        count: Count = 100,
        only: Only = None,
        without: Without = None,
    ) -> Response:
        resources = _open(open_resources, access, requester)

        def shown(rows: Sequence[T]) -> list[dict[str, Any]]:
            return [with_attributes(row, only, without) for row in resources.json(rows)]

        return scim_response(list_response(resources.find(expression), start, count, shown))

    def read(
        access: Checked, requester: TheRequester, id: str, only: Only = None, without: Without = None
    ) -> Response:
        resources = _open(open_resources, access, requester)
        [resource] = resources.json([resources.get(id)])
        return scim_response(with_attributes(resource, only, without))

    router.add_api_route(f"/{name}", listed, methods=["GET"], dependencies=_NEEDS)
    router.add_api_route(f"/{name}/{{id}}", read, methods=["GET"], dependencies=_NEEDS)


def _add_changes(name: str, open_resources: OpenResources[T]) -> None:
    """Add the routes that change users or groups."""

    def create(access: Checked, requester: TheRequester, body: JsonBody) -> Response:
        resources = _open(open_resources, access, requester)
        resource = _change(access, resources, lambda: resources.create(body))
        return scim_response(resource, 201, {"location": resource["meta"]["location"]})

    def put(access: Checked, requester: TheRequester, id: str, body: JsonBody) -> Response:
        resources = _open(open_resources, access, requester)
        return scim_response(_change(access, resources, lambda: resources.replace(resources.get(id), body)))

    def patch(access: Checked, requester: TheRequester, id: str, body: JsonBody) -> Response:
        resources = _open(open_resources, access, requester)
        return scim_response(_change(access, resources, lambda: resources.patch(resources.get(id), body)))

    def remove(access: Checked, requester: TheRequester, id: str) -> Response:
        resources = _open(open_resources, access, requester)
        access.accounts.in_one_transaction(lambda: resources.delete(resources.get(id)))
        access.rights_changed()
        return Response(status_code=204)

    item_path = f"/{name}/{{id}}"
    for method, path, endpoint in (
        ("POST", f"/{name}", create),
        ("PUT", item_path, put),
        ("PATCH", item_path, patch),
        ("DELETE", item_path, remove),
    ):
        router.add_api_route(path, endpoint, methods=[method], dependencies=_NEEDS)


_add_reading("Users", ScimUsers)
_add_reading("Groups", ScimGroups)
_add_changes("Users", ScimUsers)
_add_changes("Groups", ScimGroups)


@router.get("/ServiceProviderConfig", *_NEEDS)
def configuration(access: Checked) -> Response:
    """Return what this server supports of SCIM."""
    return scim_response(discovery.configuration(_url(access)))


def _add_discovery(name: str, described: Callable[[str], list[dict[str, Any]]]) -> None:
    """Add the routes of what is described, all of it or one by its id."""

    def listed(access: Checked) -> Response:
        rows = described(_url(access))
        return scim_response(list_response(rows, 1, len(rows), list))

    def read(access: Checked, id: str) -> Response:
        for row in described(_url(access)):
            if row["id"] == id:
                return scim_response(row)
        raise ScimError(404, f"there is nothing with id {id[:80]!r}")

    for path, endpoint in ((f"/{name}", listed), (f"/{name}/{{id}}", read)):
        router.add_api_route(path, endpoint, methods=["GET"], dependencies=_NEEDS)


_add_discovery("ResourceTypes", discovery.resource_types)
_add_discovery("Schemas", discovery.schemas)
