"""Jetson boards, Tenstorrent's driver and processors' NPUs: files of the kernel, and tegrastats."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from runvitals.monitoring.collectors.base import Absent, Tick
from runvitals.monitoring.collectors.plumbing.tool import ToolFailed
from runvitals.monitoring.collectors.vendors.jetson_rails import find_meters
from runvitals.monitoring.collectors.vendors.jetson_tegrastats import Tegrastats, parse
from runvitals.monitoring.collectors.vendors.probes import jetson, npu, tenstorrent
from tests.monitoring.collectors.plumbing.test_tool import program, soon
from tests.monitoring.collectors.trees import Tree, plant, put, sample
from tests.monitoring.collectors.vendors.machines import pci, tool, values

MIB = 1024.0 * 1024.0
ORIN = {
    "proc/device-tree/compatible": "nvidia,p3767\0nvidia,tegra234\0",
    "proc/device-tree/model": "Jetson Orin Nano\0",
    "proc/meminfo": "MemTotal:  8192 kB\nMemFree:  1 kB\nMemAvailable:  6144 kB\n",
    "sys/class/devfreq/17000000.gpu/device/load": "774\n",
    "sys/class/devfreq/17000000.gpu/cur_freq": "624750000\n",
    "sys/class/devfreq/other/cur_freq": "1\n",
    "sys/class/thermal/thermal_zone0/type": "cpu-thermal\n",
    "sys/class/thermal/thermal_zone0/temp": "80000\n",
    "sys/class/thermal/thermal_zone1/type": "gpu-thermal\n",
    "sys/class/thermal/thermal_zone1/temp": "51312\n",
    "sys/class/hwmon/hwmon1/name": "ina3221\n",
    "sys/class/hwmon/hwmon1/in1_label": "VDD_IN\n",
    "sys/class/hwmon/hwmon1/in1_input": "5000\n",
    "sys/class/hwmon/hwmon1/curr1_input": "1500\n",
    "sys/class/hwmon/hwmon1/in2_label": "VDD_SOC\n",
    "sys/class/hwmon/hwmon1/in2_input": "5000\n",
    "sys/class/hwmon/hwmon1/curr2_input": "100\n",
}


def test_a_jetson_with_the_kernels_files(tmp_path: Path) -> None:
    board = jetson(plant(tmp_path, ORIN))
    assert sample(board, 1.0) == {
        "gpu.0.gpu": pytest.approx(77.4),
        "gpu.0.graphicsClock": pytest.approx(624.75),
        "gpu.0.temp": pytest.approx(51.312),
        "gpu.0.powerWatts": pytest.approx(7.5),
        "gpu.0.memoryAllocatedBytes": 2048.0 * 1024,
        "gpu.0.memoryAllocated": 25.0,
    }
    assert board.facts == {"accelerator_jetson": [{"index": 0, "name": "Jetson Orin Nano", "unified": True}]}


def channels(chip: int, *rails: tuple[str, int, int]) -> Tree:
    """An INA3221 with rails given as label, mV, mA."""
    folder = f"sys/class/hwmon/hwmon{chip}"
    files: Tree = {f"{folder}/name": "ina3221\n", f"{folder}/in7_label": "sum of shunt voltages\n"}
    for number, (label, millivolts, milliamperes) in enumerate(rails, 1):
        files[f"{folder}/in{number}_label"] = f"{label}\n"
        files[f"{folder}/in{number}_input"] = f"{millivolts}\n"
        files[f"{folder}/curr{number}_input"] = f"{milliamperes}\n"
    return files


BARE = {path: text for path, text in ORIN.items() if "hwmon" not in path}
AGX_ORIN = channels(2, ("VDD_GPU_SOC", 20000, 250), ("VDD_CPU_CV", 20000, 150), ("VIN_SYS_5V0", 5000, 1100))
AGX_ORIN |= channels(3, ("NC", 0, 9), ("VDDQ_VDD2_1V8AO", 5000, 180), ("NC", 0, 0))


def power(tmp_path: Path, files: Tree) -> dict[str, float]:
    read = sample(jetson(plant(tmp_path, BARE | files)), 1.0)
    return {key: value for key, value in read.items() if key.endswith("Watts")}


def test_power_of_a_module_without_an_input_meter_is_the_sum_of_its_rails(tmp_path: Path) -> None:
    assert power(tmp_path, AGX_ORIN) == pytest.approx({"gpu.0.powerWatts": 13.5, "gpu.0.gpuRailWatts": 5.0})


def test_power_of_a_board_with_an_input_meter(tmp_path: Path) -> None:
    input_meter = {
        "sys/class/hwmon/hwmon9/name": "ina238\n",
        "sys/class/hwmon/hwmon9/power1_input": "26700000\n",
    }
    watts = power(tmp_path, AGX_ORIN | input_meter)
    assert [meter.name for meter in find_meters(f"{tmp_path}/sys/class/hwmon")] == ["VIN", "VDD_GPU_SOC"]
    assert watts == pytest.approx({"gpu.0.powerWatts": 26.7, "gpu.0.gpuRailWatts": 5.0})


def test_no_sum_of_rails_if_one_cannot_be_read(tmp_path: Path) -> None:
    files = dict(AGX_ORIN)
    board = jetson(plant(tmp_path, BARE | files))
    put(tmp_path, "sys/class/hwmon/hwmon2/curr2_input", "\n")
    read = sample(board, 1.0)
    assert "gpu.0.powerWatts" not in read
    assert read["gpu.0.gpuRailWatts"] == pytest.approx(5.0)


def test_a_failing_tegrastats_is_reported_at_each_tick(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program(tmp_path / "bin", "tegrastats", "echo 'no permission' >&2; exit 1")
    monkeypatch.setenv("PATH", f"{tmp_path}/bin{os.pathsep}/usr/bin{os.pathsep}/bin")
    board = jetson(plant(tmp_path / "root", BARE))
    soon(lambda: (sample(board, 0.0), "tegrastats" in board.absent)[1])
    for moment in range(1, 241):
        assert sample(board, float(moment))["gpu.0.gpu"] == pytest.approx(77.4)
        assert board.absent["tegrastats"].endswith("exited with 1: no permission")
    board.close()


def test_invalid_output_of_tegrastats_is_reported(tmp_path: Path) -> None:
    stats = Tegrastats(
        program(tmp_path, "tegrastats", "echo 'Access denied: run as root'; exec sleep 74.6"), 0
    )

    def attempt() -> str:
        try:
            stats.sample(Tick(1.0))
        except ToolFailed as failed:
            return str(failed)
        return ""

    assert soon(attempt).endswith("cannot parse the output: 'Access denied: run as root'")
    stats.close()


def test_other_boards_are_not_detected_as_jetson(tmp_path: Path) -> None:
    with pytest.raises(Absent, match="does not contain nvidia,tegra"):
        jetson(plant(tmp_path, {"sys/class/devfreq/gpu/cur_freq": "1\n"}))


def test_tegrastats_adds_what_the_files_lack(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    line = "RAM 100/8192MB GR3D_FREQ 45%@[600] gpu@50C VDD_IN 4000mW/4000mW"
    program(tmp_path / "bin", "tegrastats", f"echo '{line}'; exec sleep 74.5")
    monkeypatch.setenv("PATH", f"{tmp_path}/bin{os.pathsep}/usr/bin{os.pathsep}/bin")
    files = {path: text for path, text in ORIN.items() if "hwmon" not in path}
    board = jetson(plant(tmp_path / "root", files))
    values = soon(lambda: sample(board, time.monotonic()), lambda read: "gpu.0.powerWatts" in read)
    assert values["gpu.0.powerWatts"] == 4.0
    assert values["gpu.0.gpu"] == pytest.approx(77.4)  # the file is current, the line is older
    board.close()


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (
            "06-18-2025 11:25:24 RAM 1024/4096MB (lfb 2x4MB) SWAP 1/2MB CPU [1%@1420,2%@729]"
            " GR3D_FREQ 30%@[510] NVDEC off cpu@60C gpu@49.5C tj@61C VDD_IN 4824mW/4000mW VDD_SOC 518mW/5mW",
            {"gpu": 30.0, "graphicsClock": 510.0, "temp": 49.5, "powerWatts": 4.824, "memoryAllocated": 25.0},
        ),
        ("RAM 1024/4096MB GR3D_FREQ 0% GPU@39C VDD_SYS_GPU 182/182 VDD_IN 5297/5297 VDD_4V0_WIFI 0/0",
         {"gpu": 0.0, "temp": 39.0, "powerWatts": 5.297, "gpuRailWatts": 0.182, "memoryAllocated": 25.0}),
        ("RAM 1024/4096MB tj@52.4C gpu@-256C VDD_GPU_SOC 2171mW",
         {"temp": 52.4, "powerWatts": 2.171, "gpuRailWatts": 2.171, "memoryAllocated": 25.0}),
        # AGX Orin: the sum of the rails of the input, without the memory's rail behind VIN_SYS_5V0.
        ("07-25-2026 09:08:28 IRAM 0/252kB GR3D_FREQ 12%@[1300,1300] NVENC0_FREQ @1140 gpu@47.6C/46.1C "
         "tj@52C/52C VDDQ_VDD2_1V8AO 900mW/900mW/900mW VDD_GPU_SOC 5000mW/1mW/1mW VDD_CPU_CV 3000mW/1mW/1mW "
         "VIN_SYS_5V0 5500mW/5500mW/5500mW",
         {"gpu": 12.0, "graphicsClock": 1300.0, "temp": 47.6, "powerWatts": 13.5, "gpuRailWatts": 5.0}),
        # Thor: VIN is the whole board.
        ("GR3D_FREQ @[1575,1575,1575] VDD_GPU 4386mW/1mW VDD_CPU_SOC_MSS 6764mW/1mW VIN_SYS_5V0 7600mW/1mW "
         "VIN 26700mW/1mW", {"graphicsClock": 1575.0, "powerWatts": 26.7, "gpuRailWatts": 4.386}),
        # AGX Xavier: six rails, of which only some are named after their voltage.
        ("APE 150 MTS fg 0% bg 0% GPU 300/310 CPU 1000/900 SOC 920/920 CV 0/0 VDDRQ 144/144 SYS5V 1320/1320",
         {"powerWatts": 3.684, "gpuRailWatts": 0.3}),
        ("GR3D_FREQ 5%@114 POM_5V_IN 3000/2900", {"gpu": 5.0, "graphicsClock": 114.0, "powerWatts": 3.0}),
        ("POM_5V_CPU 400/1 POM_5V_IN 3000/2900 POM_5V_GPU 700/1", {"powerWatts": 3.0, "gpuRailWatts": 0.7}),
        # Before JetPack 4, and with another unit of the memory.
        ("RAM 1024/4096MB (lfb 9x4MB) cpu [0%,0%]@102 EMC 0%@1600 VDE 0 GR3D 7%@76 EDP limit 1734",
         {"gpu": 7.0, "graphicsClock": 76.0, "memoryAllocated": 25.0}),
        ("RAM 1/4GB GR3D_FREQ 1%", {"gpu": 1.0, "memoryAllocated": 25.0}),
        ("RAM GR3D_FREQ", {}),
        ("", {}),
    ],
)  # fmt: skip
def test_lines_of_several_boards(line: str, expected: dict[str, float]) -> None:
    gauges = parse(line).gauges
    gauges.pop("memoryTotal", None)
    assert gauges.pop("memoryAllocatedBytes", 1024 * MIB) == 1024 * MIB
    assert gauges == pytest.approx(expected)


CHIP = "sys/class/tenstorrent/tenstorrent!1"
BLACKHOLE = pci("0000:04:00.0", "1e52") | {
    f"{CHIP}/tt_aiclk": "1350\n",
    f"{CHIP}/tt_card_type": "p150a\n",
    f"{CHIP}/tt_serial": "0100\n",
    f"{CHIP}/device/hwmon/hwmon7/temp1_input": "44500\n",
    f"{CHIP}/device/hwmon/hwmon7/power1_input": "90000000\n",
    f"{CHIP}/device/hwmon/hwmon7/power1_max": "180000000\n",
}


def test_tenstorrent_driver(tmp_path: Path) -> None:
    cards = tenstorrent(plant(tmp_path, BLACKHOLE))
    assert sample(cards, 1.0) == {
        "gpu.1.temp": 44.5,
        "gpu.1.powerWatts": 90.0,
        "gpu.1.powerPercent": 50.0,
        "gpu.1.enforcedPowerLimitWatts": 180.0,
        "gpu.1.graphicsClock": 1350.0,
    }
    assert cards.facts == {"accelerator_tenstorrent": [{"index": 1, "name": "p150a", "serial": "0100"}]}
    assert set(cards.absent) == {"gpu", "memoryAllocatedBytes", "voltage", "fanRpm"}
    put(tmp_path, f"{CHIP}/device/hwmon/hwmon7/power1_input", "4000000000000\n")
    assert "gpu.1.powerWatts" not in sample(cards, 2.0)


def test_tenstorrent_tool_if_the_driver_has_no_sensors(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    snapshot = (
        '{"device_info": [{"telemetry": {"asic_temperature": "40.0"}, "board_info": {"bus_id": "N/A"}}]}'
    )
    tool(tmp_path, monkeypatch, "tt-smi", f"Detected chips: 1\n{snapshot}", "exit 134")
    cards = tenstorrent(plant(tmp_path / "root", pci("0000:04:00.0", "1e52")))
    assert values(cards) == {"gpu.0.temp": 40.0}


def test_a_processors_npu(tmp_path: Path) -> None:
    folder = "sys/class/accel/accel0/device"
    root = {
        f"{folder}/driver": "-> ../../../../bus/pci/drivers/intel_vpu",
        f"{folder}/npu_busy_time_us": "1000000\n",
        f"{folder}/npu_memory_utilization": "4096\n",
        f"{folder}/npu_current_frequency_mhz": "1400\n",
    }
    source = npu(plant(tmp_path, root))
    assert sample(source, 10.0) == {"gpu.0.memoryAllocatedBytes": 4096.0, "gpu.0.graphicsClock": 1400.0}
    put(tmp_path, f"{folder}/npu_busy_time_us", "1500000\n")
    assert sample(source, 12.0)["gpu.0.gpu"] == pytest.approx(25.0)


def test_accelerators_of_other_drivers_are_ignored(tmp_path: Path) -> None:
    folder = "sys/class/accel/accel0/device"
    with pytest.raises(Absent, match="no device of intel_vpu"):
        npu(plant(tmp_path, {f"{folder}/driver": "-> ../drivers/amdxdna", f"{folder}/vendor": "0x1022\n"}))
