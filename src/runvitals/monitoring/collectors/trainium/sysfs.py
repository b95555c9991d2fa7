"""The Neuron driver's files in /sys: memory errors, power, and memory of each core.

Reading them needs no privileges and no running program. Counters are folders with a file `total`. Releases of
the driver differ; a value whose file is missing is left out.
"""

from __future__ import annotations

import os

from runvitals.monitoring.collectors.base import read_text
from runvitals.monitoring.collectors.plumbing import sysfs

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from runvitals.monitoring.collectors.base import Scope

FOLDERS = ("/sys/devices/virtual/neuron_device", "/sys/class/neuron_device")
VERSION = "/sys/module/neuron/version"
# The files of a counter: since the driver was loaded, or now for memory; by the last change; at most.
_COUNTER = ("total", "present", "peak")
ECC = (
    "mem_ecc_corrected",
    "mem_ecc_uncorrected",
    "mem_ecc_repairable_uncorrected",
    "sram_ecc_corrected",
    "sram_ecc_uncorrected",
)


class NeuronDevice:
    """One device's files.

    Args:
        index: its number in the driver.
        folder: path of its files.
    """

    __slots__ = ("_cores", "folder", "index")

    def __init__(self, index: int, folder: str) -> None:
        self.index = index
        self.folder = folder
        self._cores = _list_numbered(folder, "neuron_core")

    @property
    def core_count(self) -> int:
        """Read how many cores the device has."""
        text = read_text(f"{self.folder}/core_count")
        return int(text) if text and text.strip().isdigit() else len(self._cores)

    def errors(self) -> dict[str, float]:
        """Kind -> number of memory errors since the driver was loaded."""
        totals = {kind: _total(f"{self.folder}/stats/hardware/{kind}") for kind in ECC}
        return {kind: count for kind, count in totals.items() if count is not None}

    def power_percent(self) -> float | None:
        """Read the mean power of the last minute, in per cent of the maximum.

        It is the last number in ``POWER_STATUS_VALID,1759250400,0.00,3.00,1.50`` (state, time, minimum,
        maximum, mean).
        """
        words = (read_text(f"{self.folder}/stats/power/utilization") or "").strip().split(",")
        if len(words) != 5 or words[0].strip() != "POWER_STATUS_VALID":
            return None
        return _number(words[4])

    def core_memory(self) -> dict[int, MemoryUse]:
        """Core of this device -> its memory in use now."""
        uses = {
            core: MemoryUse(f"{self.folder}/{name}/stats/memory_usage/device_mem")
            for core, name in self._cores.items()
        }
        return {core: use for core, use in uses.items() if use.total is not None}

    def host_memory(self) -> MemoryUse:
        """Return the host's memory in use now."""
        return MemoryUse(f"{self.folder}/stats/memory_usage/host_mem")

    def fact(self) -> dict[str, object]:
        """Return the facts about the device; those that the driver does not report are left out."""
        values = {
            "serial": read_text(f"{self.folder}/info/serial_number"),
            "name": read_text(f"{self.folder}/info/architecture/device_name"),
            "architecture": read_text(f"{self.folder}/info/architecture/arch_type"),
            "connected_to": _read_connected(f"{self.folder}/connected_devices"),
        }
        fact: dict[str, object] = {name: value for name, value in values.items() if value}
        return {"index": self.index, **fact, "cores": self.core_count}


class MemoryUse:
    """Memory in use now, in bytes: its ``uses``, and their ``total``; None if the driver reports neither."""

    __slots__ = ("total", "uses")

    def __init__(self, folder: str) -> None:
        # Beside the folders of the uses there are the files of the folder's own counter.
        names = [name for name in sysfs.names(folder) if name not in _COUNTER]
        totals = {name: _total(f"{folder}/{name}") for name in names}
        self.uses = {name: size for name, size in totals.items() if size is not None}
        self.total = sum(self.uses.values()) if self.uses else _total(folder)


def find_folder(scope: Scope) -> str | None:
    """Return the folder of the driver's devices, or None without a driver."""
    return next((path for each in FOLDERS if os.path.isdir(path := scope.path(each))), None)


def find_devices(folder: str) -> list[NeuronDevice]:
    """Return the current devices, sorted by number."""
    return [
        NeuronDevice(index, f"{folder}/{name}") for index, name in _list_numbered(folder, "neuron").items()
    ]


def instance_type(devices: Sequence[NeuronDevice]) -> str | None:
    """Return the instance type according to the driver: `Trn1`, `trn1.2xlarge`."""
    names = (read_text(f"{device.folder}/info/architecture/instance_type") for device in devices)
    return next((name.strip() for name in names if name and name.strip()), None)


def write(
    gauges: dict[str, float], counters: dict[str, float], devices: Sequence[NeuronDevice], memory: bool
) -> None:
    """Write the values of all devices. A missing value of one device does not affect the others.

    Args:
        gauges: where to put levels.
        counters: where to put totals.
        devices: the devices to read.
        memory: whether to write memory too, because neuron-monitor does not report it.
    """
    for device in devices:
        for kind, count in device.errors().items():
            counters[f"trn.device.{device.index}.{kind}"] = count
        percent = device.power_percent()
        if percent is not None:
            gauges[f"trn.device.{device.index}.power_utilization"] = percent
        if memory:
            # Cores are numbered across devices.
            first_core = device.index * device.core_count
            for core, memory_use in device.core_memory().items():
                for use, size in memory_use.uses.items():
                    gauges[f"trn.{first_core + core}.neuroncore_memory_usage.{use}"] = size
                _add(gauges, "trn.neuron_device_total_memory_usage", memory_use.total)
            host = device.host_memory()
            for use, size in host.uses.items():
                _add(gauges, f"trn.host_total_memory_usage.{use}", size)
            _add(gauges, "trn.host_total_memory_usage", host.total)


def _add(gauges: dict[str, float], key: str, size: float | None) -> None:
    if size is not None:
        gauges[key] = gauges.get(key, 0.0) + size


def _total(path: str) -> float | None:
    """Return a counter: the file `total` in its folder or, in some releases, the file itself."""
    text = read_text(f"{path}/total")
    return _number(text if text is not None else read_text(path))


def _number(text: str | None) -> float | None:
    try:
        number = float(text or "")
    except ValueError:
        return None
    return number if number - number == 0.0 and number >= 0.0 else None


def _read_connected(path: str) -> list[int]:
    words = (read_text(path) or "").replace(",", " ").split()
    return [int(word) for word in words if word.isdigit()]


def _list_numbered(folder: str, prefix: str) -> dict[int, str]:
    try:
        names = os.listdir(folder)
    except OSError:
        return {}
    numbers = {name.removeprefix(prefix): name for name in names if name.startswith(prefix)}
    return {int(number): numbers[number] for number in sorted(filter(str.isdigit, numbers), key=int)}
