"""The readings that devices lack, with the reasons."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

# A reading without a value for less than this is not reported: some fail now and then.
PATIENCE_S = 20.0


class ExpectedReadings:
    """The readings that a source may have of a device, and which of them had a value lately.

    Args:
        names: of the readings, as in the last part of a key: `temp`.
        patience_s: a reading that has had no value for between once and twice this time is missing, and so is
            one that never had one.

    Example:
        >>> expected = ExpectedReadings(("temp", "powerWatts"))
        >>> expected.note(1, {"temp": 41.0}, mono_s)
        >>> expected.missing(1)
        ['powerWatts']
    """

    __slots__ = ("_names", "_patience_s", "_readings")

    def __init__(self, names: Iterable[str], patience_s: float = PATIENCE_S) -> None:
        self._names = tuple(dict.fromkeys(names))
        self._patience_s = patience_s
        self._readings: dict[int, SeenReadings] = {}

    def note(self, device: int, names: Iterable[str], mono_s: float) -> None:
        """Note that readings of a device have a value."""
        readings = self._readings.get(device)
        if readings is None:
            readings = self._readings[device] = SeenReadings(mono_s)
        if mono_s - readings.since_s > self._patience_s:
            readings.older, readings.newer, readings.since_s = readings.newer, set(), mono_s
        readings.newer.update(names)

    def missing(self, device: int) -> list[str]:
        """Return the readings of a device that are missing."""
        return [name for name in self._names if self.lacks(device, name)]

    def lacks(self, device: int, name: str) -> bool:
        """Return whether a reading of a device is missing, also one that is not among the names."""
        readings = self._readings.get(device)
        return readings is None or (name not in readings.newer and name not in readings.older)


class SeenReadings:
    """The readings that have had a value since a time, and in the period before it.

    Two sets cost less than a time for each reading.
    """

    __slots__ = ("newer", "older", "since_s")

    def __init__(self, since_s: float) -> None:
        self.since_s = since_s
        self.newer: set[str] = set()
        self.older: set[str] = set()


def explain(missing: Mapping[int, Mapping[str, str]], noun: str = "GPU", others: int = 0) -> dict[str, str]:
    """Why readings are missing, for a collector's `absent`.

    Args:
        missing: the number of each device -> reading -> why it is missing.
        noun: what a device is called.
        others: how many devices there are that `missing` says nothing about.

    Example:
        >>> explain({0: {"fanSpeed": "not supported"}, 1: {"fanSpeed": "not supported", "temp": "lost"}})
        {'fanSpeed': 'not supported', 'temp': 'lost (GPU 1)'}
    """
    devices: dict[tuple[str, str], list[int]] = {}
    for device, reasons in missing.items():
        for reading, why in reasons.items():
            devices.setdefault((reading, why), []).append(device)
    absent: dict[str, str] = {}
    for (reading, why), having in devices.items():
        text = (
            why if len(having) == len(missing) + others else f"{why} ({noun} {', '.join(map(str, having))})"
        )
        add(absent, reading, text)
    return absent


def add(absent: dict[str, str], name: str, why: str) -> None:
    """Add a reason for a name that may have one of other devices."""
    absent[name] = f"{absent[name]}; {why}" if name in absent else why
