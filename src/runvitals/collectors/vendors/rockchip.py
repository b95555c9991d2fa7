"""The NPU in Rockchip's processors: the files of the driver rknpu.

Its load lies in debugfs, which as a rule only root may enter, and in some kernels in /proc. What devfreq
tells as load is 0 for ever in many releases of the driver: it counts only after it was something else once.
"""

from __future__ import annotations

import os

from runvitals.collectors.base import Absent, open_if_there, read_text
from runvitals.collectors.plumbing import sysfs
from runvitals.collectors.plumbing.quantity import split
from runvitals.collectors.vendors.detection import first_index
from runvitals.collectors.vendors.devices import Device, write

TYPE_CHECKING = False
if TYPE_CHECKING:
    from runvitals.collectors.base import PseudoFile, Scope, Tick

DEBUG, PROC = "/sys/kernel/debug/rknpu", "/proc/rknpu"
# The driver of RK356x, RK3576, RK3588 and RV11xx, and that of RK1808 and RK3399Pro.
DRIVERS = ("rknpu", "galcore")
_ZONES = ("npu-thermal", "npu_thermal")
NO_LOAD = (
    f"told by {DEBUG}/load, which only root may read here: as root, mount -o remount,mode=755 "
    "/sys/kernel/debug (in a container, mount that folder)"
)


def probe(scope: Scope) -> Rockchip:
    """The processor's NPU. Absent where no file of its driver is."""
    devfreq = npu_folder(scope)
    places = [scope.path(folder) for folder in (DEBUG, PROC)]
    load = next((file for place in places if (file := open_if_there(f"{place}/load"))), None)
    if devfreq is None and load is None:
        if any(os.path.exists(place) for place in places):
            raise Absent(f"the load of the Rockchip NPU is {NO_LOAD}")
        raise Absent(f"no Rockchip NPU here: neither {DEBUG}, {PROC} nor an NPU in /sys/class/devfreq")
    return Rockchip(scope, load, devfreq)


def npu_folder(scope: Scope) -> str | None:
    """The NPU's folder among the devices whose clock the kernel changes: ``fdab0000.npu``."""
    folder = scope.path("/sys/class/devfreq")
    for name in sysfs.names(folder):
        driver = sysfs.link_name(f"{folder}/{name}/device/driver").lower()
        if name.endswith(".npu") and (not driver or driver in DRIVERS):
            return f"{folder}/{name}"
    return None


class Rockchip:
    """`gpu.{i}.gpu`, the mean over the cores, `.graphicsClock` and `.temp`.

    Args:
        load: the driver's file of it, where it can be read.
        devfreq: the NPU's folder there, if it has one.
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
        missing = {"powerWatts": "not reported by the driver", "memoryAllocatedBytes": "it is the host's"}
        missing |= {} if self._clock else {"graphicsClock": "this kernel has no file for it"}
        missing |= {} if self._heat else {"temp": "this kernel has no thermal zone for it"}
        self.absent = missing if load is not None else {"gpu": NO_LOAD, **missing}
        model = (read_text(scope.path("/proc/device-tree/model")) or "").rstrip("\0")
        name = f"Rockchip NPU ({model})" if model else "Rockchip NPU"
        self.facts = {"accelerator_rockchip": [{"index": self._index, "name": name}]}

    def sample(self, tick: Tick) -> None:
        device = Device(self._index, {})
        load = self._read_load()
        if load is not None:
            device.gauges["gpu"] = load
            if "gpu" in self.absent:
                self.absent = {key: why for key, why in self.absent.items() if key != "gpu"}
        for key, level in (("graphicsClock", self._clock), ("temp", self._heat)):
            value = None if level is None else level.read()
            if value is not None:
                device.gauges[key] = value
        write(tick, [device], 0)

    def _read_load(self) -> float | None:
        file = self._load or self._spare
        try:
            text = file.read().decode("ascii", "replace") if file is not None else ""
        except OSError:  # the driver refuses while the NPU is switched off
            return None
        load = shares(text) if self._load is not None else share_of_devfreq(text)
        self._is_counted = self._is_counted or bool(load)
        return load if self._is_counted else None


def shares(text: str) -> float | None:
    """The mean of all cores, in per cent.

    >>> shares("NPU load:  Core0: 12%, Core1:  0%, Core2:  0%,"), shares("NPU load:  7%")
    (4.0, 7.0)
    """
    words = [split(word.rstrip(",")) for word in text.replace(":", ": ").replace(" %", "%").split()]
    found = [word[0] for word in words if word is not None and word[1] == "%" and 0.0 <= word[0] <= 100.0]
    return sum(found) / len(found) if found else None


def share_of_devfreq(text: str) -> float | None:
    """The first part of "45@1000000000Hz", in per cent."""
    parts = split(text.partition("@")[0].strip().rstrip("%"))
    return parts[0] if parts is not None and not parts[1] and 0.0 <= parts[0] <= 100.0 else None


def _zone(scope: Scope) -> sysfs.SysfsLevel | None:
    folder = scope.path("/sys/class/thermal")
    kinds = {read_text(f"{folder}/{name}/type"): name for name in sysfs.names(folder)}
    zone = next((kinds[kind] for kind in _ZONES if kind in kinds), None)
    return None if zone is None else sysfs.first(f"{folder}/{zone}", ("temp",), 1e-3)
