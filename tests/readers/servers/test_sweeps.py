"""Agents of sweeps: which runs they start, when they stop them, and when they end."""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import runvitals
from runvitals.cli import main
from runvitals.model.ending import Ending
from runvitals.readers.servers import ServerError
from runvitals.readers.servers.sweeps import agent as agents
from runvitals.readers.servers.sweeps.agent import AgentLoop, SweepFailed
from runvitals.readers.servers.sweeps.server_sweeps import ServerSweeps, SweepAddress
from runvitals.readers.servers.sweeps.training import (
    AssignedRun,
    FunctionTraining,
    ProgramTraining,
    command_line,
)
from runvitals.sdk.config_file import read_mapping
from runvitals.server.runs.storage.sections import SectionUpdate
from runvitals.server.runs.storage.writer_registration import WriterRegistration
from runvitals.server.runs.storage.writers import WriterEnd
from tests.patience import PATIENCE_S
from tests.server.serving import Served, serving

GRID = {
    "method": "grid",
    "metric": {"name": "loss"},
    "parameters": {"lr": {"values": [0.1, 0.2]}, "net": {"parameters": {"width": {"value": 8}}}},
}


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with serving(tmp_path_factory.mktemp("sweeps")) as served:
        yield served


@pytest.fixture
def sweeps(served: Served) -> Iterator[ServerSweeps]:
    sweeps = ServerSweeps.of(served.url)
    yield sweeps
    sweeps.close()


class Logged:
    """A training that the server knows at once, as if the relay had delivered it."""

    def __init__(self, served: Served, succeeds: bool = True) -> None:
        self.parameters: list[Any] = []
        self._served = served
        self._succeeds = succeeds

    def execute(self, assigned: AssignedRun) -> bool:
        self.parameters.append(dict(assigned.parameters))
        store, now_ms = self._served.metadata_store, time.time_ns() // 1_000_000
        (who,) = store.writers.join(
            [WriterRegistration(assigned.run_id, "node1", "digits", started_ms=now_ms)], now_ms
        )
        summary = {"loss": assigned.parameters["lr"]}
        store.sections.merge([SectionUpdate(who.run_id, "summary", summary, now_ms)])
        store.writers.record_ends([WriterEnd(who.writer_id, Ending("finished", 0), now_ms)])
        return self._succeeds

    def stop(self) -> None:
        raise AssertionError("nobody has stopped it")


def made(sweeps: ServerSweeps, configuration: Any = GRID) -> SweepAddress:
    return SweepAddress(None, "digits", sweeps.create(None, "digits", configuration, None)["id"])


def agent_of(sweeps: ServerSweeps, address: SweepAddress, training: Any, folder: Path) -> AgentLoop:
    return AgentLoop(sweeps, address, training, str(folder), report_s=0.02)


def test_an_agent_starts_each_run_and_ends(served: Served, sweeps: ServerSweeps, tmp_path: Path) -> None:
    address, training = made(sweeps), Logged(served)
    assert agent_of(sweeps, address, training, tmp_path).run() == 2
    assert training.parameters == [{"lr": lr, "net": {"width": 8}} for lr in (0.1, 0.2)]
    sweep = sweeps.read(address)
    assert (sweep["state"], sweep["best"], sweep["runs"], sweep["goal"]) == ("finished", 0.1, 2, "minimize")
    assert sweeps.run_state(None, sweep["best_run"]) == "finished"


def test_an_agent_that_has_enough_leaves_the_rest(
    served: Served, sweeps: ServerSweeps, tmp_path: Path
) -> None:
    address = made(sweeps)
    assert agent_of(sweeps, address, Logged(served), tmp_path).run(count=1) == 1
    sweep = sweeps.read(address)
    assert (sweep["state"], sweep["best"], sweep["runs"]) == ("running", 0.1, 1)


def test_an_agent_ends_if_nothing_succeeds(served: Served, sweeps: ServerSweeps, tmp_path: Path) -> None:
    many = {"method": "random", "parameters": {"lr": {"min": 0.1, "max": 0.2}}}
    training = Logged(served, succeeds=False)
    with pytest.raises(SweepFailed, match="the first 3 runs have failed"):
        agent_of(sweeps, made(sweeps, many), training, tmp_path).run()
    assert len(training.parameters) == 3


def test_a_run_that_logs_nothing_is_tried_three_times(sweeps: ServerSweeps, tmp_path: Path) -> None:
    class Silent:
        def __init__(self) -> None:
            self.ids: list[str] = []

        def execute(self, assigned: AssignedRun) -> bool:
            self.ids.append(assigned.run_id)
            return True

        stop = execute

    training = Silent()
    assert agent_of(sweeps, made(sweeps), training, tmp_path).run(count=4) == 4
    assert training.ids == [training.ids[0]] * 3 + [training.ids[3]] != [training.ids[0]] * 4


def test_canceling_a_sweep_ends_its_runs_and_agents(sweeps: ServerSweeps, tmp_path: Path) -> None:
    address = made(sweeps)

    class Endless:
        def __init__(self) -> None:
            self.stopped = threading.Event()

        def execute(self, assigned: AssignedRun) -> bool:
            sweeps.control(address, "cancel")
            assert self.stopped.wait(PATIENCE_S)
            return True

        def stop(self) -> None:
            self.stopped.set()

    assert agent_of(sweeps, address, Endless(), tmp_path).run() == 1


def test_an_agent_waits_for_a_server_that_is_away() -> None:
    attempts: list[Callable[[], str]] = [away, away, lambda: "there"]
    waits: list[float] = []
    assert agents._patiently(waits.append, lambda: attempts.pop(0)()) == "there"
    assert waits == [1.0, 2.0]
    with pytest.raises(ServerError, match="not allowed"):
        agents._patiently(waits.append, refuse)
    with pytest.raises(ServerError, match="away"):
        agents._patiently(waits.append, away)


def away() -> str:
    raise ServerError("away")


def refuse() -> str:
    raise ServerError("not allowed", 403)


def assigned_run(parameters: Any = None) -> AssignedRun:
    return AssignedRun.of("k3v9x2mq", None, "digits", "r1", {"lr": 0.5} if parameters is None else parameters)


def test_a_function_finds_the_parameters_in_its_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RUNVITALS_MODE", "disabled")
    runvitals.finish()  # a run that another test left open
    seen: list[Any] = []

    def train() -> None:
        run = runvitals.init(project="other", config={"lr": 1.0, "epochs": 3}, dir=str(tmp_path))
        seen.append((run.id, run.project, run.sweep_id, dict(run.config)))

    assert FunctionTraining(train).execute(assigned_run())
    assert seen == [("r1", "digits", "k3v9x2mq", {"lr": 0.5, "epochs": 3})]
    assert not {"RUNVITALS_RUN_ID", "RUNVITALS_SWEEP_PARAMETERS"} & os.environ.keys()


def test_a_function_is_stopped_as_by_control_c() -> None:
    training = FunctionTraining(lambda: None)

    def train() -> None:
        training.stop()
        training.stop()
        signal.pause()

    training = FunctionTraining(train)
    assert training.execute(assigned_run())
    with pytest.raises(KeyboardInterrupt):
        FunctionTraining(interrupt).execute(assigned_run())


def interrupt() -> None:
    raise KeyboardInterrupt


def test_an_error_of_a_function_does_not_end_the_agent(capsys: pytest.CaptureFixture[str]) -> None:
    assert not FunctionTraining(lambda: 1 / 0).execute(assigned_run())
    assert "ZeroDivisionError" in capsys.readouterr().err


def test_a_program_gets_the_parameters(tmp_path: Path) -> None:
    script, out = tmp_path / "train.py", tmp_path / "out.json"
    script.write_text(
        "import json, os, sys\n"
        f"open({str(out)!r}, 'w').write(json.dumps([sys.argv[1:], os.environ['RUNVITALS_RUN_ID']]))"
    )
    configuration = {"program": str(script), "command": ["${interpreter}", "-SE", "${program}", "${args}"]}
    assert ProgramTraining(configuration).execute(assigned_run({"lr": 0.5, "net": {"width": 8}}))
    assert json.loads(out.read_text()) == [["--lr=0.5", '--net={"width": 8}'], "r1"]


def test_a_program_that_is_stopped_has_not_failed(tmp_path: Path) -> None:
    started = tmp_path / "started"
    script = tmp_path / "train.py"
    script.write_text(f"import signal\nopen({str(started)!r}, 'w')\nsignal.pause()")
    training = ProgramTraining({"program": str(script), "command": [sys.executable, "-SE", "${program}"]})
    outcome: list[bool] = []
    thread = threading.Thread(target=lambda: outcome.append(training.execute(assigned_run())))
    thread.start()
    while thread.is_alive():
        if started.exists():
            training.stop()
        thread.join(0.02)
    assert outcome == [True]


@pytest.mark.parametrize(
    ("command", "words"),
    [
        (None, ["/usr/bin/env", "python", "t.py", "--a=1", "--b=True", "--c=x y"]),
        ("python ${program} ${args_no_hyphens}", ["python", "t.py", "a=1", "b=True", "c=x y"]),
        (["${args_no_boolean_flags}"], ["--a=1", "--b", "--c=x y"]),
        (["${args_json}"], ['{"a": 1, "b": true, "c": "x y"}']),
        (["${args_json_file}", "${envvar:NO_SUCH_VARIABLE}"], ["/tmp/p.json", ""]),
    ],
)
def test_placeholders_of_a_command(command: Any, words: list[str]) -> None:
    configuration = {"program": "t.py", "command": command}
    assert command_line(configuration, {"a": 1, "b": True, "c": "x y"}, "/tmp/p.json") == words


def test_what_cannot_be_started() -> None:
    with pytest.raises(ValueError, match="has no `program`"):
        ProgramTraining({})
    with pytest.raises(ValueError, match=r"unknown placeholder '\$\{arguments\}'"):
        ProgramTraining({"program": "t.py", "command": ["${arguments}"]})
    with pytest.raises(ValueError, match="expected at most 100,000"):
        assigned_run({"x": "x" * 200_000})


def test_the_commands(
    served: Served, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("RUNVITALS_SERVER", served.url)
    file = tmp_path / "sweep.yaml"
    file.write_text(
        "method: random\nproject: digits\nprogram: t.py\nparameters: {lr: {min: 0.1, max: 1.0}}\n"
    )
    assert main(["sweep", str(file), "--name", "first"]) == 0
    printed = capsys.readouterr()
    sweep = printed.out.strip()
    assert f"runvitals agent digits/{sweep}" in printed.err
    for order, state in (("pause", "paused"), ("resume", "running"), ("cancel", "canceled")):
        assert main(["sweep", f"--{order}", f"digits/{sweep}"]) == 0
        assert capsys.readouterr().out == f"{sweep} is {state}\n"
    assert main(["agent", f"digits/{sweep}"]) == 0
    assert main(["sweep", "--resume", f"digits/{sweep}"]) == 1
    assert "is canceled: it cannot become running" in capsys.readouterr().err
    assert main(["agent", "digits/none"]) == 1
    assert "there is no sweep 'none'" in capsys.readouterr().err
    monkeypatch.setenv("RUNVITALS_MODE", "offline")
    assert main(["agent", f"digits/{sweep}"]) == 1
    assert "sweeps need the mode online" in capsys.readouterr().err


def test_a_new_project_begins_with_a_sweep(sweeps: ServerSweeps) -> None:
    created = sweeps.create(None, "fresh", GRID, "first")
    assert sweeps.read(SweepAddress(None, "fresh", created["id"]))["name"] == "first"


def test_runs_that_there_are_already_join_a_sweep(
    served: Served, sweeps: ServerSweeps, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Logged(served).execute(AssignedRun("before1", {"lr": 0.05}, {}))
    monkeypatch.setenv("RUNVITALS_SERVER", served.url)
    name = runvitals.sweep(GRID, project="digits", prior_runs=["before1"])
    address = SweepAddress(None, "digits", name)
    assert sweeps.read(address)["runs"] == 1
    assert agent_of(sweeps, address, Logged(served), tmp_path).run() == 2
    shown = sweeps.read(address)
    assert (shown["runs"], shown["best"], shown["best_run"]) == (3, 0.05, "before1")
    with pytest.raises(ServerError, match="there is no run 'none' in the project"):
        runvitals.sweep(GRID, project="digits", prior_runs=["none"])


def test_files_that_are_no_configuration(tmp_path: Path) -> None:
    for name, text, problem in (
        ("a.json", "{", "a.json is not valid"),
        ("a.yaml", "a: [", "a.yaml is not valid"),
        ("b.yaml", "- 1", "expected the configuration of a sweep"),
    ):
        (tmp_path / name).write_text(text)
        with pytest.raises(ValueError, match=problem):
            read_mapping(tmp_path / name, "the configuration of a sweep, with method and parameters")
    with pytest.raises(ValueError, match="invalid sweep"):
        SweepAddress.parsed("a/b/c/d", None, "default")
