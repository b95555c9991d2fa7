"""Fake Neuron instances: the driver's files, and programs that print output of neuron-monitor."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

from runvitals.monitoring.collectors.base import Scope, Tick
from runvitals.monitoring.collectors.trainium.collector import Trainium
from runvitals.monitoring.collectors.trainium.probe import probe
from tests.patience import PATIENCE_S

FOLDER = "sys/devices/virtual/neuron_device"


def device(index: int, cores: int = 2, corrected: int = 0, power: str = "0.00,3.00,1.50") -> dict[str, str]:
    """The files of one device, as a tree."""
    root = f"{FOLDER}/neuron{index}"
    tree = {
        f"{root}/core_count": f"{cores}\n",
        f"{root}/connected_devices": "1, 2\n",
        f"{root}/info/serial_number": f"0f0{index}\n",
        f"{root}/info/architecture/arch_type": "NCv2\n",
        f"{root}/info/architecture/device_name": "Trainium1\n",
        f"{root}/info/architecture/instance_type": "Trn1\n",
        f"{root}/stats/hardware/mem_ecc_corrected/total": f"{corrected}\n",
        f"{root}/stats/hardware/mem_ecc_uncorrected/total": "0\n",
        f"{root}/stats/hardware/sram_ecc_uncorrected/total": "2\n",
        f"{root}/stats/power/utilization": f"POWER_STATUS_VALID,1759250400,{power}\n",
        f"{root}/stats/memory_usage/host_mem/tensors/total": "700\n",
        f"{root}/stats/memory_usage/host_mem/tensors/peak": "900\n",
        f"{root}/stats/memory_usage/host_mem/total": "700\n",
        f"{root}/stats/memory_usage/host_mem/peak": "900\n",
    }
    for core in range(cores):
        memory = f"{root}/neuron_core{core}/stats/memory_usage/device_mem"
        tree |= {
            f"{memory}/tensors/total": f"{1000 + core}\n",
            f"{memory}/tensors/present": "1\n",
            f"{memory}/model_code/total": "50\n",
            f"{memory}/total": f"{1050 + core}\n",
            f"{memory}/present": "50\n",
            f"{memory}/peak": "7777\n",
        }
    return tree


def install(folder: Path, name: str, script: str) -> Path:
    """Install a program in a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / name
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return path


def install_monitor(folder: Path) -> Path:
    """A neuron-monitor that prints the lines appended to the returned file."""
    lines = folder / "reports"
    folder.mkdir(parents=True, exist_ok=True)
    lines.touch()
    install(folder, "neuron-monitor", f'echo "$@" > {folder}/arguments; exec tail -n +1 -f {lines}')
    return lines


def say(lines: Path, *reports: bytes) -> None:
    with lines.open("ab") as file:
        file.write(b"".join(report + b"\n" for report in reports))


def until(collector: Trainium, mono_s: float, good: Callable[[Tick], bool]) -> Tick:
    """Sample at one time until a tick fulfils the condition."""
    stop_s = time.monotonic() + PATIENCE_S
    while True:
        tick = Tick(mono_s)
        collector.sample(tick)
        if good(tick):
            return tick
        assert time.monotonic() < stop_s, (tick.gauges, tick.counters, collector.absent)
        time.sleep(0.002)


def open_machine(root: Path, pids: tuple[int, ...] = (), **options: str) -> Trainium:
    """The collector of a machine with its files in a folder."""
    return probe(Scope(host_root=str(root), pids=pids, options=options))
