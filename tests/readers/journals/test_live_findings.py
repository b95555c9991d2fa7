"""A run of this machine is judged while its journal is read on: soon after a change, as when read anew."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from runvitals.readers.journals.live_findings import LiveFindings
from runvitals.readers.journals.reader import RunReader
from runvitals.readers.journals.run_handle import OpenRun
from tests.findings.scenarios import sick
from tests.findings.scenarios.course import START_MS, Course
from tests.readers.journals.journals import Monitor, Trainer

MINUTE_S = 60


def written(course: Course, folder: Path, until_s: float) -> Iterator[float]:
    """Write a course as it goes on; yield the seconds after each sample."""
    (host,) = course.samples()
    monitor = Monitor(folder, "a", host.name, START_MS, course.interval_s)
    monitor.info(START_MS, machine=host.machine)
    trainer = Trainer(folder, "a", host.name, rank=0, start_ms=START_MS)
    loss = course.columns()["train/loss"].values.tolist()
    steps = list(enumerate(zip(course.steps_s.tolist(), loss, strict=True)))
    columns = {key: values.tolist() for key, (_, values) in host.series.items()}
    for row, at_s in enumerate(course.t.tolist()):
        if at_s >= until_s:
            break
        while steps and steps[0][1][0] <= at_s:
            step, (logged_s, value) = steps.pop(0)
            trainer.log(START_MS + int(logged_s * 1000), step, **{"train/loss": value})
        sample = {key: values[row] for key, values in columns.items()}
        if row % 3:  # some are read more seldom than others
            del sample["disk./.usagePercent"]
        monitor.sample(START_MS + int(at_s * 1000), sample)
        yield at_s
    monitor.close()
    trainer.close()


def test_a_hang_is_found_soon_and_a_healthy_hour_judged_seldom(tmp_path: Path) -> None:
    course = sick.hang("h100", minutes=60, interval_s=10.0, devices=2)
    reader, judged = RunReader("a", str(tmp_path)), dict[float, str]()
    live = LiveFindings(reader, lambda: 0.0)
    for at_s in written(course, tmp_path, 55 * MINUTE_S):
        if at_s % 30:
            continue
        now_ms = START_MS + int(at_s * 1000)
        reader.poll()
        observed = live.observe(reader.run(now_ms), now_ms)
        if observed is not None:
            live.judge(observed, now_ms)
            assert live.findings is not None
            judged[at_s / MINUTE_S] = live.findings.verdict
            anew = OpenRun(RunReader("a", str(tmp_path)), lambda now_ms=now_ms: now_ms).findings()
            assert live.findings.to_json() == anew.to_json()
    assert sum(10 <= minute < 30 for minute in judged) <= 4
    assert min(minute for minute, verdict in judged.items() if verdict == "hang") <= 40
    assert any(30 < minute <= 32.5 for minute in judged)


def test_the_end_of_a_run_is_judged_at_once(tmp_path: Path) -> None:
    course = Course("h100", minutes=10, interval_s=10.0, devices=1)
    for _ in written(course, tmp_path, 5 * MINUTE_S):
        pass
    reader = RunReader("a", str(tmp_path))
    live = LiveFindings(reader)
    now_ms = START_MS + 5 * MINUTE_S * 1000
    reader.poll()
    observed = live.observe(reader.run(now_ms), now_ms)
    assert observed is not None
    live.judge(observed, now_ms)
    assert live.observe(reader.run(now_ms + 1000), now_ms + 1000) is None
    lost_ms = now_ms + 60 * MINUTE_S * 1000
    facts = reader.run(lost_ms)
    assert facts.state != "running"
    observed = live.observe(facts, lost_ms)
    assert observed is not None
    assert observed.ended_ms is not None
    live.judge(observed, lost_ms)
    assert live.observe(facts, lost_ms + 1000) is None
