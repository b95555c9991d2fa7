"""The list of runs and their states."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from runvitals.journal import paths
from runvitals.journal.sealing import SegmentSealer
from runvitals.model.run import Run
from runvitals.readers.journals import file_ends
from runvitals.readers.journals.reader import RunReader
from runvitals.readers.journals.runs import RunList
from tests.readers.journals.journals import MACHINE, T0, Monitor, Trainer, Training


def run_of(directory: Path, now_ms: int = T0 + 3_600_000, run_id: str = "abc") -> Run:
    """The run as listed, which must equal what the full reader returns."""
    reader = RunReader(run_id, str(directory))
    reader.poll()
    full = reader.run(now_ms)
    listed = RunList(str(directory)).run(run_id, now_ms)
    assert listed is not None
    assert (listed.ending, listed.started_ms, listed.ended_ms) == (
        full.ending,
        full.started_ms,
        full.ended_ms,
    )
    assert (listed.config, listed.tags, listed.last) == (full.config, full.tags, full.last)
    return full


def test_an_end_record_decides(tmp_path: Path) -> None:
    monitor = Monitor(tmp_path)
    monitor.sample(T0 + 1000, {"cpu": 1.0})
    monitor.end(T0 + 2500, "crashed", signal=9, out_of_memory=True)
    run = run_of(tmp_path)
    assert (run.state, run.exit_code, run.signal, run.out_of_memory) == ("crashed", None, 9, True)
    assert (run.started_ms, run.ended_ms, run.duration_ms) == (T0, T0 + 2500, 2500)


@pytest.mark.parametrize(
    ("interval_s", "silent_ms", "state"),
    [(1.0, 10_000, "running"), (1.0, 10_001, "lost"), (60.0, 300_000, "running"), (60.0, 300_001, "lost")],
)
def test_a_silent_run_without_an_end_record_is_lost(
    tmp_path: Path, interval_s: float, silent_ms: int, state: str
) -> None:
    Monitor(tmp_path, interval_s=interval_s).sample(T0, {"cpu": 1.0})
    run = run_of(tmp_path, T0 + silent_ms)
    assert run.state == state
    assert run.ended_ms == (None if state == "running" else T0)
    assert run.duration_ms == (silent_ms if state == "running" else 0)


def test_the_newest_monitor_of_a_host_decides(tmp_path: Path) -> None:
    Monitor(tmp_path).sample(T0, {"cpu": 1.0})
    second = Monitor(tmp_path, start_ms=T0 + 60_000)
    second.lifecycle(T0 + 60_000, "gap", since=T0 + 1000)
    second.end(T0 + 61_000, "finished", exit_code=0)
    run = run_of(tmp_path)
    assert run.state == "finished"
    assert run.hosts[0].monitors == 2
    assert [event.text for event in run.events] == ["no samples for 59.0 s: the monitor was restarted"]


@pytest.mark.parametrize(
    ("states", "whole"),
    [
        (("finished", "failed", "crashed"), "crashed"),
        (("finished", "failed", "stopped"), "failed"),
        (("finished", "stopped", None), "lost"),
        (("finished", "stopped"), "stopped"),
        (("finished", "finished"), "finished"),
    ],
)
def test_the_worst_host_decides(tmp_path: Path, states: tuple[str | None, ...], whole: str) -> None:
    for i, state in enumerate(states):
        monitor = Monitor(tmp_path, host=f"node{i}")
        if state is not None:
            monitor.end(T0 + 1000, state)
    assert run_of(tmp_path).state == whole


def test_a_run_is_running_while_any_host_is(tmp_path: Path) -> None:
    Monitor(tmp_path, host="node0").end(T0 + 1000, "crashed", signal=11)
    Monitor(tmp_path, host="node1").sample(T0 + 9000, {"cpu": 1.0})
    assert run_of(tmp_path, T0 + 10_000).state == "running"


def test_the_facts_of_a_run(tmp_path: Path) -> None:
    training = Training(tmp_path, name="first", tags=("a", "b"))
    training.advance(3)
    training.end(exit_code=0)
    run = run_of(tmp_path)
    assert (run.id, run.project, run.name, run.tags, run.notes) == (
        "abc",
        "digits",
        "first",
        ["a", "b"],
        "first try",
    )
    assert run.command == ["python", "train.py", "--epochs", "12"]
    assert run.config["model"] == {"depth": 12, "width": 384}
    assert run.summary == {"accuracy": 0.97, "loss": 0.08, "best_epoch": 11, "lr": 0.001}
    assert run.machines == {"node1": MACHINE}
    assert run.sources["node1"]["energy"]["state"] == "absent"
    assert [(rank.rank, rank.pid, rank.exit_code) for rank in run.ranks] == [(0, 4711, 0)]
    assert run.last["node1"]["proc.cpu.threads"] == 38.0


def test_the_command_may_be_among_the_facts_of_the_machine(tmp_path: Path) -> None:
    Monitor(tmp_path).info(T0, machine={"command": ["python", "train.py"]})
    assert run_of(tmp_path).command == ["python", "train.py"]


def test_later_sections_override_earlier_ones_key_by_key_from_any_writer(tmp_path: Path) -> None:
    trainer = Trainer(tmp_path)
    trainer.info(T0, config={"lr": 0.1, "depth": 2})
    trainer.info(T0 + 2000, config={"lr": 0.2})
    other = Trainer(tmp_path, host="a-host-that-sorts-first", rank=1)
    other.info(T0 + 1000, config={"lr": 0.3, "width": 8})
    assert run_of(tmp_path).config == {"lr": 0.2, "depth": 2, "width": 8}


def test_lost_records_are_counted(tmp_path: Path) -> None:
    monitor = Monitor(tmp_path)
    monitor.event(T0, "records_lost", "error", "7 records could not be written", count=7)
    assert run_of(tmp_path).lost_records == 7


def test_an_invalid_record_is_a_problem_and_the_rest_is_read(tmp_path: Path) -> None:
    monitor = Monitor(tmp_path)
    monitor.info(T0, config=["not", "a", "dictionary"])
    monitor.lifecycle(T0, "end", state="exploded")
    monitor.info(T0, config={"lr": 0.5})
    run = run_of(tmp_path, T0)
    assert run.config == {"lr": 0.5}
    assert len(run.problems) == 3
    assert run.problems[0] == "skipped 2 damaged records"
    assert "invalid config: expected an object, not a list" in run.problems[1]
    assert "'exploded'" in run.problems[2]
    assert run.state == "running"


def test_newest_first(tmp_path: Path) -> None:
    for i in (2, 0, 1):
        Monitor(tmp_path, f"run{i}", start_ms=T0 + i * 1000)
    assert [run.id for run in RunList(str(tmp_path)).runs(T0)] == ["run2", "run1", "run0"]


def test_no_data_folder_has_no_runs(tmp_path: Path) -> None:
    assert RunList(str(tmp_path / "none")).runs(T0) == []


def test_a_folder_without_a_journal_is_not_a_run(tmp_path: Path) -> None:
    (tmp_path / "runs" / "empty").mkdir(parents=True)
    (tmp_path / "runs" / "notes.txt").write_text("hello")
    assert RunList(str(tmp_path)).runs(T0) == []
    assert RunList(str(tmp_path)).run("gone", T0) is None


def test_a_list_includes_what_was_appended(tmp_path: Path) -> None:
    training = Training(tmp_path)
    training.advance(2)
    runs = RunList(str(tmp_path))
    assert runs.runs(T0 + 2000)[0].last["node1"]["disk.in"] > 0
    before = runs.runs(T0 + 2000)[0].last["node1"]["disk.in"]
    training.advance(1)
    assert runs.runs(T0 + 3000)[0].last["node1"]["disk.in"] > before
    training.end(exit_code=0)
    assert runs.runs(T0 + 4000)[0].state == "finished"


def test_a_run_that_ended_long_ago_is_read_again_when_it_is_resumed(tmp_path: Path) -> None:
    Monitor(tmp_path).end(T0, "failed", exit_code=1)
    runs = RunList(str(tmp_path))
    for now_ms in (T0, T0 + 100_000, T0 + 200_000):
        assert runs.runs(now_ms)[0].state == "failed"
    Monitor(tmp_path, start_ms=T0 + 300_000)
    assert runs.runs(T0 + 300_000)[0].state == "running"


def test_a_list_reads_only_the_ends_of_long_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(file_ends, "EDGE_BYTES", 4096)
    training = Training(tmp_path)
    training.advance(2000)
    training.monitor.sample(
        training.now_ms, {"cpu": 5.0, "a.new.key": 6.0}
    )  # its schema is far from the end …
    for i in range(200):
        training.monitor.sample(training.now_ms + i, {"cpu": 7.0, "a.new.key": 8.0 + i})
    path = training.monitor.journal.path
    assert os.path.getsize(path) > 100 * 4096

    runs = RunList(str(tmp_path))
    run = runs.run("abc", training.now_ms)
    assert run is not None
    assert run.last["node1"] == {"cpu": 7.0, "a.new.key": 207.0}  # … and found all the same
    assert run.machines == {"node1": MACHINE}
    assert run.state == "running"


def test_a_list_of_many_segments_and_sealed_files(tmp_path: Path) -> None:
    monitor = Monitor(tmp_path, segment_bytes=20_000)
    monitor.info(T0, machine=MACHINE)
    for i in range(2000):
        monitor.sample(T0 + i * 1000, {"cpu": float(i), "memory_percent": 2.0})
    assert len(monitor.journal.rotated) > 3
    for path in monitor.journal.rotated:
        sealer = SegmentSealer(path)
        while sealer.step():
            pass
    run = run_of(tmp_path, T0 + 2_000_000)
    assert run.machines == {"node1": MACHINE}
    assert run.last == {"node1": {"cpu": 1999.0, "memory_percent": 2.0}}


def test_an_invalid_file_is_a_run_without_facts(tmp_path: Path) -> None:
    folder = Path(paths.run_dir("odd", str(tmp_path)))
    folder.mkdir(parents=True)
    (folder / "monitor.node1.abc.00000.rvj").write_bytes(b"not a journal" * 1000)
    run = RunList(str(tmp_path)).run("odd", T0)
    assert run is not None
    assert run.state == "lost"
