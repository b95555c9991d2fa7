"""Lost device-hours, in both databases."""

from __future__ import annotations

import pytest

from runvitals.findings.finding import Finding, Findings
from runvitals.model.durations import HOUR_MS
from runvitals.model.filter import Filter
from runvitals.server.findings.kept_result import JudgedRun, continue_result
from runvitals.server.findings.storage.lost_time_reading import LostTimePeriod
from runvitals.server.metadata_store import MetadataStore
from runvitals.server.runs.storage.writer_registration import WriterRegistration

T0 = 1_800_000_000_000


def lose(store: MetadataStore, uid: str, project: str = "digits", **hours: float) -> int:
    """A run of ten hours that lost some to causes, each on a host of its own."""
    [writer] = store.writers.join([WriterRegistration(uid, "monitor.node1.1", project)], T0)
    findings = [
        Finding(
            id=cause,
            severity="warning",
            confidence="certain",
            from_ms=T0,
            to_ms=None,
            share=1.0,
            hosts=(f"node{number}",),
            devices=(),
            ranks=(),
            text=f"{cause} of {uid}",
            evidence=(),
            device_hours=lost,
            advice=f"Mend {cause}.",
            docs="",
        )
        for number, (cause, lost) in enumerate(hours.items())
    ]
    times = (T0, T0, T0 + 10 * HOUR_MS)
    judged = JudgedRun(writer.run_id, 1, *times, False, Findings("", "", findings), 1e6)
    store.findings.put([continue_result(None, judged)[0]])
    return writer.run_id


def test_hours_by_cause_and_the_runs_behind_them(metadata_store: MetadataStore) -> None:
    store = metadata_store
    first, second = lose(store, "a", idle=5.0, hang=20.0), lose(store, "b", idle=10.0)
    lose(store, "c")
    whole = LostTimePeriod(Filter(project="digits"), T0, T0 + 10 * HOUR_MS)
    reading = store.lost_time
    assert [(each.id, each.hours, each.runs) for each in reading.causes(whole, T0)] == [
        ("hang", pytest.approx(20.0), 1),
        ("idle", pytest.approx(15.0), 2),
    ]
    half = LostTimePeriod(Filter(), T0 + 5 * HOUR_MS, T0 + 100 * HOUR_MS)
    assert [each.hours for each in reading.causes(half, T0)] == pytest.approx([10.0, 7.5])
    assert sorted((each.cause, each.run_id, each.hours) for each in reading.by_run(whole, T0)) == [
        ("hang", first, 20.0),
        ("idle", first, 5.0),
        ("idle", second, 10.0),
    ]
    assert {each.run_id for each in reading.by_run(whole, T0, "hang")} == {first}
    rows, total = reading.runs(whole, T0, limit=1, skip=1, cause="idle")
    assert total == 2
    assert [(each.run, each.text, each.hours) for each in rows] == [("a", "idle of a", pytest.approx(5.0))]
    assert (rows[0].from_ms, rows[0].to_ms) == (T0, None)
    assert reading.counts(whole, T0) == (3, 3)
    spans = store.usage.reading.lost_time(T0, T0 + HOUR_MS)
    assert sorted((each.run_id, each.hours) for each in spans) == [
        (first, 5.0),
        (first, 20.0),
        (second, 10.0),
    ]


def test_hours_by_team_and_project(metadata_store: MetadataStore) -> None:
    store = metadata_store
    lose(store, "a", idle=5.0, hang=20.0)
    lose(store, "b", idle=10.0)
    lose(store, "c", "faces", idle=50.0)
    period = LostTimePeriod(Filter(), T0, T0 + 10 * HOUR_MS)
    rows, total = store.lost_time.places(period, T0, True, limit=10, skip=0)
    assert [(each.project, each.hours, each.runs) for each in rows] == [
        ("faces", pytest.approx(50.0), 1),
        ("digits", pytest.approx(35.0), 2),
    ]
    assert total == 2
    rows, total = store.lost_time.places(period, T0, True, limit=1, skip=1, cause="hang")
    assert (rows, total) == ([], 1)
    rows, total = store.lost_time.places(period, T0, False, limit=10, skip=0, cause="idle")
    assert [(each.project, each.project_id, each.hours, each.runs, total) for each in rows] == [
        (None, None, pytest.approx(65.0), 3, 1)
    ]


def test_what_rules_read_of_findings(metadata_store: MetadataStore) -> None:
    store, run_id = metadata_store, lose(metadata_store, "a", idle=5.0, hang=20.0)
    findings = store.alerts.findings
    assert findings.runs_judged_since(T0 + 1) == set()
    assert findings.runs_judged_since(T0 + 1, with_running=True) == findings.runs_judged_since(T0) == {run_id}
    idle, hang = findings.of_runs([run_id])
    assert (idle.id, hang.id, hang.hosts, hang.lasted_ms) == ("idle", "hang", ("node1",), 10 * HOUR_MS)
    assert findings.with_advice(hang).advice == "Mend hang."
    lane = findings.lane(hang)
    assert lane is not None
    assert (lane.run_id, lane.uid, lane.project) == (run_id, "a", "digits")
    assert findings.firings([1]) == findings.firings([1], [run_id]) == []
