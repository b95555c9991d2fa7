"""Output of all macmon versions and of the library. Unknown values are absent."""

from __future__ import annotations

from types import SimpleNamespace as Has
from typing import Any

import pytest

from runvitals.model.metrics import DEFINITIONS
from runvitals.monitoring.collectors.apple.chip import AppleChip
from runvitals.monitoring.collectors.apple.macmon_child import chip_of, sample_of
from runvitals.monitoring.collectors.apple.macmon_output import MacmonSample, elapsed_s, mean
from tests.monitoring.collectors.apple.macs import GIB, OLD_SAMPLE, SAMPLE

POWER = {
    "cpu.powerWatts": 12.0,
    "gpu.0.powerWatts": 30.0,
    "ane.power": 0.5,
    "memory.powerWatts": 3.0,
    "system.powerWatts": 60.0,
}
SHARED = POWER | {
    "cpu.avg_temp": 61.5,
    "gpu.0.temp": 55.25,
    "memory.used": 16.0 * GIB,
    "memory.used_percent": 25.0,
    "swap.used": 1.0 * GIB,
    "swap.used_percent": 25.0,
    "cpu.ecpu_freq": 1100.0,
    "cpu.pcpu_freq": 3600.0,
    "gpu.0.graphicsClock": 1200.0,
}


def test_fans_without_a_maximum_and_invalid_fans() -> None:
    fans = [{"name": "left", "rpm": 0}, {"name": "right", "rpm": None, "max_rpm": 6000}, 7]
    assert MacmonSample({"fans": fans}).gauges == {"fan.0.rpm": 0.0}
    assert MacmonSample({"fans": {"rpm": 5}}).gauges == {}


def test_current_macmon_reports_shares_of_time() -> None:
    sample = MacmonSample(SAMPLE)
    assert sample.gauges == SHARED | {
        "cpu.ecpu_percent": 25.0, "cpu.pcpu_percent": 50.0, "gpu.0.gpu": 75.0, "cpu.active_percent": 40.0,
        "fan.0.rpm": 1500.0, "fan.0.percent": 30.0,
    }  # fmt: skip
    assert sample.chip == "Apple M3 Max"
    assert sample.about == {"model": "Mac15,9", "gpu_cores": 40, "ecpu_cores": 4, "pcpu_cores": 12}
    assert sample.clock_s == 36001.25


def test_gpu_load_of_an_old_macmon_is_left_out() -> None:
    sample = MacmonSample(OLD_SAMPLE)
    assert sample.gauges == SHARED | {"cpu.ecpu_percent": 10.0, "cpu.pcpu_percent": 40.0}
    assert (sample.chip, sample.about) == ("", {})


def library(**changes: Any) -> dict[str, Any]:
    """A sample of macmon-lib, as `macmon_child.py` prints it."""
    cores = [
        Has(name="ECPU", units=4, frequency_mhz=1100, usage=0.1),
        Has(name="PCPU0", units=6, frequency_mhz=3000, usage=0.2),
        Has(name="PCPU1", units=2, frequency_mhz=4000, usage=0.6),
    ]
    power = {"cpu": 12.0, "gpu": 30.0, "ram": 3.0, "gpu_ram": 0.1, "ane": 0.5, "board": 60.0, "dc_in": 62.0}
    metrics = Has(
        cpu_usage=changes.pop("cpu_usage", cores),
        gpu_usage=[Has(name="GPUPH", units=40, frequency_mhz=700, usage=0.375)],
        power=Has(**(power | changes)),
        memory=Has(ram_total=64 * GIB, ram_usage=16 * GIB, swap_total=0, swap_usage=0),
        temperature=Has(cpu_average=61.5, gpu_average=0.0),
    )
    domains = [Has(name="ECPU", units=4), Has(name="PCPU", units=8)]
    info = Has(
        mac_model="Mac15,9", chip_name="Apple M3 Max", memory_gb=64, cpu_domains=domains, gpu_cores=40,
        gpu_frequencies_mhz=[0, 338, 700, 1400],
    )  # fmt: skip
    return {**sample_of(metrics), "soc": chip_of(info)}


def test_clusters_of_the_library_are_averaged() -> None:
    sample = MacmonSample(library())
    assert sample.gauges == POWER | {
        "cpu.avg_temp": 61.5,
        "memory.used": 16.0 * GIB,
        "memory.used_percent": 25.0,
        "cpu.ecpu_freq": 1100.0,
        "cpu.ecpu_percent": 10.0,
        "cpu.pcpu_freq": 3250.0,
        "cpu.pcpu_percent": pytest.approx(30.0),
        "gpu.0.graphicsClock": 700.0,
        # Half of the time at half of the highest clock: scaled, this is a quarter.
        "gpu.0.gpu": 75.0,
    }
    assert sample.about == {"model": "Mac15,9", "gpu_cores": 40, "ecpu_cores": 4, "pcpu_cores": 8}


def test_smaller_cores_of_an_m5_are_ecpu() -> None:
    cores = [Has(name="MCPU", units=12, frequency_mhz=2000, usage=0.5)]
    gauges = MacmonSample(library(cpu_usage=cores)).gauges
    assert gauges["cpu.ecpu_percent"] == 50.0
    assert "cpu.pcpu_percent" not in gauges


def test_zero_is_valid_for_power_but_not_for_sensors() -> None:
    nothing = {
        "temp": {"cpu_temp_avg": 0.0, "gpu_temp_avg": 0.0},
        "memory": {"ram_total": 0, "ram_usage": 0, "swap_total": 0, "swap_usage": 0},
        "gpu_usage": [0, 0.0],
        "cpu_power": 0.0,
        "gpu_power": 0.0,
        "ane_power": 0.0,
        "sys_power": 0.0,
    }
    assert MacmonSample(nothing).gauges == {"cpu.powerWatts": 0.0, "gpu.0.powerWatts": 0.0, "ane.power": 0.0}


@pytest.mark.parametrize("nothing", ["N/A", None, float("nan"), float("inf"), -1.0, True, [], {}])
def test_values_that_are_not_numbers_are_absent(nothing: object) -> None:
    def emptied(value: Any) -> Any:
        if isinstance(value, dict):
            return {name: emptied(each) for name, each in value.items()}
        return nothing

    sample = MacmonSample(emptied(SAMPLE))
    assert (sample.gauges, sample.clock_s) == ({}, None)


def test_system_power_is_at_least_the_sum_of_its_parts() -> None:
    assert MacmonSample({**SAMPLE, "sys_power": 20.0}).gauges["system.powerWatts"] == 42.5


def test_time_between_samples_by_their_own_clocks() -> None:
    assert elapsed_s(100.0, 101.5, 1.0) == 1.5
    assert elapsed_s(86399.5, 0.5, 1.0) == 1.0
    assert elapsed_s(100.0, 100.0, 1.0) == elapsed_s(101.0, 100.0, 1.0) == elapsed_s(None, 5.0, 1.0) == 1.0


def test_mean_of_several_samples() -> None:
    quiet = MacmonSample({**SAMPLE, "gpu_power": 10.0, "sys_power": 0.0})
    values = mean([MacmonSample(SAMPLE), quiet])
    assert (values["gpu.0.powerWatts"], values["system.powerWatts"]) == (20.0, 60.0)


def test_every_key_is_a_declared_metric() -> None:
    for key in (*MacmonSample(SAMPLE).gauges, *MacmonSample(library()).gauges):
        match = DEFINITIONS.find(key)
        assert match is not None
        assert match.key == key


@pytest.mark.parametrize(
    ("name", "watts"),
    [
        ("Apple M1", 20.0), ("Apple M4", 15.0), ("Apple M2 Pro", 30.0), ("Apple M5 Max", 60.0),
        ("Apple M3 Ultra", 120.0), ("Apple M9", None), ("Apple A18 Pro", None), ("Apple M4 Giga", None),
        ("", None), ("Apple processor", None),
    ],
)  # fmt: skip
def test_gpu_power_limit_of_a_chip(name: str, watts: float | None) -> None:
    chip = AppleChip(8.0 * GIB)
    chip.learn(name, {})
    assert chip.gpu_watts == watts
    facts = chip.facts()
    assert facts["gpu_power_limit_watts"] == (16.5 if watts is None else watts)
    assert facts["gpu_power_limit_known"] is (watts is not None)
