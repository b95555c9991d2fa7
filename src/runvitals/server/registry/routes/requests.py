"""`…/requests`: members ask for protected aliases, administrators of the registry decide."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict
from typing import Annotated, Any, Final, Literal
from urllib.parse import quote

from fastapi import HTTPException, Path, Query, Response
from pydantic import Field

from runvitals.server.access.actions import Action
from runvitals.server.events.outbox import Notification
from runvitals.server.http.bodies import RequestBody, ResponseBody, page_body
from runvitals.server.http.errors import checking
from runvitals.server.http.listing import ThePage, stored_page
from runvitals.server.http.router import Router
from runvitals.server.outside_services import OutsideServices
from runvitals.server.registry.routes.parameters import (
    COLLECTION,
    REGISTRY,
    NamedRegistry,
    TheCollection,
    TheRegistryOfPath,
    requires,
    version_named,
)
from runvitals.server.registry.routes.registry_people import deciders_of
from runvitals.server.registry.storage.alias_requests import AliasRequest, RequestState
from runvitals.server.service_parameters import TheOutsideServices
from runvitals.server.user_content.markdown import html_of
from runvitals.store.errors import NotFound

_REQUEST: Final = f"{REGISTRY}/requests/{{number}}"
_MAX_QUOTE: Final = 2000
_STATES: Final[dict[str, RequestState]] = {
    "approve": "approved",
    "decline": "declined",
    "withdraw": "withdrawn",
}
Number = Annotated[int, Path(ge=1, le=2**31 - 1)]

router = Router()


class NewAliasRequest(RequestBody):
    """A request that a version gets a protected alias."""

    alias: str = Field(min_length=1, max_length=256)
    version: int | str = Field(description="Its number, `v3`, or an alias that it has.")
    text: str = Field("", max_length=10_000, description="Why. Markdown.")


class NewRequestComment(RequestBody):
    """A comment on a request."""

    text: str = Field(min_length=1, max_length=10_000, description="Markdown.")


class RequestDecision(RequestBody):
    """What a decision says."""

    text: str = Field("", max_length=10_000, description="Why. Markdown.")


class AliasRequestSchema(ResponseBody):
    """A request that a version gets a protected alias."""

    id: int
    collection: str
    number: int = Field(description="Of the version.")
    alias: str
    state: RequestState
    author: str
    created_ms: int
    closed_by: str | None
    closed_ms: int | None
    comments: int


AliasRequestsPage = page_body(
    "AliasRequestsPage", "A page of requests, the newest first.", requests=list[AliasRequestSchema]
)


class RequestCommentSchema(ResponseBody):
    """A comment on a request."""

    author: str
    text: str
    html: str
    created_ms: int


class AliasRequestDetail(AliasRequestSchema):
    """A request with its thread."""

    thread: list[RequestCommentSchema]
    may: list[str] = Field(description="`approve`, `decline`, `withdraw`, `comment`.")


@router.get(f"{REGISTRY}/requests", *requires("registry:read"), response_model=AliasRequestsPage)
def requests(
    registry: TheRegistryOfPath,
    page: ThePage,
    state: RequestState | None = None,
    collection: Annotated[str | None, Query(max_length=256)] = None,
) -> dict[str, Any]:
    """The requests for protected aliases of a registry."""
    store = registry.access.metadata_store
    collection_row = (
        None if collection is None else store.artifacts.collections.named(registry.row.id, collection)
    )
    number = None if collection is None else 0 if collection_row is None else collection_row.id
    rows, total = store.alias_requests.page(registry.row.id, state, number, page.after_id, page.limit)
    return stored_page("requests", [asdict(row) for row in rows], total, page)


@router.post(
    f"{COLLECTION}/requests", *requires("registry:alias"), response_model=AliasRequestDetail, status_code=201
)
def request_alias(
    body: NewAliasRequest,
    registry: TheRegistryOfPath,
    collection: TheCollection,
    outside: TheOutsideServices,
    response: Response,
) -> dict[str, Any]:
    """Ask the administrators of the registry for a protected alias."""
    store = registry.access.metadata_store
    if body.alias not in store.registries.protected(registry.row.id):
        raise HTTPException(422, f"the alias {body.alias!r} is not protected: set it")
    version = version_named(registry, collection, str(body.version))
    if body.alias in version.aliases:
        raise HTTPException(409, f"version {version.number} has the alias {body.alias!r} already")

    def news(request: AliasRequest) -> Iterable[Notification]:
        receivers = deciders_of(registry)
        asks = f"asks for the alias {request.alias} of {request.collection} v{request.number}"
        return _news(registry, request, receivers, "registry.request", asks, body.text)

    with checking("alias"):
        request = store.alias_requests.add(
            version.id, body.alias, body.text, registry.now_ms, registry.changer, news
        )
    response.headers["location"] = (
        f"/api/v1/teams/{registry.row.entity}/registries/{registry.row.name}/requests/{request.id}"
    )
    return _detail(registry, request, outside)


@router.get(_REQUEST, *requires("registry:read"), response_model=AliasRequestDetail)
def request(number: Number, registry: TheRegistryOfPath, outside: TheOutsideServices) -> dict[str, Any]:
    """A request with its thread."""
    return _detail(registry, _find(registry, number), outside)


@router.post(f"{_REQUEST}/comments", *requires("registry:alias"), response_model=AliasRequestDetail)
def comment(
    number: Number, body: NewRequestComment, registry: TheRegistryOfPath, outside: TheOutsideServices
) -> dict[str, Any]:
    """Comment on a request: its author, its administrators and who commented before get it."""
    table, request = registry.access.metadata_store.alias_requests, _find(registry, number)

    def news(_: AliasRequest) -> Iterable[Notification]:
        said = f"commented on the request for {request.alias} of {request.collection} v{request.number}"
        people = {row.author_id for row in table.comments(request.id)} | {request.author_id}
        people |= deciders_of(registry)
        return _news(registry, request, people, f"comment:{request.comments}", said, body.text)

    with checking("text"):
        table.comment(request, body.text, registry.now_ms, registry.changer, news)
    return _detail(registry, _find(registry, number), outside)


@router.post(f"{_REQUEST}/{{decision}}", *requires("registry:alias"), response_model=AliasRequestDetail)
def decide(
    number: Number,
    decision: Literal["approve", "decline", "withdraw"],
    body: RequestDecision,
    registry: TheRegistryOfPath,
    outside: TheOutsideServices,
) -> dict[str, Any]:
    """Approve a request, so that the version gets the alias; decline it, or withdraw one's own."""
    if decision != "withdraw":
        what = f"registry {registry.row.name!r}"
        registry.access.require(registry.requester, Action.REGISTRY_PROTECTED_ALIAS, registry.resource, what)
    table, request = registry.access.metadata_store.alias_requests, _find(registry, number)
    user_id = registry.requester.user_id
    if decision == "withdraw" and (user_id is None or request.author_id != user_id):
        raise HTTPException(403, "only who made the request may withdraw it")
    state = _STATES[decision]

    def news(closed: AliasRequest) -> Iterable[Notification]:
        did = f"{state} the request for {closed.alias} of {closed.collection} v{closed.number}"
        return _news(registry, closed, {closed.author_id}, state, did, body.text)

    table.close(request.id, state, body.text, registry.now_ms, registry.changer, news)
    return _detail(registry, _find(registry, number), outside)


def _find(registry: NamedRegistry, number: int) -> AliasRequest:
    try:
        return registry.access.metadata_store.alias_requests.get(registry.row.id, number)
    except NotFound as error:
        raise HTTPException(404, str(error)) from None


def _detail(registry: NamedRegistry, request: AliasRequest, outside: OutsideServices) -> dict[str, Any]:
    comments = registry.access.metadata_store.alias_requests.comments(request.id)
    images, may = outside.image_links(), []
    if registry.may(Action.REGISTRY_ALIAS):
        may.append("comment")
    if request.state == "open":
        if registry.may(Action.REGISTRY_PROTECTED_ALIAS):
            may += ["approve", "decline"]
        if request.author_id is not None and request.author_id == registry.requester.user_id:
            may.append("withdraw")
    return {
        **asdict(request),
        "thread": [{**asdict(row), "html": html_of(row.text, images)} for row in comments],
        "may": may,
    }


def _news(
    registry: NamedRegistry,
    request: AliasRequest,
    people: Iterable[int | None],
    kind: str,
    said: str,
    quoted: str,
) -> list[Notification]:
    """Notifications about a request, to all but who caused it."""
    entity, name = registry.row.entity or "", registry.row.name
    path = "/".join(quote(part, safe="") for part in (entity, "-", "registries", name, "requests"))
    text = f"[{entity}/{name}] {registry.requester.name} {said}"
    if quoted.strip():
        text += f"\n\n{quoted.strip()[:_MAX_QUOTE]}"
    payload = {"path": f"/{path}/{request.id}", "link": "Open the request"}
    others = {person for person in people if person is not None} - {registry.requester.user_id}
    return [
        Notification(
            f"registry-request:{request.id}:{kind}:user:{person}",
            "registry.request",
            f"user:{person}",
            f"registry-request:{request.id}",
            text,
            payload,
            registry.now_ms,
        )
        for person in sorted(others)
    ]
