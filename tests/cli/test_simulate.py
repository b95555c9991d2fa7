"""The command `runvitals simulate`, as a process."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from runvitals.readers.journals.run_handle import open_run
from tests.patience import PATIENCE_S
from tests.relay.receiver import Receiver
from tests.sdk.runs import environment, eventually


def command(folder: Path, *options: str, **more: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "runvitals", "simulate", "--profile", "cpu", *options],
        env=environment(folder, RUNVITALS_SAMPLING_INTERVAL="0.1", **more),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Receiver]:
    receiver = Receiver(str(tmp_path / "server"))
    yield receiver
    receiver.close()


def test_maximum_speed_with_delivery_from_every_host(tmp_path: Path, server: Receiver) -> None:
    options = ("--nodes", "2", "--hours", "0.01", "--speed", "max")
    process = command(tmp_path, *options, RUNVITALS_SERVER=server.url, RUNVITALS_ENTITY="vision")
    out, err = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 0, err
    run = open_run("latest", str(tmp_path))
    assert out.startswith(f"simulated run {run.id} of project simulated, recorded in ")
    assert "million values per second" in out
    written = [record for request in server.requests for record in request]
    assert {part["writer"].split(".")[1] for part in written} == {"sim-0", "sim-1"}
    assert {part["entity"] for part in written} == {"vision"}
    hosts = {host.name: host.ending.state for host in run.facts.hosts}
    assert hosts["sim-0"] == "finished"


def test_live_simulation_stops_on_ctrl_c(tmp_path: Path) -> None:
    process = command(tmp_path, "--hours", "1", "--speed", "60")
    assert process.stdout is not None
    assert "simulated" in process.stdout.readline()
    eventually(
        lambda: [
            statistic for statistic in open_run("latest", str(tmp_path)).statistics("cpu") if statistic.n >= 3
        ]
    )
    assert open_run("latest", str(tmp_path)).state == "running"
    process.send_signal(signal.SIGINT)
    out, _ = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 130
    assert "log() rows in " in out
    assert "per second" not in out
    run = open_run("latest", str(tmp_path))
    assert (run.state, run.facts.signal) == ("stopped", 2)


@pytest.mark.parametrize(
    ("option", "value"), [("--nodes", "0"), ("--hours", "-1"), ("--speed", "0"), ("--speed", "fast")]
)
def test_invalid_options(tmp_path: Path, option: str, value: str) -> None:
    process = command(tmp_path, option, value)
    _, err = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 2
    assert option in err
