"""The list of projects."""

from __future__ import annotations

from pathlib import Path

from tests.readers.journals.journals import T0, Monitor
from tests.server.client import Client


def test_projects(tmp_path: Path, client: Client) -> None:
    Monitor(tmp_path, "a", project="digits").end(T0 + 1)
    Monitor(tmp_path, "b", project="other", start_ms=T0 + 1000).end(T0 + 2000)
    Monitor(tmp_path, "c", project="digits", start_ms=client.now_ms)
    assert client.ask("projects") == [
        {"name": "digits", "entity": None, "runs": 2, "running": 1, "newest_ms": client.now_ms},
        {"name": "other", "entity": None, "runs": 1, "running": 0, "newest_ms": T0 + 1000},
    ]


def test_projects_are_searched(tmp_path: Path, client: Client) -> None:
    for number, project in enumerate(("digits", "digits-large", "Other digits")):
        Monitor(tmp_path, str(number), project=project, start_ms=T0 + number).end(T0 + 9)

    def names(text: str, **how: int) -> list[str]:
        return [project["name"] for project in client.ask("projects", text=text, **how)]

    assert names("DIGITS") == ["Other digits", "digits-large", "digits"]
    assert names("large digits") == ["digits-large"]
    assert names("digits", limit=2) == ["Other digits", "digits-large"]
    assert names("%") == []
