"""Simulated readings of a host: CPU, memory, storage, network, and the run's processes."""

from __future__ import annotations

import numpy as np

from runvitals.tools.simulate.block import ScenarioBlock
from runvitals.tools.simulate.load import LaggedValue, RunningTotal, percent, rounded, share
from runvitals.tools.simulate.noise import Floats, NoiseBlock
from runvitals.tools.simulate.profiles import Profile

_MIB, _GIB = 2.0**20, 2.0**30
_MAX_CORES = 32  # hosts with more CPUs get no keys per core
_DISK_GIB, _USED_GIB = 7000.0, 1830.0
_BOOTED_S = 812_345.0
_DISK_MIB_S = 4000.0
_WORKERS = 8  # data loading processes per training process
_FABRIC_BYTES_S, _ETHERNET_BYTES_S = 24e9, 2.5e9

Values = dict[str, Floats | float]


class SimulatedHost:
    """One host.

    Args:
        profile: its machine.
        node: its number.
        nodes: how many hosts the run has; a single one has no traffic between hosts.
    """

    def __init__(self, profile: Profile, node: int, nodes: int) -> None:
        self._kind, self._profile, self._node, self._alone = profile.kind, profile, node, nodes == 1
        self._loads = {name: LaggedValue(0.1, inertia_s) for name, inertia_s in _LOADS.items()}
        self._io_pressure = LaggedValue(0.0, 8.0)
        self._uptime_s, self._cpu_s, self._io_s = RunningTotal(), RunningTotal(), RunningTotal()
        self._in, self._out = RunningTotal(), RunningTotal()
        self._sent, self._received, self._again, self._fabric = (
            RunningTotal(),
            RunningTotal(),
            RunningTotal(),
            RunningTotal(),
        )

    def read(self, block: ScenarioBlock, z: NoiseBlock) -> Values:
        """Return the values over the next block of samples; the keys are the same at every call."""
        return {
            **self._processors(block, z),
            **self._memory(block),
            **self._storage(block, z),
            **self._network(block, z),
            "monitor.sampleMs": rounded(0.55 + 0.04 * z[7], 3),
            "monitor.cpuPercent": rounded(0.055 + 0.004 * z[7], 4),
            "monitor.rssMB": 14.2,
        }

    def _processors(self, block: ScenarioBlock, z: NoiseBlock) -> Values:
        cpus, dt_s = self._kind.cpus, block.dt_s
        used = share(block.cpu + 0.015 * z[0])
        waiting = rounded(0.4 + 0.1 * np.abs(z[6]), 2)
        cores = range(cpus if cpus <= _MAX_CORES else 0)
        return {
            "cpu": percent(used * 0.96),
            "cpu.mean": percent(used),
            "cpu.user": percent(used * 0.82),
            "cpu.system": percent(used * 0.18),
            "cpu.iowait": percent(block.iowait + 0.004 * z[1]),
            "cpu.steal": 0.0,
            "cpu.freqMHz": rounded(2600.0 + 600.0 * used + 15.0 * z[5]),
            **{name: rounded(load(used * cpus, block.lag_s), 2) for name, load in self._loads.items()},
            "system.uptime": _BOOTED_S + self._uptime_s(dt_s),
            "cpu.pressureAvg10": waiting,
            "cpu.pressureSeconds": self._cpu_s(waiting / 100.0 * dt_s),
            **{f"cpu.{core}.cpu_percent": percent(used + 0.12 * z[16 + core], 0) for core in cores},
        }

    def _memory(self, block: ScenarioBlock) -> Values:
        total_gib, ranks = self._kind.memory_gib, self._profile.ranks
        rss_gib = 0.28 * total_gib * block.filling
        for leak, during in block.incidents("memory leak"):
            if leak.node == self._node:
                grown = (0.95 * total_gib - rss_gib) * block.progress(leak) ** 1.5
                rss_gib = np.where(during, rss_gib + grown, rss_gib)
        used_gib = np.minimum(rss_gib + 0.02 * total_gib, 0.995 * total_gib)
        kills = np.zeros(len(block.ticks))
        for kill, _ in block.incidents("out of memory"):
            if kill.node == self._node:
                kills = np.where(block.scenario_s >= kill.start_s, 1.0, 0.0)
        processes = np.where(block.filling > 0.2, 1.0 + ranks * (1 + _WORKERS), 1.0 + ranks)
        return {
            "memory_percent": rounded(100.0 * used_gib / total_gib, 3),
            "memory.usedMB": rounded(used_gib * 1024.0, 1),
            "memory.cachedMB": rounded(np.minimum(0.35 * total_gib, total_gib - used_gib) * 1024.0, 1),
            "memory.pressureAvg10": 0.0,
            "memory.pressureSeconds": 0.0,
            "proc.count": processes,
            "proc.cpu.threads": processes * 6.0 + ranks * 30.0,
            "proc.memory.rssMB": rounded(rss_gib * 1024.0, 1),
            "proc.memory.percent": rounded(100.0 * rss_gib / total_gib, 3),
            "proc.memory.availableMB": rounded((total_gib - used_gib) * 1024.0, 1),
            "proc.memory.oomKills": kills,
        }

    def _storage(self, block: ScenarioBlock, z: NoiseBlock) -> Values:
        dt_s, disk = block.dt_s, self._kind.disk
        target = np.where(block.stalled, 55.0, 400.0 * block.iowait)
        pressure = rounded(np.maximum(self._io_pressure(target, block.lag_s) + 0.2 * z[4], 0.0), 2)
        read_mib_s = np.maximum(block.read_mib_s * (1.0 + 0.25 * z[2]), 0.0)
        written_mib_s = np.maximum(block.written_mib_s * (1.0 + 0.15 * z[3]), 0.0)
        read, written = self._in(read_mib_s * dt_s), self._out(written_mib_s * dt_s)
        # Old checkpoints are deleted, so only a part of what is written remains.
        used_gib = rounded(np.minimum(_USED_GIB + 40.0 * self._node + written * 2e-5, _DISK_GIB), 3)
        return {
            "io.pressureAvg10": pressure,
            "io.pressureSeconds": self._io_s(pressure / 100.0 * dt_s),
            "proc.io.readMB": read,
            "proc.io.writeMB": written,
            "disk./.usagePercent": rounded(100.0 * used_gib / _DISK_GIB, 3),
            "disk./.inodesPercent": 4.2,
            "disk./.usageGB": used_gib,
            "disk./.availableGB": _DISK_GIB - used_gib,
            "disk.in": read,
            "disk.out": written,
            f"disk.{disk}.in": read,
            f"disk.{disk}.out": written,
            f"disk.{disk}.readOps": rounded(read * 4.0),
            f"disk.{disk}.writeOps": rounded(written * 2.0),
            f"disk.{disk}.utilization": percent((read_mib_s + written_mib_s) / _DISK_MIB_S),
        }

    def _network(self, block: ScenarioBlock, z: NoiseBlock) -> Values:
        dt_s, nic = block.dt_s, self._kind.nic
        ports = 0 if self._alone else self._kind.ib_ports
        collective = np.maximum(block.traffic * (1.0 + 0.05 * z[8]), 0.0)
        ethernet = 0.0 if self._alone or ports else _ETHERNET_BYTES_S
        sent = self._sent(rounded((collective * ethernet + 2e5) * dt_s))
        fetched = block.read_mib_s * _MIB * 0.3
        received = self._received(rounded((collective * ethernet + fetched + 3e5) * dt_s))
        values: Values = {
            "network.sent": sent,
            "network.recv": received,
            "network.tcpRetransmits": self._again(np.where(z[9] > 2.2, 1.0, 0.0) * (dt_s > 0.0)),
            f"network.{nic}.sent": sent,
            f"network.{nic}.recv": received,
            f"network.{nic}.errors": 0.0,
            f"network.{nic}.drops": 0.0,
        }
        if ports:
            fabric = self._fabric(rounded(collective * _FABRIC_BYTES_S * dt_s))
            for port in range(ports):
                name = f"network.ib.mlx5_{port}.1"
                values[f"{name}.xmitBytes"] = values[f"{name}.recvBytes"] = fabric
                values[f"{name}.xmitWait"] = rounded(fabric / 9e7)
                values[f"{name}.errors"] = 0.0
        return values

    def facts(self, name: str) -> dict[str, object]:
        """Return the facts about this machine, in the same form as a real machine's."""
        kind = self._kind
        return {
            "hostname": name,
            "os": f"{kind.system} (simulated)",
            "kernel": "simulated",
            "cpu": {"model": kind.processor, "logical_cores": kind.cpus, "available": float(kind.cpus)},
            "memory": {"total_bytes": int(kind.memory_gib * _GIB)},
            "disks": [{"name": kind.disk, "bytes": int(_DISK_GIB * _GIB)}],
            "command": ["python", "train.py", "--config", f"{self._profile.name}.yaml"],
        }


_LOADS = {"system.load1": 60.0, "system.load5": 300.0, "system.load15": 900.0}
