"""AMD GPUs in sysfs: keys, indices, and cards that fail, sleep, are lost and come back."""

from __future__ import annotations

from pathlib import Path
from struct import pack_into

import pytest

from runvitals.model.metrics import DEFINITIONS
from tests.monitoring.collectors.amd.cards import GIB, Driver, card, folder, tick, watch
from tests.monitoring.collectors.trees import plant, put

# card1 has the higher PCI address.
TWO = card(1, "0000:83:00.0") | card(2, "0000:03:00.0", gpu_busy_percent="99", power1_cap="300000000")


def test_a_card_has_all_readings_as_declared_metrics(tmp_path: Path) -> None:
    gpus = watch(plant(tmp_path, card(1, "0000:83:00.0")), tmp_path)
    moment = tick(gpus, 100.0)
    assert moment.gauges == {
        "gpu.0.gpu": 63.0,
        "gpu.0.memory": 17.0,
        "gpu.0.memoryAllocatedBytes": 16.0 * GIB,
        "gpu.0.memoryAllocated": 25.0,
        "gpu.0.gttAllocatedBytes": 1.0 * GIB,
        "gpu.0.gttAllocated": 0.78125,
        "gpu.0.memoryOverDrive": 0.0,
        "gpu.0.temp": 61.5,
        "gpu.0.memoryTemp": 61.5,
        "gpu.0.edgeTemp": 44.0,
        "gpu.0.junctionTemp": 57.0,
        "gpu.0.powerWatts": 210.0,
        "gpu.0.enforcedPowerLimitWatts": 280.0,
        "gpu.0.powerPercent": 75.0,
        "gpu.0.busySuspect": 0.0,
        "gpu.0.fanSpeed": 20.0,
        "gpu.0.fanRpm": 1534.0,
        "gpu.0.graphicsClock": 1290.0,
        "gpu.0.memoryClock": 1600.0,
    }
    assert moment.counters == {
        "gpu.0.pcieReplays": 4.0,
        "gpu.0.correctedMemoryErrors": 9.0,
        "gpu.0.unCorrectedMemoryErrors": 1.0,
    }
    unread = "not in sysfs; amd-smi or rocm-smi may report it, but neither is installed"
    assert gpus.absent == {"ubbPowerWatts": unread, "energyJoules": unread}
    gpus.close()


def test_cards_are_numbered_in_pci_order(tmp_path: Path) -> None:
    gpus = watch(plant(tmp_path, TWO), tmp_path)
    gauges = tick(gpus, 100.0).gauges
    assert (gauges["gpu.0.gpu"], gauges["gpu.1.gpu"]) == (99.0, 63.0)
    listed = gpus.facts["gpu_amd"]
    assert isinstance(listed, list)
    assert [(gpu["index"], gpu["pci"], gpu["card"]) for gpu in listed] == [
        (0, "0000:03:00.0", "card2"),
        (1, "0000:83:00.0", "card1"),
    ]
    gpus.close()


def test_indices_follow_those_of_nvidia_gpus(tmp_path: Path) -> None:
    gpus = watch(plant(tmp_path, TWO | {"proc/driver/nvidia/gpus/0000:01:00.0/": ""}), tmp_path)
    assert {key.split(".")[1] for key in tick(gpus, 100.0).gauges} == {"1", "2"}
    gpus.close()


def test_a_failing_file_affects_only_its_reading_and_recovers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    driver = Driver(monkeypatch)
    gpus = watch(plant(tmp_path, TWO), tmp_path)
    driver.failing.add("card1/device/gpu_busy_percent")
    gauges = tick(gpus, 100.0).gauges
    assert "gpu.1.gpu" not in gauges
    assert (gauges["gpu.1.powerWatts"], gauges["gpu.0.gpu"]) == (210.0, 99.0)
    unread = "not in sysfs; amd-smi or rocm-smi may report it, but neither is installed"
    assert gpus.absent["gpu"] == f"{unread} (GPU 1)"
    assert gpus.absent["busySuspect"] == "needs `gpu` and `powerPercent` (GPU 1)"
    assert gpus.absent["energyJoules"] == unread
    driver.failing.clear()
    assert tick(gpus, 101.5).gauges["gpu.1.gpu"] == 63.0
    assert set(gpus.absent) == {"ubbPowerWatts", "energyJoules"}
    gpus.close()


def test_a_lost_card_is_reported_and_found_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    driver = Driver(monkeypatch)
    gpus = watch(plant(tmp_path, TWO), tmp_path)
    tick(gpus, 100.0)
    driver.failing.add("drm/card1/")
    moment = tick(gpus, 110.5)
    assert {key for key in moment.gauges if key.startswith("gpu.1.")} == set()
    assert moment.gauges["gpu.0.gpu"] == 99.0
    assert moment.events == [
        {
            "name": "device_lost",
            "level": "error",
            "text": "AMD GPU 0000:83:00.0 can no longer be read",
            "pci": "0000:83:00.0",
        }
    ]
    for mono_s in (111.0, 130.0):
        assert tick(gpus, mono_s).events == []
    assert tick(gpus, 215.0).gauges["gpu.0.gpu"] == 99.0
    assert gpus.absent["gpu.1"] == "none of its files can be read"
    driver.failing.clear()
    moment = tick(gpus, 250.0)
    assert moment.gauges["gpu.1.gpu"] == 63.0
    assert [event["name"] for event in moment.events] == ["device_back"]
    assert "gpu.1" not in gpus.absent
    gpus.close()


def test_a_card_added_later_is_found(tmp_path: Path) -> None:
    gpus = watch(plant(tmp_path, card(1, "0000:83:00.0")), tmp_path)
    tick(gpus, 100.0)
    plant(tmp_path, card(2, "0000:03:00.0", gpu_busy_percent="5"))
    gauges = tick(gpus, 131.0).gauges
    # It does not take the other's index, although its PCI address is lower.
    assert (gauges["gpu.0.gpu"], gauges["gpu.1.gpu"]) == (63.0, 5.0)
    gpus.close()


def test_a_card_that_is_asleep_is_not_woken_up(tmp_path: Path) -> None:
    gpus = watch(plant(tmp_path, card(1, "0000:83:00.0", runtime_status="suspended")), tmp_path)
    moment = tick(gpus, 100.0)
    assert (moment.gauges, moment.counters, moment.events) == ({}, {}, [])
    assert gpus.absent == {"gpu.0": "it is asleep, and reading it would wake it up"}
    put(tmp_path, f"{folder(1)}/power/runtime_status", "active\n")
    assert tick(gpus, 101.0).gauges["gpu.0.gpu"] == 63.0
    gpus.close()


@pytest.mark.parametrize("text", ["N/A", "", "-1", "unsupported"])
def test_invalid_numbers_are_left_out(tmp_path: Path, text: str) -> None:
    names = ("gpu_busy_percent", "mem_busy_percent", "power1_average", "mem_info_vram_used", "power1_cap")
    gpus = watch(plant(tmp_path, card(1, "0000:83:00.0", **dict.fromkeys(names, text))), tmp_path)
    gauges = tick(gpus, 100.0).gauges
    missing = ("gpu", "memory", "powerWatts", "powerPercent", "memoryAllocatedBytes", "memoryAllocated")
    assert [name for name in missing if f"gpu.0.{name}" in gauges] == []
    assert gauges["gpu.0.temp"] == 61.5
    gpus.close()


@pytest.mark.parametrize(
    ("changes", "temp"),
    [
        ({"temp3_label": None, "temp3_input": None}, 57.0),
        ({"temp2_label": "edge", "temp3_label": "vddgfx"}, 44.0),
        ({"temp1_label": None, "temp2_label": None, "temp3_label": None}, 44.0),
    ],
)
def test_temperature_is_memory_then_junction_then_edge(
    tmp_path: Path, changes: dict[str, str | None], temp: float
) -> None:
    gpus = watch(plant(tmp_path, card(1, "0000:83:00.0", **changes)), tmp_path)
    gauges = tick(gpus, 100.0).gauges
    assert gauges["gpu.0.temp"] == temp
    assert "gpu.0.memoryTemp" not in gauges
    gpus.close()


def test_full_utilization_at_a_tenth_of_the_power_is_suspect(tmp_path: Path) -> None:
    tree = card(1, "0000:83:00.0", gpu_busy_percent="100", power1_average="28000000")
    gpus = watch(plant(tmp_path, tree), tmp_path)
    assert tick(gpus, 100.0).gauges["gpu.0.busySuspect"] == 1.0
    gpus.close()


def test_counters_are_passed_on_unchanged_after_a_reset(tmp_path: Path) -> None:
    gpus = watch(plant(tmp_path, card(1, "0000:83:00.0")), tmp_path)
    assert tick(gpus, 100.0).counters["gpu.0.pcieReplays"] == 4.0
    put(tmp_path, f"{folder(1)}/pcie_replay_count", "0\n")
    assert tick(gpus, 111.0).counters["gpu.0.pcieReplays"] == 0.0
    gpus.close()


def test_an_idle_chip_without_an_active_clock_has_none(tmp_path: Path) -> None:
    gpus = watch(plant(tmp_path, card(1, "0000:83:00.0", pp_dpm_sclk="0: 500Mhz\n1: 900Mhz")), tmp_path)
    assert "gpu.0.graphicsClock" not in tick(gpus, 100.0).gauges
    gpus.close()


def test_an_apu_without_active_clocks_keeps_those_of_gpu_metrics_between_reads(
    tmp_path: Path,
) -> None:
    table = bytearray(b"\xff" * 200)
    pack_into("<HBB", table, 0, 200, 2, 3)
    pack_into("<H", table, 76, 1100)
    pack_into("<H", table, 68, 800)
    idle = {"pp_dpm_sclk": "0: 200Mhz\n1: 2900Mhz", "pp_dpm_mclk": None}
    scope = plant(tmp_path, card(0, "0000:c5:00.0", **idle))
    (tmp_path / folder(0) / "gpu_metrics").write_bytes(table)
    gpus = watch(scope, tmp_path)
    for mono_s in (100.0, 101.0, 106.0):
        gauges = tick(gpus, mono_s).gauges
        assert (gauges["gpu.0.graphicsClock"], gauges["gpu.0.memoryClock"]) == (1100.0, 800.0)
    gpus.close()


def test_every_key_has_its_declared_kind(tmp_path: Path) -> None:
    gpus = watch(plant(tmp_path, card(1, "0000:83:00.0")), tmp_path)
    moment = tick(gpus, 100.0)
    for kind, keys in (("gauge", moment.gauges), ("counter", moment.counters)):
        for key in keys:
            match = DEFINITIONS.find(key)
            assert match is not None, f"the metadata store does not know {key}"
            assert (match.key, match.metric.kind) == (key, kind)
    gpus.close()
