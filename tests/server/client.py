"""A client of the application, without a network between them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import anyio
import httpx

from runvitals.server.local_app import create_app
from tests.readers.journals.journals import T0

BASE = "http://127.0.0.1:8900"


class Client:
    """LoggedColumns the application as a browser on this machine would.

    Attributes:
        now_ms: what the application takes the time to be.
    """

    def __init__(self, directory: Path, **how: Any) -> None:
        self.now_ms = T0 + 3_600_000
        self.app: Any = create_app(str(directory), lambda: self.now_ms, **how)

    def request(self, method: str, path: str, base: str = BASE, **how: Any) -> httpx.Response:
        async def send() -> httpx.Response:
            transport = httpx.ASGITransport(self.app, raise_app_exceptions=False)
            async with httpx.AsyncClient(transport=transport, base_url=base) as client:
                return await client.request(method, path, **how)

        return anyio.run(send)

    def get(self, path: str, **how: Any) -> httpx.Response:
        return self.request("GET", path, **how)

    def ask(self, path: str, **params: Any) -> Any:
        """The JSON answer of a call that must succeed."""
        response = self.get(f"/api/v1/{path}", params=params)
        assert response.status_code == 200, response.text
        return response.json()
