"""`open_run`, as used in notebooks."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from types import FrameType

import pytest

from runvitals.model.errors import UnknownRun
from runvitals.readers.journals import open_run
from runvitals.readers.journals.run_handle import find_run
from tests.readers.journals.journals import T0, Monitor, Trainer, Training


def test_reading_a_run_in_two_lines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    training = Training(tmp_path, gpus=2)
    training.advance(5)
    training.end(exit_code=0)
    monkeypatch.setenv("RUNVITALS_DIR", str(tmp_path))

    run = open_run("abc")
    t, watts = run.metrics("gpu.*")["gpu.0.powerWatts"]

    assert t.tolist() == [T0 + i * 1000 for i in range(5)]
    assert watts.dtype == "float64"
    assert run.state == "finished"
    assert run.config["lr"] == 0.001
    assert run.summary["accuracy"] == 0.97
    assert repr(run) == "<run abc of project 'digits': finished>"


def test_refresh_reads_what_was_appended(tmp_path: Path) -> None:
    training = Training(tmp_path)
    training.advance(2)
    run = open_run("abc", str(tmp_path))
    training.advance(3)
    assert len(run.metrics("cpu")["cpu"]) == 2
    assert len(run.refresh().metrics("cpu")["cpu"]) == 5


def test_history_has_all_rows_of_all_ranks(tmp_path: Path) -> None:
    first, second = Trainer(tmp_path, rank=0), Trainer(tmp_path, pid=4712, rank=1)
    first.log(T0 + 1, 0, loss=0.5, note="start", nested={"a": 1})
    second.log(T0, 0, loss=0.75)
    first.log(T0 + 2, None, loss=0.25)
    calls = open_run("abc", str(tmp_path)).history()
    assert [(call.rank, call.step, call.data["loss"]) for call in calls] == [
        (1, 0, 0.75), (0, 0, 0.5), (0, None, 0.25),
    ]  # fmt: skip
    assert calls[1].data == {"loss": 0.5, "note": "start", "nested": {"a": 1}}


def test_console_has_everything_printed(tmp_path: Path) -> None:
    monitor = Monitor(tmp_path)
    monitor.printed(T0, "epoch 1\n")
    monitor.printed(T0 + 1, b"caf\xc3\xa9 \xff\n", stream=2)
    printed = list(open_run("abc", str(tmp_path)).console())
    assert [(p.time_ms - T0, p.stream, p.text) for p in printed] == [
        (0, "stdout", "epoch 1\n"),
        (1, "stderr", "café �\n"),
    ]


def test_a_run_is_found_by_id_prefix_and_latest_is_the_newest(tmp_path: Path) -> None:
    for i, run_id in enumerate(("brave-otter-1", "brave-otter-2", "calm-yak-1")):
        Monitor(tmp_path, run_id, start_ms=T0 + i)
    assert find_run("calm", str(tmp_path)) == "calm-yak-1"
    assert find_run("brave-otter-1", str(tmp_path)) == "brave-otter-1"
    assert find_run("latest", str(tmp_path)) == "calm-yak-1"


@pytest.mark.parametrize(
    ("reference", "text"),
    [
        ("brave", "run id 'brave' is ambiguous in .*: brave-otter-1, brave-otter-2"),
        ("bravo-otter-1", "no run 'bravo-otter-1' in .*runs; did you mean brave-otter"),
        ("zzz", "no run 'zzz' in .*; list its 2 runs with"),
        ("../etc", "no run"),
        ("", "no run"),
    ],
)
def test_an_unknown_run(tmp_path: Path, reference: str, text: str) -> None:
    Monitor(tmp_path, "brave-otter-1")
    Monitor(tmp_path, "brave-otter-2")
    with pytest.raises(UnknownRun, match=text):
        open_run(reference, str(tmp_path))


def test_a_run_is_found_by_its_newest_name(tmp_path: Path) -> None:
    for run_id in ("a-1", "b-1"):
        monitor = Monitor(tmp_path, run_id)
        monitor.info(T0, run={"default_name": run_id.upper(), "name": f"first {run_id}"})
        monitor.sample(T0 + 1000, {"cpu": 1.0})
        monitor.info(T0 + 2000, run={"name": f"second {run_id}"})
    monitor.info(T0 + 3000, removed={"run": ["name"]})
    assert find_run("second a-1", str(tmp_path)) == "a-1"
    assert find_run("B-1", str(tmp_path)) == "b-1"
    with pytest.raises(UnknownRun, match="did you mean"):
        find_run("first a-1", str(tmp_path))


def test_what_runs_logged_is_not_read_to_find_a_name(tmp_path: Path) -> None:
    trainer = Trainer(tmp_path, "a-1")
    for step in range(1000):
        trainer.log(T0 + step, step, loss=0.5)
    decoded = 0

    def count(frame: FrameType, event: str, _: object) -> None:
        nonlocal decoded
        decoded += event == "call" and frame.f_code.co_name == "decode"

    sys.setprofile(count)
    try:
        with pytest.raises(UnknownRun):
            find_run("zzz", str(tmp_path))
    finally:
        sys.setprofile(None)
    assert decoded < 100


def test_an_empty_data_folder_is_named(tmp_path: Path) -> None:
    with pytest.raises(UnknownRun, match=f"{tmp_path}/runs contains no runs"):
        open_run("latest", str(tmp_path))


def test_damage_is_a_problem_and_the_rest_is_read(tmp_path: Path) -> None:
    monitor = Monitor(tmp_path)
    for i in range(10):
        monitor.sample(T0 + i, {"cpu": float(i)})
    path = Path(monitor.journal.path)
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 0xFF
    path.write_bytes(data)
    run = open_run("abc", str(tmp_path))
    assert len(run.metrics("cpu")["cpu"]) == 9
    assert "are damaged and were skipped" in run.problems[0]


def test_without_numpy_columns_are_lists(tmp_path: Path) -> None:
    training = Training(tmp_path)
    training.advance(3)
    script = """
import sys
sys.modules["numpy"] = None
from runvitals.query import open_run
run = open_run("abc", sys.argv[1])
t, values = run.metrics("disk.in")["disk.in"]
print(type(t).__name__, type(values).__name__, len(values), run.statistics("cpu")[0].n)
"""
    done = subprocess.run(
        [sys.executable, "-c", script, str(tmp_path)], capture_output=True, text=True, check=False
    )
    assert done.stdout == "list list 3 3\n", done.stderr


def test_events_of_old_journals_have_their_present_names(tmp_path: Path) -> None:
    monitor = Monitor(tmp_path)
    monitor.event(T0 + 1, "door_shut", "warning", "no free descriptor")
    monitor.event(T0 + 2, "not_inquired", "warning", "fork failed")
    monitor.end(T0 + 3)
    assert [event.name for event in open_run("abc", str(tmp_path)).events] == [
        "accept_failed",
        "facts_failed",
    ]
