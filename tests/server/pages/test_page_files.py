"""The files of the built page."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.server.client import Client


@pytest.fixture
def client(tmp_path: Path) -> Client:
    static = tmp_path / "static"
    (static / "assets").mkdir(parents=True)
    (static / "index.html").write_text("<title>runvitals</title>")
    (static / "assets" / "app-1234.js").write_text("1")
    return Client(tmp_path, static=str(static))


@pytest.mark.parametrize("path", ["/", "/runs/abc", "/projects/a%2Fb", "/runs/abc/charts"])
def test_every_path_of_the_page_returns_the_page(client: Client, path: str) -> None:
    response = client.get(path)
    assert response.status_code == 200
    assert response.text == "<title>runvitals</title>"
    assert response.headers["content-type"].startswith("text/html")
    assert response.headers["cache-control"] == "no-cache"


def test_files_named_by_a_hash_are_cached(client: Client) -> None:
    response = client.get("/assets/app-1234.js")
    assert response.headers["content-type"].startswith("text/javascript")
    assert "immutable" in response.headers["cache-control"]


@pytest.mark.parametrize("path", ["/assets/gone.js", "/assets/../../secret", "/assets/%2e%2e/%2e%2e/secret"])
def test_files_outside_the_folder_are_not_served(client: Client, path: str, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("secret")
    assert "secret" not in client.get(path).text


def test_a_missing_page_explains_how_to_build_it(tmp_path: Path) -> None:
    response = Client(tmp_path, static=str(tmp_path / "none")).get("/")
    assert response.status_code == 503
    assert "python hatch_build.py" in response.text


@pytest.mark.parametrize(
    ("path", "root"),
    [
        ("/", "./"),
        ("/runs", "./"),
        ("/runs/", "../"),
        ("/runs/abc/charts", "../../"),
        ("/projects/a%2Fb", "../"),
    ],
)
def test_the_links_of_the_page_are_relative_to_its_address(
    client: Client, tmp_path: Path, path: str, root: str
) -> None:
    (tmp_path / "static" / "index.html").write_text(
        '<link href="./favicon.svg"><script src="./assets/app-1234.js"></script>'
    )
    headers = {"x-forwarded-prefix": "/evil", "x-forwarded-host": "evil.example"}
    assert client.get(path, headers=headers).text == (
        f'<link href="{root}favicon.svg"><script src="{root}assets/app-1234.js"></script>'
    )
