"""The devices of a vendor: their readings, derived values, and which devices are lost."""

from __future__ import annotations

from runvitals.monitoring.collectors.plumbing import pci
from runvitals.monitoring.collectors.plumbing.missing_readings import ExpectedReadings, explain
from runvitals.monitoring.collectors.plumbing.quantity import amount, whole
from runvitals.monitoring.collectors.vendors.formats import UNKNOWN

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from runvitals.monitoring.collectors.base import Tick
    from runvitals.monitoring.collectors.vendors.formats import Row

# The size of the device's memory. Not a key, but a fact, and the base of the used share.
TOTAL = "memoryTotal"
USED, SHARE = "memoryAllocatedBytes", "memoryAllocated"
POWER, LIMIT, POWER_SHARE = "powerWatts", "enforcedPowerLimitWatts", "powerPercent"
# More devices in one host, or a higher index, is invalid.
MAX_DEVICES, MAX_INDEX = 512, 9999
MAX_LETTERS = 200  # in a device's name, serial number etc.


class Reading:
    """One reading of a device: the last part of its key, its unit, and the tool's names for it.

    Args:
        key: of ``gpu.{i}.{key}``, or `TOTAL`.
        unit: of the key, as in the metric definitions: ``%``, ``bytes``, ``°C``, ``W``, ``MHz``, ``J``,
            ``1``.
        names: in the rows of the tool, in order of preference; the first one with a number is used.
        bare: the unit of a number without a unit, if it is not that of the key.
        counter: whether it is a total.
        most: higher values are invalid for this vendor, and left out. So are values below 0, except for
            temperatures.
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
        self.most = most if most is not None else float("inf")
        # No device draws 0 W: tools report it if the power is unknown.
        self.least = float("-inf") if unit == "°C" else 1e-6 if key == POWER else 0.0

    def of(self, row: Row) -> float | None:
        """Return its value in a row; None if it is missing, blank, "N/A" or out of range."""
        for name in self.names:
            value = amount(row.get(name), self.unit, self.bare)
            if value is not None and self.least <= value <= self.most:
                return value
        return None


class VendorDevice:
    """One device in one output: its index within the vendor, identity, and readings."""

    __slots__ = ("counters", "gauges", "identity", "index")

    def __init__(self, index: int, identity: dict[str, object]) -> None:
        self.index = index
        self.identity = identity
        self.gauges: dict[str, float] = {}
        self.counters: dict[str, float] = {}

    @property
    def has_no_readings(self) -> bool:
        """Whether it has no readings."""
        return not self.gauges and not self.counters

    def has(self, key: str) -> bool:
        """Return whether the output has this reading."""
        return key in self.gauges or key in self.counters


class DeviceGaps:
    """Name the readings that devices lack, for a collector's `absent`.

    Args:
        keys: all that a device may have.
        why: why it may lack one.
    """

    __slots__ = ("_expected", "_why")

    def __init__(self, keys: Iterable[str], why: str) -> None:
        self._expected = ExpectedReadings(keys)
        self._why = why

    def explain(self, devices: Iterable[VendorDevice], offset: int, mono_s: float) -> dict[str, str]:
        """Reading -> why it is missing."""
        missing: dict[int, dict[str, str]] = {}
        for device in devices:
            self._expected.note(device.index, (*device.gauges, *device.counters), mono_s)
            lacking = self._expected.missing(device.index)
            missing[device.index + offset] = dict.fromkeys(lacking, self._why)
        return explain(missing)


class KnownDevices:
    """The known devices of one vendor. Numbers devices without an index, and detects which are lost.

    Args:
        vendor: name of the source.
        origin: what reports them: a program or a folder.
    """

    def __init__(self, vendor: str, origin: str) -> None:
        self._vendor = vendor
        self._origin = origin
        self._about: dict[int, dict[str, object]] = {}
        self._numbers: dict[str, int] = {}
        self._names: dict[int, str] | None = None
        self._lost: dict[int, str] = {}

    @property
    def count(self) -> int:
        """The number of devices in the last output."""
        return len(self._names or ())

    def devices(
        self, rows: Iterable[Row], readings: Iterable[Reading], names: Mapping[str, Sequence[str]]
    ) -> list[VendorDevice]:
        """Return the rows as devices, by index. Rows that are not devices are left out.

        Args:
            rows: from the tool's output.
            readings: the readings of each device.
            names: names of the identifying values in a row, such as `{"index": ("id",)}`.
        """
        by_index: dict[int, VendorDevice] = {}
        identities = [(_identity(row, names), row) for row in rows]
        self._count([identity for identity, _ in identities])
        for position, (identity, row) in enumerate(identities):
            index = self._number(identity, position)
            device = VendorDevice(index, identity)
            for reading in readings:
                value = reading.of(row)
                if value is not None:
                    (device.counters if reading.counter else device.gauges)[reading.key] = value
            complete(device)
            if index not in by_index or by_index[index].has_no_readings:
                by_index[index] = device
        return [by_index[index] for index in sorted(by_index)]

    def changes(self, devices: Iterable[VendorDevice], offset: int) -> list[dict[str, object]]:
        """Events for devices that are missing since the last output, or have come back."""
        now = {device.index: _title(device, offset) for device in devices}
        before, self._names = self._names, now
        events: list[dict[str, object]] = []
        if before is None:
            return events
        for index in sorted(before.keys() - now.keys()):
            self._lost[index] = before[index]
            text = f"{before[index]} is no longer reported by {self._origin}"
            events.append(self._event("device_lost", "error", text))
        back = sorted(self._lost.keys() & now.keys())
        return events + [
            self._event("device_back", "info", f"{self._lost.pop(index)} is back") for index in back
        ]

    def reasons(self, offset: int) -> dict[str, str]:
        """Return the keys of the lost devices, and why they have no values."""
        return {
            f"gpu.{index + offset}": f"lost: {title} is no longer reported"
            for index, title in self._lost.items()
        }

    def facts(self, devices: Iterable[VendorDevice], offset: int) -> dict[str, object]:
        """Return the facts about all devices ever seen, for the facts about the machine."""
        for device in devices:
            about = {"index": device.index + offset, **device.identity}
            if TOTAL in device.gauges:
                about["memory_bytes"] = device.gauges[TOTAL]
            self._about[device.index] = about
        return {f"accelerator_{self._vendor}": [self._about[index] for index in sorted(self._about)]}

    def _event(self, name: str, level: str, text: str) -> dict[str, object]:
        return {"name": name, "level": level, "source": self._vendor, "text": text}

    def _count(self, identities: Sequence[Mapping[str, object]]) -> None:
        """Number devices without an index by address. Devices in later outputs follow earlier ones."""
        unnumbered = [who for each in identities if "index" not in each and (who := _who(each))]
        for who in sorted(unnumbered):
            self._numbers.setdefault(who, len(self._numbers))

    def _number(self, identity: dict[str, object], position: int) -> int:
        index = identity.pop("index", None)
        return index if isinstance(index, int) else self._numbers.get(_who(identity), position)


def complete(device: VendorDevice) -> None:
    """Add derived readings: percentages of memory used and of the power limit.

    Used memory "0 of 0" is removed, and so is a limit of 0 W.
    """
    gauges = device.gauges
    if gauges.get(LIMIT, 1.0) <= 0.0:
        del gauges[LIMIT]
    if gauges.get(TOTAL) == 0.0:
        gauges.pop(USED, None)
    total, limit = gauges.get(TOTAL, 0.0), gauges.get(LIMIT, 0.0)
    if total > 0.0 and USED in gauges:
        gauges[SHARE] = gauges[USED] * 100.0 / total
    if limit > 0.0 and POWER in gauges:
        gauges[POWER_SHARE] = gauges[POWER] * 100.0 / limit


def derived_keys(readings: Iterable[Reading]) -> list[str]:
    """Return the keys that `complete` may add to these readings."""
    keys = {reading.key for reading in readings}
    needs = ((SHARE, {TOTAL, USED}), (POWER_SHARE, {LIMIT, POWER}))
    return [key for key, needed in needs if needed <= keys and key not in keys]


def write(tick: Tick, devices: Iterable[VendorDevice], offset: int) -> None:
    """Write the devices' readings into a tick."""
    for device in devices:
        prefix = f"gpu.{device.index + offset}."
        for key, value in device.gauges.items():
            if key != TOTAL:
                tick.gauges[prefix + key] = value
        for key, value in device.counters.items():
            tick.counters[prefix + key] = value


def _identity(row: Row, names: Mapping[str, Sequence[str]]) -> dict[str, object]:
    identity: dict[str, object] = {}
    for field, candidates in names.items():
        for name in candidates:
            text = _printable(str(row.get(name, "")))
            if field == "pci":
                text = pci.normal(text)
            if field == "index":
                index = whole(text, MAX_INDEX)
                if index is not None:
                    identity["index"] = index
                    break
            elif text.strip("[]").lower() not in UNKNOWN:
                identity[field] = text
                break
    return identity


def _printable(text: str) -> str:
    """Return a short text without control characters."""
    return "".join(letter if letter.isprintable() else " " for letter in text[:MAX_LETTERS]).strip()


def _who(identity: Mapping[str, object]) -> str:
    return str(identity.get("pci") or identity.get("uuid") or identity.get("serial") or "")


def _title(device: VendorDevice, offset: int) -> str:
    who = [str(device.identity[field]) for field in ("name", "pci") if field in device.identity]
    return f"gpu.{device.index + offset}" + (f" ({', '.join(who)})" if who else "")
