"""The ingest endpoint over an empty store and catalogue, without a network before it."""

from __future__ import annotations

import json
from typing import Any

import anyio
import httpx

from runvitals.server.ingest import PATH, Ingest, Limits, Recorder
from runvitals.store.metadata import Filter, MetadataStore, open_metadata_store
from runvitals.store.samples.sqlite_chunks import SqliteChunks

NOW = 1_760_000_000_000


class Counted:
    """A tally of what the endpoint says."""

    def __init__(self) -> None:
        self.points = 0
        self.statuses: list[int] = []

    def ingested(self, envelopes: int, points: int, body_bytes: int, seconds: float) -> None:
        self.points += points

    def refused(self, status: int) -> None:
        self.statuses.append(status)


class Server:
    """An endpoint over an empty store and catalogue.

    Attributes:
        now_ms: what it takes the time to be.
    """

    def __init__(self, folder: str, limits: Limits) -> None:
        self.now_ms = NOW
        self.store = SqliteChunks(folder)
        self.catalogue: MetadataStore = open_metadata_store(f"{folder}/catalogue.db")
        self.recorder = Recorder(self.store, self.catalogue, lambda: self.now_ms, limits)
        self.tally = Counted()
        self.endpoint = Ingest(self.recorder, limits, self.tally)

    def close(self) -> None:
        self.recorder.close()
        self.catalogue.close()
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
        """Everything that is stored, by key."""
        runs = self.store.active_runs(0)
        series = self.store.read(runs, None, 0, 2 * NOW).series
        keys = self.catalogue.metrics.keys(one.metric for one in series)
        return {
            keys[one.metric]: list(zip(one.t.tolist(), one.values.tolist(), strict=True)) for one in series
        }

    def runs(self) -> int:
        return self.catalogue.runs.count(Filter(), NOW)
