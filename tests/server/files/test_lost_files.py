"""The metadata store's file or the log is deleted or replaced under a running server: nothing that would be
lost is acknowledged, and `/readyz`, `/metrics` and the log say why.
"""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from tests.patience import PATIENCE_S, eventually
from tests.server.serving import Served, serving

NAMES = ["catalogue.db", "log.db"]


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    with serving(tmp_path) as served:
        yield served


@pytest.fixture
def client(served: Served) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=served.url, timeout=PATIENCE_S) as client:
        yield client


def send(client: httpx.Client, seq: int, run: str = "abc", **more: object) -> httpx.Response:
    now_ms = time.time_ns() // 1_000_000
    sent = {"run": run, "writer": "w", "seq": seq, "keys": ["cpu"], "t": [now_ms + seq], "v": [[1.0]]}
    return client.post("/api/v1/ingest", json={**sent, **more})


def lost(path: Path, how: str) -> None:
    if how == "replaced":
        shutil.copy(path, f"{path}.copy")
        os.replace(f"{path}.copy", path)
    else:
        os.rename(path, f"{path}.elsewhere")


@pytest.mark.parametrize("how", ["deleted", "replaced"])
@pytest.mark.parametrize("name", NAMES)
def test_nothing_is_acknowledged_after_a_file_was_deleted(
    client: httpx.Client, tmp_path: Path, name: str, how: str, caplog: pytest.LogCaptureFixture
) -> None:
    assert [send(client, seq).status_code for seq in (1, 2)] == [200, 200]
    (path,) = tmp_path.rglob(name)
    lost(path, how)
    refused = [send(client, 3), send(client, 4), send(client, 1, run="another")]
    assert [response.status_code for response in refused] == [503] * 3
    for response in refused:
        assert response.headers["retry-after"] == "5"
        assert f"{path} was {how}" in response.json()["error"]
    # A busy machine may read the state later than in the 0.1 s in which `/readyz` answers.
    eventually(lambda: client.get("/readyz").status_code == 503)
    assert client.get("/readyz").json()["problem"].startswith(f"{path} was {how}")
    assert "runvitals_store_failing 1\n" in client.get("/metrics").text
    if name == "catalogue.db":
        edited = client.patch("/api/v1/runs/abc", json={"notes": "so so"})
        assert (edited.status_code, edited.headers["retry-after"]) == (503, "5")
        reported = f"thread metadata-file failed and will retry: {path} was {how}"
        deadline_s = time.monotonic() + PATIENCE_S
        while reported not in caplog.text and time.monotonic() < deadline_s:
            time.sleep(0.05)
        assert caplog.text.count(reported) == 1
    else:
        assert caplog.text.count("could not commit") == 1


@pytest.mark.parametrize("name", NAMES)
def test_a_restored_file_is_used_again(client: httpx.Client, tmp_path: Path, name: str) -> None:
    assert send(client, 1).status_code == 200
    (path,) = tmp_path.rglob(name)
    lost(path, "deleted")
    assert send(client, 2).status_code == 503
    os.rename(f"{path}.elsewhere", path)
    assert send(client, 2).json()["stored"] is True
    assert "was deleted" not in str(client.get("/readyz").json()["problem"])
