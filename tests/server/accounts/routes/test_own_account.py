"""The user's own account: profile, password, sessions, addresses, second factor, deletion; other users."""

from __future__ import annotations

import pytest

from runvitals.server.access.enforcement.rate_limits import VERIFICATION_MAILS
from runvitals.server.accounts.totp import STEP_S, code_at
from runvitals.server.audit.storage.audit import CLI, AuditFilter
from tests.server.accounts.routes.people import COOKIE, OTHER_PASSWORD, PASSWORD, People, token_in

GIVEN = "a password by an administrator"


def test_an_account_knows_its_teams_rights_and_default_entity(people: People) -> None:
    ada = people.add("ada")
    rita = people.browser("rita")
    assert "org:settings" in rita.get("/account").json()["may"]
    people.accounts.teams.create("vision", CLI, people.now_ms, administrator=ada.id)
    people.accounts.teams.create("speech", CLI, people.now_ms)
    people.accounts.members.add("speech", "ada", "viewer", CLI, people.now_ms)
    people.rights_changed()
    browser = people.browser("ada")
    account = browser.get("/account").json()
    teams = [(team["name"], team["role"]) for team in account["teams"]]
    assert teams == [("speech", "viewer"), ("vision", "admin")]
    assert (account["default_entity"], "org:settings" in account["may"]) == ("ada", False)
    assert account["sudo_until_ms"] == people.now_ms + 15 * 60_000

    chosen = browser.patch("/account/profile", json={"default_entity": "Vision"})
    assert chosen.json()["default_entity"] == "vision"
    for name in ("speech", "nowhere", "rita"):
        refused = browser.patch("/account/profile", json={"default_entity": name})
        assert (refused.status_code, list(refused.json()["fields"])) == (422, ["default_entity"])
    people.accounts.members.add("vision", "rita", "admin", CLI, people.now_ms)
    people.accounts.members.remove("vision", "ada", CLI, people.now_ms)
    people.rights_changed()
    assert browser.get("/account").json()["default_entity"] == "ada"


def test_a_profile_is_changed_field_by_field(people: People) -> None:
    people.add("ada")
    browser = people.browser("ada")
    assert browser.get("/account/profile").json() == {
        "display_name": "ada",
        "institution": "",
        "bio": "",
        "location": "",
        "links": [],
        "intro": "",
        "hide_teams": False,
        "default_entity": "ada",
        "default_visibility": "",
        "code_saving": False,
        "time_zone": "",
        "locale": "",
        "theme": "",
        "landing_page": "",
        "mail_switched_off": [],
        "mail_address": "",
    }
    links = [{"label": "home", "url": "https://ada.example/x"}]
    changes = {"display_name": "Ada  L.", "bio": "Counts\u202e\n things", "links": links, "locale": "de-CH"}
    changed = browser.patch("/account/profile", json=changes).json()
    assert changed["bio"] == "Counts things"
    assert (changed["links"], changed["locale"], changed["institution"]) == (links, "de-CH", "")
    assert browser.patch("/account/profile", json={"time_zone": "Europe/Berlin"}).json()["links"] == links
    event = people.accounts.audit.page(AuditFilter(action="user.update"))[1]
    assert event.after == {"fields": ["bio", "display_name", "links", "locale"]}  # not what was written


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"display_name": "x" * 65}, "display_name"),
        ({"display_name": "\u202e"}, "display_name"),
        ({"links": [{"url": "https://a.example"}, {"url": "javascript:alert(1)"}]}, "links[1].url"),
        ({"links": [{"url": "https://me:secret@a.example"}]}, "links[0].url"),
        ({"links": [{"url": "https://a.example"}] * 6}, "links"),
        ({"bio": "x" * 501}, "bio"),
        ({"time_zone": "Mars/Olympus"}, "time_zone"),
        ({"locale": "not a locale"}, "locale"),
        ({"landing_page": "//evil.example"}, "landing_page"),
        ({"default_visibility": "secret"}, "default_visibility"),
        ({"name": "lovelace"}, "name"),
    ],
)
def test_an_invalid_field_is_named(people: People, changes: dict[str, object], field: str) -> None:
    response = people.browser("rita").patch("/account/profile", json=changes)
    assert (response.status_code, list(response.json()["fields"])) == (422, [field])


def test_a_new_password_ends_the_other_sessions(mailing: People) -> None:
    mailing.add("ada")
    browser, other = mailing.browser("ada"), mailing.browser("ada")
    old = browser.secret
    missing = browser.put("/account/password", json={"new": OTHER_PASSWORD})
    assert (missing.status_code, list(missing.json()["fields"])) == (422, ["old"])
    wrong = browser.put("/account/password", json={"old": "not it, sorry", "new": OTHER_PASSWORD})
    assert wrong.status_code == 401
    weak = browser.put("/account/password", json={"old": PASSWORD, "new": "short"})
    assert (weak.status_code, list(weak.json()["fields"])) == (422, ["new"])
    mailing.pass_s(3600)  # the old password is enough, however long ago it was confirmed
    changed = browser.put("/account/password", json={"old": PASSWORD, "new": OTHER_PASSWORD})
    assert changed.status_code == 204, changed.text
    assert browser.get("/account").status_code == 200
    assert other.get("/account").status_code == 401
    assert mailing.browser(cookies={COOKIE: old}).get("/account").status_code == 401
    assert mailing.browser().sign_in("ada", OTHER_PASSWORD).status_code == 200
    mailing.mail.wait_for(2)  # in any order
    assert {mail["subject"] for mail in mailing.mail.received} == {
        "Your password was changed",
        "New sign-in to your account",
    }


def test_a_password_that_an_administrator_set_must_be_changed_first(people: People) -> None:
    ada = people.add("ada")
    key = people.accounts.keys.create("laptop", CLI, people.now_ms, user_id=ada.id, scope="full")[0]
    _set_by_administrator(people, ada.id)
    browser = people.browser()
    assert browser.sign_in("ada", GIVEN).json()["account"]["must_change_password"] is True
    assert browser.get("/auth/session").json()["account"]["must_change_password"] is True
    for method, path in (
        ("GET", "/account"),
        ("GET", "/account/emails"),
        ("GET", "/account/sessions"),
        ("GET", "/runs"),
        ("GET", "/projects"),
        ("GET", "/users"),
        ("GET", "/openapi.json"),
        ("POST", "/account/api-keys"),
        ("PATCH", "/account/profile"),
        ("POST", "/auth/sudo"),
        ("DELETE", "/account"),
    ):
        refused = browser.request(method, path, json={"password": GIVEN} if method != "GET" else None)
        assert (refused.status_code, refused.json().get("must_change_password")) == (403, True), path
    assert people.program(key).get("/account").status_code == 200
    same = browser.put("/account/password", json={"old": GIVEN, "new": GIVEN})
    assert (same.status_code, list(same.json()["fields"])) == (422, ["new"])
    assert browser.put("/account/password", json={"old": GIVEN, "new": PASSWORD}).status_code == 204
    assert browser.get("/runs").status_code == 200
    assert browser.get("/auth/session").json()["account"]["must_change_password"] is False


def test_who_must_change_the_password_may_sign_out_instead(people: People) -> None:
    _set_by_administrator(people, people.add("ada").id)
    browser = people.browser()
    browser.sign_in("ada", GIVEN)
    assert browser.post("/auth/logout", json={}).status_code == 204
    assert browser.get("/auth/session").json()["account"] is None


def _set_by_administrator(people: People, user_id: int) -> None:
    hashed = people.passwords.hash(GIVEN)
    people.accounts.credentials.set_password(user_id, hashed, CLI, people.now_ms, must_change=True)
    people.rights_changed()


def test_a_key_changes_nothing_of_the_account_that_matters(people: People) -> None:
    ada = people.add("ada")
    secret, key = people.accounts.keys.create("laptop", CLI, people.now_ms, user_id=ada.id, scope="full")
    program = people.program(secret)
    assert program.get("/account").json()["key"] == key.public_id
    for method, path, body in (
        ("PUT", "/account/password", {"old": PASSWORD, "new": OTHER_PASSWORD}),
        ("POST", "/account/emails", {"address": "x@lab.example"}),
        ("POST", "/account/api-keys", {"name": "another"}),
        ("DELETE", f"/account/api-keys/{key.public_id}", None),
        ("POST", "/account/second-factor", {}),
        ("DELETE", "/account/sessions", None),
        ("DELETE", "/account", {"confirm": "ada"}),
        ("POST", "/auth/sudo", {"password": PASSWORD}),
        ("POST", "/auth/device/confirm", {"code": "BCDF-GHJK", "allow": True}),
    ):
        assert program.request(method, path, json=body).status_code == 403, path


def test_sessions_are_listed_and_ended(people: People) -> None:
    people.add("ada")
    first = people.browser("ada", headers={"user-agent": "Fox/1"})
    second, stranger = people.browser("ada"), people.browser("rita")
    sessions = first.get("/account/sessions").json()["sessions"]
    assert [session["current"] for session in sessions] == [False, True]
    assert (sessions[1]["ip"], sessions[1]["method"]) == ("127.0.0.1", "password")
    path = f"/account/sessions/{sessions[0]['id']}"
    assert stranger.request("DELETE", path, json={}).status_code == 404
    assert first.request("DELETE", path, json={}).status_code == 204
    assert second.get("/account").status_code == 401
    assert first.request("DELETE", path, json={}).status_code == 404
    third = people.browser("ada")
    assert first.request("DELETE", "/account/sessions", json={}).json() == {"ended": 1}
    assert (first.get("/account").status_code, third.get("/account").status_code) == (200, 401)
    people.pass_s(8 * 86_400)
    assert first.get("/account").status_code == 401


def test_addresses_are_added_confirmed_made_primary_and_removed(mailing: People) -> None:
    mailing.add("ada")
    browser = mailing.browser("ada")
    added = browser.post("/account/emails", json={"address": "Ada@home.example"})
    assert added.status_code == 201
    email = added.json()
    assert (email["address"], email["verified_ms"], email["primary"]) == ("Ada@home.example", None, False)
    token = token_in(mailing.mail_to("Ada@home.example", 1))
    path = f"/account/emails/{email['id']}"
    assert browser.patch(path, json={"primary": True}).status_code == 409
    again = browser.post(f"{path}/verification", json={})
    assert (again.status_code, "retry-after" in again.headers) == (429, True)
    assert browser.post("/account/emails", json={"address": "ada@HOME.example"}).status_code == 409
    assert browser.post("/account/emails", json={"address": "nowhere"}).status_code == 422
    assert browser.post("/auth/verify", json={"token": token}).status_code == 200
    assert browser.post(f"{path}/verification", json={}).status_code == 409

    before = browser.secret
    changed = browser.patch(path, json={"primary": True})
    assert browser.secret != before
    assert (changed.status_code, changed.json()["primary"]) == (200, True)
    mailing.mail.wait_for(3)
    assert {mail["to"] for mail in mailing.mail.received[1:]} == {"ada@lab.example", "Ada@home.example"}
    assert browser.request("DELETE", path, json={}).status_code == 409
    emails = browser.get("/account/emails").json()["emails"]
    assert [row["login_methods"] for row in emails] == [["password"], ["password"]]
    old = f"/account/emails/{emails[1]['id']}"
    assert mailing.browser("rita").request("DELETE", old, json={}).status_code == 404
    assert browser.request("DELETE", old, json={}).status_code == 204
    mailing.mail.wait_for(4)
    assert mailing.mail.received[3]["to"] == "Ada@home.example"
    assert mailing.browser().sign_in("ada@lab.example").status_code == 401
    assert mailing.browser().sign_in("ada@home.example").status_code == 200


def test_an_address_of_another_user_is_added_like_any_other(mailing: People) -> None:
    mailing.add("ada")
    mailing.add("eve")
    added = mailing.browser("eve").post("/account/emails", json={"address": "ada@lab.example"})
    assert added.status_code == 201
    mail = mailing.mail_to("ada@lab.example", 1)
    assert mail["subject"] == "Someone tried to add your e-mail address"
    assert "#" not in mail.get_body(("plain",)).get_content()


def test_mails_to_one_address_are_limited(mailing: People) -> None:
    mailing.add("ada")
    browser = mailing.browser("ada")
    email = browser.post("/account/emails", json={"address": "x@home.example"}).json()["id"]
    sent = 1
    for _ in range(10):
        mailing.pass_s(61)
        sent += browser.post(f"/account/emails/{email}/verification", json={}).status_code == 202
    assert sent == VERIFICATION_MAILS[1].count


def test_a_second_factor_is_set_up_and_removed(people: People) -> None:
    import base64

    people.add("ada")
    browser = people.browser("ada")
    assert browser.get("/account/second-factor").json() == {
        "enabled": False,
        "passkeys": False,
        "recovery_codes_left": 0,
    }
    assert browser.post("/account/second-factor/confirm", json={"code": "123456"}).status_code == 409
    assert browser.post("/account/second-factor/recovery-codes", json={}).status_code == 409
    setup = browser.post("/account/second-factor", json={}).json()
    assert setup["uri"].startswith(f"otpauth://totp/runvitals:ada?secret={setup['secret']}")
    assert people.browser().sign_in("ada").status_code == 200  # not in use before it is confirmed
    secret = base64.b32decode(setup["secret"])
    right = code_at(secret, people.now_ms // 1000 // STEP_S)
    wrong = "000000" if right != "000000" else "111111"
    refused = browser.post("/account/second-factor/confirm", json={"code": wrong})
    assert (refused.status_code, list(refused.json()["fields"])) == (422, ["code"])
    codes = browser.post("/account/second-factor/confirm", json={"code": right}).json()["recovery_codes"]
    assert len(set(codes)) == 10
    assert browser.get("/account/second-factor").json() == {
        "enabled": True,
        "passkeys": False,
        "recovery_codes_left": 10,
    }
    assert browser.post("/account/second-factor", json={}).status_code == 409
    renewed = browser.post("/account/second-factor/recovery-codes", json={}).json()["recovery_codes"]
    assert people.browser().sign_in("ada", code=codes[0]).status_code == 401
    assert people.browser().sign_in("ada", code=renewed[0]).status_code == 200
    people.pass_s(3600)
    assert browser.request("DELETE", "/account/second-factor", json={}).status_code == 428
    browser.post("/auth/sudo", json={"password": PASSWORD})
    assert browser.request("DELETE", "/account/second-factor", json={}).status_code == 204
    assert people.browser().sign_in("ada").status_code == 200


def test_an_account_is_deleted_by_typing_its_name(mailing: People) -> None:
    ada = mailing.add("ada")
    browser = mailing.browser("ada")
    other = mailing.browser("ada", cookies={"rv-known": browser.cookies["rv-known"]})
    secret = mailing.accounts.keys.create("laptop", CLI, mailing.now_ms, user_id=ada.id)[0]
    typo = browser.request("DELETE", "/account", json={"confirm": "adam"})
    assert (typo.status_code, list(typo.json()["fields"])) == (422, ["confirm"])
    gone = browser.request("DELETE", "/account", json={"confirm": "ada"})
    assert (gone.status_code, browser.secret) == (204, "")
    assert mailing.mail_to("ada@lab.example", 1)["subject"] == "Your account was deleted"
    assert other.get("/account").status_code == 401
    assert mailing.program(secret).get("/account").status_code == 401
    assert mailing.browser().sign_in("ada").status_code == 401
    assert mailing.browser("rita").get("/users/ada").status_code == 404


def test_a_deletion_can_wait_and_be_called_off(people: People) -> None:
    people.add("ada")
    browser = people.browser("ada")
    deletion = browser.request("DELETE", "/account", json={"confirm": "ada", "wait_days": 7})
    until_ms = people.now_ms + 7 * 86_400_000
    assert (deletion.status_code, deletion.json()) == (202, {"delete_after_ms": until_ms})
    assert browser.get("/account").json()["delete_after_ms"] == until_ms
    assert browser.request("DELETE", "/account/deletion", json={}).status_code == 204
    assert browser.get("/account").json()["delete_after_ms"] is None


def test_a_last_administrator_cannot_delete_the_account(people: People) -> None:
    browser = people.browser("rita")
    for wait_days in (0, 7):
        body = {"confirm": "rita", "wait_days": wait_days}
        refused = browser.request("DELETE", "/account", json=body)
        assert (refused.status_code, "last administrator" in refused.text) == (409, True)
    assert browser.get("/account").status_code == 200


def test_other_users_see_a_profile_and_no_address(people: People) -> None:
    ada = people.add("ada", display_name="Ada L.")
    people.add("bob")
    people.accounts.teams.create("vision", CLI, people.now_ms, administrator=ada.id)
    people.accounts.teams.create("secret", CLI, people.now_ms, administrator=ada.id)
    people.accounts.teams.update("secret", CLI, people.now_ms, hidden=True)
    people.rights_changed()
    own, bob = people.browser("ada"), people.browser("bob")
    own.patch("/account/profile", json={"bio": "Counts", "time_zone": "Europe/Berlin"})
    profile = bob.get("/users/Ada").json()
    assert (profile["name"], profile["display_name"], profile["bio"]) == ("ada", "Ada L.", "Counts")
    assert [team["name"] for team in profile["teams"]] == ["vision"]
    assert profile["may"] == []
    assert "lab.example" not in str(profile)
    assert "time_zone" not in profile
    assert own.get("/users/ada").json()["may"] == ["account:update"]
    assert [team["name"] for team in own.get("/users/ada").json()["teams"]] == ["secret", "vision"]
    own.patch("/account/profile", json={"hide_teams": True})
    assert bob.get("/users/ada").json()["teams"] == []
    people.accounts.users.create("newbie", CLI, people.now_ms, address="n@lab.example")
    for name in ("nobody", "newbie", "vision", "~1", "%00"):
        assert bob.get(f"/users/{name}").status_code == 404, name
    assert people.browser().get("/users/ada").status_code == 401
    people.set(anonymous_access="read")
    assert people.browser().get("/users/ada").json()["display_name"] == "Ada L."


def test_users_are_found_by_names_and_never_by_addresses(people: People) -> None:
    ada = people.add("ada", display_name="Countess")
    people.add("adam", display_name="Zed")
    for number in range(12):
        people.add(f"user{number:02}", address=f"zebra{number}@lab.example")
    people.add("adieu")
    people.accounts.teams.create("vision", CLI, people.now_ms, administrator=ada.id)
    people.accounts.members.add("vision", "adieu", "member", CLI, people.now_ms)
    people.rights_changed()
    browser = people.browser("ada")

    def found(query: str) -> list[str]:
        response = browser.get("/users", params={"query": query}).json()
        assert all(set(user) == {"name", "display_name"} for user in response["users"])
        return [user["name"] for user in response["users"]]

    assert found("AD") == ["ada", "adieu", "adam"]  # whom one shares a team with comes first
    assert found("zed") == ["adam"]
    assert found("count") == ["ada"]
    assert len(found("user")) == 10
    assert found("zebra") == found("%d") == found("__") == []
    for short in ("a", "  ", " a "):
        assert browser.get("/users", params={"query": short}).status_code == 422
    assert people.browser().get("/users", params={"query": "ada"}).status_code == 401
