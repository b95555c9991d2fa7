"""The NPU in Rockchip's processors: files of the driver."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from runvitals.monitoring.collectors.base import Absent, Tick
from runvitals.monitoring.collectors.sources import probe_all
from runvitals.monitoring.collectors.vendors.probes import rockchip
from runvitals.monitoring.collectors.vendors.rockchip import devfreq_load, mean_load
from tests.monitoring.collectors.trees import BARE_VM, Tree, plant, put

if TYPE_CHECKING:
    from pathlib import Path

    from runvitals.monitoring.collectors.base import Collector

BOARD: Tree = {
    "sys/class/devfreq/fdab0000.npu/cur_freq": "1000000000\n",
    "sys/class/devfreq/fdab0000.npu/load": "0@1000000000Hz\n",
    "sys/class/devfreq/fb000000.gpu/load": "80@300000000Hz\n",
    "sys/class/thermal/thermal_zone0/type": "soc-thermal\n",
    "sys/class/thermal/thermal_zone0/temp": "70000\n",
    "sys/class/thermal/thermal_zone6/type": "npu-thermal\n",
    "sys/class/thermal/thermal_zone6/temp": "43400\n",
    "proc/device-tree/model": "Test Board\0",
}
LOAD = "sys/kernel/debug/rknpu/load"


def gauges(source: Collector, mono_s: float = 1.0) -> dict[str, float]:
    tick = Tick(mono_s)
    source.sample(tick)
    return tick.gauges


@pytest.mark.parametrize("path", [LOAD, "proc/rknpu/load"])
def test_load_is_the_mean_of_the_cores(tmp_path: Path, path: str) -> None:
    tree = BOARD | {path: "NPU load:  Core0: 90%, Core1: 30%, Core2:  0%,\n"}
    source = rockchip(plant(tmp_path, BARE_VM | tree))
    assert gauges(source) == {"gpu.0.gpu": 40.0, "gpu.0.graphicsClock": 1000.0, "gpu.0.temp": 43.4}
    put(tmp_path, path, "NPU load:  Core0:  0%, Core1:  0%, Core2:  0%,\n")
    assert gauges(source)["gpu.0.gpu"] == 0.0
    assert source.facts == {  # type: ignore[attr-defined]
        "accelerator_rockchip": [{"index": 0, "name": "Rockchip NPU (Test Board)"}]
    }


def test_the_clock_from_the_drivers_file_without_devfreq(tmp_path: Path) -> None:
    tree: Tree = {"proc/rknpu/load": "NPU load:  7%\n", "proc/rknpu/freq": "600000000\n"}
    source = rockchip(plant(tmp_path, BARE_VM | tree))
    assert gauges(source) == {"gpu.0.gpu": 7.0, "gpu.0.graphicsClock": 600.0}
    assert "temp" in source.absent  # type: ignore[attr-defined]


def test_a_devfreq_load_that_is_always_0_is_left_out(tmp_path: Path) -> None:
    source = rockchip(plant(tmp_path, BARE_VM | BOARD))
    assert "gpu.0.gpu" not in gauges(source)
    assert "mount -o remount,mode=755 /sys/kernel/debug" in source.absent["gpu"]  # type: ignore[attr-defined]
    put(tmp_path, "sys/class/devfreq/fdab0000.npu/load", "45@1000000000Hz\n")
    assert gauges(source)["gpu.0.gpu"] == 45.0
    assert "gpu" not in source.absent  # type: ignore[attr-defined]
    put(tmp_path, "sys/class/devfreq/fdab0000.npu/load", "0@300000000Hz\n")
    assert gauges(source)["gpu.0.gpu"] == 0.0


@pytest.mark.parametrize("text", ["", "busy\n", "NPU load: Core0: 900%", "\x1b[31m", "-5%"])
def test_invalid_loads(tmp_path: Path, text: str) -> None:
    assert "gpu.0.gpu" not in gauges(rockchip(plant(tmp_path, BARE_VM | BOARD | {LOAD: text})))


def test_formats_of_loads() -> None:
    assert mean_load("NPU load:  Core0:100%, Core1:  0%,") == 50.0
    assert mean_load("NPU load: 12 %") == 12.0
    assert devfreq_load("12%") == 12.0
    assert devfreq_load("") is None


def test_other_machines_with_devfreq_or_npus_are_not_rockchip(tmp_path: Path) -> None:
    tree: Tree = {
        "sys/class/devfreq/7122000.npu/load": "7@1Hz\n",
        "sys/class/devfreq/7122000.npu/device/driver": "-> ../../../bus/platform/drivers/somebody",
    }
    scope = plant(tmp_path, BARE_VM | tree)
    with pytest.raises(Absent, match="no Rockchip NPU: there is no"):
        rockchip(scope)
    assert "rockchip" in probe_all(scope, {"rockchip"}).reasons


def test_an_unreadable_load_is_reported_with_a_remedy(tmp_path: Path) -> None:
    scope = plant(tmp_path, BARE_VM | {"proc/rknpu/version": "RKNPU driver: v0.9.8\n"})
    with pytest.raises(Absent, match="only root may read here: as root, mount"):
        rockchip(scope)
