"""Energy counters of the processor (RAPL)."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from runvitals.monitoring.collectors.base import Absent, Scope
from runvitals.monitoring.collectors.host.energy import domain_names, probe
from tests.monitoring.collectors.trees import BARE_VM, RAPL, plant, put, sample

ZONE = "sys/class/powercap"


def test_every_domain_is_counted_once(tmp_path: Path) -> None:
    assert sample(probe(plant(tmp_path, RAPL)), 10.0) == {
        "energy.package-0": 5.0,
        "energy.core-0": 3.0,
        "energy.dram-0": 1.0,
        "energy.package-1": 7.0,
        "energy.dram-1": 2.0,
        "energy.psys": 90.0,
    }


def test_power_is_the_sum_of_packages_and_memory(tmp_path: Path) -> None:
    energy = probe(plant(tmp_path, RAPL))
    sample(energy, 10.0)
    # In two seconds 100 J and 20 J in the first package and its memory, 80 J in the second. Cores and
    # platform are not added.
    for zone, energy_uj in (("0", 105), ("0:0", 90), ("0:1", 21), ("1", 87), ("2", 500)):
        put(tmp_path, f"{ZONE}/intel-rapl:{zone}/energy_uj", f"{energy_uj * 1_000_000}\n")
    readings = sample(energy, 12.0)
    assert readings["cpu.powerWatts"] == pytest.approx(100.0)
    assert readings["energy.package-0"] == 105.0


def test_a_counter_that_wraps_around(tmp_path: Path) -> None:
    energy = probe(plant(tmp_path, RAPL | {f"{ZONE}/intel-rapl:0/energy_uj": "262143000000\n"}))
    before = sample(energy, 10.0)["energy.package-0"]
    put(tmp_path, f"{ZONE}/intel-rapl:0/energy_uj", "671150\n")
    readings = sample(energy, 11.0)
    assert readings["energy.package-0"] - before == pytest.approx(
        1.0
    )  # 0.328850 J to the end and 0.671150 J after
    assert readings["cpu.powerWatts"] == pytest.approx(1.0)


@pytest.fixture
def as_unprivileged_user() -> Iterator[Path]:
    """A folder that every user may enter, for a test that runs as an unprivileged user."""
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        yield Path(folder)


def test_a_counter_that_only_root_may_read_is_absent(as_unprivileged_user: Path) -> None:
    scope = plant(as_unprivileged_user, RAPL)
    for file in as_unprivileged_user.glob(f"{ZONE}/*/energy_uj"):
        file.chmod(0o400 if os.geteuid() == 0 else 0)
    root = os.geteuid() == 0
    if root:
        os.seteuid(65534)
    try:
        with pytest.raises(Absent, match=r"package-0: only root may read .*/intel-rapl:0/energy_uj"):
            probe(scope)
    finally:
        if root:
            os.seteuid(0)


def test_an_invalid_zone_does_not_affect_the_others(tmp_path: Path) -> None:
    energy = probe(plant(tmp_path, RAPL | {f"{ZONE}/intel-rapl:2/energy_uj": "\n"}))
    assert "energy.psys" in energy.absent
    assert "energy.psys" not in sample(energy, 1.0)


def test_names_of_parts_include_the_number_of_their_package() -> None:
    assert domain_names(
        {"intel-rapl:0": "package-0", "intel-rapl:0:0": "core", "intel-rapl-mmio:0": "package-0"}
    ) == {
        "intel-rapl:0": "package-0",
        "intel-rapl:0:0": "core-0",
    }
    assert domain_names({"intel-rapl:a": "package-10", "intel-rapl:a:0": "uncore"}) == {
        "intel-rapl:a": "package-10",
        "intel-rapl:a:0": "uncore-10",
    }


def test_parts_of_several_dies_of_a_package_are_all_counted() -> None:
    # A package of two dies, of which there are two: two zones are "die-0".
    zones = {
        f"intel-rapl:{number}": f"package-{package}-die-{die}"
        for number, (package, die) in enumerate([(0, 0), (0, 1), (1, 0), (1, 1)])
    }
    parts = {f"{zone}:0": "dram" for zone in zones}
    names = domain_names(zones | parts)
    assert [names[part] for part in parts] == [
        *("dram-0-die-0", "dram-0-die-1", "dram-1-die-0", "dram-1-die-1")
    ]


def test_a_domain_that_cannot_be_read_now_does_not_affect_the_others(tmp_path: Path) -> None:
    energy = probe(plant(tmp_path, RAPL))
    sample(energy, 10.0)
    put(tmp_path, f"{ZONE}/intel-rapl:0:1/energy_uj", "")
    put(tmp_path, f"{ZONE}/intel-rapl:0/energy_uj", "105000000\n")
    readings = sample(energy, 11.0)
    assert readings["energy.package-0"] == 105.0
    assert "energy.dram-0" not in readings
    assert "cpu.powerWatts" not in readings, "the sum lacks a part"
    put(tmp_path, f"{ZONE}/intel-rapl:0:1/energy_uj", "21000000\n")
    assert sample(energy, 12.0)["cpu.powerWatts"] == pytest.approx((100 + 20) / 2)


@pytest.mark.parametrize(
    ("limit", "now_uj"), [("", 1_000_000), ("unknown", 1_000_000), ("262143328850", 6_999_999)]
)
def test_a_counter_that_was_reset_leaves_out_one_reading_of_the_power(
    tmp_path: Path, limit: str, now_uj: int
) -> None:
    tree = RAPL | {f"{ZONE}/intel-rapl:1/max_energy_range_uj": limit}
    energy = probe(plant(tmp_path, tree))
    sample(energy, 10.0)
    put(tmp_path, f"{ZONE}/intel-rapl:1/energy_uj", f"{now_uj}\n")
    readings = sample(energy, 11.0)
    assert readings["energy.package-1"] == now_uj / 1e6, "the monitor leaves out what fell"
    assert "cpu.powerWatts" not in readings
    put(tmp_path, f"{ZONE}/intel-rapl:1/energy_uj", f"{now_uj + 5_000_000}\n")
    assert sample(energy, 12.0)["cpu.powerWatts"] == pytest.approx(5.0)


def test_absent(tmp_path: Path) -> None:
    with pytest.raises(Absent, match="powercap cannot be listed"):
        probe(plant(tmp_path / "none", BARE_VM))
    with pytest.raises(Absent, match="has no RAPL zone"):
        probe(plant(tmp_path / "empty", BARE_VM | {f"{ZONE}/dtpm/enabled": "0\n"}))


def test_this_machine() -> None:
    try:
        energy = probe(Scope())
    except Absent as absent:
        assert "powercap" in str(absent)  # noqa: PT017 -- virtual machines have none
        return
    assert all(value >= 0.0 for value in sample(energy, 1.0).values())
