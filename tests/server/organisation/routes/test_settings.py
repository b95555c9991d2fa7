"""Settings of the organisation: what is refused, stored, shown and followed."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from runvitals.server.account_services import BetaFeature
from runvitals.server.audit.storage.audit import CLI, AuditFilter
from runvitals.server.mail import messages
from runvitals.server.mail.settings import opened_smtp_url
from tests.server.accounts.routes.people import People, serving_people
from tests.server.mail.receiver import Receiver

SETTINGS, MAIL = "/organisation/settings", "/organisation/mail"
SERVER = {"host": "mail.lab.example", "port": 587, "encryption": "starttls", "mail_from": "runs@lab.example"}
URL = {"url": "https://runs.lab.example"}


@pytest.fixture
def people(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[People]:
    for name in ("RUNVITALS_SMTP_URL", "RUNVITALS_MAIL_FROM", "RUNVITALS_URL"):
        monkeypatch.delenv(name, raising=False)
    with serving_people(tmp_path) as people:
        yield people


def stored_url(people: People) -> str:
    """The stored URL of the mail server, with its password."""
    box = people.served.app.services.account_services.box
    return opened_smtp_url(people.accounts.settings.all()["smtp_url"], box)


def test_a_mail_server_needs_a_sender_and_an_address_for_links(people: People) -> None:
    rita = people.browser("rita")
    alone = rita.put(SETTINGS, json={"smtp_url": "smtps://mail.lab.example"})
    assert alone.status_code == 422
    assert alone.json()["fields"].keys() == {"mail_from", "url"}
    assert "smtp_url" not in people.accounts.settings.all()
    whole = {"smtp_url": "smtps://mail.lab.example", "mail_from": "runs@lab.example", **URL}
    assert rita.put(SETTINGS, json=whole).status_code == 200
    without = rita.put(SETTINGS, json={"mail_from": ""})
    assert without.json()["fields"] == {"mail_from": "the sender is missing, without which no mail is sent"}
    assert rita.put(SETTINGS, json={"name": "The lab"}).status_code == 200


def test_the_mail_server_is_set_field_by_field(people: People) -> None:
    rita = people.browser("rita")
    assert rita.get(MAIL).json()["configured"] is False
    sent = {**SERVER, "user": "runs", "password": "p4ss/word", **URL}
    response = rita.put(MAIL, json=sent)
    assert response.status_code == 200, response.text
    assert "p4ss" not in response.text
    shown = response.json()
    assert {name: shown[name] for name in SERVER} == SERVER
    assert (shown["user"], shown["has_password"], shown["configured"]) == ("runs", True, True)
    assert stored_url(people) == "smtp://runs:p4ss%2Fword@mail.lab.example:587"
    everything = json.dumps(people.accounts.settings.all())
    everything += repr(people.accounts.audit.page(AuditFilter(action="org.settings")))
    assert "p4ss" not in everything + rita.get(SETTINGS).text
    ipv6 = {**SERVER, "host": "fd00::1", "port": 25, "encryption": "none"}
    assert rita.put(MAIL, json=ipv6).status_code == 200
    assert stored_url(people) == "smtp://[fd00::1]:25?tls=none"
    assert rita.request("DELETE", MAIL, json={}).status_code == 204
    assert (rita.get(MAIL).json()["host"], rita.get(MAIL).json()["configured"]) == ("", False)


def test_the_password_is_sent_to_no_other_mail_server(people: People) -> None:
    rita = people.browser("rita")
    rita.put(MAIL, json={**SERVER, "user": "runs", "password": "p4ss", **URL})
    kept = rita.put(MAIL, json={**SERVER, "user": "runs", "mail_from": "other@lab.example"})
    assert kept.status_code == 200, kept.text
    assert stored_url(people) == "smtp://runs:p4ss@mail.lab.example:587"
    for other in ({"host": "mail.evil.example"}, {"port": 2525}, {"user": "root"}):
        refused = rita.put(MAIL, json={**SERVER, "user": "runs", **other})
        assert refused.status_code == 422, other
        assert "password again" in refused.json()["fields"]["password"]
    assert stored_url(people) == "smtp://runs:p4ss@mail.lab.example:587"


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"mail_from": ""}, "mail_from"),
        ({"mail_from": "nobody"}, "mail_from"),
        ({"host": "mail host"}, "host"),
        ({"host": "mail\0host"}, "host"),
        ({"user": "runs\ud800", "password": "p"}, "user"),
        ({"user": "runs", "password": "p\r\nq"}, "password"),
        ({"port": 0}, "port"),
        ({"encryption": "ssl"}, "encryption"),
        ({"user": "runs"}, "password"),
        ({"password": "p"}, "user"),
        ({"user": "runs", "password": "p", "encryption": "none"}, "host"),
        ({"url": "ftp://runs.lab.example"}, "url"),
    ],
)
def test_an_invalid_field_of_the_mail_server_is_named(
    people: People, changes: dict[str, object], field: str
) -> None:
    rita = people.browser("rita")
    sent = json.dumps({**SERVER, **URL, **changes})
    response = rita.put(MAIL, content=sent, headers={"content-type": "application/json"})
    assert response.status_code == 422, response.text
    assert response.json()["fields"].keys() == {field}
    assert "smtp_url" not in people.accounts.settings.all()


def test_a_test_mail_arrives_with_the_saved_settings(people: People) -> None:
    rita = people.browser("rita")
    to = {"address": "rita@lab.example"}
    assert "smtp_url is missing" in rita.post(f"{MAIL}/test", json=to).json()["fields"]["address"]
    with Receiver() as receiver:
        server = {**SERVER, **URL, "host": "127.0.0.1", "port": receiver.port, "encryption": "none"}
        assert rita.put(MAIL, json=server).status_code == 200
        assert rita.post(f"{MAIL}/test", json=to).status_code == 200
        receiver.wait_for(1)
    assert receiver.received[-1]["from"].addresses[0].addr_spec == "runs@lab.example"
    assert rita.post(f"{MAIL}/test", json=to).status_code == 502


def test_times_in_mails_are_in_the_zone_of_the_user_or_else_of_the_organisation(people: People) -> None:
    ada = people.add("ada")
    with Receiver() as receiver:
        rita = people.browser("rita")
        server = {**SERVER, **URL, "host": "127.0.0.1", "port": receiver.port, "encryption": "none"}
        assert rita.put(MAIL, json=server).status_code == 200
        people.set(time_zone="Asia/Kolkata")
        notices = people.served.app.services.account_services.notices()
        message = messages.membership_ends_soon("vision", people.now_ms)  # 08:00 UTC
        notices.to_user(ada.id, message)
        receiver.wait_for(2)  # the first: that the sender was changed
        assert people.browser("ada").patch("/account/profile", json={"time_zone": "America/New_York"})
        notices.to_user(ada.id, message)
        receiver.wait_for(3)
    texts = [mail.get_body(("plain",)).get_content() for mail in receiver.received[1:]]  # type: ignore[union-attr]
    assert "until 2027-01-15 13:30 Asia/Kolkata." in texts[0]
    assert "until 2027-01-15 03:00 America/New_York." in texts[1]


def test_what_the_environment_sets_is_shown_and_locked(
    people: People, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RUNVITALS_SMTP_URL", "smtps://runs:hunter2@mail.env.example")
    monkeypatch.setenv("RUNVITALS_MAIL_FROM", "env@lab.example")
    monkeypatch.setenv("RUNVITALS_URL", "https://runs.lab.example")
    rita = people.browser("rita")
    shown = rita.get(MAIL)
    assert "hunter2" not in shown.text
    row = shown.json()
    assert (row["host"], row["mail_from"], row["editable"]) == ("mail.env.example", "env@lab.example", False)
    assert row["enforced_by"] == "RUNVITALS_SMTP_URL"
    assert rita.put(MAIL, json=SERVER).status_code == 409
    assert rita.request("DELETE", MAIL, json={}).status_code == 409


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("time_zone", "Mars/Olympus"),
        ("outbound_proxy", "https://proxy.example:3128"),
        ("outbound_proxy", "http://user:pass@proxy.example:3128"),
        ("outbound_allow", ["127.0.0.0/8"]),
        ("personal_entities", "no"),
        ("audit_anonymise", 1),
        ("beta_features", {"x": "maybe"}),
        ("signup_domains", "lab.example"),
    ],
)
def test_an_invalid_setting_is_named(people: People, name: str, value: object) -> None:
    response = people.browser("rita").put(SETTINGS, json={name: value})
    assert response.status_code == 422
    assert name in response.json()["fields"][name]


def test_settings_are_stored_and_shown(people: People) -> None:
    changes = {
        "time_zone": "Europe/Berlin",
        "outbound_proxy": "http://proxy.lab.example:3128",
        "personal_entities": False,
        "audit_anonymise": True,
        "outside_images": "off",
        "beta_features": {"x": "on"},
    }
    rita = people.browser("rita")
    assert rita.put(SETTINGS, json=changes).status_code == 200
    shown = rita.get(SETTINGS).json()["settings"]
    assert {name: shown[name]["value"] for name in changes} == changes
    assert people.served.app.services.outside_services.policy().proxy == ("proxy.lab.example", 3128)
    assert rita.put(SETTINGS, json={"time_zone": "", "outbound_proxy": ""}).status_code == 200
    shown = rita.get(SETTINGS).json()["settings"]
    assert (shown["time_zone"]["value"], shown["outbound_proxy"]["value"]) == ("UTC", "")


def test_projects_of_users_follow_the_organisation_and_their_own_choice(people: People) -> None:
    people.add("ada")
    ada = people.browser("ada")
    path = "/entities/ada/defaults"
    assert ada.get(path).json() == {"code_saving": False, "visibility": "team"}
    people.set(personal_visibility="organisation", code_saving_default=True)
    assert ada.get(path).json() == {"code_saving": True, "visibility": "organisation"}
    chosen = {"default_visibility": "public", "code_saving": False}
    assert ada.patch("/account/profile", json=chosen).status_code == 200
    assert ada.get(path).json() == {"code_saving": False, "visibility": "public"}


def test_users_without_projects_of_their_own(people: People) -> None:
    ada = people.add("ada")
    people.accounts.teams.create("vision", CLI, people.now_ms, administrator=ada.id)
    people.set(personal_entities=False)
    browser = people.browser("ada")
    account = browser.get("/account").json()
    assert (account["personal_entities"], account["default_entity"]) == (False, "")
    refused = browser.patch("/account/profile", json={"default_entity": "ada"})
    assert "expected a team" in refused.json()["fields"]["default_entity"]
    assert browser.patch("/account/profile", json={"default_entity": "vision"}).status_code == 200
    assert browser.get("/account").json()["default_entity"] == "vision"


def test_a_deletion_can_remove_a_name_from_the_audit_log(people: People) -> None:
    people.set(audit_anonymise=True)
    ada = people.add("ada")
    browser = people.browser("ada")
    browser.sign_in("ada", "wrong password, wrong")
    invited = people.browser("rita").post("/organisation/invitations", json={"people": ["ada@lab.example"]})
    assert invited.status_code == 200
    assert browser.patch("/account/profile", json={"bio": "x"}).status_code == 200
    before = people.accounts.audit.page(AuditFilter(), 1000)
    assert browser.request("DELETE", "/account", json={"confirm": "ada"}).status_code in (200, 202, 204)
    events = people.accounts.audit.page(AuditFilter(), 1000)
    assert len(events) > len(before), "no event goes"
    # As a word: random ids may have these letters.
    assert not re.search(r"\bada\b", json.dumps([repr(event) for event in events]))
    own = [event for event in events if event.actor_id == ada.id and event.actor_kind == "user"]
    assert {event.actor_name for event in own} == {f"deleted-user-{ada.id}"}
    assert {(event.ip, event.agent) for event in own} == {(None, None)}
    assert {"user.update", "user.delete"} <= {event.action for event in own}
    assert any(event.actor_name == "rita" and event.ip for event in events), "others are as they were"


def test_without_the_setting_the_name_stays(people: People) -> None:
    people.add("ada")
    browser = people.browser("ada")
    browser.request("DELETE", "/account", json={"confirm": "ada"})
    (event,) = people.accounts.audit.page(AuditFilter(action="user.delete"))
    assert (event.actor_name, event.entity) == ("ada", "ada")


def test_the_organisation_decides_about_features_under_development(people: People) -> None:
    services = people.served.app.services.account_services
    services.beta_features = (BetaFeature("fast-lists", "Lists load in parts.", "0.9"),)
    people.add("ada")
    ada = people.browser("ada")

    def row() -> dict[str, object]:
        (features,) = ada.get("/account/beta").json()["features"]
        return {name: features[name] for name in ("on", "forced")}

    assert row() == {"on": False, "forced": None}
    assert ada.put("/account/beta/fast-lists", json={"on": True}).status_code == 200
    people.set(beta_features={"fast-lists": "off"})
    assert row() == {"on": False, "forced": "off"}
    assert ada.put("/account/beta/fast-lists", json={"on": True}).status_code == 409
    people.set(beta_features={})
    assert row() == {"on": True, "forced": None}
