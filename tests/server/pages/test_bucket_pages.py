"""The pages of buckets in a real browser, with S3 that checks signatures."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from runvitals.server.audit.storage.audit import CLI
from tests.buckets.s3_service import ACCESS_KEY, SECRET_KEY, ObjectService, allowing
from tests.server.accounts.routes.people import People, serving_people
from tests.server.browser import Browser, keep_picture
from tests.server.pages.test_account_pages import at, fill, signed_in
from tests.server.pages.test_channel_pages import looks_right
from tests.server.pages.test_page import browser, static  # noqa: F401
from tests.server.pages.test_shared_page import click, shown
from tests.server.test_build import hook  # noqa: F401


@pytest.fixture
def s3() -> Iterator[ObjectService]:
    service = ObjectService()
    yield service
    service.close()


@pytest.fixture
def people(tmp_path_factory: pytest.TempPathFactory, static: str) -> Iterator[People]:  # noqa: F811
    """A server where rita administers the organisation."""
    with serving_people(tmp_path_factory.mktemp("server"), static=static) as people:
        yield people


@pytest.fixture
def page(people: People, browser: Browser) -> Iterator[Browser]:  # noqa: F811
    with at(browser, people.url):
        yield browser


def choose(page: Browser, label: str, value: str) -> None:
    """Choose in the list with this label of a dialog."""
    page.wait(
        f"(label => {{ if (!label) return false; const list = document.getElementById(label.htmlFor);"
        f" list.value = {value!r}; list.dispatchEvent(new Event('change', {{bubbles: true}}));"
        " return true })"
        f"([...document.querySelectorAll('dialog label')].find(e => e.innerText === {label!r}))"
    )


def test_a_bucket_is_added_checked_and_given_to_a_team(
    page: Browser, people: People, s3: ObjectService
) -> None:
    people.accounts.settings.put(allowing(s3.url), CLI, people.now_ms)
    signed_in(page, "rita")
    page.open("/-/organisation/buckets")
    shown(page, "No buckets: files of all teams are kept by this server.")
    click(page, "main button", "Add a bucket")
    for label, text in (
        ("Name", "Cold store"),
        ("Bucket", s3.bucket),
        ("Prefix", "a/../b"),
        ("Endpoint", s3.url),
        ("Region", "eu-central-1"),
    ):
        fill(page, label, text, "dialog")
    choose(page, "Credentials", "secret")
    fill(page, "Access key id", ACCESS_KEY, "dialog")
    fill(page, "Secret access key", SECRET_KEY, "dialog")
    for width, dark in ((1280, False), (390, True)):
        page.resize(width, 1300, dark)
        keep_picture(page, f"bucket-dialog-{width}")
    page.resize(1280, 900)
    click(page, "dialog button", "Add and check")
    shown(page, "invalid prefix", "dialog .error")
    fill(page, "Prefix", "training", "dialog")
    s3.fault = "forbidden"
    click(page, "dialog button", "Add and check")
    shown(page, "AccessDenied", "table")
    looks_right(page, "/-/organisation/buckets", "buckets-refused")
    s3.fault = "no cors"
    click(page, "main button", "Check")
    shown(page, "files go through the server", "table")
    looks_right(page, "/-/organisation/buckets", "buckets")
    assert not page.evaluate(f"document.body.innerHTML.includes({SECRET_KEY!r})")
    page.open("/-/settings/teams")
    click(page, "main button", "New team")
    fill(page, "Team name", "labs", "dialog")
    choose(page, "Files are kept in", "Cold store")
    click(page, "dialog button", "Create")
    page.wait("location.pathname.startsWith('/labs') || document.querySelector('dialog') === null")
    page.open("/labs/-/settings/storage")
    shown(page, s3.bucket)
    shown(page, "S3, or a service like it")
    looks_right(page, "/labs/-/settings/storage", "team-storage")
    table = people.accounts.buckets
    table.note_away(table.all()[0].id, "no connection", people.now_ms)
    looks_right(page, "/labs/-/settings/storage", "team-storage-away")
    page.open("/-/organisation/buckets")
    shown(page, "labs", "table")
    # New credentials: those that fail are refused, and the dialog keeps what was typed.
    click(page, "main button", "Change")
    click(page, "dialog label", "New credentials")
    choose(page, "Credentials", "secret")
    fill(page, "Access key id", ACCESS_KEY, "dialog")
    fill(page, "Secret access key", "wrong", "dialog")
    click(page, "dialog button", "Check and change")
    shown(page, "the credentials were not taken: they failed at write", "dialog .error")
    for width, dark in ((1280, False), (390, True)):
        page.resize(width, 900, dark)
        keep_picture(page, f"bucket-change-{width}")
        assert page.evaluate("document.documentElement.scrollWidth") <= width
    page.resize(1280, 900)
    fill(page, "Secret access key", SECRET_KEY, "dialog")
    click(page, "dialog button", "Check and change")
    shown(page, "has new credentials", "body")
    assert people.accounts.buckets.all()[0].away_ms is None
