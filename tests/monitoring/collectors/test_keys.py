"""Every key written by a host collector is a declared metric, with its unit and kind."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from runvitals.model.metrics import DEFINITIONS
from runvitals.monitoring.collectors.base import Scope, Tick
from runvitals.monitoring.collectors.host import psutil_sources
from runvitals.monitoring.collectors.host.ena import Ena
from runvitals.monitoring.collectors.host.process import RunProcessUsage
from runvitals.monitoring.collectors.sources import probe_all
from tests.monitoring.collectors import trees
from tests.monitoring.collectors.host.test_ena import COUNTS, Card
from tests.monitoring.collectors.host.test_psutil_sources import FakePsutil, FakeWindowsProcess, tree
from tests.monitoring.collectors.trees import plant, process, put

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from runvitals.monitoring.collectors.base import Collector

# Templates of the keys that the collectors document.
GAUGES = {
    "%": "cpu cpu.mean cpu.user cpu.system cpu.iowait cpu.steal cpu.{i}.cpu_percent cpu.ofLimit cpu.ofAllowed"
    " cpu.pressureAvg10 memory.pressureAvg10 memory.pressureFullAvg10 io.pressureAvg10 io.pressureFullAvg10"
    " proc.cpu.throttledPercent proc.memory.percent memory_percent host.memory_percent swap.used_percent"
    " disk.{path}.usagePercent disk.{path}.inodesPercent disk.{dev}.utilization",
    "1": "system.load1 system.load5 system.load15 proc.count proc.cpu.threads cgroup.cpu.limit",
    "s": "system.uptime",
    "MHz": "cpu.freqMHz",
    "°C": "cpu.avg_temp",
    "W": "cpu.powerWatts",
    "MiB": "proc.memory.rssMB proc.memory.availableMB memory.usedMB memory.cachedMB"
    " cgroup.memory.workingSetMB cgroup.memory.limitMB",
    "bytes": "swap.used",
    "GiB": "disk.{path}.usageGB disk.{path}.availableGB",
}
COUNTERS = {
    "s": "cpu.pressureSeconds memory.pressureSeconds io.pressureSeconds proc.cpu.throttledSeconds",
    "1": "proc.memory.oomKills disk.{dev}.readOps disk.{dev}.writeOps network.{nic}.errors"
    " network.{nic}.drops network.tcpRetransmits"
    " network.ib.{dev}.{port}.xmitWait network.ib.{dev}.{port}.errors"
    " network.efa.{dev}.{port}.drops network.ena.{nic}.bwInExceeded network.ena.{nic}.bwOutExceeded"
    " network.ena.{nic}.ppsExceeded network.ena.{nic}.conntrackExceeded"
    " network.ena.{nic}.linklocalExceeded",
    "MiB": "proc.io.readMB proc.io.writeMB disk.in disk.out disk.{dev}.in disk.{dev}.out",
    "bytes": "network.sent network.recv network.{nic}.sent network.{nic}.recv"
    " network.ib.{dev}.{port}.xmitBytes network.ib.{dev}.{port}.recvBytes network.efa.{dev}.{port}.sent"
    " network.efa.{dev}.{port}.recv network.efa.{dev}.{port}.rdmaRead network.efa.{dev}.{port}.rdmaWrite"
    " network.efa.{dev}.{port}.retransBytes",
    "J": "energy.{domain}",
}
PROMISED = {
    template: (kind, unit)
    for kind, units in (("gauge", GAUGES), ("counter", COUNTERS))
    for unit, templates in units.items()
    for template in templates.split()
}


def written(collectors: Iterable[Collector]) -> list[tuple[str, str]]:
    """(kind, key) of all values that these collectors write in two samples, an hour apart."""
    keys: list[tuple[str, str]] = []
    collectors = list(collectors)
    for mono_s in (1.0, 3601.0):
        tick = Tick(mono_s)
        for collector in collectors:
            collector.sample(tick)
        keys += [("gauge", key) for key in tick.gauges] + [("counter", key) for key in tick.counters]
    return keys


def linux(folder: Path) -> list[tuple[str, str]]:
    """All keys on all the machines in `trees`."""
    keys: list[tuple[str, str]] = []
    for name in ("LIMITED_SLICE", "V1", "SLURM", "BOND", "NVME", "RAPL", "INFINIBAND", "SENSORS"):
        changes = {
            "proc/meminfo": trees.meminfo(16 << 20, 12 << 20, swap_total=2048, swap_free=1024),
            "proc/stat": trees.stat([{"user": 1000, "idle": 9000}] * 2),
        }
        root = folder / name
        scope = plant(root, getattr(trees, name) | changes | process(1000, 1), pids=[1000])
        collectors = [each for each in probe_all(scope).collectors if each.name != "process"]
        put(root, "proc/stat", trees.stat([{"user": 2000, "idle": 19000}] * 2))
        if name == "LIMITED_SLICE":
            put(
                root,
                "sys/fs/cgroup/training.slice/cpu.stat",
                "usage_usec 9\nnr_periods 200\nnr_throttled 20\n",
            )
        keys += written(
            [*collectors, RunProcessUsage(scope, f"{root}/proc", excluded=1), Ena(["eth0"], Card(COUNTS))]
        )
    return keys


def mac_and_windows() -> list[tuple[str, str]]:
    machine = FakePsutil()
    tree(machine, FakeWindowsProcess)
    scope = Scope(pids=[10])
    collectors: list[Collector] = [
        psutil_sources.PsutilProcesses(scope, machine),  # type: ignore[arg-type]
        psutil_sources.PsutilCpu(machine),  # type: ignore[arg-type]
        psutil_sources.PsutilLoad(machine, "win32"),  # type: ignore[arg-type]
        psutil_sources.PsutilMemory(machine),  # type: ignore[arg-type]
        psutil_sources.PsutilDisk(machine),  # type: ignore[arg-type]
        psutil_sources.PsutilNetwork(machine),  # type: ignore[arg-type]
        psutil_sources.watch_filesystems(scope, machine, "darwin"),  # type: ignore[arg-type]
    ]
    return written(collectors)


def test_written_keys_are_the_documented_ones(tmp_path: Path) -> None:
    seen: dict[str, str] = {}
    for kind, key in [*linux(tmp_path), *mac_and_windows()]:
        match = DEFINITIONS.find(key)
        assert match is not None, f"the metadata store does not know {key}"
        assert match.key == key, f"{key} is another spelling of {match.key}"
        seen[match.metric.key] = kind
    assert seen == {template: kind for template, (kind, _) in PROMISED.items()}


@pytest.mark.parametrize("template", PROMISED)
def test_the_declared_metric_has_the_written_kind_and_unit(template: str) -> None:
    kind, unit = PROMISED[template]
    metric = DEFINITIONS.by_template[template]
    assert (metric.kind, metric.unit) == (kind, unit)
