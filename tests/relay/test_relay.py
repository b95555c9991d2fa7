"""Training scripts in real processes whose runs are delivered by a real relay."""

from __future__ import annotations

import os
import select
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from runvitals.base import stored_keys
from runvitals.journal import frames
from runvitals.journal.reader import read_run
from runvitals.monitoring.monitor.relay_connection import ask, connect
from tests.leftovers import end_relay
from tests.patience import PATIENCE_S, eventually
from tests.relay.receiver import Receiver

SOURCE = str(Path(__file__).parents[2] / "src")
SCRIPT = """
import runvitals
with runvitals.init(project="digits", id="abc") as run:
    for step in range(3):
        run.log({"loss": 1.0 / (step + 1)})
"""
AFTER_FAILURE = """
    import os, time
    from runvitals.monitoring.monitor.relay_connection import ask
    def failed():
        answer = ask(os.environ["RUNVITALS_DIR"], {"op": "flush", "run": "abc", "timeout_s": 0.01}, 60)
        return answer is not None and any(entry["error"] for entry in answer["destinations"])
    while not failed():
        time.sleep(0.02)
"""
"""For the end of `SCRIPT`: wait until the relay has failed to deliver."""
AFTER_EVENT = """
    import os, time
    from runvitals.journal import frames
    from runvitals.journal.reader import read_run
    folder = os.environ["RUNVITALS_DIR"] + "/runs/abc"
    while not any(record.type == frames.EVENT for record in read_run(folder)):
        time.sleep(0.02)
"""
"""For the end of `SCRIPT`: wait until the run has an event."""
UNTIL_INTERRUPTED = """
import time, runvitals
run = runvitals.init(id="abc", settings={"sampling_interval": 0.1})
try:
    time.sleep(60)
except KeyboardInterrupt:
    print("interrupted")
"""


@pytest.fixture
def receiver(tmp_path: Path) -> Iterator[Receiver]:
    receiver = Receiver(str(tmp_path / "server"))
    yield receiver
    receiver.close()


@pytest.fixture
def environ(tmp_path: Path) -> Iterator[dict[str, str]]:
    """An environment with its own data folder, whose relay is stopped at the end."""
    kept = {name: text for name, text in os.environ.items() if not name.startswith("RUNVITALS_")}
    data = str(tmp_path / "data")
    yield {
        **kept,
        "PYTHONPATH": SOURCE,
        "RUNVITALS_DIR": data,
        "RUNVITALS_COLLECTORS": "cpu,memory",
        "XDG_CONFIG_HOME": str(tmp_path),
    }
    end_relay(data)


def train(environ: dict[str, str], script: str = SCRIPT) -> str:
    """Run a training script; returns its stderr."""
    done = subprocess.run(
        [sys.executable, "-c", script],
        env=environ,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=True,
    )
    return done.stderr


def test_run_is_delivered_when_the_script_ends(receiver: Receiver, environ: dict[str, str]) -> None:
    output = train({**environ, "RUNVITALS_SERVER": receiver.url})
    assert f"delivered to {receiver.url}: " in output
    assert "3 log() rows" in output
    assert receiver.run("abc").state == "finished"
    stored = receiver.samples()
    assert [value for _, value in stored["loss"]] == [1.0, 1 / 2, 1 / 3]
    assert "memory_percent" in stored, sorted(stored)


def test_unavailable_server_delays_the_end_by_the_delivery_timeout(
    receiver: Receiver, environ: dict[str, str]
) -> None:
    receiver.faults.extend([(503, "1")] * 1000)
    script = SCRIPT + AFTER_FAILURE
    output = train({**environ, "RUNVITALS_SERVER": receiver.url, "RUNVITALS_DELIVERY_TIMEOUT": "2"}, script)
    assert f"the run is not fully delivered to {receiver.url} yet" in output
    assert "503" in output
    receiver.faults.clear()
    eventually(lambda: "loss" in receiver.samples())  # the relay continues after the training


@pytest.mark.parametrize("mode", ["offline", "online"])
def test_run_without_destinations_starts_no_relay(environ: dict[str, str], mode: str) -> None:
    named = {"RUNVITALS_SERVER": "http://127.0.0.1:9"} if mode == "offline" else {}
    script = (
        SCRIPT + "import sys; assert 'runvitals.monitoring.monitor.relay_connection' not in sys.modules\n"
    )
    output = train({**environ, **named, "RUNVITALS_MODE": mode}, script)
    assert "deliver" not in output
    assert connect(environ["RUNVITALS_DIR"]) is None


def test_requests_for_a_command_of_the_host_and_for_a_stop(
    receiver: Receiver, environ: dict[str, str], tmp_path: Path
) -> None:
    register = tmp_path / "settings" / "runvitals" / "commands.toml"
    register.parent.mkdir(parents=True)
    register.write_text('[commands]\ndrain = ["/bin/sh", "-c", "echo drained $RUNVITALS_RUN"]\n')
    register.chmod(0o600)
    home = str(tmp_path / "settings")
    environ = {**environ, "RUNVITALS_SERVER": receiver.url, "XDG_CONFIG_HOME": home}
    folder = Path(environ["RUNVITALS_DIR"]) / "runs" / "abc"

    def events() -> dict[str, str]:
        found = [record.value for record in read_run(str(folder)) if record.type == frames.EVENT]
        return {str(event["name"]): str(event.get("text")) for event in found}

    command = [sys.executable, "-c", UNTIL_INTERRUPTED]
    with subprocess.Popen(command, env=environ, stdout=subprocess.PIPE, text=True) as training:
        eventually(lambda: receiver.runs() == 1)
        receiver.request_command("abc", "drain")
        eventually(lambda: "command" in events())
        assert events()["command"].endswith("(drain) ended with status 0: drained abc")
        receiver.request_stop("abc")
        output, _ = training.communicate(timeout=PATIENCE_S)
    assert output == "interrupted\n"
    assert "stop_requested" in events()


UNTIL_ASKED = """
import threading, runvitals
run = runvitals.init(id="abc", settings={"sampling_interval": 0.1})
stopping = threading.Event()
run.on_stop(stopping.set)
while not stopping.wait(0.01):
    pass
run.log({"checkpoint": 1.0})
print("done")
"""


def test_stop_request_calls_the_on_stop_callback(receiver: Receiver, environ: dict[str, str]) -> None:
    environ = {**environ, "RUNVITALS_SERVER": receiver.url}
    command = [sys.executable, "-c", UNTIL_ASKED]
    with subprocess.Popen(command, env=environ, stdout=subprocess.PIPE, text=True) as training:
        eventually(lambda: receiver.runs() == 1)
        receiver.request_stop("abc")
        output, _ = training.communicate(timeout=PATIENCE_S)
    assert (training.returncode, output) == (0, "done\n")
    eventually(lambda: receiver.run("abc").state == "stopped")
    assert "checkpoint" in receiver.samples()


def test_missing_token_is_reported_and_recorded_in_the_journal(
    receiver: Receiver, environ: dict[str, str]
) -> None:
    receiver.required_token = "rvt_right"
    environ = {**environ, "RUNVITALS_SERVER": receiver.url, "RUNVITALS_DELIVERY_TIMEOUT": "2"}
    output = train(environ, SCRIPT + AFTER_EVENT)
    assert f"requires a token: `runvitals login {receiver.url}` asks for another token" in output
    assert "0 samples, 0 log() rows delivered, " in output
    folder = str(Path(environ["RUNVITALS_DIR"]) / "runs" / "abc")
    events = [record.value for record in read_run(folder) if record.type == frames.EVENT]
    assert [event["name"] for event in events] == ["not_delivered"]
    assert f"`runvitals login {receiver.url}`" in events[0]["text"]
    stored_keys.save(receiver.url, "rvt_right", environ)
    eventually(lambda: receiver.runs() == 1 and receiver.run("abc").state == "finished")


def test_killed_relay_is_replaced(receiver: Receiver, environ: dict[str, str]) -> None:
    script = """
import os, signal, time, runvitals
from runvitals.monitoring.monitor.relay_connection import ask
data = os.environ["RUNVITALS_DIR"]
with runvitals.init(id="abc", settings={"sampling_interval": 0.1}) as run:
    run.log({"loss": 1.0})
    while (first := ask(data, {"op": "hello"}, 10)) is None:
        time.sleep(0.02)
    os.kill(first["pid"], signal.SIGKILL)
    run.log({"loss": 2.0})
    while (answer := ask(data, {"op": "hello"}, 10)) is None or answer["pid"] == first["pid"]:
        time.sleep(0.02)
"""
    output = train({**environ, "RUNVITALS_SERVER": receiver.url}, script)
    assert f"delivered to {receiver.url}: " in output
    assert [value for _, value in receiver.samples()["loss"]] == [1.0, 2.0]
    assert receiver.run("abc").state == "finished"


def test_relay_exits_when_the_data_folder_is_deleted(receiver: Receiver, environ: dict[str, str]) -> None:
    """Even while the next attempt is minutes away, because the server rejects the token."""
    receiver.faults.extend([(401, "")] * 100)
    train({**environ, "RUNVITALS_SERVER": receiver.url, "RUNVITALS_DELIVERY_TIMEOUT": "0.5"})
    response = ask(environ["RUNVITALS_DIR"], {"op": "hello"}, PATIENCE_S)
    assert response is not None
    shutil.rmtree(environ["RUNVITALS_DIR"])
    with open(os.pidfd_open(int(response["pid"])), "rb") as ended:
        poller = select.poll()  # select() takes no descriptor beyond 1,023, and a busy suite has more
        poller.register(ended, select.POLLIN)
        assert poller.poll(PATIENCE_S * 1000)
