"""While serving, the interpreter has other settings."""

from __future__ import annotations

import gc
import signal
import sys

import pytest

from runvitals.server.app import create_app
from runvitals.server.http import serve


def test_interpreter_settings_are_restored(monkeypatch: pytest.MonkeyPatch, tmp_path: object) -> None:
    def settings() -> tuple[object, ...]:
        return gc.get_threshold(), gc.get_freeze_count() > 0, sys.getswitchinterval()

    before = settings()
    while_serving = []
    monkeypatch.setattr(serve.Server, "run", lambda self, sockets: while_serving.append(settings()))
    monkeypatch.setattr(serve, "configure", lambda log_format: None)
    monkeypatch.setattr(signal, "signal", lambda number, handler: None)
    serve.serve(create_app(str(tmp_path)), serve.listen(0))
    assert while_serving == [((20_000, *before[0][1:]), True, pytest.approx(0.001))]  # type: ignore[index]
    assert settings() == before
