"""A server that OpenTelemetry's senders send to, and what it has stored."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from tests.patience import PATIENCE_S
from tests.server.serving import Served, serving


class Receiving:
    """A server without accounts, and its API."""

    def __init__(self, served: Served) -> None:
        self.served = served
        self.url = served.url
        self._http = httpx.Client(base_url=served.url, timeout=PATIENCE_S)

    def post(self, body: bytes, path: str = "/v1/metrics", **headers: str) -> httpx.Response:
        sent = {"content-type": "application/x-protobuf"}
        sent |= {name.replace("_", "-"): text for name, text in headers.items()}
        return self._http.post(path, content=body, headers=sent)

    def request(self, method: str, path: str) -> httpx.Response:
        return self._http.request(method, path)

    def get(self, path: str, **params: Any) -> Any:
        response = self._http.get(f"/api/v1/{path}", params=params)
        assert response.status_code == 200, response.text
        return response.json()

    def close(self) -> None:
        self._http.close()

    def keys(self, run: str) -> set[str]:
        """The keys of a run's samples, without derived rates."""
        series = self.get(f"runs/{run}/series")
        return {each["key"] for each in series if each["kind"] != "rate"}

    def values(self, run: str, key: str) -> dict[int, float | None]:
        """The values of a key by time, ms UTC."""
        groups = self.get(f"runs/{run}/metrics", keys=key, resolution="raw")["groups"]
        return {t: v for each in groups for t, v in zip(each["t"], each["series"][key], strict=True)}


@pytest.fixture(scope="module")
def receiving(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Receiving]:
    with serving(tmp_path_factory.mktemp("otlp")) as served:
        receiver = Receiving(served)
        yield receiver
        receiver.close()


@pytest.fixture
def now_ns() -> int:
    """A time of which everything is in whole milliseconds."""
    return int(time.time()) * 1_000_000_000
