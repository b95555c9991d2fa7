"""Fake IPUs: a module `gcipuinfo` that reads its results from a file, with made-up values."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from runvitals.monitoring.collectors.base import Tick
from runvitals.monitoring.collectors.graphcore.collector import Ipus
from tests.monitoring.collectors.trees import put

MODULE = """
import json, os, time
FOLDER = os.path.dirname(__file__)

class gcipuinfo:
    def __init__(self):
        self.updates = False
        self.devices = self.ask()

    def setUpdateMode(self, automatic):
        self.updates = automatic

    def getDevices(self):
        if self.updates:
            self.devices = self.ask()
        return self.devices

    def ask(self):
        with open(f"{FOLDER}/answer.json") as file:
            answer = json.load(file)
        if "error" in answer:
            raise RuntimeError(answer["error"])
        if "hang_s" in answer:
            time.sleep(answer["hang_s"])
        return answer["devices"]
"""


def card(number: int, pid: int | None, **changes: str) -> dict[str, str]:
    """An IPU of a PCIe card. In names of changes "_" replaces blanks."""
    device = {
        "id": str(number),
        "target": "PCIe",
        "average board temp": "31.5 C",
        "average die temp": "40.25 C",
        "board ipu index": str(number % 2),
        "board serial number": "0042.0001.700001",
        "board type": "C2",
        "clock": "1600MHz",
        "driver version": "1.1.0",
        "firmware version": "1.4.2",
        "ipu architecture": "ipu1",
        "ipu power": "88.5 W",
        "ipu utilisation": "72.50%",
        "ipu utilisation (session)": "64.00%",
        "link correctable error count": "0",
        "link speed": "8 GT/s",
        "link width": "8",
        "numa node": "1",
        "pci id": f"0000:{0x1A + number:02x}:00.0",
        "process start time": "20260301T100000Z",
        "total board power": "201 W",
        "user executable": "python3",
    }
    if pid is not None:
        device["user process id"] = str(pid)
    return device | {name.replace("_", " "): value for name, value in changes.items()}


class Library:
    """The folder with the module. `answer` sets the results of later calls."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "site-packages"
        put(self.folder, "gcipuinfo.py", MODULE)
        self.answer()

    def answer(self, *devices: dict[str, str], **trouble: Any) -> None:
        put(self.folder, "answer.json", json.dumps({"devices": devices, **trouble}))


def forget(folder: Path) -> None:
    """Undo the import of the module."""
    sys.modules.pop("gcipuinfo", None)
    sys.path[:] = [path for path in sys.path if path != str(folder)]


def tick(ipus: Ipus, mono_s: float) -> Tick:
    moment = Tick(mono_s)
    ipus.sample(moment)
    return moment
