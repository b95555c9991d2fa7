"""Series of writers that no client of ours named."""

from __future__ import annotations

import time
from pathlib import Path

import httpx
import pytest

from tests.patience import PATIENCE_S
from tests.server.serving import serving


@pytest.mark.parametrize("role", [None, "train"])
def test_a_writer_may_have_any_name(tmp_path: Path, role: str | None) -> None:
    with serving(tmp_path) as served, httpx.Client(base_url=served.url, timeout=PATIENCE_S) as client:
        for writer in ("curl", "other", "train.node1.4711.19f3b"):
            rows = {"keys": ["loss"], "t": [int(time.time() * 1000) - 1000], "v": [[1.5]], "step": [1]}
            envelope = {"run": "r", "writer": writer, "seq": 1, "about": {"role": role}, **rows}
            client.post("/api/v1/ingest", json=envelope).raise_for_status()
        response = client.get("/prometheus/api/v1/query", params={"query": "runvitals_log"})
        assert response.status_code == 200, response.text
        processes = {series["metric"]["process"] for series in response.json()["data"]["result"]}
        assert processes == {"curl", "other", "4711"}
