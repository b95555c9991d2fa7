"""Summaries after a crash: computed again from the samples of the runs that were logging."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from runvitals.server.http.body_limits import Limits
from runvitals.server.ingest.endpoint import IngestEndpoint
from runvitals.server.ingest.envelope_recorder import Recorder
from runvitals.server.ingest.summary_recovery import restore_summaries
from runvitals.server.metadata_store import open_metadata_store
from runvitals.server.runs.storage.log_summaries import LAST_STEP
from runvitals.server.runs.storage.pending_summaries import PendingSummaries
from runvitals.store.samples.sqlite import SqliteChunks
from tests.patience import PATIENCE_S, eventually
from tests.server.database import postgresql as postgres
from tests.server.database.runs import uids, where
from tests.server.ingest.server import NOW, Counters, Server

KINDS = {name: {"summary": name} for name in ("min", "max", "mean")}
NAMES = [*KINDS, "last"]


def test_rows_that_were_only_gathered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    server = Server(str(tmp_path), Limits())
    # A server that is killed before it writes what it has gathered.
    monkeypatch.setattr(server.metadata_store.pending_summaries, "flush", lambda *_: None)
    writer = {"run": "abc", "writer": "train.n1.a", "about": {"role": "train", "host": "n1"}}
    info = [[1, "info", {"t": NOW, "metrics": KINDS}]]
    assert server.json({**writer, "seq": 0, "records": info}).status_code == 200
    for seq, value in enumerate((5.0, 9.0, 1.0, 5.0), 1):
        row = {"keys": NAMES, "t": [NOW + seq], "v": [[value]] * 4, "step": [seq]}
        assert server.json({**writer, "seq": seq, **row}).status_code == 200
    sampled = {"run": "abc", "writer": "monitor.n1", "keys": ["cpu"], "t": [NOW], "v": [[3.0]], "seq": 1}
    assert server.json({**sampled, "about": {"role": "monitor", "host": "n1"}}).status_code == 200
    with open_metadata_store(str(tmp_path / "catalogue.db")) as metadata_store:
        [run_id] = metadata_store.pending_summaries.incomplete()
        assert metadata_store.sections.read([run_id])[run_id].summary()["max"] == 5.0
        for _ in range(2):
            restore_summaries(server.store, metadata_store)
            summary = metadata_store.sections.read([run_id])[run_id].summary()
            assert summary == {"min": 1.0, "max": 9.0, "mean": 5.0, "last": 5.0}
            assert uids(metadata_store, where(f"{LAST_STEP} = 4")) == ["abc"]
        metadata_store.pending_summaries.close_idle(0.0)
        assert metadata_store.pending_summaries.incomplete() == []
    server.close()


def test_a_server_that_ends_leaves_nothing(tmp_path: Path) -> None:
    server = Server(str(tmp_path), Limits())
    for seq in (1, 2):
        row = {"keys": ["loss"], "t": [NOW + seq], "v": [[float(seq)]], "step": [seq]}
        assert server.json({"run": "abc", "writer": "w", "seq": seq, **row}).status_code == 200
    server.close()
    with open_metadata_store(str(tmp_path / "catalogue.db")) as metadata_store:
        assert metadata_store.pending_summaries.incomplete() == []
        run_id = metadata_store.runs.find("abc", NOW)
        assert run_id is not None
        assert metadata_store.sections.read([run_id.id])[run_id.id].summary() == {"loss": 2.0}


def test_a_request_that_is_sent_again_after_a_crash_counts_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    killed = Server(str(tmp_path), Limits())
    monkeypatch.setattr(killed.metadata_store.pending_summaries, "flush", lambda *_: None)
    writer = {"run": "abc", "writer": "train.n1.a", "about": {"role": "train", "host": "n1"}}
    info = [[1, "info", {"t": NOW, "metrics": KINDS}]]
    assert killed.json({**writer, "seq": 0, "records": info}).status_code == 200
    rows = [
        {**writer, "seq": seq, "keys": ["mean"], "t": [NOW + seq], "v": [[value]], "step": [seq]}
        for seq, value in enumerate((2.0, 4.0, 12.0, 30.0), 1)
    ]
    for row in rows[:3]:
        assert killed.json(row).status_code == 200
    killed.close()
    server = Server(str(tmp_path), Limits())
    for row in rows[1:]:  # the acknowledgements of the first two were lost
        assert server.json(row).status_code == 200
    run = server.metadata_store.runs.find("abc", NOW)
    assert run is not None
    assert server.metadata_store.sections.read([run.id])[run.id].summary() == {"mean": 12.0}
    server.close()


class SharedServer(Server):
    """One of several servers over a sample store and a metadata store in PostgreSQL."""

    def __init__(self, store: SqliteChunks, address: str) -> None:
        self.now_ms = NOW
        self.store = store
        self.metadata_store = open_metadata_store(address)
        self.link = self.metadata_store.join_servers(lambda message: None, lambda: None)
        self.recorder = Recorder(store, self.metadata_store, lambda: self.now_ms, Limits())
        self.endpoint = IngestEndpoint(self.recorder, Limits(), Counters())

    def close(self) -> None:
        self.recorder.close()
        self.link.close()
        self.metadata_store.close()

    def die(self) -> None:
        """As after kill -9: what it has gathered is lost, and so is its connection."""
        self.metadata_store.pending_summaries = PendingSummaries(
            self.metadata_store._database, self.metadata_store.metrics
        )
        self.close()

    def send(self, seq: int, value: float) -> None:
        row = {"keys": ["mean"], "t": [NOW + seq], "v": [[value]], "step": [seq]}
        sender = {"run": "abc", "writer": "train.n1.a", "about": {"role": "train", "host": "n1"}}
        assert self.json({**sender, "seq": seq, **row}).status_code == 200

    def define(self) -> None:
        info = [[1, "info", {"t": NOW, "metrics": KINDS}]]
        sender = {"run": "abc", "writer": "train.n1.a", "about": {"role": "train", "host": "n1"}}
        assert self.json({**sender, "seq": 0, "records": info}).status_code == 200

    def mean(self) -> float:
        run = self.metadata_store.runs.find("abc", NOW)
        assert run is not None
        self.metadata_store.pending_summaries.flush()
        return float(self.metadata_store.sections.read([run.id])[run.id].summary()["mean"])

    def restore(self) -> None:
        restore_summaries(self.store, self.metadata_store, while_running=True)


@pytest.fixture
def postgresql(testrun_uid: str) -> postgres.Server:
    """The server that the metadata store's tests of this session have, too."""
    if postgres.programs() is None:
        pytest.skip("PostgreSQL is not installed")
    return postgres.shared_server(testrun_uid)


def test_rows_that_another_server_receives_meanwhile_count_once(
    tmp_path: Path, postgresql: postgres.Server
) -> None:
    address = postgresql.make(f"recovery_{os.getpid()}")
    with SqliteChunks(str(tmp_path)) as store:
        dies, other, leader = (SharedServer(store, address) for _ in range(3))
        dies.define()
        for seq, value in enumerate((2.0, 4.0), 1):
            dies.send(seq, value)
        dies.die()
        eventually(leader.metadata_store.pending_summaries.incomplete)  # PostgreSQL notices that it is gone
        # The run goes on at another server, which has gathered the last row and not written it yet.
        for seq, value in enumerate((4.0, 12.0, 30.0), 2):
            other.send(seq, value)
        leader.restore()
        assert other.mean() == 12.0
        # Nothing more comes: the summary of all samples is the same.
        other.metadata_store.pending_summaries.close_idle(0.0)
        leader.restore()
        assert leader.metadata_store.pending_summaries.incomplete() == []
        assert other.mean() == 12.0
        # What is sent again after that, to any server, was counted.
        for server in (leader, other):
            for seq, value in ((2, 4.0), (4, 30.0)):
                server.send(seq, value)
                assert server.mean() == 12.0
        other.send(5, 72.0)
        assert other.mean() == 24.0
        other.close()
        leader.close()


class HookedStore(SqliteChunks):
    """Calls a function when it is asked which batches were stored: while the run is locked."""

    hook: Callable[[], object] = staticmethod(lambda: None)

    def stored_batches(self, run: int) -> dict[int, list[tuple[int, int]]]:
        self.hook()
        return super().stored_batches(run)


def test_rows_that_arrive_while_a_summary_is_completed_wait_for_it(
    tmp_path: Path, postgresql: postgres.Server
) -> None:
    address = postgresql.make(f"recovery_lock_{os.getpid()}")
    with closing(HookedStore(str(tmp_path))) as store:
        dies, leader = (SharedServer(store, address) for _ in range(2))
        dies.define()
        for seq, value in enumerate((2.0, 4.0), 1):
            dies.send(seq, value)
        dies.die()
        eventually(leader.metadata_store.pending_summaries.incomplete)  # PostgreSQL notices that it is gone
        sending = threading.Thread(target=leader.send, args=(3, 12.0), daemon=True)

        def send_meanwhile() -> None:
            store.hook = lambda: None
            sending.start()
            eventually(leader.metadata_store.pending_summaries._writing.locked)

        store.hook = send_meanwhile
        restoring = threading.Thread(target=leader.restore, daemon=True)
        restoring.start()
        for thread in (restoring, sending):
            thread.join(PATIENCE_S)
            assert not thread.is_alive()
        assert leader.mean() == 6.0
        leader.close()
