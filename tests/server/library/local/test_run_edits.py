"""Edits of users beside a journal: what readers make of them, however they were written."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from runvitals import open_run
from runvitals.model.errors import CannotWrite, UnknownRun
from runvitals.model.run import Run
from runvitals.readers.journals.reader import RunReader
from runvitals.readers.journals.run_handle import find_run
from runvitals.readers.journals.runs import RunList
from runvitals.server.library.local.run_edits import RunEdits
from tests.journal.minireader import FileContents
from tests.not_root import folder_without_root
from tests.readers.journals.journals import T0, Monitor, Training

NOW = T0 + 3_600_000


def _both(directory: Path, run_id: str = "abc") -> tuple[Run, Run]:
    """The run as lists and as whole readers know it."""
    listed = RunList(str(directory)).run(run_id, NOW)
    reader = RunReader(run_id, str(directory))
    reader.poll()
    assert listed is not None
    return listed, reader.run(NOW)


def test_every_reader_shows_the_edited_facts(tmp_path: Path) -> None:
    training = Training(tmp_path)
    training.trainer.info(T0, run={"name": "first", "tags": ["a"], "notes": "before"})
    training.end()
    before = _both(tmp_path)
    RunEdits(str(tmp_path)).record(
        "abc", {"name": "基线 best", "tags": ["a", "good"], "project": "other", "starred": True}, T0 + 9000
    )
    for run, was in zip(_both(tmp_path), before, strict=True):
        assert (run.name, run.tags, run.notes, run.project) == ("基线 best", ["a", "good"], "before", "other")
        assert (run.starred, run.deleted_ms) == (True, None)
        # The edit is not part of what the run did.
        assert (run.state, run.started_ms, run.ended_ms) == (was.state, was.started_ms, was.ended_ms)
        assert (run.hosts, run.ranks, run.problems) == (was.hosts, was.ranks, [])
    assert find_run("基线 best", str(tmp_path)) == "abc"
    assert open_run("基线 best", str(tmp_path)).facts.tags == ["a", "good"]


def test_the_latest_time_wins_whichever_file_it_is_in(tmp_path: Path) -> None:
    training = Training(tmp_path)
    training.trainer.info(T0, run={"name": "first"})
    early, late = RunEdits(str(tmp_path)), RunEdits(str(tmp_path))
    late.record("abc", {"name": "last"}, T0 + 2000)
    early.record("abc", {"name": "middle", "notes": "kept"}, T0 + 1000)
    assert {(run.name, run.notes) for run in _both(tmp_path)} == {("last", "kept")}
    training.trainer.info(T0 + 3000, run={"name": "by the training"})
    assert {run.name for run in _both(tmp_path)} == {"by the training"}


def test_a_run_in_the_trash_is_kept_and_comes_back(tmp_path: Path) -> None:
    Monitor(tmp_path, "abc").end(T0 + 1000, "finished", exit_code=0)
    Monitor(tmp_path, "def")
    runs, edits = RunList(str(tmp_path)), RunEdits(str(tmp_path))
    files = sorted(os.listdir(tmp_path / "runs" / "abc"))
    edits.record("abc", {"deleted": True}, T0 + 9000)
    listed, trash = runs.with_trash(NOW)
    assert [run.id for run in listed] == ["def"]
    assert [(run.id, run.deleted_ms) for run in trash] == [("abc", T0 + 9000)]
    assert set(files) < set(os.listdir(tmp_path / "runs" / "abc"))
    edits.record("abc", {"deleted": False}, T0 + 9001)
    assert [run.id for run in runs.runs(NOW)] == ["abc", "def"]
    assert runs.with_trash(NOW)[1] == []


def test_lists_see_an_edit_of_a_run_that_ended_long_ago(tmp_path: Path) -> None:
    Monitor(tmp_path, "abc").end(T0 + 1000, "finished", exit_code=0)
    runs, edits = RunList(str(tmp_path)), RunEdits(str(tmp_path))
    for number in range(3):  # the second and third go to a file that lists know
        edits.record("abc", {"name": f"name {number}"}, T0 + 9000 + number)
        assert [run.name for run in runs.runs(NOW + number * 3_600_000)] == [f"name {number}"]
        assert [run.name for run in runs.runs(NOW + number * 3_600_000 + 120_000)] == [f"name {number}"]


def test_lists_read_all_edits_of_a_file_that_is_long(tmp_path: Path) -> None:
    Monitor(tmp_path, "abc").end(T0 + 1000, "finished", exit_code=0)
    edits = RunEdits(str(tmp_path))
    edits.record("abc", {"notes": "x" * 100_000}, T0 + 2000)
    edits.record("abc", {"name": "in the middle"}, T0 + 2001)
    for number in range(3):
        edits.record("abc", {"notes": "y" * 100_000}, T0 + 2002 + number)
    assert {(run.name, run.notes[:1]) for run in _both(tmp_path)} == {("in the middle", "y")}
    assert find_run("in the middle", str(tmp_path)) == "abc"


def test_an_edit_is_a_journal_file_as_documented(tmp_path: Path) -> None:
    Monitor(tmp_path, "abc").end(T0 + 1000, "finished", exit_code=0)
    edits = RunEdits(str(tmp_path))
    edits.record("abc", {"name": "new"}, T0 + 2000)
    edits.record("abc", {"deleted": True}, T0 + 3000)
    (path,) = (tmp_path / "runs" / "abc").glob("edit.node1.*.*.00000.rvj")
    start, *records = [value for _, _, value in FileContents(path.read_bytes()).records()]
    assert (start["run"], start["role"], start["host"]) == ("abc", "edit", "node1")
    assert records == [
        {"t": T0 + 2000, "run": {"name": "new"}},
        {"t": T0 + 3000, "run": {"deleted": True}},
    ]
    assert path.stat().st_mode & 0o777 == 0o600


def test_several_processes_and_threads_edit_at_once(tmp_path: Path) -> None:
    Monitor(tmp_path, "abc")
    code = (
        "import sys; from runvitals.server.library.local.run_edits import RunEdits\n"
        "edits = RunEdits(sys.argv[1])\n"
        "for i in range(50): edits.record('abc', {f'k{sys.argv[2]}.{i}': i}, 1_700_000_000_000 + i)\n"
    )
    processes = [subprocess.Popen([sys.executable, "-c", code, str(tmp_path), str(n)]) for n in range(2)]
    edits = RunEdits(str(tmp_path))

    def work(thread: int) -> None:
        for i in range(50):
            edits.record("abc", {f"t{thread}.{i}": i}, T0 + i)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [process.wait() for process in processes] == [0, 0]
    reader = RunReader("abc", str(tmp_path))
    reader.poll()
    names = [f"k{n}.{i}" for n in range(2) for i in range(50)]
    names += [f"t{n}.{i}" for n in range(3) for i in range(50)]
    assert all(reader.facts.about_time([name]) for name in names)
    assert reader.problems() == []


def test_kill_while_edits_are_written_loses_none_that_returned(tmp_path: Path) -> None:
    Monitor(tmp_path, "abc")
    code = (
        "import sys; from runvitals.server.library.local.run_edits import RunEdits\n"
        "edits = RunEdits(sys.argv[1])\n"
        "for i in range(10**9):\n"
        "    edits.record('abc', {'notes': f'{i:08}' + 'x' * 50_000}, 1_700_000_000_000 + i)\n"
        "    print(i, flush=True)\n"
    )
    for _ in range(3):
        process = subprocess.Popen(
            [sys.executable, "-c", code, str(tmp_path)], stdout=subprocess.PIPE, text=True
        )
        assert process.stdout is not None
        for line in process.stdout:
            if int(line) >= 5:
                break
        process.send_signal(signal.SIGKILL)
        last = max([5, *(int(line) for line in process.stdout.read().split())])
        process.wait()
        process.stdout.close()
        for run in _both(tmp_path):
            assert int(run.notes[:8]) >= last
            assert run.problems == []
        for path in (tmp_path / "runs" / "abc").glob("edit.*"):
            path.unlink()


@pytest.mark.parametrize("torn", range(1, 60, 7))
def test_a_torn_edit_is_not_there_and_later_ones_are(tmp_path: Path, torn: int) -> None:
    Monitor(tmp_path, "abc")
    edits = RunEdits(str(tmp_path))
    edits.record("abc", {"name": "whole"}, T0 + 1000)
    edits.record("abc", {"name": "torn, as by a power failure"}, T0 + 2000)
    (path,) = (tmp_path / "runs" / "abc").glob("edit.*")
    os.truncate(path, path.stat().st_size - torn)
    assert {run.name for run in _both(tmp_path)} == {"whole"}
    RunEdits(str(tmp_path)).record("abc", {"name": "later"}, T0 + 3000)
    assert {run.name for run in _both(tmp_path)} == {"later"}


def test_a_folder_that_cannot_be_written_is_named() -> None:
    with folder_without_root() as directory:
        Monitor(directory, "abc")
        folder = directory / "runs" / "abc"
        folder.chmod(0o500)
        with pytest.raises(CannotWrite, match=rf"{folder}: Permission denied.*not changed"):
            RunEdits(str(directory)).record("abc", {"name": "x"}, T0)
        folder.chmod(0o700)
        RunEdits(str(directory)).record("abc", {"name": "x"}, T0)
        assert {run.name for run in _both(directory)} == {"x"}


def test_a_run_that_is_not_there_is_not_created(tmp_path: Path) -> None:
    Monitor(tmp_path, "abc")
    edits = RunEdits(str(tmp_path))
    edits.record("abc", {"name": "x"}, T0)
    for path in (tmp_path / "runs" / "abc").iterdir():
        path.unlink()
    (tmp_path / "runs" / "abc").rmdir()
    (tmp_path / "runs" / "empty").mkdir()
    for run_id in ("abc", "empty", "nobody"):
        with pytest.raises(UnknownRun, match=run_id):
            edits.record(run_id, {"name": "y"}, T0)
    assert sorted(os.listdir(tmp_path / "runs")) == ["empty"]
