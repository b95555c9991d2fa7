"""The whole collector: neuron-monitor, the driver's files and neuron-ls, together and each without the
others.
"""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Any

import pytest

from runvitals.model.metrics import DEFINITIONS
from runvitals.monitoring.collectors.base import Tick
from runvitals.monitoring.collectors.trainium import sysfs
from runvitals.monitoring.collectors.trainium.collector import Trainium
from tests.monitoring.collectors.trainium import machines, reports
from tests.monitoring.collectors.trainium.conftest import Open
from tests.monitoring.collectors.trainium.machines import FOLDER, device, install, install_monitor, say, until
from tests.monitoring.collectors.trees import plant

ME = os.getpid()


def fact(collector: Trainium) -> dict[str, Any]:
    facts = collector.facts["trainium"]
    assert isinstance(facts, dict)
    return facts


def test_a_run_on_two_of_four_cores(tmp_path: Path, programs: Path, machine: Open) -> None:
    lines = install_monitor(programs)
    collector = machine(pids=(ME,))
    assert collector.pending
    say(lines, reports.report(reports.process(ME, str(ME), {0: 80.0, 1: 60.0}, completed=7)))
    tick = until(collector, 1.0, lambda tick: bool(tick.gauges))
    assert tick.gauges["trn.0.neuroncore_utilization"] == 80.0
    assert tick.gauges["trn.3.neuroncore_utilization"] == 0
    assert tick.gauges["trn.process.1.neuroncore_utilization"] == 60.0
    assert tick.gauges["trn.host_total_memory_usage.tensors"] == 99
    assert not collector.pending
    assert collector.absent == {}
    assert fact(collector) == {
        "vendor": "AWS",
        "name": "trainium",
        "neuron_device_count": 2,
        "neuroncore_per_device_count": 2,
        "memory_bytes": 34359738368,
        "logical_neuroncore_config": 1,
        "instance_type": "trn1.2xlarge",
        "processes": [{"pid": ME, "tag": str(ME), "run": True, "cores": [0, 1]}],
    }
    say(lines, *[reports.report(reports.process(ME, str(ME), {0: 5.0}, completed=7))] * 2)
    tick = until(collector, 2.0, lambda tick: tick.counters.get("trn.execution_status.completed") == 21.0)
    assert tick.gauges["trn.0.neuroncore_utilization"] == 5.0


def test_a_reading_is_kept_until_the_next_is_overdue(programs: Path, machine: Open) -> None:
    lines = install_monitor(programs)
    collector = machine()
    say(lines, reports.report(reports.process(7, "7", {0: 80.0})))
    until(collector, 1.0, lambda tick: bool(tick.gauges))
    tick = Tick(3.0)
    collector.sample(tick)
    assert tick.gauges["trn.0.neuroncore_utilization"] == 80.0
    late = Tick(4.0)
    collector.sample(late)
    assert late.gauges == {}
    assert late.counters["trn.execution_status.completed"] == 10.0


def test_processes_of_a_container_are_identified_by_tag(
    programs: Path, machine: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = install_monitor(programs)
    collector = machine(pids=(ME,))
    say(lines, reports.report(reports.process(4_000_000, str(ME), {1: 42.0})))
    tick = until(collector, 1.0, lambda tick: bool(tick.gauges))
    assert tick.gauges["trn.process.1.neuroncore_utilization"] == 42.0


def test_a_container_with_unknown_processes(programs: Path, machine: Open) -> None:
    lines = install_monitor(programs)
    collector = machine(pids=(ME,))
    say(lines, reports.report(reports.process(4_000_000, "my tag", {1: 42.0})))
    tick = until(collector, 1.0, lambda tick: bool(tick.gauges))
    assert not any(key.startswith("trn.process.") for key in tick.gauges)
    assert "set NEURON_PROCESS_TAG, or start the container with --pid=host" in collector.absent["trn.process"]


def test_the_tag_in_the_runs_environment(
    programs: Path, machine: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NEURON_PROCESS_TAG", "my tag")
    lines = install_monitor(programs)
    collector = machine(pids=(ME,))
    say(lines, reports.report(reports.process(4_000_000, "my tag", {1: 42.0})))
    tick = until(collector, 1.0, lambda tick: bool(tick.gauges))
    assert tick.gauges["trn.process.1.neuroncore_utilization"] == 42.0


def test_the_users_configuration(programs: Path, machine: Open) -> None:
    lines = install_monitor(programs)
    collector = machine(neuron_monitor_config="/etc/mine.json")
    say(lines, reports.report())
    until(collector, 1.0, lambda tick: not collector.pending)
    assert (programs / "arguments").read_text() == "-c /etc/mine.json\n"


def test_neuron_monitor_exits_and_is_restarted(programs: Path, machine: Open) -> None:
    install(programs, "neuron-monitor", "echo 'cannot open /dev/neuron0' >&2; exit 1")
    collector = machine()
    until(collector, 1.0, lambda tick: "neuron-monitor" in collector.absent)
    assert collector.absent["neuron-monitor"].endswith("exited with 1: cannot open /dev/neuron0")
    assert not collector.pending
    lines = install_monitor(programs)
    say(lines, reports.report(reports.process(7, "7", {0: 80.0})))
    until(collector, 9.0, lambda tick: "trn.0.neuroncore_utilization" in tick.gauges)
    assert "neuron-monitor" not in collector.absent


def test_a_hanging_neuron_monitor_does_not_delay_the_tick(
    tmp_path: Path, programs: Path, machine: Open
) -> None:
    install(programs, "neuron-monitor", "exec sleep 60")
    install(programs, "neuron-ls", "exec sleep 60")
    plant(tmp_path, device(0))
    collector = machine()
    tick = Tick(1.0)
    collector.sample(tick)
    assert collector.pending
    assert tick.gauges["trn.device.0.power_utilization"] == 1.5
    collector.close()


def test_invalid_reports(programs: Path, machine: Open) -> None:
    lines = install_monitor(programs)
    collector = machine()
    say(lines, b'{"neuron_runtime_data": [', b"usage: neuron-monitor", b"\xff\xfe", reports.report())
    tick = until(collector, 1.0, lambda tick: not collector.pending)
    assert tick.counters["trn.malformed_reports"] == 3.0
    assert collector.absent["reports"].startswith("2 or more lines of neuron-monitor were none: no JSON")


def test_groups_that_neuron_monitor_could_not_read(programs: Path, machine: Open) -> None:
    lines = install_monitor(programs)
    entry = reports.process(4_000_000, "7", {0: 1.0})
    entry["report"]["neuron_runtime_vcpu_usage"] = {
        "vcpu_usage": {"user": 0, "system": 0},
        "error": "open /proc/4000000/stat: no such file or directory",
    }
    collector = machine()
    say(lines, reports.report(entry, system={"vcpu_usage": {"error": "no"}}))
    tick = until(collector, 1.0, lambda tick: bool(tick.gauges))
    assert not any("vcpu" in key for key in tick.gauges)
    assert "--pid=host" in collector.absent["neuron_runtime_vcpu_usage"]
    assert collector.absent["vcpu_usage"] == "no"


def test_groups_of_different_periods(programs: Path, machine: Open) -> None:
    """A report between two ticks may be the only one with a group."""
    lines = install_monitor(programs)
    memory = {"period": 5.0, "memory_total_bytes": 64, "memory_used_bytes": 16, "error": ""}
    brief = reports.process(7, "7", {0: 5.0})
    del brief["report"]["memory_used"]
    collector = machine()
    say(lines, reports.report(reports.process(7, "7", {0: 80.0}), system={"memory_info": memory}))
    say(lines, reports.report(brief, system={}))
    tick = until(collector, 1.0, lambda tick: tick.gauges.get("trn.0.neuroncore_utilization") == 5.0)
    assert tick.gauges["trn.host_total_memory_usage"] == 1000
    assert tick.gauges["trn.memory_info.memory_used_bytes"] == 16


def test_a_machine_without_a_driver(programs: Path, machine: Open) -> None:
    lines = install_monitor(programs)
    collector = machine()
    say(lines, b'{"neuron_runtime_data":[],"neuron_hardware_info":{"neuron_device_count":0,"error":""}}')
    until(collector, 1.0, lambda tick: not collector.pending)
    assert collector.absent["devices"] == "neuron-monitor sees no device: load the driver (modprobe neuron)"


def test_the_first_version(programs: Path, machine: Open) -> None:
    lines = install_monitor(programs)
    collector = machine()
    cores = {"3": {"neuroncore_utilization": 4.5}}
    entry = {"neuron_runtime_index": 0, "report": {"nc_counters": {"neuroncores_in_use": cores}}}
    say(lines, json.dumps({"neuron_runtime_data": [entry]}).encode())
    tick = until(collector, 1.0, lambda tick: bool(tick.gauges))
    assert tick.gauges == {"trn.3.neuroncore_utilization": 4.5}


def test_logical_cores(programs: Path, machine: Open) -> None:
    lines = install_monitor(programs)
    entry = reports.process(7, "7", {1: 42.0})
    core = entry["report"]["neuroncore_counters"]["neuroncores_in_use"]["1"]
    core["v3d"] = {"nc_v3.2": {"neuroncore_utilization": 21.0}, "nc_v3.3": {"neuroncore_utilization": 63.0}}
    collector = machine()
    say(lines, reports.report(entry))
    tick = until(collector, 1.0, lambda tick: bool(tick.gauges))
    assert tick.gauges["trn.1.neuroncore_utilization"] == 42.0
    assert tick.gauges["trn.physical.3.neuroncore_utilization"] == 63.0


# -- the driver


def test_the_driver_alone(tmp_path: Path, programs: Path, machine: Open) -> None:
    """Without AWS's programs, memory, errors and power are still read."""
    plant(tmp_path, device(10, corrected=4) | device(2) | {"sys/module/neuron/version": "2.26.5.0\n"})
    collector = machine()
    tick = Tick(1.0)
    collector.sample(tick)
    assert tick.gauges["trn.4.neuroncore_memory_usage.tensors"] == 1000
    assert tick.gauges["trn.21.neuroncore_memory_usage.tensors"] == 1001
    assert tick.gauges["trn.neuron_device_total_memory_usage"] == 2 * (1000 + 1001 + 100)
    assert tick.gauges["trn.host_total_memory_usage.tensors"] == 1400
    assert tick.gauges["trn.host_total_memory_usage"] == 1400
    assert tick.gauges["trn.device.10.power_utilization"] == 1.5
    assert tick.counters["trn.device.10.mem_ecc_corrected"] == 4
    assert tick.counters["trn.device.2.sram_ecc_uncorrected"] == 2
    assert "trn.device.2.sram_ecc_corrected" not in tick.counters
    assert "not on PATH" in collector.absent["neuron-monitor"]
    collector.sample(Tick(2.0))
    assert fact(collector) == {
        "vendor": "AWS",
        "name": "Trainium1",
        "neuron_device_count": 2,
        "neuroncore_per_device_count": 2,
        "instance_type": "Trn1",
        "driver": "2.26.5.0",
        "neuron_devices": [
            {
                "index": index,
                "serial": f"0f0{index}",
                "name": "Trainium1",
                "architecture": "NCv2",
                "connected_to": [1, 2],
                "cores": 2,
                "used": None,
            }
            for index in (2, 10)
        ],
    }


@pytest.mark.parametrize(
    "line", ["POWER_STATUS_NO_DATA,0,0.00,0.00,0.00", "POWER_STATUS_VALID,1,N/A,N/A,N/A", "", "\udcff"]
)
def test_missing_power(tmp_path: Path, programs: Path, machine: Open, line: str) -> None:
    tree = device(0)
    path = tmp_path / f"{machines.FOLDER}/neuron0/stats/power/utilization"
    plant(tmp_path, tree)
    path.write_bytes(line.encode("utf-8", "surrogateescape"))
    tick = Tick(1.0)
    machine().sample(tick)
    assert "trn.device.0.power_utilization" not in tick.gauges
    assert "trn.device.0.mem_ecc_corrected" in tick.counters


def test_memory_errors_of_the_driver_are_preferred(tmp_path: Path, programs: Path, machine: Open) -> None:
    plant(tmp_path, device(0, corrected=4))
    lines = install_monitor(programs)
    collector = machine()
    say(lines, reports.report(system={"neuron_hw_counters": reports.ecc([9])}))
    tick = until(collector, 1.0, lambda tick: not collector.pending)
    assert tick.counters.get("trn.device.0.mem_ecc_corrected", 4) == 4
    tick = Tick(60.0)
    collector.sample(tick)
    assert tick.counters["trn.device.0.mem_ecc_corrected"] == 4
    assert "trn.device.0.sram_ecc_corrected" not in tick.counters


def test_memory_errors_of_neuron_monitor_without_a_driver(programs: Path, machine: Open) -> None:
    lines = install_monitor(programs)
    collector = machine()
    say(lines, *[reports.report(system={"neuron_hw_counters": reports.ecc([9, count])}) for count in (5, 8)])
    tick = until(collector, 1.0, lambda tick: tick.counters.get("trn.device.1.mem_ecc_corrected") == 3.0)
    assert tick.counters["trn.device.0.mem_ecc_corrected"] == 0.0


def test_memory_of_neuron_monitor_is_preferred(tmp_path: Path, programs: Path, machine: Open) -> None:
    plant(tmp_path, device(0))
    lines = install_monitor(programs)
    collector = machine()
    say(lines, reports.report(reports.process(7, "7", {0: 1.0})))
    until(collector, 1.0, lambda tick: not collector.pending)
    say(lines, reports.report(reports.process(7, "7", {0: 2.0})))
    until(collector, 60.0, lambda tick: tick.gauges.get("trn.0.neuroncore_utilization") == 2.0)
    tick = Tick(61.0)
    collector.sample(tick)
    assert tick.gauges["trn.0.neuroncore_memory_usage.tensors"] == 70000


def test_memory_of_the_driver_while_neuron_monitor_fails(
    tmp_path: Path, programs: Path, machine: Open
) -> None:
    plant(tmp_path, device(0))
    install(programs, "neuron-monitor", "exit 1")
    collector = machine()
    first = Tick(1.0)
    collector.sample(first)
    assert "trn.0.neuroncore_memory_usage.tensors" not in first.gauges  # neuron-monitor may still report it
    until(collector, 2.0, lambda tick: "neuron-monitor" in collector.absent)
    tick = Tick(60.0)
    collector.sample(tick)
    assert tick.gauges["trn.0.neuroncore_memory_usage.tensors"] == 1000


def test_a_device_is_lost_and_comes_back(tmp_path: Path, programs: Path, machine: Open) -> None:
    plant(tmp_path, device(0) | device(1))
    collector = machine()
    collector.sample(Tick(1.0))
    path = tmp_path / machines.FOLDER
    (path / "neuron1").rename(tmp_path / "unplugged")
    tick = Tick(10.0)
    collector.sample(tick)
    assert [(event["name"], event["device"]) for event in tick.events] == [("device_lost", "neuron1")]
    assert "trn.device.0.power_utilization" in tick.gauges
    assert "trn.device.1.power_utilization" not in tick.gauges
    collector.sample(Tick(11.0))
    assert collector.absent["devices"] == "gone from the driver: 1"
    (tmp_path / "unplugged").rename(path / "neuron1")
    tick = Tick(20.0)
    collector.sample(tick)
    assert [(event["name"], event["level"]) for event in tick.events] == [("device_back", "info")]
    assert "trn.device.1.power_utilization" in tick.gauges


def test_a_hanging_driver_does_not_affect_neuron_monitor(
    tmp_path: Path, programs: Path, machine: Open
) -> None:
    path = tmp_path / machines.FOLDER / "neuron0/core_count"
    path.parent.mkdir(parents=True)
    os.mkfifo(path)  # opening a FIFO blocks until there is a writer
    lines = install_monitor(programs)
    collector = machine()
    assert collector._reader is not None
    collector._reader._patience_s = 0.0
    say(lines, reports.report(reports.process(7, "7", {0: 80.0})))
    tick = until(collector, 1.0, lambda tick: bool(tick.gauges))
    say(lines, reports.report(reports.process(7, "7", {0: 70.0})))
    tick = until(collector, 60.0, lambda tick: tick.gauges.get("trn.0.neuroncore_utilization") == 70.0)
    assert collector.absent["driver"] == "no answer for 59 s"
    assert tick.gauges["trn.0.neuroncore_utilization"] == 70.0
    path.write_text("2\n")
    until(collector, 61.0, lambda tick: "driver" not in collector.absent)


def test_a_failing_device_does_not_affect_the_others(tmp_path: Path, programs: Path, machine: Open) -> None:
    broken = {path: "garbage" for path in device(1) if path.endswith(("total", "utilization", "core_count"))}
    plant(tmp_path, device(0) | device(1) | broken)
    collector = machine()
    tick = Tick(1.0)
    collector.sample(tick)
    assert tick.gauges["trn.device.0.power_utilization"] == 1.5
    assert not any(key.startswith("trn.device.1.") for key in (*tick.gauges, *tick.counters))


# -- neuron-ls


def listed(*indices: int) -> str:
    devices = [
        {
            "neuron_device": index,
            "bdf": f"a{index}:00.0",
            "nc_count": 2,
            "memory_size": 34359738368,
            "neuroncore_ids": [2 * index, 2 * index + 1],
            "neuron_processes": [],
        }
        for index in indices
    ]
    return json.dumps(devices)


@pytest.mark.parametrize("flag", ["-j", "--output-format json"])
def test_facts_from_neuron_ls(programs: Path, machine: Open, flag: str) -> None:
    """Since release 2.34 there is no -j."""
    refuse = 'echo "unknown flag"; exit 1'
    install(programs, "neuron-ls", f"[ \"$*\" = '{flag}' ] || {{ {refuse}; }}\necho '{listed(1, 0)}'")
    lines = install_monitor(programs)
    collector = machine(pids=(ME,))
    say(lines, reports.report(reports.process(ME, str(ME), {2: 80.0})))
    until(collector, 1.0, lambda tick: not collector.pending)
    until(collector, 2.0, lambda tick: "neuron_devices" in fact(collector))
    assert [(each["index"], each["pci"], each["used"]) for each in fact(collector)["neuron_devices"]] == [
        (0, "0000:a0:00.0", False),
        (1, "0000:a1:00.0", True),
    ]


def test_a_failing_neuron_ls(tmp_path: Path, programs: Path, machine: Open) -> None:
    install(programs, "neuron-ls", "echo 'level=fatal msg=none' >&2; exit 1")
    plant(tmp_path, device(0))
    collector = machine()
    for second in range(4):
        until(collector, 100.0 * second, lambda tick: True)
        time.sleep(0.01)
    assert [each["index"] for each in fact(collector)["neuron_devices"]] == [0]


# -- metric definitions


def test_every_key_is_a_declared_metric(tmp_path: Path, programs: Path, machine: Open) -> None:
    plant(tmp_path, device(0))
    ticks = [Tick(1.0)]
    machine().sample(ticks[0])  # the driver's memory
    lines = install_monitor(programs)
    collector = machine(pids=(ME,))
    entry = reports.process(ME, str(ME), {0: 80.0})
    entry["report"]["execution_stats"]["latency_stats"]["device_latency"] = reports.PERCENTILES
    shares = {"user": 30.0, "idle": 70.0}
    system = {
        "vcpu_usage": {"average_usage": shares, "context_switch_count": 5, "error": ""},
        "memory_info": {
            "memory_total_bytes": 4,
            "memory_used_bytes": 3,
            "swap_total_bytes": 2,
            "swap_used_bytes": 1,
        },
    }
    say(lines, reports.report(entry, system=system))
    ticks.append(until(collector, 2.0, lambda tick: "trn.0.neuroncore_utilization" in tick.gauges))
    keys = {("gauge", key) for tick in ticks for key in tick.gauges}
    keys |= {("counter", key) for tick in ticks for key in tick.counters}
    assert len(keys) > 50
    unknown = {
        key
        for kind, key in keys
        if (match := DEFINITIONS.find(key)) is None or match.metric.kind != kind or match.key != key
    }
    assert unknown == set()


def test_a_driver_that_does_not_break_memory_down_has_the_totals(tmp_path: Path) -> None:
    root = f"{FOLDER}/neuron0"
    tree = {f"{root}/core_count": "2\n", f"{root}/stats/memory_usage/host_mem/total": "5\n"}
    for core in range(2):
        memory = f"{root}/neuron_core{core}/stats/memory_usage/device_mem"
        tree |= {f"{memory}/total": "300\n", f"{memory}/present": "-100\n", f"{memory}/peak": "900\n"}
    plant(tmp_path, tree)
    gauges: dict[str, float] = {}
    sysfs.write(gauges, {}, sysfs.find_devices(f"{tmp_path}/{FOLDER}"), memory=True)
    assert gauges == {"trn.neuron_device_total_memory_usage": 600.0, "trn.host_total_memory_usage": 5.0}
