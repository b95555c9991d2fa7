"""Who may use a shared server: whoever shows a token. This is the one place that decides it.

Programs send `Authorization: Bearer rvt_…`. A user types the token into `/login` once, and the browser then
shows it as a cookie that no script can read. Links on other sites make a browser send it; what changes
something is refused to them (`security.SameOrigin`).
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from http.cookies import CookieError, SimpleCookie
from urllib.parse import parse_qs

import anyio
import anyio.to_thread
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from runvitals.server.access import login_page
from runvitals.server.http.buffered_body import refusal
from runvitals.server.http.connection import Headers
from runvitals.server.ingest.errors import RequestRejected, unavailable
from runvitals.server.ingest.request_body import BodyReader, ClientDisconnected
from runvitals.store.errors import MetadataStoreUnavailable
from runvitals.store.metadata.tokens import TokenTable

COOKIE = "runvitals_token"
OPEN_PATHS = ("/healthz", "/readyz")
_KNOWN_S = 2.5
"""For so long a token that was good is not looked up again."""
_LOOK_S = 2.0
"""So often the token of a request that lasts is looked at: within 5 s a revoked one is done with."""
_CHECKS_AT_ONCE = 4
_CHECKS_WAITING = 200
_LOGIN_S = 10.0
_MOST_SECRET = 256
"""Characters; a token has some fifty."""
_MOST_KNOWN = 10_000
"""Good ones, and as many that were refused."""
_COOKIE_S = 30 * 86400
_MOST_BODY = 4096


class TokenRequired:
    """Lets requests through that show a good token, and answers `/login`.

    A request that lasts longer than a token is taken for good ends when its token is revoked.

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
        self._good: dict[str, float] = {}
        self._bad: dict[str, float] = {}
        self._checks = anyio.CapacityLimiter(_CHECKS_AT_ONCE)
        self._body_reader = BodyReader(_MOST_BODY, _LOGIN_S)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
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
            secret = shown(dict(scope["headers"]))
            if secret is None or not await self._is_good(secret):
                await _refusal(scope, secret)(scope, receive, send)
                return
        except RequestRejected as error:
            await refusal(error)(scope, receive, send)
            return
        except ClientDisconnected:
            return
        if scope["method"] == "GET":
            await RevocableRequest(partial(self._is_good, secret)).run(self._app, scope, receive, send)
        else:
            await self._app(scope, receive, send)

    def admits(self, headers: Headers) -> bool:
        """Whether a request is let in, as far as that is known without asking the catalogue."""
        secret = shown(dict(headers))
        return secret is not None and self._clock_s() < self._good.get(secret, 0.0)

    async def _is_good(self, secret: str) -> bool:
        if len(secret) > _MOST_SECRET:
            return False  # a rejected client must not fill the memory
        now_s = self._clock_s()
        if now_s < self._good.get(secret, now_s):
            return True
        if now_s < self._bad.get(secret, now_s):
            return False
        if self._checks.statistics().tasks_waiting >= _CHECKS_WAITING:
            raise unavailable("too many tokens are being checked: try again later")
        try:
            found = await anyio.to_thread.run_sync(
                self._tokens.check, secret, self._clock(), limiter=self._checks
            )
        except MetadataStoreUnavailable as error:
            raise unavailable("tokens cannot be checked: see /readyz and the server log") from error
        known, other = (self._bad, self._good) if found is None else (self._good, self._bad)
        other.pop(secret, None)
        if len(known) >= _MOST_KNOWN:
            known.clear()
        known[secret] = now_s + _KNOWN_S
        return found is not None

    async def _login(self, request: Request) -> Response:
        wanted = login_page.way_back(request.query_params.get("next", "/"))
        if request.method == "GET":
            return HTMLResponse(login_page.login_page(wanted))
        if request.method != "POST":
            return JSONResponse({"error": f"{request.method} /login: only GET and POST are allowed"}, 405)
        body = await self._body_reader.read(request.receive, lambda size: None)
        secret = parse_qs(body.decode("utf-8", "replace")).get("token", [""])[0].strip()
        if not await self._is_good(secret):
            return HTMLResponse(login_page.login_page(wanted, wrong=True), 403)
        answer = RedirectResponse(wanted, status_code=303)
        https = request.url.scheme == "https" or request.headers.get("x-forwarded-proto") == "https"
        # Lax: a link in a message leads to the page, not to the login.
        answer.set_cookie(
            COOKIE, secret, max_age=_COOKIE_S, httponly=True, samesite="lax", secure=https, path="/"
        )
        return answer


class RevocableRequest:
    """A request whose token is looked at again as long as it lasts.

    Args:
        is_good: whether its token still is.
    """

    def __init__(self, is_good: Callable[[], Awaitable[bool]]) -> None:
        self._is_good = is_good
        self._revoked = False
        self._started = self._complete = False

    async def run(self, app: ASGIApp, scope: Scope, receive: Receive, send: Send) -> None:
        async def noting(message: Message) -> None:
            if self._revoked:
                return
            self._started = True
            self._complete = message["type"] == "http.response.body" and not message.get("more_body", False)
            await send(message)

        request = asyncio.ensure_future(app(scope, receive, noting))
        try:
            while not (await asyncio.wait((request,), timeout=_LOOK_S))[0]:
                if not await self._is_good():
                    self._revoked = True
                    request.cancel()
                    await asyncio.wait((request,))
                    break
        finally:
            if not request.done():
                request.cancel()
        if not self._revoked:
            request.result()
        elif not self._started:
            await _refusal(scope, "")(scope, receive, send)
        elif not self._complete:
            await send({"type": "http.response.body", "body": b"", "more_body": False})


def shown(headers: Mapping[bytes, bytes]) -> str | None:
    """The token that a request shows: in `Authorization`, else in the cookie.

    Args:
        headers: as ASGI has them, names in small letters.
    """
    scheme, _, value = headers.get(b"authorization", b"").decode("latin-1").partition(" ")
    if scheme.lower() == "bearer":
        return value.strip()
    try:
        cookie = SimpleCookie(headers.get(b"cookie", b"").decode("latin-1")).get(COOKIE)
    except CookieError:
        return None
    return None if cookie is None else cookie.value


def _refusal(scope: Scope, secret: str | None) -> Response:
    accepts = dict(scope["headers"]).get(b"accept", b"")
    if scope["method"] == "GET" and not scope["path"].startswith("/api/") and b"text/html" in accepts:
        query = scope["query_string"].decode("latin-1")
        path = scope.get("raw_path", b"").decode("latin-1") or scope["path"]
        wanted = path + (f"?{query}" if query else "")
        return RedirectResponse(login_page.address(login_page.way_back(wanted)), status_code=303)
    what = "a token is needed" if secret is None else "this token is not known, or was revoked"
    how = "send `Authorization: Bearer rvt_…`; `runvitals token create NAME` on the server makes one"
    return JSONResponse({"error": f"{what}: {how}"}, 401, {"www-authenticate": "Bearer"})
