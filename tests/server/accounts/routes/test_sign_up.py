"""Signing up, confirming addresses, resetting passwords, and the first administrator."""

from __future__ import annotations

from pathlib import Path

import httpx

from runvitals.server.access.enforcement.rate_limits import NAME_CHECKS, RESETS_OF_ADDRESS
from runvitals.server.accounts.attempt_limits import ONE_TIME_LINKS
from runvitals.server.accounts.passwords import Passwords
from runvitals.server.accounts.storage.one_time_tokens import LIFE_MS
from runvitals.server.audit.storage.audit import CLI, Actor
from tests.patience import PATIENCE_S
from tests.server.accounts.routes.people import (
    COOKIE,
    OTHER_PASSWORD,
    PASSWORD,
    SAME_ORIGIN,
    CountingHasher,
    People,
    serving_people,
    token_in,
)
from tests.server.serving import serving


def sign_up(people: People, name: str, email: str, **more: str) -> httpx.Response:
    body = {"name": name, "email": email, "password": PASSWORD, **more}
    return people.browser().post("/auth/signup", json=body)


def test_whoever_signs_up_confirms_the_address_and_is_a_user(mailing: People) -> None:
    mailing.set(signup="open", default_access="viewer")
    assert sign_up(mailing, "ada", "ada@home.example", display_name="Ada").json() == {"done": "signup"}
    token = token_in(mailing.mail_to("ada@home.example", 1))
    browser = mailing.browser("ada")
    account = browser.get("/account").json()
    assert (account["state"], account["access"], account["may"]) == ("unverified", "viewer", [])
    for method, path, body in (
        ("GET", "/users?query=ri", None),
        ("PATCH", "/account/profile", {"bio": "x"}),
        ("POST", "/account/api-keys", {"name": "k"}),
        ("PUT", "/account/beta/x", {"on": True}),
    ):
        assert browser.request(method, path, json=body).status_code == 403, path

    verified = mailing.browser().post("/auth/verify", json={"token": token})
    assert (verified.status_code, "sign in as ada" in verified.text) == (401, True)
    other = mailing.browser("rita").post("/auth/verify", json={"token": token})
    assert other.status_code == 403
    before = browser.secret
    assert browser.post("/auth/verify", json={"token": token}).json() == {"email": "ada@home.example"}
    assert browser.secret != before
    assert browser.get("/account").json()["state"] == "active"
    assert browser.post("/auth/verify", json={"token": token}).status_code == 410


def test_an_unconfirmed_user_gets_another_mail_at_each_sign_in_within_limits(mailing: People) -> None:
    mailing.set(signup="open")
    sign_up(mailing, "ada", "ada@home.example")
    first = token_in(mailing.mail_to("ada@home.example", 1))
    mailing.browser("ada")  # too early for another mail
    mailing.pass_s(61)
    browser = mailing.browser("ada@home.example")
    second = token_in(mailing.mail_to("ada@home.example", 2))
    assert browser.post("/auth/verify", json={"token": first}).status_code == 410
    assert browser.post("/auth/verify", json={"token": second}).status_code == 200


def test_an_address_in_use_is_not_told(mailing: People) -> None:
    mailing.set(signup="open")
    mailing.add("ada")
    hashes = mailing.hasher.hashed
    responses = {
        sign_up(mailing, f"new-{n}", address).text
        for n, address in enumerate(("ada@lab.example", "free@lab.example"))
    }
    assert responses == {'{"done":"signup"}'}
    assert mailing.hasher.hashed - hashes == 2
    mailing.mail.wait_for(2)
    subjects = {mail["to"]: mail["subject"] for mail in mailing.mail.received}
    assert subjects == {
        "ada@lab.example": "You already have an account",
        "free@lab.example": "Confirm your e-mail address",
    }
    # The name is taken in both cases, and the owner still signs in with the address.
    assert sign_up(mailing, "new-0", "x@lab.example").status_code == 409
    assert mailing.browser("ada@lab.example").get("/account").json()["name"] == "ada"


def test_sign_ups_never_confirmed_go_with_their_names(mailing: People) -> None:
    mailing.set(signup="open")
    sign_up(mailing, "ada", "ada@home.example")
    mailing.mail.wait_for(1)
    users = mailing.accounts.users
    assert users.purge_unverified(mailing.now_ms - 1, CLI, mailing.now_ms) == 0
    mailing.pass_s(48 * 3600)
    assert users.purge_unverified(mailing.now_ms, CLI, mailing.now_ms) == 1
    assert mailing.browser().sign_in("ada").status_code == 401
    assert sign_up(mailing, "ada", "ada@home.example").status_code == 202


def test_who_may_sign_up_is_the_organisations_choice(mailing: People) -> None:
    assert sign_up(mailing, "one", "one@lab.example").status_code == 403  # invite
    mailing.set(signup="domain", signup_domains=["lab.example"])
    assert sign_up(mailing, "two", "two@LAB.example").status_code == 202
    assert sign_up(mailing, "three", "three@sub.lab.example").status_code == 403
    mailing.set(signup="closed")
    assert sign_up(mailing, "four", "four@lab.example").status_code == 403


def test_an_invitation_that_came_by_mail_confirms_its_address(people: People) -> None:
    people.add("alice")
    people.accounts.teams.create(
        "vision", CLI, people.now_ms, administrator=people.accounts.users.by_name("alice").id
    )
    secret, _ = people.accounts.invitations.create("vision", "bob@else.example", "member", CLI, people.now_ms)
    assert sign_up(people, "eve", "eve@else.example", invitation=secret).status_code == 403
    assert sign_up(people, "bob", "bob@else.example", invitation=secret).status_code == 202
    account = people.browser("bob").get("/account").json()
    assert (account["state"], [team["name"] for team in account["teams"]]) == ("active", ["vision"])
    assert sign_up(people, "bob2", "bob@else.example", invitation=secret).status_code == 410


def test_without_mail_a_link_is_enough(people: People) -> None:
    people.set(signup="open")
    assert sign_up(people, "ada", "ada@home.example").status_code == 403
    secret, _ = people.accounts.invitations.create(None, None, "member", CLI, people.now_ms)
    assert sign_up(people, "ada", "ada@home.example", invitation=secret).status_code == 202
    assert people.browser("ada").get("/account").json()["state"] == "active"


def test_every_field_says_what_is_wrong(mailing: People) -> None:
    mailing.set(signup="open")
    body = {"name": "-x", "email": "nowhere", "password": "short", "display_name": "\u202ex"}
    response = mailing.browser().post("/auth/signup", json=body)
    assert response.status_code == 422
    assert set(response.json()["fields"]) == {"name", "email", "password", "display_name"}
    refused = sign_up(mailing, "rita", "other@lab.example")
    assert (refused.status_code, "taken" in refused.text) == (409, True)
    reserved = sign_up(mailing, "settings", "other@lab.example").json()["fields"]
    assert reserved == {"name": "the name 'settings' is reserved"}


def test_names_can_be_tried_only_so_often(mailing: People) -> None:
    mailing.set(signup="open")
    statuses = [sign_up(mailing, "rita", "x@lab.example").status_code for _ in range(NAME_CHECKS.count + 1)]
    assert statuses == [409] * NAME_CHECKS.count + [429]


def test_a_forgotten_password_is_reset_by_mail(mailing: People) -> None:
    user = mailing.add("ada")
    signed_in = mailing.browser("ada")
    key = mailing.accounts.keys.create("laptop", CLI, mailing.now_ms, user_id=user.id)[0]
    browser = mailing.browser()
    assert browser.post("/auth/reset", json={"email": "ADA@lab.example"}).status_code == 202
    token = token_in(mailing.mail_to("ada@lab.example", 1))
    weak = browser.post("/auth/reset/confirm", json={"token": token, "password": "short"})
    assert (weak.status_code, "password" in weak.json()["fields"]) == (422, True)
    with_name = browser.post("/auth/reset/confirm", json={"token": token, "password": "ada@lab.example 2027"})
    assert with_name.status_code == 422
    assert browser.get("/account").status_code == 401  # looking at the link consumes nothing
    done = browser.post("/auth/reset/confirm", json={"token": token, "password": OTHER_PASSWORD})
    assert (done.status_code, done.json(), browser.secret) == (200, {"name": "ada"}, "")
    assert mailing.mail_to("ada@lab.example", 2)["subject"] == "Your password was changed"
    assert signed_in.get("/account").status_code == 401
    assert mailing.program(key).get("/account").status_code == 200
    assert mailing.browser().sign_in("ada").status_code == 401
    assert mailing.browser().sign_in("ada", OTHER_PASSWORD).status_code == 200
    assert browser.post("/auth/reset/confirm", json={"token": token, "password": PASSWORD}).status_code == 410


def test_links_to_reset_a_password_end(mailing: People) -> None:
    mailing.add("ada")
    browser = mailing.browser()
    browser.post("/auth/reset", json={"email": "ada@lab.example"})
    first = token_in(mailing.mail_to("ada@lab.example", 1))
    browser.post("/auth/reset", json={"email": "ada@lab.example"})
    second = token_in(mailing.mail_to("ada@lab.example", 2))
    body = {"token": first, "password": OTHER_PASSWORD}
    assert browser.post("/auth/reset/confirm", json=body).status_code == 410
    mailing.pass_s(LIFE_MS["reset_password"] / 1000)
    body = {"token": second, "password": OTHER_PASSWORD}
    assert browser.post("/auth/reset/confirm", json=body).status_code == 410


def test_a_reset_says_nothing_of_accounts(mailing: People) -> None:
    mailing.add("ada")
    mailing.accounts.users.create("newbie", CLI, mailing.now_ms, address="new@lab.example")
    browser = mailing.browser()
    responses = set()
    for address in ("ada@lab.example", "new@lab.example", "nobody@lab.example"):
        response = browser.post("/auth/reset", json={"email": address})
        responses.add((response.status_code, response.text))
    assert responses == {(202, '{"done":"reset"}')}
    for _ in range(RESETS_OF_ADDRESS.count):
        assert browser.post("/auth/reset", json={"email": "ada@lab.example"}).status_code == 202
    mailing.mail.wait_for(RESETS_OF_ADDRESS.count)
    mailing.pass_s(3600)
    browser.post("/auth/reset", json={"email": "rita@lab.example"})
    mailing.mail.wait_for(RESETS_OF_ADDRESS.count + 1)
    to = [mail["to"] for mail in mailing.mail.received]
    assert to == ["ada@lab.example"] * RESETS_OF_ADDRESS.count + ["rita@lab.example"]


def test_links_cannot_be_guessed_forever(people: People) -> None:
    browser = people.browser()
    statuses = []
    for number in range(ONE_TIME_LINKS.free + 2):
        body = {"token": f"guess-{number}", "password": OTHER_PASSWORD}
        statuses.append(browser.post("/auth/reset/confirm", json=body).status_code)
    assert statuses == [410] * (ONE_TIME_LINKS.free + 1) + [429]
    # Who guesses does not lock out others in the same network.
    rita = people.accounts.users.by_name("rita")
    token = people.accounts.one_time_tokens.create("reset_password", people.now_ms, user_id=rita.id)
    reset = people.browser().post("/auth/reset/confirm", json={"token": token, "password": OTHER_PASSWORD})
    assert reset.status_code == 200


def test_what_was_planted_before_the_set_up_is_removed_and_listed(tmp_path: Path) -> None:
    with serving(tmp_path, passwords=Passwords(CountingHasher())) as served:
        accounts, now_ms = served.metadata_store.accounts, served.app.services.access.clock()
        stranger = Actor("system", "system", ip="127.0.0.1")  # as earlier versions recorded it
        secret = accounts.scim.new_secret(stranger, now_ms)
        accounts.settings.put({"signup": "open"}, stranger, now_ms)
        accounts.users.create("rita", stranger, now_ms)
        accounts.teams.create("vision", stranger, now_ms)
        token = accounts.one_time_tokens.create("setup", now_ms)
        body = {"token": token, "name": "rita", "email": "rita@lab.example", "password": PASSWORD}
        created = httpx.post(
            f"{served.url}/api/v1/auth/setup",
            json={**body, "team": "vision"},
            headers=SAME_ORIGIN,
            timeout=PATIENCE_S,
        )
        assert created.json()["removed"] == {
            "settings": ["scim_secret_digest", "signup"],
            "users": ["rita"],
            "teams": ["vision"],
        }
        assert created.json()["account"]["name"] == "rita"
        planted = {"authorization": f"Bearer {secret}"}
        users = httpx.get(f"{served.url}/scim/v2/Users", headers=planted, timeout=PATIENCE_S)
        assert users.status_code == 401
        assert [row.user.name for row in accounts.users.listed()] == ["rita"]


def test_the_first_administrator_comes_by_a_link(tmp_path: Path) -> None:
    with serving(tmp_path, passwords=Passwords(CountingHasher())) as served:
        accounts = served.metadata_store.accounts
        token = accounts.one_time_tokens.create("setup", served.app.services.access.clock())
        setup = f"{served.url}/api/v1/auth/setup"
        body = {
            "token": token,
            "name": "rita",
            "email": "rita@lab.example",
            "password": PASSWORD,
            "organisation": "The Lab",
            "team": "vision",
        }
        for wrong, status in (
            ({"token": "guess"}, 410),
            ({"team": "rita"}, 422),
            ({"team": "-"}, 422),
            ({"password": "short"}, 422),
        ):
            assert (
                httpx.post(setup, json={**body, **wrong}, headers=SAME_ORIGIN, timeout=PATIENCE_S).status_code
                == status
            )
        created = httpx.post(setup, json=body, headers=SAME_ORIGIN, timeout=PATIENCE_S)
        assert created.status_code == 201, created.text
        cookies = {COOKIE: created.cookies[COOKIE]}
        account = httpx.get(f"{served.url}/api/v1/account", cookies=cookies, timeout=PATIENCE_S).json()
        assert (account["org_role"], account["billing_role"], account["state"]) == (
            "admin",
            "admin",
            "active",
        )
        assert [(team["name"], team["role"]) for team in account["teams"]] == [("vision", "admin")]
        assert accounts.settings.all()["name"] == "The Lab"
        assert httpx.get(f"{served.url}/api/v1/account", timeout=PATIENCE_S).status_code == 401
        assert httpx.post(setup, json=body, headers=SAME_ORIGIN, timeout=PATIENCE_S).status_code == 409


def test_stolen_passwords_are_not_accepted(tmp_path: Path) -> None:
    with serving_people(tmp_path, is_breached=lambda password: password == OTHER_PASSWORD) as people:
        change = people.browser("rita").put(
            "/account/password", json={"old": PASSWORD, "new": OTHER_PASSWORD}
        )
        assert (change.status_code, "stolen" in change.json()["fields"]["new"]) == (422, True)
