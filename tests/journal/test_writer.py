"""The writer: acknowledged records survive a kill, and every file can be read without the others."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from runvitals.journal import frames, paths
from runvitals.journal.reader import Tail, read_run
from runvitals.journal.records import Record
from runvitals.journal.writer import JournalWriter
from tests.isolated import printed

SRC = Path(__file__).parents[2] / "src"
linux = pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")


def read(folder: Path) -> list[Record]:
    return list(read_run(str(folder)))


def samples(records: list[Record]) -> list[int]:
    return [record.time_ms for record in records if record.type == frames.SAMPLE]


def test_what_is_written_is_read(tmp_path: Path) -> None:
    journal = JournalWriter(
        str(tmp_path / "runs" / "abc"), "train.n1.7", {"run": "abc", "role": "train", "rank": None}
    )
    assert journal.json(frames.HISTORY, {"t": 5, "step": 1, "data": {"loss": 0.5}})
    assert journal.sample(6, {"cpu": 50.0})
    assert journal.record(frames.CONSOLE, b"\x02" + (7).to_bytes(8, "little") + b"oops\n")
    start, history, schema, sample, console = read(tmp_path / "runs" / "abc")
    assert (
        start.value.items()
        >= {"format": 1, "writer": "train.n1.7", "segment": 0, "run": "abc", "role": "train"}.items()
    )
    assert start.value.get("rank") is None
    assert (history.type, history.time_ms, history.value["data"]) == (frames.HISTORY, 5, {"loss": 0.5})
    assert (schema.type, schema.value) == (frames.SCHEMA, {"id": 0, "keys": ["cpu"]})
    assert (sample.time_ms, list(sample.keys), sample.values, sample.value) == (6, ["cpu"], (50.0,), None)
    assert (console.time_ms, console.value[9:]) == (7, b"oops\n")
    assert [record.seq for record in (start, history, schema, sample, console)] == [0, 1, 2, 3, 4]
    journal.close()


def test_each_file_of_a_writer_can_be_read_without_the_others(tmp_path: Path) -> None:
    journal = JournalWriter(str(tmp_path), "monitor.n1.1", {"run": "abc"}, segment_bytes=1000)
    for i in range(30):
        assert journal.sample(i, {"cpu": 1.0, "memory_percent": 2.0})
    journal.close()
    assert [
        paths.segment_path(str(tmp_path), "monitor.n1.1", i) for i in range(journal.segment)
    ] == journal.rotated
    everything = samples(read(tmp_path))
    assert everything == list(range(30))
    os.unlink(journal.rotated[0])
    rest = read(tmp_path)
    assert rest[0].type == frames.START
    assert samples(rest) == everything[-len(samples(rest)) :]
    assert len(samples(rest)) >= 10


def test_the_next_file_exists_already_after_an_interrupted_call(tmp_path: Path) -> None:
    journal = JournalWriter(str(tmp_path), "train.n1.7", {"run": "abc"}, segment_bytes=1000)
    Path(paths.segment_path(str(tmp_path), "train.n1.7", 1)).touch()
    assert all(journal.json(frames.HISTORY, {"t": n, "data": {"n": n}}) for n in range(100))
    assert journal.lost == 0
    rows = [record.value["data"]["n"] for record in read(tmp_path) if record.type == frames.HISTORY]
    assert rows == list(range(100))


def test_two_writers_share_a_folder(tmp_path: Path) -> None:
    first = JournalWriter(str(tmp_path), "monitor.n1.1", {})
    other = JournalWriter(str(tmp_path), "monitor.n2.1", {})
    for i in range(20):
        first.sample(i, {"cpu": 1.0})
        other.sample(100 + i, {"gpu.0.temp": 2.0})
    records = read(tmp_path)
    assert samples([r for r in records if r.writer == "monitor.n1.1"]) == list(range(20))
    assert samples([r for r in records if r.writer == "monitor.n2.1"]) == list(range(100, 120))
    first.close()
    other.close()


def test_a_writers_name_cannot_be_used_twice(tmp_path: Path) -> None:
    first = JournalWriter(str(tmp_path), "monitor.n1.1", {})
    with pytest.raises(FileExistsError, match=r"monitor\.n1\.1\.00000\.rvj"):
        JournalWriter(str(tmp_path), "monitor.n1.1", {})
    assert first.sample(1, {"cpu": 1.0})
    first.close()
    assert samples(read(tmp_path)) == [1]


def test_the_error_names_a_folder_that_cannot_be_written_to(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for folder in (tmp_path / "file" / "runs", Path("/proc/runvitals")):
        with pytest.raises(OSError, match=str(folder)):
            JournalWriter(str(folder), "monitor.n1.1", {})


def test_a_writers_name_cannot_contain_a_path(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"invalid writer '\.\./monitor'"):
        JournalWriter(str(tmp_path), "../monitor", {})


def test_a_record_that_is_too_large_is_rejected_and_others_are_written(tmp_path: Path) -> None:
    journal = JournalWriter(str(tmp_path), "train.n1.7", {})
    with pytest.raises(ValueError, match="at most 16777216 are allowed"):
        journal.record(frames.INFO, bytes(frames.MAX_PAYLOAD + 1))
    assert journal.json(frames.EVENT, {"t": 1})
    journal.close()
    assert [record.seq for record in read(tmp_path)] == [0, 1]


def test_a_forked_child_closes_the_file_without_writing(tmp_path: Path) -> None:
    journal = JournalWriter(str(tmp_path), "train.n1.7", {})
    size = os.path.getsize(journal.path)
    journal.forget()
    assert not journal.json(frames.EVENT, {"t": 1})
    assert os.path.getsize(journal.path) == size


WRITE_UNTIL_KILLED = """
import os, sys
from runvitals.journal.writer import JournalWriter
journal = JournalWriter(sys.argv[1], "monitor.n1." + sys.argv[2], {}, segment_bytes=20_000)
values = {f"cpu.{i}.cpu_percent": 0.5 for i in range(40)}
n = 0
while journal.sample(n, values):
    os.write(1, n.to_bytes(4, "little"))
    n += 1
"""


def test_kill_9_loses_no_acknowledged_sample(tmp_path: Path) -> None:
    delays = random.Random(4)
    for life in range(12):
        command = [sys.executable, "-S", "-c", WRITE_UNTIL_KILLED, str(tmp_path), str(life)]
        with subprocess.Popen(command, env={"PYTHONPATH": str(SRC)}, stdout=subprocess.PIPE) as process:
            assert process.stdout is not None
            acknowledged = process.stdout.read(4)
            time.sleep(delays.uniform(0, 0.02))  # kill it at a random point of its writing
            process.send_signal(signal.SIGKILL)
            acknowledged += process.stdout.read()
        last = int.from_bytes(acknowledged[-4:], "little")
        tail = Tail(str(tmp_path))
        written = samples([r for r in tail.poll() if r.writer == f"monitor.n1.{life}"])
        assert written == list(range(len(written)))
        assert len(written) in (last + 1, last + 2)  # killed between the write and its confirmation
        assert tail.problems == []


def descriptor_of(path: str) -> int:
    for name in os.listdir("/proc/self/fd"):
        if os.path.realpath(f"/proc/self/fd/{name}") == path:
            return int(name)
    raise AssertionError(f"{path} is not open")


@linux
def test_the_next_file_begins_if_an_incomplete_record_cannot_be_removed(tmp_path: Path) -> None:
    journal = JournalWriter(str(tmp_path), "train.n1.7", {})
    # A pipe in place of the file: it accepts part of a long record and cannot be truncated.
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    os.dup2(writing, descriptor_of(journal.path))
    assert not journal.record(frames.INFO, bytes(1_000_000))
    os.close(reading)
    os.close(writing)
    assert journal.json(frames.EVENT, {"t": 1, "name": "marker"})
    journal.close()
    assert (journal.segment, journal.rotated) == (1, [])
    start, again, lost, marker = read(tmp_path)
    assert (start.value["segment"], again.value["segment"], again.type) == (0, 1, frames.START)
    assert (lost.value["name"], lost.value["count"], marker.value["name"]) == ("records_lost", 1, "marker")


@linux
def test_a_failed_sync_is_reported(tmp_path: Path) -> None:
    journal = JournalWriter(str(tmp_path), "train.n1.7", {}, segment_bytes=1000)
    first = journal.path
    # `fdatasync` of a pipe fails when the next file begins.
    reading, writing = os.pipe()
    os.dup2(writing, descriptor_of(journal.path))
    os.close(writing)
    journal.record(frames.INFO, bytes(1000))
    journal.json(frames.EVENT, {"t": 1, "name": "marker"})
    journal.close()
    os.close(reading)
    _, _, failed, marker = read(tmp_path)
    assert (failed.value["name"], failed.value["level"], marker.value["name"]) == (
        "sync_failed",
        "error",
        "marker",
    )
    assert first in failed.value["text"]


def test_the_modules_used_by_the_monitor_import_nothing_heavy() -> None:
    heavy = ["re", "json", "typing", "dataclasses", "collections", "subprocess", "socket", "pathlib", "enum",
             "logging", "threading", "functools", "contextlib"]  # fmt: skip
    program = f"""
import runvitals.journal.writer, runvitals.journal.sealing, runvitals.journal.reader
print([name for name in {heavy} if name in sys.modules])
"""
    assert printed(program) == "[]\n"


def test_a_lone_surrogate_is_replaced(tmp_path: Path) -> None:
    journal = JournalWriter(str(tmp_path), "monitor.here.1", {})
    journal.json(frames.EVENT, {"t": 1, "name": "sync_failed", "text": "/data/caf\udce9: \N{GRINNING FACE}"})
    journal.close()
    tail = Tail(str(tmp_path))
    events = [record.value for record in tail.poll() if record.type == frames.EVENT]
    assert [event["text"] for event in events] == ["/data/caf\ufffd: \N{GRINNING FACE}"]
    assert tail.problems == []
