"""What tests of the relay have in common: a run's journal, and a far side that keeps what it is sent."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.relay.collected import Collected
from tests.relay.journals import Journal


@pytest.fixture
def journal(tmp_path: Path) -> Iterator[Journal]:
    made = Journal(tmp_path)
    yield made
    made.monitor.close()
    made.train.close()


@pytest.fixture
def far_side() -> Iterator[Collected]:
    made = Collected()
    yield made
    made.close()
