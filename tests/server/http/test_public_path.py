"""A server below a path of another one: what it cuts off, where it redirects to, whose header it believes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import anyio
import httpx
import pytest
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.types import Receive, Scope, Send

from runvitals.model.local_path import checked_server_path
from runvitals.server.http.public_path import BelowPath, PublicPath, base_url, to_root
from tests.patience import PATIENCE_S
from tests.server.accounts_server import AccountsServer, accounts_server


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        ("/", "./"),
        ("/runs", "./"),
        ("/runs/", "../"),
        ("/a/b%2Fc", "../"),
        ("/a/b/c/d", "../../../"),
        ("//a", "../"),
        ("/" * 9000, "../" * 40),
    ],
)
def test_the_way_to_the_root(raw: str, expected: str) -> None:
    assert to_root({"path": "/elsewhere", "raw_path": raw.encode()}) == expected


@pytest.mark.parametrize("path", ["/runvitals", "/user/a%40b.c/proxy/8900/", "/a/~b/c:1", "", "/"])
def test_paths_of_servers(path: str) -> None:
    assert checked_server_path(path) == path.rstrip("/")


@pytest.mark.parametrize(
    "path",
    [
        *("runvitals", "//evil.example", "https://evil.example/", "/a//b", "/a/../b", "/.", "/a?b", "/a#b"),
        *("/a;domain=x", "/a,b", "/a b", "/a\r\nb", "/ä", '/a"b', "/<script>", "/a\\b", "/" + "a" * 301),
    ],
)
def test_what_is_no_path_of_a_server(path: str) -> None:
    with pytest.raises(ValueError, match="such as /runvitals"):
        checked_server_path(path)


async def echo(scope: Scope, receive: Receive, send: Send) -> None:
    """Answer what the request is, as it arrives; `/to?…` redirects to its query."""
    request = Request(scope)
    response: Response = JSONResponse(
        {
            "path": scope["path"],
            "raw": scope["raw_path"].decode(),
            "base": base_url(request),
            "cookies": request.headers.get("cookie"),
        }
    )
    if scope["path"].endswith("/to"):
        response = RedirectResponse(scope["query_string"].decode())
    response.set_cookie("__Host-a", "1", path="/", secure=True, httponly=True)
    response.set_cookie("b", "2", path="/")
    await response(scope, receive, send)


def ask(
    path: str, kept: str = "", trusted: tuple[str, ...] = ("127.0.0.1",), **headers: str
) -> httpx.Response:
    app = BelowPath(PublicPath(echo, trusted), anyio.Event(), kept)

    async def send() -> httpx.Response:
        transport: Any = httpx.ASGITransport(app)
        async with httpx.AsyncClient(transport=transport, base_url="http://hub") as client:
            return await client.get(
                path, headers={name.replace("_", "-"): value for name, value in headers.items()}
            )

    return anyio.run(send)


@pytest.mark.parametrize(
    ("path", "cut"),
    [
        ("/x/runvitals/runs/a%2Fb", "/runs/a/b"),
        ("/x/runvitals/", "/"),
        ("/runs", "/runs"),  # of the same network, such as a probe
        ("/x/runvitalsb", "/x/runvitalsb"),
        ("/x%2Frunvitals/runs", "/x/runvitals/runs"),
    ],
)
def test_a_kept_path_is_cut_off(path: str, cut: str) -> None:
    answer = ask(path, "/x/runvitals").json()
    assert answer["path"] == cut
    is_below = path.startswith("/x/runvitals/")
    assert answer["raw"] == (path.removeprefix("/x/runvitals") if is_below else path)
    assert answer["base"] == ("http://hub/x/runvitals" if is_below else "http://hub")


def test_a_kept_path_without_a_slash_leads_to_the_server() -> None:
    response = ask("/x/runvitals", "/x/runvitals")
    assert response.status_code == 307
    assert str(response.next_request and response.next_request.url) == "http://hub/x/runvitals/"


@pytest.mark.parametrize(
    ("path", "location", "expected"),
    [
        ("/to", "/login?next=%2Fa", "./login?next=%2Fa"),
        ("/a/b/to", "/", "../../"),
        ("/x/a/to", "/runs?b=1", "../runs?b=1"),
        ("/to", "https://provider.example/?a=/b", "https://provider.example/?a=/b"),
        ("/to", "//other.example/", "//other.example/"),
        ("/to", "../a", "../a"),
    ],
)
def test_redirects_are_relative_to_the_request(path: str, location: str, expected: str) -> None:
    assert ask(f"{path}?{location}", "/x").headers["location"] == expected


def test_the_path_of_a_trusted_proxy_limits_cookies() -> None:
    response = ask(
        "/",
        x_forwarded_prefix="/team/a/",
        cookie="__Host-a=root; __Secure-a=own; c=3; __Secure-a=above; c=above",
        trusted=("127.0.0.1",),
    )
    assert response.json()["base"] == "http://hub/team/a"
    assert response.json()["cookies"] == "c=3; __Host-a=own"
    secure, plain = response.headers.get_list("set-cookie")
    assert secure.startswith("__Secure-a=1; ")
    assert "; Path=/team/a/;" in secure
    assert "; Path=/team/a/;" in plain


@pytest.mark.parametrize(
    ("trusted", "prefix"),
    [
        (("10.0.0.7",), "/team"),
        (("127.0.0.1",), "//evil.example"),
        (("127.0.0.1",), "/a; Domain=evil.example"),
        (("127.0.0.1",), "/a/../.."),
    ],
)
def test_other_paths_change_nothing(trusted: tuple[str, ...], prefix: str) -> None:
    response = ask("/", trusted=trusted, x_forwarded_prefix=prefix, cookie="__Host-a=1")
    assert response.json()["base"] == "http://hub"
    assert response.json()["cookies"] == "__Host-a=1"
    assert [cookie.partition(";")[0] for cookie in response.headers.get_list("set-cookie")] == [
        "__Host-a=1",
        "b=2",
    ]
    assert all("; Path=/;" in cookie for cookie in response.headers.get_list("set-cookie"))


@pytest.fixture(scope="module")
def below(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AccountsServer]:
    with accounts_server(tmp_path_factory.mktemp("below")) as server:
        server.user("ada", org_role="admin")
        yield server


def test_a_session_below_a_path(below: AccountsServer) -> None:
    headers = {"x-forwarded-prefix": "/team/a", "x-forwarded-proto": "https", "sec-fetch-site": "same-origin"}
    with (
        below.client("ada") as ada,
        httpx.Client(base_url=below.url, headers=headers, timeout=PATIENCE_S) as browser,
    ):
        secret = next(iter(ada.cookies.values()))
        own = {"cookie": f"__Secure-runvitals={secret}"}
        assert browser.get("/api/v1/account", headers=own).json()["name"] == "ada"
        # Of the server at the root of the same host, which is another one.
        assert (
            browser.get("/api/v1/account", headers={"cookie": f"__Host-runvitals={secret}"}).status_code
            == 401
        )
        left = browser.post("/api/v1/auth/logout", json={}, headers=own)
        assert left.status_code == 204, left.text
        assert left.headers["set-cookie"].startswith('__Secure-runvitals="";')
        assert "; Path=/team/a/;" in left.headers["set-cookie"]
