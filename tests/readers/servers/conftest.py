"""A server that shows journals, and a user without stored tokens."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from runvitals.readers.servers import Client
from runvitals.server import create_app
from runvitals.server.http import cached_read
from tests.readers.journals.journals import T0
from tests.readers.servers.serving import serving


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The user's configuration folder."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    for name in ("RUNVITALS_TOKEN", "RUNVITALS_SERVER"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path / "config"


@pytest.fixture
def url(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A client of a server that shows the journals in `tmp_path`. Its clock is 30 s after T0."""
    monkeypatch.setattr(cached_read, "FRESH_S", 0.0)
    with serving(create_app(str(tmp_path), lambda: T0 + 30_000)) as address:
        yield address


@pytest.fixture
def client(url: str) -> Iterator[Client]:
    with Client(url) as client:
        yield client
