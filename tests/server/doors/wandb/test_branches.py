"""Runs that go on from a step of another run, or go back to one of their own."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import delete

from runvitals.server.database.tables.runs import wandb_client
from runvitals.server.files.storage.stored_files import StoredFile
from runvitals.server.runs.storage.media import StoredMedia
from tests.patience import PATIENCE_S, eventually
from tests.server.doors.wandb.conftest import Door
from tests.server.doors.wandb.test_client import environment
from tests.server.doors.wandb.test_file_stream import HISTORY, losses, rows, send
from tests.server.serving import Served

SCRIPT = Path(__file__).with_name("branch_client.py")
REWIND = """mutation RewindRun ($runName: String!, $metricName: String!, $metricValue: Float!) {
  rewindRun(input: {runName: $runName, entityName: "main", projectName: "digits", metricName: $metricName,
      metricValue: $metricValue}) {
    rewoundRun { id name displayName config sweepName historyLineCount
      project { id name entity { id name } } } } }"""


def read_by_client(served: Served, folder: Path) -> dict[str, Any]:
    """What a client reads of runs that it has forked and gone back with."""
    result = folder / "result.json"
    done = subprocess.run(
        [sys.executable, SCRIPT, result, "branch"],
        env=environment(served, folder),
        cwd=folder,
        capture_output=True,
        timeout=PATIENCE_S,
        check=False,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    read: dict[str, Any] = json.loads(result.read_text())
    assert read["parent"] == [[step, step + 1.0] for step in range(6)]
    assert read["child"] == [[0, 1.0], [1, 2.0], [2, 3.0], [3, 4.0], [4, 10.0], [5, 20.0]]
    return read


def test_the_real_client_forks_and_goes_back(served: Served, tmp_path: Path) -> None:
    read = read_by_client(served, tmp_path)
    assert read["rewound"] == [[0, 1.0], [1, 2.0], [2, 100.0]]
    assert (read["summary"], read["config"]["lr"]) == (100.0, 0.1)
    assert "there is no run 'branch-missing'" in read["orphan"]


def begin_fork(door: Door, parent: str, step: float) -> Any:
    config = {"_wandb": {"value": {"branch_point": {"run_id": parent, "step": step}}}}
    return door.begin(config=json.dumps(config))


def test_a_fork_that_is_begun_twice_has_its_rows_once(door: Door) -> None:
    door.begin()
    send(door, rows(0, 5))
    fork = Door(door.served, f"{door.run}-fork")
    begin_fork(fork, door.run, 2)
    (place,) = fork.served.metadata_store.runs.places(fork.run)
    fork.served.metadata_store.write(
        lambda connection: connection.execute(
            delete(wandb_client).where(wandb_client.c.run_id == place.run_id)
        )
    )
    begin_fork(fork, door.run, 2)  # as after an answer that was lost
    send(fork, {HISTORY: {"offset": 0, "content": [json.dumps({"_step": 3, "loss": 9.0})]}})
    assert losses(fork) == {0: 0.0, 1: 0.5, 2: 1.0, 3: 9.0}
    assert fork.shown()["summary"]["loss"] == 9.0


def test_a_fork_has_the_media_up_to_the_step(door: Door) -> None:
    door.begin()
    send(door, rows(0, 5))
    store = door.served.metadata_store
    parent = store.runs.places(door.run)[0].run_id
    writer = store.writers.of_runs([parent])[parent][0].id
    files = [StoredFile(f"{number:064x}", 3, "image/png") for number in range(3)]
    for step, file in enumerate(files):
        store.stored_files.add(parent, file, 1)
        items = [{"sha256": file.sha256, "bytes": 3, "type": "image/png"}]
        store.media.add([StoredMedia(parent, writer, 1000 + step, 1, float(step), "scan", "image", items)])
    fork = Door(door.served, f"{door.run}-fork")
    begin_fork(fork, door.run, 1)
    child = store.runs.places(fork.run)[0].run_id
    assert store.media.steps(child, "scan") == [0.0, 1.0]
    assert [store.stored_files.of_run(child, file.sha256) == file for file in files] == [True, True, False]
    store.media.copy_until(parent, child, store.writers.of_runs([child])[child][0].id, 1.0)
    assert store.media.steps(parent, "scan") == [0.0, 1.0, 2.0]


def test_the_summary_is_that_of_the_rows_that_are_left(door: Door) -> None:
    door.begin(config=json.dumps({"_wandb": {"value": {"m": [{"1": "loss", "7": [2]}]}}}))
    send(door, rows(0, 6))
    send(
        door, {"wandb-summary.json": {"offset": 0, "content": [json.dumps({"loss": {"max": 2.5}, "own": 7})]}}
    )
    assert door.shown()["summary"]["loss"] == 2.5
    response = door.graphql(REWIND, runName=door.run, metricName="_step", metricValue=2.0)
    assert response["data"]["rewindRun"]["rewoundRun"]["historyLineCount"] == 6, response
    assert losses(door) == {0: 0.0, 1: 0.5, 2: 1.0}
    assert door.shown()["summary"] == {"loss": 1.0, "own": 7}
    send(door, {HISTORY: {"offset": 6, "content": [json.dumps({"_step": 3, "loss": 8.0})]}})
    assert losses(door) == {0: 0.0, 1: 0.5, 2: 1.0, 3: 8.0}
    eventually(lambda: door.shown()["summary"]["loss"] == 8.0)
    assert "rewound" in [event["name"] for event in door.shown()["events"]]


@pytest.mark.parametrize(
    ("sent", "problem"),
    [
        ({"runName": "missing"}, "there is no run 'missing'"),
        ({"metricName": "epoch"}, "cannot go back by 'epoch'; expected '_step'"),
    ],
)
def test_a_step_that_cannot_be_gone_back_to_is_refused(
    door: Door, sent: dict[str, Any], problem: str
) -> None:
    door.begin()
    variables = {"runName": door.run, "metricName": "_step", "metricValue": 1.0, **sent}
    assert problem in door.graphql(REWIND, **variables)["errors"][0]["message"]
