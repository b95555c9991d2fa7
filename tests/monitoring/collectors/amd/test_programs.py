"""Output of many versions of rocm-smi and amd-smi, and programs that fail, hang or print garbage."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import Any

import pytest

from runvitals.monitoring.collectors.amd import amd_smi, rocm_smi
from runvitals.monitoring.collectors.amd.collector import AmdGpus, open_gpus
from runvitals.monitoring.collectors.amd.probe import probe
from runvitals.monitoring.collectors.amd.readings import derive
from runvitals.monitoring.collectors.amd.tools import AmdSmi
from runvitals.monitoring.collectors.base import Tick
from runvitals.monitoring.collectors.plumbing import lenient_json
from tests.monitoring.collectors.amd.cards import GIB, card, tick
from tests.monitoring.collectors.plumbing.test_tool import program, soon
from tests.monitoring.collectors.trees import BARE_VM, plant

MIB = 1 << 20
OLD = {
    "Unique ID": "0xa1b2c3d4e5f60001",
    "Temperature (Sensor edge) (c)": "40.0",
    "Temperature (Sensor junction) (c)": "52.0",
    "Temperature (Sensor memory) (c)": "49.0",
    "mclk clock speed:": "(1600Mhz)",
    "sclk clock speed:": "(1290Mhz)",
    "Fan speed (level)": "51",
    "Fan speed (%)": "20",
    "GPU OverDrive value (%)": "0",
    "GPU Memory OverDrive value (%)": "2",
    "Max Graphics Package Power (W)": "300.0",
    "Average Graphics Package Power (W)": "150.0",
    "GPU use (%)": "64",
    "GPU memory use (%)": "12",
    "PCIe Replay Count": "3",
    "Accumulated Energy (uJ)": "2500000.0",
    "VRAM Total Memory (B)": str(32 * GIB),
    "VRAM Total Used Memory (B)": str(8 * GIB),
    "PCI Bus": "0000:2F:00.0",
    "Card series": "Instinct MI210",
}
NEW = {
    "Temperature (Sensor edge) (C)": "N/A",
    "Temperature (Sensor junction) (C)": "71.0",
    "Temperature (Sensor memory) (C)": "N/A",
    "Temperature (Sensor HBM 0) (C)": "55.0",
    "Temperature (Sensor HBM 1) (C)": "58.0",
    "Current Socket Graphics Package Power (W)": "402.0",
    "Max Graphics Package Power (W)": "750.0",
    "GPU use (%)": "20.3",
    "GPU Memory Allocated (VRAM%)": "33",
    "GPU Memory Read/Write Activity (%)": "7",
    "Card Series": "AMD Instinct MI300X",
}


def test_rocm_smi_of_old_and_new_versions() -> None:
    new, old = rocm_smi.parse({"card1": NEW, "system": {"Driver version": "6.7"}, "card0": OLD})
    assert (new.index, old.index) == (1, 0)
    assert (old.pci, old.title, old.unique_id) == ("0000:2f:00.0", "Instinct MI210", "a1b2c3d4e5f60001")
    derived = derive(old.readings)
    assert derived["temp"] == derived["memoryTemp"] == 49.0
    assert (derived["powerWatts"], derived["powerPercent"], derived["energyJoules"]) == (150.0, 50.0, 2.5)
    assert (derived["gpu"], derived["memory"], derived["memoryAllocated"]) == (64.0, 12.0, 25.0)
    assert (derived["graphicsClock"], derived["fanSpeed"], derived["pcieReplays"]) == (1290.0, 20.0, 3.0)
    derived = derive(new.readings)
    assert (derived["gpu"], derived["memory"], derived["memoryAllocated"]) == (20.3, 7.0, 33.0)
    assert (derived["temp"], derived["powerWatts"]) == (58.0, 402.0)


@pytest.mark.parametrize("text", ["N/A", "", "unknown", "-1", "N/A (Secondary die)", "None"])
def test_rocm_smi_without_values_has_no_readings(text: str) -> None:
    temperatures = [key for key in OLD if key.startswith("Temperature")]
    nothing = {key: text for key in OLD if key not in temperatures}
    (device,) = rocm_smi.parse({"card0": nothing})
    assert derive(device.readings) == {}


@pytest.mark.parametrize("output", [{}, {"system": {"Driver version": "6.7"}}, {"card0": "N/A"}, []])
def test_rocm_smi_without_cards(output: Any) -> None:
    assert rocm_smi.parse(output) == []


def amount(value: object, unit: str) -> dict[str, object]:
    return {"value": value, "unit": unit}


METRIC = {
    "gpu": 0,
    "usage": {"gfx_activity": amount(91, "%"), "umc_activity": amount(40, "%"), "mm_activity": "N/A"},
    "power": {"socket_power": amount(350, "W"), "gfx_voltage": amount(800, "mV")},
    "clock": {
        "gfx_0": {"clk": amount(2100, "MHz"), "min_clk": amount(500, "MHz")},
        "gfx_1": {"clk": amount(2090, "MHz")},
        "mem_0": {"clk": amount(900, "MHz")},
    },
    "temperature": {"edge": "N/A", "hotspot": amount(66, "C"), "mem": amount(58, "C")},
    "pcie": {"width": 16, "replay_count": 0},
    "ecc": {"total_correctable_count": 2, "total_uncorrectable_count": 1},
    "fan": {"speed": "N/A", "usage": "N/A"},
    "energy": {"total_energy_consumption": amount(1234.5, "J")},
    "mem_usage": {"total_vram": amount(65536, "MB"), "used_vram": amount(16384, "MB")},
}
STATIC = {
    "gpu": 0,
    "asic": {"market_name": "AMD Instinct MI300X"},
    "bus": {"bdf": "0000:05:00.0"},
    "uuid": "0FFF74A0-0000",
    "limit": {"ppt0": {"socket_power_limit": amount(700, "W"), "max_power_limit": amount(750, "W")}},
}


@pytest.mark.parametrize("output", [[METRIC], {"gpu_data": [METRIC]}, METRIC, {"gpu0": METRIC}])
def test_amd_smi_of_all_versions(output: Any) -> None:
    (device,) = amd_smi.parse_metric(output)
    derived = derive(device.readings)
    assert (derived["gpu"], derived["memory"], derived["powerWatts"]) == (91.0, 40.0, 350.0)
    assert (derived["temp"], derived["graphicsClock"], derived["memoryClock"]) == (58.0, 2100.0, 900.0)
    assert (derived["memoryAllocatedBytes"], derived["memoryAllocated"]) == (16384.0 * MIB, 25.0)
    assert (derived["correctedMemoryErrors"], derived["unCorrectedMemoryErrors"]) == (2.0, 1.0)
    assert derived["energyJoules"] == 1234.5
    assert "fanSpeed" not in derived


def test_amd_smi_fan_baseboard_and_apu_clocks() -> None:
    output = {
        "gpu_data": [
            {
                "gpu": 0,
                "power": {
                    "socket_power": {"value": 140, "unit": "W"},
                    "ubb_power": {"value": 1200, "unit": "W"},
                },
                "fan": {"speed": 61, "max": 255, "rpm": 1520, "usage": {"value": 24.0, "unit": "%"}},
                "clock": {
                    "apu_gfxclk": {"clk": {"value": 1100, "unit": "MHz"}},
                    "average_uclk_frequency": {"value": 800, "unit": "MHz"},
                    "average_socclk_frequency": {"value": 600, "unit": "MHz"},
                },
            },
            {
                "gpu": 1,
                "power": {"ubb_power": "N/A"},
                "fan": {"rpm": "N/A"},
                "clock": {"gfx_0": {"clk": "N/A"}},
            },
        ]
    }
    first, second = amd_smi.parse_metric(output)
    assert first.readings == {
        "powerWatts": 140.0,
        "ubbPowerWatts": 1200.0,
        "fanSpeed": 24.0,
        "fanRpm": 1520.0,
        "graphicsClock": 1100.0,
        "memoryClock": 800.0,
    }
    assert second.readings == {}


def test_amd_smi_of_a_partition_whose_sections_are_missing() -> None:
    nothing = dict.fromkeys(METRIC, "N/A")
    first, second = amd_smi.parse_metric([METRIC, {**nothing, "gpu": 1}])
    assert first.readings["gpu"] == 91.0
    assert (second.index, second.readings) == (1, {})


@pytest.mark.parametrize(
    ("limit", "watts"),
    [
        ({"max_power": amount(550, "W"), "socket_power": amount(500, "W")}, 500.0),
        ({"max_power": amount(550, "W"), "socket_power": amount(0, "W")}, 550.0),
        ({"ppt0": {"socket_power_limit": amount(700, "W")}, "ppt1": "N/A"}, 700.0),
        ("N/A", None),
    ],
)
def test_amd_smis_limits(limit: object, watts: float | None) -> None:
    (device,) = amd_smi.parse_static([{"gpu": 0, "limit": limit}])
    assert device.readings.get("enforcedPowerLimitWatts") == watts


@pytest.mark.parametrize("output", ["text", 5, None])
def test_output_without_a_list_of_gpus_is_an_error(output: object) -> None:
    with pytest.raises(ValueError, match="invalid amd-smi output: expected a list of GPUs"):
        amd_smi.parse_metric(output)
    with pytest.raises(ValueError, match="invalid rocm-smi output: expected an object of cards"):
        rocm_smi.parse(output)


def test_an_invalid_name_does_not_affect_readings() -> None:
    text = json.dumps({"card0": OLD}).encode().replace(b"Instinct", b"Inst\xff\xfect")
    assert rocm_smi.parse(lenient_json.find(text))[0].readings["gpu"] == 64.0


# -- programs on a machine without sysfs


@pytest.fixture
def bin_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    return tmp_path / "bin"


def prints(folder: Path, name: str, text: str) -> None:
    """A program that prints a text."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}.out").write_text(text)
    program(folder, name, f"exec /bin/cat {folder}/{name}.out")


def prints_amd_smi(folder: Path, metric: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "metric").write_text(metric)
    (folder / "static").write_text(json.dumps([STATIC]))
    program(folder, "amd-smi", f"exec /bin/cat {folder}/$1")


def answer(gpus: AmdGpus, mono_s: float) -> Tick:
    return soon(lambda: tick(gpus, mono_s), lambda moment: bool(moment.gauges))


def failure(gpus: AmdGpus, mono_s: float) -> str:
    soon(lambda: tick(gpus, mono_s), lambda _: "programs" in gpus.absent)
    return gpus.absent["programs"]


def test_rocm_smi_output_after_a_warning(tmp_path: Path, bin_folder: Path) -> None:
    prints(bin_folder, "rocm-smi", f"WARNING: [old] driver\n{json.dumps({'card1': NEW, 'card0': OLD})}\n")
    gpus = probe(plant(tmp_path, BARE_VM))
    moment = answer(gpus, 100.0)
    assert (moment.gauges["gpu.0.gpu"], moment.gauges["gpu.1.gpu"]) == (64.0, 20.3)
    assert moment.counters["gpu.0.pcieReplays"] == 3.0
    listed = gpus.facts["gpu_amd"]
    assert isinstance(listed, list)
    assert [(gpu["pci"], gpu["source"]) for gpu in listed] == [("0000:2f:00.0", "rocm-smi"), ("", "rocm-smi")]
    gpus.close()


def test_truncated_json_is_an_error(tmp_path: Path, bin_folder: Path) -> None:
    prints(bin_folder, "rocm-smi", json.dumps({"card0": OLD, "card1": NEW})[:-30])
    gpus = probe(plant(tmp_path, BARE_VM))
    assert failure(gpus, 100.0).startswith("rocm-smi: invalid JSON in the output")
    gpus.close()


def test_a_program_that_lists_no_gpu_is_followed_by_the_next(tmp_path: Path, bin_folder: Path) -> None:
    prints_amd_smi(bin_folder, "[]")
    prints(bin_folder, "rocm-smi", json.dumps({"card0": OLD}))
    gpus = probe(plant(tmp_path, BARE_VM))
    assert answer(gpus, 100.0).gauges["gpu.0.gpu"] == 64.0
    gpus.close()


def test_amd_smi_is_preferred_over_rocm_smi(tmp_path: Path, bin_folder: Path) -> None:
    prints_amd_smi(bin_folder, json.dumps([METRIC]))
    prints(bin_folder, "rocm-smi", json.dumps({"card0": OLD}))
    gpus = probe(plant(tmp_path, BARE_VM))
    assert answer(gpus, 100.0).gauges["gpu.0.gpu"] == 91.0
    # The limit comes from a separate process, which may take longer. Later readings have it.
    moments = itertools.count(100.0, 0.02)
    later = soon(lambda: tick(gpus, next(moments)), lambda moment: bool(moment.gauges))
    assert later.gauges["gpu.0.powerPercent"] == 50.0
    gpus.close()


def test_limits_are_kept_when_reading_them_again_fails(bin_folder: Path) -> None:
    prints_amd_smi(bin_folder, json.dumps([METRIC]))
    amd = AmdSmi(f"{bin_folder}/amd-smi", 1.0)
    moments = itertools.count(100.0, 0.02)
    assert soon(lambda: amd.devices(next(moments)), lambda devices: bool(devices and devices[0].title))
    (bin_folder / "static").unlink()
    moments = itertools.count(1100.0, 0.02)
    for _ in range(2):
        (device,) = soon(lambda: amd.devices(next(moments))) or []
        assert device.title
    amd.close()


def test_a_hanging_program_is_killed_and_reported(tmp_path: Path, bin_folder: Path) -> None:
    program(bin_folder, "rocm-smi", "exec /bin/sleep 60")
    gpus = probe(plant(tmp_path, BARE_VM))
    tick(gpus, 100.0)
    assert failure(gpus, 111.0).endswith("rocm-smi took longer than 10 s and was killed")
    gpus.close()


def test_a_failing_programs_output_is_in_the_reason(tmp_path: Path, bin_folder: Path) -> None:
    program(bin_folder, "rocm-smi", "echo 'ERROR: driver not initialized' >&2; exit 2")
    gpus = probe(plant(tmp_path, BARE_VM))
    assert "driver not initialized" in failure(gpus, 100.0)
    gpus.close()


def test_a_program_adds_only_what_sysfs_lacks(tmp_path: Path, bin_folder: Path) -> None:
    prints(bin_folder, "rocm-smi", json.dumps({"card0": OLD}))
    gpus = open_gpus(plant(tmp_path, card(1, "0000:2f:00.0", power1_average=None)))
    moment = soon(lambda: tick(gpus, 100.0), lambda moment: "gpu.0.powerWatts" in moment.gauges)
    assert (moment.gauges["gpu.0.powerWatts"], moment.gauges["gpu.0.gpu"]) == (150.0, 63.0)
    gpus.close()


@pytest.mark.parametrize("number", [-1, 51236, 1e300, "99999999999"])
def test_an_invalid_gpu_number_is_replaced_by_its_position(number: object) -> None:
    output = [{"gpu": 0}, {"gpu": number, "usage": {"gfx_activity": "7 %"}}]
    assert [device.index for device in amd_smi.parse_metric(output)] == [0, 1]
    assert rocm_smi.parse({f"card{number}": OLD, "card1": OLD})[0].index == 1
