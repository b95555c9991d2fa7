"""Passkeys over HTTP: adding, renaming and removing them, signing in, as a second factor, and confirming."""

from __future__ import annotations

import base64
from typing import Any

import pytest

from runvitals.server.accounts.attempt_limits import SIGN_IN_NETWORK
from runvitals.server.accounts.passkeys import CHALLENGE_MS
from runvitals.server.accounts.totp import STEP_S, code_at
from runvitals.server.audit.storage.audit import CLI
from tests.server.accounts.authenticator import PRESENT, Authenticator
from tests.server.accounts.routes.people import COOKIE, PASSWORD, Browser, People

ORIGIN = "https://runs.lab.example"


@pytest.fixture
def phone() -> Authenticator:
    return Authenticator(ORIGIN)


@pytest.fixture
def at_home(people: People) -> People:
    """A server that knows its address, and ada."""
    people.set(url=ORIGIN, name="The lab")
    people.add("ada")
    return people


def _add(browser: Browser, device: Authenticator, name: str = "phone") -> dict[str, Any]:
    options = browser.post("/account/passkeys/options", json={}).json()["options"]
    added = browser.post("/account/passkeys", json={"name": name, "passkey": device.make(options)})
    assert added.status_code == 201, added.text
    row: dict[str, Any] = added.json()
    return row


def _sign_in(browser: Browser, device: Authenticator, **more: Any) -> Any:
    options = browser.post("/auth/passkey/options", json={}).json()["options"]
    return browser.post("/auth/passkey", json={"passkey": device.answer(options), **more})


def test_a_passkey_signs_in(at_home: People, phone: Authenticator) -> None:
    ada = at_home.browser("ada")
    assert ada.get("/auth/methods").json()["passkey_origin"] == ORIGIN
    options = ada.post("/account/passkeys/options", json={}).json()["options"]
    assert options["rp"] == {"id": "runs.lab.example", "name": "The lab"}
    assert options["user"]["name"] == "ada"
    row = _add(ada, phone)
    assert (row["name"], row["last_used_ms"]) == ("phone", None)
    browser = at_home.browser()
    done = _sign_in(browser, phone, next="/ada/digits")
    assert (done.status_code, done.json()["account"]["name"], done.json()["next"]) == (
        200,
        "ada",
        "/ada/digits",
    )
    assert browser.get("/account/sessions").json()["sessions"][0]["method"] == "passkey"
    assert browser.get("/account/passkeys").json()["passkeys"][0]["last_used_ms"] == at_home.now_ms
    assert {"user.passkey_add", "user.login"} <= set(at_home.actions())


def test_an_answer_signs_in_once_and_not_after_some_minutes(at_home: People, phone: Authenticator) -> None:
    _add(at_home.browser("ada"), phone)
    browser = at_home.browser()
    options = browser.post("/auth/passkey/options", json={}).json()["options"]
    credential = phone.answer(options)
    assert browser.post("/auth/passkey", json={"passkey": credential}).status_code == 200
    replayed = at_home.browser().post("/auth/passkey", json={"passkey": credential})
    assert (replayed.status_code, replayed.cookies.get(COOKIE)) == (401, None)
    late = phone.answer(at_home.browser().post("/auth/passkey/options", json={}).json()["options"])
    at_home.pass_s(CHALLENGE_MS / 1000)
    assert at_home.browser().post("/auth/passkey", json={"passkey": late}).status_code == 401


def test_wrong_answers_sign_nobody_in(at_home: People, phone: Authenticator) -> None:
    _add(at_home.browser("ada"), phone)
    browser = at_home.browser()
    for changes in ({"origin": "https://evil.example"}, {"rp_id": "evil.example"}, {"flags": PRESENT}):
        options = browser.post("/auth/passkey/options", json={}).json()["options"]
        refused = browser.post("/auth/passkey", json={"passkey": phone.answer(options, **changes)})
        assert (refused.status_code, browser.secret) == (401, "")
    for nonsense in (
        {},
        {"rawId": 1},
        {"response": []},
        {"rawId": "x", "response": {"clientDataJSON": "e30"}},
    ):
        assert browser.post("/auth/passkey", json={"passkey": nonsense}).status_code == 401
    assert browser.post("/auth/passkey", json={"passkey": "x"}).status_code == 422
    assert at_home.actions().count("user.login_failed") == 7


def test_wrong_answers_of_a_network_do_not_lock_others_out(at_home: People, phone: Authenticator) -> None:
    _add(at_home.browser("ada"), phone)
    browser = at_home.browser()
    count = SIGN_IN_NETWORK.free + 3
    statuses = [browser.post("/auth/passkey", json={"passkey": {}}).status_code for _ in range(count)]
    assert (statuses[0], statuses[-1]) == (401, 429)
    assert at_home.actions().count("user.login_failed") <= SIGN_IN_NETWORK.free + 1
    assert _sign_in(browser, phone).status_code == 200


def test_suspended_users_and_a_switch_apply_to_passkeys_too(at_home: People, phone: Authenticator) -> None:
    _add(at_home.browser("ada"), phone)
    tablet = Authenticator(ORIGIN)
    _add(at_home.browser("rita"), tablet)
    at_home.set(password_login=False)
    assert _sign_in(at_home.browser(), phone).status_code == 403
    assert _sign_in(at_home.browser(), tablet).status_code == 200
    at_home.set(password_login=True)
    assert _sign_in(at_home.browser(), phone).status_code == 200
    ada = at_home.accounts.users.by_name("ada")
    at_home.accounts.users.update(ada.id, CLI, at_home.now_ms, state="suspended")
    assert _sign_in(at_home.browser(), phone).status_code == 403


def test_passkeys_are_renamed_and_removed_by_their_owner(at_home: People, phone: Authenticator) -> None:
    ada, rita = at_home.browser("ada"), at_home.browser("rita")
    path = f"/account/passkeys/{_add(ada, phone)['id']}"
    assert rita.patch(path, json={"name": "mine"}).status_code == 404
    assert rita.delete(path, headers={"content-type": "application/json"}).status_code == 404
    assert ada.patch(path, json={"name": " Blue phone "}).json()["name"] == "Blue phone"
    assert ada.patch(path, json={"name": " "}).status_code == 422
    assert ada.delete(path, headers={"content-type": "application/json"}).status_code == 204
    assert ada.get("/account/passkeys").json() == {"passkeys": [], "total": 0, "next": None}
    assert _sign_in(at_home.browser(), phone).status_code == 401


def test_changes_of_passkeys_need_a_confirmed_session(at_home: People, phone: Authenticator) -> None:
    ada = at_home.browser("ada")
    path = f"/account/passkeys/{_add(ada, phone)['id']}"
    key = at_home.accounts.keys.create(
        "k", CLI, at_home.now_ms, user_id=at_home.accounts.users.by_name("ada").id, scope="full"
    )[0]
    at_home.pass_s(16 * 60)
    for method, where, body in (
        ("POST", "/account/passkeys/options", {}),
        ("POST", "/account/passkeys", {"name": "x", "passkey": {}}),
        ("PATCH", path, {"name": "x"}),
        ("DELETE", path, {}),
        ("PUT", "/account/second-factor/passkeys", {"enabled": True}),
    ):
        assert ada.request(method, where, json=body).status_code == 428, where
        assert at_home.program(key).request(method, where, json=body).status_code == 403, where


def test_a_passkey_is_registered_in_the_session_that_asked(at_home: People, phone: Authenticator) -> None:
    ada, other = at_home.browser("ada"), at_home.browser("ada")
    passkey = phone.make(ada.post("/account/passkeys/options", json={}).json()["options"])
    stolen = other.post("/account/passkeys", json={"name": "x", "passkey": passkey})
    assert (stolen.status_code, list(stolen.json()["fields"])) == (422, ["passkey"])
    assert ada.post("/account/passkeys", json={"name": "x", "passkey": passkey}).status_code == 201


def test_a_passkey_confirms_who_one_is(at_home: People, phone: Authenticator) -> None:
    ada = at_home.browser("ada")
    _add(ada, phone)
    at_home.pass_s(16 * 60)
    assert ada.post("/account/api-keys", json={"name": "laptop"}).status_code == 428
    ways = ada.get("/auth/sudo").json()
    assert (ways["password"], ways["providers"]) == (True, [])
    wrong = ada.post("/auth/sudo", json={"passkey": phone.answer(ways["passkey"], flags=PRESENT)})
    assert wrong.status_code == 401
    signing_in = ada.post("/auth/passkey/options", json={}).json()["options"]
    assert ada.post("/auth/sudo", json={"passkey": phone.answer(signing_in)}).status_code == 401
    done = ada.post("/auth/sudo", json={"passkey": phone.answer(ways["passkey"])})
    assert done.json() == {"until_ms": at_home.now_ms + 15 * 60_000}
    assert ada.post("/account/api-keys", json={"name": "laptop"}).status_code == 201
    for body in ({}, {"password": PASSWORD, "passkey": {}}):
        assert ada.post("/auth/sudo", json=body).status_code == 422


def test_a_passkey_is_asked_for_after_the_password(at_home: People, phone: Authenticator) -> None:
    ada = at_home.browser("ada")
    put = "/account/second-factor/passkeys"
    assert ada.put(put, json={"enabled": True}).status_code == 409
    path = f"/account/passkeys/{_add(ada, phone)['id']}"
    assert at_home.browser().sign_in("ada").status_code == 200  # it is not asked for by itself
    codes = ada.put(put, json={"enabled": True}).json()["recovery_codes"]
    assert len(codes) == 10
    assert ada.put(put, json={"enabled": True}).json() == {"recovery_codes": []}
    state = {"enabled": False, "passkeys": True, "recovery_codes_left": 10}
    assert ada.get("/account/second-factor").json() == state
    assert ada.get("/account").json()["second_factor"] is True

    browser = at_home.browser()
    first = browser.sign_in("ada")
    assert (first.status_code, first.json()["second_factor"], first.json()["code"]) == (401, True, True)
    body = {"name": "ada", "password": PASSWORD}
    credential = phone.answer(first.json()["passkey"], flags=PRESENT)  # the password has been checked
    assert browser.post("/auth/login", json={**body, "passkey": credential}).status_code == 200
    assert browser.post("/auth/login", json={**body, "passkey": credential}).status_code == 401
    wrong = {**body, "password": "not the right one"}
    again = phone.answer(browser.sign_in("ada").json()["passkey"])
    assert browser.post("/auth/login", json={**wrong, "passkey": again}).status_code == 401
    assert at_home.browser().sign_in("ada", code=codes[0]).status_code == 200

    assert ada.delete(path, headers={"content-type": "application/json"}).status_code == 204
    assert at_home.browser().sign_in("ada").status_code == 200
    off = {"enabled": False, "passkeys": False, "recovery_codes_left": 0}
    assert ada.get("/account/second-factor").json() == off


def test_an_app_that_is_being_set_up_is_no_second_factor(at_home: People, phone: Authenticator) -> None:
    """Its secret was shown, and its user never confirmed it: no page and no mail says that it exists."""
    ada = at_home.browser("ada")
    _add(ada, phone)
    ada.put("/account/second-factor/passkeys", json={"enabled": True})
    secret = base64.b32decode(ada.post("/account/second-factor", json={}).json()["secret"])
    code = code_at(secret, at_home.now_ms // 1000 // STEP_S)
    assert at_home.browser().sign_in("ada", code=code).status_code == 401
    assert ada.post("/account/second-factor/confirm", json={"code": code}).status_code == 200
    at_home.now_ms += STEP_S * 1000
    code = code_at(secret, at_home.now_ms // 1000 // STEP_S)
    assert at_home.browser().sign_in("ada", code=code).status_code == 200


def test_without_an_address_by_tls_there_are_no_passkeys(people: People) -> None:
    rita = people.browser("rita")
    for url in ("", "http://runs.lab.example", "https://192.0.2.1"):
        people.set(url=url)
        assert rita.get("/auth/methods").json()["passkey_origin"] is None
        assert rita.post("/account/passkeys/options", json={}).status_code == 409
        assert people.browser().post("/auth/passkey/options", json={}).status_code == 409
        assert people.browser().post("/auth/passkey", json={"passkey": {}}).status_code == 409


def test_the_last_way_to_sign_in_stays(at_home: People, phone: Authenticator) -> None:
    user = at_home.accounts.users.create("grace", CLI, at_home.now_ms)
    life = at_home.served.app.services.access.directory.session_life()
    secret = at_home.accounts.sessions.create(user.id, at_home.now_ms, life, method="lab")
    at_home.rights_changed()
    grace = at_home.browser(cookies={COOKIE: secret})
    path = f"/account/passkeys/{_add(grace, phone)['id']}"
    refused = grace.delete(path, headers={"content-type": "application/json"})
    assert (refused.status_code, "last way" in refused.json()["error"]) == (409, True)


def test_a_deleted_account_leaves_no_passkey(at_home: People, phone: Authenticator) -> None:
    ada = at_home.browser("ada")
    user = at_home.accounts.users.by_name("ada")
    _add(ada, phone)
    assert ada.request("DELETE", "/account", json={"confirm": "ada"}).status_code == 204
    assert at_home.accounts.passkeys.of_user(user.id) == []
    assert at_home.accounts.passkeys.handle(user.id) is None
    assert _sign_in(at_home.browser(), phone).status_code == 401
