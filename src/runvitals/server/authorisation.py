"""Who may use a shared server: whoever shows a token. This is the one place that decides it.

Programs send `Authorization: Bearer rvt_…`. A person types the token into `/login` once, and the browser then
shows it as a cookie that no script can read and no other site can make it send.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from http.cookies import CookieError, SimpleCookie
from urllib.parse import parse_qs

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send

from runvitals.server import login_page
from runvitals.store.catalogue.tokens import Tokens

COOKIE = "runvitals_token"
OPEN_PATHS = ("/healthz", "/readyz")
_KNOWN_MS = 5_000
"""For so long a token that was good is not looked up again; so long, at worst, a revoked one is let in."""
_MOST_KNOWN = 10_000
_COOKIE_S = 30 * 86400
_MOST_BODY = 4096


class TokenRequired:
    """Lets requests through that show a good token, and answers `/login`.

    Args:
        clock: the time now, ms UTC.
    """

    def __init__(self, app: ASGIApp, tokens: Tokens, clock: Callable[[], int]) -> None:
        self._app = app
        self._tokens = tokens
        self._clock = clock
        self._known: dict[str, int] = {}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        if scope["path"] == login_page.PATH:
            await (await self._login(Request(scope, receive)))(scope, receive, send)
            return
        if scope["path"] == login_page.STYLE_PATH:
            await Response(login_page.STYLE, media_type="text/css")(scope, receive, send)
            return
        secret = shown(dict(scope["headers"]))
        if scope["path"] in OPEN_PATHS or (secret is not None and await self._is_good(secret)):
            await self._app(scope, receive, send)
            return
        await _refusal(scope, secret)(scope, receive, send)

    async def _is_good(self, secret: str) -> bool:
        now_ms = self._clock()
        until_ms = self._known.get(secret)
        if until_ms is not None and now_ms < until_ms:
            return True
        if await run_in_threadpool(self._tokens.check, secret, now_ms) is None:
            self._known.pop(secret, None)
            return False
        if len(self._known) >= _MOST_KNOWN:
            self._known.clear()
        self._known[secret] = now_ms + _KNOWN_MS
        return True

    async def _login(self, request: Request) -> Response:
        wanted = login_page.way_back(request.query_params.get("next", "/"))
        if request.method == "GET":
            return HTMLResponse(login_page.login_page(wanted))
        if request.method != "POST":
            return JSONResponse({"error": f"{request.method} /login: only GET and POST are allowed"}, 405)
        body = b""
        async for piece in request.stream():
            body += piece
            if len(body) > _MOST_BODY:
                return JSONResponse({"error": f"/login: at most {_MOST_BODY} bytes are allowed"}, 413)
        secret = parse_qs(body.decode("utf-8", "replace")).get("token", [""])[0].strip()
        if not await self._is_good(secret):
            return HTMLResponse(login_page.login_page(wanted, wrong=True), 403)
        answer = RedirectResponse(wanted, status_code=303)
        https = request.url.scheme == "https" or request.headers.get("x-forwarded-proto") == "https"
        answer.set_cookie(
            COOKIE, secret, max_age=_COOKIE_S, httponly=True, samesite="strict", secure=https, path="/"
        )
        return answer


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
