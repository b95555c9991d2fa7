"""Pictures, and images from elsewhere, over HTTP."""

from __future__ import annotations

import io
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from PIL import Image

from runvitals.server.audit.storage.audit import CLI, AuditFilter
from runvitals.server.user_content.image_links import ImageLinks
from tests.patience import PATIENCE_S
from tests.server.accounts.routes.people import People, serving_people
from tests.server.outbound.site import Site
from tests.server.outbound.site import serving as serving_site

PNG = b"\x89PNG\r\n\x1a\n" + b"x" * 100


def _png(width: int = 90, height: int = 60) -> bytes:
    body = io.BytesIO()
    Image.new("RGB", (width, height), (255, 0, 0)).save(body, "PNG")
    return body.getvalue()


def _delete(client: httpx.Client, path: str) -> httpx.Response:
    return client.delete(path, headers={"content-type": "application/json"})


def _put(client: httpx.Client, path: str, body: bytes, media_type: str = "image/png") -> httpx.Response:
    return client.put(path, content=body, headers={"content-type": media_type})


def test_the_picture_of_an_account(people: People) -> None:
    people.add("ada")
    ada = people.browser("ada")
    done = _put(ada, "/account/picture?crop=0,0,30,30", _png())
    assert done.status_code == 200, done.text
    digest = done.json()["picture"]
    assert ada.get("/account").json()["picture"] == digest
    assert ada.get("/users/ada").json()["picture"] == digest
    visitor = httpx.Client(base_url=people.url, timeout=PATIENCE_S)
    people.clients.append(visitor)
    for size in (64, 512):
        shown = visitor.get(f"/-/picture/{digest}?s={size}")
        assert shown.status_code == 200
        assert shown.headers["content-type"] == "image/webp"
        assert "immutable" in shown.headers["cache-control"]
        assert Image.open(io.BytesIO(shown.content)).size == (size, size)
    assert _delete(ada, "/account/picture").status_code == 204
    assert visitor.get(f"/-/picture/{digest}").status_code == 404
    assert visitor.get(f"/-/picture/{'0' * 64}").status_code == 404


def test_what_is_wrong_with_an_upload_is_said(people: People) -> None:
    people.add("ada")
    ada = people.browser("ada")
    for path, body, media_type, status in (
        ("/account/picture", _png(), "image/svg+xml", 415),
        ("/account/picture", _png(), "image/bmp", 415),
        ("/account/picture", b"hello", "image/png", 422),
        ("/account/picture?crop=1,2", _png(), "image/png", 422),
        ("/account/picture?crop=500,500,1,1", _png(), "image/png", 422),
        ("/account/picture", b"x" * 5_000_001, "image/png", 413),
        ("/account/profile", b"x" * 2_000_000, "image/png", 413),
    ):
        assert _put(ada, path, body, media_type).status_code == status, (path, media_type)
    large = _png(6000, 8000)
    assert _put(ada, "/account/picture", large).status_code == 413


def test_pictures_need_a_session_and_a_team_its_administrator(people: People) -> None:
    people.add("ada")
    people.add("bob")
    administrator = people.accounts.users.by_name("ada").id
    people.accounts.teams.create("vision", CLI, people.now_ms, administrator=administrator)
    people.rights_changed()
    ada, bob, visitor = people.browser("ada"), people.browser("bob"), people.browser()
    assert _put(visitor, "/account/picture", _png()).status_code == 401
    assert _put(visitor, "/teams/vision/picture", _png()).status_code == 401
    assert _put(bob, "/teams/vision/picture", _png()).status_code in (403, 404)
    assert _delete(bob, "/teams/vision/picture").status_code in (403, 404)
    done = _put(ada, "/teams/vision/picture", _png())
    assert done.status_code == 200
    team = people.accounts.teams.by_name("vision").id
    assert people.accounts.pictures.digests([team]) == {team: done.json()["picture"]}
    assert ada.get("/teams/vision").json()["picture"] == done.json()["picture"]
    face = _put(ada, "/account/picture", _png(30, 30)).json()["picture"]
    assert [row["picture"] for row in ada.get("/teams/vision/members").json()["members"]] == [face]
    assert _delete(ada, "/teams/vision/picture").status_code == 204
    assert people.accounts.pictures.digests([team]) == {}


def test_the_picture_of_the_organisation_is_shown_before_signing_in(people: People) -> None:
    people.add("ada")
    ada, rita, visitor = people.browser("ada"), people.browser("rita"), people.browser()
    assert _put(ada, "/organisation/picture", _png()).status_code in (403, 404)
    assert visitor.get("/auth/methods").json()["picture"] is None
    people.set(name="The lab")
    digest = _put(rita, "/organisation/picture", _png()).json()["picture"]
    shown = visitor.get("/auth/methods").json()
    assert (shown["organisation"], shown["picture"]) == ("The lab", digest)
    assert rita.get("/organisation/settings").json()["picture"] == digest
    assert visitor.get(f"{people.url}/-/picture/{digest}").status_code == 200
    # A user with the same picture does not take it along.
    assert _put(ada, "/account/picture", _png()).json()["picture"] == digest
    assert _delete(ada, "/account/picture").status_code == 204
    assert visitor.get(f"{people.url}/-/picture/{digest}").status_code == 200
    assert _delete(rita, "/organisation/picture").status_code == 204
    assert visitor.get("/auth/methods").json()["picture"] is None
    assert visitor.get(f"{people.url}/-/picture/{digest}").status_code == 404
    events = people.accounts.audit.page(AuditFilter(action="org.settings", actor="rita"))
    assert [event.after for event in events] == [{"picture": None}, {"picture": digest}]


def test_another_site_cannot_set_a_picture(people: People) -> None:
    people.add("ada")
    ada = people.browser("ada")
    ada.headers["sec-fetch-site"] = "cross-site"
    assert _put(ada, "/account/picture", _png()).status_code == 403


def test_the_intro_is_shown_as_html(people: People) -> None:
    people.add("ada")
    ada = people.browser("ada")
    intro = "# Hi <script>x</script>\n\n![a](https://site.example/a.png)"
    assert ada.patch("/account/profile", json={"intro": intro}).status_code == 200
    shown = ada.get("/users/ada").json()["intro_html"]
    assert shown.startswith('<h2>Hi &lt;script&gt;x&lt;/script&gt;</h2>\n<p><img src="/-/image/')
    people.set(outside_images="off")
    assert "<img" not in ada.get("/users/ada").json()["intro_html"]


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    with serving_site(tmp_path, "site.example") as running:
        yield running


@pytest.fixture
def showing(tmp_path: Path, site: Site) -> Iterator[People]:
    """A server that fetches images from the site of the test."""
    with serving_people(tmp_path, fetcher=site.fetcher()) as people:
        yield people


def test_images_from_elsewhere(showing: People, site: Site) -> None:
    links = showing.served.app.services.outside_services.image_links()
    site.answers["/a.png"] = (200, {}, PNG)
    site.answers["/a.svg"] = (200, {}, b"<svg><script>alert(1)</script></svg>")
    with httpx.Client(base_url=showing.url, timeout=PATIENCE_S) as visitor:
        shown = visitor.get(links.address("https://site.example/a.png"))
        assert (shown.content, shown.headers["content-type"]) == (PNG, "image/png")
        assert "img-src 'self'" in shown.headers["content-security-policy"]
        vector = visitor.get(links.address("https://site.example/a.svg"))
        assert vector.headers.get_list("content-security-policy") == [
            "default-src 'none'; style-src 'unsafe-inline'; sandbox"
        ]
        assert vector.headers["x-content-type-options"] == "nosniff"
        for missing in (
            links.address("https://site.example/missing.png"),
            links.address("https://127.0.0.1/a.png"),
            ImageLinks(b"x" * 32).address("https://site.example/a.png"),
        ):
            assert visitor.get(missing).status_code == 404
        showing.set(outside_images="off")
        assert visitor.get(links.address("https://site.example/a.png")).status_code == 404
    assert {address for address, _ in site.reached} == {"93.184.215.14"}
