"""Intel's GPUs: files of the drivers, and lines of xpu-smi."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from runvitals.model.metrics import DEFINITIONS
from runvitals.monitoring.collectors.base import Absent, Tick
from runvitals.monitoring.collectors.plumbing.composite import CompositeSource
from runvitals.monitoring.collectors.plumbing.tool import StillFailing, ToolFailed
from runvitals.monitoring.collectors.vendors.intel_xpu_smi import READINGS, XpuSmi
from runvitals.monitoring.collectors.vendors.probes import intel
from tests.monitoring.collectors.plumbing.test_tool import program, soon
from tests.monitoring.collectors.trees import Tree, plant, put
from tests.monitoring.collectors.vendors.machines import pci


def card(name: str, address: str, driver: str, files: dict[str, str]) -> Tree:
    """A graphics card in sysfs. Files under "device/" belong to its PCI device."""
    device = f"sys/bus/pci/devices/{address}"
    tree = pci(address, "8086", "03") | {
        f"sys/class/drm/{name}/device": f"-> ../../../bus/pci/devices/{address}",
        f"sys/bus/pci/drivers/{driver}/": "",
        f"{device}/driver": f"-> ../../drivers/{driver}",
        f"{device}/device": "0x56c0\n",
    }
    for path, text in files.items():
        inner = path.removeprefix("device/")
        tree[f"{device}/{inner}" if path != inner else f"sys/class/drm/{name}/{path}"] = text
    return tree


def sensors(energy_uj: int) -> dict[str, str]:
    folder = "device/hwmon/hwmon4"
    return {
        f"{folder}/energy1_label": "card\n",
        f"{folder}/energy1_input": f"{energy_uj}\n",
        f"{folder}/power1_max": "150000000\n",
        f"{folder}/temp2_label": "pkg\n",
        f"{folder}/temp2_input": "52000\n",
        f"{folder}/temp3_label": "vram\n",
        f"{folder}/temp3_input": "64000\n",
    }


XE = card(
    "card1",
    "0000:4d:00.0",
    "xe",
    {
        "device/tile0/gt0/gtidle/idle_residency_ms": "1000\n",
        "device/tile0/gt0/freq0/act_freq": "2050\n",
        "device/tile0/gt1/gtidle/idle_residency_ms": "5\n",
    }
    | sensors(5_000_000),
)
I915 = card(
    "card0",
    "0000:00:02.0",
    "i915",
    {"gt/gt0/rc6_residency_ms": "700\n", "gt/gt0/rps_act_freq_mhz": "300\n"},
)
HEADER = (
    "Timestamp, DeviceId, GPU Utilization (%), GPU Power (W), GPU Memory Utilization (%),"
    " GPU Memory Used (MiB)\n"
)


@pytest.fixture
def no_tool(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path / "nothing"))


def look(parts: CompositeSource, mono_s: float) -> Tick:
    tick = Tick(mono_s)
    parts.sample(tick)
    return tick


@pytest.mark.usefixtures("no_tool")
def test_a_card_with_the_driver_xe(tmp_path: Path) -> None:
    parts = intel(plant(tmp_path, XE))
    first = look(parts, 100.0)
    assert first.gauges == {
        "gpu.0.graphicsClock": 2050.0,
        "gpu.0.temp": 52.0,
        "gpu.0.memoryTemp": 64.0,
        "gpu.0.enforcedPowerLimitWatts": 150.0,
    }
    assert first.counters == {"gpu.0.energyJoules": 5.0}
    device = "sys/bus/pci/devices/0000:4d:00.0"
    put(tmp_path, f"{device}/hwmon/hwmon4/energy1_input", "155000000\n")
    put(tmp_path, f"{device}/tile0/gt0/gtidle/idle_residency_ms", "1500\n")
    second = look(parts, 102.0)
    assert second.gauges["gpu.0.powerWatts"] == pytest.approx(75.0)
    assert second.gauges["gpu.0.powerPercent"] == pytest.approx(50.0)
    assert second.gauges["gpu.0.gpu"] == pytest.approx(75.0)  # asleep for 0.5 s of 2
    facts = parts.facts
    assert facts["accelerator_intel"][0]["pci"] == "0000:4d:00.0"
    assert parts.absent["memoryAllocated"].startswith("needs xpu-smi, which is not on PATH")
    assert set(parts.absent) == {"memoryAllocated", "memoryAllocatedBytes", "memoryBandwidth"}


@pytest.mark.usefixtures("no_tool")
def test_a_file_that_one_of_two_cards_lacks_has_a_reason(tmp_path: Path) -> None:
    parts = intel(plant(tmp_path, I915 | XE))
    look(parts, 100.0)
    look(parts, 101.0)
    assert parts.absent["temp"] == "not reported by the driver in sysfs (GPU 0)"
    assert parts.absent["memoryAllocated"] == (
        "not reported by the driver in sysfs (GPU 0); "
        "needs xpu-smi, which is not on PATH: install the package xpu-smi (GPU 1)"
    )
    assert "graphicsClock" not in parts.absent


@pytest.mark.usefixtures("no_tool")
def test_falling_totals_and_unreadable_files_are_gaps(tmp_path: Path) -> None:
    parts = intel(plant(tmp_path, XE))
    look(parts, 100.0)
    device = "sys/bus/pci/devices/0000:4d:00.0"
    put(tmp_path, f"{device}/hwmon/hwmon4/energy1_input", "10\n")
    put(tmp_path, f"{device}/hwmon/hwmon4/temp2_input", "\n")
    gauges = look(parts, 101.0).gauges
    assert "gpu.0.powerWatts" not in gauges
    assert "gpu.0.temp" not in gauges
    assert gauges["gpu.0.memoryTemp"] == 64.0


@pytest.mark.usefixtures("no_tool")
def test_a_gpu_without_power_saving_is_not_always_busy(tmp_path: Path) -> None:
    parts = intel(plant(tmp_path, I915 | {"sys/class/drm/card0/gt/gt0/rc6_residency_ms": "0\n"}))
    look(parts, 100.0)
    assert "gpu.0.gpu" not in look(parts, 101.0).gauges


@pytest.mark.usefixtures("no_tool")
def test_the_first_hardware_monitor_is_the_cards(tmp_path: Path) -> None:
    device = "sys/bus/pci/devices/0000:4d:00.0/hwmon"
    tree = {path.replace("hwmon4", "hwmon9"): text for path, text in XE.items()}
    parts = intel(plant(tmp_path, tree | {f"{device}/hwmon10/energy1_input": "7000000\n"}))
    first = look(parts, 100.0)
    assert first.counters == {"gpu.0.energyJoules": 5.0}
    assert first.gauges["gpu.0.temp"] == 52.0


@pytest.mark.usefixtures("no_tool")
def test_integrated_graphics_beside_a_card_and_nvidia(tmp_path: Path) -> None:
    parts = intel(plant(tmp_path, I915 | XE | pci("0000:01:00.0", "10de", "03")))
    gauges = look(parts, 1.0).gauges
    assert gauges["gpu.1.graphicsClock"] == 300.0  # 0000:00:02.0 comes before 0000:4d:00.0, NVIDIA is 0
    assert gauges["gpu.2.graphicsClock"] == 2050.0


@pytest.mark.usefixtures("no_tool")
def test_a_gpu_without_its_driver_is_absent(tmp_path: Path) -> None:
    with pytest.raises(Absent, match=r"the Intel GPU at 0000:4d:00\.0 uses neither the driver xe nor i915"):
        intel(plant(tmp_path, pci("0000:4d:00.0", "8086", "03")))


def test_xpu_smi_adds_what_sysfs_lacks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = HEADER + "08:08:16, 0, 12.5, 99.0, 20.0, 1024.00\n"
    (tmp_path / "lines").write_text(lines)
    program(tmp_path / "bin", "xpu-smi", f"cat {tmp_path}/lines; exec sleep 72.5")
    monkeypatch.setenv("PATH", f"{tmp_path}/bin{os.pathsep}/usr/bin{os.pathsep}/bin")
    parts = intel(plant(tmp_path / "root", I915 | XE))
    gauges = soon(
        lambda: look(parts, time.monotonic()).gauges, lambda read: read.get("gpu.1.powerWatts") == 99.0
    )
    assert gauges["gpu.1.gpu"] == 12.5
    assert gauges["gpu.1.memoryAllocated"] == 20.0
    assert gauges["gpu.1.memoryAllocatedBytes"] == 1024.0 * 1024 * 1024
    assert gauges["gpu.1.temp"] == 52.0  # still from the driver
    parts.close()


def printing(tmp_path: Path, text: str) -> XpuSmi:
    (tmp_path / "lines").write_text(text)
    return XpuSmi(program(tmp_path, "xpu-smi", f"cat {tmp_path}/lines; exec sleep 73.5"), [0, 1])


def test_the_newest_line_of_each_card_is_used(tmp_path: Path) -> None:
    text = "WARNING: no root\n" + HEADER
    text += (
        "16.8, 0, N/A, 281.0, N/A, \n16.8, 1, 3.0, 1.0, , 7\n17.8, 0, , 293.0,  N/A, \n17.8, 2, 1, 1, 1, 1\n"
    )
    source = printing(tmp_path, text)
    tick = Tick(1.0)

    def both() -> bool:
        source.sample(tick)
        return tick.gauges.get("gpu.0.powerWatts") == 293.0

    soon(both)
    source.close()
    assert tick.gauges == {
        "gpu.0.powerWatts": 293.0,
        "gpu.1.gpu": 3.0,
        "gpu.1.powerWatts": 1.0,
        "gpu.1.memoryAllocatedBytes": 7.0 * 1024 * 1024,
    }


def test_decimal_commas_and_units_in_other_brackets(tmp_path: Path) -> None:
    head = HEADER.replace("(%)", "[%]").replace("(MiB)", "[GiB]")
    text = head + "16.8, 0, 12,5, 281,5, 20,0, 7\n16.8,1,12,5,281,5,20,0,7\n"
    source = printing(tmp_path, text)
    tick = Tick(1.0)

    def first() -> bool:
        source.sample(tick)
        return bool(tick.gauges)

    soon(first)
    source.close()
    assert tick.gauges == {
        "gpu.0.gpu": 12.5,
        "gpu.0.powerWatts": 281.5,
        "gpu.0.memoryAllocated": 20.0,
        "gpu.0.memoryAllocatedBytes": 7.0 * 1024**3,
    }


def test_integrated_graphics_beside_a_card_with_xpu_smi(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each part says which of the GPUs lack a reading."""
    (tmp_path / "lines").write_text(HEADER + "1, 0, N/A, 50, 25, 4096\n")
    program(tmp_path / "bin", "xpu-smi", f"cat {tmp_path}/lines; exec sleep 73.5")
    monkeypatch.setenv("PATH", f"{tmp_path}/bin", prepend=os.pathsep)
    parts = intel(plant(tmp_path, I915 | XE))
    look(parts, 100.0)
    soon(lambda: look(parts, 101.0).gauges.get("gpu.1.memoryAllocated"))
    unreported = "not reported by the driver in sysfs (GPU 0)"
    assert parts.absent["memoryAllocated"] == unreported
    assert parts.absent["memoryBandwidth"] == f"{unreported}; not reported by xpu-smi (GPU 1)"
    parts.close()


def test_utilization_without_permission_has_a_hint(tmp_path: Path) -> None:
    """Memory is there, what the engines' counters tell is not."""
    header = "Timestamp, DeviceId, GPU Utilization (%), GPU Memory Utilization (%), GPU Memory Used (MiB)\n"
    rows = "14:15:20.490,    0,  N/A, 0.10, 17.52\n14:15:20.490,    1,  N/A, 0.30, 49.21\n"
    source = printing(tmp_path, header + rows)
    gauges = soon(lambda: look_at(source, 1.0))
    assert gauges["gpu.0.memoryAllocated"] == 0.10
    assert gauges["gpu.1.memoryAllocatedBytes"] == 49.21 * 2**20
    assert source.absent["gpu"] == "xpu-smi prints no value: it needs root or CAP_PERFMON"
    assert source.absent["temp"] == "not reported by xpu-smi"
    assert not {"memoryAllocated", "memoryAllocatedBytes"} & set(source.absent)
    source.close()


def look_at(source: XpuSmi, mono_s: float) -> dict[str, float]:
    tick = Tick(mono_s)
    source.sample(tick)
    return tick.gauges


def test_what_the_driver_has_in_sysfs_is_not_missing(tmp_path: Path) -> None:
    source = printing(tmp_path, HEADER + "1, 0, , 50, 25, 4096\n1, 1, , 50, 25, 4096\n")

    def look_after_sysfs() -> dict[str, float]:
        tick = Tick(1.0)
        tick.gauges["gpu.0.gpu"] = 75.0
        source.sample(tick)
        return tick.gauges if "gpu.0.powerWatts" in tick.gauges else {}

    soon(look_after_sysfs)
    assert source.absent["gpu"] == "xpu-smi prints no value: it needs root or CAP_PERFMON (GPU 1)"
    source.close()


def test_a_tool_that_fails_is_the_reason_of_what_only_it_has(tmp_path: Path) -> None:
    source = XpuSmi(program(tmp_path, "xpu-smi", "echo no permission >&2; exit 3"), [0])
    failure(source)
    assert "no permission" in source.absent["memoryAllocated"]
    source.close()


def failure(source: XpuSmi, mono_s: float = 1.0) -> str:
    def attempt() -> str:
        try:
            source.sample(Tick(mono_s))
        except ToolFailed as error:
            return str(error)
        return ""

    return soon(attempt)


def test_release_2_has_other_options_and_other_names(tmp_path: Path) -> None:
    script = """case "$*" in *" -m "*|*" -i "*) echo "unknown option -m"; exit 1;; esac
echo 'Timestamp,DeviceId,energy.consumed (J),memory.used (GiB),utilization.gpu (%),power.draw (W),\
clocks.current.graphics (MHz),temperature.gpu (C),memory.bandwidth.utilization (%)'
echo '08:08:17.817,0,1234.5,2.00,37.00,281.13,1600,35.50,12.5'
exec sleep 73.6"""
    source = XpuSmi(program(tmp_path, "xpu-smi", script.replace("\\\n", "")), [3])
    assert "unknown option -m" in failure(source)
    tick = Tick(2.0)
    reasons: set[str] = set()

    def done() -> bool:
        try:
            source.sample(tick)
        except StillFailing as still:
            reasons.add(str(still))
        return bool(tick.gauges)

    soon(done)
    source.close()
    assert all("unknown option -m" in reason for reason in reasons)
    assert tick.gauges == {
        "gpu.3.gpu": 37.0,
        "gpu.3.powerWatts": 281.13,
        "gpu.3.graphicsClock": 1600.0,
        "gpu.3.temp": 35.5,
        "gpu.3.memoryBandwidth": 12.5,
        "gpu.3.memoryAllocatedBytes": 2.0 * 1024**3,
    }
    assert tick.counters == {"gpu.3.energyJoules": 1234.5}


def test_the_drivers_energy_is_not_mixed_with_that_of_xpu_smi(tmp_path: Path) -> None:
    source = printing(tmp_path, "DeviceId, GPU Power (W), GPU Energy Consumed (J)\n0, 7, 50\n1, 8, 60\n")
    tick = Tick(1.0)
    tick.counters["gpu.0.energyJoules"] = 900.0

    def done() -> bool:
        source.sample(tick)
        return bool(tick.gauges)

    soon(done)
    source.close()
    assert tick.counters == {"gpu.0.energyJoules": 900.0, "gpu.1.energyJoules": 60.0}


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("| XPU-SMI    XPU-RT Version: 5.1.0 |\n" * 30, "'XPU-SMI XPU-RT Version: 5.1.0'"),
        ("Timestamp, DeviceId, Colour\n1, 0, red\n", "'Timestamp, DeviceId, Colour'"),
    ],
)
def test_invalid_output_is_reported(tmp_path: Path, text: str, says: str) -> None:
    source = printing(tmp_path, text)
    done = failure(source)
    assert f"cannot parse the output: {says}" in done
    for moment in range(2, 50):
        assert failure(source, float(moment))
    source.close()


def test_every_key_of_xpu_smi_is_a_declared_metric() -> None:
    for reading in READINGS:
        match = DEFINITIONS.find(f"gpu.0.{reading.key}")
        assert match is not None
        assert match.metric.unit == reading.unit
