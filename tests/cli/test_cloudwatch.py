"""The command `runvitals cloudwatch`, as a process that reads a pipe."""

from __future__ import annotations

import fcntl
import json
import os
import signal
import struct
import subprocess
import sys
import termios
from pathlib import Path

import pytest

import runvitals
from tests.patience import PATIENCE_S, eventually
from tests.readers.journals.journals import T0, Monitor
from tests.relay.destinations.cloudwatch.reports import inferentia, line, process, report

SOURCE = str(Path(runvitals.__file__).parents[1])


def start(*arguments: str, without: str = "") -> subprocess.Popen[bytes]:
    """Start the command; ``without`` is a package that it cannot import."""
    hide = f"import sys; sys.modules[{without!r}] = None; " if without else ""
    code = f"{hide}from runvitals.cli import main; raise SystemExit(main())"
    return subprocess.Popen(
        [sys.executable, "-c", code, "cloudwatch", *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": SOURCE, "AWS_EC2_METADATA_DISABLED": "true"},
    )


def ran(text: bytes, *arguments: str, without: str = "") -> tuple[int | None, str, str]:
    with start(*arguments, without=without) as command:
        out, err = command.communicate(text, timeout=PATIENCE_S)
    return command.returncode, out.decode(), err.decode()


def test_estimate_without_boto3() -> None:
    """25 metrics are 7.50 USD a month, the four cores alone 1.20."""
    text = line(inferentia())
    code, out, _ = ran(text, "--dry-run", without="boto3")
    assert code == 0
    assert "Metrics   25: 7.50 USD a month" in out
    assert "Requests  60 an hour: 0.43 USD a month (5.18 with a request per report)" in out
    _, out, _ = ran(text, "--dry-run", "--include", "neuroncore_utilization", without="boto3")
    assert "Metrics   4: 1.20 USD a month" in out


def test_globs_without_a_metric_are_named(tmp_path: Path) -> None:
    text = line(inferentia())
    _, out, _ = ran(text, "--dry-run", "--include", "nosuch", "--include", "neuroncore_utilization")
    assert "no metric matches nosuch" in out
    _, out, _ = ran(text, "--dry-run", "--exclude", "typo*")
    assert "no metric matches typo*" in out
    _, out, _ = ran(text, "--dry-run")
    assert "no metric matches" not in out
    _, _, err = ran(text, "--emf", str(tmp_path / "emf"), "--include", "nosuch")
    assert "no metric matches nosuch" in err


def test_estimate_for_several_instances() -> None:
    text = line(inferentia())
    _, out, _ = ran(text, "--dry-run", "--instances", "10", "--dimension", "InstanceId")
    assert "Metrics   25 × 10 instances: 75.00 USD a month" in out
    _, out, _ = ran(text, "--dry-run", "--instances", "10")
    assert "With --dimension InstanceId the metrics cost 75.00 USD a month." in out


def test_estimate_of_excluded_metrics() -> None:
    _, out, _ = ran(line(inferentia()), "--dry-run", "--include", "neuroncore_counters")
    rows = {words[0]: words[1:] for words in map(str.split, out.splitlines()) if words}
    assert rows["neuroncore_counters"] == ["4", "1.20"]
    assert rows["execution_stats"] == ["0", "0.00", "26", "7.80"]
    assert rows["all"] == ["4", "1.20", "74", "22.20"]


def test_estimate_for_a_run(tmp_path: Path) -> None:
    monitor = Monitor(tmp_path, "abc")
    for t_ms in (1_000, 2_000):
        monitor.sample(T0 + t_ms, {"cpu": 5.0, "cpu.user": 4.0, "disk.in": t_ms / 1000})
    monitor.end(T0 + 3_000)
    arguments = ("--run", "abc", "--dir", str(tmp_path), "--dry-run", "--include", "cpu")
    code, out, err = ran(b"", *arguments, without="boto3")
    assert (code, err) == (0, "")
    assert "Metrics   1: 0.30 USD a month" in out
    rows = {words[0]: words[1:] for words in map(str.split, out.splitlines()) if words}
    assert rows["disk"] == ["0", "0.00", "1", "0.30"]  # its rate; the total is not sent


def test_no_metrics_is_a_failure() -> None:
    code, out, err = ran(b"bash: neuron-monitor: command not found\n", "--dry-run")
    assert code == 1
    assert "1 lines skipped: not a report" in out
    assert "no metrics" in err


def test_embedded_metric_format_without_boto3(tmp_path: Path) -> None:
    code, out, err = ran(line(report(process([50.0]))) * 3, "--emf", without="boto3")
    assert code == 0
    (event,) = map(json.loads, out.splitlines())
    assert event["NeuronCoreUtilizationNC0"] == [50.0] * 3
    assert event["_aws"]["CloudWatchMetrics"][0]["Namespace"] == "Neuron"
    assert "3 reports, 1 lines written" in err
    file = tmp_path / "metrics.log"
    assert ran(line(report(process([50.0]))), "--emf", str(file))[:2] == (0, "")
    assert json.loads(file.read_text())["NeuronCoreUtilizationNC0"] == 50.0


def test_missing_boto3_error_names_the_extra() -> None:
    code, _, err = ran(b"", "--region", "us-west-2", without="boto3")
    assert code == 1
    assert err == "runvitals: CloudWatch needs boto3: pip install 'runvitals[cloudwatch]'\n"


def waiting_bytes(command: subprocess.Popen[bytes]) -> int:
    """How much of its input a command has not read."""
    assert command.stdin is not None
    (count,) = struct.unpack("i", fcntl.ioctl(command.stdin, termios.FIONREAD, b"\0" * 4))
    return int(count)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_pending_metrics_are_sent_on_termination(number: signal.Signals, tmp_path: Path) -> None:
    file = tmp_path / "metrics.log"
    with start("--emf", str(file)) as command:
        assert command.stdin is not None
        eventually(file.exists)  # it is opened when the signals are set
        for text in (line(report(process([50.0]))), b"\n"):  # it reads more when it has noted the report
            command.stdin.write(text)
            command.stdin.flush()
            eventually(lambda: waiting_bytes(command) == 0)
        command.send_signal(number)
        _, err = command.communicate(timeout=PATIENCE_S)
    assert command.returncode == 0
    assert b"1 reports, 1 lines written" in err
    assert json.loads(file.read_text())["NeuronCoreUtilizationNC0"] == 50.0


def test_closed_output_ends_the_command_quietly() -> None:
    with start("--emf") as command:
        assert command.stdout is not None
        command.stdout.close()
        command.stdout = None
        _, err = command.communicate(line(report(process([50.0]))), timeout=PATIENCE_S)
    assert command.returncode == 0
    assert b"Traceback" not in err


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["--namespace", "AWS/EC2"], "AWS/ is reserved"),
        (["--dimension", "Colour"], "write Colour=VALUE"),
        (["--run", "x"], "--run requires --dry-run"),
        (["--emf", "--dimension", "TaskId"], "not an ECS task"),
    ],
)
def test_invalid_options(arguments: list[str], complaint: str) -> None:
    code, _, err = ran(line(report(process([50.0]))), *arguments)
    assert code == (2 if "--run" in arguments else 1)
    assert complaint in err
    assert "Traceback" not in err
