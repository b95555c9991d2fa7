"""Impossible readings are left out, and power far above the limit is marked."""

from __future__ import annotations

import pytest

from runvitals.monitoring.collectors.base import Tick
from runvitals.monitoring.monitor.baselines import Baselines
from runvitals.monitoring.monitor.plausibility import Plausibility


def check(gauges: dict[str, float], counters: dict[str, float] | None = None) -> tuple[Tick, dict[str, str]]:
    """The tick after the check, and key -> reason of what was left out."""
    tick = Tick(1.0)
    tick.gauges, tick.counters = dict(gauges), dict(counters or {})
    faults = Plausibility(Baselines()).check(tick)
    return tick, {fault.key: fault.reason for fault in faults}


PLAUSIBLE = {
    "cpu": 179_200.0,  # children may use more CPUs than their parent: all of a large host
    "cpu.ofLimit": 179_200.0,
    "cpu.mean": 100.0,
    "proc.memory.percent": 340.0,  # of shared pages
    "memory.usedMB": 65535.0,
    "system.load1": 3000.0,
    "cpu.avg_temp": -12.0,
    "gpu.0.gpu": 0.0,
    "gpu.0.temp": 41.0,
    "gpu.0.fanSpeed": 104.0,
    "gpu.0.powerWatts": 390.0,
    "gpu.0.powerPercent": 111.4,
    "gpu.0.memoryAllocatedBytes": 8.5e10,
    "gpu.0.memoryTotal": 65535.0,  # MiB
    "gpu.0.memoryUsed": 6553.5,
    "gpu.process.0.gpu": 100.0,
    "tpu.hloQueueSize.core0": 7.0,
    "openmetrics.app.free.0": -4294967295.0,
    "fridge.temp": 4294967295.0,
    "gpu.0.newReading": 1e12,
}


def test_what_is_possible_stays() -> None:
    tick, reasons = check(PLAUSIBLE, {"gpu.0.pcieReplays": 65535.0, "network.recv": 4294967295.0})
    assert reasons == {}
    assert tick.gauges == PLAUSIBLE
    assert set(tick.counters) == {"gpu.0.pcieReplays", "network.recv"}


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("gpu.1.gpu", 4294967295.0),
        ("gpu.1.gpu", 184213.0),
        ("gpu.1.gpu", -1.0),
        ("gpu.1.smActive", 140737488355328.0 * 100),
        ("gpu.1.mig.7.0.smActive", 429496729500.0),
        ("gpu.0.fanSpeed", 65535.0),
        ("gpu.0.fanSpeed", 255.0),
        ("gpu.0.fanRpm", 65535.0),
        ("gpu.0.temp", 4294967295.0),
        ("gpu.0.temp", 65.535),  # 65535 m°C
        ("gpu.0.junctionTemp", 255.0),
        ("gpu.0.temp", -256.0),
        ("gpu.0.powerWatts", 4294967.295),  # mW
        ("gpu.0.powerWatts", 4294.967295),  # µW
        ("gpu.0.smClock", 4294967295.0),
        ("gpu.0.graphicsClock", 65535.0),
        ("gpu.0.memoryAllocatedBytes", 4294967295.0),
        ("gpu.0.memoryAllocatedBytes", 2.0**64),
        ("gpu.0.memoryAllocatedBytes", 4294967295.0 * 1048576),
        ("gpu.0.pcieTxBytes", 2147483632.0),
        ("gpu.0.remappedRowsCorrectable", 4294967295.0),
        ("gpu.0.pcieLinkGen", 4294967295.0),
        ("trn.0.neuroncore_utilization", 4294967295.0),
        ("trn.0.neuroncore_memory_usage.tensors", 4294967295.0),
        ("trn.vcpu_usage.user", 300.0),
        ("tpu.2.dutyCycle", 4294967295.0),
        ("ipu.0.average board temp (C)", 999.0),
        ("memory_percent", float("inf")),
        ("disk./data/v1.5.usagePercent", 5000.0),
        ("swap.used_percent", -30.0),
    ],
)
def test_impossible_gauges_are_left_out_with_the_reason(key: str, value: float) -> None:
    tick, reasons = check({"cpu": 1.0, key: value, "gpu.7.temp": 40.0})
    assert tick.gauges == {"cpu": 1.0, "gpu.7.temp": 40.0}
    assert "left out" in reasons.pop(key)
    assert reasons == {}


@pytest.mark.parametrize("code", [4294967295.0, 4294967.295, 2.0**63])
def test_codes_for_no_value_in_counters_are_left_out(code: float) -> None:
    tick, reasons = check({"gpu.0.temp": 40.0}, {"gpu.0.energyJoules": code, "gpu.0.pcieReplays": 3.0})
    assert tick.counters == {"gpu.0.pcieReplays": 3.0}
    assert set(reasons) == {"gpu.0.energyJoules"}


def test_slightly_more_than_all_is_all_and_slightly_less_than_nothing_is_nothing() -> None:
    tick, reasons = check({"gpu.0.smActive": 103.0, "disk.sda.utilization": 100.7, "gpu.1.gpu": -0.3})
    assert tick.gauges == {"gpu.0.smActive": 100.0, "disk.sda.utilization": 100.0, "gpu.1.gpu": 0.0}
    assert reasons == {}


def test_an_amount_is_left_out_with_its_impossible_share() -> None:
    memory = {"gpu.0.memoryAllocated": 5000.0, "gpu.0.memoryAllocatedBytes": 8e11, "gpu.0.gpu": 7.0}
    tick, reasons = check(memory)
    assert tick.gauges == {"gpu.0.gpu": 7.0}
    assert reasons == {
        "gpu.0.memoryAllocated": "5000 is left out: expected 0 to 100 %",
        "gpu.0.memoryAllocatedBytes": "is left out: memoryAllocated is 5000",
    }


@pytest.mark.parametrize("code", ["powerWatts", "enforcedPowerLimitWatts"])
def test_a_share_is_left_out_with_an_impossible_amount(code: str) -> None:
    power = {"powerWatts": 300.0, "enforcedPowerLimitWatts": 350.0, "powerPercent": 0.01} | {code: 65.535}
    tick, reasons = check({f"gpu.0.{name}": value for name, value in power.items()})
    assert set(reasons) == {f"gpu.0.{code}", "gpu.0.powerPercent"}
    assert "gpu.0.powerSuspect" not in tick.gauges


def test_a_share_of_memory_is_left_out_with_an_impossible_total() -> None:
    memory = {"gpu.0.memoryTotal": 4294967295.0, "gpu.0.memoryUsed": 900.0, "gpu.0.memoryAllocated": 2e-5}
    tick, reasons = check(memory)
    assert tick.gauges == {"gpu.0.memoryUsed": 900.0}
    assert reasons["gpu.0.memoryAllocated"] == "is left out: memoryTotal is 4294967295"


POWER = {"gpu.0.powerWatts": 588.4, "gpu.0.enforcedPowerLimitWatts": 35.0, "gpu.0.powerPercent": 1681.1}


def test_power_far_above_the_limit_is_recorded_and_marked() -> None:
    of_process = {"gpu.process.0.powerWatts": 588.4, "gpu.process.0.powerPercent": 1681.1}
    tick, reasons = check(POWER | of_process)
    assert set(reasons) == {"gpu.0.powerPercent", "gpu.process.0.powerPercent"}
    assert tick.gauges == {
        "gpu.0.powerWatts": 588.4,
        "gpu.0.enforcedPowerLimitWatts": 35.0,
        "gpu.0.powerSuspect": 1.0,
        "gpu.process.0.powerWatts": 588.4,
    }
    (event,) = tick.events
    assert (event["name"], event["level"]) == ("sensor_implausible", "warning")
    assert "gpu.0: the sensor reports 588.4 W, more than twice the power limit" in str(event["text"])


def test_energy_does_not_grow_while_the_power_is_in_doubt() -> None:
    baselines = Baselines()
    plausibility = Plausibility(baselines)
    counted = []
    for second, watts in enumerate((30.0, 588.0, 588.0, 30.0, 30.0)):
        tick = Tick(float(second))
        tick.gauges = {"gpu.0.powerWatts": watts, "gpu.0.powerPercent": watts * 100 / 35}
        tick.counters = {"gpu.0.energyJoules": (0.0, 588.0, 1176.0, 1206.0, 1236.0)[second]}
        plausibility.check(tick)
        values: dict[str, float] = {}
        baselines.add(tick.counters, values)
        counted.append(values.get("gpu.0.energyJoules"))
        assert len(tick.events) == (second == 1), "once"
    assert counted == [0.0, None, None, 30.0, 60.0]


def test_what_is_no_number_is_left_to_the_recorder() -> None:
    odd: dict[str, float] = {"cpu": "7", "gpu.0.gpu": None, "gpu.1.gpu": 200.0, "x": 1 << 2000}  # type: ignore[dict-item]
    tick, reasons = check(odd)
    assert set(reasons) == {"gpu.1.gpu"}
    assert tick.gauges.keys() == {"cpu", "gpu.0.gpu", "x"}


def test_sets_of_keys_without_end_are_not_remembered() -> None:
    plausibility = Plausibility(Baselines())
    for i in range(2000):
        tick = Tick(float(i))
        tick.gauges = {f"gpu.{i}.gpu": 500.0}
        assert plausibility.check(tick)
