"""A server that shows journals, and a user without stored tokens."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from starlette.types import ASGIApp, Receive, Scope, Send

from runvitals.readers.servers import Client
from runvitals.server.http import cached_read
from runvitals.server.local_app import create_app
from tests.readers.journals.journals import T0
from tests.readers.servers.serving import serving


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The user's configuration folder."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    for name in ("RUNVITALS_TOKEN", "RUNVITALS_SERVER"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path / "config"


class _Recorded:
    """An application whose requests are recorded."""

    def __init__(self, app: ASGIApp, paths: list[str]) -> None:
        self._app = app
        self._paths = paths

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            self._paths.append(scope["path"])
        await self._app(scope, receive, send)


@pytest.fixture
def requests() -> list[str]:
    """The paths of the requests that the server got."""
    return []


@pytest.fixture
def url(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, requests: list[str]) -> Iterator[str]:
    """A server that shows the journals in `tmp_path`. Its clock is 30 s after T0."""
    monkeypatch.setattr(cached_read, "FRESH_S", 0.0)
    app = create_app(str(tmp_path), lambda: T0 + 30_000)
    app.add_middleware(_Recorded, paths=requests)
    with serving(app) as address:
        yield address


@pytest.fixture
def client(url: str) -> Iterator[Client]:
    with Client(url) as client:
        yield client
