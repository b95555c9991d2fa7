"""Workloads on accelerators of many vendors, at odd intervals, with gaps, resets and restarts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tests.findings.workloads.workload import GIB, HOUR, MINUTE, Floats, Workload, pauses_of

Build = Callable[[], Workload]
HEALTHY: dict[str, Build] = {}
SICK: dict[str, Build] = {}


def healthy(build: Build) -> Build:
    """Add a workload with which nothing is wrong."""
    HEALTHY[build.__name__] = build
    return build


def sick(build: Build) -> Build:
    """Add a workload with which something is wrong."""
    SICK[build.__name__] = build
    return build


def start(name: str, hours: float, interval_s: float, hosts: int = 1, **label: Any) -> Workload:
    """Make a workload of some hours."""
    return Workload(name, hours * HOUR, interval_s, hosts, **label)


def load_of(run: Workload, mean: float, spread: float = 2.0, since: float = 90.0) -> Floats:
    """A load that begins some time after the start."""
    return np.where(run.t >= since, run.busy(mean, spread), 0.0)


def tpu(run: Workload, host: str, index: int, load: Floats, used: float = 78.0) -> None:
    run.put(host, f"tpu.{index}.dutyCycle", load)
    run.put(host, f"tpu.{index}.memoryUsage", np.where(run.t > 60, used, 1.0))
    run.put(host, f"tpu.{index}.memoryUsageBytes", np.where(run.t > 60, used, 1.0) / 100 * 16 * GIB)
    run.put(host, f"tpu.{index}.hbmCapacityTotal", 16 * GIB)


def neuron(run: Workload, host: str, core: int, load: Floats) -> None:
    run.put(host, f"trn.{core}.neuroncore_utilization", load)
    run.put(host, f"trn.{core}.neuroncore_memory_usage.tensors", 9 * GIB)
    run.put(host, f"trn.device.{core // 2}.power_utilization", 20 + 0.5 * load)
    run.counter(host, f"trn.device.{core // 2}.mem_ecc_uncorrected", 0)
    run.put(host, "trn.neuron_device_total_memory_usage", 200 * GIB)


def ipu(run: Workload, host: str, index: int, load: Floats) -> None:
    """An IPU, whose tool logs only values that changed."""
    run.put(host, f"ipu.{index}.ipu utilisation (%)", np.round(load, 2))
    for key, values in (
        ("ipu power (W)", np.round(60 + 1.1 * load)),
        ("average die temp (C)", np.round(30 + 0.25 * load)),
        ("clock (MHz)", np.full(len(load), 1330.0)),
    ):
        same = np.diff(values, prepend=values[0] - 1) == 0
        run.put(host, f"ipu.{index}.{key}", np.where(same, np.nan, values))


def card(
    run: Workload,
    host: str,
    index: int,
    load: Floats,
    vendor: str,
    *,
    tdp: float = 600.0,
    used: Any = 80.0,
    watts: Any = None,
    clock: Any = None,
    memory_gib: float = 96.0,
) -> None:
    """A card that is measured with the keys of GPUs, without counters of activity or throttling."""
    power = 0.16 * tdp + 0.66 * tdp * load / 100 if watts is None else np.broadcast_to(watts, run.t.shape)
    power = np.clip(power + run.noise.normal(0, 0.01 * tdp, len(run.t)), 5, None)
    allocated = np.broadcast_to(np.asarray(used, float), run.t.shape)
    run.put(host, f"gpu.{index}.gpu", np.round(load))
    run.put(host, f"gpu.{index}.powerWatts", power)
    run.put(host, f"gpu.{index}.memoryAllocated", allocated)
    run.put(host, f"gpu.{index}.memoryAllocatedBytes", allocated / 100 * memory_gib * GIB)
    run.put(host, f"gpu.{index}.temp", np.round(35 + 35 * power / tdp))
    if vendor in ("gaudi", "amd"):
        run.put(host, f"gpu.{index}.enforcedPowerLimitWatts", tdp)
        run.put(host, f"gpu.{index}.powerPercent", power / tdp * 100)
    if vendor == "amd":
        run.put(host, f"gpu.{index}.memory", np.round(0.4 * load))
        top = np.where(load > 3, 2050.0, 132.0) + run.noise.normal(0, 20, len(run.t))
        run.put(host, f"gpu.{index}.graphicsClock", top if clock is None else clock)
    if vendor in ("ascend", "enflame"):
        run.put(host, f"gpu.{index}.healthy", 1)
    source = "gpu_amd" if vendor == "amd" else f"accelerator_{vendor}"
    run.machine[host].setdefault(source, []).append({"index": index, "name": vendor, "visible": True})


def apple(run: Workload, load: Floats, *, memory: Any = 60.0, name: str = "Apple M3 Max") -> None:
    run.put("node0", "gpu.0.gpu", load)
    run.put("node0", "gpu.0.memoryAllocated", memory)
    run.put("node0", "gpu.0.memoryAllocatedBytes", np.asarray(memory) / 100 * 64 * GIB)
    run.put("node0", "gpu.0.powerWatts", 0.3 + 0.4 * load)
    run.put("node0", "gpu.0.powerPercent", (0.3 + 0.4 * load) / 30 * 100)
    run.put("node0", "gpu.0.temp", 35 + 0.4 * load)
    run.put("node0", "gpu.0.graphicsClock", np.where(load > 3, 1380, 338))
    run.machine["node0"]["apple"] = {"chip": name, "memory_bytes": 64 * GIB}


# ---- healthy


@healthy
def tpu_slice() -> Workload:
    run = start("tpu_slice", 4, 30, hosts=4)
    for host in run.series:
        for index in range(4):
            tpu(run, host, index, load_of(run, 92, 3, 240))
        run.host(host, 12, cpus=112)
    run.steps(240, run.duration_s, 4.2)
    return run


@healthy
def tpu_compiles_long() -> Workload:
    """Compiles for 14 minutes on the host's processors, and again after an hour."""
    run = start("tpu_compiles_long", 3, 10)
    again = (HOUR + 14 * MINUTE, HOUR + 21 * MINUTE)
    compiles = (run.t < 14 * MINUTE) | run.between(again)
    for index in range(8):
        tpu(run, "node0", index, np.where(compiles, 0.0, run.busy(88, 3)))
    run.host("node0", np.where(compiles, 35, 8), cpus=96)
    run.steps(14 * MINUTE, run.duration_s, 2.0, every=10, pauses=[again])
    return run


@healthy
def tpu_evaluates_unmarked() -> Workload:
    run = start("tpu_evaluates_unmarked", 5, 15)
    pauses = pauses_of(30 * MINUTE, 4 * MINUTE, run.duration_s)
    for index in range(4):
        tpu(run, "node0", index, np.where(run.between(*pauses), run.busy(20, 15), load_of(run, 90, 2)))
    run.host("node0", 15)
    run.steps(90, run.duration_s, 1.0, every=20, pauses=pauses)
    return run


@healthy
def tpu_logs_rarely() -> Workload:
    run = start("tpu_logs_rarely", 8, 10)
    for index in range(4):
        tpu(run, "node0", index, load_of(run, 95, 1))
    run.host("node0", 6)
    run.steps(120, run.duration_s, 6.0, every=100)
    return run


@healthy
def neuron_cores() -> Workload:
    run = start("neuron_cores", 3, 5)
    for core in range(32):
        neuron(run, "node0", core, load_of(run, 84, 6, 300))
    run.host("node0", 9, cpus=128)
    run.steps(300, run.duration_s, 3.0)
    return run


@healthy
def ipu_changed_values_only() -> Workload:
    run = start("ipu_changed_values_only", 2, 10)
    for index in range(4):
        ipu(run, "node0", index, load_of(run, 76, 4, 400))
    run.host("node0", 18)
    run.steps(400, run.duration_s, 2.0)
    return run


@healthy
def gaudi_node() -> Workload:
    run = start("gaudi_node", 6, 10)
    for index in range(8):
        card(run, "node0", index, load_of(run, 93, 3, 500), "gaudi", used=97.8)
    run.host("node0", 11, cpus=160)
    run.steps(500, run.duration_s, 1.7, every=10)
    return run


@healthy
def amd_clock_follows_power() -> Workload:
    """At its power limit the clock of an MI300X varies by a third, by choice of its firmware."""
    run = start("amd_clock_follows_power", 3, 2)
    for index in range(8):
        clock = np.clip(
            1650 + 250 * np.sin(run.t / 47 + index) + run.noise.normal(0, 60, len(run.t)), 1300, 2100
        )
        card(run, "node0", index, load_of(run, 98, 1), "amd", tdp=750, watts=742, clock=clock, used=94)
        run.machine["node0"]["gpu_amd"][-1]["max_clock_mhz"] = 2100
    run.host("node0", 14)
    run.steps(90, run.duration_s, 2.5)
    return run


@healthy
def apple_memory_full() -> Workload:
    run = start("apple_memory_full", 0.6, 0.5)
    apple(run, load_of(run, 96, 2, 20), memory=np.where(run.t > 20, 93.0, 30.0))
    run.host("node0", 22, cpus=16, mem=np.where(run.t > 20, 91.0, 55.0), swap=2.1 * GIB)
    run.steps(20, run.duration_s, 0.7)
    return run


@healthy
def apple_notebook() -> Workload:
    """Cells that run some minutes each, by hand."""
    run = start("apple_notebook", 2, 5)
    works = (run.t % 700) < 260
    apple(run, np.where(works, run.busy(80, 10), 2.0))
    run.host("node0", np.where(works, 20, 1), cpus=12)
    return run


@healthy
def jetson_module() -> Workload:
    run = start("jetson_module", 2, 2)
    card(run, "node0", 0, load_of(run, 97, 2), "jetson", tdp=60, used=88, memory_gib=64)
    run.host("node0", 30, cpus=12, mem=88)
    run.machine["node0"]["accelerator_jetson"] = [{"index": 0, "name": "Jetson AGX Orin", "visible": True}]
    run.steps(90, run.duration_s, 0.9)
    return run


@healthy
def ascend_node() -> Workload:
    run = start("ascend_node", 4, 5)
    for index in range(8):
        card(run, "node0", index, load_of(run, 88, 5, 200), "ascend", tdp=400, used=92, memory_gib=64)
    run.host("node0", 9, cpus=192)
    run.steps(200, run.duration_s, 4.0)
    return run


@healthy
def intel_awake_all_night() -> Workload:
    """The driver counts the time in which the GPU was awake: 100 % tells nothing."""
    run = start("intel_awake_all_night", 5, 15)
    card(run, "node0", 0, np.full(len(run.t), 100.0), "intel", tdp=190, watts=150, used=70, memory_gib=16)
    run.host("node0", 16, cpus=24)
    run.steps(60, run.duration_s, 1.0, every=30)
    return run


@healthy
def tenstorrent_without_load() -> Workload:
    run = start("tenstorrent_without_load", 3, 5)
    for index in range(4):
        card(run, "node0", index, load_of(run, 90), "tenstorrent", tdp=300)
        for key in ("gpu", "memoryAllocated", "memoryAllocatedBytes"):
            del run.series["node0"][f"gpu.{index}.{key}"]
    run.host("node0", 10)
    run.steps(90, run.duration_s, 3.0)
    return run


@healthy
def sixty_four_with_a_gap() -> Workload:
    run = start("sixty_four_with_a_gap", 5, 30, hosts=8)
    for host in run.series:
        for index in range(8):
            run.gpu(host, index, load_of(run, 97, 1.5, 180), active=load_of(run, 80, 3, 180))
        run.host(host, 12)
    run.drop("node3", 1.5 * HOUR, 1.5 * HOUR + 22 * MINUTE)
    run.drop("node5", 3 * HOUR, 3 * HOUR + 4 * MINUTE)
    run.steps(180, run.duration_s, 7.0)
    return run


@healthy
def clock_set_back() -> Workload:
    """The clock of one host is set back by four minutes."""
    run = start("clock_set_back", 3, 5, hosts=2)
    for host in run.series:
        for index in range(4):
            card(run, host, index, load_of(run, 94), "amd", tdp=560)
        run.host(host, 15)
    run.drop("node1", HOUR, HOUR + 4 * MINUTE)
    run.steps(90, run.duration_s, 2.0)
    return run


@healthy
def restarted_twice() -> Workload:
    """Preempted twice for 9 minutes, resumes at a checkpoint; its counters begin again."""
    run = start("restarted_twice", 6, 10)
    down = [(1.9 * HOUR, 1.9 * HOUR + 9 * MINUTE), (4.2 * HOUR, 4.2 * HOUR + 9 * MINUTE)]
    starts = run.between(*((end, end + 150) for _, end in down))
    for index in range(8):
        run.gpu("node0", index, np.where(starts, 0, load_of(run, 97, 1)), throttle={"swPowerCap": 0.3})
    run.host("node0", 14)
    for begin, end in down:
        run.drop("node0", begin, end)
        for key, column in run.series["node0"].items():
            if key.endswith(("Seconds", "Joules", "disk.in", "disk.out", "network.recv", "network.sent")):
                later = run.t >= end
                column[later] -= column[later][0]
    run.steps(90, down[0][0], 3.0)
    run.steps(down[0][1] + 150, down[1][0], 3.0, first=run.last_step() - 120)
    run.steps(down[1][1] + 150, run.duration_s, 3.0, first=run.last_step() - 90)
    return run


@healthy
def driver_reloaded() -> Workload:
    run = start("driver_reloaded", 2, 5)
    for index in range(2):
        run.gpu("node0", index, load_of(run, 96), throttle={"swThermal": 0.0})
        for reason in ("swThermal", "hwThermal", "swPowerCap"):
            column = run.series["node0"][f"gpu.{index}.throttle.{reason}Seconds"]
            column[:] = np.where(run.t < HOUR, 173_453.0 + column, column)
    run.host("node0", 20)
    run.steps(90, run.duration_s, 1.0)
    return run


@healthy
def half_second_samples() -> Workload:
    run = start("half_second_samples", 0.4, 0.5)
    run.gpu("node0", 0, load_of(run, 90, 9, 15), active=load_of(run, 60, 10, 15), tdp=450, top=2520)
    run.host("node0", 24, cpus=16)
    run.steps(15, run.duration_s, 0.08, every=10)
    return run


@healthy
def a_day_with_evaluations() -> Workload:
    run = start("a_day_with_evaluations", 24, 30)
    pauses = pauses_of(HOUR, 5 * MINUTE, run.duration_s)
    for index in range(8):
        load = np.where(run.between(*pauses), run.busy(45, 20), load_of(run, 98, 1))
        card(run, "node0", index, load, "gaudi", used=95)
    run.host("node0", 12)
    run.steps(120, run.duration_s, 5.0, every=4, pauses=pauses)
    return run


@healthy
def downloads_then_trains() -> Workload:
    run = start("downloads_then_trains", 3, 10)
    loads = run.t < 15 * MINUTE
    for index in range(4):
        card(run, "node0", index, load_of(run, 91, 3, 15 * MINUTE), "ascend")
    run.host("node0", np.where(loads, 20, 12), recv=np.where(loads, 400, 1), write=np.where(loads, 400, 1))
    run.steps(15 * MINUTE, run.duration_s, 2.0)
    return run


@healthy
def processors_only() -> Workload:
    run = start("processors_only", 2, 5)
    run.host("node0", 92, cpus=16, cpu_psi=8)
    run.steps(20, run.duration_s, 1.5, every=4)
    return run


@healthy
def memory_reaches_a_plateau() -> Workload:
    run = start("memory_reaches_a_plateau", 9, 15)
    for index in range(4):
        card(run, "node0", index, load_of(run, 90), "amd")
    grown = 1 - np.exp(-run.t / (1.1 * HOUR))
    run.host("node0", 14, mem=20 + 45 * grown, rss=60_000 + 200_000 * grown)
    run.steps(90, run.duration_s, 2.0)
    return run


@healthy
def stages_of_a_pipeline() -> Workload:
    run = start("stages_of_a_pipeline", 3, 10, hosts=2)
    for number, host in enumerate(run.series):
        for index in range(4):
            tpu(run, host, index, load_of(run, 72 + 3 * (number * 4 + index), 2, 200))
        run.host(host, 9)
    run.steps(200, run.duration_s, 5.0)
    return run


@healthy
def experts_unequal() -> Workload:
    run = start("experts_unequal", 3, 10)
    for index in range(8):
        drift = 5 * np.sin(run.t / 900 + index * 1.7)
        load = load_of(run, 86, 4) + np.where(run.t > 120, drift, 0)
        card(run, "node0", index, np.clip(load, 0, 100), "amd")
    run.host("node0", 12)
    run.steps(90, run.duration_s, 2.2)
    return run


@healthy
def likelihood_below_zero() -> Workload:
    run = start("likelihood_below_zero", 2, 10)
    ipu(run, "node0", 0, load_of(run, 70))
    run.host("node0", 20)
    run.steps(
        90, run.duration_s, 1.0, loss=lambda share: 400 - 2600 * (1 - np.exp(-3 * share)), loss_spread=0.01
    )
    return run


@healthy
def scaler_skips_first_steps() -> Workload:
    run = start("scaler_skips_first_steps", 2, 10)
    for index in range(2):
        card(run, "node0", index, load_of(run, 92), "gaudi")
    run.host("node0", 20)
    run.steps(90, run.duration_s, 2.0)
    run.logged["train/loss"][2][:4] = np.nan
    run.logged["train/loss"][2][900] = np.inf
    return run


@healthy
def disk_nearly_full_for_long() -> Workload:
    run = start("disk_nearly_full_for_long", 6, 30)
    for index in range(4):
        tpu(run, "node0", index, load_of(run, 90))
    run.host("node0", 12, disk=96.2 + 0.02 * run.t / HOUR, swap=5 * GIB)
    run.steps(90, run.duration_s, 2.0)
    return run


@healthy
def logs_validation_only() -> Workload:
    """Logs one row an epoch of 35 minutes."""
    run = start("logs_validation_only", 8, 15)
    pauses = pauses_of(35 * MINUTE, 3 * MINUTE, run.duration_s)
    for index in range(2):
        neuron(run, "node0", index, np.where(run.between(*pauses), 30.0, load_of(run, 89)))
    run.host("node0", 14)
    run.steps(60, run.duration_s, 38 * MINUTE, spread=0.005, name="val_loss")
    return run


@healthy
def biren_between_serving() -> Workload:
    """Two cards that serve requests: load comes and goes in seconds, no steps."""
    run = start("biren_between_serving", 4, 1)
    for index in range(2):
        bursts = np.convolve(run.noise.random(len(run.t)) > 0.9, np.ones(8), "same") > 0
        card(run, "node0", index, np.where(bursts, run.busy(85, 8), 0.0), "biren", tdp=300)
    run.host("node0", 10)
    return run


# ---- sick


@healthy
def curriculum_in_one_step() -> Workload:
    """Harder data from half on: the loss rises at once, and stays there."""
    run = start("curriculum_in_one_step", 3, 10)
    card(run, "node0", 0, load_of(run, 92), "amd")
    run.host("node0", 20)
    run.steps(90, run.duration_s, 3.0, loss=lambda share: 1.2 + 2 * np.exp(-8 * share) + 1.0 * (share > 0.5))
    return run


@healthy
def curriculum_that_is_marked() -> Workload:
    """A context four times as long from half on: the loss is above where it began, and was told to be."""
    run = start("curriculum_that_is_marked", 3, 10)
    card(run, "node0", 0, load_of(run, 92), "gaudi")
    run.host("node0", 20)
    run.steps(90, run.duration_s, 3.0, loss=lambda share: np.where(share < 0.5, 1 + np.exp(-9 * share), 2.6))
    run.mark(90 + (run.duration_s - 90) / 2, "stage 2: context 32k")
    return run


@sick
def diverges_to_where_it_began() -> Workload:
    run = start("diverges_to_where_it_began", 3, 10, expected=["loss_diverged"], from_s=1.5 * HOUR)
    card(run, "node0", 0, load_of(run, 92), "amd")
    run.host("node0", 20)
    run.steps(90, run.duration_s, 3.0, loss=lambda share: 1.2 + 2 * np.exp(-8 * share) + 1.8 * (share > 0.5))
    return run


@sick
def tpu_waits_for_processors() -> Workload:
    run = start("tpu_waits_for_processors", 3, 15, expected=["input_bound_cpu"])
    for index in range(8):
        tpu(run, "node0", index, load_of(run, 42, 9, 200))
    run.host("node0", load_of(run, 98, 1, 150), cpus=96, cpu_psi=np.where(run.t > 150, 65, 1))
    run.steps(200, run.duration_s, 3.0)
    return run


@sick
def tpu_spins_without_steps() -> Workload:
    run = start(
        "tpu_spins_without_steps",
        4,
        10,
        hosts=2,
        expected=["hang"],
        from_s=2 * HOUR,
        open=True,
        not_before_s=2 * HOUR,
    )
    run.goes_on = True
    for host in run.series:
        for index in range(4):
            load = np.where(run.t < 2 * HOUR, load_of(run, 91, 3), 100.0)
            tpu(run, host, index, load)
        run.host(host, np.where(run.t < 2 * HOUR, 14, 4))
    run.steps(90, 2 * HOUR, 3.0)
    return run


@sick
def tpu_stops_quietly() -> Workload:
    run = start("tpu_stops_quietly", 4, 30, expected=["hang"], allowed=["idle"], from_s=2 * HOUR)
    run.goes_on = True
    for index in range(4):
        tpu(run, "node0", index, np.where(run.t < 2 * HOUR, load_of(run, 91, 3), 0.0))
    run.host("node0", np.where(run.t < 2 * HOUR, 14, 0.6))
    run.steps(90, 2 * HOUR, 3.0)
    return run


@sick
def tpu_forgotten() -> Workload:
    run = start("tpu_forgotten", 5, 30, expected=["idle"], from_s=35 * MINUTE)
    for index in range(4):
        tpu(run, "node0", index, np.where(run.t < 35 * MINUTE, load_of(run, 80, 8), 0.0))
    run.host("node0", np.where(run.t < 35 * MINUTE, 10, 0.4))
    return run


@sick
def neuron_half_unused() -> Workload:
    run = start("neuron_half_unused", 3, 10, expected=["idle_devices"], devices=range(16, 32))
    for core in range(32):
        neuron(run, "node0", core, load_of(run, 85, 5, 200) if core < 16 else np.zeros(len(run.t)))
    run.host("node0", 9, cpus=128)
    run.steps(200, run.duration_s, 3.0)
    return run


@sick
def neuron_memory_errors() -> Workload:
    run = start("neuron_memory_errors", 3, 10, expected=["memory_errors"])
    for core in range(8):
        neuron(run, "node0", core, load_of(run, 85, 5, 200))
    run.series["node0"]["trn.device.2.mem_ecc_uncorrected"] = np.where(run.t > 1.5 * HOUR, 3.0, 0.0)
    run.host("node0", 9, cpus=128)
    run.steps(200, run.duration_s, 3.0)
    return run


@sick
def neuron_host_behind() -> Workload:
    """The processors of one of four hosts are busy: its cores come late, the others wait for them."""
    run = start("neuron_host_behind", 4, 10, hosts=4, expected=["straggler", "input_bound_cpu"])
    late = run.t > 30 * MINUTE
    for host in run.series:
        slow = host == "node2"
        for core in range(8):
            neuron(run, host, core, np.where(late, run.busy(52 if slow else 54, 6), load_of(run, 90, 3)))
        run.host(host, np.where(late & slow, 97, 14), cpu_psi=np.where(late & slow, 75, 1), cpus=64)
    run.steps(90, run.duration_s, 2.0, slow=lambda at: 1.7 if at > 30 * MINUTE else 1.0)
    return run


@sick
def ipu_tail() -> Workload:
    run = start("ipu_tail", 3, 10, expected=["idle_tail"], allowed=["hang"], from_s=2 * HOUR)
    for index in range(4):
        ipu(run, "node0", index, np.where(run.t < 2 * HOUR, load_of(run, 76, 4), 0.0))
    run.host("node0", np.where(run.t < 2 * HOUR, 18, 1.0))
    run.steps(90, 2 * HOUR, 2.0)
    return run


@sick
def gaudi_waits_for_disk() -> Workload:
    run = start("gaudi_waits_for_disk", 3, 10, expected=["input_bound_disk"])
    for index in range(8):
        card(run, "node0", index, load_of(run, 30, 12, 200), "gaudi")
    run.host(
        "node0",
        8,
        cpus=96,
        read=np.where(run.t > 150, 2900, 5),
        iowait=np.where(run.t > 150, 30, 0),
        io_psi=np.where(run.t > 150, 70, 1),
    )
    run.steps(200, run.duration_s, 4.0)
    return run


@sick
def gaudi_downloads_for_long() -> Workload:
    run = start("gaudi_downloads_for_long", 3, 10, expected=["slow_start"], allowed=["idle"])
    for index in range(8):
        card(run, "node0", index, load_of(run, 92, 3, 50 * MINUTE), "gaudi")
    run.host("node0", 6, recv=np.where(run.t < 50 * MINUTE, 120, 1))
    run.steps(50 * MINUTE, run.duration_s, 2.0)
    return run


@sick
def amd_clock_stays_low() -> Workload:
    run = start(
        "amd_clock_stays_low",
        3,
        5,
        expected=["clock_limited", "straggler"],
        devices=[3],
        allowed=["straggler", "clock_limited"],
    )
    for index in range(8):
        slow = index == 3
        load = load_of(run, 99 if slow else 62, 1 if slow else 8)
        card(
            run,
            "node0",
            index,
            load,
            "amd",
            tdp=750,
            watts=np.where(run.t < 90, 130, 250 if slow else 380),
            clock=np.where(run.t < 90, 132.0, 520.0 if slow else 2080.0),
        )
        run.machine["node0"]["gpu_amd"][-1]["max_clock_mhz"] = 2100
    run.host("node0", 12)
    run.steps(90, run.duration_s, 3.0)
    return run


@sick
def amd_spins() -> Workload:
    run = start("amd_spins", 3, 2, expected=["hang"], from_s=1.5 * HOUR, open=True)
    run.goes_on = True
    for index in range(8):
        load = np.where(run.t < 1.5 * HOUR, load_of(run, 95), 100.0)
        card(run, "node0", index, load, "amd", tdp=750, watts=np.where(run.t < 1.5 * HOUR, 600, 160))
        run.put("node0", f"gpu.{index}.busySuspect", np.where(run.t < 1.5 * HOUR, 0.0, 1.0))
    run.host("node0", np.where(run.t < 1.5 * HOUR, 14, 6))
    run.steps(90, 1.5 * HOUR, 2.0)
    return run


@sick
def apple_swaps() -> Workload:
    run = start(
        "apple_swaps",
        1.5,
        2,
        expected=["swapping"],
        allowed=["out_of_memory_near", "memory_growth", "input_bound_disk"],
    )
    late = run.t > 30 * MINUTE
    apple(run, np.where(late, run.busy(30, 15), load_of(run, 92)), memory=np.where(late, 85.0, 60.0))
    grown = np.clip((run.t - 30 * MINUTE) / HOUR, 0, 1)
    run.host(
        "node0",
        10,
        cpus=12,
        mem=np.where(late, 97, 80),
        swap=grown * 18 * GIB,
        mem_psi=np.where(late, 45, 0),
        read=np.where(late, 900, 2),
        write=np.where(late, 700, 2),
        io_psi=np.where(late, 40, 0),
    )
    run.steps(90, run.duration_s, 1.0, slow=lambda at: 3.0 if at > 30 * MINUTE else 1.0)
    return run


@sick
def apple_decodes_slowly() -> Workload:
    run = start("apple_decodes_slowly", 1, 2, expected=["input_bound_cpu"])
    apple(run, load_of(run, 34, 9, 60))
    run.host("node0", load_of(run, 97, 1, 50), cpus=12, cpu_psi=np.where(run.t > 50, 60, 0))
    run.steps(60, run.duration_s, 1.5)
    return run


@sick
def ascend_half_unused() -> Workload:
    run = start("ascend_half_unused", 2, 5, expected=["idle_devices"], devices=[4, 5, 6, 7])
    for index in range(8):
        used = index < 4
        card(
            run,
            "node0",
            index,
            load_of(run, 88) if used else np.zeros(len(run.t)),
            "ascend",
            tdp=400,
            used=85 if used else 3.0,
        )
    run.host("node0", 9)
    run.steps(90, run.duration_s, 3.0)
    return run


@sick
def ascend_not_finite() -> Workload:
    run = start("ascend_not_finite", 2, 5, expected=["loss_not_finite"])
    card(run, "node0", 0, load_of(run, 88), "ascend")
    run.host("node0", 9)
    run.steps(90, run.duration_s, 3.0)
    values = run.logged["train/loss"][2]
    values[len(values) // 2 :] = np.nan
    return run


@sick
def one_of_sixty_four_slow() -> Workload:
    run = start("one_of_sixty_four_slow", 6, 30, hosts=8, expected=["straggler"], devices=[5])
    late = run.t > 2 * HOUR
    for host in run.series:
        for index in range(8):
            slow = (host, index) == ("node6", 5)
            work = load_of(run, 80, 3, 180)
            run.gpu(
                host,
                index,
                load_of(run, 99, 0.5, 180),
                active=work if slow else np.where(late, work * 0.6, work),
                watts=np.where(run.t < 180, 75, np.where(late, 420 if slow else 380, 610)),
                clock=np.where(late & slow, 1110, 1950),
            )
        run.host(host, 12)
    run.drop("node1", 4 * HOUR, 4 * HOUR + 25 * MINUTE)
    run.steps(180, run.duration_s, 6.0, slow=lambda at: 1.65 if at > 2 * HOUR else 1.0)
    return run


@sick
def network_at_half_a_second() -> Workload:
    run = start("network_at_half_a_second", 0.6, 0.5, expected=["input_bound_network"])
    run.gpu("node0", 0, load_of(run, 28, 12, 30), active=load_of(run, 20, 8, 30))
    run.host("node0", 9, recv=np.where(run.t > 20, 118, 0.5))
    run.steps(30, run.duration_s, 2.0)
    return run


@sick
def wandb_keys_idle() -> Workload:
    run = start("wandb_keys_idle", 7, 30, expected=["idle"], from_s=2 * HOUR)
    for index in range(4):
        run.gpu("node0", index, np.where(run.t < 2 * HOUR, load_of(run, 88, 5), 0.0), keys="wandb", tdp=300)
    run.host("node0", np.where(run.t < 2 * HOUR, 30, 0.5), keys="wandb")
    return run


@sick
def pauses_for_checkpoints() -> Workload:
    run = start("pauses_for_checkpoints", 6, 30, hosts=8, expected=["checkpoint_stalls"])
    pauses = pauses_of(17 * MINUTE, 3 * MINUTE, run.duration_s)
    saves = run.between(*pauses)
    for host in run.series:
        for index in range(8):
            run.gpu(host, index, np.where(saves, 0, load_of(run, 97, 1)))
        run.host(host, 12, write=np.where(saves, 700, 1), io_psi=np.where(saves, 40, 0))
    run.steps(90, run.duration_s, 6.0, pauses=pauses)
    return run


@sick
def leak_ends_in_a_restart() -> Workload:
    """Memory grows until the job is killed and started again, thrice."""
    run = start(
        "leak_ends_in_a_restart",
        7,
        15,
        expected=["memory_growth", "out_of_memory_near"],
        allowed=["memory_growth", "out_of_memory_near"],
    )
    cycle = 2.3 * HOUR
    grown = (run.t % cycle) / cycle
    for index in range(4):
        card(run, "node0", index, np.where(grown < 0.02, 0, run.busy(92, 2)), "gaudi")
    run.host("node0", 12, mem=20 + 78 * grown, rss=60_000 + 400_000 * grown)
    for number in range(4):
        run.steps(
            number * cycle + 170, min((number + 1) * cycle - 5, run.duration_s), 3.0, first=number * 1500
        )
    return run


@sick
def container_throttled_without_devices() -> Workload:
    run = start("container_throttled_without_devices", 1.5, 5, expected=["cpu_limit"])
    run.host("node0", 97, cpus=4, total=22)
    run.counter("node0", "proc.cpu.throttledSeconds", 2.4)
    run.put("node0", "proc.cpu.throttledPercent", 92)
    run.steps(30, run.duration_s, 2.0)
    return run


@sick
def neighbours_without_devices() -> Workload:
    """Others take the processors after half an hour: steps take twice as long."""
    run = start("neighbours_without_devices", 2, 5, expected=["noisy_neighbour"], from_s=30 * MINUTE)
    late = run.t > 30 * MINUTE
    run.host(
        "node0", np.where(late, 33, 66), cpus=16, total=np.where(late, 99, 69), cpu_psi=np.where(late, 60, 3)
    )
    run.steps(30, run.duration_s, 2.0, slow=lambda at: 2.0 if at > 30 * MINUTE else 1.0)
    return run


@sick
def disk_fills_in_hours() -> Workload:
    run = start("disk_fills_in_hours", 6, 30, expected=["disk_full_soon"])
    run.goes_on = True
    for index in range(4):
        tpu(run, "node0", index, load_of(run, 90))
    run.host("node0", 12, disk=np.clip(50 + 7.2 * run.t / HOUR, 0, 100))
    run.steps(90, run.duration_s, 2.0)
    return run


@sick
def perplexity_explodes() -> Workload:
    run = start("perplexity_explodes", 3, 10, expected=["loss_diverged"], from_s=1.5 * HOUR)
    for index in range(2):
        card(run, "node0", index, load_of(run, 92), "amd")
    run.host("node0", 20)
    run.steps(
        90,
        run.duration_s,
        2.0,
        loss=lambda share: 2 + 3 * np.exp(-5 * share) + np.where(share > 0.5, 60 * (share - 0.5), 0),
    )
    return run


@sick
def tpu_uploads_at_the_end() -> Workload:
    run = start("tpu_uploads_at_the_end", 4, 15, expected=["idle_tail"], allowed=["idle"], from_s=2.5 * HOUR)
    for index in range(8):
        tpu(run, "node0", index, np.where(run.t < 2.5 * HOUR, load_of(run, 91), 0.0))
    run.host("node0", np.where(run.t < 2.5 * HOUR, 14, 3), sent=np.where(run.t < 2.5 * HOUR, 1, 30))
    run.steps(90, 2.5 * HOUR, 3.0)
    return run


@sick
def narrow_link() -> Workload:
    run = start("narrow_link", 2, 10, expected=["pcie_degraded"], allowed=["straggler"], devices=[2])
    for index in range(8):
        run.gpu("node0", index, load_of(run, 92), active=load_of(run, 70))
    run.put("node0", "gpu.2.pcieLinkWidth", 4)
    run.host("node0", 12)
    run.steps(90, run.duration_s, 2.0)
    return run


@sick
def cambricon_all_idle_from_the_start() -> Workload:
    run = start(
        "cambricon_all_idle_from_the_start",
        3,
        5,
        expected=["idle", "slow_start"],
        allowed=["idle", "slow_start", "idle_devices"],
    )
    for index in range(4):
        card(run, "node0", index, np.zeros(len(run.t)), "cambricon", tdp=350, used=2.0)
    run.host("node0", 3)
    return run


@sick
def gaudi_stops_after_a_gap() -> Workload:
    """Nothing was measured when it stopped; then the cards spin at low power."""
    run = start("gaudi_stops_after_a_gap", 4, 20, expected=["hang"], open=True, from_s=2 * HOUR)
    run.goes_on = True
    for index in range(8):
        load = np.where(run.t < 2 * HOUR, load_of(run, 93), 100.0)
        card(run, "node0", index, load, "gaudi", watts=np.where(run.t < 2 * HOUR, 480, 170))
    run.host("node0", np.where(run.t < 2 * HOUR, 12, 5))
    run.drop("node0", 1.9 * HOUR, 2.2 * HOUR)
    run.steps(90, 2 * HOUR, 2.0)
    return run


@sick
def two_clocks_one_hang() -> Workload:
    """The clock of one host is two minutes ahead; both stop."""
    run = start("two_clocks_one_hang", 3, 10, hosts=2, expected=["hang"], open=True, from_s=1.5 * HOUR)
    run.goes_on = True
    for number, host in enumerate(run.series):
        stopped = run.t > 1.5 * HOUR + number * 120
        for index in range(4):
            card(
                run,
                host,
                index,
                np.where(stopped, 100.0, load_of(run, 95)),
                "amd",
                tdp=560,
                watts=np.where(stopped, 150, 450),
            )
        run.host(host, np.where(stopped, 5, 14))
    run.steps(90, 1.5 * HOUR, 2.0)
    return run


@sick
def neighbours_on_its_processors() -> Workload:
    """It may use 4 of 64 processors (taskset), and others use the same ones; the rest of the host is free."""
    run = start("neighbours_on_its_processors", 2, 5, expected=["noisy_neighbour"], from_s=40 * MINUTE)
    late = run.t > 40 * MINUTE
    run.host("node0", np.where(late, 45, 90), cpus=4, total=12, cpu_psi=np.where(late, 60, 4))
    run.machine["node0"]["cpu"]["logical_cores"] = 64
    run.put("node0", "cpu.ofAllowed", np.where(late, 99.0, 92.0), 0.5)
    run.steps(30, run.duration_s, 2.0, slow=lambda at: 1.9 if at > 40 * MINUTE else 1.0)
    return run


@sick
def neighbours_beside_a_quota() -> Workload:
    """A container of 4 processors on a host of 16, of which others take all that there are."""
    run = start("neighbours_beside_a_quota", 2, 5, expected=["noisy_neighbour"], from_s=40 * MINUTE)
    late = run.t > 40 * MINUTE
    run.host(
        "node0", np.where(late, 60, 96), cpus=4, total=np.where(late, 99, 40), cpu_psi=np.where(late, 60, 4)
    )
    run.machine["node0"]["cpu"]["logical_cores"] = 16
    run.put("node0", "cgroup.cpu.limit", 4)
    run.steps(30, run.duration_s, 2.0, slow=lambda at: 1.6 if at > 40 * MINUTE else 1.0)
    return run


@healthy
def neighbours_on_other_processors() -> Workload:
    """It uses its 4 of 64 processors itself; others use the rest."""
    run = start("neighbours_on_other_processors", 2, 5)
    run.host("node0", 96, cpus=4, total=np.where(run.t > HOUR, 97, 30), cpu_psi=9)
    run.machine["node0"]["cpu"]["logical_cores"] = 64
    run.put("node0", "cpu.ofAllowed", 97, 0.5)
    run.steps(30, run.duration_s, 2.0)
    return run


@healthy
def neighbours_do_no_harm() -> Workload:
    """Others use all that is left, and the steps take as long as before."""
    run = start("neighbours_do_no_harm", 2, 5)
    late = run.t > HOUR
    run.host("node0", 50, cpus=16, total=np.where(late, 99, 53), cpu_psi=np.where(late, 25, 2))
    run.steps(30, run.duration_s, 2.0)
    return run


@sick
def checkpoints_stop_the_second_stage() -> Workload:
    """Short sequences first, at half the load; then long ones, and checkpoints to a slow file system."""
    run = start(
        "checkpoints_stop_the_second_stage",
        9,
        20,
        expected=["checkpoint_stalls"],
    )
    pauses = [
        (each, each + 2.5 * MINUTE) for each in np.arange(5 * HOUR + 15 * MINUTE, 8.9 * HOUR, 15 * MINUTE)
    ]
    saves = run.between(*pauses)
    load = np.where(run.t < 5 * HOUR, load_of(run, 44, 4), run.busy(95, 2))
    for index in range(8):
        card(run, "node0", index, np.where(saves, 2.0, load), "gaudi")
    preprocesses = (run.t < 5 * HOUR) & (run.t > HOUR)
    run.host("node0", 12, write=np.where(saves, 300, np.where(preprocesses, 150, 1)))
    run.steps(90, run.duration_s, 5.0, pauses=pauses)
    return run


@healthy
def second_stage_without_stalls() -> Workload:
    """Half the load until noon with many writes at times, then all of it: none of that is a checkpoint."""
    run = start("second_stage_without_stalls", 9, 20)
    writes = (run.t % (20 * MINUTE) < 100) & (run.t < 5 * HOUR)
    for index in range(8):
        card(run, "node0", index, np.where(run.t < 5 * HOUR, load_of(run, 46, 5), run.busy(96, 2)), "gaudi")
    run.host("node0", 12, write=np.where(writes, 400, 1))
    run.steps(90, run.duration_s, 5.0)
    return run


@sick
def hot_card_holds_up_the_others() -> Workload:
    run = start(
        "hot_card_holds_up_the_others",
        3,
        10,
        expected=["thermal_throttling"],
        allowed=["straggler"],
        devices=[2],
    )
    late = run.t > 30 * MINUTE
    for index in range(8):
        hot = index == 2
        work = load_of(run, 80, 3)
        run.gpu(
            "node0",
            index,
            load_of(run, 98, 1),
            active=work if hot else np.where(late, 0.62 * work, work),
            watts=np.where(run.t < 90, 75, np.where(late, 430 if hot else 400, 610)),
            clock=np.where(late & hot, 1200, 1950),
            temp=np.where(late & hot, 91, 62),
            throttle={"swThermal": np.where(late & hot, 0.6, 0.0)},
        )
    run.host("node0", 12)
    run.steps(90, run.duration_s, 3.0, slow=lambda at: 1.6 if at > 30 * MINUTE else 1.0)
    return run
