"""Delivery of a journal to a real server, with faults: complete, and exactly once."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from runvitals.journal import frames
from runvitals.journal.records import CONSOLE_HEAD
from runvitals.relay.destination import Gone, Retry
from runvitals.relay.engine.cursor import Cursor, find_cursors
from runvitals.relay.engine.destination_spec import DestinationSpec
from runvitals.relay.engine.undelivered import find_undelivered
from tests.relay.journals import HOST, RUN, Journal, Sender
from tests.relay.receiver import Receiver


@pytest.fixture
def receivers(tmp_path: Path) -> Iterator[Callable[..., Receiver]]:
    open_now: list[Receiver] = []

    def make(port: int = 0) -> Receiver:
        """Start a server over the same store; the previous one is stopped first."""
        while open_now:
            open_now.pop().close()
        open_now.append(Receiver(str(tmp_path / "server"), port))
        return open_now[-1]

    yield make
    for descriptor in open_now:
        descriptor.close()


@pytest.fixture
def receiver(receivers: Callable[..., Receiver]) -> Receiver:
    return receivers()


@pytest.fixture
def sender(journal: Journal, receiver: Receiver) -> Iterator[Sender]:
    sender = Sender(journal.folder, receiver.url)
    yield sender
    sender.kill()


def test_delivers_the_whole_journal(journal: Journal, receiver: Receiver, sender: Sender) -> None:
    journal.monitor.json(
        frames.INFO,
        {
            "t": journal.t0,
            "run": {"name": "seven", "project": "digits", "tags": ["a"]},
            "machine": {"cpus": 8},
        },
    )
    for second in range(3):
        journal.sample(second, cpu=10.0 + second, disk=2.0)
        journal.log(second, second, loss=1.0 / (second + 1))
    journal.train.json(frames.INFO, {"t": journal.t0, "config": {"lr": 0.1}})
    for part in (b"caf\xc3", b"\xa9\n"):
        journal.train.record(frames.CONSOLE, CONSOLE_HEAD.pack(1, journal.t0) + part)
    journal.event("marker")
    journal.end()
    sender.send()
    run = receiver.run(RUN)
    stored = receiver.samples()
    times = [journal.t0 + 1000 * second for second in range(3)]
    assert stored["cpu"] == list(zip(times, [10.0, 11.0, 12.0], strict=True))
    assert stored["disk"] == list(zip(times, [2.0] * 3, strict=True))
    assert stored["loss"] == list(zip(times, [1.0, 1 / 2, 1 / 3], strict=True))
    assert stored["_step"] == list(zip(times, [0.0, 1.0, 2.0], strict=True))
    assert (run.project, run.name, run.tags, run.state) == ("digits", "seven", ("a",), "finished")
    assert [event.name for event in receiver.metadata_store.events.of_run(run.id)] == ["marker"]
    assert "".join(piece.text for piece in receiver.metadata_store.console.tail(run.id).pieces) == "café\n"
    assert sender.delivery.caught_up
    assert sender.cursor.counts["samples"] == 3
    assert sender.cursor.counts["logs"] == 3
    assert sender.cursor.counts["rejected"] == 0


def test_delivered_records_are_not_sent_again(journal: Journal, receiver: Receiver, sender: Sender) -> None:
    journal.sample(0, cpu=1.0)
    sender.send()
    sender.kill()
    before = len(receiver.requests)
    second = Sender(journal.folder, receiver.url)
    second.send()
    assert len(receiver.requests) == before
    journal.sample(1, cpu=2.0)
    second.send()
    assert [value for _, value in receiver.samples()["cpu"]] == [1.0, 2.0]
    second.kill()


@pytest.mark.parametrize("fault", [503, 599], ids=["request lost", "answer lost"])
def test_sends_the_same_range_after_a_kill(
    journal: Journal, receiver: Receiver, sender: Sender, fault: int
) -> None:
    journal.sample(0, cpu=1.0)
    journal.event("marker")
    receiver.faults.append((fault, ""))
    with pytest.raises(Retry):
        sender.send()
    before = receiver.received()
    sender.kill()
    journal.sample(1, cpu=2.0)  # new records must not change the range being sent
    second = Sender(journal.folder, receiver.url)
    second.send()
    assert receiver.received()[: 2 * len(before)] == before * 2
    assert [value for _, value in receiver.samples()["cpu"]] == [1.0, 2.0]
    assert len(receiver.metadata_store.events.of_run(receiver.run(RUN).id)) == 1
    second.kill()


@pytest.mark.parametrize(("status", "after", "after_s"), [(429, "7", 7.0), (503, "2", 2.0), (502, "", None)])
def test_retries_after_the_delay_the_server_asks_for(
    journal: Journal, receiver: Receiver, sender: Sender, status: int, after: str, after_s: float | None
) -> None:
    journal.sample(0, cpu=1.0)
    receiver.faults.append((status, after))
    with pytest.raises(Retry, match=str(status)) as raised:
        sender.send()
    assert raised.value.after_s == after_s
    sender.send()
    assert receiver.samples()["cpu"] == [(journal.t0, 1.0)]
    assert sender.cursor.counts["samples"] == 1


def test_counts_and_skips_rejected_records(journal: Journal, receiver: Receiver, sender: Sender) -> None:
    journal.monitor.sample(1000, {"cpu": 1.0})  # 1970: 422
    journal.event("marker")
    sender.send()
    journal.sample(1, cpu=2.0)
    sender.send()
    assert sender.cursor.counts["rejected"] == 1
    assert "(the year 2000) or later" in sender.cursor.rejection
    assert receiver.samples()["cpu"] == [(journal.t0 + 1000, 2.0)]
    assert (
        len(receiver.metadata_store.events.of_run(receiver.run(RUN).id)) == 1
    )  # the valid record in the same batch


def test_continues_after_a_server_outage(journal: Journal, receivers: Callable[..., Receiver]) -> None:
    receiver = receivers()
    sender = Sender(journal.folder, receiver.url)
    journal.sample(0, cpu=1.0)
    sender.send()
    receiver.close()
    journal.sample(1, cpu=2.0)
    for _ in range(2):
        with pytest.raises(ConnectionError, match=f"could not reach {receiver.url}: Connection refused"):
            sender.send()
    receiver = receivers(receiver.port)
    journal.sample(2, cpu=3.0)
    sender.send()
    assert [value for _, value in receiver.samples()["cpu"]] == [1.0, 2.0, 3.0]
    assert sender.cursor.error == ""
    sender.kill()


def test_lost_position_causes_no_duplicates(journal: Journal, receiver: Receiver, sender: Sender) -> None:
    for second in range(3):
        journal.sample(second, cpu=float(second))
        journal.event(f"marker {second}")
        sender.send()
    sender.kill()
    os.unlink(sender.cursor.path)
    again = Sender(journal.folder, receiver.url)
    again.send()
    assert [value for _, value in receiver.samples()["cpu"]] == [0.0, 1.0, 2.0]
    events = receiver.metadata_store.events.of_run(receiver.run(RUN).id)
    assert [event.name for event in events] == ["marker 0", "marker 1", "marker 2"]
    again.kill()


def test_rows_of_the_same_millisecond_get_distinct_times(
    journal: Journal, receiver: Receiver, sender: Sender
) -> None:
    for step in range(3):
        journal.log(0, step, loss=float(step))
    sender.send()
    stored = receiver.samples()
    assert stored["loss"] == [(journal.t0 + step, float(step)) for step in range(3)]
    assert [value for _, value in stored["_time"]] == [float(journal.t0)] * 3


def test_sends_heartbeats_of_a_running_run(journal: Journal, receiver: Receiver, sender: Sender) -> None:
    journal.sample(0, cpu=1.0)
    sender.delivery.live = True
    sender.send(now_s=100.0)
    before = len(receiver.requests)
    sender.delivery.step(105.0)
    assert len(receiver.requests) == before
    sender.delivery.step(110.0)
    assert [set(envelope) for envelope in receiver.requests[-1]] == [{"run", "writer", "project", "about"}]
    assert len(receiver.requests) == before + 1


def test_forwards_a_stop_request_once(journal: Journal, receiver: Receiver, sender: Sender) -> None:
    journal.sample(0, cpu=1.0)
    sender.send()
    receiver.request_stop(RUN)
    for second in (1, 2):
        journal.sample(second, cpu=1.0)
        sender.send()
    assert sender.stops == [f"requested on {receiver.url}"]


def test_run_in_the_trash_raises_gone(journal: Journal, receiver: Receiver, sender: Sender) -> None:
    journal.sample(0, cpu=1.0)
    sender.send()
    receiver.recorder.heartbeats.add_deleted(receiver.run(RUN).id)
    journal.sample(1, cpu=1.0)
    with pytest.raises(Gone, match="is in the trash"):
        sender.send()


def test_token_is_sent_but_not_stored(
    journal: Journal, receiver: Receiver, sender: Sender, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RUNVITALS_SERVER", receiver.url)
    monkeypatch.setenv("RUNVITALS_TOKEN", "rvt_secret")
    journal.sample(0, cpu=1.0)
    sender.send()
    assert set(receiver.tokens) == {"Bearer rvt_secret"}
    files = list(Path(journal.folder, "relay").iterdir())
    assert files
    assert all(b"rvt_secret" not in file.read_bytes() for file in files)


def test_damaged_position_starts_over_and_is_reported(journal: Journal, receiver: Receiver) -> None:
    journal.sample(0, cpu=1.0)
    sender = Sender(journal.folder, receiver.url)
    sender.send()
    sender.kill()
    path = Cursor(journal.folder, DestinationSpec(receiver.url), HOST).path
    Path(path).write_text(json.dumps({"version": 99}))
    cursor = Cursor(journal.folder, DestinationSpec(receiver.url), HOST)
    assert "version 99" in cursor.damaged
    assert cursor.positions == {}


_CURSOR = {
    "version": 1, "destination": "http://host", "run": "abc", "host": HOST, "writers": {}, "state": {},
    "counts": {}, "error": "", "rejection": "", "closed": "", "cwd": "", "delivered_ms": 0,
}  # fmt: skip
_NOT_CURSORS: dict[str, Callable[[Path], object]] = {
    "a FIFO": os.mkfifo,
    "a folder": Path.mkdir,
    "a link to itself": lambda path: path.symlink_to(path.name),
    "nested too deeply": lambda path: path.write_text("[" * 100_000),
    "an infinite position": lambda path: path.write_text(
        json.dumps({**_CURSOR, "writers": {"train.a.1.2": {"next": float("inf")}}})
    ),
    "an infinite time": lambda path: path.write_text(json.dumps({**_CURSOR, "delivered_ms": float("inf")})),
}


@pytest.mark.parametrize("what", _NOT_CURSORS)
def test_what_is_no_position_is_reported_and_holds_up_nothing(journal: Journal, what: str) -> None:
    spec = DestinationSpec("http://host")
    path = Path(Cursor(journal.folder, spec, HOST).path)
    path.parent.mkdir(exist_ok=True)
    _NOT_CURSORS[what](path)
    list(find_cursors(journal.folder))
    cursor = Cursor(journal.folder, spec, HOST)
    assert str(path) in cursor.damaged
    assert (cursor.positions, cursor.load_facts()) == ({}, None)


@pytest.mark.parametrize("value", [[], {}, {**_CURSOR, "destination": []}, {**_CURSOR, "host": {}}])
def test_files_that_are_no_positions_are_not_found(journal: Journal, value: object) -> None:
    path = Path(Cursor(journal.folder, DestinationSpec("http://host"), HOST).path)
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(value))
    assert [cursor.host for cursor in find_cursors(journal.folder)] in ([], ["{}"])


def test_a_run_whose_positions_cannot_be_listed(journal: Journal) -> None:
    Path(journal.folder, "relay").symlink_to("relay")
    assert list(find_cursors(journal.folder)) == []
    directory = str(Path(journal.folder).parents[1])
    assert find_undelivered(directory, HOST, []) == {}


def test_a_run_whose_positions_have_no_folder(journal: Journal) -> None:
    Path(journal.folder, "relay").write_text("")
    cursor = Cursor(journal.folder, DestinationSpec("http://host"), HOST)
    assert "relay" in cursor.damaged
    with pytest.raises(OSError, match="relay"):
        cursor.save()
