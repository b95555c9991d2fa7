"""Healthy runs that look suspicious: each has something that a naive rule would accuse."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from runvitals.findings.training import Mark
from tests.findings.scenarios.course import GIB, START_MS, Course, Courses, Scenario

healthy = Courses()


@healthy("h100", "a100", "mi300x", "tpu", "trn")
def plain(course: Course) -> None:
    """As it is."""


@healthy("h100", "a100")
def power_capped(course: Course) -> None:
    course.throttled["swPowerCap"][:, course.between(1)] = 0.98
    course.clock *= 0.89
    course.power[:, course.between(1)] = 99.6


@healthy("h100", "a100", "tpu")
def marked_validation(course: Course) -> None:
    pauses = course.every(600, 120)
    course.scale(pauses, 0.5)
    for begin in np.arange(300, course.minutes * 60 - 120, 600):
        course.marks.append(Mark(START_MS + int(begin * 1000), "validation begins"))
        course.marks.append(Mark(START_MS + int((begin + 120) * 1000), "validation ends"))
    course.steps_s = course.steps_s[~np.interp(course.steps_s, course.t, pauses.astype(float)).astype(bool)]


@healthy("h100", "a100", "mi300x")
def silent_validation(course: Course) -> None:
    pauses = course.every(900, 150)
    course.scale(pauses, 0.8)
    course.steps_s = course.steps_s[~np.interp(course.steps_s, course.t, pauses.astype(float)).astype(bool)]


@healthy("h100", "a100")
def short_checkpoints(course: Course) -> None:
    pauses = course.every(600, 12)
    course.rest(pauses)
    for host in course.hosts:
        host["disk.out"] = course.counter(np.where(pauses, 2000.0, 0.5))


@healthy("h100", "a100", "mi300x")
def full_memory(course: Course) -> None:
    course.memory[:, course.between(1)] = 97.5


@healthy("h100", "a100")
def sleeping_links(course: Course) -> None:
    works = course.busy > 30
    for index in range(course.device_count):
        course.extra_devices |= {
            f"gpu.{index}.pcieLinkGen": np.where(works[index], 5.0, 1.0),
            f"gpu.{index}.maxPcieLinkGen": np.full(len(course.t), 5.0),
            f"gpu.{index}.pcieLinkWidth": np.full(len(course.t), 16.0),
            f"gpu.{index}.maxPcieLinkWidth": np.full(len(course.t), 16.0),
        }


@healthy("h100", devices=1)
def soc(course: Course) -> None:
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


@healthy("h100", "mi300x", "tpu", "trn")
def gaps(course: Course) -> None:
    course.kept = ~(course.between(20, 33) | course.between(45, 47))


@healthy("h100", "tpu", minutes=120)
def asleep(course: Course) -> None:
    course.kept = ~course.between(40, 75)
    course.stop_steps(40, 75)


@healthy("h100", "a100")
def counter_reset(course: Course) -> None:
    half = len(course.t) // 2
    for host in course.hosts:
        for key in ("disk.in", "network.recv", "io.pressureSeconds"):
            host[key][half:] -= host[key][half]


@healthy("h100", "a100")
def history_in_counters(course: Course) -> None:
    course.throttled["swThermal"][:, 0] = 173_000.0 / course.interval_s


@healthy("h100", "tpu", step_s=400.0, minutes=120)
def long_steps(course: Course) -> None:
    """As it is."""


@healthy("h100", "a100", "trn", minutes=90, state="running")
def long_last_step(course: Course) -> None:
    course.stop_steps(60)  # goes on at full power: a long validation that logs nothing


@healthy("h100", "a100", "mi300x", "tpu", "trn", step_s=0)
def no_rows(course: Course) -> None:
    """As it is."""


@healthy("h100", "tpu", start_s=14 * 60, minutes=120)
def compiling(course: Course) -> None:
    for host in course.hosts:
        host["cpu"][course.between(0, 14)] = 95
        host["cpu.mean"][course.between(0, 14)] = 96


@healthy("h100", "a100", minutes=180)
def growing_cache(course: Course) -> None:
    for host in course.hosts:
        host["proc.memory.rssMB"] = (
            60_000 + 50_000 * (1 - np.exp(-course.t / 2400)) + course.noise.normal(0, 100, len(course.t))
        )
        host["cgroup.memory.limitMB"] = np.full(len(course.t), 250_000.0)


@healthy("h100", "a100", minutes=180)
def sawtooth_memory(course: Course) -> None:
    for host in course.hosts:
        host["proc.memory.rssMB"] = 60_000 + 20_000 * ((course.t % 1800) / 1800)
        host["cgroup.memory.limitMB"] = np.full(len(course.t), 250_000.0)


@healthy("h100", "a100")
def loss_spike(course: Course) -> None:
    loss = course.loss()
    third = len(loss) // 3
    loss[third : third + 25] += 6 * np.exp(-np.arange(25) / 6)
    course.logged["train/loss"] = loss


@healthy("h100", "a100")
def one_nan(course: Course) -> None:
    loss = course.loss()
    loss[len(loss) // 4] = np.nan
    course.logged["train/loss"] = loss
    course.logged["loss_scale"] = np.full(len(loss), np.inf)


@healthy("h100", "a100")
def rising_reward_loss(course: Course) -> None:
    n = len(course.steps_s)
    course.logged["train/loss"] = 0.02 * np.sin(np.arange(n) / 40) + course.noise.normal(0, 0.05, n)


@healthy("h100", "a100", "mi300x")
def busy_host(course: Course) -> None:
    for host in course.hosts:
        host["cpu"][:] = 97
        host["cpu.mean"][:] = 99
        host["cpu.pressureSeconds"] = course.counter(0.5)


@healthy("h100", "a100")
def busy_disk(course: Course) -> None:
    for host in course.hosts:
        host["disk.in"] = course.counter(2500.0)
        host["disk.nvme0n1.utilization"] = np.full(len(course.t), 97.0)
        host["cpu.iowait"][:] = 8


@healthy("h100", "a100")
def busy_network(course: Course) -> None:
    for host in course.hosts:
        host["network.recv"] = course.counter(1100.0 * 2**20)


@healthy("h100", "a100")
def shared_host(course: Course) -> None:
    for host in course.hosts:
        host["cpu.mean"][:] = 85


@healthy("h100", "a100")
def warm_blip(course: Course) -> None:
    course.throttled["swThermal"][1, course.between(30, 30.12)] = 1.0


@healthy("h100", devices=0)
def without_devices(course: Course) -> None:
    """As it is."""


@healthy("h100", "a100", devices=1)
def mig_parent(course: Course) -> None:
    course.without = {".gpu", "graphicsActive", "smActive", "pipeTensorActive", "dramActive"}


@healthy("h100", "a100")
def mixed_devices(course: Course) -> None:
    slow = slice(0, 4)
    course.clock[slow] *= 0.88
    course.power[slow] *= 0.9


@healthy("h100", "a100")
def pipeline(course: Course) -> None:
    course.scale(course.between(1), 1.0)
    for row in range(course.busy.shape[0]):
        course.power[row] *= 1 - 0.03 * row
        course.busy[row] *= 1 - 0.012 * row


@healthy("h100", "a100")
def first_rank_logs(course: Course) -> None:
    course.busy[0] *= 0.94
    course.power[0] *= 0.95
    course.memory[0] += 3


@healthy("h100", "mi300x", minutes=62)
def short_tail(course: Course) -> None:
    course.stop_steps(60)
    course.rest(course.between(60))


@healthy("h100", "a100")
def little_throttling(course: Course) -> None:
    for host in course.hosts:
        host["proc.cpu.throttledPercent"] = np.full(len(course.t), 9.0)
        host["cpu.ofLimit"] = np.full(len(course.t), 62.0)


@healthy("h100", "a100")
def old_swap(course: Course) -> None:
    for host in course.hosts:
        host["swap.used"] = np.full(len(course.t), 6e9)


@healthy("h100", "a100")
def almost_full_disk(course: Course) -> None:
    for host in course.hosts:
        host["disk./.usagePercent"] = np.full(len(course.t), 94.0)
        host["disk./scratch.usagePercent"] = 60 + course.t / 3600 * 0.3


@healthy("h100", "a100")
def driver_memory(course: Course) -> None:
    for index in range(course.device_count):
        course.extra_devices[f"gpu.{index}.otherMemoryBytes"] = np.full(len(course.t), 0.3 * GIB)
        course.extra_devices[f"gpu.process.{index}.memoryAllocatedBytes"] = np.full(len(course.t), 60.0 * GIB)


@healthy("h100", "a100")
def corrected_errors(course: Course) -> None:
    course.extra_devices["gpu.0.correctedMemoryErrors"] = np.cumsum(
        course.noise.poisson(0.01, len(course.t))
    ).astype(float)
    course.extra_devices["gpu.0.unCorrectedMemoryErrors"] = np.full(len(course.t), 0.0)


@healthy("h100", "a100")
def boot_errors(course: Course) -> None:
    course.extra_devices["gpu.0.remappedRowsUncorrectable"] = np.full(len(course.t), 2.0)


@healthy("h100")
def memory_bound_work(course: Course) -> None:
    where = course.between(1)
    course.dram[:, where], course.active[:, where], course.tensor[:, where] = 72, 40, 4
    course.power[:, where] = 60


def healthy_runs(
    seeds: tuple[int, ...] = (1, 2), intervals_s: tuple[float, ...] = (2.0, 15.0)
) -> Iterator[Scenario]:
    """Make all healthy runs, for each vendor, seed and interval."""
    for name, (build, vendors, _) in healthy.items():
        for vendor in vendors:
            for seed, interval_s in zip(seeds, intervals_s, strict=False):
                yield Scenario(
                    f"{name}, {vendor}, {interval_s:g} s", build(vendor, seed=seed, interval_s=interval_s)
                )
