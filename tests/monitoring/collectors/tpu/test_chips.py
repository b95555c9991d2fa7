"""Detecting the TPU chips of a host."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from runvitals.monitoring.collectors.base import Absent, Scope
from runvitals.monitoring.collectors.tpu.chips import find_chips, users
from runvitals.monitoring.collectors.tpu.probe import SIGNS, probe
from tests.monitoring.collectors.tpu import machines
from tests.monitoring.collectors.trees import plant


@pytest.fixture(autouse=True)
def _no_signs(monkeypatch: pytest.MonkeyPatch) -> None:
    for sign in (*SIGNS, "TPU_NAME"):
        monkeypatch.delenv(sign, raising=False)


def shape(tmp_path: Path, tree: dict[str, str]) -> list[tuple[object, ...]]:
    chips = find_chips(plant(tmp_path, tree))
    return [(chip.index, chip.pci, chip.node, chip.generation, chip.devices) for chip in chips]


def test_v5e_with_a_network_card_of_the_same_vendor(tmp_path: Path) -> None:
    assert shape(tmp_path, machines.V5E) == [
        (0, "0000:00:04.0", "/dev/vfio/0", "v5e", 1),
        (1, "0000:00:05.0", "/dev/vfio/1", "v5e", 1),
    ]


def test_v2_and_v3_are_distinguished_by_subsystem(tmp_path: Path) -> None:
    assert shape(tmp_path, machines.V3) == [
        (0, "0000:00:04.0", "/dev/accel0", "v3", 2),
        (1, "0000:00:05.0", "/dev/accel1", "v3", 2),
    ]


def test_two_functions_of_one_chip(tmp_path: Path) -> None:
    assert shape(tmp_path, machines.IRONWOOD) == [(0, "0000:00:04.0", "/dev/vfio/7", "7x", 2)]


def test_iommu_groups_are_sorted_as_numbers(tmp_path: Path) -> None:
    tree = machines.chip("0000:00:04.0", "0x006f", group=10) | machines.chip(
        "0000:00:05.0", "0x006f", group=9
    )
    assert [chip[1:3] for chip in shape(tmp_path, tree)] == [
        ("0000:00:05.0", "/dev/vfio/9"),
        ("0000:00:04.0", "/dev/vfio/10"),
    ]


def test_a_container_without_pci(tmp_path: Path) -> None:
    assert shape(tmp_path, {"dev/accel10": "", "dev/accel2": ""}) == [
        (0, "", "/dev/accel2", "", 1),
        (1, "", "/dev/accel10", "", 1),
    ]


def test_pci_is_not_read_outside_google_cloud(tmp_path: Path) -> None:
    assert shape(tmp_path, machines.V5E | {"sys/class/dmi/id/sys_vendor": "QEMU\n"}) == []


def test_pci_is_read_in_google_cloud(tmp_path: Path) -> None:
    assert len(shape(tmp_path, machines.V5E | {"sys/class/dmi/id/sys_vendor": "Google\n"})) == 2


def test_accelerators_of_other_vendors(tmp_path: Path) -> None:
    """Gaudi's nodes are in a folder; VFIO groups also exist on hosts of virtual machines."""
    with pytest.raises(Absent, match=r"none on the PCI bus, no /dev/accel\*"):
        probe(plant(tmp_path, machines.GVNIC | {"dev/accel/accel0": "", "dev/vfio/12": ""}))


def test_a_tpu_of_another_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TPU_NAME", "node-3")
    with pytest.raises(Absent, match="TPU_NAME names node-3, which is another machine"):
        probe(Scope(host_root=str(tmp_path)))


def test_a_variable_suffices(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TPU_ACCELERATOR_TYPE", "v5litepod-4")
    collector = probe(Scope(host_root=str(tmp_path)))
    assert collector.facts == {"tpu": {"vendor": "Google", "accelerator_type": "v5litepod-4"}}
    collector.close()


def test_processes_that_use_a_chip(tmp_path: Path) -> None:
    chips = find_chips(plant(tmp_path, machines.V5E))
    for pid, target in ((7, "/dev/vfio/1"), (8, "/dev/vfio/0")):
        folder = tmp_path / f"proc/{pid}/fd"
        folder.mkdir(parents=True)
        (folder / "3").symlink_to(target)
        (folder / "4").symlink_to("/dev/null")
    assert users(chips, [7, 99], proc=str(tmp_path / "proc")) == {"/dev/vfio/1"}


def test_the_probe_imports_nothing_else(tmp_path: Path) -> None:
    script = (
        f"import sys; sys.path[:] = {sys.path!r}\n"
        "from runvitals.monitoring.collectors.base import Absent, Scope\n"
        "from runvitals.monitoring.collectors.tpu import probe\n"
        f"try: probe.probe(Scope(host_root={str(tmp_path)!r}))\n"
        "except Absent: print(sorted(name for name in sys.modules if '.tpu.' in name))\n"
    )
    environ = {name: value for name, value in os.environ.items() if not name.startswith("TPU_")}
    output = subprocess.run(
        [sys.executable, "-I", "-S", "-c", script], capture_output=True, check=True, env=environ
    )
    assert output.stdout.decode().strip() == str(
        ["runvitals.monitoring.collectors.tpu.chips", "runvitals.monitoring.collectors.tpu.probe"]
    )
