"""A collector for a vendor's command-line tool.

Described by the command, its output format and our keys for its values.

A vendor is a `Vendor`, which is a table and a function, in a file. Other packages can add vendors in the same
way::

    ACME = Vendor(
        name="acme",
        title="Acme accelerator",
        programs=("acme-smi",),
        commands=(("--query=index,load,heat", "--format=csv"),),
        rows=lambda output: csv(text_of(output), key="index"),
        readings=(Reading("gpu", "%", "load"), Reading("temp", "°C", "heat")),
    )

    def probe(scope: Scope) -> Smi:
        return watch(scope, ACME)
"""

from __future__ import annotations

from runvitals.monitoring.collectors.base import Absent, Every
from runvitals.monitoring.collectors.plumbing.plain_text import first_lines
from runvitals.monitoring.collectors.plumbing.tool import Tool, ToolFailed, find
from runvitals.monitoring.collectors.vendors.devices import (
    MAX_DEVICES,
    TOTAL,
    DeviceGaps,
    KnownDevices,
    VendorDevice,
    derived_keys,
    write,
)
from runvitals.monitoring.collectors.vendors.devices import Reading as Reading
from runvitals.monitoring.collectors.vendors.probes import first_index

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from runvitals.monitoring.collectors.base import Scope, Tick
    from runvitals.monitoring.collectors.vendors.formats import Row


_EXIT = "exit"  # in `absent`: the error exit of a tool after valid output
# After a pause due to failures, readings older than this are dropped: they do not belong to this tick.
STALE_S = 10.0
# If a less preferred command works, the best one is tried again at this interval.
AGAIN_S = 300.0
MAX_BYTES = 1 << 20  # no tool prints more; parsing it takes half a second at most


class Vendor:
    """The description of a vendor's tool.

    Args:
        name: of the source; facts about the devices are stored as ``accelerator_{name}``.
        title: display name.
        programs: file names of the tool, in order of preference; `folders` are searched if none is on PATH.
        commands: arguments, in order of preference. If a command fails or prints nothing valid, the next one
            is tried, until one has worked.
        rows: parses the output into rows, one for each device. Raises ValueError if it is invalid.
        readings: the readings in the rows.
        identity: index, name, uuid, pci, serial: their names in the rows, in order of preference.
        every_s: interval of the calls; some tools block the driver, or take a core for a second.
        timeout_s: the longest duration of a call.
        missing: key -> why this vendor has no such reading.
    """

    __slots__ = (
        "_names", "commands", "every_s", "folders", "identity", "missing", "name",
        "programs", "readings", "rows", "timeout_s", "title",
    )  # fmt: skip

    def __init__(
        self,
        name: str,
        title: str,
        programs: Sequence[str],
        commands: Sequence[Sequence[str]],
        rows: Callable[[bytes], list[Row]],
        readings: Sequence[Reading],
        identity: Mapping[str, Sequence[str]] | None = None,
        folders: Sequence[str] = (),
        every_s: float = 1.0,
        timeout_s: float = 5.0,
        missing: Mapping[str, str] | None = None,
    ) -> None:
        self.name = name
        self.title = title
        self.programs = programs
        self.commands = commands
        self.rows = rows
        self.readings = readings
        self._names = frozenset(name for reading in readings for name in reading.names)
        self.identity = identity or {
            "index": ("index",),
            "name": ("name",),
            "uuid": ("uuid",),
            "pci": ("pci",),
        }
        self.folders = (*folders, "/usr/bin", "/usr/local/bin")
        self.every_s = every_s
        self.timeout_s = timeout_s
        self.missing = missing or {}

    def has_known_readings(self, rows: Sequence[Row]) -> bool:
        """Return whether a device has a known reading, even with the value "N/A"."""
        return any(not self._names.isdisjoint(row) for row in rows)


def watch(scope: Scope, vendor: Vendor) -> Smi:
    """Return the collector of a vendor whose accelerators are present. Raises Absent without its tool."""
    return Smi(vendor, locate(vendor), first_index(scope, vendor.name))


def locate(vendor: Vendor) -> str:
    """Return the path of a vendor's tool. Raises Absent if it is not installed."""
    for name in vendor.programs:
        path = find(name, *[f"{folder}/{name}" for folder in vendor.folders])
        if path is not None:
            return path
    raise Absent(
        f"{vendor.title} found, but {' or '.join(vendor.programs)} is neither on PATH nor in "
        f"{', '.join(vendor.folders)}: install the vendor's tools, or mount them into the container"
    )


class Smi:
    """`gpu.{i}.…` of one vendor's devices, from its command-line tool.

    Args:
        path: of the tool.
        offset: added to the tool's own device numbers.
    """

    def __init__(self, vendor: Vendor, path: str, offset: int = 0) -> None:
        self.name = vendor.name
        self.absent: dict[str, str] = dict(vendor.missing)
        self.facts: dict[str, object] | None = None
        self._vendor = vendor
        self._offset = offset
        self._tools = [
            Tool([path, *command], vendor.every_s, vendor.timeout_s, MAX_BYTES) for command in vendor.commands
        ]
        self._best = self._tools[0]
        self._again = Every(AGAIN_S)
        # Command line -> why it failed, as long as none has worked.
        self._failures: dict[str, str] = {}
        self._failed = ""
        self._complaint = ""
        self._worked = False
        readings = (reading.key for reading in vendor.readings if reading.key not in (TOTAL, *vendor.missing))
        self._gaps = DeviceGaps(
            (*readings, *derived_keys(vendor.readings)), f"not reported by {vendor.programs[0]}"
        )
        self._devices = KnownDevices(vendor.name, path)

    @property
    def pending(self) -> bool:
        """Whether the first call is in progress."""
        return not self._worked and self._tools[0].running

    def sample(self, tick: Tick) -> None:
        """Write the newest readings, if there are any.

        Raises:
            ToolFailed: the tool failed, its output is invalid, or it lists no device. Raised at each call
                until it works.
        """
        rows = self._retry_best(tick.mono_s) or self._read(tick)
        if rows is None:
            return
        devices = self._devices.devices(rows, self._vendor.readings, self._vendor.identity)
        write(tick, devices, self._offset)
        tick.events += self._devices.changes(devices, self._offset)
        self._update_facts(devices, tick.mono_s)

    def _update_facts(self, devices: Sequence[VendorDevice], mono_s: float) -> None:
        """Update `facts` and `absent`; replace an object only if it has changed."""
        facts = self._devices.facts(devices, self._offset)
        if facts != self.facts:
            self.facts = facts
        never = {
            key: why
            for key, why in self._vendor.missing.items()
            if not any(device.has(key) for device in devices)
        }
        lacking = self._gaps.explain(devices, self._offset, mono_s)
        absent = {**lacking, **never, **self._devices.reasons(self._offset)}
        if self._complaint:
            absent[_EXIT] = self._complaint
        if absent != self.absent:
            self.absent = absent

    def close(self) -> None:
        """Stop the child processes."""
        for tool in self._tools:
            tool.close()

    def _read(self, tick: Tick) -> list[Row] | None:
        while True:
            tool = self._tools[0]
            try:
                rows = self._read_output(tool, tick)
            except (ToolFailed, ValueError) as error:
                text = str(error) if isinstance(error, ToolFailed) else f"{' '.join(tool.argv)}: {error}"
                if self._worked:
                    self._failed = text
                elif self._try_another(tool, text):
                    continue
                raise ToolFailed(self._failed) from None
            break
        if rows is None:
            if self._failed:
                raise ToolFailed(self._failed)  # still failing, with no newer output
            return None
        if not self._worked:
            self._worked = True
            self._again.due(tick.mono_s)
        was_failing, self._failed = bool(self._failed), ""
        if was_failing and tick.mono_s - tool.moment_s > STALE_S:
            return None  # it works again, but this output is as old as the pause
        return rows

    def _retry_best(self, mono_s: float) -> list[Row] | None:
        """Try the best command again, which reports most.

        It may only have failed because the driver was busy.
        """
        best = self._best
        if not self._worked or best is self._tools[0] or not (best.running or self._again.due(mono_s)):
            return None
        try:
            output = best.output(mono_s)
        except ToolFailed:
            return None  # keep the command that works
        rows = None if output is None else self._complete_rows(output)
        if rows is not None:
            self._tools = [best, *(tool for tool in self._tools if tool is not best)]
            self._failed = self._complaint = ""
        return rows

    def _read_output(self, tool: Tool, tick: Tick) -> list[Row] | None:
        try:
            output = tool.output(tick.mono_s)
        except ToolFailed as failed:  # some tools always exit with an error after valid output
            rows = self._complete_rows(failed.output) if failed.has_ended else None
            if rows is None:
                raise
            self._complaint = f"{failed}, after valid output"
            return rows
        if output is not None:
            self._complaint = ""
        return None if output is None else self._rows(output, tick)

    def _complete_rows(self, output: bytes) -> list[Row] | None:
        """Return the rows of complete output.

        None if it is invalid or a device is missing: it may be truncated.
        """
        try:
            rows = self._vendor.rows(output)
        except ValueError:
            return None
        is_whole = self._vendor.has_known_readings(rows) and self._devices.count <= len(rows) <= MAX_DEVICES
        return rows if is_whole else None

    def _try_another(self, tool: Tool, why: str) -> bool:
        """Move on to a command that was never tried, which this release may need; False if there is none."""
        self._failures[" ".join(tool.argv)] = why
        self._tools = [*self._tools[1:], tool]
        if len(self._failures) < len(self._tools):
            return True
        self._failed = "; ".join(dict.fromkeys(self._failures.values()))
        return False

    def _rows(self, output: bytes, tick: Tick) -> list[Row]:
        """Return the rows of the output; ValueError, with its first lines, if it is invalid."""
        try:
            rows = self._vendor.rows(output)
        except ValueError as error:
            lines = first_lines(output)
            raise ValueError(str(error) if lines in str(error) else f"{error}; it printed {lines}") from None
        if len(rows) > MAX_DEVICES:
            raise ValueError(f"it lists {len(rows)} devices; it printed {first_lines(output)}")
        if not rows and self._worked:
            tick.events += self._devices.changes((), self._offset)
        if not self._vendor.has_known_readings(rows):
            self._identify(rows)
            what = "none of its devices has a known reading" if rows else "it lists no device"
            raise ValueError(f"{what}; it printed {first_lines(output)}")
        return rows

    def _identify(self, rows: list[Row]) -> None:
        """Keep the devices' identities, if the output has nothing else."""
        devices = [
            each
            for each in self._devices.devices(rows, self._vendor.readings, self._vendor.identity)
            if each.identity
        ]
        if devices:
            self.facts = self._devices.facts(devices, self._offset)
