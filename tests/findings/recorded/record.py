"""Records the runs of this folder: real processes on a Linux machine, some minutes each.

    sudo .venv/bin/python -m tests.findings.recorded.record DIR [NAME …]

It needs root for control groups (of version 1) and a small tmpfs. They train a tiny model of NumPy whose
"device" is a sleep, so that all can be recorded at once; the monitor measures them. `out_of_memory` is `leak`
with a smaller limit. Those of `LONG_MINUTES` take longer and are sampled less often. The journals are packed
into `NAME.tar.gz`.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import subprocess
import sys
import tarfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from queue import Queue
from typing import Any

import numpy as np

import runvitals

MINUTES = float(os.environ.get("RECORD_MINUTES", "8"))
LONG_MINUTES = {
    "hung_rank": 25,
    "ranks_that_evaluate": 25,
    "slow_leak": 41,
    "epoch_cache": 45,
    "filled_cache": 45,
}
SICK_FROM_S = 150.0
CGROUPS = Path("/sys/fs/cgroup")


class TinyTraining:
    """A linear regression by gradient descent, and the time since it began."""

    def __init__(self) -> None:
        self.noise = np.random.default_rng(0)
        self.weights, self.truth = np.zeros(8), self.noise.normal(size=8)
        self.run = runvitals.init(project="recorded")
        self.began = time.monotonic()
        self.step = 0

    def seconds(self) -> float:
        return time.monotonic() - self.began

    def goes_on(self) -> bool:
        return self.seconds() < MINUTES * 60

    def train(self, device_s: float = 0.5, spoil: float = 1.0, **logged: float) -> None:
        """Train one step, on a "device" that takes some time, and log it."""
        inputs = self.noise.normal(size=(64, 8))
        errors = inputs @ self.weights - inputs @ self.truth
        self.weights -= 0.02 * spoil * inputs.T @ errors / 64
        time.sleep(device_s)
        self.run.log({"train/loss": float(np.mean(errors**2) + 0.1) * spoil, **logged}, step=self.step)
        self.step += 1


def load_with(item_s: float, device_s: float) -> None:
    """Train from a loader of two workers that sleep for each item."""
    items: Queue[int] = Queue(maxsize=4)

    def work() -> None:
        while True:
            time.sleep(item_s)
            items.put(1)

    training = TinyTraining()
    for _ in range(2):
        threading.Thread(target=work, daemon=True).start()
    while training.goes_on():
        began = time.monotonic()
        items.get()
        training.train(device_s, **{"train/data_time": time.monotonic() - began})


def starved_loader() -> None:
    load_with(item_s=1.6, device_s=0.3)


def fed_loader() -> None:
    load_with(item_s=0.4, device_s=0.6)


def _decode(ready: Any) -> None:
    values = np.arange(20_000, dtype=np.float64)
    while True:
        for _ in range(15_000):
            values = np.sqrt(values + 1.0)
        ready.put(1)


def processors_limited() -> None:
    """Decode in two processes that share 0.3 processors."""
    training = TinyTraining()
    ready: Any = multiprocessing.Queue(maxsize=4)
    workers = [multiprocessing.Process(target=_decode, args=(ready,), daemon=True) for _ in range(2)]
    for worker in workers:
        worker.start()
    while training.goes_on():
        began = time.monotonic()
        ready.get()
        training.train(0.3, **{"train/data_time": time.monotonic() - began})
    for worker in workers:
        worker.kill()


def slow_disk() -> None:
    """Read batches past the cache, from a disk limited to 4 MiB/s where the kernel can."""
    path = Path(os.environ["RECORD_SCRATCH"]) / "data.bin"
    path.write_bytes(os.urandom(2**20) * 64)
    os.sync()
    training = TinyTraining()
    buffer = np.empty(2**20 + 4096, dtype=np.uint8)
    offset = -buffer.ctypes.data % 4096
    view = memoryview(buffer)[offset : offset + 2**20]
    file = os.open(path, os.O_RDONLY | os.O_DIRECT)
    position = 0
    while training.goes_on():
        began = time.monotonic()
        for _ in range(8):
            os.preadv(file, [view], position)
            position = (position + 2**20) % (64 * 2**20)
        training.train(0.3, **{"train/data_time": time.monotonic() - began})


def leak() -> None:
    training, kept = TinyTraining(), []
    while training.goes_on():
        kept.append(np.ones(2**18))
        training.train()


def sawtooth() -> None:
    """Memory that grows and is given back: a cache."""
    training, kept = TinyTraining(), []
    while training.goes_on():
        kept.append(np.ones(2**18))
        if len(kept) > 100:
            kept.clear()
        training.train()


def keep_memory(most: int, clears: bool, numbers: int = 90_000) -> None:
    """Keep some numbers at each step of two seconds, up to some steps, and give them back then or never."""
    training = TinyTraining()
    kept: list[np.ndarray] = []
    while training.goes_on():
        if len(kept) < most:
            kept.append(np.ones(numbers))
        elif clears:
            kept.clear()
        training.train(2.0)


def slow_leak() -> None:
    keep_memory(most=100_000, clears=False, numbers=162_000)


def epoch_cache() -> None:
    keep_memory(most=400, clears=True)


def filled_cache() -> None:
    keep_memory(most=400, clears=False)


def full_disk() -> None:
    training = TinyTraining()
    folder = Path(os.environ["RECORD_TMPFS"])
    while training.goes_on():
        try:
            (folder / f"checkpoint-{training.step}").write_bytes(bytes(70_000))
        except OSError:
            pass
        training.train()


def rotated_checkpoints() -> None:
    training = TinyTraining()
    folder = Path(os.environ["RECORD_TMPFS"])
    while training.goes_on():
        (folder / f"checkpoint-{training.step % 100}").write_bytes(bytes(70_000))
        training.train()


def _rank(barrier: Any) -> None:
    while True:
        barrier.wait()
        time.sleep(0.05)


def ranks(stops: bool, pause_s: float, device_s: float = 0.3, pauses: int = 1) -> None:
    """Train with three more processes that meet at a barrier; one is stopped, or all wait for a while."""
    barrier = multiprocessing.Barrier(4)
    others = [multiprocessing.Process(target=_rank, args=(barrier,), daemon=True) for _ in range(3)]
    for other in others:
        other.start()
    training = TinyTraining()

    def end() -> None:
        for other in others:
            other.kill()
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Timer(MINUTES * 60, end).start()
    paused = 0
    while True:
        if stops and training.seconds() > SICK_FROM_S:
            os.kill(others[1].pid or 0, signal.SIGSTOP)
        if paused < pauses and training.seconds() > SICK_FROM_S + paused * 2 * pause_s:
            time.sleep(pause_s)
            paused += 1
        barrier.wait()
        training.train(device_s)


def stopped_rank() -> None:
    ranks(stops=True, pause_s=0, pauses=0)


def hung_rank() -> None:
    ranks(stops=True, pause_s=0, pauses=0, device_s=1.0)


def ranks_that_validate() -> None:
    ranks(stops=False, pause_s=25)


def ranks_that_evaluate() -> None:
    """Evaluate for four minutes, twice, while the other ranks wait."""
    ranks(stops=False, pause_s=240, device_s=1.0, pauses=2)


def not_finite() -> None:
    training = TinyTraining()
    while training.goes_on():
        training.train(spoil=float("nan") if training.seconds() > SICK_FROM_S else 1.0)


def plain() -> None:
    training = TinyTraining()
    while training.goes_on():
        training.train()


TRAININGS: dict[str, Callable[[], None]] = {
    each.__name__: each
    for each in (
        starved_loader, fed_loader, processors_limited, slow_disk, leak, sawtooth, full_disk,
        rotated_checkpoints, stopped_rank, ranks_that_validate, not_finite, plain,
        hung_rank, ranks_that_evaluate, slow_leak, epoch_cache, filled_cache,
    )
}  # fmt: skip


def enter_cgroup(name: str) -> None:
    """Limit this process as its training asks for, by control groups of version 1."""
    disk = os.stat("/").st_dev
    settings: dict[str, dict[str, str]] = {
        "slow_disk": {
            "blkio": f"blkio.throttle.read_bps_device={os.major(disk)}:{os.minor(disk)} {4 * 2**20}"
        },
        "processors_limited": {"cpu": "cpu.cfs_quota_us=30000"},
        "leak": {"memory": "memory.limit_in_bytes=2400M"},
        "sawtooth": {"memory": "memory.limit_in_bytes=1500M"},
        "slow_leak": {"memory": "memory.limit_in_bytes=1800M"},
        "epoch_cache": {"memory": "memory.limit_in_bytes=1800M"},
        "filled_cache": {"memory": "memory.limit_in_bytes=1800M"},
    }
    for controller, setting in settings.get(name, {}).items():
        group = CGROUPS / controller / f"runvitals-{name}"
        group.mkdir(exist_ok=True)
        file, _, value = setting.partition("=")
        (group / file).write_text(value)
        (group / "cgroup.procs").write_text(str(os.getpid()))


def record(name: str, folder: Path) -> subprocess.Popen[bytes]:
    """Start the run of a training."""
    scratch = folder / f"scratch-{name}"
    scratch.mkdir(parents=True, exist_ok=True)
    mounted = folder / f"mounted-{name}"
    paths = "/"
    if name in ("full_disk", "rotated_checkpoints"):
        mounted.mkdir(exist_ok=True)
        subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64m", "tmpfs", mounted], check=True)
        paths = str(mounted)
    environment = {
        **os.environ,
        "RECORD_SCRATCH": str(scratch),
        "RECORD_TMPFS": str(mounted),
        "RECORD_MINUTES": str(LONG_MINUTES.get(name, MINUTES)),
        "OMP_NUM_THREADS": "1",
        "OPENBLAS_NUM_THREADS": "1",
    }
    command = [
        sys.executable, "-m", "runvitals", "run", "--dir", str(folder), "--run-id", name,
        "--mode", "offline", "--sampling-interval", "5" if name in LONG_MINUTES else "2",
        "--disk-paths", paths, "--",
        sys.executable, "-m", "tests.findings.recorded.record", "--train", name,
    ]  # fmt: skip
    return subprocess.Popen(command, env=environment, preexec_fn=lambda: enter_cgroup(name))


def main(arguments: list[str]) -> None:
    if arguments[0] == "--train":
        TRAININGS[arguments[1]]()
        return
    folder = Path(arguments[0]).resolve()
    started = {name: record(name, folder) for name in arguments[1:] or TRAININGS}
    for name, process in started.items():
        print(name, process.wait())
        if os.path.ismount(folder / f"mounted-{name}"):
            subprocess.run(["umount", folder / f"mounted-{name}"], check=True)
        with tarfile.open(Path(__file__).parent / f"{name}.tar.gz", "w:gz") as packed:
            packed.add(folder / "runs" / name, name)


if __name__ == "__main__":
    main(sys.argv[1:])
