"""Workloads with something wrong."""

from __future__ import annotations

import numpy as np

from tests.findings.workloads.workload import GIB, HOUR, MINUTE, Workload, Workloads

sick = Workloads()


@sick(3 * HOUR, 10, expected=["hang"], not_before_s=110 * MINUTE, from_s=110 * MINUTE, open=True)
def hang_nccl_8gpu_full(run: Workload) -> None:
    hung = run.between((110 * MINUTE, 9e9))
    up = run.t > 6 * MINUTE
    for index in range(8):
        load = np.where(hung, 100, np.where(up, run.busy(97, 2), 0))
        run.gpu(
            "node0",
            index,
            load,
            watts=np.where(hung, 182, np.where(up, 610, 75)),
            active=np.where(hung, 100, np.where(up, 88, 0)),
            tensor=np.where(hung, 0, np.where(up, 40, 0)),
            dram=np.where(hung, 0.1, np.where(up, 38, 0)),
            nvlink=np.where(hung, 0, np.where(up, 9e10, 0)),
        )
    run.host("node0", np.where(hung, 8.3, np.where(up, 22, 5)), read=np.where(hung, 0, 60))
    run.steps(6 * MINUTE, 110 * MINUTE, 2.6, every=4)


@sick(100 * MINUTE, 15, hosts=8, expected=["hang"], not_before_s=58 * MINUTE, from_s=60 * MINUTE, open=True)
def hang_64gpu_no_rows(run: Workload) -> None:
    hung = run.t > 60 * MINUTE
    up = run.t > 8 * MINUTE
    for number in range(8):
        for index in range(8):
            run.gpu(
                f"node{number}",
                index,
                np.where(hung, 100, np.where(up, run.busy(96, 3), 0)),
                watts=np.where(
                    hung, 128 + index, np.where(up, 590 + 20 * run.noise.normal(size=len(run.t)), 72)
                ),
                keys="dcgm",
                nvlink=np.where(hung, 0, 8e10),
            )
        run.host(f"node{number}", np.where(hung, 8.4, np.where(up, 19, 4)))


@sick(4 * HOUR, 15, expected=["hang"], not_before_s=95 * MINUTE, from_s=95 * MINUTE, open=True)
def hang_loader_deadlock_wandb(run: Workload) -> None:
    dead = run.t > 95 * MINUTE
    run.gpu("node0", 0, np.where(dead, 0, run.busy(88, 8)), tdp=400, keys="wandb", used=71)
    run.host("node0", np.where(dead, 0.4, 35), keys="wandb", cpus=32)
    run.steps(2 * MINUTE, 95 * MINUTE, 0.7, every=50)


@sick(5 * HOUR, 10, hosts=4, expected=["hang"], not_before_s=3 * HOUR, from_s=3 * HOUR, state="crashed")
def hang_ended_crashed(run: Workload) -> None:
    dead = run.t > 3 * HOUR
    for number in range(4):
        for index in range(4):
            rank0 = number == 2 and index == 1
            run.gpu(
                f"node{number}",
                index,
                np.where(dead, 0 if rank0 else 100, run.busy(93, 4)),
                tdp=400,
                top=1410,
                watts=np.where(dead, 62 if rank0 else 96, 345),
                name="NVIDIA A100-SXM4-40GB",
            )
        run.host(f"node{number}", np.where(dead, 6, 25), cpus=64)
    run.steps(5 * MINUTE, 3 * HOUR, 11)


@sick(3 * HOUR, 5, expected=["hang"], not_before_s=70 * MINUTE, from_s=70 * MINUTE, open=True)
def hang_cpu_only(run: Workload) -> None:
    dead = run.t > 70 * MINUTE
    run.host("node0", np.where(dead, 0.1, 88), cpus=16)
    run.steps(1 * MINUTE, 70 * MINUTE, 8)


@sick(2.5 * HOUR, 30, hosts=4, expected=["hang"], not_before_s=80 * MINUTE, from_s=80 * MINUTE, open=True)
def hang_tpu(run: Workload) -> None:
    dead = run.t > 80 * MINUTE
    for number in range(4):
        for index in range(4):
            run.put(f"node{number}", f"tpu.{index}.dutyCycle", np.where(dead, 100, run.busy(97, 2)))
            run.put(f"node{number}", f"tpu.{index}.memoryUsage", 82)
            run.put(f"node{number}", f"tpu.{index}.tensorcoreUtilization", np.where(dead, 0, 44))
        run.host(f"node{number}", np.where(dead, 2, 12))
    run.steps(12 * MINUTE, 80 * MINUTE, 6)


def one_slow_clock(run: Workload, host: int, device: int) -> None:
    """Let one device of four hosts with eight each run at a low clock."""
    for number in range(4):
        for index in range(8):
            slow = (number, index) == (host, device)
            run.gpu(
                f"node{number}",
                index,
                run.busy(99, 1),
                keys="dcgm",
                watts=np.where(run.t > 4 * MINUTE, 330 if slow else 560, 70),
                clock=1110 if slow else 1755 + 15 * run.noise.integers(0, 4, len(run.t)),
            )
        run.host(f"node{number}", 20)
    run.steps(4 * MINUTE, run.duration_s, 4)


@sick(3 * HOUR, 15, hosts=4, expected=["clock_limited", "straggler"], devices=[3], named_hosts=["node2"])
def slow_clock_one_of_32(run: Workload) -> None:
    one_slow_clock(run, 2, 3)


@sick(
    6 * HOUR,
    10,
    hosts=2,
    expected=["thermal_throttling", "straggler", "clock_limited"],
    devices=[5],
    not_before_s=3 * HOUR,
    from_s=3 * HOUR,
    to_s=4.5 * HOUR,
)
def slow_clock_late_partial(run: Workload) -> None:
    hot = run.between((3 * HOUR, 4.5 * HOUR))
    for number in range(2):
        for index in range(8):
            slow = number == 1 and index == 5
            run.gpu(
                f"node{number}",
                index,
                run.busy(98, 2),
                watts=np.where(hot & slow, 395, 600),
                clock=np.where(hot & slow, 1230, 1700 + 15 * run.noise.integers(0, 5, len(run.t))),
                temp=np.where(hot & slow, 87, 66 + index),
                throttle={"swThermal": np.where(hot & slow, 0.82, 0)},
            )
        run.host(f"node{number}", 18)
    run.steps(
        3 * MINUTE,
        run.duration_s,
        1.6,
        every=5,
        slow=lambda second: 1.32 if 3 * HOUR < second < 4.5 * HOUR else 1,
    )


@sick(
    3 * HOUR,
    10,
    hosts=8,
    expected=["straggler", "noisy_neighbour"],
    not_before_s=60 * MINUTE,
    from_s=60 * MINUTE,
    named_hosts=["node6"],
)
def straggler_slow_host_cpu(run: Workload) -> None:
    """One host's processors are eaten by somebody; its GPUs work 70 % of what the others spin."""
    bad = run.t > 60 * MINUTE
    for number in range(8):
        slow = number == 6
        for index in range(4):
            run.gpu(
                f"node{number}",
                index,
                np.where(bad & slow, run.busy(58, 8), run.busy(97, 2)),
                tdp=400,
                top=1410,
                watts=np.where(bad, 255 if slow else 262, 350),
            )
        run.host(f"node{number}", 20, total=np.where(bad & slow, 98, 24), cpu_psi=np.where(bad & slow, 70, 2))
    run.steps(5 * MINUTE, run.duration_s, 2, every=5, slow=lambda second: 1.45 if second > 60 * MINUTE else 1)


@sick(6 * HOUR, 15, expected=["idle"], not_before_s=30 * MINUTE, from_s=30 * MINUTE, open=True)
def idle_notebook_wandb(run: Workload) -> None:
    run.gpu("node0", 0, np.where(run.t < 30 * MINUTE, run.busy(60, 25), 0), tdp=300, keys="wandb", used=44)
    run.host("node0", np.where(run.t < 30 * MINUTE, 12, 0.3), keys="wandb", cpus=32)


@sick(2 * HOUR, 15, expected=["idle", "idle_devices"])
def trains_on_cpu_though_gpu_there(run: Workload) -> None:
    run.gpu("node0", 0, 0, tdp=350, keys="wandb", used=0.01)
    run.host("node0", run.busy(92, 3), keys="wandb", cpus=16)
    run.steps(1 * MINUTE, run.duration_s, 9)


@sick(3 * HOUR, 10, expected=["idle_devices"], devices=range(1, 8))
def one_of_eight_used(run: Workload) -> None:
    for index in range(8):
        run.gpu(
            "node0",
            index,
            run.busy(93, 4) if index == 0 else 0,
            used=77 if index == 0 else 0.6,
            own=index == 0,
        )
    run.host("node0", 8)
    run.steps(2 * MINUTE, run.duration_s, 0.5, every=20)


@sick(2 * HOUR, 20, expected=["idle_devices"], devices=[4, 5, 6, 7])
def idle_half_tpu_host(run: Workload) -> None:
    for index in range(8):
        run.put("node0", f"tpu.{index}.dutyCycle", run.busy(96, 3) if index < 4 else 0.0)
        run.put("node0", f"tpu.{index}.memoryUsage", 70 if index < 4 else 0.5)
    run.host("node0", 15)
    run.steps(9 * MINUTE, run.duration_s, 3)


@sick(2 * HOUR, 5, expected=["idle_devices"], devices=range(16, 32))
def idle_trn_cores(run: Workload) -> None:
    for index in range(32):
        run.put("node0", f"trn.{index}.neuroncore_utilization", run.busy(88, 6) if index < 16 else 0.0)
    run.host("node0", 10)
    run.steps(15 * MINUTE, run.duration_s, 2)


@sick(3 * HOUR, 15, hosts=4, expected=["idle_devices"], devices=range(8), named_hosts=["node3"])
def idle_host_of_four(run: Workload) -> None:
    for number in range(4):
        for index in range(8):
            run.gpu(
                f"node{number}",
                index,
                run.busy(94, 4) if number != 3 else 0,
                keys="dcgm",
                used=80 if number != 3 else 0.5,
            )
        run.host(f"node{number}", 15 if number != 3 else 0.5)
    run.steps(4 * MINUTE, run.duration_s, 3)


@sick(
    4 * HOUR,
    10,
    expected=["idle_tail"],
    allowed=["idle"],
    not_before_s=3.05 * HOUR,
    from_s=3 * HOUR,
    verdicts=["idle_tail", "idle"],
)
def tail_upload(run: Workload) -> None:
    end = run.t > 3 * HOUR
    for index in range(4):
        run.gpu("node0", index, np.where(end, 0, run.busy(95, 3)))
    run.host("node0", np.where(end, 1.2, 18), sent=np.where(end, 40, 0.5))
    run.steps(3 * MINUTE, 3 * HOUR, 2, every=5)


@sick(4 * HOUR, 15, expected=["slow_start"], from_s=0, to_s=50 * MINUTE)
def slow_start_tokenising(run: Workload) -> None:
    preparing = run.t < 50 * MINUTE
    for index in range(8):
        run.gpu(
            "node0",
            index,
            np.where(preparing, 0, run.busy(96, 2)),
            keys="wandb",
            used=np.where(preparing, 0.7, 82),
        )
    run.host("node0", np.where(preparing, 8, 14), keys="wandb")
    run.steps(50 * MINUTE, run.duration_s, 3)


@sick(5 * HOUR, 30, hosts=4, expected=["slow_start"], from_s=0, to_s=65 * MINUTE)
def slow_start_xla_compile_tpu(run: Workload) -> None:
    preparing = run.t < 65 * MINUTE
    for number in range(4):
        for index in range(4):
            run.put(f"node{number}", f"tpu.{index}.dutyCycle", np.where(preparing, 0, run.busy(95, 3)))
        run.host(f"node{number}", np.where(preparing, 3, 9))
    run.steps(65 * MINUTE, run.duration_s, 20)


@sick(2 * HOUR, 5, expected=["input_bound_cpu"])
def input_cpu_steady_full(run: Workload) -> None:
    for index in range(4):
        run.gpu("node0", index, run.busy(46, 12), active=run.busy(33, 8))
    run.host("node0", run.busy(96.5, 1.5), cpus=32, threads=210, procs=37, cpu_psi=64)
    run.steps(2 * MINUTE, run.duration_s, 0.6, every=10)


@sick(3 * HOUR, 15, expected=["input_bound_cpu"])
def input_cpu_bursty_wandb(run: Workload) -> None:
    run.gpu(
        "node0",
        0,
        np.where(
            run.noise.random(len(run.t)) < 0.42,
            run.noise.uniform(90, 100, len(run.t)),
            run.noise.uniform(0, 6, len(run.t)),
        ),
        tdp=300,
        keys="wandb",
        used=63,
    )
    run.host("node0", run.busy(97, 2), keys="wandb", cpus=8)
    run.steps(1 * MINUTE, run.duration_s, 0.9, every=50, spread=0.2)


@sick(1 * HOUR, 1, expected=["input_bound_cpu"])
def input_cpu_bursty_1s(run: Workload) -> None:
    computing = (run.t / 5.3) % 1 < 0.35
    run.gpu(
        "node0",
        0,
        np.where(computing, 99, 0),
        tdp=300,
        top=2520,
        name="NVIDIA GeForce RTX 4090",
        watts=np.where(computing, 240, 90),
    )
    run.host("node0", run.busy(93, 3), cpus=12, procs=13, cpu_psi=48)
    run.steps(40, run.duration_s, 5.3)


@sick(8 * HOUR, 10, expected=["input_bound_cpu"], not_before_s=5.9 * HOUR, from_s=6 * HOUR)
def input_cpu_quarter(run: Workload) -> None:
    """Only the last quarter: an augmentation begins with the fine-tuning stage."""
    bad = run.t > 6 * HOUR
    for index in range(8):
        run.gpu("node0", index, np.where(bad, run.busy(41, 14), run.busy(94, 3)))
    run.host("node0", np.where(bad, run.busy(97, 1), 52), cpu_psi=np.where(bad, 60, 3))
    run.steps(3 * MINUTE, run.duration_s, 1, every=10, slow=lambda second: 2.2 if second > 6 * HOUR else 1)


@sick(6 * HOUR, 10, expected=["input_bound_cpu"])
def input_cpu_gradual(run: Workload) -> None:
    loss = np.clip((run.t - 1.5 * HOUR) / (2.5 * HOUR), 0, 1)
    for index in range(4):
        run.gpu("node0", index, np.clip(95 - 50 * loss + run.noise.normal(0, 5, len(run.t)), 0, 100))
    run.host("node0", np.clip(55 + 60 * loss, 0, 98), cpus=48, cpu_psi=3 + 55 * loss)
    run.steps(
        2 * MINUTE,
        run.duration_s,
        1,
        every=10,
        slow=lambda second: 1 + 1.1 * min(max((second - 1.5 * HOUR) / (2.5 * HOUR), 0), 1),
    )


@sick(2 * HOUR, 5, expected=["input_bound_cpu"], allowed=["launch_bound"])
def input_single_process_data_time(run: Workload) -> None:
    """num_workers=0: one thread reads and trains, 63 of 64 processors are free; it logs its wait."""
    run.gpu("node0", 0, run.busy(34, 10), tdp=400)
    run.host("node0", 1.7, cpus=64, threads=30, procs=1)
    run.steps(
        1 * MINUTE,
        run.duration_s,
        0.9,
        every=10,
        extra={"data_time": lambda progress: 0.58 + run.noise.normal(0, 0.03, len(progress))},
    )


@sick(3 * HOUR, 15, hosts=2, expected=["input_bound_cpu"])
def input_cpu_tpu(run: Workload) -> None:
    for number in range(2):
        for index in range(4):
            run.put(f"node{number}", f"tpu.{index}.dutyCycle", run.busy(43, 9))
            run.put(f"node{number}", f"tpu.{index}.memoryUsage", 60)
        run.host(f"node{number}", run.busy(97, 1.5), cpus=112)
    run.steps(8 * MINUTE, run.duration_s, 2)


@sick(2 * HOUR, 10, expected=["input_bound_cpu"])
def input_cpu_amd(run: Workload) -> None:
    for index in range(8):
        run.put("node0", f"gpu.{index}.gpu", run.busy(52, 15))
        run.put("node0", f"gpu.{index}.powerWatts", 430, 30)
        run.put("node0", f"gpu.{index}.memoryAllocated", 66)
        run.put("node0", f"gpu.{index}.temp", 58)
        run.put("node0", f"gpu.{index}.junctionTemp", 66)
    run.host("node0", run.busy(95, 2))
    run.steps(2 * MINUTE, run.duration_s, 1, every=5)


@sick(2 * HOUR, 5, expected=["input_bound_disk"])
def input_disk_hdd(run: Workload) -> None:
    run.gpu(
        "node0",
        0,
        np.where(run.noise.random(len(run.t)) < 0.4, 95, run.noise.uniform(0, 25, len(run.t))),
        tdp=350,
        top=1695,
        name="RTX 3090",
    )
    run.host(
        "node0",
        14,
        cpus=16,
        read=np.clip(118 + run.noise.normal(0, 15, len(run.t)), 0, None),
        iowait=38,
        io_psi=74,
    )
    run.put("node0", "disk.sda.utilization", 99.4, 0.4, 0, 100)
    run.steps(2 * MINUTE, run.duration_s, 1.4, every=5)


@sick(
    3 * HOUR,
    10,
    expected=["input_bound_disk", "input_bound_network"],
    not_before_s=60 * MINUTE,
    from_s=60 * MINUTE,
    to_s=100 * MINUTE,
)
def input_disk_nfs_quarter(run: Workload) -> None:
    """NFS: no utilisation of a disk, only waiting; a neighbour loads the filer for 40 of 180 min."""
    bad = run.between((60 * MINUTE, 100 * MINUTE))
    for index in range(4):
        run.gpu("node0", index, np.where(bad, run.busy(28, 15), run.busy(93, 4)))
    run.host(
        "node0",
        np.where(bad, 6, 22),
        read=0.2,
        recv=np.where(bad, 90, 310),
        iowait=np.where(bad, 44, 1.5),
        io_psi=np.where(bad, 82, 4),
    )
    run.steps(
        2 * MINUTE,
        run.duration_s,
        1,
        every=10,
        slow=lambda second: 3.3 if 60 * MINUTE < second < 100 * MINUTE else 1,
    )


@sick(3 * HOUR, 15, expected=["input_bound_network"])
def input_network_s3_wandb(run: Workload) -> None:
    for index in range(8):
        run.gpu("node0", index, run.busy(51, 16), tdp=400, keys="wandb")
    run.host("node0", 33, keys="wandb", recv=1148, sent=12, read=0.3, iowait=0.2)
    run.steps(3 * MINUTE, run.duration_s, 1, every=10)


@sick(2 * HOUR, 10, expected=["cpu_limit"])
def cpu_limit_pod(run: Workload) -> None:
    run.gpu("node0", 0, run.busy(38, 12))
    run.host("node0", 98.5, total=11, cpus=8)
    run.put("node0", "cpu.ofLimit", 98.5, 0.8, 0, 100)
    run.put("node0", "proc.cpu.throttledPercent", 84, 5, 0, 100)
    run.counter("node0", "proc.cpu.throttledSeconds", 21.0)
    run.put("node0", "cgroup.cpu.limit", 8)
    run.steps(2 * MINUTE, run.duration_s, 0.7, every=10)


@sick(6 * HOUR, 15, expected=["cpu_limit"], not_before_s=2 * HOUR, from_s=2 * HOUR, to_s=4 * HOUR)
def cpu_limit_third(run: Workload) -> None:
    bad = run.between((2 * HOUR, 4 * HOUR))
    for index in range(2):
        run.gpu("node0", index, np.where(bad, run.busy(55, 9), run.busy(92, 4)))
    run.host("node0", np.where(bad, 99, 60), total=30, cpus=12)
    run.put("node0", "cpu.ofLimit", np.where(bad, 99, 60), 0.5, 0, 100)
    run.put("node0", "proc.cpu.throttledPercent", np.where(bad, 71, 1), 1, 0, 100)
    run.put("node0", "cgroup.cpu.limit", 12)
    run.steps(
        2 * MINUTE,
        run.duration_s,
        0.7,
        every=10,
        slow=lambda second: 1.7 if 2 * HOUR < second < 4 * HOUR else 1,
    )


@sick(4 * HOUR, 10, expected=["noisy_neighbour"], not_before_s=2.4 * HOUR, from_s=2.5 * HOUR)
def neighbour_eats_cpu(run: Workload) -> None:
    bad = run.t > 2.5 * HOUR
    for index in range(2):
        run.gpu("node0", index, np.where(bad, run.busy(47, 12), run.busy(93, 4)))
    run.host("node0", np.where(bad, 21, 34), total=np.where(bad, 98.5, 38), cpu_psi=np.where(bad, 72, 2))
    run.steps(2 * MINUTE, run.duration_s, 0.5, every=20, slow=lambda second: 1.9 if second > 9000 else 1)


@sick(3 * HOUR, 15, expected=["noisy_neighbour"], allowed=["input_bound_cpu"])
def steal_on_vm(run: Workload) -> None:
    run.gpu("node0", 0, run.busy(44, 12), tdp=70, top=1590, name="Tesla T4")
    run.host("node0", 60, total=97, cpus=4, cpu_psi=50)
    run.put("node0", "cpu.steal", 34, 4, 0, 100)
    run.steps(2 * MINUTE, run.duration_s, 0.5, every=20)


@sick(
    4 * HOUR,
    10,
    expected=["device_used_by_others"],
    not_before_s=85 * MINUTE,
    from_s=90 * MINUTE,
    devices=[2],
)
def gpu_shared_with_other(run: Workload) -> None:
    other = run.t > 90 * MINUTE
    for index in range(4):
        run.gpu(
            "node0",
            index,
            np.where(other, 100 if index == 2 else run.busy(95, 2), run.busy(91, 4)),
            used=np.where(other & (index == 2), 93, 55),
        )
        if index == 2:
            run.put("node0", "gpu.2.otherMemoryBytes", np.where(other, 29 * GIB, 0))
            run.put("node0", "gpu.process.2.memoryAllocatedBytes", 43.6 * GIB)
    run.host("node0", 20)
    run.steps(2 * MINUTE, run.duration_s, 0.8, every=10, slow=lambda second: 2 if second > 90 * MINUTE else 1)


@sick(2 * HOUR, 10, expected=["launch_bound"])
def launch_bound_rl_dcgm(run: Workload) -> None:
    run.gpu("node0", 0, run.busy(97, 2), watts=235, keys="dcgm", active=run.busy(11, 2), tensor=1.0, dram=4.0)
    run.host("node0", 1.8, cpus=64, procs=1, threads=70)
    run.steps(1 * MINUTE, run.duration_s, 0.05, every=100)


@sick(3 * HOUR, 15, hosts=8, expected=["communication_bound"])
def comm_ib_8x8(run: Workload) -> None:
    for number in range(8):
        for index in range(8):
            run.gpu(
                f"node{number}",
                index,
                run.busy(100, 0.3),
                watts=315,
                active=run.busy(38, 4),
                tensor=11.0,
                dram=14.0,
                nvlink=6e10,
            )
        run.host(f"node{number}", 16)
        for pauses in range(4):
            run.counter(f"node{number}", f"network.ib.mlx5_{pauses}.1.xmitBytes", 22.5e9, 1e14)
            run.counter(f"node{number}", f"network.ib.mlx5_{pauses}.1.recvBytes", 22.5e9, 1e14)
            run.counter(f"node{number}", f"network.ib.mlx5_{pauses}.1.xmitWait", 4e8)
    run.steps(4 * MINUTE, run.duration_s, 8)


@sick(3 * HOUR, 10, hosts=4, expected=["communication_bound"])
def comm_ethernet_4x2(run: Workload) -> None:
    for number in range(4):
        for index in range(2):
            run.gpu(f"node{number}", index, run.busy(99, 1), watts=128, tdp=300, top=1740, name="RTX A6000")
        run.host(f"node{number}", 9, recv=1142, sent=1142)
    run.steps(2 * MINUTE, run.duration_s, 3, every=2)


def checkpoints(run: Workload, every: float, long: float, gpus: int, marked: bool) -> None:
    """Let a run write checkpoints while its devices wait."""
    spans = [(begin, begin + long) for begin in np.arange(every, run.duration_s - long, every)]
    inside = run.between(*spans)
    for index in range(gpus):
        run.gpu("node0", index, np.where(inside, 0, run.busy(95, 3)), watts=np.where(inside, 95, 600))
    run.host(
        "node0",
        np.where(inside, 1.2, 18),
        write=np.where(inside, 950, 1),
        io_psi=np.where(inside, 40, 1),
    )
    run.steps(3 * MINUTE, run.duration_s, 2.5, every=2, pauses=spans)
    if marked:
        for _, end in spans:
            run.mark(end, "checkpoint")


@sick(4 * HOUR, 10, expected=["checkpoint_stalls"])
def ckpt_marked(run: Workload) -> None:
    checkpoints(run, 12 * MINUTE, 150, 8, True)


@sick(4 * HOUR, 10, expected=["checkpoint_stalls"])
def ckpt_unmarked(run: Workload) -> None:
    checkpoints(run, 15 * MINUTE, 200, 4, False)


@sick(3 * HOUR, 5, expected=["checkpoint_stalls"])
def ckpt_short_and_often(run: Workload) -> None:
    """Each 3 minutes for 40 s: one in five minutes."""
    checkpoints(run, 3 * MINUTE, 40, 4, True)


@sick(1 * HOUR, 5, expected=["memory_bound"], described=True)
def memory_bound_decode(run: Workload) -> None:
    run.gpu("node0", 0, run.busy(99, 1), active=run.busy(94, 2), tensor=6.0, dram=run.busy(83, 3), watts=520)
    run.host("node0", 4)


@sick(2 * HOUR, 5, expected=["compute_bound"], described=True)
def compute_bound_gemm(run: Workload) -> None:
    for index in range(8):
        run.gpu(
            "node0",
            index,
            100,
            active=run.busy(92, 2),
            tensor=run.busy(61, 4),
            dram=30.0,
            watts=690,
            throttle={"swPowerCap": 0.98},
            clock=1500,
        )
    run.host("node0", 12)
    run.steps(3 * MINUTE, run.duration_s, 2)


@sick(
    5 * HOUR,
    10,
    expected=["thermal_throttling"],
    devices=[1, 6],
    not_before_s=20 * MINUTE,
    from_s=35 * MINUTE,
)
def thermal_two_of_eight(run: Workload) -> None:
    for index in range(8):
        hot = (run.t > 35 * MINUTE) & (index in (1, 6))
        share = run.noise.uniform(0.3, 0.6, len(run.t))
        run.gpu(
            "node0",
            index,
            run.busy(98, 1),
            tdp=450,
            top=2520,
            name="RTX 4090",
            temp=np.where(hot, run.noise.integers(86, 89, len(run.t)), 71),
            watts=np.where(hot, 330, 400),
            clock=np.where(hot, run.noise.integers(1900, 2350, len(run.t)), 2490),
            throttle={"swThermal": np.where(hot, share, 0)},
        )
    run.host("node0", 22)
    run.steps(2 * MINUTE, run.duration_s, 2)


@sick(
    10 * HOUR,
    15,
    expected=["thermal_throttling", "hw_slowdown"],
    from_s=5 * HOUR,
    to_s=7.5 * HOUR,
    not_before_s=5 * HOUR,
)
def thermal_hw_afternoon(run: Workload) -> None:
    hot = run.between((5 * HOUR, 7.5 * HOUR))
    for index in range(4):
        run.gpu(
            "node0",
            index,
            run.busy(97, 2),
            tdp=300,
            top=1530,
            name="V100",
            temp=np.where(hot, 90, 74),
            watts=np.where(hot, 170, 265),
            clock=np.where(hot, 980, 1530),
            throttle={"hwThermal": np.where(hot, 0.35, 0), "hwSlowdown": np.where(hot, 0.35, 0)},
        )
    run.host("node0", 22)
    run.steps(2 * MINUTE, run.duration_s, 2, slow=lambda second: 1.4 if 5 * HOUR < second < 7.5 * HOUR else 1)


@sick(3 * HOUR, 10, expected=["power_capped"], described=True)
def power_capped_a100(run: Workload) -> None:
    for index in range(4):
        run.gpu(
            "node0",
            index,
            run.busy(99, 1),
            tdp=250,
            top=1410,
            name="A100-PCIE",
            watts=248.5,
            clock=np.round(run.noise.normal(1150, 40, len(run.t)) / 15) * 15,
            throttle={"swPowerCap": 0.97},
        )
    run.host("node0", 12)
    run.steps(3 * MINUTE, run.duration_s, 2)


@sick(3 * HOUR, 10, expected=["hw_slowdown"], not_before_s=1.9 * HOUR, from_s=2 * HOUR)
def power_brake(run: Workload) -> None:
    bad = run.t > 2 * HOUR
    for index in range(8):
        run.gpu(
            "node0",
            index,
            99,
            watts=np.where(bad, 210, 620),
            clock=np.where(bad, 345, 1755),
            throttle={"hwPowerBrake": np.where(bad, 0.93, 0), "hwSlowdown": np.where(bad, 0.93, 0)},
        )
    run.host("node0", 12)
    run.steps(3 * MINUTE, run.duration_s, 2, slow=lambda second: 4 if second > 2 * HOUR else 1)


@sick(2 * HOUR, 10, expected=["clock_limited"])
def clock_limited_all_no_reason(run: Workload) -> None:
    """Someone locked the clocks at 1,095 MHz: all alike, no reason is told."""
    for index in range(8):
        run.gpu("node0", index, run.busy(98, 1), watts=310, clock=1095)
    run.host("node0", 12)
    run.steps(3 * MINUTE, run.duration_s, 2)


@sick(3 * HOUR, 10, expected=["pcie_degraded"], devices=[4])
def pcie_gen1_one_of_eight(run: Workload) -> None:
    for index in range(8):
        run.gpu("node0", index, run.busy(88, 4))
        if index == 4:
            run.put("node0", "gpu.4.pcieLinkGen", 1)
    run.host("node0", 12)
    run.steps(3 * MINUTE, run.duration_s, 2)


@sick(6 * HOUR, 15, expected=["pcie_degraded"], devices=[1], not_before_s=4 * HOUR, from_s=4 * HOUR)
def pcie_x4_late(run: Workload) -> None:
    for index in range(2):
        run.gpu("node0", index, run.busy(90, 4))
        if index == 1:
            run.put("node0", "gpu.1.pcieLinkWidth", np.where(run.t > 4 * HOUR, 4, 16))
            run.counter("node0", "gpu.1.pcieReplays", np.where(run.t > 4 * HOUR, 0.8, 0))
    run.host("node0", 12)
    run.steps(3 * MINUTE, run.duration_s, 2)


@sick(
    5 * HOUR,
    10,
    expected=["memory_errors"],
    allowed=["device_needs_reset"],
    verdicts=["memory_errors", "device_needs_reset"],
    devices=[3],
    not_before_s=3 * HOUR,
    from_s=3 * HOUR,
)
def ecc_uncorrectable(run: Workload) -> None:
    for index in range(8):
        run.gpu("node0", index, run.busy(95, 3))
    run.put(
        "node0",
        "gpu.3.unCorrectedMemoryErrors",
        np.where(run.t > 4 * HOUR, 6, np.where(run.t > 3 * HOUR, 2, 0)),
    )
    run.put("node0", "gpu.3.remapPending", np.where(run.t > 3 * HOUR, 1, 0))
    run.host("node0", 12)
    run.steps(3 * MINUTE, run.duration_s, 2)


@sick(2 * HOUR, 15, expected=["memory_errors", "device_needs_reset"], devices=[0])
def remap_failed(run: Workload) -> None:
    for index in range(4):
        run.gpu("node0", index, run.busy(95, 3))
    run.put("node0", "gpu.0.remapFailed", 1)
    run.put("node0", "gpu.0.remappedRowsUncorrectable", 9)
    run.host("node0", 12)
    run.steps(3 * MINUTE, run.duration_s, 2)


@sick(
    3 * HOUR,
    10,
    expected=["device_needs_reset"],
    allowed=["hang"],
    devices=[5],
    not_before_s=2 * HOUR,
    from_s=2 * HOUR,
    verdicts=["device_needs_reset"],
    goes_on=True,
)
def fell_off_the_bus(run: Workload) -> None:
    dead = run.t > 2 * HOUR
    for index in range(8):
        run.gpu(
            "node0",
            index,
            np.where(dead, 100 if index != 5 else np.nan, run.busy(96, 2)),
            watts=np.where(dead, 130, 600),
        )
    for key in list(run.series["node0"]):
        if (
            key.startswith(("gpu.5.", "gpu.process.5"))
            and "criticalErrors" not in key
            and "recovery" not in key
        ):
            run.blank("node0", key, 2 * HOUR, 9e9)
    run.put("node0", "gpu.5.criticalErrors", np.where(dead, 1, 0))
    run.put("node0", "gpu.5.recoveryAction", np.where(dead, 2, 0))
    run.host("node0", 12)
    run.steps(3 * MINUTE, 2 * HOUR, 2)


@sick(1 * HOUR, 10, expected=["sensor_implausible"], described=True)
def sensor_6500_watts(run: Workload) -> None:
    run.gpu("node0", 0, run.busy(95, 3), tdp=360, top=2600, name="RTX PRO 6000", watts=6500)
    run.put("node0", "gpu.0.powerSuspect", 1)
    run.host("node0", 20)
    run.steps(60, run.duration_s, 1, every=5)


@sick(10 * HOUR, 15, expected=["memory_growth"], not_before_s=1 * HOUR)
def leak_sawtooth_full(run: Workload) -> None:
    mem = 22 + 6.2 * run.t / HOUR + 4 * ((run.t / (40 * MINUTE)) % 1)
    run.gpu("node0", 0, run.busy(94, 3))
    run.host("node0", 20, mem=mem, rss=mem / 100 * 515_000 - 20_000)
    run.steps(60, run.duration_s, 1, every=10)


@sick(12 * HOUR, 15, expected=["memory_growth"], not_before_s=5 * HOUR)
def leak_late_wandb(run: Workload) -> None:
    """Flat for five hours; then a callback keeps the predictions of each validation: steps."""
    grown = np.clip(np.floor((run.t - 5 * HOUR) / (20 * MINUTE)), 0, None)
    mem = 31 + 2.4 * grown
    run.gpu("node0", 0, run.busy(94, 3), keys="wandb")
    run.host("node0", 20, mem=mem, rss=mem / 100 * 257_000 - 9_000, keys="wandb")
    run.steps(60, run.duration_s, 1, every=10)


@sick(4 * HOUR, 5, expected=["memory_growth", "out_of_memory_near"])
def leak_cpu_only(run: Workload) -> None:
    mem = 10 + 20.5 * run.t / HOUR
    run.host("node0", 70, mem=np.clip(mem, 0, 92), rss=mem / 100 * 64_000, cpus=16)


@sick(
    3 * HOUR,
    10,
    expected=["swapping"],
    allowed=["out_of_memory_near", "memory_growth"],
    not_before_s=1 * HOUR,
    from_s=70 * MINUTE,
)
def swaps(run: Workload) -> None:
    loss = np.clip((run.t - 70 * MINUTE) / (30 * MINUTE), 0, 1)
    bad = loss > 0
    run.gpu("node0", 0, np.where(bad, run.busy(30, 15), run.busy(92, 4)))
    run.host(
        "node0",
        np.where(bad, 10, 25),
        mem=np.clip(60 + run.t / (70 * MINUTE) * 36, 0, 97),
        swap=loss * 38 * GIB,
        mem_psi=np.where(bad, 55, 0),
        iowait=np.where(bad, 25, 0.5),
        io_psi=np.where(bad, 50, 2),
        read=np.where(bad, 280, 20),
    )
    run.steps(60, run.duration_s, 1, every=10, slow=lambda second: 3 if second > 70 * MINUTE else 1)


@sick(3 * HOUR, 10, expected=["out_of_memory_near"], allowed=["memory_growth"])
def oom_cgroup_near(run: Workload) -> None:
    mem = np.clip(70 + 27.8 * run.t / (2.2 * HOUR), 0, 98.2)
    run.gpu("node0", 0, run.busy(94, 3))
    run.host("node0", 20, mem=mem, rss=mem / 100 * 65_536 - 1000)
    run.put("node0", "cgroup.memory.workingSetMB", mem / 100 * 65_536)
    run.put("node0", "cgroup.memory.limitMB", 65_536)
    run.put("node0", "memory.pressureAvg10", np.where(mem > 97, 12, 0))
    run.steps(60, run.duration_s, 1, every=10)


@sick(
    2 * HOUR, 10, hosts=4, expected=["out_of_memory_near"], allowed=["memory_growth"], named_hosts=["node2"]
)
def oom_killed_one_host(run: Workload) -> None:
    """Memory of one of four hosts rises within ten minutes and the kernel kills."""
    run.state, run.out_of_memory = "crashed", True
    for number in range(4):
        mem = np.where(
            (run.t > 110 * MINUTE) & (number == 2),
            np.clip(40 + (run.t - 110 * MINUTE) / (10 * MINUTE) * 60, 0, 99.4),
            40,
        )
        for index in range(4):
            run.gpu(f"node{number}", index, run.busy(95, 2))
        run.host(f"node{number}", 20, mem=mem, rss=mem * 5150)
    run.put("node2", "proc.memory.oomKills", np.where(run.t > 119.7 * MINUTE, 1, 0))
    run.steps(60, run.duration_s, 1, every=10)


@sick(6 * HOUR, 15, expected=["disk_full_soon"], not_before_s=1 * HOUR)
def disk_full_soon(run: Workload) -> None:
    disk = 68 + 4.3 * np.floor(run.t / (20 * MINUTE)) / 3
    run.gpu("node0", 0, run.busy(94, 3))
    run.host("node0", 20, disk=disk)
    run.steps(60, run.duration_s, 1, every=10)


@sick(8 * HOUR, 15, expected=["disk_full_soon"])
def disk_full_data_mount_wandb(run: Workload) -> None:
    run.gpu("node0", 0, run.busy(94, 3), keys="wandb")
    run.host("node0", 20, disk=81, keys="wandb")
    run.put("node0", "disk./data/scratch.usagePercent", np.clip(86 + 1.65 * run.t / HOUR, 0, 99.9))
    run.steps(60, run.duration_s, 1, every=10)


@sick(4 * HOUR, 10, expected=["loss_not_finite"], not_before_s=1.5 * HOUR, from_s=1.6 * HOUR)
def loss_nan_stays(run: Workload) -> None:
    for index in range(8):
        run.gpu("node0", index, run.busy(97, 2))
    run.host("node0", 12)
    run.steps(
        3 * MINUTE,
        run.duration_s,
        2,
        loss=lambda progress: np.where(progress > 0.393, np.nan, 1.7 + 3 * np.exp(-8 * progress)),
    )


@sick(3 * HOUR, 15, expected=["loss_not_finite"])
def loss_inf_val_only(run: Workload) -> None:
    run.gpu("node0", 0, run.busy(95, 3), keys="wandb")
    run.host("node0", 12, keys="wandb")
    run.steps(
        1 * MINUTE,
        run.duration_s,
        1,
        every=20,
        name="loss",
        loss=lambda progress: np.where(progress > 0.7, np.inf, 0.4),
    )


@sick(6 * HOUR, 10, expected=["loss_diverged"], not_before_s=2.5 * HOUR, from_s=3 * HOUR)
def loss_diverged_stays(run: Workload) -> None:
    for index in range(8):
        run.gpu("node0", index, run.busy(97, 2))
    run.host("node0", 12)
    run.steps(
        3 * MINUTE,
        run.duration_s,
        2,
        every=5,
        loss=lambda progress: np.where(
            progress > 0.5, np.minimum(2.1 + (progress - 0.5) * 300, 7.6), 2.1 + 5 * np.exp(-12 * progress)
        ),
    )


@sick(2 * HOUR, 10, expected=["loss_diverged", "loss_not_finite"], not_before_s=1 * HOUR)
def loss_explodes(run: Workload) -> None:
    run.gpu("node0", 0, run.busy(97, 2))
    run.host("node0", 12)
    run.steps(
        1 * MINUTE,
        run.duration_s,
        1,
        every=5,
        name="loss",
        loss=lambda progress: np.where(
            progress > 0.6, 0.3 * np.exp((progress - 0.6) * 120), 0.3 + np.exp(-9 * progress)
        ),
    )


@sick(2 * HOUR, 10, expected=["held_memory_without_process"], devices=[1])
def memory_held_by_dead_process(run: Workload) -> None:
    for index in range(2):
        run.gpu("node0", index, run.busy(94, 3) if index == 0 else 0, used=80 if index == 0 else 66)
    del run.series["node0"]["gpu.process.1.memoryAllocatedBytes"]
    run.host("node0", 10)
    run.steps(60, run.duration_s, 1, every=5)


@sick(3 * HOUR, 10, hosts=4, expected=["missing_samples"], described=True)
def one_host_silent(run: Workload) -> None:
    for number in range(4):
        for index in range(4):
            run.gpu(f"node{number}", index, run.busy(95, 3))
        run.host(f"node{number}", 15)
    run.drop("node1", 80 * MINUTE, 125 * MINUTE)
    run.steps(60, run.duration_s, 1, every=5)


@sick(
    3 * HOUR,
    10,
    expected=["sensor_implausible"],
    described=True,
    allowed=["idle"],
    verdicts=["healthy", "unknown", "idle"],
)
def idle_amd_busy_lies(run: Workload) -> None:
    """gfx1201's firmware says 100 % at idle: busySuspect; two hours at idle power."""
    run.put("node0", "gpu.0.gpu", 100)
    run.put("node0", "gpu.0.busySuspect", 1)
    run.put("node0", "gpu.0.powerWatts", 22, 1)
    run.put("node0", "gpu.0.powerPercent", 7.3)
    run.put("node0", "gpu.0.memoryAllocated", 50)
    run.host("node0", 0.3, cpus=24)


@sick(6 * HOUR, 10, expected=["input_bound_disk"])
def cold_cache_each_epoch(run: Workload) -> None:
    """The first quarter of each 40-minute epoch reads from a slow disk."""
    inside = (run.t % (40 * MINUTE)) < 11 * MINUTE
    for index in range(2):
        run.gpu("node0", index, np.where(inside, run.busy(35, 20), run.busy(95, 3)))
    run.host(
        "node0",
        np.where(inside, 10, 30),
        read=np.where(inside, 140, 3),
        iowait=np.where(inside, 41, 1),
        io_psi=np.where(inside, 78, 2),
    )
    run.put("node0", "disk.sdb.utilization", np.where(inside, 99, 4))
    run.steps(60, run.duration_s, 1, every=10, slow=lambda second: 2.7 if second % 2400 < 660 else 1)


@sick(8 * HOUR, 15, expected=["input_bound_network"], not_before_s=6 * HOUR, from_s=6 * HOUR)
def network_late_wandb(run: Workload) -> None:
    bad = run.t > 6 * HOUR
    for index in range(4):
        run.gpu("node0", index, np.where(bad, run.busy(49, 18), run.busy(93, 4)), keys="wandb")
    run.host("node0", np.where(bad, 18, 30), keys="wandb", recv=np.where(bad, 117, 60), sent=1)
    run.steps(60, run.duration_s, 1, every=10, slow=lambda second: 1.9 if second > 6 * HOUR else 1)


@sick(4 * HOUR, 10, expected=["input_bound_network"])
def network_full_before_too(run: Workload) -> None:
    """The link of 117 MiB/s is full all the time of the training; validation reads nothing."""
    validating = (run.t % (50 * MINUTE)) > 45 * MINUTE
    run.gpu(
        "node0", 0, np.where(validating, run.busy(90, 3), np.where(run.noise.random(len(run.t)) < 0.5, 96, 4))
    )
    run.host("node0", 20, recv=np.where(validating, 2, 117), sent=1)
    run.steps(60, run.duration_s, 1, every=10)


@sick(4 * HOUR, 20, hosts=4, expected=["straggler"], devices=[2], named_hosts=["node1"])
def tpu_one_chip_slow(run: Workload) -> None:
    for number in range(4):
        for index in range(4):
            slow = (number, index) == (1, 2)
            run.put(f"node{number}", f"tpu.{index}.dutyCycle", run.busy(68 if slow else 97, 2))
            run.put(f"node{number}", f"tpu.{index}.memoryUsage", 80)
            run.put(f"node{number}", f"tpu.{index}.tensorcoreUtilization", run.busy(30, 1))
        run.host(f"node{number}", 10)
    run.steps(9 * MINUTE, run.duration_s, 4)


@sick(
    6 * HOUR,
    10,
    expected=["idle_devices"],
    allowed=["idle"],
    devices=[3, 7],
    not_before_s=3 * HOUR,
    from_s=3 * HOUR,
)
def two_devices_stop_midway(run: Workload) -> None:
    bad = run.t > 3 * HOUR
    for index in range(8):
        run.gpu("node0", index, np.where(bad & (index in (3, 7)), 0, run.busy(90, 4)))
    run.host("node0", 20)
    run.steps(60, run.duration_s, 1, every=10)


@sick(7 * HOUR, 10, expected=["memory_growth", "out_of_memory_near"])
def gpu_memory_leak(run: Workload) -> None:
    run.gpu("node0", 0, run.busy(94, 3), used=38 + 8.2 * run.t / HOUR + 1.5 * np.sin(run.t / 300))
    run.host("node0", 20)
    run.steps(60, run.duration_s, 1, every=10)


@sick(9 * HOUR, 30, hosts=8, expected=["memory_growth"], named_hosts=["node3"])
def leak_one_of_eight_hosts(run: Workload) -> None:
    for number in range(8):
        memory = 22 + (7.3 * run.t / HOUR if number == 3 else 0)
        for index in range(4):
            run.gpu(f"node{number}", index, run.busy(95, 2), keys="dcgm")
        run.host(f"node{number}", 20, mem=memory, rss=memory * 5000)
    run.steps(60, run.duration_s, 3)


@sick(3 * HOUR, 5, expected=["memory_errors"], not_before_s=1 * HOUR, from_s=1 * HOUR)
def trn_ecc(run: Workload) -> None:
    for index in range(32):
        run.put("node0", f"trn.{index}.neuroncore_utilization", run.busy(85, 4))
    for index in range(16):
        run.put(
            "node0", f"trn.device.{index}.mem_ecc_uncorrected", np.where((run.t > HOUR) & (index == 9), 3, 0)
        )
        run.put("node0", f"trn.device.{index}.sram_ecc_uncorrected", 0)
    run.host("node0", 10)
    run.steps(10 * MINUTE, run.duration_s, 3)


@sick(8 * HOUR, 10, expected=["loss_diverged"])
def loss_creeps_up(run: Workload) -> None:
    run.gpu("node0", 0, run.busy(97, 2))
    run.host("node0", 12)
    run.steps(
        60,
        run.duration_s,
        1,
        every=10,
        loss=lambda progress: np.where(
            progress < 0.4,
            1.9 + 4 * np.exp(-14 * progress),
            1.92 + 3.6 * np.clip((progress - 0.4) / 0.45, 0, 1),
        ),
    )


@sick(4 * HOUR, 10, expected=["hang"], not_before_s=2 * HOUR, from_s=2 * HOUR, open=True)
def hang_but_rows_go_on(run: Workload) -> None:
    """A thread logs a heartbeat each 10 s; its step stays."""
    bad = run.t > 2 * HOUR
    for index in range(4):
        run.gpu("node0", index, np.where(bad, 100, run.busy(96, 2)), watts=np.where(bad, 130, 600))
    run.host("node0", np.where(bad, 5, 20))
    run.steps(60, 2 * HOUR, 1, every=10)
    count = run.last_step()
    beats = np.arange(5, run.duration_s, 10)
    run.log(
        "heartbeat",
        beats,
        np.where(beats < 2 * HOUR, np.minimum(beats, 2 * HOUR), count).astype(np.int64),
        1.0,
    )
    run.log("heartbeat2", beats, np.full(len(beats), -1), 1.0)


@sick(
    8 * HOUR,
    10,
    expected=["hang"],
    allowed=["idle"],
    not_before_s=3 * HOUR,
    from_s=3 * HOUR,
    to_s=3 * HOUR + 55 * MINUTE,
)
def stall_that_recovers(run: Workload) -> None:
    bad = run.between((3 * HOUR, 3 * HOUR + 55 * MINUTE))
    for index in range(8):
        run.gpu("node0", index, np.where(bad, 0, run.busy(96, 2)))
    run.host("node0", np.where(bad, 0.2, 20), io_psi=np.where(bad, 95, 1), iowait=np.where(bad, 8, 0.3))
    run.steps(60, run.duration_s, 1, every=10, pauses=[(3 * HOUR, 3 * HOUR + 55 * MINUTE)])


@sick(3 * HOUR, 15, expected=["cpu_limit"])
def throttled_no_oflimit(run: Workload) -> None:
    run.gpu("node0", 0, run.busy(45, 15))
    run.host("node0", 97, total=18, cpus=6)
    run.put("node0", "proc.cpu.throttledPercent", 62, 6)
    run.put("node0", "cgroup.cpu.limit", 6)
    run.steps(60, run.duration_s, 1, every=10)


@sick(12 * HOUR, 15, expected=["noisy_neighbour"])
def neighbour_cron(run: Workload) -> None:
    bad = (run.t % (2 * HOUR)) > 90 * MINUTE
    for index in range(4):
        run.gpu("node0", index, np.where(bad, run.busy(52, 10), run.busy(94, 3)))
    run.host("node0", np.where(bad, 20, 30), total=np.where(bad, 99, 34), cpu_psi=np.where(bad, 66, 2))
    run.steps(
        60, run.duration_s, 1, every=10, slow=lambda second: 1.8 if second % (2 * HOUR) > 90 * MINUTE else 1
    )


@sick(3 * HOUR, 10, expected=["device_used_by_others"], devices=[0])
def others_from_the_start(run: Workload) -> None:
    run.gpu("node0", 0, run.busy(99, 1), used=90)
    run.put("node0", "gpu.0.otherMemoryBytes", 44 * GIB, GIB)
    run.put("node0", "gpu.process.0.memoryAllocatedBytes", 26 * GIB)
    run.host("node0", 10)
    run.steps(60, run.duration_s, 1, every=10)


@sick(10 * HOUR, 15, expected=["disk_full_soon"], not_before_s=8 * HOUR)
def disk_fills_late(run: Workload) -> None:
    run.gpu("node0", 0, run.busy(94, 3))
    run.host("node0", 20, disk=61 + np.clip((run.t - 8 * HOUR) / HOUR, 0, 9) * 14)
    run.steps(60, run.duration_s, 1, every=10)


@sick(
    3 * HOUR, 15, hosts=8, expected=["idle_devices"], named_hosts=[f"node{number}" for number in range(4, 8)]
)
def idle_hosts_64_wandb(run: Workload) -> None:
    for number in range(8):
        for index in range(8):
            run.gpu(
                f"node{number}",
                index,
                run.busy(95, 3) if number < 4 else 0,
                keys="wandb",
                used=80 if number < 4 else 3,
            )
        run.host(f"node{number}", 15 if number < 4 else 0.3, keys="wandb")
    run.steps(4 * MINUTE, run.duration_s, 3)


@sick(5 * HOUR, 10, expected=["straggler"], devices=[6], not_before_s=2 * HOUR, from_s=2 * HOUR)
def straggler_amd_power(run: Workload) -> None:
    bad = run.t > 2 * HOUR
    for index in range(8):
        slow = bad & (index == 6)
        run.put("node0", f"gpu.{index}.gpu", 100)
        run.put("node0", f"gpu.{index}.powerWatts", np.where(slow, 690, np.where(bad, 520, 690)), 8)
        run.put("node0", f"gpu.{index}.smClock", np.where(slow, 1250, 1900), 20)
        run.put("node0", f"gpu.{index}.temp", np.where(slow, 84, 66))
        run.put("node0", f"gpu.{index}.memoryAllocated", 80)
        run.put("node0", f"gpu.{index}.enforcedPowerLimitWatts", 750)
    run.host("node0", 12)
    run.steps(60, run.duration_s, 2, every=5, slow=lambda second: 1.45 if second > 2 * HOUR else 1)


@sick(5 * HOUR, 30, expected=["idle"], not_before_s=2 * HOUR, from_s=2 * HOUR, open=True)
def only_gpu_keys_idle_8(run: Workload) -> None:
    for index in range(8):
        run.gpu("node0", index, np.where(run.t < 2 * HOUR, run.busy(88, 6), 0), keys="dcgm")
