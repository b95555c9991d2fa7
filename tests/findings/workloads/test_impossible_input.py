"""Input that no sampler should send is judged without an error, within bounds, and as JSON."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest

from runvitals.findings.judge import judge
from runvitals.findings.observation import HostSamples, observe
from runvitals.findings.training import LoggedColumn, Mark
from tests.findings.workloads.workload import START_MS

COUNT = 1200
TIMES = START_MS + np.arange(COUNT, dtype=np.int64) * 5000
GPU_KEYS = (
    *("gpu", "powerWatts", "smClock", "temp", "memoryAllocated", "memoryAllocatedBytes", "otherMemoryBytes"),
    *("enforcedPowerLimitWatts", "powerPercent", "pcieLinkGen", "maxPcieLinkGen", "pcieLinkWidth"),
    *("maxPcieLinkWidth", "unCorrectedMemoryErrors", "criticalErrors", "recoveryAction", "smActive"),
    *("throttle.swThermalSeconds", "throttle.swPowerCapSeconds", "throttle.hwSlowdownSeconds"),
    *("dramActive", "pipeTensorActive", "graphicsActive", "nvlinkBytes"),
)
KEYS = (
    *(f"gpu.0.{name}" for name in GPU_KEYS),
    *("gpu.1.gpu", "gpu.1.powerWatts", "gpu.process.0.memoryAllocatedBytes", "trn.0.neuroncore_utilization"),
    *("tpu.0.dutyCycle", "cpu", "cpu.mean", "cpu.ofLimit", "cpu.iowait", "cpu.steal", "memory_percent"),
    *("proc.memory.rssMB", "proc.cpu.threads", "proc.count", "proc.cpu.throttledPercent"),
    *("proc.memory.oomKills", "swap.used", "memory.pressureAvg10", "io.pressureAvg10"),
    *("io.pressureSeconds", "disk.in", "disk.out", "disk./.usagePercent", "network.recv", "network.sent"),
    *("network.ib.mlx5_0.1.xmitBytes", "network.ib.mlx5_0.1.recvBytes", "cgroup.memory.workingSetMB"),
    *("cgroup.memory.limitMB", "cgroup.cpu.limit"),
)
ODD_KEYS = (
    *("", ".", "gpu.", "gpu..gpu", "gpu.0.", "gpu.x.gpu", "gpu.-1.gpu", "gpu.00.gpu", "gpu.٣.gpu"),
    *("gpu.99999999999999999999.gpu", "gpu.0.mig.1.0.gpu", "gpu.0.mig..gpu", "trn..x", "tpu.0", "cpu."),
    *("disk..usagePercent", "disk.usagePercent", "disk./a b/ü\n.usagePercent", "network.ena.bwInExceeded"),
    *("ipu.0.ipu utilisation (%)", "gpu.process.x.memoryAllocatedBytes", "network.ib.", "a" * 10_000),
    *("gpu.0.throttle.Seconds", "disk.%s{}.utilization"),
)
noise = np.random.default_rng(1)
Values = Callable[[int], Any]


def host(values: Values, times: Any = TIMES, keys: tuple[str, ...] = KEYS, **more: Any) -> HostSamples:
    """A host with the same kind of values in all series."""
    times = np.asarray(times, dtype=np.int64)
    columns = {key: (times, np.asarray(values(len(times)), dtype=np.float64)) for key in keys}
    return HostSamples("a", columns, **more)


def any_load(count: int) -> Any:
    """Loads without any order."""
    return noise.uniform(0, 100, count)


def sometimes(value: float, share: float) -> Values:
    """Loads of which some are a value."""
    return lambda count: np.where(noise.random(count) < share, value, noise.uniform(0, 100, count))


ODD_MACHINE = {
    "gpu_nvidia": [
        None,
        3,
        {"index": "0"},
        {"index": 0, "name": None, "max_sm_clock_mhz": "fast", "visible": "no"},
        {"index": 0, "max_sm_clock_mhz": float("nan")},
        {"index": 1, "max_sm_clock_mhz": 1e-300},
    ],
    "cpu": [1],
    "gpu_amd": {"index": 0},
    "gpu_": None,
}
HOSTS: dict[str, list[HostSamples]] = {
    "no hosts": [],
    "a host without series": [HostSamples("a", {})],
    "empty series": [host(any_load, [])],
    "one sample": [host(any_load, TIMES[:1])],
    "two samples at once": [host(any_load, [START_MS, START_MS])],
    "gaps only": [host(lambda count: np.full(count, np.nan))],
    "infinite": [host(lambda count: np.full(count, np.inf))],
    "negatively infinite": [host(lambda count: np.full(count, -np.inf))],
    "a few infinite": [host(sometimes(np.inf, 0.01))],
    "the last half infinite": [host(lambda count: np.where(np.arange(count) > count / 2, np.inf, 50))],
    "too large": [host(lambda count: np.where(np.arange(count) % 2, 1e308, -1e308))],
    "too small": [host(lambda count: np.full(count, 5e-324))],
    "zero": [host(np.zeros)],
    "negative": [host(lambda count: np.full(count, -7.0))],
    "falling counters": [host(lambda count: -np.arange(count) * 1e9)],
    "exploding counters": [host(lambda count: np.exp(np.linspace(0, 700, count)))],
    "zigzag": [host(lambda count: np.arange(count) % 3 * 1e12)],
    "without order": [host(any_load)],
    "times reversed": [host(any_load, TIMES[::-1])],
    "times doubled": [host(any_load, np.repeat(TIMES[:120], 10))],
    "times in 1970 and 2300": [host(any_load, [0, START_MS, 10_413_792_000_000])],
    "negative times": [host(any_load, TIMES - 2 * START_MS)],
    "a sample a year later": [host(any_load, [*TIMES, START_MS + 31_536_000_000])],
    "times beyond all": [host(any_load, [-(2**61), START_MS, 2**61])],
    "hosts a day apart": [host(any_load), host(any_load, TIMES + 86_400_000)],
    "odd keys": [host(any_load, keys=ODD_KEYS)],
    "odd facts": [host(any_load, machine=ODD_MACHINE)],
    "odd ranks": [host(any_load, ranks={0: -1, 99: 5})],
    **{f"interval {value}": [host(any_load, interval_s=value)] for value in (0.0, -5.0, 1e9)},
}


def rows(times: Any, steps: Any, values: Any, name: str = "loss") -> dict[str, LoggedColumn]:
    """A logged value."""
    return {
        name: LoggedColumn(
            np.asarray(times, np.int64), np.asarray(steps, np.int64), np.asarray(values, np.float64)
        )
    }


ROW_MS = TIMES[::2]
ONES = np.ones(len(ROW_MS))
NUMBERS = np.arange(len(ROW_MS))
LOGGED: dict[str, Mapping[str, LoggedColumn]] = {
    "none": {},
    "empty": rows([], [], []),
    "one": rows([START_MS], [0], [1]),
    "usual": rows(ROW_MS, NUMBERS, np.linspace(3, 1, len(ROW_MS))),
    "steps fall": rows(ROW_MS, NUMBERS[::-1], ONES),
    "steps jump": rows(ROW_MS, NUMBERS % 3 * 2**61, ONES),
    "no steps": rows(ROW_MS, np.full(len(ROW_MS), -1), ONES),
    "the largest step": rows(ROW_MS, np.full(len(ROW_MS), 2**63 - 1), ONES),
    "at once": rows(np.full(500, START_MS), np.arange(500), np.ones(500)),
    "times reversed": rows(ROW_MS[::-1], NUMBERS, ONES),
    "before the start": rows(ROW_MS - 10**12, NUMBERS, ONES),
    "after the end": rows(ROW_MS + 10**12, NUMBERS, ONES),
    "not a number": rows(ROW_MS, NUMBERS, np.full(len(ROW_MS), np.nan)),
    "too large": rows(ROW_MS, NUMBERS, np.where(NUMBERS > 300, 1e308, -1e308)),
    "infinite wait": rows(ROW_MS, NUMBERS, np.full(len(ROW_MS), np.inf), "data_time"),
    "impossible wait": rows(ROW_MS, NUMBERS, np.where(NUMBERS % 2, np.nan, -1e300), "train/dataloader_ms"),
}
MARKS = [
    Mark(START_MS - 10**13, "checkpoint"),
    Mark(START_MS + 5, "validation ends"),
    Mark(START_MS + 6, "validation begins"),
]


def check(hosts: list[HostSamples], logged: Mapping[str, LoggedColumn], state: str, ended_ms: int) -> None:
    """Judge it, and check the bounds of what is found."""
    with np.errstate(all="ignore"):
        run = observe(
            hosts,
            logged,
            MARKS,
            state=state,
            started_ms=START_MS,
            ended_ms=None if state == "running" else ended_ms,
            now_ms=ended_ms,
            price_per_device_hour=2.0,
        )
        findings = judge(run)
    json.dumps(findings.to_json(), allow_nan=False)
    for finding in findings.findings:
        assert 0 <= finding.share <= 1
        assert finding.device_hours >= 0
        assert finding.to_ms is None or finding.to_ms >= finding.from_ms
        assert not any(word in finding.text for word in (" nan", " inf ", "-inf", "None", "e+3"))


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("ended_ms", [int(TIMES[-1]), START_MS - 5000], ids=["ended after", "ended before"])
@pytest.mark.parametrize("state", ["running", "finished", "crashed"])
@pytest.mark.parametrize("name", HOSTS)
def test_impossible_samples(name: str, state: str, ended_ms: int) -> None:
    check(HOSTS[name], LOGGED["usual"], state, ended_ms)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("state", ["running", "finished", "crashed"])
@pytest.mark.parametrize("name", LOGGED)
def test_impossible_rows(name: str, state: str) -> None:
    check(HOSTS["without order"], LOGGED[name], state, int(TIMES[-1]))
