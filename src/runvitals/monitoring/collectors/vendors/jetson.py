"""NVIDIA Jetson: files of the kernel, and tegrastats for what they lack.

Its memory is the host's, shared with the CPU. Power is that of the whole module; the rail of the GPU has a
key of its own.
"""

from __future__ import annotations

from runvitals.monitoring.collectors.base import Absent, PseudoFile, open_if_there, read_text
from runvitals.monitoring.collectors.plumbing import sysfs
from runvitals.monitoring.collectors.plumbing.composite import CompositeSource
from runvitals.monitoring.collectors.plumbing.missing_readings import ExpectedReadings
from runvitals.monitoring.collectors.plumbing.tool import find
from runvitals.monitoring.collectors.vendors import jetson_rails
from runvitals.monitoring.collectors.vendors.devices import (
    POWER,
    SHARE,
    TOTAL,
    USED,
    VendorDevice,
    complete,
    write,
)
from runvitals.monitoring.collectors.vendors.jetson_tegrastats import GPU_RAIL, Tegrastats
from runvitals.monitoring.collectors.vendors.probes import first_index

TYPE_CHECKING = False
if TYPE_CHECKING:
    from runvitals.monitoring.collectors.base import Collector, Scope, Tick

_LOADS = ("/sys/devices/platform/gpu.0/load", "/sys/devices/gpu.0/load")
_CHIPS = (".gpu", ".ga10b", ".gv11b", ".gp10b", ".gm20b")
_ZONES = ("gpu-thermal", "GPU-therm", "tj-thermal")

UNREPORTED = "not reported by this kernel"


def probe(scope: Scope) -> CompositeSource:
    """Return the board's GPU. Raises Absent on other machines with devfreq."""
    compatible = read_text(scope.path("/proc/device-tree/compatible")) or ""
    if "nvidia,tegra" not in compatible:
        raise Absent("no NVIDIA Jetson: /proc/device-tree/compatible does not contain nvidia,tegra")
    index = first_index(scope, "jetson")
    kernel = JetsonSysfs(scope, index)
    parts: list[Collector] = [kernel]
    if kernel.absent:
        tool = find("tegrastats", "/usr/bin/tegrastats")
        if tool is not None:
            parts.insert(0, Tegrastats(tool, index))
    return CompositeSource("jetson", parts)


class JetsonSysfs:
    """Load, clock, temperature, memory, and power of the module and of the GPU's rail."""

    name = "sysfs"

    def __init__(self, scope: Scope, index: int) -> None:
        self._index = index
        self._meminfo = open_if_there(scope.path("/proc/meminfo"))
        devfreq = _devfreq(scope)
        paths = [*([f"{devfreq}/device/load"] if devfreq else []), *(scope.path(path) for path in _LOADS)]
        load = next((file for file in map(open_if_there, paths) if file is not None), None)
        self._levels = {
            "gpu": None if load is None else sysfs.SysfsLevel(load, 0.1),  # per mille
            "graphicsClock": sysfs.first(devfreq, ("cur_freq",), 1e-6) if devfreq else None,
            "temp": _zone(scope),
        }
        self._meters = jetson_rails.find_meters(scope.path("/sys/class/hwmon"))
        missing = [key for key, level in self._levels.items() if level is None]
        missing += [] if self._meters else [POWER]
        self._expected = ExpectedReadings((*self._levels, POWER, GPU_RAIL, USED, SHARE))
        self.absent = dict.fromkeys(missing, UNREPORTED)
        model = (read_text(scope.path("/proc/device-tree/model")) or "NVIDIA Jetson").rstrip("\0")
        self.facts = {"accelerator_jetson": [{"index": index, "name": model, "unified": True}]}

    def sample(self, tick: Tick) -> None:
        """Write the current values into the tick."""
        device = VendorDevice(self._index, {})
        gauges = device.gauges
        for key, level in self._levels.items():
            value = None if level is None else level.read()
            if value is not None:
                gauges[key] = value
        watts = {meter.name: meter.watts() for meter in self._meters}
        for key, value in (
            (POWER, jetson_rails.module_watts(watts)),
            (GPU_RAIL, jetson_rails.gpu_watts(watts)),
        ):
            if value is not None:
                gauges[key] = value
        if self._meminfo is not None:
            gauges.update(_memory(self._meminfo))
        complete(device)
        write(tick, [device], 0)
        prefix = f"gpu.{self._index}."  # also of what tegrastats has written
        names = [key.removeprefix(prefix) for key in tick.gauges if key.startswith(prefix)]
        self._expected.note(self._index, names, tick.mono_s)
        absent = dict.fromkeys(self._expected.missing(self._index), UNREPORTED)
        if absent != self.absent:
            self.absent = absent


def _devfreq(scope: Scope) -> str | None:
    folder = scope.path("/sys/class/devfreq")
    for name in sysfs.names(folder):
        if name.endswith(_CHIPS) or name.startswith("gpu-gpc-"):
            return f"{folder}/{name}"
    return None


def _zone(scope: Scope) -> sysfs.SysfsLevel | None:
    """Return the GPU's thermal zone, or that of the hottest junction."""
    folder = scope.path("/sys/class/thermal")
    kinds = {read_text(f"{folder}/{name}/type"): name for name in sysfs.names(folder)}
    zone = next((kinds[kind] for kind in _ZONES if kind in kinds), None)
    return None if zone is None else sysfs.first(f"{folder}/{zone}", ("temp",), 1e-3)


def _memory(meminfo: PseudoFile) -> dict[str, float]:
    """Total and used bytes, from /proc/meminfo."""
    fields: dict[str, float] = {}
    for line in meminfo.read_start(512).split(b"\n"):
        words = line.split()
        if len(words) == 3 and words[0] in (b"MemTotal:", b"MemAvailable:"):
            fields[words[0].decode()] = float(words[1]) * 1024.0
    if len(fields) < 2:
        return {}
    return {TOTAL: fields["MemTotal:"], USED: fields["MemTotal:"] - fields["MemAvailable:"]}
