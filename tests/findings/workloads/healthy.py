"""Workloads with which nothing is wrong, though a naive rule would accuse them."""

from __future__ import annotations

import numpy as np

from tests.findings.workloads.workload import GIB, HOUR, MINUTE, Floats, Workload, Workloads, pauses_of

healthy = Workloads()


@healthy(12 * HOUR, 10)
def llm_pretrain_full(run: Workload) -> None:
    pauses = pauses_of(30 * MINUTE, 22, run.duration_s)
    inside = run.between(*pauses)
    for index in range(8):
        run.gpu(
            "node0",
            index,
            np.where(
                run.t < 4 * MINUTE, 0, np.where(inside, run.noise.uniform(0, 40, len(run.t)), run.busy(98, 1))
            ),
            watts=np.where(run.t < 4 * MINUTE, 75, np.where(inside, 200, 688)),
            throttle={"swPowerCap": np.where(inside, 0, 0.97)},
            used=97.2,
            clock=np.round(run.noise.normal(1530, 40, len(run.t)) / 15) * 15,
            active=np.where(inside, 10, 86),
            tensor=np.where(inside, 0, 44),
            nvlink=1e11,
        )
    run.host(
        "node0",
        14,
        mem=np.clip(18 + run.t / HOUR * 8, 0, 34),
        rss=180_000 + 20_000 * (1 - np.exp(-run.t / 1500)),
        write=np.where(inside, 2400, 0.5),
    )
    run.steps(4 * MINUTE, run.duration_s, 5.5, pauses=pauses)
    for begin, _ in pauses:
        run.mark(begin + 21, "checkpoint")


@healthy(6 * HOUR, 15)
def resnet_wandb_val_unmarked(run: Workload) -> None:
    pauses = pauses_of(9 * MINUTE, 45, run.duration_s)
    validating = run.between(*pauses)
    run.gpu("node0", 0, np.where(validating, run.busy(55, 25), run.busy(93, 6)), tdp=300, keys="wandb")
    run.host("node0", np.where(validating, 70, 58), keys="wandb", cpus=16)
    run.steps(40, run.duration_s, 0.35, every=50, pauses=pauses)


@healthy(8 * HOUR, 10)
def detection_cpu_eval_unmarked(run: Workload) -> None:
    """COCO evaluation on one thread: six minutes at 0 % after each 45-minute epoch, no marks."""
    pauses = pauses_of(45 * MINUTE, 6 * MINUTE, run.duration_s)
    validating = run.between(*pauses)
    for index in range(4):
        run.gpu("node0", index, np.where(validating, 0, run.busy(92, 5)))
    run.host("node0", np.where(validating, 1.1, 40))
    run.steps(2 * MINUTE, run.duration_s, 0.8, every=25, pauses=pauses)


@healthy(6 * HOUR, 10)
def validation_marked_long(run: Workload) -> None:
    pauses = pauses_of(60 * MINUTE, 9 * MINUTE, run.duration_s)
    validating = run.between(*pauses)
    for index in range(2):
        run.gpu("node0", index, np.where(validating, run.busy(33, 14), run.busy(95, 3)))
    run.host("node0", np.where(validating, 95, 45), cpus=32, cpu_psi=np.where(validating, 50, 2))
    run.steps(1 * MINUTE, run.duration_s, 0.8, every=10, pauses=pauses)
    for begin, end in pauses:
        run.mark(begin, "validation begins")
        run.mark(end, "validation ends")


@healthy(5 * HOUR, 15)
def transformers_eval_end_marks_only(run: Workload) -> None:
    pauses = pauses_of(50 * MINUTE, 7 * MINUTE, run.duration_s)
    validating = run.between(*pauses)
    run.gpu("node0", 0, np.where(validating, run.busy(50, 20), run.busy(97, 2)), keys="wandb", tdp=400)
    run.host("node0", np.where(validating, 20, 12), keys="wandb")
    run.steps(3 * MINUTE, run.duration_s, 1.4, every=10, pauses=pauses)
    for _, end in pauses:
        run.mark(end, "evaluation ends")
        run.mark(end + 1, "checkpoint")


@healthy(5 * HOUR, 10)
def long_eval_at_end(run: Workload) -> None:
    """MMLU and friends after the last step: 55 minutes at 60-95 %, no rows, no marks."""
    evaluating = run.t > 245 * MINUTE
    for index in range(8):
        run.gpu("node0", index, np.where(evaluating, run.busy(78, 14), run.busy(97, 2)))
    run.host("node0", np.where(evaluating, 10, 15))
    run.steps(3 * MINUTE, 245 * MINUTE, 3)


@healthy(8 * HOUR, 15, hosts=2)
def long_steps_16min(run: Workload) -> None:
    for number in range(2):
        for index in range(8):
            run.gpu(f"node{number}", index, run.busy(99, 1), watts=655, nvlink=9e10)
        run.host(f"node{number}", 9)
    run.steps(10 * MINUTE, run.duration_s, 16 * MINUTE, spread=0.01)


@healthy(6 * HOUR, 10)
def first_epoch_logged_per_epoch_only(run: Workload) -> None:
    """Keras logs a row an epoch: 28 minutes each, the third takes 47 as the cluster's filer is slow."""
    run.gpu("node0", 0, run.busy(90, 6), tdp=350)
    run.host("node0", 30, cpus=32)
    times = np.array([28, 56, 103, 131, 159, 187, 215, 243, 271, 299, 327, 355]) * MINUTE
    run.log("loss", times, np.arange(1, 13), np.linspace(2, 0.6, 12))
    run.log("val_loss", times, np.arange(1, 13), np.linspace(2.1, 0.9, 12))


@healthy(4 * HOUR, 10)
def compile_15min(run: Workload) -> None:
    inside = run.t < 15 * MINUTE
    for index in range(8):
        run.gpu(
            "node0",
            index,
            np.where(inside, run.busy(4, 5), run.busy(97, 1)),
            used=np.where(inside, 30, 88),
            watts=np.where(inside, 118, 640),
        )
    run.host("node0", np.where(inside, run.busy(55, 10), 11))
    run.steps(15 * MINUTE, run.duration_s, 2, every=2)


@healthy(6 * HOUR, 15, hosts=4)
def load_checkpoint_18min(run: Workload) -> None:
    inside = run.t < 18 * MINUTE
    for number in range(4):
        for index in range(8):
            run.gpu(
                f"node{number}",
                index,
                np.where(inside, 0, run.busy(97, 1)),
                used=np.where(inside, np.clip(run.t / (18 * MINUTE) * 70, 1, 70), 88),
                keys="dcgm",
            )
        run.host(
            f"node{number}",
            np.where(inside, 4, 12),
            recv=np.where(inside, 1100, 2),
            sent=np.where(inside, 10, 2),
        )
    run.steps(18.2 * MINUTE, run.duration_s, 6)


@healthy(3 * HOUR, 15)
def dataset_download_first(run: Workload) -> None:
    inside = run.t < 12 * MINUTE
    run.gpu("node0", 0, np.where(inside, 0, run.busy(92, 5)), keys="wandb", used=np.where(inside, 0.4, 60))
    run.host(
        "node0",
        np.where(inside, 15, 40),
        keys="wandb",
        recv=np.where(inside, 930, 0.2),
        disk=np.where(inside, 40 + run.t / (12 * MINUTE) * 30, 70),
    )
    run.steps(12.5 * MINUTE, run.duration_s, 0.5, every=50)


@healthy(6 * HOUR, 10)
def gan(run: Workload) -> None:
    run.gpu("node0", 0, run.busy(97, 2))
    run.host("node0", 30, cpus=32)
    run.steps(
        1 * MINUTE,
        run.duration_s,
        0.6,
        every=20,
        name="loss/D",
        loss=lambda progress: np.abs(0.7 + 0.3 * np.sin(40 * progress)),
        loss_spread=0.3,
        extra={
            "loss/G": lambda progress: np.clip(
                1.5
                + 4.5 * progress
                + 1.2 * np.sin(31 * progress + 1)
                + run.noise.normal(0, 0.8, len(progress)),
                0.05,
                20,
            ),
            "loss/path": lambda progress: 0.01 * np.exp(run.noise.normal(0, 1.3, len(progress))),
        },
    )


@healthy(5 * HOUR, 10)
def rl_ppo_losses(run: Workload) -> None:
    generating = (run.t % 70) / 70 < 0.55
    run.gpu("node0", 0, np.where(generating, run.busy(88, 6), run.busy(72, 10)))
    run.host("node0", 48, cpus=32)
    run.steps(
        1 * MINUTE,
        run.duration_s,
        7,
        name="train/policy_loss",
        loss=lambda progress: -0.02 - 0.05 * progress,
        loss_spread=1.5,
        extra={
            "train/value_loss": lambda progress: (
                (0.2 + 40 * progress**2) * np.exp(run.noise.normal(0, 1, len(progress)))
            ),
            "rollout/ep_rew_mean": lambda progress: -200 + 900 * progress,
            "train/entropy_loss": lambda progress: -1.4 + 1.2 * progress,
            "train/loss": lambda progress: (
                (0.1 + 18 * progress**2) * np.exp(run.noise.normal(0, 0.9, len(progress)))
            ),
        },
    )


@healthy(6 * HOUR, 10)
def rlhf_phases(run: Workload) -> None:
    """Generation, weights are moved (15 s at 0 %), training; in turn."""
    phase = (run.t - 4 * MINUTE) % 200
    load = np.where(
        phase < 100, run.busy(96, 3), np.where(phase < 115, 0, np.where(phase < 185, run.busy(94, 4), 2))
    )
    for index in range(8):
        run.gpu(
            "node0",
            index,
            np.where(run.t < 4 * MINUTE, 0, load),
            watts=np.where(
                run.t < 4 * MINUTE, 75, np.where(phase < 100, 380, np.where(phase < 115, 110, 600))
            ),
        )
    run.host("node0", 15)
    run.steps(
        4 * MINUTE,
        run.duration_s,
        200,
        name="actor/pg_loss",
        loss=lambda progress: 0.01 * np.sin(50 * progress),
        loss_spread=1,
    )


@healthy(5 * HOUR, 10)
def rlhf_split_gpus(run: Workload) -> None:
    """GPUs 0-5 train; 6 and 7 serve vLLM: busy in turns, at other power and memory."""
    phase = (run.t % 90) < 60
    for index in range(8):
        grown = index >= 6
        run.gpu(
            "node0",
            index,
            np.where(phase, run.busy(96, 2), run.busy(25, 15))
            if grown
            else np.where(phase, run.busy(80, 9), run.busy(97, 1)),
            watts=np.where(phase, 420, 150) if grown else np.where(phase, 480, 610),
            used=92 if grown else 70,
            clock=1980 if grown else 1740,
        )
    run.host("node0", 15)
    run.steps(4 * MINUTE, run.duration_s, 90)


@healthy(6 * HOUR, 15, hosts=2)
def pipeline_parallel_uneven(run: Workload) -> None:
    """Stages by design uneven: embedding first, head last; power 470-585 W, utilisation 84-97 %."""
    loads = [0.86, 0.93, 0.94, 0.95, 0.95, 0.95, 0.96, 1.04]
    for number in range(2):
        for index in range(8):
            run.gpu(
                f"node{number}",
                index,
                run.busy(93 * loads[index], 2),
                watts=545 * loads[index],
                used=60 + 4 * (7 - index),
                active=run.busy(62 * loads[index], 2),
            )
        run.host(f"node{number}", 12)
    run.steps(4 * MINUTE, run.duration_s, 9)


@healthy(6 * HOUR, 10)
def one_gpu_hotter_slower_8pct(run: Workload) -> None:
    """The card in the worst slot: 5 % lower clock, 10 K hotter, no counter grows."""
    for index in range(8):
        run.gpu(
            "node0",
            index,
            run.busy(98, 1),
            watts=690,
            clock=np.round(run.noise.normal(1470 if index == 5 else 1545, 12, len(run.t)) / 15) * 15,
            temp=79 if index == 5 else 68,
            throttle={"swPowerCap": 0.96},
        )
    run.host("node0", 12)
    run.steps(4 * MINUTE, run.duration_s, 3)


@healthy(6 * HOUR, 10)
def spike_that_recovers(run: Workload) -> None:
    run.gpu("node0", 0, run.busy(97, 2))
    run.host("node0", 12)
    run.steps(
        1 * MINUTE,
        run.duration_s,
        2,
        every=5,
        loss=lambda progress: (
            2.2
            + 5 * np.exp(-12 * progress)
            + 4 * np.exp(-(((progress - 0.55) / 0.004) ** 2))
            + 2.4 * np.exp(-np.clip(progress - 0.8, 0, 9) / 0.015) * (progress > 0.8)
        ),
    )


@healthy(6 * HOUR, 10)
def warm_restarts_and_curriculum(run: Workload) -> None:
    run.gpu("node0", 0, run.busy(97, 2))
    run.host("node0", 12)
    run.steps(
        1 * MINUTE,
        run.duration_s,
        2,
        every=5,
        loss=lambda progress: np.where(
            progress < 0.6,
            0.6 + 1.4 * np.exp(-8 * (progress % 0.2) / 0.2 * 0.5),
            1.9 - 0.6 * (progress - 0.6) / 0.4,
        ),
    )


@healthy(4 * HOUR, 10)
def amp_nan_rows_skipped(run: Workload) -> None:
    run.gpu("node0", 0, run.busy(97, 2))
    run.host("node0", 12)

    def loss(progress: Floats) -> Floats:
        values = 1 + np.exp(-6 * progress)
        values[run.noise.integers(0, len(progress), 7)] = np.nan
        return values

    run.steps(
        1 * MINUTE,
        run.duration_s,
        1,
        every=5,
        loss=loss,
        extra={
            "grad_norm": lambda progress: np.where(run.noise.random(len(progress)) < 0.02, np.inf, 1.0),
            "val/auc": lambda progress: np.full(len(progress), np.nan),
            "best_val_loss": lambda progress: np.where(progress < 0.3, np.inf, 0.8),
        },
    )


@healthy(4 * HOUR, 10)
def val_loss_overfits(run: Workload) -> None:
    run.gpu("node0", 0, run.busy(97, 2))
    run.host("node0", 12)
    run.steps(1 * MINUTE, run.duration_s, 1, every=5, loss=lambda progress: 0.02 + np.exp(-6 * progress))
    run.log(
        "val/loss",
        np.arange(20 * MINUTE, run.duration_s, 20 * MINUTE),
        np.arange(1, 12) * 1200,
        0.9 + 0.09 * (np.arange(11) - 3) ** 2 / 4,
    )


@healthy(5 * HOUR, 10)
def adversarial_aux_losses(run: Workload) -> None:
    """KL annealing: the total loss rises as its weight does."""
    run.gpu("node0", 0, run.busy(97, 2))
    run.host("node0", 12)
    run.steps(
        1 * MINUTE,
        run.duration_s,
        1,
        every=5,
        loss=lambda progress: 100 * np.exp(-9 * progress) + 60 * np.clip(progress / 0.6, 0, 1) + 30,
        extra={"kl": lambda progress: 2 + 30 * progress},
    )


@healthy(8 * HOUR, 15)
def memory_warms_up(run: Workload) -> None:
    grown = 1 - np.exp(-run.t / (45 * MINUTE))
    run.gpu("node0", 0, run.busy(94, 3))
    run.host("node0", 30, mem=14 + 44 * grown, rss=(12 + 40 * grown) / 100 * 512_000)
    run.steps(60, run.duration_s, 1, every=10)


@healthy(8 * HOUR, 10)
def dataset_fills_memory(run: Workload) -> None:
    """A data set is decoded into memory during the first epoch (2 h), linearly, up to 48 %."""
    grown = np.clip(run.t / (2 * HOUR), 0, 1)
    run.gpu("node0", 0, run.busy(94, 3))
    run.host("node0", 30, mem=10 + 38 * grown, rss=(8 + 38 * grown) / 100 * 512_000)
    run.steps(60, run.duration_s, 1, every=10)


@healthy(8 * HOUR, 15)
def memory_epoch_sawtooth(run: Workload) -> None:
    slow = (run.t / (55 * MINUTE)) % 1
    run.gpu("node0", 0, run.busy(94, 3))
    run.host("node0", 30, mem=22 + 45 * slow, rss=(20 + 45 * slow) / 100 * 256_000)
    run.steps(60, run.duration_s, 1, every=10)


@healthy(4 * HOUR, 10)
def page_cache_95_percent(run: Workload) -> None:
    """The container's memory fills with page cache: memory_percent is high, the processes' is not."""
    memory = np.clip(20 + run.t / (50 * MINUTE) * 77, 0, 97)
    run.gpu("node0", 0, run.busy(94, 3))
    run.host("node0", 30, mem=memory, rss=14_000)
    run.put("node0", "cgroup.memory.workingSetMB", 18_000)
    run.put("node0", "cgroup.memory.limitMB", 65_536)
    run.put("node0", "proc.memory.percent", 21)
    run.steps(60, run.duration_s, 1, every=10)


@healthy(8 * HOUR, 15)
def disk_full_squashfs_and_rotation(run: Workload) -> None:
    run.gpu("node0", 0, run.busy(94, 3))
    run.host("node0", 30, disk=88 + 4 * ((run.t / (50 * MINUTE)) % 1))
    run.put("node0", "disk./snap/core.usagePercent", 100)
    run.put("node0", "disk./mnt/data.usagePercent", 96.4)
    run.steps(60, run.duration_s, 1, every=10)


@healthy(6 * HOUR, 15)
def disk_fills_then_stops(run: Workload) -> None:
    run.gpu("node0", 0, run.busy(94, 3), keys="wandb")
    run.host(
        "node0", 30, keys="wandb", disk=52 + np.clip(run.t / (25 * MINUTE), 0, 1) * 21 + 0.1 * run.t / HOUR
    )
    run.steps(60, run.duration_s, 1, every=10)


@healthy(5 * HOUR, 10)
def throttle_history_and_reset(run: Workload) -> None:
    for index in range(4):
        run.gpu("node0", index, run.busy(96, 2))
        for key in ("swThermal", "hwThermal", "hwSlowdown"):
            run.put(
                "node0",
                f"gpu.{index}.throttle.{key}Seconds",
                np.where(run.t < 2 * HOUR, 81_234.0, np.where(run.t < 2.01 * HOUR, 0, 3.0)),
            )
        run.put("node0", f"gpu.{index}.unCorrectedMemoryErrors", 12)
        run.put("node0", f"gpu.{index}.correctedMemoryErrors", np.floor(run.t / 900))
        run.put("node0", f"gpu.{index}.remappedRowsCorrectable", 2)
    run.host("node0", 12)
    run.steps(60, run.duration_s, 1, every=10)


@healthy(5 * HOUR, 5)
def gb10_unified(run: Workload) -> None:
    run.machine["node0"]["gpu_nvidia"] = [
        {"index": 0, "name": "NVIDIA GB10", "max_sm_clock_mhz": 3003, "visible": True}
    ]
    run.put("node0", "gpu.0.gpu", run.busy(96, 1))
    run.put("node0", "gpu.0.powerWatts", 62, 2)
    run.put("node0", "gpu.0.smClock", 2400, 30)
    run.put("node0", "gpu.0.temp", 78)
    run.put("node0", "gpu.0.pcieLinkGen", 1)
    run.put("node0", "gpu.0.pcieLinkWidth", 1)
    run.put("node0", "gpu.0.maxPcieLinkGen", 5)
    run.put("node0", "gpu.0.maxPcieLinkWidth", 16)
    run.host("node0", 14, cpus=20, mem=94, rss=30_000)
    run.steps(60, run.duration_s, 1, every=10)


@healthy(3 * HOUR, 3)
def laptop_link_saves_power(run: Workload) -> None:
    pauses = pauses_of(20 * MINUTE, 4 * MINUTE, run.duration_s)
    validating = run.between(*pauses)
    run.gpu(
        "node0",
        0,
        np.where(validating, 0, run.busy(93, 4)),
        tdp=115,
        top=2100,
        clock=np.where(validating, 210, np.round(run.noise.normal(1650, 60, len(run.t)))),
        name="NVIDIA GeForce RTX 3070 Laptop GPU",
        temp=np.where(validating, 60, 83),
        throttle={"swPowerCap": np.where(validating, 0, 0.9)},
    )
    run.put("node0", "gpu.0.pcieLinkGen", np.where(validating, 1, 4))
    run.put("node0", "gpu.0.maxPcieLinkGen", 4)
    run.put("node0", "gpu.0.pcieLinkWidth", 8)
    run.put("node0", "gpu.0.maxPcieLinkWidth", 16)
    run.put("node0", "gpu.0.otherMemoryBytes", 0.6 * GIB)
    run.host("node0", 30, cpus=16)
    run.steps(60, run.duration_s, 1, every=10, pauses=pauses)


@healthy(4 * HOUR, 10, verdicts=["healthy", "unknown"])
def mig_slices_memory_only(run: Workload) -> None:
    run.put("node0", "gpu.0.powerWatts", 210, 5)
    run.put("node0", "gpu.0.temp", 48)
    run.put("node0", "gpu.0.smClock", 1410)
    for slice_index in (1, 2, 5):
        run.put("node0", f"gpu.0.mig.{slice_index}.0.memoryAllocated", 40 + slice_index)
        run.put("node0", f"gpu.0.mig.{slice_index}.0.memoryAllocatedBytes", 8e9)
    run.host("node0", 24)
    run.steps(60, run.duration_s, 1, every=10)


@healthy(12 * HOUR, 30)
def dcgm_only_blanks_and_gaps(run: Workload) -> None:
    """dcgm-exporter every 30 s, no host keys, no rows; GPU blanks and an exporter restarted twice."""
    for index in range(8):
        run.gpu("node0", index, run.busy(95, 4), keys="dcgm", active=run.busy(70, 6))
        run.blank("node0", f"gpu.{index}.gpu", 2 * HOUR, 3 * HOUR)
        run.blank("node0", f"gpu.{index}.smActive", 5 * HOUR, 9 * HOUR)
        run.series["node0"][f"gpu.{index}.energyJoules"][run.t > 7 * HOUR] -= (
            run.series["node0"][f"gpu.{index}.energyJoules"][np.argmax(run.t > 7 * HOUR)] - 5
        )
    run.drop("node0", 4 * HOUR, 4.6 * HOUR)
    run.drop("node0", 10 * HOUR, 10.2 * HOUR)


@healthy(8 * HOUR, 10, hosts=2)
def slurm_requeue(run: Workload) -> None:
    """Preempted for 50 minutes; resumes from the checkpoint 400 steps before; counters begin anew."""
    for number in range(2):
        for index in range(4):
            run.gpu(f"node{number}", index, np.where(run.between((3 * HOUR, 4 * HOUR)), 0, run.busy(96, 2)))
        run.host(f"node{number}", 14)
        for key in ("network.recv", "network.sent", "disk.in", "disk.out", "io.pressureSeconds"):
            slow = run.series[f"node{number}"][key]
            restart = int(np.argmax(run.t > 3.85 * HOUR))
            slow[restart:] -= slow[restart]
        run.drop(f"node{number}", 3 * HOUR, 3.85 * HOUR)
    run.steps(3 * MINUTE, 3 * HOUR, 2, every=5, loss=lambda progress: 1.5 + 3 * np.exp(-5 * progress))
    count = run.last_step()
    run.steps(
        4 * HOUR, run.duration_s, 2, every=5, first=count - 400, loss=lambda progress: 1.55 - 0.3 * progress
    )


@healthy(6 * HOUR, 10, hosts=2)
def clock_jumps(run: Workload) -> None:
    """NTP puts the clock of one host forward by 40 minutes, and back by 20 s on the other."""
    run.t = np.where(run.t > 3 * HOUR, run.t + 40 * MINUTE, run.t)
    run.duration_s += 40 * MINUTE
    for number in range(2):
        for index in range(4):
            run.gpu(f"node{number}", index, run.busy(96, 2))
        run.host(f"node{number}", 14)
    run.steps(3 * MINUTE, 3 * HOUR, 2, every=5)
    count = run.last_step()
    run.steps(
        3 * HOUR + 40 * MINUTE,
        run.duration_s,
        2,
        every=5,
        first=count,
        loss=lambda progress: 1.5 - 0.1 * progress,
    )


@healthy(5 * HOUR, 5)
def monitor_starved_gaps(run: Workload) -> None:
    for index in range(2):
        run.gpu("node0", index, run.busy(95, 3))
    run.host("node0", 40)
    for begin in np.arange(10 * MINUTE, run.duration_s, 17 * MINUTE):
        run.drop("node0", begin, begin + run.noise.uniform(30, 200))
    run.steps(60, run.duration_s, 1, every=10)


@healthy(3 * HOUR, 5)
def xgboost_cpu_only(run: Workload) -> None:
    run.host("node0", run.busy(99, 0.5), cpus=64, cpu_psi=40, mem=52)
    run.steps(
        30, run.duration_s, 12, name="validation_0-logloss", loss=lambda progress: 0.3 + np.exp(-5 * progress)
    )


@healthy(4 * HOUR, 15)
def preprocessing_cpu_only_wandb(run: Workload) -> None:
    run.host("node0", run.busy(70, 20), keys="wandb", cpus=16, read=180, disk=60 + run.t / (4 * HOUR) * 5)


@healthy(6 * HOUR, 30)
def tpu_v5e(run: Workload) -> None:
    inside = run.t < 11 * MINUTE
    for index in range(8):
        run.put("node0", f"tpu.{index}.dutyCycle", np.where(inside, 0, run.busy(97, 2)))
        run.put("node0", f"tpu.{index}.memoryUsage", np.where(inside, 1, 93))
        run.put("node0", f"tpu.{index}.tensorcoreUtilization", np.where(inside, 0, run.busy(38, 2)))
    run.host("node0", 8)
    run.steps(11 * MINUTE, run.duration_s, 14)


@healthy(5 * HOUR, 5)
def trainium_32(run: Workload) -> None:
    inside = run.t < 17 * MINUTE
    for index in range(32):
        run.put(
            "node0",
            f"trn.{index}.neuroncore_utilization",
            np.where(inside, 0, run.busy(81 if index % 2 else 84, 4)),
        )
    for index in range(16):
        run.put("node0", f"trn.device.{index}.power_utilization", 61, 2)
        run.put("node0", f"trn.device.{index}.mem_ecc_uncorrected", 0)
    run.host("node0", np.where(inside, 70, 6))
    run.steps(17 * MINUTE, run.duration_s, 3)


@healthy(5 * HOUR, 10)
def mi300x_full_power(run: Workload) -> None:
    for index in range(8):
        for key, validating, count in (
            ("gpu", 100, 0),
            ("powerWatts", 742, 6),
            ("powerPercent", 98.9, 0.5),
            ("enforcedPowerLimitWatts", 750, 0),
            ("memoryAllocated", 96, 0),
            ("temp", 71, 1),
            ("junctionTemp", 96, 1),
            ("memoryTemp", 88, 1),
            ("smClock", 1650, 60),
            ("busySuspect", 0, 0),
            ("pcieLinkGen", 5, 0),
            ("pcieLinkWidth", 16, 0),
        ):
            run.put("node0", f"gpu.{index}.{key}", validating, count)
    run.machine["node0"]["gpu_amd"] = [
        {"index": index, "name": "AMD Instinct MI300X", "max_sm_clock_mhz": 2100, "visible": True}
        for index in range(8)
    ]
    run.host("node0", 8)
    run.steps(120, run.duration_s, 3)


@healthy(4 * HOUR, 10)
def mi250_secondary_dies(run: Workload) -> None:
    """Two dies a card: power on the first one only."""
    for index in range(8):
        run.put("node0", f"gpu.{index}.gpu", run.busy(97, 2))
        run.put("node0", f"gpu.{index}.memoryAllocated", 81)
        run.put("node0", f"gpu.{index}.temp", 62 + index % 2 * 5)
        if index % 2 == 0:
            run.put("node0", f"gpu.{index}.powerWatts", 480, 10)
            run.put("node0", f"gpu.{index}.enforcedPowerLimitWatts", 560)
            run.put("node0", f"gpu.{index}.powerPercent", 86)
    run.host("node0", 8)
    run.steps(120, run.duration_s, 3)


@healthy(3 * HOUR, 5)
def apple_m2(run: Workload) -> None:
    run.put("node0", "gpu.0.gpu", run.busy(91, 4))
    run.put("node0", "gpu.0.powerWatts", 13.5, 1)
    run.put("node0", "gpu.0.temp", 88, 1)
    run.put("node0", "cpu.pcpu_percent", 30, 5)
    run.put("node0", "memory.used_percent", 91)
    run.host("node0", 25, cpus=10, mem=91, rss=9_000, swap=5 * GIB)
    run.machine["node0"]["gpu_apple"] = [{"index": 0, "name": "Apple M2"}]
    run.steps(60, run.duration_s, 0.8, every=10)


@healthy(5 * HOUR, 10)
def shared_host_own_gpu_only(run: Workload) -> None:
    run.machine["node0"]["gpu_nvidia"] = []
    for index in range(8):
        run.gpu(
            "node0",
            index,
            run.busy(95, 3) if index == 2 else (0 if index in (5, 6) else run.busy(60, 30)),
            own=index == 2,
            used=70 if index != 5 else 0.5,
            throttle={"swThermal": 0.8 if index == 0 else 0},
        )
        run.put("node0", f"gpu.{index}.otherMemoryBytes", 0 if index == 2 else 50 * GIB)
    for grown in run.machine["node0"]["gpu_nvidia"]:
        grown["visible"] = grown["index"] == 2
    run.host("node0", 9, total=72)
    run.steps(60, run.duration_s, 1, every=10)


@healthy(4 * HOUR, 5)
def desktop_user(run: Workload) -> None:
    run.gpu("node0", 0, run.busy(96, 3), tdp=320, top=2100, name="NVIDIA GeForce RTX 3080")
    run.put("node0", "gpu.0.otherMemoryBytes", 0.7 * GIB, 0.05 * GIB)
    run.put("node0", "gpu.0.pcieLinkGen", 3)
    run.put("node0", "gpu.0.maxPcieLinkGen", 4)
    run.put("node0", "gpu.0.pcieLinkWidth", 16)
    run.host("node0", 30, total=np.where(run.noise.random(len(run.t)) < 0.1, 90, 38), cpus=16, swap=2 * GIB)
    run.steps(60, run.duration_s, 1, every=10)


@healthy(180, 15, verdicts=["healthy", "unknown"])
def sweep_trial_3min(run: Workload) -> None:
    run.gpu("node0", 0, np.where(run.t < 30, 0, run.busy(80, 10)), keys="wandb", tdp=300)
    run.host("node0", 40, keys="wandb")
    run.steps(30, 175, 0.2, every=50)


@healthy(10, 1, verdicts=["unknown"])
def ten_seconds(run: Workload) -> None:
    run.gpu("node0", 0, 40)
    run.host("node0", 99)


@healthy(5 * HOUR, 10)
def inference_batches_75(run: Workload) -> None:
    """An offline inference without steps; GPUs at 78 % since batches end unevenly."""
    for index in range(4):
        run.gpu("node0", index, run.busy(81, 9), active=run.busy(55, 8))
    run.host("node0", 12)


@healthy(3 * HOUR, 15)
def small_gpu_work_62(run: Workload) -> None:
    """A small model on a large GPU: 62 %, nothing on the host is busy, and no cause can be seen."""
    run.gpu("node0", 0, run.busy(62, 6), keys="wandb")
    run.host("node0", 9, keys="wandb", cpus=64)
    run.steps(60, run.duration_s, 0.05, every=200)


@healthy(4 * HOUR, 15, hosts=3)
def host_late_and_early(run: Workload) -> None:
    for number in range(3):
        for index in range(4):
            run.gpu(f"node{number}", index, np.where(run.t < 9 * MINUTE, 0, run.busy(96, 2)))
        run.host(f"node{number}", 12)
    run.drop("node1", 0, 6 * MINUTE)
    run.drop("node2", run.duration_s - 4 * MINUTE, 9e9)
    run.steps(9 * MINUTE, run.duration_s, 4)


@healthy(4 * HOUR, 5)
def cpu_host_high_but_gpu_busy(run: Workload) -> None:
    for index in range(4):
        run.gpu("node0", index, run.busy(96, 2))
    run.host("node0", 97, cpus=32, cpu_psi=55, iowait=3, io_psi=35, read=700)
    run.steps(60, run.duration_s, 1, every=10)


@healthy(4 * HOUR, 10)
def quota_throttles_a_bit(run: Workload) -> None:
    run.gpu("node0", 0, run.busy(94, 3))
    run.host("node0", 70, cpus=8)
    run.put("node0", "cpu.ofLimit", 70, 4)
    run.put("node0", "proc.cpu.throttledPercent", 12, 4, 0, 100)
    run.put("node0", "cgroup.cpu.limit", 8)
    run.steps(60, run.duration_s, 1, every=10)


@healthy(4 * HOUR, 10, hosts=4)
def allreduce_heavy_but_fine(run: Workload) -> None:
    for number in range(4):
        for index in range(8):
            run.gpu(f"node{number}", index, run.busy(99, 1), watts=600, active=run.busy(82, 3), nvlink=2e11)
        run.host(f"node{number}", 12)
        for pauses in range(8):
            run.counter(f"node{number}", f"network.ib.mlx5_{pauses}.1.xmitBytes", 30e9, 1e15)
            run.counter(f"node{number}", f"network.ib.mlx5_{pauses}.1.recvBytes", 30e9, 1e15)
    run.steps(3 * MINUTE, run.duration_s, 5)


@healthy(4 * HOUR, 15)
def interactive_bursts(run: Workload) -> None:
    """A notebook: a cell each few minutes, never idle for 15."""
    on = np.zeros(len(run.t), bool)
    begin = 60.0
    while begin < run.duration_s:
        on |= (run.t > begin) & (run.t < begin + run.noise.uniform(60, 300))
        begin += run.noise.uniform(180, 640)
    run.gpu("node0", 0, np.where(on, run.busy(78, 12), 0), keys="wandb", tdp=300)
    run.host("node0", np.where(on, 12, 1), keys="wandb")


@healthy(5 * HOUR, 15, hosts=2)
def spiky_dips_2pct(run: Workload) -> None:
    """One sample in 40 reads 0."""
    for number in range(2):
        for index in range(4):
            run.gpu(
                f"node{number}",
                index,
                np.where(run.noise.random(len(run.t)) < 0.025, 0, run.busy(95, 4)),
                keys="wandb",
            )
        run.host(f"node{number}", 25, keys="wandb")
    run.steps(60, run.duration_s, 1, every=20)


@healthy(6 * HOUR, 10)
def optuna_trials(run: Workload) -> None:
    gap = (run.t % (24 * MINUTE)) > 23 * MINUTE
    run.gpu("node0", 0, np.where(gap, 0, run.busy(90, 5)))
    run.host("node0", 25)
    for begin in np.arange(0, run.duration_s - 1, 24 * MINUTE):
        run.steps(
            begin + 20,
            begin + 23 * MINUTE,
            1,
            every=5,
            loss=lambda progress: 0.3 + 2.4 * np.exp(-6 * progress) + run.noise.choice([0, 0, 0.8]),
        )


@healthy(5 * HOUR, 10)
def kfold(run: Workload) -> None:
    run.gpu("node0", 0, run.busy(92, 4))
    run.host("node0", 25)
    run.steps(
        20, run.duration_s, 1, every=5, loss=lambda progress: 0.2 + 2.0 * np.exp(-9 * ((progress * 5) % 1))
    )


@healthy(4 * HOUR, 10)
def bimodal_task_losses(run: Workload) -> None:
    run.gpu("node0", 0, run.busy(92, 4))
    run.host("node0", 25)
    run.steps(
        20,
        run.duration_s,
        1,
        every=5,
        loss=lambda progress: (
            np.where(run.noise.random(len(progress)) < 0.3, 8.0, 0.4) * (0.5 + np.exp(-4 * progress))
        ),
    )


@healthy(4 * HOUR, 10)
def negative_nll(run: Workload) -> None:
    run.gpu("node0", 0, run.busy(92, 4))
    run.host("node0", 25)
    run.steps(
        20,
        run.duration_s,
        1,
        every=5,
        loss=lambda progress: 3 - 55 * (1 - np.exp(-3 * progress)),
        extra={
            "nll": lambda progress: (
                3 - 55 * (1 - np.exp(-3 * progress)) + run.noise.normal(0, 2, len(progress))
            )
        },
    )


@healthy(4 * HOUR, 10)
def loss_to_zero(run: Workload) -> None:
    run.gpu("node0", 0, run.busy(92, 4))
    run.host("node0", 25)
    run.steps(
        20,
        run.duration_s,
        1,
        every=5,
        loss=lambda progress: (
            np.exp(-25 * progress) * np.exp(run.noise.normal(0, 1.2, len(progress)))
            + 1e-8 * np.exp(run.noise.normal(0, 2, len(progress)))
        ),
    )


@healthy(4 * HOUR, 10)
def finetune_warmup_bump(run: Workload) -> None:
    run.gpu("node0", 0, run.busy(92, 4))
    run.host("node0", 25)
    run.steps(
        20,
        run.duration_s,
        1,
        every=5,
        loss=lambda progress: (
            0.55 + 0.75 * np.clip(progress / 0.06, 0, 1) * np.exp(-np.clip(progress - 0.06, 0, 1) * 7)
        ),
    )


@healthy(6 * HOUR, 10)
def log_rate_changes(run: Workload) -> None:
    for index in range(4):
        run.gpu("node0", index, run.busy(98, 1), watts=640)
    run.host("node0", 12)
    run.steps(60, 12 * MINUTE, 2)
    count = run.last_step()
    times = np.arange(12 * MINUTE, run.duration_s, 33 * MINUTE)[1:]
    run.log("train/loss", times, count + np.arange(1, len(times) + 1) * 990, 2 * np.ones(len(times)))


@healthy(5 * HOUR, 15)
def recompile_7min(run: Workload) -> None:
    """A new shape: XLA compiles for seven minutes once, nothing else happens."""
    pauses = [(2.2 * HOUR, 2.2 * HOUR + 7 * MINUTE)]
    inside = run.between(*pauses)
    for index in range(4):
        run.put("node0", f"tpu.{index}.dutyCycle", np.where(inside, 0, run.busy(96, 2)))
        run.put("node0", f"tpu.{index}.memoryUsage", 70)
    run.host("node0", np.where(inside, 1.6, 9), cpus=96)
    run.steps(4 * MINUTE, run.duration_s, 4, pauses=pauses)


@healthy(4 * HOUR, 15, hosts=5)
def ray_head_without_gpu(run: Workload) -> None:
    for number in range(5):
        for index in range(8 if number else 0):
            run.gpu(f"node{number}", index, run.busy(96, 2), keys="dcgm")
        run.host(f"node{number}", 12 if number else 0.6)
    run.steps(3 * MINUTE, run.duration_s, 3)


@healthy(4 * HOUR, 15, hosts=2)
def mixed_gpu_kinds(run: Workload) -> None:
    """Half A100, half H100 with batches in proportion; other clocks, powers and limits."""
    for index in range(8):
        run.gpu(
            "node0",
            index,
            run.busy(97, 2),
            tdp=400,
            top=1410,
            watts=365,
            clock=1380,
            name="NVIDIA A100-SXM4-80GB",
        )
        run.gpu("node1", index, run.busy(95, 2), tdp=700, top=1980, watts=600, clock=1755)
    run.host("node0", 12)
    run.host("node1", 12)
    run.steps(3 * MINUTE, run.duration_s, 3)


@healthy(3 * HOUR, 10)
def mig_slices_busy(run: Workload) -> None:
    for slice_index in (1, 2):
        run.put("node0", f"gpu.0.mig.{slice_index}.0.smActive", run.busy(80, 4))
        run.put("node0", f"gpu.0.mig.{slice_index}.0.graphicsActive", run.busy(95, 3))
        run.put("node0", f"gpu.0.mig.{slice_index}.0.memoryAllocated", 70)
    run.put("node0", "gpu.0.powerWatts", 300, 4)
    run.put("node0", "gpu.0.smClock", 1410)
    run.host("node0", 10)
    run.steps(60, run.duration_s, 1, every=10)


@healthy(3 * HOUR, 5)
def clock_back_20s(run: Workload) -> None:
    run.gpu("node0", 0, run.busy(95, 2))
    run.host("node0", 12)
    run.steps(60, run.duration_s, 1, every=5)
    run.t = np.where(run.t > 1.5 * HOUR, run.t - 20, run.t)
    run.logged = {
        key: (np.where(times > 1.5 * HOUR, times - 20, times), count, validating)
        for key, (times, count, validating) in run.logged.items()
    }


@healthy(5 * HOUR, 10)
def thermal_two_percent(run: Workload) -> None:
    for index in range(8):
        run.gpu("node0", index, run.busy(97, 2), temp=83, throttle={"swThermal": 0.02, "hwThermal": 0.0})
    run.host("node0", 12)
    run.steps(60, run.duration_s, 1, every=10)


@healthy(4 * HOUR, 10)
def zram_flutter(run: Workload) -> None:
    run.gpu("node0", 0, run.busy(95, 2))
    run.host("node0", 20, mem=70, swap=(1.5 + 0.4 * np.sin(run.t / 900)) * GIB, mem_psi=0.3)
    run.steps(60, run.duration_s, 1, every=10)


@healthy(4 * HOUR, 10)
def iowait_high_gpu_busy(run: Workload) -> None:
    run.gpu("node0", 0, run.busy(95, 2))
    run.host("node0", 20, iowait=35, io_psi=60, read=900)
    run.steps(60, run.duration_s, 1, every=10)


@healthy(4 * HOUR, 10)
def h_two_gpus_inference_uneven(run: Workload) -> None:
    """A stage with a long tail: the last GPU has 20 % less to do, by design, in an inference server."""
    run.gpu("node0", 0, run.busy(92, 5))
    run.gpu("node0", 1, run.busy(72, 6))
    run.host("node0", 10)


@healthy(5 * HOUR, 5)
def async_checkpoint_every_5min(run: Workload) -> None:
    inside = (run.t % 300) < 6
    for index in range(8):
        run.gpu("node0", index, np.where(inside, 30, run.busy(96, 2)))
    writing = (run.t % 300) < 90
    run.host(
        "node0",
        14,
        write=np.where(writing, 1200, 0),
        io_psi=np.where(writing, 35, 1),
        iowait=np.where(writing, 6, 0),
    )
    run.steps(
        60,
        run.duration_s,
        3,
        pauses=[(begin, begin + 6) for begin in np.arange(300, run.duration_s - 10, 300)],
    )
    for begin in np.arange(300, run.duration_s, 300):
        run.mark(begin + 6, "checkpoint")


@healthy(2 * HOUR, 10)
def start_gpu0_12min_low_cpu(run: Workload) -> None:
    inside = run.t < 13 * MINUTE
    for index in range(8):
        run.gpu("node0", index, np.where(inside, 0, run.busy(96, 2)), used=np.where(inside, 0.6, 80))
    run.host("node0", np.where(inside, 1.2, 14), recv=np.where(inside, 300, 1))
    run.steps(13 * MINUTE, run.duration_s, 3)


@healthy(4 * HOUR, 15)
def cpu_rl_only(run: Workload) -> None:
    run.host("node0", run.busy(45, 20), keys="wandb", cpus=32)
    run.steps(60, run.duration_s, 20, name="rollout/ep_rew_mean", loss=lambda progress: -100 + 300 * progress)
