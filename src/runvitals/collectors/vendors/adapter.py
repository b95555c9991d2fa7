"""A vendor's command as a source: what to run, how to read it, and which of its names are which of our keys.

A vendor is a `Vendor`, a table and a function, in a file of its own; another package can add one the same
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

from runvitals.collectors.base import Absent, Every
from runvitals.collectors.plumbing.excerpt import first_lines
from runvitals.collectors.plumbing.tool import Tool, ToolFailed, find
from runvitals.collectors.vendors.detection import first_index
from runvitals.collectors.vendors.devices import MOST_DEVICES, TOTAL, Device, KnownDevices, write
from runvitals.collectors.vendors.devices import Reading as Reading

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from runvitals.collectors.base import Scope, Tick
    from runvitals.collectors.vendors.formats import Row


_EXIT = "exit"  # among what is absent: how a tool ended that had answered before
# Readings older than this, after a pause because of failures, are not those of the tick they would be put in.
STALE_S = 10.0
# Where a worse way of asking works, the best is tried again so often.
AGAIN_S = 300.0
MOST_BYTES = 1 << 20  # no tool has more to say; reading it takes the monitor half a second at most


class Vendor:
    """What there is to know of a vendor's tool.

    Args:
        name: of the source; facts about the devices are kept as ``accelerator_{name}``.
        title: for people.
        programs: its file names, best first; `folders` are searched too when none is on PATH.
        commands: arguments, best first. The next one is tried where one fails, or prints nothing that is
            understood, as long as none has worked.
        rows: makes rows of what was printed, one for each device. Raises ValueError where it cannot.
        readings: what the rows hold.
        identity: index, name, uuid, pci, serial: the rows' names for them, best first.
        every_s: how often to ask; some tools hold up the driver or take a core for a second.
        timeout_s: how long an answer may take.
        environ: variables the tool needs.
        missing: key -> why this vendor has no such reading.
    """

    __slots__ = (
        "_known", "commands", "environ", "every_s", "folders", "identity", "missing", "name",
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
        environ: Mapping[str, str] | None = None,
        missing: Mapping[str, str] | None = None,
    ) -> None:
        self.name = name
        self.title = title
        self.programs = programs
        self.commands = commands
        self.rows = rows
        self.readings = readings
        self._known = frozenset(name for reading in readings for name in reading.names)
        self.identity = identity or {
            "index": ("index",),
            "name": ("name",),
            "uuid": ("uuid",),
            "pci": ("pci",),
        }
        self.folders = (*folders, "/usr/bin", "/usr/local/bin")
        self.every_s = every_s
        self.timeout_s = timeout_s
        self.environ = environ
        self.missing = missing or {}

    def understands(self, rows: Sequence[Row]) -> bool:
        """Whether a device has a reading whose name we know, be its value "N/A"."""
        return any(not self._known.isdisjoint(row) for row in rows)


def watch(scope: Scope, vendor: Vendor) -> Smi:
    """The source of a vendor whose accelerators are here. Absent where its tool is not."""
    return Smi(vendor, locate(vendor), first_index(scope, vendor.name))


def locate(vendor: Vendor) -> str:
    """Where a vendor's tool lies. Absent where it is not."""
    for name in vendor.programs:
        path = find(name, *[f"{folder}/{name}" for folder in vendor.folders])
        if path is not None:
            return path
    raise Absent(
        f"{vendor.title} is here, but {' or '.join(vendor.programs)} is neither on PATH nor in "
        f"{', '.join(vendor.folders)}: install the vendor's tools, or mount them into the container"
    )


class Smi:
    """`gpu.{i}.…` of one vendor's devices, from its command line tool.

    Args:
        path: where the tool is.
        offset: added to the tool's own device numbers.
    """

    def __init__(self, vendor: Vendor, path: str, offset: int = 0) -> None:
        self.name = vendor.name
        self.absent: dict[str, str] = dict(vendor.missing)
        self.facts: dict[str, object] | None = None
        self._vendor = vendor
        self._offset = offset
        self._tools = [
            Tool([path, *command], vendor.every_s, vendor.timeout_s, MOST_BYTES, vendor.environ)
            for command in vendor.commands
        ]
        self._best = self._tools[0]
        self._again = Every(AGAIN_S)
        # Arguments -> why they did not work, for as long as none has worked.
        self._refused: dict[str, str] = {}
        self._failed = ""
        self._complaint = ""
        self._worked = False
        self._seen = False
        self._known = KnownDevices(vendor.name, path)

    @property
    def pending(self) -> bool:
        """Whether the first answer is under way."""
        return not self._worked and self._tools[0].running

    def sample(self, tick: Tick) -> None:
        """Write the newest answer, if there is one.

        Raises:
            ToolFailed: the tool could not be asked or understood, or lists no device; again at each call
                until it answers.
        """
        rows = self._ask_best(tick.mono_s) or self._ask(tick)
        if rows is None:
            return
        devices = self._known.devices(rows, self._vendor.readings, self._vendor.identity)
        write(tick, devices, self._offset)
        tick.events += self._known.changes(devices, self._offset)
        self._tell(devices)

    def _tell(self, devices: Sequence[Device]) -> None:
        """Keep `facts` and `absent` true; a new object only where something changed."""
        facts = self._known.facts(devices, self._offset)
        if facts != self.facts:
            self.facts = facts
        if not self._seen:
            self._seen = True
            self.absent = {**_silent(self._vendor, devices), **self._vendor.missing}
        elif any(device.has(key) for device in devices for key in self.absent):
            still = [key for key in self.absent if not any(device.has(key) for device in devices)]
            self.absent = {key: self.absent[key] for key in still}
        if self.absent.get(_EXIT, "") != self._complaint:
            rest = {key: why for key, why in self.absent.items() if key != _EXIT}
            self.absent = {**rest, _EXIT: self._complaint} if self._complaint else rest

    def close(self) -> None:
        """End what runs."""
        for tool in self._tools:
            tool.close()

    def _ask(self, tick: Tick) -> list[Row] | None:
        while True:
            tool = self._tools[0]
            try:
                rows = self._answer(tool, tick)
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
                raise ToolFailed(self._failed)  # no news is not good news
            return None
        if not self._worked:
            self._worked = True
            self._again.due(tick.mono_s)
        was_failing, self._failed = bool(self._failed), ""
        if was_failing and tick.mono_s - tool.moment_s > STALE_S:
            return None  # as old as the pause after the failure: a good sign, but no readings
        return rows

    def _ask_best(self, mono_s: float) -> list[Row] | None:
        """Ask again in the first way, which tells most: perhaps the driver was only busy at the start."""
        best = self._best
        if not self._worked or best is self._tools[0] or not (best.running or self._again.due(mono_s)):
            return None
        try:
            output = best.output(mono_s)
        except ToolFailed:
            return None  # the way that works goes on
        rows = None if output is None else self._whole(output)
        if rows is not None:
            self._tools = [best, *(tool for tool in self._tools if tool is not best)]
            self._failed = self._complaint = ""
        return rows

    def _answer(self, tool: Tool, tick: Tick) -> list[Row] | None:
        try:
            output = tool.output(tick.mono_s)
        except ToolFailed as failed:  # some do each time, after a good answer
            rows = self._whole(failed.output) if failed.has_ended else None
            if rows is None:
                raise
            self._complaint = f"{failed}, after a good answer"
            return rows
        if output is not None:
            self._complaint = ""
        return None if output is None else self._rows(output, tick)

    def _whole(self, output: bytes) -> list[Row] | None:
        """Its rows. None where it is not understood, or a device is missing: perhaps it broke off."""
        try:
            rows = self._vendor.rows(output)
        except ValueError:
            return None
        is_whole = self._vendor.understands(rows) and self._known.count <= len(rows) <= MOST_DEVICES
        return rows if is_whole else None

    def _try_another(self, tool: Tool, why: str) -> bool:
        """Whether other arguments are left that were never tried: perhaps this release wants those."""
        self._refused[" ".join(tool.argv)] = why
        self._tools = [*self._tools[1:], tool]
        if len(self._refused) < len(self._tools):
            return True
        self._failed = "; ".join(dict.fromkeys(self._refused.values()))
        return False

    def _rows(self, output: bytes, tick: Tick) -> list[Row]:
        """What was printed, as rows; ValueError, with its first lines, where nothing of it is understood."""
        try:
            rows = self._vendor.rows(output)
        except ValueError as error:
            lines = first_lines(output)
            raise ValueError(str(error) if lines in str(error) else f"{error}; it printed {lines}") from None
        if len(rows) > MOST_DEVICES:
            raise ValueError(f"it lists {len(rows)} devices; it printed {first_lines(output)}")
        if not rows and self._worked:
            tick.events += self._known.changes((), self._offset)
        if not self._vendor.understands(rows):
            self._identify(rows)
            what = "nothing of what it says of its devices is understood" if rows else "it lists no device"
            raise ValueError(f"{what}; it printed {first_lines(output)}")
        return rows

    def _identify(self, rows: list[Row]) -> None:
        """Keep who the devices are, where that is all an answer tells."""
        devices = [
            each
            for each in self._known.devices(rows, self._vendor.readings, self._vendor.identity)
            if each.identity
        ]
        if devices:
            self.facts = self._known.facts(devices, self._offset)


def _silent(vendor: Vendor, devices: Sequence[Device]) -> dict[str, str]:
    """Key -> why, of readings that no device has."""
    return {
        reading.key: f"not reported by {vendor.programs[0]}"
        for reading in vendor.readings
        if reading.key != TOTAL and not any(device.has(reading.key) for device in devices)
    }
