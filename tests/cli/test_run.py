"""The command `runvitals run`, with real commands and signals."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from subprocess import Popen

import pytest

from runvitals.journal import frames
from runvitals.readers.journals import open_run
from tests.patience import PATIENCE_S
from tests.sdk.runs import Journals, end_group, environment, eventually, finished, line, succeeded

Command = Callable[..., "Popen[str]"]


@pytest.fixture
def journals(tmp_path: Path) -> Journals:
    return Journals(tmp_path)


@pytest.fixture
def command(tmp_path: Path) -> Iterator[Command]:
    """Starts `runvitals run … -- words`, and ends its processes after the test."""
    started = []

    def begin(*words: str, options: tuple[str, ...] = (), **more: str) -> Popen[str]:
        call = [
            sys.executable,
            "-m",
            "runvitals",
            "run",
            "--sampling-interval",
            "0.1",
            *options,
            "--",
            *words,
        ]
        started.append(
            Popen(
                call,
                env=environment(tmp_path, **more),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
                start_new_session=True,
            )
        )
        return started[-1]

    yield begin
    for process in started:
        end_group(process)


@pytest.mark.parametrize(("words", "code"), [(["true"], 0), (["false"], 1), (["sh", "-c", "exit 42"], 42)])
def test_exit_code_is_that_of_the_command(
    command: Command, journals: Journals, words: list[str], code: int
) -> None:
    assert finished(command(*words))[0] == code
    end = journals.end()
    assert (end["state"], end["exit_code"]) == ("failed" if code else "finished", code)
    assert len(journals.samples()) >= 2


def test_the_command_is_recorded_even_if_it_ends_at_once(command: Command, tmp_path: Path) -> None:
    assert finished(command("true", "--password", "hunter2", options=("--run-id", "abc")))[0] == 0
    assert open_run("abc", str(tmp_path)).facts.command == ["true", "--password", "***"]


def test_stdin_and_stdout_are_passed_through(command: Command) -> None:
    process = command("sh", "-c", "cat; echo err >&2")
    out, err = process.communicate("through\n", timeout=PATIENCE_S)
    assert out == "through\n"
    assert "err\n" in err


def test_options_after_the_separator_belong_to_the_command(command: Command) -> None:
    assert finished(command("echo", "--project", "x", "--"))[1] == "--project x --\n"


def test_the_last_line_names_a_folder_that_is_not_the_default(command: Command, tmp_path: Path) -> None:
    folder = tmp_path / "other runs"
    _, err = command("true", options=("--dir", str(folder), "--run-id", "r1")).communicate(timeout=PATIENCE_S)
    assert f"see `runvitals show r1 --dir '{folder}'` or `runvitals ui --dir '{folder}'`" in err
    _, err = command("true", options=("--run-id", "r2")).communicate(timeout=PATIENCE_S)
    assert "see `runvitals show r2` or `runvitals ui`" in err


def test_quiet_prints_nothing(command: Command) -> None:
    assert finished(command("true", options=("--quiet",)))[2] == ""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGUSR1, signal.SIGHUP])
def test_signals_are_forwarded_to_the_command(
    command: Command, journals: Journals, number: signal.Signals
) -> None:
    process = command("sleep", "60", options=("--id", "run1"))
    eventually(lambda: journals.lifecycle("attach", "run1"))
    process.send_signal(number)
    code, _, err = finished(process)
    assert code == 128 + number, err
    end = journals.end()
    assert (end["state"], end["signal"]) == (
        "crashed" if number == signal.SIGUSR1 else "stopped",
        int(number),
    )


def test_command_may_handle_a_signal(command: Command, journals: Journals) -> None:
    process = command("sh", "-c", "trap 'exit 5' TERM; echo up; while :; do sleep 0.05; done")
    assert process.stdout is not None
    assert process.stdout.readline() == "up\n"
    process.terminate()
    assert process.wait(PATIENCE_S) == 5
    assert journals.end()["exit_code"] == 5


def test_killed_command(command: Command, journals: Journals) -> None:
    code, _, _ = finished(command("sh", "-c", "kill -9 $$"))
    assert code == 128 + 9
    assert journals.end()["state"] == "crashed"


def test_command_and_monitor_survive_a_killed_wrapper(command: Command, journals: Journals) -> None:
    process = command("sh", "-c", "sleep 0.5; exit 3", options=("--id", "run1"))
    eventually(lambda: journals.lifecycle("attach", "run1"))
    process.kill()
    end = journals.end()
    assert end["state"] in ("failed", "finished")
    assert end["exit_code"] in (3, 0), "kernels before 6.15 report exit codes to the parent only"


def test_script_in_the_command_joins_the_run(command: Command, journals: Journals) -> None:
    script = "import runvitals\nrun = runvitals.init(project='inner')\nrun.log({'x': 1})\nrun.finish()"
    succeeded(command(sys.executable, "-c", script, options=("--project", "outer")))
    assert journals.end()["state"] == "finished"
    assert [row["data"] for row in journals.history()] == [{"x": 1}]
    assert sorted(a["role"] for a in journals.lifecycle("attach")) == ["command", "train"]
    assert len({r.writer for r in journals.records() if r.writer.startswith("monitor.")}) == 1


def test_children_of_the_command_are_measured(command: Command, journals: Journals) -> None:
    script = "trap 'kill $a $b $c' TERM; sleep 60 & a=$!; sleep 60 & b=$!; sleep 60 & c=$!; echo up; wait"
    process = command("sh", "-c", script, options=("--id", "run1"))
    assert line(process) == "up"  # before, not all of them would be ended

    def counts() -> set[float]:
        samples = journals.samples("run1")
        return {dict(zip(r.keys, r.values, strict=True)).get("proc.count", 0) for r in samples}

    eventually(lambda: 4 in counts())
    process.terminate()
    finished(process)
    assert max(counts()) == 4


def test_killed_monitor_is_restarted(command: Command, journals: Journals) -> None:
    process = command("sleep", "60", options=("--id", "run1"))
    (monitor,) = eventually(lambda: journals.monitors())
    eventually(lambda: journals.samples("run1"))
    os.kill(monitor, signal.SIGKILL)
    eventually(lambda: journals.lifecycle("gap", "run1"))
    process.terminate()
    assert journals.end("run1")["state"] == "stopped"


def test_command_not_found(command: Command, journals: Journals) -> None:
    code, _, err = finished(command("no-such-command-here"))
    assert code == 127
    assert "no-such-command-here: command not found" in err
    assert journals.folders() == []


def test_command_not_executable(command: Command, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("text")
    code, _, err = finished(command(str(tmp_path / "file")))
    assert code == 126
    assert "not executable" in err


def test_invalid_setting_is_reported_before_the_start(command: Command, journals: Journals) -> None:
    code, out, err = finished(command("echo", "started", options=("--disk-paths", "relative")))
    assert (code, out) == (1, "")
    assert "invalid setting disk_paths = 'relative' (--disk-paths): expected absolute paths" in err
    assert journals.folders() == []


def test_an_unknown_kind_of_destination_is_reported_before_the_start(
    command: Command, journals: Journals
) -> None:
    code, out, err = finished(command("echo", "started", options=("--destinations", "foo:bar,files:/tmp/x")))
    assert (code, out) == (1, "")
    assert "unknown destination 'foo'; expected one of cloudwatch, files, http, https, mlflow, " in err
    assert journals.folders() == []


@pytest.mark.parametrize(("project", "mentions"), [("outer", 0), ("inner", 1)])
def test_where_the_run_is_recorded_is_printed_once(command: Command, project: str, mentions: int) -> None:
    script = f"import runvitals; runvitals.init(project={project!r}).log({{'x': 1}})"
    _, err = succeeded(command(sys.executable, "-c", script, options=("--project", "outer")))
    assert err.count(", recorded in ") == 1
    assert err.count(f"is of project {project} from now on") == mentions


def test_disabled_mode_only_runs_the_command(command: Command, journals: Journals) -> None:
    code, out, err = finished(command("echo", "x", options=("--mode", "disabled")))
    assert (code, out, err) == (0, "x\n", "")
    assert journals.folders() == []


def test_settings_and_labels_are_recorded(command: Command, journals: Journals) -> None:
    options = ("--project", "p", "--name", "n", "--tags", "a,b", "--labels", "team=x", "--group", "g")
    finished(command("true", options=options))
    infos = [r.value for r in journals.records() if r.type == frames.INFO]
    (about,) = (info["run"] for info in infos if "run" in info)
    assert about == {"name": "n", "project": "p", "group": "g", "tags": ["a", "b"], "command": ["true"]}
    (settings,) = (info["settings"] for info in infos if "settings" in info)
    assert settings["sampling_interval"] == 0.1
    starts = [r.value for r in journals.records() if r.type == frames.START]
    assert starts[0]["labels"] == {"team": "x"}


def test_options_with_lists_may_be_repeated(command: Command, journals: Journals) -> None:
    options = (
        "--tags",
        "a,b",
        "--tags",
        "c",
        "--labels",
        "x=1",
        "--labels",
        "y=2",
        "--name",
        "n",
        "--name",
        "m",
    )
    finished(command("true", options=(*options, "--collectors", "cpu", "--collectors", "memory")))
    infos = [r.value for r in journals.records() if r.type == frames.INFO]
    (about,) = (info["run"] for info in infos if "run" in info)
    assert (about["tags"], about["name"]) == (["a", "b", "c"], "m")
    (settings,) = (info["settings"] for info in infos if "settings" in info)
    assert settings["collectors"] == ["cpu", "memory"]
    starts = [r.value for r in journals.records() if r.type == frames.START]
    assert starts[0]["labels"] == {"x": "1", "y": "2"}


def test_an_unknown_source_is_reported_before_the_start(command: Command, journals: Journals) -> None:
    code, _, err = finished(command("true", options=("--collectors", "nvidea")))
    assert code == 1
    assert "unknown source 'nvidea'; did you mean nvidia?" in err


def test_console_output_is_passed_through_and_recorded(command: Command, journals: Journals) -> None:
    code, out, err = finished(command("sh", "-c", "echo one; echo two >&2", options=("--console", "--quiet")))
    assert (code, out, err) == (0, "one\n", "two\n")
    kept = {r.value[0]: r.value[9:] for r in journals.records() if r.type == frames.CONSOLE}
    assert kept == {1: b"one\n", 2: b"two\n"}


def test_daemon_with_open_output_does_not_block_the_end(command: Command) -> None:
    process = command("sh", "-c", "sleep 60 & echo done", options=("--console", "--quiet"))
    assert process.stdout is not None
    assert process.stdout.readline() == "done\n"
    assert process.wait(PATIENCE_S) == 0


def test_wrappers_of_a_job_share_a_run(command: Command, journals: Journals, tmp_path: Path) -> None:
    all_attached = tmp_path / "all-attached"
    wait = ("sh", "-c", 'until [ -e "$1" ]; do sleep 0.05; done', "sh", str(all_attached))
    job = {"SLURM_JOB_ID": "77", "SLURM_STEP_ID": "0", "SLURM_NTASKS": "3", "SLURM_CLUSTER_NAME": "c"}
    ranks = [command(*wait, **job, SLURM_PROCID=str(i), SLURM_LOCALID=str(i)) for i in range(3)]
    eventually(lambda: len(journals.lifecycle("attach")) == 3)
    all_attached.touch()
    ends = [finished(rank) for rank in ranks]
    assert [code for code, _, _ in ends] == [0, 0, 0], ends
    assert journals.end()["state"] == "finished"
    assert sorted(a["rank"] for a in journals.lifecycle("attach")) == [0, 1, 2]
