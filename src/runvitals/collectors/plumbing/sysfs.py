"""Numbers in the kernel's files: levels, and running totals that a share of time or a power follows from."""

from __future__ import annotations

import os

from runvitals.collectors.base import PseudoFile, open_if_there, read_text

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
        """The number now; None where the driver refuses it: the device sleeps, or was lost."""
        try:
            return float(self._file.read()) * self._factor
        except (OSError, ValueError):
            return None


class SysfsRate:
    """How fast a running total grows, in units a second.

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
        """From the last total to this one; None without one, and where it fell, which is a reset."""
        last, since_s = self._last, mono_s - self._mono_s
        self._last, self._mono_s = total, mono_s
        if total is None or last is None or since_s <= 0.0 or total < last:
            return None
        return (total - last) / since_s


def first(folder: str, names: Iterable[str], factor: float = 1.0) -> SysfsLevel | None:
    """The first of some files that is there and can be read."""
    for name in names:
        file = open_if_there(f"{folder}/{name}")
        if file is not None:
            return SysfsLevel(file, factor)
    return None


def names(folder: str) -> list[str]:
    """What lies in a folder, sorted; nothing where there is none."""
    try:
        return sorted(os.listdir(folder))
    except OSError:  # no such class of devices on this machine
        return []


def hwmon(device: str) -> str | None:
    """The folder of a device's sensors."""
    numbers = [name.removeprefix("hwmon") for name in names(f"{device}/hwmon")]
    found = [int(number) for number in numbers if number.isdigit()]
    # The first is the card's; i915 has others for the tiles behind it.
    return f"{device}/hwmon/hwmon{min(found)}" if found else None


def labelled(sensors: str, kind: str, label: str) -> str | None:
    """The sensor of a kind ("temp", "energy") with a label, as the beginning of its files' names: "temp2"."""
    for name in names(sensors):
        if name.startswith(kind) and name.endswith("_label") and read_text(f"{sensors}/{name}") == label:
            return name.removesuffix("_label")
    return None


def link_name(path: str) -> str:
    """The last part of what a link points to, "" where there is none."""
    try:
        return os.path.basename(os.readlink(path))
    except OSError:
        return ""
