"""Runs with something wrong, one kind each."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from tests.findings.scenarios.course import GIB, Course, Courses, Scenario

sick = Courses()


@sick("h100", "a100", state="stopped")
def hang(course: Course) -> None:
    where = course.between(30)
    course.stop_steps(30)
    course.busy[:, where] = 100
    for column in (course.active, course.tensor, course.dram):
        column[:, where] = column[:, where] * 0.05
    course.power[:, where] = 30
    for host in course.hosts:
        host["cpu"][where] = 5
        host["cpu.mean"][where] = 7


@sick("h100", "mi300x", "tpu", "trn", name="hang (deadlock)", state="running")
def deadlock(course: Course) -> None:
    course.stop_steps(25)
    course.rest(course.between(25))


@sick("h100", "a100", allowed=("clock_limited",))
def straggler(course: Course) -> None:
    where = course.between(10)
    course.clock[3, where] *= 0.6
    course.power[3, where] *= 0.75
    others = [row for row in range(course.busy.shape[0]) if row != 3]
    for row in others:
        course.power[row, where] *= 0.8
        course.active[row, where] *= 0.8
        course.tensor[row, where] *= 0.75
    course.slow_steps(1.4)


@sick("h100", "a100", "mi300x", "tpu", "trn", minutes=90, step_s=0)
def idle(course: Course) -> None:
    course.rest(course.between(20))


@sick("h100", "a100", "mi300x")
def idle_devices(course: Course) -> None:
    course.rest(course.between(0), memory=False, devices=slice(4, None))


@sick("h100", "mi300x", "tpu", minutes=90)
def idle_tail(course: Course) -> None:
    course.stop_steps(60)
    course.rest(course.between(60))


@sick("h100", "trn", minutes=90, start_s=35 * 60)
def slow_start(course: Course) -> None:
    """As it is."""


@sick("h100", "a100", "mi300x", "tpu", "trn")
def input_bound_cpu(course: Course) -> None:
    where = course.between(1)
    course.scale(where, 0.45)
    course.busy[:, where] += course.noise.normal(0, 12, course.busy[:, where].shape)
    course.busy = course.busy.clip(0, 100)
    for host in course.hosts:
        host["cpu"][where] = 96 + course.noise.normal(0, 1, where.sum())
        host["cpu.mean"] = host["cpu"] + 2
        host["cpu.pressureSeconds"] = course.counter(np.where(where, 0.6, 0.0))
    course.slow_steps(2.2)


@sick("h100", "a100", "mi300x")
def input_bound_disk(course: Course) -> None:
    where = course.between(1)
    course.scale(where, 0.35)
    for host in course.hosts:
        host["cpu.iowait"][where] = 38
        host["io.pressureSeconds"] = course.counter(np.where(where, 0.7, 0.0))
        host["disk.in"] = course.counter(np.where(where, 480.0, 5.0))
        host["disk.nvme0n1.utilization"] = np.where(where, 99.0, 3.0)
    course.slow_steps(2.8)


@sick("h100", "a100", "tpu")
def input_bound_network(course: Course) -> None:
    where = course.between(1)
    course.scale(where, 0.4)
    for host in course.hosts:
        host["network.recv"] = course.counter(np.where(where, 118.0, 1.0) * 2**20)
        host["network.sent"] = course.counter(1.0 * 2**20)
        host["disk.in"] = course.counter(0.1)
    course.slow_steps(2.5)


@sick("h100", "mi300x", cpus=4)
def cpu_limit(course: Course) -> None:
    where = course.between(1)
    course.scale(where, 0.4)
    for host in course.hosts:
        host["cpu"][where] = 97
        host["cpu.ofLimit"] = np.where(where, 99.0, 10.0)
        host["cgroup.cpu.limit"] = np.full(len(course.t), 4.0)
        host["proc.cpu.throttledPercent"] = np.where(where, 82.0, 0.0)
        host["cpu.mean"] = np.full(len(course.t), 20.0)
    course.slow_steps(2.5)


@sick("h100", "a100")
def noisy_neighbour(course: Course) -> None:
    where = course.between(15, 50)
    course.scale(where, 0.55)
    for host in course.hosts:
        host["cpu"][where] = 25
        host["cpu.mean"][where] = 99
        host["cpu.pressureSeconds"] = course.counter(np.where(where, 0.8, 0.0))


@sick("h100", "a100")
def device_used_by_others(course: Course) -> None:
    n = len(course.t)
    for index in range(course.device_count):
        course.extra_devices[f"gpu.{index}.otherMemoryBytes"] = np.zeros(n)
        course.extra_devices[f"gpu.process.{index}.memoryAllocatedBytes"] = np.full(n, 50.0 * GIB)
    course.extra_devices["gpu.2.otherMemoryBytes"] = np.where(course.between(10), 18.0 * GIB, 0.0)


@sick("h100", devices=1, cpus=16)
def launch_bound(course: Course) -> None:
    where = course.between(1)
    course.busy[:, where] = 93 + course.noise.normal(0, 2, course.busy[:, where].shape)
    course.active[:, where], course.tensor[:, where], course.dram[:, where] = 11, 1, 6
    course.power[:, where] = 26
    for host in course.hosts:
        host["cpu"][where] = 6.6
        host["cpu.mean"][where] = 9


@sick("h100", "a100", hosts=2)
def communication_bound(course: Course) -> None:
    where = course.between(1)
    course.active[:, where], course.tensor[:, where], course.dram[:, where] = 34, 14, 18
    course.power[:, where] = 48
    for host in course.hosts:
        for way in ("xmitBytes", "recvBytes"):
            host[f"network.ib.mlx5_0.1.{way}"] = course.counter(np.where(where, 21e9, 0.0))


@sick("h100", "a100", "mi300x", "tpu")
def checkpoint_stalls(course: Course) -> None:
    pauses = course.every(480, 75)
    course.rest(pauses)
    course.steps_s = course.steps_s[~np.interp(course.steps_s, course.t, pauses.astype(float)).astype(bool)]
    for host in course.hosts:
        host["disk.out"] = course.counter(np.where(pauses, 1500.0, 0.5))


@sick("h100", "a100", name="thermal_throttling", allowed=("straggler",))
def thermal(course: Course) -> None:
    where = course.between(20)
    course.throttled["swThermal"][2, where] = 0.55
    course.temp[2, where] = 87
    course.clock[2, where] *= 0.72
    course.slow_steps(1.2)


@sick("h100", "a100", name="hw_slowdown")
def brake(course: Course) -> None:
    where = course.between(12)
    course.throttled["hwPowerBrake"][:, where] = 0.8
    course.throttled["hwSlowdown"][:, where] = 0.8
    course.clock[:, where] *= 0.45
    course.power[:, where] *= 0.5


@sick("h100", "a100")
def clock_limited(course: Course) -> None:
    where = course.between(1)
    course.clock[:, where] = 0.34
    course.power[:, where] = 38


@sick("h100", "a100", name="pcie_degraded")
def pcie(course: Course) -> None:
    n = len(course.t)
    for index in range(course.device_count):
        course.extra_devices |= {
            f"gpu.{index}.pcieLinkGen": np.full(n, 5.0),
            f"gpu.{index}.maxPcieLinkGen": np.full(n, 5.0),
            f"gpu.{index}.pcieLinkWidth": np.full(n, 16.0 if index != 5 else 4.0),
            f"gpu.{index}.maxPcieLinkWidth": np.full(n, 16.0),
        }


@sick("h100", "a100")
def memory_errors(course: Course) -> None:
    course.extra_devices["gpu.6.unCorrectedMemoryErrors"] = np.where(course.between(33), 2.0, 0.0)


@sick("h100", "a100", name="device_needs_reset")
def needs_reset(course: Course) -> None:
    course.extra_devices["gpu.1.recoveryAction"] = np.where(course.between(15), 1.0, 0.0)


@sick("h100", "tpu", name="memory_growth", minutes=180, state="running")
def leak(course: Course) -> None:
    for host in course.hosts:
        host["proc.memory.rssMB"] = 60_000 + 8.0 * course.t + course.noise.normal(0, 200, len(course.t))
        host["memory_percent"] = 100 * host["proc.memory.rssMB"] / 250_000
        host["cgroup.memory.limitMB"] = np.full(len(course.t), 250_000.0)


@sick("h100", "a100", allowed=("out_of_memory_near",))
def swapping(course: Course) -> None:
    where = course.between(20)
    for host in course.hosts:
        host["swap.used"] = np.where(where, (course.t - 1200).clip(0) * 4e6, 0.0)
        host["memory.pressureSeconds"] = course.counter(np.where(where, 0.3, 0.0))
        host["memory_percent"][where] = 98


@sick("h100", "trn", name="out_of_memory_near")
def near_memory(course: Course) -> None:
    for host in course.hosts:
        host["memory_percent"] = np.where(course.between(40), 98.3, 60.0)


@sick("h100", "a100", name="disk_full_soon", state="running")
def disk_fills(course: Course) -> None:
    for host in course.hosts:
        host["disk./data.usagePercent"] = 70 + course.t / 3600 * 22


@sick("h100", "tpu", name="loss_not_finite")
def nan_loss(course: Course) -> None:
    loss = course.loss()
    loss[len(loss) // 2 :] = np.nan
    course.logged["train/loss"] = loss


@sick("h100", "a100", name="loss_diverged")
def diverged(course: Course) -> None:
    loss = course.loss()
    half = len(loss) // 2
    loss[half:] = (
        loss[half]
        + 8 * (1 - np.exp(-np.arange(len(loss) - half) / 50))
        + course.noise.normal(0, 0.3, len(loss) - half)
    )
    course.logged["train/loss"] = loss


@sick("h100", "a100", name="held_memory_without_process", minutes=30)
def held_memory(course: Course) -> None:
    n = len(course.t)
    for index in range(course.device_count):
        course.extra_devices[f"gpu.{index}.otherMemoryBytes"] = np.zeros(n)
        course.extra_devices[f"gpu.process.{index}.memoryAllocatedBytes"] = np.full(n, 60.0 * GIB)
    course.rest(course.between(10), devices=slice(2, 3))
    course.extra_devices["gpu.process.2.memoryAllocatedBytes"] = np.where(
        course.between(10), np.nan, 60.0 * GIB
    )


@sick("h100", "a100", "mi300x", name="straggler (host)", allowed=("noisy_neighbour",), hosts=4, devices=4)
def slow_host(course: Course) -> None:
    where = course.between(12)
    slow = slice(8, 12)
    rest = [row for row in range(16) if not 8 <= row < 12]
    course.scale(where, 0.75, devices=rest)
    course.busy[slow, where] = 97
    host = course.hosts[2]
    host["cpu.pressureSeconds"] = course.counter(np.where(where, 0.7, 0.02))
    host["cpu.mean"][where] = 99
    course.slow_steps(1.3)


@sick("h100", "mi300x", name="memory_growth (device)", minutes=120, state="running")
def device_leak(course: Course) -> None:
    course.memory = 40 + course.t / 7200 * 35 + np.zeros_like(course.memory)


@sick("h100", "a100", name="input_bound_cpu (loader)")
def slow_loader(course: Course) -> None:
    course.scale(course.between(1), 0.4)
    course.slow_steps(2.5)
    n = len(course.steps_s)
    course.logged["train/data_time"] = 3.0 + course.noise.normal(0, 0.2, n)


def sick_runs(
    seeds: tuple[int, ...] = (1, 2), intervals_s: tuple[float, ...] = (2.0, 15.0)
) -> Iterator[Scenario]:
    """Make all sick runs, for each vendor, seed and interval."""
    for name, (build, vendors, allowed) in sick.items():
        for vendor in vendors:
            for seed, interval_s in zip(seeds, intervals_s, strict=False):
                course = build(vendor, seed=seed, interval_s=interval_s)
                yield Scenario(
                    f"{name}, {vendor}, {interval_s:g} s", course, (name.partition(" ")[0],), allowed
                )
