"""The SQLite store fulfills the interface's rules: with default settings, and with chunks so small that
sealing and compaction happen often.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from runvitals.store.samples.sqlite import SqliteChunks, StoreSettings
from tests.store.samples.conformance import Conformance

SMALL = StoreSettings(chunk_ticks=16, pack_ticks=4, compact_ticks=32, head_bytes=20_000, log_bytes=20_000)


class TestByDefault(Conformance):
    @pytest.fixture
    def opened(self, folder: str) -> Iterator[SqliteChunks]:
        with SqliteChunks(folder) as store:
            yield store


class TestWithSmallChunks(Conformance):
    @pytest.fixture
    def opened(self, folder: str) -> Iterator[SqliteChunks]:
        with SqliteChunks(folder, SMALL) as store:
            yield store
