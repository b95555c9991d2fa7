"""What users and teams choose to be told, over HTTP."""

from __future__ import annotations

import httpx

from runvitals.server.alerts.mute_links import PURPOSE, MuteLink
from runvitals.server.audit.storage.audit import CLI
from runvitals.server.runs.storage.writer_registration import Sender, WriterRegistration
from tests.patience import PATIENCE_S
from tests.server.accounts_server import T0, AccountsServer

OWN, TEAM = "account/alerts", "teams/vision/alerts"
OFF = {"email": False, "slack": False, "min_level": "info"}
MAIL = {**OFF, "email": True}


def run_of(server: AccountsServer, name: str, uid: str = "otter-1") -> int:
    team = server.accounts.teams.by_name("vision")
    sender = Sender(team.id, author_id=server.accounts.users.by_name(name).id)
    registration = WriterRegistration(uid, "monitor.a.1", "digits", sender=sender)
    [writer] = server.metadata_store.writers.join([registration], T0)
    server.app.services.access.rights_changed()
    return writer.run_id


def test_personal_alerts(vision: AccountsServer) -> None:
    run_of(vision, "bob")
    shown = vision.ask("bob", "GET", OWN)
    assert shown["events"] == {"finished": OFF, "crashed": MAIL, "custom": MAIL, "findings": OFF}
    assert (shown["digest"], shown["daily_at"], shown["quiet"]["on"]) == ("off", "08:00", False)
    body = {
        "events": {"finished": {"email": True}, "custom": {"slack": True, "min_level": "error"}},
        "quiet": {"on": True, "start": "23:30", "end": "06:15"},
        "digest": "daily",
        "daily_at": "09:00",
        "projects": [{"project": "vision/digits", "mode": "off"}],
    }
    changed = vision.ask("bob", "PUT", OWN, json=body)
    assert changed["events"]["finished"] == MAIL
    assert changed["events"]["crashed"] == MAIL
    assert changed["events"]["custom"] == {"email": False, "slack": True, "min_level": "error"}
    assert changed["quiet"] == {"on": True, "start": "23:30", "end": "06:15", "errors_pass": True}
    assert changed["projects"] == [{"project": "vision/digits", "mode": "off"}]
    back = {"exceptions": [{"scope": "project", "name": "vision/digits", "mode": "as_above"}]}
    assert vision.ask("bob", "PUT", OWN, json=back)["projects"] == []
    assert vision.ask("bob", "GET", OWN)["daily_at"] == "09:00"


def test_mistakes_are_named(vision: AccountsServer) -> None:
    for body, field in (
        ({"quiet": {"on": True, "start": "25:00"}}, "quiet.start"),
        ({"daily_at": "8"}, "daily_at"),
        ({"digest": "weekly"}, "digest"),
        ({"projects": [{"project": "vision/none", "mode": "off"}]}, "exceptions[0].name"),
        ({"projects": [{"project": "vision/none", "mode": "loud"}]}, "projects[0].mode"),
        ({"exceptions": [{"scope": "team", "name": "nobody", "mode": "off"}]}, "exceptions[0].name"),
        (
            {"exceptions": [{"scope": "run", "name": "vision/digits/none", "mode": "off"}]},
            "exceptions[0].name",
        ),
        ({"events": {"finished": {"email": "yes"}}}, "events.finished.email"),
    ):
        response = vision.ask("bob", "PUT", OWN, 422, json=body)
        assert field in response["fields"], response


def test_alerts_of_a_team(vision: AccountsServer) -> None:
    assert vision.ask("bob", "GET", TEAM)["editable"] is False
    vision.ask("bob", "PUT", TEAM, 403, json={})
    changed = vision.ask("ada", "PUT", TEAM, json={"events": {"crashed": {"email": True}}})
    assert changed["events"]["crashed"] == MAIL
    assert changed["editable"] is True
    vision.ask("ada", "PUT", TEAM, 422, json={"slack_destination": 77})
    url = "https://hooks.slack.com/services/T0001/B0001/SecretSecretAbCd"
    destination = vision.ask(
        "ada", "POST", "teams/vision/slack-destinations", 201, json={"channel": "#x", "webhook_url": url}
    )
    assert vision.ask("ada", "PUT", TEAM, json={"slack_destination": destination["id"]})["slack_destination"]
    assert vision.ask("ada", "PUT", TEAM, json={"slack_destination": None})["slack_destination"] is None
    assert vision.actions()[-1] == "team.alerts"


def test_a_mail_program_mutes_a_project_by_its_link(vision: AccountsServer) -> None:
    run_id = run_of(vision, "bob")
    user = vision.accounts.users.by_name("bob")
    key = vision.app.services.account_services.box.derived_key(PURPOSE)
    link = f"{vision.url}/api/v1/mute/{MuteLink(user.id, run_id).text(key)}"
    with httpx.Client(timeout=PATIENCE_S) as client:
        shown = client.get(link).json()
        assert (shown["scopes"], shown["muted"]) == (["run", "project", "team"], [])
        posted = client.post(link, data={"List-Unsubscribe": "One-Click"})
        assert (posted.status_code, posted.json()["muted"]) == (200, ["project"])
        assert vision.ask("bob", "GET", OWN)["projects"] == [{"project": "vision/digits", "mode": "off"}]
        again = client.post(link, json={"scope": "project", "on": False}).json()
        assert again["muted"] == []
        assert client.post(link, json={"scope": "team"}).json()["muted"] == ["team"]
        assert client.post(link, json={"scope": "planet"}).status_code == 422
        assert client.get(link + "x").status_code == 404
        vision.accounts.members.remove("vision", "bob", CLI, T0)
        vision.app.services.access.rights_changed()
        assert client.get(link).status_code == 404  # the run may have other names by now
        vision.accounts.members.add("vision", "bob", "member", CLI, T0)
        vision.app.services.access.rights_changed()
        assert client.post(link.replace(f"/{user.id}.", "/1."), json={}).status_code in (200, 404)


def test_the_slack_channel_of_a_user(vision: AccountsServer) -> None:
    assert vision.ask("bob", "GET", OWN)["slack"] is None
    unconnected = vision.ask("bob", "POST", f"{OWN}/test", json={"channel": "slack"})
    assert (unconnected["sent"], unconnected["status"]) == (False, None)
    assert "no channel" in unconnected["error"]
    assert (
        "url" in vision.ask("bob", "PUT", "account/slack", 422, json={"url": "https://x.example/"})["fields"]
    )
    url = "https://hooks.slack.com/services/T0001/B0001/SecretSecretAbCd"
    connected = vision.ask("bob", "PUT", "account/slack", json={"url": url})
    assert connected["shown"] == "hooks.slack.com/…/AbCd"
    assert vision.ask("bob", "GET", OWN)["slack"] == connected
    vision.ask("bob", "DELETE", "account/slack", 204)
    assert vision.ask("bob", "GET", OWN)["slack"] is None


def test_a_message_to_see_whether_it_arrives(vision: AccountsServer) -> None:
    mail = vision.ask("bob", "POST", f"{OWN}/test", json={"channel": "email"})
    assert mail["sent"] or mail["error"] == "this server sends no mail"
    vision.ask("bob", "POST", f"{TEAM}/test", 403, json={"channel": "email"})
    assert "channel" in vision.ask("ada", "POST", f"{TEAM}/test", 422, json={"channel": "slack"})["fields"]
    for _ in range(9):
        vision.ask("bob", "POST", f"{OWN}/test", json={})
    vision.ask("bob", "POST", f"{OWN}/test", 429, json={})
