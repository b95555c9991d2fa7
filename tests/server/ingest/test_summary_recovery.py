"""Summaries after a crash: computed again from the samples of the runs that were logging."""

from __future__ import annotations

from pathlib import Path

import pytest

from runvitals.server.ingest.limits import Limits
from runvitals.server.ingest.summary_recovery import restore_summaries
from runvitals.store.metadata import open_metadata_store
from runvitals.store.metadata.log_summaries import summary_of
from tests.server.ingest.server import NOW, Server

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
        assert summary_of(metadata_store.sections.read([run_id])[run_id])["max"] == 5.0
        for _ in range(2):
            restore_summaries(server.store, metadata_store)
            found = summary_of(metadata_store.sections.read([run_id])[run_id])
            assert found == {"min": 1.0, "max": 9.0, "mean": 5.0, "last": 5.0}
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
        assert summary_of(metadata_store.sections.read([run_id.id])[run_id.id]) == {"loss": 2.0}


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
    found = server.metadata_store.runs.find("abc", NOW)
    assert found is not None
    assert summary_of(server.metadata_store.sections.read([found.id])[found.id]) == {"mean": 12.0}
    server.close()
