from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.server.outbound.site import Site, serving


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    with serving(tmp_path, "site.example", "other.example") as running:
        yield running
