"""Machines with accelerators: PCI devices in sysfs, and tools on PATH with given output."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING

from runvitals.monitoring.collectors.base import Tick
from tests.monitoring.collectors.plumbing.test_tool import program
from tests.patience import PATIENCE_S

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

    from runvitals.monitoring.collectors.base import Collector
    from runvitals.monitoring.collectors.vendors.formats import Row
    from tests.monitoring.collectors.trees import Tree


def pci(address: str, vendor: str, base_class: str = "12") -> Tree:
    """A PCI device."""
    folder = f"sys/bus/pci/devices/{address}"
    return {f"{folder}/class": f"0x{base_class}0000\n", f"{folder}/vendor": f"0x{vendor}\n"}


def tool(
    folder: Path, monkeypatch: pytest.MonkeyPatch, name: str, output: str | bytes, after: str = ""
) -> Path:
    """Put a tool on PATH that prints a file. Returns the file, whose content may be replaced.

    Args:
        after: shell commands that follow the printing; `$*` are the tool's arguments.
    """
    output_file = folder / f"{name}.out"
    output_file.write_bytes(output if isinstance(output, bytes) else output.encode())
    program(folder / "bin", name, f"cat {output_file}\n{after}")
    monkeypatch.setenv("PATH", f"{folder}/bin{os.pathsep}/usr/bin{os.pathsep}/bin")
    return output_file


def answer(collector: Collector, mono_s: float) -> Tick:
    """Sample at one time until the tool has finished. Returns the tick with its readings."""
    until_s = time.monotonic() + PATIENCE_S
    while True:
        tick = Tick(mono_s)
        collector.sample(tick)
        if tick.gauges or tick.counters or tick.events:
            return tick
        assert time.monotonic() < until_s, "no answer"
        time.sleep(0.002)


def values(collector: Collector, mono_s: float = 100.0) -> dict[str, float]:
    """The readings of one output."""
    tick = answer(collector, mono_s)
    return tick.gauges | tick.counters


def known(row: Row) -> Row:
    """The recognized values of a table's row, under the common names."""
    return {name: value for name, value in row.items() if name.islower()}
