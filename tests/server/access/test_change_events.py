"""Who changed a run, or sent an event, is in the run's events."""

from __future__ import annotations

from typing import Any

from runvitals.server.audit.storage.audit import CLI
from runvitals.server.runs.storage.events import StoredEvent
from runvitals.server.runs.storage.writer_registration import Sender, WriterRegistration
from tests.server.access.organisation import NOW, TEAM, ServedOrganisation


def events(served: ServedOrganisation, run: str) -> list[dict[str, Any]]:
    response = served.ask("alice", "GET", f"/api/v1/runs/{run}/events")
    assert response.status_code == 200, response.text
    detail = served.ask("alice", "GET", f"/api/v1/runs/{run}").json()
    assert detail["events"] == response.json()
    return list(response.json())


def made(event: dict[str, Any]) -> tuple[str, str, str | None]:
    by = event["author"] or event["service_account"]
    return event["name"], event["text"], by and by["name"]


def test_events_say_who_changed_a_run(served: ServedOrganisation) -> None:
    run = "/api/v1/runs/team-bob"
    responses = [
        served.ask("carol", "PATCH", run, json={"name": "<b>new</b>", "tags": ["a"]}),
        served.ask("alice", "PATCH", run, json={"author": "carol"}),
        served.ask("vera", "POST", f"{run}/stop"),
        served.ask("alice", "DELETE", run),
        served.ask("alice", "POST", f"{run}/restore"),
    ]
    assert [response.status_code for response in responses] == [200, 200, 403, 200, 200]
    assert served.ask("ci", "POST", "/api/v1/runs/team-ci/stop").status_code == 200
    assert [made(event) for event in events(served, "team-bob")] == [
        ("edited", "Changed: name, tags", "carol"),
        ("edited", "Changed: author", "alice"),
        ("deleted", "Moved to the trash", "alice"),
        ("restored", "Restored from the trash", "alice"),
    ]
    [stopped] = events(served, "team-ci")
    assert made(stopped) == ("stop_requested", "A stop was requested", "ci")
    assert (stopped["author"], stopped["service_account"]["deleted"]) == (None, False)


def test_an_alert_says_whose_key_sent_it(served: ServedOrganisation) -> None:
    team_id = served.accounts.teams.by_name(TEAM).id
    _, key = served.accounts.keys.create("alerts", CLI, NOW, user_id=served.users["bob"])
    sender = Sender(team_id, served.users["bob"], None, api_key_id=key.id)
    writer = WriterRegistration("alerting", "rank-0", "team", interval_s=3600, sender=sender)
    [joined] = served.metadata_store.writers.join([writer], NOW)
    forged = {"user_id": served.users["carol"]}
    alert = StoredEvent(
        joined.run_id, NOW, "alert", text="NaN", data=forged, writer_id=joined.writer_id, seq=1
    )
    served.metadata_store.events.add([alert])
    [event] = events(served, "alerting")
    assert (made(event), event["data"]) == (("alert", "NaN", "bob"), forged)
    assert event["author"]["id"] == served.users["bob"]
