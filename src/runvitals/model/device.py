"""Devices of a run, from the facts about its hosts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from runvitals.model.limits import LABEL_CHARACTERS
from runvitals.model.names import plain_text


@dataclass(frozen=True, slots=True)
class RunDevice:
    """A device that a run saw on one of its hosts. None: unknown.

    Args:
        uuid: of the device. It stays the same when the device moves to another slot or host.
        pci_address: on that host; required if there is no UUID.
        position: its index there, as the run saw it.
        used: by the run.
        facts: other facts, a JSON object.
    """

    host: str
    uuid: str | None = None
    pci_address: str | None = None
    position: int | None = None
    used: bool | None = None
    vendor: str | None = None
    model: str | None = None
    memory_bytes: int | None = None
    facts: dict[str, Any] = field(default_factory=dict)

    @property
    def identity(self) -> str:
        """Its UUID, or `<host>/<PCI address>`; raises ValueError if it has neither."""
        if not self.uuid and not self.pci_address:
            raise ValueError(f"a device of {self.host} without a UUID needs its PCI address")
        return plain_text(self.uuid or f"{self.host}/{self.pci_address}")


def devices_of(host: str, machine: Mapping[str, object]) -> list[RunDevice]:
    """Return the devices in the facts about a machine.

    Those without a usable UUID or PCI address are left out.

    Args:
        machine: as in journals. A list of maps with `uuid` or `pci` is a list of devices.

    Example:
        >>> devices_of("node1", {"gpu_nvidia": [{"index": 0, "uuid": "GPU-5"}]})[0].identity
        'GPU-5'
    """
    devices: dict[str, RunDevice] = {}
    for name, listed in machine.items():
        for about in listed if isinstance(listed, list) else ():
            if isinstance(about, dict) and (_text(about, "uuid") or _text(about, "pci")):
                device = _device(host, name.removeprefix("gpu_"), about)
                devices[device.identity] = device
    return list(devices.values())


def _device(host: str, vendor: str, about: Mapping[str, object]) -> RunDevice:
    used = about.get("used")
    return RunDevice(
        host,
        uuid=_text(about, "uuid"),
        pci_address=_text(about, "pci"),
        position=_number(about, "index"),
        used=used if isinstance(used, bool) else None,
        vendor=vendor[:LABEL_CHARACTERS],
        model=_text(about, "name"),
        memory_bytes=_number(about, "memory_bytes"),
    )


def _text(about: Mapping[str, object], name: str) -> str | None:
    text = about.get(name)
    return text if isinstance(text, str) and 0 < len(text) <= LABEL_CHARACTERS else None


def _number(about: Mapping[str, object], name: str) -> int | None:
    number = about.get(name)
    return number if type(number) is int and 0 <= number < 2**63 else None
