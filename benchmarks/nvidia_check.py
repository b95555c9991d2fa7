"""Compare the NVIDIA collector with nvidia-smi on a machine with a GPU, and measure its cost.

    PYTHONPATH=src python3 benchmarks/nvidia_check.py                 # 20 s, under load
    PYTHONPATH=src python3 benchmarks/nvidia_check.py --seconds 60 --no-load

Requires only the driver with nvidia-smi, and Python: the load is generated with the driver's CUDA library.
Each of our readings is taken between two readings of nvidia-smi. It deviates only as far as it is outside of
both, and by more than nvidia-smi's readings differ from each other.
"""

from __future__ import annotations

import argparse
import ctypes
import os
import subprocess
import sys
import tempfile
import time
from statistics import mean, median
from typing import Any

from runvitals.monitoring.collectors.base import Scope, Tick
from runvitals.monitoring.collectors.nvidia import nvml
from runvitals.monitoring.collectors.nvidia.collector import Nvidia

MIB = 1 << 20
# Our name, nvidia-smi's names (newer first), factor to its unit, accepted difference of two readings.
QUERIES = (
    ("gpu", ("utilization.gpu",), 1.0, 0.0),
    ("memory", ("utilization.memory",), 1.0, 0.0),
    ("memoryAllocatedBytes", ("memory.used",), 1 / MIB, 1.0),
    ("temp", ("temperature.gpu",), 1.0, 1.0),
    ("memoryTemp", ("temperature.memory",), 1.0, 1.0),
    ("powerWatts", ("power.draw",), 1.0, 0.02),
    ("enforcedPowerLimitWatts", ("enforced.power.limit",), 1.0, 0.01),
    ("smClock", ("clocks.sm",), 1.0, 0.0),
    ("memoryClock", ("clocks.mem",), 1.0, 0.0),
    ("graphicsClock", ("clocks.gr",), 1.0, 0.0),
    ("encoderUtilization", ("utilization.encoder",), 1.0, 0.0),
    ("decoderUtilization", ("utilization.decoder",), 1.0, 0.0),
    ("fanSpeed", ("fan.speed",), 1.0, 1.0),
    ("correctedMemoryErrors", ("ecc.errors.corrected.volatile.dram",
                               "ecc.errors.corrected.volatile.device_memory"), 1.0, 0.0),
    ("unCorrectedMemoryErrors", ("ecc.errors.uncorrected.volatile.dram",
                                 "ecc.errors.uncorrected.volatile.device_memory"), 1.0, 0.0),
    ("pcieLinkGen", ("pcie.link.gen.gpucurrent", "pcie.link.gen.current"), 1.0, 0.0),
    ("pcieLinkWidth", ("pcie.link.width.current",), 1.0, 0.0),
)  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seconds", type=int, default=20, help="how long to compare, one reading a second")
    parser.add_argument("--no-load", action="store_true", help="compare the GPU as it is")
    parser.add_argument("--burn", type=float, help=argparse.SUPPRESS)
    parser.add_argument("--monitored", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.monitored:
        be_monitored(*options.monitored)
        return
    if options.burn:
        burn(options.burn)
        return
    print(smi("--query-gpu=index,name,uuid,driver_version,mig.mode.current", "--format=csv"))
    load = None
    if not options.no_load:
        load = subprocess.Popen([sys.executable, __file__, "--burn", str(options.seconds + 120.0)])
        time.sleep(4.0)
    try:
        compare(options.seconds)
        if load is not None:
            compare_process(load.pid)
        costs()
        memory_of_a_monitor()
    finally:
        if load is not None:
            load.kill()
            load.wait()


# -- against nvidia-smi


def compare(seconds: int) -> None:
    """Print how far our readings deviate from nvidia-smi's, and nvidia-smi's from each other."""
    fields = known_fields()
    source = Nvidia(Scope(pids=[os.getpid()]), nvml.load(), patience_s=30.0)
    differences: dict[str, list[tuple[float, float, float]]] = {}
    last: dict[str, float] = {}
    before = query(fields)
    for _ in range(seconds):
        tick = Tick(time.monotonic())
        source.sample(tick)
        after = query(fields)
        for key, value in {**tick.gauges, **tick.counters}.items():
            last[key] = value
            _, index, name = key.split(".", 2)
            if name in fields and index.isdigit():
                factor = next(factor for ours, _, factor, _ in QUERIES if ours == name)
                pair = before.get((index, name)), after.get((index, name))
                if pair[0] is not None and pair[1] is not None:
                    differences.setdefault(name, []).append((value * factor, pair[0], pair[1]))
        time.sleep(max(0.0, 1.0 - (time.monotonic() - tick.mono_s)))
        before = query(fields)
    source.close()
    print(f"\n{'reading':26}{'n':>4}{'ours':>12}{'smi':>12}{'outside':>10}{'smi itself':>12}")
    for name, _, _, tolerance in QUERIES:
        rows = differences.get(name)
        if not rows:
            print(f"{name:26}{'–':>4}  {'no field of nvidia-smi' if name not in fields else 'no value'}")
            continue
        outside = max(max(min(a, b) - ours, ours - max(a, b), 0.0) for ours, a, b in rows)
        jitter = max(abs(a - b) for _, a, b in rows)
        verdict = "" if outside <= max(jitter, tolerance) else "  OFF"
        ours_mean = mean(ours for ours, _, _ in rows)
        smi_mean = mean((a + b) / 2 for _, a, b in rows)
        print(
            f"{name:26}{len(rows):4}{ours_mean:12.2f}{smi_mean:12.2f}{outside:10.2f}{jitter:12.2f}{verdict}"
        )
    print("\nlast values of all keys:")
    for key in sorted(last):
        print(f"  {key:44}{last[key]:20,.2f}")
    print("facts:", source.facts)
    print("absent:", source.absent)


def compare_process(pid: int) -> None:
    """Print what the collector and nvidia-smi report about the process that generates the load."""
    source = Nvidia(Scope(pids=[pid]), nvml.load(), patience_s=30.0)
    use: dict[str, float] = {}
    for _ in range(5):
        tick = Tick(time.monotonic())
        source.sample(tick)
        use.update({key: value for key, value in tick.gauges.items() if key.startswith("gpu.process.")})
        time.sleep(1.0)
    source.close()
    print(f"\nthe load's process, {pid}, as we see it:")
    for key in sorted(use):
        print(f"  {key:44}{use[key]:20,.2f}")
    print("absent:", source.absent)
    print("as nvidia-smi sees it:")
    print(smi("--query-compute-apps=pid,used_gpu_memory", "--format=csv"))
    print(smi("pmon", "-c", "2", "-s", "um"))
    print(smi("dmon", "-c", "2", "-s", "pucvmet"))


def known_fields() -> dict[str, str]:
    """Our name → nvidia-smi's, for the fields that this version of nvidia-smi supports."""
    fields = {}
    for ours, names, _, _ in QUERIES:
        for name in names:
            if "not a valid field" not in smi(f"--query-gpu={name}", "--format=csv,noheader,nounits"):
                fields[ours] = name
                break
    return fields


def query(fields: dict[str, str]) -> dict[tuple[str, str], float]:
    """(index, our name) → nvidia-smi's value; "[N/A]" is omitted."""
    text = smi(f"--query-gpu=index,{','.join(fields.values())}", "--format=csv,noheader,nounits")
    values = {}
    for line in text.splitlines():
        index, *cells = [cell.strip() for cell in line.split(",")]
        for name, cell in zip(fields, cells, strict=False):
            try:
                values[index, name] = float(cell)
            except ValueError:  # [N/A], [Not Supported]
                continue
    return values


def smi(*arguments: str) -> str:
    completed = subprocess.run(["nvidia-smi", *arguments], capture_output=True, text=True, check=False)
    return (completed.stdout + completed.stderr).strip()


# -- what it costs


class Timed:
    """The library, with the duration of each call recorded."""

    def __init__(self, inner: ctypes.CDLL) -> None:
        self._inner = inner
        self.took_us: dict[str, list[float]] = {}

    def __getattr__(self, name: str) -> Any:
        function = getattr(self._inner, name)

        def call(*arguments: Any) -> int:
            began_ns = time.perf_counter_ns()
            code: int = function(*arguments)
            self.took_us.setdefault(name, []).append((time.perf_counter_ns() - began_ns) / 1e3)
            return code

        return call


def costs() -> None:
    """Print the duration of a sample at 1 Hz, and of each call to the driver."""
    source = Nvidia(Scope(pids=[os.getpid()]), nvml.load(), patience_s=30.0)
    source.sample(Tick(time.monotonic()))
    wall_ms, cpu_ms = [], []
    for _ in range(15):
        time.sleep(1.0)
        cpu_ns, began_ns = time.process_time_ns(), time.perf_counter_ns()
        source.sample(Tick(time.monotonic()))
        wall_ms.append((time.perf_counter_ns() - began_ns) / 1e6)
        cpu_ms.append((time.process_time_ns() - cpu_ns) / 1e6)
    source.close()
    print(f"\na sample at 1 Hz: {median(wall_ms):.2f} ms (longest {max(wall_ms):.2f}), ", end="")
    print(f"CPU {median(cpu_ms):.2f} ms (mean {mean(cpu_ms):.2f}, most {max(cpu_ms):.2f})")
    timed = Timed(nvml.load())
    source = Nvidia(Scope(pids=[os.getpid()]), timed, patience_s=30.0)
    for _ in range(30):
        source.sample(Tick(time.monotonic()))
        time.sleep(0.4)
    source.close()
    print(f"{'call':48}{'n':>5}{'median µs':>12}{'longest':>12}")
    for name, took in sorted(timed.took_us.items(), key=lambda pair: -sum(pair[1])):
        print(f"{name:48}{len(took):5}{median(took):12.1f}{max(took):12.1f}")


def memory_of_a_monitor() -> None:
    """Print the memory of a real monitor after 10 s, with and without the collector, and what it recorded."""
    for sources in ("-nvidia", "all"):
        with tempfile.TemporaryDirectory() as folder:
            command = [sys.executable, __file__, "--monitored", folder, sources]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            print(f"\nmonitor with collectors {sources}: {done.stdout}{done.stderr}", end="")


def be_monitored(folder: str, sources: str) -> None:
    """A run of 10 s that prints the memory of its monitor at the end."""
    import runvitals

    settings = runvitals.Settings(dir=folder, collectors=[sources], quiet=True)
    run = runvitals.init(project="check", settings=settings)
    time.sleep(10.0)
    for pid in filter(str.isdigit, os.listdir("/proc")):
        sizes = text_of(f"/proc/{pid}/smaps_rollup")
        if sizes and text_of(f"/proc/{pid}/comm") == "runvitals\n":
            for line in sizes.split("\n"):
                if line.startswith(("Rss:", "Pss:", "Private_Dirty:")):
                    print(*line.split(), end="  ")
            ticks = text_of(f"/proc/{pid}/stat").rpartition(")")[2].split()[11:13]
            print("CPU", sum(map(int, ticks)) * 1000 // os.sysconf("SC_CLK_TCK"), "ms")
    run.finish()


def text_of(path: str) -> str:
    try:
        with open(path, encoding="utf-8") as file:
            return file.read()
    except OSError:  # it ended
        return ""


# -- a load


def burn(seconds: float) -> None:
    """Keep copying 2 GiB in the memory of the first GPU, with the driver's CUDA library."""
    cuda = ctypes.CDLL("libcuda.so.1")
    device, context = ctypes.c_int(), ctypes.c_void_p()
    buffers = (ctypes.c_uint64(), ctypes.c_uint64())
    size = ctypes.c_size_t(2 << 30)

    def do(name: str, *arguments: Any) -> None:
        code = getattr(cuda, name)(*arguments)
        if code:
            raise RuntimeError(f"{name} returned {code}")

    do("cuInit", 0)
    do("cuDeviceGet", ctypes.byref(device), 0)
    do("cuCtxCreate_v2", ctypes.byref(context), 0, device)
    for buffer in buffers:
        do("cuMemAlloc_v2", ctypes.byref(buffer), size)
    until_s = time.monotonic() + seconds
    while time.monotonic() < until_s:
        for _ in range(50):
            do("cuMemcpyDtoD_v2", buffers[0], buffers[1], size)
        do("cuCtxSynchronize")


if __name__ == "__main__":
    main()
