"""The probe for AMD GPUs, and its reasons."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from runvitals.monitoring.collectors.amd.driver import card_names
from runvitals.monitoring.collectors.amd.probe import probe
from runvitals.monitoring.collectors.amd.rocm_programs import find_rocm_program
from runvitals.monitoring.collectors.base import Absent
from tests.isolated import printed
from tests.monitoring.collectors.amd.cards import card
from tests.monitoring.collectors.trees import BARE_VM, plant, put


@pytest.fixture(autouse=True)
def _no_programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))


def test_absent_names_what_was_searched(tmp_path: Path) -> None:
    with pytest.raises(
        Absent, match="no card in /sys/class/drm is driven by amdgpu, and neither amd-smi nor rocm-smi"
    ):
        probe(plant(tmp_path, BARE_VM))


def test_a_card_without_its_driver_is_reported_with_the_remedy(tmp_path: Path) -> None:
    device = "sys/bus/pci/devices/0000:41:00.0"
    scope = plant(tmp_path, {f"{device}/class": "0x120000\n", f"{device}/vendor": "0x1002\n"})
    with pytest.raises(Absent, match=r"0000:41:00\.0 is not driven by amdgpu; load the driver"):
        probe(scope)


def test_onboard_graphics_and_connectors_are_not_cards(tmp_path: Path) -> None:
    ast = {"sys/class/drm/card0/device/driver": "-> ../../../../bus/pci/drivers/ast"}
    plant(tmp_path, ast | card(10, "0000:03:00.0") | card(2, "0000:83:00.0"))
    put(tmp_path, "sys/class/drm/card2-HDMI-A-1/status", "connected\n")
    assert card_names(str(tmp_path)) == ["card2", "card10"]


def test_a_card_is_recognized_by_its_files_without_links(tmp_path: Path) -> None:
    tree = card(1, "0000:03:00.0")
    del tree["sys/class/drm/card1/device/driver"]
    plant(tmp_path, tree)
    assert card_names(str(tmp_path)) == ["card1"]


def test_hygons_rocm_smi_is_ignored(tmp_path: Path) -> None:
    put(tmp_path, "dtk/bin/rocm-smi", "#!/bin/sh\n")
    (tmp_path / "dtk/bin/rocm-smi").chmod(stat.S_IRWXU)
    put(tmp_path, "bin/rocm-smi", f"-> {tmp_path}/dtk/bin/rocm-smi")
    assert find_rocm_program("rocm-smi") == []


def test_without_a_gpu_only_the_probe_is_imported(tmp_path: Path) -> None:
    script = """
from runvitals.monitoring.collectors.amd.probe import probe
from runvitals.monitoring.collectors.base import Absent, Scope
try:
    probe(Scope(host_root=sys.argv[1]))
except Absent:
    print(*(name for name in sys.modules if name.startswith("runvitals.monitoring.collectors.")))
"""
    output = printed(script, str(tmp_path))
    names = {name.removeprefix("runvitals.monitoring.collectors.") for name in output.split()}
    assert names == {
        "amd",
        "amd.driver",
        "amd.probe",
        "amd.rocm_programs",
        "base",
        "plumbing",
        "plumbing.executables",
        "plumbing.pci",
    }
