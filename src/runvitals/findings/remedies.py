"""Remedies for missing signals: what to install or switch on, so that a rule can decide.

One table for the page, the terminal, the documentation and `runvitals doctor`. Its names are those in the
`needs` of rules.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

PRESSURE = "start the kernel with psi=1"
_DEVICE = (
    "install the vendor's driver and its tools, and let the job see its devices; runvitals doctor names the "
    "source that fails, and why"
)
_PROFILE = (
    "NVIDIA's driver reports it on Hopper and newer GPUs; on older ones, run dcgm-exporter with its "
    "profiling metrics (DCGM_FI_PROF_…) and set `dcgm_exporter`"
)
_REASONS = "update NVIDIA's driver, or run dcgm-exporter (its …_VIOLATION metrics) and set `dcgm_exporter`"
_PROCESSES = (
    "start the container with --pid=host (in Kubernetes hostPID: true): the driver reports the host's "
    "process ids"
)
_LINK = "virtual machines often hide the link: run on the host itself, with the vendor's driver"
_STEPS = "log a row for each step: run.log({'train/loss': loss}), or use a callback for your framework"
_MACHINE = "leave the collectors of the machine switched on (setting `collectors`)"

REMEDIES: Mapping[str, str] = {
    "a logged row per step": _STEPS,
    "a logged value named loss": "log it under a name that contains `loss`: run.log({'train/loss': loss})",
    "gpu.{i}.gpu": _DEVICE,
    "gpu.{i}.powerPercent": _DEVICE,
    "gpu.{i}.powerWatts": _DEVICE,
    "gpu.{i}.smClock": _DEVICE,
    "tpu.{i}.dutyCycle": "run on the TPU's own machine, with a libtpu that serves its metrics",
    "tpu.{i}.throttleScore": "only the process that loaded libtpu can read it: log it from the training",
    "trn.{core}.neuroncore_utilization": "install the Neuron tools (neuron-monitor) on the host",
    "gpu.{i}.smActive": _PROFILE,
    "gpu.{i}.dramActive": _PROFILE,
    "gpu.{i}.pipeTensorActive": _PROFILE,
    "gpu.{i}.nvlinkBytes": _PROFILE,
    "gpu.{i}.throttle.{reason}Seconds": _REASONS,
    "gpu.{i}.throttle.swPowerCapSeconds": _REASONS,
    "gpu.{i}.throttle.hwSlowdownSeconds": _REASONS,
    "gpu.{i}.unCorrectedMemoryErrors": "switch ECC on, if the device has it (nvidia-smi -e 1, then a reset)",
    "gpu.{i}.recoveryAction": "update NVIDIA's driver: older ones do not tell it",
    "gpu.{i}.healthy": "needs a driver that reports the health of its devices",
    "gpu.{i}.pcieLinkGen": _LINK,
    "gpu.{i}.pcieLinkWidth": _LINK,
    "gpu.{i}.otherMemoryBytes": _PROCESSES,
    "gpu.process.{i}.memoryAllocatedBytes": _PROCESSES,
    "network.ib.{dev}.{port}.xmitBytes": "mount /sys/class/infiniband into the container",
    "network.sent": _MACHINE,
    "proc.cpu.throttledPercent": "only containers with a limit of processors have it",
    "cpu": _MACHINE,
    "cpu.mean": _MACHINE,
    "cpu.steal": _MACHINE,
    "disk.out": _MACHINE,
    "disk.{path}.usagePercent": _MACHINE,
    "io.pressureSeconds": PRESSURE,
    "cpu.pressureSeconds": PRESSURE,
    "memory.pressureSeconds": PRESSURE,
    "proc.memory.rssMB": _MACHINE,
    "proc.memory.oomKills": "needs Linux with cgroup version 2",
    "cgroup.memory.workingSetMB": "needs Linux with cgroup version 2",
    "swap.used": _MACHINE,
    "swap.used_percent": _MACHINE,
    "memory_percent": _MACHINE,
}
"""By the names of signals."""


def remedies(needs: Iterable[str]) -> tuple[str, ...]:
    """Return what would provide signals, each remedy once.

    Example:
        >>> remedies(["gpu.{i}.recoveryAction"])
        ("update NVIDIA's driver: older ones do not tell it",)
    """
    return tuple(dict.fromkeys(REMEDIES[key] for key in needs if key in REMEDIES))
