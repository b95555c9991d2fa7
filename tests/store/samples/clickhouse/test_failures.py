"""Nothing that was acknowledged is lost, and nothing is stored twice: ClickHouse is away or killed, servers
race, the server of runvitals is killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from runvitals.store.samples.clickhouse import ClickHouseAddress, ClickHouseStore
from runvitals.store.samples.clickhouse.insertion import Insertion
from runvitals.store.samples.clickhouse.rows import AcceptedBatch
from runvitals.store.samples.clickhouse.waiting_batches import WaitingBatches
from runvitals.store.samples.interface import CommitAck, StoreError, StoreUnavailable
from runvitals.store.samples.sqlite.log import Pairing
from tests.patience import PATIENCE_S, eventually
from tests.store.samples.clickhouse.server import PROMPT, ClickHouseServer, installed, open_store
from tests.store.samples.conformance import ALL, batch, samples_of

WRITER = Path(__file__).with_name("writer_process.py")


@pytest.fixture
def own_server(tmp_path: Path) -> Iterator[ClickHouseServer]:
    """A server that the test may kill."""
    if not installed("debian"):
        pytest.skip("clickhouse-server is not installed")
    server = ClickHouseServer(tmp_path / "clickhouse")
    yield server
    server.stop()


def test_batches_wait_while_clickhouse_is_away(own_server: ClickHouseServer, tmp_path: Path) -> None:
    with open_store(own_server.address(), tmp_path / "store") as store:
        store.append([batch(1, [0], [1.0])])
        own_server.kill()
        acks = [store.append([batch(seq, [seq], [float(seq)])]) for seq in (2, 3, 1)]
        assert acks[:2] == [CommitAck(1, 0)] * 2
        stats = store.stats()
        assert stats.problem is None
        assert any("wait for ClickHouse" in warning for warning in stats.warnings)
        with pytest.raises(StoreUnavailable, match="cannot be reached"):
            store.read([1], None, *ALL)
        own_server.start()
        eventually(lambda: not store.stats().warnings)
        assert samples_of(store.read([1], None, *ALL)) == {(1, 1): [(0, 1.0), (2, 2.0), (3, 3.0)]}
        assert store.append([batch(2, [2], [9.0])]) == CommitAck(0, 1)


def test_a_store_that_is_opened_while_clickhouse_is_away(
    own_server: ClickHouseServer, tmp_path: Path
) -> None:
    address = own_server.address()
    with open_store(address, tmp_path / "a") as store:
        store.pair(Pairing("ours", 1, "metadata"))
    own_server.kill()

    def wrong() -> None:
        raise StoreError("the metadata store belongs to a different store")

    away = [ClickHouseStore(address, str(tmp_path / name), PROMPT, may_be_away=True) for name in "abc"]
    paired, never_paired, mismatched = away
    try:
        assert not any(store.is_prepared for store in away)
        with pytest.raises(StoreUnavailable, match="cannot be reached"):
            paired.append([batch(1, [0], [1.0])])
        paired.pair_later("ours", lambda: None)
        never_paired.pair_later(None, lambda: None)
        mismatched.pair_later("theirs", wrong)
        for store in (paired, mismatched):
            assert store.append([batch(1, [0], [1.0])]) == CommitAck(1, 0)
            assert store.stats().problem is None
        with pytest.raises(StoreUnavailable, match="cannot be reached"):
            never_paired.append([batch(1, [0], [1.0])])
        assert "cannot be reached" in str(never_paired.stats().problem)
        own_server.start()
        eventually(lambda: not paired.stats().warnings)
        eventually(lambda: never_paired.stats().problem is None)
        assert never_paired.append([batch(1, [0], [1.0])]) == CommitAck(0, 1)
        # What was accepted for another store is neither stored nor shown, also after the next start.
        eventually(lambda: "belongs to a different store" in str(mismatched.stats().problem))
        for use in (lambda: mismatched.append([batch(2, [1], [2.0])]), lambda: mismatched.last_times([1])):
            with pytest.raises(StoreUnavailable, match="belongs to a different store"):
                use()
        mismatched.close()
        with pytest.raises(StoreError, match="wait for another store"):
            open_store(address, tmp_path / "c")
        assert samples_of(paired.read([1], None, *ALL)) == {(1, 1): [(0, 1.0)]}
    finally:
        for store in away:
            store.close()


def test_a_store_whose_pairing_failed_accepts_batches_and_is_paired_later(
    database: ClickHouseAddress, tmp_path: Path
) -> None:
    failures = iter([StoreUnavailable("ClickHouse answered 500")])

    def pair() -> None:
        for failure in failures:
            raise failure

    with open_store(database, tmp_path / "store") as store:
        store.pair_later("ours", pair)
        assert store.append([batch(1, [0], [1.0])]) == CommitAck(1, 0)
        eventually(lambda: store.is_prepared and not store.stats().warnings)
        assert samples_of(store.read([1], None, *ALL)) == {(1, 1): [(0, 1.0)]}


def test_what_waits_survives_that_the_server_is_killed(own_server: ClickHouseServer, tmp_path: Path) -> None:
    folder = tmp_path / "store"
    command = [sys.executable, str(WRITER), str(own_server.port), str(folder)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as writer:
        assert writer.stdout is not None
        acknowledged = [int(writer.stdout.readline()) for _ in range(3)]
        own_server.kill()
        acknowledged += [int(writer.stdout.readline()) for _ in range(20)]
        os.kill(writer.pid, signal.SIGKILL)
        acknowledged += [int(line) for line in writer.stdout if line.endswith("\n")]
    own_server.start()
    with open_store(own_server.address(), folder) as store:
        store.flush()
        stored = dict(samples_of(store.read([1], None, *ALL))[1, 1])
    assert set(acknowledged) <= stored.keys()
    assert len(stored) <= len(acknowledged) + 1


def test_what_clickhouse_acknowledged_survives_that_it_is_killed(
    own_server: ClickHouseServer, tmp_path: Path
) -> None:
    with open_store(own_server.address(), tmp_path / "store") as store:
        for seq in range(20):
            store.append([batch(seq, [seq], [float(seq)])])
        own_server.kill()
        own_server.start()
        assert len(samples_of(store.read([1], None, *ALL))[1, 1]) == 20


def test_the_disk_takes_only_so_much(own_server: ClickHouseServer, tmp_path: Path) -> None:
    # `flush` finds that ClickHouse is back, long before the thread that stores what waits tries again.
    limits = replace(PROMPT, waiting_bytes=3000, retry_s=PATIENCE_S)
    with open_store(own_server.address(), tmp_path / "store", limits) as store:
        own_server.kill()
        # One after the other: what is submitted together is refused together.
        every = (batch(seq, range(10), np.ones(10)) for seq in range(30))
        errors = [store.submit([each]).exception(PATIENCE_S) for each in every]
        stored = [seq for seq, error in enumerate(errors) if error is None]
        refused = [seq for seq, error in enumerate(errors) if error is not None]
        with pytest.raises(StoreUnavailable, match="wait for ClickHouse, of at most 3000"):
            raise errors[refused[0]]
        own_server.start()
        store.flush()
        (extent,) = samples_of(store.read([1], None, *ALL)).values()
        assert len(extent) == 10
        eventually(lambda: not store.stats().warnings)
        # The one that was refused is sent again, and stored now.
        assert store.append([batch(refused[0], range(10), np.ones(10))]) == CommitAck(1, 0)
        assert store.append([batch(stored[-1], range(10), np.ones(10))]) == CommitAck(0, 1)


def test_a_batch_that_two_servers_store_at_the_same_time_is_there_once(
    database: ClickHouseAddress, tmp_path: Path
) -> None:
    folders = [tmp_path / "a", tmp_path / "b"]
    with open_store(database, folders[0]) as first, open_store(database, folders[1]) as second:

        def send(store: ClickHouseStore) -> list[CommitAck]:
            return [store.append([batch(seq, [seq, 500], [[1.0], [float(seq)]])]) for seq in range(30)]

        with ThreadPoolExecutor(2) as pool:
            acks = list(pool.map(send, (first, second)))
        for each, other in zip(*acks, strict=True):
            assert each.stored + other.stored >= 1
        for store in (first, second):
            times = dict(samples_of(store.read([1], None, *ALL))[1, 1])
            assert times == {**dict.fromkeys(range(30), 1.0), 500: 29.0}
            assert store.stats().samples == 31


def test_a_repetition_that_was_held_up_does_not_replace_later_writes(
    database: ClickHouseAddress, tmp_path: Path
) -> None:
    with open_store(database, tmp_path / "store") as store:
        insertion = Insertion(store.clickhouse)
        repeated, later = batch(1, [0], [1.0]), batch(2, [0], [2.0])
        held_up = AcceptedBatch(100, repeated)  # by another server, which found that it was not stored
        assert insertion.store([AcceptedBatch(200, repeated)]) == (True,)
        assert insertion.store([AcceptedBatch(300, later)]) == (True,)
        insertion._insert([held_up])
        assert samples_of(store.read([1], None, *ALL)) == {(1, 1): [(0, 2.0)]}


def test_a_batch_that_failed_half_way_is_completed(database: ClickHouseAddress, tmp_path: Path) -> None:
    with open_store(database, tmp_path / "store") as store:
        store.clickhouse.command("RENAME TABLE batches TO elsewhere")
        assert store.append([batch(1, [0], [1.0])]) == CommitAck(1, 0)  # waits
        assert store.stats().warnings
        store.clickhouse.command("RENAME TABLE elsewhere TO batches")
        eventually(lambda: not store.stats().warnings)
        assert store.append([batch(1, [0], [1.0])]) == CommitAck(0, 1)
        assert store.stats().samples == 1


def test_a_damaged_row_on_the_disk_is_set_aside(tmp_path: Path) -> None:
    path = str(tmp_path / "waiting.db")
    waiting = WaitingBatches(path, 1 << 20)
    for seq in range(3):
        waiting.add([AcceptedBatch(seq, batch(seq, [0], [1.0]))])
    waiting._connection.execute("UPDATE waiting SET batches = x'00112233445566' WHERE seq=2")
    waiting.close()
    waiting = WaitingBatches(path, 1 << 20)
    numbers, batches = waiting.oldest(1 << 20)
    assert [each.batch.seq for each in batches] == [0, 2]
    waiting.remove(numbers)
    assert (len(waiting), waiting.bytes) == (0, 0)
    assert waiting._connection.execute("SELECT seq FROM damaged").fetchall() == [(2,)]
    waiting.close()


def test_waiting_batches_keep_their_bits(tmp_path: Path) -> None:
    values = np.array([[np.nan, -0.0], [np.inf, 5e-324]])
    waiting = WaitingBatches(str(tmp_path / "waiting.db"), 1 << 20)
    waiting.add([AcceptedBatch(7, batch(3, [0, 1], values, run=2**62, metrics=(5, 2**32 - 1)))])
    _, [(version, read)] = waiting.oldest(1)
    assert (version, read.run, read.seq, read.metrics) == (7, 2**62, 3, (5, 2**32 - 1))
    assert np.ascontiguousarray(read.values).tobytes() == values.tobytes()
    waiting.close()


def test_a_folder_is_used_by_one_process(database: ClickHouseAddress, tmp_path: Path) -> None:
    with open_store(database, tmp_path / "store"), pytest.raises(StoreError, match="in use by process"):
        open_store(database, tmp_path / "store")


def test_tables_of_a_later_version_are_not_touched(database: ClickHouseAddress, tmp_path: Path) -> None:
    with open_store(database, tmp_path / "a") as store:
        store.clickhouse.command("INSERT INTO format VALUES (99)")
    with pytest.raises(StoreError, match="written by a later version of runvitals"):
        open_store(database, tmp_path / "b")


def test_times_centuries_apart(database: ClickHouseAddress, tmp_path: Path) -> None:
    with open_store(database, tmp_path / "store") as store:
        t = np.arange(120, dtype=np.int64) * 2_000_000_000_000
        far = batch(1, [0], [1.0])
        far = type(far)(1, 1, 1, (1,), t, np.ones((len(t), 1)))
        assert store.append([far]) == CommitAck(1, 0)
        assert store.read([1], None, *ALL).series[0].t.tolist() == t.tolist()
