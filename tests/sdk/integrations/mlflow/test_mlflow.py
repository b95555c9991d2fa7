"""Training scripts with MLflow's own client, against a real `mlflow server`."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from runvitals.journal import frames
from runvitals.journal.reader import read_run
from runvitals.monitoring.monitor import relay_connection
from tests.leftovers import end_relay
from tests.patience import PATIENCE_S, eventually
from tests.sdk.integrations.mlflow.gate import Gate, Server

SOURCE = str(Path(__file__).parents[4] / "src")
STORY = Path(__file__).with_name("story.py")
CPU, MEMORY = "system/cpu_utilization_percentage", "system/system_memory_usage_megabytes"
HOST = {
    "system/cpu_utilization_percentage",
    "system/system_memory_usage_megabytes",
    "system/system_memory_usage_percentage",
    "system/network_receive_megabytes",
    "system/network_transmit_megabytes",
    "system/disk_usage_megabytes",
    "system/disk_usage_percentage",
    "system/disk_available_megabytes",
}
UNTIL_KILLED = """
import time, mlflow, runvitals.mlflow as ours
ours.enable_system_metrics_logging()
ours.set_system_metrics_sampling_interval(0.1)
print(mlflow.start_run().info.run_id, flush=True)
time.sleep(60)
"""
SHORT = """
import time, mlflow, runvitals.mlflow as ours
ours.enable_system_metrics_logging()
ours.set_system_metrics_sampling_interval(0.1)
with mlflow.start_run() as run:
    print(run.info.run_id, flush=True)
    time.sleep(0.5)
"""
PLAIN = """
import runvitals
with runvitals.init(project="digits", id="r1", name="first try", config={"lr": 0.1}, tags=["a"]) as run:
    for step in range(3):
        run.log({"loss": 1.0 / (step + 1)})
"""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    pytest.importorskip("flask_cors", reason="what an MLflow server needs is not installed")
    server = Server(tmp_path_factory.mktemp("mlflow"))
    yield server
    server.close()


@pytest.fixture(scope="module")
def gate(server: Server) -> Iterator[Gate]:
    gate = Gate(server)
    yield gate
    gate.close()


@pytest.fixture(scope="module")
def environ(gate: Gate, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """A clean environment. Its relay is ended after the test."""
    ours = ("RUNVITALS_", "MLFLOW_")
    kept = {name: text for name, text in os.environ.items() if not name.startswith(ours)}
    home = tmp_path_factory.mktemp("home")
    data = str(home / "data")
    yield {
        **kept,
        "PYTHONPATH": SOURCE,
        "HOME": str(home),
        "XDG_CONFIG_HOME": str(home),
        "RUNVITALS_DIR": data,
        "RUNVITALS_COLLECTORS": "cpu,memory,filesystem,network",
        "MLFLOW_TRACKING_URI": gate.url,
        "MLFLOW_DISABLE_TELEMETRY": "true",
        "MLFLOW_TRACKING_USERNAME": "me",
        "MLFLOW_TRACKING_PASSWORD": "hush-hush",
    }
    end_relay(data)


@pytest.fixture(scope="module")
def story(environ: dict[str, str], gate: Gate) -> dict[str, Any]:
    """Run a script; returns its report, its stderr, what the relay asked for meanwhile, and how long it took.

    Other tests have runs of their own before and after it.
    """
    before, began_s = len(gate.passed), time.monotonic()
    done = subprocess.run(
        [sys.executable, str(STORY)],
        env=environ,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    line = next(line for line in done.stdout.splitlines() if line.startswith("STORY "))
    report = json.loads(line.removeprefix("STORY "))
    asked = [what for who, what in gate.passed[before:] if who == "runvitals"]
    return {**report, "stderr": done.stderr, "relay": asked, "took_s": time.monotonic() - began_s}


def samples(environ: dict[str, str], run: str) -> int:
    """The number of samples in the run's journal."""
    folder = f"{environ['RUNVITALS_DIR']}/runs/{run}"
    records = read_run(folder) if os.path.isdir(folder) else ()
    return sum(1 for record in records if record.type == frames.SAMPLE)


@pytest.mark.parametrize(
    "run",
    [
        "enabled",
        "nested",
        "parent",
        "two samples a point",
        "disabled, but for this one",
        "by the environment",
        "left open",
    ],
)
def test_run_has_mlflow_metrics_when_it_ends(story: dict[str, Any], server: Server, run: str) -> None:
    assert server.system(story[run]) == HOST
    assert server.run(story[run])["info"]["status"] == "FINISHED"


@pytest.mark.parametrize(
    "run", ["nothing said", "enabled, but not for this one", "disabled", "with a word for an interval"]
)
def test_run_has_no_metrics_if_disabled(story: dict[str, Any], server: Server, run: str) -> None:
    assert server.keys(story[run]) == set()
    assert server.run(story[run])["info"]["status"] == "FINISHED"


@pytest.mark.parametrize("run", ["shorter than a sample", "by our start_run", "autolog"])
def test_shortest_run_has_a_point(story: dict[str, Any], server: Server, run: str) -> None:
    assert HOST - {CPU} <= server.system(story[run])  # no time, no share of it


def test_samples_are_steps_and_resumed_runs_continue_them(
    story: dict[str, Any], server: Server, environ: dict[str, str]
) -> None:
    run = story["enabled"]
    assert story["again"] == run
    assert server.steps(run, MEMORY) == list(range(samples(environ, run)))


def test_samples_are_aggregated_into_points(
    story: dict[str, Any], server: Server, environ: dict[str, str]
) -> None:
    run = story["two samples a point"]
    assert server.steps(run, MEMORY) == list(range((samples(environ, run) + 1) // 2))


def test_nodes_of_a_run_are_distinguished(story: dict[str, Any], server: Server) -> None:
    assert story["ranks ended with"] == [0, 0]
    names = {key.removeprefix("system/") for key in HOST}
    assert server.system(story["ranks"]) == {f"system/node-{i}/{name}" for i in (0, 1) for name in names}


def test_training_has_no_thread_and_sends_no_request(story: dict[str, Any], gate: Gate) -> None:
    assert set(story["threads"]) == {1}
    assert story["enabled asked for"] == story["enabled, but not for this one asked for"]
    assert "runs/log-batch" not in story["enabled asked for"]
    assert ("runvitals", "runs/log-batch") in gate.passed


def test_short_run_needs_two_requests_of_the_relay(story: dict[str, Any]) -> None:
    runs = sum(1 for name in story if f"{name} asked for" in story and "not" not in name)
    batches_of_long_runs = 2 * int(story["took_s"] / 10)  # on a busy machine; at most two runs at once
    assert len(story["relay"]) <= 2 * (runs + 5) + batches_of_long_runs
    assert set(story["relay"]) == {"runs/get", "runs/log-batch"}


def test_relay_ends_the_threads_of_finished_runs(story: dict[str, Any], environ: dict[str, str]) -> None:
    response = relay_connection.ask(environ["RUNVITALS_DIR"], {"op": "hello"}, PATIENCE_S)
    if response is not None:  # else it has found nothing to do, and gone
        eventually(lambda: len(threads_of(int(response["pid"]))) <= 1)


def threads_of(pid: int) -> list[str]:
    try:
        return os.listdir(f"/proc/{pid}/task")
    except FileNotFoundError:
        return []


def test_invalid_settings_are_rejected_where_they_are_set(story: dict[str, Any]) -> None:
    assert [len(story[name]) for name in ("intervals", "samples", "nodes", "yes")] == [4, 3, 4, 1]
    assert "expected a number of seconds from 0.1 to 3600" in story["intervals"][0]
    assert "expected one of true, false, 1, 0" in story["yes"][0]
    assert story["set"] == "often"  # what is refused changes nothing
    assert "Failed to start system metrics monitoring" in story["stderr"]
    assert "often" in story["stderr"]


def test_secrets_are_not_recorded(story: dict[str, Any], environ: dict[str, str]) -> None:
    files = [path for path in Path(environ["RUNVITALS_DIR"]).rglob("*") if path.is_file()]
    assert files
    assert not [path for path in files if b"hush-hush" in path.read_bytes()]


def test_failing_server_delays_within_the_timeout_and_loses_no_point(
    server: Server, gate: Gate, environ: dict[str, str]
) -> None:
    gate.failing = True
    try:
        done = subprocess.run(
            [sys.executable, "-c", SHORT],
            env={**environ, "RUNVITALS_DELIVERY_TIMEOUT": "0.3"},
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
            check=True,
        )
        run = done.stdout.split()[0]
        assert re.search("not (fully )?delivered to .* yet", done.stderr)
        assert server.system(run) == set()
    finally:
        gate.failing = False
    eventually(lambda: server.system(run) == HOST)
    eventually(lambda: server.steps(run, MEMORY) == list(range(samples(environ, run))))


def test_killed_training_is_delivered_and_ended(server: Server, environ: dict[str, str]) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", UNTIL_KILLED], env=environ, stdout=subprocess.PIPE, text=True
    ) as training:
        assert training.stdout is not None
        run = training.stdout.readline().strip()
        eventually(lambda: samples(environ, run) >= 2)
        training.kill()
    eventually(lambda: server.run(run)["info"]["status"] == "FAILED")
    assert server.steps(run, MEMORY) == list(range(samples(environ, run)))


def test_database_uri_is_written_by_mlflow_in_the_relay(server: Server, environ: dict[str, str]) -> None:
    script = SHORT + "import sys; assert 'sqlalchemy' in sys.modules\n"
    uri = f"sqlite:///{server.database}"
    done = subprocess.run(
        [sys.executable, "-c", script],
        env={**environ, "MLFLOW_TRACKING_URI": uri, "RUNVITALS_DELIVERY_TIMEOUT": "40"},
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=True,
    )
    run = done.stdout.split()[0]
    assert server.system(run) == HOST, done.stderr


def test_run_is_delivered_as_an_mlflow_run(server: Server, gate: Gate, environ: dict[str, str]) -> None:
    reported = {
        "RUNVITALS_DESTINATIONS": f"mlflow:{gate.url}",
        "RUNVITALS_SAMPLING_INTERVAL": "0.1",
        "MLFLOW_TRACKING_PASSWORD": "another",
    }
    command = [sys.executable, "-c", PLAIN]
    done = subprocess.run(
        command, env={**environ, **reported}, capture_output=True, text=True, timeout=PATIENCE_S, check=True
    )
    assert f"delivered to mlflow:{gate.url}: " in done.stderr
    assert "3 log() rows" in done.stderr
    assert gate.signed[-1] == "me:another"  # from this training, even if another one started the relay
    experiment = server.ask("experiments/get-by-name", experiment_name="digits")["experiment"]
    (run,) = server.ask("runs/search", experiment_ids=[experiment["experiment_id"]])["runs"]
    assert run["info"]["run_name"] == "first try"
    assert run["info"]["status"] == "FINISHED"
    assert run["data"]["params"] == [{"key": "lr", "value": "0.1"}]
    assert server.steps(run["info"]["run_id"], "loss") == [0, 1, 2]
    assert HOST - {CPU} <= server.system(run["info"]["run_id"])
    tags = {tag["key"]: tag["value"] for tag in run["data"]["tags"]}
    assert tags["runvitals.run"] == "r1"
    assert tags["runvitals.tags"] == "a"
