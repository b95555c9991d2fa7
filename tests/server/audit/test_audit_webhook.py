"""The audit log as requests to a receiver, with both databases."""

from __future__ import annotations

import hashlib
import hmac
import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import update

from runvitals.server.audit.audit_webhook import PURPOSE, AuditWebhook, NotDelivered
from runvitals.server.audit.storage.audit import CLI
from runvitals.server.audit.storage.audit_webhook import SETTLED_MS
from runvitals.server.database.secret_box import SecretBox
from runvitals.server.database.tables.requests import audit_webhook
from runvitals.server.metadata_store import MetadataStore
from tests.server.database.conftest import address, empty, kind, metadata_store, postgresql
from tests.server.mail.conftest import SetClock
from tests.server.outbound.site import Site
from tests.server.outbound.site import serving as serving_site

__all__ = ["address", "empty", "kind", "metadata_store", "postgresql"]

URL = "https://logs.example/audit"
SECRET = "a secret of the receiver"


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    """A receiver that accepts everything."""
    with serving_site(tmp_path, "logs.example") as running:
        running.answers["/audit"] = (204, {}, b"")
        yield running


@pytest.fixture
def clock() -> SetClock:
    return SetClock()


@pytest.fixture
def sender(metadata_store: MetadataStore, site: Site, clock: SetClock) -> AuditWebhook:
    """What a server sends with; the webhook is set."""
    box = SecretBox({"k": bytes(32)})
    webhooks = metadata_store.accounts.audit_webhook
    webhooks.put(URL, box.seal(SECRET.encode(), PURPOSE), CLI, clock())
    return AuditWebhook(webhooks, box, site.fetcher(), clock)


def add(store: MetadataStore, clock: SetClock, *actions: str) -> None:
    for action in actions:
        store.accounts.audit.record(clock(), CLI, action)


def received(site: Site) -> list[list[str]]:
    """The actions in each request."""
    return [[event["action"] for event in json.loads(body)["events"]] for body in site.bodies]


def test_each_event_is_sent_once_and_signed(
    metadata_store: MetadataStore, sender: AuditWebhook, site: Site, clock: SetClock
) -> None:
    add(metadata_store, clock, "user.login", "team.create")
    assert sender.send_new() == 3
    assert sender.send_new() == 0
    assert received(site) == [["org.audit_webhook", "user.login", "team.create"]]
    [(_, headers)] = site.requests
    signed = headers["X-Runvitals-Timestamp"].encode() + b"." + site.bodies[0]
    expected = hmac.new(SECRET.encode(), signed, hashlib.sha256).hexdigest()
    assert headers["X-Runvitals-Signature"] == f"v1={expected}"
    event = json.loads(site.bodies[0])["events"][0]
    assert (event["after"], event["actor_kind"]) == ({"url": "logs.example"}, "cli")
    state = metadata_store.accounts.audit_webhook.get()
    assert state is not None
    assert (state.delivered_ms, state.problem) == (clock(), None)


def test_events_before_the_webhook_are_not_sent(metadata_store: MetadataStore, site: Site) -> None:
    clock = SetClock()
    add(metadata_store, clock, "user.login")
    box = SecretBox({"k": bytes(32)})
    webhooks = metadata_store.accounts.audit_webhook
    webhooks.put(URL, box.seal(b"s", PURPOSE), CLI, clock())
    AuditWebhook(webhooks, box, site.fetcher(), clock).send_new()
    assert received(site) == [["org.audit_webhook"]]


@pytest.mark.parametrize("status", [302, 404, 500])
def test_what_was_not_accepted_waits(
    status: int, metadata_store: MetadataStore, sender: AuditWebhook, site: Site, clock: SetClock
) -> None:
    site.answers["/audit"] = (status, {"Location": "https://other.example/"}, b"")
    with pytest.raises(NotDelivered):
        sender.send_new()
    add(metadata_store, clock, "user.login")
    state = metadata_store.accounts.audit_webhook.get()
    assert state is not None
    assert state.problem
    # Another receiver gets what the first one has not got.
    box = SecretBox({"k": bytes(32)})
    metadata_store.accounts.audit_webhook.put(
        "https://logs.example/new", box.seal(b"s", PURPOSE), CLI, clock()
    )
    site.answers["/new"] = (200, {}, b"ok")
    site.bodies.clear()
    assert sender.send_new() == 3
    assert received(site) == [["org.audit_webhook", "user.login", "org.audit_webhook"]]


def test_many_events_are_several_requests(
    metadata_store: MetadataStore, sender: AuditWebhook, site: Site, clock: SetClock
) -> None:
    accounts = metadata_store.accounts

    def work() -> None:
        for number in range(150):
            accounts.audit.record(clock(), CLI, "team.update", target=str(number))

    accounts.in_one_transaction(work)
    assert sender.send_new() == 151
    assert [len(events) for events in received(site)] == [100, 51]


def test_an_event_that_appears_late_is_sent(
    metadata_store: MetadataStore, sender: AuditWebhook, site: Site, clock: SetClock
) -> None:
    """A transaction takes its id first and ends last: here the cursor is set beyond the id of an event."""
    add(metadata_store, clock, "first", "late", "second")
    late = metadata_store.accounts.audit.newest_id() - 1
    passed_over = {"sent_id": late + 1, "gaps": json.dumps({late: clock()})}
    database = metadata_store._database
    database.write(lambda connection: connection.execute(update(audit_webhook).values(passed_over)))
    assert sender.send_new() == 1
    assert received(site) == [["late"]]
    state = metadata_store.accounts.audit_webhook.get()
    assert state is not None
    assert state.gaps == {}


def test_ids_that_never_appear_are_forgotten(
    metadata_store: MetadataStore, sender: AuditWebhook, site: Site, clock: SetClock
) -> None:
    sender.send_new()
    add(metadata_store, clock, "lost", "kept")
    lost = metadata_store.accounts.audit.newest_id() - 1
    webhooks = metadata_store.accounts.audit_webhook
    state = webhooks.claim("another", clock() + 120_000, clock() + 120_001)
    assert state is not None
    webhooks.mark_delivered("another", state, metadata_store.accounts.audit.with_ids([lost + 1]), clock())
    state = webhooks.get()
    assert state is not None
    assert state.gaps[lost] == clock()
    clock.now_ms += SETTLED_MS + 130_000
    metadata_store.accounts.audit.purge(clock())
    assert sender.send_new() == 0
    state = webhooks.get()
    assert state is not None
    assert (state.gaps, state.sent_id) == ({}, lost + 1)


def test_one_of_several_servers_sends(
    metadata_store: MetadataStore, sender: AuditWebhook, site: Site, clock: SetClock
) -> None:
    webhooks = metadata_store.accounts.audit_webhook
    assert webhooks.claim("another", clock(), clock() + 60_000) is not None
    assert sender.send_new() == 0
    assert site.bodies == []
    clock.now_ms += 60_000  # the other one was killed
    assert sender.send_new() == 1


def test_a_receiver_inside_the_network_gets_nothing(
    metadata_store: MetadataStore, sender: AuditWebhook, site: Site
) -> None:
    site.names["logs.example"] = [["10.1.2.3"]]
    with pytest.raises(NotDelivered, match="private network"):
        sender.send_new()
    assert site.reached == []
