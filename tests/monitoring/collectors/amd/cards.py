"""Fake AMD GPUs: their files in /sys with made-up values, and a driver whose files fail."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from runvitals.monitoring.collectors.amd.collector import AmdGpus
from runvitals.monitoring.collectors.base import Scope, Tick
from tests.monitoring.collectors.trees import Tree

GIB = 1 << 30


def card(number: int, pci: str, **changes: str | None) -> Tree:
    """The files of one card. A change, named by the last part of the path, replaces a file; None removes
    it.
    """
    hwmon = f"hwmon/hwmon{number + 3}"
    files = {
        "driver": "-> ../../../../bus/pci/drivers/amdgpu",
        "uevent": f"DRIVER=amdgpu\nPCI_CLASS=120000\nPCI_SLOT_NAME={pci}",
        "vendor": "0x1002",
        "unique_id": f"a1b2c3d4e5f6{number:04x}",
        "gpu_busy_percent": "63",
        "mem_busy_percent": "17",
        "mem_info_vram_used": str(16 * GIB),
        "mem_info_vram_total": str(64 * GIB),
        "mem_info_gtt_used": str(GIB),
        "mem_info_gtt_total": str(128 * GIB),
        "pp_mclk_od": "0",
        "pp_dpm_sclk": "0: 500Mhz\n1: 1290Mhz *\n2: 1700Mhz",
        "pp_dpm_mclk": "0: 400Mhz\n1: 1600Mhz *",
        "pcie_replay_count": "4",
        "ras/umc_err_count": "ue: 1\nce: 9",
        "power/runtime_status": "active",
        f"drm/renderD{127 + number}/": "",
        f"{hwmon}/power1_average": "210000000",
        f"{hwmon}/power1_cap": "280000000",
        f"{hwmon}/pwm1": "51",
        f"{hwmon}/fan1_input": "1534",
        f"{hwmon}/temp1_label": "edge",
        f"{hwmon}/temp1_input": "44000",
        f"{hwmon}/temp2_label": "junction",
        f"{hwmon}/temp2_input": "57000",
        f"{hwmon}/temp3_label": "mem",
        f"{hwmon}/temp3_input": "61500",
    }
    tree = {}
    for path, text in files.items():
        changed = changes.get(path.rpartition("/")[2], text)
        if changed is not None:
            keep = path.endswith("/") or changed.startswith("-> ")
            tree[f"sys/class/drm/card{number}/device/{path}"] = changed if keep else f"{changed}\n"
    return tree


def folder(number: int) -> str:
    return f"sys/class/drm/card{number}/device"


class Driver:
    """Files in the folders ``failing`` can be opened but not read, as those of a card that is being reset."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.failing: set[str] = set()
        self._pread = os.pread
        monkeypatch.setattr(os, "pread", self._read)

    def _read(self, fd: int, size: int, offset: int) -> bytes:
        path = os.readlink(f"/proc/self/fd/{fd}")
        if any(each in path for each in self.failing):
            raise OSError(errno.ENODEV, os.strerror(errno.ENODEV), path)
        return self._pread(fd, size, offset)


def watch(scope: Scope, root: Path) -> AmdGpus:
    """The collector of a machine without AMD's programs."""
    from runvitals.monitoring.collectors.amd.sysfs import find_cards

    return AmdGpus(scope, find_cards(str(root)), None, {}, f"{root}/proc")


def tick(gpus: AmdGpus, mono_s: float) -> Tick:
    """One tick. In these tests a tick waits for its readings."""
    moment = Tick(mono_s)
    gpus.sample(moment)
    return moment
