"""Loopback only, and pages that may load nothing but their own files."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.server.accounts_server import accounts_server
from tests.server.client import Client


@pytest.mark.parametrize("host", ["localhost", "localhost:8900", "127.0.0.1:1", "[::1]:8900", "LOCALHOST"])
def test_loopback_names_are_accepted(tmp_path: Path, host: str) -> None:
    assert Client(tmp_path).get("/api/v1/runs", headers={"host": host}).status_code == 200


@pytest.mark.parametrize(
    "host",
    ["rebind.example", "rebind.example:8900", "127.0.0.1.example", "localhost.example:80", "", "10.0.0.1"],
)
@pytest.mark.parametrize("path", ["/api/v1/runs", "/", "/assets/x.js"])
def test_other_names_are_rejected(tmp_path: Path, host: str, path: str) -> None:
    response = Client(tmp_path).get(path, headers={"host": host})
    assert response.status_code == 403
    assert "answers to localhost, 127.0.0.1, [::1] only" in response.json()["error"]


@pytest.mark.parametrize("path", ["/", "/api/v1/runs", "/api/v1/runs/nope", "/api/nothing", "/runs/abc"])
def test_every_response_has_the_security_headers(tmp_path: Path, path: str) -> None:
    headers = Client(tmp_path).get(path, headers={"origin": "https://evil.example"}).headers
    policy = headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["cross-origin-resource-policy"] == "same-origin"
    assert not [name for name in headers if name.startswith("access-control-")]


def test_nothing_keeps_what_the_api_responds(tmp_path: Path) -> None:
    with accounts_server(tmp_path) as server:
        server.user("ada")
        with server.client("ada") as ada:
            for method, path in (
                ("GET", "account"),
                ("GET", "users?query=ada"),
                ("POST", "account/second-factor"),  # shows a secret
                ("POST", "auth/setup"),
            ):
                response = ada.request(method, path, content="{}" if method == "POST" else None)
                assert response.headers.get_list("cache-control") == ["no-store"], path
            assert ada.get("runs").headers.get_list("cache-control") == ["no-store"]
