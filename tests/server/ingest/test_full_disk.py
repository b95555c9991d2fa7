"""A disk on which nothing can be written: senders are told why, readers are served, and it passes."""

from __future__ import annotations

import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx

from tests.patience import PATIENCE_S, eventually
from tests.server.serving import Served, serving

T0 = 1_790_812_800_000


@contextmanager
def nothing_can_be_written() -> Iterator[None]:
    """Have the kernel refuse what this process writes to files."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def envelope(seq: int, **more: Any) -> dict[str, Any]:
    row = {"keys": ["loss"], "t": [T0 + seq], "v": [[seq]], "step": [seq]}
    return {"run": "otter-1", "writer": "train", "project": "digits", "seq": seq, **row, **more}


def send(served: Served, *envelopes: dict[str, Any]) -> httpx.Response:
    return httpx.post(f"{served.url}/api/v1/ingest", json=list(envelopes), timeout=PATIENCE_S)


def ask(served: Served, path: str) -> httpx.Response:
    return httpx.get(f"{served.url}{path}", timeout=PATIENCE_S)


def test_a_metadata_store_on_a_full_disk_is_reported_and_read(tmp_path: Path) -> None:
    alert = [1, "event", {"t": T0, "name": "alert", "level": "warn", "text": "x"}]
    with serving(tmp_path, clock=lambda: T0 + 60_000) as served:
        # Rows after the first ones wait to be added to the summary of the run, which readers see at once.
        for seq in range(3):
            assert send(served, envelope(seq)).status_code == 200
        with nothing_can_be_written():
            refused = send(served, envelope(3, records=[alert]))
            ready = ask(served, "/readyz")
            runs = ask(served, "/api/v1/runs")
            one = ask(served, "/api/v1/runs/otter-1")
        assert refused.status_code == 503
        reason = "could not write to the metadata store: disk I/O error"
        assert refused.json() == {"error": reason}
        assert "retry-after" in refused.headers
        assert ready.status_code == 503
        assert ready.json()["problem"].endswith("catalogue.db: disk I/O error")
        assert [run["id"] for run in runs.json()["runs"]] == ["otter-1"]
        assert one.json()["id"] == "otter-1"
        assert send(served, envelope(3, records=[alert])).status_code == 200
        assert ask(served, "/readyz").status_code == 200
        eventually(lambda: ask(served, "/api/v1/runs/otter-1").json()["summary"]["loss"] == 3)
