"""Workloads on accelerators of many vendors, at odd intervals, with gaps, resets and restarts."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.findings.workloads.workload import GIB, HOUR, MINUTE, Floats, Workload, Workloads, pauses_of

healthy = Workloads()
sick = Workloads()


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


@healthy(4 * HOUR, 30, hosts=4)
def tpu_slice(run: Workload) -> None:
    for host in run.series:
        for index in range(4):
            tpu(run, host, index, load_of(run, 92, 3, 240))
        run.host(host, 12, cpus=112)
    run.steps(240, run.duration_s, 4.2)


@healthy(3 * HOUR, 10)
def tpu_compiles_long(run: Workload) -> None:
    """Compiles for 14 minutes on the host's processors, and again after an hour."""
    again = (HOUR + 14 * MINUTE, HOUR + 21 * MINUTE)
    compiles = (run.t < 14 * MINUTE) | run.between(again)
    for index in range(8):
        tpu(run, "node0", index, np.where(compiles, 0.0, run.busy(88, 3)))
    run.host("node0", np.where(compiles, 35, 8), cpus=96)
    run.steps(14 * MINUTE, run.duration_s, 2.0, every=10, pauses=[again])


@healthy(5 * HOUR, 15)
def tpu_evaluates_unmarked(run: Workload) -> None:
    pauses = pauses_of(30 * MINUTE, 4 * MINUTE, run.duration_s)
    for index in range(4):
        tpu(run, "node0", index, np.where(run.between(*pauses), run.busy(20, 15), load_of(run, 90, 2)))
    run.host("node0", 15)
    run.steps(90, run.duration_s, 1.0, every=20, pauses=pauses)


@healthy(8 * HOUR, 10)
def tpu_logs_rarely(run: Workload) -> None:
    for index in range(4):
        tpu(run, "node0", index, load_of(run, 95, 1))
    run.host("node0", 6)
    run.steps(120, run.duration_s, 6.0, every=100)


@healthy(3 * HOUR, 5)
def neuron_cores(run: Workload) -> None:
    for core in range(32):
        neuron(run, "node0", core, load_of(run, 84, 6, 300))
    run.host("node0", 9, cpus=128)
    run.steps(300, run.duration_s, 3.0)


@healthy(2 * HOUR, 10)
def ipu_changed_values_only(run: Workload) -> None:
    for index in range(4):
        ipu(run, "node0", index, load_of(run, 76, 4, 400))
    run.host("node0", 18)
    run.steps(400, run.duration_s, 2.0)


@healthy(6 * HOUR, 10)
def gaudi_node(run: Workload) -> None:
    for index in range(8):
        card(run, "node0", index, load_of(run, 93, 3, 500), "gaudi", used=97.8)
    run.host("node0", 11, cpus=160)
    run.steps(500, run.duration_s, 1.7, every=10)


@healthy(3 * HOUR, 2)
def amd_clock_follows_power(run: Workload) -> None:
    """At its power limit the clock of an MI300X varies by a third, by choice of its firmware."""
    for index in range(8):
        clock = np.clip(
            1650 + 250 * np.sin(run.t / 47 + index) + run.noise.normal(0, 60, len(run.t)), 1300, 2100
        )
        card(run, "node0", index, load_of(run, 98, 1), "amd", tdp=750, watts=742, clock=clock, used=94)
        run.machine["node0"]["gpu_amd"][-1]["max_clock_mhz"] = 2100
    run.host("node0", 14)
    run.steps(90, run.duration_s, 2.5)


@healthy(0.6 * HOUR, 0.5)
def apple_memory_full(run: Workload) -> None:
    apple(run, load_of(run, 96, 2, 20), memory=np.where(run.t > 20, 93.0, 30.0))
    run.host("node0", 22, cpus=16, mem=np.where(run.t > 20, 91.0, 55.0), swap=2.1 * GIB)
    run.steps(20, run.duration_s, 0.7)


@healthy(2 * HOUR, 5)
def apple_notebook(run: Workload) -> None:
    """Cells that run some minutes each, by hand."""
    works = (run.t % 700) < 260
    apple(run, np.where(works, run.busy(80, 10), 2.0))
    run.host("node0", np.where(works, 20, 1), cpus=12)


@healthy(2 * HOUR, 2)
def jetson_module(run: Workload) -> None:
    card(run, "node0", 0, load_of(run, 97, 2), "jetson", tdp=60, used=88, memory_gib=64)
    run.host("node0", 30, cpus=12, mem=88)
    run.machine["node0"]["accelerator_jetson"] = [{"index": 0, "name": "Jetson AGX Orin", "visible": True}]
    run.steps(90, run.duration_s, 0.9)


@healthy(4 * HOUR, 5)
def ascend_node(run: Workload) -> None:
    for index in range(8):
        card(run, "node0", index, load_of(run, 88, 5, 200), "ascend", tdp=400, used=92, memory_gib=64)
    run.host("node0", 9, cpus=192)
    run.steps(200, run.duration_s, 4.0)


@healthy(5 * HOUR, 15)
def intel_awake_all_night(run: Workload) -> None:
    """The driver counts the time in which the GPU was awake: 100 % tells nothing."""
    card(run, "node0", 0, np.full(len(run.t), 100.0), "intel", tdp=190, watts=150, used=70, memory_gib=16)
    run.host("node0", 16, cpus=24)
    run.steps(60, run.duration_s, 1.0, every=30)


@healthy(3 * HOUR, 5)
def tenstorrent_without_load(run: Workload) -> None:
    for index in range(4):
        card(run, "node0", index, load_of(run, 90), "tenstorrent", tdp=300)
        for key in ("gpu", "memoryAllocated", "memoryAllocatedBytes"):
            del run.series["node0"][f"gpu.{index}.{key}"]
    run.host("node0", 10)
    run.steps(90, run.duration_s, 3.0)


@healthy(5 * HOUR, 30, hosts=8)
def sixty_four_with_a_gap(run: Workload) -> None:
    for host in run.series:
        for index in range(8):
            run.gpu(host, index, load_of(run, 97, 1.5, 180), active=load_of(run, 80, 3, 180))
        run.host(host, 12)
    run.drop("node3", 1.5 * HOUR, 1.5 * HOUR + 22 * MINUTE)
    run.drop("node5", 3 * HOUR, 3 * HOUR + 4 * MINUTE)
    run.steps(180, run.duration_s, 7.0)


@healthy(3 * HOUR, 5, hosts=2)
def clock_set_back(run: Workload) -> None:
    """The clock of one host is set back by four minutes."""
    for host in run.series:
        for index in range(4):
            card(run, host, index, load_of(run, 94), "amd", tdp=560)
        run.host(host, 15)
    run.drop("node1", HOUR, HOUR + 4 * MINUTE)
    run.steps(90, run.duration_s, 2.0)


@healthy(6 * HOUR, 10)
def restarted_twice(run: Workload) -> None:
    """Preempted twice for 9 minutes, resumes at a checkpoint; its counters begin again."""
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


@healthy(2 * HOUR, 5)
def driver_reloaded(run: Workload) -> None:
    for index in range(2):
        run.gpu("node0", index, load_of(run, 96), throttle={"swThermal": 0.0})
        for reason in ("swThermal", "hwThermal", "swPowerCap"):
            column = run.series["node0"][f"gpu.{index}.throttle.{reason}Seconds"]
            column[:] = np.where(run.t < HOUR, 173_453.0 + column, column)
    run.host("node0", 20)
    run.steps(90, run.duration_s, 1.0)


@healthy(0.4 * HOUR, 0.5)
def half_second_samples(run: Workload) -> None:
    run.gpu("node0", 0, load_of(run, 90, 9, 15), active=load_of(run, 60, 10, 15), tdp=450, top=2520)
    run.host("node0", 24, cpus=16)
    run.steps(15, run.duration_s, 0.08, every=10)


@healthy(24 * HOUR, 30)
def a_day_with_evaluations(run: Workload) -> None:
    pauses = pauses_of(HOUR, 5 * MINUTE, run.duration_s)
    for index in range(8):
        load = np.where(run.between(*pauses), run.busy(45, 20), load_of(run, 98, 1))
        card(run, "node0", index, load, "gaudi", used=95)
    run.host("node0", 12)
    run.steps(120, run.duration_s, 5.0, every=4, pauses=pauses)


@healthy(3 * HOUR, 10)
def downloads_then_trains(run: Workload) -> None:
    loads = run.t < 15 * MINUTE
    for index in range(4):
        card(run, "node0", index, load_of(run, 91, 3, 15 * MINUTE), "ascend")
    run.host("node0", np.where(loads, 20, 12), recv=np.where(loads, 400, 1), write=np.where(loads, 400, 1))
    run.steps(15 * MINUTE, run.duration_s, 2.0)


@healthy(2 * HOUR, 5)
def processors_only(run: Workload) -> None:
    run.host("node0", 92, cpus=16, cpu_psi=8)
    run.steps(20, run.duration_s, 1.5, every=4)


@healthy(9 * HOUR, 15)
def memory_reaches_a_plateau(run: Workload) -> None:
    for index in range(4):
        card(run, "node0", index, load_of(run, 90), "amd")
    grown = 1 - np.exp(-run.t / (1.1 * HOUR))
    run.host("node0", 14, mem=20 + 45 * grown, rss=60_000 + 200_000 * grown)
    run.steps(90, run.duration_s, 2.0)


@healthy(3 * HOUR, 10, hosts=2)
def stages_of_a_pipeline(run: Workload) -> None:
    for number, host in enumerate(run.series):
        for index in range(4):
            tpu(run, host, index, load_of(run, 72 + 3 * (number * 4 + index), 2, 200))
        run.host(host, 9)
    run.steps(200, run.duration_s, 5.0)


@healthy(3 * HOUR, 10)
def experts_unequal(run: Workload) -> None:
    for index in range(8):
        drift = 5 * np.sin(run.t / 900 + index * 1.7)
        load = load_of(run, 86, 4) + np.where(run.t > 120, drift, 0)
        card(run, "node0", index, np.clip(load, 0, 100), "amd")
    run.host("node0", 12)
    run.steps(90, run.duration_s, 2.2)


@healthy(2 * HOUR, 10)
def likelihood_below_zero(run: Workload) -> None:
    ipu(run, "node0", 0, load_of(run, 70))
    run.host("node0", 20)
    run.steps(
        90, run.duration_s, 1.0, loss=lambda share: 400 - 2600 * (1 - np.exp(-3 * share)), loss_spread=0.01
    )


@healthy(2 * HOUR, 10)
def scaler_skips_first_steps(run: Workload) -> None:
    for index in range(2):
        card(run, "node0", index, load_of(run, 92), "gaudi")
    run.host("node0", 20)
    run.steps(90, run.duration_s, 2.0)
    run.logged["train/loss"][2][:4] = np.nan
    run.logged["train/loss"][2][900] = np.inf


@healthy(6 * HOUR, 30)
def disk_nearly_full_for_long(run: Workload) -> None:
    for index in range(4):
        tpu(run, "node0", index, load_of(run, 90))
    run.host("node0", 12, disk=96.2 + 0.02 * run.t / HOUR, swap=5 * GIB)
    run.steps(90, run.duration_s, 2.0)


@healthy(8 * HOUR, 15)
def logs_validation_only(run: Workload) -> None:
    """Logs one row an epoch of 35 minutes."""
    pauses = pauses_of(35 * MINUTE, 3 * MINUTE, run.duration_s)
    for index in range(2):
        neuron(run, "node0", index, np.where(run.between(*pauses), 30.0, load_of(run, 89)))
    run.host("node0", 14)
    run.steps(60, run.duration_s, 38 * MINUTE, spread=0.005, name="val_loss")


@healthy(4 * HOUR, 1)
def biren_between_serving(run: Workload) -> None:
    """Two cards that serve requests: load comes and goes in seconds, no steps."""
    for index in range(2):
        bursts = np.convolve(run.noise.random(len(run.t)) > 0.9, np.ones(8), "same") > 0
        card(run, "node0", index, np.where(bursts, run.busy(85, 8), 0.0), "biren", tdp=300)
    run.host("node0", 10)


# ---- sick


@healthy(3 * HOUR, 10)
def curriculum_in_one_step(run: Workload) -> None:
    """Harder data from half on: the loss rises at once, and stays there."""
    card(run, "node0", 0, load_of(run, 92), "amd")
    run.host("node0", 20)
    run.steps(90, run.duration_s, 3.0, loss=lambda share: 1.2 + 2 * np.exp(-8 * share) + 1.0 * (share > 0.5))


@healthy(3 * HOUR, 10)
def curriculum_that_is_marked(run: Workload) -> None:
    """A context four times as long from half on: the loss is above where it began, and was told to be."""
    card(run, "node0", 0, load_of(run, 92), "gaudi")
    run.host("node0", 20)
    run.steps(90, run.duration_s, 3.0, loss=lambda share: np.where(share < 0.5, 1 + np.exp(-9 * share), 2.6))
    run.mark(90 + (run.duration_s - 90) / 2, "stage 2: context 32k")


@sick(3 * HOUR, 10, expected=["loss_diverged"], from_s=1.5 * HOUR)
def diverges_to_where_it_began(run: Workload) -> None:
    card(run, "node0", 0, load_of(run, 92), "amd")
    run.host("node0", 20)
    run.steps(90, run.duration_s, 3.0, loss=lambda share: 1.2 + 2 * np.exp(-8 * share) + 1.8 * (share > 0.5))


@sick(3 * HOUR, 15, expected=["input_bound_cpu"])
def tpu_waits_for_processors(run: Workload) -> None:
    for index in range(8):
        tpu(run, "node0", index, load_of(run, 42, 9, 200))
    run.host("node0", load_of(run, 98, 1, 150), cpus=96, cpu_psi=np.where(run.t > 150, 65, 1))
    run.steps(200, run.duration_s, 3.0)


@sick(4 * HOUR, 10, hosts=2, expected=["hang"], from_s=2 * HOUR, open=True, not_before_s=2 * HOUR)
def tpu_spins_without_steps(run: Workload) -> None:
    for host in run.series:
        for index in range(4):
            load = np.where(run.t < 2 * HOUR, load_of(run, 91, 3), 100.0)
            tpu(run, host, index, load)
        run.host(host, np.where(run.t < 2 * HOUR, 14, 4))
    run.steps(90, 2 * HOUR, 3.0)


@sick(4 * HOUR, 30, expected=["hang"], allowed=["idle"], from_s=2 * HOUR, goes_on=True)
def tpu_stops_quietly(run: Workload) -> None:
    for index in range(4):
        tpu(run, "node0", index, np.where(run.t < 2 * HOUR, load_of(run, 91, 3), 0.0))
    run.host("node0", np.where(run.t < 2 * HOUR, 14, 0.6))
    run.steps(90, 2 * HOUR, 3.0)


@sick(5 * HOUR, 30, expected=["idle"], from_s=35 * MINUTE)
def tpu_forgotten(run: Workload) -> None:
    for index in range(4):
        tpu(run, "node0", index, np.where(run.t < 35 * MINUTE, load_of(run, 80, 8), 0.0))
    run.host("node0", np.where(run.t < 35 * MINUTE, 10, 0.4))


@sick(3 * HOUR, 10, expected=["idle_devices"], devices=range(16, 32))
def neuron_half_unused(run: Workload) -> None:
    for core in range(32):
        neuron(run, "node0", core, load_of(run, 85, 5, 200) if core < 16 else np.zeros(len(run.t)))
    run.host("node0", 9, cpus=128)
    run.steps(200, run.duration_s, 3.0)


@sick(3 * HOUR, 10, expected=["memory_errors"])
def neuron_memory_errors(run: Workload) -> None:
    for core in range(8):
        neuron(run, "node0", core, load_of(run, 85, 5, 200))
    run.series["node0"]["trn.device.2.mem_ecc_uncorrected"] = np.where(run.t > 1.5 * HOUR, 3.0, 0.0)
    run.host("node0", 9, cpus=128)
    run.steps(200, run.duration_s, 3.0)


@sick(4 * HOUR, 10, hosts=4, expected=["straggler", "input_bound_cpu"])
def neuron_host_behind(run: Workload) -> None:
    """The processors of one of four hosts are busy: its cores come late, the others wait for them."""
    late = run.t > 30 * MINUTE
    for host in run.series:
        slow = host == "node2"
        for core in range(8):
            neuron(run, host, core, np.where(late, run.busy(52 if slow else 54, 6), load_of(run, 90, 3)))
        run.host(host, np.where(late & slow, 97, 14), cpu_psi=np.where(late & slow, 75, 1), cpus=64)
    run.steps(90, run.duration_s, 2.0, slow=lambda at: 1.7 if at > 30 * MINUTE else 1.0)


@sick(3 * HOUR, 10, expected=["idle_tail"], allowed=["hang"], from_s=2 * HOUR)
def ipu_tail(run: Workload) -> None:
    for index in range(4):
        ipu(run, "node0", index, np.where(run.t < 2 * HOUR, load_of(run, 76, 4), 0.0))
    run.host("node0", np.where(run.t < 2 * HOUR, 18, 1.0))
    run.steps(90, 2 * HOUR, 2.0)


@sick(3 * HOUR, 10, expected=["input_bound_disk"])
def gaudi_waits_for_disk(run: Workload) -> None:
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


@sick(3 * HOUR, 10, expected=["slow_start"], allowed=["idle"])
def gaudi_downloads_for_long(run: Workload) -> None:
    for index in range(8):
        card(run, "node0", index, load_of(run, 92, 3, 50 * MINUTE), "gaudi")
    run.host("node0", 6, recv=np.where(run.t < 50 * MINUTE, 120, 1))
    run.steps(50 * MINUTE, run.duration_s, 2.0)


@sick(
    3 * HOUR, 5, expected=["clock_limited", "straggler"], devices=[3], allowed=["straggler", "clock_limited"]
)
def amd_clock_stays_low(run: Workload) -> None:
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


@sick(3 * HOUR, 2, expected=["hang"], from_s=1.5 * HOUR, open=True)
def amd_spins(run: Workload) -> None:
    for index in range(8):
        load = np.where(run.t < 1.5 * HOUR, load_of(run, 95), 100.0)
        card(run, "node0", index, load, "amd", tdp=750, watts=np.where(run.t < 1.5 * HOUR, 600, 160))
        run.put("node0", f"gpu.{index}.busySuspect", np.where(run.t < 1.5 * HOUR, 0.0, 1.0))
    run.host("node0", np.where(run.t < 1.5 * HOUR, 14, 6))
    run.steps(90, 1.5 * HOUR, 2.0)


@sick(
    1.5 * HOUR, 2, expected=["swapping"], allowed=["out_of_memory_near", "memory_growth", "input_bound_disk"]
)
def apple_swaps(run: Workload) -> None:
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


@sick(1 * HOUR, 2, expected=["input_bound_cpu"])
def apple_decodes_slowly(run: Workload) -> None:
    apple(run, load_of(run, 34, 9, 60))
    run.host("node0", load_of(run, 97, 1, 50), cpus=12, cpu_psi=np.where(run.t > 50, 60, 0))
    run.steps(60, run.duration_s, 1.5)


@sick(2 * HOUR, 5, expected=["idle_devices"], devices=[4, 5, 6, 7])
def ascend_half_unused(run: Workload) -> None:
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


@sick(2 * HOUR, 5, expected=["loss_not_finite"])
def ascend_not_finite(run: Workload) -> None:
    card(run, "node0", 0, load_of(run, 88), "ascend")
    run.host("node0", 9)
    run.steps(90, run.duration_s, 3.0)
    values = run.logged["train/loss"][2]
    values[len(values) // 2 :] = np.nan


@sick(6 * HOUR, 30, hosts=8, expected=["straggler"], devices=[5])
def one_of_sixty_four_slow(run: Workload) -> None:
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


@sick(0.6 * HOUR, 0.5, expected=["input_bound_network"])
def network_at_half_a_second(run: Workload) -> None:
    run.gpu("node0", 0, load_of(run, 28, 12, 30), active=load_of(run, 20, 8, 30))
    run.host("node0", 9, recv=np.where(run.t > 20, 118, 0.5))
    run.steps(30, run.duration_s, 2.0)


@sick(7 * HOUR, 30, expected=["idle"], from_s=2 * HOUR)
def wandb_keys_idle(run: Workload) -> None:
    for index in range(4):
        run.gpu("node0", index, np.where(run.t < 2 * HOUR, load_of(run, 88, 5), 0.0), keys="wandb", tdp=300)
    run.host("node0", np.where(run.t < 2 * HOUR, 30, 0.5), keys="wandb")


@sick(6 * HOUR, 30, hosts=8, expected=["checkpoint_stalls"])
def pauses_for_checkpoints(run: Workload) -> None:
    pauses = pauses_of(17 * MINUTE, 3 * MINUTE, run.duration_s)
    saves = run.between(*pauses)
    for host in run.series:
        for index in range(8):
            run.gpu(host, index, np.where(saves, 0, load_of(run, 97, 1)))
        run.host(host, 12, write=np.where(saves, 700, 1), io_psi=np.where(saves, 40, 0))
    run.steps(90, run.duration_s, 6.0, pauses=pauses)


@sick(
    7 * HOUR,
    15,
    expected=["memory_growth", "out_of_memory_near"],
    allowed=["memory_growth", "out_of_memory_near"],
)
def leak_ends_in_a_restart(run: Workload) -> None:
    """Memory grows until the job is killed and started again, thrice."""
    cycle = 2.3 * HOUR
    grown = (run.t % cycle) / cycle
    for index in range(4):
        card(run, "node0", index, np.where(grown < 0.02, 0, run.busy(92, 2)), "gaudi")
    run.host("node0", 12, mem=20 + 78 * grown, rss=60_000 + 400_000 * grown)
    for number in range(4):
        run.steps(
            number * cycle + 170, min((number + 1) * cycle - 5, run.duration_s), 3.0, first=number * 1500
        )


@sick(1.5 * HOUR, 5, expected=["cpu_limit"])
def container_throttled_without_devices(run: Workload) -> None:
    run.host("node0", 97, cpus=4, total=22)
    run.counter("node0", "proc.cpu.throttledSeconds", 2.4)
    run.put("node0", "proc.cpu.throttledPercent", 92)
    run.steps(30, run.duration_s, 2.0)


@sick(2 * HOUR, 5, expected=["noisy_neighbour"], from_s=30 * MINUTE)
def neighbours_without_devices(run: Workload) -> None:
    """Others take the processors after half an hour: steps take twice as long."""
    late = run.t > 30 * MINUTE
    run.host(
        "node0", np.where(late, 33, 66), cpus=16, total=np.where(late, 99, 69), cpu_psi=np.where(late, 60, 3)
    )
    run.steps(30, run.duration_s, 2.0, slow=lambda at: 2.0 if at > 30 * MINUTE else 1.0)


@sick(6 * HOUR, 30, expected=["disk_full_soon"], goes_on=True)
def disk_fills_in_hours(run: Workload) -> None:
    for index in range(4):
        tpu(run, "node0", index, load_of(run, 90))
    run.host("node0", 12, disk=np.clip(50 + 7.2 * run.t / HOUR, 0, 100))
    run.steps(90, run.duration_s, 2.0)


@sick(3 * HOUR, 10, expected=["loss_diverged"], from_s=1.5 * HOUR)
def perplexity_explodes(run: Workload) -> None:
    for index in range(2):
        card(run, "node0", index, load_of(run, 92), "amd")
    run.host("node0", 20)
    run.steps(
        90,
        run.duration_s,
        2.0,
        loss=lambda share: 2 + 3 * np.exp(-5 * share) + np.where(share > 0.5, 60 * (share - 0.5), 0),
    )


@sick(4 * HOUR, 15, expected=["idle_tail"], allowed=["idle"], from_s=2.5 * HOUR)
def tpu_uploads_at_the_end(run: Workload) -> None:
    for index in range(8):
        tpu(run, "node0", index, np.where(run.t < 2.5 * HOUR, load_of(run, 91), 0.0))
    run.host("node0", np.where(run.t < 2.5 * HOUR, 14, 3), sent=np.where(run.t < 2.5 * HOUR, 1, 30))
    run.steps(90, 2.5 * HOUR, 3.0)


@sick(2 * HOUR, 10, expected=["pcie_degraded"], allowed=["straggler"], devices=[2])
def narrow_link(run: Workload) -> None:
    for index in range(8):
        run.gpu("node0", index, load_of(run, 92), active=load_of(run, 70))
    run.put("node0", "gpu.2.pcieLinkWidth", 4)
    run.host("node0", 12)
    run.steps(90, run.duration_s, 2.0)


@sick(3 * HOUR, 5, expected=["idle", "slow_start"], allowed=["idle", "slow_start", "idle_devices"])
def cambricon_all_idle_from_the_start(run: Workload) -> None:
    for index in range(4):
        card(run, "node0", index, np.zeros(len(run.t)), "cambricon", tdp=350, used=2.0)
    run.host("node0", 3)


@sick(4 * HOUR, 20, expected=["hang"], open=True, from_s=2 * HOUR)
def gaudi_stops_after_a_gap(run: Workload) -> None:
    """Nothing was measured when it stopped; then the cards spin at low power."""
    for index in range(8):
        load = np.where(run.t < 2 * HOUR, load_of(run, 93), 100.0)
        card(run, "node0", index, load, "gaudi", watts=np.where(run.t < 2 * HOUR, 480, 170))
    run.host("node0", np.where(run.t < 2 * HOUR, 12, 5))
    run.drop("node0", 1.9 * HOUR, 2.2 * HOUR)
    run.steps(90, 2 * HOUR, 2.0)


@sick(3 * HOUR, 10, hosts=2, expected=["hang"], open=True, from_s=1.5 * HOUR)
def two_clocks_one_hang(run: Workload) -> None:
    """The clock of one host is two minutes ahead; both stop."""
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


@sick(2 * HOUR, 5, expected=["noisy_neighbour"], from_s=40 * MINUTE)
def neighbours_on_its_processors(run: Workload) -> None:
    """It may use 4 of 64 processors (taskset), and others use the same ones; the rest of the host is free."""
    late = run.t > 40 * MINUTE
    run.host("node0", np.where(late, 45, 90), cpus=4, total=12, cpu_psi=np.where(late, 60, 4))
    run.machine["node0"]["cpu"]["logical_cores"] = 64
    run.put("node0", "cpu.ofAllowed", np.where(late, 99.0, 92.0), 0.5)
    run.steps(30, run.duration_s, 2.0, slow=lambda at: 1.9 if at > 40 * MINUTE else 1.0)


@sick(2 * HOUR, 5, expected=["noisy_neighbour"], from_s=40 * MINUTE)
def neighbours_beside_a_quota(run: Workload) -> None:
    """A container of 4 processors on a host of 16, of which others take all that there are."""
    late = run.t > 40 * MINUTE
    run.host(
        "node0", np.where(late, 60, 96), cpus=4, total=np.where(late, 99, 40), cpu_psi=np.where(late, 60, 4)
    )
    run.machine["node0"]["cpu"]["logical_cores"] = 16
    run.put("node0", "cgroup.cpu.limit", 4)
    run.steps(30, run.duration_s, 2.0, slow=lambda at: 1.6 if at > 40 * MINUTE else 1.0)


@healthy(2 * HOUR, 5)
def neighbours_on_other_processors(run: Workload) -> None:
    """It uses its 4 of 64 processors itself; others use the rest."""
    run.host("node0", 96, cpus=4, total=np.where(run.t > HOUR, 97, 30), cpu_psi=9)
    run.machine["node0"]["cpu"]["logical_cores"] = 64
    run.put("node0", "cpu.ofAllowed", 97, 0.5)
    run.steps(30, run.duration_s, 2.0)


@healthy(2 * HOUR, 5)
def neighbours_do_no_harm(run: Workload) -> None:
    """Others use all that is left, and the steps take as long as before."""
    late = run.t > HOUR
    run.host("node0", 50, cpus=16, total=np.where(late, 99, 53), cpu_psi=np.where(late, 25, 2))
    run.steps(30, run.duration_s, 2.0)


@sick(9 * HOUR, 20, expected=["checkpoint_stalls"])
def checkpoints_stop_the_second_stage(run: Workload) -> None:
    """Short sequences first, at half the load; then long ones, and checkpoints to a slow file system."""
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


@healthy(9 * HOUR, 20)
def second_stage_without_stalls(run: Workload) -> None:
    """Half the load until noon with many writes at times, then all of it: none of that is a checkpoint."""
    writes = (run.t % (20 * MINUTE) < 100) & (run.t < 5 * HOUR)
    for index in range(8):
        card(run, "node0", index, np.where(run.t < 5 * HOUR, load_of(run, 46, 5), run.busy(96, 2)), "gaudi")
    run.host("node0", 12, write=np.where(writes, 400, 1))
    run.steps(90, run.duration_s, 5.0)


@sick(3 * HOUR, 10, expected=["thermal_throttling"], allowed=["straggler"], devices=[2])
def hot_card_holds_up_the_others(run: Workload) -> None:
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
