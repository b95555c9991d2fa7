"""The cards that the amdgpu driver serves, found in /sys/class/drm."""

from __future__ import annotations

import os

from runvitals.monitoring.collectors.base import read_text

VENDOR = "1002"
DRIVERS = ("amdgpu", "amdgpu_xcp_drv")


def card_names(root: str) -> list[str]:
    """Return the names of the cards that amdgpu drives, ordered by number: ``["card1", "card2"]``."""
    drm = root + "/sys/class/drm"
    try:
        names = os.listdir(drm)
    except OSError:  # no graphics device, or a sandbox
        return []
    numbers = sorted(int(name[4:]) for name in names if name[:4] == "card" and name[4:].isdigit())
    return [f"card{number}" for number in numbers if is_amd(f"{drm}/card{number}/device")]


def is_amd(folder: str) -> bool:
    """Return whether amdgpu drives a card's device.

    The server's onboard graphics (ast) and cards driven by radeon do not count.

    Partitions of a GPU belong to a separate driver (amdgpu_xcp_drv) and are not PCI devices.
    """
    try:
        return os.path.basename(os.readlink(f"{folder}/driver")) in DRIVERS
    except OSError:  # no link to the driver: a sandbox shows only some of the files
        vendor = read_text(f"{folder}/vendor")
        return vendor in (None, "0x" + VENDOR) and os.path.exists(f"{folder}/mem_info_vram_total")
