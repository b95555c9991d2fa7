"""The thread that delivers: attempts, their times, and what channels cannot deliver."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from functools import partial
from typing import Any

import pytest

from runvitals.model.durations import DAY_MS, HOUR_MS, MINUTE_MS
from runvitals.server.alerts.delivery.channel import Channel, DeliveryFailed
from runvitals.server.alerts.delivery.delivery import NotificationDelivery, hold_back_messages
from runvitals.server.audit.storage.audit import CLI
from runvitals.server.events.outbox import ChannelResponse, Notification, StoredNotification, add
from runvitals.server.metadata_store import MetadataStore
from tests.patience import eventually
from tests.server.mail.conftest import T0, SetClock

ANY = Notification("a", "run.crashed", "user:1", "run:1", "it crashed", {}, T0)


def put(store: MetadataStore, key: str, **how: Any) -> None:
    store.write(lambda connection: add(connection, replace(ANY, dedupe_key=key, **how)))


@contextmanager
def delivering(
    store: MetadataStore, clock: SetClock, channel: Channel, chance: float = 0.5
) -> Iterator[NotificationDelivery]:
    delivery = NotificationDelivery(store.alerts.outbox, {"user": channel}, clock, lambda: chance)
    try:
        yield delivery
    finally:
        delivery.close()


def refusing(state: Any = "pending") -> Callable[[StoredNotification], ChannelResponse]:
    def channel(due: StoredNotification) -> ChannelResponse:
        raise DeliveryFailed("no answer", state, ChannelResponse(500, "broken"))

    return channel


def one(store: MetadataStore) -> tuple[Any, ...]:
    with store.alerts.outbox._database.read() as connection:
        row = connection.exec_driver_sql("SELECT state, tries, status, answer, error FROM notification").one()
        return tuple(row)


@pytest.mark.parametrize(("chance", "spread"), [(0.0, 0.8), (0.5, 1.0), (1.0, 1.2)])
def test_attempts_become_rarer_and_end_after_a_day(
    store: MetadataStore, clock: SetClock, chance: float, spread: float
) -> None:
    put(store, "a")
    waits = []
    with delivering(store, clock, refusing(), chance) as delivery:
        while delivery.deliver_due():
            [due] = store.alerts.outbox.due(T0 + 3 * DAY_MS) or [None]
            if due is None:
                break
            waits.append(due.next_ms - clock.now_ms)
            clock.now_ms = due.next_ms - 1
            assert delivery.deliver_due() == 0
            clock.now_ms += 1
    hours = [2 * HOUR_MS, 6 * HOUR_MS, 6 * HOUR_MS, 6 * HOUR_MS]
    expected = [MINUTE_MS, 5 * MINUTE_MS, 30 * MINUTE_MS, *hours]
    assert waits[: len(expected) - 1] == [int(wait_ms * spread) for wait_ms in expected[:-1]]
    assert clock.now_ms <= T0 + DAY_MS
    assert one(store) == ("failed", len(waits) + 1, 500, "broken", "no answer")


@pytest.mark.parametrize("state", ["failed", "dropped"])
def test_what_can_never_arrive_is_not_tried_again(store: MetadataStore, clock: SetClock, state: str) -> None:
    put(store, "a")
    with delivering(store, clock, refusing(state)) as delivery:
        assert delivery.deliver_due() == 1
    assert one(store)[:2] == (state, 1)


def test_an_unknown_target_and_an_error_of_ours_stop_nothing_else(
    store: MetadataStore, clock: SetClock
) -> None:
    put(store, "a", target="pigeon:1")
    put(store, "b", target="user:1")
    put(store, "c", target="user:2")
    arrived = []

    def channel(due: StoredNotification) -> ChannelResponse:
        if due.target == "user:1":
            raise ZeroDivisionError
        arrived.append(due.dedupe_key)
        return ChannelResponse()

    with delivering(store, clock, channel) as delivery:
        assert delivery.deliver_due() == 3
    assert arrived == ["c"]
    [waiting] = store.alerts.outbox.due(T0 + DAY_MS)
    assert (waiting.dedupe_key, waiting.error) == ("b", "an error of the server: ZeroDivisionError")


def test_the_thread_delivers_and_finishes_at_the_end(store: MetadataStore, clock: SetClock) -> None:
    arrived: list[str] = []

    def channel(due: StoredNotification) -> ChannelResponse:
        arrived.append(due.dedupe_key)
        return ChannelResponse(200, "ok")

    put(store, "a")
    put(store, "b")
    with delivering(store, clock, channel) as delivery:
        delivery.thread.start()
        eventually(lambda: store.alerts.outbox.length().waiting == 0)
    assert arrived == ["a", "b"]


def test_what_is_over_the_limit_of_a_team_is_told_in_one_summary(
    store: MetadataStore, clock: SetClock
) -> None:
    clock.now_ms = hour_ms = T0 - T0 % HOUR_MS
    vision = store.accounts.teams.create("vision", CLI, T0).id
    speech = store.accounts.teams.create("speech", CLI, T0).id
    arrived: list[str] = []

    def channel(due: StoredNotification) -> ChannelResponse:
        arrived.append(due.text)
        return ChannelResponse()

    def deliver() -> list[str]:
        arrived.clear()
        while delivery.deliver_due():
            pass
        return list(arrived)

    store.accounts.settings.put({"team_messages_an_hour": 3}, CLI, T0)
    for number in range(5):
        put(store, f"v{number}", text=f"GPU idle\n\n{number}", team_id=vision)
    put(store, "v5", text="Hung", team_id=vision)
    put(store, "stop", target="stop:7", text="", team_id=vision)
    put(store, "other", text="of speech", team_id=speech)
    put(store, "nobody", text="of no team")
    delivery = NotificationDelivery(
        store.alerts.outbox,
        {"user": channel, "stop": channel},
        clock,
        hold_back=partial(hold_back_messages, store),
    )
    with closing(delivery):
        sent = deliver()
        assert sorted(text.partition("\n")[0] for text in sent) == [
            "",
            "GPU idle",
            "GPU idle",
            "GPU idle",
            "of no team",
            "of speech",
        ]
        assert store.alerts.outbox.length().waiting == 0
        dropped = [
            notification
            for notification in store.alerts.outbox.of_team(vision, 10)
            if notification.state == "dropped"
        ]
        assert [notification.text.partition("\n")[0] for notification in dropped] == [
            "Hung",
            "GPU idle",
            "GPU idle",
        ]
        assert all(
            "had sent 3 messages in this hour" in (notification.error or "") for notification in dropped
        )
        clock.now_ms += HOUR_MS - 1
        put(store, "v6", text="Hung", team_id=vision, created_ms=clock.now_ms)
        assert deliver() == []
        clock.now_ms += 1
        [summary] = deliver()
    title, about, *lines = summary.split("\n\n")
    assert title == "[vision] 4 messages were held back"
    assert "send them again" in about
    assert sorted(lines) == ["GPU idle (2 times)", "Hung (2 times)"]
    assert hour_ms + HOUR_MS == clock.now_ms
