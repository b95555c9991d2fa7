from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from runvitals.server.database.secret_box import SecretBox
from runvitals.server.metadata_store import MetadataStore
from tests.empty_metadata import new_metadata_store
from tests.server.mail.conftest import SetClock
from tests.server.outbound.site import Site, serving


@pytest.fixture
def store(tmp_path: Path) -> Iterator[MetadataStore]:
    with new_metadata_store(tmp_path / "catalogue.db") as opened:
        yield opened


@pytest.fixture
def clock() -> SetClock:
    return SetClock()


@pytest.fixture
def box() -> SecretBox:
    return SecretBox({"k": bytes(32)})


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    """A receiver."""
    with serving(tmp_path, "hooks.slack.com", "ci.example") as running:
        yield running
