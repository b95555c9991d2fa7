"""`runvitals ui` through another server: which names are answered, and how the secret is kept."""

from __future__ import annotations

from pathlib import Path

import pytest

from runvitals.sdk.integrations.notebook_launcher import SECRET, page_server
from runvitals.server.http.shown_elsewhere import link_through
from tests.server.client import Client

HUB = {"host": "hub.example.org"}


def test_the_link_is_needed_for_other_names(tmp_path: Path) -> None:
    client = Client(tmp_path, secret="s3cret")
    assert client.get("/api/v1/about").status_code == 200
    assert client.get("/?token=s3cret").headers["location"] == "/"  # the link works there as well
    refused = client.get("/", headers=HUB)
    assert refused.status_code == 403
    assert "open the link that `runvitals ui` printed" in refused.json()["error"]
    assert "s3cret" not in refused.text

    linked = client.get("/?token=s3cret", headers=HUB)
    assert (linked.status_code, linked.headers["location"]) == (303, "/")
    cookie, *attributes = linked.headers["set-cookie"].split("; ")
    assert attributes == ["HttpOnly", "SameSite=lax"]  # without a path: for the addresses below this one
    assert client.get("/api/v1/about", headers={**HUB, "cookie": f"a=b; {cookie}"}).status_code == 200
    assert client.get("/api/v1/about", headers={**HUB, "authorization": "Bearer s3cret"}).status_code == 200


@pytest.mark.parametrize(
    ("path", "headers"),
    [
        ("/?token=other", {}),
        ("/?token=", {}),
        ("/api/v1/about?token=s3cret", {}),
        ("/api/v1/about", {"cookie": "runvitals_link=other"}),
        ("/api/v1/about", {"cookie": "other=s3cre"}),
        ("/api/v1/about", {"authorization": "Bearer ä"}),
    ],
)
def test_nothing_else_is_the_secret(tmp_path: Path, path: str, headers: dict[str, str]) -> None:
    with_bytes = {name.encode(): value.encode("latin-1") for name, value in {**HUB, **headers}.items()}
    assert Client(tmp_path, secret="s3cret").get(path, headers=with_bytes).status_code == 403


def test_changes_from_other_sites_are_refused_with_the_secret_too(tmp_path: Path) -> None:
    headers = {**HUB, "cookie": "runvitals_link=s3cret", "origin": "https://evil.example"}
    response = Client(tmp_path, secret="s3cret").request("DELETE", "/api/v1/runs/r1", headers=headers)
    assert (response.status_code, "pages of other sites" in response.json()["error"]) == (403, True)


@pytest.mark.parametrize(
    ("environ", "expected"),
    [
        ({}, "https://…/proxy/8900/?token=x"),
        (
            {"VSCODE_PROXY_URI": "https://code.example/proxy/{{port}}/"},
            "https://code.example/proxy/8900/?token=x",
        ),
        ({"VSCODE_PROXY_URI": "./proxy/{{port}}"}, "https://…/proxy/8900/?token=x"),
        ({"JUPYTERHUB_SERVICE_PREFIX": "/user/ada/"}, "https://…/user/ada/proxy/8900/?token=x"),
        (
            {
                "JUPYTERHUB_SERVICE_PREFIX": "/user/ada/",
                "JUPYTERHUB_PUBLIC_URL": "https://hub.example/user/ada/",
            },
            "https://hub.example/user/ada/proxy/8900/?token=x",
        ),
    ],
)
def test_the_link(environ: dict[str, str], expected: str) -> None:
    assert link_through(environ, 8900, "x") == expected


def test_a_notebook_server_has_a_secret_of_its_own() -> None:
    first, second = page_server(), page_server()
    assert first["command"][-3:] == ["--no-browser", "--port", "{port}"]
    assert first["request_headers_override"] == {"Authorization": f"Bearer {first['environment'][SECRET]}"}
    assert first["environment"] != second["environment"]
