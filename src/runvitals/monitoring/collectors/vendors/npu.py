"""The NPU of a processor: the driver intel_vpu in sysfs. AMD's amdxdna has nothing there."""

from __future__ import annotations

from runvitals.monitoring.collectors.base import Absent
from runvitals.monitoring.collectors.plumbing import sysfs
from runvitals.monitoring.collectors.vendors.devices import USED, DeviceGaps, VendorDevice, write
from runvitals.monitoring.collectors.vendors.probes import first_index

TYPE_CHECKING = False
if TYPE_CHECKING:
    from runvitals.monitoring.collectors.base import Scope, Tick


def probe(scope: Scope) -> Npu:
    """Return the NPUs of intel_vpu. Raises Absent if there are only accelerators of other drivers."""
    folder = scope.path("/sys/class/accel")
    devices = [
        f"{folder}/{name}/device"
        for name in sysfs.names(folder)
        if sysfs.link_name(f"{folder}/{name}/device/driver") == "intel_vpu"
    ]
    if not devices:
        raise Absent(
            "/sys/class/accel has no device of intel_vpu, the only driver that reports an NPU's load"
        )
    return Npu(devices, first_index(scope, "npu"))


UNREPORTED = "not reported by the driver"


class Npu:
    """`gpu.{i}.gpu`, `.memoryAllocatedBytes` (of the host's memory) and `.graphicsClock` of NPUs.

    Args:
        folders: the devices' folders.
        start: index of the first.
    """

    name = "npu"

    def __init__(self, folders: list[str], start: int) -> None:
        self._gaps = DeviceGaps(("gpu", USED, "graphicsClock", "powerWatts", "temp"), UNREPORTED)
        self.absent = dict.fromkeys(("powerWatts", "temp"), UNREPORTED)
        self._is_first = True
        self.facts = {
            "accelerator_npu": [
                {"index": start + number, "name": "Intel NPU", "pci": sysfs.link_name(folder)}
                for number, folder in enumerate(folders)
            ]
        }
        self._devices = [_Files(start + number, folder) for number, folder in enumerate(folders)]

    def sample(self, tick: Tick) -> None:
        """Write the current values into the tick."""
        devices = [files.read(tick.mono_s) for files in self._devices]
        write(tick, devices, 0)
        absent = self._gaps.explain(devices, 0, tick.mono_s)
        if absent != self.absent and not self._is_first:  # the load is a rate, which needs two readings
            self.absent = absent
        self._is_first = False


class _Files:
    def __init__(self, index: int, folder: str) -> None:
        self._index = index
        busy = sysfs.first(folder, ("npu_busy_time_us",), 1e-6)
        self._busy = None if busy is None else sysfs.SysfsRate(busy)
        self._levels = {
            USED: sysfs.first(folder, ("npu_memory_utilization",)),
            "graphicsClock": sysfs.first(folder, ("npu_current_frequency_mhz",)),
        }

    def read(self, mono_s: float) -> VendorDevice:
        device = VendorDevice(self._index, {})
        for key, level in self._levels.items():
            value = None if level is None else level.read()
            if value is not None:
                device.gauges[key] = value
        if self._busy is not None:
            share = self._busy.of(self._busy.total.read(), mono_s)
            if share is not None:
                device.gauges["gpu"] = share * 100.0
        return device
