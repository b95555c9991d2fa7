"""What differs between runs, and which is the best."""

from __future__ import annotations

from typing import Any

from runvitals.model.ending import Ending
from runvitals.model.host import Host
from runvitals.model.run import Run
from runvitals.server.compare.comparison import MAX_NAMES, compared_facts, goal_of, leaves, statistics

T0 = 1_800_000_000_000


def run(name: str = "a", **about: Any) -> Run:
    fields: dict[str, Any] = {
        "id": name,
        "project": "digits",
        "name": name,
        "group": None,
        "job_type": None,
        "tags": [],
        "notes": "",
        "command": ["python", "train.py"],
        "ending": Ending("finished", 0),
        "started_ms": T0,
        "ended_ms": T0 + 2000,
        "duration_ms": 2000,
        "config": {},
        "summary": {},
        "settings": {},
        "machines": {},
        "sources": {},
        "hosts": [Host("node1", Ending("finished", 0), T0, T0 + 2000, 1.0, 1)],
        "ranks": [],
        "events": [],
        "lost_records": 0,
        "problems": [],
        "last": {},
    }
    return Run(**{**fields, **about})


def facts(*runs: Run) -> dict[str, tuple[bool, list[Any], list[int]]]:
    rows, left_out = compared_facts(runs)
    assert left_out == 0
    return {f"{row.section}.{row.name}": (row.differs, row.values, row.absent) for row in rows}


def test_configurations() -> None:
    differences = facts(
        run(config={"lr": 0.1, "optimizer": {"name": "adam"}, "seed": None, "layers": [64, 64]}),
        run(config={"lr": 0.2, "optimizer": {"name": "adam"}, "layers": [64, 64], "extra": True}),
    )
    assert differences["config.lr"] == (True, [0.1, 0.2], [])
    assert differences["config.optimizer.name"] == (False, ["adam"], [])
    assert differences["config.layers"] == (False, ["[64, 64]"], [])
    assert differences["config.extra"] == (True, [None, True], [0])
    assert differences["config.seed"] == (True, [None, None], [1])  # null is not absent
    assert differences["run.command"] == (False, ["python train.py"], [])


def test_a_number_is_not_a_text_that_looks_like_it() -> None:
    assert facts(run(config={"x": 1}), run(config={"x": True}))["config.x"][0]
    assert facts(run(config={"x": 1}), run(config={"x": "one"}))["config.x"][0]


def test_hardware_git_packages_and_environment() -> None:
    def machine(gpus: list[str], commit: str, torch: str) -> dict[str, Any]:
        devices = [
            {"index": index, "uuid": f"GPU-{commit}-{index}", "name": name, "memory_bytes": 80}
            for index, name in enumerate(gpus)
        ]
        return {
            "cpu": {"model": "EPYC", "cores": 96},
            "gpu_nvidia": devices,
            "git": {"commit": commit, "branch": "main"},
            "packages": {"torch": torch, "numpy": "2.1"},
            "os": "Debian",
            "uptime_s": float(len(commit)),
            "command": ["python"],
        }

    differences = facts(
        run(machines={"node1": machine(["H100"] * 8, "aa", "2.4")}),
        run(machines={"node2": machine(["H100"] * 7 + ["A100"], "bbb", "2.4")}),
    )
    assert differences["hardware.gpu_nvidia.name"] == (True, ["8 × H100", "7 × H100, A100"], [])
    assert differences["hardware.cpu.model"] == (False, ["EPYC"], [])
    assert differences["git.commit"] == (True, ["aa", "bbb"], [])
    assert differences["packages.torch"] == (False, ["2.4"], [])
    assert differences["environment.os"] == (False, ["Debian"], [])
    assert not [name for name in differences if "uuid" in name or "index" in name or "uptime" in name]


def test_equal_hosts_do_not_differ_from_one() -> None:
    machine = {"os": "Debian", "cpu": {"cores": 96}}
    differences = facts(run(machines={"a": machine, "b": dict(machine)}), run(machines={"c": machine}))
    assert differences["environment.os"] == (False, ["Debian"], [])
    mixed = facts(
        run(machines={"a": machine, "b": {**machine, "os": "Ubuntu"}}), run(machines={"c": machine})
    )
    assert mixed["environment.os"] == (True, ["Debian, Ubuntu", "Debian"], [])


def test_names_and_values_are_limited() -> None:
    rows, left_out = compared_facts(
        [
            run(config={f"k{number}": 1 for number in range(1500)} | {"long": "x" * 9999}),
            run(config={f"j{number}": 1 for number in range(1500)}),
        ]
    )
    assert len([row for row in rows if row.section == "config"]) == MAX_NAMES
    assert left_out == 1501 + 1500 - MAX_NAMES
    assert max(len(str(value)) for row in rows for value in row.values) == 2000


def test_a_hostile_configuration_is_read_to_its_limits() -> None:
    deep: dict[str, Any] = {}
    inner = deep
    for _ in range(50):
        inner["a"] = {}
        inner = inner["a"]
    fields = dict(leaves({"deep": deep, "wide": {str(number): number for number in range(5000)}}))
    assert len(fields) == 2000
    assert max(name.count(".") for name in fields) == 8


def test_the_best_by_the_declared_goal() -> None:
    down = {"val/*": {"goal": "minimize"}, "val/acc": {"goal": "maximize"}}
    runs = [
        run(
            "a",
            summary={"val/loss": 0.3, "val/acc": 0.9, "x": 1, "note": "text", "flag": True},
            defined_metrics=down,
        ),
        run("b", summary={"val/loss": 0.2, "val/acc": 0.8, "x": 2}, defined_metrics=down),
        run("c", summary={"val/loss": float("nan")}),
    ]
    rows = {row.name: row for row in statistics(runs)}
    assert sorted(rows) == ["duration", "summary.val/acc", "summary.val/loss", "summary.x"]
    assert (rows["summary.val/loss"].goal, rows["summary.val/loss"].best) == ("minimize", [1])
    assert (rows["summary.val/acc"].goal, rows["summary.val/acc"].best) == ("maximize", [0])
    assert (rows["summary.x"].goal, rows["summary.x"].values, rows["summary.x"].best) == (
        None,
        [1, 2, None],
        [],
    )
    assert rows["duration"].values == [2.0, 2.0, 2.0]


def test_runs_that_disagree_declare_no_goal() -> None:
    runs = [run(defined_metrics={"x": {"goal": goal}}) for goal in ("minimize", "maximize")]
    assert goal_of("x", runs) is None
    assert goal_of("x", runs[:1]) == "minimize"
    assert goal_of("y", runs) is None


def test_equal_runs_have_no_best() -> None:
    runs = [run(summary={"x": 1}, defined_metrics={"x": {"goal": "minimize"}}) for _ in range(2)]
    assert statistics(runs)[0].best == []
