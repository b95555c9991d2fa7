"""Signing in and out, the cookies, limits on guessing, and confirming the password."""

from __future__ import annotations

import base64
from pathlib import Path

import httpx
import pytest

from runvitals.server.accounts.attempt_limits import SIGN_IN_ACCOUNT, SUDO
from runvitals.server.accounts.totp import STEP_S, code_at, matching_step
from runvitals.server.audit.storage.audit import CLI
from tests.patience import PATIENCE_S
from tests.server.accounts.routes.people import COOKIE, PASSWORD, SAME_ORIGIN, Browser, CountingHasher, People
from tests.server.serving import serving


def test_a_user_signs_in_by_name_or_address_and_out(people: People) -> None:
    people.add("ada", display_name="Ada L.")
    for typed in ("ada", "Ada", "ada@lab.example", " ADA@lab.example "):
        browser = people.browser()
        response = browser.sign_in(typed)
        assert response.status_code == 200, response.text
        account = response.json()["account"]
        assert (account["name"], account["display_name"], account["org_role"]) == ("ada", "Ada L.", "member")
        assert browser.get("/account").json()["email"] == "ada@lab.example"
    assert browser.post("/auth/logout", json={}).status_code == 204
    assert browser.secret == ""
    assert browser.get("/account").status_code == 401
    assert "user.login" in people.actions()


def test_a_page_asks_who_is_signed_in_without_an_error(people: People) -> None:
    people.add("ada")
    visitor = people.browser().get("/auth/session")
    assert (visitor.status_code, visitor.json()) == (200, {"account": None, "visitors_read": False})
    account = people.browser("ada").get("/auth/session").json()["account"]
    assert (account["name"], "sudo_until_ms" in account) == ("ada", True)


def test_signing_out_ends_the_session_itself(people: People) -> None:
    browser = people.browser("rita")
    secret = browser.secret
    assert browser.post("/auth/logout", json={}).status_code == 204
    again = people.browser(cookies={COOKIE: secret})
    assert again.get("/account").status_code == 401


def test_every_failure_is_the_same_answer_for_the_same_work(people: People) -> None:
    people.add("ada")
    people.add("eve")
    people.accounts.users.update(people.accounts.users.by_name("eve").id, CLI, 1, state="suspended")
    people.accounts.users.create("keyonly", CLI, 1)  # without a password
    people.accounts.users.create("newbie", CLI, 1, address="new@lab.example")
    responses = set()
    for typed in (
        "ada",
        "ada@lab.example",
        "eve",
        "keyonly",
        "new@lab.example",
        "nobody",
        "no@where.example",
    ):
        before = people.hasher.verified
        events = len(people.actions())
        response = people.browser().sign_in(typed, "not the right password")
        assert people.hasher.verified - before == 1, typed
        assert len(people.actions()) - events == 1, typed
        responses.add((response.status_code, response.text, response.headers.get("set-cookie")))
    assert responses == {(401, '{"error":"the name or address, or the password, is wrong"}', None)}


def test_a_suspended_user_is_told_after_the_right_password_only(people: People) -> None:
    user = people.add("eve")
    people.accounts.users.update(user.id, CLI, people.now_ms, state="suspended")
    response = people.browser().sign_in("eve")
    assert (response.status_code, "suspended" in response.text) == (403, True)
    assert "set-cookie" not in response.headers


def test_cookies_are_bound_to_the_host_by_tls_and_hidden_from_scripts(people: People) -> None:
    plain = people.browser().sign_in("rita").headers.get_list("set-cookie")
    assert sorted(cookie.partition("=")[0] for cookie in plain) == ["runvitals_session", "rv-known"]
    response = people.browser().post(
        "/auth/login",
        json={"name": "rita", "password": PASSWORD},
        headers={"x-forwarded-proto": "https", "x-forwarded-for": "192.0.2.1"},
    )
    cookies = response.headers.get_list("set-cookie")
    assert sorted(cookie.partition("=")[0] for cookie in cookies) == ["__Host-runvitals", "__Host-rv-known"]
    for cookie in cookies:
        attributes = {part.strip().lower() for part in cookie.split(";")[1:]}
        assert {"httponly", "secure", "samesite=lax", "path=/"} <= attributes
        assert not any(attribute.startswith("domain") for attribute in attributes)


def test_a_session_is_never_one_that_the_browser_brought(people: People) -> None:
    """Session fixation: somebody planted their own session, or any text, in the browser."""
    people.add("ada")
    planted = people.browser("ada").secret
    for cookie in (planted, "x" * 43):
        browser = people.browser(cookies={COOKIE: cookie})
        response = browser.sign_in("rita")
        assert response.status_code == 200
        new = response.headers["set-cookie"].partition("=")[2].partition(";")[0]
        assert new != cookie
        assert people.browser(cookies={COOKIE: new}).get("/account").json()["name"] == "rita"
    # The session that signed in again is over.
    assert people.browser(cookies={COOKIE: planted}).get("/account").status_code == 401


@pytest.mark.parametrize(
    ("expected", "target"),
    [
        ("/vision/digits?tab=charts", "/vision/digits?tab=charts"),
        ("//evil.example/", "/"),
        ("/\\evil.example", "/"),
        ("https://evil.example/", "/"),
        ("/\t/evil.example", "/"),
        ("javascript:alert(1)", "/"),
        ("", "/"),
    ],
)
def test_the_page_goes_on_to_paths_of_this_server_only(people: People, expected: str, target: str) -> None:
    response = people.browser().sign_in("rita", next=expected)
    assert response.json()["next"] == target


def test_ten_thousand_guesses_get_few_attempts(people: People) -> None:
    browser = people.browser()
    before = people.hasher.verified
    statuses = [browser.sign_in("rita", f"guess {number}").status_code for number in range(200)]
    for number in range(9_800):
        people.now_s += 0.01
        if number % 100 == 0:
            statuses.append(browser.sign_in("rita", f"guess {number}").status_code)
    assert set(statuses) == {401, 429}
    assert people.hasher.verified - before <= SIGN_IN_ACCOUNT.free + 3
    refused = browser.sign_in("rita")
    assert refused.status_code == 429
    assert int(refused.headers["retry-after"]) >= 1


def test_a_stranger_cannot_lock_a_user_out(people: People) -> None:
    own = people.browser("rita")
    stranger = people.browser()
    while stranger.sign_in("rita", "a guess of a stranger").status_code != 429:
        pass
    assert people.browser().sign_in("rita").status_code == 429
    own.post("/auth/logout", json={})
    assert own.sign_in("rita").status_code == 200
    # That browser may not guess without limit either, and is no way to another account.
    people.add("ada")
    while own.sign_in("rita", "a guess in a known browser").status_code != 429:
        pass
    for _ in range(SIGN_IN_ACCOUNT.free + 1):
        own.sign_in("ada", "a guess at another account")
    assert own.sign_in("ada").status_code == 429


def test_the_mark_of_a_known_browser_cannot_be_made_up(people: People) -> None:
    forged = people.browser(cookies={"rv-known": "MTox"})
    while forged.sign_in("rita", "a guess with a made-up mark").status_code != 429:
        pass
    assert people.browser().sign_in("rita").status_code == 429


def test_too_many_sign_ins_at_once_are_refused(people: People) -> None:
    for _ in range(22):
        assert people.passwords._slots.acquire(blocking=False)
    response = people.browser().sign_in("rita")
    assert (response.status_code, "retry-after" in response.headers) == (429, True)
    for _ in range(22):
        people.passwords._slots.release()
    assert people.browser().sign_in("rita").status_code == 200


def test_passwords_can_be_switched_off_for_all_but_administrators(people: People) -> None:
    people.add("ada")
    people.set(password_login=False)
    assert people.browser().get("/auth/methods").json()["password"] is False
    response = people.browser().sign_in("ada")
    assert (response.status_code, "switched off" in response.text) == (403, True)
    assert people.browser().sign_in("ada", "not the right password").status_code == 401
    assert people.browser().sign_in("rita").status_code == 200


def test_a_change_needs_a_confirmed_password(people: People) -> None:
    browser = people.browser("rita")
    people.pass_s(16 * 60)
    refused = browser.post("/account/api-keys", json={"name": "laptop"})
    assert (refused.status_code, refused.json()["sudo"]) == (428, True)
    old = browser.secret
    wrong = browser.post("/auth/sudo", json={"password": "not the right password"})
    assert wrong.status_code == 401
    confirmed = browser.post("/auth/sudo", json={"password": PASSWORD})
    assert confirmed.json() == {"until_ms": people.now_ms + 15 * 60_000}
    assert browser.secret != old
    assert people.browser(cookies={COOKIE: old}).get("/account").status_code == 401
    assert browser.post("/account/api-keys", json={"name": "laptop"}).status_code == 201
    people.pass_s(15 * 60)
    assert browser.post("/account/api-keys", json={"name": "desktop"}).status_code == 428
    assert people.actions().count("user.sudo") == 2


def test_too_many_wrong_confirmations_end_the_session(people: People) -> None:
    browser, other = people.browser("rita"), people.browser("rita")
    for _ in range(SUDO.free):
        assert browser.post("/auth/sudo", json={"password": "wrong again"}).status_code == 401
    assert browser.post("/auth/sudo", json={"password": "wrong again"}).status_code == 429
    assert browser.get("/account").status_code == 401
    assert other.get("/account").status_code == 200


def test_other_sites_cannot_sign_a_user_in_or_out(people: People) -> None:
    body = {"name": "rita", "password": PASSWORD}
    cross_site = {"sec-fetch-site": "cross-site"}
    assert (
        httpx.post(
            f"{people.url}/api/v1/auth/login", json=body, headers=cross_site, timeout=PATIENCE_S
        ).status_code
        == 403
    )
    browser = people.browser("rita")
    for how in (
        {"headers": cross_site, "json": {}},
        {"content": "", "headers": {"content-type": "text/plain"}},
        {"data": {"a": "1"}},
    ):
        assert browser.post("/auth/logout", **how).status_code == 403
    assert browser.get("/account").status_code == 200


def test_errors_never_repeat_passwords(people: People) -> None:
    browser = people.browser()
    for body in ({"password": PASSWORD, "unknown": 1}, {"name": ["x"], "password": [PASSWORD]}, [PASSWORD]):
        response = browser.post("/auth/login", json=body)
        assert response.status_code == 422
        assert PASSWORD not in response.text
    response = browser.post("/auth/login", content=PASSWORD, headers={"content-type": "text/plain"})
    assert (response.status_code, PASSWORD in response.text) == (422, False)


def test_hashes_of_earlier_parameters_are_renewed(people: People) -> None:
    earlier = CountingHasher(memory_cost=16)
    user = people.add("ada", hashed_password=earlier.hash(PASSWORD))
    before = people.accounts.credentials.password(user.id)
    people.browser("ada")
    after = people.accounts.credentials.password(user.id)
    assert before is not None
    assert after is not None
    assert before.hash != after.hash
    assert people.browser().sign_in("ada").status_code == 200


def _with_second_factor(people: People, browser: Browser) -> tuple[bytes, list[str]]:
    setup = browser.post("/account/second-factor", json={}).json()
    secret = base64.b32decode(setup["secret"])
    code = code_at(secret, people.now_ms // 1000 // STEP_S)
    confirmed = browser.post("/account/second-factor/confirm", json={"code": code})
    assert confirmed.status_code == 200, confirmed.text
    return secret, confirmed.json()["recovery_codes"]


def test_a_second_factor_is_a_second_step(people: People) -> None:
    user = people.add("ada")
    secret, codes = _with_second_factor(people, people.browser("ada"))
    browser = people.browser()
    first = browser.sign_in("ada")
    assert (first.status_code, first.json()["second_factor"], browser.secret) == (401, True, "")
    assert "second_factor" not in browser.sign_in("ada", "not the right password").json()
    step = people.now_ms // 1000 // STEP_S
    used = code_at(secret, step)
    assert browser.sign_in("ada", code=used).status_code == 401  # it confirmed the set-up
    people.pass_s(STEP_S)
    fresh = code_at(secret, step + 1)
    assert matching_step(secret, fresh, people.now_ms / 1000) == step + 1
    assert browser.sign_in("ada", code=fresh).status_code == 200
    assert people.browser().sign_in("ada", code=fresh).status_code == 401
    assert people.browser().sign_in("ada", code=codes[0].upper()).status_code == 200
    assert people.browser().sign_in("ada", code=codes[0]).status_code == 401
    assert people.accounts.credentials.recovery_codes_left(user.id) == len(codes) - 1


def test_codes_cannot_be_guessed_with_the_right_password(people: People) -> None:
    people.add("ada")
    secret, _ = _with_second_factor(people, people.browser("ada"))
    stranger = people.browser()
    wrong = "000000" if code_at(secret, people.now_ms // 1000 // STEP_S) != "000000" else "111111"
    statuses = [stranger.sign_in("ada", code=wrong).status_code for _ in range(30)]
    assert statuses.count(401) <= SIGN_IN_ACCOUNT.free + 1
    assert statuses[-1] == 429


def test_before_accounts_the_operator_is_known(tmp_path: Path) -> None:
    with serving(tmp_path) as served:
        assert httpx.get(f"{served.url}/api/v1/account", timeout=PATIENCE_S).json() == {
            "kind": "operator",
            "name": "",
        }
        assert httpx.get(f"{served.url}/api/v1/auth/methods", timeout=PATIENCE_S).json()["setup"] is True
        assert (
            httpx.post(
                f"{served.url}/api/v1/auth/login",
                json={"name": "a", "password": "b"},
                headers=SAME_ORIGIN,
                timeout=PATIENCE_S,
            ).status_code
            == 401
        )
