"""`/compare`: runs side by side, from journals and from a store alike."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from runvitals.server.compare.routes import compare_models
from tests.readers.journals.journals import T0, Monitor
from tests.server.client import Client
from tests.server.stored_runs import StoredServer


def a_run(directory: Path, server: StoredServer, name: str, lr: float, loss: float) -> None:
    monitor = Monitor(directory, name)
    monitor.info(
        T0 + 1,
        run={"name": f"run {name}", "tags": ["b", "a"]},
        config={"lr": lr, "optimizer": {"name": "adam"}},
        summary={"loss": loss, "note": "x"},
        metrics={"loss": {"goal": "minimize"}},
        machine={"git": {"commit": name}, "cpu": {"model": "EPYC"}, "gpu_nvidia": [{"name": "H100"}] * 2},
    )
    monitor.sample(T0 + 1000, {"cpu": 1.0})
    monitor.end(T0 + 2000, exit_code=0)
    server.take(directory, name)


def test_runs_side_by_side(tmp_path: Path) -> None:
    local, server = Client(tmp_path), StoredServer(tmp_path / "server")
    try:
        for number, name in enumerate(("one", "two", "three")):
            a_run(tmp_path, server, name, 0.1 * number, 3.0 - number)
        runs = ["three", "one", "none", "one", "../x"]
        mine, theirs = (client.ask("compare", runs=runs) for client in (local, server))
        for response in (mine, theirs):
            compare_models.ComparedRuns.model_validate(response)
            for run in response["runs"]:
                run.pop("last")  # a journal knows the newest sample, a store the newest value of each key
        rows = {row["name"]: row for row in mine["statistics"]}
        for response in (mine, theirs):  # a store computes the statistics of the system in the background
            response["statistics"] = [row for row in response["statistics"] if "system." not in row["name"]]
        assert theirs == mine
        assert [run["name"] for run in mine["runs"]] == ["run three", "run one"]
        assert mine["missing"] == ["none", "../x"]
        facts = {f"{fact['section']}.{fact['name']}": fact for fact in mine["facts"]}
        assert facts["config.lr"]["values"] == [0.2, 0.0]
        assert facts["git.commit"]["values"] == ["three", "one"]
        assert facts["hardware.gpu_nvidia.name"]["values"] == ["2 × H100"]
        assert facts["config.optimizer.name"]["differs"] is False
        assert rows["summary.loss"] == {
            "name": "summary.loss",
            "unit": "",
            "goal": "minimize",
            "values": [1.0, 3.0],
            "best": [0],
        }
        assert rows["duration"]["values"] == [2.0, 2.0]
        assert (rows["system.cpu"]["values"], rows["system.cpu"]["unit"]) == ([1.0, 1.0], "%")
    finally:
        server.close()


def test_requests_are_limited(client: Client) -> None:
    def status(**params: Any) -> int:
        return client.get("/api/v1/compare", params=params).status_code

    assert status(runs=[f"run-{number}" for number in range(100)]) == 200
    assert status(runs=[f"run-{number}" for number in range(101)]) == 422
    assert status() == 422
    assert status(runs=["a"], unknown="x") == 422
