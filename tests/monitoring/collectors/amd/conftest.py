"""AMD's collector reads in a thread. In these tests a tick waits until it has finished."""

from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def _patient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("runvitals.monitoring.collectors.amd.collector.PATIENCE_S", 10.0)
