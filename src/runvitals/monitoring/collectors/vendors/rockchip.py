"""The NPU in Rockchip's processors: files of the driver rknpu.

Its load is in debugfs, which usually only root can read, and in some kernels in /proc. The load in devfreq is
always 0 in many releases of the driver, so it is used only after it has been above 0 once.
"""

from __future__ import annotations

import os

from runvitals.monitoring.collectors.base import Absent, open_if_there, read_text
from runvitals.monitoring.collectors.plumbing import sysfs
from runvitals.monitoring.collectors.plumbing.missing_readings import ExpectedReadings
from runvitals.monitoring.collectors.plumbing.quantity import split
from runvitals.monitoring.collectors.vendors.devices import VendorDevice, write
from runvitals.monitoring.collectors.vendors.probes import first_index

TYPE_CHECKING = False
if TYPE_CHECKING:
    from runvitals.monitoring.collectors.base import PseudoFile, Scope, Tick

DEBUG, PROC = "/sys/kernel/debug/rknpu", "/proc/rknpu"
# The drivers of RK356x, RK3576, RK3588 and RV11xx, and of RK1808 and RK3399Pro.
DRIVERS = ("rknpu", "galcore")
_ZONES = ("npu-thermal", "npu_thermal")
UNREADABLE = "its file cannot be read: the NPU is switched off, or lost"
NO_LOAD = (
    f"in {DEBUG}/load, which only root may read here: as root, mount -o remount,mode=755 "
    "/sys/kernel/debug (in a container, mount that folder)"
)


def probe(scope: Scope) -> Rockchip:
    """Return the processor's NPU. Raises Absent if its driver has no files."""
    devfreq = npu_folder(scope)
    folders = [scope.path(folder) for folder in (DEBUG, PROC)]
    load = next((file for path in folders if (file := open_if_there(f"{path}/load"))), None)
    if devfreq is None and load is None:
        if any(os.path.exists(path) for path in folders):
            raise Absent(f"the load of the Rockchip NPU is {NO_LOAD}")
        raise Absent(f"no Rockchip NPU: there is no {DEBUG}, no {PROC} and no NPU in /sys/class/devfreq")
    return Rockchip(scope, load, devfreq)


def npu_folder(scope: Scope) -> str | None:
    """Return the NPU's folder among the devices with variable clocks: ``fdab0000.npu``."""
    folder = scope.path("/sys/class/devfreq")
    for name in sysfs.names(folder):
        driver = sysfs.link_name(f"{folder}/{name}/device/driver").lower()
        if name.endswith(".npu") and (not driver or driver in DRIVERS):
            return f"{folder}/{name}"
    return None


class Rockchip:
    """`gpu.{i}.gpu`, the mean over the cores, `.graphicsClock` and `.temp`.

    Args:
        load: the driver's file with the load, if it can be read.
        devfreq: the NPU's folder in devfreq, if it has one.
    """

    name = "rockchip"

    def __init__(self, scope: Scope, load: PseudoFile | None, devfreq: str | None) -> None:
        self._index = first_index(scope, "rockchip")
        self._load = load
        self._spare = open_if_there(f"{devfreq}/load") if load is None and devfreq else None
        self._is_counted = load is not None
        self._clock = sysfs.first(devfreq, ("cur_freq",), 1e-6) if devfreq else None
        for folder in (DEBUG, PROC):
            self._clock = self._clock or sysfs.first(scope.path(folder), ("freq",), 1e-6)
        self._heat = _zone(scope)
        missing = {
            "powerWatts": "not reported by the driver",
            "memoryAllocatedBytes": "the NPU uses the host's memory",
        }
        missing |= {"graphicsClock": UNREADABLE if self._clock else "no such file in this kernel"}
        missing |= {"temp": UNREADABLE if self._heat else "no such thermal zone in this kernel"}
        missing["gpu"] = UNREADABLE if load is not None else NO_LOAD
        self._reasons = missing
        self._expected = ExpectedReadings(missing)
        self.absent: dict[str, str] = {}
        model = (read_text(scope.path("/proc/device-tree/model")) or "").rstrip("\0")
        name = f"Rockchip NPU ({model})" if model else "Rockchip NPU"
        self.facts = {"accelerator_rockchip": [{"index": self._index, "name": name}]}

    def sample(self, tick: Tick) -> None:
        """Write the current values into the tick."""
        device = VendorDevice(self._index, {})
        load = self._read_load()
        if load is not None:
            device.gauges["gpu"] = load
        for key, level in (("graphicsClock", self._clock), ("temp", self._heat)):
            value = None if level is None else level.read()
            if value is not None:
                device.gauges[key] = value
        write(tick, [device], 0)
        self._expected.note(self._index, device.gauges, tick.mono_s)
        lacking = self._expected.missing(self._index)
        absent = {key: self._reasons[key] for key in lacking}
        if absent != self.absent:
            self.absent = absent

    def _read_load(self) -> float | None:
        file = self._load or self._spare
        try:
            text = file.read().decode("ascii", "replace") if file is not None else ""
        except OSError:  # the NPU is switched off
            return None
        load = mean_load(text) if self._load is not None else devfreq_load(text)
        self._is_counted = self._is_counted or bool(load)
        return load if self._is_counted else None


def mean_load(text: str) -> float | None:
    """Return the mean over all cores, in percent.

    >>> mean_load("NPU load:  Core0: 12%, Core1:  0%, Core2:  0%,"), mean_load("NPU load:  7%")
    (4.0, 7.0)
    """
    words = [split(word.rstrip(",")) for word in text.replace(":", ": ").replace(" %", "%").split()]
    loads = [word[0] for word in words if word is not None and word[1] == "%" and 0.0 <= word[0] <= 100.0]
    return sum(loads) / len(loads) if loads else None


def devfreq_load(text: str) -> float | None:
    """Return the first part of "45@1000000000Hz", in percent."""
    parts = split(text.partition("@")[0].strip().rstrip("%"))
    return parts[0] if parts is not None and not parts[1] and 0.0 <= parts[0] <= 100.0 else None


def _zone(scope: Scope) -> sysfs.SysfsLevel | None:
    folder = scope.path("/sys/class/thermal")
    kinds = {read_text(f"{folder}/{name}/type"): name for name in sysfs.names(folder)}
    zone = next((kinds[kind] for kind in _ZONES if kind in kinds), None)
    return None if zone is None else sysfs.first(f"{folder}/{zone}", ("temp",), 1e-3)
