"""Sweeps over GraphQL: the commands for agents, and what sweeps say of themselves."""

from __future__ import annotations

import json
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from tests.patience import PATIENCE_S
from tests.server.doors.wandb.conftest import Door
from tests.server.doors.wandb.test_client import environment
from tests.server.doors.wandb.test_file_stream import HISTORY, send
from tests.server.serving import Served

SCRIPT = Path(__file__).with_name("sweep_client.py")

UPSERT_SWEEP = """mutation UpsertSweep($id: ID, $config: String, $projectName: String, $state: String,
    $priorRunsFilters: JSONString) {
  upsertSweep(input: {id: $id, config: $config, projectName: $projectName, entityName: "main", state: $state,
      priorRunsFilters: $priorRunsFilters}) {
    sweep { id name project { name entity { name } } } configValidationWarnings } }"""
CREATE_AGENT = """mutation CreateAgent($sweep: String!) {
  createAgent(input: {host: "node1", projectName: "digits", entityName: "main", sweep: $sweep}) {
    agent { id } } }"""
HEARTBEAT = """mutation Heartbeat($id: ID!, $runState: JSONString) {
  agentHeartbeat(input: {id: $id, metrics: "{}", runState: $runState}) { agent { id } commands } }"""
SWEEP = """query Sweep($name: String!) { project(name: "digits", entityName: "main") {
  sweep(sweepName: $name) { id name method state config bestLoss runCount runCountExpected heartbeatAt
  runs { edges { node { name sweepName state shouldStop failed stopped running exitcode } } }
  agents { edges { node { id name host state totalRuns } } } } } }"""
EXIT = [{"type": "exit"}]
GRID = """method: grid
metric: {name: loss}
parameters: {lr: {values: [0.1, 0.2]}, net: {parameters: {n: {value: 3}}}}"""


class Sweeping:
    """A sweep, and agents of it."""

    def __init__(self, door: Door, config: str = GRID) -> None:
        self.door = door
        self.made = self.asked(UPSERT_SWEEP, config=config, projectName="digits")["upsertSweep"]
        self.name = self.made["sweep"]["name"]

    def asked(self, query: str, **variables: Any) -> Any:
        response = self.door.graphql(query, **variables)
        assert "errors" not in response, response
        return response["data"]

    def agent(self) -> str:
        return str(self.asked(CREATE_AGENT, sweep=self.name)["createAgent"]["agent"]["id"])

    def told(self, agent: str, *running: str) -> list[dict[str, Any]]:
        """The commands for an agent that has these runs."""
        state = json.dumps(dict.fromkeys(running, True))
        commands = self.asked(HEARTBEAT, id=agent, runState=state)["agentHeartbeat"]["commands"]
        return list(json.loads(commands))

    def set(self, state: str) -> None:
        self.asked(UPSERT_SWEEP, id=self.made["sweep"]["id"], state=state)

    def shown(self) -> dict[str, Any]:
        return dict(self.asked(SWEEP, name=self.name)["project"]["sweep"])

    def run(self, name: str, *losses: float, ends: bool = True) -> None:
        """Log a run of the sweep."""
        run = Door(self.door.served, name)
        run.begin(sweep=self.name)
        lines = [json.dumps({"_step": step, "loss": loss}) for step, loss in enumerate(losses)]
        end = {"complete": True, "exitcode": 0} if ends else {}
        send(run, {HISTORY: {"offset": 0, "content": lines}}, **end)


def test_an_agent_gets_each_combination_and_then_ends(door: Door) -> None:
    sweep = Sweeping(door)
    agent = sweep.agent()
    for lr in (0.1, 0.2):
        (command,) = sweep.told(agent)
        assert command["type"] == "run"
        assert command["args"] == {"lr": {"value": lr}, "net": {"value": {"n": 3}}}
        sweep.run(command["run_id"], 1 - lr)
    assert sweep.told(agent) == EXIT
    shown = sweep.shown()
    assert (shown["state"], shown["bestLoss"], shown["runCountExpected"]) == ("FINISHED", 0.8, 2)
    assert [edge["node"]["sweepName"] for edge in shown["runs"]["edges"]] == [sweep.name] * 2
    assert [edge["node"]["totalRuns"] for edge in shown["agents"]["edges"]] == [2]


def test_a_run_that_has_not_begun_is_assigned_again_but_not_for_ever(door: Door) -> None:
    sweep = Sweeping(door)
    agent = sweep.agent()
    run_ids = [sweep.told(agent)[0]["run_id"] for _ in range(4)]
    assert run_ids[0] == run_ids[1] == run_ids[2] != run_ids[3]
    assert sweep.told(agent, run_ids[3]) == []


def test_pause_resume_stop_and_cancel(door: Door) -> None:
    sweep = Sweeping(door)
    agent = sweep.agent()
    sweep.set("PAUSED")
    assert (sweep.told(agent), sweep.shown()["state"]) == ([], "PAUSED")
    sweep.set("RUNNING")
    run = sweep.told(agent)[0]["run_id"]
    sweep.set("FINISHED")
    assert sweep.told(agent, run) == []
    assert sweep.told(agent) == EXIT
    sweep.set("CANCELED")
    assert sweep.told(agent, run) == EXIT
    response = door.graphql(UPSERT_SWEEP, id=sweep.made["sweep"]["id"], state="RUNNING")
    assert "is canceled: it cannot become running" in response["errors"][0]["message"]


def test_runs_that_do_worse_are_stopped(door: Door) -> None:
    config = """{method: random, metric: {name: loss}, parameters: {lr: {min: 0.0, max: 1.0}},
        early_terminate: {type: hyperband, min_iter: 2, eta: 2}}"""
    sweep = Sweeping(door, config)
    good, bad = sweep.agent(), sweep.agent()
    first, second = sweep.told(good)[0]["run_id"], sweep.told(bad)[0]["run_id"]
    sweep.run(first, 0.5, 0.4, ends=False)
    assert sweep.told(good, first) == []
    sweep.run(second, 5.0, 4.0, ends=False)
    assert sweep.told(bad, second) == [{"type": "stop", "run_id": second}]
    assert sweep.told(bad, second) == [{"type": "stop", "run_id": second}]


def test_the_sweep_ends_at_its_run_cap_and_at_its_target(door: Door) -> None:
    capped = Sweeping(door, "{method: random, run_cap: 1, parameters: {lr: {min: 0.0, max: 1.0}}}")
    agent = capped.agent()
    capped.run(capped.told(agent)[0]["run_id"], 1.0)
    assert capped.told(agent) == EXIT
    target = "{method: random, metric: {name: loss, target: 0.5}, parameters: {lr: {min: 0.0, max: 1.0}}}"
    aimed = Sweeping(door, target)
    agent = aimed.agent()
    aimed.run(aimed.told(agent)[0]["run_id"], 0.4)
    assert (aimed.told(agent), aimed.shown()["state"]) == (EXIT, "FINISHED")


def test_agents_that_ask_at_once_get_no_more_runs_than_the_cap(door: Door) -> None:
    sweep = Sweeping(door, "{method: random, run_cap: 3, parameters: {lr: {min: 0.0, max: 1.0}}}")
    agents = [sweep.agent() for _ in range(12)]
    with ThreadPoolExecutor(len(agents)) as pool:
        told = list(pool.map(sweep.told, agents))
    assert len([commands for commands in told if commands]) == 3
    assert sweep.shown()["runCount"] == 3


def test_an_agent_of_a_deleted_sweep_ends_after_its_run(door: Door) -> None:
    sweep = Sweeping(door)
    agent = sweep.agent()
    run = sweep.told(agent)[0]["run_id"]
    store = door.served.metadata_store.sweeps.sweeps
    store.delete(store.named(door.served.metadata_store.projects.id("digits"), sweep.name).id)
    assert sweep.told(agent, run) == []
    assert sweep.told(agent) == EXIT


@pytest.mark.parametrize(
    ("config", "problem"),
    [
        ("method: x\nparameters: {a: {value: 1}}", "method: 'x'; expected one of random, grid, bayes"),
        ("{method: bayes, parameters: {a: {min: 1, max: 2}}}", "metric: missing; a bayes search needs one"),
        ("{method: random, parameters: {a: {min: 1e-5, max: 1.0}}}", "YAML reads 1e-5 as a text"),
        ("a: &x [1]\nb: *x", "aliases are not supported"),
        ("{method: ", "not YAML"),
        ("[" * 900 + "]" * 900, "nested too deeply; expected at most 100 levels"),
        ("a: [" + "1," * 60_000 + "]", "more than 50,000 keys, values, lists and maps"),
        ('{method: random, parameters: {a: {value: 1}}, name: "a\\u202eb"}', "invisible character"),
        (f"{{method: random, parameters: {{a: {{value: 1}}}}, name: {'x' * 257}}}", "at most 256"),
        ("{method: random, parameters: {a: {value: 2026-01-01}}}", "expected texts, finite numbers"),
    ],
)
def test_a_wrong_configuration_is_refused_with_what_is_expected(
    door: Door, config: str, problem: str
) -> None:
    response = door.graphql(UPSERT_SWEEP, config=config, projectName="digits")
    assert problem in response["errors"][0]["message"]


def test_the_real_client_runs_sweeps(served: Served, tmp_path: Path) -> None:
    check_client(served, tmp_path)


def check_client(served: Served, folder: Path) -> None:
    """Run sweeps with a client, and check what it reads of them."""
    result = folder / "result.json"
    done = subprocess.run(
        [sys.executable, SCRIPT, result],
        env=environment(served, folder),
        cwd=folder,
        capture_output=True,
        timeout=PATIENCE_S,
        check=False,
        text=True,
    )
    assert done.returncode == 0, done.stderr + done.stdout
    read = json.loads(result.read_text())
    assert read["grid"] == {
        "name": read["grid"]["name"],
        "state": "FINISHED",
        "method": "grid",
        "expected": 2,
        "runs": [[0.1, 3, "finished"], [0.2, 3, "finished"]],
        "best": 0.2,
        "order": "+summary_metrics.loss",
    }
    assert read["controlled"] == ["RUNNING", "PAUSED", "RUNNING", "FINISHED", "Sweep already finished."]
    assert "parameters.lr.values: 3; expected a list" in read["refused"]
    assert read["bayes"]["runs"][0][1:] == [3, "finished"]
