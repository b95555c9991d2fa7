"""Signing in by a provider, over HTTP: the server of runvitals, a provider and a browser."""

from __future__ import annotations

import base64
import json
import urllib.parse
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from runvitals.server.accounts.attempt_limits import SIGN_IN_ACCOUNT
from runvitals.server.accounts.totp import STEP_S, code_at
from runvitals.server.audit.storage.audit import CLI, AuditFilter
from runvitals.server.outbound.fetcher import Fetcher
from runvitals.server.outbound.policy import Blocked
from tests.server.accounts.routes.people import (
    COOKIE,
    OTHER_PASSWORD,
    PASSWORD,
    Browser,
    People,
    serving_people,
)
from tests.server.outbound.site import Site
from tests.server.outbound.site import serving as serving_site
from tests.server.sign_on.provider import CLIENT, RSA, SECRET, Idp, sign

LAB: dict[str, Any] = {
    "id": "lab",
    "label": "Lab",
    "kind": "oidc",
    "issuer": "https://idp.example",
    "client_id": CLIENT,
    "client_secret": SECRET,
}


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    with serving_site(tmp_path, "idp.example") as running:
        yield running


@pytest.fixture
def people(tmp_path: Path, site: Site, monkeypatch: pytest.MonkeyPatch) -> Iterator[People]:
    monkeypatch.setenv("RUNVITALS_URL", "https://runs.lab.example")
    with serving_people(tmp_path, fetcher=site.fetcher()) as people:
        yield people


@pytest.fixture
def idp(site: Site, people: People) -> Idp:
    return Idp(
        site,
        "idp.example",
        people.now_ms / 1000,
        {"email": "ada@lab.example", "email_verified": True, "preferred_username": "ada"},
    )


def _configure(people: People, **values: Any) -> None:
    rita = people.browser("rita")
    put = rita.put("/organisation/providers", json={"providers": [LAB | values]})
    assert put.status_code == 200, put.text


def _return(browser: Browser, idp: Idp, url: str) -> httpx.Response:
    """The person agrees at the provider, which sends the browser back."""
    return browser.get("/auth/lab/callback", params=idp.authorize(url))


def _delete(browser: Browser, path: str) -> httpx.Response:
    return browser.delete(path, headers={"content-type": "application/json"})


def test_a_new_user_signs_in(people: People, idp: Idp) -> None:
    _configure(people, auto_create=True)
    browser = people.browser()
    methods = browser.get("/auth/methods").json()
    assert methods["providers"] == [{"id": "lab", "label": "Lab"}]
    begun = browser.get("/auth/lab/start", params={"next": "/ada/digits"})
    assert begun.status_code == 302
    assert "httponly" in begun.headers["set-cookie"].lower()
    assert "samesite=lax" in begun.headers["set-cookie"].lower()
    back = _return(browser, idp, begun.headers["location"])
    assert (back.status_code, back.headers["location"]) == (302, "/ada/digits")
    assert browser.cookies.get("rv-oauth") is None
    account = browser.get("/account").json()
    assert (account["name"], account["password"]) == ("ada", False)
    assert browser.get("/account/logins").json()["logins"][0]["address"] == "ada@lab.example"
    assert "user.login_link" in people.actions()


def test_another_browser_does_not_finish_a_sign_in(people: People, idp: Idp) -> None:
    _configure(people, auto_create=True)
    begun = people.browser().get("/auth/lab/start")
    victim = people.browser()
    back = _return(victim, idp, begun.headers["location"])
    assert back.headers["location"] == "/-/login?next=%2F&error=state"
    assert victim.cookies.get(COOKIE) is None
    assert idp.token_requests == []


def test_next_leads_nowhere_else(people: People, idp: Idp) -> None:
    _configure(people, auto_create=True)
    for target in ("//evil.example", "https://evil.example", "/\\evil.example"):
        browser = people.browser()
        begun = browser.get("/auth/lab/start", params={"next": target})
        assert _return(browser, idp, begun.headers["location"]).headers["location"] == "/"


def test_the_password_confirms_that_an_account_is_the_same(people: People, idp: Idp) -> None:
    ada = people.add("ada")
    _configure(people, auto_create=True)
    browser = people.browser()
    begun = browser.get("/auth/lab/start", params={"next": "/ada"})
    location = urllib.parse.urlsplit(_return(browser, idp, begun.headers["location"]).headers["location"])
    assert (location.path, location.query) == ("/-/login", "next=%2Fada&provider=lab")
    secret = location.fragment.removeprefix("link=")
    assert browser.cookies.get(COOKIE) is None
    wrong = browser.post("/auth/link", json={"secret": secret, "password": "not the right one"})
    assert wrong.status_code == 401
    assert browser.post("/auth/link", json={"secret": "x", "password": PASSWORD}).status_code == 410
    done = browser.post("/auth/link", json={"secret": secret, "password": PASSWORD})
    assert (done.status_code, done.json()["account"]["name"]) == (200, "ada")
    assert browser.post("/auth/link", json={"secret": secret, "password": PASSWORD}).status_code == 410
    assert [login.user_id for login in people.accounts.logins.of_user(ada.id)] == [ada.id]


def test_a_password_that_an_administrator_set_links_nothing(people: People, idp: Idp) -> None:
    ada = people.add("ada")
    _configure(people, auto_create=True)
    hashed = people.passwords.hash(OTHER_PASSWORD)
    people.accounts.credentials.set_password(ada.id, hashed, CLI, people.now_ms, must_change=True)
    browser = people.browser()
    begun = browser.get("/auth/lab/start")
    secret = _return(browser, idp, begun.headers["location"]).headers["location"].partition("link=")[2]
    refused = browser.post("/auth/link", json={"secret": secret, "password": OTHER_PASSWORD})
    assert (refused.status_code, refused.json()["must_change_password"]) == (403, True)
    assert browser.cookies.get(COOKIE) is None
    assert people.accounts.logins.of_user(ada.id) == []
    own = people.browser()
    assert own.sign_in("ada", OTHER_PASSWORD).status_code == 200
    changed = own.put("/account/password", json={"old": OTHER_PASSWORD, "new": PASSWORD})
    assert changed.status_code == 204, changed.text
    assert browser.post("/auth/link", json={"secret": secret, "password": PASSWORD}).status_code == 200


def test_no_login_is_linked_to_a_suspended_user(people: People, idp: Idp) -> None:
    ada = people.add("ada")
    people.accounts.users.update(ada.id, CLI, people.now_ms, state="suspended")
    _configure(people, trust_email=True, auto_create=True)
    browser = people.browser()
    begun = browser.get("/auth/lab/start")
    assert _return(browser, idp, begun.headers["location"]).headers["location"] == (
        "/-/login?next=%2F&error=suspended"
    )
    assert people.accounts.logins.of_user(ada.id) == []
    assert browser.get("/account").status_code == 401


def _with_app(people: People, name: str) -> bytes:
    """Set a second factor up; returns the secret of the app."""
    browser = people.browser(name)
    secret = base64.b32decode(browser.post("/account/second-factor", json={}).json()["secret"])
    code = code_at(secret, people.now_ms // 1000 // STEP_S)
    assert browser.post("/account/second-factor/confirm", json={"code": code}).status_code == 200
    people.pass_s(STEP_S)
    return secret


def _link(people: People, idp: Idp, name: str) -> None:
    browser = people.browser(name)
    begun = browser.post("/account/logins", json={"provider": "lab"})
    _return(browser, idp, begun.json()["url"])


def test_the_second_factor_is_asked_for_after_the_provider(people: People, idp: Idp) -> None:
    people.add("ada")
    _configure(people)
    _link(people, idp, "ada")
    secret = _with_app(people, "ada")
    browser = people.browser()
    begun = browser.get("/auth/lab/start", params={"next": "/ada/digits"})
    back = _return(browser, idp, begun.headers["location"])
    assert back.headers["location"] == "/-/login?next=%2Fada%2Fdigits#second-factor"
    assert browser.cookies.get(COOKIE) is None
    assert browser.get("/auth/session").json()["account"] is None
    assert browser.get("/auth/second-factor").json() == {"code": True, "passkey": None}
    assert people.browser().get("/auth/second-factor").status_code == 410
    wrong = browser.post("/auth/second-factor", json={"code": "000000"})
    assert (wrong.status_code, wrong.json()["second_factor"]) == (401, True)
    code = code_at(secret, people.now_ms // 1000 // STEP_S)
    assert people.browser().post("/auth/second-factor", json={"code": code}).status_code == 410
    done = browser.post("/auth/second-factor", json={"code": code})
    assert (done.status_code, done.json()["next"]) == (200, "/ada/digits")
    assert browser.get("/account").json()["name"] == "ada"
    assert browser.get("/auth/second-factor").status_code == 410
    assert browser.get("/account/sessions").json()["sessions"][0]["method"] == "lab"


def test_codes_after_a_provider_cannot_be_guessed(people: People, idp: Idp) -> None:
    people.add("ada")
    _configure(people)
    _link(people, idp, "ada")
    secret = _with_app(people, "ada")
    browser = people.browser()
    _return(browser, idp, browser.get("/auth/lab/start").headers["location"])
    wrong = "000000" if code_at(secret, people.now_ms // 1000 // STEP_S) != "000000" else "111111"
    statuses = [browser.post("/auth/second-factor", json={"code": wrong}).status_code for _ in range(30)]
    assert statuses.count(401) <= SIGN_IN_ACCOUNT.free + 1
    assert statuses[-1] == 429


def test_a_sign_in_that_waits_for_the_second_factor_expires(people: People, idp: Idp) -> None:
    people.add("ada")
    _configure(people)
    _link(people, idp, "ada")
    secret = _with_app(people, "ada")
    browser = people.browser()
    _return(browser, idp, browser.get("/auth/lab/start").headers["location"])
    people.pass_s(10 * 60)
    code = code_at(secret, people.now_ms // 1000 // STEP_S)
    assert browser.post("/auth/second-factor", json={"code": code}).status_code == 410


def test_a_user_without_password_confirms_by_the_provider(people: People, idp: Idp) -> None:
    _configure(people, auto_create=True)
    browser = people.browser()
    _return(browser, idp, browser.get("/auth/lab/start").headers["location"])
    ways = browser.get("/auth/sudo").json()
    assert ways == {"password": False, "passkey": None, "providers": [{"id": "lab", "label": "Lab"}]}
    people.pass_s(16 * 60)
    assert browser.post("/account/api-keys", json={"name": "laptop"}).status_code == 428
    idp.now_s = people.now_ms / 1000
    for auth_time, error in ((people.now_ms / 1000 - 1000, "earlier"), (people.now_ms / 1000, None)):
        idp.changes = {"auth_time": auth_time}
        begun = browser.post("/auth/sudo/provider", json={"provider": "lab", "next": "/-/settings/keys"})
        assert begun.status_code == 200, begun.text
        back = _return(browser, idp, begun.json()["url"])
        if error is not None:
            assert back.headers["location"].endswith(f"error={error}")
            assert browser.post("/account/api-keys", json={"name": "laptop"}).status_code == 428
    assert back.headers["location"] == "/-/settings/keys"
    assert browser.post("/account/api-keys", json={"name": "laptop"}).status_code == 201
    assert people.actions()[-2:] == ["user.sudo", "key.create"]


def test_another_session_is_not_confirmed(people: People, idp: Idp) -> None:
    people.add("ada")
    _configure(people)
    _link(people, idp, "ada")
    browser = people.browser("ada")
    begun = browser.post("/auth/sudo/provider", json={"provider": "lab"}).json()["url"]
    browser.sign_in("ada")  # a new session in the same browser
    people.pass_s(16 * 60)
    idp.now_s = people.now_ms / 1000
    idp.changes = {"auth_time": idp.now_s}
    assert "error=" in _return(browser, idp, begun).headers["location"]
    assert browser.post("/account/api-keys", json={"name": "laptop"}).status_code == 428


def test_logins_are_linked_and_unlinked(people: People, idp: Idp) -> None:
    people.add("grace")
    _configure(people)
    grace = people.browser("grace")
    assert grace.post("/account/logins", json={"provider": "nonsense"}).status_code == 404
    begun = grace.post("/account/logins", json={"provider": "lab"})
    back = _return(grace, idp, begun.json()["url"])
    assert back.headers["location"] == "/-/settings/emails"
    (login,) = grace.get("/account/logins").json()["logins"]
    assert {email["address"] for email in grace.get("/account/emails").json()["emails"]} == {
        "grace@lab.example",
        "ada@lab.example",
    }
    assert _delete(grace, "/account/logins/999").status_code == 404
    assert _delete(grace, f"/account/logins/{login['id']}").status_code == 204
    assert grace.get("/account/logins").json()["logins"] == []


def test_an_invitation_is_in_the_body_not_in_the_address(people: People, idp: Idp) -> None:
    _configure(people)
    people.accounts.teams.create("vision", CLI, people.now_ms)
    secret, _ = people.accounts.invitations.create("vision", "ada@lab.example", "member", CLI, people.now_ms)
    browser = people.browser()
    begun = browser.post("/auth/lab/start", json={"invitation": secret, "next": "/vision"})
    assert secret not in begun.json()["url"]
    assert _return(browser, idp, begun.json()["url"]).headers["location"] == "/vision"
    assert [team["name"] for team in browser.get("/account").json()["teams"]] == ["vision"]


def test_a_provider_that_cannot_be_reached(people: People, idp: Idp, site: Site) -> None:
    _configure(people)
    site.answers.clear()
    browser = people.browser()
    assert browser.get("/auth/lab/start").headers["location"] == "/-/login?next=%2F&error=provider"
    assert browser.post("/auth/lab/start", json={}).status_code == 502
    for path in ("/auth/nonsense/start", "/auth/nonsense/callback"):
        assert browser.get(path).status_code == 404


def test_providers_are_set_by_administrators_and_secrets_never_shown(people: People) -> None:
    people.add("ada")
    _configure(people)
    ada, rita = people.browser("ada"), people.browser("rita")
    assert ada.get("/organisation/providers").status_code in (403, 404)
    assert ada.put("/organisation/providers", json={"providers": []}).status_code in (403, 404)
    shown = rita.get("/organisation/providers")
    assert SECRET not in shown.text
    (row,) = shown.json()["providers"]
    assert row["has_secret"] is True
    kept = rita.put("/organisation/providers", json={"providers": [row | {"label": "New"}]})
    assert kept.json()["providers"] == [row | {"label": "New"}]
    for wrong in (
        {"issuer": "https://idp.example:22"},
        {"issuer": "http://idp.example"},
        {"id": "A"},
        {"x": 1},
    ):
        refused = rita.put("/organisation/providers", json={"providers": [LAB | wrong]})
        assert refused.status_code == 422, wrong
        assert "providers" in refused.json()["fields"]
        assert SECRET not in refused.text
    assert SECRET not in repr(people.accounts.audit.page(AuditFilter(action="org.settings")))


def test_issuers_are_set_by_administrators(people: People, idp: Idp) -> None:
    people.add("ada")
    ada, rita = people.browser("ada"), people.browser("rita")
    issuer = {"name": "CI", "url": "https://idp.example", "audience": "runs"}
    assert ada.post("/organisation/issuers", json=issuer).status_code in (403, 404)
    created = rita.post("/organisation/issuers", json=issuer)
    assert created.status_code == 201, created.text
    assert rita.post("/organisation/issuers", json=issuer).status_code == 409
    for url in ("https://127.0.0.1", "https://idp.example/other", "nonsense"):
        assert rita.post("/organisation/issuers", json=issuer | {"url": url}).status_code == 422
    path = f"/organisation/issuers/{created.json()['id']}"
    assert rita.patch(path, json={"enabled": False}).json()["enabled"] is False
    assert [row["enabled"] for row in rita.get("/organisation/issuers").json()["issuers"]] == [False]
    renamed = rita.patch(path, json={"name": " Builds ", "audience": "new"}).json()
    assert (renamed["name"], renamed["audience"], renamed["enabled"]) == ("Builds", "new", False)
    assert rita.get("/organisation/issuers").json()["issuers"] == [renamed]
    (changed,) = people.accounts.audit.page(AuditFilter(action="issuer.update"))[:1]
    assert (changed.before, changed.after) == (
        {"name": "CI", "audience": "runs"},
        {"name": "Builds", "audience": "new"},
    )
    assert list(rita.patch(path, json={"audience": "  "}).json()["fields"]) == ["audience"]
    assert rita.patch(path, json={"url": "https://other.example"}).status_code == 422
    assert ada.patch(path, json={"name": "Mine"}).status_code in (403, 404)
    team = people.accounts.teams.create("vision", CLI, people.now_ms)
    people.accounts.service_accounts.create("ci", team.id, CLI, people.now_ms)
    subject = {"subject": "repo:lab/*", "service_account": "ci", "team": "vision"}
    assert rita.put(f"{path}/subjects", json=subject).json() == subject
    assert rita.get(f"{path}/subjects").json()["subjects"] == [subject]
    wrong = rita.put(f"{path}/subjects", json=subject | {"subject": "*"})
    assert "begins with *" in wrong.json()["fields"]["subject"]
    assert _delete(rita, path).status_code == 409
    assert _delete(ada, f"{path}/subjects?subject=repo:lab/*").status_code in (403, 404)
    assert _delete(rita, f"{path}/subjects?subject=repo:lab/*").status_code == 204
    assert _delete(rita, f"{path}/subjects?subject=repo:lab/*").status_code == 404
    assert _delete(rita, path).status_code == 204
    assert _delete(rita, path).status_code == 404
    assert rita.patch(path, json={"enabled": True}).status_code == 404


def test_what_changes_how_one_signs_in_needs_the_password(people: People) -> None:
    rita = people.browser("rita")
    people.pass_s(16 * 60)
    issuer = {"name": "CI", "url": "https://idp.example", "audience": "runs"}
    for response in (
        rita.put("/organisation/providers", json={"providers": []}),
        rita.post("/organisation/issuers", json=issuer),
        rita.post("/account/logins", json={"provider": "lab"}),
        _delete(rita, "/account/logins/1"),
    ):
        assert response.status_code == 428


def test_a_program_shows_the_token_of_another_service_instead_of_a_key(people: People, idp: Idp) -> None:
    accounts = people.accounts
    team = accounts.teams.create("vision", CLI, people.now_ms)
    accounts.service_accounts.create("ci", team.id, CLI, people.now_ms)
    issuer = accounts.jwt_issuers.create("CI", idp.issuer, "runs", CLI, people.now_ms)
    rita, path = people.browser("rita"), f"/organisation/issuers/{issuer.id}/subjects"
    subject = {"subject": "repo:lab/vision", "service_account": "ci", "team": "vision"}
    assert rita.put(path, json=subject | {"team": None}).status_code == 404
    assert rita.put(path, json=subject).status_code == 200
    assert rita.get(path).json()["subjects"] == [subject]
    now_s = people.now_ms / 1000
    claims = {"iss": idp.issuer, "aud": "runs", "sub": "repo:lab/vision", "iat": now_s, "exp": now_s + 600}
    program = people.program(sign(claims | {"padding": "x" * 2000}, idp.header))
    assert program.get("/teams/vision").json()["name"] == "vision"
    assert program.patch("/teams/vision", json={"description": "x"}).status_code == 403
    for wrong in ({"aud": "others"}, {"sub": "repo:lab/speech"}, {"exp": now_s - 100}):
        stranger = people.program(sign(claims | wrong, idp.header))
        assert stranger.get("/teams/vision").status_code == 401
    assert people.program(sign(claims, {"alg": "none"})).get("/teams/vision").status_code == 401


def test_a_provider_in_a_private_network_must_be_allowed(people: People) -> None:
    services = people.served.app.services.outside_services
    fetcher = Fetcher(services.policy)
    with pytest.raises(Blocked):
        fetcher.check("https://idp.example:8081")
    people.set(outbound_allow=["10.1.2.3:8081"])
    fetcher.check("https://idp.example:8081")


def test_who_links_a_login_gets_a_mail(people: People, idp: Idp, monkeypatch: pytest.MonkeyPatch) -> None:
    people.add("grace")
    with people.mail:
        monkeypatch.setenv("RUNVITALS_SMTP_URL", people.mail.url)
        monkeypatch.setenv("RUNVITALS_MAIL_FROM", "runs@lab.example")
        _configure(people)
        assert people.mail_to("rita@lab.example", 1)["subject"] == "Settings of the organisation were changed"
        rita, grace = people.browser("rita"), people.browser("grace")
        begun = grace.post("/account/logins", json={"provider": "lab"})
        _return(grace, idp, begun.json()["url"])
        fresh = people.browser()
        _return(fresh, idp, fresh.get("/auth/lab/start").headers["location"])
        people.mail.wait_for(4)  # and one to rita, about her second browser
        subjects = {mail["subject"] for mail in people.mail.received if mail["to"] == "grace@lab.example"}
        assert {"You can now sign in with lab", "New sign-in to your account"} <= subjects
        already = len(people.mail.received)
        assert rita.post("/organisation/mail/test", json={"address": "x@lab.example"}).status_code == 200
        people.mail_to("x@lab.example", already + 1)
        assert rita.post("/organisation/mail/test", json={"address": "x"}).status_code == 422
    failed = rita.post("/organisation/mail/test", json={"address": "x@lab.example"})
    assert (failed.status_code, "cannot be used" in failed.json()["error"]) == (502, True)


def test_an_issuer_with_pasted_keys_is_not_asked(people: People, idp: Idp, site: Site) -> None:
    rita, path = people.browser("rita"), "/organisation/issuers"
    body = {"name": "Cluster", "url": "https://kubernetes.default.svc", "audience": "runs"}
    refused = rita.post(path, json={**body, "keys": '{"keys": []}'})
    assert (refused.status_code, list(refused.json()["fields"])) == (422, ["keys"])
    site.requests.clear()
    keys = json.dumps({"keys": [RSA.as_dict(private=False)]})
    created = rita.post(path, json={**body, "keys": keys})
    assert (created.status_code, created.json()["pasted_keys"]) == (201, True)
    address = f"{path}/{created.json()['id']}"
    assert rita.patch(address, json={"name": "The cluster"}).json()["pasted_keys"] is True
    assert rita.patch(address, json={"keys": ""}).json()["pasted_keys"] is False
    assert site.requests == []
