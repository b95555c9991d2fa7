"""Load averages and uptime."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from runvitals.monitoring.collectors.base import Absent, Scope
from runvitals.monitoring.collectors.host.load import probe
from tests.monitoring.collectors.trees import BARE_VM, plant, put, sample, without


def test_load_and_uptime(tmp_path: Path) -> None:
    load = probe(plant(tmp_path, BARE_VM))
    assert sample(load, 100.0) == {
        "system.load1": 0.52,
        "system.load5": 0.25,
        "system.load15": 0.10,
        "system.uptime": 5000.25,
    }
    put(tmp_path, "proc/loadavg", "3.00 2.00 1.00 9/88 6300\n")
    readings = sample(load, 105.0)
    assert (readings["system.load1"], readings["system.uptime"]) == (3.0, 5005.25)


def test_load_without_uptime(tmp_path: Path) -> None:
    load = probe(plant(tmp_path, without(BARE_VM, ["proc/uptime"])))
    assert sample(load, 1.0).keys() == {"system.load1", "system.load5", "system.load15"}


def test_absent(tmp_path: Path) -> None:
    with pytest.raises(Absent, match="loadavg cannot be read"):
        probe(plant(tmp_path, {}))


def test_this_machine() -> None:
    readings = sample(probe(Scope()), time.monotonic())
    assert readings["system.load1"] == pytest.approx(os.getloadavg()[0], abs=1.0)
    assert readings["system.uptime"] > 0.0


def test_without_the_uptime_there_is_a_reason(tmp_path: Path) -> None:
    load = probe(plant(tmp_path, without(BARE_VM, ["proc/uptime"])))
    assert "system.uptime" not in sample(load, 1.0)
    assert load.absent == {"system.uptime": f"{tmp_path}/proc/uptime cannot be read"}
