"""Temperature and clock of the CPU: hwmon or a thermal zone, and cpufreq or /proc/cpuinfo.

Both change slowly and are expensive: reading a core's clock interrupts that core. So they are read every 10
s.
"""

from __future__ import annotations

import os

from runvitals.monitoring.collectors.base import Absent, Every, PseudoFile, open_if_there, read_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from runvitals.monitoring.collectors.base import Scope, Tick

# A machine without cpufreq is usually virtual, and /proc/cpuinfo shows a constant clock.
CPUINFO_EVERY_S = 60.0
CORES = 8
# Outside this range a sensor is not connected, or its unit is unknown.
COLDEST_C, HOTTEST_C = 0.0, 150.0
# Sensors of the CPUs in order of preference: (hwmon name, beginning of the label).
SENSORS = (
    ("coretemp", "Package id"),
    ("coretemp", "Physical id"),
    ("k10temp", "Tdie"),
    ("zenpower", "Tdie"),
    ("k10temp", "Tctl"),
    ("zenpower", "Tctl"),
    ("coretemp", "Core"),
    ("k10temp", "Tccd"),
    # Kernels before 5.6 label the sensor of an EPYC only if it has several.
    ("k10temp", ""),
    ("zenpower", ""),
    ("coretemp", ""),
    ("cpu_thermal", ""),
)
ZONES = (
    "x86_pkg_temp",
    "cpu-thermal",
    "cpu_thermal",
    "soc_thermal",
    "soc-thermal",
    "bcm2835_thermal",
    "acpitz",
)


def probe(scope: Scope) -> Thermal:
    """Make the collector; raise Absent if the machine lacks the source."""
    thermal = Thermal(scope)
    if len(thermal.absent) == 2:
        raise Absent("; ".join(f"{key}: {why}" for key, why in thermal.absent.items()))
    return thermal


class Thermal:
    """`cpu.avg_temp` (°C, mean over the packages) and `cpu.freqMHz` (mean of at most 8 cores), every 10 s."""

    name = "thermal"
    every_s = 10.0

    def __init__(self, scope: Scope) -> None:
        self.absent: dict[str, str] = {}
        self._sensors = find_sensors(scope)
        self._clocks = find_clocks(scope)
        self._cpuinfo_every = Every(CPUINFO_EVERY_S)
        self._cpuinfo = None if self._clocks else _cpuinfo(scope)
        if not self._sensors:
            self.absent["cpu.avg_temp"] = "no hwmon sensor or thermal zone for the CPU"
        if not self._clocks and self._cpuinfo is None:
            self.absent["cpu.freqMHz"] = "neither cpufreq nor a clock in /proc/cpuinfo"
        self._never = self.absent

    def sample(self, tick: Tick) -> None:
        """Write the current values into the tick."""
        absent = dict(self._never)
        degrees = [celsius for celsius in map(_celsius, self._sensors) if celsius is not None]
        if degrees:
            tick.gauges["cpu.avg_temp"] = sum(degrees) / len(degrees)
        else:
            absent.setdefault("cpu.avg_temp", "none of the sensors can be read")
        clocks = [mhz for mhz in map(_mhz, self._clocks) if mhz is not None]
        is_read = self._cpuinfo is None
        if self._cpuinfo is not None and self._cpuinfo_every.due(tick.mono_s):
            is_read = True
            clocks = clocks_of_cpuinfo(self._cpuinfo.read_start())
        if clocks:
            tick.gauges["cpu.freqMHz"] = sum(clocks) / len(clocks)
        elif is_read:
            absent.setdefault("cpu.freqMHz", "none of the clocks can be read")
        elif "cpu.freqMHz" in self.absent:
            absent["cpu.freqMHz"] = self.absent["cpu.freqMHz"]
        if absent != self.absent:
            self.absent = absent


def find_sensors(scope: Scope) -> list[PseudoFile]:
    """Return the temperature inputs of the CPU, one per package if the hardware has them."""
    hwmon = scope.path("/sys/class/hwmon")
    inputs: dict[tuple[str, str], list[str]] = {}
    for chip in _list(hwmon):
        name = read_text(f"{hwmon}/{chip}/name") or ""
        if name not in {sensor for sensor, _ in SENSORS}:
            continue
        for file in _list(f"{hwmon}/{chip}"):
            if file.startswith("temp") and file.endswith("_input"):
                label = read_text(f"{hwmon}/{chip}/{file[:-6]}_label") or ""
                inputs.setdefault((name, label), []).append(f"{hwmon}/{chip}/{file}")
    for sensor, beginning in SENSORS:
        paths = [
            path
            for (name, label), files in inputs.items()
            if name == sensor and label.startswith(beginning)
            for path in files
        ]
        opened = _open_all(paths)
        if opened:
            return opened
    return _find_zones(scope)


def find_clocks(scope: Scope) -> list[PseudoFile]:
    """Return the cpufreq files of at most 8 cores, spread over all of them."""
    folder = scope.path("/sys/devices/system/cpu")
    cores = sorted(int(name[3:]) for name in _list(folder) if name.startswith("cpu") and name[3:].isdigit())
    step = -(-len(cores) // CORES) or 1
    return _open_all([f"{folder}/cpu{core}/cpufreq/scaling_cur_freq" for core in cores[::step]])


def clocks_of_cpuinfo(text: bytes) -> list[float]:
    """Read "cpu MHz" of the first cores in /proc/cpuinfo."""
    lines = [line for line in text.split(b"\n")[:-1] if line.startswith(b"cpu MHz")]
    # "unknown" in some virtual machines
    return [
        float(clock) for line in lines[:CORES] if (clock := line.partition(b":")[2].strip())[:1].isdigit()
    ]


def _find_zones(scope: Scope) -> list[PseudoFile]:
    thermal = scope.path("/sys/class/thermal")
    kinds = {
        zone: read_text(f"{thermal}/{zone}/type")
        for zone in _list(thermal)
        if zone.startswith("thermal_zone")
    }
    for kind in ZONES:
        files = _open_all([f"{thermal}/{zone}/temp" for zone in sorted(kinds) if kinds[zone] == kind])
        if files:
            return files
    # Boards name their zones after clusters or cores: "CPU-therm", "cpu0-thermal", "cpuss-0".
    others = [zone for zone, kind in sorted(kinds.items()) if (kind or "").lower().startswith("cpu")]
    return _open_all([f"{thermal}/{zone}/temp" for zone in others])


def _cpuinfo(scope: Scope) -> PseudoFile | None:
    file = open_if_there(scope.path("/proc/cpuinfo"))
    if file is not None and not clocks_of_cpuinfo(file.read_start()):
        file.close()
        return None
    return file


def _open_all(paths: Sequence[str]) -> list[PseudoFile]:
    return [file for file in map(open_if_there, paths) if file is not None]


def _list(folder: str) -> list[str]:
    try:
        return sorted(os.listdir(folder))
    except OSError:  # not on this machine
        return []


def _celsius(sensor: PseudoFile) -> float | None:
    try:
        celsius = int(sensor.read()) / 1000.0
    except (OSError, ValueError):  # a sensor that is asleep returns EAGAIN, ENODATA or nothing
        return None
    return celsius if COLDEST_C < celsius < HOTTEST_C else None


def _mhz(clock: PseudoFile) -> float | None:
    try:
        return int(clock.read()) / 1000.0
    except (OSError, ValueError):  # the core was switched off
        return None
