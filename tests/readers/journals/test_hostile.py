"""Valid frames with hostile content: no reader fails, and other runs are unaffected."""

from __future__ import annotations

import contextlib
import io
import json
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import example, given, settings

from runvitals.cli import main
from runvitals.journal import frames
from runvitals.journal.paths import run_dir
from runvitals.readers.journals.run_handle import open_run
from runvitals.readers.journals.runs import RunList
from tests.model.hostile import T0
from tests.readers.journals.hostile import Payload, journals, json_payload, plant, sample_payload, steps
from tests.readers.journals.journals import Monitor, Training
from tests.server.client import Client


def healthy(directory: Path) -> None:
    training = Training(directory, "healthy")
    training.advance(3)
    training.end("finished", exit_code=0)


@contextlib.contextmanager
def folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as path:
        healthy(Path(path))
        yield Path(path)


def command(*words: str) -> str:
    out = io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(io.StringIO()):
        assert main(list(words)) == 0
    out.getvalue().encode("utf-8")
    return out.getvalue()


PATHS = (
    "about",
    "projects",
    "runs",
    "fields",
    "latest",
    "runs/abc",
    "runs/abc/events",
    "runs/abc/console",
    "runs/abc/series",
    "runs/abc/metrics",
    "runs/abc/metrics?max_points=2",
    "runs/abc/statistics",
    "runs/abc/history",
    "runs/abc/history?max_points=2",
    "aggregate?metric=cpu",
    "runs/healthy",
    "runs/healthy/metrics",
)
SETTINGS = settings(max_examples=12)
_INFINITE_COUNT = json_payload(frames.EVENT, {"t": T0, "name": "records_lost", "count": float("inf")})
_HUGE_STEP = json_payload(frames.HISTORY, {"t": T0, "step": 10**400, "data": {"loss": 1.0}})
_NAN_TIME = json_payload(frames.EVENT, {"t": float("nan"), "name": "alert"})
_SURROGATE = json_payload(
    frames.INFO, {"t": T0, "run": {"name": "\ud800", "tags": ["\udfff"]}, "config": {"\ud800": 1}}
)
_LATE = json_payload(frames.INFO, {"t": 10**18, "config": {"a": 1}})
_LIST_SCHEMA = json_payload(frames.SCHEMA, [0, ["cpu"]])
_LONE_MONITOR = "monitor.node1.199c7f9d400"


@SETTINGS
@given(journals, steps)
@example({_LONE_MONITOR: [_INFINITE_COUNT]}, 1)
@example({_LONE_MONITOR: [_HUGE_STEP]}, 1)
@example({_LONE_MONITOR: [_NAN_TIME]}, 1)
@example({_LONE_MONITOR: [_SURROGATE]}, 1)
@example({_LONE_MONITOR: [_LATE]}, 1)
@example({_LONE_MONITOR: [_LIST_SCHEMA, sample_payload(0, T0, [1.0])]}, 1)
@example({_LONE_MONITOR: [_LATE]}, 2**63)
def test_commands_do_not_fail(journal: dict[str, list[Payload]], number_step: int) -> None:
    with folder() as path:
        plant(path, "abc", journal, number_step)
        listed = {run["id"]: run for run in json.loads(command("runs", "--json", "--dir", str(path)))}
        assert listed["healthy"]["state"] == "finished"
        assert "abc" in listed
        assert "healthy" in command("runs", "--dir", str(path))
        for words in (["show"], ["show", "--json"], ["export"], ["export", "--history", "--format", "jsonl"]):
            command(*words, "abc", "--dir", str(path))
        run = open_run("abc", str(path))
        run.history()
        list(run.console())
        repr(run)


@SETTINGS
@given(journals, steps)
@example({_LONE_MONITOR: [_INFINITE_COUNT, _HUGE_STEP, _NAN_TIME, _SURROGATE, _LATE, _LIST_SCHEMA]}, 1)
def test_the_api_does_not_fail(journal: dict[str, list[Payload]], number_step: int) -> None:
    with folder() as path:
        plant(path, "abc", journal, number_step)
        client = Client(path)
        for part in PATHS:
            response = client.get(f"/api/v1/{part}")
            # 422: what was asked for is too much, with what to do instead
            assert response.status_code in (200, 422), (part, response.text)
            assert response.status_code == 200 or "healthy" not in part


def test_damaged_records_are_counted_and_named(tmp_path: Path) -> None:
    plant(tmp_path, "abc", {_LONE_MONITOR: [_INFINITE_COUNT, _NAN_TIME, _LIST_SCHEMA, _HUGE_STEP]})
    run = open_run("abc", str(tmp_path))
    assert run.problems[0] == "skipped 3 damaged records"
    problems = "\n".join(run.problems)
    for expected in (
        "invalid count: expected a number of records, 0 to 2⁵³, not inf",
        "invalid t: expected a time in ms UTC, 1970 to 9998, not nan",
        "invalid schema: expected an object, not a list",
        "an integer of 1329 bits",
    ):
        assert expected in problems
    (listed,) = RunList(str(tmp_path)).runs(T0)
    assert listed.problems == [f"{_LONE_MONITOR}: 3 damaged records"]
    assert run.history()[0].data == {"loss": 1.0}
    assert run.history()[0].step is None


@pytest.mark.parametrize("run_id", ["abc", "other"])
def test_special_files_do_not_block_readers(tmp_path: Path, run_id: str) -> None:
    monitor = Monitor(tmp_path, "abc")
    monitor.sample(T0, {"cpu": 1.0})
    monitor.end(T0 + 1000)
    folder = Path(run_dir(run_id, str(tmp_path)))
    folder.mkdir(exist_ok=True)
    os.mkfifo(folder / "monitor.zz.1.00000.rvj")
    (folder / "monitor.zz.2.00000.rvj").mkdir()
    (folder / "monitor.zz.3.00000.rvj").symlink_to("/dev/zero")
    os.mkfifo(os.fsencode(folder) + b"/monitor.\xff.1.00000.rvj")
    runs = {run.id: run for run in RunList(str(tmp_path)).runs(T0)}
    assert runs["abc"].state == "finished" or run_id == "abc"
    assert any("not a regular file" in problem for problem in runs[run_id].problems)
    assert "not a regular file" in "\n".join(open_run(run_id, str(tmp_path)).problems)
    assert Client(tmp_path).ask("runs")["total"] == len(runs)
