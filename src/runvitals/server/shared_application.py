"""The API and the page of a shared server. It loads FastAPI: the first request that needs it imports this."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from fastapi import FastAPI
from starlette.middleware import Middleware
from starlette.routing import BaseRoute

from runvitals.server.access.enforcement.idempotency_keys import IdempotencyKeys, describe_header
from runvitals.server.account_routes import ACCOUNT_ROUTERS
from runvitals.server.app import application
from runvitals.server.database.secret_box import SecretBox
from runvitals.server.doors.remote_write import routes as remote_write
from runvitals.server.doors.routers import DOOR_ROUTERS
from runvitals.server.files.routes import uploads
from runvitals.server.http.api_document import ApiDocument
from runvitals.server.http.router import Router, RouterModule
from runvitals.server.ingest.openapi import describe
from runvitals.server.services import SharedServices


def shared_application(
    services: SharedServices,
    static: str,
    routers: Sequence[Router | RouterModule],
    box: SecretBox,
    clock: Callable[[], int],
    early_routes: Sequence[BaseRoute],
) -> FastAPI:
    """The application behind the authentication.

    Args:
        routers: of further resources.
        early_routes: those that `LateApplication` answers.
    """
    received = [] if services.files is None else [uploads.router]
    api = application(services, static, (*ACCOUNT_ROUTERS, *DOOR_ROUTERS, *received, *routers))
    # Before the page, which is mounted at `/` and answers every other path.
    api.router.routes[:0] = (*remote_write.router.routes, *early_routes)
    document: ApiDocument = api.state.api_document
    document.add(describe_header)
    document.add(describe)  # after it: ingest has numbers instead of keys
    requests = services.metadata_store.accounts.idempotent_requests
    # The innermost: bodies have been read, and responses are not yet compressed.
    api.user_middleware.append(Middleware(IdempotencyKeys, requests=requests, box=box, clock=clock))
    return api
