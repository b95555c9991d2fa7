"""Fake Macs: output of ioreg and macmon with made-up values, and programs on PATH that print it."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.monitoring.collectors.plumbing.test_tool import program

GIB = 1 << 30
STATISTICS = {
    "In use system memory (driver)": 0,
    "Alloc system memory": 9 * GIB,
    "Tiler Utilization %": 5,
    "recoveryCount": 1,
    "Renderer Utilization %": 61,
    "Device Utilization %": 64,
    "In use system memory": 4 * GIB,
}
CHIP = {
    "chip_name": "Apple M3 Max",
    "mac_model": "Mac15,9",
    "memory_gb": 64,
    "ecpu_cores": 4,
    "pcpu_cores": 12,
    "gpu_cores": 40,
    "gpu_freqs": [0, 338, 700, 1400],
}
# macmon 0.8, which also has the names of 0.7.
SAMPLE: dict[str, Any] = {
    "timestamp": "2026-03-01T10:00:01.250000+00:00",
    "temp": {"cpu_temp_avg": 61.5, "gpu_temp_avg": 55.25},
    "memory": {
        "ram_total": 64 * GIB,
        "ram_usage": 16 * GIB,
        "swap_total": 4 * GIB,
        "swap_usage": 1 * GIB,
    },
    "fans": [{"name": "fan0", "rpm": 1500, "max_rpm": 5000}],
    "cpu_active_ratio": 0.4,
    "ecpu_freq_mhz": 1100,
    "ecpu_scaled_ratio": 0.1,
    "ecpu_active_ratio": 0.25,
    "pcpu_freq_mhz": 3600,
    "pcpu_scaled_ratio": 0.4,
    "pcpu_active_ratio": 0.5,
    "gpu_freq_mhz": 1200,
    "gpu_scaled_ratio": 0.6,
    "gpu_active_ratio": 0.75,
    "ecpu_usage": [1100, 0.1],
    "pcpu_usage": [3600, 0.4],
    "gpu_usage": [1200, 0.6],
    "cpu_power": 12.0,
    "gpu_power": 30.0,
    "ane_power": 0.5,
    "all_power": 42.5,
    "sys_power": 60.0,
    "ram_power": 3.0,
    "gpu_ram_power": 0.1,
    "soc": CHIP,
}
NEWER_NAMES = ("ratio", "freq_mhz", "fans", "soc")
# macmon 0.6, without the names of 0.8 and without the chip.
OLD_SAMPLE = {name: value for name, value in SAMPLE.items() if not name.endswith(NEWER_NAMES)}


def tree(
    statistics: Mapping[str, float], model: str = "Apple M3 Max", entry: str = "AGXAcceleratorG15X"
) -> str:
    """Output of ioreg as a tree of lines."""
    properties = ",".join(f'"{name}"={value}' for name, value in statistics.items())
    return (
        f"+-o {entry}  <class {entry}, id 0x10000039c, registered, matched, active, busy 0 (309 ms)>\n"
        "    {\n"
        '      "IOMatchedAtBoot" = Yes\n'
        '      "AGCInfo" = {"fLastSubmissionPID"=733,"fBusyCount"=0}\n'
        f'      "PerformanceStatistics" = {{{properties}}}\n'
        f'      "model" = "{model}"\n'
        '      "gpu-core-count" = 40\n'
        "    }\n\n"
    )


def plist(*entries: str) -> str:
    """Output of ioreg as a property list."""
    head = (
        '<?xml version="1.0" encoding="UTF-8"?>\n<!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" '
        '"http://www.apple.com/DTDs/PropertyList-1.0.dtd">\n<plist version="1.0">\n<array>\n'
    )
    return head + "\n".join(entries) + "\n</array>\n</plist>\n"


def entry(
    statistics: Mapping[str, float],
    model: str = "<string>Apple M3 Max</string>",
    name: str = "AGXAcceleratorG15X",
) -> str:
    """One GPU of a property list."""
    properties = "".join(
        f"<key>{name}</key><{'real' if isinstance(value, float) else 'integer'}>{value}"
        f"</{'real' if isinstance(value, float) else 'integer'}>\n"
        for name, value in statistics.items()
    )
    return (
        f"<dict>\n<key>IOClass</key><string>{name}</string>\n<key>IOMatchedAtBoot</key><true/>\n"
        "<key>Empty</key><dict/>\n<key>Note</key><string>a &lt;b&gt; &amp; c</string>\n"
        "<key>Clients</key><array><integer>7</integer><string/></array>\n"
        f"<key>PerformanceStatistics</key><dict>{properties}</dict>\n"
        f"<key>gpu-core-count</key><integer>0x28</integer>\n<key>model</key>{model}\n</dict>"
    )


class Bench:
    """A folder of programs, which is on PATH together with the system's."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder = folder
        self.bin = folder / "bin"
        self.bin.mkdir(parents=True)
        self.calls = folder / "calls"
        monkeypatch.setenv("PATH", f"{self.bin}{os.pathsep}/usr/bin{os.pathsep}/bin")

    def ioreg(self, output: str | bytes, script: str = "") -> Path:
        """Install an ioreg that prints a file. Returns the file, whose content may be replaced."""
        output_file = self.folder / "ioreg.out"
        output_file.write_bytes(output if isinstance(output, bytes) else output.encode())
        program(self.bin, "ioreg", f'{script}\necho "$*" >> {self.calls}\nexec cat {output_file}')
        return output_file

    def macmon(self, *samples: dict[str, Any], before: str = "", after: str = "exec sleep 60") -> None:
        """Install a macmon that prints these samples and then runs the script `after`."""
        output_file = self.folder / "macmon.out"
        output_file.write_text("".join(json.dumps(sample) + "\n" for sample in samples))
        program(self.bin, "macmon", f'echo "$*" >> {self.calls}\n{before}\ncat {output_file}\n{after}')

    def started_programs(self) -> list[str]:
        """The arguments of every program that was started, in order."""
        return self.calls.read_text().splitlines() if self.calls.exists() else []
