from __future__ import annotations

from pathlib import Path

import pytest

from tests.server.client import Client


@pytest.fixture
def client(tmp_path: Path) -> Client:
    """A client of a local server over the test's folder."""
    return Client(tmp_path)
