"""The machine, and the versions of the tools."""

from __future__ import annotations

import os
import platform
import sys
from importlib import metadata
from pathlib import Path

from benchmarks.overhead.outside import version

_PACKAGES = ("wandb", "mlflow", "nvitop", "psutil", "numpy")


def describe() -> list[str]:
    """Descriptions of processor and memory, and of system and Python."""
    return [
        f"{_cpu_model()}, {os.cpu_count()} cores, {_memory_gib():.0f} GiB",
        f"{platform.system()} {platform.release()}, Python {platform.python_version()} "
        f"({sys.implementation.name})",
    ]


def versions() -> list[str]:
    """ "NAME VERSION" of every installed tool."""
    import runvitals

    lines = [f"runvitals {runvitals.__version__}"]
    installed = {distribution.name: distribution.version for distribution in metadata.distributions()}
    lines += [f"{name} {installed[name]}" for name in _PACKAGES if name in installed]
    exporter = version(["prometheus-node-exporter", "--version"]).split()
    if "version" in exporter:
        lines.append(f"node_exporter {exporter[exporter.index('version') + 1]}")
    sysstat = version(["sar", "-V"]).split()
    if sysstat:
        lines.append(f"sysstat {sysstat[-1]}")
    return lines


def load() -> str:
    """The load averages over 1, 5 and 15 minutes, as the kernel writes them."""
    return " ".join(Path("/proc/loadavg").read_text().split()[:3])


def _cpu_model() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine()


def _memory_gib() -> float:
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 2**30
