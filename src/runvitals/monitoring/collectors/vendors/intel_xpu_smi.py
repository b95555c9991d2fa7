"""`xpu-smi dump`, Intel's tool, which prints a line for each card every second.

Columns are identified by the header. Release 2.0 has other names than 1.x, and supports neither `-m` nor
`-i`.
"""

from __future__ import annotations

from runvitals.monitoring.collectors.plumbing.missing_readings import ExpectedReadings, explain
from runvitals.monitoring.collectors.plumbing.plain_text import MAX_LINES
from runvitals.monitoring.collectors.plumbing.quantity import heading
from runvitals.monitoring.collectors.plumbing.tool import StillFailing, StreamingTool, ToolFailed
from runvitals.monitoring.collectors.vendors.adapter import Reading
from runvitals.monitoring.collectors.vendors.devices import (
    LIMIT,
    POWER,
    POWER_SHARE,
    SHARE,
    USED,
    VendorDevice,
    write,
)
from runvitals.monitoring.collectors.vendors.formats import commas, text_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from runvitals.monitoring.collectors.base import Tick

# Load, power, clock, temperature of core and memory, memory used in percent, energy, memory bandwidth,
# memory used in MiB.
METRICS = "0,1,2,3,4,5,8,17,18"
WAYS = (
    ("dump", "-d", "-1", "-m", METRICS, "-i", "1"),
    ("dump", "-d", "-1", "--metrics", METRICS, "--interval", "1"),
)
# Column names, in lower case and without units: 1.x, then 2.0.
READINGS = (
    Reading("gpu", "%", "gpu utilization", "utilization.gpu"),
    Reading(POWER, "W", "gpu power", "power.draw"),
    Reading("graphicsClock", "MHz", "gpu frequency", "clocks.current.graphics"),
    Reading("temp", "°C", "gpu core temperature", "temperature.gpu"),
    Reading("memoryTemp", "°C", "gpu memory temperature", "temperature.memory"),
    Reading(SHARE, "%", "gpu memory utilization", "utilization.memory"),
    Reading("energyJoules", "J", "gpu energy consumed", "energy.consumed", counter=True),
    Reading("memoryBandwidth", "%", "gpu memory bandwidth utilization", "memory.bandwidth.utilization"),
    Reading(USED, "bytes", "gpu memory used", "memory.used", bare="MiB"),
)
# Of cards: also what the driver has in sysfs.
EXPECTED = (*(reading.key for reading in READINGS), LIMIT, POWER_SHARE)
UNREPORTED = "not reported by xpu-smi"
# Without the permission, the tool prints "N/A" or nothing for what it derives from the engines' counters.
NEEDS_PERMISSION = "xpu-smi prints no value: it needs root or CAP_PERFMON"
OF_COUNTERS = ("gpu", "memoryBandwidth")
_KNOWN = {name for reading in READINGS for name in reading.names}
_DEVICE = ("deviceid", "device id")
# Lines before the header after which the tool is considered not Intel's.
PATIENCE_LINES = 20


class XpuSmi:
    """The readings in `READINGS`. Rates are "N/A" in the first line, and cells are blank without permission.

    Args:
        path: of the tool.
        numbers: indices in keys ``gpu.{i}.…`` of its devices 0, 1, 2 …
        others: how many Intel GPUs there are that it does not report.
    """

    name = "xpu-smi"

    def __init__(self, path: str, numbers: Sequence[int], others: int = 0) -> None:
        self.absent: dict[str, str] = {}
        self._streams = [StreamingTool([path, *way]) for way in WAYS]
        self._numbers = numbers
        self._beside = others
        self._columns: list[tuple[str, str]] = []
        self._remarks: list[bytes] = []
        self._remarked = 0
        self._failed = ""
        self._works = False
        # Energy that the driver reports too: two totals alternating in one key would make it jump.
        self._others: set[str] = set()
        self._expected = ExpectedReadings(EXPECTED)

    def sample(self, tick: Tick) -> None:
        """Write the newest line of each card.

        Raises:
            ToolFailed: it exited or its output is invalid. Raised at each call until a valid line arrives.
        """
        self._others.update(key for key in tick.counters if key.endswith(".energyJoules"))
        try:
            newest = self._devices(self._streams[0].lines(tick.mono_s))
        except StillFailing:
            raise
        except ToolFailed as failed:
            self._failed = str(failed)
            self._restart()
            self._explain(tick, self._failed)
            raise
        if newest:
            self._works, self._failed = True, ""
            self._write(tick, newest)
        elif self._failed:
            raise StillFailing(self._failed)

    def close(self) -> None:
        """Release what is open."""
        for stream in self._streams:
            stream.close()

    def _restart(self) -> None:
        """The next process prints its own header; this release may also need other options."""
        self._columns = []
        self._remarks, self._remarked = [], 0
        if not self._works:
            self._streams[0].close()
            self._streams = [*self._streams[1:], self._streams[0]]

    def _write(self, tick: Tick, devices: Sequence[VendorDevice]) -> None:
        for device in devices:
            if f"gpu.{device.index}.energyJoules" in self._others:
                device.counters.clear()
        write(tick, devices, 0)
        self._explain(tick, "")

    def _explain(self, tick: Tick, failure: str) -> None:
        """Update `absent`; replace the object only if it has changed.

        Args:
            tick: with what the driver has in sysfs.
            failure: why the tool reports nothing at all.
        """
        columns = {name for name, _ in self._columns}
        unseen = {
            reading.key
            for reading in READINGS
            if reading.key in OF_COUNTERS and not columns.isdisjoint(reading.names)
        }
        missing: dict[int, dict[str, str]] = {}
        for index in self._numbers:
            prefix = f"gpu.{index}."
            names = (key for key in EXPECTED if prefix + key in tick.gauges or prefix + key in tick.counters)
            self._expected.note(index, names, tick.mono_s)
            missing[index] = {
                key: failure or (NEEDS_PERMISSION if key in unseen else UNREPORTED)
                for key in self._expected.missing(index)
            }
        absent = explain(missing, others=self._beside)
        if absent != self.absent:
            self.absent = absent

    def _devices(self, lines: Sequence[bytes]) -> list[VendorDevice]:
        """Return the devices from the newest line of each card."""
        newest: dict[int, VendorDevice] = {}
        for line in lines:
            cells = commas(text_of(line), len(self._columns))
            if any(cell.lower() in _DEVICE for cell in cells):
                self._columns = [heading(cell.replace("[", "(").replace("]", ")")) for cell in cells]
                if _KNOWN.isdisjoint(name for name, _ in self._columns):
                    raise self._streams[0].reject([line])
                continue
            device = self._device(cells)
            if device is not None:
                newest[device.index] = device
            elif line.strip():
                self._remark(line)
        return list(newest.values())

    def _device(self, cells: Sequence[str]) -> VendorDevice | None:
        if len(cells) > len(self._columns):
            return None  # the columns of the cells are unknown
        row: dict[str, object] = {}
        for (name, unit), cell in zip(self._columns, cells, strict=False):
            row[name] = {"value": cell, "unit": unit}
            if name in _DEVICE and cell.isdigit() and int(cell) < len(self._numbers):
                row["index"] = self._numbers[int(cell)]
        index = row.get("index")
        if not isinstance(index, int):
            return None
        device = VendorDevice(index, {})
        for reading in READINGS:
            value = reading.of(row)
            if value is not None:
                (device.counters if reading.counter else device.gauges)[reading.key] = value
        return device

    def _remark(self, line: bytes) -> None:
        self._remarks = [*self._remarks, line][:MAX_LINES]
        self._remarked += 1
        if self._remarked > PATIENCE_LINES and not self._columns:
            self._remarked = 0
            raise self._streams[0].reject(self._remarks)
