"""The TPU chips of this host: PCI devices and device nodes, generation, and which processes use them."""

from __future__ import annotations

import os

from runvitals.monitoring.collectors.base import read_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from runvitals.monitoring.collectors.base import Scope

VENDOR = "0x1ae0"
DEVICES = "/sys/bus/pci/devices"
DMI = "/sys/class/dmi/id/"

# PCI device id (and subsystem id, for older ones) -> name, GiB of memory (for v2 and v3 per device, else per
# chip), devices of a chip that programs see.
GENERATIONS = {
    ("0x0027", "0x004e"): ("v2", 8, 2),
    ("0x0027", "0x004f"): ("v3", 16, 2),
    ("0x005e", ""): ("v4", 32, 1),
    ("0x0063", ""): ("v5e", 16, 1),
    ("0x0062", ""): ("v5p", 95, 1),
    ("0x006f", ""): ("v6e", 32, 1),
    ("0x0076", ""): ("7x", 192, 2),
}


class TpuChip:
    """A TPU chip.

    Args:
        index: its position among the host's chips.
        pci: its PCI address, "" if PCI is not visible.
        node: the device file that programs open, "" if unknown.
        generation: ``v5e`` …, "" if unknown.
        devices: how many devices programs see in it.
    """

    __slots__ = ("devices", "generation", "index", "memory_gib", "node", "pci")

    def __init__(
        self, index: int, pci: str, node: str, generation: str = "", memory_gib: int = 0, devices: int = 1
    ) -> None:
        self.index = index
        self.pci = pci
        self.node = node
        self.generation = generation
        self.memory_gib = memory_gib
        self.devices = devices

    def fact(self) -> dict[str, object]:
        """Describe the chip."""
        fact = {"index": self.index, "pci": self.pci, "node": self.node}
        return {name: value for name, value in fact.items() if value != ""}


def find_chips(scope: Scope) -> list[TpuChip]:
    """Return the chips, ordered by their device nodes; [] if there are none or they are not visible.

    PCI is read only on machines of Google Cloud, since it takes 8 µs a device.
    """
    vendor = read_text(scope.path(DMI + "sys_vendor"))
    on_bus = _on_bus(scope) if vendor is None or "Google" in vendor else []
    # Chips of the newest generation have a PCI function for each device.
    functions: dict[str, list[tuple[str, tuple[str, int, int]]]] = {}
    for address, generation in on_bus:
        functions.setdefault(address.rpartition(".")[0], []).append((address, generation))
    nodes = accel_nodes(scope)
    chips = []
    for position, first in enumerate(each[0] for each in functions.values()):
        address, (name, memory_gib, devices) = first
        group = _iommu_group(scope, address)
        node = nodes[position] if position < len(nodes) else f"/dev/vfio/{group}" if group else ""
        chips.append(TpuChip(position, address, node, name, memory_gib, devices))
    if not chips:
        chips = [TpuChip(position, "", node) for position, node in enumerate(nodes)]
    chips.sort(key=lambda chip: (_number(chip.node), chip.pci))
    for position, chip in enumerate(chips):
        chip.index = position
    return chips


def accel_nodes(scope: Scope) -> list[str]:
    """/dev/accel0 …, by number. Accelerators of other vendors have theirs in a folder of that name."""
    try:
        names = os.listdir(scope.path("/dev"))
    except OSError:  # no /dev in this root
        return []
    nodes = [name for name in names if name.startswith("accel") and name[5:].isdigit()]
    return [f"/dev/{name}" for name in sorted(nodes, key=_number)]


def users(chips: Iterable[TpuChip], pids: Iterable[int], proc: str = "/proc") -> set[str]:
    """Return the nodes that any of the processes has open."""
    nodes = {chip.node for chip in chips if chip.node}
    used: set[str] = set()
    for pid in pids:
        folder = f"{proc}/{pid}/fd"
        try:
            descriptors = os.listdir(folder)
        except OSError:  # the process has ended, or belongs to another user
            continue
        for descriptor in descriptors:
            try:
                used.add(os.readlink(f"{folder}/{descriptor}"))
            except OSError:
                continue  # closed since the listing
    return used & nodes


def devices_per_chip(chips: Sequence[TpuChip]) -> int:
    """Count the devices of a chip."""
    return chips[0].devices if chips else 1


def _on_bus(scope: Scope) -> list[tuple[str, tuple[str, int, int]]]:
    """(address, generation) of the chips, by address. Google's network card has the same PCI vendor."""
    folder = scope.path(DEVICES)
    try:
        addresses = sorted(os.listdir(folder))
    except OSError:  # no PCI, or a container that hides it
        return []
    chips = []
    for address in addresses:
        if read_text(f"{folder}/{address}/vendor") == VENDOR:
            device = read_text(f"{folder}/{address}/device") or ""
            subsystem = read_text(f"{folder}/{address}/subsystem_device") or ""
            generation = GENERATIONS.get((device, subsystem)) or GENERATIONS.get((device, ""))
            if generation is not None:
                chips.append((address, generation))
    return chips


def _iommu_group(scope: Scope, address: str) -> str:
    try:
        return os.path.basename(os.readlink(scope.path(f"{DEVICES}/{address}/iommu_group")))
    except OSError:  # no IOMMU group: the older driver
        return ""


def _number(name: str) -> int:
    digits = name[len(name.rstrip("0123456789")) :]
    return int(digits) if digits else -1
