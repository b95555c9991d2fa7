"""Valid frames with hostile content: no reader falls over, and other runs are as they were."""

from __future__ import annotations

import contextlib
import io
import json
import os
import struct
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from runvitals.cli import main
from runvitals.journal import frames
from runvitals.journal.frames import frame
from runvitals.journal.jsontext import dumps
from runvitals.journal.paths import run_dir
from runvitals.journal.records import CONSOLE_HEAD
from runvitals.query.opened import open_run
from runvitals.query.runs import RunList
from tests.model.hostile import T0, objects, texts, values
from tests.query.journals import Monitor, Training
from tests.server.client import Client

Payload = tuple[int, bytes]
_TYPES = [frames.START, frames.HISTORY, frames.EVENT, frames.LIFECYCLE, frames.INFO]


def _json(type: int, value: Any) -> Payload:
    return type, dumps(value)


def _sample(schema_id: int, time_ms: int, row: list[float]) -> Payload:
    return frames.SAMPLE, struct.pack(f"<IIq{len(row)}d", schema_id, 0, time_ms, *row)


int64 = st.sampled_from([T0, T0 + 1000, T0 + 2000, 0, -1, 2**63 - 1, -(2**63)])
numbers = st.floats() | st.sampled_from([1e308, -1e308, 0.0, 1.0])
schemas = st.fixed_dictionaries(
    {"id": st.sampled_from([0, 1]) | values, "keys": st.lists(texts, max_size=3) | values}
)
any_payload = (
    st.builds(_json, st.sampled_from(_TYPES), objects | values)
    | st.builds(lambda value: _json(frames.SCHEMA, value), schemas | values)
    | st.builds(_sample, st.sampled_from([0, 1, 7]), int64, st.lists(numbers, max_size=3))
    | st.builds(
        lambda stream, t, text: (frames.CONSOLE, CONSOLE_HEAD.pack(stream, t) + text),
        st.integers(0, 3),
        int64,
        st.binary(max_size=5),
    )
    | st.tuples(st.integers(0, 255), st.binary(max_size=30))
)
writers = st.sampled_from(
    ["monitor.node1.199c7f9d400", "train.node1.4711.199c7f9d400", "x", "monitor.node1.zz"]
)
journals = st.dictionaries(writers, st.lists(any_payload, max_size=12), min_size=1, max_size=3)
steps = st.sampled_from([1, 1, 1, 1, 2, 0, 2**63, 2**64 - 10])


def plant(directory: Path, run_id: str, journal: dict[str, list[Payload]], number_step: int = 1) -> None:
    folder = Path(run_dir(run_id, str(directory)))
    folder.mkdir(parents=True)
    for writer, payloads in journal.items():
        start = _json(frames.START, {"t": T0, "host": "node1", "role": writer.partition(".")[0]})
        data = b"".join(
            frame(type, min(index * number_step, 2**64 - 1), payload)
            for index, (type, payload) in enumerate([start, *payloads])
        )
        (folder / f"{writer}.00000.rvj").write_bytes(data)


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
SETTINGS = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
_INFINITE_COUNT = _json(frames.EVENT, {"t": T0, "name": "records_lost", "count": float("inf")})
_HUGE_STEP = _json(frames.HISTORY, {"t": T0, "step": 10**400, "data": {"loss": 1.0}})
_NAN_TIME = _json(frames.EVENT, {"t": float("nan"), "name": "alert"})
_SURROGATE = _json(
    frames.INFO, {"t": T0, "run": {"name": "\ud800", "tags": ["\udfff"]}, "config": {"\ud800": 1}}
)
_LATE = _json(frames.INFO, {"t": 10**18, "config": {"a": 1}})
_LIST_SCHEMA = _json(frames.SCHEMA, [0, ["cpu"]])
_LONE_MONITOR = "monitor.node1.199c7f9d400"


@SETTINGS
@given(journals, steps)
@example({_LONE_MONITOR: [_INFINITE_COUNT]}, 1)
@example({_LONE_MONITOR: [_HUGE_STEP]}, 1)
@example({_LONE_MONITOR: [_NAN_TIME]}, 1)
@example({_LONE_MONITOR: [_SURROGATE]}, 1)
@example({_LONE_MONITOR: [_LATE]}, 1)
@example({_LONE_MONITOR: [_LIST_SCHEMA, _sample(0, T0, [1.0])]}, 1)
@example({_LONE_MONITOR: [_LATE]}, 2**63)
def test_commands_survive(journal: dict[str, list[Payload]], number_step: int) -> None:
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
def test_every_page_survives(journal: dict[str, list[Payload]], number_step: int) -> None:
    with folder() as path:
        plant(path, "abc", journal, number_step)
        client = Client(path)
        for part in PATHS:
            answer = client.get(f"/api/v1/{part}")
            # 422: what was asked for is too much, with what to do instead
            assert answer.status_code in (200, 422), (part, answer.text)
            assert answer.status_code == 200 or "healthy" not in part


def test_damaged_records_are_counted_and_named(tmp_path: Path) -> None:
    plant(tmp_path, "abc", {_LONE_MONITOR: [_INFINITE_COUNT, _NAN_TIME, _LIST_SCHEMA, _HUGE_STEP]})
    run = open_run("abc", str(tmp_path))
    assert run.problems[0] == "3 damaged records were left out"
    told = "\n".join(run.problems)
    for expected in (
        "count is inf",
        "t is nan",
        "an object is expected, not a list",
        "an integer of 1329 bits",
    ):
        assert expected in told
    (listed,) = RunList(str(tmp_path)).runs(T0)
    assert listed.problems == [f"{_LONE_MONITOR}: 3 damaged records"]
    assert run.history()[0].data == {"loss": 1.0}
    assert run.history()[0].step is None


@pytest.mark.parametrize("place", ["abc", "other"])
def test_what_is_no_file_holds_nobody_up(tmp_path: Path, place: str) -> None:
    monitor = Monitor(tmp_path, "abc")
    monitor.sample(T0, {"cpu": 1.0})
    monitor.end(T0 + 1000)
    folder = Path(run_dir(place, str(tmp_path)))
    folder.mkdir(exist_ok=True)
    os.mkfifo(folder / "monitor.zz.1.00000.rvj")
    (folder / "monitor.zz.2.00000.rvj").mkdir()
    (folder / "monitor.zz.3.00000.rvj").symlink_to("/dev/zero")
    os.mkfifo(os.fsencode(folder) + b"/monitor.\xff.1.00000.rvj")
    runs = {run.id: run for run in RunList(str(tmp_path)).runs(T0)}
    assert runs["abc"].state == "finished" or place == "abc"
    assert any("is not a file" in problem for problem in runs[place].problems)
    assert "is not a file" in "\n".join(open_run(place, str(tmp_path)).problems)
    assert Client(tmp_path).ask("runs")["total"] == len(runs)
