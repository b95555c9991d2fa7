"""What is missing is not zero, and what is usual is no fault."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from runvitals.findings.finding import Findings
from runvitals.findings.judge import judge
from runvitals.findings.observation import HostSamples, observe
from runvitals.findings.training import LoggedColumn, Mark, training_of
from tests.findings.measured import GIB, HOUR, START_MS, accusing, judged, minutes, the

SECONDS = np.arange(0, 3 * HOUR, 10.0)
LATE = SECONDS > 2 * HOUR
STEPS = np.arange(60, 3 * HOUR, 10.0)
H100 = {"index": 0, "name": "NVIDIA H100 80GB HBM3", "max_sm_clock_mhz": 1980, "memory_bytes": 80 * GIB}
LAPTOP = {"index": 0, "name": "NVIDIA GeForce RTX 3070 Laptop GPU", "memory_bytes": 8 * GIB}
GB10 = {"index": 0, "name": "NVIDIA GB10"}


def undecided(findings: Findings) -> set[str]:
    """The rules that could not decide."""
    return {each.id for each in findings.undecided}


def link(generation: Any, width: Any) -> dict[str, Any]:
    """A device at work and its link, of 16 lanes of generation 5 at most."""
    return {
        "gpu.0.gpu": 95,
        "gpu.0.pcieLinkGen": generation,
        "gpu.0.pcieLinkWidth": width,
        "gpu.0.maxPcieLinkGen": 5,
        "gpu.0.maxPcieLinkWidth": 16,
    }


def test_rules_abstain_without_their_signals() -> None:
    """A MIG parent has no utilisation, DCGM may leave everything blank, WSL tells little."""
    blank = np.full(len(SECONDS), np.nan)
    series = {"gpu.0.gpu": blank, "gpu.0.powerWatts": 210, "gpu.0.temp": 48, "gpu.0.smClock": 1410}
    findings = judged(SECONDS, series, devices=[H100])
    assert accusing(findings) == set()
    assert {
        *("input_bound_cpu", "input_bound_disk", "input_bound_network", "cpu_limit", "noisy_neighbour"),
        *("device_used_by_others", "launch_bound", "thermal_throttling", "power_capped", "hw_slowdown"),
        *("clock_limited", "pcie_degraded", "memory_errors", "device_needs_reset", "memory_growth"),
        *("swapping", "out_of_memory_near", "disk_full_soon", "loss_not_finite", "loss_diverged"),
    } <= undecided(findings)


WSL = {"gpu.0.gpu": 92, "gpu.0.memoryAllocated": 60, "gpu.0.powerWatts": 200, "cpu": 30, "memory_percent": 40}
USUAL = {
    "a capped GEMM": ({"gpu.0.gpu": 99, "gpu.0.throttle.swPowerCapSeconds": 0.98 * SECONDS}, H100),
    "a GPU of WSL": (WSL, {"index": 0, "name": "NVIDIA GeForce RTX 4090"}),
    "a link of fewer lanes": (link(5, 8), H100),
    "a link of four lanes": (link(4, 4), LAPTOP),
    "a link of a system on a chip": (link(1, 1), GB10),
    "a link that sleeps": (
        {
            **link(np.where(SECONDS % 1200 < 300, 1, 5), 16),
            "gpu.0.gpu": np.where(SECONDS % 1200 < 300, 0, 95),
        },
        H100,
    ),
    "a desktop": (
        {
            "gpu.0.gpu": 95,
            "gpu.0.memoryAllocated": 70,
            "gpu.0.otherMemoryBytes": 1.5 * GIB,
            "gpu.process.0.memoryAllocatedBytes": 5 * GIB,
        },
        LAPTOP,
    ),
    "a container that does not see its own processes": (
        {"gpu.0.gpu": 95, "gpu.0.memoryAllocated": 70, "gpu.0.otherMemoryBytes": 50 * GIB},
        H100,
    ),
    "unified memory": ({"gpu.0.gpu": 95, "memory_percent": 96, "memory.pressureAvg10": 0}, GB10),
    "a page cache": (
        {
            "gpu.0.gpu": 95,
            "memory_percent": 98,
            "cgroup.memory.workingSetMB": 18_000,
            "cgroup.memory.limitMB": 65_536,
        },
        H100,
    ),
    "a terabyte": ({"gpu.0.gpu": 95, "memory_percent": 93, "cgroup.memory.limitMB": 2 * 2**20}, H100),
    "a warm moment": (
        {"gpu.0.gpu": 95, "gpu.0.throttle.swThermalSeconds": np.where(SECONDS > 5000, 9.0, 0.0)},
        H100,
    ),
    "throttled before": ({"gpu.0.gpu": 95, "gpu.0.throttle.swThermalSeconds": 173_453.0}, H100),
}


@pytest.mark.parametrize("name", USUAL)
def test_what_is_usual_is_no_fault(name: str) -> None:
    series, device = USUAL[name]
    for until_s in (600, 3600, None):
        found = accusing(judged(SECONDS, series, devices=[device], until_s=until_s))
        assert found & {*CAUTIOUS} == set()


CAUTIOUS = (
    *("pcie_degraded", "device_used_by_others", "out_of_memory_near", "thermal_throttling", "power_capped"),
    *("hw_slowdown", "clock_limited", "memory_growth"),
)


def test_a_power_cap_is_information() -> None:
    series, device = USUAL["a capped GEMM"]
    assert the(judged(SECONDS, series, devices=[device]), "power_capped").severity == "info"


def test_unified_memory_for_which_tasks_wait_is_short() -> None:
    series = {"gpu.0.gpu": 95, "memory_percent": 98, "memory.pressureAvg10": np.where(LATE, 30, 0)}
    found = the(judged(SECONDS, series, devices=[GB10]), "out_of_memory_near")
    assert minutes(found)[0] == pytest.approx(120, abs=2)


def test_a_run_that_ended_out_of_memory_within_a_window_says_so() -> None:
    findings = judged([0, 2], {"cpu": 50, "memory_percent": 60}, state="crashed", out_of_memory=True)
    assert findings.verdict == "out_of_memory_near"


def test_a_host_that_swaps_is_not_told_twice() -> None:
    series = {
        "gpu.0.gpu": np.where(LATE, 30, 95),
        "memory_percent": np.where(LATE, 98, 60),
        "swap.used": np.where(LATE, 8 * GIB, 0),
        "memory.pressureAvg10": np.where(LATE, 40, 0),
    }
    assert judged(SECONDS, series, devices=[H100]).verdict == "swapping"


@pytest.mark.parametrize(
    ("xid", "text", "name"),
    [
        (79, "the GPU has fallen off the bus", "device_needs_reset"),
        (119, "time-out of the GPU system processor (GSP)", "device_needs_reset"),
        (48, "double-bit memory error", "memory_errors"),
        (95, "uncontained memory error: the GPU needs a reset", "memory_errors"),
    ],
)
def test_an_xid_is_of_the_memory_or_of_the_device(xid: int, text: str, name: str) -> None:
    errors = np.where(LATE, 1.0, np.nan)
    marks = [Mark(START_MS + 7_205_000, f"GPU 0: Xid {xid}, {text}")]
    series = {"gpu.0.gpu": np.where(LATE, np.nan, 95), "gpu.0.criticalErrors": errors}
    found = accusing(judged(SECONDS, series, devices=[H100], marks=marks))
    assert found & {"device_needs_reset", "memory_errors"} == {name}


@pytest.mark.parametrize(("host", "name"), [("node0", "memory_errors"), ("node1", "device_needs_reset")])
def test_an_xid_is_of_a_device_of_its_own_host(host: str, name: str) -> None:
    """The GPUs of all hosts have the same numbers: what another host's driver told says nothing."""
    series = {"gpu.0.gpu": np.where(LATE, np.nan, 95), "gpu.0.criticalErrors": np.where(LATE, 1.0, np.nan)}
    marks = [Mark(START_MS + 7_205_000, "GPU 0: Xid 48, double-bit memory error", host)]
    found = accusing(judged(SECONDS, series, devices=[H100], marks=marks))
    assert found & {"device_needs_reset", "memory_errors"} == {name}


def test_an_xid_without_a_number_is_of_the_memory_where_its_counters_grow() -> None:
    series = {"gpu.0.gpu": 95, "gpu.0.criticalErrors": np.where(LATE, 1.0, np.nan)}
    assert "device_needs_reset" in accusing(judged(SECONDS, series))
    series["gpu.0.unCorrectedMemoryErrors"] = np.where(LATE, 2.0, 0.0)
    assert accusing(judged(SECONDS, series)) == {"memory_errors"}


def losses(**columns: Any) -> Findings:
    """Judge a run that logged these losses, 3 hours long."""
    rows = {name.replace("__", "/"): (STEPS, values) for name, values in columns.items()}
    return judged(SECONDS, {"gpu.0.gpu": 95}, rows=rows, state="finished")


FALLING = 0.6 + 3 * np.exp(-STEPS / 1800) + np.random.default_rng(2).normal(0, 0.03, len(STEPS))
U = STEPS / STEPS[-1]
HEALTHY_LOSSES: dict[str, dict[str, Any]] = {
    "of agents": {
        "train__loss": 0.1 + 18 * U**2,
        "train__value_loss": 0.2 + 40 * U**2,
        "train__policy_loss": 0.0,
    },
    "of adversaries": {"loss__G": 1 + 5 * U, "loss__D": np.abs(np.sin(40 * U))},
    "of warm restarts": {"train__loss": 0.6 + 1.4 * np.exp(-4 * (U % 0.25) / 0.25)},
    "of harder data": {"train__loss": np.where(U < 0.5, FALLING, 2.4 - 1.6 * (U - 0.5))},
    "of a warm-up": {
        "train__loss": 0.55 + 0.75 * np.clip(U / 0.06, 0, 1) * np.exp(-np.clip(U - 0.06, 0, 1) * 7)
    },
    "of a spike": {"train__loss": FALLING + 5 * np.exp(-(((U - 0.6) / 0.004) ** 2))},
    "of records": {"train__loss": FALLING, "best_val_loss": np.where(U < 0.3, np.inf, 0.8)},
    "of one overflow": {"train__loss": np.where(np.arange(len(U)) == 400, np.nan, FALLING)},
    "of late validation": {"train__loss": FALLING, "val__loss": np.where(U < 0.3, np.nan, 0.8)},
}


@pytest.mark.parametrize("name", HEALTHY_LOSSES)
def test_losses_that_are_fine(name: str) -> None:
    rows = {key.replace("__", "/"): (STEPS, values) for key, values in HEALTHY_LOSSES[name].items()}
    for until_s in (300, 700, 1500, 3000, 5700, 6600, 8000, None):
        found = accusing(judged(SECONDS, {"gpu.0.gpu": 95}, rows=rows, until_s=until_s))
        assert found & {"loss_diverged", "loss_not_finite"} == set(), until_s


def test_a_loss_that_stays_nan_is_critical() -> None:
    found = the(losses(train__loss=np.where(U > 0.5, np.nan, FALLING)), "loss_not_finite")
    assert found.severity == "critical"
    assert minutes(found)[0] == pytest.approx(90, abs=2)


def test_a_run_that_was_sent_later_is_judged_to_its_last_sample() -> None:
    """It has the times of its arrival, a day later."""
    times_ms = START_MS + (SECONDS * 1000).astype(np.int64)
    idle = {"gpu.0.gpu": (times_ms, np.where(LATE, 0.0, 95.0)), "cpu": (times_ms, np.where(LATE, 0.2, 20.0))}
    day_ms = START_MS + 86_400_000
    run = observe(
        [HostSamples("node0", idle)],
        state="finished",
        started_ms=day_ms,
        ended_ms=day_ms + 2000,
        now_ms=day_ms + 5000,
    )
    assert (run.started_ms, run.ended_ms) == (times_ms[0], times_ms[-1])
    assert the(judge(run), "idle").share == pytest.approx(LATE.mean(), abs=0.01)


def test_samples_that_are_rarer_than_declared_are_no_gaps() -> None:
    times_ms = START_MS + np.arange(0, 4 * 3_600_000, 40_000)
    series = {"gpu.0.gpu": (times_ms, np.full(len(times_ms), 95.0))}
    end_ms = int(times_ms[-1])
    how: Any = {"state": "finished", "started_ms": START_MS, "ended_ms": end_ms, "now_ms": end_ms}
    run = observe([HostSamples("node0", series, interval_s=10)], **how)
    assert run.windows.width_s >= 80
    assert judge(run).findings == []


def test_a_loss_that_is_measured_tells_no_steps_and_no_nan() -> None:
    times_ms = START_MS + (STEPS * 1000).astype(np.int64)
    column = LoggedColumn(times_ms, np.full(len(STEPS), -1), np.where(U > 0.5, 30.0, FALLING))
    run = observe([], state="finished", started_ms=START_MS, ended_ms=int(times_ms[-1]), now_ms=START_MS)
    run = replace(run, training=training_of(run.windows, {}, (), {"train/loss{rank=0}": column}))
    assert not run.training.has_steps
    found = judge(run)
    assert "loss_diverged" in accusing(found)
    assert "loss_not_finite" in {each.id for each in found.undecided}


def test_a_loss_that_was_never_a_number_is_told() -> None:
    assert "loss_not_finite" in accusing(losses(train__loss=np.nan))


def test_a_loss_that_diverged_stays_told_after_it_came_back() -> None:
    away = (U > 0.4) & (U < 0.8)
    rows = {"train/loss": (STEPS, np.where(away, 7.5, FALLING))}
    series = {"gpu.0.gpu": 95}
    live = the(judged(SECONDS, series, rows=rows, until_s=2 * HOUR), "loss_diverged")
    later = the(judged(SECONDS, series, rows=rows), "loss_diverged")
    assert (live.severity, live.to_ms) == ("critical", None)
    assert later.from_ms == live.from_ms
    assert minutes(later)[1] == pytest.approx(144, abs=5)
