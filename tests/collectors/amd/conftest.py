"""AMD's collector reads in a thread of its own; here a tick waits until that has answered."""

from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def _patient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("runvitals.collectors.amd.collector.PATIENCE_S", 10.0)
