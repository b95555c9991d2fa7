"""The routes that only a shared server has: they load the tables of accounts."""

from __future__ import annotations

from typing import Any, Final

from fastapi import APIRouter

from runvitals.server import scim
from runvitals.server.api import accounts, entities, organisation, single_sign_on, teams
from runvitals.server.api.models import ErrorAnswer

_TEXTS: Final = {
    307: "The project was renamed or given to another team: repeat the request at `Location`.",
    400: "The body is not valid JSON.",
    401: "Nobody is signed in, or the secret is wrong.",
    403: "It is not allowed.",
    404: "There is no such thing, or it may not be known.",
    409: "It conflicts with the present state: a taken name, the last administrator, a limit.",
    410: "A link that was used, has expired or was revoked.",
    413: "The body is too large.",
    415: "The body has another type than expected.",
    422: "A value is wrong; `fields` says which, and what is allowed.",
    428: "The password must be confirmed first.",
    429: "Too many requests; `Retry-After` says how long to wait.",
    502: "A provider or the mail server cannot be used at the moment.",
    503: "The server cannot do this at the moment.",
}
_RESPONSES: Final[dict[int | str, dict[str, Any]]] = {
    status: {"model": ErrorAnswer, "description": text} for status, text in _TEXTS.items()
}

_router = APIRouter(responses=_RESPONSES)
for part in (accounts, single_sign_on, teams, organisation, entities):
    _router.include_router(part.router)
ACCOUNT_ROUTERS: Final = (_router, accounts.shown_images, scim.router)
