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
from runvitals.collectors.plumbing import pci
from runvitals.collectors.plumbing.excerpt import first_lines
from runvitals.collectors.plumbing.quantity import amount, whole
from runvitals.collectors.plumbing.tool import Tool, ToolFailed, find
from runvitals.collectors.vendors.detection import first_index
from runvitals.collectors.vendors.formats import UNKNOWN

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from runvitals.collectors.base import Scope, Tick
    from runvitals.collectors.vendors.formats import Row

# The size of the device's memory: a fact about it, and what its used share is taken of; not a key.
TOTAL = "memoryTotal"
USED, SHARE = "memoryAllocatedBytes", "memoryAllocated"
POWER, LIMIT, POWER_SHARE = "powerWatts", "enforcedPowerLimitWatts", "powerPercent"

_EXIT = "exit"  # among what is absent: how a tool ended that had answered before
# Readings older than this, after a pause because of failures, are not those of the tick they would be put in.
STALE_S = 10.0
# Where a worse way of asking works, the best is tried again so often.
AGAIN_S = 300.0
MOST_BYTES = 1 << 20  # no tool has more to say; reading it takes the monitor half a second at most
# More devices in one host, or a greater number of one, is nonsense.
MOST_DEVICES, GREATEST_INDEX = 512, 9999
MOST_LETTERS = 200  # of a device's name, serial number and so on


class Reading:
    """One number of a device: its key's last part, its unit there, and the tool's names for it, best first.

    Args:
        key: of ``gpu.{i}.{key}``, or `TOTAL`.
        unit: of the key, as in the catalogue: ``%``, ``bytes``, ``°C``, ``W``, ``MHz``, ``J``, ``1``.
        names: in the rows of the tool; the first with a number counts.
        bare: unit of a number without one, where the tool's is another than the key's.
        counter: a running total rather than a level.
        most: a greater value is nonsense, and left out; 100 % of a share, if it is not given. So is one below
            0 of all but temperatures.
    """

    __slots__ = ("bare", "counter", "key", "least", "most", "names", "unit")

    def __init__(
        self,
        key: str,
        unit: str,
        *names: str,
        bare: str | None = None,
        counter: bool = False,
        most: float | None = None,
    ) -> None:
        self.key = key
        self.unit = unit
        self.names = names
        self.bare = bare
        self.counter = counter
        share = unit == "%" and key != "fanSpeed"  # fans may turn faster than meant
        self.most = most if most is not None else 100.0 if share else float("inf")
        # Nothing runs on 0 W: a tool that does not know says so.
        self.least = float("-inf") if unit == "°C" else 1e-6 if key == POWER else 0.0

    def of(self, row: Row) -> float | None:
        """Its value in a row, None where the tool has none: "N/A", blank, a sentinel, no such column."""
        for name in self.names:
            value = amount(row.get(name), self.unit, self.bare)
            if value is not None and self.least <= value <= self.most:
                return value
        return None


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


class Device:
    """One device in one answer: its number among the vendor's, who it is, and its readings."""

    __slots__ = ("counters", "gauges", "identity", "index")

    def __init__(self, index: int, identity: dict[str, object]) -> None:
        self.index = index
        self.identity = identity
        self.gauges: dict[str, float] = {}
        self.counters: dict[str, float] = {}

    @property
    def is_silent(self) -> bool:
        """Whether it has no reading at all."""
        return not self.gauges and not self.counters

    def has(self, key: str) -> bool:
        return key in self.gauges or key in self.counters


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
        self._roll = Roll(vendor.name, path)

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
        devices = self._roll.devices(rows, self._vendor)
        write(tick, devices, self._offset)
        tick.events += self._roll.changes(devices, self._offset)
        self._tell(devices)

    def _tell(self, devices: Sequence[Device]) -> None:
        """Keep `facts` and `absent` true; a new object only where something changed."""
        facts = self._roll.facts(devices, self._offset)
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
        is_whole = self._vendor.understands(rows) and self._roll.count <= len(rows) <= MOST_DEVICES
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
            tick.events += self._roll.changes((), self._offset)
        if not self._vendor.understands(rows):
            self._identify(rows)
            what = "nothing of what it says of its devices is understood" if rows else "it lists no device"
            raise ValueError(f"{what}; it printed {first_lines(output)}")
        return rows

    def _identify(self, rows: list[Row]) -> None:
        """Keep who the devices are, where that is all an answer tells."""
        devices = [each for each in self._roll.devices(rows, self._vendor) if each.identity]
        if devices:
            self.facts = self._roll.facts(devices, self._offset)


class Roll:
    """The devices of one vendor that were seen so far: numbers for those whose tool gives none, and who is
    lost.

    Args:
        vendor: name of the source.
        teller: who tells of them: a program, a folder.
    """

    def __init__(self, vendor: str, teller: str) -> None:
        self._vendor = vendor
        self._teller = teller
        self._about: dict[int, dict[str, object]] = {}
        self._numbers: dict[str, int] = {}
        self._here: dict[int, str] | None = None
        self._lost: dict[int, str] = {}

    @property
    def count(self) -> int:
        """How many devices the last answer told of."""
        return len(self._here or ())

    def devices(self, rows: Iterable[Row], vendor: Vendor) -> list[Device]:
        """The rows as devices, by number; rows that are no device are left out."""
        found: dict[int, Device] = {}
        identities = [(_identity(row, vendor.identity), row) for row in rows]
        self._count([identity for identity, _ in identities])
        for position, (identity, row) in enumerate(identities):
            index = self._number(identity, position)
            device = Device(index, identity)
            for reading in vendor.readings:
                value = reading.of(row)
                if value is not None:
                    (device.counters if reading.counter else device.gauges)[reading.key] = value
            complete(device)
            if index not in found or found[index].is_silent:
                found[index] = device
        return [found[index] for index in sorted(found)]

    def changes(self, devices: Iterable[Device], offset: int) -> list[dict[str, object]]:
        """Events: which devices are missing since the last answer, and which have come back."""
        now = {device.index: _title(device, offset) for device in devices}
        before, self._here = self._here, now
        events: list[dict[str, object]] = []
        if before is None:
            return events
        for index in sorted(before.keys() - now.keys()):
            self._lost[index] = before[index]
            text = f"{before[index]} is no longer told of by {self._teller}"
            events.append(self._event("device_lost", "error", text))
        back = sorted(self._lost.keys() & now.keys())
        return events + [
            self._event("device_back", "info", f"{self._lost.pop(index)} is back") for index in back
        ]

    def facts(self, devices: Iterable[Device], offset: int) -> dict[str, object]:
        """What belongs to the facts about the machine: every device that was ever seen."""
        for device in devices:
            about = {"index": device.index + offset, **device.identity}
            if TOTAL in device.gauges:
                about["memory_bytes"] = device.gauges[TOTAL]
            self._about[device.index] = about
        return {f"accelerator_{self._vendor}": [self._about[index] for index in sorted(self._about)]}

    def _event(self, name: str, level: str, text: str) -> dict[str, object]:
        return {"name": name, "level": level, "source": self._vendor, "text": text}

    def _count(self, identities: Sequence[Mapping[str, object]]) -> None:
        """Number devices without an index by address, those of later answers after those of earlier ones."""
        unnumbered = [who for each in identities if "index" not in each and (who := _who(each))]
        for who in sorted(unnumbered):
            self._numbers.setdefault(who, len(self._numbers))

    def _number(self, identity: dict[str, object], position: int) -> int:
        index = identity.pop("index", None)
        return index if isinstance(index, int) else self._numbers.get(_who(identity), position)


def complete(device: Device) -> None:
    """Add what follows from other readings: the used share of memory, the share of the power limit.

    Used memory "0 of 0" is no reading.
    """
    gauges = device.gauges
    if gauges.get(TOTAL) == 0.0:
        gauges.pop(USED, None)
    total, limit = gauges.get(TOTAL, 0.0), gauges.get(LIMIT, 0.0)
    if total > 0.0 and USED in gauges:
        gauges[SHARE] = gauges[USED] * 100.0 / total
    if limit > 0.0 and POWER in gauges:
        gauges[POWER_SHARE] = gauges[POWER] * 100.0 / limit


def write(tick: Tick, devices: Iterable[Device], offset: int) -> None:
    """Put devices' readings into a tick. A limit of 0 W is none."""
    for device in devices:
        prefix = f"gpu.{device.index + offset}."
        for key, value in device.gauges.items():
            if key != TOTAL and not (key == LIMIT and value <= 0.0):
                tick.gauges[prefix + key] = value
        for key, value in device.counters.items():
            tick.counters[prefix + key] = value


def _silent(vendor: Vendor, devices: Sequence[Device]) -> dict[str, str]:
    """Key -> why, of readings that no device has."""
    return {
        reading.key: f"{vendor.programs[0]} does not tell"
        for reading in vendor.readings
        if reading.key != TOTAL and not any(device.has(reading.key) for device in devices)
    }


def _identity(row: Row, names: Mapping[str, Sequence[str]]) -> dict[str, object]:
    identity: dict[str, object] = {}
    for what, candidates in names.items():
        for name in candidates:
            text = _printable(str(row.get(name, "")))
            if what == "pci":
                text = pci.normal(text)
            if what == "index":
                index = whole(text, GREATEST_INDEX)
                if index is not None:
                    identity["index"] = index
                    break
            elif text.strip("[]").lower() not in UNKNOWN:
                identity[what] = text
                break
    return identity


def _printable(text: str) -> str:
    """A text of a tool's, short and without what a terminal would obey."""
    return "".join(letter if letter.isprintable() else " " for letter in text[:MOST_LETTERS]).strip()


def _who(identity: Mapping[str, object]) -> str:
    return str(identity.get("pci") or identity.get("uuid") or identity.get("serial") or "")


def _title(device: Device, offset: int) -> str:
    who = [str(device.identity[what]) for what in ("name", "pci") if what in device.identity]
    return f"gpu.{device.index + offset}" + (f" ({', '.join(who)})" if who else "")
