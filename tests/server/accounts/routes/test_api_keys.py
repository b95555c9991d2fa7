"""The user's API keys, and the sign-in of a command line by a browser."""

from __future__ import annotations

import pytest

from runvitals.server.access.enforcement.rate_limits import DEVICE_LOGINS
from runvitals.server.account_services import BetaFeature
from runvitals.server.accounts.attempt_limits import DEVICE_CODES
from runvitals.server.accounts.storage.device_logins import LIFE_MS
from runvitals.server.accounts.storage.keys import MAX_KEYS
from runvitals.server.audit.storage.audit import CLI
from tests.server.accounts.routes.people import Browser, People

DAY_MS = 86_400_000


def create(browser: Browser, name: str = "laptop", **more: object) -> dict[str, object]:
    response = browser.post("/account/api-keys", json={"name": name, **more})
    assert response.status_code == 201, response.text
    key: dict[str, object] = response.json()
    assert response.headers["location"] == f"/api/v1/account/api-keys/{key['id']}"
    assert response.headers["cache-control"] == "no-store"
    return key


def test_a_key_is_shown_once_and_works(mailing: People) -> None:
    mailing.add("ada")
    browser = mailing.browser("ada")
    key = create(browser, scope="read", expires_ms=mailing.now_ms + DAY_MS)
    secret = key.pop("key")
    assert mailing.program(secret).get("/account").json()["name"] == "ada"
    assert mailing.mail_to("ada@lab.example", 1)["subject"].startswith("A new API key")
    listed = browser.get("/account/api-keys").json()
    assert listed["total"] == 1
    assert listed["api_keys"][0] == {**key, "last_used_ms": mailing.now_ms}
    assert str(secret) not in str(listed)
    mailing.pass_s(DAY_MS / 1000)
    mailing.rights_changed()
    assert mailing.program(secret).get("/account").status_code == 401


def test_a_key_may_be_limited_to_some_teams(people: People) -> None:
    ada = people.add("ada")
    people.accounts.teams.create("vision", CLI, people.now_ms, administrator=ada.id)
    people.accounts.teams.create("speech", CLI, people.now_ms)
    people.rights_changed()
    browser = people.browser("ada")
    assert create(browser, teams=["Vision", "ada"])["teams"] == ["ada", "vision"]
    refused = browser.post("/account/api-keys", json={"name": "x", "teams": ["vision", "speech"]})
    assert (refused.status_code, list(refused.json()["fields"])) == (422, ["teams[1]"])


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"name": ""}, "name"),
        ({"name": "x" * 65}, "name"),
        ({"scope": "admin"}, "scope"),
        ({"expires_ms": 1}, "expires_ms"),
        ({"expires_ms": 2**60}, "expires_ms"),
        ({"key": "mine"}, "key"),
    ],
)
def test_an_invalid_field_of_a_key_is_named(people: People, changes: dict[str, object], field: str) -> None:
    response = people.browser("rita").post("/account/api-keys", json={"name": "laptop", **changes})
    assert (response.status_code, list(response.json()["fields"])) == (422, [field])


def test_the_organisation_limits_who_makes_keys_and_for_how_long(people: People) -> None:
    people.add("ada")
    people.set(api_key_creation="admins", key_max_age_days=30)
    assert people.browser("ada").post("/account/api-keys", json={"name": "x"}).status_code == 403
    rita = people.browser("rita")
    latest_ms = people.now_ms + 30 * DAY_MS
    assert create(rita)["expires_ms"] == latest_ms
    assert create(rita, expires_ms=latest_ms - 1)["expires_ms"] == latest_ms - 1
    later = rita.post("/account/api-keys", json={"name": "x", "expires_ms": latest_ms + 1})
    assert (later.status_code, list(later.json()["fields"])) == (422, ["expires_ms"])


def test_there_are_only_so_many_keys(people: People) -> None:
    ada = people.add("ada")
    for number in range(MAX_KEYS):
        people.accounts.keys.create(f"k{number}", CLI, people.now_ms, user_id=ada.id)
    refused = people.browser("ada").post("/account/api-keys", json={"name": "one more"})
    assert (refused.status_code, str(MAX_KEYS) in refused.text) == (409, True)


def test_a_key_is_rotated_with_an_overlap(people: People) -> None:
    people.add("ada")
    browser = people.browser("ada")
    old = create(browser, scope="read")
    path = f"/account/api-keys/{old['id']}/rotate"
    assert browser.post(path, json={"overlap_h": 169}).status_code == 422
    rotated = browser.post(path, json={"overlap_h": 2})
    assert rotated.status_code == 201
    new = rotated.json()
    assert (new["name"], new["scope"], new["id"] == old["id"]) == ("laptop", "read", False)
    for key in (old, new):
        assert people.program(key["key"]).get("/account").status_code == 200
    people.pass_s(2 * 3600 + 10)
    people.rights_changed()
    assert people.program(old["key"]).get("/account").status_code == 401
    assert people.program(new["key"]).get("/account").status_code == 200
    people.browser("rita")
    assert people.browser("ada").post(path, json={}).status_code == 409


def test_a_key_may_replace_itself_and_no_other(people: People) -> None:
    people.add("ada")
    browser = people.browser("ada")
    old, other = create(browser), create(browser, "desktop")
    program = people.program(old["key"])
    rotated = program.post("/account/api-keys/current/rotate", json={"overlap_h": 0})
    assert rotated.status_code == 201, rotated.text
    assert people.program(rotated.json()["key"]).get("/account").status_code == 200
    assert program.get("/account").status_code == 401
    program = people.program(rotated.json()["key"])
    assert program.post(f"/account/api-keys/{other['id']}/rotate", json={}).status_code == 403
    assert browser.post("/account/api-keys/current/rotate", json={}).status_code == 401


def test_keys_are_renamed_and_revoked_one_or_several(people: People) -> None:
    people.add("ada")
    browser, rita = people.browser("ada"), people.browser("rita")
    keys = [create(browser, f"k{number}") for number in range(4)]
    path = f"/account/api-keys/{keys[0]['id']}"
    assert browser.patch(path, json={"name": " Laptop "}).json()["name"] == "Laptop"
    assert browser.patch(path, json={"name": "  "}).status_code == 422
    for method, body in (("PATCH", {"name": "mine"}), ("DELETE", {})):
        assert rita.request(method, path, json=body).status_code == 404
    assert browser.request("DELETE", path, json={}).status_code == 204
    assert people.program(keys[0]["key"]).get("/account").status_code == 401
    several = {"ids": f"{keys[1]['id']},{keys[2]['id']}"}
    unknown = {"ids": f"{keys[3]['id']},00000000"}
    assert browser.request("DELETE", "/account/api-keys", params=unknown, json={}).status_code == 404
    response = browser.request("DELETE", "/account/api-keys", params=several, json={})
    assert response.json() == {"revoked": 2}
    assert [key["name"] for key in browser.get("/account/api-keys").json()["api_keys"]] == ["k3"]
    actions = people.actions()
    assert (actions.count("key.rename"), actions.count("key.revoke")) == (1, 3)


def test_a_device_gets_a_key_once_its_user_confirms_the_code(people: People) -> None:
    people.add("ada")
    device, browser = people.browser(), people.browser("ada")
    begun = device.post("/auth/device", json={"name": "gpu-box"})
    assert begun.status_code == 201
    login = begun.json()
    code = login["user_code"]
    assert (len(code), login["path"], login["expires_ms"]) == (9, "/-/device", people.now_ms + LIFE_MS)
    secret = {"device_code": login["device_code"]}
    waiting = device.post("/auth/device/token", json=secret)
    assert (waiting.status_code, waiting.json()) == (202, {"state": "waiting"})
    typed = code.replace("-", "").lower()
    shown = browser.post("/auth/device/lookup", json={"code": typed}).json()
    assert (shown["name"], shown["ip"]) == ("gpu-box", "127.0.0.1")
    body = {"code": typed, "allow": True, "scope": "ingest"}
    assert browser.post("/auth/device/confirm", json=body).status_code == 204
    assert browser.post("/auth/device/confirm", json=body).status_code == 410
    fetched = device.post("/auth/device/token", json=secret)
    assert fetched.status_code == 201
    key = fetched.json()
    assert (key["user"], key["name"], key["scope"]) == ("ada", "gpu-box", "ingest")
    assert device.post("/auth/device/token", json=secret).status_code == 410
    assert [key["name"] for key in browser.get("/account/api-keys").json()["api_keys"]] == ["gpu-box"]
    assert "user.device_login" in people.actions()


def test_a_device_gets_no_key_if_denied_or_too_late(people: People) -> None:
    people.add("ada")
    device, browser = people.browser(), people.browser("ada")
    denied, late = (device.post("/auth/device", json={"name": "box"}).json() for _ in range(2))
    body = {"code": denied["user_code"], "allow": False}
    assert browser.post("/auth/device/confirm", json=body).status_code == 204
    gone = device.post("/auth/device/token", json={"device_code": denied["device_code"]})
    assert (gone.status_code, "denied" in gone.text) == (410, True)
    people.pass_s(LIFE_MS / 1000)
    late_answer = {"code": late["user_code"], "allow": True}
    assert browser.post("/auth/device/confirm", json=late_answer).status_code == 410
    assert device.post("/auth/device/token", json={"device_code": late["device_code"]}).status_code == 410
    assert people.accounts.keys.all() == []


def test_the_name_of_a_device_shows_as_it_is(people: People) -> None:
    people.add("ada")
    for name in ("\u202exobmypug", "box\nfrom 10.0.0.1", "\u200b", "   "):
        refused = people.browser().post("/auth/device", json={"name": name})
        assert (refused.status_code, list(refused.json()["fields"])) == (422, ["name"])


def test_codes_of_devices_need_a_confirmed_session_and_few_guesses(people: People) -> None:
    people.add("ada")
    login = people.browser().post("/auth/device", json={"name": "box"}).json()
    body = {"code": login["user_code"], "allow": True}
    assert people.browser().post("/auth/device/confirm", json=body).status_code == 401
    browser = people.browser("ada")
    guess = {"code": "BBBB-BBBB", "allow": True}
    for _ in range(DEVICE_CODES.free + 1):
        assert browser.post("/auth/device/confirm", json=guess).status_code == 410
    assert browser.post("/auth/device/confirm", json=body).status_code == 429
    later = people.browser("ada")
    people.pass_s(16 * 60)
    assert later.post("/auth/device/confirm", json=body).status_code == 428


def test_a_network_starts_only_so_many_sign_ins_of_devices(people: People) -> None:
    device = people.browser()
    statuses = [
        device.post("/auth/device", json={"name": "box"}).status_code for _ in range(DEVICE_LOGINS.count + 1)
    ]
    assert statuses == [201] * DEVICE_LOGINS.count + [429]


def test_beta_features_are_switched_by_each_user(people: People) -> None:
    people.add("ada")
    browser = people.browser("ada")
    assert browser.get("/account/beta").json() == {"features": [], "total": 0, "next": None}
    assert browser.put("/account/beta/unknown", json={"on": True}).status_code == 404
    features = (BetaFeature("maps", "Draws maps.", "0.9"), BetaFeature("old", "Goes.", "0.5", "retiring"))
    people.served.app.services.account_services.beta_features = features
    assert browser.put("/account/beta/maps", json={"on": True}).json() == {"name": "maps", "on": True}
    listed = browser.get("/account/beta").json()["features"]
    assert [(feature["name"], feature["on"]) for feature in listed] == [("maps", True), ("old", False)]
    people.add("bob")
    assert not any(row["on"] for row in people.browser("bob").get("/account/beta").json()["features"])
