"""Puts the requester into every request, in every mode of the server.

- open: no token and no account. Only loopback is answered, and every request may do everything.
- tokens: every request needs a token, and then may do everything.
- accounts: from the first administrator on, noticed without a restart. Requests come with a key, a session or
  a guest link, or as visitors; each route decides.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Final

from starlette.exceptions import HTTPException
from starlette.responses import RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from runvitals.server.access.enforcement.long_request import LongRequest
from runvitals.server.access.identification import login_page
from runvitals.server.access.identification.authenticator import Authenticator, client_of
from runvitals.server.access.identification.request_ids import request_id_of
from runvitals.server.access.identification.token_required import (
    METRICS_PATH,
    OPEN_PATHS,
    TokenRequired,
    token_of,
)
from runvitals.server.access.principals import Anonymous, Operator, Principal, is_report_guest
from runvitals.server.access.requester import SCOPE_KEY, Requester
from runvitals.server.http.buffered_body import rejection_response
from runvitals.server.http.error_forms import error_response
from runvitals.server.http.fast_path import Headers
from runvitals.server.http.open_streams import CLIENT_KEY
from runvitals.server.http.request_errors import HttpRejection
from runvitals.server.http.same_origin import LoopbackNames, is_for_loopback, names_own_origin

CHECKS_KEY: Final = "runvitals.checks"
"""Where the ASGI scope has the checks of rights that the route made: they are made again while it lasts."""
SETUP_PATHS: Final = (
    "/-/setup",
    "/api/v1/auth/setup",
    "/api/v1/auth/methods",
    "/api/v1/about",
    "/assets/",
    "/favicon.svg",
)
"""What a server that has printed a link for the first administrator answers to visitors: the page of
that link, and the call that checks its token."""
SIGN_IN_PATH: Final = "/-/login"
_OTHER_NAMES: Final = ": create an administrator, or start it with `--require-token`"
RIGHTS_RECHECK_S = 30.0
"""How often the rights to a request that lasts are checked though none were changed: its run may be moved."""
_SAFE_METHODS = ("GET", "HEAD", "OPTIONS")
_CHANGING_TYPES = ("application/json", "image/")

RightsCheck = Callable[[Requester], Awaitable[None]]
"""Raises HTTPException if the requester may not have what the route gives."""
SCIM_PATHS = "/scim/v2/"
"""Its routes check the secret of the identity provider, which is no key."""
WANDB_SIGNED: Final = "/wandb/signed/"
MLFLOW_SIGNED: Final = "/mlflow/signed/"
NOTHING_FOR_GUESTS: Final = "this link leads to a report, and to nothing else"
SIGNED_PATHS: Final = (WANDB_SIGNED, MLFLOW_SIGNED)
"""Their routes check the signature of the address, which an authenticated request has asked for."""


class RequesterMiddleware:
    """Middleware that puts a `Requester` into the scope, or rejects the request.

    Args:
        tokens: the same application for requests with a token; None: requests need none.
        browsers: whether sessions of browsers count; keys alone do otherwise.
        offers_setup: whether visitors may open the page that creates the first administrator.
        count: counts the requests of users and service accounts.
    """

    def __init__(
        self,
        app: ASGIApp,
        authenticator: Authenticator,
        tokens: TokenRequired | None,
        browsers: bool = True,
        offers_setup: bool = False,
        count: Callable[[Principal], None] = lambda principal: None,
    ) -> None:
        self._count = count
        self._setup_paths: tuple[str, ...] = SETUP_PATHS if offers_setup else ()
        self._app = app
        self._authenticator = authenticator
        self._tokens = tokens
        self._browsers = browsers
        self._open: ASGIApp = LoopbackNames(self._as_open, _OTHER_NAMES)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Find out who makes a request, and pass it on with them."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        try:
            if scope["path"] in OPEN_PATHS or scope["path"].startswith((SCIM_PATHS, *SIGNED_PATHS)):
                _set_requester(scope, _of_scope(Anonymous(), scope))
                await self._app(scope, receive, send)
            elif self._authenticator.accounts_exist:
                await self._with_accounts(scope, receive, send)
            elif self._tokens is None:
                await self._open(scope, receive, send)
            elif scope["path"].startswith(self._setup_paths) and token_of(dict(scope["headers"])) is None:
                _set_requester(scope, _of_scope(Anonymous(), scope))
                await self._app(scope, receive, send)
            else:
                _set_requester(scope, _of_scope(Operator(), scope))
                await self._tokens(scope, receive, send)
        except HttpRejection as error:
            await rejection(error, scope)(scope, receive, send)

    def admits(self, headers: Headers) -> bool:
        """Return whether a request is known to be authenticated before there are accounts."""
        if self._authenticator.accounts_exist:
            return False
        return is_for_loopback(headers) if self._tokens is None else self._tokens.admits(headers)

    async def _as_open(self, scope: Scope, receive: Receive, send: Send) -> None:
        _set_requester(scope, _of_scope(Operator(), scope))
        if scope["method"] == "GET":
            await LongRequest(partial(self._still_open, scope)).run(self._app, scope, receive, send)
        else:
            await self._app(scope, receive, send)

    async def _still_open(self, scope: Scope) -> Response | None:
        """Return the end of a request from before accounts, once they exist."""
        if not self._authenticator.accounts_exist:
            return None
        return rejection(HttpRejection(401, "this server has accounts now: sign in"), scope)

    async def _with_accounts(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["path"] == login_page.PATH:
            await _to_sign_in(scope)(scope, receive, send)
            return
        while_away = not self._browsers or scope["path"] == METRICS_PATH
        requester = await self._authenticator.requester(scope, while_away)
        if is_report_guest(requester.principal) and scope["query_string"] and _is_of_reports(scope):
            raise HttpRejection(404, NOTHING_FOR_GUESTS)
        if requester.via == "session":
            if not self._browsers:
                raise HttpRejection(401, "send `Authorization: Bearer KEY`")
            _check_same_site(scope)
        elif not self._browsers and requester.via != "key":
            raise HttpRejection(401, "send `Authorization: Bearer KEY`")
        if requester.via != "session" or scope["path"].startswith("/api/"):  # not the files of the page
            self._count(requester.principal)
        _set_requester(scope, requester)
        checks: list[RightsCheck] = []
        scope[CHECKS_KEY] = checks
        # Ingest decides by itself: its envelopes, not its path, name the runs.
        guarded = partial(_unchecked_is_not_sent, self._app, checks) if self._browsers else self._app
        try:
            if scope["method"] == "GET":
                recheck = _Recheck(self._authenticator, scope, requester, checks)
                await LongRequest(recheck).run(guarded, scope, receive, send)
            else:
                await guarded(scope, receive, send)
        finally:
            checks.clear()  # they refer to the request, and its scope to them: its body would stay in memory


class _Recheck:
    """Checks the credential of a request again; its rights too, when some have changed, and regularly."""

    def __init__(
        self, authenticator: Authenticator, scope: Scope, requester: Requester, checks: list[RightsCheck]
    ) -> None:
        self._authenticator = authenticator
        self._via = requester.via
        self._scope = scope
        self._checks = checks
        self._checked_s = asyncio.get_running_loop().time()
        self._generation = authenticator.generation

    async def __call__(self) -> Response | None:
        now_s = asyncio.get_running_loop().time()
        try:
            requester = await self._authenticator.requester(self._scope)
            if requester.via != self._via:
                return rejection(HttpRejection(401, "you were signed out: sign in again"), self._scope)
            generation = self._authenticator.generation
            if generation != self._generation or now_s - self._checked_s >= RIGHTS_RECHECK_S:
                self._checked_s, self._generation = now_s, generation
                for check in list(self._checks):
                    await check(requester)
        except HttpRejection as error:
            return rejection(error, self._scope)
        except HTTPException as error:
            return error_response(self._scope["path"], error.status_code, error.detail, error.headers)
        return None


def rejection(error: HttpRejection, scope: Scope) -> Response:
    """Return the response to a rejected request."""
    response = rejection_response(error, scope["path"])
    if error.status == 401:
        response.headers["www-authenticate"] = "Bearer"
    return response


def _set_requester(scope: Scope, requester: Requester) -> None:
    scope[SCOPE_KEY], scope[CLIENT_KEY] = requester, requester.client


def _of_scope(principal: Anonymous | Operator, scope: Scope) -> Requester:
    return Requester(principal, ip=client_of(scope), request_id=request_id_of(scope))


def _to_sign_in(scope: Scope) -> Response:
    """Redirect from the sign-in page of tokens to that of accounts."""
    query = scope["query_string"].decode("latin-1")
    return RedirectResponse(f"{SIGN_IN_PATH}?{query}" if query else SIGN_IN_PATH, status_code=303)


def _is_of_reports(scope: Scope) -> bool:
    """Return whether a request is for a report: a guest gets what its panels show, with no parameters."""
    path: str = scope["path"]
    return path.startswith("/api/v1/reports")


def _check_same_site(scope: Scope) -> None:
    """Reject a change by a session that a page of another site may have sent.

    Raises:
        HttpRejection: 403.
    """
    if scope["method"] in _SAFE_METHODS:
        return
    what = f"{scope['method']} {scope['path'][:300]}"
    content_type = next((value for name, value in scope["headers"] if name == b"content-type"), b"")
    if not content_type.decode("latin-1").strip().lower().startswith(_CHANGING_TYPES):
        raise HttpRejection(403, f"{what}: send `Content-Type: application/json` or an image")
    if not names_own_origin(scope):
        raise HttpRejection(403, f"{what}: send `Sec-Fetch-Site: same-origin`, or `Origin` with this server")


async def _unchecked_is_not_sent(
    app: ASGIApp, checks: list[RightsCheck], scope: Scope, receive: Receive, send: Send
) -> None:
    """Send no result of a route of the API that declares no permission: a missing declaration is noticed."""

    async def checked(message: Message) -> None:
        if (
            message["type"] == "http.response.start"
            and message["status"] < 400
            and not checks
            and scope["path"].startswith("/api/")
        ):
            raise RuntimeError(f"{scope['method']} {scope['path']}: the route declares no permission")
        await send(message)

    await app(scope, receive, checked)
