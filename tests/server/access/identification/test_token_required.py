"""Tokens and cookies: who is let in, for how long, and what pages of other sites can do with them."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anyio
import httpx
import pytest

from runvitals.server.access.identification.token_required import TokenRequired
from tests.empty_metadata import new_metadata_store
from tests.patience import PATIENCE_S
from tests.server.serving import Served, serving

NOW = 1_760_000_000_000
ENVELOPE = {"run": "abc", "writer": "monitor.a", "seq": 1, "keys": ["cpu"], "v": [[1.5]]}


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with serving(tmp_path_factory.mktemp("served"), token_required=True) as served:
        yield served


@pytest.fixture
def token(served: Served) -> str:
    return served.metadata_store.tokens.create("a person", NOW)[0]


def bearer(token: str) -> dict[str, str]:
    return {"authorization": f"Bearer {token}"}


def send(served: Served, token: str, run: str) -> None:
    body = {**ENVELOPE, "run": run, "t": [int(time.time() * 1000)], "about": {"role": "monitor"}}
    httpx.post(
        f"{served.url}/api/v1/ingest", json=body, headers=bearer(token), timeout=PATIENCE_S
    ).raise_for_status()


def test_a_revoked_token_loses_its_open_stream(served: Served, token: str) -> None:
    send(served, token, "streamed")
    other, about = served.metadata_store.tokens.create("one that is revoked", NOW)
    url = f"{served.url}/api/v1/runs/streamed/live"
    with httpx.stream("GET", url, headers=bearer(other), timeout=PATIENCE_S) as stream:
        lines = stream.iter_lines()
        assert next(lines) == "retry: 1000"
        served.metadata_store.tokens.revoke(about.id, NOW)
        for _ in lines:  # it ends in good order, or this would raise or time out
            pass
    assert httpx.get(url, headers=bearer(other), timeout=PATIENCE_S).status_code == 401
    assert (
        httpx.get(f"{served.url}/api/v1/runs/streamed", headers=bearer(token), timeout=PATIENCE_S).status_code
        == 200
    )


def test_a_revoked_token_ends_a_waiting_request(served: Served, token: str) -> None:
    send(served, token, "awaited")
    other, about = served.metadata_store.tokens.create("one that is revoked", NOW)
    url = f"{served.url}/api/v1/runs/awaited/metrics"
    cursor = httpx.get(url, headers=bearer(other), timeout=PATIENCE_S).json()["cursor"]
    url += f"?wait=30&after={cursor}"
    responses: list[httpx.Response] = []

    async def waiting() -> None:
        async with httpx.AsyncClient(timeout=PATIENCE_S) as client, anyio.create_task_group() as tasks:

            async def ask() -> None:
                responses.append(await client.get(url, headers=bearer(other)))

            tasks.start_soon(ask)
            await anyio.to_thread.run_sync(served.metadata_store.tokens.revoke, about.id, NOW)

    anyio.run(waiting)
    assert responses[0].status_code == 401


def test_a_clock_set_back_does_not_restore_a_revoked_token(tmp_path: Path) -> None:
    with new_metadata_store(tmp_path / "catalogue.db") as metadata_store:
        secret, about = metadata_store.tokens.create("node1", NOW)
        now_ms, now_s = NOW, 1000.0
        statuses: list[int] = []

        async def app(scope: Any, receive: Any, send: Any) -> None:
            await send({"type": "http.response.start", "status": 200})

        async def ask() -> None:
            async def note(message: Any) -> None:
                if message["type"] == "http.response.start":
                    statuses.append(message["status"])

            headers = [(b"authorization", f"Bearer {secret}".encode())]
            await guard({"type": "http", "method": "POST", "path": "/", "headers": headers}, None, note)  # type: ignore[arg-type]

        guard = TokenRequired(app, metadata_store.tokens, lambda: now_ms, lambda: now_s)
        anyio.run(ask)
        metadata_store.tokens.revoke(about.id, now_ms)
        now_ms -= 86_400_000
        now_s += 5
        anyio.run(ask)
        assert statuses == [200, 401]


def test_the_login_limits_size_and_time(served: Served) -> None:
    response = httpx.post(f"{served.url}/login", content=b"token=" + b"x" * 5000, timeout=PATIENCE_S)
    assert response.status_code == 413
    assert "more than 4096 bytes" in response.json()["error"]


def test_links_from_other_sites_lead_to_the_page_and_not_to_the_login(served: Served, token: str) -> None:
    response = httpx.post(f"{served.url}/login", data={"token": token}, timeout=PATIENCE_S)
    assert response.status_code == 303
    cookie = response.headers["set-cookie"].lower()
    assert "samesite=lax" in cookie
    assert "httponly" in cookie
    link = {"sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate", "accept": "text/html"}
    cookies = {"runvitals_token": token}
    page = httpx.get(f"{served.url}/api/v1/runs", headers=link, cookies=cookies, timeout=PATIENCE_S)
    assert page.status_code == 200


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 200),
        ({"sec-fetch-site": "same-origin", "origin": "null"}, 200),
        ({"sec-fetch-site": "none"}, 200),
        ({"origin": "http://runs.example:8900"}, 200),
        ({"sec-fetch-site": "cross-site"}, 403),
        ({"sec-fetch-site": "same-site"}, 403),
        ({"origin": "http://runs.example"}, 403),
        ({"origin": "https://evil.example"}, 403),
        ({"origin": "http://runs.example:8900.evil.example"}, 403),
        ({"origin": "null"}, 403),
        ({"origin": ""}, 403),
    ],
)
@pytest.mark.parametrize(("method", "path"), [("PATCH", "runs/edited"), ("DELETE", "projects/none")])
def test_pages_of_other_sites_cannot_change_anything(
    served: Served, token: str, headers: dict[str, str], status: int, method: str, path: str
) -> None:
    send(served, token, "edited")
    response = httpx.request(
        method,
        f"{served.url}/api/v1/{path}",
        json={"name": "x"},
        cookies={"runvitals_token": token},
        headers={"host": "runs.example:8900", **headers},
        timeout=PATIENCE_S,
    )
    assert response.status_code == (404 if status == 200 and method == "DELETE" else status), response.text


def test_pages_of_other_sites_cannot_log_in(served: Served, token: str) -> None:
    response = httpx.post(
        f"{served.url}/login",
        data={"token": token},
        headers={"sec-fetch-site": "cross-site"},
        timeout=PATIENCE_S,
    )
    assert response.status_code == 403
    assert "set-cookie" not in response.headers


def test_the_size_of_changes_is_limited(served: Served, token: str) -> None:
    def pieces() -> Iterator[bytes]:
        yield b'{"notes": "'
        for _ in range(400):
            yield b"x" * 10_000

    for content in (b'{"notes": "' + b"x" * 3_000_000, pieces()):
        response = httpx.patch(
            f"{served.url}/api/v1/runs/abc",
            content=content,
            headers={**bearer(token), "content-type": "application/json"},
            timeout=PATIENCE_S,
        )
        assert response.status_code == 413
        assert " 1048576 " in response.json()["error"]


@pytest.mark.parametrize("content", [b"[" * 500_000, b'{"a":' * 100_000, b"\xff", b"{", b'{"name": 1e999}'])
def test_invalid_changes_are_rejected(served: Served, token: str, content: bytes) -> None:
    response = httpx.patch(
        f"{served.url}/api/v1/runs/abc",
        content=content,
        headers={**bearer(token), "content-type": "application/json"},
        timeout=PATIENCE_S,
    )
    assert response.status_code in (400, 422)


def test_long_tokens_are_not_cached(tmp_path: Path) -> None:
    with new_metadata_store(tmp_path / "catalogue.db") as metadata_store:
        guard = TokenRequired(nothing, metadata_store.tokens, lambda: NOW)
        statuses: list[int] = []

        async def ask(number: int) -> None:
            async def note(message: Any) -> None:
                statuses.append(message.get("status", 401))

            headers = [(b"authorization", f"Bearer rvt_{number}{'x' * 30_000}".encode())]
            await guard({"type": "http", "method": "POST", "path": "/", "headers": headers}, None, note)  # type: ignore[arg-type]

        for number in range(5):
            anyio.run(ask, number)
        assert set(statuses) == {401}
        assert all(len(secret) < 1000 for secret in guard._invalid)


async def nothing(scope: Any, receive: Any, send: Any) -> None:
    raise AssertionError("a request without a valid token was let in")
