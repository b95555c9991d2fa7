"""Redirects requests for projects that were renamed or given to another team, and for the runs in them."""

from __future__ import annotations

from typing import Final
from urllib.parse import quote, urlencode

from starlette.requests import Request

from runvitals.server.access.enforcement.named_resources import Address, NamedResources
from runvitals.server.access.principals import Principal
from runvitals.server.http.errors import DetailedError

_PROJECTS: Final = "/api/v1/entities/"


def check_moved(request: Request, resources: NamedResources, principal: Principal, now_ms: int) -> None:
    """Raise if the project or run of the path is at another address now, and the requester may read it there.

    Raises:
        DetailedError: 307, with the address of the same request there.
    """
    path, entity = request.path_params, request.query_params.get("entity")
    address: Address | None = None
    if "run" in path and entity is not None:
        address = resources.moved_run(principal, path["run"], entity, now_ms)
    elif "project" in path and "entity" in path:
        address = resources.moved_project(principal, path["entity"], path["project"], now_ms)
    if address is None:
        return
    location = _of_run(request, address) if "run" in path else _of_project(request, address)
    text = f"the project is {f'{address.entity}/{address.project}'!r} now"
    raise DetailedError(307, text, address._asdict(), {"location": location})


def _of_run(request: Request, address: Address) -> str:
    others = [(name, value) for name, value in request.query_params.multi_items() if name != "entity"]
    return f"{_raw_path(request)}?{urlencode([*others, ('entity', address.entity)])}"


def _of_project(request: Request, address: Address) -> str:
    rest = _raw_path(request).removeprefix(_PROJECTS).split("/", 3)[3:]
    names = quote(address.entity, safe=""), quote(address.project, safe="")
    path = _PROJECTS + "/".join((names[0], "projects", names[1], *rest))
    return f"{path}?{request.url.query}" if request.url.query else path


def _raw_path(request: Request) -> str:
    """Return the path as it was sent: names in it are still percent-encoded."""
    raw: bytes = request.scope.get("raw_path") or quote(request.url.path).encode("ascii")
    return raw.partition(b"?")[0].decode("latin-1")
