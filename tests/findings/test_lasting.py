"""Trouble that lasts minutes is told, whatever its share of the run, and what was told stays."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from runvitals.findings.spans import Span, episodes, held_spans
from tests.findings.measured import GIB, HOUR, accusing, judged, minutes, the

SECONDS = np.arange(0, 16 * HOUR, 15.0)
TROUBLE = (SECONDS >= 6 * HOUR) & (SECONDS < 7 * HOUR)
WHOLE = np.ones(100, dtype=np.bool_)


def holding(*spans: tuple[int, int]) -> Any:
    """A mask of 100 windows that holds in some."""
    mask = np.zeros(100, dtype=np.bool_)
    for begin, end in spans:
        mask[begin:end] = True
    return mask


def test_a_span_opens_with_enough_evidence_and_has_its_first_window() -> None:
    assert held_spans(holding((10, 14)), WHOLE, open_windows=5, close_windows=5) == []
    assert held_spans(holding((10, 15)), WHOLE, open_windows=5, close_windows=5) == [Span(10, 14)]


def test_a_span_outlasts_short_health_and_closes_after_long() -> None:
    blinking = holding((10, 20), (23, 30), (60, 70))
    assert held_spans(blinking, WHOLE, open_windows=5, close_windows=5) == [Span(10, 29), Span(60, 69)]


def test_rare_evidence_never_adds_up() -> None:
    rare = np.arange(100) % 4 == 0
    assert held_spans(rare, WHOLE, open_windows=5, close_windows=8) == []


def test_windows_of_which_nothing_is_known_neither_open_nor_close() -> None:
    known = ~holding((20, 60))
    assert held_spans(holding((10, 20), (60, 65)), known, open_windows=12, close_windows=5) == [Span(10, 64)]


def test_a_longer_column_never_takes_back_a_span() -> None:
    noise = np.random.default_rng(3)
    holds, known = noise.random(400) < 0.5, noise.random(400) < 0.9
    told: set[int] = set()
    for count in range(1, 401):
        spans = held_spans(holds[:count], known[:count], open_windows=6, close_windows=6)
        firsts = {span.first for span in spans}
        assert told <= firsts
        told = firsts
    assert told


def test_what_comes_again_is_one_episode() -> None:
    each = [Span(begin, begin + 9) for begin in range(0, 200, 40)]
    ((time, members),) = episodes([("node0", each)], min_gap_windows=10)
    assert time == each
    assert members == [("node0", each)]
    far = [Span(0, 9), Span(500, 509)]
    assert len(episodes([("node0", far)], min_gap_windows=10)) == 2


CASES = {
    "input_bound_cpu": {"gpu.0.gpu": np.where(TROUBLE, 40, 95), "cpu": np.where(TROUBLE, 97, 40)},
    "input_bound_disk": {
        "gpu.0.gpu": np.where(TROUBLE, 40, 95),
        "cpu.iowait": np.where(TROUBLE, 45, 1),
        "disk.in": np.cumsum(np.full(len(SECONDS), 900.0)),
        "network.recv": np.cumsum(np.full(len(SECONDS), 1000.0)),
    },
    "cpu_limit": {
        "gpu.0.gpu": np.where(TROUBLE, 40, 95),
        "proc.cpu.throttledPercent": np.where(TROUBLE, 70, 0),
    },
    "noisy_neighbour": {"gpu.0.gpu": np.where(TROUBLE, 40, 95), "cpu.steal": np.where(TROUBLE, 35, 0)},
    "device_used_by_others": {
        "gpu.0.gpu": 97,
        "gpu.0.memoryAllocated": 80,
        "gpu.0.memoryAllocatedBytes": 64 * GIB,
        "gpu.0.otherMemoryBytes": np.where(TROUBLE, 20 * GIB, 0),
        "gpu.process.0.memoryAllocatedBytes": 40 * GIB,
    },
    "thermal_throttling": {
        "gpu.0.gpu": 97,
        "gpu.0.throttle.swThermalSeconds": np.cumsum(np.where(TROUBLE, 6.0, 0.0)),
    },
    "clock_limited": {"gpu.0.gpu": 97, "gpu.0.smClock": np.where(TROUBLE, 600, 1900)},
    "pcie_degraded": {
        "gpu.0.gpu": 97,
        "gpu.0.pcieLinkGen": 5,
        "gpu.0.pcieLinkWidth": np.where(TROUBLE, 4, 16),
        "gpu.0.maxPcieLinkGen": 5,
        "gpu.0.maxPcieLinkWidth": 16,
    },
}


@pytest.mark.parametrize("name", CASES)
def test_an_hour_of_sixteen_is_found_in_minutes_and_stays(name: str) -> None:
    device = {"index": 0, "name": "NVIDIA H100", "max_sm_clock_mhz": 1980}
    rows = {"train/loss": (np.arange(60, 16 * HOUR, 20), 1.0)}

    def after(hours: float | None) -> Any:
        until_s = None if hours is None else hours * HOUR
        state = "running" if hours else "finished"
        return judged(SECONDS, CASES[name], rows=rows, devices=[device], until_s=until_s, state=state)

    assert name not in accusing(after(5.9))
    opened = the(after(6.2), name)
    assert minutes(opened)[0] == pytest.approx(360, abs=2)
    assert opened.to_ms is None
    for hours in (7.5, 12.0, None):
        begin, end = minutes(the(after(hours), name))
        assert begin == pytest.approx(minutes(opened)[0], abs=2)
        assert end == pytest.approx(420, abs=2)


def test_a_slow_quarter_of_each_epoch_is_one_finding() -> None:
    cold = SECONDS % 2400 < 660
    series = {"gpu.0.gpu": np.where(cold, 35, 95), "cpu.iowait": np.where(cold, 45, 1)}
    findings = judged(SECONDS, series, rows={"loss": (np.arange(10, 16 * HOUR, 20), 1.0)}, state="finished")
    assert the(findings, "input_bound_disk").share == pytest.approx(0.27, abs=0.03)


def test_a_single_validation_that_nobody_marked_is_no_wait_for_data() -> None:
    pause = (SECONDS >= 4 * HOUR) & (SECONDS < 4 * HOUR + 540)
    steps = np.arange(60, 16 * HOUR, 10)
    steps = steps[(steps < 4 * HOUR) | (steps > 4 * HOUR + 540)]
    series = {"gpu.0.gpu": np.where(pause, 40, 95), "cpu": np.where(pause, 97, 40)}
    found = accusing(judged(SECONDS, series, rows={"loss": (steps, 1.0)}, state="finished"))
    assert "input_bound_cpu" not in found


def test_devices_that_are_not_used_wait_for_nothing() -> None:
    seconds = np.arange(0, 2 * HOUR, 15.0)
    series = {"gpu.0.gpu": 0, "gpu.0.powerWatts": 30, "cpu": 97}
    found = accusing(judged(seconds, series, rows={"loss": (np.arange(60, 7200, 9), 1.0)}))
    assert "input_bound_cpu" not in found


@pytest.mark.parametrize(("received", "name"), [(90, "input_bound_network"), (0.1, "input_bound_disk")])
def test_files_that_no_local_disk_gives_are_named(received: float, name: str) -> None:
    seconds = np.arange(0, 2 * HOUR, 10.0)
    series = {
        "gpu.0.gpu": 40,
        "cpu.iowait": 45,
        "disk.in": np.zeros(len(seconds)),
        "disk.out": np.zeros(len(seconds)),
        "network.recv": np.cumsum(np.full(len(seconds), 10 * received * 2**20)),
        "network.sent": np.cumsum(np.full(len(seconds), 2**20)),
    }
    findings = judged(seconds, series, rows={"loss": (np.arange(60, 7200, 10), 1.0)}, state="finished")
    assert accusing(findings) == {name}
    assert ("network file system" if received > 1 else "no local disk is read") in findings.text
