"""Healthy runs that look suspicious: each has something that a naive rule would accuse."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from runvitals.findings.training import Mark
from tests.findings.scenarios.course import GIB, START_MS, Course, Scenario

Build = Callable[..., Course]


def plain(vendor: str, **more: Any) -> Course:
    return Course(vendor, **more)


def power_capped(vendor: str, **more: Any) -> Course:
    course = Course(vendor, **more)
    course.throttled["swPowerCap"][:, course.between(1)] = 0.98
    course.clock *= 0.89
    course.power[:, course.between(1)] = 99.6
    return course


def marked_validation(vendor: str, **more: Any) -> Course:
    course = Course(vendor, **more)
    pauses = course.every(600, 120)
    course.scale(pauses, 0.5)
    for begin in np.arange(300, course.minutes * 60 - 120, 600):
        course.marks.append(Mark(START_MS + int(begin * 1000), "validation begins"))
        course.marks.append(Mark(START_MS + int((begin + 120) * 1000), "validation ends"))
    course.steps_s = course.steps_s[~np.interp(course.steps_s, course.t, pauses.astype(float)).astype(bool)]
    return course


def silent_validation(vendor: str, **more: Any) -> Course:
    course = Course(vendor, **more)
    pauses = course.every(900, 150)
    course.scale(pauses, 0.8)
    course.steps_s = course.steps_s[~np.interp(course.steps_s, course.t, pauses.astype(float)).astype(bool)]
    return course


def short_checkpoints(vendor: str, **more: Any) -> Course:
    course = Course(vendor, **more)
    pauses = course.every(600, 12)
    course.rest(pauses)
    for host in course.hosts:
        host["disk.out"] = course.counter(np.where(pauses, 2000.0, 0.5))
    return course


def full_memory(vendor: str, **more: Any) -> Course:
    course = Course(vendor, **more)
    course.memory[:, course.between(1)] = 97.5
    return course


def sleeping_links(vendor: str, **more: Any) -> Course:
    course = Course(vendor, **more)
    works = course.busy > 30
    for index in range(course.device_count):
        course.extra_devices |= {
            f"gpu.{index}.pcieLinkGen": np.where(works[index], 5.0, 1.0),
            f"gpu.{index}.maxPcieLinkGen": np.full(len(course.t), 5.0),
            f"gpu.{index}.pcieLinkWidth": np.full(len(course.t), 16.0),
            f"gpu.{index}.maxPcieLinkWidth": np.full(len(course.t), 16.0),
        }
    return course


def soc(vendor: str, **more: Any) -> Course:
    course = Course(vendor, devices=1, **more)
    course.device_facts = {"name": "NVIDIA GB10", "max_sm_clock_mhz": 3003}
    course.clock[:] = 0.93 * 3003 / 1980
    n = len(course.t)
    course.extra_devices = {
        "gpu.0.pcieLinkGen": np.full(n, 1.0),
        "gpu.0.maxPcieLinkGen": np.full(n, 5.0),
        "gpu.0.pcieLinkWidth": np.full(n, 1.0),
        "gpu.0.maxPcieLinkWidth": np.full(n, 16.0),
    }
    course.without = {".memoryAllocated", ".memoryAllocatedBytes"}
    for host in course.hosts:
        host["memory_percent"] += 45
    return course


def gaps(vendor: str, **more: Any) -> Course:
    course = Course(vendor, **more)
    course.kept = ~(course.between(20, 33) | course.between(45, 47))
    return course


def asleep(vendor: str, **more: Any) -> Course:
    course = Course(vendor, minutes=120, **more)
    course.kept = ~course.between(40, 75)
    course.stop_steps(40, 75)
    return course


def counter_reset(vendor: str, **more: Any) -> Course:
    course = Course(vendor, **more)
    half = len(course.t) // 2
    for host in course.hosts:
        for key in ("disk.in", "network.recv", "io.pressureSeconds"):
            host[key][half:] -= host[key][half]
    return course


def history_in_counters(vendor: str, **more: Any) -> Course:
    course = Course(vendor, **more)
    course.throttled["swThermal"][:, 0] = 173_000.0 / course.interval_s
    return course


def long_steps(vendor: str, **more: Any) -> Course:
    return Course(vendor, step_s=400.0, minutes=120, **more)


def long_last_step(vendor: str, **more: Any) -> Course:
    course = Course(vendor, minutes=90, state="running", **more)
    course.stop_steps(60)  # goes on at full power: a long validation that logs nothing
    return course


def no_rows(vendor: str, **more: Any) -> Course:
    return Course(vendor, step_s=0, **more)


def compiling(vendor: str, **more: Any) -> Course:
    course = Course(vendor, start_s=14 * 60, minutes=120, **more)
    for host in course.hosts:
        host["cpu"][course.between(0, 14)] = 95
        host["cpu.mean"][course.between(0, 14)] = 96
    return course


def growing_cache(vendor: str, **more: Any) -> Course:
    course = Course(vendor, minutes=180, **more)
    for host in course.hosts:
        host["proc.memory.rssMB"] = (
            60_000 + 50_000 * (1 - np.exp(-course.t / 2400)) + course.noise.normal(0, 100, len(course.t))
        )
        host["cgroup.memory.limitMB"] = np.full(len(course.t), 250_000.0)
    return course


def sawtooth_memory(vendor: str, **more: Any) -> Course:
    course = Course(vendor, minutes=180, **more)
    for host in course.hosts:
        host["proc.memory.rssMB"] = 60_000 + 20_000 * ((course.t % 1800) / 1800)
        host["cgroup.memory.limitMB"] = np.full(len(course.t), 250_000.0)
    return course


def loss_spike(vendor: str, **more: Any) -> Course:
    course = Course(vendor, **more)
    loss = course.loss()
    third = len(loss) // 3
    loss[third : third + 25] += 6 * np.exp(-np.arange(25) / 6)
    course.logged["train/loss"] = loss
    return course


def one_nan(vendor: str, **more: Any) -> Course:
    course = Course(vendor, **more)
    loss = course.loss()
    loss[len(loss) // 4] = np.nan
    course.logged["train/loss"] = loss
    course.logged["loss_scale"] = np.full(len(loss), np.inf)
    return course


def rising_reward_loss(vendor: str, **more: Any) -> Course:
    course = Course(vendor, **more)
    n = len(course.steps_s)
    course.logged["train/loss"] = 0.02 * np.sin(np.arange(n) / 40) + course.noise.normal(0, 0.05, n)
    return course


def busy_host(vendor: str, **more: Any) -> Course:
    course = Course(vendor, **more)
    for host in course.hosts:
        host["cpu"][:] = 97
        host["cpu.mean"][:] = 99
        host["cpu.pressureSeconds"] = course.counter(0.5)
    return course


def busy_disk(vendor: str, **more: Any) -> Course:
    course = Course(vendor, **more)
    for host in course.hosts:
        host["disk.in"] = course.counter(2500.0)
        host["disk.nvme0n1.utilization"] = np.full(len(course.t), 97.0)
        host["cpu.iowait"][:] = 8
    return course


def busy_network(vendor: str, **more: Any) -> Course:
    course = Course(vendor, **more)
    for host in course.hosts:
        host["network.recv"] = course.counter(1100.0 * 2**20)
    return course


def shared_host(vendor: str, **more: Any) -> Course:
    course = Course(vendor, **more)
    for host in course.hosts:
        host["cpu.mean"][:] = 85
    return course


def warm_blip(vendor: str, **more: Any) -> Course:
    course = Course(vendor, **more)
    course.throttled["swThermal"][1, course.between(30, 30.12)] = 1.0
    return course


def without_devices(vendor: str, **more: Any) -> Course:
    return Course(vendor, devices=0, **more)


def mig_parent(vendor: str, **more: Any) -> Course:
    course = Course(vendor, devices=1, **more)
    course.without = {".gpu", "graphicsActive", "smActive", "pipeTensorActive", "dramActive"}
    return course


def mixed_devices(vendor: str, **more: Any) -> Course:
    course = Course(vendor, **more)
    slow = slice(0, 4)
    course.clock[slow] *= 0.88
    course.power[slow] *= 0.9
    return course


def pipeline(vendor: str, **more: Any) -> Course:
    course = Course(vendor, **more)
    course.scale(course.between(1), 1.0)
    for row in range(course.busy.shape[0]):
        course.power[row] *= 1 - 0.03 * row
        course.busy[row] *= 1 - 0.012 * row
    return course


def first_rank_logs(vendor: str, **more: Any) -> Course:
    course = Course(vendor, **more)
    course.busy[0] *= 0.94
    course.power[0] *= 0.95
    course.memory[0] += 3
    return course


def short_tail(vendor: str, **more: Any) -> Course:
    course = Course(vendor, minutes=62, **more)
    course.stop_steps(60)
    course.rest(course.between(60))
    return course


def little_throttling(vendor: str, **more: Any) -> Course:
    course = Course(vendor, **more)
    for host in course.hosts:
        host["proc.cpu.throttledPercent"] = np.full(len(course.t), 9.0)
        host["cpu.ofLimit"] = np.full(len(course.t), 62.0)
    return course


def old_swap(vendor: str, **more: Any) -> Course:
    course = Course(vendor, **more)
    for host in course.hosts:
        host["swap.used"] = np.full(len(course.t), 6e9)
    return course


def almost_full_disk(vendor: str, **more: Any) -> Course:
    course = Course(vendor, **more)
    for host in course.hosts:
        host["disk./.usagePercent"] = np.full(len(course.t), 94.0)
        host["disk./scratch.usagePercent"] = 60 + course.t / 3600 * 0.3
    return course


def driver_memory(vendor: str, **more: Any) -> Course:
    course = Course(vendor, **more)
    for index in range(course.device_count):
        course.extra_devices[f"gpu.{index}.otherMemoryBytes"] = np.full(len(course.t), 0.3 * GIB)
        course.extra_devices[f"gpu.process.{index}.memoryAllocatedBytes"] = np.full(len(course.t), 60.0 * GIB)
    return course


def corrected_errors(vendor: str, **more: Any) -> Course:
    course = Course(vendor, **more)
    course.extra_devices["gpu.0.correctedMemoryErrors"] = np.cumsum(
        course.noise.poisson(0.01, len(course.t))
    ).astype(float)
    course.extra_devices["gpu.0.unCorrectedMemoryErrors"] = np.full(len(course.t), 0.0)
    return course


def boot_errors(vendor: str, **more: Any) -> Course:
    course = Course(vendor, **more)
    course.extra_devices["gpu.0.remappedRowsUncorrectable"] = np.full(len(course.t), 2.0)
    return course


def memory_bound_work(vendor: str, **more: Any) -> Course:
    course = Course(vendor, **more)
    where = course.between(1)
    course.dram[:, where], course.active[:, where], course.tensor[:, where] = 72, 40, 4
    course.power[:, where] = 60
    return course


HEALTHY: dict[str, tuple[Build, tuple[str, ...]]] = {
    function.__name__: (function, vendors)
    for function, vendors in (
        (plain, ("h100", "a100", "mi300x", "tpu", "trn")),
        (power_capped, ("h100", "a100")),
        (marked_validation, ("h100", "a100", "tpu")),
        (silent_validation, ("h100", "a100", "mi300x")),
        (short_checkpoints, ("h100", "a100")),
        (full_memory, ("h100", "a100", "mi300x")),
        (sleeping_links, ("h100", "a100")),
        (soc, ("h100",)),
        (gaps, ("h100", "mi300x", "tpu", "trn")),
        (asleep, ("h100", "tpu")),
        (counter_reset, ("h100", "a100")),
        (history_in_counters, ("h100", "a100")),
        (long_steps, ("h100", "tpu")),
        (long_last_step, ("h100", "a100", "trn")),
        (no_rows, ("h100", "a100", "mi300x", "tpu", "trn")),
        (compiling, ("h100", "tpu")),
        (growing_cache, ("h100", "a100")),
        (sawtooth_memory, ("h100", "a100")),
        (loss_spike, ("h100", "a100")),
        (one_nan, ("h100", "a100")),
        (rising_reward_loss, ("h100", "a100")),
        (busy_host, ("h100", "a100", "mi300x")),
        (busy_disk, ("h100", "a100")),
        (busy_network, ("h100", "a100")),
        (shared_host, ("h100", "a100")),
        (warm_blip, ("h100", "a100")),
        (without_devices, ("h100",)),
        (mig_parent, ("h100", "a100")),
        (mixed_devices, ("h100", "a100")),
        (pipeline, ("h100", "a100")),
        (first_rank_logs, ("h100", "a100")),
        (short_tail, ("h100", "mi300x")),
        (little_throttling, ("h100", "a100")),
        (old_swap, ("h100", "a100")),
        (almost_full_disk, ("h100", "a100")),
        (driver_memory, ("h100", "a100")),
        (corrected_errors, ("h100", "a100")),
        (boot_errors, ("h100", "a100")),
        (memory_bound_work, ("h100",)),
    )
}
"""By name: how the run is made, and for which vendors."""


def healthy_runs(
    seeds: tuple[int, ...] = (1, 2), intervals_s: tuple[float, ...] = (2.0, 15.0)
) -> Iterator[Scenario]:
    """Make all healthy runs, for each vendor, seed and interval."""
    for name, (build, vendors) in HEALTHY.items():
        for vendor in vendors:
            for seed, interval_s in zip(seeds, intervals_s, strict=False):
                yield Scenario(
                    f"{name}, {vendor}, {interval_s:g} s", build(vendor, seed=seed, interval_s=interval_s)
                )
