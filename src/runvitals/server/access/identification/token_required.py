"""Authentication of a shared server: every request must have a valid token.

Programs send `Authorization: Bearer rvt_…`. A user enters the token at `/login` once, and the browser then
sends it as a cookie that scripts cannot read. Links on other sites make a browser send the cookie too, so
`same_origin.SameOrigin` rejects changes that come from other sites.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from functools import partial
from urllib.parse import parse_qs

import anyio
import anyio.to_thread
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send

from runvitals.server.access.enforcement.long_request import LongRequest
from runvitals.server.access.identification import login_page
from runvitals.server.access.identification.authenticator import KNOWN_WHILE_AWAY_S
from runvitals.server.access.identification.credentials import cookie_of
from runvitals.server.access.storage.tokens import TokenTable
from runvitals.server.http.buffered_body import rejection_response
from runvitals.server.http.error_forms import error_response
from runvitals.server.http.fast_path import Headers
from runvitals.server.http.request_body import BodyReader, ClientDisconnected
from runvitals.server.http.request_errors import HttpRejection, unavailable
from runvitals.store.errors import MetadataStoreUnavailable

COOKIE = "runvitals_token"
OPEN_PATHS = ("/healthz", "/readyz")
METRICS_PATH = "/metrics"
_CACHE_S = 2.5
"""How long the result of a token check is reused. With `long_request.RECHECK_S`, a revoked token ends its
requests within 5 s."""
_MAX_CHECKS = 4
_MAX_WAITING_CHECKS = 200
_LOGIN_S = 10.0
_MAX_TOKEN_CHARACTERS = 256
"""A token has about fifty."""
_MAX_CACHED = 10_000
"""Valid tokens, and as many invalid ones."""
_COOKIE_S = 30 * 86400
_MAX_BODY_BYTES = 4096


class TokenRequired:
    """Middleware that requires a valid token, and answers `/login`.

    A long request, such as an event stream, ends when its token is revoked.

    Args:
        clock: the time now, ms UTC.
        clock_s: a monotonic clock.
    """

    def __init__(
        self,
        app: ASGIApp,
        tokens: TokenTable,
        clock: Callable[[], int],
        clock_s: Callable[[], float] = time.monotonic,
    ) -> None:
        self._app = app
        self._tokens = tokens
        self._clock = clock
        self._clock_s = clock_s
        self._valid: dict[str, float] = {}
        self._invalid: dict[str, float] = {}
        self._checks = anyio.CapacityLimiter(_MAX_CHECKS)
        self._body_reader = BodyReader(_MAX_BODY_BYTES, _LOGIN_S)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Refuse a request without a valid token."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        try:
            if scope["path"] == login_page.PATH:
                await (await self._login(Request(scope, receive)))(scope, receive, send)
                return
            if scope["path"] == login_page.STYLE_PATH:
                await Response(login_page.STYLE, media_type="text/css")(scope, receive, send)
                return
            if scope["path"] in OPEN_PATHS:
                await self._app(scope, receive, send)
                return
            secret = token_of(dict(scope["headers"]))
            if secret is None or not await self._is_valid(secret):
                await _unauthorized(scope, secret)(scope, receive, send)
                return
        except HttpRejection as error:
            await rejection_response(error, scope["path"])(scope, receive, send)
            return
        except ClientDisconnected:
            return
        if scope["method"] == "GET":
            await LongRequest(partial(self._recheck, scope, secret)).run(self._app, scope, receive, send)
        else:
            await self._app(scope, receive, send)

    def admits(self, headers: Headers) -> bool:
        """Return whether the token of a request is known to be valid, without a look-up."""
        secret = token_of(dict(headers))
        return secret is not None and self._clock_s() < self._valid.get(secret, 0.0)

    async def _recheck(self, scope: Scope, secret: str) -> Response | None:
        try:
            return None if await self._is_valid(secret) else _unauthorized(scope, secret)
        except HttpRejection as error:
            return rejection_response(error, scope["path"])

    async def _is_valid(self, secret: str) -> bool:
        if len(secret) > _MAX_TOKEN_CHARACTERS:
            return False  # must not be cached: it would let a rejected client fill the memory
        now_s = self._clock_s()
        if now_s < self._valid.get(secret, now_s):
            return True
        if now_s < self._invalid.get(secret, now_s):
            return False
        if self._checks.statistics().tasks_waiting >= _MAX_WAITING_CHECKS:
            raise unavailable("too many tokens are being checked: try again later")
        try:
            token = await anyio.to_thread.run_sync(
                self._tokens.check, secret, self._clock(), limiter=self._checks
            )
        except MetadataStoreUnavailable as error:
            if secret in self._valid and now_s < self._valid[secret] + KNOWN_WHILE_AWAY_S:
                return True  # what reads or changes the metadata store fails anyway
            raise unavailable("tokens cannot be checked: see /readyz and the server log") from error
        cache, other = (self._invalid, self._valid) if token is None else (self._valid, self._invalid)
        other.pop(secret, None)
        if len(cache) >= _MAX_CACHED:
            cache.clear()
        cache[secret] = now_s + _CACHE_S
        return token is not None

    async def _login(self, request: Request) -> Response:
        target = login_page.redirect_target(request.query_params.get("next", "/"))
        if request.method == "GET":
            return HTMLResponse(login_page.login_page(target))
        if request.method != "POST":
            return JSONResponse({"error": f"{request.method} /login: only GET and POST are allowed"}, 405)
        body = await self._body_reader.read(request.receive, lambda size: None)
        secret = parse_qs(body.decode("utf-8", "replace")).get("token", [""])[0].strip()
        if not await self._is_valid(secret):
            return HTMLResponse(login_page.login_page(target, invalid_token=True), 403)
        response = RedirectResponse(target, status_code=303)
        https = request.url.scheme == "https" or request.headers.get("x-forwarded-proto") == "https"
        # Lax, so that a link in a message leads to the page and not to the login.
        response.set_cookie(
            COOKIE, secret, max_age=_COOKIE_S, httponly=True, samesite="lax", secure=https, path="/"
        )
        return response


def token_of(headers: Mapping[bytes, bytes]) -> str | None:
    """Return the token of a request, from `Authorization`, otherwise from the cookie."""
    scheme, _, value = headers.get(b"authorization", b"").decode("latin-1").partition(" ")
    if scheme.lower() == "bearer":
        return value.strip()
    return cookie_of(headers.items(), COOKIE) or None


def _unauthorized(scope: Scope, secret: str | None) -> Response:
    accepts = dict(scope["headers"]).get(b"accept", b"")
    if scope["method"] == "GET" and not scope["path"].startswith("/api/") and b"text/html" in accepts:
        query = scope["query_string"].decode("latin-1")
        path = scope.get("raw_path", b"").decode("latin-1") or scope["path"]
        target = path + (f"?{query}" if query else "")
        return RedirectResponse(login_page.address(login_page.redirect_target(target)), status_code=303)
    problem = "a token is required" if secret is None else "invalid or revoked token"
    hint = "send `Authorization: Bearer rvt_…`; `runvitals token create NAME` on the server creates one"
    return error_response(scope["path"], 401, f"{problem}: {hint}", {"www-authenticate": "Bearer"})
