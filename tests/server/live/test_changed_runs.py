"""One stream for a page of many runs: which of them have changed."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import pytest

from runvitals.readers.journals.reader import RunReader
from runvitals.server.library.local.journal_run import JournalView
from runvitals.server.library.run_library import NamedRun, RunVersion, RunView
from runvitals.server.live import changed_runs
from runvitals.server.live.changed_runs import ChangedRuns, stream
from tests.readers.journals.journals import T0, Training


class Opened:
    """A run of a journal; with `heard`, one that tells when there is something new, as those of a store."""

    def __init__(self, directory: Path, run_id: str) -> None:
        self.reader = RunReader(run_id, str(directory))
        self.heard: RunVersion | None = None

    def version(self) -> RunVersion | None:
        return self.heard

    async def use(self, work: Callable[[RunView], Any], quick: bool = False) -> Any:
        self.reader.poll()
        return work(JournalView(self.reader))


class Runs:
    """Two running runs, as a library finds them."""

    def __init__(self, directory: Path) -> None:
        self.trainings = {run: Training(directory, run) for run in ("a", "b")}
        self.opened = {run: Opened(directory, run) for run in self.trainings}
        self.states = dict.fromkeys(self.trainings, "running")

    async def find(self) -> list[NamedRun]:
        return [
            NamedRun(run, run, self.states[run], T0, T0, self.opened[run])  # type: ignore[arg-type]
            for run in self.trainings
            if self.states[run] != "deleted"
        ]


@pytest.fixture
def runs(tmp_path: Path) -> Runs:
    return Runs(tmp_path)


def test_runs_with_news_are_named(runs: Runs) -> None:
    async def follow() -> None:
        changes = ChangedRuns(runs.find)
        assert await changes.changed_ids() == ["a", "b"]
        assert await changes.changed_ids() == []
        runs.trainings["b"].advance()
        assert await changes.changed_ids() == ["b"]

    anyio.run(follow)


def test_versions_of_a_store_are_compared_without_reading_it(runs: Runs) -> None:
    async def follow() -> None:
        for opened in runs.opened.values():
            opened.heard = RunVersion(1, 1)
        changes = ChangedRuns(runs.find)
        await changes.changed_ids()
        runs.trainings["b"].advance()
        assert await changes.changed_ids() == []
        runs.opened["b"].heard = RunVersion(2, 1)
        assert await changes.changed_ids() == ["b"]

    anyio.run(follow)


def test_runs_are_looked_up_again(runs: Runs, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(changed_runs, "CHECK_INTERVAL_S", 0.0)

    async def follow() -> None:
        changes = ChangedRuns(runs.find)
        await changes.changed_ids()
        runs.states["a"] = "finished"
        assert await changes.changed_ids() == ["a"]
        runs.states["a"] = "deleted"
        runs.trainings["a"].advance()
        assert await changes.changed_ids() == []

    anyio.run(follow)


def test_the_stream_sends_changes_and_signs_of_life(runs: Runs, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(changed_runs, "POLL_S", 0.01)
    monkeypatch.setattr(changed_runs, "HEARTBEAT_S", 0.0)

    async def follow() -> None:
        changes, closing = ChangedRuns(runs.find), anyio.Event()
        await changes.changed_ids()
        events = stream(changes, closing)
        assert await anext(events) == b"retry: 1000\n\n"
        assert await anext(events) == b": nothing new\n\n"
        runs.trainings["a"].advance()
        event = await anext(events)
        while event == b": nothing new\n\n":
            event = await anext(events)
        name, data = event.decode().splitlines()[:2]
        assert (name, json.loads(data.removeprefix("data: "))) == ("event: changed", {"runs": ["a"]})
        closing.set()
        assert [event async for event in events][1:] == []

    anyio.run(follow)
