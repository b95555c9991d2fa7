"""Other users of the host, large descriptions, and secrets in the environment."""

from __future__ import annotations

import subprocess
import sys
import textwrap
import time
from pathlib import Path

from runvitals.journal import frames
from runvitals.monitoring.monitor import launch, relay_connection
from runvitals.readers.journals.runs import RunList
from tests.monitoring.monitor.strangers import stranger_on
from tests.patience import PATIENCE_S
from tests.sdk.runs import Journals, Start, environment, eventually, say, succeeded

RUN = """
    import runvitals
    with runvitals.init(id="run1", settings={"sampling_interval": 0.1}) as run:
        run.log({"loss": 1.0})
"""


def test_address_taken_by_another_user(train: Start, journals: Journals, tmp_path: Path) -> None:
    data = str(tmp_path)
    names = launch.address("run1", data).name, relay_connection.address(data).name
    with stranger_on(str(names[0])) as told_monitor, stranger_on(str(names[1])) as told_relay:
        out = tmp_path / "out"
        _, err = succeeded(train(RUN, RUNVITALS_DESTINATIONS=f"files:{out}"))
        assert "did not confirm" not in err
        assert "delivered to files:" in err
        assert journals.end()["state"] == "finished"
        assert len(journals.samples()) >= 2
        assert (told_monitor(), told_relay()) == (b"", b"")


def test_spec_may_have_any_size(train: Start, journals: Journals) -> None:
    script = """
        import runvitals
        with runvitals.init(id="run1", notes="n" * 250_000) as run:
            run.log({"loss": 1.0})
    """
    _, err = succeeded(train(script))
    assert "no system metrics" not in err
    assert len(journals.samples()) >= 2
    (info,) = [r.value["run"] for r in journals.records() if r.type == frames.INFO and "run" in r.value]
    assert len(info["notes"]) == 250_000


def test_secrets_in_values_are_redacted(train: Start, journals: Journals) -> None:
    script = """
        import runvitals
        told = "see https://me:hunter2@host/x?access_token=hunter2"
        about = {"name": "rvt_hunter2hunter2", "notes": told, "tags": ["rvt_hunter2hunter2"]}
        with runvitals.init(id="run1", **about) as run:
            run.alert("password: hunter2", told)
            run.mark(told, place=told)
            run.summary["link"] = told
            run.summary.update({"api_key": "hunter2"})
            run.config["rvt_hunter2hunter2"] = 1
            run.config["credentials"] = {"me": "hunter2", "pin": 123412, "count": 2}
            run.config["credentials"]["me"] = "hunter2hunter2"
            input()
    """
    training = train(script)
    paths = journals.directory.glob
    eventually(lambda: any(b'"command":' in path.read_bytes() for path in paths("runs/*/*.rvj")))
    say(training, "end")
    succeeded(training)
    for journal in journals.folders()[0].glob("*.rvj"):
        assert b"hunter2" not in journal.read_bytes()
    configs = [r.value["config"] for r in journals.records() if r.type == frames.INFO and "config" in r.value]
    assert {"***": 1} in configs
    assert {"credentials": {"me": "***", "pin": "***", "count": 2}} in configs


def test_command_with_many_arguments(journals: Journals, tmp_path: Path) -> None:
    words = ["/bin/sh", "-c", "read line", *(f"argument-{number}" for number in range(15_000))]
    command = subprocess.Popen(
        [sys.executable, "-m", "runvitals", "run", "--id", "run1", "--", *words],
        env=environment(tmp_path), stdin=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    argv = eventually(
        lambda: [
            r.value["machine"]["program"]["argv"]
            for r in journals.records()
            if r.type == frames.INFO and "program" in r.value.get("machine", {})
        ]
    )
    _, err = command.communicate("\n", timeout=PATIENCE_S)
    assert command.returncode == 0, err
    assert argv == [words]
    assert journals.end()["state"] == "finished"


def test_environment_variable_that_cannot_be_passed_on(train: Start, journals: Journals) -> None:
    _, err = succeeded(train('import os\nos.environ["BIG"] = "x" * 200_000\n' + textwrap.dedent(RUN)))
    assert "no system metrics" not in err
    assert len(journals.samples()) >= 2


def test_files_are_private(train: Start, tmp_path: Path) -> None:
    data, out = tmp_path / "a" / "data", tmp_path / "out"
    script = "import os\nos.umask(0)\n" + textwrap.dedent(RUN)
    succeeded(train(script, RUNVITALS_DIR=str(data), RUNVITALS_DESTINATIONS=f"files:{out}"))
    modes = {path: path.lstat().st_mode & 0o777 for path in [data, *data.rglob("*")] if not path.is_symlink()}
    assert any(path.suffix == ".rvj" for path in modes)
    assert {path for path, mode in modes.items() if mode & 0o077} == set()


def test_facts_contain_no_secrets(train: Start, journals: Journals, tmp_path: Path) -> None:
    script = """
        import runvitals
        run = runvitals.init(id="run1", settings={
            "openmetrics_endpoints": {"one": "http://me:hunter2hunter2@127.0.0.1:1/m?token=hunter2hunter2"},
            "sampling_interval": 0.1,
        })
        input()
    """
    process = train(script)
    eventually(lambda: any("machine" in r.value for r in journals.records() if r.type == frames.INFO))
    eventually(lambda: len(journals.samples()) >= 5)
    process.communicate("\n", timeout=PATIENCE_S)
    journals.end()
    kept = str([record.value for record in journals.records() if record.type != frames.SAMPLE])
    assert "hunter2hunter2" not in kept
    assert "token=***" in kept


def test_a_script_describes_the_run_of_its_command(journals: Journals, tmp_path: Path) -> None:
    script = """
import runvitals
with runvitals.init(name="crasher", project="vision", tags=["a"], notes="tried", group="g") as run:
    run.log({"loss": 1.0})
"""
    command = [sys.executable, "-m", "runvitals", "run", "--", sys.executable, "-c", script]
    subprocess.run(command, env=environment(tmp_path), check=True, timeout=PATIENCE_S)
    (run,) = RunList(str(journals.directory)).runs(time.time_ns() // 1_000_000)
    assert (run.name, run.project, run.group) == ("crasher", "vision", "g")
    assert (run.tags, run.notes) == (["a"], "tried")
