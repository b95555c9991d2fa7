"""Runs with something wrong, one kind each."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from runvitals.findings.training import Mark
from tests.findings.scenarios.course import GIB, START_MS, Course, Scenario

Build = Callable[..., Course]


def hang(vendor: str, **more: Any) -> Course:
    course = Course(vendor, state="stopped", **more)
    where = course.between(30)
    course.stop_steps(30)
    course.busy[:, where] = 100
    for column in (course.active, course.tensor, course.dram):
        column[:, where] = column[:, where] * 0.05
    course.power[:, where] = 30
    for host in course.hosts:
        host["cpu"][where] = 5
        host["cpu.mean"][where] = 7
    return course


def deadlock(vendor: str, **more: Any) -> Course:
    course = Course(vendor, state="running", **more)
    course.stop_steps(25)
    course.rest(course.between(25))
    return course


def straggler(vendor: str, **more: Any) -> Course:
    course = Course(vendor, **more)
    where = course.between(10)
    course.clock[3, where] *= 0.6
    course.power[3, where] *= 0.75
    others = [row for row in range(course.busy.shape[0]) if row != 3]
    for row in others:
        course.power[row, where] *= 0.8
        course.active[row, where] *= 0.8
        course.tensor[row, where] *= 0.75
    course.slow_steps(1.4)
    return course


def idle(vendor: str, **more: Any) -> Course:
    course = Course(vendor, minutes=90, step_s=0, **more)
    course.rest(course.between(20))
    return course


def idle_devices(vendor: str, **more: Any) -> Course:
    course = Course(vendor, **more)
    course.rest(course.between(0), memory=False, devices=slice(4, None))
    return course


def idle_tail(vendor: str, **more: Any) -> Course:
    course = Course(vendor, minutes=90, **more)
    course.stop_steps(60)
    course.rest(course.between(60))
    return course


def slow_start(vendor: str, **more: Any) -> Course:
    return Course(vendor, minutes=90, start_s=35 * 60, **more)


def input_bound_cpu(vendor: str, **more: Any) -> Course:
    course = Course(vendor, **more)
    where = course.between(1)
    course.scale(where, 0.45)
    course.busy[:, where] += course.noise.normal(0, 12, course.busy[:, where].shape)
    course.busy = course.busy.clip(0, 100)
    for host in course.hosts:
        host["cpu"][where] = 96 + course.noise.normal(0, 1, where.sum())
        host["cpu.mean"] = host["cpu"] + 2
        host["cpu.pressureSeconds"] = course.counter(np.where(where, 0.6, 0.0))
    course.slow_steps(2.2)
    return course


def input_bound_disk(vendor: str, **more: Any) -> Course:
    course = Course(vendor, **more)
    where = course.between(1)
    course.scale(where, 0.35)
    for host in course.hosts:
        host["cpu.iowait"][where] = 38
        host["io.pressureSeconds"] = course.counter(np.where(where, 0.7, 0.0))
        host["disk.in"] = course.counter(np.where(where, 480.0, 5.0))
        host["disk.nvme0n1.utilization"] = np.where(where, 99.0, 3.0)
    course.slow_steps(2.8)
    return course


def input_bound_network(vendor: str, **more: Any) -> Course:
    course = Course(vendor, **more)
    where = course.between(1)
    course.scale(where, 0.4)
    for host in course.hosts:
        host["network.recv"] = course.counter(np.where(where, 118.0, 1.0) * 2**20)
        host["network.sent"] = course.counter(1.0 * 2**20)
        host["disk.in"] = course.counter(0.1)
    course.slow_steps(2.5)
    return course


def cpu_limit(vendor: str, **more: Any) -> Course:
    course = Course(vendor, cpus=4, **more)
    where = course.between(1)
    course.scale(where, 0.4)
    for host in course.hosts:
        host["cpu"][where] = 97
        host["cpu.ofLimit"] = np.where(where, 99.0, 10.0)
        host["cgroup.cpu.limit"] = np.full(len(course.t), 4.0)
        host["proc.cpu.throttledPercent"] = np.where(where, 82.0, 0.0)
        host["cpu.mean"] = np.full(len(course.t), 20.0)
    course.slow_steps(2.5)
    return course


def noisy_neighbour(vendor: str, **more: Any) -> Course:
    course = Course(vendor, **more)
    where = course.between(15, 50)
    course.scale(where, 0.55)
    for host in course.hosts:
        host["cpu"][where] = 25
        host["cpu.mean"][where] = 99
        host["cpu.pressureSeconds"] = course.counter(np.where(where, 0.8, 0.0))
    return course


def device_used_by_others(vendor: str, **more: Any) -> Course:
    course = Course(vendor, **more)
    n = len(course.t)
    for index in range(course.device_count):
        course.extra_devices[f"gpu.{index}.otherMemoryBytes"] = np.zeros(n)
        course.extra_devices[f"gpu.process.{index}.memoryAllocatedBytes"] = np.full(n, 50.0 * GIB)
    course.extra_devices["gpu.2.otherMemoryBytes"] = np.where(course.between(10), 18.0 * GIB, 0.0)
    return course


def launch_bound(vendor: str, **more: Any) -> Course:
    course = Course(vendor, devices=1, cpus=16, **more)
    where = course.between(1)
    course.busy[:, where] = 93 + course.noise.normal(0, 2, course.busy[:, where].shape)
    course.active[:, where], course.tensor[:, where], course.dram[:, where] = 11, 1, 6
    course.power[:, where] = 26
    for host in course.hosts:
        host["cpu"][where] = 6.6
        host["cpu.mean"][where] = 9
    return course


def communication_bound(vendor: str, **more: Any) -> Course:
    course = Course(vendor, hosts=2, **more)
    where = course.between(1)
    course.active[:, where], course.tensor[:, where], course.dram[:, where] = 34, 14, 18
    course.power[:, where] = 48
    for host in course.hosts:
        for way in ("xmitBytes", "recvBytes"):
            host[f"network.ib.mlx5_0.1.{way}"] = course.counter(np.where(where, 21e9, 0.0))
    return course


def checkpoint_stalls(vendor: str, **more: Any) -> Course:
    course = Course(vendor, **more)
    pauses = course.every(480, 75)
    course.rest(pauses)
    course.steps_s = course.steps_s[~np.interp(course.steps_s, course.t, pauses.astype(float)).astype(bool)]
    for host in course.hosts:
        host["disk.out"] = course.counter(np.where(pauses, 1500.0, 0.5))
    return course


def thermal(vendor: str, **more: Any) -> Course:
    course = Course(vendor, **more)
    where = course.between(20)
    course.throttled["swThermal"][2, where] = 0.55
    course.temp[2, where] = 87
    course.clock[2, where] *= 0.72
    course.slow_steps(1.2)
    return course


def brake(vendor: str, **more: Any) -> Course:
    course = Course(vendor, **more)
    where = course.between(12)
    course.throttled["hwPowerBrake"][:, where] = 0.8
    course.throttled["hwSlowdown"][:, where] = 0.8
    course.clock[:, where] *= 0.45
    course.power[:, where] *= 0.5
    return course


def clock_limited(vendor: str, **more: Any) -> Course:
    course = Course(vendor, **more)
    where = course.between(1)
    course.clock[:, where] = 0.34
    course.power[:, where] = 38
    return course


def pcie(vendor: str, **more: Any) -> Course:
    course = Course(vendor, **more)
    n = len(course.t)
    for index in range(course.device_count):
        course.extra_devices |= {
            f"gpu.{index}.pcieLinkGen": np.full(n, 5.0),
            f"gpu.{index}.maxPcieLinkGen": np.full(n, 5.0),
            f"gpu.{index}.pcieLinkWidth": np.full(n, 16.0 if index != 5 else 4.0),
            f"gpu.{index}.maxPcieLinkWidth": np.full(n, 16.0),
        }
    return course


def memory_errors(vendor: str, **more: Any) -> Course:
    course = Course(vendor, **more)
    course.extra_devices["gpu.6.unCorrectedMemoryErrors"] = np.where(course.between(33), 2.0, 0.0)
    return course


def needs_reset(vendor: str, **more: Any) -> Course:
    course = Course(vendor, **more)
    course.extra_devices["gpu.1.recoveryAction"] = np.where(course.between(15), 1.0, 0.0)
    return course


def leak(vendor: str, **more: Any) -> Course:
    course = Course(vendor, minutes=180, state="running", **more)
    for host in course.hosts:
        host["proc.memory.rssMB"] = 60_000 + 8.0 * course.t + course.noise.normal(0, 200, len(course.t))
        host["memory_percent"] = 100 * host["proc.memory.rssMB"] / 250_000
        host["cgroup.memory.limitMB"] = np.full(len(course.t), 250_000.0)
    return course


def swapping(vendor: str, **more: Any) -> Course:
    course = Course(vendor, **more)
    where = course.between(20)
    for host in course.hosts:
        host["swap.used"] = np.where(where, (course.t - 1200).clip(0) * 4e6, 0.0)
        host["memory.pressureSeconds"] = course.counter(np.where(where, 0.3, 0.0))
        host["memory_percent"][where] = 98
    return course


def near_memory(vendor: str, **more: Any) -> Course:
    course = Course(vendor, **more)
    for host in course.hosts:
        host["memory_percent"] = np.where(course.between(40), 98.3, 60.0)
    return course


def disk_fills(vendor: str, **more: Any) -> Course:
    course = Course(vendor, state="running", **more)
    for host in course.hosts:
        host["disk./data.usagePercent"] = 70 + course.t / 3600 * 22
    return course


def nan_loss(vendor: str, **more: Any) -> Course:
    course = Course(vendor, **more)
    loss = course.loss()
    loss[len(loss) // 2 :] = np.nan
    course.logged["train/loss"] = loss
    return course


def diverged(vendor: str, **more: Any) -> Course:
    course = Course(vendor, **more)
    loss = course.loss()
    half = len(loss) // 2
    loss[half:] = (
        loss[half]
        + 8 * (1 - np.exp(-np.arange(len(loss) - half) / 50))
        + course.noise.normal(0, 0.3, len(loss) - half)
    )
    course.logged["train/loss"] = loss
    return course


def held_memory(vendor: str, **more: Any) -> Course:
    course = Course(vendor, minutes=30, **more)
    n = len(course.t)
    for index in range(course.device_count):
        course.extra_devices[f"gpu.{index}.otherMemoryBytes"] = np.zeros(n)
        course.extra_devices[f"gpu.process.{index}.memoryAllocatedBytes"] = np.full(n, 60.0 * GIB)
    course.rest(course.between(10), devices=slice(2, 3))
    course.extra_devices["gpu.process.2.memoryAllocatedBytes"] = np.where(
        course.between(10), np.nan, 60.0 * GIB
    )
    return course


def slow_host(vendor: str, **more: Any) -> Course:
    course = Course(vendor, hosts=4, devices=4, **more)
    where = course.between(12)
    slow = slice(8, 12)
    rest = [row for row in range(16) if not 8 <= row < 12]
    course.scale(where, 0.75, devices=rest)
    course.busy[slow, where] = 97
    host = course.hosts[2]
    host["cpu.pressureSeconds"] = course.counter(np.where(where, 0.7, 0.02))
    host["cpu.mean"][where] = 99
    course.slow_steps(1.3)
    return course


def device_leak(vendor: str, **more: Any) -> Course:
    course = Course(vendor, minutes=120, state="running", **more)
    course.memory = 40 + course.t / 7200 * 35 + np.zeros_like(course.memory)
    return course


def slow_loader(vendor: str, **more: Any) -> Course:
    course = Course(vendor, **more)
    course.scale(course.between(1), 0.4)
    course.slow_steps(2.5)
    n = len(course.steps_s)
    course.logged["train/data_time"] = 3.0 + course.noise.normal(0, 0.2, n)
    return course


SICK: dict[str, tuple[Build, tuple[str, ...], tuple[str, ...]]] = {
    "hang": (hang, ("h100", "a100"), ()),
    "hang (deadlock)": (deadlock, ("h100", "mi300x", "tpu", "trn"), ()),
    "straggler": (straggler, ("h100", "a100"), ("clock_limited",)),
    "straggler (host)": (slow_host, ("h100", "a100", "mi300x"), ("noisy_neighbour",)),
    "memory_growth (device)": (device_leak, ("h100", "mi300x"), ()),
    "input_bound_cpu (loader)": (slow_loader, ("h100", "a100"), ()),
    "idle": (idle, ("h100", "a100", "mi300x", "tpu", "trn"), ()),
    "idle_devices": (idle_devices, ("h100", "a100", "mi300x"), ()),
    "idle_tail": (idle_tail, ("h100", "mi300x", "tpu"), ()),
    "slow_start": (slow_start, ("h100", "trn"), ()),
    "input_bound_cpu": (input_bound_cpu, ("h100", "a100", "mi300x", "tpu", "trn"), ()),
    "input_bound_disk": (input_bound_disk, ("h100", "a100", "mi300x"), ()),
    "input_bound_network": (input_bound_network, ("h100", "a100", "tpu"), ()),
    "cpu_limit": (cpu_limit, ("h100", "mi300x"), ()),
    "noisy_neighbour": (noisy_neighbour, ("h100", "a100"), ()),
    "device_used_by_others": (device_used_by_others, ("h100", "a100"), ()),
    "launch_bound": (launch_bound, ("h100",), ()),
    "communication_bound": (communication_bound, ("h100", "a100"), ()),
    "checkpoint_stalls": (checkpoint_stalls, ("h100", "a100", "mi300x", "tpu"), ()),
    "thermal_throttling": (thermal, ("h100", "a100"), ("straggler",)),
    "hw_slowdown": (brake, ("h100", "a100"), ()),
    "clock_limited": (clock_limited, ("h100", "a100"), ()),
    "pcie_degraded": (pcie, ("h100", "a100"), ()),
    "memory_errors": (memory_errors, ("h100", "a100"), ()),
    "device_needs_reset": (needs_reset, ("h100", "a100"), ()),
    "memory_growth": (leak, ("h100", "tpu"), ()),
    "swapping": (swapping, ("h100", "a100"), ("out_of_memory_near",)),
    "out_of_memory_near": (near_memory, ("h100", "trn"), ()),
    "disk_full_soon": (disk_fills, ("h100", "a100"), ()),
    "loss_not_finite": (nan_loss, ("h100", "tpu"), ()),
    "loss_diverged": (diverged, ("h100", "a100"), ()),
    "held_memory_without_process": (held_memory, ("h100", "a100"), ()),
}
"""By name: how the run is made, for which vendors, and which other findings may be there."""


def sick_runs(
    seeds: tuple[int, ...] = (1, 2), intervals_s: tuple[float, ...] = (2.0, 15.0)
) -> Iterator[Scenario]:
    """Make all sick runs, for each vendor, seed and interval."""
    for name, (build, vendors, allowed) in SICK.items():
        for vendor in vendors:
            for seed, interval_s in zip(seeds, intervals_s, strict=False):
                course = build(vendor, seed=seed, interval_s=interval_s)
                yield Scenario(
                    f"{name}, {vendor}, {interval_s:g} s", course, (name.partition(" ")[0],), allowed
                )


__all__ = ["SICK", "START_MS", "Mark", "sick_runs"]
