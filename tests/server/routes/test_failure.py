"""Why a run failed, from journals and from the store."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from runvitals.server.runs.routes.output_models import FailureSchema
from tests.readers.journals.journals import T0, Monitor
from tests.server.client import Client
from tests.server.stored_runs import StoredServer

TRACEBACK = 'Traceback (most recent call last):\n  File "<b>t</b>.py", line 3\nValueError: <i>\x1b[31mno\n'


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Journals of a run that failed, and of one that did not."""
    monitor = Monitor(tmp_path)
    monitor.sample(T0, {"cpu": 1.0})
    monitor.printed(T0 + 500, "1 %\r2 %\nTOKEN=hunter22\n", stream=2)
    monitor.printed(T0 + 900, TRACEBACK, stream=2)
    monitor.lifecycle(T0 + 1000, "exit", pid=7, exit_code=1)
    monitor.end(T0 + 1000, "failed", exit_code=1)
    well = Monitor(tmp_path, run_id="well")
    well.sample(T0, {"cpu": 1.0})
    well.end(T0 + 1000)
    return tmp_path


@pytest.fixture
def servers(folder: Path) -> Iterator[list[Client]]:
    stored = StoredServer(folder / "server")
    stored.take(folder)
    yield [Client(folder), stored]
    stored.close()


def test_the_reason_and_the_last_lines(servers: list[Client]) -> None:
    for server in servers:
        failure = server.ask("runs/abc/failure")
        FailureSchema.model_validate(failure)
        assert failure["title"] == "ValueError: <i>no"
        assert (failure["exception"], failure["exit_code"], failure["hint"]) == ("ValueError", 1, None)
        assert [line["text"] for line in failure["lines"][:3]] == [
            "2 %", "TOKEN=***", "Traceback (most recent call last):",
        ]  # fmt: skip
        assert failure["lines"][-1] == {"time_ms": T0 + 900, "stream": "stderr", "text": "ValueError: <i>no"}


def test_a_run_that_ended_well(folder: Path) -> None:
    assert Client(folder).ask("runs/well/failure") is None


def test_no_such_run(servers: list[Client]) -> None:
    for server in servers:
        assert server.get("/api/v1/runs/none/failure").status_code == 404
