"""A server that is killed while files arrive: what it acknowledged is there, and uploads go on."""

from __future__ import annotations

import hashlib
import random
from pathlib import Path

import httpx

from tests.cli.test_server import envelope, serving

PIECE = 1 << 20


def test_uploads_survive_kill_9(tmp_path: Path) -> None:
    content = random.Random(5).randbytes(5 * PIECE + 77)
    sha256 = hashlib.sha256(content).hexdigest()
    path = f"/api/v1/runs/curl-1/files/{sha256}"
    arrived = kills = 0
    while True:
        with serving(tmp_path) as (process, client):
            if not kills:
                assert client.post("/api/v1/ingest", json=envelope(0)).status_code == 200
            state = states(client, sha256)
            assert state["offset"] >= arrived  # nothing that was acknowledged is lost
            arrived = state["offset"]
            for _ in range(2):
                if not state["complete"]:
                    piece = content[arrived : arrived + PIECE]
                    response = client.put(
                        path, params={"offset": arrived, "size": len(content)}, content=piece
                    )
                    assert response.status_code == 200, response.text
                    state = response.json()
                    arrived = state["offset"]
            if not state["complete"]:
                process.kill()
                process.wait()
                kills += 1
                continue
            assert client.get(path).content == content
            process.kill()  # right after the last acknowledgement
            process.wait()
            break
    assert kills == 2
    with serving(tmp_path) as (_, client):
        assert states(client, sha256) == {"sha256": sha256, "offset": 0, "complete": True}
        assert client.get(path).content == content
    assert list((tmp_path / "files" / "uploads").iterdir()) == []


def states(client: httpx.Client, sha256: str) -> dict[str, int]:
    response = client.post("/api/v1/runs/curl-1/files", json={"files": [{"sha256": sha256}]})
    assert response.status_code == 200, response.text
    state: dict[str, int] = response.json()["files"][0]
    return state
