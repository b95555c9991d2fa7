"""Processes of a report combined: the largest utilization of a core, the sum of its memory."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest

from runvitals.monitoring.collectors.trainium import readings
from runvitals.monitoring.collectors.trainium.counters import RunningTotals
from runvitals.monitoring.collectors.trainium.report import GROUPS, parse
from runvitals.monitoring.collectors.trainium.run_processes import RunProcessFilter
from tests.monitoring.collectors.trainium import reports

Report = dict[str, Any]


def gauges(*processes: Report) -> dict[str, float]:
    values: dict[str, float] = {}
    readings.write(values, parse(reports.report(*processes), models=False)["processes"])
    return values


def test_two_processes_on_two_devices() -> None:
    values = gauges(reports.process(10, "10", {0: 80.0}), reports.process(20, "20", {2: 35.5}))
    assert [values[f"trn.{core}.neuroncore_utilization"] for core in range(4)] == [80.0, 0, 35.5, 0]
    assert values["trn.0.flops"] == 80e12
    assert values["trn.neuron_device_total_memory_usage"] == 2 * 75432
    assert values["trn.host_total_memory_usage"] == 2000
    assert values["trn.host_total_memory_usage.dma_buffers"] == 600
    assert values["trn.2.neuroncore_memory_usage.tensors"] == 70000
    assert values["trn.3.neuroncore_memory_usage.tensors"] == 0
    assert values["trn.runtime_vcpu_usage.user"] == 41.0
    assert values["trn.total_latency.p50"] == 0.004
    assert not any("device_latency" in key for key in values)  # null: not reported


def test_two_processes_on_one_core() -> None:
    values = gauges(reports.process(10, "10", {0: 80.0}), reports.process(20, "20", {0: 15.0}))
    assert values["trn.0.neuroncore_utilization"] == 80.0
    assert values["trn.0.neuroncore_memory_usage.tensors"] == 140000
    assert values["trn.0.flops"] == 95e12


def test_a_code_for_no_value_stays_recognizable_in_sums() -> None:
    entries = reports.process(10, "10", {0: 80.0}), reports.process(20, "20", {0: 15.0})
    first, second = deepcopy(entries)
    for entry in (first, second):
        breakdown = entry["report"]["memory_used"]["neuron_runtime_used_bytes"]["usage_breakdown"]
        breakdown["neuroncore_memory_usage"]["0"]["tensors"] = 4294967295
        values = gauges(first, second)
        assert values["trn.0.neuroncore_memory_usage.tensors"] == 4294967295.0


def test_two_processes_on_one_logical_core() -> None:
    entries = [reports.process(pid, str(pid), {0: percent}) for pid, percent in ((10, 60.0), (20, 15.0))]
    for entry, physical in zip(entries, ({"nc_v3.0": 90.0}, {"nc_v3.0": 5.0, "nc_v3.1": 25.0}), strict=True):
        core = entry["report"]["neuroncore_counters"]["neuroncores_in_use"]["0"]
        core["v3d"] = {name: {"neuroncore_utilization": percent} for name, percent in physical.items()}
    for order in (entries, entries[::-1]):
        values = gauges(*order)
        assert [values[f"trn.physical.{core}.neuroncore_utilization"] for core in (0, 1)] == [90.0, 25.0]


def test_the_latency_of_the_slowest_process_is_used() -> None:
    slow = reports.process(20, "20", {1: 1.0}, latency={"p50": 2.5, "p99": 0.001})
    values = gauges(reports.process(10, "10", {0: 1.0}), slow)
    assert (values["trn.total_latency.p50"], values["trn.total_latency.p99"]) == (2.5, 0.006)


def test_no_processes() -> None:
    assert gauges() == {}


def test_a_group_is_kept_until_its_process_ends_or_it_fails() -> None:
    readings_kept = readings.HeldReadings(GROUPS)
    whole = parse(reports.report(reports.process(10, "10", {0: 80.0})))["processes"]
    assert readings_kept.take(whole, 1.0)[0]["memory"]["host"] == 1000
    alone = [{"pid": 10, "tag": "10", "cores": {0: {"utilization": 5.0}}, "periods": {"cores": 1.0}}]
    (later,) = readings_kept.take(alone, 2.0)
    assert (later["cores"][0]["utilization"], later["memory"]["host"]) == (5.0, 1000)
    (failed,) = readings_kept.take([{**alone[0], "errors": {"memory_used": "lost"}}], 3.0)
    assert "memory" not in failed
    assert "memory" not in readings_kept.take(alone, 4.0)[0]
    assert readings_kept.take([], 5.0) == []
    assert readings_kept.take([{"pid": 10, "tag": "10"}], 6.0) == [{"pid": 10, "tag": "10"}]


def test_a_group_is_kept_until_it_is_overdue() -> None:
    """After two and a half periods. The first period of a process is only a moment long."""
    for period_s, holds in ((5.0, True), (0.06, False)):
        readings_kept = readings.HeldReadings(GROUPS)
        entry = {"pid": 10, "memory": {"host": 7}, "periods": {"memory": period_s}}
        readings_kept.take([entry], 1.0)
        (later,) = readings_kept.take([{"pid": 10}], 13.0)
        assert ("memory" in later) is holds
        assert readings_kept.take([{"pid": 10}], 17.0) == [{"pid": 10}]


def test_a_group_without_values_replaces_earlier_ones() -> None:
    readings_kept = readings.HeldReadings(GROUPS)
    readings_kept.take([{"pid": 10, "cores": {0: {}}, "periods": {"cores": 5.0}}], 1.0)
    assert readings_kept.take([{"pid": 10, "periods": {"cores": 5.0}}], 2.0) == [{"pid": 10}]


def test_counts_per_period_are_added_up() -> None:
    totals = RunningTotals()
    for completed, generic in ((260, 23654), (260, 23692), (0, 23692)):
        entry = reports.process(7, "7", {0: 1.0}, completed=completed, errors={"generic": generic})
        readings.count(totals, parse(reports.report(entry)), first=completed == 260 and generic == 23654)
    counters: dict[str, float] = {}
    for _ in range(2):
        totals.write(counters)
    assert counters["trn.execution_status.completed"] == 520.0
    assert counters["trn.execution_errors.generic"] == 38.0
    assert counters["trn.execution_errors.model"] == 0.0


def test_errors_of_a_process_started_later_count_from_0() -> None:
    totals = RunningTotals()
    readings.count(totals, parse(reports.report()), first=True)
    readings.count(
        totals, parse(reports.report(reports.process(7, "7", {}, errors={"numerical": 3}))), first=False
    )
    counters: dict[str, float] = {}
    for _ in range(2):
        totals.write(counters)
    assert counters["trn.execution_errors.numerical"] == 3.0


def entry(pid: int | None, tag: str) -> Report:
    process: Report = {"tag": tag, "cores": {0: {"utilization": 3.0}, 1: {"utilization": 0}}}
    return process if pid is None else {"pid": pid, **process}


@pytest.mark.parametrize(
    ("process", "is_own"),
    [
        (entry(1000, "1000"), True),  # the host's PIDs are visible
        (entry(999, "999"), False),
        (entry(784315, "11"), True),  # in a container: its tag is the PID in our namespace
        (entry(784316, "12"), False),
        (entry(784317, "job-5"), True),  # NEURON_PROCESS_TAG
        (entry(784318, "job-6"), False),
        (entry(1, "11"), False),  # process 1 is visible, so PIDs are ours, and tag 11 is another namespace's
        (entry(None, "11"), False),  # from neuron-rtd, without a process id
    ],
    ids=lambda value: f"{value.get('pid')}-{value['tag']}" if isinstance(value, dict) else None,
)
def test_processes_of_the_run(process: Report, is_own: bool, tmp_path: Any) -> None:
    (tmp_path / "1").mkdir()
    own = RunProcessFilter("job-5", proc=str(tmp_path))
    assert own.choose([process], run={1000, 11}) == ([process] if is_own else [])
    assert own.processes[0]["run"] is is_own
    assert own.unknown == (0 if is_own else 1)


def test_several_ranks_on_one_machine() -> None:
    """torchrun: all ranks belong to the run, the other job does not."""
    ranks = [reports.process(100 + core, str(100 + core), {core: 10.0 * (core + 1)}) for core in range(3)]
    processes = parse(reports.report(*ranks, reports.process(500, "500", {3: 99.0})))["processes"]
    own = RunProcessFilter("")
    values: dict[str, float] = {}
    readings.write_run(values, own.choose(processes, run={100, 101, 102, 103}))
    assert [values[f"trn.process.{core}.neuroncore_utilization"] for core in range(3)] == [10.0, 20.0, 30.0]
    assert values["trn.process.1.neuroncore_memory_usage"] == 75432
    assert "trn.process.3.neuroncore_utilization" not in values
    assert values["trn.process.neuron_device_total_memory_usage"] == 3 * 75432
    assert values["trn.process.host_total_memory_usage"] == 3000
    assert own.processes[1] == {"pid": 101, "tag": "101", "run": True, "cores": [1]}
    assert own.cores == {0, 1, 2}


def test_an_idle_process_keeps_its_cores() -> None:
    own = RunProcessFilter("")
    own.choose([entry(5, "5")], run={5})
    own.choose([{"pid": 5, "tag": "5"}], run={5})
    assert own.cores == {0}
    own.choose([], run={5})
    assert own.cores == set()
