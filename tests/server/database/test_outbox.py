"""The outbox of notifications, with both databases."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from sqlalchemy import insert

from runvitals.model.durations import DAY_MS, HOUR_MS, MINUTE_MS
from runvitals.server.audit.storage.audit import CLI
from runvitals.server.database.tables.alerts import automation
from runvitals.server.events.outbox import (
    LEASE_MS,
    TEAM_A_MINUTE,
    ChannelResponse,
    Notification,
    OutboxTable,
    add,
)
from runvitals.server.mail.storage.outgoing_mail import NewMail
from runvitals.server.metadata_store import MetadataStore
from runvitals.store.errors import NotFound

NOW = 1_800_000_000_000
ANY = Notification("a", "run.crashed", "user:1", "run:1", "it crashed", {"path": "/runs/a"}, NOW)


def put(store: MetadataStore, *keys: str, **how: Any) -> list[bool]:
    """Add notifications with these keys; returns which of them are new."""
    return [
        store.write(lambda connection, key=key: add(connection, replace(ANY, dedupe_key=key, **how)))  # type: ignore[misc]
        for key in keys
    ]


def due_keys(outbox: OutboxTable, now_ms: int = NOW) -> list[str]:
    return [due.dedupe_key for due in outbox.due(now_ms)]


def deliver(outbox: OutboxTable, now_ms: int = NOW) -> list[str]:
    """Deliver what is due; returns the keys."""
    due = outbox.due(now_ms)
    for notification in due:
        assert outbox.claim(notification, now_ms)
        outbox.end(notification, "sent", now_ms, ChannelResponse(200, "ok"))
    return [notification.dedupe_key for notification in due]


def test_a_notification_is_added_once_with_what_caused_it(metadata_store: MetadataStore) -> None:
    assert put(metadata_store, "a", "a", "b") == [True, False, True]
    with pytest.raises(RuntimeError):
        metadata_store.write(_add_and_fail)
    assert metadata_store.alerts.outbox.length().waiting == 2
    assert metadata_store.alerts.outbox.length().oldest_ms == NOW


def test_what_waits_for_the_time_of_a_wrong_clock_is_sent(metadata_store: MetadataStore) -> None:
    outbox, wrong_ms = metadata_store.alerts.outbox, NOW + 3650 * DAY_MS
    put(metadata_store, "now", "later", due_ms=NOW + HOUR_MS)
    put(metadata_store, "wrong", created_ms=wrong_ms, subject="run:2")
    assert due_keys(outbox) == []
    outbox.cap_waiting(NOW)
    assert due_keys(outbox) == ["wrong"]
    (claimed,) = outbox.due(NOW)
    assert outbox.claim(claimed, wrong_ms)
    outbox.cap_waiting(NOW)
    assert due_keys(outbox) == ["wrong"]


def test_commands_for_hosts_by_run(metadata_store: MetadataStore) -> None:
    outbox = metadata_store.alerts.outbox
    asked = {"command": "restart", "allowed": True}
    put(metadata_store, "7:a", "7:b", target="command:7", payload=asked)
    put(metadata_store, "8:a", target="command:8", payload={**asked, "allowed": False})
    put(metadata_store, "9:a", target="user:9", payload=asked)
    assert [[command for _, command in commands] for commands in outbox.host_commands().values()] == [
        ["restart"] * 2
    ]
    assert [commands.dedupe_key for commands in outbox.beginning_with(["7:", "9:"])] == ["7:a", "7:b", "9:a"]


def test_a_mail_with_a_key_is_added_once(metadata_store: MetadataStore) -> None:
    queue = metadata_store.accounts.outgoing_mail
    added = [
        queue.add(NewMail(f"<{key}>", "test", "a@b.c", "a@b.c", False, b"", NOW, NOW + 1, once_key="once"))
        for key in "ab"
    ]
    assert added == [True, False]


def _add_and_fail(connection: Any) -> None:
    add(connection, replace(ANY, dedupe_key="c"))
    raise RuntimeError


def test_notifications_about_a_subject_arrive_in_order(metadata_store: MetadataStore) -> None:
    outbox = metadata_store.alerts.outbox
    put(metadata_store, "1", "2")
    put(metadata_store, "3", subject="run:2")
    put(metadata_store, "4", target="slack:1")
    [first, other] = outbox.due(NOW)
    assert (first.dedupe_key, other.dedupe_key) == ("1", "4")
    assert outbox.claim(first, NOW)
    # The first one is late: only what is about something else may overtake it.
    outbox.postpone(first, NOW + MINUTE_MS, None, "no answer")
    assert deliver(outbox) == ["3", "4"]
    assert deliver(outbox) == []
    assert deliver(outbox, NOW + MINUTE_MS) == ["1"]
    assert deliver(outbox, NOW + MINUTE_MS) == ["2"]


def test_one_server_takes_a_notification_and_another_if_that_one_dies(metadata_store: MetadataStore) -> None:
    outbox = metadata_store.alerts.outbox
    put(metadata_store, "a")
    [seen], [seen_too] = outbox.due(NOW), outbox.due(NOW)
    assert outbox.claim(seen, NOW)
    assert not outbox.claim(seen_too, NOW)
    assert due_keys(outbox, NOW + LEASE_MS - 1) == []
    [again] = outbox.due(NOW + LEASE_MS)
    assert again.tries == 1
    assert outbox.claim(again, NOW + LEASE_MS)
    outbox.end(again, "sent", NOW + LEASE_MS)
    outbox.postpone(seen, NOW, None, "the server that was slow is late")
    assert due_keys(outbox, NOW + DAY_MS) == []


@pytest.fixture
def team(metadata_store: MetadataStore) -> int:
    return metadata_store.accounts.teams.create("vision", CLI, NOW).id


def test_a_team_has_a_limit_a_minute(metadata_store: MetadataStore, team: int) -> None:
    row = {"team_id": team, "name": "a", "enabled": True, "event": "x", "definition": "{}"}
    row |= {"created_ms": NOW, "changed_ms": NOW}
    metadata_store.write(lambda connection: connection.execute(insert(automation).values(id=7, **row)))
    many = [str(number) for number in range(TEAM_A_MINUTE + 2)]
    for key in many:
        put(metadata_store, key, target=f"slack:{key}", team_id=team, automation_id=7)
    put(metadata_store, "of another kind")
    outbox = metadata_store.alerts.outbox
    assert deliver(outbox) == [*many[:TEAM_A_MINUTE], "of another kind"]
    assert deliver(outbox, NOW + MINUTE_MS - 1) == []
    assert deliver(outbox, NOW + MINUTE_MS) == many[TEAM_A_MINUTE:]


def test_messages_over_the_limit_of_an_hour_are_told_by_title(
    metadata_store: MetadataStore, team: int
) -> None:
    hour_ms = NOW - NOW % HOUR_MS
    put(metadata_store, "a", "b", "c", team_id=team, created_ms=hour_ms)
    limits, outbox = metadata_store.alerts.message_limits, metadata_store.alerts.outbox
    assert (limits.hold_back(hour_ms, None), limits.hold_back(hour_ms, 3)) == (0, 0)
    assert limits.hold_back(hour_ms, 1) == 2
    assert outbox.length().waiting == 1
    assert deliver(outbox, hour_ms) == ["a"]
    assert limits.hold_back(hour_ms + HOUR_MS, 1) == 0
    [summary] = outbox.due(hour_ms + HOUR_MS)
    assert summary.text.startswith("[vision] 2 messages were held back")
    assert summary.text.endswith("it crashed (2 times)")


def test_what_a_team_was_told_and_sending_it_again(metadata_store: MetadataStore, team: int) -> None:
    outbox = metadata_store.alerts.outbox
    put(metadata_store, "a", "b", team_id=team)
    put(metadata_store, "of nobody")
    [first] = outbox.due(NOW)
    assert outbox.claim(first, NOW)
    outbox.end(first, "failed", NOW, ChannelResponse(500, "no\x00"), "the receiver answered 500")
    newest, failed = outbox.of_team(team, 10)
    assert [newest.dedupe_key, failed.dedupe_key] == ["b", "a"]
    assert outbox.of_team(team, 10, before=newest.id) == [failed]
    assert (failed.state, failed.status, failed.answer) == ("failed", 500, "no\N{SYMBOL FOR NULL}")
    again = outbox.send_again(team, failed.id, NOW + DAY_MS)
    assert (again.state, again.tries, again.give_up_ms, again.answer) == (
        "pending",
        0,
        NOW + 2 * DAY_MS,
        None,
    )
    with pytest.raises(ValueError, match="being sent"):
        outbox.send_again(team, failed.id, NOW)
    with pytest.raises(NotFound):
        outbox.send_again(team + 1, failed.id, NOW)


def test_what_ended_long_ago_is_removed(metadata_store: MetadataStore) -> None:
    outbox = metadata_store.alerts.outbox
    put(metadata_store, "a", "b")
    assert deliver(outbox) == ["a"]
    assert (outbox.purge(NOW), outbox.purge(NOW + 1)) == (0, 1)
    assert due_keys(outbox) == ["b"]
