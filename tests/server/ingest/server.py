"""The ingest endpoint over empty stores, called without a network."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import anyio
import httpx

from runvitals.model.filter import Filter
from runvitals.server.http.body_limits import Limits
from runvitals.server.ingest.endpoint import PATH, IngestEndpoint
from runvitals.server.ingest.envelope_recorder import Recorder
from runvitals.server.metadata_store import MetadataStore
from runvitals.store.samples.sqlite import SqliteChunks
from tests.empty_metadata import new_metadata_store

NOW = 1_760_000_000_000


class Counters:
    """Counts what the endpoint reports."""

    def __init__(self) -> None:
        self.points = 0
        self.statuses: list[int] = []

    def count_ingested(self, envelopes: int, points: int, body_bytes: int, seconds: float) -> None:
        self.points += points

    def count_rejected(self, status: int) -> None:
        self.statuses.append(status)


class Server:
    """An endpoint over an empty sample store and metadata store.

    Attributes:
        now_ms: the time of its clock.
    """

    def __init__(self, folder: str, limits: Limits) -> None:
        self.now_ms = NOW
        self.store = SqliteChunks(folder)
        self.metadata_store: MetadataStore = new_metadata_store(Path(folder, "catalogue.db"))
        self.recorder = Recorder(self.store, self.metadata_store, lambda: self.now_ms, limits)
        self.counters = Counters()
        self.endpoint = IngestEndpoint(self.recorder, limits, self.counters)

    def close(self) -> None:
        self.recorder.close()
        self.metadata_store.close()
        self.store.close()

    def post(self, content: bytes, kind: str = "application/json", **headers: str) -> httpx.Response:
        async def send() -> httpx.Response:
            transport = httpx.ASGITransport(self.endpoint, raise_app_exceptions=True)
            async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
                return await client.post(PATH, content=content, headers={"content-type": kind, **headers})

        return anyio.run(send)

    def json(self, value: Any) -> httpx.Response:
        return self.post(json.dumps(value).encode())

    def samples(self) -> dict[str, list[tuple[int, float]]]:
        """All stored samples, by key."""
        runs = self.store.active_runs(0)
        series = self.store.read(runs, None, 0, 2 * NOW).series
        keys = self.metadata_store.metrics.keys(values.metric for values in series)
        return {
            keys[values.metric]: list(zip(values.t.tolist(), values.values.tolist(), strict=True))
            for values in series
        }

    def runs(self) -> int:
        return self.metadata_store.runs.count(Filter(), NOW)
