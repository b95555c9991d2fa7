"""The page of this machine's runs through another server: of notebooks, of an editor, or on a hub.

Such a server passes on the name by which the browser knows it. A page of another site can have its own name
point to this machine ("DNS rebinding"), so a name proves nothing: requests to any name but those of loopback
need the secret that `runvitals ui` prints, in the link or as a key.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Iterator, Mapping
from typing import Final
from urllib.parse import parse_qs, urlsplit

from starlette.responses import RedirectResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from runvitals.server.http.same_origin import LoopbackNames, SameOrigin, is_for_loopback

_COOKIE: Final = "runvitals_link"
_HINT: Final = ": open the link that `runvitals ui` printed, with its token"


class LoopbackOrLink:
    """Middleware that answers requests to a loopback name, and to other names those with the secret.

    Args:
        secret: what the link of `runvitals ui` has; empty: there is no link.
    """

    def __init__(self, app: ASGIApp, secret: str = "") -> None:
        self._app = SameOrigin(app)
        self._loopback = LoopbackNames(self._app, _HINT if secret else "")
        self._secret = secret

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass on a request, take the secret of a link, or refuse."""
        if scope["type"] != "http" or not self._secret:
            await self._loopback(scope, receive, send)
        elif scope["path"] == "/" and self._is_secret(_token(scope)):
            response = RedirectResponse("/", 303)
            # Without a path: browsers then send it to the addresses below this one, and to no other server.
            response.set_cookie(_COOKIE, self._secret, httponly=True, samesite="lax", path=None)
            await response(scope, receive, send)
        elif is_for_loopback(scope["headers"]) or any(map(self._is_secret, _sent_secrets(scope["headers"]))):
            await self._app(scope, receive, send)
        else:
            await self._loopback(scope, receive, send)

    def _is_secret(self, text: str) -> bool:
        return secrets.compare_digest(text.encode(), self._secret.encode())


def _token(scope: Scope) -> str:
    query: bytes = scope["query_string"]
    return parse_qs(query.decode("latin-1")).get("token", [""])[0]


def _sent_secrets(headers: Iterable[tuple[bytes, bytes]]) -> Iterator[str]:
    """Yield what a request may have the secret in: the key of a program, and cookies."""
    for name, value in headers:
        text = value.decode("latin-1")
        if name == b"authorization":
            yield text.removeprefix("Bearer ")
        elif name == b"cookie":
            yield from (cookie.strip().removeprefix(f"{_COOKIE}=") for cookie in text.split(";"))


def link_through(environ: Mapping[str, str], port: int, secret: str, path: str = "") -> str:
    """Return the link by which another server leads to a port here, as far as it says where it is.

    Args:
        path: that the other server keeps, see `runvitals ui --path`.

    Example:
        >>> link_through({"JUPYTERHUB_SERVICE_PREFIX": "/user/ada/"}, 8900, "s3cret")
        'https://…/user/ada/proxy/8900/?token=s3cret'
    """
    template = environ.get("VSCODE_PROXY_URI", "").replace("{{host}}", "…")
    if path:
        parts = urlsplit(template.replace("{{port}}", str(port)))
        start = f"{parts.scheme or 'https'}://{parts.netloc or '…'}{path}"
    elif template.startswith("http"):
        start = template.replace("{{port}}", str(port)).rstrip("/")
    else:
        below = environ.get("JUPYTERHUB_SERVICE_PREFIX", "/")
        notebooks = environ.get("JUPYTERHUB_PUBLIC_URL") or f"https://…{below}"
        start = f"{notebooks.rstrip('/')}/proxy/{port}"
    return f"{start}/?token={secret}"
