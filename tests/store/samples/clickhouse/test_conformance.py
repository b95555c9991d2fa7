"""The store in ClickHouse fulfills the interface's rules."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from runvitals.store.samples.clickhouse import ClickHouseAddress, ClickHouseStore
from tests.store.samples.clickhouse.server import open_store
from tests.store.samples.conformance import Conformance


class TestClickHouse(Conformance):
    @pytest.fixture(params=[False], ids=["fresh"])
    def sealed(self, request: pytest.FixtureRequest) -> bool:
        return bool(request.param)  # nothing is sealed

    @pytest.fixture
    def opened(self, database: ClickHouseAddress, tmp_path: Path) -> Iterator[ClickHouseStore]:
        with open_store(database, tmp_path / "store") as store:
            yield store
