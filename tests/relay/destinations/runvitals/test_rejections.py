"""Rejected records are saved and reported, and do not affect other records."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from runvitals.journal import frames
from runvitals.model.limits import ENVELOPES
from runvitals.relay.batch import LogRow
from runvitals.relay.destination import Retry
from runvitals.relay.destinations.runvitals.envelopes import MAX_GAPPED_VALUES, EnvelopeTable, split_batch
from tests.relay.journals import MONITOR, RUN, Journal, Sender
from tests.relay.receiver import Receiver
from tests.relay.recording_server import RecordingServer

EARLY_MS = 1000  # 1970: every server rejects it


@pytest.fixture
def receiver(tmp_path: Path) -> Iterator[Receiver]:
    receiver = Receiver(str(tmp_path / "server"))
    yield receiver
    receiver.close()


@pytest.fixture
def sender(journal: Journal, receiver: Receiver) -> Iterator[Sender]:
    sender = Sender(journal.folder, receiver.url)
    yield sender
    sender.kill()


def _rejected_records(sender: Sender) -> list[dict[str, Any]]:
    return [json.loads(line) for line in Path(sender.cursor.rejected_path).read_text().splitlines()]


def _deep(levels: int) -> Any:
    value: Any = 1
    for _ in range(levels):
        value = {"a": value}
    return value


def test_odd_rows_are_repaired_and_others_unchanged(
    journal: Journal, receiver: Receiver, sender: Sender
) -> None:
    odd: list[tuple[Any, dict[str, Any]]] = [
        (1, {"": 1}),
        (2, {"n" * 600: 2}),
        (3, {"_step": 3, "_time": 4}),
        (10**400, {"huge": 5}),
        (5, {"big": 10**400, "beside": 6}),
        (float("nan"), {"nan": 7}),
    ]
    journal.train.json(frames.INFO, {"t": journal.t0, "config": {"deep": _deep(150), "lr": 0.1}})
    for second in range(300):
        journal.log(second, second, loss=float(second))
    for step, data in odd:
        journal.train.json(frames.HISTORY, {"t": journal.t0 + 400_000, "step": step, "data": data})
    journal.train.json(frames.EVENT, {"t": journal.t0, "name": "alert", "level": "error", "text": "NaN"})
    sender.send()
    stored = receiver.samples()
    assert len(stored["loss"]) == 300
    assert {"(empty)", "_step_", "_time_", "huge", "beside", "nan"} <= set(stored)
    assert any(key.startswith("n" * 500) for key in stored)
    run = receiver.run(RUN)
    assert [event.text for event in receiver.metadata_store.events.of_run(run.id)] == ["NaN"]
    assert receiver.metadata_store.sections.read([run.id])[run.id].shared["config"]["lr"] == 0.1
    assert (sender.cursor.counts["rejected"], sender.cursor.rejection) == (0, "")
    assert receiver.statistics.rejections == []


def test_only_the_rejected_record_of_a_batch_is_dropped(
    journal: Journal, receiver: Receiver, sender: Sender
) -> None:
    for second in range(200):
        journal.sample(second, cpu=float(second))
        if second == 77:
            journal.monitor.sample(EARLY_MS, {"cpu": -1.0})
    journal.train.json(frames.EVENT, {"t": EARLY_MS, "name": "old", "level": "info", "text": ""})
    journal.train.json(frames.EVENT, {"t": journal.t0, "name": "alert", "level": "error", "text": "hot"})
    sender.send()
    assert [value for _, value in receiver.samples()["cpu"]] == [float(n) for n in range(200)]
    assert [event.text for event in receiver.metadata_store.events.of_run(receiver.run(RUN).id)] == ["hot"]
    row, event = _rejected_records(sender)
    assert (row["writer"], row["t"], row["record"]) == (MONITOR, EARLY_MS, {"values": {"cpu": -1.0}})
    assert "year 2000" in row["why"]
    assert event["record"]["name"] == "old"
    counts = sender.cursor.counts
    assert (counts["rejected"], counts["dropped"], counts["samples"], counts["notes"]) == (2, 1, 200, 1)
    assert sender.cursor.rejected_path in sender.cursor.rejection


def test_bisects_a_batch_to_find_the_rejected_record(
    journal: Journal, receiver: Receiver, sender: Sender
) -> None:
    for index in range(1000):
        section = "s" * 100 if index == 700 else f"section {index}"  # a server's section has 64 characters
        journal.train.json(frames.INFO, {"t": journal.t0, section: {"a": index}})
    sender.send()
    run = receiver.run(RUN)
    config = receiver.metadata_store.sections.read([run.id])[run.id].shared
    assert set(config) - {"writers"} == {f"section {index}" for index in range(1000)} - {"section 700"}
    (info,) = _rejected_records(sender)
    assert info["record"]["s" * 100] == {"a": 700}
    assert "expected a string of 1 to 64 characters" in info["why"]
    assert len(receiver.statistics.rejections) < 25


def test_delivers_12000_names(journal: Journal, receiver: Receiver, sender: Sender) -> None:
    for index in range(3000):
        journal.log(0, index, **{f"k{4 * index + i}": float(index) for i in range(4)})
    journal.log(1, 3000, **{f"w{index}": 1.0 for index in range(12_000)})
    sender.send()
    stored = receiver.samples()
    assert sum(key[0] == "k" for key in stored) == 12_000
    assert sum(key[0] == "w" for key in stored) == 12_000
    assert sender.cursor.counts["rejected"] == 0


def test_rows_of_many_names_are_sent_in_small_tables() -> None:
    class _Batch:
        samples: list[Any] = []
        notes: list[Any] = []
        logs = [LogRow(i, 1000 + i, i, {f"k{i}": 1.0}) for i in range(5000)]

    tables, _ = split_batch(_Batch, 0)  # type: ignore[arg-type]
    assert len(tables) < ENVELOPES
    assert sum(len(table.times_ms) for table in tables) == 5000
    for table in tables:
        assert isinstance(table, EnvelopeTable)
        assert len(table.keys) * len(table.seqs) <= MAX_GAPPED_VALUES
        assert table.seqs == sorted(table.seqs)


@pytest.mark.parametrize(
    "ack",
    [
        {"stored": True, "commands": 5},
        {"stored": True, "commands": [5]},
        {"stored": True, "commands": [{"id": float("inf"), "name": "drain"}]},
        {"stored": True, "commands": [{"id": 5}]},
        {"stored": True, "schema": True},
        {"acks": [5]},
        [],
    ],
)
def test_a_response_that_is_no_acknowledgement_is_retried(
    journal: Journal, target: RecordingServer, ack: object
) -> None:
    journal.log(0, 0, loss=1.0)
    target.responses.extend((200, {}, json.dumps(ack).encode()) for _ in range(5))
    sender = Sender(journal.folder, target.url)
    with pytest.raises(Retry, match=r"unexpected response|expected a JSON object"):
        sender.send()
    assert sender.cursor.counts["logs"] == 0
    sender.kill()


def test_rejection_by_a_proxy_is_retried(
    journal: Journal, receiver: Receiver, sender: Sender, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tests.relay import receiver as module

    journal.log(0, 0, loss=1.0)
    respond = module._respond

    async def page(send: Any, status: int, body: bytes, headers: Any = None) -> None:
        await respond(send, status, b"<html>Bad Request</html>", headers)

    monkeypatch.setattr(module, "_respond", page)
    receiver.faults.append((400, ""))
    with pytest.raises(Retry, match="Bad Request"):
        sender.send()
    sender.send()
    assert len(receiver.samples()["loss"]) == 1
    assert sender.cursor.counts["rejected"] == 0
