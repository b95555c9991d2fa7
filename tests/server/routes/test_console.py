"""Console output."""

from __future__ import annotations

from pathlib import Path

from runvitals.server.runs.routes import output_models
from tests.readers.journals.journals import T0, Monitor
from tests.server.client import Client


def test_console_output(tmp_path: Path, client: Client) -> None:
    monitor = Monitor(tmp_path)
    monitor.printed(T0, "<script>alert(1)</script>\n")
    monitor.printed(T0 + 1, b"\xff\n", stream=2)
    lines = client.ask("runs/abc/console")
    output_models.ConsoleAnswer.model_validate(lines)
    assert [(piece["stream"], piece["text"]) for piece in lines["pieces"]] == [
        ("stdout", "<script>alert(1)</script>\n"), ("stderr", "�\n"),
    ]  # fmt: skip
    assert not lines["cut"]


def test_more_output_than_the_page_shows(tmp_path: Path, client: Client) -> None:
    monitor = Monitor(tmp_path)
    for number in range(6):
        monitor.printed(T0 + number, f"{number}" * 100_000)

    def printed(max_bytes: int | None = None) -> tuple[bool, str]:
        output = client.ask("runs/abc/console", **({} if max_bytes is None else {"max_bytes": max_bytes}))
        return output["cut"], "".join(piece["text"][0] for piece in output["pieces"])

    assert printed() == (True, "45")
    assert printed(1_000_000) == (False, "012345")
    assert printed(350_000) == (True, "345")
    assert printed(1) == (True, "5")
    assert client.get("/api/v1/runs/abc/console", params={"max_bytes": 17 << 20}).status_code == 422
