"""The bell of the page over HTTP."""

from __future__ import annotations

from runvitals.server.events.run_events import DONE, RunEvent
from tests.server.accounts_server import T0, AccountsServer
from tests.server.alerts.routes.test_settings import run_of

INBOX = "account/notifications"


def test_what_is_new_until_it_was_seen(vision: AccountsServer) -> None:
    events = vision.metadata_store.alerts.events
    run_id = run_of(vision, "bob", "whale-7")
    events.add([RunEvent(run_id, 0, "failed", T0, level="error")])
    [event] = [event for event in events.in_state("new") if event.run_id == run_id]
    events.settle([event.id], DONE, note={"told": True, "told_ms": T0})
    page = vision.ask("bob", "GET", INBOX)
    [new] = [item for item in page["notifications"] if item["title"] == "whale-7 failed"]
    assert (new["unread"], new["kind"], new["path"]) == (True, "run.failed", "/vision/digits/runs/whale-7")
    assert page["unread"] >= 1
    seen = vision.ask("bob", "PUT", f"{INBOX}/seen", json={"time_ms": 2**53})
    assert (seen["unread"], {item["unread"] for item in seen["notifications"]}) == (0, {False})
    assert seen["seen_ms"] < 2**53  # what happens later is new
    assert vision.ask("bob", "GET", INBOX)["unread"] == 0
    assert vision.ask("ada", "GET", INBOX)["notifications"] == []
    assert "time_ms" in vision.ask("bob", "PUT", f"{INBOX}/seen", status=422, json={})["error"]
