"""Passkeys and forced changes of passwords on the page, in Chromium with an authenticator of its own."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from runvitals.server.audit.storage.audit import CLI
from tests.server.accounts.routes.people import OTHER_PASSWORD, PASSWORD, People, serving_people
from tests.server.browser import Browser
from tests.server.pages.accessibility import accessible
from tests.server.pages.test_account_pages import LATER_S, at, confirm_password, fill, sign_in, signed_in
from tests.server.pages.test_page import browser, static  # noqa: F401
from tests.server.pages.test_shared_page import click, shown
from tests.server.test_build import hook  # noqa: F401

GIVEN = "a password by an administrator"


@pytest.fixture
def people(tmp_path: Path, static: str) -> Iterator[People]:  # noqa: F811
    with serving_people(tmp_path, static=static) as people:
        yield people


@pytest.fixture
def page(people: People, browser: Browser) -> Iterator[Browser]:  # noqa: F811
    """A browser at the server, by a name at which browsers have passkeys."""
    with at(browser, people.url.replace("127.0.0.1", "localhost")):
        yield browser


class Device:
    """An authenticator of the browser, which recognises its user until told otherwise."""

    def __init__(self, page: Browser) -> None:
        self._page = page
        page.call("WebAuthn.enable", enableUI=False)
        options = {
            "protocol": "ctap2",
            "transport": "internal",
            "hasResidentKey": True,
            "hasUserVerification": True,
            "isUserVerified": True,
            "automaticPresenceSimulation": True,
        }
        self.id = page.call("WebAuthn.addVirtualAuthenticator", options=options)["authenticatorId"]

    def recognises(self, user: bool) -> None:
        self._page.call("WebAuthn.setUserVerified", authenticatorId=self.id, isUserVerified=user)

    def passkeys(self) -> list[dict[str, Any]]:
        credentials = self._page.call("WebAuthn.getCredentials", authenticatorId=self.id)["credentials"]
        return list(credentials)

    def close(self) -> None:
        self._page.call("WebAuthn.removeVirtualAuthenticator", authenticatorId=self.id)
        self._page.call("WebAuthn.disable")


@pytest.fixture
def device(page: Browser) -> Iterator[Device]:
    device = Device(page)
    yield device
    device.close()


def add_passkey(page: Browser, name: str = "Blue phone") -> None:
    page.open("/-/settings/security")
    click(page, "main button", "Add a passkey")
    fill(page, "Name", name, "dialog")
    click(page, "dialog button", "Continue")


def test_a_passkey_is_added_used_renamed_and_removed(page: Browser, people: People, device: Device) -> None:
    signed_in(page)
    people.pass_s(LATER_S)
    add_passkey(page)
    confirm_password(page)
    shown(page, "You can now sign in with this passkey.")
    shown(page, "Blue phone", "main td")
    (credential,) = device.passkeys()
    assert credential["rpId"] == "localhost"
    accessible(page)
    page.resize(390, 844)
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    accessible(page)
    page.resize(1280, 900)

    page.call("Network.clearBrowserCookies")
    page.open("/-/login")
    shown(page, "Sign in")
    click(page, "main button", "Sign in with a passkey")
    page.wait("document.querySelector('.account .picture')")
    page.open("/-/settings/security")
    shown(page, "Blue phone", "main td")
    assert people.browser("rita").get("/account/passkeys").json()["passkeys"][0]["last_used_ms"]

    click(page, "main .actions button", "Rename")
    fill(page, "Name", "Old phone", "dialog")
    click(page, "dialog button", "Rename")
    shown(page, "Old phone", "main td")
    click(page, "main .actions button", "Remove")
    shown(page, "You can no longer sign in with it.", "dialog")
    click(page, "dialog button", "Remove")
    shown(page, "You have no passkeys.")

    page.call("Network.clearBrowserCookies")
    page.open("/-/login")
    click(page, "main button", "Sign in with a passkey")
    shown(page, "not known here", "main [role=alert]")


def test_a_device_that_does_not_recognise_the_user_signs_nobody_in(
    page: Browser, people: People, device: Device
) -> None:
    signed_in(page)
    add_passkey(page)
    shown(page, "Blue phone", "main td")
    device.recognises(False)
    page.call("Network.clearBrowserCookies")
    page.open("/-/login")
    click(page, "main button", "Sign in with a passkey")
    shown(page, "No passkey was used", "main [role=alert]")


def test_a_passkey_is_a_second_factor_and_confirms_changes(
    page: Browser, people: People, device: Device
) -> None:
    signed_in(page)
    add_passkey(page)
    shown(page, "Blue phone", "main td")
    page.wait("[...document.querySelectorAll('main [role=switch]')].some(e => !e.checked && !e.click())")
    shown(page, "Keep these recovery codes")
    click(page, "main button", "I have kept them")
    people.pass_s(LATER_S)

    page.open("/-/settings/keys")
    click(page, "main button", "New key")
    fill(page, "Name", "laptop", "dialog")
    click(page, "dialog button", "Create")
    shown(page, "Confirm your password", "dialog")
    click(page, "dialog button", "Use a passkey")
    shown(page, "it is not shown again")

    page.call("Network.clearBrowserCookies")
    sign_in(page)
    shown(page, "Use one of your passkeys")
    accessible(page)
    click(page, "main button", "Use a passkey")
    page.wait("document.querySelector('.account .picture')")


def test_a_password_of_an_administrator_is_changed_before_anything_else(
    page: Browser, people: People
) -> None:
    ada = people.add("ada")
    hashed = people.passwords.hash(GIVEN)
    people.accounts.credentials.set_password(ada.id, hashed, CLI, people.now_ms, must_change=True)
    people.rights_changed()
    page.open("/-/login?next=%2F-%2Fsettings%2Fprofile")
    shown(page, "Sign in")
    fill(page, "E-mail address or username", "ada")
    fill(page, "Password", GIVEN)
    click(page, "main button", "Sign in")
    shown(page, "Choose your own password", "h1")
    accessible(page)
    page.open("/")
    shown(page, "Choose your own password", "h1")
    fill(page, "Current password", GIVEN)
    fill(page, "New password", GIVEN)
    click(page, "main button", "Change password")
    page.wait("document.querySelector('[aria-invalid=true]')")
    fill(page, "Current password", GIVEN)
    fill(page, "New password", OTHER_PASSWORD)
    click(page, "main button", "Change password")
    shown(page, "Send your first run", "h1")
    page.open("/-/settings/profile")
    shown(page, "Display name", "main label")
    assert people.browser().sign_in("ada", PASSWORD).status_code == 401
    assert people.browser().sign_in("ada", OTHER_PASSWORD).status_code == 200


def test_a_visitor_causes_no_error_in_the_console(page: Browser, people: People) -> None:
    page.open("/-/login")
    shown(page, "Sign in")
    assert page.complaints == []
    page.open("/")
    page.wait("location.pathname === '/-/login'")
    assert [text for text in page.complaints if "/auth/" in text or "/account" in text] == []
