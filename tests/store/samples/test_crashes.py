"""Acknowledged samples are stored exactly once after kill -9, a full disk, and damage."""

from __future__ import annotations

import dataclasses
import json
import os
import random
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from runvitals.base.buckets import grid
from runvitals.server.pairing.check import check_metadata_store
from runvitals.store.samples.interface import StoreError
from runvitals.store.samples.sqlite import SqliteChunks
from runvitals.store.samples.sqlite.check import check
from runvitals.store.samples.sqlite.month_files import SET_ASIDE
from tests.patience import PATIENCE_S
from tests.store.samples.conformance import T0
from tests.store.samples.writer_process import METRICS, SETTINGS, TICKS, batch

RUNS = 4
ROOT = Path(__file__).parents[3]


class WriterProcess:
    """Runs `writer_process`."""

    def __init__(self, folder: str) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.store.samples.writer_process", folder, str(RUNS)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        )
        assert self._process.stdout is not None
        self.first_line = self._process.stdout.readline()
        self.pid = self._process.pid

    def kill(self) -> dict[int, int]:
        """Kill it. Returns the last acknowledged batch of each run."""
        self._process.send_signal(signal.SIGKILL)
        output, _ = self._process.communicate(timeout=PATIENCE_S)
        # A line may be incomplete: that batch does not count as acknowledged.
        lines = [line.split() for line in output[: output.rfind(b"\n") + 1].decode().splitlines()]
        return {int(fields[0]): int(fields[1]) for fields in lines if len(fields) == 2}


def test_kill_9_neither_loses_nor_duplicates_acknowledged_samples(folder: str) -> None:
    rng = random.Random(5)
    acknowledged: dict[int, int] = {}
    for _ in range(5):
        server = WriterProcess(folder)
        time.sleep(rng.uniform(0.05, 0.7))
        acknowledged |= server.kill()
        assert server.first_line == b"open\n"
    assert sum(acknowledged.values()) > 100
    assert list(check(folder)) == []
    with SqliteChunks(folder, SETTINGS) as store:
        for _ in ("as left", "sealed"):
            for run, last in acknowledged.items():
                _assert_complete(store, run, last)
            store.flush()
        assert store.stats().problem is None
    assert list(check(folder)) == []


def _assert_complete(store: SqliteChunks, run: int, last: int) -> None:
    """A run has all batches up to `last`, and possibly some that were durable but not acknowledged."""
    series = store.read([run], None, 0, T0 * 2).series
    assert [series.metric for series in series] == list(METRICS)
    batches = len(series[0].t) // TICKS
    assert batches > last
    written = [batch(run, seq) for seq in range(batches)]
    times = np.concatenate([sent.t for sent in written])
    values = np.concatenate([sent.values for sent in written])
    for column, stored in enumerate(series):
        np.testing.assert_array_equal(stored.t, times)
        np.testing.assert_array_equal(stored.values, values[:, column])
    assert store.append(written).stored == 0  # all are recognized as duplicates


def in_namespace(script: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a shell script that may mount file systems; `$0` and on are the arguments."""
    namespace = ["unshare", "--mount", *([] if os.geteuid() == 0 else ["--map-root-user"])]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    return subprocess.run(
        [*namespace, "sh", "-c", script, *arguments],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )


def may_mount() -> bool:
    try:
        return in_namespace("mount -t tmpfs none /mnt").returncode == 0
    except FileNotFoundError:
        return False


needs_mounts = pytest.mark.skipif(not may_mount(), reason="needs permission to mount file systems")


@needs_mounts
def test_a_full_disk_rejects_batches_and_keeps_acknowledged_ones(tmp_path: Path) -> None:
    script = 'mount -t tmpfs -o size=3m none "$1" && exec "$0" -m tests.store.samples.full_disk "$1"'
    done = in_namespace(script, sys.executable, str(tmp_path))
    assert done.returncode == 0, done.stderr
    observed = json.loads(done.stdout)
    assert "log.db: database or disk is full" in observed["rejected"][0]
    while_full, afterwards = observed["problems_reported"]
    assert while_full.endswith("database or disk is full"), "of the log or of a month file"
    assert afterwards is None
    full = len(observed["acknowledged"]) - 50
    assert full > 20
    assert observed["readable_while_full"] == observed["acknowledged"][:full]
    assert observed["readable"] == observed["reopened"] == observed["acknowledged"]
    assert (observed["problems"], observed["unsealed"]) == ([], 0)


@needs_mounts
def test_a_store_on_a_read_only_file_system_can_be_checked_but_not_opened(tmp_path: Path) -> None:
    program = """
import sys
from runvitals.store.samples.sqlite import SqliteChunks
from runvitals.store.samples.sqlite.check import check
from runvitals.store.samples.sqlite.inventory import inventory
print([str(problem) for problem in check(sys.argv[1])], [file.samples for file in inventory(sys.argv[1])])
try:
    SqliteChunks(sys.argv[1])
except OSError as error:
    print(error)
"""
    folder = tmp_path / "store"
    with SqliteChunks(str(folder), SETTINGS) as store:
        store.append([batch(1, seq) for seq in range(50)])
        store.flush()
    script = 'mount --bind "$2" "$2" && mount -o remount,bind,ro "$2" && exec "$0" -c "$1" "$2"'
    done = in_namespace(script, sys.executable, program, str(folder))
    assert done.returncode == 0, done.stderr
    checked, rejected = done.stdout.splitlines()
    assert checked == "[] [None, 750]"
    assert rejected == f"the store in {folder} is not writable: Read-only file system"


@needs_mounts
@pytest.mark.parametrize("left", ["closed", "killed"])
def test_a_store_on_a_read_only_disk_can_be_backed_up(tmp_path: Path, left: str) -> None:
    folder, into = tmp_path / "store", tmp_path / "copy"
    writing = f"""
import os
from runvitals.server.metadata_store import open_metadata_store
from runvitals.server.pairing import pairing
from runvitals.server.runs.storage.writer_registration import WriterRegistration
from runvitals.store.samples.sqlite import SqliteChunks
from tests.store.samples.writer_process import batch
store, metadata_store = SqliteChunks({str(folder)!r}), open_metadata_store({str(folder / "catalogue.db")!r})
pairing.pair(store, metadata_store)
metadata_store.writers.join([WriterRegistration("otter", "monitor.node1.1")], 0)
metadata_store.metrics.schema([f"key{{n}}" for n in range(9)])
store.append([batch(1, seq) for seq in range(50)])
store.flush()
store.append([batch(1, 50)])
if {left == "killed"}:
    os._exit(0)
store.close()
metadata_store.close()
"""
    done = in_namespace('exec "$0" -c "$1"', sys.executable, writing)
    assert done.returncode == 0, done.stderr
    script = (
        'mount --bind "$1" "$1" && mount -o remount,bind,ro "$1" && '
        'exec "$0" -m runvitals backup "$2" --store "$1"'
    )
    done = in_namespace(script, sys.executable, str(folder), str(into))
    assert done.returncode == 0, done.stderr
    months = [os.path.basename(path) for path in files(str(into))]
    assert sorted(os.listdir(into)) == ["SHA256SUMS", "catalogue.db", "log.db", "manifest.json", *months]
    assert list(check(str(into))) == []
    assert list(check_metadata_store(str(into), str(into / "catalogue.db"))) == []
    with SqliteChunks(str(into), SETTINGS) as store:
        _assert_complete(store, 1, 50)


def test_a_second_process_is_rejected_with_the_pid_of_the_first(folder: str) -> None:
    server = WriterProcess(folder)
    try:
        with pytest.raises(StoreError) as rejected:
            SqliteChunks(folder)
    finally:
        server.kill()
    assert str(rejected.value) == (
        f"the store in {folder} is in use by process {server.pid}: stop it first, or use another folder"
    )
    SqliteChunks(folder).close()  # the kernel has released the lock


def files(folder: str) -> list[str]:
    """The month files, in order."""
    return [
        os.path.join(folder, name)
        for name in sorted(os.listdir(folder))
        if name.endswith("db") and "-" in name
    ]


def damage(path: str, sql: str) -> None:
    connection = sqlite3.connect(path)
    with connection:
        connection.execute(sql)
    connection.close()


def test_a_damaged_chunk_is_reported_and_the_rest_read(folder: str) -> None:
    with SqliteChunks(folder, SETTINGS) as store:
        store.append([batch(1, seq) for seq in range(100)])
        store.flush()
    broken = "CAST(substr(data, 1, 8) || x'00ff' || substr(data, 11) AS BLOB)"
    damage(files(folder)[0], f"UPDATE data SET data = {broken} WHERE id = 2")

    problems = [str(problem) for problem in check(folder)]
    assert len(problems) == 1
    assert "run 1: metric 2, chunk from" in problems[0]
    assert "the checksum does not match" in problems[0]
    with SqliteChunks(folder, SETTINGS) as store:
        result = store.read([1], None, 0, T0 * 2)
        assert [len(series.t) for series in result.series] == [500, 400, 500]
        (damaged,) = result.damaged
        assert (damaged.run, damaged.metric, damaged.reason) == (1, 2, "a chunk: the checksum does not match")
        assert damaged.t0_ms == batch(1, 0).t[0]
        assert store.read_buckets([1], [2], grid(0, T0 * 2, 500)).damaged == []  # its summary is intact
        assert len(store.read_buckets([1], [2], grid(damaged.t0_ms, damaged.t1_ms, 500)).damaged) == 1
        store.compact()  # does not change it

        # A write into its range sets it aside.
        store.append([dataclasses.replace(batch(1, 0), seq=1000)])
        store.flush()
        result = store.read([1], None, 0, T0 * 2)
        assert [len(series.t) for series in result.series] == [500, 405, 500]
        assert [(damage.t0_ms, damage.t1_ms) for damage in result.damaged] == [(damaged.t0_ms, damaged.t1_ms)]
    assert ["set aside" in str(problem) for problem in check(folder)] == [True]


def test_a_damaged_pack_is_reported_and_the_rest_read(folder: str) -> None:
    with SqliteChunks(folder, SETTINGS) as store:
        store.append([batch(run, 0) for run in (1, 2)])
        store.flush()
    damage(
        files(folder)[0], "UPDATE pack SET body = CAST(substr(body, 1, 20) || x'00ff' AS BLOB) WHERE run=1"
    )

    assert ["run 1: pack from" in str(problem) for problem in check(folder)] == [True]
    with SqliteChunks(folder, SETTINGS) as store:
        result = store.read([1, 2], [1], 0, T0 * 2)
        assert [series.run for series in result.series] == [2]
        assert [(damage.run, damage.metric) for damage in result.damaged] == [(1, None)]
        combined = store.aggregate(1, [1, 2], 0, T0 * 2)
        assert combined.series[0].n.tolist() == [TICKS]
        assert len(combined.damaged) == 1
        assert [latest.run for latest in store.latest([1, 2])] == [2]

        store.append([batch(1, 1)])
        store.flush()
        assert len(store.read([1], [1], 0, T0 * 2).series[0].t) == TICKS
        assert store.stats().problem is None


def test_a_damaged_file_is_reported_and_the_others_read(folder: str) -> None:
    with SqliteChunks(folder, SETTINGS) as store:
        store.append([batch(1, seq) for seq in range(1000)])
        store.flush()
        whole = len(store.read([1], [1], 0, T0 * 2).series[0].t)
    first, second = files(folder)
    with open(first, "r+b") as file:
        file.seek(8192)
        file.write(b"\xde\xad" * (os.path.getsize(first) // 2 - 4096))

    assert any(str(problem).startswith(first) for problem in check(folder))
    with SqliteChunks(folder, SETTINGS) as store:
        result = store.read([1], [1], 0, T0 * 2)
        assert 0 < len(result.series[0].t) < whole
        assert [first in damaged.reason for damaged in result.damaged] == [True]
        combined = store.aggregate(1, [1], 0, T0 * 2)
        assert combined.series[0].n.tolist() == [len(result.series[0].t)]
        assert len(combined.damaged) == 1
        assert store.append([batch(2, 1)]).stored == 1
        assert len(store.read([2], [1], 0, T0 * 2).series[0].t) == TICKS
    assert os.path.exists(second)


def test_a_damaged_row_of_the_log_is_set_aside(folder: str) -> None:
    with SqliteChunks(folder, SETTINGS) as store:
        for seq in range(3):
            store.append([batch(1, seq)])
    damage(os.path.join(folder, "log.db"), "UPDATE log SET batches = substr(batches, 1, 50) WHERE seq = 2")

    with SqliteChunks(folder, SETTINGS) as store:
        assert len(store.read([1], [1], 0, T0 * 2).series[0].t) == 2 * TICKS
        assert store.append([batch(1, 1)]).stored == 1  # it is not recognized as a duplicate
    assert any("moved to the table `damaged`" in str(problem) for problem in check(folder))


@pytest.mark.parametrize("how", ["not a database", "cut off", "empty", "a folder"])
def test_a_month_file_that_cannot_be_opened_is_set_aside_and_the_rest_read(folder: str, how: str) -> None:
    with SqliteChunks(folder, SETTINGS) as store:
        store.append([batch(1, seq) for seq in range(1000)])
        store.flush()
        whole = len(store.read([1], [1], 0, T0 * 2).series[0].t)
    first, _ = files(folder)
    spoil(first, how)

    with SqliteChunks(folder, SETTINGS) as store:
        stats = store.stats()
        assert stats.problem is None
        assert stats.warnings == (f"{first}.damaged-1 is {SET_ASIDE}: `runvitals store repair`",)
        for _ in range(2):
            result = store.read([1], [1], 0, T0 * 2)
            assert 0 < len(result.series[0].t) < whole
            assert [damage.reason for damage in result.damaged] == [f"{first}.damaged-1 is {SET_ASIDE}"]
            assert len(store.aggregate(1, [1], 0, T0 * 2).damaged) == 1
            assert store.latest([1])[0].metrics.tolist() == list(METRICS)
            assert 1 in store.active_runs(0)
            # Further samples of that month are written to a new file.
            assert store.append([batch(2, 1)]).stored in (0, 1)
            store.flush()
            assert len(store.read([2], [1], 0, T0 * 2).series[0].t) == TICKS
    assert any("damaged-1" in str(problem) for problem in check(folder))


def spoil(path: str, how: str) -> None:
    if how == "a folder":
        os.unlink(path)
        os.mkdir(path)
        return
    with open(path, "r+b") as file:
        if how == "not a database":
            file.write(b"\xde\xad" * 4096)
        else:
            file.truncate(os.path.getsize(path) // 2 if how == "cut off" else 0)


def test_a_month_file_that_is_damaged_while_in_use_does_not_stop_writes(folder: str) -> None:
    with SqliteChunks(folder, SETTINGS) as store:
        store.append([batch(1, seq) for seq in range(10)])
        store.flush()
    (path,) = files(folder)
    connection = sqlite3.connect(path)
    (page,) = connection.execute("SELECT rootpage FROM sqlite_master WHERE name='pack_run'").fetchone()
    connection.close()
    with open(path, "r+b") as file:
        file.seek((page - 1) * 4096)
        file.write(b"\xff" * 4096)
    with SqliteChunks(folder, SETTINGS) as store:
        store.append([batch(2, 0)])
        with pytest.raises(StoreError, match="malformed"):
            store.flush()
        store.flush()
        assert len(store.read([2], [1], 0, T0 * 2).series[0].t) == TICKS
        assert [path in warning for warning in store.stats().warnings] == [True]
