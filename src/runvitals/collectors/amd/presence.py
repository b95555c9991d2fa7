"""Whether there is an AMD GPU: the look that costs nothing where there is none."""

from __future__ import annotations

import os

from runvitals.collectors import pci
from runvitals.collectors.base import Absent, read_text
from runvitals.collectors.programs import find

TYPE_CHECKING = False
if TYPE_CHECKING:
    from runvitals.collectors.amd.gpus import AmdGpus
    from runvitals.collectors.base import Scope

VENDOR = "1002"
DRIVERS = ("amdgpu", "amdgpu_xcp_drv")
ROCM_BIN = "/opt/rocm/bin/"


def probe(scope: Scope) -> AmdGpus:
    """The GPUs of this machine. Absent, with the remedy, where there is no driver and no program for them."""
    if not card_names(scope.host_root) and not places("amd-smi") and not places("rocm-smi"):
        on_bus = ", ".join(card.address for card in pci.cards(scope).get(VENDOR, ()))
        if on_bus:
            raise Absent(f"AMD's card at {on_bus} is not driven by amdgpu: load the driver (modprobe amdgpu)")
        raise Absent(
            "no AMD GPU: amdgpu drives no card of /sys/class/drm, and no amd-smi or rocm-smi is here"
        )
    from runvitals.collectors.amd.gpus import open_gpus

    return open_gpus(scope)


def card_names(root: str) -> list[str]:
    """The cards that amdgpu drives, by their numbers: ``["card1", "card2"]``."""
    drm = root + "/sys/class/drm"
    try:
        names = os.listdir(drm)
    except OSError:  # no graphics at all, or a sandbox
        return []
    numbers = sorted(int(name[4:]) for name in names if name[:4] == "card" and name[4:].isdigit())
    return [f"card{number}" for number in numbers if is_amd(f"{drm}/card{number}/device")]


def is_amd(folder: str) -> bool:
    """Whether a card's device is driven by amdgpu: a board's own graphics (ast) or radeon's cards are not.

    Partitions of a GPU are devices of a driver of their own, not on the PCI bus.
    """
    try:
        return os.path.basename(os.readlink(f"{folder}/driver")) in DRIVERS
    except OSError:  # no driver's link: a sandbox shows part of the files only
        vendor = read_text(f"{folder}/vendor")
        return vendor in (None, "0x" + VENDOR) and os.path.exists(f"{folder}/mem_info_vram_total")


def places(name: str) -> list[str]:
    """Where a program of ROCm lies: on PATH, and in ROCm's own folder, should that be another.

    Hygon's toolkit brings a `rocm-smi` of its own, for its own cards, which have their own source.
    """
    found = (find(name, ROCM_BIN + name), find(ROCM_BIN + name))
    return list(dict.fromkeys(path for path in found if path is not None and not _is_hygon(path)))


def _is_hygon(path: str) -> bool:
    real = os.path.realpath(path)
    return "/dtk" in real or os.path.basename(real).startswith("hy-smi")
