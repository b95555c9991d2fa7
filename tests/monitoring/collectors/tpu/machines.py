"""Fake TPU hosts: entries of PCI and /dev."""

from __future__ import annotations

PCI = "sys/bus/pci/devices"
# Google's network card, which has the same vendor.
GVNIC = {
    f"{PCI}/0000:00:01.0/vendor": "0x1ae0\n",
    f"{PCI}/0000:00:01.0/device": "0x0042\n",
    f"{PCI}/0000:00:01.0/subsystem_device": "0x0058\n",
}


def chip(address: str, device: str, subsystem: str = "0x0001", group: int | None = None) -> dict[str, str]:
    """A PCI function."""
    folder = f"{PCI}/{address}"
    tree = {
        f"{folder}/vendor": "0x1ae0\n",
        f"{folder}/device": f"{device}\n",
        f"{folder}/subsystem_device": f"{subsystem}\n",
    }
    if group is not None:
        tree[f"{folder}/iommu_group"] = f"-> ../../../kernel/iommu_groups/{group}"
    return tree


V5E = GVNIC | chip("0000:00:05.0", "0x0063", group=1) | chip("0000:00:04.0", "0x0063", group=0)
V3 = (
    GVNIC
    | chip("0000:00:05.0", "0x0027", "0x004f")
    | chip("0000:00:04.0", "0x0027", "0x004f")
    | {"dev/accel1": "", "dev/accel0": "", "dev/accel/accel0": ""}
)
IRONWOOD = chip("0000:00:04.0", "0x0076", group=7) | chip("0000:00:04.1", "0x0076", group=8)
