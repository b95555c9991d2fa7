"""What grows: leaks and disks that fill, but no caches and no saws."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.findings.measured import HOUR, accusing, judged, minutes, the

SECONDS = np.arange(0, 12 * HOUR, 15.0)
HOURS = SECONDS / HOUR
NOISE = np.random.default_rng(5).normal(0, 0.05, len(SECONDS))


def memory(percent: Any) -> dict[str, Any]:
    """The series of a host with 256 GiB of which so much is used."""
    used = np.asarray(percent) + NOISE
    return {
        "gpu.0.gpu": 95,
        "memory_percent": used,
        "proc.memory.rssMB": 2621 * used,
        "cgroup.memory.limitMB": 262_144,
    }


GROWING = {
    "in a line": 20 + 6 * HOURS,
    "late": 30 + 9 * np.clip(HOURS - 6, 0, None),
    "in steps": 30 + 2.4 * np.floor(np.clip(HOURS - 4, 0, None) * 3),
    "under a saw": 22 + 6 * HOURS + 4 * (HOURS * 1.5 % 1),
}
HEALTHY = {
    "fills a cache": 14 + 60 * (1 - np.exp(-HOURS / 0.75)),
    "reads a data set into memory": 10 + 19 * np.clip(HOURS, 0, 2),
    "saw of an epoch": 22 + 45 * (HOURS / 0.9 % 1),
    "saw of two hours": 22 + 30 * (HOURS / 2 % 1),
    "flat": np.full(len(HOURS), 88.0),
    "reads most of it in quickly": 10 + 70 * np.clip(HOURS / 0.25, 0, 1),
    "fills to seven tenths in 40 minutes": 10 + 60 * np.clip(HOURS / 0.66, 0, 1),
}


@pytest.mark.parametrize("name", GROWING)
def test_a_leak_is_found_with_its_end(name: str) -> None:
    findings = judged(SECONDS, memory(GROWING[name]))
    assert accusing(findings) <= {"memory_growth", "out_of_memory_near"}
    found = the(findings, "memory_growth")
    assert found.to_ms is None
    assert "used up in" in found.text
    assert " UTC on " in found.text


@pytest.mark.parametrize("name", HEALTHY)
@pytest.mark.parametrize("until_h", [0.5, 0.8, 1.0, 1.5, 1.9, 2.5, 4, 8, 12])
def test_a_cache_and_a_saw_are_no_leak(name: str, until_h: float) -> None:
    assert accusing(judged(SECONDS, memory(HEALTHY[name]), until_s=until_h * HOUR)) == set()


@pytest.mark.parametrize(("until_h", "expected"), [(0.5, set()), (0.75, {"memory_growth"})])
def test_memory_that_is_used_up_within_the_hour_is_told_after_minutes(
    until_h: float, expected: set[str]
) -> None:
    """It is three quarters full after 40 minutes, and full after 53."""
    used = 10 + 90 * HOURS / 0.88
    findings = judged(SECONDS, memory(np.minimum(used, 100)), until_s=until_h * HOUR)
    assert accusing(findings) == expected
    if expected:
        assert the(findings, "memory_growth").severity == "critical"


def test_growth_that_stops_closes_and_keeps_its_start() -> None:
    used = 20 + 8 * np.clip(HOURS - 1, 0, 5)
    live = the(judged(SECONDS, memory(used), until_s=5 * HOUR), "memory_growth")
    later = the(judged(SECONDS, memory(used)), "memory_growth")
    assert live.to_ms is None
    assert later.from_ms == live.from_ms
    assert minutes(later)[1] == pytest.approx(360, abs=30)
    assert "and stopped" in later.text


def test_weights_that_are_loaded_are_no_growth_of_a_device() -> None:
    loading = SECONDS < 1080
    series = {
        "gpu.0.gpu": np.where(loading, 0, 97),
        "gpu.0.memoryAllocated": np.where(loading, SECONDS / 15, 88),
    }
    for until_s in (300, 660, 1000, 2000, 8000):
        assert "memory_growth" not in accusing(judged(SECONDS, series, until_s=until_s))


def test_an_allocator_that_keeps_97_percent_is_fine() -> None:
    series = {"gpu.0.gpu": 95, "gpu.0.memoryAllocated": np.where(SECONDS < 600, 40, 97)}
    assert accusing(judged(SECONDS, series)) == set()


DISK_HEALTHY = {
    "checkpoints are rotated": 88 + 4 * (HOURS * 1.2 % 1),
    "a data set is unpacked": 52 + 21 * np.clip(HOURS / 0.42, 0, 1) + 0.1 * HOURS,
    "downloaded": np.where(SECONDS < 720, 40 + SECONDS / 24, 70),
    "an image is always full": np.full(len(HOURS), 100.0),
    "slowly": 91 + 0.15 * HOURS,
}


@pytest.mark.parametrize("name", DISK_HEALTHY)
@pytest.mark.parametrize("until_h", [0.1, 0.25, 0.4, 0.6, 0.8, 1.6, 3, 6, 12])
def test_a_disk_that_does_not_fill_up_is_fine(name: str, until_h: float) -> None:
    series = {"gpu.0.gpu": 95, "disk./data.usagePercent": DISK_HEALTHY[name]}
    assert accusing(judged(SECONDS, series, until_s=until_h * HOUR)) == set()


@pytest.mark.parametrize("begin_h", [0, 5, 9])
def test_a_disk_that_begins_to_fill_is_told_within_two_hours(begin_h: float) -> None:
    used = np.clip(61 + 14 * np.clip(HOURS - begin_h, 0, None), 0, 100)
    series = {"gpu.0.gpu": 95, "disk./data.usagePercent": used}
    found = the(judged(SECONDS, series, until_s=(begin_h + 1.8) * HOUR), "disk_full_soon")
    assert minutes(found)[0] == pytest.approx(60 * begin_h, abs=45)
    assert "full in" in found.text
    full = the(judged(SECONDS, series), "disk_full_soon")
    assert full.from_ms == pytest.approx(found.from_ms, abs=60_000)


def test_a_full_disk_is_told_at_once() -> None:
    series = {"gpu.0.gpu": 95, "disk./data.usagePercent": np.where(HOURS > 3, 100, 60)}
    assert the(judged(SECONDS, series, until_s=3.05 * HOUR), "disk_full_soon").severity == "critical"
