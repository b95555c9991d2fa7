"""Console output."""

from __future__ import annotations

from pathlib import Path

from runvitals.server.api import models
from tests.query.journals import T0, Monitor
from tests.server.client import Client


def test_console_output(tmp_path: Path, client: Client) -> None:
    monitor = Monitor(tmp_path)
    monitor.printed(T0, "<script>alert(1)</script>\n")
    monitor.printed(T0 + 1, b"\xff\n", stream=2)
    found = client.ask("runs/abc/console")
    models.ConsoleAnswer.model_validate(found)
    assert [(piece["stream"], piece["text"]) for piece in found["pieces"]] == [
        ("stdout", "<script>alert(1)</script>\n"), ("stderr", "�\n"),
    ]  # fmt: skip
    assert not found["cut"]
