"""Runs of a shared server are judged beside requests, once they have ended and while they go on."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from runvitals.findings.finding import RULES_VERSION
from runvitals.model.durations import DAY_MS, MINUTE_MS
from runvitals.readers.journals.run_handle import open_run
from runvitals.server.events.finding_changes import FindingChange, FindingOpened
from runvitals.server.findings import judge_thread
from runvitals.server.findings.judge_thread import JudgeThread
from runvitals.server.findings.kept_findings import EVENT, KeptFindings
from runvitals.server.library.run_library import RunView
from tests.findings.scenarios import healthy, sick
from tests.findings.scenarios.journal import write_journal
from tests.server.findings.test_run_findings import without_names
from tests.server.stored_runs import StoredServer

COURSES = {
    "sick": sick.input_bound_cpu("h100", seed=3, interval_s=10.0),
    "well": healthy.marked_validation("h100", seed=3, interval_s=10.0),
}


class Judged:
    """A server with two runs, and the thread that judges them."""

    def __init__(self, folder: Path, server: StoredServer) -> None:
        self.folder, self.server = folder, server
        self.heard: list[FindingChange] = []
        self.findings = KeptFindings(server.metadata_store, lambda: server.now_ms, [self.heard.extend])
        self.thread = self.make_thread()

    def make_thread(self) -> JudgeThread:
        store = self.server.metadata_store
        return JudgeThread(self.server.store, store, self.findings, lambda: self.server.now_ms, lambda: 0.0)

    def verdict(self, run_id: str) -> str | None:
        run = self.server.metadata_store.runs.find(run_id, self.server.now_ms)
        assert run is not None
        kept = self.server.metadata_store.findings.of_run(run.id)
        return None if kept is None else kept.findings.verdict


@pytest.fixture
def judged(tmp_path: Path) -> Iterator[Judged]:
    server = StoredServer(tmp_path / "stored")
    for name, course in COURSES.items():
        write_journal(course, tmp_path, name)
        server.take(tmp_path, name)
    yield Judged(tmp_path, server)
    server.close()


def test_ended_runs_are_judged_once(judged: Judged) -> None:
    judged.thread.judge_due()
    findings = judged.server.metadata_store.findings
    assert (judged.verdict("sick"), judged.verdict("well")) == ("input_bound_cpu", "healthy")
    for name in COURSES:
        answer = without_names(judged.server.ask(f"runs/{name}/findings"))
        assert answer == open_run(name, str(judged.folder)).findings().to_json()
    assert findings.due(RULES_VERSION, judged.server.now_ms, 10) == []
    assert judged.make_thread().judge_due() is None  # after a restart
    assert findings.due(RULES_VERSION + 1, judged.server.now_ms, 10, []) == []
    assert len(findings.due(RULES_VERSION + 1, judged.server.now_ms, 10)) == 2


def test_a_run_that_cannot_be_judged_stops_no_other(
    judged: Judged, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    whole = judged.findings.judge

    def failing(view: RunView, now_ms: int) -> Any:
        if view.run_id == "well":
            raise ZeroDivisionError("no windows")
        return whole(view, now_ms)

    monkeypatch.setattr(judged.findings, "judge", failing)
    judged.thread.judge_due()
    assert (judged.verdict("sick"), judged.verdict("well")) == ("input_bound_cpu", "unknown")
    assert list(judged.thread.failures.values()) == ["ZeroDivisionError('no windows')"]
    assert "run well could not be judged" in caplog.text
    monkeypatch.setattr(judged.findings, "judge", whole)
    judged.thread.judge_due()
    assert judged.verdict("well") == "unknown"  # it is tried again in an hour
    judged.server.now_ms += judge_thread._RETRY_MS
    judged.thread.judge_due()
    assert judged.verdict("well") == "healthy"
    assert judged.thread.failures == {}


def test_lists_show_filter_and_sort_by_findings(judged: Judged) -> None:
    runs = judged.server.ask("runs")["runs"]
    assert [run["verdict"] for run in runs] == [None, None]
    judged.thread.judge_due()

    def listed(**parameters: Any) -> list[str]:
        return [run["id"] for run in judged.server.ask("runs", **parameters)["runs"]]

    (sick_run,) = judged.server.ask("runs", filter="finding:input_bound_cpu")["runs"]
    assert sick_run["verdict"]["id"] == "input_bound_cpu"
    assert sick_run["verdict"]["severity"] in ("warning", "critical")
    assert sick_run["verdict"]["lost_device_hours"] > 0
    assert "input_bound_cpu" in sick_run["verdict"]["findings"]
    assert listed(filter="-finding:input_bound_cpu") == ["well"]
    assert listed(filter="verdict:healthy,hang") == ["well"]
    assert listed(filter="verdict:input_* state:finished lost_hours>0") == ["sick"]
    assert listed(sort="-verdict") == listed(sort="-lost_hours") == ["sick", "well"]
    assert listed(sort="verdict", descending="false") == ["well", "sick"]
    refused = judged.server.get("/api/v1/runs", params={"filter": "verdict:hung"})
    assert refused.status_code == 422
    assert "unknown verdict 'hung'; expected one of" in refused.text
    assert "hang" in refused.text


def test_what_happened_long_ago_is_no_event(judged: Judged) -> None:
    run = judged.server.metadata_store.runs.find("sick", judged.server.now_ms)
    assert run is not None
    judged.server.now_ms = run.last_ms + 10 * DAY_MS
    judged.thread.judge_due()
    assert judged.heard == []
    events = judged.server.ask("runs/sick")["events"]
    assert EVENT not in {event["name"] for event in events}


def test_findings_that_have_just_ended_are_events(judged: Judged) -> None:
    run = judged.server.metadata_store.runs.find("sick", judged.server.now_ms)
    assert run is not None
    judged.server.now_ms = run.last_ms + MINUTE_MS
    judged.thread.judge_due()
    assert "input_bound_cpu" in {each.finding.id for each in judged.heard if isinstance(each, FindingOpened)}
    events = [event for event in judged.server.ask("runs/sick")["events"] if event["name"] == EVENT]
    assert [event["data"]["state"] for event in events if event["data"]["finding"] == "input_bound_cpu"] == [
        "open",
        "closed",
    ]
