"""Signing in by an OpenID provider in a real browser.

The provider is `oidc-provider-mock`, which is built on Authlib.
"""

from __future__ import annotations

import base64
import ssl
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import oidc_provider_mock
import pytest
from sqlalchemy import Connection, update
from werkzeug.serving import make_server

from runvitals.server.accounts.totp import STEP_S, code_at
from runvitals.server.audit.storage.audit import CLI
from runvitals.server.database.rights_generation import rights_changed
from runvitals.server.database.tables.accounts import session
from tests.certificates import self_signed
from tests.patience import PATIENCE_S
from tests.server.accounts.routes.people import OTHER_PASSWORD, PASSWORD, People, serving_people
from tests.server.browser import Browser, NoBrowser
from tests.server.outbound.site import PUBLIC, Site
from tests.server.pages.test_account_pages import at, fill, sign_in
from tests.server.pages.test_page import static  # noqa: F401
from tests.server.pages.test_shared_page import click, shown
from tests.server.test_build import hook  # noqa: F401

# Of the provider, which uses old names of Authlib's.
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")

STYLES = "cdn.jsdelivr.net"
"""Where the provider's page has its styles. Nothing is requested from there."""


def now_ms() -> int:
    return time.time_ns() // 1_000_000


@contextmanager
def provider(folder: Path) -> Iterator[Site]:
    """An OpenID provider by Authlib, as `https://idp.example`."""
    ada = oidc_provider_mock.User(
        sub="42",
        claims={
            "email": "ada@lab.example",
            "email_verified": True,
            "preferred_username": "ada",
            "name": "Ada L.",
            "auth_time": int(time.time()) + 3600,
        },
    )
    tls, trusted = self_signed(folder, "idp.example")
    application = oidc_provider_mock.app(user_claims=[ada])
    server = make_server("127.0.0.1", 0, application, threaded=True, ssl_context=tls)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        site = Site(server.server_port, ssl.create_default_context(cafile=str(trusted)))
        site.names = {"idp.example": [[PUBLIC]]}
        yield site
    finally:
        server.shutdown()
        thread.join(PATIENCE_S)
        server.server_close()


@contextmanager
def chromium(site: Site) -> Iterator[Browser]:
    """A browser for which the provider has a public name and a certificate."""
    rules = f"MAP idp.example:443 127.0.0.1:{site.port}, MAP {STYLES} ~NOTFOUND"
    try:
        with Browser(f"--host-resolver-rules={rules}", "--ignore-certificate-errors") as browser:
            yield browser
    except NoBrowser as error:
        pytest.skip(str(error))


def test_a_user_signs_in_by_a_provider_and_out(
    tmp_path: Path,
    static: str,  # noqa: F811
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with (
        provider(tmp_path) as site,
        serving_people(
            tmp_path, static=static, fetcher=site.fetcher(), clock=now_ms, monotonic=time.monotonic
        ) as people,
        chromium(site) as page,
    ):
        people.now_ms = now_ms()
        monkeypatch.setenv("RUNVITALS_URL", people.url)
        lab: dict[str, Any] = {"id": "lab", "label": "Lab", "kind": "oidc", "issuer": "https://idp.example"}
        lab |= {"client_id": "runvitals", "client_secret": "s3cret", "auto_create": True}
        put = people.browser("rita").put("/organisation/providers", json={"providers": [lab]})
        assert put.status_code == 200, put.text
        with at(page, people.url):
            page.open("/projects/digits?state=failed")
            page.wait("location.pathname === '/-/login'")
            click(page, "main button", "Continue with Lab")
            page.wait("location.host === 'idp.example'")
            assert (
                page.evaluate("new URLSearchParams(location.search).get('code_challenge_method')") == "S256"
            )
            press(page, "42")
            page.wait("location.pathname + location.search === '/projects/digits?state=failed'")
            page.wait("document.querySelector('.account .picture')")
            page.open("/-/settings/security")
            shown(page, "ada@lab.example")
            confirms_by_provider(page, people)
            code = with_authenticator_app(people, "ada")
            sign_out(page)
            click(page, "main button", "Continue with Lab")
            press(page, "42")
            shown(page, "Enter the code of your authenticator app", "main")
            fill(page, "Code", "000000" if code != "000000" else "111111")
            click(page, "main button", "Sign in")
            shown(page, "wrong", "main [role=alert]")
            fill(page, "Code", code)
            click(page, "main button", "Sign in")
            page.wait("document.querySelector('.account .picture')")
            sign_out(page)
            sign_in(page, "ada", OTHER_PASSWORD)
            shown(page, "is wrong", "main [role=alert]")
            page.complaints[:] = [text for text in page.complaints if STYLES not in text]
        assert people.accounts.users.by_name("ada").display_name == "Ada L."


def confirms_by_provider(page: Browser, people: People) -> None:
    """ada has no password: the provider confirms who changes the addresses."""

    def forget_confirmations(connection: Connection) -> None:
        connection.execute(update(session).values(sudo_until_ms=None))
        rights_changed(connection)

    people.served.metadata_store._database.write(forget_confirmations)
    people.rights_changed()
    page.open("/-/settings/emails")
    click(page, "main button", "Add an address")
    fill(page, "Address", "ada@home.example", "dialog")
    click(page, "dialog button", "Send a link")
    shown(page, "Confirm who you are", "dialog")
    click(page, "dialog button", "Continue with Lab")
    press(page, "42")
    page.wait("location.pathname === '/-/settings/emails'")
    shown(page, "ada@lab.example")
    assert people.actions()[-1] == "user.sudo"


def with_authenticator_app(people: People, name: str) -> str:
    """Give a user a password and a second factor; returns a code of it."""
    user = people.accounts.users.by_name(name)
    people.accounts.credentials.set_password(user.id, people.passwords.hash(PASSWORD), CLI, now_ms())
    browser = people.browser(name)
    secret = base64.b32decode(browser.post("/account/second-factor", json={}).json()["secret"])
    step = now_ms() // 1000 // STEP_S
    done = browser.post("/account/second-factor/confirm", json={"code": code_at(secret, step - 1)})
    assert done.status_code == 200, done.text
    return code_at(secret, step)  # each code counts once


def sign_out(page: Browser) -> None:
    click(page, ".picture")
    click(page, ".menu button", "Sign out")
    shown(page, "Sign in")


def press(page: Browser, value: str) -> None:
    """Press a button of the provider, which is a person whom it knows."""
    page.wait("location.host === 'idp.example'")
    page.wait(
        f"(button => button && (button.click(), true))(document.querySelector('button[value=\"{value}\"]'))"
    )
