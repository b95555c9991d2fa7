"""Unauthorized requests, batches that the server accepts later, and a server that was away for a week."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from runvitals.base import stored_keys
from runvitals.journal import frames
from runvitals.journal.writer import JournalWriter
from runvitals.relay.batch import Batch
from runvitals.relay.destination import Destination, Rejected
from runvitals.relay.engine import delivery, delivery_thread
from runvitals.relay.engine.backlog import deliver_remaining
from runvitals.relay.engine.batch_reader import MAX_BATCH_BYTES
from runvitals.relay.engine.cursor import Cursor
from runvitals.relay.engine.delivery import MAX_ROUND_BYTES, RunDelivery
from runvitals.relay.engine.delivery_lag import delivery_lag
from runvitals.relay.engine.delivery_thread import DeliveryThread
from runvitals.relay.engine.destination_spec import DestinationSpec
from runvitals.server.files.reserved_space import FileLimits
from tests import processor_time
from tests.relay.journals import HOST, MONITOR, RUN, Journal, MediaJournal
from tests.relay.receiver import Receiver, now_ms
from tests.server.serving import serving

DAY_MS = 86_400_000


class Clock:
    """A monotonic clock that the test advances."""

    def __init__(self) -> None:
        self.now_s = 1000.0

    def __call__(self) -> float:
        return self.now_s


class Relay:
    """A `DeliveryThread` that runs in the test's thread, and its deliveries."""

    def __init__(self, url: str, environ: dict[str, str]) -> None:
        self.clock = Clock()
        self.reported: list[tuple[str, str]] = []
        self.thread = DeliveryThread(
            url, self.clock, lambda run_id, text: self.reported.append((run_id, text))
        )
        self._url = url
        self._environ = environ
        self._deliveries: list[RunDelivery] = []

    def serve(self, folder: str, live: bool, environ: dict[str, str] | None = None) -> Cursor:
        cursor = Cursor(folder, DestinationSpec(self._url), HOST)
        assert cursor.lock()
        delivery = RunDelivery(cursor, environ=environ or self._environ)
        delivery.live = live
        self.thread.serve(delivery)
        self._deliveries.append(delivery)
        return cursor

    def close(self) -> None:
        for opened in self._deliveries:
            opened.close()
            opened.cursor.unlock()

    def work(self, seconds: float = 0.0) -> None:
        """Do what the thread does in that time, second by second."""
        until_s = self.clock.now_s + seconds
        while True:
            while self.thread.wait_s(self.clock.now_s) <= 0 and self.thread.serve_due(self.clock.now_s):
                pass
            if self.clock.now_s >= until_s:
                return
            self.clock.now_s += 1.0


@pytest.fixture
def receiver(tmp_path: Path) -> Iterator[Receiver]:
    receiver = Receiver(str(tmp_path / "server"))
    yield receiver
    receiver.close()


@pytest.fixture
def environ(tmp_path: Path) -> dict[str, str]:
    return {"XDG_CONFIG_HOME": str(tmp_path / "config")}


@pytest.fixture
def relay(receiver: Receiver, environ: dict[str, str]) -> Iterator[Relay]:
    relay = Relay(receiver.url, environ)
    yield relay
    relay.close()


def test_missing_token_is_reported_once_and_delivery_continues_with_one(
    journal: Journal,
    receiver: Receiver,
    relay: Relay,
    environ: dict[str, str],
) -> None:
    receiver.required_token = "rvt_right"
    cursor = relay.serve(journal.folder, live=True)
    journal.sample(0, cpu=1.0)
    relay.work(2 * delivery_thread.UNAUTHORIZED_RETRY_S)
    text = f"{receiver.url} requires a token: `runvitals login {receiver.url}` asks for another token"
    assert relay.reported == [(RUN, text)]
    assert cursor.error == text
    assert 2 <= len(receiver.tokens) <= 3  # in 20 minutes

    stored_keys.save(receiver.url, "rvt_wrong", environ)
    relay.work(1)
    assert "rejected the token" in cursor.error
    requests_before = len(receiver.tokens)
    relay.work(60)
    assert len(receiver.tokens) == requests_before
    stored_keys.save(receiver.url, "rvt_right", environ)
    relay.work(10)
    assert cursor.error == ""
    assert receiver.samples()["cpu"] == [(journal.t0, 1.0)]
    assert len(relay.reported) == 1

    receiver.required_token = "rvt_another"  # revoked, in the middle of the run
    journal.sample(1, cpu=2.0)
    relay.work(10)
    assert len(relay.reported) == 2


def test_unauthorized_run_does_not_block_others(
    tmp_path: Path, receiver: Receiver, relay: Relay, environ: dict[str, str]
) -> None:
    """Each run uses the token of its training."""
    receiver.required_token = "rvt_right"
    for run, token in (("first", "rvt_wrong"), ("second", "rvt_right")):
        about = {"run": run, "project": "p", "host": HOST, "role": "monitor", "pid": 6, "interval_s": 1.0}
        writer = JournalWriter(str(tmp_path / "runs" / run), MONITOR, about)
        writer.sample(now_ms(), {"cpu": 1.0})
        writer.close()
        theirs = {**environ, "RUNVITALS_SERVER": receiver.url, "RUNVITALS_TOKEN": token}
        relay.serve(str(tmp_path / "runs" / run), live=True, environ=theirs)
    relay.work(10)
    assert receiver.runs() == 1
    assert receiver.run("second").state == "running"
    assert [run for run, _ in relay.reported] == ["first"]


def test_rejected_records_are_reported_once(journal: Journal, receiver: Receiver, relay: Relay) -> None:
    cursor = relay.serve(journal.folder, live=True)
    for second in range(3):
        journal.monitor.sample(1000 + second, {"cpu": 1.0})  # 1970
        journal.sample(second, cpu=2.0)
        relay.work(10)
    ((run_id, text),) = relay.reported
    assert run_id == RUN
    assert "the year 2000" in text
    assert cursor.rejected_path in text
    assert len(receiver.samples()["cpu"]) == 3


def test_run_restored_from_the_trash_continues(journal: Journal, receiver: Receiver, relay: Relay) -> None:
    cursor = relay.serve(journal.folder, live=True)
    journal.sample(0, cpu=0.0)
    relay.work(10)
    run = receiver.run(RUN)
    receiver.metadata_store.runs.delete([run.id], receiver.now_ms())
    receiver.recorder.heartbeats.flush()
    for second in range(1, 30):
        journal.sample(second, cpu=float(second))
        relay.work(6)
    assert len(receiver.samples()["cpu"]) == 1
    assert "the run is in the trash on" in cursor.error
    assert cursor.closed == ""
    requests_before = len(receiver.requests)
    relay.work(600)
    assert len(receiver.requests) - requests_before < 65  # heartbeats only
    assert sum(map(len, receiver.requests[requests_before:])) == len(receiver.requests) - requests_before
    assert not any(
        "body" in envelope for request in receiver.requests[requests_before:] for envelope in request
    )

    receiver.metadata_store.runs.restore([run.id], receiver.now_ms())
    receiver.recorder.heartbeats.flush()
    relay.work(30)
    journal.sample(30, cpu=30.0)
    relay.work(10)
    assert [value for _, value in receiver.samples()["cpu"]] == [float(n) for n in range(31)]
    assert cursor.error == ""


def test_finished_run_in_the_trash_is_released(journal: Journal, receiver: Receiver, relay: Relay) -> None:
    cursor = relay.serve(journal.folder, live=True)
    journal.sample(0, cpu=0.0)
    relay.work(10)
    run = receiver.run(RUN)
    receiver.metadata_store.runs.delete([run.id], receiver.now_ms())
    receiver.recorder.heartbeats.flush()
    journal.sample(1, cpu=1.0)
    journal.end()
    relay.work(10)
    relay.thread.set_live(RUN, False)
    relay.work(20)
    assert relay.thread.idle
    assert "`runvitals sync abc` delivers the rest" in cursor.closed
    receiver.metadata_store.runs.restore([run.id], receiver.now_ms())
    receiver.recorder.heartbeats.flush()
    deliver_remaining(cursor, lambda wait_s: None)
    assert [value for _, value in receiver.samples()["cpu"]] == [0.0, 1.0]


def test_records_with_future_times_are_held_until_accepted(
    journal: Journal,
    receiver: Receiver,
    relay: Relay,
    environ: dict[str, str],
) -> None:
    cursor = relay.serve(journal.folder, live=True)
    right_ms = journal.t0
    journal.sample(0, cpu=0.0)
    relay.work(10)
    journal.t0 += 2 * DAY_MS  # the clock jumps ahead
    for second in range(1, 4):
        journal.sample(second, cpu=float(second))
        journal.event(f"ahead {second}")
        relay.work(6)
    journal.t0 = right_ms  # and is corrected
    journal.sample(4, cpu=4.0)
    journal.event("right")
    relay.work(10)
    assert [value for _, value in receiver.samples()["cpu"]] == [0.0, 4.0]
    assert cursor.counts["rejected"] == 0
    assert cursor.held_records == 6
    assert "ahead of the clock of" in cursor.held_why
    assert delivery_lag(cursor).records == 0
    assert (
        Cursor(journal.folder, DestinationSpec(receiver.url), HOST).held == cursor.held
    )  # a kill loses nothing

    sent = len(receiver.received())
    relay.work(1800)
    assert receiver.received()[sent:] == []  # heartbeats only
    receiver.ahead_ms = 2 * DAY_MS  # two days later
    relay.work(1900)
    assert [value for _, value in receiver.samples()["cpu"]] == [0.0, 4.0, 1.0, 2.0, 3.0]
    names = [event.name for event in receiver.metadata_store.events.of_run(receiver.run(RUN).id)]
    assert sorted(names) == ["ahead 1", "ahead 2", "ahead 3", "right"]
    assert (cursor.held, cursor.held_why) == ({}, "")


def test_run_with_held_records_is_not_marked_delivered(
    journal: Journal,
    receiver: Receiver,
    relay: Relay,
    environ: dict[str, str],
) -> None:
    journal.t0 += 2 * DAY_MS
    journal.sample(0, cpu=1.0)
    journal.end()
    cursor = relay.serve(journal.folder, live=False)
    relay.work(5)
    assert relay.thread.idle  # the next relay retries
    assert (cursor.closed, cursor.held_records > 0) == ("", True)
    receiver.ahead_ms = 2 * DAY_MS
    again = relay.serve(journal.folder, live=False)
    relay.work(5)
    assert again.closed == "delivered"
    assert receiver.samples()["cpu"] == [(journal.t0, 1.0)]


def test_files_of_a_finished_run_are_sent_when_the_disk_of_the_server_has_space(
    journal: Journal, environ: dict[str, str], tmp_path: Path
) -> None:
    media = MediaJournal(journal)
    media.log("weights", b"1, 2, 3")
    media.journal.close()
    journal.end()
    with serving(tmp_path / "full") as served:
        files = served.app.services.files
        before, files.limits = files.limits, FileLimits(free_bytes=1 << 60)
        relay = Relay(served.url, environ)
        cursor = relay.serve(journal.folder, live=False)
        relay.work(100)
        assert "no space" in cursor.held_why
        assert (relay.thread.idle, relay.thread.done) == (True, False)  # another finished run may be served
        files.limits = before
        relay.work(100)
        assert (cursor.closed, cursor.held, cursor.counts["rejected"]) == ("delivered", {}, 0)
        assert relay.thread.done
        relay.close()


class OfflineDestination(Destination):
    """Refuses connections while `offline`; then records the ranges it receives."""

    name = "slow"

    def __init__(self) -> None:
        self.seqs: list[tuple[int, int]] = []
        self.offline = True
        self.attempts = 0

    def deliver(self, batch: Batch) -> None:
        self.attempts += 1
        if self.offline:
            raise ConnectionRefusedError("connection refused")
        if batch.rows > 5000:
            raise Rejected("too much at once")
        self.seqs.append((batch.first_seq, batch.last_seq))


def test_catches_up_after_a_week_offline(
    tmp_path: Path, environ: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """60,480 samples of 60 keys, 31 MB: a week at 10 s, delivered when the server returns."""
    folder = str(tmp_path / "runs" / RUN)
    about = {"run": RUN, "project": "p", "host": HOST, "role": "monitor", "pid": 6, "interval_s": 10.0}
    writer = JournalWriter(folder, MONITOR, about)
    relay = Relay("http://127.0.0.1:1", environ)
    cursor = relay.serve(folder, live=True)
    destination = OfflineDestination()
    monkeypatch.setattr(RunDelivery, "open", lambda self: destination)
    counts: list[int] = []
    read = delivery.RunDelivery._read

    def measured(self: RunDelivery, now_s: float) -> None:
        read(self, now_s)
        counts.append(sum(reader.bytes for reader in self._readers.values()))

    monkeypatch.setattr(delivery.RunDelivery, "_read", measured)
    week_s, t0 = 7 * 86_400, now_ms() - 7 * DAY_MS
    values = {f"key.{number}": float(number) for number in range(60)}
    for second in range(0, week_s, 10):
        assert writer.sample(t0 + second * 1000, values)
        if second % 3600 == 0:
            relay.clock.now_s = 1000.0 + second
            relay.work()
    writer.json(frames.EVENT, {"t": now_ms(), "name": "marker", "level": "info", "text": ""})
    assert destination.attempts <= 168  # once an hour
    destination.offline = False
    with processor_time.measured(time.process_time) as cost:
        relay.work(120)
    assert cost.times < 250
    assert cursor.counts["samples"] == 60_480
    assert all(
        first == before + 1
        for (_, before), (first, _) in zip(destination.seqs, destination.seqs[1:], strict=False)
    )
    assert max(counts) <= MAX_ROUND_BYTES + MAX_BATCH_BYTES
    writer.close()
    relay.close()
