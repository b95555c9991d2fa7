"""The machine's accelerators on PCI, listed once for the collectors of all vendors."""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from runvitals.monitoring.collectors.base import Scope

# PCI base classes: display controllers, co-processors (Hygon's cards), processing accelerators.
DISPLAY, COPROCESSOR, ACCELERATOR = "03", "0b", "12"
_COMPUTING = (DISPLAY, COPROCESSOR, ACCELERATOR)

_last: tuple[Scope, Mapping[str, list[PciDevice]]] | None = None


class PciDevice:
    """A PCI function whose class is that of an accelerator.

    Args:
        address: domain:bus:device.function, as "0000:3b:00.0".
        base_class: `DISPLAY`, `COPROCESSOR` or `ACCELERATOR`.
    """

    __slots__ = ("address", "base_class")

    def __init__(self, address: str, base_class: str) -> None:
        self.address = address
        self.base_class = base_class


def cards(scope: Scope) -> Mapping[str, list[PciDevice]]:
    """PCI vendor id in hexadecimal ("1da3") -> its accelerators, sorted by address. Empty without sysfs.

    Reads a small file for each PCI device, which takes 8 µs. The result is cached for the last scope, so that
    a round of probes costs one scan.

    Example:
        >>> [card.address for card in cards(scope).get("1da3", ())]
        ['0000:33:00.0', '0000:9a:00.0']
    """
    global _last
    if _last is None or _last[0] is not scope:
        _last = scope, _scan(scope.path("/sys/bus/pci/devices"))
    return _last[1]


def normal(address: str) -> str:
    """Return a PCI address as sysfs writes it, "" if it is invalid.

    Tools write a domain of eight digits or none, and capital letters.

    >>> normal("00000000:9D:00.0"), normal("3b:00.0"), normal("0000:xx:00.0")
    ('0000:9d:00.0', '0000:3b:00.0', '')
    """
    parts = address.strip().lower().split(":")
    if len(parts) == 2:
        parts.insert(0, "0000")
    device, dot, function = parts[-1].partition(".")
    digits = (*parts[:-1], device, function)
    if len(parts) != 3 or not dot or not all(_is_hexadecimal(each) for each in digits):
        return ""
    return f"{int(parts[0], 16):04x}:{int(parts[1], 16):02x}:{int(device, 16):02x}.{function}"


def _is_hexadecimal(text: str) -> bool:
    return bool(text) and all(letter in "0123456789abcdef" for letter in text)


def _scan(folder: str) -> dict[str, list[PciDevice]]:
    try:
        addresses = sorted(os.listdir(folder))
    except OSError:  # no PCI bus, or a container hides it
        return {}
    devices: dict[str, list[PciDevice]] = {}
    for address in addresses:
        base_class = _read(f"{folder}/{address}/class")[2:4]
        if base_class in _COMPUTING:
            vendor = _read(f"{folder}/{address}/vendor")[2:6]
            devices.setdefault(vendor, []).append(PciDevice(address, base_class))
    return devices


def _read(path: str) -> str:
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:  # removed since the folder was listed
        return ""
    try:
        return os.read(fd, 16).decode("ascii", "replace")
    except OSError:
        return ""
    finally:
        os.close(fd)
