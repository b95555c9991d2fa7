"""The devices of a vendor: their readings, what follows from those, and which devices are lost."""

from __future__ import annotations

from runvitals.collectors.plumbing import pci
from runvitals.collectors.plumbing.quantity import amount, whole
from runvitals.collectors.vendors.formats import UNKNOWN

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from runvitals.collectors.base import Tick
    from runvitals.collectors.vendors.formats import Row

# The size of the device's memory: a fact about it, and what its used share is taken of; not a key.
TOTAL = "memoryTotal"
USED, SHARE = "memoryAllocatedBytes", "memoryAllocated"
POWER, LIMIT, POWER_SHARE = "powerWatts", "enforcedPowerLimitWatts", "powerPercent"
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


class KnownDevices:
    """The devices of one vendor seen so far: numbers those whose tool gives no number, and tells which are
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

    def devices(
        self, rows: Iterable[Row], readings: Iterable[Reading], names: Mapping[str, Sequence[str]]
    ) -> list[Device]:
        """The rows as devices, by number; rows that are not devices are left out.

        Args:
            rows: what the tool printed.
            readings: what is read of each device.
            names: what a device's facts are called in a row, such as `{"index": ("id",)}`.
        """
        found: dict[int, Device] = {}
        identities = [(_identity(row, names), row) for row in rows]
        self._count([identity for identity, _ in identities])
        for position, (identity, row) in enumerate(identities):
            index = self._number(identity, position)
            device = Device(index, identity)
            for reading in readings:
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
            text = f"{before[index]} is no longer reported by {self._teller}"
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
