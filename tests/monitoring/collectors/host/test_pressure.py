"""Pressure stall information."""

from __future__ import annotations

from pathlib import Path

import pytest

from runvitals.monitoring.collectors.base import Absent, Scope
from runvitals.monitoring.collectors.host.pressure import probe
from tests.monitoring.collectors import trees
from tests.monitoring.collectors.trees import BARE_VM, LIMITED_SLICE, PSI_FILES, plant, put, sample, without


def test_pressure_of_the_host(tmp_path: Path) -> None:
    assert sample(probe(plant(tmp_path, BARE_VM)), 1.0) == {
        "cpu.pressureAvg10": 1.25,
        "cpu.pressureSeconds": 5.0,
        "memory.pressureAvg10": 0.5,
        "memory.pressureFullAvg10": 0.25,
        "memory.pressureSeconds": 2.0,
        "io.pressureAvg10": 2.0,
        "io.pressureFullAvg10": 1.5,
        "io.pressureSeconds": 7.5,
    }


def test_pressure_of_our_cgroup_is_preferred_over_the_hosts(tmp_path: Path) -> None:
    readings = sample(probe(plant(tmp_path, LIMITED_SLICE)), 1.0)
    assert (readings["cpu.pressureAvg10"], readings["io.pressureFullAvg10"]) == (11.0, 7.0)
    assert readings["memory.pressureSeconds"] == 2.0


def test_old_kernels_have_no_full_line_for_the_cpu(tmp_path: Path) -> None:
    tree = without(BARE_VM, PSI_FILES) | {
        "proc/pressure/cpu": "some avg10=1.00 avg60=0.0 avg300=0.0 total=9\n"
    }
    assert sample(probe(plant(tmp_path, tree)), 1.0) == {
        "cpu.pressureAvg10": 1.0,
        "cpu.pressureSeconds": 9e-6,
    }


def test_a_file_that_becomes_empty_does_not_affect_the_others(tmp_path: Path) -> None:
    pressure = probe(plant(tmp_path, BARE_VM))
    put(tmp_path, "proc/pressure/memory", "")
    readings = sample(pressure, 1.0)
    assert {key.partition(".")[0] for key in readings} == {"cpu", "io"}


def test_a_kernel_without_psi_is_reported(tmp_path: Path) -> None:
    with pytest.raises(Absent, match="the kernel was built or started without PSI"):
        probe(plant(tmp_path, without(BARE_VM, PSI_FILES)))


def test_cgroup_v1_uses_the_hosts_pressure(tmp_path: Path) -> None:
    assert sample(probe(plant(tmp_path, trees.V1)), 1.0)["cpu.pressureAvg10"] == 1.25


def test_this_machine() -> None:
    try:
        readings = sample(probe(Scope()), 1.0)
    except Absent as absent:
        pytest.skip(f"this machine: {absent}")
    assert all(0.0 <= value <= 100.0 for key, value in readings.items() if key.endswith("Avg10"))


def test_a_resource_without_pressure_has_a_reason(tmp_path: Path) -> None:
    pressure = probe(plant(tmp_path, without(BARE_VM, ["proc/pressure/io"])))
    assert "memory.pressureAvg10" in sample(pressure, 1.0)
    assert pressure.absent == dict.fromkeys(
        ("io.pressureAvg10", "io.pressureFullAvg10", "io.pressureSeconds"),
        "neither the cgroup nor the host has io.pressure",
    )
