"""Temperature and clock of the CPU."""

from __future__ import annotations

from pathlib import Path

import pytest

from runvitals.monitoring.collectors.base import Absent, Scope
from runvitals.monitoring.collectors.host.thermal import clocks_of_cpuinfo, probe
from tests.monitoring.collectors.trees import BARE_VM, SENSORS, plant, put, sample, without


def chip(number: int, name: str, **sensors: tuple[str, int]) -> dict[str, str]:
    """A hwmon chip: temp1=(label, millidegrees)."""
    folder = f"sys/class/hwmon/hwmon{number}"
    tree = {f"{folder}/name": f"{name}\n"}
    for sensor, (label, value) in sensors.items():
        tree[f"{folder}/{sensor}_label"] = f"{label}\n"
        tree[f"{folder}/{sensor}_input"] = f"{value}\n"
    return tree


def zone(number: int, kind: str, value: int) -> dict[str, str]:
    folder = f"sys/class/thermal/thermal_zone{number}"
    return {f"{folder}/type": f"{kind}\n", f"{folder}/temp": f"{value}\n"}


def test_means_of_packages_and_of_core_clocks(tmp_path: Path) -> None:
    assert sample(probe(plant(tmp_path, SENSORS)), 1.0) == {"cpu.avg_temp": 60.0, "cpu.freqMHz": 2100.0}


@pytest.mark.parametrize(
    ("tree", "celsius"),
    [
        (chip(0, "k10temp", temp1=("Tctl", 80000), temp2=("Tdie", 60000), temp3=("Tccd1", 50000)), 60.0),
        (chip(0, "k10temp", temp1=("Tctl", 80000), temp3=("Tccd1", 50000)), 80.0),
        (chip(0, "coretemp", temp2=("Core 0", 50000), temp3=("Core 1", 54000)), 52.0),
        (chip(0, "coretemp", temp1=("Physical id 0", 47000)), 47.0),
        (
            chip(0, "nvme", temp1=("Composite", 40000))
            | zone(0, "acpitz", 30000)
            | zone(1, "x86_pkg_temp", 61000),
            61.0,
        ),
        (zone(0, "bcm2835_thermal", 49925), 49.925),
        (zone(0, "acpitz", 27800), 27.8),
        (
            without(chip(0, "k10temp", temp1=("", 52500)), ["sys/class/hwmon/hwmon0/temp1_label"]),
            52.5,
        ),
        (zone(0, "GPU-therm", 40000) | zone(1, "CPU-therm", 44500), 44.5),
    ],
    ids=[
        "AMD die",
        "AMD control",
        "cores only",
        "old Intel",
        "package's zone",
        "Raspberry Pi",
        "ACPI at last",
        "AMD without a label",
        "a board's zone",
    ],
)
def test_the_preferred_sensor_is_used(tmp_path: Path, tree: dict[str, str], celsius: float) -> None:
    assert sample(probe(plant(tmp_path, BARE_VM | tree)), 1.0)["cpu.avg_temp"] == celsius


@pytest.mark.parametrize("value", [-44000, 0, 200000])
def test_an_unconnected_sensor_has_no_reading(tmp_path: Path, value: int) -> None:
    thermal = probe(plant(tmp_path, BARE_VM | chip(0, "coretemp", temp1=("Package id 0", value))))
    assert "cpu.avg_temp" not in sample(thermal, 1.0)


def test_a_broken_sensor_does_not_affect_the_others(tmp_path: Path) -> None:
    thermal = probe(plant(tmp_path, SENSORS))
    put(tmp_path, "sys/class/hwmon/hwmon1/temp1_input", "")
    assert sample(thermal, 1.0)["cpu.avg_temp"] == 65.0


def test_the_clock_of_a_virtual_machine_is_that_of_cpuinfo(tmp_path: Path) -> None:
    thermal = probe(plant(tmp_path, BARE_VM))
    assert thermal.absent == {"cpu.avg_temp": "no hwmon sensor or thermal zone for the CPU"}
    assert sample(thermal, 1.0) == {"cpu.freqMHz": 2500.0}


def test_at_most_eight_cores_are_read(tmp_path: Path) -> None:
    cores = {f"sys/devices/system/cpu/cpu{i}/cpufreq/scaling_cur_freq": f"{i * 1000}\n" for i in range(64)}
    thermal = probe(plant(tmp_path, BARE_VM | cores))
    assert sample(thermal, 1.0)["cpu.freqMHz"] == sum(range(0, 64, 8)) / 8


def test_an_incomplete_line_of_cpuinfo_is_ignored() -> None:
    assert clocks_of_cpuinfo(b"processor : 0\ncpu MHz\t: 2450.000\nprocessor : 1\ncpu MHz\t: 24") == [2450.0]


def test_a_clock_that_a_hypervisor_does_not_tell_is_left_out() -> None:
    assert clocks_of_cpuinfo(b"cpu MHz\t\t: unknown\ncpu MHz\t\t: 2450.000\n") == [2450.0]


def test_absent(tmp_path: Path) -> None:
    with pytest.raises(Absent, match=r"cpu.avg_temp: no hwmon sensor.*; cpu.freqMHz: neither cpufreq"):
        probe(plant(tmp_path, without(BARE_VM, ["proc/cpuinfo"])))


def test_this_machine() -> None:
    try:
        readings = sample(probe(Scope()), 1.0)
    except Absent as absent:
        pytest.skip(f"this machine: {absent}")
    assert all(value > 0.0 for value in readings.values())
