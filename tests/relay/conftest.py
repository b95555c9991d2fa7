"""Fixtures of the relay's tests: a journal, and a server that records requests."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.relay.journals import Journal
from tests.relay.recording_server import RecordingServer


@pytest.fixture
def journal(tmp_path: Path) -> Iterator[Journal]:
    journal = Journal(tmp_path)
    yield journal
    journal.monitor.close()
    journal.train.close()


@pytest.fixture
def target() -> Iterator[RecordingServer]:
    server = RecordingServer()
    yield server
    server.close()
