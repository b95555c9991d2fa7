"""The cost of the sources for accelerators and exporters: CPU time of this process in ms.

    python -m benchmarks.sources

The hardware is faked as in the tests: trees of files, programs that print recorded output, and servers in
other processes, whose own cost is not counted. A fake library runs in this process and is counted. Every
figure is the median of several batches, repeated without pauses; with cold caches, at 1 Hz, the same work
takes two to three times as long.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from multiprocessing.connection import Connection
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

from tests.monitoring.collectors.amd import cards
from tests.monitoring.collectors.apple import macs
from tests.monitoring.collectors.exporters import Exporter, ok
from tests.monitoring.collectors.graphcore import ipus
from tests.monitoring.collectors.nvidia import test_smi as nvidia_smi
from tests.monitoring.collectors.nvidia.fake import FakeGpu, FakeNvml
from tests.monitoring.collectors.plumbing.test_tool import program
from tests.monitoring.collectors.tpu.servers import FakeRuntime
from tests.monitoring.collectors.tpu.test_collector import V5E
from tests.monitoring.collectors.trainium import reports
from tests.monitoring.collectors.trees import plant, put

from runvitals.monitoring.collectors.amd.collector import AmdGpus
from runvitals.monitoring.collectors.amd.sysfs import find_cards
from runvitals.monitoring.collectors.apple import ioreg_output
from runvitals.monitoring.collectors.apple.macmon_output import MacmonSample
from runvitals.monitoring.collectors.base import Scope, Tick
from runvitals.monitoring.collectors.graphcore.collector import Ipus
from runvitals.monitoring.collectors.nvidia.collector import Nvidia
from runvitals.monitoring.collectors.nvidia.smi import NvidiaSmi
from runvitals.monitoring.collectors.openmetrics.endpoint import ExporterEndpoint
from runvitals.monitoring.collectors.plumbing import pci
from runvitals.monitoring.collectors.sources import built_in
from runvitals.monitoring.collectors.tpu.chips import TpuChip
from runvitals.monitoring.collectors.tpu.collector import Tpu
from runvitals.monitoring.collectors.trainium import report
from runvitals.monitoring.collectors.trainium.collector import Trainium
from runvitals.monitoring.collectors.vendors.adapter import Smi
from runvitals.monitoring.collectors.vendors.gaudi import GAUDI

WAIT_S = 60.0
VENDORS = ("nvidia", "dcgm", "amd", "trainium", "tpu", "gaudi", "intel", "npu", "graphcore")
PCI_DEVICES = 100


class Cost(NamedTuple):
    """A measured reading, and the CPU time of one repetition in ms."""

    what: str
    ms: float


class Meter:
    """Measures the CPU time of this process, its threads included.

    Args:
        batches: of which the median counts.
        repeats: in each batch.
    """

    def __init__(self, batches: int = 7, repeats: int = 20) -> None:
        self.batches = batches
        self._repeats = repeats

    def repeated(self, work: Callable[[], object]) -> float:
        """ms of CPU per call."""
        work()
        costs = []
        for _ in range(self.batches):
            before = time.process_time_ns()
            for _ in range(self._repeats):
                work()
            costs.append((time.process_time_ns() - before) / self._repeats / 1e6)
        return median(costs)

    def sampled(self, source: Any, every_s: float = 5.0, pause_s: float = 0.005) -> float:
        """ms of CPU per sample of a collector. It is sampled until it has values.

        Args:
            every_s: time between two ticks; no time passes in fact.
            pause_s: before it is asked again.
        """
        mono_s = 1000.0

        def sample() -> None:
            nonlocal mono_s
            mono_s += every_s
            end_s = time.monotonic() + WAIT_S
            while not _has_values(source, mono_s):
                if time.monotonic() > end_s:
                    raise TimeoutError(f"{source.name}: the fake hardware did not answer")
                time.sleep(pause_s)

        try:
            return self.repeated(sample)
        finally:
            source.close()

    def answered(self, source: Any) -> float:
        """ms of CPU per output of a tool that a collector runs: starting it, and reading it."""
        return self.sampled(source, every_s=30.0, pause_s=0.02)


def _has_values(source: Any, mono_s: float) -> bool:
    tick = Tick(mono_s)
    source.sample(tick)
    return bool(tick.gauges)


def main() -> None:
    parser = argparse.ArgumentParser(description="The cost of the sources for accelerators and exporters.")
    parser.add_argument("--quick", action="store_true", help="once each, to see that everything works")
    meter = Meter(1, 1) if parser.parse_args().quick else Meter()
    measures: tuple[Callable[[Path, Meter], Iterator[Cost]], ...] = (
        absent, pci_scan, nvidia, amd, apple, tpu, trainium, graphcore, vendor_tool, openmetrics,
    )  # fmt: skip
    width = 66
    print(f"{'what':{width}}{'ms of CPU':>10}")
    for measure in measures:
        with tempfile.TemporaryDirectory() as folder:
            for cost in measure(Path(folder), meter):
                print(f"{cost.what:{width}}{cost.ms:10.3f}", flush=True)


# -- machines without the hardware


def absent(folder: Path, meter: Meter) -> Iterator[Cost]:
    """All probes of accelerators, in a new process with the monitor's flags, where none is found."""
    probes = [built_in("linux")[name] for name in VENDORS]
    script = (
        "import sys, time; sys.path.insert(0, sys.argv[1])\n"
        "from runvitals.monitoring.collectors.sources import load\n"
        "from runvitals.monitoring.collectors.base import Absent, Scope\n"
        "scope, before = Scope(host_root=sys.argv[2]), time.process_time_ns()\n"
        "for place in sys.argv[3:]:\n"
        "    try: load(place)(scope)\n"
        "    except Absent: pass\n"
        "print((time.process_time_ns() - before) / 1e6)\n"
    )
    source = str(Path(__file__).parents[1] / "src")
    command = [sys.executable, "-I", "-S", "-E", "-c", script, source, str(folder), *probes]
    times = [
        float(subprocess.run(command, capture_output=True, check=True).stdout) for _ in range(meter.batches)
    ]
    yield Cost(f"no accelerator: {len(VENDORS)} probes, imports included", median(times))


def pci_scan(folder: Path, meter: Meter) -> Iterator[Cost]:
    for number in range(PCI_DEVICES):
        device = f"sys/bus/pci/devices/0000:{number:02x}:00.0"
        put(folder, f"{device}/class", "0x020000\n")
        put(folder, f"{device}/vendor", "0x8086\n")

    def scan() -> None:
        pci.cards(Scope(host_root=str(folder)))

    yield Cost(
        f"no accelerator: the PCI bus, per device of {PCI_DEVICES}", meter.repeated(scan) / PCI_DEVICES
    )


# -- vendors


def nvidia(folder: Path, meter: Meter) -> Iterator[Cost]:
    library = FakeNvml([FakeGpu(number) for number in range(8)])
    source = Nvidia(Scope(pids=[os.getpid()]), library, patience_s=WAIT_S)
    yield Cost("nvidia: 8 GPUs by NVML, with the cost of the fake library", meter.sampled(source))
    output = nvidia_smi.document(*(nvidia_smi.gpu(number, nvidia_smi.NEW) for number in range(8)))
    tool = program(folder, "nvidia-smi", f"cat {written(folder, output)}")
    yield Cost("nvidia: 8 GPUs by nvidia-smi, per output", meter.answered(NvidiaSmi(Scope(), tool, "", True)))


def amd(folder: Path, meter: Meter) -> Iterator[Cost]:
    tree: dict[str, str] = {}
    for number in range(8):
        tree |= cards.card(number, f"0000:{number + 3:02x}:00.0")
    scope = plant(folder, tree)
    source = AmdGpus(scope, find_cards(str(folder)), None, {}, "/proc")
    yield Cost("amd: 8 cards in sysfs, per card", meter.sampled(source) / 8)


def apple(folder: Path, meter: Meter) -> Iterator[Cost]:
    line = json.dumps(macs.SAMPLE).encode()
    yield Cost("apple: a line of macmon", meter.repeated(lambda: MacmonSample(json.loads(line))))
    for name, text in (
        ("tree", macs.tree(macs.STATISTICS)),
        ("list", macs.plist(macs.entry(macs.STATISTICS))),
    ):
        output = text.encode()
        what = f"apple: an answer of ioreg as {name}, {len(output) / 1000:.1f} kB"
        yield Cost(what, meter.repeated(lambda output=output: ioreg_output.parse(output)))  # type: ignore[misc]


def tpu(folder: Path, meter: Meter) -> Iterator[Cost]:
    with served(_tpu_runtime) as port:
        chips = [TpuChip(index, "", f"/dev/accel{index}", "v5e", 16, 1) for index in range(4)]
        source = Tpu(Scope(), chips, {"TPU_RUNTIME_METRICS_PORTS": str(port)})
        yield Cost("tpu: 4 devices, per read", meter.sampled(source))


def trainium(folder: Path, meter: Meter) -> Iterator[Cost]:
    idle = reports.report(system={"neuron_hw_counters": reports.ecc([0, 0])})
    two_cores = reports.report(reports.process(os.getpid(), "", {0: 80.0, 1: 60.0}))
    models = {"loaded_models": [{"name": "x" * 620, "uuid": "ab", "model_id": 1, "subgraphs": {}}] * 20}
    many = [reports.process(pid, "", {pid: 90.0}, cores=32) for pid in range(32)]
    for process in many:
        process["report"]["memory_used"] |= models
    for name, line in (("idle", idle), ("one process", two_cores), ("32 processes", reports.report(*many))):
        size = f"{len(line) / 1000:.1f} kB"
        yield Cost(f"trainium: a report, {name} ({size})", _report_cost(line, meter))


def _report_cost(line: bytes, meter: Meter) -> float:
    source = Trainium(Scope(pids=[os.getpid()]), None, None, {})
    try:
        return meter.repeated(lambda: source._read(report.parse(line, models=False), 1000.0))
    finally:
        source.close()


def graphcore(folder: Path, meter: Meter) -> Iterator[Cost]:
    devices = [ipus.card(number, os.getpid()) for number in range(16)]
    module = f"DEVICES = {devices!r}\nclass gcipuinfo:\n    def setUpdateMode(self, automatic): pass\n"
    put(folder, "gcipuinfo.py", f"{module}    def getDevices(self): return DEVICES\n")
    source = Ipus(Scope(pids=[os.getpid()]), str(folder), patience_s=WAIT_S)
    yield Cost("graphcore: 16 IPUs, per IPU", meter.sampled(source) / 16)


def vendor_tool(folder: Path, meter: Meter) -> Iterator[Cost]:
    row = "{}, 01P0-{}, HL-225, 1.19.0, 98304 MiB, 24576 MiB, 73728 MiB, 300 W, 600 W, 51 C, 88 %\n"
    output = "".join(row.format(number, number) for number in range(8))
    tool = program(folder, "hl-smi", f"cat {written(folder, output)}")
    yield Cost("others: a call of a tool and its output for 8 devices", meter.answered(Smi(GAUDI, tool)))


def openmetrics(folder: Path, meter: Meter) -> Iterator[Cost]:
    with served(_exporter) as url:
        endpoint = ExporterEndpoint("gpus", url, {}, None)
        yield Cost("openmetrics: 480 series with 7 labels, per read", meter.sampled(endpoint))


def written(folder: Path, output: str) -> Path:
    path = folder / "output"
    path.write_text(output)
    return path


# -- servers in other processes


@contextmanager
def served(serve: Callable[[Connection], None]) -> Iterator[Any]:
    """Runs a server in another process; the value that it sends first, its address."""
    context = multiprocessing.get_context("spawn")
    here, there = context.Pipe()
    process = context.Process(target=serve, args=(there,))
    process.start()
    try:
        yield here.recv()
    finally:
        here.send("stop")
        process.join()


def _tpu_runtime(parent: Connection) -> None:
    runtime = FakeRuntime(dict(V5E))
    parent.send(runtime.port)
    parent.recv()
    runtime.stop()


def _exporter(parent: Connection) -> None:
    labels = (
        'UUID="GPU-1",pci_bus_id="0",device="nvidia{gpu}",modelName="H100",Hostname="a",gpu="{gpu}",job="x"'
    )
    lines = [
        f"METRIC_{metric}{{{labels.format(gpu=gpu)}}} {metric + gpu / 10}\n"
        for metric in range(60)
        for gpu in range(8)
    ]
    with Exporter(ok("".join(lines))) as exporter:
        parent.send(exporter.url)
        parent.recv()


if __name__ == "__main__":
    main()
