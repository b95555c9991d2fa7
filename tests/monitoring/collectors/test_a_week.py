"""Sources that fail for a week: they are retried rarely, and cost no more at the end."""

from __future__ import annotations

from pathlib import Path

import pytest

from runvitals.monitoring.collectors.amd.sysfs import CardFile
from runvitals.monitoring.collectors.base import Tick
from runvitals.monitoring.collectors.nvidia.nvml import NvmlError
from runvitals.monitoring.collectors.nvidia.pacing import Retries
from runvitals.monitoring.collectors.plumbing.composite import CompositeSource
from runvitals.monitoring.collectors.plumbing.tool import StreamingTool, ToolFailed
from runvitals.monitoring.monitor.sampler import Sampler

WEEK_S = 7 * 24 * 3600
# More than 1024 failures in a row: 2.0**1024 is more than a float holds.
EVERY_FIVE_MINUTES = pytest.approx(WEEK_S / 300, rel=0.02)


class Broken:
    """A source that always fails."""

    name = "broken"

    def __init__(self) -> None:
        self.calls = 0

    def sample(self, tick: Tick) -> None:
        self.calls += 1
        raise OSError("gone")


def test_a_source() -> None:
    broken, reports = Broken(), []
    sampler = Sampler([broken], 10.0, lambda source, error: reports.append(error))
    for mono_s in range(0, WEEK_S, 10):
        sampler.sample(float(mono_s))
    assert broken.calls == EVERY_FIVE_MINUTES
    assert len(reports) == 1


def test_a_part_of_a_source() -> None:
    broken = Broken()
    parts = CompositeSource("all", [broken])
    failures = 0
    for mono_s in range(0, WEEK_S, 10):
        try:
            parts.sample(Tick(float(mono_s)))
        except ToolFailed:
            failures += 1
    assert broken.calls == EVERY_FIVE_MINUTES
    assert failures == WEEK_S / 10, "while it is left alone it does not work either"


def test_a_file(tmp_path: Path) -> None:
    path = tmp_path / "gpu_busy_percent"
    file = CardFile("gpu", str(path), float)
    for mono_s in range(0, WEEK_S, 10):
        assert file.value(float(mono_s)) is None
    path.write_text("42\n")
    assert file.value(WEEK_S + 301.0) == 42.0
    file.close()


def test_a_reading_of_a_driver() -> None:
    retries, calls = Retries(), 0
    for mono_s in range(0, WEEK_S, 10):
        if retries.due(mono_s):
            calls += 1
            retries.note_failure(mono_s, NvmlError(999, "nvmlDeviceGetTemperature"), for_good=False)
    assert calls == EVERY_FIVE_MINUTES


def test_a_stream(tmp_path: Path) -> None:
    stream = StreamingTool([str(tmp_path / "tegrastats")])
    starts = 0
    for mono_s in range(0, WEEK_S // 4, 30):
        try:
            stream.lines(float(mono_s))
        except ToolFailed as failed:
            starts += type(failed) is ToolFailed
    assert starts == pytest.approx(WEEK_S / 4 / 60, rel=0.02)
