"""Complete simulated runs, read back like any other run."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from runvitals.base.signal_flag import SignalFlag
from runvitals.journal.paths import run_dir
from runvitals.journal.reader import read_run
from runvitals.model.metrics import DEFINITIONS
from runvitals.model.state import SILENT_MS
from runvitals.monitoring.settings.settings import resolve
from runvitals.readers.journals.reader import RunReader
from runvitals.readers.journals.run_handle import OpenRun
from runvitals.readers.journals.runs import RunList
from runvitals.tools.simulate import KINDS, Profile, Simulation, at_once, begin
from tests.readers.journals.journals import T0

END_MS = T0 + 3_600_000


def new_simulation(
    folder: Path,
    profile: str = "h100x2",
    nodes: int = 1,
    scenario_s: float = 600.0,
    seed: int = 0,
    **options: Any,
) -> Simulation:
    values = {**resolve({}, {"HOME": str(folder)}, "/"), "project": "simulated", "run_id": "sim", **options}
    return begin(Profile.parse(profile), nodes, scenario_s, None, seed, values, str(folder), END_MS)


def simulated_run(folder: Path, *args: Any, **options: Any) -> OpenRun:
    simulation = new_simulation(folder, *args, **options)
    simulation.play()
    simulation.end("finished")
    return OpenRun(RunReader("sim", str(folder)), clock=lambda: END_MS + 60_000)


def records(folder: Path) -> list[tuple[Any, ...]]:
    return [
        (record.writer, record.type, record.time_ms, record.value, record.packed)
        for record in read_run(run_dir("sim", str(folder)))
    ]


@pytest.mark.parametrize("kind", KINDS)
def test_keys_and_values_match_the_metric_definitions(tmp_path: Path, kind: str) -> None:
    run = simulated_run(tmp_path, kind)
    assert (run.state, run.problems) == ("finished", [])
    columns = run.metrics()
    assert len(columns.series) > 60
    for series in columns.series:
        match = DEFINITIONS.find(series.key)
        assert match is not None, series.key
        assert match.key == series.key, "not the canonical spelling"
        values = np.asarray(series.values)
        assert np.isfinite(values).all(), series.key
        assert (values >= 0).all(), series.key
        if match.metric.unit == "%":
            assert values.max() <= 100.0 + 1e-9, series.key
        if match.metric.kind == "counter":
            assert values[0] == 0.0, f"{series.key} does not start at 0"
            assert (np.diff(values) >= 0).all(), series.key


def test_run_is_marked_as_simulated(tmp_path: Path) -> None:
    run = simulated_run(tmp_path)
    facts = run.facts
    assert facts.tags == ["simulated"]
    assert facts.name == "simulated h100x2"
    assert "Nothing is measured" in facts.notes
    assert facts.config["simulated"] is True
    assert "nothing is measured" in facts.machines["sim-0"]["simulated"]
    assert facts.events[0].name == "simulated"
    assert next(iter(run.console())).text.startswith("simulated by ")
    assert facts.machines["sim-0"]["gpu_nvidia"][1]["name"] == "NVIDIA H100 80GB HBM3"


def test_records_depend_only_on_the_seed(tmp_path: Path) -> None:
    for name, seed in (("a", 5), ("b", 5), ("c", 6)):
        simulated_run(tmp_path / name, seed=seed, scenario_s=120.0)
    assert records(tmp_path / "a") == records(tmp_path / "b") != records(tmp_path / "c")


def test_lost_host_and_rank_out_of_memory(tmp_path: Path) -> None:
    run = simulated_run(tmp_path, nodes=3, scenario_s=900.0, seed=4)
    assert {host.name: host.ending.state for host in run.facts.hosts} == {
        "sim-0": "finished", "sim-1": "finished", "sim-2": "lost",
    }  # fmt: skip
    killed = [rank for rank in run.facts.ranks if rank.out_of_memory]
    assert [rank.signal for rank in killed] == [9]
    kills = run.metrics("proc.memory.oomKills", host=killed[0].host)["proc.memory.oomKills"]
    assert kills.values[-1] == 1.0
    restarts = [event for event in run.events if event.data.get("title") == "restarted"]
    assert len(restarts) == 2
    assert "with 4 ranks" in restarts[1].text
    assert {rank.world_size for rank in run.facts.ranks if rank.rank is not None} == {4, 6}


def test_hot_gpu_is_throttled(tmp_path: Path) -> None:
    simulation = new_simulation(tmp_path, "h100x4", scenario_s=1800.0)
    simulation.play()
    simulation.end("finished")
    heat = simulation.scenario.incident("heat")
    assert heat is not None
    run = OpenRun(RunReader("sim", str(tmp_path)))
    held_s = {
        gpu: run.metrics(f"gpu.{gpu}.throttle.swThermalSeconds")[
            f"gpu.{gpu}.throttle.swThermalSeconds"
        ].values[-1]
        for gpu in range(4)
    }
    assert [gpu for gpu, seconds in held_s.items() if seconds > 0] == [heat.device]
    assert max(run.metrics("gpu.*.temp")[f"gpu.{heat.device}.temp"].values) >= 85.0


def test_loss_falls_and_training_resumes_from_the_checkpoint_once(tmp_path: Path) -> None:
    rows = [row for row in simulated_run(tmp_path, scenario_s=1800.0).history() if "train/loss" in row.data]
    assert rows[0].data["train/loss"] > 3.0 > rows[-1].data["train/loss"]
    steps = [row.step or 0 for row in rows]
    assert sum(later <= earlier for earlier, later in pairwise(steps)) == 1


def test_full_files_are_sealed_and_remain_readable(tmp_path: Path) -> None:
    run = simulated_run(tmp_path, "h100x8", scenario_s=2400.0)
    files = sorted(Path(run_dir("sim", str(tmp_path))).glob("monitor.*.rvj"))
    assert len(files) == 2
    assert files[0].stat().st_size < 3_000_000 < 4 * 1024 * 1024
    assert len(run.metrics("cpu")["cpu"].values) == 2400
    assert run.problems == []


def test_stopped_by_the_user(tmp_path: Path) -> None:
    simulation = new_simulation(tmp_path)
    assert not simulation.play(lambda tick: tick < 300)
    totals = simulation.end("stopped")
    run = OpenRun(RunReader("sim", str(tmp_path)))
    assert (run.state, run.facts.signal, totals.samples, totals.lost) == ("stopped", 2, 300, 0)


def test_existing_run_is_not_overwritten(tmp_path: Path) -> None:
    simulated_run(tmp_path, scenario_s=60.0)
    before = records(tmp_path)
    with pytest.raises(ValueError, match="already exists"):
        new_simulation(tmp_path)
    assert records(tmp_path) == before


def test_a_simulation_that_is_written_at_once_counts_as_running_until_its_end(tmp_path: Path) -> None:
    simulation = new_simulation(tmp_path)
    now_ms = END_MS
    go_on = at_once(simulation, SignalFlag(), lambda: now_ms)
    states = []

    def wait(tick: int) -> bool:
        nonlocal now_ms
        now_ms += 1_000
        states.append(OpenRun(RunReader("sim", str(tmp_path)), clock=lambda: now_ms).state)
        return go_on(tick) and tick < 60

    assert not simulation.play(wait)
    simulation.end("stopped")
    assert set(states[1:]) == {"running"}
    assert OpenRun(RunReader("sim", str(tmp_path)), clock=lambda: now_ms).state == "stopped"


def test_lists_show_it_as_running_however_much_is_written(tmp_path: Path) -> None:
    simulation = new_simulation(tmp_path)
    runs, now_ms, states = RunList(str(tmp_path)), END_MS, set()
    go_on = at_once(simulation, SignalFlag(), lambda: now_ms)

    def wait(tick: int) -> bool:
        nonlocal now_ms
        now_ms += 10
        if tick % 25 == 24:
            run = runs.run("sim", now_ms + SILENT_MS // 2)
            assert run is not None
            states.add(run.state)
        return go_on(tick) and tick < 3000

    simulation.play(wait)
    simulation.end("stopped")
    assert states == {"running"}
