"""The child that reads AMD's library, with a fake `amdsmi` module: in this process and as a child."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from runvitals.monitoring.collectors.amd.amdsmi_child import AmdsmiLibrary
from runvitals.monitoring.collectors.amd.probe import probe
from runvitals.monitoring.collectors.amd.readings import AmdGpuReport, derive
from runvitals.monitoring.collectors.amd.tools import AmdSmiLibrary, programs
from runvitals.monitoring.collectors.plumbing.tool import ToolFailed
from tests.monitoring.collectors.amd.cards import GIB, card, tick
from tests.monitoring.collectors.plumbing.test_tool import program, soon
from tests.monitoring.collectors.trees import BARE_VM, plant, put

# As in the real library: handles are objects without a number, missing values are "N/A", unsupported calls
# raise an exception.
FAKE = """
import json, os, time
from enum import IntEnum

NOT_SUPPORTED, NOT_INITIALIZED = 2, 32

class AmdSmiException(Exception):
    pass
class AmdSmiLibraryException(AmdSmiException):
    def __init__(self, err_code):
        super().__init__(err_code)
        self.err_code = err_code
    def __str__(self):
        return f"Error code:\\n\\t{self.err_code} | AMDSMI_STATUS"
class AmdSmiTimeoutException(AmdSmiLibraryException):
    def __init__(self):
        super().__init__(8)
class AmdSmiParameterException(AmdSmiException):
    pass

class AmdSmiTemperatureType(IntEnum):
    EDGE = 0
    HOTSPOT = 1
    JUNCTION = 1
    VRAM = 2
class AmdSmiTemperatureMetric(IntEnum):
    CURRENT = 0
class AmdSmiClkType(IntEnum):
    GFX = 0
    MEM = 5

class Handle:
    def __init__(self, gpu):
        self.gpu = gpu

GPUS = []
_initialized = False

def amdsmi_init():
    global _initialized
    _initialized = True

def amdsmi_get_processor_handles():
    if not _initialized:
        raise AmdSmiLibraryException(NOT_INITIALIZED)
    return [Handle(gpu) for gpu in GPUS]

def _get(handle, name):
    if not isinstance(handle, Handle):
        raise AmdSmiParameterException(name)
    if name not in handle.gpu:
        raise AmdSmiLibraryException(NOT_SUPPORTED)
    value = handle.gpu[name]
    if value == "timeout":
        raise AmdSmiTimeoutException()
    return value

def amdsmi_get_gpu_device_bdf(handle): return _get(handle, "bdf")
def amdsmi_get_gpu_device_uuid(handle): return _get(handle, "uuid")
def amdsmi_get_gpu_activity(handle): return _get(handle, "activity")
def amdsmi_get_power_info(handle): return _get(handle, "power")
def amdsmi_get_power_cap_info(handle): return _get(handle, "cap")
def amdsmi_get_gpu_vram_usage(handle): return _get(handle, "vram")
def amdsmi_get_gpu_total_ecc_count(handle): return _get(handle, "ecc")
def amdsmi_get_energy_count(handle): return _get(handle, "energy")
def amdsmi_get_temp_metric(handle, sensor, metric):
    if not isinstance(sensor, AmdSmiTemperatureType) or not isinstance(metric, AmdSmiTemperatureMetric):
        raise AmdSmiParameterException(sensor)
    return _get(handle, f"temp {int(sensor)}")
def amdsmi_get_clock_info(handle, kind):
    if not isinstance(kind, AmdSmiClkType):
        raise AmdSmiParameterException(kind)
    return _get(handle, f"clock {int(kind)}")
"""
# An MI300X. The average socket power belongs to another generation.
MI300X: dict[str, Any] = {
    "bdf": "0000:05:00.0",
    "uuid": "42FF74A1-0000-1000-80AB-1234567890AB",
    "activity": {"gfx_activity": 88, "umc_activity": 41, "mm_activity": "N/A"},
    "power": {
        "socket_power": 512, "current_socket_power": 512, "average_socket_power": "N/A", "gfx_voltage": "N/A",
        "soc_voltage": "N/A", "mem_voltage": "N/A", "power_limit": 750,
    },
    "cap": {"power_cap": 750_000_000, "default_power_cap": 750_000_000, "dpm_cap": 0, "min_power_cap": 0,
            "max_power_cap": 750_000_000},
    "vram": {"vram_total": 196_608, "vram_used": 49_152},
    "ecc": {"correctable_count": 3, "uncorrectable_count": 1, "deferred_count": 0},
    "energy": {"energy_accumulator": 2_000_000, "counter_resolution": 15.25, "timestamp": 1},
    "temp 1": 66,
    "temp 2": 58,
    "clock 0": {"clk": 2100, "min_clk": 132, "max_clk": 2100, "clk_locked": False, "clk_deep_sleep": "N/A"},
    "clock 5": {"clk": 1300, "min_clk": 900, "max_clk": 1300, "clk_locked": "N/A", "clk_deep_sleep": "N/A"},
}  # fmt: skip
READ = {
    "gpu": 88.0,
    "memory": 41.0,
    "powerWatts": 512.0,
    "enforcedPowerLimitWatts": 750.0,
    "energyJoules": 30.5,
    "junctionTemp": 66.0,
    "memoryTemp": 58.0,
    "graphicsClock": 2100.0,
    "memoryClock": 1300.0,
    "correctedMemoryErrors": 3.0,
    "unCorrectedMemoryErrors": 1.0,
    "memoryAllocatedBytes": 48.0 * GIB,
    "memoryTotalBytes": 192.0 * GIB,
}


def amdsmi(*gpus: dict[str, Any]) -> ModuleType:
    """The initialized library on a machine with these GPUs."""
    module = ModuleType("amdsmi")
    exec(compile(FAKE, "amdsmi", "exec"), module.__dict__)
    module.GPUS.extend(gpus)
    module.amdsmi_init()
    return module


def gpus(*reported: dict[str, Any]) -> list[dict[str, Any]]:
    return AmdsmiLibrary(amdsmi(*reported)).gpus()


def test_all_readings_of_an_instinct() -> None:
    (gpu,) = gpus(MI300X)
    assert gpu["readings"] == READ
    assert (gpu["index"], gpu["pci"]) == (0, "0000:05:00.0")
    assert gpu["uuid"] == "42FF74A1-0000-1000-80AB-1234567890AB"
    written = derive(gpu["readings"])
    assert (written["temp"], written["memoryAllocated"]) == (58.0, 25.0)
    assert written["powerPercent"] == pytest.approx(512.0 / 7.5)


@pytest.mark.parametrize(
    ("power", "watts"),
    [
        ({"average_socket_power": 210}, 210.0),  # before ROCm 7
        ({"socket_power": "N/A", "current_socket_power": "N/A", "average_socket_power": 210}, 210.0),
        ({"socket_power": 0xFFFFFFFF, "current_socket_power": 305}, 305.0),
        ({"socket_power": "N/A", "current_socket_power": "N/A", "average_socket_power": "N/A"}, None),
        ("timeout", None),
    ],
)
def test_power_of_all_generations(power: object, watts: float | None) -> None:
    (gpu,) = gpus(MI300X | {"power": power})
    assert gpu["readings"].get("powerWatts") == watts


def test_names_of_older_versions() -> None:
    older = MI300X | {
        "cap": {"power_cap": 750},  # watts
        "energy": {"power": 2_000_000, "counter_resolution": 15.25},
        "clock 0": {"cur_clk": 1900, "max_clk": 2100},
    }
    (gpu,) = gpus(older)
    reported = gpu["readings"]
    assert (reported["enforcedPowerLimitWatts"], reported["energyJoules"], reported["graphicsClock"]) == (
        750.0,
        30.5,
        1900.0,
    )


def test_unsupported_readings_are_left_out() -> None:
    (gpu,) = gpus({"bdf": "0000:05:00.0", "activity": MI300X["activity"]})
    assert (gpu["pci"], gpu["uuid"], gpu["readings"]) == ("0000:05:00.0", "", {"gpu": 88.0, "memory": 41.0})


def test_na_everywhere_gives_no_readings() -> None:
    empty = {
        name: dict.fromkeys(value, "N/A") if isinstance(value, dict) else "N/A"
        for name, value in MI300X.items()
    }
    assert gpus(empty)[0]["readings"] == {}


def test_a_missing_call_or_sensor_affects_only_its_reading() -> None:
    library = amdsmi(MI300X)
    del library.amdsmi_get_power_cap_info
    del library.AmdSmiClkType
    library.AmdSmiTemperatureType = None  # type: ignore[attr-defined]
    missing = {"enforcedPowerLimitWatts", "graphicsClock", "memoryClock", "junctionTemp", "memoryTemp"}
    assert AmdsmiLibrary(library).gpus()[0]["readings"].keys() == READ.keys() - missing


def test_one_gpus_failure_does_not_affect_the_others() -> None:
    first, second = gpus(dict.fromkeys(MI300X, "timeout"), MI300X)
    assert (first["readings"], second["readings"]) == ({}, READ)
    assert second["index"] == 1


# -- in a child


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of Python packages, and no AMD program on PATH."""
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    return tmp_path / "site"


@pytest.fixture
def opened() -> Iterator[list[AmdSmiLibrary]]:
    libraries: list[AmdSmiLibrary] = []
    yield libraries
    for library in libraries:
        library.close()


def install(site: Path, *reported: dict[str, Any], more: str = "") -> str:
    put(site, "amdsmi/__init__.py", f"{FAKE}\nGPUS = {list(reported)!r}\n{more}\n")
    return str(site)


def answer(opened: list[AmdSmiLibrary], folder: str, every_s: float = 0.01) -> list[AmdGpuReport]:
    library = AmdSmiLibrary(folder, every_s)
    opened.append(library)
    devices = soon(lambda: library.devices(100.0), lambda devices: devices is not None)
    assert devices is not None
    return devices


def failure(library: AmdSmiLibrary, mono_s: Callable[[], float]) -> str:
    def attempt() -> str:
        try:
            library.devices(mono_s())
        except ToolFailed as failed:
            return str(failed)
        return ""

    return soon(attempt)


def test_the_child_reads_the_library(site: Path, opened: list[AmdSmiLibrary]) -> None:
    first, second = answer(
        opened, install(site, MI300X, MI300X | {"bdf": "0000:85:00.0", "activity": "timeout"})
    )
    assert (first.index, first.pci, first.readings) == (0, "0000:05:00.0", READ)
    assert first.unique_id == "42ff74a1-0000-1000-80ab-1234567890ab"
    assert (second.index, second.pci) == (1, "0000:85:00.0")
    assert second.readings == {name: READ[name] for name in READ if name not in ("gpu", "memory")}


def test_the_child_prints_repeatedly(site: Path, opened: list[AmdSmiLibrary]) -> None:
    folder = install(site, MI300X)
    answer(opened, folder)
    for _ in range(3):
        assert soon(lambda: opened[0].devices(101.0), lambda devices: devices is not None)


@pytest.mark.parametrize(
    ("more", "why"),
    [
        ("def amdsmi_init(): raise AmdSmiLibraryException(34)", "AmdSmiLibraryException: Error code:"),
        (
            "raise OSError('libamd_smi.so: cannot open shared object file')",
            "OSError: libamd_smi.so: cannot open",
        ),
        ("raise KeyError('ROCM_HOME')", "KeyError: 'ROCM_HOME'"),
    ],
)
def test_a_failing_library_reports_its_error(
    site: Path, opened: list[AmdSmiLibrary], more: str, why: str
) -> None:
    library = AmdSmiLibrary(install(site, more=more), 0.01)
    opened.append(library)
    assert failure(library, lambda: 100.0).startswith(why)


def test_a_library_that_crashes_is_reported(site: Path, opened: list[AmdSmiLibrary]) -> None:
    library = AmdSmiLibrary(install(site, more="def amdsmi_init(): os.abort()"), 0.01)
    opened.append(library)
    assert failure(library, lambda: 100.0).endswith("was killed by signal 6")


def test_a_hanging_library_is_killed(site: Path, opened: list[AmdSmiLibrary]) -> None:
    library = AmdSmiLibrary(install(site, more="def amdsmi_init(): time.sleep(60)"), 1.0)
    opened.append(library)
    clock = iter(range(100, 10_000))
    assert failure(library, lambda: float(next(clock))) == f"the library in {site} did not respond"


def test_the_library_is_preferred_and_programs_are_the_fallback(
    tmp_path: Path, site: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = install(site, more="def amdsmi_init(): raise AmdSmiLibraryException(34)")
    monkeypatch.syspath_prepend(folder)
    program(tmp_path / "bin", "rocm-smi", """echo '{"card0": {"GPU use (%)": "17"}}'""")
    assert [each.name for each in programs(10.0, 2.0)] == ["amdsmi", "rocm-smi"]
    gpus = probe(plant(tmp_path / "host", BARE_VM))
    moment = soon(lambda: tick(gpus, 100.0), lambda moment: bool(moment.gauges))
    assert moment.gauges == {"gpu.0.gpu": 17.0}
    gpus.close()


def test_the_library_adds_what_sysfs_lacks(
    tmp_path: Path, site: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(install(site, MI300X))
    gpus = probe(
        plant(tmp_path / "host", card(1, "0000:05:00.0", power1_average=None, gpu_busy_percent=None))
    )
    moment = soon(lambda: tick(gpus, 100.0), lambda moment: "gpu.0.powerWatts" in moment.gauges)
    assert (moment.gauges["gpu.0.powerWatts"], moment.gauges["gpu.0.gpu"]) == (512.0, 88.0)
    assert moment.gauges["gpu.0.memory"] == 17.0  # sysfs has it
    gpus.close()


def test_the_child_exits_when_the_pipe_is_closed(site: Path) -> None:
    library = AmdSmiLibrary(install(site, MI300X), 0.01)
    soon(lambda: library.devices(100.0), lambda devices: devices is not None)
    child = library._stream._child
    assert child is not None
    child.close()  # our ends of the pipes
    soon(child.has_ended)
    assert child.exit_code == 0
