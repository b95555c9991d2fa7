"""What a host is busy with: processors, disks, network, and who waits for them."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from runvitals.findings.observed_run import ObservedHost
from runvitals.findings.spans import above, below, known
from runvitals.findings.windows import Bools, Floats

CPU_BOUND, WAITS_FOR_DISK, PRESSURE = 85.0, 25.0, 30.0
"""Percent: the run's processes use the processors it may use; iowait; tasks that wait (PSI)."""
MIN_NETWORK_MIB_S = 20.0
MIN_READ_MIB_S, OWN_READ_MIB_S = 1.0, 0.1
STEADY_WINDOWS = 3
"""A rate counts as one that the network can carry if it lasts so many windows."""
THROTTLED = 25.0
"""Percent of the scheduler's periods in which the quota was exhausted."""


def busy_processors(host: ObservedHost) -> tuple[Bools, str]:
    """Return where the run's processes use all processors that they may use, and the key that tells."""
    columns = host.columns
    if columns.has("cpu.ofLimit"):
        of_limit = above(columns.mean("cpu.ofLimit"), 90.0)
        return of_limit | above(columns.mean("cpu"), CPU_BOUND), "cpu.ofLimit"
    if columns.has("cpu"):
        return above(columns.mean("cpu"), CPU_BOUND), "cpu"
    return above(columns.mean("cpu.mean"), 90.0), "cpu.mean"


def all_processors(host: ObservedHost) -> tuple[Floats, str]:
    """Return how much all processes use the processors that the run may use, and the key that tells."""
    key = "cpu.ofAllowed" if host.columns.has("cpu.ofAllowed") else "cpu.mean"
    return host.columns.mean(key), key


def own_processors(host: ObservedHost) -> Floats:
    """Return how many processors the run's processes use; of one, where their number is unknown."""
    return host.columns.mean("cpu") / 100 * (host.cpus or 1.0)


def use_of_others(host: ObservedHost) -> Floats:
    """Return how much of these processors processes outside of the run use, in percent.

    The run's own use is a share of its quota, or of the processors it may use: less of those of the host.
    """
    total, key = all_processors(host)
    own, cpu = host.columns.mean("cpu"), host.machine.get("cpu")
    logical = cpu.get("logical_cores") if isinstance(cpu, Mapping) else None
    if key == "cpu.mean" and host.cpus and isinstance(logical, int) and logical > host.cpus:
        own = own * host.cpus / logical
    return total - own


def pressure(host: ObservedHost, resource: str) -> tuple[Floats, str | None]:
    """Return the share of time in which tasks waited for a resource, in percent, and its key.

    It follows from the counter of the kernel, else from its mean of 10 seconds.
    """
    columns = host.columns
    if columns.has(f"{resource}.pressureSeconds"):
        return 100 * columns.per_second(f"{resource}.pressureSeconds"), f"{resource}.pressureSeconds"
    key = f"{resource}.pressureAvg10"
    return columns.mean(key), key if columns.has(key) else None


def waits_for_files(host: ObservedHost) -> tuple[Bools, list[str]]:
    """Return where tasks wait for input or output, and the keys that tell."""
    columns = host.columns
    waiting = np.zeros(columns.windows.count, dtype=np.bool_)
    keys = []
    io_pressure, pressure_key = pressure(host, "io")
    if pressure_key and above(io_pressure, PRESSURE).any():
        waiting |= above(io_pressure, PRESSURE)
        keys.append(pressure_key)
    if above(columns.mean("cpu.iowait"), WAITS_FOR_DISK).any():
        waiting |= above(columns.mean("cpu.iowait"), WAITS_FOR_DISK)
        keys.append("cpu.iowait")
    for key in columns.columns:
        if key.startswith("disk.") and key.endswith(".utilization") and above(columns.mean(key), 90).any():
            waiting |= above(columns.mean(key), 90)
            keys.append(key)
    return waiting, keys


def busy_disk(host: ObservedHost) -> tuple[Bools, list[str]]:
    """Return where tasks wait for a disk that is read, and the keys that tell.

    A file system that is neither a local disk nor comes over the network (FUSE, a stuck mount) counts as one.
    What only others read does not: the run reads next to nothing itself.
    """
    waiting, keys = waits_for_files(host)
    reads, writes = read_rate(host), write_rate(host)
    if known(reads).any():
        writing = above(writes, MIN_READ_MIB_S) & above(writes - 2 * reads, 0.0)
        waiting = waiting & ~writing & ~_receives(host) & ~_sends(host) & ~_others_read(host)
    return waiting, keys


def _others_read(host: ObservedHost) -> Bools:
    """Where the host's disks are read, but not by the run: less than 0.1 MiB/s and 2 % are its own."""
    own = host.columns.per_second("proc.io.readMB")
    all_reads = host.columns.per_second("disk.in")
    return above(all_reads, MIN_READ_MIB_S) & below(own, OWN_READ_MIB_S) & below(own, 0.02 * all_reads)


def network_files(host: ObservedHost) -> tuple[Bools, list[str]]:
    """Return where tasks wait for files that come over the network, not from a disk, and the keys."""
    waiting, keys = waits_for_files(host)
    received = "network.recv" if host.columns.has("network.recv") else "network.recvMBps"
    return waiting & _receives(host), [received, *keys]


def _receives(host: ObservedHost) -> Bools:
    """Where what is received is much, more than is sent, and far more than disks give."""
    received, sent = network_rates(host)
    much = above(received, MIN_NETWORK_MIB_S) & (np.nan_to_num(sent) < 0.5 * np.nan_to_num(received))
    return much & (np.nan_to_num(read_rate(host)) < 0.25 * np.nan_to_num(received))


def _sends(host: ObservedHost) -> Bools:
    """Where much more is sent than received or read: files are written over the network."""
    received, sent = network_rates(host)
    others = 2 * (np.nan_to_num(received) + np.nan_to_num(read_rate(host)))
    return above(sent, MIN_NETWORK_MIB_S) & (np.nan_to_num(sent) > others)


def read_rate(host: ObservedHost) -> Floats:
    """MiB read from disks per second."""
    columns = host.columns
    for key in ("disk.in", "proc.io.readMB"):
        if columns.has(key):
            return columns.per_second(key)
    return columns.mean("disk.readMBps")


def write_rate(host: ObservedHost) -> Floats:
    """MiB written to disks per second."""
    columns = host.columns
    for key in ("disk.out", "proc.io.writeMB"):
        if columns.has(key):
            return columns.per_second(key)
    return columns.mean("disk.writeMBps")


def network_rates(host: ObservedHost) -> tuple[Floats, Floats]:
    """MiB received and sent per second."""
    columns = host.columns
    if columns.has("network.recv"):
        return columns.per_second("network.recv") / 2**20, columns.per_second("network.sent") / 2**20
    return columns.mean("network.recvMBps"), columns.mean("network.sentMBps")


def busy_network(host: ObservedHost) -> tuple[Bools, list[str]]:
    """Return where the host receives steadily near the most that it ever received, and sends much less."""
    columns = host.columns
    received, sent = network_rates(host)
    if not known(received).any():
        return np.zeros(columns.windows.count, dtype=np.bool_), []
    full = above(received, MIN_NETWORK_MIB_S) & above(received - 0.7 * _most_so_far(received), 0.0)
    full &= np.nan_to_num(sent) < 0.35 * np.nan_to_num(received)
    keys = ["network.recv" if columns.has("network.recv") else "network.recvMBps"]
    for key in columns.columns:
        if key.startswith("network.ena.") and key.endswith("bwInExceeded"):
            exceeded = above(columns.growth(key), 1)
            if exceeded.any():
                full |= exceeded
                keys.append(key)
    return full, keys


def _most_so_far(rate: Floats) -> Floats:
    """The highest rate until each window that lasted some windows."""
    lasting = np.nan_to_num(rate)
    for shift in range(1, STEADY_WINDOWS):
        lasting = np.minimum(lasting, np.concatenate([np.zeros(shift), np.nan_to_num(rate)[:-shift]]))
    return np.maximum.accumulate(lasting)


def is_throttled(host: ObservedHost) -> Bools:
    """Return where a container's quota of processor time is exhausted."""
    columns = host.columns
    throttled = above(columns.mean("proc.cpu.throttledPercent"), THROTTLED)
    return throttled & (above(columns.mean("cpu.ofLimit"), 80) | ~known(columns.mean("cpu.ofLimit")))
