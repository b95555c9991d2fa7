"""Public reports of what users saw, rebuilt: each has a right answer."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from runvitals.findings.finding import Findings
from runvitals.findings.judge import judge
from runvitals.findings.observation import HostSamples, observe
from runvitals.findings.windows import MAX_WINDOWS, windows_of

GIB = 2.0**30
START_MS = 1_790_000_000_000


def findings_of(
    seconds: Any, series: dict[str, Any], *, gpu: dict[str, Any] | None = None, state: str = "running"
) -> Findings:
    """Judge a run of one host whose values are constant or given for each sample."""
    seconds = np.asarray(seconds, dtype=np.float64)
    times = START_MS + (seconds * 1000).astype(np.int64)
    columns = {
        key: (times, np.broadcast_to(np.asarray(values, dtype=np.float64), times.shape).copy())
        for key, values in series.items()
    }
    machine = {"gpu_nvidia": [gpu]} if gpu else {}
    run = observe(
        [HostSamples("node0", columns, machine=machine)],
        state=state,
        started_ms=START_MS,
        ended_ms=None if state == "running" else int(times[-1]),
        now_ms=int(times[-1]),
    )
    return judge(run)


def ids(findings: Findings, *severities: str) -> set[str]:
    """The ids of findings of these severities, by default all."""
    return {each.id for each in findings.findings if not severities or each.severity in severities}


def test_a_broken_gpu_that_reports_load_needs_a_reset() -> None:
    """utkuozdemir/nvidia_gpu_exporter#393: "ERR!", 93 % utilisation, no memory, no process."""
    seconds = np.arange(0, 600, 5)
    series = {
        "gpu.13.gpu": 0,
        "gpu.13.memoryAllocated": 0.005,
        "gpu.13.powerWatts": 4,
        "gpu.13.recoveryAction": 0,
        "gpu.14.gpu": 93,
        "gpu.14.memoryAllocated": 0.005,
        "gpu.14.powerWatts": 99,
        "gpu.14.recoveryAction": 1,
        "gpu.14.memoryAllocatedBytes": 2**20,
    }
    findings = findings_of(seconds, series)
    assert findings.verdict == "device_needs_reset"
    assert findings.findings[0].devices == (14,)
    assert "needs a reset" in findings.text
    assert "93 % utilisation without memory" in findings.text


def test_a_clock_that_a_wrong_power_sensor_holds_down() -> None:
    """NVIDIA/open-gpu-kernel-modules#1237: 588 W on a laptop with a limit of 35 W."""
    seconds = np.arange(0, 93, 3)
    series = {
        "gpu.0.powerWatts": 588.5,
        "gpu.0.enforcedPowerLimitWatts": 35,
        "gpu.0.powerPercent": 1681,
        "gpu.0.powerSuspect": 1,
        "gpu.0.smClock": 210,
        "gpu.0.temp": 48,
        "gpu.0.gpu": np.where(seconds < 33, 0, 97),
        "gpu.0.throttle.swPowerCapSeconds": seconds * 0.993,
    }
    findings = findings_of(
        seconds, series, gpu={"index": 0, "name": "RTX 2000 Ada", "max_sm_clock_mhz": 3105}
    )
    assert findings.verdict == "clock_limited"
    assert "6.8 %" in findings.text
    assert "power limit" in findings.text
    assert "sensor_implausible" in ids(findings, "info")


def test_a_power_cap_that_was_chosen_is_information() -> None:
    """ninfer-3090 PR 72: a 3090 limited to 315 W on purpose."""
    seconds = np.arange(0, 330, 2)
    noise = np.random.default_rng(0)
    series = {
        "gpu.0.powerWatts": 313.8 + noise.normal(0, 0.5, len(seconds)),
        "gpu.0.enforcedPowerLimitWatts": 315,
        "gpu.0.powerPercent": 99.6,
        "gpu.0.smClock": np.where(noise.random(len(seconds)) < 0.7, 1500, 1515),
        "gpu.0.temp": 69,
        "gpu.0.gpu": 98,
        "gpu.0.throttle.swPowerCapSeconds": seconds * 0.99,
    }
    findings = findings_of(seconds, series, gpu={"index": 0, "name": "RTX 3090", "max_sm_clock_mhz": 1695})
    assert ids(findings, "warning", "critical") == set()
    assert findings.verdict == "healthy"
    assert "power_capped" in ids(findings, "info")


def test_three_ways_to_hold_a_gpu_without_using_it() -> None:
    """slurm-job-exporter#65: nothing runs, a live process does nothing, a dead process kept memory."""
    seconds = np.arange(0, 900, 10)
    series = {
        **{f"gpu.{index}.gpu": 0 for index in range(3)},
        **{f"gpu.{index}.otherMemoryBytes": 0 for index in range(3)},
        "gpu.0.memoryAllocated": 0.005,
        "gpu.0.memoryAllocatedBytes": 0.004 * GIB,
        "gpu.1.memoryAllocated": 92,
        "gpu.1.memoryAllocatedBytes": 73.6 * GIB,
        "gpu.process.1.memoryAllocatedBytes": 73.5 * GIB,
        "gpu.2.memoryAllocated": 92,
        "gpu.2.memoryAllocatedBytes": 73.6 * GIB,
    }
    findings = findings_of(seconds, series)
    by_id = {each.id: each for each in findings.findings}
    assert by_id["idle_devices"].devices == (0,)
    assert by_id["idle"].devices == (1,)
    assert by_id["held_memory_without_process"].devices == (2,)
    assert all(each.device_hours > 0.1 for each in by_id.values())


def test_a_job_that_worked_once_is_idle_since_then() -> None:
    """PrincetonUniversity/jobstats#28: 20 minutes of work, then 4 hours of nothing."""
    seconds = np.arange(0, 20 * 60 + 4 * 3600, 30)
    works = seconds < 1200
    series = {"gpu.0.gpu": np.where(works, 70, 0), "gpu.0.powerWatts": np.where(works, 240, 62)}
    findings = findings_of(seconds, series)
    assert findings.verdict == "idle"
    idle = findings.findings[0]
    assert abs(idle.from_ms - START_MS - 1_200_000) <= 60_000
    assert idle.to_ms is None
    assert "from 20 min after the start" in idle.text
    assert "4 h 00 min" in idle.text
    assert [each.id for each in findings.findings].count("idle") == 1


def test_idleness_ends_when_work_returns() -> None:
    seconds = np.arange(0, 3 * 3600, 30)
    works = (seconds < 1200) | (seconds > 2.5 * 3600)
    findings = findings_of(
        seconds, {"gpu.0.gpu": np.where(works, 70, 0), "gpu.0.powerWatts": np.where(works, 240, 62)}
    )
    idle = next(each for each in findings.findings if each.id == "idle")
    assert idle.to_ms is not None
    assert abs(idle.to_ms - START_MS - 9_000_000) <= 60_000


@pytest.mark.parametrize(
    ("counter_s", "expected"),
    [
        pytest.param(lambda t: 173.45 + 0.5 * t, True, id="grows by half of the time"),
        pytest.param(lambda t: np.full_like(t, 173.45), False, id="history since boot"),
        pytest.param(lambda t: np.where(t < 300, 173.45, 0.0), False, id="reset by a reload of the driver"),
    ],
)
def test_throttling_follows_from_counters(counter_s: Any, expected: bool) -> None:
    """ollama#13552: the mask says "Not Active" at each sample, and the counter tells 173 s."""
    seconds = np.arange(0, 600, 15.0)
    series = {"gpu.0.gpu": 95, "gpu.0.temp": 80, "gpu.0.throttle.swThermalSeconds": counter_s(seconds)}
    findings = findings_of(seconds, series)
    assert ("thermal_throttling" in ids(findings)) is expected
    if expected:
        assert "50 %" in findings.text


CLASSES = [
    ("idle", 1, 0, 1, 2, "idle"),
    ("tensor-heavy compute", 85, 62, 45, 99, "compute_bound"),
    ("tensor compute", 45, 20, 30, 95, "compute_bound"),
    ("HPC compute", 70, 0, 40, 98, "compute_bound"),
    ("memory-bound", 38, 5, 66, 99, "memory_bound"),
    ("compute-heavy", 88, 4, 30, 99, "compute_bound"),
    ("compute-active", 55, 6, 25, 97, "compute_bound"),
    ("memory-active", 45, 6, 44, 90, "memory_bound"),
    ("busy, low SM use", 9, 0, 5, 100, "launch_bound"),
]


@pytest.mark.parametrize(("name", "active", "tensor", "dram", "busy", "expected"), CLASSES)
def test_classes_of_work(name: str, active: int, tensor: int, dram: int, busy: int, expected: str) -> None:
    """KempnerPulse's classes by NVIDIA's profiling counters."""
    seconds = np.arange(0, 20 * 60 if expected == "idle" else 300, 2)
    series = {
        "gpu.0.smActive": active,
        "gpu.0.pipeTensorActive": tensor,
        "gpu.0.dramActive": dram,
        "gpu.0.graphicsActive": busy,
        "gpu.0.gpu": busy,
    }
    assert expected in ids(findings_of(seconds, series)), name


@pytest.mark.parametrize(("name", "active", "tensor", "dram", "busy", "expected"), CLASSES[1:])
def test_without_profiling_counters_nothing_is_guessed(
    name: str, active: int, tensor: int, dram: int, busy: int, expected: str
) -> None:
    findings = findings_of(np.arange(0, 300, 2), {"gpu.0.gpu": busy, "gpu.0.powerWatts": 200})
    assert ids(findings) == set(), name
    assert {"memory_bound", "compute_bound", "launch_bound"} <= {each.id for each in findings.undecided}


@pytest.mark.parametrize("reading", [np.inf, -np.inf, 1e308], ids=str)
@pytest.mark.parametrize(
    "key",
    [
        "gpu.0.unCorrectedMemoryErrors",
        "gpu.0.recoveryAction",
        "gpu.0.gpu",
        "cpu",
        "memory_percent",
        "disk./.usagePercent",
    ],
)
def test_an_impossible_reading_counts_as_a_gap(key: str, reading: float) -> None:
    seconds = np.arange(0, 600, 5)
    series = {"gpu.0.gpu": 95, "gpu.0.smClock": 1900, "cpu": 20, key: np.where(seconds > 300, reading, 0.0)}
    findings = findings_of(seconds, series, gpu={"index": 0, "max_sm_clock_mhz": np.inf})
    json.dumps(findings.to_json(), allow_nan=False)
    assert ids(findings, "critical", "warning") == set()


def test_a_time_that_is_far_away_makes_no_endless_list_of_windows() -> None:
    windows = windows_of(0, 2**62, 1.0)
    assert windows.count <= MAX_WINDOWS
    assert windows.end_ms >= 2**62


def test_what_goes_on_explains_what_goes_on() -> None:
    """Swapping that begins a window after the reads that it causes is one finding with them."""
    seconds = np.arange(0, 3600, 5)
    late, later = seconds >= 1800, seconds >= 1830
    series = {
        "gpu.0.gpu": np.where(late, 40, 95),
        "cpu.iowait": np.where(late, 45, 0.0),
        "disk.in": np.cumsum(np.where(late, 900.0, 5.0)),
        "swap.used": np.where(later, (seconds - 1800) * 1e7, 0.0),
        "memory.pressureSeconds": np.cumsum(np.where(later, 2.0, 0.0)),
    }
    findings = findings_of(seconds, series)
    assert "swapping" in ids(findings)
    assert "input_bound_disk" not in ids(findings)
