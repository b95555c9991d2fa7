"""CPU quota, throttling and out-of-memory kills of our cgroup."""

from __future__ import annotations

from pathlib import Path

import pytest

from runvitals.monitoring.collectors.base import Absent, Scope
from runvitals.monitoring.collectors.host.cgroup import probe
from tests.monitoring.collectors import trees
from tests.monitoring.collectors.trees import plant, put, sample

V2_STAT = "sys/fs/cgroup/training.slice/cpu.stat"


def cpu_stat(usage_s: float, periods: int, throttled: int, throttled_s: float) -> str:
    return (
        f"usage_usec {usage_s * 1e6:.0f}\nuser_usec 1\nsystem_usec 1\n"
        f"nr_periods {periods}\nnr_throttled {throttled}\nthrottled_usec {throttled_s * 1e6:.0f}\n"
    )


def test_v2_use_of_the_quota(tmp_path: Path) -> None:
    use = probe(plant(tmp_path, trees.LIMITED_SLICE))
    assert sample(use, 10.0) == {
        "cgroup.cpu.limit": 1.5,
        "proc.cpu.throttledSeconds": 2.5,
        "proc.memory.oomKills": 1.0,
    }
    # In two seconds 20 periods, 5 of them throttled; 2.4 s of the 3 s of CPU time of 1.5 CPUs.
    put(tmp_path, V2_STAT, cpu_stat(9.0 + 2.4, 120, 15, 3.25))
    assert sample(use, 12.0) == {
        "cgroup.cpu.limit": 1.5,
        "cpu.ofLimit": pytest.approx(80.0),
        "proc.cpu.throttledPercent": 25.0,
        "proc.cpu.throttledSeconds": 3.25,
    }


def test_v1_use_of_the_quota(tmp_path: Path) -> None:
    use = probe(plant(tmp_path, trees.V1))
    assert sample(use, 10.0)["proc.cpu.throttledSeconds"] == 4.0
    folder = "sys/fs/cgroup/cpu/jobs/7"
    put(tmp_path, f"{folder}/cpu.stat", "nr_periods 210\nnr_throttled 60\nthrottled_time 5000000000\n")
    put(tmp_path, f"{folder}/cpuacct.usage", "91500000000\n")
    readings = sample(use, 11.0)
    assert readings["cgroup.cpu.limit"] == 3.0
    assert readings["proc.cpu.throttledPercent"] == 100.0
    assert readings["proc.cpu.throttledSeconds"] == 5.0
    assert readings["cpu.ofLimit"] == pytest.approx(50.0)
    assert sample(use, 20.0)["proc.memory.oomKills"] == 2.0


def test_too_few_periods_count_later(tmp_path: Path) -> None:
    use = probe(plant(tmp_path, trees.LIMITED_SLICE))
    put(tmp_path, V2_STAT, cpu_stat(9.1, 101, 11, 2.6))
    assert "proc.cpu.throttledPercent" not in sample(use, 1.0)
    put(tmp_path, V2_STAT, cpu_stat(9.2, 104, 11, 2.6))
    assert sample(use, 2.0)["proc.cpu.throttledPercent"] == 25.0


def test_counts_that_begin_anew_leave_out_one_reading(tmp_path: Path) -> None:
    use = probe(plant(tmp_path, trees.LIMITED_SLICE))
    sample(use, 1.0)
    put(tmp_path, V2_STAT, cpu_stat(1.0, 4, 0, 0.0))
    readings = sample(use, 2.0)
    assert "cpu.ofLimit" not in readings
    assert "proc.cpu.throttledPercent" not in readings
    put(tmp_path, V2_STAT, cpu_stat(1.75, 14, 5, 0.5))
    readings = sample(use, 3.0)
    assert (readings["cpu.ofLimit"], readings["proc.cpu.throttledPercent"]) == (50.0, 50.0)


def test_no_keys_without_a_quota(tmp_path: Path) -> None:
    assert sample(probe(plant(tmp_path, trees.BARE_VM)), 1.0) == {"proc.memory.oomKills": 3.0}


def test_a_changed_quota_is_noticed(tmp_path: Path) -> None:
    use = probe(plant(tmp_path, trees.LIMITED_SLICE))
    assert sample(use, 0.0)["cgroup.cpu.limit"] == 1.5
    put(tmp_path, "sys/fs/cgroup/training.slice/cpu.max", "50000 100000\n")
    assert sample(use, 60.0)["cgroup.cpu.limit"] == 0.5
    put(tmp_path, "sys/fs/cgroup/training.slice/cpu.max", "max 100000\n")
    assert "cgroup.cpu.limit" not in sample(use, 120.0)


def test_absent(tmp_path: Path) -> None:
    with pytest.raises(Absent, match="no cgroup counts our CPU time or memory"):
        probe(plant(tmp_path, {"proc/loadavg": "0 0 0 1/1 1\n"}))


def test_this_machine() -> None:
    readings = sample(probe(Scope()), 1.0)
    assert all(value >= 0.0 for value in readings.values())


# -- missing readings, and who sets the quota


def test_the_cgroup_that_sets_the_quota_is_named(tmp_path: Path) -> None:
    use = probe(plant(tmp_path, trees.LIMITED_SLICE))
    folder = f"{tmp_path}/sys/fs/cgroup/training.slice"
    assert use.facts == {"cgroup_cpu_limit": {"cpus": 1.5, "set_by": folder}}
    assert use.absent == {}


def test_without_a_quota_its_readings_have_a_reason(tmp_path: Path) -> None:
    use = probe(plant(tmp_path, trees.BARE_VM))
    assert "cgroup.cpu.limit" not in sample(use, 1.0)
    assert use.absent == dict.fromkeys(
        ("cgroup.cpu.limit", "cpu.ofLimit", "proc.cpu.throttledPercent", "proc.cpu.throttledSeconds"),
        "there is none: no cgroup has a CPU quota",
    )
    assert use.facts is None


def test_a_quota_whose_use_cannot_be_read(tmp_path: Path) -> None:
    use = probe(plant(tmp_path, trees.without(trees.LIMITED_SLICE, [V2_STAT])))
    assert sample(use, 1.0)["cgroup.cpu.limit"] == 1.5
    assert set(use.absent) == {"cpu.ofLimit", "proc.cpu.throttledPercent", "proc.cpu.throttledSeconds"}
