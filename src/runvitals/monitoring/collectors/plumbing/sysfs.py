"""Numbers in the kernel's files: levels, and totals from which a rate follows."""

from __future__ import annotations

import os

from runvitals.monitoring.collectors.base import PseudoFile, open_if_there, read_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable


class SysfsLevel:
    """A file with one number, and the factor to our unit."""

    __slots__ = ("_factor", "_file")

    def __init__(self, file: PseudoFile, factor: float = 1.0) -> None:
        self._file = file
        self._factor = factor

    def read(self) -> float | None:
        """Return the number now; None if the driver returns an error: the device is asleep or lost."""
        try:
            return float(self._file.read()) * self._factor
        except (OSError, ValueError):
            return None


class SysfsRate:
    """The rate at which a total grows, in units per second.

    Example:
        >>> joules = SysfsRate(SysfsLevel(energy_file, 1e-6))
        >>> joules.of(joules.total.read(), 100.0), joules.of(joules.total.read(), 101.0)  # watts
        (None, 71.5)
    """

    __slots__ = ("_last", "_mono_s", "total")

    def __init__(self, total: SysfsLevel) -> None:
        self.total = total
        self._last: float | None = None
        self._mono_s = 0.0

    def of(self, total: float | None, mono_s: float) -> float | None:
        """Return the rate since the last total; None without one, or if the total fell, which is a reset."""
        last, since_s = self._last, mono_s - self._mono_s
        self._last, self._mono_s = total, mono_s
        if total is None or last is None or since_s <= 0.0 or total < last:
            return None
        return (total - last) / since_s


def first(folder: str, names: Iterable[str], factor: float = 1.0) -> SysfsLevel | None:
    """Return the first of these files that exists and can be read."""
    for name in names:
        file = open_if_there(f"{folder}/{name}")
        if file is not None:
            return SysfsLevel(file, factor)
    return None


def names(folder: str) -> list[str]:
    """Return the names in a folder, sorted; [] if it does not exist."""
    try:
        return sorted(os.listdir(folder))
    except OSError:  # no such class of devices on this machine
        return []


def hwmon(device: str) -> str | None:
    """Return the sensors' folder of a device."""
    numbers = [name.removeprefix("hwmon") for name in names(f"{device}/hwmon")]
    numbers_of_folders = [int(number) for number in numbers if number.isdigit()]
    # The first one is the card's. i915 has more for the tiles.
    return f"{device}/hwmon/hwmon{min(numbers_of_folders)}" if numbers_of_folders else None


def find_labelled(sensors: str, kind: str, label: str) -> str | None:
    """The sensor of a kind ("temp", "energy") with this label, as the prefix of its file names: "temp2"."""
    for name in names(sensors):
        if name.startswith(kind) and name.endswith("_label") and read_text(f"{sensors}/{name}") == label:
            return name.removesuffix("_label")
    return None


def link_name(path: str) -> str:
    """Return the last path component of a link's target, "" if there is no link."""
    try:
        return os.path.basename(os.readlink(path))
    except OSError:
        return ""
