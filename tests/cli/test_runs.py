"""The command `runvitals runs`."""

from __future__ import annotations

import json
import os
import tempfile
from pathlib import Path

import pytest

from runvitals.cli import main
from tests.readers.journals.journals import T0, Monitor, Training


@pytest.fixture(autouse=True)
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("RUNVITALS_DIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))  # runs are looked for there too
    return tmp_path


def test_runs_are_listed_newest_first_with_their_state(
    data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    training = Training(data, "first")
    training.advance(3)
    training.end("crashed", signal=9, out_of_memory=True)
    Monitor(data, "second", start_ms=T0 + 5000, project="other").end(T0 + 6000, "finished", exit_code=0)
    assert main(["runs"]) == 0
    heading, second, first = capsys.readouterr().out.splitlines()
    assert heading.split()[:3] == ["RUN", "NAME", "PROJECT"]
    assert second.split() == [
        "second",
        "other",
        "finished",
        "2025-10-09",
        "08:53:25",
        "1.0",
        "s",
        "node1",
        "-",
        "-",
    ]
    assert "crashed (SIGKILL, out of memory)" in first
    assert first.endswith("baseline")
    assert "loss=0.08" in first


def test_json_of_one_project(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Monitor(data, "a", project="digits").info(T0, config={"lr": float("nan")})
    Monitor(data, "b", project="other")
    assert main(["runs", "--project", "digits", "--json"]) == 0
    (run,) = json.loads(capsys.readouterr().out)
    assert (run["id"], run["state"], run["config"]) == ("a", "lost", {"lr": None})
    assert run["hosts"][0]["state"] == "lost"


def test_run_without_records_is_explained(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = data / "runs" / "abc"
    folder.mkdir(parents=True)
    (folder / "monitor.node1.1.00000.rvj").touch()
    assert main(["runs"]) == 0
    captured = capsys.readouterr()
    assert "lost" in captured.out
    assert captured.err == "abc: monitor.node1.1: empty; was the disk full?\n"
    assert main(["show", "abc"]) == 0
    assert "monitor.node1.1: empty; was the disk full?" in capsys.readouterr().out


def test_what_is_no_run_is_left_out(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Monitor(data, "there")
    for name, target in (("loop", "loop"), ("dangling", "nowhere"), ("file", "there/file")):
        (data / "runs" / name).symlink_to(target)
    os.mkfifo(data / "runs" / "fifo")
    (data / "runs" / "bad name").mkdir()
    assert main(["runs", "--json"]) == 0
    assert [run["id"] for run in json.loads(capsys.readouterr().out)] == ["there"]


def test_control_characters_are_escaped(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Training(data, project="p\x1b[2J", tags=("\x07",)).end()
    main(["runs"])
    shown = capsys.readouterr().out
    assert r"p\x1b[2J" in shown
    assert not {"\x1b", "\x07"} & set(shown)


def test_no_runs(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["runs"]) == 0
    assert capsys.readouterr().out.startswith(f"no runs in {data}")
    assert main(["runs", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == []


def test_runs_that_were_kept_elsewhere_are_mentioned(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    elsewhere = data / f"runvitals-data-{os.getuid()}"
    assert main(["runs"]) == 0
    assert capsys.readouterr().err == ""
    Monitor(elsewhere, "there")
    elsewhere.chmod(0o700)
    assert main(["runs"]) == 0
    assert f"not writable: runvitals runs --dir {elsewhere}\n" in capsys.readouterr().err
    (data / "runs").write_text("no folder, so it cannot be listed")
    assert main(["runs"]) == 1
    assert f"not writable: runvitals runs --dir {elsewhere}\n" in capsys.readouterr().err
    assert main(["runs", "--dir", str(elsewhere)]) == 0
    assert capsys.readouterr().err == ""


def test_data_folder_option(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Monitor(data / "elsewhere", "there")
    assert main(["runs", "--dir", str(data / "elsewhere")]) == 0
    assert "there" in capsys.readouterr().out


def test_runs_of_a_filter(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name, load in (("idle", 5.0), ("busy", 95.0)):
        monitor = Monitor(data, name)
        monitor.info(T0, config={"lr": load})
        monitor.sample(T0, {"cpu": load})
        monitor.end(T0 + 1000, "failed" if name == "idle" else "finished")

    def ids(*words: str) -> list[str]:
        assert main(["runs", *words, "--json"]) == 0
        return [run["id"] for run in json.loads(capsys.readouterr().out)]

    assert ids("state:failed", "config.lr<10") == ["idle"]
    assert ids("cpu>50") == ["busy"]
    assert ids("state:failed -cpu<50") == []
    assert main(["runs", "--", "-state:failed"]) == 0
    assert "busy" in capsys.readouterr().out
    assert main(["runs", "host:elsewhere"]) == 0
    assert "match the filter" in capsys.readouterr().out


def test_a_wrong_filter_is_explained(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["runs", "stat:failed"]) == 1
    assert "'stat:failed': unknown name 'stat'; expected one of state" in capsys.readouterr().err
