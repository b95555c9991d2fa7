"""How responses are encoded."""

from __future__ import annotations

from pathlib import Path

from tests.readers.journals.journals import Training
from tests.server.client import Client


def test_long_responses_are_compressed(tmp_path: Path, client: Client) -> None:
    training = Training(tmp_path)
    training.advance(100)
    response = client.get("/api/v1/runs/abc/metrics", headers={"accept-encoding": "gzip"})
    assert response.headers["content-encoding"] == "gzip"
    assert int(response.headers["content-length"]) < len(response.content) / 2
    plain = client.get("/api/v1/runs/abc/metrics", headers={"accept-encoding": "identity"})
    assert "content-encoding" not in plain.headers
    assert plain.json() == response.json()
